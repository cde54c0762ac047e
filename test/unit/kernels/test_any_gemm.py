"""The GEMM for arbitrary strides, used when TMA cannot read the operands, on the CPU interpreter."""

# pyright: basic

import numpy as np
import pytest
from gemm_fallback_support import CASES, DTYPES, arrays

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.unaligned import any_gemm
from cute_dialect.lang.values.dtypes import type_of_mlir

CHECKS = ("race", "uninit", "sync", "oob")


@cute.jit
def multiply(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
    launch = any_gemm(A, B, C)
    launch.launch(**launch.sizes)


def compiled(name: str):
    """Return the kernel for one case. Any row stride is allowed."""
    c, _ = CASES[name]

    def matrix(element: str, major: str):
        strides = "?,1" if major == "k" else "1,?"
        layout = f"(?,?,?):({strides},?)" if c.batch else f"(?,?):({strides})"
        return cute.Tensor[type_of_mlir(element), layout]

    given = matrix(c.element, c.major_a), matrix(c.element, c.major_b), matrix(c.output, "k")
    return cute.compile(multiply, *given, chip="sm_90a")


@pytest.mark.sample("rows of 200 bytes")
@pytest.mark.parametrize("name", CASES)
def test_products_are_exact(name: str) -> None:
    arguments, out, exact = arrays(name)
    compiled(name)(*arguments, device="cpu", checks=CHECKS)
    assert (out.astype(np.float64) == exact).all()


@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2"])
def test_every_8_bit_float(element: str) -> None:
    """Multiplying by one keeps every value, including zeros, subnormals and NaN."""
    a = np.arange(256, dtype=np.uint8).view(DTYPES[element]).reshape(256, 1)
    one, out = np.ones((1, 1), DTYPES[element]), np.zeros((256, 1), np.float32)
    multiply(a, one, out, device="cpu")
    assert np.array_equal(out, a.astype(np.float32), equal_nan=True)


def test_matrices_without_a_contiguous_mode() -> None:
    """A, B and C are strided in both modes, and the gaps of C keep their values."""
    m, n, k = 66, 70, 35
    a, b = (np.random.default_rng(rows).integers(-2, 3, (2 * rows, 3 * k)).astype(np.float16) for rows in (m, n))
    a, b = a[::2, ::3], b[1::2, ::3]
    storage = np.full((2 * m, 2 * n), np.nan, np.float32)
    multiply(a, b, storage[::2, ::2], device="cpu", checks=CHECKS)
    assert (storage[::2, ::2] == a.astype(np.float64) @ b.astype(np.float64).T).all()
    assert np.isnan(storage[1::2]).all() and np.isnan(storage[:, 1::2]).all()
