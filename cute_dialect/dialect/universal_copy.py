"""The universal copy atom of ``cute_nvgpu``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import element_bits
from cute_dialect.dialect.tiled import check_plain_copy


class UniversalCopy(NamedTuple):
    """``bits``: width of one access, 0 for the width of the element."""

    element: Attribute
    bits: int = 0


@irdl_attr_definition
class UniversalCopyType(Data[UniversalCopy], CopyAtomType):
    """``!cute_nvgpu.atom.universal_copy<T [, N b]>``: plain loads and stores of ``N`` bits by one thread.

    Without a width, the atom moves one element at a time.  ``cute.copy`` may widen the accesses as far as divisibility,
    alignment and layouts of both sides allow.
    """

    name = "cute_nvgpu.atom.universal_copy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> UniversalCopy:
        with parser.in_angle_brackets():
            at = parser.pos
            element = parser.parse_type()
            try:
                natural = element_bits(element)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
            bits = 0
            if parser.parse_optional_punctuation(",") is not None:
                at = parser.pos
                bits = parser.parse_integer(allow_boolean=False, allow_negative=False)
                parser.parse_keyword("b")
                if bits not in (8, 16, 32, 64, 128) or bits % natural:
                    parser.raise_error(
                        f"expected 8, 16, 32, 64 or 128 bits and a multiple of the element's {natural}, got {bits}",
                        at,
                        parser.pos,
                    )
        return UniversalCopy(element, 0 if bits == natural else bits)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.data.element)
        printer.print_string(f", {self.data.bits} b>" if self.data.bits else ">")

    def check_copy(self, operand_types: Sequence[Attribute]) -> None:
        check_plain_copy(self, operand_types)

    def threads(self) -> int:
        return 1

    def values(self) -> int:
        return (self.data.bits or element_bits(self.data.element)) // element_bits(self.data.element)

    @property
    def element(self) -> Attribute:
        return self.data.element


ATTRS: list[type[Attribute]] = [UniversalCopyType]
