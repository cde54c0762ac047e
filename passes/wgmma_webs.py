"""Find the accumulators of ``wgmma`` that registers of PTX can hold, of which LLVM knows nothing.

In base IR the accumulators are one struct that each instruction takes and gives, through loops.  Where every struct is
used once, by what comes next, no two of them live at a time, and registers that the kernel declares can hold them all.
Structs that hand themselves on are a *web*: through an instruction, through inline PTX whose outputs are tied to its
inputs (a wait, a fence, A in registers), through the carried values of ``scf.for``.  :func:`find_webs` walks the kernel
in order and checks that each use is of the struct that the registers hold at that point; a web where one is not stays
as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from cute_dialect.upstream.llvm_types import LLVMStructType

__all__ = ["LETTERS", "WGMMA", "RegisterTypes", "Tied", "Webs", "find_webs", "is_undefined", "ptx_text"]

WGMMA = "nvvm.wgmma.mma_async"
LETTERS = {"f32": "f", "i32": "r"}
"""Type of a register -> its constraint in inline PTX."""


class Tied(NamedTuple):
    """Inline PTX whose first outputs are the members of ``source``, changed in place; ``members`` of them."""

    op: Operation
    source: SSAValue
    members: int


@dataclass
class Webs:
    """The webs of one kernel that hold, each with a number.

    ``number``: the web of each value; ``types``: the types of a web's registers, by its number; ``tied``: inline PTX
    over webs; ``loops``: loops that carry webs, and which of their carried values those are; ``read``: results of tied
    inline PTX whose members are used one by one.
    """

    number: dict[SSAValue, int] = field(default_factory=lambda: {})
    types: dict[int, tuple[str, ...]] = field(default_factory=lambda: {})
    tied: list[Tied] = field(default_factory=lambda: [])
    loops: dict[Operation, list[int]] = field(default_factory=lambda: {})
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
        self.loops: dict[Operation, list[int]] = {}
        """Loops that carry structs, and which of their carried values these are."""
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
        carried = {op: [k for k in ks if op.results[k] in webs.number] for op, ks in self.loops.items()}
        webs.loops = {op: positions for op, positions in carried.items() if positions}
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
                if op.name == "scf.for":
                    self._join_loop(op)
            op = op.next_op

    def _join_loop(self, op: Operation) -> None:
        body = op.regions[0].block
        end = body.last_op
        assert end is not None
        found = [k for k, r in enumerate(op.results) if self.types.of(r.type)]
        for k in found:
            for value in (op.operands[3 + k], body.args[1 + k], end.operands[k]):
                self._join(value, op.results[k])
        if found:
            self.loops[op] = found

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
                    or (op in self.loops and use.index >= 3)
                    or (op.name == "scf.yield" and op.parent_op() in self.loops)
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
        carried: dict[SSAValue, int] = {}
        for k in self.loops.get(op, ()):
            root = self._find(op.results[k])
            self._take(root, op.operands[3 + k], held)
            carried[root] = k  # of two in one web, whatever happens to the other is refused
        written: set[SSAValue] = set()
        for region in op.regions:
            for block in region.blocks:
                inside: dict[SSAValue, SSAValue | None] = dict(held) if op.name == "scf.if" else {}
                inside |= {root: block.args[1 + k] for root, k in carried.items()}
                written |= self._walk(block, inside)
                for root, k in carried.items():
                    assert block.last_op is not None
                    self._take(root, block.last_op.operands[k], inside)
        for root in written:
            held[root] = None
        for root, k in carried.items():
            held[root] = op.results[k]
        return written | carried.keys()

    def _take(self, root: SSAValue, value: SSAValue, held: dict[SSAValue, SSAValue | None]) -> None:
        if not is_undefined(value) and held.get(root) is not value:
            self.rejected.add(root)


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
