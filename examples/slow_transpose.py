"""A correct but slow transpose: `cute-explore` shows the line with the bank conflict.

cute-explore examples/slow_transpose.py -o slow.html     # the page opens at the line; see docs/explore.md
python examples/slow_transpose.py --device cpu
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @transpose_kernel
# CHECK: cute.memref.alloc_smem{{.*}}"(32,32):(32,1)"

import argparse
import shutil

import numpy as np

import cute_dialect.lang as cute


@cute.kernel
def transpose_kernel(a: cute.Tensor, b: cute.Tensor, tile: cute.Layout):
    shared = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, tile)
    column, row, _ = cute.arch.thread_idx()
    across, down, _ = cute.arch.block_idx()
    for turn in range(0, 32, 8):
        shared[row + turn, column] = a[down * 32 + row + turn, across * 32 + column]
    cute.arch.sync_threads()
    for turn in range(0, 32, 8):
        b[across * 32 + row + turn, down * 32 + column] = shared[column, row + turn]  # a warp reads from a single bank


@cute.example(lambda: (np.zeros((64, 96), np.float32), np.zeros((96, 64), np.float32), 32))
@cute.jit
def transpose(a: cute.Tensor, b: cute.Tensor, pitch: cute.Constexpr[int]):
    """Transpose with tiles of 32 x 32 in shared memory, whose rows are ``pitch`` elements apart."""
    rows, columns = a.shape
    tile = cute.make_layout((32, 32), stride=(pitch, 1))
    transpose_kernel(a, b, tile).launch(grid=(columns // 32, rows // 32, 1), block=(32, 8, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if shutil.which("nvidia-smi") else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    a = np.random.default_rng(0).random((64, 96), dtype=np.float32)
    for pitch, said in ((32, "slow"), (33, "fast")):
        b = np.full((96, 64), np.nan, np.float32)
        compiled = cute.compile(transpose, a, b, pitch, device=args.device)
        if args.print_ir:
            print(compiled.mlir())
            return
        compiled(a, b)
        print(f"rows of {pitch} elements: {'correct' if (b == a.T).all() else 'WRONG'}, {said}")


if __name__ == "__main__":
    main()
