"""The cp.async GEMM on the CPU interpreter, compared with float64: dtypes, majors, odd shapes and every variant."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule

SMALL = AmpereConfig(tile=(64, 64, 32))
EXAMPLE = Path(__file__).parents[2] / "examples" / "gemm_sm80.mlir"
CONFIGS = {
    "kk": SMALL,
    "km": SMALL._replace(majors=("k", "mn")),
    "mk": SMALL._replace(majors=("mn", "k")),
    "mm": SMALL._replace(majors=("mn", "mn")),
    "bf16": AmpereConfig("bf16", (32, 32, 32), stages=4),
    "deep": AmpereConfig(tile=(64, 128, 64), warps=(2, 4), group=2),
}
DTYPES = {"f16": (np.dtype(np.float16), 2.0**-11), "bf16": (np.dtype(ml_dtypes.bfloat16), 2.0**-8)}


@lru_cache(maxsize=8)
def module(name: str) -> CompiledModule:
    return compile_cute(ampere_gemm_text(CONFIGS[name]), emit="base")


def matrix(dtype: np.dtype, rows: int, columns: int, pad: int, offset: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a buffer of NaN and a row-major matrix in it. The row stride is ``columns + pad``, and the matrix starts
    ``offset`` elements after a 16-byte boundary.
    """
    storage = np.full(rows * (columns + pad) + 128, np.nan, np.float32).astype(dtype)
    first = (-storage.ctypes.data % 16) // dtype.itemsize + 32 + offset
    inside = np.lib.stride_tricks.as_strided(
        storage[first:], (rows, columns), ((columns + pad) * dtype.itemsize, dtype.itemsize)
    )
    return storage, inside


def operand(config: AmpereConfig, which: int, rows: int, depth: int, pad: int, offset: int, seed: int) -> np.ndarray:
    dtype, _ = DTYPES[config.element]
    k_major = config.majors[which] == "k"
    _, x = matrix(dtype, *((rows, depth) if k_major else (depth, rows)), pad, offset)
    x[...] = np.random.default_rng(seed).standard_normal(x.shape).astype(dtype)
    return x if k_major else x.T


def check(name: str, shape: tuple[int, int, int], pads: tuple[int, int, int] = (0, 0, 0), offset: int = 0) -> str:
    """Compare one GEMM with float64; return the name of the launched kernel."""
    m, n, k = shape
    config = CONFIGS[name]
    dtype, ulp = DTYPES[config.element]
    a = operand(config, 0, m, k, pads[0], offset, 1)
    b = operand(config, 1, n, k, pads[1], offset, 2)
    storage, c = matrix(dtype, m, n, pads[2], offset)
    kernel = module(name).kernel("gemm")
    kernel(a, b, c, device="cpu")
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    exact = wide_a @ wide_b.T
    tolerance = ulp * np.abs(exact) + 2.0**-20 * (np.abs(wide_a) @ np.abs(wide_b).T)
    assert (np.abs(c.astype(np.float64) - exact) <= tolerance).all()
    c[...] = np.nan
    assert np.isnan(storage.astype(np.float32)).all(), "something outside of C was written"
    return kernel.plan(a, b, c).kernel


SHAPES = [(64, 64, 32), (1, 1, 1), (72, 80, 40), (65, 129, 33), (130, 66, 100), (8, 200, 8), (70, 66, 226)]


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("kk-(64, 64, 32)")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CONFIGS)
def test_product(name: str, shape: tuple[int, int, int]) -> None:
    check(name, shape)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "pads", "offset", "kernel"),
    [
        ((64, 64, 64), (0, 8, 16), 0, "gemm_16"),
        ((64, 64, 64), (4, 0, 0), 0, "gemm_8"),
        ((64, 64, 64), (0, 0, 0), 4, "gemm_8"),
        ((64, 68, 64), (0, 0, 0), 0, "gemm_8"),
        ((64, 64, 36), (4, 4, 0), 0, "gemm_8"),
        ((64, 64, 64), (0, 2, 0), 0, "gemm_4"),
        ((64, 66, 34), (6, 6, 6), 0, "gemm_4"),
        ((64, 64, 64), (1, 0, 0), 0, "gemm"),
        ((64, 64, 64), (0, 0, 0), 1, "gemm"),
        ((64, 64, 63), (1, 1, 0), 0, "gemm"),
    ],
    ids=str,
)
def test_launch_selects_the_widest_copy(
    shape: tuple[int, int, int], pads: tuple[int, int, int], offset: int, kernel: str
) -> None:
    assert check("kk", shape, pads, offset) == kernel


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kk", "mm"])
def test_an_empty_sum_is_zero(name: str) -> None:
    check(name, (17, 18, 0))


@pytest.mark.slow
def test_shapes_must_agree() -> None:
    from cute_dialect.runtime.launch import LaunchError

    x = np.zeros((64, 64), np.float16)
    for a, b, c, text in ((x, x[:, :32], x, "the same K"), (x[:32], x, x, "the same M"), (x, x[:32], x, "the same N")):
        with pytest.raises(LaunchError, match=text):
            module("kk").kernel("gemm")(a, b, c, device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kk", "mm", "deep"])
@pytest.mark.parametrize("shape", [(72, 136, 104), (65, 67, 37)], ids=str)
def test_no_races_and_no_bank_conflicts(name: str, shape: tuple[int, int, int]) -> None:
    config = CONFIGS[name]
    m, n, k = shape
    a, b = operand(config, 0, m, k, 0, 0, 1), operand(config, 1, n, k, 0, 0, 2)
    _, c = matrix(DTYPES[config.element][0], m, n, 0, 0)
    report = module(name).kernel("gemm")(
        a, b, c, device="cpu", checks=("race", "oob", "uninit", "sync"), reports=("banks",)
    )
    assert report is not None and not report.warnings and report.profile is not None
    lines = [line for line in report.profile.lines if line.space == "shared"]
    assert lines and all(line.transactions == line.ideal for line in lines), lines


def test_the_trace_is_the_example() -> None:
    assert ampere_gemm_text(AmpereConfig(vectors=(8, 1))) == EXAMPLE.read_text()


@pytest.mark.slow
def test_registers_do_not_spill() -> None:
    report = compile_cute(ampere_gemm_text(AmpereConfig(vectors=(8, 1)))).report
    assert report.count("0 bytes spilled, 0 bytes stack") == 2, report
