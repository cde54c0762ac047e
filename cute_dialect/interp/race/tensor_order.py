"""Order of tcgen05 operations: races on tensor memory, and fences between threads.

`tcgen05.mma`, `cp`, `ld` and `st` are asynchronous. Each is an event with an issuing thread (`ld` and `st`: a warp) and
the words that it reads and writes. Two events that access the same word, one of them writing, must be ordered:

- by completion: the earlier one is known to be complete when the later one is issued. A wait for the phase of an
  mbarrier that a later `tcgen05.commit` of the same thread signals does this for `mma` and `cp`, and `tcgen05.wait` for
  `ld` and `st`, or
- by issue, for the pairs that execute in order of issue: `mma` after `mma` with the same accumulator, shape and kind,
  and `mma` after `cp`. In one thread this is program order.

Between threads, knowledge is passed by ordinary synchronization. There are two levels:

- practice (default): any barrier, or mbarrier arrive and wait, passes it, and a missing fence is a warning. `cp`
  after `mma` or `cp` of one thread also executes in order of issue.
- strict (the check "strict"): as the PTX ISA requires, there is a `fence::before_thread_sync` before the
  synchronization, which a commit implies, and a `fence::after_thread_sync` after it. The latter is also needed between
  a wait for data in shared memory and the `mma` or `cp` that reads it.

`tcgen05.alloc` and `dealloc` are synchronous: the fence after is not needed for `dealloc`, nor the one before for
`alloc`. The allocations of the two blocks of a pair are one operation: order after one is order after both. The PTX ISA
does not say so [?], and public kernels rely on it.

An event whose words a later event overwrites is dropped: order after the later one implies order after both.

Sources: PTX ISA 9.1, 9.7.16.6 "tcgen05 memory consistency model"; public kernels for the level "practice".
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.errors import Fault, OpInfo
from cute_dialect.interp.machine.tensor_memory import Rect
from cute_dialect.interp.race.clocks import EXECUTION, MEMORY
from cute_dialect.interp.values import Array

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp.machine.barriers import Block
    from cute_dialect.interp.machine.group import Group, Machine
    from cute_dialect.interp.machine.tcgen05 import Use


class TensorEvent:
    """An operation on tensor memory.

    - kind: "mma", "cp", "ld", "st", "alloc" or "dealloc"
    - first, lanes: clock column of lane 0 of the issuing warp, and the issuing lanes
    - clock: time of issue in the warp
    - actor, number: for mma and cp, the column of the thread's operations, and the number of this one
    - done: for ld and st, the time at which the warp has waited for it; -1 before
    - key: for mma, its accumulator, shape and kind
    - other: for the allocation of a pair of blocks, that of the other block
    """

    __slots__ = ("actor", "clock", "done", "first", "info", "key", "kind", "lanes", "number", "other")

    def __init__(self, kind: str, info: OpInfo, first: int, lanes: Sequence[int], clock: int) -> None:
        self.kind = kind
        self.info = info
        self.first = first
        self.lanes = lanes
        self.clock = clock
        self.actor = -1
        self.number = 0
        self.done = -1
        self.key: tuple[object, ...] = ()
        self.other: TensorEvent | None = None

    @property
    def is_collective(self) -> bool:
        """True if a whole warp executes the operation."""
        return self.kind in ("ld", "st", "alloc", "dealloc")

    @property
    def name(self) -> str:
        return f"tcgen05.{self.kind}"

    def same_issuer(self, other: TensorEvent) -> bool:
        """Return True if both are issued by one thread, or by one warp if one of them is collective."""
        if self.first != other.first:
            return False
        return self.is_collective or other.is_collective or self.lanes == other.lanes


class Access(NamedTuple):
    """An access of an event to a rectangle of words."""

    event: TensorEvent
    rect: Rect
    writes: bool
    role: str


class Verdict(NamedTuple):
    """Order of two events: whether each level accepts it, and what is missing."""

    strict: bool
    practice: bool
    missing: str


_NOTHING_KNOWN = np.zeros((2, 1), np.int32)


class TensorOrder:
    """Events on tensor memory of a launch, and the fences of its threads."""

    def __init__(self, machine: Machine, place: Callable[[Group, int, int], str]) -> None:
        self._machine = machine
        self._who = place
        # (cluster, column of a thread) → times of its before_thread_sync fences and commits
        self._before: dict[tuple[int, int], list[int]] = {}
        # (cluster, column of a thread) → rows MEMORY and EXECUTION at its last after_thread_sync fence
        self._after: dict[tuple[int, int], Array] = {}
        self._accesses: dict[int, list[Access]] = {}  # by the key of the block, which runs once
        self._issued: dict[tuple[int, int], int] = {}
        self._allocations: dict[int, TensorEvent] = {}  # last allocation of each block, by its key

    # -- fences and completion ----------------------------------------------------------------------------------------

    def fence_before(self, g: Group, lanes: Sequence[int]) -> None:
        """Record a tcgen05.fence::before_thread_sync of lanes."""
        clocks = g.clocks
        for lane in lanes:
            self._before.setdefault((clocks.cluster.number, clocks.first + lane), []).append(clocks.clock)
        clocks.clock += 1

    def fence_after(self, g: Group, lanes: Sequence[int]) -> None:
        """Record a tcgen05.fence::after_thread_sync of lanes."""
        clocks = g.clocks
        rows: dict[int, Array] = {}
        for lane in lanes:
            table = clocks.of(lane)
            known = rows.get(id(table))
            if known is None:
                known = rows[id(table)] = table[[MEMORY, EXECUTION]]
            self._after[clocks.cluster.number, clocks.first + lane] = known

    def actor(self, g: Group, lane: int) -> int:
        """Return the column of a thread's MMAs and copies."""
        thread = g.clocks.first + lane
        return g.clocks.cluster.actor("tensor", thread, self._who(g, thread, -1))

    def commit(self, g: Group, lane: int) -> Array:
        """Record a tcgen05.commit, and return the table that it releases when it arrives.

        The table holds what the thread knows and the completion of its operations, but not its own accesses.
        """
        clocks = g.clocks
        own = clocks.first + lane
        self.fence_before(g, [lane])
        message = clocks.of(lane).copy()
        actor = self.actor(g, lane)
        message[MEMORY, actor] = self._issued.get((clocks.cluster.number, actor), 0)
        message[EXECUTION, own] = clocks.clock
        clocks.clock += 1
        return message

    def waited(self, g: Group, events: Sequence[TensorEvent]) -> None:
        """Record a tcgen05.wait of a warp for its loads or stores."""
        for event in events:
            event.done = g.clocks.clock
        g.clocks.clock += 1

    # -- events -------------------------------------------------------------------------------------------------------

    def issue(
        self,
        g: Group,
        kind: str,
        info: OpInfo,
        lanes: Sequence[int],
        uses: Sequence[Use],
        key: tuple[object, ...] = (),
    ) -> TensorEvent:
        """Record an operation and check it against earlier ones. Raises Fault for a race."""
        clocks = g.clocks
        event = TensorEvent(kind, info, clocks.first, list(lanes), clocks.clock)
        event.key = key
        if kind in ("mma", "cp", "shift"):
            event.actor = self.actor(g, lanes[0])
            at = (clocks.cluster.number, event.actor)
            event.number = self._issued[at] = self._issued.get(at, 0) + 1
        elif kind in ("alloc", "dealloc"):
            event.done = clocks.clock
        if kind == "alloc":
            self._check_alloc(g, uses[0].block, event)
        for use in uses:
            self._check(g, use.block, Access(event, use.rect, use.writes, use.role))
        for use in uses:
            self._remember(use.block, Access(event, use.rect, use.writes, use.role))
        return event

    def _check_alloc(self, g: Group, block: Block, event: TensorEvent) -> None:
        """Check that an allocation is ordered after the previous one of the block. Raises Fault."""
        last, self._allocations[block.key] = self._allocations.get(block.key), event
        if last is None or last.first == event.first:
            return
        columns = [last.first + lane for lane in last.lanes]
        if not any(all(int(t[EXECUTION, c]) >= last.done for t in self._tables(g, event)) for c in columns):
            raise Fault(
                "race",
                "two warps of a block execute tcgen05.alloc at the same time: missing barrier between the two; let one "
                "warp allocate",
                notes=(self._note(g, last),),
            )

    def _remember(self, block: Block, new: Access) -> None:
        before = self._accesses.get(block.key, [])
        e = new.event
        if new.writes:
            left = [a for a in before if a.event is e or not new.rect.covers(a.rect)]
        else:  # A later read of the same words by the same actor stands for both.
            left = [
                a
                for a in before
                if a.writes or a.rect != new.rect or a.event is e or e.actor < 0 or a.event.actor != e.actor
            ]
        left.append(new)
        self._accesses[block.key] = left

    def _check(self, g: Group, block: Block, new: Access) -> None:
        for old in self._accesses.get(block.key, ()):
            if old.event is new.event or not (old.writes or new.writes):
                continue
            common = old.rect.overlap(new.rect)
            if common is None:
                continue
            verdict = self._order(g, old.event, new.event)
            if verdict.strict:
                continue
            if verdict.practice and not self._machine.strict_tensor_order:
                self._warn(old.event, new.event, verdict.missing)
                continue
            self._raise(g, block, old, new, common, verdict.missing)

    def _raise(self, g: Group, block: Block, old: Access, new: Access, common: Rect, missing: str) -> None:
        word = "write-after-read" if not old.writes else "write-after-write" if new.writes else "read-after-write"
        roles = new.role if old.role == new.role else f"{new.role} of this, {old.role} of the earlier"
        x, y, z = _coord(g, block.linear)
        kinds = {old.event.kind, new.event.kind}
        # An overlap may be unintended, unless this reads a result of the earlier one.
        is_result = not new.writes and not (kinds == {"mma"} and old.role != new.role)
        other = "" if is_result or kinds & {"alloc", "dealloc"} else "; or use other columns for one of the two"
        raise Fault(
            "race",
            f"{word} race on tensor memory of block ({x}, {y}, {z}), {common} ({roles}), with an earlier "
            f"{old.event.name}: {missing}{other}",
            new.event.lanes[0],
            notes=(self._note(g, old.event),),
        )

    def _note(self, g: Group, e: TensorEvent) -> str:
        who = self._who(g, e.first + e.lanes[0], -1)
        where = e.info.location or e.info.text
        warp = "the warp of " if e.is_collective else ""
        return f"the earlier {e.name} is by {warp}{who} at {where}"

    def _warn(self, old: TensorEvent, new: TensorEvent, missing: str) -> None:
        where = new.info.location or new.info.text
        self._machine.warn(
            ("tcgen05 order", hash((where, old.name, new.name, missing))),
            f"{where}: {new.name} is ordered after {old.name} in practice, but not by the PTX ISA (9.7.16.6): "
            f"{missing}",
        )

    # -- order --------------------------------------------------------------------------------------------------------

    def _order(self, g: Group, x: TensorEvent, y: TensorEvent) -> Verdict:
        """Return the order of an earlier event x and an event y that is being issued by `g`."""
        tables = self._tables(g, y)
        fenced = self._fenced(g, y)
        same = x.same_issuer(y)
        if x.kind in ("ld", "st", "alloc", "dealloc"):
            verdict = self._after_warp(x, y, tables, fenced, same, g)
            if x.other is None or verdict.strict:
                return verdict
            other = self._after_warp(x.other, y, tables, fenced, x.other.same_issuer(y), g)
            return other if other.practice > verdict.practice or other.strict else verdict
        complete = all(int(t[MEMORY, x.actor]) >= x.number for t in tables)
        if complete and y.kind == "dealloc":
            return Verdict(True, True, "")
        if complete and _knows(fenced, 0, x.actor, x.number):
            return Verdict(True, True, "")
        listed = (x.kind == "cp" and y.kind == "mma") or (x.kind == y.kind == "mma" and x.key == y.key)
        usual = listed or (x.kind in ("mma", "cp") and y.kind == "cp")
        if same:
            if listed:
                return Verdict(True, True, "")
            text = (
                "missing tcgen05.commit to an mbarrier after the earlier one, and a wait for its phase"
                if not complete
                else "missing tcgen05.fence::after_thread_sync between the wait for the mbarrier and this"
            )
            return Verdict(False, usual or complete, text)
        issued = all(int(t[EXECUTION, x.first + x.lanes[0]]) >= x.clock for t in tables)
        if listed and self._fence_between(g, x, x.clock, fenced):
            return Verdict(True, True, "")
        if complete:
            return Verdict(
                False, True, "missing tcgen05.fence::after_thread_sync between the wait for the mbarrier and this"
            )
        if issued and usual:
            return Verdict(
                False,
                True,
                "missing tcgen05.fence::before_thread_sync before the synchronization of the two threads, or "
                "tcgen05.fence::after_thread_sync after it"
                if listed
                else "missing tcgen05.commit to an mbarrier after the earlier one, and a wait for its phase",
            )
        return Verdict(
            False,
            False,
            "missing wait for the phase of an mbarrier that a tcgen05.commit signals after the earlier one",
        )

    def _after_warp(
        self, x: TensorEvent, y: TensorEvent, tables: list[Array], fenced: list[Array], same: bool, g: Group
    ) -> Verdict:
        """Return the order after an event of a whole warp, which is complete when the warp has waited for it."""
        if x.done < 0:
            return Verdict(False, False, f"missing tcgen05.wait::{x.kind} by the warp of the earlier one")
        if same:
            return Verdict(True, True, "")
        columns = [x.first + lane for lane in x.lanes]
        if not any(all(int(t[EXECUTION, c]) >= x.done for t in tables) for c in columns):
            return Verdict(False, False, "missing barrier, or mbarrier arrive and wait, between the two warps")
        if x.kind == "alloc":
            if y.kind == "dealloc" or any(_knows(fenced, 1, c, x.done) for c in columns):
                return Verdict(True, True, "")
            return Verdict(False, True, "missing tcgen05.fence::after_thread_sync between the barrier and this")
        if self._fence_between(
            g, x, x.done, fenced if y.kind != "dealloc" else [t[[MEMORY, EXECUTION]] for t in tables]
        ):
            return Verdict(True, True, "")
        before = self._fence_between(g, x, x.done, [t[[MEMORY, EXECUTION]] for t in tables])
        return Verdict(
            False,
            True,
            "missing tcgen05.fence::after_thread_sync between the synchronization of the two warps and this"
            if before
            else f"missing tcgen05.fence::before_thread_sync between tcgen05.wait::{x.kind} of the earlier one and the "
            "synchronization of the two warps",
        )

    def _fence_between(self, g: Group, x: TensorEvent, time: int, fenced: list[Array]) -> bool:
        """Return True if a fence::before_thread_sync of x's issuer from `time` on is known to all of some tables."""
        for lane in x.lanes:
            column = x.first + lane
            times = self._before.get((g.clocks.cluster.number, column), [])
            i = bisect_left(times, time)
            if i < len(times) and all(k.shape[1] > column and int(k[1, column]) > times[i] for k in fenced):
                return True
        return False

    def _tables(self, g: Group, y: TensorEvent) -> list[Array]:
        """Return the tables of the lanes that issue an event, without repetitions."""
        if not g.clocks.extras:
            return [g.clocks.table]
        found = {id(t): t for t in map(g.clocks.of, y.lanes)}
        return list(found.values())

    def _fenced(self, g: Group, y: TensorEvent) -> list[Array]:
        """Return rows MEMORY and EXECUTION of the issuing lanes at their last after_thread_sync fence."""
        number, first = g.clocks.cluster.number, g.clocks.first
        found = {id(k): k for k in (self._after.get((number, first + lane), _NOTHING_KNOWN) for lane in y.lanes)}
        return list(found.values())

    # -- shared memory ------------------------------------------------------------------------------------------------

    def check_data(self, g: Group, lane: int, name: str, info: OpInfo, actors: Array, times: Array) -> None:
        """Check that a fence orders an operation after the writes of its operands in shared memory.

        The writes are known to be ordered before the thread.
        """
        clocks = g.clocks
        known = self._after.get((clocks.cluster.number, clocks.first + lane), _NOTHING_KNOWN)
        if known.shape[1] == 1:
            known = np.zeros_like(clocks.table[[MEMORY, EXECUTION]])
            known[:, -1] = np.iinfo(np.int32).max
        late = (times > known[0][actors]) & (actors != clocks.first + lane) & (actors >= 0)
        if not late.any():
            return
        missing = "add tcgen05.fence::after_thread_sync after the wait for them"
        if self._machine.strict_tensor_order:
            raise Fault("race", f"{name} may start before its operands are in shared memory: {missing}", lane)
        where = info.location or info.text
        self._machine.warn(
            ("tcgen05 data", hash((where, name))),
            f"{where}: {name} is ordered after the writes of its operands in practice, but not by the PTX ISA "
            f"(9.7.16.6): {missing}",
        )


def _knows(fenced: list[Array], row: int, column: int, time: int) -> bool:
    return all(k.shape[1] > column and int(k[row, column]) >= time for k in fenced)


def _coord(g: Group, linear: int) -> tuple[int, int, int]:
    x, y, _ = g.machine.grid
    return (linear % x, linear // x % y, linear // (x * y))
