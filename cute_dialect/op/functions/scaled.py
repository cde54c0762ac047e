"""GEMMs of 8-bit floats with scales: ``scaled_mm``.

A scale per matrix, per row of ``a`` or per column of ``b`` is applied to the accumulator in the epilogue.  Scales of
blocks of 128 along K are applied to the accumulator of each block, and the blocks are summed in f32
(:class:`cute_dialect.kernels.gemm.mainloop.Scales`).
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.arrays.operand_views import Matrix
from cute_dialect.op.epilogue.bind import bound, described
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.epilogue.tracing import FakeTensor
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.gemm import product
from cute_dialect.op.functions.gemm import graph_key, mm
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.scaled import EXPONENTS, as_bytes, as_f32, check_scaled, scales_epilogue
from cute_dialect.op.select.gemm_dispatch import way_of
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.signature_types import Interpreted

if TYPE_CHECKING:
    from cute_dialect.op.signature_types import Array, Factor


if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

__all__ = ["scaled_kernel", "scaled_mm"]

_SUMS = {"block": "block", "block1x128": "columns"}
"""Recipe of block scales -> name of the arithmetic for kernel choice."""


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
        scale_a, scale_b = as_f32(scale_a), as_f32(scale_b)
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
