"""All interleavings of a protocol up to a trip count, the referee of the prover's single schedule.

The search of the prover runs one schedule and argues that the others have the same order of events. `check` runs them
all: in each state every warp may take its next visible step, and every copy in flight may land. It shares the steps of
`cute_dialect.prove.machine`, not the argument.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from mutations import find
from xdsl.dialects.builtin import ModuleOp

from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.decisions import Restart, Undecided, split
from cute_dialect.prove.machine import Machine
from cute_dialect.prove.program import Program
from cute_dialect.prove.search import Keys, deadlock
from cute_dialect.prove.state import State
from cute_dialect.prove.verdict import Violation


class TooMany(Exception):
    """The protocol has more states than allowed."""


def check(module: ModuleOp, kernel: str, trips: int, most: int = 20_000) -> tuple[Violation | None, int]:
    """Return a violation that some schedule reaches in at most `trips` iterations, None if there is none, and states.

    Raises:
        TooMany: more than `most` states are reachable.
    """
    learned = Learned()
    while True:
        machine = Machine(Program(module, find(module, kernel)), learned)
        try:
            return _explore(machine, trips, most)
        except Restart:
            continue


def _explore(machine: Machine, trips: int, most: int) -> tuple[Violation | None, int]:
    keys = Keys(machine)
    seen: set[Hashable] = set()
    work = [machine.start()]
    while work:
        s = work.pop()
        key = _absolute(keys, s)
        if key in seen:
            continue
        seen.add(key)
        if len(seen) > most:
            raise TooMany
        try:
            children = [c for c in _successors(machine, s, trips)]
            waiting = [w for w in s.warps if w.frames]
            if not children and waiting:
                raise deadlock(waiting)
        except Violation as v:
            return v, len(seen)
        work += children
    return None, len(seen)


def _successors(machine: Machine, s: State, trips: int) -> Iterator[State]:
    """Yield the states after each step that is possible now."""
    for number, w in enumerate(s.warps):
        if w.frames:
            child = s.copy()
            try:
                if machine.advance(child, child.warps[number], single=True):
                    yield child
            except Undecided as question:
                for answer in (True, False):
                    if answer and question.bound >= trips:
                        continue
                    decided = child.copy()
                    split(decided.decisions, question, machine.learned.minimum, answer)
                    yield decided
    for i in range(len(s.flying)):
        child = s.copy()
        machine.land(child, i)
        yield child


def _absolute(keys: Keys, s: State) -> Hashable:
    """Return the state as a value that counts iterations, which are few here."""
    keys.learned.modulus.update(dict.fromkeys(keys.learned.loop_bases, 1 << 20))
    return keys.key(s)
