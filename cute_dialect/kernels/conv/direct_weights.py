"""Filter gradient (wgrad) for few channels per group, with mma.sync on tiles in shared memory.

The method is that of :mod:`cute_dialect.kernels.conv.direct`, with pixels as K. A block loads a tile of the output's
gradient and the image pixels under its window. ``ldmatrix`` transposes both: A has a row per channel of two taps, B a
column per filter, and a K step is 16 pixels.

Accumulators stay in registers while a block iterates over tiles. At the end each row of warps writes a row of partial
results, and :mod:`cute_dialect.kernels.epilogue.reductions` adds the rows in a fixed order.

    launch(x, grad_y, parts, config=DirectWeightsConfig("f16", Window((3, 3), (1, 1), (1, 1)), channels=8, filters=8))
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.kernel_names import by, differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.conv.config import Window
from cute_dialect.kernels.conv.direct import (
    VECTOR,
    check_memory,
    clear_vectors,
    copy_vectors,
    image_type,
    odd_vectors,
    padded,
)
from cute_dialect.lang.nvgpu import warp
from cute_dialect.lang.values.signature_types import Int


class DirectWeightsConfig(NamedTuple):
    """Configuration of a wgrad kernel for few channels."""

    element: str
    window: Window
    channels: int  # channels per group
    filters: int  # filters per group
    # Elements per copy of the image and of the output's gradient: 1, 2, 4 or 8. They must divide the channels and the
    # filters of a group.
    vectors: tuple[int, int] = (8, 8)
    parts: tuple[int, int] = (1, 1)  # number of blocks that share the channels, and the filters, of a group
    tile: tuple[int, int] = (8, 28)  # rows and columns of output pixels that are loaded at once
    warps: tuple[int, int, int] = (8, 1, 1)  # warps along the groups of a block, along the taps, and along the pixels
    blocks: int = 2  # minimum number of resident blocks per multiprocessor
    # Type of the partial results; another type than f32 if there is a single row, the gradient itself.
    output: str = "f32"

    @property
    def groups(self) -> int:
        """Groups per block."""
        return self.warps[0]

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1] * self.warps[2]

    @property
    def deep(self) -> int:
        """Channels of a group per block, padded to a multiple of 8."""
        return padded(-(-self.channels // self.parts[0]))

    @property
    def wide(self) -> int:
        """Filters of a group per block, padded to a multiple of 8."""
        return padded(-(-self.filters // self.parts[1]))

    @property
    def chunks(self) -> int:
        """Number of vectors of 8 channels over all taps."""
        return self.window.taps[0] * self.window.taps[1] * self.deep // VECTOR

    @property
    def pairs(self) -> int:
        """Accumulator tiles of 16 rows per warp, each two vectors of channels."""
        return -(-self.chunks // (2 * self.warps[1]))

    @property
    def halo(self) -> tuple[int, int]:
        """Rows and columns of image pixels that are loaded at once."""
        w = self.window
        of_each = zip(self.tile, w.strides, w.taps, w.dilations)
        rows, columns = ((n - 1) * u + (t - 1) * d + 1 for n, u, t, d in of_each)
        return rows, columns

    @property
    def memory(self) -> tuple[int, int]:
        """Shared-memory elements per pixel of the image and of the output's gradient, with padding."""
        return odd_vectors(self.groups * self.deep), odd_vectors(self.groups * self.wide)

    @property
    def bytes(self) -> int:
        """Bytes of shared memory."""
        (pixel, line), (rows, columns), (h, w) = self.memory, self.halo, self.tile
        return 2 * (rows * columns * pixel + h * w * line + VECTOR)

    @property
    def registers(self) -> int:
        """Registers per thread for accumulators and offsets."""
        return self.pairs * (self.wide // 8 * 4 + 1)

    @property
    def name(self) -> str:
        """Name of the kernel."""
        shape = "_".join(map(str, (*self.parts, *self.vectors))) + f"-{by(self.tile)}-w{by(self.warps)}x{self.blocks}"
        kind = f"{self.element}-{self.window.name}-c{self.channels}k{self.filters}"
        return f"direct-wgrad-{kind}-{shape}{differing(self, {'output': '-{}'})}"

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        if self.groups > 1 and self.parts != (1, 1):
            raise ValueError(
                f"direct convolution: parts={self.parts} needs one group per block, got {self.groups} groups"
            )
        check_memory(self.vectors, (self.channels, self.filters), self.bytes)


@cute.jit
def launch(
    image: cute.Tensor,
    grads: cute.Tensor,
    parts: cute.Tensor,
    config: cute.Constexpr[DirectWeightsConfig | None] = None,
):
    """Launch the kernel: ``image`` (C, W, H, N), ``grads`` (K, Q, P, N), ``parts`` (rows, K * taps * C / groups)."""
    config.check()
    channels, q, p, images = grads.shape
    assert image.shape[3] == images, "image and grads must have the same number of images"
    assert image.shape[0] * config.filters == channels * config.channels, (
        "image and grads must have the same number of groups"
    )
    taps = config.window.taps[0] * config.window.taps[1]
    assert parts.shape[1] == channels * taps * config.channels, "parts must have one column per filter element"
    strips, bands = cute.ceil_div(q, config.tile[1]), cute.ceil_div(p, config.tile[0])
    tiles = cute.assume(strips * bands * images, range=(0, None))
    slabs = cute.ceil_div(channels, config.groups * config.filters) * config.parts[0] * config.parts[1]
    kernel = direct_weights(image, grads, parts, (strips, bands, tiles), config)
    grid = parts.shape[0] // config.warps[2], slabs, 1
    kernel.launch(grid=grid, block=config.threads, min_blocks_per_mp=config.blocks)


@cute.kernel
def direct_weights(
    image: cute.Tensor, grads: cute.Tensor, parts: cute.Tensor, sizes: Any, config: cute.Constexpr[DirectWeightsConfig]
):
    """Accumulate the filter gradient of some groups over some tiles."""
    cute.arch.griddepcontrol_launch_dependents()  # The kernel that adds up the rows may start, and waits.
    strips, bands, tiles = sizes
    block, slab, _ = cute.arch.block_idx()
    slab, part = divmod(slab, config.parts[0] * config.parts[1])
    of_k, of_c = divmod(part, config.parts[0])
    group = slab * config.groups
    kind = image.element_type
    pixel, line = config.memory
    rows, columns = config.halo
    count = rows * columns * pixel
    # A single array, so that a lane can select the line of zeros by its offset.
    memory = cute.smem_tensor(kind, cute.make_layout(count + config.tile[0] * config.tile[1] * line + VECTOR), 128)
    zeros = count + config.tile[0] * config.tile[1] * line
    if config.deep > config.channels or config.wide > config.filters:  # Copies skip the padding channels.
        clear_vectors(memory, config.threads)
        cute.arch.sync_threads()
    elif cute.arch.thread_idx().x < VECTOR:
        memory[zeros + cute.arch.thread_idx().x] = kind(0.0)
    warp_ = _Warp(config, memory, (count, zeros))
    blocks = parts.shape[0] // config.warps[2]
    for tile in range(block, tiles, blocks):
        rest, strip = divmod(tile, strips)
        n, band = divmod(rest, bands)
        row, column = band * config.tile[0], strip * config.tile[1]
        w = config.window
        first = row * w.strides[0] - w.before[0], column * w.strides[1] - w.before[1]
        of_image = config.halo, pixel, config.deep, config.channels, config.vectors[0], of_c
        of_grads = config.tile, line, config.wide, config.filters, config.vectors[1], of_k
        _load(config, image, memory.iterator, (*first, n, group), of_image)
        _load(config, grads, memory.iterator + count, (row, column, n, group), of_grads)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        warp_.add(grads.shape[2] - row, grads.shape[1] - column)
        cute.arch.sync_threads()
    warp_.store(parts, block, (group, of_c, of_k), grads.shape[0])


def _load(config: DirectWeightsConfig, x: Any, target: Any, origin: Any, sizes: Any) -> None:
    """Copy a box of pixels to shared memory; pixels outside of the image are zero."""
    (rows, columns), line, deep, channels, size, part = sizes
    y0, x0, n, first = origin
    of_group = -(-min(deep, channels) // size)
    vectors = config.groups * of_group

    def place(at: Int, c: Int) -> Any:
        y, at_x = divmod(at, columns)
        group, of = divmod(c, of_group)
        offset = at * line + group * deep + of * size
        of = part * deep + of * size
        channel = (first + group) * channels + of
        flag = ((y0 + y) >= 0) & ((y0 + y) < x.shape[2]) & ((x0 + at_x) >= 0) & ((x0 + at_x) < x.shape[1])
        flag = flag & (of < channels) & (channel < x.shape[0])
        return x[None, x0 + at_x, y0 + y, n].iterator + channel, target + offset, flag

    copy_vectors(x.element_type, size, rows * columns, vectors, config.threads, place)


class _Warp:
    """A warp's accumulators: some taps of one group, over some of the pixels."""

    def __init__(self, config: DirectWeightsConfig, memory: Any, places: Any):
        self.config, self.memory = config, memory
        self.grads, self.zeros = places
        thread = cute.arch.thread_idx().x
        self.lane = thread % 32
        number_of_warp = thread // 32
        groups, taps, _ = config.warps
        self.group, rest = number_of_warp % groups, number_of_warp // groups
        self.part, self.pixels = rest % taps, rest // taps
        self.tiles = config.wide // 8
        self.vector = cute.make_layout(VECTOR)
        kind = memory.element_type
        self.mma = cute.make_tiled_mma(warp.MmaF16BF16Op(kind, cute.Float32, (16, 8, 16)), (1, 1, 1))
        self.of_a = self.mma.make_fragment_A(self.mma.partition_shape_A((16, 16))).layout
        self.of_b = self.mma.make_fragment_B(self.mma.partition_shape_B((8, 16))).layout
        self.of_c = self.mma.make_fragment_C(self.mma.partition_shape_C((16, 8))).layout
        self.sums = cute.make_rmem_tensor((4, self.tiles, config.pairs), cute.Float32)
        self.sums.fill(0.0)
        # Offset of the tap and channels of each of this lane's rows of A, relative to a pixel.
        w, (pixel, _), (_, columns) = config.window, config.memory, config.halo
        vectors = config.deep // VECTOR
        self.offsets = list[Any]()
        for i in range(config.pairs):
            chunk = (self.part * config.pairs + i) * 2 + self.lane // 8 % 2
            tap, c = divmod(cute.min(chunk, config.chunks - 1), vectors)
            r, s = divmod(tap, w.taps[1])
            if w.flip:
                r, s = w.taps[0] - 1 - r, w.taps[1] - 1 - s
            at = (r * w.dilations[0] * columns + s * w.dilations[1]) * pixel
            self.offsets.append(at + self.group * config.deep + c * VECTOR)

    def loaded(self, at: Int, matrices: int) -> Any:
        """Load transposed 8 x 8 matrices with ``ldmatrix``; each lane gives the address of a row of 16 bytes."""
        kind = self.memory.element_type
        atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, matrices), kind)
        found = cute.make_rmem_tensor(2 * matrices, kind)
        cute.copy(atom, cute.make_tensor((self.memory.iterator + at).align(16), self.vector), found)
        return found

    def add(self, rows: Any, columns: Any) -> None:
        """Accumulate a tile, of which ``rows`` and ``columns`` are in bounds of the output."""
        _add(self, rows, columns)

    def store(self, parts: cute.Tensor, block: Int, place: Any, filters: Any) -> None:
        """Store the accumulators to a row of partial results."""
        c, (first, of_c, of_k) = self.config, place
        vectors = c.deep // VECTOR
        total = c.window.taps[0] * c.window.taps[1] * c.channels
        row, group = block * c.warps[2] + self.pixels, first + self.group
        for i in range(c.pairs):
            for h in range(2):
                chunk = (self.part * c.pairs + i) * 2 + h
                tap, vector = divmod(chunk, vectors)
                channel = of_c * c.deep + vector * VECTOR + self.lane // 4
                there = (chunk < c.chunks) & (channel < c.channels)
                for j in range(self.tiles):
                    for e in range(2):
                        k = of_k * c.wide + j * 8 + self.lane % 4 * 2 + e
                        whole = group * c.filters + k
                        at = whole * total + tap * c.channels + channel
                        flag = there & (k < c.filters) & (whole < filters)
                        _store_one(parts, row, at, flag, self.sums[2 * h + e, j, i])


def _store_one(parts: cute.Tensor, row: Int, at: Int, there: Any, value: Any) -> None:
    if there:
        parts[row, at] = value.to(parts.element_type)


def _add(walk: _Warp, rows: Any, columns: Any) -> None:
    """Accumulate a tile, 16 pixels per K step."""
    c, lane = walk.config, walk.lane
    (pixel, line), (_, width), (h, w) = c.memory, c.halo, c.tile
    u, v = c.window.strides
    for m in range(walk.pixels * 16, h * w, 16 * c.warps[2]):
        at = m + lane % 8 + lane // 16 * 8
        y, x = divmod(at, w)
        # Pixels outside of the output read zeros instead of image pixels, which may be infinite.
        there = (at < h * w) & (y < rows) & (x < columns)
        base = (y * u * width + x * v) * pixel
        at = m + lane % 16
        factors = list[Any]()
        at_once = 2 if walk.tiles % 2 == 0 else 1
        for j in range(0, walk.tiles, at_once):
            place = walk.grads + at * line + walk.group * c.wide + (j + lane // 16 * (at_once - 1)) * 8
            both = walk.loaded(cute.where(at < h * w, place, walk.zeros), 2 * at_once)
            factors += [cute.make_tensor(both.iterator + 4 * i, walk.of_b) for i in range(at_once)]
        for i in range(c.pairs):
            a = walk.loaded(cute.where(there, base + walk.offsets[i], walk.zeros), 4)
            a = cute.make_tensor(a.iterator, walk.of_a)
            for j, b in enumerate(factors):
                acc = cute.make_tensor(walk.sums[None, j, i].iterator, walk.of_c)
                cute.gemm(walk.mma, acc, a, b, acc)


@printed
def direct_weights_text(config: DirectWeightsConfig) -> cute.Compiled:
    """Trace the kernel ``@direct_weights`` and its host function ``@launch``."""
    tensors = [image_type(number(config.element), size) for size in config.vectors]
    parts = cute.Tensor[number(config.output), "(?,?):(?,1)"]
    return cute.trace(launch, *tensors, parts, config=config)
