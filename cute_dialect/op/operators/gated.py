"""The operator ``torch.ops.cute.gated`` and its gradient.  Tensors in CPU memory run on the interpreter."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from cute_dialect.op.functions import gated
from cute_dialect.op.torch.autograd import no_settings
from cute_dialect.op.torch.registry import CUTE

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context


def _device(x: Tensor) -> str | None:
    return "cpu" if x.is_cpu else None


def forward(x: Tensor, activation: str) -> Tensor:
    return gated.activated(x, activation, _device(x))


def fake(x: Tensor, activation: str) -> Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


def keep(ctx: Context, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, ctx.activation = inputs
    ctx.settings = no_settings
    ctx.save_for_backward(x)


def backward(ctx: Context, dy: Tensor) -> tuple[Tensor | None, ...]:
    return CUTE.gated_backward(dy, *ctx.saved_tensors, ctx.activation), None


def forward_gradient(dy: Tensor, x: Tensor, activation: str) -> Tensor:
    return gated.gated_backward(dy, x, activation, _device(x))


def fake_gradient(dy: Tensor, x: Tensor, activation: str) -> Tensor:
    return x.new_empty(x.shape)
