"""Rows of a table by index, with TMA gather4 and scatter4 (sm_100): ``y[to[i]] = x[index[i]]``.

python examples/gather_rows.py                       # each schedule of the interpreter, on any machine
python examples/gather_rows.py --rows 96 --columns 200
python examples/gather_rows.py --bug missing-bytes   # a broken kernel: the interpreter reports it

An index of ``x`` outside the table selects zeros, and an index of ``y`` past its end drops the row. The kernel is
assembled for sm_100a and interpreted; it has never run on the chip.
"""

# RUN: %python %s | FileCheck %s
# CHECK-COUNT-4: correct
# RUN: not %python %s --bug missing-bytes 2>&1 | FileCheck %s --check-prefix=BYTES
# BYTES: phase 0 completes while 2048 bytes of copies that signal it are in flight
# RUN: not %python %s --bug same-row 2>&1 | FileCheck %s --check-prefix=SAME
# SAME: a scatter4 store writes row {{[0-9]+}} twice

import argparse

import numpy as np

import cute_dialect.lang as cute
from cute_dialect.lang import arch
from cute_dialect.lang.nvgpu import cpasync

TILE, COLUMNS = 32, 64  # of a block: rows by index, and columns of Float16, which are the 128 bytes of the swizzle
LIMIT = 1 << 21
"""Largest number of elements, which the interpreter gathers in about a minute."""


def staged_rows(rows: int):
    """Return the layout of a number of rows in shared memory."""
    return cute.make_composed_layout(
        cute.make_swizzle(3, 4, 3), 0, cute.make_layout((rows, COLUMNS), stride=(COLUMNS, 1))
    )


@cute.kernel
def gather(load, source, store, target, index: cute.Tensor, to: cute.Tensor, bug: cute.Constexpr[str]):
    thread = arch.thread_idx().x
    tile, column, _ = arch.block_idx()
    rows = cute.smem_tensor(cute.Float16, staged_rows(TILE).outer, 1024, cute.make_swizzle(3, 4, 3))
    full = arch.alloc_smem(cute.Int64, 1)
    if thread == 0:
        arch.mbarrier_init(full, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    there = cute.local_tile(source, (4, COLUMNS), (0, column))  # The indices select the rows.
    if arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(full, TILE * COLUMNS * (1 if bug == "missing-bytes" else 2))
    for i in range(TILE // 4):
        four = [index[tile * TILE + 4 * i + j] for j in range(4)]
        cute.copy(load, there, cute.local_tile(rows, (4, COLUMNS), (i, 0)), tma_bar_ptr=full, rows=four)
    if bug != "no-wait":
        arch.mbarrier_wait(full, 0)
    there = cute.local_tile(target, (4, COLUMNS), (0, column))
    for i in range(TILE // 4):
        four = [to[tile * TILE + 4 * i + (j // 2 if bug == "same-row" else j)] for j in range(4)]
        cute.copy(store, cute.local_tile(rows, (4, COLUMNS), (i, 0)), there, rows=four)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, index: cute.Tensor, to: cute.Tensor, bug: cute.Constexpr[str]):
    four = (4, COLUMNS)
    load, source = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileGather4G2SOp(), x, staged_rows(4), four)
    store, target = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileScatter4S2GOp(), y, staged_rows(4), four)
    grid = (index.shape[0] // TILE, cute.ceil_div(x.shape[1], COLUMNS), 1)
    gather(load, source, store, target, index, to, bug).launch(grid=grid, block=32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=64, help=f"number of indices, a multiple of {TILE}")
    parser.add_argument("--columns", type=int, default=72, help="columns of the table, a multiple of 8")
    parser.add_argument("--bug", choices=["missing-bytes", "no-wait", "same-row"], help="break the kernel")
    args = parser.parse_args()
    if args.rows % TILE or args.columns % 8 or min(args.rows, args.columns) < 1:
        parser.error(f"--rows must be a positive multiple of {TILE}, and --columns of 8")
    if args.rows * args.columns > LIMIT:
        parser.error(f"--rows x --columns must be at most {LIMIT:,} on the interpreter")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, args.columns)).astype(np.float16)
    index = rng.integers(-2, 102, args.rows).astype(np.int32)
    to = rng.permutation(args.rows + 4)[: args.rows].astype(np.int32)
    y = np.zeros((args.rows, args.columns), np.float16)
    wanted = np.full_like(y, -1)
    for i, row in zip(index, to):
        if row < args.rows:
            wanted[row] = x[i] if 0 <= i < len(x) else 0
    compiled = cute.compile(run, x, y, index, to, args.bug or "", chip="sm_100a", device="cpu")
    for schedule in ("round-robin", "reverse", "random", "adversarial"):
        y[:] = -1
        compiled(x, y, index, to, schedule=schedule, checks=["race", "uninit"])
        print(f"{schedule}: {'correct' if (y == wanted).all() else 'WRONG'}")


if __name__ == "__main__":
    main()
