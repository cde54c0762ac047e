"""Positions: the state of iterators, arrays, random generators and context variables, which a region must not change.

Python cannot copy this state, so that it can neither be restored nor merged.  It is compared before and after a
region instead::

    table = np.zeros(3)
    if a > 3:                  # position before: (), (3,), float64, 24 bytes of zeros
        table[0] = 5           # position after: other bytes, which is an error

The contents of an array are compared up to 64 KiB, and their checksum up to 16 MiB.  Larger ones have their shape, type
and torch version compared.
"""

from __future__ import annotations

import io
import pickle
import sys
import warnings
import zlib
from contextvars import ContextVar
from functools import lru_cache
from operator import length_hint
from types import GeneratorType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

from cute_dialect.lang.rewrite.module_state import is_random_class

COMPARED = 1 << 16
"""Maximum size, in bytes, of an array whose contents are compared before and after a region."""
SUMMED = 1 << 24
"""Maximum size, in bytes, of an array whose checksum is compared. It takes 0.5 ms per MiB, twice per region."""

RANDOM, FILE, BUFFER = "a random generator", "the position in a file", "a file in memory"
"""Descriptions of state that has a cure of its own."""

_MISSING = object()


def has_position(cls: type) -> bool:
    """Return True if instances of a class are compared rather than restored."""
    return is_array_class(cls) or is_random_class(cls) or issubclass(cls, ContextVar | io.IOBase) or _is_c_iterator(cls)


@lru_cache(maxsize=4096)
def is_array_class(cls: type) -> bool:
    """Return True for NumPy arrays, torch tensors, ctypes objects, byte arrays and other buffers."""
    if issubclass(cls, bytearray | memoryview) or _is_numpy(cls) or _is_torch(cls):
        return True
    if any(c.__module__ == "_ctypes" for c in cls.__mro__):
        return True
    # NumPy's scalars and the arrays of JAX are immutable, and those of CuPy are on a GPU.
    return cls.__module__.partition(".")[0] not in ("numpy", "ml_dtypes", "jax", "jaxlib", "cupy") and any(
        isinstance(vars(c).get("tobytes"), MethodDescriptorType) for c in cls.__mro__
    )


@lru_cache(maxsize=4096)
def _is_numpy(cls: type) -> bool:
    return any(c.__name__ == "ndarray" and c.__module__ == "numpy" for c in cls.__mro__)


@lru_cache(maxsize=4096)
def _is_torch(cls: type) -> bool:
    return any(c.__name__ == "Tensor" and c.__module__ == "torch" for c in cls.__mro__)


def _is_c_iterator(cls: type) -> bool:
    """Return True for an iterator implemented in C, or a subclass of one: Python sees no state of it."""
    return any(isinstance(vars(c).get("__next__"), WrapperDescriptorType) for c in cls.__mro__)


def described(obj: object) -> str:
    """Describe an array, random generator or context variable for a message; "" for an iterator."""
    cls = type(obj)
    if isinstance(obj, ContextVar):
        return "a ContextVar"
    if is_random_class(cls):
        return RANDOM
    if _is_numpy(cls):
        return "a NumPy array"
    if _is_torch(cls):
        return "a torch tensor"
    if isinstance(obj, io.IOBase):
        return BUFFER if hasattr(obj, "getvalue") else FILE
    return f"an object of type '{cls.__name__}'" if is_array_class(cls) else ""


def elements(obj: Any) -> list[object]:
    """Return the Python objects in a NumPy array or a context variable, and the gradient of a torch tensor."""
    if isinstance(obj, ContextVar):
        return [obj.get(None)]
    if _is_numpy(type(obj)) and obj.dtype.hasobject and obj.nbytes <= COMPARED:
        return obj.ravel().tolist()
    if _is_torch(type(obj)):
        return [obj.grad] if obj.is_leaf else []
    return []


def position(obj: Any) -> object:
    """Return the state that changes when an iterator advances, a buffer is written or a variable is set."""
    if isinstance(obj, GeneratorType):
        frame = obj.gi_frame
        return () if frame is None or obj.gi_running else (frame.f_lasti, *frame.f_locals.values())
    if isinstance(obj, io.StringIO | io.BytesIO):
        return None if obj.closed else (obj.tell(), obj.getvalue())
    if isinstance(obj, io.IOBase):
        return _file_position(obj)
    if isinstance(obj, ContextVar):
        return (obj.get(_MISSING),)
    cls = type(obj)
    if is_random_class(cls):
        if hasattr(obj, "getstate"):  # Python's
            return obj.getstate()
        if hasattr(obj, "state"):  # a bit generator of NumPy
            return pickle.dumps(obj.state)
        state = obj.bit_generator.state if hasattr(obj, "bit_generator") else obj.get_state()
        return state.numpy().tobytes() if _is_torch(type(state)) else pickle.dumps(state)
    if _is_numpy(cls):
        return _array_position(obj)
    if _is_torch(cls):
        return _tensor_position(obj)
    if is_array_class(cls):
        return _buffer_position(obj)
    try:
        if (left := length_hint(obj, -1)) >= 0:
            return left
    except TypeError:
        pass
    if cls.__module__ != "itertools":
        return None
    try:  # Only __reduce__ shows the state of 'count' and 'product'; Python 3.14 removes it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return obj.__reduce__()
    except TypeError:
        return None


def _file_position(file: io.IOBase) -> int | None:
    """Return the position in a file that can be read. Tracing may write to a file that is opened for writing only."""
    try:
        return file.tell() if file.readable() else None
    except (OSError, ValueError):  # It is closed, or has no position.
        return None


def _array_position(array: Any) -> object:
    parts: tuple[object, ...] = (array.shape, array.dtype)
    if array.dtype.hasobject and array.nbytes <= COMPARED:
        return (*parts, *array.ravel().tolist())
    numpy = sys.modules["numpy"]
    if isinstance(array, numpy.ma.MaskedArray):
        return (*parts, _contents(numpy.asarray(array.data)), _contents(numpy.ma.getmaskarray(array)))
    return (*parts, _contents(array))


def _contents(array: Any) -> bytes | int | None:
    """Return the bytes of a NumPy array, the checksum of a larger one, or None for the largest."""
    if array.nbytes <= COMPARED:
        return array.tobytes()
    if array.nbytes > SUMMED:
        return None
    if array.dtype.hasobject:
        return zlib.crc32(array.tobytes())  # the addresses of the objects
    return zlib.crc32(sys.modules["numpy"].ascontiguousarray(array).reshape(-1).view("u1"))


def _tensor_position(tensor: Any) -> object:
    torch = sys.modules["torch"]
    parts: list[object] = [*tensor.shape, tensor.requires_grad, tensor.grad if tensor.is_leaf else None]
    try:
        # A tensor made in inference mode has no version.
        parts += [None if tensor.is_inference() else tensor._version, tensor.data_ptr()]
        # Writes through 'data' and 'numpy()' leave the version as it is.
        if tensor.device.type == "cpu" and tensor.numel() * tensor.element_size() <= SUMMED:
            parts.append(_contents(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()))
    except (RuntimeError, TypeError, NotImplementedError):  # A sparse, quantized or fake tensor has no plain memory.
        pass
    return tuple(parts)


def _buffer_position(obj: Any) -> object:
    try:
        view = memoryview(obj)
    except (TypeError, ValueError):  # It has no buffer, was released, or its elements have no format.
        return None
    with view:
        if view.nbytes <= COMPARED:
            return view.nbytes, view.tobytes()
        if view.nbytes > SUMMED:
            return view.nbytes
        return view.nbytes, zlib.crc32(view if view.c_contiguous else view.tobytes())


def same_position(now: object, before: object) -> bool:
    """Return True if two positions are equal. Values are compared by identity, because ``==`` may emit ops."""
    if isinstance(now, tuple) and isinstance(before, tuple):
        return len(now) == len(before) and all(map(same_position, now, before))
    return now is before or (type(now) is type(before) and isinstance(now, int | bytes | str) and now == before)
