"""Block-scaled GEMM for GeForce Blackwell: ``C = (SFA * A) (SFB * B)^T`` with TMA and block-scaled mma.sync.

Each row of A and of B has a scale factor for each 32 or 16 elements along K. The matrices are MXFP8 (8-bit floats),
MXFP4 or NVFP4 (4-bit floats). Warp 8 loads tiles of A, B and their factors into a ring of stages by TMA. Warps 0 to 7
load them to registers, A and B with ldmatrix, and multiply.

The interpreter checks the kernel, and the result is compared with float64. ``--bug`` selects a mistake.

python examples/geforce_scaled_gemm.py
python examples/geforce_scaled_gemm.py --format nvfp4 --k 384 --schedule adversarial
python examples/geforce_scaled_gemm.py --bug early-release
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @kernel
# CHECK: cute.tiled.mma.partition_SFA
# CHECK: cute.scaled_gemm

# pyright: basic, reportOptionalMemberAccess=false

import argparse
from typing import Any

import ml_dtypes
import numpy as np

import cute_dialect.lang as cute
import cute_dialect.op as op
from cute_dialect.lang import blackwell, blockscaled, hopper, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, warp

FORMATS = {
    "mxfp8": (warp.MmaMXF8Op(cute.Float8E4M3FN), 32),
    "mxfp4": (warp.MmaMXF4Op(), 32),
    "nvfp4": (warp.MmaMXF4NVF4Op(), 16),
}
"""The MMA, and the elements along K that share a factor."""

BUGS = ("no-factors", "first-factors", "early-release", "missing-bytes")
"""Mistakes.

The factors of B are not loaded to registers; all steps of K use those of the first; a stage is released before it is
read; the barrier expects no bytes of factors.
"""


class ScaledGemm:
    """A block-scaled GEMM by eight warps, each of which computes 32 x 64 of a tile of 128 x 128.

    Args:
        format: "mxfp8", "mxfp4" or "nvfp4".
        stages: number of stages in shared memory.
        bug: one of ``BUGS``, or "" for the correct kernel.
    """

    def __init__(self, format: str, *, stages: int = 2, bug: str = ""):
        self.instruction, self.vector = FORMATS[format]
        self.element, self.factor = self.instruction.ab_dtype, self.instruction.sf_dtype
        self.tile = (128, 128, 128 * 8 // self.element.width)  # (M, N, K); K is 128 bytes.
        self.stages, self.bug = stages, bug

    @cute.jit
    def __call__(self, A: cute.Tensor, B: cute.Tensor, SFA: cute.Tensor, SFB: cute.Tensor, C: cute.Tensor):
        """Multiply matrices of bytes, whose factors are bytes in blocks of 128 x 4."""
        (m, n, k), row_major = self.tile, utils.LayoutEnum.ROW_MAJOR
        permutation = blackwell.get_permutation_mnk(self.tile, self.vector, self.element.width == 8)
        mma = cute.make_tiled_mma(self.instruction, (4, 2, 1), permutation)
        layouts = (
            hopper.make_smem_layout_a(row_major, self.tile, self.element, self.stages),
            hopper.make_smem_layout_b(row_major, self.tile, self.element, self.stages),
            blockscaled.sm120_make_smem_layout_sfa(mma, self.tile, self.vector, self.stages),
            blockscaled.sm120_make_smem_layout_sfb(mma, self.tile, self.vector, self.stages),
        )
        sources = [cute.recast_tensor(x, self.element) for x in (A, B)]
        for factors, x in ((SFA, sources[0]), (SFB, sources[1])):
            pointer = cute.recast_ptr(factors.iterator, dtype=self.factor)
            sources.append(cute.make_tensor(pointer, blockscaled.tile_atom_to_shape_SF(x.shape, self.vector)))
        maps = [
            cpasync.make_tiled_tma_atom(cpasync.G2S(), source, layout, tile)
            for source, layout, tile in zip(sources, layouts, ((m, k), (n, k), (m, k), (n, k)))
        ]
        self.kernel(maps, C, mma, layouts).launch(grid=cute.ceil_div(C.shape, (m, n)), block=9 * 32)

    @cute.kernel(min_blocks=1)
    def kernel(self, maps: Any, C: cute.Tensor, mma: cute.TiledMma, layouts: Any):
        """Compute the tile of the block."""
        m, n, k = self.tile
        thread_id = cute.arch.thread_idx().x
        row, column, _ = cute.arch.block_idx()
        types = (self.element, self.element, self.factor, self.factor)
        shared = [
            cute.smem_tensor(t, getattr(x, "outer", x), 1024, getattr(x, "inner", None)) for t, x in zip(types, layouts)
        ]
        bytes = [cute.size_in_bytes(t, x) // self.stages for t, x in zip(types, layouts)]
        producer, consumer = pipeline.PipelineTmaAsync.create(
            num_stages=self.stages, producer_group=1, consumer_group=8,
            tx_count=sum(bytes[:2] if self.bug == "missing-bytes" else bytes),
        ).make_participants()  # fmt: skip

        # Tiles that the block loads, ((tile), K), and their stages, ((tile), stages).
        copies = []
        for i, (load, tensor) in enumerate(maps):
            x, at = ((m, row), (n, column))[i % 2]
            tiles = cute.group_modes(cute.local_tile(tensor, (x, k), (at, None)), 0, 2)
            stages, tiles = cpasync.tma_partition(
                load, 0, cute.make_layout(1), cute.group_modes(shared[i], 0, 2), tiles
            )
            copies.append(
                (load, cute.filter_zeros(tiles), cute.filter_zeros(stages)) if i > 1 else (load, tiles, stages)
            )
        k_tiles = cute.size(copies[0][1], mode=[1])

        if cute.arch.warp_idx() == 8:
            if cute.arch.elect_one():
                for i in range(k_tiles):
                    stage = producer.acquire_and_advance()
                    for load, tiles, stages in copies:
                        cute.copy(load, tiles[None, i], stages[None, stage.index], tma_bar_ptr=stage.barrier)
        else:
            thread = mma.get_slice(thread_id)
            sA, sB, sSFA, sSFB = shared
            rA = mma.make_fragment_A(thread.partition_A(sA)[None, None, None, 0])
            rB = mma.make_fragment_B(thread.partition_B(sB)[None, None, None, 0])
            rSFA = blackwell.partition_fragment_SFA(sSFA[None, None, 0], thread, thread_id)
            rSFB = blackwell.partition_fragment_SFB(sSFB[None, None, 0], thread, thread_id)
            ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), self.element)
            load = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.factor)
            rows, columns, step = mma.tile_shape_mnk
            loads = (
                cute.make_tiled_copy_A(ldmatrix, mma),
                cute.make_tiled_copy_B(ldmatrix, mma),
                cute.make_tiled_copy(load, blackwell.get_layoutSFA_TV(mma), (rows, step)),
                cute.make_tiled_copy(load, blackwell.get_layoutSFB_TV(mma), (columns, step)),
            )
            parts = []
            for i, held in enumerate((rA, rB, rSFA, rSFB)):
                source, target = loads[i].get_slice(thread_id).partition_S(shared[i]), loads[i].retile(held)
                # One load for all elements that share a factor.
                parts.append((source, target) if i < 2 else (cute.filter_zeros(source), cute.filter_zeros(target)))
            out = thread.partition_C(cute.local_tile(C, (m, n), (row, column)))
            acc = mma.make_fragment_C(out)
            acc.fill(0.0)
            for _ in range(k_tiles):
                stage = consumer.wait_and_advance()
                if cute.const_expr(self.bug == "early-release"):
                    stage.release()
                for i in cute.range_constexpr(cute.size(rA, mode=[2])):
                    for at in cute.range_constexpr(3 if self.bug == "no-factors" else 4):
                        source, target = parts[at]
                        cute.copy(loads[at], source[None, None, i, stage.index], target[None, None, i])
                    f = 0 if self.bug == "first-factors" else i
                    cute.gemm(
                        mma,
                        acc,
                        [rA[None, None, i], rSFA[None, None, f]],
                        [rB[None, None, i], rSFB[None, None, f]],
                        acc,
                    )
                if cute.const_expr(self.bug != "early-release"):
                    stage.release()
            cute.autovec_copy(acc, out)


def operand(rng: np.random.Generator, gemm: ScaledGemm, rows: int, k: int) -> tuple[Any, Any, Any]:
    """Return a random matrix as bytes, its factors in blocks of 128 x 4, and the scaled matrix in float64."""
    if gemm.element.width == 8:
        values = rng.integers(-4, 5, (rows, k)).astype(ml_dtypes.float8_e4m3fn)
        matrix = values.view(np.uint8)
    else:
        codes = rng.integers(0, 16, (rows, k)).astype(np.uint8)
        matrix, values = codes[:, ::2] | codes[:, 1::2] << 4, codes.view(ml_dtypes.float4_e2m1fn)
    kind = ml_dtypes.float8_e8m0fnu if gemm.factor is cute.Float8E8M0FNU else ml_dtypes.float8_e4m3fn
    factors = np.exp2(rng.integers(-2, 3, (rows, k // gemm.vector))).astype(kind)
    blocks = op.scale_blocks(factors).view(np.uint8).reshape(-1)
    return matrix, blocks, values.astype(float) * factors.astype(float).repeat(gemm.vector, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", default="mxfp8", choices=list(FORMATS))
    for name, extent in (("--m", 128), ("--n", 128), ("--k", 384)):
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
    if min(args.m, args.n, args.k) < 1 or args.m % 128 or args.n % 128 or args.k % 128:
        parser.error("--m, --n and --k must be positive multiples of 128")

    rng, kernel = np.random.default_rng(0), ScaledGemm(args.format, bug=args.bug)
    (a, sfa, scaled_a), (b, sfb, scaled_b) = (operand(rng, kernel, rows, args.k) for rows in (args.m, args.n))
    c = np.full((args.m, args.n), np.nan, np.float32)
    gemm = cute.compile(kernel, a, b, sfa, sfb, c, device="cpu", chip="sm_120a")
    if args.print_ir:
        print(gemm.mlir("trace"))
        return
    gemm(a, b, sfa, sfb, c, checks=("race", "oob", "uninit", "sync"), schedule=args.schedule)
    np.testing.assert_array_equal(c, scaled_a @ scaled_b.T)  # all sums are exact in float32
    print(f"{args.format} {args.m} x {args.n} x {args.k}: correct")


if __name__ == "__main__":
    main()
