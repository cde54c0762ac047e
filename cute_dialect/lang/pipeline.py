"""Pipelines: circular buffers of stages in shared memory, between producer and consumer threads.

A pipeline has ``num_stages`` slots.  The *phase* (0 or 1) is the parity of the number of passes over the slots.  A
:class:`PipelineState` holds slot and phase, and ``advance()`` moves to the next slot.  Each slot has two mbarriers (PTX
ISA, "mbarrier"), *full* and *empty*.  A producer starts with phase 1, so that a new pipeline is empty: the phase before
the first counts as complete.

::

    pipe = pipeline.PipelineTmaAsync.create(num_stages=4, producer_group=…, consumer_group=…, tx_count=bytes,
                                            barrier_storage=storage.barriers.data_ptr())
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 4)
    pipe.producer_acquire(state)                       # wait for the slot, and set its expected bytes
    cute.copy(atom, source, slots[None, state.index], tma_bar_ptr=pipe.producer_get_barrier(state))
    state.advance()

The names are CuTe DSL's.  This module is written in the kernel language itself, so the source shows what is emitted.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.errors import UsageError
from cute_dialect.lang.machine.threads import issues
from cute_dialect.lang.tracing.errors import KernelTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cute_dialect.lang.values.dtypes import Boolean
    from cute_dialect.lang.values.pointers import Pointer
    from cute_dialect.lang.values.signature_types import Condition, Int, LayoutLike, Shape


__all__ = [
    "Agent", "CooperativeGroup", "NamedBarrier", "PipelineAsync", "PipelineAsyncUmma", "PipelineClcFetchAsync",
    "PipelineConsumer", "PipelineCpAsync", "PipelineOrder", "PipelineProducer", "PipelineState", "PipelineTmaAsync",
    "PipelineTmaMultiConsumersAsync", "PipelineTmaStore", "PipelineTmaUmma", "PipelineUmmaAsync", "PipelineUserType",
    "arrive", "arrive_and_wait", "make_pipeline_state", "pipeline_init_arrive", "pipeline_init_wait", "sync",
]  # fmt: skip


class Agent(Enum):
    """Kinds of participants in a pipeline."""

    Thread = "thread"
    Warp = "warp"
    WarpGroup = "warpgroup"
    """Four warps that count as one participant. (CuTe DSL counts the warps of a TMA pipeline's consumers instead.)"""
    ThreadBlock = "block"
    ThreadBlockCluster = "cluster"


class CooperativeGroup:
    """The threads of one side of a pipeline. ``size`` arrivals complete its barrier."""

    def __init__(self, agent: Agent = Agent.Thread, size: int = 1):
        if not size >= 1:
            raise UsageError(f"CooperativeGroup: size must be at least 1, got {size}")
        self.agent = agent
        self.size = size


class PipelineUserType(Enum):
    """The sides of a pipeline."""

    Producer = "producer"
    Consumer = "consumer"
    ProducerConsumer = "producer and consumer"
    """A producer that also consumes; its state is that of a producer."""


class PipelineState:
    """The position of one side of a pipeline.

    ``index`` is the slot, ``phase`` its parity, and ``count`` the number of the item.
    """

    def __init__(self, stages: int, count: Int, index: Int, phase: Int):
        self.stages = stages
        self._count = count
        self._index = index
        self._phase = phase

    @property
    def count(self) -> Int:
        """The number of the item."""
        return self._count

    @property
    def index(self) -> Int:
        """The slot."""
        return self._index

    @property
    def phase(self) -> Int:
        """The parity of the number of passes over the slots."""
        return self._phase

    def clone(self) -> PipelineState:
        """Return a copy of the state."""
        return PipelineState(self.stages, self._count, self._index, self._phase)

    def advance(self) -> None:
        """Move to the next slot."""
        following = self._index + 1
        wraps = following == self.stages
        self._index = 0 if wraps else following
        self._phase = self._phase ^ (1 if wraps else 0)
        self._count = self._count + 1

    def reverse(self) -> None:
        """Move back to the previous slot."""
        first = self._index == 0
        self._index = self.stages - 1 if first else self._index - 1
        self._phase = self._phase ^ (1 if first else 0)
        self._count = self._count - 1

    def skip(self, items: Int) -> None:
        """Move forward by a number of slots."""
        at = self._index + items
        self._index = at % self.stages
        self._phase = self._phase ^ ((at // self.stages) & 1)
        self._count = self._count + items

    def reset_count(self) -> None:
        """Reset the count of items to 0."""
        self._count = cute.Int32(0)


def make_pipeline_state(user: PipelineUserType, stages: int) -> PipelineState:
    """Return the initial state of one side of a new pipeline."""
    phase = 0 if user is PipelineUserType.Consumer else 1
    return PipelineState(stages, cute.Int32(0), cute.Int32(0), cute.Int32(phase))


class NamedBarrier:
    """One of the block's sixteen named barriers, for ``num_threads`` threads."""

    def __init__(self, barrier_id: int, num_threads: int):
        if not 0 <= barrier_id < 16:
            raise UsageError(f"NamedBarrier: barrier_id must be 0 to 15, got {barrier_id}")
        self.barrier_id = barrier_id
        self.num_threads = num_threads

    def arrive(self) -> None:
        """Arrive without waiting."""
        cute.arch.barrier_arrive(barrier_id=self.barrier_id, number_of_threads=self.num_threads)

    def arrive_and_wait(self) -> None:
        """Wait until all threads have arrived."""
        cute.arch.barrier(barrier_id=self.barrier_id, number_of_threads=self.num_threads)

    wait = arrive_and_wait
    sync = arrive_and_wait


def sync(barrier_id: int = 0) -> None:
    """Synchronize all threads of the block at one of its barriers."""
    cute.arch.barrier(barrier_id=barrier_id)


def arrive(barrier_id: int, num_threads: int) -> None:
    """Arrive at a named barrier for ``num_threads`` threads without waiting."""
    cute.arch.barrier_arrive(barrier_id, num_threads)


def arrive_and_wait(barrier_id: int, num_threads: int) -> None:
    """Arrive at a named barrier and wait until ``num_threads`` threads have arrived."""
    cute.arch.barrier(barrier_id, num_threads)


def pipeline_init_arrive(cluster_shape_mn: Shape = None, is_relaxed: bool = False) -> None:
    """Signal to the cluster, if there is one, that this block has initialized its barriers."""
    if cluster_shape_mn is not None and cute.size(cluster_shape_mn) > 1:
        if is_relaxed:
            cute.arch.cluster_arrive_relaxed()
        else:
            cute.arch.cluster_arrive()


def pipeline_init_wait(cluster_shape_mn: Shape = None) -> None:
    """Wait until the barriers are visible to every block of the cluster (or every thread of the block)."""
    if cluster_shape_mn is not None and cute.size(cluster_shape_mn) > 1:
        cute.arch.cluster_wait()
    else:
        cute.arch.sync_threads()


class Slot(NamedTuple):
    """A slot held by one side, with ``commit()`` for the producer and ``release()`` for the consumer."""

    pipe: Any
    index: Any
    """The index of the slot."""
    phase: Any
    count: Any
    """The number of the item."""

    @property
    def barrier(self) -> Any:
        """The full barrier of the slot."""
        return self.pipe.producer_get_barrier(self)

    def commit(self) -> None:
        """Signal that the producer's data is complete."""
        self.pipe.producer_commit(self)

    def release(self) -> None:
        """Signal that the slot may be overwritten."""
        self.pipe.consumer_release(self)


class PipelineProducer:
    """The producer's side of a pipeline, with its own state."""

    ImmutableResourceHandle = Slot

    def __init__(self, pipe: Any, state: PipelineState):
        self.pipe = pipe
        self.state = state

    def acquire(self, try_token: Condition | None = None) -> Slot:
        """Wait until the current slot is empty."""
        self.pipe.producer_acquire(self.state, try_token)
        return Slot(self.pipe, self.state.index, self.state.phase, self.state.count)

    def advance(self) -> None:
        """Move to the next slot."""
        self.state.advance()

    def acquire_and_advance(self, try_token: Condition | None = None) -> Slot:
        """Wait until the current slot is empty, move on, and return the slot."""
        slot = self.acquire(try_token)
        self.state.advance()
        return slot

    def try_acquire(self) -> Boolean:
        """Return True if the current slot is empty."""
        return self.pipe.producer_try_acquire(self.state)

    def reset(self) -> None:
        """Reset the count of items to 0, for example for the steps of another tile. The slot stays."""
        self.state.reset_count()

    def commit(self, slot: Slot | None = None) -> None:
        """Signal that the data is complete."""
        self.pipe.producer_commit(self.state if slot is None else slot)

    def tail(self) -> None:
        """Wait until no consumer needs this block's slots."""
        self.pipe.producer_tail(self.state)


class PipelineConsumer:
    """The consumer's side of a pipeline, with its own state."""

    ImmutableResourceHandle = Slot

    def __init__(self, pipe: Any, state: PipelineState):
        self.pipe = pipe
        self.state = state

    def wait(self, try_token: Condition | None = None) -> Slot:
        """Wait until the current slot is full."""
        self.pipe.consumer_wait(self.state, try_token)
        return Slot(self.pipe, self.state.index, self.state.phase, self.state.count)

    def reset(self) -> None:
        """Reset the count of items to 0, for example for the steps of another tile. The slot stays."""
        self.state.reset_count()

    def advance(self) -> None:
        """Move to the next slot."""
        self.state.advance()

    def wait_and_advance(self, try_token: Condition | None = None) -> Slot:
        """Wait until the current slot is full, move on, and return the slot."""
        slot = self.wait(try_token)
        self.state.advance()
        return slot

    def try_wait(self) -> Boolean:
        """Return True if the current slot is full."""
        return self.pipe.consumer_try_wait(self.state)

    def release(self, slot: Slot | None = None) -> None:
        """Signal that a slot may be overwritten."""
        self.pipe.consumer_release(self.state if slot is None else slot)


class PipelineAsync:
    """A pipeline in which threads on both sides access shared memory directly."""

    def __init__(self, barriers: Any, num_stages: int, producers: int, consumers: int, agent: Agent = Agent.Thread):
        if agent is not Agent.Thread:
            raise UsageError(
                f"{type(self).__name__}: the consumer group must have Agent.Thread, got Agent.{agent.name}"
            )
        self.barriers = barriers
        self.num_stages = num_stages
        self.producers = producers
        self.consumers = consumers

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup | int,
        consumer_group: CooperativeGroup | int,
        barrier_storage: Pointer | None = None,
        defer_sync: bool = False,
        **others: Any,
    ) -> Any:
        """Create the pipeline and initialize its ``2 * num_stages`` barriers.

        Args:
            num_stages: the number of slots.
            producer_group, consumer_group: a :class:`CooperativeGroup`, or the number of arrivals.
            barrier_storage: a pointer to ``Int64`` elements; allocated by default.
            defer_sync: the caller synchronizes the threads after the initialization.
        """
        if num_stages < 1:
            raise UsageError(f"num_stages must be at least 1, got {num_stages}")
        if barrier_storage is None:
            barrier_storage = cute.arch.alloc_smem(cute.Int64, 2 * num_stages, alignment=8)
        agent = getattr(consumer_group, "agent", Agent.Thread)
        pipe = cls(barrier_storage, num_stages, _size_of(producer_group), _size_of(consumer_group), agent, **others)
        pipe.init_barriers()
        if not defer_sync:
            pipe.sync()
        return pipe

    def init_barriers(self) -> None:
        """Initialize the barriers, from one thread."""
        if cute.arch.warp_idx() == 0:
            with cute.arch.elect_one():
                for stage in cute.range_constexpr(self.num_stages):
                    cute.arch.mbarrier_init(self.barriers + self.num_stages + stage, self.consumers)
                    cute.arch.mbarrier_init(self.barriers + stage, self.producers)
                cute.arch.mbarrier_init_fence()

    def sync(self) -> None:
        """Make the barriers visible to all threads."""
        cute.arch.sync_threads()

    def full(self, index: Int) -> Pointer:
        """Return the full barrier of a slot."""
        return self.barriers + index

    def empty(self, index: Int) -> Pointer:
        """Return the empty barrier of a slot."""
        return self.barriers + (index + self.num_stages)

    def producer_try_acquire(self, state: PipelineState) -> Boolean:
        """Return True if the slot is empty."""
        return cute.arch.mbarrier_try_wait(self.empty(state.index), state.phase)

    def producer_acquire(self, state: PipelineState, try_token: Condition | None = None) -> None:
        """Wait until the slot is empty. ``try_token`` is the result of ``producer_try_acquire``."""
        if try_token is None or not try_token:
            cute.arch.mbarrier_wait(self.empty(state.index), state.phase)

    def producer_get_barrier(self, state: PipelineState) -> Pointer:
        """Return the barrier that asynchronous copies into the slot signal."""
        return self.full(state.index)

    def producer_commit(self, state: PipelineState) -> None:
        """Signal that this thread's data is complete."""
        cute.arch.mbarrier_arrive(self.full(state.index))

    def producer_tail(self, state: PipelineState) -> None:
        """Wait until all slots are empty, without changing the state."""
        last = state.clone()
        for _ in cute.range_constexpr(self.num_stages):
            cute.arch.mbarrier_wait(self.empty(last.index), last.phase)
            last.advance()

    def consumer_try_wait(self, state: PipelineState) -> Boolean:
        """Return True if the slot is full."""
        return cute.arch.mbarrier_try_wait(self.full(state.index), state.phase)

    def consumer_wait(self, state: PipelineState, try_token: Condition | None = None) -> None:
        """Wait until the slot is full. ``try_token`` is the result of ``consumer_try_wait``."""
        if try_token is None or not try_token:
            cute.arch.mbarrier_wait(self.full(state.index), state.phase)

    def consumer_release(self, state: PipelineState) -> None:
        """Signal that the slot may be overwritten."""
        cute.arch.mbarrier_arrive(self.empty(state.index))

    def make_producer(self) -> PipelineProducer:
        """Return the producer's side with its own state."""
        return PipelineProducer(self, make_pipeline_state(PipelineUserType.Producer, self.num_stages))

    def make_consumer(self) -> PipelineConsumer:
        """Return the consumer's side with its own state."""
        return PipelineConsumer(self, make_pipeline_state(PipelineUserType.Consumer, self.num_stages))

    def make_participants(self) -> tuple[PipelineProducer, PipelineConsumer]:
        """Return both sides, each with its own state."""
        return self.make_producer(), self.make_consumer()


class PipelineCpAsync(PipelineAsync):
    """A pipeline filled with ``cp.async``. Each producer thread arrives when its copies complete."""

    def producer_commit(self, state: PipelineState) -> None:
        """Arrive at the slot's barrier when this thread's preceding copies complete."""
        cute.arch.cp_async_mbarrier_arrive_noinc(self.full(state.index))


class PipelineTmaAsync(PipelineAsync):
    """A pipeline filled with TMA, which counts ``tx_count`` bytes on the full barrier.

    One warp per block, or one thread of it, is the producer; single-thread operations are issued by one thread.

    ``consumer_group.size`` is the number of arrivals from all blocks that empty a slot.  Each consumer warp (or
    warpgroup, with ``Agent.WarpGroup``) arrives once at every block that shares its operands: those of its row and
    column of ``cta_layout_vmnk``.  A cluster of m x n blocks thus has ``(m + n - 1) * warps`` arrivals.

    ``create`` takes two more arguments than that of :class:`PipelineAsync`:

    Args:
        tx_count: the number of bytes that fill a slot, less than 2^20.
        cta_layout_vmnk: the layout of the blocks of the cluster; None for one block.
    """

    def __init__(
        self, barriers: Any, num_stages: int, producers: int, consumers: int, agent: Agent, tx_count: int,
        cta_layout_vmnk: LayoutLike = None,
    ):  # fmt: skip
        super().__init__(barriers, num_stages, producers, consumers)
        if not 1 <= tx_count < 1 << 20:
            raise UsageError(f"tx_count must be 1 to {(1 << 20) - 1} bytes, got {tx_count}")
        self.tx_count = tx_count
        self.blocks = 1 if cta_layout_vmnk is None else cute.size(cta_layout_vmnk)
        self.target: Any = None
        self.by_warp = agent is not Agent.WarpGroup
        thread = cute.arch.lane_idx() if self.by_warp else cute.arch.thread_idx().x % 128
        self.signals = thread < self.blocks
        if cta_layout_vmnk is not None and self.blocks > 1:
            # Thread d of each warp (or warpgroup) signals block d of the cluster if they share an operand.
            self.target = thread % self.blocks
            if cute.size(cta_layout_vmnk, mode=[1]) > 1 and cute.size(cta_layout_vmnk, mode=[2]) > 1:
                own = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
                _, m, n, _ = cta_layout_vmnk.get_flat_coord(own)
                _, peer_m, peer_n, _ = cta_layout_vmnk.get_flat_coord(self.target)
                self.signals = self.signals & ((peer_m == m) | (peer_n == n))

    def sync(self) -> None:
        """Make the barriers visible to all threads of the cluster."""
        sync_blocks(self.blocks)

    def producer_acquire(self, state: PipelineState, try_token: Condition | None = None) -> None:
        """Wait until the slot is empty, and set its expected bytes."""
        super().producer_acquire(state, try_token)
        if issues():
            cute.arch.mbarrier_arrive_and_expect_tx(self.full(state.index), self.tx_count)

    def producer_commit(self, state: PipelineState) -> None:
        """Do nothing: the copies signal their completion."""

    def consumer_release(self, state: PipelineState) -> None:
        """Signal to every block that writes into the slot that it may be overwritten.

        A warp arrives after all of its lanes have read the slot. A warpgroup must synchronize its threads before.
        """
        if self.by_warp:
            cute.arch.sync_warp()
        if self.target is not None:
            cute.arch.mbarrier_arrive(self.empty(state.index), self.target, pred=self.signals)
        elif self.signals:
            cute.arch.mbarrier_arrive(self.empty(state.index))


class PipelineTmaMultiConsumersAsync(PipelineTmaAsync):
    """A pipeline filled with TMA and used by several groups of threads, each thread of which releases slots itself.

    ``consumer_group_async`` is one group or several.  All threads are in one block; use :class:`PipelineTmaAsync` for
    slots shared by a cluster.
    """

    @classmethod
    def create(
        cls,
        *,
        num_stages: int,
        producer_group: CooperativeGroup | int,
        consumer_group_async: CooperativeGroup | int | Sequence[CooperativeGroup],
        consumer_group_umma: None = None,
        **others: Any,
    ) -> Any:
        """Create the pipeline and initialize its barriers, as :meth:`PipelineAsync.create` does.

        Raises F280 for consumers that are ``tcgen05`` instructions.
        """
        if consumer_group_umma is not None:
            raise KernelTypeError("F280", "consumer_group_umma (tcgen05) needs sm_100 or later")
        groups = consumer_group_async if isinstance(consumer_group_async, tuple | list) else (consumer_group_async,)
        threads = CooperativeGroup(Agent.Thread, sum(_size_of(group) for group in groups))
        made = super().create(num_stages=num_stages, producer_group=producer_group, consumer_group=threads, **others)
        if made.blocks > 1:
            raise UsageError(f"PipelineTmaMultiConsumersAsync supports one block, got a cluster of {made.blocks}")
        return made

    def consumer_release(self, state: PipelineState) -> None:
        """Signal that this thread no longer needs the slot."""
        cute.arch.mbarrier_arrive(self.empty(state.index))


class _UmmaPipeline(PipelineAsync):
    """Base of the pipelines of ``tcgen05`` MMAs. ``cta_layout_vmnk`` is the layout of the blocks of the cluster.

    If its mode V has two blocks, a pair of blocks executes the MMAs, and threads of the even block issue them.
    """

    def __init__(
        self,
        barriers: Pointer,
        num_stages: int,
        producers: int,
        consumers: int,
        agent: Agent,
        cta_layout_vmnk: LayoutLike = None,
    ):
        super().__init__(barriers, num_stages, producers, consumers, agent)
        if cta_layout_vmnk is not None and cute.rank(cta_layout_vmnk) != 4:
            raise KernelTypeError(
                "F254",
                f"{type(self).__name__}: cta_layout_vmnk must have the modes (V, M, N, K), got {cta_layout_vmnk}",
                hint="cute.tiled_divide(cute.make_layout(cluster_shape), (tiled_mma.thr_id,))",
            )
        self.blocks = 1 if cta_layout_vmnk is None else cute.size(cta_layout_vmnk)
        self.is_pair = cta_layout_vmnk is not None and cute.size(cta_layout_vmnk, mode=[0]) == 2
        groups = cute.nvgpu.tcgen05.CtaGroup
        self.cta_group = groups.TWO if self.is_pair else groups.ONE

    def sync(self) -> None:
        """Make the barriers visible to all threads of the cluster."""
        sync_blocks(self.blocks)

    def leads(self) -> Condition:
        """Return True in the block that issues the MMAs."""
        return cute.arch.block_idx_in_cluster() % 2 == 0 if self.is_pair else True


class PipelineTmaUmma(_UmmaPipeline):
    """A pipeline filled with TMA and emptied by ``tcgen05`` MMAs.

    ``consumer_release`` commits the MMAs: the slot is empty when they are complete. One thread of the consumer's warp
    commits, that which issues the MMAs.

    In a cluster each block has its own slots. The commit empties the slots of all blocks that load operands of these
    MMAs: those of the row and the column of the block, or of the pair, in ``cta_layout_vmnk``.
    ``consumer_group.size`` is the number of commits that empty a slot: m + n - 1 for a cluster of m x n blocks or
    pairs. If a pair of blocks executes the MMAs, its slots are full when the bytes of both blocks have arrived: the
    even block expects them, and the consumer waits there.

    ``create`` takes two more arguments than that of :class:`PipelineAsync`:

    Args:
        tx_count: the number of bytes that fill a slot, of both blocks of a pair, less than 2^20.
        cta_layout_vmnk: the layout of the blocks of the cluster; None for one block.
    """

    def __init__(
        self,
        barriers: Pointer,
        num_stages: int,
        producers: int,
        consumers: int,
        agent: Agent,
        tx_count: int,
        cta_layout_vmnk: LayoutLike = None,
    ):
        super().__init__(barriers, num_stages, producers, consumers, agent, cta_layout_vmnk)
        if not 1 <= tx_count < 1 << 20:
            raise UsageError(f"PipelineTmaUmma: tx_count must be 1 to {(1 << 20) - 1} bytes, got {tx_count}")
        self.tx_count = tx_count
        self.mask: Int | None = None
        if self.blocks > 1:
            rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
            self.mask = _operand_blocks(cta_layout_vmnk, rank)

    def producer_acquire(self, state: PipelineState, try_token: Condition | None = None) -> None:
        """Wait until the slot is empty, and set its expected bytes."""
        super().producer_acquire(state, try_token)
        if self.leads() and issues():
            cute.arch.mbarrier_arrive_and_expect_tx(self.full(state.index), self.tx_count)

    def producer_commit(self, state: PipelineState) -> None:
        """Do nothing: the copies signal their completion."""

    def consumer_wait(self, state: PipelineState, try_token: Condition | None = None) -> None:
        """Wait until the slot is full."""
        super().consumer_wait(state, try_token)
        cute.nvgpu.tcgen05.fence_after_thread_sync()

    def consumer_release(self, state: PipelineState) -> None:
        """Let the slot be overwritten when the earlier MMAs are complete."""
        cute.nvgpu.tcgen05.commit(self.empty(state.index), self.mask, self.cta_group)


def _operand_blocks(cta_layout_vmnk: LayoutLike, rank: Int) -> Int:
    """Return the mask of the blocks that load operands of the MMAs of a block or of its pair."""
    _, m, n, k = cta_layout_vmnk.get_flat_coord(rank)
    mask = 0
    for v in range(cute.size(cta_layout_vmnk, mode=[0])):
        for along in (1, 2):
            mask = mask | cute.nvgpu.cpasync.create_tma_multicast_mask(cta_layout_vmnk, (v, m, n, k), along)
    return cute.Int16(mask)


class _ThreadPipeline(_UmmaPipeline):
    """Base of the pipelines between ``tcgen05`` MMAs and threads.

    Attributes:
        first: the rank of the even block of the pair, whose barriers the threads of both blocks signal; None for one
            block.
        mask: the mask of both blocks of the pair, in which commits arrive; None for one block.
    """

    def __init__(
        self,
        barriers: Pointer,
        num_stages: int,
        producers: int,
        consumers: int,
        agent: Agent,
        cta_layout_vmnk: LayoutLike = None,
    ):
        super().__init__(barriers, num_stages, producers, consumers, agent, cta_layout_vmnk)
        self.first: Int | None = None
        self.mask: Int | None = None
        if self.is_pair:
            rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
            self.first = rank // 2 * 2
            self.mask = cute.Int16(cute.Int32(3) << self.first)


class PipelineUmmaAsync(_ThreadPipeline):
    """A pipeline of accumulators in tensor memory, from ``tcgen05`` MMAs to threads that load them.

    ``producer_commit`` commits the MMAs: the slot is full when they are complete, in both blocks of a pair. The
    consumers of both release the slot at the even block, so ``consumer_group.size`` counts the arrivals of both.

    ``create`` takes one argument more than that of :class:`PipelineAsync`:

    Args:
        cta_layout_vmnk: the layout of the blocks of the cluster; None for one block.
    """

    def producer_acquire(self, state: PipelineState, try_token: Condition | None = None) -> None:
        """Wait until the accumulators have been loaded."""
        super().producer_acquire(state, try_token)
        cute.nvgpu.tcgen05.fence_after_thread_sync()

    def producer_commit(self, state: PipelineState) -> None:
        """Let the accumulators be loaded when the earlier MMAs are complete."""
        cute.nvgpu.tcgen05.commit(self.full(state.index), self.mask, self.cta_group)

    def producer_tail(self, state: PipelineState) -> None:
        """Wait until all slots are empty, in the block that issues the MMAs."""
        if self.leads():
            super().producer_tail(state)

    def consumer_wait(self, state: PipelineState, try_token: Condition | None = None) -> None:
        """Wait until the accumulators are complete."""
        super().consumer_wait(state, try_token)
        cute.nvgpu.tcgen05.fence_after_thread_sync()

    def consumer_release(self, state: PipelineState) -> None:
        """Signal that this thread has loaded its accumulators."""
        cute.nvgpu.tcgen05.fence_before_thread_sync()
        if self.first is not None:
            cute.arch.mbarrier_arrive(self.empty(state.index), self.first)
        else:
            super().consumer_release(state)


class PipelineAsyncUmma(_ThreadPipeline):
    """A pipeline of operands in tensor memory or shared memory, from threads that write them to ``tcgen05`` MMAs.

    ``consumer_release`` commits the MMAs: the slot is empty when they are complete, in both blocks of a pair. The
    producers of both commit the slot at the even block, so ``producer_group.size`` counts the arrivals of both.

    A thread waits for its stores to tensor memory (``cute.arch.fence_view_async_tmem_store``) before it commits. After
    stores to shared memory it calls ``cute.arch.fence_view_async_shared``.

    ``create`` takes one argument more than that of :class:`PipelineAsync`:

    Args:
        cta_layout_vmnk: the layout of the blocks of the cluster; None for one block.
    """

    def producer_acquire(self, state: PipelineState, try_token: Condition | None = None) -> None:
        """Wait until the MMAs that read the slot are complete."""
        super().producer_acquire(state, try_token)
        cute.nvgpu.tcgen05.fence_after_thread_sync()

    def producer_commit(self, state: PipelineState) -> None:
        """Signal that this thread's part of the operand is complete."""
        cute.nvgpu.tcgen05.fence_before_thread_sync()
        if self.first is not None:
            cute.arch.mbarrier_arrive(self.full(state.index), self.first)
        else:
            super().producer_commit(state)

    def consumer_wait(self, state: PipelineState, try_token: Condition | None = None) -> None:
        """Wait until the operand is complete."""
        super().consumer_wait(state, try_token)
        cute.nvgpu.tcgen05.fence_after_thread_sync()

    def consumer_release(self, state: PipelineState) -> None:
        """Let the slot be overwritten when the earlier MMAs are complete."""
        cute.nvgpu.tcgen05.commit(self.empty(state.index), self.mask, self.cta_group)


class PipelineClcFetchAsync(PipelineAsync):
    """A pipeline of responses of cluster launch control, from one warp of the cluster to threads of all its blocks.

    A warp of the block of rank 0 acquires a slot, which arms the full barriers of all blocks for a response, and
    requests a tile with :meth:`~cute_dialect.lang.utils.ClcDynamicPersistentTileScheduler.advance_to_next_work`. Each
    consumer thread waits, reads the response, and releases the slot at the block of rank 0. ``consumer_group.size``
    counts the threads of all blocks.

    ``create`` takes two more arguments than that of :class:`PipelineAsync`:

    Args:
        tx_count: the number of bytes of a response, 16.
        cta_layout_vmnk: the layout of the blocks of the cluster; None for one block.
    """

    def __init__(
        self,
        barriers: Pointer,
        num_stages: int,
        producers: int,
        consumers: int,
        agent: Agent,
        tx_count: int = 16,
        cta_layout_vmnk: LayoutLike = None,
    ):
        super().__init__(barriers, num_stages, producers, consumers, agent)
        if tx_count != 16:
            raise UsageError(f"PipelineClcFetchAsync: tx_count must be 16, the bytes of a response, got {tx_count}")
        self.blocks = 1 if cta_layout_vmnk is None else cute.size(cta_layout_vmnk)

    def sync(self) -> None:
        """Make the barriers visible to all threads of the cluster."""
        sync_blocks(self.blocks)

    def producer_acquire(self, state: PipelineState, try_token: Condition | None = None) -> None:
        """Wait until the slot is empty, and let each block expect a response. A whole warp calls it."""
        super().producer_acquire(state, try_token)
        if cute.const_expr(self.blocks == 1):
            if issues():
                cute.arch.mbarrier_arrive_and_expect_tx(self.full(state.index), 16)
        else:
            lane = cute.arch.lane_idx()
            if lane < self.blocks:
                cute.arch.mbarrier_arrive_and_expect_tx(self.full(state.index), 16, lane)
            cute.arch.sync_warp()

    def producer_commit(self, state: PipelineState) -> None:
        """Do nothing: the response signals its completion."""

    def consumer_release(self, state: PipelineState) -> None:
        """Signal that this thread has read the response."""
        cute.arch.fence_proxy("async.shared", space="cta")  # The next response overwrites this one.
        if cute.const_expr(self.blocks == 1):
            super().consumer_release(state)
        else:
            cute.arch.mbarrier_arrive(self.empty(state.index), 0)


def sync_blocks(blocks: int) -> None:
    """Make initialized barriers visible to all threads of a cluster of this many blocks, or of the block."""
    if blocks > 1:
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()
    else:
        cute.arch.sync_threads()


class PipelineOrder:
    """Ordered execution of groups: group 0, 1, …, ``length - 1``, then group 0 again, each after the previous is done.

    Each group's work may have ``depth`` parts, which are ordered separately::

        order = pipeline.PipelineOrder.create(depth=1, length=2, group_id=group, producer_group=128)
        order.wait()                         # until the previous group is done
        …
        order.arrive()                       # let the next group start
    """

    def __init__(self, barriers: Any, depth: int, length: int, group_id: Int):
        self.barriers = barriers
        self.depth = depth
        self.length = length
        self.group_id = group_id
        phase = cute.Int32(1 if group_id == 0 else 0)  # Group 0 starts.
        self.state = PipelineState(depth, cute.Int32(0), cute.Int32(0), phase)

    @classmethod
    def create(
        cls,
        *,
        depth: int,
        length: int,
        group_id: Int,
        producer_group: CooperativeGroup | int,
        barrier_storage: Pointer | None = None,
        defer_sync: bool = False,
    ) -> PipelineOrder:
        """Create the order and initialize its ``depth * length`` barriers.

        Args:
            depth: the number of parts.
            length: the number of groups.
            group_id: the index of this thread's group.
            producer_group: the threads of a group, each of which arrives.
            barrier_storage: a pointer to ``Int64`` elements; allocated by default.
            defer_sync: the caller synchronizes the threads after the initialization.
        """
        if depth < 1 or length < 1:
            raise UsageError(f"PipelineOrder: depth and length must be at least 1, got {depth} and {length}")
        if barrier_storage is None:
            barrier_storage = cute.arch.alloc_smem(cute.Int64, depth * length, alignment=8)
        if cute.arch.warp_idx() == 0:
            with cute.arch.elect_one():
                for i in cute.range_constexpr(depth * length):
                    cute.arch.mbarrier_init(barrier_storage + i, _size_of(producer_group))
                cute.arch.mbarrier_init_fence()
        if not defer_sync:
            cute.arch.sync_threads()
        return cls(barrier_storage, depth, length, group_id)

    def wait(self, state: PipelineState | None = None) -> None:
        """Wait until the previous group is done with the part of a state, by default ``self.state``."""
        at = self.state if state is None else state
        cute.arch.mbarrier_wait(self.barriers + (at.index * self.length + self.group_id), at.phase)

    def arrive(self, state: PipelineState | None = None) -> PipelineState:
        """Let the next group start the part of a state, by default ``self.state``. Advance the state and return it."""
        at = self.state if state is None else state
        following = (self.group_id + 1) % self.length
        cute.arch.mbarrier_arrive(self.barriers + (at.index * self.length + following))
        at.advance()
        return at


class PipelineTmaStore:
    """A pipeline of slots written by threads and stored with TMA. One thread or warp issues the stores.

    Call ``producer_commit()`` after the copies of each item.  ``producer_acquire()`` waits until the next slot may be
    overwritten.
    """

    def __init__(self, num_stages: int, producer_group: CooperativeGroup | int):
        self.num_stages = num_stages
        self.producers = _size_of(producer_group)

    @classmethod
    def create(cls, *, num_stages: int, producer_group: CooperativeGroup | int) -> PipelineTmaStore:
        """Create the pipeline."""
        if num_stages < 1:
            raise UsageError(f"num_stages must be at least 1, got {num_stages}")
        return cls(num_stages, producer_group)

    def producer_acquire(self) -> None:
        """Wait until the slot stored ``num_stages`` items ago has been read."""
        cute.arch.cp_async_bulk_wait_group(self.num_stages - 1, read=True)

    def producer_commit(self) -> None:
        """Commit the preceding copies as a group."""
        cute.arch.cp_async_bulk_commit_group()

    def producer_tail(self) -> None:
        """Wait until every slot has been read."""
        cute.arch.cp_async_bulk_wait_group(0, read=True)


def _size_of(group: Any) -> int:
    return group if isinstance(group, int) else group.size


def __dir__() -> list[str]:
    return sorted(__all__)
