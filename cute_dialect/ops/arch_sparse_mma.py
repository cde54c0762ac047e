"""Matrix instructions whose A is sparse, ``cute_nvgpu.arch.*``: one op an instruction, over one atom's values."""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import Operation
from xdsl.irdl import operand_def, prop_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from cute_dialect.memory_types import MemRefType
from cute_dialect.nvgpu_mma_types import MmaAtomType, MmaSpType
from cute_dialect.ops.arch_mma import ProductOp
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


OPS: list[type[Operation]] = [MmaSpOp]
"""Ops of ``cute_nvgpu``."""

CUTE_OPS: list[type[Operation]] = []
"""Ops of ``cute``."""
