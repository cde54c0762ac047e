"""Arithmetic on numbers: static ones are computed in Python, dynamic ones by ops of the arith dialect.

Type promotion follows section "Numbers" of the language reference.  Python numbers take the type of the other operand;
among typed numbers the wider type wins.  Floats of 8 bits and fewer, and ``TFloat32``, are storage types and compute as
Float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.emission import alike, emit, float_flags, no_wrap_flags, shaped
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values import dtypes
from cute_dialect.lang.values.casts import cast_ssa, compare_ssa
from cute_dialect.lang.values.dtypes import (
    NUMBER_TYPES,
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    Numeric,
    TFloat32,
)
from cute_dialect.lang.values.dynamic import Dynamic
from cute_dialect.lang.values.float_division import divided
from cute_dialect.lang.values.folding import (
    PYTHON,
    SIGNS,
    checked_shift,
    fitted,
    folded,
    least_greatest,
    literal,
    power_of_floats,
)
from cute_dialect.lang.values.integer_ranges import (
    Facts,
    absolute_facts,
    binary_facts,
    converted_facts,
    facts_of,
    is_natural,
)
from cute_dialect.lang.values.methods import give_operators, method_of

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

__all__ = [
    "Facts",
    "absolute",
    "alike",
    "as_number",
    "binary",
    "compare",
    "compare_ssa",
    "computing",
    "convert",
    "emit",
    "facts_of",
    "inverted",
    "is_number",
    "literal",
    "negated",
    "pair",
    "power",
    "power_of",
    "promoted",
    "shaped",
]

NumberClass = type[Numeric]

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
