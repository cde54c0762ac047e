"""Attention for sm_100: results, budgets, and mutants, which the interpreter reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.interp import InterpError
from cute_dialect.kernels.attention.scores import LOG2_E
from cute_dialect.kernels.attention.sm100 import (
    GROUP,
    HEADS,
    LAUNCHED,
    MASKS,
    REGISTERS,
    TILES,
    Sm100Attention,
    sm100_attention_text,
)
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.compiler import compile_lazily
from cute_dialect.pipelines.ptxas import assemble
from cute_dialect.runtime.launch import CompiledModule

CHECKS = ("race", "uninit", "sync", "oob", "strict")
SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
SCALE = 0.125


class Extents(NamedTuple):
    """Extents of a call."""

    queries: int
    keys: int
    size: int = 64  # elements per head
    heads: int = 1
    sharing: int = 1  # heads of Q per head of K
    batch: int = 1


def error(module: CompiledModule, config: Sm100Attention, x: Extents, schedule: str = "round-robin") -> float:
    """Run a kernel on random operands, and return the largest error as a multiple of its bound.

    Each weight and each result are rounded to 8 bits. Scores differ by more than 2^8, so that O is rescaled. All are
    negative, so that a score of a key past the end, which is 0, would have the largest weight.
    """
    rng = np.random.default_rng(x.queries + x.keys)
    kind = ml_dtypes.bfloat16 if config.element == "bf16" else np.float16
    heads = (x.heads, x.heads // x.sharing, x.heads // x.sharing)
    rows, factors = (x.queries, x.keys, x.keys), (3.0, 1.0, 1.0)
    q, k, v = (
        (by * rng.standard_normal((x.batch, h, s, x.size))).astype(kind) for h, s, by in zip(heads, rows, factors)
    )
    q[..., 0], k[..., 0] = 16, -16
    out = np.full(q.shape, np.nan, kind)
    lse = np.full(q.shape[:3], np.nan, np.float32)
    shift = x.keys - x.queries
    given = [y.transpose(2, 3, 1, 0) for y in (q, k, v, out)] + [lse.transpose(2, 1, 0)] * config.lse
    module.kernel("launch")(*given, SCALE * LOG2_E, shift, device="cpu", checks=CHECKS, schedule=schedule, seed=1)
    q, k, v = (y.astype(np.float64) for y in (q, *(np.repeat(y, x.sharing, 1) for y in (k, v))))
    scores = SCALE * (q @ k.swapaxes(2, 3))
    if config.mask == "right":
        scores = np.where(np.arange(x.keys) <= np.arange(x.queries)[:, None] + shift, scores, -np.inf)
    most = scores.max(3, keepdims=True, initial=-1e300)
    weights = np.exp(scores - most)
    total = weights.sum(3, keepdims=True)
    weights = weights / np.where(total > 0, total, 1)
    wanted, bound = weights @ v, 2**-8 * (weights @ abs(v) + abs(weights @ v))
    difference = abs(out.astype(np.float64) - wanted)
    found = float(np.where(difference == 0, 0, difference / np.where(bound == 0, 1e-300, bound)).max())
    if config.lse:
        with np.errstate(divide="ignore"):
            log = (np.log(total) + most)[..., 0]
        seen = log > -np.inf
        assert np.array_equal(lse > -np.inf, seen)
        found = max(found, float(abs(lse[seen] - log[seen]).max()) / 1e-4)
    return found


def compiled(config: Sm100Attention) -> CompiledModule:
    """Return a kernel for the interpreter."""
    return compile_lazily(sm100_attention_text(config), config.name, chip=config.chip)


CASES = (
    (Extents(100, 100), Sm100Attention(head=64, mask="right", lse=True)),
    (Extents(129, 700), Sm100Attention(head=64)),
    (Extents(200, 90, 40), Sm100Attention("f16", 64, "right", lse=True)),
    (Extents(257, 300, 128, heads=2, sharing=2, batch=2), Sm100Attention("f16", 128, "right")),
    (Extents(1, 1, 8), Sm100Attention(head=64)),
    (Extents(130, 300, 96, heads=2), Sm100Attention(head=128, mask="full", lse=True)),
)
"""Extents and configurations. The first 110 of 200 queries see none of 90 keys."""


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("extents", "config"), CASES)
def test_results_are_within_rounding(extents: Extents, config: Sm100Attention, schedule: str) -> None:
    assert error(compiled(config), config, extents, schedule) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_extents(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sharing = int(rng.integers(1, 4))
    queries, keys = (int(n) for n in rng.integers(1, (300, 600)))
    x = Extents(queries, keys, 8 * int(rng.integers(1, 17)), sharing, sharing)
    head, element, mask = 64 if x.size <= 64 else 128, str(rng.choice(["bf16", "f16"])), str(rng.choice(MASKS))
    config = Sm100Attention(element, head, mask, lse=bool(rng.integers(2)))
    assert error(compiled(config), config, x, "random") <= 1


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("lse", [False, True])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("head", HEADS)
def test_registers_do_not_spill(head: int, mask: str, lse: bool, chip: str) -> None:
    config = Sm100Attention(head=head, mask=mask, lse=lse, chip=chip)
    made = compile_cute(sm100_attention_text(config), chip=chip, emit="ptx")
    assembled = assemble(made.ptx, chip)
    assert assembled.warnings == () and [k.spills for k in assembled.kernels] == [0]
    assert assembled.kernels[0].registers <= LAUNCHED and ".local" not in made.ptx


def test_registers_of_the_roles_fit() -> None:
    """A multiprocessor has 65536 registers, which the warpgroups of the roles share."""
    of_roles = REGISTERS["load and MMA"] + TILES * REGISTERS["softmax"] + REGISTERS["correction"]
    assert GROUP * of_roles <= 65536 and all(24 <= n <= 256 and n % 8 == 0 for n in REGISTERS.values())


REMOVED = (
    "mbarrier_wait", "mbarrier_arrive", "mbarrier_init", "mbarrier_arrive_expect_tx", "tcgen05_fence", "tcgen05_commit",
    "tmem_alloc", "tmem_dealloc", "tmem_wait", "named_barrier", "barrier", "bulk_wait_group", "bulk_commit_group",
    "fence_proxy_async", "setmaxnreg",
)  # fmt: skip
"""Ops of which each one is removed."""
CHANGED = (
    (
        r"^( *)(.*mbarrier_wait\(%\w+, )(%[\w#]+)(\).*)",
        r"\1%flipped = arith.xori \3, %c1_i32 : i32\n\2%flipped\4",
        "phase",
    ),
    (r"(mbarrier_init\(%\w+, )%c128_i32", r"\1%c1_i32", "fewer arrivals"),
    (r"(mbarrier_arrive_expect_tx\(%\w+, )%c\d+_i32", r"\1%c1_i32", "fewer bytes"),
    (r"(tmem_alloc.*columns = )512", r"\g<1>256", "fewer columns"),
    (r"(tmem_dealloc.*columns = )512", r"\g<1>256", "fewer columns freed"),
    (r"(= arith.muli %(?:t|tile), )%c128_i32( : i32)", r"\1%c0_i32\2", "one tile in tensor memory"),
    (r"(= arith.muli %step, )%c128_i32( : i32)", r"\1%c0_i32\2", "keys past the end are seen"),
    (r"(= arith.cmpi )ugt(, %step, %c1_i32)", r"\1uge\2", "the first MMA adds"),
)
"""Changes: a pattern, its replacement, and a name."""
CONFIG = Sm100Attention(head=64)
"""The configuration whose mutants are tried: its rings have four slots, and 700 keys take six."""
EQUIVALENT: dict[str, dict[int, str]] = {
    "without tcgen05_fence": {
        0: "tcgen05.alloc is synchronous",
        1: "tcgen05.alloc is synchronous",
        2: "the fence after the wait for O precedes the MMAs of O, too",
        3: "the same",
        5: "the fence after the wait for K precedes the MMAs of S, too",
        12: "tcgen05.dealloc is synchronous",
    },
    "without mbarrier_wait": {
        0: "the slots of Q are empty at the beginning",
        1: "the slots of Q are empty at the beginning",
    },
    "without setmaxnreg": {2: "the softmax computes the same with the registers of the launch"},
}
"""Kind of mutant -> index -> reason why the kernel is correct with it."""


class Mutant(NamedTuple):
    """A change of one line of the kernel."""

    line: int
    replacement: str
    what: str


@cache
def kernel() -> list[str]:
    return sm100_attention_text(CONFIG).splitlines()


def mutants() -> Iterator[Mutant]:
    for i, line in enumerate(kernel()):
        found = re.search(r"cute_nvgpu\.arch\.(\w+)\(", line)
        if found and found[1] in REMOVED:
            yield Mutant(i, "", f"without {found[1]}")
        for pattern, replacement, what in CHANGED:
            if re.search(pattern, line):
                yield Mutant(i, re.sub(pattern, replacement, line), what)


def report(lines: list[str], schedule: str) -> str:
    """Return the report of a kernel, or "wrong result", or "" for a correct one."""
    module = compile_lazily("\n".join(lines), "mutant", chip="sm_100a")
    try:
        return "" if error(module, CONFIG, Extents(150, 700), schedule) <= 1 else "wrong result"
    except InterpError as e:
        return str(e).splitlines()[0]


def caught(x: Mutant) -> str:
    """Return the first report of a mutant, or "" if no schedule has one."""
    lines = [*kernel()[: x.line], x.replacement, *kernel()[x.line + 1 :]]
    return next((found for s in SCHEDULES if (found := report(lines, s))), "")


@pytest.mark.slow
def test_no_mutant_is_missed() -> None:
    assert report(kernel(), "round-robin") == ""
    found: dict[str, list[Mutant]] = {}
    for x in mutants():
        found.setdefault(x.what, []).append(x)
    assert {"phase", "fewer bytes", "one tile in tensor memory", "the first MMA adds"} <= set(found)
    missed = {what: [i for i, x in enumerate(xs) if not caught(x)] for what, xs in found.items()}
    assert {what: xs for what, xs in missed.items() if xs} == {what: [*xs] for what, xs in EQUIVALENT.items()}
