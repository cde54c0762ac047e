"""Fallback of the Hopper GEMM for matrices that TMA cannot read, on the CPU interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gemm_fallback_support import CASES, DTYPES, FP8, arrays

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.pipelines import compile
from cute_dialect.runtime.launch_plan import LaunchError
from cute_dialect.tools.cute_run import main as cute_run

EXAMPLE = Path(__file__).parents[2] / "examples" / "gemm_sm90.mlir"


@pytest.mark.end_to_end
@pytest.mark.sample("rows of 200 bytes")
@pytest.mark.parametrize("name", CASES)
def test_product(name: str) -> None:
    arguments, out, exact = arrays(name)
    kernel = compile(gemm_text(CASES[name][0]), filename=f"{name}.mlir", emit="base").kernel("launch")
    plan = kernel.plan(*arguments)
    assert plan.kernel == "gemm_any"
    assert "expected a stride that is a positive multiple of 16 bytes" in plan.rejected[0]
    kernel(*arguments, device="cpu", checks=("race", "uninit", "sync"))
    assert (out.astype(np.float64) == exact).all()


@pytest.mark.slow
@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2"])
def test_every_8_bit_float(element: str) -> None:
    """Multiplying by one keeps every value, including zeros, subnormals and NaN."""
    c = FP8._replace(element=element, output="f32", tile=(128, 128, 128))
    a = np.arange(256, dtype=np.uint8).view(DTYPES[element]).reshape(256, 1)
    one, out = np.ones((1, 1), DTYPES[element]), np.zeros((256, 1), np.float32)
    compile(gemm_text(c), emit="base").kernel("launch")(a, one, out, device="cpu")
    assert np.array_equal(out, a.astype(np.float32), equal_nan=True)


def test_addresses() -> None:
    """The row strides suit TMA, but the base address is misaligned."""
    kernel = compile(EXAMPLE.read_text(), emit="base").kernel("launch")
    memory = np.zeros(64 * 64 + 1, np.float16)
    shifted, fine = memory[1:].reshape(64, 64), np.zeros((64, 64), np.float16)
    off = shifted if shifted.ctypes.data % 16 else memory[:-1].reshape(64, 64)
    assert kernel.plan(fine, fine, fine).kernel == "gemm"
    plan = kernel.plan(off, fine, fine)
    assert plan.kernel == "gemm_any"
    assert "align" in plan.rejected[0]


def test_mismatched_shapes_are_rejected_by_both_kernels() -> None:
    kernel = compile(EXAMPLE.read_text(), emit="base").kernel("launch")
    a, c = np.zeros((64, 60), np.float16), np.zeros((64, 64), np.float16)
    with pytest.raises(LaunchError, match="A and B must have the same K"):
        kernel.plan(a, np.zeros((64, 61), np.float16), c)


@pytest.mark.parametrize("k", [100, 101])
def test_cute_run_reports_the_fallback(k: int, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(EXAMPLE), "--kernel", "launch", "--device=cpu", "--in", f"66x{k}", "--in", f"70x{k}"]
    assert cute_run([*arguments, "--in", "66x70", "--check", "gemm"]) == 0
    said = capsys.readouterr().out
    assert "@gemm_any of" in said
    why = "TMA does not support this array: dimension 1: expected a stride that is a positive multiple of 16 bytes"
    assert f"skipped @gemm: argument A: {why}, got {2 * k}" in said
