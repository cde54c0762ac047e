"""Words of CuTe DSL that say what is static; here the value says so, and they check that or do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cute_dialect.front.errors import StaticError
from cute_dialect.front.values import is_dynamic

__all__ = ["const_expr", "dsl_user_op", "dynamic_expr"]

F = TypeVar("F", bound=Callable[..., Any])


def const_expr(value: Any) -> Any:
    """Return a value that is known while compiling.  Raises F140 for one that is not.

    >>> const_expr(2 > 1)
    True
    """
    if is_dynamic(value):
        raise StaticError(
            "F140", f"'const_expr' of a value that is known only when the kernel runs: {value.describe()}",
            hint="leave 'const_expr' out: whether a condition is static is seen from its value",
        )  # fmt: skip
    return value


def dynamic_expr(value: Any) -> Any:
    """Return the value: whether a condition is static is seen from it.

    >>> dynamic_expr(3)
    3
    """
    return value


def dsl_user_op(function: F) -> F:
    """Return the function: helpers that are called in kernels need no decorator; ``loc`` and ``ip`` stay None."""
    return function
