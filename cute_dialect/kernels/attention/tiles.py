"""Tile scheduler of attention: the rows and heads of each block, their order, and the keys that they see."""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalSubscript=false, reportOptionalMemberAccess=false

from typing import NamedTuple, Protocol

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.lang.values.signature_types import Condition, Int


class BlockLists(NamedTuple):
    """The key blocks that each block of queries sees, at least in part, in i32.

    Counts are (blocks of queries, H, B), and indices (blocks of keys, blocks of queries, H, B). The mask function
    applies to the blocks of the first pair. All keys of the second pair are visible.
    """

    counts: cute.Tensor
    indices: cute.Tensor
    full_counts: cute.Tensor
    full_indices: cute.Tensor


class Problem(NamedTuple):
    """Sizes of a launch. The host computes them, so that they need no registers."""

    queries: Int  # of a sequence; the largest number for packed sequences
    keys: Int  # likewise
    heads: Int  # heads of the tiles: query heads, or key heads if a tile has all queries that share keys
    sharing: Int  # query heads per key head
    batch: Int  # sequences
    begins: tuple[cute.Tensor | None, cute.Tensor | None]  # boundaries of queries and of keys of packed sequences
    left: Int  # keys that a query sees before its own
    right: Int  # keys that a query sees after its own
    rows: Int  # tiles of queries of a head
    units: Int  # work items: tiles of all heads, pairs of tiles, or tiles times slices of keys
    parts: Int | None  # slices of the keys of a tile (split-KV), or None
    used: cute.Tensor | None = None  # number of keys of each sequence, or None
    grown: Int | None = None  # keys of each sequence in addition to those of `used`, or None
    used_q: cute.Tensor | None = None  # number of queries of each sequence, or None
    pad: cute.Tensor | None = None  # keys before the first one of each sequence, or None
    chunk: Int | None = None  # keys of a chunk, or None
    each: Int | None = None  # queries of each sequence of a group, or None
    table: cute.Tensor | None = None  # pages of the keys of each sequence, (pages, B), or None
    blocks: BlockLists | None = None  # of a block mask, or None

    @staticmethod
    def units_of(c: AttentionConfig, rows: Int, heads: Int, batch: Int, parts: Int | None) -> Int:
        """Return the number of work items: tiles, pairs of tiles, or tiles times slices of keys."""
        if c.split:
            return rows * heads * batch * parts
        return (cute.ceil_div(rows, 2) if c.takes_pairs else rows) * heads * batch


class Place(NamedTuple):
    """A block's tile."""

    head: Int
    batch: Int
    row: Int  # first query in the sequence
    queries: Int  # of the sequence
    keys: Int  # of the sequence
    query_start: Int  # offset of the sequence's queries in memory
    key_start: Int  # offset of the sequence's keys in memory
    first: Int  # first step of keys that the tile sees
    last: Int  # end of the steps
    zero: Int  # 0 at run time, see nothing_of
    matrix: Int  # index of the result's matrix
    seen: Int  # end of the keys that are seen, independent of the mask
    partial: Int = 0  # steps of a block mask to which the mask function applies; they come first


class Step(NamedTuple):
    """A step of keys."""

    key: Int  # the first key
    partial: Condition | None  # True if the mask function applies; None without a block mask


def nothing_of(number: Int) -> Int:
    """Return 0 for a number below 2^30, in a way that the compiler cannot know.

    Values that depend on it are recomputed for each tile instead of being kept in registers.
    """
    return cute.Int32(number) >> 30


class TileSchedule:
    """The order in which persistent blocks take tiles, or pairs of tiles, from a list that they share.

    Args:
        work: Tiles of all heads, or pairs of them.
        paired: Whether blocks take pairs.
        sms: Blocks that run at once.
    """

    def __init__(self, work: Int, paired: bool, sms: int):
        self.work, self.paired, self.sms = work, paired, sms

    def grid(self) -> Int:
        """Return the number of blocks to launch."""
        return cute.min(self.work, self.sms)

    def first(self) -> Int:
        """Return the index of this block's first tile, or twice the index of its first pair."""
        return cute.arch.block_idx().x * (2 if self.paired else 1)

    def is_there(self, at: Int) -> Condition:
        """Return True if a tile index is in range."""
        return at < self.work * (2 if self.paired else 1)

    def following(self, at: Int) -> Int:
        """Return the index of this block's next tile."""
        step = cute.arch.grid_dim().x
        return at + (step * 2 - 1 if (at & 1) != 0 else 1) if self.paired else at + step


class TileWorker(Protocol):
    """A producer or consumer, which works on one tile at a time."""

    def tile(self, place: Place) -> None:
        """Load or compute a tile."""
        ...


class Tiles(TileSchedule):
    """The tiles of all blocks. Tiles of one head are adjacent, so that its keys stay in the L2.

    With keys bounded on the right, later tiles see more keys. If there are many, a block therefore takes tiles in pairs
    of equal total length: the first with the last, the second with the last but one. The middle tile is paired with one
    that does not exist.
    """

    def __init__(self, c: AttentionConfig, problem: Problem):
        self.c, self.problem = c, problem
        self.rows = cute.assume(problem.rows, range=(0, None))
        super().__init__(problem.units, c.takes_pairs, c.sms)
        self.units = cute.ceil_div(self.rows, 2) if self.paired else self.rows

    def visit(self, worker: TileWorker) -> None:
        """Call ``worker.tile`` for each tile of this block that has queries."""
        at = self.first()
        while self.is_there(at):
            place = self.place(at)
            if self.may_lack():
                if place.row < self.end(place):
                    worker.tile(place)
            else:
                worker.tile(place)
            at = self.following(at)

    def may_lack(self) -> bool:
        """Return True if there can be tiles without queries."""
        return self.paired or self.c.packed or self.c.used_q

    def place(self, at: Int) -> Place:
        """Return the coordinates of a tile. One that does not exist starts past the last query."""
        p, c = self.problem, self.c
        unit = cute.assume(at // 2 if self.paired else at, range=(0, None))
        part = None
        if c.split:
            unit, part = divmod(unit, cute.assume(p.parts, range=(1, None)))
        line, row = divmod(unit, self.units)
        if self.paired:  # the longer tile comes first
            other = self.rows - 1 - row
            row = (self.rows if row == other else row) if (at & 1) != 0 else other
        batch, head = divmod(cute.assume(line, range=(0, None)), p.heads)
        queries, keys, query_start, key_start = p.queries, p.keys, cute.Int32(0), cute.Int32(0)
        if c.packed:
            of_queries, of_keys = p.begins
            query_start = of_queries[batch]
            queries = of_queries[batch + 1] - query_start
            if c.groups:
                query_start, queries = query_start * p.each, queries * p.each
            if of_keys is not None:
                key_start = of_keys[batch]
                keys = of_keys[batch + 1] - key_start
        if c.used:
            keys = p.used[batch] + p.grown
        if c.used_q:
            queries = p.used_q[batch]
        if c.padded:
            pad = p.pad[batch]
            keys, key_start = cute.max(keys - pad, 0), key_start + pad
        matrix = 0 if c.packed else batch
        place = self._seen(
            Place(
                head, batch, row * c.tile_m, queries, keys, query_start, key_start, 0, 0, nothing_of(at), matrix, keys
            )
        )
        return self._part(place, part) if c.split else place

    def _part(self, place: Place, part: Int) -> Place:
        """Restrict a tile to a slice of its steps, at least one. If there are more slices than steps, the slice sees no
        keys.
        """
        parts, steps = self.problem.parts, place.last - place.first
        first, last = (place.first + steps * x // parts for x in (part, part + 1))
        return place._replace(
            first=first, last=cute.max(last, first + 1), seen=0 if first == last else place.seen,
            matrix=part if self.c.packed else part * self.problem.batch + place.batch,
        )  # fmt: skip

    def step(self, place: Place, at: Int) -> Step:
        """Return a step of a tile."""
        c, lists = self.c, self.problem.blocks
        if not c.block_n:
            return Step(at * c.tile_n, None)
        each = c.block_n // c.tile_n
        at = cute.assume(at, range=(0, None))
        is_partial, row = at < place.partial, place.row // c.block_m
        entry, found = at // each, []
        for indices, place_in in ((lists.indices, entry), (lists.full_indices, entry - place.partial // each)):
            inside = cute.max(cute.min(place_in, indices.shape[0] - 1), 0)
            found.append(indices[inside, row, place.head, place.batch])
        # A tile without blocks has one step, of which no key is seen.
        block = cute.where(place.seen > 0, cute.where(is_partial, *found), 0)
        return Step(block * c.block_n + at % each * c.tile_n, is_partial)

    def query(self, row: Int) -> Int:
        """Return the query of a row of a sequence's tiles."""
        return self.split_row(row)[0] if self.c.pack else row

    def split_row(self, row: Int) -> tuple[Int, Int]:
        """Return the query of a row, and its head among those that share keys."""
        return divmod(cute.assume(row, range=(0, None)), cute.assume(self.problem.sharing, range=(1, None)))

    def end(self, place: Place) -> Int:
        """Return the number of rows of a sequence's tiles."""
        return place.queries * self.problem.sharing if self.c.pack else place.queries

    def shift(self, place: Place) -> Int:
        """Return the key aligned with the first query of a sequence."""
        return place.keys - place.queries if self.c.from_end else 0

    def begin_of_window(self, own: Int) -> Int:
        """Return the first key that a query sees; keys are bounded on the left.

        Args:
            own: The key that is aligned with the query.
        """
        begin = own - self.problem.left
        return cute.max(begin, self._chunk(own)) if self.c.chunked else begin

    def end_of_window(self, own: Int) -> Int:
        """Return the end of the keys that a query sees; keys are bounded on the right."""
        end = own + self.problem.right + 1
        return cute.min(end, self._chunk(own) + self.problem.chunk) if self.c.chunked else end

    def _chunk(self, own: Int) -> Int:
        """Return the first key of a query's chunk.  Queries before the first key are in the chunk that ends there."""
        chunk = cute.assume(self.problem.chunk, range=(1, None))
        index = cute.assume(own if own >= 0 else -1 - own, range=(0, None)) // chunk
        return (index if own >= 0 else -1 - index) * chunk

    def _seen(self, place: Place) -> Place:
        """Return a tile with its range of steps: at least one, whose keys may all be masked."""
        c, p, n = self.c, self.problem, self.c.tile_n
        if c.block_n:
            block = place.row // c.block_m
            partial, full = (x[block, place.head, place.batch] for x in (p.blocks.counts, p.blocks.full_counts))
            each = c.block_n // n
            count = (partial + full) * each
            return place._replace(
                first=cute.Int32(0), last=cute.max(count, 1), partial=partial * each,
                seen=place.keys if count > 0 else cute.Int32(0),
            )  # fmt: skip
        low, high = cute.Int32(0), place.keys
        left, right = c.bounded
        if right:
            end = cute.min(place.row + c.tile_m, self.end(place))
            if c.pack:
                end = self.query(cute.max(end - 1, 0)) + 1
            high = cute.min(high, self.end_of_window(end - 1 + self.shift(place)))
        if left:
            low = cute.max(self.begin_of_window(self.query(place.row) + self.shift(place)), 0)
        last = cute.max(cute.ceil_div(cute.max(high, 0), n), 1)
        first = cute.min(low // n, last - 1)
        return place._replace(first=first, last=last)
