"""Kernels with the API of mlir-python-extras: loops with carried values, generics, thread_idx.x."""

# ruff: noqa: B007, B020, UP028

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang import extras
from cute_dialect.lang.extras import T, arith, block_dim, block_idx, gpu, range_, thread_idx


@cute.generic("M", "K", "N", "dtype")
@gpu.func
def sgemm_naive(A: T.memref(M, K, dtype), B: T.memref(K, N, dtype), C: T.memref(M, N, dtype)):  # noqa: F821
    one = arith.constant(1.0, type=dtype)  # noqa: F821
    tmp = arith.constant(0, type=dtype)  # noqa: F821

    r = block_dim.x * block_idx.x + thread_idx.x
    c = block_dim.y * block_idx.y + thread_idx.y

    for k, tmp in range_(K, iter_args=[tmp]):  # noqa: F821
        tmp += A[r, k] * B[k, c]
        tmp = yield tmp
    C[r, c] = tmp + one


@pytest.mark.parametrize("kind", [cute.Float32, cute.Float64])
def test_a_product(kind: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(kind.numpy) for shape in ((8, 5), (5, 16)))
    c = np.zeros((8, 16), kind.numpy)
    sgemm_naive[8, 5, 16, kind](a, b, c).launch(grid=(2, 4), block=(4, 4), device="cpu")
    np.testing.assert_array_equal(c, a @ b + 1)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are Python 3.12's")
def test_a_product_with_type_parameters(tmp_path: Path) -> None:
    text = (
        "import cute_dialect.lang as cute\n"
        "from cute_dialect.lang.extras import T as types, arith, block_dim, block_idx, gpu, range_, thread_idx\n"
        "@gpu.func\n"
        "def product[M, K, N, dtype](\n"
        "    A: types.memref(M, K, dtype), B: types.memref(K, N, dtype), C: types.memref(M, N, dtype)\n"
        "):\n"
        "    r = block_dim.x * block_idx.x + thread_idx.x\n"
        "    c = block_dim.y * block_idx.y + thread_idx.y\n"
        "    tmp = arith.constant(0, type=dtype)\n"
        "    for k, tmp in range_(K, iter_args=[tmp]):\n"
        "        tmp += A[r, k] * B[k, c]\n"
        "        tmp = yield tmp\n"
        "    C[r, c] = tmp\n"
    )
    path = tmp_path / "product.py"
    path.write_text(text)
    space: dict[str, Any] = {"__name__": "product"}
    exec(compile(text, str(path), "exec"), space)
    a, b = np.arange(40, dtype=np.float32).reshape(8, 5), np.ones((5, 16), np.float32)
    c = np.zeros((8, 16), np.float32)
    space["product"][8, 5, 16, cute.Float32](a, b, c).launch(grid=(2, 4), block=(4, 4), device="cpu")
    assert (c == a @ b).all()


@cute.kernel
def forms_kernel(x: cute.Tensor, n: cute.Int32, out: cute.Tensor):
    first = arith.constant(7)
    for i, acc, res in range_(0, n, 1, iter_args=[first]):
        acc = acc + i
        yield acc
    out[0] = res
    lo, hi = arith.constant(100), arith.constant(0)
    for i, (a, b), both in extras.scf.range_(n, iter_args=[lo, hi]):
        small, large = a, b
        if x[i] < small:
            small = x[i]
        if x[i] > large:
            large = x[i]
        last = yield small, large
    out[1], out[2] = both
    out[3], out[4] = last
    total = arith.constant(0)
    for i, total in range_(n, iter_args=[total]):
        for j, total in range_(2, iter_args=[total]):
            total = total + x[i] * (j + 1)
            total = yield [total]
        total = yield total
    out[5] = total


@pytest.mark.parametrize("n", [0, 1, 5])
def test_carried_value_types(n: int) -> None:
    x = np.array([3, -2, 9, 50, 4], np.int32)
    out = np.zeros(6, np.int32)
    forms_kernel(x, n, out).launch(grid=1, block=1, device="cpu")
    low, high = min([100, *x[:n]]), max([0, *x[:n]])
    assert list(out) == [7 + sum(range(n)), low, high, low, high, 3 * x[:n].sum()]


@cute.kernel
def no_yield_kernel(out: cute.Tensor):
    for i, acc in range_(4, iter_args=[out[0]]):
        acc = acc + i
    yield 3


@cute.kernel
def targets_kernel(out: cute.Tensor):
    for acc in range_(4, iter_args=[out[0]]):
        yield acc


@cute.kernel
def values_kernel(out: cute.Tensor):
    for i, acc in range_(4, iter_args=out):
        yield acc


def test_invalid_arguments_are_rejected() -> None:
    out = np.zeros(1, np.int32)
    for kernel, text in (
        (no_yield_kernel, "F150: this loop has iter_args but never yields the next values"),
        (targets_kernel, "F150: a loop with iter_args needs the targets 'index, carried' or"),
        (values_kernel, r"F150: iter_args must be a list of the initial values, iter_args=\[…\]"),
    ):
        with pytest.raises(cute.SyntaxErrorInKernel, match=text):
            kernel(out).launch(grid=1, block=1, device="cpu")
    with pytest.raises(cute.SyntaxErrorInKernel, match="F150: range_ with iter_args must be the iterable of a 'for'"):
        range_(3, iter_args=[1])
    with pytest.raises(AttributeError, match="thread_idx has no attribute 'w'"):
        _ = thread_idx.w


def test_types_and_constants() -> None:
    assert T.f32() is cute.Float32 and T.index() is cute.Int64 and extras.gpu.thread_idx is thread_idx
    assert type(arith.constant(1.5)) is cute.Float32 and type(arith.constant(2, index=True)) is cute.Int64
