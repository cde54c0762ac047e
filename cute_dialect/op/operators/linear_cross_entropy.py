"""The operator ``torch.ops.cute.linear_cross_entropy``, which returns gradients with the loss, and its backward."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cute_dialect.op.functions.linear_cross_entropy import NO_GRADIENTS, losses_and_gradients
from cute_dialect.op.problems.linear_cross_entropy import Settings, scale_of
from cute_dialect.op.torch.registry import CUTE


def _device(x: Tensor) -> str | None:
    return "cpu" if x.is_cpu else None


def _given(t: Tensor | None, x: Tensor) -> Tensor:
    """Return a gradient.  An operator cannot return None, so absent ones are empty."""
    return x.new_empty(0) if t is None else t


def forward(x: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None, *settings: Any) -> tuple[Tensor, ...]:
    """Return the loss, ``logsumexp`` of each row, and the gradients, times a power of two.

    With ``reduction="none"`` the gradients depend on those of all losses, and are computed in the backward pass.
    """
    how, (of_x, of_weight, of_bias) = Settings(*settings[:4]), settings[4:]
    needs = (of_x, of_weight, of_bias) if how.reduction != "none" else NO_GRADIENTS
    with torch.no_grad():
        found = losses_and_gradients(x, weight, target, bias, how, needs=needs, device=_device(x))
    return found.loss, found.lse, *[_given(t, x) for t in found[2:]]


def fake(
    x: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None, ignore_index: int, reduction: str, *others: Any
) -> tuple[Tensor, ...]:
    lse = x.new_empty(x.shape[:-1], dtype=torch.float32)
    if reduction == "none":
        return torch.empty_like(lse), lse, *[x.new_empty(0) for _ in range(3)]
    return lse.new_empty(()), lse, *_fake_gradients(x, weight, bias, others[2:])


def _fake_gradients(x: Tensor, weight: Tensor, bias: Tensor | None, needs: tuple[bool, ...]) -> list[Tensor]:
    return [x.new_empty(t.shape if t is not None and need else 0) for t, need in zip((x, weight, bias), needs)]


def keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weight, target, bias, *how = inputs
    ctx.how, ctx.needs, ctx.has_bias = how[:4], how[4:], bias is not None
    ctx.scale = scale_of(target.numel(), how[1])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)
    if how[1] == "none":
        ctx.save_for_backward(x, weight, target, bias, output[1])
    else:
        ctx.save_for_backward(*output[2:])


def backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Any, ...]:
    unused = (None,) * 7
    if grad is None:
        return (None,) * 11
    if ctx.how[1] == "none":
        found = CUTE.linear_cross_entropy_backward(grad, *ctx.saved_tensors, *ctx.how, *ctx.needs)
    else:
        found = [CUTE.scaled_gradient(t, grad, ctx.scale) if n else t for t, n in zip(ctx.saved_tensors, ctx.needs)]
    of_x, of_weight, of_bias = (t if need else None for t, need in zip(found, ctx.needs))
    return of_x, of_weight, None, of_bias, *unused


def forward_gradients(
    grad: Tensor, x: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None, lse: Tensor, *settings: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients from that of each row's loss; those that are not needed are empty."""
    how, needs, flat = Settings(*settings[:4]), (settings[4], settings[5], settings[6]), grad.reshape(-1).contiguous()
    with torch.no_grad():
        found = losses_and_gradients(x, weight, target, bias, how, needs=needs, lse=lse, grad=flat, device=_device(x))
    return _given(found.x, x), _given(found.weight, x), _given(found.bias, x)


def fake_gradients(
    grad: Tensor, x: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None, lse: Tensor, *settings: Any
) -> tuple[Tensor, ...]:
    return tuple(_fake_gradients(x, weight, bias, settings[4:]))


def scaled(gradient: Tensor, factor: Tensor, scale: float) -> Tensor:
    """Return ``gradient * factor / scale`` in new memory, computed in f32 and rounded once."""
    found = torch.empty_like(gradient)
    # With a dimension, an f32 factor is not rounded to the type of the gradient.
    return torch.mul(gradient, (factor.float() / scale).reshape((1,) * gradient.dim()), out=found)


def fake_scaled(gradient: Tensor, factor: Tensor, scale: float) -> Tensor:
    return torch.empty_like(gradient)
