"""Sampling of a token from each row of logits, with temperature, top-k, top-p and min-p.

A block has a row. With top-k it reads the row once, and selects from the candidates of :mod:`.topk`: it ranks them by
value for the filters, then by index to find the token of the drawn number.

Otherwise, the row is divided into segments of consecutive elements, one per warp at a time. The first pass computes
the maximum of each segment and the sum of its exponentials. Without filters there is no other pass: a scan of these
numbers finds the segment of the drawn number, which is read again to find the token.

Filters keep a prefix of the elements in the order of value and then index. It ends at a threshold. Only the first ones
of the elements that are equal to the threshold are kept. Each further pass decides two bits of the threshold: it counts
the elements that are not less than three candidates, or adds their exponentials.

    launch(logits, tokens, numbers, arrays)
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from math import log2
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number, vector_width
from cute_dialect.kernels.common.philox import drawn
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.quantize import over_threads
from cute_dialect.kernels.rows.route import ordered, unordered
from cute_dialect.kernels.rows.topk import (
    AT_ONCE,
    CANDIDATES,
    MOST_SEGMENTS,
    Candidates,
    Row,
    bisected,
    candidates_of,
    choose_threads,
    column_of,
    counts,
    find_candidates,
    key_of,
    load,
    rank_of,
    segment_of,
    segments_of,
)
from cute_dialect.lang.values.signature_types import Int, Value

__all__ = ["COLDEST", "HOTTEST", "SETTINGS", "SampleConfig", "choose_config", "passes_of", "sample_text"]

SETTINGS = ("temperature", "top_k", "top_p", "min_p", "seed", "offset")
"""Settings, which are numbers or arrays."""

COLDEST, HOTTEST = 2.0**-126, 2.0**126
"""Least and greatest temperature except 0: log2(e) divided by them is a normal number of f32."""

_THREADS, _FEW_ROWS = 512, 132
"""Threads of a block; up to this number of rows, a block has twice as many."""

_SHIFTS = {"f32": 0, "f16": 12, "bf16": 16}
"""Low bits of an f32 integer that are equal for all elements of a sign, and need not be compared."""


class SampleConfig(NamedTuple):
    """Configuration of the kernel.

    >>> SampleConfig().name, SampleConfig(filters="kp", arrays=("temperature",)).name
    ('sample-bf16-64-512', 'sample-bf16-64-512-kp-temperature')
    """

    element: str = "bf16"  # of the logits
    segments: int = 64  # entries of the table of segments, at least as many as a row has
    threads: int = _THREADS  # threads of a block
    filters: str = ""  # k (top-k), p (top-p), m (min-p)
    arrays: tuple[str, ...] = ()  # settings that are arrays; the others are numbers
    capacity: int = CANDIDATES  # candidates of top-k in shared memory
    largest: bool = True  # top-k keeps the greatest logits

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
        words = ["sample", self.element, str(self.segments), str(self.threads), self.filters, *self.arrays]
        words += [str(self.capacity)] * (self.capacity != CANDIDATES)
        return "-".join([x for x in words if x])


DEFAULT = SampleConfig()


def choose_config(
    element: str, n: int, filters: str = "", arrays: tuple[str, ...] = (), rows: int = 1 << 20
) -> SampleConfig | None:
    """Return the configuration for ``rows`` rows of ``n`` elements; None if they are too long.

    >>> [choose_config("bf16", n, rows=rows).name for n, rows in ((700, 99), (32000, 4096), (128256, 64))]
    ['sample-bf16-64-32', 'sample-bf16-64-512', 'sample-bf16-128-1024']
    """
    segments, entries = segments_of(element, n)
    most = _THREADS if rows > _FEW_ROWS else 2 * _THREADS
    threads = 32
    while threads < most and threads < 32 * segments:
        threads *= 2
    if "k" in filters:
        threads = choose_threads(segments, rows)
    return SampleConfig(element, entries, threads, filters, arrays) if entries <= MOST_SEGMENTS else None


def passes_of(c: SampleConfig) -> int:
    """Return the number of passes over a row, unless more logits than the capacity are equal.

    >>> [passes_of(SampleConfig("bf16", filters=x)) for x in ("", "m", "k", "p", "kp")]
    [1, 2, 1, 11, 1]
    """
    if "k" in c.filters or not c.filters:
        return 1
    return 2 + ((32 - _SHIFTS[c.element]) // 2 + 1) * ("p" in c.filters)


class Numbers(NamedTuple):
    """Settings that are the same for all rows."""

    temperature: cute.Float32  # greater than 0
    top_k: cute.Int32  # 0 for all tokens
    top_p: cute.Float32  # 1 for all tokens
    min_p: cute.Float32  # 0 for all tokens
    seed: cute.Int64
    offset: cute.Int64


class Arrays(NamedTuple):
    """Settings that are arrays, in place of numbers, or None."""

    temperature: cute.Tensor | None  # 0 selects the most probable token
    top_k: cute.Tensor | None
    top_p: cute.Tensor | None
    min_p: cute.Tensor | None
    seed: cute.Tensor | None
    offset: cute.Tensor | None


class _Prefix(NamedTuple):
    """The elements that are kept: those greater than the threshold, and the first ones of those equal to it."""

    key: Value  # the threshold
    ties: Value  # number of kept elements equal to it
    least: Value  # least exponential of a kept element, which min-p determines


def _add(a: Value, b: Value) -> Value:
    return a + b


def _warp_sum(x: Value) -> Value:
    return cute.arch.warp_reduction(x, _add)


def _key(x: Value, c: SampleConfig) -> Value:
    """Return an integer with the order of the elements."""
    return ordered(x) >> _SHIFTS[c.element]


def _power(x: Value, most: Value, own: Row) -> Value:
    """Return the exponential of an element, divided by that of the largest one."""
    return cute.math.exp2((x - most) * own.factor)


def _finite(x: Value) -> Value:
    """Return a maximum, or 0 if it is -inf, so that differences from it are not NaN."""
    return cute.where(x == -float("inf"), 0.0, x)


def _first_pass(own: Row, most: Value, sums: Value) -> Value:
    """Fill the tables of the maxima and sums of segments, and return the largest element."""
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    largest = cute.Float32(-float("inf"))
    for s in range(warp, own.count, own.config.threads // 32):
        wide = load(own, s)
        top = cute.arch.warp_reduction(wide.load().reduce(cute.max), cute.max)
        total = _warp_sum(_power(wide.load(), _finite(top), own).reduce(_add))
        if lane == 0:
            most[s] = top
            sums[s] = total
        largest = cute.max(largest, top)
    return over_threads(largest, cute.max, own.config.threads)


def _counts(own: Row, most: Value, candidates: list[Value], is_sum: bool) -> list[Value]:
    """Return the numbers of elements that are not less than candidates, or the sums of their exponentials."""

    def measure(x: Value, _: Value) -> tuple[Value, Value]:
        return _key(x, own.config), _power(x, most, own) if is_sum else cute.full(x.size, 1, cute.Int32)

    return counts(own, measure, candidates, cute.Float32 if is_sum else cute.Int32)


def _bisected(own: Row, most: Value, wanted: Value, is_sum: bool, floor: Value) -> Value:
    """Return the largest threshold that keeps at least the requested count or sum; every key up to ``floor`` does."""
    bits = 32 - _SHIFTS[own.config.element]
    return bisected(bits, wanted, floor, lambda candidates: _counts(own, most, candidates, is_sum))


class _Edge(NamedTuple):
    """Elements at a threshold."""

    above: Value  # number of greater elements
    equal: Value  # number of equal elements
    mass: Value  # sum of the exponentials of greater elements
    each: Value  # exponential of an equal element


def _edge(own: Row, most: Value, key: Value) -> _Edge:
    if "p" not in own.config.filters:
        above, all_of = _counts(own, most, [key + 1, key], False)
        return _Edge(above, all_of - above, cute.Float32(0), cute.Float32(0))

    def measure(x: Value, _: Value) -> tuple[Value, ...]:
        return _key(x, own.config), cute.full(x.size, 1, cute.Int32), _power(x, most, own)

    above, all_of, mass, with_equal = counts(own, measure, [key + 1, key], cute.Int32, cute.Float32)
    equal = all_of - above
    return _Edge(above, equal, mass, (with_equal - mass) / cute.max(equal, 1).to(cute.Float32))


def _total(own: Row, most: Value, maxima: Value, sums: Value) -> Value:
    """Return the sum of the exponentials of a row, from the tables of the first pass."""
    total = cute.Float32(0)
    for s in range(cute.arch.thread_idx().x, own.count, own.config.threads):
        total = total + sums[s] * _power(maxima[s], most, own)
    cute.arch.sync_threads()  # The reduction uses the table of that of the first pass again.
    return over_threads(total, _add, own.config.threads)


def _filtered(own: Row, most: Value, top_k: Int, top_p: Value, least: Value, tables: tuple[Value, Value]) -> _Prefix:
    """Return the prefix that top-k and top-p keep. ``tables`` are the maxima and sums of segments."""
    c, n = own.config, own.n
    key, ties, total = cute.Uint32(0), cute.Int32(0), cute.Float32(0)
    if "k" in c.filters:
        k = cute.where((top_k <= 0) | (top_k > n), n, top_k)
        key = _bisected(own, most, k, False, cute.Uint32(0))
        edge = _edge(own, most, key)
        ties = k - edge.above
        total = edge.mass + edge.each * ties.to(cute.Float32)
    elif "p" in c.filters:
        total = _total(own, most, *tables)
    if "p" in c.filters:
        wanted = cute.max(total * top_p, 2.0**-100)  # keeps the most probable token if top_p is 0
        other = _bisected(own, most, wanted, True, key)
        edge = _edge(own, most, other)
        # The ratio is NaN or infinite in rows without a finite maximum.
        ratio = cute.math.ceil((wanted - edge.mass) / edge.each)
        needed = cute.where(ratio > 1.0, cute.where(ratio < 2.0**30, ratio, 2.0**30), 1.0).to(cute.Int32)
        # All equals are kept unless top-k has kept fewer.
        limit = cute.where(other == key, ties, edge.equal)
        is_all = top_p >= 1.0
        ties = cute.where(is_all, ties, cute.min(needed, limit))
        key = cute.where(is_all, key, other)
    return _Prefix(key, ties, least)


def _kept_pass(own: Row, most: Value, kept: _Prefix, sums: Value, equals: Value) -> None:
    """Fill the tables of the sums of elements greater than the threshold, and of the numbers of those equal to it."""
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    for s in range(warp, own.count, own.config.threads // 32):
        x = load(own, s).load()
        keys, powers, zeros = _key(x, own.config), _power(x, most, own), cute.full(x.size, 0.0, cute.Float32)
        powers = cute.where(powers >= kept.least, powers, zeros)
        total = cute.where(keys > kept.key, powers, zeros).reduce(_add)
        ones = cute.full(x.size, 1, cute.Int32)
        is_equal = (keys == kept.key) & (powers > 0.0)
        count = cute.where(is_equal, ones, cute.full(x.size, 0, cute.Int32)).reduce(_add)
        total, count = _warp_sum(total), cute.arch.warp_redux_sync(count, "add")
        if lane == 0:
            sums[s] = total
            equals[s] = count


def _scan(x: Value, lane: Value) -> Value:
    """Return the inclusive prefix sums of the lanes."""
    for distance in (1, 2, 4, 8, 16):
        other = cute.arch.shuffle_sync_up(x, distance)
        x = x + cute.where(lane >= distance, other, type(x)(0))
    return x


def _before(x: Value, lane: Value) -> Value:
    """Return the exclusive prefix sums, given the inclusive ones."""
    other = cute.arch.shuffle_sync_up(x, 1)
    return cute.where(lane >= 1, other, type(x)(0))


def _first_lane(ballot: Value) -> Value:
    """Return the lowest set bit of a ballot."""
    return cute.math.popc((ballot & (cute.Uint32(0) - ballot)) - 1).to(cute.Int32)


def _found(own: Row, most: Value, kept: _Prefix, tables: tuple[Value, Value, Value], u: Value) -> Value:
    """Return the token of a drawn number. One warp computes it.

    Args:
        tables: Maxima, sums and numbers of equal elements of the segments.
        u: the number, in [0, 1).
    """
    c, lane, (maxima, sums, equals) = own.config, cute.arch.lane_idx(), tables
    total, ties = cute.Float32(0), cute.Int32(0)
    of_tie = cute.where(kept.ties > 0, _power_of_key(kept.key, most, own), 0.0) if c.filters else cute.Float32(0)
    for start in range(0, own.count, 32):
        s = start + lane
        mass, equal = cute.Float32(0), cute.Int32(0)
        if s < own.count:
            mass = sums[s]
            if c.filters:
                equal = equals[s]
            else:
                mass = mass * _power(maxima[s], most, own)
        if c.filters:
            up_to = _scan(equal, lane)
            before = ties + up_to - equal
            mass = mass + of_tie * cute.min(cute.max(kept.ties - before, 0), equal).to(cute.Float32)
            ties = ties + cute.arch.shuffle_sync(up_to, 31)
            if s < own.count:
                sums[s] = mass
                equals[s] = before
        total = total + cute.arch.shuffle_sync(_scan(mass, lane), 31)
    if c.filters:
        cute.arch.sync_warp()
    target = cute.min(u * total, total * (1.0 - 2.0**-23))
    base, before, segment, last = cute.Float32(0), cute.Float32(0), cute.Int32(-1), cute.Int32(0)
    for start in range(0, own.count, 32):
        s = start + lane
        mass = cute.Float32(0)
        if s < own.count:
            mass = sums[s]
            if not c.filters:
                mass = mass * _power(maxima[s], most, own)
        up_to = _scan(mass, lane)
        hits = cute.arch.vote_ballot_sync(base + up_to > target)
        used = cute.arch.warp_redux_sync(cute.where(mass > 0.0, s, 0), "max")
        last = cute.max(last, used)
        at = _first_lane(hits)
        here = base + cute.arch.shuffle_sync(_before(up_to, lane), at & 31)
        is_first = (segment < 0) & (hits != 0)
        before = cute.where(is_first, here, before)
        segment = cute.where(is_first, start + at, segment)
        base = base + cute.arch.shuffle_sync(up_to, 31)
    # Roundings may leave the number above all sums: the token is then the last one that is kept.
    is_over = segment < 0
    segment = cute.where(is_over, last, segment)
    before = cute.where(is_over, cute.Float32(0), before)
    ties = equals[segment] if c.filters else cute.Int32(0)
    return _found_in_segment(own, most, kept, segment, before, ties, cute.where(is_over, float("inf"), target))


def _power_of_key(key: Value, most: Value, own: Row) -> Value:
    """Return the exponential of the element that has a key."""
    bits = key << _SHIFTS[own.config.element]
    # The low bits of negative numbers are ones.
    low = cute.Uint32((1 << _SHIFTS[own.config.element]) - 1)
    bits = cute.where(bits >> 31 != 0, bits, bits | low)
    return _power(unordered(bits), most, own)


def _found_in_segment(
    own: Row, most: Value, kept: _Prefix, segment: Value, base: Value, ties: Value, target: Value
) -> Value:
    """Return the first token of a segment whose prefix sum exceeds the target, or the last one that is kept."""
    c, lane = own.config, cute.arch.lane_idx()
    wide = load(own, segment)
    token, last = cute.Int32(-1), cute.Int32(0)
    for v in cute.range_constexpr(AT_ONCE):
        powers, keys, equal = [], [], cute.Int32(0)
        for i in range(c.vector):
            x = wide[v * c.vector + i]
            power, key = _power(x, most, own), _key(x, c) if c.filters else None
            if c.filters:
                is_kept = power >= kept.least
                is_equal = (key == kept.key) & is_kept & (power > 0.0)
                power = cute.where((key >= kept.key) & is_kept, power, 0.0)
                keys.append(is_equal)
                equal = equal + cute.where(is_equal, 1, 0)
            powers.append(power)
        if c.filters:
            up_to = _scan(equal, lane)
            rank = ties + up_to - equal
            ties = ties + cute.arch.shuffle_sync(up_to, 31)
            for i, is_equal in enumerate(keys):
                powers[i] = cute.where(is_equal & (rank >= kept.ties), 0.0, powers[i])
                rank = rank + cute.where(is_equal, 1, 0)
        own_sum = powers[0]
        for power in powers[1:]:
            own_sum = own_sum + power
        sums = _scan(own_sum, lane)
        first = segment * c.segment + (v * 32 + lane) * c.vector
        up_to, mine, used = base + _before(sums, lane), cute.Int32(-1), cute.Int32(-1)
        for i, power in enumerate(powers):
            up_to = up_to + power
            mine = cute.where((mine < 0) & (up_to > target) & (power > 0.0), first + i, mine)
            used = cute.where(power > 0.0, first + i, used)
        last = cute.max(last, cute.arch.warp_redux_sync(used, "max"))
        hits = cute.arch.vote_ballot_sync((base + sums > target) & (used >= 0))
        chosen = cute.arch.shuffle_sync(cute.where(mine < 0, used, mine), _first_lane(hits) & 31)
        token = cute.where((token < 0) & (hits != 0), chosen, token)
        base = base + cute.arch.shuffle_sync(sums, 31)
    return cute.where(token < 0, last, token)


def _by_passes(own: Row, top_k: Int, top_p: Value, min_p: Value, tables: tuple[Value, Value, Value], u: Value) -> Value:
    """Return the token of the number that ``u`` draws. Only the first warp computes it."""
    c, (maxima, sums, equals) = own.config, tables
    most = _finite(_first_pass(own, maxima, sums))
    if c.threads == 32:
        cute.arch.sync_warp()  # The reduction over several warps has a barrier.
    kept = _Prefix(cute.Uint32(0), cute.Int32(0), cute.Float32(0))
    if c.filters:
        kept = _filtered(own, most, top_k, top_p, min_p, (maxima, sums))
        _kept_pass(own, most, kept, sums, equals)
        cute.arch.sync_threads()
    token = cute.Int32(0)
    if cute.arch.warp_idx() == 0:
        token = _found(own, most, kept, tables, u())
    return token


# -------------------------------------------------------------------------------------------------- with candidates


def _powers(own: Row, most: Value, codes: Value, at: Value, count: Int) -> Value:
    """Return the exponential of a candidate, or 0 past the last one."""
    power = cute.Float32(0)
    if at < count:
        power = _power(unordered(key_of(codes[at])), most, own)
    return power


def _kept_of(own: Row, most: Value, ranked: Value, k: Int, top_p: Value, min_p: Value) -> Value:
    """Return the number of candidates that top-p and min-p keep, at least 1. A warp computes it."""
    c, lane = own.config, cute.arch.lane_idx()
    wanted = cute.Float32(0)
    if "p" in c.filters:
        total = cute.Float32(0)
        for start in range(0, k, 32):
            total = total + cute.arch.shuffle_sync(_scan(_powers(own, most, ranked, start + lane, k), lane), 31)
        wanted = cute.where(top_p >= 1.0, float("inf"), cute.max(total * top_p, 2.0**-100))
    kept, before = cute.Int32(0), cute.Float32(0)
    for start in range(0, k, 32):
        power = _powers(own, most, ranked, start + lane, k)
        is_kept = start + lane < k
        if "m" in c.filters:
            is_kept = is_kept & (power >= min_p)
        if "p" in c.filters:
            up_to = _scan(power, lane)
            is_kept = is_kept & (before + _before(up_to, lane) < wanted)
            before = before + cute.arch.shuffle_sync(up_to, 31)
        kept = kept + cute.math.popc(cute.arch.vote_ballot_sync(is_kept)).to(cute.Int32)
    return cute.max(kept, 1)


def _of_candidates(
    own: Row, count: Int, k: Int, top_p: Value, min_p: Value, held: Candidates, ranked: Value, u: Value
) -> Value:
    """Return the token of the number that ``u`` draws. Only the first warp computes it.

    Args:
        count: number of candidates, at least ``k``.
        ranked: Shared memory for the first ``k`` candidates by value.
    """
    c, thread, lane, warp = own.config, cute.arch.thread_idx().x, cute.arch.lane_idx(), cute.arch.warp_idx()
    for i in range(thread, count, c.threads):
        code = held.codes[i]
        rank = rank_of(held.codes, count, code)
        if rank < k:
            ranked[rank] = code
    cute.arch.sync_threads()
    most, kept = _finite(unordered(key_of(ranked[0]))), k
    if c.filters != "k":
        if warp == 0:
            found = _kept_of(own, most, ranked, k, top_p, min_p)
            if lane == 0:
                held.counters[0] = found
        cute.arch.sync_threads()
        kept = held.counters[0]
    # The codes are sorted again, by index: the lower half of a code is the complement of its index.
    for i in range(thread, kept, c.threads):
        code, place = ranked[i], cute.Int32(0)
        for j in range(kept):
            place = place + cute.where(column_of(ranked[j]) < column_of(code), 1, 0)
        held.codes[place] = code
    cute.arch.sync_threads()
    token = cute.Int32(0)
    if warp == 0:
        token = _drawn_of(own, most, held.codes, kept, u())
    return token


def _drawn_of(own: Row, most: Value, codes: Value, kept: Value, u: Value) -> Value:
    """Return the first token whose prefix sum exceeds the share ``u`` of the sum. A warp computes it."""
    lane, total = cute.arch.lane_idx(), cute.Float32(0)
    for start in range(0, kept, 32):
        total = total + cute.arch.shuffle_sync(_scan(_powers(own, most, codes, start + lane, kept), lane), 31)
    target = cute.min(u * total, total * (1.0 - 2.0**-23))
    base, place, last = cute.Float32(0), cute.Int32(-1), cute.Int32(0)
    for start in range(0, kept, 32):
        power = _powers(own, most, codes, start + lane, kept)
        up_to = _scan(power, lane)
        hits = cute.arch.vote_ballot_sync((base + up_to > target) & (power > 0.0))
        place = cute.where((place < 0) & (hits != 0), start + _first_lane(hits), place)
        last = cute.max(last, cute.arch.warp_redux_sync(cute.where(power > 0.0, start + lane, 0), "max"))
        base = base + cute.arch.shuffle_sync(up_to, 31)
    # Roundings may leave the number above all sums: the token is then the last one that is kept.
    return column_of(codes[cute.where(place < 0, last, place)])


def _clamped(x: Value, least: float, most: float, default: float) -> Value:
    """Return a setting within its limits; NaN gives the default."""
    x = cute.where(x == x, x, default)
    return cute.where(x < least, least, cute.where(x > most, most, x))


def _process(
    logits: cute.Tensor, tokens: cute.Tensor, numbers: Numbers, arrays: Arrays, c: SampleConfig, w: int
) -> None:
    row, n = cute.arch.block_idx().x, logits.shape[1].to(cute.Int32)
    # Arrays have an element per row, those of the random numbers one element.
    chosen = [
        number if array is None else array[0 if name in ("seed", "offset") else row]
        for name, number, array in zip(SETTINGS, numbers, arrays)
    ]
    temperature, top_k, top_p, min_p, seed, offset = chosen
    if "temperature" in c.arrays:
        # A temperature of 0 selects the most probable token.
        temperature = _clamped(temperature, 0.0, HOTTEST, 1.0)
        top_k = cute.where(temperature == 0.0, 1, top_k)
        temperature = cute.where(temperature == 0.0, 1.0, cute.max(temperature, COLDEST))
    if "top_p" in c.arrays:
        top_p = _clamped(top_p, 0.0, 1.0, 1.0)
    if "min_p" in c.arrays:
        min_p = _clamped(min_p, 0.0, 1.0, 0.0)
    own = Row(logits, row, n, cute.ceil_div(n, c.segment), w, c, log2(2.718281828459045) / temperature)
    maxima = cute.smem_tensor(cute.Float32, cute.make_layout(c.segments))
    sums = cute.smem_tensor(cute.Float32, cute.make_layout(c.segments))
    equals = cute.smem_tensor(cute.Int32, cute.make_layout(c.segments)) if c.filters else None

    def u() -> Value:
        return drawn(row, cute.Int32(0), None, seed, offset)

    if "k" in c.filters:
        held, ranked = candidates_of(c), cute.smem_tensor(cute.Uint64, cute.make_layout(c.capacity))
        k, token = cute.where((top_k <= 0) | (top_k > n), n, top_k), cute.Int32(0)
        count = find_candidates(own, k, held)
        if count <= c.capacity:
            token = _of_candidates(own, count, k, top_p, min_p, held, ranked, u)
        else:
            token = _by_passes(own, top_k, top_p, min_p, (maxima, sums, equals), u)
    else:
        token = _by_passes(own, top_k, top_p, min_p, (maxima, sums, equals), u)
    if cute.arch.thread_idx().x == 0:
        tokens[row] = cute.max(0, cute.min(token, n - 1))


@cute.kernel(name="sample_v")
def by_vector(
    logits: cute.Tensor, tokens: cute.Tensor, numbers: Numbers, arrays: Arrays, config: cute.Constexpr[SampleConfig]
):
    _process(logits, tokens, numbers, arrays, config, config.vector)


@cute.kernel(name="sample")
def by_element(
    logits: cute.Tensor, tokens: cute.Tensor, numbers: Numbers, arrays: Arrays, config: cute.Constexpr[SampleConfig]
):
    _process(logits, tokens, numbers, arrays, config, 1)


@cute.jit
def launch(
    logits: cute.Tensor, tokens: cute.Tensor, numbers: Numbers, arrays: Arrays,
    config: cute.Constexpr[SampleConfig] = DEFAULT,
):  # fmt: skip
    """Launch a block per row.

    Args:
        logits: (T, V).
        tokens: (T,), i32, the result.
        numbers, arrays: The settings. Arrays have an element per row, those of the random numbers one element.
    """
    by_vector(cute.promise_vectors(logits, config.vector), tokens, numbers, arrays, config).launch(
        grid=logits.shape[0], block=config.threads, fallback=by_element(logits, tokens, numbers, arrays, config)
    )


@printed
def sample_text(config: SampleConfig | None = None) -> cute.Compiled:
    """Trace the kernels ``@sample_v`` and ``@sample``, and their host function ``@launch``."""
    c = config or DEFAULT
    kinds: Any = (cute.Float32, cute.Int32, cute.Float32, cute.Float32, cute.Int64, cute.Int64)
    arrays: Any = [cute.Tensor[kind, "?:1"] if name in c.arrays else None for name, kind in zip(SETTINGS, kinds)]
    logits = cute.Tensor[number(c.element), "(?,?):(?{i64},1)"]
    return cute.trace(launch, logits, cute.Tensor[cute.Int32, "?:1"], Numbers(*kinds), Arrays(*arrays), config=c)
