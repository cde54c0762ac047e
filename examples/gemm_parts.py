"""C = A * B^T with interchangeable parts: loads by cp.async or TMA, MMAs by wgmma or mma.sync.

The four kernels differ only in their atoms. Each block has one tile of C and one buffer per operand. gemm_sm90.py shows
how to overlap loads with MMAs.

python examples/gemm_parts.py
python examples/gemm_parts.py --load tma --product mma_sync --m 256 --n 192 --k 128
"""

# REQUIRES: slow
# RUN: %python %s --load cp_async --product wgmma --print-ir | FileCheck %s --check-prefix=AW
# AW: cute_nvgpu.atom.simt_async_copy
# AW: cute_nvgpu.atom.wgmma
# RUN: %python %s --load cp_async --product mma_sync --print-ir | FileCheck %s --check-prefix=AM
# AM: cute_nvgpu.atom.simt_async_copy
# AM: cute_nvgpu.atom.mma_sync
# RUN: %python %s --load tma --product wgmma --print-ir | FileCheck %s --check-prefix=TW
# TW: cute_nvgpu.atom.tma_load
# TW: cute_nvgpu.atom.wgmma
# RUN: %python %s --load tma --product mma_sync --print-ir | FileCheck %s --check-prefix=TM
# TM: cute_nvgpu.atom.tma_load
# TM: cute_nvgpu.atom.mma_sync

import argparse

import torch

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import cpasync, warp, warpgroup

TILE = 64  # rows and columns of a block's tile, and its K; one warpgroup computes it
THREADS = 128


class CpAsync:
    """Each thread copies 16 bytes at a time by cp.async and waits for its own copies."""

    @staticmethod
    def plan(matrix, smem_layout):
        return None, matrix

    def __init__(self, thread):
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float16, num_bits_per_copy=128)
        threads, values = cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8))
        self.copy = cute.make_tiled_copy_tv(atom, threads, values).get_slice(thread)

    def __call__(self, tiles):
        for _, source, destination in tiles:
            cute.copy(self.copy, self.copy.partition_S(source), self.copy.partition_D(destination))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.fence_view_async_shared()  # wgmma reads shared memory through the async proxy
        cute.arch.sync_threads()


class Tma:
    """One thread issues TMA loads of whole tiles; all threads wait on an mbarrier that counts their bytes."""

    @staticmethod
    def plan(matrix, smem_layout):
        return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), matrix, smem_layout, (TILE, TILE))

    def __init__(self, thread):
        self.warp = cute.arch.warp_idx()
        self.bar = cute.arch.alloc_smem(cute.Int64, 1)
        self.phase = cute.Int32(0)
        if thread == 0:
            cute.arch.mbarrier_init(self.bar, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()

    def __call__(self, tiles):
        if self.warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(self.bar, len(tiles) * TILE * TILE * 2)
            for atom, source, destination in tiles:
                one = cute.make_layout(1)
                s, g = cute.group_modes(destination, 0, 2), cute.group_modes(source, 0, 2)
                to, of = cpasync.tma_partition(atom, 0, one, s, g)
                cute.copy(atom, of, to, tma_bar_ptr=self.bar)
        cute.arch.mbarrier_wait(self.bar, self.phase)
        self.phase = self.phase ^ 1


class Wgmma:
    """MMA of a warpgroup, which reads both operands from shared memory asynchronously."""

    @staticmethod
    def plan():
        return cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 64, 16)))

    def __init__(self, mma, thread, sA, sB):
        part = mma.get_slice(thread)
        self.mma = mma
        self.a, self.b = mma.make_fragment_A(part.partition_A(sA)), mma.make_fragment_B(part.partition_B(sB))

    def __call__(self, acc):
        warpgroup.fence()
        cute.gemm(self.mma, acc, self.a, self.b, accumulate=True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)


class MmaSync:
    """MMA of four warps, which load fragments with ldmatrix and multiply from registers."""

    @staticmethod
    def plan():
        return cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (2, 2, 1), (32, 32, 16))

    def __init__(self, mma, thread, sA, sB):
        part = mma.get_slice(thread)
        load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
        self.mma = mma
        self.a, self.b = mma.make_fragment_A(part.partition_A(sA)), mma.make_fragment_B(part.partition_B(sB))
        self.copy_a, self.copy_b = cute.make_tiled_copy_A(load, mma), cute.make_tiled_copy_B(load, mma)
        self.from_a, self.to_a = self.copy_a.get_slice(thread).partition_S(sA), self.copy_a.retile(self.a)
        self.from_b, self.to_b = self.copy_b.get_slice(thread).partition_S(sB), self.copy_b.retile(self.b)

    def __call__(self, acc):
        for k in cute.range_constexpr(cute.size(self.a, mode=[2])):
            step = (None, None, k)
            cute.copy(self.copy_a, self.from_a[step], self.to_a[step])
            cute.copy(self.copy_b, self.from_b[step], self.to_b[step])
            cute.gemm(self.mma, acc, self.a[step], self.b[step], accumulate=True)


@cute.kernel
def gemm_kernel(
    a: tuple, b: tuple, C: cute.Tensor, smem_layout: cute.ComposedLayout, mma: cute.TiledMma,
    load: cute.Constexpr, product: cute.Constexpr,
):  # fmt: skip
    thread, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    (atom_a, A), (atom_b, B) = a, b
    smem = cute.utils.SmemAllocator()
    sA, sB = (smem.allocate_tensor(cute.Float16, smem_layout.outer, 1024, smem_layout.inner) for _ in "AB")

    fill = load(thread)
    multiply = product(mma, thread, sA, sB)
    mine = mma.get_slice(thread).partition_C(cute.local_tile(C, (TILE, TILE), (m, n)))
    acc = mma.make_fragment_C(mma.partition_shape_C((TILE, TILE)))
    acc.fill(0)
    gA, gB = cute.local_tile(A, (TILE, TILE), (m, None)), cute.local_tile(B, (TILE, TILE), (n, None))
    for k in range(cute.size(gA, mode=[2])):
        fill([(atom_a, gA[None, None, k], sA), (atom_b, gB[None, None, k], sB)])
        multiply(acc)
        cute.arch.sync_threads()  # before the next tiles overwrite these
    cute.autovec_copy(acc, mine)


@cute.jit
def gemm(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, load: cute.Constexpr, product: cute.Constexpr):
    # Rows of 128 bytes with swizzled 16-byte chunks avoid bank conflicts, and suit both loads and both MMAs.
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16)
    smem_layout = cute.tile_to_shape(atom, (TILE, TILE), order=(0, 1))
    (m, n), k = C.shape, A.shape[1]
    assert m % TILE == n % TILE == k % TILE == 0, f"gemm: M, N and K must be multiples of {TILE}, got {m} x {n} x {k}"
    gemm_kernel(
        load.plan(A, smem_layout), load.plan(B, smem_layout), C, smem_layout, product.plan(), load, product
    ).launch(grid=(m // TILE, n // TILE), block=THREADS)


LOADS = {"cp_async": CpAsync, "tma": Tma}
PRODUCTS = {"wgmma": Wgmma, "mma_sync": MmaSync}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", choices=[*LOADS])
    parser.add_argument("--product", choices=[*PRODUCTS])
    parser.add_argument("--m", type=int, default=128)
    parser.add_argument("--n", type=int, default=64)
    parser.add_argument("--k", type=int, default=192)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    if min(args.m, args.n, args.k) < 1 or args.m % 64 or args.n % 64 or args.k % 64:
        parser.error("--m, --n and --k must be positive multiples of 64")

    a = torch.randint(-4, 5, (args.m, args.k), device=args.device).half()
    b = torch.randint(-4, 5, (args.n, args.k), device=args.device).half()
    for load in [args.load] if args.load else LOADS:
        for product in [args.product] if args.product else PRODUCTS:
            c = torch.full((args.m, args.n), torch.nan, device=args.device)
            given = [cute.from_dlpack(x) for x in (a, b, c)]
            compiled = cute.compile(gemm, *given, LOADS[load], PRODUCTS[product], device=args.device)
            if args.print_ir:
                print(compiled.mlir("trace"))
                continue
            compiled(*given)
            torch.testing.assert_close(c.double(), a.double() @ b.double().T, rtol=0, atol=0)
            print(f"{load} and {product}: correct")


if __name__ == "__main__":
    main()
