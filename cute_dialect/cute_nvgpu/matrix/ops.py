"""Matrix copy instructions ``cute_nvgpu.arch.*``: one op per instruction, on views of a thread's values."""

from __future__ import annotations

from xdsl.irdl import prop_def

from cute_dialect.cute_nvgpu.instruction_copy.ops import CopyInstructionOp
from cute_dialect.cute_nvgpu.matrix.types import LdsmType, MovmType, StsmType
from cute_dialect.dialect.base import cute_op, ops_of


@cute_op
class LdmatrixOp(CopyInstructionOp):
    """Issues one ``ldmatrix``. ``%smem`` is the row whose address this thread passes, ``%rmem`` its result registers.

    Syntax: ``cute_nvgpu.arch.ldmatrix(%smem, %rmem) {atom = ATOM} : (S, R) -> ()``

    Example:
        cute_nvgpu.arch.ldmatrix(%s, %r) {atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>} : (!cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<f16, rmem, "(2,4):(1,2)">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.ldmatrix"
    atom = prop_def(LdsmType)


@cute_op
class StmatrixOp(CopyInstructionOp):
    """Issues one ``stmatrix`` (sm_90). ``%smem`` is the row whose address this thread passes, ``%rmem`` its source
    registers.

    Syntax: ``cute_nvgpu.arch.stmatrix(%rmem, %smem) {atom = ATOM} : (R, S) -> ()``

    Example:
        cute_nvgpu.arch.stmatrix(%r, %s) {atom = !cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 2, t>} : (!cute.memref<f16, rmem, "4:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.stmatrix"
    WRITES = "none"
    atom = prop_def(StsmType)


@cute_op
class MovmatrixOp(CopyInstructionOp):
    """Issues one ``movmatrix``, which transposes the 8x8 matrix in the registers of a warp.

    Syntax: ``cute_nvgpu.arch.movmatrix(%from, %to) {atom = ATOM} : (R, R) -> ()``

    Example:
        cute_nvgpu.arch.movmatrix(%r, %f) {atom = !cute_nvgpu.atom.movm<val_type = f16>} : (!cute.memref<f16, rmem, "2:1">, !cute.memref<f16, rmem, "2:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.movmatrix"
    atom = prop_def(MovmType)


OPS = ops_of(__name__)
