"""Lists, dicts and objects that run-time branches and loops replace: traced kernels agree with Python."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from traced import Traced

from cute_dialect.errors import CuteError
from cute_dialect.lang.control.aliases import is_read_later
from cute_dialect.lang.values.dtypes import Boolean, Int32


class Box:
    def __init__(self, m: Any, n: Any):
        self.m = m
        self.n = n


class Named(list):
    name: Any


def on_one_side(c, a, b):
    xs = [a, b]
    if c:
        xs = [b, 3]
    xs[0] += 1
    return xs[0], xs[1]


def on_both_sides(c, a, b):
    xs = [a, b]
    if c:
        xs = [b, 3]
    else:
        xs[1] = 7
        xs = [xs[1], a]
    xs[0] += 1
    return xs[0], xs[1]


def changed_in_place_on_the_other_side(c, a, b):
    xs = [a, b]
    if c:
        xs[0] += 5
        xs.append(b)
    else:
        xs = [a, a, b]
    xs[1] += 1
    return xs[0] + xs[1], xs[2]


def renewed(xs, c, b):
    if c:
        xs = [b, xs[0]]
    xs[0] += 1
    return xs


def in_a_function(c, a, b):
    xs = renewed([a, b], c, b)
    xs = renewed(xs, c, a)
    xs[1] += 2
    return xs[0], xs[1]


def with_a_closure(c, a, b):
    xs = [a, b]

    def first():
        return xs[0]

    if c:
        xs = [b, 5]
    xs[0] += 3
    return first(), xs[1]


def with_a_dead_alias(c, a, b):
    xs = ys = [a, b]
    k = ys[0]
    if c:
        xs = [b, 3]
    xs[0] += 1
    return xs[0], k


def exchanged(c, a, b):
    xs, ys = [a, b], [b, a + 5]
    if c:
        xs, ys = ys, xs
    xs[0] += 1
    return xs[0] * 100 + ys[0], xs[1] * 100 + ys[1]


def by_an_expression(c, a, b):
    xs = [a, b]
    xs = xs if c else [b, 4]
    xs[0] += 1
    return xs[0], xs[1]


def an_attribute(c, a, b):
    s = Box([a, b], 0)
    if c:
        s.m = [b, 7]
    for _ in range(a):
        s.m = [s.m[1] + 1, s.m[0]]
    s.m[0] += 1
    return s.m[0], s.m[1]


def an_object(c, a, b):
    p = Box(a, 1)
    if c:
        p = Box(b, a)
    for _ in range(a):
        p = Box(p.n, p.m + 1)
    return p.m, p.n


def a_dict(c, a, b):
    d = {"p": a, "r": 1}
    if c:
        d = {"p": b, "r": a}
    for _ in range(a):
        d = {"p": d["r"] + 1, "r": d["p"]}
    return d["p"], d["r"]


def a_deque(c, a, b):
    q = deque([a, b])
    if c:
        q = deque([b, 2])
    q.append(q.popleft())
    return q[0], q[1]


def a_subclass_with_an_attribute(c, a, b):
    xs = Named([a])
    xs.name = a
    if c:
        xs = Named([b])
        xs.name = b + 1
    return xs[0], xs.name


def nested(c, a, b):
    xs = [[a, 1], [b, 2]]
    if c:
        xs = [[b, a], [3, 4]]
    for i in range(a):
        xs = [xs[1], [xs[0][0] + 1, i]]
    return xs[0][0] * 100 + xs[0][1], xs[1][0] * 100 + xs[1][1]


def in_a_loop(c, a, b):
    xs = [a, b]
    for i in range(a):
        if c:
            xs = [xs[1] + 1, i]
        xs[1] += 1
    return xs[0], xs[1]


def exchanged_in_a_loop(c, a, b):
    xs, ys = [a, b], [b, a + 5]
    for _ in range(a):
        xs, ys = ys, xs
        xs[0] += 1
    return xs[0] * 100 + ys[0], xs[1] * 100 + ys[1]


def shared_part_in_a_loop(c, a, b):
    total = [0]
    state = [total, a]
    for i in range(a):
        state = [state[0], state[1] + b]
        state[0][0] += i
    return total[0], state[1]


def with_a_closure_in_a_loop(c, a, b):
    xs = [a, b]

    def first():
        return xs[0]

    for i in range(a):
        xs = [xs[1] + first(), i]
    return first(), xs[1]


def in_a_while(c, a, b):
    xs = [a, b]
    while xs[0] < 20:
        xs = [xs[1] + 5, xs[0]]
    return xs[0], xs[1]


def by_the_test_of_a_while(c, a, b):
    s = Box([a, b], 0)

    def step():
        s.m = [s.m[1] + 3, s.m[0] + 1]
        return s.m[0] < 20

    while step():
        s.n += 1
    return s.m[0], s.n


def until_a_break(c, a, b):
    xs = [a, b]
    for i in range(10):
        if i > a:
            break
        xs = [xs[1] + 1, i]
    return xs[0], xs[1]


def in_nested_loops(c, a, b):
    xs, ys = [a, 2], [b, a]
    for i in range(a):
        for j in range(i):
            xs = [xs[1], ys[0] + j]
            ys[0] += 1
        if c:
            xs, ys = ys, xs
    return xs[0] * 100 + ys[0], xs[1] * 100 + ys[1]


def while_a_loop_goes_over_it(c, a, b):
    xs = [a, b]
    total = 0
    for x in list(xs):
        if c:
            xs = [x, b]
        total += x
    return total, xs[0]


AGREE = [
    f for f in list(globals().values())
    if callable(f) and getattr(f, "__module__", None) == __name__ and getattr(f, "__code__", None) is not None
    and f.__code__.co_varnames[:3] == ("c", "a", "b")
]  # fmt: skip


@pytest.mark.parametrize("function", AGREE, ids=lambda f: f.__name__)
def test_results_match_python(function: Callable[..., Any]) -> None:
    traced = Traced(function, [Boolean, Int32, Int32])
    for c in (False, True):
        for a in (0, 1, 4):
            for b in (0, 5):
                assert tuple(traced.run(c, a, b)) == tuple(function(c, a, b)), (c, a, b)


def with_an_alias(c, a, b):
    xs = [a, b]
    ys = xs
    if c:
        xs = [b, 3]
    xs[0] += 1
    return xs[0], ys[0]


def with_an_alias_of_the_caller(c, a, b):
    ys = [a, b]
    xs = renewed(ys, c, b)
    return xs[0], ys[0]


def with_an_alias_of_another_function(c, a, b):
    xs = [a, b]

    def first():
        return xs[0]

    return changed_beside(xs, first, c, b)


def changed_beside(xs, first, c, b):
    if c:
        xs = [b, 3]
    xs[0] += 1
    return first(), xs[0]


def with_an_alias_in_an_object(c, a, b):
    xs = [a, b]
    s = Box(xs, 0)
    for _ in range(a):
        xs = [xs[1], b]
    return xs[0], s.m[0]


def with_an_alias_in_a_generator(c, a, b):
    xs = [a, b]
    total = 0
    for x in elements(xs):
        if c:
            xs = [x, b]
        xs[1] += 1
        total += x
    return total, xs[0]


def elements(xs):
    for k in range(2):
        yield xs[k]


def with_an_iterator(c, a, b):
    xs = [a, b]
    total = 0
    for x in xs:
        if c:
            xs = [x, b]
        xs[1] += 1
        total += x
    return total, xs[0]


def with_an_alias_on_one_side(c, a, b):
    xs = [a, b]
    ys = [b, b]
    if c:
        ys = xs
        xs = [a, 1]
    else:
        ys = xs
    xs[0] += 1
    return xs[0], ys[0]


REFUSED = [
    with_an_alias, with_an_alias_of_the_caller, with_an_alias_of_another_function, with_an_alias_in_an_object,
    with_an_alias_in_a_generator, with_an_iterator, with_an_alias_on_one_side,
]  # fmt: skip


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_another_reference_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(CuteError, match="refers to two different list objects") as caught:
        Traced(function, [Boolean, Int32, Int32])
    assert caught.value.code in ("F209", "F220")
    assert "copy it first (xs = list(xs))" in caught.value.hint


def test_failed_merges_have_no_effect() -> None:
    def f(c, a, b):
        if c:
            xs = ys = [a, "x"]
        else:
            xs = ys = [b, "y"]
        first = xs if a is None else ys
        return first[0]

    with pytest.raises(CuteError, match="it is 'x' or 'y'"):
        Traced(f, [Boolean, Int32, Int32])


def test_variables_that_a_frame_reads_later() -> None:
    import sys

    def f(n: int) -> tuple[bool, ...]:
        read, stored, dead = n, n, n
        frame = sys._getframe()
        found = tuple(is_read_later(frame, name) for name in ("read", "stored", "dead", "n"))
        stored = read
        return (*found, stored == dead) if stored is None else found

    assert f(1) == (True, False, True, False)
