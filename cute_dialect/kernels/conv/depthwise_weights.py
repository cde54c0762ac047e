"""Filter gradient (wgrad) of a depthwise convolution: a memory-bound reduction over pixels, without tensor cores.

A thread owns one to four channels and some rows of filter taps, whose accumulators stay in registers. It iterates over
the rows of vertical strips of the image. A row of pixels is loaded once and multiplied by each row of the output's
gradient that reaches it, so more taps need fewer loads per multiplication.

Threads of a block with the same accumulators are reduced in shared memory, and each block writes one row of partial
results. :mod:`cute_dialect.kernels.epilogue.reductions` adds the rows in a fixed order, so the result is
deterministic.

    launch(x, grad_y, parts, rows, config=DepthwiseWeightsConfig("f16", Window((3, 3), (1, 1), (1, 1))))
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.conv.config import Window
from cute_dialect.lang.values.signature_types import Int

_SHARED = 40960
"""Bytes of shared memory for the reduction over a block."""


class DepthwiseWeightsConfig(NamedTuple):
    """Configuration of a depthwise wgrad kernel."""

    element: str  # type of the image and of the output's gradient: f16, bf16 or f32
    window: Window
    channels: int = 2  # filters per thread: 1, 2 or 4
    columns: int = 4  # width of the strips of the output's gradient, in pixels
    taps: int = 3  # rows of taps per thread
    ahead: int = 1  # image rows that are prefetched
    whole: bool = False  # the output width is a multiple of ``columns``
    lanes: int = 32  # upper bound of the threads along the channels
    threads: int = 256
    blocks: int = 1  # minimum number of resident blocks per multiprocessor
    multiplier: int = 1  # filters per channel of the image
    # Process one output row per loop iteration and shift the previous ones to the next registers, for smaller code.
    shift: bool = False
    # With ``shift``: move rows of the gradient only. An iteration covers more image rows than are prefetched, so that
    # it does not wait for the rows that it loads.
    rotate: bool = False
    # Type of the partial results; another type than f32 if there is a single row, the gradient itself.
    output: str = "f32"

    @property
    def given(self) -> int:
        """Image channels per thread."""
        return self.channels // self.multiplier

    @property
    def slices(self) -> int:
        """Number of threads that share the rows of taps of a channel."""
        return -(-self.window.taps[0] // self.taps)

    @property
    def span(self) -> int:
        """Distance from the first to the last image row that an output row reaches."""
        return (self.taps - 1) * self.window.dilations[0]

    @property
    def unit(self) -> int:
        """Distance of the image rows of adjacent output rows."""
        return self.window.strides[0]

    @property
    def rows(self) -> int:
        """Output rows per loop iteration. Its image rows must exceed the span and the prefetched rows."""
        rows, most = 1, max(self.span, self.ahead)
        if self.shift:
            most = self.ahead if self.rotate else 0
        while rows * self.unit <= most:
            rows += 1
        return rows

    @property
    def held(self) -> int:
        """Rows of the output's gradient in registers."""
        return self.span // self.unit + self.rows if self.shift else self.rows

    @property
    def registers(self) -> int:
        """Estimate of the registers for accumulators, rows of the gradient in use, and image rows."""
        s, u, d = self.window.taps[1], self.window.strides[1], self.window.dilations[1]
        line = len({q * u + tap * d for q in range(self.columns) for tap in range(s)})
        words = self.channels * number(self.element).width / 32
        open_rows = self.held if self.rotate else self.span // self.unit + 1
        f32 = self.channels * (self.taps * s + open_rows * self.columns + line)
        slots = self.rows * self.unit if self.rotate else self.ahead + 1
        return int(f32 + words * (slots * line + self.ahead * self.columns))

    @property
    def name(self) -> str:
        """Name of the kernel."""
        words = {"whole": "w", "shift": "s", "rotate": "o", "multiplier": "m{}", "output": "-{}"}
        shape = f"c{self.channels}q{self.columns}r{self.taps}a{self.ahead}{differing(self, words)}"
        block = f"l{self.lanes}t{self.threads}x{self.blocks}"
        return f"depthwise-wgrad-{self.element}-{self.window.name}-{shape}-{block}"

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        if self.channels not in (1, 2, 4) or self.channels % self.multiplier or self.lanes * self.slices > self.threads:
            raise ValueError(
                f"depthwise wgrad: channels={self.channels} must be 1, 2 or 4 and a multiple of the multiplier "
                f"{self.multiplier}, and {self.lanes} lanes x {self.slices} slices must fit {self.threads} threads"
            )


@cute.jit
def launch(
    image: cute.Tensor,
    grads: cute.Tensor,
    parts: cute.Tensor,
    rows: cute.Int32,
    config: cute.Constexpr[DepthwiseWeightsConfig | None] = None,
):
    """Launch the kernel.

    Args:
        image: (C, W, H, N).
        grads: The output's gradient, (C, Q, P, N).
        parts: Partial results, (blocks, C * taps).
        rows: Output rows per tile.
        config: The configuration.
    """
    config.check()
    channels, images = grads.shape[0], image.shape[3]
    assert image.shape[0] * config.multiplier == channels, "the channels of image and grads must match the multiplier"
    assert grads.shape[3] == images, "image and grads must have the same number of images"
    taps = config.window.taps[0] * config.window.taps[1]
    assert parts.shape[1] == channels * taps, "parts must have one column per tap and channel"
    _, q, p, _ = grads.shape
    vectors = cute.ceil_div(channels, config.channels)
    chunks = cute.ceil_div(vectors, config.lanes)
    lanes = cute.ceil_div(vectors, cute.max(chunks, 1))
    at_once = config.threads // cute.max(lanes * config.slices, 1)
    strips, bands = cute.ceil_div(q, config.columns), cute.ceil_div(p, cute.max(rows, 1))
    tiles = cute.assume(strips * bands * images, range=(0, None))
    kernel = depthwise_weights(image, grads, parts, (lanes, at_once, strips, bands, tiles, rows), config)
    kernel.launch(grid=(parts.shape[0], chunks, 1), block=config.threads, min_blocks_per_mp=config.blocks)


@cute.kernel
def depthwise_weights(
    image: cute.Tensor,
    grads: cute.Tensor,
    parts: cute.Tensor,
    sizes: Any,
    config: cute.Constexpr[DepthwiseWeightsConfig],
):
    """Accumulate a thread's channels and taps over some tiles, then reduce over the block."""
    cute.arch.griddepcontrol_launch_dependents()  # The kernel that adds up the rows may start, and waits.
    lanes, at_once, strips, bands, tiles, rows = sizes
    thread, (block, chunk, _) = cute.arch.thread_idx().x, cute.arch.block_idx()
    rest, lane = divmod(thread, lanes)
    group, slice_ = divmod(rest, config.slices)
    first = chunk * lanes * config.channels
    c = first + lane * config.channels
    acc = cute.make_rmem_tensor((config.channels, config.window.taps[1], config.taps), cute.Float32)
    acc.fill(0.0)
    if (group < at_once) & (c < grads.shape[0]):
        for tile in range(block * at_once + group, tiles, parts.shape[0] * at_once):
            rest, strip = divmod(tile, strips)
            n, band = divmod(rest, bands)
            walk = _Walk(config, image, grads, (c, slice_, strip, band * rows, n), rows, acc)
            for i in cute.range_constexpr(config.ahead):
                walk.load(i, 0)
            for iteration in range(walk.iterations()):
                walk.iterate(iteration)
    _reduce(config, acc, parts, block, first, grads.shape[0], (lanes, at_once))


class _Vector:
    """Adjacent channels of a pixel that a thread loads at once."""

    def __init__(self, kind: Any, count: int):
        self.kind, self.count, width = kind, count, count * kind.width
        self.word = cute.Int16 if width == 16 else cute.Int32
        self.words, self.bytes = cute.make_layout(max(1, width // 32)), width // 8
        self.atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.word, num_bits_per_copy=width)

    def registers(self, *extents: int) -> Any:
        """Allocate registers for an array of vectors."""
        return cute.make_rmem_tensor((cute.size(self.words), *extents), self.word)

    def load(self, at: cute.Pointer, to: Any, flag: Any) -> None:
        """Load a vector if the flag is true."""
        source = cute.make_tensor(cute.recast_ptr(at.align(self.bytes), dtype=self.word), self.words)
        cute.copy(self.atom, source, to, pred=flag)

    def floats(self, words: Any) -> list[Any]:
        """Return the channels as f32."""
        values = words.load().bitcast(self.kind)
        return [values[j].to(cute.Float32) for j in range(self.count)]


class _Walk:
    """A thread's loop over one tile: a strip of columns and a band of rows of the output's gradient."""

    def __init__(
        self, config: DepthwiseWeightsConfig, image: cute.Tensor, grads: cute.Tensor, place: Any, rows: Any, acc: Any
    ):
        self.config, self.image, self.grads, self.acc = config, image, grads, acc
        c, slice_, strip, row, n = place
        w, (down, across) = config.window, config.window.strides
        self.unit, self.count = down, config.rows
        self.rows = cute.min(rows, grads.shape[2] - row)
        self.steps = w.dilations
        self.columns = sorted(
            {q * across + s * w.dilations[1] for q in range(config.columns) for s in range(w.taps[1])}
        )
        self.lines = self.count * down
        self.slots = self.lines + (config.ahead if config.shift and not config.rotate else 0)
        self.length = (self.rows - 1) * down + config.span + 1
        self.y = row * down - w.before[0] + slice_ * config.taps * w.dilations[0]
        x, q = strip * config.columns * across - w.before[1], strip * config.columns
        self.start = image[None, x, self.y, n].iterator + c // config.multiplier
        self.result = grads[None, q, row, n].iterator + c
        self.of_image, self.of_grads = (_Vector(image.element_type, n) for n in (config.given, config.channels))
        self.ring = self.of_image.registers(len(self.columns), self.slots)
        self.given = self.of_grads.registers(config.columns, -(-self.slots // self.unit))
        self.inside = cute.make_rmem_tensor((1, len(self.columns)), cute.Boolean)
        self.there = cute.make_rmem_tensor((1, config.columns), cute.Boolean)
        for i, at in enumerate(self.columns):
            self.inside[0, i] = (x + at >= 0) & (x + at < image.shape[1])
        for i in range(config.columns):
            self.there[0, i] = q + i < grads.shape[1]
        # Rows of the output's gradient in use, as f32. A row is converted when the loop reaches its first image row.
        self.held = cute.make_rmem_tensor((config.channels, config.columns, config.held), cute.Float32)
        self.held.fill(0.0)

    def iterations(self) -> Int:
        """Return the number of loop iterations."""
        return cute.ceil_div(self.length, self.lines)

    def hits(self, i: int) -> list[tuple[int, int]]:
        """Return the output rows, and their taps, that reach image row ``i`` of an iteration."""
        found = list[tuple[int, int]]()
        for r in range(self.config.taps):
            row, left = divmod(i - r * self.steps[0], self.unit)
            if left == 0:
                found.append((row, r))
        return found

    def load(self, i: int, iteration: Int) -> None:
        """Load image row ``i`` of an iteration, and the row of the gradient that begins there."""
        slot = i % self.slots
        if self.hits(i % self.lines):
            self.ring[None, None, slot].fill(0)
            at = i + iteration * self.lines
            _load_line(self, self.y + at, self.start + at * self.image.stride[2], slot)
        if slot % self.unit == 0:
            row, slot = i // self.unit, slot // self.unit
            self.given[None, None, slot].fill(0)
            row = row + iteration * self.count
            _load_row(self, row, self.result + row * self.grads.stride[2], slot)

    def iterate(self, iteration: Int) -> None:
        """Accumulate the image rows of one iteration."""
        for i in range(self.lines):
            self.load(i + self.config.ahead, iteration)
            if i % self.unit == 0:
                row = i // self.unit
                for q in range(self.config.columns):
                    for j, value in enumerate(self.of_grads.floats(self.given[None, q, row])):
                        self.held[j, q, self.place(row)] = value
            if self.hits(i):
                _multiply_line(self, self.y + i + iteration * self.lines, i, iteration)
        if self.config.shift:
            for slot in range(self.config.held - self.count):
                self.held[None, None, slot] = self.held[None, None, slot + self.count].load()
            for slot in range(0 if self.config.rotate else self.config.ahead):
                self.ring[None, None, slot] = self.ring[None, None, slot + self.lines].load()
            for slot in range(0 if self.config.rotate else -(-self.slots // self.unit) - 1):
                self.given[None, None, slot] = self.given[None, None, slot + 1].load()

    def place(self, row: int) -> int:
        """Return the registers of an output row, of this iteration or of an earlier one."""
        return row + self.config.held - self.count if self.config.shift else row % self.count

    def multiply(self, i: int, iteration: Int) -> None:
        """Multiply image row ``i`` by the rows of the gradient that reach it."""
        seen = {at: self.of_image.floats(self.ring[None, k, i]) for k, at in enumerate(self.columns)}
        for row, r in self.hits(i):
            _multiply_row(self, row + iteration * self.count, self.place(row), r, seen)

    def products(self, slot: int, r: int, q: int, seen: Any) -> None:
        """Accumulate one pixel of the output's gradient."""
        for s in range(self.config.window.taps[1]):
            values = seen[q * self.config.window.strides[1] + s * self.steps[1]]
            for j in range(self.config.channels):
                value = values[j // self.config.multiplier]
                self.acc[j, s, r] = cute.math.fma(value, self.held[j, q, slot], self.acc[j, s, r])


def _load_line(walk: Any, y: Any, start: cute.Pointer, slot: int) -> None:
    if (y >= 0) & (y < walk.image.shape[2]):
        for k in cute.range_constexpr(len(walk.columns)):
            at = start + walk.columns[k] * walk.image.stride[1]
            walk.of_image.load(at, walk.ring[None, k, slot], walk.inside[None, k])


def _load_row(walk: Any, row: Any, start: cute.Pointer, slot: int) -> None:
    if row < walk.rows:
        for q in cute.range_constexpr(walk.config.columns):
            at = start + q * walk.grads.stride[1]
            walk.of_grads.load(at, walk.given[None, q, slot], walk.there[None, q])


def _multiply_line(walk: Any, y: Any, i: int, iteration: Int) -> None:
    if (y >= 0) & (y < walk.image.shape[2]):
        walk.multiply(i, iteration)


def _multiply_row(walk: Any, row: Any, slot: int, r: int, seen: Any) -> None:
    # Rows of other tiles are skipped. Multiplying them by zero would turn an infinity into a NaN.
    if (row >= 0) & (row < walk.rows):
        for q in cute.range_constexpr(walk.config.columns):
            if cute.const_expr(walk.config.whole):
                walk.products(slot, r, q, seen)
            else:
                _multiply_pixel(walk, slot, r, q, seen)


def _multiply_pixel(walk: Any, slot: int, r: int, q: int, seen: Any) -> None:
    if walk.there[0, q]:
        walk.products(slot, r, q, seen)


def _reduce(
    config: DepthwiseWeightsConfig, acc: Any, parts: cute.Tensor, block: Int, first: Int, channels: Int, sizes: Any
) -> None:
    """Reduce the accumulators over a block, some taps at a time, and store them as a row of ``parts``."""
    lanes, groups = sizes
    thread, (rows, columns) = cute.arch.thread_idx().x, config.window.taps
    taps = [(r, s) for r in range(config.taps) for s in range(columns)]
    line = config.threads + 1  # adjacent taps map to different banks
    at_once = min(len(taps), _SHARED // (4 * line * config.channels))
    held = cute.smem_tensor(cute.Float32, cute.make_layout((line, config.channels, at_once)), 16)
    total = rows * columns
    for begin in range(0, len(taps), at_once):
        some = taps[begin : begin + at_once]
        if begin:
            cute.arch.sync_threads()
        for k, (r, s) in enumerate(some):
            for j in range(config.channels):
                held[thread, j, k] = acc[j, s, r]
        cute.arch.sync_threads()
        _store_sums(config, held, parts, (block, first, channels, lanes, groups, begin, len(some), total))


def _store_sums(config: DepthwiseWeightsConfig, held: Any, parts: cute.Tensor, sizes: Any) -> None:
    block, first, channels, lanes, groups, begin, count, total = sizes
    columns = config.window.taps[1]
    apart = lanes * config.slices
    for i in range(cute.arch.thread_idx().x, count * config.channels * apart, config.threads):
        rest, k = divmod(i, count)
        rest, slice_ = divmod(rest, config.slices)
        lane, j = divmod(rest, config.channels)
        tap, c = slice_ * config.taps * columns + begin + k, first + lane * config.channels + j
        if (tap < total) & (c < channels):
            found = cute.Float32(0.0)
            for g in range(groups):
                found = found + held[lane + lanes * slice_ + apart * g, j, k]
            at = total - 1 - tap if config.window.flip else tap
            parts[block, c * total + at] = found.to(parts.element_type)


@printed
def depthwise_weights_text(config: DepthwiseWeightsConfig) -> cute.Compiled:
    """Trace the kernel ``@depthwise_weights`` and its host function ``@launch``."""
    kind = number(config.element)
    tensors = [
        cute.Tensor[kind, f"({step},?,?,?):(1,{step},{step},{step})", f"align<{n * kind.width // 8}>"]
        for n in (config.given, config.channels)
        for step in [f"?{{div={n}}}" if n > 1 else "?"]
    ]
    parts = cute.Tensor[number(config.output), "(?,?):(?,1)"]
    return cute.trace(launch, *tensors, parts, cute.Int32(0), config=config)
