"""Row functions called with torch's signatures, compared with torch in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from cute_dialect import op  # noqa: E402

torch.manual_seed(3)
X = torch.randn(3, 5, 7)
W, B, R = torch.randn(7), torch.randn(7), torch.randn(3, 5, 7)
CPU: dict[str, Any] = {"device": "cpu"}


def close(found: Any, wanted: Any) -> None:
    torch.testing.assert_close(found.double(), wanted.double(), rtol=2e-5, atol=2e-6)


def layer(x: Any, shape: tuple[int, ...], w: Any = None, b: Any = None, eps: float = 1e-5) -> Any:
    return F.layer_norm(x.double(), shape, None if w is None else w.double(), None if b is None else b.double(), eps)


def rms(x: Any, shape: tuple[int, ...], w: Any = None, eps: float = 2.0**-23) -> Any:
    return F.rms_norm(x.double(), shape, None if w is None else w.double(), eps)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [7, (7,), [7], torch.Size([7])])
def test_norms_take_torchs_normalized_shape(shape: Any) -> None:
    close(op.layer_norm(X, shape, W, B, **CPU), layer(X, (7,), W, B))
    close(op.layer_norm(X, shape, W, B, 0.5, **CPU), layer(X, (7,), W, B, 0.5))
    close(op.layer_norm(X, shape, bias=B, eps=0.5, **CPU), layer(X, (7,), None, B, 0.5))
    close(op.layer_norm(X, normalized_shape=shape, weight=W, **CPU), layer(X, (7,), W))
    close(op.layer_norm(X, W, B, normalized_shape=shape, **CPU), layer(X, (7,), W, B))
    close(op.rms_norm(X, shape, W, 0.25, **CPU), rms(X, (7,), W, 0.25))
    close(op.rms_norm(X, shape, eps=0.25, **CPU), rms(X, (7,), None, 0.25))
    close(op.rms_norm(X, shape, **CPU), rms(X, (7,)))


def test_norms_keep_the_order_without_a_shape() -> None:
    close(op.layer_norm(X, W, B, **CPU), layer(X, (7,), W, B))
    close(op.layer_norm(X, None, B, **CPU), layer(X, (7,), None, B))
    close(op.layer_norm(X, W, bias=B, **CPU), layer(X, (7,), W, B))
    close(op.layer_norm(X, W, B, 0.5, **CPU), layer(X, (7,), W, B, 0.5))
    close(op.layer_norm(X, bias=B, **CPU), layer(X, (7,), None, B))
    close(op.rms_norm(X, W, 0.5, **CPU), rms(X, (7,), W, 0.5))
    close(op.rms_norm(X, None, 0.5, **CPU), rms(X, (7,), None, 0.5))


@pytest.mark.slow
def test_norms_over_several_dimensions() -> None:
    w, b = torch.randn(5, 7), torch.randn(5, 7)
    close(op.layer_norm(X, (5, 7), w, b, **CPU), layer(X, (5, 7), w, b))
    close(op.rms_norm(X, (3, 5, 7), **CPU), rms(X, (3, 5, 7)))
    out = torch.full((3, 5, 7), math.nan)
    assert op.layer_norm(X, (5, 7), w, b, out=out, **CPU) is out
    close(out, layer(X, (5, 7), w, b))
    y, s = op.rms_norm(X, (5, 7), w, residual=R, **CPU)
    assert torch.equal(s, X + R)
    close(y, rms(X + R, (5, 7), w))
    assert op.layer_norm(X.numpy(), (5, 7), w.numpy(), **CPU).shape == (3, 5, 7)


@pytest.mark.slow
def test_norms_over_several_dimensions_have_gradients() -> None:
    given = [X, torch.randn(5, 7), torch.randn(5, 7)]
    ours = [t.clone().requires_grad_() for t in given]
    exact = [t.double().requires_grad_() for t in given]
    op.layer_norm(ours[0], (5, 7), *ours[1:], **CPU).square().sum().backward()
    F.layer_norm(exact[0], (5, 7), *exact[1:]).square().sum().backward()
    for t, e in zip(ours, exact):
        torch.testing.assert_close(t.grad.double(), e.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_reductions_take_torchs_positions() -> None:
    functions: list[tuple[Any, Any]] = [
        (op.sum, torch.sum), (op.mean, torch.mean), (op.max, torch.amax), (op.logsumexp, torch.logsumexp),
    ]  # fmt: skip
    for ours, theirs in functions:
        close(ours(X, -1, True, **CPU), theirs(X.double(), -1, True))
        close(ours(X, (2,), **CPU), theirs(X.double(), (2,)))
    close(op.softmax(X, [-1], **CPU), torch.softmax(X.double(), -1))


@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_of_rows_without_elements(keepdim: bool) -> None:
    empty = torch.empty(3, 0, requires_grad=True)
    for ours, theirs in ((op.sum, torch.sum), (op.mean, torch.mean), (op.logsumexp, torch.logsumexp)):
        found = ours(empty, -1, keepdim, **CPU)
        assert torch.equal(torch.nan_to_num(found, 7.0), torch.nan_to_num(theirs(empty, -1, keepdim), 7.0))
        found.sum().backward()
        assert empty.grad is not None and empty.grad.shape == (3, 0)
    assert op.sum(np.empty((2, 0), np.float16), **CPU).tolist() == [0.0, 0.0]
    assert op.sum(torch.empty(0, 4), **CPU).shape == (0,)


REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: op.layer_norm(X, (8,), W, B, **CPU), op.ShapeError, r"is \(8,\), but x has shape \(3, 5, 7\); .* \(7,\)"),
    (lambda: op.layer_norm(X, (), W, **CPU), op.ShapeError, r"normalized_shape is \(\)"),
    (lambda: op.layer_norm(X, (1, 3, 5, 7), **CPU), op.ShapeError, r"normalized_shape is \(1, 3, 5, 7\)"),
    (lambda: op.layer_norm(X, (5, 7), W, **CPU), op.ShapeError, r"weight has shape \(7,\); .* is \(5, 7\)"),
    (lambda: op.layer_norm(X, (7,), W, B, 1e-5, 3, **CPU), op.ArgumentError, r"positional arguments after x \(5\)"),
    (lambda: op.rms_norm(X, (7,), W, weight=W, **CPU), op.ArgumentError, "rms_norm: weight is given twice"),
    (lambda: op.layer_norm(X, W, weight=W, **CPU), op.ArgumentError, "layer_norm: weight is given twice"),
    (lambda: op.layer_norm(X, 7, normalized_shape=7, **CPU), op.ArgumentError, "normalized_shape is given twice"),
    (lambda: op.layer_norm(X, normalized_shape="7", **CPU), op.ArgumentError, "normalized_shape is '7'; pass an int"),
    (lambda: op.rms_norm(X, (5, 7), out=torch.empty(3, 7, 5).mT, **CPU), op.LayoutError, "out has strides"),
    (lambda: op.sum(X, (0, 1), **CPU), op.ArgumentError, r"sum: dim is \(0, 1\); pass one dimension"),
    (lambda: op.softmax(X, None, **CPU), op.ArgumentError, "softmax: dim is None"),
    (lambda: op.softmax(X, 0, **CPU), op.ShapeError, "dim=0 is not the last dimension"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=[case[2][:40] for case in REFUSED])
def test_refused(case: tuple[Callable[[], object], type[Exception], str]) -> None:
    do, kind, message = case
    with pytest.raises(kind, match=message):
        do()
