"""Progress reports of ``cute-run``, ``cute-bench`` and processes that compile."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from terminals import on_a_terminal

from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.progress import reporting
from cute_dialect.tools import cute_bench, cute_check, cute_explore, cute_run
from cute_dialect.tools.bench.runner import in_processes

ADD = str(Path(__file__).parents[2] / "examples" / "elementwise_add.mlir")
OPTIONS = [ADD, "--kernel", "add", "--device=cpu"]


def squared(x: int) -> int:
    if x == 3:
        raise ValueError("three")
    return x * x


@pytest.mark.slow
def test_worker_processes_report_progress(tmp_path: Path) -> None:
    file = tmp_path / "events"
    with reporting("never", str(file)):
        assert in_processes(squared, [5, 4, 2], ["a", "b", "c"]) == [25, 16, 4]
        with pytest.raises(ValueError, match="three"):
            in_processes(squared, [3], ["d"])
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert [e["event"] for e in events[-2:]] == ["start", "error"] and events[-1]["message"] == "three"
    assert events[-3]["event"] == "done" and events[-3]["step"] == 3


def test_interpreter_reports_its_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert cute_run.main([*OPTIONS, "--in", "100x300", "--in", "100x300", "--progress-json=-"]) == 0
    out, err = capsys.readouterr()
    events = [json.loads(line) for line in out.splitlines()]
    assert (events[0]["what"], events[0]["unit"]) == ("running", "blocks")
    assert events[-1]["event"] == "done" and events[-1]["step"] == events[-1]["total"] > 1
    assert " lane-ops/s" in events[1]["name"] and "blocks" in err


def test_runs_on_the_cpu_in_programs_are_shown(tmp_path: Path) -> None:
    """A call with device="cpu" reports finished blocks as events, or to the callback ``progress`` if one is passed."""
    a, file, heard = np.zeros((10, 100), np.float32), tmp_path / "events", list[int]()
    kernel = compile_cute(ADD).kernel("add")
    with reporting("never", str(file)):
        kernel(a, a, a.copy(), device="cpu")
        kernel(a, a, a.copy(), device="cpu", progress=lambda p: heard.append(p.done))
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert {(e["task"], e["total"]) for e in events} == {(1, heard[-1])}
    assert (events[0]["what"], events[-1]["event"]) == ("running", "done")


@pytest.mark.slow
def test_checking_and_exploring_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cute_check.main([ADD, "--progress-json=checked"]) == 0
    assert cute_explore.main([ADD, "--kernel=add", "--size=9", "-q", "--progress-json=explored"]) == 0
    checked, explored = ([json.loads(x) for x in Path(n).read_text().splitlines()] for n in ("checked", "explored"))
    assert [(e["event"], e["step"]) for e in checked] == [("start", 0), ("step", 1), ("done", 1)]
    assert {e["what"] for e in explored if e["event"] == "start"} == {"exploring", "running"}
    assert explored[-1]["event"] == "done" and explored[-1]["task"] == 1


@pytest.mark.slow
def test_interrupting_a_run() -> None:
    """The bar shows the time left. Ctrl-C removes it, restores the cursor and exits with status 130."""
    code = "import sys; from cute_dialect.tools import cute_run; cute_run.main()"
    command = ["-c", code, *OPTIONS, "--check=race", "--in", "4000x4000", "--in", "4000x4000"]
    written, status = on_a_terminal(command, interrupt_at=" left")
    assert status == 130 and "/8000 blocks" in written and " lane-ops/s" in written
    after = written[written.index("^C") :]
    assert "\x1b[?25h" in after and after.rstrip().endswith("interrupted") and "Traceback" not in written


def test_interrupting_a_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cute_dialect.tools.bench.cases.choose.random_problems", interrupted)
    assert cute_bench.main(["choose"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


@pytest.mark.parametrize("words", [["choose"], ["tune", "f.py:f"]])
def test_a_file_that_cannot_be_written(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cute_bench.main([*words, "--progress-json", str(tmp_path)]) == 1
    name = "cute-bench tune" if words[0] == "tune" else "cute-bench"
    assert capsys.readouterr().err == (f"{name}: error: --progress-json: cannot write '{tmp_path}': Is a directory\n")
