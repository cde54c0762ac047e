"""Blackwell GEMM: ``C[M,N] = A[M,K] * B[N,K]^T`` with TMA, tcgen05.mma and tensor memory.

Warp 0 loads tiles of A and B into a ring of stages by TMA. Warp 1 allocates tensor memory and issues the MMAs, whose
accumulator is there. Warps 4 to 7 load the accumulator, 32 rows per warp, and store it as f16.

With ``--pair`` two blocks of a cluster compute a tile of twice the rows. Each block loads its half of A and B, and
stores its half of the accumulator. Warp 1 of the even block issues the MMAs for both.

The interpreter runs the kernel without a GPU, and checks the order of its tcgen05 instructions by the text of the PTX
ISA (``checks="strict"``). ``--bug`` selects a mistake that it reports.

python examples/blackwell_gemm.py
python examples/blackwell_gemm.py --k 320 --schedule adversarial
python examples/blackwell_gemm.py --bug never-freed
python examples/blackwell_gemm.py --pair
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @kernel
# CHECK: cute_nvgpu.arch.tmem_alloc
# CHECK: cute.gemm
# CHECK: cute_nvgpu.arch.tmem_dealloc

# ruff: noqa: F821  (the strings in annotations are names of extents)
# pyright: basic, reportOptionalMemberAccess=false

import argparse
from typing import Any

import torch

import cute_dialect.lang as cute
from cute_dialect.lang import blackwell, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05

BUGS = ("no-wait", "wrong-phase", "never-freed", "half-bytes", "both-issue")
"""Mistakes: the epilogue does not wait for the commit, waits for the wrong phase, or the memory is never freed.

For a pair: the even block expects the bytes of one block, or both blocks issue the MMAs.
"""


class BlackwellGemm:
    """A GEMM of one configuration.

    Args:
        tile: (M, N, K) of a tile, in elements; M is 128 for each block.
        stages: Number of stages in shared memory.
        pair: Compute a tile by a pair of blocks.
        bug: One of ``BUGS``, or "" for the correct kernel.
    """

    def __init__(self, tile: tuple[int, int, int] | None = None, *, stages: int = 3, pair: bool = False, bug: str = ""):
        self.blocks = 2 if pair else 1
        self.tile = (128 * self.blocks, 64, 64) if tile is None else tile
        self.stages, self.bug = stages, bug

    @cute.jit
    def __call__(self, A: cute.Tensor[None, "m", "k"], B: cute.Tensor[None, "n", "k"], C: cute.Tensor[None, "m", "n"]):
        """Compute ``C = A B^T``."""
        m, n, _ = self.tile
        group = tcgen05.CtaGroup(self.blocks)
        mma = cute.make_tiled_mma(tcgen05.MmaF16BF16Op(A.element_type, cute.Float32, (m, n, 16), group))
        smem_a = blackwell.make_smem_layout_a(mma, self.tile, A.element_type, self.stages)
        smem_b = blackwell.make_smem_layout_b(mma, self.tile, B.element_type, self.stages)
        load, one = cpasync.G2S(group), [0, 1, 2]
        tma_a = cute.nvgpu.make_tiled_tma_atom_A(load, A, cute.select(smem_a, one), self.tile, mma)
        tma_b = cute.nvgpu.make_tiled_tma_atom_B(load, B, cute.select(smem_b, one), self.tile, mma)
        rows, columns = cute.ceil_div(C.shape, (m, n))
        grid, cluster = (rows * self.blocks, columns, 1), (self.blocks, 1, 1)
        self.kernel(tma_a, tma_b, C, mma, smem_a, smem_b).launch(grid=grid, block=256, cluster=cluster)

    @cute.kernel(min_blocks=1)
    def kernel(self, tma_a: Any, tma_b: Any, C: cute.Tensor, mma: cute.TiledMma, smem_a: Any, smem_b: Any):
        """Compute the tile of the block."""
        (load_a, A), (load_b, B) = tma_a, tma_b
        m, n, k = self.tile
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        x, column, _ = cute.arch.block_idx()
        row, half = x // self.blocks, x % self.blocks  # half: the block's position in its pair
        cluster = cute.tiled_divide(cute.make_layout((self.blocks, 1, 1)), (mma.thr_id,))  # (V, M, N, K)

        sA = cute.smem_tensor(load_a.value_type, smem_a.outer, 1024, smem_a.inner)
        sB = cute.smem_tensor(load_b.value_type, smem_b.outer, 1024, smem_b.inner)
        slot = cute.arch.alloc_smem(cute.Int32, 1)
        bytes = (m + n) * k * load_a.value_type.width // 8  # those of both blocks
        producer, consumer = pipeline.PipelineTmaUmma.create(
            num_stages=self.stages, producer_group=1, consumer_group=1, cta_layout_vmnk=cluster, defer_sync=True,
            tx_count=bytes // 2 if self.bug == "half-bytes" else bytes,
        ).make_participants()  # fmt: skip
        full, ready = pipeline.PipelineUmmaAsync.create(
            num_stages=1, producer_group=1, consumer_group=128 * self.blocks, cta_layout_vmnk=cluster, defer_sync=True
        ).make_participants()
        tmem = utils.TmemAllocator(
            slot, pipeline.NamedBarrier(0, 256), allocator_warp_id=1, is_two_cta=self.blocks == 2,
            two_cta_tmem_dealloc_mbar_ptr=cute.arch.alloc_smem(cute.Int64, 1) if self.blocks == 2 else None,
        )  # fmt: skip
        pipeline.pipeline_init_arrive((self.blocks, 1, 1))
        pipeline.pipeline_init_wait((self.blocks, 1, 1))
        acc = mma.make_fragment_C(mma.partition_shape_C((m, n)))
        tmem.allocate(utils.get_num_tmem_alloc_cols(acc))
        tmem.relinquish_alloc_permit()
        tmem.wait_for_alloc()
        pointer = tmem.retrieve_ptr(cute.Float32)
        acc = cute.make_tensor(pointer, acc.layout)

        thread_mma = mma.get_slice(half)
        gA, gB = cute.local_tile(A, (m, k), (row, None)), cute.local_tile(B, (n, k), (column, None))
        whole = cute.make_layout(1)
        tAs, tAg = cpasync.tma_partition(
            load_a, 0, whole, cute.group_modes(sA, 0, 3), cute.group_modes(thread_mma.partition_A(gA), 0, 3)
        )
        tBs, tBg = cpasync.tma_partition(
            load_b, 0, whole, cute.group_modes(sB, 0, 3), cute.group_modes(thread_mma.partition_B(gB), 0, 3)
        )
        rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
        k_tiles = cute.size(gA, mode=[2])

        if warp == 0 and cute.arch.elect_one():
            for i in range(k_tiles):
                stage = producer.acquire_and_advance()
                cute.copy(load_a, tAg[None, i], tAs[None, stage.index], tma_bar_ptr=stage.barrier)
                cute.copy(load_b, tBg[None, i], tBs[None, stage.index], tma_bar_ptr=stage.barrier)
            if cute.const_expr(self.blocks == 2):
                producer.tail()  # The other block still signals barriers of this one.
        elif warp == 1 and (half == 0 or self.bug == "both-issue") and cute.arch.elect_one():
            for i in range(k_tiles):
                stage = consumer.wait_and_advance()
                at = (None, None, None, stage.index)
                cute.gemm(mma, acc, rA[at], rB[at], accumulate=i > 0)
                stage.release()
            full.commit()
        elif warp >= 4:
            if cute.const_expr(self.bug == "wrong-phase"):
                ready.advance()
            if cute.const_expr(self.bug != "no-wait"):
                ready.wait()
            thread = cute.arch.thread_idx().x - 128
            matrix = acc[(None, None), 0, 0]  # (M, N)
            atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cute.Float32)
            load = tcgen05.make_tmem_copy(atom, matrix).get_slice(thread)
            source = load.partition_S(matrix)
            target = load.partition_D(
                thread_mma.partition_C(cute.local_tile(C, (m, n), (row, column)))[(None, None), 0, 0]
            )
            for i in cute.range_constexpr(cute.size(source, mode=[2])):
                values = cute.make_rmem_tensor(target[None, None, i].shape, cute.Float32)
                cute.copy(load, source[None, None, i], values)
                out = cute.make_rmem_tensor_like(values, C.element_type)
                out.store(values.load().to(C.element_type))
                cute.autovec_copy(out, target[None, None, i])
            tcgen05.fence_before_thread_sync()
        cute.arch.sync_threads()
        if cute.const_expr(self.bug != "never-freed"):
            tmem.free(pointer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, extent in (("--m", 256), ("--n", 128), ("--k", 192)):
        parser.add_argument(name, type=int, default=extent)
    parser.add_argument("--pair", action="store_true", help="compute each tile by a pair of blocks")
    parser.add_argument("--bug", default="", choices=["", *BUGS])
    parser.add_argument(
        "--schedule",
        choices=("round-robin", "reverse", "random", "adversarial"),
        default="round-robin",
        help="order in which the interpreter runs the warps",
    )
    parser.add_argument("--device", default="cpu", choices=["cuda", "cpu"])
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    rows = 256 if args.pair else 128
    if min(args.m, args.n, args.k) < 1 or args.m % rows or args.n % 64 or args.k % 8:
        parser.error(f"--m must be a positive multiple of {rows}, --n of 64 and --k of 8")

    m, n, k = args.m, args.n, args.k
    a, b = (torch.randint(-2, 3, (rows, k), device=args.device).half() for rows in (m, n))
    c = torch.full((m, n), torch.nan, dtype=torch.float16, device=args.device)
    gemm = cute.compile(BlackwellGemm(pair=args.pair, bug=args.bug), a, b, c, device=args.device, chip="sm_100a")
    if args.print_ir:
        print(gemm.mlir("trace"))
        return
    interpreted = {"checks": ("race", "oob", "uninit", "sync", "strict"), "schedule": args.schedule}
    gemm(a, b, c, **interpreted if args.device == "cpu" else {})
    torch.testing.assert_close(c, (a.float() @ b.float().t()).half(), rtol=0, atol=0)
    print(f"{m} x {n} x {k} on {args.device}: correct")


if __name__ == "__main__":
    main()
