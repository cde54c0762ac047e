"""Memory of a rank for exchanges with other ranks, and errors of its status words."""

# torch is not installed where types are checked.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.distributed.exchange import ABORT, LATE
from cute_dialect.op.errors import DistributedError
from cute_dialect.runtime.arrays import ArrayView, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.lang.ranks import Symmetric
    from cute_dialect.op.signature_types import Array


class MemoryShape(NamedTuple):
    """Sizes of the memory of a rank for an exchange.

    Attributes:
        slots: rows of the staging memory.
        slot: bytes of a slot; memory with larger slots will do.
        signals: the number of signals; memory with more will do.
        steps: numbers of calls or steps, and counters.
    """

    slots: int
    slot: int
    signals: int
    steps: int

    def serves(self, other: MemoryShape) -> bool:
        """Return True if memory of this shape can be used where another shape is needed."""
        return (self.slots, self.steps) == (other.slots, other.steps) and (
            self.slot >= other.slot and self.signals >= other.signals
        )

    @property
    def rounded(self) -> MemoryShape:
        """The shape with sizes rounded up to powers of two, so that calls of similar sizes share memory."""
        return self._replace(slot=_rounded(self.slot), signals=_rounded(self.signals))


def _rounded(x: int) -> int:
    return 1 << (x - 1).bit_length()


class ChannelMemory(NamedTuple):
    """The memory of a rank for an exchange, in the order of kernel arguments; see
    :class:`~cute_dialect.kernels.distributed.exchange.Exchange`.
    """

    staging: ArrayView  # bytes, (slots, bytes of a slot)
    addresses: ArrayView
    words: ArrayView
    word_addresses: ArrayView
    steps: ArrayView
    status: ArrayView

    def of_type(self, element: str, size: int) -> ChannelMemory:
        """Return the memory with slots of elements of ``size`` bytes."""
        slots, slot = self.staging.shape
        staging = self.staging._replace(shape=(slots, slot // size), strides=(slot // size, 1), dtype=element)
        return self._replace(staging=staging)


def views_of(staging: Symmetric, words: Symmetric, steps: Array, status: Array) -> ChannelMemory:
    """Return the memory of a rank as views."""
    parts: list[object] = [staging.local, staging.table, words.local, words.table, steps, status]
    return ChannelMemory(*map(view_of, parts))


class GpuMemory(NamedTuple):
    """The memory of a rank for one stream, and what keeps it alive."""

    shape: MemoryShape
    views: ChannelMemory
    status: Array  # pinned memory of the host
    tensors: tuple[Array, ...]  # memory that is cleared

    def clear(self) -> None:
        """Fill the memory with zeros."""
        for tensor in self.tensors:
            tensor.zero_()
        self.status.zero_()

    def check(self, call: str, last: str, milliseconds: int) -> None:
        """Raise DistributedError if an exchange has failed; the arguments are those of :func:`failure_text`."""
        status = self.status.tolist()
        if any(status):
            raise DistributedError(failure_text(call, last, status, milliseconds))


def gpu_memory(shape: MemoryShape, staging: Array, words: Array, tables: Sequence[Array]) -> GpuMemory:
    """Return the memory of a rank on its GPU.

    Args:
        shape: the shape of the memory.
        staging: its instance of the staging memory, (slots, bytes of a slot).
        words: its instance of the signals, (signals, ranks, words of a signal).
        tables: for each of the two, the addresses of all instances.
    """
    torch = sys.modules["torch"]
    device, (_, ranks, _) = words.device, words.shape
    steps = torch.zeros(shape.steps, dtype=torch.int64, device=device)
    status = torch.zeros(ranks, dtype=torch.int64, pin_memory=device.type == "cuda")
    data, addresses, of_signals, signal_addresses, counts = map(view_of, (staging, tables[0], words, tables[1], steps))
    # The GPU writes the status into pinned memory of the host, which has the same address there.
    on_gpu = view_of(status)._replace(device=data.device)
    views = ChannelMemory(data, addresses, of_signals, signal_addresses, counts, on_gpu)
    return GpuMemory(shape, views, status, (staging, words, steps))


def failure_text(call: str, last: str, status: Sequence[int], milliseconds: int) -> str:
    """Return the error for a failed exchange.

    Args:
        call: the function that reports the failure.
        last: the text of the last call that was launched.
        status: what was seen of each rank; see :class:`~cute_dialect.kernels.distributed.exchange.Exchange`.
        milliseconds: the limit of waits.

    >>> failure_text("all_reduce", "all_reduce of (8,) bf16", [0, 0, 1], 30000).partition(";")[0]
    'all_reduce: rank 2 sent nothing within 30 s (ranks 0 and 1 did)'
    """
    reason = failure(status, milliseconds)
    return f"{call}: {reason}; the last call of this rank was {last}; call op.distributed.reset on all ranks"


def failure(status: Sequence[int], milliseconds: int) -> str:
    """Return the reason for a failed exchange."""
    late = [r for r, s in enumerate(status) if s == LATE]
    other = [r for r, s in enumerate(status) if LATE < s < ABORT]
    gave_up = [r for r, s in enumerate(status) if s >= ABORT]
    came = [r for r, s in enumerate(status) if s == 0]
    found: list[str] = []
    if late:
        did = f" ({_named(came)} did)" if came else ""
        found.append(f"{_named(late)} sent nothing within {milliseconds / 1000:g} s{did}")
    if other:
        found.append(f"{_named(other)} made another call; compare the shapes, types and options of all ranks")
    if gave_up and not found:
        found.append(f"{_named(gave_up)} failed in the call; see the error there")
    return "; ".join(found)


def _named(ranks: Sequence[int]) -> str:
    """Return a list of ranks as text."""
    *most, last = map(str, ranks)
    return f"ranks {', '.join(most)} and {last}" if most else f"rank {last}"
