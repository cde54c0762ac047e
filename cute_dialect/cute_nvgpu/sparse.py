"""GEMM with a sparse A: the metadata E of a tiled MMA, and ``cute.sparse_gemm``.

A sparse atom takes the compressed A, ``(M, K/2)``, and a matrix E of words, ``(M, K / columns)``. E holds the positions
of the kept elements. ``partition_A`` and ``partition_E`` take both in row-major order in memory; no reordering for the
threads is needed. B, C and D are the same as in a dense GEMM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import BoolAttr, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_attr_definition, operand_def, opt_operand_def, prop_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import Layout
from cute_dialect.arch.errors import AtomError
from cute_dialect.cute_nvgpu.gemm import MmaInstructionOp, gemm_modes, gemm_operands, plain_operand
from cute_dialect.cute_nvgpu.mma import check_kind
from cute_dialect.cute_nvgpu.tiled_mma import (
    LayoutTvOp,
    MakeFragmentOp,
    MmaAtomType,
    MmaKey,
    PartitionOp,
    PartitionShapeOp,
    atom_values,
)
from cute_dialect.cute_nvgpu.wgmma import check_scale_d, wgmma_key
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.views import EffectOp, expect, expect_operands
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.arch.atom import MmaAtom


@irdl_attr_definition
class MmaSpType(MmaAtomType):
    """``!cute_nvgpu.atom.mma_sp<MxNxK, (D,A,B,C) [, saturate] [, selector = S] [, kind = KIND [, sf = SF, vec = V]]>``

    ``mma.sp::ordered_metadata``.  A kind of ``mma_sync`` selects the instructions of sm_120; ``vec`` is that of the
    dense atom.

    A is ``(M, K/2)``: half of each group of 4 elements in a row is kept (2 of tf32, 8 of 4-bit integers). The metadata
    E holds the positions of the kept elements (:class:`cute_dialect.arch.atom.Metadata`). ``selector`` chooses the
    threads of each group of four whose metadata is used. Any selector is correct for an E from
    ``cute.tiled.mma.partition_E``.
    """

    name = "cute_nvgpu.atom.mma_sp"
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"saturate", "selector", "kind", "sf", "vec"})
    SPARSE: ClassVar[bool] = True

    @classmethod
    def find(cls, key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        from cute_dialect.arch.table import find_mma_sp, find_narrow_mma  # late: start-up

        check_kind(key)
        if key.kind:
            row = find_narrow_mma(key.shape, names, key.kind, key.sf, key.vec, sparse=True)
        else:
            row = find_mma_sp(key.shape, names, key.saturate)
        check_selector(row, key.selector)
        return row


@irdl_attr_definition
class WgmmaSpType(MmaAtomType):
    """``!cute_nvgpu.atom.wgmma_sp<64xNxK, (D,A,B,C), A = smem|rmem, major = (k|mn, k|mn) [, saturate] [, selector = S]
    [, negate_a] [, negate_b]>``

    ``wgmma`` with a sparse A in the format of ``mma_sp``. K is twice the K of the dense atom.
    """

    name = "cute_nvgpu.atom.wgmma_sp"
    ASYNCHRONOUS: ClassVar[bool] = True
    OPTIONS: ClassVar[frozenset[str]] = frozenset({"A", "major", "saturate", "selector", "negate"})
    SPARSE: ClassVar[bool] = True

    @classmethod
    def find(cls, key: MmaKey, names: tuple[str, str, str, str]) -> MmaAtom:
        from cute_dialect.arch.table import find_wgmma_sp  # late: start-up

        row = find_wgmma_sp(*wgmma_key(key, names, 512, "wgmma with a sparse A"))
        check_selector(row, key.selector)
        return row


def check_selector(row: MmaAtom, selector: int) -> None:
    """Raise AtomError unless the sparse atom has this sparsity selector."""
    assert row.metadata is not None
    last = row.metadata.selectors - 1
    if not 0 <= selector <= last:
        shape = "x".join(map(str, row.shape_mnk))
        known = f"0 to {last}" if last else "0"
        raise AtomError(f"the sparsity selector is {selector}; {shape} on {row.a} needs {known}")


ATTRS: list[type[Attribute]] = [MmaSpType, WgmmaSpType]


@cute_op
class PartitionEOp(PartitionOp, operand="E"):
    """Returns a thread's partition of the metadata E of a sparse tiled MMA, a tensor of words ``(M, K / columns, …)``.

    Syntax: ``%t = cute.tiled.mma.partition_E(%mma, %tensor, %tid) : (TM, T, !cute.coord<"?">) -> T'``

    Words are i16 for 16-bit and 32-bit elements of A, and i32 for narrower elements. One word describes 16 elements of
    a row of A (8 of tf32, 32 of 8-bit types, 64 of 4-bit integers). All four threads of a group that the sparsity
    selector can choose from hold the word, so that any selector is correct.

    Example:
        %t = cute.tiled.mma.partition_E(%mma, %e, %k) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,1,1):(1,0,0)">>, !cute.memref<i16, gmem, "(64,4):(4,1)">, !cute.coord<"?">) -> !cute.memref<i16, gmem, "(2,2,2):(32,128,2)">
    """  # noqa: E501


@cute_op
class PartitionShapeEOp(PartitionShapeOp, operand="E"):
    """Returns the shape of the result of ``partition_E`` for a tensor of the given shape; see ``partition_shape_A``."""


@cute_op
class MakeFragmentEOp(MakeFragmentOp, operand="E"):
    """Allocates registers for a partition of the metadata E, or for its shape.

    Example:
        %f = cute.tiled.mma.make_fragment_E(%mma, %t) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32)>, atom_layout_MNK = <"(2,1,1):(1,0,0)">>, !cute.memref<i16, gmem, "(2,2,2):(32,128,2)">) -> !cute.memref<i16, rmem, align<16>, "(2,2,2):(1,2,4)">
    """  # noqa: E501


@cute_op
class LayoutEOp(LayoutTvOp, operand="E"):
    """Returns the map (thread, value) -> column-major index in the tile of E, in words; see ``layout_A_tv``.

    Example:
        %l = cute.tiled.mma.layout_E_tv(%mma) : (!cute.tiled_mma<!cute_nvgpu.atom.mma_sp<16x8x64, (i32,i8,i8,i32)>, atom_layout_MNK = <"(1,1,1):(0,0,0)">>) -> !cute.layout<"((4,8),(1,(1,1))):((8,1),(0,(16,32)))">
    """  # noqa: E501


# ----------------------------------------------------------------------------------------------------------------- gemm


def sparse_gemm_operands(
    types: Sequence[Attribute], *, scaled: bool = False
) -> tuple[MmaAtomType, dict[str, tuple[Layout, Layout, Layout]]]:
    """Return the atom and the layouts (V, first, second) of D, A, B, E, and C if given, of a sparse gemm.

    ``types`` are the types of the MMA, D, A, B, E and optionally C. Raises AlgebraError for operands that do not fit.
    """
    expect_operands(types, 5, 6)
    mma, d, a, b, e, *c = types
    atom, modes = gemm_operands([mma, d, a, b, *c], sparse=True, scaled=scaled)
    expect(e, MemRefType, 4, "a !cute.memref, operand E")
    assert isinstance(e, MemRefType)
    layout = plain_operand(atom, "E", e)
    values, m, k = _like_a(layout, modes["A"])
    wanted = atom_values(atom, "E")
    if size(values) != wanted:
        raise AlgebraError(
            f"E has {payload_text(size(values))} values in mode V of {payload_text(layout.shape)}; the atom "
            f"{atom} needs {wanted}"
        )
    if e.space == AddressSpace.tmem:
        atom.check_tmem_operand("E", e, values)
    for mode, mine, other in (("M", m, modes["A"][1]), ("K", k, modes["A"][2])):
        if size(mine) != size(other):
            raise AlgebraError(
                f"mode {mode} of A and E has extents {payload_text(size(other))} and "
                f"{payload_text(size(mine))} in {payload_text(layout.shape)}; they must be equal"
            )
    return atom, {**modes, "E": (values, m, k)}


def _like_a(layout: Layout, a: tuple[Layout, Layout, Layout]) -> tuple[Layout, Layout, Layout]:
    rank = len(layout.shape) if isinstance(layout.shape, tuple) else 1
    if rank > 3:
        raise AlgebraError(
            f"the layout of E has rank {rank} ({payload_text(layout.shape)}); use (V,M,K), like that of A"
        )
    if rank < 3 and size(a[2]) != 1:
        raise AlgebraError(
            f"the layout of E is {payload_text(layout.shape)}; it must be (V,M,K) with as many steps along K "
            f"as A, {payload_text(size(a[2]))}"
        )
    return gemm_modes((3, 3, 3), "E", layout)


@cute_op
class SparseGemmOp(EffectOp):
    """Multiplies a thread's partitions of a sparse A and of B: ``D = A * B + C``, or ``D = A * B`` without C.

    Syntax: ``cute.sparse_gemm(%mma, %D, %A, %B, %E [, %C]) : (TM, D, A, B, E [, C]) -> ()``

    The op is the counterpart of ``cute.gemm`` for an atom with a sparse A. A holds the kept elements. E holds the
    metadata words and has the modes of A: ``(V)``, ``(V,M)`` or ``(V,M,K)``. For ``tcgen05`` it is in tensor memory.

    Example:
        cute.sparse_gemm(%mma, %d, %a, %b, %e, %d) : (!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32)>, !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">, !cute.memref<f16, rmem, align<32>, "((2,2,2),2,4):((1,2,4),8,16)">, !cute.memref<f16, rmem, align<32>, "((2,4),2,4):((1,2),8,16)">, !cute.memref<i16, rmem, align<16>, "(2,2,4):(1,2,4)">, !cute.memref<f32, rmem, align<32>, "((2,2),2,2):((1,2),4,8)">) -> ()
    """  # noqa: E501

    name = "cute.sparse_gemm"
    mma = operand_def()
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    e = operand_def(MemRefType)
    c = opt_operand_def(MemRefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, mma: SSAValue, d: SSAValue, a: SSAValue, b: SSAValue, e: SSAValue, c: SSAValue | None = None):
        super().__init__(operands=[mma, d, a, b, e, c])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        sparse_gemm_operands(operand_types)
        return []


@cute_op
class MmaSpOp(MmaInstructionOp):
    """Issues one ``mma.sp::ordered_metadata`` per warp. A holds the kept elements of its rows, E the metadata words.

    Syntax: ``cute_nvgpu.arch.mma_sp(%D, %A, %B, %C, %E [, %SFA, %SFB]) {atom = ATOM} : (D, A, B, C, E [, SFA, SFB]) -> ()``

    Each operand is a view of one thread's values of one atom. E is one register: one word of i32, or two words of i16,
    of which the first is in the low half. SFA and SFB are the scale factors of an atom that has them.

    Example:
        cute_nvgpu.arch.mma_sp(%d, %a, %b, %d, %e) {atom = !cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32)>} : (!cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.memref<f16, rmem, align<16>, "(2,2,2):(1,2,4)">, !cute.memref<f16, rmem, align<16>, "(2,4):(1,2)">, !cute.memref<f32, rmem, align<16>, "(2,2):(1,2)">, !cute.memref<i16, rmem, align<4>, "2:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.mma_sp"
    OPERANDS: ClassVar[tuple[str, ...]] = ("D", "A", "B", "C", "E")
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = operand_def(MemRefType)
    e = operand_def(MemRefType)
    scales = var_operand_def(MemRefType)
    atom = prop_def(MmaSpType)


@cute_op
class WgmmaSpOp(MmaInstructionOp):
    """Issues one ``wgmma.mma_async.sp`` per warpgroup: ``D = A * B + D`` if it accumulates, otherwise ``D = A * B``.
    A is sparse.

    Syntax: ``cute_nvgpu.arch.wgmma_sp(%D, %A, %B, %E [, %scale_d]) {accumulate = true, atom = ATOM} : (D, A, B, E [, i1]) -> ()``

    The rules of ``cute_nvgpu.arch.wgmma`` for fence, commit and wait apply. A holds the kept elements, 32 bytes per
    row. B is in shared memory, 64 bytes deep, with one matrix descriptor. E is one register, in the format of
    ``cute_nvgpu.arch.mma_sp``.

    Example:
        cute_nvgpu.arch.wgmma_sp(%d, %a, %b, %e) {accumulate = false, atom = !cute_nvgpu.atom.wgmma_sp<64x8x32, (f32,f16,f16,f32), A = smem, major = (k, k)>} : (!cute.memref<f32, rmem, align<16>, "(2,2,1):(1,2,0)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">, !cute.memref<f16, smem, align<1024>, S<3,4,3>, "(8,32):(64,1)">, !cute.memref<i16, rmem, align<4>, "2:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.wgmma_sp"
    WRITES = "struct"
    OPERANDS: ClassVar[tuple[str, ...]] = ("D", "A", "B", "E")
    FLAGS: ClassVar[int] = 1
    d = operand_def(MemRefType)
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    e = operand_def(MemRefType)
    scale_d = opt_operand_def(i1)
    atom = prop_def(WgmmaSpType)
    accumulate = prop_def(BoolAttr)

    def check_types(self) -> None:
        """Raise AlgebraError unless the operands and flags match the atom."""
        super().check_types()
        check_scale_d(self)


OPS = ops_of(__name__)
