"""Shared decisions about symbolic trip counts.

A loop `for i = 0 to k_tiles` asks "is k_tiles > i?". The first role that asks splits the proof into two cases. The
answer is an interval of `k_tiles` that all roles share, so all of them see the same trip count. A base whose loops are
inside an outer loop of unknown length, such as the loop over the tiles of a persistent kernel, has one interval per
iteration of the outer loop: trip counts that differ between tiles include those that do not.

A protocol may depend on the remainder of a trip count, as ping-pong consumers do: each advances its place in the ring
by `k_tiles` after a tile, so its slot and parity depend on `k_tiles` modulo twice the number of stages. Such a
remainder is decided once per launch, and narrows the intervals of all tiles to numbers with this remainder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from cute_dialect.prove.values import ANY, Atom, Base, Linear, Terms, normalized, symbol

Interval = tuple[int | None, int | None]
_REMAINDER = "remainder"
"""First item of the symbol of a remainder that is decided."""


class Undecided(Exception):
    """A question that no earlier decision answers: is the value of `base` above `bound`?"""

    def __init__(self, base: Base, bound: int) -> None:
        super().__init__(base, bound)
        self.base, self.bound = base, bound


class Restart(Exception):
    """The search learned something that changes how states are compared, and must start again."""


def lowest(terms: Terms, minimum: Mapping[Terms, int]) -> int | None:
    """Return the least value of a sum of sizes, which are not negative. None if it may be negative."""
    if terms in minimum:
        return minimum[terms]
    if any(factor < 0 or atom[0] == ANY for atom, factor in terms):
        return None
    return sum(factor * _least(atom) for atom, factor in terms)


def _least(atom: Atom) -> int:
    """Return the least value of a symbol that is not negative: a maximum with a number is at least that number."""
    return max([0, *(v for v in atom[1:] if isinstance(v, int))]) if atom[0] in ("maxsi", "maxui") else 0


@dataclass
class Known:
    """Facts about sizes that hold in all states of a search.

    Attributes:
        minimum: Least values of sums of sizes, assumed.
        divisors: The divisor for which the remainder of a sum is decided, once per launch. Loops over such a sum
            restart only by multiples of the divisor.
    """

    minimum: dict[Terms, int] = field(default_factory=dict[Terms, int])
    divisors: dict[Terms, int] = field(default_factory=dict[Terms, int])


def remainder_base(terms: Terms, divisor: int) -> Base:
    """Return the base of the decision about a remainder: an interval of 0 to `divisor` - 1."""
    return symbol((_REMAINDER, Linear(terms), divisor)).terms, None


def is_remainder(terms: Terms) -> bool:
    """Return True for the terms of a decision about a remainder."""
    return terms[0][0][0] == _REMAINDER


def dividend(terms: Terms) -> Terms:
    """Return the sum whose remainder is decided, or the terms themselves for any other decision."""
    return cast("Linear", terms[0][0][1]).terms if is_remainder(terms) else terms


def remainder_of(decisions: Mapping[Base, Interval], terms: Terms, known: Known) -> int:
    """Return the remainder of a sum of sizes by its divisor. Raises Undecided, which halves the possible ones."""
    base = remainder_base(terms, known.divisors[terms])
    low, high = interval_of(decisions, base, known)
    assert low is not None and high is not None
    if low != high:
        raise Undecided(base, (low + high) // 2)
    return low


def interval_of(decisions: Mapping[Base, Interval], base: Base, known: Known) -> Interval:
    """Return the values of a base that earlier decisions, about it or about the whole launch, leave.

    The bounds have the remainder that is decided for the base, if any. A loop restarts by multiples of the divisor, so
    its numbers keep the remainder.
    """
    terms, tile = base
    found = decisions.get(base)
    if found is None and tile is not None:
        found = decisions.get((terms, None))
    if found is None:
        found = lowest(terms, known.minimum), (cast("int", terms[0][0][2]) - 1 if is_remainder(terms) else None)
    divisor = known.divisors.get(terms)
    if divisor is None:
        return found
    low, high = found
    first, last = decisions.get(remainder_base(terms, divisor), (0, divisor - 1))
    if first != last or first is None:
        return found
    if low is not None:
        low += (first - low) % divisor
    if high is not None:
        high -= (high - first) % divisor
    return low, high


def is_above(decisions: Mapping[Base, Interval], base: Base, bound: int, known: Known) -> bool:
    """Return True if the value of a base is above `bound`. Raises Undecided if both are possible."""
    low, high = interval_of(decisions, base, known)
    if low is not None and low > bound:
        return True
    if high is not None and high <= bound:
        return False
    raise Undecided(base, bound)


def split(decisions: dict[Base, Interval], question: Undecided, known: Known, answer: bool) -> None:
    """Record the answer to a question."""
    low, high = interval_of(decisions, question.base, known)
    decisions[question.base] = (question.bound + 1, high) if answer else (low, question.bound)


def threshold(difference: Linear) -> tuple[Terms, int, bool]:
    """Return (T, bound, positive): "difference > 0" is "T > bound" if `positive`, and its negation otherwise."""
    terms, factor, const = normalized(difference)
    if factor > 0:
        return terms, -const // factor, True
    return terms, -(-const // -factor) - 1, False
