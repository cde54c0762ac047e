"""Transpose of a matrix when the rows of only one of both matrices are aligned to 16 bytes.

Rows of the aligned matrix are accessed in vectors, rows of the other one in elements: 32 consecutive elements per warp.
A block has a tile of 128 rows of 128 bytes of the aligned matrix. A thread has one of the rows of the tile, that is, a
column of the other matrix. It transposes through shared memory, with the 16-byte chunks of a row swizzled::

    text = mixed_text("bf16", reads=True)            # A has aligned rows; launch(a, b)
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.memory import part
from cute_dialect.kernels.transpose import BYTES
from cute_dialect.lang.values.dtypes import type_of_mlir

__all__ = ["mixed_text"]

ROWS = 128
"""Rows of the aligned matrix in a tile, and threads of a block."""

CHUNKS = 8
"""Vectors of a row of a tile."""


def vector(begin: Any, width: int) -> cute.Tensor:
    """Return a vector in memory."""
    return cute.make_tensor(begin.align(16), cute.make_layout(width))


@cute.kernel
def transpose_mixed(aligned: cute.Tensor, other: cute.Tensor, reads: cute.Constexpr[bool]):
    """Transpose one tile; ``reads`` selects whether the aligned matrix is the source."""
    dtype, thread, block = aligned.element_type, cute.arch.thread_idx().x, cute.arch.block_idx().x
    width = 128 // dtype.width
    columns = CHUNKS * width
    rows_end, columns_end = aligned.shape
    across = cute.ceil_div(columns_end, columns)
    first, left = block // across * ROWS, block % across * columns
    memory = cute.smem_tensor(dtype, cute.make_layout(ROWS * columns), byte_alignment=16).iterator

    def held(row: Any, chunk: Any) -> cute.Tensor:
        return vector(memory + (row * CHUNKS + ((row % CHUNKS) ^ chunk)) * width, width)

    values = cute.make_rmem_tensor(columns, dtype)
    if reads:
        move_vectors(aligned, held, first, left, True)
        cute.arch.sync_threads()
        for chunk in cute.range_constexpr(CHUNKS):
            cute.autovec_copy(held(thread, chunk), part(values, chunk * width, width))
        if first + thread < rows_end:
            for i in cute.range_constexpr(columns):
                if left + i < columns_end:
                    other[left + i, first + thread] = values[i]
    else:
        row = cute.min(first + thread, rows_end - 1)
        for i in cute.range_constexpr(columns):  # All loads are in flight together.
            values[i] = other[cute.min(left + i, columns_end - 1), row]
        for chunk in cute.range_constexpr(CHUNKS):
            cute.autovec_copy(part(values, chunk * width, width), held(thread, chunk))
        cute.arch.sync_threads()
        move_vectors(aligned, held, first, left, False)


def move_vectors(aligned: cute.Tensor, held: Any, first: Any, left: Any, reads: bool) -> None:
    """Copy the tile between the aligned matrix and shared memory: consecutive threads have consecutive vectors."""
    dtype, thread = aligned.element_type, cute.arch.thread_idx().x
    width, (rows_end, columns_end) = 128 // dtype.width, aligned.shape
    chunk, row = thread % CHUNKS, thread // CHUNKS
    column = left + chunk * width
    values = cute.make_rmem_tensor(CHUNKS * width, dtype)
    values.fill(0)
    step = ROWS // CHUNKS
    if not reads:
        for i in cute.range_constexpr(CHUNKS):
            cute.autovec_copy(held(row + i * step, chunk), part(values, i * width, width))
    for i in cute.range_constexpr(CHUNKS):
        at = first + row + i * step
        if at < rows_end:
            mine = part(values, i * width, width)
            if column + width <= columns_end:
                there = vector(aligned[at, None].iterator + column, width)
                if reads:
                    cute.autovec_copy(there, mine)
                else:
                    cute.autovec_copy(mine, there)
            else:
                for k in cute.range_constexpr(width):
                    if column + k < columns_end:
                        if reads:
                            mine[k] = aligned[at, column + k]
                        else:
                            aligned[at, column + k] = mine[k]
    if reads:
        for i in cute.range_constexpr(CHUNKS):
            cute.autovec_copy(part(values, i * width, width), held(row + i * step, chunk))


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, reads: cute.Constexpr[bool]):
    """Launch one block per tile."""
    assert b.shape[0] == a.shape[1], "B must have as many rows as A has columns"
    assert b.shape[1] == a.shape[0], "B must have as many columns as A has rows"
    aligned, other = (a, b) if reads else (b, a)
    columns = CHUNKS * (128 // a.element_type.width)
    tiles = cute.ceil_div(aligned.shape[0], ROWS) * cute.ceil_div(aligned.shape[1], columns)
    transpose_mixed(aligned, other, reads).launch(grid=tiles, block=ROWS)


@printed
def mixed_text(element: str, reads: bool) -> cute.Compiled:
    """Trace the kernel and the host function ``launch(a, b)``; ``reads``: A has the aligned rows, else B.

    Raises:
        ValueError: if elements do not have 2 or 4 bytes.
    """
    if BYTES.get(element) not in (2, 4):
        raise ValueError(f"transpose: element type '{element}' is not supported; elements must have 2 or 4 bytes")
    dtype = type_of_mlir(element)
    aligned = cute.Tensor[dtype, f"(?,?):(?{{div={16 // BYTES[element]}}},1)", "align<16>"]
    other = cute.Tensor[dtype, "(?,?):(?,1)"]
    return cute.trace(launch, *((aligned, other) if reads else (other, aligned)), reads)
