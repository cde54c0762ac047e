"""The operators ``torch.ops.cute.embedding`` and its gradient.  Tensors in CPU memory run on the interpreter."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from cute_dialect.op.functions.embedding import embedding_backward, gathered
from cute_dialect.op.torch.autograd import no_settings
from cute_dialect.op.torch.registry import CUTE

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context


def _device(x: Tensor) -> str | None:
    return "cpu" if x.is_cpu else None


def forward(weight: Tensor, input: Tensor, padding: int) -> Tensor:
    return gathered(weight, input, _device(weight))


def fake(weight: Tensor, input: Tensor, padding: int) -> Tensor:
    return weight.new_empty((*input.shape, weight.shape[1]))


def keep(ctx: Context, inputs: tuple[Tensor, Tensor, int], output: Tensor) -> None:
    weight, indices, ctx.padding = inputs
    ctx.rows, ctx.settings = weight.shape[0], no_settings
    ctx.save_for_backward(indices)


def backward(ctx: Context, dout: Tensor) -> tuple[Tensor | None, ...]:
    return CUTE.embedding_backward(dout, *ctx.saved_tensors, ctx.rows, ctx.padding), None, None


def gradient(dout: Tensor, input: Tensor, rows: int, padding: int) -> Tensor:
    return embedding_backward(dout, input, rows, padding, _device(dout))


def fake_gradient(dout: Tensor, input: Tensor, rows: int, padding: int) -> Tensor:
    return dout.new_empty((rows, dout.shape[-1]))
