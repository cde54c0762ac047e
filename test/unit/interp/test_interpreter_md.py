"""The Python blocks of ``docs/interpreter.md`` run and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from cute_dialect.interp import RunReport
from cute_dialect.runtime.call_options import read_checks

PAGE = Path(__file__).parents[3] / "docs" / "interpreter.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("code", "output"), BLOCKS)
def test_block(code: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CHECKS", "auto")
    file = tmp_path / "example.py"
    file.write_text(code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(file), "exec"), {"__name__": "example"})
    assert without_time(printed.getvalue().replace(f"{tmp_path}/", "")) == without_time(output)


def without_time(text: str) -> str:
    return re.sub(r"time: [\d.]+ s", "time: …", text)


def test_the_page_has_an_example() -> None:
    assert BLOCKS


def test_a_report_of_several_launches_adds_up() -> None:
    def report(blocks: int, unchecked: int) -> RunReport:
        made = RunReport()
        made.blocks = made.all_blocks = blocks
        made.unchecked, made.checks, made.seconds = unchecked, read_checks("all").names, 0.25
        made.warnings = [f"{blocks} blocks"]
        return made

    total = report(1000, 0)
    total.add(report(200, 150))
    assert str(total).splitlines() == [
        "launches   2 on the interpreter, blocks: 1,200, time: 0.500 s",
        "checks     oob, sync; race and uninit in 1,050 of 1,200 blocks",
        "warnings   2",
        "warning    1000 blocks",
        "warning    200 blocks",
        "work       0 lane-ops, 0 loads, 0 stores, 0 fences",
    ]
