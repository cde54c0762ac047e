"""TMA copies of columns of pixels on the GPU, from what the compiler built, exactly."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from im2col_support import CASES, CHANNELS, Case, arrays, stored

from cute_dialect.runtime import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of kernels, from ``CUTE_GPU_ARTIFACTS`` (``python test/gpu/build.py DIR``) or built now."""
    given = os.environ.get("CUTE_GPU_ARTIFACTS")
    if given:
        return Path(given) / "im2col"
    if find_spec("xdsl") is None or find_spec("mlir") is None:
        pytest.skip("NOT RUN: no compiler here; build elsewhere (python test/gpu/build.py DIR), CUTE_GPU_ARTIFACTS=DIR")
    from build import build_im2col

    made = tmp_path_factory.mktemp("im2col")
    build_im2col(str(made), "sm_90a")
    return made / "im2col"


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
    """Loaded with the offsets of a tap, then stored and added from the first pixel on."""
    kernel = load(folder / f"{case.name}_{kind}").kernel("launch")
    for seed in range(3):
        x, y, want = arrays(case, seed, CHANNELS)
        z = np.zeros_like(x.T).T
        kernel(x, y, z)
        assert np.array_equal(y, want)
        assert np.array_equal(z, stored(case, x, want))
