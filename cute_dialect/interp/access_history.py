"""A memory of the accesses to a buffer: the last write and the reads since, by granules.

A granule starts as 16 bytes and is halved whenever an access is smaller, so that a granule never holds two accesses
that do not overlap.  What the threads of a warp read at one time is one read; the last is kept in a row a warp (and one
an asynchronous reader) in shared memory, and in one row in global memory.  What a later read of a row does not imply,
and what several reductions have written, goes to `Past`; strong accesses are kept by `strong`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.strong_accesses import Strong
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.memory import Buffer

MANY = -2
READ, WRITTEN, REDUCED = range(3)
BITS = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))


class Past:
    """Accesses that the rows of a shadow have no place for, in order; those of a granule count from `Shadow.more` on.

    Columns: granule, sequence number, cluster, actor of lane 0, which lanes, time, site, and READ, WRITTEN or REDUCED.
    """

    _COLUMNS = 8

    def __init__(self) -> None:
        self.sequence = 1
        self.written = False  # whether any of them writes
        self._sorted: Array = np.zeros((0, self._COLUMNS), np.int64)  # by granule
        self._new: list[Array] = []

    @property
    def used(self) -> bool:
        """Tell whether anything was ever kept here: if not, no granule has a part in it."""
        return self.sequence > 1

    def add(
        self, granules: Array, cluster: Array | int, base: Array | int, lanes: Array | int, time: Array | int,
        site: Array | int, kind: int,
    ) -> None:  # fmt: skip
        """Append accesses to granules; an int stands for the same number in each."""
        rows = np.empty((len(granules), self._COLUMNS), np.int64)
        for i, column in enumerate((granules, self.sequence, cluster, base, lanes, time, site, kind)):
            rows[:, i] = column
        self._new.append(rows)
        self.sequence += 1
        self.written |= kind != READ

    def of(self, granules: Array, more: Array) -> tuple[Array, Array]:
        """Return the accesses to some granules that count by `Shadow.more`: index of the granule, and the rows."""
        tail = np.concatenate(self._new) if self._new else self._sorted[:0]
        self._new = [tail] if len(tail) else []
        if len(tail) > 1024 + len(self._sorted) // 8:
            self._merge(more)
            tail = tail[:0]
        found = [_rows_of(part, granules) for part in (self._sorted, tail[np.argsort(tail[:, 0], kind="stable")])]
        which, rows = (np.concatenate(parts) for parts in zip(*found))
        live = rows[:, 1] >= more[rows[:, 0]]
        return which[live], rows[live]

    def _merge(self, more: Array) -> None:
        """Sort what is new among the rest; of accesses that differ in time alone the last implies the others."""
        rows = np.concatenate([self._sorted, *self._new])
        since = more[rows[:, 0]]
        rows = rows[(since > 0) & (rows[:, 1] >= since)]
        rows = rows[np.lexsort((rows[:, 1], rows[:, 4], rows[:, 3], rows[:, 2], rows[:, 7], rows[:, 0]))]
        key = rows[:, [0, 2, 3, 4, 7]]
        self._sorted = rows[np.concatenate([(key[1:] != key[:-1]).any(axis=1), [True]])] if len(rows) else rows
        self._new = []

    def refine(self, times: int) -> None:
        """Note that granules have become `times` smaller."""
        rows = np.concatenate([self._sorted, *self._new])
        self._new = []
        self._sorted = np.repeat(rows, times, axis=0)
        self._sorted[:, 0] = self._sorted[:, 0] * times + np.tile(np.arange(times), len(rows))


class Added(NamedTuple):
    """The relaxed atomics since the last weak write, as `race_wide` keeps them: by granule the thread (-1: none, MANY)
    and its time, the block (MANY), the size of the element, and the site."""

    actor: Array
    clock: Array
    block: Array
    size: Array
    site: Array

    @staticmethod
    def none(n: int) -> Added:
        """Return no atomic to any of n granules."""
        return Added(*(np.full(n, -1, np.int32) for _ in Added._fields))


def _rows_of(rows: Array, granules: Array) -> tuple[Array, Array]:
    """Return the rows, sorted by granule, of some granules: index of the granule, and the row."""
    first = np.searchsorted(rows[:, 0], granules, "left")
    count = np.searchsorted(rows[:, 0], granules, "right") - first
    which = np.repeat(np.arange(len(granules)), count)
    return which, rows[np.arange(len(which)) + np.repeat(first - np.cumsum(count) + count, count)]


def _distinct(numbers: Array) -> Array:
    """Return numbers without those that repeat the one before."""
    kept = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=kept[1:])
    return numbers[kept]


class Shadow:
    """The remembered accesses. `w_*`: last write (actor -1: none); `r_*`: reads since, rows by reader."""

    def __init__(self, buf: Buffer, rows: int) -> None:
        size = self.size = buf.size
        self.buf = buf
        self.shift = 4
        n = -(-size // 16) + 1
        self.w_actor = np.full(n, -1, np.int32)
        self.w_clock = np.zeros(n, np.int32)
        self.w_site = np.full(n, -1, np.int32)
        self.w_kind = np.zeros(n, np.int8)  # 1: asynchronous, 2: a reduction
        self.r_actor = np.full((rows, n), -1, np.int32)  # of lane 0 of the warp
        self.r_lanes = np.zeros((rows, n), np.uint32)  # which have read
        self.r_clock = np.zeros((rows, n), np.int32)
        self.r_site = np.full((rows, n), -1, np.int32)
        self.rows: dict[int, int] = {}
        self.written = False  # of `race_wide`: whether there has been a write
        self.w_cluster: Array | None = None
        self.r_cluster: Array | None = None
        self.more = np.zeros(n, np.int32)  # since when `past` holds accesses to a granule; 0: it does not
        self.past = Past()
        self.strong: dict[int, Strong] = {}  # by granule
        self.has_strong = np.zeros(n, np.bool_)
        self.through: Array | None = None  # which noalias argument (+ 2), 1: another, -1: several
        self.changed: Array | None = None  # of these, what was written
        self.added: Added | None = None  # of `race_wide`
        self.constant: Array | None = None  # what invariant loads have read: the site, -1 for none

    @staticmethod
    def of_global(buf: Buffer) -> Shadow:
        """Return the shadow of an array in global memory, which also knows the cluster of each access."""
        s = Shadow(buf, 1)
        s.w_cluster = np.full(len(s.w_actor), -1, np.int32)
        s.r_cluster = np.full(len(s.w_actor), -1, np.int32)
        return s

    def row(self, reader: int) -> int:
        """Return the row of a reader."""
        got = self.rows.get(reader)
        if got is None:
            got = self.rows[reader] = len(self.rows)
            if got >= len(self.r_actor):
                more = len(self.r_actor)
                self.r_actor = np.concatenate([self.r_actor, np.full_like(self.r_actor[:more], -1)])
                self.r_clock = np.concatenate([self.r_clock, np.zeros_like(self.r_clock[:more])])
                self.r_lanes = np.concatenate([self.r_lanes, np.zeros_like(self.r_lanes[:more])])
                self.r_site = np.concatenate([self.r_site, np.full_like(self.r_site[:more], -1)])
        return got

    def later(self, known: Array) -> tuple[str, int, int, int] | None:
        """Note an access that is later than what is known of its actor: "read" or "write", granule, actor and site.

        `known`: of each actor a time; the actors are those of one cluster.
        """
        late = np.flatnonzero((self.w_actor >= 0) & (self.w_clock > known[self.w_actor]))
        if len(late):
            at = int(late[0])
            return "write", at, int(self.w_actor[at]), int(self.w_site[at])
        found: list[tuple[Array, ...]] = []
        if self.past.used:
            _, rows = self.past.of(np.flatnonzero(self.more), self.more)
            found.append((rows[:, 0], rows[:, 3], rows[:, 4].astype(np.uint32), rows[:, 5], rows[:, 6]))
        for row in range(len(self.rows)):
            at = np.flatnonzero(self.r_lanes[row])
            found.append((at, *(a[row][at] for a in (self.r_actor, self.r_lanes, self.r_clock, self.r_site))))
        for at, base, of, clock, site in found:
            if len(at) == 0:
                continue
            lanes = 32 if of.max() > 1 else 1
            if base.min() == base.max() and clock.max() <= known[base[0] : base[0] + lanes].min():
                continue  # all at once: one reader, and the last of its reads is known of all its lanes
            actors = np.minimum(base[:, None] + np.arange(32), len(known) - 1)
            bad = ((of[:, None] & BITS) != 0) & (clock[:, None] > known[actors])
            if bad.any():
                i, j = (int(x[0]) for x in np.nonzero(bad))
                return "read", int(at[i]), int(actors[i, j]), int(site[i])
        for at, strong in self.strong.items():
            for sort, all_ in strong.against(None, -1, -1, True):
                for by in all_:
                    if by.time > known[by.actor]:
                        return ("write" if sort.store else "read"), at, by.actor, by.site
        return None

    def refine(self, shift: int) -> None:
        """Halve the granules until they have 2^shift bytes."""
        times = 1 << (self.shift - shift)
        for name in (
            "w_actor",
            "w_clock",
            "w_site",
            "w_kind",
            "w_cluster",
            "r_cluster",
            "more",
            "has_strong",
            "through",
            "changed",
            "constant",
        ):
            a = getattr(self, name)
            if a is not None:
                setattr(self, name, np.repeat(a, times))
        self.past.refine(times)
        if self.added is not None:
            self.added = Added(*(np.repeat(a, times) for a in self.added))
        self.strong = {k * times + i: s.copy() for k, s in self.strong.items() for i in range(times)}
        for name in ("r_actor", "r_lanes", "r_clock", "r_site"):
            setattr(self, name, np.repeat(getattr(self, name), times, axis=1))
        self.shift = shift

    def granules(self, off: Array, nbytes: int, align: int) -> Array:
        """Return the granules of an access of `nbytes` at each offset: shape (accesses, granules)."""
        unit = nbytes & -nbytes
        if align < unit:
            unit = align
        if unit < 16 and unit < 1 << self.shift:
            self.refine(unit.bit_length() - 1)
        s = self.shift
        first = off >> s
        n = max(1, nbytes >> s)
        return first[:, None] + np.arange(n) if n > 1 else first[:, None]

    def span(self, first: int, nbytes: int) -> Array:
        """Return the granules of a range of bytes."""
        return np.arange(first >> self.shift, -(-(first + nbytes) >> self.shift) if nbytes else first >> self.shift)

    def elements(self, offsets: Array, size: int) -> Array:
        """Return the granules of elements of `size` bytes, a multiple of which each offset is, row by row in order;
        made smaller first where they hold other bytes, too.
        """
        if size < 1 << self.shift and len(_distinct(offsets >> self.shift)) << self.shift != len(offsets) * size:
            self.refine((size & -size).bit_length() - 1)
        step = 1 << self.shift
        parts = (offsets[:, None] + np.arange(0, size, step)).reshape(-1) if size > step else offsets
        return _distinct(parts >> self.shift)

    def units(self, units: Array) -> Array:
        """Return the granules of units of 16 bytes."""
        if self.shift == 4:
            return units
        k = 1 << (4 - self.shift)
        return (units[:, None] * k + np.arange(k)).reshape(-1)


__all__ = ["BITS", "MANY", "READ", "REDUCED", "WRITTEN", "Added", "Past", "Shadow"]
