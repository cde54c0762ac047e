"""Detection of endless loops among those without a fixed trip count (scf.while, cycles of blocks).

A loop may run for any time as long as it makes progress. Its ops are counted, and after each `max_steps` of them the
values are inspected from which its exit conditions are computed:

| values that decide the exit | verdict |
|---|---|
| none: the condition is constant, or there is no exit | endless |
| new in each iteration | continues, for 1000 times `max_steps` at most |
| unchanged, but the loop polls and another warp has made progress | continues |
| unchanged, but memory changes | continues for 10 times `max_steps`, since it may converge |
| unchanged, and so is all memory | endless |
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from cute_dialect.interp.errors import OpInfo, attr_of, op_name
from cute_dialect.interp.values import Regs, Value

if TYPE_CHECKING:
    from cute_dialect.interp.compiler.function_compiler import FnCompiler
    from cute_dialect.interp.machine.group import Group

Feeds: TypeAlias = "Callable[[Block, SSAValue], Iterable[SSAValue]]"
HARD = 1000  # limit, in units of max_steps, while the deciding values change
AMBIGUOUS = 10  # limit, in units of max_steps, while only memory changes
LOOKS = 64  # consecutive iterations that are compared
_CONSTANTS = ("arith.constant", "llvm.mlir.constant", "llvm.mlir.zero", "llvm.mlir.addressof")
_READS = ("llvm.load", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.inline_asm", "llvm.call", "func.call", "nvvm.")
_MAY_END_THREADS = ("nvvm.exit", "llvm.call", "func.call")


class Exits(NamedTuple):
    """The values that decide whether a loop ends: their slots, and the slots of plain loads among them.

    `polls` is True if the loop yields to other warps.
    """

    info: OpInfo
    slots: tuple[int, ...]
    plain: tuple[tuple[int, OpInfo], ...]
    polls: bool


def exits_of(
    c: FnCompiler, info: OpInfo, conditions: Iterable[SSAValue], blocks: Iterable[Block], feeds: Feeds, polls: bool
) -> Exits:
    """Return the values in `blocks`, and in nested regions, that the conditions are computed from.

    `feeds` returns the values that may become an argument of one of the blocks. If a condition reads memory, the stores
    in the loop count too. If an op may end threads, all values count.
    """
    inside = [b for block in blocks for b in (block, *_nested(block))]
    within = set(inside)
    todo = list(conditions)
    if any(op_name(op) in _MAY_END_THREADS for b in inside for op in b.ops):
        todo += [v for b in inside for v in (*b.args, *(r for op in b.ops for r in op.results))]
    seen: dict[SSAValue, None] = {}
    loads: list[Operation] = []
    # visited ops, so that operands of a large region are added once and not once per result
    walked: set[Operation] = set()
    reads = False
    while todo:
        v = todo.pop()
        owner = v.owner
        block = owner if isinstance(owner, Block) else owner.parent
        if v in seen or block not in within or (isinstance(owner, Operation) and op_name(owner) in _CONSTANTS):
            continue
        seen[v] = None
        if isinstance(owner, Operation):
            if owner in walked:
                continue
            walked.add(owner)
            todo += _used(owner)
            if not reads and op_name(owner).startswith(_READS):
                reads = True
                todo += [v for b in inside for op in b.ops if _writes(op) for v in _deciding(op, within)]
            ordering = getattr(getattr(attr_of(owner, "ordering"), "value", None), "data", 0)
            if op_name(owner) == "llvm.load" and attr_of(owner, "volatile_") is None and not ordering:
                loads.append(owner)
        else:
            todo += feeds(owner, v)
            parent = owner.parent_op()
            if parent is not None and parent.parent in within and parent not in walked:
                walked.add(parent)
                todo += _used(parent)
    slots = tuple(s for v in seen for s in c.slots.get(v, ()))
    return Exits(info, slots, tuple((c.slots_of(op.results[0])[0], c.info(op)) for op in loads), polls)


def _writes(op: Operation) -> bool:
    """Return True if an op may write memory: it has no result, or does more than compute."""
    return op.next_op is not None if not op.results else op_name(op).startswith(_READS)


def _deciding(op: Operation, within: set[Block]) -> Iterator[SSAValue]:
    """Yield the operands of an op and of the ops around it."""
    around: Operation | None = op
    while around is not None and around.parent in within:
        yield from around.operands
        around = around.parent_op()


def _nested(block: Block) -> Iterator[Block]:
    """Yield the blocks of regions inside a block."""
    for op in block.ops:
        for inner in op.walk():
            for region in inner.regions:
                yield from region.blocks


def _used(op: Operation) -> list[SSAValue]:
    """Return the operands of an op and of all ops inside it."""
    return [v for inner in op.walk() for v in inner.operands]


class Patience:
    """Progress monitor of one loop in one group."""

    __slots__ = ("advances", "alike", "due", "exits", "kept", "looks", "memory", "since")

    def __init__(self, exits: Exits) -> None:
        self.exits = exits
        self.due = 0  # op count of the group at which the loop is inspected next
        self.start()

    def start(self) -> None:
        """Reset the monitor, when the loop is entered again or has made progress."""
        self.kept: list[Value] | None = None  # deciding values at an earlier iteration
        self.looks = 0  # iterations compared with `kept`
        self.alike = 1  # number of comparisons after which `kept` is replaced
        self.since = -1  # op count at which the values were first found unchanged
        self.memory = 0
        self.advances = -1

    def judge(self, R: Regs, g: Group) -> int:
        """Inspect the loop at its head, and return the op count of the group at which to inspect it again.

        Raises InterpError if the loop will not end.
        """
        k = g.count
        own = k.steps - k.base
        if own <= self.due:
            return self.due
        if not self.exits.slots:
            raise g.out_of_steps(self.exits.info, 1, "the loop condition never changes")
        if own > HARD * k.most:
            raise g.out_of_steps(self.exits.info, HARD)
        now = [v.copy() if isinstance(v := R[s], np.ndarray) else v for s in self.exits.slots]
        others = k.advances - g.advances
        self.due = own
        if self.kept is None or not all(map(_same, self.kept, now)):
            self.looks += 1
            if self.looks >= self.alike:
                self.kept, self.advances, self.since = now, others, -1
                self.alike *= 2
            if self.looks >= LOOKS:
                self.start()
                self.due = own + k.most
        elif self.exits.polls and others != self.advances:
            self.start()
            self.due = own + k.most
        else:
            self._same_again(R, g, own)
        return self.due

    def _same_again(self, R: Regs, g: Group, own: int) -> None:
        """Handle unchanged values: the loop is endless if memory is unchanged too."""
        k = g.count
        memory = _fingerprint(g)
        if self.since < 0:
            self.since = own
        elif memory == self.memory:
            raise g.out_of_steps(self.exits.info, 1, *self._unchanged(R))
        elif own - self.since > AMBIGUOUS * k.most:
            raise g.out_of_steps(self.exits.info, AMBIGUOUS, *self._unchanged(R))
        else:
            self.due = own + k.most // 4
        self.memory = memory

    def _unchanged(self, R: Regs) -> list[str]:
        """Return the notes for a loop whose deciding values do not change."""
        said = ["the values that the loop condition depends on do not change"]
        for _, info in self.exits.plain:
            at = f" at {info.location}" if info.location else ""
            said.append(
                f"the condition uses a plain load ({info.name}{at}), which need not see writes by other threads; use a "
                "volatile, relaxed or acquire load"
            )
        return said


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a is b or (type(a) is type(b) and a == b)


def _fingerprint(g: Group) -> int:
    """Return a checksum of all memory that the group can reach."""
    seen = 0
    shared = {id(buf): buf for buf, _ in g.machine.shared.values()}
    for buf in (*g.memory.buffers, *shared.values(), g.local):
        seen = zlib.crc32(np.ascontiguousarray(buf.data).data, seen)
    return seen


__all__ = ["HARD", "Exits", "Patience", "exits_of"]
