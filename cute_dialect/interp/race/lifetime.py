"""Lifetime of a block's shared memory, for race detection.

The end of a block counts as a write to all of its shared memory. An access is a race unless one of the block's threads
is ordered after it when the thread ends. This holds under any schedule. It covers the block's own cp.async, TMA and
bulk copies and wgmma. It also covers the loads, stores and atomics of other blocks, their copies, and their arrivals at
an mbarrier. An access to another block of the cluster must also be ordered after the start of that block.

Sources: CUDA C++ Programming Guide, "Distributed Shared Memory" (all blocks have started, and all operations are
complete before a block exits); PTX ISA 9.0, 9.7.9.25 "Asynchronous copy" (only the completion mechanism signals
completion).
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import Fault
from cute_dialect.interp.race.clocks import EXECUTION, FOREVER, MEMORY
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.machine.barriers import Block, Cluster
    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.memory.buffers import Buffer
    from cute_dialect.interp.race.clocks import ClusterClocks
    from cute_dialect.interp.race.history import Shadow
    from cute_dialect.interp.race.reporter import Reporter

_MISSING = {
    "cp.async": "missing cp.async.wait_group before the end of the block",
    "mbarrier": "missing wait for that phase of the mbarrier before the end of the block",
    "wgmma": "missing wgmma.wait_group before the end of the block",
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
            self._blocks[block.linear] = self._owners[id(block.smem)] = resident

    def touches(self, g: Group, buf: Buffer, lanes: Array) -> None:
        """Check that lanes may access a buffer.

        If it is shared memory of another block, that block must have started.
        """
        owner = self._owners.get(id(buf))
        if owner is None or owner.block.linear == g.block_of(0):
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

    def arrives(self, g: Group, lane: int, block: Block, number: int) -> None:
        """Record the arrival of a lane at an mbarrier in the shared memory of another block."""
        if block.linear != g.block_of(lane):
            self._blocks[block.linear].arrivals[g.clocks.first + lane] = (g.clocks.clock, number)

    def warp_ends(self, g: Group, shadow: Shadow | None) -> None:
        """Record the end of a warp. The last warp of a block ends its shared memory, whose accesses `shadow` holds."""
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
            x, y, _ = g.machine.block
            thread, block = (tid % x, tid // x % y, tid // (x * y)), _coord(g, cluster.blocks[rank])
        name = cluster.names.get(actor, "")
        notes = (f"it signals the {name}",) if kind == "mbarrier" else (f"it is the {name}",) if name else ()
        raise self.reporter.error(number, message, thread, block, notes)


def after_end(does: str, kind: str, block: tuple[int, int, int]) -> str:
    """Return the message for an access of some kind of actor that may come after the end of a block."""
    missing = _MISSING.get(kind, "missing cluster barrier, or mbarrier arrive and wait, between the two")
    return f"this may {does} after the end of block {block}, which owns that shared memory: {missing}"


def _place(shadow: Shadow, at: int) -> str:
    return shadow.buf.place(at << shadow.shift)


def _coord(g: Group, linear: int) -> tuple[int, int, int]:
    x, y, _ = g.machine.grid
    return (linear % x, linear // x % y, linear // (x * y))


__all__ = ["Lifetimes", "after_end"]
