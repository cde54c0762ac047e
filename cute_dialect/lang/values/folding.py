"""Compile-time knowledge of numbers: arithmetic on static ones, and facts about dynamic integers.

Arithmetic has the semantics of the types.  Integers wrap to their width.  Floats are rounded once, to nearest even.
Values too large for an 8-bit float saturate, as in the hardware's conversion (``cvt.rn.satfinite``), and ``TFloat32``
rounds ties away from zero.

>>> from cute_dialect.lang.values.dtypes import Int8
>>> fitted(Int8, 200), fitted(Float16, 0.1), fitted(Float8E4M3FN, 1000.0)
(-56, 0.0999755859375, 448.0)

The facts of a dynamic integer are its lower and upper bound and a divisor.  They are exact: if a result may wrap, its
bounds are unknown and only the power of two in its divisor is kept.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

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

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import Numeric

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


# ----------------------------------------------------------------------------------------- facts about dynamic integers


CAP = 1 << 30
"""Largest power of two tracked as a divisor."""


class Facts(NamedTuple):
    """Facts about a dynamic integer: lower and upper bound (None: that of its type), and a divisor."""

    low: int | None = None
    high: int | None = None
    divisor: int = 1


def facts_of(x: Numeric) -> Facts:
    """Return the facts of an integer."""
    if x.is_static:
        return Facts(int(x.value), int(x.value), abs(int(x.value)))
    known = x.facts or Facts()
    low = 0 if known.low is None and not type(x).signed else known.low
    return known if low is known.low else Facts(low, known.high, known.divisor)


def is_natural(x: Numeric) -> bool:
    """Return True if a number is an integer known to be non-negative."""
    if not type(x).is_integer:
        return False
    low = facts_of(x).low
    return low is not None and low >= 0


def _range(x: Numeric) -> tuple[int, int]:
    """Return the minimum and maximum possible value of a number."""
    facts = facts_of(x)
    low, high = least_greatest(type(x))
    return low if facts.low is None else facts.low, high if facts.high is None else facts.high


def known_facts(kind: type[Numeric], low: int, high: int, divisor: int) -> Facts | None:
    """Return the facts of a result. If it may have wrapped, only facts that survive wrapping are kept."""
    least, greatest = least_greatest(kind)
    if least <= low and high <= greatest:
        return _told(Facts(low if low > least else None, high if high < greatest else None, max(divisor, 1)))
    return _told(Facts(None, None, min(divisor & -divisor, CAP) or 1))


def _told(facts: Facts) -> Facts | None:
    return None if facts == Facts() else facts


def converted_facts(x: Numeric, kind: type[Numeric]) -> Facts | None:
    """Return the facts of an integer converted to another integer type."""
    return known_facts(kind, *_range(x), facts_of(x).divisor)


def binary_facts(name: str, x: Numeric, y: Numeric) -> Facts | None:
    """Return the facts of the result of an operation on two integers of one type."""
    kind = type(x)
    a, b = facts_of(x), facts_of(y)
    (a_low, a_high), (b_low, b_high) = _range(x), _range(y)
    if name in ("add", "sub", "mul"):
        ends = [PYTHON[name](p, q) for p in (a_low, a_high) for q in (b_low, b_high)]
        divisor = a.divisor * b.divisor if name == "mul" else gcd(a.divisor, b.divisor)
        return known_facts(kind, min(ends), max(ends), divisor)
    if name in ("min", "max"):
        pick = PYTHON[name]
        return known_facts(kind, pick(a_low, b_low), pick(a_high, b_high), gcd(a.divisor, b.divisor))
    if name == "and":
        tops = [high for low, high in ((a_low, a_high), (b_low, b_high)) if low >= 0]
        divisor = max(a.divisor & -a.divisor, b.divisor & -b.divisor)
        return known_facts(kind, 0, min(tops), divisor) if tops else _told(Facts(None, None, divisor or 1))
    if name in ("or", "xor"):
        divisor = gcd(a.divisor & -a.divisor, b.divisor & -b.divisor)
        if a_low >= 0 and b_low >= 0:
            return known_facts(kind, 0, (1 << max(a_high.bit_length(), b_high.bit_length())) - 1, divisor)
        return _told(Facts(None, None, max(divisor, 1)))
    if y.is_static and y.value > 0 and name in ("floordiv", "mod"):
        n = int(y.value)
        if name == "mod":
            return known_facts(kind, 0, n - 1, gcd(a.divisor, n))
        return known_facts(kind, a_low // n, a_high // n, a.divisor // n if a.divisor % n == 0 else 1)
    if y.is_static and name in ("shl", "shr"):
        n = int(y.value)
        if name == "shl":
            return known_facts(kind, a_low << n, a_high << n, a.divisor << n)
        return known_facts(kind, a_low >> n, a_high >> n, a.divisor >> n if a.divisor % (1 << n) == 0 else 1)
    if a_low >= 0 and b_low >= 0 and name in ("floordiv", "mod", "shr"):
        return known_facts(kind, 0, min(a_high, b_high) if name == "mod" else a_high, 1)
    return None


def absolute_facts(x: Numeric) -> Facts | None:
    """Return the facts of ``abs(x)``, which is negative only for the minimum of a type."""
    low, high = _range(x)
    return known_facts(type(x), 0, max(-low, high), facts_of(x).divisor)


def rounded_up(x: Facts, y: Facts, kind: type[Numeric]) -> Facts | None:
    """Return the facts of ``ceil(x / y)`` for two non-negative integers.

    The result is at most ``x``, because the divisor is at least 1 in any valid division.

    >>> from cute_dialect.lang.values.dtypes import Int32
    >>> rounded_up(Facts(0, 1000), Facts(128, 128), Int32)
    Facts(low=0, high=8, divisor=1)
    """
    high = least_greatest(kind)[1] if x.high is None else x.high
    least = max(y.low or 0, 1)
    return known_facts(kind, 0, -(-high // least), 1)


def joined_facts(a: Facts | None, b: Facts | None) -> Facts | None:
    """Return the facts of a number that is one of two values."""
    if a is None or b is None:
        return None
    return _told(
        Facts(
            None if a.low is None or b.low is None else min(a.low, b.low),
            None if a.high is None or b.high is None else max(a.high, b.high), gcd(a.divisor, b.divisor) or 1,
        )
    )  # fmt: skip
