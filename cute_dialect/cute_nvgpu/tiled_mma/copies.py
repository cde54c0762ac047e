"""Tiled copies of the fragments of a tiled MMA."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.traits import Pure

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiled_mma import OPERAND_MODES
from cute_dialect.cute_nvgpu.tiled_mma.ops import OperandOp
from cute_dialect.cute_nvgpu.tiled_mma.types import TiledMmaType
from cute_dialect.dialect.atom_types import CopyAtomType, TiledCopyType
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import element_bits
from cute_dialect.dialect.tile_copies import made_copy
from cute_dialect.dialect.typed_values import Properties
from cute_dialect.dialect.views import expect, expect_operands


class _MakeFromMmaOp(OperandOp):
    name = "cute.make_tiled_copy_{}"
    atom = operand_def()
    mma = operand_def()
    result = result_def(TiledCopyType)
    traits = traits_def(Pure())

    def __init__(self, atom: SSAValue, mma: SSAValue):
        self.build_inferred([atom, mma])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        atom, mma = operand_types
        expect(atom, CopyAtomType, 0, "a copy atom")
        expect(mma, TiledMmaType, 1, "a !cute.tiled_mma")
        assert isinstance(atom, CopyAtomType) and isinstance(mma, TiledMmaType)
        element = mma.atom.element(cls.OPERAND)
        # Accumulators may be converted to a narrower type before the copy.
        if cls.OPERAND != "C" and element_bits(atom.element) != element_bits(element):
            raise AlgebraError(f"expected an atom with elements as wide as {cls.OPERAND}'s {element}, got {atom}")
        row, tiled = mma.atom.row, mma.tiling(cls.OPERAND)
        if mma.atom.in_shared_memory(cls.OPERAND):
            raise AlgebraError(
                f"expected an operand {cls.OPERAND} in registers, because the copy writes it, got {mma.atom}"
            )
        i, j = OPERAND_MODES[cls.OPERAND]
        layout = tiled.layout_tv(cls.OPERAND, row.layout(cls.OPERAND))
        return [made_copy(atom, layout, (tiled.tile_size[i], tiled.tile_size[j]))]


@cute_op
class MakeTiledCopyAOp(_MakeFromMmaOp, operand="A"):
    """Builds the tiled copy that moves exactly the fragments of operand A of a tiled MMA.

    Syntax: ``%tc = cute.make_tiled_copy_A(%atom, %mma) : (ATOM, MMA) -> TC``

    Inference:
        The thread-value layout is that of A (``cute.tiled.mma.layout_A_tv``). The tile is that of the MMA in M and K.

    Example:
        %tc = cute.make_tiled_copy_A(%a, %mma) : (!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>, !cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>) -> !cute.tiled_copy<!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8),((2,2,2),(1,1))):((32,1),((16,8,128),(16,256)))">, tiler_mn = <"[16:1;16:1]">>
    """  # noqa: E501


@cute_op
class MakeTiledCopyBOp(_MakeFromMmaOp, operand="B"):
    """Builds the tiled copy that moves exactly the fragments of operand B of a tiled MMA; see ``make_tiled_copy_A``."""


@cute_op
class MakeTiledCopyCOp(_MakeFromMmaOp, operand="C"):
    """Builds the tiled copy that moves exactly the accumulators of a tiled MMA; see ``make_tiled_copy_A``.

    The elements of the atom may be narrower than the accumulators, because results may be converted before the store.
    """


OPS = ops_of(__name__)
