"""Vector reductions, pairwise (the rounding error grows with the logarithm of the length) or serial."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.values import UNDERSCORE
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError
from cute_dialect.lang.values import indexing, numeric, vectors

if TYPE_CHECKING:
    from cute_dialect.lang.values.vectors import TensorSSA

__all__ = ["ReductionOp", "reduced"]


class ReductionOp(Enum):
    """Reduction operators."""

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"
    AND = "and"
    OR = "or"
    XOR = "xor"


def reduced(v: TensorSSA, op: Any, init: Any, profile: Any, order: str) -> Any:
    """Return the reduction of a vector (:meth:`cute_dialect.lang.values.vectors.TensorSSA.reduce`)."""
    if order not in ("tree", "serial"):
        raise KernelTypeError("F238", f"reduce: order must be 'tree' or 'serial', got {order!r}")
    name = _name(op)
    combine: Callable[[Any, Any], Any] = op if name is None else lambda a, b: numeric.binary(name, a, b)
    if name in ("add", "mul", "max", "min"):  # 8-bit floats and Booleans are computed in a wider type.
        v = v.to(numeric.computing(v.dtype))
    kept, rows = _rows(v, profile)
    if len(rows[0]) == 1 and not kept:
        return _scalar(v, name, combine, init, [row[0] for row in rows], order)
    if name is None:
        columns = [_scalar(v, None, combine, init, list(column), order) for column in zip(*rows)]
        return vectors.vector_of(columns, kept)
    parts = [vectors.TensorSSA.of(vectors.shuffle(v.ssa, row), kept, v.dtype) for row in rows]
    return _folded(parts, lambda a, b: vectors.mapped(combine, (a, b)), init, order)


def _name(op: Any) -> str | None:
    """Return the name of an arithmetic reduction, or None for a user-defined function."""
    if isinstance(op, ReductionOp):
        return op.value
    if isinstance(op, str) and op in ReductionOp._value2member_map_:
        return op
    if callable(op):
        return None
    known = ", ".join(f"ReductionOp.{x.name}" for x in ReductionOp)
    raise KernelTypeError("F238", f"reduce: op must be one of {known}, or a function of two numbers, got {op!r}")


def _rows(v: TensorSSA, profile: Any) -> tuple[Any, list[list[int]]]:
    """Return the remaining shape, and the element indices at each reduced coordinate."""
    from cute_dialect.algebra.trees import weakly_congruent
    from cute_dialect.algebra.values import Layout

    def as_coord(p: Any) -> Any:
        if isinstance(p, tuple | list):
            return tuple(map(as_coord, p))
        return UNDERSCORE if p is None or isinstance(p, slice) else 0

    coord = as_coord(profile)
    if not weakly_congruent(coord, v.shape):
        raise LayoutError(
            "F241", f"reduce: the reduction profile {indexing.coord_text(profile)} does not match the shape "
            f"{vectors.shape_text(v.shape)}",
        )  # fmt: skip
    whole = Layout(v.shape)
    if not indexing.has_open_mode(coord):
        return (), [[i] for i in range(v.size)]
    keeps, _ = indexing.part(coord, whole)
    kept = [cast("int", keeps(i)) for i in range(cast("int", size(keeps)))]
    if not indexing.has_open_mode(_other(coord)):  # Nothing is reduced.
        return keeps.shape, [kept]
    drops, _ = indexing.part(_other(coord), whole)
    return keeps.shape, [[cast("int", drops(r)) + i for i in kept] for r in range(cast("int", size(drops)))]


def _other(coord: Any) -> Any:
    if isinstance(coord, tuple):
        return tuple(map(_other, coord))
    return 0 if coord is UNDERSCORE else UNDERSCORE


def _scalar(
    v: TensorSSA, name: str | None, combine: Callable[[Any, Any], Any], init: Any, picked: list[int], order: str
) -> Any:
    """Return the combination of the selected elements as a number."""
    if order == "serial" or name is None:
        elements = [v.dtype.of(vectors.extract(v.ssa, i)) for i in picked]
        return _folded(elements, combine, init, order)
    at = vectors.TensorSSA.of(vectors.shuffle(v.ssa, picked), len(picked), v.dtype)
    while (n := at.size) > 1:
        half = n // 2
        pairs = [vectors.TensorSSA.of(vectors.shuffle(at.ssa, range(i, 2 * half, 2)), half, v.dtype) for i in (0, 1)]
        both = vectors.mapped(combine, pairs)
        if n % 2:
            last = vectors.shuffle(at.ssa, [n - 1])
            ssa = vectors.concatenated(both.ssa, last)
            both = vectors.TensorSSA.of(ssa, half + 1, v.dtype)
        at = both
    result = v.dtype.of(vectors.extract(at.ssa, 0))
    return result if init is None else combine(init, result)


def _folded(items: list[Any], combine: Callable[[Any, Any], Any], init: Any, order: str) -> Any:
    if order == "serial":
        found = items[0] if init is None else combine(init, items[0])
        for x in items[1:]:
            found = combine(found, x)
        return found
    while len(items) > 1:
        pairs = [combine(a, b) for a, b in zip(items[::2], items[1::2])]
        items = pairs + ([items[-1]] if len(items) % 2 else [])
    return items[0] if init is None else combine(init, items[0])
