"""Views of matrices and batches in the shapes that kernels take, copies that TMA can read, and tests for overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from cute_dialect.kernels.epilogue.graph import parts_of
from cute_dialect.op.arrays.library import Library, aligned_strides
from cute_dialect.op.errors import LayoutError
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype


class Matrix(NamedTuple):
    """Layout of a matrix, or of a batch of matrices."""

    shape: tuple[int, int]
    stride: tuple[int, int]  # in elements
    item: int  # element size in bytes
    address: int  # modulo 16
    matrices: int = 1
    step: int = 0  # elements between matrices; 0 for one matrix, or one that is shared by the batch
    owned: bool = False  # stores may overwrite the padding between lines

    @property
    def contiguous(self) -> int:
        """The contiguous mode: 1 within rows, 0 within columns.  Raises LayoutError if there is none."""
        for mode in (1, 0):
            if self.along(mode):
                return mode
        raise LayoutError(f"a matrix has strides {self.stride}; one of them must be 1")

    def along(self, mode: int) -> bool:
        """Return True if a mode is contiguous."""
        return self.stride[mode] == 1 or self.shape[mode] == 1

    def suits_tma(self) -> bool:
        """Return True if TMA can read the matrix (PTX ISA, "Tensors").

        Its address, the stride between lines and the stride between matrices must be multiples of 16 bytes.
        """
        rows = self.stride[1 - self.contiguous] * self.item
        return (
            self.address % 16 == 0
            and rows % 16 == 0
            and rows > 0
            and min(self.shape) > 0
            and self.step * self.item % 16 == 0
        )

    def is_tma_storable(self) -> bool:
        """Return True if TMA can store the matrix without changing other memory.

        TMA stores write whole units of 16 bytes.  If the line ends inside a unit, the rest of it is overwritten.
        """
        line = self.shape[self.contiguous] * self.item
        return self.suits_tma() and (self.owned or line % 16 == 0)

    def copied(self, mode: int) -> Matrix:
        """Return the layout of a copy that TMA can read, contiguous along a mode."""
        unit = max(1, 16 // self.item)
        rows = -(-self.shape[mode] // unit) * unit
        stride = (rows, 1) if mode == 1 else (1, rows)
        step = rows * self.shape[1 - mode] if self.step else 0
        return Matrix(self.shape, stride, self.item, 0, self.matrices, step)


def folds(a: Matrix, b: Matrix, out: Matrix) -> bool:
    """Return True if a batched GEMM is one GEMM.

    ``b`` must be shared by the batch, and the matrices of ``a`` and of ``out`` must be stacked with one row stride.

    >>> a, out = Matrix((8, 64), (64, 1), 2, 0, 3, 512), Matrix((8, 16), (16, 1), 2, 0, 3, 128)
    >>> b = Matrix((64, 16), (16, 1), 2, 0)
    >>> folds(a, b, out), folds(a._replace(step=1024), b, out)
    (True, False)
    """
    if out.matrices == 1:
        return True
    on = [m.along(1) and m.step == m.stride[0] * m.shape[0] for m in (a, out) if m.shape[0] > 1]
    return b.step == 0 and a.step > 0 and all(on) and a.along(1) and out.along(1)


def zeros(library: Library, a: ArrayView, b: ArrayView, shape: Sequence[int]) -> dict[str, ArrayView]:
    """Return operands whose product is zero, with one matrix shared by the batch."""
    k = 16 // numpy_dtype(a.dtype).itemsize
    x, y = library.zeros((shape[-2], k), a.dtype, a), turn(library.zeros((shape[-1], k), b.dtype, b))
    return {"a": expanded(x, (*shape[:-2], *x.shape)), "b": expanded(y, (*shape[:-2], *y.shape))}


def turn(x: ArrayView) -> ArrayView:
    """Return the transpose of a matrix, or of each matrix of a batch."""
    (*more, m, n), (*steps, row, column) = x.shape, x.strides
    return x._replace(shape=(*more, n, m), strides=(*steps, column, row))


def columns_first(x: ArrayView, split: str = "") -> ArrayView:
    """Return a matrix, or a batch (rows, columns, L), with rows and columns exchanged.

    Args:
        split: how rows and columns are split into several modes, as in an epilogue graph; empty if they are not.
    """
    rows, columns = [len(part) for part in parts_of(split)[:2]] if split else (1, 1)
    order = [*range(rows, rows + columns), *range(rows), *range(rows + columns, len(x.shape))]
    return x._replace(shape=tuple([x.shape[i] for i in order]), strides=tuple([x.strides[i] for i in order]))


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


# -------------------------------------------------------------------------------------------------------- shared memory


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
