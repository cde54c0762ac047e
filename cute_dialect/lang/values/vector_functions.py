"""Functions that create, select and join vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError
from cute_dialect.lang.values import numeric, vectors
from cute_dialect.lang.values.dtypes import Boolean, Int32, Numeric
from cute_dialect.lang.values.vectors import TensorSSA, mapped, static_shape, vector_of

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.signature_types import Number, Shape, Value
    from cute_dialect.lang.values.tensors import Tensor

__all__ = [
    "all_", "any_", "arange", "concat", "empty_like", "full", "full_like", "ones_like", "where", "zeros_like",
]  # fmt: skip


def full(shape: Shape, fill_value: Number, dtype: type[Numeric] | None = None) -> TensorSSA:
    """Return a vector with all elements equal to a number. The element type defaults to the number's."""
    number = numeric.as_number(fill_value)
    number = (
        number
        if dtype is None
        else numeric.literal(dtype, fill_value)
        if _is_literal(fill_value, dtype)
        else dtype(number)
    )
    shape = static_shape(shape)
    ssa = numeric.emit("vector.broadcast", [number.ssa], vectors.vector_type(type(number), shape))
    return TensorSSA.of(ssa, shape, type(number))


def _is_literal(x: object, dtype: type[Numeric]) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and dtype.width > 1


def full_like(like: Tensor | TensorSSA, fill_value: Number, dtype: type[Numeric] | None = None) -> TensorSSA:
    """Return a vector with the shape and element type of a vector or tensor and all elements equal to a number."""
    return full(like.shape, fill_value, like.element_type if dtype is None else dtype)


def zeros_like(like: Tensor | TensorSSA, dtype: type[Numeric] | None = None) -> TensorSSA:
    """Return a vector of zeros with the shape and element type of a vector or tensor."""
    return full_like(like, 0, dtype)


def ones_like(like: Tensor | TensorSSA, dtype: type[Numeric] | None = None) -> TensorSSA:
    """Return a vector of ones with the shape and element type of a vector or tensor."""
    return full_like(like, 1, dtype)


def empty_like(like: Tensor | TensorSSA, dtype: type[Numeric] | None = None) -> TensorSSA:
    """Return a vector with the shape and element type of a vector or tensor. Its elements are zero."""
    return full_like(like, 0, dtype)


def arange(start: int, stop: int | None = None, step: int = 1, dtype: type[Numeric] = Int32) -> TensorSSA:
    """Return the integers of ``range(start, stop, step)``, or of ``range(start)``, as a vector."""
    numbers = range(start) if stop is None else range(start, stop, step)
    if not numbers:
        raise LayoutError("F243", f"arange: a vector cannot be empty, got {numbers}")
    return vector_of([numeric.literal(dtype, n) for n in numbers])


def where(condition: Value, x: Value, y: Value) -> Value:
    """Return ``x`` where the condition is true, else ``y``, element by element. Both are evaluated."""
    if isinstance(condition, bool) or (isinstance(condition, Numeric) and condition.is_static):
        condition = Boolean.exactly(bool(condition))
    if any(isinstance(v, TensorSSA) for v in (condition, x, y)):
        return mapped(_select, (condition, x, y))
    return _select(condition, x, y)


def _select(condition: Any, x: Any, y: Any) -> Numeric:
    test = numeric.as_number(condition)
    if type(test) is not Boolean:
        raise KernelTypeError(
            "F151", f"where: the condition must be Boolean, got {test.describe()}", hint="compare it: x != 0"
        )
    a, b, kind = numeric.pair(x if isinstance(y, Numeric) else numeric.as_number(x), y, "where")
    a, b = (kind(a), kind(b)) if type(a) is not kind or type(b) is not kind else (a, b)
    if test.is_static:
        return a if test.value else b
    left, right = numeric.alike(a.ssa, b.ssa)
    chosen: SSAValue = test.ssa
    if chosen.type.name == "vector" and left.type.name != "vector":
        wide = numeric.shaped(left.type, chosen)
        left, right = (numeric.emit("vector.broadcast", [v], wide) for v in (left, right))
    return kind.of(numeric.emit("arith.select", [chosen, left, right], left.type))


def concat(*parts: TensorSSA) -> TensorSSA:
    """Return the concatenated elements of vectors of the same type, as a vector with one mode."""
    first = parts[0]
    for p in parts:
        if p.dtype is not first.dtype:
            raise KernelTypeError(
                "F203",
                f"concat: the vectors must have one element type, got {first.dtype!r} and {p.dtype!r}",
                hint="convert with .to(…)",
            )
    ssa, n = first.ssa, first.size
    for p in parts[1:]:
        ssa = vectors.concatenated(ssa, p.ssa)
        n += p.size
    return TensorSSA.of(ssa, n, first.dtype)


def any_(v: TensorSSA) -> Boolean:
    """Return True if any element of a vector is true."""
    return v.any()


def all_(v: TensorSSA) -> Boolean:
    """Return True if all elements of a vector are true."""
    return v.all()
