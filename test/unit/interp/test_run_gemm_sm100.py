"""The Blackwell GEMM of ``test/examples`` on the interpreter, and without each of its tcgen05 instructions."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from interp_support import parse, run_kernel

from cute_dialect.interp import InterpError, Pointer, TensorMap
from cute_dialect.pipelines.compiler import lower_to_base

EXAMPLE = Path(__file__).parents[2] / "examples" / "gemm_sm100.mlir"
SMEM = 196684


@cache
def base() -> list[str]:
    """Return the lines of the example in base IR."""
    return lower_to_base(EXAMPLE, pipeline="base").splitlines()


def run(lines: list[str], k_tiles: int, schedule: str = "round-robin") -> tuple[list[str], bool]:
    """Run the GEMM on one tile of 128 x 256, and return the warnings and whether the result is right."""
    rng = np.random.default_rng(k_tiles)
    k = 64 * k_tiles
    a, b = (rng.integers(-3, 4, (rows, k)).astype(ml_dtypes.bfloat16) for rows in (128, 256))
    c = np.full((128, 256), np.nan, ml_dtypes.bfloat16)
    maps = [
        TensorMap("bf16", (k, rows), (2 * k,), (64, rows), swizzle=128, pointer=Pointer(x))
        for x, rows in ((a, 128), (b, 256))
    ]
    report = run_kernel(
        parse("\n".join(lines)),
        "gemm",
        [*maps, (Pointer(c), ((128, 256), 256)), k_tiles],
        1,
        256,
        dynamic_smem=SMEM,
        checks=["race", "uninit", "strict"],
        schedule=schedule,
    )
    want = (a.astype(np.float32) @ b.astype(np.float32).T).astype(ml_dtypes.bfloat16)
    return report.warnings, np.array_equal(c, want)


@pytest.mark.sample("1-adversarial")
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
@pytest.mark.parametrize("k_tiles", [1, 4, 9])
def test_gemm(k_tiles: int, schedule: str) -> None:
    assert run(base(), k_tiles, schedule) == ([], True)


@pytest.mark.slow
def test_each_instruction_is_needed() -> None:
    """Three fences change nothing: those at the barrier after the allocation, and that before the deallocation."""
    lines = base()
    unneeded: list[str] = []
    for i, line in enumerate(lines):
        if "llvm.nvvm.tcgen05." not in line or "relinq" in line or "mma" in line or "tcgen05.ld" in line:
            continue
        try:
            result = run(lines[:i] + lines[i + 1 :], 5)
        except InterpError:
            continue
        assert result == ([], True), f"wrong result without a report: {line}"
        unneeded.append(line.split("tcgen05.")[1].split('"')[0])
    assert unneeded == ["fence.before.thread.sync", "fence.after.thread.sync", "fence.after.thread.sync"]
