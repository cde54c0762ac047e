"""The Python blocks of ``docs/several-gpus.md`` run, one after another, and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "several-gpus.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(BLOCKS) == 5
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for i, (code, output) in enumerate(BLOCKS):
        file = tmp_path / ("example.py" if i == 2 else f"example{i}.py")
        file.write_text(code)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(file), "exec"), names)
        assert printed.getvalue().replace(f"{tmp_path}/", "") == output
