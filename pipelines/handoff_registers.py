"""Accumulators of ``wgmma`` that cross as registers of PTX, which LLVM does not see.

In the base IR the accumulators are one struct that each instruction takes and gives, through loops.  LLVM has no such
thing: it takes each of the 128 values apart and joins it again wherever one instruction follows another, and searches
for what to do with them.  But where every struct is used once, by what comes next, no two of them live at a time, and
registers that the kernel declares can hold them all::

    .reg .f32 %acc0_<128>;                              at the start of the kernel
    wgmma.mma_async … {%acc0_0, …}, $0, $1, p, …;       takes descriptors, gives nothing
    wgmma.wait_group.sync.aligned 0;
    mov.b32 $0, %acc0_0; …                              where they are read

ptxas gives the same machine code for both.  A set of structs that hand themselves on is a *web*: through an
instruction, through inline PTX whose outputs are tied to its inputs (a wait, a fence, A in registers), through the
carried values of ``scf.for``.  :func:`find_webs` walks the kernel in order and checks that each use is of the struct
that the registers hold at that point; a web where one is not stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from cute_dialect.upstream.llvm_types import LLVMStructType

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable

    from xdsl.ir import Attribute

__all__ = [
    "LETTERS",
    "WGMMA",
    "Piece",
    "RegisterTypes",
    "Tied",
    "Webs",
    "escaped",
    "find_webs",
    "names",
    "piece_text",
    "register_types",
]

WGMMA = "nvvm.wgmma.mma_async"
LETTERS = {"f32": "f", "i32": "r"}
_PTX_TYPES = {"f32": "f32", "i32": "b32"}


class Tied(NamedTuple):
    """Inline PTX whose first outputs are the members of ``source``, changed in place."""

    op: Operation
    source: SSAValue
    extracts: tuple[Operation, ...]
    """What takes them out of it."""


class Piece(NamedTuple):
    """How a tied piece is written: over the registers of web ``number``; ``read``: its result is read member-wise."""

    tied: Tied
    number: int
    read: bool


@dataclass
class Webs:
    """``number``: the web of each value that is only in registers; ``dropped``: operands of loops and yields that
    are not written, by their places; ``pieces``: tied inline PTX; ``declared``: by the entry block of a kernel.
    """

    number: dict[SSAValue, int] = field(default_factory=lambda: {})
    dropped: dict[Operation, set[int]] = field(default_factory=lambda: {})
    pieces: dict[Operation, Piece] = field(default_factory=lambda: {})
    declared: dict[Block, str] = field(default_factory=lambda: {})
    unused: set[Operation] = field(default_factory=lambda: set())

    def declaration(self, entry: Block) -> str:
        """The line that declares the registers of a kernel."""
        code = f'"asm_string" = "{self.declared[entry]}", "constraints" = "", "has_side_effects"'
        return f'"llvm.inline_asm"() <{{{code}}}> : () -> ()\n'


def find_webs(module: Operation, types: RegisterTypes) -> Webs:
    """The webs of all kernels of ``module``."""
    webs = Webs()
    for holder in module.regions[0].block.ops:
        if holder.name != "gpu.module":
            continue
        for function in holder.regions[0].block.ops:
            kernel = function.name == "llvm.func" and "nvvm.kernel" in function.attributes
            if kernel and len(function.regions[0].blocks) == 1:
                _Kernel(function.regions[0].block, types).add_to(webs)
    return webs


class _Kernel:
    """The values of one kernel that are structs of accumulators, by web."""

    def __init__(self, entry: Block, types: RegisterTypes):
        self.entry = entry
        self.types = types
        self.parent: dict[SSAValue, SSAValue] = {}
        self.tied: dict[Operation, Tied] = {}
        self.instructions: list[Operation] = []
        self.steps: dict[Block, list[Operation]] = {}
        """Of each block, what can change the registers."""
        self.loops: dict[Operation, list[int]] = {}
        """Loops that carry structs, and which of their carried values these are."""
        self.rejected: set[SSAValue] = set()

    def add_to(self, webs: Webs) -> None:
        """Find the webs and add those that hold."""
        self._collect(self.entry)
        if not self.instructions:
            return
        used = dict.fromkeys(self._find(op.results[0]) for op in self.instructions)
        reads = self._check_uses(set(used))
        self._walk(self.entry, {})
        first = len(webs.declared) and 1 + max(webs.number.values(), default=-1)
        numbers = {root: first + i for i, root in enumerate(r for r in used if r not in self.rejected)}
        if not numbers:
            return
        for value in self.parent:
            number = numbers.get(self._find(value))
            if number is not None:
                webs.number[value] = number
        for op, positions in self.loops.items():
            gone = {k for k in positions if op.results[k] in webs.number}
            if gone:
                webs.dropped[op] = {3 + k for k in gone}
                end = op.regions[0].block.last_op
                assert end is not None
                webs.dropped[end] = gone
        for op, tied in self.tied.items():
            number = webs.number.get(op.results[0])
            if number is None:
                continue
            webs.pieces[op] = Piece(tied, number, op.results[0] in reads)
            webs.unused.update(e for e in tied.extracts if all(use.operation in self.tied for use in e.results[0].uses))
        lines: list[str] = []
        for root, number in numbers.items():
            types = register_types(root.type)
            for kind in dict.fromkeys(types):
                lines.append(f".reg .{_PTX_TYPES[kind]} %acc{number}_<{len(types)}>;")
        webs.declared[self.entry] = "\\0A".join(lines)

    # ------------------------------------------------------------------------------------------------------- the webs

    def _find(self, value: SSAValue) -> SSAValue:
        """What stands for the web of a value."""
        parent = self.parent
        while (up := parent.setdefault(value, value)) is not value:
            value = up
        return value

    def _join(self, a: SSAValue, b: SSAValue) -> None:
        if not _is_undefined(a) and not _is_undefined(b):
            self.parent[self._find(a)] = self._find(b)

    def _collect(self, block: Block) -> None:
        steps = self.steps[block] = []
        op = block.first_op
        while op is not None:
            if op.name == WGMMA:
                if "satfinite" not in op.properties and self.types.of(op.results[0].type):
                    self.instructions.append(op)
                    steps.append(op)
                    self._join(op.operands[0], op.results[0])
            elif op.name == "llvm.inline_asm":
                tied = _tied(op, self.types)
                if tied is not None:
                    self.tied[op] = tied
                    steps.append(op)
                    if "wgmma.mma_async" in _text(op):
                        self.instructions.append(op)
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
        """Reject what is used otherwise; the results of inline PTX whose members are read."""
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
                        if value.owner not in self.tied:
                            self.rejected.add(root)
                elif not (
                    (op.name == WGMMA and use.index == 0)
                    or (op in self.loops and use.index >= 3)
                    or (op.name == "scf.yield" and op.parent_op() in self.loops)
                ):
                    self.rejected.add(root)
        return reads

    def _is_read(self, value: SSAValue, user: Operation, index: int) -> bool:
        """Whether an operand, a member of a struct, is something else than that struct in inline PTX."""
        tied = self.tied.get(user)
        return tied is None or tied.source is not value or index >= len(tied.extracts)

    def _walk(self, block: Block, held: dict[SSAValue, SSAValue | None]) -> set[SSAValue]:
        """The ops in order; ``held``: what the registers of each web hold, kept up to date.  The webs written."""
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
        if not _is_undefined(value) and held.get(root) is not value:
            self.rejected.add(root)


def _is_undefined(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and value.owner.name == "llvm.mlir.undef"


class RegisterTypes(dict[int, tuple[str, ...]]):
    """:func:`register_types` by identity, while the module lives: it takes long to hash a struct of hundreds."""

    def of(self, t: Attribute) -> tuple[str, ...]:
        """Those of a type."""
        known = self.get(id(t))
        if known is None:
            known = self[id(t)] = register_types(t)
        return known


@lru_cache(maxsize=64)
def register_types(t: Attribute) -> tuple[str, ...]:
    """The types of the members of a struct, if inline PTX has a letter for all of them; otherwise none."""
    if not isinstance(t, LLVMStructType):
        return ()
    types = tuple([str(x) for x in t.types])
    return types if len(types) > 1 and set(types) <= LETTERS.keys() and len(set(types)) == 1 else ()


def _text(op: Operation) -> str:
    text = op.properties["asm_string"]
    assert isinstance(text, StringAttr)
    return text.data


def _tied(op: Operation, known: RegisterTypes) -> Tied | None:
    """The op as inline PTX that changes a struct in place, if it is that."""
    types = known.of(op.results[0].type) if len(op.results) == 1 else ()
    constraints = op.properties["constraints"]
    assert isinstance(constraints, StringAttr)
    if not types or "has_side_effects" not in op.properties or not _are_tied(constraints.data, types):
        return None
    if "${" in _text(op) or "$$" in _text(op):
        return None
    extracts: list[Operation] = []
    for i, operand in enumerate(op.operands[: len(types)]):
        extract = operand.owner
        if not isinstance(extract, Operation) or extract.name != "llvm.extractvalue":
            return None
        position = extract.properties["position"]
        assert isinstance(position, DenseArrayBase)
        if position.get_values() != (i,):
            return None
        extracts.append(extract)
    source = extracts[0].operands[0]
    whole = source.type == op.results[0].type and all(e.operands[0] is source for e in extracts)
    return Tied(op, source, tuple(extracts)) if whole else None


@lru_cache(maxsize=64)
def _are_tied(constraints: str, types: tuple[str, ...]) -> bool:
    n = len(types)
    words = constraints.split(",")
    outputs = [f"={LETTERS[t]}" for t in types]
    inputs = [w for w in words[2 * n :] if w.startswith("=") or w.isdigit()]
    return words[: 2 * n] == [*outputs, *[str(i) for i in range(n)]] and not inputs


# ------------------------------------------------------------------------------------------------------------ as text


@lru_cache(maxsize=64)
def names(number: int, n: int) -> tuple[str, ...]:
    """The registers of a web."""
    return tuple([f"%acc{number}_{i}" for i in range(n)])


def piece_text(piece: Piece, value: Callable[[SSAValue], str], text: Callable[[Attribute], str]) -> str:
    """A tied piece of inline PTX over registers, without a location; nothing if nothing is left of it."""
    op = piece.tied.op
    result = op.results[0]
    types = register_types(result.type)
    n = len(types)
    registers = names(piece.number, n)
    behind = n if piece.read else 0

    def renumbered(found: re.Match[str]) -> str:
        at = int(found[1])
        return registers[at % n] if at < 2 * n else f"${at - 2 * n + behind}"

    code = re.sub(r"\$(\d+)", renumbered, _text(op))
    constraints = op.properties["constraints"]
    assert isinstance(constraints, StringAttr)
    words = constraints.data.split(",")[2 * n :]
    if piece.read:
        code += "".join(f"\nmov.b32 ${i}, {r};" for i, r in enumerate(registers))
        words = [*[f"={LETTERS[t]}" for t in types], *words]
    elif not code:
        return ""
    operands = op.operands[n:]
    return (
        (f"{value(result)} = " if piece.read else "")
        + f'"llvm.inline_asm"({", ".join([value(o) for o in operands])}) <{{"asm_string" = "{escaped(code)}", '
        + f'"constraints" = "{",".join(words)}", "has_side_effects"}}> : '
        + f"({', '.join([text(o.type) for o in operands])}) -> ({text(result.type) if piece.read else ''})"
    )


def escaped(text: str) -> str:
    """As it stands in a string of MLIR."""
    return text.replace("\\", "\\5C").replace('"', "\\22").replace("\n", "\\0A")
