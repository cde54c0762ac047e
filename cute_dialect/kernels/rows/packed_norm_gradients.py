"""Gradients of RMSNorm and LayerNorm for short contiguous rows that are not whole vectors.

Warps iterate over tiles of rows (:mod:`.packed_tile`). A thread computes whole rows in registers, or, of rows of more
than 15 elements, every eighth column. It accumulates the gradients of the weights and biases of its columns. At the
end, each block writes its sums to a row of ``parts``, as the kernels of :mod:`.gradients` do.

    text = packed_norm_text("layernorm", "bf16", 3, "wb")
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.rows.config import width
from cute_dialect.kernels.rows.forward import add, pivot_of, wide
from cute_dialect.kernels.rows.gradients import part_stride
from cute_dialect.kernels.rows.packed import THREADS, PackedPlan, Values, total
from cute_dialect.kernels.rows.packed_tile import LANES, RowTile, SharedRowTile
from cute_dialect.lang.values.dtypes import type_of_mlir

RESIDENT = 4
"""Blocks of a multiprocessor, with up to 128 registers per thread."""


MOST_COLUMNS = 15
"""Largest row length whose gradients and sums fit the registers of a thread."""

SHARING = 8
"""Lanes that share a longer row."""

SHARED_VECTORS = 16
"""Rows that lanes share have fewer elements than so many vectors."""

TILE_VECTORS = 128
"""Largest number of vectors of a tile of shared rows."""


def is_packed_norm_length(element: str, n: int) -> bool:
    """Return True if the gradients of norms of contiguous rows of ``n`` elements are computed by these kernels.

    >>> [n for n in range(1, 200) if is_packed_norm_length("f16", n)][-3:], is_packed_norm_length("f16", 16)
    ([125, 126, 127], False)
    """
    return n % width(element) != 0 and n < SHARED_VECTORS * width(element)


def shared_rows(element: str, n: int) -> int:
    """Return the number of rows of a tile whose rows are shared by lanes; 0 if each row belongs to one lane.

    >>> [shared_rows("bf16", n) for n in (15, 17, 46, 100)], shared_rows("f32", 33)
    ([0, 32, 16, 8], 8)
    """
    if n <= MOST_COLUMNS:
        return 0
    return SHARING * max(1, min(4, TILE_VECTORS * width(element) // (SHARING * n)))


def packed_norm_blocks(element: str, n: int, rows: int, processors: int) -> int:
    """Return the number of blocks: as many as the GPU holds at once, at most one per tile.

    >>> packed_norm_blocks("bf16", 3, 10**6, 132), packed_norm_blocks("bf16", 3, 5000, 132)
    (528, 8)
    """
    shared = shared_rows(element, n)
    each = shared * (THREADS // LANES) if shared else PackedPlan("", element, n).rows * THREADS
    return min(RESIDENT * processors, -(-rows // each))


def gradient(op: str, x: Values, d: Values, w: Values | None, eps: Any) -> tuple[Values, Values]:
    """Return the gradients of a row's elements, and its normalized elements."""
    share = 1.0 / len(x)
    if op == "layernorm":
        pivot = pivot_of(x[0])
        x = [v - pivot for v in x]
        mean = total(x) * share
        x = [v - mean for v in x]
    by = cute.arch.rsqrt_approx(total([v * v for v in x]) * share + eps)
    normed = [v * by for v in x]
    g = d if w is None else [a * b for a, b in zip(d, w)]
    c = total([a * b for a, b in zip(g, normed)]) * share
    if op == "layernorm":
        mean_g = total(g) * share
        g = [v - mean_g for v in g]
    return [(a - b * c) * by for a, b in zip(g, normed)], normed


@cute.kernel(min_blocks=RESIDENT)
def packed_norm_backward(
    x: cute.Tensor, w: Any, d: cute.Tensor, r: Any, y: cute.Tensor, parts: Any, eps: cute.Float32,
    plan: cute.Constexpr[PackedPlan],
):  # fmt: skip
    """Compute the gradients of this block's tiles, and the sums of the gradients of weights and biases."""
    if parts is not None:
        cute.arch.griddepcontrol_launch_dependents()  # The kernel that adds up the parts may start, and waits.
    n, vectors, warps = plan.n, [kind for kind in "wb" if kind in plan.takes], THREADS // LANES
    sources = [x, d] if r is None else [x, d, r]
    tile = RowTile(type_of_mlir(plan.element), n, plan.rows, THREADS, len(sources))
    weights = None if w is None else [wide(w[i]) for i in range(n)]
    sums = cute.make_rmem_tensor(max(1, len(vectors) * n), cute.Float32)
    sums.fill(0.0)
    step = cute.arch.grid_dim().x * warps * tile.vectors
    for first in range(tile.first, cute.ceil_div(cute.size(x), tile.width), step):
        tile.first = first
        cute.arch.sync_warp()  # the previous tile has been stored
        tile.fetch(sources)
        for row in cute.range_constexpr(plan.rows):
            values = [tile.values(i, row) for i in range(len(sources))]
            found, normed = gradient(plan.op, values[0], values[1], weights, eps)
            tile.replace(0, row, found if r is None else [a + b for a, b in zip(found, values[2])])
            for at, kind in enumerate(vectors):
                for i in range(n):
                    more = values[1][i] * normed[i] if kind == "w" else values[1][i]
                    sums[at * n + i] = sums[at * n + i] + more
        tile.store([(y, 0)])
    if parts is not None:
        thread, count = cute.arch.thread_idx().x, len(vectors) * n
        table = cute.smem_tensor(cute.Float32, cute.make_layout((warps, count), stride=(count, 1)))
        for i in cute.range_constexpr(count):
            of_warp = cute.arch.warp_reduction(sums[i], add, LANES)
            if tile.lane == 0:
                table[thread // LANES, i] = of_warp
        cute.arch.sync_threads()
        if thread < count:
            of_block = table[0, thread]
            for warp in cute.range_constexpr(1, warps):
                of_block = of_block + table[warp, thread]
            parts[cute.arch.block_idx().x, thread // n * part_stride(n) + thread % n] = of_block


@cute.kernel(min_blocks=RESIDENT)
def shared_norm_backward(
    x: cute.Tensor, w: Any, d: cute.Tensor, r: Any, y: cute.Tensor, parts: Any, eps: cute.Float32,
    plan: cute.Constexpr[PackedPlan],
):  # fmt: skip
    """Compute as :func:`packed_norm_backward`, with eight lanes per row."""
    if parts is not None:
        cute.arch.griddepcontrol_launch_dependents()  # The kernel that adds up the parts may start, and waits.
    n, vectors, warps, share = plan.n, [kind for kind in "wb" if kind in plan.takes], THREADS // LANES, 1.0 / plan.n
    sources = [x, d] if r is None else [x, d, r]
    rows = shared_rows(plan.element, n)
    tile = SharedRowTile(type_of_mlir(plan.element), n, rows, SHARING, THREADS, len(sources))
    columns = tile.columns
    weights = None if w is None else [wide(w[column]) for column, _ in columns]
    sums = cute.make_rmem_tensor(max(1, len(vectors) * len(columns)), cute.Float32)
    sums.fill(0.0)

    def over_row(values: Values) -> Any:
        return cute.arch.warp_reduction(total(values), add, SHARING) * share

    def less(values: Values, by: Any) -> Values:
        """Subtract a number from the elements that this lane has."""
        return [v - by if mine is True else cute.where(mine, v - by, 0.0) for v, (_, mine) in zip(values, columns)]

    step = cute.arch.grid_dim().x * warps * tile.vectors
    for first in range(tile.first, cute.ceil_div(cute.size(x), tile.width), step):
        tile.first = first
        tile.fetch(sources)
        for i in cute.range_constexpr(tile.passes):
            values = [tile.values(k, i) for k in range(len(sources))]
            e, g = values[:2]
            if plan.op == "layernorm":
                e = less(e, pivot_of(cute.arch.shuffle_sync(e[-1], tile.group * SHARING)))  # the row's first element
                e = less(e, over_row(e))
            by = cute.arch.rsqrt_approx(over_row([v * v for v in e]) + eps)
            by = cute.where(tile.exists(i, cute.size(x)), by, 0.0)
            normed = [v * by for v in e]
            scaled = g if weights is None else [a * b for a, b in zip(g, weights)]
            c = over_row([a * b for a, b in zip(scaled, normed)])
            if plan.op == "layernorm":
                mean_g = over_row(scaled)
                scaled = [v - mean_g for v in scaled]
            found = [(a - b * c) * by for a, b in zip(scaled, normed)]
            tile.replace(0, i, found if r is None else [a + b for a, b in zip(found, values[2])])
            for at, kind in enumerate(vectors):
                for k in range(len(columns)):
                    more = g[k] * normed[k] if kind == "w" else g[k]
                    sums[at * len(columns) + k] = sums[at * len(columns) + k] + more
        tile.store([(y, 0)])
    if parts is not None:
        thread, count, lines = cute.arch.thread_idx().x, len(vectors) * n, THREADS // SHARING
        table = cute.smem_tensor(cute.Float32, cute.make_layout((lines, count), stride=(count, 1)))
        for at in range(len(vectors)):
            for k, (column, mine) in enumerate(columns):
                if mine:
                    table[thread // SHARING, at * n + column] = sums[at * len(columns) + k]
        cute.arch.sync_threads()
        for at in range(thread, count, THREADS):
            of_block = table[0, at]
            for line in cute.range_constexpr(1, lines):
                of_block = of_block + table[line, at]
            parts[cute.arch.block_idx().x, at // n * part_stride(n) + at % n] = of_block


@cute.jit
def launch(
    x: cute.Tensor, w: Any, d: cute.Tensor, r: Any, y: cute.Tensor, parts: Any, groups: cute.Int32 | None,
    eps: cute.Float32, plan: cute.Constexpr[PackedPlan],
):  # fmt: skip
    """Launch as many blocks as ``parts`` has rows; without ``parts``, their number is ``groups``."""
    assert cute.size(d) == cute.size(x), "dy must have as many elements as x"
    assert cute.size(y) == cute.size(x), "dx must have as many elements as x"
    kernel = shared_norm_backward if shared_rows(plan.element, plan.n) else packed_norm_backward
    kernel(x, w, d, r, y, parts, eps, plan).launch(grid=groups if parts is None else parts.shape[0], block=THREADS)


@printed
def packed_norm_text(op: str, element: str, n: int, takes: str = "") -> cute.Compiled:
    """Trace the kernel of ``rmsnorm`` or ``layernorm`` backward for contiguous rows of ``n`` elements.

    The launch takes the arguments of :func:`~cute_dialect.kernels.rows.gradients.norm_backward_text`, with matrices as
    vectors of all their elements, aligned to 16 bytes.
    """
    if not is_packed_norm_length(element, n):
        raise ValueError(f"rows of {n} {element} elements are not packed; see is_packed_norm_length")
    dtype = type_of_mlir(element)
    flat = cute.Tensor[dtype, "(?):(1)", "align<16>"]
    vectors = takes.strip("r")
    parts = cute.Tensor[cute.Float32, "(?,?{div=4}):(?{div=4},1)", "align<16>"] if vectors else None
    groups = None if vectors else cute.Int32
    w, r = flat if "w" in takes else None, flat if "r" in takes else None
    return cute.trace(launch, flat, w, flat, r, flat, parts, groups, cute.Float32, PackedPlan(op, element, n, takes))
