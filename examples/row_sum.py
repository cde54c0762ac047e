"""Row sums with shared memory, warp shuffles and layouts, compiled for static and dynamic shapes.

python examples/row_sum.py
python examples/row_sum.py --m 64 --n 1000 --device cpu
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @row_sum_kernel
# CHECK: cute.memref.alloc_smem
# CHECK: scf.for
# CHECK: scf.if

import argparse

import torch

import cute_dialect.lang as cute
from cute_dialect.lang.runtime import from_dlpack, make_fake_compact_tensor, make_fake_stream


@cute.kernel
def row_sum_kernel(x: cute.Tensor, out: cute.Tensor):
    partial = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((32,)))
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()

    _, columns = x.shape
    total = 0.0
    for turn in range(cute.ceil_div(columns, threads)):
        column = turn * threads + thread
        if column < columns:
            total += x[row, column]

    total = cute.arch.warp_reduction_sum(total)
    if lane == 0:
        partial[warp] = total
    cute.arch.sync_threads()

    if warp == 0:
        total = partial[lane] if lane < threads // 32 else 0.0
        total = cute.arch.warp_reduction_sum(total)
        if lane == 0:
            out[row] = total


@cute.jit
def row_sum(x: cute.Tensor, out: cute.Tensor, stream=None):
    rows, _ = x.shape
    row_sum_kernel(x, out).launch(grid=(rows, 1, 1), block=(128, 1, 1), stream=stream)


@cute.kernel
def row_sum_tiled_kernel(tiles: cute.Tensor, out: cute.Tensor, tv: cute.Layout, warps: cute.Constexpr[int]):
    partial = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((32,)))
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()

    _, rest = tiles.shape
    total = cute.Float32(0)
    for i in range(rest[1]):
        tile = tiles[(0, None), (row, i)]
        values = cute.composition(tile, tv)
        total += values[thread, 0]
    total = cute.arch.warp_reduction_sum(total)
    if lane == 0:
        partial[warp] = total
    cute.arch.sync_threads()
    if warp == 0:
        total = partial[lane] if lane < warps else 0.0
        total = cute.arch.warp_reduction_sum(total)
        if lane == 0:
            out[row] = total


@cute.jit
def row_sum_tiled(x, out):
    """Do the same with layouts. The number of columns must be a multiple of the threads."""
    threads = cute.make_layout((128,), stride=(1,))
    tiler, tv = cute.make_layout_tv(threads, cute.make_layout((1,), stride=(1,)))
    tiles = cute.zipped_divide(x, (1, tiler[0]))
    row_sum_tiled_kernel(tiles, out, tv, 4).launch(grid=(x.shape[0], 1, 1), block=(128, 1, 1))


def check(x: torch.Tensor, out: torch.Tensor, what: str) -> None:
    torch.testing.assert_close(out.double(), x.double().sum(1), rtol=1e-4, atol=1e-4)
    print(f"{what}: correct")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--m", type=int, default=17)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    if min(args.m, args.n) < 1:
        parser.error("--m and --n must be at least 1")

    x = torch.randn(args.m, args.n, device=args.device)
    out = torch.full((args.m,), torch.nan, device=args.device)
    if args.print_ir:
        print(cute.compile(row_sum, x, out, device=args.device).mlir("trace"))
        return

    row_sum(x, out, device=args.device)
    check(x, out, "torch tensors as they are")

    # With a static layout, the compiled function accepts only this shape.
    fixed = cute.compile(row_sum, from_dlpack(x), from_dlpack(out), device=args.device)
    fixed(from_dlpack(x), from_dlpack(out))
    check(x, out, "a static layout")
    other = torch.randn(args.m, 32, device=args.device)
    try:
        fixed(from_dlpack(other), from_dlpack(out))
    except cute.ShapeError as e:
        print("another shape is refused:", str(e).splitlines()[0])

    # Rows are dynamic and columns static. Fake tensors need no memory for compilation.
    rows = cute.sym_int()
    fake_x = make_fake_compact_tensor(cute.Float32, (rows, args.n), stride_order=(1, 0))
    fake_out = make_fake_compact_tensor(cute.Float32, (rows,))
    wide = cute.compile(row_sum, fake_x, fake_out, make_fake_stream(), device=args.device)
    for m in (1, args.m):
        out.fill_(torch.nan)
        wide(x[:m], out[:m])
        check(x[:m], out[:m], f"{m} rows by a function compiled for any number of them")

    x = torch.randn(args.m, 1024, device=args.device)
    row_sum_tiled(x, out, device=args.device)
    check(x, out, "by layouts")


if __name__ == "__main__":
    main()
