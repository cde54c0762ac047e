"""Replacements of Python builtins for run-time values, and CuTe DSL's markers of static and dynamic values.

Static arguments go to the builtin itself.  The markers only check a value, because staticness follows from it.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any, TypeVar

from cute_dialect.lang.control.branches import both, check_iterator, either, equal, pick, regions, truth_of
from cute_dialect.lang.control.loops import LoopRange, loop_range
from cute_dialect.lang.control.runtime_loops import Rolled
from cute_dialect.lang.tracing.errors import StaticError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values import math as math_ops
from cute_dialect.lang.values.dtypes import Boolean, Float32, Float64, Int32, Int64, Integer
from cute_dialect.lang.values.dynamic import Dynamic, is_dynamic
from cute_dialect.lang.values.numeric import binary

# -------------------------------------------------------------------------------------------------------------- markers


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


# ------------------------------------------------------------------------------------------------------------- builtins


def _range(*args: Any, **hints: Any) -> Any:
    if hints:  # Programs for CuTe DSL pass hints to range.
        return loop_range(*args, **hints)
    if not any(isinstance(a, Dynamic) for a in args):
        return range(*args)
    if not any(is_dynamic(a) for a in args):
        return range(*(int(a) for a in args))
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
    return LoopRange(start, stop, step)


def _extreme(name: str, python: Callable[..., Any]) -> Callable[..., Any]:
    def overlay(*args: Any, **more: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else list(args)
        if not any(is_dynamic(v) for v in values):
            return python(values, **more)
        if more.get("key") is not None:
            raise StaticError("F157", f"'{name}' with key= needs values known at compile time")
        result = values[0]
        for value in values[1:]:
            a, b = result, value
            if _integers_alike(a, b):  # Equal integers are indistinguishable, so one min or max instruction suffices.
                result = binary(name, a, b)
                continue
            less = (b < a) if name == "min" else (b > a)
            result = _pick(less, lambda b=b: b, lambda a=a: a)
        return result

    return overlay


def _pick(condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    truth = truth_of(condition)
    return (a() if truth else b()) if truth is True or truth is False else pick(current(), truth, a, b)


def _integers_alike(a: Any, b: Any) -> bool:
    """Return True if two values are integers of one type, at least one of them a number type of this package."""
    x, y = type(a), type(b)
    return (x is y or x is int or y is int) and any(issubclass(k, Integer) and k is not Boolean for k in (x, y))


def _fold(python: Callable[..., Any], joined: Callable[..., Any], ends: bool) -> Callable[..., Any]:
    def overlay(values: Any) -> Any:
        result: Any = not ends
        for value in values:
            truth = truth_of(value)
            if truth is ends:
                return ends
            if truth is not (not ends):
                result = truth if result is (not ends) else joined(result, lambda truth=truth: truth)
        return result

    overlay.__name__ = python.__name__
    return overlay


def _int(*args: Any, **more: Any) -> Any:
    if len(args) != 1 or not is_dynamic(args[0]):
        return int(*args, **more)
    x = args[0]
    return (Int64 if type(x).width == 64 else Int32)(x) if hasattr(type(x), "width") else int(x)


def _float(*args: Any) -> Any:
    if len(args) != 1 or not is_dynamic(args[0]):
        return float(*args)
    x = args[0]
    return (Float64 if type(x).width == 64 else Float32)(x) if hasattr(type(x), "width") else float(x)


def _bool(*args: Any) -> Any:
    return truth_of(args[0]) if args else False


def _divmod(a: Any, b: Any) -> Any:
    ours = any(isinstance(x, Dynamic) for x in (a, b))
    return (a // b, a % b) if ours else divmod(a, b)


def _pow(a: Any, b: Any, *rest: Any) -> Any:
    ours = any(isinstance(x, Dynamic) for x in (a, b))
    return a**b if ours and not rest else pow(a, b, *rest)


def _reversed(values: Any) -> Any:
    return values.reversed() if isinstance(values, LoopRange) else reversed(values)


def _sorted(values: Any, **more: Any) -> Any:
    values = list(values)
    if any(is_dynamic(v) for v in values) and more.get("key") is None:
        raise StaticError("F157", "'sorted' needs values known at compile time")
    return sorted(values, **more)


def _print(*args: Any, **more: Any) -> None:
    tracer = current()
    if more.get("file") is None and any(isinstance(r, Rolled) for r in regions(tracer)):
        text = more.get("sep") or " "
        tracer.state["printed"].append(((text.join(str(a) for a in args),), {k: more[k] for k in more if k == "end"}))
    else:
        print(*args, **more)


def _next(iterator: Any, *default: Any) -> Any:
    check_iterator(current(), iterator)
    return next(iterator, *default)


def contains(x: Any, values: Any) -> Any:
    """Return ``x in values``, compared element by element if a value is known only at run time."""
    if isinstance(values, range) and is_dynamic(x):
        if values.step < 0:
            values = values[::-1]
        if not values:
            return False
        inside = both(x >= values.start, lambda: x < values.stop)
        return inside if values.step == 1 else both(inside, lambda: (x - values.start) % values.step == 0)
    if not isinstance(values, tuple | list | set | frozenset | dict):
        return x in values
    if not is_dynamic(x) and not isinstance(x, tuple) and not any(is_dynamic(v) for v in values):
        return x in values
    result: Any = False
    for value in values:
        one = True if x is value else truth_of(equal(x, value))
        if one is True:
            return True
        if one is not False:
            result = one if result is False else either(result, lambda one=one: one)
    return result


def _math(name: str) -> Callable[..., Any]:
    python = getattr(math, name)

    def overlay(*args: Any) -> Any:
        if not any(is_dynamic(a) for a in args):
            return python(*args)
        found = getattr(math_ops, _MATH[name])(*args)
        return _int(found) if name in ("floor", "ceil", "trunc") else found

    return overlay


_MATH = {
    **{name: name for name in (
        "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
        "atan2", "tanh", "erf", "floor", "ceil", "trunc", "copysign", "fma",
    ) if hasattr(math, name)},
    "fabs": "absf",
}  # fmt: skip
"""Maps functions of Python's ``math`` to ``cute.math``. As in Python, ``floor`` and the like return integers."""

OVERLAYS: dict[Any, Callable[..., Any]] = {
    builtins.range: _range, builtins.min: _extreme("min", min), builtins.max: _extreme("max", max),
    builtins.any: _fold(any, either, True), builtins.all: _fold(all, both, False), builtins.int: _int,
    builtins.float: _float, builtins.bool: _bool, builtins.divmod: _divmod, builtins.pow: _pow,
    builtins.reversed: _reversed, builtins.sorted: _sorted, builtins.next: _next, builtins.print: _print,
    **{getattr(math, name): _math(name) for name in _MATH},
}  # fmt: skip
"""Maps builtins to their replacements in converted code."""
