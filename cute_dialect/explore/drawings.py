"""Drawings of the layouts of values, by the groups of the lines that make them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.explore.links import Groups

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

    from cute_dialect.algebra.values import AnyLayout
    from cute_dialect.viz.drawing import Drawing

__all__ = ["Drawings", "Value", "drawing_of", "drawings_of", "layout_of"]

FEW = 1 << 11
"""Cells of a layout beyond which it is named, not drawn."""

_OF_A_PRODUCT = 1 << 13
"""The same, of the three operands of a tiled MMA."""

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
    album = _Album()
    for op in module.walk():
        chain = tuple((f.position.file, f.position.line) for f in location_frames(op.location))
        for group in groups.of_chain(chain):
            seen = values.setdefault(group, [])
            for value in (*op.results, *op.operands):
                made = album.value(f"%{value.name_hint}" if value.name_hint else "", value.type)
                if made is not None and made not in seen:
                    seen.append(made)
    named: dict[int, Value] = {}
    for line, (name, type) in enumerate(type_names(module).items()):  # a line each, at the top of the trace
        made = album.value(f"!{name}", type)
        if made is not None:
            named[line] = made
    return Drawings({g: v for g, v in values.items() if v}, named, album.pictures)


class _Album:
    """The drawings of types, each once."""

    def __init__(self) -> None:
        self.pictures: dict[str, str] = {}
        self._of_type: dict[Attribute, str] = {}
        self._of_title: dict[str, str] = {}

    def value(self, name: str, type: Attribute) -> Value | None:
        """Return what is shown of a value of a type; None if it has no layout."""
        if type not in self._of_type:
            self._of_type[type] = self._added(type)
        key = self._of_type[type]
        text = str(type) if key or layout_of(type) is not None else ""
        return Value(name, text if len(text) < 240 else f"{text[:237]}...", key) if text else None

    def _added(self, type: Attribute) -> str:
        """Return the key of a type's drawing, a new one if need be; nothing where there is none."""
        drawing = drawing_of(type) if len(self.pictures) < _MOST else None
        if drawing is None:
            return ""
        if drawing.title not in self._of_title:
            key = self._of_title[drawing.title] = f"d{len(self.pictures)}"
            self.pictures[key] = re.sub(r"\n+", "\n", drawing.fragment)
        return self._of_title[drawing.title]


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
    from cute_dialect.viz.errors import DrawingError

    try:
        return _drawn(type)
    except (DrawingError, AlgebraError):
        return None


def _drawn(type: Attribute) -> Drawing | None:
    """Draw the same.  Raises DrawingError, AlgebraError where it cannot be drawn."""
    from cute_dialect.algebra.trees import is_static, product
    from cute_dialect.algebra.values import ComposedLayout
    from cute_dialect.viz.dispatch import draw
    from cute_dialect.viz.threads import draw_tv

    if type.name == "cute.tiled_copy":
        return draw_tv(type.data.layout_tv, type.data.tiler)  # type: ignore[attr-defined]
    if type.name == "cute.tiled_mma":
        return _product(type)
    layout = layout_of(type)
    if layout is None:
        return None
    outer = layout.outer if isinstance(layout, ComposedLayout) else layout
    size = product(outer.shape)
    known = is_static(outer.shape) and isinstance(size, int) and 1 < size <= FEW
    return draw(layout) if known else None


def _product(type: Attribute) -> Drawing | None:
    from cute_dialect.front.atoms import MmaAtom
    from cute_dialect.front.tiled import TiledMma
    from cute_dialect.viz.threads import draw_mma

    made = TiledMma(type, MmaAtom(type.data.atom, None))  # type: ignore[attr-defined, arg-type]
    m, n, k = made.tile_shape_mnk
    return draw_mma(made) if m * k + n * k + m * n <= _OF_A_PRODUCT else None
