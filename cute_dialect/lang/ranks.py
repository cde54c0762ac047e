"""Kernels of several GPUs: tensors of peers, signals between ranks, and all ranks in one process.

A *rank* is one GPU.  A *symmetric* tensor has one instance per rank, of one shape, and each rank can access all of
them.  ``x.local`` is the rank's own instance and ``x.peer(r)`` that of rank r::

    @cute.kernel
    def pull(x: cute.Symmetric, ready: cute.Signals, out: cute.Tensor, call: cute.Int32):
        thread, after = cute.arch.thread_idx().x, (x.rank + 1) % x.ranks
        x.local[thread] = cute.Float32(x.rank)
        cute.arch.sync_threads()
        if thread < x.ranks:
            ready.set(thread, 0, call)                   # to each rank: my x is written
        if thread == 0:
            ready.wait(0, after, call)                   # until the next rank has said so
        cute.arch.sync_threads()
        out[thread] = x.peer(after)[thread]

On a laptop, :func:`ranks` runs such a kernel for all ranks on the interpreter, with race detection between ranks::

    with ranks(2) as world:
        x, ready = world.symmetric(32, cute.Float32), world.signals(1)
        out = [np.zeros(32, np.float32) for _ in range(2)]
        world.run(lambda rank: run_pull(x.on(rank), ready.on(rank), out[rank], 1))

**Order.**  A signal orders the writes before ``set`` before the accesses after ``wait``, because both have the scope of
the system.  Scope ``gpu`` orders nothing between two GPUs (PTX ISA 9.0, 8 "Memory Consistency Model").  A signal orders
the writes of the thread that sets it; a barrier before ``set`` adds those of the block, and one after ``wait`` lets the
block use what came.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Never, cast

import cute_dialect.lang as cute
from cute_dialect.errors import UsageError
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import Int32, Int64
from cute_dialect.lang.values.indexing import check_number
from cute_dialect.lang.values.tensors import Tensor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cute_dialect.interp.exec.ranks import World
    from cute_dialect.interp.reports.run_report import RunReport
    from cute_dialect.lang.values.pointers import Pointer
    from cute_dialect.lang.values.signature_types import Int

__all__ = ["Ranks", "Signals", "Symmetric", "SymmetricArray", "SymmetricSignals", "peer", "ranks"]

WORDS = 16
"""Distance of two signals, in words of 64 bits: each has a line of 128 bytes, so that polls do not disturb another."""


@dataclass(frozen=True)
class Symmetric:
    """A symmetric tensor, as an argument of one rank.

    Attributes:
        local: the rank's own instance.
        table: the addresses of all instances, as this rank maps them, shape (ranks).
        rank: the number of this rank.
        ranks: the number of ranks, a constant of the kernel.
    """

    local: Tensor
    table: Tensor
    rank: Int32
    ranks: int

    def peer(self, rank: Int) -> Tensor:
        """Return the instance of a rank, which may be this one. Its type and layout are those of ``local``."""
        return peer(self, rank)

    def __getitem__(self, coord: object) -> Never:
        raise KernelTypeError("F122", "a cute.Symmetric has no elements; index its tensor x.local or x.peer(rank)")

    def __setitem__(self, coord: object, value: object) -> None:
        self[coord]


def peer(x: Symmetric, rank: Int) -> Tensor:
    """Return the instance of a symmetric tensor on a rank.

    Args:
        x: the symmetric tensor.
        rank: 0 <= rank < x.ranks; static or dynamic.
    """
    if not isinstance(x, Symmetric):
        raise KernelTypeError("F122", f"cute.peer needs a symmetric tensor, got {type(x).__name__}")
    check_number("cute.peer", "rank", rank, x.ranks)
    return _instance(x, rank)


def _instance(x: Symmetric, rank: Int) -> Tensor:
    """Return the instance of a symmetric tensor on a rank that exists."""
    pointer = x.local.iterator
    there = cute.make_ptr(pointer.dtype, x.table[rank], "gmem", assumed_align=pointer.alignment)
    return cute.make_tensor(there, x.local.layout)


@dataclass(frozen=True)
class Signals:
    """Signals between ranks, as an argument of one rank. Each signal is a word of 64 bits with one writer.

    Signal (slot, writer) of a rank is written by ``set`` and ``add`` on the writer and read by ``wait`` on the rank.
    Values only rise, from 0 on, so signals are never reset: pass the number of the call, from 1 on.

    Attributes:
        words: the words, a symmetric tensor of shape (slots, ranks, WORDS).
    """

    words: Symmetric

    def set(self, rank: Int, slot: Int, value: Int, *, after: str | None = None) -> None:
        """Set signal (slot, this rank) of a rank to a value, after the accesses of this thread.

        Args:
            rank: the receiver; may be this rank.
            slot: the number of the signal.
            value: the new value, not less than the one before.
            after: ``"bulk"`` waits first until the thread's bulk and TMA stores are complete.
        """
        if after not in (None, "bulk"):
            raise KernelTypeError("F122", f"Signals.set: after must be None or 'bulk', got {after!r}")
        if after == "bulk":
            cute.arch.cp_async_bulk_wait_group(0)
        check_number("Signals.set", "rank", rank, self.words.ranks)
        check_number("Signals.set", "slot", slot, self.words.local.shape[0])
        cute.arch.store(self._word(rank, slot, self.words.rank), cute.Int64(value), sem="release", scope="sys")

    def add(self, rank: Int, slot: Int, value: Int = 1) -> None:
        """Add to signal (slot, this rank) of a rank, after the accesses of this thread. For several blocks that signal.

        Args:
            rank: the receiver; may be this rank.
            slot: the number of the signal.
            value: the number to add, at least 0.
        """
        if isinstance(value, int) and value < 0:
            raise KernelTypeError("F122", f"Signals.add: signals only rise, so value must be at least 0, got {value}")
        assert value >= 0, "Signals.add: signals only rise, so value must be at least 0"
        check_number("Signals.add", "rank", rank, self.words.ranks)
        check_number("Signals.add", "slot", slot, self.words.local.shape[0])
        cute.arch.red(self._word(rank, slot, self.words.rank), cute.Int64(value), sem="release", scope="sys")

    def wait(self, slot: Int, writer: Int, value: Int, *, then: str | None = None, limit: Int | None = None) -> Int64:
        """Wait until signal (slot, writer) of this rank is at least a value. Later accesses see what precedes it.

        Args:
            slot: the number of the signal.
            writer: the rank that sets it.
            value: the least value.
            then: ``"tma"`` also orders later TMA and bulk copies of the thread after the signal.
            limit: the longest wait, in nanoseconds; default: no limit. The interpreter counts ops instead.

        Returns:
            The signal. It is less than ``value`` if the limit was reached.
        """
        check_number("Signals.wait", "slot", slot, self.words.local.shape[0])
        check_number("Signals.wait", "rank", writer, self.words.ranks)
        if then not in (None, "tma"):
            raise KernelTypeError("F122", f"Signals.wait: then must be None or 'tma', got {then!r}")
        word, least = self._word(self.words.rank, slot, writer), cute.Int64(value)
        if limit is None:
            while (seen := cute.arch.load(word, sem="acquire", scope="sys")) < least:
                pass
        else:
            end = cute.arch.globaltimer().to(cute.Int64) + limit
            while ((seen := cute.arch.load(word, sem="acquire", scope="sys")) < least) & (
                cute.arch.globaltimer().to(cute.Int64) < end
            ):
                pass
        if then == "tma":
            cute.arch.fence_proxy("async.global")
        return cast("Int64", seen)

    def _word(self, rank: Int, slot: Int, writer: Int) -> Pointer:
        """Return the address of a signal on a rank."""
        words = _instance(self.words, rank)
        return words.iterator + cute.crd2idx((slot, writer, 0), words.layout)


# ------------------------------------------------------------------------------------------------ all ranks on the CPU


class SymmetricArray:
    """Arrays of all ranks: ``x[r]`` is the numpy array of rank r, and ``x.on(r)`` its argument of a kernel."""

    def __init__(self, world: Ranks, arrays: Sequence[NDArray[np.generic]], tables: Sequence[NDArray[np.generic]]):
        self._world = world
        self._arrays = list(arrays)
        self._tables = list(tables)

    def __getitem__(self, rank: int) -> NDArray[np.generic]:
        return self._arrays[rank]

    def __len__(self) -> int:
        return len(self._arrays)

    def on(self, rank: int) -> Symmetric:
        """Return the argument that a call on a rank passes for a parameter annotated :class:`Symmetric`."""
        if rank not in range(len(self)):
            raise UsageError(f"on: there is no rank {rank}; the tensor has {len(self)} ranks")
        if _calls and _calls[-1][0] is not self._world:
            raise UsageError("on: the tensor belongs to another world; allocate it by symmetric or signals of this one")
        if _calls and _calls[-1][1] != rank:
            text = f"on: got rank {rank} in the call of rank {_calls[-1][1]}; pass the number that world.run passes"
            raise UsageError(text)
        # A call takes arrays for tensors and Python's numbers for those of the language.
        make = cast("Callable[[object, object, int, int], Symmetric]", Symmetric)
        return make(self._arrays[rank], self._tables[rank], rank, len(self._arrays))


class SymmetricSignals:
    """Signals of all ranks: ``s.on(r)`` is the argument of a kernel on rank r."""

    def __init__(self, words: SymmetricArray):
        self.words = words

    def on(self, rank: int) -> Signals:
        """Return the argument that a call on a rank passes for a parameter annotated :class:`Signals`."""
        return Signals(self.words.on(rank))


_calls: list[tuple[Ranks, int]] = []
"""The ranks, and the rank, of the function that `Ranks.run` calls now; empty outside it."""


def current_rank() -> tuple[Ranks, int] | None:
    """Return the ranks, and the rank, whose function :meth:`Ranks.run` calls now; None outside it."""
    return _calls[-1] if _calls else None


class Ranks:
    """Several ranks in this process, made by :func:`ranks`. ``len(world)`` is their number.

    Attributes:
        runs: the number of calls of :meth:`run`.
        state: what operations keep as long as the ranks, by name.
        checks: functions that :meth:`run` calls after the launches.
    """

    def __init__(self, world: World):
        self._world = world
        self._count = 0
        self.runs = 0
        self.state: dict[str, object] = {}
        self.checks: list[Callable[[], None]] = []

    def __len__(self) -> int:
        return self._world.ranks

    def symmetric(
        self, shape: int | Sequence[int], dtype: object, *, name: str = "", unwritten: bool = False
    ) -> SymmetricArray:
        """Allocate a symmetric tensor of zeros.

        Args:
            shape: the shape of one rank's instance.
            dtype: a type of the language, such as ``cute.BFloat16``, or of numpy.
            name: its name in messages; default: its number.
            unwritten: report reads of elements that no kernel has written; the host's writes do not count.
        """
        return self._allocate(shape, dtype, name, unwritten=unwritten)

    def _allocate(
        self, shape: int | Sequence[int], dtype: object, name: str, *, unwritten: bool = False, signals: bool = False
    ) -> SymmetricArray:
        import numpy as np

        from cute_dialect.runtime.arrays import numpy_dtype  # late: start-up

        extents = (shape,) if isinstance(shape, int) else shape
        if not isinstance(extents, tuple | list) or not all(isinstance(x, int) and x >= 0 for x in extents):
            raise UsageError(f"symmetric: shape must consist of integers of at least 0, got {shape!r}")
        element = getattr(dtype, "mlir_type", None)
        try:
            kind = np.dtype(cast("str", dtype or "")) if element is None else numpy_dtype(element)
        except TypeError:
            text = f"symmetric: dtype must be a type such as cute.BFloat16 or a dtype of numpy, got {dtype!r}"
            raise UsageError(text) from None
        arrays = [np.zeros(extents, kind) for _ in range(len(self))]
        name = name or f"symmetric {self._count}"
        self._count += 1
        return SymmetricArray(self, arrays, list(self._world.allocate(arrays, name, unwritten, signals)))

    def signals(self, slots: int = 1, *, name: str = "") -> SymmetricSignals:
        """Allocate signals, with the value 0: ``slots`` per pair of ranks."""
        if not isinstance(slots, int) or slots < 1:
            raise UsageError(f"signals: slots must be an integer of at least 1, got {slots!r}")
        name = name or f"signals {self._count}"
        return SymmetricSignals(self._allocate((slots, len(self), WORDS), cute.Int64, name, signals=True))

    def run(self, function: Callable[[int], object]) -> list[RunReport]:
        """Call ``function(rank)`` once per rank, and run the launches of all ranks together.

        A launch is queued on the stream of its rank, as on a GPU: its results exist when ``run`` returns.  Lines that
        kernels print follow, with their rank.

        Returns:
            A report for each rank, summed over its launches.

        Raises:
            InterpError: a race, a deadlock or another error of a kernel.  The world cannot be used afterwards.
            UsageError: called in ``function``.
        """
        from cute_dialect.lang.calls.options import running_on  # late: start-up
        from cute_dialect.pipelines.cpu import queueing_on  # late: start-up

        if _calls:
            raise UsageError("run: called in the function of another run; call it after that one has returned")
        self.runs += 1
        try:
            with running_on("cpu"):
                for rank in range(len(self)):
                    _calls.append((self, rank))
                    with queueing_on(self._world, rank):
                        function(rank)
                    _calls.pop()
        except BaseException:
            _calls.clear()
            self._world.forget()
            raise
        try:
            reports = self._world.run()
        finally:
            for rank, text in enumerate(self._world.printed()):
                for line in text.splitlines():
                    print(f"rank {rank}: {line}")
        for check in self.checks:
            check()
        return reports

    def check_before(self, rank: int, check: Callable[[], None]) -> None:
        """Call a function when the next launch that a rank queues begins. Its inputs are then in memory."""
        self._world.check_before(rank, check)

    def barrier(self) -> None:
        """Order all launches that have ended before all later ones, like ``torch.distributed.barrier``.

        Raises:
            UsageError: called in the function of ``run``, where no launch has ended.
        """
        if _calls:
            raise UsageError("barrier: no launch has ended in the function of run; call it between two calls of run")
        self._world.barrier()


@contextmanager
def ranks(
    count: int,
    *,
    schedule: str = "round-robin",
    seed: int = 0,
    checks: Sequence[str] | str = ("race", "uninit"),
    resident: int | None = None,
    max_steps: int | None = None,
) -> Generator[Ranks]:
    """Provide ``count`` ranks, whose kernels run together on the CPU interpreter.

    Args:
        count: the number of ranks.
        schedule: the order of ranks, blocks and copies, as for a call with ``device="cpu"``.
        seed: the seed of the schedule ``"random"``.
        checks: the checks of all calls.
        resident: number of blocks that each rank runs at once; default: what the chip holds.
        max_steps: ops of a warp after which a loop must make progress.
    """
    from cute_dialect.interp.exec.launch import RunOptions  # late: start-up
    from cute_dialect.interp.exec.ranks import World  # late: start-up
    from cute_dialect.lang.calls.options import current_target  # late: start-up
    from cute_dialect.runtime.call_options import read_checks  # late: start-up

    if not isinstance(count, int) or count < 1:
        raise UsageError(f"ranks: count must be an integer of at least 1, got {count!r}")
    names = read_checks(tuple(checks) if not isinstance(checks, str) else checks).names
    options = RunOptions(
        schedule=schedule, seed=seed, checks=names, resident=resident, max_steps=max_steps, chip=current_target()
    )
    yield Ranks(World(count, options))
