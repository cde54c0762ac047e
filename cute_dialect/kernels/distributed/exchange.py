"""Exchange of data between the blocks of equal number on all ranks: staging memory, signals, and their order.

A *channel* is the blocks of one number on all ranks.  It exchanges data in steps: each block stores data into its slots
in the staging memory of all ranks, sets a signal on all of them, and waits for theirs (:func:`meet`).  Then it reads
the slots of all ranks in its own memory.  Staging memory has two halves, which steps use in turn, so reads are not
acknowledged: a block writes a half again two steps later.  It has then seen the signals of the step in between, which
all ranks set after they have read the half.

The number of a step continues from call to call.  It is in GPU memory, one per block, so a CUDA graph can be replayed.
Blocks and sizes may differ between calls.  A signal holds the number of the step and a hash of the call.

A wait has a limit.  If a signal is late, or of another call, the block records what it has seen in ``status``, sets
:data:`ABORT` on all ranks, and neither waits nor signals any more.  Results are then undefined, and the channel is
unusable until its memory is cleared on all ranks.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.lang.ranks import WORDS
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.signature_types import Int

__all__ = [
    "ABORT",
    "CHECK_BITS",
    "LATE",
    "MOST_RANKS",
    "Caller",
    "Exchange",
    "RankMemory",
    "begin",
    "end",
    "exchange_of",
    "exchange_types",
    "line",
    "meet",
    "vector_at",
]

CHECK_BITS = 16
"""Bits of a signal that hold the hash of the call. The bits above hold the number of the step."""

ABORT = 1 << 62
"""Signal of a block whose wait has failed."""

LATE = 1
"""Status of a rank whose signal has not come within the limit. Signals of steps are greater."""

MOST_RANKS = 32
"""Largest number of ranks. Each lane of a warp waits for one."""

_FAILED = -1
"""Number of steps of a channel whose wait has failed."""


class Exchange(NamedTuple):
    """The channels of a group, as an argument of one rank.

    Attributes:
        staging: memory of all ranks, (2 blocks ranks, capacity): for each block, the halves with a slot per rank.
        ready: signals (2 blocks) of all ranks, one per block and half.
        steps: (blocks), i64, the number of completed steps per block.
        status: (ranks), i64, per rank 0, ``LATE``, or the signal of another call.
        check: the hash of the call, below ``1 << CHECK_BITS``.
        limit: the longest wait, in nanoseconds.
    """

    staging: cute.Symmetric
    ready: cute.Signals
    steps: cute.Tensor
    status: cute.Tensor
    check: cute.Int64
    limit: cute.Int64


class RankMemory(NamedTuple):
    """The memory of a rank for exchanges.

    Attributes:
        staging, addresses: its instance of the staging memory, and the addresses of all instances.
        words, word_addresses: its instance of the signals, and the addresses of all instances.
        steps, status: as in :class:`Exchange`.
    """

    staging: cute.Tensor
    addresses: cute.Tensor
    words: cute.Tensor
    word_addresses: cute.Tensor
    steps: cute.Tensor
    status: cute.Tensor


class Caller(NamedTuple):
    """The number of a rank, the hash of its call, and the longest wait in nanoseconds."""

    rank: cute.Int32
    check: cute.Int64
    limit: cute.Int64


def exchange_of(memory: RankMemory, caller: Caller, ranks: int) -> Exchange:
    """Return the channels of a rank, in a host function."""
    staging = cute.Symmetric(memory.staging, memory.addresses, caller.rank, ranks)
    words = cute.Symmetric(memory.words, memory.word_addresses, caller.rank, ranks)
    return Exchange(staging, cute.Signals(words), memory.steps, memory.status, caller.check, caller.limit)


def exchange_types(element: type[Numeric], ranks: int) -> tuple[RankMemory, Caller]:
    """Return the types of the arguments of :func:`exchange_of`, for ``cute.trace``."""
    i64, unit = cute.Tensor[cute.Int64, "?:1"], 128 // element.width
    staging = cute.Tensor[element, f"(?,?{{div={unit}}}):(?{{div={unit}}},1)"]
    words = cute.Tensor[cute.Int64, f"(?,{ranks},{WORDS}):({ranks * WORDS},{WORDS},1)"]
    return RankMemory(staging, i64, words, i64, i64, i64), Caller(cute.Int32, cute.Int64, cute.Int64)


def begin(x: Exchange) -> tuple[cute.Int64, cute.Boolean, cute.Tensor]:
    """Return the number of completed steps of this block, whether it is usable, and a flag for :func:`meet`."""
    step = x.steps[cute.arch.block_idx().x]
    failed = cute.smem_tensor(cute.Int32, cute.make_layout(1))
    if cute.arch.thread_idx().x == 0:
        failed[0] = 0
    cute.arch.sync_threads()  # steps is loaded
    return step, step >= 0, failed


def end(x: Exchange, step: cute.Int64, is_usable: cute.Boolean) -> None:
    """Store the number of completed steps of this block, for its next call."""
    if cute.arch.thread_idx().x == 0:
        x.steps[cute.arch.block_idx().x] = cute.where(is_usable, step, _FAILED)


def line(x: Exchange, step: cute.Int64, writer: Int) -> cute.Int32:
    """Return the row of staging memory that a rank writes in a step of this block."""
    return (2 * cute.arch.block_idx().x + (step % 2).to(cute.Int32)) * x.staging.ranks + writer


def meet(x: Exchange, step: cute.Int64, failed: cute.Tensor) -> cute.Boolean:
    """Signal this block's stores of a step to all ranks, and wait for those of all ranks.

    The block has stored its data into the rows ``line(x, step, rank)`` of all ranks, and may read its own afterwards.

    Returns:
        False if a wait has failed. The block must then neither read nor store data, nor meet again.
    """
    thread, ranks = cute.arch.thread_idx().x, x.ready.words.ranks
    slot = 2 * cute.arch.block_idx().x + (step % 2).to(cute.Int32)
    least = step << CHECK_BITS
    word = least | x.check
    cute.arch.sync_threads()
    if thread < 32:
        if thread < ranks:
            x.ready.set(thread, slot, word)
        cute.arch.sync_warp()
        if thread < ranks:
            seen = x.ready.wait(slot, thread, least, limit=x.limit)
            if seen != word:
                _fail(x, failed, thread, cute.where(seen < least, LATE, seen))
    cute.arch.sync_threads()
    return failed[0] == 0


def _fail(x: Exchange, failed: cute.Tensor, rank: cute.Int32, seen: cute.Int64) -> None:
    """Record what this block has seen instead of a rank's signal, and end the waits of all ranks for this block."""
    cute.arch.red(failed.iterator, 1, op="max")
    status = x.status.iterator + rank
    if cute.arch.load(status, sem="relaxed", scope="sys") == 0:
        cute.arch.store(status, seen, sem="relaxed", scope="sys")
    for there in range(x.ready.words.ranks):
        for half in cute.range_constexpr(2):
            x.ready.set(there, 2 * cute.arch.block_idx().x + half, ABORT)


def vector_at(t: cute.Tensor, index: Int, width: int) -> cute.Tensor:
    """Return ``width`` elements of a vector from an index on, which are aligned if there are several."""
    at = t.iterator + index
    return cute.make_tensor(at.align(width * t.element_type.width // 8), cute.make_layout(width))
