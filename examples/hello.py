"""The smallest program: a kernel and its host function, compiled and called. ``make demo`` runs it.

python examples/hello.py                 # on the GPU if there is one, else on the CPU interpreter
python examples/hello.py --keep out      # the trace, the IR after each pass, and PTX
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @add_kernel
# CHECK: scf.if
# CHECK: arith.addf
# CHECK: func.func @add
# CHECK: gpu.launch_func

import argparse
import shutil
from pathlib import Path

import numpy as np

import cute_dialect.lang as cute

Vector = cute.Tensor["f32", "n"]  # element type and extent: cute-check traces `add` without arguments


@cute.kernel
def add_kernel(a: Vector, b: Vector, c: Vector):
    block, _, _ = cute.arch.block_idx()
    thread, _, _ = cute.arch.thread_idx()
    i = block * 128 + thread
    if i < cute.size(c):  # a dynamic condition, which becomes a branch in the kernel
        c[i] = a[i] + b[i]


@cute.jit
def add(a: Vector, b: Vector, c: Vector):
    add_kernel(a, b, c).launch(grid=cute.ceil_div(cute.size(c), 128), block=128)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--device", default="cuda" if shutil.which("nvidia-smi") else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the IR after each pass and the PTX there")
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    if args.n < 1:
        parser.error("--n must be at least 1")

    # numpy arrays are copied to the GPU and back. Arrays of torch, cupy and other DLPack libraries are used in place.
    a, b = np.random.default_rng(0).random((2, args.n), dtype=np.float32)
    c = np.zeros(args.n, np.float32)
    compiled = cute.compile(add, a, b, c, device=args.device)
    if args.print_ir:
        print(compiled.mlir())
        return
    compiled(a, b, c)
    assert (c == a + b).all()
    print(f"{args.n} sums on {'the GPU' if args.device == 'cuda' else 'the CPU interpreter'}, all correct:")
    for i in range(min(args.n, 3)):
        print(f"  {a[i]:.6f} + {b[i]:.6f} = {c[i]:.6f}")
    if args.keep is not None:
        args.keep.mkdir(parents=True, exist_ok=True)
        for number, (name, text) in enumerate({"trace": compiled.mlir(), **compiled.stages}.items()):
            (args.keep / f"{number:02}-{name}.mlir").write_text(text)
        (args.keep / "add.ptx").write_text(compiled.ptx)
        print(f"PTX: {args.keep}/add.ptx    IR after each pass: {args.keep}/*.mlir")


if __name__ == "__main__":
    main()
