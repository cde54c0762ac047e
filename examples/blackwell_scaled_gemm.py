"""Block-scaled GEMM for Blackwell: ``C = (SFA * A) (SFB * B)^T`` with TMA, tcgen05.mma and scale factors.

Each row of A and of B has a scale factor for each 32 or 16 elements along K. The matrices are MXFP8 (8-bit floats),
MXFP4 or NVFP4 (4-bit floats). The formats ``mxfp4-mxfp8`` and ``mxfp6-mxfp8`` multiply an A of 4-bit or 6-bit floats
with a B of 8-bit floats: TMA unpacks A to a byte per element in shared memory.

Warp 0 loads tiles of A, B and their factors into a ring of stages by TMA. Warp 1 copies the factors of a stage to
tensor memory and issues its MMAs. Warps 4 to 7 store the accumulator as f32.

Each stage has its own columns for factors: a copy to columns that an earlier MMA still reads would be a race. The
interpreter checks this, and the result is compared with float64. ``--bug`` selects a mistake that it reports.

With ``--pair`` two blocks of a cluster compute a tile of 256 rows. Each block loads its half of A and B and the factors
of its rows of A, but all factors of B.

python examples/blackwell_scaled_gemm.py
python examples/blackwell_scaled_gemm.py --format nvfp4 --k 768 --schedule adversarial
python examples/blackwell_scaled_gemm.py --format mxfp4-mxfp8
python examples/blackwell_scaled_gemm.py --bug shared-columns
python examples/blackwell_scaled_gemm.py --pair --m 256
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @kernel
# CHECK: cute.copy({{.*}}tmem_copy<f8E8M0FNU, 32x128b_warpx4>
# CHECK: cute.scaled_gemm
# CHECK: cute_nvgpu.arch.tmem_dealloc

# pyright: basic, reportOptionalMemberAccess=false

import argparse
from typing import Any

import ml_dtypes
import numpy as np

import cute_dialect.lang as cute
from cute_dialect.lang import blackwell, blockscaled, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05

FORMATS = {
    "mxfp8": (cute.Float8E4M3FN, cute.Float8E4M3FN, cute.Float8E8M0FNU, 32),
    "mxfp4": (cute.Float4E2M1FN, cute.Float4E2M1FN, cute.Float8E8M0FNU, 32),
    "nvfp4": (cute.Float4E2M1FN, cute.Float4E2M1FN, cute.Float8E4M3FN, 16),
    "mxfp4-mxfp8": (cute.Float4E2M1FN, cute.Float8E4M3FN, cute.Float8E8M0FNU, 32),
    "mxfp6-mxfp8": (cute.Float6E3M2FN, cute.Float8E4M3FN, cute.Float8E8M0FNU, 32),
}
"""The types of A and B, the type of the factors, and the elements along K that share one."""

BUGS = (
    "shared-columns",
    "late-copy",
    "no-factors",
    "overlap",
    "missing-bytes",
    "unpacked-bytes",
    "early-release",
    "no-wait",
)
"""Mistakes.

All stages have the same columns for factors; the factors are copied after the MMAs; those of B are not copied; those
of A lie in the columns of the accumulator; the barrier expects no bytes of factors; it expects the bytes of shared
memory for elements that TMA unpacks (formats with two types); a stage is released before the MMAs
that read it; the epilogue does not wait.
"""


class ScaledGemm:
    """A block-scaled GEMM.

    Args:
        format: one of ``FORMATS``.
        stages: number of stages in shared memory.
        pair: compute a tile by a pair of blocks.
        bug: one of ``BUGS``, or "" for the correct kernel.
    """

    def __init__(self, format: str, *, stages: int = 3, pair: bool = False, bug: str = ""):
        *self.elements, self.factor, self.vector = FORMATS[format]
        self.blocks = 2 if pair else 1
        widest = max(x.width for x in self.elements)
        self.tile = (128 * self.blocks, 128, 128 * 8 // widest)  # (M, N, K); K is 128 bytes.
        # The types in shared memory: with an 8-bit B each element of A has a byte.
        self.shared = [cute.Int8 if x.width < widest else x for x in self.elements]
        self.stages, self.bug = stages, bug

    @cute.jit
    def __call__(self, A: cute.Tensor, B: cute.Tensor, SFA: cute.Tensor, SFB: cute.Tensor, C: cute.Tensor):
        """Multiply matrices of bytes, whose factors are bytes in blocks of 128 x 4."""
        (m, n, k), K, group = self.tile, tcgen05.OperandMajorMode.K, tcgen05.CtaGroup(self.blocks)
        A, B = (
            cute.make_tensor(cute.recast_ptr(x.iterator, dtype=t), cute.make_ordered_layout(shape, order=(1, 0)))
            for x, t in zip((A, B), self.elements)
            for shape in [(x.shape[0], x.shape[1] * 8 // t.width)]
        )
        mma, own = [  # of all blocks, and of one block, which needs all factors of B
            blackwell.make_blockscaled_trivial_tiled_mma(
                *self.elements, K, K, self.factor, self.vector, blocks, (128 * blocks.value, n)
            )
            for blocks in (group, tcgen05.CtaGroup.ONE)
        ]
        layouts = (
            blackwell.make_smem_layout_a(mma, self.tile, self.elements[0], self.stages),
            blackwell.make_smem_layout_b(mma, self.tile, self.elements[1], self.stages),
            blockscaled.make_smem_layout_sfa(mma, self.tile, self.vector, self.stages),
            blockscaled.make_smem_layout_sfb(mma, self.tile, self.vector, self.stages),
        )
        factors_a = cute.recast_ptr(SFA.iterator, dtype=self.factor)
        factors_b = cute.recast_ptr(SFB.iterator, dtype=self.factor)
        sources = (
            A,
            B,
            cute.make_tensor(factors_a, blockscaled.tile_atom_to_shape_SF(A.shape, self.vector)),
            cute.make_tensor(factors_b, blockscaled.tile_atom_to_shape_SF(B.shape, self.vector)),
        )
        maps = []
        for i, (source, layout) in enumerate(zip(sources, layouts)):
            make = (cute.nvgpu.make_tiled_tma_atom_A, cute.nvgpu.make_tiled_tma_atom_B)[i % 2]
            tile, by = ((128, n, k), own) if i == 3 else (self.tile, mma)
            maps.append(make(cpasync.G2S(group), source, layout[None, None, None, 0], tile, by))
        rows, columns = cute.ceil_div(C.shape, (m, n))
        grid, cluster = (rows * self.blocks, columns, 1), (self.blocks, 1, 1)
        self.kernel(maps, C, mma, own, layouts).launch(grid=grid, block=256, cluster=cluster)

    @cute.kernel(min_blocks=1)
    def kernel(self, maps: Any, C: cute.Tensor, mma: cute.TiledMma, own: cute.TiledMma, layouts: Any):
        """Compute the tile of the block."""
        m, n, k = self.tile
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        x, column, _ = cute.arch.block_idx()
        row, half = x // self.blocks, x % self.blocks  # half: the block's position in its pair
        cluster = cute.tiled_divide(cute.make_layout((self.blocks, 1, 1)), (mma.thr_id,))  # (V, M, N, K)
        types = (*self.shared, self.factor, self.factor)
        sA, sB, sSFA, sSFB = [
            cute.smem_tensor(t, getattr(x, "outer", x), 1024, getattr(x, "inner", None)) for t, x in zip(types, layouts)
        ]
        slot = cute.arch.alloc_smem(cute.Int32, 1)
        # The barrier counts the bytes of global memory, without the padding of unpacked elements.
        counted = (*types[:2],) if self.bug == "unpacked-bytes" else self.elements
        counted = (*counted, self.factor, self.factor)
        bytes = [cute.size_in_bytes(t, x) // self.stages for t, x in zip(counted, layouts)]
        producer, consumer = pipeline.PipelineTmaUmma.create(
            num_stages=self.stages, producer_group=1, consumer_group=1, cta_layout_vmnk=cluster, defer_sync=True,
            tx_count=self.blocks * sum(bytes[:2] if self.bug == "missing-bytes" else bytes),
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
        tmem.allocate(512)
        tmem.relinquish_alloc_permit()
        tmem.wait_for_alloc()
        pointer = tmem.retrieve_ptr(cute.Float32)
        acc = cute.make_tensor(pointer, mma.make_fragment_C(mma.partition_shape_C((m, n))).layout)

        # Tensor memory holds the accumulator, and for each stage the factors of A and of B.
        tSFA = blockscaled.make_tmem_layout_sfa(mma, self.tile, self.vector, layouts[2][None, None, None, 0])
        tSFB = blockscaled.make_tmem_layout_sfb(mma, self.tile, self.vector, layouts[3][None, None, None, 0])
        columns_a, columns_b = 4 * cute.size(tSFA, mode=[2, 1]), n // 32 * cute.size(tSFB, mode=[2, 1])
        start = 0 if self.bug == "overlap" else n

        # Tiles that the block loads, ((tile), K), and their stages, ((tile), stages).
        thread_mma = mma.get_slice(half)
        copies = []
        for i, (load, tensor) in enumerate(maps):
            x, at = ((m, row), (n, column))[i % 2]
            partition = (thread_mma.partition_A, (own.get_slice(0) if i == 3 else thread_mma).partition_B)[i % 2]
            tiles = cute.group_modes(partition(cute.local_tile(tensor, (x, k), (at, None))), 0, 3)
            stages = cute.group_modes((sA, sB, sSFA, sSFB)[i], 0, 3)
            stages, tiles = cpasync.tma_partition(load, 0, cute.make_layout(1), stages, tiles)
            copies.append((load, cute.filter_zeros(tiles), cute.filter_zeros(stages)))
        k_tiles = cute.size(copies[0][1], mode=[1])
        rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)

        if warp == 0 and cute.arch.elect_one():
            for i in range(k_tiles):
                stage = producer.acquire_and_advance()
                for load, tiles, stages in copies:
                    cute.copy(load, tiles[None, i], stages[None, stage.index], tma_bar_ptr=stage.barrier)
            if cute.const_expr(self.blocks == 2):
                producer.tail()  # The other block still signals barriers of this one.
        elif warp == 1 and half == 0 and cute.arch.elect_one():
            atom = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(tcgen05.CtaGroup(self.blocks)), self.factor)
            for i in range(k_tiles):
                stage = consumer.wait_and_advance()
                if self.bug == "early-release":
                    stage.release()
                at = (None, None, None, stage.index)
                first = 0 if self.bug == "shared-columns" else stage.index * (columns_a + columns_b)
                sfa = cute.make_tensor(cute.recast_ptr(pointer + (start + first), dtype=self.factor), tSFA)
                sfb = cute.make_tensor(cute.recast_ptr(pointer + (n + first + columns_a), dtype=self.factor), tSFB)
                if self.bug == "late-copy":
                    cute.gemm(mma, acc, [rA[at], sfa], [rB[at], sfb], accumulate=i > 0)
                for source, target in ((sSFA, sfa), (sSFB, sfb))[: 1 if self.bug == "no-factors" else 2]:
                    target = cute.filter_zeros(target)
                    copy = tcgen05.make_s2t_copy(atom, target)
                    thread = copy.get_slice(0)
                    source = thread.partition_S(cute.filter_zeros(source))[None, None, None, None, stage.index]
                    cute.copy(copy, source, thread.partition_D(target))
                if self.bug != "late-copy":
                    cute.gemm(mma, acc, [rA[at], sfa], [rB[at], sfb], accumulate=i > 0)
                if self.bug != "early-release":
                    stage.release()
            full.commit()
        elif warp >= 4:
            if cute.const_expr(self.bug != "no-wait"):
                ready.wait()
            matrix = acc[(None, None), 0, 0]  # (M, N)
            load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cute.Float32)
            load = tcgen05.make_tmem_copy(load, matrix).get_slice(cute.arch.thread_idx().x - 128)
            source = load.partition_S(matrix)
            tile = thread_mma.partition_C(cute.local_tile(C, (m, n), (row, column)))[(None, None), 0, 0]
            target = load.partition_D(tile)
            for i in cute.range_constexpr(cute.size(source, mode=[2])):
                values = cute.make_rmem_tensor(target[None, None, i].shape, cute.Float32)
                cute.copy(load, source[None, None, i], values)
                cute.autovec_copy(values, target[None, None, i])
            tcgen05.fence_before_thread_sync()
        cute.arch.sync_threads()
        tmem.free(pointer)


def aligned(matrix: np.ndarray) -> np.ndarray:
    """Return a copy at an address that is a multiple of 32, as TMA needs to unpack elements."""
    memory = np.empty(matrix.size + 31, np.uint8)
    found = memory[-memory.ctypes.data % 32 :][: matrix.size].reshape(matrix.shape)
    found[...] = matrix
    return found


def operand(rng: np.random.Generator, format: str, which: int, rows: int, k: int) -> tuple[Any, Any, Any]:
    """Return random A (0) or B (1) as bytes, its factors in blocks of 128 x 4, and the scaled matrix in float64."""
    *elements, factor, vector = FORMATS[format]
    width = elements[which].width
    if width == 8:
        values = rng.integers(-4, 5, (rows, k)).astype(ml_dtypes.float8_e4m3fn)
        matrix = values.view(np.uint8)
    else:
        codes = rng.integers(0, 1 << width, (rows, k)).astype(np.uint8)
        bits = np.unpackbits(codes[..., None], axis=2, count=width, bitorder="little")
        matrix = np.packbits(bits.reshape(rows, -1), axis=1, bitorder="little")
        values = codes.view(ml_dtypes.float4_e2m1fn if width == 4 else ml_dtypes.float6_e3m2fn)
    kind = ml_dtypes.float8_e8m0fnu if factor is cute.Float8E8M0FNU else ml_dtypes.float8_e4m3fn
    factors = np.exp2(rng.integers(-2, 3, (rows, k // vector))).astype(kind)
    padded = np.zeros((-(-rows // 128) * 128, -(-k // vector // 4) * 4), np.uint8)
    padded[:rows, : k // vector] = factors.view(np.uint8)
    blocks = padded.reshape(-1, 4, 32, padded.shape[1] // 4, 4).transpose(0, 3, 2, 1, 4)
    return aligned(matrix), blocks.reshape(-1).copy(), values.astype(float) * factors.astype(float).repeat(vector, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", default="mxfp8", choices=list(FORMATS))
    for name, extent in (("--m", 128), ("--n", 128), ("--k", 512)):
        parser.add_argument(name, type=int, default=extent)
    parser.add_argument("--pair", action="store_true", help="compute each tile by a pair of blocks")
    parser.add_argument("--bug", default="", choices=["", *BUGS])
    parser.add_argument(
        "--schedule",
        choices=("round-robin", "reverse", "random", "adversarial"),
        default="round-robin",
        help="order in which the interpreter runs the warps",
    )
    parser.add_argument("--print-ir", action="store_true", help="print the traced functions and exit")
    args = parser.parse_args()
    rows = 256 if args.pair else 128
    if min(args.m, args.n, args.k) < 1 or args.m % rows or args.n % 128 or args.k % 128:
        parser.error(f"--m must be a positive multiple of {rows}, --n and --k positive multiples of 128")

    rng = np.random.default_rng(0)
    (a, sfa, scaled_a), (b, sfb, scaled_b) = (
        operand(rng, args.format, i, rows, args.k) for i, rows in enumerate((args.m, args.n))
    )
    c = np.full((args.m, args.n), np.nan, np.float32)
    kernel = ScaledGemm(args.format, pair=args.pair, bug=args.bug)
    gemm = cute.compile(kernel, a, b, sfa, sfb, c, device="cpu", chip="sm_100a")
    if args.print_ir:
        print(gemm.mlir("trace"))
        return
    gemm(a, b, sfa, sfb, c, checks=("race", "oob", "uninit", "sync", "strict"), schedule=args.schedule)
    np.testing.assert_array_equal(c, scaled_a @ scaled_b.T)  # all sums are exact in float32
    print(f"{args.format} {args.m} x {args.n} x {args.k}: correct")


if __name__ == "__main__":
    main()
