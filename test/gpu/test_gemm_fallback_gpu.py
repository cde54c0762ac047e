"""What the Hopper GEMM falls back to, on the GPU, from what the compiler built, exactly."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from gemm_fallback_support import CASES, arrays

from cute_dialect.runtime import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of kernels, from ``CUTE_GPU_ARTIFACTS`` (``python test/gpu/build.py DIR``) or built now."""
    given = os.environ.get("CUTE_GPU_ARTIFACTS")
    if given:
        return Path(given) / "gemm_fallback"
    if find_spec("xdsl") is None or find_spec("mlir") is None:
        pytest.skip("NOT RUN: no compiler here; build elsewhere (python test/gpu/build.py DIR), CUTE_GPU_ARTIFACTS=DIR")
    from build import build_gemm_fallback

    made = tmp_path_factory.mktemp("gemm_fallback")
    build_gemm_fallback(str(made), "sm_90a")
    return made / "gemm_fallback"


@pytest.mark.parametrize("name", CASES)
def test_product(folder: Path, name: str) -> None:
    arguments, out, exact = arrays(name)
    kernel = load(folder / name.replace(" ", "_")).kernel("launch")
    assert kernel.plan(*arguments).kernel == "gemm_any"
    for _ in range(3):
        out[:] = np.nan
        kernel(*arguments)
        assert (out.astype(np.float64) == exact).all()
