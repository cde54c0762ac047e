r"""LaTeX documents that draw grids with TikZ, in the manner of CUTLASS's ``print_latex``.

A cell is a node at (row, column): its colour and its lines.  Source: CUTLASS ``include/cute/util/print_latex.hpp``
(BSD-3), for how such documents look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cute_dialect.viz.errors import DrawingError
from cute_dialect.viz.palette import tone

if TYPE_CHECKING:
    from cute_dialect.viz.panels import Panel

__all__ = ["document"]

BREAK = "\\\\"
"""The end of a line in a cell."""

_SPECIAL = {c: "\\" + c for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\^{}",
    "→": r"$\to$",
    "←": r"$\gets$",
}


def document(title: str, panels: Sequence[Panel]) -> str:
    """Return a document that draws panels, one picture each.  Raises DrawingError if there are none."""
    if not panels:
        raise DrawingError(f"LaTeX draws grids of cells; {title} is none")
    used = sorted({c.fill for p in panels for row in p.cells for c in row})
    colours = [f"\\definecolor{{{name}}}{{HTML}}{{{tone(name, 'light')[1:].upper()}}}" for name in used]
    head = ["\\documentclass[border=4pt,multi=tikzpicture]{standalone}", "\\usepackage{tikz}", *colours]
    body = [line for p in panels for line in _panel(p)]
    return "\n".join([f"%% {title}", *head, "\\begin{document}", *body, "\\end{document}", ""])


def _panel(p: Panel) -> list[str]:
    style = "x={(0cm,-1cm)},y={(1cm,0cm)},every node/.style={minimum size=1cm,outer sep=0pt}"
    out = [f"\\begin{{tikzpicture}}[{style}]"]
    if p.title:
        out.append(f"\\node[anchor=west] at (-2,-0.5) {{\\texttt{{{_escaped(p.title)}}}}};")
    for i, row in enumerate(p.cells):
        for j, cell in enumerate(row):
            lines = [_escaped(line) for line in cell.lines]
            words = f"\\shortstack{{{f' {BREAK} '.join(lines)}}}" if len(lines) > 1 else "".join(lines)
            out.append(f"\\node[fill={cell.fill}] at ({i},{j}) {{{words}}};")
    out.append(f"\\draw[color=black,thick,shift={{(-0.5,-0.5)}}] (0,0) grid ({p.rows},{p.columns});")
    for spans, count, other, steep in (
        (p.row_breaks, p.rows, p.columns, False),
        (p.column_breaks, p.columns, p.rows, True),
    ):
        for i in range(1, count):
            weight = max((w for span, w in spans if i % span == 0), default=0)
            if weight:
                a, b = (f"(0,{i})", f"({other},{i})") if steep else (f"({i},0)", f"({i},{other})")
                out.append(f"\\draw[line width={1 + weight}pt,shift={{(-0.5,-0.5)}}] {a} -- {b};")
    if p.numbered[0]:
        labels = p.row_labels or [str(i) for i in range(p.rows)]
        out += [f"\\node at ({i},-1) {{\\Large{{\\texttt{{{_escaped(x)}}}}}}};" for i, x in enumerate(labels)]
    if p.numbered[1]:
        out += [f"\\node at (-1,{j}) {{\\Large{{\\texttt{{{j}}}}}}};" for j in range(p.columns)]
    return [*out, "\\end{tikzpicture}"]


def _escaped(words: str) -> str:
    return "".join(_SPECIAL.get(c, c) for c in words)
