"""After an epilogue function is edited in place, every cache uses a new kernel."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.epilogue import tracing
from cute_dialect.op.epilogue.tracing import current

FACTOR = 2.0


def plus(x: Any, row: Any, column: Any) -> Any:
    return x + 1.0


def minus(x: Any, row: Any, column: Any) -> Any:
    return x - 1.0


def of_global(x: Any, row: Any, column: Any) -> Any:
    return x * FACTOR


def with_default(x: Any, row: Any, column: Any, by: float = 3.0) -> Any:
    return x * by


def fresh(function: Any) -> Any:
    return type(function)(function.__code__, globals(), function.__name__, function.__defaults__)


def half_integers(*shape: int) -> Any:
    return (np.arange(np.prod(shape)).reshape(shape) % 7 - 3).astype(np.float16)


A, B = half_integers(16, 32), half_integers(32, 24)
EXACT = A.astype(np.float64) @ B.astype(np.float64)


def of_mm(hook: Any) -> Callable[[], Any]:
    return lambda: op.mm(A, B, hook=hook, dtype=np.float32, device="cpu")


def of_bmm(hook: Any) -> Callable[[], Any]:
    return lambda: op.bmm(A[None], B[None], hook=hook, dtype=np.float32, device="cpu")[0]


def of_mm_array(hook: Any) -> Callable[[], Any]:
    return lambda: op.mm_array([A], [B], hook=hook, dtype=np.float32, device="cpu")[0]


def of_a_plan(hook: Any) -> Callable[[], Any]:
    plan = op.Gemm(element=np.float16, element_C=np.float32, element_D=np.float32, layout="row")
    plan.epilogue_visitor = hook
    d = np.zeros((16, 24), np.float32)

    def run() -> Any:
        plan.run(A, B, d, d, device="cpu", beta=0.0)
        return d

    return run


@pytest.mark.slow
@pytest.mark.parametrize("of", [of_mm, of_bmm, of_mm_array, of_a_plan])
def test_replaced_code_of_a_hook(of: Callable[[Any], Callable[[], Any]]):
    hook = fresh(plus)
    call = of(hook)
    assert np.array_equal(call(), EXACT + 1) and np.array_equal(call(), EXACT + 1)
    hook.__code__ = minus.__code__
    assert np.array_equal(call(), EXACT - 1) and np.array_equal(call(), EXACT - 1)
    hook.__code__ = plus.__code__
    assert np.array_equal(call(), EXACT + 1)


@pytest.mark.slow
def test_changed_globals_and_variables_of_a_hook(monkeypatch: pytest.MonkeyPatch):
    call = of_mm(of_global)
    assert np.array_equal(call(), EXACT * 2)
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    assert np.array_equal(call(), EXACT * 4)
    by = 2.0

    def hook(x: Any, row: Any, column: Any) -> Any:
        return x * by

    call = of_mm(hook)
    assert np.array_equal(call(), EXACT * 2)
    by = 8.0
    assert np.array_equal(call(), EXACT * 8)


@pytest.mark.slow
def test_replaced_code_of_an_elementwise_function():
    def double(x: Any) -> Any:
        return x * 2.0

    def triple(x: Any) -> Any:
        return x * 3.0

    function = op.elementwise(double)
    x = np.arange(8, dtype=np.float32)
    assert np.array_equal(function(x, device="cpu"), x * 2)
    double.__code__ = triple.__code__
    assert np.array_equal(function(x, device="cpu"), x * 3)


def test_versions():
    hook, other = fresh(plus), fresh(with_default)
    assert current(None) is None
    assert current(hook) is hook and current(other) is other
    hook.__code__ = minus.__code__
    second = current(hook)
    assert second is not hook and current(hook) is second and second(3.0, 0, 0) == 2.0
    other.__defaults__ = (5.0,)
    assert current(other) is not other and current(other)(2.0, 0, 0) == 10.0
    # After the cache forgets the first version, an edited version must not be mistaken for it.
    assert current(current(second)) is second


def test_old_versions_are_evicted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tracing, "_MOST", 2)
    monkeypatch.setattr(tracing, "_versions", {})
    monkeypatch.setattr(tracing, "_forgotten", False)
    hook = fresh(plus)
    assert current(hook) is hook
    hook.__code__ = minus.__code__
    for _ in range(3):
        current(fresh(plus))
    assert current(hook) is not hook
