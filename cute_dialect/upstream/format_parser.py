"""Parser of the custom form of an op: an interpreter of upstream's declarative assembly formats.

The parser collects operands, types, attributes, regions and successors by name (`ParseState`). It then derives the
omitted parts from the type rules of the op (`OpSpec.infer`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, UnitAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand

from cute_dialect.upstream.attrs import at_punctuation
from cute_dialect.upstream.format_directives import parse_custom
from cute_dialect.upstream.format_elements import (
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
    format_of,
)
from cute_dialect.upstream.format_values import (
    literal,
    operand_list,
    optional_literal,
    parse_attr,
    parse_optional_attr,
    parse_type,
    type_list,
)
from cute_dialect.upstream.spec import SEGMENTS, ArgSpec, OpSpec, Types, infer_results

if TYPE_CHECKING:
    from cute_dialect.upstream.op import TableOp

TableOpT = TypeVar("TableOpT", bound="TableOp")
_I32 = IntegerType(32)


class ParseState:
    """Parser state: the parts of one op that have been parsed, with a parse method for each kind of format element."""

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
        """Return the declaration of the operand or result `name`."""
        return self.operand_args.get(name) or self.result_args[name]

    def element(self, element: Element) -> None:
        """Parse one element. Errors point to the offending token."""
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
            parse_custom(self, element)
        elif isinstance(element, OiList):
            left = list(element.clauses)
            while (clause := next((c for c in left if self.optional(c[0])), None)) is not None:
                left.remove(clause)
                for inner in clause[1:]:
                    self.element(inner)

    def set_unit(self, anchor: Element) -> None:
        """Set the unit attribute that anchors a group."""
        if isinstance(anchor, Var) and (attr := self.spec.attrs.get(anchor.name)) is not None and attr.kind == "unit":
            self.props[anchor.name] = UnitAttr()

    def variable(self, name: str) -> None:
        """Parse the operand, attribute, region or successor `name`."""
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
        """Parse `name` if it is present, and return True if it was."""
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
        """Parse a variadic of variadics, `(%a, %b), ()`. The sizes are stored in its segment attribute."""
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
        """Parse the first element of a group if it is present, and return True if it was."""
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
            return parse_custom(self, element)
        if isinstance(element, Group):
            return any(self.optional(inner) for inner in element.then)
        raise AssertionError(f"'{self.spec.name}': an optional group cannot start with {element}")

    def type_of(self, name: str) -> None:
        """Parse the types of `operands`, of `results` or of one variable."""
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
        """Assign `types`, parsed at `pos`, to `operands`, `results` or the variable `name`."""
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
                # unreachable: no format in tables/ reaches this; tables of another MLIR release could
                self.parser.raise_error(str(err), pos)
            counts = [(a.name, n) for a, n in zip(self.spec.results, sizes)]
        else:
            self.types[name] = types
            return
        expected = sum(n for _, n in counts)
        if expected != len(types):
            # unreachable: no format in tables/ reaches this; tables of another MLIR release could
            self.parser.raise_error(f"'{self.spec.name}' has {expected} {name}, but {len(types)} types are given", pos)
        start = 0
        for arg, count in counts:
            self.types[arg] = types[start : start + count]
            start += count

    def split_flat(self, flat: list[UnresolvedOperand], types: list[Attribute], pos: int) -> None:
        """Distribute the operands of an `operands` directive among the declared operands."""
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
        """Parse the dictionary of attributes or properties of the directive `kind`."""
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
        """Build the op after all elements are parsed."""
        parser, spec = self.parser, self.spec
        if "*" in self.operands and not any(a.name in self.operands for a in spec.operands):
            self.split_flat(self.operands["*"], [], self.start)
        counts = {a.name: len(self.operands.get(a.name, ())) for a in spec.operands}
        types: Types = {name: tuple(group) for name, group in self.types.items()}
        spec.infer(types, counts)
        operands: list[SSAValue] = []
        for arg in spec.operands:
            values = self.operands.get(arg.name, [])
            if not values:
                continue
            given = types.get(arg.name)
            if given is None:
                # unreachable: no format in tables/ reaches this; tables of another MLIR release could
                parser.raise_error(f"the type of operand '{arg.name}' of '{spec.name}' cannot be inferred", self.start)
            if len(given) != len(values):
                message = f"operand '{arg.name}' of '{spec.name}' has {len(values)} values and {len(given)} types"
                # unreachable: no format in tables/ reaches this; tables of another MLIR release could
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
    """Return the index of the first element that consumes a token."""
    return next(i for i, e in enumerate(elements) if not isinstance(e, Space))


def parse_op(cls: type[TableOpT], parser: Parser) -> TableOpT:
    """Parse the custom form of an op, after its name."""
    spec = cls.spec()
    state = ParseState(spec, parser)
    for element in format_of(spec.name, spec.format or ""):
        state.element(element)
    return state.finish(cls)
