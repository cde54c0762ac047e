"""Operators from a few functions, and methods that a later module defines because they need its functions.

The class lists such methods with :func:`later_methods`, and the module defines them with :func:`method_of`.  The first
call of one imports the module, so that a program that only names a class loads no more than the class::

    later_methods(Tensor, indexing=("__getitem__", "__setitem__"))      # in tensors.py

    @method_of(Tensor)                                                   # in indexing.py
    def __getitem__(self: Tensor, coord: object) -> Any: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeVar

__all__ = ["LATER_METHODS", "OPERATORS", "give_operators", "later_methods", "method_of"]


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
