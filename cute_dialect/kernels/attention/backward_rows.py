"""Row kernels of the backward of attention: statistics of rows before the main kernel, conversion of dq after it.

Both have one block per tile of queries and head. ``stats`` holds, for each tile, the log-sum-exp of its queries times
``log2(e)`` and then their ``delta``::

    delta[i] = sum of dO[i] * O[i] over the head dimension, minus dlse[i]

Queries that see no key, and rows of the tile past the end of the queries, have a log-sum-exp of +inf. Their
probabilities, and thus their gradients, are 0.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.kernels.attention.backward_tiles import query_place
from cute_dialect.kernels.attention.result import packed_words, row_pieces, store_row
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang.values.signature_types import Int

LOG2_E = 1.4426950408889634

DEFAULT = BackwardConfig()

_THREADS = 256


class Workspaces(NamedTuple):
    """Workspaces of the backward in global memory."""

    stats: cute.Tensor  # row statistics, (heads, tiles, 2 * tile_m)
    dq_sum: cute.Tensor  # accumulator of dq, (heads, tiles, tile_m * head)
    turns: cute.Tensor | None  # counters of blocks, (heads, tiles, consumers); None unless the order is fixed


def matrix_type(c: BackwardConfig) -> object:
    """Return the annotation of a matrix (S, D, H, B)."""
    return cute.Tensor[number(c.element), "(?,?,?,?):(?{div=8},1,?{div=8},?{div=8})", "align<16>"]


def rows_type() -> object:
    """Return the annotation of f32 numbers per row, (S, H, B)."""
    return cute.Tensor[cute.Float32, "(?,?,?):(?,?,?)"]


def stats_type(c: BackwardConfig) -> object:
    """Return the annotation of the row statistics, (heads, tiles, 2 * tile_m)."""
    n = 2 * c.tile_m
    return cute.Tensor[cute.Float32, f"(?,?,{n}):(?{{i64 div={n}}},{n},1)", "align<16>"]


def dq_sum_type(c: BackwardConfig) -> object:
    """Return the annotation of the accumulator of dq, (heads, tiles, tile_m * head)."""
    n = c.tile_m * c.head
    return cute.Tensor[cute.Float32, f"(?,?,{n}):(?{{i64 div={n}}},{n},1)", "align<16>"]


def turns_type(c: BackwardConfig) -> object:
    """Return the annotation of the counters of blocks, (heads, tiles, consumers), or None."""
    n = c.consumers
    return cute.Tensor[cute.Int32, f"(?,?,{n}):(?,{n},1)"] if c.deterministic else None


def begins_type(c: BackwardConfig) -> object:
    """Return the annotation of the boundaries of packed sequences, or None."""
    return cute.Tensor[cute.Int32, "?:1"] if c.packed else None


# ---------------------------------------------------------------------------------------------------------- statistics


@cute.jit
def launch_delta(
    out: cute.Tensor, dout: cute.Tensor, lse: cute.Tensor, dlse: cute.Tensor | None, stats: cute.Tensor,
    dq_sum: cute.Tensor, turns: cute.Tensor | None, of_queries: cute.Tensor | None, queries: cute.Int32,
    config: cute.Constexpr[BackwardConfig] = DEFAULT,
):  # fmt: skip
    """Launch one block per tile of queries and head."""
    c = config
    c.check()
    batch = cute.size(of_queries) - 1 if c.packed else out.shape[3]
    tiles = cute.ceil_div(queries, c.tile_m)
    units = tiles * out.shape[2] * batch
    delta(out, dout, lse, dlse, Workspaces(stats, dq_sum, turns), of_queries, queries, tiles, config).launch(
        grid=units, block=_THREADS, pdl=True
    )


@cute.kernel(name="delta")
def delta(
    out: cute.Tensor, dout: cute.Tensor, lse: cute.Tensor, dlse: cute.Tensor | None, spaces: Workspaces,
    of_queries: cute.Tensor | None, queries: Int, tiles: Int, config: cute.Constexpr[BackwardConfig],
):  # fmt: skip
    """Compute the statistics of a tile of queries, and clear its part of ``dq_sum``."""
    c, (stats, dq_sum, turns) = config, spaces
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    thread = cute.arch.thread_idx().x
    head, batch, tile = _unit(out.shape[2], tiles)
    where = query_place(c, (of_queries,), queries, batch)
    begin = tile * c.tile_m
    if begin < where.queries:
        slot = where.tile + tile
        lanes = c.head // 8  # threads of a row, with eight elements each
        column, first = thread % lanes, thread // lanes
        for i in cute.range_constexpr(c.tile_m * lanes // _THREADS):
            at = i * (_THREADS // lanes) + first
            row = where.query_start + begin + at
            total = cute.Float32(0.0)
            if (begin + at < where.queries) & (column * 8 < out.shape[1]):
                x, y = cute.make_rmem_tensor(8, out.element_type), cute.make_rmem_tensor(8, out.element_type)
                for source, target in ((out, x), (dout, y)):
                    line = source[row, None, head, where.matrix]
                    cute.autovec_copy(cute.local_tile(line, (8,), (column,)), target)
                for j in cute.range_constexpr(8):
                    total = cute.math.fma(x[j].to(cute.Float32), y[j].to(cute.Float32), total)
            for power in cute.range_constexpr(lanes.bit_length() - 1):
                total = total + cute.arch.shuffle_sync_bfly(total, 1 << power)
            if column == 0:
                log = cute.Float32(float("inf"))
                if begin + at < where.queries:
                    log = lse[row, head, where.matrix]
                    log = cute.Float32(float("inf")) if log == float("-inf") else log * LOG2_E
                    if c.dlse:
                        total = total - dlse[row, head, where.matrix]
                    total = cute.Float32(0.0) if log == float("inf") else total
                stats[head, slot, at] = log
                stats[head, slot, c.tile_m + at] = total
        zeros = cute.make_rmem_tensor(4, cute.Float32)
        zeros.fill(0.0)
        line = dq_sum[head, slot, None]
        for i in cute.range_constexpr(c.tile_m * c.head // 4 // _THREADS):
            cute.autovec_copy(zeros, cute.local_tile(line, (4,), (i * _THREADS + thread,)))
        if c.deterministic and thread < c.consumers:
            turns[head, slot, thread] = 0


def _unit(heads: Int, tiles: Int) -> tuple[Int, Int, Int]:
    """Return this block's head, sequence and tile of queries."""
    line, tile = divmod(cute.arch.block_idx().x, cute.assume(tiles, range=(1, None)))
    batch, head = divmod(line, cute.assume(heads, range=(1, None)))
    return head, batch, tile


@printed
def delta_text(config: BackwardConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@delta`` and its host function ``@launch_delta``."""
    c = config or DEFAULT
    matrix, rows = matrix_type(c), rows_type()
    return cute.trace(
        launch_delta, matrix, matrix, rows, rows if c.dlse else None, stats_type(c), dq_sum_type(c), turns_type(c),
        begins_type(c), cute.Int32, config=c,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------ dq


@cute.jit
def launch_dq(
    dq_sum: cute.Tensor, dq: cute.Tensor, of_queries: cute.Tensor | None, queries: cute.Int32, scale: cute.Float32,
    config: cute.Constexpr[BackwardConfig] = DEFAULT,
):  # fmt: skip
    """Launch one block per tile of queries and head."""
    c = config
    c.check()
    batch = cute.size(of_queries) - 1 if c.packed else dq.shape[3]
    tiles = cute.ceil_div(queries, c.tile_m)
    convert_dq(dq_sum, dq, of_queries, queries, tiles, scale, config).launch(
        grid=tiles * dq.shape[2] * batch, block=128 * c.consumers, pdl=True
    )


@cute.kernel(name="convert_dq")
def convert_dq(
    dq_sum: cute.Tensor, dq: cute.Tensor, of_queries: cute.Tensor | None, queries: Int, tiles: Int,
    scale: cute.Float32, config: cute.Constexpr[BackwardConfig],
):  # fmt: skip
    """Scale and round a tile of ``dq_sum``. Its order is that of the accumulators of the main kernel."""
    c = config
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    thread, group = cute.arch.thread_idx().x % 128, cute.arch.warpgroup_idx()
    head, batch, tile = _unit(dq.shape[2], tiles)
    where = query_place(c, (of_queries,), queries, batch)
    begin = tile * c.tile_m
    if begin < where.queries:
        line = dq_sum[head, where.tile + tile, None]
        sums = cute.make_rmem_tensor((4, c.dq_values // 4), cute.Float32)
        for i in cute.range_constexpr(c.dq_values // 4):
            part = cute.local_tile(line, (4,), ((group * (c.dq_values // 4) + i) * 128 + thread,))
            cute.autovec_copy(part, sums[None, i])
        for i in cute.range_constexpr(c.dq_values):
            sums[i] = sums[i] * scale
        columns, lane, warp = c.dq_values * 2, cute.arch.lane_idx(), cute.arch.warp_idx()
        words = packed_words(sums, columns, dq.element_type)
        # The consumers split the queries of a tile, or its columns.
        row, first = (warp, 0) if c.tile_m == 128 else (warp % 4, warp // 4 * (columns // 32))
        for half in cute.range_constexpr(2):
            pieces = row_pieces(words, half, columns, lane % 4)
            at = begin + row * 16 + lane // 4 + 8 * half
            if at < where.queries:
                store_row(dq[where.query_start + at, None, head, where.matrix], pieces, lane % 4, first)


@printed
def dq_text(config: BackwardConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@convert_dq`` and its host function ``@launch_dq``."""
    c = config or DEFAULT
    return cute.trace(launch_dq, dq_sum_type(c), matrix_type(c), begins_type(c), cute.Int32, cute.Float32, config=c)
