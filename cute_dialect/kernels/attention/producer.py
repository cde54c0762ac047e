"""Producer warp of attention: fills the rings of Q, K and V by TMA, in the order in which consumers use them.

The last step of a packed sequence may reach into the next sequence. Its scores are masked, but a probability of 0 times
an infinite or NaN value is NaN. The producer therefore zeroes these values.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalSubscript=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from collections.abc import Callable, Sequence
from typing import TypeAlias

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.tiles import Place, Tiles
from cute_dialect.lang.nvgpu import cpasync
from cute_dialect.lang.pipeline import PipelineProducer
from cute_dialect.lang.values.signature_types import Int, LayoutLike

TmaMatrix: TypeAlias = tuple[cute.CopyAtom, cute.Tensor]
"""A matrix in global memory: the TMA atom that loads it, and its coordinate tensor."""


def load_map(x: cute.Tensor, ring: LayoutLike, tile: tuple[int, int], promotion: int = 128) -> TmaMatrix:
    """Return the TMA atom that loads tiles of each head and sequence, and its coordinate tensor.

    Args:
        promotion: Bytes that the L2 loads at once.
    """
    stage = cute.append_ones(cute.slice_(ring.outer, (None, None, 0)), 4)
    layout = cute.make_composed_layout(ring.inner, 0, stage)
    found = cpasync.make_tiled_tma_atom(cpasync.G2S(), x, layout, (*tile, 1, 1), l2_promotion=promotion)
    return found.atom, found.tma_tensor


def start_block(has_own: bool) -> cute.Pointer | None:
    """Synchronize the block after its barriers are initialized, and wait for the previous kernel.

    Args:
        has_own: True for a barrier of loads that the producer itself waits for, which is returned.
    """
    own = None
    if has_own:
        own = cute.arch.alloc_smem(cute.Int64, 1, alignment=8)
        if cute.arch.thread_idx().x == 0:
            cute.arch.mbarrier_init(own, 1)
            cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    # The kernel may start while the previous one runs. All threads wait for that kernel before they touch memory.
    cute.arch.griddepcontrol_wait()
    cute.arch.griddepcontrol_launch_dependents()
    return own


class Loaded:
    """A matrix that TMA loads in tiles to a ring in shared memory. ``tile`` is (rows, elements), or its transpose for
    V.
    """

    def __init__(self, tma: TmaMatrix, smem: cute.Tensor, tile: tuple[int, int], along: int):
        self.atom, self.coords = tma
        self.smem, self.tile, self.along = smem, tile, along

    def fetch(
        self, slot: Int, barrier: cute.Pointer, row: Int, head: Int, batch: Int, first: int | None = None
    ) -> None:
        """Issue the load of the tile that starts at a row, to a slot and its barrier.

        With ``first``, the tile is a part of the slot, from that row on.
        """
        smem = self.smem
        if first is not None:
            part = (first, 0) if self.along == 0 else (0, first)
            smem = cute.flat_divide(smem, self.tile)[(None, None, *part, None)]
        at = (row, 0) if self.along == 0 else (0, row)
        here = cute.domain_offset(at, self.coords[None, None, head, batch])
        tile = cute.flat_divide(here, self.tile)[None, None, 0, 0]
        source, target = cpasync.tma_partition(
            self.atom, 0, cute.make_layout(1), cute.group_modes(smem, 0, 2), cute.group_modes(tile, 0, 2)
        )[::-1]
        cute.copy(self.atom, source, target[None, slot], tma_bar_ptr=barrier)


class Producer:
    """Producer of the rings: one thread, or a warp for packed sequences.

    ``tmas``, ``smem`` and ``rings`` are those of Q, K and V. ``own`` is the producer's own barrier for packed
    sequences.
    """

    def __init__(
        self,
        c: AttentionConfig,
        tiles: Tiles,
        tmas: Sequence[TmaMatrix],
        smem: Sequence[cute.Tensor],
        rings: Sequence[PipelineProducer | None],
        own: cute.Pointer | None = None,
    ):
        self.c, self.tiles, self.own, self.phase = c, tiles, own, cute.Int32(0)
        sQ, sK, sV = smem
        self.q = None if c.pack else Loaded(tmas[0], sQ, (c.tile_m, c.head), 0)
        rows = c.rows_loaded
        self.k = Loaded(tmas[1], sK, (rows, c.head), 0)
        self.v = Loaded(tmas[2], sV, (c.value_head, rows), 1)
        self.of_q, self.of_k, self.of_v = rings

    def run(self) -> None:
        """Load all tiles of this block."""
        self.tiles.visit(self)

    def tile(self, place: Place) -> None:
        """Load the queries, keys and values of a tile."""
        c = self.c
        head = place.head if c.pack else place.head // self.tiles.problem.sharing
        batch = place.batch if c.groups or not c.packed else 0
        at = place.last - 1
        pages = self._pages(place, at)
        # Load the keys first, because their slot is free before that of Q.
        self._bring(self.k, self.of_k, place, at, pages, head, batch)
        if not c.pack:
            slot = self.of_q.acquire_and_advance()
            self.q.fetch(slot.index, slot.barrier, place.query_start + place.row, place.head, 0 if c.packed else batch)
        following = pages
        if at > place.first:
            following = self._pages(place, at - 1)
            self._bring(self.k, self.of_k, place, at - 1, following, head, batch)
        if c.clears and (at + 1) * c.tile_n > place.keys:
            self._last_values(place, at, pages, head, batch)
        else:
            self._bring(self.v, self.of_v, place, at, pages, head, batch)
        pages = following
        for i in range(at - place.first):
            if at - 1 - i > place.first:
                following = self._pages(place, at - 2 - i)
                self._bring(self.k, self.of_k, place, at - 2 - i, following, head, batch)
            self._bring(self.v, self.of_v, place, at - 1 - i, pages, head, batch)
            pages = following

    def _pages(self, place: Place, at: Int) -> Int | None:
        """Return the page of this lane's part of a step, -1 past the end of the keys.

        With a block mask, return the first key of the step. Without pages and without blocks, return None.
        """
        c = self.c
        if c.block_n:
            return self.tiles.step(place, at).key
        if not c.page:
            return None
        lane = cute.arch.lane_idx()
        key = at * c.tile_n + lane % c.page_loads * c.rows_loaded
        found = cute.Int32(-1)
        if key < place.keys:
            found = self.tiles.problem.table[key // c.page, place.batch]
        return found

    def _bring(
        self,
        matrix: Loaded,
        ring: PipelineProducer | None,
        place: Place,
        at: Int,
        pages: Int | None,
        head: Int,
        batch: Int,
    ) -> None:
        """Load the keys or values of a step to the next slot of their ring."""
        slot = ring.acquire_and_advance()
        self._fetch(matrix, slot.index, slot.barrier, place, at, pages, head, batch)

    def _fetch(
        self,
        matrix: Loaded,
        slot: Int,
        barrier: cute.Pointer,
        place: Place,
        at: Int,
        pages: Int | None,
        head: Int,
        batch: Int,
    ) -> None:
        c = self.c
        if not c.page:
            key = pages if c.block_n else at * c.tile_n
            matrix.fetch(slot, barrier, place.key_start + key, head, batch)
            return
        row = at * c.tile_n % c.page
        for i in cute.range_constexpr(c.page_loads):
            page = cute.arch.shuffle_sync(pages, i) if c.page_loads > 1 else pages
            # TMA fills rows past the end of a page with zeros.
            begin = row if page >= 0 else cute.Int32(c.page)
            matrix.fetch(slot, barrier, begin, head, cute.max(page, 0), i if c.page_loads > 1 else None)

    def _last_values(self, place: Place, at: Int, pages: Int | None, head: Int, batch: Int) -> None:
        """Load the last values of a sequence, and zero those past its end."""
        state, pipe, own = self.of_v.state, self.of_v.pipe, self.own
        assert own is not None
        cute.arch.mbarrier_wait(pipe.empty(state.index), state.phase)
        if cute.arch.issues():
            cute.arch.mbarrier_arrive_and_expect_tx(own, pipe.tx_count)
        self._fetch(self.v, state.index, own, place, at, pages, head, batch)
        cute.arch.mbarrier_wait(own, self.phase)
        self.phase = self.phase ^ 1
        first = place.keys - at * self.c.tile_n
        self._clear(state.index, cute.max(first, 0) if self.c.split else first)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        if cute.arch.issues():
            cute.arch.mbarrier_arrive(pipe.full(state.index))
        self.of_v.advance()

    def _clear(self, slot: Int, first: Int) -> None:
        """Zero the values of a slot from key ``first`` on, eight elements per thread."""
        pieces, lane = self.c.value_head // 8, cute.arch.lane_idx()
        keys = 32 // pieces  # cleared at once; some lanes may be idle
        zeros = cute.make_rmem_tensor(8, self.v.smem.element_type)
        zeros.fill(0.0)
        begin = first + lane // pieces if lane < keys * pieces else cute.Int32(self.c.tile_n)
        for key in range(begin, self.c.tile_n, keys):
            line = cute.local_tile(self.v.smem[None, key, slot], (8,), (lane % pieces,))
            cute.autovec_copy(zeros, line)


class GatherProducer:
    """Producer of keys and values on pages of any size: a warpgroup copies their rows by ``cp.async``.

    A thread copies 16 bytes of each of several rows, whose pages it reads from the table. Rows past the end of the
    keys are zero.
    """

    def __init__(
        self,
        c: AttentionConfig,
        tiles: Tiles,
        matrices: Sequence[cute.Tensor],
        smem: Sequence[cute.Tensor],
        rings: Sequence[PipelineProducer | None],
    ):
        self.c, self.tiles, self.matrices, self.smem = c, tiles, matrices, smem
        self.of_k, self.of_v = rings
        self.atom = cute.make_copy_atom(
            cpasync.CopyG2SOp(cpasync.LoadCacheMode.GLOBAL), matrices[0].element_type, num_bits_per_copy=128
        )

    def run(self) -> None:
        """Load the keys and values of all tiles of this block."""
        self.tiles.visit(self)

    def tile(self, place: Place) -> None:
        """Load the keys and values of a tile."""
        head = place.head if self.c.pack else place.head // self.tiles.problem.sharing
        at = place.last - 1
        self._keys(place, at, head)
        if at > place.first:
            self._keys(place, at - 1, head)
        self._values(place, at, head)
        for i in range(at - place.first):
            if at - 1 - i > place.first:
                self._keys(place, at - 2 - i, head)
            self._values(place, at - 1 - i, head)

    def _keys(self, place: Place, at: Int, head: Int) -> None:
        slot = self.of_k.acquire_and_advance()
        smem = self.smem[0]
        self._rows(self.matrices[0], lambda row: smem[row, None, slot.index], place, at, head, self.c.head // 8)
        slot.commit()

    def _values(self, place: Place, at: Int, head: Int) -> None:
        slot = self.of_v.acquire_and_advance()
        smem = self.smem[1]
        self._rows(self.matrices[1], lambda row: smem[None, row, slot.index], place, at, head, self.c.value_head // 8)
        slot.commit()

    def _rows(
        self, matrix: cute.Tensor, target: Callable[[Int], cute.Tensor], place: Place, at: Int, head: Int, pieces: int
    ) -> None:
        """Copy the rows of a step. ``target`` returns the line of a row in shared memory."""
        c, table = self.c, self.tiles.problem.table
        thread = cute.arch.thread_idx().x % 128
        piece = thread % pieces
        for i in cute.range_constexpr(c.tile_n * pieces // 128):
            row = thread // pieces + i * (128 // pieces)
            key = at * c.tile_n + row
            # The address of a row past the end is not used, but its page must be an entry of the table.
            known = cute.assume(cute.max(cute.min(key, place.keys - 1), 0), range=(0, None))
            line = matrix[known % c.page, None, head, table[known // c.page, place.batch]]
            flags = cute.make_rmem_tensor((1, 1), cute.Boolean)
            flags[0] = (key < place.keys) & (piece * 8 < matrix.shape[1])
            source, result = (_eight(x, piece) for x in (line, target(row)))
            cute.copy(self.atom, source, result, pred=flags)


def _eight(line: cute.Tensor, piece: Int) -> cute.Tensor:
    """Return eight elements of a line as (8, 1)."""
    return cute.append_ones(cute.local_tile(line, (8,), (piece,)), 2)
