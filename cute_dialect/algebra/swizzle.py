"""Swizzles: application to integers, and slicing of swizzled layouts.

>>> apply_swizzle(Swizzle(3, 4, 3), 130)
146
"""

from __future__ import annotations

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.layout import slice_and_offset, tree_dice, tree_slice
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, add, and_, compare, select, shl, shr, sub, xor
from cute_dialect.algebra.trees import is_static, shown, tree_leaves, weakly_congruent
from cute_dialect.algebra.values import (
    UNDERSCORE,
    ComposedLayout,
    Coord,
    IntTuple,
    Layout,
    Swizzle,
    raw_layout,
)


def masks(swizzle: Swizzle) -> tuple[int, int]:
    """Return the masks ``(ymask, zmask)`` of the bits that the swizzle reads and of the bits that it flips.

    >>> [bin(m) for m in masks(Swizzle(2, 1, 3))]
    ['0b110000', '0b110']
    """
    mask = (1 << swizzle.bits) - 1
    return mask << (swizzle.base + max(0, swizzle.shift)), mask << (swizzle.base - min(0, swizzle.shift))


def apply_swizzle(swizzle: Swizzle, x: Leaf) -> Leaf:
    """Return ``x ^ ((x & ymask) >> shift)``, with a left shift if ``shift`` is negative.

    A dynamic leaf takes three instructions.  It takes none if its divisibility proves that the bits read are 0.
    """
    ymask, _ = masks(swizzle)
    s = swizzle.shift
    if type(x) is int:
        return x ^ ((x & ymask) >> s if s >= 0 else (x & ymask) << -s)
    moved = and_(x, _operand(ymask, x))
    return xor(x, shr(moved, s) if s >= 0 else shl(moved, -s))


def _operand(mask: int, x: Leaf) -> int:
    # Masks are unsigned 32-bit numbers.  In a 32-bit instruction bit 31 is the sign bit of the operand.
    return mask - (1 << 32) if mask >> 31 and isinstance(x, Dyn) and x.width <= 32 else mask


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
    return plain, add(apply_swizzle(swizzle, base), _without(fixed, only)) if moved else 0


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
    return rest if _interacts(swizzle, part) else add(apply_swizzle(swizzle, base), rest)


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
    fields = masks(swizzle)[0] | masks(swizzle)[1]
    only = and_(fixed, _operand(fields, fixed))
    return swizzle, part, _xor(offset, only), fixed, only  # type: ignore[arg-type]


def _without(fixed: Leaf, only: Leaf) -> Leaf:
    # Subtracting set bits clears them, and preserves more divisibility than masking.
    return sub(fixed, only)


def _interacts(swizzle: Swizzle, part: Layout) -> bool:
    # True if a bit that the swizzle reads and the bit that it flips are both used by the free modes.
    ymask, zmask = masks(swizzle)
    last = _scalar(evaluate(sub(size(part), 1), part))
    assert type(last) is int
    active = last & (ymask | zmask)
    swizzled = apply_swizzle(swizzle, active)
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
    tested = and_(base, _operand(bit, base))
    return select(compare("eq", tested, 0), clear, set_)


__all__ = [
    "apply_swizzle",
    "masks",
    "slice_pointer_offset",
    "slice_swizzled",
]
