"""A fast sample of ``test/oracle/sync_fuzz.py``: the race detector agrees with a check of all pairs."""

from __future__ import annotations

import pytest
import sync_fuzz


@pytest.mark.end_to_end
@pytest.mark.sample("0")
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_detector_and_definition_agree(first: int) -> None:
    found = [racy for seed in range(first, first + 20) for racy in sync_fuzz.check(seed)]
    assert any(found)
    assert not all(found)
