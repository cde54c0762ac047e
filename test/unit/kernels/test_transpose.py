"""Transpose kernels on the CPU interpreter: equal to numpy's transpose, without bank conflicts or register spills."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.text import parse_layout
from cute_dialect.algebra.values import Layout, Swizzle
from cute_dialect.kernels.copies.transpose import BYTES, Plan, launch, transpose_text
from cute_dialect.lang.values.dtypes import type_of_mlir
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule, LaunchError

EXAMPLE = Path(__file__).parents[2] / "examples" / "transpose.mlir"


def test_the_trace_is_the_example() -> None:
    assert transpose_text() == EXAMPLE.read_text()


@cache
def module(element: str) -> CompiledModule:
    return compile_cute(transpose_text(element), emit="base")


DTYPES = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "f64": np.float64}


def matrix(
    element: str, shape: tuple[int, ...], strides: tuple[int, int], offset: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix of random bits as numbers of its type, and as integers of the same memory. It starts ``offset``
    elements into a 16-byte aligned buffer.
    """
    item = BYTES[element]
    last = sum((n - 1) * s for n, s in zip(shape, strides)) + 1
    raw = np.random.default_rng(sum(shape)).integers(0, 256, (last + offset) * item + 16, np.uint8)
    skip = -raw.ctypes.data % 16
    store = raw[skip : skip + (last + offset) * item]
    views = [store.view(t)[offset:] for t in (DTYPES[element], f"i{item}")]
    a, b = (np.lib.stride_tricks.as_strided(v, shape, [s * item for s in strides]) for v in views)
    return a, b


CASES = [
    ((64, 128), (128, 1), (64, 1), 0, "transpose_v"),
    ((131, 77), (77, 1), (131, 1), 0, "transpose"),
    ((70, 144), (160, 1), (80, 1), 0, "transpose_v"),
    ((1, 5), (16, 1), (16, 1), 0, "transpose_v"),
    ((65, 130), (1, 65), (131, 1), 0, "transpose"),
    ((33, 64), (64, 1), (48, 1), 1, "transpose"),
]


@pytest.mark.sample(every=11)
@pytest.mark.parametrize(("shape", "a_strides", "b_strides", "offset", "kernel"), CASES)
@pytest.mark.parametrize("element", ["f32", "f16", "i8", "f64"])
def test_equal_to_numpy(
    element: str,
    shape: tuple[int, int],
    a_strides: tuple[int, int],
    b_strides: tuple[int, int],
    offset: int,
    kernel: str,
) -> None:
    (a, a_bits), (b, b_bits) = (
        matrix(element, shape, a_strides, offset),
        matrix(element, shape[::-1], b_strides),
    )
    function = module(element).kernel("transpose")
    function(a, b, device="cpu")
    assert function.plan(a, b).kernel == kernel
    assert np.array_equal(b_bits, a_bits.T)


def test_called_from_python() -> None:
    """One specialization per element type accepts all strides. Wrong shapes raise an error."""
    launch.cache_clear()
    for shape, a_strides, b_strides, offset, _ in CASES:
        (a, a_bits), (b, b_bits) = (
            matrix("f32", shape, a_strides, offset),
            matrix("f32", shape[::-1], b_strides),
        )
        launch(a, b, device="cpu")
        assert np.array_equal(b_bits, a_bits.T)
    assert launch.cache_info().misses == 1
    with pytest.raises(LaunchError, match="B must have as many rows as A has columns"):
        launch(np.zeros((32, 20), np.float32), np.zeros((24, 32), np.float32), device="cpu")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((24, 32), "B must have as many rows as A has columns"),
        ((20, 24), "B must have as many columns as A has rows"),
    ],
)
def test_mismatched_shapes_are_rejected(shape: tuple[int, int], message: str) -> None:
    a, b = np.zeros((32, 20), np.float32), np.zeros(shape, np.float32)
    with pytest.raises(LaunchError, match=message):
        module("f32").kernel("launch")(a, b, device="cpu")


def phases(bits: int) -> int:
    """Return the groups of threads of a warp that shared memory serves in one pass of 32 words."""
    return min(32, 1024 // bits)


def worst(smem: Layout, swizzle: Swizzle, thread_value: Layout, width: int, element: str) -> int:
    """Return the largest number of passes of one access over all values and warps: 1 without conflicts."""
    item = BYTES[element]
    bits, base, shift = swizzle.bits, swizzle.base, swizzle.shift
    threads, values = (np.prod(_flat(s), dtype=int) for s in thread_value.shape)  # type: ignore[union-attr]
    group = phases(8 * item * width)
    most = 0
    for first in range(0, int(threads), group):
        for v in range(int(values)):
            words: dict[int, set[int]] = {}
            for t in range(first, first + group):
                at = evaluate(evaluate((t, v), thread_value), smem)
                assert isinstance(at, int)
                at *= item
                at ^= (at >> shift) & (((1 << bits) - 1) << base)
                if at % (item * width):
                    continue  # This value does not start an access.
                for k in range(0, max(4, item * width), 4):
                    word = (at + k) // 4
                    words.setdefault(word % 32, set()).add(word)
            most = max(most, max((len(w) for w in words.values()), default=0))
    return most


def _flat(x: object) -> list[int]:
    return [z for y in x for z in _flat(y)] if isinstance(x, tuple) else [x]  # type: ignore[list-item]


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("element", ["f64", "f32", "f16", "i8"])
def test_no_bank_conflicts(element: str, vectors: bool) -> None:
    plan = Plan(type_of_mlir(element), vectors=vectors)
    for access in (plan.load, plan.store):
        width = plan.vector if vectors else 1
        assert worst(plan.smem.payload, plan.swizzle, access.payload, width, element) == 1


def test_conflict_counter_detects_conflicts() -> None:
    # Without a swizzle, a column of a row-major tile of 32 words is in one bank.
    rows, columns = parse_layout("(32,32):(32,1)"), parse_layout("(32,32):(1,32)")
    assert worst(rows, Swizzle(0, 4, 3), columns, 1, "f32") == 32


@pytest.mark.slow
def test_registers_do_not_spill() -> None:
    for element in ("f32", "f16"):
        report = compile_cute(transpose_text(element)).report
        assert report.count("0 bytes spilled, 0 bytes stack") == 2, report
