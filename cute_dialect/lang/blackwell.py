"""Helpers for Blackwell GEMMs: MMAs of tensor memory for operand types, shared memory layouts (names: CuTe DSL's)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cute_dialect.lang as cute
from cute_dialect.lang.hopper import get_smem_layout_atom
from cute_dialect.lang.hopper import make_smem_layout_epi as make_smem_layout_epi
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.utils import LayoutEnum
from cute_dialect.lang.utils import compute_epilogue_tile_shape as compute_epilogue_tile_shape

if TYPE_CHECKING:
    from cute_dialect.lang.machine.atoms import CopyAtom
    from cute_dialect.lang.machine.copies import TiledCopy
    from cute_dialect.lang.machine.tiled_mma import ThrMma, TiledMma
    from cute_dialect.lang.machine.tma import TmaOp
    from cute_dialect.lang.nvgpu.common import OperandMajorMode
    from cute_dialect.lang.nvgpu.tcgen05 import CtaGroup, OperandSource
    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.layouts import ComposedLayout, Layout
    from cute_dialect.lang.values.signature_types import Int, IntTuple, Shape
    from cute_dialect.lang.values.tensors import Tensor


__all__ = [
    "cluster_shape_to_tma_atom_A",
    "cluster_shape_to_tma_atom_B",
    "cluster_shape_to_tma_atom_SFB",
    "compute_epilogue_tile_shape",
    "get_layoutSFA_TV",
    "get_layoutSFB_TV",
    "get_permutation_mnk",
    "get_smem_store_op",
    "get_tmem_load_op",
    "make_blockscaled_trivial_tiled_mma",
    "make_smem_layout",
    "make_smem_layout_a",
    "make_smem_layout_b",
    "make_smem_layout_e",
    "make_smem_layout_epi",
    "make_tmem_layout_e",
    "make_trivial_tiled_mma",
    "partition_fragment_SFA",
    "partition_fragment_SFB",
    "sm120_get_smem_store_op",
]


def make_trivial_tiled_mma(
    ab_dtype: type[Numeric],
    a_leading_mode: OperandMajorMode,
    b_leading_mode: OperandMajorMode,
    acc_dtype: type[Numeric],
    cta_group: CtaGroup,
    mma_tiler_mn: tuple[int, int],
    a_source: OperandSource | None = None,
) -> TiledMma:
    """Create the tiled MMA of one ``tcgen05.mma`` for these types. ``mma_tiler_mn`` is (M, N) of the instruction.

    Raises TypeError if there is no such instruction.
    """
    tcgen05 = cute.nvgpu.tcgen05
    source = tcgen05.OperandSource.SMEM if a_source is None else a_source
    majors = (a_leading_mode, b_leading_mode)
    if ab_dtype in (cute.Float16, cute.BFloat16):
        op = tcgen05.MmaF16BF16Op(ab_dtype, acc_dtype, (*mma_tiler_mn, 16), cta_group, source, *majors)
    elif ab_dtype in (cute.TFloat32, cute.Float32):
        op = tcgen05.MmaTF32Op((*mma_tiler_mn, 8), cta_group, source, *majors)
    elif ab_dtype in (cute.Float8E4M3FN, cute.Float8E5M2):
        op = tcgen05.MmaF8F6F4Op(ab_dtype, ab_dtype, acc_dtype, (*mma_tiler_mn, 32), cta_group, source, *majors)
    elif ab_dtype in (cute.Int8, cute.Uint8):
        op = tcgen05.MmaI8Op(ab_dtype, ab_dtype, (*mma_tiler_mn, 32), cta_group, source, *majors)
    else:
        raise TypeError(
            "make_trivial_tiled_mma: the operands must be f16, bf16, tf32, an 8-bit float or an 8-bit integer, got "
            f"{ab_dtype!r}"
        )
    return cute.make_tiled_mma(cute.make_mma_atom(op))


def make_blockscaled_trivial_tiled_mma(
    a_dtype: type[Numeric],
    *types_and_majors: type[Numeric] | OperandMajorMode | int | CtaGroup | tuple[int, int] | OperandSource,
) -> TiledMma:
    """Create the tiled MMA of one ``tcgen05.mma`` with block scales.

    The arguments are ``(a_dtype, b_dtype, a_major, b_major, sf_dtype, sf_vec_size, cta_group, mma_tiler_mn)``, and may
    be followed by ``a_source``. Without ``b_dtype`` it is ``a_dtype``.

    Args:
        a_dtype: the element type of A: an 8-bit, 6-bit or 4-bit float.
        types_and_majors: the further arguments. ``sf_dtype`` and ``sf_vec_size`` are the type of the scale factors, and
            the number of elements along K that share one. ``mma_tiler_mn`` is (M, N) of the instruction.

    Raises TypeError for other arguments, or if there is no such instruction.
    """
    tcgen05 = cute.nvgpu.tcgen05
    given: Any = types_and_majors
    b_dtype, *others = given if given and isinstance(given[0], type) else (a_dtype, *given)
    if len(others) not in (6, 7):
        raise TypeError(
            "make_blockscaled_trivial_tiled_mma: the arguments are a_dtype, [b_dtype,] a_major, b_major, sf_dtype, "
            f"sf_vec_size, cta_group, mma_tiler_mn [, a_source]; got {len(given) + 1} arguments"
        )
    a_major, b_major, sf_dtype, vec, group, shape, *source = others
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise TypeError(
            f"make_blockscaled_trivial_tiled_mma: mma_tiler_mn must be (M, N) of the instruction, got {shape!r}; "
            "its K follows from the types"
        )
    m, n = shape
    where: tuple[CtaGroup, OperandSource] = (group, source[0] if source else tcgen05.OperandSource.SMEM)
    if a_dtype is b_dtype is cute.Float4E2M1FN and (vec == 16 or sf_dtype is cute.Float8E8M0FNU):
        if a_major != cute.nvgpu.OperandMajorMode.K or b_major != cute.nvgpu.OperandMajorMode.K:
            raise TypeError("make_blockscaled_trivial_tiled_mma: Float4E2M1FN operands must be K-major")
        shape = (m, n, 64)
        op = tcgen05.MmaMXF4Op(shape, *where) if vec == 32 else tcgen05.MmaMXF4NVF4Op(sf_dtype, shape, *where)
    elif sf_dtype is cute.Float8E8M0FNU and vec == 32:
        op = tcgen05.MmaMXF8F6F4Op(a_dtype, b_dtype, (m, n, 32), *where, a_major, b_major)
    else:
        raise TypeError(
            f"make_blockscaled_trivial_tiled_mma: there is no MMA of {a_dtype!r} and {b_dtype!r} with {sf_dtype!r} "
            f"for {vec} elements; use Float8E8M0FNU for 32 elements, or for Float4E2M1FN also Float8E4M3FN or "
            "Float8E8M0FNU for 16"
        )
    return cute.make_tiled_mma(cute.make_mma_atom(op))


def make_smem_layout(
    leading_mode: OperandMajorMode, smem_tile_shape: Shape, element_type: type[Numeric], num_stages: int
) -> Layout | ComposedLayout:
    """Return the swizzled layout of stages of a tile (X, K), ``(X, K, stages)``."""
    layout = LayoutEnum.ROW_MAJOR if leading_mode == cute.nvgpu.OperandMajorMode.K else LayoutEnum.COL_MAJOR
    return make_smem_layout_epi(element_type, layout, smem_tile_shape, num_stages)


def make_smem_layout_a(
    tiled_mma: TiledMma, mma_tiler_mnk: Shape, a_dtype: type[Numeric], num_stages: int
) -> Layout | ComposedLayout:
    """Return the swizzled layout of A's stages in the shape of the MMA, ((M, K), RestM, RestK, stages).

    A sparse A has the kept elements, half of K of ``mma_tiler_mnk``. Elements of 4 or 6 bits of the kinds f8f6f4 and
    mxf8f6f4 have a byte each; the tensor has elements Int8.
    """
    kept = mma_tiler_mnk[2] // (2 if tiled_mma.atom.type.SPARSE else 1)
    return _staged("A", tiled_mma, (mma_tiler_mnk[0], kept), a_dtype, num_stages)


def make_smem_layout_b(
    tiled_mma: TiledMma, mma_tiler_mnk: Shape, b_dtype: type[Numeric], num_stages: int
) -> Layout | ComposedLayout:
    """Return the swizzled layout of B's stages in the shape of the MMA, ((N, K), RestN, RestK, stages).

    See :func:`make_smem_layout_a` for elements of 4 or 6 bits.
    """
    return _staged("B", tiled_mma, (mma_tiler_mnk[1], mma_tiler_mnk[2]), b_dtype, num_stages)


def make_smem_layout_e(tiled_mma: TiledMma, mma_tiler_mnk: Shape, num_stages: int) -> Layout:
    """Return the layout of stages of the metadata of a sparse A in shared memory, (lanes, columns, stages) of Int32.

    It is the layout of a tile of a matrix (M, K / 32) of Int32 in the order of the lanes, for 16-bit and 8-bit types;
    (M, K / 16) for TFloat32, and (M, K / 64) for Float4E2M1FN. One ``tcgen05.Cp128x128bOp`` copies 4 columns.

    Args:
        tiled_mma: an MMA with a sparse A.
        mma_tiler_mnk: the tile (M, N, K) of the MMA, in elements; M is that of one instruction.
        num_stages: number of stages.
    """
    columns = _metadata_columns("make_smem_layout_e", tiled_mma, mma_tiler_mnk)
    blocks = columns // 4
    return cute.make_layout((128, (4, blocks), num_stages), stride=(4, (1, 512), 512 * blocks))


def make_tmem_layout_e(tiled_mma: TiledMma, mma_tiler_mnk: Shape) -> Layout:
    """Return the layout of the metadata of a sparse A in tensor memory, (MMA, MMA_M, MMA_K).

    Its elements are Int16 for types of 16 and 32 bits, else Int32. The columns are those of
    :func:`make_smem_layout_e`.

    Args:
        tiled_mma: an MMA with a sparse A.
        mma_tiler_mnk: the tile (M, N, K) of the MMA, in elements; M is that of one instruction.
    """
    _metadata_columns("make_tmem_layout_e", tiled_mma, mma_tiler_mnk)
    row = tiled_mma.atom.type.row
    words = mma_tiler_mnk[2] // tiled_mma.shape_mnk[2] * row.tile("E")[1]
    return tiled_mma.make_fragment_E(tiled_mma.partition_shape_E((mma_tiler_mnk[0], words))).layout


def _metadata_columns(what: str, tiled_mma: TiledMma, tiler: Shape) -> int:
    """Return the columns of metadata of a tile.  Raises F251 unless they are a multiple of 4 of one instruction's M."""
    from cute_dialect.cute_nvgpu.tcgen05_sparse import Tcgen05MmaSpType  # late: start-up

    atom = tiled_mma.atom.type
    if not isinstance(atom, Tcgen05MmaSpType):
        raise KernelTypeError("F251", f"{what} needs a tcgen05 MMA with a sparse A, got {tiled_mma!r}")
    m, _, depth = tiled_mma.shape_mnk
    if not isinstance(tiler, tuple) or len(tiler) != 3:
        raise KernelTypeError("F251", f"{what}: mma_tiler_mnk must be (M, N, K) in elements, got {tiler!r}")
    unit = 4 // atom.metadata_columns * depth
    if tiler[0] != m or tiler[2] % unit:
        raise KernelTypeError(
            "F251", f"{what}: the tile is {' x '.join(map(str, tiler))}; M must be {m}, and K a multiple of {unit}"
        )
    return tiler[2] // depth * atom.metadata_columns


def get_smem_store_op(
    layout_d: LayoutEnum, elem_ty_d: type[Numeric], elem_ty_acc: type[Numeric], tiled_tmem_load: TiledCopy
) -> CopyAtom:
    """Return the copy atom that stores accumulators to shared memory after a load of tensor memory.

    It stores the elements of a thread without exchange between threads, for any shape of the load.
    """
    del layout_d, elem_ty_acc, tiled_tmem_load
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), elem_ty_d)


def get_tmem_load_op(
    cta_tile_shape: Shape,
    layout_d: LayoutEnum,
    elem_ty_d: type[Numeric],
    elem_ty_acc: type[Numeric],
    epi_tile: tuple[Int, Int | Layout],
    use_2cta_instrs: bool,
) -> CopyAtom:
    """Return the copy atom that loads an epilogue tile of the accumulator from tensor memory.

    Each warp loads 32 lanes, or 16 for the accumulator of 64 rows of one block, and as many columns as the tile has.

    Args:
        cta_tile_shape: the tile (M, N, …) of one block.
        layout_d, elem_ty_d: ignored; they select faster loads for some stores in CuTe DSL.
        elem_ty_acc: the element type of the accumulator, of 16 or 32 bits.
        epi_tile: the epilogue tile, such as that of ``compute_epilogue_tile_shape``.
        use_2cta_instrs: a pair of blocks executes the MMAs.
    """
    del layout_d, elem_ty_d
    tcgen05 = cute.nvgpu.tcgen05
    has_half_lanes = cta_tile_shape[0] == 64
    columns = cute.size(epi_tile[1])
    if has_half_lanes and use_2cta_instrs:
        columns //= 2  # The two halves of the columns lie in different lanes.
    packs = elem_ty_acc.width == 16
    unit = (8 if has_half_lanes and not use_2cta_instrs else 1) * (2 if packs else 1)
    most = 32 if unit >= 8 else 128
    times = max(n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n <= most and columns % (n * unit) == 0)
    load = tcgen05.Ld16x256bOp if has_half_lanes and not use_2cta_instrs else tcgen05.Ld32x32bOp
    pack = tcgen05.Pack.PACK_16b_IN_32b if packs else tcgen05.Pack.NONE
    return cute.make_copy_atom(load(tcgen05.Repetition(times), pack), elem_ty_acc)


def cluster_shape_to_tma_atom_A(cluster_shape_mnk: Shape, atom_thr_id: Layout) -> TmaOp:
    """Return the TMA load of A: a multicast, with a mask, if the cluster has several blocks.

    Args:
        cluster_shape_mnk: the numbers of blocks of the cluster along M and N.
        atom_thr_id: ``thr_id`` of the MMA, whose size is the number of blocks of an MMA.
    """
    cpasync = cute.nvgpu.cpasync
    group = cute.nvgpu.tcgen05.CtaGroup(cute.size(atom_thr_id))
    if cute.size(cluster_shape_mnk) > 1:
        return cpasync.CopyBulkTensorTileG2SMulticastOp(group)
    return cpasync.CopyBulkTensorTileG2SOp(group)


cluster_shape_to_tma_atom_B = cluster_shape_to_tma_atom_A
"""The TMA load of B, which is that of A."""

cluster_shape_to_tma_atom_SFB = cluster_shape_to_tma_atom_A
"""The TMA load of the scale factors of B. Both blocks of a pair need all of them, and each loads a part for both."""


def _staged(
    operand: str, tiled_mma: TiledMma, tile: tuple[int, int], dtype: type[Numeric], stages: int
) -> Layout | ComposedLayout:
    is_k_major = tiled_mma.atom.type.data.majors["AB".index(operand)] == "k"
    layout = LayoutEnum.ROW_MAJOR if is_k_major else LayoutEnum.COL_MAJOR
    if tiled_mma.atom.type.is_unpacked(operand):
        dtype = cute.Int8
    kind = get_smem_layout_atom(layout, dtype, tile[1] if is_k_major else tile[0])
    atom = cute.nvgpu.tcgen05.make_smem_layout_atom(kind, dtype)
    partition = tiled_mma.partition_shape_A if operand == "A" else tiled_mma.partition_shape_B
    shape = (*partition(tile), stages)
    order = (0, 1, 2) if is_k_major else (1, 0, 2)
    return cute.nvgpu.tcgen05.tile_to_mma_shape(atom, shape, order=order)


# ------------------------------------------------------------------------------------------- MMAs of warps, for sm_120


def get_permutation_mnk(tile_shape_mnk: Shape, sf_vec_size: int, use_mxf8f6f4: bool) -> tuple[int, Layout, int]:
    """Return the permutation of the tiled MMA of a block-scaled GEMM with mma.sync.

    It covers up to 128 rows, 32 columns, and K of one MMA. With two warps along N, each of them computes 16 consecutive
    columns, as many as one ``ldmatrix`` loads.

    Args:
        tile_shape_mnk: the tile (M, N, K) of the block.
        sf_vec_size: elements along K that share a factor, 16 or 32; it does not change the result.
        use_mxf8f6f4: the MMA has K = 32 (``MmaMXF8Op``, ``MmaMXF8F6F4Op``), and not K = 64.
    """
    if sf_vec_size not in (16, 32):
        raise KernelTypeError("F251", f"get_permutation_mnk: sf_vec_size is {sf_vec_size}; use 16 or 32")
    m, n, _ = tile_shape_mnk
    columns = cute.make_layout((8, 2, 2), stride=(1, 16, 8)) if n >= 32 else cute.make_layout(n)
    return min(m, 128), columns, 32 if use_mxf8f6f4 else 64


def sm120_get_smem_store_op(layout_d: LayoutEnum, elem_ty_d: type[Numeric], elem_ty_acc: type[Numeric]) -> CopyAtom:
    """Return the copy atom that stores the accumulators of warps to shared memory: stmatrix for 16-bit elements.

    Args:
        layout_d: the layout of D, whose major mode selects transposed matrices.
        elem_ty_d: the element type of D.
        elem_ty_acc: the element type of the accumulators, which does not change the result.
    """
    del elem_ty_acc
    if elem_ty_d.width == 16:
        return cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(layout_d.is_m_major_c(), 2), elem_ty_d)
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), elem_ty_d)


def partition_fragment_SFA(sfa_tensor: Tensor, thr_mma: ThrMma, tidx: Int) -> Tensor:
    """Return registers for a thread's scale factors of A, ((vec, V), RestM, RestK), with stride 0 along vec.

    Args:
        sfa_tensor: the factors of a tile (M, K) in elements of A, such as a stage of ``sm120_make_smem_layout_sfa``.
        thr_mma: the slice of a tiled MMA of one thread.
        tidx: ignored; ``thr_mma`` has the index of its thread.
    """
    del tidx
    return _factor_fragment(sfa_tensor, thr_mma, "SFA")


def partition_fragment_SFB(sfb_tensor: Tensor, thr_mma: ThrMma, tidx: Int) -> Tensor:
    """Return registers for a thread's scale factors of B; see :func:`partition_fragment_SFA`."""
    del tidx
    return _factor_fragment(sfb_tensor, thr_mma, "SFB")


def get_layoutSFA_TV(tiled_mma: TiledMma) -> Layout:
    """Return the layout (thread, value) -> m + M * k of the scale factors of A, in elements of the tile of the MMA.

    It is the layout of a tiled copy of the factors. The elements that share a factor are values with consecutive k.
    """
    return _factor_layout(tiled_mma, "SFA")


def get_layoutSFB_TV(tiled_mma: TiledMma) -> Layout:
    """Return the layout (thread, value) -> n + N * k of the scale factors of B; see :func:`get_layoutSFA_TV`."""
    return _factor_layout(tiled_mma, "SFB")


def _factor_fragment(tensor: Tensor, thread: ThrMma, operand: str) -> Tensor:
    factors = cute.filter_zeros(tensor)
    if operand == "SFA":
        fragment = thread.make_fragment_SFA(thread.partition_SFA(factors))
    else:
        fragment = thread.make_fragment_SFB(thread.partition_SFB(factors))
    (held, *rest), (step, *steps) = fragment.layout.shape, fragment.layout.stride
    shared = thread.shape_mnk[2] // cute.size(held)
    return fragment.with_layout(cute.make_layout(((shared, held), *rest), stride=((0, step), *steps)))


def _factor_layout(tiled_mma: TiledMma, operand: str) -> Layout:
    layout = tiled_mma.tv_layout(operand)
    (threads, (held, rest)), (thread_step, (step, rest_step)) = layout.shape, layout.stride
    extent = tiled_mma.tile_shape_mnk[0 if operand == "SFA" else 1]
    shared = tiled_mma.shape_mnk[2] // cute.size(held)

    def scaled(stride: IntTuple) -> IntTuple:
        if isinstance(stride, tuple):
            return tuple([scaled(d) for d in stride])
        return stride * shared if stride >= extent else stride

    return cute.make_layout(
        (threads, ((shared, held), rest)), stride=(thread_step, ((extent, scaled(step)), scaled(rest_step)))
    )


def __dir__() -> list[str]:
    return sorted(__all__)
