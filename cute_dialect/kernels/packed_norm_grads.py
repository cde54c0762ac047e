"""Gradients of RMSNorm and LayerNorm for short contiguous rows: a thread computes whole rows in registers.

Warps iterate over tiles of rows (:mod:`.packed_tile`). A thread accumulates the gradients of all weights and biases.
At the end, each block writes its sums to a row of ``parts``, as the kernels of :mod:`.row_grads` do.

    text = packed_norm_text("layernorm", "bf16", 3, "wb")
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.packed_rows import THREADS, PackedPlan, Values, is_packed_length, total
from cute_dialect.kernels.packed_tile import LANES, RowTile
from cute_dialect.kernels.row_grads import part_stride
from cute_dialect.kernels.rows import add, pivot_of, wide
from cute_dialect.kernels.traced_text import printed
from cute_dialect.lang.values.dtypes import type_of_mlir

__all__ = ["is_packed_norm_length", "packed_norm_blocks", "packed_norm_text"]

RESIDENT = 4
"""Blocks of a multiprocessor, with up to 128 registers per thread."""


MOST_COLUMNS = 15
"""Largest row length whose gradients and sums fit the registers."""


def is_packed_norm_length(element: str, n: int) -> bool:
    """Return True if the gradients of norms of rows of ``n`` elements are computed in packed form.

    >>> [n for n in range(1, 40) if is_packed_norm_length("f16", n)]
    [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15]
    """
    return is_packed_length(element, n) and n <= MOST_COLUMNS


def packed_norm_blocks(element: str, n: int, rows: int, processors: int) -> int:
    """Return the number of blocks: as many as the GPU holds at once, at most one per tile.

    >>> packed_norm_blocks("bf16", 3, 10**6, 132), packed_norm_blocks("bf16", 3, 5000, 132)
    (528, 8)
    """
    each = PackedPlan("", element, n).rows * THREADS
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


@cute.jit
def launch(
    x: cute.Tensor, w: Any, d: cute.Tensor, r: Any, y: cute.Tensor, parts: Any, groups: cute.Int32 | None,
    eps: cute.Float32, plan: cute.Constexpr[PackedPlan],
):  # fmt: skip
    """Launch as many blocks as ``parts`` has rows; without ``parts``, their number is ``groups``."""
    assert cute.size(d) == cute.size(x), "dy must have as many elements as x"
    assert cute.size(y) == cute.size(x), "dx must have as many elements as x"
    packed_norm_backward(x, w, d, r, y, parts, eps, plan).launch(
        grid=groups if parts is None else parts.shape[0], block=THREADS
    )


@printed
def packed_norm_text(op: str, element: str, n: int, takes: str = "") -> cute.Compiled:
    """Trace the kernel of ``rmsnorm`` or ``layernorm`` backward for contiguous rows of ``n`` elements.

    The launch takes the arguments of :func:`~cute_dialect.kernels.row_grads.norm_backward_text`, with matrices as
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
