"""Forms of containers and instances, which are joined element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cute_dialect.front.errors import MergeError
from cute_dialect.front.values import Form, form_of

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

__all__ = ["TupleForm", "structural_form"]


class TupleForm(Form):
    """The form of a tuple, named or not."""

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
        made: list[object] = []
        at = 0
        for form in self.parts:
            n = len(form.types)
            made.append(form.make(leaves[at : at + n]))
            at += n
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
        """Return how messages name it."""
        return f"a {self.kind.__name__} of {len(self.parts)}"


def structural_form(value: object) -> Form | None:
    """Return the form of a container, or None for what is no container."""
    if isinstance(value, tuple):
        return TupleForm(type(value), [form_of(x) for x in value])
    return None
