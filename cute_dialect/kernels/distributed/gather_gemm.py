"""All-gather and GEMM in one kernel: ``C[r] = A[r] * B^T`` for the shard ``A[r]`` of every rank ``r``.

Each rank pushes its shard to the gather buffers of all peers while it multiplies it, and continues with the shards of
the next ranks.  Three warps of the producer warpgroup push *units*: some columns of a *piece*, which is a number of
rows.  The block that pushes the last unit of a piece signals the piece to all peers.  The producer waits for a piece
before it loads a tile of it by TMA.  The rank's own shard is loaded from where it is.

    launch(Matrices(A, B, C), memory, caller, config)          # A (m, K), B (N, K), C (m, N, ranks)

All blocks of a rank must be resident at once: a block may wait for rows that another block of its peer pushes.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.distributed.exchange import (
    Caller,
    Exchange,
    RankMemory,
    exchange_of,
    exchange_types,
    vector_at,
)
from cute_dialect.kernels.distributed.tile_signals import (
    COUNTERS,
    HELPER_BARRIER,
    HELPERS,
    Call,
    begin,
    end,
    half_of,
    take_roles,
)
from cute_dialect.kernels.epilogue.combination import Addends
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.gemm.block_scaling import Scales
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.epilogue_store import Result
from cute_dialect.kernels.gemm.hopper import Cooperative, Loads, allocate, begin_loads, ring_between
from cute_dialect.kernels.gemm.host import layouts_of, load_map, ring_of, store_map, store_widths
from cute_dialect.kernels.gemm.mainloop import Item, Operand, Place, Products, Tiles
from cute_dialect.lang import hopper, utils
from cute_dialect.lang.values.signature_types import Int

__all__ = [
    "PIECES",
    "VECTOR",
    "Maps",
    "Matrices",
    "RankGemmConfig",
    "RankTiles",
    "gather_gemm_text",
    "launch",
    "mma_of",
    "raster_of",
]

PIECES = 64
"""The largest number of pieces of a shard."""

VECTOR = 8
"""Elements of 16 bytes."""

_TOGETHER = 4
"""Vectors that a thread loads before it stores them."""

Tma: TypeAlias = tuple[cute.CopyAtom, cute.Tensor]
"""A TMA atom and its coordinate tensor."""


class RankGemmConfig(NamedTuple):
    """Configuration of a GEMM of several ranks.

    >>> RankGemmConfig(GemmConfig(tile=(64, 64, 64), cluster_m=1), 4).name
    'gather-r4-f16-kk-64x64x64-s4d-132'
    """

    base: GemmConfig
    ranks: int = 2
    kind: str = "gather"  # or "scatter", "one_shot", "two_shot" (see ``scatter_gemm``)
    slab: int = 64  # vectors of a row of a unit
    vectors: bool = True  # rows of the result, and of the gathered A, consist of whole vectors
    average: bool = False  # divide sums by the number of ranks
    returns_a: bool = False  # store the gathered A, too

    @property
    def name(self) -> str:
        """Unique name of the kernel."""
        c = self.base
        m, n, k = c.tile
        more = f"c{c.cluster_m}" * (c.cluster_m > 1) + "d" * c.deferred + "e" * (not self.vectors)
        more += f"u{self.slab}" * (self.slab != 64)
        more += "m" * self.average + "a" * self.returns_a
        majors = c.major_a + c.major_b
        return f"{self.kind}-r{self.ranks}-{c.element}-{majors}-{m}x{n}x{k}-s{c.stages}{more}-{c.sms}"

    @property
    def shift(self) -> int:
        """The distance from a rank to the rank whose tiles it computes first."""
        return {"gather": 0, "scatter": 1, "two_shot": 1, "one_shot": 0}[self.kind]


class Matrices(NamedTuple):
    """The matrices of a call.

    Attributes:
        a: (m, K), the shard of this rank.
        b: (N, K).
        c: the result, (m, N, ranks).
        gathered: the shards of all ranks, (m, K, ranks), if the configuration has ``returns_a``.
    """

    a: cute.Tensor
    b: cute.Tensor
    c: cute.Tensor
    gathered: cute.Tensor | None = None


class Maps(NamedTuple):
    """Tensor maps, the MMA, and the layouts of the stages in shared memory."""

    a: list[Tma]  # the own shard, then the halves of the gather buffer
    b: Tma
    c: dict[int, Tma | None]
    mma: cute.TiledMma
    rings: tuple[cute.ComposedLayout, cute.ComposedLayout]


class Pieces(NamedTuple):
    """The division of a shard into pieces of ``rows`` rows, a multiple of the rows of a tile."""

    rows: cute.Int32
    shard: cute.Int32  # rows of the shard
    length: cute.Int32  # elements of a row
    pitch: cute.Int32  # elements between rows of the gather buffer

    def layout(self, ranks: int) -> cute.Layout:
        """Return the layout of the gather buffer, (rows, K, ranks)."""
        return cute.make_layout((self.shard, self.length, ranks), stride=(self.pitch, 1, self.shard * self.pitch))


class Box(NamedTuple):
    """Some vectors of some rows of a shard."""

    row: cute.Int32
    rows: cute.Int32
    vector: cute.Int32
    vectors: cute.Int32

    def at(self, i: cute.Int32) -> tuple[cute.Int32, cute.Int32]:
        """Return the row and the column of the i-th vector."""
        return self.row + i // self.vectors, (self.vector + i % self.vectors) * VECTOR


class RankTiles(Tiles):
    """The tiles of all ranks' matrices, from a rank on."""

    def __init__(self, config: RankGemmConfig, raster: utils.GroupedRaster, rank: cute.Int32):
        super().__init__(config.base, raster)
        self.rank, self.config = rank, config

    def place(self, tile: cute.Int32) -> Place:
        """Return the coordinates of this block's part of a cluster's tile."""
        found = super().place(tile)
        if self.config.kind == "one_shot":
            matrix = cute.Int32(0)
        else:
            matrix = (found.matrix + self.rank + self.config.shift) % self.config.ranks
        return Place(found.row, found.column, matrix, (matrix, None, matrix, None))

    def nowhere(self) -> Place:
        """Return placeholder coordinates."""
        zero = cute.Int32(0)
        return Place(zero, zero, zero, (zero, None, zero, None))


class GatheredOperand:
    """The shards of all ranks: the own one where it is, and those of peers in a half of the gather buffer."""

    shared = False

    def __init__(self, own: Operand, halves: list[Operand], call: Call):
        self.own, self.halves, self.call = own, halves, call

    def fetch(self, slot: Int, barrier: cute.Pointer, row: cute.Int32, k: cute.Int32, matrix: cute.Int32) -> None:
        """Issue the load of tile (row, k) of a rank's shard to a slot."""
        if matrix == self.call.x.staging.rank:
            self.own.fetch(slot, barrier, row, k, None)
        elif self.call.half == 0:
            self.halves[0].fetch(slot, barrier, row, k, matrix)
        else:
            self.halves[1].fetch(slot, barrier, row, k, matrix)


class GatherLoads(Loads):
    """Producer that waits for the pieces of peers."""

    def wait_for(self, call: Call, pieces: Pieces) -> "GatherLoads":
        """Set what to wait for."""
        self.call, self.pieces = call, pieces
        return self

    def whole(self, first: cute.Int32, done: Int) -> None:
        """Load all tiles of this block from ``first`` on."""
        is_usable = self.call.is_usable
        for tile in range(first, self.tiles.count(), self.tiles.step):
            place = self.tiles.place(tile)
            row = place.row * self.c.tile[0]
            if is_usable & (place.matrix != self.call.x.staging.rank) & (row < self.pieces.shard):
                is_usable = self.call.wait(row // self.pieces.rows, place.matrix, then="tma")
            for i in range(self.k_tiles):
                self.stage(i, place)


class Units:
    """The units of a shard: some columns of a piece. Blocks take them in turn."""

    def __init__(self, p: Pieces, slab: int):
        self.p, self.slab = p, slab
        # The elements after the last whole vector are a unit of their own.
        self.vectors, self.rest = p.length // VECTOR, p.length % VECTOR
        self.slabs = cute.ceil_div(self.vectors, slab)
        self.of_piece = self.slabs + (self.rest != 0).to(cute.Int32)
        self.count = cute.ceil_div(p.shard, p.rows) * self.of_piece

    def copy(self, unit: cute.Int32, vectors: Callable[[Box], None], element: Callable[..., None]) -> None:
        """Copy a unit in all helpers: by ``vectors(box)``, or by ``element(row, column)``."""
        piece, part = unit // self.of_piece, unit % self.of_piece
        first = piece * self.p.rows
        rows = cute.min(self.p.rows, self.p.shard - first)
        if part < self.slabs:
            vectors(Box(first, rows, part * self.slab, cute.min(self.slab, self.vectors - part * self.slab)))
        else:
            for i in range(cute.arch.thread_idx().x - 32, rows * self.rest, HELPERS):
                element(first + i // self.rest, self.vectors * VECTOR + i % self.rest)


def push(A: cute.Tensor, p: Pieces, call: Call, config: RankGemmConfig) -> None:
    """Store the shard into the gather buffers of all peers, unit by unit, in the helpers of all blocks."""
    x, n, layout, units = call.x, config.ranks, p.layout(config.ranks), Units(p, config.slab)
    me = x.staging.rank

    def element(row: cute.Int32, k: cute.Int32) -> None:
        for distance in range(1, n):
            there = half_of(x.staging.peer((me + distance) % n), call.half, layout)
            there[row, k, me] = A[row, k]

    for unit in range(cute.arch.block_idx().x, units.count, cute.arch.grid_dim().x):
        units.copy(unit, lambda box: _push_vectors(A, box, layout, call), element)
        cute.arch.barrier(HELPER_BARRIER, HELPERS)
        if cute.arch.thread_idx().x == 32:
            piece = unit // units.of_piece
            counter = x.steps.iterator + (COUNTERS + piece)
            done = cute.arch.atomic_add(counter, cute.Int64(1), sem="acq_rel", scope="gpu")
            if done == units.of_piece - 1:
                x.steps[COUNTERS + piece] = 0
                for distance in range(1, n):
                    call.send((me + distance) % n, piece)


def _push_vectors(A: cute.Tensor, box: Box, layout: cute.Layout, call: Call) -> None:
    """Store vectors of the shard into the gather buffers of all peers."""
    x, me, ranks, count = call.x, call.x.staging.rank, call.x.staging.ranks, box.rows * box.vectors
    for start in range(cute.arch.thread_idx().x - 32, count, HELPERS * _TOGETHER):
        held = [cute.make_rmem_tensor(VECTOR, A.element_type) for _ in range(_TOGETHER)]
        for i in cute.range_constexpr(_TOGETHER):
            held[i].fill(0)
            if start + i * HELPERS < count:
                at = box.at(start + i * HELPERS)
                cute.autovec_copy(vector_at(A, cute.crd2idx(at, A.layout), VECTOR), held[i])
        for distance in range(1, ranks):  # not unrolled, for lack of registers
            there = half_of(x.staging.peer((me + distance) % ranks), call.half, layout)
            for i in cute.range_constexpr(_TOGETHER):
                if start + i * HELPERS < count:
                    at = box.at(start + i * HELPERS)
                    cute.autovec_copy(held[i], vector_at(there, cute.crd2idx((*at, me), layout), VECTOR))


def collect(A: cute.Tensor, gathered: cute.Tensor, p: Pieces, call: Call, config: RankGemmConfig) -> None:
    """Copy the shards of all ranks to the gathered A, in the helpers of all blocks."""
    n, me, units = config.ranks, call.x.staging.rank, Units(p, config.slab)
    buffer = half_of(call.x.staging.local, call.half, p.layout(n))
    is_usable = call.is_usable
    for distance in range(n):
        owner = (me + distance) % n
        there = gathered[None, None, owner]
        for unit in range(cute.arch.block_idx().x, units.count, cute.arch.grid_dim().x):
            if is_usable & (distance > 0):
                is_usable = call.wait_for(unit // units.of_piece, owner)
            if is_usable:
                if distance == 0:
                    _collect_unit(units, unit, A, there, config)
                else:
                    _collect_unit(units, unit, buffer[None, None, owner], there, config)


def _collect_unit(
    units: Units, unit: cute.Int32, source: cute.Tensor, target: cute.Tensor, config: RankGemmConfig
) -> None:
    """Copy a unit of a shard to the gathered A."""

    def element(row: cute.Int32, k: cute.Int32) -> None:
        target[row, k] = source[row, k]

    def vectors(box: Box) -> None:
        for i in range(cute.arch.thread_idx().x - 32, box.rows * box.vectors, HELPERS):
            row, k = box.at(i)
            if config.vectors:
                held = cute.make_rmem_tensor(VECTOR, source.element_type)
                cute.autovec_copy(vector_at(source, cute.crd2idx((row, k), source.layout), VECTOR), held)
                cute.autovec_copy(held, vector_at(target, cute.crd2idx((row, k), target.layout), VECTOR))
            else:
                for e in cute.range_constexpr(VECTOR):
                    target[row, k + e] = source[row, k + e]

    units.copy(unit, vectors, element)


@cute.kernel(name="gather_gemm", min_blocks=1)
def gather_gemm(
    maps: Maps,
    raster: utils.GroupedRaster,
    pieces: Pieces,
    t: Matrices,
    x: Exchange,
    config: cute.Constexpr[RankGemmConfig],
):
    c = config.base
    m, n, k = c.tile
    k_tiles = cute.ceil_div(pieces.length, k)
    call = begin(x)
    tiles = RankTiles(config, raster, x.staging.rank)
    sA, sB, staging = allocate(c, (maps.a[0][0], maps.b[0]), maps.rings)
    _, of_b = tiles.sharers()
    own, *halves = [Operand(tma, sA, (m, k), 1, tiles.column, batch=i > 0) for i, tma in enumerate(maps.a)]
    b = Operand(maps.b, sB, (n, k), c.cluster_m, tiles.row, k_major=c.major_b == "k", mask=of_b)
    producer, consumer = ring_between(c)
    loads = GatherLoads(c, GatheredOperand(own, halves, call), b, producer, tiles, k_tiles).wait_for(call, pieces)
    begin_loads(c, loads, Item(tiles.first, 0, k_tiles))

    def consume(group: cute.Int32) -> None:
        products = Products(c, maps.mma, sA, sB, group * 128, Scales())
        fused, target = Fused(c.epilogue, Addends(), batch=True), t.c if c.direct else None
        result = Result(c, maps.c, staging, products.sums, group, fused, target)
        Cooperative(c, consumer, products, result, tiles, k_tiles).whole(tiles.first)

    def communicate() -> None:
        call.begin_helpers()
        if call.is_usable:
            push(t.a, pieces, call, config)
        if t.gathered is not None:
            collect(t.a, t.gathered, pieces, call, config)

    take_roles(c, lambda: loads.whole(tiles.first, 0), consume, communicate)
    end(call, c.threads)


def mma_of(c: GemmConfig, a: cute.Tensor, b: cute.Tensor) -> cute.TiledMma:
    """Return the MMA of a configuration, for K-major ``a``."""
    shape = (64, c.tile[1])
    return hopper.make_trivial_tiled_mma(
        a.element_type, b.element_type, "k", hopper.major(b), number(c.sums), (c.sharers, 1, 1), shape
    )


def raster_of(c: GemmConfig, rows: Int, columns: Int, matrices: Int) -> utils.GroupedRaster:
    """Return the order of the tiles of some matrices."""
    m, n, _ = c.tile
    tiles = cute.ceil_div((rows, columns), (m * c.cluster_m, n))
    return utils.GroupedRaster(
        tiles, c.group, serpentine=c.serpentine, cluster=c.cluster, sms=c.at_once, matrices=matrices
    )


@cute.jit
def launch(t: Matrices, memory: RankMemory, caller: Caller, config: cute.Constexpr[RankGemmConfig]):
    """Launch the kernel.

    Args:
        t: the matrices.
        memory: memory of this rank; half of its staging memory holds the shards of all ranks.
        caller: the rank and its call.
    """
    c, ranks = config.base, config.ranks
    rows, length = t.a.shape
    m, n, k = c.tile
    pitch = cute.assume(cute.ceil_div(length, VECTOR) * VECTOR, divby=VECTOR)
    assert rows * pitch * ranks <= memory.staging.shape[1], "the shards do not fit half of the staging memory"
    pieces = Pieces(cute.ceil_div(cute.ceil_div(rows, m), PIECES) * m, rows, length, pitch)
    halves = [half_of(memory.staging, i, pieces.layout(ranks)) for i in range(2)]
    single = c._replace(batch=False)
    maps = Maps(
        [load_map(single, t.a, (m, k), 1), *[load_map(c, half, (m, k), 1) for half in halves]],
        load_map(single, t.b, (n, k), c.cluster_m),
        {width: None if c.direct else store_map(c, t.c, width) for width in store_widths(c)},
        mma_of(c, t.a, t.b),
        (ring_of(t.a, (m, k), c), ring_of(t.b, (n, k), c)),
    )
    raster = raster_of(c, rows, t.b.shape[0], ranks)
    gather_gemm(maps, raster, pieces, t, exchange_of(memory, caller, ranks), config).launch(
        grid=raster.persistent_grid(), block=c.threads, cluster=(c.cluster, 1, 1)
    )


@printed
def gather_gemm_text(config: RankGemmConfig) -> cute.Compiled:
    """Trace the kernel ``@gather_gemm``, and its host function ``@launch``."""
    c = config.base
    c.check()
    a, b, _ = layouts_of(c._replace(batch=False))
    element, whole = number(c.element), "align<16>"
    of_c, of_a = layouts_of(c)[2], "(?,?,?):(?{div=8},1,?{div=8})" if config.vectors else "(?,?,?):(?,1,?)"
    gathered = cute.Tensor[element, of_a, whole if config.vectors else "align<2>"]
    t = Matrices(
        cute.Tensor[element, a, whole],
        cute.Tensor[element, b, whole],
        cute.Tensor[number(c.output), of_c, "align<2>" if c.direct else whole],
        gathered if config.returns_a else None,
    )
    return cute.trace(launch, t, *exchange_types(element, config.ranks), config=config)
