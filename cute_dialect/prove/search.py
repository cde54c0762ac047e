"""The search through all reachable states of a block: one schedule, with happens-before.

A state is stored when a warp asks a question that is not decided. Counters of loops of unknown length are stored
relative to the slowest warp, so states that differ only in how often all warps went around are equal. If no new state
is left, the visited ones are an inductive invariant, which proves the protocol for all trip counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import count
from math import lcm
from typing import TypeAlias, cast

import numpy as np
from xdsl.ir import Operation

from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.decisions import Restart, Undecided, interval_of, is_remainder, lowest, split
from cute_dialect.prove.facts import DONE, Facts
from cute_dialect.prove.machine import Machine
from cute_dialect.prove.program import Code, Program
from cute_dialect.prove.regions import Partition
from cute_dialect.prove.sequences import varies
from cute_dialect.prove.state import LOOPS, Frame, State, Warp
from cute_dialect.prove.tensor_steps import TensorMachine
from cute_dialect.prove.values import Accumulator, Base, Counter, Strided, Struct, Terms, Value
from cute_dialect.prove.verdict import NotProved, Violation

Key: TypeAlias = "tuple[Hashable, Facts]"
Moved: TypeAlias = "Callable[[Base], Base]"
Plain: TypeAlias = "Callable[[Value], Hashable]"
MOST_STATES = 20_000
MOST_RESTARTS = 500
_RELATIVE = 1 << 20
"""Added to the numbers of groups in keys, which are relative to the oldest that matters, so that they are not DONE."""


@dataclass(frozen=True)
class Choice:
    """A decision on the way to a state: is the value of `base` above `bound`?"""

    base: Base
    bound: int
    answer: bool


@dataclass
class Found:
    """A violation, and the decisions that lead to it. `has_tiles`: some loops are inside a loop of unknown length."""

    violation: Violation
    choices: list[Choice]
    state: State
    has_tiles: bool


class Keys:
    """Converts states to keys that do not count iterations."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.learned, self.program = machine, machine.learned, machine.program
        self._asks: dict[Operation, frozenset[Terms]] = {}
        self._last: dict[tuple[Code, Terms, int], int] = {}

    def _asked(self, op: Operation) -> frozenset[Terms]:
        """Return the bases that an op or an op in it compares with a number."""
        got = self._asks.get(op)
        if got is None:
            found: set[Terms] = set()
            for o in op.walk():
                found |= self.learned.askers.get(o, set())
            got = self._asks[op] = frozenset(found)
        return got

    def _last_asker(self, w: Warp, code: Code, terms: Terms) -> int:
        """Return the position of the last op that compares a base with a number for a warp, -1 if there is none."""
        key = code, terms, w.number
        got = self._last.get(key)
        if got is None:
            asking = [n for n, op in enumerate(code.ops) if terms in self._asked(op) and not self._skips(w, op)]
            got = self._last[key] = asking[-1] if asking else -1
        return got

    def _skips(self, w: Warp, op: Operation) -> bool:
        """Return True if a condition on the thread index keeps all lanes of a warp out of a branch."""
        if op.name != "scf.if" or op.regions[1].blocks:
            return False
        work = [op.operands[0]]
        while work:
            value = work.pop()
            if self.program.is_invariant(value):
                if not np.any(np.asarray(self.machine.get(w, value) != 0)):
                    return True
            elif isinstance(value.owner, Operation) and value.owner.name == "arith.andi":
                work += value.owner.operands
        return False

    def _may_ask(self, w: Warp, base: Base) -> bool:
        """Return True if a warp may still compare a base with a number that is not relative to its loop."""
        terms, tile = base
        if tile is not None and w.tile > tile:
            return False
        for f in reversed(w.frames):
            if f.static == base:
                return True
            is_loop = f.op is not None and f.op.name in LOOPS
            start = 0 if is_loop and not (f.op in self.learned.outer and tile == w.tile) else f.index
            if f.undecided and f.at and f.op is not None and f.op in self.learned.outer and tile == w.tile:
                start = len(f.ops)
            if f.undecided and f.at == 0 and f.op is not None and terms in self.learned.askers.get(f.op, ()):
                return True
            if self._last_asker(w, f.code, terms) >= start:
                return True
            if tile is not None and tile == w.tile and f.op in self.learned.outer:
                return False
        return False

    def shifts(self, s: State) -> tuple[dict[Base, int], int]:
        """Return by how much the counters of each loop are reduced, and those of tiles. Forget settled decisions."""
        live = [w for w in s.warps if w.frames]
        positions: dict[Base, list[int]] = {}
        for w in live:
            for f in w.frames:
                if f.loop is not None:
                    positions.setdefault(f.loop, []).append(f.position)
        out: dict[Base, int] = {}
        tiles: int | None = None
        for base in {*s.decisions, *positions}:
            terms = base[0]
            if terms not in self.learned.loop_bases and not varies(terms):
                continue
            if base[1] is None and terms not in self.learned.outer_bases:
                continue  # The same in all tiles, see Learned.launch.
            asks = any(self._may_ask(w, base) for w in live)
            at = positions.get(base)
            if not asks and at is None:
                s.decisions.pop(base, None)
                s.shifted.discard(base)
                continue
            d = 0
            if not asks and at is not None:
                every = self.every(terms)
                free = min(at) - 1 - self.learned.threshold.get(terms, -1)
                d = max(0, free // every * every)
            out[base] = d
            if terms in self.learned.outer_bases:
                tiles = d if tiles is None else min(tiles, d)
        for base, d in out.items():
            if base[0] in self.learned.outer_bases:
                out[base] = d = tiles or 0
            if d:
                s.decisions[base] = interval_of(s.decisions, base, self.learned)
                s.shifted.add(base)
        return out, tiles or 0

    def every(self, terms: Terms) -> int:
        """Return the number by whose multiples a loop may restart: the divisors of its iterations and of its length."""
        return lcm(self.learned.modulus.get(terms, 1), self.learned.divisors.get(terms, 1))

    def _learn_launch(self, s: State) -> None:
        """Decide small sizes once for the launch, if warps may be in different tiles. Raises Restart.

        Otherwise the search tries all sequences of small trip counts that fit a ring.
        """
        tiles = [terms for terms, tile in s.decisions if tile is not None]
        for terms in dict.fromkeys(tiles):
            if tiles.count(terms) > 1 and not varies(terms):
                self.machine.learn_launch(s, terms)

    def key(self, s: State) -> Key:
        """Return the state as a value, and its facts. Decisions that no warp can ask for again are removed from it."""
        self.machine.refresh(s)
        shifts, tiles = self.shifts(s)
        self._learn_launch(s)

        def moved(base: Base) -> Base:
            return base[0], None if base[1] is None else base[1] - tiles

        def plain(v: Value) -> Hashable:
            if isinstance(v, np.ndarray):
                return ("lanes", v.tobytes())
            if isinstance(v, Counter):
                return ("counter", moved(v.loop), v.value - v.slope * shifts.get(v.loop, 0), v.slope)
            if isinstance(v, Strided):
                return ("strided", plain(v.counter), v.lower, v.step)
            if isinstance(v, Struct):
                return ("struct", tuple((p, plain(x)) for p, x in v.fields))
            return v

        warps: list[Hashable] = []
        slowest: dict[int, int] = {}
        for w in s.warps:
            slowest[w.number // 4] = min(slowest.get(w.number // 4, w.waited), w.waited)
        for w in s.warps:
            warps.append(self._warp(w, slowest[w.number // 4], shifts, tiles, moved, plain))
        decisions = frozenset(
            (moved(b), tuple(None if x is None else x - shifts.get(b, 0) for x in interval))
            for b, interval in s.decisions.items()
        )
        facts = s.facts.copy()
        facts.records = {}
        for r, mask in s.facts.records.items():
            if r.ticket != DONE:
                r = self.machine.table.record(
                    r.kind, r.actor, self._ticket(s, slowest, r.actor, r.ticket), r.known, r.fenced, r.may_be
                )
            facts.records[r] = facts.records.get(r, 0) | mask
        products = tuple(
            (g, n - slowest[g], p.operands, p.warps, p.tokens)
            for g, found in sorted(s.products.items())
            for n, p in sorted(found.items())
        )
        named = tuple(sorted((i, b.arrived, b.expected, b.parties, b.before) for i, b in s.named.items()))
        barriers = tuple(sorted((at, b.key()) for at, b in s.mbarriers.items()))
        rest = (
            tuple(warps),
            decisions,
            products,
            named,
            barriers,
            tuple(s.flying),
            s.pool,
            frozenset(s.tensor.items()),
        )
        return rest, facts

    def _ticket(self, s: State, slowest: dict[int, int], actor: tuple[Hashable, ...], ticket: int) -> int:
        if actor[0] == "wgmma":
            return ticket - slowest[cast("int", actor[1])] + _RELATIVE
        w = s.warps[cast("int", actor[1])]
        return ticket - (w.bulk if actor[0] == "bulk" else w.copies).get(cast("int", actor[2]), 0) + _RELATIVE

    def _warp(
        self, w: Warp, slowest: int, shifts: Mapping[Base, int], tiles: int, moved: Moved, plain: Plain
    ) -> Hashable:
        if not w.frames:
            return w.number, "ended", w.waited - slowest
        frames = tuple(self._frame(f, shifts, moved, plain) for f in w.frames)
        env: list[Hashable] = []
        dead = w.unused()
        for v, x in w.env.items():
            if v in dead:
                continue
            if isinstance(x, Accumulator):
                env.append((v, (x.number - w.waited, x.whole) if x.number >= w.waited else "done"))
            else:
                env.append((v, plain(x)))
        lag = tuple(sorted(w.lag.items()))
        rest = (
            w.issued - w.waited,
            tuple(g - w.waited for g in w.groups),
            w.waited - slowest,
            w.fenced,
            w.joined,
            w.gathered,
            w.passed,
            w.registers,
            w.resized,
            w.inits,
        )
        tile = None if w.is_leaving else w.tile - tiles
        return w.number, frames, frozenset(env), tile, lag, rest, frozenset(w.bulk), frozenset(w.copies)

    def _frame(self, f: Frame, shifts: Mapping[Base, int], moved: Moved, plain: Plain) -> Hashable:
        position: Hashable = f.at
        if f.loop is not None:
            position = (moved(f.loop), f.position - shifts.get(f.loop, 0), f.at > 0)
        static = None if f.static is None else moved(f.static)
        how = f.lanes, f.entered, f.partial, f.may_be, f.guard
        return id(f.code), f.index, how, position, f.undecided, static, tuple(map(plain, f.bounds or ()))


class Visited:
    """The keys of states that were visited. A state whose facts are stronger than those of another one adds nothing."""

    def __init__(self, pieces: Partition) -> None:
        self._pieces, self._facts = pieces, dict[Hashable, list[Facts]]()
        self.count = 0

    def add(self, key: Key) -> bool:
        """Add a state. Return False if its facts are covered by those of an equal one."""
        rest, facts = key
        known = self._facts.setdefault(rest, [])
        for earlier in known:
            if earlier.version != facts.version:
                earlier.refresh(self._pieces)
            if earlier.covers(facts):
                return False
        known.append(facts)
        self.count += 1
        return True


class Search:
    """One search for a violation."""

    def __init__(self, program: Program, learned: Learned, seconds: float, order: int = 1) -> None:
        self.machine = TensorMachine(program, learned)
        self.keys = Keys(self.machine)
        self.deadline = time.process_time() + seconds
        self.order = order
        self.states = 0

    def run(self) -> Found | None:
        """Visit all states. Return the first violation, None if there is none."""
        nodes: list[tuple[int, Choice | None]] = [(-1, None)]
        visited = Visited(self.machine.pieces)
        work = [(self.machine.start(), 0)]
        while work:
            s, node = work.pop()
            try:
                self.proceed(s)
                continue
            except Undecided as question:
                if not visited.add(self.keys.key(s)):
                    continue
                self.states = visited.count
                if self.states > MOST_STATES or (not self.states % 16 and time.process_time() > self.deadline):
                    raise self._unbounded(s) from None
                for answer in (True, False):
                    child = s.copy() if answer else s
                    split(child.decisions, question, self.machine.learned, answer)
                    nodes.append((node, Choice(question.base, question.bound, answer)))
                    work.append((child, len(nodes) - 1))
            except Violation as v:
                choices: list[Choice] = []
                at = node
                while at >= 0:
                    at, choice = nodes[at]
                    if choice is not None:
                        choices.insert(0, choice)
                return Found(v, choices, s, bool(self.machine.learned.outer))
        return None

    def proceed(self, s: State) -> None:
        """Run all warps to the end of the block, in a fixed order.

        Copies land when no warp can continue, and a warp begins a tile before others have ended theirs only if nothing
        else is possible. All schedules have the same order, and this one keeps the warps close together.
        """
        machine = self.machine
        for n in count(1):
            if not n % 64 and time.process_time() > self.deadline:
                raise self._unbounded(s)
            moved = False
            for w in s.warps[:: self.order]:
                if w.frames and machine.advance(s, w, tiles=0):
                    moved = True
            if moved:
                continue
            if s.flying:
                machine.land(s, 0)
                continue
            if any(w.frames and machine.advance(s, w, tiles=1) for w in s.warps[:: self.order]):
                continue
            waiting = [w for w in s.warps if w.frames]
            if waiting:
                raise deadlock(waiting)
            return

    def _unbounded(self, s: State) -> NotProved:
        fast = max(s.warps, key=lambda w: (bool(w.frames), w.tile))
        slow = min(s.warps, key=lambda w: (not w.frames, w.tile))
        return NotProved(
            f"the search did not converge after {self.states} states",
            fast.frames[-1].op if fast.frames else None,
            f"warp {fast.number} may run ahead of warp {slow.number} without bound, or a value of the protocol counts "
            "iterations; raise --limit if the kernel has many stages",
        )


def deadlock(waiting: list[Warp]) -> Violation:
    """Return the violation that all remaining warps wait."""
    first = waiting[0].frames[-1]
    op = first.ops[first.index]
    who = "1 warp waits and cannot" if len(waiting) == 1 else f"{len(waiting)} warps wait and none can"
    return Violation("deadlock", f"deadlock: {who} continue", op)


def search(program: Program, learned: Learned, seconds: float, order: int = 1) -> tuple[Found | None, Search]:
    """Search until nothing new is learned."""
    started = time.process_time()
    for _ in range(MOST_RESTARTS):
        one = Search(program, learned, seconds - (time.process_time() - started), order)
        try:
            found = one.run()
        except Restart:
            continue
        if found is not None and (zero := without_iterations(found, learned)):
            learned.minimum.update(dict.fromkeys(zero, 1))
            learned.excluded.update(dict.fromkeys(zero, found.violation))
            continue
        return found, one
    raise NotProved("the search restarts too often", None)


def without_iterations(found: Found, learned: Learned) -> list[Terms]:
    """Return the sizes that are zero in a counterexample, and have not been assumed to be positive."""
    decisions = found.state.decisions
    return [
        b[0]
        for b in decisions
        if (high := interval_of(decisions, b, learned)[1]) is not None
        and high <= 0
        and lowest(b[0], learned.minimum) == 0
        and not is_remainder(b[0])
    ]
