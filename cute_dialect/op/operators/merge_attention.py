"""The operator ``torch.ops.cute.merge_attention`` and its gradients."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cute_dialect.op.functions import merge_attention as functions


def forward(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    return functions.merged(outs, lses, "cpu" if outs.device.type == "cpu" else None)


def fake(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    return outs.new_empty(outs.shape[1:]), lses.new_empty(lses.shape[1:])


def keep(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)
    ctx.set_materialize_grads(False)


def backward(ctx: Any, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
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
