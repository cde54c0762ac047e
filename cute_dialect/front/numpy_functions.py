"""Functions of numpy on values of a kernel: operators with numpy's numbers are ours, all others are refused."""

from __future__ import annotations

from typing import Any

from cute_dialect.front.errors import KernelTypeError
from cute_dialect.front.values import Dynamic

__all__ = ["ufunc"]

_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv",
    "remainder": "mod", "power": "pow", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "left_shift": "lshift", "right_shift": "rshift",
}  # fmt: skip
"""What numpy's numbers call where Python has an operator."""
_COMPARISONS = {
    "less": "gt",
    "less_equal": "ge",
    "greater": "lt",
    "greater_equal": "le",
    "equal": "eq",
    "not_equal": "ne",
}
"""Comparisons -> the same one with its sides exchanged."""
_OTHERS = {"maximum": "max", "minimum": "min", "absolute": "abs", "power": "**", "fabs": "abs"}


def ufunc(self: Dynamic, function: Any, method: str, *inputs: Any, **more: Any) -> Any:
    """Return what an operator gives whose left side is a number of numpy.  Raises F236 for any other function."""
    name = function.__name__
    if method == "__call__" and not more and len(inputs) == 2 and not isinstance(inputs[0], Dynamic):
        swapped = f"__r{_OPERATORS[name]}__" if name in _OPERATORS else f"__{_COMPARISONS.get(name)}__"
        own = getattr(type(inputs[1]), swapped, None)
        found = NotImplemented if own is None else own(inputs[1], inputs[0])
        if found is not NotImplemented:
            return found
    raise KernelTypeError(
        "F236", f"numpy's '{name}' computes with numbers that are known while compiling, got {self.describe()}",
        hint=_cure(name),
    )  # fmt: skip


def _cure(name: str) -> str:
    from cute_dialect.front import math_ops

    if name in _OTHERS:
        return f"use '{_OTHERS[name]}'"
    return f"use cute.math.{name}" if name in math_ops.__all__ else "cute.math has the functions of kernels"
