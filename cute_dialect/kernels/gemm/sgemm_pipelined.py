"""The last rung of the SGEMM ladder: tiles by TMA, and registers loaded one step ahead of their use.

A block of 128 threads multiplies tiles of 128 x 128, and a thread has 8 x 16 elements of C. It holds two register sets
of operands: of A 8 rows of four k, of B one k of 16 columns. While the products of one k are accumulated, the next
operands are loaded from shared memory, with 6 loads of 128 bits for 128 products. Four tiles of A and B are in flight.
TMA fills out-of-bounds elements with zeros, so that the loop needs neither predicates nor addresses:

    full + s: the bytes of tile ``k`` are in slot ``s = k % stages``
    sync_threads: all threads are done with the previous tile, whose slot is refilled

Three tiles past the last one are requested; they are zeros and are not multiplied.

The register file bounds the loop. An FMA that finds one operand in the reuse cache reads two registers, which takes one
cycle only if one is even and one is odd.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: reportArgumentType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import CopyUniversalOp, cpasync

QUAD = 4
"""k of A in one 128-bit load."""


def load_maps(
    mA: cute.Tensor, mB: cute.Tensor, tile: tuple[int, int, int], *, turned: bool = False, batch: bool = False
) -> Any:
    """Build the tensor maps for tiles (m, k) of A, and (n, k) of B viewed as (n, k), each with its coordinate tensor.

    ``turned`` means that B is given as (n, k). ``batch`` adds a batch mode.
    """
    m, n, k = tile
    one = (1,) * batch
    boxes = [cute.make_layout((m, k), (k, 1)), cute.make_layout((n, k), (1, n))]
    if batch:
        boxes = [cute.append_ones(box, 3) for box in boxes]
    sA = cute.make_composed_layout(cute.make_swizzle(2, 4, 3), 0, boxes[0])
    load = cpasync.CopyBulkTensorTileG2SOp()
    return (
        cpasync.make_tiled_tma_atom(load, mA, sA, (m, k, *one), l2_promotion=256),
        cpasync.make_tiled_tma_atom(
            load, mB if turned else cute.select(mB, [1, 0]), boxes[1], (n, k, *one), l2_promotion=256
        ),
    )


class Slots:
    """Shared-memory slots that TMA fills, and their full barriers. ``matrix`` holds the batch indices of A and of B."""

    def __init__(self, loads: Any, tile: tuple[int, int, int], stages: int, row: Any, column: Any, matrix: Any = None):
        m, n, k = tile
        (self.atom_a, coords_a), (self.atom_b, coords_b) = loads
        if matrix is not None:  # an index past the end selects the last matrix
            coords_a, coords_b = (
                x[None, None, cute.min(i, x.shape[2] - 1)] for x, i in zip((coords_a, coords_b), matrix)
            )
        self.stages, self.bytes = stages, 4 * (m + n) * k
        self.tiles = cute.ceil_div(coords_a.shape[1], k)
        self.gA = cute.local_tile(coords_a, (m, k), (row, None))
        self.gB = cute.local_tile(coords_b, (n, k), (column, None))
        self.sA = cute.smem_tensor(
            cute.Float32, cute.make_layout((m, k, stages), (k, 1, m * k)), 1024, cute.make_swizzle(2, 4, 3)
        )
        self.sB = cute.smem_tensor(cute.Float32, (n, k, stages), 1024)
        self.full = cute.arch.alloc_smem(cute.Int64, stages, alignment=8)

    def fetch(self, tile: Any, slot: Any):
        """Issue the loads of a tile, in one thread."""
        full = self.full + slot
        cute.arch.mbarrier_arrive_and_expect_tx(full, self.bytes)
        cute.copy(self.atom_a, self.gA[None, None, tile], self.sA[None, None, slot], tma_bar_ptr=full)
        cute.copy(self.atom_b, self.gB[None, None, tile], self.sB[None, None, slot], tma_bar_ptr=full)

    def wait(self, slot: Any, phase: Any):
        """Wait until a slot is full."""
        cute.arch.mbarrier_wait(self.full + slot, phase)

    def next(self, slot: Any, phase: Any) -> Any:
        """Return the slot and phase of the next tile."""
        wraps = slot + 1 == self.stages
        return (0 if wraps else slot + 1), phase ^ cute.Int32(wraps)


def multiply_ahead(slots: Slots, mma: cute.TiledMma, acc: cute.Tensor, thread: Any):
    """Accumulate the products of all tiles along k in ``acc``."""
    stages, (_, k, _) = slots.stages, slots.sA.shape
    leader = thread == 0
    if leader:
        for stage in range(stages):
            cute.arch.mbarrier_init(slots.full + stage, 1)
        cute.arch.mbarrier_init_fence()
        for stage in cute.range_constexpr(stages - 1):
            slots.fetch(stage, stage)
    cute.arch.sync_threads()

    # This thread's operands: four k of A at once, one k of B, two register sets each.
    part = mma.get_slice(thread)
    tA, tB = part.partition_A(slots.sA), part.partition_B(slots.sB)
    copy = cute.make_copy_atom(CopyUniversalOp(), cute.Float32)
    quads = [cute.make_fragment(cute.make_layout((1, 8, QUAD), (0, QUAD, 1)), cute.Float32) for _ in range(2)]
    lines = [cute.make_fragment(cute.make_layout((1, (4, 4)), (0, (1, 4))), cute.Float32) for _ in range(2)]

    def load_a(quad: int, slot: Any):
        source = cute.local_tile(tA[None, None, None, slot], (1, 8, QUAD), (0, 0, quad))
        cute.copy(copy, source, quads[quad % 2])

    def load_b(j: int, slot: Any):
        cute.copy(copy, tB[None, None, j, slot], lines[j % 2])

    slot, phase = cute.Int32(0), cute.Int32(0)
    slots.wait(slot, phase)
    load_a(0, slot)
    load_b(0, slot)
    for tile in range(slots.tiles):
        next_slot, next_phase = slots.next(slot, phase)
        for j in cute.range_constexpr(k):
            if j == k - QUAD + 1:
                # All threads are done with the previous tile. Its slot gets the last requested tile; the next tile has
                # arrived.
                cute.arch.sync_threads()
                if leader:
                    slots.fetch(tile + (stages - 1), (slot + (stages - 1)) % stages)
                slots.wait(next_slot, next_phase)
            if j == k - 1:
                load_b(0, next_slot)
            else:
                load_b(j + 1, slot)
            if j % QUAD == 1:
                quad = j // QUAD + 1
                load_a(quad % (k // QUAD), next_slot if quad == k // QUAD else slot)
            cute.gemm(mma, acc, quads[j // QUAD % 2][None, None, j % QUAD], lines[j % 2], acc)
        slot, phase = next_slot, next_phase
    # Wait for tiles that are still in flight.
    slot, phase = slots.next(slot, phase)
    for _ in cute.range_constexpr(stages - 2):
        slots.wait(slot, phase)
        slot, phase = slots.next(slot, phase)
