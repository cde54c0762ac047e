"""Loops whose number of iterations nobody knows (scf.while, cycles of blocks): whether one will ever end.

A loop is right as long as it comes closer to its end, however long that takes.  So its ops are counted, and after
`max_steps` of them what decides about its end is looked at, the values that its exit conditions are computed from:

| what decides | the loop |
|---|---|
| nothing: the condition is constant, or there is no way out | never ends |
| changes, other than to what it was before | goes on, for as many ops again, 1000 times |
| stays as it is, but it waits for other warps, and one of them has come further | goes on |
| stays as it is, and memory changes | goes on ten times as long: it may converge |
| stays as it is, as all else does | never ends |
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
    from cute_dialect.interp.group import Group
    from cute_dialect.interp.program import FnCompiler

Feeds: TypeAlias = "Callable[[Block, SSAValue], Iterable[SSAValue]]"
HARD = 1000  # times max_steps that a loop may execute while what decides about its end changes
AMBIGUOUS = 10  # times max_steps, while only memory changes
LOOKS = 64  # iterations in a row that are compared
_CONSTANTS = ("arith.constant", "llvm.mlir.constant", "llvm.mlir.zero", "llvm.mlir.addressof")
_READS = ("llvm.load", "llvm.atomicrmw", "llvm.cmpxchg", "llvm.inline_asm", "llvm.call", "func.call", "nvvm.")
_MAY_END_THREADS = ("nvvm.exit", "llvm.call", "func.call")


class Exits(NamedTuple):
    """The values that decide whether a loop ends: slots, and ordinary loads among them, by slot.

    `polls`: whether the loop gives other warps their turn.
    """

    info: OpInfo
    slots: tuple[int, ...]
    plain: tuple[tuple[int, OpInfo], ...]
    polls: bool


def exits_of(
    c: FnCompiler, info: OpInfo, conditions: Iterable[SSAValue], blocks: Iterable[Block], feeds: Feeds, polls: bool
) -> Exits:
    """Return the values in `blocks`, and in regions inside them, that conditions are computed from.

    `feeds` gives what may become an argument of one of the blocks. Where a condition reads memory, what the loop writes
    decides, too; where an op may end threads, all values do."""
    inside = [b for block in blocks for b in (block, *_nested(block))]
    within = set(inside)
    todo = list(conditions)
    if any(op_name(op) in _MAY_END_THREADS for b in inside for op in b.ops):
        todo += [v for b in inside for v in (*b.args, *(r for op in b.ops for r in op.results))]
    seen: dict[SSAValue, None] = {}
    loads: list[Operation] = []
    walked: set[Operation] = set()  # their operands are in todo, once for all results: regions are long
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
    """Tell whether an op may write memory: it has no result, or is no computation."""
    return op.next_op is not None if not op.results else op_name(op).startswith(_READS)


def _deciding(op: Operation, within: set[Block]) -> Iterator[SSAValue]:
    """Return the operands of an op and of the ops around it."""
    around: Operation | None = op
    while around is not None and around.parent in within:
        yield from around.operands
        around = around.parent_op()


def _nested(block: Block) -> Iterator[Block]:
    """Return the blocks of regions inside a block."""
    for op in block.ops:
        for inner in op.walk():
            for region in inner.regions:
                yield from region.blocks


def _used(op: Operation) -> list[SSAValue]:
    """Return the operands of an op and of what is inside it."""
    return [v for inner in op.walk() for v in inner.operands]


class Patience:
    """The ops of its group that a loop may still run."""

    __slots__ = ("alike", "due", "exits", "kept", "looks", "memory", "since", "turns")

    def __init__(self, exits: Exits) -> None:
        self.exits = exits
        self.due = 0  # ops of the group after which the loop is looked at
        self.start()

    def start(self) -> None:
        """Forget what decided: the loop is entered anew, or has come closer to its end."""
        self.kept: list[Value] | None = None  # what decided at some iteration
        self.looks = 0  # iterations that were compared with one before
        self.alike = 1  # looks after which it is kept anew
        self.since = -1  # ops when it was first found to be the same
        self.memory = 0
        self.turns = -1

    def judge(self, R: Regs, g: Group) -> int:
        """Say at the head of a loop that has used up what it was given: how many ops its group may have executed
        before it is asked again. Raises InterpError where it will not end.
        """
        k = g.count
        own = k.steps - k.base
        if own <= self.due:
            return self.due
        if not self.exits.slots:
            raise g.out_of_steps(self.exits.info, 1, "nothing can end it: its condition is always the same")
        if own > HARD * k.most:
            raise g.out_of_steps(self.exits.info, HARD)
        now = [v.copy() if isinstance(v := R[s], np.ndarray) else v for s in self.exits.slots]
        others = k.turns - g.turns
        self.due = own
        if self.kept is None or not all(map(_same, self.kept, now)):
            self.looks += 1
            if self.looks >= self.alike:
                self.kept, self.turns, self.since = now, others, -1
                self.alike *= 2
            if self.looks >= LOOKS:
                self.start()
                self.due = own + k.most
        elif self.exits.polls and others != self.turns:
            self.start()
            self.due = own + k.most
        else:
            self._same_again(R, g, own)
        return self.due

    def _same_again(self, R: Regs, g: Group, own: int) -> None:
        """Tell whether what decides is what it was before."""
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
        """Return what to say of a loop in which nothing changes that decides about its end."""
        said = ["what decides about its end does not change"]
        for _, info in self.exits.plain:
            at = f" at {info.location}" if info.location else ""
            said.append(
                f"it is decided by a plain load ({info.name}{at}), which need not see what another thread writes: "
                "expected a volatile, relaxed or acquire load"
            )
        return said


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a is b or (type(a) is type(b) and a == b)


def _fingerprint(g: Group) -> int:
    """Return a checksum of all memory that the group can reach."""
    seen = 0
    shared = {id(buf): buf for buf, _ in g.launch.shared.values()}
    for buf in (*g.memory.buffers, *shared.values(), g.local):
        seen = zlib.crc32(np.ascontiguousarray(buf.data).data, seen)
    return seen


__all__ = ["HARD", "Exits", "Patience", "exits_of"]
