"""Float arithmetic of host programs, rounded once to the type.

>>> evaluate("mulf", "f32", [0.1, 3.0]), evaluate("divf", "f16", [1.0, 0.0]), to_float(16777217, "f32")
(0.30000001192092896, inf, 16777216.0)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence

__all__ = ["BINARY", "CODES", "FROM_INTEGER", "evaluate", "rounded", "to_float"]

CODES: Mapping[str, str] = {"f16": "<e", "f32": "<f", "f64": "<d"}
"""Float types of host programs, with their ``struct`` codes."""


def _divided(a: float, b: float) -> float:
    if b == 0.0:
        sign = math.copysign(1.0, a) * math.copysign(1.0, b)
        return math.nan if a == 0.0 or a != a else math.inf * sign
    return a / b


BINARY: Mapping[str, Callable[[float, float], float]] = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": _divided,
}
"""Binary float instructions by their ``arith`` names.

For f16 and f32, a double has enough digits (2 p + 2) that rounding its result again equals rounding the exact result.
"""
FROM_INTEGER = ("sitofp", "uitofp")
"""Instructions that convert an integer to a float."""


def rounded(value: float, kind: str) -> float:
    """Round a float to its type."""
    try:
        return struct.unpack(CODES[kind], struct.pack(CODES[kind], value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def to_float(value: int, kind: str) -> float:
    """Convert an integer to a float, rounded once."""
    size = abs(value)
    lost = max(0, size.bit_length() - 52)
    kept = size >> lost
    if kept << lost != size:
        kept |= 1  # sticky bit: the discarded bits are not all zero, so the value is not a tie
    if kind == "f64":
        return float(value)
    return rounded(math.copysign(float(kept << lost), value), kind)


def evaluate(name: str, kind: str, operands: Sequence[float]) -> float:
    """Return the result of an instruction of :data:`BINARY`, or of ``negf``, ``extf`` or ``truncf``."""
    given = [float(x) for x in operands]
    if name == "negf":
        return -rounded(given[0], kind)
    if name in ("extf", "truncf"):
        return rounded(given[0], kind)
    return rounded(BINARY[name](*[rounded(x, kind) for x in given]), kind)
