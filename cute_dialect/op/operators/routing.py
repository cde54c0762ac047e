"""The operators of mixtures of experts and their gradients.  Tensors in CPU memory run on the interpreter."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cute_dialect.op.functions import routing
from cute_dialect.op.problems.routing import RouteSettings
from cute_dialect.op.torch.autograd import no_settings
from cute_dialect.op.torch.registry import CUTE

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context


def _device(x: Tensor) -> str | None:
    return "cpu" if x.is_cpu else None


def route(logits: Tensor, bias: Tensor | None, *settings: Any) -> tuple[Tensor, Tensor]:
    return routing.routed(logits, bias, RouteSettings(*settings), _device(logits))


def fake_route(logits: Tensor, bias: Tensor | None, k: int, *settings: Any) -> tuple[Tensor, Tensor]:
    shape = (*logits.shape[:-1], k)
    return logits.new_empty(shape, dtype=torch.float32), logits.new_empty(shape, dtype=torch.int32)


def keep_route(ctx: Context, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    logits, _, *how = inputs
    ctx.how, ctx.settings = tuple(how), no_settings
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(logits, output[1])


def backward_route(ctx: Context, dweights: Tensor, _: Any) -> tuple[Tensor | None, ...]:
    return CUTE.route_backward(dweights, *ctx.saved_tensors, *ctx.how), *(None,) * 7


def route_gradient(dweights: Tensor, logits: Tensor, experts: Tensor, *settings: Any) -> Tensor:
    return routing.route_backward(dweights, logits, experts, RouteSettings(*settings), _device(logits))


def fake_route_gradient(dweights: Tensor, logits: Tensor, experts: Tensor, *settings: Any) -> Tensor:
    return logits.new_empty(logits.shape)


def dispatch(x: Tensor, experts: Tensor, num_experts: int) -> tuple[Tensor, Tensor, Tensor]:
    return routing.dispatched(x, experts, num_experts, _device(x))


def fake_dispatch(x: Tensor, experts: Tensor, num_experts: int) -> tuple[Tensor, Tensor, Tensor]:
    order = experts.new_empty(experts.shape, dtype=torch.int32)
    return x.new_empty((experts.numel(), x.shape[-1])), order.new_empty(num_experts), order


def keep_dispatch(ctx: Context, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    ctx.settings = no_settings
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(output[2])


def backward_dispatch(ctx: Context, drows: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    return CUTE.combine(drows, *ctx.saved_tensors, None), None, None


def combine(y: Tensor, order: Tensor, weights: Tensor | None) -> Tensor:
    return routing.combined(y, order, weights, _device(y))


def fake_combine(y: Tensor, order: Tensor, weights: Tensor | None) -> Tensor:
    return y.new_empty((*order.shape[:-1], y.shape[-1]))


def keep_combine(ctx: Context, inputs: tuple[Any, ...], output: Tensor) -> None:
    y, order, weights = inputs
    ctx.settings = no_settings
    # Without weights the gradient does not depend on the rows.
    ctx.save_for_backward(None if weights is None else y, order, weights)


def backward_combine(ctx: Context, dout: Tensor) -> tuple[Tensor | None, ...]:
    dy, dweights = CUTE.combine_backward(dout, *ctx.saved_tensors)
    return dy, None, None if ctx.saved_tensors[2] is None else dweights


def combine_gradient(dout: Tensor, y: Tensor | None, order: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the gradients of the rows and the weights; the latter is empty without weights."""
    dy, dweights = routing.combine_backward(dout, y, order, weights, _device(dout))
    return dy, dout.new_empty(0, dtype=torch.float32) if weights is None else dweights


def fake_combine_gradient(
    dout: Tensor, y: Tensor | None, order: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    shape = (0,) if weights is None else weights.shape
    return dout.new_empty((order.numel(), dout.shape[-1])), dout.new_empty(shape, dtype=torch.float32)
