"""Constant folding of integer ``arith`` ops, for unrolled loops.

**Wide offsets.** A ``?`` in a type is an ``i32``, but an offset into memory may exceed 2^31.  Expansion emits ``nsw``
arithmetic (overflow is undefined), so ``sext(a * b)`` equals ``sext(a) * sext(b)``.  An offset of an address is
therefore computed again in ``i64`` from the leaves of its expression, and the 32-bit version is erased if it is unused.
The leaves (kernel arguments, thread and block ids, quotients and remainders) do not overflow: the launcher checks the
arguments, which bound the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i64
from xdsl.ir import Block, Operation, SSAValue

from cute_dialect.algebra import leaf
from cute_dialect.dialect.memory_types import integer_width
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.build import insert_after, inserted_at

_BINARY: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.minsi": min,
    "arith.maxsi": max,
}
_DIVISIONS: dict[str, Callable[[leaf.Leaf, leaf.Leaf], leaf.Leaf]] = {
    "arith.divsi": leaf.div,
    "arith.remsi": leaf.mod,
    "arith.ceildivsi": leaf.ceil_div,
}
_COMPARE: tuple[Callable[[int, int], bool] | None, ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    None,
    None,
    None,
    None,
)


def constant_of(value: SSAValue) -> int | None:
    """Return the value of an integer constant; ``None`` for any other value."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "arith.constant":
        attribute = owner.properties.get("value")
        if isinstance(attribute, IntegerAttr):
            return attribute.value.data
    return None


def _bits(value: SSAValue) -> int:
    return 64 if isinstance(value.type, IndexType) else integer_width(value.type) or 0


def _wrap(n: int, bits: int) -> int:
    if bits == 1:
        return n & 1
    n &= (1 << bits) - 1
    return n - (1 << bits) if n >> (bits - 1) else n


def fold_integer(op: Operation, operands: Sequence[SSAValue]) -> int | None:
    """Fold an integer op with one result; ``None`` if the result is unknown."""
    if not op.name.startswith("arith.") or len(op.results) != 1 or not operands:
        return None
    bits = _bits(op.results[0])
    values = [constant_of(o) for o in operands]
    if not bits or any(v is None for v in values):
        return None
    numbers = [v for v in values if v is not None]
    if (f := _BINARY.get(op.name)) is not None:
        return _wrap(f(*numbers), bits)
    if (g := _DIVISIONS.get(op.name)) is not None:
        q = g(*numbers) if numbers[1] else None
        return _wrap(q, bits) if isinstance(q, int) else None
    if op.name == "arith.cmpi":
        predicate = op.properties["predicate"]
        assert isinstance(predicate, IntegerAttr)
        test = _COMPARE[predicate.value.data]
        return None if test is None else int(test(*numbers))
    if op.name == "arith.select":
        return numbers[1] if numbers[0] & 1 else numbers[2]
    if op.name in ("arith.extsi", "arith.trunci", "arith.index_cast"):
        return _wrap(numbers[0], bits)
    if op.name == "arith.extui":
        return numbers[0] & ((1 << _bits(operands[0])) - 1)
    return None


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
