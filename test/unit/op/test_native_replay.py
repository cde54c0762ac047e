"""Replay in C++: the tests of replay in Python once more, and what C++ nodes have in common with torch's own."""

# pyright: basic

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any
from unittest.mock import patch
from weakref import ref

import pytest

torch = pytest.importorskip("torch")

from launched_here import Seen  # noqa: E402
from repeated_calls import normal  # noqa: E402
from test_call_cache import *  # noqa: E402, F403
from test_flash_attn import test_a_step_of_a_key_value_cache  # noqa: E402, F401
from test_optimizer_replay import *  # noqa: E402, F403
from test_replayed_gradients import *  # noqa: E402, F403
from test_replayed_gradients import leaves, step  # noqa: E402
from torch.autograd.function import BackwardCFunction  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.execute import call_cache  # noqa: E402
from cute_dialect.op.execute.call_cache import KnownCalls, key_of  # noqa: E402
from cute_dialect.op.execute.recording import Recording  # noqa: E402
from cute_dialect.runtime import native  # noqa: E402

pytestmark = pytest.mark.slow


class Mode(TorchDispatchMode):
    """A dispatch mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def extension() -> Any:
    """Compile the extension; this takes half a minute."""
    if native._compiler() is None:
        pytest.skip("replay in C++ was not tested, because this machine has no C++ compiler")
    try:
        return native.build()
    finally:
        native._State.module = None


@pytest.fixture(autouse=True)
def in_native(extension: Any) -> Iterator[None]:
    with patch.object(native._State, "module", extension):
        yield
    for function in (op.add, op.mul):  # their caches outlive this test
        function._known.clear()


def test_types_of_a_cached_call(extension: Any, seen: Seen) -> None:
    a, b = leaves((normal(4, 40), normal(4, 40)))
    for _ in range(3):
        step(op.mul, [a, b])
    assert type(op.mul._known.again) is extension.Calls
    assert extension.Node in [type(run) for known in op.mul._known._found.values() for run in known.runs]
    assert op.mul(a, b).grad_fn.name() == "ReplayedBackward"


def test_hooks_of_saved_tensors(seen: Seen) -> None:
    a, b = leaves((normal(16, 24), normal(24, 32)))
    exact = [step(op.mm, [a, b]) for _ in range(3)][-1]
    packed: list[Any] = []

    def pack(t: Any) -> int:
        packed.append(t.detach().clone())
        return len(packed) - 1

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda i: packed[i]):
        found = step(op.mm, [a, b])
    assert len(packed) == 2 and all(torch.equal(x, y) for x, y in zip(found, exact))


def test_an_error_of_the_backward_pass(seen: Seen) -> None:
    """The error of a hook, and of a gradient of another shape, reach the caller, and the next call works."""
    a, b = leaves((normal(4, 40), normal(4, 40)))
    exact = [step(op.mul, [a, b]) for _ in range(3)][-1]
    y = op.mul(a, b)

    def fails(grad: Any) -> None:
        raise KeyError("of a hook")

    y.register_hook(fails)
    with pytest.raises(KeyError, match="of a hook"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        torch.autograd.grad(op.mul(a, b), a, torch.ones(3))
    assert all(torch.equal(x, y) for x, y in zip(step(op.mul, [a, b]), exact))


def test_modes_without_replay(seen: Seen) -> None:
    """A call in forward-mode differentiation or in a dispatch mode is computed without the recording."""
    a, b = leaves((normal(4, 40), normal(4, 40)))
    for _ in range(3):
        step(op.mul, [a, b])
    again = seen.again
    with torch.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match=r"jvp|forward"):
        op.mul(torch.autograd.forward_ad.make_dual(a, b.detach()), b)
    assert seen.again == again
    with Mode():
        y = op.mul(a, b)
    assert y.requires_grad and y.grad_fn.name() != "ReplayedBackward"
    with torch.inference_mode():
        assert not op.mul(a, b).requires_grad


def test_several_threads(seen: Seen) -> None:
    a, b = leaves((normal(4, 40), normal(4, 40)))
    exact = [step(op.mul, [a, b]) for _ in range(3)][-1]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            found = step(op.mul, [a, b])
            wrong.extend([number] * (not all(torch.equal(x, y) for x, y in zip(found, exact))))

    threads = [Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_anomaly_mode_and_metadata(seen: Seen) -> None:
    a, b = leaves((normal(4, 40), normal(4, 40)))
    for _ in range(3):
        step(op.mul, [a, b])
    with torch.autograd.set_detect_anomaly(True):
        y = op.mul(a, b)
        y.sum().backward()
    assert all("AccumulateGrad" in node.name() for node, _ in y.grad_fn.next_functions)
    assert y.is_leaf is False and y.output_nr == 0


def test_objects_are_freed(extension: Any) -> None:
    """A cache that is no longer used is freed, although its last call refers to it."""
    calls = KnownCalls()
    x = normal(4, 4)
    run = extension.Run(1, [], [], torch.empty(1), int, 15, [0], False, [0], [], [])
    calls._grad = torch.is_grad_enabled
    calls._add(((), key_of((x,)), False), (), (x,), run, extension)
    assert [calls.again((), x) is x for _ in range(2)] == [True, True] and type(calls.again) is extension.Calls
    seen = ref(calls)
    del calls, run
    gc.collect()
    assert seen() is None


def test_results_outlive_their_cache(seen: Seen) -> None:
    a, b = leaves((normal(4, 40), normal(4, 40)))
    exact = [step(op.mul, [a, b]) for _ in range(3)][-1]
    y = op.mul(a, b)
    op.mul._known.clear()
    gc.collect()
    generator = torch.Generator().manual_seed(1)
    grad = torch.randn(y.shape, generator=generator).to(y.dtype)
    assert all(torch.equal(x, z) for x, z in zip(torch.autograd.grad(y, (a, b), grad), exact[1:]))


def test_alternating_calls(seen: Seen) -> None:
    """Calls of several shapes, one of them new each time, are replayed without a lookup."""
    shapes = [leaves((normal(4, 8 * n), normal(4, 8 * n))) for n in range(1, 20)]
    exact = [[step(op.mul, x) for _ in range(3)][-1] for x in shapes]
    for _ in range(2):
        for x, y in zip(shapes, exact):
            before = seen.first
            assert all(torch.equal(a, b) for a, b in zip(step(op.mul, x), y)) and seen.first == before
    looked_up: list[object] = []
    found_call = KnownCalls._found_call
    with patch.object(KnownCalls, "_found_call", lambda *x: looked_up.append(x) or found_call(*x)):
        for _ in range(3):
            for x in shapes[-10:]:
                op.mul(*x)
    assert len(looked_up) <= 10


# ------------------------------------------------------------------------------- loading it after calls were recorded


@contextmanager
def not_loaded() -> Iterator[Callable[[], Any]]:
    """A process that has not loaded the extension; yields a function that loads it."""
    with patch.object(native._State, "module", None):
        call_cache.forget_calls()
        yield native.build
    call_cache.forget_calls()


def is_native(calls: KnownCalls, extension: Any) -> bool:
    """Return True if a cache tries its calls in C++, and all its recordings are in C++."""
    kinds = {type(run) for known in calls._found.values() for run in known.runs}
    return type(calls.again) is extension.Calls and bool(kinds) and kinds <= {extension.Run, extension.Node}


@pytest.mark.parametrize("name", ["mul", "softmax", "mm"])
def test_calls_that_were_recorded_before_loading(extension: Any, seen: Seen, name: str) -> None:
    """They move to C++ with equal results and gradients, and so do the backward passes of existing graphs."""
    shapes = {"mul": ((4, 40), (4, 40)), "softmax": ((5, 33),), "mm": ((16, 24), (24, 32))}[name]
    function, given = getattr(op, name), leaves(tuple([normal(*x) for x in shapes]))
    with not_loaded() as load:
        exact = [step(function, given) for _ in range(4)][-1]
        old = [function(*given) for _ in range(3)]
        assert all(isinstance(y.grad_fn, BackwardCFunction) for y in old)
        plain = [function(*[x.detach() for x in given]) for _ in range(3)][-1]
        load()
        generator = torch.Generator().manual_seed(1)
        grad = torch.randn(old[0].shape, generator=generator).to(old[0].dtype)
        for y in old:
            found = torch.autograd.grad(y, given, grad)
            assert all(torch.equal(a, b) for a, b in zip(found, exact[1:]))
        first = seen.first
        for _ in range(3):
            assert all(torch.equal(a, b) for a, b in zip(step(function, given), exact))
            assert torch.equal(function(*[x.detach() for x in given]), plain)
        assert seen.first > first  # They were recorded again,
        first, again = seen.first, seen.again
        for _ in range(3):
            assert all(torch.equal(a, b) for a, b in zip(step(function, given), exact))
            assert torch.equal(function(*[x.detach() for x in given]), plain)
        assert seen.first == first and seen.again > again  # and are replayed now,
        assert not isinstance(function(*given).grad_fn, BackwardCFunction)  # in C++.
        kinds = {type(run) for calls in list(call_cache._CACHES) for x in calls._found.values() for run in x.runs}
        assert kinds == {extension.Run, extension.Node}


def test_a_recording_during_which_it_is_loaded(extension: Any) -> None:
    """A recording that was made in Python is not kept with one in C++."""
    calls, x = KnownCalls(tf32=False), normal(4, 6)
    recorded = Recording.again
    with not_loaded() as load:

        def again(*given: Any) -> Any:
            run = recorded(*given)
            load()
            return run

        with patch.object(Recording, "again", again):
            for _ in range(2):
                assert torch.equal(calls.recorded((), (x,), x.clone, views=True), x)
        assert [torch.equal(calls.again((), x), x) for _ in range(2)] == [True, True] and is_native(calls, extension)


def test_it_is_loaded_at_any_moment(extension: Any) -> None:
    """Loading between any two lines of a look-up, a replay or a recording leaves no call in Python."""
    x, y = normal(4, 6), normal(3, 5)

    def call(calls: KnownCalls, t: Any) -> None:
        done = calls.again((), t)
        if done is None:
            done = calls.recorded((), (t,), t.clone, views=True)
        assert torch.equal(done, t)

    def moments(calls: KnownCalls, loads_at: int, load: Callable[[], Any]) -> int:
        """Run calls, load the extension before one of the lines, and return the number of lines."""
        count = 0

        def line(frame: Any, event: str, _: Any) -> Any:
            nonlocal count
            if event == "line":
                if count == loads_at:
                    load()
                count += 1
            return line

        sys.settrace(lambda frame, *_: line if frame.f_code.co_filename == call_cache.__file__ else None)
        try:
            for t in (x, x, y, y, x, y, x, x):
                call(calls, t)
        finally:
            sys.settrace(None)
        return count

    with not_loaded() as load:
        lines = moments(KnownCalls(tf32=False), -1, load)
    assert lines > 200
    for i in range(lines):
        calls = KnownCalls(tf32=False)
        with not_loaded() as load:
            moments(calls, i, load)
            assert native.loaded() is extension
            for _ in range(3):
                call(calls, x)
            assert type(calls.again) is extension.Calls, i
            for t in (x, y, x, y, x, y):
                call(calls, t)
            assert is_native(calls, extension) and len(calls) == 2, i


def steps_of(given: Any, exact: Any, replays: Event, ends: Event, failed: list[object]) -> None:
    """Run and compare steps until ``ends`` is set, at least 8; set ``replays`` when calls are replayed."""
    try:
        count = 0
        while not ends.is_set() or count < 8:
            KnownCalls()
            found = step(op.mul, given)
            if not all(torch.equal(a, b) for a, b in zip(found, exact)):
                failed.append(found)
            count += 1
            if count == 5:
                replays.set()
    except Exception as e:
        failed.append(e)
        replays.set()


def test_threads_while_it_is_loaded(extension: Any, seen: Seen) -> None:
    given = leaves((normal(4, 40), normal(4, 40)))
    exact = [step(op.mul, given) for _ in range(3)][-1]
    failed: list[object] = []
    for _ in range(4):
        with not_loaded() as load:
            ends, replays = Event(), [Event() for _ in range(3)]
            threads = [Thread(target=steps_of, args=(given, exact, event, ends, failed)) for event in replays]
            for t in threads:
                t.start()
            for event in replays:
                event.wait()
            load()
            ends.set()
            for t in threads:
                t.join()
            for _ in range(4):
                step(op.mul, given)
            assert not failed and is_native(op.mul._known, extension)
