"""Fast creation and traversal of ops for passes.

Most ops have only operands, results and properties, and creating them dominates the cost of many passes.
``Operation.create`` sets each field with a method that first detaches the old value.  A new op has none, so
:func:`make_op` sets the fields directly, in half the time.  ``test_editing`` compares it with ``Operation.create``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from cute_dialect.ir.xdsl_compat import following_op, set_fields

OperationT = TypeVar("OperationT", bound=Operation)


def make_op(
    op_class: type[OperationT],
    operands: Sequence[SSAValue] = (),
    result_types: Iterable[Attribute] = (),
    properties: Mapping[str, Attribute] | None = None,
    location: LocationAttr = UNKNOWN_LOC,
) -> OperationT:
    """Return a new op without attributes, successors and regions, equal to that of ``op_class.create``.

    >>> from xdsl.dialects.arith import AddiOp
    >>> from xdsl.dialects.builtin import i32
    >>> from xdsl.dialects.test import TestOp
    >>> value = make_op(TestOp, (), [i32]).results[0]
    >>> print(make_op(AddiOp, [value, value], [i32]))
    %0 = arith.addi %1, %1 : i32
    """
    op = op_class.__new__(op_class)
    set_fields(op, operands, result_types, properties, location)
    if _completes(op_class):
        op.__post_init__()
    return op


def fill_op(
    op: Operation,
    operands: Sequence[SSAValue] = (),
    result_types: Iterable[Attribute] = (),
    properties: Mapping[str, Attribute] | None = None,
    location: LocationAttr = UNKNOWN_LOC,
) -> None:
    """Initialize an op without attributes, successors and regions, as ``Operation.__init__`` does."""
    set_fields(op, operands, result_types, properties, location)
    if _completes(type(op)):
        op.__post_init__()


@lru_cache(maxsize=2048)
def _completes(op_class: type[Operation]) -> bool:
    """Return True if ``__post_init__`` of the op has an effect, such as setting default properties or attributes."""
    if op_class.__post_init__ is Operation.__post_init__:
        return False
    if op_class.__post_init__ is not IRDLOperation.__post_init__ or not issubclass(op_class, IRDLOperation):
        return True
    definition = op_class.get_irdl_definition()
    defined = (*definition.properties.values(), *definition.attributes.values())
    return any(d.default_value is not None for d in defined)


def all_ops(op: Operation) -> list[Operation]:
    """Return ``op`` and all nested ops in order: a faster ``list(op.walk())``, which passes each op through all
    levels.
    """
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
                inner = following_op(inner)
