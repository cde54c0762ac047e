"""LaTeX documents that draw grids with TikZ, similar to CUTLASS's ``print_latex``.

A cell is a node of 1 cm at (row, column), with its color and its lines. In a tiled MMA, A is on the left, B on top, and
C where the two meet.  Source of the style: CUTLASS ``include/cute/util/print_latex.hpp`` (BSD-3).
"""

from __future__ import annotations

from collections.abc import Sequence

from cute_dialect.viz.cells import Panel, edges
from cute_dialect.viz.errors import DrawingError
from cute_dialect.viz.palette import tone

BREAK = "\\\\"
"""The end of a line in a cell."""

_SPECIAL = {c: "\\" + c for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\^{}",
    "→": r"$\to$",
    "←": r"$\gets$",
    "⋯": r"$\cdots$",
    "⋮": r"$\vdots$",
}

_APART = 3
"""Cells between panels, which leave room for row and column numbers and the title."""

_SIZES = ((4, ""), (5, "\\small "), (6, "\\footnotesize "), (8, "\\scriptsize "))
"""Pairs of letters per line of a cell and the font size at which they fit."""


def document(title: str, panels: Sequence[Panel], places: Sequence[tuple[float, float]]) -> str:
    """Return a document that draws panels as one picture. ``places`` holds the row and column, in cells, of each panel.

    Raises DrawingError if there are no panels.
    """
    if not panels:
        raise DrawingError(f"LaTeX draws grids of cells; {title} is not one")
    used = sorted({c.fill for p in panels for row in p.cells for c in row})
    colours = [f"\\definecolor{{{name}}}{{HTML}}{{{tone(name, 'light')[1:].upper()}}}" for name in used]
    rows = _starts([(y, y + p.rows, p.rows) for p, (y, _) in zip(panels, places)])
    columns = _starts([(x, x + p.columns, p.columns) for p, (_, x) in zip(panels, places)])
    style = "x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm,outer sep=0pt}"
    body = [line for p, i, j in zip(panels, rows, columns) for line in _panel(p, i, j)]
    return "\n".join(
        [
            f"%% {title}", "\\documentclass[border=4pt]{standalone}", "\\usepackage{tikz}", *colours,
            "\\begin{document}", f"\\begin{{tikzpicture}}[{style}]", *body, "\\end{tikzpicture}", "\\end{document}", "",
        ]
    )  # fmt: skip


def _starts(spans: Sequence[tuple[float, float, int]]) -> list[int]:
    """Return integer start positions of panels with (begin, end, cell count). Their relative order is kept.

    >>> _starts([(0.7, 8.7, 8), (10.1, 18.1, 8)])
    [0, 11]
    """
    found: dict[float, int] = {}
    for begin in sorted({b for b, _, _ in spans}):
        found[begin] = max((found[b] + n + _APART for b, e, n in spans if e <= begin), default=0)
    return [found[begin] for begin, _, _ in spans]


def _panel(p: Panel, top: int, left: int) -> list[str]:
    """Return the lines that draw a panel whose first cell is at (top, left)."""
    out: list[str] = []
    above = top - (2 if p.numbered[1] else 1)
    if p.title:
        highest = above - (0.8 if p.names[1] else 0)
        out.append(f"\\node[anchor=west] at ({highest:g},{left - 0.6:g}) {{\\texttt{{{_escaped(p.title)}}}}};")
    if p.names[0]:
        out.append(f"\\node[rotate=90] at ({top + (p.rows - 1) / 2:g},{left - 1.8:g}) {{{_escaped(p.names[0])}}};")
    if p.names[1]:
        out.append(f"\\node at ({above + 0.2:g},{left + (p.columns - 1) / 2:g}) {{{_escaped(p.names[1])}}};")
    longest = max((len(line) for row in p.cells for c in row for line in c.lines), default=0)
    size = next((s for n, s in _SIZES if longest <= n), "\\tiny ")
    for i, row in enumerate(p.cells):
        for j, cell in enumerate(row):
            lines = [_escaped(line) for line in cell.lines]
            words = f"\\shortstack{{{f' {BREAK} '.join(lines)}}}" if len(lines) > 1 else "".join(lines)
            out.append(f"\\node[fill={cell.fill}] at ({top + i},{left + j}) {{{size if words else ''}{words}}};")
    out.append(f"\\draw[color=black,thick,shift={{({top - 0.5},{left - 0.5})}}] (0,0) grid ({p.rows},{p.columns});")
    out += [
        f"\\draw[line width={1 + weight}pt,shift={{({top - 0.5},{left - 0.5})}}] ({a},{b}) -- ({c},{d});"
        for a, b, c, d, weight in _heavier(p)
    ]
    if p.numbered[0]:
        labels = p.row_labels or [str(i) for i in range(p.rows)]
        out += [
            f"\\node at ({top + i},{left - 1}) {{\\Large{{\\texttt{{{_escaped(x)}}}}}}};" for i, x in enumerate(labels)
        ]
    if p.numbered[1]:
        out += [f"\\node at ({top - 1},{left + j}) {{\\Large{{\\texttt{{{j}}}}}}};" for j in range(p.columns)]
    if p.more[0]:
        out.append(f"\\node at ({top + p.rows},{left + (p.columns - 1) / 2:g}) {{\\Large{{{_escaped('⋮')}}}}};")
    if p.more[1]:
        out.append(f"\\node at ({top + (p.rows - 1) / 2:g},{left + p.columns}) {{\\Large{{{_escaped('⋯')}}}}};")
    return out


def _heavier(p: Panel) -> list[tuple[int, int, int, int, int]]:
    """Return the lines of nested modes and the borders: (row, column) of both ends, and the weight."""
    out: list[tuple[int, int, int, int, int]] = []
    for i in range(1, p.rows):
        weight = max((w for span, w in p.row_breaks if i % span == 0), default=0)
        if weight:
            out.append((i, 0, i, p.columns, weight))
    for j in range(1, p.columns):
        weight = max((w for span, w in p.column_breaks if j % span == 0), default=0)
        if weight:
            out.append((0, j, p.rows, j, weight))
    out += [(i, 0, i, p.columns, weight) for i, weight in p.row_starts]
    return out + [(*piece, border.weight) for border in p.borders for piece in edges(border.cells)]


def _escaped(words: str) -> str:
    return "".join(_SPECIAL.get(c, c) for c in words)
