"""Attention masks split into calls of torch's gradient kernels, which align windows with the last key."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from attention_gradients import drawn, exact, inputs  # noqa: E402

from cute_dialect.op.operators import attention as gradients  # noqa: E402
from cute_dialect.op.operators.attention import pieces  # noqa: E402
from cute_dialect.op.operators.attention_matmuls import Mask, Saved, attention_of  # noqa: E402


def seen_by_kernel(queries: int, keys: int, left: int, right: int, is_causal: bool = False) -> Any:
    """Return the visible pairs of torch's flash-attention kernel, which adjusts the window bounds."""
    if is_causal:
        right = 0
    left = -1 if left >= keys else left
    right = -1 if right >= keys else right
    left, right = (keys if left < 0 <= right else left), (keys if right < 0 <= left else right)
    row, col = torch.arange(queries)[:, None] + keys - queries, torch.arange(keys)[None]
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if right >= 0:
        seen &= col <= row + right
    if left >= 0:
        seen &= col >= row - left
    return seen


def wanted(mask: Mask, queries: int, keys: int) -> Any:
    hidden = mask.hidden(0, queries, queries, keys, "cpu")
    return torch.ones(queries, keys, dtype=torch.bool) if hidden is None else ~hidden


BOUNDS = (-1, 0, 1, 2, 3, 5, 8)


@pytest.mark.slow
@pytest.mark.parametrize("causal", ["", "top_left", "bottom_right"])
def test_every_pair_belongs_to_one_piece(causal: str) -> None:
    """The pieces cover each visible pair exactly once, and every query of a piece sees a key."""
    for queries, keys, left, right in product(range(1, 9), range(1, 9), BOUNDS, BOUNDS if not causal else (-1,)):
        mask = Mask(causal, left, right, None, "bshd", None)
        want, count = wanted(mask, queries, keys), torch.zeros(queries, keys, dtype=torch.int64)
        found = pieces(mask, queries, keys)
        for x in found:
            part = seen_by_kernel(*x.shape, x.left, x.right)
            assert x.is_exact and x.left >= -1 and x.right >= -1
            assert part.any(1).all(), (mask, queries, keys, x)
            if x.is_square:  # cuDNN supports full and causal masks.
                assert torch.equal(part, torch.ones_like(part).tril() if x.right == 0 else torch.ones_like(part))
            count[x.first : x.end, x.begin : x.stop] += part
        assert torch.equal(count, want.long()), (mask, queries, keys, found)


@pytest.mark.parametrize(
    ("causal", "queries", "keys", "found"),
    [
        ("top_left", 200, 40, [(0, 39, 0, 39, -1, 0), (39, 200, 0, 40, -1, -1)]),
        ("top_left", 200, 150, [(0, 200, 0, 150, -1, 50)]),
        ("top_left", 40, 200, [(0, 40, 0, 40, -1, 0)]),
        ("bottom_right", 200, 40, [(160, 200, 0, 40, -1, 0)]),
        ("bottom_right", 40, 200, [(0, 40, 0, 200, -1, 0)]),
        ("", 200, 40, [(0, 200, 0, 40, -1, -1)]),
    ],
)
def test_pieces(causal: str, queries: int, keys: int, found: list[tuple[int, ...]]) -> None:
    assert pieces(Mask(causal, -1, -1, None, "bshd", None), queries, keys) == found


@pytest.mark.slow  # test_pieces is the fast test
@pytest.mark.parametrize("has_cudnn", [False, True])
def test_gradients_by_kernels(has_cudnn: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients of random calls are right when float64 models replace torch's kernels."""
    called = {"flash": 0, "cudnn": 0}

    def differentiated(arrays: Any, lse: Any, scale: float, seen: Any) -> Any:
        q, k, v, out, grad = [x.transpose(1, 2).double() for x in arrays]
        k, v = [x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v)]
        weights = (q @ k.mT * scale - lse[..., None]).exp().masked_fill(~seen, 0.0)
        ds = weights * (grad @ v.mT - (grad * out).sum(-1, keepdim=True)) * scale
        shared = arrays[1].shape[2]
        dq, *of_keys = ds @ k, ds.mT @ q, weights.mT @ grad
        dk, dv = [x.unflatten(1, (shared, -1)).sum(2) for x in of_keys]
        return tuple(x.transpose(1, 2).to(arrays[0].dtype) for x in (dq, dk, dv))

    def flash(arrays: Any, lse: Any, scale: float, begins: Any, most: Any, left: int, right: int) -> Any:
        called["flash"] += 1
        assert begins == (None, None) and most == (arrays[0].shape[1], arrays[1].shape[1])
        return differentiated(arrays, lse, scale, seen_by_kernel(*most, left, right, left < 0 and right == 0))

    def cudnn(arrays: Any, lse: Any, scale: float, most: Any, causal: bool) -> Any:
        if not has_cudnn:
            return None
        called["cudnn"] += 1
        seen = torch.ones(most, dtype=torch.bool)
        return differentiated(arrays, lse, scale, seen.tril() if causal else seen)

    monkeypatch.setattr(gradients, "_has_flash", lambda q: True)
    monkeypatch.setattr(gradients, "_call_flash", flash)
    monkeypatch.setattr(gradients, "_call_cudnn", cudnn)
    for seed in range(300):
        call = drawn(seed, 24, (8,))._replace(of_lse=False)
        given, _ = inputs(call, torch.float64, "cpu", seed)
        if call.lengths or call.equal or 0 in given[1].shape:
            continue
        torch.manual_seed(seed)
        grad = torch.randn_like(given[0])
        left, right = [-1 if x is None else x for x in call.window or (None, None)]
        causal = {False: "", True: "top_left"}.get(call.causal, str(call.causal))  # type: ignore[call-overload]
        mask = Mask(causal, left, right, call.scale, call.layout, None)
        none = torch.empty(0)
        saved = Saved(*[x.detach() for x in given], None, None, none, none)
        with torch.no_grad():
            out, lse = attention_of(saved, mask)
        found = gradients.gradients(saved._replace(out=out, lse=lse), grad, None, mask)
        for x, y in zip(found[:3], exact(call, given, grad, None), strict=True):
            torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-4, msg=str(call))
    assert called["flash"] > 50 and (called["cudnn"] > 30) == has_cudnn
