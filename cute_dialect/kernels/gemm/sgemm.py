"""A ladder of f32 GEMM kernels on plain FMAs, ``C = A * B``, each rung one optimization faster than the previous one.

1. ``naive``: one element of C per thread; the threads of a warp are in one column. 2. ``coalesced``: the threads of a
warp are in one row. 3. ``smem``: a block multiplies tiles in shared memory. 4. ``tile1d``: a thread has 8 elements of a
column of C. 5. ``tile2d``: a thread has 8 x 8 elements. 6. ``vector``: 128-bit accesses to global and shared memory;
the tile of A is stored transposed. 7. ``warptile``: the tile of C is divided among warps, then lanes; three stages by
``cp.async``, swizzled. 8. ``pipelined``: a thread has 8 x 16 elements and loads operands one step ahead; tiles are
loaded by TMA.

All rungs take row-major matrices of any size; out-of-bounds elements count as zero and are not written. Rungs 6 and 7
have a variant ``sgemm_v`` for matrices whose rows are multiples of 16 bytes. Rung 8 needs such matrices, and falls back
to rung 7. After S. Boehm, "How to optimize a CUDA matmul kernel".

    launch(a, b, c, "warptile")                          # c = a @ b

>>> [r for r in RUNGS][-1]
'pipelined'
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: reportArgumentType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import CopyUniversalOp, MmaUniversalOp, cpasync


class Rung(NamedTuple):
    """Parameters of a rung."""

    title: str
    tile: tuple[int, int, int]  # (M, N, K) of a block
    threads: int  # of a block
    atoms: str = ""  # layout of the threads over the tile of C
    order: tuple[str, str] | None = None  # permutation of its rows and columns
    smem_a: str = ""  # shared-memory layout of the tile of A
    k_step: int = 1  # K of the tile that is in registers at once
    vectors: bool = False  # there is a variant for 16-byte aligned rows
    stages: int = 1  # tiles in flight; 1 for no pipelining


RUNGS: dict[str, Rung] = {
    "naive": Rung("a thread computes one element; the threads of a warp lie in one column of C", (32, 32, 1), 1024),
    "coalesced": Rung("a thread computes one element; the threads of a warp lie in one row of C", (32, 32, 1), 1024),
    "smem": Rung(
        "a thread computes one element; the block multiplies tiles of 32 x 32 in shared memory",
        (32, 32, 32), 1024, "(32,32,1):(32,1,0)", None, "(32,32):(32,1)", 4,
    ),
    "tile1d": Rung(
        "a thread computes 8 elements of one column of a tile of 64 x 64",
        (64, 64, 8), 512, "(8,64,1):(64,1,0)", None, "(64,8):(8,1)",
    ),
    "tile2d": Rung(
        "a thread computes 8 x 8 elements of a tile of 128 x 128",
        (128, 128, 8), 256, "(16,16,1):(16,1,0)", None, "(128,8):(8,1)",
    ),
    "vector": Rung(
        "a thread computes 8 x 8 elements, four side by side; accesses of 128 bits; A lies transposed",
        (128, 128, 8), 256, "(16,16,1):(16,1,0)", ("(16,4,2):(4,1,64)", "(16,4,2):(4,1,64)"), "(128,8):(1,132)", 1,
        True,
    ),
    "warptile": Rung(
        "8 warps have tiles of 32 x 64, their lanes 8 x 8 elements; three stages in flight by cp.async",
        (128, 128, 16), 256, "((4,4),(8,2),1):((8,64),(1,32),0)", ("(4,4,8):(1,32,4)", "(8,2,4,2):(4,64,1,32)"),
        "(128,16,3):(16,1,2048)", 2, True, 3,
    ),
    "pipelined": Rung(
        "4 warps have tiles of 64 x 64, their lanes 8 x 16 elements, loaded one step ahead; four stages by TMA",
        (128, 128, 16), 128, "((8,2),(4,2),1):((4,32),(1,64),0)", ("(8,2,8):(1,64,8)", "(4,2,4,4):(4,64,1,16)"),
        stages=4,
    ),
}  # fmt: skip
"""Name -> rung, slowest first."""


def block_tile(mC: cute.Tensor, rung: Rung) -> Any:
    """Return the row and column of this block's tile of C."""
    block, _, _ = cute.arch.block_idx()
    across = cute.ceil_div(mC.shape[1], rung.tile[1])
    return block // across, block % across


def transposed(matrix: cute.Tensor) -> cute.Tensor:
    """Return a matrix with its modes exchanged: B, which is (k, n), as (n, k)."""
    return cute.select(matrix, [1, 0])


# ------------------------------------------------------------------------------------------------ rungs 1 and 2


@cute.kernel(name="sgemm")
def one_element(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, name: cute.Constexpr[str]):
    """Compute one element of C per thread."""
    rung = RUNGS[name]
    bm, bn, _ = rung.tile
    thread, _, _ = cute.arch.thread_idx()

    # This block's rows of A, columns of B, and tile of C.
    row, column = block_tile(mC, rung)
    gA = cute.local_tile(mA, (bm,), (row,))
    gB = cute.local_tile(transposed(mB), (bn,), (column,))
    gC = cute.local_tile(mC, (bm, bn), (row, column))
    ids = cute.local_tile(cute.make_identity_tensor(mC.shape), (bm, bn), (row, column))

    # The threads of a warp are in one column, or in one row.
    m, n = (thread % 32, thread // 32) if name == "naive" else (thread // 32, thread % 32)
    if cute.elem_less(ids[m, n], mC.shape):
        total = cute.Float32(0)
        for k in range(mA.shape[1]):
            total = cute.math.fma(gA[m, k], gB[n, k], total)
        gC[m, n] = total


# ------------------------------------------------------------------------------------------------- rungs 3 to 7


class Loader:
    """Loader of one operand's tile ``(rows, k)`` to shared memory, with zeros out of bounds.

    ``k_fast`` means that the matrix is contiguous along k. A thread's values have shape ``((v,1),RestM,RestK)``, with a
    predicate per vector.
    """

    def __init__(
        self, rung: Rung, matrix: cute.Tensor, block: Any, rows: int, *, k_fast: bool, vectors: bool, thread: Any
    ):
        self.matrix, self.block = matrix, block
        self.tile = (rows, rung.tile[2])
        v, t = 4 if vectors else 1, rung.threads
        if k_fast:
            fast = self.tile[1] // v
            slow = min(t // fast, rows)
            tv, tiler = cute.make_layout(((fast, slow), v), ((v * slow, 1), slow)), (slow, fast * v)
        else:
            fast = min(rows // v, t)
            slow = min(t // fast, self.tile[1])
            tv, tiler = cute.make_layout(((fast, slow), v), ((v, v * fast), 1)), (fast * v, slow)
        assert fast * slow == t, (fast, slow)
        if rung.stages > 1:
            cache = cute.nvgpu.LoadCacheMode.GLOBAL if vectors else cute.nvgpu.LoadCacheMode.ALWAYS
            self.atom = cute.make_copy_atom(cpasync.CopyG2SOp(cache), cute.Float32, num_bits_per_copy=32 * v)
        else:
            bits = 128 if vectors else None
            self.atom = cute.make_copy_atom(CopyUniversalOp(), cute.Float32, num_bits_per_copy=bits)
        self.copy = cute.make_tiled_copy(self.atom, tv, tiler).get_slice(thread)
        self.rest = (rows // tiler[0], self.tile[1] // tiler[1])
        self.ids = cute.make_identity_tensor(matrix.shape)

    def source(self, k: Any) -> tuple[cute.Tensor, cute.Tensor]:
        """Return this thread's partition of tile ``k`` of the matrix, and the predicates of its vectors."""
        where = (self.block, k)
        part = self.copy.partition_S(cute.local_tile(self.matrix, self.tile, where))
        ids = self.copy.partition_S(cute.local_tile(self.ids, self.tile, where))
        m, n = self.rest
        flags = cute.make_fragment(cute.make_layout((1, m, n), (0, 1, m)), cute.Boolean)
        first, each = ids[0, None, None], flags[0, None, None]
        for i in range(m * n):
            each[i] = cute.elem_less(first[i], self.matrix.shape)
        return part, flags

    def destination(self, smem: cute.Tensor) -> cute.Tensor:
        """Return this thread's partition of the tile in shared memory."""
        return self.copy.partition_D(smem)


class Product:
    """A block's MMA: this thread's elements of C and their accumulator, initially zero."""

    def __init__(self, rung: Rung, mC: cute.Tensor, row: Any, column: Any, thread: Any):
        self.rung, self.mC, self.row, self.column = rung, mC, row, column
        order = None if rung.order is None else (*(cute.layout(o) for o in rung.order), None)
        self.mma = cute.make_tiled_mma(MmaUniversalOp(cute.Float32), cute.layout(rung.atoms), order)
        self.part = self.mma.get_slice(thread)
        bm, bn, _ = rung.tile
        self.tC = self.part.partition_C(cute.local_tile(mC, (bm, bn), (row, column)))
        self.acc = self.mma.make_fragment_C(self.tC)
        cute.clear(self.acc)
        self.atom = cute.make_copy_atom(CopyUniversalOp(), cute.Float32)

    def step(self, sA: cute.Tensor, sB: cute.Tensor, k: Any):
        """Accumulate ``k_step`` columns of two tiles in shared memory, the ``k``-th such group of columns.

        The columns of A are in registers at once, those of B one after the other.
        """
        (bm, bn, _), step = self.rung.tile, self.rung.k_step
        blockA = self.part.partition_A(cute.local_tile(sA, (bm, step), (0, k)))
        rA = self.mma.make_fragment_A(blockA)
        cute.copy(self.atom, blockA, rA)
        blockB = cute.local_tile(sB, (bn, step), (0, k)) if step > 1 else sB
        for i in cute.range_constexpr(step):
            columnB = self.part.partition_B(cute.local_tile(blockB, (bn, 1), (0, i if step > 1 else k)))
            rB = self.mma.make_fragment_B(columnB)
            cute.copy(self.atom, columnB, rB)
            cute.gemm(self.mma, self.acc, rA[None, None, i], rB[None, None, 0], self.acc)

    def store(self, sums: cute.Tensor):
        """Store this thread's elements of C that are in bounds."""
        bm, bn, _ = self.rung.tile
        shape = self.mC.shape
        ids = cute.local_tile(cute.make_identity_tensor(shape), (bm, bn), (self.row, self.column))
        whole = cute.elem_less(ids[bm * bn - 1], shape)
        if whole:
            cute.copy(self.atom, sums, self.tC)
        else:
            xC = self.part.partition_C(ids)
            inside = cute.make_fragment_like(xC, cute.Boolean)
            for i in range(bm * bn // self.rung.threads):
                inside[i] = cute.elem_less(xC[i], shape)
            cute.copy(self.atom, sums, self.tC, pred=inside)


def setup(
    mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, rung: Rung, *, vectors: bool, place: Any = None,
    k_fast: tuple[bool, bool] = (True, False),
) -> Any:  # fmt: skip
    """Return the loaders of the tiles of A (m, k) and of B, viewed as (n, k), and the MMA.

    ``place`` is this block's tile of C, by default from the block index. ``k_fast`` tells which operands are contiguous
    along k.
    """
    bm, bn, _ = rung.tile
    thread, _, _ = cute.arch.thread_idx()
    row, column = block_tile(mC, rung) if place is None else place
    load_a = Loader(rung, mA, row, bm, k_fast=k_fast[0], vectors=vectors, thread=thread)
    load_b = Loader(rung, transposed(mB), column, bn, k_fast=k_fast[1], vectors=vectors, thread=thread)
    return load_a, load_b, Product(rung, mC, row, column, thread)


def multiply_tiles(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, rung: Rung, *, vectors: bool = False):
    """Multiply tiles that go through registers to shared memory, one at a time."""
    _, bn, bk = rung.tile
    load_a, load_b, product = setup(mA, mB, mC, rung, vectors=vectors)
    sA = cute.smem_tensor(cute.Float32, cute.layout(rung.smem_a))
    sB = cute.smem_tensor(cute.Float32, (bn, bk))
    for tile in range(cute.ceil_div(mA.shape[1], bk)):
        # Load the next tiles through registers.
        nexts: list[cute.Tensor] = []
        for load in (load_a, load_b):
            part, inside = load.source(tile)
            values = cute.make_fragment_like(part)
            cute.clear(values)
            cute.copy(load.atom, part, values, pred=inside)
            nexts.append(values)
        for load, values, smem in zip((load_a, load_b), nexts, (sA, sB)):
            cute.copy(product.atom, values, load.destination(smem))
        cute.arch.sync_threads()
        for k in range(bk // rung.k_step):
            product.step(sA, sB, k)
        cute.arch.sync_threads()
    product.store(product.acc)


def multiply_stages(
    mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, rung: Rung, *, vectors: bool = False, place: Any = None,
    k_fast: tuple[bool, bool] = (True, False), some: tuple[Any, Any] | None = None,
) -> Product:  # fmt: skip
    """Multiply tiles that ``cp.async`` loads ahead, and return the accumulator.

    ``place`` and ``k_fast`` are as in :func:`setup`. ``some`` is the first tile of K and the number of tiles, if not
    all.
    """
    _, bn, bk = rung.tile
    stages = rung.stages
    load_a, load_b, product = setup(mA, mB, mC, rung, vectors=vectors, place=place, k_fast=k_fast)
    sA = cute.smem_tensor(cute.Float32, cute.layout(rung.smem_a), swizzle=cute.make_swizzle(2, 4, 3))
    sB = cute.smem_tensor(cute.Float32, (bn, bk, stages))

    def move(tile: Any, stage: Any):
        for load, smem in ((load_a, sA), (load_b, sB)):
            part, inside = load.source(tile)
            cute.copy(load.atom, part, load.destination(smem[None, None, stage]), pred=inside)

    def fetch(tile: Any, stage: Any):
        if some is None:  # tiles past the last one are zero
            move(tile, stage)
        else:
            first, count = some
            if tile < count:
                move(first + tile, stage)
        cute.arch.cp_async_commit_group()

    for i in cute.range_constexpr(stages - 1):
        fetch(i, i)
    for tile in range(cute.ceil_div(mA.shape[1], bk) if some is None else some[1]):
        # Wait for this tile, and for all threads to be done with the previous one, then request another in its place.
        cute.arch.cp_async_wait_group(stages - 2)
        cute.arch.sync_threads()
        ahead = tile + (stages - 1)
        fetch(ahead, ahead % stages)
        stage = tile % stages
        for k in range(bk // rung.k_step):
            product.step(sA[None, None, stage], sB[None, None, stage], k)
    cute.arch.cp_async_wait_group(0)
    return product


@cute.kernel(name="sgemm")
def tiled(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, name: cute.Constexpr[str]):
    """Multiply matrices of any alignment, tile by tile."""
    multiply_tiles(mA, mB, mC, RUNGS[name])


@cute.kernel(name="sgemm_v")
def tiled_v(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, name: cute.Constexpr[str]):
    """Multiply matrices with 16-byte aligned rows, tile by tile."""
    multiply_tiles(mA, mB, mC, RUNGS[name], vectors=True)


@cute.kernel(name="sgemm", min_blocks=2)
def staged(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, name: cute.Constexpr[str]):
    """Multiply matrices of any alignment, with prefetch of tiles."""
    product = multiply_stages(mA, mB, mC, RUNGS[name])
    product.store(product.acc)


@cute.kernel(name="sgemm_v", min_blocks=2)
def staged_v(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, name: cute.Constexpr[str]):
    """Multiply matrices with 16-byte aligned rows, with prefetch of tiles."""
    product = multiply_stages(mA, mB, mC, RUNGS[name], vectors=True)
    product.store(product.acc)


@cute.kernel(name="sgemm_any", min_blocks=2)
def staged_any(mA: cute.Tensor, mB: cute.Tensor, mC: cute.Tensor, name: cute.Constexpr[str]):
    """Multiply matrices that TMA cannot describe."""
    product = multiply_stages(mA, mB, mC, RUNGS[name])
    product.store(product.acc)


# ---------------------------------------------------------------------------------------------------------- rung 8


@cute.kernel(name="sgemm", min_blocks=2)
def pipelined(loads: Any, mC: cute.Tensor, name: cute.Constexpr[str]):
    """Multiply matrices with 16-byte aligned rows: TMA loads tiles, and registers are loaded one step ahead."""
    rung = RUNGS[name]
    bm, bn, _ = rung.tile
    thread, _, _ = cute.arch.thread_idx()
    row, column = utils.GroupedRaster(cute.ceil_div(mC.shape, (bm, bn))).place(cute.arch.block_idx().x)
    product = Product(rung, mC, row, column, thread)
    slots = Slots(loads, rung.tile, rung.stages, row, column)
    multiply_ahead(slots, product.mma, product.acc, thread)
    # Copy the accumulator. A 128-bit store needs four consecutive registers, which would constrain those of the FMAs.
    sums = cute.make_fragment_like(product.acc)
    for i in range(cute.size(sums)):
        sums[i] = product.acc[i] + 0.0
    product.store(sums)


# ------------------------------------------------------------------------------------------------------- launching

ROWS = "(?,?):(?,1)"
VECTORS = "(?,?{div=4}):(?{div=4},1)"


@cute.jit
def launch(
    mA: cute.Tensor[cute.Float32, ROWS], mB: cute.Tensor[cute.Float32, ROWS], mC: cute.Tensor[cute.Float32, ROWS],
    name: cute.Constexpr[str] = "warptile",
):  # fmt: skip
    """Launch one block per tile of C, with vector accesses if the matrices allow it."""
    assert mA.shape[1] == mB.shape[0], "A and B must have the same K"
    assert mA.shape[0] == mC.shape[0], "A and C must have the same M"
    assert mB.shape[1] == mC.shape[1], "B and C must have the same N"
    rung = RUNGS[name]
    (m, n), (bm, bn, bk) = mC.shape, rung.tile
    sizes = {"grid": cute.ceil_div(m, bm) * cute.ceil_div(n, bn), "block": rung.threads}
    vectors = [cute.promise(x, VECTORS, align=16) for x in (mA, mB, mC)]
    if name == "pipelined":
        vA, vB, vC = (x.view for x in vectors)
        pipelined(load_maps(vA, vB, rung.tile), vC, name).launch(
            **sizes, fallback=staged_any(mA, mB, mC, "warptile").on(**{**sizes, "block": RUNGS["warptile"].threads})
        )
    elif bk == 1:
        one_element(mA, mB, mC, name).launch(**sizes)
    elif rung.stages > 1:
        staged_v(*vectors, name).launch(**sizes, fallback=staged(mA, mB, mC, name))
    elif rung.vectors:
        tiled_v(*vectors, name).launch(**sizes, fallback=tiled(mA, mB, mC, name))
    else:
        tiled(mA, mB, mC, name).launch(**sizes)


@printed
def sgemm_text(name: str) -> cute.Compiled:
    """Trace a rung.

    Raises:
        ValueError: if the name is not in :data:`RUNGS`.
    """
    if name not in RUNGS:
        raise ValueError(f"sgemm: there is no rung '{name}'; use one of {', '.join(RUNGS)}")
    matrix: Any = cute.Tensor[cute.Float32, ROWS]
    return cute.trace(launch, matrix, matrix, matrix, name)


# ---------------------------------------------------------------------------------------------------------- pipelined

# The last rung: tiles by TMA, and registers loaded one step ahead of their use.
#
# A block of 128 threads multiplies tiles of 128 x 128, and a thread has 8 x 16 elements of C. It holds two register
# sets of operands: of A 8 rows of four k, of B one k of 16 columns. While the products of one k are accumulated, the
# next operands are loaded from shared memory, with 6 loads of 128 bits for 128 products. Four tiles of A and B are in
# flight. TMA fills out-of-bounds elements with zeros, so that the loop needs neither predicates nor addresses:
#
#     full + s: the bytes of tile ``k`` are in slot ``s = k % stages``
#     sync_threads: all threads are done with the previous tile, whose slot is refilled
#
# Three tiles past the last one are requested; they are zeros and are not multiplied.
#
# The register file bounds the loop. An FMA that finds one operand in the reuse cache reads two registers, which takes
# one cycle only if one is even and one is odd.

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
