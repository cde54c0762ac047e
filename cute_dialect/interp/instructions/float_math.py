"""Float arithmetic over lanes, shared by the ops of arith, llvm and math and the instructions of PTX.

Addition, multiplication, division, square root and `fma` are computed exactly, or rounded to odd (see `rounding`), and
then rounded once. Other functions are computed in f64.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cute_dialect.interp.instructions.integer_math import COMPARISONS
from cute_dialect.interp.rounding import exact_f64, fma_f64, half_away, narrow, sticky_fma, sticky_sum
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import Array, Value

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


def minmax(x: Array, y: Array, largest: bool, nan_wins: bool) -> Array:
    """Return the larger or smaller of two floats, with -0 below +0 (PTX ISA 9.7.3.11 and 9.7.3.12: "+0.0 > -0.0")."""
    if nan_wins:
        r = np.maximum(x, y) if largest else np.minimum(x, y)
    else:
        r = np.fmax(x, y) if largest else np.fmin(x, y)
    tie = (x == 0) & (y == 0)
    if np.any(tie):
        r = np.where(tie, (x + y) if largest else -((-x) + (-y)), r)
    return np.asarray(r).astype(x.dtype)


def compare(word: str, x: Value, y: Value) -> Array:
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

__all__ = ["FUNCTIONS", "compare", "minmax", "rounded_once", "to_int"]
