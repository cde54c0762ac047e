"""Memory of a GPU for copies of CPU arrays and for what blocks share; arrays of torch and CuPy have their own.

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

from cute_dialect.op.elements import SIZES
from cute_dialect.op.errors import ShapeError
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.driver import Driver, Handle

__all__ = ["NOWHERE", "Pool", "get_allocated_size", "get_memory_pool", "new_memory", "pool_of"]


NOWHERE = "nowhere"
"""The library of an array that nobody reads: memory where it is is not made either."""


class Pool:
    """Memory of one GPU: from a pool of the driver's where ``maximum`` is given, ``initial`` bytes of which are taken
    at once and kept; else each piece from the driver.
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
        """Do something in the GPU's context."""
        previous = self._gpu.enter(self._device)
        try:
            return do()
        finally:
            if previous:
                self._gpu.set_context(previous)

    @property
    def allocated(self) -> int:
        """Bytes that are in use."""
        with self._lock:
            return sum(self._sizes.values())

    def allocate(self, size: int) -> int:
        """Allocate memory; gives its address.  Raises CudaError."""
        pool, size = self._pool, max(1, size)
        made = self._within(lambda: self._gpu.allocate(size) if pool is None else self._gpu.allocate_from(pool, size))
        with self._lock:
            self._sizes[int(made)] = size
        return int(made)

    def free(self, pointer: int) -> None:
        """Give memory back, which nothing uses any more."""
        with self._lock:
            del self._sizes[pointer]

        def free() -> int:
            (self._gpu.free if self._pool is None else self._gpu.free_to_pool)(pointer)
            return 0

        self._within(free)

    def to_device(self, pointer: int, host: int, size: int) -> None:
        """Copy bytes from a host address; returns when done."""
        self._gpu.to_device(pointer, host, size)

    def wait(self) -> None:
        """Wait until the GPU has done all that it was given."""
        self._gpu.synchronize(0)

    def to_host(self, host: int, pointer: int, size: int) -> None:
        """Copy bytes to a host address; returns when done."""
        self._gpu.to_host(host, pointer, size)

    def array(self, count: int, element: str, *, zero: bool = False) -> ArrayView:
        """Return a new array of one mode, which has its memory as long as it lives; ``zero``: filled with zeros."""
        size = count * SIZES[element]
        pointer = self.allocate(size)
        if zero and size:
            host = bytearray(size)
            import ctypes

            self.to_device(pointer, ctypes.addressof((ctypes.c_uint8 * size).from_buffer(host)), size)
        return ArrayView(pointer, (count,), (1,), element, self._device, "numpy", _Held(self, pointer))


def new_memory(like: ArrayView, count: int, element: str, *, zero: bool = False) -> ArrayView:
    """Return memory of so many elements where an array is, by its library's allocator if that is torch's."""
    torch = sys.modules.get("torch")
    if like.library == NOWHERE:
        return ArrayView(0, (count,), (1,), element, like.device, NOWHERE, None)
    if like.device < 0:
        import numpy as np

        from cute_dialect.runtime.arrays import numpy_dtype, view_of

        kind = numpy_dtype(element)
        # What is read before it was written is seen.
        nothing = 0 if zero or kind.kind == "i" else np.nan
        return view_of(np.full(count, nothing, kind))
    if torch is not None and like.library == "torch":
        from cute_dialect.runtime.arrays import numpy_dtype, view_of

        make = torch.zeros if zero else torch.empty
        kind = getattr(torch, numpy_dtype(element).name)
        return view_of(make(count, device=f"cuda:{like.device}", dtype=kind))
    return pool_of(like.device).array(count, element, zero=zero)


class _Held:
    """Memory that is given back when nobody has it any more."""

    def __init__(self, pool: Pool, pointer: int):
        self._pool, self._pointer = pool, pointer

    def __del__(self) -> None:
        if not sys.is_finalizing():  # a process that ends has no driver left to call, and gives all back
            self._pool.free(self._pointer)


_SIZES = [0, 0]
"""What was asked for: bytes at once, bytes at most."""


@cache
def pool_of(device: int) -> Pool:
    """Return the memory of a GPU.  Raises DeviceError where there is none."""
    from cute_dialect.op.arrays import gpu_here

    pool = Pool(gpu_here(), device, *_SIZES)
    _POOLS.append(pool)
    return pool


_POOLS: list[Pool] = []


def get_memory_pool(init_pool_size: int = 0, max_pool_size: int = 1 << 34) -> None:
    """Take memory for copies and workspaces from a pool: so many bytes at once, so many at most.

    It is made when a GPU is first used.  Raises ShapeError for sizes that are none, and once memory is in use.
    """
    if not 0 <= init_pool_size <= max_pool_size or max_pool_size <= 0:
        raise ShapeError(
            f"get_memory_pool: expected bytes at once, and no fewer at most, got {init_pool_size} and {max_pool_size}"
        )
    if get_allocated_size():
        raise ShapeError(f"get_memory_pool: expected no memory in use, got {get_allocated_size()} bytes")
    _SIZES[:] = [init_pool_size, max_pool_size]
    pool_of.cache_clear()
    _POOLS.clear()


def get_allocated_size() -> int:
    """Return the bytes that copies and workspaces have now, on all GPUs."""
    return sum(pool.allocated for pool in _POOLS)
