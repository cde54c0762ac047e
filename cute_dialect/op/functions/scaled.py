"""GEMMs of 8-bit floats with scales: ``scaled_mm``.

A scale per matrix, per row of ``a`` or per column of ``b`` is applied to the accumulator in the epilogue.  Scales of
blocks of 128 along K are applied to the accumulator of each block, and the blocks are summed in f32
(:class:`cute_dialect.kernels.gemm.mainloop.Scales`).
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import element_name, listed
from cute_dialect.op.epilogue.bind import bound, described
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.epilogue.functions import activated
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced, trace
from cute_dialect.op.epilogue.unfused import Matrix
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.gemm import product
from cute_dialect.op.functions.gemm import graph_key, mm
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.select.gemm_dispatch import way_of
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.signature_types import Interpreted

if TYPE_CHECKING:
    from cute_dialect.op.signature_types import Array, Factor


if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

__all__ = ["EXPONENTS", "as_bytes", "check_scaled", "refuse_finer", "scaled_kernel", "scaled_mm", "scales_epilogue"]

RECIPES = ("tensor", "row", "block", "block1x128")
"""Recipes of scales.  With ``block1x128`` a block of ``b`` is one column by 128 along K."""
_SUMS = {"block": "block", "block1x128": "columns"}
"""Recipe of block scales -> name of the arithmetic for kernel choice."""
_BLOCK = 128
EXPONENTS = "float8_e8m0fnu"
"""8-bit scales that are powers of two."""


def scaled_mm(
    a: Array,
    b: Array,
    scale_a: Array,
    scale_b: Array,
    *,
    recipe: str | tuple[str, str] | None = None,
    bias: Array = None,
    out: Array = None,
    dtype: object = None,
    fast: bool = False,
    scale_out: Factor = None,
    device: object = None,
    stream: object = None,
    **run: Unpack[Interpreted],
) -> Array:
    """Return ``((scale_a * a) @ (scale_b * b) + bias) * scale_out``.

    By default tensor cores accumulate blocks of 128 along K, and f32 additions sum the blocks.

    Args:
        a: (M, K), e4m3 or e5m2.
        b: (K, N), e4m3 or e5m2.
        scale_a, scale_b: f32, or float8_e8m0fnu of torch or ml_dtypes, with any strides.  The shapes are: one element
            (``"tensor"``); (M, 1) and (1, N) (``"row"``); (M, K / 128) and (N / 128, K / 128), rounded up
            (``"block"``); or (M, K / 128) and (N, K / 128) (``"block1x128"``, which ``"block"`` accepts, too).
        recipe: one of these names, or one for each operand; default: determined by the shapes.
        bias: a per-column vector.
        dtype: type of the result without ``out``; default: bf16.
        fast: accumulate in the tensor cores only, which keep 14 bits of a sum.
        scale_out: a number, or an array of one element.
        out, device, stream, run: as in :func:`cute_dialect.op.functions.gemm.mm`.

    Raises subclasses of OpError.
    """
    if run:
        check_keywords("scaled_mm", scaled_mm, run)
    how, tensors = None, list[Any]()
    if device is None and stream is None and not run and not KNOWN.is_traced():
        given = {"out": out, "bias": bias, "scale_out": scale_out}
        how, tensors = graph_key(a, b, None, (recipe, dtype, fast), {n: x for n, x in given.items() if x is not None})
        tensors += (scale_a, scale_b)
        done = KNOWN.again(how, *tensors)
        if done is not None:
            return done

    def compute() -> Any:
        return _scaled(a, b, scale_a, scale_b, recipe, bias, out, dtype, fast, scale_out, device, stream, run)

    return compute() if how is None else KNOWN.recorded(how, tensors, compute)


KNOWN = KnownCalls()
"""Recorded calls."""


def _scaled(
    a: Any, b: Any, scale_a: Any, scale_b: Any, recipe: str | tuple[str, str] | None, bias: Any, out: Any,
    dtype: object, fast: bool, scale_out: Any, device: object, stream: object, run: Interpreted,
) -> Any:  # fmt: skip
    """Compute a :func:`scaled_mm` that is not cached."""
    of_a, of_b = check_scaled("scaled_mm", a, b, scale_a, scale_b, recipe)
    dtype = dtype if dtype is not None or out is not None else "bf16"
    of_blocks = of_a.startswith("block")
    if of_blocks and scale_out is not None:
        raise UnsupportedError("scaled_mm: scale_out is not supported with block scales; scale the result instead")
    if of_blocks and 0 in (*a.shape, *b.shape):  # There is nothing to scale.
        return mm(a, b, out, bias=bias, dtype=dtype, device=device, stream=stream, **run)
    if of_blocks and element_name(scale_a.dtype) == EXPONENTS:  # The kernel reads the bytes of e8m0 scales.
        scale_a, scale_b = as_bytes(scale_a), as_bytes(scale_b)
    else:  # There are few scales: one, or one per row or column.
        scale_a, scale_b = _as_f32(scale_a), _as_f32(scale_b)
    if of_blocks:
        scales = {"scale_a": scale_a, "scale_b": scale_b}
        extras = LinearCombination(bias=bias, accumulator=_SUMS[of_b])
        return product("scaled_mm", 2, a, b, out, dtype, extras, device, stream, run, scales=scales)
    args = {"scale_a": scale_a, "scale_b": scale_b, "bias": bias, "scale_out": scale_out}
    traced, args = scales_epilogue((a.shape[0], b.shape[1]), args)
    math = "default" if fast else "promote"
    return mm(a, b, out, epilogue=traced, args=args, dtype=dtype, math=math, device=device, stream=stream, **run)


def scaled_kernel(
    m: int, n: int, k: int, of_scales: str, *, dtype: str = "bf16", fast: bool = False, element: str = "f8E4M3FN",
    gpu: str = "", exponents: bool = False,
) -> Choice:  # fmt: skip
    """Return the kernel of a call without bias and with ``b`` contiguous along K, to compile it in advance.

    Args:
        of_scales: the recipe of both operands.
        exponents: block scales are e8m0.
    """
    a, b, d = Matrix((m, k), (k, 1), 1, 0), Matrix((k, n), (1, k), 1, 0), Matrix((m, n), (n, 1), BITS[dtype] // 8, 0)
    arithmetic, epilogue = _SUMS.get(of_scales, ""), None
    of_blocks = of_scales.startswith("block")
    if not of_blocks:
        arithmetic = "" if fast else "two"
        shapes = ((m, 1), (1, n)) if of_scales == "row" else ((1,), (1,))
        traced, _ = scales_epilogue((m, n), {x: FakeTensor("f32", s) for x, s in zip(("scale_a", "scale_b"), shapes)})
        views = {x: described(FakeTensor("f32", s)) for x, s in zip(("scale_a", "scale_b"), shapes)}
        result = described(FakeTensor(dtype, (m, n)))
        epilogue = Epilogue(graph=bound(traced, views, result, (m, n), lambda shape, element: result).graph)
    choice = way_of(a, b, d, element, dtype, epilogue, gpu, 132, arithmetic).choice
    assert choice is not None
    if not of_blocks:
        return choice
    return choice._replace(config=choice.config._replace(scales="ui8" if exponents else "f32"))


def check_scaled(
    call: str, a: Array, b: Array, scale_a: Array, scale_b: Array, recipe: str | tuple[str, str] | None
) -> tuple[str, str]:  # fmt: skip
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
) -> tuple[str, str]:  # fmt: skip
    """Return the recipe of each operand.  Raises ShapeError, UnsupportedError."""
    (m, k), n = a.shape, b.shape[1]
    blocks = -(-k // _BLOCK)
    given = (recipe, recipe) if recipe is None or isinstance(recipe, str) else tuple(recipe)
    shapes = {
        "scale_a": {"tensor": (1,), "row": (m, 1), "block": (m, blocks), "block1x128": (m, blocks)},
        "scale_b": {"tensor": (1,), "row": (1, n), "block": (-(-n // _BLOCK), blocks), "block1x128": (n, blocks)},
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
            refuse_finer(call, name, shape, (m, k) if name == "scale_a" else (n, k))
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


def refuse_finer(call: str, name: str, shape: tuple[int, ...], of: tuple[int, int]) -> None:
    """Raise UnsupportedError for scales of blocks of 32 or 16 along K, which need Blackwell.

    The scales may also have torch's layout for Blackwell, tiles of 128 by 4.

    Args:
        of: (rows, K) of the matrix.
    """
    rows, k = of
    for width in (32, 16):
        blocks = -(-k // width)
        tiled = -(-rows // 128) * 128 * (-(-blocks // 4) * 4)
        if blocks > -(-k // _BLOCK) and shape in ((rows, blocks), (blocks, rows), (tiled,)):
            raise UnsupportedError(
                f"{call}: {name} has shape {shape}, scales of blocks of {width} along K, which need Blackwell "
                f"(sm_100); use one scale per matrix, per row, or per block of {_BLOCK} along K"
            )


def as_bytes(x: Array) -> Array:
    """Return e8m0 scales as bytes."""
    return x.view("uint8" if type(x).__module__ == "numpy" else _torch().uint8)


def _as_f32(x: Any) -> Any:
    """Return scales as f32."""
    if element_name(x.dtype) == "f32":
        return x
    return x.astype("float32") if type(x).__module__ == "numpy" else x.to(_torch().float32)


def _torch() -> Any:
    return sys.modules["torch"]


def _one(x: Any) -> Any:
    """Return an array of one element as a vector; others are returned unchanged."""
    return x.reshape(1) if tuple(getattr(x, "shape", (0,))) in ((), (1, 1)) else x


def _described(x: Any) -> Any:
    """Return the cache key of an argument: its type and shape, or ``float`` for a number."""
    if isinstance(x, FakeTensor):
        return x.element, x.shape
    return (element_name(x.dtype), tuple(x.shape)) if hasattr(x, "shape") else float


def scales_epilogue(
    shape: tuple[int, int], args: Mapping[str, Any], activation: str = ""
) -> tuple[Traced, dict[str, Any]]:  # fmt: skip
    """Return the traced epilogue for a result of a shape, and its arguments, those that are not None.

    Args:
        args: ``scale_a``, ``scale_b``, ``alpha``, ``beta``, ``C``, ``bias`` and ``scale_out``, as numbers, arrays or
            :class:`~cute_dialect.op.epilogue.tracing.FakeTensor`.
    """
    found = {name: _one(x) if name.startswith("scale") else x for name, x in args.items() if x is not None}
    return _traced(shape, tuple([(name, _described(x)) for name, x in found.items()]), activation), found


@lru_cache(maxsize=256)
def _traced(shape: tuple[int, int], kinds: tuple[tuple[str, Any], ...], activation: str) -> Traced:
    """Return the traced epilogue for arguments of these types and shapes."""
    examples: dict[str, Any] = {"accum": FakeTensor("f32", shape)}
    examples |= {name: 1.5 if kind is float else FakeTensor(*kind) for name, kind in kinds}

    def scaled(accum: Any, **given: Any) -> Any:
        """Return the scaled accumulator with its addends."""
        found = accum * given["scale_a"] * given["scale_b"]
        found = found * given["alpha"] if "alpha" in given else found
        found = found + given["beta"] * given["C"] if "C" in given else found
        found = found + given["bias"] if "bias" in given else found
        found = activated(activation)(found) if activation else found
        return found * given["scale_out"] if "scale_out" in given else found

    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in examples]
    scaled.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return trace(scaled, examples)
