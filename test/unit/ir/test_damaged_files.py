"""A fast sample of ``test/oracle/file_fuzz.py``: a damaged file gives output or a diagnostic, never a crash."""

from __future__ import annotations

import file_fuzz
import pytest


@pytest.mark.slow
def test_damaged_and_absurd_files_end_in_output_or_a_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CACHE", "0")
    pieces = file_fuzz.corpus()
    assert len(pieces) > 100
    assert list(file_fuzz.run(range(300), pieces)) == []


@pytest.mark.parametrize(("seed", "what"), [(0, "raise ValueError"), (1, "os.kill(os.getpid(), 11)")])
def test_fuzzer_reports_failures(seed: int, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer reports the seed of a case that raises an exception and of one that kills its process."""

    def broken(found: int, _: list[str]) -> str | None:
        if found == 5:
            exec(what)
        return "wrong" if found == 7 else None

    monkeypatch.setattr(file_fuzz, "check", broken)
    told = list(file_fuzz.run(range(10), []))
    assert [at for at, _ in told] == [5, 7]
