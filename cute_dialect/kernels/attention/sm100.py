"""Attention for sm_100: ``softmax(scale Q K^T) V`` with TMA, tcgen05 and weights in tensor memory.

A block computes two tiles of 128 queries of a head, in steps of 128 keys that both tiles use. Warp 0 loads the tiles of
Q, and tiles of K and V into a ring of slots, by TMA. One thread of warp 1 issues the MMAs. Each tile has a warpgroup
that computes the softmax, a row per thread: warps 4 to 7, and warps 8 to 11. Warps 12 to 15 rescale both results and
store them by TMA. The roles have different numbers of registers (``setmaxnreg``).

    columns of tensor memory
    0, 128      scores S of a tile; its weights P overwrite the first half, two elements per column
    256, 384    result O of a tile, up to 128 columns

    scores[t]     complete: the commit of S = Q K^T; empty: 128 arrivals, when P is stored
    result[t]     complete: the commit of O += P V; empty: 128 arrivals, when O is rescaled
    factors[t]    complete: 128 arrivals, when the factors of O are in shared memory; empty: 128 arrivals

Per step and tile, the MMA thread waits for P and the rescaled O, issues O += P V, waits until these MMAs have read P,
and issues the next S to its columns. The PTX ISA does not order an MMA after an earlier one that reads the columns it
writes, so it has to wait. Meanwhile the softmax of the other tile runs. Weights are powers of two: the scale of the
scores and ``log2(e)`` form one factor. O is rescaled only if a weight would exceed 2^8.

TMA needs 16-byte aligned addresses and strides. Extents are arbitrary, and heads may be smaller than ``head``. The
kernel has been assembled and interpreted, but never run on the chip.

>>> c = Sm100Attention(head=128, mask="right")
>>> c.name, c.slots, c.shared_bytes
('attention-bf16-128-right-sm100', 2, 197840)
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.arch.targets import TARGETS
from cute_dialect.kernels.attention.softmax import LN_2, SLACK
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.gemm.sm100 import CHIP
from cute_dialect.lang import blackwell, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05
from cute_dialect.lang.values.signature_types import Int, Value

TILE = 128
"""Queries of a tile, and keys of a step."""
TILES = 2
"""Tiles of a block."""
HALF = 64
"""Scores that an instruction loads."""
GROUP, THREADS = 128, 512
"""Threads of a warpgroup, and of a block."""
REGISTERS = {"load and MMA": 80, "softmax": 176, "correction": 80}
"""Registers per thread of a role, by ``setmaxnreg``. There are two warpgroups of the softmax."""
LAUNCHED = 65536 // THREADS
"""Registers per thread at the launch."""
COLUMNS = 512
"""Columns of tensor memory of a block."""
HEADS = (64, 128)
"""Largest elements per head of a kernel. Smaller heads are padded with zeros in shared memory."""
ELEMENTS = ("bf16", "f16")
"""Element types of Q, K, V and the result."""
MASKS = ("full", "right")
"""Keys that a query sees: all, or those up to one that moves with the query."""
Maps: TypeAlias = Sequence[tuple[cute.CopyAtom, cute.Tensor]]
"""TMA atoms with their coordinates."""
Mmas: TypeAlias = tuple[cute.TiledMma, cute.TiledMma]
"""The MMAs of S and of O."""
Producer: TypeAlias = pipeline.PipelineProducer
Consumer: TypeAlias = pipeline.PipelineConsumer
"""The sides of pipelines that a warp has."""
_RESULT = TILES * TILE
"""The first column of the results."""
_LANE = 1 << 17
"""Elements of 16 bits between two lanes of tensor memory."""


class Sm100Attention(NamedTuple):
    """Configuration of attention for sm_100."""

    element: str = "bf16"  # type of Q, K, V and the result
    head: int = 128  # elements per head, at most
    mask: str = "full"  # one of MASKS
    lse: bool = False  # also store the log-sum-exp of each row
    packed: bool = False  # variable-length sequences, packed one after the other
    chip: str = CHIP  # target for which the kernel is compiled

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile of Q, K or V."""
        return TILE * self.head * 2

    @property
    def slots(self) -> int:
        """Slots of K in shared memory, and of V."""
        return 4 if self.head == 64 else 2

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block: Q, the slots, the factors, the mbarriers and the address."""
        barriers = 2 * (4 * TILES + 2 * self.slots) + 2 * self.packed
        return (TILES + 2 * self.slots) * self.tile_bytes + TILES * TILE * 4 + 8 * barriers + 16

    @property
    def name(self) -> str:
        """Name of the kernel."""
        words = {"lse": "-lse", "packed": "-packed"}
        return f"attention-{self.element}-{self.head}-{self.mask}-sm{TARGETS[self.chip].number}{differing(self, words)}"

    def check(self) -> None:
        """Raise ValueError if no kernel supports this configuration."""
        allowed = {"element": ELEMENTS, "head": HEADS, "mask": MASKS}
        for field, values in allowed.items():
            found = getattr(self, field)
            if found not in values:
                raise ValueError(f"{field} {found!r} is not supported; use one of {', '.join(map(str, values))}")


class Columns(NamedTuple):
    """Tensors in tensor memory: S, P and O."""

    memory: cute.Pointer  # the first column
    layouts: tuple[cute.Layout, cute.Layout, cute.Layout]  # for the MMAs
    element: type[cute.Numeric]  # of P

    def scores(self, tile: Int) -> cute.Tensor:
        """Return S of a tile."""
        return cute.make_tensor(self.memory + tile * TILE, self.layouts[0])

    def weights(self, tile: Int) -> cute.Tensor:
        """Return P of a tile."""
        first = self.memory + tile * TILE
        return cute.make_tensor(cute.recast_ptr(first, dtype=self.element), self.layouts[1])

    def result(self, tile: Int) -> cute.Tensor:
        """Return O of a tile."""
        return cute.make_tensor(self.memory + (_RESULT + tile * TILE), self.layouts[2])


class Turn(pipeline.PipelineState):
    """The position of threads that use one slot of a pipeline, that of their tile."""

    def __init__(self, slot: Int, phase: Int):
        super().__init__(1, cute.Int32(0), cute.Int32(slot), cute.Int32(phase))

    def advance(self) -> None:
        """Wait for the next phase of the slot."""
        self._phase = self._phase ^ 1
        self._count = self._count + 1


def receive(pipe: pipeline.PipelineAsync, tile: Int) -> Consumer:
    """Return the consumer's side of the slot of a tile."""
    return pipeline.PipelineConsumer(pipe, Turn(tile, 0))


def provide(pipe: pipeline.PipelineAsync, tile: Int) -> Producer:
    """Return the producer's side of the slot of a tile."""
    return pipeline.PipelineProducer(pipe, Turn(tile, 1))


class Block(NamedTuple):
    """The tiles of a block."""

    first: Int  # index of the first tile of queries
    head: Int
    batch: Int  # the sequence; 0 if sequences are packed
    sharing: Int  # heads of Q per head of K
    queries: Int
    keys: Int
    shift: Int  # query i sees the keys up to i + shift, if the mask is "right"
    begins: tuple[Int, Int] | None = None  # first query and key of a packed sequence

    def matrix(self, x: cute.Tensor, head: Int, *, of_keys: bool = False, along: int = 0) -> cute.Tensor:
        """Return the matrix of a head and this sequence, whose mode ``along`` has the queries or the keys."""
        found = x[None, None, head, self.batch]
        if self.begins is None:
            return found
        begin = self.begins[1 if of_keys else 0]
        return cute.domain_offset((begin, 0) if along == 0 else (0, begin), found)

    def end(self, mask: str, query: Int) -> Int:
        """Return the number of keys up to the last one that a query sees; it may be negative."""
        return cute.min(query + 1 + self.shift, self.keys) if mask == "right" else self.keys

    def steps(self, mask: str) -> Int:
        """Return the number of steps, at least 1."""
        return cute.max(cute.ceil_div(self.end(mask, (self.first + TILES) * TILE - 1), TILE), 1)


DEFAULT = Sm100Attention()


class Sequences(NamedTuple):
    """Packed sequences."""

    of_queries: cute.Tensor  # boundaries of the queries, one more than sequences
    of_keys: cute.Tensor  # boundaries of the keys
    longest: Int  # queries of the longest sequence
    from_end: Int  # 1: the shift is relative to the last key of the sequence for its last query


@cute.jit(options=f"--gpu-arch {CHIP}")
def launch(
    Q: cute.Tensor,
    K: cute.Tensor,
    V: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    scale: cute.Float32,
    shift: cute.Int32,
    sequences: Mapping[str, Value] | None = None,
    config: cute.Constexpr[Sm100Attention] = DEFAULT,
):
    """Launch the kernel of a configuration.

    Args:
        Q, K, V, out: (S, D, H, B) tensors. B is 1 for packed sequences.
        lse: Log-sum-exp of each row, (S, H, B), or None.
        scale: Factor of the scores times ``log2(e)``; it is positive.
        shift: Query ``i`` sees the keys up to ``i + shift`` if the mask is "right".
        sequences: The fields of :class:`Sequences`, or None.
        config: The configuration.
    """
    c, element = config, number(config.element)
    assert K.shape[0] == V.shape[0], "K and V must have the same number of keys"
    k, mn, one = tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.MN, tcgen05.CtaGroup.ONE
    mma_s = blackwell.make_trivial_tiled_mma(element, k, k, cute.Float32, one, (TILE, TILE))
    mma_o = blackwell.make_trivial_tiled_mma(
        element, k, mn, cute.Float32, one, (TILE, c.head), tcgen05.OperandSource.TMEM
    )
    of_s, of_o = (TILE, TILE, c.head), (TILE, c.head, TILE)  # (M, N, K)
    layouts = (
        blackwell.make_smem_layout_a(mma_s, of_s, element, TILES),
        blackwell.make_smem_layout_b(mma_s, of_s, element, c.slots),
        blackwell.make_smem_layout_b(mma_o, of_o, element, c.slots),
        blackwell.make_smem_layout_epi(element, utils.LayoutEnum.ROW_MAJOR, (TILE, c.head), TILES),
    )
    load, stage = cpasync.CopyBulkTensorTileG2SOp(one), [0, 1, 2]
    transposed = cute.select(V, [1, 0, 2, 3])
    maps = (
        cute.nvgpu.make_tiled_tma_atom_A(load, Q, cute.select(layouts[0], stage), of_s, mma_s),
        cute.nvgpu.make_tiled_tma_atom_B(load, K, cute.select(layouts[1], stage), of_s, mma_s),
        cute.nvgpu.make_tiled_tma_atom_B(load, transposed, cute.select(layouts[2], stage), of_o, mma_o),
        cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), out, cute.select(layouts[3], [0, 1]), (TILE, c.head)
        ),
    )
    extents = Q.shape[0], K.shape[0], Q.shape[2] // K.shape[2], shift
    rows, batch = Q.shape[0], Q.shape[3]
    packed = None if sequences is None else Sequences(**sequences)
    if packed is not None:
        rows, batch = packed.longest, cute.size(packed.of_queries) - 1
    grid, results = (cute.ceil_div(rows, TILES * TILE), Q.shape[2], batch), (out if c.packed else None, lse)
    attention(maps, (mma_s, mma_o), layouts, results, extents, scale, packed, config).launch(grid=grid, block=THREADS)


@cute.kernel(min_blocks=1)
def attention(
    maps: Maps,
    mmas: Mmas,
    layouts: Sequence[cute.ComposedLayout],
    results: tuple[cute.Tensor | None, cute.Tensor | None],
    extents: tuple[Int, Int, Int, Int],
    scale: cute.Float32,
    sequences: Sequences | None,
    config: cute.Constexpr[Sm100Attention],
):
    """Compute 256 queries of a head."""
    c, (queries, keys, sharing, shift), (out, lse) = config, extents, results
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    x, head, batch = cute.arch.block_idx()
    # With a mask the last tiles have most steps, and go first.
    pair = cute.arch.grid_dim().x - 1 - x if c.mask == "right" else x
    begins, clean = None, None
    if sequences is not None:
        begins = sequences.of_queries[batch], sequences.of_keys[batch]
        queries, keys = (x[batch + 1] - begin for x, begin in zip(sequences, begins))
        shift = shift + sequences.from_end * (keys - queries)
        batch, clean = 0, cute.arch.alloc_smem(cute.Int64, 2)
        if warp == 0 and cute.arch.elect_one():
            cute.arch.mbarrier_init(clean, 1)
            cute.arch.mbarrier_init(clean + 1, 1)
            cute.arch.mbarrier_init_fence()
    block = Block(pair * TILES, head, batch, sharing, queries, keys, shift, begins)
    if warp == 0 and cute.arch.elect_one():
        for atom, _ in maps:
            cpasync.prefetch_descriptor(atom)
    element, (mma_s, mma_o) = number(c.element), mmas
    sQ, sK, sV = (cute.smem_tensor(element, ring.outer, 1024, ring.inner) for ring in layouts[:3])
    # The result overwrites Q.
    sO = cute.make_tensor(cute.recast_ptr(sQ.iterator, layouts[3].inner, element), layouts[3].outer)
    factors = cute.smem_tensor(cute.Float32, cute.make_layout((TILE, TILES)), 16)
    slot = cute.arch.alloc_smem(cute.Int32, 1)

    loads = {"producer_group": 1, "consumer_group": 1, "tx_count": c.tile_bytes, "defer_sync": True}
    of_mma = {"producer_group": 1, "consumer_group": GROUP, "defer_sync": True}
    of_group = {"producer_group": GROUP, "consumer_group": GROUP, "defer_sync": True}
    q = pipeline.PipelineTmaUmma.create(num_stages=TILES, **loads)
    k, v = (pipeline.PipelineTmaUmma.create(num_stages=c.slots, **loads) for _ in range(2))
    s = pipeline.PipelineUmmaAsync.create(num_stages=TILES, **of_mma)
    o = pipeline.PipelineUmmaAsync.create(num_stages=TILES, **of_mma)
    f = pipeline.PipelineAsync.create(num_stages=TILES, **of_group)
    allocator = utils.TmemAllocator(slot, pipeline.NamedBarrier(0, THREADS), allocator_warp_id=1)
    allocator.allocate(COLUMNS)
    allocator.relinquish_alloc_permit()
    allocator.wait_for_alloc()
    pointer = allocator.retrieve_ptr(cute.Float32)
    fragments = (
        mma_s.make_fragment_C(mma_s.partition_shape_C((TILE, TILE))).layout,
        mma_o.make_fragment_A(mma_o.partition_shape_A((TILE, TILE))).layout,
        mma_o.make_fragment_C(mma_o.partition_shape_C((TILE, c.head))).layout,
    )
    columns, steps = Columns(pointer, fragments, element), block.steps(c.mask)

    def take_roles() -> None:
        if warp < 4:
            cute.arch.setmaxregister_decrease(REGISTERS["load and MMA"])
            if warp == 0 and cute.arch.elect_one():
                load(c, block, maps[:3], mmas, (sQ, sK, sV), (q.make_producer(), k.make_producer(), v.make_producer()))
            elif warp == 1 and cute.arch.elect_one():
                loads = q.make_consumer(), k.make_consumer(), v.make_consumer()
                multiply(mmas, (sQ, sK, sV), columns, steps, loads, (s, o), clean)
            elif clean is not None and warp == 2:
                clear_other_keys(c, sV, block.keys - (steps - 1) * TILE, steps - 1, clean)
        elif warp >= 12:
            cute.arch.setmaxregister_decrease(REGISTERS["correction"])
            row = cute.arch.thread_idx().x - 3 * GROUP
            correct(c, columns, row, steps, factors, (o.make_consumer(), f.make_consumer()), sO)
            store(c, block, maps[3], sO, out, row)
        else:
            cute.arch.setmaxregister_increase(REGISTERS["softmax"])
            tile = warp // 4 - 1
            row = cute.arch.thread_idx().x % GROUP
            at = (block.first + tile) * TILE + row
            ends = receive(s, tile), provide(f, tile)
            log = softmax(columns, tile, row, block.end(c.mask, at), steps, scale, factors, ends)
            if c.lse and at < queries:
                lse[at if begins is None else begins[0] + at, head, batch] = log * LN_2

    if sequences is None or block.first * TILE < queries:
        take_roles()
    cute.arch.sync_threads()  # The releases of O and S include the fence before.
    allocator.free(pointer)


def store(
    c: Sm100Attention,
    block: Block,
    map: tuple[cute.CopyAtom, cute.Tensor],
    sO: cute.Tensor,
    out: cute.Tensor | None,
    row: Int,
) -> None:
    """Store the results of a block. Each thread stores its row of a tile that crosses the end of a packed sequence.

    Args:
        c: The configuration.
        block: The tiles.
        map: TMA atom and coordinates of the result.
        sO: The results in shared memory.
        out: The result of packed sequences, or None.
        row: The row of the thread.
    """
    atom, target = map
    rows = cute.local_tile(block.matrix(target, block.head), (TILE, c.head), (None, 0))
    source, rows = (cute.group_modes(y, 0, 2) for y in (sO, rows))
    source, rows = cpasync.tma_partition(atom, 0, cute.make_layout(1), source, rows)
    if out is None:
        if row == 0:
            for t in cute.range_constexpr(TILES):
                cute.copy(atom, source[None, t], rows[None, block.first + t])
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0, read=True)
        return
    lines = block.matrix(out, block.head)
    for t in cute.range_constexpr(TILES):
        left = block.queries - (block.first + t) * TILE
        if left >= TILE:
            if row == 0:
                cute.copy(atom, source[None, t], rows[None, block.first + t])
        elif row < left:
            line = lines[(block.first + t) * TILE + row, None]
            for j in cute.range_constexpr(c.head // 8):
                if j * 8 < out.shape[1]:
                    cute.autovec_copy(cute.local_tile(sO[row, None, t], (8,), (j,)), cute.local_tile(line, (8,), (j,)))
    if row == 0:
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, read=True)


def clear_other_keys(c: Sm100Attention, sV: cute.Tensor, valid: Int, step: Int, clean: cute.Pointer) -> None:
    """Set the values of the next sequence in the last tile to 0, because a NaN times a weight of 0 is a NaN.

    The MMA thread signals that the tile is loaded. A warp that waits for the last phase of the barrier of a slot, but
    not for those before, would not know that it is the last one.

    Args:
        c: The configuration.
        sV: The slots of V.
        valid: Keys of the tile that belong to the sequence; it may be negative, or more than the tile has.
        step: The step of the tile.
        clean: The barriers for the loaded tile and for the cleared one.
    """
    index = step % c.slots
    cute.arch.mbarrier_wait(clean, 0)
    layout = blackwell.make_smem_layout(tcgen05.OperandMajorMode.MN, (c.head, TILE), sV.element_type, c.slots)
    values, parts = cute.make_tensor(sV.iterator, layout.outer), c.head // 8
    zeros = cute.make_rmem_tensor(8, sV.element_type)
    zeros.fill(0)
    first = cute.max(valid, 0)
    for i in range(cute.arch.lane_idx(), (TILE - first) * parts, 32):
        column = values[None, first + i // parts, index]
        cute.autovec_copy(zeros, cute.local_tile(column, (8,), (i % parts,)))
    cute.arch.fence_view_async_shared()
    cute.arch.sync_warp()
    if cute.arch.lane_idx() == 0:
        cute.arch.mbarrier_arrive(clean + 1)


def load(
    c: Sm100Attention,
    block: Block,
    maps: Maps,
    mmas: Mmas,
    smem: Sequence[cute.Tensor],
    ends: tuple[Producer, Producer, Producer],
) -> None:
    """Load the tiles of Q, K and V."""
    (q, k, v), (mma_s, mma_o), of_keys = ends, mmas, block.head // block.sharing
    of_s, of_o = mma_s.get_slice(0), mma_o.get_slice(0)
    parts = []
    matrices = (
        block.matrix(maps[0][1], block.head),
        block.matrix(maps[1][1], of_keys, of_keys=True),
        block.matrix(maps[2][1], of_keys, of_keys=True, along=1),
    )
    for (atom, _), x, stages, partition, shape in zip(
        maps,
        matrices,
        smem,
        (of_s.partition_A, of_s.partition_B, of_o.partition_B),
        ((TILE, c.head), (TILE, c.head), (c.head, TILE)),
    ):
        tiles = partition(cute.local_tile(x, shape, (None, None)))
        tiles, stages = (cute.group_modes(y, 0, 3) for y in (tiles, stages))
        parts.append((atom, *cpasync.tma_partition(atom, 0, cute.make_layout(1), stages, tiles)))
    (of_q, to_q, tQ), (of_k, to_k, tK), (of_v, to_v, tV) = parts
    steps = block.steps(c.mask)
    for t in cute.range_constexpr(TILES):
        slot = q.acquire_and_advance()
        cute.copy(of_q, tQ[None, block.first + t, 0], to_q[None, t], tma_bar_ptr=slot.barrier)
    for step in range(steps):
        slot = k.acquire_and_advance()
        cute.copy(of_k, tK[None, step, 0], to_k[None, slot.index], tma_bar_ptr=slot.barrier)
        slot = v.acquire_and_advance()
        cute.copy(of_v, tV[None, 0, step], to_v[None, slot.index], tma_bar_ptr=slot.barrier)


def multiply(
    mmas: Mmas,
    smem: Sequence[cute.Tensor],
    at: Columns,
    steps: Int,
    loads: tuple[Consumer, Consumer, Consumer],
    pipes: tuple[pipeline.PipelineUmmaAsync, pipeline.PipelineUmmaAsync],
    clean: cute.Pointer | None,
) -> None:
    """Issue the MMAs: for each tile O of a step, and S of the next step to the columns of the weights.

    Slots of K and V are released if they are loaded again, so that no commit arrives after the end of the block.
    """
    (mma_s, mma_o), (q, k, v), (s, o), (sQ, sK, sV) = mmas, loads, pipes, smem
    rQ, rK, rV = mma_s.make_fragment_A(sQ), mma_s.make_fragment_B(sK), mma_o.make_fragment_B(sV)
    results, complete = o.make_producer(), o.make_consumer()
    # The columns of S are those of the MMA thread at first, and again when P is stored.
    scores = pipeline.PipelineProducer(s, pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, TILES))
    for i in range(TILES * (steps + 1)):
        step, t = i // TILES, i % TILES
        if step > 0:
            values = v.wait()
            if clean is not None:
                wait_for_values(clean, (step == steps) & (t == 0))
            scores.acquire_and_advance()
            result = results.acquire_and_advance()
            cute.gemm(mma_o, at.result(t), at.weights(t), rV[None, None, None, values.index], accumulate=step > 1)
            result.commit()
            if t == TILES - 1:
                if step <= steps - v.pipe.num_stages:
                    values.release()
                v.advance()
            complete.wait_and_advance()
        if step < steps:
            keys = k.wait()
            if step == 0:
                q.wait_and_advance()
            cute.gemm(mma_s, at.scores(t), rQ[None, None, None, t], rK[None, None, None, keys.index], accumulate=False)
            s.producer_commit(Turn(t, 0))
            if t == TILES - 1:
                if step < steps - k.pipe.num_stages:
                    keys.release()
                k.advance()


def wait_for_values(clean: cute.Pointer, is_last: cute.Boolean) -> None:
    """Signal that the last tile of V is loaded, and wait until it has no values of another sequence."""
    if is_last:
        cute.arch.mbarrier_arrive(clean)
        cute.arch.mbarrier_wait(clean + 1, 0)
        tcgen05.fence_after_thread_sync()


def softmax(
    columns: Columns,
    tile: Int,
    row: Int,
    end: Int,
    steps: Int,
    scale: cute.Float32,
    factors: cute.Tensor,
    ends: tuple[Consumer, Producer],
) -> cute.Float32:
    """Compute the weights of a row, which sees keys up to ``end``, and send the factors of its result.

    Returns the base-2 logarithm of the sum of the weights' powers, -inf for a row that sees no key.
    """
    s, f = ends
    most, total, offset = cute.Float32(float("-inf")), cute.Float32(0.0), cute.Float32(0.0)
    load_op = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x64), cute.Float32)
    store_op = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), columns.element)
    matrix = columns.scores(tile)[(None, None), 0, 0]
    load = tcgen05.make_tmem_copy(load_op, matrix).get_slice(row)
    source = load.partition_S(matrix)
    first = columns.weights(tile).iterator
    matrix = cute.make_tensor(first, cute.make_layout((TILE, TILE), stride=(_LANE, 1)))
    store = tcgen05.make_tmem_copy(store_op, matrix).get_slice(row)
    target = store.partition_D(matrix)
    for step in range(steps):
        slot, visible = s.wait_and_advance(), end - step * TILE
        scores = cute.make_rmem_tensor((HALF, 1, TILE // HALF), cute.Float32)
        cute.copy(load, source, scores)
        if visible < TILE:
            for i in cute.range_constexpr(TILE):
                score = scores[i]
                scores[i] = score if i < visible else cute.Float32(float("-inf"))
        found = cute.arch.fmax(most, scores.load().max())
        after = found if (found - most) * scale > SLACK else most
        offset = after * scale if after != float("-inf") else cute.Float32(0.0)
        by = cute.math.exp2(most * scale - offset, fastmath=True)
        most, total = after, total * by
        if step > 0:  # O was rescaled before S of this step, so the slot is empty.
            factors[row, tile] = by
            f.commit()
            f.advance()
        sums = cute.Float32(0.0), cute.Float32(0.0)
        for i in cute.range_constexpr(TILE // HALF):
            half = scores[None, None, i]
            for j in cute.range_constexpr(0, HALF, 2):
                for n in (j, j + 1):
                    half[n] = cute.math.exp2(cute.math.fma(half[n], scale, -offset), fastmath=True)
                sums = cute.arch.add_packed_f32x2(sums, (half[j], half[j + 1]))
            rounded = cute.make_rmem_tensor((HALF, 1), columns.element)
            rounded.store(half.load().to(columns.element))
            cute.copy(store, rounded, target[None, None, i])
        total += sums[0] + sums[1]
        cute.arch.fence_view_async_tmem_store()
        slot.release()
    f.acquire()
    factors[row, tile] = 1.0 / total if total > 0.0 else cute.Float32(0.0)
    f.commit()
    return offset + cute.math.log2(total)


def correct(
    c: Sm100Attention,
    columns: Columns,
    row: Int,
    steps: Int,
    factors: cute.Tensor,
    ends: tuple[Consumer, Consumer],
    sO: cute.Tensor,
) -> None:
    """Rescale O of both tiles before each step but the first, and write the results to shared memory."""
    ops = (tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), tcgen05.St32x32bOp(tcgen05.Repetition.x32))
    load_op, store_op = (cute.make_copy_atom(x, cute.Float32) for x in ops)
    (o, f), parts = ends, c.head // 32
    for i in range(TILES * steps):
        t = i % TILES
        slot = f.wait_and_advance()
        by = factors[row, t]
        slot.release()
        result, matrix = o.wait_and_advance(), columns.result(t)[(None, None), 0, 0]
        load, store = (tcgen05.make_tmem_copy(x, matrix).get_slice(row) for x in (load_op, store_op))
        source, target = load.partition_S(matrix), store.partition_D(matrix)
        if i < TILES * (steps - 1):
            if cute.arch.vote_any_sync(by != 1.0):
                for j in cute.range_constexpr(parts):
                    part = cute.make_rmem_tensor((32, 1), cute.Float32)
                    cute.copy(load, source[None, None, j], part)
                    part.store(part.load() * by)
                    cute.copy(store, part, target[None, None, j])
                cute.arch.fence_view_async_tmem_store()
        else:
            for j in cute.range_constexpr(parts):
                part = cute.make_rmem_tensor((32, 1), cute.Float32)
                cute.copy(load, source[None, None, j], part)
                rounded = cute.make_rmem_tensor(32, sO.element_type)
                rounded.store((part.load() * by).to(sO.element_type))
                cute.autovec_copy(rounded, cute.local_tile(sO[row, None, t], (32,), (j,)))
        result.release()
    cute.arch.fence_view_async_shared()
    pipeline.NamedBarrier(1, GROUP).arrive_and_wait()


@printed
def sm100_attention_text(config: Sm100Attention | None = None) -> cute.Compiled:
    """Trace the kernel ``@attention`` and its host function ``@launch``.

    Raises:
        ValueError: if the configuration is not supported.
    """
    c = Sm100Attention() if config is None else config
    c.check()
    matrix = cute.Tensor[number(c.element), "(?,?,?,?):(?{div=8},1,?{div=8},?{div=8})", "align<16>"]
    lse = cute.Tensor[cute.Float32, "(?,?,?):(?,?,?)"] if c.lse else None
    tensors = {**dict.fromkeys(("Q", "K", "V", "out"), matrix), "lse": lse}
    bounds = cute.Tensor[cute.Int32, "?:1"]
    fields = {"of_queries": bounds, "of_keys": bounds, "longest": cute.Int32(0), "from_end": cute.Int32(0)}
    sequences = fields if c.packed else None
    return cute.trace(launch, **tensors, scale=cute.Float32, shift=cute.Int32, sequences=sequences, config=c)
