"""Base of the matrix instructions ``cute_nvgpu.arch.*``: one op per instruction, on views of one atom's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Attribute

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import ComposedLayout, Layout
from cute_dialect.cute_nvgpu.tiled_mma.gemm import descriptor_of
from cute_dialect.cute_nvgpu.tiled_mma.ops import atom_values, check_element
from cute_dialect.cute_nvgpu.tiled_mma.types import MmaAtomType
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.views import InstructionOp, expect, expect_operands
from cute_dialect.spaces import AddressSpace


class MmaInstructionOp(InstructionOp):
    """One instruction ``D = A * B + C``. Each operand holds exactly the values of one atom."""

    WRITES = "first"
    OPERANDS: ClassVar[str] = "DABC"
    FLAGS: ClassVar[int] = 0
    """Maximum number of trailing operands that are not tensors."""

    def check_types(self) -> None:
        """Raise AlgebraError unless the operands match the atom."""
        n = len(self.OPERANDS)
        expect_operands(self.operand_types, n, n + self.FLAGS)
        atom = self.properties["atom"]
        assert isinstance(atom, MmaAtomType)
        for i, (operand, t) in enumerate(zip(self.OPERANDS, self.operand_types)):
            expect(t, MemRefType, i, f"a !cute.memref, operand {operand}")
            assert isinstance(t, MemRefType)
            check_one_atom(atom, operand, t)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        return []


def check_one_atom(atom: MmaAtomType, operand: str, t: MemRefType) -> None:
    """Raise AlgebraError unless a tensor holds exactly the values of an operand in one atom."""
    space = atom.operand_space(operand)
    if t.space != space:
        raise AlgebraError(f"expected {operand} in {space} for the atom {atom}, got {t.space}")
    check_element(atom, operand, t)
    layout = t.layout
    if isinstance(layout, ComposedLayout) or not is_static(layout):
        raise AlgebraError(f"expected a static plain layout of {operand}, got {payload_text(layout)}")
    assert isinstance(layout, Layout)
    wanted = atom_values(atom, operand)
    if size(layout.shape) != wanted:
        raise AlgebraError(
            f"expected {wanted} values of {operand} for the atom {atom}, got {size(layout.shape)} in "
            f"{payload_text(layout)}"
        )
    if space == AddressSpace.smem:
        descriptor_of(atom, operand, t, layout)
