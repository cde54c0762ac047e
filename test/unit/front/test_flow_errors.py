"""Whole texts of what control flow refuses; each case is a function ``f`` and the error it gives."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from traced import Traced

from cute_dialect.front.convert import converted
from cute_dialect.front.dtypes import Float32, Int32
from cute_dialect.front.errors import CuteError, StaticError
from cute_dialect.front.loop_ranges import loop_range, range_constexpr

INTS, FLOATS = (Int32, Int32), (Int32, Float32)


def refusal(source: str, kinds: Sequence[Any] = INTS, **scope: Any) -> str:
    """Trace the function ``f`` of a text and return the error it gives, without what called it."""
    linecache.cache["k.py"] = (len(source), None, source.splitlines(True), "k.py")
    names: dict[str, Any] = {"__name__": "k", "loop_range": loop_range, "range_constexpr": range_constexpr, **scope}
    exec(compile(source, "k.py", "exec", dont_inherit=True), names)
    with pytest.raises(CuteError) as error:
        Traced(names["f"], kinds)
    return "\n".join(line for line in str(error.value).splitlines() if not line.startswith("called from"))


CASES = {
    "F140": (
        INTS,
        """\
def f(a, b):
    for i in range_constexpr(a):
        b += i
    return b
""",
        """\
k.py:2:14: error F140: a bound of 'range_constexpr' is known only when the kernel runs: 'a0', an Int32
    2 |     for i in range_constexpr(a):
      |              ^^^^^^^^^^^^^^^^^^
hint: use 'range', or pass the bound as cute.Constexpr""",
    ),
    "F142": (
        INTS,
        """\
def f(a, b):
    for i in loop_range(a, vectorize=4):
        b += i
    return b
""",
        """\
k.py:2:14: error F142: 'vectorize=4' would have no effect: loops have no such hint
    2 |     for i in loop_range(a, vectorize=4):
      |              ^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: leave 'vectorize' out""",
    ),
    "F143": (
        INTS,
        """\
class Key:
    def __init__(self, a):
        self.a = a
    def __lt__(self, other):
        return True if self.a < other.a else False
def f(a, b):
    return Key(a) < Key(b)
""",
        """\
k.py:5:24: error F143: the truth of this Boolean is known only when the kernel runs
    5 |         return True if self.a < other.a else False
      |                        ^^^^^^^^^^^^^^^^
k.py:5:24: note: '__lt__' was not converted: it was called by an operator, a property or a function written in C
    5 |         return True if self.a < other.a else False
      |                        ^^^^^^^^^^^^^^^^
hint: this function was not converted: see cute.jit and cute.convert_package""",
    ),
    "F144": (
        INTS,
        """\
def f(a, b):
    xs = [1, 2, 3]
    for i in range(b):
        a += xs[i]
    return a
""",
        """\
k.py:4:14: error F144: the value of 'i', an Int32 is known only when the kernel runs
    4 |         a += xs[i]
      |              ^^^^^
hint: a Python number is needed here: pass it as cute.Constexpr""",
    ),
    "F145": (
        INTS,
        """\
def f(a, b):
    return sum(range(a))
""",
        """\
k.py:2:12: error F145: how many turns this range has is known only when the kernel runs
    2 |     return sum(range(a))
      |            ^^^^^^^^^^^^^
hint: write a 'for' statement, in a function that is converted""",
    ),
    "F150-async": (
        INTS,
        """\
async def f(a, b):
    return a
""",
        """\
k.py:1:1: error F150: 'async' functions are not supported in a kernel
    1 | async def f(a, b):
      | ^^^^^^^^^^^^^^^^^^""",
    ),
    "F150-finally": (
        INTS,
        """\
def f(a, b):
    try:
        a += 1
    finally:
        return b
""",
        """\
k.py:5:9: error F150: 'return' in a 'finally' is not supported in a kernel
    5 |         return b
      |         ^^^^^^^^""",
    ),
    "F151": (
        INTS,
        """\
def f(a, b):
    x = a < b and 5
    return x
""",
        """\
k.py:2:9: error F151: the value of 'and' would be a truth or 5, depending on the run
    2 |     x = a < b and 5
      |         ^^^^^
hint: compare both sides, or write 'x if c else y'""",
    ),
    "F153": (
        INTS,
        """\
def f(a, b):
    if a < b and (n := a + b) > 3:
        return n
    return a
""",
        """\
k.py:2:8: error F153: an operand with ':=' (or 'yield') stands behind a condition known only when the kernel runs
    2 |     if a < b and (n := a + b) > 3:
      |        ^^^^^
hint: assign the name in a statement before""",
    ),
    "F155": (
        INTS,
        """\
def f(a, b):
    try:
        if a < b:
            x = [1][3]
    except IndexError:
        x = 5
    return x
""",
        """\
k.py:5:12: error F155: an exception left a branch or loop of run time, and is caught outside of it
    5 |     except IndexError:
      |            ^^^^^^^^^^
hint: catch it inside, or decide while compiling""",
    ),
    "F156": (
        INTS,
        """\
def f(a, b):
    if a < b:
        raise ValueError('a is too small')
    return a
""",
        """\
k.py:3:9: error F156: ValueError would be raised while compiling, whatever the run-time condition: a is too small
    3 |         raise ValueError('a is too small')
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: use 'assert' for what the kernel shall check when it runs""",
    ),
    "F157-clause": (
        INTS,
        """\
def f(a, b):
    return len([x for x in (a, b) if x > 0])
""",
        """\
k.py:2:38: error F157: the 'if' of a comprehension is known only when the kernel runs: the length would be
    2 |     return len([x for x in (a, b) if x > 0])
      |                                      ^^^^^
hint: keep all elements, and select their values: [x if c else 0 for …]""",
    ),
    "F157-sorted": (
        INTS,
        """\
def f(a, b):
    return sorted([a, b])
""",
        """\
k.py:2:12: error F157: 'sorted' needs values that are known while compiling
    2 |     return sorted([a, b])
      |            ^^^^^^^^^^^^^^""",
    ),
    "F158": (
        INTS,
        """\
def f(a, b):
    global count
    count = a
    return a
""",
        """\
k.py:3:5: error F158: the global 'count' is assigned in a kernel: it would be, once, while compiling
    3 |     count = a
      |     ^^^^^^^^^
hint: return the value, or keep it in an object that is passed""",
    ),
    "F159": (
        INTS,
        """\
def f(a, b):
    values = iter([1, 2, 3])
    if a < b:
        x = next(values)
    else:
        x = 0
    return x
""",
        """\
k.py:4:13: error F159: an iterator that was made before a branch or loop of run time is advanced inside of it
    4 |         x = next(values)
      |             ^^^^^^^^^^^^
hint: make it inside, or use an index""",
    ),
    "F160-consumer": (
        INTS,
        """\
def numbers(n):
    i = 0
    while i < n:
        yield i
        i += 1
def f(a, b):
    return sum(list(numbers(a)))
""",
        """\
k.py:4:9: error F160: a generator yields in a branch or loop of run time, and no 'for' statement takes it
    4 |         yield i
      |         ^^^^^^^
hint: loop over it by a 'for' statement of a converted function""",
    ),
    "F160-break": (
        INTS,
        """\
def numbers(n):
    i = 0
    while i < n:
        yield i
        i += 1
def f(a, b):
    for i in numbers(a):
        if i > b:
            break
    return a
""",
        """\
k.py:3:11: error F160: 'break' or 'return' out of a 'for' over a generator with a loop of run time
    3 |     while i < n:
      |           ^^^^^
k.py:7:14: note: the loop
    7 |     for i in numbers(a):
      |              ^^^^^^^^^^
hint: write the generator's loop here""",
    ),
    "F160-nested": (
        INTS,
        """\
def numbers(n):
    i = 0
    while i < n:
        if i > 2:
            yield i
        i += 1
def f(a, b):
    for i in numbers(a):
        b += i
    return b
""",
        """\
k.py:8:14: error F160: a generator yields in a branch or loop of run time inside of another
    8 |     for i in numbers(a):
      |              ^^^^^^^^^^
k.py:8:14: note: the loop
    8 |     for i in numbers(a):
      |              ^^^^^^^^^^""",
    ),
    "F161": (
        INTS,
        """\
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
def f(a, b):
    return fact(a)
""",
        """\
k.py:2:12: error F161: 'fact' calls itself without end while compiling: what ends it is known only when the kernel runs
    2 |     return 1 if n < 2 else n * fact(n - 1)
      |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write a loop""",
    ),
    "F170": (
        INTS,
        """\
def f(a, b):
    table = [[k] for k in range(20_000)]
    if a < b:
        x = table[0][0]
    else:
        x = 1
    return x
""",
        """\
k.py:3:8: error F170: more than 20,000 objects can be reached from what this branch or loop reads
    3 |     if a < b:
      |        ^^^^^
hint: keep large Python data in arrays of numpy, or out of the functions that kernels call""",
    ),
    "F201": (
        INTS,
        """\
def f(a, b):
    x = a
    if a < b:
        x = 1 << 40
    return x
""",
        """\
k.py:5:12: error F201: 'x' differs after this branch: it is Int32 or 1099511627776, which is none
    5 |     return x
      |            ^
k.py:3:8: note: the branch
    3 |     if a < b:
      |        ^^^^^""",
    ),
    "F202": (
        INTS,
        """\
def f(a, b):
    if a < b:
        x = 1
    else:
        x = 2.5
    return x
""",
        """\
k.py:6:12: error F202: 'x' differs after this branch: it is 1 or 2.5: Int32 or Float32
    6 |     return x
      |            ^
k.py:2:8: note: the branch
    2 |     if a < b:
      |        ^^^^^
hint: write both as one type""",
    ),
    "F203": (
        FLOATS,
        """\
def f(a, b):
    if a < 3:
        x = a
    else:
        x = b
    return x
""",
        """\
k.py:6:12: error F203: 'x' differs after this branch: it is Int32 or Float32
    6 |     return x
      |            ^
k.py:2:8: note: the branch
    2 |     if a < 3:
      |        ^^^^^
hint: convert one side, e.g. with cute.Int32(…)""",
    ),
    "F204": (
        INTS,
        """\
def f(a, b):
    if a < b:
        x = (a, b)
    else:
        x = (a, b, 1)
    return x
""",
        """\
k.py:6:12: error F204: 'x' differs after this branch: it is a tuple of 2 or of 3
    6 |     return x
      |            ^
k.py:2:8: note: the branch
    2 |     if a < b:
      |        ^^^^^""",
    ),
    "F207": (
        INTS,
        """\
def f(a, b):
    acc = []
    if a < b:
        acc.append(a)
    return len(acc)
""",
        """\
k.py:3:8: error F207: a list has 1 element on one side, 0 on the other
    3 |     if a < b:
      |        ^^^^^
k.py:3:8: note: the branch
    3 |     if a < b:
      |        ^^^^^
hint: its length must be known while compiling: append on both sides, or select the value to append""",
    ),
    "F207-attribute": (
        INTS,
        """\
class Box: pass
def f(a, b):
    s = Box()
    if a < b:
        s.v = a
    return a
""",
        """\
k.py:4:8: error F207: a Box has other attributes on one side than on the other: v
    4 |     if a < b:
      |        ^^^^^
k.py:4:8: note: the branch
    4 |     if a < b:
      |        ^^^^^""",
    ),
    "F208": (
        INTS,
        """\
def f(a, b):
    x = None
    if a < b:
        x = a
    return x
""",
        """\
k.py:5:12: error F208: 'x' differs after this branch: it is Int32 or None
    5 |     return x
      |            ^
k.py:3:8: note: the branch
    3 |     if a < b:
      |        ^^^^^""",
    ),
    "F208-return": (
        INTS,
        """\
def f(a, b):
    if a < b:
        return a
""",
        """\
k.py:3:16: error F208: the returned value differs after this branch: it is Int32 or None
    3 |         return a
      |                ^
k.py:2:8: note: the branch
    2 |     if a < b:
      |        ^^^^^""",
    ),
    "F209": (
        INTS,
        """\
def f(a, b):
    if a < b:
        x = 'left'
    else:
        x = 'right'
    return x
""",
        """\
k.py:6:12: error F209: 'x' differs after this branch: it is 'left' or 'right'
    6 |     return x
      |            ^
k.py:2:8: note: the branch
    2 |     if a < b:
      |        ^^^^^""",
    ),
    "F209-list": (
        INTS,
        """\
def f(a, b):
    xs, ys = [a], [b]
    zs = xs if a < b else ys
    return zs[0]
""",
        """\
k.py:3:10: error F209: it is one list or another, one of which was there before the branch
    3 |     zs = xs if a < b else ys
      |          ^^^^^^^^^^^^^^^^^^^
hint: change it in place, or copy it on both sides""",
    ),
    "F210": (
        INTS,
        """\
def f(a, b):
    if a == 0:
        only = b
    return only
""",
        """\
k.py:4:12: error F210: 'only' is set only where `a == 0` is true (line 2)
    4 |     return only
      |            ^^^^
k.py:2:8: note: the branch
    2 |     if a == 0:
      |        ^^^^^^
hint: give 'only' a value before line 2""",
    ),
    "F210-loop": (
        INTS,
        """\
def f(a, b):
    for i in range(a):
        last = i * b
    return last
""",
        """\
k.py:4:12: error F210: 'last' is set only in a loop that may make no turn (line 2)
    4 |     return last
      |            ^^^^
k.py:2:14: note: the loop
    2 |     for i in range(a):
      |              ^^^^^^^^
hint: give 'last' a value before line 2""",
    ),
    "F210-break": (
        INTS,
        """\
def f(a, b):
    s = 0
    for i in range(3):
        if i == a:
            break
        t = i
    return t
""",
        """\
k.py:7:12: error F210: 't' is set only in a loop that may make no turn (line 3)
    7 |     return t
      |            ^
k.py:3:14: note: the loop
    3 |     for i in range(3):
      |              ^^^^^^^^
hint: give 't' a value before line 3""",
    ),
    "F220": (
        INTS,
        """\
def f(a, b):
    x = (a, b)
    for i in range(b):
        x = (x[0], x[1], i)
    return x
""",
        """\
k.py:4:14: error F220: 'x' changes from one turn of this loop to the next: it is a tuple of 2 or a tuple of 3
    4 |         x = (x[0], x[1], i)
      |              ^
k.py:3:14: note: the loop
    3 |     for i in range(b):
      |              ^^^^^^^^""",
    ),
    "F220-place": (
        INTS,
        """\
class Box: pass
def f(a, b):
    s = Box()
    s.v = None
    for i in range(b):
        s.v = a
    return a
""",
        """\
k.py:5:14: error F220: Box.v changes from one turn of this loop to the next: it is Int32 or None
    5 |     for i in range(b):
      |              ^^^^^^^^
k.py:5:14: note: the loop
    5 |     for i in range(b):
      |              ^^^^^^^^""",
    ),
    "F220-list": (
        INTS,
        """\
def f(a, b):
    xs = [a]
    for i in range(b):
        xs = [xs[0] + i]
    return xs[0]
""",
        """\
k.py:4:15: error F220: 'xs' changes from one turn of this loop to the next: it is another list after a turn
    4 |         xs = [xs[0] + i]
      |               ^^
k.py:3:14: note: the loop
    3 |     for i in range(b):
      |              ^^^^^^^^
hint: change it in place""",
    ),
    "F207-loop": (
        INTS,
        """\
def f(a, b):
    xs = [a]
    for i in range(b):
        xs.append(i)
    return a
""",
        """\
k.py:3:14: error F207: a list has 1 element at the head of a turn, 2 at its end
    3 |     for i in range(b):
      |              ^^^^^^^^
k.py:3:14: note: the loop
    3 |     for i in range(b):
      |              ^^^^^^^^
hint: its length must be known while compiling: append on both sides, or select the value to append""",
    ),
    "F222": (
        INTS,
        """\
def f(a, b):
    for i in range(a):
        b += i
    return i
""",
        """\
k.py:4:12: error F222: 'i' is the variable of a loop of run time (line 2): it has no value after it
    4 |     return i
      |            ^
k.py:2:14: note: the loop
    2 |     for i in range(a):
      |              ^^^^^^^^
hint: copy it to another name inside the loop""",
    ),
    "F223": (
        INTS,
        """\
def f(a, b):
    for i in range(a, b, 0):
        b += i
    return b
""",
        """\
k.py:2:14: error F223: the step of a range is 0
    2 |     for i in range(a, b, 0):
      |              ^^^^^^^^^^^^^^
k.py:2:14: note: the loop
    2 |     for i in range(a, b, 0):
      |              ^^^^^^^^^^^^^^""",
    ),
    "F224": (
        FLOATS,
        """\
def f(a, b):
    for i in range(b):
        a += i
    return a
""",
        """\
k.py:2:14: error F224: a bound of a range is no integer: 'a1', a Float32
    2 |     for i in range(b):
      |              ^^^^^^^^
k.py:2:14: note: the loop
    2 |     for i in range(b):
      |              ^^^^^^^^""",
    ),
    "F141": (
        INTS,
        """\
def f(a, b):
    xs = (1,) * 5000
    for i in range(5000):
        a += xs[i]
    return a
""",
        """\
k.py:3:14: error F141: this loop of 5000 turns cannot be one loop of run time: \
the value of 'i', an Int32 is known only when the kernel runs
    3 |     for i in range(5000):
      |              ^^^^^^^^^^^
k.py:4:14: note: here
    4 |         a += xs[i]
      |              ^^^^^
hint: at most 4096 turns are walked while compiling""",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_whole_text(name: str) -> None:
    kinds, source, text = CASES[name]
    assert refusal(source, kinds) == text
    assert f"error {name[:4]}: " in text


def test_changed_file(tmp_path: Path) -> None:
    path = tmp_path / "changed.py"
    path.write_text("def f(a):\n    return a + 1\n")
    names: dict[str, Any] = {"__name__": "changed"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    path.write_text("def f(a):\n    return a + 2\n")
    with pytest.raises(CuteError) as error:
        converted(names["f"])
    assert str(error.value) == (
        f"{path}:1:1: error F101: the source of 'f' is not what Python runs: {path} changed since it was imported\n"
        "    1 | def f(a):\n      | ^\nhint: start Python again, or reload the module"
    )


def test_no_source() -> None:
    """A function without source runs as it is; a run-time condition in it is refused."""
    names: dict[str, Any] = {"__name__": "k"}
    exec("def f(a):\n    return 1 if a > 2 else a + 3", names)
    assert converted(names["f"]) is names["f"]
    with pytest.raises(CuteError) as error:
        Traced(names["f"], [Int32])
    assert "error F143: the truth of this Boolean is known only when the kernel runs" in str(error.value)
    assert "note: 'f' was not converted: it has no source (F102)" in str(error.value)


def test_a_value_that_leaks_is_refused() -> None:
    """Snapshots do not see attributes of modules."""
    source = """\
def f(a, b):
    if a < b:
        hidden.kept = a + b
    return hidden.kept + 1
"""
    assert (
        refusal(source, hidden=ModuleType("hidden"))
        == """\
k.py:4:12: error F211: a value of type i32 is used outside of the branch or loop that computes it
    4 |     return hidden.kept + 1
      |            ^
k.py:3:23: note: it is computed here
    3 |         hidden.kept = a + b
      |                       ^
hint: it was kept in something that the branch does not see: pass that as an argument, or return the value"""
    )


def test_an_array_is_no_place() -> None:
    source = """\
def f(a, b):
    if a < b:
        table[0] = 5
    return table[0]
"""
    assert (
        refusal(source, table=np.zeros(3))
        == """\
k.py:2:8: error F209: an array of numpy is changed in a branch or loop of run time
    2 |     if a < b:
      |        ^^^^^
hint: keep what changes in a list, or in a tensor of registers"""
    )


def test_a_number_of_run_time_is_no_element_of_a_set() -> None:
    def f(a: int, b: int) -> int:
        return len({a, b})

    def g(a: int, b: int) -> int:
        return {a: 1}[a] + b

    for function in (f, g):
        with pytest.raises(StaticError, match="F147"):
            Traced(function, [Int32, Int32])
