"""The operators ``torch.ops.cute.attention`` and ``attention_backward``: gradients by torch's kernels or by matmuls.

cuDNN's kernel is about twice as fast as torch's flash-attention kernel.  It supports full masks and square causal
masks.  The flash-attention kernel aligns windows and causal masks with the last key. :func:`pieces` splits a call into
kernel calls that have the right masks together.  Queries that see no key, and keys that no query sees, belong to no
piece::

    8 queries, 5 keys, causal="bottom_right": query i sees keys 0 … i - 3
    one piece: queries 3 … 7, keys 0 … 4, causal; the gradient of queries 0 … 2 is zero

    200 queries, 40 keys, causal="top_left": query i sees keys 0 … i
    two pieces: queries 0 … 38 and keys 0 … 38, causal; queries 39 … 199 and all keys

Neither kernel has a gradient of ``lse``.  Other calls use matmuls in f32, in blocks of bounded size
(:mod:`.attention_matmuls`).
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.attention_backward import (
    BACKWARD_CALL,
    BACKWARD_OTHERS,
    AttentionBackwardProblem,
    backward_form,
    choose_backward,
    launch_backward,
    missing_feature,
)
from cute_dialect.op.functions import attention as functions
from cute_dialect.op.operators.attention_matmuls import (
    Gradients,
    Mask,
    Saved,
    attention_of,
    empty_gradients,
    gradients_by_matmuls,
)
from cute_dialect.op.problems.attention import LAYOUTS
from cute_dialect.op.torch.registry import CUTE


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


def gradients(
    saved: Saved, grad: Tensor | None, grad_lse: Tensor | None, mask: Mask, of_bias: bool = False
) -> Gradients:
    """Return the gradients, in the types of the tensors, from those of the result and of ``lse`` (None for zero)."""
    q, k, v, begins_q, begins_k, out, lse = saved[:7]
    by_kernels = gradients_by_kernels(saved, grad, grad_lse, mask)
    if by_kernels is not None:
        return by_kernels
    if grad is not None and grad_lse is None and _is_plain(saved, mask) and _has_flash(q):
        if begins_q is None:
            return Gradients(*_turned_back(_flash(_rows_first(mask, q, k, v, out, grad), lse, mask), mask))
        # Sequences of different lengths: the kernel aligns each mask with the last key of its sequence.
        if mask.is_full or mask.causal == "bottom_right" or begins_q is begins_k:
            return Gradients(*_flash_packed(saved, grad, mask))
    return gradients_by_matmuls(saved, grad, grad_lse, mask, of_bias)


def gradients_by_kernels(saved: Saved, grad: Tensor | None, grad_lse: Tensor | None, mask: Mask) -> Gradients | None:
    """Return the gradients by the library's kernels, or None for calls that they do not support."""
    q, k, v, begins_q, begins_k, out, lse = saved[:7]
    if not q.is_cuda or saved.has_functions or mask.softcap or 0 in (q.numel(), k.numel(), lse.numel()):
        return None
    grad = torch.zeros_like(out) if grad is None else grad
    arrays = {"q": q, "k": k, "v": v, "out": out, "dout": grad, "lse": lse, "dlse": grad_lse}
    one = RowCall(
        BACKWARD_CALL, arrays | {"cu_seqlens_q": begins_q, "cu_seqlens_k": begins_k}, None, BACKWARD_OTHERS,
    )  # fmt: skip
    form = backward_form(
        one.views, mask.causal or False, mask.scale, mask.window, mask.layout, mask.longest
    )  # fmt: skip
    ordered = torch.are_deterministic_algorithms_enabled() if mask.deterministic is None else mask.deterministic
    longest = mask.longest if begins_q is begins_k else None
    problem = AttentionBackwardProblem(form, grad_lse is not None, ordered, longest)
    if missing_feature(problem):
        return None
    results = empty_gradients(q, k, v, mask.layout)
    if begins_q is not None:  # padding rows have no gradient
        results = results[0].zero_(), results[1].zero_(), results[2].zero_()
    launch_backward(one, choose_backward(problem), results)
    return Gradients(*results)


def _is_plain(saved: Saved, mask: Mask) -> bool:
    """Return True if torch's kernels have all functions of the call's scores."""
    q, k, v = saved[:3]
    if 0 in (q.numel(), k.numel(), saved.lse.numel()) or q.shape[-1] != v.shape[-1]:
        return False
    return not (saved.has_functions or mask.softcap) and mask.factor(q.shape[-1]) > 0


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
    q, k, v, begins_q, begins_k, out, lse = saved[:7]
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


# ------------------------------------------------------------------------------------------- functions of the operators


def forward(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor | None, cu_seqlens_k: Tensor | None, sinks: Tensor | None,
    alibi_slopes: Tensor | None, mask: Tensor | None, seqused_k: Tensor | None, page_table: Tensor | None, causal: str,
    left: int, right: int, scale: float | None, layout: str, max_seqlen_q: int | None, softcap: float,
    deterministic: bool | None, lse: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the result and ``lse``, which is empty if it is not needed; -1: no bound of the window."""
    window = Mask(causal, left, right, scale, layout, max_seqlen_q).window
    found = functions.attended(
        q, k, v, (causal or False, scale, window, softcap, lse, layout, max_seqlen_q, None, None),
        (cu_seqlens_q, cu_seqlens_k, sinks, alibi_slopes, mask, seqused_k, page_table),
        device="cpu" if q.device.type == "cpu" else None,
    )  # fmt: skip
    return found if lse else (found, q.new_empty(0, dtype=torch.float32))


def fake(q: Tensor, k: Tensor, v: Tensor, *more: Any) -> tuple[Tensor, Tensor]:
    layout, lse = more[11], more[-1]
    like = q if q.shape[-1] == v.shape[-1] else q.new_empty(1).expand(*q.shape[:-1], v.shape[-1])
    if q.dim() == 4 and q.stride(1) < q.stride(2):
        result = torch.empty_like(like.transpose(1, 2), memory_format=torch.contiguous_format).transpose(1, 2)
    else:
        result = torch.empty_like(like, memory_format=torch.contiguous_format)
    rows = [q.shape[1], q.shape[0]]
    if q.dim() == 4:
        rows = [q.shape[i] for i in LAYOUTS[layout][:3]]
    return result, q.new_empty(rows if lse else 0, dtype=torch.float32)


_TENSORS, _CACHES, _ARGUMENTS = 8, 2, 19
"""Arguments of the operator: tensors that have gradients or affect them, tensors of caches, and all."""


def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.mask = inputs[_TENSORS + _CACHES : -1]
    ctx.save_for_backward(*inputs[:5], *output, *inputs[5:_TENSORS])
    ctx.set_materialize_grads(False)
    ctx.settings = _settings


def _settings() -> object:
    """Return the settings that select a kernel of the gradients."""
    return torch.are_deterministic_algorithms_enabled(), torch.backends.cuda.cudnn_sdp_enabled()


def backward(ctx: Any, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[Any, ...]:
    saved = Saved(*ctx.saved_tensors)
    found: dict[int, Any] = {}
    needs = ctx.needs_input_grad
    if grad is None and grad_lse is None:
        return (None,) * _ARGUMENTS
    if torch.is_grad_enabled():  # create_graph=True: differentiable gradients
        inputs: dict[int, Any] = {0: saved.q, 1: saved.k, 2: saved.v, 5: saved.sinks, 7: saved.bias}
        of = [i for i, x in inputs.items() if needs[i] and x is not None]
        pairs = [(x, g) for x, g in zip(attention_of(saved, Mask(*ctx.mask)), (grad, grad_lse)) if g is not None]
        results, given = [x for x, _ in pairs], [g for _, g in pairs]
        again = torch.autograd.grad(results, [inputs[i] for i in of], given, create_graph=True, allow_unused=True)
        found = dict(zip(of, again))
    else:
        tensors = (*saved[:5], *saved[7:], *saved[5:7], grad, grad_lse)
        made = CUTE.attention_backward(*tensors, *ctx.mask, needs[7])
        found = {i: x for i, x in zip((0, 1, 2, 5, 7), made) if needs[i]}
    return tuple([found.get(i) for i in range(_ARGUMENTS)])


def forward_gradients(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor | None, cu_seqlens_k: Tensor | None, sinks: Tensor | None,
    alibi_slopes: Tensor | None, mask: Tensor | None, out: Tensor, lse: Tensor, grad: Tensor | None,
    grad_lse: Tensor | None, causal: str, left: int, right: int, scale: float | None, layout: str,
    max_seqlen_q: int | None, softcap: float, deterministic: bool | None, of_mask: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return the gradients of q, k, v, sinks and mask; the last two are empty if they are not needed."""
    saved = Saved(q, k, v, cu_seqlens_q, cu_seqlens_k, out, lse, sinks, alibi_slopes, mask)
    how = Mask(causal, left, right, scale, layout, max_seqlen_q, softcap, deterministic)
    found = gradients(saved, grad, grad_lse, how, of_mask)
    return tuple([q.new_empty(0) if x is None else x for x in found])


def fake_gradients(*inputs: Any) -> tuple[Tensor, ...]:
    q, sinks, mask = inputs[0], inputs[5], inputs[7]
    like = [x.new_empty(x.shape) if x is not None and used else q.new_empty(0)
            for x, used in ((sinks, True), (mask, inputs[-1]))]  # fmt: skip
    return (*empty_gradients(*inputs[:3], layout=inputs[16]), *like)


# --------------------------------------------------------------------------------------------------------------- merges


def forward_merge(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    return functions.merged(outs, lses, "cpu" if outs.device.type == "cpu" else None)


def fake_merge(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    return outs.new_empty(outs.shape[1:]), lses.new_empty(lses.shape[1:])


def keep_merge(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)
    ctx.set_materialize_grads(False)


def backward_merge(ctx: Any, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Return ``w[p] grad`` and ``w[p] (grad . (outs[p] - out) + grad_lse)`` with ``w[p] = e^(lses[p] - lse)``."""
    outs, lses, out, lse = ctx.saved_tensors
    if grad is None and grad_lse is None:
        return None, None
    weights = torch.where(lses == -torch.inf, 0.0, (lses - lse).exp())
    of_outs = of_lses = None
    if grad is not None:
        of_outs = (weights[..., None] * grad).to(outs.dtype)
        of_lses = weights * ((outs.float() - out.float()) * grad.float()).sum(-1)
    if grad_lse is not None:
        of_lses = weights * grad_lse + (0 if of_lses is None else of_lses)
    return of_outs, of_lses
