"""``cute-bench gemm --fit --random``: selection of the timed kernels, and kernels that are wrong, crash or hang."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cute_dialect.kernels.gemm.config import BITS, SkinnyConfig
from cute_dialect.op.select.candidates import menu, suits
from cute_dialect.op.select.cost_model import COSTS, ranked, write_costs
from cute_dialect.op.select.kernel_choice import Problem, decode, encode
from cute_dialect.op.select.timing import Sample
from cute_dialect.tools import cute_bench
from cute_dialect.tools.bench import runner
from cute_dialect.tools.bench import sweep as bench_gemm_sweep
from cute_dialect.tools.bench.cases.gemm import Runner
from cute_dialect.tools.bench.runner import BenchError
from cute_dialect.tools.bench.sweep import (
    Plan,
    Reporter,
    Timed,
    build,
    plan,
    read_plan,
    read_sweeps,
    supervised,
    sweep_problems,
    time_jobs,
    timed,
    write_plan,
)
from cute_dialect.tools.cute_bench import main

FOREVER = float("inf")


def nothing(line: str) -> None:
    """Discard the line."""


def test_problems_of_a_sweep() -> None:
    found = sweep_problems(200, 3)
    assert len(found) == 200 and found == sweep_problems(200, 3) != sweep_problems(200, 4)
    assert {p.element for p in found} == {"f16", "f8E4M3FN", "tf32"}
    few = found[3::4]
    assert all(1 <= p.m <= 256 and p.n >= 1024 and p.k >= 1024 for p in few) and min(p.m for p in few) < 4
    assert {p.major_b for p in few} == {"k", "n"}
    for p in found:
        even = 128 // BITS[p.element]
        assert p.k % even == 0 and p.n % even == 0 and (p.major_a == "k" or p.m % even == 0)


@pytest.mark.slow
def test_kernels_of_a_sweep() -> None:
    made = plan(24, 5, COSTS._replace(sms=100), 6)
    assert made.sms == 100 and [p for p, _ in made.rows] == sweep_problems(24, 5)
    for problem, names in made.rows:
        found = [c for _, c in ranked(problem, COSTS._replace(sms=100))]
        listed = [c.name for c in found]
        assert names[0] == listed[0] and len({*names}) == min(8, len(listed)) and {*names} <= {*listed}
        assert sorted(names[:6], key=listed.index) == list(names[:6])
        tiles = [(c.skinny or c.config, c.swapped) for n in names[:6] for c in [made.menu[n]]]
        tiles = [(c[2:4] if isinstance(c, SkinnyConfig) else c.tile, swapped) for c, swapped in tiles]
        assert max(map(tiles.count, tiles)) <= 2
        assert all(made.menu[n].skinny is not None or made.menu[n].config.sms == 100 for n in names)
    drawn = [found.index(n) for p, names in made.rows
             for found in [[c.name for _, c in ranked(p, COSTS._replace(sms=100))]] for n in names[6:]]  # fmt: skip
    assert max(drawn) > 20  # The sample includes kernels of low rank.
    whole = plan(6, 5, COSTS, None)
    for problem, names in whole.rows:
        assert {*names} == {c.name for c in menu(problem) if suits(c, problem)}


@pytest.mark.slow
def test_build_folder_round_trips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = plan(2, 5, COSTS, 2)
    name, other = [*wanted.menu][:2]
    broken = wanted.menu[name]
    broken = broken._replace(config=broken.config._replace(stages=99))  # 99 stages exceed the shared memory.
    said: list[str] = []
    made = build(str(tmp_path), "sm_90a", wanted._replace(menu={**wanted.menu, name: broken}),
                 deadline=FOREVER, say=said.append)  # fmt: skip
    assert {*made.failed} == {name} and made.failed[name]
    assert any(line.startswith(f"  FAILED: {name}: ") for line in said)
    assert said[0] == f"building {len(wanted.menu)} kernels for 2 problems"
    assert (tmp_path / other).is_dir()
    found = read_plan(str(tmp_path), 2, 5)
    assert found.rows == wanted.rows and found.failed == made.failed
    assert found.menu == {n: c for n, c in wanted.menu.items() if n != name}  # The plan omits the failed kernel.
    # One more kernel is missing on the machine that times them.
    gone = next(n for n in found.rows[0][1] if n != name)
    shutil.rmtree(tmp_path / gone)

    def time_problem(problem: Problem, runners: Sequence[Runner], *_: object) -> Timed:
        return {"problem": problem.key, "times": {r.choice.name: 1.0 for r in runners}, "bad": {}}

    monkeypatch.setattr(bench_gemm_sweep, "time_problem", time_problem)
    ours, theirs = Pipe(duplex=False)
    time_jobs(str(tmp_path), found, 7, [0], frozenset(), Reporter(theirs))
    theirs.close()
    steps: list[tuple[str, int, Any]] = []
    with pytest.raises(EOFError):
        while True:
            steps.append(ours.recv())
    there = [n for n in found.rows[0][1] if n != name]
    assert steps[:-1] == [("at", 0, n) for n in there]
    row = steps[-1][2]
    assert [*row["times"]] == [n for n in there if n != gone]
    assert [*row["bad"]] == [gone] and row["bad"][gone].startswith("ArtifactError: ")


@pytest.mark.slow
def test_a_budget_that_is_too_small_for_building(tmp_path: Path) -> None:
    wanted, said = plan(40, 5, COSTS), list[str]()
    made = build(str(tmp_path), "sm_90a", wanted, deadline=time.monotonic() + 0.1, say=said.append)
    assert len(made.failed) > len(wanted.menu) // 2
    assert {*made.failed.values()} == {"not built within the budget"}
    assert any("budget exhausted: " in line for line in said)
    assert read_plan(str(tmp_path), 40, 5).failed == made.failed


def test_a_folder_that_was_not_built_for_it(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"was not built by cute-bench gemm --fit .* FileNotFoundError"):
        read_plan(str(tmp_path), 2, 5)
    write_plan(str(tmp_path), plan(4, 5, COSTS, 2))
    with pytest.raises(BenchError, match="was built for --random 4 --seed 5"):
        read_plan(str(tmp_path), 4, 6)
    (tmp_path / "sweep.json").write_text("[]")
    with pytest.raises(BenchError, match="TypeError"):
        read_plan(str(tmp_path), 4, 5)


# --------------------------------------------------------------------------------------------------------- in a process


def invented(
    wanted: Plan,
    crashing: str,
    hanging: str,
    lost: int,
    jobs: Sequence[int],
    broken: frozenset[str],
    reporter: Reporter,
) -> None:
    """Fake timing: one kernel crashes, one hangs, and one problem crashes while its kernels alternate."""
    for job in jobs:
        row: dict[str, object] = {"problem": wanted.rows[job][0].key, "bad": {}}
        times: dict[str, float] = {"torch": 10.0}
        for name in wanted.rows[job][1]:
            if name in broken:
                continue
            reporter.at(job, name)
            if name == crashing:
                os.kill(os.getpid(), signal.SIGSEGV)
            if name == hanging:
                time.sleep(1000)
            times[name] = 5.0 + len(times)
        reporter.at(job, "")
        if job == lost:
            reporter.last_words("out of luck")
            os._exit(1)
        reporter.done(job, row | {"times": times})


@pytest.mark.slow
def test_crashing_and_hanging_kernels_are_skipped(tmp_path: Path) -> None:
    wanted = plan(5, 5, COSTS, 4)
    crashing, hanging = wanted.rows[0][1][1], wanted.rows[2][1][0]
    said: list[str] = []
    found = timed(
        wanted, partial(invented, wanted, crashing, hanging, 3), deadline=FOREVER, say=said.append, patience=8.0
    )
    failed = cast("dict[str, str]", found["failed"])
    assert failed == {crashing: "its process ended with -11", hanging: "no answer for 8 s"}
    assert found["lost"] == {wanted.rows[3][0].key: "out of luck"} and found["left"] == 0
    rows = cast("list[dict[str, Any]]", found["rows"])
    assert [r["problem"] for r in rows] == [wanted.rows[i][0].key for i in (0, 1, 2, 4)]
    assert crashing not in rows[0]["times"] and wanted.rows[0][1][0] in rows[0]["times"]
    assert f"  BROKEN: {crashing}: its process ended with -11" in said
    assert f"  LOST: {wanted.rows[3][0].key}: out of luck" in said
    assert any(line.startswith("timed 4 of 5 problems in ") for line in said)
    # The written file can be read as a sweep.
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"machine": {"gpu": "X"}, **found}))
    sweep = read_sweeps([path])
    assert len(sweep.rows) == 4 and not sweep.unknown and all(r.peer == 10.0 for r in sweep.rows)
    assert sweep.rows[1].kernels == tuple(wanted.menu[n] for n in wanted.rows[1][1] if n not in failed)


def slow(jobs: Sequence[int], broken: frozenset[str], reporter: Reporter) -> None:
    """Complete one job, then sleep."""
    reporter.done(jobs[0], "done")
    reporter.at(jobs[1], "slow")
    time.sleep(1000)


def dead(jobs: Sequence[int], broken: frozenset[str], reporter: Reporter) -> None:
    """Exit before the first step."""
    os._exit(7)


@pytest.mark.slow
def test_the_deadline() -> None:
    told: list[int] = []

    def tell(job: int, result: object) -> None:
        told.append(job)

    # The deadline leaves time to start a process on a busy machine.
    deadline = time.monotonic() + 15.0
    found = supervised(slow, 3, patience=100.0, deadline=deadline, tell=tell)
    assert time.monotonic() - deadline < 60
    assert found.results == {0: "done"} and told == [0] and found.left == [1, 2] and not found.broken


@pytest.mark.slow
def test_a_process_that_cannot_begin() -> None:
    wanted = plan(3, 5, COSTS, 2)
    with pytest.raises(BenchError, match="no kernel could be timed: its process ended with 7"):
        timed(wanted, dead, deadline=FOREVER, say=nothing)


# --------------------------------------------------------------------------------------------------------- of a problem


def test_only_correct_kernels_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = pytest.importorskip("torch")
    problem = Problem(24, 16, 32, "tf32", "f32")

    def inputs(p: Problem, *, integers: bool) -> tuple[object, object, object]:
        torch.manual_seed(0)
        a, b = (torch.randint(-2, 3, (x, p.k)).float() if integers else torch.randn(x, p.k) for x in (p.m, p.n))
        return a, b, torch.full((p.m, p.n), float("nan"))

    def peer_of(p: Problem, a: Any, b: Any) -> tuple[Callable[[], object], object]:
        out = torch.empty(p.m, p.n)
        return (lambda: torch.mm(a, b.T, out=out)), out

    timed_ones: list[str] = []

    def compare(contestants: Sequence[tuple[str, Callable[[], object]]], **more: object) -> dict[str, Sample]:
        timed_ones.extend(name for name, _ in contestants)
        for contestant in contestants:
            contestant[1]()
        return {name: Sample(4.0, 4.0, 4.0, 1) for name, _ in contestants}

    monkeypatch.setattr(bench_gemm_sweep, "inputs", inputs)
    monkeypatch.setattr(bench_gemm_sweep, "peer_of", peer_of)
    monkeypatch.setattr(runner, "compare", compare)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def right(a: Any, b: Any, c: Any) -> None:
        c.copy_(a @ b.T)

    def nearly(a: Any, b: Any, c: Any) -> None:
        c.copy_(a @ b.T)
        c[3, 5] += 1e-3

    def leaves_one(a: Any, b: Any, c: Any) -> None:
        c[:, 1:].copy_((a @ b.T)[:, 1:])

    def refuses(a: Any, b: Any, c: Any) -> None:
        raise ValueError("expected other\nrows")

    class Kernel:
        """A fake kernel that can be run."""

        def __init__(self, call: Callable[[Any, Any, Any], None]):
            self.choice, self._call = SimpleNamespace(name=call.__name__), call

        def __call__(self, a: Any, b: Any, c: Any) -> None:
            self._call(a, b, c)

    runners = cast("list[Runner]", [Kernel(f) for f in (right, nearly, leaves_one, refuses)])
    steps: list[str] = []
    row = bench_gemm_sweep.time_problem(problem, runners, 7, steps.append, nothing)
    assert row["problem"] == problem.key and row["times"] == {"torch": 4.0, "right": 4.0}
    assert timed_ones == ["torch", "right"]
    assert row["bad"] == {
        "nearly": "wrong on integers",
        "leaves_one": "wrong on integers",
        "refuses": "ValueError: expected other rows",
    }
    assert steps == ["", "right", "nearly", "leaves_one", "refuses", ""]
    # Sizes too large for exact integers are compared with torch, which finds only large errors.
    monkeypatch.setattr(bench_gemm_sweep, "EXACT", 1.0)
    row = bench_gemm_sweep.time_problem(problem, runners, 7, steps.append, nothing)
    assert row["bad"] == {"leaves_one": "differs from torch", "refuses": "ValueError: expected other rows"}


# --------------------------------------------------------------------------------------------------------- command line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--fit"], "--fit: expected sweep files, or --random N to record a sweep"),
        (["--fit", "--random", "3"], "--fit --random needs --json FILE to write the sweep"),
        (["--fit", "x", "--random", "3"],
         "--fit FILE reads a sweep; it cannot be combined with --random, --build or --run"),
        (["--fit", "x", "--budget", "3"], "--budget cannot be combined with --fit FILE"),
        (["--regret", "x", "--kernels", "all"], "--kernels cannot be combined with --regret FILE"),
        (["--fit", "--random", "3", "--build", "x", "--output", "y"], "--output applies only to --fit FILE"),
        (["--fit", "--random", "3", "--build", "x", "--run", "y"], "--build cannot be combined with --run"),
        (["--fit", "--random", "3", "--run", "x", "--kernels", "4"],
         "--kernels and --costs select kernels to build; they cannot be combined with --run"),
        (["--budget", "3"], "--budget applies only to --fit"),
    ],
)  # fmt: skip
def test_contradictory_options_are_rejected(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gemm", *words]) == 1
    assert capsys.readouterr() == ("", f"cute-bench: error: {says}\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--kernels", "1"], "argument --kernels: expected a number of at least 2, or all, got '1'"),
        (["--budget", "0"], "argument --budget: expected a positive number of seconds, got '0'"),
        (["--budget", "soon"], "argument --budget: expected a positive number of seconds, got 'soon'"),
    ],
)
def test_invalid_options_are_rejected(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["gemm", "--fit", "--random", "3", *words])
    assert capsys.readouterr().err.splitlines()[-1] == f"cute-bench: error: {says}"


@pytest.mark.slow
def test_the_command_builds_for_the_gpu_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    costs, folder = tmp_path / "costs.json", tmp_path / "kernels"
    write_costs(costs, "small", COSTS._replace(sms=80))
    words = ["gemm", "--fit", "--random", "1", "--seed", "2", "--kernels", "2", "--build", str(folder)]
    assert main([*words, "--costs", str(costs)]) == 0
    assert "building 3 kernels for 1 problems" in capsys.readouterr().out
    made = read_plan(str(folder), 1, 2)
    assert made.sms == 80 and all(decode(encode(c)) == c for c in made.menu.values())
    assert all((folder / name).is_dir() for name in made.menu)


@pytest.mark.slow
def test_the_command_writes_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command times the kernels on a fake GPU and writes a sweep."""
    made = plan(3, 2, COSTS, 4)

    (tmp_path / "k").mkdir()
    write_plan(str(tmp_path / "k"), made)

    def missing(*, compiles: bool, measures: bool, made: str | None) -> None:
        assert not compiles and measures and made == str(tmp_path / "k")

    def run(folder: str, wanted: Plan, *, runs: int, deadline: float, say: Callable[[str], None]) -> dict[str, object]:
        return timed(wanted, partial(invented, wanted, "", "", -1), deadline=deadline, say=say)

    monkeypatch.setattr(bench_gemm_sweep, "run", run)
    monkeypatch.setattr(cute_bench, "_require", missing)
    monkeypatch.setattr(cute_bench, "_machine", lambda: {"gpu": "NVIDIA Test 200"})
    path = tmp_path / "sweep.json"
    words = ["gemm", "--fit", "--random", "3", "--seed", "2", "--run", str(tmp_path / "k"), "--json", str(path)]
    assert main([*words, "--budget", "500"]) == 0
    out = capsys.readouterr().out
    assert (
        "  1 of 3 " in out
        and " of torch\n" in out
        and f"to fit the cost model, run: cute-bench gemm --fit {path}" in out
    )
    record = json.loads(path.read_text())
    assert record["date"] and record["command"].startswith("cute-bench gemm --fit --random 3")
    assert len(read_sweeps([path]).rows) == 3
    assert main(["gemm", "--regret", str(path)]) == 0
