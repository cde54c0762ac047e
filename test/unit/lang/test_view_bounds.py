"""Coordinates of tiles, slices and threads' partitions are checked where their elements are accessed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute

TILED = "divided into (4,4) tiles in mode 1: index 4 is outside [0, 4)"


def tile(x: Any, n: Any) -> Any:
    return cute.local_tile(x, (16, 16), (0, n))


def threads(x: Any, n: Any) -> Any:
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32), cute.make_layout((4, 8)), cute.make_layout(1)
    )  # fmt: skip
    return copy.get_slice(n + 28).partition_D(x)


PARTS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (tile, f"a part of tensor 'x' {TILED}"),
    (lambda x, n: cute.local_tile(x, (16, 16, 16), (0, None, n), proj=(1, None, 1)), f"a part of tensor 'x' {TILED}"),
    (lambda x, n: cute.local_partition(tile(x, n), cute.make_layout((4, 8)), 3), f"a part of tensor 'x' {TILED}"),
    (lambda x, n: cute.local_partition(x, cute.make_layout((4, 8)), n + 28),
     "divided into (4,8) threads' parts: index 32 is outside [0, 32)"),
    (threads, "divided into 32 threads' parts: index 32 is outside [0, 32)"),
    (lambda x, n: cute.slice_(cute.zipped_divide(x, (16, 16)), ((None, None), (0, n))),
     "divided into ((16,16),(4,4)) elements in mode (1, 1): index 4 is outside [0, 4)"),
]  # fmt: skip


@cute.kernel
def write_part(x: cute.Tensor, n: cute.Int32, m: cute.Int32, part: cute.Constexpr) -> None:
    view = part(x, n)
    if n < m:
        view.fill(1.0)


@cute.jit
def write(x: cute.Tensor, n: cute.Int32, m: cute.Int32, part: cute.Constexpr) -> None:
    write_part(x, n, m, part).launch(grid=1, block=1)


@pytest.mark.parametrize("part,place", PARTS)
def test_accesses_through_parts_past_the_end(part: object, place: str) -> None:
    """A part past the end may be formed, but not accessed; its bytes are those of a neighboring part."""
    x = np.zeros((64, 64), np.float32)
    fixed = cute.from_dlpack(x)
    write(fixed, 3, 4, part, device="cpu")
    write(fixed, 4, 4, part, device="cpu")
    with pytest.raises(cute.InterpError) as caught:
        write(fixed, 4, 5, part, device="cpu")
    assert caught.value.message.startswith("out-of-bounds write through a part of ")
    assert caught.value.message.endswith(f"{place}; access it under an 'if' that tests the index")


def test_tiles_of_dynamic_shapes_are_checked() -> None:
    x = np.zeros((64, 64), np.float32)
    with pytest.raises(cute.InterpError, match=r"divided into \(\?,\?\) tiles in mode 1: index 4 is outside \[0, 4\)"):
        write(x, 4, 5, tile, device="cpu")


def test_static_tiles_past_the_end_are_refused() -> None:
    @cute.jit
    def run(x: cute.Tensor) -> None:
        write_part(x, 0, 1, lambda x, n: tile(x, 4)).launch(grid=1, block=1)

    with pytest.raises(cute.LayoutError, match=r"F242: the coordinate \(0,4\) is out of bounds for this set of tiles"):
        cute.trace(run, cute.from_dlpack(np.zeros((64, 64), np.float32)))


def test_predicated_copies_of_tiles_past_the_end() -> None:
    @cute.kernel
    def copy(x: cute.Tensor, n: cute.Int32) -> None:
        view = tile(x, n)
        flags, values = (cute.make_rmem_tensor((16, 16), kind) for kind in (cute.Boolean, cute.Float32))
        flags.fill(n < 4)
        values.fill(1.0)
        cute.basic_copy_if(flags, values, view)

    @cute.jit
    def run(x: cute.Tensor, n: cute.Int32) -> None:
        copy(x, n).launch(grid=1, block=1)

    x = np.zeros((64, 64), np.float32)
    run(cute.from_dlpack(x), 4, device="cpu")
    assert not x.any()
    run(cute.from_dlpack(x), 3, device="cpu")
    assert x.sum() == 256
