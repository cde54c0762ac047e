"""Row functions and gradients of extreme rows, compared with torch: infinities, NaN, equal, huge and tiny numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from cute_dialect import op  # noqa: E402

INF, NAN = float("inf"), float("nan")
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
SQUARED = 1e6
"""Largest numbers in rows of functions that add squares, or recompute exponentials from a logsumexp."""

LENGTHS = (1, 2, 7, 64, 333)


def grid(n: int, dtype: torch.dtype, most: float = INF) -> torch.Tensor:
    """Return a matrix with one case per row. ``most`` is the largest finite number."""
    make = torch.Generator().manual_seed(n)
    normal = torch.randn(n, generator=make)
    large = min(torch.finfo(dtype).max / 4, most)
    rows = [normal, 1000 + normal, 1e-3 * normal, torch.zeros(n)]
    rows += [torch.full((n,), value) for value in (0.1, 1000.0, -3e4, INF, -INF, NAN, large, 1e-6)]
    for value in (INF, -INF, NAN, large, -large):
        for at in (0, n // 2, n - 1):
            rows.append(normal.clone())
            rows[-1][at] = value
    rows.append(torch.where(torch.arange(n) % 2 == 0, -INF, normal))
    rows.append(torch.where(torch.arange(n) % 2 == 0, large, -large))
    return torch.stack(rows).to(dtype)


def alike(got: torch.Tensor, f: Callable[..., Any], *given: torch.Tensor) -> None:
    """Compare with the function in float64, or with torch's result in the same type, since either may overflow."""
    dtype = given[0].dtype
    limit = {torch.float32: 1e-4, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]
    right = torch.zeros(got.shape, dtype=torch.bool)
    wanted = [f(*[t.double() for t in given]).to(got.dtype), f(*given)]
    for one in wanted:
        far = (got.double() - one.double()).abs() <= limit * (one.double().abs() + 1)
        right |= far | (got == one) | (torch.isnan(got) & torch.isnan(one))
    wrong = (~right).nonzero().tolist()
    assert not wrong, f"{wrong[:6]}: got {got[tuple(wrong[0])]}, not {[float(x[tuple(wrong[0])]) for x in wanted]}"


FORWARD: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax": (op.softmax, lambda x: torch.softmax(x, -1)),
    "log_softmax": (op.log_softmax, lambda x: torch.log_softmax(x, -1)),
    "logsumexp": (op.logsumexp, lambda x: torch.logsumexp(x, -1)),
    "mean": (op.mean, lambda x: x.mean(-1)),
    "sum": (op.sum, lambda x: x.sum(-1)),
    "max": (op.max, lambda x: x.amax(-1)),
    "rms_norm": (op.rms_norm, lambda x: F.rms_norm(x, x.shape[-1:], None, 2.0**-23)),
    "layer_norm": (op.layer_norm, lambda x: F.layer_norm(x, x.shape[-1:])),
}


@pytest.mark.sample(every=37)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name", FORWARD)
def test_forward(name: str, n: int, dtype: torch.dtype) -> None:
    ours, peer = FORWARD[name]
    x = grid(n, dtype, SQUARED if "norm" in name or name == "logsumexp" else INF)
    alike(ours(x, device="cpu"), peer, x)


@pytest.mark.sample(every=71)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "logsumexp", "mean", "sum", "max", "rms_norm", "layer_norm"]
)
def test_backward(name: str, n: int, dtype: torch.dtype) -> None:
    ours, peer = FORWARD[name]
    x = grid(n, dtype, SQUARED if "norm" in name or name == "logsumexp" else INF)
    dy = torch.randn(peer(x.float()).shape, generator=torch.Generator().manual_seed(1)).to(dtype)

    def gradient(f: Callable[..., Any], x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        x = x.detach().clone().requires_grad_()
        return torch.autograd.grad(f(x), x, dy)[0]

    got = gradient(lambda x: ours(x, device="cpu"), x, dy)
    alike(got, lambda x, dy: gradient(peer, x, dy), x, dy)


@pytest.mark.sample(every=29)
@pytest.mark.parametrize("at", ["first", "middle", "last"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", LENGTHS)
def test_cross_entropy(n: int, weighted: bool, smoothing: float, at: str) -> None:
    x = grid(n, torch.float32, SQUARED if smoothing else INF)
    target = {"first": 0, "middle": n // 2, "last": n - 1}[at]
    t = torch.full((x.shape[0],), target)
    t[1] = -100
    weight = torch.linspace(0.5, 2, n) if weighted else None
    dy = torch.linspace(-1, 1, x.shape[0])

    def loss(f: Callable[..., Any], x: torch.Tensor, w: Any, reduction: str, **more: Any) -> torch.Tensor:
        return f(x, t, w, reduction=reduction, label_smoothing=smoothing, **more)

    def peer(x: torch.Tensor) -> torch.Tensor:
        return loss(F.cross_entropy, x, None if weight is None else weight.to(x.dtype), "none")

    def gradient(f: Callable[..., Any], x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        x = x.detach().clone().requires_grad_()
        return torch.autograd.grad(f(x), x, dy)[0]

    def ours(x: torch.Tensor) -> torch.Tensor:
        return loss(op.cross_entropy, x, weight, "none", device="cpu")

    alike(ours(x), peer, x)
    # The gradient recomputes exponentials from logsumexp, which is inexact for large numbers.
    usual = ~((x.abs() > 1000) & torch.isfinite(x)).any(-1)
    got, wanted = gradient(ours, x, dy), gradient(peer, x, dy)
    assert torch.equal(torch.isnan(got), torch.isnan(wanted))
    same = torch.isclose(got, wanted, 1e-4, 1e-5, equal_nan=True)[usual]
    assert same.all(), (~same).nonzero().tolist()[:6]


def test_all_targets_ignored() -> None:
    x, t = grid(7, torch.float32), torch.full((29,), -100)
    assert torch.isnan(op.cross_entropy(x, t, device="cpu"))
    assert op.cross_entropy(x, t, reduction="sum", device="cpu") == 0


@pytest.mark.sample("333-torch.float32")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [5, 333, 4000, 4001])
def test_the_mean_of_equal_numbers_is_that_number(n: int, dtype: torch.dtype) -> None:
    values = torch.tensor([0.1, -7.3, 1000.0, 1e-3, 3e4]).to(dtype)
    x = values[:, None].expand(-1, n).contiguous()
    assert torch.equal(op.mean(x, device="cpu"), values)
    assert torch.count_nonzero(op.layer_norm(x, device="cpu")) == 0
    bias = torch.randn(n).to(dtype)
    assert torch.equal(op.layer_norm(x, None, bias, 1e-12, device="cpu"), bias.expand(5, -1))
    sums, _ = op.layer_norm(x, residual=x, device="cpu")
    assert torch.count_nonzero(sums) == 0


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("base", [0.0, 1000.0])
@pytest.mark.parametrize("n", [1, 2, 7, 100, 4001])
def test_f32_means_are_accurate_to_one_rounding(n: int, base: float) -> None:
    """Elements of both signs cancel, so a bound relative to the elements would be too loose."""
    x = base + torch.randn(200 if n < 100 else 5, n, generator=torch.Generator().manual_seed(n))
    wanted = x.double().mean(-1)
    # Short rows are summed in f32 and corrected by the deviations from the mean.
    slack = x.abs().amax(-1).double() / 2 if n < 100 else torch.zeros(())
    assert bool(((op.mean(x, device="cpu") - wanted).abs() <= 2.0**-23 * (wanted.abs() + slack)).all())


@pytest.mark.sample("2-1000.0")
@pytest.mark.parametrize("base", [0.0, 1000.0])
@pytest.mark.parametrize("n", [2, 3, 7, 333])
def test_f32_layer_norm_does_not_round_the_mean(n: int, base: float) -> None:
    """Elements of short rows may be much closer to each other than to 0, so the mean must not be rounded."""
    x = base + torch.randn(500 if n < 10 else 5, n, generator=torch.Generator().manual_seed(n))
    wanted = F.layer_norm(x.double(), (n,))
    assert bool(((op.layer_norm(x, device="cpu") - wanted).abs() <= 1e-6 * (wanted.abs() + 1)).all())
    x.requires_grad_()
    dy = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    (got,) = torch.autograd.grad(op.layer_norm(x, device="cpu"), x, dy)
    double = x.detach().double().requires_grad_()
    (dx,) = torch.autograd.grad(F.layer_norm(double, (n,)), double, dy.double())
    rstd = (x.double().var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
    assert bool(((got - dx).abs() <= 2e-6 * rstd * (dy.abs().amax(-1, keepdim=True) + 1)).all())


@pytest.mark.slow
@pytest.mark.sample("64")
@pytest.mark.parametrize("n", [2, 7, 64, 333])
def test_norm_of_rows_with_infinite_variance(n: int) -> None:
    """The variance is infinite, so the norm and its gradient are 0."""
    normal = torch.randn(n, generator=torch.Generator().manual_seed(n))
    x = torch.stack([normal, *[torch.where(torch.arange(n) == at, 1e36, normal) for at in (0, n // 2, n - 1)]])
    x.requires_grad_()
    y = op.layer_norm(x, device="cpu")
    torch.testing.assert_close(y[:1], F.layer_norm(x[:1], (n,)), atol=1e-5, rtol=1e-5)
    assert (y[1:] == 0).all()
    (dx,) = torch.autograd.grad(y, x, torch.linspace(-1, 1, n).expand(4, n).contiguous())
    assert (dx[1:] == 0).all() and torch.isfinite(dx[0]).all()
