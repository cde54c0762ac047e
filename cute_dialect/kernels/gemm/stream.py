"""The Hopper GEMM where the last wave is shared: blocks take equal parts of the K of the tiles that are left over.

With ``T`` tiles and ``G`` blocks (clusters, rather), the first ``T mod G`` tiles are laid end to end, ``T mod G`` times
the steps of K, and block ``g`` takes an equal stretch of that: the end of one tile, the beginning of the next one, or
some of the middle (Osama et al., "Stream-K", 2023).  Then each block computes its whole tiles as ever.

    tile 0                     tile 1
    |----------------------- K |----------------------- K |
    |  block 0   |  block 1     ,   |  block 2            |

Who has the beginning of a tile finishes it: it adds the sums of the others in the order of their numbers, so that the
bits do not depend on who came first.  It came to that after the end of the tile before, which the others do first, so
that it hardly waits.  Sums go through a workspace in global memory, a flag a block says that they are there.

``workspace`` (a tile of f32 for each block) and ``flags`` (an i32 for each) belong to one stream; the flags must be
zero before the first launch and are zero after each.
"""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.parts import Item, Shared, Tiles

__all__ = ["Stream"]

_AT_ONCE = 8
"""Vectors of another block's sums that a thread loads at once: they need registers beside its own."""


def _natural(x: Any) -> Any:
    """Return a product that is not negative: it fits its type."""
    return cute.assume(x, range=(0, None))


class Stream:
    """A block's work: its stretch of the shared tiles, then whole ones."""

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
        self.first = Item(tile if self.some else self.number, self.cut, steps)  # the cut is 0 if nothing is shared

    @staticmethod
    def grid(raster: Any, k_tiles: Any, parts: int) -> Any:
        """Return how many blocks the host launches: as many as run at once, each with a step of K."""
        assert k_tiles > 0, "K is 0"
        return cute.min(raster.count() * k_tiles, raster.sms // raster.cluster) * raster.cluster

    def _stretch(self, number: Any) -> Any:
        """Return where the stretch of a block begins."""
        return _natural(number * self._units()) // self.tiles.step

    def _units(self) -> Any:
        """Return the steps of K of the shared tiles."""
        return _natural(self.shared * self.k_tiles)

    def _item(self, j: Any) -> Item:
        """Return the end of one tile (0), the beginning of the next (1)."""
        first = j == 0
        return Item(
            self.first.tile + j, self.cut if first else 0, self.end_of_one if first else self.begin_of_next
        )  # fmt: skip

    def produce(self, loads: Any) -> None:
        """Bring what this block multiplies."""
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
        """Multiply it; store what this block finishes."""
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
        """Return 16 bytes a thread: (values of a vector, vectors) of this thread in the workspace of a block."""
        m, n, _ = self.c.tile
        rows = m // self.c.consumers
        shape, strides = (4, self._vectors(), 128, self.c.consumers), (1, 512, 4, rows * n)
        base = (self.memory.of_sums(self.c).iterator + block * (m * n)).align(16)
        thread = cute.arch.thread_idx().x
        where = (None, None, thread % 128, thread // 128 - 1)
        return cute.make_tensor(base, cute.make_layout(shape, stride=strides))[where]

    def _vectors(self) -> int:
        """Return how many 16 bytes of sums a thread has."""
        return self.c.atoms * self.c.tile[1] // 8

    def _meet(self) -> None:
        cute.arch.barrier(1, 128 * self.c.consumers)

    def _give(self, acc: Any) -> None:
        """Give sums to the workspace, then the flag."""
        copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), acc.element_type, num_bits_per_copy=128)
        block = self._block(self.number)
        vectors = cute.make_layout((4, self._vectors()), stride=(1, 4))
        cute.copy(copy, cute.make_tensor(acc.iterator, vectors), self._partials(block))
        self._meet()
        if cute.arch.thread_idx().x == 128:
            cute.arch.fence_acq_rel_gpu()  # after the barrier: it passes on what all have written
            cute.arch.atomic_exch(self.memory.flags.iterator + block, 1)

    def _collect(self, acc: Any, tile: Any) -> None:
        """Add the sums of the blocks that have the rest of a tile."""
        copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), acc.element_type, num_bits_per_copy=128)
        units = self._units()
        # Stretches that begin before the tile ends: i * units / step < (tile + 1) * k_tiles.
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
            for first in cute.range_constexpr(0, self._vectors(), _AT_ONCE):
                count = min(_AT_ONCE, self._vectors() - first)
                found = cute.make_rmem_tensor(cute.make_layout((4, count), stride=(1, 4)), acc.element_type)
                there = cute.make_layout((4, count), stride=(1, 512))
                cute.copy(copy, cute.make_tensor(partials.iterator + first * 512, there), found)
                for i in range(4 * count):  # registers: the passes unroll it
                    acc[i + 4 * first] = acc[i + 4 * first] + found[i]
