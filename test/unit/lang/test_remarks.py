"""Remarks R1, R2 and R4 of the language. Tests of the disk cache cover R3."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.calls import specializations

X = np.zeros(32, np.float32)


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")


def remarks(kernel: Any) -> list[str]:
    """Return the remarks of a kernel, with lines relative to its decorator."""
    first = kernel.function.__code__.co_firstlineno
    k = cute.compile(kernel, X, 5, grid=1, block=32)
    found: list[str] = []
    for remark in k.remarks:
        for n in range(first, first + 12):
            remark = remark.replace(f"{__file__}:{n}:", f"+{n - first}:")
        found.append(remark)
    return found


def test_loops_that_become_while_loops_have_a_remark() -> None:
    @cute.kernel
    def jumps(x: cute.Tensor, n: cute.Int32) -> None:
        for i in range(n):
            if x[i] > 3.0:
                break
            x[i] = 1.0

    assert remarks(jumps) == ["+2:18: remark R1: this loop is compiled as a while loop because a jump may end it early"]


def test_unrolled_loops_have_a_remark() -> None:
    @cute.kernel
    def unrolled(x: cute.Tensor, n: cute.Int32) -> None:
        numbers = [1.0, 2.0, 3.0]
        for i in range(3):
            x[i] = numbers[i]

    (said,) = remarks(unrolled)
    assert said.startswith("+3:18: remark R2: the 3 iterations of this loop are unrolled: ")
    assert said.endswith(" (+4:20)")


def test_plain_loops_have_no_remark() -> None:
    @cute.kernel
    def plain(x: cute.Tensor, n: cute.Int32) -> None:
        for i in range(3):
            x[i] = 1.0
        for i in range(n):
            x[i] = 2.0

    assert remarks(plain) == []


def test_a_constant_of_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specializations, "MOST_OF_ONE", 3)

    @cute.kernel
    def fill(x: cute.Tensor, n: cute.Constexpr[int], other: cute.Constexpr[int]) -> None:
        x[0] = float(n)

    @cute.jit
    def run(x: Any, n: cute.Constexpr[int], other: cute.Constexpr[int] = 0) -> None:
        fill(x, n, other).launch(grid=1, block=1)

    said = [cute.compile(run, X, n).remarks for n in range(5)]
    place = f"{__file__}:{run.function.__code__.co_firstlineno}:1"
    remark = (
        f"{place}: remark R4: 'n' of 'run' is a compile-time constant and had more than 3 values, each compiled "
        "separately; a run-time number (cute.Int32, no annotation) compiles once"
    )
    assert said == [[], [], [], [remark], [remark]]
    run.cache_clear()
    assert cute.compile(run, X, 9).remarks == []
