"""Abstract values of the protocol prover: integers, values per lane, linear terms over symbols, and loop counters.

An address, parity or trip count of a protocol is one of

- `int`, the same in all threads, or a numpy array with one integer per lane of a warp;
- `Linear`, such as `k_tiles - 1`: unknown, but the same in all threads of the block;
- `Counter`, the induction variable of a loop without a known end, or a quotient of it;
- `Strided`, the induction variable of a loop whose lower bound or step is a symbol;
- `Spread`, a sum of symbols and a number per lane, such as a row of a tile, and `Guard`, a comparison of such sums;
- `Accumulator`, registers that a wgmma writes, and `Struct`, an LLVM struct;
- `UNKNOWN`, anything else. No synchronizing instruction may depend on it.

>>> symbol(("arg", 0, ())) * 2 + 1 - symbol(("arg", 0, ())) * 2
1
"""

# Typeshed gives functions of operator no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import gcd
from typing import TypeAlias

import numpy as np

Lanes: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
Atom: TypeAlias = "tuple[Hashable, ...]"
Terms: TypeAlias = "tuple[tuple[Atom, int], ...]"
Base: TypeAlias = "tuple[Terms, int | None]"
"""The variable part of a comparison, and the number of the tile whose value it is (None: of the whole launch)."""


ANY = "any"
"""First item of the symbol of a value that may be negative."""


NEVER = 1 << 62
"""A number that no sum of sizes is above."""


class Unknown:
    """The value of which nothing is known."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


@dataclass(frozen=True, eq=False)
class Linear:
    """A sum of symbols with integer coefficients, and a constant. Built by `symbol` and arithmetic."""

    terms: Terms
    const: int = 0
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.terms, self.const)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Linear) or self._hash != other._hash or self.const != other.const:
            return False
        if self.terms is not other.terms:
            if self.terms != other.terms:
                return False
            object.__setattr__(other, "terms", self.terms)  # a symbol of symbols is then compared once
        return True

    def __add__(self, other: Linear | int) -> Linear | int:
        if isinstance(other, int):
            return Linear(self.terms, self.const + other) if self.terms else self.const + other
        sums = dict(self.terms)
        for atom, factor in other.terms:
            sums[atom] = sums.get(atom, 0) + factor
        return _linear(sums, self.const + other.const)

    def __mul__(self, factor: int) -> Linear | int:
        return _linear({a: c * factor for a, c in self.terms}, self.const * factor)

    def __sub__(self, other: Linear | int) -> Linear | int:
        return self + other * -1


def _linear(sums: dict[Atom, int], const: int) -> Linear | int:
    terms = tuple(sorted(((a, c) for a, c in sums.items() if c), key=repr))
    return Linear(terms, const) if terms else const


def trips_of(span: Linear) -> Linear:
    """Return the number of iterations of a loop over the distance of two sizes, 0 if it is negative."""
    return symbol(("trips", span, 1))


def symbol(atom: Atom) -> Linear:
    """Return an unknown integer with a name."""
    return Linear(((atom, 1),))


@dataclass(frozen=True)
class Counter:
    """A value of a loop of unknown length: advancing the loop by d iterations adds `slope * d`."""

    loop: Base
    value: int
    slope: int | Fraction = 1


@dataclass(frozen=True)
class Strided:
    """The induction variable of a loop from a symbol by a symbol, such as a tile: `lower + step * counter`."""

    counter: Counter
    lower: int | Linear
    step: int | Linear


@dataclass(frozen=True)
class Spread:
    """A sum of symbols with integer coefficients, and a number per lane."""

    terms: Terms
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class Guard:
    """A condition that holds in a lane if each of some sizes is above a number of the lane.

    Attributes:
        parts: The terms of each size in a fixed order, with the numbers. A size is fixed during the launch.
    """

    parts: tuple[tuple[Terms, tuple[int, ...]], ...]

    def __and__(self, other: Guard) -> Guard:
        above = dict(self.parts)
        for terms, lanes in other.parts:
            above[terms] = tuple(map(max, lanes, above.get(terms, lanes)))
        return Guard(tuple(sorted(above.items(), key=repr)))

    def where(self, lanes: Lanes) -> Guard:
        """Return the condition that holds nowhere but in the lanes whose number is not zero."""
        limited = [(terms, tuple(a if keep else NEVER for a, keep in zip(above, lanes))) for terms, above in self.parts]
        return Guard(tuple(limited))


@dataclass(frozen=True)
class Accumulator:
    """Registers written by the wgmma with this number, of one warp. `whole`: all of them, in order."""

    number: int
    whole: bool


@dataclass(frozen=True)
class Struct:
    """An LLVM struct, as its known fields by position."""

    fields: tuple[tuple[tuple[int, ...], Value], ...] = ()

    def insert(self, path: tuple[int, ...], value: Value) -> Struct:
        """Return the struct with one field replaced."""
        kept = [(p, v) for p, v in self.fields if p[: len(path)] != path]
        if isinstance(value, Struct):
            kept += [(path + p, v) for p, v in value.fields]
        elif value is not UNKNOWN:
            kept.append((path, value))
        return Struct(tuple(sorted(kept, key=lambda f: f[0])))

    def extract(self, path: tuple[int, ...]) -> Value:
        """Return a field, which may be a struct. A field that was never inserted is unknown."""
        found = tuple((p[len(path) :], v) for p, v in self.fields if p[: len(path)] == path)
        if len(found) == 1 and not found[0][0]:
            return found[0][1]
        return Struct(found)


@dataclass(frozen=True)
class Argument:
    """A kernel argument that is a struct, or a struct in it."""

    index: int
    path: tuple[int, ...] = ()


Value: TypeAlias = (
    "int | Lanes | Linear | Counter | Strided | Spread | Guard | Accumulator | Struct | Argument | Unknown"
)


def split_lanes(value: Value) -> tuple[Terms, Lanes] | None:
    """Return the symbols of an integer and its numbers per lane, None if it is another value.

    >>> split_lanes(symbol(("n",)) + 2)[0]
    ((('n',), 1),)
    """
    if isinstance(value, Spread):
        return value.terms, np.asarray(value.lanes, np.int64)
    if isinstance(value, Linear):
        return value.terms, np.full(32, value.const, np.int64)
    if isinstance(value, (int, np.ndarray)):
        return (), value + np.zeros(32, np.int64)
    return None


def join_lanes(symbols: Linear | int, lanes: Lanes) -> Value:
    """Return the sum of symbols and a number per lane."""
    lanes = lanes + (symbols.const if isinstance(symbols, Linear) else symbols)
    same = uniform(lanes)
    if not isinstance(symbols, Linear):
        return same
    if isinstance(same, int):
        return Linear(symbols.terms, same)
    return Spread(symbols.terms, tuple(int(x) for x in lanes))


def guard_of(terms: Terms, lanes: Lanes) -> Guard:
    """Return the condition that a sum of symbols and a number per lane is positive."""
    common = gcd(*(factor for _, factor in terms))
    reduced = tuple((atom, factor // common) for atom, factor in terms)
    return Guard(((reduced, tuple(int(x) for x in -lanes // common)),))


def uniform(values: Lanes) -> int | Lanes:
    """Return one integer if all lanes have the same value."""
    return int(values[0]) if (values == values[0]).all() else values


def wrapped(value: int | Lanes, width: int) -> int | Lanes:
    """Wrap integers to a signed type of `width` bits."""
    if width == 1:
        return value & 1
    if width >= 64 and isinstance(value, np.ndarray):
        return value
    half = 1 << (width - 1)
    return ((value + half) & ((1 << width) - 1)) - half


def _ceil_div(x: int | Lanes, y: int | Lanes) -> int | Lanes:
    return -(-x // y)


_ARITHMETIC: dict[str, Callable[..., int | Lanes]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "shli": operator.lshift,
    "shrsi": operator.rshift,
    "floordivsi": operator.floordiv,
    "ceildivsi": _ceil_div,
    "minsi": np.minimum,
    "maxsi": np.maximum,
}
_UNSIGNED: dict[str, Callable[..., int | Lanes]] = {
    "shrui": operator.rshift,
    "divui": operator.floordiv,
    "remui": operator.mod,
    "ceildivui": _ceil_div,
    "minui": np.minimum,
    "maxui": np.maximum,
}
PREDICATES: tuple[str, ...] = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
"""Predicates of arith.cmpi by number. The last four compare unsigned integers."""
COMPARE: dict[str, Callable[..., bool | Lanes]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


EXACT: dict[str, Callable[..., int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
}
"""The ops of `arith` that any two integers have a result of, before it is wrapped."""


def compute(name: str, x: int | Lanes, y: int | Lanes, width: int) -> int | Lanes | Unknown:
    """Return the result of a binary `arith` op (its name without the dialect) on known integers."""
    if name in _UNSIGNED or name in ("divsi", "remsi"):
        if name.startswith(("div", "rem", "ceildiv")) and not np.all(y):
            return UNKNOWN
        if width < 64 and name in _UNSIGNED:
            x, y = x & ((1 << width) - 1), y & ((1 << width) - 1)
        elif np.any(np.less(x, 0)) or np.any(np.less(y, 0)):
            return UNKNOWN  # Rounding toward zero, or unsigned integers of 64 bits: no protocol needs them.
        run = _UNSIGNED.get(name) or (_UNSIGNED["divui"] if name == "divsi" else _UNSIGNED["remui"])
    elif name in _ARITHMETIC:
        run = _ARITHMETIC[name]
        if name.startswith(("sh", "floordiv", "ceildiv")) and (
            np.any(np.less(y, 0)) or (not np.all(y) and "div" in name)
        ):
            return UNKNOWN
    else:
        return UNKNOWN
    got = wrapped(run(x, y), width)
    return uniform(got) if isinstance(got, np.ndarray) else int(got)


def compare(predicate: int, x: int | Lanes, y: int | Lanes, width: int) -> int | Lanes:
    """Return the result of `arith.cmpi`, 0 or 1."""
    if predicate >= 6 and width < 64:
        x, y = x & ((1 << width) - 1), y & ((1 << width) - 1)
    got = COMPARE[PREDICATES[predicate]](x, y)
    return uniform(np.asarray(got, np.int64)) if isinstance(got, np.ndarray) else int(got)


@lru_cache(maxsize=4096)
def normalized(difference: Linear) -> tuple[Terms, int, int]:
    """Return terms T, a factor f and a constant c with difference = f·T + c. The first coefficient of T is positive."""
    common = 0
    for _, c in difference.terms:
        common = gcd(common, c)
    if difference.terms[0][1] < 0:
        common = -common
    return tuple((a, c // common) for a, c in difference.terms), common, difference.const
