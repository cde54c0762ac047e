"""Layouts of scale factors of block-scaled MMAs of Blackwell (names: CuTe DSL's).

A factor scales ``vec`` consecutive elements along K. Blocks of 128 rows x 4 factors have 512 consecutive bytes, as for
torch and cuBLAS: the factor ``s`` of row ``m`` is byte ``16 * (m % 32) + 4 * (m // 32) + s``. The layouts here map
elements of A or B to factors, so that elements with a common factor have a mode of stride 0. ``cute.filter_zeros``
removes it::

    >>> import cute_dialect.lang as cute
    >>> tile_atom_to_shape_SF((256, 512), 16)
    (((32,4),2),((16,4),8)):(((16,4),4096),((0,1),512))
    >>> cute.filter_zeros(tile_atom_to_shape_SF((256, 512), 16))
    (((32,4),2),((1,4),8)):(((16,4),4096),((0,1),512))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cute_dialect.lang as cute
from cute_dialect.arch.tmem import strides
from cute_dialect.lang.machine.tiled_mma import in_tensor_memory
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.layouts import FactorLayout

if TYPE_CHECKING:
    from cute_dialect.lang.machine.tiled_mma import TiledMma
    from cute_dialect.lang.values.layouts import Layout
    from cute_dialect.lang.values.signature_types import LayoutLike, Shape


__all__ = [
    "make_smem_layout_sfa",
    "make_smem_layout_sfb",
    "make_tmem_layout_sfa",
    "make_tmem_layout_sfb",
    "sm120_make_smem_layout_sfa",
    "sm120_make_smem_layout_sfb",
    "tile_atom_to_shape_SF",
]

ROWS, FACTORS = 128, 4
"""Rows and factors of a block."""


def tile_atom_to_shape_SF(Tensor_shape: Shape, sf_vec_size: int) -> Layout:
    """Return the layout of the scale factors of a tensor (M, K) or (M, K, L), ((AtomM, RestM), (AtomK, RestK), L).

    Blocks are ordered along K first. M and K are rounded up to whole blocks.

    Args:
        Tensor_shape: the shape of the tensor in elements, static or dynamic.
        sf_vec_size: elements along K that share a factor: 16 or 32, or of an MMA with a sparse A 32 or 64.
    """
    if not isinstance(Tensor_shape, tuple) or len(Tensor_shape) not in (2, 3):
        raise KernelTypeError(
            "F251",
            f"tile_atom_to_shape_SF: Tensor_shape must be (M, K) or (M, K, L) of the tensor in elements, got "
            f"{Tensor_shape!r}",
        )
    if sf_vec_size not in (16, 32, 64):
        raise KernelTypeError("F251", f"tile_atom_to_shape_SF: sf_vec_size must be 16, 32 or 64, got {sf_vec_size!r}")
    m, k, *batches = Tensor_shape
    rest_m, rest_k = cute.ceil_div(m, ROWS), cute.ceil_div(k, FACTORS * sf_vec_size)
    block = ROWS * FACTORS
    shape = (((32, 4), rest_m), ((sf_vec_size, 4), rest_k), *batches)
    stride = (((16, 4), block * rest_k), ((0, 1), block), *([block * rest_m * rest_k] if batches else []))
    return cute.make_layout(shape, stride=stride)


def make_smem_layout_sfa(tiled_mma: TiledMma, mma_tiler_mnk: Shape, sf_vec_size: int, num_stages: int) -> Layout:
    """Return the layout of stages of scale factors of A in shared memory, (MMA, MMA_M, MMA_K, stages), in factors.

    Args:
        tiled_mma: an MMA with block scales.
        mma_tiler_mnk: the tile (M, N, K) of the MMA, in elements.
        sf_vec_size: elements along K that share a factor.
        num_stages: number of stages.
    """
    return _layout(tiled_mma, mma_tiler_mnk, sf_vec_size, "SFA", num_stages)


def make_smem_layout_sfb(tiled_mma: TiledMma, mma_tiler_mnk: Shape, sf_vec_size: int, num_stages: int) -> Layout:
    """Return the layout of stages of scale factors of B in shared memory; see :func:`make_smem_layout_sfa`.

    N is rounded up to 128. Each block of a pair has the factors of all of N.
    """
    return _layout(tiled_mma, mma_tiler_mnk, sf_vec_size, "SFB", num_stages)


def make_tmem_layout_sfa(
    tiled_mma: TiledMma, mma_tiler_mnk: Shape, sf_vec_size: int, smem_layout: LayoutLike
) -> Layout:
    """Return the layout of the scale factors of A in tensor memory, (MMA, MMA_M, MMA_K), in factors.

    Args:
        tiled_mma: an MMA with block scales.
        mma_tiler_mnk: the tile (M, N, K) of the MMA, in elements.
        sf_vec_size: elements along K that share a factor.
        smem_layout: the layout of a stage in shared memory, whose modes are those of the result.
    """
    return _tmem(tiled_mma, mma_tiler_mnk, sf_vec_size, "SFA", smem_layout)


def make_tmem_layout_sfb(
    tiled_mma: TiledMma, mma_tiler_mnk: Shape, sf_vec_size: int, smem_layout: LayoutLike
) -> Layout:
    """Return the layout of the scale factors of B in tensor memory; see :func:`make_tmem_layout_sfa`."""
    return _tmem(tiled_mma, mma_tiler_mnk, sf_vec_size, "SFB", smem_layout)


def sm120_make_smem_layout_sfa(tiled_mma: TiledMma, tile_shape_mnk: Shape, sf_vec_size: int, num_stages: int) -> Layout:
    """Return the layout of stages of scale factors of A in shared memory for MMAs of warps, (M, K, stages).

    M and K are those of the tile in elements of A; elements that share a factor have a mode of stride 0.

    Args:
        tiled_mma: a tiled MMA of warps with block scales.
        tile_shape_mnk: the tile (M, N, K) of the block. M must be a multiple of 128, K of 4 factors.
        sf_vec_size: elements along K that share a factor.
        num_stages: number of stages.
    """
    return _sm120(tiled_mma, tile_shape_mnk, sf_vec_size, "SFA", num_stages)


def sm120_make_smem_layout_sfb(tiled_mma: TiledMma, tile_shape_mnk: Shape, sf_vec_size: int, num_stages: int) -> Layout:
    """Return the layout of stages of scale factors of B in shared memory; see :func:`sm120_make_smem_layout_sfa`.

    N of the tile is rounded up to 128.
    """
    return _sm120(tiled_mma, tile_shape_mnk, sf_vec_size, "SFB", num_stages)


def _sm120(tiled_mma: TiledMma, tile: Shape, vec: int, operand: str, stages: int) -> Layout:
    what = f"the layout of {operand}"
    if not tiled_mma.atom.type.has_scales or in_tensor_memory(tiled_mma.atom):
        raise KernelTypeError("F251", f"{what} needs an MMA of warps with block scales, got {tiled_mma!r}")
    k = tiled_mma.shape_mnk[2]
    columns = tiled_mma.atom.type.row.tile(operand)[1]
    if k != vec * columns:
        raise KernelTypeError("F251", f"{what}: sf_vec_size is {vec}; {tiled_mma!r} needs {k // columns}")
    m, n, depth = tile
    if (operand == "SFA" and m % ROWS) or depth % (FACTORS * vec):
        raise KernelTypeError(
            "F251", f"{what}: the tile is {m} x {n} x {depth}; M must be a multiple of {ROWS}, K of {FACTORS * vec}"
        )
    blocks, steps = cute.ceil_div(m if operand == "SFA" else n, ROWS), depth // (FACTORS * vec)
    block = ROWS * FACTORS
    shape = (((32, 4), blocks), ((vec, columns), FACTORS // columns, steps), stages)
    stride = (((16, 4), block), ((0, 1), columns, block * blocks), block * blocks * steps)
    return cute.make_layout(shape, stride=stride)


def _tmem(tiled_mma: TiledMma, tiler: Shape, vec: int, operand: str, smem_layout: LayoutLike) -> Layout:
    made = FactorLayout(_layout(tiled_mma, tiler, vec, operand, None).payload, operand)
    if cute.shape(smem_layout) != made.shape:
        raise KernelTypeError(
            "F251",
            f"make_tmem_layout_{operand.lower()}: the layout of a stage in shared memory must have the shape "
            f"{made.shape}, got {smem_layout}",
            hint=f"pass a stage of make_smem_layout_{operand.lower()}",
        )
    return made


def _layout(tiled_mma: TiledMma, tiler: Shape, vec: int, operand: str, stages: int | None) -> Layout:
    """Return the layout of scale factors in shared memory, or in tensor memory without stages."""
    what = f"the layout of {operand}"
    if not tiled_mma.atom.type.has_scales:
        raise KernelTypeError("F251", f"{what} needs an MMA with block scales, got {tiled_mma!r}")
    if not isinstance(tiler, tuple) or len(tiler) != 3:
        raise KernelTypeError("F251", f"{what}: mma_tiler_mnk must be (M, N, K) in elements, got {tiler!r}")
    m, n, k = tiled_mma.shape_mnk
    own, columns = tiled_mma.atom.type.factors_of(operand)
    if k != vec * columns:
        raise KernelTypeError("F251", f"{what}: sf_vec_size is {vec}; {tiled_mma!r} needs {k // columns}")
    extent, unit = (tiler[0], m) if operand == "SFA" else (tiler[1], n)
    count = cute.ceil_div(extent, unit)
    per_step, steps = FACTORS // columns, cute.ceil_div(tiler[2], vec * FACTORS)
    groups = cute.ceil_div(own, ROWS)  # blocks of one instruction
    shape = (((32, 4, groups), (vec, columns)), count, (per_step, steps))
    lane, word = strides(8)
    row, four, block = (16, 4, ROWS * FACTORS) if stages is not None else (lane, word, 4 * word)
    total = block * groups * count
    stride = (((row, four, block), (0, 1)), block * groups, (columns, total))
    if stages is None:
        return cute.make_layout(shape, stride=stride)
    return cute.make_layout((*shape, stages), stride=(*stride, total * steps))


def __dir__() -> list[str]:
    return sorted(__all__)
