"""Indexing of tensors: ``t[c]`` reads an element or takes a slice, ``t[c] = x`` writes.

A coordinate is an integer (it counts the elements, first mode fastest), or a tuple of coordinates as nested as the
shape or less; ``None`` and ``:`` stand for all of a mode, ``...`` for all modes that are not named.  ``a:b`` with
static bounds takes a part of a static mode.
"""

from __future__ import annotations

from types import EllipsisType
from typing import TYPE_CHECKING, Any

from cute_dialect.front.errors import KernelTypeError, LayoutError, StaticError
from cute_dialect.front.tuples import Tree, from_ssa

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.algebra.values import Layout
    from cute_dialect.front.dtypes import Numeric
    from cute_dialect.front.tensors import Tensor

__all__ = ["normalised", "read", "stored_value", "write"]


# ---------------------------------------------------------------------------------------------------- coordinates


def normalised(coord: object, shape: Any, what: str = "tensor") -> Any:
    """Return a coordinate with ``:`` and ``...`` as underscores, checked against the shape.

    Leaves are Python integers, dynamic numbers, :data:`~cute_dialect.algebra.values.UNDERSCORE`, or slices with bounds.
    Raises F241 for a profile that does not fit, F242 for a static coordinate outside of the shape.
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
            "F241", f"a coordinate of this {what} does not have the profile of its shape\n"
            f"  shape      {coord_text(shape)}\n  coordinate {coord_text(coord)}", hint=str(e),
        ) from None  # fmt: skip
    except _Outside as e:
        raise LayoutError(
            "F242", f"the coordinate {coord_text(coord)} is outside of this {what} of shape {coord_text(shape)}: {e}"
        ) from None


class _Unfit(Exception):
    pass


class _Outside(Exception):
    pass


def _without_ellipsis(coord: tuple[object, ...], shape: Any, what: str) -> tuple[object, ...]:
    if sum(c is Ellipsis for c in coord) > 1:
        raise LayoutError("F241", f"one '...' can stand in a coordinate, got {coord_text(coord)}")
    at = next(i for i, c in enumerate(coord) if c is Ellipsis)
    rank = len(shape) if isinstance(shape, tuple) else 1
    missing = rank - (len(coord) - 1)
    if missing < 0:
        raise LayoutError(
            "F241", f"a coordinate of this {what} has more elements than its shape\n"
            f"  shape      {coord_text(shape)}\n  coordinate {coord_text(coord)}",
        )  # fmt: skip
    return coord[:at] + (None,) * missing + coord[at + 1 :]


def _normalised(coord: Any, shape: Any) -> Any:
    from cute_dialect.algebra.values import UNDERSCORE
    from cute_dialect.front.numeric import is_number

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
            raise _Unfit(f"{coord_text(shape)} has {len(shape)} modes, the coordinate {len(coord)}")
        return tuple(_normalised(c, s) for c, s in zip(coord, shape))
    if is_number(coord):
        return _integer(coord, shape)
    index = getattr(type(coord), "__index__", None)
    if index is not None:
        return _integer(index(coord), shape)
    raise KernelTypeError("F241", f"a coordinate is of integers, None and ':', got {coord!r}")


def _integer(x: Any, shape: Any) -> Any:
    from cute_dialect.algebra.evaluation import size
    from cute_dialect.front.numeric import as_number

    number = as_number(x)
    if not type(number).is_integer:
        raise KernelTypeError("F241", f"a coordinate is of integers, got {number.describe()}", hint="cute.Int32(x)")
    if not number.is_static:
        return number
    value = int(number.value)
    extent = size(shape)
    if value < 0 or (isinstance(extent, int) and value >= extent):
        among = f"{extent} elements" if isinstance(extent, int) else "the elements counted from 0"
        raise _Outside(f"{value} is none of {among}")
    return value


def _range(s: slice, shape: Any) -> Any:
    """Return a slice as an underscore, or as a slice with static bounds of a static mode."""
    from cute_dialect.algebra.values import UNDERSCORE

    if s.start is None and s.stop is None and s.step is None:
        return UNDERSCORE
    if not isinstance(shape, int):
        raise LayoutError(
            "F240", f"'a:b' takes a part of a mode of static extent, not of {coord_text(shape)}",
            hint="cute.domain_offset moves a tensor, cute.local_tile takes a tile of it",
        )  # fmt: skip
    bounds: list[int] = []
    for bound, default in ((s.start, 0), (s.stop, shape)):
        try:
            bounds.append(default if bound is None else _static_int(bound))
        except (StaticError, TypeError):
            raise LayoutError(
                "F240", "the bounds of 'a:b' must be known while compiling: a dynamic length has no layout",
                hint="cute.domain_offset moves a tensor by a dynamic coordinate",
            ) from None  # fmt: skip
    if s.step is not None and _static_int(s.step) != 1:
        raise LayoutError("F240", f"'a:b:c' with a step takes no part of a mode, got step {s.step}")
    start, stop = bounds
    if not 0 <= start < stop <= shape:
        raise _Outside(f"{start}:{stop} is no range of 0:{shape} with an element")
    return UNDERSCORE if (start, stop) == (0, shape) else slice(start, stop)


def _static_int(x: Any) -> int:
    import operator

    return operator.index(x)


def coord_text(tree: Any) -> str:
    """Return the text of a coordinate as users write it."""
    from cute_dialect.algebra.values import UNDERSCORE

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
    """List the leaves of a coordinate."""
    return [leaf for c in coord for leaf in leaves(c)] if isinstance(coord, tuple) else [coord]


def is_static_coord(coord: Any) -> bool:
    """Tell whether all integers of a normalised coordinate are known while tracing."""
    from cute_dialect.front.dtypes import Numeric

    return not any(isinstance(leaf, Numeric) for leaf in leaves(coord))


def coord_ssa(coord: Any) -> SSAValue:
    """Return a normalised coordinate as a value of ``!cute.coord``."""
    return Tree(coord, "coord").ssa


# --------------------------------------------------------------------------------------------------- reading, writing


def has_open_mode(coord: Any) -> bool:
    """Tell whether a normalised coordinate leaves a mode open, or a part of one."""
    from cute_dialect.algebra.values import UNDERSCORE

    return any(leaf is UNDERSCORE or isinstance(leaf, slice) for leaf in leaves(coord))


def read(tensor: Tensor, coord: object) -> Any:
    """Return the element at a coordinate, or the slice of what it leaves open."""
    where = normalised(coord, tensor.shape_payload)
    _assert_inside(tensor, where)
    if has_open_mode(where):
        return sliced(tensor, where)
    from cute_dialect.front.trace import current

    if tensor.is_static and is_static_coord(where):
        from cute_dialect.algebra.arithmetic import tuple_add
        from cute_dialect.algebra.evaluation import evaluate

        return tuple_add(tensor.iterator, evaluate(where, tensor.payload))
    _whole_bytes(tensor, "read")
    element = current().value("cute.memref.load", [tensor.ssa, coord_ssa(where)])
    return tensor.element_type.of(element) if tensor.element_type is not None else from_ssa(element)


def write(tensor: Tensor, coord: object, value: object) -> None:
    """Write an element, or all elements that a coordinate leaves open."""
    element = _writable(tensor)
    where = normalised(coord, tensor.shape_payload)
    _assert_inside(tensor, where)
    if has_open_mode(where):
        fill_or_store(sliced(tensor, where), value)
        return
    from cute_dialect.front.trace import current

    _whole_bytes(tensor, "written")
    current().op("cute.memref.store", [tensor.ssa, coord_ssa(where), stored_value(value, element).ssa])


def _assert_inside(tensor: Tensor, where: Any) -> None:
    """Emit assertions that the dynamic integers of a coordinate are in their modes, where the build has assertions.

    A slice reads nothing: one past the end of a dynamic mode is checked where its elements are accessed, since kernels
    form slices of the next tile before they know whether there is one. A coordinate tensor has no memory, and its
    coordinates continue past its shape, so it is not checked."""
    from cute_dialect.front.trace import active

    tracer = active()
    if tracer is None or not tracer.state.get("asserts") or is_static_coord(where) or tensor.element_type is None:
        return
    from xdsl.dialects.builtin import StringAttr

    from cute_dialect.front.dtypes import Numeric
    from cute_dialect.front.numeric import as_number, binary, compare, facts_of
    from cute_dialect.front.tuple_functions import size

    is_slice = has_open_mode(where)

    def check(c: Any, mode: Any) -> None:
        if isinstance(c, tuple):
            for part, of in zip(c, mode):
                check(part, of)
        elif isinstance(c, Numeric):
            extent = size(mode)
            known, end = facts_of(c), as_number(extent)
            natural = known.low is not None and known.low >= 0
            if is_slice and not end.is_static:
                return
            if natural and known.high is not None and end.is_static and known.high < end.value:
                return
            inside: Any = compare("lt", c, extent)
            if not natural:
                inside = binary("and", compare("ge", c, 0), inside)
            tracer.op("cf.assert", [inside.ssa], (), {"msg": StringAttr(text)})

    shape = coord_text(tensor.shape_payload)
    text = f"the coordinate {coord_text(where)} is inside of {tensor.describe()} of shape {shape}"
    check(where, tensor.shape)


def _whole_bytes(tensor: Tensor, what: str) -> None:
    """Refuse to access one element of less than a byte: a store would overwrite its neighbour."""
    element = tensor.element_type
    if element is not None and 1 < element.width < 8 and tensor.memspace != "rmem":
        raise KernelTypeError(
            "F264", f"one element of {element!r} is a part of a byte: it cannot be {what} alone",
            hint="t.load() and t.store(v) move whole vectors, cute.recast_tensor(t, cute.Uint8) sees the bytes",
        )  # fmt: skip


def _writable(tensor: Tensor) -> type[Numeric]:
    if tensor.element_type is None:
        raise KernelTypeError("F260", "a coordinate tensor holds no memory: its elements cannot be written")
    return tensor.element_type


def fill_or_store(tensor: Tensor, value: object) -> None:
    """Write a vector to a tensor, or a number to each of its elements."""
    from cute_dialect.front.tensors import Tensor

    store = getattr(value, "__cute_store__", None)
    if store is not None:
        store(tensor)
        return
    if isinstance(value, Tensor):
        raise KernelTypeError(
            "F235", "a tensor is written with a vector or a number, not with another tensor", hint="write t.load()"
        )
    fill(tensor, value)


def fill(tensor: Tensor, value: object) -> None:
    """Write a number to each element of a tensor of static shape."""
    from cute_dialect.algebra.trees import is_static
    from cute_dialect.front.trace import current

    number = stored_value(value, _writable(tensor))
    if not is_static(tensor.shape_payload):
        raise LayoutError(
            "F240", f"{tensor.describe()} of shape {coord_text(tensor.shape_payload)} cannot be filled: how many "
            "elements it has is known only when the kernel runs", hint="fill a tile of it, or each element in a loop",
        )  # fmt: skip
    current().op("cute.fill", [tensor.ssa, number.ssa])


def sliced(tensor: Tensor, where: Any) -> Tensor:
    """Return the part of a tensor that a normalised coordinate leaves open."""
    from cute_dialect.front.tensors import Tensor
    from cute_dialect.front.trace import current

    if any(isinstance(leaf, slice) for leaf in leaves(where)):
        tensor = _narrow(tensor, where)
        where = _open(where)
    found = current().value("cute.slice", [tensor.ssa, coord_ssa(where)])
    return Tensor.of(found, tensor.element_type)


def part(where: Any, layout: Layout) -> tuple[Layout, int]:
    """Return the layout and the offset of what a static coordinate leaves open of a static layout."""
    from cute_dialect.algebra.evaluation import evaluate
    from cute_dialect.algebra.layout import slice_
    from cute_dialect.algebra.values import Layout

    narrow = Layout(_narrowed(layout.shape, where), layout.stride)
    return slice_(_open(where), narrow), evaluate(_start(where), layout)  # pyright: ignore[reportReturnType]


def _map(f: Any, where: Any) -> Any:
    return tuple([_map(f, w) for w in where]) if isinstance(where, tuple) else f(where)


def _open(where: Any) -> Any:
    """Return a coordinate with parts of modes as all of the mode."""
    from cute_dialect.algebra.values import UNDERSCORE

    return _map(lambda w: UNDERSCORE if isinstance(w, slice) else w, where)


def _start(where: Any) -> Any:
    """Return the first of the coordinates that a coordinate leaves open."""
    from cute_dialect.algebra.values import UNDERSCORE

    return _map(lambda w: 0 if w is UNDERSCORE else w.start if isinstance(w, slice) else w, where)


def _narrowed(shape: Any, where: Any) -> Any:
    """Return the shape in which a part of a mode is all of it."""
    if isinstance(where, tuple):
        return tuple([_narrowed(s, w) for s, w in zip(shape, where)])
    return where.stop - where.start if isinstance(where, slice) else shape


def _narrow(tensor: Tensor, where: Any) -> Tensor:
    """Return a tensor whose modes are the parts that ``a:b`` in a coordinate takes of them."""
    from cute_dialect.algebra.values import Layout
    from cute_dialect.front.layout_makers import make_layout
    from cute_dialect.front.tensors import Tensor, make_tensor
    from cute_dialect.front.trace import current

    if not isinstance(tensor.payload, Layout):
        raise LayoutError(
            "F240", f"'a:b' takes no part of a swizzled or composed layout, got {tensor.payload}",
            hint="cute.local_tile takes a tile of it",
        )  # fmt: skip
    start = _map(lambda w: w.start if isinstance(w, slice) else 0, where)
    moved = Tensor.of(current().value("cute.domain_offset", [tensor.ssa, coord_ssa(start)]), tensor.element_type)
    return make_tensor(moved.iterator, make_layout(_narrowed(moved.shape, where), moved.stride))


# ------------------------------------------------------------------------------------------------------ stored values


def stored_value(value: object, element: type[Numeric]) -> Numeric:
    """Return a number as an element of this type: floats convert, integers widen; else F234.

    >>> from cute_dialect.front.dtypes import Float16, Int64
    >>> stored_value(1.5, Float16), stored_value(3, Int64)
    (Float16(1.5), Int64(3))
    """
    from cute_dialect.front.numeric import as_number, is_number, literal

    if not is_number(value) and getattr(value, "__cute_number__", None) is None:
        raise KernelTypeError("F234", f"an element of {element!r} is written with a number, not with {_named(value)}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        number = as_number(value)
    elif element.width == 1 and value in (0, 1):
        return element(value)
    elif (isinstance(value, int) and element.width > 1) or (isinstance(value, float) and element.is_float):
        return literal(element, value)
    else:
        number = as_number(value)
    if type(number) is element:
        return number
    if _keeps_value(type(number), element):
        return element(number)
    raise KernelTypeError(
        "F234", f"{number.describe()} would lose what {element!r} cannot hold ({type(number)!r} to {element!r})",
        hint=f"convert it: .to(cute.{element!r})" if element.width > 1 else "compare it: x != 0",
    )  # fmt: skip


def _named(value: object) -> str:
    from cute_dialect.front.values import Dynamic

    return value.describe() if isinstance(value, Dynamic) else repr(value)


def _keeps_value(of: type[Numeric], to: type[Numeric]) -> bool:
    """Tell whether a store converts by itself: any float to any float, integers to what holds all of theirs."""
    if to.width == 1:
        return False
    if to.is_float:
        return True
    if of.is_float:
        return False
    if of.signed == to.signed:
        return of.width <= to.width
    return not of.signed and of.width < to.width
