"""Parsing and printing of operands, types and properties in the assembly forms of the ops.

Each op selects one of three forms for the types after the colon:

* ``functional``  ``cute.size (%x) : (T) -> T``
* ``arrow``       ``cute.get_shape(%x) : T -> T``     (also accepted: ``: (T) -> T``)
* ``inferred``    ``cute.slice(%x, %c) : T, T``       (result types are not written)

If only one kind of type is possible at a position, the parser also accepts the *stripped* type ``<"…">``. The printer
writes a stripped type only at positions that the op marks as stripped.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind

from cute_dialect.dialect.typed_values import OneOfKinds, Properties
from cute_dialect.dialect.types import TYPES, CuteType
from cute_dialect.ir.xdsl_compat import next_kind

# ------------------------------------------------------------------------------------------------------------ operands


def parse_operand_list(parser: Parser) -> list[UnresolvedOperand]:
    """Parse ``(%a, %b)``."""
    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)


def parse_one_operand(parser: Parser) -> UnresolvedOperand:
    """Parse ``(%a)``."""
    at = parser.pos
    operands = parse_operand_list(parser)
    if len(operands) != 1:
        parser.raise_error(f"expected 1 operand, got {len(operands)}", at, parser.pos)
    return operands[0]


def print_operand_list(printer: Printer, operands: Sequence[SSAValue]) -> None:
    """Print ``(%a, %b)``."""
    with printer.in_parens():
        printer.print_list(operands, printer.print_ssa_value)


def defined_type(parser: Parser, operand: UnresolvedOperand) -> Attribute:
    """Return the type of an operand from its definition, for forms that do not write operand types."""
    values = parser.ssa_values.get(operand.operand_name, ())
    if operand.index >= len(values):
        parser.raise_error(
            "expected a value that is defined above, because this form does not write operand types", operand.span
        )
    return values[operand.index].type


# --------------------------------------------------------------------------------------------------------------- types


def parse_type(parser: Parser, kinds: OneOfKinds | None) -> Attribute:
    """Parse a type. The stripped form ``<"…">`` is accepted if only one kind is possible."""
    if kinds is not None and len(kinds.kinds) == 1 and next_kind(parser) is MLIRTokenKind.LESS:
        (kind,) = kinds.kinds
        cls = TYPES[kind]
        return cls(cls.parse_parameter(parser))
    return parser.parse_type()


def print_type(printer: Printer, attribute: Attribute, kinds: OneOfKinds | None) -> None:
    """Print a type in the format that :func:`parse_type` reads."""
    if kinds is not None and kinds.is_stripped and isinstance(attribute, CuteType):
        attribute.print_parameter(printer)
    else:
        printer.print_attribute(attribute)


def _at(kinds: Sequence[OneOfKinds | None], i: int) -> OneOfKinds | None:
    return kinds[min(i, len(kinds) - 1)] if kinds else None


def parse_signature(
    parser: Parser,
    form: str,
    operand_kinds: Sequence[OneOfKinds | None],
    result_kinds: Sequence[OneOfKinds | None],
) -> tuple[list[Attribute], list[Attribute] | None]:
    """Parse the types after the colon: ``(T, T) -> T``, ``T -> T`` or ``T, T``.

    The second result is None if the form does not write result types.
    """
    types: list[Attribute] = []

    def one() -> None:
        types.append(parse_type(parser, _at(operand_kinds, len(types))))

    if form == "functional":
        if next_kind(parser) is not MLIRTokenKind.L_PAREN:
            parser.raise_error("expected the types of the operands and of the result, as in '(T) -> T'")
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
    elif form == "arrow" and parser.parse_optional_punctuation("(") is not None:
        one()
        parser.parse_punctuation(")")
    else:
        parser.parse_comma_separated_list(parser.Delimiter.NONE, one)
    if form == "inferred":
        return types, None
    parser.parse_punctuation("->")
    kinds = _at(result_kinds, 0)
    if parser.parse_optional_punctuation("(") is not None:
        results = [parse_type(parser, kinds)]
        parser.parse_punctuation(")")
    else:
        results = [parse_type(parser, kinds)]
    return types, results


def print_signature(
    printer: Printer,
    form: str,
    operands: Sequence[Attribute],
    results: Sequence[Attribute],
    operand_kinds: Sequence[OneOfKinds | None] = (),
    result_kinds: Sequence[OneOfKinds | None] = (),
) -> None:
    """Print a signature in the format that :func:`parse_signature` reads."""

    def types(attributes: Sequence[Attribute], kinds: Sequence[OneOfKinds | None]) -> None:
        for i, t in enumerate(attributes):
            if i:
                printer.print_string(", ")
            print_type(printer, t, _at(kinds, i))

    if form == "functional":
        with printer.in_parens():
            types(operands, operand_kinds)
    else:
        types(operands, operand_kinds)
    if form != "inferred":
        printer.print_string(" -> ")
        types(results, result_kinds)


# ---------------------------------------------------------------------------------------------------------- properties


def mode_attr(mode: Sequence[int]) -> DenseArrayBase:
    """Build the property ``mode``: ``array<i32: …>``."""
    return DenseArrayBase.from_list(i32, list(mode))


def parse_mode(parser: Parser, *, required: bool) -> dict[str, Attribute]:
    """Parse ``<[i, j]>`` into the property ``mode``."""
    if required:
        parser.parse_punctuation("<")
    elif parser.parse_optional_punctuation("<") is None:
        return {}
    indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_i32(parser))
    parser.parse_punctuation(">")
    return {"mode": mode_attr(indices)}


def mode_of(properties: Properties) -> tuple[int, ...]:
    """Return the property ``mode`` as a path. The path is empty if the property is absent."""
    mode = properties.get("mode")
    return tuple(mode.get_values()) if isinstance(mode, DenseArrayBase) else ()


def print_mode(printer: Printer, properties: Properties) -> None:
    """Print the property ``mode`` in the format that :func:`parse_mode` reads."""
    if "mode" in properties:
        printer.print_string("<[" + ", ".join(map(str, mode_of(properties))) + "]>")


def int_property(properties: Properties, name: str) -> int:
    """Return an ``i32`` property as an int."""
    attribute = properties[name]
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def parse_i32(parser: Parser) -> int:
    """Parse an integer literal that fits ``i32``."""
    at = parser.pos
    value = parser.parse_integer(allow_boolean=False)
    if not -(1 << 31) <= value < (1 << 31):
        parser.raise_error(f"expected a 32-bit integer, got {value}", at, parser.pos)
    return value


def parse_ints(parser: Parser, *names: str) -> dict[str, Attribute]:
    """Parse ``<16, 8>`` into ``i32`` properties, one per name."""
    parser.parse_punctuation("<")
    properties: dict[str, Attribute] = {}
    for i, name in enumerate(names):
        if i:
            parser.parse_punctuation(",")
        properties[name] = IntegerAttr(parse_i32(parser), i32)
    parser.parse_punctuation(">")
    return properties


def print_ints(printer: Printer, properties: Properties, *names: str) -> None:
    """Print ``i32`` properties in the format that :func:`parse_ints` reads."""
    printer.print_string("<" + ", ".join(str(int_property(properties, n)) for n in names) + ">")
