"""C = A * B^T on Hopper: one warp loads tiles by TMA, warpgroups multiply them, and TMA stores the result.

A is (M, K), B (N, K) and C (M, N), 16-bit or 8-bit floats, each of any major mode that the instruction supports.

python examples/gemm_sm90.py
python examples/gemm_sm90.py --m 8192 --n 8192 --k 8192 --cluster 2,1
python examples/gemm_sm90.py --dtype float8_e4m3fn --c float32
python examples/gemm_sm90.py --a-major m --b-major n
"""

# REQUIRES: slow
# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @kernel(%a: !cute_nvgpu.atom.tma_load<f16, box = (64, 128), swizzle = 128>
# CHECK: cute.atom() : !cute_nvgpu.atom.wgmma<64x128x16, (f32,f16,f16,f32)
# CHECK: cute_nvgpu.arch.wgmma_fence
# CHECK: cute.gemm
# CHECK: cute_nvgpu.make_tma_load
# CHECK: gpu.launch_func
# RUN: %python %s --print-ir --cluster 2,1 --b-major n | FileCheck %s --check-prefix=CLUSTER
# CLUSTER: cute_nvgpu.arch.cluster_wait
# CLUSTER: field = multicast_mask
# CLUSTER: multicast = 2

import argparse

import torch

import cute_dialect.lang as cute
from cute_dialect.lang import hopper, pipeline
from cute_dialect.lang.nvgpu import cpasync, warpgroup
from cute_dialect.lang.utils import LayoutEnum, SmemAllocator

GROUP = 128  # threads of a warpgroup


class HopperGemm:
    """A GEMM with tiles of ``tile`` (M, N). The blocks of a cluster (along M, along N) share operands."""

    def __init__(self, tile=(128, 128), cluster=(1, 1), stages=4):
        self.groups = tile[0] // 64  # warpgroups that multiply, each 64 rows
        self.tile = tile
        self.cluster = cluster
        self.stages = stages

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cute.Stream | None = None):
        m, n = self.tile
        depth = 1024 // a.element_type.width  # 128 bytes: a row of the widest swizzle
        a_order, b_order, c_order = (LayoutEnum.from_tensor(x) for x in (a, b, c))
        mma = hopper.make_trivial_tiled_mma(
            a.element_type, b.element_type, hopper.major(a), hopper.major(b), cute.Float32, (self.groups, 1, 1), (64, n)
        )
        a_layout = hopper.make_smem_layout_a(a_order, (m, n, depth), a.element_type, self.stages)
        b_layout = hopper.make_smem_layout_b(b_order, (m, n, depth), b.element_type, self.stages)
        c_layout = hopper.make_smem_layout_epi(c.element_type, c_order, (m, n), 1)
        grid = [cute.round_up(cute.ceil_div(c.shape[i], self.tile[i]), self.cluster[i]) for i in range(2)]
        self.kernel(
            self.load(a, a_layout, (m, depth), self.cluster[1]), self.load(b, b_layout, (n, depth), self.cluster[0]),
            cpasync.make_tiled_tma_atom(
                cpasync.CopyBulkTensorTileS2GOp(), c, cute.slice_(c_layout, (None, None, 0)), (m, n)
            ),
            c.element_type, mma, a_layout, b_layout, c_layout,
        ).launch(grid=grid, block=(self.groups + 1) * GROUP, cluster=(*self.cluster, 1), stream=stream)  # fmt: skip

    def load(self, x, layout, tile, blocks):
        """Return the TMA atom that loads tiles of an operand for ``blocks`` blocks, and its coordinate tensor."""
        op = cpasync.CopyBulkTensorTileG2SMulticastOp() if blocks > 1 else cpasync.CopyBulkTensorTileG2SOp()
        return cpasync.make_tiled_tma_atom(op, x, cute.slice_(layout, (None, None, 0)), tile, num_multicast=blocks)

    @cute.kernel
    def kernel(self, a, b, c, c_type, mma, a_layout, b_layout, c_layout):
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        block = cute.arch.block_idx()
        (tma_a, mA), (tma_b, mB), (tma_c, mC) = a, b, c
        element = tma_a.value_type

        smem = SmemAllocator()
        sA = smem.allocate_tensor(element, a_layout.outer, 1024, a_layout.inner)
        sB = smem.allocate_tensor(element, b_layout.outer, 1024, b_layout.inner)
        sC = smem.allocate_tensor(c_type, c_layout.outer, 1024, c_layout.inner)

        blocks = cute.make_layout((1, *self.cluster, 1))
        place = blocks.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
        depth = cute.size(sA, mode=[1])
        warps = 4 * self.groups
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, warps * (sum(self.cluster) - 1)),
            tx_count=(self.tile[0] + self.tile[1]) * depth * element.width // 8,
            cta_layout_vmnk=blocks,
        )
        producer, consumer = pipe.make_participants()
        gA = cute.local_tile(mA, (self.tile[0], depth), (block.x, None))
        gB = cute.local_tile(mB, (self.tile[1], depth), (block.y, None))
        steps = cute.size(gA, mode=[2])

        if warp == warps:  # the first warp after the warpgroups that multiply
            mask_a = self.others(blocks, place, 2)
            mask_b = self.others(blocks, place, 1)
            to_a, of_a = self.parts(tma_a, place[2], self.cluster[1], sA, gA)
            to_b, of_b = self.parts(tma_b, place[1], self.cluster[0], sB, gB)
            with cute.arch.elect_one():
                for k in range(steps):
                    slot = producer.acquire_and_advance()
                    cute.copy(tma_a, of_a[None, k], to_a[None, slot.index], tma_bar_ptr=slot.barrier, mcast_mask=mask_a)
                    cute.copy(tma_b, of_b[None, k], to_b[None, slot.index], tma_bar_ptr=slot.barrier, mcast_mask=mask_b)
                producer.tail()
        elif warp < warps:
            part = mma.get_slice(thread)
            rA, rB = mma.make_fragment_A(part.partition_A(sA)), mma.make_fragment_B(part.partition_B(sB))
            acc = mma.make_fragment_C(mma.partition_shape_C(self.tile))
            acc.fill(0)
            for _ in range(steps):
                slot = consumer.wait_and_advance()
                warpgroup.fence()
                now = (None, None, None, slot.index)
                cute.gemm(mma, acc, rA[now], rB[now], accumulate=True)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                slot.release()
            self.store(mma, thread, acc, sC[None, None, 0], tma_c, cute.local_tile(mC, self.tile, (block.x, block.y)))

    def others(self, blocks, place, mode):
        """Return the multicast mask of the blocks along a mode of the cluster, or None if there is only one block."""
        if cute.size(blocks, mode=[mode]) == 1:
            return None
        return cpasync.create_tma_multicast_mask(blocks, place, mcast_mode=mode)

    def parts(self, tma, place, count, shared, tiles):
        """Return an operand's shared slots and global tiles, partitioned for its TMA atom: (one copy, index)."""
        whole = cute.make_layout(count)
        return cpasync.tma_partition(tma, place, whole, cute.group_modes(shared, 0, 2), cute.group_modes(tiles, 0, 2))

    def store(self, mma, thread, acc, sC, tma_c, gC):
        """Convert a tile of C and write it to shared memory, from which one warp stores it to global memory by TMA."""
        result = cute.make_fragment_like(acc, sC.element_type)
        result.store(acc.load().to(sC.element_type))
        mine = mma.get_slice(thread).partition_C(sC)
        cute.autovec_copy(result, mine)
        cute.arch.fence_view_async_shared()
        pipeline.NamedBarrier(1, self.groups * GROUP).arrive_and_wait()
        if cute.arch.warp_idx() == 0:
            cute.copy(tma_c, sC, gC)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0, read=True)


def operand(rows: int, columns: int, major_is_columns: bool, dtype: torch.dtype, device: str) -> torch.Tensor:
    """Return small integers, row-major or column-major."""
    shape = (rows, columns) if major_is_columns else (columns, rows)
    x = torch.randint(-2, 3, shape, device=device).to(dtype)
    return x if major_is_columns else x.t()


def check_size(m: int, n: int, k: int) -> None:
    """End the program if interpreting an M x N x K GEMM would take more than a minute."""
    seconds = 1.5e-8 * m * n * k  # of a laptop
    if seconds > 60:
        time = f"{seconds / 3600:.1f} hours" if seconds > 5400 else f"{seconds / 60:.0f} minutes"
        raise SystemExit(
            f"There is no GPU, and interpreting {m} x {n} x {k} on the CPU would take about {time}.\n"
            "Use a smaller size (--m 512 --n 512 --k 512 takes some seconds), or --device cpu to interpret it anyway."
        )


def two_integers(text: str) -> tuple[int, int]:
    m, n = map(int, text.split(","))
    return m, n


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--m", type=int, default=200)
    parser.add_argument("--n", type=int, default=256)
    parser.add_argument("--k", type=int, default=192)
    parser.add_argument(
        "--tile", type=two_integers, default=(128, 128), help="M,N of a block; M is 64, 128 or 192, N a multiple of 8"
    )
    parser.add_argument("--cluster", type=two_integers, default=(1, 1), help="blocks along M,N; at most 8")
    parser.add_argument("--dtype", default="float16", choices=["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
    parser.add_argument("--c", default="float16", choices=["float16", "bfloat16", "float32"])
    parser.add_argument("--a-major", default="k", choices=["k", "m"])
    parser.add_argument("--b-major", default="k", choices=["k", "n"])
    parser.add_argument("--device", choices=["cuda", "cpu"], help="default: cuda if there is a GPU, else cpu")
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    if min(args.m, args.n, args.k) < 1:
        parser.error("--m, --n and --k must be at least 1")
    if args.tile[0] not in (64, 128, 192) or args.tile[1] not in range(8, 257, 8):
        parser.error("--tile must be M,N where M is 64, 128 or 192, and N a multiple of 8 up to 256")
    if min(args.cluster) < 1 or args.cluster[0] * args.cluster[1] > 8:
        parser.error("--cluster must be M,N of at least 1 with a product of at most 8")
    for name, element in ((args.a_major, args.dtype), (args.b_major, args.dtype), ("n", args.c)):
        least = 16 // getattr(torch, element).itemsize
        if getattr(args, name) % least:
            parser.error(f"--{name} must be a multiple of {least}, for TMA")
    if args.device is None:
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
        if args.device == "cpu" and not args.print_ir:
            check_size(args.m, args.n, args.k)

    dtype = getattr(torch, args.dtype)
    a = operand(args.m, args.k, args.a_major == "k", dtype, args.device)
    b = operand(args.n, args.k, args.b_major == "k", dtype, args.device)
    c = torch.full((args.m, args.n), torch.nan, dtype=getattr(torch, args.c), device=args.device)
    gemm = cute.compile(HopperGemm(args.tile, args.cluster), a, b, c, device=args.device, chip="sm_90a")
    if args.print_ir:
        print(gemm.mlir("trace"))
        return
    gemm(a, b, c)
    expected = (a.float() @ b.float().t()).to(c.dtype)
    torch.testing.assert_close(c, expected, rtol=0, atol=0)
    print(f"{args.m} x {args.n} x {args.k} {args.dtype} on {args.device}: correct")


if __name__ == "__main__":
    main()
