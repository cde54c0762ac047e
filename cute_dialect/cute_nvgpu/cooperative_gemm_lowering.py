"""``convert-cute-algo-to-arch`` lowering of ``cute.cooperative_gemm`` to partitions, fragments, copies and a gemm.

    cute.cooperative_gemm(%mma, %acc, %sA, %sB, %tid)
    →
    %a  = cute.memref.alloca() : fragment of A
    %la = cute.make_tiled_copy(ldmatrix) : thread-value layout of A
    cute.copy(%la, partition_S(%la, %sA, %tid), retile(%la, %a))
    …  the same for B
    cute.gemm(%mma, %acc, %a, %b, %acc)

These ops are then lowered in the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import cast

from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiled_mma import OPERAND_MODES
from cute_dialect.algebra.trees import shape_to_tile
from cute_dialect.cute_nvgpu.cooperative_gemm import PARTITIONS, CooperativeGemmOp, OperandPartition, cooperative_parts
from cute_dialect.cute_nvgpu.gemm import GemmOp
from cute_dialect.cute_nvgpu.instruction_copy import InstructionCopyType, LdsmType, MatrixCopy, check_copy
from cute_dialect.cute_nvgpu.tiled_mma import TiledMmaType
from cute_dialect.cute_nvgpu.wgmma import WgmmaCommitGroupOp, WgmmaFenceOp, WgmmaWaitGroupOp
from cute_dialect.dialect import memory, tiled
from cute_dialect.dialect.atom_types import TiledCopy, TiledCopyType, verify_tiled_copy
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.dialect.tile_copies import RetileOp
from cute_dialect.dialect.tiled import UniversalCopy, UniversalCopyType
from cute_dialect.passes.algo_to_arch import handler_of
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.spaces import AddressSpace


class _Steps:
    """Ops of the tiled layer that replace one op. They are lowered together."""

    def __init__(self, op: Operation):
        self.site = InsertionPoint(op)
        self._made: list[Operation] = []

    def add(self, op: Operation) -> Operation:
        self._made.append(self.site.add(op))
        return op

    def emit(self, op: Operation) -> SSAValue:
        return self.add(op).results[0]

    def lower(self) -> None:
        """Lower the added ops in order, and erase them."""
        lowered: list[Operation] = []
        for op in self._made:
            handler = handler_of(op.name)
            if handler is not None:
                handler(op)
                lowered.append(op)
        for op in reversed(lowered):
            op.detach()
            op.erase()

    def copy(self, source: SSAValue, destination: SSAValue) -> None:
        """Copy with the widest access that the types of both sides allow."""
        assert isinstance(source.type, MemRefType)
        atom = self.emit(tiled.AtomOp(UniversalCopyType(UniversalCopy(source.type.element, 0))))
        self.add(tiled.CopyOp(atom, source, destination))


def _matrix_copies(mma: TiledMmaType, operand: str, tile: MemRefType) -> Iterator[TiledCopyType]:
    """Yield the tiled copies that load an operand's fragments with ``ldmatrix``, largest first."""
    bits = element_bits(tile.element)
    if tile.space != AddressSpace.smem or bits not in (8, 16, 32):
        return
    tiler = shape_to_tile(tuple([mma.tiled.tile_size[i] for i in OPERAND_MODES[operand]]))
    tv = mma.tiled.layout_tv(operand, mma.atom.row.layout(operand))
    for matrices in (4, 2, 1):
        for transposed in (False, True) if bits == 16 else (False,):
            data = TiledCopy(LdsmType(MatrixCopy(tile.element, matrices, transposed)), tv, tiler)
            try:
                verify_tiled_copy(data)
            except AlgebraError:
                continue
            yield TiledCopyType(data)


def matrix_copy(
    mma: TiledMmaType, operand: str, types: tuple[MemRefType, MemRefType, Attribute]
) -> TiledCopyType | None:
    """Return the tiled copy that loads the fragments of a tile with ``ldmatrix``, or None if there is none.

    ``types`` are the types of the tile, the fragment and the thread index.
    """
    tile, fragment, tid = types
    for tc in _matrix_copies(mma, operand, tile):
        try:
            (source,) = tiled.PartitionSOp.infer_types([tc, tile, tid], {})
            (destination,) = RetileOp.infer_types([tc, fragment], {})
            check_copy(cast("InstructionCopyType", tc.data.atom), source, destination, None)
        except AlgebraError:
            continue
        return tc
    return None


def _operand(steps: _Steps, op: CooperativeGemmOp, operand: str, tile: SSAValue, part: OperandPartition) -> SSAValue:
    """Return operand A or B of the ``gemm``: a fragment loaded from the tile, or the partition in shared memory."""
    mma = op.mma.type
    assert isinstance(mma, TiledMmaType) and isinstance(tile.type, MemRefType)
    if mma.atom.in_shared_memory(operand):
        return steps.emit(PARTITIONS[operand](op.mma, tile, op.tid))
    fragment = steps.emit(memory.AllocaOp(part.fragment))
    tc = matrix_copy(mma, operand, (tile.type, part.fragment, op.tid.type))
    if tc is None:
        steps.copy(steps.emit(PARTITIONS[operand](op.mma, tile, op.tid)), fragment)
        return fragment
    load = steps.emit(tiled.MakeTiledCopyOp(steps.emit(tiled.AtomOp(tc.data.atom)), tc))
    source = steps.emit(tiled.PartitionSOp(load, tile, op.tid))
    steps.add(tiled.CopyOp(load, source, steps.emit(RetileOp(load, fragment))))
    return fragment


def _cooperative_gemm(op: Operation) -> None:
    assert isinstance(op, CooperativeGemmOp)
    parts = cooperative_parts(op.operand_types)
    steps = _Steps(op)
    mma = op.mma.type
    assert isinstance(mma, TiledMmaType)
    tile: SSAValue | None = None
    accumulators: SSAValue = op.c
    if parts["C"].tile is not None:
        tile = steps.emit(PARTITIONS["C"](op.mma, op.c, op.tid))
        accumulators = steps.emit(memory.AllocaOp(parts["C"].fragment))
        if op.accumulates:
            steps.copy(tile, accumulators)
    a = _operand(steps, op, "A", op.a, parts["A"])
    b = _operand(steps, op, "B", op.b, parts["B"])
    asynchronous = mma.atom.ASYNCHRONOUS
    if asynchronous:
        steps.add(WgmmaFenceOp(accumulators))
    steps.add(GemmOp(op.mma, accumulators, a, b, accumulators if op.accumulates else None))
    if asynchronous:
        steps.add(WgmmaCommitGroupOp())
        steps.add(WgmmaWaitGroupOp(accumulators))
    if tile is not None:
        steps.copy(accumulators, tile)
    steps.lower()


TO_ARCH: Mapping[str, Callable[[Operation], None]] = {"cute.cooperative_gemm": _cooperative_gemm}
"""Op name -> function that lowers it in place."""
