"""Row functions on the interpreter, compared with torch, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.kernels.rows.sums import loss_parts  # noqa: E402
from cute_dialect.op.functions import row_gradients as row_grads  # noqa: E402

TOLERANCE = {torch.float32: {"atol": 2e-6, "rtol": 2e-5}, torch.bfloat16: {"atol": 2e-2, "rtol": 8e-3}}


def close(got: Any, wanted: Any) -> None:
    torch.testing.assert_close(got, wanted, **TOLERANCE[wanted.dtype])


def data(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


@pytest.mark.end_to_end
@pytest.mark.sample("7-torch.float32")
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("n", [7, 64, 333])
def test_results_match_torch(dtype: torch.dtype, n: int) -> None:
    """Results match torch for any leading shape."""
    x, w, b = data(2, 3, n, dtype=dtype), data(n, dtype=dtype), data(n + 1, dtype=dtype)[1:]
    close(op.softmax(x, device="cpu"), torch.softmax(x, -1))
    close(op.log_softmax(x, 2, device="cpu"), torch.log_softmax(x, -1))
    close(op.rms_norm(x, w, device="cpu"), F.rms_norm(x, (n,), w))
    close(op.rms_norm(x, eps=0.5, device="cpu"), F.rms_norm(x, (n,), None, 0.5))
    close(op.layer_norm(x, w, b, device="cpu"), F.layer_norm(x, (n,), w, b))
    close(op.sum(x, device="cpu"), x.sum(-1))
    close(op.mean(x, keepdim=True, device="cpu"), x.mean(-1, keepdim=True))
    assert torch.equal(op.max(x, device="cpu"), x.amax(-1))
    close(op.logsumexp(x, device="cpu"), x.logsumexp(-1))
    residual = data(2, 3, n, dtype=dtype).flip(0)
    found, total = op.layer_norm(x, w, b, residual=residual, device="cpu")
    assert torch.equal(total, x + residual)
    close(found, F.layer_norm(total, (n,), w, b))


@pytest.mark.sample("mean")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(reduction: str) -> None:
    x, target = data(4, 3, 50), torch.randint(0, 50, (4, 3), generator=torch.Generator().manual_seed(0))
    target[1, 1] = -100
    wanted = F.cross_entropy(x.view(12, 50), target.view(12), reduction=reduction)
    found = op.cross_entropy(x, target, reduction=reduction, device="cpu")
    close(found, wanted.view(4, 3) if reduction == "none" else wanted)
    nothing = op.cross_entropy(x, torch.full_like(target, -100), device="cpu")
    assert nothing.isnan()


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weights_of_classes_and_smoothing(reduction: str) -> None:
    """Class weights and label smoothing, separately and together, with gradients, for torch and numpy."""
    x, target = data(4, 3, 50), torch.randint(0, 50, (4, 3), generator=torch.Generator().manual_seed(0))
    target[1, 1] = -100
    w = data(50).abs()
    for weight, smoothing in ((w, 0.0), (None, 0.1), (w, 0.25)):
        ours, exact = x.clone().requires_grad_(), x.double().requires_grad_()
        found = op.cross_entropy(
            ours, target, weight, label_smoothing=smoothing, reduction=reduction, device="cpu"
        )  # fmt: skip
        wanted = F.cross_entropy(
            exact.view(12, 50), target.view(12), None if weight is None else weight.double(),
            label_smoothing=smoothing, reduction=reduction,
        ).view(found.shape)  # fmt: skip
        close(found, wanted.float())
        dy = torch.ones_like(found) if found.dim() == 0 else torch.linspace(-1, 1, 12).view(4, 3)
        found.backward(dy)
        wanted.backward(dy.double())
        close(ours.grad, exact.grad.float())
        of_numpy = op.cross_entropy(
            x.numpy(), target.numpy(), None if weight is None else weight.numpy(), label_smoothing=smoothing,
            reduction=reduction, device="cpu",
        )  # fmt: skip
        close(torch.as_tensor(of_numpy), found.detach())


def test_arrays_of_numpy() -> None:
    x = data(5, 40).numpy()
    for view in (x, x[:, 1:38], x[::2], x.T):
        found = op.softmax(view, device="cpu")
        assert isinstance(found, np.ndarray)
        close(torch.from_numpy(found), torch.softmax(torch.from_numpy(view.copy()), -1))


def test_strided_rows_are_not_copied() -> None:
    """Rows may have gaps, an offset, a stride of 0 or strided elements. The result may be in place or have gaps."""
    x = data(6, 50)
    for view in (x[:, :33], x[:, 1:34], x[0], x[:1].expand(4, 50), x.t(), x.view(2, 3, 50).transpose(0, 1)):
        close(op.softmax(view, device="cpu"), torch.softmax(view, -1))
    place = torch.full((6, 60), 7.0)
    out = place[:, 3:53]
    assert op.softmax(x, out=out, device="cpu") is out
    close(out, torch.softmax(x, -1))
    assert (place[:, :3] == 7).all() and (place[:, 53:] == 7).all()
    wanted = torch.softmax(x, -1)
    op.softmax(x, out=x, device="cpu")
    close(x, wanted)


def test_empty_rows() -> None:
    """Empty matrices and empty rows do not raise an error."""
    assert op.softmax(torch.empty(0, 5), device="cpu").shape == (0, 5)
    assert op.softmax(torch.empty(3, 0), device="cpu").shape == (3, 0)
    assert op.rms_norm(torch.empty(2, 0, 5), device="cpu").shape == (2, 0, 5)
    assert op.sum(torch.empty(0, 5), keepdim=True, device="cpu").shape == (0, 1)


X = data(3, 8)
CLASSES = torch.zeros(3, dtype=torch.int64)
ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: op.softmax(X, 0, device="cpu"), op.ShapeError,
     r"softmax: dim=0 is not the last dimension, 1; pass x.transpose\(0, -1\) and dim=-1"),
    (lambda: op.softmax(torch.tensor(1.0), device="cpu"), op.ShapeError,
     "softmax: x is a scalar; it must have rank 1 or more"),
    (lambda: op.softmax(X.double(), device="cpu"), op.DtypeError, "x has dtype f64; it must have one of f32"),
    (lambda: op.softmax([1.0], device="cpu"), op.DtypeError, "softmax: x: expected an array"),
    (lambda: op.softmax(X, out=X[:2], device="cpu"), op.ShapeError, r"out has shape \(2, 8\); it must have \(3, 8\)"),
    (lambda: op.softmax(X, out=torch.empty(8, 3).t(), device="cpu"), op.LayoutError,
     r"softmax: out has strides \(1, 3\); its rows must be contiguous, at a constant stride"),
    (lambda: op.softmax(X, out=X.half(), device="cpu"), op.DtypeError, "out has dtype f16; it must have f32, like x"),
    (lambda: op.rms_norm(X, X[0, :7], device="cpu"), op.ShapeError, r"weight has shape \(7,\); it must have \(8,\)"),
    (lambda: op.layer_norm(X, X[0], X[0].half(), device="cpu"), op.DtypeError, "bias has dtype f16; it must have f32"),
    (lambda: op.layer_norm(X, residual=X[:2], device="cpu"), op.ShapeError,
     r"layer_norm: residual has shape \(2, 8\); it must have \(3, 8\)"),
    (lambda: op.softmax(X), op.DeviceError, 'softmax: no GPU was found; pass device="cpu" to run on the interpreter'),
    (lambda: op.layer_norm(X, X[0].numpy(), device="cpu"), op.DeviceError,
     "layer_norm: weight is an array of numpy, but x is one of torch; pass arrays of one library"),
    (lambda: op.max(torch.empty(3, 0), device="cpu"), op.ShapeError, "max: rows have no elements"),
    (lambda: op.cross_entropy(X, torch.zeros(3), device="cpu"), op.DtypeError,
     "cross_entropy: target has dtype f32; it must have i64"),
    (lambda: op.cross_entropy(X, torch.zeros(2, dtype=torch.int64), device="cpu"), op.ShapeError,
     r"cross_entropy: target has shape \(2,\); it must have \(3,\)"),
    (lambda: op.cross_entropy(X, torch.zeros(3, dtype=torch.int64), reduction="all", device="cpu"),
     op.UnsupportedError, "cross_entropy: reduction='all' is not supported; use 'mean', 'sum' or 'none'"),
    (lambda: op.cross_entropy(X, CLASSES, X[0], reduction="all", device="cpu"), op.UnsupportedError,
     "cross_entropy: reduction='all' is not supported; use 'mean', 'sum' or 'none'"),
    (lambda: op.cross_entropy(X, CLASSES, X[0, :7], device="cpu"), op.ShapeError,
     r"cross_entropy: weight has shape \(7,\); it must have \(8,\)"),
    (lambda: op.cross_entropy(X, CLASSES, X[0].half(), device="cpu"), op.DtypeError,
     r"cross_entropy: weight has dtype f16; it must have f32 or that of x \(f32\)"),
    (lambda: op.transpose(X.clone().requires_grad_(), device="cpu"), op.UnsupportedError,
     "transpose: x requires a gradient"),
    (lambda: op.cross_entropy(X[:, :0], CLASSES, device="cpu"), op.ShapeError, "it must have at least one class"),
    (lambda: row_grads.cross_entropy_backward(X[:, 0], X, CLASSES, X[:, 0].double(), device="cpu"), op.DtypeError,
     "cross_entropy_backward: lse has dtype f64; it must have f32"),
    (lambda: row_grads.cross_entropy_backward(X[:, 0].half(), X, CLASSES, X[:, 0], device="cpu"), op.DtypeError,
     "cross_entropy_backward: g has dtype f16; it must have f32"),
    (lambda: op.explain(op.softmax, (3, 0)), op.ShapeError, r"softmax: x has shape \(3, 0\); it must not be empty"),
    (lambda: op.explain(op.softmax, X.double()), op.UnsupportedError, "x has dtype f64; it must have one of f32"),
    (lambda: op.cross_entropy(X, CLASSES, label_smoothing=1.5, device="cpu"), op.UnsupportedError,
     "cross_entropy: label_smoothing is 1.5; it must be between 0 and 1"),
    (lambda: op.cross_entropy(X, CLASSES, label_smoothing="a", device="cpu"), op.DtypeError,
     "cross_entropy: label_smoothing is 'a'; pass a number"),
    (lambda: op.rms_norm(X, eps="a", device="cpu"), op.DtypeError, "rms_norm: eps is 'a'; pass a number"),
    (lambda: op.layer_norm(X, X[0], eps="a", device="cpu"), op.DtypeError, "layer_norm: eps is 'a'; pass a number"),
]  # fmt: skip


@pytest.mark.parametrize("call, kind, message", ERRORS, ids=[e[2][:50] for e in ERRORS])
def test_mismatched_arguments_are_rejected(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_explain_and_prefetch(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """``explain`` reports the kernels that ``prefetch`` compiles, by length class and alignment."""
    found = op.explain(op.softmax, (8192, 50257), element="bf16")
    assert (found.rows, found.n, found.whole, found.bytes) == (8192, 50257, False, 4 * 8192 * 50257)
    assert 50257 in found.lengths and "in registers" in str(found) and "anywhere" in str(found)
    assert op.explain(op.softmax, X).whole and not op.explain(op.softmax, data(9)[1:]).whole
    assert op.explain(op.softmax, X[:, 1:5]).whole is False and op.explain(op.sum, X).lengths is None
    normed = op.explain(op.rms_norm, X, X[0], residual=X)
    assert normed.kernels[0].name == "rows-rmsnorm-wr-f32-2x1x64"
    for call, takes, kernels, moved in (
        (row_grads.softmax_backward, (), 1, 3), (row_grads.log_softmax_backward, (), 1, 3),
        (row_grads.rms_norm_backward, (X[0],), 2, 3), (row_grads.layer_norm_backward, (X[0],), 2, 3),
        (row_grads.layer_norm_backward, (), 1, 3), (row_grads.cross_entropy_backward, (), 1, 2),
    ):  # fmt: skip
        for n in (8, 5003):
            said = op.explain(call, data(3, n), *takes)
            assert len(said.kernels) == kernels and said.bytes == moved * 3 * n * 4
            assert said.lengths is None or n in said.lengths
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    coming = op.prefetch([op.explain(op.cross_entropy, X), op.explain(op.cross_entropy, X[:2])])
    assert len(coming) == 2
    coming.wait(300)
    said = op.explain(op.softmax, (2, 140_000), element="f32")
    assert [x.name for x in said.kernels] == [f"rows-streamed-{x}-softmax-f32" for x in ("statistics", "elements")]
    assert said.bytes == 2 * 2 * 140_000 * 4 and "2 vectors of 16 bytes per thread at once, nothing is kept" in str(
        said
    )
    said = op.explain(row_grads.layer_norm_backward, (2, 70_000), True, True)
    assert len(said.kernels) == 3 and said.lengths is None


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.int64], ids=str)
def test_transpose(dtype: torch.dtype) -> None:
    x = torch.arange(5 * 33).view(5, 33).to(dtype)
    for view in (x, x[:, 1:], x.t(), x[::2]):
        assert torch.equal(op.transpose(view, device="cpu"), view.t())
    for shape in ((131, 136), (136, 131), (77, 3), (3, 77), (64, 16), (40, 100)):
        x = torch.randn(shape).to(dtype)
        for view in (x, x.t(), x[1:], x[:, :2], x[:, 1:]):
            assert torch.equal(op.transpose(view, device="cpu"), view.t())
    with pytest.raises(op.ShapeError, match=r"transpose: x has shape \(100,\); it must have rank 2"):
        op.transpose(x[0], device="cpu")


@pytest.mark.sample("mean")
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses_of_many_rows_are_added_in_two_steps(reduction: str) -> None:
    """There are more losses than one block can add, and some rows are ignored."""
    rows = 20_000
    assert loss_parts(rows) > 1
    x = torch.arange(rows * 2, dtype=torch.float32).reshape(rows, 2).remainder(7) - 3
    target = torch.arange(rows) % 2
    target[::5] = -100
    found = op.cross_entropy(x, target, reduction=reduction, device="cpu")
    close(found, F.cross_entropy(x.double(), target, reduction=reduction).float())
