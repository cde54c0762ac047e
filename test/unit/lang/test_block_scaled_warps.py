"""Block-scaled ``mma.sync`` in the language: layouts of factors, tiled copies, and the GEMM of ``examples/``."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang import blackwell, blockscaled
from cute_dialect.lang.nvgpu import warp
from cute_dialect.pipelines.ptxas import assemble

EXAMPLE = Path(__file__).parents[3] / "examples" / "geforce_scaled_gemm.py"
OPS = {32: warp.MmaMXF8Op(cute.Float8E5M2), 64: warp.MmaMXF4NVF4Op()}
"""K of the instruction -> its descriptor."""


def tiled_mma(k: int, warps: tuple[int, int]) -> cute.TiledMma:
    permutation = blackwell.get_permutation_mnk((128, 128, 128), 16 if k == 64 else 32, k == 32)
    return cute.make_tiled_mma(OPS[k], (*warps, 1), permutation)


@pytest.mark.parametrize(("k", "warps"), [(32, (4, 2)), (64, (2, 2))])
def test_factors_of_a_thread(k: int, warps: tuple[int, int]) -> None:
    """PTX ISA 9.7.14.5.9: lanes 4g and 4g + 1 hold the factors of rows g and g + 8, and lane 4g those of column g."""
    mma, vec = tiled_mma(k, warps), 32 if k == 32 else 16
    assert mma.tile_shape_mnk == (128, 32, k)
    layouts = blackwell.get_layoutSFA_TV(mma), blackwell.get_layoutSFB_TV(mma)
    rng = np.random.default_rng(0)
    for t, e in zip(rng.integers(0, mma.size, 64).tolist(), rng.integers(0, k, 64).tolist()):
        lane, m, n = t % 32, t // 32 % warps[0], t // 32 // warps[0]
        for rest in range(8 // warps[0]):
            row = 16 * (m + warps[0] * rest) + lane // 4 + 8 * (lane % 2)
            assert layouts[0]((t, e + k * rest)) == row + 128 * (e // vec * vec + e % vec)
        for rest in range(2):
            assert layouts[1]((t, e + k * rest)) == 16 * n + 8 * rest + lane // 4 + 32 * e


@pytest.mark.slow
@pytest.mark.parametrize(("k", "depth"), [(32, 256), (64, 128)])
def test_factors_in_shared_memory(k: int, depth: int) -> None:
    mma, vec = tiled_mma(k, (2, 2)), 32 if k == 32 else 16
    layouts = (
        blockscaled.sm120_make_smem_layout_sfa(mma, (256, 64, depth), vec, 3),
        blockscaled.sm120_make_smem_layout_sfb(mma, (256, 64, depth), vec, 3),
    )
    for layout, rows in zip(layouts, (256, 128)):
        steps = depth // vec // 4
        for x, e, stage in itertools.product(range(0, rows, 7), range(0, depth, 5), range(3)):
            factor = e // vec
            block = x // 128 + rows // 128 * (factor // 4 + steps * stage)
            at = 512 * block + 16 * (x % 32) + 4 * (x % 128 // 32) + factor % 4
            assert layout((x, e, stage)) == at


@pytest.mark.slow
@pytest.mark.parametrize("warps", [(4, 2), (2, 2), (8, 1)])
def test_accumulators_of_permuted_columns(warps: tuple[int, int]) -> None:
    """The tile of one instruction per warp has the rows and columns of the first accumulators."""
    mma = tiled_mma(64, warps)
    copy = cute.make_tiled_copy_C_atom(cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 2), cute.Float16), mma)
    (rows, columns), whole = copy.tiler_mn, mma.tv_layout("C")
    assert rows == 16 * warps[0]
    assert str(columns) == ("(8,2):(1,16)" if warps[1] == 2 else "8")
    for t, v in itertools.product(range(mma.size), range(4)):
        at = whole((t, v))
        m, n = at % 128, at // 128
        place = copy.layout_tv_tiled((t, v))
        assert (place % rows, place // rows) == (m, n % 8 + 8 * (n // 16))


EXAMPLES: dict[str, Any] = {}


def run(format: str, bug: str = "", schedule: str = "round-robin", k: int = 384) -> None:
    """Run the example, compare its result with float64, and raise what the interpreter reports."""
    names = EXAMPLES or EXAMPLES.update(runpy.run_path(str(EXAMPLE))) or EXAMPLES
    rng, kernel = np.random.default_rng(k), names["ScaledGemm"](format, bug=bug)
    (a, sfa, scaled_a), (b, sfb, scaled_b) = (names["operand"](rng, kernel, 128, k) for _ in range(2))
    c = np.full((128, 128), np.nan, np.float32)
    gemm = cute.compile(kernel, a, b, sfa, sfb, c, device="cpu", chip="sm_120a")
    gemm(a, b, sfa, sfb, c, checks=("race", "oob", "uninit", "sync"), schedule=schedule)
    assert np.array_equal(c, scaled_a @ scaled_b.T)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["mxfp8", "mxfp4", "nvfp4"])
@pytest.mark.parametrize("schedule", ["reverse", "random", "adversarial"])
def test_formats(format: str, schedule: str) -> None:
    run(format, schedule=schedule, k=640)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["mxfp8", "nvfp4"])
@pytest.mark.parametrize(
    ("bug", "message"),
    [
        ("no-factors", "which nothing has written"),
        ("first-factors", "assert"),
        ("early-release", "write-after-read race on shared memory"),
        ("missing-bytes", "raise expect_tx"),
    ],
)
def test_mistakes(bug: str, message: str, format: str) -> None:
    with pytest.raises(Exception, match=message):
        run(format, bug, k=1024)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_120a", "sm_121a"])
@pytest.mark.parametrize("format", ["mxfp8", "mxfp4", "nvfp4"])
def test_machine_code(format: str, chip: str) -> None:
    names = EXAMPLES or EXAMPLES.update(runpy.run_path(str(EXAMPLE))) or EXAMPLES
    kernel = names["ScaledGemm"](format)
    a, c = np.zeros((128, 512), np.uint8), np.zeros((128, 128), np.float32)
    factors = np.zeros(512 * 512 // 128, np.uint8)
    compiled = cute.compile(kernel, a, a, factors, factors, c, chip=chip, device="gpu")
    made = assemble(compiled.ptx, chip)
    assert made.warnings == () and all(k.spills == 0 for k in made.kernels)
