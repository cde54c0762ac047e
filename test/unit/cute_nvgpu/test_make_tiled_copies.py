"""Tiled copies made by ops, from a tiled MMA and from layouts of threads and values: types, and a product by them."""

from __future__ import annotations

import numpy as np
import pytest

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.cute_nvgpu.tiled_mma.types import TiledMmaType
from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.copies import mma_copy
from cute_dialect.pipelines import compile as compile_cute

LDSM4 = "!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>"
LDSM2 = "!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 2, n>"
PLAIN = "!cute_nvgpu.atom.universal_copy<f32>"
ATOM = "!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>"
MMAS = (
    f'!cute.tiled_mma<{ATOM}, atom_layout_MNK = <"(1,1,1):(0,0,0)">>',
    f'!cute.tiled_mma<{ATOM}, atom_layout_MNK = <"(2,2,1):(1,2,0)">>',
    f'!cute.tiled_mma<{ATOM}, atom_layout_MNK = <"(2,2,1):(1,2,0)">, permutation_MNK = <"[32:1;32:1;16:1]">>',
)


@pytest.mark.parametrize("mma", MMAS, ids=["warp", "warps", "permuted"])
@pytest.mark.parametrize(("operand", "atom"), [("A", LDSM4), ("B", LDSM2), ("C", PLAIN)])
def test_the_thread_value_layout_is_that_of_the_operand(operand: str, atom: str, mma: str) -> None:
    b = Builder()
    t = b.type(mma)
    assert isinstance(t, TiledMmaType)
    with b.kernel("k", {}, threads=128):
        tiled = b.op("cute.make_tiled_mma", b.atom(ATOM), type=mma)
        made = b.op(f"cute.make_tiled_copy_{operand}", b.atom(atom), tiled)
    assert made.type == b.type(mma_copy(atom, t, operand))


def test_a_product_by_copies_made_from_the_mma() -> None:
    """Fragments by ldmatrix, the result through shared memory, in f16; a copy from layouts writes it to memory."""
    m, n, k = 32, 32, 32
    b = Builder()
    f16 = "!cute_nvgpu.atom.universal_copy<f16>"
    parameters = {x: f'!cute.memref<f16, gmem, align<16>, "({r},{c}):({c},1)">' for x, r, c in
                  (("A", m, k), ("B", n, k), ("D", m, n))}  # fmt: skip
    with b.kernel("k", parameters, threads=128) as (pa, pb, pd):
        tid = b.thread_id()
        thread = b.coord(tid)
        mma = b.op("cute.make_tiled_mma", b.atom(ATOM), type=MMAS[1])
        wide = b.atom("!cute_nvgpu.atom.universal_copy<f16, 128 b>")
        rows = b.op("cute.make_tiled_copy_tv", wide, b.layout("(32,4):(4,1)"), b.layout("(1,8):(0,1)"))
        smem = [b.alloc_smem('!cute.memref<f16, smem, align<16>, "(32,32):(40,1)">') for _ in range(3)]
        for source, target in zip((pa, pb), smem):
            b.do("cute.tiled_copy", rows, source, target, thread)
        b.run("barrier")
        fragments = []
        for name, tensor, atom in (("A", smem[0], LDSM4), ("B", smem[1], LDSM2)):
            copy = b.op(f"cute.make_tiled_copy_{name}", b.atom(atom), mma)
            fragment = b.op(f"cute.tiled.mma.make_fragment_{name}", mma, b.partition(name, mma, tensor, tid))
            b.copy(copy, b.partition("S", copy, tensor, tid), b.op("cute.tiled.copy.retile", copy, fragment))
            fragments.append(fragment)
        acc = b.op("cute.tiled.mma.make_fragment_C", mma, b.partition("C", mma, smem[2], tid))
        b.do("cute.clear", acc)
        b.gemm(mma, acc, *fragments, acc)
        narrow = b.registers(str(acc.type).replace("f32", "f16", 1))
        with b.for_(0, m * n // 128) as loop:
            b.store(narrow, loop.iv, b.op("arith.truncf", b.load(acc, loop.iv), type="f16"))
        store = b.op("cute.make_tiled_copy_C", b.atom(f16), mma)
        b.copy(store, b.op("cute.tiled.copy.retile", store, narrow), b.partition("D", store, smem[2], tid))
        b.run("barrier")
        b.do("cute.tiled_copy", rows, smem[2], pd, thread)
    rng = np.random.default_rng(3)
    a, c = (rng.integers(-3, 4, (32, 32)).astype(np.float16) for _ in range(2))
    d = np.full((32, 32), np.nan, np.float16)
    compile_cute(b.text(), emit="base").kernel("k")(a, c, d, device="cpu", grid=(1, 1, 1), checks=("race", "uninit"))
    assert np.array_equal(d, a @ c.T)


def test_what_does_not_fit_is_an_error_of_the_builder() -> None:
    b = Builder()
    with b.kernel("k", {}, threads=128):
        mma = b.op("cute.make_tiled_mma", b.atom(ATOM), type=MMAS[0])
        with pytest.raises(AlgebraError, match="as wide as A's f16"):
            b.op("cute.make_tiled_copy_A", b.atom(PLAIN), mma)
