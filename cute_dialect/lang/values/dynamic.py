"""Base classes of values known only at run time and of their forms, and how these classes get their operators.

Two values of the same :class:`Form` differ only in their SSA values.  Branches, loops and kernel arguments use forms to
take values apart and rebuild them.  A class of dynamic values needs only ``__cute_form__`` to cross them.

A class may list methods that a later module defines because they need its functions.  :func:`later_methods` declares
them and :func:`method_of` defines them.  The first call of one imports the module, so that a program that only names a
class loads no more than the class::

    later_methods(Tensor, indexing=("__getitem__", "__setitem__"))      # in tensors.py

    @method_of(Tensor)                                                   # in indexing.py
    def __getitem__(self: Tensor, coord: object) -> Any: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from cute_dialect.lang.tracing.errors import KernelTypeError, StaticError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

# ------------------------------------------------------------------------------------------------------ NumPy functions


_REFLECTED = {
    "add": "radd", "subtract": "rsub", "multiply": "rmul", "divide": "rtruediv", "floor_divide": "rfloordiv",
    "remainder": "rmod", "power": "rpow", "bitwise_and": "rand", "bitwise_or": "ror", "bitwise_xor": "rxor",
    "left_shift": "rlshift", "right_shift": "rrshift", "less": "gt", "less_equal": "ge", "greater": "lt",
    "greater_equal": "le", "equal": "eq", "not_equal": "ne",
}  # fmt: skip
"""Maps NumPy ufuncs to the Python operator of their right operand."""
_OTHERS = {"maximum": "max", "minimum": "min", "absolute": "abs", "power": "**", "fabs": "abs"}


IN_MATH = frozenset(
    (
        "ceil",
        "copysign",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "log",
        "log10",
        "log1p",
        "log2",
        "sin",
        "cos",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
    )
)
"""NumPy ufuncs that ``cute.math`` has under the same name."""


def ufunc(self: Dynamic, function: Any, method: str, *inputs: Any, **more: Any) -> Any:
    """Return the result of an operator whose left operand is a NumPy scalar.  Raises F236 for other functions."""
    name = function.__name__
    if method == "__call__" and not more and len(inputs) == 2 and not hasattr(inputs[0], "__cute_form__"):
        own = getattr(type(inputs[1]), f"__{_REFLECTED.get(name)}__", None)
        found = NotImplemented if own is None else own(inputs[1], inputs[0])
        if found is not NotImplemented:
            return found
    raise KernelTypeError(
        "F236", f"np.{name} cannot be applied to run-time values, got {self.describe()}", hint=_cure(name)
    )


def _cure(name: str) -> str:
    if name in _OTHERS:
        return f"use '{_OTHERS[name]}'"
    return f"use cute.math.{name}" if name in IN_MATH else "see cute.math for the functions available in kernels"


# --------------------------------------------------------------------------------------------------------- base classes


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


# -------------------------------------------------------------------------------------------------------- later methods

_F = TypeVar("_F", bound=Callable[..., Any])

LATER_METHODS: dict[type, dict[str, Iterable[str]]] = {}
"""For each class, the modules that define methods of it, and the names of these methods."""


def later_methods(cls: type, **modules: Iterable[str]) -> None:
    """Declare the methods of a class that later modules of this package define."""
    LATER_METHODS[cls] = modules
    for module, names in modules.items():
        for name in names:
            setattr(cls, name, _loading(cls, name, module))


def _loading(cls: type, name: str, module: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        import_module(f"{__package__}.{module}")
        found = getattr(cls, name)
        assert found is not method, f"{module} does not define {cls.__name__}.{name}"
        return found(self, *args, **kwargs)

    return method


def method_of(cls: type, name: str = "") -> Callable[[_F], _F]:
    """Decorate a function that becomes a method of a class of an earlier module, by default under its own name."""

    def install(method: _F) -> _F:
        setattr(cls, name or method.__name__, method)
        return method

    return install


# ------------------------------------------------------------------------------------------------------------ operators


_BINARY = {
    **{name: name for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor")},
    "lshift": "shl",
    "rshift": "shr",
}
"""Maps Python's operator names to this package's."""
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_OF_ONE = {"neg": "negated", "invert": "inverted", "abs": "absolute", "pow": "power", "rpow": "power_of"}


OPERATORS = (
    *(f"__{side}{name}__" for name in _BINARY for side in ("", "r")),
    *(f"__{name}__" for name in (*_COMPARISONS, *_OF_ONE)),
)
"""The methods that :func:`give_operators` defines, without ``__pos__``."""


def give_operators(
    cls: type, *, takes: Callable[[Any], bool], binary: Callable[[str, Any, Any], Any],
    compare: Callable[[str, Any, Any], Any], apply: Callable[..., Any],
) -> None:  # fmt: skip
    """Define Python's operators on a class.

    Args:
        cls: the class.
        takes: returns True if a value may be the other operand.
        binary: computes ``a op b``, given the name of the operation.
        compare: computes a comparison, given its name.
        apply: calls a function of :mod:`cute_dialect.lang.values.numeric`, given its name.
    """

    def two(name: str, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            if not takes(other):
                return NotImplemented
            return binary(name, other, self) if swapped else binary(name, self, other)

        return method

    def comparison(name: str) -> Callable[[Any, Any], Any]:
        return lambda self, other: compare(name, self, other) if takes(other) else NotImplemented

    def one(name: str) -> Callable[..., Any]:
        return lambda self, *others: apply(name, self, *others)

    for name, ours in _BINARY.items():
        setattr(cls, f"__{name}__", two(ours))
        setattr(cls, f"__r{name}__", two(ours, swapped=True))
    for name in _COMPARISONS:
        setattr(cls, f"__{name}__", comparison(name))
    for name, ours in _OF_ONE.items():
        setattr(cls, f"__{name}__", one(ours))
    setattr(cls, "__pos__", lambda self: self)  # noqa: B010 (consistent with the others)
