"""Ops of scf that xDSL spells differently from upstream, as subclasses of xDSL's: `scf.for unsigned`, `scf.while : ()
-> ()` …

Properties that xDSL's definition lacks (`unsignedCmp`, `no_inline`) are stored and printed, but hidden from xDSL's
verifier.
"""

from collections.abc import Sequence
from typing import Self

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerType, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.upstream.attrs import at_punctuation
from cute_dialect.upstream.signature import print_outputs


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
