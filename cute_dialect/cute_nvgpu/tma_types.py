"""TMA atom types, tiled and im2col, and the limits of the tensor maps that they describe.

The value of such a type is a tensor map: 128 bytes that the host builds (``cute_nvgpu.make_tma_load``, ``…_store``,
``…_reduce``) and passes to a kernel by value. Only the map contains the address, the extents and the strides of the
global tensor. The type contains the static part of the map and the other parameters of the instruction and of the copy.
Dimensions are in TMA order, contiguous first. For im2col they are (C, W, N), (C, W, H, N) or (C, W, H, D, N).

Source: CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col; PTX ISA 9.0, 5.5 "Tensors", 5.5.5 "Im2col
mode", 9.7.9.25.5 (the instructions).

**Boxes.** One side is a coordinate tensor: its iterator holds the TMA coordinates of the tile, and its layout has
strides in TMA dimensions. The other side is a tensor in shared memory. Shapes and strides of both sides are static; the
iterator is not. For im2col the coordinates are those of the first pixel, because the following base pixels have no
constant coordinate offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

from xdsl.dialects.builtin import i8
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, divisibility
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Basis, ComposedLayout, IntTuple, Layout, Stride, Swizzle, raw_layout
from cute_dialect.arch.errors import ArchError, DescriptorError
from cute_dialect.arch.tensor_map_codes import WIDE_MODES, column_rows, counted_bytes
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import CoordTensorType, MemRefType, element_bits
from cute_dialect.dialect.typed_values import payload_text
from cute_dialect.dialect.types import CoordType
from cute_dialect.spaces import AddressSpace

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
"""Operations of a TMA reduction (PTX ISA 9.7.9.25.5.3)."""

_LOGIC = ("and", "or", "xor")
_REDUCTIONS_OF = {
    "f16": ("add", "min", "max"),
    "bf16": ("add", "min", "max"),
    "f32": ("add",),
    "i32": ("add", "min", "max", *_LOGIC),
    "ui32": ("add", "min", "max", "inc", "dec", *_LOGIC),
    "i64": ("add", "min", "max", *_LOGIC),
}
"""Element type -> supported reductions."""


HALO = {"w": 511, "w_128": 31}
"""Mode of an im2col load -> largest halo (PTX ISA 9.7.9.27 "cp.async.bulk.tensor", ``wHalo``)."""

ROWS = 4
"""Rows that one instruction of mode gather4 or scatter4 moves."""


class TmaMap(NamedTuple):
    """Static part of a tensor map.

    Args:
        element: the element type.
        box: extents of the box of one instruction in elements, innermost first.
        element_strides: the instruction moves each n-th element of a dimension of the box. ``()`` means each element.
        swizzle: 0, 32, 64 or 128 bytes.
        interleave: 0, 16 or 32 bytes.
        oob: value of loads out of bounds, "zero" or "nan".
        l2: minimum size of a fetch into L2 in bytes.
        reduction: the reduction of a reduce atom.
        cta_group: 2 for a load that may signal the mbarrier of the even block of its pair, else 1.
        mode: "gather4" or "scatter4" if the instruction moves four rows of one box each, else "".
        unpack: 16 if a load places 16 elements of 4 or 6 bits in 16 bytes of shared memory, else 0.
    """

    element: Attribute
    box: tuple[int, ...]
    swizzle: int = 0
    interleave: int = 0
    element_strides: tuple[int, ...] = ()
    oob: str = "zero"
    l2: int = 128
    reduction: str = ""
    cta_group: int = 1
    mode: str = ""
    unpack: int = 0

    @property
    def held(self) -> Attribute:
        """Element type of the tile in shared memory, 8-bit for a load that unpacks."""
        return i8 if self.unpack else self.element

    @property
    def rank(self) -> int:
        """Number of dimensions of the map."""
        return len(self.box)

    @property
    def coordinates(self) -> int:
        """Number of coordinates of the instruction: one per dimension, but four in dimension 1 for rows by index."""
        return self.rank + ROWS - 1 if self.mode else self.rank

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of elements that one instruction moves along each dimension."""
        if self.mode:
            return (self.box[0], ROWS)
        return tuple([-(-b // s) for b, s in zip(self.box, self.strides)])

    @property
    def strides(self) -> tuple[int, ...]:
        """Element strides of all dimensions."""
        return self.element_strides or (1,) * len(self.box)

    @property
    def elements(self) -> int:
        """Number of elements that one instruction moves."""
        n = 1
        for c in self.counts:
            n *= c
        return n

    @property
    def bytes(self) -> int:
        """Number of bytes that one instruction moves and a barrier counts."""
        return counted_bytes(self.elements, element_bits(self.element))

    @property
    def smem_alignment(self) -> int:
        """Required alignment of a tile in shared memory, in bytes: 128, or the period of the swizzle.

        Four rows by index are half a period, so two such tiles share one.
        """
        return max(128, (ROWS if self.mode else 8) * self.swizzle)

    @property
    def offsets(self) -> int:
        """Number of offsets that a load takes; only im2col loads take any."""
        return 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that the runtime encodes in the map, before the codes of element type, swizzle and so on."""
        return (*self.box, *self.strides)


def check_map(m: TmaMap) -> None:
    """Raise AlgebraError, with the text of the TmaError, if a parameter of the map is invalid."""
    from cute_dialect.arch.tensor_map import TensorDim, TensorMapSpec  # late: start-up

    if m.element_strides and len(m.element_strides) != len(m.box):
        raise AlgebraError(
            f"the number of element strides is {len(m.element_strides)}; write {len(m.box)}, one per dimension"
        )
    unit = max(16, m.interleave) * 16
    try:
        TensorMapSpec(
            element=str(m.element),
            dims=tuple([TensorDim(128, unit if i else 1, b, s) for i, (b, s) in enumerate(zip(m.box, m.strides))]),
            swizzle=m.swizzle,
            interleave=m.interleave,
            l2_promotion=m.l2,
            oob_fill=m.oob,
            unpack=m.unpack,
        )
    except ArchError as e:
        raise AlgebraError(str(e)) from None
    _check_group(m)
    if m.mode and m.unpack:
        raise AlgebraError(f"mode {m.mode} cannot be combined with unpack; load tiles instead of rows by index")
    if m.mode and (m.rank != 2 or m.box[1] != 1 or m.element_strides):
        raise AlgebraError(
            f"the box of mode {m.mode} is {payload_text(m.box)}; it must be (columns, 1), without element strides: "
            f"one instruction moves {ROWS} rows of it"
        )
    if m.reduction:
        check_reduction(m.element, m.reduction)


def _check_group(m: TmaMap | Im2colMap) -> None:
    if m.cta_group not in (1, 2):
        raise AlgebraError(f"cta_group is {m.cta_group}; use 1, or 2 for a pair of blocks")


def check_reduction(element: Attribute, reduction: str) -> None:
    """Raise AlgebraError unless TMA supports this reduction for this element type."""
    known = _REDUCTIONS_OF.get(str(element), ())
    if reduction not in known:
        these = ", ".join(known) or "none"
        raise AlgebraError(f"TMA does not support the reduction {reduction} for {element}; use one of {these}")


def canonical(m: TmaMap) -> TmaMap:
    """Return the map with default values removed."""
    return m._replace(element_strides=()) if all(s == 1 for s in m.element_strides) else m


class Im2colMap(NamedTuple):
    """Static part of an im2col tensor map.

    Args:
        element: the element type.
        channels: number of channels per instruction.
        pixels: number of pixels per instruction.
        lower: lower corner of the box of base pixels, relative to that of the tensor, W first.
        upper: upper corner of the box of base pixels, relative to that of the tensor, W first.
        pixel_strides: distance between base pixels, W first: the strides of a convolution. ``()`` means 1.
        swizzle: 0, 32, 64 or 128 bytes.
        oob: value of loads out of bounds, "zero" or "nan".
        l2: minimum size of a fetch into L2 in bytes.
        reduction: the reduction of a reduce atom.
        cta_group: 2 for a load that may signal the mbarrier of the even block of its pair, else 1.
        mode: "w" or "w_128" for a load of pixels along W only, else "".
        halo: pixels that a load of mode "w" adds after the last one, and one of mode "w_128" after each 32.
    """

    element: Attribute
    channels: int
    pixels: int
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    pixel_strides: tuple[int, ...] = ()
    swizzle: int = 0
    oob: str = "zero"
    l2: int = 128
    reduction: str = ""
    cta_group: int = 1
    mode: str = ""
    halo: int = 0

    @property
    def held(self) -> Attribute:
        """Element type of the tile in shared memory."""
        return self.element

    @property
    def rows(self) -> int:
        """Number of pixels that one instruction moves, with the halo."""
        return column_rows(self.pixels, self.mode, self.halo)

    @property
    def offsets(self) -> int:
        """Number of offsets that a load takes: one for each spatial dimension, or that along W."""
        return 1 if self.mode else self.spatial

    @property
    def spatial(self) -> int:
        """Number of spatial dimensions."""
        return len(self.lower)

    @property
    def rank(self) -> int:
        """Number of dimensions of the map."""
        return len(self.lower) + 2

    @property
    def coordinates(self) -> int:
        """Number of coordinates of the instruction, one per dimension."""
        return self.rank

    @property
    def steps(self) -> tuple[int, ...]:
        """Element strides of all dimensions."""
        return (1, *(self.pixel_strides or (1,) * self.spatial), 1)

    @property
    def bytes(self) -> int:
        """Number of bytes that one instruction moves and a barrier counts."""
        return counted_bytes(self.channels * self.rows, element_bits(self.element))

    @property
    def smem_alignment(self) -> int:
        """Required alignment of a tile in shared memory, in bytes: 128, or the period of the swizzle."""
        return max(128, 8 * self.swizzle)

    @property
    def interleave(self) -> int:
        """im2col maps are not interleaved."""
        return 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that the runtime encodes in the map, before the codes of element type, swizzle and so on."""
        return (self.channels, self.pixels, WIDE_MODES.index(self.mode), *self.lower, *self.upper, *self.steps)


def check_im2col(m: Im2colMap, writes: bool = False) -> None:
    """Raise AlgebraError, with the text of the TmaError, if a parameter of the map is invalid.

    ``writes`` is True for a store or a reduction. Base pixels before the first pixel are allowed for loads only. A
    write from one is an illegal instruction (measured on an H200). PTX ISA 9.7.9.27 "cp.async.bulk.tensor" does not
    mention it.
    """
    from cute_dialect.arch.tensor_map import Im2colMapSpec  # late: start-up

    if not 1 <= m.spatial <= 3:
        raise AlgebraError(f"the lower corner has {m.spatial} numbers; write 1 to 3 (W, H, D)")
    if m.pixel_strides and len(m.pixel_strides) != m.spatial:
        raise AlgebraError(
            f"the number of pixel strides is {len(m.pixel_strides)}; write {m.spatial}, one per number of the "
            "lower corner"
        )
    if writes and min(m.lower) < 0:
        raise AlgebraError(f"the lower corner is {m.lower}; a store or reduction needs a nonnegative one")
    pitch = max(1, 128 // element_bits(m.element))
    try:
        Im2colMapSpec(
            element=str(m.element),
            extents=(1,) * m.rank,
            element_pitches=(pitch,) * (m.rank - 1),
            lower=m.lower,
            upper=m.upper,
            channels=m.channels,
            pixels=m.pixels,
            element_strides=m.steps,
            swizzle=m.swizzle,
            l2_promotion=m.l2,
            oob_fill=m.oob,
            mode=m.mode,
        )
    except ArchError as e:
        raise AlgebraError(str(e)) from None
    most = HALO.get(m.mode, 0)
    if not 0 <= m.halo <= most:
        where = f"mode {m.mode}" if m.mode else "a load without mode w or w_128"
        raise AlgebraError(f"the halo is {m.halo}; {where} allows 0 to {most}")
    _check_group(m)
    if m.reduction:
        check_reduction(m.element, m.reduction)


# ---------------------------------------------------------------------------------------------------------------- boxes


class Box(NamedTuple):
    """One instruction: TMA coordinates relative to the tile, and the offset from the shared-memory iterator in
    elements.
    """

    coords: tuple[int, ...]
    offset: int


def loads(atom: Attribute) -> bool:
    """Return True if the atom copies from global to shared memory."""
    return atom.name.startswith("cute_nvgpu.atom.tma_load")


def sides(operand_types: Sequence[Attribute]) -> tuple[CoordTensorType, MemRefType]:
    """Return the coordinate side and the shared-memory side of ``(atom, source, destination)``. Raises AlgebraError."""
    atom = operand_types[0]
    there, here = (1, 2) if loads(atom) else (2, 1)
    coords, smem = operand_types[there], operand_types[here]
    if not isinstance(coords, CoordTensorType):
        what = "source" if there == 1 else "destination"
        raise AlgebraError(
            f"operand #{there} must be a !cute.coord_tensor of TMA coordinates, the {what} of {atom.name}, got {coords}"
        )
    if not isinstance(smem, MemRefType) or smem.space != AddressSpace.smem:
        raise AlgebraError(f"operand #{here} must be a !cute.memref in smem, got {smem}")
    return coords, smem


def shared_layout(smem: MemRefType) -> tuple[int, Layout, Leaf]:
    """Return the swizzle width in bytes of a tensor, its layout without swizzle, and the offset in a composed layout.

    Raises AlgebraError for a swizzle that TMA does not support.
    """
    from cute_dialect.arch.descriptors import swizzle_width  # late: start-up

    layout, bits = smem.layout, element_bits(smem.element)
    try:
        if isinstance(layout, ComposedLayout):
            inner = layout.inner
            if not isinstance(inner, Swizzle) or isinstance(layout.offset, tuple):
                raise AlgebraError(
                    f"the smem layout {payload_text(layout)} is neither plain nor swizzled; use one that is"
                )
            return swizzle_width(inner, bits), layout.outer, layout.offset
        swizzle = smem.data.ptr.swizzle
        return (swizzle_width(swizzle) if swizzle is not None else 0), layout, 0
    except DescriptorError as e:
        raise AlgebraError(str(e)) from None


def check_copy(operand_types: Sequence[Attribute]) -> None:
    """Raise AlgebraError unless an atom of this type can copy between tensors of these types."""
    if len(operand_types) != 3:
        raise AlgebraError(
            "a copy with a TMA atom takes no predicate tensor; "
            "set one flag for all elements with cute.atom.set_value 'pred'"
        )
    plan(operand_types[0], *sides(operand_types))


def plan(atom: Attribute, coords: CoordTensorType, smem: MemRefType) -> list[Box]:
    """Return the boxes of a copy. Raises AlgebraError that names the invalid side and the mode or dimension."""
    pixels = cast("TmaAtomType | Im2colAtomType", atom).data
    tile, here = _tile(pixels, coords, smem)
    if isinstance(pixels, TmaMap):
        found = _boxes(pixels, tile, here, pixels.counts, pixels.strides)
        if pixels.mode and any(box.coords[1] for box in found):
            raise AlgebraError(
                f"the tile is {payload_text(coords.layout)}; it must have {ROWS} rows, one per row index of "
                f"{pixels.mode}"
            )
        return found
    found = _boxes(pixels, _numbered_pixels(tile), here, (pixels.channels, pixels.rows), (1, 1))
    if any(box.coords[1] for box in found):
        halo = f" with a halo of {pixels.halo}" if pixels.halo else ""
        raise AlgebraError(
            f"the tile is {payload_text(coords.layout)}; it must have {pixels.rows} pixels, as in the "
            f"tensor map{halo}, because one instruction copies all of them"
        )
    return [Box((box.coords[0], *[0] * (pixels.rank - 1)), box.offset) for box in found]


def _numbered_pixels(tile: Layout) -> Layout:
    """Replace the stride 0 of the pixel modes of im2col coordinates with the strides of the pixel index.

    >>> from cute_dialect.algebra.text import parse_layout
    >>> _numbered_pixels(parse_layout("(64,(8,2)):(1@0,0)"))
    Layout("(64,(8,2)):(1@0,(1@1,8@1))")
    """
    count = 1

    def numbered(shape: IntTuple, stride: Stride) -> Stride:
        nonlocal count
        if isinstance(shape, tuple):
            steps = stride if isinstance(stride, tuple) else (0,) * len(shape)
            return tuple([numbered(n, d) for n, d in zip(shape, steps)])
        if isinstance(stride, Basis):
            if stride.path != (0,):
                raise AlgebraError(
                    f"the coordinates are {payload_text(tile)}; they must step along dimension 0, the "
                    "channels, with stride 0 for the pixels"
                )
            return stride
        assert isinstance(shape, int)
        first, count = count, count * shape
        return Basis(first, (1,)) if shape > 1 else 0

    return raw_layout(tile.shape, numbered(tile.shape, tile.stride))


def _boxes(
    m: TmaMap | Im2colMap, tile: Layout, here: Layout, counts: Sequence[int], strides: Sequence[int]
) -> list[Box]:
    from cute_dialect.arch.tma import boxes  # late: start-up

    try:
        found = [Box(at, offset) for at, offset in boxes(tile, here, counts, strides)]
    except ArchError as e:
        raise AlgebraError(f"the boxes of the tensor map do not fill the tile: {e}") from None
    bits = element_bits(m.held)
    for box in found:
        if box.offset * bits % 1024:
            raise AlgebraError(
                f"a box begins at byte {box.offset * bits / 8:g} of smem; boxes must begin at multiples of 128 bytes"
            )
    return found


def _tile(m: TmaMap | Im2colMap, coords: CoordTensorType, smem: MemRefType) -> tuple[Layout, Layout]:
    """Return the static layouts of both sides. Raises AlgebraError if they disagree with the tensor map."""
    width, layout, inner = shared_layout(smem)
    if smem.element != m.held:
        raise AlgebraError(f"smem has elements {smem.element}; the tensor map needs {m.held}")
    if width != m.swizzle:
        raise AlgebraError(f"smem has a swizzle of {width} bytes ({smem}); the tensor map needs {m.swizzle}")
    check_alignment(m, smem.alignment, str(smem), isinstance(smem.layout, ComposedLayout))
    bits = element_bits(m.held)
    if divisibility(inner) * bits % (8 * m.smem_alignment):
        raise AlgebraError(
            f"the composed layout is {payload_text(smem.layout)}; its offset must be a multiple of "
            f"{8 * m.smem_alignment // bits} elements, the period of the swizzle"
        )
    for what, given in (("coordinates", coords.layout), ("smem", layout)):
        if isinstance(given, ComposedLayout) or not is_static(given):
            raise AlgebraError(
                f"the layout of {what} is not static ({payload_text(given)}); use static extents and strides"
            )
    it = coords.data.iter
    rank = len(it) if isinstance(it, tuple) else 0
    if rank != m.rank or any(isinstance(x, tuple) for x in it):  # type: ignore[union-attr]
        raise AlgebraError(
            f"the iterator is {payload_text(it)}; it must have {m.rank} coordinates, one per dimension of the "
            "tensor map"
        )
    assert isinstance(coords.layout, Layout)
    return coords.layout, layout


def check_alignment(m: TmaMap | Im2colMap, alignment: int, shown: str, by_offset: bool = False) -> None:
    """Raise AlgebraError unless shared memory with this alignment in bytes can hold a tile of the map.

    ``by_offset`` is True if the swizzle acts on offsets from the pointer, which must then begin a period.
    """
    needed = max(128, 8 * m.swizzle) if by_offset else m.smem_alignment
    if alignment % needed:
        period = "the period" if needed == 8 * m.swizzle else "half the period"
        why = f"{period} of its {m.swizzle}-byte swizzle" if m.swizzle else "as TMA requires"
        raise AlgebraError(
            f"smem is aligned to {alignment} bytes ({shown}); it must be aligned to {needed}, {why}; "
            f"write align<{needed}>"
        )


MapT = TypeVar("MapT", TmaMap, Im2colMap)

_TUPLES = ("box", "element_strides", "lower", "upper", "pixel_strides")
"""Parameters that are tuples of integers, as in ``box = (64, 128)``. ``oob`` is a word, and the others are integers."""


class TensorMapAtomType(Data[MapT], CopyAtomType):
    """Base of the TMA atom types: ``<T [, reduction], name = value, …>`` with the parameters of a tensor map."""

    ONE_THREAD = True
    TENSOR_MAP = True
    LOADS: ClassVar[bool] = False
    """True if the atom copies from global to shared memory."""
    REDUCES: ClassVar[bool] = False
    """True if a reduction follows the element type."""
    NEEDED: ClassVar[tuple[str, ...]]
    """Required parameters, in the order in which they are printed."""
    OPTIONAL: ClassVar[tuple[str, ...]]
    """Parameters with a default, in the order in which they are printed."""

    @classmethod
    def build(cls, given: Mapping[str, Any]) -> MapT:
        """Return the map with these parameters. Raises AlgebraError if a required one is missing."""
        raise NotImplementedError(cls.name)

    @classmethod
    def check(cls, m: MapT) -> None:
        """Raise AlgebraError if a parameter of the map is invalid."""
        raise NotImplementedError(cls.name)

    def fields(self) -> tuple[str, ...]:
        return ("tma_bar", "multicast_mask", "cache_hint", "pred") if self.LOADS else ("cache_hint", "pred")

    def takes_numbers(self, value: Attribute, count: int) -> bool:
        """Return True for a coordinate of ``count`` numbers, each static or of the kernel."""
        if not isinstance(value, CoordType):
            return False
        leaves = value.data if isinstance(value.data, tuple) else (value.data,)
        return len(leaves) == count and all(isinstance(x, int | Dyn) for x in leaves)

    def check_copy(self, operand_types: Sequence[Attribute]) -> None:
        check_copy([self, *operand_types[1:]])

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MapT:
        words = (*cls.NEEDED, *cls.OPTIONAL)
        with parser.in_angle_brackets():
            at = parser.pos
            element = parser.parse_type()
            given: dict[str, object] = {"element": element}
            if cls.REDUCES:
                parser.parse_punctuation(",")
                here = parser.pos
                given["reduction"] = word = parser.parse_identifier(" reduction")
                if word not in REDUCTIONS:
                    parser.raise_error(
                        f"'{word}' is not a reduction; write one of {', '.join(REDUCTIONS)}", here, parser.pos
                    )
            while parser.parse_optional_punctuation(",") is not None:
                here = parser.pos
                word = parser.parse_identifier()
                if word not in words:
                    parser.raise_error(
                        f"'{word}' is not supported here; write one of {', '.join(words)}", here, parser.pos
                    )
                parser.parse_punctuation("=")
                if word in _TUPLES:
                    given[word] = tuple(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_integer))
                elif word in ("oob", "mode"):
                    given[word] = parser.parse_identifier()
                else:
                    given[word] = parser.parse_integer(allow_boolean=False)
            try:
                m = cls.build(given)
                element_bits(element)
                cls.check(m)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
        return m

    def print_parameter(self, printer: Printer) -> None:
        m = self.data
        printer.print_string("<")
        printer.print_attribute(m.element)
        if m.reduction:
            printer.print_string(f", {m.reduction}")
        for word in (*self.NEEDED, *self.OPTIONAL):
            value: object = getattr(m, word)
            if word in self.NEEDED or value != m._field_defaults[word]:
                shown = f"({', '.join(map(str, cast('tuple[int, ...]', value)))})" if word in _TUPLES else value
                printer.print_string(f", {word} = {shown}")
        printer.print_string(">")

    def verify(self) -> None:
        try:
            self.check(self.data)
        except AlgebraError as e:
            raise VerifyException(str(e)) from None

    def threads(self) -> int:
        return 1

    @property
    def element(self) -> Attribute:
        return self.data.element

    @property
    def cta_group(self) -> int:
        """2 for a load that signals the mbarrier of the even block of its pair, else 1."""
        return self.data.cta_group


# ------------------------------------------------------------------------------------------------------------ tiled


class TmaAtomType(TensorMapAtomType[TmaMap]):
    """Base of the atom types that copy boxes; ``data`` is a :class:`TmaMap`."""

    NEEDED = ("box",)
    OPTIONAL = ("swizzle", "interleave", "element_strides", "oob", "l2")
    MODE: ClassVar[str] = ""
    """Mode in which four rows by index are moved; empty if the atom has none."""

    @classmethod
    def build(cls, given: Mapping[str, Any]) -> TmaMap:
        if not given.get("box"):
            raise AlgebraError("expected the box, e.g. box = (64, 128)")
        return canonical(TmaMap(**given))

    @classmethod
    def check(cls, m: TmaMap) -> None:
        if m.mode not in ("", cls.MODE):
            allowed = f"use {cls.MODE}, or none" if cls.MODE else "it has none"
            raise AlgebraError(f"the mode of {cls.name} is {m.mode}; {allowed}")
        check_map(m)

    def fields(self) -> tuple[str, ...]:
        first, *others = super().fields()
        return (first, "rows", *others) if self.data.mode else (first, *others)

    def takes(self, field: str, value: Attribute) -> bool:
        return self.takes_numbers(value, ROWS) if field == "rows" else super().takes(field, value)

    def values(self) -> int:
        return self.data.elements


@irdl_attr_definition
class TmaLoadType(TmaAtomType):
    """``!cute_nvgpu.atom.tma_load<T, box = (64, 128) [, swizzle = 32|64|128] [, interleave = 16|32] [, element_strides
    = (…)] [, oob = nan] [, l2 = 0|64|256] [, cta_group = 2] [, mode = gather4] [, unpack = 16]>``: load of one box from
    global to shared memory.

    With ``cta_group = 2`` the bytes count at the mbarrier of the even block of the pair, also for the odd one. With
    ``mode = gather4`` the box is (columns, 1), and one instruction loads four rows by index. With ``unpack = 16`` the
    elements have 4 or 6 bits, and 16 of them take 16 bytes of shared memory, whose tensor has elements i8; the mbarrier
    counts packed bytes.

    Fields: ``tma_bar`` (the mbarrier that counts the bytes; required), ``rows`` (of gather4; required),
    ``multicast_mask``, ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.tma_load"
    LOADS = True
    OPTIONAL = (*TmaAtomType.OPTIONAL, "cta_group", "mode", "unpack")
    MODE = "gather4"


@irdl_attr_definition
class TmaStoreType(TmaAtomType):
    """``!cute_nvgpu.atom.tma_store<T, box = (64, 128), … [, mode = scatter4]>``: store of one box from shared to global
    memory, in a bulk group. With ``mode = scatter4`` the box is (columns, 1), and one instruction stores four rows by
    index.

    Fields: ``rows`` (of scatter4; required), ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.tma_store"
    OPTIONAL = (*TmaAtomType.OPTIONAL, "mode")
    MODE = "scatter4"


@irdl_attr_definition
class TmaReduceType(TmaAtomType):
    """``!cute_nvgpu.atom.tma_reduce<T, add|min|max|inc|dec|and|or|xor, box = (64, 128), …>``: reduction of one box of
    shared memory into global memory, atomic for each element, in a bulk group.

    Fields: ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.tma_reduce"
    REDUCES = True


# ----------------------------------------------------------------------------------------------------------- im2col


class Im2colAtomType(TensorMapAtomType[Im2colMap]):
    """Base of the atom types that copy the pixels of convolutions; ``data`` is an :class:`Im2colMap`."""

    NEEDED = ("channels", "pixels", "lower", "upper")
    OPTIONAL = ("pixel_strides", "swizzle", "oob", "l2")

    @classmethod
    def build(cls, given: Mapping[str, Any]) -> Im2colMap:
        for word in cls.NEEDED:
            if word not in given:
                raise AlgebraError(f"expected {word} = …")
        m = Im2colMap(**given)
        if all(s == 1 for s in m.pixel_strides) and len(m.pixel_strides) == m.spatial:
            m = m._replace(pixel_strides=())
        return m

    @classmethod
    def check(cls, m: Im2colMap) -> None:
        check_im2col(m, not cls.LOADS)

    def fields(self) -> tuple[str, ...]:
        first, *others = super().fields()
        return (first, "im2col_offsets", *others) if self.LOADS else (first, *others)

    def takes(self, field: str, value: Attribute) -> bool:
        return (
            self.takes_numbers(value, self.data.offsets) if field == "im2col_offsets" else super().takes(field, value)
        )

    def values(self) -> int:
        return self.data.channels * self.data.rows


@irdl_attr_definition
class TmaLoadIm2colType(Im2colAtomType):
    """``!cute_nvgpu.atom.tma_load_im2col<T, channels = 64, pixels = 128, lower = (-1, -1), upper = (-1, -1) [,
    pixel_strides = (2, 2)] [, swizzle = 32|64|128] [, oob = nan] [, l2 = 0|64|256] [, cta_group = 2] [, mode = w|w_128]
    [, halo = 2]>``: im2col load from global to shared memory. With ``cta_group = 2`` the bytes count at the mbarrier of
    the even block of the pair.

    Mode ``w`` loads pixels along W and N, and keeps the coordinates H and D; the corners and pixel strides of these are
    0 and 1. ``halo`` more pixels follow the last one. Mode ``w_128`` loads 128 pixels, and a halo after each 32. Both
    need a swizzle of 64 or 128 bytes. Their one offset is added to W and to both corners, at most 31.

    Fields: ``tma_bar`` (required), ``im2col_offsets``, ``multicast_mask``, ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.tma_load_im2col"
    LOADS = True
    OPTIONAL = (*Im2colAtomType.OPTIONAL, "cta_group", "mode", "halo")


@irdl_attr_definition
class TmaStoreIm2colType(Im2colAtomType):
    """``!cute_nvgpu.atom.tma_store_im2col<T, channels = 64, …>``: im2col store from shared to global memory, in a bulk
    group. Corners and coordinates must not be negative.

    Fields: ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.tma_store_im2col"


@irdl_attr_definition
class TmaReduceIm2colType(Im2colAtomType):
    """``!cute_nvgpu.atom.tma_reduce_im2col<T, add|min|max|inc|dec|and|or|xor, channels = 64, …>``: im2col reduction of
    shared memory into global memory, atomic for each element, in a bulk group. Corners and coordinates must not be
    negative.

    Fields: ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.tma_reduce_im2col"
    REDUCES = True


ATTRS: list[type[Attribute]] = [
    TmaLoadType, TmaStoreType, TmaReduceType, TmaLoadIm2colType, TmaStoreIm2colType, TmaReduceIm2colType,
]  # fmt: skip
