"""Scales of 8-bit floats: recipes, checks, and the epilogue that applies scales to the accumulator."""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cute_dialect.op.arrays.dtypes import element_name, is_of_torch, listed
from cute_dialect.op.epilogue.combination import combination, operands_of
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from cute_dialect.op.signature_types import Array

RECIPES = ("tensor", "row", "block", "block1x128")
"""Recipes of scales.  With ``block1x128`` a block of ``b`` is one column by 128 along K."""
BLOCK = 128
EXPONENTS = "float8_e8m0fnu"
"""8-bit scales that are powers of two."""


def check_scaled(
    call: str, a: Array, b: Array, scale_a: Array, scale_b: Array, recipe: str | tuple[str, str] | None
) -> tuple[str, str]:
    """Check operands and scales, and return the recipe of each operand.

    Without ``recipe`` the shapes of the scales determine it.  Raises DtypeError, ShapeError, UnsupportedError.
    """
    for name, x in (("a", a), ("b", b), ("scale_a", scale_a), ("scale_b", scale_b)):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise DtypeError(f"{call}: {name} is of type {type(x).__name__}; pass an array")
        element, scale = element_name(x.dtype), name.startswith("scale")
        if element not in (("f32", EXPONENTS) if scale else ("f8E4M3FN", "f8E5M2")):
            wanted = "f32 or float8_e8m0fnu" if scale else "f8E4M3FN or f8E5M2"
            raise DtypeError(f"{call}: {name} has dtype {element}; pass an array of {wanted}")
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise ShapeError(
            f"{call}: a has shape {tuple(a.shape)} and b has shape {tuple(b.shape)}; pass matrices (rank 2)"
        )
    found = _recipes(call, a, b, scale_a, scale_b, recipe)
    if found[0].startswith("block"):
        of_a, of_b = (element_name(x.dtype) for x in (scale_a, scale_b))
        if of_a != of_b:
            raise DtypeError(f"{call}: scale_b has dtype {of_b}, but scale_a has dtype {of_a}; pass one dtype")
    return found


def _recipes(
    call: str, a: Any, b: Any, scale_a: Any, scale_b: Any, recipe: str | tuple[str, str] | None
) -> tuple[str, str]:
    """Return the recipe of each operand.  Raises ShapeError, UnsupportedError."""
    (m, k), n = a.shape, b.shape[1]
    blocks = -(-k // BLOCK)
    given = (recipe, recipe) if recipe is None or isinstance(recipe, str) else tuple(recipe)
    shapes = {
        "scale_a": {"tensor": (1,), "row": (m, 1), "block": (m, blocks), "block1x128": (m, blocks)},
        "scale_b": {"tensor": (1,), "row": (1, n), "block": (-(-n // BLOCK), blocks), "block1x128": (n, blocks)},
    }
    found: list[str] = []
    named = (("scale_a", scale_a), ("scale_b", scale_b))
    for (name, x), wanted in zip(named, given):
        if wanted not in (None, *RECIPES):
            raise UnsupportedError(f"{call}: recipe {wanted!r} is not supported; use {', '.join(RECIPES)}")
        shape, kinds = tuple(x.shape), shapes[name]
        fits = [r for r in RECIPES if shape == kinds[r] or (r == "tensor" and shape in ((), (1, 1)))]
        if wanted is not None:
            fits = [r for r in fits if r == wanted or (wanted == "block" and r == "block1x128")]
        if not fits:
            refuse_finer(call, name, x, shape, (m, k) if name == "scale_a" else (n, k))
            there = {str(s): None for r, s in kinds.items() if wanted in (None, r)}
            of, side = (tuple(a.shape), "a") if name == "scale_a" else (tuple(b.shape), "b")
            raise ShapeError(
                f"{call}: {name} has shape {shape}, but {side} has shape {of}; pass {name} of {listed(tuple(there))}"
            )
        found.append(fits[0])
    of_blocks = [r for r in found if r.startswith("block")]
    if len(of_blocks) == 1:  # a recipe that fits both
        fitting = [r for r in ("block", "block1x128") if all(tuple(x.shape) == shapes[n][r] for n, x in named)]
        if not fitting:
            raise UnsupportedError(
                f"{call}: recipes {found[0]} and {found[1]} cannot be combined; use block scales for both or neither"
            )
        return fitting[0], fitting[0]
    if of_blocks:
        return found[1], found[1]  # scale_a has the same shape with both block recipes
    return found[0], found[1]


def refuse_finer(call: str, name: str, x: Array, shape: tuple[int, ...], of: tuple[int, int]) -> None:
    """Raise UnsupportedError for scales of blocks of 32 or 16 along K that a call does not support.

    The scales may also have torch's layout for Blackwell, tiles of 128 by 4.

    Args:
        x: the scales.
        shape: shape of the scales of one matrix.
        of: (rows, K) of the matrix.
    """
    rows, k = of
    dtype = element_name(x.dtype)
    for width in (32, 16):
        blocks = -(-k // width)
        tiled = -(-rows // 128) * 128 * (-(-blocks // 4) * 4)
        if blocks > -(-k // BLOCK) and shape in ((rows, blocks), (blocks, rows), (tiled,)):
            coarser = f"or one scale per matrix, per row, or per block of {BLOCK} along K"
            if call == "scaled_mm" and width == 16:
                finer = "pass a and b of float4_e2m1fn_x2 with scales of f8E4M3FN"
            elif call == "scaled_mm":
                finer = 'pass recipe="block1x32"' if dtype == EXPONENTS else f"pass scales of {EXPONENTS}"
            else:
                finer = f"use scaled_mm with scales of {EXPONENTS}"
            raise UnsupportedError(
                f"{call}: {name} has dtype {dtype} and shape {shape}, scales of blocks of {width} along K; {finer}, "
                f"{coarser}"
            )


def as_bytes(x: Array) -> Array:
    """Return e8m0 scales as bytes."""
    return x.view(_torch().uint8 if is_of_torch(x) else "uint8")


def as_f32(x: Any) -> Any:
    """Return scales as f32."""
    if element_name(x.dtype) == "f32":
        return x
    return x.to(_torch().float32) if is_of_torch(x) else x.astype("float32")


def _torch() -> Any:
    return sys.modules["torch"]


def _one(x: Any) -> Any:
    """Return an array of one element as a vector; others are returned unchanged."""
    return x.reshape(1) if tuple(getattr(x, "shape", (0,))) in ((), (1, 1)) else x


def scales_epilogue(
    shape: tuple[int, int], args: Mapping[str, Any], activation: str = ""
) -> tuple[Traced, dict[str, Any]]:
    """Return the traced epilogue for a result of a shape, and its arguments, those that are not None.

    Args:
        args: ``scale_a``, ``scale_b``, ``alpha``, ``beta``, ``C``, ``bias`` and ``scale_out``, as numbers, arrays or
            :class:`~cute_dialect.op.epilogue.tracing.FakeTensor`.
    """
    found = operands_of({name: _one(x) if name.startswith("scale") else x for name, x in args.items()})
    return combination(found, shape, activation), found
