"""Race detection: recorded accesses, the earlier accesses that must be ordered before a new one, and race reports.

A data race is a pair of accesses to the same byte, at least one of them a write. Causality order does not relate them,
and they are not morally strong (PTX ISA 9.0, 8.7.2). A weak access is therefore compared with the last weak write and
the strong accesses since, and a write also with the weak reads since. A strong access is compared with the same, except
strong accesses that it may race with. A weak write that passes is ordered after all of these, so they are dropped:
order after the write implies order after them. `history` stores the accesses, and decides which strong ones may race.

**Lifetime of a block's shared memory.** The end of a block counts as a write to all of its shared memory. An access is
a race unless one of the block's threads is ordered after it when the thread ends. This holds under any schedule. It
covers the block's own cp.async, TMA and bulk copies and wgmma. It also covers the loads, stores and atomics of other
blocks, their copies, and their arrivals at an mbarrier. An access to another block of the cluster must also be ordered
after the start of that block.

Sources: CUDA C++ Programming Guide, "Distributed Shared Memory" (all blocks have started, and all operations are
complete before a block exits); PTX ISA 9.0, 9.7.9.25 "Asynchronous copy" (only the completion mechanism signals
completion).

A report has the earlier access, its location, and the synchronization missing between the two accesses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.errors import Fault, InterpError, OpInfo, instruction_name, location_text, op_name, op_text
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN
from cute_dialect.interp.race.clocks import EXECUTION, FOREVER, MEMORY, ClusterClocks
from cute_dialect.interp.race.flags import GPU, SCOPES, SYS, Flags, place_of
from cute_dialect.interp.race.history import (
    BITS,
    COMPARES,
    NO_UPDATE,
    READ,
    REDUCED,
    UPDATE,
    WRITTEN,
    By,
    Shadow,
    Sort,
    Strong,
)
from cute_dialect.interp.reports.run_report import Writes
from cute_dialect.interp.values import Array, Value, to_lanes
from cute_dialect.ir.diagnostics import location_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xdsl.ir import Operation

    from cute_dialect.interp.machine.barriers import Block, Cluster
    from cute_dialect.interp.machine.group import Group, Machine
    from cute_dialect.interp.memory.accesses import Part, Site
    from cute_dialect.interp.memory.buffers import Buffer


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false


_FAR = (
    "nothing orders this access after the one in another block; there, {}; here, a read of that flag with .acquire or "
    "a fence after it"
)
_FAR_RANK = (
    "nothing orders this access after the one on rank {}; there, {}; here, a wait for that signal with sem='acquire' "
    "and scope='sys', by this thread or before a barrier"
)
_RELEASE = "a fence and then a strong write of a flag (atomic, volatile or .release) is needed"
_RELEASE_RANK = "a signal with sem='release' and scope='sys' is needed, by its thread or after a barrier"
_FENCED = (
    "the fence after it orders it only before writes of a {0} by the same thread: a thread that writes the {0} after a "
    "barrier needs a fence between the two, or {1}"
)
_UNFENCED = (
    "missing fence (or .acquire), of a scope that includes both threads, between the read of the flag (or the relaxed "
    "wait) and this access"
)
WORD = {"read": "read-after-write", "write": "write-after-write", "overwrite": "write-after-read"}


class Earlier(NamedTuple):
    """The earlier of two accesses that race."""

    cluster: int  # -1 for the cluster of the later access
    actor: int
    clock: int
    site: int


class Reporter:
    """Numbers the access sites of a launch and reports races between them."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sites: list[tuple[str, Operation | OpInfo | None]] = []
        self.infos: dict[int, int] = {}
        self.by_number: list[ClusterClocks] = []
        self.flags = Flags()

    def _number(self, site: Site) -> int:
        if site.number < 0:
            site.number = len(self.sites)
            self.sites.append((site.verb, site.op))
        return site.number

    def _of_info(self, info: OpInfo) -> int:
        got = self.infos.get(id(info))
        if got is None:
            got = self.infos[id(info)] = len(self.sites)
            self.sites.append((instruction_name(info), info))
        return got

    def error(
        self,
        number: int,
        message: str,
        thread: tuple[int, int, int] | None,
        block: tuple[int, int, int],
        notes: tuple[str, ...] = (),
    ) -> InterpError:
        """Return the error for an earlier access, which the current thread did not make."""
        op = self.sites[number][1] if number >= 0 else None
        name, text, frames = "", "", ()
        if isinstance(op, OpInfo):
            name, text, frames = op.name, op.text, op.frames
        elif op is not None:
            name, text, frames = op_name(op), op_text(op), location_frames(op.location)
        return InterpError(
            "race", message, op=name, op_text=text, frames=frames, thread=thread, block=block, notes=notes
        )

    def _note(self, g: Group, actor: int, site: int, other: int = -1) -> str:
        verb = self.sites[site][0] if site >= 0 else "access"
        return f"the earlier {verb} is by {self._actor(g, actor, other)}{self._place(site)}"

    def _place(self, site: int) -> str:
        """Return ` at ` and the location of an access, empty if unknown."""
        op = self.sites[site][1] if site >= 0 else None
        if op is None:
            return ""
        where = (op.location or op.text) if isinstance(op, OpInfo) else (location_text(op) or op_text(op))
        return f" at {where}" if where else ""

    def _actor(self, g: Group, actor: int, other: int) -> str:
        """Describe an actor of a cluster, by default of the group's own cluster."""
        cluster = g.clocks.cluster if other < 0 else self.by_number[other]
        kind = cluster.kind(actor)
        if kind in ("thread", "cp.async"):
            t = actor % cluster.threads
            block, tid = cluster.blocks[t // cluster.padded], t % cluster.padded
            x, y, _ = cluster.machine.block
            gx, gy, _ = cluster.machine.grid
            what = "a cp.async of " if kind == "cp.async" else ""
            return (
                f"{what}thread ({tid % x}, {tid // x % y}, {tid // (x * y)}) of block "
                f"({block % gx}, {block // gx % gy}, {block // (gx * gy)}){cluster.machine.of_rank}"
            )
        name = cluster.names.get(actor, "an asynchronous copy")
        if kind == "tensor":
            return name
        name += cluster.machine.of_rank
        return f"the copy that signals the {name}" if kind == "mbarrier" else f"the {name}"

    def _report(self, g: Group, s: Shadow, idx: Array, ok: Array, lanes: Array, kind: str) -> None:
        """Raise the first race of an access with the last weak write to a granule."""
        i, j = (int(x[0]) for x in np.nonzero(~ok))
        at = int(idx[i, j])
        cluster = -1 if s.w_cluster is None else int(s.w_cluster[at])
        write = Earlier(cluster, int(s.w_actor[at]), int(s.w_clock[at]), int(s.w_site[at]))
        self._raise(g, s, at, int(lanes[i]), kind, write)

    def _raise(self, g: Group, s: Shadow, at: int, lane: int, kind: str, earlier: Earlier, why: str = "") -> None:
        """Raise a race of an access to a granule with an earlier one.

        `why` describes the cause if it is not missing order.
        """
        cluster, actor, clock, site = earlier
        other = -1 if cluster == g.clocks.cluster.number else cluster
        where = other if other >= 0 else g.clocks.cluster.number
        if not why and self.flags.only_observed(g, lane, where, actor, clock):
            why = _UNFENCED
        if not why and other >= 0:
            why = self._far(g, earlier)
        why = why or self._hint(g, actor, lane)
        raise Fault(
            "race",
            f"{WORD[kind]} race on {s.buf.place(at << s.shift)}: {why}",
            lane,
            (at << s.shift) + (s.buf.base or SMEM_ORIGIN),
            (self._note(g, actor, site, other),),
        )

    def _far(self, g: Group, earlier: Earlier) -> str:
        """Return the synchronization that an access needs after one of another cluster, maybe on another rank."""
        cluster, actor, clock, _ = earlier
        rank = self.by_number[cluster].rank
        if rank == g.machine.rank:
            is_fenced = self.flags.is_fenced(cluster, actor, clock, GPU)
            return _FAR.format(_FENCED.format("flag", ".release") if is_fenced else _RELEASE)
        is_fenced = self.flags.is_fenced(cluster, actor, clock, SYS)
        needed = _FENCED.format("signal", "sem='release' and scope='sys'") if is_fenced else _RELEASE_RANK
        return _FAR_RANK.format(rank, needed)

    def _hint(self, g: Group, actor: int, lane: int) -> str:
        cluster = g.clocks.cluster
        what = cluster.kind(actor)
        if what == "mbarrier":
            wait = f"missing wait for the phase of the {cluster.names[actor]} that covers the copy"
            return f"{wait}, or expect_tx of its bytes before that phase completes"
        if what == "cp.async":
            same = actor - cluster.threads == g.clocks.first + lane
            return "missing cp.async.wait_group" + ("" if same else " by the thread that issued it, then a barrier")
        if what == "wgmma":
            return "missing wgmma.wait_group, then an arrival that this thread waits for, before the overwrite"
        if what == "tensor":
            return "missing wait for the phase of an mbarrier that a tcgen05.commit signals after it"
        if what.startswith("bulk"):
            return "missing cp.async.bulk.wait_group by the thread that issued the copy, before this access"
        if actor // 32 == (g.clocks.first + lane) // 32:
            return "missing bar.warp.sync or barrier between threads of one warp"
        return "missing barrier, or mbarrier arrive and wait, between the two threads"


# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false


# ------------------------------------------------------------------------------------------------------------- lifetime


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


_MISSING = {
    "cp.async": "missing cp.async.wait_group before the end of the block",
    "mbarrier": "missing wait for that phase of the mbarrier before the end of the block",
    "wgmma": "missing wgmma.wait_group before the end of the block",
    "tensor": "missing wait for the mbarrier that a later tcgen05.commit signals, before the end of the block",
    "bulk": "missing cp.async.bulk.wait_group.read before the end of the block",
}


class _Resident:
    """A resident block. `end` joins the tables of its threads that have ended."""

    __slots__ = ("arrivals", "block", "end", "first")

    def __init__(self, block: Block, clocks: ClusterClocks, first: int) -> None:
        self.block = block
        self.first = first  # actor of its first thread
        self.end = clocks.table()
        self.arrivals: dict[int, tuple[int, int]] = {}  # arrivals by other blocks: actor → (time, site of the op)


class Lifetimes:
    """Start and end of the shared memory of each resident block, as ordered by synchronization."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self._blocks: dict[int, _Resident] = {}
        self._owners: dict[int, _Resident] = {}

    def admit(self, cluster: Cluster, clocks: ClusterClocks) -> None:
        """Record that the blocks of a cluster become resident."""
        for rank, block in enumerate(cluster.blocks):
            resident = _Resident(block, clocks, rank * clocks.padded)
            self._blocks[block.key] = self._owners[id(block.smem)] = resident

    def touches(self, g: Group, buf: Buffer, lanes: Array) -> None:
        """Check that lanes may access a buffer.

        If it is shared memory of another block, that block must have started.
        """
        owner = self._owners.get(id(buf))
        if owner is None or owner.block.key == g.machine.first + g.block_of(0):
            return
        threads = slice(owner.first, owner.first + g.clocks.cluster.per_block)
        for lane in lanes.tolist():
            if not g.clocks.of(lane)[EXECUTION, threads].any():
                raise Fault(
                    "race",
                    f"access to the shared memory of block {_coord(g, owner.block.linear)} of the cluster, which may "
                    "not have started: missing cluster barrier before this access",
                    lane,
                )

    def arrives(self, g: Group, lane: int, block: Block, number: int, by: tuple[int, int] | None = None) -> None:
        """Record the arrival of a lane at an mbarrier in the shared memory of another block.

        `by` is the actor and time of an asynchronous arrival, None for one by the lane itself.
        """
        if block.linear != g.block_of(lane):
            actor, time = by or (g.clocks.first + lane, g.clocks.clock)
            self._blocks[block.key].arrivals[actor] = (time, number)

    def warp_ends(self, g: Group, shadow: Shadow | None) -> None:
        """Record the end of a warp. The last warp of a block ends its shared memory, whose accesses `shadow` holds."""
        clocks = g.clocks
        mine = self._blocks[g.machine.first + g.block_of(0)]
        for table in (clocks.table, *clocks.extras.values()):
            np.maximum(mine.end, table, out=mine.end)
        own = clocks.first + np.arange(g.lanes)
        copies = own + clocks.cluster.threads
        mine.end[:, own] = FOREVER
        mine.end[MEMORY, copies] = np.maximum(mine.end[MEMORY, copies], clocks.cluster.copied[own])
        if mine.block.live_warps > 1:
            return
        known = mine.end[MEMORY]
        if shadow is not None:
            late = shadow.later(known)
            if late is not None:
                verb, at, actor, site = late
                self._fail(g, mine, actor, site, f"{verb} {_place(shadow, at)}")
        for actor, (time, number) in mine.arrivals.items():
            if time > known[actor]:
                self._fail(g, mine, actor, number, "arrive at an mbarrier there")
        del self._blocks[mine.block.key], self._owners[id(mine.block.smem)]

    def _fail(self, g: Group, mine: _Resident, actor: int, number: int, does: str) -> None:
        """Raise the error for an access that may come after the end of its block."""
        cluster = g.clocks.cluster
        kind = cluster.kind(actor)
        message = after_end(does, kind, _coord(g, mine.block.linear))
        thread, block = None, g.block_coord(0)
        if kind in ("thread", "cp.async"):
            rank, tid = divmod(actor % cluster.threads, cluster.padded)
            x, y, _ = g.machine.block
            thread, block = (tid % x, tid // x % y, tid // (x * y)), _coord(g, cluster.blocks[rank])
        name = cluster.names.get(actor, "")
        notes = (f"it signals the {name}",) if kind == "mbarrier" else (f"it is the {name}",) if name else ()
        raise self.reporter.error(number, message, thread, block, notes)


def check_owner(g: Group, buf: Buffer, store: bool, lane: int) -> None:
    """Check that an array of one rank, other than symmetric memory, is not written by one rank and used by another."""
    if g.machine.ranks == 1 or buf.source is None:
        return
    if store:
        buf.is_written = True
    else:
        buf.is_read = True
    for other in buf.others:
        if other.is_written or (store and other.is_read):
            raise Fault(
                "race",
                f"{buf.name} is written by rank {buf.rank if store else other.rank}, but rank "
                f"{other.rank if store else buf.rank} {'writes' if store and other.is_written else 'reads'} the same "
                "array: each rank has memory of its own; pass each rank an array of its own, or use world.symmetric",
                lane,
            )


def after_end(does: str, kind: str, block: tuple[int, int, int]) -> str:
    """Return the message for an access of some kind of actor that may come after the end of a block."""
    missing = _MISSING.get(kind, "missing cluster barrier, or mbarrier arrive and wait, between the two")
    return f"this may {does} after the end of block {block}, which owns that shared memory: {missing}"


def _place(shadow: Shadow, at: int) -> str:
    return shadow.buf.place(at << shadow.shift)


def _coord(g: Group, linear: int) -> tuple[int, int, int]:
    x, y, _ = g.machine.grid
    return (linear % x, linear // x % y, linear // (x * y))


# --------------------------------------------------------------------------------------------------------------- checks


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


ASYNC, REDUCTION = 1, 2  # values of Shadow.w_kind for writes by the asynchronous proxy
_LANES = np.arange(32)


class Accesses(Reporter):
    """Records and checks the accesses of a launch."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.shadows: dict[int, Shadow] = {}
        self.kept: list[object] = []
        self.lifetimes = Lifetimes(self)

    def writes(self) -> list[Writes]:
        """Return the last writes to the caller's arrays."""

        def place(site: int) -> str:
            return self._place(site).removeprefix(" at ")

        arrays = [s for s in self.shadows.values() if s.buf.source is not None]
        starts = [s.buf.data.__array_interface__["data"][0] for s in arrays]
        return [Writes(start, s.size, s.shift, s.w_site, place) for start, s in zip(starts, arrays)]

    def _shadow(self, buf: Buffer) -> Shadow:
        s = self.shadows.get(id(buf.root))
        if s is None:
            self.kept.append(buf.root)
            shared = buf.name == "shared memory"
            s = self.shadows[id(buf.root)] = Shadow(buf, 8) if shared else Shadow.of_global(buf.root)
        return s

    # -- accesses by threads ------------------------------------------------------------------------------------------

    def observe(self, g: Group, site: Site, parts: list[Part], value: Value | None) -> None:
        """Check and record an access of the active lanes. `value` is the stored value."""
        for buf, off, sel in parts:
            if buf is g.local:
                continue
            lanes = g.mask.idx if sel is None else g.mask.idx[sel]
            if buf is not g.smem:
                self.lifetimes.touches(g, buf, lanes)
            if isinstance(off, int):
                off = np.full(len(lanes), off)
            if g.machine.preceding is not None:
                g.machine.preceding.access(g, buf, int(off[0]), lanes, site.verb)
            check_owner(g, buf, site.store, int(lanes[0]))
            if site.store and not site.atomic and len(lanes) > 1:
                self._same(g, site, buf, lanes, off, value)
            shadow = self._shadow(buf)
            idx = shadow.granules(off, site.nbytes, site.align)
            self._check_alias(g, shadow, idx, lanes, site)
            if site.constant:
                self._read_constant(g, shadow, idx, lanes, site)
                if g.machine.ranks == 1:
                    continue
            if site.copies:
                self._copy_sources(g, shadow, idx, lanes, self._number(site))
                continue
            if site.store and site.order and buf.root.has_signals:
                self._check_writers(g, shadow, idx, lanes, site)
            if site.store and buf.root.has_signals and value is not None:
                self._check_rises(g, site, buf, off, lanes, value)
            self._access(g, shadow, idx, lanes, site.store, self._number(site), strong=(site, off))
            self.flags.access(g, site, buf, off, lanes)

    def _copy_sources(self, g: Group, s: Shadow, idx: Array, lanes: Array, number: int) -> None:
        """Record the reads of a cp.async, which happen at any time until its group has been waited for."""
        times = g.copy_times(lanes, g.copy_seq[lanes] + 1)
        for time in np.unique(times).tolist():
            now = times == time
            self._access(g, s, idx[now], lanes[now], False, number, time=time)

    def _same(self, g: Group, site: Site, buf: Buffer, lanes: Array, off: Array, value: Value | None) -> None:
        """Check that lanes of one store do not write different values to the same address."""
        if (off[1:] > off[:-1]).all() or len(np.unique(off)) == len(off):
            return
        if not isinstance(value, np.ndarray) or value.ndim == len(site.leaf.shape):
            return
        first: dict[int, int] = {}
        for lane, at in zip(lanes.tolist(), off.tolist()):
            other = first.setdefault(at, lane)
            if other != lane and np.asarray(value[other]).tobytes() != np.asarray(value[lane]).tobytes():
                x, y, z = g.thread_coord(other)
                raise Fault(
                    "race",
                    f"threads of one warp {site.verb} different values to the same address: {buf.place(at)}",
                    lane,
                    notes=(f"the other is thread ({x}, {y}, {z})",),
                )

    def _access(
        self, g: Group, s: Shadow, idx: Array, lanes: Array, store: bool, number: int, *,
        strong: tuple[Site, Array] | None = None, time: int = 0,
    ) -> None:  # fmt: skip
        """Check and record an access through the generic proxy to granules of shape (lanes, n).

        Args:
            strong: The site of a strong access, which has its order and scope, and the byte offset of each lane.
            time: Logical time of a cp.async, 0 for other accesses.
        """
        clocks = g.clocks
        sorts = self._sorts(s, *strong, idx, store) if strong is not None and strong[0].order else None
        actor = s.w_actor[idx]
        if actor.max() >= 0:
            self._check_write(g, s, idx, lanes, store, actor)
        if (s.past.used if store else s.past.written) and s.more[idx].any():
            self._check_past(g, s, idx, lanes, store)
        if store:
            self._check_reads(g, s, idx, lanes)
            self._check_constant(g, s, idx, lanes)
        if s.strong and s.has_strong[idx].any():
            self._check_strong(g, s, idx, lanes, store, sorts)
        if sorts is not None:
            self._remember_strong(g, s, idx, lanes, sorts, number)
        elif store:
            own = (clocks.first + lanes).astype(np.int32)[:, None]
            self._remember_write(g, s, idx, own + (clocks.cluster.threads if time else 0), time or clocks.clock, number)
        else:
            self._remember_read(g, s, idx, lanes, number, time)

    # -- order --------------------------------------------------------------------------------------------------------

    def _known(
        self, g: Group, lanes: Array, cluster: Array, base: Array, of: Array, clock: Array, row: int = MEMORY
    ) -> Array:
        """Return True for each access that is ordered before lanes.

        Access i was made by those of the 32 actors from `base[i]` on whose bit is set in `of[i]`; the others give True.
        """
        clocks = g.clocks
        mine = clocks.cluster
        actors = np.minimum(base[:, None] + _LANES, mine.columns - 1)
        when = np.broadcast_to(clock[:, None], actors.shape)
        own = (clocks.first + lanes)[:, None]
        near = when <= clocks.known(row, actors, lanes)
        if row == MEMORY:
            near |= actors == own
            near |= (actors == own + mine.threads) & (when <= mine.copied[own])
        foreign = cluster != mine.number
        if foreign.any():
            others = np.broadcast_to(cluster[:, None], actors.shape)
            near = np.where(foreign[:, None], self.flags.ordered(g, lanes, others, actors, when, row), near)
        return near | ((of[:, None] & BITS) == 0)

    def _knows(self, g: Group, lane: int, cluster: int, actor: int, time: int, row: int = MEMORY) -> bool:
        """Return True if an actor's access at a time is ordered before a lane, by a row of its table."""
        lanes, *access = (np.array([x]) for x in (lane, cluster, actor, 1, time))
        return bool(self._known(g, lanes, *access, row=row).all())

    def _require(
        self, g: Group, s: Shadow, at: Array, lanes: Array, rows: tuple[Array, ...], word: str, row: int = MEMORY
    ) -> None:
        """Raise a race unless accesses to granules, as (cluster, base, lanes, time, site), are ordered before lanes."""
        cluster, base, of, clock, site = rows
        ok = self._known(g, lanes, cluster, base, of, clock, row)
        if ok.all():
            return
        i, j = (int(x[0]) for x in np.nonzero(~ok))
        where = -1 if s.w_cluster is None else int(cluster[i])
        earlier = Earlier(where, int(base[i]) + j, int(clock[i]), int(site[i]))
        self._raise(g, s, int(at[i]), int(lanes[i]), word, earlier)

    def _check_write(self, g: Group, s: Shadow, idx: Array, lanes: Array, store: bool, actor: Array) -> None:
        """Check that the last weak writes are ordered before an access of lanes."""
        clocks = g.clocks
        cluster = clocks.cluster
        own = (clocks.first + lanes).astype(np.int32)[:, None]
        clock = s.w_clock[idx]
        ok = (clock <= clocks.known(MEMORY, actor, lanes)) | (actor == own)
        if not ok.all():
            ok |= (actor == own + cluster.threads) & (clock <= cluster.copied[own])
        if s.w_cluster is not None:
            other = s.w_cluster[idx]
            foreign = (other >= 0) & (other != cluster.number)
            if foreign.any():
                ok = np.where(foreign, self.flags.ordered(g, lanes, other, actor, clock, MEMORY), ok)
        if not ok.all():
            self._report(g, s, idx, ok, lanes, "write" if store else "read")

    def _check_reads(self, g: Group, s: Shadow, idx: Array, lanes: Array) -> None:
        """Check that the recorded weak reads are ordered before a write of lanes."""
        clocks = g.clocks
        threads = clocks.cluster.threads
        own = BITS[lanes][:, None]
        for row in range(1 if s.r_cluster is not None else len(s.rows)):
            of, base = s.r_lanes[row][idx], s.r_actor[row][idx]
            cluster = np.full(idx.shape, clocks.cluster.number) if s.r_cluster is None else s.r_cluster[idx]
            near = cluster == clocks.cluster.number
            left = (of != 0) & ~(near & (base == clocks.first) & (of == own))
            if not left.any():
                continue
            clock = s.r_clock[row][idx]
            if s.r_cluster is None:
                b = int(base[left][0])
                left &= clock > clocks.table[MEMORY, b : b + (32 if b < threads else 1)].min()
                if not left.any():
                    continue
            i = np.nonzero(left)[0]
            found = (cluster[left], base[left], of[left], clock[left], s.r_site[row][idx][left])
            self._require(g, s, idx[left], lanes[i], found, "overwrite")

    def _check_past(
        self,
        g: Group,
        s: Shadow,
        idx: Array,
        lanes: Array,
        store: bool,
        *,
        reduces: bool = False,
        proxy: Callable[[int], int] | None = None,
    ) -> None:
        """Check that the accesses in `Shadow.past` are ordered before an access of lanes.

        Args:
            reduces: True for a reduction, which may race with other reductions.
            proxy: For an access by the asynchronous proxy, the table row in which a write of an actor must be visible.
        """
        flat = idx.ravel()
        which, rows = s.past.of(flat, s.more)
        kind = rows[:, 7]
        needed = (kind != READ) if not store else (kind != REDUCED) if reduces else np.ones(len(kind), np.bool_)
        lane_of = np.repeat(lanes, idx.shape[1])
        for wanted, word in ((kind == READ, "overwrite"), (kind != READ, "write" if store else "read")):
            pick = needed & wanted
            if pick.any():
                r = rows[pick]
                found = (r[:, 2], r[:, 3], r[:, 4].astype(np.uint32), r[:, 5], r[:, 6])
                self._require(g, s, r[:, 0], lane_of[which[pick]], found, word)
        if proxy is None:
            return
        plain = np.flatnonzero(needed & (kind == WRITTEN))
        seen_by = np.array([proxy(actor) for actor in rows[plain, 3].tolist()])
        for row in set(seen_by.tolist()):
            pick = plain[seen_by == row]
            r = rows[pick]
            found = (r[:, 2], r[:, 3], r[:, 4].astype(np.uint32), r[:, 5], r[:, 6])
            self._require(g, s, r[:, 0], lane_of[which[pick]], found, "write" if store else "read", row)

    # -- strong accesses ----------------------------------------------------------------------------------------------

    @staticmethod
    def _sorts(s: Shadow, site: Site, off: Array, idx: Array, store: bool) -> list[list[Sort]]:
        """Return the sort of a strong access at each granule. Each element of a vector is a separate access."""
        size = site.nbytes // site.leaf.count
        start = np.broadcast_to(off[:, None], idx.shape)
        start = start + np.maximum((idx << s.shift) - start, 0) // size * size
        update = COMPARES if site.compares else UPDATE if site.atomic else NO_UPDATE
        return [[Sort(store, site.scope, at, size, update) for at in row] for row in start.tolist()]

    def _check_strong(
        self,
        g: Group,
        s: Shadow,
        idx: Array,
        lanes: Array,
        store: bool,
        sorts: list[list[Sort]] | None = None,
        proxy: Callable[[int], int] | None = None,
    ) -> None:
        """Check that strong accesses that may not race with those of lanes are ordered before them.

        `proxy`: for an access by the asynchronous proxy, the table row in which a write of an actor must be visible.
        """
        widest = GPU if g.machine.ranks == 1 else SYS
        for i, j in np.argwhere(s.has_strong[idx]).tolist():
            at, lane = int(idx[i, j]), int(lanes[i])
            sort = sorts[i][j] if sorts is not None else None
            for other, by in s.strong[at].against(sort, place_of(g, lane), store, widest):
                every = np.array(by)
                n = len(every)
                known = self._known(
                    g, np.full(n, lane), every[:, 0], every[:, 2], np.ones(n, np.uint32), every[:, 3]
                ).all(axis=1)
                if known.all():
                    if proxy is not None and other.store:
                        self._check_seen(g, s, at, lane, store, by, proxy)
                    continue
                one = by[int(np.flatnonzero(~known)[0])]
                word = "overwrite" if not other.store else "write" if store else "read"
                where = -1 if s.w_cluster is None else one.cluster
                why = _apart(sort, other, one.rank != g.machine.rank) if sort is not None else ""
                self._raise(g, s, at, lane, word, Earlier(where, one.actor, one.time, one.site), why)

    def _check_writers(self, g: Group, s: Shadow, idx: Array, lanes: Array, site: Site) -> None:
        """Check that a signal has one writer: the last store is ordered before this one, or both add on one rank.

        A compare-and-swap is no second writer: it loses no other value, because it stores only after the expected one.
        """
        if site.compares:
            return
        for i, j in np.argwhere(s.has_strong[idx]).tolist():
            at, lane = int(idx[i, j]), int(lanes[i])
            for sort, by in s.strong[at].against(None, place_of(g, lane), True):
                for one in by if sort.store and sort.update != COMPARES else ():
                    if site.atomic and sort.update == UPDATE and one.rank == g.machine.rank:
                        continue
                    if not self._knows(g, lane, one.cluster, one.actor, one.time):
                        other = -1 if one.cluster == g.clocks.cluster.number else one.cluster
                        raise Fault(
                            "race",
                            f"two writers of the signal in {s.buf.place(at << s.shift)}: nothing orders the two "
                            "stores, so either value may be the last; give each writer a slot of its own",
                            lane,
                            notes=(self._note(g, one.actor, one.site, other),),
                        )

    def _check_rises(self, g: Group, site: Site, buf: Buffer, off: Array, lanes: Array, value: Value) -> None:
        """Check that stores of whole signals do not lower them."""
        if site.leaf.shape or site.leaf.dtype != np.int64:
            return
        words, new = buf.view(site.leaf.dtype, 1), to_lanes(value, site.leaf, g.mask.lanes)
        for at, lane in zip(off.tolist(), lanes.tolist()):
            old, now = int(words[at // site.nbytes]), int(new[lane])
            if now < old:
                raise Fault(
                    "race",
                    f"the signal in {buf.place(at)} falls from {old} to {now}, so a wait for {old} may miss it; "
                    "signals only rise, so set a greater value, such as the number of the call",
                    lane,
                )

    def _check_seen(
        self, g: Group, s: Shadow, at: int, lane: int, store: bool, by: Iterable[By], proxy: Callable[[int], int]
    ) -> None:
        """Check that strong writes are visible to an access by the asynchronous proxy."""
        for one in by:
            if not self._knows(g, lane, one.cluster, one.actor, one.time, proxy(one.actor)):
                self._unfenced(g, s, at, lane, store, one.actor, one.site, one.cluster)

    def _unfenced(
        self, g: Group, s: Shadow, at: int, lane: int, store: bool, actor: int, site: int, cluster: int
    ) -> None:
        """Raise the race of a copy with an earlier write that may not be visible to it."""
        other = -1 if s.w_cluster is None or cluster == g.clocks.cluster.number else cluster
        raise Fault(
            "race",
            f"missing fence.proxy.async: {s.buf.place(at << s.shift)} was written through the generic proxy and is "
            f"now {'overwritten' if store else 'read'} through the asynchronous proxy",
            lane,
            notes=(self._note(g, actor, site, other),),
        )

    def _remember_strong(
        self, g: Group, s: Shadow, idx: Array, lanes: Array, sorts: list[list[Sort]], number: int
    ) -> None:
        clocks = g.clocks
        s.has_strong[idx] = True
        for lane, row, kinds in zip(lanes.tolist(), idx.tolist(), sorts):
            by = By(
                clocks.cluster.number, g.block_of(lane), clocks.first + lane, clocks.clock, number, clocks.cluster.rank
            )
            for at, sort in zip(row, kinds):
                kept = s.strong.get(at)
                if kept is None:
                    kept = s.strong[at] = Strong()
                kept.add(sort, by)

    # -- recording ----------------------------------------------------------------------------------------------------

    def _remember_write(
        self, g: Group, s: Shadow, idx: Array, actor: Array | int, time: Array | int, number: int, kind: int = 0
    ) -> None:
        """Record a weak write. All earlier accesses are ordered before it and are dropped."""
        s.w_actor[idx] = actor
        s.w_clock[idx] = time
        s.w_site[idx] = number
        s.w_kind[idx] = kind
        s.r_lanes[:, idx] = 0
        if s.past.used:
            s.more[idx] = 0
        if s.w_cluster is not None:
            s.w_cluster[idx] = g.clocks.cluster.number
        if s.strong:
            held = idx[s.has_strong[idx]]
            s.has_strong[held] = False
            for at in held.tolist():
                s.strong.pop(at, None)

    def _remember_read(self, g: Group, s: Shadow, idx: Array, lanes: Array, number: int, time: int = 0) -> None:
        """Record a weak read by threads of a warp, or by their cp.async at `time`."""
        clocks = g.clocks
        bits = np.broadcast_to(BITS[lanes][:, None], idx.shape)
        row = 0 if s.r_cluster is not None else s.row(clocks.slot)
        base = clocks.first + (clocks.cluster.threads if time else 0)
        self._mark_read(g, s, row, idx, base, bits, time or clocks.clock, number)

    def _mark_read(
        self, g: Group, s: Shadow, row: int, idx: Array, base: int, bits: Array, time: int, number: int
    ) -> None:
        """Record a weak read of granules by actors from `base` on.

        Reads in the row that it does not imply move to `past`.
        """
        held, cluster = s.r_lanes[row], g.clocks.cluster.number
        before = held[idx]
        old = before.any()
        actor, clock = s.r_actor[row][idx], s.r_clock[row][idx]
        mine = actor == base
        if old:
            if s.r_cluster is not None:
                mine &= s.r_cluster[idx] == cluster
            held[idx] = np.where(mine & (clock == time), before, 0) | bits
        else:
            held[idx] = bits
        if (held[idx] & bits != bits).any():  # Several lanes may read one granule.
            np.bitwise_or.at(held, idx.ravel(), bits.ravel())
        if old:
            lost = (before != 0) & ~(mine & ((clock == time) | (before & ~held[idx] == 0)))
            if lost.any():
                at, first = np.unique(idx[lost], return_index=True)
                where = cluster if s.r_cluster is None else s.r_cluster[at]
                s.more[at] = np.where(s.more[at] == 0, s.past.sequence, s.more[at])
                was = (actor[lost][first], before[lost][first], clock[lost][first], s.r_site[row][at])
                s.past.add(at, where, *was, READ)
        s.r_actor[row][idx] = base
        s.r_clock[row][idx] = time
        s.r_site[row][idx] = number
        if s.r_cluster is not None:
            s.r_cluster[idx] = cluster

    # -- aliasing of arguments ----------------------------------------------------------------------------------------

    def _check_alias(self, g: Group, s: Shadow, idx: Array, lanes: Array, site: Site) -> None:
        """Check that modified memory accessed through a noalias argument is accessed through no other pointer."""
        parameter = site.parameter
        if parameter is None or not parameter.in_kernel:
            return
        if s.through is None or s.changed is None or s.through_in != g.machine.first:
            s.through_in = g.machine.first
            s.through, s.changed = np.zeros(len(s.w_actor), np.int16), np.zeros(len(s.w_actor), np.bool_)
        mine = parameter.number + 2 if "llvm.noalias" in parameter.promises else 1
        before = s.through[idx]
        other = (before != 0) & (before != mine)
        if site.store:
            s.changed[idx] = True
        s.through[idx] = np.where(other, -1, mine)
        bad = other & s.changed[idx]
        if bad.any():
            i, j = (int(x[0]) for x in np.nonzero(bad))
            at, was = int(idx[i, j]), int(before[i, j])
            raise Fault(
                "promise",
                f"{site.verb} of {s.buf.place(at << s.shift)} through {parameter.name} aliases an access through "
                f"{f'argument {was - 2}' if was > 1 else 'another pointer'}, and the kernel modifies this memory; an "
                "llvm.noalias argument must not overlap other memory that the kernel accesses",
                int(lanes[i]),
            )

    # -- invariant loads ----------------------------------------------------------------------------------------------

    def _read_constant(self, g: Group, s: Shadow, idx: Array, lanes: Array, site: Site) -> None:
        """Record an invariant load, and check that nothing writes the memory that it reads."""
        if s.constant is None or s.constant_by is None:
            s.constant = np.full(len(s.w_actor), -1, np.int32)
            s.constant_by = np.full(len(s.w_actor), -1, np.int32)
        s.constant[idx] = self._number(site)
        s.constant_by[idx] = g.clocks.cluster.number if g.machine.ranks > 1 else -1
        for at, lane in zip(idx.ravel().tolist(), np.repeat(lanes, idx.shape[1]).tolist()):
            note = "" if self._precedes_launch(g, s, at) else self._written(g, s, at)
            if note:
                raise Fault(
                    "race",
                    f"invariant {site.verb} of {s.buf.place(at << s.shift)}, which the kernel writes; invariant loads "
                    "(ld.global.nc, llvm.load invariant) need memory that stays constant while the kernel runs",
                    lane,
                    notes=(note,),
                )

    def _precedes_launch(self, g: Group, s: Shadow, at: int) -> bool:
        """Return True if the last write to a granule is weak and ordered before the group's launch."""
        before = g.machine.ordered_before
        if not before or s.has_strong[at] or s.w_cluster is None:
            return False
        table = before.get(int(s.w_cluster[at]))
        return table is not None and bool(s.w_clock[at] <= table[MEMORY, s.w_actor[at]])

    def _written(self, g: Group, s: Shadow, at: int) -> str:
        """Describe the last write to a granule, empty if there is none."""
        by = s.strong[at].written() if s.has_strong[at] else None
        if by is not None:
            return self._note(g, by.actor, by.site, by.cluster if by.cluster != g.clocks.cluster.number else -1)
        if s.w_actor[at] < 0:
            return ""
        cluster = -1 if s.w_cluster is None else int(s.w_cluster[at])
        other = cluster if cluster != g.clocks.cluster.number else -1
        return self._note(g, int(s.w_actor[at]), int(s.w_site[at]), other)

    def _check_constant(self, g: Group, s: Shadow, idx: Array, lanes: Array) -> None:
        """Check that no invariant load has read the memory of a write."""
        if s.constant is None or s.constant_by is None or (s.constant[idx] < 0).all():
            return
        before = g.machine.ordered_before
        ended = [n for n, table in before.items() if table[MEMORY, 0] == FOREVER]
        read = (s.constant[idx] >= 0) & ~np.isin(s.constant_by[idx], ended)
        if not read.any():
            return
        i, j = (int(x[0]) for x in np.nonzero(read))
        at = int(idx[i, j])
        raise Fault(
            "race",
            f"write to {s.buf.place(at << s.shift)}, which an invariant load has read; invariant loads (ld.global.nc, "
            "llvm.load invariant) need memory that stays constant while the kernel runs",
            int(lanes[i]),
            notes=(f"the load is{self._place(int(s.constant[at]))}",),
        )


def _apart(sort: Sort, other: Sort, of_two_ranks: bool) -> str:
    """Explain why two unordered strong accesses race."""
    if (sort.start, sort.size) != (other.start, other.size):
        return (
            f"both accesses are strong but cover different bytes ({other.size} bytes at offset {other.start}, "
            f"{sort.size} bytes at offset {sort.start}); access the same bytes, or order the accesses"
        )
    return (
        f"both accesses are strong, but their scopes .{SCOPES[other.scope]} and .{SCOPES[sort.scope]} do not include "
        f"both threads; {'threads of two GPUs need .sys on both sides' if of_two_ranks else 'use a wider scope'}, or "
        "order the accesses"
    )
