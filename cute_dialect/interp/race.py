"""Race detection: happens-before over threads, generic and asynchronous proxy.

Each access to shared or global memory is compared with the last write to the same bytes, and a write also with the
reads since: what is not ordered before it by synchronisation is a race, whatever the schedule was.  See `clocks` for
how order is known and `shadow` for what is remembered.  The first race ends the run with an `InterpError` of kind
"race".

Order between clusters comes from flags in global memory alone, see `flags`.

Not seen (false negatives): a write to global memory after reads by several warps or several clusters of which one is
not ordered; a read of what several atomics have written when only the last is ordered before it; a weak write after a
volatile or atomic read.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.clocks import EXECUTION, MEMORY, PROXY, ClusterClocks, Meeting, WarpClocks
from cute_dialect.interp.errors import Fault, OpInfo
from cute_dialect.interp.lifetime import Lifetimes
from cute_dialect.interp.race_report import Reporter
from cute_dialect.interp.shadow import MANY, Shadow
from cute_dialect.interp.types import round_up
from cute_dialect.interp.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cute_dialect.interp.group import Group
    from cute_dialect.interp.memory import Buffer, Part, Site
    from cute_dialect.interp.state import Launch
    from cute_dialect.interp.sync import Block, Cluster, MBarrier, NamedBarrier
    from cute_dialect.interp.wgmma import Instruction, Warpgroup

_ASYNC, _ATOMIC = 1, 2


class Monitor(Reporter):
    """Watches one launch."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self.shadows: dict[int, Shadow] = {}
        self.clusters = 0
        self.kept: list[object] = []
        self.lifetimes = Lifetimes(self)
        self.resized: dict[tuple[int, int, int], int] = {}  # cluster, first thread of a warp, nth setmaxnreg → its time

    # -- life of warps ------------------------------------------------------------------------------------------------

    def admit(self, cluster: Cluster) -> None:
        """A cluster becomes resident."""
        padded = round_up(self.launch.threads, 32)
        clocks = ClusterClocks(self.clusters, padded, [b.linear for b in cluster.blocks])
        self.clusters += 1
        self.by_number.append(clocks)
        cluster.meeting = Meeting()
        for rank, block in enumerate(cluster.blocks):
            for g in block.groups:
                g.clocks = WarpClocks(clocks, rank * padded + int(g.lane_tid[0]))
        self.lifetimes.admit(cluster, clocks)

    def exits(self, g: Group) -> None:
        """A warp has ended: nothing may still touch the shared memory that ends with it."""
        for lane, groups in g.bulk.items():
            late = [t for group in groups.groups[groups.read :] for t in group] + groups.open
            if late:
                raise g.fail(
                    Fault(
                        "race",
                        "the thread ends while its bulk copy may still read shared memory: expected "
                        "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read before the end",
                        lane,
                    ),
                    late[0].info,
                )
        self.lifetimes.warp_ends(g, self.shadows.get(id(g.smem)))

    # -- synchronisation ----------------------------------------------------------------------------------------------

    def fence(self, g: Group, kind: str, scope: int) -> None:
        clocks = g.clocks
        lanes = g.mask.idx.tolist()
        if kind == "memory":
            self.flags.fence(g, lanes, scope)
        if kind == "proxy.async":
            clocks.fence_proxy(lanes)
            self.flags.fence_proxy(g, lanes)
        if kind in ("proxy.async", "mbarrier.init"):
            for lane, bar in clocks.inits:
                if lane in lanes:
                    bar.clocks.fenced = True  # type: ignore[attr-defined]

    def arrive(self, g: Group, bar: NamedBarrier, ident: int, info: OpInfo) -> None:
        """A warp arrives at a named barrier: after all who arrived in the phase before, or it might have counted there.

        PTX ISA 9.0, 9.7.13.1 "bar": an arrival counts for whichever phase of the barrier is under way."""
        if bar.meeting is None:
            bar.meeting = Meeting()
        own, time = g.clocks.first + int(g.mask.idx[0]), g.clocks.clock
        message = g.clocks.release(g)
        for actor, when, site in bar.meeting.before:
            if message[EXECUTION, actor] < when:
                raise Fault(
                    "race",
                    f"barrier {ident} is still in use: nothing orders this arrival after one of the phase before, so "
                    "it may count there: expected an id of its own for each group of warps, or a barrier between them",
                    notes=(self._note(g, actor, site),),
                )
        bar.meeting.parties.append((own, time, self._of_info(info)))
        bar.meeting.add(message)

    def registers(self, g: Group, count: int, warps: Sequence[int]) -> None:
        """A warp executes its `count`-th setmaxnreg: `warps`, the others of its warpgroup, have synchronised with it
        after the one before (PTX ISA 9.0, 9.7.19.5 "setmaxnreg")."""
        clocks = g.clocks
        self.resized[clocks.cluster.number, clocks.first, count] = clocks.clock
        first = clocks.first - int(g.lane_tid[0])
        for warp in warps if count > 1 else ():
            time = self.resized.get((clocks.cluster.number, first + 32 * warp, count - 1))
            if time is None or clocks.of(int(g.mask.idx[0]))[EXECUTION, first + 32 * warp] < time:
                raise Fault(
                    "race",
                    f"setmaxnreg twice, and warp {warp} of the warpgroup may not have executed the first: expected a "
                    "barrier of the warpgroup between",
                )

    def wait(self, g: Group, bar: NamedBarrier) -> None:
        if bar.meeting is not None and bar.meeting.done is not None:
            _leave(g, bar.meeting.done)

    def cluster_arrive(self, g: Group, cluster: Cluster, relaxed: bool) -> None:
        message = g.clocks.release(g)
        if relaxed:
            only = g.clocks.cluster.table()
            only[EXECUTION] = message[EXECUTION]
            message = only
        assert cluster.meeting is not None
        cluster.meeting.add(message)

    def cluster_wait(self, g: Group, cluster: Cluster) -> None:
        assert cluster.meeting is not None
        if cluster.meeting.done is not None:
            _leave(g, cluster.meeting.done)

    def barrier(self, g: Group) -> None:
        """Blocks in lockstep pass a barrier."""
        raise AssertionError("a warp does not run in lockstep with others")

    def warp_sync(self, g: Group) -> None:
        g.clocks.synchronise(g)

    def mbarrier_init(self, g: Group, lane: int, block: Block, offset: int, bar: MBarrier) -> None:
        clocks = g.clocks
        self.kept.append(bar)
        bar.clocks = Meeting(bar, clocks.cluster.mbarrier(bar), (clocks.first + lane, clocks.clock))
        clocks.inits.append((lane, bar))

    def mbarrier_check(self, g: Group, lane: int, bar: MBarrier, copy: bool = False) -> None:
        """Whether the initialisation of an mbarrier is visible to a lane, or to a copy that it issues."""
        meeting: Meeting = bar.clocks  # type: ignore[assignment]
        actor, time = meeting.init
        known = g.clocks.of(lane)
        own = actor == g.clocks.first + lane
        if copy and not meeting.fenced and known[PROXY, actor] < time:
            raise Fault(
                "race",
                f"{bar.name} is used by an asynchronous copy, but its initialisation is not visible to the "
                "asynchronous proxy: expected fence.mbarrier_init or fence.proxy.async after mbarrier.init",
                lane,
            )
        if own or known[MEMORY, actor] >= time or (meeting.fenced and known[EXECUTION, actor] >= time):
            return
        raise Fault(
            "race",
            f"{bar.name} is used by a thread to which its initialisation is not visible: expected a barrier between "
            "mbarrier.init and its first use",
            lane,
        )

    def mbarrier_arrive(self, g: Group, lane: int, block: Block, bar: MBarrier, arrives: bool, info: OpInfo) -> None:
        self.mbarrier_check(g, lane, bar)
        self.lifetimes.arrives(g, lane, block, self._of_info(info))
        if arrives:
            bar.clocks.add(g.clocks.release(g, [lane]))  # type: ignore[attr-defined]

    def mbarrier_wait(self, g: Group, lanes: list[int], bar: MBarrier) -> None:
        meeting: Meeting = bar.clocks  # type: ignore[assignment]
        self.mbarrier_check(g, lanes[0], bar)
        if meeting.done is not None:
            g.clocks.acquire(g, meeting.done, lanes)

    # -- threads' accesses --------------------------------------------------------------------------------------------

    def observe(self, g: Group, site: Site, parts: list[Part], value: Value | None) -> None:
        for buf, off, sel in parts:
            if buf is g.local:
                continue
            every = lanes = g.mask.idx if sel is None else g.mask.idx[sel]
            if buf is not g.smem:
                self.lifetimes.touches(g, buf, lanes)
            if isinstance(off, int):
                if site.store and not site.atomic and len(lanes) > 1:
                    self._same(g, site, buf, lanes, np.full(len(lanes), off), value)
                lanes = lanes[-1:] if site.store else lanes[:1]
                off = np.array([off])
            elif site.store and not site.atomic:
                self._same(g, site, buf, lanes, off, value)
            shadow = self._shadow(buf)
            idx = shadow.granules(off, site.nbytes, site.align)
            self._access(g, shadow, idx, lanes, site.store, site.order > 0, self._number(site))
            self.flags.access(g, site, buf, off, every)

    def _same(self, g: Group, site: Site, buf: Buffer, lanes: Array, off: Array, value: Value | None) -> None:
        """Lanes of one store that write different values to the same place."""
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
        self, g: Group, s: Shadow, idx: Array, lanes: Array, store: bool, atomic: bool, number: int, time: int = 0
    ) -> None:
        """Check and remember an access through the generic proxy: granules (lanes, n). `time`: of a cp.async."""
        clocks = g.clocks
        cluster = clocks.cluster
        own = (clocks.first + lanes).astype(np.int32)[:, None]
        actor = s.w_actor[idx]
        if actor.max() >= 0:
            self._check_write(g, s, idx, lanes, store, atomic, own, actor)
        if not store:
            if not atomic:
                self._remember_read(s, idx, clocks, own, number)
            return
        self._check_reads(g, s, idx, lanes, own, atomic)
        kind: Array | int = 0
        if atomic:  # not where the thread has touched the place in another way too, which nothing has ordered
            row = 0 if s.r_cluster is not None else s.row(clocks.slot)
            plain = (actor == own) & (s.w_clock[idx] == clocks.clock) & (s.w_kind[idx] != _ATOMIC)
            plain |= (s.r_actor[row, idx] == own) & (s.r_clock[row, idx] == clocks.clock)
            kind = np.where(plain, 0, _ATOMIC)
        flat = idx
        s.w_actor[flat] = own + (cluster.threads if time else 0)
        s.w_clock[flat] = time or clocks.clock
        s.w_site[flat] = number
        s.w_kind[flat] = kind
        s.r_actor[:, flat] = -1
        if s.w_cluster is not None and s.r_cluster is not None:
            s.w_cluster[flat] = cluster.number
            s.r_cluster[flat] = -1

    def _check_write(
        self, g: Group, s: Shadow, idx: Array, lanes: Array, store: bool, atomic: bool, own: Array, actor: Array
    ) -> None:
        """Whether the last writes are ordered before an access of lanes."""
        clocks = g.clocks
        cluster = clocks.cluster
        clock = s.w_clock[idx]
        ok = (clock <= clocks.known(MEMORY, actor, lanes)) | (actor == own)
        if not ok.all():
            ok |= (actor == own + cluster.threads) & (clock <= cluster.copied[own])
        if s.w_cluster is not None:
            other = s.w_cluster[idx]
            foreign = (other >= 0) & (other != cluster.number)
            if foreign.any():
                ok = np.where(foreign, self.flags.ordered(g, lanes, other, actor, clock, MEMORY), ok)
        if atomic:
            ok |= s.w_kind[idx] == _ATOMIC
        if not ok.all():
            self._report(g, s, idx, ok, lanes, "write" if store else "read", s.w_actor, s.w_clock, s.w_site)

    def _remember_read(self, s: Shadow, idx: Array, clocks: WarpClocks, own: Array, number: int) -> None:
        if s.r_cluster is None:
            row = s.row(clocks.slot)
            s.r_actor[row, idx] = own
            s.r_clock[row, idx] = clocks.clock
            s.r_site[row, idx] = number
            return
        before, cluster = s.r_actor[0, idx], s.r_cluster[idx]
        if before.max() < 0 and before.min() == -1 and cluster.max() < 0 and cluster.min() == -1:
            s.r_actor[0, idx] = own
            s.r_clock[0, idx] = clocks.clock
            s.r_site[0, idx] = number
            s.r_cluster[idx] = clocks.cluster.number
            return
        mine = (before >= 0) & (before // 32 != own // 32)
        s.r_actor[0, idx] = np.where((before == MANY) | mine, MANY, np.broadcast_to(own, before.shape))
        s.r_clock[0, idx] = clocks.clock
        s.r_site[0, idx] = number
        number_of = clocks.cluster.number
        s.r_cluster[idx] = np.where((cluster == -1) | (cluster == number_of), number_of, MANY)

    def _check_reads(self, g: Group, s: Shadow, idx: Array, lanes: Array, own: Array, atomic: bool) -> None:
        clocks = g.clocks
        if s.r_cluster is not None:
            cluster = s.r_cluster[idx]
            if cluster.max() < 0 and cluster.min() == -1:
                return
            foreign = (cluster >= 0) & (cluster != clocks.cluster.number)
            actor, clock = s.r_actor[0, idx], s.r_clock[0, idx]
            ok = (actor < 0) | (actor == own) | (clock <= clocks.known(MEMORY, np.maximum(actor, -1), lanes))
            synchronised = bool(clocks.cluster.log)  # else no reader of another cluster can be ordered
            ok = np.where(cluster == MANY, synchronised, ok)
            if foreign.any():
                known = self.flags.ordered(g, lanes, cluster, actor, clock, MEMORY)
                ok = np.where(foreign, known | ((actor < 0) & synchronised), ok)
            if not ok.all():
                self._report(g, s, idx, ok, lanes, "overwrite", s.r_actor[0], s.r_clock[0], s.r_site[0])
            return
        for row in range(len(s.rows)):
            actor = s.r_actor[row, idx]
            if (actor < 0).all():
                continue
            ok = (s.r_clock[row, idx] <= clocks.known(MEMORY, actor, lanes)) | (actor == own)
            if not ok.all():
                self._report(g, s, idx, ok, lanes, "overwrite", s.r_actor[row], s.r_clock[row], s.r_site[row])

    def cp_async(self, g: Group, site: Site, parts: list[Part]) -> None:
        """A cp.async is issued: it writes at any time until its group has been waited for."""
        for buf, off, sel in parts:
            lanes = g.mask.idx if sel is None else g.mask.idx[sel]
            offs = np.full(len(lanes), off) if isinstance(off, int) else off
            shadow = self._shadow(buf)
            idx = shadow.granules(offs, site.nbytes, site.align)
            for time in np.unique(g.copy_seq[lanes]).tolist():
                now = g.copy_seq[lanes] == time
                self._access(g, shadow, idx[now], lanes[now], True, False, self._number(site), time + 1)

    def cp_async_waited(self, g: Group, keep: int | None) -> None:
        clocks = g.clocks
        lanes = g.mask.idx
        done = g.copy_seq[lanes] + (1 if keep is None else -keep)
        own = clocks.first + lanes
        clocks.cluster.copied[own] = np.maximum(clocks.cluster.copied[own], done)

    # -- asynchronous accesses ----------------------------------------------------------------------------------------

    def async_write(
        self, g: Group, lane: int, block: Block, offset: int, nbytes: int, bar: MBarrier, info: OpInfo
    ) -> None:
        """A copy into shared memory that signals an mbarrier is issued by a lane."""
        self.mbarrier_check(g, lane, bar, copy=True)
        s = self._shadow(block.smem)
        if nbytes < 1 << s.shift:
            s.refine(nbytes.bit_length() - 1)
        idx = s.span(block.smem_start + offset, nbytes)
        self._async_access(g, lane, s, idx, True, info)
        s.w_actor[idx] = g.clocks.cluster.mbarrier(bar)
        s.w_clock[idx] = bar.phase + 1
        s.w_site[idx] = self._of_info(info)
        s.w_kind[idx] = _ASYNC
        s.r_actor[:, idx] = -1

    def _async_access(self, g: Group, lane: int, s: Shadow, idx: Array, store: bool, info: OpInfo) -> None:
        """Check an access by the asynchronous proxy against what was there."""
        clocks = g.clocks
        lanes = np.array([lane])
        at = idx[None, :]
        known = clocks.of(lane)
        own = clocks.first + lane
        actor, clock, kind = s.w_actor[idx], s.w_clock[idx], s.w_kind[idx]
        ordered = (clock <= known[MEMORY][actor]) | (actor == own)
        if not ordered.all():
            word = "write" if store else "read"
            self._report(g, s, at, ordered[None, :], lanes, word, s.w_actor, s.w_clock, s.w_site)
        fenced = (kind == _ASYNC) | (clock <= known[PROXY][actor])
        if not fenced.all():
            first = int(np.flatnonzero(~fenced)[0])
            raise Fault(
                "race",
                f"{'overwrites' if store else 'reads'} through the asynchronous proxy what was written through the "
                f"generic proxy without a fence.proxy.async between: {s.buf.place(int(idx[first]) << s.shift)}",
                lane,
                notes=(self._note(g, int(actor[first]), int(s.w_site[idx[first]])),),
            )
        if not store:
            return
        for row in range(len(s.rows)):
            reader = s.r_actor[row, idx]
            ok = (s.r_clock[row, idx] <= known[MEMORY][reader]) | (reader == own)
            if not ok.all():
                self._report(g, s, at, ok[None, :], lanes, "overwrite", s.r_actor[row], s.r_clock[row], s.r_site[row])

    def _mark_read(self, s: Shadow, idx: Array, actor: int, time: int, number: int) -> None:
        row = s.row(actor)
        s.r_actor[row, idx] = actor
        s.r_clock[row, idx] = time
        s.r_site[row, idx] = number

    def async_read(self, g: Group, lane: int, block: Block, units: Array, info: OpInfo, bar: MBarrier | None) -> None:
        """A copy out of shared memory is issued by a lane; `bar`: what it signals, else it is of a bulk group."""
        s = self._shadow(block.smem)
        idx = s.units(units + block.smem_start // 16)
        self._async_access(g, lane, s, idx, False, info)
        clocks = g.clocks
        if bar is not None:
            actor, time = clocks.cluster.mbarrier(bar), bar.phase + 1
        else:
            actor, time = self._bulk(g, lane, "bulk"), _next_group(g, lane)
        self._mark_read(s, idx, actor, time, self._of_info(info))

    def _bulk(self, g: Group, lane: int, kind: str) -> int:
        x, y, z = g.thread_coord(lane)
        return g.clocks.cluster.actor(kind, g.clocks.first + lane, f"bulk copy of thread ({x}, {y}, {z})")

    def bulk_waited(self, g: Group, lane: int, done: int, only_read: bool) -> None:
        g.clocks.learn(g, [lane], self._bulk(g, lane, "bulk"), done)
        if not only_read:
            g.clocks.learn(g, [lane], self._bulk(g, lane, "bulk write"), done)

    def async_global_read(self, g: Group, lane: int, buf: Buffer, offsets: Array, info: OpInfo) -> None:
        s = self._shadow(buf)
        if not (s.w_actor >= 0).any():
            return
        idx = np.unique(offsets >> s.shift)
        actor, kind = s.w_actor[idx], s.w_kind[idx]
        assert s.w_cluster is not None
        mine = s.w_cluster[idx] == g.clocks.cluster.number
        known = g.clocks.of(lane)
        row = np.where(kind == _ASYNC, known[MEMORY][actor], known[PROXY][actor])
        ok = (actor < 0) | (mine & (s.w_clock[idx] <= row))
        if not ok.all():
            clock, other, only = s.w_clock[idx][None], s.w_cluster[idx][None], np.array([lane])
            plain, proxy = (self.flags.ordered(g, only, other, actor[None], clock, r)[0] for r in (MEMORY, PROXY))
            ok |= ~mine & np.where(kind == _ASYNC, plain, proxy)
        if not ok.all():
            lanes = np.array([lane])
            self._report(g, s, idx[None], ok[None], lanes, "read", s.w_actor, s.w_clock, s.w_site)

    def async_global_write(self, g: Group, lane: int, buf: Buffer, offsets: Array, info: OpInfo, combine: str) -> None:
        s = self._shadow(buf)
        if len(offsets) == 0:
            return
        step = int(offsets[1] - offsets[0]) if len(offsets) > 1 else 4
        if 0 < step < 1 << s.shift:
            s.refine((step & -step).bit_length() - 1)
        idx = np.unique(offsets >> s.shift)
        clocks = g.clocks
        assert s.w_cluster is not None and s.r_cluster is not None
        actor, cluster = s.w_actor[idx], s.w_cluster[idx]
        mine = cluster == clocks.cluster.number
        known = clocks.of(lane)
        writer = self._bulk(g, lane, "bulk write")
        ok = (actor < 0) | (mine & (s.w_clock[idx] <= known[MEMORY][actor]))
        if not ok.all():
            only = np.array([lane])
            ok |= ~mine & self.flags.ordered(g, only, cluster[None], actor[None], s.w_clock[idx][None], MEMORY)[0]
        # Copies of one thread to the same place are not ordered either; reductions may meet.
        if combine:
            ok |= s.w_kind[idx] == _ATOMIC
        lanes = np.array([lane])
        if not ok.all():
            self._report(g, s, idx[None], ok[None], lanes, "write", s.w_actor, s.w_clock, s.w_site)
        s.w_actor[idx] = writer
        s.w_clock[idx] = _next_group(g, lane)
        s.w_site[idx] = self._of_info(info)
        s.w_kind[idx] = _ATOMIC if combine else _ASYNC
        s.w_cluster[idx] = clocks.cluster.number
        s.r_actor[:, idx] = -1
        s.r_cluster[idx] = -1

    # -- wgmma --------------------------------------------------------------------------------------------------------

    def wgmma_issued(self, g: Group, group: Warpgroup, i: Instruction, warp: int) -> None:
        """One warp issues its part: it reads its own rows of A and all of B."""
        from cute_dialect.interp.wgmma import operand_units

        block = group.block
        s = self._shadow(block.smem)
        actor = g.clocks.cluster.actor(
            "wgmma", _warpgroup(g), f"wgmma of warpgroup {group.number} of block {block.linear}"
        )
        number = self._of_info(i.info)
        for units in operand_units(i, warp):
            idx = s.units(units + block.smem_start // 16)
            self._async_access(g, 0, s, idx, False, i.info)
            self._mark_read(s, idx, actor, i.number + 1, number)

    def wgmma_waited(self, g: Group, group: Warpgroup, target: int) -> None:
        actor = g.clocks.cluster.actor("wgmma", _warpgroup(g), "")
        g.clocks.learn(g, g.mask.idx.tolist(), actor, target)

    # -- reports ------------------------------------------------------------------------------------------------------

    def _shadow(self, buf: Buffer) -> Shadow:
        s = self.shadows.get(id(buf))
        if s is None:
            self.kept.append(buf)
            shared = buf.name == "shared memory"
            s = self.shadows[id(buf)] = Shadow(buf, 8) if shared else Shadow.of_global(buf)
        return s


def _warpgroup(g: Group) -> int:
    """The first thread of a warp's warpgroup, as an actor; blocks need not hold whole warpgroups."""
    return g.clocks.first - int(g.lane_tid[0]) % 128


def _leave(g: Group, message: Array) -> None:
    """All threads of a warp leave a barrier."""
    np.maximum(g.clocks.table, message, out=g.clocks.table)
    if g.clocks.extras:
        g.clocks.acquire(g, message)


def _next_group(g: Group, lane: int) -> int:
    groups = g.bulk.get(lane)
    return 1 + (len(groups.groups) if groups is not None else 0)


__all__ = ["Monitor"]
