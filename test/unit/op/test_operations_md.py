"""The code blocks of ``docs/operations.md`` and ``docs/plans.md`` run on the interpreter and print the output shown.
Each block runs separately, and ``...`` in an output matches any text.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str) -> list[tuple[str, str, str]]:
    """Return the location, code and expected output of each Python block."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = list(re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    result: list[tuple[str, str, str]] = []
    for block, after in zip(found, [*found[1:], None]):
        assert block[1] in ("python", "")
        if block[1] == "python":
            output = after[2] if after is not None and after[1] == "" else ""
            result.append((f"{page}:{text.count(chr(10), 0, block.start()) + 2}", block[2], output))
    return result


BLOCKS = [*blocks("operations.md"), *blocks("plans.md")]


def test_the_pages_have_blocks() -> None:
    assert len(BLOCKS) > 30


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Share one compile cache between all blocks."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.end_to_end
@pytest.mark.sample(every=1000)
@pytest.mark.parametrize("place, code, output", BLOCKS, ids=[place for place, _, _ in BLOCKS])
def test_block(
    place: str, code: str, output: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cache: Path
) -> None:
    monkeypatch.setenv("CUTE_CACHE_DIR", str(cache))
    torch.manual_seed(0)
    file = tmp_path / "block.py"  # Tracing reads a function's source from its file.
    file.write_text(code, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "block"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(file), "exec"), names)
    matches = doctest.OutputChecker().check_output(output, printed.getvalue(), doctest.ELLIPSIS)
    assert matches or output == printed.getvalue(), f"{place} prints\n{printed.getvalue()}"
