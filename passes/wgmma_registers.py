"""``cute-wgmma-registers``: join consecutive ``wgmma`` to inline PTX, with their accumulators in PTX registers.

In base IR, an accumulator is a struct of up to hundreds of values, which each ``nvvm.wgmma.mma_async`` takes and
returns.  LLVM unpacks and repacks all values between two instructions, which takes half the time of compiling a GEMM
to PTX.  Two rewrites avoid this; ptxas produces the same machine code.

*Chains.*  Instructions in one block that pass their accumulators on, with only pure ops between them, become one
``llvm.inline_asm``, preceded by the pure ops.

*Registers.*  If no two accumulator structs are live at a time (:func:`find_webs` checks this), the kernel declares PTX
registers for all of them.  The instructions then take only descriptors and return nothing, loops carry nothing, and a
wait whose result is read copies the registers to its outputs.

Before::

    %d0 = nvvm.wgmma.mma_async %a, %b, %undef, <m = 64, n = 256, k = 16>, D [<f32>, <zero>], … : !s -> !s
    %d1 = nvvm.wgmma.mma_async %c, %d, %d0, <m = 64, n = 256, k = 16>, D [<f32>, <one>], … : !s -> !s
    %x = llvm.extractvalue %d1[0] : !s …
    %w = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,…,0,…" %x, … : (f32, …) -> !s

After::

    llvm.inline_asm has_side_effects ".reg .f32 %acc0_<128>;", "" : () -> ()          // first in the kernel
    llvm.inline_asm has_side_effects "{
      .reg .pred p;
      setp.ne.b32 p, 0, 0;
      wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%acc0_0, …}, $0, $1, p, 1, 1, 0, 1; setp.ne.b32 p, 1, 0;
      wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {%acc0_0, …}, $2, $3, p, 1, 1, 0, 1; }", "l,l,l,l" %a, %b,
      %c, %d : (i64, i64, i64, i64) -> ()
    %w = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;
      mov.b32 $0, %acc0_0; …", "=f,…" : () -> !s

PTX registers are state outside of SSA, and their names are local to the kernel.  No later pass may duplicate, reorder
or inline code.  The pass is therefore the last one before ``base-prepare`` in the pipeline ``nvptx``, whose remaining
passes do none of that, and is in no other pipeline.

**Webs.** In base IR, the accumulators are one struct that each instruction takes and returns, also through loops.  If
every struct is used only once, by the next instruction, no two are live at a time, and registers declared by the kernel
can hold them.  A *web* is a set of structs connected by instructions, by inline PTX whose outputs are tied to its
inputs (a wait, a fence, A in registers), and by the carried values of ``scf.for`` and ``scf.while``.  :func:`find_webs`
walks the kernel in order and checks that each use refers to the struct that the registers hold at that point.  A web
that fails the check does not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from xdsl.dialects.builtin import DenseArrayBase, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator, NoMemoryEffect

from cute_dialect.ir.editing import all_ops, make_op
from cute_dialect.ir.xdsl_compat import insert_op
from cute_dialect.passes.base import Pass, PassContext
from cute_dialect.upstream import llvm
from cute_dialect.upstream.llvm_types import LLVMStructType

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute, BlockArgument, Operation, Region, SSAValue


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


_HELP = __doc__ or ""
"""Text of ``--help``: inside the class, ``__doc__`` would be the docstring of the class."""

_PTX_TYPES = {"f32": "f32", "i32": "b32"}
_DIGITS = re.compile(r"\d+")


class WgmmaRegistersPass(Pass):
    """Join consecutive ``wgmma``, and keep accumulators in registers that the kernel declares in PTX.

    PTX registers are state outside of SSA, so no later pass may duplicate, reorder or inline code.
    """

    name = "cute-wgmma-registers"
    summary = "join consecutive wgmma and keep their accumulators in PTX registers"
    scope = "base"
    description = _HELP
    anchor = ("gpu.module",)
    counts_changes = True

    def run(self, op: Operation, ctx: PassContext) -> None:
        types = RegisterTypes()
        declared = 0
        for function in op.regions[0].block.ops:
            chains, webs = _plan(function, types, declared)
            if chains or webs.number:
                _Rewriter(webs, types).run(function, chains)
                declared += len(webs.types)
                ctx.count("pieces of wgmma made", len(chains))
                ctx.count("webs in registers", len(webs.types))

    def legal_after(self, op: Operation) -> Iterable[Operation]:
        """Yield ops that the pass should have joined or moved to registers."""
        types = RegisterTypes()
        for holder in op.walk():
            if holder.name != "gpu.module":
                continue
            for function in holder.regions[0].block.ops:
                chains, webs = _plan(function, types, 0)
                yield from (link for chain in chains for link in chain)
                yield from (tied.op for tied in webs.tied)


def _plan(function: Operation, types: RegisterTypes, first: int) -> tuple[list[list[Operation]], Webs]:
    """Return the chains of a function, in the order of their instructions, and its webs."""
    if not function.regions or not any(op.name in (WGMMA, "llvm.inline_asm") for op in all_ops(function)):
        return [], Webs()
    is_kernel = function.name == "llvm.func" and "nvvm.kernel" in function.attributes
    blocks = function.regions[0].blocks
    webs = find_webs(blocks[0], types, first) if is_kernel and len(blocks) == 1 else Webs()
    chains = [c for c in find_chains(function, types) if len(c) > 1 or c[0].results[0] in webs.number]
    return chains, webs


# ------------------------------------------------------------------------------------------------------------ chains


def find_chains(function: Operation, types: RegisterTypes) -> list[list[Operation]]:
    """Return the chains of instructions that can be joined, in order; a single instruction is a chain, too."""
    found: list[list[Operation]] = []
    harmless: dict[type[Operation], bool] = {}

    def collect(region: Region) -> None:
        for block in region.blocks:
            chain: list[Operation] | None = None  # the chain that ends before op, with only pure ops between
            op = block.first_op
            while op is not None:
                pure = harmless.get(type(op))
                if pure is None:
                    pure = harmless[type(op)] = _is_harmless(op)
                if op.name == WGMMA and "satfinite" not in op.properties and types.of(op.results[0].type):
                    if chain is not None and _follows(op, chain[-1]):
                        chain.append(op)
                    else:
                        chain = [op]
                        found.append(chain)
                elif not pure:
                    chain = None
                    for inner in op.regions:
                        collect(inner)
                op = op.next_op

    for region in function.regions:
        collect(region)
    return found


def _follows(op: Operation, before: Operation) -> bool:
    """Return True if an instruction is the only user of another one's accumulators."""
    return op.operands[0] is before.results[0] and before.results[0].has_one_use()


def _is_harmless(op: Operation) -> bool:
    return not op.regions and op.has_trait(NoMemoryEffect) and not op.has_trait(IsTerminator)


def _chain_code(chain: Sequence[Operation], accumulators: str, at: int) -> str:
    """Return the PTX of a chain, whose descriptors start at ``$at``."""
    lines = ["{", ".reg .pred p;"]
    scale = ""
    for i, op in enumerate(chain):
        if _word(op, "scaleD") != scale:
            scale = _word(op, "scaleD")
            lines.append(f"setp.ne.b32 p, {int(scale == 'one')}, 0;")
        lines.append(_instruction(op, accumulators, at + 2 * i))
    return "\n".join([*lines, "}"])


def _instruction(op: Operation, accumulators: str, at: int) -> str:
    """Return one instruction with descriptors ``$at`` and ``$at+1`` (PTX ISA 9.7.15.5.2)."""
    m, n, k = _DIGITS.findall(str(op.properties["shape"]))
    types = [_word(op, f"type{x}") for x in "DAB"]
    operands = [accumulators, f"${at}", f"${at + 1}", "p"]
    if types[0] != "s32":
        operands += ["-1" if _word(op, f"scale{x}") == "neg" else "1" for x in "AB"]
    if types[1] in ("f16", "bf16"):
        operands += [str(int(_word(op, "layoutA") == "col")), str(int(_word(op, "layoutB") == "row"))]
    return f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{'.'.join(types)} {', '.join(operands)};"


def _word(op: Operation, name: str) -> str:
    """Return the value of an enum attribute: ``row`` for ``#nvvm.mma_layout<row>``."""
    text = str(op.properties[name])
    return text[text.index("<") + 1 : -1]


@lru_cache(maxsize=64)
def _registers(number: int, n: int) -> tuple[str, ...]:
    return tuple([f"%acc{number}_{i}" for i in range(n)])


# ---------------------------------------------------------------------------------------------------------- rewriting


class _Rewriter:
    """Rewrites one function.  Replaced ops are erased at the end, when they have no uses."""

    def __init__(self, webs: Webs, types: RegisterTypes):
        self.webs = webs
        self.types = types
        self.replaced: list[Operation] = []
        self.arguments: list[BlockArgument] = []

    def run(self, function: Operation, chains: Sequence[Sequence[Operation]]) -> None:
        """Rewrite chains and webs."""
        sources = [use.operation for value in self.webs.number for use in value.uses]
        unused = [op for op in sources if op.name == "llvm.extractvalue"]
        starts = {op.operands[0] for chain in chains for op in chain[:1]}
        starts |= {op.operands[LOOPS[op.name][0] + i] for op, carry in self.webs.loops.items() for i in carry.entering}
        unused += [cast("Operation", value.owner) for value in starts if is_undefined(value)]
        for chain in chains:
            self._join(chain)
        for tied in self.webs.tied:
            self._untie(tied)
        for loop, carry in self.webs.loops.items():
            self._narrow(loop, carry)
        self._remove(unused)
        self._declare(function)

    def _join(self, chain: Sequence[Operation]) -> None:
        """Replace a chain by one op at its last instruction."""
        first, last = chain[0], chain[-1]
        descriptors = [o for op in chain for o in op.operands[1:]]
        types = self.types.of(first.results[0].type)
        n = len(types)
        number = self.webs.number.get(last.results[0])
        if number is not None:
            code = _chain_code(chain, _braced(_registers(number, n)), 0)
            self._replace(last, code, ["l"] * len(descriptors), descriptors, None)
        else:
            code = _chain_code(chain, _braced([f"${i}" for i in range(n)]), 2 * n)
            letters = [LETTERS[t] for t in types]
            constraints = [*[f"={x}" for x in letters], *map(str, range(n)), *["l"] * len(descriptors)]
            inputs = self._members(first, last)
            self._replace(last, code, constraints, [*inputs, *descriptors], last.results[0].type)
        self.replaced += chain

    def _members(self, first: Operation, before: Operation) -> list[SSAValue]:
        """Return the initial accumulators of an instruction as single values."""
        start = first.operands[0]
        types = cast("llvm.LLVMStructType", start.type).types
        if is_undefined(start) and _word(first, "scaleD") == "zero":
            undefined = make_op(llvm.UndefOp, (), [next(iter(types))], location=first.location)
            insert_op(undefined, before)
            return [undefined.results[0]] * len(types)
        members: list[SSAValue] = []
        for i, t in enumerate(types):
            extract = llvm.ExtractValueOp(start, [i])
            assert extract.results[0].type == t
            extract.location = first.location
            insert_op(extract, before)
            members.append(extract.results[0])
        return members

    def _untie(self, tied: Tied) -> None:
        """Make inline PTX use the registers of a web; an op with neither code nor a used result is removed."""
        op, n = tied.op, tied.members
        result = op.results[0]
        registers = _registers(self.webs.number[result], n)
        read = result in self.webs.read
        behind = n if read else 0

        def renumbered(found: re.Match[str]) -> str:
            at = int(found[1])
            return registers[at % n] if at < 2 * n else f"${at - 2 * n + behind}"

        code = re.sub(r"\$(\d+)", renumbered, ptx_text(op))
        constraints = [word for word in ptx_text(op, "constraints").split(",")[2 * n :] if word]
        if read:
            code += "".join(f"\nmov.b32 ${i}, {r};" for i, r in enumerate(registers))
            constraints = [*[f"={LETTERS[t]}" for t in self.types.of(result.type)], *constraints]
        if code:
            self._replace(op, code, constraints, op.operands[n:], result.type if read else None)
        self.replaced.append(op)

    def _replace(
        self,
        op: Operation,
        code: str,
        constraints: Sequence[str],
        operands: Sequence[SSAValue],
        result: Attribute | None,
    ) -> None:
        """Insert inline PTX before ``op``; its result, if any, replaces the result of ``op``."""
        new = llvm.InlineAsmOp(code, ",".join(constraints), operands, result, has_side_effects=True)
        new.location = op.location
        insert_op(new, op)
        if result is not None:
            op.results[0].replace_all_uses_with(new.results[0])

    def _narrow(self, loop: Operation, carry: Carry) -> None:
        """Remove the carried accumulators from a loop."""
        operands, arguments = LOOPS[loop.name]
        first, last = loop.regions[0].block, loop.regions[-1].block
        _drop_operands(last.last_op, carry.entering)
        self.arguments += [first.args[arguments + i] for i in carry.entering]
        if last is not first:
            _drop_operands(first.last_op, [1 + j for j in carry.leaving])
            self.arguments += [last.args[j] for j in carry.leaving]
        kept = [r for j, r in enumerate(loop.results) if j not in carry.leaving]
        new = type(loop).create(
            operands=[o for i, o in enumerate(loop.operands) if i - operands not in carry.entering],
            result_types=[r.type for r in kept],
            properties=loop.properties,
            attributes=loop.attributes,
            regions=[loop.detach_region(0) for _ in range(len(loop.regions))],
        )
        new.location = loop.location
        insert_op(new, loop)
        for old, result in zip(kept, new.results):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)
        self.replaced.append(loop)

    def _remove(self, unused: Iterable[Operation]) -> None:
        """Erase the replaced ops, and those of ``unused`` without uses."""
        for op in self.replaced:
            op.detach()
            op.drop_all_references()
        for op in unused:
            if op.results[0].first_use is None:
                op.detach()
                op.erase()
        for op in self.replaced:
            op.erase(drop_references=False)
        for argument in self.arguments:
            argument.block.erase_arg(argument)

    def _declare(self, function: Operation) -> None:
        """Declare the registers of all webs at the start of the kernel."""
        if not self.webs.types:
            return
        lines = [f".reg .{_PTX_TYPES[t[0]]} %acc{number}_<{len(t)}>;" for number, t in self.webs.types.items()]
        declaration = llvm.InlineAsmOp("\n".join(lines), "", has_side_effects=True)
        declaration.location = function.location
        first = function.regions[0].block.first_op
        assert first is not None
        insert_op(declaration, first)


def _drop_operands(op: Operation | None, gone: Sequence[int]) -> None:
    assert op is not None
    op.operands = [o for i, o in enumerate(op.operands) if i not in gone]


def _braced(registers: Sequence[str]) -> str:
    return "{" + ", ".join(registers) + "}"
