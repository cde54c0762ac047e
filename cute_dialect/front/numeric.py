"""Arithmetic of numbers: static ones in Python, exactly as the type would; dynamic ones by ops of arith.

Two types meet as section 'Numbers' of the language says: Python's numbers take the type of the other side, integers the
wider type, floats the wider one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.front import dtypes
from cute_dialect.front.dtypes import (
    NUMBER_TYPES,
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    Numeric,
)
from cute_dialect.front.errors import KernelTypeError, MergeError
from cute_dialect.front.values import ConstForm, Dynamic, Form

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

__all__ = ["Facts", "NumberForm", "as_number", "binary", "compare", "convert", "emit", "join_static", "promoted"]

NumberClass = type[Numeric]


class Facts(NamedTuple):
    """What is known of a dynamic integer: least and greatest value (None: that of its type), and a divisor."""

    low: int | None = None
    high: int | None = None
    divisor: int = 1


# ------------------------------------------------------------------------------------------------- static numbers


def fitted(kind: NumberClass, value: int | float | bool) -> int | float:
    """Return a Python number as the type holds it: integers wrapped to its bits, floats rounded once."""
    if kind is Boolean:
        return bool(value)
    if kind.is_integer:
        whole = int(value)
        bits = whole & ((1 << kind.width) - 1)
        return bits - (1 << kind.width) if kind.signed and bits >> (kind.width - 1) else bits
    value = float(value) if not isinstance(value, int) else _int_to_float(value)
    if kind is Float64:
        return value
    import numpy as np

    if kind is dtypes.TFloat32 or kind is Float32:
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    if kind is Float16:
        with np.errstate(over="ignore"):
            return float(np.float16(value))
    import ml_dtypes

    return float(np.array(value, np.float64).astype(getattr(ml_dtypes, kind.numpy)))


def _int_to_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def least_greatest(kind: NumberClass) -> tuple[int, int]:
    """Return the least and greatest integer of an integer type."""
    if kind is Boolean:
        return 0, 1
    return (-(1 << kind.width - 1), (1 << kind.width - 1) - 1) if kind.signed else (0, (1 << kind.width) - 1)


def literal(kind: NumberClass, value: int | float) -> Any:
    """Return a Python number that stands beside one of ``kind``.  Raises F230 where it does not fit."""
    if kind.is_integer and kind is not Boolean:
        low, high = least_greatest(kind)
        if not low <= value <= high and not (kind.signed and 0 <= value < 1 << kind.width):
            raise KernelTypeError("F230", f"{value} does not fit {kind!r}, which holds {low} to {high}")
    return kind.exactly(fitted(kind, value))


# ------------------------------------------------------------------------------------------------------ conversion


def convert(made: Numeric, x: object) -> None:
    """Set the value of a new number from what its class was called with."""
    kind = type(made)
    number = as_number(x)
    if number.is_static:
        made.value, made.is_static = fitted(kind, _checked(kind, number.value)), True
        return
    made.is_static = False
    made.value = cast_ssa(number.value, type(number), kind)
    if kind.is_integer and type(number).is_integer and kind.width >= type(number).width and kind.signed:
        made.facts = number.facts


def _checked(kind: NumberClass, value: int | float) -> int | float:
    if kind.is_integer and isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise KernelTypeError("F230", f"{value} is no integer: it cannot become {kind!r}")
    return value


def as_number(x: object) -> Numeric:
    """Return a number for what a user wrote.  Raises F230 where it is none.

    >>> as_number(3), as_number(1.5), as_number(True)
    (Int32(3), Float32(1.5), Boolean(True))
    """
    if isinstance(x, Numeric):
        return x
    if isinstance(x, bool):
        return Boolean.exactly(x)
    if isinstance(x, int):
        return (Int32 if -(1 << 31) <= x < 1 << 31 else Int64 if x < 1 << 63 else dtypes.Uint64).exactly(x)
    if isinstance(x, float):
        return Float32.exactly(x)
    to_number = getattr(x, "__cute_number__", None)
    if to_number is not None:
        return to_number()
    if hasattr(x, "dtype") and hasattr(x, "item") and getattr(x, "ndim", 1) == 0:  # numpy's scalars, 0-d arrays
        name = str(x.dtype).removeprefix("torch.")  # pyright: ignore
        for kind in NUMBER_TYPES.values():
            if kind.numpy == name:
                return kind.exactly(x.item())  # pyright: ignore
    raise KernelTypeError("F230", f"expected a number, got {_name(x)}")


def _name(x: object) -> str:
    return x.describe() if isinstance(x, Dynamic) else repr(x) if len(repr(x)) < 60 else f"a {type(x).__name__}"


def is_number(x: object) -> bool:
    """Tell whether a value is a number: Python's, numpy's, or ours."""
    return isinstance(x, Numeric | int | float) or (hasattr(x, "dtype") and getattr(x, "ndim", 1) == 0)


def emit(name: str, operands: Sequence[SSAValue], type: Attribute | None = None, **properties: Attribute) -> SSAValue:
    """Append an op with one result, of the type of its first operand if none is given."""
    from cute_dialect.front.trace import current

    return current().value(name, operands, [operands[0].type if type is None else type], properties)


def shaped(element: Attribute, like: SSAValue) -> Attribute:
    """Return a type, or the vector of it where ``like`` is a vector."""
    if like.type.name != "vector":
        return element
    from xdsl.dialects.builtin import VectorType

    return VectorType(element, like.type.get_shape())


def alike(a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Return two operands as one type: a number beside a vector becomes a vector of it."""
    if a.type != b.type:
        if a.type.name == "vector":
            return a, emit("vector.broadcast", [b], a.type)
        if b.type.name == "vector":
            return emit("vector.broadcast", [a], b.type), b
    return a, b


def cast_ssa(value: SSAValue, of: NumberClass, to: NumberClass) -> SSAValue:
    """Return an SSA value of one number type as another's: C's conversion, floats rounded to nearest even."""
    from cute_dialect.front.trace import current, parse_type

    if of is to or (of.mlir_type == to.mlir_type and of.is_integer):
        return value
    t = shaped(to.attribute, value)
    if to is Boolean:
        zero = current().constant(0 if of.is_integer else 0.0, of.attribute)
        return _compare_ssa("ne", *alike(value, zero), of)
    if of.is_integer and to.is_integer:
        if to.width < of.width:
            return emit("arith.trunci", [value], t, overflowFlags=parse_type("#arith.overflow<none>"))
        return emit("arith.extsi" if of.signed else "arith.extui", [value], t)
    if of.is_integer:
        return emit("arith.sitofp" if of.signed else "arith.uitofp", [value], t)
    if to.is_integer:
        return emit("arith.fptosi" if to.signed else "arith.fptoui", [value], t)
    if to.width > of.width:
        return emit("arith.extf", [value], t, fastmath=parse_type("#arith.fastmath<none>"))
    if to.width < of.width:
        return emit("arith.truncf", [value], t)
    return cast_ssa(cast_ssa(value, of, Float32), Float32, to)


# ------------------------------------------------------------------------------------------------------- operators


def promoted(a: Numeric, b: Numeric, name: str) -> NumberClass:
    """Return the type two numbers meet in."""
    x, y = type(a), type(b)
    if x is y:
        return x if x is not Boolean or name in ("and", "or", "xor", "eq", "ne") else Int32
    if x is Boolean:
        x = Int32 if y.is_integer else y
    if y is Boolean:
        y = Int32 if x.is_integer else x
    if x is y:
        return x
    if x.is_float and y.is_float:
        if {x, y} == {Float16, BFloat16} or (x.width < 16 or y.width < 16):
            return Float32 if max(x.width, y.width) <= 32 else Float64
        return x if (x.width, x is Float32) >= (y.width, y is Float32) else y
    if x.is_float or y.is_float:
        return x if x.is_float else y
    if x.width != y.width:
        return x if x.width > y.width else y
    if name in ("lt", "le", "gt", "ge", "floordiv", "mod", "shr", "min", "max"):
        raise KernelTypeError(
            "F231", f"{x!r} and {y!r} differ in sign: '{_SIGNS.get(name, name)}' would depend on which is meant",
            hint=f"convert one of them, e.g. {x!r}(b)",
        )  # fmt: skip
    return x if not x.signed else y


def pair(a: object, b: object, name: str) -> tuple[Numeric, Numeric, NumberClass]:
    """Return two operands as numbers, and the type they meet in; a Python number adapts to the other side."""
    if isinstance(a, Numeric) and isinstance(b, Numeric):
        return a, b, promoted(a, b, name)
    if isinstance(a, Numeric):
        if isinstance(b, bool) or not isinstance(b, int | float):
            b = as_number(b)
            return a, b, promoted(a, b, name)
        return (*_adapted(a, b, name),)  # pyright: ignore
    x, y, kind = pair(b, a, name)
    return y, x, kind


def _adapted(a: Numeric, b: int | float, name: str) -> tuple[Numeric, Numeric, NumberClass]:
    kind = type(a)
    if isinstance(b, int):
        if kind is Boolean:
            return a, as_number(b), promoted(a, as_number(b), name)
        return a, literal(kind, b), kind
    if kind.is_float:
        return a, kind.exactly(fitted(kind, b)), kind
    wide = Float64 if kind.width == 64 else Float32
    return a, wide.exactly(fitted(wide, b)), wide


_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^",
    "shl": "<<", "shr": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "pow": "**",
}  # fmt: skip
_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "shl": operator.lshift, "shr": operator.rshift,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "min": min, "max": max,
}  # fmt: skip
_INTEGER = {
    "add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "and": "arith.andi", "or": "arith.ori",
    "xor": "arith.xori", "shl": "arith.shli",
}  # fmt: skip
_FLOAT = {
    "add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "truediv": "arith.divf", "min": "arith.minimumf",
    "max": "arith.maximumf",
}  # fmt: skip
_PREDICATES = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_FLOAT_PREDICATES = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}


def binary(name: str, a: object, b: object) -> Any:
    """Return ``a`` op ``b`` for two numbers, one of them ours; ``name`` is ``add sub mul truediv floordiv mod …``."""
    left, right, kind = pair(a, b, name)
    if name == "truediv" and kind.is_integer:
        kind = Float64 if kind.width == 64 else Float32
    if name in ("and", "or", "xor", "shl", "shr") and kind.is_float:
        raise KernelTypeError("F236", f"'{_SIGNS[name]}' is for integers, not for {kind!r}")
    if left.is_static and right.is_static:
        return _fold(name, left.value, right.value, kind)
    x, y = kind(left), kind(right)
    if y.is_static and (found := _neutral(name, x, y.value)) is not None:
        return found
    if x.is_static and name in ("add", "mul") and (found := _neutral(name, y, x.value)) is not None:
        return found
    return kind.of(_emit_binary(name, x, y, kind), _facts(name, x, y) if kind.is_integer else None)


def _neutral(name: str, x: Numeric, y: int | float) -> Numeric | None:
    """Return what an operation with a static right side is where nothing has to be done."""
    kind = type(x)
    if not kind.is_integer:
        return None
    if name in ("floordiv", "mod") and y == 0:
        raise KernelTypeError("F232", f"division of {x.describe()} by zero")
    if (name in ("add", "sub", "or", "xor", "shl", "shr") and y == 0) or (name in ("mul", "floordiv") and y == 1):
        return x
    if (name in ("mul", "and") and y == 0) or (name == "mod" and y == 1):
        return kind.exactly(0)
    facts = x.facts
    if name == "mod" and facts is not None and y > 0:
        if facts.divisor % int(y) == 0:
            return kind.exactly(0)
        if _within(facts, y):
            return x
    if name == "floordiv" and facts is not None and _within(facts, y):
        return kind.exactly(0)
    if name in ("shl", "shr") and not 0 <= y < kind.width:
        raise KernelTypeError("F233", f"{kind!r} has {kind.width} bits: it cannot be shifted by {y}")
    return None


def _within(facts: Facts, end: int | float) -> bool:
    return facts.low is not None and facts.high is not None and facts.low >= 0 and facts.high < end


def _fold(name: str, a: Any, b: Any, kind: NumberClass) -> Any:
    if name in ("floordiv", "mod") and b == 0 and kind.is_integer:
        raise KernelTypeError("F232", f"division of {a} by zero")
    if name in ("shl", "shr") and not 0 <= b < kind.width:
        raise KernelTypeError("F233", f"{kind!r} has {kind.width} bits: it cannot be shifted by {b}")
    x, y = fitted(kind, a), fitted(kind, b)
    if name == "truediv":
        return kind.exactly(fitted(kind, _divided(float(x), float(y))))
    if kind.is_float and name in ("floordiv", "mod") and y == 0:
        return kind.exactly(float("nan") if name == "mod" or x == 0 or x != x else float("inf") * x * (1 / _sign(y)))
    return kind.exactly(fitted(kind, _PYTHON[name](x, y)))


def _sign(y: float) -> float:
    import math

    return math.copysign(1.0, y)


def _divided(x: float, y: float) -> float:
    import numpy as np

    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


def _contract() -> dict[str, Attribute]:
    from cute_dialect.front.trace import active, parse_type

    tracer = active()
    return {
        "fastmath": parse_type(f"#arith.fastmath<{tracer.state.get('fastmath', 'contract') if tracer else 'contract'}>")
    }


def _emit_binary(name: str, x: Numeric, y: Numeric, kind: NumberClass) -> SSAValue:
    from cute_dialect.front.trace import parse_type

    a, b = alike(x.ssa, y.ssa)
    if kind.is_float:
        if name in ("floordiv", "mod"):
            return _float_floor(name, a, b)
        return emit(_FLOAT[name], [a, b], **_contract())
    if name in _INTEGER:
        more = {"overflowFlags": parse_type("#arith.overflow<none>")} if name in ("add", "sub", "mul", "shl") else {}
        return emit(_INTEGER[name], [a, b], **more)
    if name == "shr":
        return emit("arith.shrsi" if kind.signed else "arith.shrui", [a, b])
    if name in ("min", "max"):
        return emit(f"arith.{name}{'s' if kind.signed else 'u'}i", [a, b])
    unsigned = not kind.signed or (_is_natural(x) and _is_natural(y))
    if name == "floordiv":
        return emit("arith.divui" if unsigned else "arith.floordivsi", [a, b])
    if unsigned:
        return emit("arith.remui", [a, b])
    quotient = emit("arith.floordivsi", [a, b])
    none = parse_type("#arith.overflow<none>")
    return emit("arith.subi", [a, emit("arith.muli", [quotient, b], overflowFlags=none)], overflowFlags=none)


def _float_floor(name: str, a: SSAValue, b: SSAValue) -> SSAValue:
    fast = _contract()
    quotient = emit("math.floor", [emit("arith.divf", [a, b], **fast)], **fast)
    if name == "floordiv":
        return quotient
    return emit("arith.subf", [a, emit("arith.mulf", [quotient, b], **fast)], **fast)


def _is_natural(x: Numeric) -> bool:
    if x.is_static:
        return x.value >= 0
    return x.facts is not None and x.facts.low is not None and x.facts.low >= 0


def facts_of(x: Numeric) -> Facts:
    """Return what is known of an integer."""
    if x.is_static:
        return Facts(int(x.value), int(x.value), abs(int(x.value)))
    return x.facts or Facts(0 if not type(x).signed else None, None, 1)


def _facts(name: str, x: Numeric, y: Numeric) -> Facts | None:
    """Return what is known of a result; None where an overflow could make it untrue."""
    from math import gcd

    a, b = facts_of(x), facts_of(y)
    low = high = None
    divisor = 1
    pairs = (
        None if None in (a.low, a.high, b.low, b.high) else [(p, q) for p in (a.low, a.high) for q in (b.low, b.high)]
    )
    if name in ("add", "sub", "mul"):
        divisor = a.divisor * b.divisor if name == "mul" else gcd(a.divisor, b.divisor)
        if pairs is not None:
            ends = [_PYTHON[name](p, q) for p, q in pairs]
            low, high = min(ends), max(ends)
    elif name == "mod" and y.is_static and y.value > 0:
        low, high = 0, int(y.value) - 1
        divisor = gcd(a.divisor, int(y.value))
    elif name == "floordiv" and y.is_static and y.value > 0:
        low = None if a.low is None else a.low // int(y.value)
        high = None if a.high is None else a.high // int(y.value)
        divisor = a.divisor // int(y.value) if a.divisor % int(y.value) == 0 else 1
    elif name in ("min", "max") and pairs is not None:
        low, high = _PYTHON[name](a.low, b.low), _PYTHON[name](a.high, b.high)
        divisor = gcd(a.divisor, b.divisor)
    elif name == "and" and (_is_natural(x) or _is_natural(y)):
        tops = [f.high for f, n in ((a, x), (b, y)) if _is_natural(n) and f.high is not None]
        low, high = 0, min(tops) if tops else None
    elif name == "shr" and a.low is not None and a.low >= 0 and y.is_static:
        low, high = 0, None if a.high is None else a.high >> int(y.value)
    else:
        return None
    least, greatest = least_greatest(type(x))
    if name in ("add", "sub", "mul") and (low is None or high is None or low < least or high > greatest):
        # It may wrap, which keeps divisors that are powers of two.
        return Facts(None if type(x).signed else 0, None, min(divisor & -divisor, 1 << 30) or 1)
    return Facts(low, high, max(divisor, 1))


def compare(name: str, a: object, b: object) -> Any:
    """Return the comparison of two numbers: a bool where both are static, else a Boolean."""
    left, right, kind = pair(a, b, name)
    if left.is_static and right.is_static:
        return bool(_PYTHON[name](fitted(kind, left.value), fitted(kind, right.value)))
    return Boolean.of(_compare_ssa(name, *alike(kind(left).ssa, kind(right).ssa), kind))


def _compare_ssa(name: str, a: SSAValue, b: SSAValue, kind: NumberClass) -> SSAValue:
    from cute_dialect.front.trace import parse_type

    if kind.is_float:
        number = parse_type(f"{_FLOAT_PREDICATES[name]} : i64")
        return emit(
            "arith.cmpf",
            [a, b],
            shaped(parse_type("i1"), a),
            predicate=number,
            fastmath=parse_type("#arith.fastmath<none>"),
        )
    code = _PREDICATES[name] + (4 if not kind.signed and name not in ("eq", "ne") else 0)
    return emit("arith.cmpi", [a, b], shaped(parse_type("i1"), a), predicate=parse_type(f"{code} : i64"))


def negated(x: Numeric) -> Any:
    """Return ``-x``."""
    if type(x).is_integer:
        return binary("sub", type(x)(0) if type(x) is not Boolean else Int32(0), x)
    if x.is_static:
        return type(x).exactly(-x.value)
    return type(x).of(emit("arith.negf", [x.value], **_contract()))


def inverted(x: Numeric) -> Any:
    """Return ``~x``; of a Boolean its contrary."""
    if type(x) is Boolean:
        return binary("xor", x, Boolean.exactly(True))
    return binary("xor", x, type(x).exactly(-1 if type(x).signed else (1 << x.width) - 1))


def absolute(x: Numeric) -> Any:
    """Return ``abs(x)``."""
    if x.is_static:
        return type(x).exactly(fitted(type(x), abs(x.value)))
    if not type(x).is_integer:
        return type(x).of(emit("math.absf", [x.value], **_contract()))
    return x if not type(x).signed else type(x).of(emit("math.absi", [x.value]))


def power(x: Any, n: Any) -> Any:
    """Return ``x ** n``; by products where ``n`` is a small static integer."""
    base: Any
    exponent: Any
    base, exponent = (as_number(x), as_number(n)) if not isinstance(x, Numeric) else (x, n)
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
    left, right, kind = pair(base, exponent, "pow")
    if not kind.is_float:
        kind = Float64 if kind.width == 64 else Float32
    if left.is_static and right.is_static:
        return kind.exactly(fitted(kind, float(left.value) ** float(right.value)))
    return kind.of(emit("math.powf", alike(kind(left).ssa, kind(right).ssa), **_contract()))


def power_of(n: Numeric, x: object) -> Any:
    """Return ``x ** n``."""
    return power(as_number(x), n)


# ----------------------------------------------------------------------------------------------------------- forms


class NumberForm(Form):
    """The form of a dynamic number of one type."""

    __slots__ = ("facts", "kind", "types")

    def __init__(self, kind: NumberClass, facts: Facts | None = None):
        self.kind = kind
        self.types = (kind.attribute,)
        self.facts = facts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberForm) and self.kind is other.kind and self.facts == other.facts

    def __hash__(self) -> int:
        return hash(self.kind)

    def __repr__(self) -> str:
        return f"NumberForm({self.kind!r})"

    def take(self, value: object) -> list[SSAValue]:
        if isinstance(value, int | float):
            value = literal(self.kind, value)
        assert isinstance(value, Numeric), value
        return [value.ssa if type(value) is self.kind else self.kind(value).ssa]

    def make(self, leaves: Sequence[SSAValue]) -> object:
        return self.kind.of(leaves[0], self.facts)

    def loosened(self) -> Form:
        return NumberForm(self.kind)

    def join(self, other: Form) -> Form:
        if isinstance(other, NumberForm):
            if self.kind is not other.kind:
                raise MergeError(
                    "F203", f"it is {self.kind!r} or {other.kind!r}",
                    hint=f"convert one side, e.g. with cute.{self.kind!r}(…)",
                )  # fmt: skip
            return NumberForm(self.kind, _joined_facts(self.facts, other.facts))
        if isinstance(other, ConstForm):
            return NumberForm(self.kind, self._with_static(other.value))
        raise MergeError("F208", f"it is a number ({self.kind!r}) or something else")

    def _with_static(self, value: object) -> Facts | None:
        kind = self.kind
        if isinstance(value, Numeric):
            if type(value) is not kind:
                raise MergeError("F203", f"it is {kind!r} or {type(value)!r}")
            value = value.value
        if not isinstance(value, int | float):
            raise MergeError("F208", f"it is {kind!r} or {value!r}")
        if kind is Boolean and not isinstance(value, bool):
            raise MergeError("F202", f"it is Boolean or the number {value!r}")
        if isinstance(value, bool) and kind is not Boolean:
            raise MergeError("F202", f"it is {kind!r} or {value!r}")
        if kind.is_integer and (
            isinstance(value, float) or not least_greatest(kind)[0] <= value <= least_greatest(kind)[1]
        ):
            raise MergeError("F201", f"it is {kind!r} or {value!r}, which is none")
        if kind.is_float and isinstance(value, int) and fitted(kind, value) != value:
            raise MergeError("F201", f"it is {kind!r} or {value!r}, which is none exactly")
        if not kind.is_integer:
            return None
        return _joined_facts(self.facts, Facts(int(value), int(value), abs(int(value))))


def _joined_facts(a: Facts | None, b: Facts | None) -> Facts | None:
    from math import gcd

    if a is None or b is None:
        return None
    return Facts(
        None if a.low is None or b.low is None else min(a.low, b.low),
        None if a.high is None or b.high is None else max(a.high, b.high), gcd(a.divisor, b.divisor) or 1,
    )  # fmt: skip


def number_form(x: Numeric) -> Form:
    """Return the form of a number."""
    return ConstForm(x) if x.is_static else NumberForm(type(x), x.facts)


def _type_of_static(value: object) -> NumberClass | None:
    if isinstance(value, Numeric):
        return type(value)
    return type(as_number(value)) if isinstance(value, int | float) else None


def join_static(a: object, b: object) -> Form | None:
    """Return the form that two different static values have together, None where there is none."""
    x, y = _type_of_static(a), _type_of_static(b)
    if x is None or y is None:
        return None
    if x is not y:
        plain = not isinstance(a, Numeric) and not isinstance(b, Numeric)
        if plain and x.is_integer and y.is_integer and Boolean not in (x, y):
            return NumberForm(x if x.width > y.width else y)
        if isinstance(a, Numeric) and not isinstance(b, Numeric):
            return NumberForm(x).join(ConstForm(b))
        if isinstance(b, Numeric) and not isinstance(a, Numeric):
            return NumberForm(y).join(ConstForm(a))
        code = "F202" if plain else "F203"
        raise MergeError(code, f"it is {a!r} or {b!r}: {x!r} or {y!r}", hint="write both as one type")
    return NumberForm(x)


def widen_static(value: object) -> Form | None:
    """Return the form of a dynamic number like this static one, None for what is no number."""
    kind = _type_of_static(value)
    return NumberForm(kind) if kind is not None else None
