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

>>> from cute_dialect.kernels.gemm_sm90 import GemmConfig, gemm_sm90
>>> "workspace" in gemm_sm90(GemmConfig(stream_k=True))
True
"""

from __future__ import annotations

from cute_dialect.kernels.gemm_sm90 import GemmEmitter
from cute_dialect.kernels.values import Value

__all__ = ["StreamEmitter"]


class StreamEmitter(GemmEmitter):
    """Emits one kernel and its host function (A, B, C, workspace, flags)."""

    def more_arguments(self) -> dict[str, str]:
        return {"workspace": '!cute.memref<f32, gmem, align<16>, "?:1">', "flags": '!cute.memref<i32, gmem, "?:1">'}

    def begin(self, parameters: tuple[Value, ...]) -> None:
        super().begin(parameters)
        b = self.b
        self.workspace, self.flags = parameters[6:8]
        self.number = number = self.first_tile
        b.say("The tiles of the last wave are shared: this block's stretch of their steps of K.")
        left = self.tiles % self.step
        self.shared = shared = b.let("shared", b.select(left * self.k_tiles < self.step, 0, left))
        self.some = shared.ne(0)
        begin, end = self._stretch(number), self._stretch(number + 1)
        tile = begin // self.k_tiles
        self.cut = begin - tile * self.k_tiles
        self.end_of_one = b.minimum(self.k_tiles - self.cut, end - begin)
        self.begin_of_next = end - begin - self.end_of_one
        self.first_item = b.select(self.some, tile, number)
        self.first_tile = shared + number
        self.k_begin = self.cut  # 0 if nothing is shared
        self.k_count = b.select(self.some, self.end_of_one, self.k_tiles)

    def _stretch(self, number: Value) -> Value:
        """Return where the stretch of a block begins."""
        return number * (self.shared * self.k_tiles) // self.step

    def early_tile(self) -> Value:
        return self.first_item

    def _item(self, j: Value) -> tuple[Value, Value, Value]:
        """Return, of the end of one tile, and the beginning of the next: tile, first step of K, steps."""
        b = self.b
        first = j.eq(0)
        k_begin = b.select(first, self.cut, 0)
        return self.first_item + j, k_begin, b.select(first, self.end_of_one, self.begin_of_next)

    def produce(self) -> None:
        b = self.b
        done, slot, phase = self.begun()
        zero = b.constant(0)
        with b.for_(0, b.to_i32(self.some) * 2, 1, [slot, phase, done]) as items:
            slot, phase, done = items.args
            tile, k_begin, count = self._item(items.iv)
            place = self.place(tile)
            with b.for_(done, count, 1, [slot, phase]) as loop:
                slot, phase = loop.args
                self.announce(slot, phase)
                self.fetch_a(slot, loop.iv + k_begin, place)
                self.fetch_b(slot, loop.iv + k_begin, place)
                loop.next(*self.next_slot(slot, phase))
            items.next(*loop.results, zero)
        slot, phase, done = items.results
        self.produce_tiles(done, slot, phase)

    def consume(self) -> None:
        b, c = self.b, self.c
        ring = 2 * c.stages
        whole = self.k_tiles
        with b.for_(0, b.to_i32(self.some) * 2, 1, [b.constant(0)]) as items:
            (at,) = items.args
            tile, k_begin, self.k_count = self._item(items.iv)
            with b.if_(self.k_count.ne(0)):
                place = self.place(tile)
                self.multiply(at % c.stages, at // c.stages)
                with b.if_else(k_begin.ne(0)) as (part, owner):
                    with part:
                        self._give()
                    with owner:
                        with b.if_(self.k_count.ne(whole)):
                            self._collect(tile)
                        self.convert(place)
                        self.store_tile(place)
            items.next((at + self.k_count) % ring)
        (at,) = items.results
        self.k_count = whole
        self.start = (at % c.stages, at // c.stages)
        with b.if_(self.first_tile < self.tiles):
            super().consume()
        self.finish_stores()

    # ------------------------------------------------------------------------------------------------ exchange

    def _block(self, number: Value) -> Value:
        """Return the block of the same rank in another cluster."""
        return number if self.rank is None else number * self.c.cluster + self.rank

    def _partials(self, block: Value) -> Value:
        """Return 16 bytes a thread: (values of a vector, vectors) of this thread in the workspace of a block."""
        b, c = self.b, self.c
        values = c.tile[1] // 2
        base = b.pointer(self.workspace, block * (c.tile[0] * c.tile[1]))
        base = b.op("cute.assume", base, type="!cute.ptr<f32, gmem, align<16>>")
        layout = f"(4,{values // 4},128,{c.consumers}):(1,512,4,{128 * values})"
        return b.slice(b.view(base, layout), None, None, self.tid % 128, self.consumer)

    def _give(self) -> None:
        """Give sums to the workspace, then the flag."""
        b, c = self.b, self.c
        copy = b.atom("!cute_nvgpu.atom.universal_copy<f32, 128 b>")
        block = self._block(self.number)
        b.copy(copy, b.view(b.iterator(self.accumulators), f"(4,{c.tile[1] // 8}):(1,4)"), self._partials(block))
        b.run("named_barrier", 1, 128 * c.consumers)
        with b.if_(self.tid.eq(128)):
            b.run("fence_acq_rel", scope='"gpu"')  # after the barrier: it passes on what all have written
            b.arch("atomic_exch", b.pointer(self.flags, block), 1)

    def _collect(self, tile: Value) -> None:
        """Add the sums of the blocks that have the rest of a tile."""
        b, c = self.b, self.c
        copy = b.atom("!cute_nvgpu.atom.universal_copy<f32, 128 b>")
        units = self.shared * self.k_tiles
        # Stretches that begin before the tile ends: i * units / step < (tile + 1) * k_tiles.
        last = ((tile + 1) * self.k_tiles * self.step + units - 1) // units
        with b.for_(self.number + 1, last) as others:
            block = self._block(others.iv)
            flag = b.pointer(self.flags, block)
            with b.if_(self.tid.eq(128)):
                with b.while_() as again:
                    again(b.arch("load_acquire", flag).eq(0))
                b.arch("atomic_exch", flag, 0)
            b.run("named_barrier", 1, 128 * c.consumers)
            b.run("fence_acq_rel", scope='"gpu"')
            partials = self._partials(block)
            vectors = 8  # at once: what is loaded needs registers beside the sums
            for first in range(0, c.tile[1] // 8, vectors):
                found = b.registers(f'!cute.memref<f32, rmem, align<32>, "(4,{vectors}):(1,4)">')
                there = b.view(b.pointer(partials, first * 512), f"(4,{vectors}):(1,512)")
                b.copy(copy, there, found)
                with b.for_(0, 4 * vectors) as each:  # register tensors: the loop is unrolled
                    where = each.iv + 4 * first
                    b.store(self.accumulators, where, b.load(self.accumulators, where) + b.load(found, each.iv))

    # --------------------------------------------------------------------------------------------------- host

    def launch(self, arguments: list[Value]) -> None:
        b, c = self.b, self.c
        steps = arguments[3] * arguments[4] * arguments[5]
        grid = b.minimum(steps, c.sms // c.cluster) * c.cluster
        b.launch("gemm", arguments, grid=grid, threads=c.threads)
