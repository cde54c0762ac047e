"""Transpose kernels for rows of any alignment: equal to numpy's on the CPU interpreter, without register spills."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cute_dialect.kernels.copies.transpose import BYTES, Plan, whole_tile
from cute_dialect.kernels.copies.transpose_unaligned import UnalignedPlan, unaligned_text
from cute_dialect.lang.values.dtypes import type_of_mlir
from cute_dialect.op.execute.rows import choose_transpose
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.arrays import ArrayView

CHECKS = ("race", "uninit", "sync", "oob")


def matrix(
    element: str, shape: tuple[int, int], step: int, offset: int, fill: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return memory of random bits, or of bytes ``fill``, and a matrix in it ``offset`` elements after a boundary."""
    item = BYTES[element]
    count = (shape[0] - 1) * step + shape[1]
    raw = np.random.default_rng(count).integers(0, 256, (count + offset) * item + 32, np.uint8)
    raw = raw[-raw.ctypes.data % 16 :][: (offset + count) * item]
    if fill is not None:
        raw[:] = fill
    found = raw.view(f"i{item}")[offset:]
    return raw, np.lib.stride_tricks.as_strided(found, shape, (step * item, item))


TYPES = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "f64": np.float64}


SHAPES = """
70x86:86,70+0,0  71x67:67,71+1,1  3x5:5,3+0,0  64x64:70,67+1,0  1x65:65,1+0,1  65x1:1,65+1,0  13x141:143,17+1,1
200x30:33,200+0,1
"""
"""Shapes of A, row strides of A and B, and elements before each of them."""
PLANS = [
    ("f16", UnalignedPlan()),
    ("f32", UnalignedPlan()),
    ("f64", UnalignedPlan(threads=128)),
    ("f16", UnalignedPlan(4, 8, 128)),
    ("f32", UnalignedPlan(16, 8, 256)),
]


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("case", SHAPES.split())
@pytest.mark.parametrize(("element", "plan"), [*PLANS, pytest.param("i8", UnalignedPlan(), marks=pytest.mark.slow)])
def test_equal_to_numpy(element: str, plan: UnalignedPlan, case: str) -> None:
    """Elements outside of B stay as they were."""
    m, n, *steps, before_a, before_b = [int(x) for x in re.split("[x:,+]", case)]
    _, a = matrix(element, (m, n), steps[0], before_a)
    memory, b = matrix(element, (n, m), steps[1], before_b, 85)
    function = compile_cute(unaligned_text(element, plan), emit="base").kernel("launch")
    function(a.view(TYPES[element]), b.view(TYPES[element]), device="cpu", checks=CHECKS)
    found = memory.copy()
    b[...] = a.T
    assert np.array_equal(found, memory)


@pytest.mark.parametrize(("element", "threads"), [("bf16", 256), ("f32", 256), ("f64", 128)])
def test_registers_do_not_spill(element: str, threads: int) -> None:
    report = compile_cute(unaligned_text(element, UnalignedPlan(threads=threads))).report
    assert "0 bytes spilled, 0 bytes stack" in report, report


def test_unsupported_element() -> None:
    with pytest.raises(ValueError, match="element type 'i64x' is not supported; use one of f64, "):
        unaligned_text("i64x")


def test_plans_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="threads is 256; a tile of 16 columns has at most 128"):
        unaligned_text("f64", UnalignedPlan())


def test_choice_of_tiles() -> None:
    """Matrices of whole aligned tiles use the other kernel. The tile of any other matrix follows from its size."""
    names = {
        ("f16", 4096, 4096): "transpose-f16",
        ("f16", 4096, 4088): "transpose-f16-unaligned-16x8x256",
        ("f32", 270, 278): "transpose-f32-unaligned-4x8x128",
        ("bf16", 1001, 3001): "transpose-bf16-unaligned-8x8x256",
        ("bf16", 1001, 3000): "transpose-bf16-unaligned-8x8x128",
        ("f64", 100, 200): "transpose-f64-unaligned-8x8x128",
        ("bf16", 200, 3): "transpose-bf16-from-3-8",
    }
    for (element, m, n), name in names.items():
        x = ArrayView(0, (m, n), (n, 1), element, 0, "", None)
        y = x._replace(shape=(n, m), strides=(m, 1))
        assert choose_transpose(x, y)[0].name == name
        assert choose_transpose(x._replace(strides=(n, 2)), y)[0].name == f"transpose-{element}"
    rows, columns = whole_tile("f32")
    assert (rows, columns) == Plan(type_of_mlir("f32")).tile
