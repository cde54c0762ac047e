"""The tile scheduler of grouped GEMMs, and tensors that kernels access through arrays of pointers."""

from __future__ import annotations

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.compat.mlir import llvm as nvvm
from cute_dialect.errors import CuteError
from cute_dialect.interp import InterpError
from cute_dialect.lang import utils

SIZES = [(128, 128, 64, 1), (1, 300, 65, 1), (300, 200, 0, 1), (64, 64, 8, 1)]
TILE, CLUSTER = (64, 128, 64), (2, 1)


@cute.kernel
def walk(out: cute.Tensor, sizes: cute.Tensor, params: cute.Constexpr):
    scheduler = utils.StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
    helper = utils.GroupedGemmTileSchedulerHelper(
        sizes.shape[0], params, (TILE[0] * 2, TILE[1], TILE[2]), utils.create_initial_search_state()
    )
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        found = helper.delinearize_z(work.tile_idx, sizes)
        row = scheduler.current * 2 + cute.arch.block_idx().x
        for i in cute.range_constexpr(7):
            out[row, i] = found[i]
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


@cute.jit
def run(out: cute.Tensor, sizes: cute.Tensor, tiles: cute.Constexpr[int]):
    params = utils.PersistentTileSchedulerParams((2, 1, tiles), (*CLUSTER, 1))
    walk(out, sizes, params).launch(grid=(2, 1, 3), block=1, cluster=(*CLUSTER, 1))


def test_each_tile_of_each_problem_is_found() -> None:
    want: list[list[int]] = []
    for group, (m, n, k, _) in enumerate(SIZES):
        for column in range(-(-n // TILE[1])):
            for row in range(-(-m // (2 * TILE[0]))):
                want += [[group, 2 * row + block, column, m, n, k, -(-k // TILE[2])] for block in range(2)]
    out = np.zeros((len(want), 7), np.int32)
    run(out, np.array(SIZES, np.int32), len(want) // 2, device="cpu")
    assert out.tolist() == want


@cute.kernel
def doubled(addresses: cute.Tensor, n: cute.Int32):
    x = cute.make_tensor(cute.make_ptr(cute.Float32, addresses[0], "gmem", assumed_align=16), n)
    x[cute.arch.thread_idx().x] *= 2.0


@cute.jit
def run_doubled(addresses: cute.Tensor, n: cute.Int32):
    doubled(addresses, n).launch(grid=1, block=8)


def test_a_tensor_is_reached_by_its_address() -> None:
    torch = pytest.importorskip("torch")
    _, x = cute.torch.cute_tensor_like(torch.arange(8.0), cute.Float32, False, assumed_align=16)
    if x.is_cuda:
        pytest.skip("the tensor is on the GPU")
    run_doubled(np.array([x.data_ptr()]), 8, device="cpu")
    assert x.tolist() == [2.0 * i for i in range(8)]
    address = x.data_ptr()
    del x, _
    with pytest.raises(InterpError, match="address"):
        run_doubled(np.array([address]), 8, device="cpu")


def test_loads_of_pixels_have_no_builder() -> None:
    with pytest.raises(CuteError, match="only loads of tiles are supported"):
        nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp(None, None, [], None, [1])
