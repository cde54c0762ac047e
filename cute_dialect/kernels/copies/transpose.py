"""Matrix transpose ``B = A^T`` through swizzled shared memory.

There are two kernels with one body. Both are slow at the edges of matrices that are not whole tiles; see
:mod:`.transpose_unaligned`. ``transpose_v`` takes matrices with contiguous rows and 16-byte aligned pointers
and row strides. A thread reads a square of ``v`` vectors of ``v`` elements (16 bytes), transposes it in registers and
writes vectors to shared memory. The block then writes rows of ``B`` by vectors.

``transpose`` takes any strides and moves single elements, with 32 adjacent elements per warp on both sides. No
shared-memory access has a bank conflict. Tiles at an edge are moved element by element with a bounds check.

    launch(a, b)                              # B = A^T; the first call of an element type compiles
    launch(a, b, 4)                           # with tiles of 4 x 128 bytes of rows

>>> Plan(cute.Float16).tile, Plan(cute.Float16).threads
((64, 128), 128)
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: reportArgumentType=false, reportOperatorIssue=false, reportOptionalMemberAccess=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang.values.dtypes import NumericType, type_of_mlir

AT_ONCE = 16
"""Elements that a thread loads together at an edge."""

BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1}
"""Supported element types -> their bytes."""


def whole_tile(element: str) -> tuple[int, int]:
    """Return the rows and columns of the default tile of A, as :class:`Plan` computes them.

    >>> whole_tile("bf16"), whole_tile("f32")
    ((64, 128), (64, 64))
    """
    item = BYTES[element]
    return 8 * (16 // item) * max(1, item // 2), 16 * (16 // item)


class Plan:
    """Layouts of a block's tile, of ``rows`` x 128 bytes of rows of A (0 for 256 threads or 16 KiB).

    ``load`` and ``store`` map (thread, value) to the element of the tile that a thread reads or writes. ``smem`` and
    ``swizzle`` are the layout of the tile in shared memory. Without ``vectors``, single elements are moved.
    """

    def __init__(self, element: NumericType, rows: int = 0, *, vectors: bool = True):
        self.element = element
        self.bytes = element.width // 8
        self.vector = v = 16 // self.bytes
        self.factor = k = rows or max(1, self.bytes // 2)
        self.tile = tm, tn = 8 * v * k, 16 * v
        self.threads = t = 128 * k
        if vectors:
            # Rows of 128 bytes along m, one for each n. The n with the same index in their vectors are adjacent. The
            # threads of a quarter warp, whose n are one vector apart, therefore write 8 adjacent rows, and the swizzle
            # puts their 16-byte chunks into different banks.
            self.load = cute.make_layout(((16, 8 * k), (v, v)), ((v * tm, v), (tm, 1)))
            self.store = cute.make_layout(((8 * k, 16), (v, v)), ((v, v * tm), (1, tm)))
            row = 8 * v
            down = (row, 1) if k == 1 else ((row, k), (1, row * 16 * v))
            self.smem = cute.make_layout((down[0], (v, 16)), (down[1], (16 * row, row)))
            self.swizzle = cute.make_swizzle(3, 4, 3)
        else:
            # Rows of 128 bytes along n, one for each m. A warp writes along a row, and reads a column of 32 rows, whose
            # words the swizzle puts into different banks.
            across, down = min(tn, t), max(1, t // tn)
            self.load = cute.make_layout(((across, down), (tn // across, tm // down)), ((tm, 1), (across * tm, down)))
            rows, columns = min(tm, t), max(1, t // tm)
            self.store = cute.make_layout(
                ((rows, columns), (tm // rows, tn // columns)), ((1, tm), (rows, columns * tm))
            )
            row = 128 // self.bytes
            self.smem = cute.make_layout((tm, (row, tn // row)), (row, (1, tm * row)))
            base = max(2, self.bytes.bit_length() - 1)
            self.swizzle = cute.make_swizzle(7 - base, base, 7 - base)


def move_tile(mA: cute.Tensor, mB: cute.Tensor, plan: Plan):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    tm, tn = plan.tile

    # This block's tile of A, of B viewed as (m, n), and of the coordinates.
    across = cute.ceil_div(mA.shape[1], tn)
    where = (block // across, block % across)
    gA = cute.local_tile(mA, plan.tile, where)
    gB = cute.local_tile(cute.select(mB, [1, 0]), plan.tile, where)
    ids = cute.local_tile(cute.make_identity_tensor(mA.shape), plan.tile, where)
    whole = cute.elem_less(ids[tm * tn - 1], mA.shape)
    sT = cute.smem_tensor(plan.element, plan.smem, swizzle=plan.swizzle)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), plan.element)

    if whole:
        # This thread's elements of A go through registers to shared memory.
        load = cute.make_tiled_copy(atom, plan.load, plan.tile).get_slice(thread)
        move(atom, load.partition_S(gA), load.partition_D(sT))
    else:
        # At an edge, copy element by element along the rows of A.
        count = min(AT_ONCE, tm * tn // plan.threads)
        for start in range(thread, tm * tn, plan.threads * count):
            values = cute.make_rmem_tensor(count, plan.element)
            for k in range(count):  # values are in registers, so the passes unroll this loop
                i = start + k * plan.threads
                at = (i // tn, i % tn)
                if cute.elem_less(ids[at], mA.shape):
                    values[k] = gA[at]
            for k in range(count):
                i = start + k * plan.threads
                at = (i // tn, i % tn)
                if cute.elem_less(ids[at], mA.shape):
                    sT[at] = values[k]
    cute.arch.sync_threads()
    if whole:
        # Write the tile as rows of B.
        store = cute.make_tiled_copy(atom, plan.store, plan.tile).get_slice(thread)
        move(atom, store.partition_S(sT), store.partition_D(gB))
    else:
        # At an edge, copy element by element along the rows of B.
        for i in range(thread, tm * tn, plan.threads):
            at = (i % tm, i // tm)
            if cute.elem_less(ids[at], mA.shape):
                gB[at] = sT[at]


def move(atom: cute.CopyAtom, source: cute.Tensor, destination: cute.Tensor):
    values = cute.make_fragment_like(source)
    cute.copy(atom, source, values)
    cute.copy(atom, values, destination)


@cute.kernel
def transpose(mA: cute.Tensor, mB: cute.Tensor, rows: cute.Constexpr[int]):
    """Transpose a tile of matrices with any strides."""
    move_tile(mA, mB, Plan(mA.element_type, rows, vectors=False))


@cute.kernel
def transpose_v(mA: cute.Tensor, mB: cute.Tensor, rows: cute.Constexpr[int]):
    """Transpose a tile of matrices with 16-byte aligned rows."""
    move_tile(mA, mB, Plan(mA.element_type, rows, vectors=True))


ANY = "(?,?):(?,?)"


@cute.jit
def launch(mA: cute.Tensor[None, ANY], mB: cute.Tensor[None, ANY], rows: cute.Constexpr[int] = 0):
    """Launch one block per tile, with vector accesses if the matrices allow it."""
    assert mB.shape[0] == mA.shape[1], "B must have as many rows as A has columns"
    assert mB.shape[1] == mA.shape[0], "B must have as many columns as A has rows"
    plan = Plan(mA.element_type, rows)
    (m, n), (tm, tn) = mA.shape, plan.tile
    stride = f"?{{div={plan.vector}}}" if plan.vector > 1 else "?"
    vA, vB = (cute.promise(x, f"(?,?):({stride},1)", align=16) for x in (mA, mB))
    transpose_v(vA, vB, rows).launch(
        grid=cute.ceil_div(m, tm) * cute.ceil_div(n, tn), block=plan.threads, fallback=transpose(mA, mB, rows)
    )


@printed
def transpose_text(element: str = "f32", rows: int = 0) -> cute.Compiled:
    """Trace the kernels and the host function.

    Raises:
        ValueError: if the element type is not in :data:`BYTES`.
    """
    if element not in BYTES:
        raise ValueError(f"transpose: element type '{element}' is not supported; use one of {', '.join(BYTES)}")
    matrix: Any = cute.Tensor[type_of_mlir(element), ANY]
    return cute.trace(launch, matrix, matrix, rows)
