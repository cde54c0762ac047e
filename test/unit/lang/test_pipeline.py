"""Pipelines of the language: consumers read the items that producers wrote, under every schedule, with all checks."""

# pyright: basic

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.lang import pipeline
from cute_dialect.lang.nvgpu import BulkCopyOp, cpasync
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.ptxas import assemble

STAGES = 3
CHECKS = ("race", "uninit", "sync", "oob")
ROWS = cute.Tensor[cute.Int32, "(?,32):(32,1)", "align<16>"]


@cute.kernel
def sums(x: cute.Tensor, y: cute.Tensor, kind: cute.Constexpr):
    thread = cute.arch.thread_idx().x
    warp = cute.arch.warp_idx()
    ring = cute.make_tensor(
        cute.arch.alloc_smem(cute.Float32, 32 * STAGES, alignment=16), cute.make_layout((32, STAGES))
    )
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    pipe = kind.create(num_stages=STAGES, producer_group=group, consumer_group=group)
    producer, consumer = pipe.make_participants()
    if warp == 0:
        for i in range(x.shape[0]):
            slot = producer.acquire_and_advance()
            ring[thread, slot.index] = x[i, thread]
            slot.commit()
        producer.tail()
    else:
        total = cute.Float32(0)
        for _ in range(x.shape[0]):
            slot = consumer.wait_and_advance(consumer.try_wait())
            total += ring[thread - 32, slot.index]
            slot.release()
        y[thread - 32] = total


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, kind: cute.Constexpr):
    sums(x, y, kind).launch(grid=1, block=64)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("turns", [0, 1, 2, 7])
@pytest.mark.parametrize("schedule", ["round-robin", "reverse"])
def test_a_ring_of_stages(turns: int, schedule: str) -> None:
    x = np.random.default_rng(turns).integers(-9, 9, (turns, 32)).astype(np.float32)
    y = np.full(32, np.nan, np.float32)
    run(x, y, pipeline.PipelineAsync, device="cpu", checks=CHECKS, schedule=schedule)
    assert (y == x.sum(0)).all()


@cute.kernel
def counted_kernel(x: cute.Tensor, y: cute.Tensor):
    """Copy the rows of two matrices, whose number is that of the item since the last ``reset``."""
    thread = cute.arch.thread_idx().x
    ring = cute.make_tensor(
        cute.arch.alloc_smem(cute.Float32, 32 * STAGES, alignment=16), cute.make_layout((32, STAGES))
    )
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    pipe = pipeline.PipelineAsync.create(num_stages=STAGES, producer_group=group, consumer_group=group)
    producer, consumer = pipe.make_participants()
    if cute.arch.warp_idx() == 0:
        for matrix in range(x.shape[0]):
            producer.reset()
            for _ in range(x.shape[1]):
                slot = producer.acquire_and_advance()
                ring[thread, slot.index] = x[matrix, slot.count, thread]
                slot.commit()
        producer.tail()
    else:
        for matrix in range(x.shape[0]):
            consumer.reset()
            for _ in range(x.shape[1]):
                slot = consumer.wait_and_advance()
                y[matrix, slot.count, thread - 32] = ring[thread - 32, slot.index]
                slot.release()


@cute.jit
def counted(x: cute.Tensor, y: cute.Tensor):
    counted_kernel(x, y).launch(grid=1, block=64)


def test_reset_counts_items_from_zero_and_keeps_the_slot() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (2, 5, 32)).astype(np.float32)
    y = np.full_like(x, np.nan)
    counted(x, y, device="cpu", checks=CHECKS, schedule="adversarial")
    assert np.array_equal(x, y)


def test_pipeline_states_wrap() -> None:
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
    seen: list[tuple[int, int, int]] = []
    for _ in range(5):
        seen.append((int(state.index), int(state.phase), int(state.count)))
        state.advance()
    assert seen == [(0, 1, 0), (1, 1, 1), (0, 0, 2), (1, 0, 3), (0, 1, 4)]
    state.reverse()
    assert (int(state.index), int(state.phase), int(state.count)) == (0, 1, 4)


# ---------------------------------------------------------------------------------------- every item arrives, in order


def matrix(items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random items of 32 numbers and an array for the results, both aligned to 16 bytes."""
    raw = np.zeros(2 * items * 32 + 8, np.int32)
    skip = -raw.ctypes.data % 16 // 4
    x, y = raw[skip : skip + 2 * items * 32].reshape(2, items, 32)
    x[...] = np.random.default_rng(items).integers(-1000, 1000, x.shape)
    return x, y


def slots_of(stages: int) -> Any:
    """Allocate a ring of items in shared memory, inside a kernel."""
    return cute.smem_tensor(cute.Int32, cute.make_layout((stages, 32), stride=(32, 1)), 16)


def by_threads(stages: int, consumers: int = 1, *, releases: bool = True) -> Any:
    """Warp 0 copies items to the ring; the other warps use them round-robin: ``y = 2 x + consumer index``."""

    @cute.kernel
    def k(x: ROWS, y: ROWS):  # pyright: ignore[reportInvalidTypeForm]
        warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
        slots = slots_of(stages)
        pipe = pipeline.PipelineAsync.create(num_stages=stages, producer_group=32, consumer_group=32 * consumers)
        producer, consumer = pipe.make_participants()
        if warp == 0:
            for i in range(x.shape[0]):
                slot = producer.acquire_and_advance()
                slots[slot.index, lane] = x[i, lane]
                slot.commit()
        else:
            for i in range(x.shape[0]):
                slot = consumer.wait_and_advance()
                value = slots[slot.index, lane] * 2
                if i % consumers + 1 == warp:
                    y[i, lane] = value + warp
                if releases:
                    slot.release()

    return k


@pytest.mark.parametrize("stages, items, consumers", [(1, 5, 1), (2, 7, 1), (3, 7, 2), (4, 3, 3)])
def test_threads_fill_and_use_a_ring(stages: int, items: int, consumers: int) -> None:
    x, y = matrix(items)
    launch = by_threads(stages, consumers)(x, y)
    launch.launch(grid=1, block=32 * (1 + consumers), device="cpu", checks=CHECKS)
    user = np.arange(items)[:, None] % consumers + 1
    assert (y == 2 * x + user).all()


def test_a_slot_that_is_not_released_stops_the_producer() -> None:
    x, y = matrix(5)
    with pytest.raises(InterpError, match="deadlock"):
        by_threads(2, releases=False)(x, y).launch(grid=1, block=64, device="cpu")


def by_bulk_copies(stages: int, cluster: int) -> Any:
    """One warp issues bulk copies and another uses the items. In a cluster a slot is free after all blocks used it."""

    @cute.kernel
    def k(x: ROWS, y: ROWS):  # pyright: ignore[reportInvalidTypeForm]
        warp, lane, block = cute.arch.warp_idx(), cute.arch.lane_idx(), cute.arch.block_idx().x
        slots = slots_of(stages)
        bulk = cute.make_copy_atom(BulkCopyOp(), cute.Int32)
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=stages, producer_group=1, consumer_group=cluster, tx_count=128,
            cta_layout_vmnk=cute.make_layout((1, cluster, 1, 1)),
        )  # fmt: skip
        producer, consumer = pipe.make_participants()
        if warp == 0:
            for i in range(x.shape[0]):
                slot = producer.acquire_and_advance()
                cute.copy(bulk, x[i, None], slots[slot.index, None], tma_bar_ptr=slot.barrier)
            producer.tail()
        else:
            for i in range(x.shape[0]):
                slot = consumer.wait_and_advance()
                y[i * cluster + block, lane] = slots[slot.index, lane] + block
                cute.arch.sync_warp()
                slot.release()
        if cluster > 1:
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()

    return k


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("stages, items, cluster", [(1, 4, 1), (3, 8, 1), (2, 5, 2), (3, 2, 4)])
def test_bulk_copies_fill_a_ring(stages: int, items: int, cluster: int) -> None:
    x, _ = matrix(items)
    y = np.zeros((items * cluster, 32), np.int32)
    launch = by_bulk_copies(stages, cluster)(x, y)
    launch.launch(grid=cluster, block=64, cluster=(cluster, 1, 1), device="cpu", checks=CHECKS)
    assert (y.reshape(items, cluster, 32) == x[:, None] + np.arange(cluster)[None, :, None]).all()


def word() -> Any:
    """Return, inside a kernel, a copy atom that copies one number asynchronously."""
    return cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Int32, num_bits_per_copy=32)


def by_cp_async(stages: int) -> Any:
    """Warp 0 copies asynchronously and warp 1 reverses the columns of each item."""

    @cute.kernel
    def k(x: ROWS, y: ROWS):  # pyright: ignore[reportInvalidTypeForm]
        warp, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
        slots = slots_of(stages)
        pipe = pipeline.PipelineCpAsync.create(num_stages=stages, producer_group=32, consumer_group=32)
        producer, consumer = pipe.make_participants()
        if warp == 0:
            for i in range(x.shape[0]):
                slot = producer.acquire_and_advance()
                one = cute.make_layout(1)
                from_, to = cute.domain_offset(lane, x[i, None]), cute.domain_offset(lane, slots[slot.index, None])
                cute.copy(word(), cute.make_tensor(from_.iterator, one), cute.make_tensor(to.iterator, one))
                slot.commit()
            producer.tail()
        else:
            for i in range(x.shape[0]):
                slot = consumer.wait_and_advance()
                y[i, lane] = slots[slot.index, 31 - lane]
                slot.release()

    return k


@pytest.mark.parametrize("stages, items", [(1, 3), (2, 1), (2, 5), (4, 9)])
def test_asynchronous_copies_fill_a_ring(stages: int, items: int) -> None:
    x, y = matrix(items)
    by_cp_async(stages)(x, y).launch(grid=1, block=64, device="cpu", checks=CHECKS)
    assert (y == x[:, ::-1]).all()


def by_groups(stages: int) -> Any:
    """All threads copy ``stages - 1`` groups ahead and use the items, without an mbarrier."""

    @cute.kernel
    def k(x: ROWS, y: ROWS):  # pyright: ignore[reportInvalidTypeForm]
        lane, items = cute.arch.lane_idx(), x.shape[0]
        slots = slots_of(stages)

        def fetch(item: Any) -> None:
            if item < items:
                one = cute.make_layout(1)
                to = cute.make_tensor(slots.iterator + item % stages * 32 + lane, one)
                cute.copy(word(), cute.make_tensor(x.iterator + item * 32 + lane, one), to)
            cute.arch.cp_async_commit_group()

        for i in cute.range_constexpr(stages - 1):
            fetch(i)
        for i in range(items):
            cute.arch.cp_async_wait_group(stages - 2)
            cute.arch.sync_threads()
            fetch(i + (stages - 1))
            y[i, lane] = slots[i % stages, 31 - lane]

    return k


@pytest.mark.parametrize("stages, items", [(2, 1), (2, 5), (4, 9)])
def test_asynchronous_copies_of_all_threads(stages: int, items: int) -> None:
    x, y = matrix(items)
    by_groups(stages)(x, y).launch(grid=1, block=32, device="cpu", checks=CHECKS)
    assert (y == x[:, ::-1]).all()


@cute.kernel
def turns(y: cute.Tensor, groups: cute.Constexpr, depth: cute.Constexpr):
    """Append to one list from several warps in the order that ``PipelineOrder`` enforces."""
    group, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
    at = cute.smem_tensor(cute.Int32, cute.make_layout(depth))
    if cute.arch.thread_idx().x == 0:
        at.fill(0)
    order = pipeline.PipelineOrder.create(depth=depth, length=groups, group_id=group, producer_group=32)
    state = order.state
    for i in range(y.shape[1] // groups):
        for part in range(depth):
            order.wait(state)
            place = at[part]
            cute.arch.sync_warp()
            if lane == 0:
                y[part, place] = 100 * group + i
                at[part] = place + 1
            state = order.arrive(state)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("groups, depth", [(1, 1), (2, 1), (3, 2)])
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "random"])
def test_ordered_sequence_of_groups(groups: int, depth: int, schedule: str) -> None:
    y = np.full((depth, 4 * groups), -1, np.int32)
    turns(y, groups, depth).launch(
        grid=1, block=32 * groups, device="cpu", checks=CHECKS, schedule=schedule
    )  # fmt: skip
    expected = [100 * group + i for i in range(4) for group in range(groups)]
    assert y.tolist() == [expected] * depth


@cute.kernel
def two_sums(x: ROWS, y: cute.Tensor):  # pyright: ignore[reportInvalidTypeForm]
    """One warp fills slots with bulk copies, and two other warps both read each slot."""
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    slots = slots_of(STAGES)
    bulk = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Int32)
    pipe = pipeline.PipelineTmaMultiConsumersAsync.create(
        num_stages=STAGES, producer_group=1, consumer_group_async=[32, pipeline.CooperativeGroup(size=32)], tx_count=128
    )
    producer, consumer = pipe.make_participants()
    if warp == 0:
        with cute.arch.elect_one():
            for i in range(x.shape[0]):
                slot = producer.acquire_and_advance()
                cute.copy(bulk, x[i, None], slots[slot.index, None], tma_bar_ptr=slot.barrier)
            producer.tail()
    else:
        total = cute.Int32(0)
        for _ in range(x.shape[0]):
            slot = consumer.wait_and_advance()
            total += slots[slot.index, lane] * warp
            slot.release()
        y[warp - 1, lane] = total


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("items", [0, 2, 8])
@pytest.mark.parametrize("schedule", ["round-robin", "reverse"])
def test_slots_that_two_groups_use(items: int, schedule: str) -> None:
    x, y = matrix(items)[0], np.full((2, 32), -1, np.int32)
    two_sums(x, y).launch(grid=1, block=96, device="cpu", checks=CHECKS, schedule=schedule)
    assert (y[0] == x.sum(0)).all() and (y[1] == 2 * x.sum(0)).all()


def by_bulk_stores(stages: int) -> Any:
    """All threads write a slot, and one thread stores it with a bulk copy."""

    @cute.kernel
    def k(x: ROWS, y: ROWS):  # pyright: ignore[reportInvalidTypeForm]
        lane = cute.arch.lane_idx()
        slots = slots_of(stages)
        bulk = cute.make_copy_atom(BulkCopyOp(), cute.Int32)
        pipe = pipeline.PipelineTmaStore.create(num_stages=stages, producer_group=32)
        for i in range(x.shape[0]):
            if lane == 0:
                pipe.producer_acquire()
            cute.arch.sync_threads()
            slots[i % stages, lane] = x[i, lane] * 3
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.sync_threads()
            if lane == 0:
                cute.copy(bulk, slots[i % stages, None], y[i, None])
                pipe.producer_commit()
        if lane == 0:
            pipe.producer_tail()

    return k


@pytest.mark.parametrize("stages, items", [(1, 3), (2, 5)])
def test_asynchronous_stores(stages: int, items: int) -> None:
    x, y = matrix(items)
    by_bulk_stores(stages)(x, y).launch(grid=1, block=32, device="cpu", checks=CHECKS)
    assert (y == 3 * x).all()


MADE: dict[str, tuple[Any, int, int]] = {
    "threads": (by_threads(3, 2), 96, 1),
    "bulk copies": (by_bulk_copies(4, 2), 64, 2),
    "cp.async": (by_cp_async(3), 64, 1),
    "groups": (by_groups(3), 32, 1),
    "bulk stores": (by_bulk_stores(2), 32, 1),
    "several groups": (two_sums, 96, 1),
}


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("name", MADE)
def test_ptxas_accepts_the_kernels(name: str) -> None:
    kernel, threads, cluster = MADE[name]
    traced = cute.trace(kernel, *matrix(9), grid=cluster, block=threads, cluster=(cluster, 1, 1), chip="sm_90a")
    compiled = compile_cute(traced.mlir(), emit="ptx", cache=False)
    assembled = assemble(compiled.ptx)
    assert assembled.warnings == () and all(k.spills == 0 for k in assembled.kernels)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: pipeline.PipelineAsync.create(num_stages=0, producer_group=1, consumer_group=1),
            "num_stages must be at least 1, got 0",
        ),
        (
            lambda: pipeline.PipelineTmaAsync.create(
                num_stages=1, producer_group=1, consumer_group=1, tx_count=1 << 20
            ),
            "tx_count must be 1 to 1048575 bytes, got 1048576",
        ),
        (
            lambda: pipeline.PipelineTmaStore.create(num_stages=0, producer_group=1),
            "num_stages must be at least 1, got 0",
        ),
        (
            lambda: pipeline.PipelineTmaMultiConsumersAsync.create(
                num_stages=1, producer_group=1, consumer_group_async=32, consumer_group_umma=1, tx_count=16
            ),
            "consumer_group_umma (tcgen05) needs sm_100 or later",
        ),
        (
            lambda: pipeline.PipelineOrder.create(depth=1, length=0, group_id=0, producer_group=32),
            "PipelineOrder: depth and length must be at least 1, got 1 and 0",
        ),
        (lambda: pipeline.CooperativeGroup(size=0), "CooperativeGroup: size must be at least 1, got 0"),
        (lambda: pipeline.NamedBarrier(16, 32), "NamedBarrier: barrier_id must be 0 to 15, got 16"),
    ],
)
def test_invalid_pipelines_are_rejected(make: Any, message: str) -> None:
    @cute.kernel
    def k():
        make()

    with pytest.raises((ValueError, KernelTypeError), match=re.escape(message)):
        cute.trace(k, grid=1, block=32)
