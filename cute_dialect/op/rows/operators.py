"""The functions on rows as operators of torch: ``torch.ops.cute.softmax`` and so on, with fake kernels and gradients.

``torch.compile``, ``torch.export`` and autograd take these; the functions themselves call them where a gradient is
wanted.  Tensors on the CPU run on the interpreter.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# pyright: reportUnusedFunction=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cute_dialect.op.rows import functions as rows
from cute_dialect.op.rows import gradients as row_grads

__all__ = [
    "cross_entropy", "cross_entropy_backward", "layer_norm", "layer_norm_backward", "layer_norm_residual",
    "log_softmax", "log_softmax_backward", "rms_norm", "rms_norm_backward", "rms_norm_residual", "row_number",
    "softmax", "softmax_backward",
]  # fmt: skip


def _device(x: Tensor) -> str | None:
    return "cpu" if x.device.type == "cpu" else None


def _contiguous(x: Tensor) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


# ----------------------------------------------------------------------------------------------------------- softmax


@torch.library.custom_op("cute::softmax", mutates_args=())
def softmax(x: Tensor) -> Tensor:
    """Return softmax along the last dimension."""
    return rows.mapped("softmax", x, device=_device(x))


@torch.library.custom_op("cute::softmax_backward", mutates_args=())
def softmax_backward(dy: Tensor, y: Tensor) -> Tensor:
    """Return the gradient of softmax."""
    return row_grads.softmax_backward(dy, y, device=_device(y))


@torch.library.custom_op("cute::log_softmax", mutates_args=())
def log_softmax(x: Tensor) -> Tensor:
    """Return the logarithm of softmax along the last dimension."""
    return rows.mapped("log_softmax", x, device=_device(x))


@torch.library.custom_op("cute::log_softmax_backward", mutates_args=())
def log_softmax_backward(dy: Tensor, y: Tensor) -> Tensor:
    """Return the gradient of the logarithm of softmax."""
    return row_grads.log_softmax_backward(dy, y, device=_device(y))


def _keep_output(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output)


for _forward, _backward in ((softmax, softmax_backward), (log_softmax, log_softmax_backward)):
    _forward.register_fake(_contiguous)
    _backward.register_fake(lambda dy, y: _contiguous(y))
    _forward.register_autograd(
        lambda ctx, dy, backward=_backward: backward(dy, *ctx.saved_tensors), setup_context=_keep_output
    )


# ------------------------------------------------------------------------------------------------------------- norms


@torch.library.custom_op("cute::rms_norm", mutates_args=())
def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Return the RMS norm along the last dimension."""
    return rows.normed("rms_norm", x, weight, None, eps, device=_device(x))


@torch.library.custom_op("cute::rms_norm_backward", mutates_args=())
def rms_norm_backward(dy: Tensor, x: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    """Return the gradients of the row and the weights, which are empty where there are none."""
    dx, dw = row_grads.rms_norm_backward(dy, x, weight, eps, device=_device(x))
    return dx, x.new_empty(0) if dw is None else dw


@torch.library.custom_op("cute::layer_norm", mutates_args=())
def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Return the layer norm along the last dimension."""
    return rows.normed("layer_norm", x, weight, bias, eps, device=_device(x))


@torch.library.custom_op("cute::layer_norm_backward", mutates_args=())
def layer_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor | None, bias: bool, eps: float
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of the row, the weights and the biases; empty ones of what there is not."""
    dx, dw, db = row_grads.layer_norm_backward(dy, x, weight, bias, eps, device=_device(x))
    return dx, x.new_empty(0) if dw is None else dw, x.new_empty(0) if db is None else db


@torch.library.custom_op("cute::rms_norm_residual", mutates_args=())
def rms_norm_residual(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    """Return the RMS norm of a sum, and that sum."""
    return rows.normed("rms_norm", x, weight, None, eps, residual, device=_device(x))


@torch.library.custom_op("cute::layer_norm_residual", mutates_args=())
def layer_norm_residual(
    x: Tensor, residual: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the layer norm of a sum, and that sum."""
    return rows.normed("layer_norm", x, weight, bias, eps, residual, device=_device(x))


def _vector(x: Tensor, there: bool) -> Tensor:
    return x.new_empty(x.shape[-1] if there else 0)


@rms_norm.register_fake
def _(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return _contiguous(x)


@layer_norm.register_fake
def _(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    return _contiguous(x)


@rms_norm_residual.register_fake
def _(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    return _contiguous(x), _contiguous(x)


@layer_norm_residual.register_fake
def _(
    x: Tensor, residual: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return _contiguous(x), _contiguous(x)


@rms_norm_backward.register_fake
def _(dy: Tensor, x: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    return _contiguous(x), _vector(x, weight is not None)


@layer_norm_backward.register_fake
def _(
    dy: Tensor, x: Tensor, weight: Tensor | None, bias: bool, eps: float
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return _contiguous(x), _vector(x, weight is not None), _vector(x, bias)


def _keep_norm(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    *tensors, ctx.eps = inputs
    if isinstance(output, tuple):  # with a residual: what is normed is the sum
        weights, row = tensors[2:], output[1]
    else:
        row, *weights = tensors
    ctx.kinds = [w is not None for w in weights]
    ctx.save_for_backward(row, *weights[:1])


def _norm_gradients(ctx: Any, dy: Tensor) -> tuple[Tensor, list[Tensor | None]]:
    """Return the gradient of what is normed, and those of the weights and the biases, if the norm has any."""
    row, weight = ctx.saved_tensors
    if len(ctx.kinds) == 1:
        dx, *vectors = rms_norm_backward(dy, row, weight, ctx.eps)
    else:
        dx, *vectors = layer_norm_backward(dy, row, weight, ctx.kinds[1], ctx.eps)
    return dx, [v if there else None for v, there in zip(vectors, ctx.kinds)]


def _norm_backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    dx, vectors = _norm_gradients(ctx, dy)
    return dx, *vectors, None


def _residual_backward(ctx: Any, dy: Tensor, ds: Tensor) -> tuple[Any, ...]:
    dx, vectors = _norm_gradients(ctx, dy)
    total = dx + ds
    return total, total, *vectors, None


for _forward in (rms_norm, layer_norm):
    _forward.register_autograd(_norm_backward, setup_context=_keep_norm)
for _forward in (rms_norm_residual, layer_norm_residual):
    _forward.register_autograd(_residual_backward, setup_context=_keep_norm)


# ----------------------------------------------------------------------------------------------------- cross entropy


@torch.library.custom_op("cute::cross_entropy", mutates_args=())
def cross_entropy(x: Tensor, target: Tensor, ignore_index: int, reduction: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return losses, logsumexp of each row, and how many targets there are (nothing without a reduction)."""
    losses, lse, count = rows.cross_entropy_with_lse(x, target, ignore_index, reduction, _device(x))
    return losses, lse, lse.new_empty(0) if count is None else count


@torch.library.custom_op("cute::cross_entropy_backward", mutates_args=())
def cross_entropy_backward(
    g: Tensor, x: Tensor, target: Tensor, lse: Tensor, count: Tensor | None, ignore_index: int
) -> Tensor:  # fmt: skip
    """Return the gradient of cross entropy."""
    return row_grads.cross_entropy_backward(g, x, target, lse, count, ignore_index, device=_device(x))


@cross_entropy.register_fake
def _(x: Tensor, target: Tensor, ignore_index: int, reduction: str) -> tuple[Tensor, Tensor, Tensor]:
    lse = x.new_empty(x.shape[:-1], dtype=torch.float32)
    if reduction == "none":
        return torch.empty_like(lse), lse, lse.new_empty(0)
    return x.new_empty(()), lse, lse.new_empty(())


@cross_entropy_backward.register_fake
def _(g: Tensor, x: Tensor, target: Tensor, lse: Tensor, count: Tensor | None, ignore_index: int) -> Tensor:
    return _contiguous(x)


def _keep_entropy(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    x, target, ctx.ignore_index, reduction = inputs
    ctx.mean = reduction == "mean"
    ctx.save_for_backward(x, target, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _entropy_backward(ctx: Any, g: Tensor, *others: Any) -> tuple[Any, ...]:
    x, target, lse, count = ctx.saved_tensors
    dx = cross_entropy_backward(g, x, target, lse, count if ctx.mean else None, ctx.ignore_index)
    return dx, None, None, None


cross_entropy.register_autograd(_entropy_backward, setup_context=_keep_entropy)


# ------------------------------------------------------------------------------------------------ numbers of rows


@torch.library.custom_op("cute::row_number", mutates_args=())
def row_number(call: str, x: Tensor, keepdim: bool) -> Tensor:
    """Return ``sum``, ``mean``, ``max`` or ``logsumexp`` of each row."""
    return rows.summed(call, x, keepdim=keepdim, device=_device(x))


@row_number.register_fake
def _(call: str, x: Tensor, keepdim: bool) -> Tensor:
    return x.new_empty((*x.shape[:-1], 1) if keepdim else x.shape[:-1])


def _keep_row(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.call, x, ctx.keepdim = inputs
    ctx.save_for_backward(x, output)


def _row_backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
    x, y = ctx.saved_tensors
    y, dy = (t if ctx.keepdim else t.unsqueeze(-1) for t in (y, dy))
    if ctx.call == "max":  # those that are equal share it, as of torch.amax
        share = (x == y).to(dy.dtype)
        return None, share * (dy / share.sum(-1, keepdim=True)), None
    if ctx.call == "logsumexp":
        return None, dy * torch.exp(x - y), None
    return None, (dy / x.shape[-1] if ctx.call == "mean" else dy).expand(x.shape).contiguous(), None


row_number.register_autograd(_row_backward, setup_context=_keep_row)
