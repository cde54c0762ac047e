"""Atom types of im2col TMA copies for convolutions, with the static part of their tensor maps.

Dimensions are in TMA order, contiguous first: (C, W, N), (C, W, H, N) or (C, W, H, D, N).

Source: CUDA driver API, cuTensorMapEncodeIm2col; PTX ISA 9.0, 5.5.5 "Im2col mode".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.cute_nvgpu.tma.types import REDUCTIONS, check_reduction
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import element_bits
from cute_dialect.dialect.types import CoordType


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

    @property
    def spatial(self) -> int:
        """Number of spatial dimensions. The instruction has one offset for each of them."""
        return len(self.lower)

    @property
    def rank(self) -> int:
        """Number of dimensions of the map."""
        return len(self.lower) + 2

    @property
    def steps(self) -> tuple[int, ...]:
        """Element strides of all dimensions."""
        return (1, *(self.pixel_strides or (1,) * self.spatial), 1)

    @property
    def bytes(self) -> int:
        """Number of bytes that one instruction moves and a barrier counts."""
        return self.channels * self.pixels * element_bits(self.element) // 8

    @property
    def smem_alignment(self) -> int:
        """Required alignment of a tile in shared memory, in bytes: 128, or the period of the swizzle."""
        return max(128, 8 * self.swizzle)


def check_im2col(m: Im2colMap, writes: bool = False) -> None:
    """Raise AlgebraError, with the text of the TmaError, if a parameter of the map is invalid.

    ``writes`` is True for a store or a reduction. Base pixels before the first pixel are allowed for loads only. A
    write from one is an illegal instruction (measured on an H200). PTX ISA 9.7.9.27 "cp.async.bulk.tensor" does not
    mention it.
    """
    from cute_dialect.arch.errors import ArchError
    from cute_dialect.arch.tensor_map import Im2colMapSpec

    if not 1 <= m.spatial <= 3:
        raise AlgebraError(f"expected a lower corner of 1 to 3 numbers (W, H, D), got {m.spatial}")
    if m.pixel_strides and len(m.pixel_strides) != m.spatial:
        raise AlgebraError(
            f"expected {m.spatial} pixel strides, one per number of the lower corner, got {len(m.pixel_strides)}"
        )
    if writes and min(m.lower) < 0:
        raise AlgebraError(f"expected a nonnegative lower corner for a store or reduction, got {m.lower}")
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
        )
    except ArchError as e:
        raise AlgebraError(str(e)) from None
    if m.reduction:
        check_reduction(m.element, m.reduction)


_NEEDED = ("channels", "pixels", "lower", "upper")
_TUPLES = ("lower", "upper", "pixel_strides")
_WORDS = (*_NEEDED, "pixel_strides", "swizzle", "oob", "l2")


class Im2colAtomType(Data[Im2colMap], CopyAtomType):
    """Base of the three im2col atom types; ``data`` is an :class:`Im2colMap`."""

    ONE_THREAD = True
    TENSOR_MAP = True
    LOADS: ClassVar[bool] = False
    """True if the atom copies from global to shared memory."""
    REDUCES: ClassVar[bool] = False

    def fields(self) -> tuple[str, ...]:
        if self.LOADS:
            return ("tma_bar", "im2col_offsets", "multicast_mask", "cache_hint", "pred")
        return ("cache_hint", "pred")

    def takes(self, field: str, value: Attribute) -> bool:
        if field != "im2col_offsets":
            return super().takes(field, value)
        if not isinstance(value, CoordType):
            return False
        leaves = value.data if isinstance(value.data, tuple) else (value.data,)
        return len(leaves) == self.data.spatial and all(isinstance(x, int | Dyn) for x in leaves)

    def check_copy(self, operand_types: Sequence[Attribute]) -> None:
        from cute_dialect.cute_nvgpu.tma.boxes import check_copy

        check_copy([self, *operand_types[1:]])

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Im2colMap:
        with parser.in_angle_brackets():
            at = parser.pos
            element = parser.parse_type()
            reduction = ""
            if cls.REDUCES:
                parser.parse_punctuation(",")
                here = parser.pos
                reduction = parser.parse_identifier(" reduction")
                if reduction not in REDUCTIONS:
                    parser.raise_error(f"expected one of {', '.join(REDUCTIONS)}, got '{reduction}'", here, parser.pos)
            given: dict[str, int | str | tuple[int, ...]] = {}
            while parser.parse_optional_punctuation(",") is not None:
                here = parser.pos
                word = parser.parse_identifier()
                if word not in _WORDS:
                    parser.raise_error(f"expected one of {', '.join(_WORDS)}, got '{word}'", here, parser.pos)
                parser.parse_punctuation("=")
                if word in _TUPLES:
                    given[word] = tuple(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_integer))
                elif word == "oob":
                    given[word] = parser.parse_identifier()
                else:
                    given[word] = parser.parse_integer(allow_boolean=False)
            for word in _NEEDED:
                if word not in given:
                    parser.raise_error(f"expected {word} = …", at, parser.pos)
            m = Im2colMap(element, reduction=reduction, **given)  # type: ignore[arg-type]
            if all(s == 1 for s in m.pixel_strides) and len(m.pixel_strides) == m.spatial:
                m = m._replace(pixel_strides=())
            try:
                element_bits(element)
                check_im2col(m, not cls.LOADS)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
        return m

    def print_parameter(self, printer: Printer) -> None:
        m = self.data
        printer.print_string("<")
        printer.print_attribute(m.element)
        if m.reduction:
            printer.print_string(f", {m.reduction}")
        default = Im2colMap(m.element, m.channels, m.pixels, m.lower, m.upper)
        for word in _WORDS:
            value: object = getattr(m, word)
            if word in _NEEDED or value != getattr(default, word):
                shown = f"({', '.join(map(str, value))})" if isinstance(value, tuple) else value  # type: ignore[arg-type]
                printer.print_string(f", {word} = {shown}")
        printer.print_string(">")

    def verify(self) -> None:
        try:
            check_im2col(self.data, not self.LOADS)
        except AlgebraError as e:
            raise VerifyException(str(e)) from None

    def threads(self) -> int:
        return 1

    def values(self) -> int:
        return self.data.channels * self.data.pixels

    @property
    def element(self) -> Attribute:
        return self.data.element


@irdl_attr_definition
class TmaLoadIm2colType(Im2colAtomType):
    """``!cute_nvgpu.atom.tma_load_im2col<T, channels = 64, pixels = 128, lower = (-1, -1), upper = (-1, -1) [,
    pixel_strides = (2, 2)] [, swizzle = 32|64|128] [, oob = nan] [, l2 = 0|64|256]>``: im2col load from global to
    shared memory.

    Fields: ``tma_bar`` (required), ``im2col_offsets``, ``multicast_mask``, ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.tma_load_im2col"
    LOADS = True


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


ATTRS: list[type[Attribute]] = [TmaLoadIm2colType, TmaStoreIm2colType, TmaReduceIm2colType]
