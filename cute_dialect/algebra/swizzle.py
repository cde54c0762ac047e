"""Swizzles: their function on integers, and the slices of swizzled layouts.

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
    """Return the bits that the swizzle reads (y) and the bits that it changes (z).

    >>> [bin(m) for m in masks(Swizzle(2, 1, 3))]
    ['0b110000', '0b110']
    """
    mask = (1 << swizzle.bits) - 1
    return mask << (swizzle.base + max(0, swizzle.shift)), mask << (swizzle.base - min(0, swizzle.shift))


def apply_swizzle(swizzle: Swizzle, x: Leaf) -> Leaf:
    """Return ``x ^ ((x & ymask) >> shift)``, shifted left for a negative shift; on a dynamic leaf three
    instructions.

    With divisibility a multiple of a power of two above the bits that are read stays as it is, without instruction.
    """
    ymask, _ = masks(swizzle)
    s = swizzle.shift
    if type(x) is int:
        return x ^ ((x & ymask) >> s if s >= 0 else (x & ymask) << -s)
    moved = and_(x, _operand(ymask, x))
    return xor(x, shr(moved, s) if s >= 0 else shl(moved, -s))


def _operand(mask: int, x: Leaf) -> int:
    # Masks are unsigned 32-bit numbers; as an operand of a 32-bit instruction bit 31 is the sign.
    return mask - (1 << 32) if mask >> 31 and isinstance(x, Dyn) and x.width <= 32 else mask


def slice_swizzled(coord: Coord, value: ComposedLayout, moved: bool = True) -> tuple[ComposedLayout | Layout, Leaf]:
    """Return the slice of ``S o offset o B`` and the pointer offset that goes with it, in elements.

    The integers of the coordinate contribute the index ``f``.  Its bits in the two fields of the swizzle go into the
    offset by xor; the others only move the pointer.  This takes the modes of ``B`` to be bit fields that do not
    overlap: strides are powers of two there, as in every layout that is swizzled on purpose.

    * nothing fixed: ``S o offset o slice(B)``;
    * the free modes have bits in both fields that meet: ``S o o o slice(B)``, with the pointer moved by the other bits;
    * else the swizzle acts on the free modes like a linear map, which takes a bit of the read field to itself plus or
      minus the bit it flips: the result is a plain layout, with the pointer moved by ``S(o)`` and the other bits.

    With a dynamic offset the signs of the strides are selected at run time.  Without ``moved`` the pointer offset is
    not computed (and not emitted) and 0 stands for it.

    Raises AlgebraError for a dynamic ``B`` and a coordinate without ``_``.

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
    """Return what slicing a tensor adds to its pointer, in elements.  Raises AlgebraError as the slice does."""
    if not isinstance(layout.inner, Swizzle):
        return slice_and_offset(coord, layout)[1]
    swizzle, part, base, fixed, only = _fixed_and_free(coord, layout)
    if base is None:
        return 0
    rest = _without(fixed, only)
    return rest if _interacts(swizzle, part) else add(apply_swizzle(swizzle, base), rest)


def _fixed_and_free(coord: Coord, value: ComposedLayout) -> tuple[Swizzle, Layout, Leaf | None, Leaf, Leaf]:
    # The swizzle; the free modes; the offset with the fixed bits of the fields, None if nothing is fixed; the index of
    # the fixed coordinates, and its bits in the fields.
    swizzle, offset, outer = value.inner, value.offset, value.outer
    assert isinstance(swizzle, Swizzle) and type(offset) is not tuple
    if not is_static(outer):
        raise AlgebraError(f"expected a static swizzled layout to slice, got {shown(outer)}")
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
    # Subtracting bits that are set clears them, and keeps more of a known divisor than masking would.
    return sub(fixed, only)


def _interacts(swizzle: Swizzle, part: Layout) -> bool:
    # Whether bits that the swizzle reads and bits that it changes are both in use.
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
            raise AlgebraError(f"expected an integer index to swizzle, got the arithmetic tuple {shown(index)}")
        return 0
    return index  # type: ignore[return-value]


def _xor(a: Leaf, b: Leaf) -> Leaf:
    return a ^ b if type(a) is int and type(b) is int else xor(a, b)


def _linear_map(swizzle: Swizzle, base: Leaf) -> Layout:
    """The layout that maps the bits of an index as the swizzle does next to ``base``.

    A bit ``z`` that the swizzle changes counts ``+z`` where the bit ``y`` that flips it is clear in ``base`` and ``-z``
    where it is set; a bit ``y`` counts ``y + z`` where ``z`` is clear in ``base`` and ``y - z`` where it is set.
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
