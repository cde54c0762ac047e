"""The text that crosses to upstream MLIR: generic form, in which values have numbers and long types an alias each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.ir.generic import GenericWriter

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from xdsl.ir import Attribute, Operation

__all__ = ["handoff_text"]

_LONG = 80
"""A struct type whose text is longer is written once, as an alias: accumulators have hundreds of members."""


def handoff_text(
    module: Operation,
    *,
    locations: bool = True,
    retold: Mapping[Attribute, str] | None = None,
) -> str:
    """Return ``module`` in generic form.  ``locations`` adds where each op comes from, so that errors can say it.

    ``retold`` gives the text of locations that are to be written otherwise than they are; with it an op without a
    location says so, where otherwise upstream would take a place in this text.
    """
    writer = _HandOff(locations, retold or {})
    text = writer.write(module)
    return "".join([*writer.aliases, text, "\n"])


class _HandOff(GenericWriter):
    def __init__(self, locations: bool, retold: Mapping[Attribute, str]):
        super().__init__(locations=locations, unknown_locations=bool(retold))
        self._retold = retold
        self.aliases: list[str] = []

    def write_attribute(self, attribute: Attribute) -> str:
        text = super().write_attribute(attribute)
        if len(text) > _LONG and text.startswith("!llvm.struct"):
            name = f"!s{len(self.aliases)}"
            self.aliases.append(f"{name} = {text}\n")
            return name
        return text

    def write_location(self, location: Attribute) -> str:
        found = self._retold.get(location) if self._retold else None
        return found or super().write_location(location)
