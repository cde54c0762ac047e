"""Drawings of layouts, copies, MMAs and runs as SVG, without a GPU: ``draw(x)``, ``cute-viz "(4,8):(8,1)"``.

Every function returns a :class:`Drawing`.  It displays itself in a notebook, ``str(drawing)`` is its SVG text, and
``drawing.save("x.svg")`` (``.png``, ``.html``, ``.tex``) writes it.  The argument may be text, a value of the algebra,
an atom of the table or an object of the language; none of those is imported.  ``docs/drawings.md`` shows them all.

>>> from cute_dialect.viz import draw
>>> str(draw("(2,2):(2,1)")).count("<path data-k=")
4

Modules: ``drawing`` (pictures, files, LaTeX), ``panels`` (grids of cells), ``palette`` (colors), ``subjects``
(parsing of arguments), ``layouts``, ``threads`` (thread-value layouts), ``banks``, ``tma``, ``timeline``; ``dispatch``
selects one.
"""

from __future__ import annotations

from cute_dialect.exports import exports

__getattr__, __dir__ = exports(__name__)
