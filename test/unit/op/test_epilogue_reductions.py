"""Sums, maxima and minima over rows, columns and all elements, compared with the same function in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op import epilogue
from cute_dialect.op.epilogue import FakeTensor, relu, trace
from cute_dialect.op.errors import EpilogueError, LayoutError, UnsupportedError
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.candidates import menu
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.runtime.arrays import numpy_dtype


def everything(accum: Any, bias: Any) -> Any:
    x = relu(accum + bias)
    return {
        "D": x,
        "rows": epilogue.sum(x, -1), "columns": epilogue.sum(accum, -2), "all": epilogue.sum(x),
        "squares": epilogue.sum_squares(accum, 1), "most": epilogue.max(accum, -1), "least": epilogue.min(accum, 0),
        "top": epilogue.max(accum), "also": x + 1.0,
    }  # fmt: skip


def integers(*shape: int, dtype: Any = np.float16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).integers(-2, 3, shape).astype(dtype)


def check(found: Any, wanted: Any) -> None:
    assert list(found) == list(wanted)
    for name, want in wanted.items():
        assert found[name].shape == want.shape and (found[name] == want).all(), name
        assert found[name].dtype == np.float32 or name in ("D", "also")


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("m", "n"), [(40, 88), (136, 264), (72, 500)])
def test_all_reductions_in_one_epilogue(m: int, n: int, dtype: Any) -> None:
    a, b, bias = integers(m, 40), integers(40, n), integers(n, dtype=np.float32)
    if n % 8:
        a, b = a.astype(np.float32), b.astype(np.float32)  # Operands that TMA cannot read are copied.
    found = op.mm(a, b, epilogue=everything, args={"bias": bias}, dtype=dtype, device="cpu")
    check(found, everything(wide(a) @ wide(b), wide(bias)))


@pytest.mark.end_to_end
@pytest.mark.sample("False-False-tile0")
@pytest.mark.parametrize("tile", [(64, 96), (128, 128)])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
def test_kernels(monkeypatch: pytest.MonkeyPatch, swapped: bool, turned: bool, tile: tuple[int, int]) -> None:
    """The problem and its transpose, with row-major and column-major results."""

    def rows(accum: Any) -> Any:
        return {"D": accum, "r": epilogue.sum(accum, -1), "c": epilogue.max(accum, -2), "t": epilogue.min(accum)}

    def chosen(choice: Choice, e: Any, problem: Problem, costs: Any) -> Choice:
        found = menu(problem)
        wanted = (i for i in range(len(found)) if tuple(found.kernel(i)[:2]) == tile and found.swapped[i] == swapped)
        return gemm_dispatch.with_epilogue(found.choice(next(wanted)), e)

    monkeypatch.setattr(gemm_dispatch, "taking", chosen)
    gemm_dispatch.forget_plans()
    a, b = integers(136, 40), integers(40, 200)
    out = np.zeros((136, 200), np.float16, order="F" if turned else "C")
    check(op.mm(a, b, out, epilogue=rows, device="cpu"), rows(wide(a) @ wide(b)))
    gemm_dispatch.forget_plans()


@pytest.mark.slow
def test_rows_of_the_transposed_problem() -> None:
    """The chosen kernel may compute ``D^T``, where row reductions become column reductions."""

    def rows(accum: Any) -> Any:
        return {"D": accum + 1.0, "s": epilogue.sum(accum, -1)}

    a, b = integers(40, 72), integers(72, 136)
    assert op.explain(op.mm, a, b, epilogue=rows).choice.swapped
    found = op.mm(a, b, epilogue=rows, device="cpu", checks=("race", "sync", "oob", "uninit"))
    check(found, rows(wide(a) @ wide(b)))


@pytest.mark.slow
def test_batches_and_memory() -> None:
    a, b, bias = integers(3, 40, 72), integers(3, 72, 88), integers(88, dtype=np.float32)
    memory = {"rows": np.full((3, 40, 1), np.nan, np.float32), "all": np.full((3, 1, 1), np.nan, np.float32)}
    found = op.bmm(a, b, epilogue=batched, args={"bias": bias, **memory}, device="cpu")
    check(found, batched(wide(a) @ wide(b), wide(bias)))
    assert all(found[n] is x for n, x in memory.items())


def batched(accum: Any, bias: Any) -> Any:
    x = accum + bias
    return {"D": x, "rows": epilogue.sum(x, -1), "columns": epilogue.min(x, -2), "all": epilogue.sum(x)}


@pytest.mark.slow
def test_reductions_of_empty_input_and_nan() -> None:
    def f(accum: Any) -> Any:
        return {"D": accum, "s": epilogue.sum(accum, -1), "m": epilogue.max(accum, -1), "l": epilogue.min(accum, -2)}

    a, b = integers(40, 72), integers(72, 88)
    found = op.mm(a[:, :0], b[:0], epilogue=f, device="cpu")
    assert not found["D"].any() and not found["s"].any() and found["m"].shape == (40, 1)
    found = op.mm(a, b[:, :0], epilogue=f, device="cpu")
    assert (found["s"] == 0).all() and (found["m"] == -np.inf).all() and found["l"].shape == (1, 0)
    a[3, 5], a[4, 6] = np.nan, np.inf
    found = op.mm(a, np.abs(b) + np.float16(1), epilogue=f, device="cpu")
    assert np.isnan(found["m"][3]) and np.isnan(found["s"][3]) and np.isnan(found["l"]).all()
    assert found["m"][4] == np.inf and np.isfinite(found["m"][[0, 1, 2, 5]]).all()


def test_rows_not_readable_by_tma() -> None:
    a, b, bias = integers(39, 71), integers(71, 87), integers(87, dtype=np.float32)
    found = op.mm(a, b, epilogue=everything, args={"bias": bias}, device="cpu")
    check(found, everything(wide(a) @ wide(b), wide(bias)))


def test_invalid_arguments_are_rejected() -> None:
    accum = {"accum": FakeTensor("f32", (128, 256))}
    for f, said in (
        (lambda accum: accum - epilogue.sum(accum, -1), r"sum\(\) cannot be an operand"),
        (lambda accum: epilogue.max(accum, -1) * 2.0, r"max\(\) cannot be an operand"),
        (lambda accum: {"D": epilogue.sum(accum)}, "result D must be computed from the arguments, got Re"),
        (lambda accum: {"D": accum, "x": epilogue.sum(accum, 2)}, r"sum\(\) along dim=2 .* dim is -1, -2 or None"),
    ):
        with pytest.raises(EpilogueError, match=said):
            trace(f, accum)


def gated(accum: Any, bias: Any) -> Any:
    gate, up = epilogue.pairs(accum + bias)
    x = relu(gate) * up
    return {
        "D": x,
        "rows": epilogue.sum(x, -1), "columns": epilogue.sum(x, -2), "most": epilogue.max(x, -1),
        "all": epilogue.sum(x),
        "of_sums": epilogue.sum(accum, -1), "of_columns": epilogue.sum(accum, -2), "least": epilogue.min(accum),
        "gates": gate,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_reductions_combined_with_pairs(dtype: Any) -> None:
    """Reductions of a half-width result and of the accumulator, over several tiles."""
    a, b, bias = integers(72, 16), integers(16, 336), integers(336, dtype=np.float32)
    found = op.mm(a, b, epilogue=gated, args={"bias": bias}, dtype=dtype, device="cpu", checks=["race", "oob"])
    want = gated(wide(a) @ wide(b), wide(bias))
    assert list(found) == list(want)
    for name, wanted in want.items():
        assert found[name].shape == wanted.shape and (found[name] == wanted).all(), name
    if dtype == np.float32:
        plan: Any = op.Gemm(element="f16", layout="row", element_D="f32", element_C="void")
        plan.epilogue_visitor = gated
        planned = plan.run(a, b, visitor_args={"bias": bias}, device="cpu").results
        assert all((planned[name] == wanted).all() for name, wanted in want.items())
        return
    odd = op.mm(a[:9, :7].copy(), b[:7, :34].copy(), epilogue=gated, args={"bias": bias[:34]}, device="cpu")
    for name, wanted in gated(wide(a[:9, :7]) @ wide(b[:7, :34]), wide(bias[:34])).items():
        assert (odd[name] == wanted).all(), name


def softmax(accum: Any, bias: Any) -> Any:
    x = accum * 0.25 + bias
    power = epilogue.exp(x - epilogue.max(x, -1, whole_rows=True))
    D = power / epilogue.sum(power, -1, whole_rows=True)
    q = D * 100.0
    return D, q


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_whole_rows(dtype: Any) -> None:
    """A softmax over whole rows matches float64, and 8-bit results are rounded like D."""
    a, b, bias = integers(40, 48), integers(48, 72), integers(72, dtype=np.float32)
    want = softmax(wide(a) @ wide(b), wide(bias))
    e4m3 = numpy_dtype("f8E4M3FN")
    memory = {"q": np.full((40, 72), np.nan, e4m3)}
    d, q = op.mm(a, b, epilogue=softmax, args={"bias": bias, **memory}, dtype=dtype, device="cpu", checks=["uninit"])
    assert np.abs(d - want[0]).max() < 1e-3 and np.abs(d.astype(float).sum(-1) - 1.0).max() < 1e-2
    near = want[1].astype(e4m3).astype(float)
    assert (np.abs(q.astype(float) - near) <= 0.13 * near).all() and (q.astype(float) == near).mean() > 0.99
    if dtype == np.float16:  # Operands that TMA cannot read: numpy computes the epilogue.
        odd = op.mm(a[:, :7].copy(), b[:7], epilogue=softmax, args={"bias": bias, **memory}, device="cpu")[0]
        assert np.abs(odd - softmax(wide(a[:, :7]) @ wide(b[:7]), wide(bias))[0]).max() < 1e-3
        return
    wider = {"bias": np.zeros(320, np.float32)}
    with pytest.raises(
        UnsupportedError, match=("mm: whole_rows needs a tile with all columns, at most 256, but N is 320; reduce N")
    ):
        op.mm(a, integers(48, 320), epilogue=softmax, args=wider, device="cpu")
    with pytest.raises(LayoutError, match=r"mm: out has strides \(1, 40\), but whole_rows"):
        op.mm(a, b, np.zeros((72, 40), np.float16).T, epilogue=softmax, args={"bias": bias}, device="cpu")
    with pytest.raises(EpilogueError, match="whole_rows=True needs dim=-1, got dim=-2"):
        trace(lambda accum: accum - epilogue.max(accum, -2, whole_rows=True), {"accum": FakeTensor("f32", (8, 8))})
