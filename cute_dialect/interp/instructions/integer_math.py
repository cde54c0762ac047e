"""Integer arithmetic over lanes, shared by the ops of arith and llvm and the instructions of PTX.

An operand is a Python int, or an array in the signed or unsigned numpy type that holds its width. Results of arrays are
modulo 2^width; results of Python ints are exact, and the caller wraps them.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from cute_dialect.interp.values import Array

Integer: TypeAlias = "int | Array"


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
"""Comparisons by their names in PTX, also of floats."""


def each(f: Callable[..., int], *operands: Array) -> Array:
    """Apply a function of Python integers to each element. Results are modulo 2^64."""
    rows = zip(*(x.reshape(-1).tolist() for x in operands))
    return np.array([int(f(*row)) & (1 << 64) - 1 for row in rows], np.uint64).reshape(operands[0].shape)


def minmax(x: Integer, y: Integer, largest: bool) -> Integer:
    """Return the larger or the smaller of two integers."""
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return np.maximum(x, y) if largest else np.minimum(x, y)
    return max(x, y) if largest else min(x, y)


def divide(kind: str, x: Integer, y: Integer) -> Integer:
    """Return the quotient ("div", "floor" or "ceil") or the remainder of "div" ("rem"), which rounds towards zero."""
    if not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray):
        if kind == "floor":
            return x // y
        if kind == "ceil":
            return -(-x // y)
        q = abs(x) // abs(y)
        if (x < 0) != (y < 0):
            q = -q
        return q if kind == "div" else x - q * y
    if kind == "rem":
        return np.fmod(x, y)
    q = x // y  # numpy rounds towards minus infinity.
    if kind == "floor":
        return q
    r = x - q * y
    if kind == "ceil":
        return q + (r != 0)
    if (isinstance(x, np.ndarray) and x.dtype.kind == "u") or (isinstance(y, np.ndarray) and y.dtype.kind == "u"):
        return q
    return q + ((r != 0) & ((x < 0) != (y < 0)))


def high_product(x: Integer, y: Integer, width: int) -> Integer:
    """Return the upper half of the double-width product."""
    if not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray):
        return (x * y) >> width
    dtype = x.dtype if isinstance(x, np.ndarray) else y.dtype  # type: ignore[union-attr]
    if width <= 32:
        wide = np.dtype(np.int64 if dtype.kind == "i" else np.uint64)
        product = np.asarray(x).astype(wide) * np.asarray(y).astype(wide)
        return (product >> np.asarray(width, wide)).astype(dtype)
    high = (np.asarray(x).astype(object) * np.asarray(y).astype(object)) >> width
    return np.asarray(high).astype(dtype)


def count_ones(u: Integer, width: int) -> Integer:
    """Return the number of set bits of an unsigned integer."""
    if not isinstance(u, np.ndarray):
        return int(u).bit_count()
    return np.bitwise_count(u) if hasattr(np, "bitwise_count") else each(int.bit_count, u)


def leading_zeros(u: Integer, width: int) -> Integer:
    """Return the number of zeros above the highest set bit of an unsigned integer."""
    return _per_element(lambda x: width - x.bit_length(), u)


def trailing_zeros(u: Integer, width: int) -> Integer:
    """Return the number of zeros below the lowest set bit of an unsigned integer."""
    return _per_element(lambda x: (x & -x).bit_length() - 1 if x else width, u)


def reverse_bits(u: Integer, width: int) -> Integer:
    """Return an unsigned integer with its bits in reverse order."""
    return _per_element(lambda x: int(f"{x:0{width}b}"[::-1], 2), u)


def _per_element(f: Callable[[int], int], u: Integer) -> Integer:
    return each(f, u) if isinstance(u, np.ndarray) else f(int(u))


def funnel_shift(high: int, low: int, n: int, width: int, left: bool) -> int:
    """Shift the unsigned `high:low` by 0 to `width` bits, and return its upper half (left) or lower half."""
    both = high << width | low
    return (both << n >> width if left else both >> n) & (1 << width) - 1


def dot(x: Array, y: Array, accumulator: Array) -> Array:
    """Return the dot products over the last axis plus an accumulator, in 64 bits."""
    return (x.astype(np.int64) * y.astype(np.int64)).sum(-1) + accumulator.astype(np.int64)


__all__ = [
    "COMPARISONS",
    "Integer",
    "count_ones",
    "divide",
    "dot",
    "each",
    "funnel_shift",
    "high_product",
    "leading_zeros",
    "minmax",
    "reverse_bits",
    "trailing_zeros",
]
