"""Race detection: happens-before over threads, generic and asynchronous proxy.

Each access to shared or global memory is compared with those before it to the same bytes: what is not ordered before it
by synchronisation is a race, whatever the schedule was.  See `clocks` for how order is known.  The first race ends the
run with an `InterpError` of kind "race".

Order between clusters comes from flags in global memory alone, see `flags`. How accesses are compared: `race_memory`.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.access_history import REDUCED, WRITTEN, Shadow
from cute_dialect.interp.clocks import (
    EXECUTION,
    MEMORY,
    PROXY,
    PROXY_CLUSTER,
    PROXY_GLOBAL,
    ClusterClocks,
    Meeting,
    WarpClocks,
)
from cute_dialect.interp.errors import Fault, OpInfo
from cute_dialect.interp.flags import CLUSTER, CTA, GPU, RELEASE, Fence, Sync
from cute_dialect.interp.map_fences import MapFences, Write
from cute_dialect.interp.race_memory import ASYNC, REDUCTION, Accesses
from cute_dialect.interp.tensor_map import MAP_BYTES
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cute_dialect.interp.accesses import Part, Site
    from cute_dialect.interp.group import Group
    from cute_dialect.interp.memory import Buffer
    from cute_dialect.interp.state import Launch
    from cute_dialect.interp.sync import Block, Cluster, MBarrier, NamedBarrier
    from cute_dialect.interp.wgmma import Instruction, Warpgroup


class Monitor(Accesses):
    """Watches one launch."""

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self.clusters = 0
        self.maps = MapFences(lambda g, lane, w: self._knows(g, lane, w.cluster, w.actor, w.time))
        self.resized: dict[tuple[int, int, int], int] = {}  # cluster, first thread of a warp, nth setmaxnreg → its time

    # -- life of warps ------------------------------------------------------------------------------------------------

    def admit(self, cluster: Cluster) -> None:
        """Note that a cluster becomes resident."""
        clocks = ClusterClocks(self.clusters, self.launch.threads, [b.linear for b in cluster.blocks])
        self.clusters += 1
        self.by_number.append(clocks)
        cluster.meeting = Meeting()
        for rank, block in enumerate(cluster.blocks):
            for g in block.groups:
                g.clocks = WarpClocks(clocks, rank * clocks.padded + int(g.lane_tid[0]))
        self.lifetimes.admit(cluster, clocks)

    def exits(self, g: Group) -> None:
        """Note that a warp has ended: nothing may still touch the shared memory that ends with it."""
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

    def fence(self, g: Group, fence: Fence) -> None:
        """Note a fence of the active lanes."""
        clocks = g.clocks
        lanes = g.mask.idx.tolist()
        if fence.order:
            self.flags.fence(g, lanes, fence.order, fence.scope)
        if fence.proxy:
            clocks.fence_proxy(g, fence.proxy)
        if "global" in fence.proxy:
            self.flags.fence_proxy(g, lanes)
        if fence.maps == RELEASE:
            self.maps.release(g, fence.scope)
        if fence.init:
            for lane, bar in clocks.inits:
                if lane in lanes:
                    bar.clocks.fenced = True  # type: ignore[attr-defined]

    def acquire_maps(self, g: Group, maps: Sequence[tuple[int, int]], fence: Fence) -> None:
        """Note a fence of the tensormap proxy that acquires maps: (lane, address)."""
        for lane, address in maps:
            buf = g.memory.find(address)
            if buf is not None and id(buf) in self.shadows:
                offset = address - buf.base
                self.maps.acquire(g, lane, buf, offset, self._writes(buf, offset), fence.scope)
        g.clocks.clock += 1

    def uses_map(self, g: Group, lane: int, buf: Buffer, offset: int) -> None:
        """Note that a copy that a lane issues reads a tensor map."""
        writes = self._writes(buf, offset) if id(buf) in self.shadows else frozenset[Write]()
        if not writes:
            return
        s = self.shadows[id(buf)]
        idx = s.span(offset, MAP_BYTES)[None, :]
        self._check_write(g, s, idx, np.array([lane]), False, s.w_actor[idx])
        written = next(note for at in idx[0].tolist() if (note := self._written(g, s, at)))
        self.maps.use(g, lane, buf, offset, writes, written)

    def _writes(self, buf: Buffer, offset: int) -> frozenset[Write]:
        """Return the last writes to the bytes of a tensor map."""
        s = self.shadows[id(buf)]
        idx = s.span(offset, MAP_BYTES)
        cluster = np.zeros_like(idx) if s.w_cluster is None else s.w_cluster[idx]
        rows = zip(cluster.tolist(), s.w_actor[idx].tolist(), s.w_clock[idx].tolist())
        weak = {Write(*row) for row in rows if row[1] >= 0}
        strong = {
            Write(by.cluster, by.actor, by.time)
            for at in idx[s.has_strong[idx]].tolist()
            for _, all_ in s.strong[at].against(None, -1, -1, False)
            for by in all_
        }
        return frozenset(weak | strong)

    def arrive(self, g: Group, bar: NamedBarrier, ident: int, info: OpInfo) -> None:
        """Note that a warp arrives at a named barrier: after all who arrived in the phase before, or it might have
        counted there.

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
        """Note that a warp executes its `count`-th setmaxnreg: `warps`, the others of its warpgroup, have synchronised
        with it after the one before (PTX ISA 9.0, 9.7.19.5 "setmaxnreg").
        """
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
        """Note that a warp has waited at a named barrier: it knows what all who met there knew."""
        if bar.meeting is not None and bar.meeting.done is not None:
            _leave(g, bar.meeting.done)

    def cluster_arrive(self, g: Group, cluster: Cluster, relaxed: bool) -> None:
        """Note that a warp arrives at the cluster's barrier; relaxed, it passes on what was before its fences only."""
        clocks = g.clocks
        if relaxed:
            message = clocks.release_by_fences(g, g.mask.idx.tolist(), GPU, CLUSTER)
        else:
            message = clocks.release(g)
        assert cluster.meeting is not None
        cluster.meeting.add(message)

    def cluster_wait(self, g: Group, cluster: Cluster) -> None:
        """Note that a warp has waited at the cluster's barrier."""
        assert cluster.meeting is not None
        if cluster.meeting.done is not None:
            _leave(g, cluster.meeting.done)

    def barrier(self, g: Group) -> None:
        """Note that blocks in lockstep pass a barrier."""
        raise AssertionError("a warp does not run in lockstep with others")

    def warp_sync(self, g: Group) -> None:
        """Note a `bar.warp.sync` of the active lanes."""
        g.clocks.synchronise(g)

    def mbarrier_init(self, g: Group, lane: int, block: Block, offset: int, bar: MBarrier) -> None:
        """Note that a lane initialises an mbarrier."""
        clocks = g.clocks
        self.kept.append(bar)
        bar.clocks = Meeting(bar, clocks.cluster.mbarrier(bar), (clocks.first + lane, clocks.clock))
        clocks.inits.append((lane, bar))

    def mbarrier_inval(self, g: Group, lane: int, bar: MBarrier) -> None:
        """Note that a lane invalidates an mbarrier: each earlier wait, and arrival that releases,
        must be known to it.
        """
        known = g.clocks.of(lane)
        for actors, time in bar.clocks.uses.items():  # type: ignore[attr-defined]
            late = [a for a in actors if a != g.clocks.first + lane and max(known[[MEMORY, EXECUTION], a]) < time]
            if late:
                who = self._actor(g, late[0], -1)
                raise Fault(
                    "race",
                    f"mbarrier.inval of the {bar.name}, which {who} used last without order before it: expected a "
                    "barrier between the two",
                    lane,
                )

    def mbarrier_check(self, g: Group, lane: int, bar: MBarrier, copy: bool = False) -> None:
        """Tell whether the initialisation of an mbarrier is visible to a lane, or to a copy that it issues."""
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

    def mbarrier_arrive(
        self, g: Group, lane: int, block: Block, bar: MBarrier, sync: Sync | None, info: OpInfo, copies: bool = False
    ) -> None:
        """Note that a lane arrives at an mbarrier, unless `sync` is None; `copies`: when its cp.async are complete.

        Only threads of the mbarrier's own block can wait there (PTX ISA 9.0, 9.7.13.15.16 "mbarrier.test_wait")."""
        self.mbarrier_check(g, lane, bar)
        self.lifetimes.arrives(g, lane, block, self._of_info(info))
        if sync is None:
            return
        far = block.linear != g.block_of(lane)
        needs = CLUSTER if far else CTA
        if sync.relaxed or sync.scope < needs:
            message = g.clocks.release_by_fences(g, [lane], sync.scope, needs)
        else:
            bar.clocks.uses[(g.clocks.first + lane,)] = g.clocks.clock  # type: ignore[attr-defined]
            message = g.clocks.release(g, [lane])
        if copies:
            message[MEMORY, g.clocks.first + lane + g.clocks.cluster.threads] = g.copy_times(
                np.array([lane]), g.copy_seq[[lane]] + 1
            )[0]
        bar.clocks.add(message, far)  # type: ignore[attr-defined]

    def mbarrier_wait(self, g: Group, lanes: list[int], bar: MBarrier, sync: Sync) -> None:
        """Note that lanes have waited for a phase: a relaxed wait orders nothing before a fence that acquires (PTX ISA
        9.0, 8.8 "Release and Acquire Patterns", a strong read followed by a fence).
        """
        clocks = g.clocks
        meeting: Meeting = bar.clocks  # type: ignore[assignment]
        for lane in lanes if clocks.extras else lanes[:1]:
            self.mbarrier_check(g, lane, bar)
        for message, needs in ((meeting.done, CTA), (meeting.far_done, CLUSTER)):
            if message is None:
                continue
            if not sync.relaxed and sync.scope >= needs:
                clocks.acquire(g, message, lanes)
                continue
            clocks.acquire(g, clocks.cluster.executed(message), lanes)
            for lane in lanes if sync.scope >= needs else ():
                clocks.pending.setdefault(lane, []).append(({clocks.cluster.number: message}, needs))
        meeting.uses[tuple(clocks.first + lane for lane in lanes)] = clocks.clock

    # -- asynchronous accesses ----------------------------------------------------------------------------------------

    def cp_async(self, g: Group, site: Site, parts: list[Part]) -> None:
        """Note that a cp.async is issued: it writes at any time until its group has been waited for."""
        for buf, off, sel in parts:
            lanes = g.mask.idx if sel is None else g.mask.idx[sel]
            offs = np.full(len(lanes), off) if isinstance(off, int) else off
            shadow = self._shadow(buf)
            idx = shadow.granules(offs, site.nbytes, site.align)
            times = g.copy_times(lanes, g.copy_seq[lanes] + 1)
            for time in np.unique(times).tolist():
                now = times == time
                self._access(g, shadow, idx[now], lanes[now], True, self._number(site), time=time)

    def cp_async_waited(self, g: Group, keep: int | None) -> None:
        """Note that the active lanes have waited for all but `keep` groups of their cp.async; None: for all of them."""
        clocks = g.clocks
        lanes = g.mask.idx
        done = g.copy_times(lanes, g.copy_seq[lanes] + (1 if keep is None else -keep))
        own = clocks.first + lanes
        clocks.cluster.copied[own] = np.maximum(clocks.cluster.copied[own], done)

    def async_write(
        self,
        g: Group,
        lane: int,
        block: Block,
        offset: int,
        nbytes: int,
        bar: MBarrier,
        info: OpInfo,
        *,
        reduces: bool = False,
    ) -> None:
        """Note that a copy (`reduces`: a reduction) into shared memory that signals an mbarrier is issued by a lane."""
        self.mbarrier_check(g, lane, bar, copy=True)
        s = self._shadow(block.smem)
        if nbytes < 1 << s.shift:
            s.refine(nbytes.bit_length() - 1)
        idx = s.span(block.smem_start + offset, nbytes)
        self._async_access(g, lane, block, s, idx, True, reduces=reduces)
        writer, number = g.clocks.cluster.mbarrier(bar), self._of_info(info)
        if reduces:
            self._reduced(g, s, idx, writer, bar.phase + 1, number)
        else:
            self._remember_write(g, s, idx, writer, bar.phase + 1, number, ASYNC)

    def async_read(self, g: Group, lane: int, block: Block, units: Array, info: OpInfo, bar: MBarrier | None) -> None:
        """Note that a copy out of shared memory is issued by a lane; `bar`: what it signals, else it is of a bulk
        group.
        """
        s = self._shadow(block.smem)
        idx = s.units(units + block.smem_start // 16)
        self._async_access(g, lane, block, s, idx, False)
        self._copy_reads(g, lane, s, idx, info, bar)

    def async_global_read(
        self, g: Group, lane: int, buf: Buffer, offsets: Array, size: int, info: OpInfo, bar: MBarrier | None
    ) -> None:
        """Note that a copy of elements of `size` bytes out of global memory is issued by a lane; `bar`: what it
        signals.
        """
        s = self._shadow(buf)
        if len(offsets):
            if self.preceding is not None:
                self.preceding.access(g, buf, int(offsets[0]), np.array([lane]), "copy out")
            idx = s.elements(offsets, size)
            self._async_access(g, lane, None, s, idx, False)
            self._copy_reads(g, lane, s, idx, info, bar)

    def copies_through(self, g: Group, lane: int, site: Site, buf: Buffer, offsets: Array, size: int) -> None:
        """Note that a copy that a lane issues touches elements of `size` bytes of global memory through a kernel's
        argument.
        """
        s = self._shadow(buf)
        if len(offsets):
            self._check_alias(s, s.elements(offsets, size)[None, :], np.array([lane]), site)

    def _copy_reads(self, g: Group, lane: int, s: Shadow, idx: Array, info: OpInfo, bar: MBarrier | None) -> None:
        if bar is not None:
            actor, time = g.clocks.cluster.mbarrier(bar), bar.phase + 1
        else:
            actor, time = self._bulk(g, lane, "bulk"), _next_group(g, lane)
        self._read_by(g, s, idx, actor, time, self._of_info(info))

    def _read_by(self, g: Group, s: Shadow, idx: Array, actor: int, time: int, number: int) -> None:
        row = 0 if s.r_cluster is not None else s.row(actor)
        self._mark_read(g, s, row, idx, actor, np.ones(len(idx), np.uint32), time, number)

    def async_global_write(
        self, g: Group, lane: int, buf: Buffer, offsets: Array, size: int, info: OpInfo, combine: str
    ) -> None:
        """Note that a copy or reduction of elements of `size` bytes into global memory is issued by a lane, as part of
        its next bulk group.
        """
        s = self._shadow(buf)
        if len(offsets) == 0:
            return
        if self.preceding is not None:
            self.preceding.access(g, buf, int(offsets[0]), np.array([lane]), "copy into")
        idx = s.elements(offsets, size)
        self._async_access(g, lane, None, s, idx, True, reduces=bool(combine))
        writer, time, number = self._bulk(g, lane, "bulk write"), _next_group(g, lane), self._of_info(info)
        if combine:
            self._reduced(g, s, idx, writer, time, number)
        else:
            self._remember_write(g, s, idx, writer, time, number, ASYNC)

    def _reduced(self, g: Group, s: Shadow, idx: Array, writer: int, time: int, number: int) -> None:
        """Remember a reduction: others need not be ordered after it, so what was before it is kept."""
        number_of = g.clocks.cluster.number
        actor, kind = s.w_actor[idx], s.w_kind[idx]
        cluster = np.full(len(idx), number_of) if s.w_cluster is None else s.w_cluster[idx]
        again = (actor == writer) & (kind == REDUCTION) & (cluster == number_of)
        for sort, past in ((kind == REDUCTION, REDUCED), (kind != REDUCTION, WRITTEN)):
            kept = (actor >= 0) & sort & ~again
            if kept.any():
                at = idx[kept]
                s.more[at] = np.where(s.more[at] == 0, s.past.sequence, s.more[at])
                s.past.add(at, cluster[kept], actor[kept], 1, s.w_clock[at], s.w_site[at], past)
        s.w_actor[idx] = writer
        s.w_clock[idx] = time
        s.w_site[idx] = number
        s.w_kind[idx] = REDUCTION
        if s.w_cluster is not None:
            s.w_cluster[idx] = number_of

    def _async_access(
        self, g: Group, lane: int, block: Block | None, s: Shadow, idx: Array, store: bool, *, reduces: bool = False
    ) -> None:
        """Check an access by the asynchronous proxy, to shared memory of a block or (None) to global memory."""
        lanes, at = np.array([lane]), idx[None, :]
        own = None if block is None else _of_block(g, block)

        def proxy(actor: int) -> int:
            return PROXY_GLOBAL if own is None else PROXY if own[actor] else PROXY_CLUSTER

        if (s.w_actor[idx] >= 0).any():
            self._async_after(g, lane, block, s, idx, store, reduces)
        if (s.past.used if store else s.past.written) and s.more[idx].any():
            self._check_past(g, s, at, lanes, store, reduces=reduces, proxy=proxy)
        if s.strong and s.has_strong[idx].any():
            self._check_strong(g, s, at, lanes, store, proxy=proxy)
        if store:
            self._check_reads(g, s, at, lanes)
            self._check_constant(g, s, at, lanes)

    def _async_after(
        self, g: Group, lane: int, block: Block | None, s: Shadow, idx: Array, store: bool, reduces: bool
    ) -> None:
        """Check that the last weak writes are ordered before a copy, and visible to it."""
        clocks = g.clocks
        lanes, known, number = np.array([lane]), clocks.of(lane), clocks.cluster.number
        own = clocks.first + lane
        actor, clock, kind = s.w_actor[idx], s.w_clock[idx], s.w_kind[idx]
        foreign = None if s.w_cluster is None else (actor >= 0) & (s.w_cluster[idx] != number)
        ordered = clock <= known[MEMORY][actor]  # actor -1, of no write, is known by all
        if not ordered.all():
            ordered |= actor == own
        fenced = kind != 0
        if not fenced.all():
            if block is None:
                row = known[PROXY_GLOBAL][actor]
            elif len(clocks.cluster.blocks) == 1:
                row = known[PROXY][actor]
            else:
                row = np.where(_of_block(g, block)[actor], known[PROXY][actor], known[PROXY_CLUSTER][actor])
            fenced |= clock <= row
        if s.w_cluster is not None and foreign is not None and foreign.any():
            rows = (s.w_cluster[idx][None], actor[None], clock[None])
            ordered = np.where(foreign, self.flags.ordered(g, lanes, *rows, MEMORY)[0], ordered)
            seen = (kind != 0) | self.flags.ordered(g, lanes, *rows, PROXY_GLOBAL)[0]
            fenced = np.where(foreign, seen, fenced)
        if reduces:
            ordered |= kind == REDUCTION
        if not ordered.all():
            word = "write" if store else "read"
            self._report(g, s, idx[None, :], ordered[None, :], lanes, word, s.w_actor, s.w_clock, s.w_site)
        if not fenced.all():
            first = int(np.flatnonzero(~fenced)[0])
            at = int(idx[first])
            cluster = number if s.w_cluster is None else int(s.w_cluster[at])
            self._unfenced(g, s, at, lane, store, int(actor[first]), int(s.w_site[at]), cluster)

    def _bulk(self, g: Group, lane: int, kind: str) -> int:
        x, y, z = g.thread_coord(lane)
        return g.clocks.cluster.actor(kind, g.clocks.first + lane, f"bulk copy of thread ({x}, {y}, {z})")

    def bulk_waited(self, g: Group, lane: int, done: int, only_read: bool) -> None:
        """Note that a lane has waited for its first `done` bulk groups, or only for their reads."""
        g.clocks.learn(g, [lane], self._bulk(g, lane, "bulk"), done)
        if not only_read:
            g.clocks.learn(g, [lane], self._bulk(g, lane, "bulk write"), done)

    # -- wgmma --------------------------------------------------------------------------------------------------------

    def wgmma_issued(self, g: Group, group: Warpgroup, i: Instruction, warp: int) -> None:
        """Note that one warp issues its part: it reads its own rows of A and all of B."""
        from cute_dialect.interp.wgmma import operand_units

        block = group.block
        s = self._shadow(block.smem)
        actor = g.clocks.cluster.actor(
            "wgmma", _warpgroup(g), f"wgmma of warpgroup {group.number} of block {block.linear}"
        )
        number = self._of_info(i.info)
        for units in operand_units(i, warp):
            idx = s.units(units + block.smem_start // 16)
            self._async_access(g, 0, block, s, idx, False)
            self._read_by(g, s, idx, actor, i.number + 1, number)

    def wgmma_waited(self, g: Group, group: Warpgroup, target: int) -> None:
        """Note that the active lanes have waited for the wgmma with numbers below `target`."""
        actor = g.clocks.cluster.actor("wgmma", _warpgroup(g), "")
        g.clocks.learn(g, g.mask.idx.tolist(), actor, target)


def _warpgroup(g: Group) -> int:
    """Return the first thread of a warp's warpgroup, as an actor; blocks need not hold whole warpgroups."""
    return g.clocks.first - int(g.lane_tid[0]) % 128


def _of_block(g: Group, block: Block) -> Array:
    """Return which actors are threads of a block of the group's cluster, or their copies: one bool a column."""
    return g.clocks.cluster.of_block(g.clocks.cluster.blocks.index(block.linear))


def _leave(g: Group, message: Array) -> None:
    """Return all threads of a warp leave a barrier."""
    np.maximum(g.clocks.table, message, out=g.clocks.table)
    if g.clocks.extras:
        g.clocks.acquire(g, message)


def _next_group(g: Group, lane: int) -> int:
    groups = g.bulk.get(lane)
    return 1 + (len(groups.groups) if groups is not None else 0)


__all__ = ["Monitor"]
