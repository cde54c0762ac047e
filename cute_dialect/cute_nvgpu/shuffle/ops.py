"""Shuffles of a warp as copies between registers."""

from __future__ import annotations

from xdsl.irdl import prop_def

from cute_dialect.cute_nvgpu.instruction_copy.ops import CopyInstructionOp
from cute_dialect.cute_nvgpu.shuffle.types import ShuffleType
from cute_dialect.dialect.base import cute_op, ops_of


@cute_op
class ShuffleOp(CopyInstructionOp):
    """Issues one warp shuffle that transposes 2x2 blocks, or broadcasts the value of lane 0.

    Syntax: ``cute_nvgpu.arch.shuffle(%from, %to) {atom = ATOM} : (R, R) -> ()``

    Example:
        cute_nvgpu.arch.shuffle(%r, %f) {atom = !cute_nvgpu.atom.shuffle<val_type = f32, transpose = 4>} : (!cute.memref<f32, rmem, "2:1">, !cute.memref<f32, rmem, "2:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.shuffle"
    atom = prop_def(ShuffleType)


OPS = ops_of(__name__)
