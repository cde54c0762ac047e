"""Promises about integers, and fast division by a repeated divisor."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import active, current
from cute_dialect.lang.values.dtypes import Boolean, Int32, Numeric, Uint32, Uint64
from cute_dialect.lang.values.dynamic import is_dynamic
from cute_dialect.lang.values.folding import Facts, facts_of
from cute_dialect.lang.values.math import clz
from cute_dialect.lang.values.numeric import as_number

if TYPE_CHECKING:
    from xdsl.ir import Block, SSAValue

    from cute_dialect.lang.tracing.tracer import Tracer
    from cute_dialect.lang.values.signature_types import Int


def assume(
    x: Int, divby: int | None = None, *, align: int | None = None, range: tuple[Int | None, Int | None] | None = None
) -> Int:
    """Promise that an integer is a multiple of ``divby`` or lies in a range; returns the integer.

    The interpreter checks promises, as does GPU code of debug builds (``debug=True``, ``CUTE_ASSERT=1``).  Otherwise a
    broken promise gives undefined results.

    Args:
        x: the integer, or a pointer for ``align``.
        divby: a divisor of ``x``.
        align: the alignment of a pointer, in bytes.
        range: the minimum and the end of the values. Either may be None or a run-time number.

    Example::

        n = cute.assume(n, divby=8)          # n % 8 is 0, and (n, 4):(1, n) has aligned rows
    """
    if align is not None:
        if not hasattr(x, "align"):
            raise KernelTypeError("F239", f"assume: align= needs a pointer, got {_name(x)}")
        x = x.align(align)
        if divby is None and range is None:
            return x
    number = as_number(x)
    kind = type(number)
    if not kind.is_integer or kind is Boolean:
        raise KernelTypeError("F239", f"assume needs an integer, got {_name(x)}")
    low, end = (None, None) if range is None else _ends(range)
    if divby is not None and (type(divby) is not int or divby < 1):
        raise KernelTypeError("F239", f"assume: divby must be an integer of at least 1, got {divby!r}")
    if number.is_static and not is_dynamic(low) and not is_dynamic(end):
        _check(number, divby, low, end)
        return x
    promised = _promised(number, divby or 1, low, end)
    return x if number.is_static else promised


def _name(x: Any) -> str:
    return x.describe() if hasattr(x, "describe") else repr(x)


def _ends(ends: Any) -> tuple[Any, Any]:
    """Return the minimum and the end of a range."""
    low, end = (ends.start, ends.stop) if hasattr(ends, "stop") else tuple(ends)
    return low, end


def _check(number: Numeric, divby: int | None, low: int | None, end: int | None) -> None:
    value = number.value
    if divby is not None and value % divby:
        raise KernelTypeError("F239", f"assume: {value} is not a multiple of {divby}")
    if (low is not None and value < low) or (end is not None and value >= end):
        raise KernelTypeError("F239", f"assume: {value} is not in the promised range")


def _promised(number: Numeric, divby: int, low: Any, end: Any) -> Numeric:
    known = facts_of(number)
    least = known.low if low is None else _known(max, known.low, facts_of(as_number(low)).low)
    above = None if end is None else facts_of(as_number(end)).high
    greatest = _known(min, known.high, None if above is None else above - 1)
    tracer = active()
    if tracer is not None and tracer.state.get("asserts"):
        _assert(number % divby == 0, f"cute.assume promised a multiple of {divby}")
        _assert(True if low is None else number >= low, f"cute.assume promised {_name(low)} or more")
        _assert(True if end is None else number < end, f"cute.assume promised less than {_name(end)}")
    facts = Facts(least, greatest, lcm(known.divisor, divby))
    if tracer is not None:
        promises(tracer).setdefault(number.ssa, []).append((facts, tracer.block))
    return type(number).of(number.ssa, facts)


def promises(tracer: Tracer | None) -> dict[SSAValue, list[tuple[Facts, Block]]]:
    """Return the promises of `assume` about integers of a trace, each with the block in which it was made."""
    return {} if tracer is None else tracer.state.setdefault("promises", {})


def _assert(condition: Any, message: str) -> None:
    """Check a condition when the kernel runs, unless it is known to hold."""
    if condition is not True:
        from xdsl.dialects.builtin import StringAttr

        current().op("cf.assert", [condition.ssa], (), {"msg": StringAttr(message)})


def _known(choose: Any, *numbers: int | None) -> int | None:
    """Return the tightest of the known bounds."""
    return choose((n for n in numbers if n is not None), default=None)


# ------------------------------------------------------------------------------------------------------ divisors


class FastDivmodDivisor:
    """A run-time divisor prepared for fast division by a multiplication and a shift.

    The dividend is a non-negative Int32 or Uint32, the divisor is 1 to 2^31 - 1 (T. Granlund, P. Montgomery,
    "Division by invariant integers using multiplication", 1994).  ``divmod(x, d)``, ``x // d`` and ``x % d`` use it::

        d = cute.fast_divmod_create_divisor(n)      # once
        row, col = divmod(i, d)                     # many times
    """

    def __init__(self, divisor: Int):
        self.divisor = as_number(divisor)
        if type(self.divisor) not in (Int32, Uint32):
            raise KernelTypeError("F239", f"the divisor must be Int32 or Uint32, got {_name(divisor)}")
        if self.divisor.is_static:
            if self.divisor.value < 1:
                raise KernelTypeError("F232", f"the divisor must be at least 1, got {self.divisor.value}")
            self.multiplier: Any = None
            self.shift: Any = None
            return
        # 2^s is the least power of two that is not below d; m = floor(2^32 (2^s - d) / d) + 1.
        d = Uint32(self.divisor)
        self.shift = 32 - clz(d - 1)
        power = Uint64(1) << Uint64(self.shift)
        self.multiplier = Uint32(((power - Uint64(d)) << 32) // Uint64(d) + 1)

    def divide(self, x: Int) -> tuple[Int32, Int32]:
        """Return the quotient and remainder of a non-negative number."""
        number = as_number(x)
        kind = type(number)
        if kind not in (Int32, Uint32):
            raise KernelTypeError("F239", f"the dividend must be Int32 or Uint32, got {_name(x)}")
        if self.multiplier is None:
            d = kind(self.divisor)
            return number // d, number % d
        if number.is_static and number.value < 0:
            raise KernelTypeError("F239", f"the dividend must not be negative, got {number.value}")
        n = Uint32(number)
        high = Uint32((Uint64(n) * Uint64(self.multiplier)) >> 32)
        quotient = Uint32((Uint64(high) + Uint64(n)) >> Uint64(self.shift))
        remainder = n - quotient * Uint32(self.divisor)
        top = facts_of(number).high
        return (
            kind.of(quotient.ssa, Facts(0, top, 1)),
            kind.of(remainder.ssa, Facts(0, None if kind is Int32 else top, 1)),
        )

    def __rdivmod__(self, x: Any) -> tuple[Any, Any]:
        return self.divide(x)

    def __rfloordiv__(self, x: Any) -> Any:
        return self.divide(x)[0]

    def __rmod__(self, x: Any) -> Any:
        return self.divide(x)[1]

    def __repr__(self) -> str:
        return f"FastDivmodDivisor({self.divisor})"


def fast_divmod_create_divisor(divisor: Int) -> FastDivmodDivisor:
    """Return a divisor prepared for repeated fast division.

    >>> divmod(17, fast_divmod_create_divisor(5))
    (Int32(3), Int32(2))
    """
    return FastDivmodDivisor(divisor)
