"""A few random configurations of the Hopper GEMMs; ``test/oracle/gemm_parts_fuzz.py`` runs more."""

from __future__ import annotations

import gemm_parts
import numpy as np
import pytest
from gemm_parts import EPILOGUES, OPTIONS, accepted, pairs, wrong

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SplitConfig


@pytest.mark.slow
@pytest.mark.parametrize("case", range(5))
def test_configurations_are_rejected_or_correct(case: int) -> None:
    rng = np.random.default_rng([5, case])
    _, config, _ = accepted(rng)
    assert wrong(rng, config) == ""


@pytest.mark.slow
def test_wrong_results_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing with a reference that lacks the kernel's epilogue must fail."""
    config = GemmConfig(tile=(64, 32, 64), cluster_m=1, deferred=False, epilogue=EPILOGUES[4])
    exact = gemm_parts._exact
    plain = config._replace(epilogue=EPILOGUES[0])
    monkeypatch.setattr(gemm_parts, "_exact", lambda c, a, b, given: exact(plain, a, b, given))
    assert "elements are wrong" in wrong(np.random.default_rng(0), config)


def test_every_option_is_drawn() -> None:
    rng, met = np.random.default_rng(0), set[tuple[str, str]]()
    kinds = set[type]()
    for _ in range(1200):
        taken, config, _ = accepted(rng)
        kinds.add(type(config))
        met |= {x for pair in pairs(taken) for x in pair}
    missing = {(n, str(v)) for n, values in OPTIONS.items() for v in values if n not in ("tile", "element")} - met
    assert not missing and SplitConfig in kinds and len(kinds) == 3
    assert {*OPTIONS} >= {*GemmConfig._fields} - {"fallback", "array"}


def test_kernel_uses_named_barriers_only() -> None:
    text = gemm_text(GemmConfig(cluster_m=1, deferred=False))
    assert "named_barrier_arrive" in text and "sync_threads" not in text
