"""Forms of containers that a loop replaces, which are joined element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CellType
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.control.mutable_state import U, empty_like, is_mutable, kept_in, parts_of, set_part
from cute_dialect.lang.tracing.errors import MergeError
from cute_dialect.lang.values.dynamic import Form, made_of
from cute_dialect.lang.values.forms import ConstForm, TupleForm, form_of, is_value

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

__all__ = [
    "ContainerForm",
    "UnsaidForm",
    "carried_form",
    "holds_containers",
    "replaced_in",
    "shaped_like",
    "shared_in",
]


class ContainerForm(Form):
    """The form of a list, dict or mutable instance that a loop replaces. ``make`` builds a new object."""

    __slots__ = ("forms", "like", "types")

    def __init__(self, like: object, forms: Mapping[tuple[bool, Any], Form]):
        self.like = like
        self.forms = dict(forms)
        self.types = tuple(t for f in self.forms.values() for t in f.types)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ContainerForm) and type(self.like) is type(other.like) and self.forms == other.forms

    def __hash__(self) -> int:
        return hash((type(self.like), *self.forms))

    def take(self, value: object) -> list[SSAValue]:
        parts = parts_of(value, kept_in(value))
        return [leaf for part, form in self.forms.items() for leaf in form.take(parts[part])]

    def make(self, leaves: Sequence[SSAValue]) -> object:
        items = [key for is_item, key in self.forms if is_item]
        made = empty_like(self.like, dict.fromkeys(items) if isinstance(self.like, dict) else [None] * len(items))
        for part, value in zip(self.forms, made_of(self.forms.values(), leaves)):
            set_part(made, part, value)
        return made

    def join(self, other: Form) -> Form:
        if isinstance(other, ConstForm) and can_carry(other.value):
            other = carried_form(other.value, U)
        if not isinstance(other, ContainerForm) or type(self.like) is not type(other.like):
            raise MergeError("F204", f"it is {self.describe()} or {getattr(other, 'describe', lambda: other)()}")
        if list(self.forms) != list(other.forms):
            raise shape_error(self.like, other.like)
        return ContainerForm(self.like, {part: form.join(other.forms[part]) for part, form in self.forms.items()})

    def widened(self) -> Form:
        return ContainerForm(self.like, {part: form.widened() for part, form in self.forms.items()})

    def loosened(self) -> Form:
        return ContainerForm(self.like, {part: form.loosened() for part, form in self.forms.items()})

    def describe(self) -> str:
        """Return its description for messages."""
        return f"a {type(self.like).__name__} object"


def shape_error(a: Any, b: Any) -> MergeError:
    """Return the error for containers or instances of one type with different elements or attributes."""
    name = type(a).__name__
    if isinstance(a, list) and len(a) != len(b):
        return MergeError(
            "F207", f"it is a {name} of {len(a)} or {len(b)} elements",
            hint="its length must be the same in each iteration",
        )  # fmt: skip
    return MergeError(
        "F207", f"it refers to two {name} objects with different keys or attributes, or another order of keys"
    )


def can_carry(value: object) -> bool:
    """Return True for a container or mutable instance that a loop may replace by another one."""
    return (
        is_mutable(value) and not is_value(value) and not isinstance(value, set | bytearray | CellType)
        and kept_in(value) is not None
    )  # fmt: skip


def carried_form(before: object, after: object) -> Form:
    """Return the form of a variable that is ``before`` at the start of an iteration and ``after`` at its end.

    Mutable objects in both values stay static parts of the form.
    """
    if before is after:
        return ConstForm(before) if can_carry(before) else form_of(before).widened().loosened()
    if isinstance(before, tuple):
        others = after if isinstance(after, tuple) and len(after) == len(before) else [U] * len(before)
        return TupleForm(type(before), [carried_form(x, y) for x, y in zip(before, others)])
    if not can_carry(before):
        return form_of(before).widened().loosened()
    parts = parts_of(before, kept_in(before))
    others = parts_of(after, kept_in(after)) if type(after) is type(before) else {}
    return ContainerForm(before, {part: carried_form(x, others.get(part, U)) for part, x in parts.items()})


def shaped_like(form: Form, value: object) -> Form:
    """Return the form of a value, in which the objects are new where they are in ``form``."""
    if isinstance(form, ContainerForm):
        parts = parts_of(value, kept_in(value))
        return ContainerForm(value, {part: shaped_like(f, parts[part]) for part, f in form.forms.items()})
    if isinstance(form, TupleForm) and isinstance(value, tuple):
        return TupleForm(form.kind, [shaped_like(f, x) for f, x in zip(form.parts, value)])
    return form_of(value)


def replaced_in(form: Form, value: object) -> list[object]:
    """Return the mutable objects of a value that are new in each iteration."""
    if isinstance(form, ContainerForm):
        parts = parts_of(value, kept_in(value))
        return [value, *(x for part, f in form.forms.items() for x in replaced_in(f, parts[part]))]
    if isinstance(form, TupleForm) and isinstance(value, tuple):
        return [x for f, v in zip(form.parts, value) for x in replaced_in(f, v)]
    return []


def shared_in(form: Form) -> list[object]:
    """Return the objects that are static parts of a form."""
    if isinstance(form, ContainerForm):
        return [x for f in form.forms.values() for x in shared_in(f)]
    if isinstance(form, TupleForm):
        return [x for f in form.parts for x in shared_in(f)]
    return [form.value] if isinstance(form, ConstForm) else []


def holds_containers(form: Form) -> bool:
    """Return True if a form has objects that are new in each iteration."""
    return isinstance(form, ContainerForm) or (isinstance(form, TupleForm) and any(map(holds_containers, form.parts)))


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
