"""``cute-bench gemm --fit --random`` on the GPU: every kernel is correct and timed, and missing kernels are named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cute_dialect.tools.bench.sweep import read_plan, read_sweeps
from cute_dialect.tools.cute_bench import main

FOLDER = "sweep"


@pytest.fixture(autouse=True)
def need_the_multiprocessors() -> None:
    """Skip with a reason if the kernels are built for a GPU with another number of multiprocessors."""
    torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    found = torch.cuda.get_device_properties(0).multi_processor_count
    if found != 132:
        pytest.skip(f"NOT RUN: the sweep is for 132 SMs, this GPU has {found}")


def test_a_sweep(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = shutil.copytree(folder, tmp_path / "kernels")
    plan = read_plan(str(kernels), 12, 3)
    gone = plan.rows[0][1][0]
    shutil.rmtree(kernels / gone)
    path = tmp_path / "sweep.json"
    words = ["gemm", "--fit", "--random", "12", "--seed", "3", "--run", str(kernels), "--json", str(path)]
    assert main(words) == 0, capsys.readouterr().err
    record = json.loads(path.read_text())
    for row, (problem, names) in zip(record["rows"], plan.rows, strict=True):
        assert row["problem"] == problem.key
        assert {*row["bad"]} == {gone} & {*names}
        assert {*row["times"]} == {"torch", *names} - {gone}
        assert all(1 < t < 1e5 for t in row["times"].values())
    assert record["failed"] == {} and record["lost"] == {} and record["left"] == 0
    sweep = read_sweeps([path])
    assert sweep.sms == 132 and [r.problem for r in sweep.rows] == [p for p, _ in plan.rows]
    assert main(["gemm", "--regret", str(path)]) == 0
