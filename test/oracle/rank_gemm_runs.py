"""Runs of the GEMMs of several ranks on simulated ranks, compared with float64.

    run(Case("gather", ranks=3, rows=70, columns=40, k=72), "random")

Elements are small integers, so products are exact before they are rounded to the type of the result.
"""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import cute_dialect.lang as cute
from cute_dialect.kernels.distributed import gather_gemm, scatter_gemm
from cute_dialect.kernels.distributed.exchange import LATE, Caller, RankMemory
from cute_dialect.kernels.distributed.gather_gemm import PIECES, Matrices, RankGemmConfig
from cute_dialect.kernels.distributed.tile_signals import COUNTERS
from cute_dialect.kernels.gemm.config import GemmConfig

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
TYPES = {"f16": cute.Float16, "bf16": cute.BFloat16}
LONG = 1 << 60


class Case(NamedTuple):
    """A problem, and the configuration of the kernel."""

    kind: str = "gather"
    element: str = "f16"
    ranks: int = 2
    rows: int = 70  # of a shard, or of one of the matrices that are added
    columns: int = 40
    k: int = 72
    tile: tuple[int, int, int] = (64, 64, 64)
    cluster: int = 1
    deferred: bool = False
    major_b: str = "n"
    average: bool = False
    returns_a: bool = False
    slab: int = 4
    calls: int = 2
    blocks: int = 2

    @property
    def config(self) -> RankGemmConfig:
        whole = self.columns % 8 == 0
        base = GemmConfig(
            self.element,
            self.element,
            "k",
            self.major_b,
            tile=self.tile,
            stages=2,
            cluster_m=self.cluster,
            early=False,
            batch=True,
            deferred=self.deferred,
            sms=self.blocks,
            direct=self.kind == "gather" and not whole,
        )
        whole = whole and not (self.returns_a and self.k % 8)
        return RankGemmConfig(
            base, self.ranks, self.kind, self.slab, vectors=whole, average=self.average, returns_a=self.returns_a
        )

    @property
    def matrices(self) -> int:
        """Matrices of A of a rank."""
        return {"gather": 1, "one_shot": 1}.get(self.kind, self.ranks)

    @property
    def results(self) -> int:
        """Matrices of the result of a rank."""
        return {"scatter": 1, "one_shot": 1}.get(self.kind, self.ranks)


class Outcome(NamedTuple):
    """The operands and results of all calls and ranks, and the state of the exchange afterwards."""

    a: NDArray[np.generic]  # (calls, ranks, matrices, rows, k)
    b: NDArray[np.generic]  # (ranks, k, columns)
    c: NDArray[np.generic]  # (calls, ranks, results, rows, columns)
    gathered: NDArray[np.generic]  # (calls, ranks, ranks, rows, k)
    steps: NDArray[np.int64]
    status: NDArray[np.int64]


def padded(x: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return an array whose rows begin at multiples of 16 bytes."""
    wide = np.zeros((*x.shape[:-1], -(-x.shape[-1] // 8) * 8), x.dtype)
    wide[..., : x.shape[-1]] = x
    return wide[..., : x.shape[-1]]


def computed(
    case: Case,
    schedule: str,
    *,
    seed: int = 1,
    hurried: int = -1,
    first: int = 0,
    hashes: tuple[int, ...] = (),
    checks: tuple[str, ...] = ("race", "uninit"),
) -> Outcome:
    """Run the calls of a case, all queued at once.

    Args:
        hurried: a rank that does not wait, or -2 for all; default: none.
        first: the number of completed calls at the beginning.
        hashes: the hash of the call on each rank; default: the same.
        checks: the checks of the interpreter.
    """
    c, n = case.config, case.ranks
    rng, dtype = np.random.default_rng(0), DTYPES[case.element]
    a = padded(rng.integers(-4, 5, (case.calls, n, case.matrices, case.rows, case.k)).astype(dtype))
    b = rng.integers(-4, 5, (n, case.k, case.columns)).astype(dtype)
    of_b = padded(b) if case.major_b == "n" else padded(b.transpose(0, 2, 1).copy()).transpose(0, 2, 1)
    result = np.full((case.calls, n, case.results, case.rows, case.columns), np.nan, dtype)
    gathered = np.full((case.calls, n, n, case.rows, case.k), np.nan, dtype)
    steps, status = np.zeros((n, COUNTERS + PIECES), np.int64), np.zeros((n, n), np.int64)
    steps[:, 0] = first
    width = -(-(case.k if case.kind == "gather" else case.columns) // 8) * 8
    half = -(-n * case.rows * width * (2 if case.kind == "two_shot" else 1) // 64) * 64
    tiles = -(-case.rows // case.tile[0]) * -(-case.columns // case.tile[1])
    launch = gather_gemm.launch if case.kind == "gather" else scatter_gemm.launch
    with cute.testing.ranks(n, schedule=schedule, seed=seed, checks=checks) as world:
        staging = world.symmetric((2, half), TYPES[case.element], name="staging", unwritten=True)
        ready = world.signals(4 * max(tiles, 8), name="ready")

        def calls_of(rank: int) -> None:
            memory, words = staging.on(rank), ready.on(rank).words
            m = RankMemory(memory.local, memory.table, words.local, words.table, steps[rank], status[rank])
            caller = Caller(rank, hashes[rank] if hashes else 0, -LONG if hurried in (rank, -2) else LONG)
            for e in range(case.calls):
                of_a = a[e, rank, 0] if case.kind == "gather" else a[e, rank].transpose(1, 2, 0)
                more = gathered[e, rank].transpose(1, 2, 0) if case.returns_a else None
                launch(Matrices(of_a, of_b[rank].T, result[e, rank].transpose(1, 2, 0), more), m, caller, c)

        world.run(calls_of)
    return Outcome(a, b, result, gathered, steps, status)


def is_right(case: Case, found: Outcome) -> bool:
    """Return True if all results are right, and no wait has failed."""
    if found.status.any() or (found.steps[:, 0] != case.calls).any() or found.steps[:, 1:].any():
        return False
    dtype = DTYPES[case.element]
    a, b = found.a.astype(np.float64), found.b.astype(np.float64)
    if case.kind == "gather":
        want = np.einsum("eqmk,rkn->erqmn", a[:, :, 0], b).astype(dtype)
        if case.returns_a and (found.gathered != found.a[:, None, :, 0]).any():
            return False
        return bool((found.c == want).all())
    products = np.einsum("erqmk,rkn->reqmn", a, b).astype(dtype).astype(np.float32)
    total = products[0]
    for product in products[1:]:
        total = total + product
    want = (total / np.float32(case.ranks) if case.average else total).astype(dtype)
    if case.kind == "scatter":
        return all(bool((found.c[:, r, 0] == want[:, r]).all()) for r in range(case.ranks))
    return bool((found.c == want[:, None]).all())


def run(case: Case, schedule: str, *, seed: int = 1) -> bool:
    """Run a case, and return True if the results are right."""
    return is_right(case, computed(case, schedule, seed=seed))


def gives_up(case: Case, rank: int) -> bool:
    """Return True if a rank that does not wait ends, names the others, and counts the call as failed.

    The ranks of a two-shot all-reduce wait twice, so none of them waits: otherwise the others would wait for ever.
    """
    all_hurry = case.kind == "two_shot"
    checks = () if case.kind == "gather" else ("race",)  # a producer that does not wait reads what peers write
    found = computed(case._replace(calls=1), "adversarial", hurried=-2 if all_hurry else rank, checks=checks)
    others = [r for r in range(case.ranks) if r != rank]
    late = found.status[:, others].any() if all_hurry else (found.status[rank, others] == LATE).all()
    failed = found.status.any(axis=1)
    counted = (found.steps[:, 0] == np.where(failed, -1, 1)).all() and not found.steps[:, [1, *range(3, 67)]].any()
    return bool(late and counted and not found.status.diagonal().any() and (all_hurry or not failed[others].any()))


def reports_other_call(case: Case) -> bool:
    """Return True if ranks whose calls have other hashes report each other."""
    found = computed(case._replace(calls=1), "round-robin", hashes=tuple(range(case.ranks)), checks=())
    signals = (np.ones((case.ranks, 1), np.int64) << 16) | np.arange(case.ranks)
    off = ~np.eye(case.ranks, dtype=bool)
    return bool(((found.status == signals) | (found.status == 0))[off].all() and found.status[off].any()) and bool(
        (found.steps[:, 0] == -1).all()
    )


def sends_nothing_after_a_failure(case: Case) -> bool:
    """Return True if a call after a failed one neither sends nor waits."""
    found = computed(case._replace(calls=1), "round-robin", first=-1, checks=())
    return bool((found.steps[:, 0] == -1).all() and not found.status.any())
