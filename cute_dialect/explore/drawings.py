"""Drawings of the layouts of values, grouped by the lines that define the values."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, NamedTuple, cast

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import is_static, product
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, IntTuple, Layout, Swizzle, layout_modes
from cute_dialect.dialect.memory_types import MemRefType, Ptr, element_bits
from cute_dialect.explore.links import Groups
from cute_dialect.ir.diagnostics import location_frames
from cute_dialect.lang.machine.atoms import MmaAtom
from cute_dialect.lang.machine.tiled_mma import TiledMma
from cute_dialect.lang.rewrite.trace_text import type_names
from cute_dialect.viz.cells import DrawingError
from cute_dialect.viz.dispatch import draw
from cute_dialect.viz.threads import draw_mma, draw_tv

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

    from cute_dialect.viz.drawing import Drawing

FEW = 1 << 10
"""Largest layout, in cells, that is drawn whole."""

_OF_A_PRODUCT = 1 << 13
"""Largest tiled MMA, in cells of its three operands, that is drawn."""

_MOST = 200
"""Maximum number of layouts drawn per module."""


class Value(NamedTuple):
    """A value with a layout: name, type, key of its drawing ("" for none), and the drawn part ("" for all)."""

    name: str
    type: str
    drawing: str
    part: str


class Drawings(NamedTuple):
    """The values of each group, the named types of the trace by line, and the drawings (HTML) by key."""

    values: dict[int, list[Value]]
    named: dict[int, Value]
    pictures: dict[str, str]


def drawings_of(module: ModuleOp, groups: Groups) -> Drawings:
    """Draw the layouts of the values and types of a traced module."""
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
    for line, (name, type) in enumerate(type_names(module).items()):  # One type per line, at the top of the trace.
        made = album.value(f"!{name}", type)
        if made is not None:
            named[line] = made
    return Drawings({g: v for g, v in values.items() if v}, named, album.pictures)


class _Album:
    """The drawings of types, without duplicates."""

    def __init__(self) -> None:
        self.pictures: dict[str, str] = {}
        self._of_type: dict[Attribute, tuple[str, str]] = {}
        self._of_title: dict[str, str] = {}

    def value(self, name: str, type: Attribute) -> Value | None:
        """Return the displayed value of a type, None if it has no layout."""
        if type not in self._of_type:
            self._of_type[type] = self._added(type)
        key, part = self._of_type[type]
        text = str(type) if key or layout_of(type) is not None else ""
        return Value(name, text if len(text) < 240 else f"{text[:237]}...", key, part) if text else None

    def _added(self, type: Attribute) -> tuple[str, str]:
        """Return the key of the drawing of a type and the part that it shows. Both are "" if there is none."""
        drawing, part = drawing_of(type) if len(self.pictures) < _MOST else (None, "")
        if drawing is None:
            return "", ""
        if drawing.title not in self._of_title:
            key = self._of_title[drawing.title] = f"d{len(self.pictures)}"
            self.pictures[key] = re.sub(r"\n+", "\n", drawing.fragment)
        return self._of_title[drawing.title], part


def layout_of(type: Attribute) -> AnyLayout | None:
    """Return the layout of a core type, None if it has none. A tensor's layout includes the swizzle of its pointer."""
    if isinstance(type, MemRefType):
        return _swizzled(type.data.ptr, type.layout)
    for found in (getattr(type, "layout", None), getattr(type, "data", None)):
        if isinstance(found, Layout | ComposedLayout):
            return found
    return None


def _swizzled(p: Ptr, layout: AnyLayout) -> AnyLayout:
    """Combine a tensor's layout with the swizzle of its pointer, converted from bytes to elements.

    Returns the layout unchanged if the pointer may start inside a period of the swizzle.
    """
    s = p.swizzle
    if s is None or s.shift < 0 or not isinstance(layout, Layout) or p.alignment % (1 << (s.bits + s.base + s.shift)):
        return layout
    base = s.base + 3 - (element_bits(p.element).bit_length() - 1)
    return ComposedLayout(Swizzle(s.bits, base, s.shift), 0, layout) if base >= 0 else layout


def drawing_of(type: Attribute) -> tuple[Drawing | None, str]:
    """Draw the layout of a type, or part of a large one.

    Returns the drawing (None if unknown) and the part it shows.
    """
    try:
        return _drawn(type)
    except (DrawingError, AlgebraError):
        return None, ""


def _drawn(type: Attribute) -> tuple[Drawing | None, str]:
    if type.name == "cute.tiled_copy":
        return draw_tv(type.data.layout_tv, type.data.tiler), ""  # type: ignore[attr-defined]
    if type.name == "cute.tiled_mma":
        return _product(type), ""
    layout = layout_of(type)
    return drawing_of_layout(layout) if layout is not None else (None, "")


def drawing_of_layout(layout: AnyLayout) -> tuple[Drawing | None, str]:
    """Draw a layout, or part of a large one.

    Returns the drawing and the part it shows.  Raises DrawingError, AlgebraError.
    """
    outer = layout.outer if isinstance(layout, ComposedLayout) else layout
    size = product(outer.shape)
    if not is_static(outer.shape) or not isinstance(size, int) or size < 2:
        return None, ""
    if size <= FEW:
        return draw(layout), ""
    first = _squeezed(Layout(first_of(outer.shape, FEW), outer.stride))
    part = ComposedLayout(layout.inner, layout.offset, first) if isinstance(layout, ComposedLayout) else first
    return draw(part), f"the first {product(first.shape)} of {size} elements"


def _squeezed(layout: Layout) -> Layout:
    """Remove modes of one element from a layout. If one nested mode remains, it becomes the whole layout."""
    if not isinstance(layout.shape, tuple):
        return layout
    left = [m for m in layout_modes(layout) if product(m.shape) != 1]
    if len(left) == 1:
        return _squeezed(left[0])
    return Layout(tuple(m.shape for m in left), tuple(m.stride for m in left))


def first_of(shape: IntTuple, most: int) -> IntTuple:
    """Return a static shape of at most ``most`` elements whose coordinates are the first ones of this shape.

    Modes 2 and higher are cut first, then the longer one of modes 0 and 1. Within a mode, outer modes are cut first.

    >>> first_of(((8, 16), (64, 1), (1, 4)), 2048), first_of((100, 100), 2048)
    (((8, 4), (64, 1), (1, 1)), (25, 50))
    """
    modes: list[IntTuple] = [*shape] if isinstance(shape, tuple) else [shape]
    sizes = [cast("int", product(m)) for m in modes]
    while prod(sizes) > most:
        later = [n for n in range(2, len(sizes)) if sizes[n] > 1]
        n = later[-1] if later else max(range(min(2, len(sizes))), key=lambda k: sizes[k])
        modes[n] = _cut(modes[n])
        sizes[n] = cast("int", product(modes[n]))
    return tuple(modes) if isinstance(shape, tuple) else modes[0]


def _cut(mode: IntTuple) -> IntTuple:
    """Halve a mode: the last extent greater than 1 is halved and rounded up.

    >>> _cut((8, (16, 1)))
    (8, (8, 1))
    """
    if not isinstance(mode, tuple):
        return -(-cast("int", mode) // 2)
    at = max(n for n, m in enumerate(mode) if product(m) != 1)
    return (*mode[:at], _cut(mode[at]), *mode[at + 1 :])


def _product(type: Attribute) -> Drawing | None:
    made = TiledMma(type, MmaAtom(type.data.atom, None))  # type: ignore[attr-defined, arg-type]
    m, n, k = made.tile_shape_mnk
    return draw_mma(made) if m * k + n * k + m * n <= _OF_A_PRODUCT else None
