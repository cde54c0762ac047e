"""Persistent, warp-specialized Hopper GEMM: ``C[M,N] = A[M,K] * B[N,K]^T`` with TMA, mbarriers and wgmma.

Warpgroup 0 is the producer: one of its threads fills a ring of stages in shared memory by TMA. In a cluster, each
block loads its own tile of A. It also loads a slice of the shared tile of B, which is multicast to all blocks. The
other warpgroups are consumers. Each one multiplies 64 rows of A by the tile of B and keeps the accumulator in
registers. It converts the result and stores it through shared memory by TMA, 16 rows per warp, while the next tile is
multiplied.

The rasterization takes tiles in groups of ``group`` cluster rows. Odd groups go backwards, and every other tile
traverses K in reverse, so that the data read last is read again first, from the L2.

    gemm = HopperGemm()
    gemm(a, b, c)                        # torch tensors; the first call of a specialization compiles

python examples/hopper_gemm.py
python examples/hopper_gemm.py --m 8192 --n 8192 --k 8192 --tile 128,256,64
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @kernel
# CHECK: cute.gemm
# CHECK: gpu.launch_func

# ruff: noqa: F821  (the strings in annotations are names of extents)
# pyright: basic, reportOptionalMemberAccess=false

import argparse
from itertools import product
from typing import Any

import torch

import cute_dialect.lang as cute
from cute_dialect.lang import hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warpgroup

REGISTERS = {2: (40, 232), 3: (32, 160)}
"""Consumers -> registers per thread of the producer and of a consumer. One consumer needs no reallocation: 256 threads
have 255 registers each."""


class HopperGemm:
    """A GEMM of one configuration.

    Args:
        tile: (M, N, K) of a block, in elements.
        stages: Number of stages in shared memory.
        cluster_m: Blocks along M that share B.
        group: Cluster rows of a raster group.
        sms: Multiprocessors of the GPU.
    """

    def __init__(
        self, tile: tuple[int, int, int] = (128, 256, 64), *, stages: int = 4, cluster_m: int = 2, group: int = 8,
        sms: int = 132,
    ):  # fmt: skip
        self.tile, self.stages, self.cluster_m, self.group, self.sms = tile, stages, cluster_m, group, sms
        self.consumers = tile[0] // 64

    @cute.jit
    def __call__(self, A: cute.Tensor[None, "m", "k"], B: cute.Tensor[None, "n", "k"], C: cute.Tensor[None, "m", "n"]):
        """Compute ``C = A B^T``."""
        m, n, k = self.tile
        of_a, of_b, row = utils.LayoutEnum.from_tensor(A), utils.LayoutEnum.from_tensor(B), utils.LayoutEnum.ROW_MAJOR
        mma = hopper.make_trivial_tiled_mma(
            A.element_type, B.element_type, hopper.major(A), hopper.major(B), cute.Float32, (self.consumers, 1, 1),
            (64, n),
        )  # fmt: skip
        chunk = 1024 // C.element_type.width  # columns of C in 128 bytes
        smem_a = hopper.make_smem_layout_a(of_a, self.tile, A.element_type, self.stages)
        smem_b = hopper.make_smem_layout_b(of_b, self.tile, B.element_type, self.stages)
        smem_c = hopper.make_smem_layout_epi(C.element_type, row, (16, chunk), 4 * 2 * self.consumers)
        load_a, load_b = cpasync.G2S(), cpasync.G2SMulticast() if self.cluster_m > 1 else cpasync.G2S()
        first = (None, None, 0)
        tma_a = cpasync.make_tiled_tma_atom(load_a, A, cute.slice_(smem_a, first), (m, k))
        tma_b = cpasync.make_tiled_tma_atom(load_b, B, cute.slice_(smem_b, first), (n, k), num_multicast=self.cluster_m)
        tma_c = cpasync.make_tiled_tma_atom(cpasync.S2G(), C, cute.slice_(smem_c, first), (16, chunk))
        tiles = utils.GroupedRaster(
            cute.ceil_div(C.shape, (m * self.cluster_m, n)), self.group, serpentine=True, cluster=self.cluster_m,
            sms=self.sms,
        )  # fmt: skip
        self.kernel(tma_a, tma_b, tma_c, mma, smem_a, smem_b, smem_c, tiles, cute.ceil_div(A.shape[1], k)).launch(
            grid=tiles.persistent_grid(), block=128 * (1 + self.consumers), cluster=(self.cluster_m, 1, 1)
        )

    @cute.kernel(min_blocks=1)
    def kernel(
        self, tma_a: Any, tma_b: Any, tma_c: Any, mma: cute.TiledMma, smem_a: Any, smem_b: Any, smem_c: Any,
        tiles: utils.GroupedRaster, k_tiles: cute.Int32,
    ):  # fmt: skip
        """Compute every n-th tile, n being the number of clusters."""
        (load_a, A), (load_b, B), (store_c, C) = tma_a, tma_b, tma_c
        m, n, k = self.tile
        warp_group, warp = cute.arch.warpgroup_idx(), cute.arch.warp_idx() % 4
        rank = cute.arch.block_idx_in_cluster()
        if cute.arch.thread_idx().x == 0:
            for atom in (load_a, load_b, store_c):
                cpasync.prefetch_descriptor(atom)

        sA = cute.smem_tensor(load_a.value_type, smem_a.outer, 1024, smem_a.inner)
        sB = cute.smem_tensor(load_b.value_type, smem_b.outer, 1024, smem_b.inner)
        sC = cute.smem_tensor(store_c.value_type, smem_c.outer, 1024, smem_c.inner)
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages, producer_group=1,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.WarpGroup, self.consumers * self.cluster_m),
            tx_count=(m + n) * k * load_a.value_type.width // 8,
            cta_layout_vmnk=cute.make_layout((1, self.cluster_m, 1, 1)), defer_sync=True,
        )  # fmt: skip
        producer, consumer = pipe.make_participants()

        # Operands that TMA loads: this block's tile of A, and its slice of the cluster's tile of B.
        whole = cute.make_layout(1)
        blocks = cute.make_layout(self.cluster_m)
        gA, gB = cute.flat_divide(A, (m, k)), cute.flat_divide(B, (n, k))
        tAs, tAg = cpasync.tma_partition(load_a, 0, whole, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
        tBs, tBg = cpasync.tma_partition(load_b, rank, blocks, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2))
        mask = (1 << self.cluster_m) - 1 if self.cluster_m > 1 else None
        first, step = cute.arch.block_idx().x // self.cluster_m, cute.arch.grid_dim().x // self.cluster_m

        # The first loads of A signal only this block's barriers, so they start before the cluster barrier.
        early = cute.min(k_tiles, self.stages)
        row, column = tiles.place(first)
        if cute.arch.thread_idx().x == 0:
            for i in range(early):
                cute.arch.mbarrier_arrive_and_expect_tx(pipe.full(i), pipe.tx_count)
                cute.copy(load_a, tAg[None, row * self.cluster_m + rank, i], tAs[None, i], tma_bar_ptr=pipe.full(i))
        pipe.sync()

        if warp_group == 0:
            if self.consumers in REGISTERS:
                cute.arch.setmaxregister_decrease(REGISTERS[self.consumers][0])
            if warp == 0 and cute.arch.elect_one():
                for i in range(early):
                    cute.copy(load_b, tBg[None, column, i], tBs[None, i], tma_bar_ptr=pipe.full(i), mcast_mask=mask)
                producer.state.skip(early)
                done, backwards = early, cute.Boolean(False)
                for tile in range(first, tiles.count(), step):
                    row, column = tiles.place(tile)
                    for i in range(done, k_tiles):
                        slot = producer.acquire_and_advance()
                        at, bar = k_tiles - 1 - i if backwards else i, slot.barrier
                        mine, shared = tAg[None, row * self.cluster_m + rank, at], tBg[None, column, at]
                        cute.copy(load_a, mine, tAs[None, slot.index], tma_bar_ptr=bar)
                        cute.copy(load_b, shared, tBs[None, slot.index], tma_bar_ptr=bar, mcast_mask=mask)
                    done, backwards = cute.Int32(0), not backwards
        else:
            if self.consumers in REGISTERS:
                cute.arch.setmaxregister_increase(REGISTERS[self.consumers][1])
            mine = warp_group - 1
            thread = mma.get_slice(mine * 128)
            rA, rB = mma.make_fragment_A(thread.partition_A(sA)), mma.make_fragment_B(thread.partition_B(sB))
            acc = mma.make_fragment_C(mma.partition_shape_C((m, n)))
            out = cute.make_rmem_tensor_like(acc, store_c.value_type)
            store = _Store(store_c, C, sC, mine, warp)
            rows_before = column_before = cute.Int32(0)
            parts = n // store.chunk
            for tile in range(first, tiles.count(), step):
                row, column = tiles.place(tile)
                slot = consumer.wait_and_advance()
                _multiply(mma, acc, rA, rB, slot.index, accumulate=False)
                if tile != first:  # the previous tile is stored while this one is multiplied
                    store.parts(out, range(parts // 2), rows_before, column_before)
                slot = _products(mma, acc, rA, rB, consumer, slot, range(1, cute.min(k_tiles, 2)))
                if tile != first:
                    store.parts(out, range(parts // 2, parts), rows_before, column_before)
                slot = _products(mma, acc, rA, rB, consumer, slot, range(2, k_tiles))
                warpgroup.wait_group(0, acc)
                slot.release()
                out.store(acc.load().to(store_c.value_type))
                rows_before, column_before = (row * self.cluster_m + rank) * (m // 64) + mine, column * n
            store.parts(out, range(parts), rows_before, column_before)
            store.finish()
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


def _multiply(mma: Any, acc: Any, rA: Any, rB: Any, slot: Any, *, accumulate: bool) -> None:
    """Issue the MMAs of one stage."""
    warpgroup.fence()
    cute.gemm(mma, acc, rA[None, None, None, slot], rB[None, None, None, slot], accumulate=accumulate)
    warpgroup.commit_group()


def _products(mma: Any, acc: Any, rA: Any, rB: Any, consumer: Any, slot: Any, steps: Any) -> Any:
    """Multiply several stages, each while the previous one (``slot``) completes, and return the last slot."""
    for _ in steps:
        following = consumer.wait_and_advance()
        _multiply(mma, acc, rA, rB, following.index, accumulate=True)
        warpgroup.wait_group(1)
        slot.release()
        slot = following
    return slot


class _Store:
    """Store of 64 rows of a warpgroup: 128 bytes of columns at a time, through two buffers."""

    def __init__(self, atom: Any, C: Any, sC: Any, mine: Any, warp: Any):
        chunk = 1024 // atom.value_type.width
        self.atom, self.chunk, self.warp, self.lane = atom, chunk, warp, cute.arch.lane_idx()
        # sC is (16, chunk, 4 warps * 2 buffers * warpgroups)
        self.sC, self.first = sC, mine * 8
        thread_values = cute.make_layout(((4, 8), (2, 2, chunk // 8)), stride=((32, 1), (16, 8, 128)))
        stmatrix = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(False, 4), atom.value_type)
        self.copy = cute.make_tiled_copy(stmatrix, thread_values, (16, chunk))
        self.gC = cute.flat_divide(C, (16, chunk))

    def parts(self, out: Any, which: Any, rows: Any, column: Any) -> None:
        """Store chunks of ``chunk`` columns of a tile. ``rows`` is in units of 64 rows, ``column`` in elements."""
        for at in cute.range_constexpr(which.start, which.stop):
            self.part(out, at, rows, column)

    def part(self, out: Any, at: int, rows: Any, column: Any) -> None:
        """Store the chunk that starts at column ``at * chunk``."""
        if self.lane == 0:
            cute.arch.cp_async_bulk_wait_group(1, read=True)
        cute.arch.sync_warp()
        buffer = self.sC[None, None, self.first + (at % 2) * 4 + self.warp]
        thread = self.copy.get_slice(self.lane)
        layout = cute.make_layout(((2, 2, self.chunk // 8), 1, 1), stride=((1, 2, 4), 0, 0))
        values = cute.make_tensor(out.iterator + at * self.chunk // 2, layout)
        cute.copy(self.copy, thread.retile(values), thread.partition_D(buffer))
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        if self.lane == 0:
            where = self.gC[None, None, rows * 4 + self.warp, column // self.chunk + at]
            source, target = cpasync.tma_partition(
                self.atom, 0, cute.make_layout(1), cute.group_modes(buffer, 0, 2), cute.group_modes(where, 0, 2)
            )
            cute.copy(self.atom, source, target)
            cute.arch.cp_async_bulk_commit_group()

    def finish(self) -> None:
        """Wait until the stores have read their buffers."""
        if self.lane == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)


def three_integers(text: str) -> tuple[int, int, int]:
    m, n, k = map(int, text.split(","))
    return m, n, k


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, extent in (("--m", 384), ("--n", 256), ("--k", 192)):
        parser.add_argument(name, type=int, default=extent)
    parser.add_argument(
        "--tile", type=three_integers, default=(128, 128, 64), help="M,N,K of a block: M 128 or 192, N 128 or 256"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    if min(args.m, args.n, args.k) < 1:
        parser.error("--m, --n and --k must be at least 1")
    if args.n % 8 or args.k % 8:
        parser.error("--n and --k must be multiples of 8, for TMA")
    if args.tile not in product((128, 192), (128, 256), (32, 64)) or args.tile == (192, 256, 64):
        parser.error("--tile must be M,N,K where M is 128 or 192, N 128 or 256, and K 32 or 64, but not 192,256,64")

    m, n, k = args.m, args.n, args.k
    a, b = (torch.randint(-2, 3, (rows, k), device=args.device).half() for rows in (m, n))
    c = torch.full((m, n), torch.nan, dtype=torch.float16, device=args.device)
    gemm = cute.compile(HopperGemm(args.tile), a, b, c, device=args.device, chip="sm_90a")
    if args.print_ir:
        print(gemm.mlir("trace"))
        return
    gemm(a, b, c)
    torch.testing.assert_close(c, (a.float() @ b.float().t()).half(), rtol=0, atol=0)
    print(f"{m} x {n} x {k} on {args.device}: correct")


if __name__ == "__main__":
    main()
