"""GEMM with block scales: the scale factors SFA and SFB of a tiled MMA, and ``cute.scaled_gemm``.

An atom with scale factors multiplies each element of A by the factor of its row and block along K, and each element of
B likewise.  SFA is a matrix ``(M, K / vec)`` and SFB a matrix ``(N, K / vec)``.  Their partitions,
``cute.tiled.mma.partition_SFA`` and ``partition_SFB``, take both in any layout in memory.  All lanes of a group from
which the instruction can read a factor hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Layout
from cute_dialect.cute_nvgpu.gemm import gemm_modes, gemm_operands, plain_operand
from cute_dialect.cute_nvgpu.sparse import sparse_gemm_operands
from cute_dialect.cute_nvgpu.tiled_mma import (
    LayoutTvOp,
    MakeFragmentOp,
    MmaAtomType,
    PartitionOp,
    PartitionShapeOp,
    TiledMmaType,
    atom_values,
)
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.views import EffectOp, expect, expect_operands
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    Modes = tuple[Layout, Layout, Layout]


@cute_op
class PartitionSFAOp(PartitionOp, operand="SFA"):
    """Returns a thread's partition of the scale factors of A of a tiled MMA, a tensor ``(M, K / vec, …)``.

    Syntax: ``%t = cute.tiled.mma.partition_SFA(%mma, %tensor, %tid) : (TM, T, !cute.coord<"?">) -> T'``

    Example:
        %t = cute.tiled.mma.partition_SFA(%mma, %e, %k) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4, sf = ue4m3, vec = 16>, atom_layout_MNK = <"(2,1,1):(1,0,0)">>, !cute.memref<f8E4M3FN, gmem, "(64,8):(8,1)">, !cute.coord<"?">) -> !cute.memref<f8E4M3FN, gmem, "(4,2,2):(1,256,4)">
    """  # noqa: E501


@cute_op
class PartitionSFBOp(PartitionOp, operand="SFB"):
    """Returns a thread's partition of the scale factors of B of a tiled MMA, a tensor ``(N, K / vec, …)``."""


@cute_op
class PartitionShapeSFAOp(PartitionShapeOp, operand="SFA"):
    """Returns the shape of the result of ``partition_SFA`` for a tensor of a shape; see ``partition_shape_A``."""


@cute_op
class PartitionShapeSFBOp(PartitionShapeOp, operand="SFB"):
    """Returns the shape of the result of ``partition_SFB`` for a tensor of a shape; see ``partition_shape_A``."""


@cute_op
class MakeFragmentSFAOp(MakeFragmentOp, operand="SFA"):
    """Allocates registers for a partition of the scale factors of A, or for its shape."""


@cute_op
class MakeFragmentSFBOp(MakeFragmentOp, operand="SFB"):
    """Allocates registers for a partition of the scale factors of B, or for its shape."""


@cute_op
class LayoutSFAOp(LayoutTvOp, operand="SFA"):
    """Returns the map (thread, value) -> column-major index in the tile of SFA, in factors; see ``layout_A_tv``."""


@cute_op
class LayoutSFBOp(LayoutTvOp, operand="SFB"):
    """Returns the map (thread, value) -> column-major index in the tile of SFB, in factors; see ``layout_A_tv``."""


# ----------------------------------------------------------------------------------------------------------------- gemm


def scaled_gemm_operands(types: Sequence[Attribute]) -> tuple[MmaAtomType, dict[str, Modes]]:
    """Return the atom and the layouts (V, first, second) of D, A, B, SFA, SFB, of E if A is sparse, and of C if given.

    ``types`` are those of the MMA, D, A, B, E if A is sparse, SFA, SFB, and optionally C. Raises AlgebraError for
    operands that do not fit.
    """
    expect_operands(types, 6, 8)
    mma = types[0]
    expect(mma, (MmaAtomType, TiledMmaType), 0, "an MMA atom or a !cute.tiled_mma")
    atom = mma.atom if isinstance(mma, TiledMmaType) else mma
    assert isinstance(atom, MmaAtomType)
    first = 5 if atom.SPARSE else 4
    expect_operands(types, first + 2, first + 3)
    others = [*types[:first], *types[first + 2 :]]
    if atom.SPARSE:
        _, modes = sparse_gemm_operands(others, scaled=True)
    else:
        _, modes = gemm_operands(others, scaled=True)
    for i, (operand, like) in enumerate((("SFA", "A"), ("SFB", "B")), first):
        t = types[i]
        expect(t, MemRefType, i, f"a !cute.memref, operand {operand}")
        assert isinstance(t, MemRefType)
        modes[operand] = _like(atom, operand, t, like, modes[like])
    return atom, modes


def _like(atom: MmaAtomType, operand: str, t: MemRefType, like: str, other: Modes) -> Modes:
    layout = plain_operand(atom, operand, t)
    rank = len(layout.shape) if isinstance(layout.shape, tuple) else 1
    if rank > 3:
        raise AlgebraError(f"the layout of {operand} has rank {rank}, {payload_text(layout.shape)}; use that of {like}")
    modes = gemm_modes((3, 3, 3), operand, layout)
    wanted = atom_values(atom, operand)
    if t.space == AddressSpace.tmem:
        if not is_static(layout):
            raise AlgebraError(f"the layout of {operand} is not static ({payload_text(layout)}); use static strides")
        atom.check_tmem_operand(operand, t, modes[0])
    elif size(modes[0]) != wanted:
        raise AlgebraError(
            f"{operand} has {payload_text(size(modes[0]))} values in mode V of {payload_text(layout.shape)}; the atom "
            f"{atom} needs {wanted}"
        )
    for i in (1, 2):
        if size(modes[i]) != size(other[i]):
            raise AlgebraError(
                f"mode {i} of {operand} has extent {payload_text(size(modes[i]))} in {payload_text(layout.shape)}; "
                f"{like} has {payload_text(size(other[i]))} there"
            )
    return modes


@cute_op
class ScaledGemmOp(EffectOp):
    """Multiplies a thread's partitions of A and B with scale factors: ``D = (A * SFA) * (B * SFB) + C``.

    Syntax: ``cute.scaled_gemm(%mma, %D, %A, %B [, %E], %SFA, %SFB [, %C]) : (TM, D, A, B [, E], SFA, SFB [, C]) -> ()``

    The op is the counterpart of ``cute.gemm`` for an atom with scale factors, and of ``cute.sparse_gemm`` if its A is
    sparse. SFA has the modes of A and SFB those of B, with the factors of one atom as mode V. The factors of ``tcgen05``
    are in tensor memory, as ``tmem_copy`` writes them: mode V is ((32,ROWS/32),FACTORS):((262144,4),1), in bytes, with
    any further modes of stride 0.

    Example:
        cute.scaled_gemm(%mma, %d, %a, %b, %sfa, %sfb, %d) : (!cute_nvgpu.atom.mma_sync<16x8x64, (f32,f4E2M1FN,f4E2M1FN,f32), kind = mxf4nvf4, sf = ue4m3, vec = 16>, !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">, !cute.memref<f4E2M1FN, rmem, align<32>, "((8,2,2),2,1):((1,8,16),32,0)">, !cute.memref<f4E2M1FN, rmem, align<32>, "((8,2),2,1):((1,8),16,0)">, !cute.memref<f8E4M3FN, rmem, align<8>, "(4,2,1):(1,4,0)">, !cute.memref<f8E4M3FN, rmem, align<8>, "(4,2,1):(1,4,0)">, !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">) -> ()
    """  # noqa: E501

    name = "cute.scaled_gemm"
    mma = operand_def()
    tensors = var_operand_def(MemRefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, mma: SSAValue, *tensors: SSAValue):
        super().__init__(operands=[mma, list(tensors)])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        scaled_gemm_operands(operand_types)
        return []


OPS = ops_of(__name__)
