"""The op nvvm.mma.sync, whose text upstream parses in C++."""

from collections.abc import Sequence
from typing import Self, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from cute_dialect.upstream.attrs import attr
from cute_dialect.upstream.op import SEGMENTS, TableOp
from cute_dialect.upstream.typed import scalar_type

_I32 = IntegerType(32)


class MmaSyncOp(TableOp):
    """`nvvm.mma.sync A[%a0, …] B[%b0, …] C[%c0, …] {layoutA = …, shape = …} : (vector<2xf16>, vector<2xf16>, f32) -> S`

    The types are those of one value of A, B and C; S is a struct of the accumulators. `multiplicandAPtxType` and
    `multiplicandBPtxType` are optional if the element type determines the PTX type (f16, f64); they are then filled in,
    as in upstream.
    """

    name = "nvvm.mma.sync"

    def __init__(
        self,
        a: Sequence[SSAValue],
        b: Sequence[SSAValue],
        c: Sequence[SSAValue],
        result_type: Attribute,
        *,
        shape: tuple[int, int, int],
        layout_a: str = "row",
        layout_b: str = "col",
        ptx_type_a: str | None = None,
        ptx_type_b: str | None = None,
        overflow: str | None = None,
        b1_op: str | None = None,
    ) -> None:
        """Build an MMA of fragments. PTX types are passed by name (`bf16`, `s8` …)."""
        super().__init__(
            a, b, c, shape=attr("nvvm.shape", f"m = {shape[0]}, n = {shape[1]}, k = {shape[2]}"),
            layoutA=layout_a, layoutB=layout_b, multiplicandAPtxType=ptx_type_a or _ptx_type(a[0].type),
            multiplicandBPtxType=ptx_type_b or _ptx_type(b[0].type), intOverflowBehavior=overflow, b1Op=b1_op,
            result_types=[result_type],
        )  # fmt: skip

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        values: list[list[UnresolvedOperand]] = []
        for word in "ABC":
            parser.parse_keyword(word)
            values.append(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        signature = parser.parse_function_type()
        if len(signature.inputs) != 3:
            parser.raise_error(f"expected the types of A, B and C, got {len(signature.inputs)} types", pos)
        operands: list[SSAValue] = []
        for group, type_ in zip(values, signature.inputs):
            operands += [parser.resolve_operand(value, type_) for value in group]
        for key, type_ in zip(("multiplicandAPtxType", "multiplicandBPtxType"), signature.inputs):
            if key not in attributes and (known := _ptx_type(type_)) is not None:
                attributes[key] = attr("nvvm.mma_type", known)
        segments = DenseArrayBase.from_list(_I32, [len(group) for group in values])
        return cls.create(
            operands=operands,
            result_types=signature.outputs.data,
            properties={SEGMENTS[0]: segments},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        sizes = cast("Sequence[int]", self.segments(SEGMENTS[0]))
        start = 0
        types: list[Attribute] = []
        for word, size in zip("ABC", sizes):
            group = self.operands[start : start + size]
            start += size
            printer.print_string(f" {word}[")
            printer.print_list(group, printer.print_ssa_value)
            printer.print_string("]")
            types.append(group[0].type)
        hidden = {SEGMENTS[0]}
        for key, type_ in zip(("multiplicandAPtxType", "multiplicandBPtxType"), types):
            known = _ptx_type(type_)
            if known is not None and self.properties.get(key) == attr("nvvm.mma_type", known):
                hidden.add(key)
        shown = {k: v for k, v in sorted(self.properties.items()) if k not in hidden}
        printer.print_op_attributes(shown | self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(types, self.result_types)


def _ptx_type(type_: Attribute) -> str | None:
    """Return the PTX type of an operand type, or None if it is ambiguous. Only f16 and f64 are unambiguous."""
    return {"f16": "f16", "f64": "f64"}.get(str(scalar_type(type_)))
