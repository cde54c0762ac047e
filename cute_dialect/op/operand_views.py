"""Views of matrices and batches: turned, expanded, folded, in the order of kernels; and the copies that TMA reads."""

from __future__ import annotations

from collections.abc import Sequence

from cute_dialect.op.arrays import Library, aligned_strides
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype

__all__ = [
    "copied", "expanded", "folded", "goes_on", "kernel_order", "one_matrix", "turn", "vector", "zeros",
]  # fmt: skip


def zeros(library: Library, a: ArrayView, b: ArrayView, shape: Sequence[int]) -> dict[str, ArrayView]:
    """Return factors whose product is zeros, one matrix for all of a batch."""
    k = 16 // numpy_dtype(a.dtype).itemsize
    x, y = library.zeros((shape[-2], k), a.dtype, a), turn(library.zeros((shape[-1], k), b.dtype, b))
    return {"a": expanded(x, (*shape[:-2], *x.shape)), "b": expanded(y, (*shape[:-2], *y.shape))}


def turn(x: ArrayView) -> ArrayView:
    """Return a matrix, or those of a batch, with rows for columns."""
    (*more, m, n), (*steps, row, column) = x.shape, x.strides
    return x._replace(shape=(*more, n, m), strides=(*steps, column, row))


def expanded(x: ArrayView, shape: Sequence[int]) -> ArrayView:
    """Return an array as it is when it expands to a shape."""
    missing = len(shape) - len(x.shape)
    old, steps = (*(1,) * missing, *x.shape), (*(0,) * missing, *x.strides)
    strides = tuple([0 if n == 1 and wide > 1 else step for n, step, wide in zip(old, steps, shape)])
    return x._replace(shape=tuple(shape), strides=strides)


def goes_on(x: ArrayView) -> bool:
    """Tell whether the rows of a batch go on from matrix to matrix."""
    (_, m, _), (step, row, _) = x.shape, x.strides
    return m == 1 or step == row * m


def folded(x: ArrayView) -> ArrayView:
    """Return a batch whose rows go on from matrix to matrix as one matrix."""
    (matrices, m, n), (step, row, column) = x.shape, x.strides
    return x._replace(shape=(matrices * m, n), strides=(row if m > 1 else step, column))


def one_matrix(x: ArrayView) -> ArrayView:
    """Return the one matrix of a batch in which one is for all, or what was given."""
    return x._replace(shape=(1, *x.shape[1:])) if len(x.shape) == 3 and x.strides[0] == 0 else x


def kernel_order(x: ArrayView) -> ArrayView:
    """Return a batch (L, rows, columns) as kernels take it, (rows, columns, L); a matrix as it is."""
    if len(x.shape) == 2:
        return x
    return x._replace(shape=(*x.shape[1:], x.shape[0]), strides=(*x.strides[1:], x.strides[0]))


def vector(x: ArrayView) -> ArrayView:
    """Return (N,), (1, N) or (M, 1) as a vector."""
    size, stride = max(zip(x.shape, x.strides), key=lambda pair: pair[0])
    return x._replace(shape=(size,), strides=(stride if size > 1 else 1,))


def copied(library: Library, x: ArrayView, mode: int, element: str = "") -> ArrayView:
    """Return a copy that TMA reads, contiguous along a mode."""
    item = numpy_dtype(element or x.dtype).itemsize
    return library.copied(x, aligned_strides(x.shape, mode, item), element)
