"""The Python blocks of ``docs/interpreter.md`` run and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

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
    assert printed.getvalue().replace(f"{tmp_path}/", "") == output


def test_the_page_has_an_example() -> None:
    assert BLOCKS
