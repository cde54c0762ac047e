"""Shadow memory of a buffer: the last write and the reads since, per granule, and the strong accesses.

A granule starts as 16 bytes and is halved whenever an access is smaller. One granule therefore never holds two accesses
that do not overlap. Reads by the threads of a warp at one time form one read. Shared memory keeps the last read in one
row per warp and per asynchronous reader, global memory in a single row. Reads that a later read of the row does not
imply, and the writes of several reductions, go to `Past`.

`Shadow.strong` holds the strong accesses. Two unordered accesses are not a data race if they are morally strong. Then
both are strong, use the same proxy, and access exactly the same bytes, and each has a scope that includes the other
thread. Source: PTX ISA 9.0, 8.7.1 "Morally strong operations", 8.7.2 "Conflict and Data-races", 8.7.3 "Limitations on
Mixed-size Data-races".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.race.flags import SYS, Place
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.memory.buffers import Buffer

MANY = -2
READ, WRITTEN, REDUCED = range(3)
BITS = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))


class Past:
    """Accesses that the rows of a shadow cannot hold, in order. Those before number `Shadow.more` are obsolete.

    Columns: granule, sequence number, cluster, actor of lane 0, lane mask, time, site, and READ, WRITTEN or REDUCED.
    """

    _COLUMNS = 8

    def __init__(self) -> None:
        self.sequence = 1
        self.written = False  # True if any of them is a write
        self._sorted: Array = np.zeros((0, self._COLUMNS), np.int64)  # by granule
        self._new: list[Array] = []

    @property
    def used(self) -> bool:
        """Return True if an access was ever added. If not, `Shadow.more` is all zeros."""
        return self.sequence > 1

    def add(
        self, granules: Array, cluster: Array | int, base: Array | int, lanes: Array | int, time: Array | int,
        site: Array | int, kind: int,
    ) -> None:  # fmt: skip
        """Append accesses to granules. An int is used for all granules."""
        rows = np.empty((len(granules), self._COLUMNS), np.int64)
        for i, column in enumerate((granules, self.sequence, cluster, base, lanes, time, site, kind)):
            rows[:, i] = column
        self._new.append(rows)
        self.sequence += 1
        self.written |= kind != READ

    def of(self, granules: Array, more: Array) -> tuple[Array, Array]:
        """Return the accesses to some granules that are not obsolete, as indices into `granules` and rows."""
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
        """Merge new rows into the sorted ones. Rows that differ only in time are replaced by the latest."""
        rows = np.concatenate([self._sorted, *self._new])
        since = more[rows[:, 0]]
        rows = rows[(since > 0) & (rows[:, 1] >= since)]
        rows = rows[np.lexsort((rows[:, 1], rows[:, 4], rows[:, 3], rows[:, 2], rows[:, 7], rows[:, 0]))]
        key = rows[:, [0, 2, 3, 4, 7]]
        self._sorted = rows[np.concatenate([(key[1:] != key[:-1]).any(axis=1), [True]])] if len(rows) else rows
        self._new = []

    def refine(self, times: int) -> None:
        """Convert to granules that are smaller by the factor `times`."""
        rows = np.concatenate([self._sorted, *self._new])
        self._new = []
        self._sorted = np.repeat(rows, times, axis=0)
        self._sorted[:, 0] = self._sorted[:, 0] * times + np.tile(np.arange(times), len(rows))


class Added(NamedTuple):
    """The relaxed atomics since the last weak write, per granule, for `lockstep`.

    Fields: thread (-1 for none, or MANY), its time, block (or MANY), element size, and site.
    """

    actor: Array
    clock: Array
    block: Array
    size: Array
    site: Array

    @staticmethod
    def none(n: int) -> Added:
        """Return the state of n granules without atomics."""
        return Added(*(np.full(n, -1, np.int32) for _ in Added._fields))


def _rows_of(rows: Array, granules: Array) -> tuple[Array, Array]:
    """Return the rows of some granules, as indices into `granules` and rows. `rows` are sorted by granule."""
    first = np.searchsorted(rows[:, 0], granules, "left")
    count = np.searchsorted(rows[:, 0], granules, "right") - first
    which = np.repeat(np.arange(len(granules)), count)
    return which, rows[np.arange(len(which)) + np.repeat(first - np.cumsum(count) + count, count)]


def _distinct(numbers: Array) -> Array:
    """Return the numbers without repetitions of the previous one."""
    kept = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=kept[1:])
    return numbers[kept]


class Shadow:
    """Recorded accesses. `w_*`: last write (actor -1 for none); `r_*`: reads since, with one row per reader."""

    def __init__(self, buf: Buffer, rows: int) -> None:
        size = self.size = buf.size
        self.buf = buf
        self.shift = 4
        n = -(-size // 16) + 1
        self.w_actor = np.full(n, -1, np.int32)
        self.w_clock = np.zeros(n, np.int32)
        self.w_site = np.full(n, -1, np.int32)
        self.w_kind = np.zeros(n, np.int8)  # 1: by the asynchronous proxy, 2: a reduction
        self.r_actor = np.full((rows, n), -1, np.int32)  # of lane 0 of the warp
        self.r_lanes = np.zeros((rows, n), np.uint32)  # mask of the lanes that have read
        self.r_clock = np.zeros((rows, n), np.int32)
        self.r_site = np.full((rows, n), -1, np.int32)
        self.rows: dict[int, int] = {}
        self.written = False  # for `lockstep`: True after the first write
        self.w_cluster: Array | None = None
        self.r_cluster: Array | None = None
        self.more = np.zeros(n, np.int32)  # sequence number from which `past` counts for a granule, 0 for never
        self.past = Past()
        self.strong: dict[int, Strong] = {}  # by granule
        self.has_strong = np.zeros(n, np.bool_)
        # number + 2 of the noalias argument of the accesses, 1 for another pointer, -1 for several
        self.through: Array | None = None
        self.through_in = 0  # launch of `through`, by the number of its first block
        self.changed: Array | None = None  # True if any of these accesses was a write
        self.added: Added | None = None  # for `lockstep`
        self.constant_by: Array | None = None  # cluster of `constant`, if there are several ranks
        self.constant: Array | None = None  # site of the invariant load that has read the granule, -1 for none

    @staticmethod
    def of_global(buf: Buffer) -> Shadow:
        """Return the shadow of an array in global memory, which also records the cluster of each access."""
        s = Shadow(buf, 1)
        s.w_cluster = np.full(len(s.w_actor), -1, np.int32)
        s.r_cluster = np.full(len(s.w_actor), -1, np.int32)
        return s

    def row(self, reader: int) -> int:
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
        """Return an access that is later than `known`: "read" or "write", granule, actor and site.

        `known` is a time for each actor. All actors are of one cluster.
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
                continue  # Fast path: one reader, and its last read is known for all of its lanes.
            actors = np.minimum(base[:, None] + np.arange(32), len(known) - 1)
            bad = ((of[:, None] & BITS) != 0) & (clock[:, None] > known[actors])
            if bad.any():
                i, j = (int(x[0]) for x in np.nonzero(bad))
                return "read", int(at[i]), int(actors[i, j]), int(site[i])
        for at, strong in self.strong.items():
            for sort, all_ in strong.against(None, _NOWHERE, True):
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
            "constant_by",
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
        """Return the granules of an access of `nbytes` at each offset, of shape (accesses, granules)."""
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
        """Return the granules of elements of `size` bytes, in order. Each offset is a multiple of `size`.

        Granules that also contain other bytes are refined first.
        """
        if size < 1 << self.shift and len(_distinct(offsets >> self.shift)) << self.shift != len(offsets) * size:
            self.refine((size & -size).bit_length() - 1)
        step = 1 << self.shift
        parts = (offsets[:, None] + np.arange(0, size, step)).reshape(-1) if size > step else offsets
        return _distinct(parts >> self.shift)

    def units(self, units: Array) -> Array:
        """Return the granules of 16-byte units."""
        if self.shift == 4:
            return units
        k = 1 << (4 - self.shift)
        return (units[:, None] * k + np.arange(k)).reshape(-1)


NO_UPDATE, UPDATE, COMPARES = range(3)
"""Kinds of strong accesses: a load or a store, an atomic, and an atomic that stores only after the expected value."""


class Sort(NamedTuple):
    """A class of strong accesses: write or read, scope, first byte, element size, and the update of an atomic."""

    store: bool
    scope: int
    start: int
    size: int
    update: int  # NO_UPDATE, UPDATE or COMPARES


class By(NamedTuple):
    """The origin of a strong access: cluster, block, actor, time, site and rank."""

    cluster: int
    block: int
    actor: int
    time: int
    site: int
    rank: int


_NOWHERE = Place(-1, -1)


class Strong:
    """The strong accesses to a granule since its last weak write: the last one per thread and sort."""

    __slots__ = ("_sorts",)

    def __init__(self) -> None:
        self._sorts: dict[Sort, dict[tuple[int, int], By]] = {}

    def copy(self) -> Strong:
        """Return an independent copy."""
        out = Strong()
        out._sorts = {s: dict(all_) for s, all_ in self._sorts.items()}
        return out

    def add(self, sort: Sort, by: By) -> None:
        self._sorts.setdefault(sort, {})[by.cluster, by.actor] = by

    def written(self) -> By | None:
        """Return one of the writes, None if there is none."""
        return next((by for sort, all_ in self._sorts.items() if sort.store for by in all_.values()), None)

    def against(
        self, sort: Sort | None, place: Place, store: bool, widest: int = SYS
    ) -> Iterator[tuple[Sort, list[By]]]:
        """Yield the accesses that must be ordered before an access of `sort` (None for a weak one) at a place.

        `widest`: the narrowest scope that includes all threads of the run.
        """
        for other, all_ in self._sorts.items():
            if not (store or other.store):
                continue
            found = list(all_.values())
            if sort is not None and (sort.start, sort.size) == (other.start, other.size):
                scope = min(sort.scope, other.scope)
                if scope >= widest:
                    continue
                found = [by for by in found if scope < place.scope(Place(by.block, by.cluster, by.rank))]
            if found:
                yield other, found
