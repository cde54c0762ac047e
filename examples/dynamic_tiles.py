"""Dynamic tiles by cluster launch control (sm_100): running blocks take over tiles of blocks that have not started.

python examples/dynamic_tiles.py                 # each schedule of the interpreter, on any machine
python examples/dynamic_tiles.py --break wait    # the same without the wait: the interpreter reports it

The kernel is assembled for sm_100a and interpreted; it has never run on the chip.
"""

# RUN: %python %s | FileCheck %s
# CHECK-COUNT-4: correct
# RUN: not %python %s --break wait 2>&1 | FileCheck %s --check-prefix=EARLY
# EARLY: missing wait for the phase of the mbarrier at {{.*}} of 'full' that covers the copy

import argparse

import numpy as np

import cute_dialect.lang as cute
from cute_dialect.lang import arch, utils

ROWS, COLUMNS = 8, 32  # of a tile


@cute.kernel
def row_maxima(x: cute.Tensor, y: cute.Tensor, waits: cute.Constexpr[bool]):
    lane = arch.thread_idx().x
    response = arch.alloc_smem(cute.Int64, 2, 16)
    full = arch.alloc_smem(cute.Int64, 1, 8)
    if lane == 0:
        arch.mbarrier_init(full, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    tiles = (x.shape[0] // ROWS, x.shape[1] // COLUMNS, 1)
    params = utils.ClcDynamicPersistentTileSchedulerParams(tiles, (1, 1, 1))
    scheduler = utils.ClcDynamicPersistentTileScheduler.create(params, arch.block_idx(), arch.grid_dim(), response)
    work = scheduler.initial_work_tile_info()
    phase = cute.Int32(0)
    while work.is_valid_tile:
        if lane == 0:  # The next tile is requested before this one is computed.
            arch.mbarrier_arrive_and_expect_tx(full, 16)
            scheduler.advance_to_next_work(full)
        down, across, _ = work.tile_idx
        for row in range(ROWS):
            value = x[down * ROWS + row, across * COLUMNS + lane]
            y[down * ROWS + row, across] = arch.warp_redux_sync(value, "max")
        if waits:
            arch.mbarrier_wait(full, phase)
        phase = phase ^ 1
        work = scheduler.get_current_work()
        arch.fence_proxy("async.shared", space="cta")  # The next response overwrites this one.
        arch.sync_threads()


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, waits: cute.Constexpr[bool]):
    """Write the largest number of each row of each tile of ``x`` (M, N) to ``y`` (M, N / 32)."""
    tiles = (x.shape[0] // ROWS, x.shape[1] // COLUMNS, 1)
    params = utils.ClcDynamicPersistentTileSchedulerParams(tiles, (1, 1, 1))
    row_maxima(x, y, waits).launch(grid=params.get_grid_shape(), block=32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--break", dest="broken", choices=["wait"], help="leave out a step of the protocol")
    args = parser.parse_args()
    x = np.random.default_rng(0).standard_normal((32, 96)).astype(np.float32)
    y = np.empty((32, 3), np.float32)
    compiled = cute.compile(run, x, y, args.broken is None, chip="sm_100a", device="cpu")
    for schedule in ("round-robin", "reverse", "random", "adversarial"):
        y[:] = np.nan
        compiled(x, y, schedule=schedule, checks=["race", "uninit"])
        wanted = x.reshape(32, 3, 32).max(axis=2)
        print(f"{schedule}: {'correct' if (y == wanted).all() else 'WRONG'}")


if __name__ == "__main__":
    main()
