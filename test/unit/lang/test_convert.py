"""Source conversion preserves the behavior of functions without run-time values, and their metadata."""

from __future__ import annotations

import contextlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cute_dialect.lang.control.runtime import converted
from cute_dialect.lang.rewrite.convert import is_converted
from cute_dialect.lang.rewrite.source import native


def jumps(n: int) -> list[Any]:
    """Execute every kind of jump."""
    out: list[Any] = []
    for i in range(n):
        if i == 1:
            continue
        for j in range(3):
            if j > i:
                break
            out.append((i, j))
        else:
            out.append("done")
        while i:
            i -= 1
            if i == 2:
                break
        else:
            out.append("ended")
        if len(out) > 12:
            return out
    return [*out, None]


def excepts(n: int) -> list[Any]:
    out: list[Any] = []
    for i in range(n):
        try:
            if i == 1:
                raise ValueError(i)
            if i == 2:
                continue
            if i == 4:
                return [*out, "returned"]
            out.append(10 // (3 - i))
        except ZeroDivisionError:
            out.append("zero")
        except ValueError as e:
            out.append(e.args)
        else:
            out.append("else")
        finally:
            out.append("finally")
    return out


def matches(x: Any) -> Any:
    match x:
        case 0 | 1:
            return "small"
        case int() if x < 0:
            return "negative"
        case (a, b):
            return a + b
        case {"key": value, **rest}:
            return value, rest
        case str() as text:
            return text.upper()
        case None:
            return "none"
        case _:
            return "other"


def matched_values(x: Any) -> Any:
    match x:
        case 1 | 2:
            y = "a"
        case 3 if x > 5:
            y = "b"
        case None:
            y = "none"
        case other:
            y = other
    return y


def expressions(a: int, b: int) -> list[Any]:
    calls: list[int] = []

    def told(x: int) -> int:
        calls.append(x)
        return x

    out: list[Any] = [
        told(1) < told(2) < told(a) < told(b), told(0) and told(5), told(0) or told(6), not a, a if b else -a,
        a in (1, 2), [x * y for x in range(3) if x for y in range(2) if y], {k: v for k, v in zip("ab", (a, b))},
        (lambda q=a: q + b)(), f"{a!r:>4}|{b:02d}|{'x'}", *range(2), (n := a + 1) and n > 1 and (m := n * 2) > 3 and m,
    ]  # fmt: skip
    return [out, calls]


def unbound(a: int) -> int:
    if a > 3:
        x = 1
    return x  # pyright: ignore


class Counter:
    """A class with private names, ``super``, properties and slots."""

    __limit = 3

    def __init__(self) -> None:
        self.__count = 0

    def step(self) -> int:
        if self.__count < self.__limit:
            self.__count += 1
        return self.__count

    @property
    def count(self) -> int:
        return self.__count


class Twice(Counter):
    def step(self) -> int:
        super().step()
        return super().step()


def objects(n: int) -> list[int]:
    counter = Twice()
    return [counter.step() for _ in range(n)] + [counter.count]


def generator(n: int) -> Iterator[int]:
    for i in range(n):
        if i % 2:
            yield i
        elif i > 4:
            return
    yield -1


def generated(n: int) -> list[int]:
    return [*generator(n), *(x for x in generator(3))]


def closures(n: int) -> list[int]:
    total = 0

    def add(x: int) -> int:
        nonlocal total
        if x > 1:
            total += x
        return total

    return [add(i) for i in range(n)] + [total]


def managers(n: int) -> list[str]:
    out: list[str] = []

    @contextlib.contextmanager
    def noted(text: str) -> Iterator[str]:
        out.append("+" + text)
        try:
            yield text
        finally:
            out.append("-" + text)

    for i in range(n):
        with noted("a") as a, noted("b"):
            if i == 1:
                break
            out.append(a)
    return out


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (jumps, (0,)), (jumps, (3,)), (jumps, (9,)), (excepts, (3,)), (excepts, (9,)), (expressions, (3, 0)),
    (expressions, (3, 7)), (unbound, (5,)), (unbound, (1,)), (objects, (4,)), (generated, (9,)), (closures, (4,)),
    (managers, (3,)), *((matches, (x,)) for x in (0, -4, (1, 2), {"key": 1, "b": 2}, "text", None, 7.5)),
    *((matched_values, (x,)) for x in (1, 2, 3, None, "z")),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args"), CASES, ids=lambda x: getattr(x, "__name__", None))
def test_converted_functions_behave_the_same(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    def outcome(g: Callable[..., Any]) -> Any:
        try:
            return g(*args)
        except Exception as e:
            return type(e), str(e)

    assert outcome(converted(f)) == outcome(f)


def test_converted_functions_keep_python_metadata() -> None:
    made = converted(jumps)
    assert (made.__name__, made.__qualname__, made.__doc__) == (jumps.__name__, jumps.__qualname__, jumps.__doc__)
    assert made.__globals__ is jumps.__globals__ and made.__module__ == jumps.__module__
    assert inspect.signature(made) == inspect.signature(jumps)
    assert converted(made) is made and is_converted(made.__code__)
    assert converted(jumps).__code__ is made.__code__


def test_native() -> None:
    @native
    def table(n: int) -> int:
        return n

    assert converted(table) is table


def failing(n: int) -> float:
    total = 0.0
    for i in range(n):
        if i >= 0:
            total += 1 / (2 - i)
    return total


def test_tracebacks_show_the_lines_of_the_user() -> None:
    def lines(f: Callable[..., Any]) -> list[tuple[int, str, Any, Any]]:
        with pytest.raises(ZeroDivisionError) as error:
            f(4)
        frames = traceback.extract_tb(error.value.__traceback__)
        return [(s.lineno or 0, s.name, s.colno, s.end_colno) for s in frames if s.filename == __file__][1:]

    assert lines(converted(failing)) == lines(failing)


def test_private_methods_and_defaults() -> None:
    def f(a: int, *rest: int, b: int = 2, **more: int) -> tuple[int, ...]:
        return (a, *rest, b, *more.values()) if a else ()

    made = converted(f)
    assert made(1, 5, c=7) == (1, 5, 2, 7)
    assert made(0) == ()


def test_long_chain_of_elif() -> None:
    text = "def f(x):\n    if x == 0:\n        return 0\n" + "".join(
        f"    elif x == {k}:\n        return {k * k}\n" for k in range(1, 40)
    )
    import linecache

    linecache.cache["chain.py"] = (len(text), None, text.splitlines(True), "chain.py")
    names: dict[str, Any] = {"__name__": "chain"}
    exec(compile(text, "chain.py", "exec", dont_inherit=True), names)
    assert [converted(names["f"])(k) for k in (0, 1, 39, 40)] == [0, 1, 1521, None]


assert sys.version_info >= (3, 11)
