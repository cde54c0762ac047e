"""Names for the long types of a trace, so that its text can be read: that of ``%gA`` is ``!gA``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

__all__ = ["type_names"]

LONG = 30
"""Types of as many characters as this get a name."""


def type_names(module: Operation) -> dict[str, Attribute]:
    """Return a name for each long type: that of the first value of the type that has one, else what kind it is."""
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
