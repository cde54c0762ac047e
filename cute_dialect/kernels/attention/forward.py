"""Attention on Hopper: ``softmax(scale Q K^T) V`` with TMA, mbarriers and wgmma, without storing the scores.

The kernel is persistent and warp-specialized, as FlashAttention-3 (Shah et al., 2024). Warpgroup 0 is the producer:
one of its warps fills rings of tiles of Q, K and V by TMA. The other warpgroups are consumers with 64 queries each.
They multiply Q by K and apply softmax in registers. The probabilities become the A operand of the MMAs with V.

Two kinds of overlap hide the softmax:

- The MMAs with V of one step run while the scores of the next step go through softmax.
- Consumers issue their MMAs alternately (pingpong), so that one's softmax overlaps with the other's MMAs.

Steps go from the last keys to the first. Only steps that the mask or the end of the keys cuts apply a mask.

    full, empty: of each ring, as in a GEMM; a slot is free when all consumers have arrived
    turn[w]:     named barriers with 256 threads; complete when the previous warpgroup has issued its MMAs

    launch(q, k, v, out, …)                   # (S, D, H, B) views of arrays: queries, elements, heads, sequences
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import MOST_OF_PRODUCER, AttentionConfig
from cute_dialect.kernels.attention.dropout import Dropout, dropout_operands, dropout_types
from cute_dialect.kernels.attention.producer import GatherProducer, Producer, load_map, start_block
from cute_dialect.kernels.attention.result import Rows
from cute_dialect.kernels.attention.score_graph import captured_types
from cute_dialect.kernels.attention.scores import LOG2_E, Line, ScoreOperands, Scores
from cute_dialect.kernels.attention.softmax import Softmax
from cute_dialect.kernels.attention.tiles import BlockLists, Place, Problem, Step, Tiles, nothing_of
from cute_dialect.kernels.attention.transposition import WARPS, Transposer, WarpPipeline
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup
from cute_dialect.lang.pipeline import PipelineConsumer, Slot
from cute_dialect.lang.values.signature_types import Int, LayoutLike

DEFAULT = AttentionConfig()

REGISTERS = {1: (56, 256), 2: (24, 240), 3: (32, 160)}
"""Consumers -> registers per thread of the producer and of a consumer. Their total must not exceed the registers with
which the block is launched, or the last consumer waits for registers forever."""

_PACKED = {**REGISTERS, 2: (40, 232)}
"""Registers for packed sequences and block masks, whose producer does more work."""

_GATHERED = {**_PACKED, 1: (152, 256)}
"""Registers for keys that a warpgroup gathers, many rows per thread."""

LEAST = 1e-30
"""Least factor of scores. Scores of factors below it are equal in f32."""

_OWN = 8
"""The first of the named barriers of one consumer."""

_TURN = 1
"""The first of the named barriers that pass the tensor cores between consumers."""


@cute.jit
def launch(
    Q: cute.Tensor, K: cute.Tensor, V: cute.Tensor, out: cute.Tensor, lse: cute.Tensor | None,
    of_queries: cute.Tensor | None, of_keys: cute.Tensor | None, queries: cute.Int32, scale: cute.Float32,
    left: cute.Int32, right: cute.Int32, parts: cute.Int32 | None = None, cap: cute.Float32 | None = None,
    slopes: cute.Tensor | None = None, bias: cute.Tensor | None = None, sinks: cute.Tensor | None = None,
    used: cute.Tensor | None = None, grown: cute.Int32 | None = None, used_q: cute.Tensor | None = None,
    pad: cute.Tensor | None = None, chunk: cute.Int32 | None = None, each: cute.Int32 | None = None,
    table: cute.Tensor | None = None, captured: tuple[Any, ...] | None = None,
    blocks: tuple[cute.Tensor, ...] | None = None, q_descale: cute.Tensor | None = None,
    k_descale: cute.Tensor | None = None, v_descale: cute.Tensor | None = None, state: cute.Tensor | None = None,
    threshold: cute.Int32 | None = None, kept: cute.Float32 | None = None,
    config: cute.Constexpr[AttentionConfig] = DEFAULT,
):  # fmt: skip
    """Launch the kernel of a configuration.

    Args:
        Q, K, V, out: (S, D, H, B) tensors.
        lse: Log-sum-exp of each row, (S, H, B), or None.
        of_queries, of_keys: Boundaries of packed sequences, or None. Those of groups count sequences, not queries.
        queries: Queries of a sequence; the largest number for packed sequences.
        scale: Factor of the scores, times ``log2(e)``; with a soft cap also times ``2 / cap``. With a function of
            scores just the factor.
        left, right: See :class:`.tiles.Problem`.
        parts: Number of slices of the keys (split-KV). The f32 ``out`` and ``lse`` then have ``parts`` times as many
            sequences, those of the first slice first.
        cap, slopes, bias, sinks: See :class:`.scores.ScoreOperands`.
        used: Number of keys of each sequence, or None.
        grown: Keys of each sequence in addition to those of ``used``, or None.
        used_q: Number of queries of each sequence, or None.
        pad: Rows of K and V before the first key of each sequence, or None.
        chunk: Keys of a chunk, or None. A query sees the keys of its own chunk only.
        each: Queries of each sequence of a group, or None.
        table: Pages of each sequence, (pages, B), or None. K and V then have one matrix per page.
        captured: Inputs of the functions of scores and of visible keys, or None.
        blocks: The arrays of :class:`.tiles.BlockLists`, or None.
        q_descale, k_descale, v_descale: Factors of 8-bit operands, (key heads, B) in f32, or None.
        state, threshold, kept: See :class:`.dropout.DropoutOperands`; None without dropout.
        config: The configuration.
    """
    c = config
    c.check()
    dtype = number(c.element)
    for name, x in (("Q", Q), ("K", K), ("V", V), ("out", out)):
        wanted = dtype if name != "out" else cute.Float32 if c.split else number(c.result)
        if x.element_type is not wanted or cute.rank(x) != 4:
            raise ValueError(f"launch: {name} must be a tensor of {wanted} with four modes, got {x}")
    assert K.shape[0] == V.shape[0], "K and V must have the same number of keys"
    modes = warpgroup.OperandMajorMode
    rows_of_v = V
    V = cute.select(V, [1, 0, 2, 3])
    mma_s = hopper.make_trivial_tiled_mma(
        dtype, dtype, modes.K, modes.K, cute.Float32, (c.consumers, 1, 1), (64, c.tile_n)
    )
    weight = number("f8E4M3FN") if c.transposes else dtype
    mma_o = hopper.make_trivial_tiled_mma(
        weight, dtype, modes.K, modes.K if c.transposes else modes.MN, cute.Float32, (c.consumers, 1, 1),
        (64, c.value_head), warpgroup.OperandSource.RMEM,
    )  # fmt: skip
    rows, columns = utils.LayoutEnum.ROW_MAJOR, utils.LayoutEnum.COL_MAJOR
    rings = (
        hopper.make_smem_layout_a(rows, (c.tile_m, None, c.head), dtype, c.q_stages),
        hopper.make_smem_layout_b(rows, (None, c.tile_n, c.head), dtype, c.stages),
        hopper.make_smem_layout_b(columns, (None, c.value_head, c.tile_n), dtype, c.stages),
    )
    transposed = hopper.make_smem_layout_b(rows, (None, c.value_head, c.tile_n), dtype, c.stages)
    loaded = c.rows_loaded
    tiles = (c.tile_m, c.head), (loaded, c.head), (c.value_head, loaded)
    boxes = rings if c.page_loads == 1 else (
        rings[0],
        hopper.make_smem_layout_b(rows, (None, loaded, c.head), dtype, 1),
        hopper.make_smem_layout_b(columns, (None, c.value_head, loaded), dtype, 1),
    )  # fmt: skip
    tmas = tuple([load_map(x, ring, tile) for x, ring, tile in zip((Q, K, V), boxes, tiles)])
    sharing, keys = Q.shape[2] // K.shape[2], K.shape[0] * (table.shape[0] if c.page else 1)
    heads = K.shape[2] if c.pack else Q.shape[2]
    rows = cute.ceil_div(queries * sharing if c.pack else queries, c.tile_m)
    batch = cute.size(of_queries) - 1 if c.packed else Q.shape[3]
    problem = Problem(
        queries, keys, heads, sharing, batch, (of_queries, of_keys), left, right, rows,
        Problem.units_of(c, rows, heads, batch, parts), parts, used, grown, used_q, pad, chunk, each,
        table, None if blocks is None else BlockLists(*blocks),
    )  # fmt: skip
    drops = dropout_operands(state, threshold, kept)
    operands = ScoreOperands(scale, cap, slopes, bias, sinks, captured, (q_descale, k_descale, v_descale), drops)
    if c.pack:  # consumers load Q themselves
        tmas = (Q, *tmas[1:])
    if c.gathers:
        tmas = (tmas[0], K, rows_of_v)
    rings = (*rings, transposed) if c.transposes else rings
    attention(tmas, rings, mma_s, mma_o, out, lse, problem, operands, config).launch(
        grid=Tiles(c, problem).grid(), block=c.threads, pdl=True
    )


@cute.kernel(min_blocks=1)
def attention(
    tmas: tuple[Any, ...], rings: tuple[LayoutLike, ...], mma_s: cute.TiledMma, mma_o: cute.TiledMma,
    out: cute.Tensor, lse: cute.Tensor | None, problem: Problem, operands: ScoreOperands,
    config: cute.Constexpr[AttentionConfig],
):  # fmt: skip
    c, tiles = config, Tiles(config, problem)
    warp_group, warp = cute.arch.warpgroup_idx(), cute.arch.warp_idx() % 4
    if cute.arch.thread_idx().x == 0:
        for atom, _ in tmas[1 if c.pack else 0 : 1 if c.gathers else None]:
            cpasync.prefetch_descriptor(atom)
    if c.transposes:
        plain = [cute.arch.alloc_smem(cute.Uint8, cute.cosize(ring.outer), 1024) for ring in rings]
        sQ, sK, sV, *others = (
            cute.make_tensor(cute.recast_ptr(start, ring.inner, number(c.element)), ring.outer)
            for start, ring in zip(plain, rings)
        )
    else:
        sQ, sK, sV = (cute.smem_tensor(number(c.element), ring.outer, 1024, ring.inner) for ring in rings)
    everyone = pipeline.CooperativeGroup(pipeline.Agent.WarpGroup, c.consumers)
    values: Any = None
    if c.transposes:
        values = WarpPipeline.create(
            num_stages=c.stages, producer_group=WARPS, consumer_group=c.consumers, defer_sync=True
        )
    pipes: list[pipeline.PipelineAsync | None] = [None] if c.pack else []  # the consumers load packed queries
    if c.gathers:
        pipes += [
            pipeline.PipelineCpAsync.create(
                num_stages=c.stages, producer_group=128, consumer_group=128 * c.consumers, defer_sync=True
            )
            for _ in range(2)
        ]
    else:
        pipes += [
            pipeline.PipelineTmaAsync.create(
                num_stages=stages, producer_group=1, consumer_group=readers, tx_count=size, defer_sync=True
            )
            for stages, size, readers in (
                (c.q_stages, c.query_bytes, everyone),
                (c.stages, c.key_bytes, everyone),
                (c.stages, c.value_bytes, WARPS if c.transposes else everyone),
            )[len(pipes) :]
        ]
    own = start_block(c.clears)
    if warp_group == 0:
        cute.arch.setmaxregister_decrease(registers_of(c)[0])
        producers = [None if pipe is None else pipe.make_producer() for pipe in pipes]
        if c.gathers:
            GatherProducer(c, tiles, tmas[1:], (sK, sV), producers[1:]).run()
        elif c.clears:
            if warp == 0:
                Producer(c, tiles, tmas, (sQ, sK, sV), producers, own).run()
        elif c.transposes:
            # The producer is one thread, or a warp that reads a page table. Three warps transpose what it loads.
            if warp == 0:
                if c.page or cute.arch.elect_one():
                    Producer(c, tiles, tmas, (sQ, sK, sV), producers).run()
            else:
                ends = pipes[2].make_consumer(), values.make_producer()
                Transposer(c, tiles, warp - 1, plain[2:], ends).run()
        elif warp == 0 and cute.arch.elect_one():
            Producer(c, tiles, tmas, (sQ, sK, sV), producers).run()
    else:
        cute.arch.setmaxregister_increase(registers_of(c)[1])
        consumers = [None if pipe is None else pipe.make_consumer() for pipe in (*pipes[:2], values or pipes[2])]
        rows = Rows(c, tiles, out, lse)
        smem = sQ, sK, others[0] if c.transposes else sV
        Consumer(tiles, warp_group - 1, (mma_s, mma_o), smem, consumers, rows, operands, tmas[0]).run()


def registers_of(c: AttentionConfig) -> tuple[int, int]:
    """Return the registers per thread of the producer and of a consumer."""
    if c.gathers:
        return _GATHERED[c.consumers]
    if c.transposes and c.registers > MOST_OF_PRODUCER and not c.reads_past_end:
        return REGISTERS[c.consumers]
    return (_PACKED if c.clears or c.block_n or c.transposes else REGISTERS)[c.consumers]


class Queries(NamedTuple):
    """Queries in shared memory that consumers loaded."""

    index: Int  # slot


class Consumer:
    """A consumer warpgroup: 64 queries of each tile."""

    def __init__(
        self, tiles: Tiles, group: Int, mmas: tuple[cute.TiledMma, cute.TiledMma],
        smem: Sequence[cute.Tensor], rings: Sequence[PipelineConsumer | None], rows: Rows, operands: ScoreOperands,
        queries: cute.Tensor,
    ):  # fmt: skip
        self.dropout = None if operands.drops is None else Dropout(operands.drops)
        self.c, self.tiles, self.group, self.rows = tiles.c, tiles, group, rows
        c = tiles.c
        self.mma_s, self.mma_o = mma_s, mma_o = mmas
        self.of_q, self.of_k, self.of_v = rings
        sQ, sK, sV = smem
        self.queries, self.smem = queries, sQ
        part_s, part_o = mma_s.get_slice(group * 128), mma_o.get_slice(group * 128)
        self.q = mma_s.make_fragment_A(part_s.partition_A(_of_two_slots(sQ, c)))
        self.k = mma_s.make_fragment_B(part_s.partition_B(sK))
        self.v = mma_o.make_fragment_B(part_o.partition_B(sV))
        scores = mma_s.make_fragment_C(mma_s.partition_shape_C((c.tile_m, c.tile_n)))
        weights = mma_o.make_fragment_A(mma_o.partition_shape_A((c.tile_m, c.tile_n)))
        sums = mma_o.make_fragment_C(mma_o.partition_shape_C((c.tile_m, c.value_head)))
        factor = cute.Float32(1.0) if c.adjusts else operands.scale
        self.softmax = Softmax(c, scores, weights, sums, cute.Float32(LOG2_E) if c.has_score else factor)
        self.descales, self.scale = operands.descales, operands.scale
        self.functions = Scores(c, scores, operands)
        self.scores, self.weights, self.sums = scores, weights, sums
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx() % 4
        self.row, self.column = group * 64 + warp * 16 + lane // 4, lane % 4 * 2
        self.takes_turns = c.pingpong and c.consumers > 1

    def run(self) -> None:
        """Compute all tiles of this block."""
        c = self.c
        # The first consumer may start at once.
        if self.takes_turns and self.group == c.consumers - 1:
            cute.arch.barrier_arrive(_TURN, 256)
        self.tiles.visit(self)
        if self.takes_turns and self.group == 0:
            cute.arch.barrier(_TURN, 256)

    def tile(self, place: Place) -> None:
        """Compute a tile."""
        softmax = self.softmax
        q: Any = None
        if self.c.pack:
            q = self._load_queries(place)
        else:
            q = self.of_q.wait_and_advance()
            if self.c.q_stages == 1:
                q = q._replace(index=place.zero)
        softmax.begin()
        values = self._descale(place)
        lines = self._lines(place)
        step = self.tiles.step(place, place.last - 1)
        k = self.of_k.wait_and_advance()
        self._make_visible()
        warpgroup.fence()
        self._multiply_keys(q, k, place.last - 1)
        warpgroup.wait_group(0, self.scores)
        k.release()
        self._adjust(place, lines, step)
        self._mask(place, lines, step)
        softmax.take(first=True, masked=True)
        softmax.weigh(self._signs(place, step))
        top = place.last - 1
        whole = self._whole_steps(place)
        for i in range(top - place.first):
            self._step(place, lines, q, top - 1 - i, whole)
        if not self.c.pack:
            q.release()
        v = self.of_v.wait_and_advance()
        self._make_visible()
        warpgroup.fence()
        self._multiply_values(v)
        warpgroup.wait_group(0, self.sums)
        v.release()
        logs = softmax.finish(self._sinks(place, lines), values, None if self.dropout is None else self.dropout.kept)
        self.rows.store(place, self.row, self.sums, logs)

    def _descale(self, place: Place) -> cute.Float32 | None:
        """Multiply the factor of the scores by those of Q and K, and return that of V, or None.

        The factor of the scores remains positive, so that softmax need not consider products of 0 and infinity.
        """
        c = self.c
        head = place.head if c.pack else place.head // self.tiles.problem.sharing
        of_q, of_k, of_v = (None if x is None else x[head, place.batch] for x in self.descales)
        if of_q is not None or of_k is not None:
            scale = self.scale
            for factor in (of_q, of_k):
                scale = scale if factor is None else scale * factor
            if c.adjusts:
                self.functions.scale = scale
            else:
                self.softmax.factor = cute.arch.fmax(scale, LEAST)
        return of_v

    def _whole_steps(self, place: Place) -> tuple[Int, Int]:
        """Return the range of steps, before the last one, whose keys all queries of this warpgroup see.

        An end is None if the mask does not bound the keys on that side.
        """
        c, n = self.c, self.c.tile_n
        left, right = c.bounded
        shift, row = self.tiles.shift(place), place.row + self.group * 64
        last = self.tiles.query(row + 63)
        row = self.tiles.query(row)
        low = cute.ceil_div(cute.max(self.tiles.begin_of_window(last + shift), 0), n) if left else None
        return low, self.tiles.end_of_window(row + shift) // n if right else None

    def _lines(self, place: Place) -> list[Line]:
        """Return this thread's rows."""
        found = []
        for half in range(2):
            row, head = place.row + self.row + 8 * half, place.head
            if self.c.pack:
                row, head = self.tiles.split_row(row)
                head = head + place.head * self.tiles.problem.sharing
            found.append(self.functions.line(row, head, place))
        return found

    def _load_queries(self, place: Place) -> Queries:
        """Load this warpgroup's rows of (query, head) pairs to shared memory, 16 bytes per thread and load."""
        c, size = self.c, 128 // self.c.bits
        pieces = c.head // size
        thread = cute.arch.thread_idx().x % 128
        cute.arch.barrier(_OWN + self.group, 128)  # all warps have read the previous rows
        for i in cute.range_constexpr(64 * pieces // 128):
            at, piece = self.group * 64 + i * (128 // pieces) + thread // pieces, thread % pieces
            query, head = self.tiles.split_row(place.row + at)
            held = cute.make_rmem_tensor(size, self.smem.element_type)
            held.fill(0.0)
            if (query < place.queries) & (piece * size < self.queries.shape[1]):
                head = head + place.head * self.tiles.problem.sharing
                batch = 0 if c.packed else place.batch
                line = self.queries[place.query_start + query, None, head, batch]
                cute.autovec_copy(cute.local_tile(line, (size,), (piece,)), held)
            cute.autovec_copy(held, cute.local_tile(self.smem[at, None, 0], (size,), (piece,)))
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(_OWN + self.group, 128)
        return Queries(place.zero)

    def _sinks(self, place: Place, lines: list[Line]) -> list[cute.Float32] | None:
        """Return the logits of keys without values; only the first slice of the keys has them."""
        found = self.functions.sinks(lines)
        if found is None or not self.c.split:
            return found
        first = place.matrix < (1 if self.c.packed else self.tiles.problem.batch)
        return [x if first else cute.Float32(float("-inf")) for x in found]

    def _adjust(self, place: Place, lines: list[Line], step: Step) -> None:
        """Apply the functions of scores to those of a step."""
        if self.c.functions is not None:
            self.functions.apply(lines, place, step, self.column)
            return
        if not self.c.adjusts:
            return
        first = step.key + self.column
        own = [line.query + place.keys - place.queries - first for line in lines]
        self.functions.adjust(lines, place.batch, first, own)

    def _step(self, place: Place, lines: list[Line], q: Queries | Slot, at: Int, whole: tuple[Int, Int]) -> None:
        """Multiply the queries by a step's keys, and the probabilities of the previous step by its values."""
        softmax, overlap = self.softmax, self.c.overlap
        step = self.tiles.step(place, at)
        # Wait for both stages before the first MMA. Between MMAs, ptxas would insert fences that serialize them.
        k, v = self.of_k.wait_and_advance(), self.of_v.wait_and_advance()
        self._make_visible()
        self._wait_for_turn()
        warpgroup.fence()
        self._multiply_keys(q, k, at)
        self._multiply_values(v)
        self._pass_turn()
        if overlap:
            warpgroup.wait_group(1, self.scores)
        else:
            warpgroup.wait_group(0, self.scores, self.sums)
            v.release()
        self._adjust(place, lines, step)
        low, high = whole
        cut = [at < low] if low is not None else []
        cut += [at >= high] if high is not None else []
        cut += [step.key + self.c.tile_n > place.seen] if self.c.block_n else []
        if cut and cut[0] | cut[-1]:
            self._mask(place, lines, step)
        by = softmax.take(first=False, masked=self.c.hides)
        if softmax.is_taken():
            k.release()
        if overlap:
            warpgroup.wait_group(0, self.sums)
            v.release()
        softmax.rescale(by)
        softmax.weigh(self._signs(place, step))

    def _signs(self, place: Place, step: Step) -> Callable[[int], list[cute.Uint32]] | None:
        """Return the function that :meth:`.softmax.Softmax.weigh` calls for the keys of a step."""
        if self.dropout is None:
            return None
        matrix, block = place.batch * self.tiles.problem.heads + place.head, step.key // 16
        # ptxas must not keep the words that depend on the tile alone in registers for large heads.
        key = self.dropout.key_after(step.key) if self.c.value_head > 128 else self.dropout.key
        return lambda i: self.dropout.of_queries(place.row + self.row, block + i, matrix, key)

    def _make_visible(self) -> None:
        """Make the copies of ``cp.async`` visible to wgmma."""
        if self.c.gathers:
            cute.arch.fence_proxy("async.shared", space="cta")

    def _multiply_keys(self, q: Queries | Slot, k: Slot, step: Int) -> None:
        c, at = self.c, (None, None, None)
        short = c.head == 256 and c.q_stages == 1 and (c.packed or c.mask == "both" or c.dropout)
        slot = nothing_of(step) if short else q.index
        cute.gemm(self.mma_s, self.scores, self.q[(*at, slot)], self.k[(*at, k.index)], accumulate=False)
        warpgroup.commit_group()

    def _multiply_values(self, v: Slot) -> None:
        cute.gemm(self.mma_o, self.sums, self.weights, self.v[None, None, None, v.index], accumulate=True)
        warpgroup.commit_group()

    def _wait_for_turn(self) -> None:
        if self.takes_turns:
            cute.arch.barrier(_TURN + self.group, 256)

    def _pass_turn(self) -> None:
        if self.takes_turns:
            following = self.group + 1
            cute.arch.barrier_arrive(_TURN + (0 if following == self.c.consumers else following), 256)

    def _mask(self, place: Place, lines: list[Line], step: Step) -> None:
        """Mask the scores of keys that a query does not see, and of keys past the end."""
        c, p = self.c, self.tiles.problem
        left, right = c.bounded
        begin = step.key
        # Compute the warp-uniform part first. The remaining part is this thread's row minus its column.
        own, here = place.row + self.tiles.shift(place) - begin, self.row - self.column
        end = place.seen - begin - self.column
        high, low = [end, end], None
        if c.chunked:
            rows = [line.query if c.pack else place.row + self.row + 8 * half for half, line in enumerate(lines)]
            keys, first = [row + self.tiles.shift(place) for row in rows], begin + self.column
            high = [cute.min(end, self.tiles.end_of_window(key) - first) for key in keys]
            low = [self.tiles.begin_of_window(key) - first for key in keys]
        elif c.pack:
            first = self.tiles.shift(place) - begin - self.column
            if right:
                high = [cute.min(end, line.query + first + p.right + 1) for line in lines]
            if left:
                low = [line.query + first - p.left for line in lines]
        else:
            if right:
                high = [cute.min(end, own + p.right + 1 + (here + half)) for half in (0, 8)]
            if left:
                low = [own - p.left + (here + half) for half in (0, 8)]
        self.softmax.mask(low, high)


def _of_two_slots(sQ: cute.Tensor, c: AttentionConfig) -> cute.Tensor:
    """Return the tiles of Q with a second slot, which does not exist and is never used if there is only one.

    The slot index is then 0, but ptxas must not know it (:func:`.tiles.nothing_of`). Otherwise it would keep the
    descriptors of all MMAs with the one slot in uniform registers for the whole kernel. None would be left for the
    other descriptors, and heads of 256 elements would spill.
    """
    if c.q_stages > 1:
        return sQ
    layout = cute.append(cute.select(sQ.layout, [0, 1]), cute.make_layout(2, stride=c.tile_m * c.head))
    return cute.make_tensor(sQ.iterator, layout)


def layouts_of(c: AttentionConfig) -> dict[str, Any]:
    """Return the annotations of the launch arguments."""
    units, result = ("?{div=16}" if c.bits == 8 else "?{div=8}"), cute.Float32 if c.split else number(c.result)
    matrix = cute.Tensor[number(c.element), f"(?,?,?,?):({units},1,{units},{units})", "align<16>"]
    found: dict[str, Any] = dict.fromkeys(("Q", "K", "V"), matrix)
    of_out = "?{div=4}" if c.result == "f32" else "?{div=8}"
    found["out"] = cute.Tensor[result, f"(?,?,?,?):({of_out},1,{of_out},{of_out})", "align<16>"]
    found["lse"] = cute.Tensor[cute.Float32, "(?,?,?):(?,?,?)"] if c.lse else None
    begins = cute.Tensor[cute.Int32, "?:1"] if c.packed else None
    found |= {"of_queries": begins, "of_keys": None if c.page or c.groups else begins}
    found |= {"queries": cute.Int32, "scale": cute.Float32, "left": cute.Int32}
    found |= {"right": cute.Int32, "parts": cute.Int32 if c.split else None}
    found["cap"] = cute.Float32 if c.softcap else None
    found["slopes"] = cute.Tensor[cute.Float32, "(?,?):(?,?)"] if c.alibi else None
    bias = cute.Uint8 if c.bias == "i1" else number(c.bias or "f32")
    found["bias"] = cute.Tensor[bias, "(?,?,?,?):(?,?,?,?)"] if c.bias else None
    found["sinks"] = cute.Tensor[number(c.sinks), "?:1"] if c.sinks else None
    lengths = {"used": c.used, "used_q": c.used_q, "pad": c.padded}
    found |= {name: cute.Tensor[cute.Int32, "?:1"] if given else None for name, given in lengths.items()}
    numbers = {"grown": c.used, "chunk": c.chunked, "each": c.groups}
    found |= {name: cute.Int32 if given else None for name, given in numbers.items()}
    found["table"] = cute.Tensor[cute.Int32, "(?,?):(?,?)"] if c.page else None
    found["captured"] = captured_types(c.functions)
    counts, indices = (cute.Tensor[cute.Int32, f"({x}):({x})"] for x in ("?,?,?", "?,?,?,?"))
    found["blocks"] = (counts, indices, counts, indices) if c.block_n else None
    factors = cute.Tensor[cute.Float32, "(?,?):(?,?)"]
    found |= {f"{x}_descale": factors if x in c.descale else None for x in "qkv"}
    return found | dropout_types(c.dropout)


@printed
def attention_text(config: AttentionConfig | None = None) -> cute.Compiled:
    """Trace the kernel ``@attention`` and its host function ``@launch``.

    The launch takes Q, K, V, the result, then those parameters of :func:`launch` that the configuration uses.

    Raises:
        ValueError: if the configuration is not supported.
    """
    c = AttentionConfig() if config is None else config
    c.check()
    return cute.trace(launch, **layouts_of(c), config=c)
