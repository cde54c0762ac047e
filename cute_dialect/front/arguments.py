"""Arguments of a call: of each what is static (its *spec*, part of the key of a kind) and what is passed at each call.

A spec takes a value apart into *leaves* (arrays, numbers) when a kind is called, has a parameter of the host function
for each, and puts the value together again from these when the function is traced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cute_dialect.front.arrays import is_array, raw_type
from cute_dialect.front.dtypes import Float32, Int32, Int64, Numeric, NumericType
from cute_dialect.front.errors import KernelTypeError
from cute_dialect.runtime.arrays import NotAnArray, view_of

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

__all__ = ["ArraySpec", "NumberSpec", "Spec", "StaticSpec", "spec_of"]


class Spec:
    """What of an argument is static; equal ones make one kind."""

    __slots__ = ()

    def parameters(self, name: str) -> list[tuple[str, str]]:
        """Return the parameters of the host function: their names and the texts of their types."""
        raise NotImplementedError

    def leaves(self, value: object, into: list[object]) -> None:
        """Append what is passed for a value of this spec."""
        raise NotImplementedError

    def make(self, values: Iterator[SSAValue]) -> object:
        """Return what the traced function gets; takes the values of its parameters."""
        raise NotImplementedError


class StaticSpec(Spec):
    """A value that is a constant of the kind."""

    __slots__ = ("key", "value")

    def __init__(self, value: object, key: object):
        self.value = value
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticSpec) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)

    def parameters(self, name: str) -> list[tuple[str, str]]:
        return []

    def leaves(self, value: object, into: list[object]) -> None:
        return

    def make(self, values: Iterator[SSAValue]) -> object:
        return self.value


class NumberSpec(Spec):
    """A number that is passed at each call."""

    __slots__ = ("kind",)

    def __init__(self, kind: NumericType):
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberSpec) and self.kind is other.kind

    def __hash__(self) -> int:
        return hash(self.kind)

    def __repr__(self) -> str:
        return repr(self.kind)

    def parameters(self, name: str) -> list[tuple[str, str]]:
        return [(name, self.kind.mlir_type)]

    def leaves(self, value: object, into: list[object]) -> None:
        into.append(value.value if isinstance(value, Numeric) else value)

    def make(self, values: Iterator[SSAValue]) -> object:
        return self.kind.of(next(values))  # pyright: ignore[reportAttributeAccessIssue]


class ArraySpec(Spec):
    """An array of a type."""

    __slots__ = ("type",)

    def __init__(self, type: str):
        self.type = type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArraySpec) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return self.type

    def parameters(self, name: str) -> list[tuple[str, str]]:
        return [(name, self.type)]

    def leaves(self, value: object, into: list[object]) -> None:
        into.append(value)

    def make(self, values: Iterator[SSAValue]) -> object:
        try:
            from cute_dialect.front.tensors import Tensor  # pyright: ignore
        except ImportError:
            return next(values)
        return Tensor.of(next(values))


def spec_of(value: object, annotation: object, label: str) -> Spec:
    """Return the spec of an argument, from its value and its annotation."""
    if isinstance(annotation, NumericType) and not isinstance(value, type):
        return NumberSpec(annotation)
    if is_array(value):
        try:
            return ArraySpec(raw_type(view_of(value)))
        except NotAnArray as e:
            raise KernelTypeError("F121", f"argument '{label}': {e}") from None
    if isinstance(value, Numeric):
        return NumberSpec(type(value))
    if isinstance(value, bool) or value is None:
        return StaticSpec(value, (type(value), value))
    if isinstance(value, int):
        return NumberSpec(Int32 if -(1 << 31) <= value < 1 << 31 else Int64)
    if isinstance(value, float):
        return NumberSpec(Float32)
    if isinstance(value, str | type):
        return StaticSpec(value, (type(value), value))
    raise KernelTypeError("F122", f"argument '{label}' is {type(value).__name__}, which a kernel cannot take")


def unpack(specs: Sequence[Spec], values: Sequence[object]) -> list[object]:
    """Return what is passed to the host function."""
    found: list[object] = []
    for spec, value in zip(specs, values):
        spec.leaves(value, found)
    return found


def named(specs: Mapping[str, Spec]) -> list[tuple[str, str]]:
    """Return the parameters of the host function of these arguments."""
    return [p for name, spec in specs.items() for p in spec.parameters(name)]


def rebuild(specs: Mapping[str, Spec], values: Sequence[Any]) -> dict[str, object]:
    """Return what the traced function gets, by name."""
    left = iter(values)
    return {name: spec.make(left) for name, spec in specs.items()}
