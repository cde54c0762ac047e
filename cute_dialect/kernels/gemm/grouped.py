"""Grouped GEMM on Hopper, ``C_g = A_g B_g^T``: the persistent GEMM over the tiles of all groups.

The boundaries of the groups are in global memory, so the host does not know the number of tiles. It launches as many
blocks as are resident at once, and each takes every n-th tile. A block first computes prefix sums of the groups' tile
counts in shared memory. Each warp looks up the group of a tile there. Groups may start at any element, since TMA
coordinates are in elements.

    form   A (rows, K)       B (columns, K)    C
    m      (T, K)            (N, K, G)         (T, N)         group: rows begin .. end of A and C
    n      (M, K, G)         (T, K)            (M, T)         group: rows of B, columns of C
    k      (M, T)            (N, T)            (M, N, G)      group: elements of K
    rows   (M, K, G)         (N, K, G)         (M, N, G)      group: the first rows of each matrix

Rows of a tile past the end of its group belong to another group. They are multiplied, because rows of a GEMM are
independent, but not stored. A warp whose rows all belong to the group stores them by TMA, otherwise by elements.
Elements of K past the end of the group are zeroed in shared memory in both operands, because NaN times zero is NaN.

    launch(a, b, c, ends)                                        # arrays; the first call of a specialization compiles
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportAttributeAccessIssue=false

from functools import partial
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import Addends
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.gemm.block_scaling import Scales
from cute_dialect.kernels.gemm.config import EVICT_FIRST, TABLE, GemmConfig, GroupedConfig, part_of
from cute_dialect.kernels.gemm.epilogue_store import Result, Staging
from cute_dialect.kernels.gemm.hopper import TURN, Cooperative, Pingpong, allocate, ring_between, take_roles
from cute_dialect.kernels.gemm.host import elements_of, load_map, ring_of, store_map, store_widths
from cute_dialect.kernels.gemm.mainloop import ClusterPosition, Products
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup


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


class GroupTiles(ClusterPosition):
    """The tiles of all groups in the order in which clusters take them.

    The block has at least as many threads as the tile table has ``entries``, a power of two.
    """

    def __init__(
        self, config: GroupedConfig, groups: Groups, extents: tuple[cute.Int32, cute.Int32], entries: int = TABLE
    ):
        c = config.base
        super().__init__(c)
        self.config, self.groups, self.extents = config, groups, extents
        self.number, self.entries = cute.size(groups.ends), entries
        self.tile = c.tile[0] * c.cluster_m, c.tile[1] * c.cluster_n
        m, n = (cute.ceil_div(x, y) for x, y in zip(extents, self.tile))
        self.fixed = m, n  # number of tiles along the extents that are not divided
        if config.form == "k":
            self.total = cute.assume(m * n, range=(0, None)) * self.number
        else:
            self.chunk = cute.ceil_div(self.number, self.entries)  # groups per table entry
            self.table = cute.smem_tensor(cute.Int32, cute.make_layout(self.entries + 1))
            self.sums = cute.smem_tensor(cute.Int32, cute.make_layout(self.entries // 32))

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

    def prepare(self) -> None:
        """Build the tile table, a prefix sum of the groups' tile counts. All threads take part."""
        if self.config.form == "k":
            return
        thread = cute.arch.thread_idx().x
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
        total = cute.Int32(0)
        if thread < self.entries:
            for i in range(self.chunk):
                group = thread * self.chunk + i
                if group < self.number:
                    total = total + self._tiles_of(group)
        for step in (1, 2, 4, 8, 16):
            other = cute.arch.shuffle_sync_up(total, step)
            total = total + other if lane >= step else total
        if (lane == 31) & (thread < self.entries):
            self.sums[warp] = total
        cute.arch.sync_threads()
        if thread < self.entries:
            for i in cute.range_constexpr(self.entries // 32 - 1):
                total = total + self.sums[i] if warp > i else total
            self.table[thread + 1] = total
        if thread == 0:
            self.table[0] = 0
        cute.arch.sync_threads()
        self.total = self.table[self.entries]

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
            row = row * self.c.cluster_m + self.row
        if self.c.cluster_n > 1:
            column = column * self.c.cluster_n + self.column
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
        step = self.entries // 2
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
            self.atom, found, slots[None, slot], tma_bar_ptr=barrier, mcast_mask=self.mask, cache_policy=self.policy
        )


DEFAULT = GroupedConfig()
NO_SCALES = Scales()


class GroupStaging(Staging):
    """Store of the rows or columns of the group only. ``groups`` is the configuration, ``C`` the result in global
    memory.
    """

    groups: GroupedConfig
    C: cute.Tensor

    def at(self, place: Any, atom: int, column: Any) -> tuple[Any, ...]:
        """Return the coordinates in C of a column of the tile, for the first row of an MMA."""
        first = place.column if self.twice == 1 else place.column // self.twice
        found = (self.row(place, atom), first + column)
        return (*found, place.matrix) if cute.rank(self.C) == 3 else found

    def end(self, place: Any) -> Any:
        """Return the end of the group, before which extra outputs are stored."""
        return place.end if self.groups.form in ("m", "rows") else None

    def put(self, values: Any, buffer: int, width: int, place: Any, atom: int, column: Any, under_way: int) -> None:
        """Store the registers of a chunk: by TMA if it is within the group, otherwise only the group's elements."""
        at = self.at(place, atom, column)
        slot = self.group * self.c.buffers + buffer
        leave = None if self.groups.form == "k" else partial(self._leave, place, at)
        store: Any = self.stores[width]  # the configuration excludes direct stores
        store.put(values, slot, at, under_way, leave)

    def _leave(self, place: Place, at: tuple[Any, ...], store: Any, here: Any) -> None:
        """Store a chunk from shared memory: by TMA if it lies within the group, otherwise the elements of the group
        only.
        """
        by_rows, cut = self.c.major_c == "n", 1 if self.groups.form == "n" else 0
        row, column, *matrix = at
        if by_rows:  # a warp stores its 16 rows; a warpgroup stores 64 elements of each column
            row = row + self.lanes.of_warp(cute.arch.warp_idx() % 4)
        end = place.end if cut == 0 or self.twice == 1 else place.end // self.twice
        (height, width), first = (16 if by_rows else 64, store.chunk), (row, column)
        whole = first[cut] + (height, width)[cut] <= end
        if by_rows == (cut == 1):  # TMA needs starts at multiples of 16 bytes along a line
            whole = whole & (first[cut] % (128 // self.kind.width) == 0)
        if whole:
            if store.storing():
                store.by_tma(here, (row, column, *matrix))
        else:
            C = self.C[None, None, place.matrix] if matrix else self.C
            limits = (end, C.shape[1]) if cut == 0 else (C.shape[0], end)
            self._some(here, C, first, (height, width), limits, contiguous=int(by_rows), cut=cut)
            if store.storing():  # waits count one group of stores per chunk
                cute.arch.cp_async_bulk_commit_group()

    def _some(self, here: Any, C: Any, first: Any, box: Any, limits: Any, *, contiguous: int, cut: int) -> None:
        """Store the elements of a chunk before the limits, 16 bytes at once if lines start on vector boundaries."""
        thread, threads = (cute.arch.lane_idx(), 32) if contiguous else (cute.arch.thread_idx().x % 128, 128)
        v = 1 if contiguous == cut else 128 // self.kind.width
        length = box[contiguous] // v
        copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.kind, num_bits_per_copy=v * self.kind.width)
        for i in cute.range(thread, box[0] * box[1] // v, threads, unroll=1):  # pyright: ignore
            line, piece = i // length, i % length * v
            at = (line, piece) if contiguous else (piece, line)
            there = [x + y for x, y in zip(first, at)]
            if there[1 - contiguous] < limits[1 - contiguous]:
                if there[contiguous] + v <= limits[contiguous]:
                    there[contiguous] = cute.assume(there[contiguous], divby=v)
                    cute.copy(copy, self._line(here, at, contiguous, v), self._line(C, there, contiguous, v))
                elif v > 1:
                    for e in cute.range(limits[contiguous] - there[contiguous], unroll=1):  # pyright: ignore
                        more = (0, e) if contiguous else (e, 0)
                        one = [x + y for x, y in zip(at, more)]
                        C[there[0] + more[0], there[1] + more[1]] = here[one[0], one[1]]

    @staticmethod
    def _line(t: Any, at: Any, contiguous: int, v: int) -> Any:
        """Return a vector of ``v`` elements of a line."""
        line = t[at[0], None] if contiguous else t[None, at[1]]
        return cute.flat_divide(line, (v,))[None, at[contiguous] // v]


class GroupResult(GroupStaging, Result):
    """Epilogue of a warpgroup that stores only the rows of the group. ``C`` is the result in global memory."""

    def __init__(self, config: GroupedConfig, C: cute.Tensor, *given: Any):
        super().__init__(config.base, *given)
        self.groups, self.C = config, C

    def row(self, place: Any, atom: int) -> Any:
        """Return the first row of an MMA's 64 rows in C."""
        first = atom if self.c.sharers == 1 else atom * self.c.sharers + self.group
        return place.row + first * 64


class GroupProducts(Products):
    """MMA main loop of a warpgroup in which each group has its own number of K steps."""

    def __init__(self, c: GemmConfig, mma: Any, sA: Any, sB: Any, thread: Any, group: Any, scales: Scales):
        super().__init__(c, mma, sA, sB, thread, scales)
        self.stages, self.group = (sA, sB), group

    def place_in_scales(self, place: Any) -> tuple[Scales, Any, Any]:
        """Return the scales of a tile, and the tile's first row and column in them."""
        a, b = (x[None, None, place.matrix] if cute.rank(x) == 3 else x for x in self.scales)
        return Scales(a, b), place.row, place.column

    def of_group(self, consumer: Any, steps: Any, place: Place, issued: Any = None) -> None:
        """Multiply all K steps of a tile. Elements past the end of the group count as zeros in the last step.

        ``issued`` is called when the last MMA is in flight.
        """
        if self.promote:
            self.sums.fill(0)
            for i in range(steps):
                slot = consumer.wait_and_advance()
                self._clear_last(slot, i, steps, place)
                self.begin(slot, accumulate=False)
                self.end(slot)
                for r in range(cute.size(self.acc)):  # held in registers, so the passes unroll this loop
                    self.sums[r] = self.sums[r] + self.acc[r]
            return
        if steps != 0:
            slot = consumer.wait_and_advance()
            self._clear_last(slot, 0, steps, place)
            self.begin(slot, accumulate=False)
            for i in range(1, steps):
                following = consumer.wait_and_advance()
                self._clear_last(following, i, steps, place)
                self.begin(following, accumulate=True)
                warpgroup.wait_group(1)
                slot.release()
                slot = following
            if issued is not None:
                issued()
            self.end(slot)
        else:
            self.sums.fill(0)
            if issued is not None:
                issued()

    def _clear_last(self, slot: Any, i: Any, steps: Any, place: Place) -> None:
        """Zero the elements past the end of the group, in its last step."""
        if i == steps - 1:
            live = place.end - place.k - i * self.c.tile[2]
            if live < self.c.tile[2]:
                self._clear_from(slot.index, live)

    def _clear_from(self, slot: Any, live: Any) -> None:
        """Zero the elements of a stage from index ``live`` of K on."""
        c, threads = self.c, 128 * self.c.sharers
        thread = cute.arch.thread_idx().x % threads if c.sharers == 1 else cute.arch.thread_idx().x - 128
        for stages, rows in zip(self.stages, c.tile[:2]):
            stage, k, kind = stages[None, None, slot], c.tile[2], stages.element_type
            v = 128 // c.bits  # 16 bytes of a line at once
            pieces = rows // v
            zero = cute.make_rmem_tensor(v, kind)
            zero.fill(0)
            copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=128)
            for i in range(thread, pieces * k, threads):
                if i // pieces >= live:
                    line = cute.flat_divide(stage[None, i // pieces], (v,))
                    cute.copy(copy, zero, line[None, i % pieces])
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.barrier(1 if c.sharers > 1 else 7 + self.group, threads)


class GroupLoads:
    """Producer: one thread that fills the ring of stages."""

    def __init__(self, config: GroupedConfig, a: Any, b: Any, producer: Any, tiles: GroupTiles, k_tiles: Any):
        self.config, self.a, self.b, self.producer, self.tiles = config, a, b, producer, tiles
        self.k_tiles = k_tiles

    def whole(self) -> None:
        """Load all tiles of this block."""
        k = self.config.base.tile[2]
        for tile in range(self.tiles.first, self.tiles.count(), self.tiles.step):
            place = self.tiles.place(tile)
            steps = self.tiles.steps(place) if self.config.form == "k" else self.k_tiles
            for i in range(steps):
                slot = self.producer.acquire_and_advance()
                at = place.k + i * k
                self.a.fetch(slot.index, slot.barrier, place.row, at, place.matrix)
                self.b.fetch(slot.index, slot.barrier, place.column, at, place.matrix)


class GroupCooperative(Cooperative):
    """Consumers that share a tile, where each group has its own number of K steps."""

    def whole(self, first: Any) -> None:
        """Multiply and store this block's tiles from ``first`` on."""
        for tile in range(first, self.tiles.count(), self.tiles.step):
            place = self.tiles.place(tile)
            ahead = self.result.ahead(place)
            self.products.of_group(self.consumer, self.tiles.steps(place), place)
            self.result.convert(place, ahead)
            self.result.store(place, ahead=ahead)
        self.result.finish()


class GroupPingpong(Pingpong):
    """Consumers that alternate between tiles, where each group has its own number of K steps."""

    def whole(self, first: Any) -> None:
        """Multiply and store every other tile of this block from ``first`` on."""
        tiles, group = self.tiles, self.result.group
        mine, other = group + TURN, (group ^ 1) + TURN
        if group == 1:  # warpgroup 0 may start at once
            cute.arch.barrier_arrive(other, 256)
            self._skip(first)
        for tile in range(first + group * tiles.step, tiles.count(), tiles.step * 2):
            place = tiles.place(tile)
            ahead = self.result.ahead(place)
            cute.arch.barrier(mine, 256)
            pass_on = partial(self._pass_on, tile + tiles.step, other)
            self.products.of_group(self.consumer, tiles.steps(place), place, pass_on)
            self.result.convert(place, ahead)
            self.result.store(place, ahead=ahead)
            self._skip(tile + tiles.step)
        self.result.finish()

    def _pass_on(self, following: Any, other: Any) -> None:
        """Pass the tensor cores to the other warpgroup, if it has a tile."""
        if following < self.tiles.count():
            cute.arch.barrier_arrive(other, 256)

    def _skip(self, tile: Any) -> None:
        """Skip the stages of the other warpgroup's tile."""
        if tile < self.tiles.count():
            self.consumer.state.skip(self.tiles.steps(self.tiles.place(tile)))


GROUP_ROLES = {"cooperative": GroupCooperative, "pingpong": GroupPingpong}
ROLES = {"cooperative": Cooperative, "pingpong": Pingpong}


@cute.jit
def launch(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, ends: cute.Tensor, begins: cute.Tensor | None = None,
    scale_a: cute.Tensor | None = None, scale_b: cute.Tensor | None = None, source: cute.Tensor | None = None,
    bias: cute.Tensor | None = None, alpha: cute.Float32 | None = None, beta: cute.Float32 | None = None,
    operands: Any = None, config: cute.Constexpr[Any] = DEFAULT,
):  # fmt: skip
    """Launch the kernel of a configuration.

    Args:
        A, B, C: Matrices, or batches with a third mode of groups, as the form requires.
        ends, begins: Boundaries of the groups, (G,).
        scale_a, scale_b: Block scales.
        source, bias, alpha, beta, operands: Arguments of the epilogue.
        config: The configuration.
    """
    config.check()
    c = config.base
    addends, scales = Addends(source, bias, alpha, beta, operands), Scales(scale_a, scale_b)
    check_arguments(config, A, B, C, ends, begins, scales)
    c.epilogue.check_shapes(C, addends, groups=cute.size(ends))
    if c.element == "tf32":
        A, B = (cute.recast_tensor(x, cute.TFloat32) if x.element_type is cute.Float32 else x for x in (A, B))
    m, n, k = c.tile
    mma = hopper.make_trivial_tiled_mma(
        A.element_type, B.element_type, hopper.major(A), hopper.major(B), number(c.sums), (c.sharers, 1, 1), (64, n)
    )
    rings = ring_of(A, (m, k), c), ring_of(B, (n, k), c)
    a, b, d = (c._replace(batch=batch) for batch in config.batched)
    tma_a, tma_b = load_map(a, A, (m, k), c.cluster_n), load_map(b, B, (n, k), c.cluster_m)
    tmas_c = {width: store_map(d, C, width) for width in store_widths(c)}
    groups = Groups(ends, begins, A.shape[1] if config.form == "k" else C.shape[1 if config.form == "n" else 0])
    extents = C.shape[0], B.shape[0]
    across, along = (cute.ceil_div(x, y) for x, y in zip(extents, (m * c.cluster_m, n * c.cluster_n)))
    number_of = cute.size(ends)
    most = across * along * number_of if config.form in ("k", "rows") else (
        (across + number_of) * along if config.form == "m" else across * (along + number_of)
    )  # fmt: skip
    grid = cute.max(cute.min(cute.assume(most, range=(0, None)), c.at_once // c.cluster), 1) * c.cluster
    k_tiles = cute.ceil_div(A.shape[1], k)
    grouped_gemm(tma_a, tma_b, tmas_c, mma, rings, groups, extents, k_tiles, C, addends, scales, config).launch(
        grid=grid, block=c.threads, cluster=(c.cluster, 1, 1)
    )


def check_arguments(
    config: GroupedConfig,
    A: cute.Tensor,
    B: cute.Tensor,
    C: cute.Tensor,
    ends: cute.Tensor,
    begins: cute.Tensor | None,
    scales: Scales = NO_SCALES,
) -> None:
    """Raise ValueError for arguments that do not suit the configuration, and emit runtime assertions on the shapes."""
    c = config.base
    for name, x, element, major, batch in zip(
        "ABC", (A, B, C), elements_of(c), (c.major_a == "k", c.major_b == "k", c.major_c == "n"), config.batched
    ):
        kinds = (cute.Float32, cute.TFloat32) if element == "tf32" else (number(element),)
        if x.element_type not in kinds or cute.rank(x) != 2 + batch:
            raise ValueError(
                f"launch: {name} must be a {'batch of matrices' if batch else 'matrix'} of {element}, got {x}"
            )
        if x.leading_dim != major:
            raise ValueError(f"launch: {name} must be contiguous along mode {int(major)}, got {x}")
    if (begins is not None) != config.begins:
        raise ValueError(
            f"launch: begins must {'be given' if config.begins else 'be None'} for begins={config.begins}, got {begins}"
        )
    assert A.shape[1] == B.shape[1], "A and B must have the same K"
    assert A.shape[0] == C.shape[0], "A and C must have the same M"
    if c.epilogue.half:
        assert B.shape[0] == C.shape[1] * 2, "B must have twice the N of C"
    else:
        assert B.shape[0] == C.shape[1], "B and C must have the same N"
    for name, x in zip("ABC", (A, B, C)):
        if cute.rank(x) == 3:
            assert x.shape[2] == cute.size(ends), f"{name} must have a matrix for each group"
    if (scales.a is not None) != c.scaled or (scales.b is not None) != c.scaled:
        raise ValueError(
            f"launch: scale_a and scale_b must {'be given' if c.scaled else 'be None'} for scaled={c.scaled}, got "
            f"{scales}"
        )
    if c.scaled:
        blocks = cute.ceil_div(A.shape[1], 128)
        for name, x, rows in zip(("scale_a", "scale_b"), scales, (A.shape[0], cute.ceil_div(B.shape[0], 128))):
            assert x.shape[0] == rows, f"{name} must have one row per row of A, or per 128 columns of B"
            assert x.shape[1] == blocks, f"{name} must have one column per 128 of K"
            if cute.rank(x) == 3:
                assert x.shape[2] == cute.size(ends), f"{name} must have a matrix for each group"
    if begins is not None:
        assert cute.size(begins) == cute.size(ends), "begins must have as many elements as ends"


@cute.kernel(min_blocks=1)
def grouped_gemm(
    tma_a: Any, tma_b: Any, tmas_c: dict[int, Any], mma: cute.TiledMma, rings: Any, groups: Groups, extents: Any,
    k_tiles: cute.Int32, C: cute.Tensor, addends: Addends, scales: Scales, config: cute.Constexpr[Any],
):  # fmt: skip
    c = config.base
    m, n, k = c.tile
    if cute.arch.thread_idx().x == 0:
        for atom, _ in (tma_a, tma_b, *tmas_c.values()):
            cpasync.prefetch_descriptor(atom)
    sA, sB, staging = allocate(c, (tma_a[0], tma_b[0]), rings)
    tiles = GroupTiles(config, groups, extents)
    of_a, of_b = tiles.sharers()
    a = GroupOperand(tma_a, sA, (m, k), c.cluster_n, tiles.column, k_major=c.major_a == "k", mask=of_a)
    b = GroupOperand(
        tma_b, sB, (n, k), c.cluster_m, tiles.row, k_major=c.major_b == "k", mask=of_b, first_out=c.stream_b
    )
    producer, consumer = ring_between(c)
    blocks = cute.make_layout(c.cluster)
    pipeline.pipeline_init_arrive(blocks, is_relaxed=True)
    tiles.prepare()
    pipeline.pipeline_init_wait(blocks)

    def consume(group: Any) -> None:
        products = GroupProducts(c, mma, sA, sB, 0 if c.schedule == "pingpong" else group * 128, group, scales)
        fused = Fused(
            c.epilogue, addends, pairs=c.major_c == "n", whole=number(c.output).is_integer, batch=config.batched[2]
        )
        result = GroupResult(config, C, tmas_c, staging, products.sums, group, fused)
        role = (GROUP_ROLES if config.form == "k" else ROLES)[c.schedule]
        role(c, consumer, products, result, tiles, k_tiles).whole(tiles.first)

    take_roles(c, lambda: GroupLoads(config, a, b, producer, tiles, k_tiles).whole(), consume)


def layouts_of(config: GroupedConfig) -> list[str]:
    """Return the layouts of A, B and C that TMA can access.

    >>> layouts_of(GroupedConfig())
    ['(?,?):(?{div=8},1)', '(?,?,?):(?{div=8},1,?{div=8})', '(?,?):(?{div=8},1)']
    """
    from cute_dialect.kernels.gemm.host import layouts_of  # late: start-up

    return [layouts_of(config.base._replace(batch=batch))[i] for i, batch in enumerate(config.batched)]


def arguments_of(config: GroupedConfig) -> dict[str, Any]:
    """Return the launch arguments after C and their annotations."""
    c, found = config.base, {"ends": cute.Tensor[cute.Int32, "?:1"]}
    if config.begins:
        found["begins"] = cute.Tensor[cute.Int32, "?:1"]
    if c.scaled:
        layouts = ["(?,?,?):(?,?,?)" if batch else "(?,?):(?,?)" for batch in config.batched[:2]]
        found |= {name: cute.Tensor[cute.Float32, x] for name, x in zip(("scale_a", "scale_b"), layouts)}
    return found | c.epilogue.arguments(c.output, batch=config.batched[2], row_major=c.major_c == "n")


@printed
def grouped_text(config: GroupedConfig) -> cute.Compiled:
    """Trace the kernel and its host function ``@launch``, which takes A, B, C and :func:`arguments_of`.

    Raises:
        ValueError: if the configuration is not supported.
    """
    config.check()
    kinds = zip(elements_of(config.base), layouts_of(config))
    matrices = [cute.Tensor[number(e), layout, "align<16>"] for e, layout in kinds]
    return cute.trace(launch, *matrices, **arguments_of(config), config=config)
