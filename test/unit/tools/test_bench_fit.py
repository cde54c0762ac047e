"""``cute-bench gemm --fit`` and ``--regret``, with sweeps whose times are simulated from known costs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from math import exp
from pathlib import Path
from typing import Any

import pytest

from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.op.select.candidates import blocks, suits
from cute_dialect.op.select.cost_model import (
    COSTS,
    GIVEN,
    Costs,
    best,
    costs_of,
    costs_path,
    predict,
    ranked,
    read_costs,
    write_costs,
)
from cute_dialect.op.select.kernel_choice import Choice, Problem, encode
from cute_dialect.tools.bench.cases.gemm import of_menu, random_problems
from cute_dialect.tools.bench.fit import errors_by_kind, fit, fit_files, held_out, quality
from cute_dialect.tools.bench.sweep import Row, SweepError, read_sweeps
from cute_dialect.tools.cute_bench import main

GPU = "NVIDIA Test 200"
TRUTH = COSTS._replace(
    mma=1.3, l2_bytes=12.0, dram=1.4, launch=6.0, store_tile=2.0, split=12.0, clusters_meet=6.0, few_launch=8.0
)
"""Costs of a GPU with a third of the memory speed, where stores take twice as long and split-K four times."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put the user settings in an empty folder."""
    monkeypatch.setenv("CUTE_CONFIG_DIR", str(tmp_path / "config"))
    costs_of.cache_clear()
    yield tmp_path
    costs_of.cache_clear()


@cache
def invented(count: int = 100, noise: float = 0.01, truth: Costs = TRUTH) -> tuple[Row, ...]:
    """Simulate a sweep on a GPU with the costs ``truth``. Kernels are the best by both cost sets, and random ones."""
    rng = random.Random(1)
    rows: list[Row] = []
    for p in map(of_menu, random_problems(count, 77)):
        p = p._replace(element="f16", output="f16") if p.element == "bf16" else p
        listed = [c for _, c in ranked(p, COSTS._replace(sms=truth.sms))]
        kernels = dict.fromkeys([*listed[:10], *(c for _, c in ranked(p, truth)[:6]), *rng.sample(listed, 4)])
        times = (predict(c, p, truth) * exp(rng.gauss(0.0, noise)) for c in kernels)
        rows.append(Row(p, tuple(kernels), tuple(times)))
    return tuple(rows)


def sweep_file(path: Path, rows: tuple[Row, ...], sms: int = 132) -> Path:
    """Write the rows as a sweep file."""
    menu = {c.name: encode(c) for r in rows for c in r.kernels}
    listed = [
        {
            "problem": r.problem.key,
            "times": {"torch": 9.5, **{c.name: t for c, t in zip(r.kernels, r.times)}},
            "bad": {},
        }
        for r in rows
    ]
    path.write_text(json.dumps({"format": 1, "machine": {"gpu": GPU}, "sms": sms, "menu": menu, "rows": listed}))
    return path


@pytest.mark.slow
def test_the_fit_finds_the_costs_of_another_gpu(tmp_path: Path) -> None:
    rows = invented()
    held = [r for r in rows if held_out(r.problem)]
    assert 20 < len(held) < 45
    fitted = fit([r for r in rows if r not in held], COSTS, predictions=6_000_000)
    exact = [r for r in invented(noise=0.0) if held_out(r.problem)]
    before, after = quality(exact, COSTS), quality(exact, fitted)
    assert after.mean > 0.98 and after.mean > before.mean + 0.01 and after.beats(before)
    assert after.error < 0.03 < before.error
    assert quality(exact, TRUTH).mean == pytest.approx(1.0)
    assert all(getattr(fitted, n) == getattr(COSTS, n) for n in GIVEN)
    assert all(x > 0 for x in fitted)


@pytest.mark.slow
def test_costs_are_better_only_beyond_chance() -> None:
    rows = invented(60, 0.0)
    good, bad = quality(rows, TRUTH), quality(rows, COSTS)
    assert good.beats(bad) and not bad.beats(good) and not good.beats(good)
    # With the same choices, the more accurate predictions are better.
    slow = quality(rows, TRUTH._replace(ghz=TRUTH.ghz / 2, dram=TRUTH.dram / 2))
    same = slow._replace(outcomes=good.outcomes, rows=good.rows)
    assert good.beats(same) and not same.beats(good)
    # One choice that is 1 % slower is within the noise, but not better.
    first = good.outcomes[0]
    worse = good._replace(outcomes=(first._replace(taken_times=(first.taken_times[0] * 1.01, 1.0)), *good.outcomes[1:]))
    assert not worse._replace(error=good.error / 2).beats(good)


@pytest.mark.slow
def test_errors_per_kernel_class() -> None:
    rows = invented(60, 0.0)
    assert all(abs(k.error) < 1e-9 and k.taken == k.missed == 0 for k in errors_by_kind(quality(rows, TRUTH), TRUTH))
    cheap = TRUTH._replace(few_launch=TRUTH.few_launch - 4.0)
    found = {k.kind: k for k in errors_by_kind(quality(rows, cheap), cheap)}
    assert {*found} == {"few rows", "K in parts", "in turns", "cluster", "plain"}
    few = found.pop("few rows")
    assert few.error < -0.05 and few.taken > 0 and few.missed == 0
    assert all(abs(k.error) < 1e-9 and k.taken == 0 for k in found.values())
    lost = 1 - quality(rows, cheap).mean
    assert few.taken == pytest.approx(lost, rel=0.1) == sum(k.missed for k in found.values())


@pytest.mark.slow
def test_a_fit_is_the_same_each_time() -> None:
    rows = invented()[:20]
    assert fit(rows, COSTS, 3, 60_000) == fit(rows, COSTS, 3, 60_000) != COSTS


def test_held_out_set_depends_on_the_problem_only() -> None:
    found = list(map(of_menu, random_problems(600, 4)))
    assert 150 < sum(map(held_out, found)) < 250
    assert [held_out(p) for p in reversed(found)] == [held_out(p) for p in found][::-1]


@pytest.mark.slow
def test_costs_without_data_stay() -> None:
    """Without timed skinny kernels, the fit keeps their costs unchanged."""
    rows = [r for r in invented() if not any(c.skinny for c in r.kernels)][:30]
    fitted = fit(rows, COSTS, predictions=1_000_000)
    assert not any(c.skinny for r in rows for c in r.kernels)
    assert (fitted.few_launch, fitted.few_split) == pytest.approx((COSTS.few_launch, COSTS.few_split))
    assert fitted.launch != COSTS.launch


@pytest.mark.slow
def test_the_command_writes_better_costs_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = sweep_file(folder / "sweep.json", invented())
    report = folder / "report.json"
    assert main(["gemm", "--regret", str(path)]) == 0
    regret = capsys.readouterr().out
    assert f"{GPU}, 132 SMs: 100 problems, " in regret and " current costs " in regret
    assert main(["gemm", "--fit", str(path), "--json", str(report)]) == 0
    out = capsys.readouterr().out
    written = costs_path(GPU)
    assert out.splitlines()[-1] == f"written: {written}"
    found = read_costs(written)
    assert isinstance(found, Costs) and found != COSTS and costs_of(GPU) == found
    file = json.loads(written.read_text())
    assert file["gpu"] == GPU and file["date"] and file["command"].startswith("cute-bench gemm --fit ")
    assert file["held out"]["of_best"] > file["held out, before"]["of_best"]
    told = json.loads(report.read_text())
    assert told["written"] == str(written) and told["new"]["held out"] == file["held out"]
    held = [r for r in read_sweeps([path]).rows if held_out(r.problem)]
    assert quality(held, found).as_record() == file["held out"]  # The quality refers to the rounded costs in the file.
    # The current costs are now the best fit, so the file is unchanged or improved.
    before = written.read_bytes()
    assert main(["gemm", "--fit", str(path)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert (last.startswith("nothing written: ")) == (written.read_bytes() == before)


@pytest.mark.slow
def test_worse_costs_are_not_written(folder: Path) -> None:
    path = sweep_file(folder / "sweep.json", invented(60, 0.0))
    truth, output = folder / "truth.json", folder / "costs.json"
    write_costs(truth, GPU, TRUTH)
    said: list[str] = []
    found = fit_files([str(path)], seed=0, costs=str(truth), output=str(output), command="", say=said.append)
    assert found["written"] is None and not output.exists()
    assert said[-1] == "nothing written: on the held-out problems, the new costs are not better than the current ones"


@pytest.mark.slow
def test_several_files_are_one_sweep(tmp_path: Path) -> None:
    rows = invented()
    paths = [sweep_file(tmp_path / "a.json", rows[:10]), sweep_file(tmp_path / "b.json", rows[10:30])]
    assert read_sweeps(paths).rows == tuple(r._replace(peer=9.5) for r in rows[:30])


def halved(text: str) -> str:
    """Return the first half of a file, as a full disk leaves it."""
    return text[: len(text) // 2]


@pytest.mark.slow
def test_choices_that_were_not_timed_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = invented()[:12]
    assert main(["gemm", "--regret", str(sweep_file(folder / "all.json", rows))]) == 0
    assert "was not timed" not in capsys.readouterr().out
    less = tuple(Row(r.problem, r.kernels[1:], r.times[1:]) for r in rows[:3]) + rows[3:]  # without the best
    assert main(["gemm", "--regret", str(sweep_file(folder / "less.json", less))]) == 0
    assert "  for 3 problems the selected kernel was not timed" in capsys.readouterr().out


def edited(change: Callable[[Any], object]) -> Callable[[str], str]:
    """Return a function that applies a change to the JSON text of a sweep."""

    def edit(text: str) -> str:
        record = json.loads(text)
        change(record)
        return json.dumps(record)

    return edit


DAMAGES: list[tuple[Callable[[str], str], str]] = [
    (halved, "not a sweep: "),
    (lambda _: "[]", "not a sweep: list indices"),
    (lambda _: "\x00\xff", "not a sweep"),
    (edited(lambda r: r.update(format=2)), "expected a sweep of format 1, got format 2"),
    (edited(lambda r: r.pop("menu")), "not a sweep: no 'menu'"),
    (edited(lambda r: r.pop("format")), "not a sweep: no 'format'"),
    (edited(lambda r: r.update(sms=0)), f"not a sweep: GPU '{GPU}' of 0 SMs"),
    (edited(lambda r: r.update(rows=[])), "no problem has two or more kernels to choose from"),
    (
        edited(lambda r: r["rows"][0].update(problem="8x8x8")),
        "not a sweep: '8x8x8' is not a problem; use the form f16-f16-kk 128x8192x4096",
    ),
    (edited(lambda r: r["rows"][0]["times"].update(torch=-1)), "not a sweep: -1 us of torch"),
    (edited(lambda r: r["rows"][0].update(times=7)), "not a sweep: 'int' object"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "says"), DAMAGES)
def test_invalid_sweep_files_are_rejected(
    change: Callable[[str], str], says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sweep_file(folder / "sweep.json", invented()[:5])
    path.write_text(change(path.read_text()))
    for option in ("--fit", "--regret"):
        assert main(["gemm", option, str(path)]) == 1
        out, said = capsys.readouterr()
        assert out == "" and said.startswith(f"cute-bench: error: {path}: ") and says in said


@pytest.mark.slow
def test_unusable_sweep_files_are_rejected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gemm", "--fit", "nowhere.json"]) == 1
    assert capsys.readouterr().err == "cute-bench: error: nowhere.json: No such file or directory\n"
    a, b = sweep_file(folder / "a.json", invented()[:1]), folder / "b.json"
    b.write_text(a.read_text().replace(GPU, "another"))
    with pytest.raises(SweepError, match="expected sweeps of one GPU"):
        read_sweeps([a, b])
    assert main(["gemm", "--fit", str(a)]) == 1
    assert "too few problems to fit and to hold out" in capsys.readouterr().err
    assert main(["gemm", "--fit", str(a), "--costs", "nowhere.json"]) == 1
    assert capsys.readouterr().err == "cute-bench: error: --costs: file 'nowhere.json' does not exist\n"
    damaged = folder / "costs.json"
    damaged.write_text("{")
    assert main(["gemm", "--regret", str(a), "--costs", str(damaged)]) == 1
    assert capsys.readouterr().err.startswith(f"cute-bench: error: {damaged} is not a file of GPU costs")
    write_costs(damaged, GPU, COSTS._replace(sms=80))
    assert main(["gemm", "--regret", str(a), "--costs", str(damaged)]) == 1
    assert capsys.readouterr().err == f"cute-bench: error: expected costs for the 132 SMs of {GPU}, got costs for 80\n"


@pytest.mark.slow
def test_kernels_of_other_versions_are_left_out(folder: Path) -> None:
    rows = invented()[:4]
    path = sweep_file(folder / "sweep.json", rows)
    record = json.loads(path.read_text())
    for row in record["rows"]:
        row["times"] |= {"later": 3.0, "smaller": 4.0, "stranger": 5.0}
    record["menu"] |= {"later": {"quantum": True}, "smaller": {"sms": 80}}
    path.write_text(json.dumps(record))
    sweep = read_sweeps([path])
    assert sweep.rows == tuple(r._replace(peer=9.5) for r in rows)
    assert sweep.left_out == 12
    assert {*sweep.unknown} == {"later", "smaller", "stranger"} and "80 SMs" in sweep.unknown["smaller"]
    assert sweep.said.endswith("; skipped 12 times of 3 kernels that this version does not support")


def test_a_choice_of_a_smaller_gpu_differs_sensibly(folder: Path) -> None:
    """Select kernels for a GPU with 80 multiprocessors and half the memory bandwidth, read from a file of costs."""
    small = COSTS._replace(sms=80, dram=COSTS.dram / 2)
    write_costs(costs_path(GPU), GPU, small)
    costs = costs_of(GPU)
    assert costs == small
    changed = 0
    for p in map(of_menu, random_problems(60, 12)):
        here, there = best(p), best(p, costs)
        assert (there.skinny is not None or there.config.sms == 80) and suits(there, p)
        assert there.parts == 1 or blocks(there, p) <= 80  # Blocks that wait for each other must be resident together.
        assert predict(there, p, costs) > 0.9 * predict(here, p)
        same = here if here.skinny is not None else here._replace(config=here.config._replace(sms=80))
        changed += there != same
    assert 10 < changed < 60
    # 12 x 11 tiles of 128 x 256 fill one wave of 132 blocks but leave the second wave of 80 partly empty.
    whole = Problem(12 * 128, 11 * 256, 4096)
    wide = Choice(GemmConfig(cluster_m=1, deferred=False))
    assert predict(wide, whole, costs) > 1.7 * predict(wide, whole)
    assert predict(best(whole, costs), whole, costs) < 1.9 * predict(best(whole), whole)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rows", "--fit", "x"], "--fit applies only to gemm without --tune"),
        (["gemm", "--regret", "x", "--tune"], "--regret applies only to gemm without --tune"),
        (["gemm", "--fit", "x", "--regret", "x"], "--fit cannot be combined with --regret"),
        (["gemm", "--regret", "x", "--output", "y"], "--output cannot be combined with --regret FILE"),
        (["gemm", "--costs", "y"], "--costs applies only to --fit"),
    ],
)
def test_contradictory_options_are_rejected(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert capsys.readouterr() == ("", f"cute-bench: error: {says}\n")
