"""``match`` on run-time values behaves as in Python, for every function with static and dynamic inputs."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from traced import Traced

from cute_dialect.lang.tracing.errors import StaticError
from cute_dialect.lang.values.dtypes import Int32


@dataclass
class Point:
    x: Any
    y: Any


class Pair(NamedTuple):
    first: Any
    second: Any


def tuples(a: int, b: int) -> int:
    match (a, b):
        case (0, 0):
            return 1
        case (0, _):
            return 2
        case (_, 0):
            return 3
        case (1 | 2, 1 | 2):
            return 4
    return 5


def captures(a: int, b: int) -> int:
    x = 100
    match (a, b):
        case (0, x):
            x += 1
        case (x, 0):
            x += 2
        case [x, y]:
            x = x * 10 + y
    return x


def guards(a: int, b: int) -> int:
    x = 7
    match (a, (b, 3)):
        case (0, (x, 3)) if x > 1:
            r = x + 10
        case (x, (1, three)) if x == three - 2:
            r = x + 20
        case (x, (y, three)) if (lambda x: x > 1)(y) and x < three:
            r = x + 30
        case _:
            r = 40
    return r * 100 + x


def stars(a: int, b: int) -> int:
    match [a, b, a + b, 4]:
        case (0, *_, 4):
            return 1
        case (1, *middle, last):
            return len(middle) + last + sum(middle)
        case (first, 2, *rest):
            return first + rest[0]
        case (*init, 5):
            return 50 + init[0]
    return 9


def mappings(a: int, b: int) -> int:
    match {"op": "add", "a": a, "b": b}:
        case {"op": "sub"}:
            return 1
        case {"op": "add", "a": 0}:
            return 2
        case {"a": 1, "b": y, **rest}:
            return y + len(rest)
        case {"c": _}:
            return 3
    return 4


def classes(a: int, b: int) -> int:
    match Point(a, b):
        case Pair():
            return 1
        case Point(0, y):
            return y + 10
        case Point(x, y=1):
            return x + 20
        case Point(x=x, y=y) if x == y:
            return 30
        case Point(z=_):
            return 2
    return 40


def nested(a: int, b: int) -> int:
    match (Pair(a, [b, "text"]), deque([a])):
        case (Pair(0, [_, "other"]), _):
            return 1
        case (Pair(1, [1, str()]), [1]):
            return 2
        case (Pair(first, [second, str(text)]) as pair, [_]) if first < second:
            return first + second + len(text) + len(pair)
    return 3


def jumps(a: int, b: int) -> int:
    total = 0
    for i in range(4):
        match (i, a, b):
            case (0, _, _):
                continue
            case (n, 2, m) if m < n:
                break
            case (n, x, _):
                total += n + x
    return total


def numbers(a: int, b: int) -> int:
    match a:
        case 0 | 1:
            return b
        case -1:
            return 5
        case (_, _):
            return 6
        case {"a": 1}:
            return 7
        case other if other > b:
            return 8
        case n:
            return n * 2


FUNCTIONS = (tuples, captures, guards, stars, mappings, classes, nested, jumps, numbers)


@pytest.mark.sample("tuples")
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_match_python(f: Any) -> None:
    traced = Traced(f, [Int32, Int32])
    for a, b in itertools.product((-1, 0, 1, 2, 3), repeat=2):
        assert traced.run(a, b) == f(a, b), (a, b)
        assert Traced(f, [("is", a), Int32]).run(b) == f(a, b), (a, b)
        assert Traced(f, [Int32, ("is", b)]).run(a) == f(a, b), (a, b)
        assert Traced(f, [("is", a), ("is", b)]).run() == f(a, b), (a, b)


def test_capturing_alternatives_match_python() -> None:
    def f(a: int, b: int) -> int:
        match (a, b):
            case (0, y) | (y, 0):
                return y
        return 5

    assert Traced(f, [("is", 0), ("is", 3)]).run() == 3
    with pytest.raises(StaticError, match="F143"):
        Traced(f, [Int32, Int32])


def test_too_many_positional_patterns() -> None:
    def f(p: Any) -> int:
        match p:
            case Point(1, 2, 3):
                return 1
        return 0

    def g(p: Any) -> int:
        match p:
            case int(1, 2):
                return 1
        return 0

    with pytest.raises(TypeError, match=r"Point\(\) accepts 2 positional sub-patterns \(3 given\)"):
        Traced(f, [("is", Point(1, 2))])
    with pytest.raises(TypeError, match=r"int\(\) accepts 1 positional sub-pattern \(2 given\)"):
        Traced(g, [("is", 1)])
