"""Autotuning: choose the number of threads per row and of rows per block by measurement.

python examples/autotune.py                                  # measures on a GPU; without one, the first candidate
cute-bench tune examples/autotune.py:row_sum --build out     # compile all candidates anywhere …
cute-bench tune examples/autotune.py:row_sum --run out       # … and measure on a machine with a GPU
"""

# RUN: %python %s --device cpu | FileCheck %s
# CHECK: the first candidate, {'threads': 32, 'rows': 4}: correct

import argparse
import shutil

import numpy as np

import cute_dialect.lang as cute

ROWS, COLUMNS = 256, 1000


@cute.kernel
def row_sum_kernel(x: cute.Tensor, out: cute.Tensor, threads: cute.Constexpr, rows: cute.Constexpr):
    thread = cute.arch.thread_idx().x % threads
    row = cute.arch.block_idx().x * rows + cute.arch.thread_idx().x // threads
    total = cute.Float32(0.0)
    if row < x.shape[0]:
        for k in range(thread, x.shape[1], threads):
            total += x[row, k]
    for step in cute.range_constexpr(threads.bit_length() - 1):
        total += cute.arch.shuffle_sync_bfly(total, offset=1 << step)
    if thread == 0 and row < x.shape[0]:
        out[row] = total


def writes_sums(x, out):
    """Write the expected result. Candidates with other results are rejected."""
    out[:] = x.sum(1)


@cute.autotune(space={"threads": [32, 16, 8, 4], "rows": [4, 8, 16]}, key=["x"], reference=writes_sums)
@cute.jit
def row_sum(x: cute.Tensor, out: cute.Tensor, threads: cute.Constexpr = 32, rows: cute.Constexpr = 4):
    row_sum_kernel(x, out, threads, rows).launch(grid=cute.ceil_div(x.shape[0], rows), block=threads * rows)


def row_sum_arguments():
    """Return the arguments of the two calls that ``cute-bench tune`` measures."""
    return [(np.ones((m, n), np.float32), np.zeros(m, np.float32)) for m, n in ((ROWS, COLUMNS), (4096, 128))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if shutil.which("nvidia-smi") else "cpu", choices=["cuda", "cpu"])
    args = parser.parse_args()
    x = np.random.default_rng(0).integers(-9, 10, (ROWS, COLUMNS)).astype(np.float32)
    if args.device == "cpu":
        x, out = x[:20], np.zeros(20, np.float32)
        row_sum(x, out, device="cpu")
        assert np.array_equal(out, x.sum(1))
        print(f"the first candidate, {dict(row_sum.best(x, out, device='cpu'))}: correct")
        return
    import torch

    a, out = torch.from_numpy(x).cuda(), torch.zeros(ROWS, device="cuda")
    print(row_sum.tune(a, out))  # a call without tune() measures the first time, too
    row_sum(a, out)
    assert torch.equal(out, a.sum(1))
    print("correct")


if __name__ == "__main__":
    main()
