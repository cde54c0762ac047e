"""Padded copies of operands and results, for lines that TMA cannot access.

A line of such a copy begins at a multiple of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cute_dialect.op.arrays.library import Library, aligned_strides
from cute_dialect.op.execute.kernels import gap_remover, padder
from cute_dialect.op.execute.launcher import launched
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype


def pads(x: ArrayView, mode: int) -> bool:
    """Return True if the padding kernel can copy a matrix or batch along a contiguous mode.

    The mode must be contiguous in ``x``, and the address a multiple of 4 bytes.

    >>> x = ArrayView(64, (5, 7), (7, 1), "i8", -1, "numpy", None)
    >>> pads(x, 1), pads(x, 0), pads(x._replace(pointer=65), 1)
    (True, False, False)
    """
    along = len(x.shape) - 2 + mode
    return x.pointer % 4 == 0 and (x.strides[along] == 1 or x.shape[along] == 1) and min(x.strides) >= 0


def with_padding(
    library: Library, given: Mapping[str, tuple[ArrayView, int]], told: Callable[[object], None],
    options: Mapping[str, Any], cpu: bool, unit: int = 0,
) -> dict[str, ArrayView]:  # fmt: skip
    """Return padded copies of one or two matrices by name, made in one launch.

    Args:
        given: the matrices, each with its contiguous mode.
        told: called with the result of the launch.
        options: call options of the kernel.
        unit: rows are padded with zeros to a multiple of this many elements; 0: to a multiple of 16 bytes.
    """
    found: dict[str, ArrayView] = {}
    arguments: list[object] = []
    for name, (x, mode) in given.items():
        item = numpy_dtype(x.dtype).itemsize
        # The last line is padded, too, because the kernel writes whole lines.
        lines_of, whole = unit or max(1, 16 // item), list(x.shape)
        whole[len(whole) - 2 + mode] = -(-whole[len(whole) - 2 + mode] // lines_of) * lines_of
        made = library.strided(whole, aligned_strides(whole, mode, item), x.dtype, x)._replace(shape=tuple(x.shape))
        of_x, of_y = (_lines(v, mode, item) for v in (x, made))
        (lines, length, matrices), (pitch, _, step) = of_x.shape, of_x.strides
        size = (lines - 1) * pitch + (matrices - 1) * step + length
        flat = of_x._replace(shape=(size,), strides=(1,))
        words = of_y.shape[0], -(-whole[len(whole) - 2 + mode] * item // 16) * 4, matrices
        target = of_y._replace(shape=words, strides=(of_y.strides[0] // 4, 1, of_y.strides[2] // 4), dtype="ui32")
        arguments += [flat, target, length, pitch, step]
        found[name] = made
    told(launched(padder(len(given), cpu), *arguments, **options))
    return found


def without_padding(
    library: Library, padded: ArrayView, rows: ArrayView, told: Callable[[object], None], options: Mapping[str, Any],
    cpu: bool,
) -> None:  # fmt: skip
    """Copy a padded matrix to a matrix of the same shape.

    The array library copies matrices that the kernel does not support.
    """
    columns = rows.shape[1]
    is_dense = rows.strides[1] == 1 and rows.strides[0] == columns and rows.pointer % 16 == 0
    is_aligned = padded.strides[1] == 1 and padded.strides[0] % 8 == 0 and padded.pointer % 16 == 0
    item = numpy_dtype(rows.dtype).itemsize
    fits = item == 2 == numpy_dtype(padded.dtype).itemsize and rows.shape[0] * padded.strides[0] < 1 << 30
    if not (is_dense and is_aligned and fits and padded.dtype == rows.dtype):
        library.native(rows)[...] = library.native(padded)
        return
    source = padded._replace(shape=(columns, rows.shape[0]), strides=(1, padded.strides[0]), dtype="ui16")
    target = rows._replace(shape=(rows.shape[0] * columns,), strides=(1,), dtype="ui16")
    told(launched(gap_remover(cpu), source, target, **options))


def _lines(x: ArrayView, mode: int, item: int) -> ArrayView:
    """Return a matrix or batch as bytes: (lines, bytes per line, matrices)."""
    shape, strides = x.shape[-2:], x.strides[-2:]
    matrices, step = (x.shape[0], x.strides[0]) if len(x.shape) == 3 else (1, 0)
    extents: Sequence[int] = (shape[1 - mode], shape[mode] * item, matrices)
    return x._replace(shape=tuple(extents), strides=(strides[1 - mode] * item, 1, step * item), dtype="ui8")
