"""Indexing of tensors: ``t[c]`` reads an element or takes a slice, ``t[c] = x`` writes; coordinates and their checks.

A coordinate is an integer (a linear index, first mode fastest) or a tuple of coordinates nested like the shape or less.
``None`` and ``:`` select a whole mode, ``...`` all unnamed modes.  ``a:b`` with static bounds selects part of a static
mode.
"""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.algebra.arithmetic import tuple_add
from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.evaluation import size as size_of
from cute_dialect.algebra.slicing import slice_
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import UNDERSCORE, Layout
from cute_dialect.errors import no_such
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError, StaticError
from cute_dialect.lang.tracing.tracer import active, current
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.dynamic import Dynamic, method_of
from cute_dialect.lang.values.folding import facts_of, literal
from cute_dialect.lang.values.int_tuples import Tree, from_ssa
from cute_dialect.lang.values.layouts import make_layout
from cute_dialect.lang.values.numeric import as_number, binary, compare, is_number
from cute_dialect.lang.values.tensors import Tensor, make_tensor
from cute_dialect.lang.values.tuple_arithmetic import product

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.tracing.tracer import Tracer
    from cute_dialect.lang.values.tensors import Tensor

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
    """Name a tensor for a bounds error, with its shape if that is static: the error states the extent of the index."""
    shape = coord_text(tensor.shape_payload)
    return tensor.describe() if "?" in shape else f"{tensor.describe()} of shape {shape}"


def emit_checks(tracer: Tracer, where: Any, shape: Any, text: str, *, only_static: bool = False) -> None:
    """Emit assertions that the dynamic integers of a coordinate are within a shape.

    ``only_static``: check modes of static extent only.
    """

    def check(c: Any, mode: Any, path: tuple[int, ...]) -> None:
        if isinstance(c, tuple):
            for i, (part, of) in enumerate(zip(c, mode)):
                check(part, of, (*path, i))
        elif isinstance(c, Numeric):
            extent = product(mode)
            if only_static and not as_number(extent).is_static:
                return
            in_mode = f" in mode {path[0] if len(path) == 1 else path}" if path else ""
            _emit_check(tracer, c, extent, f"out-of-bounds {text}{in_mode}")

    check(where, shape, ())


def _emit_check(tracer: Tracer, index: Numeric, extent: object, message: str) -> None:
    """Emit the assertion that 0 <= index < extent, unless it is known to hold."""
    from xdsl.dialects.builtin import StringAttr

    known, end = facts_of(index), as_number(extent)
    natural = known.low is not None and known.low >= 0
    if natural and known.high is not None and end.is_static and known.high < end.value:
        return
    inside: Any = compare("lt", index, extent)
    if not natural:
        inside = binary("and", compare("ge", index, 0), inside)
    tracer.op("cf.assert", [inside.ssa], (), {"msg": StringAttr(message)})


def check_number(call: str, what: str, number: object, count: object) -> None:
    """Check the number of a rank or slot: now if it and the count are static, else by an assertion.

    A GPU prints ``cute.peer: no such rank``.  The interpreter adds the number and those that exist.

    Args:
        call: the function, for messages, such as "cute.peer".
        what: the numbered thing, such as "rank".
        number: an integer, static or dynamic.
        count: the number of such things, static or dynamic.

    Raises F122 for a static number that is negative or not less than a static count.
    """
    index, end = as_number(number), as_number(count)
    if index.is_static and (index.value < 0 or (end.is_static and index.value >= end.value)):
        raise KernelTypeError(
            "F122", f"{call}: {no_such(what, int(index.value), end.value if end.is_static else None)}"
        )
    tracer = active()
    if tracer is not None and has_asserts() and not (index.is_static and end.is_static):
        _emit_check(tracer, index, end, f"{call}: no such {what}")


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


def check_thread(part: object, tensor: object, thread: object, threads: int, owner: str) -> None:
    """Check the thread index of a thread's part of a tensor, as :func:`check_part` does.

    Args:
        part: the thread's part.
        tensor: the tensor that is divided.
        thread: the thread index.
        threads: the number of threads.
        owner: the division among threads, for messages, such as "a tiled copy of CopyUniversalOp".

    Raises F242 for a static index past the threads.
    """
    if is_number(thread):
        index = as_number(thread)
        if index.is_static and not 0 <= int(index.value) < threads:
            has = "1 thread; use get_slice(0)" if threads == 1 else f"{threads} threads; use 0 to {threads - 1}"
            raise LayoutError("F242", f"get_slice({int(index.value)}): {owner} has {has}")
    check_part(part, tensor, thread, threads, lambda: threads, "threads' parts")


def has_asserts() -> bool:
    tracer = active()
    return tracer is not None and bool(tracer.state.get("asserts"))


# ----------------------------------------------------------------------------------------------------- reads and writes


def read(tensor: Tensor, coord: object) -> Any:
    """Return the element at a coordinate, or the slice that it selects."""
    where = normalised(coord, tensor.shape_payload)
    _assert_inside(tensor, where, "slice" if has_open_mode(where) else "read")
    if has_open_mode(where):
        view = sliced(tensor, where)
        # Modes of static extent are checked above.
        if has_asserts() and not is_static_coord(where) and not is_static(tensor.shape_payload):
            check_view_later(view, tensor, where, tensor.shape, f"a slice of {described(tensor)}")
        return view

    if tensor.is_static and is_static_coord(where):
        return tuple_add(tensor.iterator, evaluate(where, tensor.payload))
    _whole_bytes(tensor, "read")
    element = current().value("cute.memref.load", [tensor.ssa, coord_ssa(where)])
    return tensor.element_type.of(element) if tensor.element_type is not None else from_ssa(element)


def write(tensor: Tensor, coord: object, value: object) -> None:
    """Write an element, or all elements that a coordinate selects."""
    element = _writable(tensor)
    where = normalised(coord, tensor.shape_payload)
    _assert_inside(tensor, where, "write")
    if has_open_mode(where):
        fill_or_store(sliced(tensor, where), value)
        return

    _whole_bytes(tensor, "written")
    current().op("cute.memref.store", [tensor.ssa, coord_ssa(where), stored_value(value, element).ssa])


def _assert_inside(tensor: Tensor, where: Any, access: str) -> None:
    """Emit bounds assertions for the dynamic integers of a coordinate, if asserts are enabled.

    A GPU prints the message alone.  The interpreter knows it by its first word, and appends the index and the bounds.

    A slice reads nothing, and kernels form slices of the next tile before they know that it exists.  So a slice past
    the end of a dynamic mode is checked only where its elements are accessed.  A coordinate tensor is not checked,
    because it has no memory and its coordinates may continue past its shape.
    """
    tracer = active()
    if tracer is None or not tracer.state.get("asserts") or tensor.element_type is None:
        return
    if not has_open_mode(where):
        check_access(tensor, access)
    if is_static_coord(where):
        return
    only_static = has_open_mode(where)
    emit_checks(tracer, where, tensor.shape, f"{access} of {described(tensor)}", only_static=only_static)


def _whole_bytes(tensor: Tensor, what: str) -> None:
    """Raise F264 for access to a single element of less than a byte: a store would overwrite its neighbor."""
    element = tensor.element_type
    if element is not None and 1 < element.width < 8 and not tensor.is_per_thread:
        raise KernelTypeError(
            "F264", f"a single element of {element!r} is part of a byte and cannot be {what} alone",
            hint="use t.load() and t.store(v) for vectors, or cute.recast_tensor(t, cute.Uint8) for the bytes",
        )  # fmt: skip


def _writable(tensor: Tensor) -> type[Numeric]:
    if tensor.element_type is None:
        raise KernelTypeError("F260", "a coordinate tensor has no memory and cannot be written")
    return tensor.element_type


def fill_or_store(tensor: Tensor, value: object) -> None:
    """Write a vector to a tensor, or a number to each of its elements."""
    store = getattr(value, "__cute_store__", None)
    if store is not None:
        store(tensor)
        return
    if isinstance(value, Tensor):
        raise KernelTypeError(
            "F235",
            "a tensor cannot be assigned from another tensor; assign a vector or a number",
            hint="assign other.load()",
        )
    fill(tensor, value)


@method_of(Tensor, "_fill")
def fill(tensor: Tensor, value: object) -> None:
    """Write a number to each element of a tensor of static shape."""
    number = stored_value(value, _writable(tensor))
    if not is_static(tensor.shape_payload):
        raise LayoutError(
            "F240", f"{tensor.describe()} of shape {coord_text(tensor.shape_payload)} cannot be filled because its "
            "number of elements is known only at run time", hint="fill a tile of it, or assign the elements in a loop",
        )  # fmt: skip
    check_access(tensor, "write")
    current().op("cute.fill", [tensor.ssa, number.ssa])


def sliced(tensor: Tensor, where: Any) -> Tensor:
    """Return the part of a tensor that a normalized coordinate selects."""
    if any(isinstance(leaf, slice) for leaf in leaves(where)):
        tensor = _narrow(tensor, where)
        where = with_open_modes(where)
    found = current().value("cute.slice", [tensor.ssa, coord_ssa(where)])
    return Tensor.of(found, tensor.element_type)


def _narrow(tensor: Tensor, where: Any) -> Tensor:
    """Return a tensor narrowed to the slices ``a:b`` of a coordinate."""
    if not isinstance(tensor.payload, Layout):
        raise LayoutError(
            "F240", f"'a:b' is not supported on a swizzled or composed layout, got {tensor.payload}",
            hint="use cute.local_tile for a tile",
        )  # fmt: skip
    start = map_coord(lambda w: w.start if isinstance(w, slice) else 0, where)
    moved = Tensor.of(current().value("cute.domain_offset", [tensor.ssa, coord_ssa(start)]), tensor.element_type)
    return make_tensor(moved.iterator, make_layout(narrowed(moved.shape, where), moved.stride))


# ------------------------------------------------------------------------------------------------------ stored values


def stored_value(value: object, element: type[Numeric]) -> Numeric:
    """Return a number converted for storage: floats convert, integers widen.  Raises F234 for lossy conversions.

    >>> from cute_dialect.lang.values.dtypes import Float16, Int64
    >>> stored_value(1.5, Float16), stored_value(3, Int64)
    (Float16(1.5), Int64(3))
    """
    if not is_number(value) and getattr(value, "__cute_number__", None) is None:
        raise KernelTypeError("F234", f"an element of type {element!r} must be assigned a number, got {_named(value)}")
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
        "F234", f"{number.describe()} cannot be stored without loss ({type(number)!r} to {element!r})",
        hint=f"convert it: .to(cute.{element!r})" if element.width > 1 else "compare it: x != 0",
    )  # fmt: skip


def _named(value: object) -> str:
    return value.describe() if isinstance(value, Dynamic) else repr(value)


def _keeps_value(of: type[Numeric], to: type[Numeric]) -> bool:
    """Return True if a store converts implicitly: any float to any float, integers to types that hold them."""
    if to.width == 1:
        return False
    if to.is_float:
        return True
    if of.is_float:
        return False
    if of.signed == to.signed:
        return of.width <= to.width
    return not of.signed and of.width < to.width


# -------------------------------------------------------------------------------------------------- methods of tensors


@method_of(Tensor)
def __getitem__(self: Tensor, coord: object) -> Any:
    return read(self, coord)


@method_of(Tensor)
def __setitem__(self: Tensor, coord: object, value: object) -> None:
    write(self, coord, value)
