"""Arguments of a call, split into a static *spec* and the leaves passed at each call.

The spec of an argument is part of the specialization's key.  At a call it takes the value apart into leaves (arrays and
numbers), one per parameter of the host function.  During tracing it rebuilds the value from those parameters.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Hashable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.lang.calls import runtime_tensor
from cute_dialect.lang.calls.cache.keys import static_key
from cute_dialect.lang.calls.runtime_tensor import (
    FakeStream,
    RuntimePointer,
    RuntimeTensor,
    element_bytes,
    is_array,
    raw_type,
    type_of_element,
)
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import active
from cute_dialect.lang.values.annotations import (
    Stream,
    TensorAnnotation,
    _Subscripted,
    is_constexpr,
    is_int_tuple,
    is_number_type,
    without_none,
)
from cute_dialect.lang.values.dtypes import Boolean, Float32, Int32, Int64, Numeric, NumericType, Uint64
from cute_dialect.lang.values.pointers import Pointer, pointer_to
from cute_dialect.lang.values.tensors import Tensor
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, view_of
from cute_dialect.runtime.launch_plan import DtypeError, RangeError, ShapeError

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.calls.runtime_tensor import SymInt
    from cute_dialect.lang.values.pointers import Pointer
    from cute_dialect.lang.values.signature_types import Int


class Spec:
    """The static part of an argument. Calls with equal specs share a specialization."""

    __slots__ = ("direct", "key")
    key: Hashable
    """Distinguishes specs of the same class."""
    direct: bool
    """True if the value is its own only leaf."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.key == other.key  # pyright: ignore[reportAttributeAccessIssue]

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return str(self.key)

    def parameters(self, name: str) -> list[tuple[str, str]]:
        """Return the (name, type) pairs of the host function's parameters for this argument."""
        return []

    def leaves(self, value: Any, into: list[object], name: str) -> None:
        """Append the leaves of ``value`` to ``into``.  Raises LaunchError if it does not match the spec."""

    def make(self, values: Iterator[SSAValue]) -> object:
        """Return the argument for the traced function, taking its leaves from the parameters in ``values``."""
        raise NotImplementedError


class StaticSpec(Spec):
    """An argument that is a compile-time constant."""

    __slots__ = ("value",)

    def __init__(self, value: object, key: Hashable):
        self.value = value
        self.key = key
        self.direct = False

    def __repr__(self) -> str:
        return repr(self.value)

    def is_the(self, value: object, name: str = "") -> bool:
        """Return True if ``value`` equals the constant.  Raises F121 if it cannot be a constant."""
        if isinstance(self.value, bool) and type(value).__module__ == "numpy" and hasattr(value, "item"):
            value = value.item()  # A numpy bool counts as a Python bool.
        return value is self.value or static_key(value, name) == self.key

    def leaves(self, value: Any, into: list[object], name: str) -> None:
        if not self.is_the(value, name):
            raise ShapeError(f"argument {name} was compiled as the constant {self.value!r}, got {value!r}")

    def make(self, values: Iterator[SSAValue]) -> object:
        return self.value


class NumberSpec(Spec):
    """A number passed at each call."""

    __slots__ = ("kind",)

    def __init__(self, kind: NumericType):
        self.kind = kind
        self.key = kind
        self.direct = kind.signed or not kind.is_integer or kind is Boolean

    def __repr__(self) -> str:
        return repr(self.kind)

    def parameters(self, name: str) -> list[tuple[str, str]]:
        return [(name, self.kind.mlir_type)]

    def leaves(self, value: Any, into: list[object], name: str) -> None:
        if isinstance(value, Numeric):
            value = value.value
        elif not isinstance(value, int | float):
            value = _item(value, self.kind, name)
        if isinstance(value, float) and self.kind.is_integer:
            raise DtypeError(f"argument {name} is {self.kind!r} and needs an integer, got {value!r}")
        if not self.direct:
            width = self.kind.width
            if not 0 <= value < 1 << width:
                raise RangeError(f"argument {name}: {value} is out of range for {self.kind!r}")
            value = int(value)
            value -= (value >> (width - 1)) << width
        into.append(value)

    def make(self, values: Iterator[SSAValue]) -> object:
        return self.kind.of(next(values))  # pyright: ignore[reportAttributeAccessIssue]


def _item(value: Any, kind: NumericType, name: str) -> Any:
    item = getattr(value, "item", None)
    if item is None:
        raise DtypeError(f"argument {name} is {kind!r} and needs a number, got {type(value).__name__}")
    try:
        return item()
    except (ValueError, TypeError, RuntimeError):
        raise DtypeError(
            f"argument {name} is {kind!r} and needs one number, got {type(value).__name__} with several"
        ) from None


class ArraySpec(Spec):
    """An array with a given memref type. ``dtype`` adds the signedness, which the MLIR type lacks."""

    __slots__ = ("dtype", "symbols", "type", "wrapped")

    def __init__(
        self, type: str, dtype: NumericType, symbols: Sequence[tuple[int, bool, SymInt | str]] = (), *,
        wrapped: bool = False,
    ):  # fmt: skip
        self.type = type
        self.dtype = dtype
        self.symbols = tuple(symbols)
        self.wrapped = wrapped
        self.direct = not wrapped
        self.key = (type, dtype, self.symbols)

    def __repr__(self) -> str:
        return self.type

    def parameters(self, name: str) -> list[tuple[str, str]]:
        return [(name, self.type)]

    def leaves(self, value: Any, into: list[object], name: str) -> None:
        if isinstance(value, ArrayView):
            into.append(value)
            return
        view = getattr(value, "view", None)
        if isinstance(view, ArrayView):
            own = view.dtype.removeprefix("u") == self.dtype.mlir_type and not getattr(value, "seen_as", False)
            into.append(value.array if own else view)
        elif type(value).__name__ == "RuntimeTensor":
            raise DtypeError(f"argument {name} is a tensor without memory, which only cute.compile accepts")
        else:
            into.append(value)

    def make(self, values: Iterator[SSAValue]) -> object:
        return Tensor.of(next(values), self.dtype)  # pyright: ignore[reportArgumentType]


class PointerSpec(Spec):
    """A pointer, passed as an address."""

    __slots__ = ("dtype", "type")

    def __init__(self, type: str, dtype: NumericType):
        self.type = type
        self.dtype = dtype
        self.key = (type, dtype)
        self.direct = False

    def parameters(self, name: str) -> list[tuple[str, str]]:
        return [(name, self.type)]

    def leaves(self, value: Any, into: list[object], name: str) -> None:
        address = getattr(value, "address", value)
        into.append(getattr(address, "array", address))  # The interpreter needs the array to which the address belongs.

    def make(self, values: Iterator[SSAValue]) -> object:
        return Pointer.of(next(values), self.dtype)  # pyright: ignore[reportArgumentType]


class StreamToken:
    """Placeholder in a trace for the stream of the call."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<the call's stream>"


STREAM = StreamToken()


class StreamSpec(Spec):
    """A stream. It is neither part of the key nor a parameter."""

    __slots__ = ()

    def __init__(self) -> None:
        self.key = "stream"
        self.direct = False

    def make(self, values: Iterator[SSAValue]) -> object:
        return STREAM


class TreeSpec(Spec):
    """A container: its class, the names of its parts, and their specs."""

    __slots__ = ("kind", "names", "parts")

    def __init__(self, kind: Container, names: tuple[Any, ...], parts: Sequence[Spec]):
        self.kind = kind
        self.names = names
        self.parts = tuple(parts)
        self.key = (kind, names, self.parts)
        self.direct = False

    def __repr__(self) -> str:
        return f"{self.kind.type.__name__}({', '.join(map(repr, self.parts))})"

    def parameters(self, name: str) -> list[tuple[str, str]]:
        return [p for n, part in zip(self.names, self.parts) for p in part.parameters(f"{name}.{n}")]

    def leaves(self, value: Any, into: list[object], name: str) -> None:
        names, parts = self.kind.take(value)
        if type(value) is not self.kind.type or names != self.names:
            raise ShapeError(f"argument {name} must be {self!r}, got {type(value).__name__} of {len(names)}")
        for n, spec, part in zip(names, self.parts, parts):
            spec.leaves(part, into, f"{name}.{n}")

    def make(self, values: Iterator[SSAValue]) -> object:
        return self.kind.make(self.names, [p.make(values) for p in self.parts])


class Container:
    """Flattening and rebuilding of values of one container class."""

    __slots__ = ("static", "type")

    def __init__(self, type: type, static: Any = None):
        self.type = type
        self.static = static

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Container) and self.type is other.type and self.static == other.static

    def __hash__(self) -> int:
        return hash(self.type)

    def take(self, value: Any) -> tuple[tuple[Any, ...], list[Any]]:
        """Return the names of the parts, and the parts."""
        flatten = getattr(self.type, "__cute_flatten__", None)
        if flatten is not None:
            leaves, _ = flatten(value)
            return tuple(range(len(leaves))), list(leaves)
        if isinstance(value, dict):
            return tuple(value), list(value.values())
        if isinstance(value, tuple | list):
            return getattr(value, "_fields", None) or tuple(range(len(value))), list(value)
        fields = dict(vars(value))
        return tuple(fields), list(fields.values())

    def make(self, names: tuple[Any, ...], parts: list[Any]) -> Any:
        """Return a container with these parts."""
        unflatten = getattr(self.type, "__cute_unflatten__", None)
        if unflatten is not None:
            return unflatten(self.static.value, parts)
        if issubclass(self.type, dict):
            return self.type(zip(names, parts))
        if issubclass(self.type, tuple):
            return self.type(*parts) if hasattr(self.type, "_fields") else self.type(parts)
        if issubclass(self.type, list):
            return self.type(parts)
        made: Any = cast(Any, self.type).__new__(self.type)
        for name, part in zip(names, parts):
            object.__setattr__(made, name, part)
        return made


def unpack(specs: Mapping[str, Spec], values: Mapping[str, object]) -> list[object]:
    """Return the leaves passed to the host function."""
    found: list[object] = []
    for name, spec in specs.items():
        spec.leaves(values[name], found, name)
    return found


def named(specs: Mapping[str, Spec]) -> list[tuple[str, str]]:
    """Return the (name, type) pairs of the host function's parameters."""
    return [p for name, spec in specs.items() for p in spec.parameters(name)]


def rebuild(specs: Mapping[str, Spec], values: Sequence[Any]) -> dict[str, object]:
    """Return the arguments for the traced function, by name."""
    left = iter(values)
    return {name: spec.make(left) for name, spec in specs.items()}


def symbol_places(specs: Mapping[str, Spec]) -> list[tuple[SymInt | str, list[str]]]:
    """Return the symbols used more than once, with their uses: ``1.shape[0]`` is extent 0 of parameter 1."""
    places: dict[Any, list[str]] = {}
    at = 0

    def walk(spec: Spec) -> None:
        nonlocal at
        if isinstance(spec, TreeSpec):
            for part in spec.parts:
                walk(part)
            return
        if isinstance(spec, ArraySpec):
            for mode, is_stride, symbol in spec.symbols:
                places.setdefault(symbol, []).append(f"{at}.{'stride' if is_stride else 'shape'}[{mode}]")
        at += len(spec.parameters("_"))

    for spec in specs.values():
        walk(spec)
    return [(symbol, found) for symbol, found in places.items() if len(found) > 1]


def make_ptr(dtype: type[Numeric], value: Int, mem_space: str = "gmem", *, assumed_align: int | None = None) -> Pointer:
    """Return the pointer with an address.

    Outside a trace it returns an argument for one (``cute.runtime.make_ptr``).

    Args:
        dtype: the element type.
        value: the address, an integer; in a kernel it may be a run-time value, such as an element of an array of
            pointers.
        mem_space: the memory space.
        assumed_align: the alignment in bytes; by default that of the element.
    """
    if active() is not None:
        return pointer_to(dtype, value, mem_space, assumed_align)
    made: Any = runtime_tensor.make_ptr(dtype, value, mem_space, assumed_align=assumed_align)
    return made


# ------------------------------------------------------------------------------------------------------ specs of values


def spec_of(value: Any, annotation: object, label: str) -> Spec:
    """Return the spec of an argument.  Raises F12x if it cannot be passed.

    >>> spec_of(3, None, "n"), spec_of(3, Int64, "n"), spec_of("fast", None, "mode")
    (Int32, Int64, 'fast')
    """
    optional = True
    if annotation is not None:  # Most parameters have no annotation.
        annotation, optional = without_none(annotation)
        optional = optional or not _wants_value(annotation)
    if value is None and optional:
        return StaticSpec(None, static_key(None))
    found = None if annotation is None else _by_annotation(value, annotation, label)
    return _by_value(value, label) if found is None else found


def _wants_value(annotation: object) -> bool:
    return is_number_type(annotation) or isinstance(annotation, TensorAnnotation)


def _by_annotation(value: Any, annotation: Any, label: str) -> Spec | None:
    if is_constexpr(annotation):
        return StaticSpec(value, static_key(value, label))
    if is_number_type(annotation):
        return _number(value, annotation, label)
    if isinstance(annotation, TensorAnnotation):
        return _annotated_tensor(value, annotation, label)
    if annotation is Stream:
        return StreamSpec()
    if _is_called(annotation, "Tensor") and _is_of_numbers(value):
        raise KernelTypeError(
            "F122",
            f"argument '{label}' must be an array, got {_what(value)}",
            hint="convert it with numpy.asarray(…, dtype=…)",
        )
    for kind, where in _OF_RANKS:
        if _is_called(annotation, kind) and type(value) is not annotation:
            raise KernelTypeError(
                "F122", f"argument '{label}' must be a cute.{kind}, got {_what(value)}", hint=f"pass {where}.on(rank)"
            )
    if is_int_tuple(annotation) and isinstance(value, tuple | list | int):
        return _int_tuple(value, label)
    pointer = annotation.args[0] if isinstance(annotation, _Subscripted) else None
    if _is_pointer(annotation) and not isinstance(value, RuntimePointer):
        return _pointer(value, pointer, label)
    return None


_OF_RANKS = (("Symmetric", "world.symmetric(shape, dtype)"), ("Signals", "world.signals(slots)"))
"""Annotations of arguments of several GPUs, and how to make a value for them on the CPU."""


def _is_pointer(annotation: object) -> bool:
    return _is_called(annotation.origin if isinstance(annotation, _Subscripted) else annotation, "Pointer")


def _is_called(annotation: object, name: str) -> bool:
    """Return True for the annotation class ``name`` of this package."""
    ours = isinstance(annotation, type) and annotation.__module__.startswith("cute_dialect.")
    return ours and annotation.__name__ == name


def _is_of_numbers(value: object) -> bool:
    """Return True for text, a Python number, or a list of these."""
    if isinstance(value, list):
        return all(map(_is_of_numbers, value))
    return isinstance(value, int | float | str)


def _number(value: Any, kind: NumericType, label: str) -> Spec:
    if value is kind or isinstance(value, int | float | Numeric) or hasattr(value, "item"):
        return NumberSpec(kind)
    if isinstance(value, NumericType):
        raise KernelTypeError("F123", f"argument '{label}' is annotated {kind!r} but compiled as {value!r}")
    raise KernelTypeError("F123", f"argument '{label}' is {kind!r} and needs a number, got {_what(value)}")


def _what(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 40 else text[:37] + '…'}"


def _int_tuple(value: Any, label: str) -> Spec:
    """Return the spec of an integer tree. Python integers are constants, Int32 leaves are parameters."""
    if isinstance(value, tuple | list):
        return _tree(value, [_int_tuple(x, f"{label}[{i}]") for i, x in enumerate(value)])
    if isinstance(value, Numeric):
        return NumberSpec(type(value))
    return StaticSpec(value, static_key(value, label))


def _tree(value: Any, parts: list[Spec]) -> Spec:
    container = Container(type(value))
    return TreeSpec(container, container.take(value)[0], parts)


def _pointer(value: Any, dtype: object, label: str) -> Spec:
    if isinstance(value, NumericType):
        return PointerSpec(f"!cute.ptr<{value.mlir_type}, gmem>", value)
    kind = dtype if isinstance(dtype, NumericType) else None
    if is_array(value):
        kind = kind or type_of_element(_view(value, label).dtype)
    elif not isinstance(value, int) and type(value).__name__ != "CUdeviceptr":
        raise KernelTypeError("F128", f"argument '{label}' must be a pointer, got {_what(value)}")
    if kind is None:
        raise KernelTypeError(
            "F128", f"argument '{label}' is an address without an element type",
            hint="annotate it cute.Pointer[cute.Float32], or pass cute.runtime.make_ptr(dtype, address)",
        )  # fmt: skip
    return PointerSpec(f"!cute.ptr<{kind.mlir_type}, gmem>", kind)


def _view(value: Any, label: str) -> ArrayView:
    try:
        return view_of(value)
    except NotAnArray as e:
        raise KernelTypeError("F122", f"argument '{label}': {e}") from None


def _raw(value: Any, label: str) -> Spec:
    view = _view(value, label)
    return ArraySpec(raw_type(view), type_of_element(view.dtype))


def _annotated_tensor(value: Any, annotation: TensorAnnotation, label: str) -> Spec:
    if isinstance(value, RuntimeTensor):
        spec: Any = ArraySpec(value.type, value.dtype, value.symbols, wrapped=True)
    elif is_array(value):
        spec = _raw(value, label)
    elif isinstance(value, TensorAnnotation) and value is not annotation:
        spec = _spec_of_annotation(value, label)
    else:
        raise KernelTypeError("F122", f"argument '{label}' must be an array for {annotation!r}, got {_what(value)}")
    dtype: Any = annotation.dtype
    if isinstance(dtype, NumericType):
        if dtype is not spec.dtype and dtype.mlir_type not in (spec.dtype.mlir_type, "tf32"):
            raise KernelTypeError(
                "F129", f"argument '{label}' needs elements of {dtype!r}, got {spec.dtype!r}",
                hint=f"pass {label}.to(…)" if type(value).__module__.startswith("torch") else f"pass {label}.astype(…)",
            )  # fmt: skip
        spec.dtype = dtype
    if annotation.layout is not None:
        spec.type = _layout_type(annotation, spec)
    elif annotation.dims is not None:
        spec = _with_dims(spec, annotation.dims, label, value)
    spec.type = spec.type.replace(f"<{_element(spec.type)},", f"<{spec.dtype.mlir_type},", 1)
    spec.key = (spec.type, spec.dtype, spec.symbols)
    return spec


def _element(type: str) -> str:
    return type[type.index("<") + 1 : type.index(",")]


def _layout_type(annotation: TensorAnnotation, spec: ArraySpec) -> str:
    kind = spec.dtype
    align = annotation.alignment or element_bytes(kind.mlir_type)
    given = f"align<{align}>, " if align > element_bytes(kind.mlir_type) else ""
    return f'!cute.memref<{kind.mlir_type}, gmem, {given}"{annotation.layout}">'


def _with_dims(spec: ArraySpec, dims: tuple[Any, ...], label: str, value: Any) -> ArraySpec:
    head, _, layout = spec.type.partition('"')
    shape, _, stride = layout.removesuffix('">').partition("):(")
    extents = _split(shape.removeprefix("("))
    if len(extents) != len(dims):
        raise KernelTypeError("F129", f"argument '{label}' must have rank {len(dims)}, got rank {len(extents)}")
    symbols: list[tuple[int, bool, Any]] = list(spec.symbols)
    numbers = tuple(getattr(value, "shape", ()))
    for i, dim in enumerate(dims):
        name, div = dim if isinstance(dim, tuple) else (dim, 1)
        if isinstance(name, int):
            if isinstance(numbers[i], int) and numbers[i] != name:
                raise KernelTypeError(
                    "F129", f"argument '{label}', mode {i}: the extent must be {name}, got {numbers[i]}"
                )
            extents[i] = str(name)
        elif isinstance(name, str):
            symbols.append((i, False, str(name)))
            if div > 1 and extents[i].startswith("?"):
                extents[i] = f"?{{i64 div={div}}}" if "i64" in extents[i] else f"?{{div={div}}}"
    made = f'{head}"({",".join(extents)}):({stride}">'
    return ArraySpec(made, spec.dtype, symbols, wrapped=spec.wrapped)


def _split(text: str) -> list[str]:
    return text.split(",") if text else []


# ----------------------------------------------------------------------------------------------------------- by value


def _by_value(value: Any, label: str) -> Spec:
    if is_array(value):
        if _is_numpy_number(value):
            return _by_value(value.item(), label)
        return _raw(value, label)
    if isinstance(value, RuntimeTensor):
        return ArraySpec(value.type, value.dtype, value.symbols, wrapped=True)
    if isinstance(value, RuntimePointer):
        return PointerSpec(value.type, value.dtype)
    if isinstance(value, TensorAnnotation):
        return _spec_of_annotation(value, label)
    if isinstance(value, Numeric):
        return NumberSpec(type(value))
    if isinstance(value, bool | Enum | str | type) or value is None:
        return StaticSpec(value, static_key(value, label))
    if isinstance(value, int):
        return NumberSpec(Int32 if -(1 << 31) <= value < 1 << 31 else Int64 if value < 1 << 63 else Uint64)
    if isinstance(value, float):
        return NumberSpec(Float32)
    if _is_stream(value):
        return StreamSpec()
    if _is_numpy_number(value):
        return _by_value(value.item(), label)
    return _container(value, label) or StaticSpec(value, static_key(value, label))


def _spec_of_annotation(annotation: TensorAnnotation, label: str) -> Spec:
    if annotation.layout is None or not isinstance(annotation.dtype, NumericType):
        raise KernelTypeError("F122", f"argument '{label}': {annotation!r} needs an element type and a layout")
    blank = ArraySpec("", annotation.dtype)
    return ArraySpec(_layout_type(annotation, blank), annotation.dtype)


def _is_numpy_number(value: Any) -> bool:
    return type(value).__module__ == "numpy" and not hasattr(value, "__dlpack__") and hasattr(value, "item")


def _is_stream(value: Any) -> bool:
    if isinstance(value, FakeStream | Stream):
        return True
    kind = type(value)
    return kind.__name__ in ("CUstream", "ExternalStream") or (
        kind.__name__ == "Stream"
        and any(hasattr(value, n) for n in ("cuda_stream", "ptr", "handle", "__cuda_stream__"))
    )


def _container(value: Any, label: str) -> Spec | None:
    """Return the spec of a container, or None if it holds nothing to pass."""
    kind = type(value)
    flatten = getattr(kind, "__cute_flatten__", None)
    if flatten is not None:
        leaves, static = flatten(value)
        specs = [spec_of(x, None, f"{label}[{i}]") for i, x in enumerate(leaves)]
        return TreeSpec(Container(kind, _Static(static, static_key(static, label))), tuple(range(len(leaves))), specs)
    if isinstance(value, tuple | list | dict):
        items = value.items() if isinstance(value, dict) else zip(Container(kind).take(value)[0], value)
        notes = getattr(kind, "__annotations__", {}) if isinstance(value, tuple) else {}
        return _tree(value, [spec_of(x, _annotation(notes.get(n), kind), _at(label, n)) for n, x in items])
    if isinstance(value, types.SimpleNamespace):
        return _tree(value, [spec_of(x, None, f"{label}.{n}") for n, x in vars(value).items()])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        frozen = kind.__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]
        if frozen and not _holds_leaves(value):
            return None
        notes = {f.name: _annotation(f.type, kind) for f in dataclasses.fields(value)}
        fields = vars(value)
        return _tree(value, [_field(x, notes.get(n), f"{label}.{n}", frozen) for n, x in fields.items()])
    if _is_instance(value) and _holds_leaves(value, arrays=False):
        if label.count(".") > _DEEPEST:
            raise KernelTypeError(
                "F121", f"argument '{label[:60]}…' contains itself and holds arrays; pass the arrays directly"
            )
        return _tree(value, [_attribute(x, f"{label}.{n}") for n, x in vars(value).items()])
    return None


def _field(value: Any, annotation: object, label: str, frozen: bool) -> Spec:
    if frozen and isinstance(value, int | float) and not is_number_type(annotation):
        return StaticSpec(value, static_key(value, label))
    return spec_of(value, annotation, label)


def _attribute(value: Any, label: str) -> Spec:
    """Return the spec of an attribute of a user-defined object: a constant, unless it holds arrays or typed numbers."""
    if _holds_leaves(value, arrays=False) or _is_stream(value):
        return spec_of(value, None, label)
    return StaticSpec(value, static_key(value, label))


class _Static:
    """The static part of an object with ``__cute_flatten__``, compared by its key."""

    __slots__ = ("key", "value")

    def __init__(self, value: object, key: object):
        self.value = value
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _at(label: str, name: object) -> str:
    return f"{label}.{name}" if isinstance(name, str) else f"{label}[{name}]"


def _annotation(given: object, kind: type) -> object:
    if not isinstance(given, str):
        return given
    import sys

    try:
        return eval(given, dict(vars(sys.modules[kind.__module__])))
    except Exception:  # Evaluating user-defined names may raise anything.
        return None


_DEEPEST = 40
_OTHERS = ("torch", "numpy", "cupy", "jax", "builtins", "types", "functools", "cute_dialect")


def _is_instance(value: Any) -> bool:
    """Return True for an instance of a user-defined class."""
    return (
        hasattr(value, "__dict__")
        and not isinstance(value, type | types.ModuleType | Enum)
        and type(value).__module__.partition(".")[0] not in _OTHERS
    )


def _holds_leaves(value: Any, seen: set[int] | None = None, *, arrays: bool = True) -> bool:
    """Return True if an instance holds tensors, typed numbers or pointers, at any depth.

    ``arrays``: raw arrays of other libraries count too.
    """
    seen = set() if seen is None else seen
    if id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, RuntimeTensor | RuntimePointer | Numeric) or is_array(value):
        return arrays or not is_array(value)
    if isinstance(value, tuple | list):
        return any(_holds_leaves(x, seen, arrays=arrays) for x in value)
    if isinstance(value, dict):
        return any(_holds_leaves(x, seen, arrays=arrays) for x in value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(_holds_leaves(getattr(value, f.name), seen, arrays=arrays) for f in dataclasses.fields(value))
    if _is_instance(value):
        return any(_holds_leaves(x, seen, arrays=arrays) for x in vars(value).values())
    return False
