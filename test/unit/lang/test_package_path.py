"""The package can be imported from a path that is not normalized, such as one that ends with ``/.``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import cute_dialect
import cute_dialect.lang as cute
assert "/./" in cute_dialect.__file__, cute_dialect.__file__

@cute.kernel
def tiled(x: cute.Tensor, y: cute.Tensor):
    tile = cute.local_tile(x, (4, 8), (cute.arch.block_idx().x, 0))
    y[cute.arch.block_idx().x] = tile[3, 7]

@cute.jit
def run(x: cute.Tensor, y: cute.Tensor):
    tiled(x, y).launch(grid=2, block=1)

x, y = np.arange(64, dtype="f4").reshape(8, 8), np.zeros(2, "f4")
run(x, y, device="cpu")
print(y.tolist())

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.pipelines import compile
print(compile(gemm_text(), emit="base").kernel("launch").name)
"""


@pytest.mark.slow
def test_a_path_with_a_dot() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, f"{ROOT}/."], capture_output=True, text=True, cwd=ROOT.parent, check=False
    )
    assert done.stdout == "[31.0, 63.0]\nlaunch\n", done.stderr
