"""What a Hopper GEMM is made of: operands that TMA brings, and their products in registers.

Each is written in the language, and knows its own registers and shared memory; results are
:mod:`cute_dialect.kernels.gemm.result`'s, and :mod:`cute_dialect.kernels.gemm.hopper` puts all together.
"""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.config import EVICT_FIRST, GemmConfig, part_of
from cute_dialect.kernels.gemm.elements import number
from cute_dialect.kernels.gemm.operands import places_of
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup

__all__ = ["Item", "Operand", "Place", "Products", "Scales", "Shared", "Tiles", "widened"]


class Place(NamedTuple):
    """Where a block's tile lies: its row and column, in tiles of a block, and its matrix, of a batch; where
    the matrices of A, B, C and the source lie.
    """

    row: Any
    column: Any
    matrix: Any = None
    of: Any = (None,) * 4


class Item(NamedTuple):
    """What of a cluster's tile a block multiplies: ``steps`` stages of K from ``k`` on."""

    tile: Any
    k: Any
    steps: Any


class Shared(NamedTuple):
    """What blocks share that add up sums: a workspace of f32, and flags or counters of i32."""

    workspace: Any = None
    flags: Any = None

    def of_sums(self, c: GemmConfig) -> Any:
        """Return the workspace, whose words may hold sums of integers."""
        return self.workspace if c.sums == "f32" else cute.recast_tensor(self.workspace, number(c.sums))


class Scales(NamedTuple):
    """Factors of blocks of 128 of K: ``a`` (M, K / 128), for each row of A, ``b`` (N / 128, K / 128), for 128 of B, or
    (N, K / 128), for each.
    """

    a: Any = None
    b: Any = None


def widened(scale: Any) -> Any:
    """Return a scale as f32: exponents of e8m0 (OCP Microscaling Formats, 5.4.1) are those of f32; 255 is no number.

    ``x`` of 8 bits is ``2 ** (x - 127)``: its bits belong 23 further up, but for 0, of which f32 has a subnormal.
    """
    if scale.dtype is cute.Float32:
        return scale
    bits = scale.to(cute.Int32) << 23
    bits = cute.Int32(0x00400000) if scale == 0 else bits
    return (cute.Int32(0x7FC00000) if scale == 255 else bits).bitcast(cute.Float32)


class Tiles:
    """The tiles of all blocks, in the order in which clusters take them, and this block's place in its cluster."""

    def __init__(self, c: GemmConfig, raster: utils.GroupedRaster, places: Any = None):
        self.c, self.raster, self.places = c, raster, places
        self.rank = cute.arch.block_idx_in_cluster() if c.cluster > 1 else 0
        # Of a cluster: along M first, then along N.
        both = min(c.cluster_m, c.cluster_n) > 1
        self.row = self.rank % c.cluster_m if both else self.rank if c.cluster_m > 1 else 0
        self.column = self.rank // c.cluster_m if both else self.rank if c.cluster_n > 1 else 0
        self.first, self.step = (x.x // c.cluster for x in (cute.arch.block_idx(), cute.arch.grid_dim()))

    def sharers(self) -> tuple[Any, Any]:
        """Return the blocks of the cluster that share A with this one, and those that share B, a bit for each."""
        m, n = self.c.cluster_m, self.c.cluster_n
        if min(m, n) == 1:
            return (1 << n) - 1, (1 << m) - 1
        return sum(1 << m * i for i in range(n)) << self.row, ((1 << m) - 1) << self.column * m

    def count(self) -> Any:
        """Return how many there are, of a cluster each."""
        return self.raster.count()

    def nowhere(self) -> Place:
        """Return a place that stands for none."""
        zero = cute.Int32(0) if self.c.batch else None
        return Place(cute.Int32(0), cute.Int32(0), zero, (zero,) * 4)

    def place(self, tile: Any) -> Place:
        """Return this block's part of a cluster's tile."""
        row, column, *matrix = self.raster.place(tile)
        if self.c.cluster_m > 1:
            row = row * self.c.cluster_m + self.row
        if self.c.cluster_n > 1:
            column = column * self.c.cluster_n + self.column
        if not matrix:
            return Place(row, column)
        return Place(row, column, matrix[0], places_of(self.places, matrix[0]))


class Operand:
    """What TMA brings of A or B to its stages in shared memory.

    ``tma``: atom and coordinates; ``smem``: (rows, K, stages); ``tile``: (rows, K), ``k_major`` where its lines go
    along K; of ``blocks`` of a cluster each brings its part for all (:func:`.config.part_of`): ``rank`` is this
    block's, ``mask`` has a bit for each of them in the cluster; ``first_out``: of the L2; ``batch``: of matrices, or
    one for all.
    """

    def __init__(
        self, tma: Any, smem: Any, tile: tuple[int, int], blocks: int, rank: Any, *, k_major: bool = True,
        mask: Any = None, first_out: bool = False, batch: bool = False,
    ):  # fmt: skip
        self.atom, coords = tma
        self.shared = blocks > 1
        self.mask = ((1 << blocks) - 1 if mask is None else mask) if self.shared else None
        self.policy = EVICT_FIRST if first_out else None
        self.matrices: Any = coords.shape[2] if batch else None
        part = part_of(tile, blocks, k_major=k_major, bits=smem.element_type.width)
        # Of a tile that is shared along K: the pieces, and which is this block's.
        self.pieces, self.rank = tile[1] // part[1], rank
        if self.pieces > 1:
            smem, tile, blocks, rank = cute.flat_divide(smem, part)[None, None, 0, rank, None], part, 1, 0
        self.slots, self.tiles = cpasync.tma_partition(
            self.atom, rank, cute.make_layout(blocks), cute.group_modes(smem, 0, 2),
            cute.group_modes(cute.flat_divide(coords, tile), 0, 2),
        )  # fmt: skip

    def fetch(self, slot: Any, barrier: Any, row: Any, k: Any, matrix: Any) -> None:
        """Fetch tile (row, k), this block's part of it, into a slot."""
        where = (None, row, k if self.pieces == 1 else k * self.pieces + self.rank)
        if matrix is not None:  # the last one stands for those that follow: one may be for all of a batch
            where = (*where, cute.min(matrix, self.matrices - 1))
        cute.copy(
            self.atom, self.tiles[where], self.slots[None, slot], tma_bar_ptr=barrier, mcast_mask=self.mask,
            cache_policy=self.policy,
        )  # fmt: skip


class Products:
    """The sums of a warp group: products of its rows of A with all of B, which ``wgmma`` reads from shared memory."""

    def __init__(self, c: GemmConfig, mma: cute.TiledMma, sA: Any, sB: Any, thread: Any, scales: Scales):
        self.c, self.promote, self.mma, self.scales, self.thread = c, c.promote, mma, scales, thread
        part = mma.get_slice(thread)
        rA, rB = self.fragment(part, sA), mma.make_fragment_B(part.partition_B(sB))
        shape = mma.partition_shape_C(c.tile[:2])
        acc = mma.make_fragment_C(shape)
        sums = mma.make_fragment_C(shape) if c.promote else acc
        self.rA, self.rB, self.acc, self.sums = rA, rB, acc, sums

    def fragment(self, part: Any, sA: Any) -> Any:
        """Return what instructions are given of A: tiles of shared memory."""
        return self.mma.make_fragment_A(part.partition_A(sA))

    def begin(self, slot: Any, *, accumulate: bool) -> None:
        """Begin the products of one stage; none are under way."""
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

    def of_tile(self, consumer: Any, k_tiles: Any, place: Any = None) -> None:
        """Multiply all of a tile."""
        if self.c.scaled:
            self._in_blocks(consumer, k_tiles, place)
        elif self.promote:
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

    def of_scales(self, place: Place) -> tuple[Any, Any, Any, Any]:
        """Return the factors of a tile, and its first row and column in them."""
        return *self.scales, place.row * self.c.tile[0], place.column * self.c.tile[1]

    def _in_blocks(self, consumer: Any, k_tiles: Any, place: Place) -> None:
        """Add up the products of one stage in the tensor cores, and these, times their factors, in registers."""
        c, columns = self.c, self.c.tile[1]
        a, b, row, column = self.of_scales(place)
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx() % 4
        rows = []
        for atom in range(c.atoms):
            first = row + atom * c.sharers * 64 + self.thread // 2 + warp * 16 + lane // 4
            rows.append([cute.min(first + 8 * half, a.shape[0] - 1) for half in range(2)])
        # Of columns that have their own a lane holds every 32nd, and gives it to those that multiply by it.
        firsts = [column + 32 * i + lane for i in range(-(-columns // 32))] if c.scaled_columns else [column // 128]
        of_b = [b[cute.min(first, b.shape[0] - 1), None] for first in firsts]
        self.sums.fill(0.0)
        for k in range(k_tiles):
            # On their way while the products are waited for.
            on_b = [widened(x[k]) for x in of_b]
            held = [[widened(a[row, k]) for row in of_atom] for of_atom in rows]
            slot = consumer.wait_and_advance()
            self.begin(slot, accumulate=False)
            if c.scaled_columns:
                self.end(slot)
                self._add_columns(held, on_b, lane)
            else:
                factors = [[x * on_b[0] for x in of_atom] for of_atom in held]
                self.end(slot)
                for atom in cute.range_constexpr(c.atoms):
                    for j in range(columns // 8):  # registers: the passes unroll it
                        for half in cute.range_constexpr(2):
                            for e in cute.range_constexpr(2):
                                i = j * 4 + (atom * (columns // 2) + 2 * half + e)
                                self.sums[i] = self.acc[i] * factors[atom][half] + self.sums[i]

    def _add_columns(self, on_rows: list[list[Any]], on_columns: list[Any], lane: Any) -> None:
        """Add the products of a stage, times the factors of their rows, of an atom's halves, and of their columns, of
        which the lanes of a warp hold one in 32.
        """
        columns = self.c.tile[1]
        for j in cute.range_constexpr(columns // 8):
            for e in cute.range_constexpr(2):
                on_column = cute.arch.shuffle_sync(on_columns[j // 4], j % 4 * 8 + lane % 4 * 2 + e)
                for atom in cute.range_constexpr(self.c.atoms):
                    for half in cute.range_constexpr(2):
                        i = j * 4 + (atom * (columns // 2) + 2 * half + e)
                        self.sums[i] = self.acc[i] * (on_rows[atom][half] * on_column) + self.sums[i]
