"""``op.merge_attention`` on the interpreter: results, gradients and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op


def parts_of(parts: int, rows: int, size: int, seed: int = 0) -> tuple[Any, Any]:
    """Return random partial results; the first part of row 0, and all parts of row 1, have no keys."""
    rng = np.random.default_rng(seed)
    outs = rng.standard_normal((parts, 2, rows, size)).astype(np.float32)
    lses = rng.standard_normal((parts, 2, rows)).astype(np.float32) * 3
    lses[0, :, 0] = lses[:, :, 1] = -np.inf
    return outs, lses


def reference(outs: Any, lses: Any) -> tuple[Any, Any]:
    logs = lses.astype(np.float64)
    with np.errstate(divide="ignore"):
        lse = np.logaddexp.reduce(logs, 0)
    weights = np.exp(logs - np.where(lse == -np.inf, 0, lse))
    return (weights[..., None] * outs).sum(0), lse


@pytest.mark.sample("3")
@pytest.mark.parametrize("parts", [1, 3, 9])
def test_merge(parts: int) -> None:
    outs, lses = parts_of(parts, 5, 24)
    out, lse = op.merge_attention(outs, lses, device="cpu", checks="all")
    want, want_lse = reference(outs, lses)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(lse, want_lse, rtol=0, atol=1e-5)
    assert (out[:, 1] == 0).all() and (lse[:, 1] == -np.inf).all()


@pytest.mark.slow
def test_merge_of_16_bit_results() -> None:
    """Merging in two steps gives the result of one step."""
    outs, lses = parts_of(5, 4, 136)
    out, lse = op.merge_attention(outs.astype(np.float16), lses, device="cpu")
    assert out.dtype == np.float16
    np.testing.assert_allclose(out, reference(outs, lses)[0], rtol=0, atol=4e-3)
    first, rest = (
        op.merge_attention(outs[:2], lses[:2], device="cpu"),
        op.merge_attention(outs[2:], lses[2:], device="cpu"),
    )
    again, log = op.merge_attention(np.stack([rest[0], first[0]]), np.stack([rest[1], first[1]]), device="cpu")
    np.testing.assert_allclose(again, reference(outs, lses)[0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(log, lse, rtol=0, atol=1e-5)
    none, log = op.merge_attention(outs[:0], lses[:0], device="cpu")
    assert (none == 0).all() and (log == -np.inf).all()


@pytest.mark.slow
def test_gradients() -> None:
    torch = pytest.importorskip("torch")
    given = [torch.tensor(x).requires_grad_() for x in parts_of(3, 4, 8)]
    exact = [x.detach().double().requires_grad_() for x in given]
    grad, of_lse = torch.randn(2, 4, 8), torch.randn(2, 4)
    of_lse[:, 1] = 0
    out, lse = op.merge_attention(*given, device="cpu")
    found = torch.autograd.grad([out, lse], given, [grad, of_lse])
    total = exact[1].logsumexp(0)
    weights = torch.where(exact[1] == -torch.inf, 0.0, (exact[1] - total).exp())
    want = torch.autograd.grad(
        [(weights[..., None] * exact[0]).sum(0), total], exact, [grad.double(), of_lse.double()]
    )  # fmt: skip
    for x, y in zip(found, want, strict=True):
        torch.testing.assert_close(x[:, :, [0, 2, 3]].double(), y[:, :, [0, 2, 3]], rtol=1e-5, atol=1e-5)
        assert (x[:, :, 1] == 0).all()


@pytest.mark.parametrize(
    ("outs", "lses", "error", "words"),
    [
        (np.zeros((2, 3, 8), np.float32), np.zeros((3, 2), np.float32), op.ShapeError, r"\(P, …, D\) and \(P, …\)"),
        (np.zeros((2, 3, 8), np.float32), np.zeros((2, 3), np.float16), op.DtypeError, "lses has dtype f16; pass an"),
        (np.zeros((2, 3, 12), np.float32), np.zeros((2, 3), np.float32), op.UnsupportedError, "head size 12 is not"),
        (np.zeros((2, 3, 8), np.int32), np.zeros((2, 3), np.float32), op.DtypeError, "must have one of f32, f16, bf16"),
    ],
)
def test_errors(outs: Any, lses: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        op.merge_attention(outs, lses, device="cpu")
