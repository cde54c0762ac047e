"""The nvvm dialect of upstream MLIR. Ops and attributes are built by name or with the constructors below.

tid = nvvm.ThreadIdXOp()
nvvm.Barrier0Op()
nvvm.BarrierOp(id_, threads)
nvvm.LdmatrixOp(p, num=4, layout="row", shape=nvvm_attr("ld_st_matrix_shape", "m = 8, n = 8"), eltType="b16",
                result_types=[struct])
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from xdsl.ir import Attribute

from cute_dialect.upstream.attrs import attr, attrs
from cute_dialect.upstream.lazy import TableDialect
from cute_dialect.upstream.nvvm_mma import MmaSyncOp
from cute_dialect.upstream.op import FormatOp, Operand, TableOp, make_ops, row_traits
from cute_dialect.upstream.tables import OpRow


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
        from cute_dialect.upstream.spec import buildable_type

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
