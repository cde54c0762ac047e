"""Float arithmetic, comparison and selection of PTX (PTX ISA 9.7.3 to 9.7.6).

A result is computed exactly, or rounded to odd (see `rounding`), and then rounded once in the instruction's mode.
Approximate instructions are computed in f64 and rounded to nearest. A computed NaN is the canonical one, `0x7fffffff`
or `0x7fff` (9.7.3: "single-precision instructions generate a canonical NaN").
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cute_dialect.interp.instructions.floats import minmax
from cute_dialect.interp.instructions.ptx_rows import Row, Words
from cute_dialect.interp.rounding import (
    FORMATS,
    exact_f64,
    fma_f64,
    narrow,
    sticky_fma,
    sticky_sum,
)
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


def _exactly(kind: str, sticky: Callable[..., Array]) -> Callable[..., Array]:
    """Return an operation that rounds once.

    `kind` is that of `rounding.exact_f64`; `sticky` serves narrower numbers.
    """
    plain: dict[str, Callable[..., Array]] = {
        "add": np.add,
        "mul": np.multiply,
        "div": np.divide,
        "sqrt": np.sqrt,
        "fma": fma_f64,
    }

    def compute(m: Words, *given: Array) -> Array:
        args = [flush(m, x).astype(np.float64) for x in given]
        if m.type == "f64":
            return plain[kind](*args) if m.mode == "rn" else exact_f64(kind, m.mode, *args)
        r = sticky(*args)
        if m.mode == "rm" and kind in ("add", "fma"):  # An exact sum of zero is -0 (IEEE 754, 6.3).
            first = args[0] if kind == "add" else args[0] * args[1]
            plus = ~np.signbit(first) & ~np.signbit(args[-1]) & (first == 0)
            r = np.where((r == 0) & ~plus, -0.0, r)
        return finish(m, narrow(r, m.type, m.mode))

    return compute


_add = _exactly("add", sticky_sum)
_mul = _exactly("mul", np.multiply)
_fma = _exactly("fma", sticky_fma)
_div = _exactly("div", np.divide)
_sqrt = _exactly("sqrt", np.sqrt)


def _sub(m: Words, a: Array, b: Array) -> Array:
    return _add(m, a, -b)


def _rcp(m: Words, a: Array) -> Array:
    return _div(m, np.ones((), a.dtype), a)


def _approximate(f: Callable[[Array], Array]) -> Callable[..., Array]:
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


def _minmax(m: Words, a: Array, b: Array) -> Array:
    """Compute `max` or `min` (9.7.3.12). Without `.NaN` a number wins over NaN.

    With `.xorsign.abs`, absolute values are compared and the result gets the sign of the product.
    """
    x, y = flush(m, a), flush(m, b)
    sign = np.signbit(x) ^ np.signbit(y)
    if "abs" in m:
        x, y = np.abs(x), np.abs(y)
    r = minmax(x, y, m.all[0] == "max", "NaN" in m)
    if "abs" in m:
        r = np.where(np.isnan(r), r, np.where(sign, -r, r)).astype(r.dtype)
    return canonical(r)


def _sign(f: Callable[[Array], Array]) -> Callable[..., Array]:
    return lambda m, a: canonical(flush(m, f(a)))


_ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


def compare(m: Words, a: Array, b: Array) -> Array:
    """Compare two values (9.3.1). `eq` to `ge` are false for NaN, `equ` to `geu` true; `num` and `nan` test for NaN."""
    word = m.all[1]
    if a.dtype.kind in "iu":
        return _ORDERED[word](a, b)
    x, y = flush(m, a), flush(m, b)
    nan = np.isnan(x) | np.isnan(y)
    if word in ("num", "nan"):
        return nan if word == "nan" else ~nan
    if word in _ORDERED:
        return _ORDERED[word](x, y) & ~nan
    return _ORDERED[word[:-1]](x, y) | nan


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

ROWS: tuple[Row, ...] = (
    Row(f"add{_DEFAULT}{{.ftz}}{{.sat}}.f32", "t = t t", _add, "9.7.3.3"),
    Row(f"add{_DEFAULT}.f64", "t = t t", _add, "9.7.3.3"),
    Row(f"sub{_DEFAULT}{{.ftz}}{{.sat}}.f32", "t = t t", _sub, "9.7.3.4"),
    Row(f"sub{_DEFAULT}.f64", "t = t t", _sub, "9.7.3.4"),
    Row(f"mul{_DEFAULT}{{.ftz}}{{.sat}}.f32", "t = t t", _mul, "9.7.3.5"),
    Row(f"mul{_DEFAULT}.f64", "t = t t", _mul, "9.7.3.5"),
    Row(f"fma{_RND}{{.ftz}}{{.sat}}.f32", "t = t t t", _fma, "9.7.3.6"),
    Row(f"fma{_RND}.f64", "t = t t t", _fma, "9.7.3.6"),
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
    Row("(min,max){.ftz}{.NaN}{.xorsign.abs}.f32", "t = t t", _minmax, "9.7.3.11, 9.7.3.12"),
    Row("(min,max).f64", "t = t t", _minmax, "9.7.3.11, 9.7.3.12"),
    Row("rcp.approx{.ftz}.f32", "t = t", _rcp, "9.7.3.13", "1 ulp"),
    Row(f"rcp{_RND}{{.ftz}}.f32", "t = t", _rcp, "9.7.3.13"),
    Row(f"rcp{_RND}.f64", "t = t", _rcp, "9.7.3.13"),
    Row("sqrt.approx{.ftz}.f32", "t = t", _sqrt, "9.7.3.15", "2^-23 relative"),
    Row(f"sqrt{_RND}{{.ftz}}.f32", "t = t", _sqrt, "9.7.3.15"),
    Row(f"sqrt{_RND}.f64", "t = t", _sqrt, "9.7.3.15"),
    Row("rsqrt.approx{.ftz}.f32", "t = t", _approximate(lambda x: 1 / np.sqrt(x)), "9.7.3.16", "2^-22.9 relative"),
    Row("rsqrt.approx.f64", "t = t", _approximate(lambda x: 1 / np.sqrt(x)), "9.7.3.16", "none stated"),
    Row(
        "sin.approx{.ftz}.f32",
        "t = t",
        _approximate(np.sin),
        "9.7.3.18",
        "2^-20.5 absolute in [-2π, 2π], 2^-14.7 in [-100π, 100π]",
    ),
    Row(
        "cos.approx{.ftz}.f32",
        "t = t",
        _approximate(np.cos),
        "9.7.3.19",
        "2^-20.5 absolute in [-2π, 2π], 2^-14.7 in [-100π, 100π]",
    ),
    Row(
        "lg2.approx{.ftz}.f32",
        "t = t",
        _approximate(np.log2),
        "9.7.3.20",
        "2^-22 absolute in (0.5, 2), 2^-22 relative outside",
    ),
    Row("ex2.approx{.ftz}.f32", "t = t", _approximate(np.exp2), "9.7.3.21", "2 ulp"),
    Row("tanh.approx.f32", "t = t", _approximate(np.tanh), "9.7.3.22", "2^-11 relative"),
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
    Row(f"(min,max){{.ftz}}{{.NaN}}{{.xorsign.abs}}{_HALF}", "t = t t", _minmax, "9.7.4.7, 9.7.4.8"),
    Row(f"(min,max){{.NaN}}{{.xorsign.abs}}{_BF16}", "t = t t", _minmax, "9.7.4.7, 9.7.4.8"),
    Row(f"tanh.approx{_HALF}", "t = t", _approximate(np.tanh), "9.7.4.9", "2^-10.987 absolute"),
    Row(f"tanh.approx{_BF16}", "t = t", _approximate(np.tanh), "9.7.4.9", "2^-8 absolute"),
    Row(f"ex2.approx{_HALF}", "t = t", _approximate(np.exp2), "9.7.4.10", "2^-9.9 relative"),
    Row(f"ex2.approx.ftz{_BF16}", "t = t", _approximate(np.exp2), "9.7.4.10", "2^-7 relative"),
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

__all__ = ["ROWS", "canonical", "finish", "flush"]
