"""Reduction of partial results along rows and columns: exact, in any layout, with NaN, and for empty inputs."""

from __future__ import annotations

import numpy as np
import pytest

from cute_dialect.kernels.epilogue.reductions import CombineConfig, combine_parts_text
from cute_dialect.pipelines import compile
from cute_dialect.runtime.arrays import numpy_dtype

CHECKS = ("race", "uninit", "oob", "sync")


@pytest.mark.slow
@pytest.mark.parametrize("config", [CombineConfig(), CombineConfig("max", "f16", 1), CombineConfig("min", "bf16")])
def test_reduction_of_partial_results(config: CombineConfig) -> None:
    kernel = compile(combine_parts_text(config), emit="base", filename=f"{config.name}.mlir").kernel("launch")
    generator = np.random.default_rng(3)
    for parts, extent, matrices in ((1, 1, 1), (9, 40, 2), (0, 5, 1), (300, 2, 1)):
        p = generator.integers(-5, 6, (parts, extent, matrices)).astype(np.float32)
        p[parts // 2 : parts // 2 + 1, -1, -1] = np.nan
        r = np.full((matrices, extent), 7.0, numpy_dtype(config.output)).T
        kernel(p, r, device="cpu", checks=CHECKS, schedule="reverse")
        empty = {"sum": 0.0, "max": -np.inf, "min": np.inf}[config.operation]
        want = getattr(p, config.operation)(axis=0, initial=empty)
        assert np.array_equal(r.astype(np.float64), want.astype(np.float64), equal_nan=True)
