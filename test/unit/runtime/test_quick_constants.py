"""Generated code for calls with constants, a stream among the arguments, and watched globals."""

from __future__ import annotations

import types
from typing import Any

import pytest

from cute_dialect.runtime.fast_call import Constants, Watch, address_call, quick_call

torch = pytest.importorskip("torch")


class Word:
    value = 0


def ready_for(launched: list[tuple[int, list[int]]], words: Any) -> Any:
    """Return a prepared launch that records its stream and the 64-bit words of its parameters."""
    slots = [Word() for _ in words]

    class Launches(dict[int, Any]):
        def __missing__(self, stream: int) -> Any:
            def run() -> tuple[int]:
                launched.append((stream, [w.value for w in slots]))
                return (0,)

            return run

    frame = (tuple(slots), (), Launches(), None, None)
    return types.SimpleNamespace(
        empty=False, words=words, frames=[frame], frame=lambda: frame, write=None, failed=None, device=0
    )


def test_constants_are_compared_and_not_passed() -> None:
    x, y = torch.zeros(4, 8), torch.ones(8)
    launched: list[tuple[int, list[int]]] = []
    others: list[Any] = []
    space: dict[str, Any] = {"N": 3}

    def otherwise(args: Any, stream: Any, options: Any) -> None:
        others.append((args, stream, options))

    words = ((0, 0, -1), (1, 4, -1))
    mode = object()
    constants = Constants(frozenset({1}), frozenset({3}), 4, (Watch(space, "", "N", 3),))
    quick = quick_call(ready_for(launched, words), (x, mode, y, "fast", None), 0, otherwise, constants)
    assert quick is not None
    quick.call(x, mode, y, "fast", 7)
    assert launched == [(7, [x.data_ptr(), y.data_ptr() + 4])] and not others
    assert quick.again((x, mode, y, "fast", 9), None)
    assert launched[-1][0] == 9
    quick.call(x, mode, y, "fast", None, stream=5)
    assert launched[-1][0] == 5
    for args in (
        (x, object(), y, "fast", 7),
        (x, mode, y, "slow", 7),
        (x, mode, y[:4], "fast", 7),
        (x, mode, y.double(), "fast", 7),
        (x, mode, y),
    ):
        others.clear()
        quick.call(*args)
        assert len(others) == 1 and not quick.again(args, None)
    assert len(launched) == 3
    space["N"] = 4
    others.clear()
    quick.call(x, mode, y, "fast", 7)
    assert len(others) == 1 and len(launched) == 3


def test_a_call_by_addresses() -> None:
    """A call by addresses writes them into the parameters and reuses the tensor maps of known addresses."""
    launched: list[tuple[int, list[int]]] = []
    launch = address_call(ready_for(launched, ((0, 0, -1), (2, 4, -1))), 3)
    launch(5, 1000, 2000, 3000)
    assert launched == [(5, [1000, 3004])]

    ready = ready_for(launched, ((0, 0, -1), (1, 0, 0)))
    ((slots, _, launches, maps, memory),) = ready.frames
    known = {64: 4096}
    ready.frames[:] = [(slots, (known,), launches, maps, memory)]
    written: list[tuple[int, ...]] = []
    ready.write = lambda frame, addresses: written.append(addresses)
    launch = address_call(ready, 2)
    launch(6, 32, 64)
    assert launched[-1] == (6, [32, 4096]) and written == []
    launch(6, 32, 128)
    assert written == [(32, 128)]
