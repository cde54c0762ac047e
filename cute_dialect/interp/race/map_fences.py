"""Tensor maps written by the kernel itself: fences required between the writes and a copy that uses the map.

TMA reads its map through the tensormap proxy. A write through the generic proxy becomes visible there after two fences:
`fence.proxy.tensormap::generic.release` by the writer (or by a thread ordered after it), and then
`fence.proxy.tensormap::generic.acquire` of the map's 128 bytes by the user (or by a thread ordered before it). Both
scopes must include the other thread. Source: PTX ISA 9.0, 9.7.13.4 "membar / fence" (uni-directional proxy fences), 8.6
"Proxies".
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.interp.errors import Fault
from cute_dialect.interp.race.clocks import MEMORY
from cute_dialect.interp.race.flags import CLUSTER, CTA, GPU
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.memory.buffers import Buffer


class Write(NamedTuple):
    """The origin of a write to a map."""

    cluster: int
    actor: int
    time: int


class _Release(NamedTuple):
    """A releasing fence of a thread. `known` is the row of times that were ordered before it."""

    by: Write
    block: int
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
            self._releases.append(_Release(by, g.block_of(lane), scope, clocks.of(lane)[MEMORY].copy()))
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
        self._acquired.setdefault((id(buf), offset), []).append((writes, by))

    def _reaches(self, g: Group, lane: int, release: _Release, scope: int) -> bool:
        near = release.by.cluster == g.clocks.cluster.number
        needs = CTA if release.block == g.block_of(lane) else CLUSTER if near else GPU
        return min(scope, release.scope) >= needs and self._ordered(g, lane, release.by)

    def use(self, g: Group, lane: int, buf: Buffer, offset: int, writes: frozenset[Write], note: str) -> None:
        """Check that a copy issued by a lane may read a map. Raises Fault if it may see earlier contents."""
        for seen, by in self._acquired.get((id(buf), offset), ()):
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


__all__ = ["MapFences", "Write"]
