"""Order of the dimensions of arrays: channels last for kernels, or as the caller passes them.

>>> last((0, 1, 2, 3), True), first((0, 1, 2, 3), True)
((0, 2, 3, 1), (0, 3, 1, 2))
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from itertools import pairwise
from math import gcd, prod
from typing import Any, TypeVar

from cute_dialect.op.arrays.library import Library
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype

_T = TypeVar("_T")

_CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
_CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def channels_first(call: str, data_format: object, rank: int, library: str) -> bool:
    """Return True if shapes have channels before the spatial extents.  Raises UnsupportedError."""
    if data_format is None:
        return library == "torch"
    if data_format not in (_CHANNELS_FIRST[rank], _CHANNELS_LAST[rank]):
        raise UnsupportedError(
            f"{call}: data_format is {data_format!r}; use {_CHANNELS_FIRST[rank]} or {_CHANNELS_LAST[rank]}"
        )
    return data_format == _CHANNELS_FIRST[rank]


def last(x: tuple[_T, ...], turn: bool) -> tuple[_T, ...]:
    """Return values per dimension with channels last; ``turn``: ``x`` has channels first."""
    return (x[0], *x[2:], x[1]) if turn else x


def first(x: tuple[_T, ...], turn: bool) -> tuple[_T, ...]:
    """Return values per dimension, given with channels last; ``turn``: with channels first."""
    return (x[0], x[-1], *x[1:-1]) if turn else x


def views_last(x: ArrayView, turn: bool) -> ArrayView:
    """Return an array with channels last; ``turn``: ``x`` has channels first."""
    return x._replace(shape=last(x.shape, turn), strides=last(x.strides, turn))


def turned(array: Any, axes: tuple[int, ...]) -> Any:
    """Return an array with permuted dimensions, in the same memory."""
    for name in ("permute", "transpose"):
        if hasattr(array, name):
            return getattr(array, name)(*axes) if name == "transpose" else array.permute(axes)
    raise UnsupportedError(f"{type(array).__name__} has no permute or transpose; pass an array that has one")


def strides_of(shape: tuple[int, ...], unit: int = 1) -> tuple[int, ...]:
    """Return contiguous strides, with lines padded to a multiple of ``unit`` elements."""
    line = -(-shape[-1] // unit) * unit
    return (*[line * prod(shape[i + 1 : -1]) for i in range(len(shape) - 1)], 1)


def merged(x: ArrayView, start: int, stop: int) -> int | None:
    """Return the stride of the dimensions from ``start`` to before ``stop`` merged into one.

    Return None if their strides do not allow that.

    >>> x = ArrayView(0, (2, 3, 4, 5), (60, 20, 5, 1), "f16", -1, "numpy", None)
    >>> merged(x, 0, 3), merged(x._replace(strides=(90, 30, 5, 1)), 0, 3)
    (5, None)
    """
    pairs = [(n, step) for n, step in zip(x.shape[start:stop], x.strides[start:stop]) if n != 1]
    for (_, outer), (n, inner) in pairwise(pairs):
        if outer != n * inner:
            return None
    return pairs[-1][1] if pairs else prod(x.shape[stop:])


def as_rows(x: ArrayView) -> ArrayView | None:
    """Return an array (…, C) as a matrix of rows of C; None if its strides do not allow that."""
    step = merged(x, 0, len(x.shape) - 1)
    if step is None:
        return None
    return x._replace(shape=(prod(x.shape[:-1]), x.shape[-1]), strides=(step, x.strides[-1]))


def dense(library: Library, x: ArrayView, unit: int = 1, element: str = "") -> ArrayView:
    """Return a contiguous copy, with lines padded to a multiple of ``unit`` elements."""
    return library.copied(x, strides_of(x.shape, unit), element)


def lines_suit(x: ArrayView) -> bool:
    """Return True if TMA can read lines along the last dimension: the other strides are multiples of 16 bytes."""
    item = numpy_dtype(x.dtype).itemsize
    steps = [step for n, step in zip(x.shape[:-1], x.strides[:-1]) if n != 1]
    inner = x.strides[-1] == 1 or x.shape[-1] == 1
    return x.pointer % 16 == 0 and inner and all(step > 0 and step * item % 16 == 0 for step in steps)


def padded_view(x: ArrayView) -> ArrayView:
    """Return an array whose dimensions of one element have the strides of an array without gaps.

    A stride of such a dimension is arbitrary, but a kernel may require it to be a multiple of its vectors.
    """
    usual = strides_of(x.shape)
    return x._replace(strides=tuple([step if n > 1 else one for n, step, one in zip(x.shape, x.strides, usual)]))


def aligned_vector(x: ArrayView) -> int:
    """Return the largest aligned vector along the last dimension: 8, 4, 2 or 1 elements, or 0 if that has a stride.

    >>> aligned_vector(ArrayView(16, (2, 3, 12), (36, 12, 1), "f16", -1, "numpy", None))
    4
    """
    item = numpy_dtype(x.dtype).itemsize
    steps = [step for n, step in zip(x.shape[:-1], x.strides[:-1]) if n != 1]
    if (x.strides[-1] != 1 and x.shape[-1] != 1) or x.pointer % item or any(step < 0 for step in steps):
        return 0
    return gcd(8, x.pointer // item, *steps)
