"""Shared decisions about symbolic trip counts.

A loop `for i = 0 to k_tiles` asks "is k_tiles > i?". The first role that asks splits the proof into two cases. The
answer is an interval of `k_tiles` that all roles share, so all of them see the same trip count. A base whose loops are
inside an outer loop of unknown length, such as the loop over the tiles of a persistent kernel, has one interval per
iteration of the outer loop: trip counts that differ between tiles include those that do not.
"""

from __future__ import annotations

from collections.abc import Mapping

from cute_dialect.prove.values import ANY, Atom, Base, Linear, Terms, normalized

Interval = tuple[int | None, int | None]


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


def interval_of(decisions: Mapping[Base, Interval], base: Base, minimum: Mapping[Terms, int]) -> Interval:
    """Return the values of a base that earlier decisions, about it or about the whole launch, leave."""
    found = decisions.get(base)
    if found is None and base[1] is not None:
        found = decisions.get((base[0], None))
    return found or (lowest(base[0], minimum), None)


def is_above(decisions: Mapping[Base, Interval], base: Base, bound: int, minimum: Mapping[Terms, int]) -> bool:
    """Return True if the value of a base is above `bound`. Raises Undecided if both are possible."""
    low, high = interval_of(decisions, base, minimum)
    if low is not None and low > bound:
        return True
    if high is not None and high <= bound:
        return False
    raise Undecided(base, bound)


def split(decisions: dict[Base, Interval], question: Undecided, minimum: Mapping[Terms, int], answer: bool) -> None:
    """Record the answer to a question."""
    low, high = interval_of(decisions, question.base, minimum)
    decisions[question.base] = (question.bound + 1, high) if answer else (low, question.bound)


def threshold(difference: Linear) -> tuple[Terms, int, bool]:
    """Return (T, bound, positive): "difference > 0" is "T > bound" if `positive`, and its negation otherwise."""
    terms, factor, const = normalized(difference)
    if factor > 0:
        return terms, -const // factor, True
    return terms, -(-const // -factor) - 1, False
