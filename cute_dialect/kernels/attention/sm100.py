"""Attention for sm_100: ``softmax(scale Q K^T) V`` with TMA, tcgen05 and weights in tensor memory.

A block computes 128 queries of a head, in steps of 128 keys. Warp 0 loads Q, and tiles of K and V into a ring of slots,
by TMA. One thread of warp 1 issues the MMAs. Warps 4 to 7 compute the softmax, a row per thread, and warps 8 to 11
rescale the result and store it by TMA.

    columns of tensor memory
    0     scores S, two slots of 128 columns
    256   result O, up to 128 columns
    384   weights P, two slots of 64 columns with two elements each

    scores[s]     complete: the commit of S = Q K^T; empty: 128 arrivals, when the softmax has loaded it
    weights[s]    complete: 128 arrivals, when P is stored; empty: the commit of O += P V
    result        complete: the commit of O += P V; empty: 128 arrivals, when O is rescaled
    factors[s]    complete: 128 arrivals, when the factors of O are in shared memory; empty: 128 arrivals

The MMAs of S of a step precede those of O of the step before, so they run during the softmax. Weights are powers of
two: the scale of the scores and ``log2(e)`` form one factor. O is rescaled only if a weight would exceed 2^8.

TMA needs 16-byte aligned addresses and strides. Extents are arbitrary, and heads may be smaller than ``head``. The
kernel has been assembled and interpreted, but never run on the chip.

>>> c = Sm100Attention(head=128, mask="right")
>>> c.name, c.slots, c.shared_bytes
('attention-bf16-128-right-sm100', 6, 230640)
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalSubscript=false

from collections.abc import Sequence
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
from cute_dialect.lang.values.signature_types import Int

TILE = 128
"""Queries of a block, and keys of a step."""
HALF = 64
"""Scores that a thread holds at once."""
GROUP, THREADS = 128, 384
"""Threads of a warpgroup, and of a block."""
REGISTERS = 65536 // THREADS // 8 * 8
"""Registers per thread, at most."""
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
_RESULT, _WEIGHTS = 2 * TILE, 3 * TILE
_LANE = 1 << 17
"""Elements of 16 bits between two lanes of tensor memory."""


class Sm100Attention(NamedTuple):
    """Configuration of attention for sm_100."""

    element: str = "bf16"  # type of Q, K, V and the result
    head: int = 128  # elements per head, at most
    mask: str = "full"  # one of MASKS
    lse: bool = False  # also store the log-sum-exp of each row
    chip: str = CHIP  # target for which the kernel is compiled

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile of Q, K or V."""
        return TILE * self.head * 2

    @property
    def slots(self) -> int:
        """Slots of K and V in shared memory; a step takes two."""
        return 8 if self.head == 64 else 6

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block: Q, the slots, the factors, the mbarriers and the address."""
        barriers = 2 * (1 + self.slots + 2 + 1 + 2 + 2)
        return (1 + self.slots) * self.tile_bytes + 2 * TILE * 4 + 8 * barriers + 16

    @property
    def name(self) -> str:
        """Name of the kernel."""
        words = {"lse": "-lse"}
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

    def scores(self, slot: Int) -> cute.Tensor:
        """Return a slot of S."""
        return cute.make_tensor(self.memory + slot * TILE, self.layouts[0])

    def weights(self, slot: Int) -> cute.Tensor:
        """Return a slot of P."""
        first = self.memory + (_WEIGHTS + slot * (TILE // 2))
        return cute.make_tensor(cute.recast_ptr(first, dtype=self.element), self.layouts[1])

    def result(self) -> cute.Tensor:
        """Return O."""
        return cute.make_tensor(self.memory + _RESULT, self.layouts[2])


class Block(NamedTuple):
    """The tile of a block."""

    tile: Int  # index of the tile of queries
    head: Int
    batch: Int
    sharing: Int  # heads of Q per head of K
    queries: Int
    keys: Int
    shift: Int  # query i sees the keys up to i + shift, if the mask is "right"

    def end(self, mask: str, query: Int) -> Int:
        """Return the number of keys up to the last one that a query sees; it may be negative."""
        return cute.min(query + 1 + self.shift, self.keys) if mask == "right" else self.keys

    def steps(self, mask: str) -> Int:
        """Return the number of steps, at least 1."""
        return cute.max(cute.ceil_div(self.end(mask, (self.tile + 1) * TILE - 1), TILE), 1)


@cute.jit(options=f"--gpu-arch {CHIP}")
def launch(
    Q: cute.Tensor,
    K: cute.Tensor,
    V: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    scale: cute.Float32,
    shift: cute.Int32,
    config: cute.Constexpr[Sm100Attention],
):
    """Launch the kernel of a configuration.

    Args:
        Q, K, V, out: (S, D, H, B) tensors.
        lse: Log-sum-exp of each row, (S, H, B), or None.
        scale: Factor of the scores times ``log2(e)``; it is positive.
        shift: Query ``i`` sees the keys up to ``i + shift`` if the mask is "right".
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
        blackwell.make_smem_layout_a(mma_s, of_s, element, 1),
        blackwell.make_smem_layout_b(mma_s, of_s, element, c.slots),
        blackwell.make_smem_layout_b(mma_o, of_o, element, c.slots),
        blackwell.make_smem_layout_epi(element, utils.LayoutEnum.ROW_MAJOR, (TILE, c.head), 1),
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
    grid = (cute.ceil_div(Q.shape[0], TILE), Q.shape[2], Q.shape[3])
    attention(maps, (mma_s, mma_o), layouts, lse, extents, scale, config).launch(grid=grid, block=THREADS)


@cute.kernel(min_blocks=1)
def attention(
    maps: Maps,
    mmas: Mmas,
    layouts: Sequence[cute.ComposedLayout],
    lse: cute.Tensor | None,
    extents: tuple[Int, Int, Int, Int],
    scale: cute.Float32,
    config: cute.Constexpr[Sm100Attention],
):
    """Compute 128 queries of a head."""
    c, (queries, keys, sharing, shift) = config, extents
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    x, head, batch = cute.arch.block_idx()
    # With a mask the last tiles have most steps, and go first.
    tile = cute.arch.grid_dim().x - 1 - x if c.mask == "right" else x
    block = Block(tile, head, batch, sharing, queries, keys, shift)
    if warp == 0 and cute.arch.elect_one():
        for atom, _ in maps:
            cpasync.prefetch_descriptor(atom)
    element, (mma_s, mma_o) = number(c.element), mmas
    sQ, sK = (cute.smem_tensor(element, ring.outer, 1024, ring.inner) for ring in layouts[:2])
    # A slot holds keys or values. The result overwrites Q.
    sV = cute.make_tensor(cute.recast_ptr(sK.iterator, layouts[2].inner, element), layouts[2].outer)
    sO = cute.make_tensor(cute.recast_ptr(sQ.iterator, layouts[3].inner, element), layouts[3].outer)
    factors = cute.smem_tensor(cute.Float32, cute.make_layout((TILE, 2)), 16)
    slot = cute.arch.alloc_smem(cute.Int32, 1)

    loads = {"producer_group": 1, "consumer_group": 1, "tx_count": c.tile_bytes, "defer_sync": True}
    of_mma = {"producer_group": 1, "consumer_group": GROUP, "defer_sync": True}
    of_group = {"producer_group": GROUP, "num_stages": 2, "defer_sync": True}
    q = pipeline.PipelineTmaUmma.create(num_stages=1, **loads)
    kv = pipeline.PipelineTmaUmma.create(num_stages=c.slots, **loads)
    s = pipeline.PipelineUmmaAsync.create(num_stages=2, **of_mma)
    o = pipeline.PipelineUmmaAsync.create(num_stages=1, **of_mma)
    p = pipeline.PipelineAsyncUmma.create(consumer_group=1, **of_group)
    f = pipeline.PipelineAsync.create(consumer_group=GROUP, **of_group)
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

    if warp == 0 and cute.arch.elect_one():
        load(c, block, maps[:3], mmas, (sQ, sK, sV), (q.make_producer(), kv.make_producer()))
    elif warp == 1 and cute.arch.elect_one():
        q.make_consumer().wait()
        ends = kv.make_consumer(), s.make_producer(), p.make_consumer(), o.make_producer()
        multiply(mmas, (sQ, sK, sV), columns, steps, ends)
    elif warp >= 8:
        row = cute.arch.thread_idx().x - 2 * GROUP
        correct(c, columns.result(), row, steps, factors, (o.make_consumer(), f.make_consumer()), sO)
        if row == 0:
            atom, target = maps[3]
            rows = cute.local_tile(target[None, None, head, batch], (TILE, c.head), (tile, 0))
            source, rows = (cute.group_modes(y, 0, 2) for y in (sO[None, None, 0], rows))
            cute.copy(atom, *cpasync.tma_partition(atom, 0, cute.make_layout(1), source, rows))
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0, read=True)
    elif warp >= 4:
        row = cute.arch.thread_idx().x - GROUP
        at = tile * TILE + row
        ends = s.make_consumer(), p.make_producer(), f.make_producer()
        log = softmax(columns, row, block.end(c.mask, at), steps, scale, factors, ends)
        if c.lse and at < queries:
            lse[at, head, batch] = log * LN_2
    cute.arch.sync_threads()  # The releases of O and P include the fence before.
    allocator.free(pointer)


def load(
    c: Sm100Attention,
    block: Block,
    maps: Maps,
    mmas: Mmas,
    smem: Sequence[cute.Tensor],
    ends: tuple[Producer, Producer],
) -> None:
    """Load the tile of Q, and the tiles of K and V: K of a step before V of the step before."""
    (q, kv), (mma_s, mma_o), of_keys = ends, mmas, block.head // block.sharing
    of_s, of_o = mma_s.get_slice(0), mma_o.get_slice(0)
    parts = []
    for (atom, x), stages, partition, shape, head in zip(
        maps,
        smem,
        (of_s.partition_A, of_s.partition_B, of_o.partition_B),
        ((TILE, c.head), (TILE, c.head), (c.head, TILE)),
        (block.head, of_keys, of_keys),
    ):
        tiles = partition(cute.local_tile(x[None, None, head, block.batch], shape, (None, None)))
        tiles, stages = (cute.group_modes(y, 0, 3) for y in (tiles, stages))
        parts.append((atom, *cpasync.tma_partition(atom, 0, cute.make_layout(1), stages, tiles)))
    (of_q, to_q, tQ), (of_k, to_k, tK), (of_v, to_v, tV) = parts
    cute.copy(of_q, tQ[None, block.tile, 0], to_q[None, 0], tma_bar_ptr=q.acquire().barrier)
    steps = block.steps(c.mask)
    for step in range(steps + 1):
        if step < steps:
            slot = kv.acquire_and_advance()
            cute.copy(of_k, tK[None, step, 0], to_k[None, slot.index], tma_bar_ptr=slot.barrier)
        if step > 0:
            slot = kv.acquire_and_advance()
            cute.copy(of_v, tV[None, 0, step - 1], to_v[None, slot.index], tma_bar_ptr=slot.barrier)


def multiply(
    mmas: Mmas,
    smem: Sequence[cute.Tensor],
    at: Columns,
    steps: Int,
    ends: tuple[Consumer, Producer, Consumer, Producer],
) -> None:
    """Issue the MMAs: S of a step before O of the step before, which needs the weights."""
    (mma_s, mma_o), (kv, s, p, o), (sQ, sK, sV) = mmas, ends, smem
    rQ, rK, rV = mma_s.make_fragment_A(sQ), mma_s.make_fragment_B(sK), mma_o.make_fragment_B(sV)
    for step in range(steps + 1):
        if step < steps:
            slot, scores = kv.wait_and_advance(), s.acquire_and_advance()
            keys = rK[None, None, None, slot.index]
            cute.gemm(mma_s, at.scores(scores.index), rQ[None, None, None, 0], keys, accumulate=False)
            scores.commit()
            slot.release()
        if step > 0:
            slot, weights, result = kv.wait_and_advance(), p.wait_and_advance(), o.acquire_and_advance()
            values = rV[None, None, None, slot.index]
            cute.gemm(mma_o, at.result(), at.weights(weights.index), values, accumulate=step > 1)
            slot.release()
            weights.release()
            result.commit()


def softmax(
    columns: Columns,
    row: Int,
    end: Int,
    steps: Int,
    scale: cute.Float32,
    factors: cute.Tensor,
    ends: tuple[Consumer, Producer, Producer],
) -> cute.Float32:
    """Compute the weights of a row, which sees keys up to ``end``, and send the factors of its result.

    Returns the base-2 logarithm of the sum of the weights' powers, -inf for a row that sees no key.
    """
    s, p, f = ends
    most, total, offset = cute.Float32(float("-inf")), cute.Float32(0.0), cute.Float32(0.0)
    load_op = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x64), cute.Float32)
    store_op = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), columns.element)
    for step in range(steps):
        scores, visible = s.wait_and_advance(), end - step * TILE
        matrix = columns.scores(scores.index)[(None, None), 0, 0]
        load = tcgen05.make_tmem_copy(load_op, matrix).get_slice(row)
        source = load.partition_S(matrix)
        # S is loaded twice, for the maximum and for the weights, so that a thread holds half a row.
        found = most
        for i in cute.range_constexpr(TILE // HALF):
            half = half_row(load, source[None, None, i], visible - i * HALF)
            found = cute.arch.fmax(found, half.load().max())
        after = found if (found - most) * scale > SLACK else most
        offset = after * scale if after != float("-inf") else cute.Float32(0.0)
        by = cute.math.exp2(most * scale - offset, fastmath=True)
        most, total = after, total * by
        if step > 0:
            send(f, factors, row, by)
        weights = p.acquire_and_advance()
        first = columns.weights(weights.index).iterator
        matrix = cute.make_tensor(first, cute.make_layout((TILE, TILE), stride=(_LANE, 1)))
        store = tcgen05.make_tmem_copy(store_op, matrix).get_slice(row)
        target = store.partition_D(matrix)
        for i in cute.range_constexpr(TILE // HALF):
            half = half_row(load, source[None, None, i], visible - i * HALF)
            for j in cute.range_constexpr(HALF):
                half[j] = cute.math.exp2(cute.math.fma(half[j], scale, -offset), fastmath=True)
            total += half.load().reduce(cute.ReductionOp.ADD, 0.0, 0)
            rounded = cute.make_rmem_tensor((HALF, 1), columns.element)
            rounded.store(half.load().to(columns.element))
            cute.copy(store, rounded, target[None, None, i])
        scores.release()
        cute.arch.fence_view_async_tmem_store()
        weights.commit()
    send(f, factors, row, 1.0 / total if total > 0.0 else cute.Float32(0.0))
    return offset + cute.math.log2(total)


def half_row(load: cute.TiledCopy, source: cute.Tensor, visible: Int) -> cute.Tensor:
    """Load half a row of scores. Those from ``visible`` on become -inf."""
    scores = cute.make_rmem_tensor((HALF, 1), cute.Float32)
    cute.copy(load, source, scores)
    if visible < HALF:
        for i in cute.range_constexpr(HALF):
            score = scores[i]
            scores[i] = score if i < visible else cute.Float32(float("-inf"))
    return scores


def send(f: pipeline.PipelineProducer, factors: cute.Tensor, row: Int, by: cute.Float32) -> None:
    """Send the factor of a row of O to the warps that rescale it."""
    slot = f.acquire_and_advance()
    factors[row, slot.index] = by
    slot.commit()


def correct(
    c: Sm100Attention,
    acc: cute.Tensor,
    row: Int,
    steps: Int,
    factors: cute.Tensor,
    ends: tuple[Consumer, Consumer],
    sO: cute.Tensor,
) -> None:
    """Rescale O before each step but the first, and write the result to shared memory."""
    (o, f), matrix = ends, acc[(None, None), 0, 0]
    ops = (tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), tcgen05.St32x32bOp(tcgen05.Repetition.x32))
    load, store = (tcgen05.make_tmem_copy(cute.make_copy_atom(op, cute.Float32), matrix).get_slice(row) for op in ops)
    source, target = load.partition_S(matrix), store.partition_D(matrix)
    for step in range(steps):
        slot = f.wait_and_advance()
        by = factors[row, slot.index]
        slot.release()
        result = o.wait_and_advance()
        if step < steps - 1:
            if cute.arch.vote_any_sync(by != 1.0):
                for i in cute.range_constexpr(c.head // 32):
                    part = cute.make_rmem_tensor((32, 1), cute.Float32)
                    cute.copy(load, source[None, None, i], part)
                    part.store(part.load() * by)
                    cute.copy(store, part, target[None, None, i])
                cute.arch.fence_view_async_tmem_store()
        else:
            for i in cute.range_constexpr(c.head // 32):
                part = cute.make_rmem_tensor((32, 1), cute.Float32)
                cute.copy(load, source[None, None, i], part)
                rounded = cute.make_rmem_tensor(32, sO.element_type)
                rounded.store((part.load() * by).to(sO.element_type))
                cute.autovec_copy(rounded, cute.local_tile(sO[row, None, 0], (32,), (i,)))
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
    return cute.trace(launch, **tensors, scale=cute.Float32, shift=cute.Int32, config=c)
