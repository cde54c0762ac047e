"""Choice of the kernel of ``op.mm_packed``: the tile, split-K slices and stages.

With few rows of x the bytes of the weights bound the kernel. All SMs must load at once, hence the blocks of a cluster
share the K of a tile until there is a block for each place on an SM. With many rows, unpacking the weights first and
an ordinary GEMM are faster.

>>> choose_config(1, 8192, 8192, Format("ui4", 128, "bf16", False), "bf16", "bf16").name
'mixed-ui4-g128-bf16-bf16-bf16-128x8-q10-p4-h'
"""

from __future__ import annotations

from functools import lru_cache

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.gemm.mixed_input import DEPTH, MixedConfig
from cute_dialect.op.problems.packed_weights import Format

UNPACKED_ROWS = 1024
"""Rows of x from which on the weights are unpacked for an ordinary GEMM."""

_MOST_STAGES = 24

_LEAST_STEPS = 4
"""Steps of K, of 128 each, of a split-K slice."""


@lru_cache(maxsize=1024)
def choose_config(
    m: int, n: int, k: int, format: Format, element: str, output: str, bias: bool = False, sms: int = 132
) -> MixedConfig:
    """Return the configuration for ``m`` rows of x and ``n`` x ``k`` weights."""
    columns = next((size for size in (8, 16, 32, 64) if m <= size), 128)
    blocks = 2 if columns <= 32 else 1
    steps = -(-k // DEPTH)
    c = MixedConfig(*format, element=element, output=output, columns=columns, hint=m <= columns, bias=bias)
    tiles = -(-n // c.rows) * -(-m // columns)
    parts = 1
    while parts < 8 and tiles * parts * 2 <= sms * blocks and steps >= 2 * parts * _LEAST_STEPS:
        parts *= 2
    c = c._replace(parts=parts)
    return c._replace(stages=_stages(c, blocks, -(-steps // parts)))


def _stages(c: MixedConfig, blocks: int, steps: int) -> int:
    """Return the stages that fit if ``blocks`` blocks share an SM; no more than there are steps."""
    limit = DEFAULT_TARGET.shared
    room = (limit - 1024 * (blocks - 1)) // blocks - 1024 - 2048 * c.owned * (c.parts - 1)
    return max(2, min(room // (c.stage_bytes + 16), steps, _MOST_STAGES))
