"""A sample of every random check of the algebra; ``test/oracle/algebra_fuzz.py`` runs as many as you like."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))

import algebra_checks
import algebra_peer
import algebra_text_fuzz

CHECKS = {**algebra_checks.CHECKS, **algebra_text_fuzz.CHECKS, **algebra_peer.CHECKS}


@pytest.mark.parametrize("name", CHECKS)
def test_seeded(name: str) -> None:
    applicable = 0
    for seed in range(150):
        try:
            CHECKS[name](Random(seed))
        except algebra_checks.Skip:
            continue
        applicable += 1
    assert applicable >= 30


@pytest.mark.parametrize("name", algebra_checks.CHECKS)
def test_shrinking(name: str) -> None:
    """The same under hypothesis, which reports a small failing case."""

    @settings(
        max_examples=25,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def one(rng: Random) -> None:
        try:
            algebra_checks.CHECKS[name](rng)
        except algebra_checks.Skip:
            reject()

    one()


@pytest.mark.parametrize(("name", "operands", "ours", "theirs", "reason"), algebra_peer.DISAGREEMENTS)
def test_where_the_peer_differs(name, operands, ours, theirs, reason) -> None:
    assert algebra_peer.disagreement(name, operands) == (ours, theirs), reason
