"""Floats that are never negative, such as sums of exponentials.

Attention orders a release after its arithmetic by a condition that always holds: `if not sum(exp2(x)) < 0`. An ordered
comparison with NaN is false, so a value counts as never negative if it is NaN, too.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from cute_dialect.interp.errors import attr_of
from cute_dialect.prove.attributes import integer_of

_EXPONENTIALS = ("llvm.nvvm.ex2.approx.", "llvm.exp2.", "llvm.exp.")
_SUMS = ("arith.addf", "arith.mulf", "math.fma", "arith.minimumf", "arith.minnumf")
_LESS, _GREATER = 4, 2  # predicates of arith.cmpf: ordered, and less or greater


def is_false(comparison: Operation) -> bool:
    """Return True if an `arith.cmpf` asks whether a float that is never negative is less than zero."""
    predicate = integer_of(comparison, "predicate")
    if predicate not in (_LESS, _GREATER):
        return False
    value, bound = comparison.operands[:: 1 if predicate == _LESS else -1]
    number = _constant(bound)
    return number is not None and number <= 0 and is_never_negative(value)


def is_never_negative(value: SSAValue) -> bool:
    """Return True if a float is at least 0, or NaN. Values that loops carry are assumed to be, and checked."""
    seen: set[SSAValue] = set()
    work = [value]
    while work:
        v = work.pop()
        if v in seen:
            continue
        seen.add(v)
        needed = _needs(v)
        if needed is None:
            return False
        work += needed
    return True


def _needs(value: SSAValue) -> list[SSAValue] | None:
    """Return the values that must not be negative so that a value is not, None if there are none."""
    if isinstance(value, BlockArgument):
        return _carried(value)
    op = value.owner
    assert isinstance(op, Operation) and isinstance(value, OpResult)
    if op.name == "llvm.call_intrinsic":
        called = str(getattr(attr_of(op, "intrin"), "data", ""))
        return [] if called.startswith(_EXPONENTIALS) else None
    if op.name in ("math.exp2", "math.exp"):
        return []
    if op.name in _SUMS:
        return list(op.operands)
    if op.name == "arith.select":
        return list(op.operands[1:])
    if op.name in ("scf.if", "scf.for") and all(r.blocks for r in op.regions):
        ends = [last.operands[value.index] for r in op.regions if (last := r.block.last_op) is not None]
        return [*ends, op.operands[3 + value.index]] if op.name == "scf.for" else ends
    number = _constant(value)
    return [] if number is not None and number >= 0 else None


def _carried(value: BlockArgument) -> list[SSAValue] | None:
    """Return the values that an argument of a loop takes."""
    loop, last = value.block.parent_op(), value.block.last_op
    if loop is None or last is None or loop.name != "scf.for" or not value.index:
        return None
    return [loop.operands[2 + value.index], last.operands[value.index - 1]]


def _constant(value: SSAValue) -> float | None:
    op = value.owner
    if not isinstance(op, Operation) or op.name not in ("arith.constant", "llvm.mlir.constant"):
        return None
    literal = attr_of(op, "value")
    if not isinstance(literal, FloatAttr):
        return None
    number = float(literal.value.data)
    return None if math.isnan(number) else number


__all__ = ["is_false", "is_never_negative"]
