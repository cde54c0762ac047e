"""The operator ``torch.ops.cute.route`` and its gradient.  Tensors in CPU memory run on the interpreter."""

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
