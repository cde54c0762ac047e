"""What passes do most with ops, in fewer steps than xDSL takes: make them, put them in a block, visit them.

Most ops have operands, results and properties only, and making them is most of what a pass spends on them.
``Operation.create`` sets each field by a method that first takes back what was there.  An op that is new has nothing
to be taken back, so :func:`make_op` sets the fields: half the time.  What it relies on is private to xDSL, whose
version is fixed in ``pyproject.toml``; ``test_editing`` compares it with ``Operation.create``.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.ir.core import SSAValues, Use
from xdsl.irdl import IRDLOperation

OperationT = TypeVar("OperationT", bound=Operation)
_NOTHING: Mapping[str, Attribute] = {}


def make_op(
    op_class: type[OperationT],
    operands: Sequence[SSAValue] = (),
    result_types: Iterable[Attribute] = (),
    properties: Mapping[str, Attribute] = _NOTHING,
    location: LocationAttr = UNKNOWN_LOC,
) -> OperationT:
    """``op_class.create`` of an op without attributes, successors and regions.

    >>> from xdsl.dialects.arith import AddiOp
    >>> from xdsl.dialects.builtin import i32
    >>> from xdsl.dialects.test import TestOp
    >>> value = make_op(TestOp, (), [i32]).results[0]
    >>> print(make_op(AddiOp, [value, value], [i32]))
    %0 = arith.addi %1, %1 : i32
    """
    op = op_class.__new__(op_class)
    fill_op(op, operands, result_types, properties, location)
    return op


def fill_op(
    op: Operation,
    operands: Sequence[SSAValue] = (),
    result_types: Iterable[Attribute] = (),
    properties: Mapping[str, Attribute] = _NOTHING,
    location: LocationAttr = UNKNOWN_LOC,
) -> None:
    """``Operation.__init__`` of an op without attributes, successors and regions."""
    op._operands = values = SSAValues(operands)
    op._operand_uses = uses = tuple([Use(op, i) for i in range(len(values))])
    for value, use in zip(values, uses):
        first = value.first_use
        if first is not None:
            use._next_use = first
            first._prev_use = use
        value.first_use = use
    op.results = SSAValues([OpResult(t, op, i) for i, t in enumerate(result_types)])
    op.properties = dict(properties)
    op.attributes = {}
    op.location = location
    if _completes(type(op)):
        op.__post_init__()


@lru_cache(maxsize=2048)
def _completes(op_class: type[Operation]) -> bool:
    """Whether there is something that a new op gets that was not given: properties or attributes with a default."""
    if op_class.__post_init__ is Operation.__post_init__:
        return False
    if op_class.__post_init__ is not IRDLOperation.__post_init__ or not issubclass(op_class, IRDLOperation):
        return True
    definition = op_class.get_irdl_definition()
    defined = (*definition.properties.values(), *definition.attributes.values())
    return any(d.default_value is not None for d in defined)


def append_op(block: Block, op: Operation) -> None:
    """``block.add_op`` of an op that was just made: it is in no block, and no block is in it."""
    last = block._last_op
    op.parent = block
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
        op._prev_op = last
    block._last_op = op


def insert_op(op: Operation, before: Operation) -> None:
    """``insert_op_before`` of an op that was just made: it is in no block, and no block is in it."""
    block, previous = before.parent, before._prev_op
    assert block is not None
    op.parent = block
    op._next_op = before
    before._prev_op = op
    op._prev_op = previous
    if previous is None:
        block._first_op = op
    else:
        previous._next_op = op


def all_ops(op: Operation) -> list[Operation]:
    """``op`` and all that is in it, in order: ``list(op.walk())``, which hands each op up through every level."""
    found: list[Operation] = []
    _collect(op, found)
    return found


def _collect(op: Operation, found: list[Operation]) -> None:
    found.append(op)
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                if inner.regions:
                    _collect(inner, found)
                else:
                    found.append(inner)
                inner = inner._next_op
