"""Random functions traced with some dynamic inputs compute the same as Python or raise an error."""

from __future__ import annotations

import pytest
from random_functions import tally


@pytest.mark.end_to_end
@pytest.mark.sample("0-10")
@pytest.mark.parametrize(("start", "count"), [(0, 10), *[(start, 30) for start in range(10, 310, 30)]])
def test_random_functions(start: int, count: int) -> None:
    kinds, codes = tally(start, count)
    assert kinds["refused"] <= 0.3 * count, codes  # The oracle measures this fraction for many functions.
    assert not codes["F211"]  # A value that leaks out of its region is a fault of the tracer.


@pytest.mark.slow
def test_most_are_accepted() -> None:
    kinds, codes = tally(100_000, 60)
    assert kinds["refused"] <= 0.25 * 60, codes
    assert kinds["agrees"] >= 0.6 * 60
