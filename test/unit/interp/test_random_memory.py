"""A fast sample of ``test/oracle/memory_fuzz.py``: memory contents match a byte-by-byte definition."""

from __future__ import annotations

import memory_fuzz
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 80, 40))
def test_interpreter_and_definition_agree(first: int) -> None:
    found = {memory_fuzz.check(seed) for seed in range(first, first + 40)}
    assert found == {"", "oob", "sync", "uninit"}
