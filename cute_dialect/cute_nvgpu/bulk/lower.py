"""``cute-to-base`` lowering of bulk copies, bulk reductions and prefetches."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import StringAttr, i16, i32, i64
from xdsl.ir import Operation, SSAValue

from cute_dialect.cute_nvgpu.bulk.ops import run_bytes
from cute_dialect.cute_nvgpu.bulk.types import BulkCopy, BulkReduceType
from cute_dialect.cute_nvgpu.instruction_copy.lower import memory_address
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.types import pointer
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm
from cute_dialect.upstream.nvvm import OPS, InlinePtxOp, nvvm_attr


def _cluster_address(low: Lowering, address: SSAValue) -> SSAValue:
    """Convert an address in the block's own shared memory to an address in the shared memory of the cluster."""
    cluster = pointer(AddressSpace.dsmem)
    if address.type == cluster:
        return address
    return low.build.once(
        ("shared::cluster", address), lambda: make_op(llvm.OPS["addrspacecast"], [address], [cluster])
    )


def _bulk_copy(low: Lowering, op: Operation) -> None:
    source, destination = (memory_address(low, o) for o in op.operands[:2])
    t, to = op.operands[0].type, op.operands[1].type
    assert isinstance(t, MemRefType) and isinstance(to, MemRefType)
    size = low.build.constant(run_bytes(t, "source", (t.space,)), i32)
    rest = [low.value(o) for o in op.operands[2:]]
    hint = next((v for v in rest if v.type == i64), None)
    if to.space == AddressSpace.gmem:
        low.build.add(OPS["cp.async.bulk.global.shared.cta"](destination, source, size, hint, None))
        return
    if t.space == AddressSpace.gmem:
        mask = next((v for v in rest if v.type == i16), None)
        made = OPS["cp.async.bulk.shared.cluster.global"]
        low.build.add(made(_cluster_address(low, destination), source, rest[0], size, mask, hint))
        return
    made = OPS["cp.async.bulk.shared.cluster.shared.cta"]
    low.build.add(made(_cluster_address(low, destination), source, rest[0], size))


def _bulk_reduce(low: Lowering, op: Operation) -> None:
    """Lower to inline PTX, because nvvm has bulk reductions of TMA boxes only."""
    t, word = op.operands[0].type, op.properties["reduction"]
    assert isinstance(t, MemRefType) and isinstance(word, StringAttr)
    source, destination = (memory_address(low, o) for o in op.operands[:2])
    size = low.build.constant(run_bytes(t, "source", (t.space,)), i32)
    row = BulkReduceType(BulkCopy(t.element, 0, word.data)).row()
    hint = [low.value(o) for o in op.operands[2:]]
    text = row.ptx.replace("$d", "$0").replace("$a", "$1").replace("$size", "$2")
    if hint:
        text = text.replace(".bulk_group.", ".bulk_group.L2::cache_hint.").replace("$2;", "$2, $3;")
    low.build.add(InlinePtxOp(text, [destination, source, size, *hint]))


def _bulk_prefetch(low: Lowering, op: Operation) -> None:
    t = op.operands[0].type
    size = low.build.constant(run_bytes(t, "tensor", (AddressSpace.gmem,)), i32)
    low.build.add(OPS["cp.async.bulk.prefetch"](memory_address(low, op.operands[0]), size))


def _prefetch(low: Lowering, op: Operation) -> None:
    level = op.properties["level"]
    assert isinstance(level, StringAttr)
    cache = nvvm_attr("prefetch_cache_level", level.data)
    low.build.add(OPS["prefetch"](memory_address(low, op.operands[0]), cacheLevel=cache))


HANDLERS: Mapping[str, Handler] = {
    "cute_nvgpu.arch.bulk_copy": _bulk_copy,
    "cute_nvgpu.arch.bulk_reduce": _bulk_reduce,
    "cute_nvgpu.arch.bulk_prefetch": _bulk_prefetch,
    "cute_nvgpu.arch.prefetch": _prefetch,
}
"""Op name -> lowering function."""
