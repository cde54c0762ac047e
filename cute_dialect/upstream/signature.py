"""Function signatures with attributes, for llvm.func, llvm.call and gpu.func.

An example is `(%a: i32 {llvm.noundef}, ...) -> (f32 {llvm.signext})`.
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType
from xdsl.ir import Attribute, BlockArgument, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.upstream.attrs import at_punctuation
from cute_dialect.upstream.constraints import items
from cute_dialect.upstream.llvm_types import LLVMFunctionType

Argument = Parser.Argument


class Signature:
    """Parts of a signature. `names` are the arguments of the entry block; they are empty for a declaration."""

    def __init__(self) -> None:
        self.names: list[Argument] = []
        self.inputs: list[Attribute] = []
        self.outputs: list[Attribute] = []
        self.arg_attrs: list[dict[str, Attribute]] = []
        self.res_attrs: list[dict[str, Attribute]] = []
        self.variadic = False

    def properties(self) -> dict[str, Attribute]:
        """Return `arg_attrs` and `res_attrs`; each is omitted if all its dictionaries are empty."""
        found: dict[str, Attribute] = {}
        for name, dicts in (("arg_attrs", self.arg_attrs), ("res_attrs", self.res_attrs)):
            if any(dicts):
                found[name] = ArrayAttr([DictionaryAttr(d) for d in dicts])
        return found


def parse_signature(parser: Parser, *, allow_variadic: bool) -> Signature:
    """Parse a signature after the function's name. Either all arguments have names or none has; `...` comes last."""
    found = Signature()

    def argument() -> None:
        if found.variadic:
            parser.raise_error("'...' must be the last argument")
        if allow_variadic and parser.parse_optional_punctuation("...") is not None:
            found.variadic = True
            return
        pos = parser.pos
        named = parser.parse_optional_argument()
        if bool(found.inputs) and (named is not None) != bool(found.names):
            parser.raise_error("expected either all arguments with names or none", pos)
        if named is None:
            found.inputs.append(parser.parse_type())
        else:
            found.names.append(named)
            found.inputs.append(named.type)
        found.arg_attrs.append(parser.parse_optional_attr_dict())
        if (location := parser.parse_optional_location()) is not None and named is not None:
            named.location = location

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
    if parser.parse_optional_punctuation("->") is not None:
        parse_types(parser, found.outputs, found.res_attrs)
    return found


def parse_types(parser: Parser, types: list[Attribute], dicts: list[dict[str, Attribute]]) -> None:
    """Parse `T`, or `(T {attrs}, …)`; a function type in parentheses counts as a list."""

    def one() -> None:
        types.append(parser.parse_type())
        dicts.append(parser.parse_optional_attr_dict())

    if at_punctuation(parser, "("):
        parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
    else:
        types.append(parser.parse_type())
        dicts.append({})


def dicts_of(attr: Attribute | None, count: int) -> Sequence[dict[str, Attribute]]:
    """Return the dictionaries of `arg_attrs` or `res_attrs`; empty dictionaries if the attribute is absent."""
    if attr is not None:
        return [dict(d.data) for d in items(attr) if isinstance(d, DictionaryAttr)]
    none: dict[str, Attribute] = {}
    return [none] * count


def print_typed(printer: Printer, type_: Attribute, attrs: dict[str, Attribute]) -> None:
    """Print `T {attrs}`."""
    printer.print_attribute(type_)
    if attrs:
        printer.print_string(" ")
        printer.print_attr_dict(attrs)


def print_inputs(
    printer: Printer, args: Sequence[BlockArgument | Attribute], attrs: Attribute | None, variadic: bool = False
) -> None:
    """Print `(%a: T {attrs}, …, ...)`, or only the types for a declaration."""
    printer.print_string("(")
    for i, (arg, dictionary) in enumerate(zip(args, dicts_of(attrs, len(args)))):
        if i:
            printer.print_string(", ")
        if isinstance(arg, BlockArgument):
            printer.print_ssa_value(arg)
            printer.print_string(": ")
            print_typed(printer, arg.type, dictionary)
            if printer.print_debuginfo:
                printer.print_string(" ")
                printer.print_attribute(arg.location)
        else:
            print_typed(printer, arg, dictionary)
    if variadic:
        printer.print_string(", ..." if args else "...")
    printer.print_string(")")


def print_outputs(printer: Printer, types: Sequence[Attribute], attrs: Attribute | None) -> None:
    """Print ` -> T` or ` -> (T {attrs}, …)`, or nothing if there are no results."""
    if not types:
        return
    printer.print_string(" -> ")
    dicts = dicts_of(attrs, len(types))
    if len(types) == 1 and not dicts[0]:
        printer.print_attribute(types[0])
        return
    printer.print_string("(")
    printer.print_list(list(zip(types, dicts)), lambda pair: print_typed(printer, *pair))
    printer.print_string(")")


def verify_function(op: Operation, kind: type[FunctionType] | type[LLVMFunctionType], attributions: int = 0) -> None:
    """Raise VerifyException unless `op` has a function type of class `kind` and its entry block has matching arguments.

    The entry block must have at least `attributions` more arguments.
    """
    type_ = op.properties["function_type"]
    if not isinstance(type_, kind):
        raise VerifyException(f"attribute 'function_type' of '{op.name}': expected a function type, got {type_}")
    first = op.regions[0].first_block
    if first is None:
        return
    wanted, got = list(type_.inputs), [a.type for a in first.args]
    rest = len(got) - len(wanted)
    if got[: len(wanted)] != wanted or rest < attributions or (rest and kind is LLVMFunctionType):
        more = f" and {attributions} attributions" if attributions else ""
        raise VerifyException(
            f"the entry block must have the arguments of the function type ({', '.join(map(str, wanted))}){more}, "
            f"got ({', '.join(map(str, got))})"
        )
