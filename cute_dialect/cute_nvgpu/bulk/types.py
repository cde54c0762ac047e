"""Atom types of asynchronous copies of runs of bytes: ``cp.async.bulk``, ``cp.reduce.async.bulk`` (sm_90).

* ``!cute_nvgpu.atom.bulk_copy<f32>``: copies between global and shared memory, or from shared memory to that of another
  block of the cluster. It uses as few instructions as the layouts of both sides allow. ``<f32, 4096 b>`` moves 4096
  bits per instruction.
* ``!cute_nvgpu.atom.bulk_reduce<f32, add>``: combines shared memory with global memory.

Source: PTX ISA 9.0, 9.7.9.25.4 "Non-tensor copy instructions".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.cute_nvgpu.bulk.runs import UNIT_BITS, check_copy
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import PtrType, element_bits
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


class BulkCopy(NamedTuple):
    """Parameters of a bulk atom.

    ``bits`` is the size of one instruction, or 0 for the longest contiguous run. ``reduction`` is one of
    ``REDUCTIONS``, or empty.
    """

    element: Attribute
    bits: int = 0
    reduction: str = ""


def reduced_as(element: Attribute, reduction: str) -> str:
    """Return the PTX type of a reduction of an element type. Raises AlgebraError if there is none.

    >>> from xdsl.dialects.builtin import f32, i32
    >>> reduced_as(f32, "add"), reduced_as(i32, "xor")
    ('f32', 'b32')
    """
    from cute_dialect.arch.async_copy import BULK_REDUCTIONS  # late: start-up

    bits, text = element_bits(element), str(element)
    names = [text]
    if text[0] in "iu":
        signed = () if text.startswith("ui") else (f"s{bits}",)
        names = [*signed, f"u{bits}", f"b{bits}"]
        if text.startswith("i") and reduction in ("min", "max"):
            names = [f"s{bits}"]
    known = BULK_REDUCTIONS[reduction]
    found = next((name for name in names if name in known), None)
    if found is None:
        raise AlgebraError(
            f"expected elements that cp.reduce.async.bulk.{reduction} supports ({', '.join(known)}), got {element}"
        )
    return found


def check_bulk(b: BulkCopy) -> None:
    """Raise AlgebraError unless an instruction with these parameters exists."""
    natural = element_bits(b.element)
    if b.bits % UNIT_BITS or b.bits % natural or b.bits < 0:
        raise AlgebraError(
            f"expected a multiple of {UNIT_BITS} bits that holds whole {b.element} elements, got {b.bits} bits"
        )
    if b.reduction:
        reduced_as(b.element, b.reduction)


class BulkAtomType(Data[BulkCopy], CopyAtomType):
    """Base of the bulk atom types."""

    ONE_THREAD = True
    REDUCES = False

    def fields(self) -> tuple[str, ...]:
        return ("cache_hint", "pred") if self.REDUCES else ("tma_bar", "multicast_mask", "cache_hint", "pred")

    def takes(self, field: str, value: Attribute) -> bool:
        remote = isinstance(value, PtrType) and value.data.space == AddressSpace.dsmem and value.data.element == i64
        return (field == "tma_bar" and remote) or super().takes(field, value)

    def check_copy(self, operand_types: Sequence[Attribute]) -> None:
        check_copy(self, operand_types)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> BulkCopy:
        with parser.in_angle_brackets():
            at = parser.pos
            b = BulkCopy(parser.parse_type())
            if cls.REDUCES:
                parser.parse_punctuation(",")
                here = parser.pos
                word = parser.parse_identifier(" reduction")
                if word not in REDUCTIONS:
                    parser.raise_error(f"expected one of {', '.join(REDUCTIONS)}, got '{word}'", here, parser.pos)
                b = b._replace(reduction=word)
            if parser.parse_optional_punctuation(",") is not None:
                b = b._replace(bits=parser.parse_integer(allow_boolean=False, allow_negative=False))
                parser.parse_keyword("b")
            try:
                check_bulk(b)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
        return b

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.data.element)
        if self.data.reduction:
            printer.print_string(f", {self.data.reduction}")
        if self.data.bits:
            printer.print_string(f", {self.data.bits} b")
        printer.print_string(">")

    def verify(self) -> None:
        try:
            check_bulk(self.data)
        except AlgebraError as e:
            raise VerifyException(str(e)) from None

    @property
    def element(self) -> Attribute:
        return self.data.element

    def threads(self) -> int:
        return 1

    def values(self) -> int:
        return max(1, self.data.bits // element_bits(self.data.element))

    def row(self) -> CopyAtom:
        """Return the row of the atom in the table. For copies between global and shared memory it is the row of the
        load.
        """
        from cute_dialect.arch import copy_atom  # late: start-up

        b = self.data
        if not b.reduction:
            return copy_atom("SM90_BULK_COPY_G2S")
        return copy_atom(f"SM90_BULK_REDUCE_{b.reduction.upper()}_S2G_{reduced_as(b.element, b.reduction).upper()}")


@irdl_attr_definition
class BulkCopyType(BulkAtomType):
    """``!cute_nvgpu.atom.bulk_copy<T [, N b]>``: copies runs of bytes, issued by one thread. Each instruction moves
    ``N`` bits, or as many as are contiguous on both sides.

    Copies from gmem to smem and from smem to dsmem signal an mbarrier. Copies from smem to gmem belong to a bulk group.
    Fields: ``tma_bar`` (the mbarrier), ``multicast_mask`` (gmem to smem), ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.bulk_copy"


@irdl_attr_definition
class BulkReduceType(BulkAtomType):
    """``!cute_nvgpu.atom.bulk_reduce<T, add|min|max|inc|dec|and|or|xor [, N b]>``: reduces runs of shared memory into
    global memory in a bulk group, atomically for each element.

    Fields: ``cache_hint``, ``pred``.
    """

    name = "cute_nvgpu.atom.bulk_reduce"
    REDUCES = True


ATTRS: list[type[Attribute]] = [BulkCopyType, BulkReduceType]
