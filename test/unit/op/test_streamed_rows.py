"""Row functions and gradients of rows too long for registers and shared memory, compared with float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.execute import rows as kernels  # noqa: E402
from cute_dialect.op.problems.rows import LOSS, NUMBERS, RowProblem  # noqa: E402

CPU: dict[str, Any] = {"device": "cpu"}
LIMITS = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 2.0**-7}
SHAPES = {"x": 2, "r": 2, "w": 1, "b": 1}
"""Rank of each operand."""

FUNCTIONS: dict[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {
    "softmax": ("x", lambda x: op.softmax(x, **CPU), lambda x: torch.softmax(x, -1)),
    "log_softmax": ("x", lambda x: op.log_softmax(x, **CPU), lambda x: torch.log_softmax(x, -1)),
    "logsumexp": ("x", lambda x: op.logsumexp(x, **CPU), lambda x: torch.logsumexp(x, -1)),
    "max": ("x", lambda x: op.max(x, **CPU), lambda x: torch.amax(x, -1)),
    "rms_norm": ("xw", lambda x, w: op.rms_norm(x, w, 1e-5, **CPU), lambda x, w: F.rms_norm(x, w.shape, w, 1e-5)),
    "layer_norm": (
        "xwb", lambda x, w, b: op.layer_norm(x, w, b, **CPU), lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    ),
    "layer_norm of x": ("x", lambda x: op.layer_norm(x, **CPU), lambda x: F.layer_norm(x, x.shape[-1:])),
    "layer_norm of x with a bias": (
        "xb", lambda x, b: op.layer_norm(x, None, b, **CPU), lambda x, b: F.layer_norm(x, b.shape, None, b),
    ),
    "rms_norm with a residual": (
        "xrw", lambda x, r, w: op.rms_norm(x, w, 1e-5, residual=r, **CPU),
        lambda x, r, w: (F.rms_norm(x + r, w.shape, w, 1e-5), x + r),
    ),
    "layer_norm with a residual": (
        "xrwb", lambda x, r, w, b: op.layer_norm(x, w, b, residual=r, **CPU),
        lambda x, r, w, b: (F.layer_norm(x + r, w.shape, w, b), x + r),
    ),
}  # fmt: skip


def operands(names: str, rows: int, n: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Return random multiples of 1/8, whose sums are exact."""
    make = torch.Generator().manual_seed(n)
    shapes = [(rows, n) if SHAPES[name] == 2 else (n,) for name in names]
    return [((torch.randn(s, generator=make) * 8).round() / 8).to(dtype).requires_grad_() for s in shapes]


def close(got: torch.Tensor, wanted: torch.Tensor) -> None:
    limit = LIMITS[got.dtype] * (wanted.abs() + wanted.square().mean().sqrt() + 1e-3)
    share = float(((got.double() - wanted).abs() / limit).detach().max())
    assert share <= 1, share


def check(name: str, given: list[torch.Tensor]) -> None:
    """Compare the results and all gradients."""
    _, ours, peer = FUNCTIONS[name]
    doubles = [t.detach().double().requires_grad_() for t in given]
    found, wanted = (y if isinstance(y, tuple) else (y,) for y in (ours(*given), peer(*doubles)))
    for got, exact in zip(found, wanted, strict=True):
        close(got, exact)
    dy = [torch.randn(y.shape, generator=torch.Generator().manual_seed(7)).to(y.dtype) for y in found]
    ours_of = torch.autograd.grad(found, given, dy)
    for got, exact in zip(ours_of, torch.autograd.grad(wanted, doubles, [d.double() for d in dy]), strict=True):
        close(got, exact)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the streaming kernel for rows of any length."""

    def family(p: RowProblem) -> str:
        return "registers" if p.call in (*NUMBERS, LOSS) else "streamed"

    monkeypatch.setattr(RowProblem, "family", property(family))


@pytest.mark.usefixtures("short")
@pytest.mark.sample("rms_norm-40-torch.float32")
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("n", [1, 37, 40])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_short_rows(name: str, n: int, dtype: torch.dtype) -> None:
    """Aligned and misaligned rows, with at most one element per thread."""
    if n == 1 and "layer" in name:
        return  # The norm of one element and its gradient are 0.
    check(name, operands(FUNCTIONS[name][0], 3, n, dtype))


@pytest.mark.slow
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("n", [9001, 20000])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_several_slices(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks share a row, and a block processes several rows."""
    monkeypatch.setattr(kernels, "BLOCKS", 10)
    monkeypatch.setattr(kernels, "GRADIENT_BLOCKS", 10)
    check(name, operands(FUNCTIONS[name][0], 5, n, torch.float32))


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_rows_of_any_stride_and_in_place() -> None:
    memory = torch.randn(4, 103, generator=torch.Generator().manual_seed(1))
    for x in (memory[:, 1:42], memory[:, :40], memory.t()):
        close(op.layer_norm(x, **CPU), F.layer_norm(x.double(), x.shape[-1:]))
        close(op.softmax(x, **CPU), torch.softmax(x.double(), -1))
    x = (1000 + memory[:, :40]).contiguous()
    wanted = F.layer_norm(x.double(), (40,))
    assert op.layer_norm(x, out=x, **CPU) is x
    close(x, wanted)
    rows = memory[:2, :40].clone()
    rows[0, 3], rows[1] = float("inf"), -float("inf")
    for call, peer in ((op.softmax, torch.softmax), (op.log_softmax, torch.log_softmax)):
        assert torch.equal(torch.isnan(call(rows, **CPU)), torch.isnan(peer(rows, -1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "layer_norm with a residual", "rms_norm", "max"])
def test_long_rows(name: str) -> None:
    """Lengths just above the limits of the other kernels."""
    element, call = ("f32", "softmax" if name in ("softmax", "max") else name.split()[0])
    n = {"softmax": 131_080, "max": 131_080}.get(name, 65_544)
    backward = "d" if name == "softmax" else "g" if name == "max" else "w"
    gradient = RowProblem(f"{'max' if name == 'max' else call}_backward", element, 1, n, backward)
    assert gradient.family == "streamed"
    check(name, operands(FUNCTIONS[name][0], 2, n, torch.float32))
