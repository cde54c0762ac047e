"""Every kernel family under all checks, on small aligned and unaligned shapes: no errors or warnings, right values."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from cute_dialect.interp import InterpError
from cute_dialect.kernels.copies.transpose import transpose_text
from cute_dialect.kernels.elementwise.add import elementwise_add_text
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.ampere import ampere_gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SkinnyConfig
from cute_dialect.kernels.gemm.few_rows import few_rows_text
from cute_dialect.kernels.gemm.sgemm import RUNGS, sgemm_text
from cute_dialect.kernels.rows.forward import OPERATIONS, row_text
from cute_dialect.kernels.rows.sums import sum_text
from cute_dialect.pipelines import compile as compile_cute

CHECKS = ("race", "oob", "uninit", "sync")
EXAMPLES = os.path.join(os.path.dirname(__file__), "..", "..", "examples")


class Family(NamedTuple):
    """A kernel file, the shapes and types of its arrays (the result is last), and the expected result."""

    text: Callable[[], str]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    want: Callable[..., np.ndarray]
    exact: bool = True
    kernel: str = "launch"
    numbers: tuple[float, ...] = ()
    """Scalar arguments, passed after the arrays."""


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


def _product_nk(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b.T


def _sum(x: np.ndarray) -> np.ndarray:
    return np.asarray(x.sum(1))


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _layernorm(x: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    return y * weights[0] + weights[1] if weights else y


def _rmsnorm(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5) * w


ROWS: dict[str, tuple[int, Callable[..., np.ndarray]]] = {
    "sum": (0, _sum),
    "softmax": (0, _softmax),
    "log_softmax": (0, lambda x: np.log(_softmax(x))),
    "rmsnorm": (1, _rmsnorm),
    "layernorm": (2, _layernorm),
}


def _rows(op: str, n: int) -> Family:
    weights, want = ROWS[op]
    out = (5,) if op == "sum" else (5, n)
    text = sum_text if op == "sum" else row_text
    shapes = ((5, n), *[(n,)] * weights, out)
    return Family(lambda: text(op, "f32", n), shapes, "f32", want, False, op, (1e-5,) if weights else ())


def _example(name: str) -> str:
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as f:
        return f.read()


SMALL_SM90 = GemmConfig(tile=(64, 128, 64), stages=2, cluster_m=1, deferred=False)
FAMILIES: dict[str, Family] = {
    "add": Family(elementwise_add_text, ((37, 132),) * 3, "f32", np.add),
    "add, odd": Family(elementwise_add_text, ((13, 77),) * 3, "f32", np.add),
    "add f16": Family(lambda: elementwise_add_text("f16"), ((9, 264),) * 3, "f16", np.add),
    "transpose": Family(transpose_text, ((64, 68), (68, 64)), "f32", np.transpose),
    "transpose, odd": Family(transpose_text, ((61, 75), (75, 61)), "f32", np.transpose),
    "transpose f16": Family(lambda: transpose_text("f16"), ((72, 136), (136, 72)), "f16", np.transpose),
    **{f"{op}, {n}": _rows(op, n) for op in ROWS for n in (100, 515)},
    **{
        f"sgemm {rung}": Family(lambda rung=rung: sgemm_text(rung), ((36, 20), (20, 44), (36, 44)), "f32", _product)
        for rung in RUNGS
    },
    "sgemm warptile, odd": Family(lambda: sgemm_text("warptile"), ((33, 9), (9, 41), (33, 41)), "f32", _product),
    "gemm sm80": Family(ampere_gemm_text, ((72, 40), (56, 40), (72, 56)), "f16", _product_nk),
    "gemm sm80, odd": Family(ampere_gemm_text, ((33, 17), (21, 17), (33, 21)), "f16", _product_nk),
    "gemm sm90": Family(lambda: gemm_text(SMALL_SM90), ((72, 136), (136, 136), (72, 136)), "f16", _product_nk),
    "gemm sm90, fallback": Family(gemm_text, ((33, 17), (21, 17), (33, 21)), "f16", _product_nk),
    "gemm sm90, clusters": Family(
        lambda: gemm_text(SMALL_SM90._replace(cluster_m=2)), ((136, 72), (136, 72), (136, 136)), "f16", _product_nk
    ),
    "gemm sm90, few rows": Family(
        lambda: few_rows_text(SkinnyConfig(rows=64, stages=4)), ((64, 72), (72, 72), (64, 72)), "f16", _product_nk
    ),
    "copy by TMA": Family(lambda: _example("tma_copy.mlir"), ((40, 72), (40, 72)), "f16", np.asarray),
    "copy, odd": Family(lambda: _example("tma_copy.mlir"), ((13, 21), (13, 21)), "f16", np.asarray),
}


@pytest.mark.end_to_end
@pytest.mark.sample(every=7)
@pytest.mark.parametrize("name", FAMILIES)
def test_family(name: str) -> None:
    f = FAMILIES[name]
    dtype = {"f16": np.float16, "f32": np.float32}[f.dtype]
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-3, 4, s).astype(dtype) for s in f.shapes]
    if not f.exact:
        arrays = [rng.standard_normal(s).astype(dtype) for s in f.shapes]
    arrays[-1][...] = np.nan
    module = compile_cute(f.text(), emit="base")
    report = module.kernel(f.kernel)(*arrays, *f.numbers, device="cpu", checks=CHECKS)
    assert report is not None and report.warnings == []
    want = f.want(*(a.astype(np.float64) for a in arrays[:-1]))
    got = arrays[-1].astype(np.float64)
    assert np.array_equal(got, want) if f.exact else np.allclose(got, want, rtol=2e-6, atol=2e-5)


def test_every_row_operation_is_covered() -> None:
    assert set(ROWS) == {"sum", *(op for op in OPERATIONS if "backward" not in op)}


def test_index_arithmetic_that_wraps() -> None:
    """The size of a 70000 x 70000 shape overflows i32. `cute.size` multiplies with nsw, so the check reports it."""
    text = """
    gpu.module @m {
      gpu.func @k(%a: !cute.memref<i32, gmem, "1:1">, %n: i32) kernel {
        %s = cute.make_shape(%n, %n) : (i32, i32) -> !cute.shape<"(?,?)">
        %m = cute.size(%s) : (!cute.shape<"(?,?)">) -> !cute.int_tuple<"?">
        %v = cute.get_scalars(%m) : !cute.int_tuple<"?">
        %c = cute.make_coord() : () -> !cute.coord<"0">
        cute.memref.store(%a, %c, %v) : (!cute.memref<i32, gmem, "1:1">, !cute.coord<"0">, i32) -> ()
        gpu.return
      }
    }"""
    k = compile_cute(text, emit="base").kernel("k")
    a = np.zeros(1, np.int32)
    k(a, 40000, device="cpu", grid=(1,), block=(1,))
    assert a[0] == 1_600_000_000
    with pytest.raises(InterpError, match=r"70000 \* 70000 overflows i32") as e:
        k(a, 70000, device="cpu", grid=(1,), block=(1,))
    assert e.value.kind == "overflow" and e.value.thread == (0, 0, 0)
