"""Cluster launch control: kernels on the dynamic tile scheduler, under every schedule, and mutants of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.lang import utils

arch = cute.arch
TILES = (5, 3, 2)
FIRST_X = (
    "{ .reg .b128 h; ld.shared.b128 h, [$1]; clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 $0, h; }"
)
THREADS = 64


def program(cluster: tuple[int, int, int] = (1, 1, 1), mutant: str = "") -> Any:
    """Return a function that adds one to each tile of an array (M, N, L, THREADS)."""
    params = utils.ClcDynamicPersistentTileSchedulerParams(TILES, cluster)
    blocks = cluster[0] * cluster[1]

    @cute.kernel
    def kernel(out: cute.Tensor):
        tid = arch.thread_idx().x
        response = arch.alloc_smem(cute.Int64, 2, 16)
        bar = arch.alloc_smem(cute.Int64, 1, 8)
        if tid == 0:
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
        if blocks > 1:
            arch.cluster_arrive()
            arch.cluster_wait()
        else:
            arch.sync_threads()
        leads = (tid == 0) & (arch.block_idx_in_cluster() == 0 if blocks > 1 else True)
        scheduler = utils.ClcDynamicPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim(), response)
        work = scheduler.initial_work_tile_info()
        phase = cute.Int32(0)
        rounds = cute.Int32(0)
        while work.is_valid_tile if mutant != "again" else rounds < 40:
            if tid == 0 and mutant != "no bytes":
                arch.mbarrier_arrive_and_expect_tx(bar, 16)
            if leads:
                scheduler.advance_to_next_work(bar)
            m, n, matrix = work.tile_idx
            if cute.elem_less((m, n), TILES[:2]):
                out[m, n, matrix, tid] = out[m, n, matrix, tid] + 1
            if mutant != "no wait":
                arch.mbarrier_wait(bar, phase)
            phase = phase ^ 1
            work = scheduler.get_current_work()
            if mutant == "no block":
                out[0, 0, 0, tid] = arch.inline_ptx(FIRST_X, response, result=cute.Int32)
            if mutant != "no release":
                arch.fence_proxy("async.shared", space="cta")
                if blocks > 1:
                    arch.cluster_arrive()
                    arch.cluster_wait()
                else:
                    arch.sync_threads()
            rounds = rounds + 1

    @cute.jit
    def run(out: cute.Tensor):
        shape = {"cluster": cluster} if blocks > 1 else {}
        kernel(out).launch(grid=params.get_grid_shape(), block=THREADS, **shape)

    return run


def execute(run: Any, schedule: str, seed: int = 0) -> np.ndarray:
    out = np.zeros((*TILES, THREADS), np.int32)
    cute.compile(run, out, chip="sm_100a", device="cpu")(
        out, schedule=schedule, seed=seed, checks=["race", "oob", "uninit", "sync"]
    )
    return out


@pytest.mark.parametrize("cluster", [(1, 1, 1), (2, 1, 1)], ids=str)
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random", "adversarial"])
def test_each_tile_is_processed_once(schedule: str, cluster: tuple[int, int, int]) -> None:
    for seed in range(3 if schedule == "random" else 1):
        assert (execute(program(cluster), schedule, seed) == 1).all()


MUTANTS = {
    "no release": r"race|overwrit",
    "no wait": r"race|nothing has written them",
    "again": r"try_cancel after an unsuccessful response",
    "no block": r"get_first_ctaid::x.b32.b128 of an unsuccessful response, which has no block",
    "no bytes": r"deadlock|mbarrier|transaction",
}


@pytest.mark.end_to_end
@pytest.mark.sample(every=5)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(mutant: str) -> None:
    for schedule in ("round-robin", "reverse", "random", "adversarial"):
        with pytest.raises(CuteError, match=MUTANTS[mutant]):
            execute(program(mutant=mutant), schedule)


def test_a_multicast_block_without_bytes_is_caught() -> None:
    with pytest.raises(CuteError, match=MUTANTS["no bytes"]):
        execute(program((2, 1, 1), "no bytes"), "round-robin")


def test_all_clusters_have_the_preferred_size() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor):
        if cute.arch.block_in_cluster_dim() == (4, 1, 1):
            if cute.arch.thread_idx().x == 0:
                x[cute.arch.block_idx().x] = cute.arch.block_idx_in_cluster()
        else:
            cute.arch.inline_ptx("no such instruction;")

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=8, block=32, cluster=(4, 1, 1), fallback_cluster=(2, 1, 1), smem_merge_branch_allocs=True)

    x = np.zeros(8, np.int32)
    run(x, device="cpu")
    assert x.tolist() == [0, 1, 2, 3] * 2
