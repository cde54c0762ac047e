"""The mutants of ``test/oracle/rank_mutants.py``: each is detected or equivalent."""

from __future__ import annotations

import pytest
import rank_mutants


@pytest.mark.slow
def test_no_mutant_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    assert rank_mutants.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "29 mutants: 24 caught, 3 equal, 2 result"
    for what in ("a signal of the GPU's scope", "a wait of the GPU's scope", "a signal", "llvm.load monotonic"):
        assert any(line.startswith("caught") and f" {what} " in line for line in lines)
