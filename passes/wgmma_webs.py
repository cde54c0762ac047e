"""Find the accumulators of ``wgmma`` that registers of PTX can hold, of which LLVM knows nothing.

In base IR the accumulators are one struct that each instruction takes and gives, through loops.  Where every struct is
used once, by what comes next, no two of them live at a time, and registers that the kernel declares can hold them all.
Structs that hand themselves on are a *web*: through an instruction, through inline PTX whose outputs are tied to its
inputs (a wait, a fence, A in registers), through the carried values of ``scf.for`` and ``scf.while``.
:func:`find_webs` walks the kernel in order and checks that each use is of the struct that the registers hold at that
point; a web where one is not stays as it is.
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
"""Type of a register -> its constraint in inline PTX."""


LOOPS = {"scf.for": (3, 1), "scf.while": (0, 0)}
"""Loop -> where the carried values begin among its operands, and among the arguments of its first block."""


class Carry(NamedTuple):
    """Which of a loop's carried values are structs: of those that enter a turn, and of its results.

    They are the same of ``scf.for``; the first region of ``scf.while`` makes the ones of the others.
    """

    entering: list[int]
    leaving: list[int]


class Tied(NamedTuple):
    """Inline PTX whose first outputs are the members of ``source``, changed in place; ``members`` of them."""

    op: Operation
    source: SSAValue
    members: int


@dataclass
class Webs:
    """The webs of one kernel that hold, each with a number.

    ``number``: the web of each value; ``types``: the types of a web's registers, by its number; ``tied``: inline PTX
    over webs; ``loops``: loops that carry webs, and where; ``read``: results of tied inline PTX whose members are used
    one by one.
    """

    number: dict[SSAValue, int] = field(default_factory=lambda: {})
    types: dict[int, tuple[str, ...]] = field(default_factory=lambda: {})
    tied: list[Tied] = field(default_factory=lambda: [])
    loops: dict[Operation, Carry] = field(default_factory=lambda: {})
    read: set[SSAValue] = field(default_factory=lambda: set())


def find_webs(entry: Block, types: RegisterTypes, first: int = 0) -> Webs:
    """Return the webs of the kernel whose only block is ``entry``, numbered from ``first``; the kernel stays as it
    is."""
    return _Kernel(entry, types).webs(first)


class _Kernel:
    """The values of one kernel that are structs of accumulators, by web."""

    def __init__(self, entry: Block, types: RegisterTypes):
        self.entry = entry
        self.types = types
        self.parent: dict[SSAValue, SSAValue] = {}
        self.tied: dict[Operation, Tied] = {}
        self.instructions: dict[Operation, None] = {}
        """Those that write accumulators, in order."""
        self.steps: dict[Block, list[Operation]] = {}
        """Of each block, what can change the registers."""
        self.loops: dict[Operation, Carry] = {}
        """Loops that carry structs, and where."""
        self.rejected: set[SSAValue] = set()

    def webs(self, first: int) -> Webs:
        """Return the webs that hold."""
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
        """Return what stands for the web of a value."""
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
        """Reject what is used otherwise; return the results of inline PTX whose members are read."""
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
                        if value.owner not in self.tied or value.owner in self.instructions:  # not waited for
                            self.rejected.add(root)
                elif not (
                    (op.name == WGMMA and use.index == 0)
                    or (op in self.loops and use.index >= LOOPS[op.name][0])
                    or (op.name in ("scf.yield", "scf.condition") and op.parent_op() in self.loops)
                ):
                    self.rejected.add(root)
        return reads

    def _is_read(self, value: SSAValue, user: Operation, index: int) -> bool:
        """Return whether an operand, a member of a struct, is something else than that struct in inline PTX."""
        tied = self.tied.get(user)
        return tied is None or tied.source is not value or index >= tied.members

    def _walk(self, block: Block, held: dict[SSAValue, SSAValue | None]) -> set[SSAValue]:
        """Go through the ops in order; return the webs written.  ``held``: what the registers of each web hold, kept up
        to date."""
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
        # Of two values in one web, whatever happens to the one that is not held is refused.
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
    """Return what a value that enters a turn of a loop is in its first block."""
    return loop.regions[0].block.args[LOOPS[loop.name][1] + i]


def _end(region: Region) -> Operation:
    end = region.block.last_op
    assert end is not None
    return end


def is_undefined(value: SSAValue) -> bool:
    """Return whether a value is ``llvm.mlir.undef``: any registers hold it."""
    return isinstance(value.owner, Operation) and value.owner.name == "llvm.mlir.undef"


class RegisterTypes(dict[int, tuple[str, ...]]):
    """The types of the registers of a struct by its identity, while the module lives: it takes long to hash a struct
    of hundreds."""

    def of(self, t: Attribute) -> tuple[str, ...]:
        """Return the types of the members of a struct, if inline PTX has a letter for all of them; otherwise none."""
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
    """Return a text of ``llvm.inline_asm``: its code or its ``constraints``."""
    text = op.properties[name]
    assert isinstance(text, StringAttr)
    return text.data


def _tied(op: Operation, known: RegisterTypes) -> Tied | None:
    """Return the op as inline PTX that changes a struct in place, if it is that."""
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
