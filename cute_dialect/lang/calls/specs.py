"""The spec of an argument (:mod:`cute_dialect.lang.calls.arguments`), from its value and annotation."""

from __future__ import annotations

import dataclasses
import types
from enum import Enum
from typing import Any

from cute_dialect.lang.calls.arguments import (
    ArraySpec,
    Container,
    NumberSpec,
    PointerSpec,
    Spec,
    StaticSpec,
    StreamSpec,
    TreeSpec,
)
from cute_dialect.lang.calls.arrays import element_bytes, is_array, raw_type, type_of_element
from cute_dialect.lang.calls.constant_keys import static_key
from cute_dialect.lang.calls.runtime_tensor import FakeStream, RuntimePointer, RuntimeTensor
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.annotations import (
    Stream,
    TensorAnnotation,
    _Subscripted,
    is_constexpr,
    is_int_tuple,
    is_number_type,
    without_none,
)
from cute_dialect.lang.values.dtypes import Float32, Int32, Int64, Numeric, NumericType, Uint64
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, view_of

__all__ = ["spec_of"]


def spec_of(value: Any, annotation: object, label: str) -> Spec:
    """Return the spec of an argument.  Raises F12x if it cannot be passed.

    >>> spec_of(3, None, "n"), spec_of(3, Int64, "n"), spec_of("fast", None, "mode")
    (Int32, Int64, 'fast')
    """
    annotation, optional = without_none(annotation)
    if value is None and (optional or not _wants_value(annotation)):
        return StaticSpec(None, static_key(None))
    if annotation is not None:
        found = _by_annotation(value, annotation, label)
        if found is not None:
            return found
    return _by_value(value, label)


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
    if is_int_tuple(annotation) and isinstance(value, tuple | list | int):
        return _int_tuple(value, label)
    pointer = annotation.args[0] if isinstance(annotation, _Subscripted) else None
    if _is_pointer(annotation) and not isinstance(value, RuntimePointer):
        return _pointer(value, pointer, label)
    return None


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
                )  # fmt: skip
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
