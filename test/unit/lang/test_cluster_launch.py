"""Cluster launch control: kernels on the dynamic tile scheduler, under every schedule, and mutants of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.lang import utils
from cute_dialect.runtime.host_program import launch_records

arch = cute.arch
TILES = (5, 3, 2)
FIRST_X = (
    "{ .reg .b128 h; ld.shared.b128 h, [$1]; clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 $0, h; }"
)
THREADS = 64
SCHEDULES = ("round-robin", "reverse", "random", "adversarial")


def process(out: Any, params: Any, cluster: tuple[int, int, int], mutant: str) -> None:
    """Add one to the tiles of a block in a cluster of this size."""
    blocks = cluster[0] * cluster[1]
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


def program(
    cluster: tuple[int, int, int] = (1, 1, 1), mutant: str = "", fallback: tuple[int, int, int] | None = None
) -> Any:
    """Return a function that adds one to each tile of an array (M, N, L, THREADS)."""
    params = utils.ClcDynamicPersistentTileSchedulerParams(TILES, cluster)
    smaller = utils.ClcDynamicPersistentTileSchedulerParams(TILES, fallback or cluster)

    @cute.kernel
    def kernel(out: cute.Tensor):
        if arch.block_in_cluster_dim() == cluster:
            process(out, params, cluster, mutant)
        else:
            process(out, smaller, fallback, mutant)

    @cute.jit
    def run(out: cute.Tensor):
        shape: dict[str, Any] = {"cluster": cluster} if cluster != (1, 1, 1) else {}
        shape |= {"fallback_cluster": fallback, "smem_merge_branch_allocs": True} if fallback else {}
        kernel(out).launch(grid=params.get_grid_shape(), block=THREADS, **shape)

    return run


def execute(run: Any, schedule: str, seed: int = 0) -> np.ndarray:
    out = np.zeros((*TILES, THREADS), np.int32)
    cute.compile(run, out, chip="sm_100a", device="cpu")(
        out, schedule=schedule, seed=seed, checks=["race", "oob", "uninit", "sync"]
    )
    return out


@pytest.mark.parametrize("cluster", [(1, 1, 1), (2, 1, 1)], ids=str)
@pytest.mark.parametrize("schedule", SCHEDULES)
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
    for schedule in SCHEDULES:
        with pytest.raises(CuteError, match=MUTANTS[mutant]):
            execute(program(mutant=mutant), schedule)


def test_a_multicast_block_without_bytes_is_caught() -> None:
    with pytest.raises(CuteError, match=MUTANTS["no bytes"]):
        execute(program((2, 1, 1), "no bytes"), "round-robin")


SIZES = ((4, 2, 1), "", (2, 1, 1))
"""Arguments of a program with clusters of two sizes. The grid has four places for the larger one."""


@pytest.mark.sample("adversarial")
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_tile_is_processed_once_in_clusters_of_two_sizes(schedule: str) -> None:
    """A cluster takes over work of its own size, and a larger cluster that has not started is divided for it."""
    for seed in range(3 if schedule == "random" else 1):
        assert (execute(program(*SIZES), schedule, seed) == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_with_clusters_of_two_sizes_are_caught(mutant: str) -> None:
    for schedule in SCHEDULES:  # Blocks that read "no block" also write to one element.
        with pytest.raises(CuteError, match=f"{MUTANTS[mutant]}|write-after-write race"):
            execute(program(SIZES[0], mutant, SIZES[2]), schedule)


@cute.kernel
def place_kernel(x: cute.Tensor, size: cute.Constexpr):
    """Write the size of the cluster, the position in it, its index and the number of clusters, all along x."""
    b = arch.block_idx().x
    if arch.thread_idx().x == 0:
        x[b, 0], x[b, 1], x[b, 2], x[b, 3] = (
            arch.block_in_cluster_dim().x, arch.block_idx_in_cluster(), arch.cluster_idx().x, arch.cluster_dim().x,
        )  # fmt: skip
    peer = arch.map_dsmem_ptr(arch.alloc_smem(cute.Int32, 1), (arch.block_idx_in_cluster() + 1) % size())
    arch.cluster_arrive()
    arch.cluster_wait()
    if arch.thread_idx().x == 0:
        peer[0] = b
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.jit
def place(x: cute.Tensor, size: cute.Constexpr = arch.cluster_size):
    place_kernel(x, size).launch(grid=x.shape[0], block=32, cluster=(4, 1, 1), fallback_cluster=(2, 1, 1))


PLACES = {
    "round-robin": [4, 4, 4, 4, 2, 2, 2, 2, 4, 4, 4, 4],
    "reverse": [2, 2, 2, 2, 4, 4, 4, 4, 2, 2, 2, 2],
    "adversarial": [2] * 12,
}
"""Schedule -> sizes of the clusters of the blocks."""


@pytest.mark.parametrize("schedule", PLACES)
def test_places_in_clusters_of_two_sizes(schedule: str) -> None:
    """Indices and numbers of clusters are those of a grid of clusters of the own size only."""
    x = np.zeros((12, 4), np.int32)
    with cute.target("sm_100a"):
        place(x, device="cpu", schedule=schedule, checks=["race", "oob", "uninit", "sync"])
    block, size = np.arange(12), np.array(PLACES[schedule])
    assert np.array_equal(x, np.stack([size, block % size, block // size, 12 // size], 1))


def test_random_schedules_have_both_sizes() -> None:
    found = set()
    for seed in range(4):
        x = np.zeros((12, 4), np.int32)
        with cute.target("sm_100a"):
            place(x, device="cpu", schedule="random", seed=seed)
        found.add(tuple(x[:, 0].tolist()))
    assert len(found) > 1 and any({2, 4} == set(sizes) for sizes in found)


def test_a_kernel_for_the_larger_size_only_is_caught() -> None:
    """It accesses a block that its cluster does not have, if a schedule has the smaller size."""
    x = np.zeros((12, 4), np.int32)
    with cute.target("sm_100a"), pytest.raises(CuteError, match="rank is out of range; the cluster has 2 blocks"):
        place(x, lambda: 4, device="cpu")


def test_attributes_of_a_launch_with_two_sizes() -> None:
    """The kernel has no required cluster size, and the launch has both."""
    with cute.target("sm_100a"):
        compiled = cute.compile(place, np.zeros((12, 4), np.int32), device="cpu")
    assert "%cluster_nctaid.x" in compiled.ptx and ".reqnctapercluster" not in compiled.ptx
    (record,) = launch_records(compiled.compiled_module.manifest["hosts"][0]["program"])
    assert record["preferred_cluster"] == [4, 1, 1] and record["cluster"] is not None


@cute.kernel
def sides_kernel(x: cute.Tensor):
    if arch.block_in_cluster_dim().x == 4:
        held = arch.alloc_smem(cute.Int32, 20000)
        held[19999] = 4
        x[arch.block_idx().x] = held[19999]
    else:
        other = arch.alloc_smem(cute.Int32, 40000)
        other[0], other[39999] = 1, 1
        x[arch.block_idx().x] = other[0] + other[39999]


@cute.jit
def sides(x: cute.Tensor, merges: cute.Constexpr):
    shape = {"cluster": (4, 1, 1), "fallback_cluster": (2, 1, 1), "smem_merge_branch_allocs": merges}
    sides_kernel(x).launch(grid=x.shape[0], block=1, **shape)


def test_the_sides_of_a_branch_share_memory() -> None:
    x = np.zeros(8, np.int32)
    with cute.target("sm_100a"):
        sides(x, True, device="cpu", checks=["race", "oob", "uninit"])
        assert x.tolist() == [4] * 4 + [2] * 4
        kernels = [cute.compile(sides, x, m, device="cpu").compiled_module.manifest["kernels"] for m in (True,)]
        with pytest.raises(CuteError, match="uses 240000 bytes of shared memory, at most 232448 are available"):
            sides(x, False, device="cpu")
    assert kernels[0][0]["dynamic_smem"] == 160000


def test_clusters_of_two_sizes_are_not_proved() -> None:
    with cute.target("sm_100a"):
        (proof,) = cute.testing.prove(place, [np.zeros((12, 4), np.int32)])
    assert proof.verdict == "not proved" and proof.reason == "clusters of two sizes are not modelled"


@cute.kernel
def by_text_kernel(x: cute.Tensor):
    held = arch.alloc_smem(cute.Int32, 4, 16)
    arch.inline_ptx("st.shared.b32 [$0], $1;", held, arch.block_idx().x + 5)
    arch.inline_ptx("red.shared.add.u32 [$0], $1;", held, cute.Int32(10))
    x[arch.block_idx().x] = arch.inline_ptx("ld.shared.b32 $0, [$1];", held, result=cute.Int32)


@cute.jit
def by_text(x: cute.Tensor, cluster: cute.Constexpr):
    by_text_kernel(x).launch(grid=x.shape[0], block=1, cluster=(cluster, 1, 1))


@pytest.mark.parametrize("cluster", [1, 2])
def test_inline_ptx_accesses_the_own_shared_memory(cluster: int) -> None:
    x = np.zeros(4, np.int32)
    by_text(x, cluster, device="cpu", checks=["race", "oob", "uninit"])
    assert x.tolist() == [15, 16, 17, 18]
