"""Shared-memory operands of wgmma: matrix descriptors and layouts for each swizzle.

python examples/descriptors.py --n 128
"""

# RUN: %python %s | FileCheck %s
# CHECK: tile      64x128x16 (M x N x K)
# CHECK: B         in shared memory, k-major, by matrix descriptors: swizzle 0: LBO 2048, SBO 128; swizzle 32: LBO 16,
# CHECK: a stage of A, K_SW128: S<3,4,3> o 0 o ((8,8),(64,1)):((64,512),(1,0))
# CHECK: threads   128, values of Float16
# CHECK: sm_80 multiplies BFloat16 by fma 1x1x1 (bf16,bf16,bf16,bf16); mma_sync 16x8x8, 16x8x16 (f32,bf16,bf16,f32)

import argparse

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import cpasync, warpgroup


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=128, help="columns of the instruction")
    args = parser.parse_args()
    if args.n % 8 != 0 or not 8 <= args.n <= 256:
        parser.error("--n must be a multiple of 8 from 8 to 256")

    # A tile of 64 x N x 64 is four MMAs of K = 16. LBO and SBO are the byte offsets between core matrices of 8 x 8.
    mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, args.n, 16)))
    print(mma.describe())
    for kind in warpgroup.SmemLayoutAtomKind:
        if kind.name.startswith("K_SW"):
            atom = warpgroup.make_smem_layout_atom(kind, cute.Float16)
            print(f"a stage of A, {kind.name}: {cute.tile_to_shape(atom, (64, 64), order=(0, 1))}")

    load = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float16, num_bits_per_copy=128)
    threads, values = cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8))
    print(cute.make_tiled_copy_tv(load, threads, values).describe())
    print(f"sm_80 multiplies BFloat16 by {'; '.join(cute.atoms('sm_80', cute.BFloat16))}")


if __name__ == "__main__":
    main()
