"""Ceilings for the size of the sources and for constructs that should become rarer. Lower one when its count falls.

``python test/unit/house/import_graph.py`` prints the counts. Imports inside functions and modules in cycles have
ceilings for each package in ``test_import_cycles.py``.
"""

from __future__ import annotations

import pytest
from import_graph import MANY, Source, counters, parse

CEILINGS = {
    "files": 759,
    "lines": 227_069,
    "# fmt: skip": 923,
    "Any": 7_033,
    f"functions with {MANY} or more parameters": 126,
}


@pytest.mark.end_to_end  # The test reads every module of the package.
def test_counters_only_fall() -> None:
    found = counters()
    above = [f"{name}: {found[name]} > {most}" for name, most in CEILINGS.items() if found[name] > most]
    assert not above, f"{above}; simplify, or split or merge modules instead"


def test_counters_of_a_module() -> None:
    wide = "def f(a, b, c, d, e, *, f, g, h, i, j): pass\n"
    text = f"from typing import Any\n\nx: Any = [1,2]  # fmt: skip\n\n\nclass C:\n    {wide}\n\ndef g(a, b): pass\n"
    assert parse(text) == Source((), 10, 1, 2, ("f",))
    public, private = (f"def {name}(a, b, c, d, e, f, g, h, i, j): pass\n" for name in ("f", "_f"))
    assert parse(public + private, foreign=True).many_parameters == ("_f",)
    assert parse("def f():\n    import cute_dialect.files\n").imports[0].is_late
