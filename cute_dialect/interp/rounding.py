"""Correct rounding of floats in any mode.

The input is an f64 that is either exact or *sticky*: rounded to odd, so that its last bit marks an inexact value (S.
Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008). With
53 bits, this is correct for every format of at most 51 bits and every mode.  Quotients and roots of 24-bit numbers need
not be sticky. An inexact one differs from any 25-bit number by more than half of the last bit of f64.  f64 results that
numpy cannot round are computed from exact rational numbers, element by element.

>>> rounded(np.float64(1 + 2**-11), FORMATS["f16"], "rn"), rounded(np.float64(1 + 2**-11), FORMATS["f16"], "rp")
(np.float64(1.0), np.float64(1.0009765625))
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import ml_dtypes
import numpy as np

from cute_dialect.interp.values import Array


@dataclass(frozen=True)
class Format:
    """A binary float format.

    Fields: significand bits including the hidden one, exponent of the least normal number, largest finite number, and
    the numpy type.
    """

    precision: int
    emin: int
    largest: float
    dtype: np.dtype  # type: ignore[type-arg]

    @property
    def least(self) -> float:
        """The least normal number."""
        return math.ldexp(1.0, self.emin)


FORMATS: dict[str, Format] = {
    "f64": Format(53, -1022, math.ldexp(2 - 2**-52, 1023), np.dtype(np.float64)),
    "f32": Format(24, -126, math.ldexp(2 - 2**-23, 127), np.dtype(np.float32)),
    "tf32": Format(11, -126, math.ldexp(2 - 2**-10, 127), np.dtype(np.float32)),
    "f16": Format(11, -14, 65504.0, np.dtype(np.float16)),
    "bf16": Format(8, -126, math.ldexp(2 - 2**-7, 127), np.dtype(ml_dtypes.bfloat16)),
    "e4m3": Format(4, -6, 448.0, np.dtype(ml_dtypes.float8_e4m3fn)),
    "e5m2": Format(3, -14, 57344.0, np.dtype(ml_dtypes.float8_e5m2)),
    "e2m3": Format(4, 0, 7.5, np.dtype(ml_dtypes.float6_e2m3fn)),
    "e3m2": Format(3, -2, 28.0, np.dtype(ml_dtypes.float6_e3m2fn)),
    "e2m1": Format(2, 0, 6.0, np.dtype(ml_dtypes.float4_e2m1fn)),
    "ue8m0": Format(1, -127, math.ldexp(1.0, 127), np.dtype(ml_dtypes.float8_e8m0fnu)),
}


def half_away(x: Array) -> Array:
    """Round to an integer, ties away from zero."""
    whole = np.trunc(x)
    return np.asarray(whole + np.copysign(np.abs(x - whole) >= 0.5, x))


TO_INTEGER: dict[str, Callable[[Array], Array]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
    "rna": half_away,
}


def rounded(x: Array, form: Format, mode: str = "rn") -> Array:
    """Round an exact or sticky f64 to a format of at most 51 bits. The result is also f64.

    Beyond the largest finite number, the result is infinity or that number, as IEEE 754 (7.4) specifies for the mode.
    """
    with np.errstate(all="ignore"):
        _, e = np.frexp(x)
        unit = np.maximum(e - form.precision, form.emin - form.precision + 1)
        r = np.copysign(np.ldexp(TO_INTEGER[mode](np.ldexp(x, -unit)), unit), x)
        over = (np.abs(r) > form.largest) & np.isfinite(x)
        if np.any(over):
            beyond = np.where(_overflows(mode, x), np.inf, form.largest)
            r = np.where(over, np.copysign(beyond, x), r)
    return np.asarray(r)


def _overflows(mode: str, x: Array) -> Array:
    """Return a mask of the numbers that become infinite beyond the largest finite number."""
    if mode in ("rn", "rna"):
        return np.ones(np.shape(x), np.bool_)
    return np.asarray((x > 0) if mode == "rp" else (x < 0) if mode == "rm" else np.zeros(np.shape(x), np.bool_))


def sticky(s: Array, error: Array) -> Array:
    """Return the exact sum `s + error` rounded to odd, where `s` is its nearest f64."""
    inexact = error != 0
    if not inexact.any():
        return s
    inexact &= np.isfinite(s)
    bits = np.ascontiguousarray(np.atleast_1d(s)).view(np.int64).reshape(np.shape(s))
    away = (error > 0) == (s > 0)
    moved = np.where(inexact & ((bits & 1) == 0), np.where(away, bits + 1, bits - 1), bits)
    return np.ascontiguousarray(moved).view(np.float64).reshape(np.shape(s))


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the nearest f64 of `a + b`, and its error (Knuth)."""
    s = a + b
    t = s - a
    return np.asarray(s), np.asarray((a - (s - t)) + (b - t))


def sticky_sum(a: Array, b: Array) -> Array:
    """Return `a + b` of two f64, rounded to odd."""
    return sticky(*two_sum(a, b))


def sticky_fma(a: Array, b: Array, c: Array) -> Array:
    """Return `a·b + c` of numbers of at most 24 bits as f64, rounded to odd. The product is exact."""
    return sticky(*two_sum(a * b, c))


def narrow(x: Array, name: str, mode: str = "rn") -> Array:
    """Round f64 once to the named format, and return an array of its numpy type."""
    form = FORMATS[name]
    if form.precision == 53:
        return np.asarray(x)
    if mode == "rn" and name in ("f32", "f16"):
        return np.asarray(x).astype(form.dtype)  # numpy rounds f64 to these once.
    # ml_dtypes converts f64 through f32, which leaves values unchanged that are already rounded.
    return rounded(np.asarray(x), form, mode).astype(form.dtype)


def wide_int(x: Array) -> Array:
    """Return integers as f64, rounded to odd."""
    x = np.asarray(x)
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    low = x & np.asarray(0xFFFFFFFF, x.dtype)  # x = high + low, both exact in f64
    return sticky_sum((x - low).astype(np.float64), low.astype(np.float64))


# ------------------------------------------------------------------------------------------------- f64, exact rationals


def _nearest(n: Fraction, mode: str, negative: bool) -> float:
    """Return a rational number as f64. `negative` is the sign of a zero."""
    if n == 0:
        return -0.0 if negative else 0.0
    size = abs(n)
    e = size.numerator.bit_length() - size.denominator.bit_length()
    e -= Fraction(2) ** e > size
    unit = Fraction(2) ** max(e - 52, -1074)
    k, rest = divmod(size, unit)
    up = {
        "rn": rest * 2 > unit or (rest * 2 == unit and k % 2 == 1),
        "rz": False,
        "rm": n < 0 and rest != 0,
        "rp": n > 0 and rest != 0,
    }[mode]
    value = (k + up) * unit
    sign = -1.0 if n < 0 else 1.0
    if value >= Fraction(2) ** 1024:
        to_infinity = mode == "rn" or (mode == "rp" and n > 0) or (mode == "rm" and n < 0)
        return sign * (math.inf if to_infinity else FORMATS["f64"].largest)
    return math.copysign(float(value), sign)


def _root(x: Fraction) -> Fraction:
    """Return the square root of a rational number to 120 bits, plus one sticky bit."""
    shift = 400 + 2 * max(0, x.denominator.bit_length())
    scaled = (x.numerator << (2 * shift)) // x.denominator
    root = math.isqrt(scaled)
    more = root * root != scaled or scaled * x.denominator != x.numerator << (2 * shift)
    return Fraction(2 * root + more, 1 << (shift + 1))


def exact_f64(kind: str, mode: str, *operands: Array) -> Array:
    """Return `add`, `mul`, `fma`, `div` or `sqrt` of f64, rounded once by `mode`, element by element.

    Non-finite operands, and zeros that are divided or added, are left to f64 arithmetic, which is exact for them.
    """
    plain: dict[str, Callable[..., Array]] = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "fma": lambda a, b, c: a * b + c,
        "div": lambda a, b: a / b,
        "sqrt": np.sqrt,
    }
    exact: dict[str, Callable[..., Fraction]] = {
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "fma": lambda a, b, c: a * b + c,
        "div": lambda a, b: a / b,
        "sqrt": _root,
    }
    given = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in operands))
    with np.errstate(all="ignore"):
        out = np.array(plain[kind](*given))
    flat = out.reshape(-1)
    for i, row in enumerate(zip(*(x.reshape(-1).tolist() for x in given))):
        if not all(map(math.isfinite, row)) or (kind == "div" and not row[1]) or (kind == "sqrt" and row[0] <= 0):
            if kind == "fma" and not math.isfinite(row[2]) and all(map(math.isfinite, row[:2])):
                flat[i] = row[2]
            continue
        n = exact[kind](*map(Fraction, row))
        if n:
            flat[i] = _nearest(n, mode, False)
        else:
            flat[i] = _zero(kind, mode, row)
    return out


def _zero(kind: str, mode: str, row: tuple[float, ...]) -> float:
    """Return a zero with the sign that IEEE 754 (6.3) specifies for an exact result."""
    if kind in ("mul", "div"):
        return math.copysign(0.0, math.copysign(1.0, row[0]) * math.copysign(1.0, row[1]))
    if kind == "sqrt":
        return row[0]
    first = (
        row[0]
        if kind == "add"
        else math.copysign(row[0] * row[1], math.copysign(1.0, row[0]) * math.copysign(1.0, row[1]))
    )
    signs = math.copysign(1.0, first), math.copysign(1.0, row[-1])
    if signs[0] == signs[1]:
        return 0.0 * signs[0]
    return -0.0 if mode == "rm" else 0.0


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """Return `a·b + c` of f64, rounded once to nearest even.

    Uses the algorithm of Boldo and Melquiond, and exact rationals where an exponent is too large or too small for it.
    """
    x, y, z = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (a, b, c)))
    with np.errstate(all="ignore"):
        sizes = [np.frexp(v)[1] for v in (x, y, z)]
        product = sizes[0] + sizes[1]
        safe = (product < 1000) & (product > -900) & (sizes[2] < 1000) & (sizes[2] > -900) & (sizes[0] < 990)
        safe &= (sizes[1] < 990) & (x != 0) & (y != 0) & (z != 0)
        safe &= np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
        p = x * y
        split = 134217729.0  # 2^27 + 1 (Dekker)
        xh = split * x - (split * x - x)
        yh = split * y - (split * y - y)
        xl, yl = x - xh, y - yh
        low = ((xh * yh - p) + xh * yl + xl * yh) + xl * yl
        th, tl = two_sum(z, low)
        vh, vl = two_sum(p, th)
        r = np.array(vh + sticky_sum(tl, vl))
    rest = ~safe
    if np.any(rest):
        slow = exact_f64("fma", "rn", x[rest], y[rest], z[rest]) if r.ndim else exact_f64("fma", "rn", x, y, z)
        if r.ndim:
            r[rest] = slow
        else:
            r = slow
    return r
