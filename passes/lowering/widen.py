"""64-bit address arithmetic: computes 32-bit index expressions again in ``i64``.

A ``?`` in a type is an ``i32``, but an offset into memory may exceed 2^31.  Expansion emits ``nsw`` arithmetic
(overflow is undefined), so ``sext(a * b)`` equals ``sext(a) * sext(b)``.  An offset of an address is therefore computed
again in ``i64`` from the leaves of its expression, and the 32-bit version is erased if it is unused.  The leaves
(kernel arguments, thread and block ids, quotients and remainders) do not overflow: the launcher checks the arguments,
which bound the others.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i64
from xdsl.ir import Block, Operation, SSAValue

from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.build import insert_after, inserted_at
from cute_dialect.passes.lowering.folding import constant_of

_SAME = ("arith.addi", "arith.subi", "arith.muli")


class Widener:
    """Cache of ``i64`` versions of integer values, each placed next to the original."""

    def __init__(self) -> None:
        self._widened: dict[SSAValue, SSAValue] = {}

    def widened(self, value: SSAValue) -> SSAValue:
        """Return ``value`` as ``i64``, exact even if the 32-bit expression would overflow."""
        if value.type == i64:
            return value
        value = stored(value)
        stack = [value]
        while stack:
            v = stack[-1]
            if v in self._widened:
                stack.pop()
                continue
            owner = v.owner
            if _is_nsw(owner):
                missing = [s for o in _operands(owner) if (s := stored(o)) not in self._widened]
                if missing:
                    stack.extend(missing)
                    continue
            stack.pop()
            self._widened[v] = self._make(v)
        return self._widened[value]

    def _make(self, value: SSAValue) -> SSAValue:
        owner = value.owner
        known = constant_of(value)
        if known is not None:
            new: Operation = arith.ConstantOp(IntegerAttr(known, i64), i64)
        elif isinstance(owner, Operation) and owner.name == "arith.extsi":
            new = arith.ExtSIOp(owner.operands[0], i64)
        elif _is_nsw(owner):
            assert isinstance(owner, Operation)
            new = make_op(type(owner), [self._widened[stored(o)] for o in owner.operands], [i64], owner.properties)
        else:
            assert isinstance(value.type, IntegerType)
            new = arith.ExtSIOp(value, i64)
        insert_after(new, value)
        return new.results[0]


def stored(value: SSAValue) -> SSAValue:
    """If ``value`` extracts a struct member, return the value that was inserted there; otherwise return ``value``."""
    found, path = inserted_at(value, ())
    return value if path else found


def _operands(owner: Operation | Block) -> tuple[SSAValue, ...]:
    assert isinstance(owner, Operation)
    return tuple(owner.operands)


def _is_nsw(owner: Operation | Block) -> bool:
    if not isinstance(owner, Operation) or owner.name not in _SAME:
        return False
    flags = owner.properties.get("overflowFlags")
    return isinstance(flags, arith.IntegerOverflowAttr) and arith.IntegerOverflowFlag.NSW in flags.data
