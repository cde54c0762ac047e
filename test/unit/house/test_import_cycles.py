"""Ceilings for import cycles and imports inside functions. Lower a ceiling when its count falls."""

from __future__ import annotations

from collections import Counter

import pytest
from import_graph import cycles, in_cycles, late_imports

# Modules in cycles, counting imports inside functions. Packages without an entry have none.
CYCLE_CEILINGS: dict[str, int] = {}

# Imports inside functions without a comment `# late: torch` or `# late: start-up`.
LATE_CEILINGS = {
    "op": 8,
}


def above(counts: Counter[str], ceilings: dict[str, int]) -> list[str]:
    """Return the packages whose count is above its ceiling."""
    return [f"{p}: {n} > {ceilings.get(p, 0)}" for p, n in sorted(counts.items()) if n > ceilings.get(p, 0)]


@pytest.mark.end_to_end  # The test reads every module of the package.
def test_cycles_only_shrink() -> None:
    found = above(in_cycles(), CYCLE_CEILINGS)
    assert not found, f"modules in cycles: {found}; see `python test/unit/house/import_graph.py PACKAGE`"


def test_late_imports_only_shrink() -> None:
    found = above(late_imports(), LATE_CEILINGS)
    assert not found, f"late imports: {found}; see `python test/unit/house/import_graph.py PACKAGE`"


def test_cycles_of_a_graph() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a", "d"}}
    assert sorted(cycles(graph)) == [["a", "b", "c"], ["d", "e"]]
