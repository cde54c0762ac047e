"""Parsing and printing of format elements: literals, lists, types without prefix, attributes."""

from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, DenseArrayBase, FloatAttr, IntegerAttr, IntegerType, StringAttr, i1
from xdsl.ir import Attribute, Data
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from cute_dialect.upstream.attrs import TextAttr, at_punctuation, opaque_class
from cute_dialect.upstream.constraints import number, numbers
from cute_dialect.upstream.llvm_types import LLVMPointerType
from cute_dialect.upstream.spec import NUMBER_TYPES, ArgSpec, AttrSpec

_I32 = IntegerType(32)


def literal(parser: Parser, text: str) -> None:
    """Parse a required keyword or punctuation."""
    if parser.parse_optional_characters(text) is None:
        parser.raise_error(f"expected '{text}'")


def optional_literal(parser: Parser, text: str) -> bool:
    """Parse a keyword or punctuation if it is present, and return True if it was."""
    return parser.parse_optional_characters(text) is not None


def operand_list(parser: Parser) -> list[UnresolvedOperand]:
    """Parse a possibly empty list of operands separated by commas."""
    return (
        parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        or []
    )


def type_list(parser: Parser) -> list[Attribute]:
    """Parse a possibly empty list of types separated by commas."""
    return list(
        parser.parse_optional_undelimited_comma_separated_list(parser.parse_optional_type, parser.parse_type) or []
    )


def parse_type(parser: Parser, arg: ArgSpec) -> Attribute:
    """Parse the type of `arg`. The dialect prefix may be omitted where upstream omits it: `<3>` for `!llvm.ptr<3>`."""
    if arg.stripped:
        found = parser.parse_optional_type()
        if found is not None:
            return found
        cls = LLVMPointerType if arg.stripped == "llvm.ptr" else opaque_class(arg.stripped)
        assert cls is not None
        return cls.new(cls.parse_parameter(parser))
    return parser.parse_type()


def parse_attr(parser: Parser, attr: AttrSpec) -> Attribute:
    """Parse the attribute `attr` in the syntax of a declarative format. Raises an error at the token if it is
    absent.
    """
    pos = parser.pos
    found = parse_optional_attr(parser, attr)
    if found is None:
        wanted = attr.kind.removeprefix("@")
        if attr.kind.startswith("enum."):
            wanted = "one of " + ", ".join(attr.cases)
        elif (cls := attr.attr_class) is not None and issubclass(cls, TextAttr) and cls.cases:
            wanted = "one of " + ", ".join(cls.cases)
        parser.raise_error(f"expected {wanted} for attribute '{attr.name}'", pos)
    return found


def parse_optional_attr(parser: Parser, attr: AttrSpec) -> Attribute | None:
    """Parse the attribute `attr` in the syntax of a declarative format, or return None if it is absent."""
    kind = attr.kind
    if kind.startswith("prop."):
        return _parse_flags(parser, attr)
    if (cls := attr.attr_class) is not None:
        return _parse_stripped(parser, cls)
    if kind.startswith("enum."):
        word = parser.parse_optional_keyword_in(attr.cases)
        if word is None and (word := parser.parse_optional_str_literal()) is not None and word not in attr.cases:
            # unreachable: no format in tables/ reaches this; tables of another MLIR release could
            parser.raise_error(f"expected one of {', '.join(attr.cases)} for attribute '{attr.name}'")
        return None if word is None else attr.convert(word)
    match kind:
        case "bool" | "i1":
            flag = parser.parse_optional_boolean()
            return None if flag is None else attr.convert(flag)
        case "i8" | "i16" | "i32" | "i64" | "index":
            number = parser.parse_optional_integer(allow_boolean=False)
            return None if number is None else attr.convert(number)
        case "f64":
            real = parser.parse_optional_float()
            return None if real is None else FloatAttr(real, 64)
        case "str":
            text = parser.parse_optional_str_literal()
            return None if text is None else StringAttr(text)
        case "sym":
            return parser.parse_optional_symbol_name()
        case "ref":
            return parser.parse_optional_attribute() if at_punctuation(parser, "@") else None
        case "type":
            return parser.parse_optional_type()
        case "dense.i32" | "dense.i64":
            if not at_punctuation(parser, "["):
                return parser.parse_optional_attribute()
            pos = parser.pos
            values = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            try:
                return attr.convert(values)
            except ValueError as err:  # The number does not fit in the type.
                parser.raise_error(f"attribute '{attr.name}': {err}", pos, parser.pos)
        case "array":
            return parser.parse_optional_attribute() if at_punctuation(parser, "[") else None
        case _:
            return parser.parse_optional_attribute()


def _parse_stripped(parser: Parser, cls: type[Data[Any]]) -> Attribute | None:
    if at_punctuation(parser, "#"):
        return parser.parse_attribute()
    if not issubclass(cls, TextAttr):
        return cls.new(cls.parse_parameter(parser)) if at_punctuation(parser, "<") else None
    if cls.style == "bare":
        word = parser.parse_optional_keyword_in(cls.cases)
        return None if word is None else cls(word)
    if cls.style == "raw" or at_punctuation(parser, "<"):
        return cls(cls.parse_parameter(parser))
    return None


def _parse_flags(parser: Parser, attr: AttrSpec) -> Attribute | None:
    """Parse LLVM flags, `overflow<nsw, nuw>` or `inbounds|nuw`, as the integer that upstream stores."""
    mnemonic = attr.kind.split(".")[1]
    if mnemonic != "-":
        if parser.parse_optional_keyword(mnemonic) is None:
            return None
        with parser.in_angle_brackets():
            bits = attr.cases[parser.parse_keyword_in(attr.cases)]
            while parser.parse_optional_punctuation(",") is not None:
                bits |= attr.cases[parser.parse_keyword_in(attr.cases)]
        return IntegerAttr(bits, _I32)
    word = parser.parse_optional_keyword_in(attr.cases)
    if word is None:
        return None
    bits = attr.cases[word]
    while parser.parse_optional_characters("|") is not None:
        bits |= attr.cases[parser.parse_keyword_in(attr.cases)]
    return IntegerAttr(bits, _I32)


def print_stripped(printer: Printer, type_: Attribute) -> None:
    """Print a type without `!dialect.mnemonic`, unless nothing would remain: `<3>`, but `!llvm.ptr`."""
    if type_ == LLVMPointerType() or not isinstance(type_, Data):
        printer.print_attribute(type_)
    else:
        cast("TextAttr", type_).print_parameter(printer)


def print_attr(printer: Printer, attr: AttrSpec, value: Attribute) -> None:
    """Print an attribute in the syntax of a declarative format."""
    kind = attr.kind
    plain = value  # A copy whose type the tests below do not narrow.
    if kind.startswith("prop."):
        mnemonic = kind.split(".")[1]
        if isinstance(value, TextAttr):
            printer.print_string(mnemonic)
            value.print_parameter(printer)
        elif mnemonic != "-" and isinstance(value, IntegerAttr):
            printer.print_string(f"{mnemonic}<{flag_words(attr.cases, value.value.data).replace('|', ', ')}>")
        elif isinstance(value, IntegerAttr):
            printer.print_string(flag_words(attr.cases, value.value.data))
    elif isinstance(value, Data) and kind == "@" + value.name:
        value.print_parameter(printer)
    elif kind.startswith("enum.") and isinstance(value, IntegerAttr):
        word = next((w for w, n in attr.cases.items() if n == value.value.data), str(value.value.data))
        printer.print_identifier_or_string_literal(word)
    elif kind in NUMBER_TYPES and isinstance(value, IntegerAttr | FloatAttr):
        if isinstance(value, FloatAttr):
            real = cast("FloatAttr[AnyFloat]", value)
            printer.print_float(real.value.data, real.type)
        else:
            printer.print_int(number(plain), i1 if kind in ("bool", "i1") else None)
    elif kind == "sym" and isinstance(value, StringAttr):
        printer.print_symbol_name(value.data)
    elif kind.startswith("dense.") and isinstance(value, DenseArrayBase):
        with printer.in_square_brackets():
            printer.print_list(numbers(plain), lambda v: printer.print_string(str(v)))
    else:
        printer.print_attribute(plain)


def flag_words(cases: dict[str, int], bits: int) -> str:
    """Return the words of a flag set, largest groups first: `inbounds|nuw`."""
    words: list[str] = []
    for word, value in sorted(cases.items(), key=lambda item: -item[1].bit_count()):
        if value and bits & value == value:
            words.append(word)
            bits &= ~value
    return "|".join(words) or "none"
