"""Choice of the kernel that transposes a matrix.

- Few columns or few rows: :mod:`cute_dialect.kernels.transpose_narrow`.
- Rows aligned to 16 bytes on one side only: :mod:`cute_dialect.kernels.transpose_mixed`.
- Rows aligned on neither side: :mod:`cute_dialect.kernels.transpose_unaligned`.
- Rows aligned on both sides, and strides other than 1: :mod:`cute_dialect.kernels.transpose`.
"""

from __future__ import annotations

from math import gcd

from cute_dialect.kernels.transpose import BYTES, transpose_text
from cute_dialect.kernels.transpose_mixed import mixed_text
from cute_dialect.kernels.transpose_narrow import VECTOR_COLUMNS, most_columns, narrow_text
from cute_dialect.kernels.transpose_unaligned import UnalignedPlan, unaligned_text
from cute_dialect.op.execute.array_call import RowKernel
from cute_dialect.runtime.arrays import ArrayView

__all__ = ["choose_transpose", "mixed_kernel", "narrow_kernel", "unaligned_kernel"]

_MOST = 1 << 30
"""Elements below which kernels count in 32 bits."""


def choose_transpose(x: ArrayView, y: ArrayView) -> tuple[RowKernel, ArrayView, ArrayView]:
    """Return the kernel that transposes ``x`` into ``y``, and its arguments."""
    plain = RowKernel(f"transpose-{x.dtype}", transpose_text, (x.dtype,))
    return _narrow(x, y) or _mixed(x, y) or _unaligned(x, y) or (plain, x, y)


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


def mixed_kernel(element: str, reads: bool) -> RowKernel:
    """Return the kernel that transposes if the rows of only one matrix, with ``reads`` the source, are aligned."""
    return RowKernel(f"transpose-{element}-aligned-{'a' if reads else 'b'}", mixed_text, (element, reads))


def _mixed(x: ArrayView, y: ArrayView) -> tuple[RowKernel, ArrayView, ArrayView] | None:
    """Return the transpose kernel if the rows of only one matrix are aligned, and its arguments, or None."""
    if BYTES[x.dtype] not in (2, 4) or x.strides[1] != 1 or y.strides[1] != 1:
        return None
    reads, writes = _is_aligned(x), _is_aligned(y)
    return None if reads == writes else (mixed_kernel(x.dtype, reads), x, y)


def unaligned_kernel(element: str) -> RowKernel:
    """Return the kernel that transposes matrices with rows of any alignment."""
    plan = _plan(element)
    name = f"transpose-{element}-unaligned-{'x'.join(map(str, plan))}"
    return RowKernel(name, unaligned_text, (element, plan))


def _plan(element: str) -> UnalignedPlan:
    """Return the tile of unaligned matrices."""
    return UnalignedPlan(threads=128 if BYTES[element] == 8 else 256)


def _unaligned(x: ArrayView, y: ArrayView) -> tuple[RowKernel, ArrayView, ArrayView] | None:
    """Return the transpose kernel if the rows of neither matrix are aligned, and its arguments, or None."""
    if x.strides[1] != 1 or y.strides[1] != 1 or (_is_aligned(x) and _is_aligned(y)):
        return None
    if any(v.shape[0] * max(v.strides[0], v.shape[1]) >= _MOST or v.strides[0] < 0 for v in (x, y)):
        return None
    return unaligned_kernel(x.dtype), x, y


def _is_aligned(v: ArrayView) -> bool:
    """Return True if all rows of a matrix begin at multiples of 16 bytes."""
    return v.pointer % 16 == 0 and v.strides[0] * BYTES[v.dtype] % 16 == 0
