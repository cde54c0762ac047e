"""The Blackwell attention of the examples: results and bugs under every check and schedule."""

# torch is not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.pipelines.ptxas import assemble

torch = pytest.importorskip("torch")

FILE = Path(__file__).parents[3] / "examples" / "blackwell_attention.py"
PAGE = (Path(__file__).parents[3] / "docs" / "blackwell.md").read_text(encoding="utf-8")
EXAMPLE = runpy.run_path(str(FILE))
BlackwellAttention, reference = EXAMPLE["BlackwellAttention"], EXAMPLE["reference"]
CHECKS = ("race", "uninit", "sync", "oob", "strict")
SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
SCALE = 0.125
MULTIPLY = "cute.gemm(mma_o, tensors.result(), tensors.weights(weights.index), values, accumulate=adds)"
BUGS = {
    "no-scores-wait": ("factors[row, slot.index] = by", "depends on unwritten tensor memory"),
    "no-weights-wait": (MULTIPLY, "reads A from tensor memory that nothing has written"),
    "no-rescale-wait": ("", "race on tensor memory|deadlock"),
    "no-store-wait": (MULTIPLY, "read-after-write race on tensor memory .*missing tcgen05.wait::st"),
    "wrong-phase": ("", "deadlock"),
    "early-factor": ("factors[row, slot.index] = by", "write-after-read race on shared memory"),
    "early-values": ("to_v[None, slot.index], tma_bar_ptr=slot.barrier)", "write-after-read race on shared memory"),
    "overlap": ("", "race on tensor memory"),
    "shared-columns": (
        "rQ[None, None, None, 0], keys, accumulate=False)",
        r"write-after-read race on tensor memory .*\(accumulator of this, A of the earlier\)",
    ),
    "first-adds": (MULTIPLY, "accumulates on tensor memory that nothing has written"),
    "no-proxy-fence": ("cute.copy(atom, *cpasync.tma_partition(", "missing fence.proxy.async"),
    "never-freed": ("allocator.allocate(512)", "columns 0 to 511 of tensor memory, allocated here, are not freed"),
}
"""Bug -> a line that the report shows, or "" if there are several, and its message."""


class Operands(NamedTuple):
    """Q, K and V of a call, and its result."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor


def operands(
    queries: int, keys: int, *, heads: int = 1, head: int = 64, dtype: torch.dtype = torch.bfloat16
) -> Operands:
    """Return random operands, whose scores differ by more than 2^8, and a poisoned result."""
    generator = torch.Generator().manual_seed(queries + keys)
    extents = ((queries, 3.0), (keys, 1.0), (keys, 1.0))
    q, k, v = ((by * torch.randn((heads, n, head), generator=generator)).to(dtype) for n, by in extents)
    q[..., 0], k[..., 0] = 16, -16  # Keys past the end have the score 0, the largest.
    return Operands(q, k, v, torch.full_like(q, torch.nan))


def error(x: Operands, causal: bool) -> float:
    """Return the largest error as a multiple of its bound."""
    wanted, bound = reference(x.q, x.k, x.v, SCALE, causal)
    difference = (x.out.double() - wanted).abs()
    return torch.where(difference == 0, 0, difference / bound).max().item()


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(100, 100), (128, 513), (130, 300), (200, 90)])
def test_results_are_within_rounding(queries: int, keys: int, causal: bool, schedule: str) -> None:
    """The ring has four slots, of which a step takes two. The first 110 of 200 queries see none of 90 keys."""
    x = operands(queries, keys, heads=2 if queries == 130 else 1)
    with cute.target("sm_100a"):
        BlackwellAttention(causal=causal)(*x, SCALE, device="cpu", checks=CHECKS, schedule=schedule)
    assert error(x, causal) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("slots", [2, 3, 5])
def test_other_rings_of_a_larger_head(slots: int) -> None:
    x = operands(129, 400, head=128)
    with cute.target("sm_100a"):
        BlackwellAttention(128, slots=slots)(*x, SCALE, device="cpu", checks=CHECKS)
    assert error(x, False) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_powers_of_two_are_exact(schedule: str) -> None:
    """Scores are integer powers of two and V small integers, so that all sums are exact; the result is rounded once.

    The last 128 keys have scores 20 above the others: every row is rescaled by 2^-20 in its last step.
    """
    x = operands(70, 300, dtype=torch.float16)
    x.q.zero_()
    x.k.zero_()
    rng = torch.Generator().manual_seed(0)
    x.q[..., 0], x.q[..., 1] = 1, 1
    x.k[..., 0] = torch.randint(-3, 1, (1, 300), generator=rng).half()
    x.k[:, 172:, 1] = 20
    x.v.copy_(torch.randint(-4, 5, x.v.shape, generator=rng).half())
    with cute.target("sm_100a"):
        BlackwellAttention()(
            *x, 1 / torch.log2(torch.tensor(torch.e)).item(), device="cpu", checks=CHECKS, schedule=schedule
        )
    weights = torch.exp2(x.q.double() @ x.k.double().transpose(1, 2))
    wanted = (weights @ x.v.double()) / weights.sum(2, keepdim=True)
    torch.testing.assert_close(x.out.double(), wanted, rtol=2**-11 * 1.01, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_reported_at_their_lines(bug: str, schedule: str) -> None:
    line, message = BUGS[bug]
    x = operands(128, 400)
    with cute.target("sm_100a"), pytest.raises(InterpError, match=message) as raised:
        BlackwellAttention(bug=bug)(*x, SCALE, device="cpu", checks=CHECKS, schedule=schedule)
    assert line in str(raised.value)


@pytest.mark.slow
def test_without_rescaling_the_result_differs() -> None:
    x = operands(128, 400)
    x.q[..., 1:] *= 2  # so that the maximum of a row grows by more than 2^8
    with cute.target("sm_100a"):
        BlackwellAttention(bug="no-rescale")(*x, SCALE, device="cpu", checks=CHECKS)
    assert error(x, False) > 100


@pytest.mark.slow
@pytest.mark.parametrize("bug", [*BUGS, "no-rescale"])
def test_the_program_fails_with_each_bug(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default sizes and operands of the program are such that each mistake has the report of the page."""
    monkeypatch.setattr(sys, "argv", ["blackwell_attention.py", "--bug", bug])
    with pytest.raises((InterpError, SystemExit), match=BUGS.get(bug, ("", "wrong result"))[1]):
        EXAMPLE["main"]()


def test_every_bug_has_a_report() -> None:
    assert {*BUGS, "no-rescale"} == set(EXAMPLE["BUGS"])
    assert all(f"| `{bug}` |" in PAGE for bug in EXAMPLE["BUGS"])


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head", [64, 128])
def test_registers_do_not_spill(head: int, causal: bool, chip: str) -> None:
    made = cute.compile(
        BlackwellAttention(head, causal=causal), *operands(8, 8, head=head), SCALE, device="cpu", chip=chip
    )
    assembled = assemble(made.ptx, chip)
    assert assembled.warnings == () and [k.spills for k in assembled.kernels] == [0]
    assert assembled.kernels[0].registers <= 168  # of 65536 for 384 threads
    assert made.ptx.count("tcgen05.mma.") == head // 16 + 8 and ".local" not in made.ptx
