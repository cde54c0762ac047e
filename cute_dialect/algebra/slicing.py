"""Slicing of trees and layouts: the modes at which a coordinate has ``_``, or at which it has integers.

>>> slice_((UNDERSCORE, 2), Layout("(6,5):(5,1)")), evaluate((UNDERSCORE, 2), Layout("(6,5):(5,1)"))
(Layout("(6):(5)"), 2)
"""

from __future__ import annotations

from typing import TypeVar

from cute_dialect.algebra.arithmetic import arithmetic_add
from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.leaf import AlgebraError, Leaf, add, and_, compare, mask_operand, select, sub, xor
from cute_dialect.algebra.trees import is_static, shown, tree_leaves, weakly_congruent
from cute_dialect.algebra.values import (
    UNDERSCORE,
    AnyLayout,
    ComposedLayout,
    Coord,
    IntTuple,
    Layout,
    Swizzle,
    raw_layout,
)

T = TypeVar("T")


def tree_slice(coord: Coord, tree: T) -> T:
    """Return the subtrees at which the coordinate has ``_``.  Subtrees kept inside a tuple are spliced into its level.

    >>> tree_slice((3, (UNDERSCORE, 0)), (1, (2, 3))), tree_slice((1, UNDERSCORE), (2, (3, 4)))
    ((2,), ((3, 4),))
    """
    if coord is UNDERSCORE:
        return tree
    return tuple(_pick(coord, tree, True)) if type(coord) is tuple else ()  # type: ignore[return-value]


def tree_dice(coord: Coord, tree: T) -> T:
    """Return the subtrees at which the coordinate has an integer: the counterpart of :func:`tree_slice`.

    >>> tree_dice((3, (UNDERSCORE, 0)), (1, (2, 3)))
    (1, 3)
    """
    if coord is UNDERSCORE:
        return ()  # type: ignore[return-value]
    return tuple(_pick(coord, tree, False)) if type(coord) is tuple else tree  # type: ignore[return-value]


def _pick(coord: tuple[Coord, ...], tree: object, free: bool) -> list[object]:
    out: list[object] = []
    if not isinstance(tree, tuple):
        raise AlgebraError(f"expected a tree nested like the coordinate {shown(coord)}, got {shown(tree)}")
    for c, t in zip(coord, tree):  # type: ignore[call-overload]
        if type(c) is tuple:  # type: ignore
            out += _pick(c, t, free)  # type: ignore
        elif (c is UNDERSCORE) is free:
            out.append(t)  # type: ignore
    return out


def slice_(coord: Coord, value: T) -> T:
    """Return the modes of a tree or layout at which the coordinate has ``_``.

    The offset of a sliced layout is not part of the result; it is ``evaluate(coord, layout)``.  In a composed layout it
    is added to the offset.  A swizzled layout may slice to a plain layout, see
    :func:`slice_swizzled`.

    Raises:
        AlgebraError: the coordinate is not weakly congruent with the value.

    >>> slice_((UNDERSCORE, 2, (UNDERSCORE, 0)), Layout("(3,5,(2,4)):(40,8,(4,1))"))
    Layout("(3,2):(40,4)")
    """
    _check_slice(coord, value)
    if isinstance(value, Layout):
        return _slice_layout(coord, value)  # type: ignore[return-value]
    if isinstance(value, ComposedLayout):
        return _slice_composed(coord, value, False)[0]  # type: ignore[return-value]
    return tree_slice(coord, value)


def slice_and_offset(coord: Coord, value: T) -> tuple[T, IntTuple]:
    """Return :func:`slice_` and the offset that a tensor with this layout must add to its pointer or iterator.

    The offset of a plain layout is ``evaluate(coord, layout)``; the offset of a tree is 0.
    """
    _check_slice(coord, value)
    if isinstance(value, Layout):
        return _slice_layout(coord, value), evaluate(coord, value)  # type: ignore[return-value]
    if isinstance(value, ComposedLayout):
        return _slice_composed(coord, value, True)  # type: ignore[return-value]
    return tree_slice(coord, value), 0


def _check_slice(coord: Coord, value: object) -> None:
    plain = value.outer if isinstance(value, ComposedLayout) else value
    tree = plain.shape if isinstance(plain, Layout) else plain
    if not weakly_congruent(coord, tree):  # type: ignore[arg-type]
        raise AlgebraError(f"expected a coordinate that fits {shown(tree)}, got {shown(coord)}")


def _slice_layout(coord: Coord, value: Layout) -> Layout:
    return raw_layout(tree_slice(coord, value.shape), tree_slice(coord, value.stride))


def _slice_composed(coord: Coord, value: ComposedLayout, moved: bool) -> tuple[AnyLayout, IntTuple]:
    inner, offset, outer = value.inner, value.offset, value.outer
    if isinstance(inner, Swizzle):
        return slice_swizzled(coord, value, moved)
    offset = arithmetic_add(offset, evaluate(coord, outer))
    return ComposedLayout(inner, offset, _slice_layout(coord, outer)), 0


def dice(coord: Coord, value: T) -> T:
    """Return the modes of a tree or layout at which the static coordinate has an integer.

    For a composed layout, the outer layout is diced and the offset is kept.

    Raises:
        AlgebraError: the coordinate is dynamic, or not weakly congruent with the value.

    >>> dice(((1, UNDERSCORE), UNDERSCORE), Layout("((3,2),5):((2,1),6)"))
    Layout("(3):(2)")
    """
    if isinstance(value, ComposedLayout):
        return ComposedLayout(value.inner, value.offset, dice(coord, value.outer))  # type: ignore[return-value]
    if not is_static(coord):
        raise AlgebraError(f"expected a static coordinate, got {shown(coord)}")
    tree = value.shape if isinstance(value, Layout) else value
    if not weakly_congruent(coord, tree):  # type: ignore[arg-type]
        raise AlgebraError(f"expected a coordinate that fits {shown(tree)}, got {shown(coord)}")
    if isinstance(value, Layout):
        return raw_layout(tree_dice(coord, value.shape), tree_dice(coord, value.stride))  # type: ignore[return-value]
    return tree_dice(coord, value)


# -------------------------------------------------------------------------------------------- swizzled layouts


def slice_swizzled(coord: Coord, value: ComposedLayout, moved: bool = True) -> tuple[ComposedLayout | Layout, Leaf]:
    """Slice a swizzled layout ``S o offset o B`` and return the slice with its pointer offset in elements.

    The integers of the coordinate contribute an index ``f``.  Bits of ``f`` inside the two fields of the swizzle are
    xored into the offset of the result.  The other bits only move the pointer.  The modes of ``B`` must be bit fields
    that do not overlap, as they are in every layout with power-of-two strides.

    * If the coordinate fixes nothing, the result is ``S o offset o slice(B)``.
    * If the free modes use a bit that the swizzle reads and the bit that it flips, the result is
      ``S o offset' o slice(B)``.  The pointer moves by the bits outside the fields.
    * Otherwise the swizzle is linear on the free modes.  A bit ``y`` that is read maps to ``y + z`` or ``y - z``, where
      ``z`` is the bit that it flips.  The result is a plain layout, and the pointer also moves by ``S(offset')``.

    With a dynamic offset the signs of the strides are selected at run time.  If ``moved`` is False the pointer offset
    is neither computed nor emitted, and 0 is returned in its place.

    Raises:
        AlgebraError: ``B`` is dynamic, or the coordinate has no ``_``.

    >>> S = ComposedLayout(Swizzle(2, 0, 2), 0, Layout("(4,4):(1,4)"))
    >>> slice_swizzled((UNDERSCORE, 1), S)
    (Layout("((2,2)):((-1,2))"), 5)
    >>> slice_swizzled((UNDERSCORE, UNDERSCORE), S)[0] == S
    True
    """
    swizzle, part, base, fixed, only = _fixed_and_free(coord, value)
    if base is None:
        return _decayed(swizzle, value.offset, part), 0  # type: ignore[arg-type]
    if _interacts(swizzle, part):
        return _decayed(swizzle, base, part), _without(fixed, only) if moved else 0
    plain = compose(_linear_map(swizzle, base), part)
    return plain, add(swizzle(base), _without(fixed, only)) if moved else 0


def slice_pointer_offset(coord: Coord, layout: ComposedLayout) -> IntTuple:
    """Return the pointer offset, in elements, of a slice of a tensor with a composed layout.

    Raises:
        AlgebraError: the slice is not defined, as in :func:`slice_and_offset`.
    """
    if not isinstance(layout.inner, Swizzle):
        return slice_and_offset(coord, layout)[1]
    swizzle, part, base, fixed, only = _fixed_and_free(coord, layout)
    if base is None:
        return 0
    rest = _without(fixed, only)
    return rest if _interacts(swizzle, part) else add(swizzle(base), rest)


def _fixed_and_free(coord: Coord, value: ComposedLayout) -> tuple[Swizzle, Layout, Leaf | None, Leaf, Leaf]:
    # Returns the swizzle, the free modes, the new offset, the index of the fixed coordinates, and the bits of that
    # index inside the fields.  The new offset is the old one xored with these bits, or None if nothing is fixed.
    swizzle, offset, outer = value.inner, value.offset, value.outer
    assert isinstance(swizzle, Swizzle) and type(offset) is not tuple
    if not is_static(outer):
        raise AlgebraError(f"slicing a swizzled layout needs a static outer layout, got {shown(outer)}")
    if not weakly_congruent(coord, outer.shape):
        # unreachable: callers in this package have checked it
        raise AlgebraError(f"expected a coordinate that fits {shown(outer.shape)}, got {shown(coord)}")
    crd_leaves = tree_leaves(coord)
    if UNDERSCORE not in crd_leaves:
        raise AlgebraError(f"expected a coordinate with '_' for a swizzled layout, got {shown(coord)}")
    part = raw_layout(tree_slice(coord, outer.shape), tree_slice(coord, outer.stride))
    if all([c is UNDERSCORE for c in crd_leaves]):
        return swizzle, part, None, 0, 0
    fixed = _scalar(
        evaluate(tree_dice(coord, coord), raw_layout(tree_dice(coord, outer.shape), tree_dice(coord, outer.stride)))
    )
    fields = swizzle.masks()[0] | swizzle.masks()[1]
    only = and_(fixed, mask_operand(fields, fixed))
    return swizzle, part, _xor(offset, only), fixed, only  # type: ignore[arg-type]


def _without(fixed: Leaf, only: Leaf) -> Leaf:
    # Subtracting set bits clears them, and preserves more divisibility than masking.
    return sub(fixed, only)


def _interacts(swizzle: Swizzle, part: Layout) -> bool:
    # True if a bit that the swizzle reads and the bit that it flips are both used by the free modes.
    ymask, zmask = swizzle.masks()
    last = _scalar(evaluate(sub(size(part), 1), part))
    assert type(last) is int
    active = last & (ymask | zmask)
    swizzled = swizzle(active)
    assert type(swizzled) is int
    return active & ~swizzled != 0


def _decayed(swizzle: Swizzle, offset: Leaf, outer: Layout) -> ComposedLayout | Layout:
    if swizzle.bits == 0 and type(offset) is int and offset == 0:
        return outer
    return ComposedLayout(swizzle, offset, outer)


def _scalar(index: IntTuple) -> Leaf:
    if type(index) is tuple:
        if index:
            # unreachable: callers in this package have checked it
            raise AlgebraError(f"expected an integer index for the swizzle, got the arithmetic tuple {shown(index)}")
        return 0
    return index  # type: ignore[return-value]


def _xor(a: Leaf, b: Leaf) -> Leaf:
    return a ^ b if type(a) is int and type(b) is int else xor(a, b)


def _linear_map(swizzle: Swizzle, base: Leaf) -> Layout:
    """Return a linear layout that equals the swizzle if one bit of each pair (y, z) varies and ``base`` has the other.

    A flipped bit ``z`` has stride ``+z`` if the bit ``y`` that flips it is clear in ``base``, and ``-z`` if it is set.
    A bit ``y`` that is read has stride ``y + z`` if ``z`` is clear in ``base``, and ``y - z`` if it is set.
    """
    b, m, s = swizzle.bits, swizzle.base, swizzle.shift
    reach = abs(s)
    low = [1 << (m + i) for i in range(b)]
    high = [1 << (m + reach + i) for i in range(b)]
    z_bits, y_bits = (low, high) if s >= 0 else (high, low)
    z_strides = [_signed(base, y, z, -z) for z, y in zip(z_bits, y_bits)]
    y_strides = [_signed(base, z, y + z, y - z) for z, y in zip(z_bits, y_bits)]
    low_strides, high_strides = (z_strides, y_strides) if s >= 0 else (y_strides, z_strides)
    shape = (1 << m, *([2] * b), 1 << (reach - b), *([2] * b), 1)
    return raw_layout(shape, (1, *low_strides, 1 << (m + b), *high_strides, 1 << (m + b + reach)))


def _signed(base: Leaf, bit: int, clear: int, set_: int) -> Leaf:
    if type(base) is int:
        return set_ if base & bit else clear
    tested = and_(base, mask_operand(bit, base))
    return select(compare("eq", tested, 0), clear, set_)


__all__ = [
    "dice",
    "slice_",
    "slice_and_offset",
    "slice_pointer_offset",
    "slice_swizzled",
    "tree_dice",
    "tree_slice",
]
