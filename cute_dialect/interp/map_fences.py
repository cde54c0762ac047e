"""Tensor maps that a kernel writes itself: what must stand between the writes and a copy that uses the map.

TMA reads its map through the tensormap proxy.  What was written through the generic proxy is visible there after
`fence.proxy.tensormap::generic.release` by who wrote it (or by a thread that is ordered after), and then
`fence.proxy.tensormap::generic.acquire` of the map's 128 bytes by who uses it (or before it), both of scopes that hold
the other thread.  Source: PTX ISA 9.0, 9.7.13.4 "membar / fence" (uni-directional proxy fences), 8.6 "Proxies".
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.interp.clocks import MEMORY
from cute_dialect.interp.errors import Fault
from cute_dialect.interp.flags import CLUSTER, CTA, GPU
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.group import Group
    from cute_dialect.interp.memory import Buffer


class Write(NamedTuple):
    """A write to a map: who and when."""

    cluster: int
    actor: int
    time: int


class _Release(NamedTuple):
    """A releasing fence of a thread, and what was ordered before it: `known`, its row of times."""

    by: Write
    block: int
    scope: int
    known: Array

    def covers(self, write: Write) -> bool:
        """Tell whether a write was made by the thread before the fence, or is ordered before it."""
        if write.cluster != self.by.cluster:
            return False
        return write.time <= (self.by.time if write.actor == self.by.actor else int(self.known[write.actor]))


class MapFences:
    """The fences of the tensormap proxy in a launch. `ordered`: whether a lane knows of what another thread did."""

    def __init__(self, ordered: Callable[[Group, int, Write], bool]) -> None:
        self._ordered = ordered
        self._releases: list[_Release] = []
        self._acquired: dict[tuple[int, int], list[tuple[frozenset[Write], Write]]] = {}  # by buffer and offset

    def release(self, g: Group, scope: int) -> None:
        """Let the active lanes pass on what they know of all maps."""
        clocks = g.clocks
        for lane in g.mask.idx.tolist():
            by = Write(clocks.cluster.number, clocks.first + lane, clocks.clock)
            self._releases.append(_Release(by, g.block_of(lane), scope, clocks.of(lane)[MEMORY].copy()))
        clocks.clock += 1

    def acquire(self, g: Group, lane: int, buf: Buffer, offset: int, writes: frozenset[Write], scope: int) -> None:
        """Let a lane make a map as it was written ready for use, where all of the writes were released to it."""
        clocks = g.clocks
        for write in writes:
            if not any(r.covers(write) and self._reaches(g, lane, r, scope) for r in self._releases):
                return
        by = Write(clocks.cluster.number, clocks.first + lane, clocks.clock)
        self._acquired.setdefault((id(buf), offset), []).append((writes, by))

    def _reaches(self, g: Group, lane: int, release: _Release, scope: int) -> bool:
        near = release.by.cluster == g.clocks.cluster.number
        needs = CTA if release.block == g.block_of(lane) else CLUSTER if near else GPU
        return min(scope, release.scope) >= needs and self._ordered(g, lane, release.by)

    def use(self, g: Group, lane: int, buf: Buffer, offset: int, writes: frozenset[Write], note: str) -> None:
        """Check that a copy that a lane issues may read a map. Raises Fault where it may see what was there before."""
        for seen, by in self._acquired.get((id(buf), offset), ()):
            if seen == writes and self._ordered(g, lane, by):
                return
        raise Fault(
            "race",
            f"uses the tensor map in {buf.place(offset)}, which the kernel has written: expected "
            "fence.proxy.tensormap::generic.release by who wrote it and fence.proxy.tensormap::generic.acquire of its "
            "128 bytes before the copy, of scopes that hold both threads",
            lane,
            notes=(note,),
        )


__all__ = ["MapFences", "Write"]
