"""Race detection for kernels whose blocks run in lockstep: all threads of many blocks in one numpy operation.

If only block-wide barriers and waits for cp.async order threads, logical time is one number per block: the barriers
passed so far. Accesses by different threads of a block are ordered if a barrier separates them; accesses by different
blocks never are. Each granule records the thread and time of its last write. For the reads and atomics since, it
records one thread, or that there were several. `monitor` handles all other synchronization.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.errors import Fault
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN
from cute_dialect.interp.race.flags import Fence
from cute_dialect.interp.race.history import MANY, Added, Shadow
from cute_dialect.interp.race.memory_checks import WORD, after_end
from cute_dialect.interp.race.monitor import Monitor
from cute_dialect.interp.types import round_up
from cute_dialect.interp.values import Array, Value

if TYPE_CHECKING:
    from cute_dialect.interp.machine.group import Group, Machine
    from cute_dialect.interp.memory.accesses import Part, Site
    from cute_dialect.interp.memory.buffers import Buffer

PENDING = 2**31 - 1  # time of a cp.async that has not been waited for
_COPY = 3  # value of Shadow.w_kind for a cp.async


class _Earlier(NamedTuple):
    """Earlier accesses, by granule."""

    actors: Array
    blocks: Array
    sites: Array


class WideMonitor(Monitor):
    """Race detector of one launch in lockstep."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.per_block = machine.threads
        self.group: Group | None = None
        self.thread: Array = np.zeros(0, np.int32)  # linear index in the grid of each lane
        self.time: Array = np.zeros(0, np.int32)  # barriers that each lane has passed
        self.sources: list[tuple[Shadow, Array, Array, Array, Site]] = []  # cp.async sources that may still be read
        # pending cp.async: granules, lanes, their commit groups
        self.copies: list[tuple[Shadow, Array, Array, Array]] = []

    def _enter(self, g: Group) -> None:
        """Start the next set of blocks."""
        self.group = g
        self.thread = np.asarray(np.asarray(g.lane_block) * self.per_block + g.lane_tid, np.int32)
        self.time = np.zeros(g.lanes, np.int32)
        self.copies, self.sources = [], []
        self.shadows = {k: s for k, s in self.shadows.items() if s.r_cluster is not None}

    def exits(self, g: Group) -> None:
        """Check, at the end of blocks, that no cp.async may still write their shared memory."""
        if self.group is not g or not self.copies:
            return
        s, idx, lanes, _ = self.copies[0]
        at, lane = int(idx[0, 0]), int(lanes[0])
        place = s.buf.place((at << s.shift) % round_up(g.smem_size, 1024))
        message = after_end(f"write {place}", "cp.async", g.block_coord(lane))
        raise self.error(int(s.w_site[at]), message, g.thread_coord(lane), g.block_coord(lane))

    def barrier(self, g: Group) -> None:
        """Record a barrier of blocks in lockstep."""
        if self.group is not g:
            self._enter(g)
        self.time[g.mask.idx] += 1

    def observe(self, g: Group, site: Site, parts: list[Part], value: Value | None) -> None:
        """Check and record an access of the active lanes. `value` is the stored value."""
        if self.group is not g:
            self._enter(g)
        for buf, off, sel in parts:
            if buf is g.local:
                continue
            lanes = g.mask.idx if sel is None else g.mask.idx[sel]
            offs = np.full(len(lanes), off) if isinstance(off, int) else off
            s = self._shadow(buf)
            idx = self._granules(s, offs, site)
            self._check_alias(g, s, idx, lanes, site)
            if site.constant:
                self._read_constant(g, s, idx, lanes, site)
            elif site.copies:
                self._read(g, s, idx, lanes, site)
                self.sources.append((s, idx, lanes, g.copy_seq[lanes].copy(), site))
            elif site.atomic:
                self._add(g, s, idx, lanes, site)
            elif site.store:
                self._write(g, s, idx, lanes, site, self.time[lanes])
                self._together(g, s, idx, lanes, site, buf, offs, value)
            else:
                self._read(g, s, idx, lanes, site)

    def _unordered(self, s: Shadow, idx: Array, thread: Array, time: Array) -> Array:
        """Return a mask of the accesses that the last weak write is not ordered before."""
        writer, when = s.w_actor[idx], s.w_clock[idx]
        near = when == time
        if s.r_cluster is not None:
            near |= writer // self.per_block != thread // self.per_block
        return (writer >= 0) & (((writer != thread) & near) | (when == PENDING))

    def _unadded(self, s: Shadow, idx: Array, thread: Array, time: Array, size: int = 0) -> Array:
        """Return a mask of the accesses that an atomic, of a size other than `size` if given, is not ordered before."""
        if s.added is None:
            return np.zeros(idx.shape, np.bool_)
        actor = s.added.actor[idx]
        far = s.added.block[idx] != thread // self.per_block
        return (actor != -1) & (s.added.size[idx] != size) & (far | ((actor != thread) & (s.added.clock[idx] == time)))

    def _after_writes(self, g: Group, s: Shadow, idx: Array, lanes: Array, kind: str, size: int = 0) -> None:
        """Check that earlier writes are ordered before an access of lanes. `size`: bytes of an atomic."""
        thread, time = self.thread[lanes][:, None], self.time[lanes][:, None]
        if s.written:
            bad = self._unordered(s, idx, thread, time)
            if bad.any():
                self._fail(g, s, idx, bad, lanes, kind, _Earlier(s.w_actor, s.w_actor // self.per_block, s.w_site))
        bad = self._unadded(s, idx, thread, time, size)
        if bad.any():
            assert s.added is not None
            other = int(s.added.size[idx][bad][0])
            why = (
                f"both accesses are atomic but have different sizes ({other} and {size} bytes); access the same bytes, "
                "or order the accesses"
            )
            earlier = _Earlier(s.added.actor, s.added.block, s.added.site)
            self._fail(g, s, idx, bad, lanes, kind, earlier, why if size else "")

    def _read(self, g: Group, s: Shadow, idx: Array, lanes: Array, site: Site) -> None:
        thread, time = self.thread[lanes][:, None], self.time[lanes][:, None]
        self._after_writes(g, s, idx, lanes, "read")
        before = s.r_actor[0, idx]
        several = (s.r_clock[0, idx] == time) & (before != -1) & (before != thread)
        s.r_actor[0, idx] = thread
        several |= s.r_actor[0, idx] != thread
        if s.r_cluster is not None:
            block = np.broadcast_to(thread // self.per_block, idx.shape)
            blocks = s.r_cluster[idx]
            s.r_cluster[idx] = block
            far = ((blocks != -1) & (blocks != block)) | (s.r_cluster[idx] != block)
            if far.any():
                s.r_cluster[idx[far]] = MANY
        if several.any():
            s.r_actor[0, idx[several]] = MANY
        s.r_clock[0, idx] = time
        s.r_site[0, idx] = self._number(site)

    def _after_reads(self, g: Group, s: Shadow, idx: Array, lanes: Array) -> None:
        """Check that the reads since the last weak write are ordered before a write of lanes."""
        thread, time = self.thread[lanes][:, None], self.time[lanes][:, None]
        reader = s.r_actor[0, idx]
        bad = (reader != -1) & (reader != thread) & (s.r_clock[0, idx] == time)
        held = s.r_actor[0] // self.per_block
        if s.r_cluster is not None:
            block, own, held = s.r_cluster[idx], thread // self.per_block, s.r_cluster
            bad = (bad & (block == own)) | ((block != -1) & (block != own))
        if bad.any():
            self._fail(g, s, idx, bad, lanes, "overwrite", _Earlier(s.r_actor[0], held, s.r_site[0]))
        self._check_constant(g, s, idx, lanes)
        for t, source, mine, _, copy in self.sources:
            if t is s and (hit := np.isin(source, idx)).any():
                i, j = (int(x[0]) for x in np.nonzero(hit))
                x, y, z = g.thread_coord(int(mine[i]))
                at = int(source[i, j])
                where = self._place(self._number(copy))
                raise Fault(
                    "race",
                    f"{WORD['overwrite']} race on {s.buf.place(at << s.shift)}: missing cp.async.wait_group by the "
                    "thread that issued it, then a barrier",
                    int(lanes[int(np.nonzero(idx == at)[0][0])]),
                    (at << s.shift) + s.buf.base,
                    (f"the earlier {copy.verb} is by a cp.async of thread ({x}, {y}, {z}){where}",),
                )

    def _add(self, g: Group, s: Shadow, idx: Array, lanes: Array, site: Site) -> None:
        """Check and record relaxed atomics of GPU scope whose results are not used."""
        size = site.nbytes // site.leaf.count
        self._after_writes(g, s, idx, lanes, "write", size)
        self._after_reads(g, s, idx, lanes)
        if s.added is None:
            s.added = Added.none(len(s.w_actor))
        thread = np.broadcast_to(self.thread[lanes][:, None], idx.shape)
        time, block = self.time[lanes][:, None], thread // self.per_block
        a = s.added
        actor, blocks = a.actor[idx], a.block[idx]
        several = (actor != -1) & (actor != thread) & (a.clock[idx] == time)
        far = (actor != -1) & (blocks != block)
        a.actor[idx] = thread
        a.block[idx] = block
        several |= a.actor[idx] != thread
        far |= a.block[idx] != block
        a.actor[idx[several]] = MANY
        a.block[idx[far]] = MANY
        a.clock[idx] = time
        a.size[idx] = size
        a.site[idx] = self._number(site)

    def _write(self, g: Group, s: Shadow, idx: Array, lanes: Array, site: Site, when: Array) -> None:
        self._after_writes(g, s, idx, lanes, "write")
        self._after_reads(g, s, idx, lanes)
        s.written = True
        s.w_actor[idx] = self.thread[lanes][:, None]
        s.w_clock[idx] = when[:, None]
        s.w_site[idx] = self._number(site)
        s.w_kind[idx] = 0
        s.r_actor[0, idx] = -1
        if s.r_cluster is not None:
            s.r_cluster[idx] = -1
        if s.added is not None:
            s.added.actor[idx] = -1

    def _together(
        self, g: Group, s: Shadow, idx: Array, lanes: Array, site: Site, buf: Buffer, off: Array, value: Value | None
    ) -> None:
        """Check that threads that write one address in one store are lanes of one warp and write the same value."""
        thread = self.thread[lanes][:, None]
        last = s.w_actor[idx]
        twice = last != thread
        if not twice.any():
            return
        tid, other = thread % self.per_block, last % self.per_block
        apart = twice & ((tid // 32 != other // 32) | (thread - tid != last - other))
        if apart.any():
            self._fail(g, s, idx, apart, lanes, "write", _Earlier(s.w_actor, s.w_actor // self.per_block, s.w_site))
        wide = s.r_cluster is None and g.smem_lane is not None
        self._same(g, site, buf, lanes, off % round_up(g.smem_size, 1024) if wide else off, value)

    def cp_async(self, g: Group, site: Site, parts: list[Part]) -> None:
        if self.group is not g:
            self._enter(g)
        for buf, off, sel in parts:
            lanes = g.mask.idx if sel is None else g.mask.idx[sel]
            offs = np.full(len(lanes), off) if isinstance(off, int) else off
            s = self._shadow(buf)
            idx = self._granules(s, offs, site)
            self._write(g, s, idx, lanes, site, np.full(len(lanes), PENDING))
            s.w_kind[idx] = _COPY
            self.copies.append((s, idx, lanes, g.copy_seq[lanes].copy()))

    def _refined(self, s: Shadow, before: int) -> None:
        """Convert pending copies to the smaller granules of a buffer."""
        k = 1 << (before - s.shift)
        self.sources = [
            (t, (i[:, :, None] * k + np.arange(k)).reshape(len(i), -1) if t is s else i, lanes, seq, site)
            for t, i, lanes, seq, site in self.sources
        ]
        fine = [(i[:, :, None] * k + np.arange(k)).reshape(len(i), -1) if t is s else i for t, i, _, _ in self.copies]
        self.copies = [(t, i, lanes, seq) for i, (t, _, lanes, seq) in zip(fine, self.copies)]

    def cp_async_waited(self, g: Group, keep: int | None) -> None:
        """Record a wait of the active lanes for all but `keep` of their cp.async groups, None for all of them."""
        done = np.zeros(g.lanes, np.int64)
        lanes = g.mask.idx
        done[lanes] = g.copy_seq[lanes] + (1 if keep is None else -keep)
        left: list[tuple[Shadow, Array, Array, Array]] = []
        for s, idx, mine, seq in self.copies:
            ready = seq < done[mine]
            if ready.any():
                s.w_clock[idx[ready]] = self.time[mine[ready]][:, None]
            if not ready.all():
                left.append((s, idx[~ready], mine[~ready], seq[~ready]))
        self.copies = left
        unread: list[tuple[Shadow, Array, Array, Array, Site]] = []
        for s, idx, mine, seq, site in self.sources:
            ready = seq < done[mine]
            if ready.any():
                self._read(g, s, idx[ready], mine[ready], site)
            if not ready.all():
                unread.append((s, idx[~ready], mine[~ready], seq[~ready], site))
        self.sources = unread

    def _granules(self, s: Shadow, off: Array, site: Site) -> Array:
        before = s.shift
        idx = s.granules(off, site.nbytes, site.align)
        if s.shift != before:
            self._refined(s, before)
        return idx

    def fence(self, g: Group, fence: Fence) -> None:
        """Do nothing: kernels in lockstep use neither the asynchronous proxy nor flags."""

    # -- reports ------------------------------------------------------------------------------------------------------

    def _fail(
        self, g: Group, s: Shadow, idx: Array, bad: Array, lanes: Array, kind: str, earlier: _Earlier, why: str = ""
    ) -> None:
        """Raise the first race."""
        actors, blocks, sites = earlier
        i, j = (int(x[0]) for x in np.nonzero(bad))
        at, lane = int(idx[i, j]), int(lanes[i])
        actor = int(actors[at])
        offset = at << s.shift
        if s.r_cluster is None and g.smem_lane is not None:
            offset %= round_up(g.smem_size, 1024)
        me = int(self.thread[lane])
        copied = actors is s.w_actor and int(s.w_kind[at]) == _COPY
        far = s.r_cluster is not None and int(blocks[at]) != me // self.per_block
        raise Fault(
            "race",
            f"{WORD[kind]} race on {s.buf.place(offset)}: {why or self._why(me, actor, copied, far)}",
            lane,
            offset + (s.buf.base or SMEM_ORIGIN),
            (self._who(actor, int(sites[at])),),
        )

    def _why(self, me: int, actor: int, copied: bool, far: bool) -> str:
        """Describe the missing synchronization between a thread and an earlier actor (in another block if `far`)."""
        if copied:
            return "missing cp.async.wait_group" + (
                "" if actor == me else " by the thread that issued it, then a barrier"
            )
        if far:
            return "nothing orders this access after the one in another block"
        n = self.per_block
        if actor >= 0 and actor % n // 32 == me % n // 32:
            return "missing bar.warp.sync or barrier between threads of one warp"
        return "missing barrier, or mbarrier arrive and wait, between the two threads"

    def _who(self, actor: int, site: int) -> str:
        verb = self.sites[site][0] if site >= 0 else "access"
        who = "several threads"
        if actor >= 0:
            (x, y, _), (gx, gy, _) = self.machine.block, self.machine.grid
            tid, block = actor % self.per_block, actor // self.per_block
            who = (
                f"thread ({tid % x}, {tid // x % y}, {tid // (x * y)}) of block "
                f"({block % gx}, {block // gx % gy}, {block // (gx * gy)})"
            )
        return f"the earlier {verb} is by {who}{self._place(site)}"

    def _written(self, g: Group, s: Shadow, at: int) -> str:
        if s.added is not None and s.added.actor[at] != -1:
            return self._who(int(s.added.actor[at]), int(s.added.site[at]))
        return self._who(int(s.w_actor[at]), int(s.w_site[at])) if s.w_actor[at] >= 0 else ""
