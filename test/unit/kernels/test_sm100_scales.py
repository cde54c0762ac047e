"""GEMM kernels for sm_100 with block scales, on the CPU interpreter and in ptxas; they have never run on the chip."""

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

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.sm100 import COLUMNS, SCALED_TILES, Sm100Config, sm100_gemm_text
from cute_dialect.kernels.gemm.tcgen05_scales import FP4, VECTORS
from cute_dialect.pipelines import compile
from cute_dialect.pipelines.compiler import compile_lazily
from cute_dialect.runtime.launch import CompiledModule

CHECKS = ("race", "uninit", "sync", "oob", "strict")
SCHEDULES = ("reverse", "adversarial", "random")
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2, "mx": ml_dtypes.float8_e8m0fnu, "nv": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])

MX8 = Sm100Config("f8E4M3FN", "f32", tile=(128, 64), stages=3, sms=1, scaling="mx")
"""One block computes all tiles, so the ring, both sets of factors and both accumulators are reused."""
NV4 = MX8._replace(element=FP4, scaling="nv", output="bf16")
CONFIGS = {
    MX8: (200, 136, 400),
    MX8._replace(element="f8E5M2_f8E4M3FN", tile=(128, 128), output="f16", stages=2): (130, 264, 130),
    MX8._replace(element=FP4, tile=(128, 192), output="bf16"): (100, 600, 600),  # tiles that start inside of a block
    NV4: (64, 136, 520),
    NV4._replace(tile=(128, 192), stages=4): (140, 400, 1600),
    NV4._replace(tile=(128, 256), accumulators=1, output="f16", sms=2): (150, 520, 300),
    NV4._replace(tile=(128, 256), stages=2): (150, 520, 300),  # accumulators that overlap
    MX8._replace(tile=(128, 256)): (130, 700, 200),
    NV4._replace(direct=True, output="f32", accumulators=4): (77, 205, 34),
    MX8._replace(tile=(256, 64), sms=2): (300, 136, 400),  # pairs of blocks
    NV4._replace(tile=(256, 192), sms=4, stages=2): (600, 400, 600),
    MX8._replace(tile=(256, 256), sms=2, output="bf16"): (300, 800, 100),
}
"""Configuration -> M, N and K: several tiles per block, and edges along M, N and K."""
IDS = {"ids": lambda c: c.name}


@cache
def compiled(config: Sm100Config) -> CompiledModule:
    return compile_lazily(sm100_gemm_text(config), config.name, chip="sm_100a")


def blocks_of(factors: np.ndarray) -> np.ndarray:
    """Return factors as bytes, in blocks of 128 x 4: row m, factor s at byte 16 * (m % 32) + 4 * (m // 32) + s.

    Rows of no matrix have NaN.
    """
    rows, columns = factors.shape
    across = -(-columns // 4)
    found = np.full(-(-rows // 128) * across * 512, 255, np.uint8)
    m, s = np.indices((-(-rows // 128) * 128, across * 4))
    padded = np.where((m < rows), 0, 255).astype(np.uint8)
    padded[:rows, :columns] = factors.view(np.uint8)
    found[(m // 128 * across + s // 4) * 512 + 16 * (m % 32) + 4 * (m % 128 // 32) + s % 4] = padded
    return found


def operand(
    rng: np.random.Generator, element: str, scaling: str, rows: int, k: int, *, exact: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a matrix with 16-byte aligned rows and garbage between them, its factors, and the scaled values.

    With ``exact``, numbers are such that sums are exact in f32.
    """
    bits, dtype = (4, None) if element == FP4 else (8, DTYPES[element])
    storage = rng.integers(0, 256, (rows, -(-k * bits // 128) * 16)).astype(np.uint8)
    if dtype is None:
        x = storage[:, : k // 2]
        values = E2M1[np.stack([x & 15, x >> 4], -1)].reshape(rows, k)
    else:
        x = storage.view(dtype)[:, :k]
        x[:] = rng.integers(-4, 5, (rows, k)) if exact else rng.standard_normal((rows, k))
        values = x.astype(np.float64)
    shape = rows, -(-k // VECTORS[scaling])
    factors = np.exp2(rng.integers(-2, 3, shape)) if exact else np.exp2(rng.normal(0, 2, shape))
    factors = factors.astype(DTYPES[scaling])
    return x, blocks_of(factors), values * factors.astype(np.float64).repeat(VECTORS[scaling], 1)[:, :k]


def run(config: Sm100Config, m: int, n: int, k: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of a kernel on a poisoned C, and the expected one in float64."""
    rng = np.random.default_rng(m + n + k)
    exact = options.pop("exact", True)
    (a, sa, wa), (b, sb, wb) = (
        operand(rng, element, config.scaling, rows, k, exact=exact) for element, rows in zip(config.elements, (m, n))
    )
    c = np.full((m, n if config.direct else -(-n // 8) * 8), np.nan, DTYPES[config.output])[:, :n]
    compiled(config).kernel("launch")(a, b, c, sa, sb, device="cpu", checks=CHECKS, **options)
    return c, wa @ wb.T


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, **IDS)
def test_products_are_exact(config: Sm100Config) -> None:
    c, wanted = run(config, *CONFIGS[config])
    assert np.array_equal(c, wanted.astype(c.dtype))


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("config", CONFIGS, **IDS)
def test_every_schedule(config: Sm100Config, schedule: str) -> None:
    c, wanted = run(config, *CONFIGS[config], schedule=schedule, seed=1)
    assert np.array_equal(c, wanted.astype(c.dtype))


@pytest.mark.slow
@pytest.mark.parametrize("config", [MX8, NV4._replace(output="f32")], **IDS)
def test_random_numbers_are_rounded(config: Sm100Config) -> None:
    """Numbers whose sums are not exact in f32."""
    c, wanted = run(config, 100, 72, 600, exact=False)
    np.testing.assert_allclose(c, wanted, rtol=1e-5, atol=1e-5 * abs(wanted).max())


@pytest.mark.slow
def test_epilogue_of_scaled_products() -> None:
    config = NV4._replace(output="f32", epilogue=Epilogue(alpha="arg", beta="arg", bias="n", activation="relu"))
    rng, (m, n, k) = np.random.default_rng(0), (70, 72, 320)
    (a, sa, wa), (b, sb, wb) = (operand(rng, FP4, "nv", rows, k) for rows in (m, n))
    source, bias = rng.integers(-4, 5, (m, n)).astype(np.float32), rng.integers(-4, 5, n).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    given = (a, b, c, sa, sb, source, bias, 0.5, 2.0)
    compiled(config).kernel("launch")(*given, device="cpu", checks=CHECKS)
    assert np.array_equal(c, np.maximum(0.5 * (wa @ wb.T) + 2.0 * source + bias, 0))


def of_ptxas(config: Sm100Config, chip: str, folder: Path) -> tuple[str, str]:
    """Return the PTX of a kernel and the report of ptxas. The shared memory must be that of the plan."""
    artifact = compile(sm100_gemm_text(config), chip=chip, emit="ptx", cache=False).artifact
    (code,), (kernel,) = artifact.code, artifact.manifest["kernels"]
    assert config.shared_bytes <= kernel["dynamic_smem"] <= config.shared_bytes + 8
    (folder / "k.ptx").write_text(code.ptx)
    ptxas = find_ptxas()
    assert ptxas is not None
    command = [ptxas, f"-arch={chip}", "-v", str(folder / "k.ptx"), "-o", str(folder / "k.cubin")]
    return code.ptx, subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("tile", SCALED_TILES, ids=str)
@pytest.mark.parametrize(("element", "scaling"), [("f8E4M3FN", "mx"), (FP4, "mx"), (FP4, "nv")])
def test_ptxas_keeps_the_budgets(element: str, scaling: str, tile: tuple[int, int], tmp_path: Path) -> None:
    """No spills, the shared memory, registers and instructions of the plan."""
    config = Sm100Config(element, "bf16", tile=tile, stages=2, scaling=scaling)
    config = config._replace(stages=config.most_stages, epilogue=Epilogue("arg", "arg", "n", activation="gelu"))
    ptx, report = of_ptxas(config, "sm_100a", tmp_path)
    assert "0 bytes spill stores, 0 bytes spill loads" in report, report
    (registers,) = re.findall(r"Used (\d+) registers", report)
    assert int(registers) <= 255, report
    assert config.columns <= COLUMNS
    kind = {("f8E4M3FN", "mx"): "mxf8f6f4", (FP4, "mx"): "mxf4", (FP4, "nv"): "mxf4nvf4"}[element, scaling]
    group = f"cta_group::{config.blocks}"
    assert len(re.findall(rf"tcgen05\.mma\.{group}\.kind::{kind}\.block_scale", ptx)) == 4
    copies = config.blocks_of_scales.columns // 4
    assert len(re.findall(rf"tcgen05\.cp\.{group}\.32x128b\.warpx4", ptx)) == copies


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("chip", ["sm_103a", "sm_100f", "sm_110a"])
@pytest.mark.parametrize("config", [MX8, NV4._replace(tile=(256, 192))], **IDS)
def test_ptxas_of_each_chip(config: Sm100Config, chip: str, tmp_path: Path) -> None:
    _, report = of_ptxas(config._replace(sms=0), chip, tmp_path)
    assert "0 bytes spill stores, 0 bytes spill loads" in report, report


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (MX8._replace(scaling="nv"), "scaling='nv' is not supported for f8E4M3FN; use '' or 'mx'"),
        (MX8._replace(element=FP4, scaling=""), "scaling='' is not supported for f4E2M1FN; use 'mx' or 'nv'"),
        (MX8._replace(element="f16"), "scaling='mx' is not supported for f16; use ''"),
        (MX8._replace(major_a="m"), "majors are m, k; operands with scale factors must be contiguous along K"),
        (MX8._replace(tile=(64, 64)), "a tile of 64 x 64 is not supported with scale factors; M must be 128, or 256"),
        (MX8._replace(tile=(128, 96)), "a tile of 128 x 96 is not supported with scale factors"),
        (MX8._replace(batch=True), "a batch is not supported with scale factors"),
        (
            NV4._replace(tile=(128, 192), accumulators=4),
            "4 accumulators of 192 columns and 96 of scale factors are not supported; use 1, 2 or 4, in 512 columns",
        ),
    ],
    ids=range(8),
)
def test_errors(config: Sm100Config, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        config.check()


def test_columns_of_tensor_memory() -> None:
    """NVFP4 with N = 192 has two accumulators; with N = 256 they share 96 columns, and take turns."""
    found = [NV4._replace(tile=(128, n)) for n in (192, 256)]
    assert [(c.columns_of_scales, c.overlap, c.slots, c.distance, c.columns) for c in found] == [
        (96, 0, 2, 192, 512), (96, 96, 1, 160, 512),
    ]  # fmt: skip
    assert MX8._replace(tile=(128, 256)).overlap == 24
