"""Explanation of the routing of a mixture of experts, which :func:`cute_dialect.op.explain` returns.

>>> print(explain_route((4096, 128), "bf16", {"k": 8}))
route of 4096 x 128 bf16 to 8 experts
  kernel    route-bf16-128-8-softmax
  a row     by a warp, 4 experts per lane
  bound     0.3 us: 0.00131 GB (DRAM, an H200)
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.rows.route import RouteConfig, route_text
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import ArgumentError, DtypeError, ShapeError
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.explanations.rows import DRAM
from cute_dialect.op.problems.routing import ROUTED, RouteSettings


@dataclass(frozen=True, kw_only=True)
class RouteExplanation(Explanation):
    """The kernel that chooses experts."""

    config: RouteConfig
    rows: int

    def _title(self) -> str:
        c = self.config
        return f"route of {self.rows} x {c.experts} {c.element} to {c.k} experts"

    def _layout(self) -> Iterator[Line]:
        slots = self.config.slots
        yield "a row", f"by a warp, {slots} expert{'s' * (slots > 1)} per lane"

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


def explain_route(
    logits: Any, element: str, given: Mapping[str, Any], has_bias: bool = False
) -> RouteExplanation:  # fmt: skip
    """Explain ``route``.  Raises the errors of the function.

    Args:
        logits: an array, or its shape.
        element: type of ``logits`` if it is a shape.
        given: ``k`` and other arguments of the function.
        has_bias: a bias is added to the scores.
    """
    for name in given:
        if name not in RouteSettings._fields:
            raise ArgumentError(f"explain: route is not explained with {name}; omit it")
    is_shape = isinstance(logits, tuple | list)
    shape = tuple(logits if is_shape else logits.shape)
    element = element if is_shape else element_name(logits.dtype)
    if not shape or 0 in shape:
        raise ShapeError(f"route: logits has shape {shape}; it must not be empty")
    if element not in ROUTED:
        raise DtypeError(f"route: logits has dtype {element}; it must have one of {', '.join(ROUTED)}")
    c, rows = RouteSettings(**given).config(element, shape[-1], has_bias), prod(shape[:-1])
    size = rows * (c.experts * BITS[element] // 8 + 8 * c.k)
    kernel = RowKernel(c.name, route_text, (c,))
    return RouteExplanation(
        operation="route", kernel=c.name, bytes=size, bound=size / DRAM / 1e6, kernels=(kernel,), config=c, rows=rows
    )
