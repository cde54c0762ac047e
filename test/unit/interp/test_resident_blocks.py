"""Blocks that run at once: waits for blocks that do not fit, cooperative launches, and the option that limits them."""

from __future__ import annotations

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.runtime.call_options import SCHEDULES

BLOCKS = 12


@cute.kernel
def wait_kernel(flag: cute.Tensor, out: cute.Tensor, sets: cute.Constexpr, waits: cute.Constexpr):
    """Block `sets` sets the flag; all blocks from `waits` on wait for it."""
    block = cute.arch.block_idx().x
    if cute.arch.thread_idx().x == 0:
        if block == sets:
            cute.arch.store(flag.iterator, cute.Int32(1), sem="release", scope="gpu")
        if block >= waits:
            while cute.arch.load(flag.iterator, sem="acquire", scope="gpu") == 0:
                pass
        out[block] = cute.Int32(1)


@cute.jit
def wait(
    flag: cute.Tensor,
    out: cute.Tensor,
    sets: cute.Constexpr,
    waits: cute.Constexpr = 0,
    together: cute.Constexpr = False,
    blocks: cute.Constexpr = BLOCKS,
    threads: cute.Constexpr = 32,
):
    wait_kernel(flag, out, sets, waits).launch(grid=blocks, block=threads, cooperative=together)


def run(sets: int, *more: object, blocks: int = BLOCKS, **options: object) -> None:
    out = np.zeros(blocks, np.int32)
    wait(np.zeros(1, np.int32), out, sets, *more, device="cpu", checks="race", **options)
    assert out.tolist() == [1] * blocks


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_for_a_block_that_does_not_fit(schedule: str) -> None:
    run(BLOCKS - 1, schedule=schedule, resident=BLOCKS)
    run(7, schedule=schedule, resident=8)
    with pytest.raises(InterpError, match="deadlock: 8 warps wait and none can continue") as e:
        run(8, schedule=schedule, resident=8)
    assert e.value.notes[0].endswith("(resident=8); 4 blocks cannot start, because the resident blocks wait for them")
    assert "warp 0 polls memory" in e.value.notes[2]


@cute.kernel
def hand_over_kernel(turns: cute.Tensor, out: cute.Tensor, times: cute.Constexpr):
    """Blocks 0 and 1 take turns; block 2 begins when they have ended."""
    block = cute.arch.block_idx().x
    if cute.arch.thread_idx().x == 0:
        if block < 2:
            for i in range(times):
                while cute.arch.load(turns.iterator, sem="acquire", scope="gpu") != 2 * i + block:
                    pass
                cute.arch.store(turns.iterator, 2 * i + block + 1, sem="release", scope="gpu")
        out[block] = cute.Int32(1)


@cute.jit
def hand_over(turns: cute.Tensor, out: cute.Tensor, times: cute.Constexpr):
    hand_over_kernel(turns, out, times).launch(grid=3, block=32)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_polls_between_stores_are_no_deadlock(schedule: str) -> None:
    """All resident warps only poll in each round, but what they store in between lets the other continue."""
    for resident in (2, 3):
        out, turns = np.zeros(3, np.int32), np.zeros(1, np.int32)
        hand_over(turns, out, 150, device="cpu", resident=resident, schedule=schedule, checks="none")
        assert (out.tolist(), turns[0]) == ([1, 1, 1], 300)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_waits_that_need_few_blocks(schedule: str) -> None:
    """A wait for a lower number ends with one resident block. Blocks that end make room for the last one."""
    run(0, schedule=schedule, resident=1)
    run(BLOCKS - 1, BLOCKS - 2, schedule=schedule, resident=2)
    with pytest.raises(InterpError, match="deadlock"):
        run(BLOCKS - 1, BLOCKS - 2, schedule=schedule, resident=1)


def test_cooperative_launches_fit() -> None:
    run(BLOCKS - 1, 0, True, resident=BLOCKS)
    with pytest.raises(InterpError) as e:
        run(BLOCKS - 1, 0, True, resident=BLOCKS - 1)
    assert e.value.message == (
        "cooperative launch of 12 blocks, but the GPU holds at most 11 blocks of 32 threads and 0 bytes of shared "
        "memory at once (resident=11)"
    )


def test_the_option_is_checked() -> None:
    with pytest.raises(cute.LaunchError, match="resident: expected a number of blocks that is at least 1, got 0"):
        run(0, resident=0)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_more_blocks_than_a_chip_holds(schedule: str) -> None:
    """An H200 holds 264 blocks of 1024 threads, under every schedule."""
    with pytest.raises(InterpError, match="deadlock") as e:
        run(599, 0, False, 600, 1024, blocks=600, schedule=schedule)
    assert "at most 264 blocks of 1024 threads" in e.value.notes[0]
    assert "336 blocks cannot start" in e.value.notes[0]
