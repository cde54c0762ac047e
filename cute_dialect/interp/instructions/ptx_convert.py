"""PTX `cvt` (PTX ISA 9.7.9.21): all pairs of types of sm_90, with rounding, saturation and packed results."""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import numpy as np

from cute_dialect.interp.instructions.floats import to_int
from cute_dialect.interp.instructions.ptx_floats import canonical, finish, flush
from cute_dialect.interp.instructions.ptx_rows import KINDS, Row, Words
from cute_dialect.interp.rounding import FORMATS, TO_INTEGER, exact_f64, narrow, rounded, wide_int
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Array


def _int_to_int(m: Words, a: Array) -> Array:
    if "sat" not in m:
        return a
    info = np.iinfo(KINDS[m.types[0]].dtype)
    values = [min(max(x, int(info.min)), int(info.max)) for x in a.tolist()]
    return np.array(values, KINDS[m.types[0]].dtype)


def _int_to_float(m: Words, a: Array) -> Array:
    target = m.types[0]
    if target == "f64" and a.dtype.itemsize == 8:
        return _clamped(m, _f64_of_int(a, m.mode))
    return finish(m, narrow(wide_int(a), target, m.mode))


def _f64_of_int(a: Array, mode: str) -> Array:
    """Convert 64-bit integers to f64: both halves are exact, and their sum is rounded."""
    low = a & np.asarray(0xFFFFFFFF, a.dtype)
    return exact_f64("add", mode, (a - low).astype(np.float64), low.astype(np.float64))


def _clamped(m: Words, x: Array) -> Array:
    """Apply `.sat` to a float: clamp to [0, 1], with NaN to 0."""
    return np.where(x > 0, np.minimum(x, 1.0), 0.0) if "sat" in m else x


def _float_to_int(m: Words, a: Array) -> Array:
    whole = TO_INTEGER[m.mode](flush(m, a).astype(np.float64))
    target = m.types[0]
    r = to_int(whole, a.dtype.itemsize * 8, int_leaf(int(target[1:])), target[0] == "s")
    return r.view(KINDS[target].dtype)


def _float_to_float(m: Words, a: Array) -> Array:
    """Convert a float to a wider or narrower float, or with `.rni` and similar to an integral value of its type."""
    target = m.types[0]
    # .ftz concerns f32 only, for the source or the result (9.7.9.21). For a result of f16, whose least number is far
    # larger, an H200 rounds the subnormal itself: .rm and .rp give the least f16 and not zero.
    x = (flush(m, a) if a.dtype == np.float32 and target != "f16" else a).astype(np.float64)
    if any(w in m for w in ("rni", "rzi", "rmi", "rpi")):
        x = np.copysign(TO_INTEGER[m.mode](x), x)
    if target == "f64":
        return _clamped(m, x)
    r = narrow(x, target, m.mode)
    if "sat" in m:
        r = _clamped(m, r.astype(np.float64)).astype(r.dtype)
    return canonical(flush(m, r) if r.dtype == np.float32 else r)


def _limited(m: Words, x: Array, name: str) -> Array:
    """Round f32 or f16 numbers to a narrower format, with `.relu` and `.satfinite`."""
    wide = x.astype(np.float64)
    if "relu" in m:
        wide = np.where((wide > 0) | np.isnan(wide), wide, 0.0)
    r = rounded(wide, FORMATS[name], m.mode)
    if "satfinite" in m:
        top = FORMATS[name].largest
        r = np.where(np.isnan(r), r, np.clip(r, -top, top))
    return r


def _narrowed(m: Words, a: Array) -> Array:
    """Convert f32 to f16 or bf16 with `.relu` or `.satfinite`, or to tf32."""
    target = m.types[0]
    return canonical(_limited(m, a, target).astype(FORMATS[target].dtype))


def _packed(m: Words, *given: Array) -> Array:
    """Pack two numbers in one register, the first operand in the upper half."""
    name = m.types[0].removesuffix("x2")
    pair = given[0] if len(given) == 1 else np.stack([given[1], given[0]], axis=-1)
    return canonical(_limited(m, pair, name).astype(FORMATS[name].dtype))


def _unpacked(m: Words, a: Array) -> Array:
    x = a.astype(np.float16)
    if "relu" in m:
        x = np.where((x > 0) | np.isnan(x), x, np.float16(0))
    return canonical(x)


def _beyond(target: str) -> str:
    """Return the integer types that `target` cannot represent entirely, to which `.sat` applies."""
    t = np.iinfo(KINDS[target].dtype)
    limits = ((name, np.iinfo(KINDS[name].dtype)) for name in _INT_NAMES)
    return ",".join(f".{name}" for name, s in limits if s.min < t.min or s.max > t.max)


_SECTION = "9.7.9.21"
_INT_NAMES = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
_INTS = "(.s8,.u8,.s16,.u16,.s32,.u32,.s64,.u64)"
_WIDE_INTS = "(.s16,.u16,.s32,.u32,.s64,.u64)"
_RND = "(.rn,.rz,.rm,.rp)"
_IRND = "(.rni,.rzi,.rmi,.rpi)"
_F8 = "(.e4m3x2,.e5m2x2)"

ROWS: tuple[Row, ...] = (
    Row(f"cvt{_INTS}{_INTS}", "s = t", _int_to_int, _SECTION),
    *(Row(f"cvt.sat.{t}({_beyond(t)})", "s = t", _int_to_int, _SECTION) for t in _INT_NAMES),
    Row(f"cvt{_RND}{{.sat}}(.f16,.f32,.f64){_INTS}", "s = t", _int_to_float, _SECTION),
    Row(f"cvt{_RND}.bf16{_WIDE_INTS}", "s = t", _int_to_float, _SECTION),
    Row(f"cvt{_IRND}{{.ftz}}{{.sat}}{_INTS}.f32", "s = t", _float_to_int, _SECTION),
    Row(f"cvt{_IRND}{{.sat}}{_INTS}(.f16,.f64)", "s = t", _float_to_int, _SECTION),
    Row(f"cvt{_IRND}{_WIDE_INTS}.bf16", "s = t", _float_to_int, _SECTION),
    Row("cvt{.ftz}{.sat}.f32(.f16,.f32)", "s = t", _float_to_float, _SECTION),
    Row("cvt{.ftz}.f32.bf16", "s = t", _float_to_float, _SECTION),
    Row("cvt{.ftz}{.sat}.f64.f32", "s = t", _float_to_float, _SECTION),
    Row("cvt{.sat}.f64(.f16,.f64)", "s = t", _float_to_float, _SECTION),
    Row("cvt.f64.bf16", "s = t", _float_to_float, _SECTION),
    Row("cvt{.sat}.f16.f16", "s = t", _float_to_float, _SECTION),
    Row(f"cvt{_RND}{{.ftz}}{{.sat}}.f16.f32", "s = t", _float_to_float, _SECTION),
    Row(f"cvt{_RND}{{.ftz}}{{.sat}}.f32.f64", "s = t", _float_to_float, _SECTION),
    Row(f"cvt{_RND}{{.sat}}.f16.f64", "s = t", _float_to_float, _SECTION),
    Row(f"cvt{_RND}.bf16(.f16,.f32,.f64)", "s = t", _float_to_float, _SECTION),
    Row(f"cvt{_RND}.f16.bf16", "s = t", _float_to_float, _SECTION),
    Row(f"cvt{_IRND}{{.ftz}}{{.sat}}.f32.f32", "s = t", _float_to_float, _SECTION),
    Row(f"cvt{_IRND}{{.sat}}.f16.f16", "s = t", _float_to_float, _SECTION),
    Row(f"cvt{_IRND}{{.sat}}.f64.f64", "s = t", _float_to_float, _SECTION),
    Row(f"cvt{_IRND}.bf16.bf16", "s = t", _float_to_float, _SECTION),
    Row("cvt(.rn,.rz)(.relu,.satfinite,.relu.satfinite)(.f16,.bf16).f32", "s = t", _narrowed, _SECTION),
    Row("cvt(.rn,.rz){.relu}{.satfinite}(.f16x2,.bf16x2).f32", "s = t t", _packed, _SECTION),
    Row("cvt.rna{.satfinite}.tf32.f32", "s = t", _narrowed, _SECTION),
    Row("cvt(.rn,.rz){.relu}.tf32.f32", "s = t", _narrowed, _SECTION),
    Row(f"cvt.rn.satfinite{{.relu}}{_F8}.f32", "s = t t", _packed, _SECTION),
    Row(f"cvt.rn.satfinite{{.relu}}{_F8}.f16x2", "s = t", _packed, _SECTION),
    Row(f"cvt.rn{{.relu}}.f16x2{_F8}", "s = t", _unpacked, _SECTION),
)

__all__ = ["ROWS"]
