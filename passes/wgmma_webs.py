"""Analysis of ``wgmma`` accumulators that can be kept in PTX registers, outside of LLVM's control.

In base IR, the accumulators are one struct that each instruction takes and returns, also through loops.  If every
struct is used only once, by the next instruction, no two are live at a time, and registers declared by the kernel can
hold them.  A *web* is a set of structs connected by instructions, by inline PTX whose outputs are tied to its inputs (a
wait, a fence, A in registers), and by the carried values of ``scf.for`` and ``scf.while``.  :func:`find_webs` walks the
kernel in order and checks that each use refers to the struct that the registers hold at that point.  A web that fails
the check does not change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cute_dialect.upstream.llvm_types import LLVMStructType

__all__ = [
    "LETTERS",
    "LOOPS",
    "WGMMA",
    "Carry",
    "RegisterTypes",
    "Tied",
    "Webs",
    "find_webs",
    "is_undefined",
    "ptx_text",
]

WGMMA = "nvvm.wgmma.mma_async"
LETTERS = {"f32": "f", "i32": "r"}
"""Register type -> its constraint in inline PTX."""


LOOPS = {"scf.for": (3, 1), "scf.while": (0, 0)}
"""Loop -> position of the first carried value among its operands and among the arguments of its first block."""


class Carry(NamedTuple):
    """Positions of structs among the carried values of a loop: on entry of an iteration, and among the results.

    They are equal for ``scf.for``.  For ``scf.while`` the first region produces the results.
    """

    entering: list[int]
    leaving: list[int]


class Tied(NamedTuple):
    """Inline PTX that updates ``source`` in place; its first ``members`` outputs are tied to members of the struct."""

    op: Operation
    source: SSAValue
    members: int


@dataclass
class Webs:
    """The valid webs of one kernel.

    Args:
        number: value -> number of its web.
        types: number of a web -> types of its registers.
        tied: inline PTX on webs.
        loops: loops that carry webs, with the positions.
        read: results of tied inline PTX whose members are used individually.
    """

    number: dict[SSAValue, int] = field(default_factory=lambda: {})
    types: dict[int, tuple[str, ...]] = field(default_factory=lambda: {})
    tied: list[Tied] = field(default_factory=lambda: [])
    loops: dict[Operation, Carry] = field(default_factory=lambda: {})
    read: set[SSAValue] = field(default_factory=lambda: set())


def find_webs(entry: Block, types: RegisterTypes, first: int = 0) -> Webs:
    """Return the webs of the kernel with the single block ``entry``, numbered from ``first``, without changing it."""
    return _Kernel(entry, types).webs(first)


class _Kernel:
    """Accumulator structs of one kernel, grouped by web."""

    def __init__(self, entry: Block, types: RegisterTypes):
        self.entry = entry
        self.types = types
        self.parent: dict[SSAValue, SSAValue] = {}
        self.tied: dict[Operation, Tied] = {}
        self.instructions: dict[Operation, None] = {}
        """Ops that write accumulators, in order."""
        self.steps: dict[Block, list[Operation]] = {}
        """Block -> ops that can change the registers."""
        self.loops: dict[Operation, Carry] = {}
        """Loops that carry structs, with the positions."""
        self.rejected: set[SSAValue] = set()

    def webs(self, first: int) -> Webs:
        """Return the valid webs."""
        webs = Webs()
        self._collect(self.entry)
        if not self.instructions:
            return webs
        used = dict.fromkeys(self._find(op.results[0]) for op in self.instructions)
        reads = self._check_uses(set(used))
        self._walk(self.entry, {})
        numbers = {root: first + i for i, root in enumerate(r for r in used if r not in self.rejected)}
        for value in self.parent:
            number = numbers.get(self._find(value))
            if number is not None:
                webs.number[value] = number
        webs.types = {number: self.types.of(root.type) for root, number in numbers.items()}
        webs.tied = [tied for op, tied in self.tied.items() if op.results[0] in webs.number]
        for op, carry in self.loops.items():
            entering = [i for i in carry.entering if _argument(op, i) in webs.number]
            leaving = [j for j in carry.leaving if op.results[j] in webs.number]
            if entering or leaving:
                webs.loops[op] = Carry(entering, leaving)
        webs.read = {value for value in reads if value in webs.number}
        return webs

    # ------------------------------------------------------------------------------------------------------- the webs

    def _find(self, value: SSAValue) -> SSAValue:
        """Return the representative of a value's web."""
        parent = self.parent
        while (up := parent.setdefault(value, value)) is not value:
            value = up
        return value

    def _join(self, a: SSAValue, b: SSAValue) -> None:
        if not is_undefined(a) and not is_undefined(b):
            self.parent[self._find(a)] = self._find(b)

    def _collect(self, block: Block) -> None:
        steps = self.steps[block] = []
        op = block.first_op
        while op is not None:
            if op.name == WGMMA:
                if "satfinite" not in op.properties and self.types.of(op.results[0].type):
                    self.instructions[op] = None
                    steps.append(op)
                    self._join(op.operands[0], op.results[0])
            elif op.name == "llvm.inline_asm":
                tied = _tied(op, self.types)
                if tied is not None:
                    self.tied[op] = tied
                    steps.append(op)
                    if "wgmma.mma_async" in ptx_text(op):
                        self.instructions[op] = None
                    self._join(tied.source, op.results[0])
            elif op.regions:
                steps.append(op)
                for region in op.regions:
                    for inner in region.blocks:
                        self._collect(inner)
                if op.name in LOOPS:
                    self._join_loop(op)
            op = op.next_op

    def _join_loop(self, op: Operation) -> None:
        start = LOOPS[op.name][0]
        entering = [i for i, v in enumerate(op.operands[start:]) if self.types.of(v.type)]
        leaving = [j for j, r in enumerate(op.results) if self.types.of(r.type)]
        for i in entering:
            self._join(op.operands[start + i], _argument(op, i))
            self._join(_end(op.regions[-1]).operands[i], _argument(op, i))
        for j in leaving:
            if op.name == "scf.for":
                self._join(_argument(op, j), op.results[j])
            else:
                self._join(_end(op.regions[0]).operands[1 + j], op.results[j])
                self._join(op.regions[1].block.args[j], op.results[j])
        if entering or leaving:
            self.loops[op] = Carry(entering, leaving)

    # ------------------------------------------------------------------------------------------------------ the check

    def _check_uses(self, used: set[SSAValue]) -> set[SSAValue]:
        """Reject webs with unsupported uses; return the results of inline PTX whose members are read."""
        reads: set[SSAValue] = set()
        for value in self.parent:
            root = self._find(value)
            if root not in used:
                continue
            for use in value.uses:
                op = use.operation
                if op.name == "llvm.extractvalue":
                    if any(self._is_read(value, u.operation, u.index) for u in op.results[0].uses):
                        reads.add(value)
                        if value.owner not in self.tied or value.owner in self.instructions:  # read without a wait
                            self.rejected.add(root)
                elif not (
                    (op.name == WGMMA and use.index == 0)
                    or (op in self.loops and use.index >= LOOPS[op.name][0])
                    or (op.name in ("scf.yield", "scf.condition") and op.parent_op() in self.loops)
                ):
                    self.rejected.add(root)
        return reads

    def _is_read(self, value: SSAValue, user: Operation, index: int) -> bool:
        """Return True unless the operand is the struct member that the inline PTX ties to this position."""
        tied = self.tied.get(user)
        return tied is None or tied.source is not value or index >= tied.members

    def _walk(self, block: Block, held: dict[SSAValue, SSAValue | None]) -> set[SSAValue]:
        """Visit the ops in order; return the webs written, and update ``held``, the struct that each web holds."""
        written: set[SSAValue] = set()
        for op in self.steps[block]:
            if not op.regions:
                root = self._find(op.results[0])
                self._take(root, self.tied[op].source if op in self.tied else op.operands[0], held)
                held[root] = op.results[0]
                written.add(root)
            else:
                written |= self._walk_regions(op, held)
        return written

    def _walk_regions(self, op: Operation, held: dict[SSAValue, SSAValue | None]) -> set[SSAValue]:
        # If a web has two carried values, the uses of the one that is not held are rejected.
        entering, leaving = self.loops.get(op, Carry([], []))
        passed: dict[SSAValue, SSAValue] = {}
        for i in entering:
            argument = _argument(op, i)
            self._take(self._find(argument), op.operands[LOOPS[op.name][0] + i], held)
            passed[self._find(argument)] = argument
        written: set[SSAValue] = set()
        for region in op.regions:
            for block in region.blocks:
                inside: dict[SSAValue, SSAValue | None] = dict(held) if op.name == "scf.if" else {}
                inside |= passed
                written |= self._walk(block, inside)
                if block.last_op is not None and block.last_op.name == "scf.condition":
                    passed = {}
                    for j in leaving:
                        argument = op.regions[1].block.args[j]
                        self._take(self._find(argument), block.last_op.operands[1 + j], inside)
                        passed[self._find(argument)] = argument
                else:
                    for i in entering:
                        self._take(self._find(_argument(op, i)), _end(region).operands[i], inside)
        for root in written:
            held[root] = None
        carried = {self._find(op.results[j]): op.results[j] for j in leaving}
        held |= carried
        return written | carried.keys() | {self._find(_argument(op, i)) for i in entering}

    def _take(self, root: SSAValue, value: SSAValue, held: dict[SSAValue, SSAValue | None]) -> None:
        if not is_undefined(value) and held.get(root) is not value:
            self.rejected.add(root)


def _argument(loop: Operation, i: int) -> SSAValue:
    """Return the argument of a loop's first block for carried value ``i``."""
    return loop.regions[0].block.args[LOOPS[loop.name][1] + i]


def _end(region: Region) -> Operation:
    end = region.block.last_op
    assert end is not None
    return end


def is_undefined(value: SSAValue) -> bool:
    """Return True for ``llvm.mlir.undef``, for which any register contents are valid."""
    return isinstance(value.owner, Operation) and value.owner.name == "llvm.mlir.undef"


class RegisterTypes(dict[int, tuple[str, ...]]):
    """Cache of register types by identity of a struct type, because hashing a struct of hundreds is slow."""

    def of(self, t: Attribute) -> tuple[str, ...]:
        """Return the member types of a struct; ``()`` if inline PTX lacks a constraint letter for one of them."""
        known = self.get(id(t))
        if known is None:
            known = self[id(t)] = _register_types(t)
        return known


@lru_cache(maxsize=64)
def _register_types(t: Attribute) -> tuple[str, ...]:
    if not isinstance(t, LLVMStructType):
        return ()
    types = tuple([str(x) for x in t.types])
    return types if len(types) > 1 and set(types) <= LETTERS.keys() and len(set(types)) == 1 else ()


def ptx_text(op: Operation, name: str = "asm_string") -> str:
    """Return a string property of ``llvm.inline_asm``: its code or its ``constraints``."""
    text = op.properties[name]
    assert isinstance(text, StringAttr)
    return text.data


def _tied(op: Operation, known: RegisterTypes) -> Tied | None:
    """Return a :class:`Tied` if an op is inline PTX that updates a struct in place, otherwise None."""
    types = known.of(op.results[0].type) if len(op.results) == 1 else ()
    if not types or "has_side_effects" not in op.properties or not _are_tied(ptx_text(op, "constraints"), types):
        return None
    if "${" in ptx_text(op) or "$$" in ptx_text(op):
        return None
    source: SSAValue | None = None
    for i, operand in enumerate(op.operands[: len(types)]):
        extract = operand.owner
        if not isinstance(extract, Operation) or extract.name != "llvm.extractvalue":
            return None
        position = extract.properties["position"]
        assert isinstance(position, DenseArrayBase)
        source = source or extract.operands[0]
        if position.get_values() != (i,) or extract.operands[0] is not source:
            return None
    return Tied(op, source, len(types)) if source is not None and source.type == op.results[0].type else None


@lru_cache(maxsize=64)
def _are_tied(constraints: str, types: tuple[str, ...]) -> bool:
    n = len(types)
    words = constraints.split(",")
    outputs = [f"={LETTERS[t]}" for t in types]
    inputs = [w for w in words[2 * n :] if w.startswith("=") or w.isdigit()]
    return words[: 2 * n] == [*outputs, *[str(i) for i in range(n)]] and not inputs
