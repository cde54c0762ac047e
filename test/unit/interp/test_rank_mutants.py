"""The mutants of ``test/oracle/rank_mutants.py``: each is detected or equivalent."""

from __future__ import annotations

import pytest
import rank_mutants


@pytest.mark.slow
@pytest.mark.parametrize("subject", [s.name for s in rank_mutants.SUBJECTS])
def test_no_mutant_is_missed(subject: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rank_mutants.main([subject]) == 0
    lines = capsys.readouterr().out.splitlines()
    caught = [line for line in lines if line.startswith("caught")]
    assert lines[-1].startswith(f"{subject}: {len(lines) - 1} mutants: {len(caught)} caught, ")
    assert len(caught) > 20
    for what in ("a signal of the GPU's scope", "a wait of the GPU's scope", "a signal", "llvm.load monotonic"):
        assert any(f" {what} " in line for line in caught)
