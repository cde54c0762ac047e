"""Hopper GEMM for few tiles and much K: blocks share the K of a tile and add up through global memory.

Block ``t * S + s`` multiplies part ``s`` of K of tile ``t``.  It writes its sums to a workspace, tells the other blocks
of the tile (one counter a tile), waits for them, adds what all wrote for the columns that it finishes in the order of
the parts (so that results do not depend on who came first), and stores those.  Where there are more parts than pieces
of columns, as many blocks as pieces finish one each, and the others end when they have written.  All blocks run at
once: there are at most as many as SMs.

The workspace belongs to one stream; ``counters`` must be zero before the first launch and is zero again after each.
"""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.config import SplitConfig
from cute_dialect.kernels.gemm.elements import rounded
from cute_dialect.kernels.gemm.parts import Item, Shared, Tiles

__all__ = ["Parts"]

_AT_ONCE = 256
"""Columns of parts whose sums are loaded before the first of them is added: more would need too many registers."""


class Parts:
    """A block's work: a part of the K of one tile, and a part of its columns."""

    def __init__(self, config: SplitConfig, tiles: Tiles, k_tiles: Any, shared: Shared):
        self.c, self.parts, self.tiles, self.memory = config.base, config.parts, tiles, shared
        self.piece, self.pieces = config.piece, config.base.tile[1] // config.piece
        tile, self.part = tiles.first // self.parts, tiles.first % self.parts
        self.tile = tile * self.c.cluster + tiles.rank  # blocks that add up have the same number
        # Part s takes the stages from s*K/S to (s+1)*K/S: none is empty if there are S of them.
        begin = self.part * k_tiles // self.parts
        self.first = Item(tile, begin, (self.part + 1) * k_tiles // self.parts - begin)

    @staticmethod
    def grid(raster: Any, k_tiles: Any, parts: int) -> Any:
        """Return how many blocks the host launches; all of them must run at once."""
        blocks = raster.count() * (parts * raster.cluster)
        assert blocks <= raster.sms, f"more than {raster.sms} blocks would have to run at once"
        assert k_tiles >= parts, f"K has fewer than {parts} stages"
        return blocks

    def produce(self, loads: Any) -> None:
        """Bring what this block multiplies."""
        done, place = loads.begin(self.first), self.tiles.place(self.first.tile)
        for i in range(done, self.first.steps):
            loads.stage(self.first.k + i, place)

    def consume(self, role: Any) -> None:
        """Multiply it, exchange sums, store this block's columns."""
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
        """Add up and store this block's pieces: every n-th one, n the number of parts."""
        for first in cute.range_constexpr(0, self.pieces, self.parts):
            piece = self.part + first
            if first + self.parts <= self.pieces or piece < self.pieces:
                self._finish_piece(result, place, copy, vectors, piece, first // self.parts)

    def _finish_piece(self, result: Any, place: Any, copy: Any, vectors: Any, piece: Any, number: int) -> None:
        """Add up and store one of them, so many after the first."""
        width, buffers = self.piece, self.c.buffers
        kind = result.sums.element_type
        total = cute.make_rmem_tensor(vectors, kind)
        at_once = _AT_ONCE // width
        for first in cute.range_constexpr(0, self.parts, at_once):
            parts = range(first, min(first + at_once, self.parts))
            found = [cute.make_rmem_tensor(vectors, kind) if part else total for part in parts]
            for part, values in zip(parts, found):  # all loads before the first sum
                cute.copy(copy, self._partials(piece, part), values)
            for part, values in zip(parts, found):
                if part:
                    for i in range(width // 2):  # registers: the passes unroll it
                        total[i] = total[i] + values[i]
        column = piece * width
        values = result.fuse(total, width, place, 0, column)
        layout = result.stores[width].values
        out = cute.make_rmem_tensor(layout, result.kind)
        out.store(rounded(cute.make_tensor(values.iterator, layout), result.kind))
        result.put(out, number % buffers, width, place, 0, column, buffers - 1)

    def _partials(self, piece: Any, part: Any) -> Any:
        """Return 16 bytes a thread: (values of a vector, vectors) of this thread, of a piece of one part."""
        c, width, pieces = self.c, self.piece, self.pieces
        size = c.tile[0] * width  # f32 of a piece
        shape = (4, width // 8, 128, c.consumers, pieces, self.parts)
        strides = (1, 512, 4, 64 * width, size, size * pieces)
        base = (self.memory.of_sums(c).iterator + self.tile * (size * pieces * self.parts)).align(16)
        thread = cute.arch.thread_idx().x
        where = (None, None, thread % 128, thread // 128 - 1, piece, part)
        return cute.make_tensor(base, cute.make_layout(shape, stride=strides))[where]

    def _arrive(self) -> None:
        """Tell the other blocks of the tile that this one has written what it had to."""
        cute.arch.barrier(1, 128 * self.c.consumers)
        if cute.arch.thread_idx().x == 128:
            cute.arch.fence_acq_rel_gpu()  # after the barrier: it passes on what all have written
            cute.arch.atomic_add(self._counter(0), 1)

    def _wait(self, finishers: int) -> None:
        """Wait until all blocks of the tile have; the last one that finishes columns sets the counters back."""
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
