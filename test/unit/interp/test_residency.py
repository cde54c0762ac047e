"""Grids whose blocks wait for each other, and the number of blocks resident on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.interp import InterpError

SMEM = 200 * 1024  # Enough that one block fits on an SM.


@cute.kernel
def wait_for(flags: cute.Tensor, out: cute.Tensor, whom: cute.Constexpr, smem: cute.Constexpr):
    """Each block sets its flag, either at once or after it has read the flag of another block."""
    b = cute.arch.block_idx().x
    last = cute.arch.grid_dim().x - 1
    t = cute.arch.thread_idx().x
    s = cute.smem_tensor(cute.Float32, cute.make_layout(smem // 4))
    s[t] = 1.0
    if t == 0:
        other = b
        if whom == "last":
            other = last
        elif whom == "next":
            other = cute.min(b + 1, last)
        elif whom == "previous":
            other = cute.max(b - 1, 0)
        if other != b:
            while cute.arch.load(flags.iterator + other, sem="acquire", scope="gpu") == 0:
                pass
        cute.arch.store(flags.iterator + b, cute.Int32(1), sem="release", scope="gpu")
        out[b] = 1


@cute.jit
def run(flags: cute.Tensor, out: cute.Tensor, whom: cute.Constexpr, smem: cute.Constexpr, cluster: cute.Constexpr):
    wait_for(flags, out, whom, smem).launch(grid=cute.size(out), block=64, cluster=cluster)


def launch(whom: str, blocks: int, schedule: str, smem: int = SMEM, cluster: int = 1) -> np.ndarray:
    out = np.zeros(blocks, np.int32)
    run(np.zeros(blocks, np.int32), out, whom, smem, (cluster, 1, 1), device="cpu", schedule=schedule)
    return out


HELD = DEFAULT_TARGET.sms


@pytest.mark.sample("last-round-robin")
@pytest.mark.parametrize("schedule", ["round-robin", "random"])
@pytest.mark.parametrize("whom", ["last", "next"])
def test_blocks_beyond_residency_deadlock(whom: str, schedule: str) -> None:
    with pytest.raises(InterpError, match="deadlock") as caught:
        launch(whom, HELD + 10, schedule)
    notes = caught.value.notes
    assert caught.value.kind == "deadlock" and len(notes) < 10
    assert f"at most {HELD} blocks of 64 threads" in notes[0] and "cooperative=True" in notes[1]


def test_clusters_count_whole() -> None:
    with pytest.raises(InterpError, match="deadlock") as caught:
        launch("last", HELD + 12, "round-robin", cluster=8)
    assert f"at most {HELD // 8 * 8} blocks" in caught.value.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("whom", "blocks", "schedule", "smem"),
    [
        ("last", HELD, "round-robin", SMEM),
        ("last", HELD + 10, "round-robin", 1024),
        ("previous", HELD + 10, "round-robin", SMEM),
        ("previous", HELD + 10, "reverse", SMEM),
        ("previous", HELD + 10, "random", SMEM),
        ("itself", 4 * HELD, "random", SMEM),
    ],
)
def test_grids_without_a_residency_deadlock(whom: str, blocks: int, schedule: str, smem: int) -> None:
    assert (launch(whom, blocks, schedule, smem) == 1).all()
