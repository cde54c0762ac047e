"""Sparse GEMM for Blackwell: ``C = A B^T`` with a 2:4 sparse A, by TMA and tcgen05.mma.sp.

Half of each four elements in a row of A are zero (one of two for tf32). A is stored as its other elements and metadata
with their positions. Warp 0 loads tiles of both and of B into a ring of stages by TMA. Warp 1 copies the metadata of a
stage to tensor memory and issues its MMAs. Warps 4 to 7 store the accumulator.

Each stage has its own columns for metadata: a copy to columns that an earlier MMA still reads would be a race. The
interpreter checks this, and the result is compared with float64. ``--bug`` selects a mistake that it reports.

With ``--pair`` two blocks of a cluster compute a tile of 256 rows. Each block loads its half of A and B, and the
metadata of its rows.

python examples/blackwell_sparse_gemm.py
python examples/blackwell_sparse_gemm.py --format i8 --k 768 --schedule adversarial
python examples/blackwell_sparse_gemm.py --bug no-metadata
python examples/blackwell_sparse_gemm.py --pair --m 256
"""

# RUN: %python %s --print-ir | FileCheck %s
# CHECK: gpu.func @kernel
# CHECK: cute.copy({{.*}}tmem_copy<i32, 128x128b>
# CHECK: cute.sparse_gemm
# CHECK: cute_nvgpu.arch.tmem_dealloc

# pyright: basic, reportOptionalMemberAccess=false

import argparse
from typing import Any

import ml_dtypes
import numpy as np

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.sparse import compress, order_by_lanes
from cute_dialect.lang import blackwell, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05

FORMATS = {
    "f16": (cute.Float16, cute.Float32, np.float16),
    "tf32": (cute.TFloat32, cute.Float32, np.float32),
    "e4m3": (cute.Float8E4M3FN, cute.Float32, ml_dtypes.float8_e4m3fn),
    "i8": (cute.Int8, cute.Int32, np.int8),
}
"""The type of A and B, the type of the accumulator, and the NumPy type of A and B."""

BUGS = ("shared-columns", "late-copy", "no-metadata", "overlap", "missing-bytes", "no-wait", "row-order")
"""Mistakes.

All stages have the same columns for metadata; the metadata are copied after the MMAs, or not at all; they lie in the
columns of the accumulator; the barrier expects no bytes of metadata; the epilogue does not wait; the metadata are not
in the order of the lanes.
"""

LIMIT = 1 << 30
"""Largest M N K, which the interpreter computes in about a minute."""


class SparseGemm:
    """A GEMM with a sparse A.

    Args:
        format: one of ``FORMATS``.
        stages: number of stages in shared memory.
        pair: compute a tile by a pair of blocks.
        bug: one of ``BUGS``, or "" for the correct kernel.
    """

    def __init__(self, format: str, *, stages: int = 3, pair: bool = False, bug: str = ""):
        self.element, self.result, _ = FORMATS[format]
        self.blocks = 2 if pair else 1
        self.tile = (128 * self.blocks, 64, 256 * 8 // self.element.width)  # (M, N, K); A has 128 bytes per row.
        self.stages, self.bug = stages, bug

    @cute.jit
    def __call__(self, A: cute.Tensor, E: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
        """Multiply; A holds the kept elements, E the metadata in the order of the lanes."""
        (m, n, k), group = self.tile, tcgen05.CtaGroup(self.blocks)
        if cute.const_expr(self.element is cute.TFloat32):
            A, B = cute.recast_tensor(A, cute.TFloat32), cute.recast_tensor(B, cute.TFloat32)
        depth = k // 4  # Four MMAs per tile.
        op = tcgen05.MmaSparseOp(self.element, self.element, self.result, (m, n, depth), group)
        mma = cute.make_tiled_mma(op)
        layouts = (
            blackwell.make_smem_layout_a(mma, self.tile, self.element, self.stages),
            blackwell.make_smem_layout_e(mma, self.tile, self.stages),
            blackwell.make_smem_layout_b(mma, self.tile, self.element, self.stages),
        )
        one, load = [0, 1, 2], cpasync.G2S(group)
        maps = (
            cute.nvgpu.make_tiled_tma_atom_A(load, A, cute.select(layouts[0], one), self.tile, mma),
            cpasync.make_tiled_tma_atom(
                load, E, cute.select(layouts[1], [0, 1]), (128, cute.size(layouts[1], mode=[1]))
            ),
            cute.nvgpu.make_tiled_tma_atom_B(load, B, cute.select(layouts[2], one), self.tile, mma),
        )
        rows, columns = cute.ceil_div(C.shape, (m, n))
        grid, cluster = (rows * self.blocks, columns, 1), (self.blocks, 1, 1)
        self.kernel(maps, C, mma, layouts).launch(grid=grid, block=256, cluster=cluster)

    @cute.kernel(min_blocks=1)
    def kernel(self, maps: Any, C: cute.Tensor, mma: cute.TiledMma, layouts: Any):
        """Compute the tile of the block."""
        (load_a, A), (load_e, E), (load_b, B) = maps
        m, n, k = self.tile
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        x, column, _ = cute.arch.block_idx()
        row, half = x // self.blocks, x % self.blocks  # half: the block's position in its pair
        cluster = cute.tiled_divide(cute.make_layout((self.blocks, 1, 1)), (mma.thr_id,))  # (V, M, N, K)
        types = (self.element, cute.Int32, self.element)
        sA, sE, sB = [
            cute.smem_tensor(t, getattr(x, "outer", x), 1024, getattr(x, "inner", None)) for t, x in zip(types, layouts)
        ]
        slot = cute.arch.alloc_smem(cute.Int32, 1)
        bytes = [cute.size_in_bytes(t, x) // self.stages for t, x in zip(types, layouts)]
        if self.bug == "missing-bytes":
            bytes[1] = 0
        producer, consumer = pipeline.PipelineTmaUmma.create(
            num_stages=self.stages,
            producer_group=1,
            consumer_group=1,
            cta_layout_vmnk=cluster,
            defer_sync=True,
            tx_count=self.blocks * sum(bytes),
        ).make_participants()
        full, ready = pipeline.PipelineUmmaAsync.create(
            num_stages=1, producer_group=1, consumer_group=128 * self.blocks, cta_layout_vmnk=cluster, defer_sync=True
        ).make_participants()
        tmem = utils.TmemAllocator(
            slot,
            pipeline.NamedBarrier(0, 256),
            allocator_warp_id=1,
            is_two_cta=self.blocks == 2,
            two_cta_tmem_dealloc_mbar_ptr=cute.arch.alloc_smem(cute.Int64, 1) if self.blocks == 2 else None,
        )
        pipeline.pipeline_init_arrive((self.blocks, 1, 1))
        pipeline.pipeline_init_wait((self.blocks, 1, 1))
        tmem.allocate(128)
        tmem.relinquish_alloc_permit()
        tmem.wait_for_alloc()
        pointer = tmem.retrieve_ptr(self.result)
        acc = cute.make_tensor(pointer, mma.make_fragment_C(mma.partition_shape_C((m, n))).layout)

        # Tensor memory holds the accumulator, and for each stage the columns of its metadata.
        columns_e = cute.size(layouts[1], mode=[1])
        tE = blackwell.make_tmem_layout_e(mma, self.tile)
        words = cute.Int16 if self.element.width >= 16 else cute.Int32
        start = 0 if self.bug == "overlap" else n

        # Tiles that the block loads, ((tile), K), and their stages, ((tile), stages).
        thread_mma = mma.get_slice(half)
        gA, gB = cute.local_tile(A, (m, k // 2), (row, None)), cute.local_tile(B, (n, k), (column, None))
        gE = cute.local_tile(E, (128, columns_e), (x, None))
        copies = []
        for load, stages, tiles, modes in (
            (load_a, sA, thread_mma.partition_A(gA), 3),
            (load_e, sE, gE, 2),
            (load_b, sB, thread_mma.partition_B(gB), 3),
        ):
            stages, tiles = cute.group_modes(stages, 0, modes), cute.group_modes(tiles, 0, modes)
            copies.append((load, *cpasync.tma_partition(load, 0, cute.make_layout(1), stages, tiles)))
        k_tiles = cute.size(gA, mode=[2])
        rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)

        if warp == 0 and cute.arch.elect_one():
            for i in range(k_tiles):
                stage = producer.acquire_and_advance()
                for load, stages, tiles in copies:
                    cute.copy(load, tiles[None, i], stages[None, stage.index], tma_bar_ptr=stage.barrier)
            if cute.const_expr(self.blocks == 2):
                producer.tail()  # The other block still signals barriers of this one.
        elif warp == 1 and half == 0 and cute.arch.elect_one():
            atom = cute.make_copy_atom(tcgen05.Cp128x128bOp(tcgen05.CtaGroup(self.blocks)), cute.Int32)
            for i in range(k_tiles):
                stage = consumer.wait_and_advance()
                at = (None, None, None, stage.index)
                first = start if self.bug == "shared-columns" else start + stage.index * columns_e
                e = cute.make_tensor(cute.recast_ptr(pointer + first, dtype=words), tE)
                if self.bug == "late-copy":
                    cute.sparse_gemm(mma, acc, rA[at], rB[at], e, accumulate=i > 0)
                if self.bug != "no-metadata":
                    lanes = cute.make_layout((128, columns_e), stride=(65536, 1))
                    target = cute.make_tensor(cute.recast_ptr(pointer + first, dtype=cute.Int32), lanes)
                    copy = tcgen05.make_s2t_copy(atom, target)
                    thread = copy.get_slice(0)
                    cute.copy(copy, thread.partition_S(sE[None, None, stage.index]), thread.partition_D(target))
                if self.bug != "late-copy":
                    cute.sparse_gemm(mma, acc, rA[at], rB[at], e, accumulate=i > 0)
                stage.release()
            full.commit()
        elif warp >= 4:
            if cute.const_expr(self.bug != "no-wait"):
                ready.wait()
            matrix = acc[(None, None), 0, 0]  # (M, N)
            load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), self.result)
            load = tcgen05.make_tmem_copy(load, matrix).get_slice(cute.arch.thread_idx().x - 128)
            source = load.partition_S(matrix)
            tile = thread_mma.partition_C(cute.local_tile(C, (m, n), (row, column)))[(None, None), 0, 0]
            target = load.partition_D(tile)
            for i in cute.range_constexpr(cute.size(source, mode=[2])):
                values = cute.make_rmem_tensor(target[None, None, i].shape, self.result)
                cute.copy(load, source[None, None, i], values)
                cute.autovec_copy(values, target[None, None, i])
            tcgen05.fence_before_thread_sync()
        cute.arch.sync_threads()
        tmem.free(pointer)


def sparse(rng: np.random.Generator, format: str, rows: int, k: int) -> Any:
    """Return a random matrix of small integers that has two zeros among each four elements, or one among two."""
    of, kept = (2, 1) if format == "tf32" else (4, 2)
    is_kept = rng.random((rows, k // of, of)).argsort(axis=-1) < kept
    values = rng.integers(-4, 5, is_kept.shape) * is_kept
    return values.reshape(rows, k).astype(FORMATS[format][2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--format", default="f16", choices=list(FORMATS))
    for name, extent in (("--m", 128), ("--n", 64), ("--k", 512)):
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
    kernel = SparseGemm(args.format, pair=args.pair, bug=args.bug)
    rows, columns, depth = kernel.tile
    if min(args.m, args.n, args.k) < 1 or args.m % rows or args.n % columns or args.k % depth:
        parser.error(f"--m must be a positive multiple of {rows}, --n of {columns} and --k of {depth}")
    if args.m * args.n * args.k > LIMIT:
        parser.error(f"--m x --n x --k must be at most {LIMIT:,} on the interpreter")

    rng = np.random.default_rng(0)
    whole = sparse(rng, args.format, args.m, args.k)
    b = rng.integers(-4, 5, (args.n, args.k)).astype(whole.dtype)
    a, metadata = compress(whole, kernel.element.mlir_type)
    e = metadata.view(np.int32) if args.bug == "row-order" else order_by_lanes(metadata)
    c = np.full((args.m, args.n), -(2**30), np.int32 if args.format == "i8" else np.float32)
    gemm = cute.compile(kernel, a, e, b, c, device="cpu", chip="sm_100a")
    if args.print_ir:
        print(gemm.mlir("trace"))
        return
    gemm(a, e, b, c, checks=("race", "oob", "uninit", "sync", "strict"), schedule=args.schedule)
    np.testing.assert_array_equal(c, whole.astype(float) @ b.astype(float).T)  # all sums are exact
    print(f"{args.format} {args.m} x {args.n} x {args.k}: correct")


if __name__ == "__main__":
    main()
