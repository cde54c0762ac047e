"""Seven kernels for C = A * B on plain FMAs, each one optimization faster than the previous one.

The steps are those of S. Boehm, "How to optimize a CUDA matmul kernel". Sizes and the element type are generic
parameters: compile-time constants that are given in brackets or deduced from the matrices.

python examples/matmul_ladder.py
python examples/matmul_ladder.py --rung vectors --m 1024 --n 1024 --k 1024
"""

# pyright: reportUndefinedVariable=false
# ruff: noqa: F821  (M, K, N and T are generic parameters; with Python 3.12: def naive[M, K, N, T](…), without
# @cute.generic)
# REQUIRES: slow
# RUN: %python %s --rung naive --print-ir | FileCheck %s --check-prefix=NAIVE
# NAIVE: gpu.func @naive
# NAIVE: scf.for
# NAIVE: scf.yield
# RUN: %python %s --rung shared --print-ir | FileCheck %s --check-prefix=SHARED
# SHARED-COUNT-2: cute.memref.alloc_smem
# SHARED: scf.for
# SHARED: cute_nvgpu.arch.barrier
# RUN: %python %s --rung warps --print-ir | FileCheck %s --check-prefix=WARPS
# WARPS: cute.make_tiled_mma
# WARPS: cute.cooperative_copy
# WARPS: cute.cooperative_gemm

from __future__ import annotations

import argparse

import torch

import cute_dialect.lang as cute

WARP = 32


@cute.generic("M", "K", "N", "T")
@cute.kernel
def naive(A: cute.Tensor[T, M, K], B: cute.Tensor[T, K, N], C: cute.Tensor[T, M, N]):
    """One element of C per thread. The threads of a warp are in one column, so that each reads its own row."""
    (bx, by, _), (tx, ty, _) = cute.arch.block_idx(), cute.arch.thread_idx()
    row, column = bx * 16 + tx, by * 16 + ty
    total = T(0)
    for k in range(K):
        total += A[row, k] * B[k, column]
    C[row, column] = total


@cute.generic("M", "K", "N", "T")
@cute.kernel
def coalesced(A: cute.Tensor[T, M, K], B: cute.Tensor[T, K, N], C: cute.Tensor[T, M, N]):
    """The threads of a warp are in one row, so that its accesses are coalesced."""
    (bx, by, _), (tx, ty, _) = cute.arch.block_idx(), cute.arch.thread_idx()
    row, column = bx * 16 + ty, by * 16 + tx
    total = T(0)
    for k in range(K):
        total += A[row, k] * B[k, column]
    C[row, column] = total


@cute.generic("M", "K", "N", "T")
@cute.kernel
def shared(A: cute.Tensor[T, M, K], B: cute.Tensor[T, K, N], C: cute.Tensor[T, M, N]):
    """A block copies tiles to shared memory, where all of its threads use them."""
    (bx, by, _), (tx, ty, _) = cute.arch.block_idx(), cute.arch.thread_idx()
    sA = cute.smem_tensor(T, cute.make_layout((16, 16), stride=(16, 1)))
    sB = cute.smem_tensor(T, cute.make_layout((16, 16), stride=(16, 1)))
    gA, gB = cute.local_tile(A, (16, 16), (bx, None)), cute.local_tile(B, (16, 16), (None, by))
    total = T(0)
    for step in range(K // 16):
        sA[ty, tx], sB[ty, tx] = gA[ty, tx, step], gB[ty, tx, step]
        cute.arch.sync_threads()
        for k in range(16):
            total += sA[ty, k] * sB[k, tx]
        cute.arch.sync_threads()
    C[bx * 16 + ty, by * 16 + tx] = total


@cute.generic("M", "K", "N", "T")
@cute.kernel
def column(A: cute.Tensor[T, M, K], B: cute.Tensor[T, K, N], C: cute.Tensor[T, M, N]):
    """A thread has 8 elements of a column of C, so one value of B serves eight FMAs."""
    bx, by, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    x, y = thread % 32, thread // 32
    sA = cute.smem_tensor(T, cute.make_layout((32, 8), stride=(8, 1)))
    sB = cute.smem_tensor(T, cute.make_layout((8, 32), stride=(32, 1)))
    gA, gB = cute.local_tile(A, (32, 8), (bx, None)), cute.local_tile(B, (8, 32), (None, by))
    totals = cute.make_rmem_tensor(8, T)
    totals.fill(0)
    for step in range(K // 8):
        cute.cooperative_copy(gA[None, None, step], sA, thread, 128)
        cute.cooperative_copy(gB[None, None, step], sB, thread, 128)
        cute.arch.sync_threads()
        for k in range(8):
            b = sB[k, x]
            for i in range(8):
                totals[i] += sA[y * 8 + i, k] * b
        cute.arch.sync_threads()
    for i in range(8):
        C[bx * 32 + y * 8 + i, by * 32 + x] = totals[i]


@cute.generic("M", "K", "N", "T")
@cute.kernel
def square(A: cute.Tensor[T, M, K], B: cute.Tensor[T, K, N], C: cute.Tensor[T, M, N]):
    """A thread has 4 x 4 elements, so eight values from shared memory serve sixteen FMAs."""
    bx, by, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    x, y = thread % 8, thread // 8
    sA = cute.smem_tensor(T, cute.make_layout((32, 8), stride=(8, 1)))
    sB = cute.smem_tensor(T, cute.make_layout((8, 32), stride=(32, 1)))
    gA, gB = cute.local_tile(A, (32, 8), (bx, None)), cute.local_tile(B, (8, 32), (None, by))
    totals = cute.make_rmem_tensor((4, 4), T)
    totals.fill(0)
    for step in range(K // 8):
        cute.cooperative_copy(gA[None, None, step], sA, thread, 64)
        cute.cooperative_copy(gB[None, None, step], sB, thread, 64)
        cute.arch.sync_threads()
        for k in range(8):
            a = [sA[y * 4 + i, k] for i in range(4)]
            b = [sB[k, x * 4 + j] for j in range(4)]
            for i in range(4):
                for j in range(4):
                    totals[i, j] += a[i] * b[j]
        cute.arch.sync_threads()
    mine = cute.local_tile(cute.local_tile(C, (32, 32), (bx, by)), (4, 4), (y, x))
    for i in range(4):
        for j in range(4):
            mine[i, j] = totals[i, j]


@cute.generic("M", "K", "N", "T")
@cute.kernel
def vectors(A: cute.Tensor[T, M, K], B: cute.Tensor[T, K, N], C: cute.Tensor[T, M, N]):
    """The tile of A is stored transposed, so that a thread's four values of A, of B and of C are contiguous."""
    bx, by, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    x, y = thread % 8, thread // 8
    sA = cute.smem_tensor(T, cute.make_layout((32, 8), stride=(1, 36)))
    sB = cute.smem_tensor(T, cute.make_layout((8, 32), stride=(32, 1)))
    gA, gB = cute.local_tile(A, (32, 8), (bx, None)), cute.local_tile(B, (8, 32), (None, by))
    totals = cute.make_rmem_tensor(cute.make_layout((4, 4), stride=(4, 1)), T)
    totals.fill(0)
    for step in range(K // 8):
        cute.cooperative_copy(gA[None, None, step], sA, thread, 64)
        cute.cooperative_copy(gB[None, None, step], sB, thread, 64)
        cute.arch.sync_threads()
        for k in range(8):
            a, b = cute.make_rmem_tensor(4, T), cute.make_rmem_tensor(4, T)
            cute.autovec_copy(cute.local_tile(sA[None, k], (4,), (y,)), a)
            cute.autovec_copy(cute.local_tile(sB[k, None], (4,), (x,)), b)
            for i in range(4):
                totals[i, None] = totals[i, None].load() + a[i] * b.load()
        cute.arch.sync_threads()
    cute.autovec_copy(totals, cute.local_tile(cute.local_tile(C, (32, 32), (bx, by)), (4, 4), (y, x)))


@cute.generic("M", "K", "N", "T")
@cute.kernel
def warps(A: cute.Tensor[T, M, K], B: cute.Tensor[T, K, N], C: cute.Tensor[T, M, N]):
    """A tiled MMA divides the tile of C among warps and lanes by a layout instead of index arithmetic.

    Two warps have 32 x 32 elements each, and the lanes of a warp are laid out 4 x 8.
    """
    bx, by, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(T), cute.make_layout((4, (8, 2), 1), stride=(8, (1, WARP), 0)))
    sA = cute.smem_tensor(T, cute.make_layout((32, 8), stride=(1, 36)))
    sB = cute.smem_tensor(T, cute.make_layout((64, 8), stride=(1, 64)))  # B as (N, K)
    gA, gB = cute.local_tile(A, (32, 8), (bx, None)), cute.local_tile(transposed(B), (64, 8), (by, None))
    part = mma.get_slice(thread)
    mine_c = part.partition_C(cute.local_tile(C, (32, 64), (bx, by)))
    totals = mma.make_fragment_C(mine_c)
    totals.fill(0)
    for step in range(K // 8):
        cute.cooperative_copy(gA[None, None, step], sA, thread, 64)
        cute.cooperative_copy(gB[None, None, step], sB, thread, 64)
        cute.arch.sync_threads()
        cute.gemm(mma, totals, sA, sB, accumulate=True, thread=thread)
        cute.arch.sync_threads()
    cute.autovec_copy(totals, mine_c)


def transposed(x: cute.Tensor) -> cute.Tensor:
    """Return a view with the modes exchanged. Nothing is copied."""
    return cute.make_tensor(x.iterator, cute.select(x.layout, [1, 0]))


# name -> kernel, (M, N) of a block's tile, threads of a block
RUNGS = {
    "naive": (naive, (16, 16), (16, 16)),
    "coalesced": (coalesced, (16, 16), (16, 16)),
    "shared": (shared, (16, 16), (16, 16)),
    "column": (column, (32, 32), 128),
    "square": (square, (32, 32), 64),
    "vectors": (vectors, (32, 32), 64),
    "warps": (warps, (32, 64), 64),
}


@cute.jit
def matmul(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, rung: cute.Constexpr[str]):
    kernel, tile, threads = RUNGS[rung]
    (m, k), n = A.shape, B.shape[1]
    assert m % tile[0] == 0 and n % tile[1] == 0 and k % 16 == 0, (
        f"matmul: M x N must be a multiple of {tile[0]} x {tile[1]} and K of 16, got {m} x {n} x {k}"
    )
    kernel[m, k, n, A.element_type](A, B, C).launch(grid=(m // tile[0], n // tile[1]), block=threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rung", choices=[*RUNGS, "all"], default="all")
    parser.add_argument("--m", type=int, default=64)
    parser.add_argument("--n", type=int, default=64)
    parser.add_argument("--k", type=int, default=48)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    if min(args.m, args.n, args.k) < 1:
        parser.error("--m, --n and --k must be at least 1")

    a = torch.randint(-4, 5, (args.m, args.k), device=args.device).float()
    b = torch.randint(-4, 5, (args.k, args.n), device=args.device).float()
    a_, b_ = cute.from_dlpack(a), cute.from_dlpack(b)
    for rung in RUNGS if args.rung == "all" else [args.rung]:
        c = torch.full((args.m, args.n), torch.nan, device=args.device)
        compiled = cute.compile(matmul, a_, b_, cute.from_dlpack(c), rung, device=args.device)
        if args.print_ir:
            print(compiled.mlir("trace"))
            continue
        compiled(a_, b_, cute.from_dlpack(c))
        torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=0, atol=0)
        print(f"{rung}: correct")


if __name__ == "__main__":
    main()
