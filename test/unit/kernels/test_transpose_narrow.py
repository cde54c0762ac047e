"""Transpose kernels for narrow matrices: equal to numpy's on the CPU interpreter, without register spills."""

from __future__ import annotations

import numpy as np
import pytest

from cute_dialect.kernels.copies.transpose_narrow import narrow_text
from cute_dialect.pipelines import compile as compile_cute

DTYPES = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "f64": np.float64}
CHECKS = ("race", "uninit", "sync", "oob")


def vector(element: str, count: int, fill: int | None = None) -> np.ndarray:
    """Return ``count`` 16-byte aligned elements of random bits, or of bytes ``fill``."""
    item = np.dtype(DTYPES[element]).itemsize
    raw = np.random.default_rng(count).integers(0, 256, count * item + 16, np.uint8)
    found = raw[-raw.ctypes.data % 16 :][: count * item]
    if fill is not None:
        found[:] = fill
    return found.view(DTYPES[element])


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("tall", [True, False])
@pytest.mark.parametrize(
    ("element", "n", "rows", "unit"),
    [
        ("f16", 1, 7, 1), ("f16", 3, 1003, 1), ("f16", 4, 1000, 8), ("f16", 8, 1062, 2), ("f16", 32, 520, 8),
        ("f16", 31, 203, 1), ("f16", 127, 103, 1), ("f32", 50, 72, 4),
        ("f32", 17, 530, 2), ("f32", 16, 3, 1), ("i8", 5, 1100, 4), ("f64", 2, 301, 1),
    ],
)  # fmt: skip
def test_equal_to_numpy(element: str, n: int, rows: int, unit: int, tall: bool) -> None:
    source, result = vector(element, n * rows), vector(element, n * rows, 255)
    narrow, wide = (source, result.reshape(n, rows)) if tall else (result, source.reshape(n, rows))
    function = compile_cute(narrow_text(element, n, unit, tall), emit="base").kernel("launch")
    function(narrow, wide, device="cpu", checks=CHECKS)
    item = f"i{source.itemsize}"
    assert np.array_equal(narrow.view(item).reshape(rows, n).T, wide.view(item))


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("tall", [True, False])
@pytest.mark.parametrize(("element", "n"), [("f16", 127), ("f32", 63), ("i8", 8)])
def test_registers_do_not_spill(element: str, n: int, tall: bool) -> None:
    report = compile_cute(narrow_text(element, n, 1, tall)).report
    assert "0 bytes spilled, 0 bytes stack" in report, report


@pytest.mark.parametrize(
    ("element", "n", "message"),
    [
        ("f16", 128, "n is 128; a narrow matrix has 1 to 127 columns"),
        ("i64x", 4, "element type 'i64x' is not supported"),
    ],
)
def test_unsupported_matrices(element: str, n: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        narrow_text(element, n, 1, True)
