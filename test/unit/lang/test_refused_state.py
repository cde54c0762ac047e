"""Changes in run-time branches and loops of state that can be neither restored nor merged: each is an error."""

from __future__ import annotations

import array
import contextvars
import ctypes
import io
import logging
import random
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from traced import Traced

from cute_dialect.errors import CuteError
from cute_dialect.lang.values.dtypes import Int32

made_module: Any = types.ModuleType("made_module")


class One:
    n = 1


class Two:
    n = 2


class Derived(One):
    pass


def scaled(x: int, by: int = 1) -> int:
    return x * by


class SlottedSet(set[int]):
    __slots__ = ("x",)


class Buffer(io.BytesIO):
    pass


class Matrix(np.ndarray):
    pass


def matrix() -> Any:
    return np.zeros(2).view(np.matrix)


def masked() -> Any:
    return np.ma.zeros(2)


def own_array() -> Any:
    return np.zeros(2).view(Matrix)


def times() -> Any:
    return np.zeros(2, "M8[s]")


def context_variable() -> Any:
    return contextvars.ContextVar("hidden", default=1)


def slotted_set() -> Any:
    made = SlottedSet()
    made.x = 1
    return made


def put_first(x: Any) -> None:
    x[0] = 5


def mask_first(x: Any) -> None:
    x[0] = np.ma.masked


def draw(x: Any) -> None:
    x.random()


def put_corner(x: Any) -> None:
    x[0, 0] = 5


def reshape(x: Any) -> None:
    x.shape = (2, 1)


def put_time(x: Any) -> None:
    x[0] = np.datetime64(5, "s")


def set_variable(x: Any) -> None:
    x.set(5)


def set_slot(x: Any) -> None:
    x.x = 5


def set_class(x: Any) -> None:
    x.__class__ = Two


def set_bases(x: Any) -> None:
    x.__bases__ = (Two,)


def set_defaults(x: Any) -> None:
    x.__defaults__ = (2,)


def write(x: Any) -> None:
    x.write(b"ab")


CHANGES: list[tuple[Callable[[], Any], Callable[[Any], None], str]] = [
    (lambda: np.zeros(2), put_first, "a NumPy array"),
    (lambda: np.zeros(2), reshape, "a NumPy array"),
    (matrix, put_corner, "a NumPy array"),
    (masked, put_first, "a NumPy array"),
    (masked, mask_first, "a NumPy array"),
    (own_array, put_first, "a NumPy array"),
    (times, put_time, "a NumPy array"),
    (lambda: np.zeros(1 << 16), put_first, "a NumPy array"),
    (lambda: np.zeros((512, 512))[:, ::-1].view(np.matrix), put_corner, "a NumPy array"),
    (lambda: np.ma.zeros(1 << 16), mask_first, "a NumPy array"),
    (lambda: np.zeros(1 << 16, "M8[s]"), put_time, "a NumPy array"),
    (lambda: bytearray(1 << 20), put_first, "an object of type 'bytearray'"),
    (lambda: np.empty(2, dtype=object), put_first, "a NumPy array"),
    (lambda: np.poly1d([1]), set_slot, "an attribute of a 'poly1d' object"),
    (lambda: random.Random(1), draw, "a random generator"),
    (lambda: np.random.default_rng(1), draw, "a random generator"),
    (lambda: np.random.RandomState(1), lambda x: x.rand(), "a random generator"),
    (lambda: np.random.PCG64(1), lambda x: x.random_raw(), "a random generator"),
    (lambda: None, lambda x: random.random(), "a random generator"),
    (lambda: None, lambda x: np.random.random(), "a random generator"),
    (lambda: np.zeros(1 << 14, dtype=object), put_first, "a NumPy array"),
    (lambda: bytearray(b"a"), put_first, "an object of type 'bytearray'"),
    (lambda: array.array("i", [1]), put_first, "an object of type 'array'"),
    (ctypes.c_int * 2, put_first, "an object of type 'c_int_Array_2'"),
    (Buffer, write, "a file in memory"),
    (context_variable, set_variable, "a ContextVar"),
    (slotted_set, set_slot, "an attribute of a 'SlottedSet' object"),
    (One, set_class, "the class of a 'One' object"),
    (lambda: scaled, set_defaults, "the code or the defaults of function 'scaled'"),
    (lambda: Derived, set_bases, "the bases of class 'Derived'"),
]


@pytest.mark.parametrize(("make", "change", "what"), CHANGES, ids=lambda x: getattr(x, "__name__", ""))
def test_changes_are_refused(make: Callable[[], Any], change: Callable[[Any], None], what: str) -> None:
    def f(a: int) -> int:
        x = make()
        if a > 3:
            change(x)
        return a

    def g(a: int) -> int:
        x = make()
        for _ in range(a):
            change(x)
        return a

    for function in (f, g):
        with pytest.raises(CuteError, match=f"F209: {what} .*changed in a run-time branch or loop"):
            Traced(function, [Int32])
        Derived.__bases__, scaled.__defaults__ = (One,), (1,)


def test_a_log_is_no_change(tmp_path: Path) -> None:
    def f(a: int) -> int:
        if a > 3:
            log.warning("large")
            print("large", file=file)
        return a

    log = logging.getLogger("test_a_log_is_no_change")
    with open(tmp_path / "log.txt", "w") as file:
        assert Traced(f, [Int32]).run(4) == 4


@pytest.mark.parametrize("mode", ["r", "rb", "r+"])
def test_files_that_are_read(mode: str, tmp_path: Path) -> None:
    def f(a: int) -> int:
        if a > 3:
            file.read(1)
        return a

    path = tmp_path / "text.txt"
    path.write_text("text")
    with open(path, mode) as file, pytest.raises(CuteError, match="F209: the position in a file"):
        Traced(f, [Int32])


def test_reading_is_no_change() -> None:
    def f(a: int) -> int:
        total = 0
        for x in kept:
            if a > 3:
                total += int(x[0])
        return total

    kept = [np.ones(2), np.ma.ones(2), bytearray(b"a"), array.array("i", [1]), (ctypes.c_int * 2)(7)]
    traced = Traced(f, [Int32])
    assert [traced.run(a) for a in (3, 4)] == [0, 1 + 1 + 97 + 1 + 7]


@pytest.mark.parametrize("name", ["x", "__x", "__x__"])
def test_attributes_of_a_made_module(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "made_module", made_module)
    setattr(made_module, name, 1)

    def change(a: int) -> int:
        if a > 3:
            setattr(made_module, name, 5)
        return a

    def remove(a: int) -> int:
        if a > 3:
            delattr(made_module, name)
        return a

    for function in (change, remove):
        with pytest.raises(CuteError, match=f"F158: the global '{name}' of module 'made_module'"):
            Traced(function, [Int32])


def test_generators_of_modules() -> None:
    library = random

    def of_global(a: int) -> int:
        if a > 3:
            random.random()
        return a

    def of_captured(a: int) -> int:
        if a > 3:
            library.random()
        return a

    def of_loop(a: int) -> int:
        for _ in range(a):
            np.random.rand()
        return a

    for function in (of_global, of_captured, of_loop):
        with pytest.raises(CuteError, match="F209: a random generator is changed"):
            Traced(function, [Int32])


@pytest.mark.slow
def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")

    def put(x: Any) -> None:
        x[0] = 5

    def put_unversioned(x: Any) -> None:
        x.data[0] = 5

    def name(x: Any) -> None:
        x.n = 5

    cases = [
        (torch.ones(2), put, "a torch tensor"),
        (torch.Generator(), lambda x: torch.rand(1, generator=x), "a random generator"),
        (None, lambda x: torch.rand(1), "a random generator"),
        (torch.ones(2), put_unversioned, "a torch tensor"),
        (torch.nn.Linear(1, 1), name, "an attribute of a 'Linear' object"),
    ]
    for x, change, what in cases:

        def f(a: int, x: Any = x, change: Callable[[Any], None] = change) -> int:
            if a > 3:
                change(x)
            return a

        with pytest.raises(CuteError, match=f"F209: {what} is changed"):
            Traced(f, [Int32])
