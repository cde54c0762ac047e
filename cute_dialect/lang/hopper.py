"""Helpers for Hopper GEMMs: wgmma instructions for operand types, shared memory layouts (names: CuTe DSL's)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cute_dialect.lang as cute
from cute_dialect.lang.utils import LayoutEnum

if TYPE_CHECKING:
    from cute_dialect.lang.machine.atoms import CopyAtom
    from cute_dialect.lang.machine.tiled_mma import TiledMma
    from cute_dialect.lang.machine.wgmma import SmemLayoutAtomKind
    from cute_dialect.lang.nvgpu.common import OperandMajorMode
    from cute_dialect.lang.nvgpu.warpgroup import OperandSource
    from cute_dialect.lang.values.dtypes import Numeric
    from cute_dialect.lang.values.layouts import ComposedLayout, Layout
    from cute_dialect.lang.values.signature_types import IntTuple, LayoutLike, Shape
    from cute_dialect.lang.values.tensors import Tensor


__all__ = [
    "compute_tile_shape_or_override", "get_smem_layout_atom", "get_smem_store_op", "major", "make_smem_layout_a",
    "make_smem_layout_b", "make_smem_layout_epi", "make_trivial_tiled_mma", "sm90_get_smem_store_op",
]  # fmt: skip


def major(tensor: Tensor) -> OperandMajorMode:
    """Return the major mode of an operand (rows, K)."""
    return LayoutEnum.from_tensor(tensor).sm90_mma_major_mode()


def make_trivial_tiled_mma(
    a_dtype: type[Numeric],
    b_dtype: type[Numeric],
    a_leading_mode: OperandMajorMode | str,
    b_leading_mode: OperandMajorMode | str,
    acc_dtype: type[Numeric],
    atom_layout_mnk: LayoutLike,
    tiler_mn: tuple[int, int],
    a_source: OperandSource | str | None = None,
) -> TiledMma:
    """Create the tiled MMA of the wgmma for these types. ``tiler_mn`` is (64, N) per instruction.

    Raises TypeError if there is no such instruction.
    """
    warpgroup = cute.nvgpu.warpgroup
    source = warpgroup.OperandSource.SMEM if a_source is None else a_source
    if a_dtype in (cute.Float16, cute.BFloat16):
        if a_dtype is not b_dtype:
            raise TypeError(
                f"make_trivial_tiled_mma: A and B must have the same 16-bit type, got {a_dtype!r} and {b_dtype!r}"
            )
        op = warpgroup.MmaF16BF16Op(a_dtype, acc_dtype, (*tiler_mn, 16), source, a_leading_mode, b_leading_mode)
    elif a_dtype in (cute.Float8E4M3FN, cute.Float8E5M2):
        op = warpgroup.MmaF8Op(a_dtype, b_dtype, acc_dtype, (*tiler_mn, 32), source, a_leading_mode, b_leading_mode)
    elif a_dtype in (cute.Int8, cute.Uint8):
        op = warpgroup.MmaI8Op(a_dtype, b_dtype, acc_dtype, (*tiler_mn, 32), source, a_leading_mode, b_leading_mode)
    elif a_dtype in (cute.TFloat32, cute.Float32):
        op = warpgroup.MmaTF32Op(acc_dtype, (*tiler_mn, 8), source, a_leading_mode, b_leading_mode)
    else:
        raise TypeError(
            f"make_trivial_tiled_mma: A must be f16, bf16, tf32, an 8-bit float or an 8-bit integer, got {a_dtype!r}"
        )
    return cute.make_tiled_mma(cute.make_mma_atom(op), atom_layout_mnk)


def get_smem_layout_atom(layout: LayoutEnum, element_type: type[Numeric], major_mode_size: int) -> SmemLayoutAtomKind:
    """Return the shared memory layout kind with the widest swizzle whose row size divides the contiguous extent."""
    kinds = cute.nvgpu.warpgroup.SmemLayoutAtomKind
    row = layout is LayoutEnum.ROW_MAJOR
    bits = major_mode_size * element_type.width
    for swizzle, of_k, of_mn in (
        (1024, kinds.K_SW128, kinds.MN_SW128), (512, kinds.K_SW64, kinds.MN_SW64), (256, kinds.K_SW32, kinds.MN_SW32)
    ):  # fmt: skip
        if bits % swizzle == 0:
            return of_k if row else of_mn
    return kinds.K_INTER if row else kinds.MN_INTER


def make_smem_layout_a(
    a_layout: LayoutEnum, tile_shape_mnk: Shape, a_dtype: type[Numeric], num_stages: int
) -> Layout | ComposedLayout:
    """Return the swizzled layout of A's stages, (M, K, stages)."""
    return _staged(a_layout, (tile_shape_mnk[0], tile_shape_mnk[2]), a_dtype, num_stages)


def make_smem_layout_b(
    b_layout: LayoutEnum, tile_shape_mnk: Shape, b_dtype: type[Numeric], num_stages: int
) -> Layout | ComposedLayout:
    """Return the swizzled layout of B's stages, (N, K, stages)."""
    return _staged(b_layout, (tile_shape_mnk[1], tile_shape_mnk[2]), b_dtype, num_stages)


def make_smem_layout_epi(
    epi_dtype: type[Numeric], epi_layout: LayoutEnum, epi_tile: Shape, epi_stage: int, smem_trg_shape: Shape = None,
    smem_order: IntTuple = None,
) -> Layout | ComposedLayout:  # fmt: skip
    """Return the swizzled layout of the staging buffers of C, by default ``(M, N, stages)``.

    Args:
        epi_dtype: the element type of C.
        epi_layout: the layout of C.
        epi_tile: the epilogue tile (M, N).
        epi_stage: the number of stages.
        smem_trg_shape: another shape to fill with the swizzle atom; its first two modes are those of the tile.
        smem_order: the order in which the modes are filled; by default the contiguous mode of the tile is last.
    """
    return _staged(epi_layout, tuple(epi_tile), epi_dtype, epi_stage, smem_trg_shape, smem_order)


def _staged(layout: LayoutEnum, tile: Any, dtype: Any, stages: int, shape: Any = None, order: Any = None) -> Any:
    row = layout is LayoutEnum.ROW_MAJOR
    kind = get_smem_layout_atom(layout, dtype, tile[1] if row else tile[0])
    atom = cute.nvgpu.warpgroup.make_smem_layout_atom(kind, dtype)
    shape = (*tile, stages) if shape is None else shape
    return cute.tile_to_shape(atom, shape, order=((0, 1, 2) if row else (1, 0, 2)) if order is None else order)


def sm90_get_smem_store_op(
    layout_d: LayoutEnum, elem_ty_d: type[Numeric], elem_ty_acc: type[Numeric], *others: Any
) -> CopyAtom:
    """Return the copy atom that stores accumulators to shared memory: stmatrix for 16-bit elements."""
    if elem_ty_d.width == 16 and elem_ty_acc.width == 32:
        return cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(layout_d.is_m_major_c(), 4), elem_ty_d)
    return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), elem_ty_d)


get_smem_store_op = sm90_get_smem_store_op


def compute_tile_shape_or_override(
    tile_shape_mnk: Shape, element_type: type[Numeric], *, is_cooperative: bool = False, epi_tile_override: Shape = None
) -> Shape:
    """Return the epilogue tile: 64 rows per warpgroup, and 32 columns (64 for 8-bit elements)."""
    if epi_tile_override is not None:
        return epi_tile_override
    rows = min(128 if is_cooperative else 64, cute.size(tile_shape_mnk, mode=[0]))
    columns = min(64 if element_type.width == 8 and not is_cooperative else 32, cute.size(tile_shape_mnk, mode=[1]))
    return rows, columns


def __dir__() -> list[str]:
    return sorted(__all__)
