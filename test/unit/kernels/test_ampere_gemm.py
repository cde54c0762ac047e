"""The GEMM of sm_80 in the language: exact integers under every check, odd sizes, the generator's instructions."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.kernels.ampere_gemm import AmpereGemm
from cute_dialect.kernels.gemm_sm80 import GemmConfig, gemm_sm80
from cute_dialect.pipelines import compile as compile_cute

CHECKS = ("race", "uninit", "sync", "oob")


def matrix(rows: int, columns: int, major: str, pad: int, seed: int) -> np.ndarray:
    """Small integers; ``pad`` elements of NaN lie between rows (between columns, if those are contiguous)."""
    if major == "mn":
        return matrix(columns, rows, "k", pad, seed).T
    storage = np.full((rows, columns + pad), np.nan, np.float16)
    storage[:, :columns] = np.random.default_rng(seed).integers(-3, 4, (rows, columns))
    return storage[:, :columns]


def multiply(
    shape: tuple[int, int, int], majors: tuple[str, str] = ("k", "k"), pad: int = 0, *, static: bool = False,
    **options: Any,
) -> None:  # fmt: skip
    """One product, exact, that writes nothing between the rows of C."""
    m, n, k = shape
    a, b = matrix(m, k, majors[0], pad, 1), matrix(n, k, majors[1], pad, 2)
    storage = np.full((m, n + pad), np.nan, np.float16)
    c = storage[:, :n]
    given = [cute.from_dlpack(x) for x in (a, b, c)] if static else [a, b, c]
    options.setdefault("tile", (64, 64, 32))
    AmpereGemm(**options)(*given, device="cpu", checks=CHECKS)
    assert (c.astype(np.float64) == a.astype(np.float64) @ b.astype(np.float64).T).all()
    assert np.isnan(storage[:, n:]).all()


@pytest.mark.parametrize("shape", [(72, 80, 40), (1, 1, 1), (65, 129, 33), (136, 72, 232), (17, 24, 0)], ids=str)
def test_products_are_exact(shape: tuple[int, int, int]) -> None:
    multiply(shape)


@pytest.mark.parametrize("majors", [("k", "mn"), ("mn", "k"), ("mn", "mn")], ids=str)
@pytest.mark.parametrize("shape", [(72, 136, 104), (65, 67, 37)], ids=str)
def test_majors(shape: tuple[int, int, int], majors: tuple[str, str]) -> None:
    multiply(shape, majors)


@pytest.mark.parametrize("majors", [("k", "k"), ("mn", "mn")], ids=str)
def test_rows_that_end_amid_a_vector(majors: tuple[str, str]) -> None:
    """Rows lie 16 bytes apart, but a copy of 16 bytes would take what is between them."""
    multiply((68, 132, 100), majors, 4)


@pytest.mark.parametrize("k", [36, 34, 33, 64])
def test_static_shapes_take_the_widest_copies_that_hold(k: int) -> None:
    multiply((64, 72, k), static=True)


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


def test_other_matrices_are_refused() -> None:
    a = np.zeros((64, 64), np.float16)
    with pytest.raises(TypeError, match="matrices of one type, Float16 or BFloat16"):
        AmpereGemm()(a, a, a.astype(np.float32), device="cpu")
    with pytest.raises(ValueError, match="C with contiguous rows"):
        AmpereGemm()(a, a, a.T, device="cpu")
    with pytest.raises(cute.ShapeError):
        AmpereGemm()(a, a[:, :32], a, device="cpu")


INSTRUCTIONS = ("mma.sync", "ldmatrix", "cp.async.cg", "cp.async.commit_group", "cp.async.wait_group", "bar.sync")


def test_the_instructions_are_the_generators() -> None:
    m, n, k = cute.sym_int(), cute.sym_int(), cute.sym_int(divisibility=8)
    fake = cute.runtime.make_fake_tensor
    row = cute.sym_int(divisibility=8)
    a, b, c = (fake(cute.Float16, (x, y), (row, 1), assumed_align=16) for x, y in ((m, k), (n, k), (m, n)))
    made = cute.compile(AmpereGemm(), a, b, c, chip="sm_80")
    expected = compile_cute(gemm_sm80(GemmConfig(vectors=(8,))), chip="sm_80")
    found, wanted = (Counter(re.findall("|".join(map(re.escape, INSTRUCTIONS)), x.ptx)) for x in (made, expected))
    assert found == wanted and set(found) == set(INSTRUCTIONS) and ".local" not in made.ptx and not made.remarks
    of_made, of_expected = (int(re.findall(r"(\d+) registers, 0 bytes spilled", x.report)[0]) for x in (made, expected))
    assert abs(of_made - of_expected) <= 2
