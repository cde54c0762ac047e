"""Layouts: evaluation, index and coordinate conversions, coalescing, grouping, slicing, construction.

>>> L = Layout("(3,(2,4)):(8,(4,1))")
>>> evaluate((1, 2), L), evaluate(7, L), size(L), cosize(L)
(9, 9, 24, 24)
>>> coalesce(Layout("(2,(1,6)):(1,(6,2))"))
Layout("12:1")
"""

from __future__ import annotations

from typing import TypeVar

from cute_dialect.algebra.int_tuple import (
    arithmetic_add,
    check_range,
    product,
)
from cute_dialect.algebra.leaf import (
    AlgebraError,
    Leaf,
    mul,
)
from cute_dialect.algebra.leaf import div as leaf_div
from cute_dialect.algebra.leaf import mod as leaf_mod
from cute_dialect.algebra.values import (
    UNDERSCORE,
    AnyLayout,
    Basis,
    ComposedLayout,
    Coord,
    IntTuple,
    Layout,
    Stride,
    Swizzle,
)

A = TypeVar("A", Layout, ComposedLayout)


def _text(value: object) -> str:
    from cute_dialect.algebra.text import to_text

    return to_text(value)  # type: ignore[arg-type]


def scale(n: Leaf, stride: Leaf | Basis) -> Leaf | Basis:
    """``n`` steps of a stride leaf: a product, or a basis element with the value multiplied."""
    if type(stride) is int and type(n) is int:
        return n * stride
    if isinstance(stride, Basis):
        return Basis(mul(n, stride.value), stride.path)
    return mul(n, stride)


# ---------------------------------------------------------------------------------------------------- evaluation


def evaluate(coord: Coord, layout: AnyLayout) -> IntTuple:
    """The index value at a coordinate; ``_`` counts as 0, nothing is bounds-checked.

    An integer for integer strides, an arithmetic tuple for basis strides, ``()`` for the empty layout.  For a composed
    layout ``A o off o B`` it is ``A(off + B(coord))``.  Raises AlgebraError when the coordinate does not fit the shape.

    >>> evaluate(20, Layout("(4,4):(4,1)")), evaluate((1, 2), Layout("(4,8):(1@1,2@0)"))
    (5, (4, 1))
    """
    if type(layout) is Layout:
        return _evaluate(coord, layout.shape, layout.stride)
    assert isinstance(layout, ComposedLayout)
    outer = layout.outer
    index = arithmetic_add(layout.offset, _evaluate(coord, outer.shape, outer.stride))
    if isinstance(layout.inner, Swizzle):
        from cute_dialect.algebra.swizzle import apply_swizzle

        if type(index) is tuple:
            raise AlgebraError(f"expected an integer to swizzle, got the arithmetic tuple {_text(index)}")
        return apply_swizzle(layout.inner, index)
    return evaluate(index, layout.inner)


def _evaluate(c: Coord, s: IntTuple, d: Stride) -> IntTuple:
    if type(s) is not tuple:
        if type(c) is int and type(d) is int:
            return check_range(c * d)
        return _evaluate_leaf(c, d)  # type: ignore[arg-type]
    if type(c) is int:
        if c >= 0:
            total, rest, step = _evaluate_static(c, s, d)  # type: ignore[arg-type]
            if step is not None:
                # What is left runs on along the last leaf, which has no upper end.
                return check_range(total + rest * step)
        return _evaluate_linear(c, s, d)  # type: ignore[arg-type]
    if type(c) is not tuple:
        return _evaluate_linear(0 if c is UNDERSCORE else c, s, d)  # type: ignore[arg-type]
    if not s:
        return ()
    if len(c) != len(s):
        raise AlgebraError(f"expected a coordinate of rank {len(s)} for the shape {_text(s)}, got {_text(c)}")
    total = None
    for ci, si, di in zip(c, s, d):  # type: ignore[arg-type]
        v: IntTuple = ci * di if type(ci) is int and type(di) is int else _evaluate(ci, si, di)  # type: ignore
        if total is None:
            total = v
        elif type(total) is int and type(v) is int:
            total += v
        else:
            total = arithmetic_add(total, v)
    if type(total) is int:
        check_range(total)
    return total  # type: ignore[return-value]


def _evaluate_static(c: int, s: tuple[IntTuple, ...], d: tuple[Stride, ...]) -> tuple[int, int, int | None]:
    # Sum over the leaves with the digits of c, what remains of c, and the step of one more round of the last leaf.
    # None as the step: there are no leaves, or some are not plain integers.
    total = 0
    step: int | None = None
    for si, di in zip(s, d):
        if type(si) is int and type(di) is int:
            if c >= si:
                q = c // si
                total += (c - q * si) * di
                c = q
            else:
                total += c * di
                c = 0
            step = si * di
        elif type(si) is tuple:
            part, c, step = _evaluate_static(c, si, di)  # type: ignore[arg-type]
            if step is None:
                return 0, 0, None
            total += part
        else:
            return 0, 0, None
    return total, c, step


def _evaluate_leaf(c: Coord, d: Leaf | Basis) -> IntTuple:
    if c is UNDERSCORE:
        c = 0
    if type(c) is tuple:
        raise AlgebraError(f"expected an integer coordinate for a scalar mode, got {_text(c)}")
    if isinstance(d, Basis):
        result: IntTuple = mul(c, d.value)  # type: ignore[arg-type]
        for i in reversed(d.path):
            result = (0,) * i + (result,)
        return result
    return mul(c, d)  # type: ignore[arg-type]


def _evaluate_linear(c: Leaf, s: tuple[IntTuple, ...], d: tuple[Stride, ...]) -> IntTuple:
    if not s:
        return ()
    total: IntTuple = ()
    last = len(s) - 1
    for i in range(last):
        if type(c) is int and c == 0:
            # Quotient and remainder of 0 are 0 whatever the extent, so it need not be multiplied out.
            r: Leaf = 0
        else:
            extent = product(s[i])
            q, r = leaf_div(c, extent), leaf_mod(c, extent)
            c = q
        total = arithmetic_add(total, _evaluate(r, s[i], d[i]))
    return arithmetic_add(total, _evaluate(c, s[last], d[last]))


