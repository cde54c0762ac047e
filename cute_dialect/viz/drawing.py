"""Drawings as files: SVG, HTML and PNG, LaTeX documents, and display in a notebook.

A LaTeX document draws grids with TikZ, similar to CUTLASS's ``print_latex``. A cell is a node of 1 cm at (row, column),
with its color and its lines. In a tiled MMA, A is on the left, B on top, and C where the two meet.  Source of the
style: CUTLASS ``include/cute/util/print_latex.hpp`` (BSD-3).
"""

from __future__ import annotations

import html
import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cute_dialect.files import checked_path, replace_file
from cute_dialect.viz.cells import DrawingError, Panel, edges
from cute_dialect.viz.palette import style, tone

# ---------------------------------------------------------------------------------------------------------------- LaTeX


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


# ------------------------------------------------------------------------------------------------------------- drawings


Path = str | os.PathLike[str]
THEMES = ("auto", "light", "dark")
FORMATS = (".svg", ".png", ".html", ".tex")

_HOVER = (
    "const k=event.target.closest('[data-k]'),o=this.querySelector('output');"
    "this.querySelectorAll('.hit').forEach(x=>x.classList.remove('hit'));o.style.visibility=k?'visible':'hidden';"
    "if(k){this.querySelectorAll('[data-k=&quot;'+k.dataset.k+'&quot;]').forEach(x=>x.classList.add('hit'));"
    "o.textContent=k.querySelector('title').textContent}"
)
"""Hover script of a page: outlines all cells with the key of the cell under the pointer, and shows its text."""

_SAYS = (
    "display:block;font:13px monospace;white-space:pre-line;min-height:2.8em;visibility:hidden;pointer-events:none;"
    "position:sticky;bottom:0;background:Canvas;color:CanvasText"
)
"""Style of the line below a picture that shows the hover text.

It stays visible if the picture is higher than the window, and is hidden if the pointer is on nothing.
"""


@dataclass(frozen=True)
class Drawing:
    """An SVG picture.

    - title: one line; width, height: pixels; body: SVG elements
    - theme: "auto" follows the page's colors, "light" and "dark" are fixed
    - panels: the grids of the picture, also used for LaTeX; places: row and column of each panel, in cells

    >>> from cute_dialect.viz import draw
    >>> drawing = draw("4:1")
    >>> drawing
    <drawing of 4:1: .save("x.svg"), ".png", ".html" or ".tex"; the last line of a notebook's cell shows it>
    """

    title: str
    width: float
    height: float
    body: str
    panels: Sequence[Panel] = ()
    theme: str = "auto"
    places: Sequence[tuple[float, float]] = ()

    @property
    def svg(self) -> str:
        """The text of an SVG file."""
        w, h = f"{self.width:g}", f"{self.height:g}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="cv cv-{self.theme}" width="{w}" height="{h}" '
            f'viewBox="0 0 {w} {h}" role="img" aria-label="{html.escape(self.title)}">\n'
            f"<style>\n{style(self.body, self.theme)}\n</style>\n"
            f'<rect class="paper" width="100%" height="100%"/>\n{self.body}\n</svg>\n'
        )

    @property
    def html(self) -> str:
        """The text of a standalone page. Hovering a cell outlines all related cells and shows its text."""
        return (
            f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{html.escape(self.title)}</title>\n'
            "<style>:root{color-scheme:light dark}body{margin:1em}</style>\n"
            f"{self.fragment}</html>\n"
        )

    @property
    def latex(self) -> str:
        """The text of a LaTeX document that draws it with TikZ, like CUTLASS's ``print_latex``.

        Raises DrawingError if the drawing is not a grid of cells.
        """
        return document(self.title, self.panels, self.places)

    def png(self, scale: float = 2.0) -> bytes:
        """Return the picture as PNG, with ``scale`` pixels per SVG pixel. Needs the extra ``viz``.

        Raises DrawingError if the extra is not installed.
        """
        from importlib import import_module

        try:
            resvg: Any = import_module("resvg_py")
        except ImportError:
            raise DrawingError("a PNG needs the extra 'viz': pip install 'cute-dialect[viz]' (resvg-py)") from None
        fixed = self if self.theme != "auto" else self.with_theme("light")
        return bytes(resvg.svg_to_bytes(svg_string=fixed.svg, zoom=scale, monospace_family="DejaVu Sans Mono"))

    def with_theme(self, theme: str) -> Drawing:
        """Return the same picture in "light" or "dark" colors, or with "auto" in those of the page around it."""
        if theme not in THEMES:
            raise DrawingError(f"theme must be one of {', '.join(THEMES)}, got {theme!r}")
        return replace(self, theme=theme)

    def save(self, file: Path) -> None:
        """Write the drawing to a ``.svg``, ``.png``, ``.html`` or ``.tex`` file.

        An existing file is replaced atomically, and missing folders are created.  Raises DrawingError for any other
        suffix, and OSError if the file cannot be written.
        """
        suffix = file_format(file)
        if suffix == ".png":
            data = self.png()
        else:
            data = {".svg": lambda: self.svg, ".html": lambda: self.html, ".tex": lambda: self.latex}[suffix]().encode()
        replace_file(pathlib.Path(file), data)

    def saved(self, file: Path | None) -> Drawing:
        """Write the drawing to a file, unless it is None, and return the drawing."""
        if file is not None:
            self.save(file)
        return self

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        formats = '.save("x.svg"), ".png", ".html" or ".tex"'
        return f"<drawing of {self.title}: {formats}; the last line of a notebook's cell shows it>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.fragment

    @property
    def fragment(self) -> str:
        """The text of an HTML element, to embed in a page. Hovering works as in :attr:`html`."""
        return (
            f'<div class="cute-viz" onmouseover="{_HOVER}">\n<div style="overflow:auto">{self.svg}</div>'
            f'<output style="{_SAYS}">&#160;</output></div>\n'
        )


def file_format(file: Path, without: str = "") -> str:
    """Return the suffix of a file name, such as ``.svg``.  Raises DrawingError for an unsupported format.

    >>> file_format("a/b.PNG")
    '.png'
    """
    name = checked_path("draw", "file", file, DrawingError)
    suffix = os.path.splitext(name)[1].lower()
    known = [f for f in FORMATS if f != without]
    if suffix not in known:
        raise DrawingError(f"the file name must end in {', '.join(known)}, got '{name}'")
    return suffix


def text(x: float, y: float, words: str, size: float, classes: str = "") -> str:
    """Return an SVG text element. ``classes``: n (centered), e (right-aligned), h (bold), dim."""
    shown = f' class="{classes}"' if classes else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}"{shown}>{html.escape(words)}</text>'
