"""CUDA driver codes of the fields of a tensor map: the enums of ``cuTensorMapEncodeTiled``.

Source: CUDA driver API, ``cuda.h``: CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle,
CUtensorMapL2promotion, CUtensorMapFloatOOBfill.
"""

from __future__ import annotations

ELEMENT_CODES = {
    "ui8": 0, "i8": 0, "f8E4M3FN": 0, "f8E5M2": 0, "f8E8M0FNU": 0,
    "ui16": 1, "i16": 1,
    "ui32": 2,
    "i32": 3,
    "i64": 5,
    "f16": 6,
    "f32": 7,
    "f64": 8,
    "bf16": 9,
    "tf32": 11,
    "f4E2M1FN": 13,
}  # fmt: skip
"""Element type -> CU_TENSOR_MAP_DATA_TYPE_….  8-bit and 16-bit integers and 8-bit floats are copied as unsigned."""

UNPACKED_CODES = {"f4E2M1FN": 14, "f6E2M3FN": 15, "f6E3M2FN": 15}
"""Element type -> code of the maps whose loads place 16 elements in 16 bytes of shared memory."""

ELEMENTS = {
    **{0: "ui8", 1: "ui16", 2: "ui32", 3: "i32", 5: "i64", 6: "f16", 7: "f32", 8: "f64", 9: "bf16", 11: "tf32"},
    **{13: "f4E2M1FN", 14: "f4E2M1FN", 15: "f6E2M3FN"},
}
"""Code -> element type; a code that several types share maps to one of them."""

ELEMENT_BITS = {0: 8, 1: 16, 2: 32, 3: 32, 5: 64, 6: 16, 7: 32, 8: 64, 9: 16, 11: 32, 13: 4, 14: 4, 15: 6}


def element_code(element: str, unpack: int) -> int:
    """Return the code of an element type; ``unpack`` is 16 if loads place 16 elements in 16 bytes, else 0.

    >>> element_code("f4E2M1FN", 0), element_code("f4E2M1FN", 16)
    (13, 14)
    """
    return UNPACKED_CODES[element] if unpack else ELEMENT_CODES[element]


def unpack_of(code: int) -> int:
    """Return 16 for a code whose loads place 16 elements in 16 bytes of shared memory, else 0.

    >>> unpack_of(13), unpack_of(15)
    (0, 16)
    """
    return 16 if code in UNPACKED_CODES.values() else 0


def counted_bytes(elements: int, bits: int) -> int:
    """Return the bytes that an mbarrier counts for a copy of ``elements`` elements of ``bits`` bits.

    Loads that unpack count the packed bytes, not those of shared memory [H].  The PTX ISA does not say so.  CUTLASS
    expects this number for its ``unpacksmem`` types (``include/cutlass/gemm/collective/sm100_mma_warpspecialized.hpp``,
    ``TmaTransactionBytes``), and so does DeepGEMM (``impls/sm100_fp8_fp4_gemm_1d1d.cuh``, ``num_arrival_bytes``).

    >>> counted_bytes(128, 4), counted_bytes(128, 6), counted_bytes(64, 16)
    (64, 96, 128)
    """
    return elements * bits // 8


INTERLEAVES = (0, 16, 32)
SWIZZLES = (0, 32, 64, 128)
L2_PROMOTIONS = (0, 64, 128, 256)
OOB_FILLS = ("zero", "nan")
"""Values of the remaining enums in the order of their codes, in bytes except for the fill."""

FUNCTION = "cute_tensor_map_tiled_{rank}d"
"""Runtime function that encodes a tiled tensor map, by rank.  With rank 2::

    map = cute_tensor_map_tiled_2d(address, n0, n1, stride1, box0, box1, step0, step1,
                                   element, interleave, swizzle, l2, oob)

``address`` is the address of the tensor, ``n0, n1`` are extents in elements, and ``stride1`` is in bytes (64 bits
each).  Box, element strides and the five codes have 32 bits.  The order is that of ``cuTensorMapEncodeTiled``,
innermost dimension first.  The result is the address of 128 bytes that the runtime owns."""

IM2COL_FUNCTION = "cute_tensor_map_im2col_{rank}d"
"""Runtime function that encodes an im2col tensor map, by rank.  Except for the corners, the order is that of
``cuTensorMapEncodeIm2col``.  With rank 3::

    map = cute_tensor_map_im2col_3d(address, n0, n1, n2, stride1, stride2, channels, pixels, wide, lower0, upper0,
                                    step0, step1, step2, element, interleave, swizzle, l2, oob)

``wide`` is 0, or the number of the mode in :data:`WIDE_MODES`: then the map is one of ``cuTensorMapEncodeIm2colWide``,
which has corners along W only.
"""

WIDE_MODES = ("", "w", "w_128")
"""Modes of im2col maps: all spatial dimensions, or W only (``im2col::w`` and ``im2col::w::128`` of sm_100)."""


def column_rows(pixels: int, mode: str, halo: int) -> int:
    """Return the pixels that one im2col load places in shared memory, with the halo.

    Mode w loads ``halo`` pixels after the last one, mode w_128 after each 32 pixels of 128.  The figures of the PTX ISA
    are not known as text, so these are assumptions:

    * [?] halo pixels are the base pixels that follow, also across the end of a row of the box;
    * [?] after a halo of w_128 the next 32 pixels are those that follow the 32 before, without the halo;
    * [?] an mbarrier counts the bytes of all of them.

    >>> column_rows(64, "", 0), column_rows(128, "w", 2), column_rows(128, "w_128", 2)
    (64, 130, 136)
    """
    return pixels + halo * (pixels // 32 if mode == "w_128" else 1)


def im2col_rank_of(function: str) -> int | None:
    """Return the rank in the name of a runtime function for im2col tensor maps, or None for any other name.

    >>> im2col_rank_of("cute_tensor_map_im2col_4d"), im2col_rank_of("cute_tensor_map_tiled_4d")
    (4, None)
    """
    return {IM2COL_FUNCTION.format(rank=r): r for r in range(3, 6)}.get(function)


def rank_of(function: str) -> int | None:
    """Return the rank in the name of a runtime function for tiled tensor maps, or None for any other name.

    >>> rank_of("cute_tensor_map_tiled_3d"), rank_of("printf")
    (3, None)
    """
    ranks = {FUNCTION.format(rank=r): r for r in range(1, 6)}
    return ranks.get(function)
