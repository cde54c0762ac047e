"""C = A * B in the style of mlir-python-extras: explicit loop-carried values, and a hand-written cache.

python examples/yielding_product.py
python examples/yielding_product.py --m 64 --n 32 --k 100 --device cpu
"""

# ruff: noqa: B020, F821  (M, K, N and T are generic parameters; with Python 3.12: def product[M, K, N, T](…), without
# @cute.generic)
# pyright: reportUndefinedVariable=false
# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @product
# CHECK: scf.for {{.*}} iter_args
# CHECK: scf.yield

from __future__ import annotations

import argparse

import torch

import cute_dialect.lang as cute
from cute_dialect.lang.extras import arith, block_dim, block_idx, gpu, range_, thread_idx


@cute.generic("M", "K", "N", "T")
@gpu.func
def product(A: cute.Tensor[T, M, K], B: cute.Tensor[T, K, N], C: cute.Tensor[T, M, N]):
    """Compute one element of C per thread."""
    row = block_dim.x * block_idx.x + thread_idx.x
    column = block_dim.y * block_idx.y + thread_idx.y
    if row < M and column < N:
        total = arith.constant(0, type=T)
        for k, total in range_(K, iter_args=[total]):  # without iter_args, the loop-carried values are inferred
            total = total + A[row, k] * B[k, column]
            total = yield total
        C[row, column] = total


@cute.jit
def multiply(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
    m, n = C.shape
    product(A, B, C).launch(grid=(cute.ceil_div(m, 8), cute.ceil_div(n, 16)), block=(8, 16))


compiled: dict[str, cute.Compiled] = {}


def multiply_by_key(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, device: str) -> None:
    """Multiply with a function that is compiled for these sizes only, and cached by a key.

    Calls of ``multiply`` cache their compiled functions as well. This example shows how a program does so itself.
    """
    key = f"{a.dtype}_{a.shape[0]}_{a.shape[1]}_{b.shape[1]}"
    given = [cute.from_dlpack(x) for x in (a, b, c)]
    if key not in compiled:
        compiled[key] = cute.compile(multiply, *given, device=device)
    compiled[key](*given)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--m", type=int, default=20)
    parser.add_argument("--n", type=int, default=33)
    parser.add_argument("--k", type=int, default=12)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    if min(args.m, args.n, args.k) < 1:
        parser.error("--m, --n and --k must be at least 1")

    a = torch.randint(-4, 5, (args.m, args.k), device=args.device).float()
    b = torch.randint(-4, 5, (args.k, args.n), device=args.device).float()
    c = torch.full((args.m, args.n), torch.nan, device=args.device)
    if args.print_ir:
        given = [cute.from_dlpack(x) for x in (a, b, c)]
        print(cute.compile(multiply, *given, device=args.device).mlir("trace"))
        return
    for matrix in (a, a + 1, a[: args.m // 2]):
        out = c[: matrix.shape[0]]
        multiply_by_key(matrix, b, out, args.device)
        assert torch.equal(out, matrix @ b)
    print(f"three products, {len(compiled)} compiled functions: correct")


if __name__ == "__main__":
    main()
