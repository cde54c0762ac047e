"""What a Hopper GEMM is made of: operands that TMA brings, their products in registers, and results that leave by TMA.

Each is written in the language, and knows its own registers and shared memory; :mod:`cute_dialect.kernels.gemm.hopper`
puts them together.
"""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.config import EVICT_FIRST, GemmConfig
from cute_dialect.kernels.gemm.epilogue import Fused
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup

__all__ = ["ChunkStore", "Item", "Operand", "Place", "Products", "Result", "Shared", "Tiles"]


class Place(NamedTuple):
    """Where a block's tile lies: its row and column, in tiles of a block, and its matrix, of a batch."""

    row: Any
    column: Any
    matrix: Any = None


class Item(NamedTuple):
    """What of a cluster's tile a block multiplies: ``steps`` stages of K from ``k`` on."""

    tile: Any
    k: Any
    steps: Any


class Shared(NamedTuple):
    """What blocks share that add up sums: a workspace of f32, and flags or counters of i32."""

    workspace: Any = None
    flags: Any = None


class Tiles:
    """The tiles of all blocks, in the order in which clusters take them, and this block's place in its cluster."""

    def __init__(self, c: GemmConfig, raster: utils.GroupedRaster):
        self.c, self.raster = c, raster
        self.rank = cute.arch.block_idx_in_cluster() if c.cluster > 1 else 0
        self.first, self.step = (x.x // c.cluster for x in (cute.arch.block_idx(), cute.arch.grid_dim()))

    def count(self) -> Any:
        """Return how many there are, of a cluster each."""
        return self.raster.count()

    def place(self, tile: Any) -> Place:
        """Return this block's part of a cluster's tile."""
        row, column, *matrix = self.raster.place(tile)
        if self.c.cluster_m > 1:
            row = row * self.c.cluster_m + self.rank
        if self.c.cluster_n > 1:
            column = column * self.c.cluster_n + self.rank
        return Place(row, column, *matrix)


class Operand:
    """What TMA brings of A or B to its stages in shared memory.

    ``tma``: atom and coordinates; ``smem``: (rows, K, stages); ``tile``: (rows, K); of ``blocks`` of a cluster each
    brings its part for all; ``first_out``: of the L2.  Of a batch there may be one matrix for all.
    """

    def __init__(self, tma: Any, smem: Any, tile: tuple[int, int], blocks: int, rank: Any, *, first_out: bool = False):
        self.atom, coords = tma
        self.shared = blocks > 1
        self.mask = (1 << blocks) - 1 if self.shared else None
        self.policy = EVICT_FIRST if first_out else None
        self.matrices: Any = coords.shape[2] if cute.rank(coords) == 3 else None
        self.slots, self.tiles = cpasync.tma_partition(
            self.atom, rank, cute.make_layout(blocks), cute.group_modes(smem, 0, 2),
            cute.group_modes(cute.flat_divide(coords, tile), 0, 2),
        )  # fmt: skip

    def fetch(self, slot: Any, barrier: Any, row: Any, k: Any, matrix: Any) -> None:
        """Fetch tile (row, k), this block's part of it, into a slot."""
        where = (None, row, k)
        if matrix is not None:  # the last one stands for those that follow: one may be for all of a batch
            where = (*where, cute.min(matrix, self.matrices - 1))
        cute.copy(
            self.atom, self.tiles[where], self.slots[None, slot], tma_bar_ptr=barrier, mcast_mask=self.mask,
            cache_policy=self.policy,
        )  # fmt: skip


class Products:
    """The sums of a warp group: products of its rows of A with all of B, which ``wgmma`` reads from shared memory."""

    def __init__(self, c: GemmConfig, mma: cute.TiledMma, sA: Any, sB: Any, thread: Any):
        self.promote, self.mma = c.promote, mma
        part = mma.get_slice(thread)
        rA, rB = mma.make_fragment_A(part.partition_A(sA)), mma.make_fragment_B(part.partition_B(sB))
        shape = mma.partition_shape_C(c.tile[:2])
        acc = mma.make_fragment_C(shape)
        sums = mma.make_fragment_C(shape) if c.promote else acc
        self.rA, self.rB, self.acc, self.sums = rA, rB, acc, sums

    def begin(self, slot: Any, *, accumulate: bool) -> None:
        """Begin the products of one stage."""
        warpgroup.fence()
        at = (None, None, None, slot.index)
        cute.gemm(self.mma, self.acc, self.rA[at], self.rB[at], accumulate=accumulate)
        warpgroup.commit_group()

    def go_on(self, consumer: Any, slot: Any, steps: range) -> Any:
        """Multiply some stages, each while the one before it (``slot``) completes; returns the last one's slot."""
        for _ in steps:
            following = consumer.wait_and_advance()
            self.begin(following, accumulate=True)
            warpgroup.wait_group(1)
            slot.release()
            slot = following
        return slot

    def end(self, slot: Any) -> None:
        """Wait for the products of the last stage."""
        warpgroup.wait_group(0, self.acc)
        slot.release()

    def of_tile(self, consumer: Any, k_tiles: Any) -> None:
        """Multiply all of a tile."""
        if self.promote:
            self._in_two_levels(consumer, k_tiles)
        else:
            slot = consumer.wait_and_advance()
            self.begin(slot, accumulate=False)
            self.end(self.go_on(consumer, slot, range(1, k_tiles)))

    def _in_two_levels(self, consumer: Any, k_tiles: Any) -> None:
        """Add up the products of one stage in the tensor cores, those of all stages in registers."""
        self.sums.fill(0.0)
        for _ in range(k_tiles):
            slot = consumer.wait_and_advance()
            self.begin(slot, accumulate=False)
            self.end(slot)
            for i in range(cute.size(self.acc)):  # registers: the passes unroll it
                self.sums[i] = self.sums[i] + self.acc[i]


class ChunkStore:
    """A warp's way to C: 16 rows of some columns (a *chunk*) go from registers through shared memory, by TMA."""

    def __init__(self, tma: Any, chunk: int):
        self.atom, coords = tma
        self.lane, self.gC = cute.arch.lane_idx(), cute.flat_divide(coords, (16, chunk))
        wide = self.atom.value_type is cute.Float32
        store = cute.nvgpu.CopyUniversalOp() if wide else cute.nvgpu.warp.StMatrix8x8x16bOp(False, 4)
        # A warp's part of an accumulator: 16 rows of a chunk.
        thread_values = cute.make_layout(((4, 8), (2, 2, chunk // 8)), stride=((32, 1), (16, 8, 128)))
        self.copy = cute.make_tiled_copy(
            cute.make_copy_atom(store, self.atom.value_type), thread_values, (16, chunk)
        ).get_slice(self.lane)
        self.values = cute.make_layout(((2, 2, chunk // 8), 1, 1), stride=((1, 2, 4), 0, 0))

    def registers(self, values: Any, first: int) -> Any:
        """Return the registers of a chunk, from the given one on."""
        return cute.make_tensor(values.iterator + first, self.values)

    def store(self, values: Any, here: Any, there: Any) -> None:
        """Store the registers of a chunk through a buffer; ``there()``: where, in 16 rows, chunks and matrices."""
        cute.copy(self.copy, self.copy.retile(values), self.copy.partition_D(here))
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        if self.lane == 0:
            source, target = cpasync.tma_partition(
                self.atom, 0, cute.make_layout(1), cute.group_modes(here, 0, 2),
                cute.group_modes(self.gC[(None, None, *there())], 0, 2),
            )  # fmt: skip
            cute.copy(self.atom, source, target)
            cute.arch.cp_async_bulk_commit_group()

    def wait(self, under_way: int) -> None:
        """Wait until at most so many stores have not read their buffers."""
        if self.lane == 0:
            cute.arch.cp_async_bulk_wait_group(under_way, read=True)


class Result:
    """The rows of a warp group on their way to C: epilogue, conversion, shared memory, TMA.

    128 bytes of columns (a *chunk*) at a time go through two buffers; a warp stores 16 rows.  ``buffers``: those
    of all warp groups, (16, chunk, 8 each); ``group``: which this is.
    """

    def __init__(self, c: GemmConfig, tma: Any, buffers: Any, sums: Any, group: Any, fused: Fused):
        self.c, self.buffers, self.sums, self.fused = c, buffers, sums, fused
        self.kind = tma[0].value_type
        self.chunk, self.chunks, self.group = c.chunk, c.tile[1] // c.chunk, group
        self.atoms = c.tile[0] // 64 if c.schedule == "pingpong" else 1  # instructions for the rows of a warp group
        self.warp, self.by_tma = cute.arch.warp_idx() % 4, ChunkStore(tma, c.chunk)
        self.wide = self.kind is cute.Float32
        self.out = sums if self.wide else cute.make_rmem_tensor_like(sums, self.kind)

    def row(self, place: Place, atom: int) -> Any:
        """Return the first of this warp's 16 rows, counted in 16 rows."""
        first = atom * 4 if self.c.schedule == "pingpong" else self.group * 4
        return place.row * (self.c.tile[0] // 16) + first + self.warp

    def registers(self, values: Any, atom: int, chunk: int) -> Any:
        """Return the registers of a chunk."""
        return self.by_tma.registers(values, self.c.tile[1] // 2 * atom + self.chunk // 2 * chunk)

    def fuse(self, values: Any, columns: int, place: Place, atom: int, chunk: int) -> None:
        """Apply the epilogue to some columns from a chunk on."""
        if self.c.epilogue.active:
            column = place.column * self.c.tile[1] + chunk * self.chunk
            self.fused.apply(values, columns, self.row(place, atom) * 16, column, place.matrix)

    def convert(self, place: Place) -> None:
        """Apply the epilogue to a tile's sums, and round them to elements of C; f32 stay, until they are stored."""
        if self.wide:
            return
        for atom in cute.range_constexpr(self.atoms):
            of_atom = cute.make_tensor(
                self.registers(self.sums, atom, 0).iterator, cute.make_layout(self.c.tile[1] // 2)
            )
            self.fuse(of_atom, self.c.tile[1], place, atom, 0)
            for chunk in cute.range_constexpr(self.chunks):
                sums, out = (self.registers(x, atom, chunk) for x in (self.sums, self.out))
                out.store(sums.load().to(self.kind))

    def store(self, place: Place, chunks: range | None = None) -> None:
        """Store a tile, or some of its chunks."""
        which = range(self.chunks) if chunks is None else chunks
        for atom in cute.range_constexpr(self.atoms):
            for chunk in cute.range_constexpr(which.start, which.stop):
                values = self.registers(self.out, atom, chunk)
                if self.wide:  # no sooner: what an epilogue loads would need registers
                    self.fuse(values, self.chunk, place, atom, chunk)
                # With an odd number of chunks the last one of a tile has used the buffer of the first.
                under_way = 0 if chunk == 0 and self.chunks % 2 else 1
                self.store_chunk(values, chunk % 2, chunk, place, atom, under_way=under_way)

    def store_chunk(
        self, values: Any, buffer: int, chunk: Any, place: Place, atom: int = 0, *, under_way: int = 1
    ) -> None:
        """Store the registers of a chunk, once at most ``under_way`` stores have not read their buffers."""

        def there() -> Any:
            at = (self.row(place, atom), place.column * self.chunks + chunk)
            return at if place.matrix is None else (*at, place.matrix)

        self.by_tma.wait(under_way)
        cute.arch.sync_warp()
        self.by_tma.store(values, self.buffers[None, None, self.group * 8 + buffer * 4 + self.warp], there)

    def finish(self) -> None:
        """Wait until the stores have read their buffers."""
        self.by_tma.wait(0)
