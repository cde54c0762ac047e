"""GEMM whose partial results are added over ranks, in one kernel: reduce-scatter and all-reduce.

Each rank has a part of K.  Consumers store the tiles of a partial result, rounded to the type of the result, into the
staging memory of the ranks that add them, and signal each tile.  Three warps of the producer warpgroup wait for a tile
of all ranks, add it in f32 in the order of the ranks, and store the sum.

- ``scatter``: rank r adds and keeps rows r m .. (r + 1) m.  Tiles of the next rank come first, the own ones last.
- ``two_shot``: the same, and rank r stores its sums into the staging memory of all ranks, which copy them.
- ``one_shot``: tiles are sent to all ranks, which all add them.

    launch(Matrices(A, B, C), memory, caller, config)      # A (m, K, matrices), B (N, K), C (m, N, matrices)

There are ``ranks`` matrices of m rows; one for ``one_shot``.  C has one matrix for ``scatter``.  All blocks of a rank
must be resident at once: a block may wait for a tile that another block of its peer multiplies.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

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
from cute_dialect.kernels.distributed.gather_gemm import (
    VECTOR,
    Maps,
    Matrices,
    RankGemmConfig,
    RankTiles,
    mma_of,
    raster_of,
)
from cute_dialect.kernels.distributed.tile_signals import (
    CONSUMER_BARRIER,
    HELPER_BARRIER,
    HELPERS,
    Call,
    begin,
    end,
    half_of,
    take_roles,
)
from cute_dialect.kernels.epilogue.combination import Addends
from cute_dialect.kernels.epilogue.emit import Ahead, Fused
from cute_dialect.kernels.gemm.block_scaling import Scales
from cute_dialect.kernels.gemm.epilogue_store import Result, RowStore
from cute_dialect.kernels.gemm.hopper import Cooperative, Loads, allocate, begin_loads, ring_between
from cute_dialect.kernels.gemm.host import layouts_of, load_map, ring_of, store_widths
from cute_dialect.kernels.gemm.mainloop import Item, Operand, Place, Products
from cute_dialect.lang import utils
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.signature_types import Int

__all__ = ["launch", "scatter_gemm_text"]


_TOGETHER = 4
"""Vectors that a thread loads before it adds them."""


class Element(NamedTuple):
    """The type of the result, in place of a TMA atom."""

    value_type: type[Numeric]


class Sizes(NamedTuple):
    """Sizes of a call: rows of a matrix, columns, and the distance of rows in staging memory."""

    rows: cute.Int32
    columns: cute.Int32
    pitch: cute.Int32


class Partials:
    """The staging memory of a call: partial tiles of all ranks, then sums of all ranks (two-shot)."""

    def __init__(self, call: Call, sizes: Sizes, config: RankGemmConfig):
        self.call, self.sizes, self.config = call, sizes, config
        self.tile_columns = cute.ceil_div(sizes.columns, config.base.tile[1])
        rows, columns, pitch = sizes
        groups = (config.ranks, 2) if config.kind == "two_shot" else (config.ranks,)
        step = rows * pitch
        steps = (step, step * config.ranks)[: len(groups)]
        self.layout = cute.make_layout((rows, columns, *groups), stride=(pitch, 1, *steps))

    def of(self, rank: Int, writer: Int, *, sums: bool = False) -> cute.Tensor:
        """Return the matrix of a writer in the staging memory of a rank."""
        whole = half_of(self.call.x.staging.peer(rank), self.call.half, self.layout)
        return whole[None, None, writer, int(sums)] if self.config.kind == "two_shot" else whole[None, None, writer]

    def slot(self, place: Place, *, sums: bool = False) -> cute.Int32:
        """Return the signal of a tile."""
        tile = place.row * self.tile_columns + place.column
        return 2 * tile + int(sums) if self.config.kind == "two_shot" else tile

    def exists(self, place: Place) -> cute.Boolean:
        """Return True if the tile has elements. In a cluster the last one may have none."""
        return place.row * self.config.base.tile[0] < self.sizes.rows

    def for_receivers(self, place: Place, do: Callable[[Int], None]) -> None:
        """Call ``do(rank)`` for the ranks that add a tile."""
        if self.config.kind == "one_shot":
            for distance in range(self.config.ranks):
                do((self.call.x.staging.rank + distance) % self.config.ranks)
        else:
            do(place.matrix)

    def for_others(self, do: Callable[[Int], None]) -> None:
        """Call ``do(rank)`` for the other ranks, from the next one on."""
        for distance in range(1, self.config.ranks):
            do((self.call.x.staging.rank + distance) % self.config.ranks)


class SentResult(Result):
    """Epilogue that stores a tile to the staging memory of the ranks that sum it."""

    partials: Partials

    def put(
        self, values: cute.Tensor, buffer: int, width: int, place: Place, atom: int, column: Int, under_way: int
    ) -> None:
        """Store the registers of a chunk, through the staging buffer whose turn it is."""
        at, slot = self.at(place, atom, column), self.group * self.c.buffers + buffer
        store = self.stores[width]
        assert isinstance(store, RowStore)
        store.put(values, slot, at, under_way, partial(self._send, place, at))

    def _send(self, place: Place, at: tuple[cute.Int32, ...], store: RowStore, here: cute.Tensor) -> None:
        """Store a warp's 16 rows of a chunk into the staging memory of its receivers."""
        p, units, lane = self.partials, store.chunk // VECTOR, cute.arch.lane_idx()
        row, column = at[0] + self.lanes.of_warp(cute.arch.warp_idx() % 4), at[1]
        kind = here.element_type
        copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=128)
        held = cute.make_rmem_tensor(VECTOR, kind)
        if p.call.is_usable:
            for i in cute.range_constexpr(16 * units // 32):
                line, unit = (lane + 32 * i) // units, (lane + 32 * i) % units
                there = row + line, column + unit * VECTOR
                if (there[0] < p.sizes.rows) & (there[1] < p.sizes.columns):
                    vectors = cute.flat_divide(here[line, None], (VECTOR,))
                    cute.copy(copy, vectors[None, unit], held)
                    p.for_receivers(place, partial(self._put, held, there))

    def _put(self, held: cute.Tensor, there: tuple[cute.Int32, cute.Int32], rank: Int) -> None:
        """Store a vector into the staging memory of a rank."""
        _put_vector(held, self.partials.of(rank, self.partials.call.x.staging.rank), *there)

    def store(self, place: Place, half: int | None = None, ahead: Ahead | None = None) -> None:
        """Store a tile, or its first (0) or second (1) half, and signal it."""
        super().store(place, half, ahead)
        p = self.partials
        if half != 0:
            cute.arch.barrier(CONSUMER_BARRIER, 128 * self.c.sharers)
            if (cute.arch.thread_idx().x == 128) & p.call.is_usable & p.exists(place):
                p.for_receivers(place, lambda rank: p.call.send(rank, p.slot(place)))


def add(C: cute.Tensor, tiles: RankTiles, partials: Partials) -> None:
    """Add the tiles of all ranks and store the results, in the helpers of all blocks."""
    p, config, call = partials, partials.config, partials.call
    me = call.x.staging.rank
    own = cute.Int32(0) if config.kind == "one_shot" else me
    count = tiles.count() if config.kind == "one_shot" else tiles.count() // config.ranks
    is_usable = call.is_usable
    call.begin_helpers()
    for tile in range(tiles.first, count, tiles.step):
        place = tiles.place(tile)._replace(matrix=own)
        if is_usable & p.exists(place):
            is_usable = call.wait_for_all(p.slot(place))
            if is_usable:
                matrix = cute.Int32(0) if config.kind == "scatter" else own
                _sum(C[None, None, matrix], place, p)
                if config.kind == "two_shot":
                    cute.arch.barrier(HELPER_BARRIER, HELPERS)
                    if cute.arch.thread_idx().x == 32:
                        p.for_others(lambda rank, place=place: call.send(rank, p.slot(place, sums=True)))
    if config.kind == "two_shot":
        for distance in range(1, config.ranks):
            owner = (me + distance) % config.ranks
            for tile in range(tiles.first, count, tiles.step):
                place = tiles.place(tile)._replace(matrix=owner)
                if is_usable & p.exists(place):
                    is_usable = call.wait_for(p.slot(place, sums=True), owner)
                    if is_usable:
                        _copy(p.of(me, owner, sums=True), C[None, None, owner], place, p)


def _get_vector(t: cute.Tensor, row: Int, column: Int) -> cute.Tensor:
    """Load a vector of a matrix."""
    held = cute.make_rmem_tensor(VECTOR, t.element_type)
    cute.autovec_copy(vector_at(t, cute.crd2idx((row, column), t.layout), VECTOR), held)
    return held


def _put_vector(held: cute.Tensor, t: cute.Tensor, row: Int, column: Int) -> None:
    """Store a vector of a matrix."""
    cute.autovec_copy(held, vector_at(t, cute.crd2idx((row, column), t.layout), VECTOR))


def _vectors(place: Place, p: Partials, do: Callable[[Int, Int], None]) -> None:
    """Call ``do(row, column)`` for each vector of a tile, in the idle warps of the producer warpgroup."""
    m, n, _ = p.config.base.tile
    units = n // VECTOR
    for i in range(cute.arch.thread_idx().x - 32, m * units, HELPERS):
        row, column = place.row * m + i // units, place.column * n + i % units * VECTOR
        if (row < p.sizes.rows) & (column < p.sizes.columns):
            do(row, column)


def _sum(C: cute.Tensor, place: Place, p: Partials) -> None:
    """Add a tile of all ranks in their order, and store the sum."""
    me, ranks = p.call.x.staging.rank, p.config.ranks

    def add_vector(row: Int, column: Int) -> None:
        total = cute.full(VECTOR, 0.0, cute.Float32)
        for first in cute.range_constexpr(0, ranks, _TOGETHER):
            several = range(first, min(first + _TOGETHER, ranks))
            held = [_get_vector(p.of(me, rank), row, column) for rank in several]
            for vector in held:
                wide = vector.load().to(cute.Float32)
                total = total + wide if first or vector is not held[0] else wide
        found = cute.make_rmem_tensor(VECTOR, C.element_type)
        found.store((total * (1.0 / ranks) if p.config.average else total).to(C.element_type))
        _put(found, C, row, column, p)
        if p.config.kind == "two_shot":
            p.for_others(lambda rank: _put_vector(found, p.of(rank, me, sums=True), row, column))

    _vectors(place, p, add_vector)


def _copy(source: cute.Tensor, C: cute.Tensor, place: Place, p: Partials) -> None:
    """Copy a tile of sums."""

    def copy_vector(row: Int, column: Int) -> None:
        _put(_get_vector(source, row, column), C, row, column, p)

    _vectors(place, p, copy_vector)


def _put(held: cute.Tensor, C: cute.Tensor, row: Int, column: Int, p: Partials) -> None:
    """Store the elements of a vector that exist."""
    if p.config.vectors:
        _put_vector(held, C, row, column)
    else:
        for i in cute.range_constexpr(VECTOR):
            if column + i < p.sizes.columns:
                C[row, column + i] = held[i]


@cute.kernel(name="scatter_gemm", min_blocks=1)
def scatter_gemm(
    maps: Maps,
    raster: utils.GroupedRaster,
    k_tiles: cute.Int32,
    sizes: Sizes,
    C: cute.Tensor,
    x: Exchange,
    config: cute.Constexpr[RankGemmConfig],
):
    c = config.base
    m, n, k = c.tile
    call = begin(x)
    tiles, partials = RankTiles(config, raster, x.staging.rank), Partials(call, sizes, config)
    sA, sB, staging = allocate(c, (maps.a[0][0], maps.b[0]), maps.rings)
    _, of_b = tiles.sharers()
    a = Operand(maps.a[0], sA, (m, k), 1, tiles.column, batch=True)
    b = Operand(maps.b, sB, (n, k), c.cluster_m, tiles.row, k_major=c.major_b == "k", mask=of_b)
    producer, consumer = ring_between(c)
    loads = Loads(c, a, b, producer, tiles, k_tiles)
    begin_loads(c, loads, Item(tiles.first, 0, k_tiles))

    def consume(group: cute.Int32) -> None:
        products = Products(c, maps.mma, sA, sB, group * 128, Scales())
        kinds = {width: (Element(number(c.output)), None) for width in store_widths(c)}
        fused = Fused(c.epilogue, Addends(), batch=True)
        result = SentResult(c, kinds, staging, products.sums, group, fused)
        result.partials = partials
        Cooperative(c, consumer, products, result, tiles, k_tiles).whole(tiles.first)

    take_roles(c, lambda: loads.whole(tiles.first, cute.Int32(0)), consume, lambda: add(C, tiles, partials))
    end(call, c.threads)


@cute.jit
def launch(t: Matrices, memory: RankMemory, caller: Caller, config: cute.Constexpr[RankGemmConfig]):
    """Launch the kernel.

    Args:
        t: A (m, K, matrices), the rows of all matrices for this rank's part of K; B (N, K); the result.
        memory: memory of this rank; half of its staging memory holds the partial results of all ranks.
        caller: the rank and its call.
    """
    c, ranks = config.base, config.ranks
    rows, length, matrices = t.a.shape
    columns = t.b.shape[0]
    m, n, k = c.tile
    pitch = cute.assume(cute.ceil_div(columns, VECTOR) * VECTOR, divby=VECTOR)
    held = ranks * (2 if config.kind == "two_shot" else 1)
    assert rows * pitch * held <= memory.staging.shape[1], "the partial results do not fit half of the staging memory"
    maps = Maps(
        [load_map(c, t.a, (m, k), 1)],
        load_map(c._replace(batch=False), t.b, (n, k), c.cluster_m),
        {},
        mma_of(c, t.a, t.b),
        (ring_of(t.a, (m, k), c), ring_of(t.b, (n, k), c)),
    )
    raster = raster_of(c, rows, columns, matrices)
    x, sizes = exchange_of(memory, caller, ranks), Sizes(rows, columns, pitch)
    scatter_gemm(maps, raster, cute.ceil_div(length, k), sizes, t.c, x, config).launch(
        grid=raster.persistent_grid(), block=c.threads, cluster=(c.cluster, 1, 1)
    )


@printed
def scatter_gemm_text(config: RankGemmConfig) -> cute.Compiled:
    """Trace the kernel ``@scatter_gemm``, and its host function ``@launch``."""
    c = config.base
    c.check()
    a, b = layouts_of(c)[0], layouts_of(c._replace(batch=False))[1]
    element, whole = number(c.element), "align<16>"
    of_c = (layouts_of(c)[2], whole) if config.vectors else ("(?,?,?):(?,1,?)", "align<2>")
    t = Matrices(cute.Tensor[element, a, whole], cute.Tensor[element, b, whole], cute.Tensor[number(c.output), *of_c])
    return cute.trace(launch, t, *exchange_types(element, config.ranks), config=config)
