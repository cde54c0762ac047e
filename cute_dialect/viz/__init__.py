"""Drawings of layouts, copies, products and runs as SVG, without a GPU: ``draw(x)``, ``cute-viz "(4,8):(8,1)"``.

Every function gives a :class:`Drawing`: it shows itself in a notebook, ``str(drawing)`` is its SVG text and
``drawing.save("x.svg")`` (``.png``, ``.html``, ``.tex``) writes it.  What is drawn may be text, a value of the algebra,
an atom of the table or an object of the language; none of those is imported.  ``docs/drawings.md`` shows them all.

>>> from cute_dialect.viz import draw
>>> str(draw("(2,2):(2,1)")).count("<path data-k=")
4

Modules: ``drawing`` (pictures, files), ``panels`` (grids of cells), ``palette`` (colours), ``latex``, ``subjects``
(what is given, read), ``layouts``, ``threads`` (who holds what), ``banks``, ``tma``, ``timeline``, ``aliases``;
``dispatch`` finds out which.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
