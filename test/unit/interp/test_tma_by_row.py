"""TMA of rows by index on the interpreter: gather4 and scatter4, compared with numpy, and in a kernel."""

# Helpers of tests are found by pytest's path.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interp_support import DSMEM, kernel, run_kernel

from cute_dialect.interp import Pointer, TensorMap
from cute_dialect.interp.errors import Fault
from cute_dialect.interp.memory.buffers import Buffer

MAP = "!llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}"
PARAMS = f"%ta: {MAP}, %tb: {MAP}, %raw: !llvm.ptr<1>"


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 4), st.lists(st.integers(-2, 11), min_size=4, max_size=4), st.integers(0, 99))
def test_rows_by_index(rows: int, units: int, at: list[int], seed: int) -> None:
    """gather4 and scatter4 equal their definitions, row by row, with rows and columns out of bounds."""
    rng = np.random.default_rng(seed)
    array = rng.integers(1, 999, (rows, 8 * units)).astype(np.float16)
    buf = Buffer(4096, array.reshape(-1).view(np.uint8), "a")
    column = 8 * int(rng.integers(-1, units + 1))
    tm = TensorMap("f16", (8 * units, rows), (16 * units,), (16, 1)).at(4096).rows_by_index
    columns = [column + i if 0 <= column + i < 8 * units else None for i in range(16)]
    inside = np.array([[c is not None and 0 <= row < rows for c in columns] for row in at])
    want = [[array[row, c] if 0 <= row < rows and c is not None else 0 for c in columns] for row in at]
    assert tm.box_bytes == 4 * 32
    got = tm.gather(buf, (column, *at)).view(np.float16).reshape(4, 16)
    assert np.array_equal(got, want)
    assert np.array_equal(tm.inside(buf, (column, *at)).reshape(4, 16, 2)[..., 0], inside)
    assert len(tm.touched(buf, (column, *at))) == inside.sum()
    rest = [row for row in range(rows) if row not in at]
    new, kept = rng.integers(1, 999, (4, 16)).astype(np.float16), array[rest].copy()
    tm.scatter(buf, (column, *at), new.reshape(-1).view(np.uint8))
    assert np.array_equal(array[rest], kept)
    for i, row in enumerate(at):
        if row not in at[i + 1 :] and 0 <= row < rows:  # the last store of a row wins here
            assert all(array[row, c] == new[i, j] for j, c in enumerate(columns) if c is not None)


@pytest.mark.parametrize("box", [(16, 2), (16, 1, 1)])
def test_rows_by_index_need_boxes_of_one_row(box: tuple[int, ...]) -> None:
    extents, strides = (16, 4, 4)[: len(box)], (32, 128)[: len(box) - 1]
    with pytest.raises(Fault, match="need a tensor map of 2 dimensions with boxes of one row"):
        _ = TensorMap("f16", extents, strides, box).rows_by_index


PTX_ROWS = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c7 = arith.constant 7 : i32
    %c9 = arith.constant 9 : i32
    %tk = arith.constant 1000 : i32
    %x = arith.constant 32 : i32
    %bytes = arith.constant 512 : i32
    %d = llvm.mlir.addressof @dsmem : !llvm.ptr<3>
    %bar = llvm.getelementptr %d[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %at = llvm.ptrtoint %d : !llvm.ptr<3> to i32
    %b = llvm.ptrtoint %bar : !llvm.ptr<3> to i32
    %first = arith.cmpi eq, %tid, %c0 : i32
    scf.if %first {
      nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32
      nvvm.fence.mbarrier.init
      nvvm.mbarrier.arrive.expect_tx %bar, %bytes : !llvm.ptr<3>, i32
      llvm.inline_asm has_side_effects "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3, $4, $5, $6}], [$7];", "r,l,r,r,r,r,r,r" %at, %ta, %x, %c7, %c1, %c9, %c0, %b : (i32, !llvm.ptr, i32, i32, i32, i32, i32, i32) -> ()
    }
    nvvm.barrier0
    nvvm.mbarrier.try_wait.parity %bar, %c0, %tk : !llvm.ptr<3>, i32, i32
    scf.if %first {
      llvm.inline_asm has_side_effects "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [$0, {$1, $2, $3, $4, $5}], [$6];", "l,r,r,r,r,r,r" %tb, %x, %c1, %c0, %c9, %c7, %at : (!llvm.ptr, i32, i32, i32, i32, i32, i32) -> ()
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
    }
    llvm.return
"""  # noqa: E501


def test_rows_by_index_in_inline_ptx() -> None:
    a = np.arange(10 * 80, dtype=np.float16).reshape(10, 80)
    b = np.ones((10, 80), np.float16)
    maps_ = [TensorMap("f16", (80, 10), (160,), (64, 1), swizzle=128, pointer=Pointer(x)) for x in (a, b)]
    raw = np.zeros(16, np.uint8)
    text = kernel(PTX_ROWS, PARAMS, DSMEM)
    run_kernel(text, "k", [*maps_, Pointer(raw)], block=(64,), dynamic_smem=4104, checks=["race", "uninit"])
    want = np.ones_like(b)
    want[[1, 0, 9, 7], 32:] = a[[7, 1, 9, 0], 32:]
    assert np.array_equal(b, want)
