"""The operators ``torch.ops.cute.attention`` and ``attention_backward``: gradients by torch's kernels or by matmuls.

cuDNN's kernel is about twice as fast as torch's flash-attention kernel.  It supports full masks and square causal
masks.  The flash-attention kernel aligns windows and causal masks with the last key. :func:`pieces` splits a call into
kernel calls that have the right masks together.  Queries that see no key, and keys that no query sees, belong to no
piece::

    8 queries, 5 keys, causal="bottom_right": query i sees keys 0 … i - 3
    one piece: queries 3 … 7, keys 0 … 4, causal; the gradient of queries 0 … 2 is zero

    200 queries, 40 keys, causal="top_left": query i sees keys 0 … i
    two pieces: queries 0 … 38 and keys 0 … 38, causal; queries 39 … 199 and all keys

Neither kernel has a gradient of ``lse``.  Other calls use :func:`by_products`: matmuls in f32, in blocks of bounded
size.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cute_dialect.op.functions import attention as functions
from cute_dialect.op.problems.attention import LAYOUTS
from cute_dialect.op.torch.registry import CUTE

__all__ = ["Mask", "Piece", "Saved", "attention_of", "by_products", "empty_gradients", "gradients", "pieces"]


_MOST = 1 << 25
"""Maximum number of scores in memory at a time, in f32."""


class Mask(NamedTuple):
    """The mask and the scale of scores: the arguments of ``torch.ops.cute.attention``."""

    causal: str
    left: int
    """Keys before a query's own; -1 for all."""
    right: int
    """Keys after it; -1 for all."""
    scale: float | None
    layout: str
    longest: int | None
    """Rows of the longest packed sequence, if known."""

    @property
    def after(self) -> int:
        """Keys after a query's own that it sees; -1 for all."""
        return 0 if self.causal else self.right

    @property
    def is_full(self) -> bool:
        """True if every query sees every key."""
        return self.left < 0 and self.after < 0

    def factor(self, size: int) -> float:
        """Return the scale of scores of heads of ``size`` elements."""
        return 1 / math.sqrt(size) if self.scale is None else self.scale

    def shift(self, queries: int, keys: int) -> int:
        """Return the key that is query 0's own."""
        return keys - queries if self.causal == "bottom_right" else 0

    def hidden(self, first: int, rows: int, queries: int, keys: int, device: Any) -> Tensor | None:
        """Return the keys (rows, keys) that the queries from ``first`` on do not see; None if they see all."""
        if self.is_full:
            return None
        own = torch.arange(first, first + rows, device=device)[:, None] + self.shift(queries, keys)
        at = torch.arange(keys, device=device)[None]
        before = at < own - self.left if self.left >= 0 else None
        behind = at > own + self.after if self.after >= 0 else None
        return behind if before is None else before if behind is None else before | behind


class Piece(NamedTuple):
    """Queries and keys of one kernel call, and its window."""

    first: int
    end: int
    """Queries ``first`` … ``end - 1``."""
    begin: int
    stop: int
    """Keys ``begin`` … ``stop - 1``."""
    left: int
    """Keys before a query's own, where the last query's own is the last key; -1 for all."""
    right: int
    """Keys after it; -1 for all."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of queries and keys."""
        return self.end - self.first, self.stop - self.begin

    @property
    def is_exact(self) -> bool:
        """Return True if torch's kernel sees exactly the keys of the window.

        The kernel drops a bound that is not less than the number of keys, and replaces a missing bound by that number
        if the other one is there.  With more queries than keys, the first queries then see too many or too few keys.
        """
        queries, keys = self.shape
        left = -1 if self.left >= keys else self.left
        right = -1 if self.right >= keys else self.right
        if left >= 0 > right:
            right = keys
        elif right >= 0 > left:
            left = keys
        pairs = ((self.left, left, keys), (self.right, right, queries))
        return all([want == got or (_is_all(want, n) and _is_all(got, n)) for want, got, n in pairs])

    @property
    def is_square(self) -> bool:
        """Return True for a full mask, and for a causal one of as many queries as keys."""
        queries, keys = self.shape
        return self.left < 0 and (self.right < 0 or (self.right == 0 and queries == keys))


def _is_all(bound: int, count: int) -> bool:
    """Return True if a bound of a window hides nothing from ``count`` queries or keys."""
    return bound < 0 or bound >= count - 1


def pieces(mask: Mask, queries: int, keys: int) -> list[Piece]:
    """Return the calls of torch's kernel that compute a mask together.  No piece has queries without keys."""
    shift, left, right = mask.shift(queries, keys), mask.left, mask.after
    first = max(0, -shift - right) if right >= 0 else 0
    end = min(queries, keys - shift + left) if left >= 0 else queries
    if first >= end or not keys:
        return []
    whole = _piece(mask, first, end, shift, keys)
    if whole.is_exact:
        return [whole]
    # Queries before the first cut do not see the last key; queries from the second cut on do not see the first key.
    ends = (keys - 1 - shift - right if right >= 0 else first, left - shift + 1 if left >= 0 else end)
    cuts = [first, *sorted([min(max(x, first), end) for x in ends]), end]
    return [_piece(mask, i, j, shift, keys) for i, j in pairwise(cuts) if i < j]


def _piece(mask: Mask, first: int, end: int, shift: int, keys: int) -> Piece:
    """Return the piece of queries that all see a key."""
    left, right = mask.left, mask.after
    begin = max(0, first + shift - left) if left >= 0 else 0
    stop = min(keys, end + shift + right) if right >= 0 else keys
    left = -1 if end - 1 + shift - left <= 0 else left
    right = -1 if first + shift + right >= keys - 1 else right
    # Distance from the key that the kernel aligns with a query to the query's own key.
    more = first + shift - begin - ((stop - begin) - (end - first))
    return Piece(first, end, begin, stop, left - more if left >= 0 else -1, right + more if right >= 0 else -1)


class Saved(NamedTuple):
    """The tensors of a forward call; the offsets are None unless sequences are packed."""

    q: Tensor
    k: Tensor
    v: Tensor
    begins_q: Tensor | None
    begins_k: Tensor | None
    out: Tensor
    lse: Tensor
    """Empty if it was not computed."""


def gradients(
    saved: Saved, grad: Tensor | None, grad_lse: Tensor | None, mask: Mask
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of q, k and v, in their types, from those of the result and of ``lse`` (None for zero)."""
    q, k, v, begins_q, begins_k, out, lse = saved
    if grad is not None and grad_lse is None and 0 not in (q.numel(), k.numel(), lse.numel()) and _has_flash(q):
        if begins_q is None:
            return _turned_back(_flash(_rows_first(mask, q, k, v, out, grad), lse, mask), mask)
        # Sequences of different lengths: the kernel aligns each mask with the last key of its sequence.
        if mask.is_full or mask.causal == "bottom_right" or begins_q is begins_k:
            return _flash_packed(saved, grad, mask)
    found = [x.zero_() for x in empty_gradients(q, k, v, mask.layout)]
    for part in _sequences(saved, (*found, *(() if grad is None else (grad,))), grad_lse, mask):
        dq, dk, dv, *given = part.others
        by_products(part.q, part.k, part.v, given[0] if given else None, part.grad_lse, mask, (dq, dk, dv))
    return found[0], found[1], found[2]


def empty_gradients(q: Tensor, k: Tensor, v: Tensor, layout: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return uninitialized gradients, contiguous as (B, S, H, D) in either layout."""
    turn = q.dim() == 4 and LAYOUTS[layout] == LAYOUTS["bhsd"]
    made = [x.transpose(1, 2) if turn else x for x in (q, k, v)]
    made = [x.new_empty(x.shape) for x in made]
    dq, dk, dv = [x.transpose(1, 2) if turn else x for x in made]
    return dq, dk, dv


# ------------------------------------------------------------------------------------------------- torch's own kernel


@cache
def _flash_is_built() -> bool:
    return torch.backends.cuda.is_flash_attention_available()


def _has_flash(q: Tensor) -> bool:
    """Return True if torch's flash-attention kernel supports these heads."""
    return q.is_cuda and q.shape[-1] <= 256 and _flash_is_built()


def _rows_first(mask: Mask, *arrays: Tensor) -> tuple[Tensor, ...]:
    """Return arrays as (B, S, H, D)."""
    return arrays if mask.layout == "bshd" else tuple([x.transpose(1, 2) for x in arrays])


def _turned_back(found: tuple[Tensor, ...], mask: Mask) -> tuple[Tensor, Tensor, Tensor]:
    """Return gradients in the layout of the call."""
    dq, dk, dv = found if mask.layout == "bshd" else [x.transpose(1, 2) for x in found]
    return dq, dk, dv


def _readable(x: Tensor) -> Tensor:
    """Return a tensor whose heads are contiguous and begin at multiples of 16 bytes, perhaps a copy."""
    *steps, last = x.stride()
    if last == 1 and x.data_ptr() % 16 == 0 and all([step % 8 == 0 for step in steps]):
        return x
    return x.clone(memory_format=torch.contiguous_format)


@cache
def _no_state(device: torch.device) -> Tensor:
    """Return the random state of a call without dropout, which nothing reads."""
    return torch.empty(0, dtype=torch.uint64, device=device)


def _call_flash(
    arrays: Sequence[Tensor], lse: Tensor, scale: float, begins: tuple[Any, Any], most: tuple[int, int],
    left: int, right: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Call torch's kernel.

    Args:
        arrays: q, k, v, the result and its gradient.
        most: the largest numbers of queries and keys of a sequence.
        left, right: bounds of the window; -1 for none.
    """
    q, k, v, out, grad = [_readable(x) for x in arrays]
    causal, state = left < 0 and right == 0, _no_state(q.device)
    window = {} if causal else {"window_size_left": left, "window_size_right": right}
    return torch.ops.aten._flash_attention_backward.default(
        grad, q, k, v, out, lse, *begins, *most, 0.0, causal, state, state, scale=scale, **window
    )


_REFUSED: set[object] = set()
"""Specializations that cuDNN does not support."""


def _call_cudnn(
    arrays: Sequence[Tensor], lse: Tensor, scale: float, most: tuple[int, int], causal: bool
) -> tuple[Tensor, Tensor, Tensor] | None:  # fmt: skip
    """Call cuDNN's kernel on (B, S, H, D), for full masks and square causal masks.

    Return None if cuDNN does not support the call.
    """
    q, k = arrays[:2]
    size = q.shape[-1]
    if size > 256 or size % 8 or 1 in most or not torch.backends.cuda.cudnn_sdp_enabled():
        return None
    # The flash-attention kernel has a deterministic variant.
    kind = (q.dtype, size, q.shape[2], k.shape[2], causal)
    if kind in _REFUSED or torch.are_deterministic_algorithms_enabled():
        return None
    given = [_readable(x) for x in arrays]
    if any([0 in x.stride() for x in given]):  # expanded
        return None
    q, k, v, out, grad = [x.transpose(1, 2) for x in given]
    state = _no_state(q.device)
    try:
        found = torch.ops.aten._scaled_dot_product_cudnn_attention_backward.default(
            grad, q, k, v, out, lse.unsqueeze(-1), state, state, None, None, None, *most, 0.0, causal, scale=scale
        )
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        _REFUSED.add(kind)
        return None
    dq, dk, dv = [x.transpose(1, 2) for x in found]
    return dq, dk, dv


def _flash(arrays: tuple[Tensor, ...], lse: Tensor, mask: Mask) -> tuple[Tensor, ...]:
    """Return gradients of (B, S, H, D) by torch's kernels; ``arrays``: q, k, v, the result and its gradient."""
    q, k, v, out, grad = arrays
    queries, keys, scale = q.shape[1], k.shape[1], mask.factor(q.shape[-1])
    parts = pieces(mask, queries, keys)
    if len(parts) == 1 and parts[0].shape == (queries, keys):
        return _piece_gradients(parts[0], arrays, lse, scale)
    exact = torch.float32 if len(parts) > 1 else q.dtype  # gradients of several pieces are rounded once
    dq = torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    dk, dv = [torch.zeros(x.shape, dtype=exact, device=x.device) for x in (k, v)]
    for part in parts:
        rows, seen = slice(part.first, part.end), slice(part.begin, part.stop)
        some = (q[:, rows], k[:, seen], v[:, seen], out[:, rows], grad[:, rows])
        found = _piece_gradients(part, some, lse[:, :, rows].contiguous(), scale)
        dq[:, rows] = found[0]
        dk[:, seen] += found[1]
        dv[:, seen] += found[2]
    return dq, dk.to(k.dtype), dv.to(v.dtype)


def _piece_gradients(
    part: Piece, arrays: tuple[Tensor, ...], lse: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of a piece with these arrays."""
    if part.is_square:
        found = _call_cudnn(arrays, lse, scale, part.shape, part.right == 0)
        if found is not None:
            return found
    return _call_flash(arrays, lse, scale, (None, None), part.shape, part.left, part.right)


def _flash_packed(saved: Saved, grad: Tensor, mask: Mask) -> tuple[Tensor, Tensor, Tensor]:
    """Return gradients of packed sequences by torch's kernel."""
    q, k, v, begins_q, begins_k, out, lse = saved
    assert begins_q is not None and begins_k is not None
    most_q = q.shape[0] if mask.longest is None else min(mask.longest, q.shape[0])
    most_k = most_q if begins_q is begins_k else k.shape[0]
    logs = lse.masked_fill(lse == -math.inf, math.inf)  # rows without keys, as the kernel marks them
    made = _call_flash(
        (q, k, v, out, grad), logs, mask.factor(q.shape[-1]), (begins_q, begins_k), (most_q, most_k), mask.left,
        mask.after,
    )  # fmt: skip
    # The kernel does not write rows past the last sequence.
    ends = (begins_q, begins_k, begins_k)
    dq, dk, dv = [
        torch.where((torch.arange(x.shape[0], device=x.device) < end[-1])[:, None, None], x, 0)
        for x, end in zip(made, ends)
    ]
    return dq, dk, dv


# --------------------------------------------------------------------------------------------------- matrix products


class _Part(NamedTuple):
    """A sequence, or a batch of sequences of one length: arrays as (B, H, S, D)."""

    q: Tensor
    k: Tensor
    v: Tensor
    grad_lse: Tensor | None
    others: tuple[Tensor, ...]


def _sequences(saved: Saved, others: tuple[Tensor, ...], grad_lse: Tensor | None, mask: Mask) -> Iterator[_Part]:
    """Yield the sequences of a call; ``others``: gradients of q, k and v, and one like q.  Waits for packed offsets."""
    q, k, v, begins_q, begins_k, *_ = saved
    if begins_q is None or begins_k is None:
        turn = LAYOUTS[mask.layout] != LAYOUTS["bhsd"]
        a, b, c, *rest = [x.transpose(1, 2) if turn else x for x in (q, k, v, *others)]
        yield _Part(a, b, c, grad_lse, tuple(rest))
        return
    for (i, j), (m, n) in zip(pairwise(begins_q.tolist()), pairwise(begins_k.tolist())):
        rows, keys = slice(i, j), slice(m, n)
        a, b, c = q[rows], k[keys], v[keys]
        rest = [x[at] for x, at in zip(others, (rows, keys, keys, rows))]
        a, b, c, *rest = [x.transpose(0, 1)[None] for x in (a, b, c, *rest)]
        yield _Part(a, b, c, None if grad_lse is None else grad_lse[None, :, rows], tuple(rest))


def _weights(q: Tensor, k: Tensor, hidden: Tensor | None, scale: float) -> tuple[Tensor, Tensor]:
    """Return the attention weights (B, H', G, S, S') and the scores of queries (B, H', G, S, D), in f32."""
    scores = (q @ k[:, :, None].mT) * scale
    if hidden is None:
        return scores.softmax(-1), scores
    scores = scores.masked_fill(hidden, -math.inf)
    return scores.softmax(-1).masked_fill(hidden, 0.0), scores  # also for rows without a visible key


def by_products(
    q: Tensor, k: Tensor, v: Tensor, grad: Tensor | None, grad_lse: Tensor | None, mask: Mask,
    results: tuple[Tensor, Tensor, Tensor],
) -> None:  # fmt: skip
    """Compute gradients of arrays (B, H, S, D), in f32, some queries and sequences at a time."""
    batch, heads, queries, size = q.shape
    shared, keys = k.shape[1:3]
    if 0 in (q.numel(), k.numel()):
        return
    scale = mask.factor(size)
    some = max(1, min(batch, _MOST // (heads * keys)))
    rows = max(1, min(queries, _MOST // (some * heads * keys)))
    group = (shared, heads // shared)
    for b in range(0, batch, some):
        at = slice(b, b + some)
        kf, vf = k[at].float(), v[at].float()
        dk, dv = torch.zeros_like(kf), torch.zeros_like(vf)
        for i in range(0, queries, rows):
            end = min(queries, i + rows)
            hidden = mask.hidden(i, end - i, queries, keys, q.device)
            x = q[at, :, i:end].float().unflatten(1, group)
            weights, _ = _weights(x, kf, hidden, scale)
            ds = torch.zeros_like(weights)
            if grad is not None:
                g = grad[at, :, i:end].float().unflatten(1, group)
                dp = g @ vf[:, :, None].mT
                dp = dp if hidden is None else dp.masked_fill_(hidden, 0.0)
                ds = weights * (dp - (weights * dp).sum(-1, keepdim=True))
                dv += (weights.mT @ g).sum(2)
            if grad_lse is not None:
                ds += weights * grad_lse[at, :, i:end].float().unflatten(1, group)[..., None]
            if hidden is not None:
                ds.masked_fill_(hidden, 0.0)
            results[0][at, :, i:end] = (ds @ kf[:, :, None] * scale).flatten(1, 2)
            dk += (ds.mT @ x).sum(2) * scale
        results[1][at], results[2][at] = dk, dv


def attention_of(saved: Saved, mask: Mask) -> tuple[Tensor, Tensor]:
    """Return the result and ``lse`` of a call by matmuls that torch can differentiate any number of times.

    All scores are in memory at once.
    """
    q = saved.q
    results: list[Tensor] = []
    logs: list[Tensor] = []
    for part in _sequences(saved, (), None, mask):
        queries, keys, size = part.q.shape[2], part.k.shape[2], q.shape[-1]
        group = (part.k.shape[1], part.q.shape[1] // part.k.shape[1])
        hidden = mask.hidden(0, queries, queries, keys, q.device)
        weights, scores = _weights(part.q.float().unflatten(1, group), part.k.float(), hidden, mask.factor(size))
        results.append((weights @ part.v.float()[:, :, None]).flatten(1, 2).to(q.dtype))
        logs.append(scores.logsumexp(-1).flatten(1, 2))
    if saved.begins_q is None:
        out = results[0]
        return (out.transpose(1, 2) if LAYOUTS[mask.layout] != LAYOUTS["bhsd"] else out), logs[0]
    # Rows past the last sequence do not depend on the inputs.
    missing = q.shape[0] - sum(x.shape[2] for x in results)
    heads, size = q.shape[1:]
    out = torch.cat([*[x[0].transpose(0, 1) for x in results], q.new_zeros(missing, heads, size)])
    return out, torch.cat([*[x[0] for x in logs], logs[0].new_full((heads, missing), -math.inf)], 1)


# ------------------------------------------------------------------------------------------- functions of the operators


def forward(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor | None, cu_seqlens_k: Tensor | None, causal: str, left: int,
    right: int, scale: float | None, layout: str, max_seqlen_q: int | None, lse: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the result and ``lse``, which is empty if it is not needed; -1: no bound of the window."""
    window = None if left < 0 and right < 0 else (left if left >= 0 else None, right if right >= 0 else None)
    found = functions.attended(
        q, k, v, (causal or False, scale, window, lse, layout, max_seqlen_q, None, None), (cu_seqlens_q, cu_seqlens_k),
        device="cpu" if q.device.type == "cpu" else None,
    )  # fmt: skip
    return found if lse else (found, q.new_empty(0, dtype=torch.float32))


def fake(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor | None, cu_seqlens_k: Tensor | None, causal: str, left: int,
    right: int, scale: float | None, layout: str, max_seqlen_q: int | None, lse: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    if q.dim() == 4 and q.stride(1) < q.stride(2):
        result = torch.empty_like(q.transpose(1, 2), memory_format=torch.contiguous_format).transpose(1, 2)
    else:
        result = torch.empty_like(q, memory_format=torch.contiguous_format)
    rows = [q.shape[1], q.shape[0]]
    if q.dim() == 4:
        rows = [q.shape[i] for i in LAYOUTS[layout][:3]]
    return result, q.new_empty(rows if lse else 0, dtype=torch.float32)


def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.mask = inputs[5:11]
    ctx.save_for_backward(*inputs[:5], *output)
    ctx.set_materialize_grads(False)
    ctx.settings = _settings


def _settings() -> object:
    """Return the settings that select a kernel of the gradients."""
    return torch.are_deterministic_algorithms_enabled(), torch.backends.cuda.cudnn_sdp_enabled()


def backward(ctx: Any, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[Any, ...]:
    saved = Saved(*ctx.saved_tensors)
    if grad is None and grad_lse is None:
        return (None,) * 12
    if torch.is_grad_enabled():  # create_graph=True: differentiable gradients
        of = [i for i in range(3) if ctx.needs_input_grad[i]]
        pairs = [(x, g) for x, g in zip(attention_of(saved, Mask(*ctx.mask)), (grad, grad_lse)) if g is not None]
        results, given = [x for x, _ in pairs], [g for _, g in pairs]
        inputs = [(saved.q, saved.k, saved.v)[i] for i in of]
        again = dict(zip(of, torch.autograd.grad(results, inputs, given, create_graph=True)))
        return (*[again.get(i) for i in range(3)], *(None,) * 9)
    return (*CUTE.attention_backward(*saved, grad, grad_lse, *ctx.mask), *(None,) * 9)


def forward_gradients(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor | None, cu_seqlens_k: Tensor | None, out: Tensor, lse: Tensor,
    grad: Tensor | None, grad_lse: Tensor | None, causal: str, left: int, right: int, scale: float | None, layout: str,
    max_seqlen_q: int | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of q, k and v."""
    mask = Mask(causal, left, right, scale, layout, max_seqlen_q)
    return gradients(Saved(q, k, v, cu_seqlens_q, cu_seqlens_k, out, lse), grad, grad_lse, mask)


def fake_gradients(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    return empty_gradients(*inputs[:3], layout=inputs[13])
