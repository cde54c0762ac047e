"""The Hopper GEMM of the examples: exact integer results under every check, odd sizes, clusters of one and two."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import cute_dialect.lang as cute

HopperGemm = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "hopper_gemm.py"))["HopperGemm"]
CHECKS = ("race", "uninit", "sync", "oob")


@pytest.mark.end_to_end
@pytest.mark.sample("shape0-options0")
@pytest.mark.parametrize(
    ("shape", "options"),
    [((384, 128, 192), {"cluster_m": 1, "sms": 2}), ((200, 136, 72), {"stages": 2}), ((512, 256, 64), {"sms": 2})],
)
def test_products_are_exact(shape: tuple[int, int, int], options: dict[str, int]) -> None:
    """A small ``sms`` makes each block process several tiles."""
    m, n, k = shape
    rng = np.random.default_rng(sum(shape))
    a, b = (rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.full((m, n), np.nan, np.float16)
    gemm = HopperGemm((128, 128, 64), **{"stages": 3, **options})
    gemm(a, b, c, device="cpu", checks=CHECKS)
    assert (c.astype(np.float64) == a.astype(np.float64) @ b.astype(np.float64).T).all()


@pytest.mark.slow
def test_registers_do_not_spill() -> None:
    a, b, c = (np.zeros((256, 256), np.float16) for _ in "abc")
    made = cute.compile(HopperGemm(), a, b, c)
    assert "168 registers, 0 bytes spilled" in made.report
    assert made.ptx.count("wgmma.mma_async") == 12 and ".local" not in made.ptx and not made.remarks
