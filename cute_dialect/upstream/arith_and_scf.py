"""The dialects arith, cf, func, math, scf and ub: xDSL's classes plus the upstream ops that xDSL lacks.

The parser builds xDSL's classes, so that a match on `xdsl.dialects.arith.AddiOp` works. If the text or the properties
of an xDSL class differ from upstream's, the parser builds a subclass of it.

The subclasses of scf's ops read and print `scf.for unsigned`, `scf.while : () -> ()` and so on. Properties that xDSL's
definition lacks (`unsignedCmp`, `no_inline`) are stored and printed, but hidden from xDSL's verifier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Self, cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerType, UnitAttr
from xdsl.ir import Attribute, Block, Dialect, Operation, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.upstream.attrs import at_punctuation, attrs
from cute_dialect.upstream.constraints import is_vector
from cute_dialect.upstream.lazy import MadeLater, TableDialect
from cute_dialect.upstream.op import FormatOp, make_ops
from cute_dialect.upstream.signature import print_outputs
from cute_dialect.upstream.tables import OpRow, has_table


def verify_without(op: Operation, hidden: Sequence[str], base: type[Operation]) -> None:
    """Run the verifier of `base` on `op` with the properties `hidden` removed."""
    aside = {name: op.properties.pop(name) for name in hidden if name in op.properties}
    try:
        base.verify_(op)
    finally:
        op.properties |= aside


def _words(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))


def _ensure_yield(region: Region) -> None:
    """Add the `scf.yield` without operands that upstream omits."""
    if not region.blocks:
        region.add_block(Block())
    block = region.blocks[-1]
    if not isinstance(block.last_op, scf.YieldOp):
        block.add_op(scf.YieldOp())


def _parse_types(parser: Parser) -> list[Attribute]:
    """Parse optional result types: ` -> T` or ` -> (T, …)`."""
    if parser.parse_optional_punctuation("->") is None:
        return []
    if at_punctuation(parser, "("):
        return list(parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type))
    return [parser.parse_type()]


class ForOp(scf.ForOp):
    """`scf.for [unsigned] %i = %lo to %hi step %s iter_args(%a = %b) -> (T) : i32 { … }`"""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unsigned = parser.parse_optional_keyword("unsigned") is not None
        op = super().parse(parser)
        if unsigned:
            op.properties["unsignedCmp"] = UnitAttr()
        return op

    def print(self, printer: Printer) -> None:
        if "unsignedCmp" in self.properties:
            printer.print_string(" unsigned")
        super().print(printer)

    def verify_(self) -> None:
        verify_without(self, ("unsignedCmp",), scf.ForOp)


class WhileOp(scf.WhileOp):
    """`scf.while (%x = %a) : (T) -> U { … scf.condition(%p) %u : U } do { ^bb0(%y: U): … scf.yield %t : T }`"""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        def assignment() -> tuple[Parser.UnresolvedArgument, object]:
            arg = parser.parse_argument(expect_type=False)
            parser.parse_punctuation("=")
            return arg, parser.parse_unresolved_operand()

        pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, assignment) or []
        parser.parse_punctuation(":")
        pos = parser.pos
        signature = parser.parse_function_type()
        inputs = signature.inputs.data
        if len(pairs) != len(inputs):
            parser.raise_error(f"expected {len(pairs)} operand types, got {len(inputs)}", pos)
        operands = [parser.resolve_operand(value, type_) for (_, value), type_ in zip(pairs, inputs)]  # pyright: ignore
        before = parser.parse_region([arg.resolve(type_) for (arg, _), type_ in zip(pairs, inputs)])
        parser.parse_keyword("do")
        after = parser.parse_region()
        if not signature.outputs.data:
            _ensure_yield(after)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        return cls.create(
            operands=operands,
            result_types=signature.outputs.data,
            attributes=attributes.data if attributes else {},
            regions=[before, after],
        )

    def print(self, printer: Printer) -> None:
        if self.operands:
            super().print(printer)
            return
        printer.print_string(" : ")
        printer.print_operation_type(self)
        printer.print_string(" ")
        printer.print_region(self.before_region, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(self.after_region)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    def verify_(self) -> None:
        """Check that the operands match the arguments of the first region, and the results those of the second.

        xDSL's verifier indexes them without this check.
        """
        if len(self.regions) != 2 or any(len(region.blocks) != 1 for region in self.regions):
            blocks = ", ".join(str(len(region.blocks)) for region in self.regions) or "none"
            raise VerifyException(f"expected two regions of one block each, got block counts: {blocks}")
        before, after = self.before_region.block, self.after_region.block
        if [a.type for a in before.args] != list(self.operand_types):
            raise VerifyException(
                f"expected the arguments of the first region to have the operand types ({_words(self.operand_types)}), "
                f"got ({_words([a.type for a in before.args])})"
            )
        if [a.type for a in after.args] != list(self.result_types):
            raise VerifyException(
                f"expected the arguments of the second region to have the result types ({_words(self.result_types)}), "
                f"got ({_words([a.type for a in after.args])})"
            )
        super().verify_()


class IfOp(scf.IfOp):
    """`scf.if %c -> (T) { … scf.yield %a : T } else { … scf.yield %b : T }`"""

    def verify_(self) -> None:
        """Check, as upstream does, that an op with results has both regions and that both yield the result types."""
        super().verify_()
        wanted = list(self.result_types)
        for word, region in (("then", self.true_region), ("else", self.false_region)):
            last = region.blocks[-1].last_op if region.blocks else None
            if last is None and wanted:
                raise VerifyException(f"expected the {word} region to yield ({_words(wanted)}), got an empty region")
            got = [o.type for o in last.operands] if isinstance(last, scf.YieldOp) else wanted
            if last is not None and got != wanted:
                raise VerifyException(
                    f"expected the {word} region to yield the result types ({_words(wanted)}), got ({_words(got)})"
                )


class ExecuteRegionOp(scf.ExecuteRegionOp):
    """`scf.execute_region -> T [no_inline] { … }`"""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        types = _parse_types(parser)
        properties: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("no_inline") is not None:
            properties["no_inline"] = UnitAttr()
        region = parser.parse_region()
        return cls.create(
            result_types=types, properties=properties, attributes=parser.parse_optional_attr_dict(), regions=[region]
        )

    def print(self, printer: Printer) -> None:
        print_outputs(printer, self.result_types, None)
        if "no_inline" in self.properties:
            printer.print_string(" no_inline")
        printer.print_string(" ")
        printer.print_region(self.region, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        verify_without(self, ("no_inline",), scf.ExecuteRegionOp)


class IndexSwitchOp(scf.IndexSwitchOp):
    """`scf.index_switch %i -> T case 2 { … } default { … }`"""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        arg = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        attributes = parser.parse_optional_attr_dict()
        types = list[Attribute]()
        if parser.parse_optional_punctuation("->") is not None:
            types += parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        cases, regions = list[int](), list[Region]()
        while parser.parse_optional_keyword("case") is not None:
            cases.append(parser.parse_integer())
            regions.append(parser.parse_region())
        parser.parse_keyword("default")
        regions.insert(0, parser.parse_region())
        for region in regions:
            _ensure_yield(region)
        return cls.create(
            operands=[arg],
            result_types=types,
            properties={"cases": DenseArrayBase.from_list(IntegerType(64), cases)},
            attributes=attributes,
            regions=regions,
        )


OPS: tuple[type[Operation], ...] = (ForOp, WhileOp, IfOp, ExecuteRegionOp, IndexSwitchOp)


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
        from cute_dialect.upstream import arith_and_scf  # late: start-up

        ops |= {op.name.split(".", 1)[1]: op for op in arith_and_scf.OPS}
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
