"""The ``mma.sync`` GEMM of 8-, 32- and 64-bit types on the CPU interpreter: exact for any row stride and major mode."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.common.elements import BITS, factors
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.mma_sync import WarpConfig, warp_gemm_text
from cute_dialect.pipelines import compile
from cute_dialect.pipelines.compiler import compile_lazily
from cute_dialect.runtime.launch import CompiledModule

DTYPES: dict[str, Any] = {
    "f64": np.float64, "tf32": np.float32, "f32": np.float32, "i8": np.int8, "ui8": np.uint8, "i32": np.int32,
    "bf16": ml_dtypes.bfloat16, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
TYPES = [("f64", "f64"), ("tf32", "f32"), ("i8_ui8", "i32"), ("f8E4M3FN_f8E5M2", "bf16")]
SHAPES = [
    ((80, 96, 80), 0), ((40, 72, 72), 0), ((36, 44, 100), 0), ((66, 42, 70), 0), ((33, 35, 37), 1), ((5, 3, 0), 0),
]  # fmt: skip
"""((M, N, K), padding elements per row)."""
CHECKS = ("race", "uninit", "sync", "oob")


@cache
def compiled(config: WarpConfig) -> CompiledModule:
    """Return a kernel for the interpreter. Each variant is lowered at its first launch."""
    return compile_lazily(warp_gemm_text(config), config.name)


def _dtype(element: str) -> np.dtype[Any]:
    return np.dtype(DTYPES[element])


def matrix(element: str, rows: int, columns: int, major: str, pad: int, seed: int) -> np.ndarray:
    """Return small integers (large ones for f64) with ``pad`` elements between rows, or between columns if those are
    contiguous.
    """
    if major == "mn":
        return matrix(element, columns, rows, "k", pad, seed).T
    low, high = {"f64": (-(2**20), 2**20), "ui8": (0, 256), "i8": (-128, 128)}.get(element, (-3, 4))
    storage = np.zeros((rows, columns + pad), DTYPES[element])
    storage[:, :columns] = np.random.default_rng(seed).integers(low, high, (rows, columns))
    return storage[:, :columns]


@pytest.mark.end_to_end
@pytest.mark.sample("tf32-f32-kk")
@pytest.mark.parametrize("majors", [("k", "k"), ("k", "mn"), ("mn", "k"), ("mn", "mn")], ids="".join)
@pytest.mark.parametrize(("element", "output"), TYPES)
def test_products_are_exact(element: str, output: str, majors: tuple[str, str]) -> None:
    config = WarpConfig(element, output, majors, tile=(64, 64), warps=(2, 2), ahead=majors[0] != majors[1])
    kernel = compiled(config).kernel("launch")
    of_a, of_b = factors(element)
    chosen: set[str] = set()
    for (m, n, k), pad in SHAPES:
        a, b = matrix(of_a, m, k, majors[0], pad, 1), matrix(of_b, n, k, majors[1], pad, 2)
        out = np.full((m, n + pad), 77, DTYPES[output])
        kernel(a, b, out[:, :n], device="cpu", checks=CHECKS)
        exact = a.astype(np.float64) @ b.astype(np.float64).T
        assert (out[:, :n] == exact.astype(out.dtype)).all() and (out[:, n:] == 77).all()
        chosen.add(kernel.plan(a, b, out[:, :n]).kernel)
    eights = element not in ("f64", "tf32")
    assert chosen == {"gemm_16", "gemm_8", *(["gemm_4", "gemm"] if eights else ["gemm_4"] * (element == "tf32"))}


def shared(config: WarpConfig, m: int, n: int, matrices: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return the split-K workspace, filled with NaN, and the counters."""
    size, counters = config.workspace(m, n, matrices)
    return np.full(size, np.nan, np.float32), np.zeros(counters, np.int32)


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        WarpConfig(majors=("k", "mn"), tile=(32, 32), warps=(1, 2), vectors=(16, 1), parts=3, ahead=True),
        WarpConfig("i8_ui8", "i32", batch=True, tile=(32, 32), warps=(2, 2), vectors=(16, 1), k=64, parts=2),
    ],
    ids=lambda c: c.name,
)
def test_split_k(config: WarpConfig) -> None:
    """Fewer K tiles than slices, and a partial last tile. Repeated runs are bitwise equal and reset the counters."""
    kernel = compiled(config).kernel("launch")
    of_a, of_b = factors(config.element)
    unit, matrices = 128 // BITS[of_a], 2 if config.batch else 1
    for m, n, k in ((20, 48, 4 * config.depth + unit), (12, 32, unit)):
        a, b = matrix(of_a, m, k, config.majors[0], 0, 1), matrix(of_b, n, k, config.majors[1], 0, 2)
        given = [x[:, :, None] for x in (a, b)] if config.batch else [a, b]
        size, counters = config.workspace(m, n, matrices)
        memory = np.full(size, np.nan, np.float32), np.zeros(counters, np.int32)
        exact = (a.astype(np.float64) @ b.astype(np.float64).T).astype(DTYPES[config.output])
        for seed in range(2):
            out = np.full((matrices, m, n), 55, DTYPES[config.output])
            c = out.transpose(1, 2, 0) if config.batch else out[0]
            kernel(*given, c, *memory, device="cpu", schedule="random", seed=seed, checks=CHECKS)
            assert (out == exact).all() and not memory[1].any()


@pytest.mark.slow
def test_split_k_slices_are_added_in_fixed_order() -> None:
    epilogue = Epilogue(alpha="arg", bias="n")
    c = WarpConfig("tf32", "f32", tile=(32, 32), warps=(2, 2), vectors=(16, 1), k=16, parts=3, epilogue=epilogue)
    kernel = compiled(c).kernel("launch")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, 100)).astype(np.float32) for rows in (20, 32))
    bias, results = rng.standard_normal(32).astype(np.float32), set[bytes]()
    out = np.empty((20, 32), np.float32)
    for seed in range(3):
        out.fill(np.nan)
        size, counters = c.workspace(20, 32)
        memory = np.full(size, np.nan, np.float32), np.zeros(counters, np.int32)
        kernel(a, b, out, *memory, bias, 0.5, device="cpu", schedule="random", seed=seed)
        results.add(out.tobytes())
    exact = 0.5 * (a.astype(np.float64) @ b.astype(np.float64).T) + bias
    assert len(results) == 1 and np.abs(out - exact).max() < 0.05


@pytest.mark.slow
def test_a_small_problem_with_much_k_is_shared() -> None:
    """For rows that TMA cannot read, ``op.mm`` uses split-K with a workspace."""
    a, b = matrix("f64", 20, 900, "k", 1, 1), matrix("f64", 900, 24, "k", 1, 2)
    found = op.explain(op.mm, a, b)
    assert isinstance(found.other, WarpConfig) and found.other.parts > 1
    assert f"K in {found.other.parts} slices" in str(found)
    assert (op.mm(a, b, device="cpu") == a @ b).all()


@pytest.mark.parametrize("change", [{"warps_k": 2}, {"parts": 0}, {"saturate": True, "element": "i8", "output": "i32"}])
def test_unsupported_split_k_is_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="split-K needs at least 1 part and cannot be combined"):
        WarpConfig(parts=2)._replace(**change).check()


@pytest.mark.slow
@pytest.mark.parametrize("shared", ["", "a", "b"])
def test_batches(shared: str) -> None:
    m, n, k = 40, 72, 20
    kernel = compiled(WarpConfig(batch=True)).kernel("launch")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, (3, rows, k)).astype(np.float64) for rows in (m, n))
    a, b = a[:1] if shared == "a" else a, b[:1] if shared == "b" else b
    out = np.zeros((3, m, n))
    kernel(*(x.transpose(1, 2, 0) for x in (a, b, out)), device="cpu", checks=CHECKS)
    assert (out == a @ b.transpose(0, 2, 1)).all()


def test_tf32_is_rounded_to_nearest() -> None:
    """Factors have 10 mantissa bits. Truncation would make all results too small."""
    a, b = np.full((64, 32), 1 + 2.0**-11 + 2.0**-12, np.float32), np.ones((64, 32), np.float32)
    out = np.zeros((64, 64), np.float32)
    config = WarpConfig("tf32", "f32", tile=(64, 64), warps=(2, 2))
    compiled(config).kernel("launch")(a, b, out, device="cpu")
    assert (out == 32 * (1 + 2.0**-10)).all()


@pytest.mark.slow
@pytest.mark.parametrize("output", ["i8", "ui8"])
def test_saturating_results(output: str) -> None:
    a, b = matrix("i8", 40, 48, "k", 0, 1) // 8, matrix("i8", 24, 48, "k", 0, 2) // 16
    out = np.zeros((40, 24), DTYPES[output])
    compiled(WarpConfig("i8", output)).kernel("launch")(a, b, out, device="cpu")
    info, exact = np.iinfo(out.dtype), a.astype(np.int64) @ b.astype(np.int64).T
    assert (out == exact.clip(info.min, info.max)).all() and (exact > info.max).any()


@pytest.mark.slow
def test_registers_do_not_spill() -> None:
    module = compile(warp_gemm_text(WarpConfig(ahead=True)))
    assert module.report.count("0 bytes spilled, 0 bytes stack") == 2, module.report
    assert module.ptx.count("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64") > 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"element": "f16"}, "element 'f16' is not supported"),
        ({"output": "f32"}, "output 'f32' is not supported .* use one of f64"),
        ({"warps": (4, 3)}, "with 4 x 3 warps it must be a multiple of 64 x 24"),
    ],
)
def test_unsupported_configurations_are_rejected(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        WarpConfig()._replace(**changed).check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("element", "output", "layouts"),
    [
        ("f64", "f64", ("k", "k")),
        ("tf32", "f32", ("mn", "k")),
        ("i8", "i32", ("k", "k")),
        ("ui8_i8", "i8", ("k", "mn")),
    ],
)
@pytest.mark.parametrize("batch", [False, True])
def test_epilogues(element: str, output: str, layouts: tuple[str, str], batch: bool) -> None:
    """Odd sizes, an addend, and a bias of the result's type or another one. f64 is never rounded to f32."""
    rng = np.random.default_rng(11)
    bias_type = "f64" if element == "f64" else "f32"
    epilogue = Epilogue(alpha="arg", beta="arg", bias="n", bias_type=bias_type, activation="relu")
    half = 512 // BITS[element] if batch else 0
    config = WarpConfig(element, output, layouts, batch, tile=(64, 64), warps=(2, 2), epilogue=epilogue, k=half)
    kernel = compiled(config).kernel("launch")
    m, n, k = 33, 21, 40
    first, second = (_dtype("f32" if e == "tf32" else e) for e in factors(element))

    def make(rows: int, columns: int, kind: Any, by_row: bool) -> Any:
        shape = (rows, columns) if by_row else (columns, rows)
        values = rng.integers(0 if kind == np.uint8 else -2, 3, ((2, *shape) if batch else shape)).astype(kind)
        values = values.transpose(1, 2, 0) if batch else values
        return values if by_row else values.swapaxes(0, 1)

    a, b = make(m, k, first, layouts[0] == "k"), make(n, k, second, layouts[1] == "k")
    kind = _dtype(output)
    c, d = make(m, n, kind, True), make(m, n, kind, True)
    bias = rng.integers(-2, 3, n).astype(_dtype(bias_type))
    alpha, beta = (1.0 + 2.0**-40, 0.5) if element == "f64" else (0.5, 2.0)
    kernel(a, b, d, c, bias, alpha, beta, device="cpu")
    sums = np.einsum("mk...,nk...->mn...", a.astype(float), b.astype(float))
    exact = np.maximum(alpha * sums + beta * c + (bias[:, None] if batch else bias), 0)
    if kind.kind == "i":
        exact = np.clip(np.rint(exact), np.iinfo(kind).min, np.iinfo(kind).max)
    np.testing.assert_array_equal(d.astype(float), exact)
