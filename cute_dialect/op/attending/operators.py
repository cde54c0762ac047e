"""Attention as an operator of torch, ``torch.ops.cute.attention``, with shapes for ``torch.compile`` and a gradient.

The gradient is torch's own, of ``scaled_dot_product_attention`` computed again; packed sequences have none.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# pyright: reportUnusedFunction=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from cute_dialect.op.attending import functions
from cute_dialect.op.attending.form import LAYOUTS
from cute_dialect.op.errors import UnsupportedError

__all__ = ["attention", "seen_keys"]


@torch.library.custom_op("cute::attention", mutates_args=())
def attention(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor | None, cu_seqlens_k: Tensor | None, causal: str, left: int,
    right: int, scale: float | None, layout: str, max_seqlen_q: int | None, lse: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the result, and the logarithms, empty where they are not asked for; -1: no bound of the window."""
    window = None if left < 0 and right < 0 else (left if left >= 0 else None, right if right >= 0 else None)
    found = functions.attended(
        q, k, v, (causal or False, scale, window, lse, layout, max_seqlen_q, None, None), (cu_seqlens_q, cu_seqlens_k),
        device="cpu" if q.device.type == "cpu" else None,
    )  # fmt: skip
    return found if lse else (found, q.new_empty(0, dtype=torch.float32))


@attention.register_fake
def _(
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


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, cu_seqlens_q, _, ctx.causal, ctx.left, ctx.right, ctx.scale, ctx.layout, _, _ = inputs
    if cu_seqlens_q is not None:
        raise UnsupportedError(
            "attention: expected no gradients of packed sequences, which nothing computes: under torch.no_grad() it "
            "works"
        )
    ctx.save_for_backward(q, k, v)
    ctx.mark_non_differentiable(output[1])


def _backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Any, ...]:
    q, k, v = ctx.saved_tensors
    turn = ctx.layout == "bshd"
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        a, b, c = (x.transpose(1, 2) if turn else x for x in leaves)
        shared = a.shape[1] // b.shape[1]
        if shared > 1:
            b, c = (x.repeat_interleave(shared, 1) for x in (b, c))
        top_left = ctx.causal == "top_left" and ctx.left < 0
        seen = None if top_left else seen_keys(a, b, ctx.causal, ctx.left, ctx.right)
        again = scaled_dot_product_attention(a, b, c, attn_mask=seen, is_causal=top_left, scale=ctx.scale)
        found = torch.autograd.grad(again, leaves, grad.transpose(1, 2) if turn else grad)
    return (*found, *(None,) * 9)


def seen_keys(q: Tensor, k: Tensor, causal: str, left: int, right: int) -> Tensor | None:
    """Return which keys a query sees, None for all."""
    right = 0 if causal else right
    if left < 0 and right < 0:
        return None
    queries, keys = q.shape[2], k.shape[2]
    own = torch.arange(queries, device=q.device)[:, None] + (keys - queries if causal == "bottom_right" else 0)
    at = torch.arange(keys, device=q.device)[None]
    seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
    if left >= 0:
        seen &= at >= own - left
    if right >= 0:
        seen &= at <= own + right
    return seen


attention.register_autograd(_backward, setup_context=_keep)
