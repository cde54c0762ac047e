"""Globals, lists, dicts, arrays and objects that a kernel reads may change between calls."""

import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute

SCALE = 7
TABLE = [7]


class Config:
    """Attributes of a class that kernels read."""

    scale = 7


@dataclass
class Settings:
    """Attributes of an object that kernels read."""

    scale: int = 7


def launched(value: Any) -> Any:
    """Return a function that evaluates ``value()`` in a kernel and returns the result."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        out[cute.arch.thread_idx().x] = value()

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=1, block=4)

    def call() -> int:
        out = np.zeros(4, np.int32)
        run(out, device="cpu")
        assert (out == out[0]).all()
        return int(out[0])

    call.kinds = run.kinds  # pyright: ignore[reportFunctionMemberAccess]
    return call


def test_a_variable_of_an_enclosing_function_that_changes():
    scale = 7
    call = launched(lambda: scale)
    assert call() == 7
    scale = 9
    assert call() == 9


@pytest.mark.parametrize("what", ["list", "dict", "array", "object", "class", "nested"])
def test_changed_attributes_recompile(what: str):
    settings, table, names, array = Settings(), [7], {"scale": 7}, np.array([7])
    nested = [{"a": (Settings(),)}]

    class Local:
        scale = 7

    def change() -> None:
        settings.scale = table[0] = names["scale"] = array[0] = Local.scale = nested[0]["a"][0].scale = 9

    values = {
        "list": lambda: table[0],
        "dict": lambda: names["scale"],
        "array": lambda: int(array[0]),
        "object": lambda: settings.scale,
        "class": lambda: Local.scale,
        "nested": lambda: nested[0]["a"][0].scale,
    }
    call = launched(values[what])
    assert call() == call() == 7
    change()
    assert call() == 9


def test_globals_that_change(monkeypatch: pytest.MonkeyPatch):
    call = launched(lambda: SCALE + 10 * TABLE[0] + 100 * Config.scale)
    assert call() == 777
    monkeypatch.setitem(globals(), "SCALE", 1)
    assert call() == 771
    table = [7]
    monkeypatch.setitem(globals(), "TABLE", table)
    assert call() == 771
    table[0] = 2
    assert call() == 721
    monkeypatch.setitem(globals(), "TABLE", [3])
    assert call() == 731
    monkeypatch.setattr(Config, "scale", 4)
    assert call() == 431


def test_a_global_that_a_method_of_a_constant_reads(monkeypatch: pytest.MonkeyPatch):
    class Runs:
        @cute.kernel
        def kernel(self, out: cute.Tensor):
            out[cute.arch.thread_idx().x] = SCALE

        @cute.jit
        def __call__(self, out: cute.Tensor):
            self.kernel(out).launch(grid=1, block=4)

    run, out = Runs(), np.zeros(4, np.int32)
    run(out, device="cpu")
    assert out[0] == 7
    monkeypatch.setitem(globals(), "SCALE", 8)
    run(out, device="cpu")
    assert out[0] == 8


def test_unchanged_objects_do_not_recompile():
    loop: list[Any] = [7]
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    loop.append(deep)
    thing = SimpleNamespace(lock=threading.Lock(), me=loop)
    call = launched(lambda: loop[0] + (0 if thing.me else 1))
    assert call() == 7
    first = list(call.kinds())
    assert call() == 7
    assert [a is b for a, b in zip(call.kinds(), first, strict=True)] == [True]


def test_changes_by_the_trace_do_not_recompile():
    seen: list[str] = []

    @cute.jit
    def run(n: cute.Constexpr[int]) -> None:
        seen.append(f"traced {n}")

    for _ in range(2):
        run(1)
        run(2)
    assert seen == ["traced 1", "traced 2"]
