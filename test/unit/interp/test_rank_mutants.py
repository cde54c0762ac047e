"""The mutants of ``test/oracle/rank_mutants.py``: each is detected or equivalent."""

from __future__ import annotations

import pytest
import rank_mutants

SHARDS = 16
SUBJECTS = {s.name: s for s in rank_mutants.SUBJECTS}


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(1, SHARDS + 1))
@pytest.mark.parametrize("subject", [name for name in SUBJECTS if name not in rank_mutants.UNFINISHED])
def test_no_mutant_is_missed(subject: str, shard: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert rank_mutants.main([subject, "--shard", f"{shard}/{SHARDS}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith(f"{subject}: {len(lines) - 1} mutants: ")


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS)
def test_mutants_of_signals_and_waits(subject: str) -> None:
    found = rank_mutants.mutants(SUBJECTS[subject], rank_mutants.original(SUBJECTS[subject]))
    assert len(found) > 40
    for what in ("a signal of the GPU's scope", "a wait of the GPU's scope", "a signal", "llvm.load monotonic"):
        assert any(m.what == what for m in found)


def test_the_mutant_of_a_missing_signal_is_caught() -> None:
    """A shard can fail: without a signal the ranks wait for ever."""
    subject = SUBJECTS["example"]
    module = rank_mutants.original(subject)
    mutant = next(m for m in rank_mutants.mutants(subject, module) if m.what == "a signal")
    assert rank_mutants.verdict(subject, module, mutant).by.startswith("deadlock")
