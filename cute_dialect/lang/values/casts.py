"""Conversions of numbers between types, bit casts, and comparisons of SSA values.

Integers are truncated or extended as in C.  Floats are rounded to nearest even.  8-bit floats use the hardware's packed
conversions through ``Float32`` and ``Float16``, and saturate.  4-bit and 6-bit floats are converted by arithmetic, and
saturate as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.lang.tracing.emission import alike, emit, extract, float_flags, no_wrap_flags, require_chip, shaped
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.dtypes import (
    Boolean,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Int32,
    Numeric,
    TFloat32,
)
from cute_dialect.lang.values.folding import fitted
from cute_dialect.lang.values.methods import method_of

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

__all__ = ["bits_as", "cast_ssa", "compare_ssa"]

NumberClass = type[Numeric]

EIGHT_BITS = (Float8E4M3FN, Float8E5M2)
"""The 8-bit floats with hardware conversions (PTX ISA, ``cvt``; sm_89)."""


FEWER_BITS = {Float4E2M1FN: (2, 1), Float6E2M3FN: (2, 3), Float6E3M2FN: (3, 2)}
"""The 4-bit and 6-bit floats, which arithmetic converts: bits of the exponent, bits of the mantissa."""


_PREDICATES = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_FLOAT_PREDICATES = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}


def compare_ssa(name: str, a: SSAValue, b: SSAValue, kind: NumberClass, *, natural: bool = False) -> SSAValue:
    """Return the comparison of two SSA values of a number type. Float comparisons are ordered, except ``!=``.

    ``natural``: both are non-negative, so that unsigned comparison is valid.
    """
    t = shaped(Boolean.attribute, a)
    if kind.is_float:
        number = parse_type(f"{_FLOAT_PREDICATES[name]} : i64")
        return emit("arith.cmpf", [a, b], t, predicate=number, **float_flags("none"))
    code = _PREDICATES[name] + (4 if (natural or not kind.signed) and name not in ("eq", "ne") else 0)
    return emit("arith.cmpi", [a, b], t, predicate=parse_type(f"{code} : i64"))


def cast_ssa(value: SSAValue, of: NumberClass, to: NumberClass, *, natural: bool = False) -> SSAValue:
    """Convert an SSA value between number types.  Raises F236 if the hardware has no such conversion.

    ``natural``: the value is a non-negative integer.
    """
    if of is to or (of.mlir_type == to.mlir_type and of.is_integer):
        return value
    if of in FEWER_BITS:
        return cast_ssa(_from_fewer_bits(value, of), Float32, to)
    if to in FEWER_BITS:
        return _to_fewer_bits(cast_ssa(value, of, Float32), to)
    if of.is_float and of.width < 16:
        return cast_ssa(_from_eight_bits(value, of, to), Float16, to)
    if to.is_float and to.width < 16:
        return _to_eight_bits(cast_ssa(value, of, Float32), of, to)
    if of is TFloat32:
        return cast_ssa(_tf32_as_f32(value), Float32, to)
    if to is TFloat32:
        return _to_tf32(cast_ssa(value, of, Float32))
    t = shaped(to.attribute, value)
    if to is Boolean:
        zero = current().constant(0 if of.is_integer else 0.0, of.attribute)
        return compare_ssa("ne", *alike(value, zero), of)
    if of.is_integer and to.is_integer:
        if to.width < of.width:
            return emit("arith.trunci", [value], t, **no_wrap_flags())
        return emit("arith.extsi" if of.signed and not natural else "arith.extui", [value], t)
    if of.is_integer:
        return emit("arith.sitofp" if of.signed else "arith.uitofp", [value], t)
    if to.is_integer:
        return emit("arith.fptosi" if to.signed else "arith.fptoui", [value], t)
    if to.width > of.width:
        return emit("arith.extf", [value], t, **float_flags("none"))
    if to.width < of.width:
        return emit("arith.truncf", [value], t)
    return cast_ssa(cast_ssa(value, of, Float32), Float32, to)


def _refuse(of: NumberClass, to: NumberClass) -> KernelTypeError:
    return KernelTypeError(
        "F236", f"{of!r} cannot be converted to {to!r} in a kernel: the hardware has no such conversion",
        hint="of the 8-bit floats, Float8E4M3FN and Float8E5M2 convert; x.bitcast(cute.Uint8) gives the bits",
    )  # fmt: skip


def _elements(value: SSAValue) -> list[SSAValue]:
    """Return the elements of a vector, or the number itself."""
    if value.type.name != "vector":
        return [value]
    (n,) = value.type.get_shape()  # pyright: ignore[reportAttributeAccessIssue]
    return [extract(value, i) for i in range(n)]


def _vector(elements: list[SSAValue]) -> SSAValue:
    from xdsl.dialects.builtin import VectorType

    return emit("vector.from_elements", elements, VectorType(elements[0].type, [len(elements)]))


def _type(text: str) -> Attribute:
    return parse_type(text)


def _to_eight_bits(value: SSAValue, of: NumberClass, to: NumberClass) -> SSAValue:
    """Convert an ``f32`` value to 8-bit floats, two per instruction."""
    if to not in EIGHT_BITS:
        raise _refuse(of, to)
    require_chip(f"the conversion of {of!r} to {to!r}", 89)
    numbers = _elements(value)
    n = len(numbers)
    numbers += [current().constant(0.0, Float32.attribute)] * (n % 2)
    properties = {
        "rnd": _type("#nvvm.fp_rnd_mode<rn>"), "sat": _type("#nvvm.sat_mode<satfinite>"), "relu": _type("false"),
        "dstTy": to.attribute,
    }  # fmt: skip
    pairs = [  # The first operand becomes the upper byte.
        emit("nvvm.convert.f32x2.to.f8x2", [high, low], _type("i16"), **properties)
        for low, high in zip(numbers[::2], numbers[1::2])
    ]
    if value.type.name != "vector":
        return emit("arith.bitcast", [emit("arith.trunci", pairs, _type("i8"), **no_wrap_flags())], to.attribute)
    held = emit("vector.bitcast", [_vector(pairs)], _type(f"vector<{2 * len(pairs)}xi8>"))
    if n % 2:
        held = _vector(_elements(held)[:n])
    return emit("arith.bitcast", [held], shaped(to.attribute, value))


def _from_eight_bits(value: SSAValue, of: NumberClass, to: NumberClass) -> SSAValue:
    """Convert 8-bit floats to ``f16``, which represents all of them exactly."""
    if of not in EIGHT_BITS:
        raise _refuse(of, to)
    require_chip(f"the conversion of {of!r} to {to!r}", 89)
    properties = {"relu": _type("false"), "srcType": of.attribute}
    held = emit("arith.bitcast", [value], shaped(_type("i8"), value))
    numbers = _elements(held)
    numbers += [numbers[0]] * (len(numbers) % 2)
    halves: list[SSAValue] = []
    for low, high in zip(numbers[::2], numbers[1::2]):
        pair = emit("nvvm.convert.f8x2.to.f16x2", [_vector([low, high])], _type("vector<2xf16>"), **properties)
        halves += _elements(pair)
    if value.type.name != "vector":
        return halves[0]
    (n,) = value.type.get_shape()  # pyright: ignore[reportAttributeAccessIssue]
    return _vector(halves[:n])


def _constant(number: float, kind: NumberClass, like: SSAValue) -> SSAValue:
    """Return a number, or a vector of it like another vector."""
    return alike(current().constant(number, kind.attribute), like)[0]


def _from_fewer_bits(value: SSAValue, of: NumberClass) -> SSAValue:
    """Convert 4-bit and 6-bit floats to ``f32``, which represents all of them exactly.

    Exponent and mantissa become those of an ``f16``, also of subnormal numbers.  A product corrects the bias.
    """
    exponent, mantissa = FEWER_BITS[of]
    held = emit("arith.bitcast", [value], shaped(_type(f"i{of.width}"), value))
    bits = emit("arith.extui", [held], shaped(_type("i32"), value))

    def part(mask: int, by: int) -> SSAValue:
        kept = emit("arith.andi", [bits, _constant(mask, Int32, bits)], bits.type)
        return emit("arith.shli", [kept, _constant(by, Int32, bits)], bits.type, **no_wrap_flags())

    sign = 1 << (of.width - 1)
    joined = emit("arith.ori", [part(sign - 1, 10 - mantissa), part(sign, 16 - of.width)], bits.type)
    half = emit("arith.trunci", [joined], shaped(_type("i16"), value), **no_wrap_flags())
    half = emit("arith.bitcast", [half], shaped(Float16.attribute, value))
    wide = cast_ssa(half, Float16, Float32)
    factor = _constant(2.0 ** (15 - (2 ** (exponent - 1) - 1)), Float32, wide)
    return emit("arith.mulf", [wide, factor], wide.type, **float_flags("none"))


def _to_fewer_bits(value: SSAValue, to: NumberClass) -> SSAValue:
    """Round an ``f32`` value to nearest even, and saturate.  NaN becomes the largest number, as in PTX ``cvt``."""
    exponent, mantissa = FEWER_BITS[to]
    bias, t = 2 ** (exponent - 1) - 1, value.type
    bits = emit("arith.bitcast", [value], shaped(_type("i32"), value))

    def integer(name: str, a: SSAValue, b: int) -> SSAValue:
        flags = no_wrap_flags() if name == "arith.shli" else {}
        return emit(name, [a, _constant(b, Int32, bits)], bits.type, **flags)

    def number(name: str, a: SSAValue, b: SSAValue | float) -> SSAValue:
        other = b if not isinstance(b, float) else _constant(b, Float32, value)
        return emit(name, [a, other], t, **float_flags("none"))

    size = emit("arith.bitcast", [integer("arith.andi", bits, 0x7FFFFFFF)], t)
    size = number("arith.minnumf", size, float(to.max))
    # The power of two of a number, and at least that of the smallest normal one. A sum with a number that is so much
    # larger that its last place is the last place of the result rounds to it.
    power = emit("arith.bitcast", [integer("arith.andi", emit("arith.bitcast", [size], bits.type), 0x7F800000)], t)
    power = number("arith.maxnumf", power, 2.0 ** (1 - bias))
    large = number("arith.mulf", power, 2.0 ** (23 - mantissa))
    rounded = number("arith.subf", number("arith.addf", size, large), large)
    half = cast_ssa(number("arith.mulf", rounded, 2.0 ** (bias - 15)), Float32, Float16)
    half = emit("arith.bitcast", [half], shaped(_type("i16"), value))
    low = integer("arith.shrui", emit("arith.extui", [half], bits.type), 10 - mantissa)
    high = integer("arith.shli", integer("arith.shrui", bits, 31), to.width - 1)
    joined = emit("arith.ori", [low, high], bits.type)
    held = emit("arith.trunci", [joined], shaped(_type(f"i{to.width}"), value), **no_wrap_flags())
    return emit("arith.bitcast", [held], shaped(to.attribute, value))


def _to_tf32(value: SSAValue) -> SSAValue:
    rounded = [
        emit("nvvm.convert.float.to.tf32", [x], _type("i32"), rnd=_type("#nvvm.fp_rnd_mode<rna>"),
             sat=_type("#nvvm.sat_mode<none>"), relu=_type("false"))
        for x in _elements(value)
    ]  # fmt: skip
    held = rounded[0] if value.type.name != "vector" else _vector(rounded)
    return emit("arith.bitcast", [held], shaped(TFloat32.attribute, value))


def _tf32_as_f32(value: SSAValue) -> SSAValue:
    return emit("arith.bitcast", [value], shaped(Float32.attribute, value))


@method_of(Numeric, "_bits_as")
def bits_as(x: Numeric, to: NumberClass) -> Numeric:
    """Reinterpret the bits of a number as another type of the same width.  Raises F236."""
    of = type(x)
    if Boolean in (of, to) or of.width != to.width:
        raise KernelTypeError(
            "F236", f"{of!r} has {of.width} bits and cannot be reinterpreted as {to!r}, which has {to.width}"
        )
    if of is to:
        return x
    if x.is_static:
        return to.exactly(_value_of_bits(_bits(of, x.value), to))
    if of.mlir_type == to.mlir_type:
        return to.of(x.value)
    return to.of(emit("arith.bitcast", [x.value], shaped(to.attribute, x.value)))


def _dtype(kind: NumberClass) -> object:
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, kind.numpy, None) or kind.numpy)


def _bits(kind: NumberClass, value: int | float) -> int:
    if kind.is_integer:
        return int(value) & ((1 << kind.width) - 1)
    import numpy as np

    held = np.array([value]).astype(_dtype(kind))  # pyright: ignore
    return int.from_bytes(held.tobytes(), "little") & ((1 << kind.width) - 1)


def _value_of_bits(bits: int, kind: NumberClass) -> int | float:
    if kind.is_integer:
        return fitted(kind, bits)
    import numpy as np

    raw = bits.to_bytes(max(1, kind.width // 8), "little")
    return float(np.frombuffer(raw, _dtype(kind))[0])  # pyright: ignore
