"""Splitting f32 into two tf32 numbers, and GEMMs of the three products by the Hopper kernel, on the CPU interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.split_tf32 import ORDERS, PartsConfig, padded, split_text
from cute_dialect.pipelines import compile

CHECKS = ("race", "uninit", "sync", "oob")


def split(x: np.ndarray, order: str) -> np.ndarray:
    """Return an array of shape (rows, 3 * padded(K)), or a batch of them."""
    config = PartsConfig(order, row_major=x.strides[-1] == 4, batch=x.ndim == 3)
    kernel = compile(split_text(config), emit="base").kernel("launch")
    out = np.full((*x.shape[:-1], 3 * padded(x.shape[-1])), np.nan, np.float32)
    given = [np.moveaxis(t, 0, 2) if t.ndim == 3 else t for t in (x, out)]
    kernel(*given, device="cpu", checks=CHECKS)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(70, 66), (3, 5), (1, 1), (64, 128), (2, 40, 70)])
@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_split_into_tf32_terms(order: str, rows: bool, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x = x if rows else np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2)
    k, part = shape[-1], padded(shape[-1])
    parts = [split(x, order)[..., part * i : part * (i + 1)] for i in range(3)]
    assert all((p[..., k:] == 0).all() for p in parts)
    lo, hi = (parts[ORDERS[order].index(which)][..., :k] for which in (1, 0))
    assert (parts[2][..., :k] == hi).all() and (hi.view(np.int32) & 0x1FFF == 0).all()
    assert (hi.astype(np.float64) + lo == x).all() and (np.abs(lo) <= np.abs(x) * 2.0**-11).all()


@pytest.mark.slow
def test_numbers_at_the_ends() -> None:
    most = np.finfo(np.float32).max
    x = np.array([[most, -most, np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0**-149]], np.float32)
    lo, hi = (split(x, "a")[0, 8 * i : 8 * (i + 1)] for i in range(2))
    assert np.isfinite(hi[:2]).all() and (hi[:2].astype(np.float64) + lo[:2] == x[0, :2]).all()
    assert (hi[2:4] == x[0, 2:4]).all() and np.isnan(hi[4]) and (lo[2:5] == 0).all()
    assert (hi[5:].astype(np.float64) + lo[5:] == x[0, 5:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("promote", [True, False])
def test_gemm_matches_f32(promote: bool) -> None:
    """The error is that of f32 accumulation. Plain tf32 has a hundred times the error."""
    m, n, k = 72, 136, 200
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((rows, k)).astype(np.float32) for rows in (m, n))
    out = np.full((m, n), np.nan, np.float32)
    c = GemmConfig(
        element="tf32",
        output="f32",
        tile=(128, 128, 32),
        cluster_m=1,
        deferred=False,
        serpentine=False,
        promote=promote,
    )
    kernel = compile(gemm_text(c), emit="base").kernel("launch")
    kernel(split(a, "a"), split(b, "b"), out, device="cpu")
    exact = a.astype(np.float64) @ b.astype(np.float64).T

    def rms(x: np.ndarray) -> float:
        return float(np.sqrt(np.mean((x - exact) ** 2)))

    plain = np.full((m, n), np.nan, np.float32)
    kernel(a, b, plain, device="cpu")
    sgemm = np.zeros((m, n), np.float32)
    for i in range(k):
        sgemm += a[:, i : i + 1] * b[:, i]
    assert rms(out) <= 2 * rms(sgemm) < 0.05 * rms(plain)
