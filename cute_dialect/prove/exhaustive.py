"""Engine A: all interleavings of the steps that other warps can observe, the referee of the search.

The search (`search`) runs one schedule and checks conditions under which the others have the same happens-before order.
Here every warp may take its next step in each state, and every copy in flight may land. A wait passes if the parity of
the barrier says so, as in the hardware, so the conditions on the order of phases are not needed, and not checked.

Accesses, commits and fences of a warp commute with the steps of all others: a conflict of two accesses is found,
whichever comes first. So if the next step of a warp is one of them, no other step is tried in that state.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation

from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.decisions import Restart, Undecided, split
from cute_dialect.prove.machine import Instruction, Machine
from cute_dialect.prove.program import Program
from cute_dialect.prove.search import MOST_RESTARTS, Choice, Found, Keys, Visited, deadlock, without_iterations
from cute_dialect.prove.state import MBarrier, State, Warp
from cute_dialect.prove.tensor_steps import TensorMachine
from cute_dialect.prove.verdict import NotProved, Violation

MOST_STATES = 20_000
QUIET = frozenset(
    {
        "read",
        "write",
        "reads_accumulator",
        "cp_async",
        "cp_commit",
        "cp_wait",
        "bulk_store",
        "tensor_store",
        "bulk_commit",
        "bulk_wait",
        "wgmma_fence",
        "wgmma_commit",
        "fence_proxy",
        "warp_sync",
    }
)
"""Kinds of steps that commute with all steps of other warps."""


class Interleaved(TensorMachine):
    """The abstract machine without the conditions that make one schedule enough."""

    def _in_phase(self, s: State, w: Warp, c: int, at: int, b: MBarrier, op: Operation) -> None:
        """An operation counts for the phase in progress, whichever that is: all interleavings are tried."""

    def _do_mbarrier_wait(self, s: State, w: Warp, i: Instruction, lanes: int) -> bool:
        at = self.offset(w, i.args[0](w), lanes, i.op, "the address of an mbarrier")
        parity = self.number(i.args[1](w), lanes, i.op, "the parity of a wait") & 1
        classes = self.classes_of(w, lanes)
        for c in classes:
            self._barrier(s, w, c, at, i.op)
        if s.mbarriers[at].parity == parity:
            return False
        s.facts.carry(self._bit(("published", at)), self.targets(w, classes))
        return True


@dataclass(frozen=True)
class Step:
    """A step of a warp, the landing of a copy in flight, or an answer to a question.

    Attributes:
        op: The op that was executed, None if a warp ends.
        joins: True if the warp has arrived at a barrier and waits. The next step of the warp executes the op.
        copies: Number of copies that the op has put in flight, several for a multicast copy.
    """

    warp: int = -1
    op: Operation | None = None
    joins: bool = False
    copies: int = 0
    landing: int = -1
    choice: Choice | None = None


class WrongStep(Violation):
    """A violation, and the step that makes it."""

    def __init__(self, violation: Violation, step: Step) -> None:
        super().__init__(violation.kind, violation.text, violation.op, violation.earlier)
        self.step = step


def interleavings(machine: Machine, s: State) -> Iterator[tuple[Step, State]]:
    """Yield the steps that are possible in a state, which does not change, and the states after them.

    None are possible at the end of the block. Raises Violation for a wrong step, and for a deadlock.
    """
    found: list[tuple[Step, State]] = []
    for w in s.warps:
        if not w.frames:
            continue
        child = s.copy()
        try:
            step = take_step(machine, child, w.number)
        except Undecided as question:
            yield from _answers(machine, child, question, w.number)
            return
        if step is not None:
            if step.op is not None and machine.program.effects[step.op].kind in QUIET:
                yield step, child
                return
            found.append((step, child))
    yield from found
    for i in range(len(s.flying)):
        child = s.copy()
        yield land(machine, child, i), child
    waiting = [w for w in s.warps if w.frames]
    if waiting and not found and not s.flying:
        raise deadlock(waiting)


def take_step(machine: Machine, s: State, number: int, tiles: int | None = None) -> Step | None:
    """Let a warp take one step. Return None if it has to wait. `tiles`: see `Machine.advance`."""
    machine.trace = []
    w, before = s.warps[number], len(s.flying)
    try:
        moved = machine.advance(s, w, single=True, tiles=tiles)
    except Violation as v:
        raise WrongStep(v, Step(number, v.op)) from None
    if not moved:
        return None
    if not machine.trace:
        return Step(number, joins=bool(w.frames) and w.joined is not None)
    return Step(number, machine.trace[0][1], copies=len(s.flying) - before)


def land(machine: Machine, s: State, index: int) -> Step:
    """Land a copy in flight."""
    step = Step(landing=index)
    try:
        machine.land(s, index)
    except Violation as v:
        raise WrongStep(v, step) from None
    return step


def _answers(machine: Machine, s: State, question: Undecided, warp: int) -> Iterator[tuple[Step, State]]:
    for answer in (True, False):
        child = s.copy()
        split(child.decisions, question, machine.learned, answer)
        yield Step(warp, choice=Choice(question.base, question.bound, answer)), child


class Exploration:
    """One visit of all interleavings.

    Attributes:
        trips: Largest number of iterations, None for any. With a limit, states are compared by absolute counters.
        most: Largest number of states.
        steps: The steps that lead to the violation that was found.
    """

    def __init__(self, machine: Machine, most: int, seconds: float, trips: int | None = None) -> None:
        self.machine, self.most, self.trips = machine, most, trips
        self.deadline = time.process_time() + seconds
        self.keys = Keys(machine)
        self.states = 0
        self.steps: list[Step] = []

    def run(self) -> Found | None:
        """Visit all states. Return a violation that takes the fewest steps, None if there is none.

        Raises:
            NotProved: the limit of states or time is reached.
        """
        machine = self.machine
        if self.trips is not None:
            machine.learned.modulus.update(dict.fromkeys(machine.learned.loop_bases, 1 << 20))
        nodes: list[tuple[int, Step]] = [(-1, Step())]
        visited = Visited(machine.pieces)
        visited.add(self.keys.key(first := machine.start()))
        work = deque([(first, 0)])
        while work:
            s, node = work.popleft()
            try:
                for step, child in interleavings(machine, s):
                    choice, key = step.choice, self.keys.key(child)
                    is_long = choice is not None and choice.answer and choice.bound >= (self.trips or choice.bound + 1)
                    if is_long or not visited.add(key):
                        continue
                    nodes.append((node, step))
                    work.append((child, len(nodes) - 1))
            except Violation as v:
                self.steps = [v.step] if isinstance(v, WrongStep) else []
                while node > 0:
                    node, step = nodes[node]
                    self.steps.insert(0, step)
                choices = [t.choice for t in self.steps if t.choice is not None]
                return Found(v, choices, s, bool(machine.learned.outer))
            self.states = visited.count
            if self.states > self.most or time.process_time() > self.deadline:
                raise NotProved(f"all interleavings have more than {self.states} states", None, "use --engine facts")
        return None


def explore(
    program: Program,
    learned: Learned,
    seconds: float,
    *,
    most: int = MOST_STATES,
    trips: int | None = None,
    kind: type[Machine] = Interleaved,
) -> tuple[Found | None, Exploration]:
    """Explore until nothing new is learned.

    Args:
        program: The kernel.
        learned: Facts about the kernel from earlier searches, to which this one adds.
        seconds: Limit of CPU time.
        most: Limit of states.
        trips: Largest number of iterations, None for any.
        kind: `Machine` also checks the conditions under which one schedule is enough.
    """
    started = time.process_time()
    for _ in range(MOST_RESTARTS):
        one = Exploration(kind(program, learned), most, seconds - (time.process_time() - started), trips)
        try:
            found = one.run()
        except Restart:
            continue
        if trips is None and found is not None and (zero := without_iterations(found, learned)):
            learned.minimum.update(dict.fromkeys(zero, 1))
            learned.excluded.update(dict.fromkeys(zero, found.violation))
            continue
        return found, one
    raise NotProved("the search restarts too often")
