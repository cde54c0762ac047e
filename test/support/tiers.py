"""Quick and slow tests: ``make test`` runs the quick cases, and ``make test-all`` runs all cases.

The mark ``slow`` on a test makes all its cases slow; ``pytest.param(..., marks=pytest.mark.slow)`` makes one case slow.
The mark ``sample`` selects the quick cases of a parametrized test.  The other cases are slow:

    @pytest.mark.sample(every=4)            # cases 0, 4, 8, ...
    @pytest.mark.sample("f16-64", "i8-64")  # the cases with these ids
    @pytest.mark.sample(pairs=True)         # a subset in which each pair of values of two parameters occurs
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest

__all__ = ["mark_slow_cases", "pairwise"]


def pairwise(cases: Sequence[tuple[Any, ...]]) -> list[int]:
    """Return the positions of a small subset of cases that covers all pairs of parameter values.

    A case is a tuple with one value per parameter.  If two values of two parameters occur together in any case, they
    occur together in a case of the subset.  The first case is always in it.

    >>> pairwise([(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    [0, 3, 5, 6]
    """
    pairs = [{(i, j, case[i], case[j]) for i, j in combinations(range(len(case)), 2)} or {case} for case in cases]
    missing: set[tuple[Any, ...]] = set().union(*pairs)
    found: list[int] = []
    while missing:
        best = max(range(len(cases)), key=lambda n: (len(pairs[n] & missing), -n))
        found.append(best)
        missing -= pairs[best]
    return sorted(found)


def mark_slow_cases(items: Sequence[pytest.Item]) -> None:
    """Mark as ``slow`` the cases that a mark ``sample`` does not select.

    Raises:
        pytest.UsageError: A mark ``sample`` names a case that does not exist.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tests.items():
        mark = cases[0].get_closest_marker("sample")
        if mark is None:
            continue
        quick = _quick_cases(name, cases, mark)
        for n, item in enumerate(cases):
            if n not in quick:
                item.add_marker(pytest.mark.slow)


def _quick_cases(name: str, cases: Sequence[pytest.Item], mark: pytest.Mark) -> set[int]:
    if mark.args:
        ids = [item.nodeid.partition("[")[2].removesuffix("]") for item in cases]
        unknown = [wanted for wanted in mark.args if wanted not in ids]
        if unknown:
            raise pytest.UsageError(f"{name}: the mark `sample` names cases that do not exist: {', '.join(unknown)}")
        return {n for n, id in enumerate(ids) if id in mark.args}
    if mark.kwargs.get("pairs"):
        return set(pairwise([_values(item) for item in cases]))
    return set(range(0, len(cases), mark.kwargs["every"]))


def _values(item: Any) -> tuple[str, ...]:
    """Return the values of a case's parameters, as texts that can be compared."""
    return tuple(map(repr, item.callspec.params.values()))
