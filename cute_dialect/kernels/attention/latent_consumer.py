"""Consumer warpgroups of latent attention: both have the same 64 rows, and each half of the values' columns.

The consumers take turns with the scores: consumer 0 computes those of the steps in slot 0, consumer 1 those in slot 1.
Each passes its probabilities and the state of the softmax to the other through shared memory, so that both can
multiply them by their half of the values::

    consumer 0                                     consumer 1
    S = Q K^T of slot 0                            S = Q K^T of slot 1
    softmax; pass P and the state       ------>    O[256:] += P V of slot 0
    O[:256] += P V of slot 0                       softmax, which continues that of slot 0
    O[:256] += P V of slot 1            <------    pass P and the state
    S = Q K^T of the next tile in slot 0           O[256:] += P V of slot 1

The rotary part of Q is kept in registers, because shared memory has no room for it.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.latent_config import LATENT, PARTS, ROPE
from cute_dialect.kernels.attention.latent_producer import CacheSlots
from cute_dialect.kernels.attention.result import packed_words, row_pieces, store_row
from cute_dialect.kernels.attention.softmax import Softmax
from cute_dialect.kernels.attention.tiles import Place, Tiles, nothing_of
from cute_dialect.lang.nvgpu import warpgroup
from cute_dialect.lang.values.signature_types import Int, Number

_PASSED = 1
"""The first of the two named barriers by which a consumer passes its probabilities."""

_QUERIES = 3
"""The named barrier between tiles of queries."""


class LatentOperands(NamedTuple):
    """Buffers in shared memory, and tiled MMAs."""

    q: cute.Tensor  # latent part of Q, (rows, LATENT, 1)
    kv: cute.Tensor  # slots of the cache, (keys, columns, 2)
    weights: cute.Tensor  # probabilities of each consumer, (rows, keys, 2)
    most: cute.Tensor  # row maxima that each consumer passes, (rows, 2)
    total: cute.Tensor  # sums of exponentials that each thread passes, (2, threads, 2)
    scores: cute.TiledMma  # Q K^T, with Q in shared memory
    rope: cute.TiledMma  # the same with Q in registers
    own: cute.TiledMma  # P V, with P in registers
    other: cute.TiledMma  # P V, with P in shared memory


class LatentConsumer:
    """A consumer warpgroup.

    Args:
        tiles: Scheduler.
        group: Index of the consumer, 0 or 1.
        operands: Buffers and tiled MMAs.
        slots: Pipelines of the slots.
        queries: Q in global memory, (S, D, H, B).
        out, lse: Results.
        factor: Factor of the scores, times ``log2(e)``.
    """

    def __init__(
        self,
        tiles: Tiles,
        group: int,
        operands: LatentOperands,
        slots: CacheSlots,
        queries: cute.Tensor,
        out: cute.Tensor,
        lse: cute.Tensor | None,
        factor: cute.Float32,
    ):
        self.tiles, self.group, self.operands, self.slots = tiles, group, operands, slots
        self.queries, self.out, self.lse = queries, out, lse
        self.c, o = tiles.c, operands
        c = self.c
        self.thread = cute.arch.thread_idx().x % 128
        part_s, part_rope = (mma.get_slice(self.thread) for mma in (o.scores, o.rope))
        part_own, part_other = (mma.get_slice(group * 128 + self.thread) for mma in (o.own, o.other))
        latent, rope = (cute.local_tile(o.kv, (c.tile_n, n), (0, at, None)) for n, at in ((LATENT, 0), (ROPE, 8)))
        values = cute.make_tensor(latent.iterator, cute.select(latent.layout, [1, 0, 2]))
        halves = [cute.local_tile(o.q, (c.tile_m, columns), (0, part, 0)) for part, columns in enumerate(PARTS[:2])]
        self.q = [o.scores.make_fragment_A(part_s.partition_A(_of_two_slots(x))) for x in halves]
        halves = [cute.local_tile(o.kv, (c.tile_n, columns), (0, part, None)) for part, columns in enumerate(PARTS[:2])]
        self.k = [o.scores.make_fragment_B(part_s.partition_B(x)) for x in halves]
        self.k_rope = o.rope.make_fragment_B(part_rope.partition_B(rope))
        self.v = o.own.make_fragment_B(part_own.partition_B(values))
        self.v_other = o.other.make_fragment_B(part_other.partition_B(values))
        self.others = o.other.make_fragment_A(part_other.partition_A(o.weights))
        self.q_rope = o.rope.make_fragment_A(o.rope.partition_shape_A((c.tile_m, ROPE)))
        self.scores = o.scores.make_fragment_C(o.scores.partition_shape_C((c.tile_m, c.tile_n)))
        self.weights = o.own.make_fragment_A(o.own.partition_shape_A((c.tile_m, c.tile_n)))
        self.sums = o.own.make_fragment_C(o.own.partition_shape_C((c.tile_m, LATENT)))
        self.softmax = Softmax(c, self.scores, self.weights, self.sums, factor)
        store = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(False, 4), o.weights.element_type)
        self.store = cute.make_tiled_copy_C(store, o.scores).get_slice(self.thread)
        self.stored = self.store.partition_D(o.weights)
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx() % 4
        self.row, self.column = warp * 16 + lane // 4, lane % 4 * 2

    def run(self) -> None:
        """Compute all tiles of this block."""
        self.tiles.visit(self)

    def tile(self, place: Place) -> None:
        """Compute a tile."""
        softmax, count, top = self.softmax, place.last - place.first, place.last - 1
        self._load_queries(place)
        softmax.begin()
        if self.group == 0:
            for i in range((count + 1) // 2):
                self._own(place, top - 2 * i)
                # Release the slot before the wait for the other consumer, so that it is loaded again meanwhile.
                self._release(0)
                if 2 * i + 1 < count:
                    self._others(i)
                    self._release(1)
        else:
            for i in range(count // 2):
                self._own(place, top - 1 - 2 * i)
                self._release(1)
            if count % 2 != 0:
                self._others(top)
                self._release(0)
        self._store(place, softmax.finish())

    # ------------------------------------------------------------------------------------------------------- queries

    def _load_queries(self, place: Place) -> None:
        """Load the rows of a tile: the latent part to shared memory, the rotary part to registers."""
        c, smem = self.c, self.operands.q
        # Four threads have a row, in turns of 64 bytes.
        at = self.group * (c.tile_m // 2) + self.thread // 4
        pieces = [4 * i + self.thread % 4 for i in range(LATENT // 32)]
        held = cute.make_rmem_tensor((8, len(pieces)), smem.element_type)
        self._load(place, at, pieces, held)
        cute.arch.barrier(_QUERIES, 256)  # both consumers have read the previous rows
        for i, piece in enumerate(pieces):
            cute.autovec_copy(held[None, i], cute.local_tile(smem[at, None, 0], (8,), (piece,)))
        flat = cute.make_tensor(self.q_rope.iterator, cute.make_layout((2, 2, ROPE // 8)))
        for row in cute.range_constexpr(2):
            at = self.row + 8 * row
            self._load(
                place, at, [(LATENT + 8 * i + self.column) // 2 for i in range(ROPE // 8)], flat[None, row, None]
            )
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(_QUERIES, 256)

    def _load(self, place: Place, row: Int, pieces: list[Int], target: cute.Tensor) -> None:
        """Load pieces of a row of Q to ``target``, (elements, pieces); zeros past the last row."""
        query, head = self.tiles.split_row(place.row + row)
        target.fill(0.0)
        if query < place.queries:
            line = self.queries[query, None, head, place.batch]
            for i, piece in enumerate(pieces):
                cute.autovec_copy(cute.local_tile(line, (target.shape[0],), (piece,)), target[None, i])

    # --------------------------------------------------------------------------------------------------------- steps

    def _own(self, place: Place, at: Int) -> None:
        """Compute the scores of a step, and multiply its probabilities by this consumer's half of the values.

        Consumer 1 first multiplies those of the previous step.
        """
        group, softmax = self.group, self.softmax
        zero = nothing_of(cute.arch.shuffle_sync(at, 0))
        here = (None, None, None, group + zero)
        for part in range(len(PARTS)):  # The MMAs of a part run while the next one is loaded.
            self.slots.wait(group, part)
            self._make_visible()
            warpgroup.fence()
            if part < 2:
                q = self.q[part][None, None, None, zero]
                cute.gemm(self.operands.scores, self.scores, q, self.k[part][here], accumulate=part > 0)
            else:
                cute.gemm(self.operands.rope, self.scores, self.q_rope, self.k_rope[here], accumulate=True)
        self.slots.advance(group)
        warpgroup.commit_group()
        warpgroup.wait_group(0, self.scores)
        self.slots.part(group, 2).release()
        self._mask(place, at)
        if group == 1:
            self._others(at)
        by = softmax.take(first=False, masked=True)
        softmax.weigh()
        self._pass()
        if group == 1:
            self._release(0)
        softmax.rescale(by)
        warpgroup.fence()
        cute.gemm(self.operands.own, self.sums, self.weights, self.v[here], accumulate=True)
        warpgroup.commit_group()

    def _pass(self) -> None:
        """Pass the probabilities and the state of the softmax to the other consumer."""
        o, group, softmax = self.operands, self.group, self.softmax
        plain = cute.make_tensor(self.weights.iterator, self.scores.layout)
        cute.copy(self.store, self.store.retile(plain), self.stored[None, None, None, group])
        for row in cute.range_constexpr(2):
            if cute.arch.lane_idx() % 4 == 0:
                o.most[self.row + 8 * row, group] = softmax.most[row]
            o.total[row, self.thread, group] = softmax.total[row]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier_arrive(_PASSED + group, 256)

    def _others(self, at: Int) -> None:
        """Take the other consumer's probabilities, and multiply them by this consumer's half of the values."""
        o, other, softmax, slots = self.operands, 1 - self.group, self.softmax, self.slots
        cute.arch.barrier(_PASSED + other, 256)
        by = []
        for row in cute.range_constexpr(2):
            before, most = softmax.most[row], o.most[self.row + 8 * row, other]
            finite = most if most != float("-inf") else cute.Float32(0.0)
            by.append(cute.math.exp2((before - finite) * softmax.factor, fastmath=True))
            softmax.most[row], softmax.total[row] = most, o.total[row, self.thread, other]
        slots.wait(other, self.group)
        slots.advance(other)
        self._make_visible()
        softmax.rescale(by)
        warpgroup.fence()
        there = (None, None, None, other + nothing_of(at))
        cute.gemm(o.other, self.sums, self.others[there], self.v_other[there], accumulate=True)
        warpgroup.commit_group()

    def _release(self, slot: int) -> None:
        """Wait for the MMAs with this consumer's half of the values in a slot, and release it."""
        warpgroup.wait_group(0, self.sums)
        self.slots.part(slot, self.group).release()

    def _make_visible(self) -> None:
        """Make the copies of ``cp.async`` visible to wgmma."""
        if self.c.gathers:
            cute.arch.fence_proxy("async.shared", space="cta")

    def _mask(self, place: Place, at: Int) -> None:
        """Mask the scores of keys that a query does not see, and of keys past the end."""
        c, tiles, begin = self.c, self.tiles, at * self.c.tile_n
        shift, causal = tiles.shift(place), c.bounded[1]
        low = place.seen
        if causal:
            low = cute.min(low, tiles.query(place.row) + shift + 1)
        if begin + c.tile_n > low:
            end = place.seen - begin - self.column
            high = [end, end]
            if causal:
                own = [tiles.query(place.row + self.row + 8 * row) for row in range(2)]
                high = [cute.min(end, query + shift + 1 - begin - self.column) for query in own]
            self.softmax.mask(None, high)

    # -------------------------------------------------------------------------------------------------------- result

    def _store(self, place: Place, logs: list[Number]) -> None:
        """Store this consumer's columns of the result."""
        c, lane, columns = self.c, cute.arch.lane_idx() % 4, LATENT // 2
        words = None if c.split else packed_words(self.sums, columns, self.out.element_type)
        plain = cute.make_tensor(self.sums.iterator, cute.make_layout((2, 2, columns // 8)))
        for half in cute.range_constexpr(2):
            row = place.row + self.row + 8 * half
            query, head = self.tiles.split_row(row)
            # All lanes take part in the exchange, including those of rows past the end.
            pieces = [] if words is None else row_pieces(words, half, columns, lane)
            if row < self.tiles.end(place):
                line = self.out[query, None, head, place.matrix]
                if words is not None:
                    store_row(line, pieces, lane, self.group * (columns // 32))
                else:
                    for i in cute.range_constexpr(columns // 8):
                        first = self.group * (columns // 2) + 4 * i + lane
                        cute.autovec_copy(plain[None, half, i], cute.local_tile(line, (2,), (first,)))
                if c.lse and self.group == 0 and lane == 0:
                    self.lse[query, head, place.matrix] = logs[half]


def _of_two_slots(x: cute.Tensor) -> cute.Tensor:
    """Return a tile of shared memory with a second slot, which does not exist and is never used.

    The slot index is 0, but ptxas must not know it (:func:`.tiles.nothing_of`). Otherwise it would keep the descriptors
    of all MMAs in registers for the whole loop, and spill others.
    """
    layout = cute.append(cute.select(x.layout, [0, 1]), cute.make_layout(2, stride=cute.size(x.layout)))
    return cute.make_tensor(x.iterator, layout)
