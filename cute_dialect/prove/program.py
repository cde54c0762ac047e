"""The slice of a kernel that its protocol depends on.

Relevant are the operands of synchronizing and asynchronous instructions that the table of effects names, the addresses
of shared memory, and the conditions and bounds around them; and whatever these are computed from. Matrices and global
memory are left out. The registers that a wgmma writes are followed to their first use, which must come after the wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.tensor_map_codes import counted_bytes
from cute_dialect.errors import UsageError
from cute_dialect.interp.errors import attr_of
from cute_dialect.interp.exec.program import Program as Interpreted
from cute_dialect.interp.exec.program import lay_out_shared, symbol_name
from cute_dialect.interp.machine.group import Counter as StepCounter
from cute_dialect.interp.machine.group import Machine as Interpreter
from cute_dialect.interp.types import round_up
from cute_dialect.prove.attributes import integers_of
from cute_dialect.prove.effects import MAY_BE, Effect, effect_of, multicast_mask, signals
from cute_dialect.prove.global_arrays import arrays_of, arrays_written, loads_number
from cute_dialect.prove.sequences import condition_sources, sources
from cute_dialect.prove.tensor_form import check_loads, name_of
from cute_dialect.prove.verdict import NotProved
from cute_dialect.runtime.abi import PREFERRED_CLUSTER

_BOX = re.compile(r"tma_\w+<(\w+), box = \(([\d, ]+)\)")


class Box(NamedTuple):
    """Size of a copy through a tensor map in bytes: in shared memory, and as an mbarrier counts it."""

    placed: int
    counted: int


_MOVES = ("llvm.extractvalue", "llvm.insertvalue")
_INVARIANT = (
    "arith.constant",
    "llvm.mlir.constant",
    "llvm.mlir.addressof",
    "nvvm.read.ptx.sreg.tid.",
    "nvvm.read.ptx.sreg.laneid",
    "nvvm.read.ptx.sreg.ntid.",
    "nvvm.read.ptx.sreg.cluster.",
    "nvvm.mapa",
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.andi",
    "arith.ori",
    "arith.xori",
    "arith.sh",
    "arith.div",
    "arith.rem",
    "arith.ceildiv",
    "arith.cmpi",
    "arith.ext",
    "arith.trunci",
    "llvm.getelementptr",
    "llvm.ptrtoint",
    "llvm.inttoptr",
    "llvm.addrspacecast",
    "nvvm.shfl.sync",
    "arith.select",
    "builtin.unrealized_conversion_cast",
    "llvm.bitcast",
    "llvm.insertvalue",
    "llvm.extractvalue",
    "ub.poison",
    "llvm.mlir.undef",
    "llvm.mlir.poison",
)
"""Ops whose result depends on the thread alone if their operands do."""


class Code:
    """The ops of a block that the protocol depends on.

    Attributes:
        at: Position of each op.
        slots: Slots of the results.
        args: Slots of the arguments of the block.
        last_use: Twice the position of the last op that may read a result or an argument, by slot, and one more if an
            op inside it reads. Registers of wgmma are left out: they count as read to the end.
    """

    def __init__(self, block: Block, ops: list[Operation]) -> None:
        self.block, self.ops = block, ops
        self.at: dict[Operation, int] = {op: i for i, op in enumerate(ops)}
        self.slots: tuple[int, ...] = ()
        self.args: tuple[int, ...] = ()
        self.last_use: dict[int, int] = {}
        self._unused: dict[int, frozenset[int]] = {}

    def unused(self, at: int) -> frozenset[int]:
        """Return the slots of results and arguments that no op from a position on reads, in units of `last_use`."""
        got = self._unused.get(at)
        if got is None:
            got = self._unused[at] = frozenset(slot for slot, last in self.last_use.items() if last < at)
        return got


class Program:
    """A kernel: its effects, relevant values, threads, shared memory and tensor maps."""

    def __init__(self, module: Operation, kernel: Operation) -> None:
        self.kernel = kernel
        body = kernel.regions[0]
        self.effects: dict[Operation, Effect] = {}
        self.scopes: set[Operation] = set()  # control flow that contains an effect
        self.relevant: set[SSAValue] = set()
        self.essential: set[SSAValue] = set()  # relevant for more than whether an access happens
        self.pending: set[SSAValue] = set()  # values that may be registers of a wgmma in flight
        self._codes: dict[Block, Code] = {}
        self._slots: dict[SSAValue, int] = {}
        self._invariant: dict[SSAValue, bool] = {}
        self._roots: dict[SSAValue, tuple[SSAValue, ...]] = {}
        for op in body.walk():
            if (effect := effect_of(op)) is not None:
                self.effects[op] = effect
                self._enclose(op)
        for region in [body, *(r for op in body.walk() for r in op.regions)]:
            if len(region.blocks) > 1:
                raise NotProved("branches between blocks (cf) are not modelled; use if and for", region.block.last_op)
        self.allocations = [op for op, e in self.effects.items() if e.kind == "tensor_alloc"]
        self.has_tensor_memory = any(map(name_of, self.effects))
        check_loads(body)
        self._follow_accumulators()
        self._may_be = {op for op in self.scopes if self._only_accesses(op)}
        self._slice()
        self.threads, *more = integers_of(kernel, "nvvm.reqntid") or [0]
        if prod(more) > 1:
            raise NotProved("blocks of several dimensions are not modelled")
        if not self.threads or self.threads % 32:
            raise NotProved(f"the block has {self.threads or 'an unknown number of'} threads; whole warps are needed")
        self.warps = self.threads // 32
        if integers_of(kernel, PREFERRED_CLUSTER):
            raise NotProved("clusters of two sizes are not modelled")
        self.blocks, *more = integers_of(kernel, "nvvm.cluster_dim") or [1]
        if prod(more) > 1:
            raise NotProved("clusters of several dimensions are not modelled")
        if self.blocks > 1 and self.threads % 128:
            raise NotProved("clusters of blocks without whole warpgroups are not modelled")
        self.boxes = _boxes(kernel)
        self.written = frozenset(arg for op in body.walk() for arg in arrays_written(op))
        machine = Interpreter(StepCounter(1), (1, 1, 1), (self.threads, 1, 1), True)
        size = getattr(getattr(attr_of(kernel, "cute.dynamic_smem"), "value", None), "data", 0)
        lay_out_shared(Interpreted(module, "wrap"), machine, kernel, size)
        self.window = round_up(machine.smem_size, 1024) or 1024  # distance of the blocks of a cluster in shared memory
        self.symbols, self.shared_size, self.names = machine.symbols, machine.smem_size, machine.shared_names

    def _enclose(self, op: Operation) -> None:
        parent = op.parent_op()
        while parent is not None and parent is not self.kernel:
            self.scopes.add(parent)
            parent = parent.parent_op()

    def _follow_accumulators(self) -> None:
        """Mark the registers that a wgmma writes, and make their readers steps."""
        work: list[SSAValue] = [r for op, e in self.effects.items() if e.kind == "wgmma" for r in op.results]
        while work:
            value = work.pop()
            if value in self.pending:
                continue
            self.pending.add(value)
            for use in value.uses:
                op = use.operation
                if op.name in _MOVES:
                    work += op.results
                elif op.name == "scf.yield":
                    parent = op.parent_op()
                    assert parent is not None
                    if parent.name == "scf.while":
                        work.append(parent.regions[0].block.args[use.index])
                        continue
                    work.append(parent.results[use.index])
                    if parent.name == "scf.for":
                        work.append(parent.regions[0].block.args[1 + use.index])
                elif op.name == "scf.while":
                    work.append(op.regions[0].block.args[use.index])
                elif op.name == "scf.condition" and use.index:
                    parent = op.parent_op()
                    assert parent is not None
                    work += [parent.results[use.index - 1], parent.regions[1].block.args[use.index - 1]]
                elif op.name == "scf.for" and use.index >= 3:
                    work += [op.results[use.index - 3], op.regions[0].block.args[use.index - 2]]
                elif (effect := self.effects.get(op)) is None:
                    self.effects[op] = Effect("reads_accumulator")
                    self._enclose(op)
                elif effect.kind == "wgmma_wait":
                    work += op.results

    def may_be(self, op: Operation) -> bool:
        """Return True if an op contains only accesses of threads, and none in its else block.

        They are modelled even if it is not known whether they happen. With accesses on both sides, that all threads
        take the same side matters.
        """
        return op in self._may_be

    def _only_accesses(self, op: Operation) -> bool:
        inside = [o for o in op.walk() if o in self.effects]
        others = [o for region in op.regions[1:] for o in region.walk() if o in self.effects]
        return not others and all(self.effects[o].kind in MAY_BE for o in inside)

    def _slice(self) -> None:
        work: list[SSAValue] = []
        for value in self.pending:
            owner = value.owner
            if not isinstance(owner, Operation) or owner.name in ("scf.for", "scf.while"):
                self.relevant.add(value)
            elif owner.name == "scf.if":
                self.relevant.add(value)
                work.append(owner.operands[0])
        for op, effect in self.effects.items():
            if effect.kind in ("tensor_load", "bulk_load") and (mask := multicast_mask(op)) is not None:
                work.append(mask)
            for i in effect.operands:
                if effect.kind == "tensor_load" and i < 0:
                    i = signals(op)
                if i < len(op.operands) and op.operands[i] not in self.pending:
                    work.append(op.operands[i])
        free: list[SSAValue] = []
        for op in self.scopes:
            if op.name == "scf.if":
                (free if op in self._may_be else work).append(op.operands[0])
            elif op.name == "scf.for":
                work += op.operands[:3]
            elif op.name == "scf.while":
                if any(o in self.effects for o in op.regions[0].walk()):
                    raise NotProved("a while loop whose condition synchronizes or accesses shared memory", op)
                work += condition_sources(op)
            else:
                raise NotProved(f"instructions of the protocol inside {op.name} are not modelled", op)
        self.essential |= closure(work)
        self.relevant |= closure([*work, *free])

    def slot(self, value: SSAValue) -> int:
        """Return the number under which a warp keeps a value."""
        return self._slots.setdefault(value, len(self._slots))

    def code(self, block: Block) -> Code:
        """Return the ops of a block that the protocol depends on, with its terminator.

        Ops whose results depend on the thread alone are left out. They are evaluated on first use.
        """
        got = self._codes.get(block)
        if got is None:
            got = self._codes[block] = Code(block, self._list(block))
            results = [r for op in got.ops for r in op.results]
            got.slots = tuple(self.slot(r) for r in results)
            got.args = tuple(self.slot(r) for r in block.args)
            own = [v for v in (*block.args, *results) if v not in self.pending]
            got.last_use = {self.slot(v): self._last_use(got, v) for v in own}
        return got

    def _list(self, block: Block) -> list[Operation]:
        out: list[Operation] = []
        read: set[SSAValue] = set()
        for op in block.ops:
            effect = self.effects.get(op)
            if effect is not None and effect.kind == "reads_accumulator":
                new = set(self.registers_of(op)) - read
                read |= new
                if new or any(r in self.relevant for r in op.results):
                    out.append(op)
                continue
            if effect is not None or op in self.scopes:
                read.clear()
                out.append(op)
            elif op.name.endswith((".return", ".yield")) or any(
                r in self.relevant and not self.is_invariant(r) for r in op.results
            ):
                out.append(op)
        return out

    def _last_use(self, code: Code, value: SSAValue) -> int:
        """Return when a value is last read in the code of the block that defines it, see `Code.last_use`."""
        last = -1
        for use in value.uses:
            user: Operation | None = use.operation
            while user is not None and user.parent is not code.block:
                user = user.parent_op()
            if user is None:
                return 1 << 30
            if user in code.at:
                last = max(last, 2 * code.at[user] + (user is not use.operation))
        return last

    def registers_of(self, op: Operation) -> tuple[SSAValue, ...]:
        """Return the values of wgmma, loops and branches whose registers an op reads."""
        return tuple(dict.fromkeys(r for v in op.operands if v in self.pending for r in self.roots(v)))

    def roots(self, value: SSAValue) -> tuple[SSAValue, ...]:
        """Return the values that a value takes registers from, through moves and waits."""
        got = self._roots.get(value)
        if got is None:
            op = value.owner
            moves = isinstance(op, Operation) and (op.name in _MOVES or self._waits(op))
            got = self.registers_of(op) if moves and isinstance(op, Operation) else (value,)
            self._roots[value] = got
        return got

    def _waits(self, op: Operation) -> bool:
        effect = self.effects.get(op)
        return effect is not None and effect.kind == "wgmma_wait"

    def is_invariant(self, value: SSAValue) -> bool:
        """Return True if a value depends on the thread alone: not on the iteration, a symbol or a decision."""
        got = self._invariant.get(value)
        if got is None:
            op = value.owner
            got = (
                isinstance(op, Operation)
                and op.name.startswith(_INVARIANT)
                and all(self.is_invariant(v) for v in op.operands)
            )
            self._invariant[value] = got
        return got

    def is_constant_load(self, op: Operation) -> bool:
        """Return True for a load of an integer from arrays that the kernel does not write."""
        if not loads_number(op):
            return False
        arrays = arrays_of(op.operands[0])
        return len(arrays) > 0 and not arrays & self.written

    def box(self, tensor_map: SSAValue) -> Box | None:
        """Return the size of a copy through a tensor map, None if it is not known."""
        return self.boxes.get(tensor_map)


def find_kernel(module: ModuleOp, kernel: str) -> Operation:
    """Return the kernel with a name. Raises UsageError if there is none."""
    bodies = (o for o in module.walk() if o.name.endswith("func") and o.regions and o.regions[0].blocks)
    functions = {symbol_name(o): o for o in bodies}
    func = functions.get(kernel)
    if func is None:
        raise UsageError(f"prove: the module has no kernel '{kernel}'; it has {', '.join(functions) or 'none'}")
    return func


def closure(values: Iterable[SSAValue]) -> set[SSAValue]:
    """Return values and all that they are computed from."""
    found: set[SSAValue] = set()
    work = list(values)
    while work:
        value = work.pop()
        if value not in found:
            found.add(value)
            work += _sources(value)
    return found


def _sources(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that a value is computed from."""
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        if loop is not None and loop.name == "scf.while":
            yield from sources(value)
        if loop is not None and loop.name == "scf.for":
            if value.index == 0:
                yield from loop.operands[:3]
            else:
                last = value.block.last_op
                assert last is not None
                yield from (loop.operands[2 + value.index], last.operands[value.index - 1])
        return
    op = value.owner
    assert isinstance(op, Operation) and isinstance(value, OpResult)
    if op.name == "scf.if":
        yield op.operands[0]
        for region in op.regions:
            if region.blocks and (last := region.block.last_op) is not None:
                yield last.operands[value.index]
    elif op.name == "scf.while":
        yield from sources(value)
    elif op.name == "scf.for":
        last = op.regions[0].block.last_op
        assert last is not None
        yield from op.operands[:3]
        yield from (op.operands[3 + value.index], last.operands[value.index], op.regions[0].block.args[1 + value.index])
    elif (
        op.regions
        or op.name in ("nvvm.wgmma.mma_async", "llvm.inline_asm")
        or op.name.startswith(("nvvm.ldmatrix", "llvm.call", "llvm.atomic", "llvm.cmpxchg"))
        or (op.name == "llvm.load" and not loads_number(op))
    ):
        return
    else:
        yield from op.operands


def _boxes(kernel: Operation) -> dict[SSAValue, Box]:
    out: dict[SSAValue, Box] = {}
    names = getattr(attr_of(kernel, "cute.args"), "data", ())
    for kind, arg in zip(names, kernel.regions[0].block.args):
        found = _BOX.search(str(getattr(kind, "data", "")))
        if found is not None:
            elements, bits = prod(int(x) for x in found[2].split(",")), bits_of(found[1])
            counted = counted_bytes(elements, bits)
            out[arg] = Box(elements if "unpack = 16" in str(kind) else counted, counted)
    return out
