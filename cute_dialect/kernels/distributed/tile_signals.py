"""Signals per tile between the blocks of several ranks: the call's number, waits, and the end of a call.

All calls of a group with this memory are numbered.  The number is in GPU memory, so a CUDA graph can be replayed; the
last block of a call increments it.  Calls use the two halves of the staging memory and of the signals in turn.  A half
needs no acknowledgement: a rank writes a half of a peer again two calls later.  It has then seen a signal of the peer
for the call in between, which the peer sends after it has ended the call that read the half.  Each call must therefore
wait for a signal of every peer.

A signal is the number of the call and a hash of its text, as in :mod:`~cute_dialect.kernels.distributed.exchange`.  A
wait that fails records the rank in ``status``.  The block then waits no more, and later calls send nothing.

    steps: the number of completed calls (-1 after a failure), blocks that have ended, a failure, counters
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false

from collections.abc import Callable
from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.distributed.exchange import CHECK_BITS, LATE, Exchange
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.lang.values.signature_types import Int

__all__ = ["COUNTERS", "HELPERS", "Call", "begin", "end", "half_of", "take_roles"]

_FAILED = -1
_ENDED, _FAILURE = 1, 2

_OWN_LIMIT = 1 << 61
"""Limit of a wait for the own rank, whose consumers always signal."""

COUNTERS = 3
"""Index of the first counter in ``steps``."""

HELPERS = 96
"""Threads of the producer warpgroup that communicate: all but the producer's warp."""

_REGISTERS = {2: (56, 224)}
"""Consumers -> registers per thread of the producer warpgroup and of a consumer."""

CONSUMER_BARRIER, HELPER_BARRIER, END_BARRIER = 1, 8, 9
"""Named barriers."""


class Call(NamedTuple):
    """A call in a kernel.

    Attributes:
        x: the memory of the exchange.
        word: the signal of the call.
        half: 0 or 1, the half of the memory.
        is_usable: False if an earlier call has failed. The block then neither sends nor waits.
        failed: a flag in shared memory, set by a wait of the helpers that fails.
    """

    x: Exchange
    word: cute.Int64
    half: cute.Int32
    is_usable: cute.Boolean
    failed: cute.Tensor

    def send(self, rank: Int, slot: Int) -> None:
        """Signal a rank, after the accesses of this thread and of those that it has met at a barrier."""
        self.x.ready.set(rank, 2 * slot + self.half, self.word)

    def wait(self, slot: Int, writer: Int, then: str | None = None) -> cute.Boolean:
        """Wait for the signal of a rank, and return False if it is late or of another call."""
        least = (self.word >> CHECK_BITS) << CHECK_BITS
        limit = cute.where(writer == self.x.staging.rank, _OWN_LIMIT, self.x.limit)
        seen = self.x.ready.wait(2 * slot + self.half, writer, least, then=then, limit=limit)
        if seen != self.word:
            cute.arch.red(self.x.steps.iterator + _FAILURE, cute.Int64(1), op="max")
            status = self.x.status.iterator + writer
            if cute.arch.load(status, sem="relaxed", scope="sys") == 0:
                cute.arch.store(status, cute.where(seen < least, LATE, seen), sem="relaxed", scope="sys")
        return seen == self.word

    def begin_helpers(self) -> None:
        """Begin the work of the helpers, in all of them."""
        if cute.arch.thread_idx().x == 32:
            self.failed[0] = 0
        cute.arch.barrier(HELPER_BARRIER, HELPERS)  # the flag is clear

    def wait_for_all(self, slot: Int) -> cute.Boolean:
        """Wait for the signals of all ranks, in all helpers. Return False if a wait has failed."""
        helper = cute.arch.thread_idx().x - 32
        if helper < self.x.ready.words.ranks and not self.wait(slot, helper):
            cute.arch.red(self.failed.iterator, 1, op="max")
        return self._meet()

    def wait_for(self, slot: Int, writer: Int) -> cute.Boolean:
        """Wait for the signal of a rank, in all helpers. Return False if the wait has failed."""
        if cute.arch.thread_idx().x == 32 and not self.wait(slot, writer):
            self.failed[0] = 1
        return self._meet()

    def _meet(self) -> cute.Boolean:
        """Meet all helpers, and return False in all of them if a wait has failed."""
        cute.arch.barrier(HELPER_BARRIER, HELPERS)
        found = self.failed[0]
        cute.arch.barrier(HELPER_BARRIER, HELPERS)  # before the flag can be set again
        return found == 0


def half_of(staging: cute.Tensor, half: Int, layout: cute.Layout) -> cute.Tensor:
    """Return one half of a rank's staging memory as a tensor. Calls alternate between the two halves."""
    start = staging.iterator + cute.crd2idx((half, 0), staging.layout)
    return cute.make_tensor(start.align(128), layout)


def begin(x: Exchange) -> Call:
    """Return the state of this call: its number, signal word and half of the memory. All threads call it."""
    number = x.steps[0]
    failed = cute.smem_tensor(cute.Int32, cute.make_layout(1))
    word = (number + 1) << CHECK_BITS | x.check
    return Call(x, word, ((number + 1) % 2).to(cute.Int32), number >= 0, failed)


def end(call: Call, threads: int) -> None:
    """End a call, in all ``threads`` threads of all blocks. The last block counts it."""
    cute.arch.barrier(END_BARRIER, threads)
    if cute.arch.thread_idx().x == 0:
        steps = call.x.steps.iterator
        if not call.is_usable:
            cute.arch.red(steps + _FAILURE, cute.Int64(1), op="max")
        ended = cute.arch.atomic_add(steps + _ENDED, cute.Int64(1), sem="acq_rel", scope="gpu")
        if ended == cute.arch.grid_dim().x - 1:
            is_usable = cute.arch.load(steps + _FAILURE, sem="relaxed", scope="gpu") == 0
            call.x.steps[_ENDED] = 0
            call.x.steps[0] = cute.where(is_usable, call.word >> CHECK_BITS, _FAILED)


def take_roles(
    c: GemmConfig,
    produce: Callable[[], None],
    consume: Callable[[cute.Int32], None],
    communicate: Callable[[], None],
) -> None:
    """Run ``produce`` in one thread, ``communicate`` in the helpers, and ``consume(index)`` in the other warpgroups."""
    warp_group, warp = cute.arch.warpgroup_idx(), cute.arch.warp_idx() % 4
    if warp_group == 0:
        if c.consumers in _REGISTERS:
            cute.arch.setmaxregister_decrease(_REGISTERS[c.consumers][0])
        if warp == 0:
            if cute.arch.elect_one():
                produce()
        else:
            communicate()
    else:
        if c.consumers in _REGISTERS:
            cute.arch.setmaxregister_increase(_REGISTERS[c.consumers][1])
        consume(warp_group - 1)
    if c.cluster > 1:
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
