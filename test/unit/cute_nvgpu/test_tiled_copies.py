"""Whole tiles by tiled copies, predicated copies, retiled fragments, fragments in memory: on the CPU interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from copy_atoms_support import sample

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.cute_nvgpu.tiled_mma.types import TiledMmaType
from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.copies import mma_copy, tile_copy
from cute_dialect.pipelines import compile as compile_cute

CP16 = "!cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>"
CP4 = "!cute_nvgpu.atom.simt_async_copy<f16, cache = always, 32 b>"
PLAIN = "!cute_nvgpu.atom.universal_copy<f16>"
LDSM4 = "!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>"
SMEM = [
    '!cute.memref<f16, smem, align<1024>, S<3,4,3>, "(16,64):(64,1)">',
    '!cute.memref<f16, smem, align<1024>, "S<3,3,3> o 0 o (16,64):(64,1)">',
    '!cute.memref<f16, smem, align<16>, "(16,64):(72,1)">',
]


def run(b: Builder, name: str, *arguments: np.ndarray) -> None:
    compile_cute(b.text(), emit="base").kernel(name)(*arguments, device="cpu", grid=(1, 1, 1))


@pytest.mark.parametrize("smem", SMEM, ids=["pointer", "composed", "padded"])
@pytest.mark.parametrize(("atom", "vector"), [(CP16, 8), (CP4, 2), (PLAIN, 1)], ids=["cp16", "cp4", "plain"])
def test_a_whole_tile_at_once(smem: str, atom: str, vector: int) -> None:
    b = Builder()
    x = '!cute.memref<f16, gmem, align<16>, "(16,64):(?{div=8},1)">'
    with b.kernel("tile", {"x": x, "out": '!cute.memref<f16, gmem, "(16,64):(64,1)">'}, threads=32) as (source, out):
        tid = b.thread_id()
        s = b.alloc_smem(smem)
        tc = b.tiled_copy(tile_copy(atom, (16, 64), 32, vector, contiguous=1))
        b.do("cute.tiled_copy", tc, source, s, b.coord(tid))
        if vector > 1:
            b.run("cp_async_commit_group")
            b.run("cp_async_wait_group", n=0)
        b.run("barrier")
        back = b.tiled_copy(tile_copy(PLAIN, (16, 64), 32, 4, contiguous=0))
        b.do("cute.tiled_copy", back, s, out, b.coord(tid))
    storage = np.zeros(16 * 72 + 8, np.float16)
    first = (-storage.ctypes.data % 16) // 2
    source_array = np.lib.stride_tricks.as_strided(storage[first:], (16, 64), (144, 2))
    source_array[...] = sample(1024).reshape(16, 64)
    result = np.zeros((16, 64), np.float16)
    run(b, "tile", source_array, result)
    assert np.array_equal(result.view(np.uint16), source_array.view(np.uint16))


@pytest.mark.parametrize("per_instruction", [False, True])
def test_flags_of_asynchronous_copies(per_instruction: bool) -> None:
    """Two instructions in mode 0, four rows: a flag an iteration, or one an instruction."""
    b = Builder()
    tile = '!cute.memref<f16, gmem, align<16>, "(128,16):(16,1)">'
    with b.kernel("flags", {"x": tile, "out": tile}, threads=32) as (x, out):
        tid = b.thread_id()
        s = b.alloc_smem('!cute.memref<f16, smem, align<16>, "(128,16):(16,1)">')
        tc = b.tiled_copy(f'!cute.tiled_copy<{CP16}, layout_copy_tv = <"(32,16):(1,32)">, tiler_mn = <"[32:1;16:1]">>')
        shape, stride = ("(2,4,1)", "(1,2,0)") if per_instruction else ("(1,4,1)", "(0,1,0)")
        flags = b.registers(f'!cute.memref<i1, rmem, "{shape}:{stride}">')
        for row in range(4):
            for half in range(2 if per_instruction else 1):
                b.store(flags, (half, row, 0), ((tid + row + half) % 3).ne(0))
        b.copy(tc, b.partition("S", tc, x, tid), b.partition("D", tc, s, tid), pred=flags)
        b.run("cp_async_commit_group")
        b.run("cp_async_wait_group", n=0)
        b.run("barrier")
        back = b.tiled_copy(tile_copy(PLAIN, (128, 16), 32, 8, contiguous=1))
        b.do("cute.tiled_copy", back, s, out, b.coord(tid))
    source = sample(2048).reshape(128, 16)
    result = np.full((128, 16), np.nan, np.float16)
    run(b, "flags", source, result)
    thread, row = np.arange(128) % 32, np.arange(128) // 32
    expected = source.copy()
    for half in range(2):
        off = (thread + row + (half if per_instruction else 0)) % 3 == 0
        expected[off, 8 * half : 8 * half + 8] = 0
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("operand", ["A", "B", "C"])
@pytest.mark.parametrize("warps", [(1, 1), (2, 2), (1, 4)])
def test_copies_made_for_an_mma_move_its_fragments(operand: str, warps: tuple[int, int]) -> None:
    """ldmatrix into the retiled fragment gives what partitioning the tile for the MMA gives, element by element."""
    b = Builder()
    wm, wn = warps
    mma_text = (
        f'!cute.tiled_mma<!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>, atom_layout_MNK = <"({wm},{wn},1):'
        f'(1,{wm},0)">, permutation_MNK = <"[{16 * wm}:1;{16 * wn}:1;16:1]">>'
    )
    mma = b.type(mma_text)
    assert isinstance(mma, TiledMmaType)
    threads = 32 * wm * wn
    shape = {"A": (64, 32), "B": (64, 32), "C": (64, 64)}[operand]
    values = shape[0] * shape[1] // threads * {"A": wn, "B": wm, "C": 1}[operand]
    matrix = f'!cute.memref<f16, gmem, "({shape[0]},{shape[1]}):({shape[1]},1)">'
    held = f'!cute.memref<f16, gmem, "({threads},{values}):({values},1)">'
    with b.kernel("frag", {"x": matrix, "out": held, "want": held}, threads=threads) as (x, out, want):
        tid = b.thread_id()
        tiled = b.op("cute.make_tiled_mma", b.atom(str(mma.atom)), type=mma)
        s = b.alloc_smem(f'!cute.memref<f16, smem, align<1024>, S<3,4,3>, "({shape[0]},{shape[1]}):({shape[1]},1)">')
        fill = b.tiled_copy(tile_copy(PLAIN, shape, threads, 1, contiguous=1))
        b.do("cute.tiled_copy", fill, x, s, b.coord(tid))
        b.run("barrier")
        part = b.partition(operand, tiled, s, tid)
        if operand == "C":
            fragment = b.fragment_like(part)
        else:
            fragment = b.op(f"cute.tiled.mma.make_fragment_{operand}", tiled, part)
        load = b.tiled_copy(mma_copy(PLAIN if operand == "C" else LDSM4, mma, operand))
        view = b.op("cute.tiled.copy.retile", load, fragment)
        b.copy(load, b.partition("S", load, s, tid), view)
        for v in range(values):
            b.store(out, (tid, v), b.load(fragment, v))
            b.store(want, (tid, v), b.load(part, v))
    source = sample(shape[0] * shape[1]).reshape(shape)
    got, expected = (np.zeros((threads, values), np.float16) for _ in range(2))
    run(b, "frag", source, got, expected)
    assert np.array_equal(got.view(np.uint16), expected.view(np.uint16))
    assert set(np.unique(got.view(np.uint16))) == set(source.view(np.uint16).ravel())


def test_a_fragment_that_lies_in_memory_is_loaded_and_stored_all_the_same() -> None:
    b = Builder()
    held = '!cute.memref<f16, gmem, "(32,8):(8,1)">'
    with b.kernel("memory", {"x": '!cute.memref<f16, gmem, "256:1">', "out": held}, threads=32) as (x, out):
        tid = b.thread_id()
        s = b.alloc_smem('!cute.memref<f16, smem, align<16>, "256:1">')
        t = b.alloc_smem('!cute.memref<f16, smem, align<16>, "256:1">')
        for i in range(8):
            b.store(s, tid + 32 * i, b.load(x, tid + 32 * i))
        b.run("barrier")
        tv = '"(32,(2,4)):(2,(1,64))"'
        tc = b.tiled_copy(f'!cute.tiled_copy<{LDSM4}, layout_copy_tv = <{tv}>, tiler_mn = <"[256:1]">>')
        store = b.tiled_copy(
            f'!cute.tiled_copy<{LDSM4.replace("ldsm", "stsm")}, layout_copy_tv = <{tv}>, tiler_mn = <"[256:1]">>'
        )
        f = b.registers('!cute.memref<f16, rmem, "((8,1),1):((1,0),0)">')
        b.copy(tc, b.partition("S", tc, s, tid), f)
        with b.for_(0, 8) as loop:  # turned by the lane: an index known at run time only
            b.store(out, (tid, loop.iv), b.load(f, (loop.iv + tid) % 8))
        b.copy(store, f, b.partition("D", store, t, tid))
        b.run("barrier")
        with b.if_(tid.eq(0)):
            b.store(out, (0, 0), b.load(t, 255))
    source = sample(256)
    result = np.zeros((32, 8), np.float16)
    compiled = compile_cute(b.text(), emit="base")
    compiled.kernel("memory")(source, result, device="cpu", grid=(1, 1, 1))
    lane, value = np.meshgrid(np.arange(32), np.arange(8), indexing="ij")
    turned = (value + lane) % 8
    expected = source[2 * lane + turned % 2 + 64 * (turned // 2)]
    expected[0, 0] = source[255]
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("smem", SMEM, ids=["pointer", "composed", "padded"])
@pytest.mark.parametrize("threads", [32, 96, 1024])
@pytest.mark.parametrize("aligned", [True, False])
def test_threads_copy_together(smem: str, threads: int, aligned: bool) -> None:
    b = Builder()
    x = (
        '!cute.memref<f16, gmem, align<16>, "(16,64):(?{div=8},1)">'
        if aligned
        else '!cute.memref<f16, gmem, "(16,64):(?,1)">'
    )
    with b.kernel("together", {"x": x, "out": x}, threads=threads) as (source, out):
        tid = b.coord(b.thread_id())
        s = b.alloc_smem(smem)
        b.do("cute.cooperative_copy", source, s, tid, threads=threads)
        b.run("barrier")
        b.do("cute.cooperative_copy", s, out, tid, threads=threads)
    tiles: list[np.ndarray] = []
    for _ in range(2):
        storage = np.zeros(16 * 72 + 8, np.float16)
        first = (-storage.ctypes.data % 16) // 2
        tiles.append(np.lib.stride_tricks.as_strided(storage[first:], (16, 64), (144, 2)))
    tiles[0][...] = sample(1024).reshape(16, 64)
    run(b, "together", *tiles)
    assert np.array_equal(tiles[0], tiles[1])
    assert ("vector<8xf16>" in str(compile_cute(b.text(), emit="base").lowered())) == aligned


@pytest.mark.parametrize(
    ("tile", "threads", "vector", "text"),
    [
        ((16, 12), 32, 8, "a multiple of 8 elements along mode 1 of the tile, got 12"),
        ((15, 64), 32, 8, "32 threads to take whole rows of 8 runs"),
        ((16, 96), 64, 1, "96 elements to be a multiple of 64 threads"),
    ],
)
def test_tiles_that_do_not_fit(tile: tuple[int, int], threads: int, vector: int, text: str) -> None:
    with pytest.raises(AlgebraError, match=text):
        tile_copy(PLAIN, tile, threads, vector, contiguous=1)
