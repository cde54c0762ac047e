"""``cute.testing``: timing, tuning and checking of kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang import testing
from cute_dialect.lang.calls import autotune
from cute_dialect.lang.testing import (
    CantImplementError,
    JitArguments,
    assert_equivalent,
    benchmark,
    check,
    get_workspace_count,
    tune,
)


@cute.kernel
def double_kernel(x, y):
    i = cute.arch.thread_idx().x
    y[i] = x[i] * 2


@cute.jit
def double(x, y):
    double_kernel(x, y).launch(grid=1, block=32)


@cute.kernel
def racy_kernel(x, y):
    i = cute.arch.thread_idx().x
    y[0] = x[i]


@cute.jit
def racy(x, y):
    racy_kernel(x, y).launch(grid=1, block=32)


@pytest.fixture(autouse=True)
def on_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(32, dtype=np.float32), np.zeros(32, np.float32)


def test_benchmark_cycles_through_workspaces() -> None:
    seen: list[int] = []
    numbers = iter(range(9))
    us = benchmark(
        lambda i, more: seen.append(i + more), workspace_generator=lambda: JitArguments(next(numbers), more=10),
        workspace_count=3, warmup_iterations=2, iterations=5,
    )  # fmt: skip
    assert seen == [10, 11, 12, 10, 11, 12, 10] and us >= 0


def test_a_kernel_is_timed() -> None:
    x, y = arrays()
    assert benchmark(double, kernel_arguments=JitArguments(x, y), warmup_iterations=1, iterations=3) > 0
    np.testing.assert_array_equal(y, 2 * x)


def test_benchmark_rejects_invalid_arguments() -> None:
    with pytest.raises(ValueError, match="iterations and workspace_count must be at least 1"):
        benchmark(print, iterations=0)
    with pytest.raises(ValueError, match="pass either kernel_arguments"):
        benchmark(print, kernel_arguments=JitArguments(), workspace_generator=JitArguments)
    with pytest.raises(TypeError, match="must return JitArguments, got int"):
        benchmark(print, workspace_generator=lambda: 3)  # type: ignore


def test_workspaces() -> None:
    assert get_workspace_count(0, 1, 1) == 1 and get_workspace_count(1 << 30, 0, 1) == 1


def test_tune_returns_the_fastest() -> None:
    import time

    def make(x: int, *, wait: float, fails: bool):
        if fails:
            raise CantImplementError
        return lambda: time.sleep(wait * x)

    found = tune(make, {"wait": [0.02, 0.001], "fails": [True, False]}, JitArguments(1), iterations=2)
    assert found == {"wait": 0.001, "fails": False}
    with pytest.raises(CantImplementError, match="tune: no combination"):
        tune(make, {"wait": [1], "fails": [True]}, JitArguments(1))
    with pytest.raises(TypeError, match="func must return a function without arguments, got int"):
        tune(lambda n: n, {"n": [1]})


def test_tune_skips_failing_candidates_with_a_warning() -> None:
    def make(n: int) -> Callable[[], None]:
        if n == 1:
            raise ValueError("1 is too small")
        return lambda: None

    with pytest.warns(RuntimeWarning, match=r"tune: \{'n': 1\} is skipped: ValueError: 1 is too small"):
        assert tune(make, {"n": [1, 2]}, iterations=1) == {"n": 2}
    with pytest.warns(RuntimeWarning), pytest.raises(CantImplementError, match="tune: no combination"):
        tune(make, {"n": [1]})


def test_check_compares_and_finds_races() -> None:
    x, y = arrays()
    check(double, (x, y), {"y": 2 * x})
    check(double, (x, y), (None, 2 * x))

    def reference(a: np.ndarray, b: np.ndarray) -> None:
        b[:] = 2 * a

    check(double, (x, y), reference)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check(double, (x, y), {"y": x})
    with pytest.raises(ValueError, match="no parameter 'z'"):
        check(double, (x, y), {"z": x})
    with pytest.raises(Exception, match="threads of one warp store different values"):
        check(racy, (x, y))


WRONG_REFERENCES: list[tuple[object, str]] = [
    (3, "check: reference must be a mapping from parameter names to arrays, a tuple of arrays or a function, got 3"),
    (np.ones(2), "check: reference must be a mapping .*, got an array of shape \\(2,\\)"),
    (lambda x: x, "check: reference is called with copies of the 2 arguments: too many positional arguments"),
    ({"y": "a"}, "check: the reference 'y' must hold numbers to be compared, got 'a'"),
    ((None, object()), "check: the reference 'y' must hold numbers to be compared, got <object"),
    ((None, None, 1), "check: got 3 references for 2 arguments"),
]


@pytest.mark.parametrize("reference,message", WRONG_REFERENCES, ids=[text[7:45] for _, text in WRONG_REFERENCES])
def test_check_rejects_wrong_references(reference: Any, message: str) -> None:
    with pytest.raises(cute.UsageError, match=f"^{message}"):
        check(double, arrays(), reference)


def test_check_rejects_arguments_that_are_not_a_tuple() -> None:
    x, y = arrays()
    with pytest.raises(cute.UsageError, match=r"^check: args must be a tuple .*, got an array of shape"):
        check(double, x, y)
    with pytest.raises(cute.UsageError, match=r"^check: f must be a host function, got 3"):
        check(3, (x, y))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_check_rejects_schedules_that_are_not_names() -> None:
    with pytest.raises(cute.UsageError, match=r"^check: schedules must be names .*'round-robin', .*, got 3"):
        check(double, arrays(), schedules=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


EQUIVALENCES: dict[str, Callable[[], object]] = {
    "f and reference must be functions": lambda: assert_equivalent(double, 3, [arrays()]),  # type: ignore
    "problems must be a list with the arguments of each call": lambda: assert_equivalent(double, double, arrays()),
    'field and runs must be "auto" or positive integers, got auto, 0': (
        lambda: assert_equivalent(double, double, [arrays()], runs=0)
    ),
    "a problem must have the arguments x, y; got 1": lambda: assert_equivalent(double, double, [arrays()[:1]]),
    "a problem has no numpy array": lambda: assert_equivalent(double, double, [(1, 2)]),
    "fixed names 'z', which is not an array; arrays: x, y": (
        lambda: assert_equivalent(double, double, [arrays()], fixed=["z"])
    ),
}


@pytest.mark.parametrize("message", EQUIVALENCES)
def test_assert_equivalent_rejects_wrong_arguments(message: str) -> None:
    with pytest.raises(cute.UsageError, match=f"^assert_equivalent: {re.escape(message)}"):
        EQUIVALENCES[message]()


def test_prefixes_of_names() -> None:
    @cute.kernel
    def body(x):
        x[cute.arch.thread_idx().x] = 1.0

    @cute.jit
    def host(x):
        body(x).launch(grid=1, block=32)

    body.set_name_prefix("mine")
    assert body.name == "mine_body"
    x = np.zeros(32, np.float32)
    assert "gpu.func @mine_body" in cute.compile(host, x).mlir("trace")
    with pytest.raises(ValueError, match="prefix must be an identifier"):
        body.set_name_prefix("a b")


@pytest.mark.parametrize("to", [np.float16, np.float64, np.int32, np.int8])
def test_convert(to: type) -> None:
    x = np.random.default_rng(0).integers(-100, 100, (7, 50)).astype(np.float32)
    y = np.zeros((50, 7), to).T
    testing.convert(x, y, device="cpu")
    assert (y == x.astype(to)).all()


def test_convert_rejects_mismatched_shapes() -> None:
    x, y = np.zeros((3, 4), np.float32), np.zeros((4, 3), np.float32)
    with pytest.raises(ValueError, match=r"src and dst must have the same shape, got \(3, 4\) and \(4, 3\)"):
        testing.convert(cute.from_dlpack(x), cute.from_dlpack(y), device="cpu")


RUNS: list[tuple[int, int]] = []


@testing.autotune_jit(params_dict={"wait": [3, 1, 2]}, update_on_change=["n"], warmup_iterations=0, iterations=1)
@cute.jit
def slow(x: cute.Tensor, n: cute.Constexpr, wait: cute.Constexpr = 0):
    """Take longer for larger values of ``wait``; one value fails."""
    if wait == 2:
        raise testing.CantImplementError("two is odd here")
    note(n, wait)
    wait_kernel(x, wait).launch(grid=1, block=1)


@cute.kernel
def wait_kernel(x: cute.Tensor, wait: cute.Constexpr):
    for i in range(5000 * (wait - 1) + 1):
        x[0] = x[0] + i % 2
    x[1] = wait


@cute.native
def note(n: int, wait: int) -> None:
    RUNS.append((n, wait))


@pytest.mark.slow
def test_parameters_are_chosen_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def clock(run: Any, count: int) -> list[float]:
        run()
        return [float(run.keywords["wait"])] * count

    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    monkeypatch.setattr(autotune, "HostClock", lambda: clock)
    x = np.zeros(2, np.float32)
    slow(x, 5)
    assert slow.best(x, 5) == {"wait": 1} and x[1] == 1 and {w for _, w in RUNS} == {3, 1}
    count = len(RUNS)
    slow(x, 5)
    assert len(RUNS) == count  # Both specializations are cached, so nothing is timed again.
    slow(x, 6)
    assert slow.best(x, 6) == {"wait": 1} and {n for n, _ in RUNS} == {5, 6}
    slow(x, 5, wait=3)
    assert x[1] == 3
    with pytest.raises(ValueError, match="the function has no parameter 'none'; parameters: x, n, wait"):
        testing.autotune_jit({"none": [1]})(slow.function)


@pytest.mark.parametrize("function", [testing.prove, lambda f, x: testing.recheck(f, x, "x.cert")])
def test_a_compiled_function_is_refused_at_the_users_line(function: Callable[..., object]) -> None:
    x = np.zeros(4, np.float32)
    f = cute.compile(testing.convert, x, x.copy(), device="cpu")
    with pytest.raises(cute.CompileError, match=r"pass the @cute.jit function, not the compiled one") as caught:
        function(f, (x, x))
    assert caught.value.place is not None and caught.value.place.file == __file__ and not caught.value.calls
