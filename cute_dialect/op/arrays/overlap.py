"""Tests for shared memory between two arrays."""

from __future__ import annotations

from typing import Any, cast

from cute_dialect.runtime.arrays import ArrayView, numpy_dtype

__all__ = ["overlap", "same_matrix"]


def overlap(a: ArrayView, b: ArrayView) -> bool:
    """Return True if two arrays share a byte, or if an exact answer takes too long.

    >>> def columns(first: int) -> ArrayView:
    ...     return ArrayView(4096 + 2 * first, (8, 16), (64, 1), "f16", 0, "cuda", None)
    >>> overlap(columns(0), columns(15)), overlap(columns(0), columns(16))
    (True, False)
    """
    import numpy as np

    if a.device != b.device or 0 in a.shape or 0 in b.shape:
        return False
    x, y = np.asarray(_Shadow(a)), np.asarray(_Shadow(b))  # only addresses are used
    if not np.may_share_memory(x, y):
        return False
    try:
        return np.shares_memory(x, y, max_work=cast(Any, 100_000))
    except RuntimeError:  # numpy's TooHardError
        return True


def same_matrix(a: ArrayView, b: ArrayView) -> bool:
    """Return True if two arrays have the same address, shape, strides and type."""
    return (a.pointer, a.shape, a.strides, a.dtype) == (b.pointer, b.shape, b.strides, b.dtype)


class _Shadow:
    """Bytes at the addresses of an array, perhaps on a GPU; they must not be read."""

    def __init__(self, x: ArrayView) -> None:
        item = numpy_dtype(x.dtype).itemsize
        self.__array_interface__ = {
            "version": 3, "data": (x.pointer, True), "shape": (*x.shape, item), "typestr": "|u1",
            "strides": (*[step * item for step in x.strides], 1),
        }  # fmt: skip
