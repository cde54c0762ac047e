"""Exact scalar arithmetic of the ``arith`` and ``math`` dialects, with poison and undefined behavior.

Integers are signed and wrap at their width; an ``i1`` is 0 or 1.  Signed overflow of an ``nsw`` op is :data:`POISON`,
which propagates.  :class:`Undefined` is raised for undefined behavior: a division by zero, a branch on poison.

>>> step("addi", 3, 4, 32), step("muli", 1 << 20, 1 << 20, 32), step("muli", 1 << 20, 1 << 20, 32, nsw=True)
(7, 0, poison)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Operation


class Undefined(Exception):
    """The program has undefined behavior; the message describes it."""


class Unsupported(Exception):
    """The evaluator does not support an op or a type."""


class OutOfSteps(Exception):
    """The program exceeded its step limit."""


class Poison:
    """The type of :data:`POISON`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "poison"


POISON = Poison()
"""The result of an operation without a defined value. Harmless until something depends on it."""

Number: TypeAlias = int | Poison
Value: TypeAlias = "Number | str | tuple[Value, ...]"
"""A run-time value. A ``str`` is the address of a global."""


def flatten(value: Value) -> Iterator[Number | str]:
    """Yield the numbers in a value, in storage order."""
    if isinstance(value, tuple):
        for v in value:
            yield from flatten(v)
    else:
        yield value


def wrap(x: int, width: int) -> int:
    """Return ``x`` as a signed integer of ``width`` bits; an ``i1`` is 0 or 1."""
    x &= (1 << width) - 1
    return x - (1 << width) if width > 1 and x >> (width - 1) else x


def width_of_type(t: Attribute) -> int:
    """Return the width in bits of an integer or index type.  Raises Unsupported."""
    if isinstance(t, IntegerType):
        return t.bitwidth
    if isinstance(t, IndexType):
        return 64
    raise Unsupported(f"values of type {t}")


# ------------------------------------------------------------------------------------------------------- scalar steps


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise Undefined("division by zero")
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _unsigned(x: int, width: int) -> int:
    return x & ((1 << width) - 1)


def _shift(x: int, by: int, width: int, f: Callable[[int, int], int]) -> Number:
    by = _unsigned(by, width)
    return f(x, by) if by < width else POISON


def _nonzero(b: int) -> int:
    if b == 0:
        raise Undefined("division by zero")
    return b


STEPS: Mapping[str, Callable[[int, int, int], Number]] = {
    "addi": lambda a, b, w: a + b,
    "subi": lambda a, b, w: a - b,
    "muli": lambda a, b, w: a * b,
    "divsi": lambda a, b, w: _divide(a, b),
    "remsi": lambda a, b, w: a - _divide(a, b) * b,
    "divui": lambda a, b, w: _unsigned(a, w) // _unsigned(_nonzero(b), w),
    "remui": lambda a, b, w: _unsigned(a, w) % _unsigned(_nonzero(b), w),
    "ceildivsi": lambda a, b, w: -(-a // _nonzero(b)),
    "floordivsi": lambda a, b, w: a // _nonzero(b),
    "minsi": lambda a, b, w: min(a, b),
    "maxsi": lambda a, b, w: max(a, b),
    "minui": lambda a, b, w: min(_unsigned(a, w), _unsigned(b, w)),
    "maxui": lambda a, b, w: max(_unsigned(a, w), _unsigned(b, w)),
    "andi": lambda a, b, w: a & b,
    "ori": lambda a, b, w: a | b,
    "xori": lambda a, b, w: a ^ b,
    "shli": lambda a, b, w: _shift(a, b, w, lambda x, k: x << k),
    "shrui": lambda a, b, w: _shift(a, b, w, lambda x, k: _unsigned(x, w) >> k),
    "shrsi": lambda a, b, w: _shift(a, b, w, lambda x, k: x >> k),
}
"""Maps an ``arith`` op to its result before wrapping, from two signed operands and the width."""

TESTS: tuple[Callable[[int, int, int], bool], ...] = (
    lambda a, b, w: a == b,
    lambda a, b, w: a != b,
    lambda a, b, w: a < b,
    lambda a, b, w: a <= b,
    lambda a, b, w: a > b,
    lambda a, b, w: a >= b,
    lambda a, b, w: _unsigned(a, w) < _unsigned(b, w),
    lambda a, b, w: _unsigned(a, w) <= _unsigned(b, w),
    lambda a, b, w: _unsigned(a, w) > _unsigned(b, w),
    lambda a, b, w: _unsigned(a, w) >= _unsigned(b, w),
)
"""Comparisons, indexed by the ``arith.cmpi`` predicate."""


def step(name: str, a: Number, b: Number, width: int, *, nsw: bool = False) -> Number:
    """Execute one binary instruction.  Raises Undefined for a division by zero or by poison."""
    if isinstance(b, Poison) and ("div" in name or "rem" in name):
        raise Undefined("division by poison")
    if isinstance(a, Poison) or isinstance(b, Poison):
        return POISON
    exact = STEPS[name](a, b, width)
    if isinstance(exact, Poison):
        return POISON
    wrapped = wrap(exact, width)
    return POISON if nsw and wrapped != exact else wrapped


# ----------------------------------------------------------------------------------------------------------------- ops


def decided(condition: Value) -> bool:
    """Return True if a condition holds.  Raises Undefined for poison."""
    if isinstance(condition, Poison):
        raise Undefined("a branch depends on poison")
    return bool(condition)


def evaluate_arith(op: Operation, name: str, operands: Sequence[Value]) -> Value:
    """Return the result of an integer op of ``arith`` or ``math``.  Raises Undefined or Unsupported."""
    t = op.results[0].type
    if name == "constant":
        width = width_of_type(t)
        return wrap(op.properties["value"].value.data, width)  # pyright: ignore
    if name == "select":
        return operands[1] if decided(operands[0]) else operands[2]
    width = width_of_type(op.operands[0].type)
    if any(isinstance(x, Poison) for x in operands) and name not in ("divsi", "remsi", "ceildivsi", "floordivsi"):
        return POISON
    numbers = [x for x in operands if isinstance(x, int | Poison)]
    if name == "cmpi":
        a, b = numbers
        assert isinstance(a, int) and isinstance(b, int)
        number = int(op.properties["predicate"].value.data)  # pyright: ignore
        if width == 1 and number in range(2, 6):  # signed: true is -1
            a, b = -a, -b
        return int(TESTS[number](a, b, width))
    if name in ("extsi", "index_cast"):
        x = numbers[0]
        assert isinstance(x, int)
        return wrap(-x if width == 1 and name == "extsi" else x, width_of_type(t))
    if name in ("extui", "index_castui"):
        x = numbers[0]
        assert isinstance(x, int)
        return wrap(_unsigned(x, width), width_of_type(t))
    if name == "trunci":
        x = numbers[0]
        assert isinstance(x, int)
        return wrap(x, width_of_type(t))
    if name == "absi":
        x = numbers[0]
        assert isinstance(x, int)
        return wrap(abs(x), width)
    if name in STEPS:
        flags = op.properties.get("overflowFlags")
        nsw = flags is not None and any(f.value == "nsw" for f in flags.data)  # pyright: ignore
        return step(name, numbers[0], numbers[1], width, nsw=nsw)
    raise Unsupported(f"the op {op.name}")
