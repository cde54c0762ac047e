"""Prebuilt fallback kernels of the Hopper GEMM on the GPU: exact results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gemm_fallback_support import CASES, arrays

from cute_dialect.runtime import load

FOLDER = "gemm_fallback"
"""Folder of the kernels; see ``folder``."""


@pytest.mark.parametrize("name", CASES)
def test_product(folder: Path, name: str) -> None:
    arguments, out, exact = arrays(name)
    kernel = load(folder / name.replace(" ", "_")).kernel("launch")
    assert kernel.plan(*arguments).kernel == "gemm_any"
    for _ in range(3):
        out[:] = np.nan
        kernel(*arguments)
        assert (out.astype(np.float64) == exact).all()
