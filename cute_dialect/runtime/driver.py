"""The CUDA driver, the little of it that a launch needs, through ``ctypes`` on ``libcuda.so.1``.

``cuda.bindings`` wraps this same library; calling it directly needs no package at all on the GPU machine, imports in a
millisecond and adds less to a launch.  Nothing happens at import: the library is opened by :func:`driver`.

Names and structures: CUDA driver API, ``cuda.h`` (CUlaunchConfig, CUlaunchAttribute), version 12 and later.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import lru_cache, partial

__all__ = ["CudaError", "Driver", "LaunchAttribute", "LaunchConfig", "NoGpuError", "driver"]

_ATTRIBUTE_CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
_MAX_DYNAMIC_SMEM = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_NON_PORTABLE_CLUSTER = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
_CAPABILITY_MAJOR, _CAPABILITY_MINOR, _SMEM_OPTIN, _SM_COUNT = 75, 76, 97, 16  # CU_DEVICE_ATTRIBUTE_*
_POINTER_DEVICE = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL

SMEM_WITHOUT_OPT_IN = 48 * 1024
PORTABLE_CLUSTER = 8

_HINTS = {
    100: "no CUDA device is visible (nvidia-smi shows them; CUDA_VISIBLE_DEVICES may hide them)",
    200: "the image was made for another architecture",
    209: "the machine code was made for another architecture than this GPU's",
    218: "the driver's assembler refused the PTX",
    222: "this driver is too old for the PTX version of the kernel",
    700: "a kernel accessed memory that is not allocated",
    701: "too many registers, threads or bytes of shared memory for this GPU",
    716: "a kernel accessed memory at a misaligned address",
    719: "a kernel failed (a trap or an assertion in it)",
}


class CudaError(Exception):
    """The driver refused a call; ``code`` is the CUresult."""

    def __init__(self, call: str, code: int, text: str):
        hint = f": {_HINTS[code]}" if code in _HINTS else ""
        super().__init__(f"{call} failed with {text} ({code}){hint}")
        self.code = code


class NoGpuError(CudaError):
    """There is no NVIDIA driver or no GPU here."""

    def __init__(self, message: str):
        Exception.__init__(self, message)
        self.code = 100


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an id and a union of 64 bytes, of which the cluster dimension uses three integers."""

    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_uint * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("smem", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    )


class Driver:
    """The driver of this machine.  Get it with :func:`driver`.  Handles are plain integers; sizes are bytes."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        self._contexts: dict[int, int] = {}
        self.launch_kernel_ex = library.cuLaunchKernelEx
        self.launch_kernel_ex.argtypes = (POINTER(LaunchConfig), c_void_p, POINTER(c_void_p), c_void_p)
        self.launch_kernel_ex.restype = c_int
        self._get_current = library.cuCtxGetCurrent
        self._get_current.argtypes = (POINTER(c_void_p),)
        self._get_current.restype = c_int
        self._call("cuInit", c_uint(0))
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        self.device_count = count.value
        if self.device_count == 0:
            raise NoGpuError(
                f"no GPU: {_HINTS[100]}; run on the CPU interpreter instead (device='cpu', or --device=cpu)"
            )

    def _call(self, name: str, *arguments: object) -> None:
        function = getattr(self._library, name)
        function.restype = c_int
        self.check(name, function(*arguments))

    def check(self, name: str, code: int) -> None:
        """Raise :class:`CudaError` unless ``code`` is success."""
        if code == 0:
            return
        text = c_char_p()
        self._library.cuGetErrorName(c_int(code), byref(text))
        raise CudaError(name, code, text.value.decode() if text.value else "an unknown error")

    # ---------------------------------------------------------------------------------------------------- devices

    def attribute(self, device: int, attribute: int) -> int:
        """One CU_DEVICE_ATTRIBUTE of a device."""
        out = c_int()
        self._call("cuDeviceGetAttribute", byref(out), c_int(attribute), c_int(device))
        return out.value

    def name(self, device: int) -> str:
        """Name of a device, e.g. ``NVIDIA H200``."""
        text = ctypes.create_string_buffer(128)
        self._call("cuDeviceGetName", text, c_int(128), c_int(device))
        return text.value.decode()

    def capability(self, device: int) -> tuple[int, int]:
        """Compute capability, e.g. ``(9, 0)``."""
        return self.attribute(device, _CAPABILITY_MAJOR), self.attribute(device, _CAPABILITY_MINOR)

    def smem_limit(self, device: int) -> int:
        """Bytes of shared memory that a block can opt in to."""
        return self.attribute(device, _SMEM_OPTIN)

    def multiprocessors(self, device: int) -> int:
        """Number of SMs."""
        return self.attribute(device, _SM_COUNT)

    def current_context(self) -> int:
        """The calling thread's context; 0 when it has none."""
        out = c_void_p()
        self.check("cuCtxGetCurrent", self._get_current(out))
        return out.value or 0

    def set_context(self, context: int) -> None:
        """Make a context current in the calling thread."""
        self._call("cuCtxSetCurrent", c_void_p(context))

    def primary_context(self, device: int) -> int:
        """The device's primary context, the one that torch and cupy use.  Retained for the life of the process."""
        if device not in self._contexts:
            if not 0 <= device < self.device_count:
                raise CudaError("cuDevicePrimaryCtxRetain", 101, f"no device {device}, there are {self.device_count}")
            out = c_void_p()
            self._call("cuDevicePrimaryCtxRetain", byref(out), c_int(device))
            self._contexts[device] = out.value or 0
        return self._contexts[device]

    def enter(self, device: int) -> int:
        """Make the device's primary context current; gives the context to go back to with :meth:`set_context`, 0 for
        none (it was current already, or there was none)."""
        out = c_void_p()
        self.check("cuCtxGetCurrent", self._get_current(out))
        wanted = self._contexts.get(device) or self.primary_context(device)
        if out.value == wanted:
            return 0
        self.set_context(wanted)
        return out.value or 0

    # ------------------------------------------------------------------------------------------------------- code

    def load_module(self, image: bytes) -> int:
        """Load a cubin or (NUL-terminated) PTX into the current context."""
        out = c_void_p()
        self._call("cuModuleLoadData", byref(out), c_char_p(image))
        return out.value or 0

    def get_function(self, module: int, name: str) -> int:
        """A kernel of a loaded module."""
        out = c_void_p()
        self._call("cuModuleGetFunction", byref(out), c_void_p(module), c_char_p(name.encode()))
        return out.value or 0

    def allow_smem(self, function: int, size: int) -> None:
        """Let a kernel use ``size`` bytes of dynamic shared memory, beyond the 48 KiB it may use anyway."""
        self._call("cuFuncSetAttribute", c_void_p(function), c_int(_MAX_DYNAMIC_SMEM), c_int(size))

    def allow_large_cluster(self, function: int) -> None:
        """Let a kernel run in clusters of more than eight blocks."""
        self._call("cuFuncSetAttribute", c_void_p(function), c_int(_NON_PORTABLE_CLUSTER), c_int(1))

    def launcher(self, function: int, config: LaunchConfig, parameters: ctypes.Array[c_void_p]) -> Callable[[], int]:
        """What launches the kernel with what ``config`` and ``parameters`` hold then; gives the driver's code.

        The cheapest form that ctypes has: an own function object without argument types, and arguments that are
        converted already, so that a call converts and allocates nothing.  It releases Python's lock.
        """
        raw = self._library["cuLaunchKernelEx"]
        raw.restype = c_int
        return partial(raw, byref(config), c_void_p.from_param(function), byref(parameters), None)

    def is_current(self, device: int) -> bool:
        """Whether the primary context of ``device`` is the calling thread's."""
        return self.current_context() == self.primary_context(device)

    def launch(self, function: int, config: LaunchConfig, parameters: ctypes.Array[c_void_p]) -> None:
        """Launch; ``parameters`` holds the address of each parameter's bytes."""
        code = self.launch_kernel_ex(config, function, parameters, None)
        if code:
            self.check("cuLaunchKernelEx", code)

    # ------------------------------------------------------------------------------------------------ tensor maps

    def encode_tiled(
        self,
        address: int,
        extents: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
        steps: Sequence[int],
        element: int,
        interleave: int,
        swizzle: int,
        l2: int,
        oob: int,
    ) -> bytes:
        """The 128 bytes of a tensor map, as ``cuTensorMapEncodeTiled`` makes them (driver 12.0 and later).

        Innermost dimension first; ``strides`` are bytes of dimensions 1 and up; the last five are the driver's codes.
        """
        own = ((c_uint * len(box))(*box),)
        codes = (element, interleave, swizzle, l2, oob)
        return self._encode("cuTensorMapEncodeTiled", address, extents, strides, own, steps, codes)

    def encode_im2col(
        self,
        address: int,
        extents: Sequence[int],
        strides: Sequence[int],
        lower: Sequence[int],
        upper: Sequence[int],
        channels: int,
        pixels: int,
        steps: Sequence[int],
        element: int,
        interleave: int,
        swizzle: int,
        l2: int,
        oob: int,
    ) -> bytes:
        """The 128 bytes of a tensor map of columns of pixels, as ``cuTensorMapEncodeIm2col`` makes them.

        ``lower``, ``upper``: corners of the box of base pixels, W first; the others as for :meth:`encode_tiled`.
        """
        n = len(lower)
        own = ((c_int * n)(*lower), (c_int * n)(*upper), c_uint(channels), c_uint(pixels))
        codes = (element, interleave, swizzle, l2, oob)
        return self._encode("cuTensorMapEncodeIm2col", address, extents, strides, own, steps, codes)

    def _encode(
        self,
        name: str,
        address: int,
        extents: Sequence[int],
        strides: Sequence[int],
        own: tuple[object, ...],
        steps: Sequence[int],
        codes: tuple[int, int, int, int, int],
    ) -> bytes:
        function = getattr(self._library, name, None)
        if function is None:
            raise CudaError(name, 801, "not supported: this driver is older than 12.0")
        rank = len(extents)
        storage = (ctypes.c_uint8 * 192)()
        at = -(-ctypes.addressof(storage) // 64) * 64  # the driver wants 64-byte alignment
        function.restype = c_int
        element, *others = codes
        code = function(
            c_void_p(at),
            c_int(element),
            c_uint(rank),
            c_uint64(address),
            (c_uint64 * rank)(*extents),
            (c_uint64 * rank)(*strides),
            *own,
            (c_uint * rank)(*steps),
            *[c_int(x) for x in others],
        )
        self.check(name, code)
        return ctypes.string_at(at, 128)

    # ----------------------------------------------------------------------------------------------------- memory

    def allocate(self, size: int) -> int:
        """Device memory, 256-byte aligned."""
        out = c_uint64()
        self._call("cuMemAlloc_v2", byref(out), c_size_t(max(1, size)))
        return out.value

    def free(self, pointer: int) -> None:
        """Give memory back."""
        self._call("cuMemFree_v2", c_uint64(pointer))

    def to_device(self, pointer: int, host: int, size: int) -> None:
        """Copy ``size`` bytes from host address ``host``; returns when done."""
        if size:
            self._call("cuMemcpyHtoD_v2", c_uint64(pointer), c_void_p(host), c_size_t(size))

    def to_host(self, host: int, pointer: int, size: int) -> None:
        """Copy ``size`` bytes to host address ``host``; returns when done."""
        if size:
            self._call("cuMemcpyDtoH_v2", c_void_p(host), c_uint64(pointer), c_size_t(size))

    def synchronize(self, stream: int) -> None:
        """Wait for a stream."""
        self._call("cuStreamSynchronize", c_void_p(stream))

    def new_event(self) -> int:
        """An event for timing."""
        out = c_void_p()
        self._call("cuEventCreate", byref(out), c_uint(0))
        return out.value or 0

    def record(self, event: int, stream: int = 0) -> None:
        """Record an event in a stream."""
        self._call("cuEventRecord", c_void_p(event), c_void_p(stream))

    def elapsed(self, start: int, end: int) -> float:
        """Microseconds from one event to another; waits for the second."""
        from ctypes import c_float

        self._call("cuEventSynchronize", c_void_p(end))
        out = c_float()
        self._call("cuEventElapsedTime", byref(out), c_void_p(start), c_void_p(end))
        return 1000.0 * out.value

    def pointer_device(self, pointer: int) -> int | None:
        """The device that an address belongs to; ``None`` for memory the driver does not know."""
        out = c_int()
        function = self._library.cuPointerGetAttribute
        function.restype = c_int
        return None if function(byref(out), c_int(_POINTER_DEVICE), c_uint64(pointer)) else out.value


def cluster_attribute(cluster: tuple[int, int, int]) -> LaunchAttribute:
    """The launch attribute that sets the cluster's size in blocks."""
    out = LaunchAttribute(id=_ATTRIBUTE_CLUSTER)
    out.value[0], out.value[1], out.value[2] = cluster
    return out


@lru_cache(maxsize=1)
def driver() -> Driver:
    """Open the driver.  Raises :class:`NoGpuError` where there is none, or no GPU."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as e:
        raise NoGpuError(
            "no GPU: the NVIDIA driver (libcuda.so.1) is not installed here; run where there is one, or on the CPU "
            "interpreter (device='cpu', or --device=cpu)"
        ) from e
    try:
        return Driver(library)
    except CudaError as e:
        if isinstance(e, NoGpuError):
            raise
        raise NoGpuError(f"no GPU can be used: {e}") from e
