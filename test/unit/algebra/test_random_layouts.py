"""A sample of each random check of the algebra. ``test/oracle/algebra_fuzz.py`` runs any number of cases."""

from __future__ import annotations

from random import Random

import algebra_checks
import algebra_peer
import algebra_text_fuzz
import argument_fuzz
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from cute_dialect import algebra

CHECKS = {**algebra_checks.CHECKS, **algebra_text_fuzz.CHECKS, **algebra_peer.CHECKS}


@pytest.mark.sample("exact_evaluate", "composition", "instances_divide")
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


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("name", algebra_checks.CHECKS)
def test_shrinking(name: str) -> None:
    """Run the checks under hypothesis, which reduces a failing case to a small one."""

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
def test_known_differences_from_tensor_layouts(name, operands, ours, theirs, reason) -> None:
    assert algebra_peer.disagreement(name, operands) == (ours, theirs), reason


def test_random_arguments() -> None:
    """Run random arguments through the algebra. ``test/oracle/argument_fuzz.py`` runs more of them."""
    for seed in range(5000):
        argument_fuzz.case(seed)


@pytest.mark.parametrize(
    "layout", ["(4,8):(8,1)", "(4,8):(1,4)", "((2,2),3):((1,12),4)", "(4,8):(1,5)", "8:0", "(4,1):(2,7)", "7"]
)
def test_idx2crd_inverts_crd2idx(layout: str) -> None:
    value = algebra.Layout(layout)
    for i in range(int(algebra.size(layout))):  # pyright: ignore[reportArgumentType]
        at = algebra.crd2idx(i, value)
        assert algebra.crd2idx(algebra.idx2crd(at, value), value) == at
