"""Building blocks of a Hopper GEMM: tile coordinates, operands that TMA loads, and the MMA main loops.

:class:`Products` multiplies A from shared memory, :class:`FromRegisters` A from registers. Each class owns its
registers and shared memory. The epilogue is in :mod:`cute_dialect.kernels.gemm.epilogue_store`, and
:mod:`cute_dialect.kernels.gemm.hopper` assembles the kernel.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Callable
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.gemm.block_scaling import ColumnFactors, Factors, Scales
from cute_dialect.kernels.gemm.config import EVICT_FIRST, GemmConfig, part_of
from cute_dialect.kernels.gemm.operands import places_of
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup


class Place(NamedTuple):
    """Coordinates of a block's tile."""

    row: Any  # in tiles of a block
    column: Any  # in tiles of a block
    matrix: Any = None  # index in a batch
    of: Any = (None,) * 4  # indices of the matrices of A, B, C and the source along their third mode


class Item(NamedTuple):
    """A unit of work: ``steps`` K steps of a cluster's tile, starting with step ``k``."""

    tile: Any
    k: Any
    steps: Any


class Shared(NamedTuple):
    """Global memory through which blocks exchange partial accumulators: an f32 workspace, and i32 flags or counters."""

    workspace: Any = None
    flags: Any = None

    def of_sums(self, c: GemmConfig) -> Any:
        """Return the workspace in the accumulator type."""
        return self.workspace if c.sums == "f32" else cute.recast_tensor(self.workspace, number(c.sums))


class ClusterPosition:
    """This block's position in its cluster, and the first tile and the step of the cluster."""

    def __init__(self, c: GemmConfig):
        self.c = c
        self.rank = cute.arch.block_idx_in_cluster() if c.cluster > 1 else 0
        # The blocks of a cluster are numbered along M first, then along N.
        both = min(c.cluster_m, c.cluster_n) > 1
        self.row = self.rank % c.cluster_m if both else self.rank if c.cluster_m > 1 else 0
        self.column = self.rank // c.cluster_m if both else self.rank if c.cluster_n > 1 else 0
        self.first, self.step = (x.x // c.cluster for x in (cute.arch.block_idx(), cute.arch.grid_dim()))

    def sharers(self) -> tuple[Any, Any]:
        """Return bit masks of the blocks of the cluster that share A with this one, and of those that share B."""
        m, n = self.c.cluster_m, self.c.cluster_n
        if min(m, n) == 1:
            return (1 << n) - 1, (1 << m) - 1
        return sum(1 << m * i for i in range(n)) << self.row, ((1 << m) - 1) << self.column * m


class Tiles(ClusterPosition):
    """The tiles in the order in which clusters take them."""

    def __init__(self, c: GemmConfig, raster: utils.GroupedRaster, places: Any = None):
        super().__init__(c)
        self.raster, self.places = raster, places

    def count(self) -> Any:
        """Return the number of tiles, each for one cluster."""
        return self.raster.count()

    def nowhere(self) -> Place:
        """Return placeholder coordinates."""
        zero = cute.Int32(0) if self.c.batch else None
        return Place(cute.Int32(0), cute.Int32(0), zero, (zero,) * 4)

    def place(self, tile: Any) -> Place:
        """Return the coordinates of this block's part of a cluster's tile."""
        row, column, *matrix = self.raster.place(tile)
        if self.c.cluster_m > 1:
            row = row * self.c.cluster_m + self.row
        if self.c.cluster_n > 1:
            column = column * self.c.cluster_n + self.column
        if not matrix:
            return Place(row, column)
        return Place(row, column, matrix[0], places_of(self.places, matrix[0]))


class Operand:
    """An operand, A or B, that TMA loads to stages in shared memory.

    Args:
        tma: TMA atom and coordinate tensor.
        smem: Stages (rows, K, stages).
        tile: (rows, K) of a stage.
        blocks: Number of blocks of the cluster that share the tile. Each loads a slice (:func:`.config.part_of`).
        rank: Index of this block's slice.
        k_major: The operand is contiguous along K.
        mask: Multicast mask of the blocks that share the tile.
        first_out: Mark the lines evict-first in the L2.
        batch: The operand has a batch mode, of one or of all matrices.
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
        # A tile that is sliced along K: the number of slices, and this block's.
        self.pieces, self.rank = tile[1] // part[1], rank
        if self.pieces > 1:
            smem, tile, blocks, rank = cute.flat_divide(smem, part)[None, None, 0, rank, None], part, 1, 0
        self.slots, self.tiles = cpasync.tma_partition(
            self.atom, rank, cute.make_layout(blocks), cute.group_modes(smem, 0, 2),
            cute.group_modes(cute.flat_divide(coords, tile), 0, 2),
        )  # fmt: skip

    def fetch(self, slot: Any, barrier: Any, row: Any, k: Any, matrix: Any) -> None:
        """Issue the load of this block's slice of tile (row, k) to a slot."""
        where = (None, row, k if self.pieces == 1 else k * self.pieces + self.rank)
        if matrix is not None:  # an index past the end selects the last matrix, as one matrix may serve a whole batch
            where = (*where, cute.min(matrix, self.matrices - 1))
        cute.copy(
            self.atom, self.tiles[where], self.slots[None, slot], tma_bar_ptr=barrier, mcast_mask=self.mask,
            cache_policy=self.policy,
        )  # fmt: skip


class Products:
    """MMA main loop of a warpgroup: its rows of A times the tile of B, which ``wgmma`` reads from shared memory."""

    def __init__(self, c: GemmConfig, mma: cute.TiledMma, sA: Any, sB: Any, thread: Any, scales: Scales):
        self.c, self.promote, self.mma, self.scales, self.thread = c, c.promote, mma, scales, thread
        part = mma.get_slice(thread)
        rA, rB = self.fragment(part, sA), mma.make_fragment_B(part.partition_B(sB))
        shape = mma.partition_shape_C(c.tile[:2])
        # The tensor-core accumulators: one, or two that alternate.
        acc = mma.make_fragment_C(shape)
        self.accs = [acc, *[mma.make_fragment_C(shape) for _ in range(c.accumulators - 1)]]
        self.sums = mma.make_fragment_C(shape) if c.promote else acc
        self.rA, self.rB, self.acc = rA, rB, acc
        self.kind = ColumnFactors if c.scaled_columns else Factors
        self.registers: Any = self.kind.registers(c, scales) if c.scaled else None

    def fragment(self, part: Any, sA: Any) -> Any:
        """Return the A operand of the MMA: descriptors of tiles in shared memory."""
        return self.mma.make_fragment_A(part.partition_A(sA))

    def begin(self, slot: Any, *, accumulate: bool, to: int = 0) -> None:
        """Issue the MMAs of one stage into accumulator ``to``. None may be in flight on it."""
        warpgroup.fence()
        at = (None, None, None, slot.index)
        cute.gemm(self.mma, self.accs[to], self.rA[at], self.rB[at], accumulate=accumulate)
        warpgroup.commit_group()

    def go_on(self, consumer: Any, slot: Any, steps: range) -> Any:
        """Multiply several stages, each while the previous one (``slot``) completes, and return the last slot."""
        for _ in steps:
            following = consumer.wait_and_advance()
            self.begin(following, accumulate=True)
            warpgroup.wait_group(1)
            slot.release()
            slot = following
        return slot

    def end(self, slot: Any, of: int = 0, *, under_way: int = 0) -> None:
        """Wait for the MMAs of a stage to accumulator ``of``. ``under_way`` later groups may still be in flight."""
        warpgroup.wait_group(under_way, self.accs[of])
        slot.release()

    def of_tile(
        self, consumer: Any, steps: Any, place: Any = None, first: Any = 0, meanwhile: Callable[[], None] | None = None
    ) -> None:
        """Multiply ``steps`` stages of a tile, starting with K step ``first``. :meth:`ask` has prefetched its scales.

        ``meanwhile`` is called while the first stage is multiplied (two-level accumulation only).
        """
        if self.c.accumulators == 2:
            self._alternately(consumer, steps, self.factors(place, first), meanwhile)
        elif self.promote:
            self._in_two_levels(consumer, steps, self.factors(place, first), meanwhile)
        else:
            slot = consumer.wait_and_advance()
            self.begin(slot, accumulate=False)
            self.end(self.go_on(consumer, slot, range(1, steps)))

    def _in_two_levels(self, consumer: Any, steps: Any, factors: Any, meanwhile: Callable[[], None] | None) -> None:
        """Accumulate each stage in the tensor cores, then add it to the f32 accumulator, multiplied by its scales."""
        self.sums.fill(0.0)
        if meanwhile is not None:
            by = self._taken(factors, 0)
            slot = consumer.wait_and_advance()
            self.begin(slot, accumulate=False)
            meanwhile()
            self.end(slot)
            self._add(0, factors, by)
        for k in range(0 if meanwhile is None else 1, steps):
            by = self._taken(factors, k)
            slot = consumer.wait_and_advance()
            self.begin(slot, accumulate=False)
            self.end(slot)
            self._add(0, factors, by)

    def _alternately(self, consumer: Any, steps: Any, factors: Any, meanwhile: Callable[[], None] | None) -> None:
        """Do the same with two tensor-core accumulators: adding one stage overlaps with the MMAs of the next."""
        self.sums.fill(0.0)
        slot = consumer.wait_and_advance()
        self.begin(slot, accumulate=False)
        if meanwhile is not None:
            meanwhile()
        for pair in range((steps - 1) // 2):
            for i in cute.range_constexpr(2):
                by = self._taken(factors, 2 * pair + i)
                following = consumer.wait_and_advance()
                self.begin(following, accumulate=False, to=1 - i)
                self.end(slot, i, under_way=1)
                self._add(i, factors, by)
                slot = following
        by = self._taken(factors, (steps - 1) // 2 * 2)
        if steps % 2 == 0:
            following = consumer.wait_and_advance()
            self.begin(following, accumulate=False, to=1)
            self.end(slot, 0, under_way=1)
            self._add(0, factors, by)
            by = self._taken(factors, steps - 1)
            self.end(following, 1)
            self._add(1, factors, by)
        else:
            self.end(slot, 0)
            self._add(0, factors, by)

    def place_in_scales(self, place: Place) -> tuple[Scales, Any, Any]:
        """Return the scales of a tile, and the tile's first row and column in them."""
        return self.scales, place.row * self.c.tile[0], place.column * self.c.tile[1]

    def ask(self, place: Any, first: Any = 0) -> None:
        """Prefetch the scales of the first K step ``first`` of a tile, before :meth:`of_tile`."""
        if self.c.scaled:
            self.factors(place, first).ask(0)

    def factors(self, place: Any, first: Any) -> Any:
        """Return the scaling factors of a tile from K step ``first`` on, or None without scales."""
        if not self.c.scaled:
            return None
        scales, row, column = self.place_in_scales(place)
        return self.kind(self.c, scales, self.registers, self.thread, row, column, first)

    @staticmethod
    def _taken(factors: Any, step: Any) -> Any:
        """Return the factors of a step."""
        return None if factors is None else factors.take(step)

    def _add(self, of: int, factors: Any, by: Any) -> None:
        """Add tensor-core accumulator ``of`` to the f32 accumulator, multiplied by the factors of the stage."""
        products = self.accs[of]
        if factors is not None:
            factors.add(self.sums, products, by)
        else:
            for i in range(cute.size(products)):  # held in registers, so the passes unroll this loop
                self.sums[i] = self.sums[i] + products[i]


_GROUPS = 2
"""Groups of MMAs of a stage. Each group has its own registers."""


class FromRegisters(Products):
    """MMA main loop of a warpgroup whose A goes through registers: M-major A whose elements are not 16-bit.

    ``wgmma`` reads such elements from shared memory only if they are K-major, but accepts A in registers too. TMA loads
    A in its own layout, 128-byte lines along M. Each warp then loads the elements of its fragments from shared memory
    (:mod:`cute_dialect.kernels.epilogue.fragment_layout` defines their rows). A stage is two groups of MMAs: while one
    is in flight, the registers of the other are filled. B is K-major.
    """

    def __init__(self, c: GemmConfig, mma: cute.TiledMma, sA: Any, sB: Any, thread: Any, scales: Scales):
        super().__init__(c, mma, sA, sB, thread, scales)
        self.steps = c.tile[2] * c.bits // 256 // _GROUPS  # MMAs of a group
        source = Words if c.bits == 32 else Bytes
        self.source = source(c, sA, thread // 128 if c.sharers > 1 else 0)

    def fragment(self, part: Any, sA: Any) -> list[Any]:
        """Return the registers of A for both groups of a stage."""
        m, _, k = self.c.tile
        shape = self.mma.partition_shape_A((m, k // _GROUPS))
        return [self.mma.make_fragment_A(shape) for _ in range(_GROUPS)]

    def begin(self, slot: Any, *, accumulate: bool, to: int = 0) -> None:
        """Issue the MMAs of one stage; none may be in flight."""
        for group in cute.range_constexpr(_GROUPS):
            self._multiply(slot, group, accumulate=accumulate or group > 0)

    def _multiply(self, slot: Any, group: int, *, accumulate: bool) -> None:
        """Fill the registers of a group, and issue its MMAs."""
        first, held = group * self.steps, self.rA[group]
        for atom in cute.range_constexpr(self.c.atoms):
            for i in cute.range_constexpr(self.steps):
                self.source.read(slot.index, atom, first + i, held[None, atom, i])
        warpgroup.fence()
        for i in cute.range_constexpr(self.steps):
            at = (None, None, first + i, slot.index)
            cute.gemm(self.mma, self.acc, held[None, None, i], self.rB[at], accumulate=accumulate or i > 0)
        warpgroup.commit_group()

    def go_on(self, consumer: Any, slot: Any, steps: range) -> Any:
        """Multiply several stages; see :meth:`Products.go_on`."""
        for _ in steps:
            following = consumer.wait_and_advance()
            for group in cute.range_constexpr(_GROUPS):
                warpgroup.wait_group(_GROUPS - 1)
                if group == _GROUPS - 1:  # the previous stage is complete
                    slot.release()
                self._multiply(following, group, accumulate=True)
            slot = following
        return slot

    def end(self, slot: Any, of: int = 0, *, under_way: int = 0) -> None:
        """Wait for the MMAs of the last stage."""
        warpgroup.wait_group(under_way, self.acc)
        slot.release()


class Words:
    """A of 32-bit elements in shared memory: lines of 32 elements along M, with swizzled 16-byte chunks.

    A lane's two rows are adjacent, and are read at once.
    """

    def __init__(self, c: GemmConfig, sA: Any, group: Any):
        self.c, kind = c, sA.element_type
        rows, _, k = c.tile
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx() % 4
        row, column = c.lanes.row(lane, 0, warp), lane % 4
        plain = cute.recast_ptr(sA.iterator, cute.make_swizzle(0, 4, 3), kind)
        # The rows of an MMA: lines of 32 rows, k of them.
        start = row // 32 * (32 * k) + row % 4 + group * (64 * k)
        self.places = [
            plain + (start + (column + more) * 32 + ((row % 32 // 4) ^ (column + more)) * 4) for more in (0, 4)
        ]
        self.stage, self.atom, self.step = rows * k, c.sharers * 64 * k, 8 * 32

    def read(self, stage: Any, atom: int, step: int, registers: Any) -> None:
        """Load this lane's fragment of A for one MMA."""
        for half in cute.range_constexpr(2):
            at = self.places[half] + stage * self.stage
            at = (at + (atom * self.atom + step * self.step)).align(8)
            both = cute.make_tensor(at, cute.make_layout(2)).load()
            for i in cute.range_constexpr(2):
                registers[2 * half + i] = both[i]


class Bytes:
    """A of 8-bit elements in shared memory: lines of 128 or 64 elements along M, with swizzled 16-byte chunks.

    A fragment register holds one row's bytes of four lines of K. A lane loads two adjacent rows of each line and
    permutes the bytes. Lanes whose lines map to the same banks load them in a different order.
    """

    def __init__(self, c: GemmConfig, sA: Any, group: Any):
        self.c = c
        rows, _, k = c.tile
        line = 128 if rows % 128 == 0 else 64
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx() % 4
        # Offsets are in elements of two bytes.
        plain = cute.recast_ptr(sA.iterator, cute.make_swizzle(0, 4, 3), cute.Uint16)
        row, other = c.lanes.row(lane, 0, warp) + group * 64, lane % 4 // 2
        chunk, start = row % line // 16, row // line * (line * k // 2) + row % 16 // 2
        self.places = []
        for i in range(4):
            column = lane % 4 * 4 + (i ^ other)
            phase = column % 8 if line == 128 else column // 2 % 4
            self.places.append(plain + (start + column * (line // 2) + (chunk ^ phase) * 8))
        self.order = cute.Uint32(0x1504) if other == 1 else cute.Uint32(0x5140)
        self.stage, self.atom, self.half = rows * k // 2, c.sharers * 64 // line * (line * k // 2), 16 * line // 2
        # Offset of every second atom in the lines of the previous atom: four chunks forward, or backward if the swizzle
        # has that bit set.
        self.second = 32 - lane % 2 * 64 if line > c.sharers * 64 else None

    def _of(self, atom: int) -> Any:
        """Return the offset of an atom's lines from those of the first atom."""
        if self.second is None:
            return atom * self.atom
        lines = atom // 2 * self.stage // (self.c.tile[0] // 128)
        return lines + self.second if atom % 2 else lines

    def read(self, stage: Any, atom: int, step: int, registers: Any) -> None:
        """Load this lane's fragment of A for one MMA."""
        words = cute.recast_tensor(registers, cute.Uint32)
        for half in cute.range_constexpr(2):
            held = []
            for i in cute.range_constexpr(4):
                at = self.places[i] + stage * self.stage
                at = at + (self._of(atom) + (2 * step + half) * self.half)
                held.append(cute.make_tensor(at, cute.make_layout(1))[0].to(cute.Uint32))
            first, second = (cute.arch.prmt(held[2 * i], held[2 * i + 1], self.order) for i in range(2))
            for i in cute.range_constexpr(2):
                words[2 * half + i] = cute.arch.prmt(first, second, (0x5410, 0x7632)[i])
