"""Race detection: happens-before over threads, generic proxy and asynchronous proxy.

Each access to shared or global memory is compared with the earlier accesses to the same bytes. An earlier conflicting
access that synchronization does not order before it is a race, under any schedule. The first race ends the run with an
`InterpError` of kind "race".

`clocks` tracks the order of threads. Clusters are ordered only by flags in global memory (`flags`). `memory_checks`
compares accesses.

**Tensor maps written by the kernel itself.** TMA reads its map through the tensormap proxy. A write through the generic
proxy becomes visible there after two fences: `fence.proxy.tensormap::generic.release` by the writer (or by a thread
ordered after it), and then `fence.proxy.tensormap::generic.acquire` of the map's 128 bytes by the user (or by a thread
ordered before it). Both scopes must include the other thread. Source: PTX ISA 9.0, 9.7.13.4 "membar / fence"
(uni-directional proxy fences), 8.6 "Proxies".
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.errors import Fault, OpInfo
from cute_dialect.interp.machine.wgmma import operand_units
from cute_dialect.interp.memory.tensor_map import MAP_BYTES
from cute_dialect.interp.race.clocks import (
    EXECUTION,
    FOREVER,
    MEMORY,
    PROXY,
    PROXY_CLUSTER,
    PROXY_GLOBAL,
    ROWS,
    ClusterClocks,
    Meeting,
    WarpClocks,
)
from cute_dialect.interp.race.flags import CLUSTER, CTA, GPU, RELEASE, Fence, Known, Place, Sync, join, place_of
from cute_dialect.interp.race.history import REDUCED, WRITTEN, Shadow
from cute_dialect.interp.race.memory_checks import ASYNC, REDUCTION, Accesses, check_owner
from cute_dialect.interp.race.tensor_order import TensorOrder
from cute_dialect.interp.values import Array

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Sequence

    from cute_dialect.interp.machine.barriers import Block, Cluster, MBarrier, NamedBarrier
    from cute_dialect.interp.machine.group import Group, Machine
    from cute_dialect.interp.machine.tcgen05 import Use, Work
    from cute_dialect.interp.machine.wgmma import Instruction, Warpgroup
    from cute_dialect.interp.memory.accesses import Part, Site
    from cute_dialect.interp.memory.buffers import Buffer


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


class Write(NamedTuple):
    """The origin of a write to a map."""

    cluster: int
    actor: int
    time: int


class _Release(NamedTuple):
    """A releasing fence of a thread. `known` is the row of times that were ordered before it."""

    by: Write
    place: Place
    scope: int
    known: Array

    def covers(self, write: Write) -> bool:
        """Return True if a write was made by the thread before the fence, or is ordered before it."""
        if write.cluster != self.by.cluster:
            return False
        return write.time <= (self.by.time if write.actor == self.by.actor else int(self.known[write.actor]))


class MapFences:
    """Fences of the tensormap proxy in a launch. `ordered` is True if a lane is ordered after a write."""

    def __init__(self, ordered: Callable[[Group, int, Write], bool]) -> None:
        self._ordered = ordered
        self._releases: list[_Release] = []
        self._acquired: dict[tuple[int, int], list[tuple[frozenset[Write], Write]]] = {}  # by buffer and offset

    def release(self, g: Group, scope: int) -> None:
        """Record a releasing fence of the active lanes, which covers all maps."""
        clocks = g.clocks
        for lane in g.mask.idx.tolist():
            by = Write(clocks.cluster.number, clocks.first + lane, clocks.clock)
            self._releases.append(_Release(by, place_of(g, lane), scope, clocks.of(lane)[MEMORY].copy()))
        clocks.clock += 1

    def acquire(self, g: Group, lane: int, buf: Buffer, offset: int, writes: frozenset[Write], scope: int) -> None:
        """Record an acquiring fence of a lane for a map.

        It takes effect if all writes to the map were released to the lane.
        """
        clocks = g.clocks
        for write in writes:
            if not any(r.covers(write) and self._reaches(g, lane, r, scope) for r in self._releases):
                return
        by = Write(clocks.cluster.number, clocks.first + lane, clocks.clock)
        self._acquired.setdefault((id(buf.root), offset), []).append((writes, by))

    def _reaches(self, g: Group, lane: int, release: _Release, scope: int) -> bool:
        needs = release.place.scope(place_of(g, lane))
        return min(scope, release.scope) >= needs and self._ordered(g, lane, release.by)

    def use(self, g: Group, lane: int, buf: Buffer, offset: int, writes: frozenset[Write], note: str) -> None:
        """Check that a copy issued by a lane may read a map. Raises Fault if it may see earlier contents."""
        for seen, by in self._acquired.get((id(buf.root), offset), ()):
            if seen == writes and self._ordered(g, lane, by):
                return
        raise Fault(
            "race",
            f"uses the tensor map in {buf.place(offset)}, which the kernel has written: missing "
            "fence.proxy.tensormap::generic.release by the writer, or fence.proxy.tensormap::generic.acquire of its "
            "128 bytes before the copy, with scopes that include both threads",
            lane,
            notes=(note,),
        )


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


class Monitor(Accesses):
    """Race detector of one launch."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.clusters = 0
        self.tensor = TensorOrder(machine, self._actor)
        self.maps = MapFences(lambda g, lane, w: self._knows(g, lane, w.cluster, w.actor, w.time))
        # (cluster, first thread of a warp, n) → time of the warp's nth setmaxnreg
        self.resized: dict[tuple[int, int, int], int] = {}
        # (cluster, bulk copies of a thread, group) → the thread, and its time of issue of the group's last reduction
        self._issued: dict[tuple[int, int, int], tuple[int, int]] = {}

    # -- warps --------------------------------------------------------------------------------------------------------

    def admit(self, cluster: Cluster) -> None:
        """Record that a cluster becomes resident."""
        machine = cluster.blocks[0].groups[0].machine
        clocks = ClusterClocks(self.clusters, machine, [b.linear for b in cluster.blocks])
        self.clusters += 1
        self.by_number.append(clocks)
        if machine.ordered_before and machine.preceding is None:
            clocks.log.append((-1, 0, machine.ordered_before))
        cluster.meeting = Meeting()
        for rank, block in enumerate(cluster.blocks):
            for g in block.groups:
                g.clocks = WarpClocks(clocks, rank * clocks.padded + int(g.lane_tid[0]))
        self.lifetimes.admit(cluster, clocks)

    def exits(self, g: Group) -> None:
        """Record that a warp has ended. Raises if a copy may still access shared memory that ends with it."""
        for lane, groups in g.bulk.items():
            late = [t for group in groups.groups[groups.read :] for t in group] + groups.open
            if late:
                raise g.fail(
                    Fault(
                        "race",
                        "the thread ends while its bulk copy may still read shared memory: missing "
                        "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read before the end",
                        lane,
                    ),
                    late[0].info,
                )
        self.lifetimes.warp_ends(g, self.shadows.get(id(g.smem)))

    def ordered_after(self, machine: Machine) -> Known:
        """Return the tables ordered before a launch that follows the one of a machine on its stream.

        They hold all that the clusters of that launch did and knew, visible to all proxies.
        """
        parts: list[Known] = [machine.ordered_before]
        everything: dict[int, Array] = {}
        for clocks in self.by_number:
            if clocks.machine is machine:
                if clocks.columns not in everything:
                    everything[clocks.columns] = np.full((len(ROWS), clocks.columns), FOREVER, np.int32)
                parts.append({clocks.number: everything[clocks.columns]})
                parts += [known for _, _, known in clocks.log if known is not machine.ordered_before]
        out = dict(join(parts))
        for number, table in out.items():
            if (table[PROXY_GLOBAL] < table[MEMORY]).any():
                out[number] = table = table.copy()
                np.maximum(table[PROXY_GLOBAL], table[MEMORY], out=table[PROXY_GLOBAL])
        return out

    # -- synchronisation ----------------------------------------------------------------------------------------------

    def fence(self, g: Group, fence: Fence) -> None:
        """Record a fence of the active lanes."""
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
        """Record a fence of the tensormap proxy that acquires maps, given as (lane, address)."""
        for lane, address in maps:
            buf = g.memory.find(address)
            if buf is not None and id(buf.root) in self.shadows:
                offset = address - buf.base
                self.maps.acquire(g, lane, buf, offset, self._writes(buf, offset), fence.scope)
        g.clocks.clock += 1

    def uses_map(self, g: Group, lane: int, buf: Buffer, offset: int) -> None:
        """Record that a copy issued by a lane reads a tensor map."""
        writes = self._writes(buf, offset) if id(buf.root) in self.shadows else frozenset[Write]()
        if not writes:
            return
        s = self.shadows[id(buf.root)]
        idx = s.span(offset, MAP_BYTES)[None, :]
        self._check_write(g, s, idx, np.array([lane]), False, s.w_actor[idx])
        written = next(note for at in idx[0].tolist() if (note := self._written(g, s, at)))
        self.maps.use(g, lane, buf, offset, writes, written)

    def _writes(self, buf: Buffer, offset: int) -> frozenset[Write]:
        """Return the last writes to the bytes of a tensor map."""
        s = self.shadows[id(buf.root)]
        idx = s.span(offset, MAP_BYTES)
        cluster = np.zeros_like(idx) if s.w_cluster is None else s.w_cluster[idx]
        rows = zip(cluster.tolist(), s.w_actor[idx].tolist(), s.w_clock[idx].tolist())
        weak = {Write(*row) for row in rows if row[1] >= 0}
        strong = {
            Write(by.cluster, by.actor, by.time)
            for at in idx[s.has_strong[idx]].tolist()
            for _, all_ in s.strong[at].against(None, Place(-1, -1), False)
            for by in all_
        }
        return frozenset(weak | strong)

    def arrive(self, g: Group, bar: NamedBarrier, ident: int, info: OpInfo) -> None:
        """Record the arrival of a warp at a named barrier.

        The arrival must be ordered after all arrivals of the previous phase, or it may count for that phase. PTX ISA
        9.0, 9.7.13.1 "bar": an arrival counts for the phase in progress.
        """
        if bar.meeting is None:
            bar.meeting = Meeting()
        own, time = g.clocks.first + int(g.mask.idx[0]), g.clocks.clock
        message = g.clocks.release(g)
        for actor, when, site in bar.meeting.before:
            if message[EXECUTION, actor] < when:
                raise Fault(
                    "race",
                    f"barrier {ident} may still be in use: nothing orders this arrival after one of the previous "
                    "phase, so it may count for that phase; give each group of warps its own barrier id, or add a "
                    "barrier between the uses",
                    notes=(self._note(g, actor, site),),
                )
        bar.meeting.parties.append((own, time, self._of_info(info)))
        bar.meeting.add(message)

    def registers(self, g: Group, count: int, warps: Sequence[int]) -> None:
        """Record the `count`-th setmaxnreg of a warp.

        The other `warps` of its warpgroup must have synchronized with it since the previous one (PTX ISA 9.0, 9.7.19.5
        "setmaxnreg").
        """
        clocks = g.clocks
        self.resized[clocks.cluster.number, clocks.first, count] = clocks.clock
        first = clocks.first - int(g.lane_tid[0])
        for warp in warps if count > 1 else ():
            time = self.resized.get((clocks.cluster.number, first + 32 * warp, count - 1))
            if time is None or clocks.of(int(g.mask.idx[0]))[EXECUTION, first + 32 * warp] < time:
                raise Fault(
                    "race",
                    f"second setmaxnreg, but warp {warp} of the warpgroup may not have executed the first: missing "
                    "barrier of the warpgroup between them",
                )

    def wait(self, g: Group, bar: NamedBarrier) -> None:
        """Record a completed wait at a named barrier: the warp acquires the tables of all warps that arrived."""
        if bar.meeting is not None and bar.meeting.done is not None:
            _leave(g, bar.meeting.done)

    def cluster_arrive(self, g: Group, cluster: Cluster, relaxed: bool) -> None:
        """Record the arrival of a warp at the cluster barrier.

        A relaxed arrival releases only what precedes its fences.
        """
        clocks = g.clocks
        if relaxed:
            message = clocks.release_by_fences(g, g.mask.idx.tolist(), GPU, CLUSTER)
        else:
            message = clocks.release(g)
        assert cluster.meeting is not None
        cluster.meeting.add(message)

    def cluster_wait(self, g: Group, cluster: Cluster) -> None:
        """Record a completed wait at the cluster barrier."""
        assert cluster.meeting is not None
        if cluster.meeting.done is not None:
            _leave(g, cluster.meeting.done)

    def barrier(self, g: Group) -> None:
        """Record a barrier of blocks in lockstep."""
        raise AssertionError("a warp does not run in lockstep with others")

    def warp_sync(self, g: Group) -> None:
        """Record a `bar.warp.sync` of the active lanes."""
        g.clocks.synchronise(g)

    def mbarrier_init(self, g: Group, lane: int, block: Block, offset: int, bar: MBarrier) -> None:
        """Record an mbarrier.init by a lane."""
        clocks = g.clocks
        self.kept.append(bar)
        bar.clocks = Meeting(bar, clocks.cluster.mbarrier(bar), (clocks.first + lane, clocks.clock))
        clocks.inits.append((lane, bar))

    def mbarrier_inval(self, g: Group, lane: int, bar: MBarrier) -> None:
        """Record an mbarrier.inval by a lane. It must be ordered after each wait and each releasing arrival."""
        known = g.clocks.of(lane)
        for actors, time in bar.clocks.uses.items():  # type: ignore[attr-defined]
            late = [a for a in actors if a != g.clocks.first + lane and max(known[[MEMORY, EXECUTION], a]) < time]
            if late:
                who = self._actor(g, late[0], -1)
                raise Fault(
                    "race",
                    f"mbarrier.inval of the {bar.name} races with its last use by {who}: missing barrier between the "
                    "two",
                    lane,
                )

    def mbarrier_check(self, g: Group, lane: int, bar: MBarrier, copy: bool = False) -> None:
        """Check that the initialization of an mbarrier is visible to a lane, or to a copy that it issues."""
        meeting: Meeting = bar.clocks  # type: ignore[assignment]
        actor, time = meeting.init
        known = g.clocks.of(lane)
        own = actor == g.clocks.first + lane
        if copy and not meeting.fenced and known[PROXY, actor] < time:
            raise Fault(
                "race",
                f"{bar.name} is used by an asynchronous copy, but its initialization is not visible to the "
                "asynchronous proxy: missing fence.mbarrier_init or fence.proxy.async after mbarrier.init",
                lane,
            )
        if own or known[MEMORY, actor] >= time or (meeting.fenced and known[EXECUTION, actor] >= time):
            return
        raise Fault(
            "race",
            f"{bar.name} is used by a thread to which its initialization is not visible: missing barrier between "
            "mbarrier.init and its first use",
            lane,
        )

    def mbarrier_phase_check(self, g: Group, lane: int, bar: MBarrier, what: str) -> None:
        """Check that a lane is ordered after the last phase of an mbarrier that received bytes.

        Otherwise these bytes may still be in flight, and the operation would belong to that phase: an arrival exceeds
        its count, and expected or copied bytes change its transaction count. Source: PTX ISA 9.0, "Phase of the
        mbarrier object", "Tracking asynchronous operations by the mbarrier object".
        """
        if not bar.byte_phases or max(g.clocks.of(lane)[[MEMORY, EXECUTION], bar.actor]) >= bar.byte_phases:
            return
        raise Fault(
            "race",
            f"{what} {bar.name} in phase {bar.phase} is not ordered after the copies of phase {bar.byte_phases - 1}: "
            "while they are in flight it would belong to that phase; wait for that phase first, or for threads that "
            "have waited for it",
            lane,
        )

    def mbarrier_arrive(
        self, g: Group, lane: int, block: Block, bar: MBarrier, sync: Sync | None, info: OpInfo, copies: bool = False
    ) -> None:
        """Record the arrival of a lane at an mbarrier.

        Only threads of the mbarrier's own block can wait on it (PTX ISA 9.0, 9.7.13.15.16 "mbarrier.test_wait").

        Args:
            sync: Order and scope of the arrival, None if it does not arrive now.
            copies: True if the arrival happens when the lane's cp.async are complete.
        """
        self.mbarrier_check(g, lane, bar)
        self.mbarrier_phase_check(g, lane, bar, "this operation on the")
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
        """Record a completed wait of lanes for a phase.

        A relaxed wait orders accesses only together with a later acquiring fence. Source: PTX ISA 9.0, 8.8 "Release and
        Acquire Patterns", a strong read followed by a fence.
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
        """Record a cp.async. It writes at any time until its group has been waited for."""
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
        """Record a wait of the active lanes for all but `keep` of their cp.async groups, None for all of them."""
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
        """Record a copy (or reduction) into shared memory that signals an mbarrier, issued by a lane."""
        self.mbarrier_check(g, lane, bar, copy=True)
        self.mbarrier_phase_check(g, lane, bar, "this copy, which signals the")
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
        """Record a copy out of shared memory, issued by a lane.

        It signals `bar`, or belongs to a bulk group if `bar` is None.
        """
        s = self._shadow(block.smem)
        idx = s.units(units + block.smem_start // 16)
        self._async_access(g, lane, block, s, idx, False)
        self._copy_reads(g, lane, s, idx, info, bar)

    def async_global_read(
        self, g: Group, lane: int, buf: Buffer, offsets: Array, size: int, info: OpInfo, bar: MBarrier | None
    ) -> None:
        """Record a copy of `size`-byte elements out of global memory, issued by a lane.

        It signals `bar`, or belongs to a bulk group if `bar` is None.
        """
        s = self._shadow(buf)
        if len(offsets):
            if g.machine.preceding is not None:
                g.machine.preceding.access(g, buf, int(offsets[0]), np.array([lane]), "copy out")
            check_owner(g, buf, False, lane)
            idx = s.elements(offsets, size)
            self._async_access(g, lane, None, s, idx, False)
            self._copy_reads(g, lane, s, idx, info, bar)

    def copies_through(self, g: Group, lane: int, site: Site, buf: Buffer, offsets: Array, size: int) -> None:
        """Record that a copy accesses `size`-byte elements of global memory through an argument of the kernel."""
        s = self._shadow(buf)
        if len(offsets):
            self._check_alias(g, s, s.elements(offsets, size)[None, :], np.array([lane]), site)

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
        """Record a copy or reduction of `size`-byte elements into global memory, in the lane's next bulk group."""
        s = self._shadow(buf)
        if len(offsets) == 0:
            return
        if g.machine.preceding is not None:
            g.machine.preceding.access(g, buf, int(offsets[0]), np.array([lane]), "copy into")
        check_owner(g, buf, True, lane)
        idx = s.elements(offsets, size)
        self._async_access(g, lane, None, s, idx, True, reduces=bool(combine))
        writer, time, number = self._bulk(g, lane, "bulk write"), _next_group(g, lane), self._of_info(info)
        if combine:
            if combine == "add":
                self._check_order(g, lane, s, idx)
            self._issued[g.clocks.cluster.number, writer, time] = g.clocks.first + lane, g.clocks.clock
            self._reduced(g, s, idx, writer, time, number)
        else:
            self._remember_write(g, s, idx, writer, time, number, ASYNC)

    def _check_order(self, g: Group, lane: int, s: Shadow, idx: Array) -> None:
        """Check that a flag between two reductions of different clusters orders the reductions themselves.

        Reductions need no order. If a lane has acquired a flag that was set after a reduction by another cluster was
        issued, the program fixes the order of both, as for a deterministic sum. The reduction must then be complete
        before the flag is set, and a proxy fence must follow it, because both are made through the asynchronous proxy
        in different blocks (PTX ISA 9.0, 8.9.5 "Causality order": proxy-preserved base causality order).
        """
        if s.w_cluster is None:
            return
        cluster, actor, time = s.w_cluster[idx], s.w_actor[idx], s.w_clock[idx]
        others = (s.w_kind[idx] == REDUCTION) & (cluster >= 0) & (cluster != g.clocks.cluster.number)
        if not others.any():
            return
        for key in {*zip(cluster[others].tolist(), actor[others].tolist(), time[others].tolist())}:
            number, writer, group = key
            thread, clock = self._issued.get(key, (-1, 0))
            if thread < 0 or not self._knows(g, lane, number, thread, clock):
                continue
            complete = self._knows(g, lane, number, writer, group)
            if complete and self._knows(g, lane, number, writer, group, PROXY_GLOBAL):
                continue
            found = idx[others & (cluster == number) & (actor == writer) & (time == group)]
            at = int(found[0])
            missing = (
                "a fence.proxy.async of global memory after its completion"
                if complete
                else "cp.async.bulk.wait_group 0 (without .read) before the flag is set"
            )
            raise Fault(
                "race",
                f"{s.buf.place(at << s.shift)} is reduced twice in an order that a flag sets, but the flag does not "
                f"order the first reduction: missing {missing}",
                lane,
                notes=(self._note(g, writer, int(s.w_site[at]), number),),
            )

    def _reduced(self, g: Group, s: Shadow, idx: Array, writer: int, time: int, number: int) -> None:
        """Record a reduction. Other reductions need not be ordered after it, so earlier accesses are kept."""
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
        """Check an access by the asynchronous proxy, to the shared memory of `block` or to global memory (None)."""
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
        """Check that the last weak writes are ordered before a copy and visible to it."""
        clocks = g.clocks
        lanes, known, number = np.array([lane]), clocks.of(lane), clocks.cluster.number
        own = clocks.first + lane
        actor, clock, kind = s.w_actor[idx], s.w_clock[idx], s.w_kind[idx]
        foreign = None if s.w_cluster is None else (actor >= 0) & (s.w_cluster[idx] != number)
        ordered = clock <= known[MEMORY][actor]  # Actor -1 (no write) is ordered before everything.
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
            self._report(g, s, idx[None, :], ordered[None, :], lanes, word)
        if not fenced.all():
            first = int(np.flatnonzero(~fenced)[0])
            at = int(idx[first])
            cluster = number if s.w_cluster is None else int(s.w_cluster[at])
            self._unfenced(g, s, at, lane, store, int(actor[first]), int(s.w_site[at]), cluster)

    def _bulk(self, g: Group, lane: int, kind: str) -> int:
        x, y, z = g.thread_coord(lane)
        return g.clocks.cluster.actor(kind, g.clocks.first + lane, f"bulk copy of thread ({x}, {y}, {z})")

    def bulk_waited(self, g: Group, lane: int, done: int, only_read: bool) -> None:
        """Record a wait of a lane for its first `done` bulk groups, or only for their reads."""
        g.clocks.learn(g, [lane], self._bulk(g, lane, "bulk"), done)
        if not only_read:
            g.clocks.learn(g, [lane], self._bulk(g, lane, "bulk write"), done)

    # -- tcgen05 ------------------------------------------------------------------------------------------------------

    def tensor_operation(self, g: Group, lane: int, kind: str, info: OpInfo, work: Work, uses: Sequence[Use]) -> None:
        """Record an MMA or a copy to tensor memory, issued by a lane. `uses` are the words that it accesses."""
        event = self.tensor.issue(g, kind, info, [lane], uses, work.key)
        number = self._of_info(info)
        for block in work.blocks:
            s = self._shadow(block.smem)
            for operand in work.operands():
                units = operand.locate(work.name)[3]
                inside = units[(units >= 0) & (units < block.size // 16)]
                idx = s.units(inside + block.smem_start // 16)
                self._async_access(g, lane, block, s, idx, False)
                self.tensor.check_data(g, lane, work.name, info, s.w_actor[idx], s.w_clock[idx])
                self._read_by(g, s, idx, event.actor, event.number, number)

    def tensor_committed(self, g: Group, lane: int, bars: Sequence[tuple[Block, MBarrier]], info: OpInfo) -> Array:
        """Record a tcgen05.commit of a lane to mbarriers, and return the table that it releases on arrival."""
        message = self.tensor.commit(g, lane)
        actor, number = self.tensor.actor(g, lane), self._of_info(info)
        for block, bar in bars:
            self.mbarrier_check(g, lane, bar)
            self.lifetimes.arrives(g, lane, block, number, (actor, int(message[MEMORY, actor])))
        return message

    # -- wgmma --------------------------------------------------------------------------------------------------------

    def wgmma_issued(self, g: Group, group: Warpgroup, i: Instruction, warp: int) -> None:
        """Record the part of a wgmma that one warp issues: it reads its own rows of A and all of B."""
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
        """Record a wait of the active lanes for all wgmma with numbers below `target`."""
        actor = g.clocks.cluster.actor("wgmma", _warpgroup(g), "")
        g.clocks.learn(g, g.mask.idx.tolist(), actor, target)


def _warpgroup(g: Group) -> int:
    """Return the actor of the first thread of a warp's warpgroup. A block need not consist of whole warpgroups."""
    return g.clocks.first - int(g.lane_tid[0]) % 128


def _of_block(g: Group, block: Block) -> Array:
    """Return a mask of the columns of a block's threads and of their copies."""
    return g.clocks.cluster.of_block(g.clocks.cluster.blocks.index(block.linear))


def _leave(g: Group, message: Array) -> None:
    """Join a table into the tables of all threads of a warp, which leave a barrier."""
    np.maximum(g.clocks.table, message, out=g.clocks.table)
    if g.clocks.extras:
        g.clocks.acquire(g, message)


def _next_group(g: Group, lane: int) -> int:
    groups = g.bulk.get(lane)
    return 1 + (len(groups.groups) if groups is not None else 0)
