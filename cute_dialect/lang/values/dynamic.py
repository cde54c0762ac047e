"""Base classes of values known only at run time, and of their forms.

Two values of the same :class:`Form` differ only in their SSA values.  Branches, loops and kernel arguments use forms to
take values apart and rebuild them.  A class of dynamic values needs only ``__cute_form__`` to cross them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cute_dialect.lang.tracing.errors import StaticError
from cute_dialect.lang.values.numpy_functions import ufunc

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

__all__ = ["VALUE_CLASSES", "Dynamic", "Form", "is_dynamic", "made_of"]


VALUE_CLASSES: dict[str, Any] = {}
"""Maps names of MLIR types to the classes of their values; modules of later classes fill it."""


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


def is_dynamic(value: object) -> bool:
    """Return True if the value itself holds SSA values. The elements of containers are not examined."""
    return isinstance(value, Dynamic) and not getattr(value, "is_static", False)
