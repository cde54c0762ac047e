"""The operators ``torch.ops.cute.mm_packed`` and ``unpack_weight``.  Tensors in CPU memory run on the interpreter."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cute_dialect.op.arrays.dtypes import element_name, torch_name
from cute_dialect.op.functions import packed_weights as functions
from cute_dialect.op.problems.compressed_weights import PackedWeight
from cute_dialect.op.torch.autograd import no_settings
from cute_dialect.op.torch.registry import CUTE

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context


def _device(x: Tensor) -> str | None:
    return "cpu" if x.is_cpu else None


def forward(x: Tensor, data: Tensor, bias: Tensor | None, n: int, k: int, format: str, dtype: str) -> Tensor:
    packed = PackedWeight(data, n, k, format)
    return functions.multiplied(x, packed, bias, dtype=dtype or None, device=_device(x))


def fake(x: Tensor, data: Tensor, bias: Tensor | None, n: int, k: int, format: str, dtype: str) -> Tensor:
    kind = getattr(torch, torch_name(dtype)) if dtype else x.dtype
    return x.new_empty((*x.shape[:-1], n), dtype=kind)


def keep(ctx: Context, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, data, bias, *ctx.packed, _ = inputs
    ctx.settings = no_settings
    ctx.element, ctx.bias = x.dtype, None if bias is None else bias.dtype
    ctx.save_for_backward(data)


def backward(ctx: Context, dy: Tensor) -> tuple[Tensor | None, ...]:
    (data,) = ctx.saved_tensors
    of_x = of_bias = None
    if ctx.needs_input_grad[0]:
        w = CUTE.unpack_weight(data, *ctx.packed, element_name(ctx.element))
        rows = dy.reshape(-1, dy.shape[-1]).to(ctx.element)
        rows = rows if 1 in rows.stride() else rows.contiguous()  # the gradient of a sum is expanded
        of_x = CUTE.mm(rows, w, device=_device(dy) or "").reshape(*dy.shape[:-1], w.shape[1])
    if ctx.needs_input_grad[2]:
        of_bias = dy.reshape(-1, dy.shape[-1]).sum(0, dtype=torch.float32).to(ctx.bias)
    return of_x, None, of_bias, None, None, None, None


def unpack(data: Tensor, n: int, k: int, format: str, dtype: str) -> Tensor:
    return functions.unpacked(PackedWeight(data, n, k, format), dtype, _device(data))


def fake_unpack(data: Tensor, n: int, k: int, format: str, dtype: str) -> Tensor:
    return data.new_empty((n, k), dtype=getattr(torch, torch_name(dtype)))
