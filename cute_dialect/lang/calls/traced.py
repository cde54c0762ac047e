"""Decorated functions: the Python function with its options, methods, specializations and generic parameters.

Generic parameters are compile-time constants, given in brackets or deduced from arguments::

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
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.errors import CuteError, UsageError
from cute_dialect.lang.calls.cache.keys import static_key
from cute_dialect.lang.calls.runtime_tensor import is_array, type_of_element
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import finish_error, finishes_errors
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

if TYPE_CHECKING:
    from cute_dialect.lang.calls.compiled import Compiled
    from cute_dialect.lang.calls.specializations import CacheInfo, Specializations


class Traced:
    """Base class of decorated functions: the Python function and the options of the decorator."""

    # __call__ is an instance attribute, so that Python calls generated code directly.
    __slots__ = ("__call__", "__dict__", "__weakref__", "binds", "methods")
    __call__: Callable[..., Any]

    kind = ""

    def __init__(self, function: Any, options: dict[str, Any]):
        self.function = function
        self.options = options
        self.__call__ = self._called
        self.methods = MethodCalls(self)
        """The function's calls as a method, whose first argument is the receiver."""
        self.binds = not isinstance(function, staticmethod | classmethod)
        """True if access through an instance binds that instance as the first argument."""
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            if hasattr(function, name):
                self.__dict__[name] = getattr(function, name)
        self.__dict__["__wrapped__"] = function

    @property
    def name(self) -> str:
        """The function's name in compiled code."""
        own = self.options.get("name") or getattr(self.function, "__name__", "kernel")
        prefix = self.options.get("prefix")
        return f"{prefix}_{own}" if prefix else own

    def set_name_prefix(self, prefix: str) -> None:
        """Prefix the function's name in code compiled from now on with ``prefix`` and ``_``."""
        if not prefix.isidentifier():
            raise UsageError(f"set_name_prefix: prefix must be an identifier, got {prefix!r}")
        self.options["prefix"] = prefix

    def __repr__(self) -> str:
        return f"<@cute.{self.kind} {getattr(self.function, '__qualname__', self.function)}>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if self.binds:
            return self if instance is None else BoundMethod(self, instance)
        return self if isinstance(self.function, staticmethod) else BoundMethod(self, owner)

    @finishes_errors
    def _called(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(args, kwargs)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, receiver: bool = False) -> Any:
        """Run a call that no cached call matches. ``receiver``: the first argument is the receiver of a method."""
        raise NotImplementedError

    @property
    def table(self) -> Specializations:
        """The table of compiled specializations."""
        found = self.__dict__.get("_table")
        if found is None:
            found = self.__dict__.setdefault("_table", self._new_table())
        return found

    def _new_table(self) -> Specializations:
        raise NotImplementedError

    def kinds(self) -> list[Compiled]:
        """Return the compiled specializations, least recently used first."""
        return list(self.table)

    def cache_info(self) -> CacheInfo:
        """Return the number of lookups that found a specialization (``hits``) or compiled one (``misses``), and the
        size.
        """
        return self.table.info()

    def cache_clear(self) -> None:
        """Discard the compiled specializations in memory. The compile cache on disk keeps them."""
        self.forget()
        self.table.clear()

    def forget(self) -> None:
        """Discard the cached call, so that the next call looks up its specialization again."""
        self.__dict__.pop("_recent", None)
        self.__call__ = self._called
        self.methods = MethodCalls(self)

    def recall(self, calls: Any, args: tuple[Any, ...], stream: Any, options: dict[str, Any]) -> tuple[Any, ...] | None:
        """Run a call if it is among the cached calls of a function or method, else return its arguments."""
        raise NotImplementedError


class MethodCalls:
    """The calls of a function as a method, whose first argument is the receiver. They have a fast path too."""

    # As in Traced: __call__ is an instance attribute, so that Python calls generated code directly.
    __slots__ = ("__call__", "__dict__")
    __call__: Callable[..., Any]

    def __init__(self, function: Traced):
        self.function = function
        self.__call__ = self._called

    @finishes_errors
    def _called(self, *args: Any, **kwargs: Any) -> Any:
        return self.function.call(args, kwargs, receiver=True)

    @finishes_errors
    def other(self, args: tuple[Any, ...], stream: Any, options: dict[str, Any]) -> Any:
        """Run a call that the generated fast path did not recognize."""
        left = self.function.recall(self, args, stream, options)
        if left is None:
            return None
        return self._called(*left, **(options if stream is None else {**options, "stream": stream}))


class BoundMethod:
    """A decorated method bound to its receiver, which is a compile-time constant."""

    __slots__ = ("__self__", "function")

    def __init__(self, function: Traced, receiver: object):
        self.function = function
        self.__self__ = receiver

    @property
    def __func__(self) -> Traced:
        return self.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.function.methods(self.__self__, *args, **kwargs)
        except CuteError as error:
            finish_error(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __repr__(self) -> str:
        return f"<bound {self.function!r} of {self.__self__!r}>"


class Config:
    """The sizes of a launch, as part of a specialization's key."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[tuple[str, Any], ...]):
        self.items = items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and repr(self.items) == repr(other.items)

    def __hash__(self) -> int:
        return hash(repr(self.items))


def plain(function: Any) -> Any:
    """Return the undecorated Python function."""
    while True:
        if isinstance(function, staticmethod | classmethod | Traced):
            function = function.__wrapped__
        else:
            return function


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
