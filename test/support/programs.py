"""The project's command-line programs, run in this process, with their output and exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from cute_dialect.tools import cute_opt, cute_run


class CuteOpt:
    """Runs ``cute-opt`` and stores its output. Paths in ``folder`` are shortened to file names."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]):
        self.folder = folder
        self._capsys = capsys
        self.out = ""
        self.err = ""

    def __call__(self, *arguments: str) -> int:
        status = cute_opt.main(list(arguments))
        self.out, self.err = self._capsys.readouterr()
        self.err = self.err.replace(f"{self.folder}/", "")
        return status


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run ``cute-run`` and return its exit status, its output and its error messages."""
    status = cute_run.main(arguments)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return status, out, err
