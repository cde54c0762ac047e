"""Forms of values: their static part and the types of their SSA values.

Two values of the same :class:`Form` differ only in their SSA values.  Branches, loops and kernel arguments use forms to
take values apart and rebuild them.  A class of dynamic values needs only ``__cute_form__`` to cross them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cute_dialect.lang.tracing.errors import MergeError, StaticError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

__all__ = ["ConstForm", "Dynamic", "Form", "form_of", "is_dynamic", "made_of"]


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
        from cute_dialect.lang.control.numpy_functions import ufunc

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


def form_of(value: object) -> Form:
    """Return the form of any value. Forms of containers and instances hold those of their parts."""
    if isinstance(value, Dynamic):
        return value.__cute_form__()
    if value is None or isinstance(value, int | float | str | type):
        return ConstForm(value)
    from cute_dialect.lang.control.containers import structural_form

    return structural_form(value) or ConstForm(value)
