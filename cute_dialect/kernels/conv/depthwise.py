"""Depthwise convolution, with one filter per channel: memory-bound, without tensor cores.

A thread computes a vector of channels of a tile of pixels, and iterates over the image rows under the tile. Each row is
loaded while the previous one is in use, converted to f32 once, and added to every accumulator it contributes to. An
element is thus read from L1 once per overlapping tile, not once per tap.

The loop body covers as many image rows as an output row spans. Fully unrolled code would exceed the instruction cache
and be slower to fetch than to execute. Filters are in shared memory, or in registers if they have few taps.

    launch(x, f, y, config=DepthwiseConfig("f16", "f16", Window((3, 3), (1, 1), (1, 1))))

The gradient of an image (dgrad) uses the same loop over the output's gradient. Tiles are multiples of the strides, so
the taps that reach each pixel of a tile are known at compile time.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.kernel_names import by, differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.conv.config import Window, of_elements
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.lang.values.signature_types import Int

SHARED = 32768
"""Bytes of shared memory for the filters of a block."""


class Hit(NamedTuple):
    """A tap that reaches a pixel of a tile."""

    pixel: int  # index in the tile
    tap: int
    at: int  # the image pixel that it reads, relative to the tile's first pixel


class DepthwiseConfig(NamedTuple):
    """Configuration of a depthwise convolution. The window is 2-D, and the epilogue elementwise."""

    element: str  # type of the image
    output: str  # type of the result
    window: Window
    epilogue: Epilogue = Epilogue()
    gradient: bool = False  # dgrad: compute the image's gradient from the output's gradient
    # Rows and columns of pixels per thread, multiples of the strides for dgrad. With ``rolled``, the rows are an upper
    # bound.
    tile: tuple[int, int] = (8, 4)
    ahead: int = 2  # image rows that are prefetched
    rolled: bool = False  # loop over the rows of a tile instead of unrolling them
    threads: int = 256
    blocks: int = 2  # resident blocks per multiprocessor
    channels: int = 4  # per thread: 1, 2 or 4
    held: int = 16  # keep filters of at most this many taps in registers
    # One loop iteration per output row (per stride of rows for dgrad). It shifts accumulators and image rows to the
    # next registers, so that the code fits the instruction cache.
    shift: bool = False
    multiplier: int = 1  # filters per channel of the image
    staged: int = 6  # elements of filters per thread in flight to shared memory

    @property
    def given(self) -> int:
        """Image channels of a pixel that a thread reads."""
        return self.channels * self.multiplier if self.gradient else self.channels // self.multiplier

    @property
    def filters(self) -> int:
        """Filters per thread."""
        return max(self.channels, self.given)

    @property
    def lanes(self) -> int:
        """Upper bound of the threads of a block along the channels."""
        rows, columns = self.window.taps
        return max(1, min(64, SHARED // (rows * columns * self.filters * number(self.element).width // 8)))

    @property
    def registers(self) -> int:
        """Registers for image rows, live accumulators and taps."""
        taps, (rows, columns) = self.window.taps, self.tile
        line = len({hit.at for hit in self.hits(1)}) * self.given * number(self.element).width // 32
        rows = self.iteration[0] if self.rolled else rows
        places = [[hit.at for hit in self.hits(0) if hit.pixel == row] for row in range(rows)]
        ats = {at for of_row in places for at in of_row}
        begun = [sum(min(of_row) <= at <= max(of_row) for of_row in places if of_row) for at in ats]
        if self.shift:
            begun = [rows + self.past]
        held = taps[0] * taps[1] if taps[0] * taps[1] <= self.held else taps[1]
        return line * (self.ahead + 1) + self.channels * columns * max(begun, default=0) + self.filters * held

    @property
    def name(self) -> str:
        """Name of the kernel."""
        words = {"rolled": "r", "ahead": "a{}", "shift": "s", "channels": "c{}", "held": "h{}", "multiplier": "m{}"}
        tile = by(self.tile) + differing(self, words | {"staged": "o{}"}) + self.epilogue.suffix
        kind = differing(self, {"gradient": "dgrad-"})
        return f"depthwise-{kind}{self.element}-{self.output}-{self.window.name}-{tile}"

    def hits(self, i: int, pixels: range | None = None) -> list[Hit]:
        """Return the taps that reach the pixels of a tile, or given ``pixels``, along dimension ``i``.

        >>> DepthwiseConfig("f16", "f16", Window((1, 3), (0, 1), (0, 1)), gradient=True, tile=(1, 2)).hits(1)[:3]
        [Hit(pixel=0, tap=0, at=1), Hit(pixel=0, tap=1, at=0), Hit(pixel=0, tap=2, at=-1)]
        """
        w = self.window
        before, u, d = w.before[i], w.strides[i], w.dilations[i]
        found = list[Hit]()
        for pixel in range(self.tile[i]) if pixels is None else pixels:
            for t in range(w.taps[i]):
                tap = w.taps[i] - 1 - t if w.flip else t
                if not self.gradient:
                    found.append(Hit(pixel, tap, pixel * u - before + t * d))
                elif (pixel + before - t * d) % u == 0:
                    found.append(Hit(pixel, tap, (pixel + before - t * d) // u))
        return found

    def lines(self, i: int, pixels: Int) -> Any:
        """Return the distance between the image pixels that two result pixels ``pixels`` apart read."""
        u = self.window.strides[i]
        return pixels // u if self.gradient else pixels * u

    @property
    def iteration(self) -> tuple[int, int, int]:
        """Rows per loop iteration, its first image row, and the image row of the last tap of one stride.

        An iteration has more image rows than an output row spans and than are prefetched. Accumulators and image rows
        therefore use the same registers in each iteration.

        >>> DepthwiseConfig("f16", "f16", Window((3, 3), (1, 1), (1, 1))).iteration
        (3, -1, 1)
        """
        unit = self.window.strides[0] if self.gradient else 1
        places = [[hit.at for hit in self.hits(0, range(row, row + 1))] for row in range(unit)]
        most = max(self.ahead, max(max(ats) - min(ats) for ats in places if ats))
        rows = unit
        while self.lines(0, rows) <= most and not self.shift:
            rows += unit
        return rows, min(hit.at for hit in self.hits(0, range(rows))), max(max(ats) for ats in places if ats)

    @property
    def past(self) -> int:
        """Number of earlier output rows that the image rows of an iteration still reach, if registers are shifted."""
        unit = self.window.strides[0] if self.gradient else 1
        first = min(hit.at for hit in self.hits(0, range(unit)))
        n = 0
        while any(hit.at >= first for hit in self.hits(0, range(-(n + 1) * unit, -n * unit))):
            n += 1
        return n * unit

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        self.epilogue.check()
        if self.channels not in (1, 2, 4):
            raise ValueError(f"depthwise: channels is {self.channels}; it must be 1, 2 or 4")
        if self.given not in (1, 2, 4) or (not self.gradient and self.channels % self.multiplier):
            raise ValueError(
                f"depthwise: {self.channels} channels per thread with multiplier {self.multiplier} read "
                f"{self.given} image channels; this must be 1, 2 or 4"
            )
        if not of_elements(self.epilogue):
            raise ValueError("depthwise: the epilogue must be elementwise, got one over rows or columns")
        if self.shift and not self.rolled:
            raise ValueError("depthwise: shift=True needs rolled=True")
        if self.gradient and any(n % u for n, u in zip(self.tile, self.window.strides)):
            raise ValueError(
                f"depthwise: tile {self.tile} must be a multiple of the strides {self.window.strides} for dgrad"
            )


@cute.jit
def launch(
    image: cute.Tensor, filter: cute.Tensor, result: cute.Tensor, source: cute.Tensor | None = None,
    bias: cute.Tensor | None = None, alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None,
    operands: Any = None, config: cute.Constexpr[DepthwiseConfig | None] = None,
):  # fmt: skip
    """Launch the kernel.

    Args:
        image: (C, W, H, N).
        filter: (C, S, R).
        result: (C, Q, P, N).
        source, bias, alpha, beta, operands: Arguments of the epilogue. Matrices have a row per pixel.
        config: The configuration.
    """
    config.check()
    addends = Addends(source, bias, alpha, beta, operands)
    channels, images = result.shape[0], image.shape[3]
    assert channels % config.channels == 0, "the number of channels must be a multiple of the channels per thread"
    whole = channels * config.filters // config.channels
    assert filter.shape == (whole, *config.window.taps[::-1]), (
        "filter must have one filter per channel, with the taps of the window"
    )
    assert image.shape[0] * config.channels == channels * config.given, (
        "the channels of image and result must match the multiplier"
    )
    assert result.shape[3] == images, "image and result must have the same number of images"
    _, q, p, _ = result.shape
    vectors = channels // config.channels
    chunks = cute.ceil_div(vectors, config.lanes)
    lanes = cute.ceil_div(vectors, cute.max(chunks, 1))
    # Chunks of whole sectors.
    lanes = cute.where(chunks > 1, cute.min(cute.ceil_div(lanes, 8) * 8, config.lanes), lanes)
    at_once = config.threads // cute.max(lanes, 1)
    strips, bands = cute.ceil_div(q, config.tile[1]), cute.ceil_div(p, config.tile[0])
    rows: Any = config.tile[0]
    if config.rolled:  # bands of equal height
        unit = config.window.strides[0] if config.gradient else 1
        rows = cute.ceil_div(cute.ceil_div(p, cute.max(bands, 1)), unit) * unit
    tiles = cute.assume(strips * bands * images, range=(0, None))
    config.epilogue.check_extents(q * p * images, channels, addends)
    kernel = depthwise(image, filter, result, (lanes, at_once, strips, bands, tiles, rows, chunks), addends, config)
    # Adjacent blocks compute adjacent channels, so that L2 merges the lines that they share.
    grid = cute.assume(cute.ceil_div(tiles, at_once) * chunks, range=(0, None)), 1, 1
    kernel.launch(grid=grid, block=config.threads, min_blocks_per_mp=config.blocks)


class _Elements:
    """Mapping from a thread's accumulators to rows and columns of the result as a matrix.

    Pixels that do not exist have a row that is out of bounds.
    """

    def __init__(self, row: Int, column: Int, pixels: Int, channels: int):
        self.row, self.column, self.pixels, self.channels = row, column, pixels, channels

    def __getitem__(self, i: Int) -> tuple[Int, Int]:
        pixel = i // self.channels
        return _row(self.row, pixel, self.pixels), self.column + i % self.channels


@cute.jit
# a function, because operator methods are not converted to kernel code
def _row(first: Int, pixel: Int, pixels: Int) -> Any:
    return first + pixel if pixel < pixels else cute.Int32(1 << 30)


@cute.kernel
def depthwise(
    image: cute.Tensor,
    filter: cute.Tensor,
    result: cute.Tensor,
    sizes: Any,
    addends: Addends,
    config: cute.Constexpr[DepthwiseConfig],
):
    """Compute some channels of a tile of pixels per thread."""
    lanes, at_once, strips, bands, tiles, rows, chunks = sizes
    thread, (block, chunk) = cute.arch.thread_idx().x, divmod(cute.arch.block_idx().x, chunks)
    group, lane = divmod(thread, lanes)
    tile, first = block * at_once + group, chunk * lanes * config.channels
    rest, strip = divmod(tile, strips)
    n, band = divmod(rest, bands)
    c = first + lane * config.channels
    there = (group < at_once) & (c < result.shape[0]) & (tile < tiles)
    walk = _Walk(config, image, result, (c, strip, band * rows, n), rows)
    if there:
        for i in cute.range_constexpr(config.ahead):
            walk.load(i, 0)
    filters = _shared(filter, chunk * lanes * config.filters, lanes * config.filters, config)
    cute.arch.sync_threads()
    if there:
        fused = Fused(config.epilogue, addends, pairs=False) if config.epilogue.active else None
        filters = cute.make_tensor(filters.iterator + lane * config.filters, filters.layout)
        factors = _Factors(config, filters)
        if config.rolled:
            for iteration in range(walk.iterations()):
                walk.iterate(factors, fused, iteration)
        else:
            walk.iterate(factors, fused, 0)


def _shared(filter: cute.Tensor, first: Int, channels: Int, config: DepthwiseConfig) -> Any:
    """Copy the filters of some channels to shared memory, (C, S, R), with all threads."""
    rows, columns = config.window.taps
    # Each tap is a line, padded by a vector, so that adjacent taps of a channel map to different banks.
    line, taps = config.lanes * config.filters + config.filters, rows * columns
    filters = cute.smem_tensor(
        filter.element_type, cute.make_layout((line, columns, rows), stride=(1, line, line * columns)), 16
    )
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), filter.element_type)
    one, total = cute.make_layout(1), channels * taps
    for start in range(cute.arch.thread_idx().x, total, config.threads * config.staged):
        held = cute.make_rmem_tensor((1, config.staged), filter.element_type)
        flags = cute.make_rmem_tensor((1, config.staged), cute.Boolean)
        places = []
        for i in cute.range_constexpr(config.staged):
            c, tap = divmod(start + i * config.threads, taps)
            r, s = divmod(tap, columns)
            places.append((c, s, r))
            flags[0, i] = (c < channels) & (first + c < filter.shape[0])
            at = filter[None, s, r].iterator + (first + c) * filter.stride[0]
            cute.copy(atom, cute.make_tensor(at, one), held[None, i], pred=flags[None, i])
        for i in cute.range_constexpr(config.staged):
            at = filters[None, places[i][1], places[i][2]].iterator + places[i][0]
            cute.copy(atom, held[None, i], cute.make_tensor(at, one), pred=flags[None, i])
    return filters


class _Factors:
    """Filters of a thread's channels, (C, S, R), kept in registers if they have few taps."""

    def __init__(self, config: DepthwiseConfig, filter: cute.Tensor):
        self.filter, self.channels = filter, config.filters
        rows, columns = config.window.taps
        self.held = {}
        if rows * columns <= config.held:
            self.held = {(r, s): self._loaded(r, s) for r in range(rows) for s in range(columns)}

    def of_tap(self, r: int, s: int) -> list[Any]:
        """Return the filter values of a tap, per channel."""
        return self.held.get((r, s)) or self._loaded(r, s)

    def _loaded(self, r: int, s: int) -> list[Any]:
        kind, vector = self.filter.element_type, cute.make_layout(self.channels)
        values = cute.make_rmem_tensor(vector, kind)
        at = self.filter[None, s, r].iterator.align(self.channels * kind.width // 8)
        cute.autovec_copy(cute.make_tensor(at, vector), values)
        return [values[j].to(cute.Float32) for j in range(self.channels)]


class _Walk:
    """A thread's loop over the image rows of its tile.

    Each iteration covers some image rows and the output rows that they contribute to, including rows of earlier
    iterations.
    """

    def __init__(self, config: DepthwiseConfig, image: cute.Tensor, result: cute.Tensor, place: Any, rows: Any):
        self.config, self.image, self.result = config, image, result
        self.c, self.strip, self.row, self.n = place
        self.rows = cute.min(rows, result.shape[2] - self.row)
        self.kind, width = image.element_type, config.given * image.element_type.width
        self.across = config.hits(1)
        self.columns = sorted({hit.at for hit in self.across})
        self.x, self.y = config.lines(1, self.strip * config.tile[1]), config.lines(0, self.row)
        self.end = image.shape[2]
        if config.rolled:
            self.count, first, last = config.iteration
            past = config.past if config.shift else 3 * self.count
            self.down = config.hits(0, range(-past, self.count))
            self.lines = [first + i for i in range(config.lines(0, self.count))]
            self.length = config.lines(0, rows - (config.window.strides[0] if config.gradient else 1)) + (
                last - first + 1
            )
            self.end = cute.min(self.end, self.y + first + self.length)
        else:
            self.count, self.down = config.tile[0], config.hits(0)
            self.lines = sorted({hit.at for hit in self.down})
        self.slots = len(self.lines) if config.rolled else config.ahead + 1
        if config.shift:
            self.slots += config.ahead
        self.start = image[None, self.x, self.y, self.n].iterator + self.c // config.channels * config.given
        self.width, self.word = width, cute.Int16 if width == 16 else cute.Int32
        self.words = cute.make_layout(max(1, width // 32))
        self.atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.word, num_bits_per_copy=width)
        self.ring = cute.make_rmem_tensor((max(1, width // 32), len(self.columns), self.slots), self.word)
        self.ring.fill(0)
        self.inside = cute.make_rmem_tensor((1, len(self.columns)), cute.Boolean)
        for i, at in enumerate(self.columns):
            self.inside[0, i] = (self.x + at >= 0) & (self.x + at < image.shape[1])
        self.places = self.count + config.past if config.shift else self.count
        self.sums = cute.make_rmem_tensor((config.channels, config.tile[1], self.places), cute.Float32)
        self.sums.fill(0.0)

    def iterations(self) -> Int:
        """Return the number of loop iterations."""
        return cute.ceil_div(self.length, len(self.lines))

    def load(self, i: int, iteration: Int) -> None:
        """Load the tile's part of an image row of an iteration, or of the next one."""
        count = len(self.lines)
        at = self.lines[i % count] + i // count * count + iteration * count
        self.ring[None, None, i % self.slots].fill(0)
        _load(self, self.y + at, self.start + at * self.image.stride[2], i % self.slots)

    def iterate(self, factors: "_Factors", fused: Any, iteration: Int) -> None:
        """Accumulate one iteration, whose first image rows are already loaded, and store the output rows that are
        complete.
        """
        first, last = dict[int, int](), dict[int, int]()
        for hit in self.down:
            first[hit.pixel] = min(hit.at, first.get(hit.pixel, hit.at))
            last[hit.pixel] = max(hit.at, last.get(hit.pixel, hit.at))
        for i, at in enumerate(self.lines):
            if self.config.rolled or i + self.config.ahead < len(self.lines):
                self.load(i + self.config.ahead, iteration)
            for row in [row for row in first if first[row] == at]:
                self.sums[None, None, self.place(row)].fill(0.0)
            _add(self, factors, self.y + at + iteration * len(self.lines), i)
            for row in [row for row in last if last[row] == at]:
                self.store(row, iteration, fused)
        for row in range(self.count):
            if row not in last:  # no tap reaches it
                self.store(row, iteration, fused)
        if self.config.shift:
            count = len(self.lines)
            for slot in range(self.config.past):
                self.sums[None, None, slot] = self.sums[None, None, slot + self.count].load()
            for slot in range(self.config.ahead):
                self.ring[None, None, slot] = self.ring[None, None, slot + count].load()

    def place(self, row: int) -> int:
        """Return the accumulator registers of an output row, of this iteration or of an earlier one."""
        return row + self.places - self.count if self.config.shift else row % self.count

    def add(self, factors: "_Factors", i: int) -> None:
        """Add an image row to all accumulators it contributes to."""
        held = self.ring[None, None, i % self.slots]
        seen = dict[int, list[Any]]()
        for k, column in enumerate(self.columns):
            values = held[None, k].load().bitcast(self.kind)
            seen[column] = [values[j].to(cute.Float32) for j in range(self.config.given)]
        for hit in self.down:
            for s in sorted({x.tap for x in self.across}) if hit.at == self.lines[i] else ():
                factor = factors.of_tap(hit.tap, s)
                for beside in [x for x in self.across if x.tap == s]:
                    for k, of in enumerate(factor):  # one filter each
                        value = seen[beside.at][k * self.config.given // self.config.filters]
                        place = k * self.config.channels // self.config.filters, beside.pixel, self.place(hit.pixel)
                        self.sums[place] = cute.math.fma(value, of, self.sums[place])

    def store(self, row: int, iteration: Int, fused: Any) -> None:
        """Store an output row of the tile."""
        sums, width = self.sums[None, None, self.place(row)], self.config.tile[1]
        _store(self, fused, sums, iteration * self.count + row, self.strip * width)


def _load(walk: Any, y: Any, start: cute.Pointer, slot: Any) -> None:
    """Load an image row if it exists."""
    if (y >= 0) & (y < walk.end):
        for k in cute.range_constexpr(len(walk.columns)):
            at = (start + walk.columns[k] * walk.image.stride[1]).align(walk.width // 8)
            source = cute.make_tensor(cute.recast_ptr(at, dtype=walk.word), walk.words)
            cute.copy(walk.atom, source, walk.ring[None, k, slot], pred=walk.inside[None, k])


def _add(walk: Any, factors: Any, y: Any, i: Int) -> None:
    """Accumulate an image row if it exists."""
    if (y >= 0) & (y < walk.end):
        walk.add(factors, i)


def _store(walk: Any, fused: Any, sums: Any, row: Int, first: Int) -> None:
    """Store the pixels of an output row that are in bounds."""
    result = walk.result
    _, q, p, _ = result.shape
    if (row >= 0) & (row < walk.rows):
        row = walk.row + row
        if fused is not None:
            places = _Elements((walk.n * p + row) * q + first, walk.c, q - first, walk.config.channels)
            fused.apply_each(sums, places)
        channels = walk.config.channels
        width = channels * result.element_type.width
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), result.element_type, num_bits_per_copy=width)
        line, vector = result[None, first, row, walk.n].iterator + walk.c, cute.make_layout(channels)
        for i in cute.range_constexpr(walk.config.tile[1]):
            out, flag = cute.make_rmem_tensor(vector, result.element_type), cute.make_rmem_tensor(1, cute.Boolean)
            out.store(sums[None, i].load().to(result.element_type))
            flag[0] = first + i < q
            cute.copy(atom, out, cute.make_tensor((line + i * result.stride[1]).align(width // 8), vector), pred=flag)


@printed
def depthwise_text(config: DepthwiseConfig) -> cute.Compiled:
    """Trace the kernel ``@depthwise`` and its host function ``@launch``."""
    kind, out = number(config.element), number(config.output)
    image, result = (
        cute.Tensor[x, f"(?,?,?,?):(1,{step},{step},{step})", f"align<{n * x.width // 8}>"]
        for x, n in ((kind, config.given), (out, config.channels))
        for step in [f"?{{div={n}}}" if n > 1 else "?"]
    )
    tensors = [image, cute.Tensor[kind, "(?,?,?):(?,?,?)"], result]
    behind = config.epilogue.arguments(config.output)
    return cute.trace(launch, *tensors, **behind, config=config)
