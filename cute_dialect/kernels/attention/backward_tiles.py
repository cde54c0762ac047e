"""Tile scheduler of the backward of attention: the keys and heads of each block, and the queries that see them."""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalSubscript=false, reportArgumentType=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.kernels.attention.tiles import BlockLists, TileSchedule, nothing_of
from cute_dialect.lang.values.signature_types import Condition, Int


class KeyProblem(NamedTuple):
    """Sizes of a launch. The host computes them, so that they need no registers."""

    queries: Int  # of a sequence; the largest number for packed sequences
    keys: Int  # likewise
    heads: Int  # key heads
    sharing: Int  # query heads per key head
    begins: tuple[cute.Tensor | None, cute.Tensor | None]  # boundaries of queries and of keys of packed sequences
    left: Int  # keys that a query sees before its own
    right: Int  # keys that a query sees after its own
    tiles: Int  # tiles of keys of a head
    units: Int  # work items: tiles of all heads or pairs of tiles, times slices of their steps
    parts: Int | None  # slices of the steps of a tile, or None
    blocks: BlockLists | None  # of a block mask, or None; with queries and keys exchanged
    key_blocks: BlockLists | None = None  # the lists of key blocks, if the order of additions is fixed

    @staticmethod
    def units_of(c: BackwardConfig, tiles: Int, heads: Int, batch: Int, parts: Int | None) -> Int:
        """Return the number of work items: tiles or pairs of tiles, times slices of their steps."""
        units = (cute.ceil_div(tiles, 2) if c.takes_pairs else tiles) * heads * batch
        return units * parts if c.split else units


class QueryTile(NamedTuple):
    """A tile of queries."""

    tile: Int
    partial: Condition | None = None  # True if the mask function applies; None without a block mask
    past: Condition | None = None  # True if a step of a block mask has no queries
    slot: Int = 0  # slot of the ring of Q
    number: Int = 0  # for a step of a block mask, the number of :meth:`packed`

    @property
    def computes_mask(self) -> Condition:
        """True if the mask function is evaluated."""
        if self.partial is None:
            return True
        return (self.number & 3) == 2

    @property
    def hides(self) -> Condition:
        """True if keys may be hidden: the mask function applies, or there are no queries."""
        if self.partial is None:
            return True
        # ptxas must not keep another register than the number in the meantime.
        return ((self.number + nothing_of(self.number)) & 3) != 0

    def packed(self) -> Int:
        """Return the tile as a number, from which :meth:`unpacked` returns it."""
        return self.tile * 4 + cute.where(self.partial, 2, 0) + cute.where(self.past, 1, 0)

    @staticmethod
    def unpacked(number: Int) -> "QueryTile":
        """Return the tile of a number of :meth:`packed`."""
        return QueryTile(number >> 2, (number & 2) != 0, (number & 1) != 0, number=number)


class QueryLists(NamedTuple):
    """The lists of a block of keys in a block mask. A step of a head is a tile of one of its listed blocks.

    The first steps are in blocks to which the mask function applies.
    """

    c: BackwardConfig
    lists: BlockLists
    block: Int  # block of keys
    batch: Int
    tiles: Int  # tiles of queries of a sequence
    end: Int  # end of the query heads

    @property
    def each(self) -> int:
        """Steps of a block."""
        return self.c.block_m // self.c.tile_m

    def counts(self, head: Int) -> tuple[Int, Int]:
        """Return the numbers of listed blocks of a head: those to which the mask function applies, and all."""
        at = self.block, head, self.batch
        partial, full = self.lists.counts[at], self.lists.full_counts[at]
        return partial, partial + full

    def steps(self, count: Int) -> Int:
        """Return the number of steps of a head with ``count`` blocks, at least one if any head has a block."""
        return cute.max(count * self.each, 1)

    def total(self, head: Int) -> Int:
        """Return the number of steps of all heads from ``head`` on. If there are any, each head has one or more."""
        real, found = cute.Int32(0), cute.Int32(0)
        for at in range(head, self.end):
            count = self.counts(at)[1]
            real, found = real + count, found + self.steps(count)
        return found if real > 0 else cute.Int32(0)

    def rows(self, head: Int) -> tuple[cute.Tensor, cute.Tensor]:
        """Return the indices of a head's blocks: those to which the mask function applies, and the others."""
        at = None, self.block, head, self.batch
        return self.lists.indices[at], self.lists.full_indices[at]

    def tile(self, rows: tuple[cute.Tensor, cute.Tensor], partial: Int, count: Int, at: Int) -> QueryTile:
        """Return the tile of queries of a step. The one step of a head without blocks has no queries.

        Args:
            rows, partial, count: Those of the head.
            at: Index of the step in the head.
        """
        at = cute.assume(at, range=(0, None))
        entry = at // self.each
        is_partial = entry < partial
        found = [
            indices[cute.min(place, indices.shape[0] - 1)]
            for indices, place in zip(rows, (entry, cute.max(entry - partial, 0)))
        ]
        tile = cute.where(is_partial, *found) * self.each + at % self.each
        return QueryTile(cute.min(tile, self.tiles - 1), is_partial, (tile >= self.tiles) | (entry >= count))


class KeyPlace(NamedTuple):
    """A block's tile of keys. Its steps are the heads that share the keys, and for each head the query tiles.

    With slices, the block takes some of these steps.
    """

    head: Int  # key head
    row: Int  # first key in the sequence
    queries: Int  # of the sequence
    keys: Int  # of the sequence
    query_start: Int  # offset of the sequence's queries in memory
    key_start: Int  # offset of the sequence's keys in memory
    matrix: Int  # index of the sequence's matrix
    tile: Int  # index of the sequence's first query tile in the workspaces
    first: Int  # first query tile that sees the keys
    last: Int  # end of these query tiles
    begin: Int  # the query tile at which each head begins; its steps go on from the last tile to the first
    low: Int = 0  # with slices or a block mask, first step of this block
    high: Int = 0  # end of these steps; no steps if it is ``low``
    sums: Int = 0  # with slices, index of the tile in the workspace of dk and dv
    batch: Int = 0
    lists: QueryLists | None = None  # of a block mask

    def following(self, head: Int, tile: Int) -> tuple[Int, Int]:
        """Return the head and the query tile of the step after a step.  There must be no block mask."""
        after = tile + 1
        after = self.first if after == self.last else after
        return head + 1 if after == self.begin else head, after


class TileQueue:
    """Tiles that a block takes from a counter in global memory, after its first one.

    The producer passes their indices to the other warps through two slots in shared memory. Only tiles without steps
    need the barriers of empty slots: otherwise, K of a tile is loaded after all warps have read its index.

    Args:
        taken: Counter of the tiles that were taken after the first ones of all blocks.
        slots: The indices in shared memory.
        full, empty: Two barriers each.
    """

    def __init__(self, taken: cute.Tensor, slots: cute.Tensor, full: cute.Pointer, empty: cute.Pointer):
        self.taken, self.slots, self.full, self.empty = taken, slots, full, empty
        self.index, self.phase = cute.Int32(0), cute.Int32(0)

    @staticmethod
    def create(c: BackwardConfig, taken: cute.Tensor) -> "TileQueue":
        """Allocate a queue and initialize its barriers. The block must synchronize before it is used."""
        slots = cute.smem_tensor(cute.Int32, cute.make_layout(2), 8)
        full, empty = (cute.arch.alloc_smem(cute.Int64, 2, alignment=8) for _ in range(2))
        if cute.arch.thread_idx().x == 0:
            for i in cute.range_constexpr(2):
                cute.arch.mbarrier_init(full + i, 1)
                cute.arch.mbarrier_init(empty + i, c.consumers * 5)  # each has four warps and a writer
        return TileQueue(taken, slots, full, empty)

    def take(self) -> Int:
        """Take a tile, pass its index to the other warps, and return it. The caller is the thread of the producer."""
        cute.arch.mbarrier_wait(self.empty + self.index, self.phase ^ 1)
        found = cute.arch.atomic_add(self.taken.iterator, 1) + cute.arch.grid_dim().x
        self.slots[self.index] = found
        cute.arch.mbarrier_arrive(self.full + self.index)
        self._advance()
        return found

    def receive(self) -> Int:
        """Return the index of the next tile in a warp of a consumer or writer."""
        cute.arch.mbarrier_wait(self.full + self.index, self.phase)
        found = self.slots[self.index]
        cute.arch.sync_warp()
        if cute.arch.lane_idx() == 0:
            cute.arch.mbarrier_arrive(self.empty + self.index)
        self._advance()
        return found

    def _advance(self) -> None:
        self.index = self.index ^ 1
        self.phase = self.phase ^ (1 if self.index == 0 else 0)


class KeyTiles(TileSchedule):
    """The tiles of all blocks. Tiles of one head are adjacent, so that its queries stay in the L2.

    If the mask bounds keys on one side, the number of queries that see a tile grows or falls along the keys. A block
    therefore takes tiles in pairs of equal total length, as :class:`.tiles.Tiles` does.
    """

    def __init__(self, c: BackwardConfig, problem: KeyProblem):
        self.c, self.problem = c, problem
        self.tiles = cute.assume(problem.tiles, range=(0, None))
        super().__init__(problem.units, c.takes_pairs, c.sms)
        self.per_head = cute.ceil_div(self.tiles, 2) if self.paired else self.tiles

    def place(self, at: Int) -> KeyPlace:
        """Return the coordinates of a tile. A tile past the last one starts past the last key, so no query sees it."""
        p, c = self.problem, self.c
        unit = cute.assume(at // 2 if self.paired else at, range=(0, None))
        part = cute.Int32(0)
        if c.split:
            line, rest = divmod(unit, self.per_head * cute.assume(p.parts, range=(1, None)))
            part, tile = divmod(cute.assume(rest, range=(0, None)), self.per_head)
        else:
            line, tile = divmod(unit, self.per_head)
        if self.paired:
            other = self.tiles - 1 - tile
            tile = (self.tiles if tile == other else other) if (at & 1) != 0 else tile
        batch, head = divmod(cute.assume(line, range=(0, None)), p.heads)
        where = query_place(c, p.begins, p.queries, batch)
        keys, key_start = p.keys, cute.Int32(0)
        if c.packed:
            of_keys = p.begins[1]
            key_start = of_keys[batch]
            keys = of_keys[batch + 1] - key_start
        row = tile * c.tile_n
        low, high = cute.Int32(0), where.queries
        shift = keys - where.queries if c.from_end else 0
        left, right = c.bounded
        if right:
            low = cute.max(row - shift - p.right, 0)
        if left:
            high = cute.min(high, cute.min(row + c.tile_n, keys) - shift + p.left)
        first = low // c.tile_m
        last = cute.ceil_div(cute.max(high, 0), c.tile_m)
        last = first if row >= keys else cute.max(first, last)
        begin = first
        if c.starts_rotated:
            # Blocks that start at once add to different tiles of dq.
            begin = first + tile % cute.max(last - first, 1)
        place = KeyPlace(
            head, row, where.queries, keys, where.query_start, key_start, where.matrix, where.tile, first, last, begin,
            batch=batch,
        )  # fmt: skip
        if c.block_n:
            head, tiles = head * p.sharing, cute.ceil_div(place.queries, c.tile_m)
            lists = QueryLists(c, p.blocks, row // c.block_n, batch, tiles, head + p.sharing)
            return place._replace(high=lists.total(head), lists=lists)
        if not c.split:
            return place
        low, high = ((last - first) * p.sharing * x // p.parts for x in (part, part + 1))
        return place._replace(low=low, high=high, sums=first_key_tile(c, key_start, self.tiles, batch) + tile)

    def has_steps(self, place: KeyPlace) -> Condition:
        """Return True if this block has steps of a tile."""
        return place.low < place.high if self.c.split or self.c.block_n else place.first < place.last

    def steps(self, place: KeyPlace) -> Int:
        """Return the number of steps of this block."""
        if self.c.split or self.c.block_n:
            return place.high - place.low
        return (place.last - place.first) * self.problem.sharing

    def start(self, place: KeyPlace) -> tuple[Int, Int]:
        """Return the query head and the query tile of this block's first step."""
        head = place.head * self.problem.sharing
        if self.c.block_n:
            return head, cute.Int32(0)
        if not self.c.split:
            return head, place.begin
        seen = cute.assume(cute.max(place.last - place.first, 1), range=(1, None))
        heads, tile = divmod(cute.assume(place.low, range=(0, None)), seen)
        return head + heads, place.first + tile

    def shift(self, place: KeyPlace) -> Int:
        """Return the key aligned with the first query of a sequence."""
        return place.keys - place.queries if self.c.from_end else 0


class QueryPlace(NamedTuple):
    """The queries of a sequence."""

    queries: Int  # number of queries
    query_start: Int  # their offset in memory
    matrix: Int  # index of the sequence's matrix
    tile: Int  # index of the first query tile in the workspaces


def query_place(
    c: BackwardConfig, begins: tuple[cute.Tensor | None, ...] | None, queries: Int, batch: Int
) -> QueryPlace:
    """Return the queries of a sequence.

    Args:
        c: Configuration.
        begins: Boundaries of the queries of packed sequences, first in a tuple; None if they are not packed.
        queries: Queries of a sequence that is not packed.
        batch: Index of the sequence.
    """
    if not c.packed:
        return QueryPlace(queries, cute.Int32(0), batch, batch * cute.ceil_div(queries, c.tile_m))
    start = begins[0][batch]
    return QueryPlace(begins[0][batch + 1] - start, start, 0, start // c.tile_m + batch)


def first_key_tile(c: BackwardConfig, key_start: Int, tiles: Int, batch: Int) -> Int:
    """Return the index of a sequence's first key tile in the workspace of dk and dv.

    Args:
        c: Configuration.
        key_start: Offset of the keys of a packed sequence.
        tiles: Key tiles of a sequence that is not packed.
        batch: Index of the sequence.
    """
    return key_start // c.tile_n + batch if c.packed else batch * tiles
