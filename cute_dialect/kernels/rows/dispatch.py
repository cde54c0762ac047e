"""Dispatch of tokens to experts: a stable counting sort of (token, choice) pairs, copies of rows, and weighted sums.

Pairs are numbered ``token * k + choice``. A pair whose expert is not a valid number is dropped: it sorts after all
others. The sort has two launches, or one for few pairs. First, each block counts the experts of its pairs. Then each
block computes the first row of each of its warps and experts from all counts. ``match.any`` gives the rank of a pair
among the 32 of a warp. Atomics only add counts, so the order is always the same.

    launch_count(experts, counts, rounds)
    launch_sort(experts, counts, offs, order, rounds)      # order: the row of each pair; ~row for dropped ones
    launch_copy(x, order, rows)                            # rows[order[t, j]] = x[t]; zeros for dropped pairs
    launch_combine(y, order, weights, out)                 # out[t] = sum of weights[t, j] y[order[t, j]]
    launch_combine_gradient(dout, y, order, weights, dy, dweights)
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number, vector_width
from cute_dialect.kernels.common.traced_text import printed

__all__ = [
    "PAIRS", "CombineConfig", "SortConfig", "combine_gradient_text", "combine_text", "copy_text", "count_text",
    "sort_blocks", "sort_text",
]  # fmt: skip

_WARPS = 16
PAIRS = 32 * _WARPS
"""Pairs that a block of the sort processes at once."""

_ALONE = 8
"""Rounds up to which one block sorts all pairs in one launch."""

_MOST_BLOCKS = 64

_THREADS = 256
"""Threads per block of the copies and sums."""

_AT_ONCE = 8
"""Rows of a sum that a thread loads at once."""


def sort_blocks(pairs: int) -> tuple[int, int]:
    """Return the number of blocks that sort, and the rounds of each.

    >>> sort_blocks(512), sort_blocks(4097), sort_blocks(32768), sort_blocks(1 << 20)
    ((1, 1), (9, 1), (64, 1), (64, 32))
    """
    rounds = -(-pairs // PAIRS)
    if rounds <= _ALONE:
        return 1, rounds
    blocks = min(rounds, _MOST_BLOCKS)
    each = -(-rounds // blocks)
    return -(-rounds // each), each


class SortConfig(NamedTuple):
    """Configuration of the sort.

    >>> SortConfig(experts=64, is_alone=True).name
    'dispatch-sort-i32-64-alone'
    """

    element: str = "i32"  # of the indices of experts
    experts: int = 128
    is_alone: bool = False  # one block has all pairs, and there are no counts of others

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        return f"dispatch-sort-{self.element}-{self.experts}{'-alone' if self.is_alone else ''}"


class CombineConfig(NamedTuple):
    """Configuration of the copies and sums.

    >>> CombineConfig(k=2, weights=True).name
    'dispatch-bf16-2-weights'
    """

    element: str = "bf16"  # of the rows
    k: int = 8  # pairs per token
    weights: bool = False  # rows have factors
    threads: int = _THREADS  # threads per token of the gradient

    @property
    def vector(self) -> int:
        """Elements of a vector of 16 bytes."""
        return vector_width(self.element)

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        words = ["dispatch", self.element, str(self.k), *["weights"] * self.weights]
        return "-".join([*words, *([str(self.threads)] if self.threads != _THREADS else [])])


SORT, COMBINE = SortConfig(), CombineConfig()


# ------------------------------------------------------------------------------------------------------------- the sort


def _key(experts: Any, pair: Any, c: SortConfig) -> Any:
    """Return the column in which a pair is counted: its expert, E if it is dropped, or E + 1 if it does not exist."""
    key = cute.Int32(c.experts + 1)
    if pair < cute.size(experts):
        e = experts[pair]
        key = cute.where((e >= 0) & (e < c.experts), e.to(cute.Int32), c.experts)
    return key


@cute.kernel
def count(experts: cute.Tensor, counts: cute.Tensor, rounds: cute.Int32, config: cute.Constexpr[SortConfig]):
    c, thread, block = config, cute.arch.thread_idx().x, cute.arch.block_idx().x
    found = cute.smem_tensor(cute.Int32, cute.make_layout(c.experts + 2))
    for e in range(thread, c.experts + 2, PAIRS):
        found[e] = 0
    cute.arch.sync_threads()
    for i in range(rounds):
        key = _key(experts, (block * rounds + i) * PAIRS + thread, c)
        cute.arch.atomic_add(found.iterator + key, 1, scope="cta")
    cute.arch.sync_threads()
    for e in range(thread, c.experts + 1, PAIRS):
        counts[block, e] = found[e]


@cute.kernel
def sort(
    experts: cute.Tensor,
    counts: Any,
    offs: cute.Tensor,
    order: cute.Tensor,
    rounds: cute.Int32,
    config: cute.Constexpr[SortConfig],
):
    c, thread, block = config, cute.arch.thread_idx().x, cute.arch.block_idx().x
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    columns = c.experts + 2
    table = cute.smem_tensor(cute.Int32, cute.make_layout((_WARPS, columns), stride=(columns, 1)))
    earlier = cute.smem_tensor(cute.Int32, cute.make_layout(columns))  # pairs of earlier blocks, by column
    total = cute.smem_tensor(cute.Int32, cute.make_layout(columns))
    for e in range(thread, columns, PAIRS):
        earlier[e] = 0
        total[e] = 0
        for w in range(_WARPS):
            table[w, e] = 0
    cute.arch.sync_threads()
    first = (block * PAIRS + warp * 32) * rounds + lane
    for i in range(rounds):
        key = _key(experts, first + i * 32, c)
        cute.arch.atomic_add(table[warp, None].iterator + key, 1, scope="cta")
    if counts is not None:
        for b in range(warp, counts.shape[0], _WARPS):
            for e in range(lane, c.experts + 1, 32):
                n = counts[b, e]
                cute.arch.atomic_add(total.iterator + e, n, scope="cta")
                if b < block:
                    cute.arch.atomic_add(earlier.iterator + e, n, scope="cta")
    cute.arch.sync_threads()
    if counts is None:
        for e in range(thread, c.experts + 1, PAIRS):
            n = cute.Int32(0)
            for w in range(_WARPS):
                n = n + table[w, e]
            total[e] = n
        cute.arch.sync_threads()
    if warp == 0:
        # The first warp replaces the totals by the first row of each expert.
        before = cute.Int32(0)
        for start in range(0, c.experts + 1, 32):
            e = start + lane
            own = cute.Int32(0)
            if e <= c.experts:
                own = total[e]
            up_to = own
            for distance in (1, 2, 4, 8, 16):
                other = cute.arch.shuffle_sync_up(up_to, distance)
                up_to = up_to + cute.where(lane >= distance, other, 0)
            if e <= c.experts:
                total[e] = before + up_to - own
                if (e < c.experts) & (block == 0):
                    offs[e] = before + up_to
            before = before + cute.arch.shuffle_sync(up_to, 31)
    cute.arch.sync_threads()
    for e in range(thread, c.experts + 1, PAIRS):
        row = total[e] + earlier[e]
        for w in range(_WARPS):
            n = table[w, e]
            table[w, e] = row
            row = row + n
    cute.arch.sync_threads()
    for i in range(rounds):
        pair = first + i * 32
        key = _key(experts, pair, c)
        alike = cute.arch.match_any(key)
        rank = cute.math.popc(alike & ((cute.Uint32(1) << lane.to(cute.Uint32)) - 1)).to(cute.Int32)
        row = table[warp, key] + rank
        cute.arch.sync_warp()
        if rank == 0:
            table[warp, key] = row + cute.math.popc(alike).to(cute.Int32)
        cute.arch.sync_warp()
        if pair < cute.size(experts):
            order[pair] = cute.where(key < c.experts, row, -1 - row)


@cute.jit
def launch_count(
    experts: cute.Tensor, counts: cute.Tensor, rounds: cute.Int32, config: cute.Constexpr[SortConfig] = SORT
):
    """Launch a block per row of ``counts``.

    Args:
        experts: The expert of each pair.
        counts: (blocks, E + 1), the pairs of each block by expert, and those that are dropped; the result.
        rounds: Pairs of a block, divided by 512.
    """
    count(experts, counts, rounds, config).launch(grid=counts.shape[0], block=PAIRS)


@cute.jit
def launch_sort(
    experts: cute.Tensor,
    counts: Any,
    offs: cute.Tensor,
    order: cute.Tensor,
    rounds: cute.Int32,
    config: cute.Constexpr[SortConfig] = SORT,
):
    """Launch a block per row of ``counts``, or one block.

    Args:
        experts: The expert of each pair.
        counts: The results of :func:`launch_count`, or None if there is one block.
        offs: (E,), the end of the rows of each expert, the result.
        order: The row of each pair, the result.
        rounds: Pairs of a block, divided by 512.
    """
    blocks = 1 if counts is None else counts.shape[0]
    sort(experts, counts, offs, order, rounds, config).launch(grid=blocks, block=PAIRS)


@printed
def count_text(config: SortConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@count`` and its host function ``@launch_count``."""
    c = config or SORT
    counts = cute.Tensor[cute.Int32, f"(?,{c.experts + 1}):({c.experts + 1},1)"]
    return cute.trace(launch_count, cute.Tensor[number(c.element), "?:1"], counts, cute.Int32, config=c)


@printed
def sort_text(config: SortConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@sort`` and its host function ``@launch_sort``."""
    c = config or SORT
    counts = None if c.is_alone else cute.Tensor[cute.Int32, f"(?,{c.experts + 1}):({c.experts + 1},1)"]
    numbers = cute.Tensor[cute.Int32, "?:1"]
    experts = cute.Tensor[number(c.element), "?:1"]
    return cute.trace(launch_sort, experts, counts, numbers, numbers, cute.Int32, config=c)


# ------------------------------------------------------------------------------------------------------ copies and sums


def _vector_of(t: Any, row: Any, column: Any, w: int) -> Any:
    """Return ``w`` elements of a row, which are aligned if there are several."""
    at = t[row, None].iterator + column
    return cute.make_tensor(at.align(max(1, w * t.element_type.width // 8)), cute.make_layout(w))


def _loaded(t: Any, row: Any, column: Any, w: int, is_there: Any = True) -> Any:
    """Load ``w`` elements of a row, or zeros."""
    held = cute.make_rmem_tensor(w, t.element_type)
    held.fill(0)
    if is_there:
        cute.autovec_copy(_vector_of(t, row, column, w), held)
    return held


def _units(columns: Any, c: CombineConfig) -> tuple[Any, Any, Any]:
    """Return the token of a thread, and the columns of its vector: the first one and that after the last one."""
    across = cute.ceil_div(columns, c.vector)
    unit = cute.arch.block_idx().x * _THREADS + cute.arch.thread_idx().x
    token = unit // across
    begin = (unit - token * across) * c.vector
    return token, begin, cute.min(begin + c.vector, columns)


def _copied(x: Any, order: Any, rows: Any, c: CombineConfig, w: int) -> None:
    token, begin, end = _units(x.shape[1], c)
    if token < x.shape[0]:
        for column in range(begin, end, w):
            held = _loaded(x, token, column, w)
            zeros = cute.make_rmem_tensor(w, x.element_type)
            zeros.fill(0)
            for j in cute.range_constexpr(c.k):
                row = order[token, j]
                if row >= 0:
                    cute.autovec_copy(held, _vector_of(rows, row, column, w))
                else:
                    cute.autovec_copy(zeros, _vector_of(rows, -1 - row, column, w))


def _combined(y: Any, order: Any, weights: Any, out: Any, c: CombineConfig, w: int) -> None:
    token, begin, end = _units(y.shape[1], c)
    if token < out.shape[0]:
        for column in range(begin, end, w):
            _combine_vector(y, order, weights, out, token, column, c, w)


def _combine_vector(
    y: Any, order: Any, weights: Any, out: Any, token: Any, column: Any, c: CombineConfig, w: int
) -> None:
    total = cute.full(w, 0.0, cute.Float32)
    for start in cute.range_constexpr(0, c.k, _AT_ONCE):
        held = []
        for j in cute.range_constexpr(start, min(start + _AT_ONCE, c.k)):
            row = order[token, j]
            held.append(_loaded(y, cute.max(row, 0), column, w, row >= 0))
        for j, values in enumerate(held):
            part = values.load().to(cute.Float32)
            # A dropped pair contributes nothing, whatever its weight is.
            if c.weights:
                row = order[token, start + j]
                part = part * cute.where(row >= 0, weights[token, start + j], 0.0)
            total = total + part
    made = cute.make_rmem_tensor(w, out.element_type)
    made.store(total.to(out.element_type))
    cute.autovec_copy(made, _vector_of(out, token, column, w))


def _differentiated(
    dout: Any, y: Any, order: Any, weights: Any, dy: Any, dweights: Any, c: CombineConfig, w: int
) -> None:
    """Compute the gradients of a token: a block iterates over its columns."""
    token, thread = cute.arch.block_idx().x, cute.arch.thread_idx().x
    sums = cute.make_rmem_tensor(c.k, cute.Float32)
    sums.fill(0.0)
    for column in range(thread * w, dout.shape[1], c.threads * w):
        g = _loaded(dout, token, column, w).load().to(cute.Float32)
        for j in cute.range_constexpr(c.k):
            row = order[token, j]
            is_there = row >= 0
            factor = cute.where(is_there, 1.0, 0.0)
            if c.weights:
                factor = cute.where(is_there, weights[token, j], 0.0)
                held = _loaded(y, cute.max(row, 0), column, w, is_there)
                sums[j] = sums[j] + (held.load().to(cute.Float32) * g).reduce(lambda a, b: a + b)
            made = cute.make_rmem_tensor(w, dy.element_type)
            made.fill(0)
            if is_there:
                made.store((g * factor).to(dy.element_type))
            cute.autovec_copy(made, _vector_of(dy, cute.where(is_there, row, -1 - row), column, w))
    if c.weights:
        warps, warp, lane = c.threads // 32, cute.arch.warp_idx(), cute.arch.lane_idx()
        table = cute.smem_tensor(cute.Float32, cute.make_layout((warps, c.k), stride=(c.k, 1)))
        for j in cute.range_constexpr(c.k):
            part = cute.arch.warp_reduction(sums[j], lambda a, b: a + b)
            if lane == 0:
                table[warp, j] = part
        cute.arch.sync_threads()
        if thread < c.k:
            total = cute.Float32(0)
            for i in cute.range_constexpr(warps):
                total = total + table[i, thread]
            dweights[token, thread] = total


@cute.kernel(name="copy_rows_v")
def copy_by_vector(x: cute.Tensor, order: cute.Tensor, rows: cute.Tensor, config: cute.Constexpr[CombineConfig]):
    _copied(x, order, rows, config, config.vector)


@cute.kernel(name="copy_rows")
def copy_by_element(x: cute.Tensor, order: cute.Tensor, rows: cute.Tensor, config: cute.Constexpr[CombineConfig]):
    _copied(x, order, rows, config, 1)


@cute.kernel(name="combine_v")
def combine_by_vector(
    y: cute.Tensor, order: cute.Tensor, weights: Any, out: cute.Tensor, config: cute.Constexpr[CombineConfig]
):
    _combined(y, order, weights, out, config, config.vector)


@cute.kernel(name="combine")
def combine_by_element(
    y: cute.Tensor, order: cute.Tensor, weights: Any, out: cute.Tensor, config: cute.Constexpr[CombineConfig]
):
    _combined(y, order, weights, out, config, 1)


@cute.kernel(name="combine_gradient_v")
def gradient_by_vector(
    dout: cute.Tensor, y: Any, order: cute.Tensor, weights: Any, dy: cute.Tensor, dweights: Any,
    config: cute.Constexpr[CombineConfig],
):  # fmt: skip
    _differentiated(dout, y, order, weights, dy, dweights, config, config.vector)


@cute.kernel(name="combine_gradient")
def gradient_by_element(
    dout: cute.Tensor, y: Any, order: cute.Tensor, weights: Any, dy: cute.Tensor, dweights: Any,
    config: cute.Constexpr[CombineConfig],
):  # fmt: skip
    _differentiated(dout, y, order, weights, dy, dweights, config, 1)


def _grid(tokens: Any, columns: Any, w: int) -> Any:
    """Return the number of blocks for one thread per vector."""
    return cute.ceil_div(tokens * cute.ceil_div(columns, w), _THREADS)


@cute.jit
def launch_copy(x: cute.Tensor, order: cute.Tensor, rows: cute.Tensor, config: cute.Constexpr[CombineConfig] = COMBINE):
    """Launch a thread per vector of ``x``.

    Args:
        x: (T, C), the tokens.
        order: (T, k), the row of each pair.
        rows: (T k, C), the result.
    """
    assert rows.shape[1] == x.shape[1], "rows must be as long as those of x"
    w, vx, vrows = config.vector, cute.promise_vectors(x, config.vector), cute.promise_vectors(rows, config.vector)
    copy_by_vector(vx, order, vrows, config).launch(
        grid=_grid(x.shape[0], x.shape[1], w), block=_THREADS, fallback=copy_by_element(x, order, rows, config)
    )


@cute.jit
def launch_combine(
    y: cute.Tensor, order: cute.Tensor, weights: Any, out: cute.Tensor,
    config: cute.Constexpr[CombineConfig] = COMBINE,
):  # fmt: skip
    """Launch a thread per vector of ``out``.

    Args:
        y: (T k, C), the rows.
        order: (T, k), the row of each pair.
        weights: (T, k), f32, factors of the rows, or None.
        out: (T, C), the result.
    """
    assert out.shape[1] == y.shape[1], "rows of out must be as long as those of y"
    w, vy, vout = config.vector, cute.promise_vectors(y, config.vector), cute.promise_vectors(out, config.vector)
    combine_by_vector(vy, order, weights, vout, config).launch(
        grid=_grid(out.shape[0], out.shape[1], w), block=_THREADS,
        fallback=combine_by_element(y, order, weights, out, config),
    )  # fmt: skip


@cute.jit
def launch_combine_gradient(
    dout: cute.Tensor, y: Any, order: cute.Tensor, weights: Any, dy: cute.Tensor, dweights: Any,
    config: cute.Constexpr[CombineConfig] = COMBINE,
):  # fmt: skip
    """Launch a block per token.

    Args:
        dout: (T, C), the gradient of the combined rows.
        y: (T k, C), the rows, or None without weights.
        order: (T, k), the row of each pair.
        weights: (T, k), f32, or None.
        dy: (T k, C), the gradient of the rows, the result.
        dweights: (T, k), f32, the gradient of the weights, the result; or None.
    """
    assert dy.shape[1] == dout.shape[1], "rows of dy must be as long as those of dout"
    w = config.vector
    vy = None if y is None else cute.promise_vectors(y, w)
    vectors = cute.promise_vectors(dout, w), vy, order, weights, cute.promise_vectors(dy, w), dweights
    gradient_by_vector(*vectors, config).launch(
        grid=dout.shape[0], block=config.threads,
        fallback=gradient_by_element(dout, y, order, weights, dy, dweights, config),
    )  # fmt: skip


def _matrix(element: str) -> Any:
    return cute.Tensor[number(element), "(?,?):(?{i64},1)"]


@printed
def copy_text(config: CombineConfig | None = None) -> cute.Compiled:
    """Trace the kernels ``@copy_rows_v`` and ``@copy_rows``, and their host function ``@launch_copy``."""
    c = config or COMBINE
    return cute.trace(launch_copy, _matrix(c.element), _matrix("i32"), _matrix(c.element), config=c)


@printed
def combine_text(config: CombineConfig | None = None) -> cute.Compiled:
    """Trace the kernels ``@combine_v`` and ``@combine``, and their host function ``@launch_combine``."""
    c = config or COMBINE
    rows, weights = _matrix(c.element), _matrix("f32") if c.weights else None
    return cute.trace(launch_combine, rows, _matrix("i32"), weights, rows, config=c)


@printed
def combine_gradient_text(config: CombineConfig | None = None) -> cute.Compiled:
    """Trace the kernels of the gradients, and their host function ``@launch_combine_gradient``."""
    c = config or COMBINE
    rows, weights = _matrix(c.element), _matrix("f32") if c.weights else None
    y = rows if c.weights else None
    return cute.trace(launch_combine_gradient, rows, y, _matrix("i32"), weights, rows, weights, config=c)
