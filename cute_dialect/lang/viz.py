"""Drawings of layouts as SVG, without a GPU: ``cute.viz.render_tv_layout_svg(tv, tiler, "tv.svg")``.

A drawing shows itself in a notebook; ``str(drawing)`` is its text, ``drawing.save(file)`` writes it.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Drawing", "print_latex", "render_layout_svg", "render_tv_layout_svg"]

CELL = 44  # pixels
MARGIN = 30
MAX_CELLS = 1 << 14


class Drawing:
    """A picture as the text of an SVG file."""

    def __init__(self, svg: str):
        self.svg = svg

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<drawing of {len(self.svg)} characters: save(file), or the last line of a cell>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the picture to a file."""
        with open(file, "w", encoding="utf-8") as f:
            f.write(self.svg)


def render_layout_svg(layout: Any, file: str | os.PathLike[str] | None = None) -> Drawing:
    """Draw a static layout of rank 1 or 2: each coordinate's cell shows the index; mode 0 goes down, mode 1 right.

    >>> str(render_layout_svg("(2,2):(2,1)")).count("<rect")
    4
    """
    payload, indices = _indices(layout)

    def cell(i: int, j: int) -> tuple[list[str], str, int]:
        index = indices[i][j]
        return [str(index)], f"({i},{j}) -> {index}", index if isinstance(index, int) else 0

    return _drawn(str(payload), len(indices), len(indices[0]), cell, file)


def print_latex(layout: Any) -> None:
    r"""Print a LaTeX document that draws a static layout of rank 1 or 2: its indices in a grid.

    >>> print_latex("(2,2):(2,1)")
    %% (2,2):(2,1)
    \documentclass{standalone}
    \usepackage{tikz}
    \begin{document}
    \begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},box/.style={rectangle,draw,minimum size=1cm}]
    \node[box,fill=black!0] at (0,0) {0};
    \node[box,fill=black!10] at (0,1) {1};
    \node[box,fill=black!20] at (1,0) {2};
    \node[box,fill=black!30] at (1,1) {3};
    \node at (0,-1) {0};
    \node at (1,-1) {1};
    \node at (-1,0) {0};
    \node at (-1,1) {1};
    \end{tikzpicture}
    \end{document}
    """
    payload, indices = _indices(layout)
    nodes = [
        f"\\node[box,fill=black!{10 * index % 50 if isinstance(index, int) else 0}] at ({i},{j}) {{{index}}};"
        for i, row in enumerate(indices)
        for j, index in enumerate(row)
    ]
    edges = [f"\\node at ({i},-1) {{{i}}};" for i in range(len(indices))]
    edges += [f"\\node at (-1,{j}) {{{j}}};" for j in range(len(indices[0]))]
    head = ["\\documentclass{standalone}", "\\usepackage{tikz}", "\\begin{document}"]
    style = "x={(0cm,-1cm)},y={(1cm,0cm)},box/.style={rectangle,draw,minimum size=1cm}"
    picture = [f"\\begin{{tikzpicture}}[{style}]", *nodes, *edges, "\\end{tikzpicture}"]
    print("\n".join([f"%% {payload}", *head, *picture, "\\end{document}"]))


def _indices(layout: Any) -> tuple[Any, list[list[Any]]]:
    """Return a static layout, and the index of each coordinate, row by row; of rank 1 in one row."""
    from cute_dialect.algebra import evaluate

    payload = _payload(layout)
    rows, columns = _extents(payload, "a layout to draw")
    return payload, [
        [evaluate((i, j) if rows is not None else j, payload) for j in range(columns)] for i in range(rows or 1)
    ]


def render_tv_layout_svg(layout: Any, tiler: Any, file: str | os.PathLike[str] | None = None) -> Drawing:
    """Draw which thread holds which value of a tile ``(M, N)``: a colour a thread, ``T3`` over ``V1`` in its cell.

    ``layout``: the thread-value layout, (thread, value) -> column-major index in the tile.  Raises LayoutError where it
    is dynamic or leaves the tile.

    >>> str(render_tv_layout_svg("(2,2):(2,1)", (2, 2))).count("<rect")
    4
    """
    from cute_dialect.algebra import evaluate
    from cute_dialect.front.errors import LayoutError

    payload = _payload(layout)
    threads, values = _extents(payload, "a thread-value layout to draw")
    extents = tuple(tiler) if isinstance(tiler, Sequence) else (tiler,)
    m, n = (1, *extents) if len(extents) == 1 else extents if len(extents) == 2 else (None, None)
    if threads is None or not isinstance(m, int) or not isinstance(n, int):
        raise LayoutError(
            "F240", f"expected a thread-value layout and a tile (M, N) to draw, got {payload} and {tiler}"
        )
    holders: list[list[tuple[int, int]]] = [[] for _ in range(_few(m * n))]
    for t in range(threads):
        for v in range(values):
            at = evaluate((t, v), payload)
            if not isinstance(at, int) or not 0 <= at < m * n:
                raise LayoutError("F240", f"thread {t}, value {v} is at {at}, outside of the tile of {m} x {n}")
            holders[at].append((t, v))

    def cell(i: int, j: int) -> tuple[list[str], str, int | None]:
        held = holders[i + m * j]
        if not held:
            return [], f"({i},{j}): nobody", None
        all_of_them = " ".join(f"T{t}V{v}" for t, v in held)
        (t, v), more = held[0], f" +{len(held) - 1}" if len(held) > 1 else ""
        return [f"T{t}{more}", f"V{v}"], f"({i},{j}): {all_of_them}", t

    return _drawn(f"{payload} over {m} x {n}", m, n, cell, file)


def _payload(layout: Any) -> Any:
    from cute_dialect.algebra import Layout
    from cute_dialect.front.errors import LayoutError
    from cute_dialect.front.layouts import as_layout

    if isinstance(layout, str):
        return Layout(layout)
    if isinstance(layout, Layout):
        return layout
    made = as_layout(layout)
    if not made.is_static:
        raise LayoutError("F240", f"a layout to draw is known when it is drawn, got {made}")
    return made.payload


def _extents(payload: Any, what: str) -> tuple[int | None, int]:
    """Return rows (None for rank 1) and columns."""
    from cute_dialect.algebra import product_each
    from cute_dialect.front.errors import LayoutError

    sizes: list[Any] = list(product_each(payload.outer.shape if hasattr(payload, "outer") else payload.shape))
    if not 1 <= len(sizes) <= 2:
        raise LayoutError("F240", f"expected {what} of rank 1 or 2, got {payload}", hint="cute.group_modes")
    rows, columns = (sizes[0], sizes[1]) if len(sizes) == 2 else (None, sizes[0])
    _few((rows or 1) * columns)
    return rows, columns


def _few(cells: int) -> int:
    from cute_dialect.front.errors import LimitError

    if cells > MAX_CELLS:
        raise LimitError("F171", f"a drawing has at most {MAX_CELLS} cells, this one would have {cells}")
    return cells


def _drawn(
    title: str, rows: int, columns: int, cell: Callable[[int, int], tuple[list[str], str, int | None]],
    file: str | os.PathLike[str] | None,
) -> Drawing:  # fmt: skip
    """Return a grid.  ``cell(i, j)``: lines to show, what hovering shows, and what the colour stands for."""
    width, height = MARGIN + columns * CELL + 10, MARGIN + rows * CELL + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="monospace" '
        'font-size="12" text-anchor="middle">'
    ]
    out += [
        f'<text x="{MARGIN + j * CELL + CELL // 2}" y="{MARGIN - 10}" fill="#666">{j}</text>' for j in range(columns)
    ]
    for i in range(rows):
        y = MARGIN + i * CELL
        out.append(f'<text x="{MARGIN // 2}" y="{y + CELL // 2 + 4}" fill="#666">{i}</text>')
        for j in range(columns):
            x = MARGIN + j * CELL
            lines, hover, colour = cell(i, j)
            out.append(
                f'<g><title>{html.escape(hover)}</title><rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" '
                f'fill="{_colour(colour)}" stroke="#333"/>'
            )
            top = y + CELL // 2 + 4 - 7 * (len(lines) - 1)
            out += [
                f'<text x="{x + CELL // 2}" y="{top + 14 * k}">{html.escape(t)}</text>' for k, t in enumerate(lines)
            ]
            out.append("</g>")
    out.append(f'<text x="{MARGIN}" y="{height - 10}" text-anchor="start">{html.escape(title)}</text></svg>')
    made = Drawing("\n".join(out) + "\n")
    if file is not None:
        made.save(file)
    return made


def _colour(n: int | None) -> str:
    """Return a light colour; neighbours are far apart on the wheel."""
    return "#fff" if n is None else f"hsl({n * 137 % 360},60%,80%)"
