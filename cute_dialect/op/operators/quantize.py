"""The operators ``torch.ops.cute.quantize``, ``quantize_scaled`` with given scales, and ``dequantize``.

Tensors in CPU memory run on the interpreter.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import torch
from torch import Tensor

from cute_dialect.op.arrays.dtypes import torch_name
from cute_dialect.op.functions import quantize as functions
from cute_dialect.op.problems.rows import shape_of_scales


def _device(x: Tensor) -> str | None:
    return "cpu" if x.is_cpu else None


def quantize(x: Tensor, dtype: str, regions: str) -> tuple[Tensor, Tensor]:
    return functions.with_own_scales(x, dtype, regions, _device(x))


def fake_quantize(x: Tensor, dtype: str, regions: str) -> tuple[Tensor, Tensor]:
    scales = shape_of_scales(regions, tuple(x.shape))
    return fake_converted(x, x, dtype), x.new_empty(scales, dtype=torch.float32)


def quantize_scaled(x: Tensor, dtype: str, scale: Tensor) -> Tensor:
    return functions.with_given_scales(x, dtype, scale, _device(x))


def fake_quantize_scaled(x: Tensor, dtype: str, scale: Tensor) -> Tensor:
    return fake_converted(x, scale, dtype)


def dequantize(q: Tensor, scales: Tensor, dtype: str) -> Tensor:
    return functions.dequantized(q, scales, dtype, _device(q))


def fake_converted(x: Tensor, scales: Tensor, dtype: str) -> Tensor:
    return x.new_empty(x.shape, dtype=getattr(torch, torch_name(dtype)))
