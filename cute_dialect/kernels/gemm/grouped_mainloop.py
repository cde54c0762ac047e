"""Tile scheduler and operand loads of a grouped GEMM.

The grouped kernel is :mod:`cute_dialect.kernels.gemm.grouped`. Groups start at any element, so tiles are addressed in
elements.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.config import EVICT_FIRST, part_of
from cute_dialect.kernels.gemm.grouped_config import TABLE, GroupedConfig
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import cpasync

__all__ = ["GroupOperand", "GroupTiles", "Groups", "Place"]


class Place(NamedTuple):
    """Coordinates of a block's tile, in elements."""

    row: Any  # first row in C
    column: Any  # first column in C
    matrix: Any  # the group
    end: Any  # end of the group, along the extent that is divided into groups
    k: Any  # first element of K of the group

    @property
    def of(self) -> tuple[Any, Any, Any, Any]:
        """Indices of the group's matrices of A, B, C and the source."""
        return (self.matrix,) * 4


class Groups(NamedTuple):
    """Boundaries of the groups."""

    ends: Any  # (G,)
    begins: Any  # (G,), or None if each group starts where the previous one ends
    limit: Any  # the extent that is divided into groups


class GroupTiles:
    """The tiles of all groups in the order in which clusters take them, and this block's position in its cluster."""

    def __init__(self, config: GroupedConfig, groups: Groups, extents: Any):
        c = self.c = config.base
        self.config, self.groups, self.extents = config, groups, extents
        self.rank = cute.arch.block_idx_in_cluster() if c.cluster > 1 else 0
        both = min(c.cluster_m, c.cluster_n) > 1
        self.of_m = self.rank % c.cluster_m if both else self.rank if c.cluster_m > 1 else 0
        self.of_n = self.rank // c.cluster_m if both else self.rank if c.cluster_n > 1 else 0
        self.first, self.step = (x.x // c.cluster for x in (cute.arch.block_idx(), cute.arch.grid_dim()))
        self.number = cute.size(groups.ends)
        self.tile = c.tile[0] * c.cluster_m, c.tile[1] * c.cluster_n
        m, n = (cute.ceil_div(x, y) for x, y in zip(extents, self.tile))
        self.fixed = m, n  # number of tiles along the extents that are not divided
        if config.form == "k":
            self.total = cute.assume(m * n, range=(0, None)) * self.number
        else:
            self.chunk = cute.ceil_div(self.number, TABLE)  # groups per table entry
            self.table = cute.smem_tensor(cute.Int32, cute.make_layout(TABLE + 1))
            self.sums = cute.smem_tensor(cute.Int32, cute.make_layout(TABLE // 32))

    def stretch(self, group: Any) -> tuple[Any, Any]:
        """Return the first element and the end of a group, clamped to the extent that is divided."""
        ends, begins, _ = self.groups
        if self.config.form == "rows":
            first = cute.Int32(0)
        elif self.config.begins:
            first = begins[group]
        else:
            before = ends[cute.max(group - 1, 0)]
            first = before if group > 0 else cute.Int32(0)
        return self._inside(first), self._inside(ends[group])

    def _inside(self, x: Any) -> Any:
        """Clamp a number to the extent that is divided into groups."""
        return cute.min(cute.max(x, 0), self.groups.limit)

    def sharers(self) -> tuple[Any, Any]:
        """Return bit masks of the blocks of the cluster that share A with this one, and of those that share B."""
        m, n = self.c.cluster_m, self.c.cluster_n
        if min(m, n) == 1:
            return (1 << n) - 1, (1 << m) - 1
        return sum(1 << m * i for i in range(n)) << self.of_m, ((1 << m) - 1) << self.of_n * m

    def prepare(self) -> None:
        """Build the tile table, a prefix sum of the groups' tile counts. All threads take part."""
        if self.config.form == "k":
            return
        thread = cute.arch.thread_idx().x
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
        total = cute.Int32(0)
        if thread < TABLE:
            for i in range(self.chunk):
                group = thread * self.chunk + i
                if group < self.number:
                    total = total + self._tiles_of(group)
        for step in (1, 2, 4, 8, 16):
            other = cute.arch.shuffle_sync_up(total, step)
            total = total + other if lane >= step else total
        if (lane == 31) & (thread < TABLE):
            self.sums[warp] = total
        cute.arch.sync_threads()
        if thread < TABLE:
            for i in cute.range_constexpr(TABLE // 32 - 1):
                total = total + self.sums[i] if warp > i else total
            self.table[thread + 1] = total
        if thread == 0:
            self.table[0] = 0
        cute.arch.sync_threads()
        self.total = self.table[TABLE]

    def _tiles_of(self, group: Any) -> Any:
        """Return the number of tiles of a group."""
        across, along = self._tiles(*self.stretch(group))
        return across * along

    def _tiles(self, begin: Any, end: Any) -> tuple[Any, Any]:
        """Return the tile rows and tile columns of a range."""
        by_rows = self.config.form != "n"
        length = cute.max(end - begin, 0)
        tiles = cute.ceil_div(cute.assume(length, range=(0, None)), self.tile[0 if by_rows else 1])
        return (tiles, self.fixed[1]) if by_rows else (self.fixed[0], tiles)

    def count(self) -> Any:
        """Return the number of tiles, each for one cluster."""
        return self.total

    def nowhere(self) -> Place:
        """Return placeholder coordinates."""
        return Place(*(cute.Int32(0) for _ in Place._fields))

    def place(self, tile: Any) -> Place:
        """Return the coordinates of this block's part of a cluster's tile."""
        begin, end, k, inside = cute.Int32(0), cute.Int32(0), cute.Int32(0), cute.Int32(tile)
        if self.config.form == "k":
            group, inside = divmod(cute.assume(inside, range=(0, None)), cute.assume(self._of_one(), range=(1, None)))
            group = cute.Int32(group)
            k, end = self.stretch(group)
            tiles = self.fixed
        else:
            group, inside = self._search(inside)
            begin, end = self.stretch(group)
            tiles = self._tiles(begin, end)
        raster = utils.GroupedRaster(tiles, self.c.group)
        row, column = raster.place(inside)
        if self.c.cluster_m > 1:
            row = row * self.c.cluster_m + self.of_m
        if self.c.cluster_n > 1:
            column = column * self.c.cluster_n + self.of_n
        row, column = cute.Int32(row * self.c.tile[0]), cute.Int32(column * self.c.tile[1])
        if self.config.form == "n":
            column = column + begin
        else:
            row = row + begin
        return Place(row, column, group, end, k)

    def _of_one(self) -> Any:
        return self.fixed[0] * self.fixed[1]

    def _search(self, tile: Any) -> tuple[Any, Any]:
        """Return the group of a tile, and the index of the tile in that group."""
        entry = cute.Int32(0)
        step = TABLE // 2
        while step:
            entry = entry + step if self.table[entry + step] <= tile else entry
            step //= 2
        inside, group = tile - self.table[entry], entry * self.chunk
        if self.chunk > 1:
            count = self._tiles_of(group)
            while inside >= count:
                inside, group = inside - count, group + 1
                count = self._tiles_of(group)
        return group, inside

    def steps(self, place: Place) -> Any:
        """Return the number of K steps of a tile, which depends on its group."""
        length = cute.max(place.end - place.k, 0)
        return cute.ceil_div(cute.assume(length, range=(0, None)), self.c.tile[2])


class GroupOperand:
    """An operand, A or B, that TMA loads to stages in shared memory, starting at any element.

    The arguments are those of :class:`~cute_dialect.kernels.gemm.mainloop.Operand`.
    """

    def __init__(
        self, tma: Any, smem: Any, tile: tuple[int, int], blocks: int, rank: Any, *, k_major: bool = True,
        mask: Any = None, first_out: bool = False,
    ):  # fmt: skip
        self.atom, self.coords = tma
        self.mask = mask if blocks > 1 else None
        self.policy = EVICT_FIRST if first_out else None
        part = part_of(tile, blocks, k_major=k_major)
        # A tile that is sliced along K: the offset of this block's slice.
        self.line = 0
        if part[1] != tile[1]:
            self.line = rank * part[1]
            smem, tile, blocks, rank = cute.flat_divide(smem, part)[None, None, 0, rank, None], part, 1, 0
        self.smem, self.tile, self.blocks, self.rank = cute.group_modes(smem, 0, 2), tile, blocks, rank

    def fetch(self, slot: Any, barrier: Any, row: Any, k: Any, matrix: Any) -> None:
        """Issue the load of this block's slice of the tile that starts at an element."""
        batch = cute.rank(self.coords) == 3
        at = (row, k + self.line, matrix) if batch else (row, k + self.line)
        tiles = cute.flat_divide(cute.domain_offset(at, self.coords), self.tile)
        slots, found = cpasync.tma_partition(
            self.atom, self.rank, cute.make_layout(self.blocks), self.smem,
            cute.group_modes(tiles[None, None, 0, 0, *([0] * batch)], 0, 2),
        )  # fmt: skip
        cute.copy(
            self.atom, found, slots[None, slot], tma_bar_ptr=barrier, mcast_mask=self.mask,
            cache_policy=self.policy,
        )  # fmt: skip
