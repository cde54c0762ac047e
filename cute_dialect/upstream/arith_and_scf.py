"""The dialects arith, cf, func, math, scf and ub: xDSL's classes plus the upstream ops that xDSL lacks.

The parser builds xDSL's classes, so that a match on `xdsl.dialects.arith.AddiOp` works. If the text or the properties
of an xDSL class differ from upstream's, the parser builds a subclass of it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Self, cast

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from cute_dialect.upstream.attrs import attrs
from cute_dialect.upstream.constraints import is_vector
from cute_dialect.upstream.lazy import MadeLater, TableDialect
from cute_dialect.upstream.op import FormatOp, make_ops
from cute_dialect.upstream.tables import OpRow, has_table

_NAMES = {"ARITH": "Arith", "CF": "Cf", "FUNC": "Func", "MATH": "Math", "SCF": "Scf", "UB": "UB"}
RESPELLED = {
    "arith": (
        "trunci", "truncf", "extsi", "extui", "extf", "sitofp", "uitofp", "fptosi", "fptoui", "bitcast", "index_cast",
        "index_castui", "cmpi", "cmpf", "addui_extended", "divsi", "divui", "shrsi", "shrui", "select",
    ),
    "cf": ("cond_br",),
}  # fmt: skip
"""Ops whose xDSL class lacks a property or a form of upstream: `exact`, `overflow`, a rounding mode, vectors, branch
weights.
"""


class _Select(FormatOp):
    """`arith.select %p, %a, %b : T`, or `: vector<4xi1>, T` when the condition is a vector."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if len(values) != 3 or len(types) > 2:
            parser.raise_error(
                f"expected three operands and at most two types, got {len(values)} and {len(types)}", pos
            )
        condition = types[0] if len(types) == 2 else IntegerType(1)
        operands = [parser.resolve_operand(v, t) for v, t in zip(values, (condition, types[-1], types[-1]))]
        return cls.create(operands=operands, result_types=[types[-1]], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if is_vector(condition := self.operands[0].type):
            printer.print_attribute(condition)
            printer.print_string(", ")
        printer.print_attribute(self.results[0].type)


def _respelled(theirs: type[Operation], dialect: str) -> Callable[[OpRow], type[Operation]]:
    def make(row: OpRow) -> type[Operation]:
        body = {
            "name": theirs.name, "row": row, "dialect": dialect, "__init__": theirs.__init__, "traits": theirs.traits,
        }  # fmt: skip
        base = _Select if row[0] == "select" else FormatOp
        return cast("type[Operation]", type(theirs.__name__, (base, theirs), body))

    return make


def _complete(name: str) -> Dialect:
    theirs = cast("Dialect", getattr(import_module(f"xdsl.dialects.{name}"), _NAMES[name.upper()]))
    ops: dict[str, type[Operation]] = {op.name.split(".", 1)[1]: op for op in theirs.operations}
    found: list[type[Attribute]] = list(theirs.attributes)
    if name == "scf":
        from cute_dialect.upstream import scf_ops  # late: start-up

        ops |= {op.name.split(".", 1)[1]: op for op in scf_ops.OPS}
    if not has_table(name):
        return Dialect(name, list(ops.values()), found)
    known = {a.name.partition(".")[2] for a in found}
    special = {op: (ops[op].__name__, _respelled(ops[op], name)) for op in RESPELLED.get(name, ()) if op in ops}
    lacking = make_ops(name, without=ops.keys() - special.keys(), special=special)
    more = attrs(name)
    names = (*(op for op in lacking if op not in ops), *ops)
    return TableDialect(
        name,
        MadeLater(names, lambda op: lacking[op] if op in lacking else ops[op]),
        MadeLater((mnemonic for mnemonic in more if mnemonic not in known), more.__getitem__),
        found,
    )


def __getattr__(name: str) -> Dialect:
    """Return the dialect `ARITH`, `CF`, `FUNC`, `MATH`, `SCF` or `UB`, created on first access."""
    if name in _NAMES:
        globals()[name] = made = _complete(name.lower())
        return made
    raise AttributeError(f"module 'arith_and_scf' has no '{name}'")
