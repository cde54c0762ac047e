"""Traced epilogues of plans: the arrays of a call, by name, checked and in the kernel's layout."""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.op.epilogue.bind import Bound, bound, described, refuse_arranged, traced_of
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced
from cute_dialect.op.errors import EpilogueError, LayoutError
from cute_dialect.op.problems.plan_operands import Kinds, Operands, Type, check, new_like
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.runtime.arrays import view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.epilogue.graph import Graph
    from cute_dialect.op.execute.kernels import Variant

__all__ = ["Visited", "arguments_for", "check_kernel", "example_graph", "is_of_sums", "visited"]


class Visited(NamedTuple):
    """A call with a traced epilogue."""

    operands: Operands
    D: Any
    bound: Bound  # the epilogue with its arrays


def is_of_sums(function: object) -> bool:
    """Return True if a function is a traceable epilogue, with a parameter ``accum``.

    >>> is_of_sums(lambda accum, bias: accum + bias), is_of_sums(lambda x, row, column: x)
    (True, False)
    """
    if isinstance(function, Traced):
        return True
    try:
        return callable(function) and "accum" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def arguments_for(
    call: str, visitor: Any, args: Mapping[str, object] | None, others: Mapping[str, object]
) -> dict[str, Any]:  # fmt: skip
    """Return an epilogue's arguments by name.

    They are ``args``, and those of ``others`` (C, alpha, beta and bias of the call) that the epilogue has parameters
    for. Raises EpilogueError for other values that are passed, except C.
    """
    found: dict[str, Any] = dict(args or {})
    parameters = visitor.parameters if isinstance(visitor, Traced) else inspect.signature(visitor).parameters
    for name, value in others.items():
        if value is None:
            continue
        if name in parameters:
            found.setdefault(name, value)
        elif name != "C":
            raise EpilogueError(
                f"{call}: {name} cannot be combined with this epilogue_visitor, which has no parameter {name}"
            )
    return found


def visited(
    call: str, visitor: Any, kinds: Kinds, a: Any, b: Any, d: Any, args: Mapping[str, Any], *,
    problem: Sequence[int] | None = None, batch: int = 0, on_cpu: bool = False,
) -> Visited:  # fmt: skip
    """Return the operands of a call whose epilogue is traced, or is a function to trace now.

    ``args`` holds its arrays and numbers by name, and memory for results, D included.  Raises OpError before anything
    is compiled or written.
    """
    given = dict(args)
    also = given.pop("D", None)
    if d is not None and also is not None and also is not d and view_of(also)[:4] != view_of(d)[:4]:
        raise EpilogueError(f"{call}: D and visitor_args['D'] are different arrays; pass one of them")
    d = also if d is None else d
    known: list[tuple[Traced, tuple[int, ...]]] = []

    def shape_of(sums: tuple[int, ...]) -> tuple[int, ...]:
        if problem is not None:  # Flat arrays have the described extents.
            given.update({n: t.reshape(sums) for n, t in given.items() if _is_flat(t, sums)})
        traced = traced_of(call, visitor, given, sums)
        refuse_arranged(call, traced)
        known.append((traced, sums))
        return traced.shape_of(sums)

    x, d = check(call, kinds, a, b, None, d, problem=problem, batch=batch, on_cpu=on_cpu, shape_of=shape_of)
    traced, sums = known[0]
    if (traced.graph.paired or traced.graph.whole_rows) and kinds.d.layout == "column":
        raise LayoutError(f"{call}: D is column-major; pairs() and whole_rows=True need a row-major D")

    def another(shape: tuple[int, ...], element: str) -> Any:
        return new_like(a, shape, Type(element or kinds.d.element, "row"))

    found = bound(traced, given, d, sums, another)
    found.check_memory(call, x.d, {"A": x.a, "B": x.b})
    behind = tuple([view_of(t) if hasattr(t, "shape") else t for t in found.operands])
    x = x._replace(graph=found.graph, behind=behind, reduced=tuple(found.reduced))
    return Visited(x, d, found)


def _is_flat(t: Any, sums: Sequence[int]) -> bool:
    shape = getattr(t, "shape", ())
    return len(shape) == 1 and shape[0] == prod(sums) and shape[0] != sums[-1]


def example_graph(traced: Traced, kinds: Kinds) -> Graph:
    """Return the graph of a traced epilogue bound to arrays with the layouts of its examples."""
    sums = tuple(traced.examples["accum"].shape)
    given = {n: x if isinstance(x, bool | int | float) else described(x)
             for n, x in traced.examples.items() if n != "accum"}  # fmt: skip

    def another(shape: tuple[int, ...], element: str) -> Any:
        return described(FakeTensor(element or kinds.d.element, shape))

    d = described(FakeTensor(kinds.d.element, traced.shape_of(sums), kinds.d.layout))
    return bound(traced, given, d, sums, another).graph


def check_kernel(variant: Variant, columns: int = 0) -> None:
    """Raise EpilogueError if a kernel cannot evaluate its graph, for a GEMM with this number of columns."""
    graph, kernel = variant.epilogue.graph, variant.kernel
    if graph is None:
        return
    if isinstance(kernel, Choice):
        try:
            config = kernel.skinny or kernel.config
            config.check()
            if (graph.paired or graph.whole_rows) and (kernel.parts > 1 or kernel.swapped):
                raise ValueError("pairs() and whole_rows=True do not support split-K and transposed kernels")
            if graph.whole_rows and columns > kernel.config.tile[1]:
                raise ValueError(
                    f"whole_rows=True supports at most {kernel.config.tile[1]} columns here, got {columns}"
                )
        except ValueError as e:
            raise EpilogueError(f"Gemm: this tile does not support the epilogue: {e}") from None
    elif graph.paired or graph.reduces or graph.whole_rows:
        what = "pairs()" if graph.paired else "reductions"
        raise EpilogueError(
            f"Gemm: kernel {kernel.name} does not support {what} in an epilogue; use 16-bit, 8-bit or tf32 matrices "
            "whose addresses and row strides are multiples of 16 bytes"
        )
