"""Direct convolution for few channels per group, with mma.sync on tiles of the image in shared memory.

An im2col GEMM multiplies tiles of at least 64 channels, of which a group of 8 channels would fill an eighth. Here a
block loads a tile of pixels once, with the halo that the window covers. ``ldmatrix`` reads the rows of A, 8 channels of
a pixel under a tap, from anywhere in the tile. No im2col matrix is written, and each group multiplies only its own
channels. A K step is two vectors of 8 channels, of one tap or of two.

    launch(x, f, y, config=DirectConfig("f16", "f16", Window((3, 3), (1, 1), (1, 1)), channels=8, filters=8))

The gradient of an image (dgrad) is the same kernel on the output's gradient, with filters transposed by ``ldmatrix``.
With strides, pixels that have the same coordinates modulo the stride use the same taps. Such a residue class has its
own blocks.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Sequence
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.kernel_names import by, differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.conv.config import Window, of_elements
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.lang.nvgpu import cpasync, warp
from cute_dialect.lang.values.signature_types import Int

VECTOR = 8
"""Elements per copy, and channels of an ``ldmatrix`` row."""
_OUTSIDE = 1 << 30
_MULTIPROCESSORS, _ROUNDS, _TILES = 132, 4, 16
"""Blocks of large problems compute up to _TILES tiles each, so that filters are loaded less often.

At least _ROUNDS blocks remain for each one that is resident, because their number balances the load.
"""
_AT_ONCE = 8
"""Elements per thread in flight to shared memory, if they are copied one by one."""


def padded(channels: int) -> int:
    """Round channels up to a multiple of 8."""
    return -(-channels // VECTOR) * VECTOR


def odd_vectors(elements: int) -> int:
    """Round a line up to an odd number of 16-byte vectors, so that 8 adjacent lines map to different banks.

    >>> odd_vectors(64), odd_vectors(8)
    (72, 8)
    """
    vectors = -(-elements // VECTOR)
    return (vectors | 1) * VECTOR


def check_memory(vectors: Sequence[int], channels: Sequence[int], shared: int) -> None:
    """Raise ValueError unless vectors divide the channels of their tensors and a block has ``shared`` bytes."""
    for n, of in zip(vectors, channels):
        if n not in (1, 2, 4, 8) or of % n:
            raise ValueError(
                f"direct convolution: vectors of {n} elements do not divide {of} channels; use 1, 2, 4 or 8"
            )
    if shared > DEFAULT_TARGET.shared:
        raise ValueError(f"direct convolution: the kernel needs {shared} bytes of shared memory; use a smaller tile")


class Class(NamedTuple):
    """A residue class of pixels: its coordinates modulo the stride, and the taps that reach it."""

    first: tuple[int, int]
    # Per tap: its index in the filter, and the row and column that it reads, relative to the first pixel of any class.
    taps: tuple[tuple[int, int, int], ...]
    rows: int = 1  # number of filter rows among the taps, equally many taps each

    @property
    def row(self) -> tuple[tuple[int, int, int], ...]:
        """The taps of the first filter row."""
        return self.taps[: len(self.taps) // max(1, self.rows)]

    @property
    def step(self) -> tuple[int, int]:
        """Distance between the taps of adjacent filter rows, as an index in the filter, and between the rows they read.

        >>> DirectConfig("f16", "f16", Window((3, 3), (1, 1), (1, 1)), 8, 8).classes[0].step
        (3, 1)
        """
        if self.rows < 2:
            return 0, 0
        (tap, line, _), (first, above, _) = self.taps[len(self.row)], self.taps[0]
        return tap - first, line - above


class DirectConfig(NamedTuple):
    """Configuration of a direct convolution."""

    element: str
    output: str
    window: Window
    channels: int  # channels per group
    filters: int  # filters per group
    gradient: bool = False  # dgrad: compute the image's gradient
    # Elements per copy of image, filter and result: 1, 2, 4 or 8, divisors of a group's channels.
    vectors: tuple[int, int, int] = (8, 8, 8)
    groups: int = 8  # groups per block
    parts: int = 1  # number of blocks that share the output channels of a group
    split: int = 1  # number of pieces of a group's output channels in a block, processed in sequence or by a warp each
    tile: tuple[int, int] = (4, 28)  # rows and columns of a block's pixels, of one residue class
    warps: tuple[int, int] = (8, 1)  # warps along the groups and along the pixels
    held: bool = True  # keep the filters of a warp's group in registers
    atoms: int = 2  # tiles of 16 pixels that a warp computes at once
    # Loop over the filter rows instead of unrolling them, so that the code fits the instruction cache.
    rolled: bool = False
    blocks: int = 2  # minimum number of resident blocks per multiprocessor
    # The image has a multiple of 8 channels per group, zeros past the last one, and so has the filter of fprop.
    padded: bool = False
    epilogue: Epilogue = Epilogue()

    @property
    def pitch(self) -> int:
        """Distance between the input channels of adjacent groups."""
        return self.deep if self.padded else self.depth

    @property
    def filter_channels(self) -> int:
        """Channels per filter in memory."""
        return self.pitch if not self.gradient else self.channels

    @property
    def depth(self) -> int:
        """Input channels per group."""
        return self.filters if self.gradient else self.channels

    @property
    def width(self) -> int:
        """Output channels per group."""
        return self.channels if self.gradient else self.filters

    @property
    def deep(self) -> int:
        """Input channels per group, padded to a multiple of 8."""
        return padded(self.depth)

    @property
    def narrow(self) -> int:
        """Output channels that a warp computes at once, padded to a multiple of 8."""
        return padded(-(-self.width // (self.parts * self.split)))

    @property
    def wide(self) -> int:
        """Output channels of a group per block."""
        return self.narrow * self.split

    @property
    def lines(self) -> tuple[int, int]:
        """Rows and columns of one tap of a group's filters in shared memory."""
        return (self.deep, self.wide) if self.gradient else (self.wide, self.deep)

    @property
    def units(self) -> int:
        """Pieces of groups per block."""
        return self.groups * self.split

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1]

    @property
    def steps(self) -> tuple[int, int]:
        """Distance of the input pixels of two adjacent pixels of the tile."""
        return (1, 1) if self.gradient else (self.window.strides[0], self.window.strides[1])

    def _reads(self, i: int, remainder: int) -> list[tuple[int, int]]:
        """Return the taps along dimension ``i`` that reach a residue class, each with the pixel that it reads."""
        w = self.window
        before, u, d, taps = w.before[i], w.strides[i], w.dilations[i], w.taps[i]
        found = list[tuple[int, int]]()
        for t in range(taps):
            tap = taps - 1 - t if w.flip else t
            if not self.gradient:
                found.append((tap, t * d - before))
            elif (remainder + before - t * d) % u == 0:
                found.append((tap, (remainder + before - t * d) // u))
        return found

    @property
    def remainders(self) -> tuple[int, int]:
        """Number of residue classes along each dimension."""
        return (self.window.strides[0], self.window.strides[1]) if self.gradient else (1, 1)

    @property
    def box(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """First and last input pixel, along each dimension, of the first output pixel over all classes."""
        reads = [[at for a in range(self.remainders[i]) for _, at in self._reads(i, a)] for i in range(2)]
        return (min(reads[0]), max(reads[0])), (min(reads[1]), max(reads[1]))

    @property
    def halo(self) -> tuple[int, int]:
        """Rows and columns of input pixels of a block."""
        (top, bottom), (left, right) = self.box
        rows, columns = ((n - 1) * u + 1 for n, u in zip(self.tile, self.steps))
        return rows + bottom - top, columns + right - left

    @property
    def classes(self) -> tuple[Class, ...]:
        """The residue classes of output pixels.

        >>> w = Window((3, 3), (1, 1), (1, 1), (2, 2))
        >>> [len(c.taps) for c in DirectConfig("f16", "f16", w, 8, 8, gradient=True).classes]
        [1, 2, 2, 4]
        """
        (y, _), (x, _) = self.box
        found = list[Class]()
        for a in range(self.remainders[0]):
            for b in range(self.remainders[1]):
                pairs = [
                    (r * self.window.taps[1] + s, line - y, column - x)
                    for r, line in self._reads(0, a) for s, column in self._reads(1, b)
                ]  # fmt: skip
                # With a dilation that shares a factor with the stride, rows may reach a class that no column reaches.
                found.append(Class((a, b), tuple(pairs), len(self._reads(0, a)) if pairs else 0))
        return tuple(found)

    @property
    def memory(self) -> tuple[int, int, int]:
        """Shared-memory elements, padded, of an input pixel, of a line of a filter tap, and of an output pixel."""
        return odd_vectors(self.groups * self.deep), odd_vectors(self.lines[1]), odd_vectors(self.groups * self.wide)

    @property
    def bytes(self) -> int:
        """Bytes of shared memory."""
        pixel, tap, out = self.memory
        taps, (rows, columns), (h, w) = self.window.taps, self.halo, self.tile
        item = number(self.output).width // 8
        return 2 * (rows * columns * pixel + taps[0] * taps[1] * self.groups * self.lines[0] * tap) + h * w * out * item

    @property
    def unrolled(self) -> int:
        """K steps in the code of the largest class."""
        return max(-(-len(c.row if self.rolled else c.taps) * self.deep // 16) for c in self.classes)

    @property
    def registers(self) -> int:
        """Estimate of the registers for offsets of K steps, filters in registers, and accumulators."""
        steps = self.unrolled
        held = 2 * steps if self.held else 2
        return steps + self.narrow // 8 * (held + 4 * self.atoms) + 4 * self.atoms + 40

    @property
    def name(self) -> str:
        """Name of the kernel."""
        kind = f"{'dgrad' if self.gradient else 'fprop'}-{self.element}-{self.output}-{self.window.name}"
        vectors = "_".join(map(str, self.vectors))
        shape = f"{self.groups}p{self.parts}s{self.split}v{vectors}x{by(self.tile)}-w{by(self.warps)}m{self.atoms}"
        more = differing(self, {"held": "h", "rolled": "r", "padded": "p"}, held=False)
        return f"direct-{kind}-c{self.channels}k{self.filters}-{shape}{more}x{self.blocks}{self.epilogue.suffix}"

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        self.epilogue.check()
        if not of_elements(self.epilogue):
            raise ValueError("direct convolution: the epilogue must be elementwise, got one over rows or columns")
        if self.units % self.warps[0] or (self.parts > 1 and self.groups > 1):
            raise ValueError(
                f"direct convolution: {self.units} pieces of groups must be a multiple of {self.warps[0]} warps, and "
                f"parts={self.parts} needs one group per block, got {self.groups} groups"
            )
        if self.rolled and self.held:
            raise ValueError("direct convolution: filters in registers need unrolled filter rows; use rolled=False")
        check_memory(self.vectors, (self.pitch, self.filter_channels, self.width), self.bytes)


@cute.jit
def launch(
    image: cute.Tensor, filter: cute.Tensor, result: cute.Tensor, source: cute.Tensor | None = None,
    bias: cute.Tensor | None = None, alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None,
    operands: Any = None, config: cute.Constexpr[DirectConfig | None] = None,
):  # fmt: skip
    """Launch the kernel.

    Args:
        image: (C, W, H, N).
        filter: (C / groups, taps, K).
        result: (K, Q, P, N).
        source, bias, alpha, beta, operands: Arguments of the epilogue. Matrices have a row per pixel.
        config: The configuration.
    """
    config.check()
    addends = Addends(source, bias, alpha, beta, operands)
    channels, q, p, images = result.shape
    assert image.shape[3] == images, "image and result must have the same number of images"
    assert image.shape[0] * config.width == channels * config.pitch, (
        "image and result must have the same number of groups"
    )
    assert filter.shape[0] == config.filter_channels, "filter must have the channels of a group"
    assert filter.shape[1] == config.window.taps[0] * config.window.taps[1], "filter must have the window's taps"
    assert filter.shape[2] * config.width == channels * config.filters, "filter must have the filters of all groups"
    strips = cute.ceil_div(q, config.tile[1] * config.remainders[1])
    bands = cute.ceil_div(p, config.tile[0] * config.remainders[0])
    tiles = cute.assume(strips * bands * images, range=(0, None))
    config.epilogue.check_extents(q * p * images, channels, addends)
    slabs = cute.ceil_div(channels, config.groups * config.width) * config.parts
    resident = _MULTIPROCESSORS * config.blocks
    share = cute.max(1, cute.min(tiles * slabs * len(config.classes) // (_ROUNDS * resident), _TILES))
    blocks = cute.ceil_div(tiles, share)
    kernel = direct(image, filter, result, (strips, bands, tiles, slabs, blocks), addends, config)
    # Adjacent blocks compute adjacent channels, so that L2 merges the lines that they share.
    grid = cute.assume(blocks * slabs, range=(0, None)), 1, len(config.classes)
    kernel.launch(grid=grid, block=config.threads, min_blocks_per_mp=config.blocks)


class _Elements:
    """Mapping from a thread's accumulators to the result as a matrix: two rows, and pairs of adjacent columns."""

    def __init__(self, rows: list[Any], first: Int, column: Int, width: Int):
        self.rows, self.first, self.column, self.width = rows, first, column, width

    def __getitem__(self, i: Int) -> tuple[Int, Int]:
        column = self.column + i // 4 * 8 + i % 2
        return self.rows[i // 2 % 2], cute.where(column < self.width, self.first + column, _OUTSIDE)


@cute.kernel
def direct(
    image: cute.Tensor,
    filter: cute.Tensor,
    result: cute.Tensor,
    sizes: Any,
    addends: Addends,
    config: cute.Constexpr[DirectConfig],
):
    """Compute tiles of pixels of some groups."""
    strips, bands, tiles, slabs, blocks = sizes
    block, _, number_of_class = cute.arch.block_idx()
    block, slab = divmod(block, slabs)
    kind, out = image.element_type, result.element_type
    pixel, tap, line = config.memory
    rows, columns = config.halo
    taps = config.window.taps[0] * config.window.taps[1]
    pixels = cute.smem_tensor(kind, cute.make_layout(rows * columns * pixel), 128)
    filters = cute.smem_tensor(kind, cute.make_layout(taps * config.groups * config.lines[0] * tap), 128)
    staged = cute.smem_tensor(out, cute.make_layout(config.tile[0] * config.tile[1] * line), 128)
    padded_depth = config.deep != config.depth
    padded_width = config.parts == 1 and config.wide != config.width
    if padded_depth and not config.padded:
        clear_vectors(pixels, config.threads)
    if padded_depth or padded_width:
        clear_vectors(filters, config.threads)
        cute.arch.sync_threads()  # Copies write the same lines, without the padding.
    _load_filters(config, filter, filters, slab)
    fused = Fused(config.epilogue, addends, pairs=False) if config.epilogue.active else None
    for tile in range(block, tiles, blocks):
        rest, strip = divmod(tile, strips)
        n, band = divmod(rest, bands)
        place = band * config.tile[0], strip * config.tile[1], n, slab
        # Zero, unknown to the optimizer, which would keep the offsets of all taps in registers across tiles.
        zero = cute.arch.opaque(tile) - tile
        _load_pixels(config, image, pixels, place)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        if len(config.classes) == 1:
            _Warp(config, pixels, filters, staged, result, place, config.classes[0], zero).compute(fused)
        else:
            for i, one in enumerate(config.classes):
                given = pixels, filters, staged, result, place, one, zero
                _compute_class(config, given, number_of_class, i, fused)
        cute.arch.sync_threads()
        _, v = config.remainders
        first = number_of_class // v, number_of_class % v
        _store(config, staged, result, place, first)


def _compute_class(config: DirectConfig, given: Any, wanted: Any, i: int, fused: Any) -> None:
    if wanted == i:
        _Warp(config, *given).compute(fused)


def clear_vectors(memory: Any, threads: int) -> None:
    """Fill an array in shared memory with zeros, with all threads."""
    zeros = cute.make_rmem_tensor(VECTOR, memory.element_type)
    zeros.fill(0)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), memory.element_type, num_bits_per_copy=128)
    for i in range(cute.arch.thread_idx().x, cute.size(memory) // VECTOR, threads):
        target = (memory.iterator + i * VECTOR).align(16)
        cute.copy(atom, zeros, cute.make_tensor(target, cute.make_layout(VECTOR)))


def copy_vectors(kind: Any, size: int, total: Int, vectors: int, threads: int, place: Any) -> None:
    """Copy lines of ``vectors`` vectors of ``size`` elements to shared memory, with all threads.

    ``place(line, i)`` returns source, target and a flag for vector ``i`` of a line. A vector whose flag is false is
    filled with zeros.

    Args:
        total: number of lines.
    """
    thread, size_in_bytes = cute.arch.thread_idx().x, size * kind.width // 8
    copy = _copy_async if size_in_bytes >= 4 else _copy_elements
    at_once = threads // vectors
    if at_once * vectors * 4 >= threads * 3:  # Each thread copies the same vector of all its lines.
        line, i = divmod(thread, vectors)
        _copy_if(line < at_once, copy, kind, size, (line, total, at_once), lambda at: place(at, i))
    else:
        copy(kind, size, (thread, total * vectors, threads), lambda i: place(*divmod(i, vectors)))


def _copy_if(flag: Any, copy: Any, kind: Any, size: int, sizes: Any, place: Any) -> None:
    if flag:
        copy(kind, size, sizes, place)


def _copy_async(kind: Any, size: int, sizes: Any, place: Any) -> None:
    first, total, step = sizes
    bytes = size * kind.width // 8
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), kind, num_bits_per_copy=8 * bytes)
    flag, vector = cute.make_rmem_tensor(1, cute.Boolean), cute.make_layout(size)
    for i in range(first, total, step):
        source, target, flag[0] = place(i)
        source, target = (cute.make_tensor(x.align(bytes), vector) for x in (source, target))
        cute.copy(atom, source, target, pred=flag)


def _copy_elements(kind: Any, size: int, sizes: Any, place: Any) -> None:
    """Copy elements one by one, in batches that issue all loads before the stores."""
    first, total, step = sizes
    atom, one = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind), cute.make_layout(size)
    for start in range(first, total, step * _AT_ONCE):
        held = cute.make_rmem_tensor((1, _AT_ONCE), kind)
        flags = cute.make_rmem_tensor((1, _AT_ONCE), cute.Boolean)
        there = cute.make_rmem_tensor((1, _AT_ONCE), cute.Boolean)
        held.fill(0)
        targets = list[Any]()
        for k in cute.range_constexpr(_AT_ONCE):
            i = start + k * step
            source, target, flag = place(cute.min(i, total - 1))
            there[0, k] = i < total
            flags[0, k] = flag & there[0, k]
            targets.append(target)
            cute.copy(atom, cute.make_tensor(source, one), held[None, k], pred=flags[None, k])
        for k in cute.range_constexpr(_AT_ONCE):
            cute.copy(atom, held[None, k], cute.make_tensor(targets[k], one), pred=there[None, k])


def _load_filters(config: DirectConfig, filter: cute.Tensor, filters: cute.Tensor, slab: Int) -> None:
    """Copy the filters of a block's groups to shared memory, as (tap, filter) lines of channels."""
    _, tap, _ = config.memory
    size = config.vectors[1]
    count, (slab, part) = config.groups * config.lines[0], divmod(slab, config.parts)
    lines, width = config.lines
    if config.gradient or config.parts == 1:
        lines = min(lines, config.filters)
    if not config.gradient or config.parts == 1:
        width = min(width, config.filter_channels)
    vectors, taps = -(-width // size), config.window.taps[0] * config.window.taps[1]

    def place(i: Int, c: Int) -> Any:
        rest, at = divmod(i, taps)
        group, k = divmod(rest, lines)
        line, channel = k, c * size
        row = at * count + group * config.lines[0] + k
        if config.gradient:
            channel = channel + part * config.wide
        else:
            line = line + part * config.wide
        whole = (slab * config.groups + group) * config.filters + line
        flag = (line < config.filters) & (channel < config.filter_channels) & (whole < filter.shape[2])
        source = filter[None, at, whole].iterator + channel
        return source, filters.iterator + row * tap + c * size, flag

    copy_vectors(filter.element_type, size, config.groups * lines * taps, vectors, config.threads, place)


def _load_pixels(config: DirectConfig, image: cute.Tensor, pixels: cute.Tensor, origin: Any) -> None:
    """Copy the input pixels of a block to shared memory; pixels outside of the image are zero."""
    row, column, n, slab = origin
    pixel, _, _ = config.memory
    rows, columns = config.halo
    (y0, _), (x0, _) = config.box
    y0, x0 = row * config.steps[0] + y0, column * config.steps[1] + x0
    size = config.vectors[0]
    of_group = config.pitch // size
    vectors = config.groups * of_group
    first = slab // config.parts * config.groups

    def place(at: Int, c: Int) -> Any:
        y, x = divmod(at, columns)
        group, of = divmod(c, of_group)
        channel = (first + group) * config.pitch + of * size
        inside = ((y0 + y) >= 0) & ((y0 + y) < image.shape[2]) & ((x0 + x) >= 0) & ((x0 + x) < image.shape[1])
        source = image[None, x0 + x, y0 + y, n].iterator + channel
        return (
            source,
            pixels.iterator + at * pixel + group * config.deep + of * size,
            inside & (channel < image.shape[0]),
        )

    copy_vectors(image.element_type, size, rows * columns, vectors, config.threads, place)


class _Warp:
    """A warp's share of the tile: tiles of 16 pixels, and some groups in sequence."""

    def __init__(
        self, config: DirectConfig, pixels: cute.Tensor, filters: cute.Tensor, staged: cute.Tensor,
        result: cute.Tensor, place: Any, pixels_class: Class, zero: Any,
    ):  # fmt: skip
        self.config, self.pixels, self.filters, self.staged, self.result = config, pixels, filters, staged, result
        self.row, self.column, self.n, self.slab = place
        self.of = pixels_class
        self.kind = pixels.element_type
        thread = cute.arch.thread_idx().x + zero
        self.lane = thread % 32
        self.group, self.first = thread // 32 % config.warps[0], thread // 32 // config.warps[0]
        vectors = config.deep // VECTOR
        taps = pixels_class.row if config.rolled else pixels_class.taps
        self.chunks = [(tap, line, column, c) for tap, line, column in taps for c in range(vectors)]
        self.tiles = config.narrow // 8
        self.vector = cute.make_layout(VECTOR)

    def steps(self) -> list[tuple[int, ...]]:
        """Return the K steps: two chunks of 8 channels each, and a single chunk last if their number is odd."""
        return [tuple(range(i, min(i + 2, len(self.chunks)))) for i in range(0, len(self.chunks), 2)]

    def mma(self, depth: int) -> Any:
        """Return the MMA of a K step."""
        return cute.make_tiled_mma(warp.MmaF16BF16Op(self.kind, cute.Float32, (16, 8, depth)), (1, 1, 1))

    def compute(self, fused: Any) -> None:
        """Compute this warp's pixels, one group at a time."""
        for j in range(self.config.units // self.config.warps[0]):
            _compute_group(self, divmod(self.group + j * self.config.warps[0], self.config.split), fused)

    def loaded(self, base: cute.Pointer, offset: Int, matrices: int, transpose: bool) -> Any:
        """Load 8 x 8 matrices with ``ldmatrix``; each lane gives the address ``base + offset`` of a row of 16 bytes."""
        atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose, matrices), self.kind)
        found = cute.make_rmem_tensor(2 * matrices, self.kind)
        source = cute.make_tensor((base + offset).align(16), self.vector)
        cute.copy(atom, source, found)
        return found

    def factor(self, unit: tuple[Int, Int], step: tuple[int, ...], row: Int = 0) -> list[Any]:
        """Return the filters of a K step, one fragment per 8 output channels.

        Args:
            row: number of the filter row, if the rows are a loop.
        """
        c, (group, part) = self.config, unit
        _, tap, _ = c.memory
        count = c.groups * c.lines[0]

        def place(chunk: int) -> int:
            """Return the offset of the first line of a chunk."""
            at, _, _, vector = self.chunks[chunk]
            return at * count * tap + (vector * VECTOR * tap if c.gradient else vector * VECTOR)

        apart = 8 if c.gradient else 8 * tap  # distance between the fragments of adjacent output channels
        found = list[Any]()
        base = self.filters.iterator + (group * c.lines[0] + self.lane % 8) * tap
        base = base + part * c.narrow * (1 if c.gradient else tap)
        base = base + row * (self.of.step[0] * count * tap) if c.rolled else base
        offset = place(step[0])
        if len(step) == 2:
            offset = cute.where(self.lane // 8 % 2 == 0, offset, place(step[1]))
        at_once = 2 if len(step) == 2 and self.tiles % 2 == 0 else 1
        for n in range(0, self.tiles, at_once):
            more = (n + self.lane // 16 * (at_once - 1)) * apart
            both = self.loaded(base, offset + more, len(step) * at_once, c.gradient)
            size = 2 * len(step)
            found += [cute.make_tensor(both.iterator + i * size, self.of_factor(len(step))) for i in range(at_once)]
        return found

    def of_factor(self, chunks: int) -> Any:
        """Return the layout of a filter fragment."""
        mma = self.mma(8 * chunks)
        return mma.make_fragment_B(mma.partition_shape_B((8, 8 * chunks))).layout


def _compute_group(walk: _Warp, unit: tuple[Int, Int], fused: Any) -> None:
    """Compute this warp's pixels of one group, or of a piece of its output channels."""
    c, lane, (group, _) = walk.config, walk.lane, unit
    pixel, _, _ = c.memory
    _, columns = c.halo
    steps = walk.steps()
    factors = [walk.factor(unit, step) for step in steps] if c.held else None
    upper = lane // 16  # 1 if this lane's row of A belongs to the second chunk
    offsets = list[Any]()
    for step in steps:
        places = [(walk.chunks[i][1] * columns + walk.chunks[i][2]) * pixel + walk.chunks[i][3] * VECTOR for i in step]
        offsets.append(places[0] if len(places) == 1 else cute.where(upper == 0, places[0], places[1]))
    total = c.tile[0] * c.tile[1]
    stride = 16 * c.atoms
    for m in range(walk.first * stride, total, stride * c.warps[1]):
        bases = list[Any]()
        for i in range(c.atoms):
            at = cute.min(m + i * 16 + lane % 16, total - 1)
            y, x = divmod(at, c.tile[1])
            place = (y * c.steps[0] * columns + x * c.steps[1]) * pixel + group * c.deep
            bases.append(walk.pixels.iterator + place)
        sums = [cute.make_rmem_tensor(4 * walk.tiles, cute.Float32) for _ in range(c.atoms)]
        for x in sums:
            x.fill(0.0)
        if c.rolled and walk.of.rows > 1:
            down = walk.of.step[1] * columns * pixel
            for row in cute.range(walk.of.rows, unroll=1):  # pyright: ignore
                _accumulate(walk, unit, [base + row * down for base in bases], offsets, sums, None, row)
        else:
            _accumulate(walk, unit, bases, offsets, sums, factors)
        for i in range(c.atoms):
            _stage(walk, sums[i], m + i * 16, unit, fused)


def _accumulate(
    walk: _Warp,
    unit: tuple[Int, Int],
    bases: list[Any],
    offsets: list[Any],
    sums: list[Any],
    factors: Any,
    row: Int = 0,
) -> None:
    """Add the products of all K steps, or of those of one filter row, to the accumulators."""
    for k, step in enumerate(walk.steps()):
        found = walk.factor(unit, step, row) if factors is None else factors[k]
        mma = walk.mma(8 * len(step))
        of_a = mma.make_fragment_A(mma.partition_shape_A((16, 8 * len(step)))).layout
        of_c = mma.make_fragment_C(mma.partition_shape_C((16, 8))).layout
        for i, base in enumerate(bases):
            a = walk.loaded(base, offsets[k], 2 * len(step), False)
            a = cute.make_tensor(a.iterator, of_a)
            for j, b in enumerate(found):
                acc = cute.make_tensor(sums[i].iterator + 4 * j, of_c)
                cute.gemm(mma, acc, a, b, acc)


def _stage(walk: _Warp, sums: Any, first: Int, unit: tuple[Int, Int], fused: Any) -> None:
    """Apply the epilogue to the accumulators of 16 pixels, and write them to shared memory."""
    c, lane, (group, part) = walk.config, walk.lane, unit
    _, _, line = c.memory
    total = c.tile[0] * c.tile[1]
    result = walk.result
    if fused is not None:
        _, q, p, _ = result.shape
        rows = list[Any]()
        for h in range(2):
            at = first + h * 8 + lane // 4
            y, x = divmod(at, c.tile[1])
            y, x = (
                (walk.row + y) * c.remainders[0] + walk.of.first[0],
                (walk.column + x) * c.remainders[1] + walk.of.first[1],
            )
            there = (at < total) & (y < p) & (x < q)
            rows.append(cute.where(there, (walk.n * p + y) * q + x, _OUTSIDE))
        slab, block_part = divmod(walk.slab, c.parts)
        group_column, column = (slab * c.groups + group) * c.width, block_part * c.wide + part * c.narrow + lane % 4 * 2
        width = cute.where(group_column < result.shape[0], c.width, 0)
        fused.apply_each(sums, _Elements(rows, group_column, column, width))
    pair = cute.make_layout(2)
    kind = result.element_type
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=2 * kind.width)
    for h in range(2):
        at = first + h * 8 + lane // 4
        if at < total:
            for j in range(walk.tiles):
                held = cute.make_rmem_tensor(2, kind)
                for e in range(2):
                    held[e] = sums[4 * j + 2 * h + e].to(kind)
                place = at * line + group * c.wide + part * c.narrow + j * 8 + lane % 4 * 2
                cute.copy(atom, held, cute.make_tensor((walk.staged.iterator + place).align(kind.width // 4), pair))


def _store(config: DirectConfig, staged: cute.Tensor, result: cute.Tensor, place: Any, first: tuple[Int, Int]) -> None:
    """Copy the tile from shared memory to the result."""
    row, column, n, slab = place
    _, _, line = config.memory
    _, q, p, _ = result.shape
    kind = result.element_type
    size = min(config.vectors[2], 128 // kind.width)
    of_group, (h, w) = -(-min(config.wide, config.width) // size), config.tile
    vectors = config.groups * of_group
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=size * kind.width)
    vector, align = cute.make_layout(size), size * kind.width // 8
    slab, part = divmod(slab, config.parts)

    def put(at: Int, c: Int) -> None:
        y, x = divmod(at, w)
        y, x = (row + y) * config.remainders[0] + first[0], (column + x) * config.remainders[1] + first[1]
        group, of = divmod(c, of_group)
        of = part * config.wide + of * size
        channel = (slab * config.groups + group) * config.width + of
        if (y < p) & (x < q) & (of < config.width) & (channel < result.shape[0]):
            held = cute.make_rmem_tensor(size, kind)
            source = staged.iterator + at * line + group * config.wide + (of - part * config.wide)
            cute.copy(atom, cute.make_tensor(source.align(align), vector), held)
            target = (result[None, x, y, n].iterator + channel).align(align)
            cute.copy(atom, held, cute.make_tensor(target, vector))

    _store_vectors((h * w, vectors, config.threads), put)


def _store_vectors(sizes: Any, put: Any) -> None:
    """Call ``put(line, i)`` for each vector ``i`` of each line, with all threads."""
    total, vectors, threads = sizes
    thread, at_once = cute.arch.thread_idx().x, threads // vectors
    if at_once * vectors * 4 >= threads * 3:  # Each thread stores the same vector of all its lines.
        line, i = divmod(thread, vectors)
        if line < at_once:
            for at in range(line, total, at_once):
                put(at, i)
    else:
        for i in range(thread, total * vectors, threads):
            put(*divmod(i, vectors))


@printed
def direct_text(config: DirectConfig) -> cute.Compiled:
    """Trace the kernel ``@direct`` and its host function ``@launch``."""
    kind, out = number(config.element), number(config.output)
    a, b, c = config.vectors
    c, per = min(c, 128 // out.width), config.filter_channels
    tensors = [
        image_type(kind, a),
        cute.Tensor[kind, f"({per},?,?):(1,{per},{_step(b)})", f"align<{b * kind.width // 8}>"],
        image_type(out, c),
    ]
    behind = config.epilogue.arguments(config.output)
    return cute.trace(launch, *tensors, **behind, config=config)


def _step(size: int) -> str:
    """Return the layout text of an extent that is a multiple of the vector size."""
    return f"?{{div={size}}}" if size > 1 else "?"


def image_type(kind: Any, size: int) -> Any:
    """Return the type of an image (C, W, H, N) whose strides are multiples of the vector size."""
    step = _step(size)
    return cute.Tensor[kind, f"({step},?,?,?):(1,{step},{step},{step})", f"align<{size * kind.width // 8}>"]
