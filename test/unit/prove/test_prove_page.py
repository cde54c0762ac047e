"""The commands and programs of docs/prove.md on the synchronization of kernels print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest

from cute_dialect.tools import cute_prove

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "prove.md").read_text().partition("## Synchronization of kernels")[2].partition("\n## ")[0]


def shown(text: str) -> str:
    """Return an output without what differs between runs: hashes and seconds."""
    return re.sub(r"\d+\.\d s\b", "0.0 s", re.sub(r"sha256:[0-9a-f…]+", "sha256:…", text))


@pytest.mark.slow
def test_the_programs_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    file = tmp_path / "example.py"
    file.write_text("\n".join(program for program, _ in blocks))
    runpy.run_path(str(file))
    assert capsys.readouterr().out.replace(f"{tmp_path}/", "") == "".join(text for _, text in blocks)


@pytest.mark.slow
def test_the_commands_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test").symlink_to(ROOT / "test")
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    printed = io.StringIO()
    for line in (line for block in blocks for line in block.splitlines() if line.startswith("$ ")):
        print(line, file=printed)
        words = shlex.split(line)[1:]
        if words[0] == "sed":
            subprocess.run(line[2:], shell=True, check=True)
        else:
            assert words[0] == "cute-prove"
            with contextlib.redirect_stdout(printed):
                cute_prove.main(words[1:])
    assert shown(printed.getvalue()) == shown("".join(blocks))
