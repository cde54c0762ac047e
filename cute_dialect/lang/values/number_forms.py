"""Forms of numbers. Their SSA value is passed through branches, loops and calls."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import MergeError
from cute_dialect.lang.values.dtypes import Boolean, Numeric
from cute_dialect.lang.values.folding import fitted, least_greatest, literal
from cute_dialect.lang.values.forms import ConstForm, Form
from cute_dialect.lang.values.integer_ranges import Facts, joined_facts

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

__all__ = ["NumberForm", "join_static", "number_form", "widen_static"]

NumberClass = type[Numeric]


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


def number_form(x: Numeric) -> Form:
    return ConstForm(x) if x.is_static else NumberForm(type(x), x.facts)


def _type_of_static(value: object) -> NumberClass | None:
    if isinstance(value, Numeric):
        return type(value)
    from cute_dialect.lang.values.numeric import as_number

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
