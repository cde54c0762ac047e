"""Arithmetic over lanes, shared by the ops of arith, llvm and math and the instructions of PTX.

An integer operand is a Python int, or an array in the signed or unsigned numpy type that holds its width. Results of
arrays are modulo 2^width; results of Python ints are exact, and the caller wraps them.

Addition, multiplication, division, square root and `fma` of floats are computed exactly, or rounded to odd (see
`rounding`), and then rounded once. Other functions are computed in f64.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from cute_dialect.interp.rounding import exact_f64, fma_f64, half_away, narrow, sticky_fma, sticky_sum
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import Array, Value

# ------------------------------------------------------------------------------------------------------------- integers


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


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


# --------------------------------------------------------------------------------------------------------------- floats


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


_PLAIN: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "fma": fma_f64,
}
_STICKY: dict[str, Callable[..., Array]] = {
    "add": sticky_sum,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "fma": sticky_fma,
}


def rounded_once(kind: str, name: str, mode: str, *operands: Array) -> Array:
    """Return `add`, `mul`, `div`, `sqrt` or `fma` of f64 arrays of numbers of a format, rounded once to the format.

    Args:
        kind: The operation.
        name: The format, by its name in `rounding.FORMATS`.
        mode: The rounding mode: `rn`, `rz`, `rm` or `rp`.
    """
    if name == "f64":
        return _PLAIN[kind](*operands) if mode == "rn" else exact_f64(kind, mode, *operands)
    r = _STICKY[kind](*operands)
    if mode == "rm" and kind in ("add", "fma"):  # An exact sum of zero is -0 (IEEE 754, 6.3).
        first = operands[0] if kind == "add" else operands[0] * operands[1]
        plus = ~np.signbit(first) & ~np.signbit(operands[-1]) & (first == 0)
        r = np.where((r == 0) & ~plus, -0.0, r)
    return narrow(r, name, mode)


def minmax_floats(x: Array, y: Array, largest: bool, nan_wins: bool) -> Array:
    """Return the larger or smaller of two floats, with -0 below +0 (PTX ISA 9.7.3.11 and 9.7.3.12: "+0.0 > -0.0")."""
    if nan_wins:
        r = np.maximum(x, y) if largest else np.minimum(x, y)
    else:
        r = np.fmax(x, y) if largest else np.fmin(x, y)
    tie = (x == 0) & (y == 0)
    if np.any(tie):
        r = np.where(tie, (x + y) if largest else -((-x) + (-y)), r)
    return np.asarray(r).astype(x.dtype)


def compare_floats(word: str, x: Value, y: Value) -> Array:
    """Compare two floats by a word of PTX (9.3.1).

    `eq` to `ge` are false for NaN, `equ` to `geu` true; `num` and `nan` test for NaN.
    """
    if word not in ("ne", "num", "nan") and word in COMPARISONS:
        return np.asarray(COMPARISONS[word](x, y))
    nan = np.asarray((x != x) | (y != y))  # type: ignore[operator]
    if word in ("num", "nan"):
        return nan if word == "nan" else ~nan
    if word == "ne":
        return np.asarray(x != y) & ~nan
    return np.asarray(COMPARISONS[word[:-1]](x, y)) | nan


def to_int(x: Array, source: int, target: Leaf, is_signed: bool) -> Array:
    """Convert whole f64 numbers to the integer type `target`, by the rules of PTX `cvt` (PTX ISA 9.7.9.21).

    Out-of-range numbers saturate. NaN gives 0, or only the highest bit, `1 << (BitWidth(dst) - 1)`, if the source or
    the target has 64 bits.
    """
    width = target.width
    lo = -(1 << (width - 1)) if is_signed else 0
    hi = (1 << (width - 1)) - 1 if is_signed else (1 << width) - 1
    wide = np.dtype(np.int64 if is_signed else np.uint64)
    nan, top, bottom = np.isnan(x), x >= float(hi), x <= float(lo)
    r = np.where(nan | top | bottom, 0.0, x).astype(wide)
    r = np.where(top, np.asarray(hi, wide), np.where(bottom, np.asarray(lo, wide), r))
    if source == 64 or width == 64:
        r = np.where(nan, np.asarray(lo if is_signed else 1 << (width - 1), wide), r)
    if width == 1:
        return r.astype(np.bool_)
    return r.astype(target.dtype if is_signed else target.unsigned).view(target.dtype)


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "exp10": lambda x: np.power(10.0, x),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "erf": lambda x: np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x)),
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "roundeven": np.rint,
    "round": half_away,
}
"""Functions of one f64, computed in f64."""
