"""Printer of the custom form of an op: an interpreter of upstream's declarative assembly formats.

Spacing follows upstream: no space inside `<>()[]{}` and before a comma (`PrintState`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.printer import Printer

from cute_dialect.upstream.attrs import TextAttr
from cute_dialect.upstream.format_directives import print_custom
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
from cute_dialect.upstream.format_values import print_attr, print_stripped
from cute_dialect.upstream.spec import SEGMENTS, OpSpec

if TYPE_CHECKING:
    from cute_dialect.upstream.op import TableOp


class PrintState:
    """Printer state: the spacing between elements, and the attributes already printed."""

    def __init__(self, op: "TableOp", printer: Printer) -> None:
        self.op = op
        self.spec = op.spec()
        self.printer = printer
        self.space = True
        self.punctuation = False
        self.started: Element | None = None
        self.printed: set[str] = set(SEGMENTS)

    def blank(self) -> None:
        """Print a space before an element that is not a literal."""
        if self.space or not self.punctuation:
            self.printer.print_string(" ")
        self.space, self.punctuation = True, False

    def literal(self, text: str) -> None:
        """Print a literal of the format, after a space where upstream prints one."""
        if self.space and _space_before(text, self.punctuation):
            self.printer.print_string(" ")
        self.printer.print_string(text)
        self.space = len(text) != 1 or text not in "<({["
        self.punctuation = not (text[0].isalpha() or text[0] == "_")

    def element(self, element: Element) -> None:
        """Print one element of the format."""
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
        """Print the attribute, region, successor or operand `name`; print nothing if it is absent."""
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
        """Return the types of `operands`, of `results` or of one variable."""
        op = self.op
        names = [a.name for a in (*self.spec.operands, *self.spec.results)]
        if name == "operands" and name not in names:
            return op.operand_types
        if name == "results" and name not in names:
            return op.result_types
        return [v.type for v in op.group(name)]

    def print_types(self, element: TypeOf) -> None:
        """Print the types of a `type(…)` directive, without the dialect prefix where upstream omits it."""
        found = next((a for a in (*self.spec.operands, *self.spec.results) if a.name == element.name), None)
        stripped = found is not None and found.stripped and not element.qualified
        self.printer.print_list(
            self.types(element.name),
            lambda t: print_stripped(self.printer, t) if stripped else self.printer.print_attribute(t),
        )

    def present(self, anchor: Element) -> bool:
        """Return True if a group with this anchor is printed."""
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
        """Print the dictionary of the directive `kind`: the attributes not yet printed that differ from their
        default.
        """
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


def print_op(op: "TableOp", printer: Printer) -> None:
    """Print the custom form of `op`, after its name."""
    state = PrintState(op, printer)
    elements = format_of(state.spec.name, state.spec.format or "")
    state.printed |= _named(elements, state.spec)
    for element in elements:
        state.element(element)
        if not isinstance(element, Space):
            state.started = element


def _named(elements: Sequence[Element], spec: OpSpec) -> set[str]:
    """Return the names of the attributes that a format prints outside the dictionary."""
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
