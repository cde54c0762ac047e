"""The operators ``torch.ops.cute.mm_sparse`` and ``expand_2_4``.  Tensors in CPU memory run on the interpreter."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from cute_dialect.op.functions import sparse_weights as functions
from cute_dialect.op.problems.compressed_weights import SparseWeight
from cute_dialect.op.torch.autograd import no_settings
from cute_dialect.op.torch.registry import CUTE

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context


def _device(x: Tensor) -> str | None:
    return "cpu" if x.is_cpu else None


def forward(x: Tensor, kept: Tensor, metadata: Tensor, bias: Tensor | None) -> Tensor:
    return functions.multiplied(x, SparseWeight(kept, metadata), bias, _device(x))


def fake(x: Tensor, kept: Tensor, metadata: Tensor, bias: Tensor | None) -> Tensor:
    return x.new_empty((*x.shape[:-1], kept.shape[0]))


def keep(ctx: Context, inputs: tuple[Tensor, Tensor, Tensor, Tensor | None], output: Tensor) -> None:
    _, kept, metadata, bias = inputs
    ctx.settings, ctx.bias = no_settings, None if bias is None else bias.dtype
    ctx.save_for_backward(kept, metadata)


def backward(ctx: Context, dy: Tensor) -> tuple[Tensor | None, ...]:
    of_x = of_bias = None
    rows = dy.reshape(-1, dy.shape[-1])
    if ctx.needs_input_grad[0]:
        w = CUTE.expand_2_4(*ctx.saved_tensors)
        rows = rows if 1 in rows.stride() else rows.contiguous()  # the gradient of a sum is expanded
        of_x = CUTE.mm(rows, w, device=_device(dy) or "").reshape(*dy.shape[:-1], w.shape[1])
    if ctx.needs_input_grad[3]:
        of_bias = rows.sum(0, dtype=torch.float32).to(ctx.bias)
    return of_x, None, None, of_bias


def expand(kept: Tensor, metadata: Tensor) -> Tensor:
    return functions.expanded(SparseWeight(kept, metadata), _device(kept))


def fake_expand(kept: Tensor, metadata: Tensor) -> Tensor:
    return kept.new_empty((kept.shape[0], 2 * kept.shape[1]))
