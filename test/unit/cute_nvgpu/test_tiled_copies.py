"""Tiled, predicated and retiled copies, and fragments in memory, on the CPU interpreter."""

# pyright: basic

from typing import Any

import numpy as np
import pytest
from copy_atoms_support import sample
from kernel_modules import SharedTile

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import CopyUniversalOp, LoadCacheMode, cpasync, warp

CP16 = cute.make_copy_atom(cpasync.CopyG2SOp(LoadCacheMode.GLOBAL), cute.Float16, num_bits_per_copy=128)
CP4 = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float16, num_bits_per_copy=32)
PLAIN = cute.make_copy_atom(CopyUniversalOp(), cute.Float16)
LDSM4 = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
STSM4 = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), cute.Float16)
SMEM = {
    "pointer": SharedTile("(16,64):(64,1)", 1024, cute.Swizzle(3, 4, 3)),
    "composed": SharedTile("S<3,3,3> o 0 o (16,64):(64,1)", 1024),
    "padded": SharedTile("(16,64):(72,1)"),
}


def run(kernel: Any, *arrays: Any, threads: int = 32) -> None:
    """Run a kernel on arrays. numpy arrays get fully static layouts."""
    given = [cute.from_dlpack(x) if isinstance(x, np.ndarray) else x for x in arrays]
    kernel(*given).launch(grid=1, block=threads, device="cpu")


def rows_of_144_bytes() -> np.ndarray:
    """Return a (16, 64) tile of f16 with a row stride of 144 bytes, aligned to 16 bytes."""
    storage = np.zeros(16 * 72 + 8, np.float16)
    first = (-storage.ctypes.data % 16) // 2
    return np.lib.stride_tricks.as_strided(storage[first:], (16, 64), (144, 2))


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("smem", SMEM.values(), ids=list(SMEM))
@pytest.mark.parametrize(("atom", "vector"), [(CP16, 8), (CP4, 2), (PLAIN, 1)], ids=["cp16", "cp4", "plain"])
def test_a_whole_tile_at_once(smem: SharedTile, atom: Any, vector: int) -> None:
    matrix = cute.Tensor[cute.Float16, "(16,64):(?{div=8},1)", "align<16>"]

    @cute.kernel
    def tile(x: matrix, out: Any):  # pyright: ignore[reportInvalidTypeForm]
        tid = cute.arch.thread_idx().x
        s = smem.make()
        runs = min(64 // vector, 32)
        rows = cute.make_layout((32 // runs, runs), stride=(runs, 1))
        cute.copy(cute.make_tiled_copy_tv(atom, rows, cute.make_layout((1, vector))), x, s, thread=tid)
        if vector > 1:
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        back = cute.make_tiled_copy_tv(PLAIN, cute.make_layout((4, 8)), cute.make_layout((4, 1)))
        cute.copy(back, s, out, thread=tid)

    source, result = rows_of_144_bytes(), np.zeros((16, 64), np.float16)
    source[...] = sample(1024).reshape(16, 64)
    tile(source, cute.from_dlpack(result)).launch(grid=1, block=32, device="cpu")
    assert np.array_equal(result.view(np.uint16), source.view(np.uint16))


@pytest.mark.parametrize("per_instruction", [False, True])
def test_flags_of_asynchronous_copies(per_instruction: bool) -> None:
    """Predicate asynchronous copies of four rows per iteration or per instruction; mode 0 holds two instructions."""

    @cute.kernel
    def flagged(x: Any, out: Any):
        tid = cute.arch.thread_idx().x
        s = cute.smem_tensor(cute.Float16, cute.make_layout((128, 16), stride=(16, 1)), 16)
        copy = cute.make_tiled_copy(CP16, cute.make_layout((32, 16)), (32, 16))
        stride = (1, 2, 0) if per_instruction else (0, 1, 0)
        flags = cute.make_rmem_tensor(
            cute.make_layout((2 if per_instruction else 1, 4, 1), stride=stride), cute.Boolean
        )
        for row in cute.range_constexpr(4):
            for half in cute.range_constexpr(2 if per_instruction else 1):
                flags[half, row, 0] = (tid + row + half) % 3 != 0
        thread = copy.get_slice(tid)
        cute.copy(copy, thread.partition_S(x), thread.partition_D(s), pred=flags)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        rows = cute.make_layout((16, 2), stride=(2, 1))
        cute.copy(cute.make_tiled_copy_tv(PLAIN, rows, cute.make_layout((1, 8))), s, out, thread=tid)

    source = sample(2048).reshape(128, 16)
    result = np.full((128, 16), np.nan, np.float16)
    run(flagged, source, result)
    thread, row = np.arange(128) % 32, np.arange(128) // 32
    expected = source.copy()
    for half in range(2):
        off = (thread + row + (half if per_instruction else 0)) % 3 == 0
        expected[off, 8 * half : 8 * half + 8] = 0
    assert np.array_equal(result, expected)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("operand", ["A", "B", "C"])
@pytest.mark.parametrize("warps", [(1, 1), (2, 2), (1, 4)])
def test_copies_made_for_an_mma_move_its_fragments(operand: str, warps: tuple[int, int]) -> None:
    """ldmatrix into the retiled fragment loads the same elements as partitioning the tile for the MMA."""
    wm, wn = warps
    op = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, (wm, wn, 1), (16 * wm, 16 * wn, 16))
    threads = 32 * wm * wn
    shape = {"A": (64, 32), "B": (64, 32), "C": (64, 64)}[operand]
    values = shape[0] * shape[1] // threads * {"A": wn, "B": wm, "C": 1}[operand]
    load = {
        "A": lambda: cute.make_tiled_copy_A(LDSM4, mma),
        "B": lambda: cute.make_tiled_copy_B(LDSM4, mma),
        "C": lambda: cute.make_tiled_copy_C(PLAIN, mma),
    }[operand]()

    @cute.kernel
    def fragments(x: Any, out: Any, want: Any):
        tid = cute.arch.thread_idx().x
        rows = cute.make_layout(shape, stride=(shape[1], 1))
        s = cute.smem_tensor(cute.Float16, rows, 1024, cute.Swizzle(3, 4, 3))
        cute.cooperative_copy(x, s, tid, threads)
        cute.arch.sync_threads()
        thread = mma.get_slice(tid)
        if operand == "A":
            part = thread.partition_A(s)
            fragment = mma.make_fragment_A(part)
        elif operand == "B":
            part = thread.partition_B(s)
            fragment = mma.make_fragment_B(part)
        else:
            part = thread.partition_C(s)
            fragment = cute.make_rmem_tensor_like(part)
        cute.copy(load, load.get_slice(tid).partition_S(s), load.retile(fragment))
        for v in cute.range_constexpr(values):
            out[tid, v] = fragment[v]
            want[tid, v] = part[v]

    source = sample(shape[0] * shape[1]).reshape(shape)
    got, expected = (np.zeros((threads, values), np.float16) for _ in range(2))
    run(fragments, source, got, expected, threads=threads)
    assert np.array_equal(got.view(np.uint16), expected.view(np.uint16))
    assert set(np.unique(got.view(np.uint16))) == set(source.view(np.uint16).ravel())


def test_fragments_in_memory_are_loaded_and_stored() -> None:
    tv = "(32,(2,4)):(2,(1,64))"

    @cute.kernel
    def memory(x: Any, out: Any):
        tid = cute.arch.thread_idx().x
        s, t = (cute.smem_tensor(cute.Float16, cute.make_layout(256), 16) for _ in range(2))
        for i in cute.range_constexpr(8):
            s[tid + 32 * i] = x[tid + 32 * i]
        cute.arch.sync_threads()
        load, store = (cute.make_tiled_copy(atom, cute.layout(tv), (256,)) for atom in (LDSM4, STSM4))
        f = cute.make_rmem_tensor(((8, 1), 1), cute.Float16)
        cute.copy(load, load.get_slice(tid).partition_S(s), f)
        for i in range(8):  # Rotating by the lane makes the index dynamic.
            out[tid, i] = f[(i + tid) % 8]
        cute.copy(store, f, store.get_slice(tid).partition_D(t))
        cute.arch.sync_threads()
        if tid == 0:
            out[0, 0] = t[255]

    source = sample(256)
    result = np.zeros((32, 8), np.float16)
    run(memory, source, result)
    lane, value = np.meshgrid(np.arange(32), np.arange(8), indexing="ij")
    turned = (value + lane) % 8
    expected = source[2 * lane + turned % 2 + 64 * (turned // 2)]
    expected[0, 0] = source[255]
    assert np.array_equal(result, expected)


@pytest.mark.sample(pairs=True)
@pytest.mark.parametrize("smem", SMEM.values(), ids=list(SMEM))
@pytest.mark.parametrize("threads", [32, 96, 1024])
@pytest.mark.parametrize("aligned", [True, False])
def test_threads_copy_together(smem: SharedTile, threads: int, aligned: bool) -> None:
    rows = ("(16,64):(?{div=8},1)", "align<16>") if aligned else ("(16,64):(?,1)",)
    tile = cute.Tensor[(cute.Float16, *rows)]

    @cute.kernel
    def together(x: tile, out: tile):  # pyright: ignore[reportInvalidTypeForm]
        tid = cute.arch.thread_idx().x
        s = smem.make()
        cute.cooperative_copy(x, s, tid, threads)
        cute.arch.sync_threads()
        cute.cooperative_copy(s, out, tid, threads)

    source, result = rows_of_144_bytes(), rows_of_144_bytes()
    source[...] = sample(1024).reshape(16, 64)
    together(source, result).launch(grid=1, block=threads, device="cpu")
    assert np.array_equal(source, result)
    compiled = cute.compile(together, source, result, grid=1, block=threads, device="cpu")
    assert ("vector<8xf16>" in compiled.mlir("base")) == aligned
