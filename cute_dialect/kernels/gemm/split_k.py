"""Split-K and stream-K of the Hopper GEMM: blocks share tiles and reduce through global memory, in a fixed order.

**Split-K** (:class:`Parts`) is for few tiles and a large K. Block ``t * S + s`` multiplies slice ``s`` of K for tile
``t``. It then

- writes its partial accumulator to a workspace and increments the counter of the tile,
- waits until every block of the tile has done so,
- adds the partial accumulators of its columns in slice order, so that the result is deterministic, and
- runs the epilogue of these columns and stores them.

If there are more slices than pieces of columns, the surplus blocks exit after the first step. All blocks must be
resident at once, so the grid has at most one block per SM.

**Stream-K** (:class:`Stream`): all blocks share the K steps of the tiles of the last wave. With ``T`` tiles and ``G``
clusters, the first ``T mod G`` tiles are laid end to end. Each cluster takes an equal stretch of their K steps: the end
of one tile, the beginning of the next one, or a middle section. Afterwards each cluster computes whole tiles as usual.
See Osama et al., "Stream-K", 2023.

    tile 0                     tile 1
    |----------------------- K |----------------------- K |
    |  block 0   |  block 1     ,   |  block 2            |

The block with the beginning of a tile finishes it. It adds the partial accumulators of the other blocks in block order.
It hardly waits for them: they compute their part of this tile first, while it still works on the end of the previous
tile. Partial accumulators go through a workspace, an f32 tile per block, with one ready flag per block.

Workspace, counters and flags belong to one stream. Counters and flags must be zero before the first launch; every
launch resets them.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import rounded
from cute_dialect.kernels.gemm.config import GemmConfig, SplitConfig
from cute_dialect.kernels.gemm.mainloop import Item, Shared, Tiles

_COLUMNS_AT_ONCE = 256
"""Columns x slices that are loaded before the first addition. A larger batch would need too many registers."""


class Parts:
    """Work of a split-K block: one slice of K of a tile, and the reduction of some of its columns."""

    def __init__(self, config: SplitConfig, tiles: Tiles, k_tiles: Any, shared: Shared):
        self.c, self.parts, self.tiles, self.memory = config.base, config.parts, tiles, shared
        self.piece, self.pieces = config.piece, config.base.tile[1] // config.piece
        tile, self.part = tiles.first // self.parts, tiles.first % self.parts
        self.tile = tile * self.c.cluster + tiles.rank  # blocks that reduce together have the same number
        # Slice s takes K steps s*K/S to (s+1)*K/S. No slice is empty if there are at least S steps.
        begin = self.part * k_tiles // self.parts
        self.first = Item(tile, begin, (self.part + 1) * k_tiles // self.parts - begin)

    @staticmethod
    def grid(raster: Any, k_tiles: Any, parts: int) -> Any:
        """Return the number of blocks to launch. All of them must be resident at once."""
        blocks = raster.count() * (parts * raster.cluster)
        assert blocks <= raster.sms, (
            f"split-K needs all blocks resident at once, but the grid has more than {raster.sms}"
        )
        assert k_tiles >= parts, f"K has fewer than {parts} stages"
        return blocks

    def produce(self, loads: Any) -> None:
        """Load the operands of this block's slice."""
        done, place = loads.begin(self.first), self.tiles.place(self.first.tile)
        for i in range(done, self.first.steps):
            loads.stage(self.first.k + i, place)

    def consume(self, role: Any) -> None:
        """Multiply the slice, exchange partial accumulators, and store this block's columns."""
        result, acc = role.result, role.products.sums
        place = self.tiles.place(self.first.tile)
        role.products.ask(place, self.first.k)
        role.products.of_tile(role.consumer, self.first.steps, place, self.first.k)
        copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), acc.element_type, num_bits_per_copy=128)
        vectors = cute.make_layout((4, self.piece // 8), stride=(1, 4))
        for piece in cute.range_constexpr(self.pieces):
            sums = cute.make_tensor(acc.iterator + self.piece // 2 * piece, vectors)
            cute.copy(copy, sums, self._partials(piece, self.part))
        finishers = min(self.parts, self.pieces)
        self._arrive()
        if finishers == self.parts or self.part < finishers:
            self._wait(finishers)
            self._finish(result, place, copy, vectors)
        result.finish()

    def _finish(self, result: Any, place: Any, copy: Any, vectors: Any) -> None:
        """Reduce and store this block's pieces: every n-th one, n being the number of slices."""
        for first in cute.range_constexpr(0, self.pieces, self.parts):
            piece = self.part + first
            if first + self.parts <= self.pieces or piece < self.pieces:
                self._finish_piece(result, place, copy, vectors, piece, first // self.parts)

    def _finish_piece(self, result: Any, place: Any, copy: Any, vectors: Any, piece: Any, number: int) -> None:
        """Reduce and store one piece, the ``number``-th of this block."""
        width, buffers = self.piece, self.c.buffers
        kind = result.sums.element_type
        total = cute.make_rmem_tensor(vectors, kind)
        at_once = _COLUMNS_AT_ONCE // width
        for first in cute.range_constexpr(0, self.parts, at_once):
            parts = range(first, min(first + at_once, self.parts))
            found = [cute.make_rmem_tensor(vectors, kind) if part else total for part in parts]
            for part, values in zip(parts, found):  # issue all loads before the first addition
                cute.copy(copy, self._partials(piece, part), values)
            for part, values in zip(parts, found):
                if part:
                    for i in range(width // 2):  # held in registers, so the passes unroll this loop
                        total[i] = total[i] + values[i]
        column = piece * width
        values = result.fuse(total, width, place, 0, column)
        layout = result.stores[width].values
        out = cute.make_rmem_tensor(layout, result.kind)
        out.store(rounded(cute.make_tensor(values.iterator, layout), result.kind))
        result.put(out, number % buffers, width, place, 0, column, buffers - 1)

    def _partials(self, piece: Any, part: Any) -> Any:
        """Return this thread's 16-byte vectors (4, vectors) in the workspace, for one piece of one slice."""
        c, width, pieces = self.c, self.piece, self.pieces
        size = c.tile[0] * width  # f32 elements of a piece
        shape = (4, width // 8, 128, c.consumers, pieces, self.parts)
        strides = (1, 512, 4, 64 * width, size, size * pieces)
        base = (self.memory.of_sums(c).iterator + self.tile * (size * pieces * self.parts)).align(16)
        thread = cute.arch.thread_idx().x
        where = (None, None, thread % 128, thread // 128 - 1, piece, part)
        return cute.make_tensor(base, cute.make_layout(shape, stride=strides))[where]

    def _arrive(self) -> None:
        """Signal that this block has written its partial accumulator."""
        cute.arch.barrier(1, 128 * self.c.consumers)
        if cute.arch.thread_idx().x == 128:
            cute.arch.fence_acq_rel_gpu()  # after the barrier, so that the fence covers the writes of all warps
            cute.arch.atomic_add(self._counter(0), 1)

    def _wait(self, finishers: int) -> None:
        """Wait for all blocks of the tile. The last block to pass resets the counters."""
        arrived, left = self._counter(0), self._counter(1)
        if cute.arch.thread_idx().x == 128:
            while cute.arch.load(arrived, sem="acquire") < self.parts:
                pass
            if cute.arch.atomic_add(left, 1) == finishers - 1:
                cute.arch.atomic_exch(arrived, 0)
                cute.arch.atomic_exch(left, 0)
        cute.arch.barrier(1, 128 * self.c.consumers)
        cute.arch.fence_acq_rel_gpu()

    def _counter(self, i: int) -> Any:
        return self.memory.flags.iterator + (self.tile * 2 + i)


_VECTORS_AT_ONCE = 8
"""Vectors of a partial accumulator that a thread loads at once. They need registers in addition to its own accumulator.
"""


def _natural(x: Any) -> Any:
    """Assume that a product is not negative, which holds because it fits its type."""
    return cute.assume(x, range=(0, None))


class Stream:
    """Work of a stream-K block: its stretch of the shared tiles, then whole tiles."""

    def __init__(self, c: GemmConfig, tiles: Tiles, k_tiles: Any, shared: Shared):
        self.c, self.tiles, self.k_tiles, self.memory = c, tiles, k_tiles, shared
        self.number = tiles.first
        left = tiles.count() % tiles.step
        self.shared = cute.Int32(0) if left * k_tiles < tiles.step else left
        self.some = self.shared != 0
        begin, end = self._stretch(self.number), self._stretch(self.number + 1)
        tile, self.cut = divmod(begin, k_tiles)
        self.end_of_one = cute.min(k_tiles - self.cut, end - begin)
        self.begin_of_next = end - begin - self.end_of_one
        steps = self.end_of_one if self.some else k_tiles
        self.first = Item(tile if self.some else self.number, self.cut, steps)  # the cut is 0 if no tiles are shared

    @staticmethod
    def grid(raster: Any, k_tiles: Any, parts: int) -> Any:
        """Return the number of blocks to launch: as many as are resident at once, with at least one K step each."""
        assert k_tiles > 0, "K is 0"
        return cute.min(raster.count() * k_tiles, raster.sms // raster.cluster) * raster.cluster

    def _stretch(self, number: Any) -> Any:
        """Return the first K step of a block's stretch."""
        return _natural(number * self._units()) // self.tiles.step

    def _units(self) -> Any:
        """Return the number of K steps of all shared tiles."""
        return _natural(self.shared * self.k_tiles)

    def _item(self, j: Any) -> Item:
        """Return a section of this block's stretch: the end of one tile (0) or the beginning of the next (1)."""
        first = j == 0
        return Item(self.first.tile + j, self.cut if first else 0, self.end_of_one if first else self.begin_of_next)

    def produce(self, loads: Any) -> None:
        """Load the operands of the stretch, then of the whole tiles."""
        done = loads.begin(self.first)
        for j in range(cute.Int32(self.some) * 2):
            item = self._item(j)
            if item.steps != 0:
                place = self.tiles.place(item.tile)
                for i in range(done, item.steps):
                    loads.stage(item.k + i, place)
            done = cute.Int32(0)
        loads.whole(self.shared + self.number, done)

    def consume(self, role: Any) -> None:
        """Multiply the stretch and the whole tiles, and store the tiles that this block finishes."""
        products, result = role.products, role.result
        for j in range(cute.Int32(self.some) * 2):
            item = self._item(j)
            if item.steps != 0:
                place = self.tiles.place(item.tile)
                products.of_tile(role.consumer, item.steps)
                if item.k != 0:
                    self._give(products.acc)
                else:
                    if item.steps != self.k_tiles:
                        self._collect(products.acc, item.tile)
                    result.convert(place)
                    result.store(place)
        first = self.shared + self.number
        if first < self.tiles.count():
            role.whole(first)
        result.finish()

    # ------------------------------------------------------------------------------------------------ exchange

    def _block(self, number: Any) -> Any:
        """Return the block of the same rank in another cluster."""
        return number * self.c.cluster + self.tiles.rank

    def _partials(self, block: Any) -> Any:
        """Return this thread's 16-byte vectors (4, vectors) in the workspace of a block."""
        m, n, _ = self.c.tile
        rows = m // self.c.consumers
        shape, strides = (4, self._vectors(), 128, self.c.consumers), (1, 512, 4, rows * n)
        base = (self.memory.of_sums(self.c).iterator + block * (m * n)).align(16)
        thread = cute.arch.thread_idx().x
        where = (None, None, thread % 128, thread // 128 - 1)
        return cute.make_tensor(base, cute.make_layout(shape, stride=strides))[where]

    def _vectors(self) -> int:
        """Return the number of 16-byte accumulator vectors per thread."""
        return self.c.atoms * self.c.tile[1] // 8

    def _meet(self) -> None:
        cute.arch.barrier(1, 128 * self.c.consumers)

    def _give(self, acc: Any) -> None:
        """Write the partial accumulator to the workspace, then set the flag."""
        copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), acc.element_type, num_bits_per_copy=128)
        block = self._block(self.number)
        vectors = cute.make_layout((4, self._vectors()), stride=(1, 4))
        cute.copy(copy, cute.make_tensor(acc.iterator, vectors), self._partials(block))
        self._meet()
        if cute.arch.thread_idx().x == 128:
            cute.arch.fence_acq_rel_gpu()  # after the barrier, so that the fence covers the writes of all warps
            cute.arch.atomic_exch(self.memory.flags.iterator + block, 1)

    def _collect(self, acc: Any, tile: Any) -> None:
        """Add the partial accumulators of the other blocks of a tile."""
        copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), acc.element_type, num_bits_per_copy=128)
        units = self._units()
        # Blocks whose stretch begins before the tile ends: i * units / step < (tile + 1) * k_tiles.
        last = cute.ceil_div(_natural((tile + 1) * self.k_tiles * self.tiles.step), units)
        for other in range(self.number + 1, last):
            block = self._block(other)
            if cute.arch.thread_idx().x == 128:
                flag = self.memory.flags.iterator + block
                while cute.arch.load(flag, sem="acquire") == 0:
                    pass
                cute.arch.atomic_exch(flag, 0)
            self._meet()
            cute.arch.fence_acq_rel_gpu()
            partials = self._partials(block)
            for first in cute.range_constexpr(0, self._vectors(), _VECTORS_AT_ONCE):
                count = min(_VECTORS_AT_ONCE, self._vectors() - first)
                found = cute.make_rmem_tensor(cute.make_layout((4, count), stride=(1, 4)), acc.element_type)
                there = cute.make_layout((4, count), stride=(1, 512))
                cute.copy(copy, cute.make_tensor(partials.iterator + first * 512, there), found)
                for i in range(4 * count):  # held in registers, so the passes unroll this loop
                    acc[i + 4 * first] = acc[i + 4 * first] + found[i]
