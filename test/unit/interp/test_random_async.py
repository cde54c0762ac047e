"""A fast sample of ``test/oracle/async_fuzz.py``: copies, mbarriers and named barriers match their definition."""

from __future__ import annotations

import async_fuzz
import pytest


@pytest.mark.end_to_end
@pytest.mark.sample("0")
@pytest.mark.parametrize("first", range(0, 160, 40))
def test_detector_and_definition_agree(first: int) -> None:
    found = [async_fuzz.check(seed) for seed in range(first, first + 40)]
    assert any(found)
    assert not all(found)
