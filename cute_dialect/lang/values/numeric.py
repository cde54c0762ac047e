"""Arithmetic, comparison and conversion of numbers: in Python if static, by ops of the arith dialect otherwise.

Type promotion follows section "Numbers" of the language reference.  Python numbers take the type of the other operand;
among typed numbers the wider type wins.  Floats of 8 bits and fewer, and ``TFloat32``, are storage types and compute as
Float32.

Conversions truncate or extend integers as in C, and round floats to nearest even.  8-bit floats use the hardware's
packed conversions through ``Float32`` and ``Float16``, and saturate.  4-bit and 6-bit floats saturate as well.  Scales
(``Float8E8M0FNU``) round magnitudes up and saturate.  Both use hardware conversions on sm_100a, sm_120a and their
families, and arithmetic on other chips.

``//`` and ``%`` of floats are exact, with Python's semantics: the remainder has the sign of the divisor.  The remainder
of ``|a|`` by ``|b|`` is reduced by steps ``r - floor(r / b) * b``, each without rounding error: ``r / b`` is rounded to
p bits, so the difference is less than an ulp of the quotient times ``b``.  It fits in p bits, and ``fma`` computes it
exactly.  One step suffices if the quotient is below 2^p; otherwise a loop runs more steps.  The final correction
follows CPython's ``float_divmod``, as do NumPy's ``floor_divide`` and ``remainder``.

>>> as_number(7) // 2, as_number(2.0) * 3, as_number(1) < 2
(Int32(3), Float32(6.0), True)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cute_dialect.arch.targets import BLACKWELL
from cute_dialect.errors import CompileError
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.source_location import user_places
from cute_dialect.lang.tracing.tracer import (
    alike,
    concatenated,
    current,
    emit,
    extract,
    float_flags,
    has_instruction,
    no_wrap_flags,
    parse_type,
    require_chip,
    shaped,
    shuffle,
)
from cute_dialect.lang.values import dtypes
from cute_dialect.lang.values.dtypes import (
    NUMBER_TYPES,
    BFloat16,
    Boolean,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    Numeric,
    TFloat32,
)
from cute_dialect.lang.values.dynamic import Dynamic, give_operators, method_of
from cute_dialect.lang.values.folding import (
    PYTHON,
    SIGNS,
    absolute_facts,
    binary_facts,
    checked_shift,
    converted_facts,
    facts_of,
    fitted,
    folded,
    is_natural,
    least_greatest,
    literal,
    power_of_floats,
)

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.lang.tracing.tracer import Tracer

# --------------------------------------------------------------------------------------------- conversion of SSA values


NumberClass = type[Numeric]

FEWER_BITS = {Float4E2M1FN: (2, 1), Float6E2M3FN: (2, 3), Float6E3M2FN: (3, 2)}
"""The 4-bit and 6-bit floats, which arithmetic converts before sm_100: bits of the exponent, bits of the mantissa."""


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
    """Convert an SSA value between number types.  Raises F280 if the target has no such conversion.

    ``natural``: the value is a non-negative integer.
    """
    if of is to or (of.mlir_type == to.mlir_type and of.is_integer):
        return value
    if _is_converted(of) and has_instruction(BLACKWELL):
        wide = BFloat16 if of is Float8E8M0FNU else Float16
        return cast_ssa(_from_pairs(value, of, wide), wide, to)
    if _is_converted(to) and has_instruction(BLACKWELL):
        return _to_pairs(cast_ssa(value, of, Float32), to)
    if of is Float8E8M0FNU:
        return cast_ssa(_from_exponents(value), Float32, to)
    if to is Float8E8M0FNU:
        return _to_exponents(cast_ssa(value, of, Float32))
    if of in FEWER_BITS:
        return cast_ssa(_from_fewer_bits(value, of), Float32, to)
    if to in FEWER_BITS:
        return _to_fewer_bits(cast_ssa(value, of, Float32), to)
    if of.is_float and of.width < 16:
        require_chip(f"the conversion of {of!r} to {to!r}", 89)
        return cast_ssa(_from_pairs(value, of, Float16), Float16, to)
    if to.is_float and to.width < 16:
        require_chip(f"the conversion of {of!r} to {to!r}", 89)
        return _to_pairs(cast_ssa(value, of, Float32), to)
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


def _elements(value: SSAValue) -> list[SSAValue]:
    """Return the elements of a vector, or the number itself."""
    if value.type.name != "vector":
        return [value]
    (n,) = value.type.get_shape()  # pyright: ignore[reportAttributeAccessIssue]
    return [extract(value, i) for i in range(n)]


def _vector(elements: list[SSAValue]) -> SSAValue:
    from xdsl.dialects.builtin import VectorType

    return emit("vector.from_elements", elements, VectorType(elements[0].type, [len(elements)]))


def _is_converted(kind: NumberClass) -> bool:
    """Return True for the floats of 4, 6 and 8 bits that sm_100 converts and earlier chips do not."""
    return kind in FEWER_BITS or kind is Float8E8M0FNU


def _pair_type(kind: NumberClass) -> Attribute:
    """Return the type of two packed numbers.  A 6-bit number is in a byte."""
    return parse_type("i8" if kind.width == 4 else "i16")


def _to_pairs(value: SSAValue, to: NumberClass) -> SSAValue:
    """Convert an ``f32`` value to narrow floats, two per instruction: to nearest, exponents up; both saturate."""
    numbers = _elements(value)
    n = len(numbers)
    numbers += [current().constant(0.0, Float32.attribute)] * (n % 2)
    properties = {"relu": parse_type("false"), "dstTy": to.attribute}
    if to.width == 8:
        mode = "rp" if to is Float8E8M0FNU else "rn"
        modes = (f"#nvvm.fp_rnd_mode<{mode}>", "#nvvm.sat_mode<satfinite>")
        properties.update(zip(("rnd", "sat"), map(parse_type, modes)))
    pairs = [  # The first operand becomes the upper element.
        emit(f"nvvm.convert.f32x2.to.f{to.width}x2", [high, low], _pair_type(to), **properties)
        for low, high in zip(numbers[::2], numbers[1::2])
    ]
    held, unit = parse_type(f"i{to.width}"), parse_type("i4" if to.width == 4 else "i8")
    if value.type.name != "vector":
        return emit("arith.bitcast", [emit("arith.trunci", pairs, held, **no_wrap_flags())], to.attribute)
    units = emit("vector.bitcast", [_vector(pairs)], parse_type(f"vector<{2 * len(pairs)}x{unit}>"))
    if to.width == 6:
        units = emit("arith.trunci", [units], shaped(held, units), **no_wrap_flags())
    if n % 2:
        units = _vector(_elements(units)[:n])
    return emit("arith.bitcast", [units], shaped(to.attribute, value))


def _from_pairs(value: SSAValue, of: NumberClass, to: NumberClass) -> SSAValue:
    """Convert narrow floats to ``f16``, exponents to ``bf16``, which represent all of them exactly."""
    properties = {"srcType": of.attribute}
    if to is Float16:
        properties["relu"] = parse_type("false")
    units = emit("arith.bitcast", [value], shaped(parse_type(f"i{of.width}"), value))
    if of.width == 6:
        units = emit("arith.extui", [units], shaped(parse_type("i8"), value))
    numbers = _elements(units)
    odd = len(numbers) % 2
    numbers += [numbers[0]] * odd
    if of.width == 4:  # The instruction takes a byte.
        units = _vector(numbers) if odd else units
        pairs = _elements(emit("vector.bitcast", [units], parse_type(f"vector<{len(numbers) // 2}xi8>")))
    else:
        pairs = [_vector([low, high]) for low, high in zip(numbers[::2], numbers[1::2])]
    wide: list[SSAValue] = []
    for pair in pairs:
        result = parse_type(f"vector<2x{to.mlir_type}>")
        wide += _elements(emit(f"nvvm.convert.f{of.width}x2.to.{to.mlir_type}x2", [pair], result, **properties))
    if value.type.name != "vector":
        return wide[0]
    (n,) = value.type.get_shape()  # pyright: ignore[reportAttributeAccessIssue]
    return _vector(wide[:n])


def _constant(number: float, kind: NumberClass, like: SSAValue) -> SSAValue:
    """Return a number, or a vector of it like another vector."""
    return alike(current().constant(number, kind.attribute), like)[0]


def _from_fewer_bits(value: SSAValue, of: NumberClass) -> SSAValue:
    """Convert 4-bit and 6-bit floats to ``f32``, which represents all of them exactly.

    Exponent and mantissa become those of an ``f16``, also of subnormal numbers.  A product corrects the bias.
    """
    exponent, mantissa = FEWER_BITS[of]
    held = emit("arith.bitcast", [value], shaped(parse_type(f"i{of.width}"), value))
    bits = emit("arith.extui", [held], shaped(parse_type("i32"), value))

    def part(mask: int, by: int) -> SSAValue:
        kept = emit("arith.andi", [bits, _constant(mask, Int32, bits)], bits.type)
        return emit("arith.shli", [kept, _constant(by, Int32, bits)], bits.type, **no_wrap_flags())

    sign = 1 << (of.width - 1)
    joined = emit("arith.ori", [part(sign - 1, 10 - mantissa), part(sign, 16 - of.width)], bits.type)
    half = emit("arith.trunci", [joined], shaped(parse_type("i16"), value), **no_wrap_flags())
    half = emit("arith.bitcast", [half], shaped(Float16.attribute, value))
    wide = cast_ssa(half, Float16, Float32)
    factor = _constant(2.0 ** (15 - (2 ** (exponent - 1) - 1)), Float32, wide)
    return emit("arith.mulf", [wide, factor], wide.type, **float_flags("none"))


def _to_fewer_bits(value: SSAValue, to: NumberClass) -> SSAValue:
    """Round an ``f32`` value to nearest even, and saturate.  NaN becomes the largest number, as in PTX ``cvt``.

    NaN keeps its sign, which the instruction drops.
    """
    exponent, mantissa = FEWER_BITS[to]
    bias, t = 2 ** (exponent - 1) - 1, value.type
    bits = emit("arith.bitcast", [value], shaped(parse_type("i32"), value))

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
    half = emit("arith.bitcast", [half], shaped(parse_type("i16"), value))
    low = integer("arith.shrui", emit("arith.extui", [half], bits.type), 10 - mantissa)
    high = integer("arith.shli", integer("arith.shrui", bits, 31), to.width - 1)
    joined = emit("arith.ori", [low, high], bits.type)
    held = emit("arith.trunci", [joined], shaped(parse_type(f"i{to.width}"), value), **no_wrap_flags())
    return emit("arith.bitcast", [held], shaped(to.attribute, value))


def _from_exponents(value: SSAValue) -> SSAValue:
    """Convert ue8m0 numbers ``2 ** (x - 127)`` to ``f32``.  255 is NaN, and 0 is a subnormal f32."""
    held = emit("arith.bitcast", [value], shaped(parse_type("i8"), value))
    bits = emit("arith.extui", [held], shaped(parse_type("i32"), value))
    shifted = emit("arith.shli", [bits, _constant(23, Int32, bits)], bits.type, **no_wrap_flags())
    for code, instead in ((0, 0x400000), (255, 0x7FC00000)):
        special = compare_ssa("eq", bits, _constant(code, Int32, bits), Int32)
        shifted = emit("arith.select", [special, _constant(instead, Int32, bits), shifted], bits.type)
    return emit("arith.bitcast", [shifted], shaped(Float32.attribute, value))


def _to_exponents(value: SSAValue) -> SSAValue:
    """Round the magnitudes of ``f32`` numbers up to powers of two from 2^-127 to 2^127, as PTX ``cvt.rp.satfinite``."""
    bits = emit("arith.bitcast", [value], shaped(parse_type("i32"), value))

    def constant(n: int) -> SSAValue:
        return _constant(n, Int32, bits)

    size = emit("arith.andi", [bits, constant(0x7FFFFFFF)], bits.type)
    up = emit("arith.addi", [size, constant(0x7FFFFF)], bits.type, **no_wrap_flags())
    code = emit("arith.shrui", [up, constant(23)], bits.type)
    code = emit("arith.minui", [code, constant(254)], bits.type)
    least = compare_ssa("le", size, constant(0x400000), Int32)
    code = emit("arith.select", [least, constant(0), code], bits.type)
    nan = compare_ssa("gt", size, constant(0x7F800000), Int32)
    code = emit("arith.select", [nan, constant(255), code], bits.type)
    held = emit("arith.trunci", [code], shaped(parse_type("i8"), value), **no_wrap_flags())
    return emit("arith.bitcast", [held], shaped(Float8E8M0FNU.attribute, value))


def _to_tf32(value: SSAValue) -> SSAValue:
    rounded = [
        emit("nvvm.convert.float.to.tf32", [x], parse_type("i32"), rnd=parse_type("#nvvm.fp_rnd_mode<rna>"),
             sat=parse_type("#nvvm.sat_mode<none>"), relu=parse_type("false"))
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


# --------------------------------------------------------------------------------------------------- division of floats


def divided(name: str, a: SSAValue, b: SSAValue) -> SSAValue:
    """Return ``a // b`` or ``a % b`` (``name``: ``floordiv`` or ``mod``) of two floats or vectors of floats."""
    if current().kind == "host":
        current().state.setdefault("float division", (user_places() or [None])[0])
    element = a.type.get_element_type() if a.type.name == "vector" else a.type  # pyright: ignore
    if element not in (Float32.attribute, Float64.attribute):  # Narrower types are computed in f32, as in NumPy.
        to = shaped(Float32.attribute, a)
        wide = divided(name, _emit("arith.extf", a, type=to), _emit("arith.extf", b, type=to))
        return _emit("arith.truncf", wide, type=a.type)
    rest = _Rest(a, b, element == Float64.attribute)
    return rest.quotient() if name == "floordiv" else rest.remainder()


def refuse_in_launcher(tracer: Tracer) -> None:
    """Raise F113 if a host function that launches kernels computes ``//`` or ``%`` of run-time floats."""
    if "float division" in tracer.state:
        raise CompileError(
            "F113", "a host function that launches kernels cannot compute '//' or '%' of run-time floats",
            place=tracer.state["float division"], hint="compute it in the kernel",
        )  # fmt: skip


def _emit(name: str, *operands: SSAValue, type: object = None) -> SSAValue:
    return emit(name, list(operands), type, **float_flags("none"))  # pyright: ignore


def _select(condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
    return emit("arith.select", [condition, a, b], a.type)


def _both(a: SSAValue, b: SSAValue) -> SSAValue:
    return emit("arith.andi", [a, b])


class _Rest:
    """A float division: the remainder with the sign of ``a``, and the results derived from it."""

    def __init__(self, a: SSAValue, b: SSAValue, is_wide: bool):
        self.a, self.b = a, b
        self.bits, self.scale = (53, 2.0**600) if is_wide else (24, 2.0**100)
        self.size, self.divisor = _emit("math.absf", a), _emit("math.absf", b)
        self.zero = self.constant(0.0)
        self.rest = self.found()

    def constant(self, x: float) -> SSAValue:
        """Return a constant, broadcast if the operands are vectors."""
        kind = Float64 if self.bits == 53 else Float32
        known = current().constant(x, kind.attribute)
        return known if self.a.type == known.type else emit("vector.broadcast", [known], self.a.type)

    def compare(self, name: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return compare_ssa(name, a, b, Float64)

    def found(self) -> SSAValue:
        """Return the remainder as C's fmod computes it."""
        rest = self.step(self.reduced(), self.divisor)
        infinite = self.compare("eq", self.divisor, self.constant(math.inf))
        finite = self.compare("lt", self.size, self.constant(math.inf))
        rest = _select(_both(infinite, finite), self.size, rest)
        rest = _select(self.compare("lt", rest, self.zero), _emit("arith.addf", rest, self.divisor), rest)
        return _emit("math.copysign", rest, self.a)

    def step(self, rest: SSAValue, divisor: SSAValue) -> SSAValue:
        """Return a value congruent to ``rest`` modulo the divisor, of either sign.

        Its magnitude is less than the divisor if the quotient fits the precision of the type.
        """
        size = _emit("math.absf", rest)
        times = _emit("arith.negf", _emit("math.floor", _emit("arith.divf", size, divisor)))
        less = _emit("math.fma", times, divisor, size)
        return _select(self.compare("lt", rest, self.zero), _emit("arith.negf", less), less)

    def reduced(self) -> SSAValue:
        """Return a remainder below 2^p divisors. The loop runs zero times if the dividend already is."""
        from xdsl.ir import Block, Region

        tracer = current()
        before, body = Block(arg_types=[self.a.type]), Block(arg_types=[self.a.type])
        with tracer.into(before):
            rest = before.args[0]
            tracer.op("scf.condition", [_any(self.is_long(rest)), rest], ())
        with tracer.into(body):
            tracer.op("scf.yield", [self.turn(body.args[0])], ())
        op = tracer.op("scf.while", [self.size], [self.a.type], regions=[Region(before), Region(body)])
        return op.results[0]

    def turn(self, rest: SSAValue) -> SSAValue:
        """Return a remainder reduced by p - 1 bits, for quotients of more than p bits."""
        divisor = self.divisor
        for _ in range(2):  # If the quotient overflows, use a multiple of the divisor for which it does not.
            quotient = _emit("arith.divf", _emit("math.absf", rest), divisor)
            over = self.compare("eq", quotient, self.constant(math.inf))
            divisor = _select(over, _emit("arith.mulf", divisor, self.constant(self.scale)), divisor)
        return _select(self.is_long(rest), self.step(rest, divisor), rest)

    def is_long(self, rest: SSAValue) -> SSAValue:
        """Return a mask of the quotients with more than p bits. Divisions by zero or of infinity have none."""
        size = _emit("math.absf", rest)
        many = self.compare("ge", _emit("arith.divf", size, self.divisor), self.constant(2.0**self.bits))
        numbers = _both(self.compare("lt", size, self.constant(math.inf)), self.compare("gt", self.divisor, self.zero))
        return _both(many, numbers)

    def is_turned(self) -> SSAValue:
        """Return a mask of the remainders whose sign differs from the divisor's."""
        negative = self.compare("lt", self.rest, self.zero)
        other = emit("arith.xori", [negative, self.compare("lt", self.b, self.zero)])
        return _both(other, self.compare("ne", self.rest, self.zero))

    def remainder(self) -> SSAValue:
        made = _select(self.is_turned(), _emit("arith.addf", self.rest, self.b), self.rest)
        return _select(self.compare("eq", self.rest, self.zero), _emit("math.copysign", self.zero, self.b), made)

    def quotient(self) -> SSAValue:
        one = self.constant(1.0)
        whole = _emit("arith.divf", _emit("arith.subf", self.a, self.rest), self.b)
        whole = _select(self.is_turned(), _emit("arith.subf", whole, one), whole)
        down = _emit("math.floor", whole)
        far = self.compare("gt", _emit("arith.subf", whole, down), self.constant(0.5))
        down = _select(far, _emit("arith.addf", down, one), down)
        exact = _emit("arith.divf", self.a, self.b)
        down = _select(self.compare("eq", whole, self.zero), _emit("math.copysign", self.zero, exact), down)
        return _select(self.compare("eq", self.b, self.zero), exact, down)


def _any(found: SSAValue) -> SSAValue:
    """Return True if any element is true: the elements are combined pairwise."""
    if found.type.name != "vector":
        return found
    while (n := found.type.get_shape()[0]) > 1:  # pyright: ignore
        half = n // 2
        both = emit("arith.ori", [shuffle(found, range(0, 2 * half, 2)), shuffle(found, range(1, 2 * half, 2))])
        found = concatenated(both, shuffle(found, [n - 1])) if n % 2 else both
    return extract(found, 0)


# ------------------------------------------------------------------------------------------------------ conversion


@method_of(Numeric, "_convert")
def convert(made: Numeric, x: object) -> None:
    """Set the value of a new number from its constructor's argument."""
    kind = type(made)
    if kind.is_integer and kind is not Boolean and isinstance(x, int) and not isinstance(x, bool):
        made.value, made.is_static = literal(kind, x, bits=True).value, True
        return
    number = Float64.exactly(x) if isinstance(x, float) else as_number(x)
    if number.is_static:
        made.value, made.is_static = fitted(kind, _checked(kind, number.value)), True
        return
    made.is_static = False
    made.value = cast_ssa(number.value, type(number), kind, natural=is_natural(number))
    if kind.is_integer and type(number).is_integer and kind is not Boolean:
        made.facts = converted_facts(number, kind)


def _checked(kind: NumberClass, value: int | float) -> int | float:
    """Return a static number to be converted.  Raises F230 for a float out of the integer type's range."""
    if kind.is_integer and kind is not Boolean and isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise KernelTypeError("F230", f"{value} cannot be converted to {kind!r}")
        low, high = least_greatest(kind)
        if not low <= int(value) <= high:
            raise KernelTypeError("F230", f"{value} is out of range for {kind!r} ({low} to {high})")
    return value


def as_number(x: object) -> Numeric:
    """Return a user's value as a typed number.  Raises F230 if it is not a number.

    >>> as_number(3), as_number(1.5), as_number(True)
    (Int32(3), Float32(1.5), Boolean(True))
    """
    if isinstance(x, Numeric):
        return x
    if isinstance(x, bool):
        return Boolean.exactly(x)
    if isinstance(x, int):
        for kind in (Int32, Int64, dtypes.Uint64):
            low, high = least_greatest(kind)
            if low <= x <= high:
                return kind.exactly(int(x))
        raise KernelTypeError("F230", f"{x} does not fit in 64 bits")
    if isinstance(x, float):
        return Float32.exactly(fitted(Float32, x))
    to_number = getattr(x, "__cute_number__", None)
    if to_number is not None:
        return to_number()
    if hasattr(x, "dtype") and hasattr(x, "item") and getattr(x, "ndim", 1) == 0:  # NumPy scalars and 0-d arrays
        name = str(x.dtype).removeprefix("torch.")  # pyright: ignore
        for kind in NUMBER_TYPES.values():
            if name in (kind.numpy, kind.torch) and kind is not TFloat32:
                return kind.exactly(fitted(kind, x.item()))  # pyright: ignore
    raise KernelTypeError("F230", f"{_name(x)} is not a number")


def _name(x: object) -> str:
    return x.describe() if isinstance(x, Dynamic) else repr(x) if len(repr(x)) < 60 else f"a {type(x).__name__}"


def is_number(x: object) -> bool:
    """Return True for a number: Python's, NumPy's, or one of this package."""
    return isinstance(x, Numeric | int | float) or (hasattr(x, "dtype") and getattr(x, "ndim", 1) == 0)


# ------------------------------------------------------------------------------------------------------- operators

_ORDER_MATTERS = ("lt", "le", "gt", "ge", "floordiv", "mod", "shr", "min", "max")
"""Operations whose result depends on signedness."""


def promoted(a: Numeric, b: Numeric, name: str) -> NumberClass:
    """Return the type to which two operands are promoted."""
    x, y = type(a), type(b)
    if x is Boolean and y is Boolean:
        return Boolean if name in ("and", "or", "xor", "eq", "ne", "where") else Int32
    if x is y and name == "where":
        return x
    x = _computing(x, y)
    y = _computing(y, x)
    if x is y:
        return x
    if x.is_float and y.is_float:
        if {x, y} == {Float16, BFloat16}:
            return Float32
        return x if x.width >= y.width else y
    if x.is_float or y.is_float:
        return x if x.is_float else y
    if x.width != y.width:
        return x if x.width > y.width else y
    if name in _ORDER_MATTERS:
        raise KernelTypeError(
            "F231", f"'{SIGNS.get(name, name)}' is ambiguous because {x!r} and {y!r} differ in signedness",
            hint=f"convert one of them, e.g. {x!r}(b)",
        )  # fmt: skip
    return x if not x.signed else y


def _computing(x: NumberClass, beside: NumberClass) -> NumberClass:
    """Return the type in which a number is computed: narrow floats as Float32, Booleans as integers."""
    if x is Boolean:
        return Int32 if beside.is_integer else beside
    return Float32 if x.is_float and (x.width < 16 or x is TFloat32) else x


def pair(a: object, b: object, name: str) -> tuple[Numeric, Numeric, NumberClass]:
    """Return two operands as numbers, and the type to which they are promoted. Python numbers adapt to the other."""
    if isinstance(a, Numeric) and isinstance(b, Numeric):
        return a, b, promoted(a, b, name)
    if isinstance(a, Numeric):
        if type(b) is int or type(b) is float:
            return _adapted(a, b, name)
        other = as_number(b)
        return a, other, promoted(a, other, name)
    if not isinstance(b, Numeric):
        return pair(as_number(a), as_number(b), name)
    x, y, kind = pair(b, a, name)
    return y, x, kind


def _adapted(a: Numeric, b: int | float, name: str) -> tuple[Numeric, Numeric, NumberClass]:
    kind = _computing(type(a), Int32)
    if isinstance(b, int):
        return a, literal(kind, b, bits=name in ("and", "or", "xor")), kind
    if not kind.is_float:
        kind = Float64 if kind.width == 64 else Float32
    return a, kind.exactly(fitted(kind, b)), kind


_INTEGER = {
    "add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "and": "arith.andi", "or": "arith.ori",
    "xor": "arith.xori", "shl": "arith.shli",
}  # fmt: skip
_FLOAT = {
    "add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "truediv": "arith.divf", "min": "arith.minimumf",
    "max": "arith.maximumf",
}  # fmt: skip


def binary(name: str, a: object, b: object) -> Any:
    """Return ``a op b`` for two numbers, at least one typed. ``name``: ``add sub mul truediv floordiv mod …``."""
    left, right, kind = pair(a, b, name)
    if name in ("shl", "shr") and isinstance(a, Numeric):
        kind = _computing(type(left), Int32)  # The left operand determines the type.
    if name == "truediv" and kind.is_integer:
        kind = Float64 if kind.width == 64 else Float32
    if name in ("and", "or", "xor", "shl", "shr") and (kind.is_float or type(right).is_float):
        wrong = kind if kind.is_float else type(right)
        raise KernelTypeError("F236", f"'{SIGNS[name]}' needs integers, got {wrong!r}")
    if left.is_static and right.is_static:
        return folded(name, left.value, right.value, kind)
    x, y = _of_type(kind, left), _of_type(kind, right)
    if kind.is_integer:
        found = _simplified(name, x, y.value) if y.is_static else None
        if found is None and x.is_static and name in ("add", "mul", "and", "or", "xor"):
            found = _simplified(name, y, x.value)
        if found is not None:
            return found
        return kind.of(_emit_integer(name, x, y, kind), binary_facts(name, x, y))
    return kind.of(_emit_float(name, x, y))


def _of_type(kind: NumberClass, x: Numeric) -> Numeric:
    return x if type(x) is kind else kind(x)


def _simplified(name: str, x: Numeric, y: int) -> Numeric | None:
    """Return the result of an operation with a static right operand if nothing needs to be computed, else None."""
    kind = type(x)
    if name in ("floordiv", "mod") and y == 0:
        raise KernelTypeError("F232", f"division by zero: {x.describe()} / 0")
    if name in ("shl", "shr"):
        checked_shift(kind, y)
    if (name in ("add", "sub", "or", "xor", "shl", "shr") and y == 0) or (name in ("mul", "floordiv") and y == 1):
        return x
    if (name in ("mul", "and") and y == 0) or (name == "mod" and y == 1):
        return kind.exactly(False if kind is Boolean else 0)
    facts = facts_of(x)
    inside = facts.low is not None and facts.high is not None and facts.low >= 0 and facts.high < y
    if name == "mod" and y > 0:
        if facts.divisor % y == 0:
            return kind.exactly(0)
        if inside:
            return x
    if name == "floordiv" and inside:
        return kind.exactly(0)
    return None


def _emit_integer(name: str, x: Numeric, y: Numeric, kind: NumberClass) -> SSAValue:
    natural = not kind.signed or is_natural(x)
    unsigned = not kind.signed or (natural and is_natural(y))  # The sign bit of non-negative numbers is zero.
    if name in ("floordiv", "mod") and y.is_static and y.value > 0 and y.value & (y.value - 1) == 0:
        # Floor division by a power of two is a shift, and its remainder a mask, for negative numbers too.
        y = kind.exactly(y.value.bit_length() - 1 if name == "floordiv" else y.value - 1)
        name = "shr" if name == "floordiv" else "and"
    a, b = alike(x.ssa, y.ssa)
    if name in _INTEGER:
        return emit(_INTEGER[name], [a, b], **(no_wrap_flags() if name in ("add", "sub", "mul", "shl") else {}))
    if name == "shr":
        return emit("arith.shrui" if natural else "arith.shrsi", [a, b])
    if name in ("min", "max"):
        return emit(f"arith.{name}{'u' if unsigned else 's'}i", [a, b])
    if name == "floordiv":
        return emit("arith.divui" if unsigned else "arith.floordivsi", [a, b])
    if unsigned:
        return emit("arith.remui", [a, b])
    quotient = emit("arith.floordivsi", [a, b])
    return emit("arith.subi", [a, emit("arith.muli", [quotient, b], **no_wrap_flags())], **no_wrap_flags())


def _emit_float(name: str, x: Numeric, y: Numeric) -> SSAValue:
    a, b = alike(x.ssa, y.ssa)
    if name in ("floordiv", "mod"):
        return divided(name, a, b)
    return emit(_FLOAT[name], [a, b], **float_flags())


def compare(name: str, a: object, b: object) -> Any:
    """Return the comparison of two numbers: a bool if both are static, else a Boolean."""
    left, right, kind = pair(a, b, name)
    if left.is_static and right.is_static:
        return bool(PYTHON[name](fitted(kind, left.value), fitted(kind, right.value)))
    x, y = _of_type(kind, left), _of_type(kind, right)
    natural = kind.is_integer and is_natural(x) and is_natural(y)
    return Boolean.of(compare_ssa(name, *alike(x.ssa, y.ssa), kind, natural=natural))


# ------------------------------------------------------------------------------------------------------ one operand


def computing(kind: NumberClass) -> NumberClass:
    """Return the type in which a type's numbers are computed: Float32 for 8-bit floats, Int32 for Booleans."""
    return _computing(kind, Int32)


def computed(x: Numeric) -> Numeric:
    """Return a number converted to the type in which it is computed."""
    kind = computing(type(x))
    return x if type(x) is kind else kind(x)


def negated(x: Numeric) -> Any:
    x = computed(x)
    if type(x).is_integer:
        return binary("sub", type(x).exactly(0), x)
    if x.is_static:
        return type(x).exactly(-x.value)
    return type(x).of(emit("arith.negf", [x.value], **float_flags()))


def inverted(x: Numeric) -> Any:
    """Return ``~x``. For a Boolean this is its negation."""
    kind = type(x)
    if kind.is_float:
        raise KernelTypeError("F236", f"'~' needs an integer, got {kind!r}")
    if kind is Boolean:
        return binary("xor", x, Boolean.exactly(True))
    return binary("xor", x, kind.exactly(-1 if kind.signed else (1 << x.width) - 1))


def absolute(x: Numeric) -> Any:
    x = computed(x)
    kind = type(x)
    if x.is_static:
        return kind.exactly(fitted(kind, abs(x.value)))
    if not kind.is_integer:
        return kind.of(emit("math.absf", [x.value], **float_flags()))
    return x if is_natural(x) else kind.of(emit("math.absi", [x.value]), absolute_facts(x))


def power(x: Any, n: Any) -> Any:
    """Return ``x ** n``, by repeated multiplication if ``n`` is a small static integer."""
    base: Any = computed(as_number(x))
    exponent: Any = n
    if isinstance(exponent, Numeric) and exponent.is_static:
        exponent = exponent.value
    if isinstance(exponent, int) and 0 <= exponent <= 64:
        result: Any = None
        square = base
        while exponent:
            if exponent & 1:
                result = square if result is None else result * square
            exponent >>= 1
            square = square * square if exponent else square
        return type(base)(1) if result is None else result
    left, right, kind = pair(base, n, "pow")
    if not kind.is_float:
        kind = Float64 if kind.width == 64 else Float32
    if left.is_static and right.is_static:
        return kind.exactly(fitted(kind, power_of_floats(float(left.value), float(right.value))))
    a, b = alike(kind(left).ssa, kind(right).ssa)
    return kind.of(emit("math.powf", [a, b], **float_flags()))


def power_of(n: Numeric, x: object) -> Any:
    return power(as_number(x), n)


# ------------------------------------------------------------------------------------------------- operators of Numeric


_OF_ONE: dict[str, Any] = {f.__name__: f for f in (negated, inverted, absolute, power, power_of)}


def _apply(name: str, x: Any, *others: Any) -> Any:
    return _OF_ONE[name](x, *others)


@method_of(Numeric)
def _takes(self: Numeric, other: object) -> bool:
    return is_number(other)


give_operators(Numeric, takes=is_number, binary=binary, compare=compare, apply=_apply)
