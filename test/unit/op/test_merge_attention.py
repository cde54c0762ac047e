"""``op.merge_attention`` on the interpreter: results, gradients and errors."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.functions import attention as calls


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


@pytest.mark.sample("f32-24")
@pytest.mark.parametrize(("element", "size"), [("f32", 24), ("f16", 136)], ids=lambda x: str(x))
def test_merges_in_place(element: str, size: int) -> None:
    """The first result of row 0, both of row 1, and the second of row 2 have no keys."""
    outs, lses = parts_of(2, 9, size)
    lses[1, :, 2] = -np.inf
    outs = outs.astype({"f32": np.float32, "f16": np.float16}[element])
    want, want_lse = reference(outs, lses)
    found = op.merge_attention_(outs[0], lses[0], outs[1], lses[1], device="cpu", checks="all")
    assert found[0] is not None and found[0].base is outs and found[1].base is lses
    np.testing.assert_allclose(outs[0], want, rtol=1e-5 if element == "f32" else 2e-3, atol=1e-5)
    np.testing.assert_allclose(lses[0], want_lse, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_replayed_and_compiled_merges_in_place() -> None:
    torch = pytest.importorskip("torch")
    from launched_here import Seen, here

    outs, lses = (torch.tensor(x) for x in parts_of(2, 5, 40))
    other = outs[1].transpose(0, 1).contiguous().transpose(0, 1)  # is copied
    want, want_lse = reference(outs.numpy(), lses.numpy())
    with here(Seen()) as seen, patch.object(calls, "_MERGES_IN_PLACE", KnownCalls()):
        for _ in range(3):
            out, lse = outs[0].clone(), lses[0].clone()
            found = op.merge_attention_(out, lse, other, lses[1])
            assert found[0] is out and found[1] is lse
            np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
        assert (seen.first, seen.again) == (1, 2)
    out, lse = outs[0].clone(), lses[0].clone()
    torch.compile(op.merge_attention_, fullgraph=True, backend="aot_eager")(out, lse, other, lses[1], device="cpu")
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(lse, want_lse, rtol=0, atol=1e-5)


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


X, L = np.zeros((3, 8), np.float32), np.zeros(3, np.float32)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"lse": L[:2]}, op.ShapeError, r"out has shape \(3, 8\) and lse \(2,\); pass out and other"),
        ({"other": X[:2]}, op.ShapeError, r"out has shape \(3, 8\) and other \(2, 8\); pass out and other"),
        ({"other_lse": L.astype(np.float16)}, op.DtypeError, "other_lse has dtype f16; pass an array of f32"),
        ({"out": X[:, :4].copy(), "other": X[:, :4].copy()}, op.UnsupportedError, "head size 4 is not supported"),
        ({"out": np.zeros((3, 16), np.float32)[:, ::2]}, op.LayoutError, "out is not a contiguous array at a multiple"),
        ({"lse": np.zeros(6, np.float32)[::2]}, op.LayoutError, "lse is not a contiguous array"),
        ({"other": X}, op.LayoutError, "out shares memory with another array; pass separate arrays"),
    ],
)
def test_errors_in_place(given: dict[str, Any], error: type[op.OpError], words: str) -> None:
    arguments = {"out": X, "lse": L, "other": X.copy(), "other_lse": L.copy()}
    with pytest.raises(error, match=words):
        op.merge_attention_(**(arguments | given), device="cpu")


def test_gradients_in_place_are_refused() -> None:
    torch = pytest.importorskip("torch")
    out, lse = torch.zeros(3, 8), torch.zeros(3)
    with pytest.raises(op.UnsupportedError, match="gradients are not supported; use merge_attention, or torch"):
        op.merge_attention_(out, lse, torch.zeros(3, 8).requires_grad_(), torch.zeros(3), device="cpu")


@pytest.mark.slow
def test_parts_merge_in_any_order_and_grouping() -> None:
    """Keys are cut into 1 to 7 parts, some of them empty, which are merged at once, in turn, or as pairs."""
    rng = np.random.default_rng(6)
    q, k, v = (rng.standard_normal((1, 2, rows, 64)).astype(np.float32) for rows in (9, 60, 60))
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(2, 3) / 8
    powers = np.exp(scores)
    want, want_lse = powers @ v / powers.sum(-1, keepdims=True), np.log(powers.sum(-1))
    for parts in range(1, 8):
        cuts = np.sort(np.append(rng.integers(0, 61, parts - 1), [0, 60]))
        outs, lses = [], []
        for i, j in pairwise(cuts):
            total = powers[..., i:j].sum(-1)
            with np.errstate(divide="ignore"):
                lses.append(np.log(total).astype(np.float32))
            outs.append((powers[..., i:j] @ v[..., i:j, :] / np.maximum(total, 1e-300)[..., None]).astype(np.float32))
        order = rng.permutation(parts)
        found = op.merge_attention(np.stack([outs[i] for i in order]), np.stack([lses[i] for i in order]), device="cpu")
        one, log = outs[order[0]].copy(), lses[order[0]].copy()
        for i in order[1:]:
            op.merge_attention_(one, log, outs[i], lses[i], device="cpu")
        half = parts // 2
        groups = [g for g in (order[:half], order[half:]) if len(g)]
        merged = [op.merge_attention(np.stack([outs[i] for i in g]), np.stack([lses[i] for i in g]), device="cpu")
                  for g in groups]  # fmt: skip
        pairs = op.merge_attention(np.stack([x for x, _ in merged]), np.stack([x for _, x in merged]), device="cpu")
        for out, lse in (found, (one, log), pairs):
            assert np.abs(out - want).max() < 1e-6 and np.abs(lse - want_lse).max() < 1e-6
