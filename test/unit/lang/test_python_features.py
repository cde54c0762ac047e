"""Common Python features: ``super()``, nested generators, slices of layouts, calls."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from traced import Traced

import cute_dialect.lang as cute
from cute_dialect.errors import CompileError
from cute_dialect.lang.tracing.errors import LayoutError
from cute_dialect.lang.values.dtypes import Int32


class Base:
    def value(self, v: int) -> int:
        return v + 1


class Derived(Base):
    def value(self, v: int) -> int:
        return super().value(v) if v > 4 else v

    def both(self, v: int) -> bool:
        return v > 2 and super().value(v) > 4


def super_in_a_conditional(v: int) -> int:
    return Derived().value(v)


def super_behind_and(v: int) -> int:
    return 7 if Derived().both(v) else 8


def pairs(n: int) -> Iterator[tuple[int, int]]:
    for i in range(n):
        for j in range(i):
            yield i, j


def selected(n: int) -> Iterator[tuple[int, int]]:
    for i in range(n):
        for j in range(2):
            if j < i:
                yield i, j


def nested_generator(v: int) -> int:
    total = 0
    for i, j in pairs(4):
        total = total + i * 10 + j * v
    return total


def generator_with_a_condition(v: int) -> int:
    total = 0
    for i, j in selected(4):
        total = total + i * 10 + j * v
    return total


@pytest.mark.parametrize(
    "function",
    [super_in_a_conditional, super_behind_and, nested_generator, generator_with_a_condition],
    ids=lambda f: f.__name__,
)
def test_results_match_python(function: Callable[[int], int]) -> None:
    traced = Traced(function, [Int32])
    for v in range(8):
        assert traced.run(v) == function(v), v


def by_expression(v: int) -> int:
    return 1 if v < 1 else v * by_expression(v - 1)


def by_statement(v: int) -> int:
    if v < 1:
        return 1
    return v * by_statement(v - 1)


def by_loop(v: int) -> int:
    total = 1
    for _ in range(v):
        total += by_loop(v - 1)
    return total


@pytest.mark.sample("by_expression")
@pytest.mark.parametrize("function", [by_expression, by_statement, by_loop], ids=lambda f: f.__name__)
def test_recursion_of_run_time_is_refused_early(function: Callable[[int], int]) -> None:
    with pytest.raises(CompileError, match="F161") as caught:
        Traced(function, [Int32])
    frames, at = 0, caught.value.__traceback__
    while at is not None:
        frames, at = frames + 1, at.tb_next
    assert frames < 700  # The error comes before Python's recursion limit of 1000 frames.
    assert len(str(caught.value).splitlines()) < 12


def test_layouts_are_sliced() -> None:
    layout = cute.make_layout((4, 8, 2))
    want = cute.slice_(layout, (None, 0, 0))
    assert str(layout[:, 0, 0]) == str(layout[(slice(None), 0, 0)]) == str(layout((None, 1, 1))) == str(want)
    assert str(layout[None, 0, 0]) == str(want) and str(layout[:, None, 1]) == str(layout[:, :, 1])
    with pytest.raises(LayoutError, match="an ellipsis is not supported"):
        layout[..., 0]
    assert str(layout(None, 3, None)) == str(layout[:, 3, :]) == "(4,2):(1,32)"
    assert layout((1, 1, 1)) == 1 + 4 + 32
    with pytest.raises(LayoutError, match="only ':' selects a whole mode"):
        layout[1:, 0, 0]


@cute.kernel
def fill(x: cute.Tensor):
    x[0] = 7


def test_a_kernel_that_is_not_launched_warns() -> None:
    x: Any = np.zeros(1, np.int32)
    with pytest.warns(RuntimeWarning, match=r"the kernel 'fill' was called but not launched"):
        fill(x)
        gc.collect()
    assert x[0] == 0


def test_a_launched_kernel_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    x: Any = np.zeros(1, np.int32)
    fill(x).launch(grid=1, block=1, device="cpu")
    gc.collect()
    assert x[0] == 7
    assert not recwarn.list


def test_a_compiled_kernel_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    cute.compile(fill, np.zeros(1, np.int32), grid=1, block=1, device="cpu")
    gc.collect()
    assert not [w for w in recwarn if issubclass(w.category, RuntimeWarning)]
