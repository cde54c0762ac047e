"""The project's prose contains no opener and no word that CONTRIBUTING.md bans."""

from __future__ import annotations

import pytest
from prose import ROOT, check, everything, files, prose_of_page, prose_of_python


@pytest.mark.slow  # `make lint` runs the same check.
def test_prose_has_no_findings() -> None:
    found = [f for file in files(everything()) for f in check(file)]
    assert not found, "\n".join(map(str, found[-40:]))


@pytest.mark.parametrize(
    "source, rule",
    [
        ('def f():\n    """Return what blocks share."""\n', "opener"),
        ('"""How far kernels are compiled."""\n', "opener"),
        ("x = 1  # nobody knows the sums\n", "nobody"),
        ('raise ValueError("expected no parts of K here")\n', "expected no"),
        ("# Two bytes a thread.\n", "per"),
    ],
)
def test_findings_of_python(source: str, rule: str) -> None:
    found = check(ROOT / "sample.py", text=source)
    assert rule in {f.rule for f in found}


def test_code_is_not_checked() -> None:
    passages = list(prose_of_python('"""Add.\n\n>>> print("What")\n\nExample::\n\n    What x\n"""\n'))
    assert not any("What" in p.text for p in passages)
    assert not list(prose_of_page("```\nWhat is it\n```\n"))
