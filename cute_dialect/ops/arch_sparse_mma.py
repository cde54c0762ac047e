"""Matrix instructions whose A is sparse, ``cute_nvgpu.arch.*``: one op an instruction, over one atom's values."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, i1
from xdsl.ir import Operation
from xdsl.irdl import operand_def, opt_operand_def, prop_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from cute_dialect.memory_types import MemRefType
from cute_dialect.nvgpu_mma_types import MmaAtomType, MmaSpType, WgmmaSpType
from cute_dialect.ops.arch_mma import ProductOp, check_scale_d
from cute_dialect.ops.base import cute_op


@cute_op
class MmaSpOp(ProductOp):
    """``mma.sp::ordered_metadata`` of a warp: A holds the kept half of its rows, E the words that say which half.

    Syntax: ``cute_nvgpu.arch.mma_sp(%D, %A, %B, %C, %E) {atom = ATOM} : (D, A, B, C, E) -> ()``

    Views hold what one thread has of one atom.  E is one register: a word of i32, or two of i16, the first lowest.

    Example:
        cute_nvgpu.arch.mma_sp(%d, %a, %b, %d, %e) {atom = !cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32)>} : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.memref<f16, rmem, align<16>, "(2,2,2):(1,2,4)">, !cute.memref<f16, rmem, align<16>, "(2,4):(1,2)">, !cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.memref<i16, rmem, align<4>, "2:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.mma_sp"
    ATOM: ClassVar[type[MmaAtomType]] = MmaSpType
    OPERANDS: ClassVar[str] = "DABCE"
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = operand_def(MemRefType)
    e = operand_def(MemRefType)
    atom = prop_def(MmaSpType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@cute_op
class WgmmaSpOp(ProductOp):
    """``wgmma.mma_async.sp`` of a warp group: ``D = A * B + D`` if it accumulates, else ``D = A * B``, A being sparse.

    Syntax: ``cute_nvgpu.arch.wgmma_sp(%D, %A, %B, %E [, %scale_d]) {accumulate = true, atom = ATOM} : (D, A, B, E [, i1]) -> ()``

    As ``cute_nvgpu.arch.wgmma``, fence, commit and wait included.  A is the kept half, 32 bytes of each row; B, in shared
    memory, 64 bytes deep behind one matrix descriptor; E one register, as that of ``cute_nvgpu.arch.mma_sp``.

    Example:
        cute_nvgpu.arch.wgmma_sp(%d, %a, %b, %e) {accumulate = false, atom = !cute_nvgpu.atom.wgmma_sp<64x8x32, (f32,f16,f16,f32), A = smem, major = (k, k)>} : (!cute.memref<f32, rmem, align<16>, "(2,2,1):(1,2,0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(8,32):(64,1)">, !cute.memref<i16, rmem, align<4>, "2:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.wgmma_sp"
    ATOM: ClassVar[type[MmaAtomType]] = WgmmaSpType
    OPERANDS: ClassVar[str] = "DABE"
    FLAGS: ClassVar[int] = 1
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    e = operand_def(MemRefType)
    scale_d = opt_operand_def(i1)
    atom = prop_def(WgmmaSpType)
    accumulate = prop_def(BoolAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def check_types(self) -> None:
        """Raise AlgebraError unless atom, flags and operands fit."""
        super().check_types()
        check_scale_d(self)


OPS: list[type[Operation]] = [MmaSpOp, WgmmaSpOp]
"""Ops of ``cute_nvgpu``."""

CUTE_OPS: list[type[Operation]] = []
"""Ops of ``cute``."""
