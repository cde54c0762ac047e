"""Consumer warpgroup of the backward of attention: 64 keys of a block's tile, for all queries that see them.

Rows of the scores are keys, so that the MMAs leave P^T and dS^T in registers just as those for dv and dk read them.
Only dq needs dS in shared memory, because it adds over the keys of all consumers. A step has five MMAs::

    S^T  = K Q^T               P^T  = exp2(factor S^T - log2(e) lse)
    dP^T = V dO^T              dS^T = P^T (dP^T - delta)
    dv  += P^T dO              runs while dS^T is computed
    dk  += dS^T Q              runs while the consumers wait for each other's dS
    dq   = dS K                goes to the writer through shared memory, while S^T of the next step runs
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from collections.abc import Sequence
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.backward_producer import DQ_EMPTY, DQ_FULL
from cute_dialect.kernels.attention.backward_rows import LOG2_E
from cute_dialect.kernels.attention.backward_scores import BackwardScores, Limits, Probabilities, hide
from cute_dialect.kernels.attention.backward_tiles import KeyPlace, KeyTiles, QueryTile, TileQueue
from cute_dialect.kernels.attention.dropout import Dropout, DropoutOperands, negate_dropped, without_negative
from cute_dialect.kernels.attention.result import packed_words, row_pieces, store_row
from cute_dialect.kernels.attention.tiles import nothing_of
from cute_dialect.lang.nvgpu import warpgroup
from cute_dialect.lang.pipeline import PipelineConsumer, Slot
from cute_dialect.lang.values.signature_types import Condition, Int

_DS = 1
"""The named barrier after which dS of all consumers is in shared memory."""


class Accumulators(NamedTuple):
    """Accumulators of a consumer in f32: S^T of a step, and dk and dv of the tile of keys."""

    scores: cute.Tensor
    dk: cute.Tensor
    dv: cute.Tensor


class BackwardConsumer:
    """A consumer warpgroup.

    Args:
        tiles: Scheduler.
        group: Index of the consumer.
        mmas: Tiled MMAs of the scores, of dk, of dv, and of dq.
        smem: K, V, Q and dO in shared memory; K, Q and dO transposed; dS, and dS transposed; P transposed, if
            consumers exchange it; the statistics; the buffers of dq.
        rings: Those of K, V, Q and dO.
        results: dk and dv in global memory, or None if the writers add them.
        scale: Factor of the scores.
        inputs: Inputs of the functions of scores, accumulators of their gradients, and operands of dropout.
        listed: With a block mask, the head and the tile of each slot of Q in shared memory, and those of each
            consumer's dq; else None. Values of keys for the functions of scores in shared memory, or None.
        queue: Queue of tiles, or None if their order is fixed.
    """

    def __init__(
        self, tiles: KeyTiles, group: Int, mmas: Sequence[cute.TiledMma], smem: Sequence[cute.Tensor],
        rings: Sequence[PipelineConsumer], results: tuple[cute.Tensor | None, cute.Tensor | None], scale: cute.Float32,
        inputs: tuple[Any, Any, DropoutOperands | None], listed: tuple[cute.Tensor | None, ...],
        queue: TileQueue | None,
    ):  # fmt: skip
        c, self.queue = tiles.c, queue
        captured, sums, drops = inputs
        self.c, self.tiles, self.group, self.results = c, tiles, group, results
        self.dropout = None if drops is None else Dropout(drops)
        self.factor, self.scale = scale * LOG2_E, scale
        self.mma_s, self.mma_dk, self.mma_dv, self.mma_dq = mma_s, mma_dk, mma_dv, mma_dq = mmas
        self.of_k, self.of_v, self.of_q, self.of_grad = rings
        sK, sV, sQ, sG, sKt, sQt, sGt, sX, sXt, sPt, self.s_stats, self.s_dq = smem
        rows = 0 if c.splits_head else group
        of_scores = group if c.halves else rows
        part_s, part_dk, part_dv, part_dq = (
            mma.get_slice(g * 128) for mma, g in zip(mmas, (of_scores, group, group, group))
        )
        self.k = mma_s.make_fragment_A(part_s.partition_A(_of_two_slots(sK)))
        self.v = mma_s.make_fragment_A(part_s.partition_A(_of_two_slots(sV)))
        self.q = mma_s.make_fragment_B(part_s.partition_B(sQ))
        self.grad = mma_s.make_fragment_B(part_s.partition_B(sG))
        self.qt = mma_dk.make_fragment_B(part_dk.partition_B(sQt))
        self.gradt = mma_dv.make_fragment_B(part_dv.partition_B(sGt))
        self.x = mma_dq.make_fragment_A(part_dq.partition_A(sX))
        self.kt = mma_dq.make_fragment_B(part_dq.partition_B(_of_two_slots(sKt)))
        self.thread = cute.arch.thread_idx().x % 128
        store = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(True, 4), sX.element_type)
        self.store_ds = cute.make_tiled_copy_C(store, mma_s).get_slice(of_scores * 128 + self.thread)
        self.stored_ds = self.store_ds.partition_D(sXt)
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx() % 4
        self.rows, self.column, self.columns = rows, lane % 4 * 2, c.tile_m
        if c.halves:
            self.columns = c.tile_m // c.consumers
            self.column = self.column + group * self.columns
            self.stored_p = self.store_ds.partition_D(sPt)
            self.p = mma_dv.make_fragment_A(part_dv.partition_A(sPt))
            self.xt = mma_dk.make_fragment_A(part_dk.partition_A(sXt))
        self.row = rows * 64 + warp * 16 + lane // 4
        self.buffer, (self.s_steps, self.s_places, s_keys) = cute.Int32(0), listed
        self.functions = None
        if c.functions is not None:
            held = self.s_stats, s_keys
            columns = self.column, self.columns
            self.functions = BackwardScores(c, captured, sums, self.scale, self.row, columns, group, held)

    def run(self) -> None:
        """Compute dk and dv of all tiles of this block."""
        at = self.tiles.first()
        while self.tiles.is_there(at):
            place = self.tiles.place(at)
            if self.tiles.has_steps(place):
                self._tile(place)
            elif place.row < place.keys and not self.c.split:
                self._store_zeros(place)
            at = self.tiles.following(at) if self.queue is None else self.queue.receive()

    def _tile(self, place: KeyPlace) -> None:
        # Accumulators are allocated where they are used, so that loops carry only those that stay in use.
        c = self.c
        dk, dv = (
            mma.make_fragment_C(mma.partition_shape_C((c.tile_n, head)))
            for mma, head in ((self.mma_dk, c.head), (self.mma_dv, c.value_head))
        )
        if self.functions is not None:
            self.functions.hold_keys(place, self.tiles.start(place)[0])
        k = self.of_k.wait_and_advance()
        q = self.of_q.wait_and_advance()
        (head, tile), steps = self.tiles.start(place), self.tiles.steps(place)
        if c.ahead:
            scores = self._accumulator()
            warpgroup.fence()
            self._multiply_keys(scores, q, tile)
            v = self.of_v.wait_and_advance()
            for i in range(steps - (c.ahead == 2)):
                more = True if c.ahead == 2 else i + 1 < steps
                q = self._step(place, q, head, tile, Accumulators(scores, dk, dv), i > 0, more, starts=True)
                head, tile = self._following(place, head, tile)
            if c.ahead == 2:
                self._step(place, q, head, tile, Accumulators(scores, dk, dv), steps > 1, False, starts=False)
            else:
                warpgroup.wait_group(0, scores)
        else:
            v, last = self.of_v.wait_and_advance(), q
            for i in range(steps):
                if i > 0:
                    q = self.of_q.wait_and_advance()
                scores = self._accumulator()
                warpgroup.fence()
                self._multiply_keys(scores, q, tile)
                if c.halves:  # the MMAs of dk of the previous step may still run
                    warpgroup.wait_group(0, scores)
                    if i > 0:
                        last.release()
                self._step(place, q, head, tile, Accumulators(scores, dk, dv), i > 0, False, starts=False)
                head, tile = self._following(place, head, tile)
                last = q
            if c.halves:
                warpgroup.wait_group(0, dk)
                last.release()
        k.release()
        v.release()
        if c.split:
            self._pass(dk)
            self._pass(dv, c.dv_piece)
        else:
            self._store(place, dk, dv)

    def _following(self, place: KeyPlace, head: Int, tile: Int) -> tuple[Int, Int]:
        """Return the head and the query tile of the next step. With a block mask, the producer passes them, and this
        tile is the number of the step.
        """
        return (head, tile + 1) if self.c.block_n else place.following(head, tile)

    def _accumulator(self) -> cute.Tensor:
        """Return an accumulator of this consumer's scores."""
        return self.mma_s.make_fragment_C(self.mma_s.partition_shape_C((self.c.tile_n, self.c.tile_m)))

    def _operand(self) -> cute.Tensor:
        """Return the A operand of the MMAs of dk and dv."""
        return self.mma_dk.make_fragment_A(self.mma_dk.partition_shape_A((self.c.tile_n, self.c.tile_m)))

    def _multiply_keys(self, scores: cute.Tensor, q: Slot, tile: Int) -> None:
        at = (None, None, None)
        cute.gemm(self.mma_s, scores, self.k[(*at, nothing_of(tile))], self.q[(*at, q.index)], accumulate=False)
        warpgroup.commit_group()

    def _step(
        self, place: KeyPlace, q: Slot, head: Int, tile: Int, sums: Accumulators, adds: Condition, more: Condition,
        *, starts: bool,
    ) -> Slot:  # fmt: skip
        """Process a tile of queries, whose scores are under way.

        Args:
            place: Tile of keys.
            q: Slot of the queries.
            head, tile: Their head and tile.
            sums: Accumulators.
            adds: True if dk and dv hold the sums of earlier steps.
            more: True if another step follows in this tile.
            starts: Start the scores of the next step.

        Returns:
            The slot of the next step.
        """
        here = QueryTile(tile, slot=q.index)
        if self.s_steps is not None:
            head, number = self.s_steps[0, q.index], self.s_steps[1, q.index]
            here = QueryTile.unpacked(number)._replace(slot=q.index)
        if self.c.halves:
            return self._step_of_halves(place, q, (head, tile, here), sums, adds, more, starts=starts)
        c, at = self.c, (None, None, None)
        scores, dk, dv = sums
        bits = self._dropout_bits(place, head, here)
        dp, weights, ds = self._accumulator(), self._operand(), self._operand()
        grad = self.of_grad.wait_and_advance()
        if c.ahead:
            warpgroup.wait_group(0, scores)
        warpgroup.fence()
        cute.gemm(self.mma_s, dp, self.v[(*at, nothing_of(tile))], self.grad[(*at, grad.index)], accumulate=False)
        warpgroup.commit_group()
        logs = self._statistic(q, 0)
        seen = self._visible(place, head, here)
        if not c.ahead:
            warpgroup.wait_group(1, scores)
        plain, powers = self._weigh(scores, logs, weights, place, head, here, (bits, seen))
        if not c.late:
            self._add(dv, weights, self.gradt, grad, adds)
            warpgroup.wait_group(1, dp)
        else:
            warpgroup.wait_group(0, dp)
        deltas = self._statistic(q, 1)
        grads = self._gradients(powers, dp, deltas)
        if (c.ahead or c.splits_head) and not c.late:
            warpgroup.wait_group(0, dv)
        # If consumers split the head, both have these gradients.
        if len(c.learned) > 0 and (not c.splits_head or self.group == 0):
            self.functions.add_captured(
                grads if powers is plain else self._gradients(plain, dp, deltas), place, head, here
            )
        _round(grads, ds)
        if c.ds_stages == 1:
            # The consumers have passed the last barrier, but may still read dS.
            cute.arch.barrier(_DS, 128 * c.consumers)
        if c.splits_head:
            if self.group == 0:
                self._store_ds(ds, scores.layout)
        else:
            self._store_ds(ds, scores.layout)
        cute.arch.fence_proxy("async.shared", space="cta")
        following = q
        if more:
            following = self.of_q.wait_and_advance()
        if c.late:
            self._add(dv, weights, self.gradt, grad, adds)
        if c.ahead:
            self._add(dk, ds, self.qt, q, adds)
        cute.arch.barrier(_DS, 128 * c.consumers)
        dq = self.mma_dq.make_fragment_C(self.mma_dq.partition_shape_C((c.tile_m, c.head)))
        warpgroup.fence()
        cute.gemm(self.mma_dq, dq, self.x[(*at, self.buffer)], self.kt[(*at, nothing_of(tile))], accumulate=False)
        warpgroup.commit_group()
        if not c.ahead:
            self._add(dk, ds, self.qt, q, adds)
            warpgroup.wait_group(1, dq, dv)
        elif starts:
            self._multiply_keys(scores, following, tile)
            warpgroup.wait_group(1, dq, dk, dv)
        else:
            warpgroup.wait_group(0, dq, dk, dv)
        listed = self._listed(q)
        grad.release()
        if c.ahead:
            q.release()
        self._pass(dq, listed=listed)
        if not c.ahead:
            warpgroup.wait_group(0, dk)
            q.release()
        if c.ds_stages == 2:
            self.buffer = self.buffer ^ 1
        return following

    def _step_of_halves(
        self, place: KeyPlace, q: Slot, step: tuple[Int, Int, QueryTile], sums: Accumulators, adds: Condition,
        more: Condition, *, starts: bool,
    ) -> Slot:  # fmt: skip
        """Process a tile of queries, of which each consumer has half.

        The arguments are those of :meth:`_step`; ``step`` is the head, the tile and the tile of queries.
        """
        at, (head, tile, here) = (None, None, None), step
        scores, dk, dv = sums
        dp, element = self._accumulator(), self.stored_ds.element_type
        weights, ds = (cute.make_rmem_tensor(cute.size(dp), element) for _ in range(2))
        bits = self._dropout_bits(place, head, here)
        grad = self.of_grad.wait_and_advance()
        if self.c.ahead:
            warpgroup.wait_group(0, scores)
        warpgroup.fence()
        cute.gemm(self.mma_s, dp, self.v[(*at, nothing_of(tile))], self.grad[(*at, grad.index)], accumulate=False)
        warpgroup.commit_group()
        seen = self._visible(place, head, here)
        plain, powers = self._weigh(scores, self._statistic(q, 0), weights, place, head, here, (bits, seen))
        self._store_half(weights, scores.layout, self.stored_p)
        warpgroup.wait_group(0, dp)
        deltas = self._statistic(q, 1)
        grads = self._gradients(powers, dp, deltas)
        if len(self.c.learned) > 0:
            self.functions.add_captured(
                grads if powers is plain else self._gradients(plain, dp, deltas), place, head, here
            )
        _round(grads, ds)
        self._store_half(ds, scores.layout, self.stored_ds)
        cute.arch.fence_proxy("async.shared", space="cta")
        following = q
        if more:
            following = self.of_q.wait_and_advance()
        # A consumer that passes the barrier has waited for its MMAs of the previous step, which read the other buffer.
        cute.arch.barrier(_DS, 128 * self.c.consumers)
        dq = self.mma_dq.make_fragment_C(self.mma_dq.partition_shape_C((self.c.tile_m, self.c.head)))
        buffer = (*at, self.buffer)
        warpgroup.fence()
        cute.gemm(self.mma_dv, dv, self.p[buffer], self.gradt[(*at, grad.index)], accumulate=adds)
        warpgroup.commit_group()
        cute.gemm(self.mma_dq, dq, self.x[buffer], self.kt[(*at, nothing_of(tile))], accumulate=False)
        warpgroup.commit_group()
        cute.gemm(self.mma_dk, dk, self.xt[buffer], self.qt[(*at, q.index)], accumulate=adds)
        warpgroup.commit_group()
        if starts:
            self._multiply_keys(scores, following, tile)
        later = 1 if starts else 0
        warpgroup.wait_group(2 + later, dv)
        grad.release()
        warpgroup.wait_group(1 + later, dq)
        self._pass(dq, listed=self._listed(q))
        if self.c.ahead:
            warpgroup.wait_group(later, dk)
            q.release()
        self.buffer = self.buffer ^ 1
        return following

    def _listed(self, q: Slot) -> tuple[Int, Int] | None:
        """Return the head and the number of the tile of a slot of a block mask, None without one. Both are read again
        for the writer, so that they need no registers during the step.
        """
        return None if self.s_steps is None else (self.s_steps[0, q.index], self.s_steps[1, q.index])

    def _store_half(self, values: cute.Tensor, layout: cute.Layout, target: cute.Tensor) -> None:
        """Store this consumer's half of P or dS transposed to shared memory. ``layout`` is that of its accumulator."""
        plain = cute.make_tensor(values.iterator, layout)
        cute.copy(self.store_ds, self.store_ds.retile(plain), target[None, None, None, self.buffer])

    def _add(self, sums: cute.Tensor, weights: cute.Tensor, ring: cute.Tensor, slot: Slot, adds: Condition) -> None:
        """Start the MMAs of dk or dv."""
        warpgroup.fence()
        mma = self.mma_dk if ring is self.qt else self.mma_dv
        cute.gemm(mma, sums, weights, ring[None, None, None, slot.index], accumulate=adds)
        warpgroup.commit_group()

    def _statistic(self, q: Slot, which: int) -> cute.Tensor:
        """Return the log-sum-exps (0) or deltas (1) of this thread's columns: two of every eight."""
        c = self.c
        found = cute.make_rmem_tensor((2, self.columns // 8), cute.Float32)
        here = cute.make_tensor(
            self.s_stats.iterator + (q.index * c.stats_values + which * c.tile_m + self.column),
            cute.make_layout((2, self.columns // 8), stride=(1, 8)),
        )
        cute.autovec_copy(here, found)
        if self.dropout is not None:
            # Probabilities are divided by the share that is kept, and deltas are multiplied by it.
            kept = self.dropout.kept
            log = cute.math.log2(kept, fastmath=True)
            for i in cute.range_constexpr(cute.size(found)):
                found[i] = found[i] * kept if which else found[i] + log
        return found

    def _weigh(
        self,
        scores: cute.Tensor,
        logs: cute.Tensor,
        weights: cute.Tensor,
        place: KeyPlace,
        head: Int,
        here: QueryTile,
        masks: tuple[list[cute.Uint32] | None, cute.Tensor | None],
    ) -> Probabilities:
        """Round the probabilities to the A operand of dv, and return them, also times the slopes of the scores.

        With dropout, dropped probabilities have the sign bit. ``masks`` are the bits of dropout and of visible keys.
        """
        c, (bits, seen) = self.c, masks
        if c.functions is None:
            powers = self._powers(scores, logs)
            plain = powers
        else:
            within = self._limits(place, here.tile) if c.functions.has("slope") else None
            plain, powers = self.functions.powers(scores, logs, place, head, here, seen, within)
        if c.functions is None or not c.functions.has("slope"):
            self._mask(plain, place, here.tile)
        if seen is None and here.past is not None:
            # A branch around selects, since ptxas would otherwise select zeros in all steps.
            nothing = cute.make_rmem_tensor(2, cute.Int32)
            nothing.fill(nothing_of(here.tile))
            hide(Probabilities(plain, powers), nothing, here.past, self.columns // 4)
        if bits is None:
            _round(plain, weights)
            return Probabilities(plain, powers)
        flat = cute.make_tensor(weights.iterator, cute.make_layout((8, cute.size(weights) // 8)))
        for i in cute.range_constexpr(cute.size(weights) // 8):
            for x in (plain,) if powers is plain else (plain, powers):
                negate_dropped(x, 8 * i, bits)
            eight = cute.make_tensor(plain.iterator + 8 * i, cute.make_layout(8))
            flat[None, i].store(without_negative(eight.load().to(flat.element_type)))
        return Probabilities(plain, powers)

    def _visible(self, place: KeyPlace, head: Int, here: QueryTile) -> cute.Tensor | None:
        """Return the bits of the mask function for a step, None without one."""
        return None if self.functions is None else self.functions.visible(place, head, here)

    def _dropout_bits(self, place: KeyPlace, head: Int, here: QueryTile) -> list[cute.Uint32] | None:
        """Return the random results of dropout for a step, None without dropout."""
        if self.dropout is None:
            return None
        matrix = place.batch * self.tiles.problem.heads * self.tiles.problem.sharing + head
        query = (here.tile * self.c.tile_m + self.column) // 16
        return self.dropout.of_keys((place.row + self.row) // 16, query, self.columns, matrix)

    def _powers(self, scores: cute.Tensor, logs: cute.Tensor) -> cute.Tensor:
        """Return the probabilities."""
        found = cute.make_rmem_tensor(cute.size(scores), cute.Float32)
        for i in cute.range_constexpr(cute.size(scores)):
            power = cute.math.fma(scores[i], self.factor, -logs[i % 2 + i // 4 * 2])
            found[i] = cute.math.exp2(power, fastmath=True)
        return found

    def _gradients(self, powers: cute.Tensor, dp: cute.Tensor, deltas: cute.Tensor) -> cute.Tensor:
        """Return the gradients of the scores, from those of the probabilities."""
        found = cute.make_rmem_tensor(cute.size(dp), cute.Float32)
        for i in cute.range_constexpr(cute.size(dp)):
            delta = deltas[i % 2 + i // 4 * 2]
            if self.dropout is None:
                found[i] = powers[i] * (dp[i] - delta)
            else:
                found[i] = cute.math.fma(cute.arch.fmax(powers[i], 0.0), dp[i], -(cute.math.absf(powers[i]) * delta))
        return found

    def _limits(self, place: KeyPlace, tile: Int) -> Limits:
        """Return the queries that see this thread's keys, none for keys past the end."""
        c, p = self.c, self.tiles.problem
        left, right = c.bounded
        own, lows, highs = tile * c.tile_m + self.tiles.shift(place), [], []
        for half in cute.range_constexpr(2):
            at = place.row + self.row + 8 * half
            # Columns of this thread are counted from its first one.
            low = at - own - self.column - p.right if right else cute.Int32(0)
            lows.append(cute.Int32(c.tile_m) if at >= place.keys else low)
            highs.append(at - own - self.column + p.left)
        return Limits(lows, highs if left else None)

    def _mask(self, powers: cute.Tensor, place: KeyPlace, tile: Int) -> None:
        """Set the probabilities of keys that a query does not see, and of keys past the end, to 0."""
        c, p = self.c, self.tiles.problem
        left, right = c.bounded
        key = place.row + self.rows * 64
        own = tile * c.tile_m + self.tiles.shift(place)
        cut = key + 64 > place.keys
        if right:
            cut = cut | (key + 63 > own + p.right)
        if left:
            cut = cut | (key < own + c.tile_m - 1 - p.left)
        if cut:
            limits = self._limits(place, tile)
            for half in cute.range_constexpr(2):
                low, high = limits.low[half], limits.high[half] if limits.high is not None else None
                for column in cute.range_constexpr(self.columns // 4):
                    i, x = column // 2 * 4 + half * 2 + column % 2, column // 2 * 8 + column % 2
                    value = powers[i]
                    value = value if x >= low else cute.Float32(0.0)
                    if high is not None:
                        value = value if x <= high else cute.Float32(0.0)
                    powers[i] = value

    def _store_ds(self, ds: cute.Tensor, layout: cute.Layout) -> None:
        """Store dS transposed to shared memory. ``layout`` is that of its accumulator."""
        plain = cute.make_tensor(ds.iterator, layout)
        at = (None, None, None, self.buffer)
        cute.copy(self.store_ds, self.store_ds.retile(plain), self.stored_ds[at])

    def _pass(self, sums: cute.Tensor, piece: int = 0, listed: tuple[Int, Int] | None = None) -> None:
        """Pass this thread's part of dq, dk or dv to the writer of this consumer, in pieces of ``piece`` values.

        Args:
            sums: The accumulator.
            piece: Values of a piece; 0: those of dq.
            listed: The head and the number of the tile of queries, for a step of a block mask; else None.
        """
        piece, size = piece or self.c.piece, cute.size(sums)
        count, values = piece // 4, cute.make_tensor(sums.iterator, cute.make_layout((4, size // 4)))
        for part in cute.range_constexpr(size // piece):
            cute.arch.barrier(DQ_EMPTY + self.group, 160)
            if listed is not None and part == 0 and self.thread == 0:
                for i in cute.range_constexpr(2):
                    self.s_places[i, self.group] = listed[i]
            for i in cute.range_constexpr(count):
                cute.autovec_copy(values[None, part * count + i], self.s_dq[None, self.thread, i, self.group])
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier_arrive(DQ_FULL + self.group, 160)

    def _store(self, place: KeyPlace, dk: cute.Tensor, dv: cute.Tensor) -> None:
        for i in cute.range_constexpr(cute.size(dk)):
            dk[i] = dk[i] * self.scale
        lane = cute.arch.lane_idx() % 4
        for target, sums, head in zip(self.results, (dk, dv), (self.c.head, self.c.value_head)):
            columns, first = self._columns(head)
            words = packed_words(sums, columns, target.element_type)
            for half in cute.range_constexpr(2):
                at = place.row + self.row + 8 * half
                pieces = row_pieces(words, half, columns, lane)
                if at < place.keys:
                    store_row(target[place.key_start + at, None, place.head, place.matrix], pieces, lane, first)

    def _columns(self, head: int) -> tuple[int, Int]:
        """Return the columns of a gradient that this consumer has, and the index of the first 32 of them."""
        if self.c.splits_head:
            columns = head // self.c.consumers
            return columns, self.group * (columns // 32)
        return head, 0

    def _store_zeros(self, place: KeyPlace) -> None:
        """Store the gradients of keys that no query sees."""
        zeros = cute.make_rmem_tensor(4, cute.Int32)
        zeros.fill(0)
        lane = cute.arch.lane_idx() % 4
        for target, head in zip(self.results, (self.c.head, self.c.value_head)):
            columns, first = self._columns(head)
            pieces = [[zeros[j] for j in range(4)]] * (columns // 32)
            for half in cute.range_constexpr(2):
                at = place.row + self.row + 8 * half
                if at < place.keys:
                    store_row(target[place.key_start + at, None, place.head, place.matrix], pieces, lane, first)


def _round(values: cute.Tensor, target: cute.Tensor) -> None:
    """Round accumulators to the A operand of an MMA."""
    flat = cute.make_tensor(target.iterator, cute.make_layout(cute.size(target)))
    plain = cute.make_tensor(values.iterator, cute.make_layout(cute.size(values)))
    flat.store(plain.load().to(flat.element_type))


def _of_two_slots(x: cute.Tensor) -> cute.Tensor:
    """Return a tile of shared memory with a second slot, which does not exist and is never used.

    The slot index is 0, but ptxas must not know it (:func:`.tiles.nothing_of`). Otherwise it would keep the descriptors
    of all MMAs with the tile in registers for the whole loop, and spill others.
    """
    layout = cute.append(cute.select(x.layout, [0, 1]), cute.make_layout(2, stride=cute.size(x.layout)))
    return cute.make_tensor(x.iterator, layout)
