"""Parses and prints the custom form of an op by interpreting its declarative assembly format, as upstream's generated code does.

Parsing collects operands, types, attributes, regions and successors by name (`ParseState`), then derives what the text leaves out
from the type rules of the op (`OpSpec.infer`). Printing follows upstream's blanks: none around `<>()[]{}` and before a comma.
"""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Data, Region
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from cute_dialect.upstream.attrs import TextAttr, at_punctuation
from cute_dialect.upstream.fmt import (
    Custom,
    Dict,
    Element,
    FunctionalType,
    Group,
    Lit,
    OiList,
    Qualified,
    Space,
    TypeOf,
    Var,
    compile_format,
)
from cute_dialect.upstream.op import SEGMENTS, TableOp, infer_results
from cute_dialect.upstream.spec import NUMBER_TYPES, ArgSpec, AttrSpec, OpSpec, Types

TableOpT = TypeVar("TableOpT", bound=TableOp)
_I32 = IntegerType(32)


class _Formats:
    by_op: dict[str, list[Element]] = {}


def format_of(spec: OpSpec) -> list[Element]:
    """The compiled format of an op."""
    if spec.name not in _Formats.by_op:
        _Formats.by_op[spec.name] = compile_format(spec.format or "")
    return _Formats.by_op[spec.name]


class ParseState:
    """What has been read of one op."""

    def __init__(self, spec: OpSpec, parser: Parser) -> None:
        self.spec = spec
        self.parser = parser
        self.start = parser.pos
        self.operands: dict[str, list[UnresolvedOperand]] = {}
        self.types: dict[str, list[Attribute]] = {}
        self.props: dict[str, Attribute] = {}
        self.attrs: dict[str, Attribute] = {}
        self.regions: dict[str, list[Region]] = {}
        self.successors: dict[str, list[Block]] = {}
        self.operand_args = {arg.name: arg for arg in spec.operands}
        self.result_args = {arg.name: arg for arg in spec.results}

    def arg(self, name: str) -> ArgSpec:
        """The operand or result `name`."""
        return self.operand_args.get(name) or self.result_args[name]

    def element(self, element: Element) -> None:
        """Reads one element; errors point at the offending token."""
        parser = self.parser
        if isinstance(element, Lit):
            literal(parser, element.text)
        elif isinstance(element, Var):
            self.variable(element.name)
        elif isinstance(element, Qualified):
            self.props[element.name] = parser.parse_attribute()
        elif isinstance(element, TypeOf):
            self.type_of(element.name)
        elif isinstance(element, Dict):
            self.dictionary(element.kind)
        elif isinstance(element, Group):
            if self.optional(element.then[_first(element.then)]):
                for inner in element.then[_first(element.then) + 1 :]:
                    self.element(inner)
                self.set_unit(element.anchor)
            else:
                for inner in element.otherwise:
                    self.element(inner)
        elif isinstance(element, FunctionalType):
            pos = parser.pos
            signature = parser.parse_function_type()
            self.set_types(element.inputs, list(signature.inputs), pos)
            self.set_types(element.outputs, list(signature.outputs), pos)
        elif isinstance(element, Custom):
            from cute_dialect.upstream.directives import parse_custom

            parse_custom(self, element)
        elif isinstance(element, OiList):
            left = list(element.clauses)
            while (clause := next((c for c in left if self.optional(c[0])), None)) is not None:
                left.remove(clause)
                for inner in clause[1:]:
                    self.element(inner)

    def set_unit(self, anchor: Element) -> None:
        """Sets the unit attribute that anchors a group."""
        if isinstance(anchor, Var) and (attr := self.spec.attrs.get(anchor.name)) is not None and attr.kind == "unit":
            self.props[anchor.name] = UnitAttr()

    def variable(self, name: str) -> None:
        parser, spec = self.parser, self.spec
        if name in self.operand_args:
            if self.operand_args[name].arity:
                self.optional_variable(name)
            else:
                self.operands[name] = [parser.parse_unresolved_operand(f"operand '{name}' of '{spec.name}' expected")]
        elif name in spec.attrs:
            attr = spec.attrs[name]
            if attr.kind != "unit":
                self.props[name] = parse_attr(parser, attr)
        elif not self.optional_variable(name):
            if name in spec.regions:
                self.regions[name] = [parser.parse_region()]
            elif name in spec.successors:
                self.successors[name] = [parser.parse_successor()]

    def optional_variable(self, name: str) -> bool:
        """Reads `name` if it is there."""
        parser, spec = self.parser, self.spec
        if name == "operands" and name not in self.operand_args:
            self.operands["*"] = operand_list(parser)
            return True
        if name in self.operand_args:
            arg = self.operand_args[name]
            if arg.arity == "*":
                self.operands[name] = operand_list(parser)
            elif arg.arity == "**":
                self.nested_operands(name)
            else:
                one = parser.parse_optional_unresolved_operand()
                self.operands[name] = [] if one is None else [one]
            return bool(self.operands[name])
        if name in spec.attrs:
            found = parse_optional_attr(parser, spec.attrs[name])
            if found is not None:
                self.props[name] = found
            return found is not None
        if (region := name.rstrip("*")) in [r.rstrip("*") for r in spec.regions]:
            found_region = parser.parse_optional_region()
            self.regions[region] = [] if found_region is None else [found_region]
            return found_region is not None
        if name + "*" in spec.successors or name in spec.successors:
            block = parser.parse_optional_successor()
            self.successors[name] = [] if block is None else [block]
            while block is not None and name + "*" in spec.successors and parser.parse_optional_punctuation(","):
                self.successors[name].append(parser.parse_successor())
            return block is not None
        return False

    def nested_operands(self, name: str) -> None:
        """`(%a, %b), ()`: a variadic of variadics; the sizes go into its segment attribute."""
        parser, values, sizes = self.parser, list[UnresolvedOperand](), list[int]()
        while at_punctuation(parser, "("):
            group = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
            values += group
            sizes.append(len(group))
            if parser.parse_optional_punctuation(",") is None:
                break
        self.operands[name] = values
        segment = next(a for a in self.spec.attrs if a.endswith("segments"))
        self.props[segment] = DenseArrayBase.from_list(_I32, sizes)

    def optional(self, element: Element) -> bool:
        """Whether the first element of a group is there; reads it if so."""
        parser = self.parser
        if isinstance(element, Lit):
            return optional_literal(parser, element.text)
        if isinstance(element, Var):
            return self.optional_variable(element.name)
        if isinstance(element, TypeOf):
            found = parser.parse_optional_type()
            if found is not None:
                self.types[element.name] = [found]
            return found is not None
        if isinstance(element, Qualified):
            found = parser.parse_optional_attribute()
            if found is not None:
                self.props[element.name] = found
            return found is not None
        if isinstance(element, Custom):
            from cute_dialect.upstream.directives import parse_custom

            return parse_custom(self, element)
        if isinstance(element, Group):
            return any(self.optional(inner) for inner in element.then)
        raise AssertionError(f"a group of '{self.spec.name}' starts with {element}")

    def type_of(self, name: str) -> None:
        parser = self.parser
        pos = parser.pos
        if name in ("operands", "results") and name not in self.operand_args and name not in self.result_args:
            self.set_types(name, type_list(parser), pos)
            return
        arg = self.arg(name)
        if arg.arity in ("*", "**"):
            self.types[name] = type_list(parser)
        elif arg.arity == "?":
            if name in self.operand_args and not self.operands.get(name):
                return
            self.types[name] = [parse_type(parser, arg)]
        else:
            self.types[name] = [parse_type(parser, arg)]

    def set_types(self, name: str, types: list[Attribute], pos: int) -> None:
        """Gives `types`, read at `pos`, to `operands`, `results` or the one variable `name`."""
        if name == "operands" and name not in self.operand_args:
            flat = self.operands.get("*")
            if flat is not None:
                self.split_flat(flat, types, pos)
                return
            counts = [(a.name, len(self.operands.get(a.name, ()))) for a in self.spec.operands]
        elif name == "results" and name not in self.result_args:
            try:
                sizes = self.spec.result_sizes(len(types), None)
            except ValueError as err:
                self.parser.raise_error(str(err), pos)
            counts = [(a.name, n) for a, n in zip(self.spec.results, sizes)]
        else:
            self.types[name] = types
            return
        expected = sum(n for _, n in counts)
        if expected != len(types):
            self.parser.raise_error(f"'{self.spec.name}' has {expected} {name}, but {len(types)} types are given", pos)
        start = 0
        for arg, count in counts:
            self.types[arg] = types[start : start + count]
            start += count

    def split_flat(self, flat: list[UnresolvedOperand], types: list[Attribute], pos: int) -> None:
        """Deals the operands of an `operands` directive out to their names."""
        try:
            sizes = self.spec.operand_sizes(len(flat), None)
        except ValueError as err:
            self.parser.raise_error(str(err), pos)
        if types and len(types) != len(flat):
            self.parser.raise_error(
                f"'{self.spec.name}' has {len(flat)} operands, but {len(types)} types are given", pos
            )
        start = 0
        for arg, size in zip(self.spec.operands, sizes):
            self.operands[arg.name] = flat[start : start + size]
            if types:
                self.types[arg.name] = types[start : start + size]
            start += size

    def dictionary(self, kind: str) -> None:
        parser, spec = self.parser, self.spec
        pos = parser.pos
        if kind == "prop-dict":
            self.props |= parser.parse_optional_properties_dict()
            return
        if kind == "attr-dict-with-keyword" and parser.parse_optional_keyword("attributes") is None:
            return
        for name, value in parser.parse_optional_attr_dict().items():
            if name in spec.attrs or name in SEGMENTS:
                if name in self.props:
                    parser.raise_error(f"attribute '{name}' is given twice", pos)
                self.props[name] = value
            else:
                self.attrs[name] = value

    def finish(self, cls: type[TableOpT]) -> TableOpT:
        """The op, once everything is read."""
        parser, spec = self.parser, self.spec
        if "*" in self.operands and not any(a.name in self.operands for a in spec.operands):
            self.split_flat(self.operands["*"], [], self.start)
        counts = {a.name: len(self.operands.get(a.name, ())) for a in spec.operands}
        types: Types = {name: tuple(group) for name, group in self.types.items()}
        spec.infer(types, counts)
        operands = []
        for arg in spec.operands:
            values = self.operands.get(arg.name, [])
            if not values:
                continue
            given = types.get(arg.name)
            if given is None:
                parser.raise_error(f"the type of operand '{arg.name}' of '{spec.name}' is not determined", self.start)
            if len(given) != len(values):
                message = f"operand '{arg.name}' of '{spec.name}' has {len(values)} values and {len(given)} types"
                parser.raise_error(message, values[0].span)
            operands += [parser.resolve_operand(value, type_) for value, type_ in zip(values, given)]
        try:
            results = infer_results(spec, types, self.props)
        except TypeError as err:
            parser.raise_error(str(err), self.start)
        if "o" in spec.traits:
            self.props[SEGMENTS[0]] = DenseArrayBase.from_list(_I32, [counts[a.name] for a in spec.operands])
        if "r" in spec.traits:
            sizes = [len(types.get(a.name, ())) for a in spec.results]
            self.props[SEGMENTS[1]] = DenseArrayBase.from_list(_I32, sizes)
        successors = [b for name in spec.successors for b in self.successors.get(name.rstrip("*"), ())]
        for name in spec.one_block:
            for region in self.regions.get(name, ()):
                if not region.blocks:
                    region.add_block(Block())
        regions = [r for name in spec.regions for r in self.regions.get(name.rstrip("*"), ())]
        return cls.create(
            operands=operands,
            result_types=results,
            properties=self.props,
            attributes=self.attrs,
            successors=successors,
            regions=regions,
        )


def _first(elements: Sequence[Element]) -> int:
    """The index of the first element that reads something."""
    return next(i for i, e in enumerate(elements) if not isinstance(e, Space))


def parse_op(cls: type[TableOpT], parser: Parser) -> TableOpT:
    """Reads the custom form of `cls` after its name."""
    spec = cls.spec()
    state = ParseState(spec, parser)
    for element in format_of(spec):
        state.element(element)
    return state.finish(cls)


def literal(parser: Parser, text: str) -> None:
    """Reads a keyword or punctuation, which must be there."""
    if parser.parse_optional_characters(text) is None:
        parser.raise_error(f"expected '{text}'")


def optional_literal(parser: Parser, text: str) -> bool:
    """Reads a keyword or punctuation if it is there."""
    return parser.parse_optional_characters(text) is not None


def operand_list(parser: Parser) -> list[UnresolvedOperand]:
    """Operands separated by commas, maybe none."""
    return (
        parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        or []
    )


def type_list(parser: Parser) -> list[Attribute]:
    """Types separated by commas, maybe none."""
    return list(
        parser.parse_optional_undelimited_comma_separated_list(parser.parse_optional_type, parser.parse_type) or []
    )


def parse_type(parser: Parser, arg: ArgSpec) -> Attribute:
    """The type of `arg`, with or without its dialect prefix where upstream strips it: `<3>` for `!llvm.ptr<3>`."""
    if arg.stripped:
        found = parser.parse_optional_type()
        if found is not None:
            return found
        from cute_dialect.upstream.llvm_types import LLVMPointerType
        from cute_dialect.upstream.opaque_types import opaque_class

        cls = LLVMPointerType if arg.stripped == "llvm.ptr" else opaque_class(arg.stripped)
        assert cls is not None
        return cls.new(cls.parse_parameter(parser))
    return parser.parse_type()


def parse_attr(parser: Parser, attr: AttrSpec) -> Attribute:
    """The attribute `attr` as a declarative format writes it; raises at the token when it is not there."""
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
    """The attribute `attr` as a declarative format writes it, None when the next token does not start one."""
    kind = attr.kind
    if kind.startswith("prop."):
        return _parse_flags(parser, attr)
    if (cls := attr.attr_class) is not None:
        return _parse_stripped(parser, cls)
    if kind.startswith("enum."):
        word = parser.parse_optional_keyword_in(attr.cases)
        if word is None and (word := parser.parse_optional_str_literal()) is not None and word not in attr.cases:
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
            values = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            return attr.convert(values)
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
    """LLVM flags: `overflow<nsw, nuw>` (an attribute) or `inbounds|nuw` (an integer)."""
    mnemonic = attr.kind.split(".")[1]
    if mnemonic != "-":
        if parser.parse_optional_keyword(mnemonic) is None:
            return None
        cls = attr.attr_class
        assert cls is not None
        return cls(cls.parse_parameter(parser))
    word = parser.parse_optional_keyword_in(attr.cases)
    if word is None:
        return None
    bits = attr.cases[word]
    while parser.parse_optional_characters("|") is not None:
        bits |= attr.cases[parser.parse_keyword_in(attr.cases)]
    return IntegerAttr(bits, _I32)


# Printing


class PrintState:
    """Blanks between elements, by upstream's rules."""

    def __init__(self, op: TableOp, printer: Printer) -> None:
        self.op = op
        self.spec = op.spec()
        self.printer = printer
        self.space = True
        self.punctuation = False
        self.started: Element | None = None
        self.printed: set[str] = set(SEGMENTS)

    def blank(self) -> None:
        """A blank before an element that is no literal."""
        if self.space or not self.punctuation:
            self.printer.print_string(" ")
        self.space, self.punctuation = True, False

    def literal(self, text: str) -> None:
        if self.space and _space_before(text, self.punctuation):
            self.printer.print_string(" ")
        self.printer.print_string(text)
        self.space = len(text) != 1 or text not in "<({["
        self.punctuation = not (text[0].isalpha() or text[0] == "_")

    def element(self, element: Element) -> None:
        op, printer = self.op, self.printer
        if isinstance(element, Lit):
            self.literal(element.text)
        elif isinstance(element, Space):
            if element.text:
                printer.print_string(element.text)
            self.punctuation = not element.text
            self.space = False
        elif isinstance(element, Group):
            for inner in element.then if self.present(element.anchor) else element.otherwise:
                self.element(inner)
        elif isinstance(element, Dict):
            self.dictionary(element.kind)
            self.punctuation = False
        elif isinstance(element, Custom):
            from cute_dialect.upstream.directives import print_custom

            print_custom(self, element)
        elif isinstance(element, OiList):
            for clause in element.clauses:
                if any(self.present(e) for e in clause if isinstance(e, Var)):
                    for inner in clause:
                        self.element(inner)
        elif isinstance(element, FunctionalType):
            self.blank()
            printer.print_function_type(self.types(element.inputs), self.types(element.outputs))
        elif isinstance(element, TypeOf):
            self.blank()
            self.print_types(element)
        elif isinstance(element, Qualified):
            self.blank()
            printer.print_attribute(op.properties[element.name])
        else:
            self.variable(element.name)

    def variable(self, name: str) -> None:
        op, printer, spec = self.op, self.printer, self.spec
        if name in spec.attrs:
            attr = spec.attrs[name]
            value = op.properties.get(name)
            if attr.kind == "unit":
                return
            if value is None:
                value = attr.default_attr
            if value is not None:
                if isinstance(value, TextAttr) and value.style == "bare" and not self.space and self.started is None:
                    printer.print_string(" ")
                    self.space, self.punctuation = True, False
                elif not (attr.kind.startswith("@") and isinstance(value, TextAttr) and not value.data):
                    self.blank()
                print_attr(printer, attr, value)
            return
        if name == "operands" and all(a.name != name for a in spec.operands):
            self.blank()
            printer.print_list(op.operands, printer.print_ssa_value)
            return
        for i, region in enumerate(spec.regions):
            if region.rstrip("*") == name:
                self.blank()
                printer.print_list(op.regions[i:] if region.endswith("*") else [op.regions[i]], printer.print_region)
                return
        for i, block in enumerate(spec.successors):
            if block.rstrip("*") == name:
                self.blank()
                blocks = list(op.successors)
                printer.print_list(blocks[i:] if block.endswith("*") else [blocks[i]], printer.print_block_name)
                return
        values = op.group(name)
        if values or self.punctuation is False:
            self.blank()
        printer.print_list(values, printer.print_ssa_value)

    def types(self, name: str) -> Sequence[Attribute]:
        """The types of `operands`, `results` or one variable."""
        op = self.op
        names = [a.name for a in (*self.spec.operands, *self.spec.results)]
        if name == "operands" and name not in names:
            return op.operand_types
        if name == "results" and name not in names:
            return op.result_types
        return [v.type for v in op.group(name)]

    def print_types(self, element: TypeOf) -> None:
        found = next((a for a in (*self.spec.operands, *self.spec.results) if a.name == element.name), None)
        stripped = found is not None and found.stripped and not element.qualified
        self.printer.print_list(
            self.types(element.name),
            lambda t: print_stripped(self.printer, t) if stripped else self.printer.print_attribute(t),
        )

    def present(self, anchor: Element) -> bool:
        """Whether a group with this anchor prints."""
        op = self.op
        if isinstance(anchor, Group):
            return any(self.present(e) for e in anchor.then)
        if isinstance(anchor, Custom):
            return any(self.present(Var(name)) for kind, name in anchor.args if kind == "$")
        if isinstance(anchor, Var | Qualified) and anchor.name in self.spec.attrs:
            value = op.properties.get(anchor.name)
            attr = self.spec.attrs[anchor.name]
            if attr.kind.startswith("prop."):
                return (isinstance(value, TextAttr) and value.data != "none") or (
                    isinstance(value, IntegerAttr) and value.value.data != 0
                )
            return value is not None and (attr.nullable or value != attr.default_attr)
        if isinstance(anchor, Var | TypeOf):
            for i, name in enumerate(self.spec.regions):
                if name.rstrip("*") == anchor.name:
                    return len(op.regions) > i and bool(op.regions[i].blocks)
            if anchor.name == "operands" and all(a.name != "operands" for a in self.spec.operands):
                return bool(op.operands)
            return bool(self.types(anchor.name))
        return False

    def dictionary(self, kind: str) -> None:
        op, spec = self.op, self.spec
        shown = {
            name: value
            for name, value in op.properties.items()
            if name not in self.printed
            and not ((attr := spec.attrs.get(name)) is not None and attr.default and value == attr.default_attr)
        }
        if kind == "prop-dict":
            if shown:
                self.printer.print_string(" <")
                self.printer.print_attr_dict(shown)
                self.printer.print_string(">")
            self.printed |= set(shown)
            return
        shown = dict(sorted((shown | op.attributes).items()))
        self.printer.print_op_attributes(shown, print_keyword=kind == "attr-dict-with-keyword")


def print_op(op: TableOp, printer: Printer) -> None:
    """Prints the custom form of `op` after its name."""
    state = PrintState(op, printer)
    elements = format_of(state.spec)
    state.printed |= _named(elements, state.spec)
    for element in elements:
        state.element(element)
        if not isinstance(element, Space):
            state.started = element


def _named(elements: Sequence[Element], spec: OpSpec) -> set[str]:
    """The attributes that a format prints outside the dictionary."""
    found: set[str] = set()
    for e in elements:
        if isinstance(e, Var | Qualified):
            found.add(e.name)
        elif isinstance(e, Group):
            found |= _named(e.then, spec) | _named(e.otherwise, spec)
        elif isinstance(e, OiList):
            found |= {name for clause in e.clauses for name in _named(clause, spec)}
        elif isinstance(e, Custom):
            found |= {name for kind, name in e.args if kind == "$"}
            hidden = {"SwitchOpCases": "case_operand_segments", "OpBundles": "op_bundle_sizes"}.get(e.name)
            found |= {a for a in spec.attrs if a == hidden}
    return found


def _space_before(text: str, last_was_punctuation: bool) -> bool:
    if len(text) != 1 and text != "->":
        return True
    return text[0] not in (">)}]," if last_was_punctuation else "<>(){}[],")


def print_stripped(printer: Printer, type_: Attribute) -> None:
    """Prints a type without `!dialect.mnemonic`."""
    cast("TextAttr", type_).print_parameter(printer)


def print_attr(printer: Printer, attr: AttrSpec, value: Attribute) -> None:
    """Prints an attribute as a declarative format writes it."""
    kind = attr.kind
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
        value = cast("IntegerAttr | FloatAttr", value)
        if isinstance(value, FloatAttr):
            printer.print_float(value.value.data, value.type)
        else:
            printer.print_int(value.value.data, value.type)
    elif kind == "sym" and isinstance(value, StringAttr):
        printer.print_symbol_name(value.data)
    elif kind.startswith("dense.") and isinstance(value, DenseArrayBase):
        with printer.in_square_brackets():
            printer.print_list(value.get_values(), lambda v: printer.print_string(str(v)))
    else:
        printer.print_attribute(value)


def flag_words(cases: dict[str, int], bits: int) -> str:
    """`inbounds|nuw` for the bits of a flag set: largest groups first."""
    words: list[str] = []
    for word, value in sorted(cases.items(), key=lambda item: -item[1].bit_count()):
        if value and bits & value == value:
            words.append(word)
            bits &= ~value
    return "|".join(words) or "none"
