"""``cute_dialect.flash_attn`` and ``op.scaled_dot_product_attention`` on the interpreter."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import patch

import pytest

torch = pytest.importorskip("torch")

from launched_here import Seen, here  # noqa: E402

from cute_dialect import flash_attn, op  # noqa: E402
from cute_dialect.op.execute.call_cache import KnownCalls  # noqa: E402
from cute_dialect.op.functions import attention as attention_calls  # noqa: E402


def normal(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).half()


def reference(
    q: Any, k: Any, v: Any, *, causal: bool = False, left: int | None = None, scale: float | None = None,
    right: int | None = None,
) -> Any:  # fmt: skip
    """Return attention of (B, S, H, D) in float64; the last query is aligned with the last key."""
    share = q.shape[2] // k.shape[2]
    a, b, c = (x.double().transpose(1, 2) for x in (q, k.repeat_interleave(share, 2), v.repeat_interleave(share, 2)))
    scores = a @ b.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    own, at = torch.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1], torch.arange(k.shape[1])[None]
    hidden = (at > own) & causal
    hidden |= False if left is None else at < own - left
    hidden |= False if right is None else at > own + right
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1).masked_fill(hidden, 0.0)  # 0 without keys
    return (weights @ c).transpose(1, 2)


def close(found: Any, want: Any) -> bool:
    return bool(((found.double() - want).abs() <= 2e-3 * (1 + want.abs())).all())


@pytest.mark.slow
def test_flash_attn_func() -> None:
    """Arguments by position, and the log-sum-exp."""
    q, k, v = normal(2, 9, 4, 64), normal(2, 20, 2, 64, seed=1), normal(2, 20, 2, 64, seed=2)
    out, lse, none = flash_attn.flash_attn_func(q, k, v, 0.0, 0.2, True, (5, -1), return_attn_probs=True)
    assert close(out, reference(q, k, v, causal=True, left=5, scale=0.2)) and lse.shape == (2, 4, 9) and none is None


@pytest.mark.slow
def test_packed_sequences() -> None:
    qkv, begins = normal(30, 3, 2, 64), torch.tensor([0, 10, 30], dtype=torch.int32)
    found = flash_attn.flash_attn_varlen_qkvpacked_func(qkv, begins, 20, causal=True)
    dense = flash_attn.flash_attn_qkvpacked_func(qkv[None, 10:], causal=True, window_size=(-1, 3))
    for at in (slice(0, 10), slice(10, 30)):
        want = reference(*qkv[None, at].unbind(2), causal=True)
        assert close(found[None, at], want)
    assert close(dense, reference(*qkv[None, 10:].unbind(2), causal=True))
    q, k, v = normal(2, 9, 4, 64), normal(2, 20, 2, 64, seed=1), normal(2, 20, 2, 64, seed=2)
    assert close(flash_attn.flash_attn_kvpacked_func(q, torch.stack([k, v], 2)), reference(q, k, v))


def compare_gradients(found: Any, want: Any, ours: Any, theirs: Any) -> None:
    """Compare results and gradients of a loss that weighs all elements differently."""
    assert close(found, want)
    weights = torch.linspace(-1, 1, found.numel()).reshape(found.shape)
    mine = torch.autograd.grad((found.float() * weights).sum(), ours)
    exact = torch.autograd.grad((want * weights.double()).sum(), theirs)
    for x, y in zip(mine, exact):
        assert float((x.double() - y).abs().max()) <= 5e-3 * max(1.0, float(y.abs().max()))


WINDOWS = {
    "more keys": (9, 20, (5, 3)), "more queries": (21, 13, (4, 2)), "one side": (7, 75, (None, 6)),
    "far": (70, 133, (65, 1)), "left": (11, 23, (3, None)), "one query": (1, 37, (8, 4)), "alone": (13, 5, (0, 1)),
}  # fmt: skip
"""Queries, keys and windows without a causal mask."""


@pytest.mark.slow
@pytest.mark.parametrize(("queries", "keys", "window"), WINDOWS.values(), ids=WINDOWS)
def test_windows_of_unequal_lengths(queries: int, keys: int, window: tuple[int | None, int | None]) -> None:
    """A window ends at the last key, as in flash-attn, in the results and in the gradients."""
    left, right = window
    given = [normal(2, queries, 2, 32), normal(2, keys, 1, 32, seed=1), normal(2, keys, 1, 32, seed=2)]
    ours, theirs = ([x.clone().to(t).requires_grad_() for x in given] for t in (torch.float16, torch.float64))
    sizes = tuple(-1 if x is None else x for x in window)
    found, lse, _ = flash_attn.flash_attn_func(*ours, window_size=sizes, return_attn_probs=True)
    want = reference(*theirs, left=left, right=right)
    weights = torch.linspace(-1, 1, found.numel()).reshape(found.shape)
    exact = torch.autograd.grad((want * weights.double()).sum(), theirs, retain_graph=True)
    compare_gradients(found, want, ours, theirs)
    mask: Any = {"window": (left, right, "bottom_right"), "layout": "bshd", "device": "cpu"}
    arrays = [x.detach() for x in (*ours, found, lse)]
    kernel = op.attention_backward(weights.half(), *arrays, **mask)  # flash_attn computes it with matmuls on the CPU
    for x, y in zip(kernel, exact):
        assert float((x.double() - y).abs().max()) <= 5e-3 * max(1.0, float(y.abs().max()))


@pytest.mark.parametrize(("queries", "keys", "window"), WINDOWS.values(), ids=WINDOWS)
def test_reference_of_windows(queries: int, keys: int, window: tuple[int | None, int | None]) -> None:
    """``Attention.reference`` aligns the window with the last key."""
    q, k = normal(1, queries, 2, 32), normal(1, keys, 1, 32)
    plan = op.Attention(element="f16", head_size=32, window=(*window, "bottom_right"), layout="bshd")
    assert close(torch.from_numpy(plan.reference(q, k, k)), reference(q, k, k, left=window[0], right=window[1]))


@pytest.mark.parametrize(
    ("causal", "window", "words"),
    [
        (True, (1, 1, "bottom_right"), 'but causal is True; omit the third element, or pass causal="bottom_right"'),
        (False, (1, 1, "end"), 'pass two ints, each 0 or more, or None for no limit, and "bottom_right" as the third'),
        (False, (1, -1, "bottom_right"), "pass two ints, each 0 or more"),
        (False, (1,), "pass two ints, each 0 or more"),
    ],
)
def test_refused_windows(causal: bool, window: Any, words: str) -> None:
    with pytest.raises(op.UnsupportedError) as caught:
        op.attention(Q, Q, Q, causal=causal, window=window, device="cpu")
    assert words in str(caught.value) and f"window is {window!r}" in str(caught.value)


@pytest.mark.slow
def test_windows_of_packed_sequences() -> None:
    given = [normal(30, 2, 32), normal(47, 2, 32, seed=1), normal(47, 2, 32, seed=2)]
    lengths = (10, 0, 20), (15, 9, 23)
    begins = [torch.tensor([0, *x], dtype=torch.int32).cumsum(0).int() for x in lengths]
    ours, theirs = ([x.clone().to(t).requires_grad_() for x in given] for t in (torch.float16, torch.float64))
    found = flash_attn.flash_attn_varlen_func(*ours, *begins, 20, 23, window_size=(6, 2))
    parts = [x.split(n) for x, n in zip(theirs, (lengths[0], lengths[1], lengths[1]))]
    want = torch.cat([reference(*(x[None] for x in each), left=6, right=2)[0] for each in zip(*parts)])
    compare_gradients(found, want, ours, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("new", [0, 3])
def test_windows_of_a_cache(new: int) -> None:
    """Queries see keys on both sides of their own, up to the last key in use."""
    q, k, v = normal(2, 5, 4, 32), normal(2, 3, 2, 32, seed=6), normal(2, 3, 2, 32, seed=7)
    caches, used = [normal(2, 40, 2, 32, seed=i) for i in range(2)], torch.tensor([29, 4], dtype=torch.int32)
    mine = [x.clone() for x in caches]
    appended = (k, v) if new else ()
    found = flash_attn.flash_attn_with_kvcache(q, *mine, *appended, cache_seqlens=used, window_size=(7, 1))
    for b, n in enumerate(used.tolist()):
        keys, values = (torch.cat([x[b, :n], y[b, :new]])[None] for x, y in zip(caches, (k, v)))
        assert close(found[b : b + 1], reference(q[b : b + 1], keys, values, left=7, right=1))


@pytest.mark.slow
def test_packed_calls_without_bounds() -> None:
    """``max_seqlen_q`` and ``max_seqlen_k`` are optional, also with gradients."""
    qkv, begins = normal(30, 3, 2, 32).requires_grad_(), torch.tensor([0, 11, 30], dtype=torch.int32)
    found = flash_attn.flash_attn_varlen_qkvpacked_func(qkv, begins, causal=True)
    theirs = qkv.detach().double().requires_grad_()
    want = torch.cat([reference(*x[None].unbind(2), causal=True)[0] for x in theirs.split((11, 19))])
    compare_gradients(found, want, [qkv], [theirs])
    q, kv = qkv.detach()[:, 0], qkv.detach()[:, 1:]
    assert close(flash_attn.flash_attn_varlen_kvpacked_func(q, kv, begins, begins, causal=True), want)


@pytest.mark.slow
def test_chunks_without_causal() -> None:
    """A query sees the keys of the chunk of its own key, on both sides."""
    q, k, v = normal(1, 7, 2, 32), normal(1, 23, 2, 32, seed=1), normal(1, 23, 2, 32, seed=2)
    found = flash_attn.flash_attn_func(q, k, v, attention_chunk=6)
    for i in range(7):
        first = (i + 16) // 6 * 6
        want = reference(q[:, i : i + 1], *(x[:, first : first + 6] for x in (k, v)))
        assert close(found[:, i : i + 1], want)


@pytest.mark.slow
def test_parts_of_packed_sequences() -> None:
    """``seqused_q`` and ``seqused_k``, and chunks of keys."""
    q, k, v = normal(30, 2, 64), normal(40, 2, 64, seed=1), normal(40, 2, 64, seed=2)
    begins = [torch.tensor(x, dtype=torch.int32) for x in ([0, 10, 30], [0, 15, 40])]
    used_q, used_k = (torch.tensor(x, dtype=torch.int32) for x in ([7, 20], [9, 25]))
    found = flash_attn.flash_attn_varlen_func(q, k, v, *begins, 20, 25, causal=True, seqused_q=used_q, seqused_k=used_k)
    for i, m, j, n in ((0, 7, 0, 9), (10, 20, 15, 25)):
        want = reference(*(x[None] for x in (q[i : i + m], k[j : j + n], v[j : j + n])), causal=True)
        assert close(found[None, i : i + m], want)
    found = flash_attn.flash_attn_func(q[None], k[None, :30], v[None, :30], causal=True, attention_chunk=10)
    for i in range(0, 30, 10):
        want = reference(*(x[None, i : i + 10] for x in (q, k, v)), causal=True)
        assert close(found[:, i : i + 10], want)


@pytest.mark.slow
@pytest.mark.parametrize("paged", [False, True, None])
def test_decoding(paged: bool | None) -> None:
    """New keys are rotated and appended, and queries see them.  The cache has pages, or keys to skip (None)."""
    used, cache = torch.tensor([20, 3], dtype=torch.int32), [normal(2, 32, 2, 64, seed=i) for i in range(2)]
    q, k, v = normal(2, 2, 4, 64, seed=5), normal(2, 2, 2, 64, seed=6), normal(2, 2, 2, 64, seed=7)
    angles = torch.randn(40, 16, generator=torch.Generator().manual_seed(1))
    cos, sin = angles.cos(), angles.sin()
    given: dict[str, Any] = {}
    mine = [x.clone() for x in cache]
    if paged:
        table = torch.tensor([[2, 0], [3, 1]], dtype=torch.int32)
        mine = [torch.empty(4, 16, 2, 64).half() for _ in cache]
        for x, y in zip(mine, cache):
            x[table.flatten().long()] = y.reshape(4, 16, 2, 64)
        given["block_table"] = table
    skipped = [0, 0] if paged is not None else [9, 2]
    if paged is None:
        given["cache_leftpad"] = torch.tensor(skipped, dtype=torch.int32)
    found = flash_attn.flash_attn_with_kvcache(q, *mine, k, v, cos, sin, used, causal=True, **given)
    for b, n in enumerate(used.tolist()):
        i = skipped[b]
        c, s = (t[n - i : n - i + 2, None] for t in (cos, sin))
        a, d = (x[b, ..., 0:32:2].float() for x in (q, k)), (x[b, ..., 1:32:2].float() for x in (q, k))
        turned = [torch.stack([x * c - y * s, x * s + y * c], -1).flatten(-2) for x, y in zip(a, d)]
        q1, k1 = (torch.cat([x.half(), y[b, ..., 32:]], -1)[None] for x, y in zip(turned, (q, k)))
        keys, values = (
            torch.cat([cache[0][b : b + 1, i:n], k1], 1),
            torch.cat([cache[1][b : b + 1, i:n], v[b : b + 1]], 1),
        )
        assert close(found[b : b + 1], reference(q1, keys, values, causal=True))
    assert used.tolist() == [20, 3]


@pytest.mark.slow
def test_a_step_of_a_key_value_cache() -> None:
    """``flash_attn_with_kvcache`` is one recording of an append and an attention."""
    caches = [normal(2, 32, 1, 64, seed=i) for i in range(2)]
    known = KnownCalls(tf32=False)
    with (
        here(Seen()) as seen,
        patch.object(attention_calls, "_KNOWN", KnownCalls()),
        patch.object(flash_attn, "_CACHED", known),
        patch.object(flash_attn, "_device", lambda q: None),
    ):
        for number in range(3):
            q = normal(2, 1, 2, 64, seed=number)
            k, v = (normal(2, 1, 1, 64, seed=number + i) for i in (9, 20))
            used = torch.tensor([number + 3, 20 - number], dtype=torch.int32)
            mine, before = [t.clone() for t in caches], seen.first
            out, lse = flash_attn.flash_attn_with_kvcache(
                q, *mine, k, v, cache_seqlens=used, causal=True, return_softmax_lse=True
            )
            assert (seen.first == before) == (number > 0) and lse.shape == (2, 2, 1)
            for b, n in enumerate(used.tolist()):
                want = [torch.cat([c[b, :n], x[b]]) for c, x in zip(caches, (k, v))]
                assert all(torch.equal(m[b, : n + 1], w) for m, w in zip(mine, want))
                assert close(out[b : b + 1], reference(q[b : b + 1], *[w[None] for w in want]))
    assert len(known) == 1


@pytest.mark.slow
def test_sequences_of_a_cache() -> None:
    cache = [normal(3, 32, 2, 64, seed=i) for i in range(2)]
    q, index = normal(2, 1, 2, 64), torch.tensor([2, 0])
    out, lse = flash_attn.flash_attn_with_kvcache(
        q, *cache, cache_batch_idx=index, cache_seqlens=20, return_softmax_lse=True
    )
    assert close(out, reference(q, *(x[index, :20] for x in cache))) and lse.shape == (2, 2, 1)


@pytest.mark.slow
def test_scaled_dot_product_attention() -> None:
    q, k = normal(2, 9, 64), normal(2, 12, 64)
    mask = torch.rand(2, 9, 12) > 0.3
    mask[..., 0] = True
    for given in ({}, {"is_causal": True}, {"attn_mask": mask}, {"scale": 0.3}):
        want = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), k.double(), **given)
        assert close(op.scaled_dot_product_attention(q, k, k, **given, device="cpu"), want)


def test_the_backend_of_torch() -> None:
    attention = torch.nn.attention
    if not hasattr(attention, "list_flash_attention_impls"):
        pytest.skip("this torch has no flash-attention backends")
    assert "CUTE" in attention.list_flash_attention_impls()
    attention.activate_flash_attention_impl("CUTE")
    try:
        assert attention.current_flash_attention_impl() == "CUTE"
    finally:
        attention.restore_flash_attention_impl()
    assert attention.current_flash_attention_impl() is None


@pytest.mark.slow
def test_operators_of_the_backend() -> None:
    q, k = normal(2, 4, 9, 64), normal(2, 2, 9, 64)
    out, lse, _, _, *more = flash_attn.sdpa_forward(q, k, k, 0.0, True, scale=0.2)
    assert more[:2] == [9, 9] and lse.shape == (2, 4, 9)
    x = [t.double().requires_grad_() for t in (q, k, k.clone())]
    want = torch.nn.functional.scaled_dot_product_attention(*x, is_causal=True, scale=0.2, enable_gqa=True)
    assert close(out, want)
    grad = normal(2, 4, 9, 64, seed=4)
    found = flash_attn.sdpa_backward(grad, q, k, k, out, lse, None, None, 9, 9, 0.0, True, lse, lse, scale=0.2)
    for a, b in zip(found, torch.autograd.grad(want, x, grad.double()), strict=True):
        assert float((a.double() - b).norm() / b.norm()) < 2e-3


Q, K, BEGINS = normal(1, 4, 2, 64), normal(1, 8, 2, 64), torch.tensor([0, 4], dtype=torch.int32)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: flash_attn.flash_attn_func(Q, Q, Q, 1.1), op.UnsupportedError, "dropout_p is 1.1; pass a probability"),
        (lambda: flash_attn.flash_attn_func(Q, Q, Q, qv=Q), op.UnsupportedError, "qv is not supported; omit it"),
        (lambda: flash_attn.flash_attn_func(Q, Q, Q, casual=None), op.ArgumentError, "did you mean 'causal'"),
        (lambda: flash_attn.flash_attn_varlen_func(Q[0], Q[0], Q[0], BEGINS), op.ShapeError, "cu_seqlens_k is missing"),
        (
            lambda: flash_attn.flash_attn_varlen_qkvpacked_func(torch.stack([Q[0]] * 3, 1), BEGINS, BEGINS[0]),
            op.ShapeError, "^flash_attn_varlen_qkvpacked_func: max_seqlen is tensor",
        ),
        (
            lambda: flash_attn.flash_attn_varlen_func(Q[0], Q[0], Q[0], BEGINS, BEGINS, 4, BEGINS[1]),
            op.ShapeError, "^flash_attn_varlen_func: max_seqlen_k is tensor.*; pass an integer of 0 or more, or None",
        ),
        (
            lambda: flash_attn.flash_attn_varlen_func(
                Q[0].detach().requires_grad_(), Q[0], Q[0], BEGINS, BEGINS, max_seqlen_k=len(Q[0]) - 1
            ),
            op.ShapeError, "^flash_attn_varlen_func: max_seqlen_k is .*, but a sequence has .* keys; pass",
        ),
        (lambda: flash_attn.flash_attn_func(Q, Q, Q, window_size=3), op.UnsupportedError, "3; pass two ints, each -1"),
        (
            lambda: flash_attn.flash_attn_func(Q, Q, Q, window_size=(1.5, 2)),  # pyright: ignore[reportArgumentType]
            op.UnsupportedError, r"window_size is \(1.5, 2\); pass two ints, each -1 for no limit$",
        ),
        (
            lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, window_size=(True, 2)),
            op.UnsupportedError, r"^flash_attn_with_kvcache: window_size is \(True, 2\); pass two ints, each -1",
        ),
        (lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, Q), op.UnsupportedError, "k is given without v; pass"),
        (lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, rotary_sin=Q), op.UnsupportedError, "without rotary_cos"),
        (lambda: flash_attn.flash_attn_func(Q.numpy(), K, K), op.DtypeError, "q is of type ndarray; pass a torch"),
        (lambda: flash_attn.flash_attn_func(Q[0], K, K), op.ShapeError, r"flash_attn_func: q has shape \(4, 2, 64\)"),
        (lambda: flash_attn.flash_attn_kvpacked_func(Q, K), op.ShapeError, r"pass a tensor \(B, S, 2, H, D\)"),
        (lambda: flash_attn.flash_attn_qkvpacked_func(Q[None]), op.ShapeError, r"pass a tensor \(B, S, 3, H, D\)"),
        (lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, cache_seqlens=[1]), op.DtypeError, "pass an int or a"),
        (lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, cache_seqlens=BEGINS), op.ShapeError, "torch.int32 of sh"),
        (lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, block_table=BEGINS), op.ShapeError, r"\(B, pages\)"),
        (
            lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, cache_batch_idx=BEGINS[1:]),
            op.ShapeError, r"cache_batch_idx is \[4\]; pass sequences of the cache, from 0 to 0",
        ),
        (lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, cache_leftpad=Q), op.ShapeError, "cache_leftpad is torch"),
        (
            lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, block_table=BEGINS[None], cache_leftpad=BEGINS),
            op.UnsupportedError, "cache_leftpad cannot be combined with a page table; omit one of them",
        ),
        (
            lambda: flash_attn.flash_attn_func(Q, Q, Q, softmax_scale="a"),  # pyright: ignore[reportArgumentType]
            op.UnsupportedError, "^flash_attn_func: softmax_scale is 'a'; pass a finite",
        ),
        (
            lambda: flash_attn.flash_attn_func(Q, Q, Q, None, True),  # pyright: ignore[reportArgumentType]
            op.UnsupportedError, "softmax_scale is True; pass a number, and causal by name",
        ),
        (
            lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, cache_seqlens=1000),
            op.ShapeError, "^flash_attn_with_kvcache: cache_seqlens has a length of 1000",
        ),
        (
            lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, num_splits=-1),
            op.UnsupportedError, "^flash_attn_with_kvcache: num_splits is -1",
        ),
        (
            lambda: flash_attn.flash_attn_with_kvcache(Q, K, K.clone(), K, K, cache_seqlens=1000),
            op.ShapeError, "^flash_attn_with_kvcache: cache_seqlens has",
        ),
        (
            lambda: flash_attn.flash_attn_varlen_qkvpacked_func(torch.stack([Q[0]] * 3, 1), BEGINS[:1], 9),
            op.ShapeError, r"^flash_attn_varlen_qkvpacked_func: cu_seqlens has shape \(1,\)",
        ),
        (
            lambda: flash_attn.flash_attn_qkvpacked_func(torch.stack([Q] * 3, 2), softcap=-1.0),
            op.UnsupportedError, "^flash_attn_qkvpacked_func: softcap is -1.0",
        ),
        (
            lambda: op.scaled_dot_product_attention(Q, Q[..., :8], Q, device="cpu"),
            op.ShapeError, "^scaled_dot_product_attention: key has shape",
        ),
        (lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, Q, Q), op.UnsupportedError, "without cache_seqlens"),
        (
            lambda: flash_attn.flash_attn_with_kvcache(Q, K, K, cache_batch_idx=BEGINS, block_table=BEGINS[None]),
            op.UnsupportedError, "cache_batch_idx cannot be combined with a page table; index the table",
        ),
        (lambda: op.scaled_dot_product_attention(Q, Q, Q, dropout_p=-0.5), op.UnsupportedError, "dropout_p is -0.5"),
        (lambda: op.scaled_dot_product_attention(Q, Q, Q, Q, 0.0, True), op.UnsupportedError, "pass one of them"),
        (lambda: op.scaled_dot_product_attention(Q, K[:, :2], K[:, :2]), op.ShapeError, "or enable_gqa=True"),
        (lambda: op.scaled_dot_product_attention(Q, Q, Q, is_casual=True), op.ArgumentError, "mean 'is_causal'"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
