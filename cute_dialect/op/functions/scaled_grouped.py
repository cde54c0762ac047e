"""``scaled_grouped_mm``: grouped GEMMs of 8-bit floats with scales."""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.op.arrays.dtypes import element_name, listed
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.grouped import SCHEDULES, computed
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.grouped import GROUPS, GroupedArguments, Shapes, shapes_of
from cute_dialect.op.problems.scaled import RECIPES, refuse_finer

if TYPE_CHECKING:
    from cute_dialect.op.signature_types import Array


__all__ = ["scaled_grouped_mm"]

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
    refuse_finer(name, what, inner, (rows, s.k))
    if side == 1 and inner == (rows, blocks):
        raise UnsupportedError(
            f"{name}: scale_b of shape {shape} is for blocks of 1 x 128, which are not supported; use blocks of "
            f"128 x 128, of shape {kinds['block'][0]}"
        )
    allowed = tuple(dict.fromkeys([str(shapes[0]) for kind, shapes in kinds.items() if wanted in (None, kind)]))
    raise ShapeError(f"{name}: {what} has shape {shape}; it must have {listed(allowed)}")
