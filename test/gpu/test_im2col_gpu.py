"""Prebuilt TMA im2col copies on the GPU: exact results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from im2col_support import CASES, CHANNELS, Case, arrays, stored

from cute_dialect.runtime import load

FOLDER = "im2col"
"""Folder of the kernels; see ``folder``."""


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_columns_of_pixels(folder: Path, case: Case) -> None:
    kernel = load(folder / case.name).kernel("launch")
    for seed in range(3):
        x, y, want = arrays(case, seed)
        kernel(x, y)
        assert np.array_equal(y, want)


@pytest.mark.parametrize("kind", ["copy", "tiled_copy"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_copies_of_columns(folder: Path, case: Case, kind: str) -> None:
    """Load pixels at the offsets of a filter tap, then store and reduce them from the first pixel on."""
    kernel = load(folder / f"{case.name}_{kind}").kernel("launch")
    for seed in range(3):
        x, y, want = arrays(case, seed, CHANNELS)
        z = np.zeros_like(x.T).T
        kernel(x, y, z)
        assert np.array_equal(y, want)
        assert np.array_equal(z, stored(case, x, want))
