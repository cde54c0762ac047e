"""Branches and loops on run-time values compute the same as Python on numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from traced import Traced

from cute_dialect.lang.control.loops import loop_range
from cute_dialect.lang.values.dtypes import Int32


def merged(a: int, b: int) -> int:
    if a > b:
        x = a
    elif a == 3:
        x = 7
    else:
        x = b * 2
    return x + 1


def early_return(a: int, b: int) -> int:
    if a > 3:
        return a
    if b > 3 and a < b < 5:
        return b
    return a + b


def loop_with_break(a: int, b: int) -> int:
    s = 0
    for i in range(a):
        if i > b:
            break
        s += i
    return s


def return_from_a_loop(a: int, b: int) -> int:
    for i in range(a):
        for j in range(b):
            if i * j == 2:
                return i * 10 + j
    return -1


def static_range(a: int, b: int) -> tuple[int, int]:
    xs = [a, b, a]
    s = 0
    for i in range(3):
        s += xs[i] * i
    for i in range(5):
        s += i * a
    return s, i


def while_with_return(a: int, b: int) -> int:
    n = 0
    while a > 0 and n < 10:
        a = a - b
        n += 1
        if a == 2:
            return n
    return a


def while_true(a: int, b: int) -> int:
    n = 0
    while True:
        if n * n > a + b:
            break
        n += 1
    else:
        n = 100
    return n


class State:
    def __init__(self, v: int):
        self.v = v
        self.w = 0

    def add(self, x: int) -> None:
        if x > 1:
            self.v += x
        else:
            self.w -= 1


def objects(a: int, b: int) -> tuple[int, int, list[int]]:
    s = State(a)
    xs = [1, b]
    for i in range(b):
        s.add(i)
        if i == a:
            xs[0] += s.v
    return s.v, s.w, xs


def downwards(a: int, b: int) -> int:
    s = 0
    for i in range(a, b - 5, -2):
        s = s * 3 + i
    return s


def ternaries(a: int, b: int) -> int:
    x = a if a > b else b
    y = a and b
    z = a or b or 5
    return x * 100 + y * 10 + z + (1 if not a < b else 2) + (a in (1, b, 3)) * 3


def continues(a: int, b: int) -> int:
    s = 0
    i = 0
    while i < a:
        i += 1
        if i == b:
            continue
        for j in range(3):
            if j == b:
                continue
            s += j + i
    return s


def walrus(a: int, b: int) -> int:
    n = 0
    while (m := a - n) > b:
        n += 1
        if n > 5:
            break
    return n * 10 + m


def walrus_else(a: int, b: int) -> int:
    n = 0
    while (m := a - n) > b and n < 9:
        n += 1
        if n * 2 == a:
            continue
        if n > 5:
            return m
    else:
        n += 100
    return n * 10 + m


def recursion(a: int, b: int, depth: int = 3) -> int:
    if depth == 0:
        return a
    return recursion(a + b, b, depth - 1) if a < 10 else recursion(a, b + 1, depth - 1)


class Tiles:
    """A tile scheduler whose generator method contains a run-time loop."""

    def __init__(self, first: int, total: int):
        self.first = first
        self.total = total
        self.given = 0

    def tiles(self) -> Iterator[tuple[int, int]]:
        tile = self.first
        while tile < self.total:
            self.given += 1
            yield tile // 3, tile % 3
            tile += 2

    def columns(self) -> Iterator[int]:
        yield 0
        for k in range(4):
            yield k * self.total


def generator(a: int, b: int) -> tuple[int, ...]:
    scheduler = Tiles(a, b)
    count = Tiles(0, 0)
    last = s = 0
    for m, n in scheduler.tiles():
        s += m * 7 + n
        for k in range(b):
            if k > 1:
                count.given += n
            s += k
        last = m
    return s, last, count.given, scheduler.given


def generator_unrolled(a: int, b: int) -> tuple[int, ...]:
    s = t = 0
    xs = [a, b, 3, 4, 5]
    i = 0
    for k in Tiles(a, b).columns():
        s += k
        t += xs[i]
        i += 1
    return s, t, i


CASES = (generator, generator_unrolled,
    merged, early_return, loop_with_break, return_from_a_loop, static_range, while_with_return, while_true, objects,
    downwards, ternaries, continues, walrus, walrus_else, recursion,
)  # fmt: skip


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_results_match_python(f: Callable[..., Any]) -> None:
    traced = Traced(f, [Int32, Int32])
    for a, b in itertools.product(range(-2, 7), range(-1, 5)):
        assert traced.run(a, b) == f(a, b), (a, b)


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_partly_static(f: Callable[..., Any]) -> None:
    for b in (0, 3):
        traced = Traced(f, [Int32, ("is", b)])
        for a in range(-2, 7):
            assert traced.run(a) == f(a, b), (a, b)
    traced = Traced(f, [("is", 4), ("is", 2)])
    assert traced.run() == f(4, 2)


# ------------------------------------------------------------------------------------------------- what is emitted


def ops_of(f: Callable[..., Any]) -> list[str]:
    return [op for op in Traced(f, [Int32, Int32]).ops if op not in ("gpu.return", "scf.yield")]


def test_cheap_sides_are_selected() -> None:
    assert ops_of(lambda a, b: a + 1 if a > b else b * 2) == [
        "arith.cmpi", "arith.addi", "arith.muli", "arith.select",
    ]  # fmt: skip


def test_a_division_is_not_speculated() -> None:
    assert ops_of(lambda a, b: a // b if b > 0 else 0) == ["arith.cmpi", "scf.if", "arith.floordivsi"]


def test_and_is_lazy_for_expensive_operands() -> None:
    assert ops_of(lambda a, b: a > 0 and b < 5) == ["arith.cmpi", "arith.cmpi", "arith.andi"]
    assert ops_of(lambda a, b: b != 0 and a // b < 5) == ["arith.cmpi", "scf.if", "arith.floordivsi", "arith.cmpi"]


def test_chained_comparisons_evaluate_operands_once() -> None:
    def f(a: int, b: int) -> bool:
        return a + 1 < b * 3 < a - 9

    assert sorted(ops_of(f)) == ["arith.addi", "arith.andi", "arith.cmpi", "arith.cmpi", "arith.muli", "arith.subi"]


def test_a_loop_without_jumps_is_counted() -> None:
    def f(a: int, b: int) -> int:
        s = 0
        for i in range(1, a, 2):
            s += i
        return s

    assert ops_of(f) == ["arith.cmpi", "arith.select", "scf.for", "arith.addi"]  # The bound is clamped to 0.


def test_unchanged_variables_are_not_carried() -> None:
    def f(a: int, b: int) -> tuple[int, int]:
        s, scale = 0, 3
        for i in range(a):
            scale = 3
            s += i * scale
        return s, scale

    traced = Traced(f, [Int32, Int32])
    assert traced.run(4, 0) == (18, 3)
    assert traced.result[1] == 3  # It is still a Python number.


def test_a_static_branch_runs_one_side() -> None:
    def f(a: int, b: int) -> int:
        if isinstance(a, int):
            raise AssertionError
        return a if b is not None else unknown  # noqa: F821  # pyright: ignore

    assert Traced(f, [Int32, Int32]).run(3, 4) == 3


class When:
    """A context manager whose body is a run-time branch."""

    def __init__(self, condition: Any):
        self.condition = condition

    def __cute_region__(self) -> Any:
        return self.condition

    def __enter__(self) -> When:
        raise AssertionError

    def __exit__(self, *error: object) -> None: ...


def test_a_manager_may_be_a_branch() -> None:
    def f(a: int, b: int) -> int:
        with When(a > b):
            b += 10
        return b

    traced = Traced(f, [Int32, Int32])
    assert (traced.run(3, 1), traced.run(1, 3)) == (11, 3)


def test_discarded_traces_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def f(a: int, b: int) -> int:
        xs = [a, b]
        for i in range(a):
            xs[0] += i
            print("turn", i, xs)
        print("after")
        return xs[0]

    Traced(f, [Int32, Int32])
    assert capsys.readouterr().out == "turn ? [Int32(?), Int32(?)]\nafter\n"


def test_changed_global_lists_are_merged() -> None:
    COUNTS.clear()
    COUNTS.extend([0, 5])

    def f(a: int, b: int) -> int:
        if a > b:
            tell(a)
        return COUNTS[0]

    traced = Traced(f, [Int32, Int32])
    assert (traced.run(3, 1), traced.run(1, 3)) == (3, 0)
    COUNTS.clear()


COUNTS: list[Any] = []


def tell(x: int) -> None:
    COUNTS[0] = x


def test_repeated_traces_are_equal() -> None:
    from tracing import text_of

    texts = {text_of(Traced(f, [Int32, Int32]).module) for f in (objects, objects, objects)}
    assert len(texts) == 1


def test_an_operand_that_changes_an_object_is_lazy() -> None:
    def f(a: int, b: int) -> tuple[int, int]:
        s = State(b)

        def grown(x: int) -> int:
            s.v += x
            return s.v

        i = 0
        while i < 4 and grown(a) < 9:
            i += 1
        return i, s.v

    traced = Traced(f, [Int32, Int32])
    for a, b in itertools.product(range(5), range(-3, 9)):
        assert traced.run(a, b) == f(a, b), (a, b)


def test_a_truth_of_run_time_is_true_or_false() -> None:
    def f(a: int, b: int) -> int:
        flag = a > b
        found = 0
        if flag is True:
            found += 1
        if flag is not True:
            found += 10
        if False is not flag is not True:
            found += 100
        match flag:
            case False:
                return found + 1000
            case _:
                return found + (2000 if flag is None or a is True else 3000)

    traced = Traced(f, [Int32, Int32])
    for a, b in itertools.product(range(3), range(3)):
        assert traced.run(a, b) == f(a, b), (a, b)


def test_unroll_is_an_attribute_of_the_loop() -> None:
    from tracing import text_of

    def f(a: int, b: int) -> int:
        for i in loop_range(a, unroll=4):
            b += i
        return b

    assert "{cute.unroll = 4 : i32}" in text_of(Traced(f, [Int32, Int32]).module)


def test_no_unroll_is_passed_to_ptxas() -> None:
    from tracing import text_of

    def f(a: int) -> int:
        total = 0
        for i in loop_range(a, unroll=1):
            total = total + i
        return total

    text = text_of(Traced(f, [Int32]).module)
    assert "nounroll" in text.partition("scf.for")[2] and "cute.unroll" not in text
