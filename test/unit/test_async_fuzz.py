"""A fast sample of ``test/oracle/async_fuzz.py``: copies, mbarriers and named barriers against the definition."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "oracle" / "async_fuzz.py"
spec = importlib.util.spec_from_file_location("async_fuzz", PATH)
assert spec is not None
assert spec.loader is not None
async_fuzz = importlib.util.module_from_spec(spec)
sys.modules["async_fuzz"] = async_fuzz
spec.loader.exec_module(async_fuzz)


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_detector_and_definition_agree(first: int) -> None:
    found = [async_fuzz.check(seed) for seed in range(first, first + 40)]
    assert any(found)
    assert not all(found)
