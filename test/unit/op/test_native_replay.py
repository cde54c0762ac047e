"""Replay in C++: the tests of replay in Python once more, and what C++ nodes have in common with torch's own."""

# pyright: basic

from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Thread
from typing import Any
from unittest.mock import patch
from weakref import ref

import pytest

torch = pytest.importorskip("torch")

from launched_here import Seen  # noqa: E402
from repeated_calls import normal  # noqa: E402
from test_call_cache import *  # noqa: E402, F403
from test_flash_attn import test_a_step_of_a_key_value_cache  # noqa: E402, F401
from test_replayed_gradients import *  # noqa: E402, F403
from test_replayed_gradients import leaves, step  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from cute_dialect import op  # noqa: E402
from cute_dialect.op.execute.call_cache import KnownCalls, key_of  # noqa: E402
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
    calls._add(((), key_of((x,)), False), (), (x,), run)
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
