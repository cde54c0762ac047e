"""CuTe DSL's markers for static and dynamic values. Staticness follows from the value, so they only check it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cute_dialect.lang.tracing.errors import StaticError
from cute_dialect.lang.values.dynamic import is_dynamic

__all__ = ["const_expr", "dsl_user_op", "dynamic_expr"]

F = TypeVar("F", bound=Callable[..., Any])


def const_expr(value: Any) -> Any:
    """Return a value that is known at compile time.  Raises F140 for a run-time value.

    >>> const_expr(2 > 1)
    True
    """
    if is_dynamic(value):
        raise StaticError(
            "F140", f"const_expr needs a value known at compile time, got {value.describe()}",
            hint="remove const_expr: conditions are evaluated at compile time if their value allows",
        )  # fmt: skip
    return value


def dynamic_expr(value: Any) -> Any:
    """Return the value unchanged. Accepted for compatibility with CuTe DSL.

    >>> dynamic_expr(3)
    3
    """
    return value


def dsl_user_op(function: F) -> F:
    """Return the function unchanged. Helpers called in kernels need no decorator; ``loc`` and ``ip`` stay None."""
    return function
