"""Producer of latent attention: loads tiles of the cache, in the order in which consumers use them.

Two slots in shared memory hold a tile of 64 keys each. A tile has three parts with barriers of their own
(:data:`.latent_config.PARTS`), so that a part is loaded again as soon as its last consumer has read it. The steps of a
block's tile go from the last keys to the first, in slots 0, 1, 0, …; each tile starts with slot 0.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalSubscript=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from collections.abc import Sequence

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.latent_config import LATENT, PARTS, LatentConfig
from cute_dialect.kernels.attention.producer import TmaMatrix
from cute_dialect.kernels.attention.tiles import Place, Tiles, nothing_of
from cute_dialect.lang.nvgpu import cpasync
from cute_dialect.lang.pipeline import PipelineAsync, Slot
from cute_dialect.lang.values.signature_types import Int

BOX = 64
"""Columns of a TMA box: 128 bytes, the period of the swizzle."""


class CacheSlots:
    """One side's view of the two slots: the pipelines of their parts, and the phase of the next use of each slot."""

    def __init__(self, pipes: Sequence[Sequence[PipelineAsync]], phase: int):
        self.pipes, self.phases = pipes, [cute.Int32(phase), cute.Int32(phase)]

    def part(self, slot: int, part: int) -> Slot:
        """Return a part of the tile in a slot."""
        return Slot(self.pipes[slot][part], 0, self.phases[slot], 0)

    def wait(self, slot: int, part: int) -> Slot:
        """Wait until a part of a slot is full."""
        found = self.part(slot, part)
        found.pipe.consumer_wait(found)
        return found

    def advance(self, slot: int) -> None:
        """Move to the next use of a slot."""
        self.phases[slot] = self.phases[slot] ^ 1


class LatentProducer:
    """Producer by TMA: one thread. If it zeroes values past the end of a sequence, a warp, which elects the thread.

    Args:
        c: Configuration.
        tiles: Scheduler.
        tma: Cache in global memory.
        smem: Slots, (keys, columns, 2).
        slots: Pipelines of the slots.
        own: Barrier for loads that the producer waits for, to zero values past the end of a sequence.
    """

    def __init__(
        self,
        c: LatentConfig,
        tiles: Tiles,
        tma: TmaMatrix,
        smem: cute.Tensor,
        slots: CacheSlots,
        own: cute.Pointer | None = None,
    ):
        self.c, self.tiles, self.smem, self.slots, self.own = c, tiles, smem, slots, own
        self.atom, self.coords = tma
        self.boxes = cute.flat_divide(smem, (c.rows_loaded, BOX))
        self.phase = cute.Int32(0)

    def run(self) -> None:
        """Load all tiles of this block."""
        self.tiles.visit(self)

    def tile(self, place: Place) -> None:
        """Load the keys of a tile."""
        top, count = place.last - 1, place.last - place.first
        if not self.c.clears:
            self._steps(place, cute.Int32(0))
            return
        before, done = [*self.slots.phases], cute.Int32(0)
        if place.last * self.c.tile_n > place.keys:
            self._last(place, top)
            done = cute.Int32(1)
        if cute.arch.elect_one():
            self._steps(place, done)
        # The other lanes do not see the phases of the elected one.
        uses = (count + 1) // 2, count // 2
        self.slots.phases[:] = [phase ^ (n & 1) for phase, n in zip(before, uses)]

    def _steps(self, place: Place, done: Int) -> None:
        """Load the steps of a tile, whose keys all exist, but for the first ``done`` of them, 0 or 1."""
        top, count = place.last - 1, place.last - place.first
        if count > done:
            pages = self._pages(place, top - done)
            for i in range((count + 1) // 2):
                at = top - 2 * i
                if i >= done:
                    pages = self._step(place, at, pages, 0)
                if at > place.first:
                    pages = self._step(place, at - 1, pages, 1)

    def _pages(self, place: Place, at: Int) -> list[Int]:
        """Return the pages of a step, whose keys all exist; none without a page table."""
        c, table = self.c, self.tiles.problem.table
        if not c.page:
            return []
        keys = [at * c.tile_n + i * c.rows_loaded for i in range(c.page_loads)]
        return [table[key // c.page, place.batch] for key in keys]

    def _step(self, place: Place, at: Int, pages: list[Int], slot: int) -> list[Int]:
        """Load the keys of a step to a slot, and return the pages of the step before it.

        They are read before the loads are issued, so that the next step does not wait for them.
        """
        following = self._pages(place, cute.max(at - 1, place.first))
        for part in range(len(PARTS)):
            held = self.slots.part(slot, part)
            held.pipe.producer_acquire(held)
            self._fetch(place, at, pages, slot, part, held.barrier)
        self.slots.advance(slot)
        return following

    def _fetch(self, place: Place, at: Int, pages: list[Int], slot: int, part: int, barrier: cute.Pointer) -> None:
        """Issue the loads of a part of a step. TMA fills rows outside the tensor, as those of page -1, with zeros."""
        c, first = self.c, sum(PARTS[:part]) // BOX
        row = at * c.tile_n % c.page if c.page else at * c.tile_n
        for i, matrix in enumerate(pages or [place.batch]):
            rows = cute.domain_offset((row, 0), self.coords[None, None, 0, matrix])
            boxes = cute.flat_divide(rows, (c.rows_loaded, BOX))
            for box in range(first, first + PARTS[part] // BOX):
                target, source = cpasync.tma_partition(
                    self.atom,
                    0,
                    cute.make_layout(1),
                    cute.group_modes(self.boxes[None, None, i, box, None], 0, 2),
                    cute.group_modes(boxes[None, None, 0, box], 0, 2),
                )
                cute.copy(self.atom, source, target[None, slot + nothing_of(at)], tma_bar_ptr=barrier)

    def _last(self, place: Place, at: Int) -> None:
        """Load the last keys of a sequence to slot 0, and zero the values past its end.

        Their scores are masked, but a probability of 0 times an infinite or NaN value is NaN.
        """
        c, own, pages = self.c, self.own, []
        assert own is not None
        for i in range(c.page_loads if c.page else 0):
            key, page = at * c.tile_n + i * c.rows_loaded, cute.Int32(-1)
            if key < place.keys:
                page = self.tiles.problem.table[key // c.page, place.batch]
            pages.append(page)
        parts = [self.slots.part(0, part) for part in range(len(PARTS))]
        for part in parts:
            cute.arch.mbarrier_wait(part.pipe.empty(0), part.phase)
        if cute.arch.issues():
            cute.arch.mbarrier_arrive_and_expect_tx(own, sum(part.pipe.tx_count for part in parts))
        for part in range(len(PARTS)):
            self._fetch(place, at, pages, 0, part, own)
        cute.arch.mbarrier_wait(own, self.phase)
        self.phase = self.phase ^ 1
        self._clear(cute.max(place.keys - at * c.tile_n, 0))
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        if cute.arch.issues():
            for part in parts:
                cute.arch.mbarrier_arrive(part.barrier)
        self.slots.advance(0)

    def _clear(self, first: Int) -> None:
        """Zero the values of slot 0 from row ``first`` on, eight elements per thread."""
        lane, zeros = cute.arch.lane_idx(), cute.make_rmem_tensor(8, self.smem.element_type)
        zeros.fill(0.0)
        for row in range(first, self.c.tile_n):
            for i in cute.range_constexpr(LATENT // 256):
                cute.autovec_copy(zeros, cute.local_tile(self.smem[row, None, 0], (8,), (i * 32 + lane,)))


class LatentGatherProducer:
    """Producer for pages of any size: a warpgroup copies the rows by ``cp.async``.

    Each warp has 16 keys, whose pages its lanes read from the table at once. Rows past the end of the keys are zero.
    The arguments are those of :class:`LatentProducer`, with the cache itself as ``cache``, (S, D, 1, pages).
    """

    def __init__(self, c: LatentConfig, tiles: Tiles, cache: cute.Tensor, smem: cute.Tensor, slots: CacheSlots):
        self.c, self.tiles, self.cache, self.smem, self.slots = c, tiles, cache, smem, slots
        self.atom = cute.make_copy_atom(
            cpasync.CopyG2SOp(cpasync.LoadCacheMode.GLOBAL), cache.element_type, num_bits_per_copy=128
        )

    def run(self) -> None:
        """Load all tiles of this block."""
        self.tiles.visit(self)

    def tile(self, place: Place) -> None:
        """Load the keys of a tile."""
        for i in range((place.last - place.first) // 2):
            self._step(place, place.last - 1 - 2 * i, 0)
            self._step(place, place.last - 2 - 2 * i, 1)
        if (place.last - place.first) % 2 != 0:
            self._step(place, place.first, 0)

    def _step(self, place: Place, at: Int, slot: int) -> None:
        """Load the keys of a step to a slot."""
        c, warp, lane = self.c, cute.arch.warp_idx() % 4, cute.arch.lane_idx()
        each = c.tile_n // 4
        first = at * c.tile_n + warp * each
        # The page of a row past the end is not used, but it must be an entry of the table.
        key = cute.assume(cute.max(cute.min(first + lane % each, place.keys - 1), 0), range=(0, None))
        page, row = cute.Int32(0), key % c.page
        if place.keys > 0:
            page = self.tiles.problem.table[key // c.page, place.batch]
        for part, columns in enumerate(PARTS):
            held = self.slots.part(slot, part)
            held.pipe.producer_acquire(held)
            pieces, begin = columns // 8, sum(PARTS[:part]) // 8
            rows = max(1, 32 // pieces)  # rows that a warp copies at once
            for i in range(each // rows):  # All at once would need more registers than the producer has.
                mine = i * rows + lane // pieces if rows > 1 else i
                source = self.cache[cute.arch.shuffle_sync(row, mine), None, 0, cute.arch.shuffle_sync(page, mine)]
                flags = cute.make_rmem_tensor((1, 1), cute.Boolean)
                flags[0] = first + mine < place.keys
                target = self.smem[warp * each + mine, None, slot]
                piece = begin + lane % pieces
                source, target = (cute.append_ones(cute.local_tile(x, (8,), (piece,)), 2) for x in (source, target))
                cute.copy(self.atom, source, target, pred=flags)
            held.commit()
        self.slots.advance(slot)
