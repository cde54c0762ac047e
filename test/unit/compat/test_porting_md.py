"""The code of ``docs/porting.md`` runs on the interpreter and prints the output shown; its imports exist."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "porting.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_each_block_of_code_has_its_output() -> None:
    assert len(BLOCKS) == PAGE.count("```python\n") >= 2


@pytest.mark.parametrize(("code", "output"), BLOCKS)
def test_block(code: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    monkeypatch.setenv("CUTE_CHECKS", "auto")
    file = tmp_path / "example.py"
    file.write_text(code)
    names: dict[str, Any] = {"__name__": "example"}
    exec("import numpy as np\nimport cute_dialect.lang as cute", names)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(file), "exec"), names)
    assert printed.getvalue() == output


def test_imports_of_the_table() -> None:
    rows = re.findall(r"^\| `(.*cutlass.*)` \| `(.*)` \|$", PAGE, re.MULTILINE)
    assert len(rows) >= 7
    for _, ours in rows:
        exec(ours, {})
    for name in re.findall(r"cute_dialect[\w.]*", PAGE):
        importlib.import_module(name.removesuffix("."))
