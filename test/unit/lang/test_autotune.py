"""Autotuning of constants, with a fake clock."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pipelines_support import FakeArray

import cute_dialect.lang as cute
from cute_dialect.lang.calls import autotune as autotuning
from cute_dialect.lang.calls.timing import contest, is_slower


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, per: cute.Constexpr, off: cute.Constexpr):
    i = (cute.arch.block_idx().x * 32 + cute.arch.thread_idx().x) * per
    for k in cute.range_constexpr(per):
        if i + k < cute.size(x):
            y[i + k] = 2 * x[i + k] + off


def reference(x: Any, y: Any, **_: Any) -> None:
    y[:] = 2 * x


def fits(candidates: list[Any], arguments: dict[str, Any]) -> list[Any]:
    return [c for c in candidates if c["per"] <= arguments["x"].shape[0]]


def make(**more: Any) -> autotuning.Autotuned:
    """Return an autotuned function. Two of its candidates give wrong results and one cannot be compiled."""

    @cute.autotune(space={"per": [1, 2, 4, 99], "off": [0, 1]}, prune=fits, **more)
    @cute.jit
    def scale(x: cute.Tensor, y: cute.Tensor, per: cute.Constexpr = 1, off: cute.Constexpr = 0):
        if per == 4 and off == 0:
            raise cute.testing.CantImplementError("four is too many")
        scale_kernel(x, y, per, off).launch(grid=cute.ceil_div(cute.size(x), 32 * per), block=32)

    return scale


def clock(order: list[dict[str, Any]]) -> Callable[[Any, int], list[float]]:
    """Return a fake clock that records its calls. It reports 3 us for two elements per thread and 5 us for one."""
    rng = random.Random(0)

    def measure(run: Any, count: int) -> list[float]:
        assert isinstance(run, partial)
        order.append({n: v for n, v in run.keywords.items() if n in ("per", "off")})
        return [{1: 5.0, 2: 3.0}.get(run.keywords["per"], 9.0) + rng.gauss(0, 0.1) for _ in range(count)]

    return measure


def test_measured_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    scale = make(reference=reference, key=["x"])
    x, y = np.arange(70, dtype=np.float32), np.full(70, 7, np.float32)
    scale(x, y)  # On the interpreter the first candidate is used without measurement.
    assert np.array_equal(y, 2 * x) and scale.best(x, y) == {"per": 1, "off": 0}
    y[:] = 7
    order: list[dict[str, Any]] = []
    seen: list[tuple[str, int, int]] = []
    found = scale.tune(x, y, measure=clock(order), told=lambda *a: seen.append(a))
    assert found.chosen == {"per": 2, "off": 0} and 2.8 < found.microseconds < 3.2 and found.saved is None
    assert [c for c, _, _ in found.measured] == [{"per": 2, "off": 0}, {"per": 1, "off": 0}]
    assert {json.dumps(c): why.rpartition(": ")[2] for c, why in found.left_out} == {
        '{"per": 1, "off": 1}': "different result in y", '{"per": 2, "off": 1}': "different result in y",
        '{"per": 4, "off": 1}': "different result in y", '{"per": 4, "off": 0}': "four is too many",
    }  # fmt: skip
    # Three rounds run in alternating order; pruned candidates are not timed.
    assert [c["per"] for c in order] == [1, 2, 2, 1, 1, 2] and [n for _, _, n in found.measured] == [30, 30]
    assert np.all(y == 7), "arrays hold what they held"
    assert seen[:7] == [("compiled", n, 6) for n in range(7)] and seen[-1] == ("measured", 3, 10)
    text = str(found)
    assert text.startswith("tuned for x=f32[70]: per=2, off=0, ") and "left out: per=4, off=0: " in text
    scale(x, y)
    assert np.array_equal(y, 2 * x) and scale.best(x, y) == {"per": 2, "off": 0} == scale.chosen(x, y).keywords
    assert scale.best(x[:69], y) == {"per": 1, "off": 0}, "another key"
    assert scale.best(x, y, per=4) == {"off": 0}, "what a call says itself stays"


def test_first_candidate_is_the_default_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    x, y = np.ones(40, np.float32), np.zeros(40, np.float32)
    found = make().tune(x, y, measure=clock([]))
    assert found.key == "x=f32[40] y=f32[40]" and found.chosen == {"per": 2, "off": 0} and len(found.left_out) == 4


def test_autotuned_functions_can_be_called_in_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace measures nothing. It uses the candidate chosen earlier, or the first one."""
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    scale = make(key=["x"])

    @cute.jit
    def twice(x: cute.Tensor, y: cute.Tensor):
        scale(x, y)
        chosen(y, x)

    x, y = np.ones(40, np.float32), np.zeros(40, np.float32)
    chosen = scale.chosen(x, y)
    twice(x, y)
    assert np.all(y == 2) and np.all(x == 4)


class FakeClock:
    """A fake GPU clock."""

    def __init__(self, *_: object):
        self.measure = clock([])

    def __enter__(self) -> Callable[[Any, int], list[float]]:
        return self.measure

    def __exit__(self, *_: object) -> None: ...


def test_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another process uses a saved table, and ignores a damaged table or one for other candidates."""
    monkeypatch.setenv("CUTE_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr(autotuning, "GpuClock", FakeClock)
    monkeypatch.setattr(autotuning, "_gpu_name", lambda: "NVIDIA H999 (test)")
    monkeypatch.setattr(autotuning, "_has_gpu", lambda: True)
    monkeypatch.setattr(autotuning, "stream_of", lambda *_: 0)
    array = FakeArray((70,), (1,))
    first = make(key=["x"])
    runs: list[Any] = []
    monkeypatch.setattr(first, "_compiled", lambda candidates, *_: (list(candidates), []))
    monkeypatch.setattr(first, "_right", lambda ready, *_: ([(c, partial(runs.append, **c)) for c in ready], []))
    found = first.tune(array, array)
    assert found.saved == tmp_path / "functions" / "nvidia-h999-test.json"
    entry = first.table()["x=f32[70]"]
    assert entry["chosen"] == {"per": "2", "off": repr(found.chosen["off"])} and 2.5 < entry["microseconds"] < 3.5
    again = make(key=["x"])
    monkeypatch.setattr(again, "tune", lambda *_, **__: pytest.fail("it is known"))
    assert again._find((array, array), {}, measure=True) == found.chosen
    monkeypatch.setenv("CUTE_AUTOTUNE", "0")
    other = FakeArray((8,), (1,))
    assert make(key=["x"])._find((other, other), {}, measure=True) == {"per": 1, "off": 0}
    assert make(key=["x"])._find((array, array), {}, measure=True) == found.chosen
    monkeypatch.delenv("CUTE_AUTOTUNE")
    autotuning.table_path("NVIDIA H999 (test)").write_text(found.saved.read_text().replace('"2"', '"3"'))
    assert make(key=["x"]).best(array, array) == {"per": 1, "off": 0}
    for damaged in (
        "{",
        '{"format": 1}',
        '{"format": 2, "functions": {}}',
        '{"format": 1, "functions": {"a": {"b": 3}}}',
    ):
        found.saved.write_text(damaged)
        assert make(key=["x"]).best(array, array) == {"per": 1, "off": 0}
    assert [p.name for p in (tmp_path / "functions").iterdir()] == ["nvidia-h999-test.json"]


def test_slower_candidates_are_dropped() -> None:
    rng = random.Random(1)
    speeds = {n: 10.0 + 0.5 * n for n in range(8)}
    counts = {n: 0 for n in speeds}

    def measure(n: int, count: int) -> list[float]:
        counts[n] += count
        return [rng.gauss(speeds[n], 0.4) for _ in range(count)]

    times = contest({n: n for n in speeds}, measure, rounds=20, share=5)
    assert counts[7] < counts[1] and counts[0] == max(counts.values())
    assert min(times, key=lambda n: (-len(times[n]), statistics.median(times[n]))) == 0
    assert not is_slower([1.0], [1.0])
    assert len(contest({0: 0, 1: 1}, lambda *_: [1.0], rounds=9, share=1, until=0.0)[0]) == 1


def test_compile_without_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    x = np.ones(40, np.float32)
    ((left, why),) = make().compile(x, x)
    assert left == {"per": 4, "off": 0} and why.endswith("error F162: CantImplementError: four is too many")


@cute.jit
def plain(x: cute.Tensor, n: cute.Constexpr = 1): ...


ERRORS: list[tuple[str, Callable[[], object]]] = [
    ("autotune: pass either space= or configs=", lambda: cute.autotune()),
    ("autotune: pass either space= or configs=", lambda: cute.autotune({"n": [1]}, configs=[{"n": 1}])),
    ("autotune: there are no candidates", lambda: cute.autotune({"n": []})(plain)),
    ("autotune: there are no candidates", lambda: cute.autotune({})(plain)),
    ("autotune: all configs must have the same parameters",
     lambda: cute.autotune(configs=[{"n": 1}, {"x": 2}])(plain)),
    ("autotune: the function has no parameter 'm'; parameters: x, n", lambda: cute.autotune({"m": [1]})(plain)),
    ("autotune: the function has no parameter 'k'; parameters: x, n",
     lambda: cute.autotune({"n": [1]}, key=["k"])(plain)),
    ("test_autotune.make.<locals>.scale: prune removed all candidates for x=f32[0] y=f32[0]",
     lambda: make().best(np.zeros(0, np.float32), np.zeros(0, np.float32))),
    ("test_autotune.make.<locals>.scale: the arrays must be in GPU memory for a measurement; or pass measure=",
     lambda: make().tune(np.zeros(4, np.float32), np.zeros(4, np.float32))),
]  # fmt: skip


@pytest.mark.parametrize(("message", "call"), ERRORS)
def test_errors(message: str, call: Callable[[], object]) -> None:
    with pytest.raises(cute.TuneError) as e:
        call()
    assert str(e.value) == message


def test_plain_functions_are_rejected() -> None:
    with pytest.raises(
        cute.TuneError, match=r"must decorate a function under @cute.jit, got <function .*; place it above"
    ):
        cute.autotune({"n": [1]})(lambda n: n)  # type: ignore[arg-type]
    with pytest.raises(cute.TuneError, match="no candidate is left: n=1: "):
        cute.autotune({"n": [1]})(plain).tune(np.zeros(4, np.float32), measure=clock([]), device="cpu", m=3)
