"""The SGEMM optimization steps on the CPU interpreter, compared with float64, without register spills."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cute_dialect.kernels.gemm.sgemm import RUNGS, launch, sgemm_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import LaunchError

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("rung", RUNGS)
def test_the_trace_is_the_example(rung: str) -> None:
    assert sgemm_text(rung) == (EXAMPLES / f"sgemm_{rung}.mlir").read_text()


def padded(rows: int, columns: int, ld: int, fill: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return a 16-byte aligned buffer of NaN, and a matrix in it with row stride ``ld``."""
    raw = np.full((rows * ld + 8) * 4 + 16, 0xFF, np.uint8)
    skip = -raw.ctypes.data % 16
    store = raw[skip : skip + (rows * ld + 8) * 4].view(np.float32)
    inside = np.lib.stride_tricks.as_strided(store, (rows, columns), (4 * ld, 4))
    if fill is not None:
        inside[...] = fill
    return store, inside


SHAPES = [(37, 41, 19, 1), (64, 72, 20, 8), (129, 132, 36, 4), (130, 7, 1, 0), (3, 260, 33, 3)]
"""((M, N, K), padding elements per row)."""


@pytest.mark.end_to_end
@pytest.mark.sample(every=6)
@pytest.mark.parametrize("rung", RUNGS)
def test_results_match_float64_and_stay_in_bounds(rung: str) -> None:
    module = compile_cute(sgemm_text(rung))
    names = {"sgemm", *(["sgemm_v"] if RUNGS[rung].vectors else []), *(["sgemm_any"] if rung == "pipelined" else [])}
    assert module.report.count("0 bytes spilled, 0 bytes stack") == len(names), module.report
    kernel = module.kernel("launch")
    chosen: set[str] = set()
    for m, n, k, more in SHAPES:
        rng = np.random.default_rng(m)
        x, y = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
        (_, a), (_, b) = padded(m, k, k + more, x), padded(k, n, n + more, y)
        store, c = padded(m, n, n + more, None)
        kernel(a, b, c, device="cpu")
        chosen.add(kernel.plan(a, b, c).kernel)
        exact = x.astype(np.float64) @ y
        bound = k * 2.0**-24 * (np.abs(x).astype(np.float64) @ np.abs(y)) + 1e-30
        assert (np.abs(c - exact) <= bound).all(), (m, n, k)
        c[...] = np.nan
        assert np.isnan(store).all(), "padding was written"
    assert chosen == names


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("a", "b", "c", "message"),
    [
        ((32, 16), (20, 32), (32, 32), "A and B must have the same K"),
        ((36, 16), (16, 32), (32, 32), "A and C must have the same M"),
        ((32, 16), (16, 32), (32, 36), "B and C must have the same N"),
    ],
)
@pytest.mark.parametrize("rung", ["vector", "pipelined"])
def test_mismatched_shapes_are_rejected(
    rung: str, a: tuple[int, int], b: tuple[int, int], c: tuple[int, int], message: str
) -> None:
    kernel = compile_cute(sgemm_text(rung), emit="base").kernel("launch")
    with pytest.raises(LaunchError, match=message):
        kernel(*[np.zeros(shape, np.float32) for shape in (a, b, c)], device="cpu")


def test_an_unknown_rung_is_named() -> None:
    with pytest.raises(ValueError, match="there is no rung 'fastest'; use one of naive"):
        sgemm_text("fastest")


@pytest.mark.slow
@pytest.mark.parametrize("rung", ["naive", "vector", "pipelined"])
def test_called_from_python(rung: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, s).astype(np.float32) for s in ((36, 20), (20, 44)))
    (_, a), (_, b), (_, c) = padded(36, 20, 20, x), padded(20, 44, 44, y), padded(36, 44, 44, None)
    launch(a, b, c, rung, device="cpu")
    assert np.array_equal(c, x @ y)
