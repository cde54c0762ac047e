"""Scalar arithmetic of PTX: floats, comparison and selection (PTX ISA 9.7.3 to 9.7.6), integers, logic and shifts.

Integers (9.7.1, 9.7.2, 9.7.8) are exact modulo 2^width; intermediate results that do not fit 64 bits are Python
integers. A float result is computed exactly, or rounded to odd (see `rounding`), and then rounded once in the
instruction's mode. Approximate instructions are computed in f64 and rounded to nearest. A computed NaN is the canonical
one, `0x7fffffff` or `0x7fff` (9.7.3: "single-precision instructions generate a canonical NaN").
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from cute_dialect.interp.errors import Fault
from cute_dialect.interp.instructions import lane_math
from cute_dialect.interp.instructions.lane_math import (
    COMPARISONS,
    Integer,
    count_ones,
    divide,
    dot,
    each,
    funnel_shift,
    high_product,
    leading_zeros,
    minmax,
    reverse_bits,
)
from cute_dialect.interp.instructions.ptx_text import KINDS, Row, Words
from cute_dialect.interp.rounding import FORMATS, narrow
from cute_dialect.interp.values import Array

_LEAST_F16, _LEAST_F32 = np.float16(2.0**-14), np.float32(2.0**-126)


def flush(m: Words, x: Array) -> Array:
    """Apply `.ftz`: replace subnormal f32 and f16 numbers by zeros of the same sign."""
    if "ftz" not in m or x.dtype == np.float64:
        return x
    small = np.abs(x) < _LEAST_F16 if x.dtype == np.float16 else np.abs(x.astype(np.float32, copy=False)) < _LEAST_F32
    return np.where(small, np.copysign(np.zeros((), x.dtype), x), x).astype(x.dtype) if small.any() else x


def canonical(x: Array) -> Array:
    """Replace NaN by the canonical NaN of the device; f64 keeps its own."""
    nan = np.isnan(x)
    if x.dtype == np.float64 or not nan.any():
        return x
    raw = np.dtype(f"u{x.dtype.itemsize}")
    return np.where(nan, np.asarray(np.iinfo(raw).max >> 1, raw), np.ascontiguousarray(x).view(raw)).view(x.dtype)


def finish(m: Words, x: Array) -> Array:
    """Apply modifiers to a rounded result: `.ftz`, `.sat` (to [0, 1], NaN to +0), `.relu` (negative to +0)."""
    x = flush(m, x)
    if "sat" in m:
        one = np.ones((), x.dtype)
        x = np.where(x > 0, np.where(x > one, one, x), np.zeros((), x.dtype)).astype(x.dtype)
    if "relu" in m:
        x = np.where((x > 0) | np.isnan(x), x, np.zeros((), x.dtype)).astype(x.dtype)
    return canonical(x)


def _rounded(kind: str) -> Callable[..., Array]:
    def compute(m: Words, *given: Array) -> Array:
        r = lane_math.rounded_once(kind, m.type, m.mode, *(flush(m, x).astype(np.float64) for x in given))
        return r if m.type == "f64" else finish(m, r)

    return compute


_add = _rounded("add")
_mul = _rounded("mul")
_fma = _rounded("fma")
_div = _rounded("div")
_sqrt = _rounded("sqrt")


def _sub(m: Words, a: Array, b: Array) -> Array:
    return _add(m, a, -b)


def _rcp(m: Words, a: Array) -> Array:
    return _div(m, np.ones((), a.dtype), a)


def _approximate(name: str) -> Callable[..., Array]:
    f = lane_math.FUNCTIONS[name]

    def compute(m: Words, a: Array) -> Array:
        return finish(m, narrow(np.asarray(f(flush(m, a).astype(np.float64))), m.type))

    return compute


def _div_approx(m: Words, a: Array, b: Array) -> Array:
    """Divide approximately. For 2^126 < |b| < 2^128 the result is zero, or NaN for an infinite `a` (9.7.3.8)."""
    x, y = flush(m, a).astype(np.float64), flush(m, b).astype(np.float64)
    zero = np.copysign(0.0, np.copysign(1.0, x) * np.copysign(1.0, y))
    huge = (np.abs(y) > 2.0**126) & np.isfinite(y)
    r = np.where(huge, np.where(np.isinf(x) | np.isnan(x), np.nan, zero), x / y)
    return finish(m, narrow(r, "f32"))


def _float_minmax(m: Words, a: Array, b: Array) -> Array:
    """Compute `max` or `min` (9.7.3.12). Without `.NaN` a number wins over NaN.

    With `.xorsign.abs`, absolute values are compared and the result gets the sign of the product.
    """
    x, y = flush(m, a), flush(m, b)
    sign = np.signbit(x) ^ np.signbit(y)
    if "abs" in m:
        x, y = np.abs(x), np.abs(y)
    r = lane_math.minmax_floats(x, y, m.all[0] == "max", "NaN" in m)
    if "abs" in m:
        r = np.where(np.isnan(r), r, np.where(sign, -r, r)).astype(r.dtype)
    return canonical(r)


def _minmax_of_three(m: Words, a: Array, b: Array, c: Array) -> Array:
    """Compute `max` or `min` of three numbers, or with `.abs` of their absolute values, from left to right."""
    given = [np.abs(x) if "abs" in m else x for x in (flush(m, a), flush(m, b), flush(m, c))]
    first = lane_math.minmax_floats(given[0], given[1], m.all[0] == "max", "NaN" in m)
    return canonical(lane_math.minmax_floats(first, given[2], m.all[0] == "max", "NaN" in m))


def _sign(f: Callable[[Array], Array]) -> Callable[..., Array]:
    return lambda m, a: canonical(flush(m, f(a)))


_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compare(m: Words, a: Array, b: Array) -> Array:
    """Compare two values (9.3.1)."""
    word = m.all[1]
    if a.dtype.kind in "iu":
        return np.asarray(COMPARISONS[_UNSIGNED.get(word, word)](a, b))
    return lane_math.compare_floats(word, flush(m, a), flush(m, b))


def _combined(m: Words, a: Array, b: Array, c: Array | None = None) -> Array:
    t = compare(m, a, b)
    if c is None:
        return t
    return t & c if "and" in m else t | c if "or" in m else t ^ c


def _setp(m: Words, a: Array, b: Array, c: Array | None = None) -> tuple[Array, Array]:
    """Return the comparison and its negation, each combined with `c` (9.7.5.2)."""
    t = compare(m, a, b)
    if c is None:
        return t, ~t
    f = np.bitwise_and if "and" in m else np.bitwise_or if "or" in m else np.bitwise_xor
    return f(t, c), f(~t, c)


def _set(m: Words, a: Array, b: Array, c: Array | None = None) -> Array:
    """Return all ones or 1.0 where the comparison is true, else 0 (9.7.5.1)."""
    true = _combined(m, a, b, c)
    if m.types[0] == "f32":
        return true.astype(np.float32)
    return -true.astype(np.int32)


def _selp(m: Words, a: Array, b: Array, c: Array) -> Array:
    return np.where(c, a, b)


def _slct(m: Words, a: Array, b: Array, c: Array) -> Array:
    """Return `a` where `c` >= 0, else `b`. -0 counts as 0, and NaN selects `b` (9.7.5.4)."""
    return np.where(flush(m, c) >= 0, a, b)


def _copysign(m: Words, a: Array, b: Array) -> Array:
    """Return `b` with the sign of `a` (9.7.3.2)."""
    return np.copysign(b, a)


def _testp(m: Words, a: Array) -> Array:
    """Classify numbers; "positive and negative zero are considered normal numbers" (9.7.3.1)."""
    size, least = np.abs(a), FORMATS[m.type].least
    tests: dict[str, Callable[[], Array]] = {
        "finite": lambda: np.isfinite(a),
        "infinite": lambda: np.isinf(a),
        "number": lambda: ~np.isnan(a),
        "notanumber": lambda: np.isnan(a),
        "normal": lambda: np.isfinite(a) & ((size >= least) | (a == 0)),
        "subnormal": lambda: (size < least) & (a != 0),
    }
    return tests[m.all[1]]()


_RND = "(.rn,.rz,.rm,.rp)"
_DEFAULT = "{.rn,.rz,.rm,.rp}"
_HALF = "(.f16,.f16x2)"
_BF16 = "(.bf16,.bf16x2)"
_CMP_F = "(.eq,.ne,.lt,.le,.gt,.ge,.equ,.neu,.ltu,.leu,.gtu,.geu,.num,.nan)"
_CMP_U = "(.eq,.ne,.lt,.le,.gt,.ge,.lo,.ls,.hi,.hs)"
_CMP_S = "(.eq,.ne,.lt,.le,.gt,.ge)"
_BOOL = "(.and,.or,.xor)"
_COMPARED = (
    (f"{_CMP_F}", "{.ftz}.f32"),
    (f"{_CMP_F}", ".f64"),
    (f"{_CMP_U}", "(.u16,.u32,.u64)"),
    (f"{_CMP_S}", "(.s16,.s32,.s64)"),
    ("(.eq,.ne)", "(.b16,.b32,.b64)"),
)
_COMPARED_HALVES = ((f"{_CMP_F}", "{.ftz}.f16"), (f"{_CMP_F}", ".bf16"))
_SET = (
    (f"{_CMP_F}", "{.ftz}(.u32,.s32,.f32)(.f32)"),
    (f"{_CMP_F}", "(.u32,.s32,.f32)(.f64)"),
    (f"{_CMP_U}", "(.u32,.s32,.f32)(.u16,.u32,.u64)"),
    (f"{_CMP_S}", "(.u32,.s32,.f32)(.s16,.s32,.s64)"),
    ("(.eq,.ne)", "(.u32,.s32,.f32)(.b16,.b32,.b64)"),
)

FLOAT_ROWS: tuple[Row, ...] = (
    Row(f"add{_DEFAULT}{{.ftz}}{{.sat}}.f32", "t = t t", _add, "9.7.3.3"),
    Row(f"add{_DEFAULT}.f64", "t = t t", _add, "9.7.3.3"),
    Row(f"sub{_DEFAULT}{{.ftz}}{{.sat}}.f32", "t = t t", _sub, "9.7.3.4"),
    Row(f"sub{_DEFAULT}.f64", "t = t t", _sub, "9.7.3.4"),
    Row(f"mul{_DEFAULT}{{.ftz}}{{.sat}}.f32", "t = t t", _mul, "9.7.3.5"),
    Row(f"mul{_DEFAULT}.f64", "t = t t", _mul, "9.7.3.5"),
    Row(f"fma{_RND}{{.ftz}}{{.sat}}.f32", "t = t t t", _fma, "9.7.3.6"),
    Row(f"fma{_RND}.f64", "t = t t t", _fma, "9.7.3.6"),
    Row(f"add{_DEFAULT}{{.ftz}}.f32x2", "t = t t", _add, "9.7.3.3"),
    Row(f"sub{_DEFAULT}{{.ftz}}.f32x2", "t = t t", _sub, "9.7.3.4"),
    Row(f"mul{_DEFAULT}{{.ftz}}.f32x2", "t = t t", _mul, "9.7.3.5"),
    Row(f"fma{_RND}{{.ftz}}.f32x2", "t = t t t", _fma, "9.7.3.6"),
    Row(f"mad{_RND}{{.ftz}}{{.sat}}.f32", "t = t t t", _fma, "9.7.3.7"),
    Row(f"mad{_RND}.f64", "t = t t t", _fma, "9.7.3.7"),
    Row("div.approx{.ftz}.f32", "t = t t", _div_approx, "9.7.3.8", "2 ulp for |b| in [2^-126, 2^126]"),
    Row("div.full{.ftz}.f32", "t = t t", _div, "9.7.3.8", "2 ulp"),
    Row(f"div{_RND}{{.ftz}}.f32", "t = t t", _div, "9.7.3.8"),
    Row(f"div{_RND}.f64", "t = t t", _div, "9.7.3.8"),
    Row("abs{.ftz}.f32", "t = t", _sign(np.abs), "9.7.3.9"),
    Row("abs.f64", "t = t", _sign(np.abs), "9.7.3.9"),
    Row("neg{.ftz}.f32", "t = t", _sign(np.negative), "9.7.3.10"),
    Row("neg.f64", "t = t", _sign(np.negative), "9.7.3.10"),
    Row("(min,max){.ftz}{.NaN}{.xorsign.abs}.f32", "t = t t", _float_minmax, "9.7.3.11, 9.7.3.12"),
    Row("(min,max).f64", "t = t t", _float_minmax, "9.7.3.11, 9.7.3.12"),
    Row("(min,max){.ftz}{.NaN}{.abs}.f32", "t = t t t", _minmax_of_three, "9.7.3.11, 9.7.3.12"),
    Row("rcp.approx{.ftz}.f32", "t = t", _rcp, "9.7.3.13", "1 ulp"),
    Row(f"rcp{_RND}{{.ftz}}.f32", "t = t", _rcp, "9.7.3.13"),
    Row(f"rcp{_RND}.f64", "t = t", _rcp, "9.7.3.13"),
    Row("sqrt.approx{.ftz}.f32", "t = t", _sqrt, "9.7.3.15", "2^-23 relative"),
    Row(f"sqrt{_RND}{{.ftz}}.f32", "t = t", _sqrt, "9.7.3.15"),
    Row(f"sqrt{_RND}.f64", "t = t", _sqrt, "9.7.3.15"),
    Row("rsqrt.approx{.ftz}.f32", "t = t", _approximate("rsqrt"), "9.7.3.16", "2^-22.9 relative"),
    Row("rsqrt.approx.f64", "t = t", _approximate("rsqrt"), "9.7.3.16", "none stated"),
    Row(
        "sin.approx{.ftz}.f32",
        "t = t",
        _approximate("sin"),
        "9.7.3.18",
        "2^-20.5 absolute in [-2π, 2π], 2^-14.7 in [-100π, 100π]",
    ),
    Row(
        "cos.approx{.ftz}.f32",
        "t = t",
        _approximate("cos"),
        "9.7.3.19",
        "2^-20.5 absolute in [-2π, 2π], 2^-14.7 in [-100π, 100π]",
    ),
    Row(
        "lg2.approx{.ftz}.f32",
        "t = t",
        _approximate("log2"),
        "9.7.3.20",
        "2^-22 absolute in (0.5, 2), 2^-22 relative outside",
    ),
    Row("ex2.approx{.ftz}.f32", "t = t", _approximate("exp2"), "9.7.3.21", "2 ulp"),
    Row("tanh.approx.f32", "t = t", _approximate("tanh"), "9.7.3.22", "2^-11 relative"),
    Row("copysign(.f32,.f64)", "t = t t", _copysign, "9.7.3.2"),
    Row("testp(.finite,.infinite,.number,.notanumber,.normal,.subnormal)(.f32,.f64)", "pred = t", _testp, "9.7.3.1"),
    Row(f"add{{.rn}}{{.ftz}}{{.sat}}{_HALF}", "t = t t", _add, "9.7.4.1"),
    Row(f"add{{.rn}}{_BF16}", "t = t t", _add, "9.7.4.1"),
    Row(f"sub{{.rn}}{{.ftz}}{{.sat}}{_HALF}", "t = t t", _sub, "9.7.4.2"),
    Row(f"sub{{.rn}}{_BF16}", "t = t t", _sub, "9.7.4.2"),
    Row(f"mul{{.rn}}{{.ftz}}{{.sat}}{_HALF}", "t = t t", _mul, "9.7.4.3"),
    Row(f"mul{{.rn}}{_BF16}", "t = t t", _mul, "9.7.4.3"),
    Row(f"fma.rn{{.ftz}}{{.sat,.relu}}{_HALF}", "t = t t t", _fma, "9.7.4.4"),
    Row(f"fma.rn{{.relu}}{_BF16}", "t = t t t", _fma, "9.7.4.4"),
    Row(f"neg{{.ftz}}{_HALF}", "t = t", _sign(np.negative), "9.7.4.5"),
    Row(f"neg{_BF16}", "t = t", _sign(np.negative), "9.7.4.5"),
    Row(f"abs{{.ftz}}{_HALF}", "t = t", _sign(np.abs), "9.7.4.6"),
    Row(f"abs{_BF16}", "t = t", _sign(np.abs), "9.7.4.6"),
    Row(f"(min,max){{.ftz}}{{.NaN}}{{.xorsign.abs}}{_HALF}", "t = t t", _float_minmax, "9.7.4.7, 9.7.4.8"),
    Row(f"(min,max){{.NaN}}{{.xorsign.abs}}{_BF16}", "t = t t", _float_minmax, "9.7.4.7, 9.7.4.8"),
    Row(f"tanh.approx{_HALF}", "t = t", _approximate("tanh"), "9.7.4.9", "2^-10.987 absolute"),
    Row(f"tanh.approx{_BF16}", "t = t", _approximate("tanh"), "9.7.4.9", "2^-8 absolute"),
    Row(f"ex2.approx{_HALF}", "t = t", _approximate("exp2"), "9.7.4.10", "2^-9.9 relative"),
    Row(f"ex2.approx.ftz{_BF16}", "t = t", _approximate("exp2"), "9.7.4.10", "2^-7 relative"),
    *(Row(f"setp{cmp}{types}", "pred pred = t t", _setp, "9.7.5.2") for cmp, types in _COMPARED),
    *(Row(f"setp{cmp}{types}", "pred = t t", _setp, "9.7.6.2") for cmp, types in _COMPARED_HALVES),
    *(Row(f"setp{cmp}{_BOOL}{types}", "pred pred = t t pred", _setp, "9.7.5.2") for cmp, types in _COMPARED),
    *(Row(f"setp{cmp}{_BOOL}{types}", "pred = t t pred", _setp, "9.7.6.2") for cmp, types in _COMPARED_HALVES),
    *(Row(f"set{cmp}{types}", "s = t t", _set, "9.7.5.1") for cmp, types in _SET),
    *(Row(f"set{cmp}{_BOOL}{types}", "s = t t pred", _set, "9.7.5.1") for cmp, types in _SET),
    Row("selp(.b16,.b32,.b64,.u16,.u32,.u64,.s16,.s32,.s64,.f32,.f64)", "t = t t pred", _selp, "9.7.5.3"),
    Row("slct(.b16,.b32,.b64,.u16,.u32,.u64,.s16,.s32,.s64,.f32,.f64).s32", "s = s s t", _slct, "9.7.5.4"),
    Row("slct{.ftz}(.b16,.b32,.b64,.u16,.u32,.u64,.s16,.s32,.s64,.f32,.f64).f32", "s = s s t", _slct, "9.7.5.4"),
)

# -- integers, logic and shifts ----------------------------------------------------------------------------------------


def _exact(f: Callable[..., int]) -> Callable[..., Array]:
    """Return a function of Python integers as one that is applied to each element, modulo 2^64."""
    return lambda m, *given: each(partial(f, m), *given)


def _bounds(m: Words) -> tuple[int, int]:
    info = np.iinfo(KINDS[m.types[-1]].dtype)
    return int(info.min), int(info.max)


def _clamped(m: Words, x: int) -> int:
    lo, hi = _bounds(m)
    return min(max(x, lo), hi) if "sat" in m else x


def _wrap(f: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    return lambda m, a, b: f(a, b)


def _int_add(m: Words, a: Array, b: Array) -> Array:
    return _exact(lambda m, x, y: _clamped(m, x + y))(m, a, b) if "sat" in m else a + b


def _int_sub(m: Words, a: Array, b: Array) -> Array:
    return _exact(lambda m, x, y: _clamped(m, x - y))(m, a, b) if "sat" in m else a - b


def _int_mul(m: Words, a: Array, b: Array) -> Array:
    return np.asarray(high_product(a, b, m.width)) if "hi" in m else a * b


def _mul_wide(m: Words, a: Array, b: Array) -> Array:
    wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
    return a.astype(wide) * b.astype(wide)


def _mul24(m: Words, x: int, y: int) -> int:
    """Return the product of the low 24 bits, or its bits 47 to 16 with `.hi` (9.7.1.5)."""

    def cut(v: int) -> int:
        v &= (1 << 24) - 1
        return v - (1 << 24) if m.types[-1] == "s32" and v >> 23 else v

    return cut(x) * cut(y) >> (16 if "hi" in m else 0)


def _mad(m: Words, a: Array, b: Array, c: Array) -> Array:
    product = _int_mul(m, a, b)
    return _exact(lambda m, x, y: _clamped(m, x + y))(m, product, c) if "sat" in m else product + c


def _mad24(m: Words, x: int, y: int, z: int) -> int:
    product = _mul24(m, x, y) & 0xFFFFFFFF
    if m.types[-1] == "s32" and product >> 31:
        product -= 1 << 32
    return _clamped(m, product + z)


def _division(kind: str) -> Callable[..., Array]:
    return lambda m, a, b: np.asarray(divide(kind, a, b))  # Division by zero is reported separately.


def _minmax(m: Words, a: Array, b: Array) -> Array:
    r = np.asarray(minmax(a, b, m.all[0] == "max"))
    return np.maximum(r, 0) if "relu" in m else r


def _bfind(m: Words, x: int) -> int:
    """Return the highest non-sign bit, -1 if there is none.

    With `.shiftamt`, return its distance from the top (9.7.1.17).
    """
    top = (~x if x < 0 else x).bit_length() - 1
    return m.width - 1 - top if "shiftamt" in m and top >= 0 else top


def _bit_function(f: Callable[[Integer, int], Integer]) -> Callable[..., Array]:
    """Return a function of unsigned bits and their width as that of a row."""
    return lambda m, a: np.asarray(f(a, m.width))


def _eight_bits(m: Words, n: int) -> int:
    """Return a position or length, which is "restricted to 0..255". Raises Fault for a larger one in a 64-bit field.

    An H200 uses the low 8 bits for 32-bit fields and behaves differently for 64-bit fields.
    """
    if n > 255 and m.width == 64:
        raise Fault("poison", f"{m.all[0]}: position and length must be in [0, 255], got {n}")
    return n & 255


def _bfe(m: Words, x: int, pos: int, count: int) -> int:
    """Return the bits from `pos` on, sign-extended for signed types (9.7.1.19)."""
    pos, count, width = _eight_bits(m, pos), _eight_bits(m, count), m.width
    sign = 0
    if m.types[-1][0] == "s" and count:
        sign = x >> min(pos + count - 1, width - 1) & 1
    raw = x & (1 << width) - 1
    valid = min(count, max(width - pos, 0))
    return raw >> pos & (1 << valid) - 1 | (-1 << valid if sign else 0)


def _bfi(m: Words, a: int, b: int, pos: int, count: int) -> int:
    """Return `b` with the low `count` bits of `a` inserted at `pos` (9.7.1.20)."""
    pos, count = _eight_bits(m, pos), _eight_bits(m, count)
    mask = ((1 << count) - 1 << pos) & (1 << m.width) - 1
    return b & ~mask | a << pos & mask


def _szext(m: Words, x: int, n: int) -> int:
    """Return the low `n` bits, sign- or zero-extended (9.7.1.21)."""
    if n >= 32 and "clamp" in m:
        return x
    n &= 31
    low = x & (1 << n) - 1
    return low | (-1 << n if m.types[-1] == "s32" and n and low >> (n - 1) else 0)


def _bmsk(m: Words, pos: int, count: int) -> int:
    """Return `count` ones starting at bit `pos` (9.7.1.22)."""
    if "clamp" in m:
        return ((1 << min(count, 32)) - 1 << pos) & 0xFFFFFFFF if pos < 32 else 0
    return ((1 << (count & 31)) - 1 << (pos & 31)) & 0xFFFFFFFF


def _parts(x: Array, signed: bool, size: int) -> Array:
    """Return the parts of `size` bytes of 32-bit integers, lowest first, along a new last axis."""
    return np.ascontiguousarray(x).view(np.dtype(f"{'i' if signed else 'u'}{size}")).reshape(-1, 4 // size)


def _dp4a(m: Words, a: Array, b: Array, c: Array) -> Array:
    return dot(_parts(a, m.types[0] == "s32", 1), _parts(b, m.types[1] == "s32", 1), c)


def _dp2a(m: Words, a: Array, b: Array, c: Array) -> Array:
    y = _parts(b, m.types[1] == "s32", 1)
    return dot(_parts(a, m.types[0] == "s32", 2), y[:, 2:] if "hi" in m else y[:, :2], c)


def _lop3(m: Words, a: int, b: int, c: int, table: int) -> int:
    """Look up each result bit in `table`, indexed by the three input bits with `a` highest (9.7.8.6)."""
    r = 0
    for i in range(8):
        if table >> i & 1:
            r |= (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    return r & 0xFFFFFFFF


def _shift(m: Words, x: int, n: int) -> int:
    """Shift. Amounts are clamped to the width, which shifts out all bits (9.7.8.8, 9.7.8.9)."""
    n = min(n, m.width)
    return x << n if m.all[0] == "shl" else x >> n


def _shf(m: Words, a: int, b: int, c: int) -> int:
    """Return a funnel shift of `b:a` (9.7.8.7)."""
    return funnel_shift(b, a, min(c, 32) if "clamp" in m else c & 31, 32, "l" in m)


_MODES: dict[str, Callable[[int], tuple[int, int, int, int]]] = {
    "f4e": lambda n: (n, n + 1, n + 2, n + 3),
    "b4e": lambda n: (n, n - 1, n - 2, n - 3),
    "rc8": lambda n: (n, n, n, n),
    "ecl": lambda n: (max(n, 0), max(n, 1), max(n, 2), max(n, 3)),
    "ecr": lambda n: (min(n, 0), min(n, 1), min(n, 2), min(n, 3)),
    "rc16": lambda n: ((n & 1) * 2, (n & 1) * 2 + 1, (n & 1) * 2, (n & 1) * 2 + 1),
}


def _prmt(m: Words, a: int, b: int, c: int) -> int:
    """Select four of the eight bytes of `b:a`. Bit 3 of a selector replicates its byte's sign (9.7.9.7)."""
    pool = (b << 32 | a).to_bytes(8, "little")
    mode = m.all[-1]
    if mode in _MODES:
        return int.from_bytes(bytes(pool[i % 8] for i in _MODES[mode](c & 3)), "little")
    out = 0
    for i in range(4):
        nibble = c >> 4 * i & 15
        byte = pool[nibble & 7]
        out |= (0xFF * (byte >> 7) if nibble & 8 else byte) << 8 * i
    return out


def _by_zero(m: Words, a: Array, b: Array) -> Array:
    return b == 0


_INT = "(.s16,.u16,.s32,.u32,.s64,.u64)"
_SIGNED = "(.s16,.s32,.s64)"
_NARROW = "(.s16,.u16,.s32,.u32)"
_BY_ZERO = (_by_zero, "division by zero, whose result is undefined in PTX", "division")

INTEGER_ROWS: tuple[Row, ...] = (
    Row(f"add{_INT}", "t = t t", _int_add, "9.7.1.1"),
    Row("add.sat.s32", "t = t t", _int_add, "9.7.1.1"),
    Row("add(.s16x2,.u16x2)", "t = t t", _int_add, "9.7.1.1"),
    Row(f"sub{_INT}", "t = t t", _int_sub, "9.7.1.2"),
    Row("sub.sat.s32", "t = t t", _int_sub, "9.7.1.2"),
    Row(f"mul(.lo,.hi){_INT}", "t = t t", _int_mul, "9.7.1.3"),
    Row(f"mul.wide{_NARROW}", "w = t t", _mul_wide, "9.7.1.3"),
    Row(f"mad(.lo,.hi){_INT}", "t = t t t", _mad, "9.7.1.4"),
    Row("mad.hi.sat.s32", "t = t t t", _mad, "9.7.1.4"),
    Row(f"mad.wide{_NARROW}", "w = t t w", lambda m, a, b, c: _mul_wide(m, a, b) + c, "9.7.1.4"),
    Row("mul24(.lo,.hi)(.s32,.u32)", "t = t t", _exact(_mul24), "9.7.1.5"),
    Row("mad24(.lo,.hi)(.s32,.u32)", "t = t t t", _exact(_mad24), "9.7.1.6"),
    Row("mad24.hi.sat.s32", "t = t t t", _exact(_mad24), "9.7.1.6"),
    Row(f"sad{_INT}", "t = t t t", lambda m, a, b, c: c + (np.maximum(a, b) - np.minimum(a, b)), "9.7.1.7"),
    Row(f"div{_INT}", "t = t t", _division("div"), "9.7.1.8", undefined=_BY_ZERO),
    Row(f"rem{_INT}", "t = t t", _division("rem"), "9.7.1.9", undefined=_BY_ZERO),
    Row(f"abs{_SIGNED}", "t = t", lambda m, a: np.abs(a), "9.7.1.10"),
    Row(f"neg{_SIGNED}", "t = t", lambda m, a: -a, "9.7.1.11"),
    Row(f"(min,max){_INT}", "t = t t", _minmax, "9.7.1.12, 9.7.1.13"),
    Row("(min,max).relu.s32", "t = t t", _minmax, "9.7.1.12, 9.7.1.13"),
    Row("(min,max).u16x2", "t = t t", _minmax, "9.7.1.12, 9.7.1.13"),
    Row("(min,max){.relu}.s16x2", "t = t t", _minmax, "9.7.1.12, 9.7.1.13"),
    Row("popc(.b32,.b64)", "u32 = t", _bit_function(count_ones), "9.7.1.14"),
    Row("clz(.b32,.b64)", "u32 = t", _bit_function(leading_zeros), "9.7.1.15"),
    Row("bfind{.shiftamt}(.s32,.u32,.s64,.u64)", "u32 = t", _exact(_bfind), "9.7.1.16"),
    Row("brev(.b32,.b64)", "t = t", _bit_function(reverse_bits), "9.7.1.18"),
    Row("bfe(.s32,.u32,.s64,.u64)", "t = t u32 u32", _exact(_bfe), "9.7.1.19"),
    Row("bfi(.b32,.b64)", "t = t t u32 u32", _exact(_bfi), "9.7.1.20"),
    Row("szext(.clamp,.wrap)(.s32,.u32)", "t = t u32", _exact(_szext), "9.7.1.21"),
    Row("bmsk(.clamp,.wrap).b32", "t = t t", _exact(_bmsk), "9.7.1.22"),
    Row("dp4a(.s32,.u32)(.s32,.u32)", "dot = s t dot", _dp4a, "9.7.1.23"),
    Row("dp2a(.lo,.hi)(.s32,.u32)(.s32,.u32)", "dot = s t dot", _dp2a, "9.7.1.24"),
    Row("and(.b16,.b32,.b64,.pred)", "t = t t", _wrap(np.bitwise_and), "9.7.8.1"),
    Row("or(.b16,.b32,.b64,.pred)", "t = t t", _wrap(np.bitwise_or), "9.7.8.2"),
    Row("xor(.b16,.b32,.b64,.pred)", "t = t t", _wrap(np.bitwise_xor), "9.7.8.3"),
    Row("not(.b16,.b32,.b64,.pred)", "t = t", lambda m, a: ~a, "9.7.8.4"),
    Row("cnot(.b16,.b32,.b64)", "t = t", lambda m, a: a == 0, "9.7.8.5"),
    Row("lop3.b32", "t = t t t u32", _exact(_lop3), "9.7.8.6"),
    Row("shf(.l,.r)(.clamp,.wrap).b32", "t = t t u32", _exact(_shf), "9.7.8.7"),
    Row("shl(.b16,.b32,.b64)", "t = t u32", _exact(_shift), "9.7.8.8"),
    Row("shr(.b16,.b32,.b64,.u16,.u32,.u64,.s16,.s32,.s64)", "t = t u32", _exact(_shift), "9.7.8.9"),
    Row("prmt.b32{.f4e,.b4e,.rc8,.ecl,.ecr,.rc16}", "b32 = b32 b32 b32", _exact(_prmt), "9.7.9.7"),
)
