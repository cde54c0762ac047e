"""Addresses are computed wide enough: 64-bit twins of 32-bit index arithmetic.

An offset that a type shows as ``?`` is an ``i32``; in memory it may still pass 2^31.  The arithmetic that expansion
emits is ``nsw`` (overflow is undefined), so ``sext(a * b)`` equals ``sext(a) * sext(b)``: the offset that enters an
address is recomputed in ``i64`` from the leaves of its expression, and the narrow twin dies if nothing else uses it.
The leaves (kernel arguments, thread and block ids, quotients and remainders) are 32-bit values that do not overflow:
the launcher checks arguments, the others are bounded by them.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i64
from xdsl.ir import Block, Operation, SSAValue

_SAME = (arith.AddiOp, arith.SubiOp, arith.MuliOp)


class Widener:
    """Gives the ``i64`` twin of an integer value, made next to the value itself and shared."""

    def __init__(self) -> None:
        self._twins: dict[SSAValue, SSAValue] = {}

    def twin(self, value: SSAValue) -> SSAValue:
        """``value`` as ``i64``, exact even where the 32-bit expression would pass 2^31."""
        if value.type == i64:
            return value
        stack = [value]
        while stack:
            v = stack[-1]
            if v in self._twins:
                stack.pop()
                continue
            owner = v.owner
            if _is_nsw(owner):
                missing = [o for o in owner.operands if o not in self._twins]  # pyright: ignore
                if missing:
                    stack.extend(missing)
                    continue
            stack.pop()
            self._twins[v] = self._make(v)
        return self._twins[value]

    def _make(self, value: SSAValue) -> SSAValue:
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
            new: Operation = arith.ConstantOp(IntegerAttr(owner.value.value.data, i64), i64)
        elif isinstance(owner, arith.ExtSIOp):
            source = owner.input
            if source.type == i64:
                return source
            new = arith.ExtSIOp(source, i64)
        elif _is_nsw(owner):
            assert isinstance(owner, Operation)
            new = type(owner).create(
                operands=[self._twins[o] for o in owner.operands],
                result_types=[i64],
                properties=dict(owner.properties),
            )
        else:
            assert isinstance(value.type, IntegerType)
            new = arith.ExtSIOp(value, i64)
        if isinstance(owner, Block):
            first = owner.first_op
            if first is None:
                owner.add_op(new)
            else:
                owner.insert_op_before(new, first)
        else:
            new.location = owner.location
            block = owner.parent
            assert block is not None
            block.insert_op_after(new, owner)
        return new.results[0]


def _is_nsw(owner: Operation | Block) -> bool:
    if not isinstance(owner, _SAME):
        return False
    flags = owner.properties.get("overflowFlags")
    return flags is not None and "nsw" in str(flags)
