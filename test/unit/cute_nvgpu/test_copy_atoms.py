"""Each copy atom, from cute text to what it moved on the CPU interpreter, element by element."""

from __future__ import annotations

import numpy as np
import pytest
from copy_atom_kernels import CopyCase, cases, copy_atom_kernels
from copy_atoms_support import run_case, sample

from cute_dialect.kernels.builder import Builder
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule

LDSM4 = "!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>"
LDSM4_T = "!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, t>"
LDSM2 = "!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 2, n>"
STSM4 = "!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>"
TV_A = "((4,8),(2,2,2)):((32,1),(16,8,128))"
TV_B = "((4,8),(2,2)):((16,1),(8,64))"


@pytest.fixture(scope="module")
def module() -> CompiledModule:
    return compile_cute(copy_atom_kernels(), emit="base")


@pytest.mark.parametrize("case", list(cases()), ids=lambda c: c.name)
def test_each_atom_moves_what_its_table_says(module: CompiledModule, case: CopyCase) -> None:
    source, out, expected = run_case(case)
    module.kernel(case.name)(source, out, device="cpu", grid=(1, 1, 1))
    assert np.array_equal(out.view(f"u{out.itemsize}"), expected.view(f"u{out.itemsize}"))


def fragment_a(tile: np.ndarray) -> np.ndarray:
    """``[thread, value, m, k]`` of the m16n8k16 A fragments of a tile (PTX ISA 9.7.14.5.8): rows in g, pairs in q."""
    m, k = tile.shape
    out = np.empty((32, 8, m // 16, k // 16), tile.dtype)
    for t in range(32):
        for i in range(8):
            row, column = t // 4 + 8 * (i // 2 % 2), 2 * (t % 4) + i % 2 + 8 * (i // 4)
            out[t, i] = tile[row::16, column::16]
    return out


def fragment_b(tile: np.ndarray) -> np.ndarray:
    """``[thread, value, n, k]`` of the m16n8k16 B fragments of a tile (n, k)."""
    n, k = tile.shape
    out = np.empty((32, 4, n // 8, k // 16), tile.dtype)
    for t in range(32):
        for i in range(4):
            out[t, i] = tile[t // 4 :: 8, 2 * (t % 4) + i % 2 + 8 * (i // 2) :: 16]
    return out


def load_kernel(atom: str, tv: str, tile: tuple[int, int], smem: str, gmem: str, shape: tuple[int, int]) -> str:
    """Global tile to shared memory by elements, to registers by ``atom``, to the output ``[thread, value]``."""
    b = Builder()
    values = shape[0] * shape[1] // 32
    parameters = {
        "x": f'!cute.memref<f16, gmem, "{gmem}">',
        "out": f'!cute.memref<f16, gmem, "(32,{values}):({values},1)">',
    }
    with b.kernel("load", parameters, threads=32) as (x, out):
        tid = b.thread_id()
        tc = b.tiled_copy(
            f'!cute.tiled_copy<{atom}, layout_copy_tv = <"{tv}">, tiler_mn = <"[{tile[0]}:1;{tile[1]}:1]">>'
        )
        s = b.alloc_smem(smem)
        for i in range(shape[0] * shape[1] // 32):
            b.store(s, tid + 32 * i, b.load(x, tid + 32 * i))
        b.run("barrier")
        part = b.partition("S", tc, s, tid)
        rest = [shape[0] // tile[0], shape[1] // tile[1]]
        per = values // (rest[0] * rest[1])
        held = b.registers(f'!cute.memref<f16, rmem, "(({per},1),{rest[0]},{rest[1]}):((1,0),{per},{per * rest[0]})">')
        b.copy(tc, part, held)
        for v in range(values):
            b.store(out, (tid, v), b.load(held, v))
    return b.text()


SWIZZLED = [
    ('!cute.memref<f16, smem, align<1024>, S<3,4,3>, "(32,64):(64,1)">', "128 B"),
    ('!cute.memref<f16, smem, align<1024>, S<2,4,3>, "(32,(32,2)):(32,(1,1024))">', "64 B"),
    ('!cute.memref<f16, smem, align<1024>, S<1,4,3>, "(32,(16,4)):(16,(1,512))">', "32 B"),
    ('!cute.memref<f16, smem, align<16>, "(32,64):(72,1)">', "padded"),
    ('!cute.memref<f16, smem, align<1024>, "S<3,3,3> o 0 o (32,64):(64,1)">', "composed"),
]


@pytest.mark.parametrize("smem", [s for s, _ in SWIZZLED], ids=[n for _, n in SWIZZLED])
@pytest.mark.parametrize("operand", ["A", "B x4", "B x2"])
def test_fragments_from_swizzled_tiles(smem: str, operand: str) -> None:
    x = sample(32 * 64).reshape(32, 64)
    if operand == "A":
        atom, tv, tile = LDSM4, TV_A, (16, 16)
        expected = fragment_a(x)
    elif operand == "B x4":
        # Two of B's tiles along n in one instruction: values of the first, then of the second.
        atom, tv, tile = LDSM4, "((4,8),(2,2,2)):((32,1),(16,128,8))", (16, 16)
        b = fragment_b(x)
        expected = np.concatenate([b[:, :, 0::2], b[:, :, 1::2]], axis=1)
    else:
        atom, tv, tile = LDSM2, TV_B, (8, 16)
        expected = fragment_b(x)
    out = np.zeros((32, 64), np.float16)
    compiled = compile_cute(load_kernel(atom, tv, tile, smem, "(32,64):(64,1)", (32, 64)), emit="base")
    compiled.kernel("load")(x, out, device="cpu", grid=(1, 1, 1))
    # The output counts values, then tiles along the rows, then along k.
    assert np.array_equal(out.view(np.uint16), expected.transpose(0, 3, 2, 1).reshape(32, 64).view(np.uint16))


def test_transposed_loads_serve_the_other_major() -> None:
    """A stored with m contiguous: ``ldmatrix.trans`` gives the same fragments."""
    stored = sample(32 * 64).reshape(64, 32)  # [k, m]
    x = stored.T
    smem = '!cute.memref<f16, smem, align<1024>, S<2,4,3>, "(32,64):(1,32)">'
    text = load_kernel(LDSM4_T, TV_A, (16, 16), smem, "(32,64):(1,32)", (32, 64))
    out = np.zeros((32, 64), np.float16)
    compile_cute(text, emit="base").kernel("load")(x, out, device="cpu", grid=(1, 1, 1))
    assert np.array_equal(out.view(np.uint16), fragment_a(x).transpose(0, 3, 2, 1).reshape(32, 64).view(np.uint16))


@pytest.mark.parametrize("smem", [s for s, _ in SWIZZLED], ids=[n for _, n in SWIZZLED])
def test_stores_into_swizzled_tiles(smem: str) -> None:
    """stmatrix of accumulator-like fragments, then read back element by element."""
    x = sample(32 * 64).reshape(32, 64)
    b = Builder()
    with b.kernel(
        "store",
        {"x": '!cute.memref<f16, gmem, "(32,64):(64,1)">', "out": '!cute.memref<f16, gmem, "(32,64):(64,1)">'},
        threads=32,
    ) as (source, out):
        tid = b.thread_id()
        tc = b.tiled_copy(f'!cute.tiled_copy<{STSM4}, layout_copy_tv = <"{TV_A}">, tiler_mn = <"[16:1;16:1]">>')
        s = b.alloc_smem(smem)
        held = b.registers('!cute.memref<f16, rmem, "((8,1),2,4):((1,0),8,16)">')
        for v in range(64):
            b.store(held, v, b.load(source, (tid, v)))
        b.copy(tc, held, b.partition("D", tc, s, tid))
        b.run("barrier")
        for i in range(64):
            b.store(out, tid + 32 * i, b.load(s, tid + 32 * i))
    result = np.zeros((32, 64), np.float16)
    fragments = fragment_a(x).transpose(0, 3, 2, 1).reshape(32, 64)
    compile_cute(b.text(), emit="base").kernel("store")(fragments, result, device="cpu", grid=(1, 1, 1))
    assert np.array_equal(result.view(np.uint16), x.view(np.uint16))
