"""``cute-to-base`` of copy instructions."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import StringAttr, i16, i32, i64
from xdsl.ir import Operation, SSAValue

from cute_dialect.ir.editing import make_op
from cute_dialect.memory_types import MemRefType
from cute_dialect.nvgpu_bulk_types import BulkCopy, BulkReduceType
from cute_dialect.nvgpu_copy_types import InstructionCopyType, MatrixCopyType, ShuffleType, SimtAsyncCopyType
from cute_dialect.ops.arch_copy import run_bytes
from cute_dialect.passes.lowering.packed import read_packed, write_packed
from cute_dialect.passes.lowering.types import pointer, struct
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream import llvm
from cute_dialect.upstream.llvm_types import LLVMPointerType
from cute_dialect.upstream.nvvm import OPS, InlinePtxOp, LaneIdOp, ShflSyncOp, nvvm_attr


def _atom(op: Operation) -> InstructionCopyType:
    atom = op.properties["atom"]
    assert isinstance(atom, InstructionCopyType)
    return atom


def memory_address(low: Lowering, tensor: SSAValue) -> SSAValue:
    """The address of the first element of a tensor in memory, swizzled."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    base = low.build.part(low.value(tensor), (0,), pointer(t.space))
    return low.swizzled(base, t.data.ptr.swizzle)


def _cp_async(low: Lowering, op: Operation) -> None:
    atom = _atom(op)
    assert isinstance(atom, SimtAsyncCopyType)
    source, destination = memory_address(low, op.operands[0]), memory_address(low, op.operands[1])
    size = atom.data.bits // 8
    read: SSAValue | None = None
    if len(op.operands) == 3:
        # Bytes that are read; the rest of the destination becomes 0.
        flag = low.value(op.operands[2])
        whole, none = low.build.constant(size, i32), low.build.constant(0, i32)
        read = low.build.once(("bytes", flag, size), lambda: arith.SelectOp(flag, whole, none))
    cache = nvvm_attr("load_cache_modifier", "ca" if atom.data.cache == "always" else "cg")
    low.build.add(OPS["cp.async.shared.global"](destination, source, read, size=size, modifier=cache))


def _matrix_attributes(atom: MatrixCopyType) -> dict[str, object]:
    return {
        "layout": nvvm_attr("mma_layout", "col" if atom.data.transposed else "row"),
        "shape": nvvm_attr("ld_st_matrix_shape", "m = 8, n = 8"),
        "eltType": nvvm_attr("ld_st_matrix_elt_type", "b16"),
    }


def _ldmatrix(low: Lowering, op: Operation) -> None:
    atom = _atom(op)
    assert isinstance(atom, MatrixCopyType)
    address = memory_address(low, op.operands[0])
    n = atom.data.matrices
    result = i32 if n == 1 else struct([i32] * n)
    loaded = low.build.emit(
        OPS["ldmatrix"](address, num=n, result_types=[result], **_matrix_attributes(atom))  # type: ignore[arg-type]
    )
    registers = [loaded] if n == 1 else [low.build.extract(loaded, (i,), i32) for i in range(n)]
    write_packed(low, op.operands[1], registers)


def _stmatrix(low: Lowering, op: Operation) -> None:
    atom = _atom(op)
    assert isinstance(atom, MatrixCopyType)
    registers = read_packed(low, op.operands[0])
    address = memory_address(low, op.operands[1])
    low.build.add(OPS["stmatrix"](address, registers, **_matrix_attributes(atom)))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ register to register


def _movmatrix(low: Lowering, op: Operation) -> None:
    (register,) = read_packed(low, op.operands[0])
    moved = InlinePtxOp("movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", [register], results=(i32,))
    write_packed(low, op.operands[1], [low.build.emit(moved)])


def _shuffle(low: Lowering, op: Operation) -> None:
    atom = _atom(op)
    assert isinstance(atom, ShuffleType)
    build = low.build
    held = read_packed(low, op.operands[0])
    everyone, clamp = build.constant(-1, i32), build.constant(31, i32)
    distance = atom.data.transpose
    if distance == 0:
        zero = build.constant(0, i32)
        results = [build.emit(ShflSyncOp(everyone, held[0], zero, clamp, "idx", i32))]
    else:
        # A lane that has the bit sends the value that its partner keeps, and keeps the other.
        lane = build.once("lane", lambda: LaneIdOp())
        n, zero = build.constant(distance, i32), build.constant(0, i32)
        bit = build.once(("and", lane, n), lambda: arith.AndIOp(lane, n))
        has = build.once(("has", bit), lambda: arith.CmpiOp(bit, zero, "ne"))
        first, second = held
        sent = build.emit(arith.SelectOp(has, first, second))
        got = build.emit(ShflSyncOp(everyone, sent, n, clamp, "bfly", i32))
        results = [build.emit(arith.SelectOp(has, got, first)), build.emit(arith.SelectOp(has, second, got))]
    write_packed(low, op.operands[1], results)


# ------------------------------------------------------------------------------------------------------ runs and caches


def _cluster_address(low: Lowering, address: SSAValue) -> SSAValue:
    """The address as one of the cluster's shared memory, of which the block's own is a part."""
    cluster = LLVMPointerType(7)
    if address.type == cluster:
        return address
    return low.build.once(
        ("shared::cluster", address),
        lambda: make_op(llvm.OPS["addrspacecast"], [address], [cluster]),
    )


def _bulk_copy(low: Lowering, op: Operation) -> None:
    source, destination = (memory_address(low, o) for o in op.operands[:2])
    t, to = op.operands[0].type, op.operands[1].type
    assert isinstance(t, MemRefType) and isinstance(to, MemRefType)
    size = low.build.constant(run_bytes(t, "source", (t.space,)), i32)
    rest = [low.value(o) for o in op.operands[2:]]
    hint = next((v for v in rest if v.type == i64), None)
    if to.space == "gmem":
        low.build.add(OPS["cp.async.bulk.global.shared.cta"](destination, source, size, hint, None))
        return
    if t.space == "gmem":
        mask = next((v for v in rest if v.type == i16), None)
        made = OPS["cp.async.bulk.shared.cluster.global"]
        low.build.add(made(_cluster_address(low, destination), source, rest[0], size, mask, hint))
        return
    made = OPS["cp.async.bulk.shared.cluster.shared.cta"]
    low.build.add(made(_cluster_address(low, destination), source, rest[0], size))


def _bulk_reduce(low: Lowering, op: Operation) -> None:
    """nvvm has the reductions of boxes only, so inline PTX."""
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
    size = low.build.constant(run_bytes(t, "tensor", ("gmem",)), i32)
    low.build.add(OPS["cp.async.bulk.prefetch"](memory_address(low, op.operands[0]), size))


def _prefetch(low: Lowering, op: Operation) -> None:
    level = op.properties["level"]
    assert isinstance(level, StringAttr)
    cache = nvvm_attr("prefetch_cache_level", level.data)
    low.build.add(OPS["prefetch"](memory_address(low, op.operands[0]), cacheLevel=cache))


HANDLERS: Mapping[str, Handler] = {
    "cute_nvgpu.arch.cp_async": _cp_async,
    "cute_nvgpu.arch.ldmatrix": _ldmatrix,
    "cute_nvgpu.arch.stmatrix": _stmatrix,
    "cute_nvgpu.arch.movmatrix": _movmatrix,
    "cute_nvgpu.arch.shuffle": _shuffle,
    "cute_nvgpu.arch.bulk_copy": _bulk_copy,
    "cute_nvgpu.arch.bulk_reduce": _bulk_reduce,
    "cute_nvgpu.arch.bulk_prefetch": _bulk_prefetch,
    "cute_nvgpu.arch.prefetch": _prefetch,
}
"""Op name -> how it is lowered."""
