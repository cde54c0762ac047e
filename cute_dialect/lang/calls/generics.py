"""Generic parameters: compile-time constants given in brackets or deduced from arguments.

::

    @cute.generic("M", "T")
    @cute.kernel
    def scale(x: "cute.Tensor[T, M]"): ...            # or, since Python 3.12, def scale[M, T](x: cute.Tensor[T, M])

    scale[1024, cute.Float32](x).launch(…)            # given
    scale(x).launch(…)                                # deduced
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

from cute_dialect.errors import UsageError
from cute_dialect.lang.calls.cache.keys import static_key
from cute_dialect.lang.calls.runtime_tensor import is_array, type_of_element
from cute_dialect.lang.calls.traced import Traced, plain
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.annotations import (
    Generic,
    TensorAnnotation,
    annotations_of,
    constexpr_name,
    generic_name,
    pointer_element,
    without_none,
)
from cute_dialect.lang.values.dtypes import NumericType
from cute_dialect.runtime.arrays import view_of


class Reified(NamedTuple):
    """A function with its generic parameters set, and its annotations."""

    function: Callable[..., Any]
    annotations: dict[str, object]
    key: Hashable


def generic(*names: str, **defaults: Any) -> Callable[[Any], Any]:
    """Decorate a function with generic parameters. It is placed above ``@cute.kernel`` or ``@cute.jit``.

    Args:
        names: parameters without a default.
        defaults: parameters with a default value, ``name=value``.
    """
    for name in (*names, *defaults):
        if not name.isidentifier():
            raise UsageError(f"generic: parameter names must be identifiers, got {name!r}")

    def mark(traced: Any) -> Any:
        if not isinstance(traced, Traced):
            raise UsageError("@cute.generic must be placed above @cute.kernel or @cute.jit")
        traced.__dict__["generics"] = {**dict.fromkeys(names, _UNSET), **defaults}
        return traced

    return mark


class _Unset:
    def __repr__(self) -> str:
        return "?"


_UNSET = _Unset()


def generic_names(traced: Traced) -> dict[str, Any]:
    """Return the generic parameters of a function with their defaults."""
    found = traced.__dict__.get("generics")
    if found is None:
        function = plain(traced.function)
        found = {p.__name__: _bound(p) for p in getattr(function, "__type_params__", ())}
        traced.__dict__["generics"] = found
    return found


def _bound(parameter: Any) -> Any:
    """Return the default of a type parameter: its bound, if that is an integer or an element type."""
    bound = getattr(parameter, "__bound__", None)
    return bound if isinstance(bound, int | NumericType) else _UNSET


def applied(traced: Traced, given: Any) -> Traced:
    """Return a function with its next generic parameters set: ``f[16, cute.Float32]``."""
    values = given if isinstance(given, tuple) else (given,)
    names = generic_names(traced)
    set_already: dict[str, Any] = traced.__dict__.get("given", {})
    left = [n for n in names if n not in set_already]
    if not names:
        raise KernelTypeError("F131", f"{traced!r} has no generic parameters", hint='add @cute.generic("N")')
    if len(values) > len(left):
        raise KernelTypeError(
            "F131", f"{traced!r} has {len(left)} generic parameters ({', '.join(left)}), got {len(values)}"
        )
    made = type(traced)(traced.function, traced.options)
    made.__dict__["generics"] = names
    made.__dict__["given"] = {**set_already, **dict(zip(left, values))}
    return made


def reify(traced: Traced, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Reified:
    """Return the function with its generic parameters set.  Raises F130 if one cannot be deduced."""
    names = generic_names(traced)
    if not names:
        notes = traced.__dict__.get("_notes")
        if notes is None:
            notes = traced.__dict__["_notes"] = annotations_of(function, {})
        return Reified(function, notes, None)
    notes = annotations_of(function, {n: Generic(n) for n in names})
    values: dict[str, object] = dict(traced.__dict__.get("given", {}))
    for name, value in arguments.items():
        _deduce(notes.get(name), value, values, names, name)
    for name, default in names.items():
        if name not in values:
            if default is _UNSET:
                raise KernelTypeError(
                    "F130", f"the generic parameter '{name}' of '{traced.name}' is neither given nor deduced",
                    hint=f"{traced.name}[{', '.join(f'{n}' for n in names)}](…), or use it in an annotation",
                )  # fmt: skip
            values[name] = default
    key = tuple((n, static_key(values[n], n)) for n in names)
    resolved = {
        n: a.resolved(values) if isinstance(a, TensorAnnotation) else _with(a, values) for n, a in notes.items()
    }
    return Reified(_with_names(function, values), resolved, key)


def _with(annotation: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(annotation, TensorAnnotation):
        return annotation.resolved(values)
    name = generic_name(annotation)
    return values.get(name, annotation) if name is not None else annotation


def _deduce(annotation: object, value: Any, into: dict[str, object], names: Mapping[str, Any], label: str) -> None:
    annotation, _ = without_none(annotation)
    found: list[tuple[str, Any]] = []
    if isinstance(annotation, TensorAnnotation):
        shape: Any = getattr(value, "shape", None)
        dtype: Any = getattr(value, "element_type", None)
        if dtype is None and is_array(value):
            dtype = type_of_element(view_of(value).dtype)
        if (name := generic_name(annotation.dtype)) is not None and dtype is not None:
            found.append((name, dtype))
        for i, dim in enumerate(annotation.dims or ()):
            name = generic_name(dim)
            if name is not None and isinstance(shape, tuple) and i < len(shape):
                found.append((name, shape[i]))
    elif (name := constexpr_name(annotation)) is not None:
        found.append((name, value))
    elif (name := pointer_element(annotation)) is not None and hasattr(value, "dtype"):
        found.append((name, value.dtype))
    for name, x in found:
        if name not in names:
            continue
        if isinstance(x, int) or type(x).__name__ != "Int32":
            if name in into and into[name] != x:
                raise KernelTypeError(
                    "F132", f"the generic parameter '{name}' is {into[name]!r}, but argument '{label}' gives {x!r}"
                )
            into[name] = x


def _with_names(function: Any, values: Mapping[str, Any]) -> Any:
    """Return the function with generic parameters bound: type parameters as closure cells, others as globals."""
    code = function.__code__
    cells: list[Any] = list(function.__closure__ or ())
    for i, name in enumerate(code.co_freevars):
        if name in values and isinstance(_content(cells[i]), typing.TypeVar):
            cells[i] = types.CellType(values[name])
    space = function.__globals__
    if set(values) - set(code.co_freevars):
        space = {**space, **values}
    made = types.FunctionType(code, space, function.__name__, function.__defaults__, tuple(cells) or None)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__dict__.update(function.__dict__)
    return made


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # The cell is still empty.
        return None
