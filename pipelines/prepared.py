"""Prepared launches: parameter buffers, configuration and the driver's call, made once and used again.

:class:`Ready` belongs to arguments of certain shapes, strides, types and alignment; only addresses and the stream
change from call to call.  :func:`quick_call` makes the function that recognises such arguments among torch tensors and
launches: five attributes read an argument, one comparison of addresses and two calls into the driver.
:class:`BoundCall` is a launch on fixed arrays.  None of them allocates memory or waits, so a CUDA graph can capture
them.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from cute_dialect.pipelines import driver as cuda
from cute_dialect.pipelines.arrays import ArrayView, stream_of
from cute_dialect.pipelines.prepare import Plan
from cute_dialect.pipelines.tensor_maps import MapSlot

__all__ = ["BoundCall", "QuickCall", "Ready", "quick_call", "scalar_arguments"]

QuickCall: TypeAlias = Callable[[tuple[object, ...], object], bool]
"""Launches if the arguments are of the kind it was made for; tells whether they were."""


class Ready:
    """A prepared launch: function, configuration and parameter buffers; addresses are written in at each call.

    Not safe against itself: the caller holds a lock while it launches.
    """

    __slots__ = ("_addresses", "_current", "_keep", "_launch", "_maps", "_slots", "_stream", "config", "device", "plan")

    def __init__(self, gpu: cuda.Driver, plan: Plan, function: int, device: int):
        self.plan = plan
        self.device = device
        self.config = cuda.LaunchConfig(grid=plan.grid, block=plan.block, smem=plan.smem)
        buffers = plan.packed.buffers
        offsets: list[int] = []
        total = 0
        for b in buffers:
            offsets.append(total)
            total += -(-len(b) // 64) * 64
        memory = (ctypes.c_uint8 * (total + 64))()
        base = -(-ctypes.addressof(memory) // 64) * 64 - ctypes.addressof(memory)
        for offset, b in zip(offsets, buffers):
            memory[base + offset : base + offset + len(b)] = b
        start = ctypes.addressof(memory) + base
        parameters = (ctypes.c_void_p * max(1, len(buffers)))(*[start + o for o in offsets])
        self._slots = [
            (ctypes.c_uint64.from_buffer(memory, base + offsets[p] + o), argument, add)
            for p, o, argument, add in plan.packed.patches
        ]
        self._maps = [MapSlot(tensor_map, start + offsets[p]) for p, tensor_map in plan.packed.maps]
        self._keep: list[object] = [memory]
        if plan.cluster is not None:
            attribute = cuda.cluster_attribute(plan.cluster)
            self._keep.append(attribute)
            self.config.attributes = ctypes.pointer(attribute)
            self.config.attribute_count = 1
        self._stream = 0
        self._addresses: Sequence[int] = ()
        self._launch = gpu.launcher(function, self.config, parameters)
        self._current = gpu.context_test(device)

    @property
    def driver_call(self) -> Callable[[], int]:
        """The driver's call alone, with the parameters and the stream of the last launch; gives its code."""
        return self._launch

    def launch(self, gpu: cuda.Driver, addresses: Sequence[int], stream: int) -> None:
        """Launch for arrays at ``addresses`` (one an argument).  Raises :class:`CudaError`."""
        if addresses != self._addresses:
            self._write(gpu, addresses)
        if stream != self._stream:
            self.config.stream = stream
            self._stream = stream
        if self._current():
            code = self._launch()
        else:
            previous = gpu.enter(self.device)
            try:
                code = self._launch()
            finally:
                if previous:
                    gpu.set_context(previous)
        if code:
            gpu.check("cuLaunchKernelEx", code)

    def _write(self, gpu: cuda.Driver, addresses: Sequence[int]) -> None:
        self._addresses = ()  # should the driver refuse a map, nothing is right
        for slot, argument, add in self._slots:
            slot.value = addresses[argument] + add
        for slot in self._maps:
            slot.update(gpu, addresses)
        self._addresses = addresses


def scalar_arguments(args: tuple[object, ...]) -> tuple[object, ...] | None:
    """The numbers among the arguments, ``None`` in the place of others; ``None`` if one is neither number nor tensor.

    A call with such arguments can be recognised by their values.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    tensors = _tensor_types(torch)
    if any(type(a) not in tensors and type(a) not in (int, float, bool) for a in args):
        return None
    return tuple([None if type(a) in tensors else a for a in args])


def _tensor_types(torch: Any) -> tuple[type, ...]:
    parameter = getattr(getattr(torch, "nn", None), "Parameter", None)
    return (torch.Tensor,) if parameter is None else (torch.Tensor, parameter)


def quick_call(
    gpu: cuda.Driver, ready: Ready, args: tuple[object, ...], mask: int, lock: threading.Lock
) -> QuickCall | None:
    """The function that launches ``ready`` for arguments like ``args``, which it was prepared for; ``None`` if they are
    not torch tensors and numbers.

    Tensors are alike if shape, strides, type, GPU and address & ``mask`` are the same, numbers if they are equal.
    """
    torch = sys.modules.get("torch")
    scalars = scalar_arguments(args)
    if torch is None or scalars is None or all(s is not None for s in scalars):
        return None
    used = {argument for _, _, argument, _ in ready.plan.packed.patches}
    if any(scalars[i] is not None for i in used):
        return None  # an address given as a number
    types = _tensor_types(torch)
    device = ready.device
    specs: list[tuple[Any, Any, Any, int]] = []  # of a number: itself, its type, None, -1
    for a in args:
        if type(a) in types:
            t = cast(Any, a)
            specs.append((t.shape, t.stride(), t.dtype, t.data_ptr() & mask))
        else:
            specs.append((a, type(a), None, -1))
    n = len(args)
    stream_now = _current_stream(torch)
    launch = ready.launch

    def call(args: tuple[Any, ...], stream: object) -> bool:
        if len(args) != n:
            return False
        addresses: list[int] = []
        for a, (shape, strides, dtype, low) in zip(args, specs):
            if low < 0:
                if type(a) is not strides or a != shape:
                    return False
                addresses.append(0)
                continue
            if (
                type(a) not in types
                or a.dtype is not dtype
                or a.shape != shape
                or a.stride() != strides
                or a.get_device() != device
            ):
                return False
            pointer = a.data_ptr()
            if pointer & mask != low:
                return False
            addresses.append(pointer)
        raw = stream_now(device) if stream is None else stream if type(stream) is int else stream_of(stream)
        with lock:
            launch(gpu, addresses, raw)
        return True

    return call


def _current_stream(torch: Any) -> Callable[[int], int]:
    """What gives the handle of torch's current stream on a GPU."""
    quick: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if quick is not None:  # what torch's own compiler uses: 20 times faster
        return quick
    return lambda device: int(torch.cuda.current_stream(device).cuda_stream)


class BoundCall:
    """A launch on fixed arrays; call it to launch.  Made by ``Kernel.bind``.  It keeps the arrays alive.

    What the arrays looked like is not checked again: whoever resizes one binds anew.
    """

    __slots__ = ("_addresses", "_gpu", "_lock", "_ready", "_stream_now", "_views", "arguments")

    def __init__(
        self,
        gpu: cuda.Driver,
        ready: Ready,
        arguments: tuple[object, ...],
        views: tuple[ArrayView | None, ...],
        addresses: Sequence[int],
    ):
        self.arguments = arguments
        self._gpu = gpu
        self._ready = ready
        self._views = tuple([v for v in views if v is not None])
        self._addresses = list(addresses)
        self._lock = threading.Lock()
        torch = sys.modules.get("torch")
        of_torch = torch is not None and any(v.library == "torch" for v in self._views)
        self._stream_now = _current_stream(torch) if of_torch else None

    @property
    def plan(self) -> Plan:
        """What is launched: kernel, grid, block, bytes."""
        return self._ready.plan

    @property
    def driver_call(self) -> Callable[[], int]:
        """``cuLaunchKernelEx`` alone, as the last launch called it; gives the driver's code.  To measure by."""
        return self._ready.driver_call

    def __call__(self, stream: object = None) -> None:
        """Launch on ``stream``, by default the current one of the arrays' library.  Raises ``CudaError``."""
        ready = self._ready
        if ready.plan.empty:
            return
        if stream is not None:
            raw = stream_of(stream)
        elif self._stream_now is not None:
            raw = self._stream_now(ready.device)
        else:
            raw = stream_of(None, self._views)
        with self._lock:
            ready.launch(self._gpu, self._addresses, raw)
