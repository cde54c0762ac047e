"""The mixed-input GEMM of the examples: exact results under every check and schedule, and its bugs."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.pipelines.ptxas import assemble

FILE = Path(__file__).parents[3] / "examples" / "blackwell_mixed_gemm.py"
EXAMPLE = runpy.run_path(str(FILE))
MixedGemm, weights = EXAMPLE["MixedGemm"], EXAMPLE["weights"]
CHECKS = ("race", "uninit", "sync", "oob", "strict")
SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
BUGS = {
    "no-operand-wait": "race on (tensor|shared) memory|nothing has written",
    "no-store-wait": r"missing tcgen05.wait::st|missing fence.proxy.async",
    "early-release": "race on shared memory",
    "early-operand": "race on (tensor|shared) memory",
    "overlap": "race on tensor memory",
    "no-wait": "race on tensor memory|depends on unwritten tensor memory",
    "wrong-scale": "",
    "never-freed": "of tensor memory, allocated here, are not freed",
}
"""Bug -> the report, or "" if the result differs."""


def operands(format: str, m: int, k: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(m + k)
    a, scale, wide = weights(rng, format, m, k)
    b = rng.integers(-4, 5, (128, k)).astype(ml_dtypes.bfloat16)
    return (a, b, scale, np.full((m, 128), np.nan, np.float32)), wide @ b.astype(float).T


def run(format: str, m: int, k: int, schedule: str, **given: Any) -> bool:
    arrays, wanted = operands(format, m, k)
    with cute.target("sm_100a"):
        MixedGemm(format, **given)(*arrays, device="cpu", checks=CHECKS, schedule=schedule)
    return np.array_equal(arrays[-1], wanted)


@pytest.mark.end_to_end
@pytest.mark.sample("int4-tmem-adversarial")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("operand", ["tmem", "smem"])
@pytest.mark.parametrize("format", EXAMPLE["FORMATS"])
def test_products_are_exact(format: str, operand: str, schedule: str) -> None:
    """K of seven tiles: the rings of three stages and of two converted tiles wrap."""
    assert run(format, 128, 448, schedule, operand=operand)


@pytest.mark.slow
@pytest.mark.parametrize("k", [64, 128])
def test_few_tiles(k: int) -> None:
    assert run("int8", 256, k, "adversarial")


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("operand", ["tmem", "smem"])
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_reported(bug: str, operand: str, schedule: str) -> None:
    if bug == "overlap" and operand == "smem":
        assert run("int8", 128, 448, schedule, operand=operand, bug=bug)  # It moves tiles of tensor memory only.
    elif BUGS[bug]:
        with pytest.raises(InterpError, match=BUGS[bug]):
            run("int8", 128, 448, schedule, operand=operand, bug=bug)
    else:
        assert not run("int8", 128, 448, schedule, operand=operand, bug=bug)


def test_every_bug_has_a_report() -> None:
    assert tuple(BUGS) == EXAMPLE["BUGS"]


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("operand", ["tmem", "smem"])
@pytest.mark.parametrize("format", EXAMPLE["FORMATS"])
def test_registers_do_not_spill(format: str, operand: str, chip: str) -> None:
    arrays, _ = operands(format, 128, 256)
    made = cute.compile(MixedGemm(format, operand=operand), *arrays, device="cpu", chip=chip)
    assembled = assemble(made.ptx, chip)
    assert assembled.warnings == () and all(k.spills == 0 for k in assembled.kernels)
    assert made.ptx.count("tcgen05.mma.") == 4
    assert made.ptx.count("tcgen05.st.") == (operand == "tmem")
    assert ".local" not in made.ptx
