"""Tensors with ``?{i64}`` leaves: extents beyond 2^31, tested with views that need almost no memory."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from pipelines_support import FakeArray
from wide_extents import chosen_text, tile_text, wide_text

from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.runtime.launch_plan import MAX_EXTENT_I32, RangeError


@lru_cache(maxsize=4)
def compiled(text: str, emit: str = "base") -> CompiledModule:
    return compile_cute(text, emit=emit)  # type: ignore[arg-type]


def rows(row: np.ndarray, count: int) -> np.ndarray:
    """Return a matrix of ``count`` rows that all share the memory of this row."""
    return np.lib.stride_tricks.as_strided(row, (count, row.shape[0]), (0, row.itemsize))


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("shape", [(1, 1), (17, 129), (40, 298)], ids=str)
def test_small_tensors(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    c = np.zeros_like(a)
    compiled(wide_text()).kernel("launch_wide")(a, b, c, device="cpu", checks=["race", "uninit"])
    assert np.array_equal(c, a + b)


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("count", [(1 << 32) + 5, (1 << 40) + 17])
@pytest.mark.parametrize("tile", ["last of a column", "last", "first of the last", "after the last"])
def test_tiles_beyond_32_bits(count: int, tile: str) -> None:
    """A block whose tile has rows inside the tensor writes its columns to the one row that all rows of C share."""
    columns = 298
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(columns).astype(np.float32) for _ in range(2))
    out = np.full(columns + 6, 7, np.float32)
    down, across = -(-count // 16), -(-columns // 128)
    number = {
        "last of a column": down - 1,
        "last": down * across - 1,
        "first of the last": down * (across - 1),
        "after the last": down * across,
    }[tile]
    call = compiled(tile_text()).kernel("launch_wide")
    call(rows(a, count), rows(b, count), rows(out[:columns], count), number, device="cpu")
    want = np.full_like(out, 7)
    first = number // down * 128
    want[first:columns][:128] = (a + b)[first : first + 128]
    assert np.array_equal(out, want)


def test_wide_extents_are_passed_in_64_bits() -> None:
    count = (1 << 35) + 3
    one = FakeArray((count, 4), (1 << 33, 1))
    (data, *_) = compiled(tile_text()).kernel("launch_wide").plan(one, one, one, 0).packed.buffers
    assert [int.from_bytes(data[at : at + 8], "little") for at in (8, 16, 24)] == [count, 4, 1 << 33]


def test_wide_extents_compile() -> None:
    """Coordinate comparisons and offsets use 64 bits, and the parameter is read as 64-bit words."""
    ptx = compiled(wide_text(), "ptx").ptx
    assert ".param .align 8 .b8 add_wide_param_0[32]" in ptx
    assert "ld.param.b64" in ptx and "setp.lt.s64" in ptx


@pytest.mark.sample("2147418112-0-add")
@pytest.mark.parametrize(
    ("count", "stride", "kernel"),
    [
        (MAX_EXTENT_I32, 0, "add"),
        (MAX_EXTENT_I32 + 1, 0, "add_wide"),
        (1 << 32, 0, "add_wide"),
        (2, (1 << 31) // 16 - 1, "add"),
        (2, (1 << 31) // 16, "add_wide"),
        (2, 1 << 31, "add_wide"),
    ],
)
def test_launcher_selects_64_bits_when_needed(count: int, stride: int, kernel: str) -> None:
    """A host function with 32-bit leaves selects its fallback with 64-bit leaves for large extents."""
    call = compiled(chosen_text()).kernel("launch")
    one = FakeArray((count, 4), (stride, 1))
    plan = call.plan(one, one, one)
    assert plan.kernel == kernel
    if kernel == "add_wide":
        (why,) = plan.rejected
        leaf = "@launch: argument mA, mode 0: " in why and "does not fit a 32-bit leaf" in why
        # The host function computes the stride between tiles of 16 rows, as the kernel does.
        assert leaf if stride != 1 << 27 else "134217728 * 16 = 2147483648 does not fit i32" in why


def test_error_names_the_missing_declaration() -> None:
    call = compiled(chosen_text()).kernel("add")
    one = np.zeros(4, np.float32)
    with pytest.raises(
        RangeError, match=r"argument mA, mode 0: extent 4294967296 does not fit .* declare it \?\{i64\}"
    ):
        call.plan(*[rows(one, 1 << 32)] * 3)
