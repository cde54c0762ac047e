"""Explanation of ``op.quantize`` and ``op.dequantize``, which :func:`cute_dialect.op.explain` returns.

>>> print(explain_quantize("quantize", (4096, 7168), None, "bf16", None, 128))
quantize of 4096 x 7168 bf16 to f8E4M3FN
  kernel    quantize-bf16-f8E4M3FN-quantize-16x1x4x1x0
  a scale   per block of 128 columns, by 16 threads
  bound     21.7 us: 0.089 GB (DRAM, an H200)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from cute_dialect.kernels.rows.quantize import BLOCK, quantize_text
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import DtypeError, ShapeError
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.explanations.rows import DRAM
from cute_dialect.op.problems.quantize import (
    QUANTIZED,
    WIDE,
    QuantizeProblem,
    regions_of_block,
    regions_of_scales,
    shape_of_scales,
)

_REGIONS = {"array": "for the array", "row": "per row", "block": "per block of 128 columns", "tile": "per 128 x 128"}


@dataclass(frozen=True, kw_only=True)
class QuantizeExplanation(Explanation):
    """The kernels of a quantization, and the elements that share a scale."""

    problem: QuantizeProblem
    regions: str  # "array", "row", "block" or "tile"

    def _title(self) -> str:
        p = self.problem
        source, target = (p.result, p.element) if p.task == "dequantize" else (p.element, p.result)
        return f"{self.operation} of {p.rows} x {p.n} {source} to {target}"

    def _layout(self) -> Iterator[Line]:
        c = self.problem.config
        by = f", by {c.threads} threads" if c.task == "quantize" else ""
        yield "a scale", _REGIONS[self.regions] + by + (", which read the row twice" if c.is_streamed else "")

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


def explain_quantize(
    call: str, x: Any, scales: Any, element: str, dtype: object = None, block: object = None
) -> QuantizeExplanation:
    """Explain ``quantize`` or ``dequantize``.  Arrays are expected to be contiguous.

    Args:
        x: the array, or its shape.
        scales: given scales, or their shape; None to compute them.
        element: type of ``x`` if it is a shape.
        dtype, block: as in the function.

    Raises the errors of the function.
    """
    shape = tuple(x if isinstance(x, tuple | list) else x.shape)
    element = element if isinstance(x, tuple | list) else element_name(x.dtype)
    is_inverse = call == "dequantize"
    taken, made = (QUANTIZED, WIDE) if is_inverse else (WIDE, QUANTIZED)
    result = made[0] if dtype is None else element_name(dtype)
    if not shape or 0 in shape:
        raise ShapeError(f"{call}: x has shape {shape}; it must not be empty")
    for name, kind, allowed in (("x", element, taken), ("the result", result, made)):
        if kind not in allowed:
            raise DtypeError(f"{call}: {name} has dtype {kind}; it must have one of {', '.join(allowed)}")
    if is_inverse and scales is None:
        raise ShapeError("dequantize: explain needs the scales as b; pass them or their shape")
    if scales is not None:
        found = tuple(scales if isinstance(scales, tuple | list) else scales.shape)
        regions = regions_of_scales(call, "x", shape, "b", found)
    else:
        regions = regions_of_block(block)
        shape_of_scales(regions, shape)
    rows, n = prod(shape[:-1]), shape[-1]
    task = "dequantize" if is_inverse else "quantize" if scales is None and regions != "array" else "given"
    by = "block" if task != "quantize" and regions != "tile" else regions
    if by == "block" and n % BLOCK == 0 and regions != "row":
        rows_of_kernel, by = rows * n // BLOCK, "blocks"
        p = QuantizeProblem(task, by, element, result, rows_of_kernel, BLOCK)
    else:
        p = QuantizeProblem(task, by, element, result, rows, n)
    if is_inverse:
        p = p._replace(element=result, result=element)
    problems, size = [p], p.bytes
    if scales is None and regions == "array":
        first = QuantizeProblem("maximum", "part", element, "i8", 1, rows * n)
        problems = [first, QuantizeProblem("scale", "row", "f32", result, 1, prod(first.scales)), p]
        size += first.bytes - rows * n
    kernels = tuple([RowKernel(q.config.name, quantize_text, (q.config,)) for q in problems])
    return QuantizeExplanation(
        operation=call, kernel=kernels[-1].name, bytes=size, bound=size / DRAM / 1e6, kernels=kernels,
        problem=p._replace(rows=rows, n=n), regions=regions,
    )  # fmt: skip
