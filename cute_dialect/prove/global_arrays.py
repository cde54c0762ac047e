"""Arrays in global memory that a kernel reads to decide on loops and branches: lengths of sequences, lists of blocks.

A load from an array that the kernel does not write has the same result whenever it is executed. So its value is a
symbol that stands for the element at an address, and all roles that read the element see the same value.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import BlockArgument, Operation, SSAValue

from cute_dialect.interp.errors import attr_of
from cute_dialect.prove.attributes import integer_or_none
from cute_dialect.prove.effects import GLOBAL, address_space

_WRITES = {
    "llvm.store": 1,
    "llvm.atomicrmw": 0,
    "llvm.cmpxchg": 0,
    "nvvm.cp.async.bulk.global.shared.cta": 0,
}
"""Ops that write global memory, and the operand that is the address."""


def loads_number(op: Operation) -> bool:
    """Return True for a plain load of an integer from global memory."""
    if op.name != "llvm.load" or not isinstance(op.results[0].type, IntegerType):
        return False
    if integer_or_none(op, "ordering") or attr_of(op, "volatile_") is not None:
        return False
    return address_space(op.operands[0]) == GLOBAL


def arrays_written(op: Operation) -> frozenset[SSAValue]:
    """Return the arguments of the kernel through which an op may write global memory."""
    if op.name in _WRITES:
        pointer = op.operands[_WRITES[op.name]]
        return arrays_of(pointer) if address_space(pointer) == GLOBAL else frozenset()
    if op.name in ("llvm.inline_asm", "nvvm.inline_ptx", "llvm.call_intrinsic"):
        return frozenset(array for v in op.operands for array in arrays_of(v))
    return frozenset()


@lru_cache(maxsize=4096)
def arrays_of(pointer: SSAValue) -> frozenset[SSAValue]:
    """Return the arguments of the kernel that a pointer, a struct with one, or an address is computed from.

    Integers are followed where they are addresses: ``pointer`` itself, and operands of ``llvm.inttoptr``. An address
    that is loaded from memory, or passed as a number, has no argument.
    """
    found: set[SSAValue] = set()
    work = [pointer]
    seen: set[SSAValue] = set()
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        has_pointer = "ptr" in str(value.type)
        parent = value.block.parent_op() if isinstance(value, BlockArgument) else None
        if has_pointer and parent is not None and parent.name.endswith("func"):
            found.add(value)
        follows_all = not has_pointer or (isinstance(value.owner, Operation) and value.owner.name == "llvm.inttoptr")
        if not has_pointer and isinstance(value.owner, Operation) and value.owner.name == "llvm.load":
            continue
        work += [x for x in _origins(value) if follows_all or "ptr" in str(x.type)]
    return frozenset(found)


def _origins(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that a pointer may be."""
    op = value.block.parent_op() if isinstance(value, BlockArgument) else value.owner
    if not isinstance(op, Operation) or op.name.endswith("func"):
        return
    yield from op.operands
    for region in op.regions:
        for block in region.blocks:
            if block.last_op is not None:
                yield from block.last_op.operands
