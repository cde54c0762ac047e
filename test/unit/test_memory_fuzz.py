"""A fast sample of ``test/oracle/memory_fuzz.py``: what memory holds, against the definition by bytes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "oracle" / "memory_fuzz.py"
spec = importlib.util.spec_from_file_location("memory_fuzz", PATH)
assert spec is not None
assert spec.loader is not None
memory_fuzz = importlib.util.module_from_spec(spec)
sys.modules["memory_fuzz"] = memory_fuzz
spec.loader.exec_module(memory_fuzz)


@pytest.mark.parametrize("first", range(0, 80, 40))
def test_interpreter_and_definition_agree(first: int) -> None:
    found = {memory_fuzz.check(seed) for seed in range(first, first + 40)}
    assert found == {"", "oob", "sync", "uninit"}
