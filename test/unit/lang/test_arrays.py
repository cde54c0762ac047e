"""Types of raw arrays: static parts of their layouts and the bit width of dynamic extents and strides."""

from __future__ import annotations

import pytest

from cute_dialect.lang.calls.runtime_tensor import raw_type
from cute_dialect.runtime.arrays import ArrayView
from cute_dialect.runtime.launch_plan import MAX_EXTENT_I32

WIDE = MAX_EXTENT_I32 + 1


@pytest.mark.parametrize(
    ("shape", "strides", "layout"),
    [
        ((4, 8), (8, 1), "(?,?):(?,1)"),
        ((MAX_EXTENT_I32, 8), (0, 1), "(?,?):(0,1)"),
        ((WIDE, 8), (0, 1), "(?{i64},?):(0,1)"),
        ((WIDE, 8), (9, 1), "(?{i64},?):(?{i64},1)"),
        ((8, WIDE), (WIDE, 1), "(?,?{i64}):(?{i64},1)"),
        # The stride between tiles of 16 rows is 2^31 elements, too.
        ((16, 1 << 27), (1 << 27, 1), "(?,?):(?{i64},1)"),
        ((15, 1 << 27), (1 << 27, 1), "(?,?):(?,1)"),
        ((1 << 16, 1 << 14), (1, 1 << 17), "(?,?):(1,?{i64})"),
    ],
)
def test_layouts(shape: tuple[int, ...], strides: tuple[int, ...], layout: str) -> None:
    view = ArrayView(0x7F0000000004, shape, strides, "f32", 0, "cuda", None)
    assert raw_type(view) == f'!cute.memref<f32, gmem, "{layout}">'
