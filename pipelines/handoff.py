"""The IR text that is passed to upstream MLIR: generic form with numbered values and aliases for long types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, NameLoc, StringAttr

from cute_dialect.ir.diagnostics import Position, location_frames
from cute_dialect.ir.generic import GenericWriter

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Mapping

    from xdsl.ir import Attribute, Operation

    from cute_dialect.pipelines.line_info import CallSites

__all__ = ["handoff_text"]

_LONG = 80
"""Struct types with a longer text become aliases, because accumulators have hundreds of members."""


def handoff_text(
    module: Operation,
    *,
    locations: bool = True,
    location_texts: Mapping[Attribute, str] | None = None,
    call_sites: CallSites | None = None,
) -> str:
    """Return ``module`` in generic form.

    Args:
        locations: write the location of each op, so that upstream's errors can show it.
        location_texts: replacement texts of locations. With it, an op without a location gets an unknown location;
            otherwise upstream would use its position in this text.
        call_sites: for line tables; each location is written as one file, line and column.
    """
    writer = _HandOff(locations, location_texts or {}, call_sites)
    text = writer.write(module)
    return "".join([*writer.aliases, text, "\n"])


class _HandOff(GenericWriter):
    def __init__(self, locations: bool, location_texts: Mapping[Attribute, str], call_sites: CallSites | None):
        super().__init__(locations=locations, unknown_locations=bool(location_texts) or call_sites is not None)
        self._location_texts = location_texts
        self._call_sites = call_sites
        self.aliases: list[str] = []

    def write_attribute(self, attribute: Attribute) -> str:
        text = super().write_attribute(attribute)
        if len(text) > _LONG and text.startswith("!llvm.struct"):
            name = f"!s{len(self.aliases)}"
            self.aliases.append(f"{name} = {text}\n")
            return name
        return text

    def write_op_location(self, op: Operation) -> str:
        """Return the location of an op.

        Upstream passes file, line and name of an assertion's location to ``__assertfail``, which prints them. The name
        is therefore the function, with its callers. For line tables a function needs a location, otherwise upstream
        assigns its ops to no file; it gets the location of its first op.
        """
        if self._call_sites is not None and op.regions and "sym_name" in op.properties:
            inner = (location_frames(o.location) for o in op.walk())
            return next((_place_text(frames[-1].position) for frames in inner if frames), str(UNKNOWN_LOC))
        kernel = _kernel_around(op) if op.name == "cf.assert" and not self._location_texts else None
        frames = location_frames(op.location) if kernel is not None else ()
        if kernel is None or not frames:
            return super().write_op_location(op)
        function = frames[0].function or kernel
        called = [f", called from {Position(f.position.file, f.position.line, f.position.col)}" for f in frames[1:]]
        return str(NameLoc(StringAttr(function + "".join(called)), _place(frames[0].position)))

    def write_location(self, location: Attribute) -> str:
        if self._call_sites is not None:
            place = self._call_sites.place(location)
            return str(UNKNOWN_LOC) if place is None else _place_text(Position(*place))
        found = self._location_texts.get(location) if self._location_texts else None
        return found or super().write_location(location)


def _place(position: Position) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(position.file), IntAttr(position.line), IntAttr(position.col))


def _place_text(position: Position) -> str:
    """Return ``loc("file":line:col)``.  Plain file names skip xDSL's slower printer."""
    file, line, col, _ = position
    if file.isascii() and file.isprintable() and '"' not in file and "\\" not in file:
        return f'loc("{file}":{line}:{col})'
    return str(_place(position))


def _kernel_around(op: Operation) -> str | None:
    """Return the name of the GPU function around an op, or None for an op in host code."""
    here, name = op.parent_op(), None
    while here is not None and here.name != "gpu.module":
        found = here.properties.get("sym_name")
        name = found.data if isinstance(found, StringAttr) else name
        here = here.parent_op()
    return name if here is not None else None
