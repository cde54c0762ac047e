"""Groups of ranks: their memory, and checks that all ranks make the same calls.

A group is one of three kinds:

- :class:`Simulated`: the ranks of ``cute.testing.ranks``, within ``world.run``.
- :class:`OfTorch`: a process group of ``torch.distributed``, with memory of ``torch.distributed._symmetric_memory``.
- :class:`~cute_dialect.op.execute.local_group.LocalRank`: a rank of a ``LocalGroup``, whose ranks are in this process.

The memory of a group is allocated by its first call, on each stream, and lasts as long as the group.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import sys
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast
from weakref import WeakKeyDictionary, ref
from zlib import crc32

import numpy as np

from cute_dialect.kernels.distributed.exchange import CHECK_BITS, MOST_RANKS
from cute_dialect.lang.ranks import WORDS, Ranks, current_rank
from cute_dialect.op.errors import ArgumentError, DeviceError, DistributedError, UnsupportedError
from cute_dialect.op.execute.local_group import LocalGroup, LocalRank
from cute_dialect.op.execute.rank_memory import ChannelMemory, GpuMemory, MemoryShape, failure, gpu_memory, views_of
from cute_dialect.op.select.all_reduce import BLOCKS, BLOCKS_ON_CPU
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, stream_of
from cute_dialect.runtime.host_memory import host_bytes
from cute_dialect.runtime.settings import count

if TYPE_CHECKING:  # pragma: no cover
    from numpy.typing import NDArray

    from cute_dialect.lang.ranks import SymmetricArray, SymmetricSignals
    from cute_dialect.op.signature_types import Array

NO_LIMIT = 1 << 61
"""Limit of a wait on the interpreter, which reports a deadlock itself."""

MULTICAST_OFF = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
"""Environment variables that switch NVLink multicast off, which no kernel uses, and their values."""


class Group(Protocol):
    """The ranks of a call, from the view of one of them."""

    @property
    def rank(self) -> int: ...

    @property
    def ranks(self) -> int: ...

    @property
    def limit(self) -> int:
        """The longest wait for another rank, in nanoseconds."""
        ...

    @property
    def channels(self) -> int:
        """The largest number of blocks of a call, equal on all ranks."""
        ...

    @property
    def shares_gpu(self) -> bool:
        """Return True if several ranks have one GPU, which cooperative launches would serialize."""
        ...

    def agree(self, call: str) -> None:
        """Note the next call of this rank, as text.  Raises DistributedError if another rank has made another call, or
        if an earlier call has failed.
        """
        ...

    def check(self, call: str) -> None:
        """Raise DistributedError if a call that has ended has failed on this rank."""
        ...

    def reset(self) -> None:
        """Make the group usable again after a call has failed, on all ranks together."""
        ...

    @property
    def multiprocessors(self) -> int:
        """The number of multiprocessors of a rank."""
        ...

    def memory(self, call: str, shape: MemoryShape, x: ArrayView) -> ChannelMemory:
        """Return memory of the current stream.

        Args:
            call: the function, for errors.
            shape: what the call needs, equal on all ranks.
            x: an array of the call, which has its device.
        """
        ...


def hash_of(call: str) -> int:
    """Return the hash of a call that signals contain."""
    return crc32(call.encode()) & ((1 << CHECK_BITS) - 1)


def group_of(call: str, group: object = None) -> Group:
    """Return the group of a call.

    Args:
        call: the function, for errors.
        group: a process group of torch, its name, a device mesh of one dimension, a rank of a ``LocalGroup``, or the
            ranks of ``cute.testing.ranks``; None for these ranks within ``world.run``, and else torch's default group.

    Raises:
        ArgumentError: it is none of these.
    """
    here = current_rank()
    if here is not None and (group is None or group is here[0]):
        return Simulated(call, *here)
    if isinstance(group, LocalGroup):
        raise ArgumentError(f"{call}: group is a LocalGroup; pass one of its ranks, such as group[0]")
    if isinstance(group, LocalRank) and here is None:
        return group
    if isinstance(group, Ranks):
        raise ArgumentError(f"{call}: group is of cute.testing.ranks, but this call is not in its world.run")
    if here is not None:
        raise ArgumentError(f"{call}: group is {group!r}, but this call is in world.run; omit group")
    torch = sys.modules.get("torch")
    distributed = None if torch is None else torch.distributed
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        raise ArgumentError(
            f"{call}: there is no group of ranks; call torch.distributed.init_process_group under torchrun, or make "
            "the call in world.run of cute.testing.ranks"
        )
    if isinstance(group, str):
        group = next((g for g in distributed.distributed_c10d._world.pg_map if g.group_name == group), group)
    elif hasattr(group, "get_group"):
        group = cast("Mesh", group).get_group()
    if group is None:
        group = distributed.group.WORLD
    if not isinstance(group, distributed.ProcessGroup):
        raise ArgumentError(f"{call}: group is {group!r}; pass a ProcessGroup, its name, or a DeviceMesh dimension")
    found = cast("ProcessGroup", group)
    known = _OF_TORCH.get(found)
    if known is None:
        known = _OF_TORCH[found] = OfTorch(call, found)
    return known


def check_ranks(call: str, ranks: int) -> None:
    """Raise UnsupportedError for too many ranks."""
    if ranks > MOST_RANKS:
        raise UnsupportedError(f"{call}: the group has {ranks} ranks; at most {MOST_RANKS} are supported")


# ------------------------------------------------------------------------------------------------- ranks on the CPU


class _Channels(NamedTuple):
    """The memory of all simulated ranks."""

    staging: SymmetricArray
    words: SymmetricSignals
    steps: list[Array]
    status: list[Array]


class _Argument:
    """An argument of a call: the first rank that has passed it, its elements, and the number of ranks that have."""

    def __init__(self, rank: int, elements: NDArray[np.generic]) -> None:
        self.rank, self.elements, self.seen = rank, elements, 1


class _Calls:
    """The memory of the ranks of a world, and their calls in the current run."""

    def __init__(self, ranks: int) -> None:
        self.channels: dict[MemoryShape, _Channels] = {}
        self.run = 0
        self.calls: list[tuple[int, str]] = []
        self.made = [0] * ranks
        self.arguments: dict[tuple[int, str], _Argument] = {}

    def check(self) -> None:
        """Raise DistributedError if an exchange has failed."""
        for channels in self.channels.values():
            for rank, status in enumerate(channels.status):
                if any(status):
                    reason = failure(status.tolist(), 0)
                    raise DistributedError(
                        f"op.distributed: an exchange of rank {rank} has failed: {reason}; its results are undefined; "
                        "make new ranks by cute.testing.ranks"
                    )


class Simulated:
    """A rank of ``cute.testing.ranks``."""

    limit, channels, multiprocessors, shares_gpu = NO_LIMIT, BLOCKS_ON_CPU, 4, False

    def __init__(self, call: str, world: Ranks, rank: int) -> None:
        check_ranks(call, len(world))
        self.rank, self.ranks, self._world = rank, len(world), world
        if "rank_groups" not in world.state:
            made = world.state["rank_groups"] = _Calls(len(world))
            world.checks.append(made.check)
        found = cast("_Calls", world.state["rank_groups"])
        if found.run != world.runs:
            found.run, found.calls, found.made, found.arguments = world.runs, [], [0] * len(world), {}
        self._calls = found

    def agree(self, call: str) -> None:
        self._calls.check()
        known, mine = self._calls.calls, self._calls.made[self.rank]
        self._calls.made[self.rank] += 1
        if mine == len(known):
            known.append((self.rank, call))
        other, text = known[mine]
        if text != call:
            name = call.partition(" ")[0]
            raise DistributedError(
                f"{name}: call {mine + 1} of rank {self.rank} is {call}, but that of rank {other} is {text}; all ranks "
                "must make the same calls in the same order"
            )

    def check(self, call: str) -> None:
        self._calls.check()

    def reset(self) -> None:
        pass  # a run begins new calls

    def compare(self, call: str, name: str, argument: ArrayView) -> None:
        """Compare an argument of all ranks, a contiguous vector, when the next launch begins.

        A kernel that is queued before it may compute the argument.  The launch raises DistributedError if bits differ.

        Args:
            call: the function, for errors.
            name: the argument.
        """
        number, known_arguments = self._calls.made[self.rank], self._calls.arguments

        def compare() -> None:
            dtype = numpy_dtype(argument.dtype)
            mine = host_bytes(argument.pointer, argument.shape[0] * dtype.itemsize).view(dtype)
            known = known_arguments.get((number, name))
            if known is None:
                known_arguments[number, name] = _Argument(self.rank, mine.copy())
                return
            differ = (known.elements.view(np.uint8) != mine.view(np.uint8)).reshape(mine.size, -1).any(axis=1)
            if differ.any():
                i = int(differ.argmax())
                raise DistributedError(
                    f"{call}: {name} of call {number} differs between ranks {known.rank} and {self.rank}: element {i} "
                    f"is {known.elements[i]} on rank {known.rank} and {mine[i]} on rank {self.rank}; pass the same on "
                    "all ranks"
                )
            known.seen += 1
            if known.seen == self.ranks:
                del known_arguments[number, name]

        self._world.check_before(self.rank, compare)

    def memory(self, call: str, shape: MemoryShape, x: ArrayView) -> ChannelMemory:
        shape = shape.rounded
        found = self._calls.channels.get(shape)
        if found is None:
            world, n = self._world, self.ranks
            staging = world.symmetric((shape.slots, shape.slot), np.uint8, name="staging", unwritten=True)
            words = world.signals(shape.signals, name="ready")
            steps = [np.zeros(shape.steps, np.int64) for _ in range(n)]
            status = [np.zeros(n, np.int64) for _ in range(n)]
            found = self._calls.channels[shape] = _Channels(staging, words, steps, status)
        staging, words = found.staging.on(self.rank), found.words.on(self.rank).words
        return views_of(staging, words, found.steps[self.rank], found.status[self.rank])


# ----------------------------------------------------------------------------------------------- torch's process groups


class ProcessGroup(Protocol):
    """A process group of torch."""

    @property
    def group_name(self) -> str: ...

    def rank(self) -> int: ...

    def size(self) -> int: ...


class Mesh(Protocol):
    """A device mesh of torch, of one dimension."""

    def get_group(self) -> ProcessGroup: ...


class Device(Protocol):
    """A device of torch."""

    @property
    def type(self) -> str: ...


class OfTorch:
    """A process group of torch, whose ranks are GPUs of one host."""

    channels, shares_gpu = BLOCKS, False

    def __init__(self, call: str, group: ProcessGroup) -> None:
        check_ranks(call, group.size())
        self.rank, self.ranks, self._group = group.rank(), group.size(), ref(group)
        self._memories: dict[int, list[GpuMemory]] = {}
        self._milliseconds = count("CUTE_DIST_TIMEOUT_MS", 30_000)
        self._last = ""

    @property
    def limit(self) -> int:
        return self._milliseconds * 1_000_000

    def agree(self, call: str) -> None:
        self.check(call.partition(" ")[0])
        self._last = call

    def check(self, call: str) -> None:
        """Raise DistributedError if a call that has ended has failed."""
        for memory in chain.from_iterable(self._memories.values()):
            memory.check(call, self._last, self._milliseconds)

    @property
    def multiprocessors(self) -> int:
        torch = sys.modules["torch"]
        return torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count

    def memory(self, call: str, shape: MemoryShape, x: ArrayView) -> ChannelMemory:
        memories = self._memories.setdefault(stream_of(None, (x,)), [])
        found = next((m for m in memories if m.shape.serves(shape)), None)
        if found is None:
            found = self._allocated(call, shape.rounded, cast("Array", x.keep).device)
            memories.append(found)
        return found.views

    def reset(self) -> None:
        """Clear the memory of all streams, on all ranks together."""
        self._synchronize()
        for memory in chain.from_iterable(self._memories.values()):
            memory.clear()
        self._synchronize()

    def _synchronize(self) -> None:
        """Wait for the GPU, then for all ranks."""
        torch = sys.modules["torch"]
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        torch.distributed.barrier(self._group())

    def _allocated(self, call: str, shape: MemoryShape, device: Device) -> GpuMemory:
        """Allocate the memory of a stream on a device of torch, on all ranks together."""
        torch = sys.modules["torch"]
        if torch.cuda.is_current_stream_capturing():
            raise UnsupportedError(
                f"{call}: the first call of a group on a stream allocates memory, which a CUDA graph cannot capture; "
                "make a call on this stream before the capture"
            )
        symm_mem = import_module("torch.distributed._symmetric_memory")
        tables: list[Array] = []

        def symmetric(shape: tuple[int, ...], dtype: object) -> Array:
            tensor = symm_mem.empty(shape, dtype=dtype, device=device).zero_()
            try:
                handle = symm_mem.rendezvous(tensor, self._group())
            except RuntimeError as e:
                raise DeviceError(
                    f"{call}: the GPUs of the group cannot map memory of each other ({e}); the group must consist of "
                    "GPUs of one host that are connected by NVLink or PCIe peer-to-peer access"
                ) from None
            tables.append(torch.tensor(handle.buffer_ptrs, dtype=torch.int64, device=device))
            return tensor

        staging = symmetric((shape.slots, shape.slot), torch.uint8)
        words = symmetric((shape.signals, self.ranks, WORDS), torch.int64)
        found = gpu_memory(shape, staging, words, tables)
        self._synchronize()
        return found


_OF_TORCH: WeakKeyDictionary[ProcessGroup, OfTorch] = WeakKeyDictionary()
