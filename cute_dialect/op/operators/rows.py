"""Operators of row functions, such as ``torch.ops.cute.softmax``, of gated activations, and of quantization.

Tensors in CPU memory run on the interpreter.
"""

# torch is not installed where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from cute_dialect.op.arrays.dtypes import torch_name
from cute_dialect.op.functions import gated, rows
from cute_dialect.op.functions import row_gradients as row_grads
from cute_dialect.op.functions.quantize import Operands, dequantized, quantized_norm, with_given_scales, with_own_scales
from cute_dialect.op.functions.sampling import sampled, selected
from cute_dialect.op.functions.sampling import topk_backward as topk_gradients
from cute_dialect.op.problems.rows import NUMBERS_BY_KERNEL, NormQuantization, shape_of_scales
from cute_dialect.op.torch.autograd import Context, no_settings
from cute_dialect.op.torch.registry import CUTE


def _device(x: Tensor) -> str | None:
    return "cpu" if x.is_cpu else None


def _contiguous(x: Tensor) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def fake_like(place: int = 0, count: int = 1) -> Callable[..., Any]:
    """Return the fake of an operator whose ``count`` results are like the argument at index ``place``."""

    def fake(*inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        made = tuple([_contiguous(inputs[place]) for _ in range(count)])
        return made if count > 1 else made[0]

    return fake


# -------------------------------------------------------------------------------------------------------------- maps


def mapped(call: str) -> Callable[[Tensor], Tensor]:
    """Return the function of a row function in :data:`~cute_dialect.op.problems.rows.MAPS`."""
    return lambda x: rows.mapped(call, x, device=_device(x))


def mapped_backward(call: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the function that computes the gradient from the result."""
    return lambda dy, y: row_grads.mapped_backward(call, dy, y, _device(y))


def keep_output(ctx: Context, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.settings = no_settings
    ctx.save_for_backward(output)


def mapped_gradient(call: str) -> Callable[[Context, Tensor], Tensor]:
    """Return the backward pass."""
    return lambda ctx, dy: getattr(CUTE, f"{call}_backward")(dy, *ctx.saved_tensors)


# ------------------------------------------------------------------------------------------------------------- norms


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return rows.normed("rms_norm", x, weight, None, eps, device=_device(x))


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    return rows.normed("layer_norm", x, weight, bias, eps, device=_device(x))


def rms_norm_residual(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    """Return the RMS norm of ``x + residual``, and that sum."""
    return rows.normed("rms_norm", x, weight, None, eps, residual, device=_device(x))


def layer_norm_residual(
    x: Tensor, residual: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    """Return the layer norm of ``x + residual``, and that sum."""
    return rows.normed("layer_norm", x, weight, bias, eps, residual, device=_device(x))


def rms_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor | None, eps: float, ds: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the row and the weight.  An operator cannot return None, so absent ones are empty."""
    dx, dw = row_grads.rms_norm_backward(dy, x, weight, eps, ds=ds, device=_device(x))
    return dx, x.new_empty(0) if dw is None else dw


def layer_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor | None, bias: bool, eps: float, ds: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the row, the weight and the bias; absent ones are empty."""
    dx, dw, db = row_grads.layer_norm_backward(dy, x, weight, bias, eps, ds=ds, device=_device(x))
    return dx, x.new_empty(0) if dw is None else dw, x.new_empty(0) if db is None else db


def _vector(x: Tensor, there: bool) -> Tensor:
    return x.new_empty(x.shape[-1] if there else 0)


def fake_rms_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor | None, eps: float, ds: Tensor | None
) -> tuple[Tensor, Tensor]:
    return _contiguous(x), _vector(x, weight is not None)


def fake_layer_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor | None, bias: bool, eps: float, ds: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    return _contiguous(x), _vector(x, weight is not None), _vector(x, bias)


def keep_norm(ctx: Context, inputs: tuple[Any, ...], output: Tensor | tuple[Tensor, ...]) -> None:
    *tensors, ctx.eps = inputs
    if isinstance(output, tuple):  # With a residual, the sum is normalized.
        weights, row = tensors[2:], output[1]
        ctx.set_materialize_grads(False)
    else:
        row, *weights = tensors
    ctx.kinds, ctx.settings = [w is not None for w in weights], no_settings
    ctx.save_for_backward(row, *weights[:1])


def _norm_gradients(ctx: Context, dy: Tensor, ds: Tensor | None = None) -> tuple[Tensor, list[Tensor | None]]:
    """Return the gradients of the normalized row, and of the weight and the bias if the norm has any.

    ``ds`` is added to the first one.
    """
    row, weight = ctx.saved_tensors
    if len(ctx.kinds) == 1:
        dx, *vectors = CUTE.rms_norm_backward(dy, row, weight, ctx.eps, ds)
    else:
        dx, *vectors = CUTE.layer_norm_backward(dy, row, weight, ctx.kinds[1], ctx.eps, ds)
    return dx, [v if there else None for v, there in zip(vectors, ctx.kinds)]


def norm_gradient(ctx: Context, dy: Tensor) -> tuple[Tensor | None, ...]:
    dx, vectors = _norm_gradients(ctx, dy)
    return dx, *vectors, None


def residual_gradient(ctx: Context, dy: Tensor | None, ds: Tensor | None) -> tuple[Tensor | None, ...]:
    if dy is None:  # Only the sum is used.
        return ds, ds, *[None] * len(ctx.kinds), None
    dx, vectors = _norm_gradients(ctx, dy, ds)
    return dx, dx, *vectors, None


# ----------------------------------------------------------------------------------------------------- cross entropy


def cross_entropy(x: Tensor, target: Tensor, ignore_index: int, reduction: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return the losses, logsumexp of each row, and the number of targets (empty without a reduction)."""
    losses, lse, count = rows.cross_entropy_with_lse(x, target, ignore_index, reduction, _device(x))
    return losses, lse, lse.new_empty(0) if count is None else count


def cross_entropy_backward(
    g: Tensor, x: Tensor, target: Tensor, lse: Tensor, count: Tensor | None, ignore_index: int
) -> Tensor:
    return row_grads.cross_entropy_backward(g, x, target, lse, count, ignore_index, device=_device(x))


def fake_cross_entropy(x: Tensor, target: Tensor, ignore_index: int, reduction: str) -> tuple[Tensor, Tensor, Tensor]:
    lse = x.new_empty(x.shape[:-1], dtype=torch.float32)
    if reduction == "none":
        return torch.empty_like(lse), lse, lse.new_empty(0)
    return x.new_empty(()), lse, lse.new_empty(())


def keep_entropy(ctx: Context, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    ctx.settings = no_settings
    x, target, ctx.ignore_index, reduction = inputs
    ctx.mean = reduction == "mean"
    ctx.save_for_backward(x, target, *output[1:])
    ctx.mark_non_differentiable(output[2])
    ctx.set_materialize_grads(False)


def entropy_gradient(ctx: Context, g: Tensor | None, of_lse: Tensor | None, _: object) -> tuple[Tensor | None, ...]:
    x, target, lse, count = ctx.saved_tensors
    dx = None
    if g is not None:
        dx = CUTE.cross_entropy_backward(g, x, target, lse, count if ctx.mean else None, ctx.ignore_index)
    if of_lse is not None:  # The gradient of logsumexp is that of a loss whose target is not a class.
        nowhere = torch.full_like(target, -1)
        more = CUTE.cross_entropy_backward(of_lse, x, nowhere, lse, None, -2)
        dx = more if dx is None else dx + more
    return dx, None, None, None


# ------------------------------------------------------------------------------------------------ numbers of rows


def row_number(call: str, x: Tensor, keepdim: bool) -> Tensor:
    """Return ``sum``, ``mean``, ``max`` or ``logsumexp`` of each row."""
    return rows.summed(call, x, keepdim=keepdim, device=_device(x))


def fake_row_number(call: str, x: Tensor, keepdim: bool) -> Tensor:
    return x.new_empty((*x.shape[:-1], 1) if keepdim else x.shape[:-1])


def keep_row(ctx: Context, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.call, x, ctx.keepdim = inputs
    ctx.shape, ctx.settings = x.shape, no_settings
    if ctx.call in NUMBERS_BY_KERNEL:
        ctx.save_for_backward(x, output)


def number_backward(call: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the function that computes the gradient from the row."""
    return lambda dy, x: row_grads.number_backward(call, dy, x, device=_device(x))


def row_gradient(ctx: Context, dy: Tensor) -> tuple[Tensor | None, ...]:
    if ctx.call not in NUMBERS_BY_KERNEL:
        dy = dy if ctx.keepdim else dy.unsqueeze(-1)
        return None, (dy / ctx.shape[-1] if ctx.call == "mean" else dy).expand(ctx.shape), None
    x, y = ctx.saved_tensors
    if not torch.is_grad_enabled() and x.numel() > 0:
        return None, getattr(CUTE, f"{ctx.call}_backward")(dy, x), None
    y, dy = (t if ctx.keepdim else t.unsqueeze(-1) for t in (y, dy))
    if ctx.call == "max":  # Equal maxima share the gradient, as in torch.amax.
        share = (x == y).to(dy.dtype)
        return None, share * (dy / share.sum(-1, keepdim=True)), None
    return None, dy * torch.where(torch.isinf(y), torch.exp(x - y), CUTE.softmax(x)), None


def gated_activation(x: Tensor, activation: str) -> Tensor:
    return gated.activated(x, activation, _device(x))


def fake_gated(x: Tensor, activation: str) -> Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


def keep_gated(ctx: Context, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, ctx.activation = inputs
    ctx.settings = no_settings
    ctx.save_for_backward(x)


def gated_backward(ctx: Context, dy: Tensor) -> tuple[Tensor | None, ...]:
    return CUTE.gated_backward(dy, *ctx.saved_tensors, ctx.activation), None


def gated_gradient(dy: Tensor, x: Tensor, activation: str) -> Tensor:
    return gated.gated_backward(dy, x, activation, _device(x))


def fake_gated_gradient(dy: Tensor, x: Tensor, activation: str) -> Tensor:
    return x.new_empty(x.shape)


def quantize(x: Tensor, dtype: str, regions: str) -> tuple[Tensor, Tensor]:
    return with_own_scales(x, dtype, regions, _device(x))


def fake_quantize(x: Tensor, dtype: str, regions: str) -> tuple[Tensor, Tensor]:
    scales = shape_of_scales(regions, tuple(x.shape))
    return fake_converted(x, x, dtype), x.new_empty(scales, dtype=torch.float32)


def quantize_scaled(x: Tensor, dtype: str, scale: Tensor) -> Tensor:
    return with_given_scales(x, dtype, scale, _device(x))


def fake_quantize_scaled(x: Tensor, dtype: str, scale: Tensor) -> Tensor:
    return fake_converted(x, scale, dtype)


def dequantize(q: Tensor, scales: Tensor, dtype: str) -> Tensor:
    return dequantized(q, scales, dtype, _device(q))


def fake_converted(x: Tensor, scales: Tensor, dtype: str) -> Tensor:
    return x.new_empty(x.shape, dtype=getattr(torch, torch_name(dtype)))


def norm_quantize(
    call: str, x: Tensor, residual: Tensor | None, weight: Tensor | None, bias: Tensor | None, eps: float, *to: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the quantized norm, its scales, and the sum with the residual, which is empty without one."""
    device = _device(x)

    def norm() -> Tensor:
        return rows.normed(call, x, weight, bias, eps, residual, None, device)

    found = quantized_norm(call, Operands(x, residual, weight, bias), eps, NormQuantization(*to), norm, device)
    return found if residual is not None else (*found, x.new_empty(0))


def fake_norm_quantize(
    call: str, x: Tensor, residual: Tensor | None, weight: Tensor | None, bias: Tensor | None, eps: float, *to: str
) -> tuple[Tensor, Tensor, Tensor]:
    return *fake_quantize(x, *to), x.new_empty(0 if residual is None else x.shape)


def sample(logits: Tensor, *settings: Any) -> Tensor:
    """Draw tokens; the settings are the arrays and then the numbers."""
    return sampled(logits, settings[:6], settings[6:], _device(logits))


def fake_sample(logits: Tensor, *settings: Any) -> Tensor:
    return logits.new_empty(logits.shape[:-1], dtype=torch.int32)


def topk(x: Tensor, k: int, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    return selected(x, k, dim, largest, _device(x))


def fake_topk(x: Tensor, k: int, dim: int, largest: bool) -> tuple[Tensor, Tensor]:
    shape = (*x.shape[:-1], k)
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)


def keep_topk(ctx: Context, inputs: tuple[Tensor, int, int, bool], output: tuple[Tensor, Tensor]) -> None:
    ctx.n, ctx.settings = inputs[0].shape[-1], no_settings
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])


def topk_gradient(ctx: Context, dvalues: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    return CUTE.topk_backward(dvalues, *ctx.saved_tensors, ctx.n), None, None, None


def topk_backward(dvalues: Tensor, indices: Tensor, n: int) -> Tensor:
    return topk_gradients(dvalues, indices, n, _device(dvalues))


def fake_topk_backward(dvalues: Tensor, indices: Tensor, n: int) -> Tensor:
    return dvalues.new_empty((*dvalues.shape[:-1], n))
