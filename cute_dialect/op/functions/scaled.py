"""GEMMs of 8-bit floats with scales: ``scaled_mm``, and ``scaled_grouped_mm`` for groups.

A scale per matrix, per row of ``a`` or per column of ``b`` is applied to the accumulator in the epilogue.  Scales of
blocks of 128 along K are applied to the accumulator of each block, and the blocks are summed in f32
(:class:`cute_dialect.kernels.gemm.mainloop.Scales`).
"""

# Arrays may belong to any library.
# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import element_name, listed
from cute_dialect.op.arrays.operand_views import Matrix
from cute_dialect.op.epilogue.bind import bound, described
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.epilogue.tracing import FakeTensor
from cute_dialect.op.errors import DtypeError, OpError, ShapeError, UnsupportedError, renamed
from cute_dialect.op.execute.call_cache import KnownCalls, key_and_arrays
from cute_dialect.op.execute.gemm import product
from cute_dialect.op.execute.grouped import SCHEDULES, computed
from cute_dialect.op.functions.block_scaled import BlockScaled, block_scaled_mm
from cute_dialect.op.functions.gemm import mm
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.block_scaled import is_block_scaled
from cute_dialect.op.problems.grouped import GROUPS, GroupedArguments, Shapes, shapes_of
from cute_dialect.op.problems.scaled import (
    EXPONENTS,
    RECIPES,
    as_bytes,
    as_f32,
    check_scaled,
    refuse_finer,
    scales_epilogue,
)
from cute_dialect.op.select.gemm_dispatch import way_of
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.op.signature_types import Interpreted

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Factor

SUMS = {"block": "block", "block1x128": "columns"}
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
        a: (M, K), e4m3 or e5m2; with scales of 32 or 16 also float4_e2m1fn_x2 or uint8, (M, K / 2) of two e2m1 each.
        b: (K, N), likewise.
        scale_a, scale_b: f32, or float8_e8m0fnu of torch or ml_dtypes, with any strides.  The shapes are: one element
            (``"tensor"``); (M, 1) and (1, N) (``"row"``); (M, K / 128) and (N / 128, K / 128), rounded up
            (``"block"``); or (M, K / 128) and (N, K / 128) (``"block1x128"``, which ``"block"`` accepts, too).  On
            sm_100 and later and the CPU also (M, K / 32) and (N, K / 32) of float8_e8m0fnu (``"block1x32"``), or for
            e2m1 (M, K / 16) and (N, K / 16) of e4m3 (``"block1x16"``), or vectors in torch's blocks of 128 x 4.
            With these two recipes also a pair, such scales and an f32 factor of the whole matrix.
            e4m3 scales are at least 0, because the MMA reads them as unsigned; the interpreter refuses others.
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
        levels = [x if isinstance(x, tuple | list) and len(x) == 2 else (x, None) for x in (scale_a, scale_b)]
        given = a, b, out, bias, scale_out, *levels[0], *levels[1]
        how, tensors = key_and_arrays((recipe, dtype, fast), given)
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
    if is_block_scaled(a, scale_a, recipe):
        given = BlockScaled(a, b, scale_a, scale_b, recipe, bias, scale_out, dtype)
        return block_scaled_mm("scaled_mm", given, out, device, stream, run)
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
        extras = LinearCombination(bias=bias, accumulator=SUMS[of_b])
        return product("scaled_mm", 2, a, b, out, dtype, extras, device, stream, run, scales=scales)
    args = {"scale_a": scale_a, "scale_b": scale_b, "bias": bias, "scale_out": scale_out}
    traced, args = scales_epilogue((a.shape[0], b.shape[1]), args)
    math = "default" if fast else "promote"
    try:
        return mm(a, b, out, epilogue=traced, args=args, dtype=dtype, math=math, device=device, stream=stream, **run)
    except OpError as e:
        raise renamed(e, "scaled_mm", "mm") from None


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
    arithmetic, epilogue = SUMS.get(of_scales, ""), None
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


# -------------------------------------------------------------------------------------------------------- grouped GEMMs


_RECIPES = tuple([r for r in RECIPES if r != "block1x128"])


def scaled_grouped_mm(
    a: Array,
    b: Array,
    scale_a: Array,
    scale_b: Array,
    offs: Array = None,
    *,
    lengths: Array = None,
    row_groups: Array = None,
    recipe: str | tuple[str, str] | None = None,
    bias: Array = None,
    out: Array = None,
    dtype: object = None,
    fast: bool = False,
    rest: str = "keep",
    schedule: str = "auto",
    kernel: object = None,
    device: object = None,
    stream: object = None,
    **run: Any,
) -> Array:
    """Compute ``(scale_a * a)_g @ (scale_b * b)_g + bias`` for groups of rows of e4m3 or e5m2 operands.

    Args:
        a: (T, K), or (G, M, K) of which ``lengths`` rows are used.
        b: (G, K, N).
        scale_a: f32: one element (``recipe="tensor"``), (T, 1) (``"row"``) or (T, K / 128) (``"block"``), rounded up,
            with any strides; for (G, M, K) with G in front.
        scale_b: f32: one element or (G,) (``"tensor"``), (G, N) or (G, 1, N) (``"row"``), (G, N / 128, K / 128)
            (``"block"``).
        recipe: kind of the scales, or a pair for a and b; None to derive it from the shapes.
        bias: see :func:`cute_dialect.op.functions.grouped.grouped_mm`, as for ``offs`` and all other arguments.
        fast: see :func:`cute_dialect.op.functions.scaled.scaled_mm`.

    Returns:
        (T, N), or (G, M, N).

    Raises:
        OpError: if the arguments are not supported.
    """
    name = "scaled_grouped_mm"
    if run:
        check_keywords(name, scaled_grouped_mm, run)
    if schedule not in SCHEDULES:  # Other values are schedules of the interpreter.
        schedule, run = "auto", {**run, "schedule": schedule}
    for what, x in (("a", a), ("b", b), ("scale_a", scale_a), ("scale_b", scale_b)):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise DtypeError(f"{name}: {what} must be an array, got {type(x).__name__}")
        element, scale = element_name(x.dtype), what.startswith("scale")
        if element != "f32" if scale else element not in ("f8E4M3FN", "f8E5M2"):
            wanted = "f32" if scale else "f8E4M3FN or f8E5M2"
            raise DtypeError(f"{name}: {what} has dtype {element}; it must have {wanted}")
    groups = {n: x for n, x in zip(GROUPS, (offs, lengths, row_groups)) if x is not None}
    shapes = {n: (len(x),) if isinstance(x, list | tuple) else tuple(x.shape) for n, x in groups.items()}
    s = shapes_of(name, a.shape, b.shape, shapes, None)
    if s.form not in ("m", "rows"):
        raise UnsupportedError(
            f"{name}: a has rank {len(a.shape)} and b rank {len(b.shape)}; b must have rank 3, because groups are rows"
        )
    of_a, of_b = (_recipe(name, s, what, x, recipe) for what, x in (("scale_a", scale_a), ("scale_b", scale_b)))
    if (of_a == "block") != (of_b == "block"):
        raise UnsupportedError(
            f"{name}: scale_a is per {of_a} and scale_b per {of_b}; either both or neither must be per block"
        )
    block = of_a == "block"
    is_empty = 0 in (s.m, s.n, s.k)  # There is nothing to scale.
    dtype = dtype if dtype is not None or out is not None else "bf16"
    math = "default" if block or fast else "promote"
    sums = "block" if block and not is_empty else None
    given = GroupedArguments(
        a, b, groups, out, LinearCombination(bias=bias, math=math, accumulator=sums), rest=rest, schedule=schedule,
        dtype=dtype, kernel=kernel,
        scales={} if block and is_empty else {"scale_a": scale_a, "scale_b": scale_b},
    )  # fmt: skip
    return computed(name, given, device, stream, run)


def _recipe(name: str, s: Shapes, what: str, x: Any, recipe: str | tuple[str, str] | None) -> str:
    """Return the kind of an operand's scales.  Raises ShapeError, UnsupportedError."""
    side = 0 if what == "scale_a" else 1
    wanted = recipe if recipe is None or isinstance(recipe, str) else tuple(recipe)[side]
    if wanted not in (None, *_RECIPES):
        raise UnsupportedError(f"{name}: recipe {wanted!r} is not supported; use one of {', '.join(_RECIPES)}")
    blocks, groups = -(-s.k // 128), (s.groups,) if s.form == "rows" else ()
    if side == 0:
        kinds = {"tensor": [(1,), ()], "row": [(*groups, s.m, 1)], "block": [(*groups, s.m, blocks)]}
    else:
        matrix = [(s.groups, s.n)] if s.form == "m" else [(s.groups, s.n), (s.groups, 1, s.n)]
        kinds = {"tensor": [(1,), (), (s.groups,)], "row": matrix, "block": [(s.groups, -(-s.n // 128), blocks)]}
    shape = tuple(x.shape)
    for kind, shapes in kinds.items():
        if wanted in (None, kind) and shape in shapes:
            return kind
    rows = s.m if side == 0 else s.n
    inner = shape[1:] if shape[:1] == (s.groups,) and len(shape) == 3 else shape
    refuse_finer(name, what, x, inner, (rows, s.k))
    if side == 1 and inner == (rows, blocks):
        raise UnsupportedError(
            f"{name}: scale_b of shape {shape} is for blocks of 1 x 128, which are not supported; use blocks of "
            f"128 x 128, of shape {kinds['block'][0]}"
        )
    allowed = tuple(dict.fromkeys([str(shapes[0]) for kind, shapes in kinds.items() if wanted in (None, kind)]))
    raise ShapeError(f"{name}: {what} has shape {shape}; it must have {listed(allowed)}")
