"""Array arguments of any library as one record: address, shape, strides, element type and device.

Torch tensors, CuPy arrays and any object with ``__cuda_array_interface__`` or DLPack are read in place.  Numpy arrays
are CPU memory.  This module imports an array library only if the caller has imported it already.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from cute_dialect.errors import CuteError

if TYPE_CHECKING:  # pragma: no cover
    import numpy as np

__all__ = [
    "PACKED",
    "ArrayView",
    "NotAnArray",
    "OutsideMemory",
    "accepts",
    "as_packed",
    "current_stream_of_torch",
    "numpy_dtype",
    "plain_address",
    "stream_of",
    "view_of",
]


class NotAnArray(CuteError, TypeError):
    """The object is not a supported array, or its element type is not supported."""


class OutsideMemory(NotAnArray):
    """The array extends past the end of its underlying memory."""


class ArrayView(NamedTuple):
    """Address, shape, strides and element type of an array.

    Args:
        pointer: address of the first element.
        shape: extents.
        strides: strides in elements.
        dtype: element type, e.g. ``f32``.
        device: number of the GPU, -1 for the CPU.
        library: interface that read the array: ``torch``, ``numpy``, ``cuda`` (array interface) or ``dlpack``.
        keep: object that must stay alive until the launch is queued.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int
    library: str
    keep: object

    def transposed(self) -> ArrayView:
        """Return the transpose of a matrix, or of each matrix of a batch (…, M, N)."""
        (*more, m, n), (*steps, row, column) = self.shape, self.strides
        return self._replace(shape=(*more, n, m), strides=(*steps, column, row))


_NAMES: Mapping[str, str] = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "float8_e8m0fnu": "f8E8M0FNU",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "ui64",
    "uint32": "ui32",
    "uint16": "ui16",
    "uint8": "ui8",
    "bool": "i1",
}
_SIZES: Mapping[str, int] = {
    "f64": 8, "f32": 4, "tf32": 4, "f16": 2, "bf16": 2, "f8E4M3FN": 1, "f8E5M2": 1, "f8E8M0FNU": 1, "i64": 8, "i32": 4,
    "i16": 2, "i8": 1, "ui64": 8, "ui32": 4, "ui16": 2, "ui8": 1, "i1": 1,
}  # fmt: skip
"""Bytes per element."""
_PACKED_4_BIT = "{}, two numbers per byte, and use cute.recast_tensor(x, cute.Float4E2M1FN) in the kernel"
_DLPACK: Mapping[tuple[int, int], str] = {
    **{(0, b): f"i{b}" for b in (8, 16, 32, 64)},
    **{(1, b): f"ui{b}" for b in (8, 16, 32, 64)},
    **{(2, b): f"f{b}" for b in (16, 32, 64)},
    (4, 16): "bf16",
    (6, 8): "i1",
    (10, 8): "f8E4M3FN",
    (12, 8): "f8E5M2",
    (14, 8): "f8E8M0FNU",
}


def accepts(element: str, dtype: str) -> bool:
    """Return True if an array of ``dtype`` may be passed for a tensor of ``element``.

    >>> accepts("i32", "ui32"), accepts("ui32", "i32"), accepts("tf32", "f32"), accepts("f16", "bf16")
    (True, False, True, False)
    """
    if element == dtype or (element == "tf32" and dtype == "f32"):
        return True
    return element.startswith("i") and dtype == f"u{element}"


PACKED = "f4E2M1FN"
"""Element type of which an array of bytes holds two per byte."""


def as_packed(view: ArrayView) -> ArrayView:
    """Return the shape and strides of an array of bytes in elements of 4 bits; the dtype is still that of bytes.

    Bytes hold two elements that are consecutive along the last dimension of stride 1 with several bytes, or else of
    stride 1. Raises :class:`NotAnArray` if there is none.

    >>> as_packed(ArrayView(0, (3, 64, 2), (64, 1, 192), "ui8", -1, "numpy", None))[1:3]
    ((3, 128, 2), (128, 1, 384))
    """
    ones = [i for i, s in enumerate(view.strides) if s == 1]
    lead = next((i for i in reversed(ones) if view.shape[i] > 1), ones[-1] if ones else None)
    if lead is None or view.dtype not in ("ui8", "i8"):
        raise NotAnArray(
            f"elements of {PACKED} need an array of bytes with a dimension of stride 1, got {view.dtype} with strides "
            f"{view.strides}"
        )
    shape = tuple([2 * n if i == lead else n for i, n in enumerate(view.shape)])
    return view._replace(shape=shape, strides=tuple([s if i == lead else 2 * s for i, s in enumerate(view.strides)]))


def numpy_dtype(element: str) -> np.dtype[np.generic]:
    """Return the numpy dtype for ``element`` (from ``ml_dtypes`` for bf16 and 8-bit floats).

    Raises :class:`NotAnArray` if numpy has no such dtype.
    """
    import numpy as np

    wanted = "f32" if element == "tf32" else element
    name = next((n for n, e in _NAMES.items() if e == wanted), None)
    if name is None:
        raise NotAnArray(f"numpy has no dtype for elements of {element}")
    if name == "bfloat16" or name.startswith("float8"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def view_of(value: object, stream: int = 0) -> ArrayView:
    """Read an array argument.  Raises :class:`NotAnArray`.

    ``stream`` is the stream that the kernel will run on; DLPack producers synchronize with it.
    """
    if isinstance(value, ArrayView):
        if value.library == "numpy" and value.device < 0:
            _check_inside(value)
        return value
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _numpy(cast("np.ndarray[tuple[int, ...], np.dtype[np.generic]]", value))
    if hasattr(value, "__cuda_array_interface__"):
        return _cuda(value)
    if hasattr(value, "__dlpack__"):
        return _dlpack(value, stream)
    cure = "; numpy.asarray(…, dtype=…) makes one" if isinstance(value, (list, tuple, range)) else ""
    raise NotAnArray(
        f"expected an array (torch, cupy, numpy, or anything with DLPack or the CUDA array interface), "
        f"got {type(cast(object, value)).__name__}{cure}"
    )


def _torch(value: object) -> ArrayView:
    tensor = cast(Any, value)
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _NAMES:
        known = ", ".join(_NAMES)
        cure = _PACKED_4_BIT.format("x.view(torch.uint8)") if name == "float4_e2m1fn_x2" else "x.to(…)"
        raise NotAnArray(f"torch tensors of {name} are not supported (supported: {known}): pass {cure}")
    device = tensor.device
    kind = device.type
    if kind not in ("cuda", "cpu"):
        raise NotAnArray(f"torch tensors on {kind} are not supported")
    try:
        pointer = tensor.data_ptr()
    except RuntimeError:
        raise NotAnArray("torch tensors without storage, such as those of torch.vmap, are not supported") from None
    return ArrayView(
        pointer,
        tuple(tensor.shape),
        tuple(tensor.stride()),
        _NAMES[name],
        tensor.get_device() if kind == "cuda" else -1,
        "torch",
        tensor,
    )


def _numpy(value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> ArrayView:
    name = value.dtype.name
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(value, masked.MaskedArray):
        raise NotAnArray("masked numpy arrays are not supported, a kernel sees no mask: pass x.filled(…) or x.data")
    if name in _NAMES and not value.dtype.isnative:
        raise NotAnArray(
            f"numpy arrays of {value.dtype.str!r} ({name} in the other byte order) are not supported: pass "
            f'x.astype("{name}")'
        )
    if name not in _NAMES:
        known = ", ".join(_NAMES)
        cure = "x.astype(…)"
        if name == "float4_e2m1fn":  # numpy stores one number per byte
            cure = _PACKED_4_BIT.format('u[..., ::2] | u[..., 1::2] << 4 with u = x.view("uint8")')
        raise NotAnArray(f"numpy arrays of {value.dtype} are not supported (supported: {known}): pass {cure}")
    size = value.dtype.itemsize
    if any(s % size for s in value.strides):
        raise NotAnArray(
            f"numpy array has strides {value.strides} bytes, not multiples of its element ({size} bytes): pass "
            "numpy.ascontiguousarray(x)"
        )
    strides = tuple(s // size for s in value.strides)
    view = ArrayView(value.ctypes.data, value.shape, strides, _NAMES[name], -1, "numpy", value)
    if value.base is not None:
        _check_inside(view)
    return view


def _check_inside(view: ArrayView) -> None:
    """Raise :class:`OutsideMemory` if a numpy view extends past the end of its memory; numpy does not check this.

    The memory is that of the last array in the chain of ``base`` arrays.  If the owner is a file or a buffer, the
    array's own memory counts.
    """
    import numpy as np

    keep: Any = view.keep
    if not isinstance(keep, np.ndarray) or 0 in view.shape:
        return
    memory = cast("np.ndarray[Any, Any]", keep)
    while (base := cast(Any, memory.base)) is not None:
        # numpy.lib.stride_tricks.as_strided adds a base that is not an array.
        inner = cast(Any, base if isinstance(base, np.ndarray) else getattr(base, "base", None))
        if not isinstance(inner, np.ndarray):
            break
        memory = cast("np.ndarray[Any, Any]", inner)
    item, low, high = _SIZES.get(view.dtype, memory.itemsize), 0, 0
    for extent, stride in zip(view.shape, view.strides):
        low, high = low + min(0, (extent - 1) * stride), high + max(0, (extent - 1) * stride)
    begin = view.pointer - memory.ctypes.data
    first, last = begin + low * item, begin + (high + 1) * item
    lowest = sum(min(0, (n - 1) * s) for n, s in zip(memory.shape, memory.strides))
    size = sum(abs((n - 1) * s) for n, s in zip(memory.shape, memory.strides)) + memory.itemsize
    if first < lowest or last > lowest + size:
        raise OutsideMemory(
            f"expected an array within the {size} bytes of its underlying memory, got shape {view.shape} with strides "
            f"{view.strides}, which spans bytes {first - lowest} to {last - lowest}"
        )


def _cuda(value: object) -> ArrayView:
    info = cast("Mapping[str, Any]", getattr(value, "__cuda_array_interface__"))  # noqa: B009
    if info.get("mask") is not None:
        raise NotAnArray("arrays with a mask are not supported, a kernel sees no mask")
    missing = [key for key in ("shape", "typestr", "data") if key not in info]
    if missing:
        raise NotAnArray(f"its __cuda_array_interface__ has no {', '.join(missing)}")
    shape: tuple[int, ...] = tuple(info["shape"])
    own = getattr(getattr(value, "dtype", None), "name", None)
    typestr = str(info["typestr"])
    name = _typestr_name(typestr) if own not in _NAMES else str(own)
    size = int(typestr[2:])
    given: tuple[int, ...] | None = info.get("strides")
    strides = _row_major(shape) if given is None else tuple(s // size for s in given)
    if given is not None and any(s % size for s in given):
        raise NotAnArray(f"the array has strides {given} bytes, not multiples of its element ({size} bytes)")
    device = getattr(getattr(value, "device", None), "id", None)
    pointer: int = info["data"][0]
    if device is None:
        from cute_dialect.runtime.driver import driver  # late: start-up

        device = (driver().pointer_device(pointer) or 0) if pointer else 0
    return ArrayView(pointer, shape, strides, _NAMES[name], int(device), "cuda", value)


def _typestr_name(typestr: str) -> str:
    kinds = {"f": "float", "i": "int", "u": "uint", "b": "bool"}
    name = "bool" if typestr[1] == "b" else f"{kinds.get(typestr[1], '?')}{8 * int(typestr[2:])}"
    if name not in _NAMES or typestr[0] == ">":
        raise NotAnArray(f"arrays of type {typestr!r} are not supported")
    return name


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


# ------------------------------------------------------------------------------------------------------------ DLPack


class _DLTensor(ctypes.Structure):
    """DLTensor of dlpack.h (ABI versions 0 and 1)."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int),
        ("device_id", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def _dlpack(value: object, stream: int) -> ArrayView:
    """Read a DLPack capsule in place; the unconsumed capsule is freed with the view."""
    device_type, _ = getattr(value, "__dlpack_device__")()  # noqa: B009
    export = getattr(value, "__dlpack__")  # noqa: B009
    # CUDA: 1 is the legacy default stream, and 0 is not allowed (array API standard, __dlpack__).
    try:
        capsule: object = export(stream=stream or 1) if int(device_type) in (2, 13) else export()
    except (BufferError, RuntimeError, TypeError, ValueError) as e:  # Each library raises its own exception.
        raise NotAnArray(f"{type(value).__name__} does not export DLPack: {e}") from e
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = (ctypes.py_object, ctypes.c_char_p)
    tensor = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(_DLTensor)).contents
    name = _DLPACK.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if name is None:
        raise NotAnArray(f"DLPack type code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes is not supported")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else _row_major(shape)
    if tensor.device_type not in (1, 2, 3, 13):
        raise NotAnArray(f"DLPack device type {tensor.device_type} is not supported")
    device = tensor.device_id if tensor.device_type in (2, 13) else -1
    return ArrayView((tensor.data or 0) + tensor.byte_offset, shape, strides, name, device, "dlpack", capsule)


# ------------------------------------------------------------------------------------------------------------ streams

StreamLike: TypeAlias = object
"""A stream: an integer handle or an object of torch, CuPy or cuda-python.

``None`` is the library's current stream.
"""


def stream_of(stream: StreamLike, views: tuple[ArrayView, ...] = ()) -> int:
    """Return the driver handle of a stream.  None selects the current stream of the arrays' library."""
    if stream is None:
        return _current_stream(views)
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    for attribute in ("cuda_stream", "ptr", "handle"):
        found = getattr(stream, attribute, None)
        if found is not None:
            return int(found)
    bindings = sys.modules.get("cuda.bindings.driver")
    if bindings is not None and isinstance(stream, bindings.CUstream):
        return int(cast(Any, stream))
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        pair = cast("tuple[int, int]", protocol() if callable(protocol) else protocol)
        return int(pair[1])
    raise TypeError(f"stream: expected a stream of torch, cupy or cuda-python, or its handle, got {stream!r}")


def plain_address(value: object) -> object:
    """Convert a ``CUdeviceptr`` of cuda-python to an integer; return any other value unchanged."""
    bindings = sys.modules.get("cuda.bindings.driver")
    return int(cast(Any, value)) if bindings is not None and isinstance(value, bindings.CUdeviceptr) else value


def current_stream_of_torch() -> Callable[[int], int]:
    """Return a function from a GPU number to the handle of torch's current stream.

    Torch must have been imported.
    """
    torch = sys.modules["torch"]
    quick: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if quick is not None:  # torch's own compiler uses this function, which is 20 times faster
        return quick
    return lambda device: int(torch.cuda.current_stream(device).cuda_stream)


def _current_stream(views: tuple[ArrayView, ...]) -> int:
    for view in views:
        if view.library == "torch" and view.device >= 0:
            return current_stream_of_torch()(view.device)
    cupy = sys.modules.get("cupy")
    if cupy is not None and any(v.library == "cuda" and type(v.keep).__module__.startswith("cupy") for v in views):
        return int(cupy.cuda.get_current_stream().ptr)
    return 0
