"""A GEMM in the language whose A is sparse and has block scales, for one block and for a pair of blocks."""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.sparse import compress, order_by_lanes
from cute_dialect.lang import blackwell, blockscaled, pipeline, utils
from cute_dialect.lang.nvgpu import cpasync, tcgen05

CHECKS = ("race", "oob", "uninit", "sync", "strict")
FORMATS = {
    "mxfp8": (cute.Float8E4M3FN, cute.Float8E8M0FNU, 32),
    "mxfp4": (cute.Float4E2M1FN, cute.Float8E8M0FNU, 32),
    "nvfp4": (cute.Float4E2M1FN, cute.Float8E4M3FN, 16),
}
"""The type of A and B, the type of the factors, and the kept elements along K that share one."""
N = 128


class Gemm:
    """``C = (SFA * A) (SFB * B)^T``."""

    def __init__(self, format: str, blocks: int):
        self.element, self.factor, self.kept = FORMATS[format]
        self.vector, self.blocks = 2 * self.kept, blocks
        self.tile = (128 * blocks, N, 256 * 8 // self.element.width)

    @cute.jit
    def __call__(
        self, A: cute.Tensor, E: cute.Tensor, B: cute.Tensor, SFA: cute.Tensor, SFB: cute.Tensor, C: cute.Tensor
    ):
        (m, n, k), group = self.tile, tcgen05.CtaGroup(self.blocks)
        A, B = cute.recast_tensor(A, self.element), cute.recast_tensor(B, self.element)
        mma, own = [  # of all blocks, and of one block, which needs all factors of B
            cute.make_tiled_mma(
                tcgen05.MmaSparseOp(
                    *(self.element,) * 2, cute.Float32, (rows, n, k // 4), of, sf_dtype=self.factor, sf_vec=self.kept
                )
            )
            for rows, of in ((m, group), (128, tcgen05.CtaGroup.ONE))
        ]
        layouts = (
            blackwell.make_smem_layout_a(mma, self.tile, self.element, 2),
            blackwell.make_smem_layout_b(mma, self.tile, self.element, 2),
            blackwell.make_smem_layout_e(mma, self.tile, 2),
            blockscaled.make_smem_layout_sfa(mma, self.tile, self.vector, 2),
            blockscaled.make_smem_layout_sfb(mma, self.tile, self.vector, 2),
        )
        factors = [
            cute.make_tensor(
                cute.recast_ptr(x.iterator, dtype=self.factor), blockscaled.tile_atom_to_shape_SF(shape, self.vector)
            )
            for x, shape in ((SFA, (A.shape[0], B.shape[1])), (SFB, B.shape))
        ]
        load, one = cpasync.G2S(group), (None, None, None, 0)
        by_a, by_b = cute.nvgpu.make_tiled_tma_atom_A, cute.nvgpu.make_tiled_tma_atom_B
        words = (128, cute.size(layouts[2], mode=[1]))
        maps = (
            by_a(load, A, layouts[0][one], self.tile, mma),
            by_b(load, B, layouts[1][one], self.tile, mma),
            cpasync.make_tiled_tma_atom(load, E, cute.select(layouts[2], [0, 1]), words),
            by_a(load, factors[0], layouts[3][one], self.tile, mma),
            by_b(load, factors[1], layouts[4][one], (128, n, k), own),
        )
        self.kernel(maps, C, mma, own, layouts).launch(
            grid=(C.shape[0] // 128, 1, 1), block=256, cluster=(self.blocks, 1, 1)
        )

    @cute.kernel
    def kernel(self, maps: Any, C: cute.Tensor, mma: cute.TiledMma, own: cute.TiledMma, layouts: Any):
        m, n, k = self.tile
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        block = cute.arch.block_idx().x
        row, half = block // self.blocks, block % self.blocks
        cluster = cute.tiled_divide(cute.make_layout((self.blocks, 1, 1)), (mma.thr_id,))
        types = (self.element, self.element, cute.Int32, self.factor, self.factor)
        held = [
            cute.smem_tensor(t, getattr(x, "outer", x), 1024, getattr(x, "inner", None)) for t, x in zip(types, layouts)
        ]
        sA, sB, sE, sSFA, sSFB = held
        slot = cute.arch.alloc_smem(cute.Int32, 1)
        bytes = sum(cute.size_in_bytes(t, x) // 2 for t, x in zip(types, layouts))
        producer, consumer = pipeline.PipelineTmaUmma.create(
            num_stages=2,
            producer_group=1,
            consumer_group=1,
            cta_layout_vmnk=cluster,
            defer_sync=True,
            tx_count=self.blocks * bytes,
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
        tmem.allocate(512)
        tmem.relinquish_alloc_permit()
        tmem.wait_for_alloc()
        pointer = tmem.retrieve_ptr(cute.Float32)
        acc = cute.make_tensor(pointer, mma.make_fragment_C(mma.partition_shape_C((m, n))).layout)
        tE = blackwell.make_tmem_layout_e(mma, self.tile)
        tSFA = blockscaled.make_tmem_layout_sfa(mma, self.tile, self.vector, layouts[3][None, None, None, 0])
        tSFB = blockscaled.make_tmem_layout_sfb(mma, self.tile, self.vector, layouts[4][None, None, None, 0])
        columns_e = cute.size(layouts[2], mode=[1])
        columns_a, columns_b = 4 * cute.size(tSFA, mode=[2, 1]), n // 32 * cute.size(tSFB, mode=[2, 1])

        thread_mma = mma.get_slice(half)
        copies = []
        for i, ((load, tensor), stages) in enumerate(zip(maps, held)):
            if i == 2:
                tiles, modes = cute.local_tile(tensor, (128, columns_e), (block, None)), 2
            else:
                shape, at = ((m, k // 2) if i == 0 else (m, k), row) if i in (0, 3) else ((n, k), 0)
                by = own.get_slice(0) if i == 4 else thread_mma
                partition = by.partition_A if i in (0, 3) else by.partition_B
                tiles, modes = partition(cute.local_tile(tensor, shape, (at, None))), 3
            stages, tiles = cute.group_modes(stages, 0, modes), cute.group_modes(tiles, 0, modes)
            stages, tiles = cpasync.tma_partition(load, 0, cute.make_layout(1), stages, tiles)
            copies.append((load, cute.filter_zeros(stages), cute.filter_zeros(tiles)))
        k_tiles = cute.size(copies[0][2], mode=[1])
        rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)

        if warp == 0 and cute.arch.elect_one():
            for i in range(k_tiles):
                stage = producer.acquire_and_advance()
                for load, stages, tiles in copies:
                    cute.copy(load, tiles[None, i], stages[None, stage.index], tma_bar_ptr=stage.barrier)
            if cute.const_expr(self.blocks == 2):
                producer.tail()
        elif warp == 1 and half == 0 and cute.arch.elect_one():
            group = tcgen05.CtaGroup(self.blocks)
            words = cute.make_copy_atom(tcgen05.Cp128x128bOp(group), cute.Int32)
            factors = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(group), self.factor)
            for i in range(k_tiles):
                stage = consumer.wait_and_advance()
                at = (None, None, None, stage.index)
                first = n + stage.index * (columns_e + columns_a + columns_b)
                lanes = cute.make_layout((128, columns_e), stride=(65536, 1))
                target = cute.make_tensor(cute.recast_ptr(pointer + first, dtype=cute.Int32), lanes)
                thread = tcgen05.make_s2t_copy(words, target).get_slice(0)
                cute.copy(words, thread.partition_S(sE[None, None, stage.index]), thread.partition_D(target))
                e = cute.make_tensor(cute.recast_ptr(pointer + first, dtype=cute.Int32), tE)
                sfa = cute.make_tensor(cute.recast_ptr(pointer + (first + columns_e), dtype=self.factor), tSFA)
                sfb = cute.make_tensor(
                    cute.recast_ptr(pointer + (first + columns_e + columns_a), dtype=self.factor), tSFB
                )
                for source, goal in ((sSFA, sfa), (sSFB, sfb)):
                    goal = cute.filter_zeros(goal)
                    copy = tcgen05.make_s2t_copy(factors, goal)
                    thread = copy.get_slice(0)
                    source = thread.partition_S(cute.filter_zeros(source))[None, None, None, None, stage.index]
                    cute.copy(copy, source, thread.partition_D(goal))
                cute.sparse_gemm(mma, acc, [rA[at], sfa], [rB[at], sfb], e, accumulate=i > 0)
                stage.release()
            full.commit()
        elif warp >= 4:
            ready.wait()
            matrix = acc[(None, None), 0, 0]
            load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cute.Float32)
            load = tcgen05.make_tmem_copy(load, matrix).get_slice(cute.arch.thread_idx().x - 128)
            source = load.partition_S(matrix)
            tile = thread_mma.partition_C(cute.local_tile(C, (m, n), (row, 0)))[(None, None), 0, 0]
            target = load.partition_D(tile)
            for i in cute.range_constexpr(cute.size(source, mode=[2])):
                values = cute.make_rmem_tensor(target[None, None, i].shape, cute.Float32)
                cute.copy(load, source[None, None, i], values)
                cute.autovec_copy(values, target[None, None, i])
            tcgen05.fence_before_thread_sync()
        cute.arch.sync_threads()
        tmem.free(pointer)


def packed(codes: np.ndarray, width: int) -> np.ndarray:
    return codes if width == 8 else codes[:, ::2] | codes[:, 1::2] << 4


def operands(format: str, m: int, k: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the arguments of the kernel without C, and the product in float64."""
    element, factor, kept = FORMATS[format]
    rng = np.random.default_rng(m + k)
    is_packed = element.width == 4
    kind: Any = ml_dtypes.float4_e2m1fn if is_packed else ml_dtypes.float8_e4m3fn
    group, size = (8, 2) if is_packed else (4, 1)
    chosen = rng.random((m, k // group, 4)).argsort(axis=-1) < 2
    values = rng.integers(-4, 5, (m, k // group, 4, size)) * chosen[..., None]
    codes = [x.astype(kind).view(np.uint8) for x in (values.reshape(m, k), rng.integers(-4, 5, (N, k)))]
    short, metadata = compress(codes[0], element.mlir_type)
    scales, blocks = [], []
    for rows in (m, N):
        f = np.exp2(rng.integers(-2, 3, (rows, k // kept // 2)))
        f = f.astype(ml_dtypes.float8_e4m3fn if factor is cute.Float8E4M3FN else ml_dtypes.float8_e8m0fnu)
        scales.append(f.astype(float).repeat(2 * kept, 1))
        columns = f.shape[1]
        blocks.append(f.view(np.uint8).reshape(-1, 4, 32, columns // 4, 4).transpose(0, 3, 2, 1, 4).reshape(-1).copy())
    wide = [x.view(kind).astype(float) * s for x, s in zip(codes, scales)]
    a, b = packed(short, element.width), packed(codes[1], element.width)
    return [a, order_by_lanes(metadata), b, *blocks], wide[0] @ wide[1].T


@pytest.mark.sample("mxfp8-1")
@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("format", FORMATS)
def test_products_are_exact(format: str, blocks: int) -> None:
    """Three tiles along K are more than the two stages."""
    gemm = Gemm(format, blocks)
    m, k = 128 * blocks, 3 * gemm.tile[2]
    arrays, wanted = operands(format, m, k)
    c = np.full((m, N), np.nan, np.float32)
    with cute.target("sm_100a"):
        gemm(*arrays, c, device="cpu", checks=CHECKS, schedule="adversarial")
    np.testing.assert_array_equal(c, wanted)
