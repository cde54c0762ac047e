"""Python operators for classes whose arithmetic is defined by a few functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["OPERATORS", "give_operators"]

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
