"""Progress reports: a bar on terminals only, consistent JSON events, and ``Ctrl-C``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from terminals import on_a_terminal

from cute_dialect.runtime import progress
from cute_dialect.runtime.progress import Task, reporting, seconds_left, track
from cute_dialect.runtime.settings import SettingError

# The bar appears at once, and each step waits until its line is drawn.
SLOW = """
import sys, time
import rich.console, rich.progress  # The bar imports them in its thread, which may take longer than the work.
from cute_dialect.runtime import progress
progress._DELAY = 0.0
for name in progress.track(["k0", "k1", "k2"], "compiling", "kernels"):
    time.sleep(0.3)
    print("said", name)
"""
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
COLOURS = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")

KEYS: Mapping[str, dict[str, tuple[type, ...]]] = {
    "start": {"format": (int,), "what": (str,), "unit": (str,)},
    "step": {"name": (str,), "left": (int, float, type(None))},
    "done": {},
    "error": {"message": (str,)},
}
ALL = {"event": (str,), "task": (int,), "step": (int,), "total": (int, type(None)), "seconds": (int, float)}


def read_events(text: str) -> list[list[dict[str, object]]]:
    """Return the events of each task after checking that they follow docs/progress.md."""
    tasks: dict[object, list[dict[str, object]]] = {}
    for line in text.splitlines():
        event = json.loads(line)
        keys = ALL | KEYS[event["event"]]
        assert set(event) == set(keys)
        assert all(isinstance(event[k], kinds) for k, kinds in keys.items()), event
        tasks.setdefault(event["task"], []).append(event)
    assert list(tasks) == list(range(1, len(tasks) + 1))
    for events in tasks.values():
        names = [e["event"] for e in events]
        assert names[0] == "start" and names[-1] in ("done", "error") and set(names[1:-1]) <= {"step"}
        for key in ("step", "seconds"):
            found = [e[key] for e in events]
            assert found == sorted(found)  # type: ignore[type-var]
    return list(tasks.values())


@pytest.mark.slow
def test_a_terminal_sees_a_bar_with_the_time_left(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    written, status = on_a_terminal([str(script)])
    assert status == 0
    assert "compiling" in written and "2/3 kernels" in written and "0:00 left" in written and "━" in written
    assert COLOURS.search(written)
    assert written.count(HIDE) == written.count(SHOW) == 1 and written.index(HIDE) < written.index(SHOW)
    assert written.endswith(f"\r\x1b[2K{SHOW}\r") or written.endswith(f"\x1b[2K{SHOW}"), repr(written[-40:])
    assert [x for x in re.findall(r"said k\d", written)] == ["said k0", "said k1", "said k2"]
    written, status = on_a_terminal([str(script)], {"NO_COLOR": "1"})
    assert status == 0 and "2/3 kernels" in written and not COLOURS.search(written)
    for quiet in ({"TERM": "dumb"}, {"CUTE_PROGRESS": "never"}):
        assert on_a_terminal([str(script)], quiet) == ("said k0\r\nsaid k1\r\nsaid k2\r\n", 0)


def test_pipes_show_no_progress_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    monkeypatch.setenv("FORCE_COLOR", "1")
    for when in ("auto", "always"):
        monkeypatch.setenv("CUTE_PROGRESS", when)
        ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        assert ran.stdout == "said k0\nsaid k1\nsaid k2\n"
        assert ("2/3 kernels" in ran.stderr) == (when == "always") == bool(ran.stderr)


def test_interrupts_restore_the_terminal(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    written, status = on_a_terminal([str(script)], interrupt_at="1/3 kernels")
    assert status == -2 and "KeyboardInterrupt" in written and "said k2" not in written
    after = written[written.index("^C") :]
    assert SHOW in after and after.index(SHOW) < after.index("Traceback") and HIDE not in after


def test_events_parse_and_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    file = tmp_path / "events"
    with reporting("never", str(file)), Task("all", unit="parts") as outer:
        for part in (3, 5):
            assert list(track(range(part), f"part {part}")) == list(range(part))
            outer.update(outer.done + 1, 2)
    first, second, third = read_events(file.read_text())
    assert [e["total"] for e in first] == [None, 2, 2, 2] and first[0]["what"] == "all"
    for events, count in ((second, 3), (third, 5)):
        assert [e["step"] for e in events] == [*range(count + 1), count]
        assert events[-1]["event"] == "done" and events[-1]["total"] == count
        assert events[-2]["left"] == 0.0


def test_fast_steps_share_an_event(tmp_path: Path) -> None:
    file = tmp_path / "events"
    with reporting("never", str(file)):
        for _ in track(range(10_000), "counting"):
            pass
    (events,) = read_events(file.read_text())
    assert len(events) < 1000 and [e["step"] for e in events[-2:]] == [10_000, 10_000]


@pytest.mark.parametrize(
    ("error", "message"),
    [(ValueError("no such kernel"), "no such kernel"), (KeyboardInterrupt(), "interrupted"), (OSError(), "OSError")],
)
def test_failures_are_events(error: BaseException, message: str, tmp_path: Path) -> None:
    file = tmp_path / "events"
    with pytest.raises(type(error)), reporting("never", str(file)):
        for i in track(range(3), "failing"):
            if i == 1:
                raise error
    (events,) = read_events(file.read_text())
    assert events[-1]["event"] == "error" and (events[-1]["message"], events[-1]["step"]) == (message, 1)


def test_break_ends_the_task(tmp_path: Path) -> None:
    file = tmp_path / "events"
    with reporting("never", str(file)):
        for _ in track(range(3), "left"):
            break
        for _ in track(range(2), "whole"):
            pass
    left, whole = read_events(file.read_text())
    assert (left[-1]["event"], left[-1]["step"]) == ("done", 0)
    assert (whole[-1]["event"], whole[-1]["step"]) == ("done", 2)


def test_the_environment_asks_for_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are appended to the file, so that several programs can share it."""
    file = tmp_path / "events"
    monkeypatch.setenv("CUTE_PROGRESS_JSON", str(file))
    for _ in range(2):
        with Task("compiling", 1, "kernels") as task:
            task.advance(name="gemm")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [x["event"] for x in lines] == ["start", "step", "done"] * 2
    monkeypatch.setenv("CUTE_PROGRESS_JSON", str(tmp_path / "no" / "events"))
    with pytest.raises(SettingError) as e, Task("compiling"):
        pass
    path = tmp_path / "no" / "events"
    assert str(e.value) == f"CUTE_PROGRESS_JSON: cannot write '{path}': No such file or directory"
    monkeypatch.setenv("CUTE_PROGRESS_JSON", "")
    monkeypatch.setenv("CUTE_PROGRESS", "yes")
    with pytest.raises(SettingError) as e, Task("compiling"):
        pass
    assert str(e.value) == "CUTE_PROGRESS: expected one of auto, always, never, got 'yes'"


def test_events_on_standard_output_are_alone_there(capsys: pytest.CaptureFixture[str]) -> None:
    with reporting("never", "-"):
        for name in track(["a"], "reading"):
            print("read", name)
    out, err = capsys.readouterr()
    assert len(read_events(out)) == 1 and err == "read a\n"


def test_the_time_left_is_that_of_the_mean_step() -> None:
    assert seconds_left(0, 5, 0.0, 3.0) is None
    assert seconds_left(4, 12, 8.0, 8.0) == 16.0
    assert seconds_left(4, 12, 8.0, 9.5) == 14.5
    assert seconds_left(4, 12, 8.0, 99.0) == 0.0


def test_hidden_bars_import_nothing() -> None:
    code = (
        "from cute_dialect.runtime.progress import track; list(track('ab', 'x'))\n"
        "import sys; print('rich' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
