"""A fast sample of ``test/oracle/mutants.py``: each mutant is detected or proved equivalent."""

from __future__ import annotations

import mutants
import pytest
import value_mutants
from mutations import value_mutations


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "kinds", "share"),
    [
        ("tma copy", "drop,weaken,move,bound", 1),
        ("transpose f16", "drop,weaken,bound", 0.5),
        ("softmax, a cluster", "drop,weaken,move", 1),
        ("GEMM sm_90, one block", "drop,weaken", 0.1),
        ("attention with functions, slices", "drop,weaken", 0.1),
    ],
)
def test_no_mutant_is_missed(kernel: str, kinds: str, share: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert mutants.main(["--only", kernel, "--kinds", kinds, "--share", str(share), "--seed", "1"]) == 0
    total = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("all "))
    _, mutated, caught, *_ = total.split()
    assert int(caught) >= int(mutated) * 0.5


@pytest.mark.slow
def test_parts_and_processes_run_each_mutant_once(capsys: pytest.CaptureFixture[str]) -> None:
    def lines(*options: str) -> list[str]:
        assert mutants.main(["--only", "tma copy", "--kinds", "move,weaken", "--verbose", *options]) == 0
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith(("caught", "equal"))]

    every = lines()
    parts = [lines("--jobs", "2", "--part", f"{part}/3") for part in (1, 2, 3)]
    assert len(every) > 6 and parts == [every[0::3], every[1::3], every[2::3]]


@pytest.mark.parametrize("part", ["0/3", "4/3", "3", "x/3", "1/0", "-1/3", ""])
def test_a_part_that_does_not_exist_is_refused(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        mutants.main(["--only", "tma copy", f"--part={part}"])
    assert f"{part!r} is not a part; write K/N with 1 <= K <= N, as in 3/16" in capsys.readouterr().err


@pytest.mark.slow
def test_missed_mutants_are_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the proofs, equivalent mutants count as missed."""
    monkeypatch.setattr(mutants, "proof", lambda *_: "")
    assert mutants.main(["--only", "tma copy", "--kinds", "move"]) == 1
    assert "missed  tma copy, @copy_tma: move nvvm.mbarrier.arrive.expect_tx later" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("subject", value_mutants.SUBJECTS)
def test_no_mutant_of_values_is_missed(subject: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert value_mutants.main(["--only", subject]) == 0
    assert f"{subject}: differs" in capsys.readouterr().out


@pytest.mark.slow
def test_equal_mutants_of_values_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(value_mutants, "EQUAL", {})
    monkeypatch.setattr(value_mutants, "value_mutations", lambda kernel: value_mutations(kernel)[:1])
    assert value_mutants.main(["--only", "sgemm"]) == 1
    assert "missed   sgemm: a loop ends one step later" in capsys.readouterr().out
