"""``scaled_grouped_mm``: grouped products of 8-bit floats that stand for numbers with scales."""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from cute_dialect.op.dtypes import element_name, listed
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.grouped.call import SCHEDULES, Given, computed
from cute_dialect.op.grouped.shapes import Shapes, shapes_of
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.scaled import RECIPES, refuse_finer

__all__ = ["scaled_grouped_mm"]

_RECIPES = tuple([r for r in RECIPES if r != "block1x128"])


def scaled_grouped_mm(
    a: Any, b: Any, scale_a: Any, scale_b: Any, offs: Any = None, *, lengths: Any = None, row_groups: Any = None,
    recipe: str | tuple[str, str] | None = None, bias: Any = None, out: Any = None, dtype: object = None,
    fast: bool = False, rest: str = "keep", schedule: str = "auto", kernel: object = None, device: object = None,
    stream: object = None, **run: Any,
) -> Any:  # fmt: skip
    """Return the products of groups of rows, ``(scale_a * a)_g @ (scale_b * b)_g + bias``, of e4m3 and e5m2: (T, K)
    with (G, K, N) gives (T, N); (G, M, K), of which ``lengths`` rows are in use, gives (G, M, N).

    ``scale_a``: f32, of one element (``recipe="tensor"``), (T, 1) (``"row"``) or (T, K / 128) (``"block"``), of
    matrices with G before that; ``scale_b``: of one element or (G,), (G, N) or (G, 1, N), (G, N / 128, K / 128);
    rounded up, by any strides.  Without ``recipe`` the shapes say which.  The rest is as in
    :func:`cute_dialect.op.grouped.functions.grouped_mm` and :func:`cute_dialect.op.scaled.scaled_mm`.  Raises
    subclasses of OpError.
    """
    name = "scaled_grouped_mm"
    if run:
        check_keywords(name, scaled_grouped_mm, run)
    if schedule not in SCHEDULES:  # the interpreter's
        schedule, run = "auto", {**run, "schedule": schedule}
    for what, x in (("a", a), ("b", b), ("scale_a", scale_a), ("scale_b", scale_b)):
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise DtypeError(f"{name}: expected {what} to be an array, got {type(x).__name__}")
        element, scale = element_name(x.dtype), what.startswith("scale")
        if element != "f32" if scale else element not in ("f8E4M3FN", "f8E5M2"):
            raise DtypeError(f"{name}: expected {what} of {'f32' if scale else 'f8E4M3FN or f8E5M2'}, got {element}")
    groups = {n: x for n, x in (("offs", offs), ("lengths", lengths), ("row_groups", row_groups)) if x is not None}
    shapes = {n: (len(x),) if isinstance(x, list | tuple) else tuple(x.shape) for n, x in groups.items()}
    s = shapes_of(name, a.shape, b.shape, shapes, None)
    if s.form not in ("m", "rows"):
        raise UnsupportedError(
            f"{name}: expected b of rank 3 and groups of rows, got a and b of rank {len(a.shape)} and {len(b.shape)}"
        )
    of_a, of_b = (_recipe(name, s, what, x, recipe) for what, x in (("scale_a", scale_a), ("scale_b", scale_b)))
    if (of_a == "block") != (of_b == "block"):
        raise UnsupportedError(f"{name}: expected scales of blocks of both or of none, got {of_a} and {of_b}")
    block = of_a == "block"
    if block and 0 in (s.m, s.n, s.k):
        raise ShapeError(f"{name}: expected matrices with elements, got {tuple(a.shape)} and {tuple(b.shape)}")
    dtype = dtype if dtype is not None or out is not None else "bf16"
    math = "default" if block or fast else "promote"
    given = Given(
        a, b, groups, out, bias=bias, rest=rest, schedule=schedule, dtype=dtype, math=math, kernel=kernel,
        accumulator="block" if block else None, scales={"scale_a": scale_a, "scale_b": scale_b},
    )  # fmt: skip
    return computed(name, given, device, stream, run)


def _recipe(name: str, s: Shapes, what: str, x: Any, recipe: str | tuple[str, str] | None) -> str:
    """Return how an operand is scaled.  Raises ShapeError, UnsupportedError."""
    side = 0 if what == "scale_a" else 1
    wanted = recipe if recipe is None or isinstance(recipe, str) else tuple(recipe)[side]
    if wanted not in (None, *_RECIPES):
        raise UnsupportedError(f"{name}: expected a recipe of {', '.join(_RECIPES)}, got {wanted!r}")
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
            f"{name}: expected scale_b for blocks of 128 x 128, {kinds['block'][0]}, got {shape}, for blocks of "
            "1 x 128: there is no kernel of groups yet"
        )
    told = tuple(dict.fromkeys([str(shapes[0]) for kind, shapes in kinds.items() if wanted in (None, kind)]))
    raise ShapeError(f"{name}: expected {what} of {listed(told)}, got {shape}")
