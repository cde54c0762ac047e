"""CPU memory of arrays: its copies on a GPU, its bytes for the interpreter, and tensors that kernels reach by address.

Arrays that share memory share their copy.  A write through one array is therefore visible through the other.

A kernel may load the address of a tensor from an array, as in a grouped GEMM.  The interpreter places the arguments of
a launch at addresses of its own, so it knows the size of such a tensor only if :func:`remember` was called for it::

    remember(tensor)
    addresses = numpy.array([tensor.data_ptr()])       # a kernel on the interpreter may read and write the tensor
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import ref

from cute_dialect.runtime.arrays import ArrayView, numpy_dtype
from cute_dialect.runtime.launch_plan import ReadOnlyError

if TYPE_CHECKING:  # pragma: no cover
    import numpy as np
    from numpy.typing import NDArray

    from cute_dialect.runtime.driver import Driver

__all__ = [
    "HostArray",
    "Region",
    "Staged",
    "element_mask",
    "end_of_memory",
    "host_arrays",
    "host_bytes",
    "is_writable",
    "regions",
    "remember",
    "span",
]


_KEEP_ALIGNMENT = 16
_KEEP_ALIGNMENTS = 256


def span(view: ArrayView) -> tuple[int, int]:
    """Return the lowest address of an array and its extent in bytes; ``(pointer, 0)`` if the array is empty."""
    item = numpy_dtype(view.dtype).itemsize
    if 0 in view.shape:
        return view.pointer, 0
    low = sum(min(0, (e - 1) * s) for e, s in zip(view.shape, view.strides))
    high = sum(max(0, (e - 1) * s) for e, s in zip(view.shape, view.strides))
    return view.pointer + low * item, (high - low + 1) * item


class Region(NamedTuple):
    """CPU memory of one array, or of several that overlap; ``members`` are their positions in the call."""

    address: int
    size: int
    members: tuple[int, ...]


def regions(views: Sequence[ArrayView | None]) -> list[Region]:
    """Return the memory regions of arrays.  Arrays that overlap share one region.

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
    """Return a view of CPU memory as bytes; writes change that memory."""
    import numpy as np

    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def is_writable(view: ArrayView) -> bool:
    """Return True if the array may be written.  Only numpy arrays can be read-only."""
    return view.library != "numpy" or cast("NDArray[np.generic]", view.keep).flags.writeable


def end_of_memory(view: ArrayView) -> int:
    """Return the address past the end of the CPU memory that a numpy array or torch tensor belongs to, or 0."""
    keep = cast("Any", view.keep)
    if view.library == "torch":
        storage = keep.untyped_storage()
        return int(storage.data_ptr()) + int(storage.nbytes())
    if view.library != "numpy":
        return 0
    array = cast("type[object]", type(keep))
    # numpy.lib.stride_tricks.as_strided adds a base that is not an array.
    while isinstance(inner := keep.base if isinstance(keep.base, array) else getattr(keep.base, "base", None), array):
        keep = cast("Any", inner)
    return int(keep.ctypes.data) + int(keep.nbytes) if keep.flags.c_contiguous else 0


def element_mask(view: ArrayView, region: Region) -> NDArray[np.bool_]:
    """Return a mask of the bytes in a region that are elements of an array."""
    import numpy as np

    item = numpy_dtype(view.dtype).itemsize
    mask = np.zeros(region.size, np.bool_)
    if 0 not in view.shape:
        strides = (*[s * item for s in view.strides], 1)
        start = mask[view.pointer - region.address :]
        np.lib.stride_tricks.as_strided(start, (*view.shape, item), strides)[...] = True
    return mask


class Staged:
    """GPU copies of numpy arrays; a context manager that frees the GPU memory on exit.

    ``views`` are the arrays on the GPU.  The copy of an array that shares no memory keeps the array's alignment
    up to 16 bytes; the copy of overlapping arrays keeps it up to 256 bytes.  Padding between elements is copied to the
    GPU but never back.
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
        """Copy the elements back.

        Raises :class:`ReadOnlyError` if the kernel changed a read-only array; nothing is copied then.
        """
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
        """Check that a read-only array is unchanged, except where a writable array overlaps it."""
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
        while self._copies:
            self._gpu.free(self._copies.pop()[1])


# ------------------------------------------------------------------------------------------- tensors reached by address


_TENSORS: dict[int, ref[Any]] = {}


class HostArray(NamedTuple):
    """The memory of a remembered tensor."""

    address: int
    data: NDArray[np.uint8]
    tensor: Any


def remember(tensor: Any) -> None:
    """Let kernels on the interpreter reach a torch tensor in CPU memory by its address, as long as it is alive."""
    if tensor.untyped_storage().device.type == "cpu" and tensor.numel():
        key = id(tensor)
        _TENSORS[key] = ref(tensor, lambda _: _TENSORS.pop(key, None))


def host_arrays() -> list[HostArray]:
    """Return the memory of the remembered tensors that are alive, once per storage."""
    import numpy as np

    found: dict[int, HostArray] = {}
    for held in list(_TENSORS.values()):
        if (tensor := held()) is not None:
            storage = tensor.untyped_storage()
            address, size = storage.data_ptr(), storage.nbytes()
            memory = (ctypes.c_uint8 * size).from_address(address)
            found[address] = HostArray(address, np.ctypeslib.as_array(memory), tensor)
    return [found[address] for address in sorted(found)]
