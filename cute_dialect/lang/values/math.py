"""Math functions of numbers and vectors: ``cute.math``.

Static arguments give static results, computed in double precision and rounded to the type.  Results computed in a
kernel may differ in the last digits.  Integers are converted to ``Float32`` (64-bit integers to ``Float64``).
``fastmath=True`` selects the approximate ``Float32`` instruction if there is one, and the ``fast`` flag otherwise.

>>> from cute_dialect.lang.values.dtypes import Float32
>>> sqrt(Float32(2.25)), popc(0b1011), clamp(7, 0, 5), fma(2.0, 3.0, 1.0)
(Float32(1.5), Int32(3), Int32(5), Float32(7.0))
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import alike, current, emit, float_flags
from cute_dialect.lang.values.dtypes import BFloat16, Boolean, Float32, Float64, Int32, Int64, Numeric
from cute_dialect.lang.values.dynamic import method_of
from cute_dialect.lang.values.folding import fitted, known_facts
from cute_dialect.lang.values.numeric import absolute, as_number, binary, computed, power, promoted

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.values.signature_types import Value

__all__ = [
    "absf",
    "absi",
    "acos",
    "asin",
    "atan",
    "atan2",
    "brev",
    "ceil",
    "clamp",
    "clz",
    "copysign",
    "cos",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "log",
    "log1p",
    "log2",
    "log10",
    "max",
    "min",
    "popc",
    "powf",
    "rcp",
    "round",
    "rsqrt",
    "sin",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
"""The names of ``cute.math``."""


def over(f: Callable[..., Any], *args: Any, by_element: bool = False) -> Any:
    """Apply ``f`` to numbers, or elementwise if an argument is a vector (``__cute_map__``)."""
    for x in args:
        mapping = getattr(x, "__cute_map__", None)
        if mapping is not None:
            return mapping(f, *args, by_element=by_element)
    return f(*args)


def _as_float(x: Any) -> Numeric:
    """Return a number converted to the float type in which its functions are computed."""
    number = computed(as_number(x))
    kind = type(number)
    return (Float64 if kind.width == 64 else Float32)(number) if kind.is_integer else number


def _unary(name: str, python: Callable[[float], float], approximate: Callable[[SSAValue], SSAValue] | None) -> Any:
    def of_number(x: Any, fastmath: bool = False) -> Numeric:
        number = _as_float(x)
        kind = type(number)
        if number.is_static:
            return kind.exactly(fitted(kind, _total(python, number.value)))
        if kind is BFloat16:  # The hardware computes it in Float32.
            return kind(of_number(Float32(number), fastmath))
        if fastmath and approximate is not None and kind is Float32:
            return kind.of(approximate(number.value))
        return kind.of(emit(f"math.{name}", [number.value], **float_flags("fast" if fastmath else None)))

    def function(x: Any, fastmath: bool = False) -> Any:
        separate = fastmath and approximate is not None
        return over(lambda n: of_number(n, fastmath), x, by_element=separate)

    return function


def _total(python: Callable[[float], float], x: float) -> float:
    """Return ``python(x)`` with IEEE 754 results in place of Python's exceptions."""
    if math.isnan(x):
        return x
    try:
        return python(x)
    except OverflowError:
        return math.inf
    except ValueError:
        return -math.inf if x == 0 else math.nan


def _machine(name: str, before: float | None = None, after: float | None = None) -> Callable[[SSAValue], SSAValue]:
    """Return the approximate f32 instruction, with its operand or result scaled."""

    def approximate(x: SSAValue) -> SSAValue:
        def scaled(value: SSAValue, by: float | None) -> SSAValue:
            if by is None:
                return value
            return emit("arith.mulf", [value, current().constant(by, Float32.attribute)], **float_flags())

        found = emit(f"cute_nvgpu.arch.{name}_approx", [scaled(x, before)], Float32.attribute)
        return scaled(found, after)

    return approximate


_LOG2_E, _LN_2, _LOG10_2 = 1.4426950216293335, 0.6931471824645996, 0.3010300099849701  # log2(e), ln(2), log10(2) in f32


def _infinite(f: Callable[[float], float], at: float, value: float) -> Callable[[float], float]:
    return lambda x: value if x == at else f(x)


def _to_even(x: float) -> float:
    return math.copysign(float(round_half_even(x)), x) if math.isfinite(x) else x


def round_half_even(x: float) -> int:
    """Return the nearest integer, ties to even.

    >>> round_half_even(2.5), round_half_even(3.5)
    (2, 4)
    """
    import builtins

    return builtins.round(x)


def _rounding(f: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(float(f(x)), x) if math.isfinite(x) else x


_exp = _unary("exp", math.exp, _machine("exp2", before=_LOG2_E))
_exp2 = _unary("exp2", lambda x: 2.0**x, _machine("exp2"))
_expm1 = _unary("expm1", math.expm1, None)
_log = _unary("log", math.log, _machine("log2", after=_LN_2))
_log2 = _unary("log2", math.log2, _machine("log2"))
_log10 = _unary("log10", math.log10, _machine("log2", after=_LOG10_2))
_log1p = _unary("log1p", _infinite(math.log1p, -1.0, -math.inf), None)
_sqrt = _unary("sqrt", _infinite(math.sqrt, -0.0, 0.0), _machine("sqrt"))
_rsqrt = _unary("rsqrt", _infinite(lambda x: 1 / math.sqrt(x), 0.0, math.inf), _machine("rsqrt"))
_sin, _cos, _tan = (_unary(name, getattr(math, name), None) for name in ("sin", "cos", "tan"))
_asin, _acos, _atan = (_unary(name, getattr(math, name), None) for name in ("asin", "acos", "atan"))
_tanh = _unary("tanh", math.tanh, _machine("tanh"))
_erf = _unary("erf", math.erf, None)
_floor, _ceil, _trunc = (_unary(name, _rounding(getattr(math, name)), None) for name in ("floor", "ceil", "trunc"))
_round = _unary("roundeven", _to_even, None)


def exp(x: Value, fastmath: bool = False) -> Value:
    """Return ``e^x``.

    >>> exp(0.0)
    Float32(1.0)
    """
    return _exp(x, fastmath)


def exp2(x: Value, fastmath: bool = False) -> Value:
    """Return ``2^x``.

    >>> exp2(3)
    Float32(8.0)
    """
    return _exp2(x, fastmath)


def expm1(x: Value, fastmath: bool = False) -> Value:
    """Return ``e^x - 1``, accurate near 0."""
    return _expm1(x, fastmath)


def log(x: Value, fastmath: bool = False) -> Value:
    """Return the natural logarithm."""
    return _log(x, fastmath)


def log2(x: Value, fastmath: bool = False) -> Value:
    """Return the logarithm to base 2.

    >>> log2(8)
    Float32(3.0)
    """
    return _log2(x, fastmath)


def log10(x: Value, fastmath: bool = False) -> Value:
    """Return the logarithm to base 10."""
    return _log10(x, fastmath)


def log1p(x: Value, fastmath: bool = False) -> Value:
    """Return the natural logarithm of ``1 + x``, accurate near 0."""
    return _log1p(x, fastmath)


def sqrt(x: Value, fastmath: bool = False) -> Value:
    """Return the square root."""
    return _sqrt(x, fastmath)


def rsqrt(x: Value, fastmath: bool = False) -> Value:
    """Return the reciprocal square root.

    >>> rsqrt(4.0)
    Float32(0.5)
    """
    return _rsqrt(x, fastmath)


def rcp(x: Value, fastmath: bool = False) -> Value:
    """Return ``1 / x``.

    >>> rcp(4)
    Float32(0.25)
    """

    def of_number(n: Any) -> Any:
        number = _as_float(n)
        if fastmath and type(number) is Float32 and not number.is_static:
            return Float32.of(emit("cute_nvgpu.arch.rcp_approx", [number.value], Float32.attribute))
        return binary("truediv", type(number).exactly(1.0), number)

    return over(of_number, x, by_element=fastmath)


def sin(x: Value, fastmath: bool = False) -> Value:
    """Return the sine."""
    return _sin(x, fastmath)


def cos(x: Value, fastmath: bool = False) -> Value:
    """Return the cosine."""
    return _cos(x, fastmath)


def tan(x: Value, fastmath: bool = False) -> Value:
    """Return the tangent."""
    return _tan(x, fastmath)


def asin(x: Value, fastmath: bool = False) -> Value:
    """Return the arcsine."""
    return _asin(x, fastmath)


def acos(x: Value, fastmath: bool = False) -> Value:
    """Return the arccosine."""
    return _acos(x, fastmath)


def atan(x: Value, fastmath: bool = False) -> Value:
    """Return the arctangent."""
    return _atan(x, fastmath)


def tanh(x: Value, fastmath: bool = False) -> Value:
    """Return the hyperbolic tangent."""
    return _tanh(x, fastmath)


def erf(x: Value, fastmath: bool = False) -> Value:
    """Return the error function."""
    return _erf(x, fastmath)


def floor(x: Value, fastmath: bool = False) -> Value:
    """Return ``x`` rounded down to an integral value, as a float.

    >>> floor(-1.5)
    Float32(-2.0)
    """
    return _floor(x, fastmath)


def ceil(x: Value, fastmath: bool = False) -> Value:
    """Return ``x`` rounded up to an integral value, as a float."""
    return _ceil(x, fastmath)


def trunc(x: Value, fastmath: bool = False) -> Value:
    """Return ``x`` rounded toward zero to an integral value, as a float."""
    return _trunc(x, fastmath)


def round(x: Value, fastmath: bool = False) -> Value:
    """Return ``x`` rounded to the nearest integral value, ties to even, as a float.

    >>> round(2.5), round(-0.25)
    (Float32(2.0), Float32(-0.0))
    """
    return _round(x, fastmath)


def absf(x: Value, fastmath: bool = False) -> Value:
    """Return the absolute value of a float."""
    return over(lambda n: absolute(_as_float(n)), x)


def absi(x: Value) -> Value:
    """Return the absolute value of an integer.

    >>> absi(-3)
    Int32(3)
    """
    return over(lambda n: absolute(_integer(n, "absi")), x)


# ------------------------------------------------------------------------------------------------ several operands


def _floats(args: tuple[Any, ...], name: str) -> list[Numeric]:
    """Return numbers converted to their common float type. Python numbers adapt to the others."""
    given = [x for x in args if isinstance(x, Numeric)] or [as_number(x) for x in args]
    met = computed(given[0])
    for x in given[1:]:
        met = _like(promoted(met, x, name), met)
    kind = type(met)
    if kind.is_integer:
        kind = Float64 if kind.width == 64 else Float32
    return [kind(x) for x in args]


def _like(kind: type[Numeric], x: Numeric) -> Numeric:
    return x if type(x) is kind else kind.exactly(fitted(kind, 0))


def _several(name: str, python: Callable[..., float], args: tuple[Any, ...], fastmath: bool) -> Any:
    def of_numbers(*given: Any) -> Any:
        numbers = _floats(given, name)
        kind = type(numbers[0])
        if all(n.is_static for n in numbers):
            return kind.exactly(fitted(kind, python(kind, *[n.value for n in numbers])))
        if kind is BFloat16:
            return kind(of_numbers(*[Float32(n) for n in numbers]))
        values = [n.ssa for n in numbers]
        like = next((v for v in values if v.type.name == "vector"), values[0])
        values = [alike(v, like)[0] for v in values]
        return kind.of(emit(f"math.{name}", values, **float_flags("fast" if fastmath else None)))

    return over(of_numbers, *args)


def _fused(kind: type[Numeric], *operands: float) -> float:
    """Return ``a·b + c``, rounded once for Float64, else with enough digits to be rounded again."""
    import numpy as np

    from cute_dialect.interp.rounding import fma_f64, sticky_fma  # late: start-up

    a, b, c = (np.array([x]) for x in operands)
    with np.errstate(all="ignore"):
        return float((fma_f64 if kind is Float64 else sticky_fma)(a, b, c)[0])


def fma(a: Value, b: Value, c: Value, fastmath: bool = False) -> Value:
    """Return ``a * b + c`` with a single rounding."""
    return _several("fma", _fused, (a, b, c), fastmath)


def copysign(x: Value, sign: Value) -> Value:
    """Return ``x`` with the sign of ``sign``.

    >>> copysign(2.0, -0.0)
    Float32(-2.0)
    """
    return _several("copysign", lambda kind, a, b: math.copysign(a, b), (x, sign), False)


def atan2(y: Value, x: Value, fastmath: bool = False) -> Value:
    """Return the angle of the point ``(x, y)``, in radians."""
    return _several("atan2", lambda kind, a, b: math.atan2(a, b), (y, x), fastmath)


def powf(x: Value, y: Value, fastmath: bool = False) -> Value:
    """Return ``x ** y``. With ``fastmath`` it is ``exp2(y * log2(x))``, which needs a positive ``x``.

    >>> powf(2.0, 3)
    Float32(8.0)
    """
    if fastmath:
        return over(lambda a, b: exp2(binary("mul", log2(a, True), b), True), x, y, by_element=True)
    return over(lambda a, b: power(_as_float(a), b), x, y)


def max(a: Value, b: Value, *more: Value) -> Value:
    """Return the maximum of numbers or vectors. For floats it is NaN if any operand is.

    >>> max(3, 7, 5)
    Int32(7)
    """
    made = over(lambda x, y: _either("max", x, y), a, b)
    return max(made, *more) if more else made


def min(a: Value, b: Value, *more: Value) -> Value:
    """Return the minimum of numbers or vectors. For floats it is NaN if any operand is.

    >>> min(3, 7, 2)
    Int32(2)
    """
    made = over(lambda x, y: _either("min", x, y), a, b)
    return min(made, *more) if more else made


def _either(name: str, x: Any, y: Any) -> Any:
    return binary(name, x if isinstance(y, Numeric) else as_number(x), y)


def clamp(x: Value, low: Value, high: Value) -> Value:
    """Return ``x`` limited to the range ``[low, high]``."""
    return min(max(x, low), high)


# ----------------------------------------------------------------------------------------------------- bits


def _integer(x: Any, name: str) -> Numeric:
    number = as_number(x)
    kind = type(number)
    if not kind.is_integer:
        raise KernelTypeError("F236", f"{name} needs an integer, got {kind!r}")
    return Int32(number) if kind is Boolean else number


def _of_bits(name: str, op: str, python: Callable[[int, int], int], x: Any) -> Any:
    def of_number(n: Any) -> Any:
        number = _integer(n, name)
        kind = type(number)
        if number.is_static:
            return kind.exactly(fitted(kind, python(number.value & ((1 << kind.width) - 1), kind.width)))
        return kind.of(emit(op, [number.value]), None if name == "brev" else known_facts(kind, 0, kind.width, 1))

    return over(of_number, x)


def popc(x: Value) -> Value:
    """Return the number of set bits of an integer.

    >>> popc(255)
    Int32(8)
    """
    return _of_bits("popc", "math.ctpop", lambda bits, width: bits.bit_count(), x)


def clz(x: Value) -> Value:
    """Return the number of leading zero bits of an integer.

    >>> clz(1)
    Int32(31)
    """
    return _of_bits("clz", "math.ctlz", lambda bits, width: width - bits.bit_length(), x)


def brev(x: Value) -> Value:
    """Return the bits of an integer in reverse order.

    >>> brev(1)
    Int32(-2147483648)
    """
    return _of_bits("brev", "llvm.intr.bitreverse", lambda bits, width: int(f"{bits:0{width}b}"[::-1], 2), x)


@method_of(Numeric)
def _whole(self: Numeric, how: str) -> Any:
    """Return the number rounded to an integer type, as Python does."""
    if type(self).is_integer:
        return self
    return (Int64 if self.width == 64 else Int32)(_ROUNDINGS[how](self))


_ROUNDINGS = {"round": round, "floor": floor, "ceil": ceil, "trunc": trunc}
