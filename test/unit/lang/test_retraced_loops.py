"""Objects stay valid when a loop is traced again and its first trace is discarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute


def extent_in_the_condition(x: Any, o: Any) -> None:
    i = cute.Int32(0)
    while i < x.shape[0]:
        i += 1
    o[0] = i


def size_in_the_condition(x: Any, o: Any) -> None:
    i = 0
    while cute.size(x) > i * 2:
        i += 1
    o[0] = i


def layout_of_a_tensor_made_before(x: Any, o: Any) -> None:
    y = cute.make_tensor(x.iterator, x.layout)
    i = 0
    while i < cute.size(y.layout):
        i += 1
    o[0] = i + cute.size(y.layout)


def extent_after_the_loop(x: Any, o: Any) -> None:
    i = 0
    while x[i] < x.shape[0] - 1 and i < 3:
        i += 1
    o[0] = i + x.layout.shape[0]


def in_a_loop(x: Any, o: Any) -> None:
    for j in range(2):
        i = 0
        while i < x.shape[0]:
            i += 1
        o[j] = i
    o[2] = x.shape[0]


def static_turns(x: Any, o: Any) -> None:
    s = 0
    for j in range(3):
        s += [1, 2, x.shape[0]][j]
    o[0] = s + x.shape[0]


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (extent_in_the_condition, 5), (size_in_the_condition, 3), (layout_of_a_tensor_made_before, 10),
        (extent_after_the_loop, 8), (in_a_loop, 5), (static_turns, 13),
    ],
)  # fmt: skip
def test_results_match_python(body: Callable[[Any, Any], None], want: int) -> None:
    @cute.kernel
    def k(x: cute.Tensor, o: cute.Tensor):
        body(x, o)

    @cute.jit
    def run(x: cute.Tensor, o: cute.Tensor):
        k(x, o).launch(grid=1, block=1)

    o = np.zeros(3, np.float32)
    run(np.arange(5, dtype=np.float32), o, device="cpu")
    assert o[0] == want
