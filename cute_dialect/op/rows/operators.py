"""The row functions as torch operators: ``torch.ops.cute.softmax`` and so on, with fake kernels and gradients.

Tensors in CPU memory run on the interpreter.
"""

# torch is not installed where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cute_dialect.op.rows import functions as rows
from cute_dialect.op.rows import gradients as row_grads
from cute_dialect.op.torch_operator import TorchOperator

__all__ = [
    "cross_entropy", "cross_entropy_backward", "layer_norm", "layer_norm_backward", "layer_norm_residual",
    "log_softmax", "log_softmax_backward", "logsumexp_backward", "max_backward", "rms_norm", "rms_norm_backward",
    "rms_norm_residual", "row_number", "softmax", "softmax_backward",
]  # fmt: skip


def _device(x: Tensor) -> str | None:
    return "cpu" if x.is_cpu else None


def _contiguous(x: Tensor) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


# ----------------------------------------------------------------------------------------------------------- softmax


def _softmax(x: Tensor) -> Tensor:
    return rows.mapped("softmax", x, device=_device(x))


def _softmax_backward(dy: Tensor, y: Tensor) -> Tensor:
    return row_grads.softmax_backward(dy, y, device=_device(y))


def _log_softmax(x: Tensor) -> Tensor:
    return rows.mapped("log_softmax", x, device=_device(x))


def _log_softmax_backward(dy: Tensor, y: Tensor) -> Tensor:
    return row_grads.log_softmax_backward(dy, y, device=_device(y))


def _keep_output(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output)


def _softmax_gradient(ctx: Any, dy: Tensor) -> Tensor:
    return softmax_backward(dy, *ctx.saved_tensors)


def _log_softmax_gradient(ctx: Any, dy: Tensor) -> Tensor:
    return log_softmax_backward(dy, *ctx.saved_tensors)


def _like_output(dy: Tensor, y: Tensor) -> Tensor:
    return _contiguous(y)


softmax_backward = TorchOperator("softmax_backward", _softmax_backward, _like_output)
log_softmax_backward = TorchOperator("log_softmax_backward", _log_softmax_backward, _like_output)
softmax = TorchOperator("softmax", _softmax, _contiguous, keep=_keep_output, backward=_softmax_gradient)
log_softmax = TorchOperator("log_softmax", _log_softmax, _contiguous, keep=_keep_output, backward=_log_softmax_gradient)


# ------------------------------------------------------------------------------------------------------------- norms


def _rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return rows.normed("rms_norm", x, weight, None, eps, device=_device(x))


def _rms_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor | None, eps: float, ds: Tensor | None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients of the row and the weight.  An operator cannot return None, so absent ones are empty."""
    dx, dw = row_grads.rms_norm_backward(dy, x, weight, eps, ds=ds, device=_device(x))
    return dx, x.new_empty(0) if dw is None else dw


def _layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    return rows.normed("layer_norm", x, weight, bias, eps, device=_device(x))


def _layer_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor | None, bias: bool, eps: float, ds: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of the row, the weight and the bias; absent ones are empty."""
    dx, dw, db = row_grads.layer_norm_backward(dy, x, weight, bias, eps, ds=ds, device=_device(x))
    return dx, x.new_empty(0) if dw is None else dw, x.new_empty(0) if db is None else db


def _rms_norm_residual(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    """Return the RMS norm of ``x + residual``, and that sum."""
    return rows.normed("rms_norm", x, weight, None, eps, residual, device=_device(x))


def _layer_norm_residual(
    x: Tensor, residual: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the layer norm of ``x + residual``, and that sum."""
    return rows.normed("layer_norm", x, weight, bias, eps, residual, device=_device(x))


def _vector(x: Tensor, there: bool) -> Tensor:
    return x.new_empty(x.shape[-1] if there else 0)


def _rms_norm_shapes(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return _contiguous(x)


def _layer_norm_shapes(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    return _contiguous(x)


def _rms_norm_residual_shapes(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    return _contiguous(x), _contiguous(x)


def _layer_norm_residual_shapes(
    x: Tensor, residual: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _contiguous(x), _contiguous(x)


def _rms_norm_backward_shapes(
    dy: Tensor, x: Tensor, weight: Tensor | None, eps: float, ds: Tensor | None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _contiguous(x), _vector(x, weight is not None)


def _layer_norm_backward_shapes(
    dy: Tensor, x: Tensor, weight: Tensor | None, bias: bool, eps: float, ds: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return _contiguous(x), _vector(x, weight is not None), _vector(x, bias)


def _keep_norm(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    *tensors, ctx.eps = inputs
    if isinstance(output, tuple):  # With a residual, the sum is normalized.
        weights, row = tensors[2:], output[1]
        ctx.set_materialize_grads(False)
    else:
        row, *weights = tensors
    ctx.kinds = [w is not None for w in weights]
    ctx.save_for_backward(row, *weights[:1])


def _norm_gradients(ctx: Any, dy: Tensor, ds: Tensor | None = None) -> tuple[Tensor, list[Tensor | None]]:
    """Return the gradients of the normalized row, and of the weight and the bias if the norm has any.

    ``ds`` is added to the first one.
    """
    row, weight = ctx.saved_tensors
    if len(ctx.kinds) == 1:
        dx, *vectors = rms_norm_backward(dy, row, weight, ctx.eps, ds)
    else:
        dx, *vectors = layer_norm_backward(dy, row, weight, ctx.kinds[1], ctx.eps, ds)
    return dx, [v if there else None for v, there in zip(vectors, ctx.kinds)]


def _norm_backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    dx, vectors = _norm_gradients(ctx, dy)
    return dx, *vectors, None


def _residual_backward(ctx: Any, dy: Tensor | None, ds: Tensor | None) -> tuple[Any, ...]:
    if dy is None:  # Only the sum is used.
        return ds, ds, *[None] * len(ctx.kinds), None
    dx, vectors = _norm_gradients(ctx, dy, ds)
    return dx, dx, *vectors, None


rms_norm_backward = TorchOperator("rms_norm_backward", _rms_norm_backward, _rms_norm_backward_shapes)
layer_norm_backward = TorchOperator("layer_norm_backward", _layer_norm_backward, _layer_norm_backward_shapes)
rms_norm = TorchOperator("rms_norm", _rms_norm, _rms_norm_shapes, keep=_keep_norm, backward=_norm_backward)
layer_norm = TorchOperator("layer_norm", _layer_norm, _layer_norm_shapes, keep=_keep_norm, backward=_norm_backward)
rms_norm_residual = TorchOperator(
    "rms_norm_residual", _rms_norm_residual, _rms_norm_residual_shapes, keep=_keep_norm, backward=_residual_backward
)
layer_norm_residual = TorchOperator(
    "layer_norm_residual", _layer_norm_residual, _layer_norm_residual_shapes, keep=_keep_norm,
    backward=_residual_backward,
)  # fmt: skip


# ----------------------------------------------------------------------------------------------------- cross entropy


def _cross_entropy(x: Tensor, target: Tensor, ignore_index: int, reduction: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return the losses, logsumexp of each row, and the number of targets (empty without a reduction)."""
    losses, lse, count = rows.cross_entropy_with_lse(x, target, ignore_index, reduction, _device(x))
    return losses, lse, lse.new_empty(0) if count is None else count


def _cross_entropy_backward(
    g: Tensor, x: Tensor, target: Tensor, lse: Tensor, count: Tensor | None, ignore_index: int
) -> Tensor:  # fmt: skip
    return row_grads.cross_entropy_backward(g, x, target, lse, count, ignore_index, device=_device(x))


def _cross_entropy_shapes(
    x: Tensor, target: Tensor, ignore_index: int, reduction: str
) -> tuple[Tensor, Tensor, Tensor]:
    lse = x.new_empty(x.shape[:-1], dtype=torch.float32)
    if reduction == "none":
        return torch.empty_like(lse), lse, lse.new_empty(0)
    return x.new_empty(()), lse, lse.new_empty(())


def _cross_entropy_backward_shapes(
    g: Tensor, x: Tensor, target: Tensor, lse: Tensor, count: Tensor | None, ignore_index: int
) -> Tensor:
    return _contiguous(x)


def _no_settings() -> None:
    """Return the settings of torch on which the gradients depend: none."""


def _keep_entropy(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    ctx.settings = _no_settings
    x, target, ctx.ignore_index, reduction = inputs
    ctx.mean = reduction == "mean"
    ctx.save_for_backward(x, target, *output[1:])
    ctx.mark_non_differentiable(output[2])
    ctx.set_materialize_grads(False)


def _entropy_backward(ctx: Any, g: Tensor | None, of_lse: Tensor | None, _: Any) -> tuple[Any, ...]:
    x, target, lse, count = ctx.saved_tensors
    dx = None
    if g is not None:
        dx = cross_entropy_backward(g, x, target, lse, count if ctx.mean else None, ctx.ignore_index)
    if of_lse is not None:  # The gradient of logsumexp is that of a loss whose target is not a class.
        nowhere = torch.full_like(target, -1)
        more = cross_entropy_backward(of_lse, x, nowhere, lse, None, -2)
        dx = more if dx is None else dx + more
    return dx, None, None, None


cross_entropy_backward = TorchOperator(
    "cross_entropy_backward", _cross_entropy_backward, _cross_entropy_backward_shapes
)
cross_entropy = TorchOperator(
    "cross_entropy", _cross_entropy, _cross_entropy_shapes, keep=_keep_entropy, backward=_entropy_backward
)


# ------------------------------------------------------------------------------------------------ numbers of rows


def _row_number(call: str, x: Tensor, keepdim: bool) -> Tensor:
    """Return ``sum``, ``mean``, ``max`` or ``logsumexp`` of each row."""
    return rows.summed(call, x, keepdim=keepdim, device=_device(x))


def _row_number_shapes(call: str, x: Tensor, keepdim: bool) -> Tensor:
    return x.new_empty((*x.shape[:-1], 1) if keepdim else x.shape[:-1])


def _keep_row(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.call, x, ctx.keepdim = inputs
    ctx.shape = x.shape
    if ctx.call in _BACKWARD:
        ctx.save_for_backward(x, output)


def _max_backward(dy: Tensor, x: Tensor) -> Tensor:
    return row_grads.number_backward("max", dy, x, device=_device(x))


def _logsumexp_backward(dy: Tensor, x: Tensor) -> Tensor:
    return row_grads.number_backward("logsumexp", dy, x, device=_device(x))


def _like_row(dy: Tensor, x: Tensor) -> Tensor:
    return _contiguous(x)


max_backward = TorchOperator("max_backward", _max_backward, _like_row)
logsumexp_backward = TorchOperator("logsumexp_backward", _logsumexp_backward, _like_row)
_BACKWARD = {"max": max_backward, "logsumexp": logsumexp_backward}


def _row_backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    if ctx.call not in _BACKWARD:
        dy = dy if ctx.keepdim else dy.unsqueeze(-1)
        return None, (dy / ctx.shape[-1] if ctx.call == "mean" else dy).expand(ctx.shape), None
    x, y = ctx.saved_tensors
    if not torch.is_grad_enabled() and x.numel() > 0:
        return None, _BACKWARD[ctx.call](dy, x), None
    y, dy = (t if ctx.keepdim else t.unsqueeze(-1) for t in (y, dy))
    if ctx.call == "max":  # Equal maxima share the gradient, as in torch.amax.
        share = (x == y).to(dy.dtype)
        return None, share * (dy / share.sum(-1, keepdim=True)), None
    return None, dy * torch.where(torch.isinf(y), torch.exp(x - y), softmax(x)), None


row_number = TorchOperator("row_number", _row_number, _row_number_shapes, keep=_keep_row, backward=_row_backward)
