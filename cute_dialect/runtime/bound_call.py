"""Prepared launches: parameter buffers, launch configuration and driver call, built once and reused.

A :class:`Ready` serves arguments of one set of shapes, strides, types and alignments.  Only addresses and the stream
change between calls.  The memory that one launch writes is a *frame*.  Each launch takes a frame from the pool,
writes it, calls the driver and puts it back.  Threads that launch concurrently use separate frames, so no lock is
needed; a lock held during the driver call could deadlock a signal handler that launches.

:class:`BoundCall` is a launch on fixed arrays.  It neither allocates GPU memory nor waits, so a CUDA graph can
capture it.  For a call with several launches, the frame holds the parameters of all of them, and its driver call runs
them in order.

**Contexts.**  A launch does not query the current context, which would cost a tenth of the launch.  A kernel belongs
to the primary context of its GPU.  Under any other context the driver returns an error and launches nothing.
:meth:`Ready.failed` then enters the right context, launches again and restores the previous one.

**GIL.**  The driver is called with the GIL released, although holding it would save 40 ns.  A launch blocks while the
GPU's queue is full, and a host callback that needs the GIL may have to run before the queue drains.
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
"""Number of streams for which a frame caches its driver call."""
_Slots: TypeAlias = tuple[ctypes.c_uint64, ...]
_Known: TypeAlias = tuple[dict[int, int], ...]
Frame: TypeAlias = "tuple[_Slots, _Known, Launches, tuple[EncodedMaps, ...], object]"
"""Memory of one launch.

The fields are the words of :attr:`Ready.words`, the known tensor maps, the driver call per stream, the tensor map
encoders, and the parameter memory.
"""

Word: TypeAlias = tuple[int, int, int]
"""A word to write: array argument, bytes to add, and number of the tensor map (-1: the address itself)."""


class Launches(dict[int, cuda.Launch]):
    """Driver calls of a frame by stream handle, built on first use."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[int], cuda.Launch]):
        self._make = make

    def __missing__(self, stream: int) -> cuda.Launch:
        if len(self) >= _STREAMS:
            self.clear()
        run = self[stream] = self._make(stream)
        return run


class Ready:
    """Prepared launches of a call: ``plans``, and the CUDA function of each plan that is not empty.

    ``frames`` is the pool of unused frames.  Any thread may launch at any time.
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
        """Allocate a frame; its addresses are not yet written."""
        frames = [self._frame_of(p, f) for p, f in zip(self._launched(), self.functions)]
        if len(frames) == 1:
            return frames[0]
        launches = Launches(lambda stream: _in_order([each[2][stream] for each in frames]))
        slots = tuple([slot for each in frames for slot in each[0]])
        known = tuple([addresses for each in frames for addresses in each[1]])
        maps = tuple([encoded for each in frames for encoded in each[3]])
        return slots, known, launches, maps, [each[4] for each in frames]

    def _frame_of(self, plan: Plan, function: cuda.Handle) -> Frame:
        """Allocate the frame of one launch."""
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
        # The parameter of a tensor map points to the encoded map, so the map is never copied.
        slots += [word(parameters, 8 * p) for p, _ in packed.maps]
        maps = tuple([EncodedMaps(self._gpu, m) for _, m in packed.maps])
        launches = Launches(lambda stream: self._gpu.launcher(function, plan.shape, parameters, stream))
        return tuple(slots), tuple([m.known for m in maps]), launches, maps, memory

    def write(self, frame: Frame, addresses: Sequence[int]) -> None:
        """Write the addresses, one per argument, into a frame.

        Raises ``CudaError`` if a tensor map is invalid.
        """
        slots, _, _, maps, _ = frame
        # Encoding a tensor map needs a current context, and this thread may not have one yet.
        previous = self._gpu.enter(self.device) if maps else 0
        try:
            for slot, (argument, add, number) in zip(slots, self.words):
                address = addresses[argument]
                slot.value = address + add if number < 0 else maps[number].at(address)
        finally:
            if previous:
                self._gpu.set_context(previous)

    def launch(self, addresses: Sequence[int], stream: int) -> None:
        """Launch for arrays at ``addresses``, one per argument.  Raises ``CudaError``."""
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

    @property
    def launch_address(self) -> int:
        """Address of ``cuLaunchKernelEx``, or 0."""
        return self._gpu.launch_address

    def native_kernels(self) -> list[tuple[object, ...]]:
        """Return the launches as the arguments of ``Kernels`` (:mod:`cute_dialect.runtime.native`)."""
        made: list[tuple[object, ...]] = []
        for plan, function in zip(self._launched(), self.functions):
            maps = [(p, m.address.argument, self._encoder(EncodedMaps(self._gpu, m))) for p, m in plan.packed.maps]
            shape, packed = plan.shape, plan.packed
            made.append((
                int(function), shape.grid, shape.block, shape.smem, shape.cluster, shape.cooperative, shape.pdl,
                packed.buffers, packed.patches, maps,
            ))  # fmt: skip
        return made

    def _encoder(self, maps: EncodedMaps) -> Callable[[int], int]:
        def encode(address: int) -> int:
            previous = self._gpu.enter(self.device)
            try:
                return maps.at(address)
            finally:
                if previous:
                    self._gpu.set_context(previous)

        return encode

    def native_failed(self, index: int, code: int, stream: int, addresses: Sequence[int]) -> None:
        """Launch once more after an error of the first launch (``index`` 0), as :meth:`failed` does.

        Raises ``CudaError``.
        """
        if index:
            self._gpu.check("cuLaunchKernelEx", code)
        self.launch(addresses, stream)

    def failed(self, run: cuda.Launch, code: int) -> None:
        """Launch once more in the kernel's context if ``run()`` failed under another context or none.

        In that case the first of several launches failed, so no launch runs twice.

        Raises ``CudaError``.
        """
        gpu = self._gpu
        if not gpu.is_current(self.device):
            with cuda.CurrentContext(gpu, self.device):
                (code,) = run()
        gpu.check("cuLaunchKernelEx", int(code))


def _in_order(runs: Sequence[cuda.Launch]) -> cuda.Launch:
    """Combine launches into one call, which stops at the first error and returns its code."""

    def run() -> tuple[int]:
        for each in runs:
            done = each()
            if done[0]:
                return done
        return (0,)

    return run


class BoundCall:
    """A launch on fixed arrays, created by ``Kernel.bind``.  Call the object to launch; it keeps the arrays alive.

    Calls do not check the arrays again.  After resizing an array, bind again.
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
        """Launches in order, with kernel, grid, block and parameter bytes."""
        return self._ready.plans

    @property
    def plan(self) -> Plan:
        """The only launch of the call.  Raises ``LaunchError`` if there are several or none."""
        return only(self._ready.plans)

    @property
    def function(self) -> cuda.Handle:
        """CUDA function of the only launch, a ``CUfunction`` of cuda-python; 0 if the launch is empty.

        Raises ``LaunchError`` if there are several launches or none.
        """
        return 0 if self.plan.empty else self._ready.functions[0]

    @property
    def driver_call(self) -> cuda.Launch:
        """The bare ``cuLaunchKernelEx`` calls of the last call, for measurements."""
        return next(reversed(self._frames[-1][2].values()))

    def __call__(self, stream: object = None) -> None:
        """Launch on ``stream``, by default the current stream of the arrays' library.  Raises ``CudaError``."""
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
