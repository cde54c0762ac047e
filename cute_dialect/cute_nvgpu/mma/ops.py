"""Matrix instructions of one thread and of one warp: ``fma``, ``dp4a``, ``mma.sync``."""

from __future__ import annotations

from xdsl.irdl import operand_def, prop_def

from cute_dialect.cute_nvgpu.mma.types import DotProductType, MmaSyncType, UniversalFmaType
from cute_dialect.cute_nvgpu.tiled_mma.instruction import MmaInstructionOp
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType


class _SeparateAccumulatorOp(MmaInstructionOp):
    """Instruction ``(%D, %A, %B, %C)`` whose result D and accumulator C are separate operands."""

    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = operand_def(MemRefType)


@cute_op
class FmaOp(_SeparateAccumulatorOp):
    """Issues one multiply-add per thread.

    Syntax: ``cute_nvgpu.arch.fma(%D, %A, %B, %C) {atom = ATOM} : (D, A, B, C) -> ()``

    Example:
        cute_nvgpu.arch.fma(%d, %a, %b, %d) {atom = !cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32)>} : (!cute.memref<f32, rmem, "1:0">, !cute.memref<f32, rmem, "1:0">, !cute.memref<f32, rmem, "1:0">, !cute.memref<f32, rmem, "1:0">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.fma"
    atom = prop_def(UniversalFmaType)


@cute_op
class DotProductOp(_SeparateAccumulatorOp):
    """Issues one ``dp4a`` or ``dp2a`` per thread.

    Syntax: ``cute_nvgpu.arch.dot_product(%D, %A, %B, %C) {atom = ATOM} : (D, A, B, C) -> ()``
    """

    name = "cute_nvgpu.arch.dot_product"
    atom = prop_def(DotProductType)


@cute_op
class MmaSyncOp(_SeparateAccumulatorOp):
    """Issues one ``mma.sync`` per warp. Each operand is a view of one thread's values of one atom, in the order of the
    atom.

    Syntax: ``cute_nvgpu.arch.mma_sync(%D, %A, %B, %C) {atom = ATOM} : (D, A, B, C) -> ()``

    Example:
        cute_nvgpu.arch.mma_sync(%d, %a, %b, %d) {atom = !cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>} : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.memref<f16, rmem, align<16>, "(2,2,2):(1,2,4)">, !cute.memref<f16, rmem, align<8>, "(2,2):(1,2)">, !cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.mma_sync"
    atom = prop_def(MmaSyncType)


OPS = ops_of(__name__)
