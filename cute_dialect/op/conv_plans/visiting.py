"""Traced epilogues of convolution plans, whose arrays are matrices with a row per pixel."""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cute_dialect.op.conv.geometry import Geometry
from cute_dialect.op.conv.layouts import as_rows, first, last, turned
from cute_dialect.op.conv_plans.operands import Checked, ConvOptions, check
from cute_dialect.op.epilogue.bind import Bound, bound, refuse_arranged, traced_of
from cute_dialect.op.errors import EpilogueError, LayoutError
from cute_dialect.op.problems.plan_operands import Kinds, Type, new_like
from cute_dialect.runtime.arrays import view_of

__all__ = ["as_matrix", "visited"]


def as_matrix(call: str, name: str, t: Any, g: Geometry, turn: bool) -> Any:
    """Return an array like the result, or with one value per channel, as a matrix in the same memory.

    Raises EpilogueError, LayoutError.
    """
    if not hasattr(t, "shape") or len(t.shape) != 4:
        return t
    t = turned(t, last((0, 1, 2, 3), True)) if turn else t
    if all(n == 1 for n in t.shape[:-1]):
        return t.reshape(1, t.shape[-1])
    if tuple(t.shape) != g.output:
        raise EpilogueError(
            f"{call}: {name} has shape {first(tuple(t.shape), turn)}; pass an array of {first(g.output, turn)}, "
            "one value per channel, or a number"
        )
    if as_rows(view_of(t)) is None:
        raise LayoutError(f"{call}: {name} has gaps between its pixels; pass a contiguous array")
    return t.reshape(g.matrix)


def visited(
    call: str, kind: str, kinds: Kinds, a: Any, b: Any, d: Any, visitor: Any, args: Mapping[str, Any], how: ConvOptions,
    on_cpu: bool,
) -> tuple[Checked, Bound]:  # fmt: skip
    """Return a checked call and its epilogue with arrays; a plain function is traced first.

    Args:
        args: arrays and numbers by name, and arrays for results.

    Raises OpError.
    """
    if "D" in args:
        raise EpilogueError(f"{call}: visitor_args has D; pass the array for the result as D")
    found = check(call, kind, kinds, (a, b, None, d), how, on_cpu=on_cpu)
    g, x = found.geometry, found.operands
    given = {n: as_matrix(call, n, t, g, found.turn) for n, t in args.items()}
    traced = traced_of(call, visitor, given, g.matrix)
    refuse_arranged(call, traced)
    if traced.shape_of(g.matrix) != g.matrix or traced.graph.whole_rows:
        raise EpilogueError(f"{call}: the epilogue has pairs() or whole_rows, which only op.mm and op.bmm support")

    def another(shape: tuple[int, ...], element: str) -> Any:
        return new_like(a, shape, Type(element or kinds.d.element, "row"))

    matrix = as_matrix(call, "D", found.D, g, found.turn)
    made = bound(traced, given, matrix, g.matrix, another)
    made.check_memory(call, view_of(matrix), {"A": x.a, "B": x.b})
    behind = tuple([view_of(t) if hasattr(t, "shape") else t for t in made.operands])
    x = x._replace(graph=made.graph, behind=behind, reduced=tuple(made.reduced))
    results = {n: t if n in traced.views else _image(t, g, found.turn) for n, t in made.results.items() if n != "D"}
    return found._replace(operands=x), made._replace(results=results)


def _image(t: Any, g: Geometry, turn: bool) -> Any:
    """Return a matrix, or a reduction of its rows or columns, with the dimensions of an image."""
    rows, columns = t.shape
    whole = g.output[:-1] if rows == g.matrix[0] else (1,) * 3
    if columns not in (1, g.output[-1]):  # wgrad: taps and channels
        whole, columns = ((t.shape[0], *g.output[1:-1]), g.output[-1]) if rows == g.matrix[0] else (whole, columns)
    image = t.reshape(*whole, columns)
    return turned(image, first((0, 1, 2, 3), True)) if turn else image
