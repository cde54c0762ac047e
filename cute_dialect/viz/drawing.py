"""SVG drawings: display in a notebook, and output files."""

from __future__ import annotations

import html
import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cute_dialect.files import checked_path, replace_file
from cute_dialect.viz.cells import Panel
from cute_dialect.viz.errors import DrawingError
from cute_dialect.viz.latex import document
from cute_dialect.viz.palette import style

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
