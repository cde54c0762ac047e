"""Scales for each 32 or 16 elements along K (MXFP8, MXFP4, NVFP4): recipes, checks and layouts.

A and B are 8-bit floats, or 4-bit floats of which a byte holds two. Scales are matrices (rows, K / 32) or
(rows, K / 16), or vectors in the layout of torch, blocks of 128 rows x 4 scales. With a pair of scales, the second one
multiplies the whole matrix, as in torch's two-level recipe of NVFP4.

>>> scaling_of("f8E4M3FN", "float8_e8m0fnu"), scaling_of("float4_e2m1fn_x2", "f8E4M3FN"), scaling_of("f16", "f32")
(Scaling(name='mx', width=32, packed=1), Scaling(name='nv', width=16, packed=2), None)
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import ml_dtypes
import numpy as np

from cute_dialect.op.arrays.dtypes import element_name, is_of_torch, listed
from cute_dialect.op.errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.problems.scaled import BLOCK, EXPONENTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_dialect.op.signature_types import Array

WIDTHS = {"block1x32": 32, "block1x16": 16}
"""Recipe -> elements along K that share a scale."""
FP8 = ("f8E4M3FN", "f8E5M2")
PACKED = ("float4_e2m1fn_x2", "ui8")
"""Types of arrays of 4-bit floats, two per element."""


class Scaling(NamedTuple):
    """Block scales of an MMA."""

    name: str  # "mx" or "nv"
    width: int  # elements along K that share a scale
    packed: int  # elements of A per element of its array


def scaling_of(element: str, scale: str) -> Scaling | None:
    """Return the scaling for the types of A and of its scales, or None if no MMA has it."""
    if element in PACKED:
        return {EXPONENTS: Scaling("mx", 32, 2), "f8E4M3FN": Scaling("nv", 16, 2)}.get(scale)
    return Scaling("mx", 32, 1) if element in FP8 and scale == EXPONENTS else None


def is_block_scaled(a: Array, scale_a: Array, recipe: object) -> bool:
    """Return True if a call has scales of 32 or 16 elements along K, by its recipe or its arrays.

    4-bit floats have no other scales.  For 8-bit floats, e8m0 scales of a shape that fits no coarser recipe count, so
    that the error for a wrong shape lists the shapes of all recipes.
    """
    given = recipe if isinstance(recipe, tuple | list) else (recipe,)
    if any([r in WIDTHS for r in given]) or isinstance(scale_a, tuple | list):
        return True
    if recipe is not None or not all([hasattr(x, "dtype") and hasattr(x, "shape") for x in (a, scale_a)]):
        return False
    element, scale = element_name(a.dtype), element_name(scale_a.dtype)
    if element in PACKED or len(a.shape) != 2:
        return element in PACKED
    return scaling_of(element, scale) is not None and tuple(scale_a.shape) not in ((), (1, 1), *_coarse(*a.shape))


def _coarse(rows: int, k: int) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the scales of A that are not of blocks of 32 or 16."""
    return (1,), (rows, 1), (rows, -(-k // BLOCK))


def _shapes(rows: int, blocks: int) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of scales: a matrix, or the blocks of 128 x 4 of torch."""
    return (rows, blocks), (-(-rows // 128) * 128 * (-(-blocks // 4) * 4),)


def check_block_scaled(
    call: str, operands: tuple[Array, Array, Array, Array], recipe: object, *, planned: bool = False
) -> Scaling:
    """Return the scaling of a call.  Raises DtypeError, ShapeError, UnsupportedError.

    ``planned`` is True for a plan, whose messages offer vectors of blocks only.
    """
    a, b, *scales = operands
    for name, x in zip(("a", "b", "scale_a", "scale_b"), operands):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise DtypeError(f"{call}: {name} is of type {type(x).__name__}; pass an array")
    elements, kinds = ([element_name(x.dtype) for x in pair] for pair in ((a, b), scales))
    for name, element in zip("ab", elements):
        allowed = PACKED if elements[0] in PACKED and name == "b" else FP8 if name == "b" else (*FP8, *PACKED)
        if element not in allowed:
            wanted = "float4_e2m1fn_x2 (or uint8 of two elements)"
            wanted = wanted if allowed == PACKED else " or ".join(FP8) + (f", or {wanted}" if name == "a" else "")
            raise DtypeError(f"{call}: {name} has dtype {element}; with scales of blocks of 32 or 16 pass {wanted}")
    allowed = (EXPONENTS,) if elements[0] in FP8 else (EXPONENTS, "f8E4M3FN")
    for name, kind in zip(("scale_a", "scale_b"), kinds):
        if kind not in allowed:
            pair = (f"{EXPONENTS} (blocks of 32 along K)", "f8E4M3FN (blocks of 16)")
            wanted = " or ".join(pair) if len(allowed) == 2 else EXPONENTS
            raise DtypeError(f"{call}: {name} has dtype {kind}; pass {wanted}")
    if kinds[0] != kinds[1]:
        raise DtypeError(f"{call}: scale_b has dtype {kinds[1]}, but scale_a has dtype {kinds[0]}; pass one dtype")
    scaling = scaling_of(elements[0], kinds[0])
    assert scaling is not None
    given = tuple(recipe) if isinstance(recipe, tuple | list) else (recipe, recipe)
    wanted = f"block1x{scaling.width}"
    if any([r not in (None, wanted) for r in given]):
        raise UnsupportedError(
            f"{call}: recipe={recipe!r} is not supported for {elements[0]} with scales of {kinds[0]}; use {wanted!r}"
        )
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise ShapeError(
            f"{call}: a has shape {tuple(a.shape)} and b has shape {tuple(b.shape)}; pass (M, K) and (K, N)"
        )
    blocks = -(-a.shape[1] * scaling.packed // scaling.width)
    for name, x, rows in (("scale_a", scales[0], a.shape[0]), ("scale_b", scales[1], b.shape[1])):
        shapes = _shapes(rows, blocks)
        if tuple(x.shape) not in shapes:
            coarse = _coarse(*a.shape)
            is_free = given == (None, None) and scaling.packed == 1 and name == "scale_a"
            others = f"; or, for coarser scales, {listed(tuple(dict.fromkeys(map(str, coarse))))}" if is_free else ""
            what = "rows" if name == "scale_a" else "columns"
            cure = (
                f"{shapes[0]}, one scale per {scaling.width} elements along K, or {shapes[1]}, blocks of 128 x 4 scales"
            )
            cure = f"{shapes[1]}, blocks of 128 x 4 scales (op.scale_blocks)" if planned else f"{cure}{others}"
            raise ShapeError(
                f"{call}: {name} has shape {tuple(x.shape)} for {rows} {what} and K = {a.shape[1] * scaling.packed}; "
                f"pass {cure}"
            )
    return scaling


def levels_of(call: str, name: str, scale: Array) -> tuple[Array, Array]:
    """Return the scales of blocks and the factor of the whole matrix, None if ``scale`` is no pair.

    Raises DtypeError, ShapeError.
    """
    if not isinstance(scale, tuple | list):
        return scale, None
    if len(scale) != 2:
        raise ShapeError(f"{call}: {name} has {len(scale)} parts; pass (scales of blocks, factor of the matrix)")
    blocks, whole = scale
    if not hasattr(whole, "shape") or not hasattr(whole, "dtype"):
        raise DtypeError(f"{call}: {name}[1] is of type {type(whole).__name__}; pass an array of one f32")
    if element_name(whole.dtype) != "f32":
        raise DtypeError(
            f"{call}: {name}[1], the factor of the matrix, has dtype {element_name(whole.dtype)}; pass f32"
        )
    if tuple(whole.shape) not in ((), (1,), (1, 1)):
        raise ShapeError(
            f"{call}: {name}[1] has shape {tuple(whole.shape)}; pass one element, the factor of the matrix"
        )
    return blocks, whole


def check_signs(call: str, name: str, scales: Array) -> None:
    """Raise ArgumentError if an e4m3 scale has a sign.  The MMA reads the scales as unsigned (ue4m3)."""
    values = _on_host(scales)
    signed = np.argwhere(values & 0x80)
    if len(signed):
        row, block = signed[0].tolist()
        value = values.view(ml_dtypes.float8_e4m3fn)[row, block]
        raise ArgumentError(
            f"{call}: {name} is {value} for row {row}, block {block} of K; e4m3 scales are unsigned in the MMA, so "
            "pass numbers of at least 0 without a sign bit"
        )


def bytes_of(x: Array) -> Array:
    """Return scales, or packed elements, as bytes."""
    return x.view(sys.modules["torch"].uint8 if is_of_torch(x) else "uint8")


def as_matrix(x: Array, rows: int, blocks: int) -> Array:
    """Return scales as a matrix: those of torch are blocks of 128 rows x 4, with the rows m, m + 32, … together."""
    if len(x.shape) == 2:
        return x
    tiles = x.reshape(-(-rows // 128), -(-blocks // 4), 32, 4, 4)
    order = (0, 3, 2, 1, 4)
    tiles = tiles.permute(order) if is_of_torch(x) else tiles.transpose(order)
    return tiles.reshape(-(-rows // 128) * 128, -(-blocks // 4) * 4)[:rows, :blocks]


def as_blocks(x: Array, rows: int, blocks: int) -> Array:
    """Return the bytes of scales in blocks of 128 rows x 4, whose padding along K is 0.

    A vector is copied only if its last blocks have padding along K, whose bytes may be NaN.

    Args:
        x: Bytes, a matrix (rows, blocks), or a vector of blocks.
        rows: Number of rows.
        blocks: Scales per row.
    """
    if len(x.shape) == 1 and blocks % 4 == 0:
        return x
    matrix, (tall, wide) = as_matrix(x, rows, blocks), (-(-rows // 128), -(-blocks // 4))
    shape, order = (tall * 128, wide * 4), (0, 3, 2, 1, 4)
    # NumPy calls CuPy for CuPy's arrays.
    padded = matrix.new_zeros(shape) if is_of_torch(x) else np.zeros_like(matrix, shape=shape)
    padded[:rows, :blocks] = matrix
    tiles = padded.reshape(tall, 4, 32, wide, 4)
    turn = getattr(tiles, "permute" if is_of_torch(x) else "transpose")
    return turn(order).reshape(-1)


def scaled_values(
    call: str, operands: tuple[Array, Array, Array, Array], recipe: object
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return A (M, K) and B (K, N), multiplied by their scales, in f64.

    ``operands`` are a, b, scale_a and scale_b. Raises DtypeError, ShapeError, UnsupportedError.
    """
    a, b, *scales = operands
    (scale_a, whole_a), (scale_b, whole_b) = (levels_of(call, n, x) for n, x in zip(("scale_a", "scale_b"), scales))
    scaling = check_block_scaled(call, (a, b, scale_a, scale_b), recipe)
    found: list[NDArray[np.float64]] = []
    for x, scale, whole in ((a, scale_a, whole_a), (b.T, scale_b, whole_b)):
        codes = _on_host(bytes_of(x))
        if scaling.packed == 2:
            codes = np.stack([codes & 15, codes >> 4], -1).reshape(codes.shape[0], -1)
        element = ml_dtypes.float4_e2m1fn if scaling.packed == 2 else _FLOATS[element_name(x.dtype)]
        values = codes.view(element).astype(np.float64)
        rows, k = values.shape
        factors = _on_host(as_matrix(bytes_of(scale), rows, -(-k // scaling.width)))
        factors = np.ascontiguousarray(factors).view(_FLOATS[element_name(scale.dtype)]).astype(np.float64)
        values = values * factors.repeat(scaling.width, 1)[:, :k]
        found.append(values if whole is None else values * float(_on_host(whole).reshape(())))
    return found[0], found[1].T


def _on_host(x: Array) -> Array:
    x = x.detach().cpu().numpy() if hasattr(x, "detach") else x.get() if hasattr(x, "get") else x
    return np.ascontiguousarray(x)


_FLOATS: Mapping[str, type] = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    EXPONENTS: ml_dtypes.float8_e8m0fnu,
}
