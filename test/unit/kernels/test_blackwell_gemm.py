"""The Blackwell GEMM of the examples: exact integer results under every check and schedule, and its bugs."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.pipelines.ptxas import assemble

FILE = Path(__file__).parents[3] / "examples" / "blackwell_gemm.py"
PAGE = (Path(__file__).parents[3] / "docs" / "blackwell.md").read_text(encoding="utf-8")
BlackwellGemm = runpy.run_path(str(FILE))["BlackwellGemm"]
CHECKS = ("race", "uninit", "sync", "oob", "strict")
BUGS = {
    "no-wait": ("cute.autovec_copy(out, target[None, None, i])", "depends on unwritten tensor memory .lane"),
    "wrong-phase": ("cute.autovec_copy(out, target[None, None, i])", "depends on unwritten tensor memory .lane"),
    "never-freed": (
        "tmem.allocate(utils.get_num_tmem_alloc_cols(acc))",
        "columns (0 to 63|448 to 511) of tensor memory, alloc",
    ),
}
"""Bug -> the line of the example that the report names, and its message."""
OF_PAIRS = {
    **BUGS,
    "half-bytes": (
        "cute.copy(load_a, tAg[None, i], tAs[None, stage.index], tma_bar_ptr=stage.barrier)",
        "this copy, which|raise expect_tx",
    ),
    "both-issue": ("", "deadlock: .* wait"),
}
"""Bug of the example with ``--pair`` -> the line that the report names, "" for a deadlock, and its message."""


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))
    return a, b, np.full((m, n), np.nan, np.float16)


@pytest.mark.end_to_end
@pytest.mark.sample("64-reverse")
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
@pytest.mark.parametrize("k", [64, 192, 320])
def test_products_are_exact(k: int, schedule: str) -> None:
    """The ring has three stages: K of 64 fills one, 192 all, and 320 some of them twice."""
    a, b, c = operands(256, 128, k)
    with cute.target("sm_100a"):
        BlackwellGemm()(a, b, c, device="cpu", checks=CHECKS, schedule=schedule)
    assert (c.astype(np.float64) == a.astype(np.float64) @ b.astype(np.float64).T).all()


@pytest.mark.end_to_end
@pytest.mark.sample("64-adversarial")
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
@pytest.mark.parametrize("k", [64, 320])
def test_products_of_pairs_are_exact(k: int, schedule: str) -> None:
    a, b, c = operands(512, 64, k)
    with cute.target("sm_100a"):
        BlackwellGemm(pair=True)(a, b, c, device="cpu", checks=CHECKS, schedule=schedule)
    assert (c.astype(np.float64) == a.astype(np.float64) @ b.astype(np.float64).T).all()


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
@pytest.mark.parametrize("bug", OF_PAIRS)
def test_bugs_of_pairs_are_reported(bug: str, schedule: str) -> None:
    line, message = OF_PAIRS[bug]
    a, b, c = operands(256, 64, 320)
    with cute.target("sm_100a"), pytest.raises(InterpError, match=message) as raised:
        BlackwellGemm(pair=True, bug=bug)(a, b, c, device="cpu", checks=CHECKS, schedule=schedule)
    assert line in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("n", [32, 256])
def test_other_tiles_are_exact(n: int) -> None:
    a, b, c = operands(128, 2 * n, 192)
    with cute.target("sm_100a"):
        BlackwellGemm((128, n, 64), stages=2)(a, b, c, device="cpu", checks=CHECKS)
    assert (c.astype(np.float64) == a.astype(np.float64) @ b.astype(np.float64).T).all()


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_reported_at_their_lines(bug: str) -> None:
    line, message = BUGS[bug]
    a, b, c = operands(128, 64, 64)
    with cute.target("sm_100a"), pytest.raises(InterpError, match=message) as raised:
        BlackwellGemm(bug=bug)(a, b, c, device="cpu", checks=CHECKS)
    report = str(raised.value)
    number = 1 + [x.strip() for x in FILE.read_text().splitlines()].index(line)
    assert f"{FILE.name}:{number}:" in report and line in report
    if bug == "never-freed":
        shown = PAGE.partition("--bug never-freed\n```\n\n```text\n")[2].partition("```")[0].splitlines()
        assert len(shown) == 3 and all(x.strip() in report for x in shown)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "pair"), [(64, False), (256, False), (64, True), (256, True)])
def test_registers_do_not_spill(n: int, pair: bool) -> None:
    m = 256 if pair else 128
    made = cute.compile(BlackwellGemm((m, n, 64), pair=pair), *operands(m, n, 64), device="cpu", chip="sm_100a")
    assembled = assemble(made.ptx, "sm_100a")
    assert assembled.warnings == () and all(k.spills == 0 for k in assembled.kernels)
    assert made.ptx.count("tcgen05.mma.") == 4 and ".local" not in made.ptx and not made.remarks
