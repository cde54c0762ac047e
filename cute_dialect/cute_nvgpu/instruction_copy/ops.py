"""Base of the copy instructions: one op per instruction, on views of a thread's values."""

from __future__ import annotations

import math
from typing import ClassVar

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import ComposedLayout, raw_layout
from cute_dialect.cute_nvgpu.instruction_copy.checks import check_copy
from cute_dialect.cute_nvgpu.instruction_copy.types import InstructionCopyType
from cute_dialect.dialect.atom_types import CopyAtomType
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
