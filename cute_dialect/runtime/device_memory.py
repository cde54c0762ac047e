"""Copies of CPU arrays in GPU memory, for calls with numpy arguments; and CPU memory as bytes, for the interpreter.

Arrays that share memory share their copy: what a kernel sees of one through another is what it would see if they lay on
the GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from cute_dialect.runtime.arrays import ArrayView, numpy_dtype
from cute_dialect.runtime.binding import ReadOnlyError

if TYPE_CHECKING:  # pragma: no cover
    import numpy as np
    from numpy.typing import NDArray

    from cute_dialect.runtime.driver import Driver

__all__ = ["Region", "Staged", "element_mask", "host_bytes", "is_writable", "regions", "span"]

_KEEP_ALIGNMENT = 16
_KEEP_ALIGNMENTS = 256


def span(view: ArrayView) -> tuple[int, int]:
    """Address of the lowest byte of an array and the number of bytes up to its highest; ``(pointer, 0)`` if empty."""
    item = numpy_dtype(view.dtype).itemsize
    if 0 in view.shape:
        return view.pointer, 0
    low = sum(min(0, (e - 1) * s) for e, s in zip(view.shape, view.strides))
    high = sum(max(0, (e - 1) * s) for e, s in zip(view.shape, view.strides))
    return view.pointer + low * item, (high - low + 1) * item


class Region(NamedTuple):
    """CPU memory that one array lies in, or several that overlap: address, bytes, their positions in the call."""

    address: int
    size: int
    members: tuple[int, ...]


def regions(views: Sequence[ArrayView | None]) -> list[Region]:
    """Return the memory of arrays, one region for those that overlap, by whole or by part.

    >>> def row(pointer: int) -> ArrayView:
    ...     return ArrayView(pointer, (4,), (1,), "f32", -1, "numpy", None)
    >>> regions([row(96), None, row(64), row(72), row(80)])
    [Region(address=64, size=32, members=(2, 3, 4)), Region(address=96, size=16, members=(0,))]
    """
    out: list[Region] = []
    for (start, size), i in sorted((span(v), i) for i, v in enumerate(views) if v is not None):
        last = out[-1] if out else None
        if last is not None and (start < last.address + last.size or (start, size) == last[:2]):
            end = max(last.address + last.size, start + size)
            out[-1] = Region(last.address, end - last.address, (*last.members, i))
        else:
            out.append(Region(start, size, (i,)))
    return out


def host_bytes(address: int, size: int) -> NDArray[np.uint8]:
    """Return CPU memory as bytes, in place (writes go to the arrays there)."""
    import numpy as np

    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def is_writable(view: ArrayView) -> bool:
    """Tell whether the array says that it may be written; only numpy's say that they may not."""
    return view.library != "numpy" or cast("NDArray[np.generic]", view.keep).flags.writeable


def element_mask(view: ArrayView, region: Region) -> NDArray[np.bool_]:
    """Tell which bytes of a region are elements of an array in it."""
    import numpy as np

    item = numpy_dtype(view.dtype).itemsize
    mask = np.zeros(region.size, np.bool_)
    if 0 not in view.shape:
        strides = (*[s * item for s in view.strides], 1)
        start = mask[view.pointer - region.address :]
        np.lib.stride_tricks.as_strided(start, (*view.shape, item), strides)[...] = True
    return mask


class Staged:
    """Numpy arrays' bytes on the GPU; a context manager, at whose end that memory is given back.

    ``views``: the arrays as they lie there.  An array that shares no memory is as aligned (up to 16 bytes) as on the
    CPU, others up to 256 bytes.  Bytes between elements (padding) travel there but never back.
    """

    def __init__(self, gpu: Driver, views: Sequence[ArrayView], names: Sequence[str]):
        self._gpu = gpu
        self._host = views
        self._names = names
        self._copies: list[tuple[Region, int, int]] = []
        found: dict[int, ArrayView] = {}
        try:
            for region in regions(views):
                apart = len({views[i].pointer for i in region.members}) > 1
                keep = _KEEP_ALIGNMENTS if apart else _KEEP_ALIGNMENT
                memory = gpu.allocate(region.size + keep)
                start = memory + region.address % keep
                self._copies.append((region, memory, start))
                gpu.to_device(start, region.address, region.size)
                for i in region.members:
                    found[i] = views[i]._replace(pointer=start + (views[i].pointer - region.address), device=0)
        except BaseException:
            self.free()
            raise
        self.views = tuple([found[i] for i in range(len(views))])

    def __enter__(self) -> Staged:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def back(self) -> None:
        """Copy the elements back.  Raises :class:`ReadOnlyError`, and copies nothing, if the kernel changed an array
        that may not be written."""
        import numpy as np

        fetched: list[tuple[Region, NDArray[np.uint8]]] = []
        for region, _, start in self._copies:
            data = np.empty(region.size, dtype=np.uint8)
            self._gpu.to_host(data.ctypes.data, start, region.size)
            self._check_constant(region, data)
            fetched.append((region, data))
        for region, data in fetched:
            for i in region.members:
                array = cast("NDArray[np.generic]", self._host[i].keep)
                if array.flags.writeable and array.size:
                    offset = self._host[i].pointer - region.address
                    fresh = np.ndarray(array.shape, array.dtype, buffer=data, offset=offset, strides=array.strides)
                    np.copyto(array, fresh)

    def _check_constant(self, region: Region, data: NDArray[np.uint8]) -> None:
        """What may not be written is as it was, unless another array is there that may."""
        import numpy as np

        constant = [i for i in region.members if not is_writable(self._host[i])]
        changed = data != host_bytes(region.address, region.size) if constant and region.size else None
        if changed is None or not changed.any():
            return
        for i in region.members:
            if i not in constant:
                changed &= ~element_mask(self._host[i], region)
        for i in constant:
            if np.any(changed & element_mask(self._host[i], region)):
                raise ReadOnlyError(self._names[i])

    def free(self) -> None:
        """Give the GPU memory back."""
        while self._copies:
            self._gpu.free(self._copies.pop()[1])
