"""Tensors, vectors, shared memory and addresses of the language: the GPU matches the interpreter bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute


@cute.struct
class Storage:
    """Shared memory with a swizzled tile followed by a number."""

    tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, 8 * 64], 1024]
    count: cute.Int32


@cute.kernel
def shuffle_rows(x: cute.Tensor, out: cute.Tensor) -> None:
    """Reverse the rows of an 8x64 tile through swizzled shared memory: 256 threads store scalars, 64 load vectors."""
    t, _, _ = cute.arch.thread_idx()
    storage = cute.utils.SmemAllocator().allocate(Storage)
    rows = cute.make_layout((8, 64), stride=(64, 1))
    tile = storage.tile.get_tensor(rows, swizzle=cute.make_swizzle(3, 4, 3))
    composed = cute.smem_tensor(cute.Float16, cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, rows))
    for i in range(2):
        row, column = t // 64 + 4 * i, t % 64
        tile[row, column] = x[row, column]
        composed[row, column] = x[row, column]
    if t == 0:
        storage.count.store(3)
    cute.arch.sync_threads()
    if t < 64:
        v = cute.zipped_divide(tile, (1, 8))[(0, None), (t // 8, t % 8)].load()
        w = cute.zipped_divide(composed, (1, 8))[(0, None), (t // 8, t % 8)].load()
        sums = v.to(cute.Float32) + w.to(cute.Float32) * 2 + storage.count.load()
        target = cute.zipped_divide(out, (1, 8))[(0, None), (7 - t // 8, t % 8)]
        target.store(cute.where(sums > 8, sums, -sums))


@cute.jit
def run_shuffle_rows(x: cute.Tensor, out: cute.Tensor) -> None:
    """Launch ``shuffle_rows`` on one tile."""
    shape = cute.make_layout((8, 64), stride=(64, 1))
    shuffle_rows(cute.make_tensor(x.iterator, shape), cute.make_tensor(out.iterator, shape)).launch(grid=1, block=256)


@cute.kernel
def row_facts(x: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
    """Write the sum, maximum and element ``n`` of a row. Odd threads select row 0 at run time."""
    t, _, _ = cute.arch.thread_idx()
    row = x[t, None]
    if t % 2 == 1:
        row = x[0, None]
    v = row.load()
    out[t, 0] = v.sum()
    out[t, 1] = v.max()
    out[t, 2] = v[n]
    pointer = cute.make_ptr(cute.Float32, x.iterator.toint() + 4 * n)
    out[t, 3] = pointer.load()


@cute.jit
def run_row_facts(x: cute.Tensor, out: cute.Tensor, n: cute.Int32) -> None:
    """Launch ``row_facts`` on 8 rows of 12 elements."""
    rows, facts = cute.make_layout((8, 12), stride=(12, 1)), cute.make_layout((8, 4), stride=(4, 1))
    row_facts(cute.make_tensor(x.iterator, rows), cute.make_tensor(out.iterator, facts), n).launch(grid=1, block=8)


def on_both(f: Any, x: np.ndarray, out: np.ndarray, *more: Any) -> np.ndarray:
    """Run a function on the GPU and the interpreter, assert bitwise equal outputs, and return the output."""
    torch = pytest.importorskip("torch")
    on_gpu = torch.from_numpy(out.copy()).cuda()
    f(torch.from_numpy(x).cuda(), on_gpu, *more)
    f(x, out, *more, device="cpu")
    found = on_gpu.cpu().numpy()
    assert (found == out).all()
    return found


def test_swizzled_shared_memory_and_vectors() -> None:
    x = np.random.default_rng(1).integers(-8, 8, (8, 64)).astype(np.float16)
    found = on_both(run_shuffle_rows, x, np.full((8, 64), np.nan, np.float32))
    sums = 3 * x[::-1].astype(np.float32) + 3
    assert (found == np.where(sums > 8, sums, -sums)).all()


def test_chosen_tensors_and_addresses() -> None:
    x = np.random.default_rng(2).integers(-8, 8, (8, 12)).astype(np.float32)
    found = on_both(run_row_facts, x, np.full((8, 4), np.nan, np.float32), 5)
    rows = x.copy()
    rows[1::2] = x[0]
    assert (found == np.stack([rows.sum(1), rows.max(1), rows[:, 5], np.full(8, x[0, 5])], 1)).all()


def test_a_kernel_prints(capfd: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")

    @cute.kernel
    def show(x: cute.Tensor) -> None:
        t, _, _ = cute.arch.thread_idx()
        if t == 1:
            cute.printf("t={} x={} long {}", t, x[t], cute.Int64(t) * 2**40)
            cute.printf(f"{x[t]:.1f} of {cute.make_layout((t, 4))}")

    @cute.jit
    def host(x: cute.Tensor) -> None:
        show(x).launch(grid=1, block=4)

    host(torch.arange(4, dtype=torch.float32).cuda())
    torch.cuda.synchronize()
    assert capfd.readouterr().out == "t=1 x=1.000000 long 1099511627776\n1.0 of (1,4):(1,1)\n"
