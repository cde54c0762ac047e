"""Texts of tiled copies: which threads move which values of a tile.

>>> from cute_dialect.algebra.values import Layout
>>> tile_copy("!cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>", (128, 32), 128, 8, contiguous=1)
'!cute.tiled_copy<!cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>, layout_copy_tv = <"((4,32),8):((256,1),32)">, tiler_mn = <"[32:1;32:1]">>'
"""  # noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.algebra import text
from cute_dialect.algebra.leaf import AlgebraError

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.cute_nvgpu.tiled_mma.types import TiledMmaType

__all__ = ["mma_copy", "tile_copy"]


def tile_copy(atom: str, tile: tuple[int, int], threads: int, vector: int, *, contiguous: int) -> str:
    """Make a tiled copy of runs of ``vector`` elements along mode ``contiguous`` of a tile, threads side by side along
    it.

    ``tile``: extents of the tile, whose other mode is covered in as many steps as it takes.  Raises AlgebraError where
    threads and tile do not fit.
    """
    along, across = tile[contiguous], tile[1 - contiguous]
    runs = along // vector
    if along % vector:
        raise AlgebraError(f"expected a multiple of {vector} elements along mode {contiguous} of the tile, got {along}")
    if runs >= threads:
        # One row takes several steps.
        if runs % threads:
            raise AlgebraError(f"expected {along} elements to be a multiple of {threads} threads of {vector}")
        step = {contiguous: threads * vector, 1 - contiguous: 1}
        tv = f"({threads},{vector}):({vector},1)"
    else:
        if threads % runs or across % (threads // runs):
            raise AlgebraError(f"expected {threads} threads to take whole rows of {runs} runs of the tile {tile}")
        rows = threads // runs
        step = {contiguous: along, 1 - contiguous: rows}
        if contiguous == 0:
            tv = f"(({runs},{rows}),{vector}):(({vector},{along}),1)"
        else:
            tv = f"(({runs},{rows}),{vector}):(({rows * vector},1),{rows})"
    return f'!cute.tiled_copy<{atom}, layout_copy_tv = <"{tv}">, tiler_mn = <"[{step[0]}:1;{step[1]}:1]">>'


def mma_copy(atom: str, mma: TiledMmaType, operand: str) -> str:
    """Make a tiled copy that moves exactly the fragments of operand A, B or C of a tiled MMA.

    ``atom``: the text of a copy atom.  Its thread-value layout is the MMA's, its tile that of the operand.
    """
    from cute_dialect.algebra.tiled_mma import OPERAND_MODES

    row, tiled = mma.atom.row, mma.tiling(operand)
    tv = tiled.layout_tv(operand, row.layout(operand))
    i, j = OPERAND_MODES[operand]
    extents = f"[{tiled.tile_size[i]}:1;{tiled.tile_size[j]}:1]"
    return f'!cute.tiled_copy<{atom}, layout_copy_tv = <"{text.to_text(tv)}">, tiler_mn = <"{extents}">>'
