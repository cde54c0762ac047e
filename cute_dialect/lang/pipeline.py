"""Pipelines: rings of stages in shared memory between threads that fill them and threads that use them.

A ring has ``num_stages`` slots.  How often it has come round is its *phase* (0 or 1); a :class:`PipelineState` knows
slot and phase, and ``advance()`` takes it to the next one.  Two mbarriers a slot carry a ring (PTX ISA, "mbarrier"):
*full* and *empty*.  A producer begins with phase 1, so that a fresh ring is free: the phase before the first counts as
complete.

    pipe = pipeline.PipelineTmaAsync.create(num_stages=4, producer_group=…, consumer_group=…, tx_count=bytes,
                                            barrier_storage=storage.barriers.data_ptr())
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 4)
    pipe.producer_acquire(state)                       # the slot is free, its bytes are announced
    cute.copy(atom, source, slots[None, state.index], tma_bar_ptr=pipe.producer_get_barrier(state))
    state.advance()

The names are CuTe DSL's.  This module is written in the language: what it does can be read as what is emitted.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.front.elect import issues
from cute_dialect.front.errors import KernelTypeError

__all__ = [
    "Agent", "CooperativeGroup", "NamedBarrier", "PipelineAsync", "PipelineConsumer", "PipelineCpAsync",
    "PipelineOrder", "PipelineProducer", "PipelineState", "PipelineTmaAsync", "PipelineTmaMultiConsumersAsync",
    "PipelineTmaStore", "PipelineUserType",
    "arrive", "arrive_and_wait", "make_pipeline_state", "pipeline_init_arrive", "pipeline_init_wait", "sync",
]  # fmt: skip


class Agent(Enum):
    """Who takes part in a pipeline."""

    Thread = "thread"
    WarpGroup = "warp group"
    """Four warps, which count as one (ours: CuTe DSL counts the warps of a TMA pipeline's consumers)."""
    ThreadBlock = "block"
    ThreadBlockCluster = "cluster"


class CooperativeGroup:
    """The threads of one side of a pipeline: ``size`` arrivals complete its barrier."""

    def __init__(self, agent: Agent = Agent.Thread, size: int = 1):
        if not size >= 1:
            raise ValueError(f"expected a group of at least one, got {size}")
        self.agent = agent
        self.size = size


class PipelineUserType(Enum):
    """The sides of a pipeline."""

    Producer = "producer"
    Consumer = "consumer"


class PipelineState:
    """Where one side of a pipeline is: ``index`` the slot, ``phase`` its parity, ``count`` the items so far."""

    def __init__(self, stages: int, count: Any, index: Any, phase: Any):
        self.stages = stages
        self.count = count
        self.index = index
        self.phase = phase

    def clone(self) -> PipelineState:
        """Return a state of its own at the same place."""
        return PipelineState(self.stages, self.count, self.index, self.phase)

    def advance(self) -> None:
        """Go to the next slot."""
        following = self.index + 1
        wraps = following == self.stages
        self.index = 0 if wraps else following
        self.phase = self.phase ^ (1 if wraps else 0)
        self.count = self.count + 1

    def reverse(self) -> None:
        """Go back to the slot before."""
        first = self.index == 0
        self.index = self.stages - 1 if first else self.index - 1
        self.phase = self.phase ^ (1 if first else 0)
        self.count = self.count - 1

    def skip(self, items: Any) -> None:
        """Go on by so many slots at once."""
        at = self.index + items
        self.index = at % self.stages
        self.phase = self.phase ^ ((at // self.stages) & 1)
        self.count = self.count + items

    def reset_count(self) -> None:
        """Count items from 0 again."""
        self.count = cute.Int32(0)


def make_pipeline_state(user: PipelineUserType, stages: int) -> PipelineState:
    """Return the state that a side of a fresh pipeline begins with."""
    phase = 1 if user is PipelineUserType.Producer else 0
    return PipelineState(stages, cute.Int32(0), cute.Int32(0), cute.Int32(phase))


class NamedBarrier:
    """One of the block's sixteen hardware barriers, for ``num_threads`` threads."""

    def __init__(self, barrier_id: int, num_threads: int):
        if not 0 <= barrier_id < 16:
            raise ValueError(f"expected a barrier 0 to 15, got {barrier_id}")
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
    """Let all threads of the block wait for each other, at one of its barriers."""
    cute.arch.barrier(barrier_id=barrier_id)


def arrive(barrier_id: int, num_threads: int) -> None:
    """Arrive at a named barrier of ``num_threads`` threads without waiting."""
    cute.arch.barrier_arrive(barrier_id, num_threads)


def arrive_and_wait(barrier_id: int, num_threads: int) -> None:
    """Arrive at a named barrier and wait until ``num_threads`` threads have arrived."""
    cute.arch.barrier(barrier_id, num_threads)


def pipeline_init_arrive(cluster_shape_mn: Any = None, is_relaxed: bool = False) -> None:
    """Say that this block has made its barriers: to the cluster, if it is one."""
    if cluster_shape_mn is not None and cute.size(cluster_shape_mn) > 1:
        if is_relaxed:
            cute.arch.cluster_arrive_relaxed()
        else:
            cute.arch.cluster_arrive()


def pipeline_init_wait(cluster_shape_mn: Any = None) -> None:
    """Wait until every block of the cluster (every thread of the block) has seen the barriers made."""
    if cluster_shape_mn is not None and cute.size(cluster_shape_mn) > 1:
        cute.arch.cluster_wait()
    else:
        cute.arch.sync_threads()


class Slot(NamedTuple):
    """A slot that one side holds, a value: ``index``; the producer's ``commit()``, the consumer's ``release()``."""

    pipe: Any
    index: Any
    """The slot's number."""
    phase: Any
    count: Any
    """The number of the item."""

    @property
    def barrier(self) -> Any:
        """The barrier that says that the slot is full."""
        return self.pipe.producer_get_barrier(self)

    def commit(self) -> None:
        """Say that what the producer has written is there."""
        self.pipe.producer_commit(self)

    def release(self) -> None:
        """Say that the slot may be written again."""
        self.pipe.consumer_release(self)


class PipelineProducer:
    """The producer's side with a state of its own."""

    ImmutableResourceHandle = Slot

    def __init__(self, pipe: Any, state: PipelineState):
        self.pipe = pipe
        self.state = state

    def acquire(self, try_token: Any = None) -> Slot:
        """Wait until the slot at hand is free."""
        self.pipe.producer_acquire(self.state, try_token)
        return Slot(self.pipe, self.state.index, self.state.phase, self.state.count)

    def advance(self) -> None:
        """Go to the next slot."""
        self.state.advance()

    def acquire_and_advance(self, try_token: Any = None) -> Slot:
        """Wait until the slot at hand is free, return it, go on."""
        slot = self.acquire(try_token)
        self.state.advance()
        return slot

    def try_acquire(self) -> Any:
        """Tell whether the slot at hand is free now."""
        return self.pipe.producer_try_acquire(self.state)

    def commit(self, slot: Any = None) -> None:
        """Say that what was written is there."""
        self.pipe.producer_commit(self.state if slot is None else slot)

    def tail(self) -> None:
        """Wait until no consumer needs this block."""
        self.pipe.producer_tail(self.state)


class PipelineConsumer:
    """The consumer's side with a state of its own, and one for the slots it gives back later."""

    ImmutableResourceHandle = Slot

    def __init__(self, pipe: Any, state: PipelineState):
        self.pipe = pipe
        self.state = state

    def wait(self, try_token: Any = None) -> Slot:
        """Wait until the slot at hand is full."""
        self.pipe.consumer_wait(self.state, try_token)
        return Slot(self.pipe, self.state.index, self.state.phase, self.state.count)

    def advance(self) -> None:
        """Go to the next slot."""
        self.state.advance()

    def wait_and_advance(self, try_token: Any = None) -> Slot:
        """Wait until the slot at hand is full, return it, go on."""
        slot = self.wait(try_token)
        self.state.advance()
        return slot

    def try_wait(self) -> Any:
        """Tell whether the slot at hand is full now."""
        return self.pipe.consumer_try_wait(self.state)

    def release(self, slot: Any = None) -> None:
        """Say that a slot may be written again."""
        self.pipe.consumer_release(self.state if slot is None else slot)


class PipelineAsync:
    """Both sides are threads that read and write shared memory themselves."""

    def __init__(self, barriers: Any, num_stages: int, producers: int, consumers: int, agent: Agent = Agent.Thread):
        if agent is not Agent.Thread:
            raise ValueError(f"expected consumers that are threads, got Agent.{agent.name}")
        self.barriers = barriers
        self.num_stages = num_stages
        self.producers = producers
        self.consumers = consumers

    @classmethod
    def create(
        cls, *, num_stages: int, producer_group: Any, consumer_group: Any, barrier_storage: Any = None,
        defer_sync: bool = False, **others: Any,
    ) -> Any:  # fmt: skip
        """Make the barriers, ``2 * num_stages`` of them, and let all threads see them (``defer_sync``: the caller
        does).  Groups are :class:`CooperativeGroup`, or numbers of arrivals.  ``barrier_storage``: a pointer to
        ``Int64``, allocated if not given.
        """
        if num_stages < 1:
            raise ValueError(f"expected at least one stage, got {num_stages}")
        if barrier_storage is None:
            barrier_storage = cute.arch.alloc_smem(cute.Int64, 2 * num_stages, alignment=8)
        agent = getattr(consumer_group, "agent", Agent.Thread)
        pipe = cls(barrier_storage, num_stages, _size_of(producer_group), _size_of(consumer_group), agent, **others)
        pipe.init_barriers()
        if not defer_sync:
            pipe.sync()
        return pipe

    def init_barriers(self) -> None:
        """Make the barriers; one thread does."""
        if cute.arch.warp_idx() == 0:
            with cute.arch.elect_one():
                for stage in cute.range_constexpr(self.num_stages):
                    cute.arch.mbarrier_init(self.barriers + self.num_stages + stage, self.consumers)
                    cute.arch.mbarrier_init(self.barriers + stage, self.producers)
                cute.arch.mbarrier_init_fence()

    def sync(self) -> None:
        """Let all threads see the barriers."""
        cute.arch.sync_threads()

    def full(self, index: Any) -> Any:
        """Return the barrier that says that a slot is full."""
        return self.barriers + index

    def empty(self, index: Any) -> Any:
        """Return the barrier that says that a slot is free."""
        return self.barriers + (index + self.num_stages)

    def producer_try_acquire(self, state: PipelineState) -> Any:
        """Tell whether the slot is free now."""
        return cute.arch.mbarrier_try_wait(self.empty(state.index), state.phase)

    def producer_acquire(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the slot is free; ``try_token``: what ``producer_try_acquire`` said."""
        if try_token is None or not try_token:
            cute.arch.mbarrier_wait(self.empty(state.index), state.phase)

    def producer_get_barrier(self, state: PipelineState) -> Any:
        """Return the barrier to which asynchronous copies into the slot report."""
        return self.full(state.index)

    def producer_commit(self, state: PipelineState) -> None:
        """Say that what this thread has written is there."""
        cute.arch.mbarrier_arrive(self.full(state.index))

    def producer_tail(self, state: PipelineState) -> None:
        """Wait until all slots are free; the state is left as it is."""
        last = state.clone()
        for _ in cute.range_constexpr(self.num_stages):
            cute.arch.mbarrier_wait(self.empty(last.index), last.phase)
            last.advance()

    def consumer_try_wait(self, state: PipelineState) -> Any:
        """Tell whether the slot is full now."""
        return cute.arch.mbarrier_try_wait(self.full(state.index), state.phase)

    def consumer_wait(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the slot is full; ``try_token``: what ``consumer_try_wait`` said."""
        if try_token is None or not try_token:
            cute.arch.mbarrier_wait(self.full(state.index), state.phase)

    def consumer_release(self, state: PipelineState) -> None:
        """Say that the slot may be written again."""
        cute.arch.mbarrier_arrive(self.empty(state.index))

    def make_producer(self) -> PipelineProducer:
        """Return the producer's side with a state of its own."""
        return PipelineProducer(self, make_pipeline_state(PipelineUserType.Producer, self.num_stages))

    def make_consumer(self) -> PipelineConsumer:
        """Return the consumer's side with a state of its own."""
        return PipelineConsumer(self, make_pipeline_state(PipelineUserType.Consumer, self.num_stages))

    def make_participants(self) -> tuple[PipelineProducer, PipelineConsumer]:
        """Return both sides, each with a state of its own."""
        return self.make_producer(), self.make_consumer()


class PipelineCpAsync(PipelineAsync):
    """Slots are filled by ``cp.async`` of the producing threads, each of which arrives when its copies are done."""

    def producer_commit(self, state: PipelineState) -> None:
        """Arrive at the slot's barrier when this thread's copies so far are done."""
        cute.arch.cp_async_mbarrier_arrive_noinc(self.full(state.index))


class PipelineTmaAsync(PipelineAsync):
    """Slots are filled by TMA, which counts ``tx_count`` bytes on the full barrier.

    One warp of a block produces, or one thread of it: what one thread shall do, one does.

    ``consumer_group.size``: the arrivals that free a slot, from all blocks: each consuming warp (or warp group, with
    ``Agent.WarpGroup``) arrives once at every block that shares its operands, which are those of its row and of its
    column of ``cta_layout_vmnk``; so a cluster of m x n blocks has ``(m + n - 1) * warps``.
    """

    def __init__(
        self, barriers: Any, num_stages: int, producers: int, consumers: int, agent: Agent, tx_count: int,
        cta_layout_vmnk: Any = None,
    ):  # fmt: skip
        super().__init__(barriers, num_stages, producers, consumers)
        if not 1 <= tx_count < 1 << 20:
            raise ValueError(f"expected 1 to {(1 << 20) - 1} bytes a stage for an mbarrier, got {tx_count}")
        self.tx_count = tx_count
        self.blocks = 1 if cta_layout_vmnk is None else cute.size(cta_layout_vmnk)
        self.target: Any = None
        thread = cute.arch.thread_idx().x % 128 if agent is Agent.WarpGroup else cute.arch.lane_idx()
        self.signals = thread < self.blocks
        if cta_layout_vmnk is not None and self.blocks > 1:
            # Thread d of each warp (group) tells block d of the cluster, if that shares an operand with this one.
            self.target = thread % self.blocks
            if cute.size(cta_layout_vmnk, mode=[1]) > 1 and cute.size(cta_layout_vmnk, mode=[2]) > 1:
                own = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
                _, m, n, _ = cta_layout_vmnk.get_flat_coord(own)
                _, peer_m, peer_n, _ = cta_layout_vmnk.get_flat_coord(self.target)
                self.signals = self.signals & ((peer_m == m) | (peer_n == n))

    def sync(self) -> None:
        """Let all threads of the cluster see the barriers."""
        if self.blocks > 1:
            cute.arch.cluster_arrive_relaxed()
            cute.arch.cluster_wait()
        else:
            cute.arch.sync_threads()

    def producer_acquire(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the slot is free, and announce its bytes."""
        super().producer_acquire(state, try_token)
        if issues():
            cute.arch.mbarrier_arrive_and_expect_tx(self.full(state.index), self.tx_count)

    def producer_commit(self, state: PipelineState) -> None:
        """Do nothing: the copies say when they are done."""

    def consumer_release(self, state: PipelineState) -> None:
        """Say that the slot may be written again, to every block that writes into it."""
        if self.target is not None:
            cute.arch.mbarrier_arrive(self.empty(state.index), self.target, pred=self.signals)
        elif self.signals:
            cute.arch.mbarrier_arrive(self.empty(state.index))


class PipelineTmaMultiConsumersAsync(PipelineTmaAsync):
    """Slots are filled by TMA and used by several groups of threads; each thread that uses a slot frees it itself.

    ``consumer_group_async``: one group of threads, or several.  Of one block: slots that a cluster shares belong to
    :class:`PipelineTmaAsync`.
    """

    @classmethod
    def create(
        cls, *, num_stages: int, producer_group: Any, consumer_group_async: Any, consumer_group_umma: Any = None,
        **others: Any,
    ) -> Any:  # fmt: skip
        """Make the barriers, as :meth:`PipelineAsync.create` does.

        Raises F280 for consumers that are ``tcgen05`` instructions.
        """
        if consumer_group_umma is not None:
            raise KernelTypeError("F280", "consumers that are instructions of tcgen05 need sm_100 or later")
        groups = consumer_group_async if isinstance(consumer_group_async, tuple | list) else (consumer_group_async,)
        threads = CooperativeGroup(Agent.Thread, sum(_size_of(group) for group in groups))
        made = super().create(num_stages=num_stages, producer_group=producer_group, consumer_group=threads, **others)
        if made.blocks > 1:
            raise ValueError(f"expected one block, got a cluster of {made.blocks}")
        return made

    def consumer_release(self, state: PipelineState) -> None:
        """Say that this thread does not need the slot any more."""
        cute.arch.mbarrier_arrive(self.empty(state.index))


class PipelineOrder:
    """Groups that take turns: group 0, 1, …, ``length - 1``, and group 0 again, each when the one before is done.

    A turn may have ``depth`` parts, which groups pass one behind another.

        order = pipeline.PipelineOrder.create(depth=1, length=2, group_id=group, producer_group=128)
        order.wait()                         # this group's turn
        …
        order.arrive()                       # the next group's
    """

    def __init__(self, barriers: Any, depth: int, length: int, group_id: Any):
        self.barriers = barriers
        self.depth = depth
        self.length = length
        self.group_id = group_id
        phase = cute.Int32(1 if group_id == 0 else 0)  # the first turn is that of group 0
        self.state = PipelineState(depth, cute.Int32(0), cute.Int32(0), phase)

    @classmethod
    def create(
        cls, *, depth: int, length: int, group_id: Any, producer_group: Any, barrier_storage: Any = None,
        defer_sync: bool = False,
    ) -> PipelineOrder:  # fmt: skip
        """Make the barriers, ``depth * length``; ``producer_group``: the threads of a group, each of which arrives.

        ``barrier_storage``: a pointer to ``Int64``, allocated if not given.
        """
        if depth < 1 or length < 1:
            raise ValueError(f"expected at least one part and one group, got {depth} and {length}")
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

    def wait(self) -> None:
        """Wait until it is this group's turn."""
        cute.arch.mbarrier_wait(self.barriers + (self.state.index * self.length + self.group_id), self.state.phase)

    def arrive(self) -> None:
        """End this group's turn: the next group's begins."""
        following = (self.group_id + 1) % self.length
        cute.arch.mbarrier_arrive(self.barriers + (self.state.index * self.length + following))
        self.state.advance()


class PipelineTmaStore:
    """Slots are written by threads and stored by TMA; one thread or warp issues.

    After each item's copies ``producer_commit()`` makes them a group; ``producer_acquire()`` waits until the slot after
    it may be written again.
    """

    def __init__(self, num_stages: int, producer_group: Any):
        self.num_stages = num_stages
        self.producers = _size_of(producer_group)

    @classmethod
    def create(cls, *, num_stages: int, producer_group: Any) -> PipelineTmaStore:
        """Return a pipeline of stores."""
        if num_stages < 1:
            raise ValueError(f"expected at least one stage, got {num_stages}")
        return cls(num_stages, producer_group)

    def producer_acquire(self) -> None:
        """Wait until the slot that was stored ``num_stages`` items ago has been read."""
        cute.arch.cp_async_bulk_wait_group(self.num_stages - 1, read=True)

    def producer_commit(self) -> None:
        """Make the copies since the last one a group."""
        cute.arch.cp_async_bulk_commit_group()

    def producer_tail(self) -> None:
        """Wait until every slot has been read."""
        cute.arch.cp_async_bulk_wait_group(0, read=True)


def _size_of(group: Any) -> int:
    return group if isinstance(group, int) else group.size
