"""Forms of values: their static part and the types of their SSA values.

Two values of the same :class:`Form` differ only in their SSA values.  Branches, loops and kernel arguments use forms to
take values apart and rebuild them.  A class of dynamic values needs only ``__cute_form__`` to cross them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cute_dialect.lang.tracing.errors import MergeError, StaticError
from cute_dialect.lang.values.numpy_functions import ufunc

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

__all__ = [
    "ConstForm", "Dynamic", "Form", "RecordForm", "TupleForm", "form_of", "is_dynamic", "is_value", "made_of",
    "same_static", "structural_form",
]  # fmt: skip


def _needs(code: str, what: str, cure: str) -> Any:
    def method(self: Dynamic, *others: object) -> NoReturn:
        raise StaticError(code, f"{what} of {self.describe()} is known only at run time", hint=cure)

    return method


class Dynamic:
    """Base of values that hold SSA values. Operations for which Python needs the value at once raise F143–F147."""

    __slots__ = ()

    def describe(self) -> str:
        """Return its description for messages."""
        return f"this {type(self).__name__}"

    def __cute_form__(self) -> Form:
        raise NotImplementedError(type(self))

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **more: Any) -> Any:
        return ufunc(self, function, method, *inputs, **more)

    __bool__ = _needs("F143", "the truth value", "Python needs it here at compile time")
    __index__ = _needs("F144", "the value", "Python needs the number here at compile time: pass it as cute.Constexpr")
    __int__ = _needs("F144", "the value", "convert with cute.Int32(x) or x.to(…)")
    __float__ = _needs("F144", "the value", "convert with cute.Float32(x) or x.to(…)")
    __iter__ = _needs("F145", "the number of elements", "loop over a range")
    __len__ = _needs("F146", "the length", "use cute.size")
    __contains__ = _needs("F147", "the result of 'in' on the elements", "compare each element")
    refuse_hash = _needs("F147", "the value", "it cannot be in a set or a key of a dict: use a list")


class Form:
    """The static part of a value, and the types of its SSA leaves. Compared by structure."""

    __slots__ = ()

    types: tuple[Attribute, ...]
    """The types of the leaves."""

    def take(self, value: object) -> list[SSAValue]:
        """Return the leaves of a value that fits this form. Conversions are emitted if it is more static."""
        raise NotImplementedError

    def make(self, leaves: Sequence[SSAValue]) -> object:
        """Return the value of this form with these leaves."""
        raise NotImplementedError

    def join(self, other: Form) -> Form:
        """Return the most specific form that both fit.  Raises MergeError if there is none."""
        raise NotImplementedError

    def widened(self) -> Form:
        """Return the form with static numbers made dynamic, for values that change between loop iterations."""
        return self

    def loosened(self) -> Form:
        """Return the form without value facts of numbers, for values that change between loop iterations."""
        return self


def made_of(forms: Iterable[Form], leaves: Sequence[SSAValue]) -> list[object]:
    """Return the values of several forms, given their concatenated leaves."""
    made: list[object] = []
    at = 0
    for form in forms:
        made.append(form.make(leaves[at : at + len(form.types)]))
        at += len(form.types)
    return made


class ConstForm(Form):
    """The form of one static value."""

    __slots__ = ("value",)
    types = ()

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstForm) and same_static(self.value, other.value)

    def __hash__(self) -> int:
        return hash((ConstForm, type(self.value)))

    def __repr__(self) -> str:
        return repr(self.value)

    def take(self, value: object) -> list[SSAValue]:
        return []

    def make(self, leaves: Sequence[SSAValue]) -> object:
        return self.value

    def join(self, other: Form) -> Form:
        if self == other:
            return self
        if not isinstance(other, ConstForm):
            return other.join(self)
        from cute_dialect.lang.values.number_forms import join_static

        joined = join_static(self.value, other.value)
        if joined is None:
            code = "F208" if self.value is None or other.value is None else "F209"
            raise MergeError(code, f"it is {_short(self.value)} or {_short(other.value)}")
        return joined

    def widened(self) -> Form:
        from cute_dialect.lang.values.number_forms import widen_static

        return widen_static(self.value) or self


def same_static(a: object, b: object) -> bool:
    """Return True if two static values are identical or are equal values of the same type."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and isinstance(b, float):
        return a.hex() == b.hex()  # This distinguishes -0.0 from 0.0 and finds nan equal to nan.
    from cute_dialect.lang.values.dtypes import Numeric

    if isinstance(a, Numeric) and isinstance(b, Numeric):
        return a.is_static and b.is_static and same_static(a.value, b.value)
    if isinstance(a, int | str | bytes | complex):
        return a == b
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same_static(x, y) for x, y in zip(a, b))
    equal = getattr(type(a), "__cute_same__", None)
    return bool(equal(a, b)) if equal is not None else False


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def is_dynamic(value: object) -> bool:
    """Return True if the value itself holds SSA values. The elements of containers are not examined."""
    return isinstance(value, Dynamic) and not getattr(value, "is_static", False)


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


def form_of(value: object) -> Form:
    """Return the form of any value. Forms of containers and instances hold those of their parts."""
    if isinstance(value, Dynamic):
        return value.__cute_form__()
    if value is None or isinstance(value, int | float | str | type):
        return ConstForm(value)
    return structural_form(value) or ConstForm(value)
