"""Explanation of ``op.gated``, which :func:`cute_dialect.op.explain` returns.

>>> round(explain_gated((16384, 7168), "silu", "bf16").bound, 1)     # in us
86.1
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from cute_dialect.kernels.elementwise.graph import elementwise_text
from cute_dialect.kernels.rows.config import BITS
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import DtypeError, ShapeError
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.explanations.gemm import Explanation
from cute_dialect.op.explanations.rows import DRAM
from cute_dialect.op.problems.gated import check_activation, checked_plan


@dataclass(frozen=True, kw_only=True)
class GatedExplanation(Explanation):
    """The kernel of a gated activation."""

    element: str
    rows: int
    n: int  # length of a half

    def _title(self) -> str:
        return f"{self.operation} of {self.rows} rows of 2 x {self.n} {self.element}"

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


def explain_gated(x: Any, activation: str, element: str) -> GatedExplanation:
    """Explain ``gated``.  Raises the errors of the function.

    Args:
        x: an array, or its shape.
        activation: the activation; empty for silu.
        element: type of ``x`` if it is a shape.
    """
    shape, activation = tuple(x if isinstance(x, tuple | list) else x.shape), activation or "silu"
    element = element if isinstance(x, tuple | list) else element_name(x.dtype)
    if not shape or 0 in shape or shape[-1] % 2:
        raise ShapeError(f"gated: x has shape {shape}; pass rows of two halves that are not empty")
    if element not in BITS:
        raise DtypeError(f"gated: x has dtype {element}; it must have one of {', '.join(BITS)}")
    check_activation(activation)
    rows, n = prod(shape[:-1]), shape[-1] // 2
    plan, size = checked_plan(activation, element, rows, n), rows * n * 3 * BITS[element] // 8
    kernel = RowKernel(plan.name, elementwise_text, (plan,))
    return GatedExplanation(
        operation=f"gated {activation}", kernel=kernel.name, bytes=size, bound=size / DRAM / 1e6, kernels=(kernel,),
        element=element, rows=rows, n=n,
    )  # fmt: skip
