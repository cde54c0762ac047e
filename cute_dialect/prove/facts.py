"""Happens-before as finite facts: who is ordered after the last access to each byte of shared memory.

The interpreter's race detector keeps a vector clock per thread. Here a clock is replaced by facts that do not count:
each access record stores the set of holders that are ordered after it. A holder is a class of lanes of a warp, or a
barrier that carries knowledge from its arrivals to its waits. A new access that is ordered after all earlier ones
replaces them, so the number of records is bounded and two states with the same future are equal.

A class of several lanes has two bits. `own`: each lane is ordered after its own accesses. `all`: every lane is ordered
after the accesses of every lane. Only a barrier among the lanes turns the first into the second.

Records are interned: equal ones are the same object, so they are compared and hashed by identity.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np

from cute_dialect.prove.regions import Partition
from cute_dialect.prove.values import NEVER, Guard, Terms

Actor: TypeAlias = "tuple[Hashable, ...]"
Bounds: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.int64]]"
DONE = -1
"""Ticket of an access that is complete, or that never was asynchronous."""
READ, WRITE = "read", "write"
_ASYNC = ("tma", "wgmma", "bulk", "mma", "tensor", "ld", "st", "alloc", "dealloc")
"""Actors whose accesses need no proxy fence to be visible to asynchronous copies."""
_LATE = ("tensor", "ld")
"""Actors whose reads matter until others have executed a tcgen05.fence::after_thread_sync."""
SETTLED: Actor = ("anyone",)
"""Actor of writes that are ordered before whatever any thread or copy does."""
_ORDER = ("phase", "taken")
"""Kinds of tokens that precede whatever follows them, whether or not memory is visible."""


class Record:
    """Accesses of one actor: kind, the actor, the number of the group that must be waited for, and who knows them.

    Attributes:
        known: Holders ordered after the accesses.
        fenced: Holders to which they are also visible in the asynchronous proxy.
        may_be: True if the accesses depend on a condition that is not known, so they may not have happened.
        is_write: True for a write.
        is_async: True for accesses of the asynchronous proxy.
    """

    __slots__ = ("actor", "fenced", "is_async", "is_write", "kind", "known", "may_be", "ticket")

    def __init__(self, kind: str, actor: Actor, ticket: int, known: int, fenced: int, may_be: bool) -> None:
        self.kind, self.actor, self.ticket = kind, actor, ticket
        self.known, self.fenced, self.may_be = known, fenced, may_be
        self.is_write, self.is_async = kind == WRITE, actor[0] in _ASYNC


class Table:
    """The records and tokens of one search.

    Attributes:
        everyone: The `all` bits of all classes.
        after: Bits of the holders that stand for fences of tcgen05. Knowledge of everyone else does not include them.
        order: Mask of the tokens that precede whatever follows them, whether or not memory is visible.
    """

    def __init__(self, everyone: int) -> None:
        self.everyone, self.order, self.after = everyone, 0, 0
        self._records: dict[tuple[str, Actor, int, int, int, bool], Record] = {}
        self._tokens: dict[Hashable, int] = {}

    def record(self, kind: str, actor: Actor, ticket: int, known: int, fenced: int, may_be: bool = False) -> Record:
        """Return the record with these fields."""
        key = (kind, actor, ticket, known, fenced, may_be)
        got = self._records.get(key)
        if got is None:
            got = self._records[key] = Record(*key)
        return got

    def derived(self, r: Record, known: int, fenced: int, ticket: int) -> Record | None:
        """Return a record that other holders know. None for a read that is ordered before whatever any thread does."""
        everyone = self.everyone
        if known & everyone == everyone:
            late = ~self.after | known & self.after  # only tcgen05.fence::after_thread_sync adds these holders
            if not r.is_write:
                if r.actor[0] not in _LATE or late == -1:
                    return None
                return self.record(READ, r.actor, DONE, late, fenced, r.may_be)
            if r.is_async or fenced & everyone == everyone:
                return self.record(WRITE, SETTLED, DONE, late, -1, r.may_be)
            known, ticket = late, DONE
        return self.record(r.kind, r.actor, ticket, known, fenced, r.may_be)

    def token(self, token: Hashable) -> int:
        """Return the number of a token."""
        got = self._tokens.get(token)
        if got is None:
            got = self._tokens[token] = len(self._tokens)
            if isinstance(token, tuple) and token[0] in _ORDER:
                self.order |= 1 << got
        return got

    def names(self) -> tuple[Hashable, ...]:
        """Return the tokens in the order of their numbers."""
        return tuple(self._tokens)


class Facts:
    """The access records, as masks of pieces of shared memory, and tokens: other events and who knows them.

    Attributes:
        records: The pieces of shared memory of each record.
        tokens: Holders that know each token, by number.
        fenced: Holders to which a token is also visible in the asynchronous proxy, for those where it matters.
        written: Mask of the pieces that were written for certain.
        guards: Units of shared memory that were written if each of some sizes is above a number: by the sizes, the
            number of each size and unit. A unit that no such write reaches has `NEVER`. The arrays are not changed.
        version: Version of the partition that the masks belong to.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.records: dict[Record, int] = {}
        self.tokens: dict[int, int] = {}
        self.fenced: dict[int, int] = {}
        self.written = 0
        self.guards: dict[tuple[Terms, ...], Bounds] = {}
        self.version = 0

    def copy(self) -> Facts:
        """Return an independent copy."""
        out = Facts(self.table)
        out.records, out.tokens = self.records.copy(), self.tokens.copy()
        out.fenced, out.written, out.version = self.fenced.copy(), self.written, self.version
        out.guards = self.guards.copy()
        return out

    def _change(self, changed: list[tuple[Record, Record | None]]) -> None:
        """Replace records by those that they have become, None for those that no longer matter."""
        records = self.records
        masks = [records.pop(old) for old, _ in changed]
        for (_, new), mask in zip(changed, masks):
            if new is not None:
                records[new] = records.get(new, 0) | mask

    def carry(self, sources: int, target: int) -> None:
        """Order the holders `target` after everything that one of `sources` is ordered after."""
        derived = self.table.derived
        changed: list[tuple[Record, Record | None]] = []
        for r in self.records:
            known, fenced = r.known, r.fenced
            if known & sources and target & ~known:
                known |= target
            elif not fenced & sources or not target & ~fenced:
                continue
            if fenced & sources:
                fenced |= target
            changed.append((r, derived(r, known, fenced, r.ticket)))
        if changed:
            self._change(changed)
        for into in (self.tokens, self.fenced):
            for token, known in into.items():
                if known & sources and target & ~known:
                    into[token] = known | target

    def fence(self, holders: int) -> None:
        """Make all that `holders` are ordered after visible to their asynchronous copies."""
        changed: list[tuple[Record, Record | None]] = []
        for r in self.records:
            visible = r.known & holders
            if visible & ~r.fenced:
                changed.append((r, self.table.derived(r, r.known, r.fenced | visible, r.ticket)))
        if changed:
            self._change(changed)
        for token, fenced in self.fenced.items():
            self.fenced[token] = fenced | (self.tokens[token] & holders)

    def complete(self, actor: Actor, below: int, holders: int) -> None:
        """Order holders after an actor's accesses with tickets below `below`."""
        changed = [
            (r, self.table.derived(r, r.known | holders, r.fenced, r.ticket))
            for r in self.records
            if r.ticket < below and holders & ~r.known and r.actor == actor
        ]
        self._change(changed)

    def retire(self, actor: Actor, below: int) -> None:
        """Forget the tickets below `below` of an actor, for which every thread that could wait has waited."""
        changed = [
            (r, self.table.derived(r, r.known, r.fenced, DONE))
            for r in self.records
            if DONE != r.ticket < below and r.actor == actor
        ]
        self._change(changed)

    def land(self, actor: Actor, holder: int) -> None:
        """Order a barrier after the copies of an actor that signal it."""
        changed = [
            (r, self.table.derived(r, r.known | holder, r.fenced, r.ticket))
            for r in self.records
            if holder & ~r.known and r.actor == actor
        ]
        self._change(changed)

    def refresh(self, pieces: Partition) -> None:
        """Bring the masks up to date with a partition that has become finer."""
        version, self.version = self.version, pieces.version
        self.records = {r: pieces.current(m, version) for r, m in self.records.items()}
        self.written = pieces.current(self.written, version)

    def touching(self, mask: int) -> list[tuple[Record, int]]:
        """Return the records of accesses to some pieces, with the common ones."""
        return [(r, common) for r, m in self.records.items() if (common := m & mask)]

    def maybe_written(self) -> int:
        """Return the mask of all bytes that a write under an unknown condition may have written."""
        out = 0
        for r, mask in self.records.items():
            if r.is_write and r.may_be:
                out |= mask
        return out

    def add(self, record: Record, mask: int, touching: list[tuple[Record, int]]) -> None:
        """Record an access. All conflicting accesses to the same bytes are ordered before it, so they are replaced.

        A write that may not happen replaces nothing.

        Args:
            touching: The records of the same pieces, with the common ones.
        """
        records, is_write = self.records, record.is_write
        if not (record.may_be and is_write):
            for r, common in touching:
                if is_write or (not r.is_write and r.actor == record.actor):
                    if left := records[r] ^ common:
                        records[r] = left
                    else:
                        del records[r]
            if is_write:
                self.written |= mask
        new = self.table.derived(record, record.known, record.fenced, record.ticket)
        if new is not None:
            records[new] = records.get(new, 0) | mask

    def promise(self, units: Bounds, lanes: Sequence[int], guard: Guard, size: int) -> None:
        """Record writes that happen in each lane if a condition holds there.

        Args:
            units: The units that each of `lanes` writes, a row per lane.
            size: Number of units of shared memory.
        """
        sizes = tuple(terms for terms, _ in guard.parts)
        old = self.guards.get(sizes)
        bounds = np.full((len(sizes), size), NEVER, np.int64) if old is None else old.copy()
        needed = np.asarray([[above[lane] for lane in lanes] for _, above in guard.parts], np.int64)
        for column in units.T:
            # The earlier of two conditions that do not imply each other is kept.
            weaker = (needed <= bounds[:, column]).all(axis=0)
            bounds[:, column[weaker]] = needed[:, weaker]
        self.guards[sizes] = bounds

    def is_promised(self, unit: int, lane: int, guard: Guard) -> bool:
        """Return True if a unit was written, provided that a condition holds in a lane."""
        above = {terms: lanes[lane] for terms, lanes in guard.parts}
        return any(
            all(terms in above and above[terms] >= bound for terms, bound in zip(sizes, bounds[:, unit], strict=True))
            for sizes, bounds in self.guards.items()
        )

    def token(self, token: int, known: int) -> None:
        """Record an event that only some holders know."""
        self.tokens[token] = known

    def covers(self, other: Facts) -> bool:
        """Return True if these facts are weaker than others of the same version: nothing is known that they lack.

        A step adds holders if other holders know something, and reports a violation if some do not. So whatever is
        reported after the other facts is reported after these, too, and the relation holds again after each step.
        Records that every holder knows never matter to a report. Actors and groups must agree, since steps name them.
        """
        if self.written != other.written or self.guards.keys() != other.guards.keys():
            return False
        if any(not np.array_equal(bounds, other.guards[sizes]) for sizes, bounds in self.guards.items()):
            return False
        for mine, theirs in ((self.tokens, other.tokens), (self.fenced, other.fenced)):
            if mine.keys() != theirs.keys() or any(known & ~theirs[token] for token, known in mine.items()):
                return False
        groups: dict[tuple[str, Actor, int, bool], list[tuple[Record, int]]] = {}
        for r, mask in self.records.items():
            groups.setdefault((r.kind, r.actor, r.ticket, r.may_be), []).append((r, mask))
        for r, mask in other.records.items():
            if r.actor == SETTLED and r.known == -1:
                continue
            for mine, pieces in groups.get((r.kind, r.actor, r.ticket, r.may_be), ()):
                if not mine.known & ~r.known and not mine.fenced & ~r.fenced:
                    mask &= ~pieces
            if mask:
                return False
        return True

    def knows(self, token: Hashable, holders: int) -> bool:
        """Return True if one of the holders is ordered after the last event of this name."""
        return bool(self.tokens[self.table.token(token)] & holders)
