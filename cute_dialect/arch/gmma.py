"""Shared-memory layouts that WGMMA can read: layout atoms and the choice of the swizzle.

A layout atom has 8 rows of 16, 32, 64 or 128 contiguous bytes.  The rows are 8 values of M or N if k-major, and 8
values of k if mn-major.  Rows wider than 16 bytes are swizzled, so that 8 rows of 16 bytes fall into different banks.
The swizzle acts on byte addresses as ``S<W,4,3>``.  It belongs to the pointer or, in units of elements, to a composed
layout.  ``tile_to_shape`` builds whole tiles.

>>> atom = smem_atom("k", 128, 16)
>>> atom
ComposedLayout("S<3,3,3> o 0 o (8,64):(64,1)")
>>> from cute_dialect.algebra.tiling import tile_to_shape
>>> tile_to_shape(atom, (128, 64))
ComposedLayout("S<3,3,3> o 0 o ((8,16),(64,1)):((64,512),(1,0))")

Source: PTX ISA 9.0, 9.7.15.5.1.2 "Shared Memory Matrix Layout" and "Strides"; CUTLASS
``include/cute/atom/mma_traits_sm90_gmma.hpp`` (BSD-3).
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.algebra.tiling import tile_to_shape
from cute_dialect.algebra.values import ComposedLayout, Layout, Swizzle, raw_layout
from cute_dialect.arch.atom import int_leaves
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import DescriptorError

SWIZZLES = (0, 32, 64, 128)
"""Widths of swizzled rows in bytes.  0 is no swizzle, with rows of 16 bytes."""


def check_swizzle(width: int) -> None:
    """Raise DescriptorError unless ``width`` is one of SWIZZLES."""
    if width not in SWIZZLES:
        raise DescriptorError(f"expected a swizzle of 0, 32, 64 or 128 bytes, got {width}", "swizzle")


def element_width(elt: str | int) -> int:
    """Return the width in bits of an element type, which is given by name or by width.

    >>> element_width("bf16"), element_width(8)
    (16, 8)
    """
    return bits_of(elt) if isinstance(elt, str) else elt


def pointer_swizzle(width: int) -> Swizzle:
    """Return the swizzle on byte addresses for a row width in bytes.

    >>> [str(pointer_swizzle(w)) for w in SWIZZLES]
    ['S<0,4,3>', 'S<1,4,3>', 'S<2,4,3>', 'S<3,4,3>']
    """
    check_swizzle(width)
    return Swizzle(SWIZZLES.index(width), 4, 3)


def element_swizzle(width: int, elt: str | int) -> Swizzle:
    """Return the swizzle on element offsets for a row width in bytes.

    >>> str(element_swizzle(128, "f16")), str(element_swizzle(64, "f8E4M3FN")), str(element_swizzle(32, "tf32"))
    ('S<3,3,3>', 'S<2,4,3>', 'S<1,2,3>')
    """
    check_swizzle(width)
    bits = element_width(elt)
    if bits not in (8, 16, 32):
        raise DescriptorError(f"expected elements of 8, 16 or 32 bits, got {bits}", "element")
    return Swizzle(SWIZZLES.index(width), 4 - (bits // 8).bit_length() + 1, 3)


def swizzle_width(swizzle: Swizzle, elt: str | int = 8) -> int:
    """Return the row width in bytes of a swizzle on offsets of elements ``elt`` (default: byte addresses).

    Raises DescriptorError if the tensor core has no such swizzle.

    >>> swizzle_width(Swizzle(3, 4, 3)), swizzle_width(Swizzle(3, 3, 3), "f16"), swizzle_width(Swizzle(0, 4, 3))
    (128, 128, 0)
    """
    if swizzle.bits == 0:
        return 0
    base = swizzle.base + (element_width(elt) // 8).bit_length() - 1
    if base != 4 or swizzle.shift != 3 or swizzle.bits > 3:
        raise DescriptorError(
            f"expected one of S<0,4,3>, S<1,4,3>, S<2,4,3>, S<3,4,3> on bytes, got S<{swizzle.bits},{base},"
            f"{swizzle.shift}>",
            "swizzle",
        )
    return SWIZZLES[swizzle.bits]


def row_bytes(width: int) -> int:
    """Return the number of contiguous bytes in a row of the layout atom.

    >>> [row_bytes(w) for w in SWIZZLES]
    [16, 32, 64, 128]
    """
    check_swizzle(width)
    return width or 16


def pattern_bytes(width: int) -> int:
    """Return the period of the swizzle pattern in bytes, which is the alignment of the tile and at least 16.

    >>> [pattern_bytes(w) for w in SWIZZLES]
    [16, 256, 512, 1024]
    """
    check_swizzle(width)
    return 8 * width or 16


def plain_atom(major: str, width: int, elt: str | int) -> Layout:
    """Return the layout atom (X, k) without its swizzle, in elements; X is M or N.

    >>> plain_atom("k", 128, "f16"), plain_atom("mn", 64, "bf16"), plain_atom("k", 0, "f8E5M2")
    (Layout("(8,64):(64,1)"), Layout("(32,8):(1,32)"), Layout("(8,16):(16,1)"))
    """
    if major not in ("k", "mn"):
        raise DescriptorError(f"expected 'k' or 'mn', got {major!r}", "major")
    row = row_bytes(width) * 8 // element_width(elt)
    return raw_layout((8, row), (row, 1)) if major == "k" else raw_layout((row, 8), (1, row))


def smem_atom(major: str, width: int, elt: str | int) -> ComposedLayout | Layout:
    """Return the layout atom with its swizzle on elements, or a plain layout if ``width`` is 0.

    >>> smem_atom("mn", 32, "f16"), smem_atom("k", 0, "f16")
    (ComposedLayout("S<1,3,3> o 0 o (16,8):(1,16)"), Layout("(8,8):(8,1)"))
    """
    plain = plain_atom(major, width, elt)
    return ComposedLayout(element_swizzle(width, elt), 0, plain) if width else plain


def smem_tile(
    major: str, width: int, elt: str | int, shape: tuple[int, int], order: tuple[int, int] | None = None
) -> ComposedLayout | Layout:
    """Return a tile (X, K) of layout atoms, ordered along X first unless ``order`` is ``(1, 0)``.

    Raises DescriptorError if the tile does not consist of whole atoms.

    >>> smem_tile("mn", 128, "f16", (128, 64), (1, 0))
    ComposedLayout("S<3,3,3> o 0 o ((64,2),(8,8)):((1,4096),(64,512))")
    """
    atom = smem_atom(major, width, elt)
    block = int_leaves(plain_atom(major, width, elt).shape)
    for mode, have, need in zip(("X", "K"), shape, block):
        if have <= 0 or have % need:
            raise DescriptorError(f"expected a multiple of {need}, the extent of the layout atom, got {have}", mode)
    return tile_to_shape(atom, shape, order)


class SwizzleChoice(NamedTuple):
    """A swizzle width in bytes (0, 32, 64, 128) and the reason for it."""

    width: int
    reason: str


def choose_swizzle(tile: tuple[int, int], major: str, elt: str | int) -> SwizzleChoice:
    """Choose the widest swizzle whose layout atom divides a tile (X, K).

    A wider swizzle needs fewer TMA boxes and, up to 128 bytes, causes fewer bank conflicts.  Raises DescriptorError if
    rows of 16 bytes do not divide the tile either.

    >>> choose_swizzle((128, 64), "k", "f16")
    SwizzleChoice(width=128, reason='rows of 128 bytes along K divide 128')
    >>> choose_swizzle((128, 48), "k", "f16")
    SwizzleChoice(width=32, reason='rows of 32 bytes along K divide 96; 64 and 128 do not')
    """
    if major not in ("k", "mn"):
        raise DescriptorError(f"expected 'k' or 'mn', got {major!r}", "major")
    bits = element_width(elt)
    if major == "mn" and bits != 16:
        raise DescriptorError(
            f"expected a k-major tile: only 16-bit elements can be mn-major, got {bits} bits", "major"
        )
    along, across = ("K", "X") if major == "k" else ("X", "K")
    extent, rows = (tile[1], tile[0]) if major == "k" else tile
    if rows <= 0 or rows % 8:
        raise DescriptorError(f"expected a multiple of 8 rows, got {rows}", across)
    if extent <= 0 or extent * bits % 128:
        raise DescriptorError(
            f"expected a multiple of 16 bytes along the contiguous index, got {extent} elements of {bits} bits", along
        )
    have = extent * bits // 8
    refused: list[str] = []
    for width in (128, 64, 32):
        if have % width == 0:
            others = f"; {' and '.join(reversed(refused))} do{'' if len(refused) > 1 else 'es'} not" if refused else ""
            return SwizzleChoice(width, f"rows of {width} bytes along {along} divide {have}{others}")
        refused.append(str(width))
    return SwizzleChoice(0, f"rows of 16 bytes along {along} divide {have}; 32, 64 and 128 do not")


__all__ = [
    "SWIZZLES",
    "SwizzleChoice",
    "choose_swizzle",
    "element_swizzle",
    "element_width",
    "pattern_bytes",
    "plain_atom",
    "pointer_swizzle",
    "row_bytes",
    "smem_atom",
    "smem_tile",
    "swizzle_width",
]
