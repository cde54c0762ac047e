"""Explanations of the functions of mixtures of experts, which :func:`cute_dialect.op.explain` returns.

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
from cute_dialect.kernels.rows.dispatch import sort_blocks
from cute_dialect.kernels.rows.route import RouteConfig
from cute_dialect.op.errors import ArgumentError, ShapeError
from cute_dialect.op.execute.routing import (
    combine_kernel,
    copy_kernel,
    count_kernel,
    route_kernel,
    sort_kernel,
)
from cute_dialect.op.explanations.gemm import Explanation, Line
from cute_dialect.op.explanations.rows import DRAM, shape_and_type
from cute_dialect.op.problems.routing import (
    DISPATCHED,
    NUMBERS,
    ROUTED,
    RouteSettings,
    check_experts,
    rows_config,
    sort_config,
)


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
    shape, element = shape_and_type("route", "logits", logits, element, ROUTED)
    c, rows = RouteSettings(**given).config(element, shape[-1], has_bias), prod(shape[:-1])
    size = rows * (c.experts * BITS[element] // 8 + 8 * c.k)
    kernel = route_kernel(c)
    return RouteExplanation(
        operation="route", kernel=c.name, bytes=size, bound=size / DRAM / 1e6, kernels=(kernel,), config=c, rows=rows
    )


@dataclass(frozen=True, kw_only=True)
class RowsExplanation(Explanation):
    """The kernels of ``dispatch`` or ``combine``."""

    element: str
    tokens: int
    k: int
    columns: int

    def _title(self) -> str:
        return f"{self.operation} of {self.tokens} x {self.columns} {self.element}, {self.k} rows per token"

    def _after(self) -> Iterator[Line]:
        for kernel in (self.kernels or ())[:-1]:
            yield "before", kernel.name

    def _limits(self) -> str:
        return f"{self.bytes / 1e9:.3g} GB (DRAM, an H200)"


def explain_token_dispatch(x: Any, experts: Any, num_experts: Any, element: str) -> RowsExplanation:
    """Explain ``dispatch``.  Raises the errors of the function.

    Args:
        x, experts: arrays, or their shapes; indices of experts are i32 if given as a shape.
        element: type of ``x`` if it is a shape.
    """
    shape, element = shape_and_type("dispatch", "x", x, element, DISPATCHED)
    pairs, numbers = shape_and_type("dispatch", "experts", experts, "i32", NUMBERS)
    if pairs[:-1] != shape[:-1]:
        raise ShapeError(f"dispatch: experts has shape {pairs}; it must have {(*shape[:-1], 'k')}, as x has {shape}")
    e, c = check_experts(num_experts), rows_config("dispatch", element, shape[-1], pairs, False)
    alone = sort_blocks(prod(pairs))[0] == 1
    kernels = [sort_kernel(sort_config(numbers, e, alone)), copy_kernel(c)]
    if not alone:
        kernels.insert(0, count_kernel(sort_config(numbers, e, False)))
    size = (prod(shape) * (1 + c.k)) * BITS[element] // 8 + prod(pairs) * (BITS[numbers] // 8 + 8)
    return RowsExplanation(
        operation="dispatch", kernel=kernels[-1].name, bytes=size, bound=size / DRAM / 1e6, kernels=tuple(kernels),
        element=element, tokens=prod(shape[:-1]), k=c.k, columns=shape[-1],
    )  # fmt: skip


def explain_token_combine(y: Any, order: Any, weights: Any, element: str) -> RowsExplanation:
    """Explain ``combine``; see :func:`explain_token_dispatch`."""
    shape, element = shape_and_type("combine", "y", y, element, ROUTED)
    pairs, _ = shape_and_type("combine", "order", order, "i32", ("i32",))
    if shape[:-1] != (prod(pairs),):
        raise ShapeError(f"combine: y has shape {shape}; it must have {(prod(pairs), shape[-1])}")
    c = rows_config("combine", element, shape[-1], pairs, weights is not None)
    tokens, kernel = prod(pairs[:-1]), combine_kernel(c)
    size = tokens * shape[-1] * (1 + c.k) * BITS[element] // 8 + prod(pairs) * (8 if c.weights else 4)
    return RowsExplanation(
        operation="combine", kernel=kernel.name, bytes=size, bound=size / DRAM / 1e6, kernels=(kernel,),
        element=element, tokens=tokens, k=c.k, columns=shape[-1],
    )  # fmt: skip
