"""The nvvm dialect of upstream MLIR. Ops and attributes are built by name or with the constructors below.

tid = nvvm.ThreadIdXOp()
nvvm.Barrier0Op()
nvvm.BarrierOp(id_, threads)
nvvm.LdmatrixOp(p, num=4, layout="row", shape=nvvm_attr("ld_st_matrix_shape", "m = 8, n = 8"), eltType="b16",
                result_types=[struct])
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from cute_dialect.upstream.attrs import attr, attrs
from cute_dialect.upstream.constraints import scalar_type
from cute_dialect.upstream.lazy import TableDialect
from cute_dialect.upstream.op import FormatOp, Operand, TableOp, make_ops, row_traits
from cute_dialect.upstream.spec import SEGMENTS, buildable_type
from cute_dialect.upstream.tables import OpRow

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


def nvvm_attr(mnemonic: str, text: str = "") -> Attribute:
    """Build an attribute of nvvm: `nvvm_attr("mma_layout", "row")` is `#nvvm.mma_layout<row>`.

    Raises ValueError if upstream has no such attribute.
    """
    return attr(f"nvvm.{mnemonic}", text)


class SRegOp(FormatOp):
    """Read of a special register without other operands: `nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32`"""

    def __init__(self, upper_bound: int | None = None) -> None:
        """Build the read. `upper_bound` states that the value is nonnegative and less than the bound."""
        bounds = None if upper_bound is None else attr("llvm.constant_range", f"i32, 0, {upper_bound}")
        extra: dict[str, Any] = {} if bounds is None else {"range": bounds}
        super().__init__(result_types=[buildable_type(self.spec().results[0].type_text or "i32")], **extra)


_REGISTERS = {
    "ThreadIdXOp": "tid.x",
    "ThreadIdYOp": "tid.y",
    "ThreadIdZOp": "tid.z",
    "BlockIdXOp": "ctaid.x",
    "BlockIdYOp": "ctaid.y",
    "BlockIdZOp": "ctaid.z",
    "BlockDimXOp": "ntid.x",
    "BlockDimYOp": "ntid.y",
    "BlockDimZOp": "ntid.z",
    "GridDimXOp": "nctaid.x",
    "GridDimYOp": "nctaid.y",
    "GridDimZOp": "nctaid.z",
    "LaneIdOp": "laneid",
    "ClusterIdXOp": "clusterid.x",
    "ClusterIdYOp": "clusterid.y",
    "ClusterIdZOp": "clusterid.z",
    "ClusterDimXOp": "nclusterid.x",
    "ClusterDimYOp": "nclusterid.y",
    "ClusterDimZOp": "nclusterid.z",
    "BlockInClusterIdXOp": "cluster.ctaid.x",
    "BlockInClusterIdYOp": "cluster.ctaid.y",
    "BlockInClusterIdZOp": "cluster.ctaid.z",
    "ClusterDimBlocksXOp": "cluster.nctaid.x",
    "ClusterDimBlocksYOp": "cluster.nctaid.y",
    "ClusterDimBlocksZOp": "cluster.nctaid.z",
    "ClusterRankOp": "cluster.ctarank",
    "ClusterSizeOp": "cluster.nctarank",
    "SmIdOp": "smid",
}
"""Op class -> special register that it reads."""


def _sreg(class_name: str) -> Callable[[OpRow], type[SRegOp]]:
    def make(row: OpRow) -> type[SRegOp]:
        body = {"name": f"nvvm.{row[0]}", "row": row, "dialect": "nvvm", "traits": row_traits(row[4])}
        return cast("type[SRegOp]", type(class_name, (SRegOp,), body | {"__module__": __name__}))

    return make


if TYPE_CHECKING:  # Built by `__getattr__`.

    class ThreadIdXOp(SRegOp): ...

    class LaneIdOp(SRegOp): ...

    class ClusterRankOp(SRegOp): ...

    class ClusterSizeOp(SRegOp): ...


class ShflSyncOp(FormatOp):
    """`nvvm.shfl.sync bfly %mask, %val, %offset, %clamp : f32 -> f32`; the clamp is 31 for bfly, down and idx, and 0
    for up.
    """

    name = "nvvm.shfl.sync"

    def __init__(
        self, mask: Operand, val: Operand, offset: Operand, clamp: Operand, kind: str, type: Attribute
    ) -> None:
        super().__init__(mask, val, offset, clamp, kind=kind, result_types=[type])


class InlinePtxOp(FormatOp):
    """`nvvm.inline_ptx "…" ro(%a : i32) -> i32`; results are write-only operands, `rw` are read-write operands."""

    name = "nvvm.inline_ptx"

    def __init__(
        self,
        ptx: str,
        ro: Operand = (),
        rw: Operand = (),
        predicate: Operand = None,
        results: tuple[Attribute, ...] = (),
    ) -> None:
        super().__init__(ro, rw, predicate, ptxCode=ptx, result_types=list(results))


OPS = make_ops(
    "nvvm",
    (ShflSyncOp, InlinePtxOp, MmaSyncOp),
    special={f"read.ptx.sreg.{register}": (cls, _sreg(cls)) for cls, register in _REGISTERS.items()},
)
"""All ops of the dialect by name without prefix: `OPS["cp.async.bulk.commit.group"]`."""

NVVM = TableDialect("nvvm", OPS, attrs("nvvm"))


def __getattr__(name: str) -> type[TableOp]:
    """Return the op class `name`, for example `nvvm.Barrier0Op`, `nvvm.WgmmaMmaAsyncOp` or `nvvm.MbarrierTryWaitOp`."""
    found = OPS.by_class(name)
    if found is not None:
        return found
    raise AttributeError(f"module 'nvvm' has no op class '{name}'")
