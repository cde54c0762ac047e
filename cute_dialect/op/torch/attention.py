"""Functions of the operators ``torch.ops.cute.attention`` and ``attention_backward``."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cute_dialect.op.functions import attention as functions
from cute_dialect.op.problems.attention import LAYOUTS
from cute_dialect.op.torch.attention_gradients import Mask, Saved, attention_of, empty_gradients, gradients
from cute_dialect.op.torch.registry import CUTE


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
