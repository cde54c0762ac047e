"""The smallest kernel: a function for the host, a function for the GPU, compiled ahead of time and called.

python examples/hello.py
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @double_kernel
# CHECK: arith.mulf
# CHECK: func.func @double
# CHECK: gpu.launch_func

import argparse

import torch

import cute_dialect.lang as cute


@cute.kernel
def double_kernel(x: cute.Tensor, y: cute.Tensor):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 128 + thread
    if i < cute.size(x):  # known only when the kernel runs: a branch of the kernel
        y[i] = x[i] * 2


@cute.jit
def double(x: cute.Tensor, y: cute.Tensor):
    double_kernel(x, y).launch(grid=cute.ceil_div(cute.size(x), 128), block=128)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--print-ir", action="store_true", help="print what the functions are traced to, and end")
    args = parser.parse_args()

    x = torch.randn(args.n, device=args.device)
    y = torch.empty_like(x)
    compiled = cute.compile(double, x, y, device=args.device)
    if args.print_ir:
        print(compiled.mlir("trace"))
        return
    compiled(x, y)
    assert torch.equal(y, x * 2)
    print(f"{args.n} numbers doubled on {args.device}: {y[:3].tolist()} …")


if __name__ == "__main__":
    main()
