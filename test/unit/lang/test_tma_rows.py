"""Rows of a matrix by index: gather4 loads and scatter4 stores in the language, compared with numpy."""

# Values of the language are checked when a kernel is traced.
# pyright: basic, reportAttributeAccessIssue=false

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.interp import InterpError
from cute_dialect.interp.memory.tensor_map import TensorMap

cpasync = cute.nvgpu.cpasync
arch = cute.arch
GATHER, SCATTER = cpasync.CopyBulkTensorTileGather4G2SOp(), cpasync.CopyBulkTensorTileScatter4S2GOp()


class Case(NamedTuple):
    """A copy of rows by index through shared memory, ``y[to[i]] = x[index[i]]``.

    Args:
        dtype: the element type.
        swizzle: bits of the swizzle of shared memory.
        boxes: boxes per row of the tile.
        extents: rows and columns of the matrices.
        rows: number of indices.
    """

    dtype: Any
    swizzle: int
    boxes: int
    extents: tuple[int, int]
    rows: int = 8


@cute.kernel
def copy_rows(
    load: Any, source: Any, store: Any, target: Any, index: Any, to: Any, case: cute.Constexpr, first: cute.Constexpr
) -> None:
    """Copy rows by index. The index of a row is relative to row ``first``."""
    here = staged(case, case.rows)
    s = cute.smem_tensor(case.dtype, here, 1024, cute.make_swizzle(case.swizzle, 4, 3) if case.swizzle else None)
    bar = arch.alloc_smem(cute.Int64, 1)
    if arch.thread_idx().x == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    tile = (4, width(case))
    if arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(bar, case.rows * width(case) * case.dtype.width // 8)
    source = cute.domain_offset((first, 0), source)
    for i in cute.range_constexpr(case.rows // 4):
        rows = [index[4 * i + j] - first for j in range(4)]
        there = cute.local_tile(source, tile, (0, 0))
        cute.copy(load, there, cute.local_tile(s, tile, (i, 0)), tma_bar_ptr=bar, rows=rows)
    arch.mbarrier_wait(bar, 0)
    for i in cute.range_constexpr(case.rows // 4):
        rows = tuple(to[4 * i + j] for j in range(4))
        cute.copy(store, cute.local_tile(s, tile, (i, 0)), cute.local_tile(target, tile, (0, 0)), rows=rows)
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


def width(case: Case) -> int:
    """Return the columns of a tile: rows of a box have the width of the swizzle, or 32 bytes."""
    return case.boxes * (16 << (case.swizzle or 1)) * 8 // case.dtype.width


def staged(case: Case, rows: int) -> Any:
    """Return the layout of rows of a tile in shared memory, without its swizzle."""
    inner = width(case) // case.boxes
    return cute.make_layout((rows, (inner, case.boxes)), stride=(inner, (1, case.rows * inner)))


@cute.jit
def copied(x: Any, y: Any, index: Any, to: Any, case: cute.Constexpr, first: cute.Constexpr = 0) -> None:
    layout = staged(case, 4)
    if case.swizzle:
        layout = cute.make_composed_layout(cute.make_swizzle(case.swizzle, 4, 3), 0, layout)
    tile = (4, width(case))
    load, source = cpasync.make_tiled_tma_atom(GATHER, x, layout, tile)
    store, target = cpasync.make_tiled_tma_atom(SCATTER, y, layout, tile)
    copy_rows(load, source, store, target, index, to, case, first).launch(grid=1, block=32)


def arrays(case: Case, seed: int) -> tuple[list[Any], Any]:
    """Return random arguments with some rows out of bounds, and the expected ``y``."""
    rng = np.random.default_rng(seed)
    rows, _ = case.extents
    x, y = (rng.integers(-50, 50, case.extents).astype(NUMPY[case.dtype]) for _ in range(2))
    index = rng.integers(-3, rows + 3, case.rows).astype(np.int32)
    to = rng.permutation(rows + 2)[: case.rows].astype(np.int32)
    want = y.copy()
    for i, t in zip(index, to):
        if t < rows:
            want[t, : width(case)] = x[i, : width(case)] if 0 <= i < rows else 0
    return [x, y, index, to], want


NUMPY = {cute.Float16: np.float16, cute.Float32: np.float32, cute.Int8: np.int8, cute.Float64: np.float64}
CASES = [
    Case(cute.Float16, 3, 2, (20, 120)),
    Case(cute.Float32, 2, 1, (9, 20)),
    Case(cute.Int8, 1, 3, (11, 112)),
    Case(cute.Float64, 0, 1, (30, 2), 12),
]


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("schedule", ["round-robin", "adversarial"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.dtype.__name__)
def test_rows_by_index(case: Case, schedule: str) -> None:
    """Rows out of bounds are loaded as zeros and not stored; columns out of bounds, too."""
    arguments, want = arrays(case, 5)
    compiled = cute.compile(copied, *arguments, case, 2, chip="sm_100a", device="cpu")
    compiled(*arguments, schedule=schedule, checks=["race", "uninit"])
    assert np.array_equal(arguments[1], want)


@pytest.mark.slow
def test_ptx_has_one_instruction_per_four_rows_and_box() -> None:
    case = CASES[0]
    made = cute.compile(copied, *arrays(case, 5)[0], case, chip="sm_100a", device="cpu")
    assert made.ptx.count("shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes") == 4
    assert made.ptx.count("global.shared::cta.tile::scatter4.bulk_group") == 4


@pytest.mark.slow
def test_swapped_rows_of_a_load_change_the_result() -> None:
    """A load with two row indices in the wrong order gives another result, so the order is tested."""
    case = CASES[0]
    arguments, want = arrays(case, 5)
    gather = TensorMap.gather

    def swapped(self: TensorMap, buf: Any, coordinates: Any, offsets: Any = ()) -> Any:
        column, a, b, *others = coordinates
        return gather(self, buf, (column, b, a, *others), offsets)

    compiled = cute.compile(copied, *arguments, case, chip="sm_100a", device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TensorMap, "gather", swapped)
        compiled(*arguments)
    assert not np.array_equal(arguments[1], want)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("to", "message"),
    [
        ([0, 1, 2, 3, 4, 5, 4, 7], "a scatter4 store writes row 4 twice, in an undefined order; use each row once"),
        ([0, 1, 2, 3, 4, -1, 5, 7], "coordinates of a scatter4 store must not be negative, got (0, 4, -1, 5, 7)"),
    ],
)
def test_invalid_rows_of_a_store(to: list[int], message: str) -> None:
    case = CASES[1]
    arguments, _ = arrays(case, 5)
    arguments[3] = np.array(to, np.int32)
    with pytest.raises(InterpError, match=re.escape(message)):
        cute.compile(copied, *arguments, case, chip="sm_100a", device="cpu")(*arguments)


# ------------------------------------------------------------------------------------------------------------- errors


def traced(op: Any, body: Any = None, tile: tuple[int, int] = (4, 64), chip: str = "sm_100a", **given: Any) -> None:
    """Trace a host function that builds an atom of rows by index, and a kernel that uses it."""

    @cute.kernel
    def moved(atom: Any, coords: Any) -> None:
        if body is not None:
            s = cute.smem_tensor(cute.Float16, (4, 64), 1024)
            body(atom, cute.local_tile(coords, (4, 64), (0, 0)), s, arch.alloc_smem(cute.Int64, 1))

    @cute.jit
    def launch(x: Any) -> None:
        atom, coords = cpasync.make_tiled_tma_atom(op, x, cute.make_layout(tile, stride=(tile[1], 1)), tile, **given)
        moved(atom, coords).launch(grid=1, block=32)

    cute.trace(launch, cute.Tensor[cute.Float16, "(?,?):(?{div=8},1)"], chip=chip)


ERRORS = {
    "F254: cute.copy by CopyBulkTensorTileGather4G2SOp: CopyBulkTensorTileGather4G2SOp needs rows, the indices of its "
    "four rows": lambda: traced(GATHER, lambda load, x, s, bar: cute.copy(load, x, s, tma_bar_ptr=bar)),
    "F254: cute.copy by CopyBulkTensorTileScatter4S2GOp: rows must be a tuple or list of four row "
    "indices, got (1, 2)": (
        lambda: traced(SCATTER, lambda store, x, s, bar: cute.copy(store, s, x, rows=(1, 2)))
    ),
    **{
        f"F254: cute.copy by CopyBulkTensorTileScatter4S2GOp: rows must be four integers, got {rows!r}": (
            lambda rows=rows: traced(SCATTER, lambda store, x, s, bar: cute.copy(store, s, x, rows=rows))
        )
        for rows in ([1.5, 2, 3, 4], (0, None, 1, 2), (0, 1, 2, (3, 4)))
    },
    "F254: cute.copy by CopyBulkTensorTileG2SOp: CopyBulkTensorTileG2SOp does not take rows (run-time fields: tma_bar, "
    "multicast_mask, cache_hint, pred)": lambda: traced(
        cpasync.G2S(), lambda load, x, s, bar: cute.copy(load, x, s, tma_bar_ptr=bar, rows=(0, 1, 2, 3))
    ),
    "F254: cute.prefetch by CopyBulkTensorTileGather4G2SOp: needs the row indices\n"
    'hint: atom.set("rows", (i, j, k, l))': lambda: traced(GATHER, lambda load, x, s, bar: cute.prefetch(load, x)),
    "F254: make_tiled_tma_atom(CopyBulkTensorTileGather4G2SOp): mode gather4 moves 4 rows of a matrix; this tile has "
    "boxes of (64,8) elements (contiguous first), multicast = 1; use a tile of 4 rows of a matrix whose rows are "
    "contiguous, and multicast = 1": lambda: traced(GATHER, tile=(8, 64)),
    "F280: CopyBulkTensorTileScatter4S2GOp needs": lambda: traced(SCATTER, chip="sm_120a"),
}  # fmt: skip


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message: str) -> None:
    with pytest.raises(CuteError) as caught:
        ERRORS[message]()
    caught.value.place = None
    caught.value.calls = []
    assert str(caught.value).startswith(f"error {message}")


def test_prefetch() -> None:
    def prefetch(load: Any, x: Any, s: Any, bar: Any) -> None:
        load.set("rows", (0, 5, arch.lane_idx(), 2))
        cute.prefetch(load, x)

    traced(GATHER, prefetch)
