"""``PipelineClcFetchAsync``: one warp of a cluster requests tiles, and warps of all its blocks process them."""

from __future__ import annotations

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import UsageError
from cute_dialect.interp import InterpError
from cute_dialect.lang import pipeline, utils

SCHEDULES = ("round-robin", "reverse", "random", "adversarial")
STEPS = ("wait", "release")


@cute.kernel
def count_tiles(out: cute.Tensor, params: cute.Constexpr, shape: cute.Constexpr, without: cute.Constexpr):
    """Add the number of the tile and 1 to ``out`` at the tile; warp 0 of the first block requests, warp 1 adds."""
    blocks = cute.size(shape)
    response = cute.arch.alloc_smem(cute.Int32, 4, alignment=16)
    clc = pipeline.PipelineClcFetchAsync.create(
        num_stages=1,
        producer_group=1,
        consumer_group=32 * (1 + blocks),
        tx_count=16,
        cta_layout_vmnk=cute.make_layout((1, *shape)),
    )
    scheduler = utils.ClcDynamicPersistentTileScheduler.create(
        params, cute.arch.block_idx(), cute.arch.grid_dim(), response
    )
    work = scheduler.initial_work_tile_info()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    if warp == 0:
        if cute.arch.block_idx_in_cluster() == 0:
            requests = pipeline.make_pipeline_state(pipeline.PipelineUserType.ProducerConsumer, 1)
            while work.is_valid_tile:
                clc.producer_acquire(requests)
                scheduler.advance_to_next_work(clc.producer_get_barrier(requests))
                requests.advance()
                clc.consumer_wait(state)
                work = scheduler.get_current_work()
                clc.consumer_release(state)
                state.advance()
            clc.producer_tail(requests)
    else:
        while work.is_valid_tile:
            m, n, _ = work.tile_idx
            if cute.arch.lane_idx() == 0 and m < out.shape[0]:
                out[m, n] = out[m, n] + m * out.shape[1] + n + 1
            if cute.const_expr(without != "wait"):
                clc.consumer_wait(state)
            work = scheduler.get_current_work()
            if cute.const_expr(without != "release"):
                clc.consumer_release(state)
            state.advance()


@cute.jit
def run(out: cute.Tensor, shape: cute.Constexpr, without: cute.Constexpr = ""):
    params = utils.ClcDynamicPersistentTileSchedulerParams((*out.shape, 1), shape)
    count_tiles(out, params, shape, without).launch(grid=params.get_grid_shape(), block=64, cluster=shape)


@pytest.mark.sample("shape1-adversarial")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 1), (2, 2, 1)])
def test_every_tile_is_processed_once(shape: tuple[int, int, int], schedule: str) -> None:
    out = np.zeros((5, 4), np.int32)
    with cute.target("sm_100a"):
        run(out, shape, device="cpu", checks=("race", "uninit", "sync"), schedule=schedule)
    assert (out == np.arange(1, 21).reshape(5, 4)).all()


@pytest.mark.sample("wait-reverse")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("step", STEPS)
def test_steps_are_needed(step: str, schedule: str) -> None:
    out = np.zeros((6, 4), np.int32)
    with cute.target("sm_100a"), pytest.raises(InterpError, match=r"race|deadlock|unwritten|response"):
        run(out, (2, 1, 1), step, device="cpu", checks=("race", "uninit", "sync"), schedule=schedule)


def test_bytes_of_a_response() -> None:
    @cute.kernel
    def kernel() -> None:
        pipeline.PipelineClcFetchAsync.create(num_stages=1, producer_group=1, consumer_group=32, tx_count=8)

    with pytest.raises(UsageError, match="tx_count must be 16, the bytes of a response, got 8"):
        cute.trace(kernel, grid=1, block=32, chip="sm_100a")
