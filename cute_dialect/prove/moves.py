"""Moves between equivalent states: counters that start again at a smaller number, and decisions that are forgotten.

A protocol that compares an iteration only with its bound behaves the same if both are reduced by a number. A move says
by how much, for each base, and which decisions are dropped. `check_move` states when a move is right, without regard to
how it was found; the search chooses the moves (`Keys.shifts`). `settle` renumbers groups of copies and of wgmma in the
same way, and removes values that no later op reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm

from cute_dialect.prove.arithmetic import Learned
from cute_dialect.prove.decisions import interval_of
from cute_dialect.prove.facts import DONE, Record
from cute_dialect.prove.search import Keys
from cute_dialect.prove.state import Frame, State, Warp
from cute_dialect.prove.values import Accumulator, Base, Counter, Strided, Struct, Value


@dataclass(frozen=True)
class Move:
    """A renumbering of a state.

    Attributes:
        dropped: Bases whose decision is forgotten.
        shifts: Positive distances by which loops restart, by base.
        tiles: Distance by which tiles are renumbered.
    """

    dropped: tuple[Base, ...] = ()
    shifts: Mapping[Base, int] = field(default_factory=dict[Base, int])
    tiles: int = 0


class WrongMove(Exception):
    """A move that may change the behaviour of a state."""


def choose_move(keys: Keys, s: State) -> Move:
    """Return the move that the search makes in a state, which does not change."""
    decisions, shifted = dict(s.decisions), set(s.shifted)
    found, _ = keys.shifts(s)
    dropped = [b for b in (*decisions, *sorted(shifted, key=repr)) if b not in s.decisions and b not in s.shifted]
    s.decisions, s.shifted = decisions, shifted
    shifts: dict[Base, int] = {}
    for base, distance in found.items():
        frames = [f for f in _frames(s) if f.loop == base]
        if distance > 0 and frames:
            every = lcm(keys.every(base[0]), *(f.pace for f in frames))
            lowest = min(f.position for f in frames) - keys.learned.threshold.get(base[0], -1) - 1
            most = min(lowest, *((f.at - 1) * f.pace for f in frames))
            shifts[base] = max(0, most // every * every)
    outer = [b for b in found if b[0] in keys.learned.outer_bases]
    tiles = min((shifts.get(b, 0) for b in outer), default=0)
    shifts.update(dict.fromkeys(outer, tiles))
    return Move(tuple(dict.fromkeys(dropped)), {b: d for b, d in shifts.items() if d}, tiles)


def check_move(learned: Learned, s: State, move: Move) -> None:
    """Check that a state behaves the same after a move. Raises WrongMove with the reason.

    A base may be dropped if no loop runs over it: a later question has both answers, whatever was decided. A loop may
    restart if all its warps have passed the numbers that iterations are compared with, by a multiple of the divisors of
    iterations and of the divisor for which the remainder of its length is decided. The bases that were shifted are
    marked, and a later question about their true value is refused.
    """
    loops = {f.loop for f in _frames(s)} | {f.static for f in _frames(s)}
    counted = {c.loop for c in _counters(s)}
    for base in move.dropped:
        if base in loops or base in counted:
            raise WrongMove("drops the decision on the length of a loop that is not over")
    for base, distance in move.shifts.items():
        frames = [f for f in _frames(s) if f.loop == base]
        if base[0] not in learned.loop_bases or not frames or any(f.static == base for f in _frames(s)):
            raise WrongMove("restarts a loop that no warp executes, or whose length is known")
        every = lcm(learned.modulus.get(base[0], 1), learned.divisors.get(base[0], 1))
        if distance <= 0 or distance % every:
            raise WrongMove("restarts a loop by a distance that changes remainders of its iterations")
        for f in frames:
            if f.position != f.first + f.pace * (f.at - f.undecided):
                raise WrongMove("restarts a loop whose position is not that of its iteration")
            if distance % f.pace or f.at - distance // f.pace < 1:
                raise WrongMove("restarts a loop before its first iteration")
            if f.position - distance <= learned.threshold.get(base[0], -1):
                raise WrongMove("restarts a loop below a number that its iterations are compared with")
        if any(Fraction(c.slope * distance).denominator != 1 for c in _counters(s) if c.loop == base):
            raise WrongMove("restarts a loop by a distance that changes quotients of its iterations")
    outer = {b for b in (*s.decisions, *loops) if b is not None and b[0] in learned.outer_bases}
    if any(move.shifts.get(b, 0) != move.tiles for b in outer - set(move.dropped)) or (move.tiles and not outer):
        raise WrongMove("renumbers tiles by another distance than the loop over them")


def apply_move(learned: Learned, s: State, move: Move) -> None:
    """Renumber a state."""
    for base in move.dropped:
        s.decisions.pop(base, None)
        s.shifted.discard(base)
    shifts = move.shifts
    for base in shifts:  # From now on, a decision about the whole launch says nothing about the numbers of this loop.
        s.decisions[base] = interval_of(s.decisions, base, learned)

    def moved(base: Base) -> Base:
        return base[0], None if base[1] is None else base[1] - move.tiles

    def value(v: Value) -> Value:
        if isinstance(v, Counter):
            return Counter(moved(v.loop), int(v.value - v.slope * shifts.get(v.loop, 0)), v.slope)
        if isinstance(v, Strided):
            counter = value(v.counter)
            assert isinstance(counter, Counter)
            return Strided(counter, v.lower, v.step)
        return Struct(tuple((p, value(x)) for p, x in v.fields)) if isinstance(v, Struct) else v

    s.shifted = {moved(b) for b in s.shifted | set(shifts)}
    s.decisions = {
        moved(b): (None if low is None else low - shifts.get(b, 0), None if high is None else high - shifts.get(b, 0))
        for b, (low, high) in s.decisions.items()
    }
    for w in s.warps:
        w.tile -= move.tiles
        w.env = {slot: value(v) for slot, v in w.env.items()}
        for f in w.frames:
            if f.loop is not None:
                distance = shifts.get(f.loop, 0)
                f.position -= distance
                f.at -= distance // f.pace
                f.loop = moved(f.loop)
            f.static = None if f.static is None else moved(f.static)
            if f.bounds is not None:
                lower, upper, step = f.bounds
                f.bounds = value(lower), value(upper), value(step)


def settle(s: State) -> None:
    """Remove values that are not read again, and renumber groups of copies and wgmma from the oldest that matters."""
    for w in s.warps:
        if w.is_leaving:
            w.tile = 0
        if not w.frames:
            w.env = {}
        for slot in w.unused():
            w.env.pop(slot, None)
    tickets: dict[tuple[object, ...], list[int]] = {}
    for r in s.facts.records:
        if r.ticket != DONE:
            tickets.setdefault(r.actor, []).append(r.ticket)
    less: dict[tuple[object, ...], int] = {}
    for w in s.warps:
        for kind, counts in (("bulk", w.bulk), ("copy", w.copies)):
            for c, n in counts.items():
                actor = (kind, w.number, c)
                less[actor] = min([n, *tickets.get(actor, ())]) - 1
                counts[c] = n - less[actor]
    for group in range(0, len(s.warps), 4):
        _settle_wgmma(s, s.warps[group : group + 4], group // 4, less)
    records: dict[Record, int] = {}
    for r, mask in s.facts.records.items():
        if r.ticket != DONE and (distance := less.get(r.actor, 0)):
            r = s.facts.table.record(r.kind, r.actor, r.ticket - distance, r.known, r.fenced, r.may_be)
        records[r] = records.get(r, 0) | mask
    s.facts.records = records


def _settle_wgmma(s: State, warps: list[Warp], group: int, less: dict[tuple[object, ...], int]) -> None:
    """Renumber the wgmma of a warpgroup from the first that one of its warps has not waited for."""
    slowest = min(w.waited for w in warps)
    less["wgmma", group] = slowest
    if group in s.products:
        s.products[group] = {n - slowest: p for n, p in s.products[group].items()}
    for w in warps:
        w.waited, w.issued = w.waited - slowest, w.issued - slowest
        w.groups = tuple(n - slowest for n in w.groups)
        for slot, v in w.env.items():
            if isinstance(v, Accumulator):
                is_done = v.number - slowest < w.waited
                w.env[slot] = Accumulator(DONE, False) if is_done else replace(v, number=v.number - slowest)


def _frames(s: State) -> Iterator[Frame]:
    for w in s.warps:
        yield from w.frames


def _counters(s: State) -> Iterator[Counter]:
    """Yield all iterations that values and bounds of loops have."""
    work: list[Value] = [v for w in s.warps for v in w.env.values()]
    work += [v for f in _frames(s) for v in f.bounds or ()]
    while work:
        v = work.pop()
        if isinstance(v, Counter):
            yield v
        elif isinstance(v, Strided):
            yield v.counter
        elif isinstance(v, Struct):
            work += [x for _, x in v.fields]
