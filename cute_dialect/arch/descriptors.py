"""WGMMA matrix descriptors, derived from shared-memory layouts.

A descriptor gives the location of an operand tile (X, K) to the tensor core.  X is M or N, and K is 32 bytes deep, the
depth of one instruction.  A row has ``W`` = 1, 2, 4 or 8 units of 16 bytes for no swizzle and for swizzles of 32, 64
and 128 bytes.  In these units the layout of the tile must be:

* k-major, ``((8,x),2)``:  no swizzle ``((1,SBO),LBO)``; swizzled ``((W,SBO),1)``;
* mn-major (16-bit elements only), ``((W,x),(8,k))``:  no swizzle ``((1,SBO),(1,LBO))``; swizzled ``((1,LBO),(W,SBO))``.

Any other layout is rejected with an error that names the mode at fault.

>>> view = derive(smem_tile("k", 128, "f16", (128, 64)), "f16")
>>> hex(view.descriptor.at(0x2400).bits), view.steps
('0x4000004000010240', Layout("(1,4):(0,2)"))

In the last layout, the next 16 elements along K are at a distance of 2 units, that is 32 bytes.

Source: PTX ISA 9.0, 9.7.15.5.1.2 "Shared Memory Matrix Layout", 9.7.15.5.1.2.2 "Matrix Descriptor Format"; CUTLASS
``include/cute/arch/mma_sm90_desc.hpp``, ``include/cute/atom/mma_traits_sm90_gmma.hpp`` (BSD-3).

**Layouts.** A layout atom has 8 rows of 16, 32, 64 or 128 contiguous bytes.  The rows are 8 values of M or N if
k-major, and 8 values of k if mn-major.  Rows wider than 16 bytes are swizzled, so that 8 rows of 16 bytes fall into
different banks. The swizzle acts on byte addresses as ``S<W,4,3>``.  It belongs to the pointer or, in units of
elements, to a composed layout.  ``tile_to_shape`` builds whole tiles.

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

from dataclasses import dataclass, replace
from typing import NamedTuple

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.layout import coalesce, make_layout, recast_layout
from cute_dialect.algebra.tiling import logical_divide, tile_to_shape, zipped_divide
from cute_dialect.algebra.trees import is_static, product, tree_leaves
from cute_dialect.algebra.values import (
    AnyLayout,
    Basis,
    ComposedLayout,
    IntTuple,
    Layout,
    Stride,
    Swizzle,
    layout_modes,
    raw_layout,
)
from cute_dialect.arch.atom import MmaAtom, int_leaves
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import DescriptorError
from cute_dialect.spaces import AddressSpace

SWIZZLES = (0, 32, 64, 128)
"""Widths of swizzled rows in bytes.  0 is no swizzle, with rows of 16 bytes."""

WIDE_ATOM = 32
"""Bytes that the 128-byte swizzle of mn-major 32-bit elements keeps together; all other swizzles keep 16."""


class DescriptorRules(NamedTuple):
    """The operand layouts that a generation of tensor cores reads from shared memory."""

    mn_bits: tuple[int, ...] = (16,)
    """Widths of elements that may be mn-major."""

    wide_bits: tuple[int, ...] = ()
    """Widths of elements whose mn-major layout is swizzled in units of 32 bytes; no other mn-major layout has them."""


WGMMA = DescriptorRules()
TCGEN05 = DescriptorRules((8, 16, 32), (32,))
"""Rules of tcgen05: PTX ISA, "Canonical layouts" and "Shared memory descriptor" of tcgen05.mma."""


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


def is_wide(swizzle: Swizzle, elt: str | int = 8) -> bool:
    """Return True for the 128-byte swizzle in units of 32 bytes, on offsets of elements ``elt``.

    >>> is_wide(Swizzle(2, 5, 2)), is_wide(Swizzle(2, 3, 2), "tf32"), is_wide(Swizzle(3, 4, 3))
    (True, True, False)
    """
    base = swizzle.base + (element_width(elt) // 8).bit_length() - 1
    return (swizzle.bits, base, swizzle.shift) == (2, 5, 2)


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


# ---------------------------------------------------------------------------------------------------------- descriptors


_TYPE_OF_WIDTH = {0: 0, 128: 1, 64: 2, 32: 3}
_FIELD = 1 << 14


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """The fields of a matrix descriptor.

    Raises:
        DescriptorError: a number does not fit its field.
    """

    major: str
    """Contiguous index: "k" or "mn"."""

    width: int
    """Width of the swizzle in bytes."""

    lbo: int
    """Leading-dimension byte offset."""

    sbo: int
    """Stride-dimension byte offset."""

    start: int = 0
    """Start address in shared memory in bytes."""

    base_offset: int = 0
    """0 if the swizzle pattern starts at a multiple of its period."""

    atom: int = 16
    """Bytes that the swizzle keeps together: 16, or 32 for mn-major 32-bit elements."""

    def __post_init__(self) -> None:
        for name, value in (("start", self.start), ("LBO", self.lbo), ("SBO", self.sbo)):
            if value % 16:
                raise DescriptorError(f"expected a multiple of 16 bytes, got {value}", name)
            if not 0 <= value >> 4 < _FIELD:
                raise DescriptorError(f"expected 0 to {(_FIELD - 1) << 4} bytes, got {value}", name)
        if not 0 <= self.base_offset < 8:
            raise DescriptorError(f"expected 0 to 7, got {self.base_offset}", "base offset")

    @property
    def alignment(self) -> int:
        """Alignment of the tile, in bytes, for which the base offset is 0."""
        return pattern_bytes(self.width)

    def at(self, address: int, pattern: int | None = None) -> MatrixDescriptor:
        """Return the descriptor of a tile at a shared-memory address.

        ``pattern`` is the start address of the swizzle pattern; the default is ``address``.

        >>> MatrixDescriptor("k", 128, 16, 1024).at(0x2420, pattern=0x2400).base_offset
        0
        >>> MatrixDescriptor("k", 128, 16, 1024).at(0x2480).base_offset
        1
        """
        begin = address if pattern is None else pattern
        aligned = self.width == 0 or begin % self.alignment == 0
        return replace(self, start=address, base_offset=0 if aligned else (begin >> 7) & 7)

    @property
    def bits(self) -> int:
        """The 64-bit descriptor."""
        return (
            self.start >> 4
            | self.lbo >> 4 << 16
            | self.sbo >> 4 << 32
            | self.base_offset << 49
            | _TYPE_OF_WIDTH[self.width] << 62
        )

    @classmethod
    def of_bits(cls, bits: int, major: str = "k") -> MatrixDescriptor:
        """Decode a 64-bit descriptor.  The instruction, not the descriptor, encodes the major.

        >>> MatrixDescriptor.of_bits(0x4000008000400240, "mn")
        MatrixDescriptor(major='mn', width=128, lbo=1024, sbo=2048, start=9216, base_offset=0, atom=16)
        """
        width = {t: w for w, t in _TYPE_OF_WIDTH.items()}[bits >> 62 & 3]
        field = _FIELD - 1
        return cls(
            major,
            width,
            lbo=(bits >> 16 & field) << 4,
            sbo=(bits >> 32 & field) << 4,
            start=(bits & field) << 4,
            base_offset=bits >> 49 & 7,
        )

    def address(self, x: int, k: int, elt: str | int) -> int:
        """Return the byte address at which the hardware reads element (x, k) of the operand.

        >>> view_start = MatrixDescriptor("k", 128, 16, 1024).at(0x2400)
        >>> hex(view_start.address(9, 8, "f16"))  # row 9: the second group of 8; the swizzle flips bit 4
        '0x2880'
        """
        size = element_width(elt) // 8
        per_unit = 16 // size
        row = row_bytes(self.width)
        if self.major == "k":
            at = x % 8 * row + x // 8 * self.sbo
            at += k * size if self.width else k // per_unit * self.lbo + k % per_unit * size
        else:
            run = row // size
            rows = _k_rows(self.atom)
            outer, group = (self.lbo, self.sbo) if self.width else (self.sbo, self.lbo)
            at = x % run * size + x // run * outer + k % rows * row + k // rows * group
        at += self.start
        mask = self.width // self.atom - 1 if self.width else 0
        return at ^ ((at >> 7 & mask) << self.atom.bit_length() - 1)


def _k_rows(atom: int) -> int:
    """Return the number of rows along K in a layout atom of an mn-major operand."""
    return 128 // atom


@dataclass(frozen=True, slots=True)
class OperandView:
    """The descriptor of a shared-memory operand, and the address steps to the tiles of subsequent instructions."""

    descriptor: MatrixDescriptor
    """Descriptor of the first instruction's tile."""

    steps: Layout
    """(RestX, RestK) -> offset of another instruction's tile in units of 16 bytes."""


def derive(
    layout: AnyLayout,
    elt: str | int,
    major: str | None = None,
    *,
    pointer_swizzle: Swizzle | None = None,
    x: int | None = None,
    rules: DescriptorRules = WGMMA,
) -> OperandView:
    """Derive the descriptor of a tile (X, K) in shared memory, at address 0.

    Args:
        layout: layout in elements, plain or swizzled.
        elt: element type, or its width in bits.
        major: "k", "mn", or None to infer it from the strides.
        pointer_swizzle: swizzle on byte addresses, if the pointer carries it.
        x: extent of X that one instruction reads; the default is all of X.
        rules: operand layouts of the generation of tensor cores; the default is that of wgmma.

    Raises:
        DescriptorError: the tensor core cannot read the tile.  The message names the mode.

    >>> derive(Layout("((8,16),(8,8)):((8,64),(1,1024))"), "f16", "k").descriptor
    MatrixDescriptor(major='k', width=0, lbo=2048, sbo=128, start=0, base_offset=0, atom=16)
    >>> derive(Layout("(128,64):(1,128)"), "f8E4M3FN", "mn")
    Traceback (most recent call last):
    cute_dialect.arch.errors.DescriptorError: major: expected a k-major operand of 8-bit elements, got mn-major
    """
    bits = element_width(elt)
    if bits not in (8, 16, 32):
        raise DescriptorError(f"expected elements of 8, 16 or 32 bits, got {bits}", "element")
    width, atom, plain = _swizzle_of(layout, bits, pointer_swizzle)
    if not is_static(plain):
        raise DescriptorError(f"expected a static layout, got {plain}")
    if type(plain.shape) is not tuple or len(plain.shape) != 2:
        raise DescriptorError(f"expected a layout of rank 2 (X,K), got {plain}")
    for leaf in tree_leaves(plain.stride):
        if isinstance(leaf, Basis):
            raise DescriptorError(f"expected integer strides, got {plain}")
    if major is None:
        major = _major_of(plain)
    if major not in ("k", "mn"):
        raise DescriptorError(f"expected 'k' or 'mn', got {major!r}", "major")
    if major == "mn" and bits not in rules.mn_bits:
        raise DescriptorError(f"expected a k-major operand of {bits}-bit elements, got mn-major", "major")
    _check_atom(major, bits, atom, rules)
    depth = 256 // bits
    x_extent, k_extent = (product(m.shape) for m in layout_modes(plain))
    x = x_extent if x is None else x  # type: ignore[assignment]
    assert type(x) is int and type(x_extent) is int and type(k_extent) is int
    if x <= 0 or x % 8 or x_extent % x:
        raise DescriptorError(f"expected a tile extent that is a multiple of 8 and divides {x_extent}, got {x}", "X")
    if k_extent % depth:
        raise DescriptorError(f"expected a multiple of {depth} elements (32 bytes), got {k_extent}", "K")
    tile, rest = layout_modes(zipped_divide(plain, (x, depth)))
    x_mode, k_mode = (_in_units(m, bits, which, major) for m, which in zip(layout_modes(tile), ("X", "K")))
    lbo, sbo = _k_major(x_mode, k_mode, width) if major == "k" else _mn_major(x_mode, k_mode, width, _k_rows(atom))
    steps = make_layout(*(_step(m, bits, which) for m, which in zip(layout_modes(rest), ("RestX", "RestK"))))
    return OperandView(MatrixDescriptor(major, width, 16 * lbo, 16 * sbo, atom=atom), steps)


def derive_for(atom: MmaAtom, operand: str, layout: AnyLayout, pointer_swizzle: Swizzle | None = None) -> OperandView:
    """Derive the view of operand "A" or "B" of a wgmma atom in a shared-memory tile (X, K); see :func:`derive`.

    ``steps`` counts 32 bytes along K, even for B of a sparse atom, of which one instruction reads 64 bytes.

    >>> from cute_dialect.arch import find_wgmma
    >>> from cute_dialect.arch.descriptors import smem_tile
    >>> atom = find_wgmma(128, ("f32", "bf16", "bf16"), majors=("k", "mn"))
    >>> derive_for(atom, "B", smem_tile("mn", 128, "bf16", (256, 64))).steps
    Layout("(2,4):(128,512)")
    """
    source = {"A": atom.source_a, "B": atom.source_b}[operand]
    if source != AddressSpace.smem:
        raise DescriptorError(f"expected an atom that reads {operand} from shared memory, got {atom.name}", operand)
    major = atom.major_a if operand == "A" else atom.major_b
    view = derive(layout, atom.element(operand), major, pointer_swizzle=pointer_swizzle, x=atom.tile(operand)[0])
    if atom.metadata is not None and operand == "B":
        expect_depth(view, 2)
    return view


def expect_depth(view: OperandView, times: int, bits: int = 16) -> None:
    """Raise DescriptorError unless the descriptor covers ``times`` * 32 bytes along K of elements of ``bits`` bits.

    ``view`` must be of a tile of exactly that depth.  A sparse MMA reads 64 bytes of B.  Rows of a 32-byte swizzle are
    too short for it, and the stride to the second 32 bytes must equal the stride within the first.

    >>> expect_depth(derive(Layout("(8,32):(32,1)"), "f16", pointer_swizzle=Swizzle(2, 4, 3)), 2)
    >>> expect_depth(derive(Layout("(8,(16,2)):(16,(1,128))"), "f16", pointer_swizzle=Swizzle(1, 4, 3)), 2)
    Traceback (most recent call last):
    cute_dialect.arch.errors.DescriptorError: K: expected rows of 64 bytes or no swizzle for a sparse MMA, got 32
    """
    d = view.descriptor
    if d.major == "k" and 0 < d.width < 32 * times:
        raise DescriptorError(f"expected rows of {32 * times} bytes or no swizzle for a sparse MMA, got {d.width}", "K")
    if d.major == "k":
        step = 2 if d.width else 2 * (d.lbo >> 4)
    else:
        step = 256 // bits // _k_rows(d.atom) * ((d.sbo if d.width else d.lbo) >> 4)
    rest = layout_modes(view.steps)[1]
    for i in range(times):
        have = evaluate(i, rest)
        assert isinstance(have, int)
        if have != i * step:
            raise DescriptorError(
                f"expected a stride of {16 * step} bytes between the 32-byte parts that a sparse MMA reads, "
                f"got {16 * have - 16 * (i - 1) * step}",
                "K",
            )


def derive_48_bytes(layout: Layout, pointer_swizzle: Swizzle | None = None) -> MatrixDescriptor:
    """Derive the descriptor of a k-major tile (X, 48 bytes), in bytes, as the MMAs of sm_103 with K of 96 read it.

    The leading offset is that of the first two units of 16 bytes; a third unit has the same stride in any layout.

    Raises:
        DescriptorError: the tile is swizzled, or no descriptor represents it.

    >>> derive_48_bytes(Layout("((8,16),(16,3)):((16,128),(1,2048))")).lbo
    2048
    """
    if pointer_swizzle is not None and pointer_swizzle.bits:
        raise DescriptorError("expected a tile without a swizzle for K of 96", "swizzle")
    modes = layout_modes(layout)
    if len(modes) != 2:
        raise DescriptorError(f"expected a layout of rank 2 (X,K), got {layout}")
    x, k = (product(mode.shape) for mode in modes)
    if k != 48 or not isinstance(x, int):
        raise DescriptorError(f"expected 48 bytes, got {k} in {layout}", "K")
    first = compose(layout, raw_layout((x, 32), (1, x)))
    return derive(first, 8, "k").descriptor


# ------------------------------------------------------------------------------------------------------------- checks


def _check_atom(major: str, bits: int, atom: int, rules: DescriptorRules) -> None:
    wide = major == "mn" and bits in rules.wide_bits
    if atom == WIDE_ATOM and not wide:
        raise DescriptorError(
            f"expected a swizzle that keeps 16 bytes together for {major}-major elements of {bits} bits, got S<2,5,2>",
            "swizzle",
        )
    if wide and atom != WIDE_ATOM:
        raise DescriptorError(
            f"expected the swizzle S<2,5,2> on bytes for an mn-major operand of {bits}-bit elements", "swizzle"
        )


def _swizzle_of(layout: AnyLayout, bits: int, pointer: Swizzle | None) -> tuple[int, int, Layout]:
    """Return the width of the swizzle, the bytes that it keeps together, and the plain layout."""
    if not isinstance(layout, ComposedLayout):
        if pointer is None:
            return 0, 16, layout
        return *_width_and_atom(pointer, 8), layout
    if not isinstance(layout.inner, Swizzle):
        raise DescriptorError(f"expected a swizzled or plain layout, got {layout}")
    if layout.offset != 0:
        raise DescriptorError(f"expected a swizzled layout at offset 0, got offset {layout.offset}")
    if pointer is not None and pointer.bits:
        raise DescriptorError(f"expected one swizzle, got {pointer} on the pointer and {layout.inner} in the layout")
    return *_width_and_atom(layout.inner, bits), layout.outer


def _width_and_atom(swizzle: Swizzle, bits: int) -> tuple[int, int]:
    return (128, WIDE_ATOM) if is_wide(swizzle, bits) else (swizzle_width(swizzle, bits), 16)


def _major_of(plain: Layout) -> str:
    x_first, k_first = (_first_stride(m) for m in layout_modes(plain))
    if k_first == 1:
        return "k"
    if x_first == 1:
        return "mn"
    raise DescriptorError(f"expected a contiguous mode (stride 1) along X or K, got {plain}", "major")


def _first_stride(mode: Layout) -> int:
    for s, d in zip(tree_leaves(mode.shape), tree_leaves(mode.stride)):
        if s != 1:
            return d  # type: ignore[return-value]
    return 0


def _modes(layout: Layout) -> list[tuple[int, int]]:
    flat = coalesce(layout)
    return [(s, d) for s, d in zip(tree_leaves(flat.shape), tree_leaves(flat.stride)) if s != 1]  # type: ignore


def _in_units(mode: Layout, bits: int, which: str, major: str) -> Layout:
    """Convert a mode of the tile to units of 16 bytes.  Along the major dimension, each unit must be contiguous."""
    unit = 128 // bits
    along = which == ("K" if major == "k" else "X")
    for i, (s, d) in enumerate(_modes(mode)):
        if along and i == 0:
            if d != 1 or s % unit:
                raise DescriptorError(
                    f"expected runs of {unit} contiguous elements (16 bytes), got {mode} for a {major}-major operand",
                    which,
                )
        elif d % unit:
            raise DescriptorError(
                f"expected strides that are multiples of {unit} elements (16 bytes), got {d} in {mode}", which
            )
    return recast_layout(coalesce(mode), 128, bits)


def _split(mode: Layout, rows: int, which: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Split a mode after ``rows`` units.  Each part is (extent, stride) in units, with stride 0 for extent 1."""
    if product(mode.shape) % rows:  # type: ignore[operator]
        # unreachable: callers in this package have checked it
        raise DescriptorError(f"expected a multiple of {rows} units of 16 bytes, got {product(mode.shape)}", which)
    parts: list[tuple[int, int]] = []
    for part, name in zip(layout_modes(logical_divide(mode, rows)), (f"{which}[:{rows}]", f"{which}[{rows}:]")):
        modes = _modes(part)
        if len(modes) > 1:
            raise DescriptorError(f"expected one stride, got {coalesce(part)} in units of 16 bytes", name)
        parts.append(modes[0] if modes else (1, 0))
    return parts[0], parts[1]


def _expect_stride(have: int, need: int, which: str, width: int) -> None:
    if have != need:
        raise DescriptorError(
            f"expected stride {16 * need} bytes {f'for a {width}-byte swizzle' if width else 'without a swizzle'}, "
            f"got {16 * have}",
            which,
        )


def _k_major(x_mode: Layout, k_mode: Layout, width: int) -> tuple[int, int]:
    units = row_bytes(width) // 16
    (_, eight), (groups, sbo) = _split(x_mode, 8, "X")
    _expect_stride(eight, units, "X[:8]", width)
    (_, lbo), _ = _split(k_mode, 2, "K")
    if width:
        _expect_stride(lbo, 1, "K[:2]", width)
    # A single group of rows has no stride.  The hardware ignores the field, so it is set as for a compact tile.
    return lbo, sbo if groups > 1 else 8 * units


def _mn_major(x_mode: Layout, k_mode: Layout, width: int, rows: int) -> tuple[int, int]:
    units = row_bytes(width) // 16
    (_, row), (groups, outer) = _split(x_mode, units, "X")
    if width:
        _expect_stride(row, 1, f"X[:{units}]", width)
    (_, step), (_, group) = _split(k_mode, rows, "K")
    _expect_stride(step, units, f"K[:{rows}]", width)
    if groups == 1:
        outer = 8 * units
    return (outer, group) if width else (group, outer)


def _step(mode: Layout, bits: int, which: str) -> Layout:
    """Return the address steps between instruction tiles: the same extents, with strides in units of 16 bytes."""
    unit = 128 // bits

    def walk(s: IntTuple, d: Stride) -> Stride:
        if type(s) is tuple:
            return tuple([walk(x, y) for x, y in zip(s, d)])  # type: ignore[arg-type]
        if s == 1:
            return 0
        if d % unit:  # type: ignore[operator]
            raise DescriptorError(
                f"expected address steps that are multiples of 16 bytes, got {d} elements in {mode}", which
            )
        return d // unit  # type: ignore[operator]

    return raw_layout(mode.shape, walk(mode.shape, mode.stride))
