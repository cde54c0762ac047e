"""Unrolling of ``scf.for``: number of copies of the body, and bounds of the main and the remainder loop.

``cute.unroll = n : i32`` on a loop puts ``n`` copies of its body in one iteration.  The main loop runs up to
``middle``, and a second loop runs the remainder::

    scf.for %i = %a to %b step %s {cute.unroll = 4 : i32}

    count  = a < b ? (b - a - 1) / s + 1 : 0            // iterations; unsigned: b - a may not fit in the signed type
    rest   = count % 4
    middle = rest == 0 ? b : a + (count - rest) * s     // b first: a + count * s may wrap
    scf.for %i = %a to %middle step 4 * %s { copies for %i, %i + %s, %i + 2 * %s, %i + 3 * %s }
    scf.for %i = %middle to %b step %s { one copy }

If ``4 * %s`` does not fit in the type, the second loop runs all iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.dialect.memory_types import integer_width
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.base import PassError
from cute_dialect.passes.emitter import NSW
from cute_dialect.passes.lowering.build import BaseBuilder
from cute_dialect.passes.lowering.folding import constant_of

UNROLL = "cute.unroll"
MAX_UNROLL = 4096
"""Limit on the copies of a loop body, including enclosing unrolled loops, even if it indexes a register tensor."""


def requested_copies(op: Operation) -> int:
    """Return the number of copies that ``cute.unroll`` on a loop requests; 1 without it.

    Raises PassError for an invalid number and for a loop other than ``scf.for``.
    """
    attribute = op.attributes.get(UNROLL)
    if attribute is None:
        return 1
    if op.name != "scf.for":
        raise PassError(f"'{UNROLL}' applies to scf.for only, found it on '{op.name}'", op)
    copies = cast("IntegerAttr", attribute) if isinstance(attribute, IntegerAttr) else None
    if copies is None or copies.type != i32:
        raise PassError(f"'{UNROLL}' must be an integer of type i32, got {attribute}", op)
    if not 0 <= copies.value.data <= MAX_UNROLL:
        raise PassError(f"'{UNROLL}' must be from 0 to {MAX_UNROLL}, got {copies.value.data}", op)
    return max(1, copies.value.data)


@dataclass(frozen=True)
class Iterations:
    """Iterations of a loop with constant bounds: their number, and the values of the induction variable."""

    count: int
    start: int
    step: int

    def index(self, i: int) -> int:
        """Return the induction variable of iteration ``i``."""
        return self.start + i * self.step


def static_iterations(op: Operation, bounds: Sequence[SSAValue]) -> Iterations | None:
    """Return the iterations of a loop if its lowered bounds are constants and the step is positive, otherwise None."""
    lower, upper, step = (constant_of(v) for v in bounds)
    if lower is None or upper is None or step is None or step <= 0:
        return None
    if _is_unsigned(op):
        full = 2 * _largest(bounds[0].type) + 1
        lower, upper = lower & full, upper & full
    return Iterations(max(0, -((lower - upper) // step)), lower, step)


def split(
    build: BaseBuilder, op: Operation, bounds: Sequence[SSAValue], iterations: Iterations | None, copies: int
) -> tuple[SSAValue, SSAValue] | None:
    """Emit the end and the step of the main loop; ``None`` if the step does not fit in the type."""
    lower, upper, step = bounds
    t = lower.type
    by, largest = constant_of(step), _largest(t)
    if copies > largest or (by is not None and not 0 < by * copies <= largest):
        return None
    if iterations is not None:
        rest = iterations.count % copies
        middle = build.constant(iterations.index(iterations.count - rest), t) if rest else upper
        return middle, build.constant(iterations.step * copies, t)

    def emit(op_class: type[Operation], *operands: SSAValue) -> SSAValue:
        return build.emit(make_op(op_class, operands, [t]))

    def number(n: int) -> SSAValue:
        return build.constant(n, t)

    def choose(condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return build.emit(make_op(arith.SelectOp, [condition, a, b], [t]))

    def compare(a: SSAValue, b: SSAValue, predicate: str) -> SSAValue:
        made = build.emit(arith.CmpiOp(a, b, predicate))
        assert made.type == i1
        return made

    count = emit(arith.SubiOp, upper, lower)
    if by != 1:
        divisor = step if by is not None else emit(arith.MaxUIOp, step, number(1))  # a step of 0 must not trap here
        count = emit(arith.DivUIOp, emit(arith.SubiOp, count, number(1)), divisor)
        count = emit(arith.AddiOp, count, number(1))
    count = choose(compare(lower, upper, "ult" if _is_unsigned(op) else "slt"), count, number(0))
    rest = emit(arith.RemUIOp, count, number(copies))
    if by is not None:
        wide = number(by * copies)
    else:
        fits = compare(step, number(largest // copies), "ule")
        rest = choose(fits, rest, count)
        wide = choose(fits, emit(arith.MuliOp, step, number(copies)), step)
    if by == 1:
        return emit(arith.SubiOp, upper, rest), wide
    middle = emit(arith.AddiOp, lower, emit(arith.MuliOp, emit(arith.SubiOp, count, rest), step))
    return choose(compare(rest, number(0), "eq"), upper, middle), wide


def next_index(build: BaseBuilder, op: Operation, first: SSAValue, last: SSAValue, step: SSAValue, k: int) -> SSAValue:
    """Emit the induction variable of copy ``k``; ``first`` is that of copy 0, ``last`` that of copy ``k - 1``."""
    by = constant_of(step)
    operands = [last, step] if by is None else [first, build.constant(k * by, first.type)]
    return build.emit(make_op(arith.AddiOp, operands, [first.type], {} if _is_unsigned(op) else NSW))


def _is_unsigned(op: Operation) -> bool:
    return "unsignedCmp" in op.properties


def _largest(t: Attribute) -> int:
    """Return the largest signed value of an integer type or ``index``."""
    bits = 64 if isinstance(t, IndexType) else integer_width(t) or 64
    return (1 << (bits - 1)) - 1
