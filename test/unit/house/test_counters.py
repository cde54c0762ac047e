"""Ceilings for the size of the sources and for constructs that should become rarer. Lower one when its count falls.

``python test/unit/house/import_graph.py`` prints the counts.
"""

from __future__ import annotations

from collections import Counter

import pytest
from import_graph import MANY, Source, counters, cycles, in_cycles, late_imports, parse

CEILINGS = {
    "files": 817,
    "lines": 245_009,
    "# fmt: skip": 922,
    "Any": 7_024,
    f"functions with {MANY} or more parameters": 126,
}

# Modules in cycles, counting imports inside functions. Packages without an entry have none.
CYCLE_CEILINGS: dict[str, int] = {}

# Imports inside functions without a comment `# late: torch` or `# late: start-up`.
LATE_CEILINGS = {
    "op": 8,
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


def above(counts: Counter[str], ceilings: dict[str, int]) -> list[str]:
    """Return the packages whose count is above its ceiling."""
    return [f"{p}: {n} > {ceilings.get(p, 0)}" for p, n in sorted(counts.items()) if n > ceilings.get(p, 0)]


def test_cycles_only_shrink() -> None:
    found = above(in_cycles(), CYCLE_CEILINGS)
    assert not found, f"modules in cycles: {found}; see `python test/unit/house/import_graph.py PACKAGE`"


def test_late_imports_only_shrink() -> None:
    found = above(late_imports(), LATE_CEILINGS)
    assert not found, f"late imports: {found}; see `python test/unit/house/import_graph.py PACKAGE`"


def test_cycles_of_a_graph() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a", "d"}}
    assert sorted(cycles(graph)) == [["a", "b", "c"], ["d", "e"]]
