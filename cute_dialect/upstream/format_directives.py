"""The `custom<…>` directives of upstream's assembly formats, each with a parser and a printer in `_DIRECTIVES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import UnresolvedOperand

from cute_dialect.upstream.attrs import AsyncTokenType, at_punctuation, attr
from cute_dialect.upstream.constraints import is_vector, items, numbers, vector
from cute_dialect.upstream.format_elements import Custom
from cute_dialect.upstream.format_values import operand_list, parse_optional_attr
from cute_dialect.upstream.spec import container_element

if TYPE_CHECKING:
    from cute_dialect.upstream.format_parser import ParseState
    from cute_dialect.upstream.format_printer import PrintState

Args = Sequence[str]
_I32 = IntegerType(32)
_I64 = IntegerType(64)
GEP_DYNAMIC = -(2**31)
"""Placeholder of a dynamic index in `rawConstantIndices` of `llvm.getelementptr`."""


def parse_custom(state: ParseState, element: Custom) -> bool:
    """Parse a directive, and return True if it was present."""
    found = _DIRECTIVES.get(element.name)
    if found is None:
        # unreachable: no format in tables/ reaches this; tables of another MLIR release could
        state.parser.raise_error(f"the custom form of '{state.spec.name}' is not supported, write it in generic form")
    return found[0](state, [name for _, name in element.args])


def print_custom(state: PrintState, element: Custom) -> None:
    """Print a directive."""
    _DIRECTIVES[element.name][1](state, [name for _, name in element.args])


# LLVM directives.


def _parse_element_type(state: ParseState, args: Args) -> bool:
    element, container, position = args
    place = numbers(state.props[position])
    outer = state.types[container][0]
    inner = container_element(outer, place)
    if inner is None:
        state.parser.raise_error(f"{outer} has no element at {list(place)}", state.start)
    state.types[element] = [inner]
    return True


def _parse_shuffle_type(state: ParseState, args: Args) -> bool:
    source, result, mask = state.types[args[0]][0], args[1], numbers(state.props[args[2]])
    if not is_vector(source):
        # unreachable: no format in tables/ reaches this; tables of another MLIR release could
        state.parser.raise_error(f"expected a vector type, got {source}", state.start)
    state.types[result] = [vector(source.element_type, [len(mask)], source)]
    return True


def _nothing(state: PrintState, args: Args) -> None:
    pass


def _parse_gep_indices(state: ParseState, args: Args) -> bool:
    parser = state.parser
    dynamic, constant = list[UnresolvedOperand](), list[int]()
    while not at_punctuation(parser, "]"):
        number = parser.parse_optional_integer(allow_boolean=False)
        if number is None:
            dynamic.append(parser.parse_unresolved_operand("expected an integer or an operand as index"))
            number = GEP_DYNAMIC
        constant.append(number)
        if parser.parse_optional_punctuation(",") is None:
            break
    state.operands[args[0]] = dynamic
    state.props[args[1]] = DenseArrayBase.from_list(_I32, constant)
    return True


def _print_gep_indices(state: PrintState, args: Args) -> None:
    raw = numbers(state.op.properties[args[1]])
    _print_mixed(state, raw, state.op.group(args[0]), GEP_DYNAMIC)
    state.space, state.punctuation = True, False


def _print_mixed(state: PrintState, raw: Sequence[int], values: Sequence[SSAValue], dynamic: int) -> None:
    left, printer = iter(values), state.printer

    def one(n: int) -> None:
        if n == dynamic:
            printer.print_ssa_value(next(left))
        else:
            printer.print_string(str(n))

    printer.print_list(raw, one)


def _parse_linkage(state: ParseState, args: Args) -> bool:
    attr = state.spec.attrs[args[0]]
    cls = attr.attr_class
    assert cls is not None
    word = state.parser.parse_optional_keyword_in(LINKAGES)
    state.props[args[0]] = cls(word or "external")
    return True


def _print_linkage(state: PrintState, args: Args) -> None:
    state.blank()
    state.printer.print_string(getattr(state.op.properties.get(args[0]), "data", "external"))


LINKAGES = (
    "private", "internal", "available_externally", "linkonce", "weak", "common", "appending", "extern_weak",
    "linkonce_odr", "weak_odr", "external",
)  # fmt: skip


def _parse_switch_cases(state: ParseState, args: Args) -> bool:
    """Parse the cases of a switch: `[ 42: ^bb1(%x : i32), 43: ^bb2 ]`.

    For cf.switch the brackets belong to the format, and a default case comes first.
    """
    parser = state.parser
    cf = len(args) == 8
    if cf:
        flag, default, default_operands, _, values, blocks, operands, _ = args
        parser.parse_keyword("default")
        parser.parse_punctuation(":")
        state.successors[default] = [parser.parse_successor()]
        found, types = _block_operands(state)
        state.operands[default_operands], state.types[default_operands] = found, types
        more = parser.parse_optional_punctuation(",") is not None
    else:
        flag, values, blocks, operands, _ = args
        parser.parse_punctuation("[")
        more = not at_punctuation(parser, "]")
    cases, sizes = list[int](), list[int]()
    state.successors[blocks], state.operands[operands], state.types[operands] = [], [], []
    while more:
        cases.append(parser.parse_integer())
        parser.parse_punctuation(":")
        state.successors[blocks].append(parser.parse_successor())
        found, types = _block_operands(state)
        sizes.append(len(found))
        state.operands[operands] += found
        state.types[operands] += types
        more = parser.parse_optional_punctuation(",") is not None
    if not cf:
        parser.parse_punctuation("]")
    state.props["case_operand_segments"] = DenseArrayBase.from_list(_I32, sizes)
    if cases:
        type_ = VectorType(state.types[flag][0], [len(cases)])
        state.props[values] = DenseIntOrFPElementsAttr.from_list(type_, cases)  # pyright: ignore
    return True


def _block_operands(state: ParseState) -> tuple[list[UnresolvedOperand], list[Attribute]]:
    """Parse an optional list of block operands: `(%a, %b : i32, f32)`."""
    parser = state.parser
    if parser.parse_optional_punctuation("(") is None:
        return [], []
    values = operand_list(parser)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return values, list(types)


def _print_switch_cases(state: PrintState, args: Args) -> None:
    op, printer = state.op, state.printer
    _, values, _, operands, _ = args[-5:]
    cases: Sequence[int] = ()
    if isinstance(given := op.properties.get(values), DenseIntOrFPElementsAttr):
        cases = cast("Sequence[int]", given.get_values())
    sizes = numbers(op.properties["case_operand_segments"])
    targets = list(op.successors)[-len(cases) :] if cases else []
    rest = op.group(operands)
    printer.print_string(" [")
    start = 0
    for i, (number, target, size) in enumerate(zip(cases, targets, sizes)):
        printer.print_string(("," if i else "") + f"\n      {number}: ")
        printer.print_block_name(target)
        group = rest[start : start + size]
        start += size
        if group:
            with printer.in_parens():
                printer.print_list(group, printer.print_ssa_value)
                printer.print_string(" : ")
                printer.print_list([v.type for v in group], printer.print_attribute)
    printer.print_string("\n    ]" if cases else "]")
    state.space, state.punctuation = True, False


def _parse_bundles(state: ParseState, args: Args) -> bool:
    """Parse operand bundles: `["align"(%p, %a : !llvm.ptr, i32), …]`."""
    parser = state.parser
    values, types, tags, sizes = list[UnresolvedOperand](), list[Attribute](), list[Attribute](), list[int]()

    def one() -> None:
        tags.append(StringAttr(parser.parse_str_literal()))
        found, given = (
            _block_operands(state) if not parser.lexer.input.content.startswith("()", parser.pos) else ([], [])
        )
        if not found:
            parser.parse_optional_punctuation("(")
            parser.parse_optional_punctuation(")")
        values.extend(found)
        types.extend(given)
        sizes.append(len(found))

    there = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, one) is not None
    state.operands[args[0]], state.types[args[0]] = values, types
    state.props["op_bundle_sizes"] = DenseArrayBase.from_list(_I32, sizes)
    if there:
        state.props[args[2]] = ArrayAttr(tags)
    return there


def _print_bundles(state: PrintState, args: Args) -> None:
    op, printer = state.op, state.printer
    tags = items(op.properties.get(args[2]))
    sizes = numbers(op.properties.get("op_bundle_sizes"))
    if not tags:
        return
    rest, start = op.group(args[0]), 0
    printer.print_string(" [")
    for i, (tag, size) in enumerate(zip(tags, sizes)):
        printer.print_string(", " if i else "")
        printer.print_attribute(tag)
        group = rest[start : start + size]
        start += size
        printer.print_string("(")
        printer.print_list(group, printer.print_ssa_value)
        if group:
            printer.print_string(" : ")
            printer.print_list([v.type for v in group], printer.print_attribute)
        printer.print_string(")")
    printer.print_string("]")
    state.space, state.punctuation = True, False


# GPU directives.


def _parse_async(state: ParseState, args: Args) -> bool:
    """Parse `async [%t0, %t1]`. The keyword `async` adds a token result; the list contains the tokens to wait for."""
    parser = state.parser
    if parser.parse_optional_keyword("async") is not None:
        state.types[args[0]] = [AsyncTokenType()]
    found = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    state.operands[args[1]] = found or []
    return True


def _print_async(state: PrintState, args: Args) -> None:
    printer, op = state.printer, state.op
    if op.results and isinstance(op.results[-1].type, AsyncTokenType):
        printer.print_string(" async")
    if values := op.group(args[1]):
        printer.print_string(" [")
        printer.print_list(values, printer.print_ssa_value)
        printer.print_string("]")
    state.space, state.punctuation = True, False


def _parse_all_reduce(state: ParseState, args: Args) -> bool:
    found = parse_optional_attr(state.parser, state.spec.attrs[args[0]])
    if found is not None:
        state.props[args[0]] = found
    return True


def _print_all_reduce(state: PrintState, args: Args) -> None:
    if (value := state.op.properties.get(args[0])) is not None:
        state.blank()
        state.printer.print_string(getattr(value, "data", ""))


def _parse_handler(state: ParseState, args: Args) -> bool:
    parser = state.parser
    if parser.parse_optional_punctuation("<") is not None:
        state.props[args[0]] = parser.parse_attribute()
        parser.parse_punctuation(">")
    else:
        state.props[args[0]] = attr("gpu.select_object")
    return True


def _print_handler(state: PrintState, args: Args) -> None:
    value = state.op.properties.get(args[0])
    if value is not None and value != attr("gpu.select_object"):
        state.printer.print_string(" <")
        state.printer.print_attribute(value)
        state.printer.print_string(">")


def _parse_dim_type(state: ParseState, args: Args) -> bool:
    parser = state.parser
    type_ = parser.parse_type() if parser.parse_optional_punctuation(":") is not None else IndexType()
    state.types[args[0]] = [type_]
    if state.operands.get(args[1]):
        for name in args[2:]:
            state.types[name] = [type_]
    return True


def _print_dim_type(state: PrintState, args: Args) -> None:
    type_ = state.op.group(args[0])[0].type
    if not isinstance(type_, IndexType):
        state.printer.print_string(" : ")
        state.printer.print_attribute(type_)


def _parse_launch_operands(state: ParseState, args: Args) -> bool:
    parser = state.parser
    state.operands[args[0]], state.types[args[0]] = [], []
    if parser.parse_optional_keyword("args") is not None:

        def one() -> None:
            state.operands[args[0]].append(parser.parse_unresolved_operand())
            parser.parse_punctuation(":")
            state.types[args[0]].append(parser.parse_type())

        parser.parse_comma_separated_list(parser.Delimiter.PAREN, one)
    return True


def _print_launch_operands(state: PrintState, args: Args) -> None:
    printer = state.printer
    if not (values := state.op.group(args[0])):
        return

    def one(value: SSAValue) -> None:
        printer.print_ssa_value(value)
        printer.print_string(" : ")
        printer.print_attribute(value.type)

    printer.print_string(" args(")
    printer.print_list(values, one)
    printer.print_string(")")


# Vector and memref directives.


def _parse_index_list(state: ParseState, args: Args) -> bool:
    parser = state.parser
    dynamic, static = list[UnresolvedOperand](), list[int]()

    def one() -> None:
        number = parser.parse_optional_integer(allow_boolean=False)
        if number is None:
            dynamic.append(parser.parse_unresolved_operand("expected an integer or an operand"))
            number = DYNAMIC_INDEX
        static.append(number)

    parser.parse_comma_separated_list(parser.Delimiter.SQUARE, one)
    state.operands[args[0]] = dynamic
    state.props[args[1]] = DenseArrayBase.from_list(_I64, static)
    return True


def _print_index_list(state: PrintState, args: Args) -> None:
    raw = numbers(state.op.properties[args[1]])
    if state.space:
        state.printer.print_string(" ")
    with state.printer.in_square_brackets():
        _print_mixed(state, raw, state.op.group(args[0]), DYNAMIC_INDEX)
    state.space, state.punctuation = True, False


def _parse_global_memref(state: ParseState, args: Args) -> bool:
    parser = state.parser
    type_ = parser.parse_type()
    state.props[args[0]] = type_
    if parser.parse_optional_punctuation("=") is not None:
        if parser.parse_optional_keyword("uninitialized") is not None:
            state.props[args[1]] = UnitAttr()
        else:
            shape, element = getattr(type_, "get_shape")(), getattr(type_, "element_type")  # noqa: B009
            parser.parse_keyword("dense")
            state.props[args[1]] = parser.parse_dense_int_or_fp_elements_attr(TensorType(element, shape))
    return True


def _print_global_memref(state: PrintState, args: Args) -> None:
    printer, op = state.printer, state.op
    state.blank()
    printer.print_attribute(op.properties[args[0]])
    value = op.properties.get(args[1])
    if isinstance(value, UnitAttr):
        printer.print_string(" = uninitialized")
    elif isinstance(value, DenseIntOrFPElementsAttr):
        printer.print_string(" = ")
        value.print_without_type(printer)
    state.space, state.punctuation = True, False


_Reader = Callable[["ParseState", Args], bool]
_Printer = Callable[["PrintState", Args], None]
_DIRECTIVES: Mapping[str, tuple[_Reader, _Printer]] = {
    "InsertExtractValueElementType": (_parse_element_type, _nothing),
    "ShuffleType": (_parse_shuffle_type, _nothing),
    "OpBundles": (_parse_bundles, _print_bundles),
    "GEPIndices": (_parse_gep_indices, _print_gep_indices),
    "LLVMLinkage": (_parse_linkage, _print_linkage),
    "SwitchOpCases": (_parse_switch_cases, _print_switch_cases),
    "AsyncDependencies": (_parse_async, _print_async),
    "AllReduceOperation": (_parse_all_reduce, _print_all_reduce),
    "OffloadingHandler": (_parse_handler, _print_handler),
    "LaunchDimType": (_parse_dim_type, _print_dim_type),
    "LaunchFuncOperands": (_parse_launch_operands, _print_launch_operands),
    "DynamicIndexList": (_parse_index_list, _print_index_list),
    "GlobalMemrefOpTypeAndInitialValue": (_parse_global_memref, _print_global_memref),
}
