"""Forms of containers and instances, which are joined element by element."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cute_dialect.front.errors import MergeError
from cute_dialect.front.values import Form, form_of, made_of

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

__all__ = ["RecordForm", "TupleForm", "UnsaidForm", "is_value", "structural_form"]


class TupleForm(Form):
    """The form of a tuple or named tuple."""

    __slots__ = ("kind", "parts", "types")

    def __init__(self, kind: type, parts: Sequence[Form]):
        self.kind = kind
        self.parts = tuple(parts)
        self.types = tuple(t for p in self.parts for t in p.types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TupleForm) and self.kind is other.kind and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((self.kind, self.parts))

    def take(self, value: object) -> list[SSAValue]:
        assert isinstance(value, tuple)
        return [leaf for part, form in zip(value, self.parts) for leaf in form.take(part)]

    def make(self, leaves: Sequence[SSAValue]) -> object:
        made = made_of(self.parts, leaves)
        return tuple(made) if self.kind is tuple else self.kind(*made)

    def join(self, other: Form) -> Form:
        if not isinstance(other, TupleForm) or self.kind is not other.kind or len(self.parts) != len(other.parts):
            raise MergeError("F204", f"it is {self.describe()} or {getattr(other, 'describe', lambda: other)()}")
        return TupleForm(self.kind, [a.join(b) for a, b in zip(self.parts, other.parts)])

    def widened(self) -> Form:
        return TupleForm(self.kind, [p.widened() for p in self.parts])

    def loosened(self) -> Form:
        return TupleForm(self.kind, [p.loosened() for p in self.parts])

    def describe(self) -> str:
        """Return its description for messages."""
        return f"a {self.kind.__name__} of {len(self.parts)} elements"


class RecordForm(Form):
    """The form of an immutable instance: of a frozen dataclass, or any class for which :func:`is_value` holds."""

    __slots__ = ("like", "names", "parts", "types")

    def __init__(self, like: object, names: Sequence[str], parts: Sequence[Form]):
        self.like = like
        self.names = tuple(names)
        self.parts = tuple(parts)
        self.types = tuple(t for p in self.parts for t in p.types)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RecordForm) and type(self.like) is type(other.like)
            and (self.names, self.parts) == (other.names, other.parts)
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((type(self.like), self.names, self.parts))

    def take(self, value: object) -> list[SSAValue]:
        return [leaf for name, form in zip(self.names, self.parts) for leaf in form.take(getattr(value, name))]

    def make(self, leaves: Sequence[SSAValue]) -> object:
        made = copy.copy(self.like)
        at = 0
        for name, form in zip(self.names, self.parts):
            n = len(form.types)
            object.__setattr__(made, name, form.make(leaves[at : at + n]))
            at += n
        return made

    def join(self, other: Form) -> Form:
        if not isinstance(other, RecordForm) or type(self.like) is not type(other.like):
            raise MergeError("F204", f"it is {self.describe()} or {getattr(other, 'describe', lambda: other)()}")
        if self.names != other.names:
            only = ", ".join(sorted({*self.names} ^ {*other.names}))
            raise MergeError("F207", f"{self.describe()} has different attributes on the two sides: {only}")
        return RecordForm(self.like, self.names, [a.join(b) for a, b in zip(self.parts, other.parts)])

    def widened(self) -> Form:
        return RecordForm(self.like, self.names, [p.widened() for p in self.parts])

    def loosened(self) -> Form:
        return RecordForm(self.like, self.names, [p.loosened() for p in self.parts])

    def describe(self) -> str:
        """Return its description for messages."""
        return f"an instance of {type(self.like).__name__}"


class UnsaidForm(Form):
    """The form of a setting that differs between iterations and is undefined until it is set again.

    ``marker`` replaces the value; reading it raises an error.
    """

    __slots__ = ("marker",)
    types = ()

    def __init__(self, marker: object):
        self.marker = marker

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnsaidForm) and self.marker is other.marker

    def __hash__(self) -> int:
        return hash((UnsaidForm, id(self.marker)))

    def take(self, value: object) -> list[SSAValue]:
        return []

    def make(self, leaves: Sequence[SSAValue]) -> object:
        return self.marker

    def join(self, other: Form) -> Form:
        return self


def is_value(value: object) -> bool:
    """Return True if an instance is compared by content rather than identity.

    This holds for frozen dataclasses, and for classes with CuTe DSL's methods ``__extract_mlir_values__`` and
    ``__new_from_mlir_values__``.
    """
    cls = type(value)
    params = getattr(cls, "__dataclass_params__", None)
    return (params is not None and params.frozen) or (
        hasattr(cls, "__extract_mlir_values__") and hasattr(cls, "__new_from_mlir_values__")
    )


def structural_form(value: object) -> Form | None:
    """Return the form of a tuple or of an immutable instance, or None for other values."""
    if isinstance(value, tuple):
        return TupleForm(type(value), [form_of(x) for x in value])
    held = getattr(value, "__dict__", None)
    if held is not None and is_value(value) and not isinstance(value, type):
        return RecordForm(value, list(held), [form_of(x) for x in held.values()])
    return None
