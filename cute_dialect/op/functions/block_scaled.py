"""GEMMs with a scale for each 32 or 16 elements along K (MXFP8, MXFP4, NVFP4), with the MMAs of sm_120.

A and B are 8-bit floats, or 4-bit floats of which a byte holds two.  The kernel
(:mod:`cute_dialect.kernels.gemm.sm120`) reads the scales as matrices (rows, K / 32) or (rows, K / 16).  Scales in the
layout of torch, blocks of 128 rows x 4 scales, are copied to such matrices first.

>>> scaling_of("f8E4M3FN", "float8_e8m0fnu"), scaling_of("float4_e2m1fn_x2", "f8E4M3FN"), scaling_of("f16", "f32")
(Scaling(name='mx', width=32, packed=1), Scaling(name='nv', width=16, packed=2), None)
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import ml_dtypes
import numpy as np

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.sm120 import FP4, Sm120Config, sm120_gemm_text
from cute_dialect.op.arrays.dtypes import element_name, listed
from cute_dialect.op.errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.problems.scaled import BLOCK, EXPONENTS
from cute_dialect.op.select.backends import UNMEASURED
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:
    from cute_dialect.op.signature_types import Array, Interpreted

WIDTHS = {"block1x32": 32, "block1x16": 16}
"""Recipe -> elements along K that share a scale."""
_FP8 = ("f8E4M3FN", "f8E5M2")
_PACKED = ("float4_e2m1fn_x2", "ui8")
"""Types of arrays of 4-bit floats, two per element."""
_OF_WARPS = [b for b in UNMEASURED if not b.has_tensor_memory]
"""Backends that multiply with block scales."""
_RESULTS = ("bf16", "f16", "f32")


class Scaling(NamedTuple):
    """Block scales of an MMA."""

    name: str  # "mx" or "nv"
    width: int  # elements along K that share a scale
    packed: int  # elements of A per element of its array


def scaling_of(element: str, scale: str) -> Scaling | None:
    """Return the scaling for the types of A and of its scales, or None if no MMA has it."""
    if element in _PACKED:
        return {EXPONENTS: Scaling("mx", 32, 2), "f8E4M3FN": Scaling("nv", 16, 2)}.get(scale)
    return Scaling("mx", 32, 1) if element in _FP8 and scale == EXPONENTS else None


def is_block_scaled(a: Array, scale_a: Array, recipe: object) -> bool:
    """Return True if a call has scales of 32 or 16 elements along K, by its recipe or its arrays.

    4-bit floats have no other scales.  For 8-bit floats, e8m0 scales of a shape that fits no coarser recipe count, so
    that the error for a wrong shape lists the shapes of all recipes.
    """
    given = recipe if isinstance(recipe, tuple | list) else (recipe,)
    if any([r in WIDTHS for r in given]):
        return True
    if recipe is not None or not all([hasattr(x, "dtype") and hasattr(x, "shape") for x in (a, scale_a)]):
        return False
    element, scale = element_name(a.dtype), element_name(scale_a.dtype)
    if element in _PACKED or len(a.shape) != 2:
        return element in _PACKED
    return scaling_of(element, scale) is not None and tuple(scale_a.shape) not in ((), (1, 1), *_coarse(*a.shape))


def _coarse(rows: int, k: int) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of the scales of A that are not of blocks of 32 or 16."""
    return (1,), (rows, 1), (rows, -(-k // BLOCK))


def _shapes(rows: int, blocks: int) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of scales: a matrix, or the blocks of 128 x 4 of torch."""
    return (rows, blocks), (-(-rows // 128) * 128 * (-(-blocks // 4) * 4),)


def block_scaled_mm(
    call: str,
    operands: tuple[Array, Array, Array, Array],
    recipe: object,
    bias: Array,
    out: Array,
    dtype: object,
    device: object,
    stream: object,
    run: Interpreted,
) -> Array:
    """Return ``(scale_a * a) @ (scale_b * b) + bias``.  ``operands`` are a, b, scale_a and scale_b."""
    scaling = _checked(call, operands, recipe)
    a, b, scale_a, scale_b = operands
    (m, k), n = a.shape, b.shape[1]
    is_signed = element_name(scale_a.dtype) == "f8E4M3FN"
    arrays = {"a": a, "b": b.T} if scaling.packed == 1 else {"a": _bytes_of(a), "b": _bytes_of(b.T)}
    for name, x, rows in (("scale_a", scale_a, m), ("scale_b", scale_b, n)):
        arrays[name] = _as_matrix(_bytes_of(x), rows, -(-k * scaling.packed // scaling.width))
    elements = (*_FP8, "ui8")
    one = RowCall(
        call, {**arrays, "out": out, "bias": bias}, device, ("b", "scale_a", "scale_b", "out", "bias"), elements,
        stream=stream, run=run,
    )  # fmt: skip
    result = element_name(dtype) if dtype is not None else one.views["out"].dtype if out is not None else "bf16"
    if result not in _RESULTS or (out is not None and one.views["out"].dtype != result):
        raise DtypeError(f"{call}: the result has dtype {result}; use one of {', '.join(_RESULTS)}, that of out")
    if bias is not None:
        one.expect("bias", (n,))
        if one.views["bias"].dtype != "f32":
            raise one.wrong_type("bias", "f32")
    chip = _chip_of(call, one, scaling)
    if one.cpu and is_signed:
        for name in ("scale_a", "scale_b"):
            _check_signs(call, name, one)
    with one.on():
        y = one.result((m, n), result, "out")
        if 0 in (m, n):
            return y
        if k == 0:
            y[...] = 0 if bias is None else bias
            return y
        views = [one.aligned_matrix("a"), one.aligned_matrix("b"), one.matrix_of(y)]
        behind: list[ArrayView | None] = [one.matrix("scale_a"), one.matrix("scale_b"), one.vector("bias")]
        of = (one.views["a"].dtype, one.views["b"].dtype)
        config = _config(of, (m, n), scaling, result, chip, has_bias=bias is not None)
        one.launch(RowKernel(config.name, sm120_gemm_text, (config,), target=chip), *views, *behind)
    return y


def _check_signs(call: str, name: str, one: RowCall) -> None:
    """Raise ArgumentError if an e4m3 scale has a sign.  The MMA reads the scales as unsigned (ue4m3)."""
    values = np.array(one.on_host(name), np.uint8).reshape(one.views[name].shape)
    signed = np.argwhere(values & 0x80)
    if len(signed):
        row, block = signed[0].tolist()
        value = values.view(ml_dtypes.float8_e4m3fn)[row, block]
        raise ArgumentError(
            f"{call}: {name} is {value} for row {row}, block {block} of K; e4m3 scales are unsigned in the MMA, so "
            "pass numbers of at least 0 without a sign bit"
        )


def block_scaled_kernel(
    call: str, operands: tuple[Array, Array, Array, Array], recipe: object, dtype: object, *, has_bias: bool
) -> Sm120Config:
    """Return the kernel of a call on sm_120, to explain it.  ``operands`` are a, b, scale_a and scale_b."""
    scaling = _checked(call, operands, recipe)
    a, b, *_ = operands
    of, result = (element_name(a.dtype), element_name(b.dtype)), "bf16" if dtype is None else element_name(dtype)
    return _config(of, (a.shape[0], b.shape[1]), scaling, result, _OF_WARPS[0].target, has_bias=has_bias)


def _config(
    elements: tuple[str, str], extents: tuple[int, int], scaling: Scaling, result: str, chip: str, *, has_bias: bool
) -> Sm120Config:
    """Return the kernel for the types of A and B, and for M and N."""
    a, b = (FP4, FP4) if scaling.packed == 2 else elements
    m, n = extents
    wide = (128, 64) if scaling.name == "nv" else (128, 128)
    tile = wide if m > 64 and n > 64 else (64, 64)
    found = Sm120Config(a if a == b else f"{a}_{b}", tile, output=result, scaling=scaling.name, chip=chip)
    found = found._replace(epilogue=Epilogue(bias="n" if has_bias else ""))
    return found._replace(stages=min(4, found.most_stages))


def _chip_of(call: str, one: RowCall, scaling: Scaling) -> str:
    """Return the target of the kernels for the GPU, or that of sm_120 for the interpreter.  Raises UnsupportedError."""
    one.check_gpu()
    if one.cpu:
        return _OF_WARPS[0].target
    from cute_dialect.runtime.driver import driver  # late: start-up

    major, minor = driver().capability(one.gpu)
    for backend in _OF_WARPS:
        if backend.runs_on((major, minor)):
            return backend.target
    chips = " or ".join([f"sm_{b.chip}" for b in _OF_WARPS])
    raise UnsupportedError(
        f"{call}: scales of blocks of {scaling.width} along K need {chips}, but the GPU is sm_{major}{minor}; use one "
        'scale per matrix, per row, or per block of 128 along K, or device="cpu"'
    )


def _checked(call: str, operands: tuple[Array, Array, Array, Array], recipe: object) -> Scaling:
    """Return the scaling of a call.  Raises DtypeError, ShapeError, UnsupportedError."""
    a, b, *scales = operands
    for name, x in zip(("a", "b", "scale_a", "scale_b"), operands):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise DtypeError(f"{call}: {name} is of type {type(x).__name__}; pass an array")
    elements, kinds = ([element_name(x.dtype) for x in pair] for pair in ((a, b), scales))
    for name, element in zip("ab", elements):
        allowed = _PACKED if elements[0] in _PACKED and name == "b" else _FP8 if name == "b" else (*_FP8, *_PACKED)
        if element not in allowed:
            wanted = "float4_e2m1fn_x2 (or uint8 of two elements)"
            wanted = wanted if allowed == _PACKED else " or ".join(_FP8) + (f", or {wanted}" if name == "a" else "")
            raise DtypeError(f"{call}: {name} has dtype {element}; with scales of blocks of 32 or 16 pass {wanted}")
    allowed = (EXPONENTS,) if elements[0] in _FP8 else (EXPONENTS, "f8E4M3FN")
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
            raise ShapeError(
                f"{call}: {name} has shape {tuple(x.shape)} for {rows} {what} and K = {a.shape[1] * scaling.packed}; "
                f"pass {shapes[0]}, one scale per {scaling.width} elements along K, or {shapes[1]}, blocks of 128 x 4 "
                f"scales{others}"
            )
    return scaling


def _bytes_of(x: Array) -> Array:
    """Return scales, or packed elements, as bytes."""
    return x.view("uint8" if type(x).__module__ == "numpy" else sys.modules["torch"].uint8)


def _as_matrix(x: Array, rows: int, blocks: int) -> Array:
    """Return scales as a matrix: those of torch are blocks of 128 rows x 4, with the rows m, m + 32, … together."""
    if len(x.shape) == 2:
        return x
    tiles = x.reshape(-(-rows // 128), -(-blocks // 4), 32, 4, 4)
    order = (0, 3, 2, 1, 4)
    tiles = tiles.transpose(order) if type(x).__module__ == "numpy" else tiles.permute(order)
    return tiles.reshape(-(-rows // 128) * 128, -(-blocks // 4) * 4)[:rows, :blocks]
