"""C = A + B for matrices of any shape, with a thread-value layout and predicated copies.

python examples/elementwise_add.py                        # on the GPU, or without one on the CPU interpreter
python examples/elementwise_add.py --m 300 --n 77 --dtype bfloat16 --device cpu
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: cute.make_tiled_copy
# CHECK: arith.addf
# CHECK: func.func @elementwise_add
# CHECK: gpu.launch_func

import argparse

import torch

import cute_dialect.lang as cute
from cute_dialect.lang.runtime import from_dlpack


@cute.kernel
def elementwise_add_kernel(
    gA: cute.Tensor, gB: cute.Tensor, gC: cute.Tensor, ids: cute.Tensor, shape: cute.Shape, tv: cute.Layout,
    tiler: cute.Shape,
):  # fmt: skip
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()

    # This block's tile of each matrix, and the coordinates of its elements.
    tile = ((None, None), block)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), gA.element_type)
    copy = cute.make_tiled_copy(atom, tv, tiler).get_slice(thread)
    mine_a, mine_b = copy.partition_S(gA[tile]), copy.partition_S(gB[tile])
    mine_c, mine_ids = copy.partition_D(gC[tile]), copy.partition_S(ids[tile])

    # Predicates: the values of this thread that are in bounds.
    inside = cute.make_fragment(mine_ids.shape, cute.Boolean)
    for i in range(cute.size(inside)):
        inside[i] = cute.elem_less(mine_ids[i], shape)

    a, b, c = (cute.make_fragment_like(x) for x in (mine_a, mine_b, mine_c))
    cute.copy(atom, mine_a, a, pred=inside)
    cute.copy(atom, mine_b, b, pred=inside)
    c.store(a.load() + b.load())
    cute.copy(atom, c, mine_c, pred=inside)


@cute.jit
def elementwise_add(mA, mB, mC, copy_bits: cute.Constexpr = 128):
    vector = copy_bits // mA.element_type.width
    threads = cute.make_ordered_layout((4, 32), order=(1, 0))
    values = cute.make_ordered_layout((4, vector), order=(1, 0))
    tiler, tv = cute.make_layout_tv(threads, values)

    gA, gB, gC = (cute.zipped_divide(m, tiler) for m in (mA, mB, mC))
    ids = cute.zipped_divide(cute.make_identity_tensor(mC.shape), tiler=tiler)
    elementwise_add_kernel(gA, gB, gC, ids, mC.shape, tv, tiler).launch(
        grid=[cute.size(gC, mode=[1]), 1, 1], block=[cute.size(tv, mode=[0]), 1, 1]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--m", type=int, default=129)
    parser.add_argument("--n", type=int, default=257)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16", "bfloat16", "int32"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    if min(args.m, args.n) < 1:
        parser.error("--m and --n must be at least 1")

    a, b = (torch.randint(-9, 9, (args.m, args.n), device=args.device).to(getattr(torch, args.dtype)) for _ in "ab")
    c = torch.full_like(a, 99)

    # Compile for a plain torch tensor, and for one that is marked to have a dynamic layout.
    marked = from_dlpack(c).mark_layout_dynamic()
    add = cute.compile(elementwise_add, a, b, marked, device=args.device)
    if args.print_ir:
        print(add.mlir("trace"))
        return
    add(a, b, marked)
    torch.testing.assert_close(c, a + b)
    print(f"{args.m} x {args.n} {args.dtype} on {args.device}: correct")


if __name__ == "__main__":
    main()
