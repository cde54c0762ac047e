"""Forms of static values, numbers, tuples and immutable instances."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import MergeError
from cute_dialect.lang.values.dtypes import Boolean, Numeric
from cute_dialect.lang.values.dynamic import Dynamic, Form, made_of, method_of
from cute_dialect.lang.values.folding import Facts, fitted, joined_facts, least_greatest, literal
from cute_dialect.lang.values.numeric import as_number

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

NumberClass = type[Numeric]


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
        joined = join_static(self.value, other.value)
        if joined is None:
            code = "F208" if self.value is None or other.value is None else "F209"
            raise MergeError(code, f"it is {_short(self.value)} or {_short(other.value)}")
        return joined

    def widened(self) -> Form:
        return widen_static(self.value) or self


def same_static(a: object, b: object) -> bool:
    """Return True if two static values are identical or are equal values of the same type."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and isinstance(b, float):
        return a.hex() == b.hex()  # This distinguishes -0.0 from 0.0 and finds nan equal to nan.
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


class NumberForm(Form):
    """The form of a dynamic number of one type."""

    __slots__ = ("facts", "kind", "types")

    def __init__(self, kind: NumberClass, facts: Facts | None = None):
        self.kind = kind
        self.types = (kind.attribute,)
        self.facts = facts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberForm) and self.kind is other.kind and self.facts == other.facts

    def __hash__(self) -> int:
        return hash(self.kind)

    def __repr__(self) -> str:
        return repr(self.kind)

    def take(self, value: object) -> list[SSAValue]:
        if isinstance(value, int | float):
            value = literal(self.kind, value)
        assert isinstance(value, Numeric), value
        return [value.ssa if type(value) is self.kind else self.kind(value).ssa]

    def make(self, leaves: Sequence[SSAValue]) -> object:
        return self.kind.of(leaves[0], self.facts)

    def loosened(self) -> Form:
        return NumberForm(self.kind)

    def join(self, other: Form) -> Form:
        if isinstance(other, NumberForm):
            if self.kind is not other.kind:
                raise MergeError(
                    "F203", f"it is {self.kind!r} or {other.kind!r}",
                    hint=f"convert one side, e.g. with cute.{self.kind!r}(…)",
                )  # fmt: skip
            return NumberForm(self.kind, joined_facts(self.facts, other.facts))
        if isinstance(other, ConstForm):
            return NumberForm(self.kind, self._with_static(other.value))
        raise MergeError("F209", f"it is {self!r} or {other!r}")

    def _with_static(self, value: object) -> Facts | None:
        kind = self.kind
        if isinstance(value, Numeric):
            if type(value) is not kind:
                raise MergeError("F203", f"it is {kind!r} or {type(value)!r}")
            value = value.value
        if not isinstance(value, int | float):
            raise MergeError("F208", f"it is {kind!r} or {value!r}")
        if kind is Boolean and not isinstance(value, bool):
            raise MergeError("F202", f"it is a Boolean or the number {value!r}")
        if isinstance(value, bool) and kind is not Boolean:
            raise MergeError("F202", f"it is {kind!r} or {value!r}")
        if kind.is_integer and (
            isinstance(value, float) or not least_greatest(kind)[0] <= value <= least_greatest(kind)[1]
        ):
            raise MergeError("F201", f"it is {kind!r} or {value!r}, which {kind!r} cannot represent")
        if kind.is_float and isinstance(value, int) and fitted(kind, value) != value:
            raise MergeError("F201", f"it is {kind!r} or {value!r}, which {kind!r} cannot represent exactly")
        if not kind.is_integer:
            return None
        return joined_facts(self.facts, Facts(int(value), int(value), abs(int(value))))


@method_of(Numeric)
def __cute_form__(self: Numeric) -> Form:
    return ConstForm(self) if self.is_static else NumberForm(type(self), self.facts)


def _type_of_static(value: object) -> NumberClass | None:
    if isinstance(value, Numeric):
        return type(value)
    return type(as_number(value)) if isinstance(value, int | float) else None


def join_static(a: object, b: object) -> Form | None:
    """Return the common form of two different static values, or None if there is none."""
    x, y = _type_of_static(a), _type_of_static(b)
    if x is None or y is None:
        return None
    if x is not y:
        plain = not isinstance(a, Numeric) and not isinstance(b, Numeric)
        if plain and x.is_integer and y.is_integer and Boolean not in (x, y):
            return NumberForm(x if x.width > y.width else y, _of_both(a, b))
        if isinstance(a, Numeric) and not isinstance(b, Numeric):
            return NumberForm(x, _of_both(a, a)).join(ConstForm(b))
        if isinstance(b, Numeric) and not isinstance(a, Numeric):
            return NumberForm(y, _of_both(b, b)).join(ConstForm(a))
        code = "F202" if plain else "F203"
        raise MergeError(code, f"it is {a!r} or {b!r}: {x!r} or {y!r}", hint="use the same type for both")
    return NumberForm(x, _of_both(a, b))


def _of_both(a: Any, b: Any) -> Facts | None:
    """Return the facts of a number that is one of two static integers; None for other values."""
    x, y = (n.value if isinstance(n, Numeric) else n for n in (a, b))
    if type(x) is not int or type(y) is not int:
        return None
    return Facts(min(x, y), max(x, y), gcd(x, y) or 1)


def widen_static(value: object) -> Form | None:
    """Return the form of a dynamic number with the type of a static one, or None for other values."""
    kind = _type_of_static(value)
    return NumberForm(kind) if kind is not None else None


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
