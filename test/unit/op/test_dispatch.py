"""``op.dispatch`` and ``op.combine`` on the interpreter, compared with a stable sort and with float64."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.rows import dispatch as kernels
from cute_dialect.op.execute import routing

torch = pytest.importorskip("torch")


def numbers(tokens: int, k: int, experts: int, low: int = 0) -> Any:
    """Return numbers of experts, of which those below 0 are dropped."""
    return np.random.default_rng([tokens, k, experts]).integers(low, experts, (tokens, k)).astype(np.int32)


def exact_order(experts: Any, count: int) -> tuple[Any, Any]:
    """Return the end of the rows of each expert, and the row of each pair."""
    keys = np.where((experts >= 0) & (experts < count), experts, count).ravel()
    order = np.empty(keys.size, np.int64)
    order[np.argsort(keys, kind="stable")] = np.arange(keys.size)
    ends = np.cumsum(np.bincount(keys, minlength=count + 1))[:count]
    return ends, np.where(keys < count, order, -1 - order).reshape(experts.shape)


def exact_rows(x: Any, order: Any) -> Any:
    rows = np.zeros((order.size, x.shape[-1]), x.dtype)
    for j in range(order.shape[-1]):
        is_there = order[:, j] >= 0
        rows[order[is_there, j]] = x[is_there]
    return rows


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize(
    "tokens, columns, k, experts, low",
    [(9, 24, 2, 4, 0), (5, 13, 3, 4, -1), (40, 16, 1, 1, 0), (30, 8, 9, 12, -3), (1, 1, 1, 3, 0), (3, 4, 2, 512, 0)],
)
def test_dispatch(tokens: int, columns: int, k: int, experts: int, low: int, dtype: Any) -> None:
    """Odd rows, dropped pairs, one expert, and experts without rows."""
    x = np.random.default_rng(columns).standard_normal((tokens, columns)).astype(np.float32).astype(dtype)
    chosen = numbers(tokens, k, experts, low)
    ends, order = exact_order(chosen, experts)
    for given in (chosen, chosen.astype(np.int64)):
        rows, offs, found = op.dispatch(x, given, experts, device="cpu", checks="all")
        np.testing.assert_array_equal(offs, ends)
        np.testing.assert_array_equal(found, order)
        np.testing.assert_array_equal(rows.astype(np.float32), exact_rows(x, order).astype(np.float32))
    assert rows.dtype == dtype and offs.dtype == found.dtype == np.int32


@pytest.mark.end_to_end
def test_the_sort_of_several_blocks() -> None:
    """More pairs than one block sorts, in a number that is not a multiple of a warp."""
    tokens = kernels.PAIRS * 8 // 3 + 7
    chosen = numbers(tokens, 3, 70, -2)
    ends, order = exact_order(chosen, 70)
    rows, offs, found = op.dispatch(np.arange(tokens, dtype=np.float32)[:, None], chosen, 70, device="cpu")
    np.testing.assert_array_equal(offs, ends)
    np.testing.assert_array_equal(found, order)
    np.testing.assert_array_equal(rows[ends[0] : ends[1], 0], np.nonzero(chosen == 1)[0])


@pytest.mark.parametrize("schedule", ["adversarial", "reverse", "random"])
def test_schedules_of_the_sort(schedule: str) -> None:
    """Two blocks, of which the second one has one pair."""
    pairs, experts = kernels.PAIRS + 1, 6
    chosen, run = numbers(pairs, 1, experts, -1), {"schedule": schedule, "seed": 3, "checks": ("race", "uninit")}
    c = kernels.SortConfig("i32", experts)
    counts, offs, order = (np.full(shape, -9, np.int32) for shape in ((2, experts + 1), experts, pairs))
    how: dict[str, Any] = {"device": "cpu", **run}
    routing.count_kernel(c).compiled(cpu=True).kernel("launch_count")(chosen[:, 0], counts, 1, **how)
    routing.sort_kernel(c).compiled(cpu=True).kernel("launch_sort")(chosen[:, 0], counts, offs, order, 1, **how)
    ends, wanted = exact_order(chosen, experts)
    np.testing.assert_array_equal(offs, ends)
    np.testing.assert_array_equal(order, wanted[:, 0])


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("has_weights", [True, False])
@pytest.mark.parametrize("dtype, limit", [(torch.float32, 1e-6), (torch.bfloat16, 8e-3), (torch.float16, 1e-3)])
@pytest.mark.parametrize("tokens, columns, k, low", [(5, 24, 2, 0), (3, 13, 3, -1), (2, 600, 11, -2), (4, 8, 1, 0)])
def test_combine_and_gradients(tokens: int, columns: int, k: int, low: int, dtype: Any, limit: float, has_weights: Any):
    torch.manual_seed(columns)
    order = torch.tensor(exact_order(numbers(tokens, k, 5, low), 5)[1]).int()
    y = torch.randn(tokens * k, columns).to(dtype)
    # Rows of dropped pairs are not read.
    y[(-1 - order[order < 0]).long()] = float("nan")
    y.requires_grad_()
    weights = torch.randn(tokens, k).requires_grad_() if has_weights else None
    out = op.combine(y, order, weights, device="cpu")
    with torch.no_grad():
        assert torch.equal(out, op.combine(y, order, weights, device="cpu", checks="all"))
    wide, factors = y.detach().double().requires_grad_(), None if weights is None else weights.detach().double()
    factors = torch.ones(tokens, k).double() if factors is None else factors
    factors.requires_grad_()
    places = order.long().clamp(min=0)
    parts = torch.where((order >= 0)[..., None], wide[places] * factors[..., None], 0.0)
    exact = parts.sum(1)
    torch.testing.assert_close(out.double(), exact, rtol=limit, atol=limit)
    g = torch.randn(out.shape).to(dtype)
    inputs = (y,) if weights is None else (y, weights)
    found = torch.autograd.grad(out, inputs, g)
    where = torch.where(torch.isnan(wide), 0.0, wide).detach().requires_grad_()
    parts = torch.where((order >= 0)[..., None], where[places] * factors[..., None], 0.0)
    wanted = torch.autograd.grad(parts.sum(1), (where, factors), g.double())
    for one, other in zip(found, wanted):
        torch.testing.assert_close(one.double(), other, rtol=limit, atol=max(limit, 1e-5))
    assert out.dtype == y.dtype and out.shape == (tokens, columns)


def test_gradient_of_dispatch() -> None:
    """A token's gradient is the sum of those of its rows, without the dropped ones."""
    x, chosen = torch.randn(2, 3, 12, requires_grad=True), torch.tensor(numbers(6, 3, 4, -1)).reshape(2, 3, 3)
    rows, _, order = op.dispatch(x, chosen, 4, device="cpu")
    g = torch.randn(rows.shape)
    (dx,) = torch.autograd.grad(rows, x, g)
    wanted = torch.where((order >= 0)[..., None], g[order.long().clamp(min=0)], 0.0).sum(2)
    torch.testing.assert_close(dx, wanted)


def test_empty_arrays() -> None:
    for tokens, k, columns in ((0, 2, 8), (3, 2, 0)):
        x, chosen = np.zeros((tokens, columns), np.float32), np.ones((tokens, k), np.int32)
        rows, offs, order = op.dispatch(x, chosen, 3, device="cpu")
        assert rows.shape == (tokens * k, columns) and list(offs) == [0, tokens * k, tokens * k]
        assert op.combine(rows, order, np.ones((tokens, k), np.float32), device="cpu").shape == x.shape


@pytest.mark.slow
@pytest.mark.end_to_end
def test_operators() -> None:
    x, chosen = torch.randn(4, 12, requires_grad=True), torch.tensor(numbers(4, 2, 3))
    weights = torch.rand(4, 2, requires_grad=True)
    rows, _, order = op.dispatch(x, chosen, 3, device="cpu")
    utils = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(torch.ops.cute.dispatch.default, (x, chosen, 3), test_utils=utils)
    y = rows.detach().requires_grad_()
    torch.library.opcheck(torch.ops.cute.combine.default, (y, order, weights), test_utils=utils)
    torch.library.opcheck(torch.ops.cute.combine.default, (y, order, None), test_utils=utils)
    given = (torch.randn(4, 12), rows.detach(), order, weights.detach())
    torch.library.opcheck(torch.ops.cute.combine_backward.default, given, test_utils=utils[:2])

    def layer(x: Any, weights: Any) -> Any:
        rows, _, order = op.dispatch(x, chosen, 3, device="cpu")
        return op.combine(rows * 2, order, weights, device="cpu").square().sum()

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    found = torch.autograd.grad(compiled(x, weights), (x, weights))
    combined = 2 * x.double() * weights.double().sum(1, keepdim=True)
    for one, other in zip(found, torch.autograd.grad(combined.square().sum(), (x, weights))):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_explanations() -> None:
    found = op.explain(op.dispatch, (4096, 1024), (4096, 8), 64, element="bf16")
    assert found.kernels is not None and len(found.kernels) == 3
    assert found.bytes == 4096 * 1024 * 2 * 9 + 4096 * 8 * 12
    assert str(found).startswith("dispatch of 4096 x 1024 bf16, 8 rows per token\n")
    assert "before    dispatch-count-i32-64\n" in str(found) + "\n"
    few = op.explain(op.dispatch, np.zeros((4, 8), np.float32), np.zeros((4, 2), np.int64), num_experts=3)
    assert few.kernels is not None and [k.name for k in few.kernels] == ["dispatch-sort-i64-3-alone", few.kernel]
    back = op.explain(op.combine, (32768, 1024), (4096, 8), (4096, 8), element="f32")
    assert back.kernel == "dispatch-f32-8-weights-combine" and back.bytes == 4096 * 1024 * 4 * 9 + 4096 * 8 * 8


X, PAIRS = np.zeros((3, 8), np.float32), np.zeros((3, 2), np.int32)
Y, ONES = np.zeros((6, 8), np.float32), np.ones((3, 2), np.float32)
MORE: dict[str, Any] = {"n": 2}
dispatch, combine = partial(op.dispatch, device="cpu"), partial(op.combine, device="cpu")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: dispatch(X, PAIRS), op.ArgumentError, r"dispatch\(\) needs an argument 'num_experts'; required"),
        (lambda: dispatch(X, PAIRS, 0), op.ArgumentError, "num_experts is 0; pass 1 to 512"),
        (lambda: dispatch(X, PAIRS[1:], 2), op.ShapeError, r"experts has shape \(2, 2\); it must have \(3, k\)"),
        (lambda: dispatch(X, PAIRS.astype("f4"), 2), op.DtypeError, "experts has dtype f32; it must have i32 or i64"),
        (lambda: dispatch(X.astype("f8"), PAIRS, 2), op.DtypeError, "x has dtype f64; it must have one of bf16, f16"),
        (lambda: dispatch(X, np.zeros((3, 33), "i4"), 2), op.ShapeError, "33 rows per token; 1 to 32 are supported"),
        (lambda: dispatch(X, PAIRS, 2, **MORE), op.ArgumentError, r"dispatch\(\) has no argument 'n'"),
        (lambda: combine(Y[1:], PAIRS, ONES), op.ShapeError, r"y has shape \(5, 8\); it must have \(6, 8\)"),
        (lambda: combine(Y, PAIRS.astype("i8"), ONES), op.DtypeError, "order has dtype i64; it must have i32"),
        (lambda: combine(Y, PAIRS, ONES[1:]), op.ShapeError, r"weights has shape \(2, 2\); it must have \(3, 2\)"),
        (lambda: combine(Y, PAIRS, ONES.astype("f2")), op.DtypeError, "weights has dtype f16; it must have f32"),
        (lambda: combine(Y.astype("i1"), PAIRS), op.DtypeError, "y has dtype i8; it must have one of bf16, f16, f32"),
        (lambda: combine(Y, np.array(1, "i4")), op.ShapeError, "order is a scalar; pass the order that dispatch"),
        (lambda: combine(Y, PAIRS, **MORE), op.ArgumentError, r"combine\(\) has no argument 'n'"),
        (lambda: op.explain(op.dispatch, X, PAIRS[1:], 2), op.ShapeError, "experts has shape"),
        (lambda: op.explain(op.dispatch, X), op.ShapeError, "explain needs experts; pass an array or its shape"),
        (lambda: op.explain(op.combine, Y[1:], PAIRS), op.ShapeError, "y has shape"),
        (lambda: op.explain(op.combine, (1 << 31, 8), (1 << 30, 2)), op.UnsupportedError, "exceed 2.31 vectors"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_number_of_experts_of_numpy() -> None:
    found, wanted = (dispatch(X, PAIRS, e) for e in (np.int64(8), 8))
    assert all(np.array_equal(x, y) for x, y in zip(found, wanted, strict=True))
