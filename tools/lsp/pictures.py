"""Pictures of layouts for hover text: a drawing small enough for a message, and a text table."""

from __future__ import annotations

import re

from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from cute_dialect.algebra.layout_pictures import layout_table, thread_value_table
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.trees import is_static, product
from cute_dialect.algebra.values import AnyLayout, ComposedLayout
from cute_dialect.arch.atom import MmaAtom
from cute_dialect.explore.drawings import drawing_of, drawing_of_layout, layout_of
from cute_dialect.ir.context import make_context
from cute_dialect.tools.lsp.analysis_results import Picture
from cute_dialect.viz.cells import DrawingError
from cute_dialect.viz.drawing import Drawing
from cute_dialect.viz.subjects import layout_given
from cute_dialect.viz.threads import draw_mma

FEW_IN_A_TABLE = 128
"""Maximum number of elements of a layout shown as a text table."""

WIDEST = 16
"""Maximum number of columns of a text table."""

MOST_BYTES = 70_000
"""Maximum size of an SVG file: VS Code truncates hover text at 100,000 characters, and base64 expands by 4/3."""

_TITLES = re.compile(r"<title>[^<]*</title>")
_CELL = re.compile(r'<path data-k="[^"]*" class="(?P<fill>[^"]*)" d="(?P<where>[^"]*)"></path>\n?')
_CELLS = re.compile(rf"(?:{_CELL.pattern.replace('?P<fill>', '').replace('?P<where>', '')})+")


def picture_of(drawn: str) -> Picture:
    """Draw an MLIR type (``!cute.layout<"(4,2):(2,1)">``) or a layout given as text.

    >>> print(picture_of("(2,2):(2,1)").table)
    (2,2):(2,1)
          0   1
        +---+---+
     0  | 0 | 1 |
        +---+---+
     1  | 2 | 3 |
        +---+---+
    """
    try:
        if not drawn.startswith("!"):
            layout = layout_given(drawn).layout
            return _picture(drawing_of_layout(layout), layout)
        type = Parser(make_context(), drawn).parse_type()
    except (ParseError, VerifyException, AlgebraError, DrawingError):
        return Picture()
    if type.name == "cute.tiled_copy":
        return _shown(drawing_of(type), _thread_table(type), "cute-explore FILE")
    row = _product(type)
    if row is not None:
        return _shown((draw_mma(row), ""), "", f"cute-viz {row.name} -o x.svg")
    return _picture(drawing_of(type), layout_of(type))


def _picture(drawn: tuple[Drawing | None, str], layout: AnyLayout | None) -> Picture:
    return Picture() if layout is None else _shown(drawn, _table(layout), f"cute-viz '{layout}' -o x.svg")


def _shown(drawn: tuple[Drawing | None, str], table: str, command: str) -> Picture:
    drawing, part = drawn
    if drawing is None:
        return Picture("", table)
    svg = small(drawing.svg)
    if len(svg) > MOST_BYTES:
        return Picture("", table, f"Too large to draw here; use `{command}`.")
    return Picture(svg, table, f"{part[0].upper()}{part[1:]} are drawn; use `{command}` to draw all." if part else "")


def small(svg: str) -> str:
    """Shrink a drawing: merge the cells of each colour into one path, which removes interactivity.

    >>> small('<path data-k="a" class="s0" d="M0 0h1"></path>\\n<path data-k="b" class="s0" d="M1 0h1"></path>')
    '<path class="s0" d="M0 0h1M1 0h1"/>'
    """

    def joined(m: re.Match[str]) -> str:
        fills: dict[str, str] = {}
        for cell in _CELL.finditer(m[0]):
            fills[cell["fill"]] = fills.get(cell["fill"], "") + cell["where"]
        return "".join(f'<path class="{fill}" d="{where}"/>' for fill, where in fills.items())

    return _CELLS.sub(joined, re.sub(r"\n+", "\n", _TITLES.sub("", svg)))


def _count(layout: AnyLayout) -> int:
    """Return the number of elements of a static layout; for a dynamic layout, a number too large for a table."""
    size = product((layout.outer if isinstance(layout, ComposedLayout) else layout).shape)
    return size if isinstance(size, int) else FEW_IN_A_TABLE + 1


def _table(layout: AnyLayout) -> str:
    outer = layout.outer if isinstance(layout, ComposedLayout) else layout
    if not is_static(layout) or not 1 < _count(layout) <= FEW_IN_A_TABLE:
        return ""
    modes = outer.shape if isinstance(outer.shape, tuple) else (outer.shape,)
    columns = product(modes[-1])
    if not isinstance(columns, int) or columns > WIDEST:
        return ""
    try:
        return layout_table(layout)
    except AlgebraError:  # It has more than two modes.
        return ""


def _thread_table(type: Attribute) -> str:
    data = getattr(type, "data")  # noqa: B009  (of a tiled copy alone)
    if _count(data.layout_tv) > FEW_IN_A_TABLE // 2:
        return ""
    try:
        return thread_value_table(data.layout_tv, data.tiler)
    except AlgebraError:
        return ""


def _product(type: Attribute) -> MmaAtom | None:
    """Return the instruction of an MMA atom or of a tiled MMA, or None."""
    row = getattr(getattr(type, "atom", type), "row", None)
    try:
        found = row() if callable(row) else row
    except AlgebraError:
        return None
    return found if isinstance(found, MmaAtom) else None
