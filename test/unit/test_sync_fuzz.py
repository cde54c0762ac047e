"""A fast sample of ``test/oracle/sync_fuzz.py``: the race detector agrees with the definition that tries all pairs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "oracle" / "sync_fuzz.py"
spec = importlib.util.spec_from_file_location("sync_fuzz", PATH)
assert spec is not None
assert spec.loader is not None
sync_fuzz = importlib.util.module_from_spec(spec)
sys.modules["sync_fuzz"] = sync_fuzz
spec.loader.exec_module(sync_fuzz)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_detector_and_definition_agree(first: int) -> None:
    found = [racy for seed in range(first, first + 20) for racy in sync_fuzz.check(seed)]
    assert any(found)
    assert not all(found)
