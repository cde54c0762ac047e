"""Runs of the all-reduce kernels on simulated ranks, compared with sums in float64.

    run(Case("bf16", ranks=3, size=300, length=64, two_shot=True), "random")

Results must be the exact sum, rounded once: elements are multiples of 2^-3, so sums in f32 are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import cute_dialect.lang as cute
from cute_dialect.kernels.distributed.all_reduce import AllReduceConfig, Rows, launch
from cute_dialect.kernels.distributed.exchange import ABORT, CHECK_BITS, LATE, Caller, RankMemory

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
TYPES = {"f16": cute.Float16, "bf16": cute.BFloat16, "f32": cute.Float32}
EPS, CHECK, LONG = 1e-3, 0, 1 << 60


class Case(NamedTuple):
    """A problem, and the configuration of the kernel."""

    element: str = "bf16"
    ranks: int = 2
    size: int = 300
    length: int = 64  # of a row
    blocks: int = 2
    two_shot: bool = False
    norm: bool = False
    residual: bool = False
    vectors: bool = True
    calls: int = 2
    threads: int = 64

    @property
    def config(self) -> AllReduceConfig:
        unit = AllReduceConfig(self.element, vectors=self.vectors).width
        units = -(-self.length // (self.threads * unit))
        return AllReduceConfig(
            self.element, self.ranks, self.threads, units, self.two_shot, self.vectors, self.residual, self.norm
        )


class Outcome(NamedTuple):
    """The results of all calls and ranks, and the state of the exchange afterwards."""

    x: NDArray[np.generic]  # (calls, ranks, size)
    residual: NDArray[np.generic]  # (calls, size)
    weight: NDArray[np.generic]
    total: NDArray[np.generic]  # (calls, ranks, size)
    normed: NDArray[np.generic]
    steps: NDArray[np.int64]  # (ranks, blocks)
    status: NDArray[np.int64]  # (ranks, ranks)


def computed(
    case: Case, schedule: str, *, seed: int = 1, hurried: int = -1, first: int = 0, checks: tuple[int, ...] = ()
) -> Outcome:
    """Run the calls of a case, all queued at once.

    Args:
        hurried: a rank that does not wait; default: none.
        first: the number of completed steps at the beginning.
        checks: the hash of the call on each rank; default: the same.
    """
    c, n = case.config, case.ranks
    rng, dtype = np.random.default_rng(0), DTYPES[case.element]
    x = (rng.integers(-32, 33, (case.calls, n, case.size)) / 8).astype(dtype)
    residual = (rng.integers(-32, 33, (case.calls, case.size)) / 8).astype(dtype)
    weight = rng.standard_normal(case.length).astype(dtype)
    total = np.full(x.shape, np.nan, dtype)
    normed = total.copy()
    steps, status = np.full((n, case.blocks), first, np.int64), np.zeros((n, n), np.int64)
    with cute.testing.ranks(n, schedule=schedule, seed=seed) as world:
        shape = (2 * case.blocks * n, c.capacity)
        staging = world.symmetric(shape, TYPES[case.element], name="staging", unwritten=True)
        ready = world.signals(2 * case.blocks, name="ready")

        def calls_of(rank: int) -> None:
            memory, words = staging.on(rank), ready.on(rank).words
            for e in range(case.calls):
                vectors = (x[e, rank], residual[e] if c.residual else None, weight if c.norm else None, total[e, rank])
                v = Rows(*vectors, normed[e, rank] if c.norm else None, case.length, EPS if c.norm else None)
                limit = -LONG if rank == hurried else LONG
                m = RankMemory(memory.local, memory.table, words.local, words.table, steps[rank], status[rank])
                launch(v, m, Caller(rank, checks[rank] if checks else CHECK, limit), case.blocks, c)

        world.run(calls_of)
    return Outcome(x, residual, weight, total, normed, steps, status)


def is_right(case: Case, found: Outcome) -> bool:
    """Return True if all results are right and equal on all ranks, and no wait has failed."""
    want = found.x.astype(np.float64).sum(axis=1)
    if case.residual:
        want += found.residual.astype(np.float64)
    exact = want.astype(np.float32).astype(found.total.dtype)
    if found.status.any() or (found.steps < 0).any() or (found.total != exact[:, None]).any():
        return False
    if not case.norm:
        return bool(np.isnan(found.normed.astype(np.float64)).all())
    rows = exact.astype(np.float64).reshape(case.calls, -1, case.length)
    norm = rows / np.sqrt((rows * rows).mean(axis=-1, keepdims=True) + EPS) * found.weight.astype(np.float64)
    norm = norm.reshape(case.calls, 1, case.size)
    step = float(ml_dtypes.finfo(found.normed.dtype).eps)
    error = np.abs(found.normed.astype(np.float64) - norm)
    is_same = (found.normed.view(np.uint8) == found.normed[:, :1].view(np.uint8)).all()
    return bool(is_same and (error <= np.abs(norm) * (step * 0.51 + 2e-6) + 1e-30).all())


def run(case: Case, schedule: str, *, seed: int = 1) -> bool:
    """Run a case, and return True if the results are right."""
    return is_right(case, computed(case, schedule, seed=seed))


def gives_up(case: Case, rank: int, first: int = 0) -> bool:
    """Run a call of two ranks of which one does not wait, and return True if both report it and end."""
    # The schedule is one where the rank that does not wait is the first one.
    schedule = "adversarial" if rank else "round-robin"
    found = computed(case._replace(calls=1), schedule, hurried=rank, first=first)
    want = [[0, ABORT], [LATE, 0]] if rank else [[0, LATE], [ABORT, 0]]
    return found.status.tolist() == want and bool((found.steps == -1).all())


def reports_other_call(case: Case) -> bool:
    """Run two ranks with different calls, and return True if each reports the signal of the other one."""
    found = computed(case, "round-robin", checks=(CHECK, CHECK + 1))
    first = 1 << CHECK_BITS
    want = [[0, first | CHECK + 1], [first | CHECK, 0]]
    return found.status.tolist() == want and bool((found.steps == -1).all())
