"""Pipelines of the language: what a producer writes is what a consumer reads, under every schedule, with all checks."""

from __future__ import annotations

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang import pipeline

STAGES = 3


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


@pytest.mark.parametrize("turns", [0, 1, 2, 7])
@pytest.mark.parametrize("schedule", ["round-robin", "reverse"])
def test_a_ring_of_stages(turns: int, schedule: str) -> None:
    x = np.random.default_rng(turns).integers(-9, 9, (turns, 32)).astype(np.float32)
    y = np.full(32, np.nan, np.float32)
    run(x, y, pipeline.PipelineAsync, device="cpu", checks=("race", "uninit", "sync", "oob"), schedule=schedule)
    assert (y == x.sum(0)).all()


def test_states_go_round() -> None:
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)
    seen: list[tuple[int, int, int]] = []
    for _ in range(5):
        seen.append((int(state.index), int(state.phase), int(state.count)))
        state.advance()
    assert seen == [(0, 1, 0), (1, 1, 1), (0, 0, 2), (1, 0, 3), (0, 1, 4)]
    state.reverse()
    assert (int(state.index), int(state.phase), int(state.count)) == (0, 1, 4)
