"""Copies that are one machine instruction: one op per instruction, on views of a thread's values."""

from __future__ import annotations

import math
from typing import ClassVar

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import ComposedLayout, raw_layout
from cute_dialect.cute_nvgpu.instruction_copy.checks import check_copy
from cute_dialect.cute_nvgpu.instruction_copy.types import (
    InstructionCopyType,
    LdsmType,
    MovmType,
    ShuffleType,
    SimtAsyncCopyType,
    StsmType,
)
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.views import InstructionOp, expect, expect_operands
from cute_dialect.ir.editing import fill_op


class CopyInstructionOp(InstructionOp):
    """One instruction of a copy atom. Both sides hold exactly the values of one thread in one instruction."""

    MOST: ClassVar[int] = 2
    """Maximum number of operands: 3 if the instruction accepts a predicate, otherwise 2."""
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)

    def __init__(self, atom: CopyAtomType, source: SSAValue, destination: SSAValue, *rest: SSAValue):
        fill_op(self, [source, destination, *rest], properties={"atom": atom})

    def verify_(self) -> None:
        try:
            types = self.operand_types
            expect_operands(types, 2, self.MOST)
            atom = self.properties["atom"]
            assert isinstance(atom, InstructionCopyType)
            for i, t in enumerate(types[:2]):
                expect(t, MemRefType, i, "a !cute.memref")
            source, destination = check_copy(atom, _as_values(types[0]), _as_values(types[1]), None)
            for what, side in (("source", source), ("destination", destination)):
                if any(n != 1 for n in side.counts):
                    raise AlgebraError(
                        f"the {what} must hold the values of exactly one instruction, "
                        f"got those of {math.prod(side.counts)}"
                    )
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None


def _as_values(t: Attribute) -> Attribute:
    """Return the tensor type with all modes grouped into one mode of values."""
    assert isinstance(t, MemRefType)
    layout = t.layout
    if isinstance(layout, ComposedLayout) or not isinstance(layout.shape, tuple):
        return t
    assert isinstance(layout.stride, tuple)
    return t.with_layout(raw_layout((layout.shape,), (layout.stride,)))


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
