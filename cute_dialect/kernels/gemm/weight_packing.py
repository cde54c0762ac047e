"""Packing of quantized weights for :mod:`cute_dialect.kernels.gemm.mixed_input`, and unpacking to 16-bit floats.

A chunk has 64 rows of W and 128 of K. Lane ``l`` of warp ``w`` of a warpgroup multiplies rows ``16 w + l / 4`` and that
plus 8. Its fragment of an MMA, 16 of K, has the columns ``2 (l % 4) + {0, 1, 8, 9}``. A word of 4-bit weights is a
whole fragment: bits ``4 r`` and ``16 + 4 r`` of it begin the two weights of register ``r``. Two words of 8-bit weights
are one. The words of four fragments, or of two, are 16 bytes of a lane, and the lanes of a warp are adjacent.

The sources are numbers of one byte each, or the words of GPTQ and AWQ checkpoints:

====  =============  ===========================================================
name  shape          bits of weight (n, k)
====  =============  ===========================================================
rows  (N, K)         one element
gptq  (K / P, N)     element (k / P, n), from bit ``bits * (k % P)`` on
awq   (K, N / P)     element (k, n / P), in the order 0, 2, 4, 6, 1, 3, 5, 7
====  =============  ===========================================================

P is the number of weights of a 32-bit word.

    pack(q, scales, zeros, packed)
    unpack(packed, w)

>>> PackConfig(layout="gptq", zeros="words").name
'pack-ui4-g128-f16-gptq-words'
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalOperand=false, reportOptionalSubscript=false
# pyright: reportArgumentType=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.gemm.mixed_input import DEPTH, FLOATS, ROWS, WEIGHTS, Chunk
from cute_dialect.lang.values.signature_types import Int

_THREADS = 128


class PackConfig(NamedTuple):
    """Configuration of the packing kernel."""

    weight: str = "ui4"  # stored type of W, see mixed_input.WEIGHTS
    group: int = 128  # elements of K that share a scale; 0: a row
    scale: str = "f16"  # type of the scales; NaN for a group with a weight that is NaN
    layout: str = "rows"  # of the source: rows, gptq or awq
    source: str = "i8"  # type of a source of rows: i8, or ui8 also for the bits of 8-bit floats
    zeros: str = ""
    """``rows``: zero points (N, groups), of the type of the source. ``words``: packed along N as in GPTQ and AWQ
    checkpoints. ``plain``: all zero points are ``offset``. Empty: the packed weights have none."""
    offset: int = 0  # added to the zero points of unsigned weights

    @property
    def chunk(self) -> Chunk:
        return Chunk(self.weight, self.group, self.scale, bool(self.zeros))

    @property
    def bits(self) -> int:
        return WEIGHTS[self.weight]

    @property
    def middle(self) -> int:
        """Least weight of signed sources, negated."""
        return 1 << self.bits - 1

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        group = f"g{self.group}" if self.group else "row"
        words = {"source": "-{}", "zeros": "-{}", "offset": "-o{}"}
        return f"pack-{self.weight}-{group}-{self.scale}-{self.layout}" + differing(self, words)


class UnpackConfig(NamedTuple):
    """Configuration of the unpacking kernel."""

    weight: str = "ui4"
    group: int = 128
    scale: str = "f16"
    zeros: bool = False
    output: str = "f16"  # f16, bf16 or f32

    @property
    def chunk(self) -> Chunk:
        return Chunk(self.weight, self.group, self.scale, self.zeros)

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        group = f"g{self.group}" if self.group else "row"
        return f"unpack-{self.weight}-{group}-{self.scale}-{self.output}" + differing(self, {"zeros": "-z"})


class _Word(NamedTuple):
    """Position of a word of weights: its first row and column in a chunk, and its half of a fragment."""

    row: Int
    column: Int
    half: Int  # of 8-bit weights; 0 for 4-bit weights


def _word(bits: int, index: Int) -> _Word:
    """Return the position of word ``index`` of a chunk."""
    vectors = bits // 4  # of 16 bytes, of a lane and 64 of K
    part, warp, lane, place = index // 512, index // 128 % 4, index // 4 % 32, index % 4
    step = part % vectors * (4 // vectors) + place // vectors
    column = part // vectors * 64 + step * 16 + lane % 4 * 2
    return _Word(warp * 16 + lane // 4, column, place % vectors)


def _elements(bits: int, word: _Word) -> list[tuple[Int, Int, int]]:
    """Return the row and column of each weight of a word, and its first bit."""
    if bits == 4:
        return [
            (word.row + r % 2 * 8, word.column + r // 2 * 8 + i, 4 * r + 16 * i) for r in range(4) for i in range(2)
        ]
    return [(word.row + r * 8, word.column + word.half * 8 + i, 16 * r + 8 * i) for r in range(2) for i in range(2)]


def _row_of_pair(index: Int) -> Int:
    """Return the row of the chunk whose scale or zero point is at ``index``: rows that are 8 apart are adjacent."""
    return index // 16 * 16 + index // 2 % 8 + index % 2 * 8


def _bits_along_n(words: cute.Tensor, c: PackConfig, line: Int, n: Int) -> Int:
    """Return the integer for row ``n`` in words that are packed along N."""
    per = 32 // c.bits
    place = n % per
    if c.layout == "awq":
        place = place // 2 + place % 2 * (per // 2)
    return _field(words[line, n // per], c.bits, place)


def _field(word: Int, bits: int, place: Int) -> Int:
    """Return integer ``place`` of a word."""
    return (word.to(cute.Uint32) >> (place * bits).to(cute.Uint32)) & ((1 << bits) - 1)


def _weight(q: cute.Tensor, c: PackConfig, n: Int, k: Int) -> Int:
    """Return a weight as an unsigned integer."""
    if c.layout == "rows":
        found = q[n, k].to(cute.Int32)
        return (found + c.middle if c.source == "i8" else found).to(cute.Uint32)
    if c.layout == "awq":
        return _bits_along_n(q, c, k, n)
    per = 32 // c.bits
    return _field(q[k // per, n], c.bits, k % per)


def _zero_point(zeros: cute.Tensor | None, c: PackConfig, n: Int, g: Int) -> Int:
    """Return the zero point of an unsigned weight."""
    if c.zeros == "words":
        return _bits_along_n(zeros, c, g, n) + c.offset
    found = zeros[n, g].to(cute.Int32) + c.offset
    return (found + c.middle if c.source == "i8" else found).to(cute.Uint32)


@cute.jit
def pack(
    q: cute.Tensor,
    scales: cute.Tensor,
    zeros: cute.Tensor | None,
    packed: cute.Tensor,
    config: cute.Constexpr[PackConfig],
):
    """Launch one block per chunk.

    Args:
        q: The weights, see the table above.
        scales: (N, groups), with any strides.
        zeros: (N, groups) or words (groups, N / P), or None.
        packed: (ceil(N / 64), words) of Int32.
        config: The configuration.
    """
    c = config
    per = 32 // c.bits
    n, k = q.shape if c.layout == "rows" else (q.shape[1], q.shape[0] * per)
    if c.layout == "awq":
        n, k = q.shape[1] * per, q.shape[0]
    assert scales.shape[0] == n, "scales must have a row per row of W"
    assert scales.shape[1] == (cute.ceil_div(k, c.group) if c.group else 1), "scales must have a column per group"
    assert packed.shape[0] == cute.ceil_div(n, ROWS), "packed has another number of rows"
    chunks = cute.ceil_div(k, DEPTH)
    pack_weights(q, scales, zeros, packed, n, k, c).launch(grid=(chunks, packed.shape[0], 1), block=_THREADS)


@cute.kernel
def pack_weights(
    q: cute.Tensor,
    scales: cute.Tensor,
    zeros: cute.Tensor | None,
    packed: cute.Tensor,
    n: cute.Int32,
    k: cute.Int32,
    config: cute.Constexpr[PackConfig],
):
    """Pack a chunk. Weights past the end of K meet zeros of X, so that their value is arbitrary."""
    c, chunk = config, config.chunk
    step, block, _ = cute.arch.block_idx()
    thread = cute.arch.thread_idx().x
    line = packed[block, None]
    at, row, column = step * chunk.words, block * ROWS, step * DEPTH
    for i in range(chunk.weights // _THREADS):
        index = i * _THREADS + thread
        word = cute.Uint32(0)
        for r, s, bit in _elements(c.bits, _word(c.bits, index)):
            found = cute.Uint32(0)
            if (row + r < n) & (column + s < k):
                found = _weight(q, c, row + r, column + s)
                if c.weight == "i8":
                    found = found ^ 0x80
            word = word | (found << bit)
        line[at + index] = word.to(cute.Int32)
    if c.group:
        for g in cute.range_constexpr(chunk.groups):
            _pack_group(c, q, scales, zeros, line, (at + chunk.weights, g, chunk.groups), step * chunk.groups + g, row)
    elif step == 0:
        at = cute.ceil_div(k, DEPTH) * chunk.words
        _pack_group(c, q, scales, zeros, line, (at, 0, 1), cute.Int32(0), row)


def _pack_group(
    c: PackConfig,
    q: cute.Tensor,
    scales: cute.Tensor,
    zeros: cute.Tensor | None,
    line: cute.Tensor,
    place: tuple[Int, int, int],
    group: Int,
    row: Int,
) -> None:
    """Store the scales and zero points of 64 rows.

    Args:
        place: Word of the first group, index of this group, and number of groups.
        group: Index of the group along K.
    """
    chunk, thread, n = c.chunk, cute.arch.thread_idx().x, scales.shape[0]
    first, index, count = place
    inside = (thread < ROWS) & (group < scales.shape[1])
    source = row + _row_of_pair(thread)
    if thread < ROWS:
        scale = cute.make_rmem_tensor(1, scales.element_type)
        scale.fill(0)
        if inside & (source < n):
            scale[0] = scales[source, group]
            if c.weight in FLOATS:
                k = q.shape[1]
                end = cute.min((group + 1) * c.group, k) if c.group else k
                for i in range(group * c.group, end):
                    if (q[source, i].to(cute.Int32) & 0x7F) == 0x7F:
                        scale[0] = scales.element_type(float("nan"))
        to = cute.recast_ptr(line.iterator + (first + index * chunk.scales), dtype=scales.element_type)
        cute.make_tensor(to, cute.make_layout(ROWS))[thread] = scale[0]
        if c.zeros:
            zero = cute.Uint32(c.offset if c.zeros == "plain" else 0)
            if c.zeros != "plain" and inside & (source < n):
                zero = _zero_point(zeros, c, source, group)
            at = first + (count * chunk.scales + index * chunk.zero_points)
            to = cute.recast_ptr(line.iterator + at, dtype=cute.Uint8)
            cute.make_tensor(to, cute.make_layout(ROWS))[thread] = zero.to(cute.Uint8)


@cute.jit
def unpack(packed: cute.Tensor, w: cute.Tensor, config: cute.Constexpr[UnpackConfig]):
    """Launch one block per chunk.

    Args:
        packed: (ceil(N / 64), words) of Int32.
        w: (N, K), contiguous along K: the result.
        config: The configuration.
    """
    assert packed.shape[0] == cute.ceil_div(w.shape[0], ROWS), "packed has another number of rows"
    grid = (cute.ceil_div(w.shape[1], DEPTH), packed.shape[0], 1)
    unpack_weights(packed, w, config).launch(grid=grid, block=_THREADS)


@cute.kernel
def unpack_weights(packed: cute.Tensor, w: cute.Tensor, config: cute.Constexpr[UnpackConfig]):
    """Unpack a chunk through shared memory, so that rows of the result are written in order."""
    c, chunk, bits = config, config.chunk, WEIGHTS[config.weight]
    step, block, _ = cute.arch.block_idx()
    thread = cute.arch.thread_idx().x
    line, row, column = packed[block, None], block * ROWS, step * DEPTH
    middle = 1 << bits - 1
    tile = cute.smem_tensor(w.element_type, cute.make_layout((ROWS, DEPTH), stride=(DEPTH + 8, 1)), 16)
    tail = line.shape[0] - chunk.scales - chunk.zero_points
    for i in range(chunk.weights // _THREADS):
        index = i * _THREADS + thread
        word = line[step * chunk.words + index].to(cute.Uint32)
        place = _word(bits, index)
        first, group, groups = tail, cute.Int32(0), 1
        if c.group:
            first, group, groups = step * chunk.words + chunk.weights, place.column // c.group, chunk.groups
        factors = []
        for half in cute.range_constexpr(2):
            r = place.row + half * 8
            at = r // 16 * 16 + r % 8 * 2 + half
            kind = number(c.scale)
            scales = cute.recast_ptr(line.iterator + (first + group * chunk.scales), dtype=kind)
            scale = cute.make_tensor(scales, cute.make_layout(ROWS))[at].to(cute.Float32)
            zero = cute.Int32(middle)
            if c.zeros:
                begin = first + (groups * chunk.scales + group * chunk.zero_points)
                points = cute.recast_ptr(line.iterator + begin, dtype=cute.Uint8)
                zero = cute.make_tensor(points, cute.make_layout(ROWS))[at].to(cute.Int32)
            factors.append((scale, zero))
        floats = None
        if c.weight in FLOATS:
            four = cute.make_rmem_tensor(4, number(c.weight))
            cute.recast_tensor(four, cute.Uint32)[0] = word
            floats = four.load().to(cute.Float32)
        for j, (r, s, bit) in enumerate(_elements(bits, place)):
            if floats is not None:
                tile[r, s] = (floats[bit // 8] * factors[j // 2 % 2][0]).to(w.element_type)
                continue
            found = (word >> bit) & ((1 << bits) - 1)
            if c.weight == "i8":
                found = found ^ 0x80
            half = j // 2 % 2
            scale, zero = factors[half]
            x = (found.to(cute.Int32) - zero).to(cute.Float32) * scale
            tile[r, s] = x.to(w.element_type)
    cute.arch.sync_threads()
    for i in range(ROWS * DEPTH // _THREADS):
        index = i * _THREADS + thread
        r, s = index // DEPTH, index % DEPTH
        if (row + r < w.shape[0]) & (column + s < w.shape[1]):
            w[row + r, column + s] = tile[r, s]


_PACKED = cute.Tensor[cute.Int32, "(?,?):(?{div=4},1)", "align<16>"]


@printed
def pack_text(config: PackConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@pack_weights`` and its host function ``@pack``."""
    c = config or PackConfig()
    matrix, words = "(?,?):(?{i64},1)", cute.Tensor[cute.Int32, "(?,?):(?{i64},1)"]
    q = cute.Tensor[number(c.source), matrix] if c.layout == "rows" else words
    zeros = {"rows": cute.Tensor[number(c.source), "(?,?):(?,?)"], "words": words}.get(c.zeros)
    return cute.trace(pack, q, cute.Tensor[number(c.scale), "(?,?):(?,?)"], zeros, _PACKED, c)


@printed
def unpack_text(config: UnpackConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@unpack_weights`` and its host function ``@unpack``."""
    c = config or UnpackConfig()
    return cute.trace(unpack, _PACKED, cute.Tensor[number(c.output), "(?,?):(?{i64},1)"], c)
