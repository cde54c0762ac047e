"""Parsers and messages that the programs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from cute_dialect.tools import cute_opt, cute_prove, cute_run

PROGRAMS: dict[str, tuple[Callable[[Sequence[str]], int], int, str]] = {
    "cute-opt": (cute_opt.main, 1, 'print cute.compile(f, arguments, device="cpu").mlir("trace") in the program'),
    "cute-prove": (cute_prove.main, 3, "call cute.testing.prove(f, arguments) in the program"),
    "cute-run": (cute_run.main, 1, "run python x.py"),
}
"""Program -> its function, its exit status for a Python file, and the beginning of the cure."""


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_read_mlir_refuse_python(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    main, status, cure = PROGRAMS[program]
    assert main(["x.py"]) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert f"x.py is a Python program, and {program} reads .mlir: {cure}" in line
