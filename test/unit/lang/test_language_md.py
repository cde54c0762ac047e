"""The code blocks of ``docs/language.md`` run in order on the interpreter and print the output shown."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "language.md"


def chapters(page: str) -> dict[str, list[tuple[str, str | None]]]:
    """Return the code blocks of each chapter, each with the output that the page shows after it."""
    found: dict[str, list[tuple[str, str | None]]] = {}
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        code: list[tuple[str, str | None]] = []
        for kind, block in blocks:
            if kind == "python":
                code.append((block, None))
            elif kind == "text":
                assert code and code[-1][1] is None, f"{title}: output without code before it"
                code[-1] = code[-1][0], block
        found[title] = code
    return found


def run_block(code: str, names: dict[str, Any], folder: Path) -> str:
    """Run a block as the file ``example.py`` and return its output."""
    folder.mkdir()
    file = folder / "example.py"
    file.write_text(code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(file), "exec"), names)
    return re.sub(rf"{re.escape(str(folder.parent))}/\d+/", "", printed.getvalue())


@pytest.mark.sample(every=7)
@pytest.mark.parametrize("title", [t for t, blocks in chapters(PAGE.read_text()).items() if blocks])
def test_chapter(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each chapter runs independently, after the imports of the page's first block."""
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    monkeypatch.setenv("CUTE_CHECKS", "auto")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path / "cache"))
    names: dict[str, Any] = {"__name__": "example"}
    exec("import numpy as np\nimport cute_dialect.lang as cute", names)
    for i, (code, output) in enumerate(chapters(PAGE.read_text())[title]):
        printed = run_block(code, names, tmp_path / str(i))
        assert printed == (output or ""), f"{title}, block {i + 1}"
