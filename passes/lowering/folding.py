"""Constant folding of integer ``arith`` ops, for unrolled loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra import leaf
from cute_dialect.dialect.memory_types import integer_width

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
