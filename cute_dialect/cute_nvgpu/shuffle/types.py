"""Atom type of the shuffle copies: ``!cute_nvgpu.atom.shuffle``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.cute_nvgpu.instruction_copy.types import InstructionCopyType, parse_value_type, parse_word

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom


class Shuffle(NamedTuple):
    """Parameters of the atom.

    ``transpose`` is the distance between exchanging lanes, 1 or 4; 0 means a broadcast of lane 0.
    """

    element: Attribute
    transpose: int


@irdl_attr_definition
class ShuffleType(Data[Shuffle], InstructionCopyType):
    """``!cute_nvgpu.atom.shuffle<val_type = T, transpose = 1|4>`` or ``<val_type = T, broadcast>``; T of 32 bits.

    ``transpose = N``: each thread holds two values. Lanes ``t`` and ``t xor N`` exchange one value each, which
    transposes 2x2 blocks (one ``shfl.sync`` and three selects). ``broadcast``: each lane receives the value of lane 0.
    """

    name = "cute_nvgpu.atom.shuffle"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Shuffle:
        with parser.in_angle_brackets():
            element = parse_value_type(parser, 32)
            parser.parse_punctuation(",")
            if parse_word(parser, "kind of shuffle", ("transpose", "broadcast")) == "broadcast":
                return Shuffle(element, 0)
            parser.parse_punctuation("=")
            at = parser.pos
            distance = parser.parse_integer(allow_boolean=False, allow_negative=False)
            if distance not in (1, 4):
                parser.raise_error(f"expected a transposition over 1 or 4 lanes, got {distance}", at, parser.pos)
        return Shuffle(element, distance)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<val_type = ")
        printer.print_attribute(self.data.element)
        kind = f"transpose = {self.data.transpose}" if self.data.transpose else "broadcast"
        printer.print_string(f", {kind}>")

    @property
    def element(self) -> Attribute:
        return self.data.element

    def row(self) -> CopyAtom:
        from cute_dialect.arch import copy_atom  # late: start-up

        if self.data.transpose == 0:
            return copy_atom("SM30_SHFL_IDX_U32_BROADCAST")
        return copy_atom(f"SM50_Shuffle_U32_2x2Trans_XOR{self.data.transpose}")


ATTRS: list[type[Attribute]] = [ShuffleType]
