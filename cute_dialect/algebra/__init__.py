"""The layout algebra, in pure Python without dependencies.

Importing the package is cheap: it loads the evaluation of layouts, and a name loads its module on first use.
``__init__.pyi`` lists the names.

>>> from cute_dialect.algebra import Layout, composition, zipped_divide
>>> composition(Layout("(6,10):(10,1)"), Layout("(3,4):(2,6)"))
Layout("(3,4):(20,1)")
>>> zipped_divide(Layout("(12,10):(10,1)"), (4, 5))
Layout("((4,5),(3,2)):((10,1),(40,5))")

Modules, lowest first: ``leaf`` (static and dynamic integers), ``values`` (layouts, swizzles, …), ``trees`` and
``arithmetic`` (int tuples and other trees), ``text`` (parsing, printing), ``verify``, ``evaluation``, ``layout``
(constructors, coalescing), ``complements``, ``inverses``, ``compose``, ``slicing``, ``tiling``, ``vectors``,
``tiled_copy``, ``tiled_mma``, ``layout_pictures``.  The functions exported by the package check their arguments
(``argument_checks``); those of the modules do not.  ``docs/layouts.md`` is a tutorial.
"""

from __future__ import annotations

from cute_dialect.algebra import evaluation, values, verify
from cute_dialect.exports import exports

values.connect(verify.checked_layout, evaluation.evaluate)


def _checked(name: str, value: object) -> object:
    from cute_dialect.algebra.argument_checks import checked  # late: start-up

    return checked(name, value)


__getattr__, __dir__ = exports(__name__, _checked)
