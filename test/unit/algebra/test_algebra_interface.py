"""Public names of ``cute_dialect.algebra``."""

from __future__ import annotations

import pytest

from cute_dialect import algebra


def test_package_interface() -> None:
    for name in dir(algebra):
        assert getattr(algebra, name) is not None
    with pytest.raises(AttributeError):
        algebra.no_such_name  # noqa: B018


def test_slice_is_named_slice_() -> None:
    """``slice`` has the name of CuTe's function; ``slice_`` is an alias that does not shadow Python's builtin."""
    layout = algebra.Layout("(6,5):(5,1)")
    assert algebra.slice((algebra.UNDERSCORE, 2), layout) == algebra.slice_((algebra.UNDERSCORE, 2), layout)
    assert "slice" in dir(algebra)
