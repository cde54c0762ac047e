"""The next call retraces after a traced function, method or object was replaced, edited or reloaded."""

import functools
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute

SOURCE = """
import functools
import cute_dialect.lang as cute

N = 1

def helper(x):
    return x + N

def other(x):
    return x + 500

def with_default(x, by=1, *, more=0):
    return x + by + more

def outer(x):
    return helper(x)

def wraps(f):
    @functools.wraps(f)
    def inner(x):
        return f(x)
    return inner

wrapped = wraps(helper)
bound = functools.partial(with_default, by=1)
TABLE = {"add": helper}
PAIR = (helper, other)

class Adder:
    def add(self, x):
        return x + 1

    @staticmethod
    def static(x):
        return x + 1

    @classmethod
    def of_class(cls, x):
        return x + 1

    @property
    def one(self):
        return 1

    def __call__(self, x):
        return x + 1

adder = Adder()

@cute.kernel
def kernel(o):
    o[0] = helper(o[1])
"""


@pytest.fixture
def lib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"stale_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(SOURCE)
    yield importlib.import_module(name)
    del sys.modules[name]


def calls(read: Callable[[Any], Any]) -> Callable[[], float]:
    """Return a function that launches the kernel ``o[0] = read(o[1])`` with ``o[1] == 10`` and returns ``o[0]``."""

    @cute.kernel
    def kernel(o: cute.Tensor):
        o[0] = read(o[1])

    @cute.jit
    def run(o: cute.Tensor):
        kernel(o).launch(grid=1, block=1)

    def call() -> float:
        o = np.array([0, 10], np.float32)
        run(o, device="cpu")
        return float(o[0])

    call.run = run  # pyright: ignore[reportFunctionMemberAccess]
    return call


READS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "name": lambda m: lambda x: m.helper(x),
    "through another": lambda m: lambda x: m.outer(x),
    "decorated": lambda m: lambda x: m.wrapped(x),
    "in a dict": lambda m: lambda x: m.TABLE["add"](x),
    "in a tuple": lambda m: lambda x: m.PAIR[0](x),
    "in an object": lambda m: (lambda ns: lambda x: ns.f(x))(SimpleNamespace(f=m.helper)),
}


@pytest.mark.parametrize("how", READS)
def test_the_code_of_a_function_is_replaced(lib: Any, how: str):
    call = calls(READS[how](lib))
    assert call() == call() == 11
    lib.helper.__code__ = lib.other.__code__
    assert call() == call() == 510


def test_replaced_globals_of_a_helper_are_noticed(lib: Any):
    call = calls(lambda x: lib.outer(x))
    assert call() == 11
    lib.N = 2
    assert call() == 12
    lib.helper = lambda x: x + 1000
    assert call() == 1010
    lib.helper = lib.other
    assert call() == 510


def test_a_module_is_edited_and_reloaded(lib: Any):
    call = calls(lambda x: lib.helper(x))
    assert call() == 11
    path = Path(lib.__file__)
    path.write_text(path.read_text().replace("x + N", "x + 70"))
    importlib.reload(lib)
    assert call() == 80


def test_a_kernel_in_a_module_is_reloaded(lib: Any):
    @cute.jit
    def run(o: cute.Tensor):
        lib.kernel(o).launch(grid=1, block=1)

    o = np.array([0, 10], np.float32)
    run(o, device="cpu")
    assert o[0] == 11
    path = Path(lib.__file__)
    path.write_text(path.read_text().replace("o[0] = helper(o[1])", "o[0] = helper(o[1]) * 2"))
    importlib.reload(lib)
    run(o, device="cpu")
    assert o[0] == 22


def test_a_container_gets_another_function(lib: Any):
    call = calls(lambda x: lib.TABLE["add"](x) + lib.PAIR[0](x))
    assert call() == 22
    lib.TABLE["add"] = lib.other
    assert call() == 521
    lib.PAIR = (lib.other,)
    assert call() == 1020


def test_defaults_are_replaced(lib: Any):
    call = calls(lambda x: lib.with_default(x))
    assert call() == 11
    lib.with_default.__defaults__ = (5,)
    assert call() == 15
    lib.with_default.__kwdefaults__["more"] = 10
    assert call() == 25
    lib.with_default.__kwdefaults__ = {"more": 20}
    assert call() == 35


def test_changed_partials_are_recompiled(lib: Any):
    call = calls(lambda x: lib.bound(x))
    assert call() == 11
    lib.with_default.__code__ = (lambda x, by=1, *, more=0: x + 300).__code__
    assert call() == 310
    lib.bound = functools.partial(lib.with_default, 3)
    lib.with_default.__code__ = (lambda x, by=1, *, more=0: x * by).__code__
    assert call() == 30


def test_a_variable_of_a_closure_holds_another_function(lib: Any):
    f = lib.helper
    call = calls(lambda x: f(x))
    assert call() == 11
    f = lib.other
    assert call() == 510


METHODS: dict[str, tuple[Callable[[Any], Callable[[Any], Any]], Callable[[Any], object]]] = {
    "add": (lambda m: lambda x: m.adder.add(x), lambda m: lambda self, x: x + 2),
    "static": (lambda m: lambda x: m.Adder.static(x), lambda m: staticmethod(lambda x: x + 2)),
    "of_class": (lambda m: lambda x: m.Adder.of_class(x), lambda m: classmethod(lambda cls, x: x + 2)),
    "one": (lambda m: lambda x: x + m.adder.one, lambda m: property(lambda self: 2)),
    "__call__": (lambda m: lambda x: m.adder(x), lambda m: lambda self, x: x + 2),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_replaced(lib: Any, name: str):
    read, other = METHODS[name]
    call = calls(read(lib))
    assert call() == call() == 11
    setattr(lib.Adder, name, other(lib))
    assert call() == 12


@pytest.mark.parametrize("name", METHODS)
def test_the_code_of_a_method_is_replaced(lib: Any, name: str):
    read, other = METHODS[name]
    call = calls(read(lib))
    assert call() == 11

    def function(x: Any) -> types.FunctionType:
        return x.fget if isinstance(x, property) else getattr(x, "__func__", x)

    function(vars(lib.Adder)[name]).__code__ = function(other(lib)).__code__
    assert call() == 12


def test_the_code_of_a_host_function_and_of_its_kernel_is_replaced():
    call = calls(lambda x: x + 1)
    assert call() == 11
    run: Any = call.run  # pyright: ignore[reportFunctionMemberAccess]
    again = calls(lambda x: x + 5).run  # pyright: ignore[reportFunctionMemberAccess]
    run.function.__closure__[0].cell_contents = again.function.__closure__[0].cell_contents
    assert call() == 15


def test_the_code_of_a_function_that_is_an_argument_is_replaced(lib: Any):
    @cute.kernel
    def kernel(o: cute.Tensor, f: cute.Constexpr):
        o[0] = f(o[1])

    @cute.jit
    def run(o: cute.Tensor, f: cute.Constexpr):
        kernel(o, f).launch(grid=1, block=1)

    o = np.array([0, 10], np.float32)
    run(o, lib.helper, device="cpu")
    assert o[0] == 11
    lib.helper.__code__ = lib.other.__code__
    run(o, lib.helper, device="cpu")
    assert o[0] == 510


def test_an_attribute_of_a_function_is_replaced(lib: Any):
    lib.helper.scale = 2
    call = calls(lambda x: x * lib.helper.scale)
    assert call() == 20
    lib.helper.scale = 3
    assert call() == 30


def test_ahead_of_time_functions_are_not_recompiled(lib: Any):
    call = calls(lambda x: lib.helper(x))
    o = np.array([0, 10], np.float32)
    run: Any = call.run  # pyright: ignore[reportFunctionMemberAccess]
    fixed = cute.compile(run, o)
    lib.helper = lib.other
    fixed(o, device="cpu")
    assert o[0] == 11
    cute.compile(run, o)(o, device="cpu")
    assert o[0] == 510


def test_unchanged_functions_are_not_recompiled(lib: Any):
    call = calls(lambda x: lib.outer(x) + lib.adder.add(x) + lib.TABLE["add"](x) + lib.with_default(x))
    call()
    run: Any = call.run  # pyright: ignore[reportFunctionMemberAccess]
    assert [call(), call()] == [44, 44] and run.cache_info().misses == 1
