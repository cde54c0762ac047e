"""Elementwise functions with row and column sums, on the CPU interpreter, exactly equal to numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect.kernels.elementwise.sums import SumsPlan, elementwise_sums_text
from cute_dialect.kernels.epilogue.graph import Builder, Graph, Input, Output
from cute_dialect.pipelines import compile
from cute_dialect.runtime.launch_plan import LaunchError

CHECKS = ("race", "uninit", "oob", "sync")


def everything(batch: bool) -> Graph:
    """Return a graph of ``d = x y + row - column`` and ``scale d``. It also sums the columns of ``d`` and the rows of
    ``scale d``.
    """
    make = Builder()
    x, y = make.load(Input("aux", "f16", batch=batch, order="n")), make.load(Input("aux", "f32", order="n"))
    row, column = make.load(Input("row", "f16", order="n")), make.load(Input("column", "i8", order="m", batch=batch))
    scale = make.load(Input("scalar", number=True))
    d = make.call("subtract", make.call("multiply_add", x, y, row), column)
    e = make.call("multiply", d, scale)
    return make.graph(
        [Output(d, "f16"), Output(d, "f32", reduce="sum", axis="m"), Output(e, "f32"),
         Output(e, "f32", reduce="sum", axis="n")]
    )  # fmt: skip


def run(plan: SumsPlan, m: int, n: int, matrices: int, pitch: int) -> None:
    """Run a plan on small integers and compare exactly. The padding between rows must be unchanged."""
    rng = np.random.default_rng(m + n)
    batch = plan.batch
    shape = (matrices, m, n) if batch else (m, n)

    def matrix(kind: Any, of: tuple[int, ...], fill: Any = None) -> np.ndarray:
        """Return a matrix with padded rows, or a batch of them with the batch mode last."""
        memory = np.full((*of[:-1], pitch), 77, kind)
        inside = memory[..., :n]
        inside[...] = rng.integers(-2, 3, of) if fill is None else fill
        return inside

    def last(t: np.ndarray) -> np.ndarray:
        return np.moveaxis(t, 0, -1) if t.ndim == 3 else t

    x, y = matrix(np.float16, shape), matrix(np.float32, (m, n))
    row, column = rng.integers(-2, 3, n).astype(np.float16), rng.integers(-2, 3, shape[:-1]).astype(np.int8)
    d, e = matrix(np.float16, shape, np.nan), matrix(np.float32, shape, np.nan)
    one, other = (x for x in plan.graph.outputs if x.reduce)
    parts = [np.full((matrices, *plan.parts(z, m, n)), np.nan, np.float32) for z in (one, other)]
    parts = parts if batch else [p[0] for p in parts]
    columns = np.moveaxis(column, 0, -1) if batch else column
    kernel = compile(elementwise_sums_text(plan), emit="base").kernel("launch")
    given = (last(x), y, row, columns, 2.0, last(d), last(parts[0]), last(e), last(parts[1]), m, n, matrices)
    kernel(*given, device="cpu", checks=CHECKS)
    want = x.astype(np.float64) * y + row - column[..., None]
    assert (d == want).all() and (e == 2 * want).all()
    assert (parts[0].sum(-2) == want.sum(-2)).all() and (parts[1].sum(-2) == 2 * want.sum(-1)).all()
    assert pitch == n or ((d.base[..., n:] == 77).all() and (e.base[..., n:] == 77).all())  # type: ignore[index]


ALL = (True, True, True, False, False)
"""Per input: True if it is accessed by vectors."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "vectors", "batch", "m", "n", "pitch"),
    [
        (8, (*ALL, True, False, True, False), False, 150, 264, 264),
        (8, (*ALL, True, False, True, False), True, 17, 136, 144),
        (8, (False,) * 9, False, 130, 61, 64),
        (2, (False,) * 9, False, 129, 67, 67),
        (2, (False,) * 9, True, 3, 1, 1),
    ],
)  # fmt: skip
def test_elementwise_results_and_reductions(
    width: int, vectors: tuple[bool, ...], batch: bool, m: int, n: int, pitch: int
) -> None:
    run(SumsPlan(everything(batch), width, n % width == 0, vectors, batch), m, n, 3 if batch else 1, pitch)


@pytest.mark.slow
def test_pairs() -> None:
    """A function of pairs of adjacent columns stores a half-width result with its sums, and a full-width result."""
    make = Builder()
    x, half = make.load(Input("aux", "f16", order="n")), make.load(Input("aux", "f16", order="n", half=True))
    even, odd = make.pair(x)
    d = make.call("add", make.call("multiply", even, half), odd)
    whole = make.interleave(d, half)
    graph = make.graph(
        [Output(d, "f16"), Output(d, "f32", reduce="sum", axis="m"), Output(whole, "f16"),
         Output(d, "f32", reduce="sum", axis="n")]
    )  # fmt: skip
    for n, width, vector in ((272, 8, True), (38, 2, False)):
        plan, m = SumsPlan(graph, width, True, (vector, vector, vector, False, vector, False)), 133
        rng = np.random.default_rng(n)
        a, b = (rng.integers(-2, 3, (m, k)).astype(np.float16) for k in (n, n // 2))
        d, whole = np.full((m, n // 2), np.nan, np.float16), np.full((m, n), np.nan, np.float16)
        parts = [np.full(plan.parts(z, m, n), np.nan, np.float32) for z in graph.outputs if z.reduce]
        kernel = compile(elementwise_sums_text(plan), emit="base").kernel("launch")
        kernel(a, b, d, parts[0], whole, parts[1], m, n, 1, device="cpu", checks=CHECKS)
        want = a[:, ::2].astype(np.float64) * b + a[:, 1::2]
        assert (d == want).all() and (whole[:, ::2] == want).all() and (whole[:, 1::2] == b).all()
        assert (parts[0].sum(0) == want.sum(0)).all() and (parts[1].sum(0) == want.sum(1)).all()


def test_mismatched_arguments_are_rejected() -> None:
    make = Builder()
    x = make.load(Input("aux", "f32", order="n"))
    plan = SumsPlan(make.graph([Output(x, "f32"), Output(x, "f32", reduce="sum", axis="m")]), 2, True, (False,) * 3)
    kernel = compile(elementwise_sums_text(plan), emit="base").kernel("launch")
    a = np.zeros((130, 6), np.float32)
    with pytest.raises(LaunchError, match="operand 0, aux, must have the extents of the elements"):
        kernel(a[:, :4], a, np.zeros((2, 6), np.float32), 130, 6, 1, device="cpu")
    with pytest.raises(LaunchError, match="result 1 must have the extents of the elements, or of their parts"):
        kernel(a, a, np.zeros((1, 6), np.float32), 130, 6, 1, device="cpu")
