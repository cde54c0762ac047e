"""The f32 FMA GEMM on the CPU interpreter: layouts, edges, batches and epilogues, compared with float64."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.simt import ExactConfig, exact_gemm_text
from cute_dialect.pipelines import compile
from cute_dialect.pipelines.compiler import compile_lazily
from cute_dialect.runtime.launch import CompiledModule

CHECKS = ("race", "uninit", "sync", "oob")


@cache
def compiled(config: ExactConfig) -> CompiledModule:
    """Return a kernel for the interpreter. Each variant is lowered at its first launch."""
    return compile_lazily(exact_gemm_text(config), config.name)


@cache
def assembled(major_a: str, major_b: str) -> CompiledModule:
    """Return a kernel that is assembled for the GPU."""
    return compile(exact_gemm_text(ExactConfig(major_a, major_b)))


def data(m: int, n: int, k: int, matrices: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m + n + k)
    return tuple(rng.standard_normal((matrices, rows, k)).astype(np.float32) for rows in (m, n))  # type: ignore


def with_major(x: np.ndarray, k_major: bool) -> np.ndarray:
    return x if k_major else x.transpose(0, 2, 1).copy().transpose(0, 2, 1)


def near(got: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    """Return True if the error is within the bound that holds for every order of rounded additions."""
    wide = a.astype(np.float64), b.astype(np.float64).transpose(0, 2, 1)
    bound = a.shape[2] * 2.0**-24 * (np.abs(wide[0]) @ np.abs(wide[1])) + 1e-30
    return bool((np.abs(got - wide[0] @ wide[1]) <= bound).all())


@pytest.mark.end_to_end
@pytest.mark.sample("k-n-shape1-gemm_any")
@pytest.mark.parametrize(
    ("major_a", "major_b", "shape", "kernel"),
    [
        ("k", "n", (132, 140, 36), "gemm"), ("k", "n", (37, 41, 19), "gemm_any"),
        ("k", "k", (132, 140, 36), "gemm_any"),
        ("m", "n", (129, 131, 33), "gemm_any"), ("m", "k", (130, 7, 1), "gemm_any"), ("k", "n", (4, 4, 4), "gemm"),
    ],
)  # fmt: skip
def test_products(major_a: str, major_b: str, shape: tuple[int, int, int], kernel: str) -> None:
    module = assembled(major_a, major_b)
    assert module.report.count("0 bytes spilled, 0 bytes stack") == (2 if (major_a, major_b) == ("k", "n") else 1)
    a, b = data(*shape)
    c = np.full(shape[:2], np.nan, np.float32)
    given = with_major(a, major_a == "k")[0], with_major(b, major_b == "k")[0], c
    launch = module.kernel("launch")
    launch(*given, device="cpu", checks=CHECKS)
    assert near(c[None], a, b) and launch.plan(*given).kernel == kernel


@pytest.mark.slow
def test_odd_extents_with_16_byte_row_strides() -> None:
    """Rows are padded to 16 bytes, as TMA requires. A vector is stored only if it lies inside the matrix."""
    m, n, k = 131, 133, 35
    a, b = data(m, n, k)
    lines = [np.full((rows, columns), np.nan, np.float32) for rows, columns in ((m, 36), (k, 136), (m, 136))]
    lines[0][:, :k], lines[1][:, :n] = a[0], b[0].T
    c = lines[2][:, :n]
    given = lines[0][:, :k], lines[1][:, :n].T, c
    launch = assembled("k", "n").kernel("launch")
    launch(*given, device="cpu", checks=CHECKS)
    assert near(c[None], a, b) and launch.plan(*given).kernel == "gemm" and np.isnan(lines[2][:, n:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 132, 20), (39, 37, 19)])
@pytest.mark.parametrize("shared", ["", "a", "b"])
def test_batches(shape: tuple[int, int, int], shared: str) -> None:
    m, n, k = shape
    kernel = compiled(ExactConfig(batch=True)).kernel("launch")
    a, b = data(m, n, k, 3)
    a, b = a[:1] if shared == "a" else a, b[:1] if shared == "b" else b
    c = np.full((3, m, n), np.nan, np.float32)
    kernel(a.transpose(1, 2, 0), with_major(b, False).transpose(1, 2, 0), c.transpose(1, 2, 0), device="cpu")
    assert near(c, np.broadcast_to(a, (3, m, k)), np.broadcast_to(b, (3, n, k)))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 132, 20), (39, 37, 19)])
def test_epilogues(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    epilogue = Epilogue(alpha="arg", beta="arg", bias="n", activation="relu")
    a, b = (np.round(x * 2) for x in data(m, n, k))
    rng = np.random.default_rng(1)
    source, bias = (rng.integers(-9, 9, s).astype(np.float32) for s in ((m, n), (n,)))
    c = np.full((m, n), np.nan, np.float32)
    kernel = compiled(ExactConfig(epilogue=epilogue)).kernel("launch")
    kernel(a[0], with_major(b, False)[0], c, source, bias, 0.5, 2.0, device="cpu", checks=CHECKS)
    exact = a[0].astype(np.float64) @ b[0].astype(np.float64).T
    assert (c == np.maximum(0.5 * exact + 2 * source + bias, 0)).all()


@cache
def small(major_a: str, major_b: str, parts: int) -> CompiledModule:
    """Return the kernel with small tiles, assembled for the GPU."""
    return compile(exact_gemm_text(ExactConfig(major_a, major_b, small=True, parts=parts)))


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("major_a", "major_b", "shape", "kernel"),
    [
        ("k", "n", (68, 140, 36), "gemm_small_v"), ("k", "n", (37, 41, 99), "gemm_small"),
        ("k", "k", (70, 66, 50), "gemm_small"), ("m", "n", (65, 67, 33), "gemm_small"),
        ("m", "k", (66, 7, 1), "gemm_small"),
    ],
)  # fmt: skip
def test_small_tiles(major_a: str, major_b: str, shape: tuple[int, int, int], kernel: str, parts: int) -> None:
    """Cases include split-K and fewer K tiles than blocks. Repeated runs give bitwise equal results."""
    module = small(major_a, major_b, parts)
    assert module.report.count("0 bytes spilled, 0 bytes stack") == (2 if (major_a, major_b) == ("k", "n") else 1)
    a, b = data(*shape)
    size, counters = ExactConfig(small=True, parts=parts).workspace(*shape[:2])
    memory = [np.full(size, np.nan, np.float32), np.zeros(counters, np.int32)] if parts > 1 else []
    found = set[bytes]()
    for seed in range(2):
        c = np.full(shape[:2], np.nan, np.float32)
        given = with_major(a, major_a == "k")[0], with_major(b, major_b == "k")[0], c, *memory
        launch = module.kernel("launch")
        launch(*given, device="cpu", checks=CHECKS, schedule="random", seed=seed)
        assert near(c[None], a, b) and launch.plan(*given).kernel == kernel
        found.add(c.tobytes())
    assert len(found) == 1 and (parts == 1 or not memory[1].any())


@pytest.mark.slow
def test_small_tiles_of_a_batch_with_an_epilogue() -> None:
    m, n, k = 39, 70, 100
    config = ExactConfig(batch=True, epilogue=Epilogue(alpha="arg", bias="n", activation="relu"), small=True, parts=2)
    a, b = (np.round(x * 2) for x in data(m, n, k, 3))
    bias = np.random.default_rng(1).integers(-9, 9, (n,)).astype(np.float32)
    size, counters = config.workspace(m, n, 3)
    c = np.full((3, m, n), np.nan, np.float32)
    compiled(config).kernel("launch")(
        a.transpose(1, 2, 0), with_major(b, False).transpose(1, 2, 0), c.transpose(1, 2, 0),
        np.full(size, np.nan, np.float32), np.zeros(counters, np.int32), bias, 0.5, device="cpu", checks=CHECKS,
    )  # fmt: skip
    exact = a.astype(np.float64) @ b.astype(np.float64).transpose(0, 2, 1)
    assert (c == np.maximum(0.5 * exact + bias, 0)).all()


def test_unsupported_configurations_are_rejected() -> None:
    with pytest.raises(ValueError, match="parts is 2; split-K needs at least 1 part and small=True"):
        exact_gemm_text(ExactConfig(parts=2))
