"""Aliases for the long types of a trace: the type of ``%gA`` becomes ``!gA``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

__all__ = ["type_names"]

LONG = 30
"""Minimum length of a type that gets an alias, in characters."""


def type_names(module: Operation) -> dict[str, Attribute]:
    """Return an alias for each long type: the name of the first named value of that type, else the type's kind."""
    named: dict[Attribute, str | None] = {}
    for value in _values(module):
        if named.get(value.type) is None and value.type.name.startswith(("cute.", "cute_nvgpu.")):
            named[value.type] = value.name_hint
    made: dict[str, Attribute] = {}
    for type, hint in named.items():
        if len(str(type)) >= LONG:
            made[_free(hint or type.name.rpartition(".")[2], made)] = type
    return made


def _values(module: Operation) -> Iterator[SSAValue]:
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _free(name: str, taken: dict[str, Attribute]) -> str:
    if name not in taken:
        return name
    return next(made for i in range(2, 1 << 20) if (made := f"{name}_{i}") not in taken)
