"""Row kernels of the backward of attention: statistics of rows before the main kernel, conversion of sums after it.

Both have one block per tile of queries and head. If blocks of the main kernel share a tile of keys, the second kernel
has others for the tiles of dk and dv. ``stats`` holds, for each tile, the log-sum-exp of its queries times
``log2(e)`` and then their ``delta``::

    delta[i] = sum of dO[i] * O[i] over the head dimension, minus dlse[i]

Queries that see no key, and rows of the tile past the end of the queries, have a log-sum-exp of +inf. Their
probabilities, and thus their gradients, are 0. The words of
:attr:`.backward_config.BackwardConfig.query_reads` follow, and then the flags of
:attr:`.backward_config.BackwardConfig.has_row_flags`.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.kernels.attention.backward_tiles import first_key_tile, query_place
from cute_dialect.kernels.attention.result import packed_words, row_pieces, store_row
from cute_dialect.kernels.attention.score_graph import Scored, Values, captured_types
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang.values.signature_types import Int

LOG2_E = 1.4426950408889634

DEFAULT = BackwardConfig()

_THREADS = 256

_FLAGGED = 128
"""Threads that read the arrays of functions of scores: one for each query, and a warp for each flag."""


class Workspaces(NamedTuple):
    """Workspaces of the backward in global memory."""

    stats: cute.Tensor  # row statistics, (heads, tiles, c.stats_values)
    dq_sum: cute.Tensor  # accumulator of dq, (heads, tiles, tile_m * head)
    turns: cute.Tensor | None  # counters of blocks, (heads, tiles, consumers); None unless the order is fixed
    # Accumulators of dk and then dv, (2 * key heads, tiles, tile_n * head); None unless blocks share tiles of keys.
    kv_sum: cute.Tensor | None
    taken: cute.Tensor | None = None  # counter of tiles, (1,), if the configuration is dynamic


def matrix_type(c: BackwardConfig) -> object:
    """Return the annotation of a matrix (S, D, H, B)."""
    return cute.Tensor[number(c.element), "(?,?,?,?):(?{div=8},1,?{div=8},?{div=8})", "align<16>"]


def rows_type() -> object:
    """Return the annotation of f32 numbers per row, (S, H, B)."""
    return cute.Tensor[cute.Float32, "(?,?,?):(?,?,?)"]


def stats_type(c: BackwardConfig) -> object:
    """Return the annotation of the row statistics, (heads, tiles, c.stats_values)."""
    n = c.stats_values
    return cute.Tensor[cute.Float32, f"(?,?,{n}):(?{{i64 div={n}}},{n},1)", "align<16>"]


def dq_sum_type(c: BackwardConfig) -> object:
    """Return the annotation of the accumulator of dq, (heads, tiles, tile_m * head)."""
    n = c.tile_m * c.head
    return cute.Tensor[cute.Float32, f"(?,?,{n}):(?{{i64 div={n}}},{n},1)", "align<16>"]


def kv_sum_type(c: BackwardConfig) -> object:
    """Return the annotation of the accumulators of dk and dv, (2 * key heads, tiles, tile_n * head), or None."""
    n = c.tile_n * c.head
    return cute.Tensor[cute.Float32, f"(?,?,{n}):(?{{i64 div={n}}},{n},1)", "align<16>"] if c.split else None


def turns_type(c: BackwardConfig) -> object:
    """Return the annotation of the counters of blocks, (heads, tiles, consumers), or None."""
    n = c.consumers
    return cute.Tensor[cute.Int32, f"(?,?,{n}):(?,{n},1)"] if c.deterministic else None


def taken_type(c: BackwardConfig) -> object:
    """Return the annotation of the counter of tiles, or None."""
    return cute.Tensor[cute.Int32, "1:1"] if c.dynamic else None


def begins_type(c: BackwardConfig) -> object:
    """Return the annotation of the boundaries of packed sequences, or None."""
    return cute.Tensor[cute.Int32, "?:1"] if c.packed else None


# ---------------------------------------------------------------------------------------------------------- statistics


@cute.jit
def launch_delta(
    out: cute.Tensor, dout: cute.Tensor, lse: cute.Tensor, dlse: cute.Tensor | None, stats: cute.Tensor,
    dq_sum: cute.Tensor, turns: cute.Tensor | None, kv_sum: cute.Tensor | None, taken: cute.Tensor | None,
    of_queries: cute.Tensor | None, queries: cute.Int32, keys: cute.Int32 | None = None,
    captured: tuple[Any, ...] | None = None, config: cute.Constexpr[BackwardConfig] = DEFAULT,
):  # fmt: skip
    """Launch one block per tile of queries and head. ``keys`` and ``captured`` are only read if functions of scores
    read arrays by the query alone.
    """
    c = config
    c.check()
    batch = cute.size(of_queries) - 1 if c.packed else out.shape[3]
    tiles = cute.ceil_div(queries, c.tile_m)
    units = tiles * out.shape[2] * batch
    spaces = Workspaces(stats, dq_sum, turns, kv_sum, taken)
    delta(out, dout, lse, dlse, spaces, of_queries, (queries, tiles), (keys, captured), config).launch(
        grid=units, block=_THREADS, pdl=True
    )


@cute.kernel(name="delta")
def delta(
    out: cute.Tensor, dout: cute.Tensor, lse: cute.Tensor, dlse: cute.Tensor | None, spaces: Workspaces,
    of_queries: cute.Tensor | None, sizes: tuple[Int, Int], functions: tuple[Int | None, Any],
    config: cute.Constexpr[BackwardConfig],
):  # fmt: skip
    """Compute the statistics of a tile of queries, and clear its part of ``dq_sum``, and a share of ``kv_sum``.

    ``sizes`` are the numbers of queries and of their tiles. ``functions`` are the number of keys and the inputs of the
    functions of scores, if they read arrays by the query alone.
    """
    c, (stats, dq_sum, turns, kv_sum, taken), (queries, tiles) = config, spaces, sizes
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    thread = cute.arch.thread_idx().x
    zeros = cute.make_rmem_tensor(4, cute.Float32)
    zeros.fill(0.0)
    if kv_sum is not None:
        _clear(kv_sum, zeros)
    if taken is not None and (cute.arch.block_idx().x == 0) & (thread == 0):
        taken[0] = 0
    # In reverse order, so that the L2 holds the first tiles of the main kernel.
    head, batch, tile = _unit(cute.arch.grid_dim().x - 1 - cute.arch.block_idx().x, out.shape[2], tiles)
    where = query_place(c, (of_queries,), queries, batch)
    begin = tile * c.tile_m
    if begin < where.queries:
        slot = where.tile + tile
        lanes = 1 << (c.value_head // 8 - 1).bit_length()  # threads of a row, with eight elements each, or none
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
        if c.functions is not None and len(c.query_reads) > 0 and thread < _FLAGGED:
            keys, captured = functions
            graph, found, row = Scored(c.functions, captured), [], cute.min(thread, c.tile_m - 1)
            for query in (row, 0) if c.has_row_flags else (row,):
                at = {"row": graph.index(begin + query, where.queries), "matrix": batch, "head": head}
                at |= {"queries": where.queries, "keys": keys}
                known: Values = {}
                words = [graph.held(i, graph.node_value(i, None, at, known), word) for i, word in c.query_reads]
                found.append(words)
            if thread < c.tile_m:
                for i, (node, _) in enumerate(c.query_reads):
                    target = cute.recast_tensor(stats[head, slot, None], graph.word_type(node))
                    target[(2 + i) * c.tile_m + thread] = found[0][i]
            if c.has_row_flags:
                is_first = cute.Boolean(True)
                for own, first_word in zip(*found):
                    is_first = is_first & (_bits(own) == _bits(first_word))
                is_first = cute.arch.vote_all_sync(is_first)
                if cute.arch.lane_idx() == 0:
                    flags = cute.recast_tensor(stats[head, slot, None], cute.Int32)
                    flags[c.stats_values - 4 + thread // 32] = cute.where(is_first, 1, 0)
        line = dq_sum[head, slot, None]
        for i in cute.range_constexpr(c.tile_m * c.head // 4 // _THREADS):
            cute.autovec_copy(zeros, cute.local_tile(line, (4,), (i * _THREADS + thread,)))
        if c.deterministic and thread < c.consumers:
            turns[head, slot, thread] = 0


def _bits(word: cute.Float32 | cute.Int32) -> cute.Int32:
    """Return a word as an integer."""
    return word if isinstance(word, cute.Int32) else word.bitcast(cute.Int32)


_CHUNK = 4096
"""Numbers that a block clears at once."""


def _clear(kv_sum: cute.Tensor, zeros: cute.Tensor) -> None:
    """Clear every chunk of ``kv_sum`` whose index is this block's modulo the number of blocks."""
    tiles = cute.assume(kv_sum.shape[1], range=(1, None))
    per_tile = kv_sum.shape[2] // _CHUNK
    thread, chunks = cute.arch.thread_idx().x, kv_sum.shape[0] * tiles * per_tile
    for at in range(cute.arch.block_idx().x, chunks, cute.arch.grid_dim().x):
        line, chunk = divmod(cute.assume(at, range=(0, None)), per_tile)
        head, tile = divmod(line, tiles)
        target = cute.local_tile(kv_sum[head, tile, None], (_CHUNK,), (chunk,))
        for i in cute.range_constexpr(_CHUNK // 4 // _THREADS):
            cute.autovec_copy(zeros, cute.local_tile(target, (4,), (i * _THREADS + thread,)))


def _unit(index: Int, heads: Int, tiles: Int) -> tuple[Int, Int, Int]:
    """Return the head, the sequence and the tile of a block."""
    line, tile = divmod(cute.assume(index, range=(0, None)), cute.assume(tiles, range=(1, None)))
    batch, head = divmod(line, cute.assume(heads, range=(1, None)))
    return head, batch, tile


@printed
def delta_text(config: BackwardConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@delta`` and its host function ``@launch_delta``."""
    c = config or DEFAULT
    matrix, rows = matrix_type(c), rows_type()
    functions = (cute.Int32, captured_types(c.functions)) if c.query_reads else ()
    return cute.trace(
        launch_delta, matrix, matrix, rows, rows if c.dlse else None, stats_type(c), dq_sum_type(c), turns_type(c),
        kv_sum_type(c), taken_type(c), begins_type(c), cute.Int32, *functions, config=c,
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- conversion


class KeyGradients(NamedTuple):
    """Gradients of keys that blocks share."""

    sums: cute.Tensor  # accumulators, see Workspaces.kv_sum
    dk: cute.Tensor  # results
    dv: cute.Tensor
    begins: cute.Tensor | None  # boundaries of the keys of packed sequences
    keys: Int  # of a sequence; the largest number for packed sequences
    tiles: Int  # tiles of keys of a head


@cute.jit
def launch_dq(
    dq_sum: cute.Tensor, kv_sum: cute.Tensor | None, dq: cute.Tensor, dk: cute.Tensor | None, dv: cute.Tensor | None,
    of_queries: cute.Tensor | None, of_keys: cute.Tensor | None, queries: cute.Int32, keys: cute.Int32 | None,
    scale: cute.Float32,
    config: cute.Constexpr[BackwardConfig] = DEFAULT,
):  # fmt: skip
    """Launch one block per tile of queries and head, and per tile of dk or dv in ``kv_sum``."""
    c = config
    c.check()
    batch = cute.size(of_queries) - 1 if c.packed else dq.shape[3]
    tiles = cute.ceil_div(queries, c.tile_m)
    units = tiles * dq.shape[2] * batch
    of_key = None
    blocks = units
    if kv_sum is not None:
        assert dk is not None
        assert dv is not None
        key_tiles = cute.ceil_div(keys, c.tile_n)
        of_key = KeyGradients(kv_sum, dk, dv, of_keys, keys, key_tiles)
        blocks = units + 2 * key_tiles * dk.shape[2] * batch
    convert_dq(dq_sum, dq, of_key, of_queries, queries, tiles, units, scale, config).launch(
        grid=blocks, block=128 * c.consumers, pdl=True
    )


@cute.kernel(name="convert_dq")
def convert_dq(
    dq_sum: cute.Tensor, dq: cute.Tensor, of_key: KeyGradients | None, of_queries: cute.Tensor | None, queries: Int,
    tiles: Int, units: Int, scale: cute.Float32, config: cute.Constexpr[BackwardConfig],
):  # fmt: skip
    """Scale and round a tile of dq, dk or dv. Blocks from ``units`` on have those of keys."""
    c = config
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    index = cute.arch.block_idx().x
    # In reverse order: the L2 holds the accumulators to which the main kernel added last.
    last = units - 1 - index
    if of_key is None:
        _convert_queries(c, last, dq_sum, dq, of_queries, queries, tiles, scale)
    else:
        if index < units:
            _convert_queries(c, last, dq_sum, dq, of_queries, queries, tiles, scale)
        else:
            _convert_keys(c, index - units, of_key, scale)


def _convert_queries(
    c: BackwardConfig, index: Int, dq_sum: cute.Tensor, dq: cute.Tensor, of_queries: cute.Tensor | None, queries: Int,
    tiles: Int, scale: cute.Float32,
) -> None:  # fmt: skip
    """Convert a tile of dq."""
    head, batch, tile = _unit(index, dq.shape[2], tiles)
    where = query_place(c, (of_queries,), queries, batch)
    begin = tile * c.tile_m
    if begin < where.queries:
        line = dq_sum[head, where.tile + tile, None]
        target = _Rows(dq, head, where.matrix, where.query_start, begin, where.queries)
        if c.dq_values % 16 == 0:
            sums = _read_sums(line, c.dq_values, scale, cute.arch.warpgroup_idx())
            _store_sums(sums, c.dq_values, target, split_rows=c.dq_by_rows)
        elif cute.arch.warpgroup_idx() == 0:
            # The columns of a consumer are not a multiple of 32, so one warpgroup has those of both.
            values = c.dq_values * c.consumers
            _store_sums(_read_sums(line, values, scale, cute.Int32(0)), values, target, split_rows=True)


def _convert_keys(c: BackwardConfig, index: Int, of_key: KeyGradients, scale: cute.Float32) -> None:
    """Convert a tile of dk or dv."""
    heads = of_key.dk.shape[2]
    line, batch, tile = _unit(index, 2 * heads, of_key.tiles)
    keys, start = of_key.keys, cute.Int32(0)
    if c.packed:
        start = of_key.begins[batch]
        keys = of_key.begins[batch + 1] - start
    begin = tile * c.tile_n
    if begin < keys:
        factor = scale if line < heads else cute.Float32(1.0)
        slot = first_key_tile(c, start, of_key.tiles, batch) + tile
        matrix = 0 if c.packed else batch
        for first, target, values in ((0, of_key.dk, c.dk_values), (heads, of_key.dv, c.dv_values)):
            head = line - first
            if (head >= 0) & (head < heads):
                sums = _read_sums(of_key.sums[line, slot, None], values, factor, cute.arch.warpgroup_idx())
                rows = _Rows(target, head, matrix, start, begin, keys)
                _store_sums(sums, values, rows, split_rows=not c.splits_head)


class _Rows(NamedTuple):
    """Rows of a result."""

    result: cute.Tensor  # (S, D, H, B)
    head: Int
    matrix: Int
    start: Int  # offset of the sequence's rows
    begin: Int  # first row of the tile in the sequence
    end: Int  # number of rows of the sequence


def _read_sums(line: cute.Tensor, count: int, scale: cute.Float32, group: Int) -> cute.Tensor:
    """Return this thread's accumulators of a tile, scaled. Their order is that of the main kernel.

    Args:
        line: The tile.
        count: Accumulators of a thread.
        scale: Factor.
        group: Index of the warpgroup.
    """
    thread = cute.arch.thread_idx().x % 128
    sums = cute.make_rmem_tensor((4, count // 4), cute.Float32)
    for i in cute.range_constexpr(count // 4):
        part = cute.local_tile(line, (4,), ((group * (count // 4) + i) * 128 + thread,))
        cute.autovec_copy(part, sums[None, i])
    for i in cute.range_constexpr(count):
        sums[i] = sums[i] * scale
    return sums


def _store_sums(sums: cute.Tensor, count: int, rows: _Rows, *, split_rows: bool) -> None:
    """Round a tile and store its rows.

    Args:
        sums: Accumulators of this thread.
        count: Their number.
        rows: Target.
        split_rows: The warpgroups split the rows of a tile, not its columns.
    """
    columns, lane, warp = count * 2, cute.arch.lane_idx(), cute.arch.warp_idx()
    words = packed_words(sums, columns, rows.result.element_type)
    row, first = (warp, 0) if split_rows else (warp % 4, warp // 4 * (columns // 32))
    for half in cute.range_constexpr(2):
        pieces = row_pieces(words, half, columns, lane % 4)
        at = rows.begin + row * 16 + lane // 4 + 8 * half
        if at < rows.end:
            store_row(rows.result[rows.start + at, None, rows.head, rows.matrix], pieces, lane % 4, first)


@printed
def dq_text(config: BackwardConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@convert_dq`` and its host function ``@launch_dq``."""
    c = config or DEFAULT
    matrix, begins = matrix_type(c), begins_type(c)
    result, of_keys, keys = (matrix, begins, cute.Int32) if c.split else (None, None, None)
    return cute.trace(
        launch_dq, dq_sum_type(c), kv_sum_type(c), matrix, result, result, begins, of_keys, cute.Int32, keys,
        cute.Float32, config=c,
    )  # fmt: skip
