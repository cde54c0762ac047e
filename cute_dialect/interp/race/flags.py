"""Synchronization through memory: flags, counters and locks, according to the PTX memory model.

Strong accesses (volatile, relaxed, acquire, release, atomics) order other accesses across blocks in two steps:

- release: a thread writes a flag with `.release`, or writes it strongly after a fence. The write carries a message: the
  thread's own earlier accesses and those ordered before them
- acquire: a thread that reads this value with `.acquire`, or reads it strongly and then executes a fence, receives the
  message. The message of an atomic is added to the earlier ones; any other write replaces them

Both scopes must include the other thread: `.sys` if it runs on another GPU, `.gpu` if it belongs to another cluster. A
message holds one table of `clocks` per cluster. The table of the reader's own cluster is joined into the thread's
table. Tables of other clusters go to the log of the reader's cluster, together with the thread and time of the acquire.
Barriers then need not carry them: every thread ordered after that time has the log entry.

Source: PTX ISA 9.0, 8.7 "Ordering", 8.8 "Release and Acquire Patterns", 8.9.5 "Causality Order".
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cute_dialect.interp.race.clocks import MEMORY, PROXY_GLOBAL
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.memory.accesses import Site
    from cute_dialect.interp.memory.buffers import Buffer
    from cute_dialect.interp.race.clocks import WarpClocks

WEAK, RELAXED, ACQUIRE, RELEASE, ACQ_REL = range(5)
ACQUIRES, RELEASES = (ACQUIRE, ACQ_REL), (RELEASE, ACQ_REL)
CTA, CLUSTER, GPU, SYS = range(4)
SCOPES = ("cta", "cluster", "gpu", "sys")


class Place(NamedTuple):
    """The block, cluster and rank of a thread. Clusters of all ranks have different numbers, blocks of a launch too."""

    block: int
    cluster: int
    rank: int = 0

    def scope(self, other: Place) -> int:
        """Return the narrowest scope that includes threads of both places."""
        if self.cluster == other.cluster:
            return CTA if self.block == other.block else CLUSTER
        return GPU if self.rank == other.rank else SYS


def place_of(g: Group, lane: int) -> Place:
    """Return the place of a lane."""
    cluster = g.clocks.cluster
    return Place(g.block_of(lane), cluster.number, cluster.rank)


class Fence(NamedTuple):
    """A fence that orders memory accesses within a scope. `order` is WEAK if it only affects proxies.

    - proxy: spaces in which generic accesses become visible to the asynchronous proxy
    - init: mbarrier.init becomes visible to uses of the mbarrier
    - maps: RELEASE or ACQUIRE of writes to a tensor map, else WEAK
    """

    order: int = WEAK
    scope: int = GPU
    proxy: tuple[str, ...] = ()
    init: bool = False
    maps: int = WEAK


class Sync(NamedTuple):
    """Memory order of an mbarrier arrival or wait. A relaxed one orders memory only together with fences.

    `scope` is GPU if the instruction specifies none. PTX defaults to `.cta`, but libraries omit it for clusters too.
    """

    relaxed: bool = False
    scope: int = GPU


Known: TypeAlias = "dict[int, Array]"
"""Maps a cluster number to its table."""


def join(parts: Iterable[Known]) -> Known:
    """Join messages: the elementwise maximum of their tables. Tables may be shared, so none is modified."""
    out: Known = {}
    for part in parts:
        for number, table in part.items():
            old = out.get(number)
            if old is None:
                out[number] = table
            elif old is not table:
                out[number] = np.maximum(old, table)
    return out


class Snapshot:
    """The clocks of a warp at a fence."""

    __slots__ = ("clock", "copied", "extras", "log", "made", "scope", "table")

    def __init__(self, clocks: WarpClocks, scope: int) -> None:
        self.scope = scope
        self.clock = clocks.clock
        self.copied = clocks.cluster.copied[clocks.first : clocks.first + 32].copy()
        self.table = clocks.table.copy()
        self.extras = {lane: t.copy() for lane, t in clocks.extras.items()}
        self.log = len(clocks.cluster.log)
        self.made: dict[int, Known] = {}

    def message(self, clocks: WarpClocks, lane: int) -> Known:
        """Return the message of a lane's strong write after the fence."""
        got = self.made.get(lane)
        if got is None:
            cluster = clocks.cluster
            own = clocks.first + lane
            table = self.extras.get(lane, self.table).copy()
            table[MEMORY, own] = self.clock
            table[MEMORY, own + cluster.threads] = max(table[MEMORY, own + cluster.threads], self.copied[lane])
            entries = cluster.log[: self.log]
            known = [k for actor, time, k in entries if actor == own or table[MEMORY, actor] >= time]
            got = self.made[lane] = join([*known, {cluster.number: table}])
        return got


class _Flag:
    """The messages at an address, keyed by the scope of the write and the place of the writer.

    `version` changes with each write.
    """

    __slots__ = ("messages", "version")

    def __init__(self) -> None:
        self.messages: dict[tuple[int, Place], Known] = {}
        self.version = 0


class Flags:
    """Addresses that were written strongly, with their messages."""

    def __init__(self) -> None:
        self._flags: dict[int, dict[int, _Flag]] = {}
        # (cluster, actor) -> scope -> time of the thread's last releasing fence of that scope
        self._fences: dict[tuple[int, int], dict[int, int]] = {}

    def fence(self, g: Group, lanes: Sequence[int], order: int, scope: int) -> None:
        """Record a fence of threads: it releases for later strong writes and acquires for earlier strong reads."""
        clocks = g.clocks
        if order in ACQUIRES:
            for lane in lanes:
                waiting = clocks.pending.pop(lane, [])
                self._learn(g, lane, [k for k, needs in waiting if scope >= needs])
                left = [(k, needs) for k, needs in waiting if scope < needs]
                if left:
                    clocks.pending[lane] = left
        if order not in RELEASES:
            return
        snapshot = Snapshot(clocks, scope)
        clocks.clock += 1
        for lane in lanes:
            self._fences.setdefault((clocks.cluster.number, clocks.first + lane), {})[scope] = snapshot.clock
            wider = [s for s in clocks.fenced.get(lane, ()) if s.scope > scope]
            clocks.fenced[lane] = [*wider, snapshot]

    def is_fenced(self, cluster: int, actor: int, clock: int, scope: int) -> bool:
        """Return True if a thread has executed a releasing fence of at least a scope after its access at a time."""
        return any(s >= scope and time >= clock for s, time in self._fences.get((cluster, actor), {}).items())

    def fence_proxy(self, g: Group, lanes: Sequence[int]) -> None:
        """Record a `fence.proxy.async` of global memory.

        Accesses of other clusters that are ordered before these lanes become visible to the asynchronous proxy.
        """
        clocks = g.clocks
        if not clocks.cluster.log:
            return
        for lane in lanes:
            known = join(k for k, seen in self._entries(clocks, np.array([lane])) if seen.all())
            if known:
                tables = {n: t.copy() for n, t in known.items()}
                for t in tables.values():
                    np.maximum(t[PROXY_GLOBAL], t[MEMORY], out=t[PROXY_GLOBAL])
                clocks.cluster.log.append((clocks.first + lane, clocks.clock, tables))

    def access(self, g: Group, site: Site, buf: Buffer, off: Array, lanes: Array) -> None:
        """Record an access by lanes that has passed the race check. `off` holds one offset per lane, or one for all."""
        known = self._flags.get(id(buf.root))
        scalar = site.leaf.kind == "i" and not site.leaf.shape
        if site.order == WEAK or not scalar:
            if site.store and known:
                for at in off.tolist():
                    known.pop(at, None)
            return
        clocks = g.clocks
        for lane, at in zip(lanes.tolist(), np.broadcast_to(off, len(lanes)).tolist()):
            flag = known.get(at) if known is not None else None
            if flag is not None and site.observes:
                self._read(g, lane, at, flag, site)
            if not site.store:
                continue
            passed = self._passed_on(clocks, lane, site)
            if not passed and flag is None:
                continue
            if known is None:
                known = self._flags[id(buf.root)] = {}
            if flag is None:
                flag = known[at] = _Flag()
            flag.version += 1
            if site.atomic:  # An atomic also carries the messages that it observed (8.9.2 "Observation Order").
                flag.messages = {k: m for k, m in flag.messages.items() if self._reaches(g, lane, k, site.scope)}
            else:
                flag.messages = {}
            for scope, message in passed:
                key = (scope, place_of(g, lane))
                old = flag.messages.get(key)
                flag.messages[key] = message if old is None else join([old, message])

    @staticmethod
    def _passed_on(clocks: WarpClocks, lane: int, site: Site) -> list[tuple[int, Known]]:
        """Return the (scope, message) pairs of a strong write: earlier fences, and the write if it is a release."""
        out = [(min(s.scope, site.scope), s.message(clocks, lane)) for s in clocks.fenced.get(lane, ())]
        if site.order in RELEASES:
            out.append((site.scope, Snapshot(clocks, site.scope).message(clocks, lane)))
            clocks.clock += 1
        return out

    def _read(self, g: Group, lane: int, at: int, flag: _Flag, site: Site) -> None:
        clocks = g.clocks
        if clocks.observed.get((lane, id(flag))) == flag.version:
            return
        clocks.observed[lane, id(flag)] = flag.version
        found: list[tuple[Known, int]] = []
        for key, known in flag.messages.items():
            if self._reaches(g, lane, key, site.scope):
                found.append((known, self._needs(g, lane, key)))
        if site.order in ACQUIRES:
            self._learn(g, lane, [k for k, _ in found])
        elif found:
            clocks.pending.setdefault(lane, []).extend(found)

    @staticmethod
    def _needs(g: Group, lane: int, by: tuple[int, Place]) -> int:
        """Return the narrowest scope that includes both a lane and the writer of a message."""
        return by[1].scope(place_of(g, lane))

    def _reaches(self, g: Group, lane: int, by: tuple[int, Place], scope: int) -> bool:
        """Return True if both scopes include the other thread."""
        return min(scope, by[0]) >= self._needs(g, lane, by)

    def _learn(self, g: Group, lane: int, known: list[Known]) -> None:
        if not known:
            return
        clocks = g.clocks
        cluster = clocks.cluster
        all_ = join(known)
        own = all_.pop(cluster.number, None)
        if own is not None:
            clocks.acquire(g, own, [lane])
        if all_:
            cluster.log.append((clocks.first + lane, clocks.clock, all_))

    @staticmethod
    def _entries(clocks: WarpClocks, lanes: Array) -> Iterable[tuple[Known, Array]]:
        """Yield the log from latest to earliest: each message, and a mask of the lanes that have it."""
        own = clocks.first + lanes
        for actor, time, known in reversed(clocks.cluster.log):
            yield known, (own == actor) | (clocks.known(MEMORY, np.full(len(lanes), actor), lanes) >= time)

    def ordered(self, g: Group, lanes: Array, other: Array, actor: Array, clock: Array, row: int) -> Array:
        """Return a mask, of shape (lanes, n), of the accesses by other clusters that are ordered before lanes.

        `row` selects the row of the tables.
        """
        clocks = g.clocks
        ok = np.zeros(actor.shape, np.bool_)
        if not clocks.cluster.log:
            return ok
        numbers = [n for n in np.unique(other).tolist() if n >= 0 and n != clocks.cluster.number]
        for known, seen in self._entries(clocks, lanes):
            for n in numbers:
                table = known.get(n)
                if table is not None:
                    ok |= (other == n) & seen[:, None] & (clock <= table[row][actor])
        return ok

    def only_observed(self, g: Group, lane: int, other: int, actor: int, clock: int) -> bool:
        """Return True if a lane has read the flag that orders an access but lacks the fence after it."""
        tables = [k[other] for k, _ in g.clocks.pending.get(lane, ()) if other in k]
        return any(clock <= int(t[MEMORY, actor]) for t in tables)
