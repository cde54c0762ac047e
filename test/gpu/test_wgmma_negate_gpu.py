"""Negated operands of wgmma on the GPU, from what the compiler built, exactly."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from negate_support import CASES, arrays

from cute_dialect.runtime import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of kernels, from ``CUTE_GPU_ARTIFACTS`` (``python test/gpu/build.py DIR``) or built now."""
    given = os.environ.get("CUTE_GPU_ARTIFACTS")
    if given:
        return Path(given) / "negate"
    if find_spec("xdsl") is None or find_spec("mlir") is None:
        pytest.skip("NOT RUN: no compiler here; build elsewhere (python test/gpu/build.py DIR), CUTE_GPU_ARTIFACTS=DIR")
    from build import build_negate

    made = tmp_path_factory.mktemp("negate")
    build_negate(str(made), "sm_90a")
    return made / "negate"


@pytest.mark.parametrize("name", CASES)
def test_signs(folder: Path, name: str) -> None:
    a, b, d, wanted = arrays(CASES[name][1])
    load(folder / name).kernel("k")(a, b, d, grid=(1, 1, 1))
    assert np.array_equal(d, wanted)
