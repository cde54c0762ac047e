"""Gradients of row functions and their torch operators on the interpreter, compared with torch in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import cute_dialect.op.operators.table  # noqa: E402, F401  (torch.ops.cute is there)
from cute_dialect import op  # noqa: E402
from cute_dialect.op.functions import row_gradients as row_grads  # noqa: E402

LIMITS = {torch.float32: 1e-5, torch.bfloat16: 2.0**-7}


def data(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape) + seed)).to(dtype).requires_grad_()


def exact(f: Callable[..., Any], tensors: list[torch.Tensor], dy: list[torch.Tensor]) -> list[torch.Tensor]:
    doubles = [t.detach().double().requires_grad_() for t in tensors]
    found = f(*doubles)
    found = list(found) if isinstance(found, tuple) else [found]
    return list(torch.autograd.grad(found, doubles, [d.double() for d in dy]))


def same(got: torch.Tensor, wanted: torch.Tensor) -> None:
    limit = LIMITS[got.dtype] * (wanted.abs() + wanted.square().mean().sqrt() + 1e-3)
    share = float(((got.double() - wanted).abs() / limit).max())
    assert share <= 1, share


def check(ours: Callable[..., Any], peer: Callable[..., Any], tensors: list[torch.Tensor]) -> None:
    """Compare all gradients."""
    found = ours(*tensors)
    found = list(found) if isinstance(found, tuple) else [found]
    dy = [torch.randn(y.shape, generator=torch.Generator().manual_seed(7)).to(y.dtype) for y in found]
    for got, wanted in zip(torch.autograd.grad(found, tensors, dy), exact(peer, tensors, dy), strict=True):
        same(got, wanted)


@pytest.mark.slow  # test_row_special_values.py has quick gradient tests of every function
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("n", [7, 64, 333])
def test_gradients(n: int, dtype: torch.dtype) -> None:
    x, w, b, r = (
        data(3, 2, n, dtype=dtype),
        data(n, dtype=dtype),
        data(n, dtype=dtype, seed=1),
        data(3, 2, n, dtype=dtype),
    )
    check(lambda x: op.softmax(x, device="cpu"), lambda x: torch.softmax(x, -1), [x])
    check(lambda x: op.log_softmax(x, device="cpu"), lambda x: torch.log_softmax(x, -1), [x])
    check(lambda x, w: op.rms_norm(x, w, 1e-5, device="cpu"), lambda x, w: F.rms_norm(x, (n,), w, 1e-5), [x, w])
    check(lambda x, w, b: op.layer_norm(x, w, b, device="cpu"), lambda x, w, b: F.layer_norm(x, (n,), w, b), [x, w, b])
    check(lambda x, b: op.layer_norm(x, None, b, device="cpu"), lambda x, b: F.layer_norm(x, (n,), None, b), [x, b])
    check(lambda x: op.layer_norm(x, device="cpu"), lambda x: F.layer_norm(x, (n,)), [x])
    if dtype == torch.float32:  # The sum is rounded before it is normalized.
        check(
            lambda x, r, w: op.rms_norm(x, w, 1e-5, residual=r, device="cpu"),
            lambda x, r, w: (F.rms_norm(x + r, (n,), w, 1e-5), x + r),
            [x, r, w],
        )
        check(
            lambda x, r, w, b: op.layer_norm(x, w, b, residual=r, device="cpu"),
            lambda x, r, w, b: (F.layer_norm(x + r, (n,), w, b), x + r),
            [x, r, w, b],
        )
        for call in ("sum", "mean", "logsumexp"):
            check(lambda x, c=call: getattr(op, c)(x, device="cpu"), lambda x, c=call: getattr(x, c)(-1), [x])
        check(lambda x: op.max(x, keepdim=True, device="cpu"), lambda x: x.amax(-1, keepdim=True), [x])


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
def test_gradients_of_cross_entropy(dtype: torch.dtype, reduction: str) -> None:
    x, target = data(6, 50, dtype=dtype), torch.randint(0, 50, (6,), generator=torch.Generator().manual_seed(0))
    target[4] = -100
    check(
        lambda x: op.cross_entropy(x, target, reduction=reduction, device="cpu"),
        lambda x: F.cross_entropy(x, target, reduction=reduction),
        [x],
    )


@pytest.mark.slow
def test_more_rows_than_groups_of_threads() -> None:
    """Thread groups and clusters loop over several rows."""
    x, w, b = data(37, 264), data(264), data(264, seed=1)
    check(
        lambda x, w, b: op.layer_norm(x, w, b, device="cpu"), lambda x, w, b: F.layer_norm(x, (264,), w, b), [x, w, b]
    )
    x, w = data(9, 8200, dtype=torch.bfloat16), data(8200, dtype=torch.bfloat16)
    check(lambda x, w: op.rms_norm(x, w, 1e-5, device="cpu"), lambda x, w: F.rms_norm(x, (8200,), w, 1e-5), [x, w])


@pytest.mark.slow
@pytest.mark.parametrize("n", [264, 70])
@pytest.mark.parametrize("rows", [37, 5])
def test_gradients_of_the_sum_with_a_residual(rows: int, n: int) -> None:
    """The kernel adds the gradient of the residual sum. Either result may be unused."""
    x, r, w, b = data(rows, n), data(rows, n, seed=2), data(n), data(n, seed=1)

    def ours(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Any:
        return op.layer_norm(x, w, b, residual=r, device="cpu")

    def peer(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Any:
        return F.layer_norm(x + r, (n,), w, b), x + r

    check(ours, peer, [x, r, w, b])
    check(lambda *t: ours(*t)[0], lambda *t: peer(*t)[0], [x, r, w, b])
    check(lambda x, r: ours(x, r, w.detach(), b.detach())[1], lambda x, r: x + r, [x, r])
    check(
        lambda x, r: op.rms_norm(x, eps=1e-5, residual=r, device="cpu"),
        lambda x, r: (F.rms_norm(x + r, (n,), None, 1e-5), x + r), [x, r],
    )  # fmt: skip


def test_numpy_and_no_rows() -> None:
    x, dy = data(5, 40).detach(), data(5, 40, seed=3).detach()
    found = row_grads.softmax_backward(dy.numpy(), torch.softmax(x, -1).numpy(), device="cpu")
    same(torch.from_numpy(found), exact(lambda x: torch.softmax(x, -1), [x], [dy])[0])
    dx, dw, db = row_grads.layer_norm_backward(dy[:0], x[:0], x[0], True, device="cpu")
    assert dx.shape == (0, 40) and (dw == 0).all() and (db == 0).all()


@pytest.mark.sample("amax-7-torch.float32")
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("n", [1, 7, 64, 1001])
@pytest.mark.parametrize("call", ["amax", "logsumexp"])
def test_gradients_of_a_number_per_row(call: str, n: int, dtype: torch.dtype) -> None:
    """Ties share a gradient, and rows of infinities and NaN match torch."""
    x = (data(9, n, dtype=dtype).detach() * 4).round() / 4
    x[3], x[4, n // 2], x[5, n // 3] = -torch.inf, torch.nan, torch.inf
    x.requires_grad_()
    dy = data(9, 1, dtype=dtype, seed=3).detach()
    for up in (dy[:, 0], dy[:1, 0].expand(9)):
        y = {"amax": op.max, "logsumexp": op.logsumexp}[call](x, device="cpu")
        (found,) = torch.autograd.grad(y, x, up)
        (wanted,) = exact(lambda x: getattr(torch, call)(x, -1), [x], [up])
        assert torch.equal(found.isnan(), wanted.isnan())
        same(found.nan_to_num(), wanted.nan_to_num())


@pytest.mark.slow
def test_a_gradient_with_zeros_for_steps() -> None:
    """``y.sum().backward()`` passes one number expanded with strides of 0 as the gradient."""
    x = data(3, 50)
    op.rms_norm(x, eps=1e-5, device="cpu").sum().backward()
    same(x.grad, exact(lambda x: F.rms_norm(x, (50,), None, 1e-5), [x], [torch.ones(3, 50)])[0])


X, W = data(3, 24), data(24)
OPERATORS: list[tuple[str, tuple[Any, ...]]] = [
    ("softmax", (X,)), ("log_softmax", (X,)), ("rms_norm", (X, W, 1e-5)), ("rms_norm", (X, None, 1e-5)),
    ("layer_norm", (X, W, W, 1e-5)), ("layer_norm", (X, None, W, 1e-5)), ("rms_norm_residual", (X, X, W, 1e-5)),
    ("layer_norm_residual", (X, X, W, None, 1e-5)), ("cross_entropy", (X, torch.tensor([1, 2, 3]), -100, "mean")),
    ("cross_entropy", (X, torch.tensor([1, 2, 3]), 2, "none")), ("row_number", ("logsumexp", X, False)),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name, args", OPERATORS, ids=lambda x: x if isinstance(x, str) else "")
def test_operators(name: str, args: tuple[Any, ...]) -> None:
    checks = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(getattr(torch.ops.cute, name), args, test_utils=checks)


def test_no_memory_for_a_result_with_a_gradient() -> None:
    with pytest.raises(op.UnsupportedError, match="softmax: out cannot be used when gradients are required"):
        op.softmax(X, out=torch.empty(3, 24), device="cpu")
    with torch.no_grad():
        assert op.rms_norm(X, W, 1e-5, out=torch.empty(3, 24), device="cpu").grad_fn is None


@pytest.mark.slow
def test_compiled_functions() -> None:
    """Row functions compile to one graph without breaks."""

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y, s = op.rms_norm(x, w, 1e-5, residual=x * 2, device="cpu")
        return op.softmax(y, device="cpu") + s + op.mean(x, keepdim=True, device="cpu")

    fast = torch.compile(f, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(fast(X, W), f(X, W))
    got, wanted = (torch.autograd.grad(g(X, W).square().sum(), (X, W)) for g in (fast, f))
    for a, b in zip(got, wanted):
        torch.testing.assert_close(a, b)
