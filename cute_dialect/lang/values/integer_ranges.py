"""Known facts about dynamic integers: lower and upper bounds, and a divisor.

Facts are exact.  If a result may wrap, its bounds are unknown and only the power of two in its divisor is kept.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.lang.values.folding import PYTHON, least_greatest

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import Numeric

__all__ = [
    "Facts", "absolute_facts", "binary_facts", "converted_facts", "facts_of", "is_natural", "joined_facts",
    "known_facts", "rounded_up",
]  # fmt: skip

CAP = 1 << 30
"""Largest power of two tracked as a divisor."""


class Facts(NamedTuple):
    """Facts about a dynamic integer: lower and upper bound (None: that of its type), and a divisor."""

    low: int | None = None
    high: int | None = None
    divisor: int = 1


def facts_of(x: Numeric) -> Facts:
    """Return the facts of an integer."""
    if x.is_static:
        return Facts(int(x.value), int(x.value), abs(int(x.value)))
    known = x.facts or Facts()
    low = 0 if known.low is None and not type(x).signed else known.low
    return known if low is known.low else Facts(low, known.high, known.divisor)


def is_natural(x: Numeric) -> bool:
    """Return True if a number is an integer known to be non-negative."""
    if not type(x).is_integer:
        return False
    low = facts_of(x).low
    return low is not None and low >= 0


def _range(x: Numeric) -> tuple[int, int]:
    """Return the minimum and maximum possible value of a number."""
    facts = facts_of(x)
    low, high = least_greatest(type(x))
    return low if facts.low is None else facts.low, high if facts.high is None else facts.high


def known_facts(kind: type[Numeric], low: int, high: int, divisor: int) -> Facts | None:
    """Return the facts of a result. If it may have wrapped, only facts that survive wrapping are kept."""
    least, greatest = least_greatest(kind)
    if least <= low and high <= greatest:
        return _told(Facts(low if low > least else None, high if high < greatest else None, max(divisor, 1)))
    return _told(Facts(None, None, min(divisor & -divisor, CAP) or 1))


def _told(facts: Facts) -> Facts | None:
    return None if facts == Facts() else facts


def converted_facts(x: Numeric, kind: type[Numeric]) -> Facts | None:
    """Return the facts of an integer converted to another integer type."""
    return known_facts(kind, *_range(x), facts_of(x).divisor)


def binary_facts(name: str, x: Numeric, y: Numeric) -> Facts | None:
    """Return the facts of the result of an operation on two integers of one type."""
    kind = type(x)
    a, b = facts_of(x), facts_of(y)
    (a_low, a_high), (b_low, b_high) = _range(x), _range(y)
    if name in ("add", "sub", "mul"):
        ends = [PYTHON[name](p, q) for p in (a_low, a_high) for q in (b_low, b_high)]
        divisor = a.divisor * b.divisor if name == "mul" else gcd(a.divisor, b.divisor)
        return known_facts(kind, min(ends), max(ends), divisor)
    if name in ("min", "max"):
        pick = PYTHON[name]
        return known_facts(kind, pick(a_low, b_low), pick(a_high, b_high), gcd(a.divisor, b.divisor))
    if name == "and":
        tops = [high for low, high in ((a_low, a_high), (b_low, b_high)) if low >= 0]
        divisor = max(a.divisor & -a.divisor, b.divisor & -b.divisor)
        return known_facts(kind, 0, min(tops), divisor) if tops else _told(Facts(None, None, divisor or 1))
    if name in ("or", "xor"):
        divisor = gcd(a.divisor & -a.divisor, b.divisor & -b.divisor)
        if a_low >= 0 and b_low >= 0:
            return known_facts(kind, 0, (1 << max(a_high.bit_length(), b_high.bit_length())) - 1, divisor)
        return _told(Facts(None, None, max(divisor, 1)))
    if y.is_static and y.value > 0 and name in ("floordiv", "mod"):
        n = int(y.value)
        if name == "mod":
            return known_facts(kind, 0, n - 1, gcd(a.divisor, n))
        return known_facts(kind, a_low // n, a_high // n, a.divisor // n if a.divisor % n == 0 else 1)
    if y.is_static and name in ("shl", "shr"):
        n = int(y.value)
        if name == "shl":
            return known_facts(kind, a_low << n, a_high << n, a.divisor << n)
        return known_facts(kind, a_low >> n, a_high >> n, a.divisor >> n if a.divisor % (1 << n) == 0 else 1)
    if a_low >= 0 and b_low >= 0 and name in ("floordiv", "mod", "shr"):
        return known_facts(kind, 0, min(a_high, b_high) if name == "mod" else a_high, 1)
    return None


def absolute_facts(x: Numeric) -> Facts | None:
    """Return the facts of ``abs(x)``, which is negative only for the minimum of a type."""
    low, high = _range(x)
    return known_facts(type(x), 0, max(-low, high), facts_of(x).divisor)


def rounded_up(x: Facts, y: Facts, kind: type[Numeric]) -> Facts | None:
    """Return the facts of ``ceil(x / y)`` for two non-negative integers.

    The result is at most ``x``, because the divisor is at least 1 in any valid division.

    >>> from cute_dialect.lang.values.dtypes import Int32
    >>> rounded_up(Facts(0, 1000), Facts(128, 128), Int32)
    Facts(low=0, high=8, divisor=1)
    """
    high = least_greatest(kind)[1] if x.high is None else x.high
    least = max(y.low or 0, 1)
    return known_facts(kind, 0, -(-high // least), 1)


def joined_facts(a: Facts | None, b: Facts | None) -> Facts | None:
    """Return the facts of a number that is one of two values."""
    if a is None or b is None:
        return None
    return _told(
        Facts(
            None if a.low is None or b.low is None else min(a.low, b.low),
            None if a.high is None or b.high is None else max(a.high, b.high), gcd(a.divisor, b.divisor) or 1,
        )
    )  # fmt: skip
