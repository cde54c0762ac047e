"""The numbers by which the CUDA driver knows what a tensor map says: enums of ``cuTensorMapEncodeTiled``.

Source: CUDA driver API, ``cuda.h``: CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle,
CUtensorMapL2promotion, CUtensorMapFloatOOBfill.
"""

from __future__ import annotations

ELEMENT_CODES = {
    "ui8": 0, "i8": 0, "f8E4M3FN": 0, "f8E5M2": 0,
    "ui16": 1, "i16": 1,
    "ui32": 2,
    "i32": 3,
    "i64": 5,
    "f16": 6,
    "f32": 7,
    "f64": 8,
    "bf16": 9,
    "tf32": 11,
}  # fmt: skip
"""Element type -> CU_TENSOR_MAP_DATA_TYPE_…; 8-bit and 16-bit integers and 8-bit floats move as unsigned integers."""

ELEMENTS = {0: "ui8", 1: "ui16", 2: "ui32", 3: "i32", 5: "i64", 6: "f16", 7: "f32", 8: "f64", 9: "bf16", 11: "tf32"}
"""The other way round; one name a code."""

ELEMENT_BYTES = {0: 1, 1: 2, 2: 4, 3: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2, 11: 4}

INTERLEAVES = (0, 16, 32)
SWIZZLES = (0, 32, 64, 128)
L2_PROMOTIONS = (0, 64, 128, 256)
OOB_FILLS = ("zero", "nan")
"""What a code stands for: bytes, and the fill."""

FUNCTION = "cute_tensor_map_tiled_{rank}d"
"""The runtime function that makes a tensor map, by rank.  With rank 2::

    map = cute_tensor_map_tiled_2d(address, n0, n1, stride1, box0, box1, step0, step1,
                                   element, interleave, swizzle, l2, oob)

``address``: of the tensor; ``n0, n1``: extents in elements and ``stride1``: bytes (all 64 bits), the box and the
element strides, and five codes (32 bits). The order is that of ``cuTensorMapEncodeTiled``, innermost dimension first.
The result is the address of 128 bytes that the runtime keeps."""

IM2COL_FUNCTION = "cute_tensor_map_im2col_{rank}d"
"""The runtime function that makes a tensor map of columns of pixels; the order is that of ``cuTensorMapEncodeIm2col``
but for the corners.  With rank 3::

    map = cute_tensor_map_im2col_3d(address, n0, n1, n2, stride1, stride2, channels, pixels, lower0, upper0,
                                    step0, step1, step2, element, interleave, swizzle, l2, oob)
"""


def im2col_rank_of(function: str) -> int | None:
    """Return the rank in the name of a runtime function that makes a map of columns of pixels; ``None`` for another
    name.

    >>> im2col_rank_of("cute_tensor_map_im2col_4d"), im2col_rank_of("cute_tensor_map_tiled_4d")
    (4, None)
    """
    return {IM2COL_FUNCTION.format(rank=r): r for r in range(3, 6)}.get(function)


def rank_of(function: str) -> int | None:
    """Return the rank in the name of a runtime function; ``None`` for another name.

    >>> rank_of("cute_tensor_map_tiled_3d"), rank_of("printf")
    (3, None)
    """
    ranks = {FUNCTION.format(rank=r): r for r in range(1, 6)}
    return ranks.get(function)
