"""Arguments of a call, split into a static *spec* and the leaves passed at each call.

The spec of an argument is part of the specialization's key.  At a call it takes the value apart into leaves (arrays and
numbers), one per parameter of the host function.  During tracing it rebuilds the value from those parameters.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from cute_dialect.lang.calls import runtime_tensor
from cute_dialect.lang.calls.constant_keys import static_key
from cute_dialect.lang.tracing.tracer import active
from cute_dialect.lang.values.dtypes import Boolean, Numeric, NumericType
from cute_dialect.lang.values.pointers import pointer_to
from cute_dialect.lang.values.tensors import Pointer, Tensor
from cute_dialect.runtime.arrays import ArrayView
from cute_dialect.runtime.binding import DtypeError, RangeError, ShapeError

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.calls.runtime_tensor import SymInt
    from cute_dialect.lang.values.pointers import Pointer
    from cute_dialect.lang.values.signature_types import Int

__all__ = [
    "ArraySpec",
    "NumberSpec",
    "PointerSpec",
    "Spec",
    "StaticSpec",
    "StreamSpec",
    "TreeSpec",
    "make_ptr",
    "named",
    "rebuild",
    "unpack",
]


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
