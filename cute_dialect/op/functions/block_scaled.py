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

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.sm120 import FP4, Sm120Config, sm120_gemm_text
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.problems.scaled import EXPONENTS
from cute_dialect.op.select.backends import UNMEASURED
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:
    from cute_dialect.op.signature_types import Array, Interpreted

WIDTHS = {"block1x32": 32, "block1x16": 16}
"""Recipe -> elements along K that share a scale."""
_FP8 = ("f8E4M3FN", "f8E5M2")
_PACKED = ("float4_e2m1fn_x2", "ui8")
"""Types of arrays of 4-bit floats, two per element."""
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
    """Return True if a call has scales of 32 or 16 elements along K, by its recipe or its arrays."""
    given = recipe if isinstance(recipe, tuple | list) else (recipe,)
    if any([r in WIDTHS for r in given]):
        return True
    if recipe is not None or not all([hasattr(x, "dtype") and hasattr(x, "shape") for x in (a, scale_a)]):
        return False
    found = scaling_of(element_name(a.dtype), element_name(scale_a.dtype))
    if found is None or len(a.shape) != 2:
        return False
    m, k = a.shape
    shapes = _shapes(m, -(-k * found.packed // found.width))
    return found.packed == 2 or (tuple(scale_a.shape) in shapes and tuple(scale_a.shape) not in ((m, 1), (1,)))


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
    with one.on():
        y = one.result((m, n), result, "out")
        if 0 in (m, n):
            return y
        if k == 0:
            y[...] = 0 if bias is None else bias
            return y
        views = [one.aligned_matrix("a"), one.aligned_matrix("b"), one.matrix_of(y)]
        behind: list[ArrayView | None] = [one.matrix("scale_a"), one.matrix("scale_b"), one.vector("bias")]
        config = _config(one, scaling, result, chip, has_bias=bias is not None)
        one.launch(RowKernel(config.name, sm120_gemm_text, (config,), target=chip), *views, *behind)
    return y


def _config(one: RowCall, scaling: Scaling, result: str, chip: str, *, has_bias: bool) -> Sm120Config:
    """Return the kernel of a call."""
    a, b = (FP4 if scaling.packed == 2 else one.views[name].dtype for name in "ab")
    m, n = (one.views[name].shape[0] for name in "ab")
    wide = (128, 64) if scaling.name == "nv" else (128, 128)
    tile = wide if m > 64 and n > 64 else (64, 64)
    found = Sm120Config(a if a == b else f"{a}_{b}", tile, output=result, scaling=scaling.name, chip=chip)
    found = found._replace(epilogue=Epilogue(bias="n" if has_bias else ""))
    return found._replace(stages=min(4, found.most_stages))


def _chip_of(call: str, one: RowCall, scaling: Scaling) -> str:
    """Return the target of the kernels for the GPU, or that of sm_120 for the interpreter.  Raises UnsupportedError."""
    one.check_gpu()
    of_warps = [b for b in UNMEASURED if not b.has_tensor_memory]
    if one.cpu:
        return of_warps[0].target
    from cute_dialect.runtime.driver import driver  # late: start-up

    major, minor = driver().capability(one.gpu)
    for backend in of_warps:
        if backend.runs_on((major, minor)):
            return backend.target
    chips = " or ".join([f"sm_{b.chip}" for b in of_warps])
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
    scaling = scaling_of(elements[0], kinds[0])
    if scaling is None or scaling_of(elements[1], kinds[1]) != scaling or kinds[0] != kinds[1]:
        raise DtypeError(
            f"{call}: a, b, scale_a and scale_b have dtypes {', '.join([*elements, *kinds])}; pass f8E4M3FN or f8E5M2 "
            f"with scales of {EXPONENTS}, or float4_e2m1fn_x2 (or uint8 of two elements) with scales of {EXPONENTS} or "
            "f8E4M3FN"
        )
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
            raise ShapeError(
                f"{call}: {name} has shape {tuple(x.shape)}; pass {shapes[0]}, one scale per row and {scaling.width} "
                f"elements along K, or {shapes[1]}, blocks of 128 x 4 scales"
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
