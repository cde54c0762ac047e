"""Destinations of convolution results: maps from accumulator coordinates to D, and stores that follow them.

A kernel numbers its own rows and columns. D is one matrix, with a row per pixel of an image or per filter. Epilogues
and stores map them (:class:`PixelPlaces`, :class:`GroupPlaces`, :class:`TapPlaces`). The result of a strided dgrad is
scattered to the pixels of a residue class. Each 64 columns of a wgrad belong to one tap. The loops over tiles take
different numbers of K steps.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.conv.config import ConvConfig
from cute_dialect.kernels.conv.im2col_loads import Pixels, Steps
from cute_dialect.kernels.epilogue.fragment_layout import lanes_of
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.epilogue_store import ChunkStore, Result, RowStore
from cute_dialect.kernels.gemm.hopper import Cooperative, Loads
from cute_dialect.kernels.gemm.mainloop import Item, Place

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
        :class:`~cute_dialect.kernels.conv.stores.TapPlaces` maps to the result.
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
