"""``quantize`` in epilogues, with 8-bit results and a scale per block of columns, compared with numpy in float64."""

# Traced functions have no type annotations.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from refused_calls import without_place

from cute_dialect import op
from cute_dialect.op.epilogue import quantize, sum
from cute_dialect.op.errors import OpError

ALL = ["race", "uninit", "oob", "sync"]
TYPES: dict[str, Any] = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "i8": np.int8}


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return small integers, and per-row factors that are powers of two or 0."""
    rng = np.random.default_rng(m + n)
    a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((m, k), (k, n)))
    rows = np.ldexp(np.float32(1), rng.integers(-20, 20, (m, 1)))
    rows[m // 2] = 0.0
    return a, b, rows


@pytest.mark.end_to_end
@pytest.mark.sample("f8E4M3FN-128-f32-72-272")
@pytest.mark.parametrize(
    ("element", "block", "scales", "m", "n"),
    [("f8E4M3FN", 128, "f32", 72, 272), ("f8E5M2", 32, "e8m0", 40, 96), ("i8", 64, "e8m0", 72, 200)],
)  # fmt: skip
def test_blocks(element: str, block: int, scales: str, m: int, n: int) -> None:
    """Values and scales are right. The last block of a row may have fewer columns."""

    def f(accum: Any, rows: Any) -> Any:
        q, s = quantize(accum * rows, element, (1, block), scales)
        return {"D": accum, "q": q, "s": s} if element == "i8" else {"D": q, "s": s}

    a, b, rows = operands(m, n, 40)
    *_, d, s = op.mm(a, b, epilogue=f, args={"rows": rows}, device="cpu", checks=ALL).values()
    *_, want, wanted = f(a.astype(np.float64) @ b.astype(np.float64), rows.astype(np.float64)).values()
    assert d.dtype == TYPES[element] and d.shape == (m, n) and s.shape == wanted.shape == (m, -(-n // block))
    assert s.dtype == (np.float32 if scales == "f32" else ml_dtypes.float8_e8m0fnu)
    if scales == "e8m0":  # Every step before the last rounding is exact.
        assert (s.astype(np.float64) == wanted).all() and (d.astype(np.float64) == want).all()
    else:
        assert np.allclose(s, wanted, rtol=2**-23, atol=0.0)
        off = d.astype(np.float64) != want
        assert off.mean() < 0.01 and np.allclose(d[off].astype(np.float64), want[off], rtol=0.13)
    assert (s[m // 2].astype(np.float32) == 1.0).all() and (d[m // 2].astype(np.float32) == 0.0).all()


@pytest.mark.slow
def test_quantize_with_further_results() -> None:
    """D, 8-bit values, scales in the caller's memory, row sums, and batches."""

    def f(accum: Any) -> Any:
        q, s = quantize(accum, scales="e8m0", block=32)
        return {"D": accum, "q": q, "s": s, "rows": sum(accum, -1)}

    rng = np.random.default_rng(3)
    a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((2, 40, 16), (2, 16, 64)))
    s = np.full((2, 2, 48), 77, np.uint8)
    args = {"s": s[..., :40].transpose(0, 2, 1)}
    found = op.bmm(a, b, epilogue=f, args=args, dtype=np.float32, device="cpu", checks=ALL)
    want = f(a.astype(np.float64) @ b)
    for name in ("D", "q", "rows"):
        assert (found[name].astype(np.float64) == want[name]).all()
    assert (np.ldexp(1.0, args["s"].astype(int) - 127) == want["s"]).all() and (s[..., 40:] == 77).all()


@pytest.mark.slow
def test_rows_not_readable_by_tma() -> None:
    def f(accum: Any) -> Any:
        q, s = quantize(accum, "i8", 32, "e8m0")
        return {"D": accum, "q": q, "s": s}

    rng = np.random.default_rng(4)
    a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((9, 7), (7, 37)))
    _, d, s = op.mm(a, b, epilogue=f, device="cpu").values()
    _, want, wanted = f(a.astype(np.float64) @ b).values()
    assert (d == want).all() and (s.astype(np.float64) == wanted).all()


@pytest.mark.slow
def test_two_products() -> None:
    """The quantized result of one GEMM is the operand of the next."""
    rng = np.random.default_rng(5)
    a, b, w = (rng.integers(-2, 3, s).astype(np.float16) for s in ((64, 32), (32, 256), (256, 64)))

    def f(accum: Any) -> Any:
        D, s = quantize(accum)
        return D, s

    q, s = op.mm(a, b, epilogue=f, device="cpu")
    wq = w.astype(ml_dtypes.float8_e4m3fn)
    found = op.scaled_mm(q, wq, s, np.ones((1, 2), np.float32), device="cpu", dtype=np.float32)
    values = q.astype(np.float64) * s.astype(np.float64).repeat(128, 1)
    assert np.allclose(found, values @ w.astype(np.float64), rtol=1e-4, atol=1e-3)
    assert np.abs(values - a.astype(np.float64) @ b).max() <= 2**-4 * np.abs(values).max()


@pytest.mark.parametrize(
    ("function", "more", "message"),
    [
        (lambda accum: quantize(accum, "f16"), {},
         "mm: quantize: element=f16 with block=128 is not supported; element is one of f8E4M3FN, f8E5M2, i8, "
         "block is 32, 64 or 128"),
        (lambda accum: quantize(accum, block=48), {},
         "mm: quantize: element=f8E4M3FN with block=48 is not supported; element is one of f8E4M3FN, f8E5M2, i8, "
         "block is 32, 64 or 128"),
        (lambda accum: quantize(accum, scales="f16"), {},
         'mm: quantize: scales="f16" is not supported; use "f32" or "e8m0"'),
        (lambda accum: quantize(accum)[0] + quantize(accum)[1], {},
         "mm: epilogue <lambda>: the scales of quantize() cannot be an operand; return them as a result"),
        (lambda accum: quantize(quantize(accum)[0], block=32)[0], {},
         "mm: epilogue <lambda>: quantize() needs all columns of the accumulator, and one block size per epilogue; "
         "the shape is (64, 64), the block 32"),
        (lambda accum: quantize(op.epilogue.pairs(accum)[0])[0], {},
         "mm: epilogue <lambda>: quantize() needs all columns of the accumulator, and one block size per epilogue; "
         "the shape is (64, 32), the block 128"),
        (lambda accum: quantize(accum)[0], {"dtype": np.float16},
         "mm: epilogue <lambda>: D has dtype f16; quantize() makes f8E4M3FN"),
        (lambda accum: {"D": accum, "s": quantize(accum)[1]}, {"args": {"s": np.zeros((64, 1), np.float16)}},
         "mm: epilogue <lambda>: s has dtype f16; it must have f32"),
        (lambda accum: {"D": accum, "s": quantize(accum, scales="e8m0")[1]},
         {"args": {"s": np.zeros((64, 1), np.float32)}},
         "mm: epilogue <lambda>: s has dtype float32; it must have float8_e8m0fnu"),
        (lambda accum: {"D": accum, "s": quantize(accum)[1]}, {"out": np.zeros((64, 64), np.float16).T},
         "mm: out has strides (1, 64), but quantize() in an epilogue needs contiguous rows; pass a contiguous out"),
    ],
)  # fmt: skip
def test_errors(function: Any, more: dict[str, Any], message: str) -> None:
    a = np.zeros((64, 64), np.float16)
    with pytest.raises(OpError) as e:
        op.mm(a, a, epilogue=function, device="cpu", **more)
    assert without_place(e.value) == message
