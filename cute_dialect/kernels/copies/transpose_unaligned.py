"""Transpose of matrices with rows of any alignment, with 16-byte accesses on both sides.

A block reads aligned vectors that cover its tile, including elements before and after the tile, into shared memory. A
thread then gathers the elements of an aligned vector of ``B`` from consecutive rows of ``A``. Vectors of ``B`` begin
before the tile if its rows are not aligned, so a tile has one more group of rows, and no vector has two writers. Only
vectors at the ends of rows of ``B`` are stored element by element.

    text = unaligned_text("bf16")            # launch(a, b)

Elements of a vector are gathered in the order of their rows modulo the vector length ``w``: the ``j``-th load of every
thread reads a row ``j`` of its group, so that no two lanes of a warp access different words of a bank. The vector is
then rotated into place. Example: with ``w = 8`` and a row of ``B`` that begins 3 elements after a boundary, vectors
consist of rows ``8 k - 3`` to ``8 k + 4``. Loads 0 to 4 read group ``k``, and loads 5 to 7 read group ``k - 1``.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.copies.transpose import BYTES
from cute_dialect.kernels.rows.memory import part
from cute_dialect.lang.values.dtypes import type_of_mlir


class UnalignedPlan(NamedTuple):
    """Sizes of a tile."""

    groups: int = 8  # vectors of a row of B
    chunks: int = 8  # vectors of a row of A
    threads: int = 256


def lead_of(matrix: cute.Tensor, w: int) -> cute.Int32:
    """Return the number of elements between a 16-byte boundary and the start of a matrix."""
    return (matrix.iterator.toint().to(cute.Int32) & 15) // (16 // w)


def rotated(words: list[cute.Uint32], by: cute.Int32, size: int) -> list[cute.Uint32]:
    """Rotate a vector of four 32-bit words upwards by a number of elements of ``size`` bytes."""
    for bit in range((16 // size).bit_length() - 1):
        count = size << bit  # bytes
        if count >= 4:
            moved = [words[(i - count // 4) % 4] for i in range(4)]
        else:
            moved = [(words[i] << (8 * count)) | (words[i - 1] >> (32 - 8 * count)) for i in range(4)]
        words = [cute.where(by & (1 << bit) != 0, x, y) for x, y in zip(moved, words)]
    return words


def place_of(
    block: cute.Int32, m: cute.Int32, n: cute.Int32, plan: UnalignedPlan, w: int
) -> tuple[cute.Int32, cute.Int32]:
    """Return the first row and column of the tile of a block.

    Blocks are numbered along the shorter side of A, so that the parts of a 32-byte sector are accessed close in time.
    """
    down, across = cute.ceil_div(m + w - 1, plan.groups * w), cute.ceil_div(n, plan.chunks * w)
    wide = across > down
    row = cute.where(wide, block % down, block // across)
    column = cute.where(wide, block // down, block % across)
    return row * (plan.groups * w), column * (plan.chunks * w)


@cute.kernel
def transpose_unaligned(a: cute.Tensor, b: cute.Tensor, plan: cute.Constexpr[UnalignedPlan]):
    """Transpose one tile."""
    dtype, (m, n) = a.element_type, a.shape
    w, vectors = 128 // dtype.width, plan.chunks + 1
    rows = (plan.groups + 1) * w
    thread, block = cute.arch.thread_idx().x, cute.arch.block_idx().x
    first, left = place_of(block, m, n, plan, w)
    # A slot of padding after each group puts the same row of all groups into different banks.
    group = w * vectors + 1
    memory = cute.smem_tensor(dtype, cute.make_layout((plan.groups + 1) * group * w), byte_alignment=16).iterator

    # Elements of A are counted from its first one, vectors from the boundary before it.
    lead, step = lead_of(a, w), a.stride[0]
    rounds = -(-rows * vectors // plan.threads)
    values = cute.make_rmem_tensor(rounds * w, dtype)
    values.fill(0)
    for i in cute.range_constexpr(rounds):
        number = i * plan.threads + thread
        row = first - w + number // vectors
        if (row >= 0) & (row < m) & (number < rows * vectors):
            start = row * step
            begin = ((start + left + lead) // w + number % vectors) * w - lead
            low, high = cute.where(step == n, 0, start), cute.where(step == n, m * n, start + n)
            mine = part(values, i * w, w)
            if (begin >= low) & (begin + w <= high):
                cute.autovec_copy(cute.make_tensor((a.iterator + begin).align(16), cute.make_layout(w)), mine)
            else:
                for k in cute.range_constexpr(w):
                    if (begin + k >= start) & (begin + k < start + n):
                        mine[k] = a[row, begin + k - start]
    for i in cute.range_constexpr(rounds):
        number = i * plan.threads + thread
        if number < rows * vectors:
            to = memory + (number + number // (w * vectors)) * w
            cute.autovec_copy(part(values, i * w, w), cute.make_tensor(to, cute.make_layout(w)))
    cute.arch.sync_threads()

    to_b, at_once = lead_of(b, w), plan.threads // plan.groups
    place, across_b = thread % plan.groups, thread // plan.groups
    skews = [(j * step + lead) & (w - 1) for j in range(w)]  # of the rows j, j + w, ... of the tile
    for i in cute.range_constexpr(plan.chunks * w // at_once):
        column = i * at_once + across_b
        row_of_b = left + column
        by = (row_of_b * b.stride[0] + to_b) & (w - 1)
        found = cute.make_rmem_tensor(w, dtype)
        for j in cute.range_constexpr(w):
            of = cute.where(by + j < w, place + 1, place)
            found[j] = memory[of * (group * w) + (j * vectors * w + skews[j] + column)]
        words = found.load().bitcast(cute.Uint32)
        made = cute.make_rmem_tensor(4, cute.Uint32)
        for k, word in enumerate(rotated([words[k] for k in range(4)], by, 16 // w)):
            made[k] = word
        found.store(made.load().bitcast(dtype))
        begin = first + place * w - by
        if row_of_b < n:
            if (begin >= 0) & (begin + w <= m):
                to = (b[row_of_b, None].iterator + begin).align(16)
                cute.autovec_copy(found, cute.make_tensor(to, cute.make_layout(w)))
            else:
                for k in cute.range_constexpr(w):
                    if (begin + k >= 0) & (begin + k < m):
                        b[row_of_b, begin + k] = found[k]


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, plan: cute.Constexpr[UnalignedPlan]):
    """Launch one block per tile."""
    assert b.shape[0] == a.shape[1], "B must have as many rows as A has columns"
    assert b.shape[1] == a.shape[0], "B must have as many columns as A has rows"
    (m, n), w = a.shape, 128 // a.element_type.width
    # Vectors of B may begin up to w - 1 elements before a tile.
    tiles = cute.ceil_div(m + w - 1, plan.groups * w) * cute.ceil_div(n, plan.chunks * w)
    transpose_unaligned(a, b, plan).launch(grid=tiles, block=plan.threads)


@printed
def unaligned_text(element: str, plan: UnalignedPlan = UnalignedPlan()) -> cute.Compiled:  # noqa: B008
    """Trace the kernel and the host function ``launch(a, b)`` for matrices with contiguous rows.

    Raises:
        ValueError: if the element type or the tile is not supported.
    """
    if element not in BYTES:
        raise ValueError(f"transpose: element type '{element}' is not supported; use one of {', '.join(BYTES)}")
    columns = plan.chunks * 16 // BYTES[element]
    if plan.threads > plan.groups * columns:
        most = plan.groups * columns
        raise ValueError(f"transpose: threads is {plan.threads}; a tile of {columns} columns has at most {most}")
    matrix = cute.Tensor[type_of_mlir(element), "(?,?):(?,1)"]
    return cute.trace(launch, matrix, matrix, plan)
