"""Ranks of one process: ``LocalGroup(2)``, one thread that makes the calls of all ranks, or a thread per rank.

Memory of peers is ordinary memory of torch, since all GPUs of a process can have one address space.  Several ranks may
share a GPU, for tests: their grids together must be resident, so a call has fewer blocks, and no cooperative launch.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Protocol, cast

from cute_dialect.kernels.distributed.exchange import MOST_RANKS
from cute_dialect.lang.ranks import WORDS
from cute_dialect.op.errors import ArgumentError, DeviceError, DistributedError, UnsupportedError
from cute_dialect.op.execute.rank_memory import ChannelMemory, GpuMemory, MemoryShape, gpu_memory
from cute_dialect.op.select.all_reduce import BLOCKS
from cute_dialect.runtime import driver
from cute_dialect.runtime.arrays import stream_of
from cute_dialect.runtime.settings import count

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array
    from cute_dialect.runtime.arrays import ArrayView


class Device(Protocol):
    """A device of torch."""

    @property
    def type(self) -> str: ...

    @property
    def index(self) -> int: ...


class _Shared:
    """The memory and the calls of the ranks of a :class:`LocalGroup`.

    Attributes:
        devices: the device of torch of each rank.
        multiprocessors: the number of multiprocessors of a rank.
        channels: the largest number of blocks of an exchange in steps.
        shares_gpu: True if several ranks have one GPU.
        milliseconds: the limit of waits.
        made: the number of calls of each rank.
    """

    def __init__(self, devices: Sequence[Device], multiprocessors: int) -> None:
        self.devices, self.multiprocessors = devices, multiprocessors
        self.channels = min(BLOCKS, multiprocessors)
        self.shares_gpu = len({d.index for d in devices}) < len(devices)
        self.milliseconds = count("CUTE_DIST_TIMEOUT_MS", 30_000)
        self.made = [0] * len(devices)
        self._memories: dict[int, list[list[GpuMemory]]] = {}
        self._lock = Lock()
        self._calls: dict[int, tuple[int, str, int]] = {}
        self._streams: dict[tuple[int, int], int] = {}

    def reset(self) -> None:
        """Clear the memory of all ranks, when the GPUs have ended all work."""
        self._synchronize()
        for memory in chain.from_iterable(chain.from_iterable(self._memories.values())):
            memory.clear()
        self._synchronize()
        with self._lock:
            self._calls.clear()
            self.made = [0] * len(self.devices)

    def _synchronize(self) -> None:
        """Wait for all GPUs."""
        for device in self.devices:
            import_module("torch").cuda.synchronize(device)

    def agree(self, rank: int, call: str) -> None:
        """Compare the next call of a rank with the calls of that number on the other ranks. Raises DistributedError."""
        with self._lock:
            number = self.made[rank] + 1
            first, text, seen = self._calls.get(number, (rank, call, 0))
            if text != call:
                name = call.partition(" ")[0]
                raise DistributedError(
                    f"{name}: call {number} of rank {rank} is {call}, but that of rank {first} is {text}; all ranks "
                    "must make the same calls in the same order"
                )
            self._calls[number] = (first, text, seen + 1)
            self.made[rank] = number
            if seen + 1 == len(self.devices):
                del self._calls[number]

    def memory(self, call: str, rank: int, stream: int, shape: MemoryShape) -> GpuMemory:
        """Return memory of a rank for one of its streams. The n-th streams of all ranks belong together."""
        key = (self.devices[rank].index, stream)
        with self._lock:
            owner = self._streams.setdefault(key, rank)
            if owner != rank:
                raise ArgumentError(
                    f"{call}: ranks {owner} and {rank} share a stream of {self.devices[rank]}, so the kernel of one "
                    "would wait for that of the other; give each rank a stream of its own"
                )
            number = [s for s, r in self._streams.items() if r == rank].index(key)
            # The first memory that serves a call is the same for all ranks, also if one of them is ahead.
            memories = self._memories.setdefault(number, [])
            found = next((m for m in memories if m[rank].shape.serves(shape)), None)
            if found is None:
                found = self._allocated(call, shape.rounded)
                memories.append(found)
            return found[rank]

    def _allocated(self, call: str, shape: MemoryShape) -> list[GpuMemory]:
        """Allocate memory for a stream of each rank."""
        torch = import_module("torch")
        if torch.cuda.is_current_stream_capturing():
            raise UnsupportedError(
                f"{call}: the first call of a group on a stream allocates memory, which a CUDA graph cannot capture; "
                "make a call on this stream before the capture"
            )
        parts, signals = (shape.slots, shape.slot), (shape.signals, len(self.devices), WORDS)
        streams = [torch.cuda.Stream(device) for device in self.devices]
        staging: list[Array] = []
        words: list[Array] = []
        for stream in streams:
            with torch.cuda.stream(stream):
                staging.append(torch.zeros(parts, dtype=torch.uint8, device=stream.device))
                words.append(torch.zeros(signals, dtype=torch.int64, device=stream.device))
        found: list[GpuMemory] = []
        for stream in streams:
            with torch.cuda.stream(stream):
                tables = [
                    torch.tensor([t.data_ptr() for t in instances], dtype=torch.int64, device=stream.device)
                    for instances in (staging, words)
                ]
                found.append(gpu_memory(shape, staging[len(found)], words[len(found)], tables))
        for stream in streams:  # A rank may already wait for another one, so its GPU is not synchronized.
            stream.synchronize()
        return found


class LocalRank:
    """A rank of a :class:`LocalGroup`.

    Attributes:
        rank, ranks: its number, and the number of ranks.
    """

    def __init__(self, shared: _Shared, rank: int) -> None:
        self._shared, self.rank, self.ranks = shared, rank, len(shared.devices)
        self.limit = shared.milliseconds * 1_000_000
        self.channels, self.shares_gpu = shared.channels, shared.shares_gpu
        self.multiprocessors = shared.multiprocessors
        self._last = ""
        self._used: list[GpuMemory] = []

    def agree(self, call: str) -> None:
        self.check(call.partition(" ")[0])
        self._shared.agree(self.rank, call)
        self._last = call

    def check(self, call: str) -> None:
        """Raise DistributedError if a call that has ended has failed on this rank."""
        for memory in self._used:
            memory.check(call, self._last, self._shared.milliseconds)

    def reset(self) -> None:
        self._shared.reset()

    def memory(self, call: str, shape: MemoryShape, x: ArrayView) -> ChannelMemory:
        device = cast("Array", x.keep).device
        if device != self._shared.devices[self.rank]:
            raise ArgumentError(
                f"{call}: the arrays are on {device}, but rank {self.rank} of the group is on "
                f"{self._shared.devices[self.rank]}"
            )
        found = self._shared.memory(call, self.rank, stream_of(None, (x,)), shape)
        if not any(found is m for m in self._used):
            self._used.append(found)
        return found.views


class LocalGroup:
    """Ranks of this process. ``group[r]`` is rank r, for the argument ``group=`` of a call.

    The calls of all ranks may be made by one thread, because a call does not wait for its kernel::

        group = op.distributed.LocalGroup(2)
        sums = [op.distributed.all_reduce(x[r], group=group[r]) for r in range(2)]    # x[r] is on GPU r

    Args:
        devices: the number of GPUs, a rank each, or a device of torch per rank. Ranks that share a GPU need a stream
            each, such as ``torch.cuda.Stream()``.

    Raises:
        ArgumentError: a device does not exist or is no GPU.
        DeviceError: a GPU cannot access the memory of another one.
    """

    def __init__(self, devices: int | Sequence[object]) -> None:
        torch = import_module("torch")
        found = torch.cuda.device_count()
        given = range(devices) if isinstance(devices, int) else devices
        if not 1 <= len(given) <= MOST_RANKS:
            raise ArgumentError(f"LocalGroup: there are {len(given)} ranks; pass 1 to {MOST_RANKS} devices")
        on = [torch.device("cuda", d) if isinstance(d, int) else torch.device(d) for d in given]
        for rank, device in enumerate(on):
            if device.type != "cuda" or device.index is None or device.index >= found:
                raise ArgumentError(
                    f"LocalGroup: the device of rank {rank} is {device}; this machine has {found} GPUs, cuda:0 to "
                    f"cuda:{found - 1}. Pass a device per rank; several ranks may have the same"
                    if found
                    else f"LocalGroup: the device of rank {rank} is {device}; this machine has no GPU"
                )
        indices = [d.index for d in on]
        room = min(driver.driver().multiprocessors(i) // indices.count(i) for i in set(indices))
        for i in set(indices):
            for j in set(indices) - {i}:
                if not torch.cuda.can_device_access_peer(i, j):
                    raise DeviceError(
                        f"LocalGroup: cuda:{i} cannot access the memory of cuda:{j}; use GPUs that are connected by "
                        "NVLink or PCIe peer-to-peer access"
                    )
                # A copy makes torch map the memory of the other GPU, for kernels too.
                torch.empty(1, device=f"cuda:{i}").copy_(torch.empty(1, device=f"cuda:{j}"))
        shared = _Shared(on, room)
        self._shared, self._ranks = shared, [LocalRank(shared, rank) for rank in range(len(given))]

    def __len__(self) -> int:
        return len(self._ranks)

    def __getitem__(self, rank: int) -> LocalRank:
        return self._ranks[rank]

    def __iter__(self) -> Iterator[LocalRank]:
        return iter(self._ranks)

    def check(self, call: str = "check") -> None:
        """Raise DistributedError if a call that has ended has failed on a rank."""
        for rank in self:
            rank.check(call)

    def reset(self) -> None:
        """Make all ranks usable again after a call has failed. Waits for their GPUs."""
        self._shared.reset()
