"""Leaves: the integers of the layout algebra, static or dynamic.

A leaf is a Python ``int`` (static) or a :class:`Dyn` (dynamic, known only at run time).  A dynamic leaf has a bit width
and a known divisor.  All algorithms are written over leaves and therefore run in three modes:

* eager evaluation: every leaf is an ``int``, and plain arithmetic happens;
* type inference: dynamic leaves combine to dynamic leaves, so running an algorithm on types infers the result type;
* lowering: dynamic leaves carry an SSA ``value`` and an :class:`Emitter`, and each scalar operation that cannot be
  simplified emits one instruction.

``Dyn.div`` is a known divisor ``>= 1``, or 0 if the leaf does not track divisibility.  Operations on untracked leaves
give untracked leaves, so a file without ``div`` follows exactly the rules of the core dialect.  ``trees.tracked`` and
``trees.untracked`` convert a whole value.

>>> mul(Dyn(div=4), 16)
Dyn(?{div=64})
>>> mul(Dyn(), 16), mul(Dyn(), 1), mul(Dyn(), 0)
(Dyn(?), Dyn(?), 0)
>>> div(-7, 2), mod(-7, 2), ceil_div(-7, 2)
(-3, -1, -3)

Static results must fit in 64 bits, else AlgebraError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import gcd
from typing import Protocol, TypeAlias

from cute_dialect.errors import CuteError

DIV_CAP = 1 << 30
"""Products of divisors are reduced to their gcd with this number."""


class AlgebraError(CuteError, ValueError):
    """A precondition of the algebra is violated.  The message names the precondition and the operand."""


class Emitter(Protocol):
    """Emits scalar operations on run-time values as instructions.  Each method returns the SSA value of the result.

    Operands are leaves.  An ``int`` is a constant of ``width`` bits, the width of the operation.
    """

    def binary(self, op: str, a: Leaf, b: Leaf, width: int) -> object:
        """Emit ``op``: add, sub, mul, div, mod, ceil_div, min, max, and, or, xor, shr or shl."""
        ...

    def unary(self, op: str, a: Leaf, width: int) -> object:
        """Emit ``op``; the only unary op is abs."""
        ...

    def compare(self, predicate: str, a: Leaf, b: Leaf, width: int) -> object:
        """Emit a comparison with an ``i1`` result; ``predicate`` is eq, ne, slt, sle, sgt or sge."""
        ...

    def select(self, condition: object, a: Leaf, b: Leaf, width: int) -> object:
        """Emit ``a`` if ``condition`` (an ``i1`` value) is true, else ``b``."""
        ...

    def same(self, a: object, b: object) -> bool:
        """Return True if two SSA values are known to be equal."""
        ...


class Dyn:
    """A leaf that is known only at run time.  Equality compares width and divisibility only.

    Args:
        width: width in bits: 1, 8, 16, 32 or 64.
        div: known divisor, or 0 if divisibility is not tracked.
        value: SSA value of the leaf in lowering, else None.
        emitter: emitter of the instructions in lowering, else None.
    """

    __slots__ = ("div", "emitter", "value", "width")

    def __init__(self, width: int = 32, div: int = 0, value: object = None, emitter: Emitter | None = None):
        self.width = width
        self.div = div
        self.value = value
        self.emitter = emitter

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dyn) and self.width == other.width and (self.div or 1) == (other.div or 1)

    def __hash__(self) -> int:
        return hash((self.width, self.div or 1))

    def __str__(self) -> str:
        if self.div > 1:
            return f"?{{div={self.div}}}" if self.width == 32 else f"?{{i{self.width} div={self.div}}}"
        return "?" if self.width == 32 else f"?{{i{self.width}}}"

    def __repr__(self) -> str:
        return f"Dyn({self})"


Leaf: TypeAlias = int | Dyn

# ---------------------------------------------------------------------------------------------- width, divisibility


def width_of(leaf: Leaf) -> int:
    """Return the operand width in bits.  A static integer takes 32 bits if it fits, else 64."""
    if isinstance(leaf, Dyn):
        return leaf.width
    return 32 if -(1 << 31) <= leaf < (1 << 31) else 64


def divisibility(leaf: Leaf) -> int:
    """Return the largest provable divisor, or 0 (neutral for gcd) for a static 0."""
    return (leaf.div or 1) if isinstance(leaf, Dyn) else abs(leaf)


def result_width(a: Leaf, b: Leaf) -> int:
    """Return the width of a dynamic result: the larger of both operand widths."""
    return max(width_of(a), width_of(b))


def _fit(n: int) -> int:
    if not -0x8000000000000000 <= n <= 0x7FFFFFFFFFFFFFFF:
        raise AlgebraError(f"expected a result that fits in 64 bits, got {n}")
    return n


def _pow2_part(n: int) -> int:
    return (n & -n) if n else 0


def _tracks(a: Leaf, b: Leaf) -> bool:
    return not ((isinstance(a, Dyn) and a.div == 0) or (isinstance(b, Dyn) and b.div == 0))


def _binary(op: str, a: Leaf, b: Leaf, div: int) -> Dyn:
    width = result_width(a, b)
    emitter = (a.emitter if isinstance(a, Dyn) else None) or (b.emitter if isinstance(b, Dyn) else None)
    if not _tracks(a, b):
        div = 0
    value = None if emitter is None else emitter.binary(op, a, b, width)
    return Dyn(width, div, value, emitter)


# ------------------------------------------------------------------------------------------------------- arithmetic


def add(a: Leaf, b: Leaf) -> Leaf:
    """Return ``a + b``.  ``? + 0`` stays dynamic, with at least 32 bits, and needs no instruction."""
    if isinstance(a, int):
        if isinstance(b, int):
            return _fit(a + b)
        if a == 0 and b.width >= 32:
            return b
    elif isinstance(b, int) and b == 0 and a.width >= 32:
        return a
    return _binary("add", a, b, gcd(divisibility(a), divisibility(b)) or 1)


def sub(a: Leaf, b: Leaf) -> Leaf:
    """Return ``a - b``.  ``? - 0`` stays dynamic and needs no instruction."""
    if isinstance(b, int):
        if isinstance(a, int):
            return _fit(a - b)
        if b == 0 and a.width >= 32:
            return a
    return _binary("sub", a, b, gcd(divisibility(a), divisibility(b)) or 1)


def mul(a: Leaf, b: Leaf) -> Leaf:
    """Return ``a * b``.  A factor of static 0 gives 0, and a factor of static 1 the other operand."""
    if isinstance(a, int):
        if isinstance(b, int):
            return _fit(a * b)
        a, b = b, a
    if isinstance(b, int):
        if b == 0:
            return 0
        if b == 1:
            return a
    d = divisibility(a) * divisibility(b)
    return _binary("mul", a, b, d if d <= DIV_CAP else gcd(d, DIV_CAP))


def div(a: Leaf, b: Leaf) -> Leaf:
    """Return ``a / b``, truncated toward zero.  ``0 / ?`` is 0 and ``? / 1`` is the same leaf.

    Raises AlgebraError if ``b`` is static 0.
    """
    if isinstance(b, int):
        if b == 0:
            raise AlgebraError("division by zero")
        if isinstance(a, int):
            q = abs(a) // abs(b)
            return _fit(q) if (a < 0) == (b < 0) else -q
        if b == 1:
            return a
        d = divisibility(a)
        return _binary("div", a, b, d // abs(b) if d % b == 0 else 1)
    if isinstance(a, int) and a == 0:
        return 0
    return _binary("div", a, b, 1)


def mod(a: Leaf, b: Leaf) -> Leaf:
    """Return ``a % b`` with the sign of ``a``.

    ``0 % ?`` and ``? % 1`` are 0, and so is ``?{div=n} % m`` if ``m`` divides ``n``.  Raises AlgebraError if ``b`` is
    static 0.
    """
    if isinstance(b, int):
        if b == 0:
            raise AlgebraError("remainder of a division by zero")
        if isinstance(a, int):
            r = abs(a) % abs(b)
            return -r if a < 0 else r
        if b in (1, -1) or divisibility(a) % b == 0:
            return 0 if b in (1, -1) or a.div else _binary("mod", a, b, 0)
        return _binary("mod", a, b, gcd(divisibility(a), b))
    if isinstance(a, int) and a == 0:
        return 0
    return _binary("mod", a, b, gcd(divisibility(a), divisibility(b)) or 1)


def ceil_div(a: Leaf, b: Leaf) -> Leaf:
    """Return ``a / b``, rounded toward +infinity.  ``ceil(? / 1)`` is the same leaf and ``ceil(0 / ?)`` is 0.

    Raises AlgebraError if ``b`` is static 0.
    """
    if isinstance(b, int):
        if b == 0:
            raise AlgebraError("division by zero")
        if isinstance(a, int):
            return _fit(-(-a // b))
        if b == 1:
            return a
        d = divisibility(a)
        exact = a.div != 0 and d % b == 0
        # An exact quotient needs no rounding, which saves the select that ceildiv expands to.
        return _binary("div" if exact else "ceil_div", a, b, d // abs(b) if exact else 1)
    if isinstance(a, int) and a == 0:
        return 0
    return _binary("ceil_div", a, b, 1)


def minimum(a: Leaf, b: Leaf) -> Leaf:
    """Return the smaller leaf."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return _binary("min", a, b, gcd(divisibility(a), divisibility(b)) or 1)


def min_extent(a: Leaf, b: Leaf) -> Leaf:
    """Return the minimum of two extents, which are >= 1.

    ``min(?{div=n}, m)`` is static ``m`` if ``m`` divides ``n``, because a positive multiple of ``m`` is at least ``m``.
    """
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Dyn) and x.div and isinstance(y, int) and y > 0 and x.div % y == 0:
            return y
    return minimum(a, b)


def maximum(a: Leaf, b: Leaf) -> Leaf:
    """Return the larger leaf."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return _binary("max", a, b, gcd(divisibility(a), divisibility(b)) or 1)


def absolute(a: Leaf) -> Leaf:
    """Return the absolute value."""
    if isinstance(a, int):
        return abs(a)
    value = None if a.emitter is None else a.emitter.unary("abs", a, a.width)
    return Dyn(a.width, a.div, value, a.emitter)


def sign(a: Leaf) -> Leaf:
    """Return 1, 0 or -1."""
    if isinstance(a, int):
        return (a > 0) - (a < 0)
    negative_or_zero = select(compare("slt", a, 0), -1, 0)
    return select(compare("sgt", a, 0), 1, negative_or_zero)


# ----------------------------------------------------------------------------------------------------------- bitwise


def and_(a: Leaf, b: Leaf) -> Leaf:
    """Return the bitwise and.

    The result is static 0 if an operand is 0, or if divisibility proves it.  A multiple of ``2^k`` has ``k`` trailing
    zero bits, so ``?{div=64} & 0b111000`` is 0.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a & b
    if (isinstance(a, int) and a == 0) or (isinstance(b, int) and b == 0):
        return 0
    for x, m in ((a, b), (b, a)):
        if isinstance(x, Dyn) and isinstance(m, int) and 0 <= m < _pow2_part(x.div):
            return 0
    return _binary("and", a, b, max(_pow2_part(divisibility(a)), _pow2_part(divisibility(b))))


def or_(a: Leaf, b: Leaf) -> Leaf:
    """Return the bitwise or.  A static 0 operand gives the other operand."""
    return _or_like("or", a, b)


def mask_operand(mask: int, x: Leaf) -> int:
    """Return an unsigned 32-bit mask as an operand next to ``x``: in 32-bit instructions, bit 31 is the sign bit."""
    return mask - (1 << 32) if mask >> 31 and isinstance(x, Dyn) and x.width <= 32 else mask


def xor(a: Leaf, b: Leaf) -> Leaf:
    """Return the bitwise exclusive or.  A static 0 operand gives the other operand."""
    return _or_like("xor", a, b)


def _or_like(op: str, a: Leaf, b: Leaf) -> Leaf:
    if isinstance(a, int):
        if isinstance(b, int):
            return a | b if op == "or" else a ^ b
        if a == 0:
            return b
    elif isinstance(b, int) and b == 0:
        return a
    return _binary(op, a, b, gcd(_pow2_part(divisibility(a)), _pow2_part(divisibility(b))) or 1)


def shl(a: Leaf, by: int) -> Leaf:
    """Shift left by a static number of bits.  Raises AlgebraError unless it is in [0, width)."""
    if isinstance(a, int):
        return _fit(a << by)
    if by == 0:
        return a
    _check_shift(a, by)
    d = divisibility(a) << by
    return _binary("shl", a, by, d if d <= DIV_CAP else gcd(d, DIV_CAP))


def shr(a: Leaf, by: int) -> Leaf:
    """Shift right logically by a static number of bits.  Raises AlgebraError unless it is in [0, width)."""
    if isinstance(a, int):
        return a >> by
    if by == 0:
        return a
    _check_shift(a, by)
    d = divisibility(a)
    return _binary("shr", a, by, d >> by if d % (1 << by) == 0 else 1)


def _check_shift(a: Dyn, by: int) -> None:
    if not 0 <= by < a.width:
        raise AlgebraError(f"expected a shift in [0, {a.width}) for an i{a.width}, got {by}")


# --------------------------------------------------------------------------------------------------- tests, selection

Condition: TypeAlias = bool | Dyn
"""A condition that is known statically, or an ``i1`` leaf."""

_STATIC_TESTS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
}


def compare(predicate: str, a: Leaf, b: Leaf) -> Condition:
    """Return ``a predicate b`` (eq, ne, slt, sle, sgt, sge; signed) as a ``bool`` if it is known statically."""
    if isinstance(a, int) and isinstance(b, int):
        return _STATIC_TESTS[predicate](a, b)
    if predicate == "eq":
        for x, n in ((a, b), (b, a)):
            if isinstance(x, Dyn) and isinstance(n, int) and not -(1 << (x.width - 1)) <= n < (1 << (x.width - 1)):
                return False
    emitter = (a.emitter if isinstance(a, Dyn) else None) or (b.emitter if isinstance(b, Dyn) else None)
    value = None if emitter is None else emitter.compare(predicate, a, b, result_width(a, b))
    return Dyn(1, 1 if _tracks(a, b) else 0, value, emitter)


def select(condition: Condition, a: Leaf, b: Leaf) -> Leaf:
    """Return ``a`` if the condition is true, else ``b``.  A static condition emits nothing."""
    if isinstance(condition, bool):
        return a if condition else b
    width = result_width(a, b)
    div = gcd(divisibility(a), divisibility(b)) or 1
    emitter = condition.emitter
    value = None if emitter is None else emitter.select(condition.value, a, b, width)
    return Dyn(width, div if condition.div and _tracks(a, b) else 0, value, emitter)


def is_static_value(leaf: object, n: int) -> bool:
    """Return True if a leaf is the static integer ``n``."""
    return isinstance(leaf, int) and leaf == n
