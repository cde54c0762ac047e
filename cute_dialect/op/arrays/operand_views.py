"""Views of matrices and batches in the shapes that kernels take, and copies that TMA can read."""

from __future__ import annotations

from collections.abc import Sequence

from cute_dialect.op.arrays.library import Library, aligned_strides
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype

__all__ = [
    "copied", "expanded", "folded", "goes_on", "kernel_order", "one_matrix", "turn", "vector", "with_padded_rows",
    "zeros",
]  # fmt: skip


def zeros(library: Library, a: ArrayView, b: ArrayView, shape: Sequence[int]) -> dict[str, ArrayView]:
    """Return operands whose product is zero, with one matrix shared by the batch."""
    k = 16 // numpy_dtype(a.dtype).itemsize
    x, y = library.zeros((shape[-2], k), a.dtype, a), turn(library.zeros((shape[-1], k), b.dtype, b))
    return {"a": expanded(x, (*shape[:-2], *x.shape)), "b": expanded(y, (*shape[:-2], *y.shape))}


def turn(x: ArrayView) -> ArrayView:
    """Return the transpose of a matrix, or of each matrix of a batch."""
    (*more, m, n), (*steps, row, column) = x.shape, x.strides
    return x._replace(shape=(*more, n, m), strides=(*steps, column, row))


def expanded(x: ArrayView, shape: Sequence[int]) -> ArrayView:
    """Return an array broadcast to a shape."""
    missing = len(shape) - len(x.shape)
    old, steps = (*(1,) * missing, *x.shape), (*(0,) * missing, *x.strides)
    strides = tuple([0 if n == 1 and wide > 1 else step for n, step, wide in zip(old, steps, shape)])
    return x._replace(shape=tuple(shape), strides=strides)


def goes_on(x: ArrayView) -> bool:
    """Return True if the matrices of a batch are stacked with one row stride."""
    (_, m, _), (step, row, _) = x.shape, x.strides
    return m == 1 or step == row * m


def folded(x: ArrayView) -> ArrayView:
    """Return the stacked matrices of a batch as one matrix."""
    (matrices, m, n), (step, row, column) = x.shape, x.strides
    return x._replace(shape=(matrices * m, n), strides=(row if m > 1 else step, column))


def one_matrix(x: ArrayView) -> ArrayView:
    """Return a batch that repeats one matrix as a batch of one; others are returned unchanged."""
    return x._replace(shape=(1, *x.shape[1:])) if len(x.shape) == 3 and x.strides[0] == 0 else x


def kernel_order(x: ArrayView) -> ArrayView:
    """Return a batch (L, rows, columns) in the mode order of kernels, (rows, columns, L); a matrix is unchanged."""
    if len(x.shape) == 2:
        return x
    return x._replace(shape=(*x.shape[1:], x.shape[0]), strides=(*x.strides[1:], x.strides[0]))


def vector(x: ArrayView) -> ArrayView:
    """Return an array of shape (N,), (1, N) or (M, 1) as a vector."""
    size, stride = max(zip(x.shape, x.strides), key=lambda pair: pair[0])
    return x._replace(shape=(size,), strides=(stride if size > 1 else 1,))


def with_padded_rows(library: Library, shape: Sequence[int], element: str, like: ArrayView) -> ArrayView:
    """Return memory for a matrix or batch that TMA can store, with rows padded to multiples of 16 bytes.

    The last row is padded, too, because stores overwrite the padding.
    """
    strides = aligned_strides(shape, 1, numpy_dtype(element).itemsize)
    return library.strided((*shape[:-1], strides[-2]), strides, element, like)._replace(shape=tuple(shape))


def copied(library: Library, x: ArrayView, mode: int, element: str = "") -> ArrayView:
    """Return a copy that TMA can read, contiguous along a mode."""
    item = numpy_dtype(element or x.dtype).itemsize
    return library.copied(x, aligned_strides(x.shape, mode, item), element)
