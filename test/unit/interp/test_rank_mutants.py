"""The mutants of ``test/oracle/rank_mutants.py``: each is detected or equivalent."""

from __future__ import annotations

import pytest
import rank_mutants


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subject", "verdicts"),
    [
        ("example", "EXAMPLE"),
    ],
)
def test_no_mutant_is_missed(subject: str, verdicts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rank_mutants.main([subject]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"{subject}: {verdicts}"
    for what in ("a signal of the GPU's scope", "a wait of the GPU's scope", "a signal", "llvm.load monotonic"):
        assert any(line.startswith("caught") and f" {what} " in line for line in lines)
