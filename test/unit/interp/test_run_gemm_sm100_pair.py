"""The GEMM of pairs of blocks of ``test/examples`` on the interpreter: every schedule, and mutants that must fail."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from interp_support import parse, run_kernel

from cute_dialect.interp import InterpError, Pointer, RunReport, TensorMap
from cute_dialect.pipelines.compiler import lower_to_base

EXAMPLE = Path(__file__).parents[2] / "examples" / "gemm_sm100_pair.mlir"
TEXT = EXAMPLE.read_text(encoding="utf-8")
SMEM = 131148
SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
CHECKS = ["race", "oob", "uninit", "sync", "strict"]


@cache
def base(text: str = TEXT) -> str:
    """Return an edited example in base IR."""
    return lower_to_base(text, pipeline="base")


def run(module: str, k_tiles: int, schedule: str = "round-robin", tiles: int = 1) -> tuple[RunReport, bool]:
    """Run the GEMM on tiles of 256 x 256 along M, and return the report and whether the result is right."""
    rng = np.random.default_rng(k_tiles)
    m, k = 256 * tiles, 64 * k_tiles
    a, b = (rng.integers(-3, 4, (rows, k)).astype(ml_dtypes.bfloat16) for rows in (m, 256))
    c = np.full((m, 256), np.nan, ml_dtypes.bfloat16)
    maps = [
        TensorMap("bf16", (k, rows), (2 * k,), (64, 128), swizzle=128, pointer=Pointer(x))
        for x, rows in ((a, m), (b, 256))
    ]
    report = run_kernel(
        parse(module),
        "gemm",
        [*maps, (Pointer(c), ((m, 256), 256)), k_tiles],
        2 * tiles,
        256,
        cluster=2,
        dynamic_smem=SMEM,
        checks=CHECKS,
        schedule=schedule,
    )
    return report, np.array_equal(c, (a.astype(np.float32) @ b.astype(np.float32).T).astype(ml_dtypes.bfloat16))


@pytest.mark.sample("1-adversarial")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("k_tiles", [1, 4, 9])
def test_gemm(k_tiles: int, schedule: str) -> None:
    report, right = run(base(), k_tiles, schedule)
    assert right
    assert report.warnings == []


@pytest.mark.slow
def test_several_pairs() -> None:
    report, right = run(base(), 3, tiles=2)
    assert right
    assert report.warnings == []


FIRST_LOADS = (
    "scf.if %leads {\n          cute_nvgpu.arch.mbarrier_arrive_expect_tx(%f, %bytes) : (!bar, i32) -> ()\n        }"
)
COMMIT = "cute_nvgpu.arch.tcgen05_commit({}, %both) {{cta_group = 2 : i32}} : (!bar, i16) -> ()"
STAGE, DONE = COMMIT.format("%e"), COMMIT.format("%done")
PAIR = "{columns = 256 : i32, cta_group = 2 : i32} : (!tmem) -> ()"
WAIT = "cute_nvgpu.arch.mbarrier_wait({}) : (!bar, i32) -> ()"
FULL, ACCUMULATED = WAIT.format("%f, %phase"), WAIT.format("%done, %c0")
AFTER = 'cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()'
BEFORE = 'cute_nvgpu.arch.tcgen05_fence() {kind = "before"} : () -> ()'
CLUSTER = "cute_nvgpu.arch.cluster_arrive() : () -> ()\n    cute_nvgpu.arch.cluster_wait() : () -> ()"
END = f"    }}\n    {CLUSTER}\n    scf.if %allocates {{"

ALLOCATION = TEXT[
    TEXT.index("    scf.if %allocates {\n      cute_nvgpu.arch.tmem_alloc") : TEXT.index(f"    {BEFORE}\n")
]


@pytest.mark.slow
@pytest.mark.sample("adversarial")
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_allocation_of_a_pair_is_one_operation(schedule: str) -> None:
    """The MMA of the even block may use the memory of both after its own allocation, without a barrier of the two."""
    start = TEXT.index(ALLOCATION)
    end = TEXT.index("    %tmem = cute_nvgpu.arch.tmem_pointer")
    barrier = TEXT[start + len(ALLOCATION) : end]
    own = f"    {BEFORE}\n    cute_nvgpu.arch.barrier() : () -> ()\n    {AFTER}\n"
    report, right = run(base(TEXT[:start] + barrier + ALLOCATION + own + TEXT[end:]), 3, schedule)
    assert right
    assert report.warnings == []


MUTANTS: dict[str, tuple[str, str, str]] = {
    "no wait for an empty stage": (WAIT.format("%e, %phase"), "", "race|sync"),
    "no wait for a full stage": (FULL, "", "race|uninit"),
    "no wait for the accumulator": (ACCUMULATED, "", "race|uninit"),
    "full stage waited for with the other phase": (
        "iter_args(%stage = %c0, %phase = %c0)",
        "iter_args(%stage = %c0, %phase = %c1)",
        "race|uninit",
    ),
    "bytes of the other barrier": (
        "mbarrier_arrive_expect_tx(%f, %bytes)",
        "mbarrier_arrive_expect_tx(%e, %bytes)",
        "sync|deadlock|race",
    ),
    "bytes expected by both blocks": (FIRST_LOADS, FIRST_LOADS.replace("%leads", "%loads"), "sync|deadlock|race"),
    "bytes expected by the odd block": (
        FIRST_LOADS,
        FIRST_LOADS.replace("scf.if %leads", "%odd = arith.cmpi ne, %rank, %c0 : i32\n        scf.if %odd"),
        "sync|deadlock|race",
    ),
    "bytes of one block": ("arith.constant 65536 : i32", "arith.constant 32768 : i32", "sync|deadlock|race"),
    "loads signal their own block": (", cta_group = 2>\n!mma_atom", ">\n!mma_atom", "deadlock|sync"),
    "stage committed without a mask": (STAGE, STAGE.replace(", %both)", ")").replace(", i16)", ")"), "deadlock"),
    "stage committed to the even block": (
        STAGE,
        f"%one = arith.constant 1 : i16\n        {STAGE.replace('%both', '%one')}",
        "deadlock",
    ),
    "stage committed to the odd block": (
        STAGE,
        f"%two = arith.constant 2 : i16\n        {STAGE.replace('%both', '%two')}",
        "deadlock",
    ),
    "no commit of a stage": (STAGE, "", "deadlock"),
    "no commit of the accumulator": (DONE, "", "deadlock"),
    "accumulator committed without a mask": (DONE, DONE.replace(", %both)", ")").replace(", i16)", ")"), "deadlock"),
    "accumulator committed to a stage": (DONE, COMMIT.format("%empty"), "deadlock"),
    "both blocks multiply": (
        "arith.andi %multiplies, %leads",
        "arith.andi %multiplies, %multiplies",
        "deadlock|race|sync",
    ),
    "the odd block multiplies": (
        "%leads = arith.cmpi eq, %rank, %c0 : i32",
        "%leads = arith.cmpi eq, %rank, %c1 : i32",
        "deadlock|race|sync",
    ),
    "freed by one block": (
        "scf.if %allocates {\n      " + AFTER + "\n      cute_nvgpu.arch.tmem_dealloc",
        "%frees = arith.andi %allocates, %leads : i1\n    scf.if %frees {\n      "
        + AFTER
        + "\n      cute_nvgpu.arch.tmem_dealloc",
        "deadlock|tcgen05|sync",
    ),
    "never freed": ("cute_nvgpu.arch.tmem_dealloc(%tmem) " + PAIR, "", "tcgen05"),
    "freed before the loads": (
        END,
        "    }\n    scf.if %allocates {",
        "race|tcgen05|sync|oob",
    ),
    "allocated by one block": (
        "scf.if %allocates {\n      cute_nvgpu.arch.tmem_alloc",
        "%here = arith.andi %allocates, %leads : i1\n    scf.if %here {\n      cute_nvgpu.arch.tmem_alloc",
        "deadlock|tcgen05|sync|uninit|oob",
    ),
    "too few columns": ("columns = 256", "columns = 128", "oob|tcgen05"),
    "B of the even block in both": ("%y_b = arith.addi %y_b0, %half", "%y_b = arith.addi %y_b0, %c0", ""),
    "A of the even block in both": ("arith.muli %m, %c128", "arith.muli %n, %c128", ""),
    "no overwrite": ("arith.cmpi ne, %k, %c0", "arith.cmpi sge, %k, %c0", "uninit"),
    "no fence after a full stage": (f"{WAIT.format('%f, %phase')}\n        {AFTER}", WAIT.format("%f, %phase"), "race"),
    "no fence after the accumulator": (
        f"{WAIT.format('%done, %c0')}\n      {AFTER}",
        WAIT.format("%done, %c0"),
        "race",
    ),
    "no fence after the loads": (f"      {BEFORE}\n    }}", "    }", "race"),
    "no wait for the loads": ('cute_nvgpu.arch.tmem_wait() {kind = "load"} : () -> ()', "", "tcgen05|race"),
    "lanes of another warp": ("arith.andi %warp, %c3", "arith.andi %warp, %c1", "tcgen05"),
}
"""Name -> a text of the example, its replacement, and the kinds of finding; no kinds mean a wrong result."""


def mutated(name: str) -> str:
    """Return the base IR of a mutant."""
    before, after, _ = MUTANTS[name]
    assert before in TEXT, name
    text = TEXT.replace(before, after)
    if "cta_group" not in text.partition("!mma_atom")[0]:
        text = text.replace("{swizzle = 128 : i32, cta_group = 2 : i32}", "{swizzle = 128 : i32}")
    return base(text)


@pytest.mark.sample(every=211)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants(name: str, schedule: str) -> None:
    text, kinds = mutated(name), MUTANTS[name][2]
    if not kinds:
        assert not run(text, 6, schedule)[1]
        return
    with pytest.raises(InterpError) as e:
        run(text, 6, schedule)
    assert re.fullmatch(kinds, e.value.kind), (e.value.kind, e.value)


def test_the_page_counts_the_mutants() -> None:
    page = (Path(__file__).parents[3] / "docs" / "blackwell.md").read_text(encoding="utf-8")
    assert f"A test applies {len(MUTANTS)} edits" in page
