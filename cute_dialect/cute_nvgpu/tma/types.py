"""TMA atom types, with the static part of their tensor maps.

The value of such a type is a tensor map: 128 bytes that the host builds (``cute_nvgpu.make_tma_load``, ``…_store``,
``…_reduce``) and passes to a kernel by value. Only the map contains the address, the extents and the strides of the
global tensor. The type contains the other parameters of the instruction and of the copy: element type, box and swizzle.
Dimensions are in TMA order, contiguous first.

Source: CUDA driver API, cuTensorMapEncodeTiled; PTX ISA 9.0, 5.5 "Tensors", 9.7.9.25.5 (the instructions).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import element_bits

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
    """

    element: Attribute
    box: tuple[int, ...]
    swizzle: int = 0
    interleave: int = 0
    element_strides: tuple[int, ...] = ()
    oob: str = "zero"
    l2: int = 128
    reduction: str = ""

    @property
    def rank(self) -> int:
        """Number of dimensions of the map."""
        return len(self.box)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of elements that one instruction moves along each dimension."""
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
        return self.elements * element_bits(self.element) // 8

    @property
    def smem_alignment(self) -> int:
        """Required alignment of a tile in shared memory, in bytes: 128, or the period of the swizzle."""
        return max(128, 8 * self.swizzle)


def check_map(m: TmaMap) -> None:
    """Raise AlgebraError, with the text of the TmaError, if a parameter of the map is invalid."""
    from cute_dialect.arch.errors import ArchError
    from cute_dialect.arch.tensor_map import TensorDim, TensorMapSpec

    if m.element_strides and len(m.element_strides) != len(m.box):
        raise AlgebraError(f"expected {len(m.box)} element strides, one per dimension, got {len(m.element_strides)}")
    unit = max(16, m.interleave) * 8
    try:
        TensorMapSpec(
            element=str(m.element),
            dims=tuple([TensorDim(1, unit if i else 1, b, s) for i, (b, s) in enumerate(zip(m.box, m.strides))]),
            swizzle=m.swizzle,
            interleave=m.interleave,
            l2_promotion=m.l2,
            oob_fill=m.oob,
        )
    except ArchError as e:
        raise AlgebraError(str(e)) from None
    if m.reduction:
        check_reduction(m.element, m.reduction)


def check_reduction(element: Attribute, reduction: str) -> None:
    """Raise AlgebraError unless TMA supports this reduction for this element type."""
    known = _REDUCTIONS_OF.get(str(element), ())
    if reduction not in known:
        these = ", ".join(known) or "none"
        raise AlgebraError(f"expected a reduction that TMA supports for {element} ({these}), got {reduction}")


def _numbers(parser: AttrParser) -> tuple[int, ...]:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_integer))


_WORDS = ("box", "swizzle", "interleave", "element_strides", "oob", "l2")


class TmaAtomType(Data[TmaMap], CopyAtomType):
    """Base of the three TMA atom types; ``data`` is a :class:`TmaMap`."""

    ONE_THREAD = True
    TENSOR_MAP = True
    LOADS: ClassVar[bool] = False
    """True if the atom copies from global to shared memory."""

    def fields(self) -> tuple[str, ...]:
        return ("tma_bar", "multicast_mask", "cache_hint", "pred") if self.LOADS else ("cache_hint", "pred")

    def check_copy(self, operand_types: Sequence[Attribute]) -> None:
        from cute_dialect.cute_nvgpu.tma.boxes import check_copy

        check_copy([self, *operand_types[1:]])

    @classmethod
    def parse_map(cls, parser: AttrParser, *, reduces: bool) -> TmaMap:
        """Parse ``<T [, reduction], box = (…) [, swizzle = N] …>``."""
        with parser.in_angle_brackets():
            at = parser.pos
            element = parser.parse_type()
            m = TmaMap(element, ())
            if reduces:
                parser.parse_punctuation(",")
                here = parser.pos
                word = parser.parse_identifier(" reduction")
                if word not in REDUCTIONS:
                    parser.raise_error(f"expected one of {', '.join(REDUCTIONS)}, got '{word}'", here, parser.pos)
                m = m._replace(reduction=word)
            while parser.parse_optional_punctuation(",") is not None:
                here = parser.pos
                word = parser.parse_identifier()
                if word not in _WORDS:
                    parser.raise_error(f"expected one of {', '.join(_WORDS)}, got '{word}'", here, parser.pos)
                parser.parse_punctuation("=")
                if word in ("box", "element_strides"):
                    m = m._replace(**{word: _numbers(parser)})
                elif word == "oob":
                    m = m._replace(oob=parser.parse_identifier())
                else:
                    m = m._replace(**{word: parser.parse_integer(allow_boolean=False)})
            if not m.box:
                parser.raise_error("expected the box, e.g. box = (64, 128)", at, parser.pos)
            m = canonical(m)
            try:
                element_bits(element)
                check_map(m)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
        return m

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TmaMap:
        return cls.parse_map(parser, reduces=False)

    def print_parameter(self, printer: Printer) -> None:
        m = self.data
        printer.print_string("<")
        printer.print_attribute(m.element)
        if m.reduction:
            printer.print_string(f", {m.reduction}")
        printer.print_string(f", box = {_tuple(m.box)}")
        default = TmaMap(m.element, m.box)
        for word in _WORDS[1:]:
            value: object = getattr(m, word)
            if value != getattr(default, word):
                shown = _tuple(m.element_strides) if word == "element_strides" else value
                printer.print_string(f", {word} = {shown}")
        printer.print_string(">")

    def verify(self) -> None:
        try:
            check_map(self.data)
        except AlgebraError as e:
            raise VerifyException(str(e)) from None

    def threads(self) -> int:
        return 1

    def values(self) -> int:
        return self.data.elements

    @property
    def element(self) -> Attribute:
        return self.data.element


def _tuple(numbers: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, numbers)) + ")"


def canonical(m: TmaMap) -> TmaMap:
    """Return the map with default values removed."""
    return m._replace(element_strides=()) if all(s == 1 for s in m.element_strides) else m


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

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TmaMap:
        return cls.parse_map(parser, reduces=True)


ATTRS: list[type[Attribute]] = [TmaLoadType, TmaStoreType, TmaReduceType]
