"""Every copy atom moves the right elements when a kernel that uses it runs on the CPU interpreter."""

# pyright: basic

from typing import Any

import numpy as np
import pytest
from copy_atom_kernels import CopyCase, cases, copy_atom_kernels
from copy_atoms_support import run_case, sample
from kernel_modules import SharedTile

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import warp
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule

LDSM4, LDSM4_T = warp.LdMatrix8x8x16bOp(False, 4), warp.LdMatrix8x8x16bOp(True, 4)
LDSM2 = warp.LdMatrix8x8x16bOp(False, 2)
STSM4 = warp.StMatrix8x8x16bOp(False, 4)
TV_A = "((4,8),(2,2,2)):((32,1),(16,8,128))"
TV_B = "((4,8),(2,2)):((16,1),(8,64))"


@pytest.fixture(scope="module")
def module() -> CompiledModule:
    return compile_cute(copy_atom_kernels(), emit="base")


@pytest.mark.parametrize("case", list(cases()), ids=lambda c: c.name)
def test_language_descriptor_matches_the_table(case: CopyCase) -> None:
    row = case.atom.type.row
    assert (row() if callable(row) else row).name == case.row.removesuffix("_ZFILL")


@pytest.mark.parametrize("case", list(cases()), ids=lambda c: c.name)
def test_each_atom_copies_according_to_its_table(module: CompiledModule, case: CopyCase) -> None:
    source, out, expected = run_case(case)
    module.kernel(case.name)(source, out, device="cpu", grid=(1, 1, 1))
    assert np.array_equal(out.view(f"u{out.itemsize}"), expected.view(f"u{out.itemsize}"))


def fragment_a(tile: np.ndarray) -> np.ndarray:
    """Return the m16n8k16 A fragments of a tile as ``[thread, value, m, k]`` (PTX ISA 9.7.14.5.8)."""
    m, k = tile.shape
    out = np.empty((32, 8, m // 16, k // 16), tile.dtype)
    for t in range(32):
        for i in range(8):
            row, column = t // 4 + 8 * (i // 2 % 2), 2 * (t % 4) + i % 2 + 8 * (i // 4)
            out[t, i] = tile[row::16, column::16]
    return out


def fragment_b(tile: np.ndarray) -> np.ndarray:
    """Return the m16n8k16 B fragments of a tile (n, k) as ``[thread, value, n, k]``."""
    n, k = tile.shape
    out = np.empty((32, 4, n // 8, k // 16), tile.dtype)
    for t in range(32):
        for i in range(4):
            out[t, i] = tile[t // 4 :: 8, 2 * (t % 4) + i % 2 + 8 * (i // 2) :: 16]
    return out


SWIZZLED = {
    "128 B": SharedTile("(32,64):(64,1)", 1024, cute.Swizzle(3, 4, 3)),
    "64 B": SharedTile("(32,(32,2)):(32,(1,1024))", 1024, cute.Swizzle(2, 4, 3)),
    "32 B": SharedTile("(32,(16,4)):(16,(1,512))", 1024, cute.Swizzle(1, 4, 3)),
    "padded": SharedTile("(32,64):(72,1)"),
    "composed": SharedTile("S<3,3,3> o 0 o (32,64):(64,1)", 1024),
}


def loaded(op: Any, tv: str, tile: tuple[int, int], shared: SharedTile, x: np.ndarray) -> np.ndarray:
    """Return the values per thread, ``[thread, value]``, of a (32, 64) tile copied through shared memory."""
    rest = (32 // tile[0], 64 // tile[1])
    per = 64 // (rest[0] * rest[1])

    @cute.kernel
    def load(x: Any, out: Any):
        tid = cute.arch.thread_idx().x
        copy = cute.make_tiled_copy(cute.make_copy_atom(op, cute.Float16), cute.layout(tv), tile)
        s = shared.make()
        for i in cute.range_constexpr(64):
            s[tid + 32 * i] = x[tid + 32 * i]
        cute.arch.sync_threads()
        held = cute.make_rmem_tensor(((per, 1), *rest), cute.Float16)
        cute.copy(copy, copy.get_slice(tid).partition_S(s), held)
        for v in cute.range_constexpr(64):
            out[tid, v] = held[v]

    out = np.zeros((32, 64), np.float16)
    load(cute.from_dlpack(x), cute.from_dlpack(out)).launch(grid=1, block=32, device="cpu")
    return out


@pytest.mark.sample("A-128 B")
@pytest.mark.parametrize("shared", SWIZZLED.values(), ids=list(SWIZZLED))
@pytest.mark.parametrize("operand", ["A", "B x4", "B x2"])
def test_fragments_from_swizzled_tiles(shared: SharedTile, operand: str) -> None:
    x = sample(32 * 64).reshape(32, 64)
    if operand == "A":
        out = loaded(LDSM4, TV_A, (16, 16), shared, x)
        expected = fragment_a(x)
    elif operand == "B x4":
        # One instruction loads two tiles of B along n: first the values of one tile, then those of the other.
        out = loaded(LDSM4, "((4,8),(2,2,2)):((32,1),(16,128,8))", (16, 16), shared, x)
        b = fragment_b(x)
        expected = np.concatenate([b[:, :, 0::2], b[:, :, 1::2]], axis=1)
    else:
        out = loaded(LDSM2, TV_B, (8, 16), shared, x)
        expected = fragment_b(x)
    # The columns of the output are ordered by value, then by tile along the rows, then by tile along k.
    assert np.array_equal(out.view(np.uint16), expected.transpose(0, 3, 2, 1).reshape(32, 64).view(np.uint16))


def test_transposed_loads_read_the_other_major() -> None:
    """With A stored m-major, ``ldmatrix.trans`` loads the same fragments."""
    stored = sample(32 * 64).reshape(64, 32)  # [k, m]
    out = loaded(LDSM4_T, TV_A, (16, 16), SharedTile("(32,64):(1,32)", 1024, cute.Swizzle(2, 4, 3)), stored.T)
    expected = fragment_a(stored.T).transpose(0, 3, 2, 1).reshape(32, 64)
    assert np.array_equal(out.view(np.uint16), expected.view(np.uint16))


@pytest.mark.sample("128 B")
@pytest.mark.parametrize("shared", SWIZZLED.values(), ids=list(SWIZZLED))
def test_stores_into_swizzled_tiles(shared: SharedTile) -> None:
    """Fragments stored with stmatrix into a swizzled tile are read back element by element."""

    @cute.kernel
    def store(fragments: Any, out: Any):
        tid = cute.arch.thread_idx().x
        copy = cute.make_tiled_copy(cute.make_copy_atom(STSM4, cute.Float16), cute.layout(TV_A), (16, 16))
        s = shared.make()
        held = cute.make_rmem_tensor(((8, 1), 2, 4), cute.Float16)
        for v in cute.range_constexpr(64):
            held[v] = fragments[tid, v]
        cute.copy(copy, held, copy.get_slice(tid).partition_D(s))
        cute.arch.sync_threads()
        for i in cute.range_constexpr(64):
            out[tid + 32 * i] = s[tid + 32 * i]

    x = sample(32 * 64).reshape(32, 64)
    result = np.zeros((32, 64), np.float16)
    fragments = np.ascontiguousarray(fragment_a(x).transpose(0, 3, 2, 1).reshape(32, 64))
    store(cute.from_dlpack(fragments), cute.from_dlpack(result)).launch(grid=1, block=32, device="cpu")
    assert np.array_equal(result.view(np.uint16), x.view(np.uint16))
