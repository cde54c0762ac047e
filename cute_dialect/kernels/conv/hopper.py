"""Implicit-GEMM convolutions on Hopper, whose rows are pixels, by im2col TMA, mbarriers and wgmma.

The kernel is that of :mod:`cute_dialect.kernels.gemm.hopper`, with the same consumers, epilogues and stores. Its
producer loads pixels (:class:`Columns`) instead of rows of A. A K step is 64
channels (of 16 bits) of one tap. TMA shifts the pixels of a tile by the offset of the tap and fills the padding with
zeros, so that no im2col matrix is written.

    fprop    Y (N P Q, K)  = X (pixels, taps and channels)        F (K, taps and channels)^T
    dgrad    X (N H W, C)  = Y (pixels, taps and results)         F (C, taps and results)^T
    wgrad    F (K, C R S)  = Y (K, pixels)                        X (channels and taps, pixels)^T

Groups are matrices of a batch. In images their channels are adjacent.

Arrays have the contiguous mode first, as TMA expects of images: (C, W, H, N).

    launch(x, f, y, config=ConvConfig(GemmConfig(), Window((3, 3), (1, 1), (1, 1))))

>>> from cute_dialect.kernels.conv.config import Window
>>> from cute_dialect.kernels.gemm.config import GemmConfig
>>> "wgmma<64x256x16" in conv_text(ConvConfig(GemmConfig(), Window((3, 3), (1, 1), (1, 1))))
True

A kernel numbers its own rows and columns. D is one matrix, with a row per pixel of an image or per filter. Epilogues
and stores map them (:class:`PixelPlaces`, :class:`GroupPlaces`, :class:`TapPlaces`). The result of a strided dgrad is
scattered to the pixels of a residue class. Each 64 columns of a wgrad belong to one tap. The loops over tiles take
different numbers of K steps.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import factors, number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.conv.config import DGRAD, WGRAD, ConvConfig
from cute_dialect.kernels.epilogue.combination import Addends
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.epilogue.fragment_layout import lanes_of
from cute_dialect.kernels.gemm.block_scaling import Scales
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.epilogue_store import ChunkStore, Result, RowStore
from cute_dialect.kernels.gemm.hopper import (
    ROLES,
    WORK,
    Cooperative,
    Loads,
    allocate,
    ring_between,
    take_roles,
    work_of,
)
from cute_dialect.kernels.gemm.host import arguments_of, load_map, ring_of, store_map, store_widths
from cute_dialect.kernels.gemm.mainloop import Item, Operand, Place, Products, Shared, Tiles
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false


class Grid(NamedTuple):
    """Sizes of an image from which the kernel computes the pixel of a row and the tap of a step."""

    extents: tuple[Any, ...]  # of the pixels that are GEMM rows, the last dimension first
    blocks: Any  # im2col loads per tap


def chosen(which: Any, values: Sequence[int]) -> Any:
    """Return one of several constants, selected at run time; a constant if all are equal."""
    if len(set(values)) == 1:
        return values[0]
    found = cute.Int32(values[0])
    for i in cute.range_constexpr(1, len(values)):
        found = cute.Int32(values[i]) if which == i else found
    return found


class Pixels:
    """Mapping from GEMM rows to pixels."""

    def __init__(self, grid: Grid):
        self.divisors = [cute.fast_divmod_create_divisor(n) for n in grid.extents]

    def of_row(self, row: Any) -> tuple[Any, ...]:
        """Return the pixel of a row: W, H, …, then N."""
        found = []
        for i in cute.range_constexpr(len(self.divisors)):
            row, rest = divmod(row, self.divisors[i])
            found.append(rest)
        return (*found, row)


class Steps:
    """Mapping from K steps to taps and channels."""

    def __init__(self, config: ConvConfig, grid: Grid):
        self.config, window = config, config.window
        self.blocks = cute.fast_divmod_create_divisor(grid.blocks)
        self.count, rank = grid.blocks, len(window.taps)
        self.last_first = range(rank - 1, -1, -1)
        self.residues = [window.residues(i) for i in range(rank)] if config.kind == DGRAD else None

    def taps(self, residue: Any) -> list[Any]:
        """Return the number of taps along each dimension, W first."""
        if self.residues is None:
            return [self.config.window.taps[i] for i in self.last_first]
        return [chosen(a, [r.hits for r in self.residues[i]]) for i, a in zip(self.last_first, self.places(residue))]

    def places(self, residue: Any) -> list[Any]:
        """Return the coordinates of a residue class, the remainder along each dimension, W first."""
        found = []
        for i in self.last_first:
            u = self.config.window.strides[i]
            if self.config.strided:
                found.append(residue % u)
                residue = residue // u
            else:
                found.append(0)
        return found

    def steps(self, residue: Any) -> Any:
        """Return the number of K steps of a residue class. A class without taps has one step, of zeros."""
        return cute.max(prod(self.taps(residue)) * self.count, 1)

    def tap(self, number: Any, residue: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return the index of a tap in the filter, and its offset from the first pixel, W first."""
        window, places, taps = self.config.window, self.places(residue), self.taps(residue)
        found: Any = 0
        offsets, scale = [], 1
        lower = self.config.corners[0]
        for i, a, count in zip(self.last_first, places, taps):
            size = cute.max(count, 1)
            index = number % size
            number = number // size
            if self.residues is None:
                seen = window.taps[i] - 1 - index if window.flip else index
                tap, offset = index, seen * window.dilations[i]
            else:
                of_all = self.residues[i]
                tap = chosen(a, [r.first for r in of_all]) + index * of_all[0].step
                from_low = chosen(a, [r.at - lower[i] if r.hits else 0 for r in of_all])
                offset = from_low + (size - 1 - index) * of_all[0].apart
                tap = window.taps[i] - 1 - tap if window.flip else tap
            found = found + tap * scale
            scale = scale * window.taps[i]
            offsets.append(offset)
        return found, tuple(offsets)


class Columns:
    """An operand whose rows are pixels of an image and whose K is the channels of filter taps.

    Args:
        config: The configuration.
        atom: im2col TMA atom.
        smem: Stages (rows, K, stages).
        grid, steps: Mappings of rows and K steps.
        blocks: Number of blocks of the cluster that share the operand. Each loads some of its rows.
        rank: Index of this block among them.
        mask: Multicast mask.
    """

    def __init__(
        self, config: ConvConfig, atom: Any, smem: Any, grid: Grid, steps: Steps, blocks: int, rank: Any, mask: Any
    ):
        self.config, self.atom, self.smem, self.steps = config, atom, smem, steps
        self.pixels, self.blocks, self.rank, self.mask = Pixels(grid), blocks, rank, mask
        self.shared = blocks > 1

    def fetch(self, slot: Any, barrier: Any, row: Any, k: Any, matrix: Any) -> None:
        """Issue the loads of this block's part of tile (row, k) to a slot. ``matrix`` is a group or a residue class."""
        config, (m, _, depth) = self.config, self.config.base.tile
        width, rows = config.width, m // self.blocks
        lower = config.corners[0][::-1]
        strides = (1,) * len(lower) if config.kind == DGRAD else config.window.strides[::-1]
        *pixel, n = self.pixels.of_row(row * m + self.rank * rows)
        first = [x * s + low for x, s, low in zip(pixel, strides, lower)]
        for box in range(config.boxes):
            number, block = divmod(k * config.boxes + box if config.boxes > 1 else k, self.steps.blocks)
            channel = block * width
            if config.groups:
                channel = channel + matrix * (self.steps.count * width)
            if config.boxes > 1:  # past the last tap: load channels that are out of bounds, that is, zeros
                inside = number < prod(config.window.taps)
                channel = channel if inside else cute.Int32(_NOWHERE)
                number = number if inside else cute.Int32(0)
            if config.strided:  # a class without taps
                none = prod(self.steps.taps(matrix)) == 0
                channel = cute.Int32(_NOWHERE) if none else channel
            _, offsets = self.steps.tap(number, matrix)
            at = cute.make_tensor((channel, *first, n), cute.layout(f"({width},{rows}):(1@0,0)"))
            start = self.smem.iterator + (slot * (m * depth) + self.rank * (rows * width) + box * (m * width))
            align = 128 if rows * width % 512 else 1024
            there = cute.make_tensor(start.align(align), cute.layout(f"({width},{rows}):(1,{width})"))
            cute.copy(self.atom, at, there, tma_bar_ptr=barrier, mcast_mask=self.mask, im2col_offsets=offsets)


_NOWHERE = 1 << 24
"""A channel that is out of bounds in any image."""


class Filter:
    """The filter operand: tiles of (rows, channels, taps), or of (rows, taps and channels) of one group."""

    def __init__(self, config: ConvConfig, operand: Operand, steps: Steps):
        self.config, self.operand, self.steps = config, operand, steps
        self.shared = operand.shared

    def fetch(self, slot: Any, barrier: Any, row: Any, k: Any, matrix: Any) -> None:
        """Issue the load of this block's part of tile (row, k) to a slot."""
        if self.config.flat:
            self.operand.fetch(slot, barrier, row, k, matrix)
        else:
            number, block = divmod(k, self.steps.blocks)
            tap, _ = self.steps.tap(number, matrix)
            block = block + matrix * self.steps.count if self.config.groups else block
            self.operand.fetch(slot, barrier, row, block, tap)


class Chunks:
    """The image operand of wgrad: its rows are 64-channel chunks of a filter tap, its K mode is output pixels.

    ``atom`` loads 64 channels of pixels to ``smem`` (rows, K, stages). ``channels`` is the number of channels of a
    group.
    """

    shared = False

    def __init__(self, config: ConvConfig, atom: Any, smem: Any, grid: Grid, steps: Steps, channels: Any = 0):
        self.config, self.atom, self.smem, self.steps, self.pixels = config, atom, smem, steps, Pixels(grid)
        self.channels = channels

    def fetch(self, slot: Any, barrier: Any, row: Any, k: Any, matrix: Any) -> None:
        """Issue the loads of the chunks of tile (row, k) to a slot."""
        config, (_, n, depth) = self.config, self.config.base.tile
        window, low = config.window, config.window.lower[::-1]
        *pixel, image = self.pixels.of_row(k * depth)
        first = [x * u + start for x, u, start in zip(pixel, window.strides[::-1], low)]
        for chunk in range(n // 64):
            number, block = divmod(row * (n // 64) + chunk, self.steps.blocks)
            inside = number < prod(window.taps)
            first_one = block * 64 + (matrix * self.channels if config.groups else 0)
            channel = first_one if inside else cute.Int32(_NOWHERE)
            _, offsets = self.steps.tap(number if inside else cute.Int32(0), None)
            at = cute.make_tensor((channel, *first, image), cute.layout(f"(64,{depth}):(1@0,0)"))
            start = self.smem.iterator + (slot * (n * depth) + chunk * (64 * depth))
            there = cute.make_tensor(start.align(1024), cute.layout(f"(64,{depth}):(1,64)"))
            cute.copy(self.atom, at, there, tma_bar_ptr=barrier, im2col_offsets=offsets)


# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false


_OUTSIDE = 1 << 30
"""An index that is out of bounds: nothing is stored there, and loaded values are not used."""


class PixelPlaces:
    """Mapping for a strided dgrad: rows are pixels of a residue class, which is the matrix index.

    ``image`` is the result (C, W, …, N).
    """

    def __init__(self, image: Any, pixels: Pixels, steps: Steps):
        self.image, self.pixels, self.steps = image, pixels, steps

    def row(self, row: Any, matrix: Any) -> Any:
        """Return the pixel's row in D."""
        *extents, images = self.image.shape[1:]
        strides = self.steps.config.window.strides[::-1]
        *pixel, n = self.pixels.of_row(row)
        found, inside = n, n < images
        where = [x * u + a for x, u, a in zip(pixel, strides, self.steps.places(matrix))]
        for x, extent in zip(reversed(where), reversed(extents)):
            found, inside = found * extent + x, inside & (x < extent)
        return found if inside else cute.Int32(_OUTSIDE)

    def column(self, column: Any, matrix: Any) -> Any:
        """Return the column unchanged."""
        return column


class GroupPlaces:
    """Mapping for groups. ``extents`` are the number of rows, and of columns of a group."""

    def __init__(self, steps: Steps, extents: Any):
        self.extents = extents

    def row(self, row: Any, matrix: Any) -> Any:
        """Return the row unchanged."""
        return row

    def column(self, column: Any, matrix: Any) -> Any:
        """Return the column among those of all groups."""
        _, per = self.extents
        return column + matrix * per if column < per else cute.Int32(_OUTSIDE)


class TapPlaces:
    """Mapping for wgrad, whose columns are chunks of 64 channels of a tap.

    ``extents`` are the number of filters (of a group), and of channels of a tap.
    """

    def __init__(self, steps: Steps, extents: Any):
        self.steps, self.extents = steps, extents

    def row(self, row: Any, matrix: Any) -> Any:
        """Return the row, counted over all groups."""
        if not self.steps.config.groups:
            return row
        per, _ = self.extents
        return row + matrix * per if row < per else cute.Int32(_OUTSIDE)

    def column(self, column: Any, matrix: Any) -> Any:
        """Return the column among the channels of all taps."""
        _, channels = self.extents
        tap, block = divmod(cute.assume(column // 64, range=(0, None)), self.steps.blocks)
        channel = block * 64 + column % 64
        return tap * channels + channel if channel < channels else cute.Int32(_OUTSIDE)


class WeightResult(Result):
    """Epilogue of wgrad: each 64 accumulator columns are channels of one tap.

    Channels and taps past the last ones are not stored.
    """

    def __init__(
        self, config: ConvConfig, steps: Steps, tmas: dict[int, Any], memory: Any, sums: Any, group: Any, fused: Any
    ):
        super().__init__(config.base, tmas, memory, sums, group, fused)
        self.steps = steps

    def at(self, place: Place, atom: int, column: Any) -> tuple[Any, ...]:
        """Return the filter, channel and tap of an element of the tile."""
        first = place.column * self.c.columns + column
        tap, block = divmod(cute.assume(first // 64, range=(0, None)), self.steps.blocks)
        found = self.row(place, atom), block * 64 + first % 64, tap
        return found if place.matrix is None else (*found, place.of[2])

    def of_sums(self, place: Place, atom: int, column: Any) -> tuple[Any, Any]:
        """Return the row and column in the accumulator, which
        :class:`~cute_dialect.kernels.conv.hopper.TapPlaces` maps to the result.
        """
        return self.row(place, atom), place.column * self.c.columns + column


class _Target:
    """Stand-in for a TMA atom in a store without TMA; provides the element type."""

    def __init__(self, value_type: Any):
        self.value_type = value_type


class PixelStore(RowStore):
    """Store for rows that are pixels anywhere in an image, 16 bytes of channels at a time.

    ``image`` is (C, W, …, N); ``pixels`` and ``steps`` map rows and residue classes to its pixels.
    """

    def __init__(self, image: Any, pixels: Pixels, steps: Steps, width: int, memory: Any, buffers: int, group: Any):
        super().__init__((_Target(image.element_type), None), width, memory, buffers, group, lanes_of(0))
        self.image, self.pixels, self.steps = image, pixels, steps
        self.vector = 128 // image.element_type.width
        load = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), image.element_type, num_bits_per_copy=128)
        self.across = width // self.vector  # lanes per row
        lanes = cute.make_layout((32 // self.across, self.across), stride=(self.across, 1))
        self.read = cute.make_tiled_copy_tv(load, lanes, cute.make_layout((1, self.vector))).get_slice(self.lane)
        self.atom_of_rows = load

    def wait(self, under_way: int) -> None:
        """Do nothing: stores have read their buffers when they are issued."""

    def put(self, values: Any, buffer: Any, at: tuple[Any, ...], under_way: int, leave: Any = None) -> None:
        """Store the registers of a chunk. ``at`` is row, channel and residue class of the first element."""
        cute.arch.sync_warp()
        staged = self.staged[None, None, self.warp, buffer]
        cute.copy(self.copy, self.copy.retile(values), self.copy.partition_D(staged))
        cute.arch.sync_warp()
        source = self.read.partition_S(staged)
        held = cute.make_rmem_tensor_like(source)
        cute.copy(self.read, source, held)
        row, channel, residue = at
        places = self.steps.places(residue)
        strides = self.steps.config.window.strides[::-1]
        channel = channel + self.lane % self.across * self.vector
        *extents, images = self.image.shape[1:]
        for i in cute.range_constexpr(16 * self.across // 32):
            *pixel, n = self.pixels.of_row(row + self.warp * 16 + i * (32 // self.across) + self.lane // self.across)
            where = [x * u + a for x, u, a in zip(pixel, strides, places)]
            inside = (n < images) & (channel < self.image.shape[0])
            for x, extent in zip(where, extents):
                inside = inside & (x < extent)
            if inside:
                start = (self.image[(None, *where, n)].iterator + channel).align(16)
                there = cute.make_tensor(start, cute.make_layout(self.vector))
                cute.copy(self.atom_of_rows, held[None, i, 0], there)


class PixelResult(Result):
    """Epilogue of a strided dgrad, in which a matrix of the batch is a residue class.

    ``image`` is (C, W, …, N); the other arguments are those of :class:`Result`.
    """

    def __init__(
        self, c: GemmConfig, image: Any, pixels: Pixels, steps: Steps, memory: Any, sums: Any, group: Any, fused: Any
    ):
        targets = {width: (_Target(image.element_type), None) for width in dict.fromkeys(c.widths)}
        super().__init__(c, targets, memory, sums, group, fused)
        buffers = c.buffers * c.consumers
        self.stores: dict[int, ChunkStore] = {
            width: PixelStore(image, pixels, steps, width, memory, buffers, group) for width in targets
        }


class ResidueLoads(Loads):
    """Producer for tiles with different numbers of K steps."""

    def whole(self, first: Any, done: Any) -> None:
        """Load all tiles of this block from ``first`` on. The first ``done`` stages are already issued."""
        for tile in range(first, self.tiles.count(), self.tiles.step):
            place = self.tiles.place(tile)
            for i in range(done, self.k_tiles(place)):
                self.stage(i, place)
            done = cute.Int32(0)


class ResidueCooperative(Cooperative):
    """Consumers of tiles with different numbers of K steps."""

    def whole(self, first: Any) -> None:
        """Multiply and store this block's tiles from ``first`` on."""
        for tile in range(first, self.tiles.count(), self.tiles.step):
            place = self.tiles.place(tile)
            ahead = self.result.ahead(place)
            self.products.of_tile(self.consumer, self.k_tiles(place), place)
            self.result.convert(place, ahead)
            self.result.store(place, ahead=ahead)
        self.result.finish()


class ResidueWork:
    """Work of a block: every n-th tile, n being the number of clusters. ``k_tiles(place)`` is the number of K steps."""

    def __init__(self, c: Any, tiles: Any, k_tiles: Any, shared: Any):
        del c, shared
        self.tiles = tiles
        last = cute.max(tiles.count() - 1, 0)
        self.first = Item(tiles.first, 0, k_tiles(tiles.place(cute.min(tiles.first, last))))

    def produce(self, loads: Any) -> None:
        """Load the operands of this block's tiles."""
        loads.whole(self.tiles.first, loads.begin(self.first))

    def consume(self, role: Any) -> None:
        """Multiply and store this block's tiles."""
        role.whole(self.tiles.first)


# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false


@cute.jit
def launch(
    image: cute.Tensor, filter: cute.Tensor, result: cute.Tensor, workspace: cute.Tensor | None = None,
    flags: cute.Tensor | None = None, counters: cute.Tensor | None = None, source: cute.Tensor | None = None,
    bias: cute.Tensor | None = None, alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None,
    operands: Any = None, config: cute.Constexpr[Any] = None,
):  # fmt: skip
    """Launch the kernel of a configuration.

    Args:
        image: (C, W, …, N).
        filter: (K, C, taps), or (C, K, taps) for dgrad. If ``config.flat``, (K, taps and channels [, groups]).
        result: (pixels, K [, groups]).
        workspace: f32 scratch for partial accumulators (split-K, stream-K).
        flags, counters: Zeroed i32 semaphores of stream-K and split-K.
        source, bias, alpha, beta, operands: Arguments of the epilogue.
        config: The configuration.
    """
    config.check()
    c, window = config.base, config.window
    addends = Addends(source, bias, alpha, beta, operands)
    shared = Shared(workspace, counters if flags is None else flags)
    if not config.placed:
        c.epilogue.check_shapes(result, addends)
    if c.epilogue.reduces:
        addends = addends._replace(extents=(result.shape[0], result.shape[1]))
        c.epilogue.check_parts(result.shape[1], addends, c.part)
    m, n, k = c.tile
    channels, *extents, images = image.shape
    rows = _rows(config, extents)
    if config.kind == WGRAD:
        taps = Grid(tuple(rows[::-1]), cute.ceil_div(result.shape[1] if config.groups else channels, 64))
        _launch_weights(image, filter, result, taps, shared, addends, config)
        return
    if config.strided:
        tall, wide = images * prod(rows), result.shape[0]
        assert result.shape[-1] == images, "image and result must have the same number of images"
        for extent, seen, u, left in zip(result.shape[-2:0:-1], rows, window.strides, window.left):
            assert cute.ceil_div(extent, u) == seen, "the extents of the result must match the configuration"
            assert extent % u == left, "the extents of the result must match the configuration"
        addends = _addends(config, addends, None, None, (cute.size(result) // wide, filter.shape[0]))
    else:
        tall, wide = result.shape[0], result.shape[1]
        if config.groups:
            addends = _addends(config, addends, tall, wide, (tall, wide * result.shape[2]))
        assert tall == images * prod(rows), "the result must have one row per pixel"
    if config.strided:  # stores write 16 bytes at once
        assert filter.shape[0] <= wide, "the result must have one column per row of the filter"
    else:
        assert filter.shape[0] == wide, "the filter must have as many rows as the result has columns"
    blocks = cute.ceil_div(channels, config.width)
    if config.groups:
        blocks = cute.ceil_div(channels // result.shape[2], config.width)
    if config.flat:
        assert filter.shape[1] == blocks * (config.width * prod(window.taps)), "the filter must have the window's taps"
    else:
        assert filter.shape[1] == channels, "the filter and the image must have the same channels"
        assert filter.shape[2] == prod(window.taps), "the filter must have the window's taps"
    a_kind, b_kind = (number(e) for e in factors(c.element))
    mma = hopper.make_trivial_tiled_mma(
        a_kind, b_kind, cute.nvgpu.OperandMajorMode.K, hopper.major(filter), number(c.sums), (c.sharers, 1, 1), (64, n)
    )
    rings = _columns_ring(config, (m, k), a_kind), ring_of(filter, (n, k), c)
    lower, upper = config.corners
    tma_a = cpasync.make_im2col_tma_atom(
        cpasync.CopyBulkTensorIm2colG2SOp(), image, channels=config.width, pixels=m // c.cluster_n, lower=lower[::-1],
        upper=upper[::-1], pixel_strides=None if config.kind == DGRAD else window.strides[::-1],
        swizzle=0 if config.width * c.bits == 128 else config.width * c.bits // 8,
    )  # fmt: skip
    of_filter = c._replace(batch=not config.flat or config.groups)
    tma_b = load_map(of_filter, filter, (n, k), c.cluster_m)
    stored = {} if config.strided else {width: store_map(c, result, width) for width in store_widths(config.gemm)}
    raster = utils.GroupedRaster(
        cute.ceil_div((tall, wide), (m * c.cluster_m, n * c.cluster_n)), c.group, serpentine=c.serpentine,
        cluster=c.cluster, sms=c.at_once,
        matrices=config.residues if config.strided else result.shape[2] if c.batch else None,
    )  # fmt: skip
    k_tiles = cute.ceil_div(blocks * prod(window.taps), config.boxes)
    grid = (
        raster.persistent_grid() if config.strided else WORK[work_of(config.gemm)].grid(raster, k_tiles, config.parts)
    )
    pixels = Grid(tuple(rows[::-1]), blocks)
    image_of = result if config.strided else None
    conv(tma_a, tma_b, stored, mma, rings, raster, pixels, k_tiles, shared, addends, image_of, config).launch(
        grid=grid, block=c.threads, cluster=(c.cluster, 1, 1)
    )


def _addends(config: ConvConfig, addends: Addends, rows: Any, columns: Any, whole: tuple[Any, Any]) -> Addends:
    """Check an epilogue's arguments against a D of size ``whole``, and return them with the extents that the kernel
    uses.

    These are ``rows`` and ``columns``, those of one group or of one tap.
    """
    epilogue = config.base.epilogue
    if not epilogue.active:
        return addends
    epilogue.check_extents(*whole, addends)
    return addends if rows is None else addends._replace(extents=(rows, columns))


def _launch_weights(
    image: Any, gradient: Any, result: Any, pixels: Grid, shared: Shared, addends: Addends, config: ConvConfig
) -> None:
    """Launch wgrad: ``gradient`` (K, pixels), ``result`` (K, C, taps)."""
    c, window = config.base, config.window
    m, n, k = c.tile
    rows = image.shape[-1] * prod(pixels.extents)
    assert gradient.shape[1] == rows, "the gradient must have one row per output pixel"
    assert gradient.shape[0] == result.shape[0], "both gradients must have the same number of filters"
    groups = result.shape[3] if config.groups else 1
    assert result.shape[1] * groups == image.shape[0], "the result and the image must have the same channels"
    if config.groups:
        assert gradient.shape[2] == groups, "both gradients must have the same number of groups"
    assert result.shape[2] == prod(window.taps), "the result must have the window's taps"
    kind, major = number(c.element), cute.nvgpu.OperandMajorMode.MN
    mma = hopper.make_trivial_tiled_mma(kind, kind, major, major, number(c.sums), (c.sharers, 1, 1), (64, n))
    of_columns = utils.LayoutEnum.COL_MAJOR
    rings = ring_of(gradient, (m, k), c), hopper.make_smem_layout_a(of_columns, (n, None, k), kind, c.stages)
    tma_b = cpasync.make_im2col_tma_atom(
        cpasync.CopyBulkTensorIm2colG2SOp(), image, channels=64, pixels=k, lower=window.lower[::-1],
        upper=window.upper[::-1], pixel_strides=window.strides[::-1], swizzle=128,
    )  # fmt: skip
    whole = result.shape[0] * groups, result.shape[1] * result.shape[2]
    addends = _addends(config, addends, result.shape[0], result.shape[1], whole)
    tma_a = load_map(c, gradient, (m, k), c.cluster_n)
    stored = {width: store_map(c._replace(batch=True), result, width) for width in store_widths(config.gemm)}
    columns = pixels.blocks * (64 * prod(window.taps))
    raster = utils.GroupedRaster(
        cute.ceil_div((result.shape[0], columns), (m * c.cluster_m, n * c.cluster_n)), c.group,
        serpentine=c.serpentine, cluster=c.cluster, sms=c.at_once, matrices=groups if config.groups else None,
    )  # fmt: skip
    k_tiles = cute.ceil_div(rows, k)
    grid = WORK[work_of(config.gemm)].grid(raster, k_tiles, config.parts)
    conv(tma_a, tma_b, stored, mma, rings, raster, pixels, k_tiles, shared, addends, None, config).launch(
        grid=grid, block=c.threads, cluster=(c.cluster, 1, 1)
    )


def _rows(config: ConvConfig, extents: Any) -> list[Any]:
    """Return the extents of the pixels that are GEMM rows. ``extents`` are those of the image, W first."""
    w, (lower, upper) = config.window, config.corners
    if config.kind == DGRAD:
        return [extent + (high - low) for extent, low, high in zip(reversed(extents), lower, upper)]
    return [
        (extent + (before + after - d * (taps - 1) - 1)) // u + 1
        for extent, taps, before, after, u, d in zip(
            reversed(extents), w.taps, w.before, w.after, w.strides, w.dilations
        )
    ]


def _columns_ring(config: ConvConfig, tile: tuple[int, int], kind: Any) -> Any:
    """Return the shared-memory layout of the image's stages. A line has the channels of one load."""
    kinds = warpgroup.SmemLayoutAtomKind
    line = {1024: kinds.K_SW128, 512: kinds.K_SW64, 256: kinds.K_SW32, 128: kinds.K_INTER}
    atom = warpgroup.make_smem_layout_atom(line[config.width * config.base.bits], kind)
    return cute.tile_to_shape(atom, (*tile, config.base.stages), order=(0, 1, 2))


@cute.kernel(min_blocks=1)
def conv(
    tma_a: Any, tma_b: Any, tmas_c: dict[int, Any], mma: cute.TiledMma, rings: Any, raster: utils.GroupedRaster,
    grid: Grid, k_tiles: cute.Int32, shared: Shared, addends: Addends, image: Any, config: cute.Constexpr[Any],
):  # fmt: skip
    """Compute this block's tiles. ``image`` is the result of a strided dgrad."""
    c = config.base
    m, n, k = c.tile
    tiles = Tiles(c, raster)
    steps = Steps(config, grid)
    walked: Any = (lambda place: steps.steps(place.matrix)) if config.strided else k_tiles
    work = (ResidueWork if config.strided else WORK[work_of(config.gemm)])(config.gemm, tiles, walked, shared)
    atoms = [x if isinstance(x, cute.CopyAtom) else x[0] for x in (tma_a, tma_b)]
    if cute.arch.thread_idx().x == 0:
        for atom in (*atoms, *(atom for atom, _ in tmas_c.values())):
            cpasync.prefetch_descriptor(atom)

    sA, sB, staging = allocate(c, atoms, rings)
    of_a, of_b = tiles.sharers()
    if config.kind == WGRAD:
        a = Operand(tma_a, sA, (m, k), c.cluster_n, tiles.column, k_major=False, mask=of_a, batch=config.groups)
        channels = tmas_c[next(iter(tmas_c))][1].shape[1] if config.groups else 0
        b = Chunks(config, tma_b, sB, grid, steps, channels)
    else:
        a = Columns(config, tma_a, sA, grid, steps, c.cluster_n, tiles.column, of_a if c.cluster_n > 1 else None)
        brought = Operand(
            tma_b, sB, (n, k), c.cluster_m, tiles.row, k_major=c.major_b == "k", mask=of_b,
            batch=not config.flat or config.groups,
        )  # fmt: skip
        b = Filter(config, brought, steps)
    producer, consumer = ring_between(c)
    loads = (ResidueLoads if config.strided else Loads)(c, a, b, producer, tiles, walked)
    blocks = cute.make_layout(c.cluster)
    pipeline.pipeline_init_arrive(blocks, is_relaxed=True)
    if c.cluster == 1:
        pipeline.pipeline_init_wait(blocks)
    loads.early(work.first)
    if c.cluster > 1:
        pipeline.pipeline_init_wait(blocks)

    def consume(group: Any) -> None:
        products = Products(c, mma, sA, sB, 0 if c.schedule == "pingpong" else group * 128, Scales())
        places: Any = None
        if config.strided:
            places = PixelPlaces(image, Pixels(grid), steps)
        elif config.placed:
            places = (TapPlaces if config.kind == WGRAD else GroupPlaces)(steps, addends.extents)
        whole = number(c.output).is_integer
        fused = Fused(c.epilogue, addends, pairs=True, whole=whole, batch=False, places=places)
        given = staging, products.sums, group, fused
        if config.strided:
            result = PixelResult(c, image, Pixels(grid), steps, *given)
        elif config.kind == WGRAD:
            result = WeightResult(config, steps, tmas_c, *given)
        else:
            result = Result(c, tmas_c, *given)
        role = ResidueCooperative if config.strided else ROLES[c.schedule]
        work.consume(role(c, consumer, products, result, tiles, walked))

    take_roles(c, lambda: work.produce(loads), consume)


@printed
def conv_text(config: ConvConfig) -> cute.Compiled:
    """Trace the kernel ``@conv`` and its host function ``@launch``.

    Raises:
        ValueError: if the configuration is not supported.
    """
    config.check()
    c, rank = config.base, len(config.window.taps)
    (kind, other), d = (number(e) for e in factors(c.element)), f"?{{div={128 // c.bits}}}"
    image = f"({','.join('?' * (rank + 2))}):({','.join(['1'] + [d] * (rank + 1))})"
    if config.flat:
        filter = f"(?,?,?):({d},1,{d})" if config.groups else f"(?,?):({d},1)"
    else:
        filter = f"(?,?,?):({d},1,{d})" if c.major_b == "k" else f"(?,?,?):(1,{d},{d})"
    e = f"?{{div={128 // number(c.output).width}}}"
    result = f"(?,?,?):({e},1,{e})" if c.batch else f"(?,?):({e},1)"
    if config.strided:
        result = image.replace(d, e)
    elif config.kind == WGRAD:
        group = ",?" * config.groups
        filter = f"(?,?{group}):(1,{d}{f',{d}' * config.groups})"
        result = f"(?,?,?{group}):({e},1,{e}{f',{e}' * config.groups})"
    arrays = [(kind, image), (other, filter), (number(c.output), result)]
    tensors = [cute.Tensor[element, layout, "align<16>"] for element, layout in arrays]
    one = config._replace(base=c._replace(batch=False)).gemm  # D is one matrix over all groups or pixels
    return cute.trace(launch, *tensors, **arguments_of(one), config=config)
