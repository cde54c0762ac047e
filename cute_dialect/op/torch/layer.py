"""A linear layer with gradients as one autograd node, without nodes for views of its arguments."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.recording import is_eager
from cute_dialect.op.torch.autograd import Context, apply_of, node_of
from cute_dialect.op.torch.gradients import by_column, summed
from cute_dialect.op.torch.registry import CUTE

__all__ = ["linear"]


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, activation: str, device: str | None, transposed: bool = False
) -> Tensor | None:  # fmt: skip
    """Return a layer with gradients; None if it must be composed of a GEMM and views that torch sees.

    Args:
        transposed: ``weight`` is (K, N).
    """
    if x.dtype.itemsize == 1 or x.dtype != weight.dtype or x.dtype == torch.float64 or not is_eager((x, weight, bias)):
        return None
    if bias is not None and bias.dtype.itemsize == 1:
        return None
    return _APPLY(x, weight, bias, activation, device or "", transposed)[0]


def _forward(
    ctx: Context, x: Tensor, weight: Tensor, bias: Tensor | None, activation: str, device: str, transposed: bool
) -> tuple[Tensor, ...]:  # fmt: skip
    """Compute a layer ``activation(x @ weight.T + bias)`` and the operand of its activation.

    The operand is an output of the node, so that the backward pass notices if its gradient is used.

    Args:
        transposed: the layer is ``activation(x @ weight + bias)``.
    """
    rows, kept = _as_rows(x), None
    matrix = weight if transposed else weight.t()
    if activation in ("", "relu"):
        found = CUTE.mm(rows, matrix, None, bias, activation=activation, device=device)
    else:
        found, kept = CUTE.mm_kept(rows, matrix, None, bias, activation=activation, device=device)
    if x.dim() != 2:  # not a view, which could not be modified in place
        found = torch.ops.aten._unsafe_view.default(found, (*x.shape[:-1], matrix.shape[1]))
    ctx.activation, ctx.device, ctx.transposed = activation, device, transposed
    ctx.bias = None if bias is None else (bias.shape, bias.dtype)
    ctx.save_for_backward(x, weight, found if activation == "relu" else kept)
    ctx.set_materialize_grads(False)
    return (found,) if kept is None else (found, kept)


def _backward(ctx: Context, grad: Tensor | None, of_sums: Any = None) -> tuple[Tensor | None, ...]:
    """Compute the gradient of each input, as GEMMs that are differentiable themselves."""
    x, weight, kept = ctx.saved_tensors
    activation, device, needs = ctx.activation, ctx.device, ctx.needs_input_grad
    if grad is None or of_sums is not None:
        if grad is None and of_sums is None:
            return (None,) * 6
        raise UnsupportedError(
            "linear: an activation has no second derivative; apply the activation with torch instead"
        )
    g, columns = _as_rows(grad), None
    if activation == "relu":
        g = torch.where(_as_rows(kept) > 0, g, 0)
    elif activation:
        g, columns = CUTE.mm_slope(g, kept, activation, device)
    factor = g if g.dtype == x.dtype else g.to(x.dtype)
    factor = factor if 1 in factor.stride() else factor.contiguous()
    of_x = of_weight = of_bias = None
    if needs[0]:
        of_x = CUTE.mm(factor, weight.t() if ctx.transposed else weight, device=device)
        of_x = of_x if x.dim() == 2 else of_x.view(x.shape)
    if needs[1]:
        factors = (_as_rows(x).t(), factor) if ctx.transposed else (factor.t(), _as_rows(x))
        of_weight = CUTE.mm(*factors, device=device)
    if needs[2]:
        shape, dtype = ctx.bias
        of_bias = summed(g if columns is None or not by_column(shape) else columns, shape, dtype)
    return of_x, of_weight, of_bias, None, None, None


_APPLY = apply_of(node_of(_forward, _backward))


def _as_rows(x: Tensor) -> Tensor:
    return x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
