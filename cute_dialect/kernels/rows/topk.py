"""The k greatest elements of each row, and their gradient. Sampling selects its candidates with the same functions.

A block has a row, and reads it once. It divides the row into segments of consecutive elements, one per warp at a time;
the elements of a lane are a *group*. The k-th greatest of the maxima of groups is not greater than the k-th element of
the row. Only groups whose maximum reaches this bound are read again. Their elements that reach it are the candidates,
few more than k. The rank of a candidate is the number of greater ones.

If too many elements reach the bound, since they are equal, passes over the row determine the k-th element.

    launch(x, values, indices)
    launch_gradient(dvalues, indices, dx)
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from collections.abc import Callable
from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number, vector_width
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.memory import part
from cute_dialect.kernels.rows.quantize import over_threads, vector_of
from cute_dialect.kernels.rows.route import ordered
from cute_dialect.lang.values.signature_types import Int, Number, Value

__all__ = [
    "AT_ONCE", "CANDIDATES", "MOST_SEGMENTS", "Candidates", "Row", "TopkConfig", "bisected", "candidates_of",
    "choose_threads", "choose_topk", "column_of", "counts", "find_candidates", "gradient_text", "key_of", "load",
    "longest_row",    "rank_of", "segment_of", "segments_of", "topk_text",
]  # fmt: skip

CANDIDATES = 2048
"""Default number of candidates in shared memory, and the largest k."""

AT_ONCE = 4
"""Vectors of a lane in a segment."""

MOST_SEGMENTS = 2048
"""Largest number of segments of a row, whose groups fit into shared memory."""

_COARSE = 16
"""High bits of a key that the bound on the k-th element has."""

_ROUNDS = _COARSE // 2

_PLACES = 22
"""Bits of the index of an element."""

_ALL = 0xFFFFFFFF

_FEW_ROWS = 264
"""Up to this number of rows, a block has more threads."""


class TopkConfig(NamedTuple):
    """Configuration of the kernels.

    >>> TopkConfig().name, TopkConfig(largest=False).name
    ('topk-bf16-64-256', 'topk-bf16-64-256-least')
    """

    element: str = "bf16"
    segments: int = 64  # entries of the table of segments, at least as many as a row has
    threads: int = 256  # threads of a block
    largest: bool = True  # or the k least elements
    capacity: int = CANDIDATES  # candidates in shared memory, at least k

    @property
    def vector(self) -> int:
        """Elements of a vector of 16 bytes."""
        return vector_width(self.element)

    @property
    def segment(self) -> int:
        """Elements of a segment."""
        return segment_of(self.element)

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        words = ["topk", self.element, str(self.segments), str(self.threads), *["least"] * (not self.largest)]
        return "-".join([*words, *[str(self.capacity)] * (self.capacity != CANDIDATES)])


DEFAULT = TopkConfig()


def segment_of(element: str) -> int:
    """Return the number of elements of a segment."""
    return 32 * vector_width(element) * AT_ONCE


def segments_of(element: str, n: int) -> tuple[int, int]:
    """Return the number of segments of a row of ``n`` elements, and the entries of their table.

    >>> segments_of("f32", 32000), segments_of("bf16", 128256)
    ((63, 64), (126, 128))
    """
    segments = -(-n // segment_of(element))
    entries = 64
    while entries < segments:
        entries *= 2
    return segments, entries


def longest_row(element: str) -> int:
    """Return the length of the longest rows.

    >>> longest_row("f32") == 1 << 20, longest_row("bf16") == 1 << 21
    (True, True)
    """
    return MOST_SEGMENTS * segment_of(element)


def choose_topk(element: str, n: int, rows: int, *, largest: bool = True) -> TopkConfig | None:
    """Return the configuration for ``rows`` rows of ``n`` elements; None if they are too long.

    >>> choose_topk("bf16", 50257, 4096).name
    'topk-bf16-64-256'
    """
    segments, entries = segments_of(element, n)
    c = TopkConfig(element, entries, choose_threads(segments, rows), largest)
    return c if entries <= MOST_SEGMENTS else None


def choose_threads(segments: int, rows: int) -> int:
    """Return the threads of a block.

    >>> [choose_threads(*x) for x in ((1, 9999), (3, 9999), (63, 4096), (126, 256), (126, 8))]
    [32, 128, 256, 512, 1024]
    """
    most = 256 if rows > _FEW_ROWS else 512 if rows > _FEW_ROWS // 2 else 1024
    threads = 32
    while threads < most and threads < 32 * segments:
        threads *= 2
    return threads


# --------------------------------------------------------------------------------------------------- passes over a row


class Row(NamedTuple):
    """A row, from the view of one of its threads."""

    x: cute.Tensor
    row: Int
    n: Int
    count: Int  # segments
    w: int  # elements that are loaded at once
    config: Value  # a TopkConfig, or another configuration with its fields
    factor: Number = 1.0  # of logits, before exp2


def load(own: Row, segment: Int) -> cute.Tensor:
    """Load the elements of a lane as f32; those past the end of the row are selected last."""
    c, lane = own.config, cute.arch.lane_idx()
    held = cute.make_rmem_tensor(AT_ONCE * c.vector, own.x.element_type)
    held.fill(-float("inf") if c.largest else float("nan"))
    for u in cute.range_constexpr(AT_ONCE):
        column = segment * c.segment + (u * 32 + lane) * c.vector
        for k in cute.range_constexpr(0, c.vector, own.w):
            if column + k < own.n:
                cute.autovec_copy(vector_of(own.x, own.row, column + k, own.w), part(held, u * c.vector + k, own.w))
    wide = cute.make_rmem_tensor(AT_ONCE * c.vector, cute.Float32)
    wide.store(held.load().to(cute.Float32))
    return wide


def _key(x: Value, largest: bool) -> Value:
    """Return an integer with the order in which elements are selected."""
    return ordered(x) if largest else ordered(x) ^ cute.Uint32(_ALL)


def _add(a: Value, b: Value) -> Value:
    return a + b


def counts(
    own: Row, measure: Callable[[Value, Value], tuple[Value, ...]], candidates: list[Value], *kinds: type[Value]
) -> list[Value]:
    """Return the sums of the terms of elements whose keys are not less than candidates.

    Args:
        measure: function of the elements of a lane and their segment that returns their keys and one or more terms.
        kinds: types of the terms. The sums of the first term come first.
    """
    pairs = [(i, c) for i in range(len(kinds)) for c in candidates]
    found = [kinds[i](0) for i, _ in pairs]
    for s in range(cute.arch.warp_idx(), own.count, own.config.threads // 32):
        x = load(own, s).load()
        keys, *terms = measure(x, s)
        zeros = [cute.full(x.size, 0, kind) for kind in kinds]
        found = [n + cute.where(keys >= c, terms[i], zeros[i]).reduce(_add) for n, (i, c) in zip(found, pairs)]
    return [over_threads(n, _add, own.config.threads) for n in found]


def bisected(bits: int, wanted: Value, floor: Value, count: Callable[[list[Value]], list[Value]]) -> Value:
    """Return the largest threshold that keeps at least the requested count or sum; every key up to ``floor`` does.

    Args:
        bits: of the keys.
        count: function that returns the counts or sums for three candidates.
    """
    found, step = cute.Uint32(0), cute.Uint32(1 << (bits - 2))
    for _ in range(bits // 2):
        # The reductions use the tables of the last iteration again.
        cute.arch.sync_threads()
        candidates = [found + step, found + step * 2, found + step * 3]
        for c, reached in zip(candidates, count(candidates)):
            found = cute.where((reached >= wanted) | (c <= floor), c, found)
        step = step >> 2
    return found


# -------------------------------------------------------------------------------------------------------- candidates


class Candidates(NamedTuple):
    """Shared memory of the candidates of a row."""

    groups: cute.Tensor  # coarse keys of the maxima of groups
    counters: cute.Tensor  # candidates, groups that have some, and three counts per round
    hot: cute.Tensor  # groups that have candidates
    codes: cute.Tensor  # key of each candidate, and below it the complement of its index, which makes codes unique

    def clear(self, thread: Value, threads: int) -> None:
        """Set the counters to 0."""
        for i in range(thread, 2 + 3 * _ROUNDS, threads):
            self.counters[i] = 0


def candidates_of(c: Value) -> Candidates:
    """Allocate the shared memory of the candidates."""
    return Candidates(
        cute.smem_tensor(cute.Uint16, cute.make_layout(32 * c.segments)),
        cute.smem_tensor(cute.Int32, cute.make_layout(2 + 3 * _ROUNDS)),
        cute.smem_tensor(cute.Int32, cute.make_layout(c.capacity)),
        cute.smem_tensor(cute.Uint64, cute.make_layout(c.capacity)),
    )


def _code(key: Value, column: Value) -> Value:
    return (key.to(cute.Uint64) << 32) | (cute.Uint32(_ALL) - column.to(cute.Uint32)).to(cute.Uint64)


def column_of(code: Value) -> Value:
    """Return the index of the element of a code."""
    return (cute.Uint32(_ALL) - (code & cute.Uint64(_ALL)).to(cute.Uint32)).to(cute.Int32)


def key_of(code: Value) -> Value:
    """Return the key of the element of a code."""
    return (code >> 32).to(cute.Uint32)


def _append(held: Candidates, key: Value, column: Value) -> None:
    at = cute.arch.atomic_add(held.counters.iterator, 1, scope="cta")
    if at < cute.size(held.codes):
        held.codes[at] = _code(key, column)


def find_candidates(own: Row, k: Int, held: Candidates) -> Value:
    """Find candidates for the first ``k`` elements, and return their number.

    If it is greater than the capacity, the candidates are not complete.
    """
    c, lane, warp, thread = own.config, cute.arch.lane_idx(), cute.arch.warp_idx(), cute.arch.thread_idx().x
    held.clear(thread, c.threads)
    for s in range(warp, own.count, c.threads // 32):
        wide = load(own, s)
        # NaN is the greatest element. The maximum of floats is NaN if one is; that of least elements would be, too.
        if cute.const_expr(c.largest):
            top = _key(wide.load().reduce(cute.max), True)
        else:
            top = _key(wide.load(), False).reduce(cute.max)
        held.groups[s * 32 + lane] = (top >> (32 - _COARSE)).to(cute.Uint16)
    cute.arch.sync_threads()
    bound, step = cute.Uint32(0), cute.Uint32(1 << (_COARSE - 2))
    for i in range(_ROUNDS):
        bounds = [bound + step, bound + step * 2, bound + step * 3]
        found = [cute.Int32(0) for _ in bounds]
        for s in range(warp, own.count, c.threads // 32):
            key = held.groups[s * 32 + lane].to(cute.Uint32)
            found = [
                n + cute.math.popc(cute.arch.vote_ballot_sync(key >= b)).to(cute.Int32) for n, b in zip(found, bounds)
            ]
        if lane == 0:
            for j in cute.range_constexpr(3):
                cute.arch.atomic_add(held.counters.iterator + (2 + 3 * i + j), found[j], scope="cta")
        cute.arch.sync_threads()
        for j in cute.range_constexpr(3):
            bound = cute.where(held.counters[2 + 3 * i + j] >= k, bounds[j], bound)
        step = step >> 2
    for s in range(warp, own.count, c.threads // 32):
        if held.groups[s * 32 + lane].to(cute.Uint32) >= bound:
            at = cute.arch.atomic_add(held.counters.iterator + 1, 1, scope="cta")
            if at < c.capacity:
                held.hot[at] = s * 32 + lane
    cute.arch.sync_threads()
    hot = held.counters[1]
    if hot <= c.capacity:
        for i in range(thread, hot * AT_ONCE, c.threads):
            group = held.hot[i // AT_ONCE]
            first = group // 32 * c.segment + (i % AT_ONCE * 32 + group % 32) * c.vector
            piece = cute.make_rmem_tensor(c.vector, own.x.element_type)
            piece.fill(0)
            for j in cute.range_constexpr(0, c.vector, own.w):
                if first + j < own.n:
                    cute.autovec_copy(vector_of(own.x, own.row, first + j, own.w), part(piece, j, own.w))
            for j in cute.range_constexpr(c.vector):
                key = _key(piece[j].to(cute.Float32), c.largest)
                if (first + j < own.n) & (key >> (32 - _COARSE) >= bound):
                    _append(held, key, first + j)
    cute.arch.sync_threads()
    return cute.where(hot > c.capacity, hot, held.counters[0])


def rank_of(codes: cute.Tensor, count: Int, code: Value) -> Value:
    """Return the number of greater codes."""
    rank = cute.Int32(0)
    for j in range(count):
        rank = rank + cute.where(codes[j] > code, 1, 0)
    return rank


def _find_first(own: Row, k: Int, held: Candidates) -> None:
    """Find the first ``k`` elements of a row with many equal elements."""
    c, ones = own.config, cute.full(AT_ONCE * own.config.vector, 1, cute.Int32)

    def places(segment: Int) -> Value:
        """Return numbers that are greater for earlier elements, and 0 past the end of the row."""
        at = cute.make_rmem_tensor(AT_ONCE * c.vector, cute.Uint32)
        for u in cute.range_constexpr(AT_ONCE):
            for i in cute.range_constexpr(c.vector):
                column = segment * c.segment + (u * 32 + cute.arch.lane_idx()) * c.vector + i
                at[u * c.vector + i] = cute.where(
                    column < own.n, cute.Uint32((1 << _PLACES) - 1) - column.to(cute.Uint32), cute.Uint32(0)
                )
        return at.load()

    def by_value(x: Value, segment: Int) -> tuple[Value, Value]:
        return cute.where(places(segment) > 0, _key(x, c.largest), cute.full(x.size, 0, cute.Uint32)), ones

    least = bisected(32, k, cute.Uint32(0), lambda b: counts(own, by_value, b, cute.Int32))

    def by_place(x: Value, segment: Int) -> tuple[Value, Value]:
        """Return keys that order the elements equal to the k-th one by their places. Those of lesser ones are 0."""
        keys, at = by_value(x, segment)[0], places(segment)
        equal = cute.where(keys == least, at, cute.full(x.size, 0, cute.Uint32))
        return cute.where(keys > least, cute.full(x.size, _ALL, cute.Uint32), equal), ones

    last = bisected(_PLACES, k, cute.Uint32(0), lambda b: counts(own, by_place, b, cute.Int32))
    cute.arch.sync_threads()
    held.clear(cute.arch.thread_idx().x, c.threads)
    cute.arch.sync_threads()
    for s in range(cute.arch.warp_idx(), own.count, c.threads // 32):
        x = load(own, s)
        keys = by_place(x.load(), s)[0]
        picked = cute.make_rmem_tensor(AT_ONCE * c.vector, cute.Uint32)
        picked.store(keys)
        for u in cute.range_constexpr(AT_ONCE):
            for i in cute.range_constexpr(c.vector):
                if picked[u * c.vector + i] >= last:
                    column = s * c.segment + (u * 32 + cute.arch.lane_idx()) * c.vector + i
                    _append(held, _key(x[u * c.vector + i], c.largest), column)
    cute.arch.sync_threads()


# ------------------------------------------------------------------------------------------------------------ kernels


def _process(x: cute.Tensor, values: cute.Tensor, indices: cute.Tensor, c: TopkConfig, w: int) -> None:
    row, n, k = cute.arch.block_idx().x, x.shape[1].to(cute.Int32), values.shape[1].to(cute.Int32)
    own = Row(x, row, n, cute.ceil_div(n, c.segment), w, c)
    held, thread = candidates_of(c), cute.arch.thread_idx().x
    count = find_candidates(own, k, held)
    if count > c.capacity:
        _find_first(own, k, held)
        count = k
    for i in range(thread, count, c.threads):
        code = held.codes[i]
        rank = rank_of(held.codes, count, code)
        if rank < k:
            column = column_of(code)
            values[row, rank] = x[row, column]
            indices[row, rank] = column.to(cute.Int64)


@cute.kernel(name="topk_v", min_blocks=1)
def by_vector(x: cute.Tensor, values: cute.Tensor, indices: cute.Tensor, config: cute.Constexpr[TopkConfig]):
    _process(x, values, indices, config, config.vector)


@cute.kernel(name="topk", min_blocks=1)
def by_element(x: cute.Tensor, values: cute.Tensor, indices: cute.Tensor, config: cute.Constexpr[TopkConfig]):
    _process(x, values, indices, config, 1)


@cute.jit
def launch(x: cute.Tensor, values: cute.Tensor, indices: cute.Tensor, config: cute.Constexpr[TopkConfig] = DEFAULT):
    """Launch a block per row.

    Args:
        x: (T, N).
        values: (T, k), the result.
        indices: (T, k), i64, the result.
    """
    by_vector(cute.promise_vectors(x, config.vector), values, indices, config).launch(
        grid=x.shape[0], block=config.threads, fallback=by_element(x, values, indices, config)
    )


@cute.kernel
def topk_gradient(dvalues: cute.Tensor, indices: cute.Tensor, dx: cute.Tensor, threads: cute.Constexpr[int]):
    row, thread = cute.arch.block_idx().x, cute.arch.thread_idx().x
    for i in range(thread, dx.shape[1].to(cute.Int32), threads):
        dx[row, i] = dx.element_type(0)
    cute.arch.sync_threads()
    for i in range(thread, dvalues.shape[1].to(cute.Int32), threads):
        dx[row, indices[row, i].to(cute.Int32)] = dvalues[row, i]


@cute.jit
def launch_gradient(dvalues: cute.Tensor, indices: cute.Tensor, dx: cute.Tensor, threads: cute.Constexpr[int] = 256):
    """Launch a block per row.

    Args:
        dvalues: (T, k), the gradient of the values.
        indices: (T, k), i64, of different elements.
        dx: (T, N), the result.
    """
    topk_gradient(dvalues, indices, dx, threads).launch(grid=dx.shape[0], block=threads)


_MATRIX = "(?,?):(?{i64},1)"


@printed
def topk_text(config: TopkConfig | None = None) -> cute.Compiled:
    """Trace the kernels ``@topk_v`` and ``@topk``, and their host function ``@launch``."""
    c = config or DEFAULT
    x = cute.Tensor[number(c.element), _MATRIX]
    return cute.trace(launch, x, x, cute.Tensor[cute.Int64, _MATRIX], config=c)


@printed
def gradient_text(element: str = "bf16") -> cute.Compiled:
    """Trace the kernel ``@topk_gradient`` and its host function ``@launch_gradient``."""
    x = cute.Tensor[number(element), _MATRIX]
    return cute.trace(launch_gradient, x, cute.Tensor[cute.Int64, _MATRIX], x)
