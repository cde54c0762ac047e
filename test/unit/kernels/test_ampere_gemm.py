"""The sm_80 GEMM: exact integer results under every check, odd sizes, and the compiled code."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.ampere import AmpereConfig, AmpereGemm, ampere_gemm_text
from cute_dialect.pipelines import compile
from cute_dialect.runtime.arrays import numpy_dtype
from cute_dialect.runtime.launch import Kernel
from cute_dialect.runtime.launch_plan import LaunchError

CHECKS = ("race", "uninit", "sync", "oob")
BIASED = Epilogue(alpha="arg", beta="arg", bias="n", activation="relu")


def matrix(rows: int, columns: int, major: str, pad: int, seed: int) -> np.ndarray:
    """Return small integers with ``pad`` NaN elements between rows (or between columns, if those are contiguous)."""
    if major == "mn":
        return matrix(columns, rows, "k", pad, seed).T
    storage = np.full((rows, columns + pad), np.nan, np.float16)
    storage[:, :columns] = np.random.default_rng(seed).integers(-3, 4, (rows, columns))
    return storage[:, :columns]


def multiply(
    shape: tuple[int, int, int], majors: tuple[str, str] = ("k", "k"), pad: int = 0, *, static: bool = False,
    **options: Any,
) -> None:  # fmt: skip
    """Run one GEMM. The result must be exact and the padding between rows of C unchanged."""
    m, n, k = shape
    a, b = matrix(m, k, majors[0], pad, 1), matrix(n, k, majors[1], pad, 2)
    storage = np.full((m, n + pad), np.nan, np.float16)
    c = storage[:, :n]
    given = [cute.from_dlpack(x) for x in (a, b, c)] if static else [a, b, c]
    options.setdefault("tile", (64, 64, 32))
    AmpereGemm(AmpereConfig(**options))(*given, device="cpu", checks=CHECKS)
    assert (c.astype(np.float64) == a.astype(np.float64) @ b.astype(np.float64).T).all()
    assert np.isnan(storage[:, n:]).all()


@pytest.mark.end_to_end
@pytest.mark.sample("(72, 80, 40)")
@pytest.mark.parametrize("shape", [(72, 80, 40), (1, 1, 1), (65, 129, 33), (136, 72, 232), (17, 24, 0)], ids=str)
def test_products_are_exact(shape: tuple[int, int, int]) -> None:
    multiply(shape)


@pytest.mark.slow
@pytest.mark.parametrize("majors", [("k", "mn"), ("mn", "k"), ("mn", "mn")], ids=str)
@pytest.mark.parametrize("shape", [(72, 136, 104), (65, 67, 37)], ids=str)
def test_majors(shape: tuple[int, int, int], majors: tuple[str, str]) -> None:
    multiply(shape, majors)


@pytest.mark.slow
@pytest.mark.parametrize("majors", [("k", "k"), ("mn", "mn")], ids=str)
def test_rows_that_end_inside_a_vector(majors: tuple[str, str]) -> None:
    """Row strides are multiples of 16 bytes, but a 16-byte copy at the end of a row would read the padding."""
    multiply((68, 132, 100), majors, 4)


@pytest.mark.sample("36")
@pytest.mark.parametrize("k", [36, 34, 33, 64])
def test_static_shapes_use_the_widest_copies(k: int) -> None:
    multiply((64, 72, k), static=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"tile": (128, 128, 32)}, {"tile": (64, 128, 64), "warps": (2, 4), "group": 2},
        {"tile": (32, 32, 32), "stages": 4},
    ],
    ids=str,
)  # fmt: skip
def test_configurations(options: dict[str, Any]) -> None:
    multiply((136, 144, 168), **options)


@cache
def batched() -> Kernel:
    """Return a kernel that accepts any batch size."""
    text = ampere_gemm_text(AmpereConfig(tile=(64, 64, 32), batch=True, majors=("k", "mn")))
    return compile(text, emit="base").kernel("launch")


@pytest.mark.slow
@pytest.mark.parametrize("of_a, of_b", [(3, 3), (1, 3), (3, 1)])
@pytest.mark.parametrize("shape", [(65, 72, 40), (33, 67, 37)], ids=str)
def test_a_batch(shape: tuple[int, int, int], of_a: int, of_b: int) -> None:
    """A batch of matrices, or one matrix broadcast over the batch, with vector and with scalar copies."""
    m, n, k = shape
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (of_a, m, k)).astype(np.float16)
    b = rng.integers(-3, 4, (of_b, k, n)).astype(np.float16)
    c = np.full((3, m, n), np.nan, np.float16)
    kernel = AmpereGemm(AmpereConfig(tile=(64, 64, 32)))
    kernel(a.transpose(1, 2, 0), b.transpose(2, 1, 0), c.transpose(1, 2, 0), device="cpu", checks=CHECKS)
    assert (c == a.astype(np.float64) @ b.astype(np.float64)).all()
    again = np.full_like(c, np.nan)
    launch = batched()
    launch(a.transpose(1, 2, 0), b.transpose(2, 1, 0), again.transpose(1, 2, 0), device="cpu")
    assert (again == c).all()
    with pytest.raises(LaunchError, match="B must have as many matrices as C, or one for all"):
        launch(a.transpose(1, 2, 0), np.zeros((n, k, 2), np.float16, "F"), c.transpose(1, 2, 0), device="cpu")


@pytest.mark.slow
def test_other_matrices_are_refused() -> None:
    a = np.zeros((64, 64), np.float16)
    with pytest.raises(TypeError, match="A and B must be of one type, Float16 or BFloat16"):
        AmpereGemm()(a, a.astype(np.float32), a, device="cpu")
    with pytest.raises(TypeError, match="C must be of Float16, BFloat16 or Float32"):
        AmpereGemm()(a, a, a.astype(np.float64), device="cpu")
    with pytest.raises(ValueError, match="C must have contiguous rows"):
        AmpereGemm()(a, a, a.T, device="cpu")
    with pytest.raises(cute.LaunchError, match="A and B must have the same K"):
        AmpereGemm()(a, a[:, :32].copy(), a, device="cpu")
    with pytest.raises(cute.KernelTypeError, match="without a fallback"):
        AmpereGemm(AmpereConfig(vectors=(8, 4)))(a, a, a, device="cpu")


@pytest.mark.slow
def test_launch_selects_the_copy_width() -> None:
    """Fake tensors with 16-byte alignment compile to the widest copies only, and no registers spill."""
    m, n, k = cute.sym_int(), cute.sym_int(divisibility=8), cute.sym_int(divisibility=8)
    fake, row = cute.runtime.make_fake_tensor, cute.sym_int(divisibility=8)
    a, b, c = (fake(cute.Float16, (x, y), (row, 1), assumed_align=16) for x, y in ((m, k), (n, k), (m, n)))
    made = cute.compile(AmpereGemm(), a, b, c, chip="sm_80")
    (registers,) = re.findall(r"gemm_16: (\d+) registers, 0 bytes spilled, 0 bytes stack", made.report)
    assert int(registers) <= 213 and ".local" not in made.ptx and not made.remarks
    wanted = {"mma.sync": 64, "ldmatrix": 16, "cp.async.cg": 24, "cp.async.commit_group": 3, "bar.sync": 3}
    found = Counter(re.findall("|".join(map(re.escape, wanted)), made.ptx))
    assert found == wanted


@pytest.mark.slow
@pytest.mark.parametrize("output", ["", "f32", "bf16"])
@pytest.mark.parametrize("batch", [False, True])
def test_epilogues(output: str, batch: bool) -> None:
    """Epilogues with arguments, odd sizes, and a C of another type."""
    rng = np.random.default_rng(3)
    config = AmpereConfig(tile=(64, 64, 32), batch=batch, output=output, epilogue=BIASED)
    kind = numpy_dtype(config.result)
    kernel = compile(ampere_gemm_text(config), emit="base").kernel("launch")
    for (m, n, k), numbers in (((40, 88, 72), (2.0, 0.5)), ((33, 65, 7), (1.0, 1.0)), ((5, 3, 0), (0.5, 2.0))):
        more = (3,) if batch else ()
        a, b, c = (rng.integers(-2, 3, (*x, *more)) for x in ((m, k), (n, k), (m, n)))
        bias = rng.integers(-2, 3, n).astype(np.float32)
        d = np.full(c.shape, np.nan).astype(kind)
        types = np.float16, np.float16, kind, kind
        by_row = [x.transpose(2, 0, 1).copy().transpose(1, 2, 0) if batch else x for x in (a, b, d, c)]
        given = [x.astype(t, "K") for x, t in zip(by_row, types)]
        kernel(*given, bias, *numbers, device="cpu", checks=CHECKS)
        sums = np.einsum("mk...,nk...->mn...", a, b)
        wide = bias[:, None] if batch else bias
        exact = np.maximum(numbers[0] * sums + numbers[1] * c + wide, 0)
        np.testing.assert_array_equal(given[2], exact.astype(np.float32).astype(kind))
