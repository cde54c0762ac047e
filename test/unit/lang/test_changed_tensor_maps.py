"""Kernels that modify tensor maps, so that each block loads and stores its own matrix with TMA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.interp import InterpError
from cute_dialect.lang import utils
from cute_dialect.lang.nvgpu import cpasync

M, N = 16, 64


@cute.kernel
def move(
    load: cute.CopyAtom,
    coords: cute.Tensor,
    store: cute.CopyAtom,
    out_coords: cute.Tensor,
    given: cute.Tensor,
    found: cute.Tensor,
    starts: cute.Tensor,
    rows: cute.Tensor,
    maps: cute.Tensor,
    manager: cute.Constexpr,
    acquire: cute.Constexpr[bool],
):
    block = cute.arch.block_idx().x
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    allocator = utils.SmemAllocator()
    tile = allocator.allocate_tensor(cute.Float16, cute.make_layout((M, N), stride=(N, 1)), byte_alignment=128)
    bar = allocator.allocate_array(cute.Int64, 1)
    held = allocator.allocate_tensor(cute.Int64, cute.make_layout((2, 16), stride=(16, 1)), byte_alignment=128)
    in_shared = manager.tensormap_update_mode == utils.TensorMapUpdateMode.SMEM
    where = [manager.get_tensormap_ptr(maps[block, i, None].iterator) for i in range(2)]
    near = [cute.make_ptr(cute.Int64, held[i, None].iterator.toint(), "smem", assumed_align=64) for i in range(2)]
    if cute.arch.thread_idx().x == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
    for atom, to in zip((load, store), near if in_shared else where):
        manager.init_tensormap_from_atom(atom, to, 0)
    manager.fence_tensormap_initialization()
    cute.arch.sync_threads()
    layout = cute.make_layout((rows[block], N), stride=(N, 1))
    tensors = [
        cute.make_tensor(
            cute.make_ptr(cute.Float16, x.iterator.toint() + starts[block], "gmem", assumed_align=16), layout
        )
        for x in (given, found)
    ]
    manager.update_tensormap(tensors, (load, store), where, 0, near)
    if warp == 0:
        if acquire:
            manager.fence_tensormap_update(where[0])
            manager.fence_tensormap_update(where[1])
        source, target = cute.local_tile(coords, (M, N), (0, 0)), cute.local_tile(out_coords, (M, N), (0, 0))
        here, there = cpasync.tma_partition(
            load, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), cute.group_modes(source, 0, 2)
        )
        here_out, there_out = cpasync.tma_partition(
            store, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), cute.group_modes(target, 0, 2)
        )
        if cute.arch.elect_one():
            cute.arch.mbarrier_arrive_and_expect_tx(bar, M * N * 2)
        generic = manager.get_tensormap_ptr(where[0], "generic")
        cute.copy(load, there, here, tma_bar_ptr=bar, tma_desc_ptr=generic)
        cute.arch.mbarrier_wait(bar, 0)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        cute.copy(store, here_out, there_out, tma_desc_ptr=where[1])
        if cute.arch.elect_one():
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0)


@cute.jit
def run(
    first: cute.Tensor,
    given: cute.Tensor,
    found: cute.Tensor,
    starts: cute.Tensor,
    rows: cute.Tensor,
    maps: cute.Tensor,
    mode: cute.Constexpr,
    acquire: cute.Constexpr[bool],
):
    tile = cute.make_layout((M, N), stride=(N, 1))
    load, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), first, tile, (M, N))
    store, out_coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), first, tile, (M, N))
    manager = utils.TensorMapManager(mode, 128)
    move(load, coords, store, out_coords, given, found, starts, rows, maps, manager, acquire).launch(
        grid=rows.shape[0], block=64
    )


ROWS = np.array([16, 5, 9], np.int32)
FIRST = np.zeros((M, N), np.float16)


def arrays() -> tuple[np.ndarray, ...]:
    """Return concatenated matrices, an array for the results, byte offsets, row counts, and space for tensor maps."""
    given = np.random.default_rng(0).normal(size=(ROWS.sum(), N)).astype(np.float16)
    starts = np.array([ROWS[:i].sum() * N * 2 for i in range(3)], np.int64)
    return given, np.zeros_like(given), starts, ROWS, np.zeros((3, 2, 16), np.int64)


@pytest.mark.parametrize("mode", utils.TensorMapUpdateMode)
def test_each_block_moves_its_matrix(mode: Any) -> None:
    given, found, *rest = arrays()
    run(FIRST, given, found, *rest, mode, True, device="cpu", checks="race,uninit")
    np.testing.assert_array_equal(found, given)


@pytest.mark.parametrize("mode", utils.TensorMapUpdateMode)
def test_a_missing_fence_is_reported(mode: Any) -> None:
    with pytest.raises(InterpError, match=r"missing fence\.proxy\.tensormap::generic\.release"):
        run(FIRST, *arrays(), mode, False, device="cpu", checks="race")


@pytest.mark.parametrize("mode", utils.TensorMapUpdateMode)
def test_ptx_of_a_kernel_that_changes_maps(mode: Any) -> None:
    ptx = cute.trace(run, FIRST, *arrays(), mode, True).ptx
    space = "shared::cta" if mode is utils.TensorMapUpdateMode.SMEM else "global"
    for field, bits in (("global_address", 64), ("global_dim", 32), ("global_stride", 64)):
        assert f"tensormap.replace.tile.{field}.{space}.b1024.b{bits}" in ptx
    assert "fence.proxy.tensormap::generic.release.gpu" in ptx
    assert "fence.proxy.tensormap::generic.acquire.gpu" in ptx


@cute.kernel
def broken(atom: cute.CopyAtom, coords: cute.Tensor, maps: cute.Tensor, how: cute.Constexpr[str]):
    if how == "alignment":
        cpasync.copy_tensormap(atom, maps.iterator)
    elif how == "pointer":
        cpasync.fence_tma_desc_acquire(maps)
    elif how == "space":
        utils.TensorMapManager(utils.TensorMapUpdateMode.GMEM).get_tensormap_ptr(maps.iterator, "smem")
    else:
        where = cute.make_ptr(cute.Int64, maps.iterator.toint(), "gmem", assumed_align=64)
        cpasync.update_tma_descriptor(atom, maps, where)


@cute.jit
def run_broken(first: cute.Tensor, maps: cute.Tensor, how: cute.Constexpr[str]):
    tile = cute.make_layout((M, N), stride=(N, 1))
    atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), first, tile, (M, N))
    broken(atom, coords, maps, how).launch(grid=1, block=32)


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("alignment", "copy_tensormap: a tensor map must be aligned to 64 bytes"),
        ("pointer", "fence_tma_desc_acquire: the address of a tensor map must be a pointer"),
        ("space", "get_tensormap_ptr: address_space must be gmem or generic, got smem"),
        ("modes", "update_tma_descriptor: each dimension of the tensor map must be one mode of the tensor"),
    ],
)
def test_errors(how: str, text: str) -> None:
    with pytest.raises(CuteError, match=text):
        cute.trace(run_broken, FIRST, np.zeros(16, np.int64), how)
