"""The examples in the docstrings of the algebra and in its tutorial."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import cute_dialect.algebra as algebra

MODULES = sorted(p.stem for p in Path(algebra.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    module = algebra if name == "__init__" else import_module(f"cute_dialect.algebra.{name}")
    failed, attempted = doctest.testmod(module)
    assert failed == 0
    assert attempted > 0


def test_tutorial() -> None:
    page = Path(__file__).parents[3] / "docs" / "layouts.md"
    failed, attempted = doctest.testfile(str(page), module_relative=False)
    assert failed == 0
    assert attempted > 40


def test_package_interface() -> None:
    for name in dir(algebra):
        assert getattr(algebra, name) is not None
    with pytest.raises(AttributeError):
        algebra.no_such_name  # noqa: B018


def test_slice_has_its_own_name() -> None:
    """``slice`` as in CuTe; ``slice_`` where Python's own would be hidden."""
    from cute_dialect import algebra

    layout = algebra.Layout("(6,5):(5,1)")
    assert algebra.slice((algebra.UNDERSCORE, 2), layout) == algebra.slice_((algebra.UNDERSCORE, 2), layout)
    assert "slice" in dir(algebra)
