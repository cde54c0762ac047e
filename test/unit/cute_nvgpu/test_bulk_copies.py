"""Bulk copy atoms on the CPU interpreter: runs of any length, clusters, predicates, and tiled copies with TMA atoms."""

# pyright: basic

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32
from xdsl.utils.exceptions import VerifyException

import cute_dialect.lang as cute
from cute_dialect.cute_nvgpu.bulk import BulkCopy, BulkCopyType
from cute_dialect.cute_nvgpu.tma_types import Im2colMap, TmaStoreIm2colType
from cute_dialect.lang.nvgpu import BulkCopyOp, cpasync

BULK = cute.make_copy_atom(BulkCopyOp(), cute.Float32)
CHECKS = ("race", "uninit", "sync")


def barrier(n_bytes: int) -> Any:
    """Return an mbarrier that expects this number of bytes."""
    bar = cute.arch.alloc_smem(cute.Int64, 1)
    if cute.arch.thread_idx().x == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(bar, n_bytes)
    return bar


def finish_stores() -> None:
    """Wait until the thread's bulk stores are done."""
    cute.arch.cp_async_bulk_commit_group()
    cute.arch.cp_async_bulk_wait_group(0)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("columns", "pitch"), [(100, 100), (100, 112), (4, 20)], ids=["whole", "rows", "16 bytes"])
def test_number_of_instructions_is_minimal(columns: int, pitch: int) -> None:
    """A contiguous run of any length is one instruction; a mode with a dynamic stride needs one instruction per row."""
    layout = f"(8,{columns}):({columns},1)" if pitch == columns else f"(8,{columns}):(?{{div=4}},1)"
    matrix = cute.Tensor[cute.Float32, layout, "align<16>"]

    @cute.kernel
    def rows(x: matrix, y: matrix):  # pyright: ignore[reportInvalidTypeForm]
        s = cute.smem_tensor(cute.Float32, cute.make_layout((8, columns), stride=(columns, 1)), 16)
        bar = barrier(8 * columns * 4)
        cute.arch.sync_threads()
        if cute.arch.thread_idx().x == 0:
            cute.copy(BULK, x, s, tma_bar_ptr=bar)
        cute.arch.mbarrier_wait(bar, 0)
        if cute.arch.thread_idx().x == 0:
            cute.copy(BULK, s, y)
            finish_stores()

    given = np.arange(8 * pitch, dtype=np.float32).reshape(8, pitch)
    out = np.full((8, pitch), -1, np.float32)
    compiled = cute.compile(rows, given[:, :columns], out[:, :columns], grid=1, block=32, device="cpu")
    for op in ("shared.cluster.global", "global.shared.cta"):
        assert compiled.mlir("base").count(f'"nvvm.cp.async.bulk.{op}"(') == (1 if pitch == columns else 8)
    rows(given[:, :columns], out[:, :columns]).launch(grid=1, block=32, device="cpu", checks=CHECKS)
    assert np.array_equal(out[:, :columns], given[:, :columns])
    assert (out[:, columns:] == -1).all()


@pytest.mark.parametrize("flag", [0, 1])
def test_scalar_predicate(flag: int) -> None:
    @cute.kernel
    def guarded(x: Any, flag: cute.Int32):
        tid = cute.arch.thread_idx().x
        s = cute.smem_tensor(cute.Float32, cute.make_layout(32), 16)
        s[tid] = cute.Float32(7.0)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if tid == 0:
            atom = cute.make_copy_atom(BulkCopyOp(), cute.Float32)
            atom.set("pred", flag != 0)
            cute.copy(atom, s, x)
            finish_stores()

    out = np.zeros(32, np.float32)
    guarded(cute.from_dlpack(out), flag).launch(grid=1, block=32, device="cpu", checks=CHECKS)
    assert (out == 7 * flag).all()


def test_a_multicast_reaches_the_cluster() -> None:
    """Block 0 multicasts its load to both blocks of the cluster."""

    @cute.kernel
    def multicast(x: Any, y: Any):
        tid, rank = cute.arch.thread_idx().x, cute.arch.block_idx_in_cluster()
        s = cute.smem_tensor(cute.Float32, cute.make_layout(64), 16)
        bar = barrier(256)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if tid == 0 and rank == 0:
            cute.copy(BULK, x, s, tma_bar_ptr=bar, mcast_mask=3)
        cute.arch.mbarrier_wait(bar, 0)
        for start in cute.range_constexpr(0, 64, 32):
            y[rank, tid + start] = s[tid + start]

    given, out = np.arange(64, dtype=np.float32), np.full((2, 64), np.nan, np.float32)
    launch = multicast(cute.from_dlpack(given), cute.from_dlpack(out))
    launch.launch(grid=2, block=32, cluster=(2, 1, 1), device="cpu", checks=CHECKS)
    assert np.array_equal(out, np.stack([given, given]))


def test_shared_memory_of_the_other_block() -> None:
    """Each block sends its values to the other block and signals its barrier."""

    @cute.kernel
    def exchange(y: Any):
        tid, rank = cute.arch.thread_idx().x, cute.arch.block_idx_in_cluster()
        mine, theirs = (cute.smem_tensor(cute.Float32, cute.make_layout(32), 16) for _ in range(2))
        bar = barrier(128)
        mine[tid] = cute.Float32(tid + rank * 100)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if tid == 0:
            far = cute.make_tensor(cute.arch.map_dsmem_ptr(theirs.iterator, rank ^ 1), cute.make_layout(32))
            cute.copy(BULK, mine, far, tma_bar_ptr=cute.arch.map_dsmem_ptr(bar, rank ^ 1))
        cute.arch.mbarrier_wait(bar, 0)
        y[rank, tid] = theirs[tid]
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    out = np.full((2, 32), np.nan, np.float32)
    exchange(cute.from_dlpack(out)).launch(grid=2, block=32, cluster=(2, 1, 1), device="cpu", checks=CHECKS)
    lanes = np.arange(32, dtype=np.float32)
    assert np.array_equal(out, np.stack([lanes + 100, lanes]))


def test_a_tiled_copy_by_tma() -> None:
    """One thread copies a whole tile of two TMA boxes; the coordinate tensor is partitioned like any other."""
    tile = (16, 128)
    matrix = cute.Tensor[cute.Float16, "(?,?):(?{div=8},1)", "align<16>"]

    @cute.kernel
    def tiles(load: Any, source: Any, store: Any, target: Any):
        layout = cute.layout("(16,(64,2)):(64,(1,1024))")
        s = cute.smem_tensor(cute.Float16, layout, 1024, cute.Swizzle(3, 4, 3))
        bar = barrier(16 * 128 * 2)
        cute.arch.sync_threads()
        if cute.arch.thread_idx().x == 0:
            where = (cute.arch.block_idx().x, 0)
            whole = cute.make_layout((1, 2048), stride=(0, 1))
            bring, put = cute.make_tiled_copy(load, whole, tile), cute.make_tiled_copy(store, whole, tile)
            cute.copy(bring, cute.local_tile(source, tile, where), s, thread=0, tma_bar_ptr=bar)
            cute.arch.mbarrier_wait(bar, 0)
            cute.copy(put, s, cute.local_tile(target, tile, where), thread=0)
            finish_stores()

    @cute.jit
    def launch(X: matrix, Y: matrix):  # pyright: ignore[reportInvalidTypeForm]
        swizzled = cute.layout("S<3,4,3> o 0 o (16,(64,2)):(64,(1,1024))")
        loads = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), X, swizzled, tile)
        stores = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), Y, swizzled, tile)
        tiles(*loads, *stores).launch(grid=3, block=32)

    given = np.arange(40 * 120).reshape(40, 120).astype(np.float16)
    out = np.zeros_like(given)
    launch(given, out, device="cpu")
    assert np.array_equal(out, given)


def test_invalid_atoms_are_rejected_in_python() -> None:
    with pytest.raises(VerifyException, match="the atom has 100 bits; use a multiple of 128 bits"):
        BulkCopyType(BulkCopy(f32, 100))
    with pytest.raises(VerifyException, match="expected 1 to 8 as element stride"):
        TmaStoreIm2colType(Im2colMap(f16, 64, 16, (0,), (0,), (9,)))
