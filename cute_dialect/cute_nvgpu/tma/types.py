"""TMA atom types, tiled and im2col. Their parameters are the static part of a tensor map (:mod:`.maps`).

The value of such a type is a tensor map: 128 bytes that the host builds (``cute_nvgpu.make_tma_load``, ``…_store``,
``…_reduce``) and passes to a kernel by value. Only the map contains the address, the extents and the strides of the
global tensor. The type contains the other parameters of the instruction and of the copy.

Source: PTX ISA 9.0, 5.5 "Tensors", 5.5.5 "Im2col mode", 9.7.9.25.5 (the instructions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.cute_nvgpu.tma.maps import (
    REDUCTIONS,
    Im2colMap,
    TmaMap,
    canonical,
    check_copy,
    check_im2col,
    check_map,
)
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import element_bits
from cute_dialect.dialect.types import CoordType

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
                elif word == "oob":
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


# ------------------------------------------------------------------------------------------------------------ tiled


class TmaAtomType(TensorMapAtomType[TmaMap]):
    """Base of the atom types that copy boxes; ``data`` is a :class:`~.maps.TmaMap`."""

    NEEDED = ("box",)
    OPTIONAL = ("swizzle", "interleave", "element_strides", "oob", "l2")

    @classmethod
    def build(cls, given: Mapping[str, Any]) -> TmaMap:
        if not given.get("box"):
            raise AlgebraError("expected the box, e.g. box = (64, 128)")
        return canonical(TmaMap(**given))

    @classmethod
    def check(cls, m: TmaMap) -> None:
        check_map(m)

    def values(self) -> int:
        return self.data.elements


@irdl_attr_definition
class TmaLoadType(TmaAtomType):
    """``!cute_nvgpu.atom.tma_load<T, box = (64, 128) [, swizzle = 32|64|128] [, interleave = 16|32] [, element_strides
    = (…)] [, oob = nan] [, l2 = 0|64|256]>``: load of one box from global to shared memory.

    Fields: ``tma_bar`` (the mbarrier that counts the bytes; required), ``multicast_mask``, ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.tma_load"
    LOADS = True


@irdl_attr_definition
class TmaStoreType(TmaAtomType):
    """``!cute_nvgpu.atom.tma_store<T, box = (64, 128), …>``: store of one box from shared to global memory, in a bulk
    group.

    Fields: ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.tma_store"


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
    """Base of the atom types that copy the pixels of convolutions; ``data`` is an :class:`~.maps.Im2colMap`."""

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
        if field != "im2col_offsets":
            return super().takes(field, value)
        if not isinstance(value, CoordType):
            return False
        leaves = value.data if isinstance(value.data, tuple) else (value.data,)
        return len(leaves) == self.data.spatial and all(isinstance(x, int | Dyn) for x in leaves)

    def values(self) -> int:
        return self.data.channels * self.data.pixels


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


ATTRS: list[type[Attribute]] = [
    TmaLoadType, TmaStoreType, TmaReduceType, TmaLoadIm2colType, TmaStoreIm2colType, TmaReduceIm2colType,
]  # fmt: skip
