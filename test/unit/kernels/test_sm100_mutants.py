"""Mutants of the GEMM kernel for sm_100: the interpreter reports each synchronizing op that is removed or changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from cute_dialect.interp import InterpError
from cute_dialect.kernels.gemm.sm100 import Sm100Config, sm100_gemm_text
from cute_dialect.pipelines.compiler import compile_lazily

BLOCK = Sm100Config(tile=(64, 64), stages=2, sms=1)
"""One block computes all tiles, so the ring, both accumulators and the staging buffers are reused."""
PAIR = Sm100Config(tile=(256, 32), stages=2, sms=2)
"""A kernel of a pair of blocks."""
CHECKS = ("race", "uninit", "sync", "oob", "strict")
SCHEDULES = ("round-robin", "adversarial", "reverse", "random")
EXTENTS = {BLOCK: (64, 320, 200), PAIR: (300, 96, 136)}
"""M, N and K: five or six tiles."""

REMOVED = (
    "mbarrier_wait", "mbarrier_arrive", "mbarrier_arrive_cluster", "mbarrier_init", "tcgen05_fence", "tcgen05_commit",
    "tmem_alloc", "tmem_dealloc", "tmem_wait", "named_barrier", "barrier", "bulk_wait_group", "bulk_commit_group",
    "fence_proxy_async", "syncwarp", "cluster_arrive", "cluster_wait",
)  # fmt: skip
"""Ops of which each one is removed."""
CHANGED = (
    (
        r"^( *)(.*mbarrier_wait\(%\w+, )(%\w+)(\).*)",
        r"\1%flipped = arith.xori \3, %c1_i32 : i32\n\2%flipped\4",
        "phase",
    ),
    (r"(mbarrier_init\(%\w+, )%c(128|256)_i32", r"\1%c1_i32", "fewer arrivals"),
    (r"(mbarrier_arrive_expect_tx\(%\w+, )%c\d+_i32", r"\1%c1_i32", "fewer bytes"),
    (r"(tmem_alloc.*columns = )(128|64)", r"\g<1>32", "fewer columns"),
    (r"(tmem_dealloc.*columns = )(128|64)", r"\g<1>32", "fewer columns freed"),
    (r"(arith.muli %arg[12], )%c(64|32)_i32", r"\1%c0_i32", "the first accumulator only"),
    (r"(arith.cmpi )ugt(, %i, %c0_i32)", r"\1uge\2", "the old accumulator is added"),
)
"""Changes: a pattern, its replacement, and a name."""
CHANGED_OF_PAIRS = (
    (r"(tcgen05_commit\(%\w+), %\w+(.*), i16\)", r"\1\2)", "a commit to the even block only"),
    (r"(mbarrier_arrive_cluster\(%\w+, )%c0_i32", r"\1%60", "the accumulator is released in the own block"),
    (r"(arith.xori %\d+, )%c1_i32( : i32)", r"\1%c0_i32\2", "the peer is the own block"),
    (r"(arith.cmpi )eq(, %60, %c0_i32)", r"\1ult\2", "no block issues MMAs"),
    (r"(arith.cmpi )eq(, %60, %c0_i32)", r"\1uge\2", "both blocks issue MMAs"),
    (r"(arith.muli %(row|column)_?\d*, )%c2_i32", r"\1%c1_i32", "overlapping tiles"),
)
"""Changes of the code of pairs, in which %60 is the rank of the block."""

EQUIVALENT = {
    0: "tcgen05.alloc is synchronous",
    1: "tcgen05.alloc is synchronous",
    2: "the fence after the wait for the first stage of the tile precedes the first MMA, too",
    -1: "tcgen05.dealloc is synchronous, and all loads are complete at the barrier",
}
"""Index among the fences -> reason why the kernel is correct without it."""
WAITS_AT_THE_END = (1, 2)
"""Indices among the waits of a pair: for the last commits. In the interpreter they arrive before the last one."""
CASES = pytest.mark.parametrize("config", [BLOCK, PAIR], ids=["block", "pair"])


class Mutant(NamedTuple):
    """A change of one line of the kernel."""

    line: int
    replacement: str
    what: str


@cache
def kernel(config: Sm100Config) -> list[str]:
    return sm100_gemm_text(config).splitlines()


def mutants(config: Sm100Config) -> Iterator[Mutant]:
    for i, line in enumerate(kernel(config)):
        found = re.search(r"cute_nvgpu\.arch\.(\w+)\(", line)
        if found and found[1] in REMOVED:
            yield Mutant(i, "", f"without {found[1]}")
        for pattern, replacement, what in (*CHANGED, *(CHANGED_OF_PAIRS if config == PAIR else ())):
            if re.search(pattern, line):
                yield Mutant(i, re.sub(pattern, replacement, line), what)


def report(config: Sm100Config, lines: list[str], schedule: str) -> str:
    """Return the report of a kernel, or "wrong result", or "" for a correct one."""
    rng, (m, n, k) = np.random.default_rng(0), EXTENTS[config]
    a, b = (rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.full((m, n), np.nan, np.float16)
    compiled = compile_lazily("\n".join(lines), "mutant", chip="sm_100a")
    try:
        compiled.kernel("launch")(a, b, c, device="cpu", checks=CHECKS, schedule=schedule, seed=1)
    except InterpError as e:
        return str(e).splitlines()[0]
    return "" if np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T) else "wrong result"


@pytest.mark.slow
@CASES
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_kernel_is_clean(config: Sm100Config, schedule: str) -> None:
    assert report(config, kernel(config), schedule) == ""


def caught(config: Sm100Config, x: Mutant) -> str:
    """Return the first report of a mutant, or "" if no schedule has one."""
    lines = [*kernel(config)[: x.line], x.replacement, *kernel(config)[x.line + 1 :]]
    return next((found for s in SCHEDULES if (found := report(config, lines, s))), "")


@pytest.mark.slow
@CASES
def test_no_mutant_is_missed(config: Sm100Config) -> None:
    fences = [x for x in mutants(config) if x.what == "without tcgen05_fence"]
    equivalent = {fences[i] for i in EQUIVALENT}
    if config == PAIR:
        waits = [x for x in mutants(config) if x.what == "without mbarrier_wait"]
        equivalent |= {waits[i] for i in WAITS_AT_THE_END}
    missed = {x for x in mutants(config) if not caught(config, x)}
    assert missed == equivalent


@pytest.mark.slow
@pytest.mark.end_to_end
def test_an_accumulator_that_is_reused_too_early() -> None:
    """The wait of the MMA warp for the epilogue is missing."""
    wait = [x for x in mutants(BLOCK) if x.what == "without mbarrier_wait"][1]
    assert "write-after-read race on tensor memory" in caught(BLOCK, wait)
