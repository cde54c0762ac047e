"""``op.gated`` on the interpreter, compared with float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op

torch = pytest.importorskip("torch")
F = torch.nn.functional


def _gelu_tanh(x: Any) -> Any:
    return F.gelu(x, approximate="tanh")


EXACT: dict[str, Any] = {
    "silu": F.silu, "gelu": F.gelu, "gelu_tanh": _gelu_tanh, "relu": F.relu,
    "sigmoid": torch.sigmoid,
}  # fmt: skip
LIMITS = {torch.bfloat16: 8e-3, torch.float16: 1e-3, torch.float32: 1e-5}


def rows(*shape: int, dtype: Any = torch.bfloat16) -> Any:
    generator = torch.Generator().manual_seed(sum(shape))
    return (torch.randn(*shape, generator=generator) * 2).to(dtype)


@pytest.mark.sample("x0-silu", "x1-gelu")
@pytest.mark.parametrize("activation", EXACT)
@pytest.mark.parametrize(
    "x",
    [
        rows(3, 64), rows(2, 3, 34, dtype=torch.float16), rows(5, 22, dtype=torch.float32), rows(40, 6)[:, 1:5],
        rows(48, 5).t()[:, 3:11], rows(16), rows(1, 32).expand(3, 32),
    ],
)  # fmt: skip
def test_results_and_gradients(x: Any, activation: str) -> None:
    """Aligned and odd rows, ranks 1 to 3, gaps, unaligned addresses, transposed and broadcast arrays."""
    given = x.detach().requires_grad_()
    y = op.gated(given, activation, device="cpu")
    g = rows(*y.shape, dtype=x.dtype)
    (dx,) = torch.autograd.grad(y, given, g)
    wide = x.detach().double().requires_grad_()
    a, b = wide.chunk(2, -1)
    exact = EXACT[activation](a) * b
    (wanted,) = torch.autograd.grad(exact, wide, g.double())
    limit = LIMITS[x.dtype]
    torch.testing.assert_close(y.double(), exact, rtol=limit, atol=limit)
    torch.testing.assert_close(dx.double(), wanted, rtol=limit, atol=limit)
    assert torch.equal(op.gated(x, activation, device="cpu"), y)


def test_special_values() -> None:
    x = np.array([[-np.inf, np.inf, np.nan, 1, 2, 3, 1, np.nan]], np.float32)
    np.testing.assert_array_equal(op.gated(x, "relu", device="cpu"), [[0, np.inf, np.nan, np.nan]])
    for shape in ((0, 4), (3, 0)):
        assert op.gated(np.zeros(shape, np.float32), device="cpu").shape == (shape[0], shape[1] // 2)


@pytest.mark.slow
@pytest.mark.end_to_end
def test_operators() -> None:
    x = rows(3, 40, dtype=torch.float32).requires_grad_()
    op.gated(x, device="cpu")
    utils = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(torch.ops.cute.gated.default, (x, "silu"), test_utils=utils)
    dy = rows(3, 20, dtype=torch.float32)
    torch.library.opcheck(torch.ops.cute.gated_backward.default, (dy, x.detach(), "gelu"), test_utils=utils[:2])

    def activated(x: Any) -> Any:
        return op.gated(x, "gelu", device="cpu")

    compiled = torch.compile(activated, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(x), x, dy)
    (wanted,) = torch.autograd.grad(op.gated(x, "gelu", device="cpu"), x, dy)
    assert torch.equal(found, wanted)


def test_explanation() -> None:
    found = op.explain(op.gated, (64, 256), element="bf16", activation="gelu")
    assert str(found).startswith("gated gelu of 64 rows of 2 x 128 bf16\n")
    assert found.bytes == 64 * 128 * 6 and found.kernels is not None and found.kernels[0].name == found.kernel


X = np.zeros((3, 8), np.float32)
HALVES: dict[str, Any] = {"halfs": True}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: op.gated(X[:, 1:], device="cpu"), op.ShapeError, "rows of x have 7 elements; pass an even number"),
        (lambda: op.gated(X, "tanh", device="cpu"), op.UnsupportedError, "activation='tanh' is not supported; use one"),
        (lambda: op.gated(X, halves=False, device="cpu"), op.UnsupportedError, "halves=False is not supported; for"),
        (lambda: op.gated(X.astype(np.int8), device="cpu"), op.DtypeError, "x has dtype i8; it must have one of"),
        (lambda: op.gated(np.array(1, np.float32), device="cpu"), op.ShapeError, "x is a scalar"),
        (lambda: op.gated(X, device="cpu", **HALVES), op.ArgumentError, "no argument 'halfs'; did you mean 'halves'"),
        (lambda: op.explain(op.gated, (3, 7)), op.ShapeError, "pass rows of two halves"),
        (lambda: op.explain(op.gated, X.astype(ml_dtypes.float8_e5m2)), op.DtypeError, "x has dtype f8E5M2; it must"),
        (lambda: op.explain(op.gated, X, activation="tanh"), op.UnsupportedError, "activation='tanh' is not supported"),
        (lambda: op.explain(op.gated, (1 << 30, 32)), op.UnsupportedError, "exceed the limit of 1073741824 vectors"),
    ],
)
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
