"""The schedule of a counterexample, as turns that the interpreter replays (`interp.exec.replay`).

A warp of the interpreter stops before each instruction that others can observe. Its first turn leads to the first of
them, and each later turn executes one, with the accesses that follow. A multicast copy is one copy there, which lands
in all blocks at once. A deadlock needs no turns after those that lead to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cute_dialect.interp.compiler.switches import is_switch
from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.decisions import Restart, Undecided, split
from cute_dialect.prove.exhaustive import Step, WrongStep, land, take_step
from cute_dialect.prove.program import Program
from cute_dialect.prove.search import Choice
from cute_dialect.prove.tensor_steps import TensorMachine
from cute_dialect.runtime.turns import MOST_TURNS, Turn, write_turns

_AT_ONCE = ("copies_arrive", "async_store")
"""Kinds of copies that the interpreter completes at once."""


def schedule_of(program: Program, steps: Iterable[Step]) -> str:
    """Return the schedule that takes the steps of a counterexample, such as `replay:0*3,1,c`."""
    return write_turns(_turns(program, steps))


def _turns(program: Program, steps: Iterable[Step]) -> Iterator[Turn]:
    started: set[int] = set()
    flying: list[int] = []  # the number of the issue of each copy in flight
    waiting: list[int] = []  # those of which no part has landed
    for number, step in enumerate(steps):
        if step.copies and step.op is not None and program.effects[step.op].kind in _AT_ONCE:
            flying += [-1] * step.copies
        elif step.copies:
            flying += [number] * step.copies
            waiting.append(number)
        if step.landing >= 0:
            landed = flying.pop(step.landing)
            if landed in waiting:
                yield Turn(waiting.index(landed), True)
                waiting.remove(landed)
        elif step.choice is None:
            if step.warp not in started:
                started.add(step.warp)
                yield Turn(step.warp)
            if step.joins or (step.op is not None and is_switch(step.op)):
                yield Turn(step.warp)


def steps_of(program: Program, learned: Learned, choices: Sequence[Choice]) -> list[Step]:
    """Return the steps of the search that lead to a violation, given the answers on the way to it."""
    machine = TensorMachine(program, learned)
    s, out, left, tiles = machine.start(), list[Step](), list(choices)[::-1], 0
    try:
        while len(out) < MOST_TURNS:
            before = len(out)
            for w in s.warps:
                while w.frames and not (tiles and len(out) > before):
                    try:
                        step = take_step(machine, s, w.number, tiles)
                    except Undecided as question:
                        if not left:
                            return out
                        split(s.decisions, question, learned, left.pop().answer)
                        continue
                    if step is None:
                        break
                    out.append(step)
            if len(out) > before:
                tiles = 0
            elif s.flying:
                out.append(land(machine, s, 0))
            elif tiles:
                break
            else:
                tiles = 1  # as in `Search.proceed`
    except WrongStep as v:
        out.append(v.step)
    except Restart:
        pass  # The search met the violation before this. The interpreter goes on round-robin.
    return out
