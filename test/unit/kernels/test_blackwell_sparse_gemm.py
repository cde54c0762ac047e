"""The sparse GEMM of ``examples/``: exact results, a report for each bug, and code without spills."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.kernels.gemm.sparse import compress, order_by_lanes
from cute_dialect.pipelines.ptxas import assemble

FILE = Path(__file__).parents[3] / "examples" / "blackwell_sparse_gemm.py"
EXAMPLE = runpy.run_path(str(FILE))
SparseGemm, sparse, FORMATS = EXAMPLE["SparseGemm"], EXAMPLE["sparse"], EXAMPLE["FORMATS"]
CHECKS = ("race", "uninit", "sync", "oob", "strict")
SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
GEMM = "cute.sparse_gemm(mma, acc, rA[at], rB[at], e, accumulate=i > 0)"
BUGS = {
    "shared-columns": ("cute.copy(copy, thread.partition_S(", "race on tensor memory"),
    "late-copy": ("", "race on tensor memory|reads metadata of A from tensor memory that nothing has written"),
    "no-metadata": (GEMM, "reads metadata of A from tensor memory that nothing has written"),
    "overlap": (GEMM, "race on tensor memory within one instruction"),
    "missing-bytes": ("", "raise expect_tx|deadlock"),
    "no-wait": ("cute.autovec_copy(values, target[None, None, i])", "depends on unwritten tensor memory"),
}
"""Bug -> the line of the example that the report names, or "" if there are several, and its message."""


def operands(format: str, m: int, k: int, *, in_order: bool = True) -> tuple[list[Any], Any]:
    """Return the arguments of the kernel, and the product in float64."""
    rng = np.random.default_rng(m + k)
    whole = sparse(rng, format, m, k)
    b = rng.integers(-4, 5, (64, k)).astype(whole.dtype)
    a, metadata = compress(whole, FORMATS[format][0].mlir_type)
    e = order_by_lanes(metadata) if in_order else metadata.view(np.int32)
    c = np.full((m, 64), -(2**30), np.int32 if format == "i8" else np.float32)
    return [a, e, b, c], whole.astype(float) @ b.astype(float).T


def check(format: str, m: int, k: int, schedule: str, *, pair: bool = False) -> None:
    arrays, wanted = operands(format, m, k)
    with cute.target("sm_100a"):
        SparseGemm(format, pair=pair)(*arrays, device="cpu", checks=CHECKS, schedule=schedule)
    np.testing.assert_array_equal(arrays[-1], wanted)


@pytest.mark.end_to_end
@pytest.mark.sample("f16-adversarial")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("format", FORMATS)
def test_products_are_exact(format: str, schedule: str) -> None:
    """Five tiles along K are more than the three stages of the ring."""
    check(format, 128, 5 * SparseGemm(format).tile[2], schedule)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("format", FORMATS)
def test_products_of_pairs_are_exact(format: str, schedule: str) -> None:
    check(format, 512, 5 * SparseGemm(format).tile[2], schedule, pair=True)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_reported_at_their_lines(bug: str, pair: bool, schedule: str) -> None:
    line, message = BUGS[bug]
    arrays, _ = operands("f16", 256 if pair else 128, 640)
    with cute.target("sm_100a"), pytest.raises(InterpError, match=message) as raised:
        SparseGemm("f16", pair=pair, bug=bug)(*arrays, device="cpu", checks=CHECKS, schedule=schedule)
    assert line in str(raised.value)


def test_every_bug_has_a_report_or_changes_the_result() -> None:
    assert (*BUGS, "row-order") == EXAMPLE["BUGS"]


@pytest.mark.slow
def test_metadata_in_the_order_of_rows_change_the_result() -> None:
    arrays, wanted = operands("f16", 128, 256, in_order=False)
    with cute.target("sm_100a"):
        SparseGemm("f16")(*arrays, device="cpu", checks=CHECKS)
    assert not np.array_equal(arrays[-1], wanted)


def test_order_of_lanes() -> None:
    """Each half word is at the lane, the column and the half that the PTX ISA shows for 16-bit elements."""
    words = np.arange(256 * 6).astype(np.int16).reshape(256, 6)
    held = order_by_lanes(words).view(np.uint32)
    assert held.shape == (256, 3)
    for row in range(256):
        for word in range(6):
            lane = row // 16 * 16 + row % 8 + 8 * (word % 2)
            assert held[lane, word // 2] >> 16 * (row // 8 % 2) & 0xFFFF == words[row, word]
    whole = np.arange(8, dtype=np.int32).reshape(4, 2)
    assert order_by_lanes(whole) is whole
    with pytest.raises(ValueError, match=r"have the shape \(24, 2\); pass a multiple of 16 rows and of 2 words"):
        order_by_lanes(np.zeros((24, 2), np.int16))


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_registers_do_not_spill(format: str, pair: bool, chip: str) -> None:
    if (format, chip) == ("i8", "sm_103a"):
        return  # sm_103 has no MMA of integers.
    arrays, _ = operands(format, 256 if pair else 128, 512)
    made = cute.compile(SparseGemm(format, pair=pair), *arrays, device="cpu", chip=chip)
    assembled = assemble(made.ptx, chip)
    assert assembled.warnings == () and all(k.spills == 0 for k in assembled.kernels)
    assert made.ptx.count("tcgen05.mma.sp.") == 4 and ".local" not in made.ptx
    assert made.ptx.count("tcgen05.cp.") == (1 if format in ("f16", "tf32") else 2)
