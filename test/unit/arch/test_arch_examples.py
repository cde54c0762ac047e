"""The examples in the docstrings of the arch package hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import cute_dialect.arch

MODULES = [m.name for m in pkgutil.iter_modules(cute_dialect.arch.__path__) if m.name != "__main__"]


@pytest.mark.parametrize("module", ["", *MODULES])
def test_examples(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"cute_dialect.arch{'.' if module else ''}{module}"))
    assert result.failed == 0
