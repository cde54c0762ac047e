"""Drawings of the layouts of values, by the groups of the lines that make them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.explore.links import Groups

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.algebra.values import AnyLayout
    from cute_dialect.viz.drawing import Drawing

__all__ = ["Drawings", "Value", "drawing_of", "drawings_of", "layout_of"]

FEW = 1 << 11
"""Cells of a layout beyond which it is named, not drawn."""

_MOST = 200
"""How many layouts of a module are drawn."""


class Value(NamedTuple):
    """A value with a layout: its name, the text of its type, the key of its drawing ("": none)."""

    name: str
    type: str
    drawing: str


class Drawings(NamedTuple):
    """The values of each group; the types that have a name in the trace, by line; the drawings (HTML) by key."""

    values: dict[int, list[Value]]
    named: dict[int, Value]
    pictures: dict[str, str]


def drawings_of(module: ModuleOp, groups: Groups) -> Drawings:
    """Draw the layouts of a traced module's values and types."""
    from cute_dialect.front.readable import type_names
    from cute_dialect.ir.diagnostics import location_frames

    values: dict[int, list[Value]] = {}
    pictures: dict[str, str] = {}
    keys: dict[Attribute, str] = {}
    for op in module.walk():
        frames = location_frames(op.location)
        if not frames:
            continue
        group = groups.number(tuple((f.position.file, f.position.line) for f in frames))
        seen = values.setdefault(group, [])
        for value in _values(op.results, op.operands):
            if value.type not in keys:
                keys[value.type] = _draw(value.type, pictures)
            made = Value(f"%{value.name_hint}" if value.name_hint else "", _text(value.type), keys[value.type])
            if (made.drawing or layout_of(value.type) is not None) and made not in seen:
                seen.append(made)
    named: dict[int, Value] = {}
    for line, (name, type) in enumerate(type_names(module).items()):  # a line each, at the top of the trace
        key = keys[type] if type in keys else _draw(type, pictures)
        if key or layout_of(type) is not None:
            named[line] = Value(f"!{name}", _text(type), key)
    return Drawings({g: v for g, v in values.items() if v}, named, pictures)


def _values(*lists: object) -> Iterator[SSAValue]:
    for found in lists:
        yield from found  # type: ignore[misc]


def _text(type: Attribute) -> str:
    text = str(type)
    return text if len(text) < 240 else f"{text[:237]}..."


def layout_of(type: Attribute) -> AnyLayout | None:
    """Return the layout of a type of the core, if it has one."""
    from cute_dialect.algebra.values import ComposedLayout, Layout

    for found in (getattr(type, "layout", None), getattr(type, "data", None)):
        if isinstance(found, Layout | ComposedLayout):
            return found
    return None


def drawing_of(type: Attribute) -> Drawing | None:
    """Draw the layout of a type; None where there is none, or where it is not known or too large."""
    from cute_dialect.algebra.leaf import AlgebraError
    from cute_dialect.algebra.trees import is_static, product
    from cute_dialect.algebra.values import ComposedLayout
    from cute_dialect.viz.dispatch import draw
    from cute_dialect.viz.errors import DrawingError
    from cute_dialect.viz.threads import draw_tv

    try:
        if type.name == "cute.tiled_copy":
            return draw_tv(type.data.layout_tv, type.data.tiler)  # type: ignore[attr-defined]
        layout = layout_of(type)
        if layout is None:
            return None
        outer = layout.outer if isinstance(layout, ComposedLayout) else layout
        size = product(outer.shape)
        if not is_static(outer.shape) or not isinstance(size, int) or not 1 < size <= FEW:
            return None
        return draw(layout)
    except (DrawingError, AlgebraError):
        return None


def _draw(type: Attribute, pictures: dict[str, str]) -> str:
    """Draw the layout of a type, if it is known and small enough; return the key of its drawing, or nothing."""
    drawing = drawing_of(type) if len(pictures) < _MOST else None
    if drawing is None:
        return ""
    key = f"d{len(pictures)}"
    pictures[key] = re.sub(r"\n+", "\n", drawing.fragment)
    return key
