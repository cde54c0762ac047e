"""Number of visible pairs in each block of a mask: ``mask_mod`` evaluated for every query and key, without a mask in
memory.

A warp has a block. Its lanes evaluate the function for adjacent keys, and add up the visible ones.

    launch(counts, queries, keys, m, n, *captured)    # counts (key blocks, query blocks, H, B)
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.score_graph import Scored, ScoreGraph, captured_types
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang.values.signature_types import Int

_WARPS = 4


@cute.jit
def launch(
    counts: cute.Tensor, queries: cute.Int32, keys: cute.Int32, m: cute.Int32, n: cute.Int32,
    captured: tuple[Any, ...] | None, functions: cute.Constexpr[ScoreGraph],
):  # fmt: skip
    """Launch one warp per block of ``m`` queries and ``n`` keys."""
    block_counts(counts, queries, keys, m, n, captured, functions).launch(
        grid=cute.ceil_div(cute.size(counts), _WARPS), block=32 * _WARPS
    )


@cute.kernel(name="block_counts")
def block_counts(
    counts: cute.Tensor, queries: Int, keys: Int, m: Int, n: Int, captured: tuple[Any, ...] | None,
    functions: cute.Constexpr[ScoreGraph],
):  # fmt: skip
    """Count the visible pairs of this warp's block."""
    at = cute.arch.block_idx().x * _WARPS + cute.arch.warp_idx()
    if at < cute.size(counts):
        line, column = divmod(at, counts.shape[0])
        line, row = divmod(line, counts.shape[1])
        batch, head = divmod(line, counts.shape[2])
        graph, lane = Scored(functions, captured), cute.arch.lane_idx()
        base = {"matrix": batch, "head": head, "queries": queries, "keys": keys}
        total = cute.Int32(0)
        for query in range(row * m, cute.min(row * m + m, queries)):
            for key in range(column * n + lane, cute.min(column * n + n, keys), 32):
                here = {**base, "row": query, "column": key}
                total = total + (cute.Int32(1) if graph.value("visible", None, here, {}) else cute.Int32(0))
        total = cute.arch.warp_reduction_sum(total)
        if lane == 0:
            counts[column, row, head, batch] = total


@printed
def block_counts_text(functions: ScoreGraph) -> cute.Compiled:
    """Trace the kernel ``@block_counts`` and its host function ``@launch``."""
    counts = cute.Tensor[cute.Int32, "(?,?,?,?):(1,?,?,?)"]
    numbers = [cute.Int32] * 4
    return cute.trace(launch, counts, *numbers, captured_types(functions), functions=functions)
