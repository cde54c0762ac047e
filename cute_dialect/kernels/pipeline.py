"""Rings of stages in shared memory between threads that fill them and threads that use them.

A ring has ``stages`` slots.  Slot ``s`` is used for the items ``s``, ``s + stages``, …; how often it has come round is
its *phase* (0 or 1).  Producer and consumer each keep a :class:`Position`, which loops carry:

    ring = TmaRing(b, stages=4, n_bytes=16384, consumers=2)
    ring.init()                                              # one thread; then all threads meet: ring.sync()
    with b.for_(0, items, carry=ring.start()) as loop:       # the producer, one thread
        at = Position(*loop.args)
        bar = ring.acquire(at)                               # the slot is free, its bytes are announced
        …copy into the slot, which tells ``bar``…
        loop.next(*ring.next(at))
    with b.for_(0, items, carry=ring.start()) as loop:       # each consumer
        at = Position(*loop.args)
        ring.wait(at)                                        # the slot is full
        …use it…
        ring.release(at)                                     # the slot is free
        loop.next(*ring.next(at))

Two mbarriers a slot carry this (PTX ISA, "mbarrier"): *full* and *empty*.  A producer waits for the empty barrier with
the opposite parity, so that a fresh ring is free: the phase before the first counts as complete.  The classes
correspond to CUTLASS's ``PipelineAsync``, ``PipelineTmaAsync`` (with clusters, multicast), ``PipelineCpAsync`` and
``PipelineTmaStore``.
"""

from __future__ import annotations

from typing import NamedTuple

from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.values import Value

__all__ = ["CopyRing", "Position", "Ring", "StoreRing", "TmaRing"]


class Position(NamedTuple):
    """A slot, and the parity of how often it has come round."""

    slot: Value
    phase: Value


class Ring:
    """Producers and consumers are threads that read and write shared memory themselves.

    ``producers``, ``consumers``: arrivals that make a slot full, and empty, in one block.  ``cluster``: blocks whose
    consumers a producer waits for; each consumer then releases the slot in all of them.
    """

    def __init__(self, b: Builder, *, stages: int, producers: int = 1, consumers: int = 1, cluster: int = 1):
        for what, n in (("stages", stages), ("producers", producers), ("consumers", consumers), ("blocks", cluster)):
            if n < 1:
                raise ValueError(f"expected at least one of {what}, got {n}")
        self.b, self.stages, self.cluster = b, stages, cluster
        self.producers, self.consumers = producers, consumers
        self.barriers = b.alloc_smem(f'!cute.memref<i64, smem, "({stages},2):(1,{stages})">')

    def full(self, slot: Value | int) -> Value:
        """Return the barrier that says a slot is full."""
        return self.b.pointer(self.barriers, slot)

    def empty(self, slot: Value | int) -> Value:
        """Return the barrier that says a slot is free."""
        return self.b.pointer(self.barriers, slot + self.stages)

    def init(self) -> None:
        """Make the barriers; one thread runs this, then all meet in :meth:`sync`."""
        b = self.b
        for s in range(self.stages):
            b.run("mbarrier_init", self.full(s), self.producers)
            b.run("mbarrier_init", self.empty(s), self.consumers * self.cluster)
        b.run("fence_mbarrier_init")

    def sync(self) -> None:
        """Make the barriers visible to all threads that use the ring."""
        b = self.b
        if self.cluster > 1:
            b.run("cluster_arrive", relaxed=True)
            b.run("cluster_wait")
        else:
            b.run("barrier")

    def start(self) -> Position:
        """Return where producers and consumers begin."""
        zero = self.b.constant(0)
        return Position(zero, zero)

    def next(self, at: Position) -> Position:
        """Return the next slot."""
        b = self.b
        following = at.slot + 1
        wraps = following.eq(self.stages)
        return Position(b.select(wraps, 0, following), at.phase ^ b.to_i32(wraps))

    def acquire(self, at: Position) -> Value:
        """Wait as producer until the slot is free; gives the barrier to arrive at."""
        self._wait_until_free(at)
        return self.full(at.slot)

    def commit(self, at: Position) -> None:
        """Say as producer that what this thread has written is in the slot."""
        self.b.run("mbarrier_arrive", self.full(at.slot))

    def wait(self, at: Position) -> None:
        """Wait as consumer until the slot is full."""
        self.b.run("mbarrier_wait", self.full(at.slot), at.phase)

    def release(self, at: Position, block: Value | None = None, when: Value | None = None) -> None:
        """Say as consumer that the slot may be written again.

        In a cluster, ``block`` is the block that is told: every one of them is told once by each of ``consumers``, for
        instance by as many lanes of a warp.  ``when``: an ``i1``, who tells.
        """
        b = self.b
        bar = self.empty(at.slot)
        if block is not None:
            b.run("mbarrier_arrive_cluster", bar, block, *([when] if when is not None else []))
        elif self.cluster > 1:
            raise ValueError(f"expected the block that is told, in a cluster of {self.cluster}")
        elif when is not None:
            with b.if_(when):
                b.run("mbarrier_arrive", bar)
        else:
            b.run("mbarrier_arrive", bar)

    def drain(self, at: Position) -> None:
        """Wait as producer, at the end, until all slots are free, so that no consumer of the cluster needs this
        block.
        """
        for _ in range(self.stages):
            self._wait_until_free(at)
            at = self.next(at)

    def _wait_until_free(self, at: Position) -> None:
        self.b.run("mbarrier_wait", self.empty(at.slot), at.phase ^ 1)


class TmaRing(Ring):
    """Slots are filled by asynchronous copies (TMA, bulk copies) that count ``n_bytes`` on the full barrier.

    One thread a block is the producer.  With multicast the bytes that the copies of other blocks bring count too, so
    ``n_bytes`` is what arrives in this block.
    """

    def __init__(self, b: Builder, *, stages: int, n_bytes: int, consumers: int = 1, cluster: int = 1):
        super().__init__(b, stages=stages, consumers=consumers, cluster=cluster)
        if not 1 <= n_bytes < 1 << 20:
            raise ValueError(f"expected 1 to {(1 << 20) - 1} bytes a stage, which an mbarrier can count, got {n_bytes}")
        self.n_bytes = n_bytes

    def acquire(self, at: Position) -> Value:
        """Wait until the slot is free and announce its bytes; gives the barrier for the copies."""
        bar = super().acquire(at)
        self.b.run("mbarrier_arrive_expect_tx", bar, self.n_bytes)
        return bar

    def commit(self, at: Position) -> None:
        """Do nothing: the copies say when they are done."""


class CopyRing:
    """Slots are filled by the ``cp.async`` of all threads of the block, which also use them; no mbarrier is needed.

    The copies of one item are a group.  ``stages - 1`` groups are under way: fill that many slots (``commit`` after
    each), then for each item ``wait``, copy the item ``stages - 1`` ahead into the slot that was used last, ``commit``,
    and use the slot at hand.
    """

    def __init__(self, b: Builder, *, stages: int):
        if stages < 2:
            raise ValueError(f"expected at least two stages, got {stages}")
        self.b, self.stages = b, stages

    def commit(self) -> None:
        """Make the copies since the last one a group; call it even where there was none, so that groups count items."""
        self.b.run("cp_async_commit_group")

    def wait(self) -> None:
        """Wait until the oldest group is there, for all threads, and all have done with the slot before it."""
        self.b.run("cp_async_wait_group", n=self.stages - 2)
        self.b.run("barrier")

    def next(self, slot: Value) -> Value:
        """Return the next slot."""
        following = slot + 1
        return self.b.select(following.eq(self.stages), 0, following)


class StoreRing:
    """Slots are written by threads and stored by asynchronous copies (TMA store, bulk copies) of one of them.

    For each item: ``acquire`` (all threads), write the slot, ``publish`` (all threads), then one thread stores and
    ``commit``\\ s; ``finish`` at the end.  ``issuer`` says who that thread is: an ``i1``.
    """

    def __init__(self, b: Builder, *, stages: int, issuer: Value):
        if stages < 1:
            raise ValueError(f"expected at least one stage, got {stages}")
        self.b, self.stages, self.issuer = b, stages, issuer

    def acquire(self) -> None:
        """Wait until the slot that was stored ``stages`` items ago has been read."""
        b = self.b
        with b.if_(self.issuer):
            b.run("bulk_wait_group", n=self.stages - 1, read=True)
        b.run("barrier")

    def publish(self) -> None:
        """Make what the threads have written visible to asynchronous copies."""
        self.b.run("fence_proxy_async")
        self.b.run("barrier")

    def commit(self) -> None:
        """Make the issuer's copies of one item a group."""
        self.b.run("bulk_commit_group")

    def finish(self) -> None:
        """Wait until the issuer's copies are all done."""
        b = self.b
        with b.if_(self.issuer):
            b.run("bulk_wait_group", n=0)
