"""Copies of CPU arrays in GPU memory, for calls with numpy arguments; and CPU memory as bytes, for the interpreter."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, cast

from cute_dialect.pipelines.arrays import ArrayView, numpy_dtype

if TYPE_CHECKING:  # pragma: no cover
    import numpy as np
    from numpy.typing import NDArray

    from cute_dialect.pipelines.driver import Driver

__all__ = ["Staged", "host_bytes", "span"]

_KEEP_ALIGNMENT = 16


def span(view: ArrayView) -> tuple[int, int]:
    """Address of the lowest byte of an array and the number of bytes up to its highest; ``(pointer, 0)`` if empty."""
    item = numpy_dtype(view.dtype).itemsize
    if 0 in view.shape:
        return view.pointer, 0
    low = sum(min(0, (e - 1) * s) for e, s in zip(view.shape, view.strides))
    high = sum(max(0, (e - 1) * s) for e, s in zip(view.shape, view.strides))
    return view.pointer + low * item, (high - low + 1) * item


def host_bytes(view: ArrayView) -> NDArray[np.uint8]:
    """The memory of a CPU array, first to last byte, in place (writes go to the array)."""
    import numpy as np

    address, size = span(view)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


class Staged:
    """A numpy array's bytes on the GPU, at an address that is as aligned (up to 16 bytes) as the array itself.

    Strides are those of the array; bytes between its elements (padding) travel there but never back.
    """

    def __init__(self, gpu: Driver, view: ArrayView):
        self._gpu = gpu
        self._host = view
        self._address, self._size = span(view)
        self._memory = gpu.allocate(self._size + _KEEP_ALIGNMENT)
        self._start = self._memory + self._address % _KEEP_ALIGNMENT
        gpu.to_device(self._start, self._address, self._size)
        pointer = self._start + (view.pointer - self._address)
        self.view = view._replace(pointer=pointer, device=0)

    def back(self) -> None:
        """Copy the elements back, if the array may be written."""
        import numpy as np

        array = cast("NDArray[np.generic]", self._host.keep)
        if not array.flags.writeable or self._size == 0:
            return
        data = np.empty(self._size, dtype=np.uint8)
        self._gpu.to_host(data.ctypes.data, self._start, self._size)
        offset = self._host.pointer - self._address
        fresh = np.ndarray(array.shape, array.dtype, buffer=data, offset=offset, strides=array.strides)
        np.copyto(array, fresh)

    def free(self) -> None:
        """Give the GPU memory back."""
        self._gpu.free(self._memory)
