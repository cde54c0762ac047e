"""The nvvm dialect as upstream MLIR has it: every op and attribute, built by name or with the constructors below.

tid = nvvm.ThreadIdXOp()
nvvm.Barrier0Op()
nvvm.BarrierOp(id_, threads)
nvvm.LdmatrixOp(p, num=4, layout="row", shape=nvvm_attr("ld_st_matrix_shape", "m = 8, n = 8"), eltType="b16",
                result_types=[struct])
"""

from typing import Any, cast

from xdsl.ir import Attribute, Dialect

from cute_dialect.upstream.attrs import attr, attrs
from cute_dialect.upstream.nvvm_mma import MmaSyncOp
from cute_dialect.upstream.op import FormatOp, Operand, TableOp, make_ops


def nvvm_attr(mnemonic: str, text: str = "") -> Attribute:
    """`nvvm_attr("mma_layout", "row")` is `#nvvm.mma_layout<row>`. Raises ValueError for one that upstream does not
    have.
    """
    return attr(f"nvvm.{mnemonic}", text)


class SRegOp(FormatOp):
    """A read of a special register that has no other operand: `nvvm.read.ptx.sreg.tid.x range <i32, 0, 1024> : i32`"""

    def __init__(self, upper_bound: int | None = None) -> None:
        """`upper_bound`, when given, states that the value is below it (and not negative)."""
        bounds = None if upper_bound is None else attr("llvm.constant_range", f"i32, 0, {upper_bound}")
        from cute_dialect.upstream.spec import buildable_type

        extra: dict[str, Any] = {} if bounds is None else {"range": bounds}
        super().__init__(result_types=[buildable_type(self.spec().results[0].type_text or "i32")], **extra)


def _sreg(class_name: str, register: str) -> type[SRegOp]:
    return cast(
        "type[SRegOp]", type(class_name, (SRegOp,), {"name": f"nvvm.read.ptx.sreg.{register}", "__module__": __name__})
    )


ThreadIdXOp = _sreg("ThreadIdXOp", "tid.x")
ThreadIdYOp = _sreg("ThreadIdYOp", "tid.y")
ThreadIdZOp = _sreg("ThreadIdZOp", "tid.z")
BlockIdXOp = _sreg("BlockIdXOp", "ctaid.x")
BlockIdYOp = _sreg("BlockIdYOp", "ctaid.y")
BlockIdZOp = _sreg("BlockIdZOp", "ctaid.z")
BlockDimXOp = _sreg("BlockDimXOp", "ntid.x")
BlockDimYOp = _sreg("BlockDimYOp", "ntid.y")
BlockDimZOp = _sreg("BlockDimZOp", "ntid.z")
GridDimXOp = _sreg("GridDimXOp", "nctaid.x")
GridDimYOp = _sreg("GridDimYOp", "nctaid.y")
GridDimZOp = _sreg("GridDimZOp", "nctaid.z")
LaneIdOp = _sreg("LaneIdOp", "laneid")
ClusterIdXOp = _sreg("ClusterIdXOp", "clusterid.x")
ClusterIdYOp = _sreg("ClusterIdYOp", "clusterid.y")
ClusterIdZOp = _sreg("ClusterIdZOp", "clusterid.z")
ClusterDimXOp = _sreg("ClusterDimXOp", "nclusterid.x")
ClusterDimYOp = _sreg("ClusterDimYOp", "nclusterid.y")
ClusterDimZOp = _sreg("ClusterDimZOp", "nclusterid.z")
BlockInClusterIdXOp = _sreg("BlockInClusterIdXOp", "cluster.ctaid.x")
BlockInClusterIdYOp = _sreg("BlockInClusterIdYOp", "cluster.ctaid.y")
BlockInClusterIdZOp = _sreg("BlockInClusterIdZOp", "cluster.ctaid.z")
ClusterDimBlocksXOp = _sreg("ClusterDimBlocksXOp", "cluster.nctaid.x")
ClusterDimBlocksYOp = _sreg("ClusterDimBlocksYOp", "cluster.nctaid.y")
ClusterDimBlocksZOp = _sreg("ClusterDimBlocksZOp", "cluster.nctaid.z")
ClusterRankOp = _sreg("ClusterRankOp", "cluster.ctarank")
ClusterSizeOp = _sreg("ClusterSizeOp", "cluster.nctarank")
SmIdOp = _sreg("SmIdOp", "smid")


class ShflSyncOp(FormatOp):
    """`nvvm.shfl.sync bfly %mask, %val, %offset, %clamp : f32 -> f32`; clamp 31 for bfly, down and idx, 0 for up."""

    name = "nvvm.shfl.sync"

    def __init__(
        self, mask: Operand, val: Operand, offset: Operand, clamp: Operand, kind: str, type: Attribute
    ) -> None:
        super().__init__(mask, val, offset, clamp, kind=kind, result_types=[type])


class InlinePtxOp(FormatOp):
    """`nvvm.inline_ptx "…" ro(%a : i32) -> i32`; results are written, `rw` is read and written."""

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


_SREGS = tuple(v for v in list(globals().values()) if isinstance(v, type) and issubclass(v, SRegOp) and v is not SRegOp)
OPS = cast("dict[str, type[TableOp]]", make_ops("nvvm", (*_SREGS, ShflSyncOp, InlinePtxOp, MmaSyncOp)))
"""Every op of the dialect by name without prefix: `OPS["cp.async.bulk.commit.group"]`."""

_BY_CLASS = {cls.__name__: cls for cls in OPS.values()}
NVVM = Dialect("nvvm", list(OPS.values()), list(attrs("nvvm").values()))


def __getattr__(name: str) -> type[TableOp]:
    """The op class `name`, e.g. `nvvm.Barrier0Op`, `nvvm.WgmmaMmaAsyncOp`, `nvvm.MbarrierTryWaitOp`."""
    if name in _BY_CLASS:
        return _BY_CLASS[name]
    raise AttributeError(f"module 'nvvm' has no op class '{name}'")
