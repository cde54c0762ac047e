"""Split-K Hopper GEMM, for few tiles and a large K: blocks share a tile and reduce through global memory.

Block ``t * S + s`` multiplies slice ``s`` of K for tile ``t``. It then

- writes its partial accumulator to a workspace and increments the counter of the tile,
- waits until every block of the tile has done so,
- adds the partial accumulators of its columns in slice order, so that the result is deterministic, and
- runs the epilogue of these columns and stores them.

If there are more slices than pieces of columns, the surplus blocks exit after the first step. All blocks must be
resident at once, so the grid has at most one block per SM.

A workspace belongs to one stream. ``counters`` must be zero before the first launch; every launch resets them.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import rounded
from cute_dialect.kernels.gemm.config import SplitConfig
from cute_dialect.kernels.gemm.mainloop import Item, Shared, Tiles

__all__ = ["Parts"]

_AT_ONCE = 256
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
        at_once = _AT_ONCE // width
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
