"""Diagnostics: printing values at run time."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryWriteEffect

from cute_dialect.dialect.asm import parse_operand_list, parse_type, print_operand_list
from cute_dialect.dialect.base import CuteOp, cute_op, ops_of
from cute_dialect.dialect.typed_values import ANY_CUTE, Properties


@cute_op
class PrintOp(CuteOp):
    """Print a value and a newline: its canonical text with every ``?`` replaced by the number.

    Syntax:
        ``cute.print(`` input ``) :`` type attr-dict

    Inference:
        No result. The op has a write effect, so that it is never removed or reordered with other writes.

    Example:
        cute.print(%l) : !cute.layout<"(?,6):(6,1)">
    """

    name = "cute.print"
    input = operand_def(ANY_CUTE)
    traits = traits_def(MemoryWriteEffect())

    def __init__(self, input: SSAValue | Operation):
        self.build_inferred([input])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        cls.check_operand_kinds(operand_types)
        return []

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        at = parser.pos
        operands = parse_operand_list(parser)
        if len(operands) != 1:
            parser.raise_error(f"expected 1 operand, got {len(operands)}", at)
        parser.parse_punctuation(":")
        value = parser.resolve_operand(operands[0], parse_type(parser, ANY_CUTE))
        return cls.create(operands=[value], attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        print_operand_list(printer, self.operands)
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)
        if self.attributes:
            printer.print_op_attributes(self.attributes)


OPS = ops_of(__name__)
