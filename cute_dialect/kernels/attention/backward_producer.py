"""Producer warpgroup of the backward of attention: a warp that loads operands, and warps that add up dq.

The first warp fills the rings of Q and dO by TMA, in the order in which consumers use them, after the tiles of K and V.
Each of the following warps serves one consumer: it adds the consumer's part of dq, which is in shared memory, to global
memory.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalSubscript=false, reportOptionalMemberAccess=false

from collections.abc import Sequence

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.kernels.attention.backward_order import blocks_before, listed_before
from cute_dialect.kernels.attention.backward_rows import Workspaces
from cute_dialect.kernels.attention.backward_tiles import KeyPlace, KeyTiles, QueryLists, QueryTile, TileQueue
from cute_dialect.kernels.attention.producer import Loaded, TmaMatrix
from cute_dialect.lang.nvgpu import cpasync
from cute_dialect.lang.pipeline import PipelineProducer
from cute_dialect.lang.values.signature_types import Int

DQ_FULL, DQ_EMPTY = 2, 4
"""First of the named barriers of each consumer's buffer of dq."""


class BackwardProducer:
    """Producer of the operands: one thread, or a warp for packed sequences.

    The last tile of a packed sequence may reach into the next sequence. The producer zeroes those rows, because a
    probability of 0 times an infinite or NaN value would be NaN.

    Args:
        c, tiles: Configuration and scheduler.
        tmas, smem, rings: Those of K, V, Q and dO.
        stats: Row statistics in global memory.
        s_stats: Their ring in shared memory, with the stages of Q.
        own: Barrier of the producer for packed sequences, or None.
        s_steps: With a block mask, the head and the tile of each slot of Q, for the consumers; else None.
        queue: Queue of tiles, or None if their order is fixed.
    """

    def __init__(
        self, c: BackwardConfig, tiles: KeyTiles, tmas: Sequence[TmaMatrix], smem: Sequence[cute.Tensor],
        rings: Sequence[PipelineProducer], stats: cute.Tensor, s_stats: cute.Tensor, own: cute.Pointer | None,
        s_steps: cute.Tensor | None, queue: TileQueue | None,
    ):  # fmt: skip
        self.c, self.tiles, self.stats, self.s_stats = c, tiles, stats, s_stats
        self.own, self.phase, self.s_steps, self.queue = own, cute.Int32(0), s_steps, queue
        sizes = (c.tile_n, c.head), (c.tile_n, c.value_head), (c.tile_m, c.head), (c.tile_m, c.value_head)
        self.k, self.v, self.q, self.grad = (
            Loaded(tma, tensor, tile, 0) for tma, tensor, tile in zip(tmas, smem, sizes)
        )
        self.of_k, self.of_v, self.of_q, self.of_grad = rings
        self.bulk = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32)

    def run(self) -> None:
        """Load the operands of all tiles of this block."""
        at = self.tiles.first()
        while self.tiles.is_there(at):
            place = self.tiles.place(at)
            if self.tiles.has_steps(place):
                self._tile(place)
            at = self.tiles.following(at) if self.queue is None else self.queue.take()

    def _tile(self, place: KeyPlace) -> None:
        if place.lists is not None:
            self._listed_tile(place, place.lists)
            return
        head, tile = self.tiles.start(place)
        self._keys(self.k, self.of_k, place)
        self._queries(place, head, QueryTile(tile))
        self._keys(self.v, self.of_v, place)
        self._grads(place, head, tile)
        for _ in range(self.tiles.steps(place) - 1):
            head, tile = place.following(head, tile)
            self._queries(place, head, QueryTile(tile))
            self._grads(place, head, tile)

    def _listed_tile(self, place: KeyPlace, lists: QueryLists) -> None:
        """Load the operands of a tile of keys, whose steps are those of a block mask."""
        self._keys(self.k, self.of_k, place)
        self._keys(self.v, self.of_v, place)
        for head in range(self.tiles.start(place)[0], lists.end):
            (partial, count), rows = lists.counts(head), lists.rows(head)
            for at in range(lists.steps(count)):
                here = lists.tile(rows, partial, count, at)
                self._queries(place, head, here)
                self._grads(place, head, here.tile)

    def _keys(self, matrix: Loaded, ring: PipelineProducer, place: KeyPlace) -> None:
        at = (place.key_start + place.row, place.head, place.matrix)
        self._bring(matrix, ring, at, place.keys - place.row)

    def _queries(self, place: KeyPlace, head: Int, here: QueryTile) -> None:
        tile = here.tile
        if self.c.block_n:
            state, pipe = self.of_q.state, self.of_q.pipe
            cute.arch.mbarrier_wait(pipe.empty(state.index), state.phase)
            self.s_steps[0, state.index] = head
            self.s_steps[1, state.index] = here.packed()
        row = tile * self.c.tile_m
        source = self.stats[head, place.tile + tile, None]
        self._bring(self.q, self.of_q, (place.query_start + row, head, place.matrix), place.queries - row, source)

    def _grads(self, place: KeyPlace, head: Int, tile: Int) -> None:
        row = tile * self.c.tile_m
        self._bring(self.grad, self.of_grad, (place.query_start + row, head, place.matrix), place.queries - row)

    def _bring(
        self,
        matrix: Loaded,
        ring: PipelineProducer,
        at: tuple[Int, Int, Int],
        count: Int,
        stats: cute.Tensor | None = None,
    ) -> None:
        """Load a tile to the next slot of a ring.

        Args:
            matrix: The matrix.
            ring: Its ring.
            at: First row, head and sequence.
            count: Rows from there to the end of the sequence.
            stats: Row statistics that belong to the slot, or None.
        """
        if self.c.packed:
            if count < matrix.tile[0]:
                self._bring_last(matrix, ring, at, count, stats)
            else:
                self._bring_whole(matrix, ring, at, stats)
        else:
            self._bring_whole(matrix, ring, at, stats)

    def _bring_whole(
        self, matrix: Loaded, ring: PipelineProducer, at: tuple[Int, Int, Int], stats: cute.Tensor | None
    ) -> None:
        slot = ring.acquire_and_advance()
        self._fetch(matrix, slot.index, slot.barrier, at, stats)

    def _fetch(
        self, matrix: Loaded, slot: Int, barrier: cute.Pointer, at: tuple[Int, Int, Int], stats: cute.Tensor | None
    ) -> None:
        matrix.fetch(slot, barrier, *at)
        if stats is not None:
            cute.copy(self.bulk, stats, self.s_stats[None, slot], tma_bar_ptr=barrier)

    def _bring_last(
        self, matrix: Loaded, ring: PipelineProducer, at: tuple[Int, Int, Int], count: Int, stats: cute.Tensor | None
    ) -> None:
        """Load the last rows of a sequence, and zero those of the next one."""
        state, pipe, own = ring.state, ring.pipe, self.own
        assert own is not None
        cute.arch.mbarrier_wait(pipe.empty(state.index), state.phase)
        if cute.arch.issues():
            cute.arch.mbarrier_arrive_and_expect_tx(own, pipe.tx_count)
        self._fetch(matrix, state.index, own, at, stats)
        cute.arch.mbarrier_wait(own, self.phase)
        self.phase = self.phase ^ 1
        pieces, lane = matrix.tile[1] // 8, cute.arch.lane_idx()
        rows = 32 // pieces  # cleared at once; some lanes may be idle
        zeros = cute.make_rmem_tensor(8, matrix.smem.element_type)
        zeros.fill(0.0)
        begin = count + lane // pieces if lane < rows * pieces else cute.Int32(matrix.tile[0])
        for row in range(begin, matrix.tile[0], rows):
            line = cute.local_tile(matrix.smem[row, None, state.index], (8,), (lane % pieces,))
            cute.autovec_copy(zeros, line)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        if cute.arch.issues():
            cute.arch.mbarrier_arrive(pipe.full(state.index))
        ring.advance()


class DqWriter:
    """A warp that adds one consumer's parts of dq to global memory; with slices, those of dk and dv, too.

    Args:
        c, tiles: Configuration and scheduler.
        group: Index of the consumer.
        s_dq: The buffers of all consumers in shared memory.
        spaces: Workspaces in global memory: the accumulators and, if the order is fixed, the counters of blocks.
        s_places: With a block mask, the head and the tile of each consumer's dq in shared memory; else None.
        queue: Queue of tiles, or None if their order is fixed.
    """

    def __init__(
        self,
        c: BackwardConfig,
        tiles: KeyTiles,
        group: Int,
        s_dq: cute.Tensor,
        spaces: Workspaces,
        s_places: cute.Tensor | None,
        queue: TileQueue | None,
    ):
        self.queue = queue
        self.c, self.tiles, self.group, self.s_dq, self.dq_sum = c, tiles, group, s_dq, spaces.dq_sum
        self.turns, self.kv_sum, self.s_places = spaces.turns, spaces.kv_sum, s_places
        self.add = cute.make_copy_atom(cpasync.CopyReduceBulkS2GOp("add"), cute.Float32)
        self.leads = cute.arch.lane_idx() == 0

    def run(self) -> None:
        """Add the tiles of dq of all steps of this block to ``dq_sum``, and those of dk and dv to ``kv_sum``."""
        at = self.tiles.first()
        while self.tiles.is_there(at):
            place = self.tiles.place(at)
            head, tile = self.tiles.start(place)
            for _ in range(self.tiles.steps(place)):
                self._step(at, place, head, tile)
                if not self.c.block_n:
                    head, tile = place.following(head, tile)
            if self.c.split and self.tiles.has_steps(place):
                heads, c = self.tiles.problem.heads, self.c
                for first, values, piece in ((0, c.dk_values, c.piece), (heads, c.dv_values, c.dv_piece)):
                    line, pieces = self.kv_sum[first + place.head, place.sums, None], values // piece
                    for part in cute.range_constexpr(pieces):
                        self._wait_for_piece(True)
                        if self.leads:
                            self._add(line, self.group * pieces + part, piece)
            at = self.tiles.following(at) if self.queue is None else self.queue.receive()
        if self.leads:
            # The writes must complete before the block exits, not only the reads.
            cute.arch.cp_async_bulk_wait_group(0)

    def _step(self, at: Int, place: KeyPlace, head: Int, tile: Int) -> None:
        here, parts, before = QueryTile(tile), self.c.dq_parts, cute.Int32(0)
        for part in cute.range_constexpr(parts):
            # With a fixed order, the writes of the previous step are complete.
            self._wait_for_piece(part > 0 or not self.c.deterministic)
            if self.s_places is not None and part == 0:  # the consumer knows the step of a block mask
                head, here = self.s_places[0, self.group], QueryTile.unpacked(self.s_places[1, self.group])
                if self.c.deterministic:
                    before = listed_before(self.tiles, at, place, head, here.tile)
            line = self.dq_sum[head, place.tile + here.tile, None]
            if self.leads:
                if self.c.deterministic and part == 0:
                    if not self.c.block_n:
                        before = blocks_before(self.tiles, at, place, tile)
                    self._wait_for_turn(self._turn(place, head, here.tile), before, here)
                self._add(line, self.group * parts + part)
        if self.c.deterministic and self.leads:
            # The next block may add only when the writes are complete, and visible to it.
            cute.arch.cp_async_bulk_wait_group(0)
            cute.arch.fence_proxy("async.global")
            cute.arch.fence_acq_rel_gpu()
            cute.arch.red(self._turn(place, head, here.tile), self._counts(here))

    def _wait_for_piece(self, is_read: bool) -> None:
        """Wait until the consumer's next piece is in shared memory.

        Args:
            is_read: The previous piece may still be read.
        """
        if self.leads and is_read:
            cute.arch.cp_async_bulk_wait_group(0, read=True)
        cute.arch.sync_warp()
        cute.arch.barrier_arrive(DQ_EMPTY + self.group, 160)
        cute.arch.barrier(DQ_FULL + self.group, 160)

    def _add(self, line: cute.Tensor, index: Int, piece: int = 0) -> None:
        """Start the addition of the piece in shared memory to a piece of a tile in global memory.

        Args:
            line: The tile.
            index: Index of the piece in the tile.
            piece: Values of a thread; 0: those of a piece of dq.
        """
        size = 128 * (piece or self.c.piece)
        source = cute.make_tensor(self.s_dq.iterator + self.group * (128 * self.c.piece), cute.make_layout(size))
        cute.copy(self.add, source, cute.local_tile(line, (size,), (index,)))
        cute.arch.cp_async_bulk_commit_group()

    def _turn(self, place: KeyPlace, head: Int, tile: Int) -> cute.Pointer:
        """Return the counter of blocks that have added to a tile."""
        line = self.turns[head, place.tile + tile, None]
        return line.iterator + self.group

    def _counts(self, here: QueryTile) -> Int:
        """Return 1 for a step of the order; 0 for one without queries, which adds zeros at any time."""
        return 1 if here.past is None else cute.where(here.past, 0, 1)

    def _wait_for_turn(self, turn: cute.Pointer, before: Int, here: QueryTile) -> None:
        while (cute.arch.load(turn, sem="acquire") != before) & (self._counts(here) > 0):
            pass
        cute.arch.fence_proxy("async.global")
