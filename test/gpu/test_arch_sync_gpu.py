"""Machine-level ops on the GPU: the same kernels and results as on the CPU interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sync_kernels import CASES

from cute_dialect.runtime import load

FOLDER = "sync"


@pytest.mark.parametrize("name", CASES)
def test_op(folder: Path, name: str) -> None:
    k = load(folder / name).kernel("k")

    def run(text: str, *arguments: np.ndarray, grid: int, threads: int) -> None:
        k(*arguments, grid=(grid, 1, 1), block=(threads, 1, 1))

    CASES[name].check(run)
