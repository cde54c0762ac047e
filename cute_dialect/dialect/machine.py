"""Properties and assembly format of the machine-level ops."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from cute_dialect.dialect.asm import parse_operand_list, print_operand_list
from cute_dialect.dialect.views import MemoryOp


class MachineOp(MemoryOp):
    """Op of the form ``%r, … = op(%a, …) {prop = …} : (T, …) -> (R, …)``.

    A single result type is written without parentheses, and no results as ``()``.
    """

    WORDS: ClassVar[tuple[str, ...]] = ()
    """String properties that are written without quotation marks."""

    @classmethod
    def parse_entries(cls, parser: Parser) -> dict[str, Attribute]:
        """Parse the optional dictionary of properties and attributes between the operands and the types."""
        entries: dict[str, Attribute] = {}

        def one() -> None:
            name = parser.parse_identifier()
            if parser.parse_optional_punctuation("=") is None:
                parser.raise_error(f"expected '=' and a value after '{name}'")
            word = parser.parse_optional_identifier() if name in cls.WORDS else None
            entries[name] = StringAttr(word) if word is not None else parser.parse_attribute()

        if parser.parse_optional_punctuation("{") is not None:
            parser.parse_comma_separated_list(parser.Delimiter.NONE, one)
            parser.parse_punctuation("}")
        return entries

    def print_entries(self, printer: Printer) -> None:
        """Print the dictionary in the format that :meth:`parse_entries` reads."""
        entries = sorted({**self.properties, **self.attributes}.items())
        if entries:
            printer.print_string(" {")
            for i, (name, value) in enumerate(entries):
                printer.print_string(f"{', ' if i else ''}{name} = ")
                if name in self.WORDS and isinstance(value, StringAttr) and value.data.isidentifier():
                    printer.print_string(value.data)
                else:
                    printer.print_attribute(value)
            printer.print_string("}")

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        operands = parse_operand_list(parser)
        entries = cls.parse_entries(parser)
        declared = cls.get_irdl_definition().properties
        parser.parse_punctuation(":")
        at = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        results = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        return cls.create(
            operands=parser.resolve_operands(operands, types, at),
            result_types=[parser.parse_type()] if results is None else results,
            properties={k: v for k, v in entries.items() if k in declared},
            attributes={k: v for k, v in entries.items() if k not in declared},
        )

    def print(self, printer: Printer) -> None:
        print_operand_list(printer, self.operands)
        self.print_entries(printer)
        printer.print_string(" : ")
        with printer.in_parens():
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        if len(self.results) == 1:
            printer.print_attribute(self.result_types[0])
        else:
            with printer.in_parens():
                printer.print_list(self.result_types, printer.print_attribute)
