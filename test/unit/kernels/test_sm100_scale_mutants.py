"""Mutants of the block-scaled GEMM for sm_100: each synchronization, and each use of the scale factors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from test_sm100_mutants import CHANGED, CHECKS, REMOVED, SCHEDULES
from test_sm100_scales import DTYPES, MX8, NV4, operand
from xdsl.parser import Parser

from cute_dialect.interp import InterpError
from cute_dialect.ir.context import make_context
from cute_dialect.ir.printing import ir_text
from cute_dialect.kernels.gemm.sm100 import Sm100Config, sm100_gemm_text
from cute_dialect.passes.base import PassContext, run_pass
from cute_dialect.passes.registry import load
from cute_dialect.pipelines.compilation import LoweringError
from cute_dialect.pipelines.compiler import compile_lazily

BLOCK = MX8
"""One block computes all tiles, so the ring, both accumulators and both sets of factors are reused."""
OVERLAP = NV4._replace(tile=(128, 256), stages=3, output="f16", buffers=1)
"""Two accumulators share columns, and a stage has four blocks of factors of A and eight of B."""
PAIR = MX8._replace(tile=(256, 64), sms=2)
"""A pair of blocks computes all tiles."""
EXTENTS = {BLOCK: (150, 130, 500), OVERLAP: (130, 300, 1000), PAIR: (300, 140, 300)}
"""M, N and K: several tiles, of which some begin inside of a block of factors of B."""
CASES = pytest.mark.parametrize("config", [BLOCK, OVERLAP], ids=["block", "overlap"])


def _next_byte(found: re.Match[str]) -> str:
    return f"{found[1]}{(int(found[2]) + 1) % 4}{found[3]}"


def _swapped(found: re.Match[str]) -> str:
    start, sfa, sfb, middle, type_a, type_b, end = found.groups()
    return f"{start}{sfb}, {sfa}{middle}{type_b}, {type_a}{end}"


Change = tuple[str, str | Callable[[re.Match[str]], str], str]
"""A pattern, its replacement, and a name."""

CHANGED_SCALES: tuple[Change, ...] = (
    (r"(tmem_alloc.*columns = )(256|512)", r"\g<1>128", "fewer columns"),
    (r"(tmem_dealloc.*columns = )(256|512)", r"\g<1>128", "fewer columns freed"),
    (r"(arith.muli (?:%arg\d+, (?=%c(?:64|192)_)|%\w+, (?=%c160_)))%c\w+", r"\1%c0_i32", "the first accumulator only"),
    (r"(arith.muli %arg\d+, )%c(2|8|48|256|1024)_i32", r"\1%c0_i32", "factors of the first set, or stage, only"),
    (r"(make_coord\()%\w+(\).*_,_,_,_,\?)", r"\1%c0_i32\2", "a copy of the factors of the first stage"),
    (r"(make_coord\()%\w+(, %i\).*_,\?,\?,0)", r"\1%c0_i32\2", "the first row of factors"),
    (
        r"^( *)(.*make_coord\(%\w+, )%i(\).*_,\?,\?,0.*)",
        r"\1%after = arith.addi %i, %c1_i32 : i32\n\1\2%after\3",
        "the factors of the next step",
    ),
    (r"(%first\w* = arith.shrui %\w+, )%c5_i32", r"\1%c7_i32", "the factors of the first column of a block"),
)
"""Changes of the traced kernel."""

CHANGED_INSTRUCTIONS: tuple[Change, ...] = (
    (r"(sf_a = )(\d)( : i32)", _next_byte, "another byte of the factors of A"),
    (r"(sf_b = )(\d)( : i32)", _next_byte, "another byte of the factors of B"),
    (
        r"(tcgen05_scaled_mma\(%\w+, %\w+, %\w+, )(%\w+), (%\w+)(.*, )(!cute\.ptr<[^()]*?>), (!cute\.ptr<[^()]*?>)"
        r"((?:, i1)?\) -> \(\))",
        _swapped,
        "swapped factors",
    ),
)
"""Changes of the instructions to which the traced kernel is lowered."""

OF_STAGING = {"syncwarp", "bulk_wait_group", "bulk_commit_group", "fence_proxy_async"}
"""Ops that store a chunk of the result, which only the mutants of BLOCK leave out: other kernels have more of them."""
CHANGED_OF_PAIRS = (
    (r"(tcgen05_commit\(%\w+), %\w+(.*), i16\)", r"\1\2)", "a commit to the even block only"),
    (r"(mbarrier_arrive_cluster\(%\w+, )%c0_i32", r"\1%c1_i32", "the accumulator is released in the odd block"),
)
"""Changes of the code of pairs."""
CHANGED_INSTRUCTIONS_OF_PAIRS = (
    (r"(tmem_copy\(.*)cta_group = 2 : i32", r"\1cta_group = 1 : i32", "factors of the own block only"),
)
"""Changes of the instructions of pairs."""


class Mutant(NamedTuple):
    """A kernel with changed lines."""

    changes: tuple[tuple[int, str], ...]  # lines and their replacements
    what: str
    lowered: bool = False  # lines of the lowered kernel


@cache
def kernel(config: Sm100Config, lowered: bool = False) -> list[str]:
    """Return the lines of the traced kernel, or with ``lowered`` of its instructions, one op each."""
    text = sm100_gemm_text(config)
    if not lowered:
        return text.splitlines()
    module = Parser(make_context(), text).parse_module()
    for name in ("cute-fold-static", "cute-expand-ops", "convert-cute-algo-to-arch"):
        run_pass(load(name)(), module, PassContext(make_context()))
    return ir_text(module).splitlines()


def mutants(config: Sm100Config) -> Iterator[Mutant]:
    of_pairs = CHANGED_OF_PAIRS if config is PAIR else ()
    for i, line in enumerate(kernel(config)):
        found = re.search(r"cute_nvgpu\.arch\.(\w+)\(", line)
        if found and found[1] in set(REMOVED) - (set() if config is BLOCK else OF_STAGING):
            yield Mutant(((i, ""),), f"without {found[1]}")
        yield from changed(i, line, (*CHANGED[:3], CHANGED[6], *CHANGED_SCALES, *of_pairs))
    of_pairs = CHANGED_INSTRUCTIONS_OF_PAIRS if config is PAIR else ()
    lines = kernel(config, lowered=True)
    last = max([i for i, line in enumerate(lines) if "tcgen05_scaled_mma(" in line])
    for i, line in enumerate(lines):
        if "arch.tmem_copy(" in line:
            yield Mutant(((i, ""),), "without tmem_copy", lowered=True)
            yield Mutant(((i, ""), (last, f"{lines[last]}\n{line}")), "factors copied too late", lowered=True)
        yield from changed(i, line, (*CHANGED_INSTRUCTIONS, *of_pairs), lowered=True)


def changed(i: int, line: str, changes: Sequence[Change], *, lowered: bool = False) -> Iterator[Mutant]:
    for pattern, replacement, what in changes:
        made = re.sub(pattern, replacement, line)
        if made != line:
            yield Mutant(((i, made),), what, lowered)


def report(config: Sm100Config, lines: list[str], schedule: str) -> str:
    """Return the report of a kernel, or "wrong result", or "" for a correct one."""
    rng, (m, n, k) = np.random.default_rng(0), EXTENTS[config]
    (a, sa, wa), (b, sb, wb) = (
        operand(rng, element, config.scaling, rows, k) for element, rows in zip(config.elements, (m, n))
    )
    c = np.full((m, -(-n // 8) * 8), np.nan, DTYPES[config.output])[:, :n]
    try:
        compiled = compile_lazily("\n".join(lines), "mutant", chip="sm_100a")
        compiled.kernel("launch")(a, b, c, sa, sb, device="cpu", checks=CHECKS, schedule=schedule, seed=1)
    except (InterpError, LoweringError) as e:
        return str(e).splitlines()[0]
    return "" if np.array_equal(c, (wa @ wb.T).astype(c.dtype)) else "wrong result"


def caught(config: Sm100Config, x: Mutant) -> str:
    """Return the first report of a mutant, or "" if no schedule has one."""
    lines = list(kernel(config, x.lowered))
    for i, text in x.changes:
        lines[i] = text
    return next((found for s in SCHEDULES if (found := report(config, lines, s))), "")


EQUIVALENT = {
    0: "tcgen05.alloc is synchronous",
    1: "tcgen05.alloc is synchronous",
    2: "the fence after the wait for the first stage of the tile precedes the first copy, too",
    -1: "tcgen05.dealloc is synchronous, and all loads are complete at the barrier",
}
"""Index among the fences -> reason why the kernel is correct without it."""


@pytest.mark.slow
@CASES
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_kernel_is_clean(config: Sm100Config, schedule: str) -> None:
    assert report(config, kernel(config), schedule) == ""


@pytest.mark.slow
@CASES
def test_no_mutant_is_missed(config: Sm100Config) -> None:
    found = list(mutants(config))
    fences = [x for x in found if x.what == "without tcgen05_fence"]
    missed = {x for x in found if not caught(config, x)}
    assert missed == {fences[i] for i in EQUIVALENT}


@pytest.mark.slow
def test_no_mutant_of_the_factors_of_a_pair_is_missed() -> None:
    """The other synchronization of pairs is that of the kernel without factors."""
    of_pairs = [what for *_, what in (*CHANGED_OF_PAIRS, *CHANGED_INSTRUCTIONS_OF_PAIRS)]
    names = ("without tmem_copy", "factors of the first set, or stage, only", *of_pairs)
    found = [x for x in mutants(PAIR) if x.what in names]
    assert len(found) > 7
    assert [x for x in found if not caught(PAIR, x)] == []
