"""Protocols of shipped kernels that read arrays, take slices, or share a tile: proved for all sizes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cute_dialect.prove.proof import prove

sys.path.insert(0, str(Path(__file__).parents[2] / "oracle"))

from mutants import originals

pytestmark = pytest.mark.slow
MOST_STATES = {
    "transpose f16 72x136": 10,
    "attention with functions, a block mask": 500,
    "attention with functions, slices": 800,
    "attention, rows of pages copied by threads": 100,
    "GEMM sm_90, K shared by blocks": 30,
    "softmax, a cluster a row": 10,
}
"""Kernel -> a limit of the states that its proof visits."""


@pytest.mark.parametrize("name", MOST_STATES)
def test_a_shipped_kernel_is_proved(name: str):
    for run in originals(name):
        proof = prove(run.module, run.kernel, seconds=300)
        assert proof, str(proof)
        assert proof.states <= MOST_STATES[name]
