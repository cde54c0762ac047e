"""Exact ``//`` and ``%`` of floats with Python's semantics: the remainder has the sign of the divisor.

The remainder of ``|a|`` by ``|b|`` is reduced by steps ``r - floor(r / b) * b``, each without rounding error: ``r / b``
is rounded to p bits, so the difference is less than an ulp of the quotient times ``b``.  It fits in p bits, and ``fma``
computes it exactly.  One step suffices if the quotient is below 2^p; otherwise a loop runs more steps.  The final
correction follows CPython's ``float_divmod``, as do NumPy's ``floor_divide`` and ``remainder``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cute_dialect.lang.tracing.emission import concatenated, emit, extract, float_flags, shaped, shuffle
from cute_dialect.lang.tracing.errors import CompileError
from cute_dialect.lang.tracing.source_location import user_places
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.casts import compare_ssa
from cute_dialect.lang.values.dtypes import Float32, Float64

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from cute_dialect.lang.tracing.tracer import Tracer

__all__ = ["divided", "refuse_in_launcher"]


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
