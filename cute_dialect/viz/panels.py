"""SVG of grids of cells, and their arrangement in one picture."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from cute_dialect.viz.cells import Panel, edges, few
from cute_dialect.viz.drawing import Drawing, text

WIDEST = 1180
LARGEST, SMALLEST = 40, 7
LEAST_FONT, EASY_FONT = 5.0, 7.0
"""Font sizes in pixels that are just readable, and easily readable."""

ROOM = 0.86
"""Fraction of a cell's side that its text may take."""

GAP = 34


class _Word(NamedTuple):
    """A word, centered at a point, with its size in pixels."""

    x: float
    y: float
    text: str
    size: float


def cell_size(most: int) -> float:
    """Return the side of a cell in pixels for ``most`` cells in a row or column: 40, or less to fit the page."""
    return max(SMALLEST, min(LARGEST, WIDEST // max(most, 1)))


def picture(
    title: str, placed: Sequence[tuple[Panel, float, float]], notes: Sequence[str] = (), size: float = 0
) -> Drawing:
    """Return the picture of panels whose first cells are at these positions in pixels, with lines of notes below."""
    few(sum(p.rows * p.columns for p, _, _ in placed))
    side = size or cell_size(max(max(p.rows, p.columns) for p, _, _ in placed))
    body = [text(16, 24, title, 14, "h")]
    right, bottom = 16 + 8.5 * len(title), 40.0
    for panel, x, y in placed:
        body += _panel(panel, x + 16, y + 40, side)
        wide = max(panel.columns * side, 7.3 * len(panel.title) - panel.left) + (20 if panel.more[1] else 0)
        right = max(right, x + 16 + wide)
        bottom = max(bottom, y + 40 + panel.rows * side + (18 if panel.more[0] else 0))
    for i, note in enumerate(notes):
        body.append(text(16, bottom + 24 + 17 * i, note, 12, "dim"))
        right = max(right, 16 + 7.3 * len(note))
    bottom += 24 + 17 * len(notes) - (5 if notes else 8)
    places = tuple((y / side, x / side) for _, x, y in placed)
    return Drawing(
        title, round(right + 16), round(bottom), "\n".join(body), tuple(p for p, _, _ in placed), places=places
    )


def beside(title: str, panels: Sequence[Panel], notes: Sequence[str] = (), largest: int = LARGEST) -> Drawing:
    """Arrange panels in rows so that the picture is about 1.5 times as wide as high.

    ``largest`` limits the cell size.
    """
    side = min(largest, cell_size(max(max(p.rows, p.columns) for p in panels)))
    shapes = [_rows_of(panels, side, n) for n in range(1, len(panels) + 1)]
    placed, _, _ = min(shapes, key=lambda s: max(s[1] / 1.6, s[2]))
    return picture(title, placed, notes, side)


def _rows_of(
    panels: Sequence[Panel], side: float, per_row: int
) -> tuple[list[tuple[Panel, float, float]], float, float]:
    """Place panels in rows of ``per_row``. Returns the placed panels, and the total width and height."""
    placed: list[tuple[Panel, float, float]] = []
    widest = y = 0.0
    for at in range(0, len(panels), per_row):
        row = panels[at : at + per_row]
        x, top = 0.0, max(p.top for p in row)
        for p in row:
            placed.append((p, x + p.left, y + top))
            x += max(p.left + p.columns * side, 7.6 * len(p.title)) + GAP + (16 if p.more[1] else 0)
        widest = max(widest, x - GAP)
        y += top + max(p.rows for p in row) * side + GAP
    return placed, widest, y - GAP


# ------------------------------------------------------------------------------------------------------------ one panel


def _panel(p: Panel, x: float, y: float, side: float) -> list[str]:
    out: list[str] = []
    wide, high = p.columns * side, p.rows * side
    if p.title:
        out.append(text(x - p.left + (16 if p.names[0] else 0), y - p.top + 12, p.title, 12, "h"))
    out += _axes(p, x, y, side)
    out.append('<g class="cells">')
    sizes = _font_sizes(p, side)
    words: list[_Word] = []
    for i, row in enumerate(p.cells):
        for j, cell in enumerate(row):
            at_x, at_y = x + j * side, y + i * side
            key = f'data-k="{html.escape(cell.key)}" ' if cell.key else ""
            out.append(
                f'<path {key}class="{cell.fill}" d="M{at_x:g} {at_y:g}h{side:g}v{side:g}h{-side:g}z">'
                f"<title>{html.escape(cell.hover)}</title></path>"
            )
            size = sizes.get(len(cell.lines), 0.0)
            if size >= LEAST_FONT:
                first = at_y + side / 2 + size * (0.36 - 0.58 * (len(cell.lines) - 1))
                for k, line in enumerate(cell.lines):
                    if line:
                        words.append(_Word(at_x + side / 2, round(first + 1.16 * size * k, 1), line, size))
    out.append("</g>")
    out += _lines(p, x, y, side)
    out += _written(_larger(words, _regions(p), p, x, y, side))
    if p.more[1]:
        out.append(text(x + wide + 4, y + high / 2 + 5, "⋯", 16, "dim"))
    if p.more[0]:
        out.append(text(x + wide / 2, y + high + 15, "⋮", 16, "n dim"))
    return out


def _font_sizes(p: Panel, side: float) -> dict[int, float]:
    """Return the font size for each number of lines. All cells of a panel share it."""
    longest: dict[int, int] = {}
    for row in p.cells:
        for cell in row:
            n = len(cell.lines)
            longest[n] = max(longest.get(n, 1), *(len(line) for line in cell.lines), 1)
    least = min((ROOM * side / (0.61 * n) for n in longest.values()), default=0.0)
    return {n: round(min(12.0, least, (side - 3) / (1.2 * max(n, 1))), 1) for n in longest}


class _Region(NamedTuple):
    """A rectangle of cells with the same key: first row and column, and number of rows and columns."""

    row: int
    column: int
    high: int
    wide: int


def _regions(p: Panel) -> list[_Region]:
    """Return the rectangles of cells with the same key."""
    out: list[_Region] = []
    for i, row in enumerate(p.cells):
        for j, cell in enumerate(row):
            key = cell.key
            if not cell.lines or not key or (j and row[j - 1].key == key) or (i and p.cells[i - 1][j].key == key):
                continue
            wide = next((n for n in range(1, p.columns - j) if row[j + n].key != key), p.columns - j)
            high = next(
                (n for n in range(1, p.rows - i) if any(c.key != key for c in p.cells[i + n][j : j + wide])), p.rows - i
            )
            out.append(_Region(i, j, high, wide))
    return out


def _larger(
    words: list[_Word], regions: Sequence[_Region], p: Panel, x: float, y: float, side: float
) -> Sequence[_Word]:
    """Return one word per rectangle of equal cells if single cells are too small for text, else all words."""
    if words and min(w.size for w in words) >= EASY_FONT:
        return words
    if words and any(r.high * r.wide < 4 for r in regions):
        return words
    out: list[_Word] = []
    for r in regions:
        shown = _name(p, r)
        size = min(11.0, (r.wide * side - 3) / (0.61 * len(shown)), 0.82 * r.high * side)
        if r.high * r.wide > 1 and size >= LEAST_FONT:
            at_x, at_y = x + (r.column + r.wide / 2) * side, y + (r.row + r.high / 2) * side + 0.36 * size
            out.append(_Word(round(at_x, 1), round(at_y, 1), shown, round(size, 1)))
    return out or words


def _name(p: Panel, r: _Region) -> str:
    """Return the text of a rectangle: the first line of its cells, and the range of second lines in a single row."""
    row = p.cells[r.row][r.column : r.column + r.wide]
    name = row[0].lines[0]
    if r.high > 1 or r.wide < 4 or len(row[0].lines) != 2:
        return name
    values = [c.lines[-1] for c in row]
    begin = int(values[0][1:]) if values[0][1:].isdecimal() else 0
    runs_on = values == [f"V{begin + n}" for n in range(r.wide)]
    return f"{name} {values[0]}–{begin + r.wide - 1}" if runs_on else name


def _written(words: Sequence[_Word]) -> list[str]:
    """Return words as SVG, grouped by size."""
    by_size: dict[float, list[_Word]] = {}
    for word in words:
        by_size.setdefault(word.size, []).append(word)
    out: list[str] = []
    for size, group in by_size.items():
        out.append(f'<g class="n" font-size="{size:g}" pointer-events="none">')
        out += [f'<text x="{w.x:g}" y="{w.y:g}">{html.escape(w.text)}</text>' for w in group]
        out.append("</g>")
    return out


def _axes(p: Panel, x: float, y: float, side: float) -> list[str]:
    out: list[str] = []
    if p.names[0]:
        at_x, at_y = x - p.left + 10, y + p.rows * side / 2
        out.append(f'<g transform="rotate(-90 {at_x:g} {at_y:g})">{text(at_x, at_y, p.names[0], 12, "n dim")}</g>')
    if p.names[1]:
        out.append(text(x + p.columns * side / 2, y - (20 if p.numbered[1] else 6), p.names[1], 12, "n dim"))
    if p.numbered[1]:
        step = _step(side, 8 * len(str(p.columns - 1)) + 4, p.column_breaks)
        out += [text(x + (j + 0.5) * side, y - 6, str(j), 10, "n dim") for j in range(0, p.columns, step)]
    if p.numbered[0]:
        step = 1 if p.row_labels and side >= 11 else _step(side, 13, p.row_breaks)
        out += [
            text(x - 6, y + (i + 0.5) * side + 3.5, p.row_labels[i] if p.row_labels else str(i), 10, "e dim")
            for i in range(0, p.rows, step)
        ]
    return out


def _step(side: float, room: float, breaks: Sequence[tuple[int, int]]) -> int:
    """Return the step between numbered rows or columns: 1, the span of a nested mode, or a power of two."""
    if side >= room:
        return 1
    fitting = [span for span, _ in breaks if span * side >= room]
    step = 1
    while step * side < room:
        step *= 2
    return min([*fitting, step]) if fitting else step


def _lines(p: Panel, x: float, y: float, side: float) -> list[str]:
    wide, high = p.columns * side, p.rows * side
    paths: dict[str, list[str]] = {}

    def across(i: float, name: str) -> None:
        paths.setdefault(name, []).append(f"M{x:g} {y + i * side:g}h{wide:g}")

    def down(j: float, name: str) -> None:
        paths.setdefault(name, []).append(f"M{x + j * side:g} {y:g}v{high:g}")

    plain = "l0" if side >= 12 else "thin"
    if side >= 9:
        for i in range(1, p.rows):
            across(i, plain)
        for j in range(1, p.columns):
            down(j, plain)
    for count, spans, draw in ((p.rows, p.row_breaks, across), (p.columns, p.column_breaks, down)):
        for i in range(1, count):
            weights = [w for span, w in spans if i % span == 0]
            if weights:
                draw(i, f"l{max(weights)}")
    for i, weight in p.row_starts:
        across(i, f"l{weight}")
    for border in p.borders:
        for i, j, to_i, to_j in edges(border.cells):
            step = f"h{(to_j - j) * side:g}" if i == to_i else f"v{(to_i - i) * side:g}"
            piece = f"M{x + j * side:g} {y + i * side:g}{step}"
            paths.setdefault(f"l{border.weight}", []).append(piece)
    paths.setdefault("l1", []).append(f"M{x:g} {y:g}h{wide:g}v{high:g}h{-wide:g}z")
    return [
        f'<path class="{name}" pointer-events="none" d="{"".join(d)}"/>'
        for name, d in sorted(paths.items(), key=_weight)
    ]


def _weight(item: tuple[str, list[str]]) -> str:
    return "" if item[0] == "thin" else item[0]
