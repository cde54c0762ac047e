"""Views of matrices, batches and images in the shapes that kernels take, copies that TMA can read, tests for overlap.

Kernels take images with channels last, callers pass either order:

>>> last((0, 1, 2, 3), True), first((0, 1, 2, 3), True)
((0, 2, 3, 1), (0, 3, 1, 2))
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import gcd, prod
from typing import Any, NamedTuple, TypeVar, cast

from cute_dialect.kernels.epilogue.graph import parts_of
from cute_dialect.op.arrays.library import Library, aligned_strides
from cute_dialect.op.errors import LayoutError, UnsupportedError
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
    x, y = library.zeros((shape[-2], k), a.dtype, a), library.zeros((shape[-1], k), b.dtype, b).transposed()
    return {"a": expanded(x, (*shape[:-2], *x.shape)), "b": expanded(y, (*shape[:-2], *y.shape))}


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


def is_batch(x: ArrayView) -> bool:
    """Return True for a batch of several matrices, False for a matrix, a batch of one and a batch that repeats one."""
    return len(x.shape) == 3 and x.shape[0] != 1 and x.strides[0] != 0


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


# --------------------------------------------------------------------------------------------------------------- images


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
    """Return a view in which dimensions of extent 1 have the strides of a contiguous array.

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
