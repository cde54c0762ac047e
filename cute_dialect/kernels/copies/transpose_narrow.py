"""Transpose of matrices with few columns or few rows, with 16-byte accesses on both sides.

A thread transposes ``w`` rows of a narrow matrix in registers, where ``w`` elements are 16 bytes. The narrow matrix is
contiguous and moves through :class:`~cute_dialect.kernels.rows.packed_tile.VectorTile`. The rows of the wide matrix are
accessed directly: consecutive threads have consecutive vectors. If its rows are not aligned to 16 bytes, vectors are as
long as their alignment allows (``unit`` elements). If that is one element, or there are many columns, a thread has
single rows of the narrow matrix (:class:`~cute_dialect.kernels.rows.packed_tile.RowTile`). Consecutive threads then
access consecutive elements.

``tall`` reads the narrow matrix (M, n) and writes (n, M). ``wide`` reads (n, M) and writes (M, n).
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.copies.transpose import BYTES
from cute_dialect.kernels.rows.memory import part
from cute_dialect.kernels.rows.packed_tile import LANES, RowTile, VectorTile
from cute_dialect.lang.values.dtypes import type_of_mlir

THREADS = 64


VECTOR_COLUMNS = 32
"""Largest ``n`` for which a thread has ``w`` rows, with 4 registers for each column."""


def most_columns(element: str) -> int:
    """Return the largest ``n``. Beyond it, matrices fill the tiles of :mod:`.transpose`.

    >>> most_columns("f16"), most_columns("f32"), most_columns("i8")
    (127, 63, 8)
    """
    return {1: 8, 2: 127, 4: 63, 8: VECTOR_COLUMNS}[BYTES[element]]


def rows_per_thread(n: int) -> int:
    """Return the number of single rows of a thread."""
    return max(1, 16 // n)


@cute.kernel
def transpose_elements(narrow: cute.Tensor, wide: cute.Tensor, tall: cute.Constexpr[bool]):
    """Transpose this thread's rows of the narrow matrix, element by element on the side of the wide one."""
    (n, rows), each = wide.shape, rows_per_thread(wide.shape[0])
    tile = RowTile(narrow.element_type, n, each, THREADS)
    places = [tile.first_row + i * LANES + tile.lane for i in range(each)]
    if tall:
        tile.fetch([narrow])
        for i in range(each):
            values = tile.elements(0, i)
            if places[i] < rows:
                for column in cute.range_constexpr(n):
                    wide[column, places[i]] = values[column]
    else:
        # Loads past the end read the last row, so that no branch separates them.
        loaded = [[wide[column, cute.min(place, rows - 1)] for column in range(n)] for place in places]
        for i, elements in enumerate(loaded):
            values = cute.make_rmem_tensor(n, tile.dtype)
            for column in range(n):
                values[column] = elements[column]
            cute.autovec_copy(values, tile.row(0, i))
        tile.store([(narrow, 0)])


@cute.kernel
def transpose_narrow(narrow: cute.Tensor, wide: cute.Tensor, tall: cute.Constexpr[bool]):
    """Transpose this thread's rows of the narrow matrix, and the rows after the last full group of ``w``."""
    n, rows = wide.shape
    tile = VectorTile(narrow.element_type, n, THREADS)
    w, groups = tile.width, rows // tile.width
    first = tile.thread * w
    if tall:
        values = tile.fetch(narrow, groups * n)
        if tile.thread < groups:
            for column in cute.range_constexpr(n):
                out = cute.make_rmem_tensor(w, tile.dtype)
                for i in cute.range_constexpr(w):
                    out[i] = values[i * n + column]
                cute.autovec_copy(out, vector_of(wide, column, first, w))
    else:
        values = cute.make_rmem_tensor(n * w, tile.dtype)
        values.fill(0)
        if tile.thread < groups:
            for column in cute.range_constexpr(n):
                cute.autovec_copy(vector_of(wide, column, first, w), part(values, column * w, w))
        out = cute.make_rmem_tensor(n * w, tile.dtype)
        for i in cute.range_constexpr(w):
            for column in cute.range_constexpr(n):
                out[i * n + column] = values[column * w + i]
        tile.store(narrow, out, groups * n)
    if tile.thread < LANES:  # the rows after the last full group
        for i in range(tile.thread + groups * w * n, rows * n, LANES):
            if tall:
                wide[i % n, i // n] = narrow[i]
            else:
                narrow[i] = wide[i % n, i // n]


def vector_of(wide: cute.Tensor, row: int, first: Any, w: int) -> cute.Tensor:
    """Return ``w`` elements of a row of the wide matrix."""
    return cute.make_tensor(wide[row, None].iterator + first, cute.make_layout(w))


@cute.jit
def launch(narrow: cute.Tensor, wide: cute.Tensor, tall: cute.Constexpr[bool], vectors: cute.Constexpr[bool]):
    """Launch one thread per 16 bytes of a row of the wide matrix, or per few elements of it."""
    n, rows = wide.shape
    kernel = transpose_narrow if vectors else transpose_elements
    each = 128 // narrow.element_type.width if vectors else rows_per_thread(n)
    assert narrow.shape[0] == n * rows, "the narrow matrix must have as many elements as the wide one"
    kernel(narrow, wide, tall).launch(grid=cute.ceil_div(rows, each * THREADS), block=THREADS)


@printed
def narrow_text(element: str, n: int, unit: int, tall: bool) -> cute.Compiled:
    """Trace the kernel and the host function, which takes the narrow matrix as a vector, and the wide one.

    Args:
        element: The element type.
        n: The columns of the narrow matrix.
        unit: Elements to whose multiples the rows of the wide matrix are aligned, up to 16 bytes.
        tall: True to read the narrow matrix, False to write it.
    """
    if element not in BYTES:
        raise ValueError(f"transpose: element type '{element}' is not supported; use one of {', '.join(BYTES)}")
    if not 1 <= n <= most_columns(element):
        raise ValueError(f"transpose: n is {n}; a narrow matrix has 1 to {most_columns(element)} columns")
    dtype: Any = type_of_mlir(element)
    stride = f"?{{div={unit}}}" if unit > 1 else "?"
    narrow = cute.Tensor[dtype, "(?):(1)", "align<16>"]
    wide = cute.Tensor[dtype, f"({n},?):({stride},1)", f"align<{unit * BYTES[element]}>"]
    return cute.trace(launch, narrow, wide, tall, unit > 1 and n <= VECTOR_COLUMNS)
