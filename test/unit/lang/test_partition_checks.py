"""Partitions past the end of a static tile, and tiles that need more threads than the block has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import warp, warpgroup
from cute_dialect.lang.tracing.errors import KernelTypeError

Body = Callable[[Any, Any, Any, Any, Any, Any], None]


@cute.kernel
def copy_kernel(body: cute.Constexpr, x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    """Return a kernel that copies 4 x 32 tiles with 32 threads, arranged 4 x 8, each of which moves four elements."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, 4)))
    body(atom, tiled, cute.arch.thread_idx().x, x, y, n)


@cute.jit
def copy_host(
    body: cute.Constexpr, x: cute.Tensor, y: cute.Tensor, n: cute.Int32, rows: cute.Constexpr, block: cute.Constexpr
):
    tiles = [cute.local_tile(t, (rows, 32), (0, 0)) for t in (x, y)]
    copy_kernel(body, *tiles, n).launch(grid=1, block=block)


def rows_written(body: Body, rows: int, block: int = 32) -> list[int]:
    """Run a body on arrays of 12 rows with tiles of this number of rows, and return the rows written."""
    x = np.ones((12, 32), np.float32)
    y = np.zeros_like(x)
    copy_host(body, x, y, 2, rows, block, device="cpu", checks=("race", "uninit", "sync", "oob"))
    return [int(i) for i in np.nonzero(y.all(axis=1))[0]]


def parts(tiled: Any, t: Any, x: Any, y: Any) -> tuple[Any, Any]:
    part = tiled.get_slice(t)
    return part.partition_S(x), part.partition_D(y)


# ------------------------------------------------------------------------------------------ the end of static tiles


def whole(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    cute.copy(atom, *parts(tiled, t, x, y))


def last_step(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    a, b = parts(tiled, t, x, y)
    cute.copy(atom, a[None, 1, None], b[None, 1, None])


def automatic(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    cute.autovec_copy(*parts(tiled, t, x, y))


def of_whole_tiles(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    cute.copy(tiled, x, y, thread=t)


def in_a_branch_of_the_block(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    if n > 1:
        cute.copy(atom, *parts(tiled, t, x, y))


def in_a_loop(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    for i in range(n):
        if i < 1:
            cute.copy(atom, *parts(tiled, t, x, y))


@pytest.mark.parametrize(
    "body", [whole, last_step, automatic, of_whole_tiles, in_a_branch_of_the_block, in_a_loop],
    ids=lambda body: body.__name__,
)  # fmt: skip
def test_a_copy_past_a_static_tile(body: Body) -> None:
    with pytest.raises(KernelTypeError) as e:
        rows_written(body, 6)
    assert e.value.message == (
        "copy of a partition: the tile (4,32) of the tiled copy does not divide the source (6,32), so threads "
        "access elements past the end of mode 0"
    )
    assert e.value.place is not None and "cute." in e.value.place.text()
    assert rows_written(body, 8) == ([4, 5, 6, 7] if body is last_step else list(range(8)))


def first_step(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    a, b = parts(tiled, t, x, y)
    cute.copy(atom, a[None, 0, None], b[None, 0, None])


def guarded_by_the_thread(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    a, b = parts(tiled, t, x, y)
    first_step(atom, tiled, t, x, y, n)
    if t < 16:
        cute.copy(atom, a[None, 1, None], b[None, 1, None])


def guarded_by_a_coordinate(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    a, b = parts(tiled, t, x, y)
    places = tiled.get_slice(t).partition_S(cute.make_identity_tensor((6, 32)))
    for i in range(2):
        if places[0, i, 0][0] < 6:
            cute.copy(atom, a[None, i, None], b[None, i, None])


def with_flags(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    a, b = parts(tiled, t, x, y)
    places = tiled.get_slice(t).partition_S(cute.make_identity_tensor((6, 32)))
    inside = cute.make_fragment(places.shape, cute.Boolean)
    for i in range(cute.size(inside)):
        inside[i] = places[i][0] < 6
    cute.copy(atom, a, b, pred=inside)


def partial(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    cute.copy(atom, *parts(tiled, t, x, y), partial=True)


@pytest.mark.parametrize(
    ("body", "rows"),
    [(first_step, 4), (guarded_by_the_thread, 6), (guarded_by_a_coordinate, 6), (with_flags, 6), (partial, 8)],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_copies_in_and_beyond_a_static_tile(body: Body, rows: int) -> None:
    assert rows_written(body, 6) == list(range(rows))


@cute.kernel
def mma_kernel(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (2, 2, 1))
    part = mma.get_slice(cute.arch.thread_idx().x)
    a, b, c = part.partition_A(A), part.partition_B(B), part.partition_C(C)
    ra, rb, acc = mma.make_fragment_A(a), mma.make_fragment_B(b), mma.make_fragment_C(c)
    acc.fill(0)
    cute.autovec_copy(a, ra)
    cute.autovec_copy(b, rb)
    cute.gemm(mma, acc, ra, rb, acc)
    cute.autovec_copy(acc, c)


@cute.jit
def mma_host(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, rows: cute.Constexpr, block: cute.Constexpr):
    tiles = [cute.local_tile(t, (m, 16), (0, 0)) for t, m in ((A, rows), (B, 16), (C, rows))]
    mma_kernel(*tiles).launch(grid=1, block=block)


def multiply(rows: int, block: int) -> np.ndarray:
    c = np.zeros((64, 16), np.float32)
    mma_host(np.ones((64, 16), np.float16), np.ones((16, 16), np.float16), c, rows, block, device="cpu")
    return c


def test_a_tiled_mma_past_a_static_tile() -> None:
    """Rows 24 to 31 belong to the neighbouring tile and must not be accessed."""
    with pytest.raises(KernelTypeError, match=r"\(32,16\) of the tiled MMA does not divide the source \(24,16\)"):
        multiply(24, 128)
    assert (multiply(32, 128) == np.repeat([[16.0], [0.0]], 32, axis=0)).all()


# ---------------------------------------------------------------------------------------- the threads of the block


def cooperative(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    cute.cooperative_copy(x, y, t, 32)


def by_warp(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    whole(atom, tiled, cute.arch.canonical_warp_idx_sync() * 32 + t % 32, x, y, n)


@pytest.mark.parametrize(
    ("body", "start"),
    [
        (whole, "partition_S: the tiled copy needs"), (of_whole_tiles, "cute.copy with thread=: the tiled copy needs"),
        (by_warp, "partition_S: the tiled copy needs"), (cooperative, "cute.cooperative_copy: it needs"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_a_tile_for_more_threads_than_the_block(body: Body, start: str) -> None:
    with pytest.raises(KernelTypeError) as e:
        rows_written(body, 4, 16)
    assert e.value.message == f"{start} 32 threads, and the block has 16: no thread takes slices 16 to 31"
    assert e.value.place is not None and e.value.place.file == __file__
    assert rows_written(body, 4, 32) == [0, 1, 2, 3]


def two_slices(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    for first in (0, 16):
        whole(atom, tiled, t + first, x, y, n)


def slices_of_a_loop(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    for i in range(n):
        whole(atom, tiled, t + 16 * i, x, y, n)


def all_slices_in_each_thread(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    if t == 0:
        for i in range(32):
            whole(atom, tiled, i, x, y, n)


@pytest.mark.parametrize("body", [two_slices, slices_of_a_loop, all_slices_in_each_thread], ids=lambda b: b.__name__)
def test_threads_that_take_several_slices(body: Body) -> None:
    assert rows_written(body, 4, 16) == [0, 1, 2, 3]


def only_the_shape(atom: Any, tiled: Any, t: Any, x: Any, y: Any, n: Any) -> None:
    assert cute.size(tiled.get_slice(t).partition_S(x)) == 4
    assert cute.size(tiled.get_slice(0).partition_S(x)) == 4


def test_a_slice_that_is_not_used() -> None:
    assert rows_written(only_the_shape, 4, 16) == []


def test_a_tiled_mma_for_more_threads_than_the_block() -> None:
    with pytest.raises(KernelTypeError, match="partition_A: the tiled MMA needs 128 threads, and the block has 64"):
        multiply(32, 64)


@cute.kernel
def groups_kernel(index: cute.Constexpr, C: cute.Tensor):
    op = warpgroup.MmaF16BF16Op(
        cute.Float16, cute.Float32, (64, 64, 16), warpgroup.OperandSource.SMEM, cute.nvgpu.OperandMajorMode.K,
        cute.nvgpu.OperandMajorMode.K,
    )  # fmt: skip
    mma = cute.make_tiled_mma(op, (2, 1, 1))
    c = mma.get_slice(index(cute.arch.thread_idx().x)).partition_C(C)
    zeros = mma.make_fragment_C(c)
    zeros.fill(0)
    cute.autovec_copy(zeros, c)


@cute.jit
def groups_host(index: cute.Constexpr, C: cute.Tensor, block: cute.Constexpr):
    groups_kernel(index, C).launch(grid=1, block=block)


def test_accumulators_of_two_warp_groups() -> None:
    """A block may have more warps than the tiled MMA uses, but not fewer."""
    c = np.ones((128, 64), np.float32)
    with pytest.raises(KernelTypeError, match="needs 256 threads, and the block has 128: no thread takes slices 128"):
        groups_host(lambda t: t, cute.from_dlpack(c), 128, device="cpu")
    groups_host(lambda t: t % 256, cute.from_dlpack(c), 384, device="cpu")
    assert not c.any()


@cute.kernel
def lanes_kernel(index: cute.Constexpr, C: cute.Tensor):
    """Each warp writes its lanes at their places of one 16 x 8 accumulator, in its own matrix."""
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    thread = cute.arch.thread_idx().x
    c = mma.get_slice(index(thread)).partition_C(C[None, None, thread // 32])
    lanes = mma.make_fragment_C(c)
    lanes.fill(cute.Float32(thread % 32))
    cute.autovec_copy(lanes, c)


@cute.jit
def lanes_host(index: cute.Constexpr, C: cute.Tensor):
    lanes_kernel(index, C).launch(grid=1, block=96)


@pytest.mark.parametrize(
    "index",
    [lambda t: t, lambda t: cute.Int64(t) + 320, lambda t: t ^ 64, lambda t: t % 32],
    ids=["all", "wide", "other-warp", "below"],
)
def test_threads_beyond_those_of_a_tiled_mma(index: Callable[[Any], Any]) -> None:
    """An index is taken modulo the 32 threads of the MMA."""
    c = np.zeros((16, 8, 3), np.float32)
    lanes_host(index, cute.from_dlpack(c), device="cpu", checks=("race", "uninit", "sync", "oob"))
    rows, columns = np.indices((16, 8))
    want = rows % 8 * 4 + columns // 2  # the lane of each accumulator: PTX ISA, mma.m16n8k16
    assert all(np.array_equal(c[..., w], want) for w in range(3))


def test_an_index_below_the_threads_of_a_tiled_mma_is_kept() -> None:
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))

    @cute.kernel
    def kernel() -> None:
        thread = cute.arch.thread_idx().x
        kept = (thread % 32, cute.arch.lane_idx(), thread - 64)
        assert [id(mma.get_slice(t).thr_idx) for t in kept] == [id(t) for t in kept]
        assert id(mma.get_slice(thread).thr_idx) != id(thread)
        if cute.arch.warp_idx() == 0:
            assert id(mma.get_slice(thread).thr_idx) == id(thread)
        elif thread < 64:
            second = thread - 32
            assert id(mma.get_slice(second).thr_idx) == id(second)
        if thread >= 32:
            assert id(mma.get_slice(thread).thr_idx) != id(thread)
        else:
            assert id(mma.get_slice(thread).thr_idx) == id(thread)

    cute.trace(kernel, grid=1, block=96)
    assert [int(mma.get_slice(i).thr_idx) for i in (0, 31, 32, 33, cute.Int32(95))] == [0, 31, 0, 1, 31]
