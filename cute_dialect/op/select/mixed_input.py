"""Choice of the kernel of ``op.mm_packed``: the tile, split-K slices and stages.

With few rows of x the bytes of the weights bound the kernel. All SMs must load at once, hence the blocks of a cluster
share the K of a tile while the grid has fewer blocks than fit. With many rows, unpacking the weights first and an
ordinary GEMM are faster. The table is the fastest of 108 configurations on an H200, for 1 to 2048 rows and weights of
8192 x 8192 and 14336 x 4096. More stages than these delay the first MMA: with 16 instead of 6, a row takes 18.4 us
instead of 17.1.

>>> choose_config(1, 8192, 8192, Format("ui4", 128, "bf16", False), "bf16", "bf16").name
'mixed-ui4-g128-bf16-bf16-bf16-128x8-q7-p2-h'
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.gemm.mixed_input import DEPTH, MixedConfig
from cute_dialect.op.problems.packed_weights import Format

UNPACKED_ROWS = 1536
"""Rows of x from which on the weights are unpacked for an ordinary GEMM. On an H200, 8192 x 8192 weights take 211 us
instead of 231 with 1024 rows, and 414 us instead of 394 with 2048."""


class _Tile(NamedTuple):
    """Fastest tile for up to ``columns`` rows of x."""

    columns: int
    rows: int
    blocks: int  # blocks per SM, which determine the stages
    waves: int  # blocks per SM up to which K is split


_TILES = (_Tile(8, 128, 3, 1), _Tile(16, 128, 2, 1), _Tile(32, 128, 2, 1), _Tile(64, 64, 2, 2), _Tile(128, 128, 1, 1))

_LEAST_STEPS = 4
"""Steps of K, of 128 each, of a split-K slice."""


@lru_cache(maxsize=1024)
def choose_config(
    m: int, n: int, k: int, format: Format, element: str, output: str, bias: bool = False, sms: int = 132
) -> MixedConfig:
    """Return the configuration for ``m`` rows of x and ``n`` x ``k`` weights."""
    tile = next((t for t in _TILES if m <= t.columns), _TILES[-1])
    steps = -(-k // DEPTH)
    tiles = -(-n // tile.rows) * -(-m // tile.columns)
    parts = 1
    while parts < 8 and tiles * parts * 2 <= sms * tile.waves and steps >= 2 * parts * _LEAST_STEPS:
        parts *= 2
    c = MixedConfig(
        *format, element=element, output=output, rows=tile.rows, columns=tile.columns, parts=parts,
        hint=m <= tile.columns, bias=bias,
    )  # fmt: skip
    return c._replace(stages=_stages(c, tile.blocks, -(-steps // parts)))


def _stages(c: MixedConfig, blocks: int, steps: int) -> int:
    """Return the stages that fit if ``blocks`` blocks share an SM; no more than there are steps.

    Large stages, of which fewer than four would fit, get an SM of their own.
    """
    reserved = 2 * DEFAULT_TARGET.reserved_shared + 2048 * c.owned * (c.parts - 1)
    shared, alone = (
        (DEFAULT_TARGET.sm_shared // sharing - reserved) // (c.stage_bytes + 16) for sharing in (blocks, 1)
    )
    return max(2, min(max(shared, min(4, alone)), steps))
