"""Which rows of which head a block computes, in which order, and which keys those rows see."""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import AttentionConfig

__all__ = ["Place", "Problem", "Tiles", "nothing_of"]


class Problem(NamedTuple):
    """What a launch computes.

    ``queries``, ``keys``: of a sequence, or the most of one that is packed; ``heads``: of queries, ``sharing`` of which
    have the keys of one head; ``batch``: sequences; ``begins``: of packed sequences where the queries and the keys of
    each begin, and the end; ``left``, ``right``: how many keys a query sees before and after its own; ``rows``: tiles
    of queries of a head, ``units``: of all heads, in pairs where they are paired.  The host counts these, so that no
    registers hold them.  ``parts``: of the keys of a tile, which count as units of their own, None where they are not
    split.
    """

    queries: Any
    keys: Any
    heads: Any
    sharing: Any
    batch: Any
    begins: Any
    left: Any
    right: Any
    rows: Any
    units: Any
    parts: Any

    @staticmethod
    def units_of(c: AttentionConfig, rows: Any, heads: Any, batch: Any, parts: Any) -> Any:
        """Return how many tiles, pairs or parts of tiles there are."""
        if c.split:
            return rows * heads * batch * parts
        return (cute.ceil_div(rows, 2) if c.bounded[1] else rows) * heads * batch


class Place(NamedTuple):
    """A block's tile: head, sequence, its first query of that; ``queries`` and ``keys`` of the sequence and where they
    begin in memory; the steps of keys that it sees, from ``first`` to before ``last``; ``zero``: :func:`nothing_of` it;
    ``matrix``: the number of the result's matrix; ``seen``: keys from here on are not seen, whatever masks say.
    """

    head: Any
    batch: Any
    row: Any
    queries: Any
    keys: Any
    query_start: Any
    key_start: Any
    first: Any
    last: Any
    zero: Any
    matrix: Any
    seen: Any


def nothing_of(number: Any) -> Any:
    """Return 0, of a number below 2^30, which no compiler knows: what depends on it is computed again for each one."""
    return cute.Int32(number) >> 30


class Tiles:
    """The tiles of all blocks: those of one head after the other, so that its keys stay in the L2.

    Where keys are bounded to the right, tiles near the end see more of them: a block has them in pairs, the first with
    the last one, the second with the last but one, so that all pairs are as long.  The one in the middle is a pair with
    one that is not there.
    """

    def __init__(self, c: AttentionConfig, problem: Problem):
        self.c, self.problem = c, problem
        self.rows = cute.assume(problem.rows, range=(0, None))
        self.paired = c.bounded[1] and not c.split
        self.units = cute.ceil_div(self.rows, 2) if self.paired else self.rows

    def grid(self) -> Any:
        """Return how many blocks the host launches."""
        return cute.min(self.problem.units, self.c.sms)

    def first(self) -> Any:
        """Return the number of this block's first tile: that of its head and row, or of its pair, doubled."""
        return cute.arch.block_idx().x * (2 if self.paired else 1)

    def is_there(self, at: Any) -> Any:
        """Tell whether there is a tile of a number."""
        return at < self.problem.units * (2 if self.paired else 1)

    def following(self, at: Any) -> Any:
        """Return the number of this block's next tile."""
        step = cute.arch.grid_dim().x
        return at + (step * 2 - 1 if (at & 1) != 0 else 1) if self.paired else at + step

    def may_lack(self) -> bool:
        """Tell whether there may be tiles without queries."""
        return self.paired or self.c.packed

    def place(self, at: Any) -> Place:
        """Return a tile; one that is not there begins behind the queries."""
        p, c = self.problem, self.c
        unit = cute.assume(at // 2 if self.paired else at, range=(0, None))
        part = None
        if c.split:
            unit, part = divmod(unit, cute.assume(p.parts, range=(1, None)))
        line, row = divmod(unit, self.units)
        if self.paired:  # the longer one first
            other = self.rows - 1 - row
            row = (self.rows if row == other else row) if (at & 1) != 0 else other
        batch, head = divmod(cute.assume(line, range=(0, None)), p.heads)
        queries, keys, query_start, key_start = p.queries, p.keys, cute.Int32(0), cute.Int32(0)
        if c.packed:
            of_queries, of_keys = p.begins
            query_start, key_start = of_queries[batch], of_keys[batch]
            queries, keys = of_queries[batch + 1] - query_start, of_keys[batch + 1] - key_start
        matrix = 0 if c.packed else batch
        place = self._seen(
            Place(
                head, batch, row * c.tile_m, queries, keys, query_start, key_start, 0, 0, nothing_of(at), matrix, keys
            )
        )
        return self._part(place, part) if c.split else place

    def _part(self, place: Place, part: Any) -> Place:
        """Return a tile with a part of its steps, one at least: where there are more parts than steps, its keys are
        none.
        """
        parts, steps = self.problem.parts, place.last - place.first
        first, last = (place.first + steps * x // parts for x in (part, part + 1))
        return place._replace(
            first=first, last=cute.max(last, first + 1), seen=0 if first == last else place.keys,
            matrix=part * self.problem.batch + place.batch,
        )  # fmt: skip

    def shift(self, place: Place) -> Any:
        """Return the key opposite the first query of a sequence."""
        return place.keys - place.queries if self.c.from_end else 0

    def _seen(self, place: Place) -> Place:
        """Return a tile with the steps of keys that it sees: one at least, whose keys may all be masked."""
        c, p, n = self.c, self.problem, self.c.tile_n
        low, high = cute.Int32(0), place.keys
        left, right = c.bounded
        if right:
            after = cute.min(place.row + c.tile_m, place.queries) + self.shift(place) + p.right
            high = cute.min(high, after)
        if left:
            low = cute.max(place.row + self.shift(place) - p.left, 0)
        last = cute.max(cute.ceil_div(cute.max(high, 0), n), 1)
        first = cute.min(low // n, last - 1)
        return place._replace(first=first, last=last)
