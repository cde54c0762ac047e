"""Doctests in docstrings and in two pages of documentation."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "cute_dialect"
FOLDERS = sorted(p for p in PACKAGE.iterdir() if p.is_dir() and p.name != "__pycache__")


def modules(folder: Path) -> list[str]:
    """Return the modules below a folder of the package whose docstrings have examples."""
    paths = (p for p in sorted(folder.glob("**/*.py")) if "    >>> " in p.read_text(encoding="utf-8"))
    names = [".".join(p.relative_to(ROOT).with_suffix("").parts) for p in paths]
    return [name.removesuffix(".__init__") for name in names]


@pytest.mark.end_to_end  # A folder holds hundreds of examples.
@pytest.mark.sample(every=9)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_docstrings(folder: Path) -> None:
    wrong = [name for name in modules(folder) if doctest.testmod(importlib.import_module(name)).failed]
    assert wrong == []


def test_there_are_enough_examples() -> None:
    assert len([name for folder in FOLDERS for name in modules(folder)]) > 60


@pytest.mark.parametrize(("page", "least"), [("layouts.md", 40), ("atoms.md", 20)])
def test_pages(page: str, least: int) -> None:
    failed, attempted = doctest.testfile(str(ROOT / "docs" / page), module_relative=False)
    assert failed == 0
    assert attempted >= least
