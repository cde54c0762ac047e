"""Tiled copies built from a tiled MMA or from thread and value layouts: their types, and a GEMM that uses them."""

# pyright: basic

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.algebra.text import to_text
from cute_dialect.algebra.tiled_mma import OPERAND_MODES
from cute_dialect.errors import CuteError
from cute_dialect.lang.nvgpu import CopyUniversalOp, warp

LDSM4 = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
LDSM2 = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 2), cute.Float16)
PLAIN = cute.make_copy_atom(CopyUniversalOp(), cute.Float32)
OP = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
MMAS = {
    "warp": cute.make_tiled_mma(OP),
    "warps": cute.make_tiled_mma(OP, (2, 2, 1)),
    "permuted": cute.make_tiled_mma(OP, (2, 2, 1), (32, 32, 16)),
}
MAKERS = {"A": cute.make_tiled_copy_A, "B": cute.make_tiled_copy_B, "C": cute.make_tiled_copy_C}


@pytest.mark.parametrize("mma", MMAS.values(), ids=list(MMAS))
@pytest.mark.parametrize(("operand", "atom"), [("A", LDSM4), ("B", LDSM2), ("C", PLAIN)])
def test_thread_value_layout_matches_the_operand(operand: str, atom: Any, mma: Any) -> None:
    tiled = mma.type.tiling(operand)
    layout = tiled.layout_tv(operand, mma.atom.type.row.layout(operand))
    made = MAKERS[operand](atom, mma)
    assert made.tiler_mn == tuple(tiled.tile_size[i] for i in OPERAND_MODES[operand])
    assert str(made.layout_tv_tiled) == to_text(layout)


def test_gemm_with_copies_made_from_the_mma() -> None:
    """Fragments are loaded with ldmatrix; the f16 result goes through shared memory to global memory."""

    @cute.kernel
    def multiply(A: Any, B: Any, D: Any):
        tid = cute.arch.thread_idx().x
        mma = MMAS["warps"]
        thread = mma.get_slice(tid)
        wide = cute.make_copy_atom(CopyUniversalOp(), cute.Float16, num_bits_per_copy=128)
        rows = cute.make_tiled_copy_tv(wide, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8)))
        sA, sB, sD = (cute.smem_tensor(cute.Float16, cute.make_layout((32, 32), stride=(40, 1)), 16) for _ in range(3))
        cute.copy(rows, A, sA, thread=tid)
        cute.copy(rows, B, sB, thread=tid)
        cute.arch.sync_threads()
        rA, rB = mma.make_fragment_A(thread.partition_A(sA)), mma.make_fragment_B(thread.partition_B(sB))
        for copy, tile, fragment in (
            (cute.make_tiled_copy_A(LDSM4, mma), sA, rA),
            (cute.make_tiled_copy_B(LDSM2, mma), sB, rB),
        ):
            cute.copy(copy, copy.get_slice(tid).partition_S(tile), copy.retile(fragment))
        acc = mma.make_fragment_C(thread.partition_C(sD))
        cute.clear(acc)
        cute.gemm(mma, acc, rA, rB, acc)
        narrow = cute.make_rmem_tensor_like(acc, cute.Float16)
        narrow.store(acc.load().to(cute.Float16))
        store = cute.make_tiled_copy_C(cute.make_copy_atom(CopyUniversalOp(), cute.Float16), mma)
        cute.copy(store, store.retile(narrow), store.get_slice(tid).partition_D(sD))
        cute.arch.sync_threads()
        cute.copy(rows, sD, D, thread=tid)

    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, (32, 32)).astype(np.float16) for _ in range(2))
    d = np.full((32, 32), np.nan, np.float16)
    given = [cute.from_dlpack(x) for x in (a, b, d)]
    multiply(*given).launch(grid=1, block=128, device="cpu", checks=("race", "uninit"))
    assert np.array_equal(d, a @ b.T)


def test_mismatched_element_widths_are_rejected() -> None:
    with pytest.raises(CuteError, match="of another width than A's f16"):
        cute.make_tiled_copy_A(PLAIN, MMAS["warp"])
