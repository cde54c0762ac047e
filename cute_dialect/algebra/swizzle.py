"""Swizzles and the slices of swizzled layouts."""

from __future__ import annotations

from cute_dialect.algebra.leaf import Leaf, and_, shl, shr, xor
from cute_dialect.algebra.values import ComposedLayout, Swizzle


def masks(swizzle: Swizzle) -> tuple[int, int]:
    """Bits that the swizzle reads (y) and bits that it changes (z).

    >>> [bin(m) for m in masks(Swizzle(2, 1, 3))]
    ['0b110000', '0b110']
    """
    mask = (1 << swizzle.bits) - 1
    return (
        mask << (swizzle.base + max(0, swizzle.shift)),
        mask << (swizzle.base - min(0, swizzle.shift)),
    )


def apply_swizzle(swizzle: Swizzle, x: Leaf) -> Leaf:
    """``x ^ ((x & ymask) >> shift)``, shifted left for a negative shift; on a dynamic leaf three instructions."""
    ymask, _ = masks(swizzle)
    s = swizzle.shift
    if type(x) is int:
        return x ^ ((x & ymask) >> s if s >= 0 else (x & ymask) << -s)
    # The masks are unsigned 32-bit numbers; as an operand of a 32-bit instruction bit 31 is the sign.
    moved = and_(x, _operand(ymask, x))
    return xor(x, shr(moved, s) if s >= 0 else shl(moved, -s))


def _operand(mask: int, x: Leaf) -> int:
    return mask - (1 << 32) if mask >> 31 and not isinstance(x, int) and x.width <= 32 else mask

__all__ = ["ComposedLayout", "Swizzle", "apply_swizzle", "masks"]
