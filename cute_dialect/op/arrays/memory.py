"""GPU memory for copies of CPU arrays and for workspaces.

Arrays of torch and CuPy use the allocators of these libraries.

>>> get_memory_pool(1 << 20, 1 << 30)                    # nothing is reserved before a GPU is used
>>> get_allocated_size()
0
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from cute_dialect.op.arrays.dtypes import SIZES
from cute_dialect.op.arrays.library import gpu_here
from cute_dialect.op.errors import ShapeError
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, view_of
from cute_dialect.runtime.driver import CurrentContext

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.driver import Driver, Handle

NOWHERE = "nowhere"
"""The library of a placeholder array that is never read; its memory is not allocated."""


class Pool:
    """Memory of one GPU.

    Args:
        initial: bytes to reserve at once and keep.
        maximum: limit in bytes of a pool of the driver; 0 allocates each array from the driver.
    """

    def __init__(self, gpu: Driver, device: int, initial: int = 0, maximum: int = 0):
        self._gpu, self._device = gpu, device
        self._sizes: dict[int, int] = {}
        self._lock = Lock()
        self._pool: Handle | None = None
        if maximum:
            self._pool = self._within(lambda: gpu.new_pool(device, maximum))
            if initial:
                self.free(self.allocate(initial))

    def _within(self, do: Callable[[], Handle]) -> Handle:
        """Call ``do`` in the GPU's context."""
        with CurrentContext(self._gpu, self._device):
            return do()

    @property
    def allocated(self) -> int:
        """Bytes in use."""
        with self._lock:
            return sum(self._sizes.values())

    def allocate(self, size: int) -> int:
        """Allocate memory and return its address.  Raises CudaError."""
        pool, size = self._pool, max(1, size)
        made = self._within(lambda: self._gpu.allocate(size) if pool is None else self._gpu.allocate_from(pool, size))
        with self._lock:
            self._sizes[int(made)] = size
        return int(made)

    def free(self, pointer: int) -> None:
        """Free memory that is no longer used."""
        with self._lock:
            del self._sizes[pointer]

        def free() -> int:
            (self._gpu.free if self._pool is None else self._gpu.free_to_pool)(pointer)
            return 0

        self._within(free)

    def to_device(self, pointer: int, host: int, size: int) -> None:
        """Copy bytes from a host address, and wait for the copy."""
        self._gpu.to_device(pointer, host, size)

    def wait(self) -> None:
        """Wait for all work on the GPU."""
        self._gpu.synchronize(0)

    def to_host(self, host: int, pointer: int, size: int) -> None:
        """Copy bytes to a host address, and wait for the copy."""
        self._gpu.to_host(host, pointer, size)

    def array(self, count: int, element: str, *, zero: bool = False) -> ArrayView:
        """Return a new array of one mode that owns its memory; ``zero``: filled with zeros."""
        size = count * SIZES[element]
        pointer = self.allocate(size)
        if zero and size:
            host = bytearray(size)
            import ctypes

            self.to_device(pointer, ctypes.addressof((ctypes.c_uint8 * size).from_buffer(host)), size)
        return ArrayView(pointer, (count,), (1,), element, self._device, "numpy", _Held(self, pointer))


def new_memory(like: ArrayView, count: int, element: str, *, zero: bool = False) -> ArrayView:
    """Return memory for ``count`` elements on the device of ``like``, from torch's allocator for torch arrays."""
    torch = sys.modules.get("torch")
    if like.library == NOWHERE:
        return ArrayView(0, (count,), (1,), element, like.device, NOWHERE, None)
    if like.device < 0:
        import numpy as np

        kind = numpy_dtype(element)
        # Floats start as NaN, which exposes reads of memory that was never written.
        nothing = 0 if zero or kind.kind == "i" else np.nan
        return view_of(np.full(count, nothing, kind))
    if torch is not None and like.library == "torch":
        make = torch.zeros if zero else torch.empty
        kind = getattr(torch, numpy_dtype(element).name)
        return view_of(make(count, device=f"cuda:{like.device}", dtype=kind))
    return pool_of(like.device).array(count, element, zero=zero)


class _Held:
    """Memory that is freed when the last reference to it is dropped."""

    def __init__(self, pool: Pool, pointer: int):
        self._pool, self._pointer = pool, pointer

    def __del__(self) -> None:
        if not sys.is_finalizing():  # at exit the driver may be gone, and the process frees everything
            self._pool.free(self._pointer)


_SIZES = [0, 0]
"""Requested pool sizes in bytes: initial, maximum."""


@cache
def pool_of(device: int) -> Pool:
    """Return the memory pool of a GPU.  Raises DeviceError if there is no GPU."""
    pool = Pool(gpu_here(), device, *_SIZES)
    _POOLS.append(pool)
    return pool


_POOLS: list[Pool] = []


def get_memory_pool(init_pool_size: int = 0, max_pool_size: int = 1 << 34) -> None:
    """Allocate copies and workspaces from a pool, which is created when a GPU is first used.

    Args:
        init_pool_size: bytes to reserve at once.
        max_pool_size: limit in bytes.

    Raises ShapeError for invalid sizes, and if memory is in use.
    """
    if not 0 <= init_pool_size <= max_pool_size or max_pool_size <= 0:
        raise ShapeError(
            f"get_memory_pool: init_pool_size is {init_pool_size} and max_pool_size is {max_pool_size}; pass "
            "0 <= init_pool_size <= max_pool_size and max_pool_size > 0"
        )
    if get_allocated_size():
        raise ShapeError(
            f"get_memory_pool: {get_allocated_size()} bytes are in use; call it before the first operation on a GPU"
        )
    _SIZES[:] = [init_pool_size, max_pool_size]
    pool_of.cache_clear()
    _POOLS.clear()


def get_allocated_size() -> int:
    """Return the bytes that copies and workspaces use on all GPUs."""
    return sum(pool.allocated for pool in _POOLS)
