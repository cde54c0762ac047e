"""NumPy functions on kernel values: operators with NumPy scalars work, all other functions are rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import KernelTypeError

if TYPE_CHECKING:
    from cute_dialect.lang.values.dynamic import Dynamic

__all__ = ["ufunc"]

_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv",
    "remainder": "mod", "power": "pow", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "left_shift": "lshift", "right_shift": "rshift",
}  # fmt: skip
"""Maps NumPy ufuncs to Python operators."""
_COMPARISONS = {
    "less": "gt",
    "less_equal": "ge",
    "greater": "lt",
    "greater_equal": "le",
    "equal": "eq",
    "not_equal": "ne",
}
"""Maps comparisons to the operator with exchanged operands."""
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
        swapped = f"__r{_OPERATORS[name]}__" if name in _OPERATORS else f"__{_COMPARISONS.get(name)}__"
        own = getattr(type(inputs[1]), swapped, None)
        found = NotImplemented if own is None else own(inputs[1], inputs[0])
        if found is not NotImplemented:
            return found
    raise KernelTypeError(
        "F236", f"np.{name} cannot be applied to run-time values, got {self.describe()}",
        hint=_cure(name),
    )  # fmt: skip


def _cure(name: str) -> str:
    if name in _OTHERS:
        return f"use '{_OTHERS[name]}'"
    return f"use cute.math.{name}" if name in IN_MATH else "see cute.math for the functions available in kernels"
