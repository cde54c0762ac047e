"""The block-scaled GEMM of the examples: exact results under every check and schedule, and its bugs."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.pipelines.ptxas import assemble

FILE = Path(__file__).parents[3] / "examples" / "blackwell_scaled_gemm.py"
EXAMPLE = runpy.run_path(str(FILE))
ScaledGemm, operand = EXAMPLE["ScaledGemm"], EXAMPLE["operand"]
CHECKS = ("race", "uninit", "sync", "oob", "strict")
SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
BUGS = {
    "shared-columns": ("cute.copy(copy, source, thread.partition_D(target))", "race on tensor memory"),
    "late-copy": ("", "race on tensor memory|reads a scale factor of . from tensor memory that nothing has written"),
    "no-factors": ("cute.gemm(mma, acc, [rA[at], sfa], [rB[at], sfb], accumulate=i > 0)", "reads a scale factor of B"),
    "overlap": ("", "race on tensor memory"),
    "missing-bytes": ("", "raise expect_tx|deadlock"),
    "unpacked-bytes": ("", "deadlock"),
    "early-release": ("", r"race on shared memory(.|\n)*the earlier tcgen05.(mma|cp) is by thread \(\d+"),
    "no-wait": ("cute.autovec_copy(values, target[None, None, i])", "depends on unwritten tensor memory"),
}
"""Bug -> the line of the example that the report names, or "" if there are several, and its message."""


def operands(format: str, m: int, k: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(m + k)
    (a, sfa, wide_a), (b, sfb, wide_b) = (operand(rng, format, i, rows, k) for i, rows in enumerate((m, 128)))
    return (a, b, sfa, sfb, np.full((m, 128), np.nan, np.float32)), wide_a @ wide_b.T


def check(format: str, k: int, schedule: str, pair: bool = False) -> None:
    arrays, wanted = operands(format, 256 if pair else 128, k)
    with cute.target("sm_100a"):
        ScaledGemm(format, pair=pair)(*arrays, device="cpu", checks=CHECKS, schedule=schedule)
    np.testing.assert_array_equal(arrays[-1], wanted)


@pytest.mark.end_to_end
@pytest.mark.sample("nvfp4-128-adversarial")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("k", [128, 1280])
@pytest.mark.parametrize("format", EXAMPLE["FORMATS"])
def test_products_are_exact(format: str, k: int, schedule: str) -> None:
    """The ring has three stages of 128 or 256 elements; K of 128 is half a stage of 4-bit elements."""
    check(format, k, schedule)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("format", EXAMPLE["FORMATS"])
def test_products_of_pairs_are_exact(format: str, schedule: str) -> None:
    check(format, 1280, schedule, pair=True)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_reported_at_their_lines(bug: str, pair: bool, schedule: str) -> None:
    line, message = BUGS[bug]
    format = "mxfp4-mxfp8" if bug == "unpacked-bytes" else "nvfp4"
    arrays, _ = operands(format, 256 if pair else 128, 1280)
    with cute.target("sm_100a"), pytest.raises(InterpError, match=message) as raised:
        ScaledGemm(format, pair=pair, bug=bug)(*arrays, device="cpu", checks=CHECKS, schedule=schedule)
    assert line in str(raised.value)


def test_every_bug_has_a_report() -> None:
    assert tuple(BUGS) == EXAMPLE["BUGS"]


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("format", EXAMPLE["FORMATS"])
def test_registers_do_not_spill(format: str, pair: bool, chip: str) -> None:
    arrays, _ = operands(format, 256 if pair else 128, 512)
    made = cute.compile(ScaledGemm(format, pair=pair), *arrays, device="cpu", chip=chip)
    assembled = assemble(made.ptx, chip)
    assert assembled.warnings == () and all(k.spills == 0 for k in assembled.kernels)
    groups = 4 if format == "nvfp4" else 2 if format == "mxfp4" else 1  # blocks of 128 rows x 4 factors in a stage
    assert made.ptx.count("tcgen05.mma.") == 4 and made.ptx.count("tcgen05.cp.") == 2 * groups
    assert ".local" not in made.ptx
