"""Coordinates of tensors and vectors: their normalized form, and the checks that they are inside a shape.

A coordinate is an integer (a linear index, first mode fastest) or a tuple of coordinates nested like the shape or less.
``None`` and ``:`` select a whole mode, ``...`` all unnamed modes.  ``a:b`` with static bounds selects part of a static
mode.
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.evaluation import size as size_of
from cute_dialect.algebra.slicing import slice_
from cute_dialect.algebra.values import UNDERSCORE, Layout
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError, StaticError
from cute_dialect.lang.tracing.tracer import active, current
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.int_tuples import Tree
from cute_dialect.lang.values.numeric import as_number, binary, compare, facts_of, is_number
from cute_dialect.lang.values.tuple_arithmetic import product

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.tensors import Tensor

__all__ = ["check_access", "check_part", "coord_text", "has_open_mode", "is_static_coord", "normalised"]


# ---------------------------------------------------------------------------------------------------- coordinates


def normalised(coord: object, shape: Any, what: str = "tensor") -> Any:
    """Return a coordinate checked against the shape, with ``:`` and ``...`` as underscores.

    Leaves are Python integers, dynamic numbers, :data:`~cute_dialect.algebra.values.UNDERSCORE`, or slices with bounds.
    Raises F241 for a profile that does not match, F242 for a static coordinate out of bounds.
    """
    if isinstance(coord, list):
        coord = tuple(coord)
    if isinstance(coord, tuple) and any(c is Ellipsis for c in coord):
        coord = _without_ellipsis(coord, shape, what)
    elif coord is Ellipsis:
        coord = None
    try:
        return _normalised(coord, shape)
    except _Unfit as e:
        raise LayoutError(
            "F241", f"the coordinate does not match the profile of this {what}'s shape\n"
            f"  shape      {coord_text(shape)}\n  coordinate {coord_text(coord)}", hint=str(e),
        ) from None  # fmt: skip
    except _Outside as e:
        raise LayoutError(
            "F242",
            f"the coordinate {coord_text(coord)} is out of bounds for this {what} of shape {coord_text(shape)}: {e}",
        ) from None


class _Unfit(Exception):
    pass


class _Outside(Exception):
    pass


def _without_ellipsis(coord: tuple[object, ...], shape: Any, what: str) -> tuple[object, ...]:
    if sum(c is Ellipsis for c in coord) > 1:
        raise LayoutError("F241", f"a coordinate can have one '...', got {coord_text(coord)}")
    at = next(i for i, c in enumerate(coord) if c is Ellipsis)
    rank = len(shape) if isinstance(shape, tuple) else 1
    missing = rank - (len(coord) - 1)
    if missing < 0:
        raise LayoutError(
            "F241", f"the coordinate has more elements than this {what}'s shape\n"
            f"  shape      {coord_text(shape)}\n  coordinate {coord_text(coord)}",
        )  # fmt: skip
    return coord[:at] + (None,) * missing + coord[at + 1 :]


def _normalised(coord: Any, shape: Any) -> Any:
    if coord is None or coord is UNDERSCORE:
        return UNDERSCORE
    if isinstance(coord, slice):
        return _range(coord, shape)
    if isinstance(coord, tuple | list):
        if not isinstance(shape, tuple):
            if len(coord) == 1:
                return _normalised(coord[0], shape)
            raise _Unfit(f"a mode of extent {coord_text(shape)} takes one integer, not a tuple of {len(coord)}")
        if len(coord) != len(shape):
            raise _Unfit(f"{coord_text(shape)} has {len(shape)} modes but the coordinate has {len(coord)}")
        return tuple(_normalised(c, s) for c, s in zip(coord, shape))
    if is_number(coord):
        return _integer(coord, shape)
    index = getattr(type(coord), "__index__", None)
    if index is not None:
        return _integer(index(coord), shape)
    raise KernelTypeError("F241", f"a coordinate consists of integers, None and ':', got {coord!r}")


def _integer(x: Any, shape: Any) -> Any:
    number = as_number(x)
    if not type(number).is_integer:
        raise KernelTypeError(
            "F241", f"a coordinate consists of integers, got {number.describe()}", hint="cute.Int32(x)"
        )
    if not number.is_static:
        return number
    value = int(number.value)
    extent = size_of(shape)
    if value < 0 or (isinstance(extent, int) and value >= extent):
        allowed = f"0 to {extent - 1}" if isinstance(extent, int) else "0 or greater"
        raise _Outside(f"{value} is not {allowed}")
    return value


def _range(s: slice, shape: Any) -> Any:
    """Return a slice as an underscore, or as a slice with static bounds of a static mode."""
    if s.start is None and s.stop is None and s.step is None:
        return UNDERSCORE
    if not isinstance(shape, int):
        raise LayoutError(
            "F240", f"'a:b' needs a mode of static extent, got {coord_text(shape)}",
            hint="use cute.domain_offset to shift a tensor, or cute.local_tile for a tile",
        )  # fmt: skip
    bounds: list[int] = []
    for bound, default in ((s.start, 0), (s.stop, shape)):
        try:
            bounds.append(default if bound is None else _static_int(bound))
        except (StaticError, TypeError):
            raise LayoutError(
                "F240", "the bounds of 'a:b' must be known at compile time",
                hint="use cute.domain_offset to shift a tensor by a run-time coordinate",
            ) from None  # fmt: skip
    if s.step is not None and _static_int(s.step) != 1:
        raise LayoutError("F240", f"a slice of a tensor cannot have a step, got step {s.step}")
    start, stop = bounds
    if not 0 <= start < stop <= shape:
        raise _Outside(f"{start}:{stop} is empty or exceeds 0:{shape}")
    return UNDERSCORE if (start, stop) == (0, shape) else slice(start, stop)


def _static_int(x: Any) -> int:
    import operator

    return operator.index(x)


def coord_text(tree: Any) -> str:
    """Return a coordinate as text, in the user's syntax."""
    if isinstance(tree, tuple | list):
        return f"({','.join(map(coord_text, tree))}{',' if len(tree) == 1 else ''})"
    if tree is None or tree is UNDERSCORE:
        return "_"
    if isinstance(tree, EllipsisType):
        return "..."
    if isinstance(tree, slice):
        return f"{'' if tree.start is None else tree.start}:{'' if tree.stop is None else tree.stop}"
    return str(tree)


def leaves(coord: Any) -> list[Any]:
    return [leaf for c in coord for leaf in leaves(c)] if isinstance(coord, tuple) else [coord]


def is_static_coord(coord: Any) -> bool:
    """Return True if all integers of a normalized coordinate are known at compile time."""
    return not any(isinstance(leaf, Numeric) for leaf in leaves(coord))


def coord_ssa(coord: Any) -> SSAValue:
    """Return a normalized coordinate as a value of type ``!cute.coord``."""
    return Tree(coord, "coord").ssa


def has_open_mode(coord: Any) -> bool:
    """Return True if a normalized coordinate selects a whole mode or part of one."""
    return any(leaf is UNDERSCORE or isinstance(leaf, slice) for leaf in leaves(coord))


def part(where: Any, layout: Layout) -> tuple[Layout, int]:
    """Return the layout and offset of the part of a static layout that a static coordinate selects."""
    narrow = Layout(narrowed(layout.shape, where), layout.stride)
    return slice_(with_open_modes(where), narrow), evaluate(_start(where), layout)  # pyright: ignore[reportReturnType]


def map_coord(f: Any, where: Any) -> Any:
    return tuple([map_coord(f, w) for w in where]) if isinstance(where, tuple) else f(where)


def with_open_modes(where: Any) -> Any:
    """Return a coordinate with slices replaced by whole modes."""
    return map_coord(lambda w: UNDERSCORE if isinstance(w, slice) else w, where)


def _start(where: Any) -> Any:
    """Return the first coordinate that a coordinate selects."""
    return map_coord(lambda w: 0 if w is UNDERSCORE else w.start if isinstance(w, slice) else w, where)


def narrowed(shape: Any, where: Any) -> Any:
    """Return the shape with each sliced mode reduced to its slice."""
    if isinstance(where, tuple):
        return tuple([narrowed(s, w) for s, w in zip(shape, where)])
    return where.stop - where.start if isinstance(where, slice) else shape


# ------------------------------------------------------------------------------------------------- bounds of views


def described(tensor: Tensor) -> str:
    return f"{tensor.describe()} of shape {coord_text(tensor.shape_payload)}"


def emit_checks(tracer: Any, where: Any, shape: Any, text: str, *, only_static: bool = False) -> None:
    """Emit assertions that the dynamic integers of a coordinate are within a shape.

    ``only_static``: check modes of static extent only.
    """
    from xdsl.dialects.builtin import StringAttr

    def check(c: Any, mode: Any, path: tuple[int, ...]) -> None:
        if isinstance(c, tuple):
            for i, (part, of) in enumerate(zip(c, mode)):
                check(part, of, (*path, i))
        elif isinstance(c, Numeric):
            extent = product(mode)
            known, end = facts_of(c), as_number(extent)
            natural = known.low is not None and known.low >= 0
            if only_static and not end.is_static:
                return
            if natural and known.high is not None and end.is_static and known.high < end.value:
                return
            inside: Any = compare("lt", c, extent)
            if not natural:
                inside = binary("and", compare("ge", c, 0), inside)
            in_mode = f" in mode {path[0] if len(path) == 1 else path}" if path else ""
            tracer.op("cf.assert", [inside.ssa], (), {"msg": StringAttr(f"out-of-bounds {text}{in_mode}")})

    check(where, shape, ())


class _View(NamedTuple):
    """The coordinate that selected a view, and the shape that it must be within where the view is accessed."""

    where: Any
    shape: Any
    text: str


def check_view_later(view: Tensor, tensor: Tensor, where: Any, shape: Any, text: str) -> None:
    """Let accesses through a view check the normalized coordinate that selected it.

    Kernels form views past the end and do not access them, or access them with a predicate, so a view alone is legal.

    Args:
        view: the tile, slice or partition of ``tensor``.
        where: the coordinate.
        shape: the shape that it indexes.
        text: the view in messages, such as "a slice of tensor 'x'".
    """
    if tensor.element_type is not None and not tensor.is_per_thread:
        current().state.setdefault("views", {})[view.ssa] = _View(where, shape, text)


def check_access(tensor: Tensor, access: str) -> None:
    """Emit the bounds assertions of the views through which a tensor is accessed, once per block of IR.

    Args:
        tensor: the tensor that is accessed.
        access: "read", "write" or "copy".
    """
    tracer = active()
    views: dict[Any, _View] = {} if tracer is None else tracer.state.get("views", {})
    if not views or tensor.element_type is None:
        return
    assert tracer is not None
    checked: set[Any] = tracer.state.setdefault("checked_views", set())
    value: Any = tensor.ssa
    while value is not None:
        view = views.get(value)
        if view is not None and (value, tracer.block) not in checked:
            checked.add((value, tracer.block))
            emit_checks(tracer, view.where, view.shape, f"{access} through {view.text}")
        operands = getattr(getattr(value, "op", None), "operands", ())
        value = next((x for x in operands if x.type.name in ("cute.memref", "cute.ptr")), None)


def check_part(view: Any, tensor: Any, coord: Any, extents: Any, shape: Callable[[], Any], what: str) -> None:
    """Check the coordinate of a tile or partition: now if it is static, else where its elements are accessed.

    Args:
        view: the tile or partition.
        tensor: the tensor that is divided.
        coord: the coordinate among its parts.
        extents: the shape of the parts, in the algebra's types.
        shape: computes this shape, if it is needed.
        what: the parts, for messages, such as "tiles".

    Raises F242 for a static coordinate past the static extents.
    """
    try:
        where = normalised(coord, extents, f"set of {what}")
    except LayoutError as e:
        if e.code == "F242":
            raise
        return  # The op accepts more profiles than an index.
    if not is_static_coord(where) and has_asserts():
        text = f"a part of {tensor.describe()} divided into {coord_text(extents)} {what}"
        check_view_later(view, tensor, where, shape(), text)


def has_asserts() -> bool:
    tracer = active()
    return tracer is not None and bool(tracer.state.get("asserts"))
