"""Happens-before as finite facts: who is ordered after the last access to each byte of shared memory.

The interpreter's race detector keeps a vector clock per thread. Here a clock is replaced by facts that do not count:
each access record stores the set of holders that are ordered after it. A holder is a class of lanes of a warp, or a
barrier that carries knowledge from its arrivals to its waits. A new access that is ordered after all earlier ones
replaces them, so the number of records is bounded and two states with the same future are equal.

A class of several lanes has two bits. `own`: each lane is ordered after its own accesses. `all`: every lane is ordered
after the accesses of every lane. Only a barrier among the lanes turns the first into the second.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple, TypeAlias

Actor: TypeAlias = "tuple[Hashable, ...]"
DONE = -1
"""Ticket of an access that is complete, or that never was asynchronous."""
READ, WRITE = "read", "write"


class Record(NamedTuple):
    """Accesses of one actor: kind, the actor, the number of the group that must be waited for, and who knows them.

    Attributes:
        known: Holders ordered after the accesses.
        fenced: Holders to which they are also visible in the asynchronous proxy.
        may_be: True if the accesses depend on a condition that is not known, so they may not have happened.
    """

    kind: str
    actor: Actor
    ticket: int
    known: int
    fenced: int
    may_be: bool = False

    @property
    def is_async(self) -> bool:
        """True for accesses of the asynchronous proxy."""
        return self.actor[0] in ("tma", "wgmma", "bulk")


class Facts:
    """The access records, as masks of units of shared memory, and tokens: other events and who knows them."""

    def __init__(self, everyone: int) -> None:
        self.everyone = everyone  # the `all` bits of all classes
        self.records: dict[Record, int] = {}
        self.tokens: dict[Hashable, tuple[int, int]] = {}

    def copy(self) -> Facts:
        """Return an independent copy."""
        out = Facts(self.everyone)
        out.records, out.tokens = dict(self.records), dict(self.tokens)
        return out

    def key(self) -> Hashable:
        """Return the facts as a value. Tickets are absolute."""
        return frozenset(self.records.items()), frozenset(self.tokens.items())

    def _put(self, into: dict[Record, int], record: Record, mask: int) -> None:
        if record.known & self.everyone == self.everyone:
            if record.kind == READ:
                return  # ordered before whatever any thread does
            fenced = -1 if record.is_async or record.fenced & self.everyone == self.everyone else record.fenced
            record = record._replace(known=-1, fenced=fenced, ticket=DONE)
        into[record] = into.get(record, 0) | mask

    def carry(self, sources: int, target: int) -> None:
        """Order the holders `target` after everything that one of `sources` is ordered after."""
        out: dict[Record, int] = {}
        for r, mask in self.records.items():
            known = r.known | target if r.known & sources else r.known
            fenced = r.fenced | target if r.fenced & sources else r.fenced
            if known != r.known or fenced != r.fenced:
                self._put(out, r._replace(known=known, fenced=fenced), mask)
            else:
                out[r] = out.get(r, 0) | mask
        self.records = out
        for token, (known, fenced) in self.tokens.items():
            self.tokens[token] = (
                known | target if known & sources else known,
                fenced | target if fenced & sources else fenced,
            )

    def fence(self, holders: int) -> None:
        """Make all that `holders` are ordered after visible to their asynchronous copies."""
        out: dict[Record, int] = {}
        for r, mask in self.records.items():
            self._put(out, r._replace(fenced=r.fenced | (r.known & holders)), mask)
        self.records = out
        for token, (known, fenced) in self.tokens.items():
            self.tokens[token] = (known, fenced | (known & holders))

    def complete(self, actor: Actor, below: int, holders: int) -> None:
        """Order holders after an actor's accesses with tickets below `below`."""
        out: dict[Record, int] = {}
        for r, mask in self.records.items():
            if r.actor == actor and r.ticket < below:
                r = r._replace(known=r.known | holders)
            self._put(out, r, mask)
        self.records = out

    def retire(self, actor: Actor, below: int) -> None:
        """Forget the tickets below `below` of an actor, for which every thread that could wait has waited."""
        out: dict[Record, int] = {}
        for r, mask in self.records.items():
            if r.actor == actor and DONE != r.ticket < below:
                r = r._replace(ticket=DONE)
            self._put(out, r, mask)
        self.records = out

    def land(self, actor: Actor, holder: int) -> None:
        """Order a barrier after the copies of an actor that signal it."""
        out: dict[Record, int] = {}
        for r, mask in self.records.items():
            if r.actor == actor:
                r = r._replace(known=r.known | holder)
            self._put(out, r, mask)
        self.records = out

    def conflicts(self, kind: str, mask: int) -> Iterator[tuple[Record, int]]:
        """Yield the earlier accesses to the same bytes that must come before an access, with the common bytes."""
        for r, m in self.records.items():
            if (kind == WRITE or r.kind == WRITE) and (common := m & mask):
                yield r, common

    def written(self) -> int:
        """Return the mask of all bytes that were written for certain."""
        out = 0
        for r, mask in self.records.items():
            if r.kind == WRITE and not r.may_be:
                out |= mask
        return out

    def maybe_written(self) -> int:
        """Return the mask of all bytes that a write under an unknown condition may have written."""
        out = 0
        for r, mask in self.records.items():
            if r.kind == WRITE and r.may_be:
                out |= mask
        return out

    def add(self, record: Record, mask: int) -> None:
        """Record an access. All conflicting accesses to the same bytes are ordered before it, so they are replaced.

        A write that may not happen replaces nothing.
        """
        if record.may_be and record.kind == WRITE:
            self._put(self.records, record, mask)
            return
        out: dict[Record, int] = {}
        for r, m in self.records.items():
            if record.kind == WRITE or (r.kind == READ and r.actor == record.actor):
                m &= ~mask
            if m:
                out[r] = m
        self.records = out
        self._put(self.records, record, mask)

    def token(self, token: Hashable, known: int) -> None:
        """Record an event that only some holders know."""
        self.tokens[token] = (known, 0)

    def knows(self, token: Hashable, holders: int) -> bool:
        """Return True if one of the holders is ordered after the last event of this name."""
        return bool(self.tokens[token][0] & holders)
