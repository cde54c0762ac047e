"""Indexing of tensors: ``t[c]`` reads an element or takes a slice, ``t[c] = x`` writes."""

from __future__ import annotations

from typing import Any

from cute_dialect.algebra.arithmetic import tuple_add
from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Layout
from cute_dialect.lang.tracing.errors import KernelTypeError, LayoutError
from cute_dialect.lang.tracing.tracer import active, current
from cute_dialect.lang.values.coordinates import (
    check_access,
    check_view_later,
    coord_ssa,
    coord_text,
    described,
    emit_checks,
    has_asserts,
    has_open_mode,
    is_static_coord,
    leaves,
    map_coord,
    narrowed,
    normalised,
    with_open_modes,
)
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.dynamic import Dynamic
from cute_dialect.lang.values.int_tuples import from_ssa
from cute_dialect.lang.values.layout_makers import make_layout
from cute_dialect.lang.values.methods import method_of
from cute_dialect.lang.values.numeric import as_number, is_number, literal
from cute_dialect.lang.values.tensors import Tensor, make_tensor

__all__ = ["read", "stored_value", "write"]


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
