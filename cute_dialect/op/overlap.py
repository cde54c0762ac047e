"""Whether two arrays have memory in common."""

from __future__ import annotations

from typing import Any, cast

from cute_dialect.runtime.arrays import ArrayView, numpy_dtype

__all__ = ["overlap", "same_matrix"]


def overlap(a: ArrayView, b: ArrayView) -> bool:
    """Tell whether two arrays have a byte in common; where that takes long to find out, whether they may.

    >>> def columns(first: int) -> ArrayView:
    ...     return ArrayView(4096 + 2 * first, (8, 16), (64, 1), "f16", 0, "cuda", None)
    >>> overlap(columns(0), columns(15)), overlap(columns(0), columns(16))
    (True, False)
    """
    import numpy as np

    if a.device != b.device or 0 in a.shape or 0 in b.shape:
        return False
    x, y = np.asarray(_Shadow(a)), np.asarray(_Shadow(b))  # only addresses are looked at
    if not np.may_share_memory(x, y):
        return False
    try:
        return np.shares_memory(x, y, max_work=cast(Any, 100_000))
    except RuntimeError:  # numpy's TooHardError
        return True


def same_matrix(a: ArrayView, b: ArrayView) -> bool:
    """Tell whether two arrays are the same one: each element lies where that of the other does."""
    return (a.pointer, a.shape, a.strides, a.dtype) == (b.pointer, b.shape, b.strides, b.dtype)


class _Shadow:
    """An array of bytes where an array lies, perhaps on a GPU: nobody may read it."""

    def __init__(self, x: ArrayView) -> None:
        item = numpy_dtype(x.dtype).itemsize
        self.__array_interface__ = {
            "version": 3, "data": (x.pointer, True), "shape": (*x.shape, item), "typestr": "|u1",
            "strides": (*[step * item for step in x.strides], 1),
        }  # fmt: skip
