"""Garbage collection: disabled during a compilation and restored afterwards."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from cute_dialect.errors import CompileError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.compilation import collector_paused

EXAMPLE = Path(__file__).parents[2] / "examples" / "row_sum.mlir"


def test_collector_state_is_restored() -> None:
    assert gc.isenabled()
    with collector_paused(), collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_no_collection_while_compiling() -> None:
    seen: list[str] = []

    def note(phase: str, info: dict[str, int]) -> None:
        seen.append(phase)

    gc.collect()
    gc.callbacks.append(note)
    try:
        compile_cute(str(EXAMPLE), emit="base", cache=False)
        during = len(seen)
    finally:
        gc.callbacks.remove(note)
    assert during <= 2 and gc.isenabled()  # At most one collection, after compiling.


def test_errors_restore_the_collector() -> None:
    with pytest.raises(CompileError):
        compile_cute('"cute.nothing"() : () -> ()', emit="base", cache=False)
    assert gc.isenabled()
