"""GEMM kernels for sm_120 on the CPU interpreter and in ptxas; they have never run on the chip."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arch_support import find_ptxas

import cute_dialect.lang as cute
from cute_dialect import op
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.sm120 import Sm120Config, launch, launch_scaled, sm120_gemm_text
from cute_dialect.kernels.gemm.tcgen05_scales import FP4, VECTORS
from cute_dialect.pipelines import compile
from cute_dialect.pipelines.compiler import compile_lazily
from cute_dialect.runtime.launch import CompiledModule

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
CHECKS = ("race", "uninit", "sync", "oob")
SCHEDULES = ("round-robin", "reverse", "adversarial", "random")
SMALL: dict[str, Any] = {"tile": (64, 64), "stages": 2}
CONFIGS = [
    Sm120Config("bf16", output="f32", **SMALL),
    Sm120Config("f16", majors=("mn", "mn"), output="f32", **SMALL),
    Sm120Config("bf16", majors=("k", "mn"), **SMALL, batch=True),
    Sm120Config("f8E4M3FN", output="bf16", **SMALL),
    Sm120Config("f8E4M3FN_f8E5M2", output="f32", scaling="mx", **SMALL),
    Sm120Config(FP4, output="f32", scaling="mx", **SMALL),
    Sm120Config(FP4, output="f32", scaling="nv", **SMALL),
    Sm120Config("f16", tile=(64, 32), warps=(2, 1), stages=3),
]


@cache
def compiled(config: Sm120Config) -> CompiledModule:
    return compile_lazily(sm120_gemm_text(config), config.name, chip="sm_120a")


def matrix(rng: np.random.Generator, element: str, shape: tuple[int, ...], major: str = "k") -> np.ndarray:
    """Return small integers with 16-byte aligned rows, or columns if those are contiguous.

    The last mode is a batch.
    """
    if major == "mn":
        return matrix(rng, element, (shape[1], shape[0], *shape[2:]), "k").swapaxes(0, 1)
    rows, columns, *batch = shape
    storage = np.zeros((*batch, rows, -(-columns // 16) * 16), DTYPES[element])
    storage[..., :columns] = rng.integers(-3, 4, (*batch, rows, columns))
    return np.moveaxis(storage[..., :columns], 0, -1) if batch else storage[..., :columns]


def packed(rng: np.random.Generator, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix of 4-bit floats as bytes of two, with 16-byte aligned rows, and its values."""
    codes = rng.integers(0, 16, (rows, columns)).astype(np.uint8)
    storage = np.zeros((rows, -(-columns // 32) * 16), np.uint8)
    storage[:, : columns // 2] = codes[:, ::2] | codes[:, 1::2] << 4
    return storage[:, : columns // 2], codes.view(ml_dtypes.float4_e2m1fn).astype(np.float64)


def arguments(c: Sm120Config, m: int, n: int, k: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return A, B, poisoned C and the factors, and the expected C."""
    rng, batch = np.random.default_rng(m + n + k), (3,) if c.batch else ()
    if c.packed == 2:
        (a, x), (b, y) = (packed(rng, rows, k) for rows in (m, n))
    else:
        a, b = (
        matrix(rng, element, (rows, k, *batch), major)
        for element, rows, major in zip(c.elements, (m, n), c.majors)
    )  # fmt: skip
        x, y = a.astype(np.float64), b.astype(np.float64)
    factors: list[np.ndarray] = []
    if c.scaling:
        vector, (low, high) = VECTORS[c.scaling], {"mx": (124, 131), "nv": (40, 70)}[c.scaling]
        kind = {"mx": ml_dtypes.float8_e8m0fnu, "nv": ml_dtypes.float8_e4m3fn}[c.scaling]
        factors = [rng.integers(low, high, (rows, -(-k // vector))).astype(np.uint8) for rows in (m, n)]
        values = [f.view(kind).astype(np.float64) for f in factors]
        x, y = (v * np.repeat(f, vector, 1)[:, :k] for v, f in zip((x, y), values))
    wanted = np.einsum("mk...,nk...->mn...", x, y).astype(DTYPES[c.result])
    out = np.full((*batch, m, n), 77, DTYPES[c.result])
    return [a, b, np.moveaxis(out, 0, -1) if batch else out, *factors], wanted


@pytest.mark.end_to_end
@pytest.mark.sample("bf16-64x64x64-2-kk-sm120-f32")
@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.name)
def test_products_are_exact(config: Sm120Config) -> None:
    kernel = compiled(config).kernel("launch")
    for m, n, k in ((70, 50, config.depth + 24), (64, 64, 3 * config.depth), (5, 3, 8)):
        given, wanted = arguments(config, m, n, k)
        kernel(*given, device="cpu", checks=CHECKS)
        assert np.array_equal(given[2], wanted), (m, n, k)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("config", [CONFIGS[0], CONFIGS[4]], ids=lambda c: c.name)
def test_every_schedule(config: Sm120Config, schedule: str) -> None:
    """One stage, and more stages than the ring has."""
    kernel = compiled(config).kernel("launch")
    for k in (8, 5 * config.depth + 40):
        given, wanted = arguments(config, 66, 70, k)
        kernel(*given, device="cpu", checks=CHECKS, schedule=schedule, seed=1)
        assert np.array_equal(given[2], wanted)


@pytest.mark.slow
def test_epilogue() -> None:
    config = Sm120Config("bf16", output="f32", **SMALL, epilogue=Epilogue(alpha="arg", bias="n", activation="relu"))
    kernel = compiled(config).kernel("launch")
    given, wanted = arguments(config, 70, 50, 136)
    bias = np.arange(50, dtype=np.float32) - 20
    kernel(*given, bias, 0.5, device="cpu", checks=CHECKS)
    assert np.array_equal(given[2], np.maximum(0.5 * wanted + bias, 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        Sm120Config("bf16"),
        Sm120Config("f16", majors=("k", "mn"), output="f32"),
        Sm120Config("f8E4M3FN", output="bf16"),
        Sm120Config("f8E4M3FN", output="bf16", scaling="mx"),
        Sm120Config(FP4, output="bf16", scaling="mx"),
        Sm120Config(FP4, output="bf16", scaling="nv", tile=(128, 64)),
        Sm120Config("bf16", tile=(64, 64)),
    ],
    ids=lambda c: c.name,
)
def test_ptxas_spills_nothing(config: Sm120Config, tmp_path: Path) -> None:
    (code,) = compile(sm120_gemm_text(config), chip="sm_120a", emit="ptx", cache=False).artifact.code
    (tmp_path / "k.ptx").write_text(code.ptx)
    ptxas = find_ptxas()
    assert ptxas is not None
    run = [ptxas, "-arch=sm_120a", "-v", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in said and "warning" not in said
    (m, n), (wm, wn) = config.tile, config.warps
    kind = {"": "f32", "mx": "kind::mxf", "nv": "kind::mxf4nvf4"}[config.scaling]
    assert len(re.findall(rf"mma\.sync\S*{kind}", code.ptx)) == m // (16 * wm) * (n // (8 * wn)) * 4


def test_a_plan_for_sm_120() -> None:
    plan = op.Gemm(
        element_A="bf16", element_B="bf16", layout_A="row", layout_B="row", element_C="void", layout_C="row",
        element_D="f32", layout_D="row", kernel_cc=120,
    )  # fmt: skip
    assert str(plan.explain((4096, 2048), (2048, 1000))).splitlines() == [
        "Gemm on sm_120a: M 4096, N 1000, K 2048, bf16 to f32, majors k and n",
        "  kernel    bf16-128x128x64-3-km-sm120-f32-sm_120a: TMA can read both operands",
        "  status    assembled and interpreted, never run on the chip",
        "  blocks    256 of 98352 bytes of shared memory",
        "  work      16.8 GFLOP, 37.3 MB (tensor cores, DRAM)",
    ]
    text = str(plan.explain((256, 255), (255, 255)))
    assert "H200" not in text and "sm_120a: M 256" in text and "never run on sm_120\n" in text
    assert ": TMA needs addresses and strides that are multiples of 16 bytes\n" in text
    plan.tile_description = {"threadblock_shape": [64, 64, 64], "stages": 0}
    text = str(plan.explain((256, 256), (256, 256)))
    assert "bf16-64x64x64-6-km" in text and "blocks    16 of 98400 bytes" in text
    plan.tile_description = {"threadblock_shape": [256, 128, 64]}  # as many stages as fit
    assert "bf16-256x128x64-2-km" in str(plan.explain((256, 256), (256, 256)))


@pytest.mark.parametrize(
    ("tile", "message"),
    [
        ({"cluster_shape": [2, 1, 1]}, "cluster_shape is (2, 1, 1), which kernels of sm_120 do not support"),
        ({"epilogue_schedule": "deferred"}, "epilogue_schedule is 'deferred', which kernels of sm_120 do not"),
        ({"stages": 1}, "stages is 1; use at least 2"),
        ({"stages": "3"}, "stages is '3'; it must be an integer of at least 0"),
        ({"stages": 99}, "use at most 3 stages"),
        ({"threadblock_shape": [128, 64.5, 64]}, "[128, 64.5, 64]; it must be three positive integers"),
        ({"threadblock_shape": [128, 128, 32]}, "use a K of 64 (128 bytes)"),
        ({"warp_count": [2, 2, 2]}, "kernels of sm_120 need 1 warp along K"),
        ({"parts": 2}, "kernels of sm_120 have no tile_scheduler, split-K or stream-K"),
        ({"kernel_schedule": None, "cluster_shape": [1, 2, 1]}, "which kernels with mma.sync do not support"),
        ({"kernel_schedule": "pingpong"}, "kernel_schedule is 'pingpong', which kernels with mma.sync do not support"),
    ],
    ids=range(11),
)
def test_refused_tiles(tile: dict[str, Any], message: str) -> None:
    plan = op.Gemm(element="f16", layout="row", kernel_cc=120)
    with pytest.raises(op.OpError, match=re.escape(message)):
        plan.tile_description = tile


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"element": "i8"}, "no kernel of sm_120 multiplies i8 and i8; use f16 and f16, bf16 and bf16, or two of f8E4"),
        ({"element": "tf32"}, "no kernel of sm_120 multiplies tf32 and tf32"),
        ({"element": "f64", "element_compute": "f64"}, "no kernel of sm_120 multiplies f64 and f64"),
        ({"element_A": "f16", "element_B": "bf16", "element_D": "f32"}, "no kernel of sm_120 multiplies f16 and bf16"),
        ({"element": "f8E4M3FN", "element_C": "bf16"}, "B is row-major, but kernels of sm_120 read 8-bit operands"),
        ({"element": "f16", "element_C": "void", "element_D": "f8E4M3FN"}, "D is f8E4M3FN; kernels of sm_120 support"),
        ({"element": "f16", "chip": 90}, "chip=90 and kernel_cc=120 differ; pass one of them"),
        (
            {"element": "f16", "kernel_cc": "120"},
            "kernel_cc='120' is not a compute capability; use 80, 86, 87, 88, 89, 90, 100, 103, 110, 120 or 121",
        ),
        (
            {"element": "f16", "kernel_cc": 100.5},
            "kernel_cc=100.5 is not a compute capability; use 80, 86, 87",
        ),
        ({"element": "f16", "kernel_cc": None, "chip": "sm_120"}, "chip='sm_120' is not a compute capability"),
    ],
    ids=range(10),
)
def test_refused_plans(given: dict[str, Any], message: str) -> None:
    with pytest.raises(op.OpError, match=re.escape(message)):
        op.Gemm(**{"layout": "row", "kernel_cc": 120, **given})


@cute.jit
def scaled(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, scale_a: cute.Tensor, scale_b: cute.Tensor,
    config: cute.Constexpr[Sm120Config],
) -> None:  # fmt: skip
    launch_scaled(A, B, C, scale_a, scale_b, config)


@cute.jit
def with_bias(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, bias: cute.Tensor | None, config: cute.Constexpr[Sm120Config]
) -> None:
    launch(A, B, C, bias=bias, config=config)


@pytest.mark.parametrize(
    ("kind", "columns", "scaling", "message"),
    [
        (np.float32, 4, "mx", "scale_a must have elements f8E8M0FNU, or their bytes as ui8, for scaling='mx'"),
        (ml_dtypes.float8_e4m3fn, 4, "mx", "scale_a must have elements f8E8M0FNU"),
        (np.int32, 4, "mx", "scale_a must have elements f8E8M0FNU"),
        (np.uint8, None, "mx", "scale_a must be a matrix (rows, K/32)"),
        (np.uint8, 4, "foo", "scaling='foo' of f8E4M3FN: use '' or 'mx'"),
        (np.uint8, 4, "", "launch_scaled: a configuration with scaling='' has no scale factors; use launch"),
    ],
    ids=range(6),
)
def test_refused_scales(kind: Any, columns: int | None, scaling: str, message: str) -> None:
    config = Sm120Config("f8E4M3FN", output="f32", scaling=scaling, **SMALL)
    x, c = np.ones((64, 128), ml_dtypes.float8_e4m3fn), np.zeros((64, 64), np.float32)
    scales = np.ones(64 if columns is None else (64, columns), kind)
    with pytest.raises(ValueError, match=re.escape(message)):
        cute.compile(scaled, x, x, c, scales, scales, config, chip="sm_120a", device="cpu")


@pytest.mark.slow
def test_scales_of_their_own_type() -> None:
    """Factors are exponents or their bytes, with one result."""
    config = CONFIGS[4]
    given, wanted = arguments(config, 70, 50, 160)
    given[3:] = [x.view(ml_dtypes.float8_e8m0fnu) for x in given[3:]]
    cute.compile(scaled, *given, config, chip="sm_120a", device="cpu")(*given, checks=list(CHECKS))
    assert np.array_equal(given[2], wanted)


@pytest.mark.parametrize(
    ("bias", "config", "message"),
    [
        (np.ones(64, np.float32), Sm120Config("bf16"), "this configuration does not read bias; omit it"),
        (None, Sm120Config("bf16", epilogue=Epilogue(bias="n")), "this configuration reads bias; pass it"),
        (None, Sm120Config("f8E4M3FN", output="f32", scaling="mx"), "needs scale factors; use launch_scaled"),
    ],
    ids=range(3),
)
def test_refused_epilogues(bias: Any, config: Sm120Config, message: str) -> None:
    x, c = np.ones((64, 128), ml_dtypes.bfloat16), np.zeros((64, 64), ml_dtypes.bfloat16)
    with pytest.raises(ValueError, match=re.escape(message)):
        cute.compile(with_bias, x, x, c, bias, config, chip="sm_120a", device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize(("element", "layout_b"), [("bf16", "row"), ("f8E4M3FN", "column"), ("f16", "column")])
@pytest.mark.parametrize("layout_d", ["row", "column"])
def test_a_plan_runs_on_the_cpu(element: str, layout_b: str, layout_d: str) -> None:
    rng = np.random.default_rng(0)
    a, b = matrix(rng, element, (70, 200)), matrix(rng, element, (200, 50), "k" if layout_b == "row" else "mn")
    d = np.full((70, 50), 7, np.float32) if layout_d == "row" else np.full((50, 70), 7, np.float32).T
    plan = op.Gemm(
        element_A=element, element_B=element, layout_A="row", layout_B=layout_b, element_C="void", layout_C=layout_d,
        element_D="f32", layout_D=layout_d, kernel_cc=120,
    )  # fmt: skip
    plan.run(a, b, None, d, device="cpu", checks=CHECKS)
    assert np.array_equal(d, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            Sm120Config("f8E4M3FN", majors=("k", "mn"), output="f32"),
            "8-bit and 4-bit operands must be contiguous along K",
        ),
        (Sm120Config("bf16", scaling="mx"), "scaling='mx' of bf16: use '', without a batch or an epilogue"),
        (Sm120Config("tf32"), "element 'tf32' is not supported"),
        (
            Sm120Config("bf16", stages=4),
            "4 stages need 131136 bytes of shared memory, but sm_120 has 101376 per block; use at most 3 stages, or a "
            "smaller tile",
        ),
        (Sm120Config("bf16", tile=(512, 512)), "101376 per block; use a smaller tile"),
        (
            Sm120Config("bf16", tile=(100, 128)),
            "the tile is 100 x 128; with 2 x 2 warps it must be a multiple of 32 x 32",
        ),
        (Sm120Config("bf16", stages=1), "stages is 1; use at least 2"),
        (Sm120Config("f8E4M3FN"), "output 'f8E4M3FN' is not supported"),
        (Sm120Config(FP4, output="f32"), "scaling='' of f4E2M1FN: use 'mx' or 'nv'"),
        (Sm120Config(FP4, output="f32", scaling="nv"), "a thread has 128 accumulators; scaling='nv' allows 64"),
    ],
    ids=range(10),
)
def test_errors(config: Sm120Config, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        config.check()
