"""Compile-time arithmetic on static numbers, with the semantics of their types.

Integers wrap to their width.  Floats are rounded once, to nearest even.  Values too large for an 8-bit float saturate,
as in the hardware's conversion (``cvt.rn.satfinite``), and ``TFloat32`` rounds ties away from zero.

>>> from cute_dialect.lang.values.dtypes import Int8
>>> fitted(Int8, 200), fitted(Float16, 0.1), fitted(Float8E4M3FN, 1000.0)
(-56, 0.0999755859375, 448.0)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import (
    BFloat16,
    Boolean,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Numeric,
    TFloat32,
)

__all__ = ["PYTHON", "SIGNS", "divided_static", "fitted", "folded", "least_greatest", "literal", "power_of_floats"]

NumberClass = type[Numeric]

SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "pow": "**",
}  # fmt: skip
"""Python's symbols of the operations."""

PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "shl": operator.lshift, "shr": operator.rshift,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "min": min, "max": max,
}  # fmt: skip
"""The operations on Python integers."""


def fitted(kind: NumberClass, value: int | float | bool) -> Any:
    """Return a Python number as represented by a type: integers wrapped, floats rounded once."""
    if kind is Boolean:
        return bool(value)
    if kind.is_integer:
        bits = int(value) & ((1 << kind.width) - 1)
        return bits - (1 << kind.width) if kind.signed and bits >> (kind.width - 1) else bits
    wide = _wide(value)
    if kind is Float64:
        return float(value) if isinstance(value, float) else _int_to_f64(value)
    if kind is Float32 or kind is Float16:
        import numpy as np

        with np.errstate(over="ignore"):
            return float(np.float32(wide) if kind is Float32 else np.float16(wide))
    return _narrow(kind, wide)


def _wide(value: int | float) -> float:
    """Return a number as a float. Long integers are rounded to odd, so that a second rounding is exact."""
    if isinstance(value, float):
        return value
    whole = abs(int(value))
    more = whole.bit_length() - 53
    if more > 0:
        if whole.bit_length() > 1024:
            return math.copysign(math.inf, value)
        whole = (whole >> more | (whole & ((1 << more) - 1) != 0)) << more
    return float(-whole if value < 0 else whole)


def _int_to_f64(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


_FORMATS = {BFloat16: "bf16", Float8E4M3FN: "e4m3", Float8E5M2: "e5m2"}


def _narrow(kind: NumberClass, value: float) -> float:
    """Return a float rounded to a format that NumPy lacks."""
    import numpy as np

    if kind is TFloat32:
        return _to_tf32(value)
    if kind is not BFloat16 and kind is not Float8E8M0FNU and not math.isnan(value):
        greatest = kind.max  # Conversions to 8 bits and fewer saturate.
        value = min(max(value, -greatest), greatest)
    name = _FORMATS.get(kind)
    if name is not None:
        from cute_dialect.interp.rounding import narrow  # late: start-up

        return float(narrow(np.array([value], np.float64), name)[0])
    import ml_dtypes

    return float(np.array(value, np.float64).astype(getattr(ml_dtypes, kind.numpy)))


def _to_tf32(value: float) -> float:
    """Return a float rounded to 10 fraction bits, ties away from zero (``cvt.rna.tf32.f32``)."""
    import struct

    single = fitted(Float32, value)
    if not math.isfinite(single):
        return single
    (bits,) = struct.unpack("<I", struct.pack("<f", single))
    (rounded,) = struct.unpack("<f", struct.pack("<I", (bits + 0x1000) & 0xFFFFE000))
    return rounded


def least_greatest(kind: NumberClass) -> tuple[int, int]:
    """Return the minimum and maximum of an integer type.

    >>> from cute_dialect.lang.values.dtypes import Int8
    >>> least_greatest(Int8)
    (-128, 127)
    """
    if kind is Boolean:
        return 0, 1
    return (-(1 << kind.width - 1), (1 << kind.width - 1) - 1) if kind.signed else (0, (1 << kind.width) - 1)


def literal(kind: NumberClass, value: int | float, *, bits: bool = False) -> Any:
    """Return a Python literal as a number of type ``kind``.  Raises F230 if it is out of range.

    ``bits``: the literal is a bit pattern and may be written as an unsigned integer.
    """
    if kind.is_integer and kind is not Boolean:
        low, high = least_greatest(kind)
        if not low <= value <= high and not (bits and -(1 << kind.width - 1) <= value < 1 << kind.width):
            raise KernelTypeError("F230", f"{value} is out of range for {kind!r} ({low} to {high})")
    return kind.exactly(fitted(kind, value))


def folded(name: str, a: Any, b: Any, kind: NumberClass) -> Any:
    """Return the result of an operation on two static numbers of a type."""
    x, y = fitted(kind, a), fitted(kind, b)
    if kind.is_float:
        return kind.exactly(fitted(kind, _float(name, x, y, kind)))
    if name in ("floordiv", "mod") and y == 0:
        raise KernelTypeError("F232", f"division by zero: {x} / 0")
    if name in ("shl", "shr"):
        checked_shift(kind, y)
    return kind.exactly(fitted(kind, PYTHON[name](x, y)))


def checked_shift(kind: NumberClass, by: int) -> None:
    """Raise F233 for a shift by a negative amount or by the width of the type or more."""
    if not 0 <= by < kind.width:
        raise KernelTypeError("F233", f"{kind!r} has {kind.width} bits and cannot be shifted by {by}")


def _float(name: str, x: float, y: float, kind: NumberClass) -> float:
    """Return the result of an operation on two floats in higher precision; ``//`` and ``%`` are exact."""
    if name in ("min", "max"):
        if math.isnan(x) or math.isnan(y):
            return math.nan
        if x == y == 0.0:
            first = -1.0 if name == "min" else 1.0
            return math.copysign(0.0, first if first in (math.copysign(1, x), math.copysign(1, y)) else -first)
        return min(x, y) if name == "min" else max(x, y)
    import numpy as np

    with np.errstate(all="ignore"):
        a, b = np.float64(x), np.float64(y)
        if name == "truediv":
            return float(a / b)
        if name not in ("floordiv", "mod"):
            return float(PYTHON[name](a, b))
        return divided_static(name, x, y, wide=kind is Float64)


def divided_static(name: str, x: float, y: float, *, wide: bool) -> float:
    """Return ``x // y`` or ``x % y`` (``name``: ``floordiv`` or ``mod``) in f64 (``wide``) or f32.

    >>> divided_static("floordiv", 1.0, 0.1, wide=True), divided_static("mod", -1.5, 4.0, wide=False)
    (9.0, 2.5)
    """
    import numpy as np

    kind = np.float64 if wide else np.float32
    with np.errstate(all="ignore"):
        function = np.floor_divide if name == "floordiv" else np.remainder
        return float(function(kind(x), kind(y)))


def power_of_floats(x: float, y: float) -> float:
    """Return ``x ** y`` with IEEE 754 semantics."""
    import numpy as np

    with np.errstate(all="ignore"):
        return float(np.power(np.float64(x), np.float64(y)))
