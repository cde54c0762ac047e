"""The instruction ``cp.async``."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import i1
from xdsl.irdl import operand_def, opt_operand_def, prop_def

from cute_dialect.cute_nvgpu.cp_async.types import SimtAsyncCopyType
from cute_dialect.cute_nvgpu.instruction_copy.ops import CopyInstructionOp
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType


@cute_op
class CpAsyncOp(CopyInstructionOp):
    """Issues one ``cp.async``. If the optional predicate is false, the source is not read and the destination is
    zero-filled.

    Syntax: ``cute_nvgpu.arch.cp_async(%gmem, %smem [, %pred]) {atom = ATOM} : (G, S [, i1]) -> ()``

    Example:
        cute_nvgpu.arch.cp_async(%g, %s) {atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>} : (!cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.cp_async"
    MOST: ClassVar[int] = 3
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    pred = opt_operand_def(i1)
    atom = prop_def(SimtAsyncCopyType)


OPS = ops_of(__name__)
