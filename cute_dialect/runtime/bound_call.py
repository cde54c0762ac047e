"""Prepared launches: parameter buffers, configuration and the driver's call, made once and used again.

:class:`Ready` belongs to arguments of certain shapes, strides, types and alignment; only addresses and the stream
change from call to call.  What one launch writes is a *frame*: whoever launches takes one from the pool, writes, calls
the driver and gives it back; where several threads launch at once, each has its own, and nobody waits (a lock held
while the driver works would also hang a signal handler that launches).  :class:`BoundCall` is a launch on fixed arrays.
Nothing here allocates GPU memory or waits, so a CUDA graph can capture it.  A call with several launches is prepared in
the same way: its frame holds the words of all of them, and its "driver's call" calls the driver once for each.

**Contexts.**  A launch does not ask which context is current: that costs a tenth of it.  A kernel belongs to the
primary context of its GPU, so the driver refuses it under any other (or none) with an error and launches nothing.
:meth:`Ready.failed` then enters the right context, launches again and goes back.

**Python's lock.**  The driver is called with the GIL released, though holding it would save 40 ns: a launch blocks
when the GPU's queue is full, and what empties that queue may be a host callback that needs the GIL.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import TypeAlias

from cute_dialect.runtime import driver as cuda
from cute_dialect.runtime.arrays import ArrayView, current_stream_of_torch, stream_of
from cute_dialect.runtime.launch_plan import Plan, only
from cute_dialect.runtime.tensor_maps import EncodedMaps

__all__ = ["BoundCall", "Frame", "Ready", "Word"]

_STREAMS = 32
"""Streams of which a frame remembers the driver's call."""
_Slots: TypeAlias = tuple[ctypes.c_uint64, ...]
_Known: TypeAlias = tuple[dict[int, int], ...]
Frame: TypeAlias = "tuple[_Slots, _Known, Launches, tuple[EncodedMaps, ...], object]"
"""What one launch writes: the words (as in :attr:`Ready.words`) and the known tensor maps; then the driver's call with
all that, by stream, what makes tensor maps, and the memory of the parameters."""

Word: TypeAlias = tuple[int, int, int]
"""A word to write: number of the array argument, bytes to add, number of its tensor map (-1: the address itself)."""


class Launches(dict[int, cuda.Launch]):
    """The driver's call of a frame by stream (the driver's own number), made up when a stream is met."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[int], cuda.Launch]):
        self._make = make

    def __missing__(self, stream: int) -> cuda.Launch:
        if len(self) >= _STREAMS:
            self.clear()
        run = self[stream] = self._make(stream)
        return run


class Ready:
    """The prepared launches of a call: ``plans``, and beside each that is not empty its function.

    ``frames`` is the pool of those that nobody uses now; any thread may launch at any time.
    """

    __slots__ = ("_gpu", "device", "empty", "frames", "functions", "plans", "words")

    def __init__(self, gpu: cuda.Driver, plans: Sequence[Plan], functions: Sequence[cuda.Handle], device: int):
        self.plans = tuple(plans)
        self.functions = tuple(functions)
        self.empty = all(p.empty for p in plans)
        self.device = device
        self.frames: list[Frame] = []
        self._gpu = gpu
        words: list[Word] = []
        maps = 0
        for plan in self._launched():
            words += [(argument, add, -1) for _, _, argument, add in plan.packed.patches]
            words += [(m.address.argument, 0, maps + i) for i, (_, m) in enumerate(plan.packed.maps)]
            maps += len(plan.packed.maps)
        self.words: tuple[Word, ...] = tuple(words)

    def _launched(self) -> list[Plan]:
        return [p for p in self.plans if not p.empty]

    def frame(self) -> Frame:
        """Make a new frame; nothing is written in it."""
        frames = [self._frame_of(p, f) for p, f in zip(self._launched(), self.functions)]
        if len(frames) == 1:
            return frames[0]
        launches = Launches(lambda stream: _in_order([each[2][stream] for each in frames]))
        slots = tuple([slot for each in frames for slot in each[0]])
        known = tuple([addresses for each in frames for addresses in each[1]])
        maps = tuple([encoded for each in frames for encoded in each[3]])
        return slots, known, launches, maps, [each[4] for each in frames]

    def _frame_of(self, plan: Plan, function: cuda.Handle) -> Frame:
        """Make the frame of one launch."""
        packed = plan.packed
        offsets: list[int] = []
        total = 0
        for b in packed.buffers:
            offsets.append(total)
            total += -(-len(b) // 64) * 64
        memory = (ctypes.c_uint8 * (total + 64))()
        base = -(-ctypes.addressof(memory) // 64) * 64 - ctypes.addressof(memory)
        for offset, b in zip(offsets, packed.buffers):
            memory[base + offset : base + offset + len(b)] = b
        start = ctypes.addressof(memory) + base
        parameters = (ctypes.c_void_p * max(1, len(packed.buffers)))(*[start + o for o in offsets])
        word = ctypes.c_uint64.from_buffer
        slots = [word(memory, base + offsets[p] + offset) for p, offset, _, _ in packed.patches]
        # The parameter of a tensor map is wherever the map was made: nothing is copied.
        slots += [word(parameters, 8 * p) for p, _ in packed.maps]
        maps = tuple([EncodedMaps(self._gpu, m) for _, m in packed.maps])
        launches = Launches(lambda stream: self._gpu.launcher(function, plan.shape, parameters, stream))
        return tuple(slots), tuple([m.known for m in maps]), launches, maps, memory

    def write(self, frame: Frame, addresses: Sequence[int]) -> None:
        """Write the addresses of the arguments (one each) into a frame.  Raises :class:`CudaError` for a tensor map."""
        slots, _, _, maps, _ = frame
        # The driver makes tensor maps under a context only, and this thread may have none yet.
        previous = self._gpu.enter(self.device) if maps else 0
        try:
            for slot, (argument, add, number) in zip(slots, self.words):
                address = addresses[argument]
                slot.value = address + add if number < 0 else maps[number].at(address)
        finally:
            if previous:
                self._gpu.set_context(previous)

    def launch(self, addresses: Sequence[int], stream: int) -> None:
        """Launch for arrays at ``addresses`` (one an argument).  Raises :class:`CudaError`."""
        try:
            frame = self.frames.pop()
        except IndexError:
            frame = self.frame()
        self.write(frame, addresses)
        run = frame[2][stream]
        (code,) = run()
        if code:
            self.failed(run, code)
        self.frames.append(frame)

    def failed(self, run: cuda.Launch, code: int) -> None:
        """Launch once more in the kernel's context if ``run()`` failed under another one or none.

        Then the first of several launches failed, so none is made twice.

        Raises :class:`CudaError`.
        """
        gpu = self._gpu
        if not gpu.is_current(self.device):
            previous = gpu.enter(self.device)
            try:
                (code,) = run()
            finally:
                if previous:
                    gpu.set_context(previous)
        gpu.check("cuLaunchKernelEx", int(code))


def _in_order(runs: Sequence[cuda.Launch]) -> cuda.Launch:
    """Return what launches one after another, up to the first that the driver refuses, whose code it gives."""

    def run() -> tuple[int]:
        for each in runs:
            done = each()
            if done[0]:
                return done
        return (0,)

    return run


class BoundCall:
    """A launch on fixed arrays; call it to launch.  Made by ``Kernel.bind``.  It keeps the arrays alive.

    What the arrays looked like is not checked again: whoever resizes one binds anew.
    """

    __slots__ = ("_addresses", "_device", "_frames", "_ready", "_stream_now", "_views", "arguments")

    def __init__(
        self,
        ready: Ready,
        arguments: tuple[object, ...],
        views: tuple[ArrayView | None, ...],
        addresses: Sequence[int],
    ):
        self.arguments = arguments
        self._ready = ready
        self._device = ready.device
        self._views = tuple([v for v in views if v is not None])
        self._addresses = addresses
        self._frames: list[Frame] = [] if ready.empty else [self._frame()]
        torch = sys.modules.get("torch")
        of_torch = torch is not None and any(v.library == "torch" for v in self._views)
        self._stream_now = current_stream_of_torch() if of_torch else None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """What is launched, in order: kernel, grid, block, bytes."""
        return self._ready.plans

    @property
    def plan(self) -> Plan:
        """The one launch of the call.  Raises :class:`LaunchError` where there are several, or none."""
        return only(self._ready.plans)

    @property
    def function(self) -> cuda.Handle:
        """The kernel of the one launch, a ``CUfunction`` of cuda-python; 0 if it has nothing to do.

        Raises :class:`LaunchError` where there are several launches, or none.
        """
        return 0 if self.plan.empty else self._ready.functions[0]

    @property
    def driver_call(self) -> cuda.Launch:
        """``cuLaunchKernelEx`` alone (once a launch), as the last call called it.  To measure by."""
        return next(reversed(self._frames[-1][2].values()))

    def __call__(self, stream: object = None) -> None:
        """Launch on ``stream``, by default the current one of the arrays' library.  Raises ``CudaError``."""
        if stream is not None:
            raw = stream_of(stream)
        elif self._stream_now is not None:
            raw = self._stream_now(self._device)
        else:
            raw = stream_of(None, self._views)
        try:
            frame = self._frames.pop()
        except IndexError:
            if self._ready.empty:
                return
            frame = self._frame()
        run = frame[2][raw]
        (code,) = run()
        if code:
            self._ready.failed(run, code)
        self._frames.append(frame)

    def _frame(self) -> Frame:
        frame = self._ready.frame()
        self._ready.write(frame, self._addresses)
        return frame
