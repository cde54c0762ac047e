"""Machine-level ops on the GPU: the same kernels and results as on the CPU interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sync_kernels import CASES

from cute_dialect.runtime import load


@pytest.mark.parametrize("name", CASES)
def test_op(artifacts: Path, name: str) -> None:
    folder = artifacts / "sync" / name
    if not folder.exists():
        pytest.skip(f"NOT RUN: {folder} is missing; build it with test/gpu/build.py {artifacts}")
    k = load(folder).kernel("k")

    def run(text: str, *arguments: np.ndarray, grid: int, threads: int) -> None:
        k(*arguments, grid=(grid, 1, 1), block=(threads, 1, 1))

    CASES[name].check(run)
