"""Mixed-input GEMM for Blackwell: ``D = (scale * A) B^T`` with A of int8, int4 or fp8, and B of bf16.

The weights A have a scale for each row and each 64 elements along K. ``tcgen05.mma`` multiplies operands of one kind,
so four warps convert A. Warp 0 loads tiles of A and B by TMA. Warps 4 to 7 load a tile of A from shared memory,
multiply it by its scales, and store it as bf16 to tensor memory (or to shared memory, with ``--operand smem``). Warp 1
issues the MMAs. Then warps 4 to 7 store the accumulator as f32.

The interpreter checks the kernel, and the result is compared with float64. ``--bug`` selects a mistake.

python examples/blackwell_mixed_gemm.py
python examples/blackwell_mixed_gemm.py --format int4 --k 512 --schedule adversarial
python examples/blackwell_mixed_gemm.py --format fp8 --operand smem
python examples/blackwell_mixed_gemm.py --bug no-store-wait
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @kernel
# CHECK: cute.gemm
# CHECK: cute.copy({{.*}}tmem_store

# pyright: basic, reportOptionalMemberAccess=false

import argparse
from typing import Any

import ml_dtypes
import numpy as np

import cute_dialect.lang as cute
from cute_dialect.lang import blackwell, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05

FORMATS = {"int8": cute.Int8, "int4": cute.Int8, "fp8": cute.Float8E4M3FN}
"""The element type of A in memory. A byte of int4 holds two elements, the first in the low half."""

BUGS = (
    "no-operand-wait",
    "no-store-wait",
    "early-release",
    "early-operand",
    "overlap",
    "no-wait",
    "wrong-scale",
    "never-freed",
)
"""Mistakes.

The MMAs do not wait for the converted tile; it is committed before its stores are complete; a stage of A is released
before it is read; the converted tile is released before the MMAs that read it; it lies in the columns of the
accumulator; the epilogue does not wait; all tiles have the scales of the first; tensor memory is not freed.
"""

M, N, K = 128, 128, 64
"""The tile of a block. K is also the number of elements that share a scale."""
GROUP = 128
"""Threads that convert A: one per row of a tile."""
SLOTS = 2
"""Converted tiles of A."""


class MixedGemm:
    """A mixed-input GEMM.

    Args:
        format: one of ``FORMATS``.
        operand: memory of the converted tiles, "tmem" or "smem".
        stages: number of stages of A and B in shared memory.
        bug: one of ``BUGS``, or "" for the correct kernel.
    """

    def __init__(self, format: str, *, operand: str = "tmem", stages: int = 3, bug: str = ""):
        self.format, self.operand, self.stages, self.bug = format, operand, stages, bug
        self.width = 64 if format != "int4" else 32  # bytes of a row of a tile of A

    @cute.jit
    def __call__(self, A: cute.Tensor, B: cute.Tensor, scale: cute.Tensor, D: cute.Tensor):
        """Multiply A (M, K), or (M, K / 2) bytes of int4, by B (N, K); ``scale`` is (M, K / 64)."""
        A = cute.recast_tensor(A, FORMATS[self.format])
        k, one = tcgen05.OperandMajorMode.K, tcgen05.CtaGroup.ONE
        source = tcgen05.OperandSource.TMEM if self.operand == "tmem" else tcgen05.OperandSource.SMEM
        mma = blackwell.make_trivial_tiled_mma(cute.BFloat16, k, k, cute.Float32, one, (M, N), source)
        raw = blackwell.make_smem_layout(k, (M, self.width), A.element_type, self.stages)
        smem_b = blackwell.make_smem_layout_b(mma, (M, N, K), cute.BFloat16, self.stages)
        load = cpasync.G2S()
        maps = (
            cpasync.make_tiled_tma_atom(load, A, cute.select(raw, [0, 1]), (M, self.width)),
            cute.nvgpu.make_tiled_tma_atom_B(load, B, cute.select(smem_b, [0, 1, 2]), (M, N, K), mma),
        )
        rows, columns = cute.ceil_div(D.shape, (M, N))
        self.kernel(maps, scale, D, mma, raw, smem_b).launch(grid=(rows, columns, 1), block=256)

    @cute.kernel(min_blocks=1)
    def kernel(self, maps: Any, scale: cute.Tensor, D: cute.Tensor, mma: cute.TiledMma, raw: Any, smem_b: Any):
        """Compute the tile of the block."""
        (load_a, A), (load_b, B) = maps
        warp, thread = cute.arch.make_warp_uniform(cute.arch.warp_idx()), cute.arch.thread_idx().x % GROUP
        row, column, _ = cute.arch.block_idx()
        sA = cute.smem_tensor(load_a.value_type, raw.outer, 1024, raw.inner)
        sB = cute.smem_tensor(cute.BFloat16, smem_b.outer, 1024, smem_b.inner)
        slot = cute.arch.alloc_smem(cute.Int32, 1)
        stages = {"num_stages": self.stages, "producer_group": 1, "defer_sync": True}
        a = pipeline.PipelineTmaAsync.create(consumer_group=4, tx_count=M * self.width, **stages)
        b = pipeline.PipelineTmaUmma.create(consumer_group=1, tx_count=N * K * 2, **stages)
        converted = pipeline.PipelineAsyncUmma.create(
            num_stages=SLOTS, producer_group=GROUP, consumer_group=1, defer_sync=True
        )
        full, ready = pipeline.PipelineUmmaAsync.create(
            num_stages=1, producer_group=1, consumer_group=GROUP, defer_sync=True
        ).make_participants()
        tmem = utils.TmemAllocator(slot, pipeline.NamedBarrier(0, 256), allocator_warp_id=1)
        tmem.allocate(256)
        tmem.relinquish_alloc_permit()
        tmem.wait_for_alloc()
        pointer = tmem.retrieve_ptr(cute.Float32)
        acc = cute.make_tensor(pointer, mma.make_fragment_C(mma.partition_shape_C((M, N))).layout)
        operands = self.operands(mma, pointer)

        k_tiles = cute.size(B, mode=[1]) // K
        rB = mma.make_fragment_B(sB)
        if warp == 0 and cute.arch.elect_one():
            gA = cute.group_modes(cute.local_tile(A, (M, self.width), (row, None)), 0, 2)
            gB = cute.group_modes(mma.get_slice(0).partition_B(cute.local_tile(B, (N, K), (column, None))), 0, 3)
            tAs, tAg = cpasync.tma_partition(load_a, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), gA)
            tBs, tBg = cpasync.tma_partition(load_b, 0, cute.make_layout(1), cute.group_modes(sB, 0, 3), gB)
            raw_a, raw_b = a.make_producer(), b.make_producer()
            for i in range(k_tiles):
                stage = raw_a.acquire_and_advance()
                cute.copy(load_a, tAg[None, i], tAs[None, stage.index], tma_bar_ptr=stage.barrier)
                stage = raw_b.acquire_and_advance()
                cute.copy(load_b, tBg[None, i], tBs[None, stage.index], tma_bar_ptr=stage.barrier)
            raw_b.tail()  # The MMA warp commits the last stages, too.
        elif warp == 1 and cute.arch.elect_one():
            tiles_a, tiles_b = converted.make_consumer(), b.make_consumer()
            for i in range(k_tiles):
                stage = tiles_b.wait_and_advance()
                tile = tiles_a.wait_and_advance(True if self.bug == "no-operand-wait" else None)
                if cute.const_expr(self.bug == "early-operand"):
                    tile.release()
                a_tile = self.operand_of(mma, operands, tile.index)
                cute.gemm(mma, acc, a_tile, rB[None, None, None, stage.index], accumulate=i > 0)
                if cute.const_expr(self.bug != "early-operand"):
                    tile.release()
                stage.release()
            full.commit()
        elif warp >= 4:
            tiles, out = a.make_consumer(), converted.make_producer()
            for i in range(k_tiles):
                factor = scale[row * M + thread, 0 if self.bug == "wrong-scale" else i]
                stage = tiles.wait_and_advance()
                if cute.const_expr(self.bug == "early-release"):
                    stage.release()
                bytes = cute.make_rmem_tensor(self.width, sA.element_type)
                cute.autovec_copy(sA[thread, None, stage.index], bytes)
                if cute.const_expr(self.bug != "early-release"):
                    stage.release()
                values = self.convert(bytes, factor)
                tile = out.acquire_and_advance()
                self.store(operands, values, thread, tile.index)
                if cute.const_expr(self.bug != "no-store-wait"):
                    if cute.const_expr(self.operand == "tmem"):
                        cute.arch.fence_view_async_tmem_store()
                    else:
                        cute.arch.fence_view_async_shared()
                tile.commit()
            if cute.const_expr(self.bug != "no-wait"):
                ready.wait()
                out.tail()
            self.epilogue(acc, cute.local_tile(D, (M, N), (row, column)), thread)
        cute.arch.sync_threads()
        if cute.const_expr(self.bug != "never-freed"):
            tmem.free(pointer)

    def operands(self, mma: cute.TiledMma, pointer: cute.Pointer) -> cute.Tensor:
        """Return the converted tiles as matrices of bf16, (M, K, slots)."""
        if self.operand == "smem":
            layout = blackwell.make_smem_layout(tcgen05.OperandMajorMode.K, (M, K), cute.BFloat16, SLOTS)
            return cute.smem_tensor(cute.BFloat16, layout.outer, 1024, layout.inner)
        # A column of tensor memory holds two elements of bf16. The tiles follow the accumulator.
        first = cute.recast_ptr(pointer + (N - 64 if self.bug == "overlap" else N), dtype=cute.BFloat16)
        return cute.make_tensor(first, cute.make_layout((M, K, SLOTS), stride=(1 << 17, 1, K)))

    def operand_of(self, mma: cute.TiledMma, operands: cute.Tensor, slot: Any) -> cute.Tensor:
        """Return a converted tile as operand A of the MMA."""
        if self.operand == "smem":
            layout = blackwell.make_smem_layout_a(mma, (M, N, K), cute.BFloat16, SLOTS)
            return mma.make_fragment_A(cute.make_tensor(operands.iterator, layout.outer))[None, None, None, slot]
        layout = mma.make_fragment_A(mma.partition_shape_A((M, K))).layout
        return cute.make_tensor(operands[None, None, slot].iterator, layout)

    def convert(self, bytes: cute.Tensor, factor: cute.Float32) -> cute.Tensor:
        """Return the elements of a row, times their scale, as bf16."""
        wide = cute.make_rmem_tensor(K, cute.Float32)
        if cute.const_expr(self.format == "int4"):
            for i in cute.range_constexpr(K):
                byte = cute.Int32(bytes[i // 2])
                wide[i] = cute.Float32((byte << (28 - 4 * (i % 2))) >> 28)  # shifts extend the sign
        else:
            wide.store(bytes.load().to(cute.Float32))
        rounded = cute.make_rmem_tensor(K, cute.BFloat16)
        rounded.store((wide.load() * factor).to(cute.BFloat16))
        return rounded

    def store(self, operands: cute.Tensor, values: cute.Tensor, thread: Any, slot: Any) -> None:
        """Store a row of a converted tile."""
        tile = operands[None, None, slot]
        if cute.const_expr(self.operand == "smem"):
            cute.autovec_copy(values, tile[thread, None])
        else:
            atom = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), cute.BFloat16)
            copy = tcgen05.make_tmem_copy(atom, tile).get_slice(thread)
            cute.copy(copy, cute.make_tensor(values.iterator, cute.make_layout((K, 1, 1))), copy.partition_D(tile))

    def epilogue(self, acc: cute.Tensor, D: cute.Tensor, thread: Any) -> None:
        """Store the accumulator."""
        matrix = acc[(None, None), 0, 0]
        atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cute.Float32)
        load = tcgen05.make_tmem_copy(atom, matrix).get_slice(thread)
        source, target = load.partition_S(matrix), load.partition_D(D)
        for i in cute.range_constexpr(cute.size(source, mode=[2])):
            values = cute.make_rmem_tensor(target[None, None, i].shape, cute.Float32)
            cute.copy(load, source[None, None, i], values)
            cute.autovec_copy(values, target[None, None, i])
        tcgen05.fence_before_thread_sync()


def weights(rng: np.random.Generator, format: str, m: int, k: int) -> tuple[Any, Any, Any]:
    """Return a random A as bytes, its scales, and the scaled matrix in float64."""
    scale = np.exp2(rng.integers(-2, 3, (m, k // K))).astype(np.float32)
    if format == "fp8":
        values = rng.integers(-8, 9, (m, k)).astype(ml_dtypes.float8_e4m3fn)
        matrix = values.view(np.int8)
    elif format == "int8":
        matrix = values = rng.integers(-128, 128, (m, k)).astype(np.int8)
    else:
        values = rng.integers(-8, 8, (m, k)).astype(np.int8)
        matrix = (values[:, ::2] & 15) | values[:, 1::2] << 4
    return matrix, scale, values.astype(float) * scale.repeat(K, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", default="int8", choices=list(FORMATS))
    parser.add_argument("--operand", default="tmem", choices=["tmem", "smem"], help="memory of the converted A")
    for name, extent in (("--m", 128), ("--n", 128), ("--k", 256)):
        parser.add_argument(name, type=int, default=extent)
    parser.add_argument("--bug", default="", choices=["", *BUGS])
    parser.add_argument(
        "--schedule",
        choices=("round-robin", "reverse", "random", "adversarial"),
        default="round-robin",
        help="order in which the interpreter runs the warps",
    )
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    if min(args.m, args.n, args.k) < 1 or args.m % M or args.n % N or args.k % K:
        parser.error(f"--m and --n must be positive multiples of {M}, --k a positive multiple of {K}")

    rng = np.random.default_rng(0)
    a, scale, wide = weights(rng, args.format, args.m, args.k)
    b = rng.integers(-4, 5, (args.n, args.k)).astype(ml_dtypes.bfloat16)
    d = np.full((args.m, args.n), np.nan, np.float32)
    kernel = MixedGemm(args.format, operand=args.operand, bug=args.bug)
    gemm = cute.compile(kernel, a, b, scale, d, device="cpu", chip="sm_100a")
    if args.print_ir:
        print(gemm.mlir("trace"))
        return
    gemm(a, b, scale, d, checks=("race", "oob", "uninit", "sync", "strict"), schedule=args.schedule)
    np.testing.assert_array_equal(d, wide @ b.astype(float).T)  # all sums are exact in float32
    print(f"{args.format} {args.m} x {args.n} x {args.k}: correct")


if __name__ == "__main__":
    main()
