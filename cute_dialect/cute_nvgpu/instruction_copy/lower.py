"""Helpers of the lowerings of copy instructions."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from cute_dialect.cute_nvgpu.instruction_copy.types import InstructionCopyType
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.passes.lowering.types import pointer
from cute_dialect.passes.lowering.walk import Lowering


def copy_atom(op: Operation) -> InstructionCopyType:
    """Return the atom of a copy instruction."""
    atom = op.properties["atom"]
    assert isinstance(atom, InstructionCopyType)
    return atom


def memory_address(low: Lowering, tensor: SSAValue) -> SSAValue:
    """Return the swizzled address of the first element of a tensor in memory."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    base = low.build.part(low.value(tensor), (0,), pointer(t.space))
    return low.swizzled(base, t.data.ptr.swizzle)
