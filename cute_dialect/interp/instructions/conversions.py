"""Conversions of PTX `cvt`, and the packed and narrow float conversions of nvvm, each as the equivalent `cvt`."""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.compiler.undefined import fail
from cute_dialect.interp.errors import InterpError, attr_of
from cute_dialect.interp.instructions.field_ops import over_row
from cute_dialect.interp.instructions.lane_math import to_int
from cute_dialect.interp.instructions.moves import bits_of, enum_word, from_bits
from cute_dialect.interp.instructions.ptx_scalars import canonical, finish, flush
from cute_dialect.interp.instructions.ptx_text import KINDS, Row, Rows, Words, not_modelled, packed, unpacked
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.rounding import FORMATS, TO_INTEGER, exact_f64, narrow, rounded, wide_int
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Array, Regs, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

_PACKED = {
    **{"f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "f8E8M0FNU": "ue8m0"},
    **{"f6E2M3FN": "e2m3", "f6E3M2FN": "e3m2", "f4E2M1FN": "e2m1"},
}
"""Narrow floats of nvvm's conversions -> their names in PTX."""


def emit_cvt(c: FnCompiler, op: Operation, opcode: str) -> None:
    """Emit a `cvt` of the op's operands, which are floats or packed floats in any register type.

    Raises InterpError if sm_90 has no such instruction.
    """
    row = _ROWS.find(opcode)
    if row is None:
        raise not_modelled(opcode)
    if c.program.algebra is not None:
        row = over_row(c.program.algebra, row, opcode, op)
    words = Words(opcode)
    (result,), sources = row.kinds(words)
    slots = [c.use(v) for v in op.operands]
    d = c.define(op.results[0])
    out = c.leaf_of(d)
    # A vector<4xf32> has the kind of its elements, each of which is an operand of PTX.
    ins = [(s, c.leaf_of(s), KINDS[k]) for s, k in zip(slots, sources if len(slots) > 2 else (sources[0], sources[-1]))]
    count = sum(max(1, 8 * leaf.size // kind.bits) for _, leaf, kind in ins)
    if count != len(sources):
        raise InterpError("unsupported", f"{opcode} takes {len(sources)} operands, got {count}")

    def step(R: Regs, g: Group) -> None:
        args: list[Array] = []
        uniform = True
        for s, leaf, kind in ins:
            v = R[s]
            _ = v == v  # Raises for poison.
            uniform = uniform and (not isinstance(v, np.ndarray) or v.ndim == len(leaf.shape))
            held = bits_of(to_lanes(v, leaf, g.lanes), leaf, g.lanes)
            parts = [held] if kind.bits >= 8 * leaf.size else np.split(held, 8 * leaf.size // kind.bits, axis=1)
            args.extend(unpacked(part, kind) for part in parts)
        if row.undefined is not None:
            message = f"{opcode}: {row.undefined[1]}"
            fail(g, row.undefined[0](words, *args), row.undefined[2], lambda at: message, 0)
        with np.errstate(all="ignore"):
            r = packed(np.asarray(row.compute(words, *args)), KINDS[result])
        R[d] = from_bits(r[:1] if uniform else r, out, uniform)

    c.emit(op, step)


def _modifiers(op: Operation, mode: str, saturated: bool) -> str:
    """Return the modifiers of an op's attributes, such as `.rn.relu.satfinite`. `mode` is the default rounding mode."""
    word = enum_word(attr_of(op, "rnd"))
    relu = ".relu" * ("true" in str(attr_of(op, "relu")))
    finite = ".satfinite" * (saturated or enum_word(attr_of(op, "sat")) == "satfinite")
    return f".{mode if word in ('', 'none') else word}" + (finite + relu if saturated else relu + finite)


def _target(op: Operation, attr: str, count: int = 2) -> str:
    t = attr_of(op, attr)
    name = t.name if t is not None else "f8E4M3FN"
    if name not in _PACKED:
        raise InterpError("unsupported", f"the type {name} is not supported; use one of {', '.join(_PACKED)}")
    return f"{_PACKED[name]}x{count}"


def _to_halves(kind: str) -> Builder:
    return lambda c, op: emit_cvt(c, op, f"cvt{_modifiers(op, 'rn', False)}.{kind}.f32")


def _to_pair(source: str) -> Builder:
    """Return the builder of a conversion to two narrow floats, which saturates unless they are ue8m0."""

    def build(c: FnCompiler, op: Operation) -> None:
        target = _target(op, "dstTy")
        emit_cvt(c, op, f"cvt{_modifiers(op, 'rn', target != 'ue8m0x2')}.{target}.{source}")

    return build


def _to_four(c: FnCompiler, op: Operation) -> None:
    relu = ".relu" * ("true" in str(attr_of(op, "relu")))
    emit_cvt(c, op, f"cvt.rs{relu}.satfinite.{_target(op, 'dstTy', 4)}.f32")


def _from_pair(target: str) -> Builder:
    return lambda c, op: emit_cvt(c, op, f"cvt{_modifiers(op, 'rn', False)}.{target}.{_target(op, 'srcType')}")


def _to_tf32(c: FnCompiler, op: Operation) -> None:
    emit_cvt(c, op, f"cvt{_modifiers(op, 'rn', False)}.tf32.f32")


OPS: dict[str, Builder] = {
    "nvvm.convert.f32x2.to.f16x2": _to_halves("f16x2"),
    "nvvm.convert.f32x2.to.bf16x2": _to_halves("bf16x2"),
    **{f"nvvm.convert.f32x2.to.f{bits}x2": _to_pair("f32") for bits in (4, 6, 8)},
    "nvvm.convert.f16x2.to.f8x2": _to_pair("f16x2"),
    "nvvm.convert.bf16x2.to.f8x2": _to_pair("bf16x2"),
    **{f"nvvm.convert.f32x4.to.f{bits}x4": _to_four for bits in (4, 6, 8)},
    **{f"nvvm.convert.f{bits}x2.to.f16x2": _from_pair("f16x2") for bits in (4, 6, 8)},
    "nvvm.convert.f8x2.to.bf16x2": _from_pair("bf16x2"),
    "nvvm.convert.float.to.tf32": _to_tf32,
}


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
    return _saturated(m, rounded(wide, FORMATS[name], m.mode), name)


_WITHOUT_NAN = ("e2m3", "e3m2", "e2m1")


def _saturated(m: Words, x: Array, name: str) -> Array:
    """Apply `.satfinite` to rounded numbers. A format without NaN gets its largest number for it."""
    if "satfinite" not in m:
        return x
    top = FORMATS[name].largest
    return np.where(np.isnan(x), top if name in _WITHOUT_NAN else x, np.clip(x, -top, top))


def _narrowed(m: Words, a: Array) -> Array:
    """Convert f32 to f16 or bf16 with `.relu` or `.satfinite`, or to tf32."""
    target = m.types[0]
    return canonical(_limited(m, a, target).astype(FORMATS[target].dtype))


def _packed(m: Words, *given: Array) -> Array:
    """Pack two numbers in one register, the first operand in the upper half."""
    name = m.types[0].removesuffix("x2")
    pair = given[0] if len(given) == 1 else np.stack([given[1], given[0]], axis=-1)
    return canonical(_limited(m, pair, name).astype(FORMATS[name].dtype))


def _random_fractions(name: str, count: int, bits: Array) -> list[Array]:
    """Return the random fractions of the operands of `cvt.rs`, first operand first, as multiples of 2^-16 or 2^-13.

    [?] The text of 9.7.9.21 says which bits two operands share, and its table was not available. Here both operands of
    a pair use the same 16 bits, of which the first pair's are the upper ones.
    """
    high, low = bits >> 16, bits & 0xFFFF
    if name == "f16":
        return [(x & 0x1FFF) / 2.0**13 for x in (high, low)]
    if name == "e2m1":  # The upper bytes of both halves belong to the first pair, the lower bytes to the second.
        high, low = high & 0xFF00 | low >> 8, (high & 0xFF) << 8 | low & 0xFF
    return [x / 2.0**16 for x in (high, low) for _ in range(count // 2)]


def _stochastic(m: Words, *given: Array) -> Array:
    """Round numbers to one of their neighbors: truncate the sum of a magnitude and a random fraction of its last place.

    The first operand becomes the highest element.
    """
    name, numbers = m.types[0][:-2], given[:-1]
    form = FORMATS[name]
    x = np.stack(numbers[::-1], axis=-1).astype(np.float64)
    fractions = np.stack(_random_fractions(name, len(numbers), given[-1].astype(np.int64))[::-1], axis=-1)
    if "relu" in m:
        x = np.where((x > 0) | np.isnan(x), x, 0.0)
    unit = np.maximum(np.frexp(x)[1] - form.precision, form.emin - form.precision + 1)
    r = np.copysign(np.ldexp(np.floor(np.abs(np.ldexp(x, -unit)) + fractions), unit), x)
    r = np.where(np.isfinite(x), np.where(np.abs(r) > form.largest, np.copysign(np.inf, x), r), x)
    return canonical(_saturated(m, r, name).astype(form.dtype))


def _exponents(m: Words, *given: Array) -> Array:
    """Round numbers to powers of two of the type ue8m0: `.rz` down, `.rp` up, at least 2^-127. NaN is 0xff.

    [?] The sign is ignored, as in CUDA's header for the host, and without `.satfinite` a larger number gives NaN.
    """
    pair = given[0] if len(given) == 1 else np.stack([given[1], given[0]], axis=-1)
    size = np.abs(pair.astype(np.float64))
    r = rounded(np.maximum(size, 2.0**-127), FORMATS["ue8m0"], m.mode)
    if "satfinite" in m:
        r = np.where(size > 2.0**127, 2.0**127, r)
    else:  # Only `.rz` has a finite result between the largest power and infinity.
        r = np.where(np.isinf(size) | (r > 2.0**127), np.nan, r)
    r = np.where(np.isnan(size), np.nan, r)
    return r.astype(FORMATS["ue8m0"].dtype)


def _from_exponents(m: Words, a: Array) -> Array:
    return canonical(a.astype(FORMATS["bf16"].dtype))


def _has_high_bits(m: Words, a: Array) -> Array:
    return ((np.ascontiguousarray(a).view(np.uint8) & 0xC0) != 0).any(axis=-1)


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
_FOUR = "(.e4m3x4,.e5m2x4,.e2m3x4,.e3m2x4,.e2m1x4)"
_HIGH_BITS = (_has_high_bits, "the upper two bits of each byte must be 0", "poison")

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
    Row("cvt.rn.satfinite{.relu}(.e2m1x2,.e2m3x2,.e3m2x2).f32", "s = t t", _packed, _SECTION),
    Row("cvt.rn{.relu}.f16x2.e2m1x2", "s = t", _unpacked, _SECTION),
    Row("cvt.rn{.relu}.f16x2(.e2m3x2,.e3m2x2)", "s = t", _unpacked, _SECTION, undefined=_HIGH_BITS),
    Row("cvt(.rz,.rp){.satfinite}.ue8m0x2.f32", "s = t t", _exponents, _SECTION),
    Row("cvt(.rz,.rp){.satfinite}.ue8m0x2.bf16x2", "s = t", _exponents, _SECTION),
    Row("cvt.rn.bf16x2.ue8m0x2", "s = t", _from_exponents, _SECTION),
    Row("cvt.rs{.relu}{.satfinite}(.f16x2,.bf16x2).f32", "s = t t b32", _stochastic, _SECTION),
    Row(f"cvt.rs{{.relu}}.satfinite{_FOUR}.f32", "s = t t t t b32", _stochastic, _SECTION),
)
_ROWS = Rows(ROWS)
