"""Attributes of ops as numbers."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.ir import Attribute, Operation

from cute_dialect.interp.errors import attr_of


def integer_of(op: Operation, name: str) -> int:
    """Return an integer attribute that the op must have."""
    return _integer(attr_of(op, name))


def integer_or_none(op: Operation, name: str) -> int | None:
    """Return an integer attribute, None if the op does not have it."""
    found = attr_of(op, name)
    return None if found is None else _integer(found)


def integers_of(op: Operation, name: str) -> tuple[int, ...]:
    """Return an array of integers, empty if the op does not have the attribute."""
    found = attr_of(op, name)
    if found is None:
        return ()
    assert isinstance(found, DenseArrayBase)
    return tuple(int(i) for i in found.get_values())


def _integer(attribute: Attribute | None) -> int:
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data
