"""Schedules of counterexamples, which the interpreter replays, and the engine that tries all interleavings."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import UsageError
from cute_dialect.interp import InterpError
from cute_dialect.interp.compiler.switches import is_switch
from cute_dialect.prove.effects import EFFECTS
from cute_dialect.prove.exhaustive import QUIET
from cute_dialect.runtime.call_options import OptionError
from cute_dialect.runtime.turns import parse_turns, write_turns
from cute_dialect.tools import cute_prove, cute_run

sys.path.insert(0, str(Path(__file__).parent))

import prove_fuzz
from rings import arrays, ring

RACE = "replay:0*6,1*2,0*5,1*4,0"
A = cute.arch


def run(f: Any, schedule: str, columns: int = 3) -> str:
    """Return the first line of the report of a run, empty if there is none."""
    try:
        f(*arrays(columns), device="cpu", checks=["race", "uninit"], schedule=schedule)
    except InterpError as e:
        return str(e).splitlines()[0]
    return ""


def test_a_counterexample_is_replayed_at_its_line():
    f = ring(2, "early release")
    (proof,) = cute.testing.prove(f, arrays(3))
    assert proof.verdict == "refuted" and proof.schedule == RACE and f'schedule="{RACE}"' in str(proof)
    line = proof.location.rpartition("/")[2].rpartition(":")[0]
    assert line in run(f, RACE) and "race on shared memory" in run(f, RACE)
    assert not run(ring(2), RACE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        ("replay:2", "turn 1 is of warp 2, but the first cluster has 2 warps"),
        ("replay:0,c", "turn 2 is of the landing of copy 0, but 0 copies are in flight"),
        ("replay:0*7", "turn 7 is of warp 0, which waits at barrier 0"),
        ("replay:0*6,1*9", "turn 10 is of warp 1, which waits at the mbarrier"),
    ],
)
def test_a_schedule_of_another_run_is_named(schedule: str, reason: str):
    assert f"the schedule does not fit this run: {reason}" in run(ring(2), schedule)


@pytest.mark.slow
def test_a_schedule_that_outlasts_a_warp_is_named():
    assert "warp 0, which has ended" in run(ring(2), "replay:0*6,1*2,0*9", 1)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "0*", "0*0", "x", "0**2", "-1", "c-1", "0*99999999", "1,,2"])
def test_a_turn_that_is_not_understood_is_named(text: str):
    with pytest.raises(OptionError, match="is not a turn; write 'replay:0"):
        run(ring(2), f"replay:{text}")


def test_turns_are_written_as_they_are_read():
    assert write_turns(parse_turns("replay:0,0,1*2,c,c,c3")) == "replay:0*2,1*2,c,c,c3"


@pytest.mark.slow
def test_the_command_of_a_counterexample_reproduces_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "ring.mlir"
    file.write_text(cute.compile(ring(2, "early release"), *arrays(2), device="cpu").mlir("trace"))
    assert cute_prove.main([str(file), "--in", "32xKxf32", "--in", "32xKxf32"]) == 1
    said = capsys.readouterr().out
    command = shlex.split(said.partition("to replay it: ")[2].splitlines()[0])
    assert command[0] == "cute-run" and command[-1] == RACE
    assert cute_run.main(command[1:]) != 0
    report = next(line for line in said.splitlines() if "error: " in line).strip()
    assert report in capsys.readouterr().err


def test_every_step_is_quiet_or_a_switch():
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

    for name, effect in EFFECTS.items():
        assert (effect.kind in QUIET) != is_switch(Named(name)), name  # type: ignore[arg-type]


def signals(times: int) -> Any:
    """Return a host function whose warp 0 completes phases of an mbarrier, which nothing orders.

    If their number is odd, warp 1 waits for the parity of the last one. It may miss the first, but not the last.
    """

    @cute.kernel
    def signals_kernel(x: cute.Tensor):
        tid = A.thread_idx().x
        warp = A.make_warp_uniform(tid // 32)
        bar = A.alloc_smem(cute.Int64, 1, 8)
        if tid == 0:
            A.mbarrier_init(bar, 32)
        A.sync_threads()
        if warp == 0:
            for _ in cute.range_constexpr(times):
                A.mbarrier_arrive(bar)
        if times % 2 == 1 and warp == 1:
            A.mbarrier_wait(bar, 0)
            x[tid] = 1.0

    @cute.jit
    def launch(x: cute.Tensor):
        signals_kernel(x).launch(grid=1, block=64)

    return launch


@pytest.mark.parametrize("times", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_what_one_schedule_cannot_decide_is_proved_by_all(times: int):
    x = arrays(2)[0].reshape(-1)
    (proof,) = cute.testing.prove(signals(times), (x,), engine="facts")
    assert proof.verdict == "not proved" and "not ordered after its previous phase" in proof.reason
    (proof,) = cute.testing.prove(signals(times), (x,))
    assert proof and proof.engine == "interleavings" and "states of all interleavings" in str(proof), str(proof)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_protocols_have_one_verdict_by_both_engines(seed: int):
    draw, compiled = Random(seed), dict[tuple[str, int, str], prove_fuzz.Protocol]()
    for _ in range(3):
        one, module, stages, name = prove_fuzz.draw(draw, compiled, prove_fuzz.FAMILIES)
        _, report = prove_fuzz.judge(one, module, stages)
        assert not report, f"{name}: {report}"


@pytest.mark.slow
def test_an_unknown_engine_is_named():
    with pytest.raises(UsageError, match="engine='all'; it must be one of auto, facts, exhaustive"):
        cute.testing.prove(ring(2), arrays(2), engine="all")
