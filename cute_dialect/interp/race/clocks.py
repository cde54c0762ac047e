"""Vector clocks for race detection.

Every access is stamped with an actor and the actor's time. Actors are the threads of a cluster and the cp.async copies
of each thread. Further actors are created on first use: the copies that signal an mbarrier, the bulk copies of a thread
and the wgmma of a warpgroup. The clock of a thread is a table with one column per actor. An entry is the latest time of
that actor that happens before the thread's current time. The table has five rows:

- MEMORY: order seen by the generic proxy; for copies, order established by waiting for them
- PROXY, PROXY_CLUSTER, PROXY_GLOBAL: accesses that are also visible to the asynchronous proxy because of a
  `fence.proxy.async`, in the shared memory of the actor's own block, of another block, and in global memory
- EXECUTION: order of execution alone, without visibility of memory, as after a relaxed cluster barrier

Synchronization sends tables and joins them by their maximum. Source: PTX ISA 9.0, 8 "Memory Consistency Model".

**Programmatic dependent launch.** A kernel that contains `griddepcontrol.wait`, or is launched with `cute.pdl`, is
assumed to start while preceding grids still run. Only a thread that has executed the wait, or is ordered after one that
has, may read data written by those grids. The same holds for overwriting data that they read. Both rules cover the
memory of every argument except those marked `cute.independent`. Mark an argument if no preceding grid writes it, nor
reads it where this kernel writes it, such as weights.

Source: PTX ISA 9.0, 9.7.13 "griddepcontrol": `.wait` waits until all prerequisite grids in flight have completed and
their memory operations are performed and made visible to the current grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import Fault, attr_of
from cute_dialect.interp.memory.arguments import Argument, Pointer
from cute_dialect.interp.memory.tensor_map import TensorMap
from cute_dialect.interp.types import round_up
from cute_dialect.interp.values import Array

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Operation

    from cute_dialect.interp.compiler.function_compiler import Function
    from cute_dialect.interp.machine.barriers import MBarrier
    from cute_dialect.interp.machine.group import Group, Machine
    from cute_dialect.interp.memory.buffers import Buffer
    from cute_dialect.interp.race.flags import Known, Snapshot
    from cute_dialect.interp.values import Array


MEMORY, PROXY, EXECUTION, PROXY_CLUSTER, PROXY_GLOBAL = ROWS = range(5)
_PROXY_ROWS = {"shared::cta": PROXY, "shared::cluster": PROXY_CLUSTER, "global": PROXY_GLOBAL}
EXTRA = 1024  # columns for actors that are created on first use
FOREVER = np.int32(2**31 - 1)


class ClusterClocks:
    """The actors of a cluster of a launch.

    Column -1 of every table is ordered before everything. So are the columns that pad the last warp of a block.
    """

    def __init__(self, number: int, machine: Machine, blocks: Sequence[int]) -> None:
        self.number = number
        self.machine = machine
        self.rank = machine.rank
        self.per_block = per_block = machine.threads
        self.padded = round_up(per_block, 32)
        self.threads = self.padded * len(blocks)
        self.blocks = list(blocks)
        self.columns = 2 * self.threads + EXTRA + 1
        self.copied = np.zeros(self.threads, np.int32)  # cp.async groups that each thread has waited for
        self.names: dict[int, str] = {}
        self.kinds: dict[int, str] = {}
        self._actors: dict[tuple[str, int], int] = {}
        self._of_block: dict[int, Array] = {}
        self._barriers: list[MBarrier] = []  # referenced here so that their ids are not reused
        # (actor, time, message) for each message of other clusters that a thread received, see `flags`
        self.log: list[tuple[int, int, Known]] = []

    def actor(self, kind: str, key: int, name: str) -> int:
        """Return the column of an actor that is not a thread. `kind`: "mbarrier", "bulk", "bulk write" or "wgmma"."""
        got = self._actors.get((kind, key))
        if got is None:
            # If the columns run out, new actors share the last one. Sharing may hide a race but cannot invent one.
            got = 2 * self.threads + min(len(self._actors), EXTRA - 1)
            self._actors[(kind, key)] = got
            self.names[got] = name
            self.kinds[got] = kind
        return got

    def mbarrier(self, bar: MBarrier) -> int:
        """Return the column of an mbarrier, allocated on first use."""
        if bar.actor < 0:
            bar.actor = self.actor("mbarrier", id(bar), bar.name)
            self._barriers.append(bar)
        return bar.actor

    def table(self) -> Array:
        """Return a fresh table, which orders nothing but the constant columns."""
        t = np.zeros((len(ROWS), self.columns), np.int32)
        t[:, -1] = FOREVER
        t[:, : self.threads].reshape(len(ROWS), -1, self.padded)[:, :, self.per_block :] = FOREVER
        return t

    def executed(self, table: Array) -> Array:
        """Return a table that keeps only the EXECUTION row."""
        out = self.table()
        out[EXECUTION] = table[EXECUTION]
        return out

    def of_block(self, rank: int) -> Array:
        """Return a mask of the columns of a block's threads and of their cp.async copies."""
        got = self._of_block.get(rank)
        if got is None:
            got = self._of_block[rank] = np.zeros(self.columns, np.bool_)
            first = rank * self.padded
            got[first : first + self.padded] = got[self.threads + first : self.threads + first + self.padded] = True
        return got

    def kind(self, actor: int) -> str:
        """Return the kind of an actor: "thread", "cp.async", or the kind that it was created with."""
        if actor < self.threads:
            return "thread"
        return "cp.async" if actor < 2 * self.threads else self.kinds.get(actor, "")


class WarpClocks:
    """Vector clocks of a warp: `table` for the warp, and `extras` for lanes that have synchronized individually."""

    __slots__ = ("clock", "cluster", "extras", "fenced", "first", "inits", "observed", "pending", "slot", "table")

    def __init__(self, cluster: ClusterClocks, first: int) -> None:
        self.cluster = cluster
        self.first = first  # actor of lane 0
        self.slot = first // 32
        self.clock = 1
        self.table = cluster.table()
        self.extras: dict[int, Array] = {}
        self.inits: list[tuple[int, MBarrier]] = []
        # per lane, its last fence of each scope; narrower earlier fences are dropped
        self.fenced: dict[int, list[Snapshot]] = {}
        # per lane, messages that it has observed but not yet acquired
        self.pending: dict[int, list[tuple[Known, int]]] = {}
        self.observed: dict[tuple[int, int], int] = {}  # version of each flag that a lane last observed

    def of(self, lane: int) -> Array:
        """Return the table of a lane: its own, or the warp's."""
        return self.extras.get(lane, self.table)

    def known(self, row: int, actors: Array, lanes: Array) -> Array:
        """Return the times of some actors that each lane (first axis) is ordered after."""
        out = self.table[row][actors]
        for lane, extra in self.extras.items():
            mine = lanes == lane
            if mine.any():
                out[mine] = extra[row][actors[mine]]
        return out

    def release(self, g: Group, lanes: Sequence[int] | None = None) -> Array:
        """Return the table that lanes (None: the active ones) release. Their later accesses are not part of it."""
        whole = lanes is None and whole_warp(g)
        chosen = g.mask.idx.tolist() if lanes is None else list(lanes)
        if whole:
            out = self.table.copy()
            for extra in self.extras.values():
                np.maximum(out, extra, out=out)
        else:
            out = self.of(chosen[0]).copy()
            for lane in chosen[1:]:
                extra = self.extras.get(lane)
                np.maximum(out, self.table if extra is None else extra, out=out)
        own = self.first + np.asarray(chosen)
        out[MEMORY, own] = out[EXECUTION, own] = self.clock
        copies = own + self.cluster.threads
        out[MEMORY, copies] = np.maximum(out[MEMORY, copies], self.cluster.copied[own])
        self.clock += 1
        return out

    def release_by_fences(self, g: Group, lanes: Sequence[int], scope: int, needs: int) -> Array:
        """Return the table that lanes release by a relaxed arrival.

        It contains their execution. It also contains the accesses before a fence if the scopes of fence and arrival
        include the waiting threads. Source: PTX ISA 9.0, 8.8 "Release and Acquire Patterns", a fence followed by a
        strong write.
        """
        out = self.cluster.executed(self.release(g, lanes))
        for lane in lanes if scope >= needs else ():
            for snapshot in self.fenced.get(lane, ()):
                if snapshot.scope >= needs:
                    np.maximum(out, snapshot.message(self, lane)[self.cluster.number], out=out)
        return out

    def acquire(self, g: Group, message: Array, lanes: Sequence[int] | None = None) -> None:
        """Join a released table into the tables of lanes (None: the active ones)."""
        if whole_warp(g) if lanes is None else len(lanes) == _live(g):
            np.maximum(self.table, message, out=self.table)
            for extra in self.extras.values():
                np.maximum(extra, message, out=extra)
            return
        for lane in g.mask.idx.tolist() if lanes is None else lanes:
            extra = self._own(lane)
            np.maximum(extra, message, out=extra)

    def learn(self, g: Group, lanes: Sequence[int], actor: int, time: int) -> None:
        """Order lanes after an actor's accesses up to a time."""
        if len(lanes) == _live(g):
            self.table[MEMORY, actor] = max(self.table[MEMORY, actor], time)
            for extra in self.extras.values():
                extra[MEMORY, actor] = max(extra[MEMORY, actor], time)
            return
        for lane in lanes:
            extra = self._own(lane)
            extra[MEMORY, actor] = max(extra[MEMORY, actor], time)

    def synchronise(self, g: Group, lanes: Sequence[int] | None = None) -> None:
        """Execute a `bar.warp.sync` of lanes (None: the active ones)."""
        message = self.release(g, lanes)
        if whole_warp(g) and lanes is None:
            self.table = message
            self.extras.clear()
        else:
            self.acquire(g, message, lanes)

    def fence_proxy(self, g: Group, spaces: Sequence[str]) -> None:
        """Execute `fence.proxy.async`: make accesses ordered before the active lanes visible to the async proxy.

        `spaces` lists the memory that the fence covers. For threads of another block, `shared::cta` covers only their
        writes to the shared memory of this block.
        """
        cluster = self.cluster
        lanes = g.mask.idx
        if whole_warp(g):
            tables = [(self.table, lanes), *((t, lanes) for t in self.extras.values())]
        else:
            tables = [(self._own(lane), np.array([lane])) for lane in lanes.tolist()]
        foreign = ~cluster.of_block(self.first // cluster.padded)
        for t, fencing in tables:
            own = self.first + fencing
            copies = own + cluster.threads
            seen = t[MEMORY].copy()
            seen[own] = self.clock
            seen[copies] = np.maximum(seen[copies], cluster.copied[own])
            for space in spaces:
                row = _PROXY_ROWS[space]
                np.maximum(t[row], seen, out=t[row])
                if space == "shared::cta":
                    np.maximum(t[PROXY_CLUSTER], seen, out=t[PROXY_CLUSTER], where=foreign)
        self.clock += 1

    def _own(self, lane: int) -> Array:
        """Return the lane's own table, copied from the warp's on first use."""
        got = self.extras.get(lane)
        if got is None:
            got = self.extras[lane] = self.table.copy()
        return got


class Meeting:
    """The tables released at a barrier: `pending` in the current phase, `done` for completed phases.

    Tables that threads of other blocks release at an mbarrier are kept apart (`far`, `far_done`), for waits of block
    scope. `uses` holds the last use by each actor. For a named barrier, `parties` lists the arrivals of this phase as
    (actor, time, site), and `before` those of the previous phase.
    """

    __slots__ = ("actor", "bar", "before", "done", "far", "far_done", "fenced", "init", "parties", "pending", "uses")

    def __init__(self, bar: MBarrier | None = None, actor: int = -1, init: tuple[int, int] = (-1, 0)) -> None:
        self.bar = bar
        self.actor = actor
        self.init = init  # (actor, time) of the mbarrier.init
        self.fenced = False
        self.pending: Array | None = None
        self.done: Array | None = None
        self.far: Array | None = None
        self.far_done: Array | None = None
        self.parties: list[tuple[int, int, int]] = []
        self.before: list[tuple[int, int, int]] = []
        self.uses: dict[tuple[int, ...], int] = {}

    def add(self, message: Array, far: bool = False) -> None:
        """Release a table. `far` is True if the mbarrier belongs to another block."""
        held = self.far if far else self.pending
        if held is not None:
            np.maximum(held, message, out=held)
        elif far:
            self.far = message
        else:
            self.pending = message

    def complete(self) -> None:
        """Complete the phase, so that waits acquire the released tables."""
        self.before, self.parties = self.parties, []
        if self.far is not None:
            self.far_done, self.far = self.far, self.far.copy()
            if self.pending is None:
                self.pending = np.zeros_like(self.far)
        if self.pending is None:
            return
        if self.bar is not None and self.actor >= 0:
            for row in (MEMORY, EXECUTION):
                self.pending[row, self.actor] = max(self.pending[row, self.actor], self.bar.phase)
        self.done = self.pending
        self.pending = self.done.copy()


def whole_warp(g: Group) -> bool:
    """Return True if all live threads of the warp are active."""
    return g.mask.bits is None or g.mask.n == _live(g)


def _live(g: Group) -> int:
    return g.lanes - int(np.count_nonzero(g.dead))


# --------------------------------------------------------------------------------------------------- dependent launches


WAIT = "griddepcontrol.wait"
MARK = "cute.independent"


class PrecedingGrids:
    """The grids that a launch depends on. `buffers` holds the ids of the buffers that they may access."""

    def __init__(self, buffers: set[int]) -> None:
        self._buffers = buffers

    @staticmethod
    def of(
        fn: Function, func: Operation, args: Sequence[Argument], find: Callable[[Array], Buffer | None], dependent: bool
    ) -> PrecedingGrids | None:
        """Return the preceding grids of a launch. None if it is not `dependent` and the kernel never waits.

        `find` returns the buffer of an array of the arguments.
        """
        if not dependent and not _waits(fn):
            return None
        marked = [MARK in getattr(a, "data", ()) for a in getattr(attr_of(func, "arg_attrs"), "data", ())]
        shared = [x for i, a in enumerate(args) if not any(marked[i : i + 1]) for x in _arrays(a)]
        return PrecedingGrids({id(b.root) for b in map(find, shared) if b is not None})

    def waited(self, g: Group) -> None:
        """Record that the active lanes have waited: what precedes the launch is ordered before their later accesses."""
        clocks, lanes = g.clocks, g.mask.idx.tolist()
        clocks.learn(g, lanes, _actor(g), 1)
        if g.machine.ordered_before:
            clocks.cluster.log += [(clocks.first + lane, clocks.clock, g.machine.ordered_before) for lane in lanes]

    def access(self, g: Group, buf: Buffer, offset: int, lanes: Array, verb: str) -> None:
        """Check that lanes may access a buffer, first at `offset`. Raises Fault if one of them has not waited."""
        if id(buf.root) not in self._buffers:
            return
        known = g.clocks.known(MEMORY, np.full((len(lanes), 1), _actor(g)), lanes)[:, 0]
        if not known.all():
            raise Fault(
                "race",
                f"{verb} of {buf.place(offset)} before {WAIT}: a grid that this one depends on may still use it; "
                f"add {WAIT}, or mark the argument {{{MARK}}} if no such grid accesses it",
                int(lanes[int(np.flatnonzero(known == 0)[0])]),
            )


def _actor(g: Group) -> int:
    return g.clocks.cluster.actor("grids", 0, "grids that this one depends on")


def _waits(fn: Function) -> bool:
    return WAIT in fn.needs_clocks or any(_waits(f) for f in fn.callees)


def _arrays(arg: Argument) -> Iterator[Array]:
    """Yield the arrays of an argument."""
    if isinstance(arg, tuple):
        for part in arg:
            yield from _arrays(part)
    pointer = arg.pointer if isinstance(arg, TensorMap) else arg
    if isinstance(pointer, Pointer):
        yield pointer.buffer
