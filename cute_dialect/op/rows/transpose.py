"""Choice of the kernel that transposes a matrix.

- Few columns or few rows: :mod:`cute_dialect.kernels.copies.transpose_narrow`.
- Rows of any alignment: :mod:`cute_dialect.kernels.copies.transpose_unaligned`.
- Whole aligned tiles, and strides other than 1: :mod:`cute_dialect.kernels.copies.transpose`.
"""

from __future__ import annotations

from math import gcd

from cute_dialect.kernels.copies.transpose import BYTES, transpose_text, whole_tile
from cute_dialect.kernels.copies.transpose_narrow import VECTOR_COLUMNS, most_columns, narrow_text
from cute_dialect.kernels.copies.transpose_unaligned import UnalignedPlan, unaligned_text
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.runtime.arrays import ArrayView

_MOST = 1 << 30
"""Elements below which kernels count in 32 bits."""

_SMALL, _LARGE = 1 << 20, 20 << 20
"""Bytes of a matrix up to which small tiles are faster on an H200, and from which large tiles are."""


def choose_transpose(x: ArrayView, y: ArrayView) -> tuple[RowKernel, ArrayView, ArrayView]:
    """Return the kernel that transposes ``x`` into ``y``, and its arguments."""
    plain = RowKernel(f"transpose-{x.dtype}", transpose_text, (x.dtype,))
    return _narrow(x, y) or _unaligned(x, y) or (plain, x, y)


def narrow_kernel(element: str, n: int, unit: int, tall: bool) -> RowKernel:
    """Return the kernel that transposes a matrix with ``n`` columns (``tall``) or to one.

    ``unit`` is the number of elements to whose multiples rows of the other matrix are aligned.
    """
    name = f"transpose-{element}-{'from' if tall else 'to'}-{n}-{unit}"
    return RowKernel(name, narrow_text, (element, n, unit, tall))


def _narrow(x: ArrayView, y: ArrayView) -> tuple[RowKernel, ArrayView, ArrayView] | None:
    """Return the transpose kernel for few columns or few rows, and its arguments, or None if it does not apply."""
    for tall, narrow, wide in ((True, x, y), (False, y, x)):
        (rows, n), (step, each) = narrow.shape, narrow.strides
        vector = 16 // BYTES[x.dtype]
        if n > most_columns(x.dtype) or rows * n >= _MOST or narrow.pointer % 16 or each != 1 or step != n:
            continue
        if wide.strides[1] != 1 or rows < vector:
            continue
        unit = gcd(vector, wide.strides[0] if n > 1 else vector, wide.pointer // BYTES[x.dtype])
        kernel = narrow_kernel(x.dtype, n, unit if n <= VECTOR_COLUMNS else 1, tall)
        flat = narrow._replace(shape=(rows * n,), strides=(1,))
        return kernel, flat, wide
    return None


def unaligned_kernel(element: str, size: int, aligned: bool = False) -> RowKernel:
    """Return the kernel that transposes matrices of ``size`` bytes with rows of any alignment.

    ``aligned``: the rows of one matrix begin at multiples of 16 bytes.
    """
    if BYTES[element] in (1, 8):
        plan = UnalignedPlan(threads=128 if BYTES[element] == 8 else 256)
    elif size >= _LARGE:
        plan = UnalignedPlan(groups=16)
    elif size <= _SMALL:
        plan = UnalignedPlan(groups=4, threads=128)
    else:
        plan = UnalignedPlan(threads=128 if aligned else 256)
    name = f"transpose-{element}-unaligned-{'x'.join(map(str, plan))}"
    return RowKernel(name, unaligned_text, (element, plan))


def _unaligned(x: ArrayView, y: ArrayView) -> tuple[RowKernel, ArrayView, ArrayView] | None:
    """Return the transpose kernel for rows of any alignment, and its arguments, or None if it does not apply."""
    if x.strides[1] != 1 or y.strides[1] != 1:
        return None
    if any(v.shape[0] * max(v.strides[0], v.shape[1]) >= _MOST or v.strides[0] < 0 for v in (x, y)):
        return None
    aligned = [v.pointer % 16 == 0 and v.strides[0] * BYTES[v.dtype] % 16 == 0 for v in (x, y)]
    rows, columns = whole_tile(x.dtype)
    if all(aligned) and x.shape[0] % rows == 0 and x.shape[1] % columns == 0:
        return None
    size = x.shape[0] * x.shape[1] * BYTES[x.dtype]
    return unaligned_kernel(x.dtype, size, any(aligned)), x, y
