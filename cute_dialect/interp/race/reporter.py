"""Race reports: the earlier access, its location, and the synchronization missing between the two accesses."""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.errors import Fault, InterpError, OpInfo, location_text, op_name, op_text
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN
from cute_dialect.interp.race.clocks import ClusterClocks
from cute_dialect.interp.race.flags import Flags
from cute_dialect.interp.race.history import Shadow
from cute_dialect.interp.values import Array
from cute_dialect.ir.diagnostics import location_frames

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.machine.group import Group, Machine
    from cute_dialect.interp.memory.accesses import Site

_FAR = (
    "nothing orders this access after the one in another block; there, a fence and then a strong write of a flag "
    "(atomic, volatile or .release) is needed; here, a read of that flag with .acquire or a fence after it"
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
            self.sites.append((info.name, info))
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
            x, y, _ = self.machine.block
            gx, gy, _ = self.machine.grid
            what = "a cp.async of " if kind == "cp.async" else ""
            return (
                f"{what}thread ({tid % x}, {tid // x % y}, {tid // (x * y)}) of block "
                f"({block % gx}, {block // gx % gy}, {block // (gx * gy)})"
            )
        name = cluster.names.get(actor, "an asynchronous copy")
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
        why = why or (_FAR if other >= 0 else self._hint(g, actor, lane))
        raise Fault(
            "race",
            f"{WORD[kind]} race on {s.buf.place(at << s.shift)}: {why}",
            lane,
            (at << s.shift) + (s.buf.base or SMEM_ORIGIN),
            (self._note(g, actor, site, other),),
        )

    def _hint(self, g: Group, actor: int, lane: int) -> str:
        cluster = g.clocks.cluster
        what = cluster.kind(actor)
        if what == "mbarrier":
            return f"missing wait for the phase of the {cluster.names[actor]} that covers the copy"
        if what == "cp.async":
            same = actor - cluster.threads == g.clocks.first + lane
            return "missing cp.async.wait_group" + ("" if same else " by the thread that issued it, then a barrier")
        if what == "wgmma":
            return "missing wgmma.wait_group, then an arrival that this thread waits for, before the overwrite"
        if what.startswith("bulk"):
            return "missing cp.async.bulk.wait_group by the thread that issued the copy, before this access"
        if actor // 32 == (g.clocks.first + lane) // 32:
            return "missing bar.warp.sync or barrier between threads of one warp"
        return "missing barrier, or mbarrier arrive and wait, between the two threads"
