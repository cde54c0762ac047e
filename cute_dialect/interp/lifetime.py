"""The life of a block's shared memory, for race detection: who may still touch it when the block ends.

The end of a block is treated as a write to all of its shared memory: what is not ordered before it, by what any of the
block's threads knows when it ends, may come after it.  That holds whatever the schedule was, and for all who touch
shared memory: the block's own cp.async, TMA and bulk copies and wgmma, the loads, stores and atomics of other blocks,
their copies, and their arrivals at an mbarrier.  A block of a cluster must also be known to have begun before another
touches its memory.

Sources: CUDA C++ Programming Guide, "Distributed Shared Memory" (all blocks have started, and all operations are
complete before a block exits); PTX ISA 9.0, 9.7.9.25 "Asynchronous copy" (completion is told by the mechanism alone).
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.clocks import EXECUTION, FOREVER, MEMORY
from cute_dialect.interp.errors import Fault
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.access_history import Shadow
    from cute_dialect.interp.clocks import ClusterClocks
    from cute_dialect.interp.group import Group
    from cute_dialect.interp.memory import Buffer
    from cute_dialect.interp.race_report import Reporter
    from cute_dialect.interp.sync import Block, Cluster

_EXPECTED = {
    "cp.async": "expected cp.async.wait_group before the end",
    "mbarrier": "expected a wait for that phase of the mbarrier before the end",
    "wgmma": "expected wgmma.wait_group before the end",
    "bulk": "expected cp.async.bulk.wait_group.read before the end",
}


class _Resident:
    """A block whose warps run. `end`: what those of its threads knew that have ended, joined."""

    __slots__ = ("arrivals", "block", "end", "first")

    def __init__(self, block: Block, clocks: ClusterClocks, first: int) -> None:
        self.block = block
        self.first = first  # actor of its first thread
        self.end = clocks.table()
        self.arrivals: dict[int, tuple[int, int]] = {}  # of other blocks: actor → its time, and the number of the op


class Lifetimes:
    """When the shared memory of each resident block begins and ends, as far as threads know."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self._blocks: dict[int, _Resident] = {}
        self._owners: dict[int, _Resident] = {}

    def admit(self, cluster: Cluster, clocks: ClusterClocks) -> None:
        """Note that the blocks of a cluster become resident."""
        for rank, block in enumerate(cluster.blocks):
            resident = _Resident(block, clocks, rank * clocks.padded)
            self._blocks[block.linear] = self._owners[id(block.smem)] = resident

    def touches(self, g: Group, buf: Buffer, lanes: Array) -> None:
        """Check that lanes may access a buffer: of another block they must know that it has begun."""
        owner = self._owners.get(id(buf))
        if owner is None or owner.block.linear == g.block_of(0):
            return
        threads = slice(owner.first, owner.first + g.clocks.cluster.per_block)
        for lane in lanes.tolist():
            if not g.clocks.of(lane)[EXECUTION, threads].any():
                raise Fault(
                    "race",
                    f"access to the shared memory of block {_coord(g, owner.block.linear)} of the cluster, which may "
                    "not have begun: expected a cluster barrier before",
                    lane,
                )

    def arrives(self, g: Group, lane: int, block: Block, number: int) -> None:
        """Check that a lane may arrive at an mbarrier, which may be in the shared memory of another block."""
        if block.linear != g.block_of(lane):
            self._blocks[block.linear].arrivals[g.clocks.first + lane] = (g.clocks.clock, number)

    def warp_ends(self, g: Group, shadow: Shadow | None) -> None:
        """Note that a warp has ended; with the last one of a block its shared memory ends. `shadow`: of that memory."""
        clocks = g.clocks
        mine = self._blocks[g.block_of(0)]
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
        del self._blocks[mine.block.linear], self._owners[id(mine.block.smem)]

    def _fail(self, g: Group, mine: _Resident, actor: int, number: int, does: str) -> None:
        """Raise the error for an access that may come after the end of its block."""
        cluster = g.clocks.cluster
        kind = cluster.kind(actor)
        message = after_end(does, kind, _coord(g, mine.block.linear))
        thread, block = None, g.block_coord(0)
        if kind in ("thread", "cp.async"):
            rank, tid = divmod(actor % cluster.threads, cluster.padded)
            x, y, _ = g.launch.block
            thread, block = (tid % x, tid // x % y, tid // (x * y)), _coord(g, cluster.blocks[rank])
        name = cluster.names.get(actor, "")
        notes = (f"it signals the {name}",) if kind == "mbarrier" else (f"it is the {name}",) if name else ()
        raise self.reporter.error(number, message, thread, block, notes)


def after_end(does: str, kind: str, block: tuple[int, int, int]) -> str:
    """Return the sentence for what an actor of some kind `does` too late for a block."""
    expected = _EXPECTED.get(kind, "expected a cluster barrier, or an mbarrier's arrival and wait, between the two")
    return f"this may {does} after the end of block {block}, whose shared memory it is: {expected}"


def _place(shadow: Shadow, at: int) -> str:
    return shadow.buf.place(at << shadow.shift)


def _coord(g: Group, linear: int) -> tuple[int, int, int]:
    x, y, _ = g.launch.grid
    return (linear % x, linear // x % y, linear // (x * y))


__all__ = ["Lifetimes", "after_end"]
