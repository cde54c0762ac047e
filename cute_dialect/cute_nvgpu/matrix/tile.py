"""``convert-cute-algo-to-arch`` of copies of matrices by a warp."""

from __future__ import annotations

from cute_dialect.cute_nvgpu.instruction_copy.ops import CopyInstructionOp
from cute_dialect.cute_nvgpu.instruction_copy.tile import copy_by
from cute_dialect.cute_nvgpu.matrix.ops import LdmatrixOp, MovmatrixOp, StmatrixOp
from cute_dialect.cute_nvgpu.matrix.types import LdsmType, StsmType
from cute_dialect.memory_types import CopyAtomType
from cute_dialect.ops.tiled import CopyOp


def copy(op: CopyOp, atom: CopyAtomType) -> None:
    """Lower a ``cute.copy`` by ``ldmatrix``, ``stmatrix`` or ``movmatrix``: one op an instruction."""
    make: type[CopyInstructionOp] = MovmatrixOp
    if isinstance(atom, LdsmType | StsmType):
        make = LdmatrixOp if isinstance(atom, LdsmType) else StmatrixOp
    copy_by(make, op, atom)
