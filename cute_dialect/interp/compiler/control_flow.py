"""Control flow under lane masks: structured (scf), and control-flow graphs.

Each side of a structured branch runs under the mask of its lanes, and the results are merged. A loop runs until its
last lane leaves. Control flow is written as generators, which forward the waits of blocking ops inside. A region
without blocking ops runs to its end at once.

In a control-flow graph, lanes wait at blocks. In each step the block with the smallest number runs, for all lanes that
wait at it. Blocks are numbered in a topological order in which each loop is contiguous. Lanes that diverge at a branch
therefore reconverge at its immediate post-dominator at the latest, and a loop's exit waits for the last lane. If only
some lanes run a block, values that other blocks use are written under the mask. Another lane may still need the value
of an earlier visit.

**Endless loops.** A loop may run for any time as long as it makes progress. Its ops are counted, and after each
`max_steps` of them the values are inspected from which its exit conditions are computed:

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
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from cute_dialect.interp.compiler.function_compiler import FnCompiler, RegionCode, Run, recover, result_types
from cute_dialect.interp.errors import Fault, InterpError, OpInfo, attr_of, op_name
from cute_dialect.interp.machine.group import Group, Wait
from cute_dialect.interp.types import Leaf, type_of
from cute_dialect.interp.values import POISON, Mask, Regs, Undefined, Value, merge, normalise, truth, unsigned

if TYPE_CHECKING:
    from xdsl.ir import Region


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


# -------------------------------------------------------------------------------------------------- control flow graphs


Gen = Generator[Wait, None, None]


class _Edge:
    """A branch to a block: copies the `src` slots to the block's argument slots `dst`."""

    __slots__ = ("dst", "leaves", "src", "target")

    def __init__(self, target: int, dst: tuple[int, ...], src: tuple[int, ...], leaves: tuple[Leaf, ...]) -> None:
        self.target = target
        self.dst = dst
        self.src = src
        self.leaves = leaves


class _Frame:
    """A CFG while a group runs it: the lanes pending at each block."""

    __slots__ = ("entry", "pending")

    def __init__(self, entry: Mask) -> None:
        self.entry = entry
        self.pending: dict[int, Mask] = {0: entry}

    def take(self, R: Regs, edge: _Edge, mask: Mask) -> None:
        if mask.n == 0:
            return
        vals = [R[s] for s in edge.src]
        if mask.n == self.entry.n:
            for d, v in zip(edge.dst, vals):
                R[d] = v
        else:
            for d, v, leaf in zip(edge.dst, vals, edge.leaves):
                R[d] = merge(mask, v, R[d], leaf)
        old = self.pending.get(edge.target)
        self.pending[edge.target] = mask if old is None else old.union(mask)


Terminator = Callable[[Regs, Group, _Frame], None]


def compile_region(c: FnCompiler, region: Region) -> RegionCode:
    """Compile a region of one block, or a CFG. `block_args` must have allocated the arguments of a single block."""
    blocks = region.blocks
    last = blocks[0].last_op
    if len(blocks) > 1 or (last is not None and op_name(last) in ("llvm.unreachable", "ub.unreachable")):
        return _compile_cfg(c, region)
    run, blocking, term = c.compile_block_ops(blocks[0])
    out = c.flat_uses(term.operands) if term is not None else ()
    return RegionCode(run, blocking, out)


def _compile_cfg(c: FnCompiler, region: Region) -> RegionCode:
    """Compile a region of several blocks.

    The operands of its returns or yields are merged over the lanes into new slots.
    """
    blocks = _order(region)
    number = {b: i for i, b in enumerate(blocks)}
    cfg = c.next_cfg
    c.next_cfg += 1
    cyclic = _in_cycles(blocks)
    out_leaves: tuple[Leaf, ...] | None = None
    out: tuple[int, ...] = ()
    terminators: list[Operation] = []
    runs: list[Run] = []
    blocking = False
    args: dict[Block, tuple[int, ...]] = {}
    for b in blocks:
        if b is blocks[0]:
            if any(a not in c.slots for a in b.args):
                args[b] = c.block_args(b)
            else:
                args[b] = tuple(s for a in b.args for s in c.slots[a])
        else:
            args[b] = c.block_args(b)
    edges: list[Terminator] = []
    for b in blocks:
        c.cfg.append((cfg, number[b]))
        c.loops += b in cyclic
        run, blk, term = c.compile_block_ops(b)
        c.loops -= b in cyclic
        if term is None:
            raise InterpError("unsupported", "a block has no terminator")
        blocking |= blk
        runs.append(run)
        terminators.append(term)
        if op_name(term) in _RETURNS and out_leaves is None:
            owner = region.parent_op()
            types = result_types(owner) if owner is not None and attr_of(owner, "function_type") is not None else ()
            if not types and term.operands:
                types = tuple(v.type for v in term.operands)
            out_leaves = tuple(leaf for t in types for leaf in type_of(t).leaves)
            out = tuple(c.new_slot(leaf, fixed=True) for leaf in out_leaves)
        edges.append(_terminator(c, term, number, args, out, out_leaves or ()))
        c.cfg.pop()
    liveouts = [tuple((s, c.leaf_of(s)) for s in sorted(c.liveouts.get((cfg, i), ()))) for i in range(len(blocks))]
    infos = [c.info(t) for t in terminators]
    loops = _loops(c, blocks, number, blocking)

    def run_cfg(R: Regs, g: Group) -> Gen:
        f = _Frame(g.mask)
        pending = f.pending
        k = g.count
        due = k.steps - k.base + k.most
        patience: list[tuple[_Loop, Patience]] = []
        while pending:
            b = min(pending) if len(pending) > 1 else next(iter(pending))
            m = pending.pop(b)
            if g.killed:
                m = m.minus(g.dead)
            if m.n == 0:
                continue
            g.mask = m
            k.steps += 1
            if k.steps - k.base > due and loops:
                patience = patience or [(loop, Patience(loop.exits)) for loop in loops]
                for loop, p in patience:
                    if b == loop.header:
                        p.judge(R, g)
                    elif b not in loop.blocks:
                        p.start()
            live = liveouts[b]
            if live and m.n != f.entry.n:
                old = [R[s] for s, _ in live]
                inner = runs[b](R, g)
                if inner is not None:
                    yield from inner
                for (s, leaf), o in zip(live, old):
                    R[s] = merge(m, R[s], o, leaf)
            else:
                inner = runs[b](R, g)
                if inner is not None:
                    yield from inner
            try:
                edges[b](R, g, f)
            except InterpError:
                raise
            except Exception as e:
                recover(e, infos[b], R, g)
        if loops and blocking:
            g.advance()
        g.restore(f.entry)

    if blocking:
        return RegionCode(run_cfg, True, out)

    def run_plain(R: Regs, g: Group) -> None:
        for _ in run_cfg(R, g):
            raise AssertionError("a region without blocking ops has blocked")

    return RegionCode(run_plain, False, out)


class _Loop(NamedTuple):
    """A cycle of blocks: number of its header, numbers of all its blocks, and the values that decide its exit."""

    header: int
    blocks: frozenset[int]
    exits: Exits


def _loops(c: FnCompiler, blocks: Sequence[Block], number: Mapping[Block, int], blocking: bool) -> list[_Loop]:
    """Return the loops of a region, including nested ones."""
    out: list[_Loop] = []
    todo: list[tuple[Sequence[Block], Block, Block | None]] = [(blocks, blocks[0], None)]
    while todo:
        nodes, entry, outer = todo.pop()
        for part in _components(nodes, entry, outer):
            if len(part) == 1 and (part[0] is outer or part[0] not in _succs(part[0])):
                continue
            head = min(part, key=number.__getitem__)
            within = set(part)
            leaving = [b.last_op for b in part if b.last_op is not None and not within.issuperset(_succs(b))]
            info = c.info(head.last_op) if head.last_op is not None else c.info(leaving[0])
            conditions = [v for op in leaving for v in op.operands[:1]]
            exits = exits_of(c, info, conditions, part, _feeds, blocking)
            out.append(_Loop(number[head], frozenset(number[b] for b in part), exits))
            todo.append((part, head, head))
    return out


def _feeds(block: Block, argument: SSAValue) -> Sequence[SSAValue]:
    """Return the values that may become an argument of a block: all operands of the branches to it."""
    before = [b.last_op for b in block.predecessors()]
    return [v for op in before if op is not None for v in op.operands]


_RETURNS = ("llvm.return", "func.return", "gpu.return", "scf.yield", "gpu.yield")


def _terminator(
    c: FnCompiler,
    op: Operation,
    number: dict[Block, int],
    args: dict[Block, tuple[int, ...]],
    out: tuple[int, ...],
    out_leaves: tuple[Leaf, ...],
) -> Terminator:
    name = op_name(op)

    def edge(block: Block, values: Sequence[SSAValue]) -> _Edge:
        dst = args[block]
        src = c.flat_uses(values)
        return _Edge(number[block], dst, src, tuple(c.leaf_of(s) for s in dst))

    if name in _RETURNS:
        src = c.flat_uses(op.operands)

        def ret(R: Regs, g: Group, f: _Frame) -> None:
            for d, s, leaf in zip(out, src, out_leaves):
                R[d] = merge(g.mask, R[s], R[d], leaf)

        return ret
    if name in ("cf.br", "llvm.br"):
        e = edge(op.successors[0], op.operands)

        def br(R: Regs, g: Group, f: _Frame) -> None:
            f.take(R, e, g.mask)

        return br
    if name in ("cf.cond_br", "llvm.cond_br"):
        sizes = segments(op, 3)
        cond = c.use(op.operands[0])
        n_true = sizes[1]
        on_true = edge(op.successors[0], op.operands[1 : 1 + n_true])
        on_false = edge(op.successors[1], op.operands[1 + n_true :])

        def cond_br(R: Regs, g: Group, f: _Frame) -> None:
            k = truth(R[cond], g.mask)
            if isinstance(k, bool):
                f.take(R, on_true if k else on_false, g.mask)
                return
            t, e = g.mask.split(k)
            f.take(R, on_true, t)
            f.take(R, on_false, e)

        return cond_br
    if name in ("cf.switch", "llvm.switch"):
        flag = c.use(op.operands[0])
        sizes = segments(op, 3)
        default = edge(op.successors[0], op.operands[1 : 1 + sizes[1]])
        counts = attr_of(op, "case_operand_segments")
        per_case = [int(v) for v in counts.get_values()] if counts is not None else []  # type: ignore[attr-defined]
        values = attr_of(op, "case_values")
        cases = [int(v) for v in values.get_values()] if values is not None else []  # type: ignore[attr-defined]
        at = 1 + sizes[1]
        targets: list[tuple[int, _Edge]] = []
        leaf = c.leaf_of(flag)
        for value, n, block in zip(cases, per_case or [0] * len(cases), op.successors[1:]):
            wrapped = normalise(value, leaf)
            targets.append((wrapped, edge(block, op.operands[at : at + n])))  # type: ignore[arg-type]
            at += n

        def switch(R: Regs, g: Group, f: _Frame) -> None:
            v = R[flag]
            if isinstance(v, Undefined):
                v = v.used(g.mask, "a branch")
            if v is POISON:
                raise Fault("poison", "switch on poison (an undefined value)")
            if not isinstance(v, np.ndarray):
                f.take(R, next((e for value, e in targets if v == value), default), g.mask)
                return
            rest = g.mask
            for value, e in targets:
                hit, rest = rest.split(v == value)
                f.take(R, e, hit)
            f.take(R, default, rest)

        return switch
    if name in ("llvm.unreachable", "ub.unreachable"):

        def unreachable(R: Regs, g: Group, f: _Frame) -> None:
            if g.mask.n:
                raise Fault("trap", f"reached {name}")

        return unreachable
    raise InterpError("unsupported", f"terminator {name} is not supported")


def segments(op: Operation, n: int) -> list[int]:
    """Return the operand counts of an op with several variadic operands."""
    got = attr_of(op, "operandSegmentSizes")
    values = getattr(got, "get_values", None)
    if values is not None:
        return [int(v) for v in values()]
    return [1] + [0] * (n - 2) + [len(op.operands) - 1]


def _succs(b: Block) -> tuple[Block, ...]:
    last = b.last_op
    return () if last is None else tuple(last.successors)


def _components(nodes: Sequence[Block], entry: Block, ignore: Block | None) -> list[list[Block]]:
    """Return the strongly connected components of the blocks reachable from `entry` within `nodes`.

    The order is reverse topological. Edges to `ignore` do not count. Tarjan's algorithm, without recursion.
    """
    inside = set(nodes)
    index: dict[Block, int] = {}
    low: dict[Block, int] = {}
    on_stack: set[Block] = set()
    stack: list[Block] = []
    out: list[list[Block]] = []
    work: list[tuple[Block, list[Block]]] = []

    def enter(b: Block) -> None:
        index[b] = low[b] = len(index)
        stack.append(b)
        on_stack.add(b)
        # The first successor is visited last, so it comes first in the topological order.
        work.append((b, [s for s in _succs(b) if s in inside and s is not ignore]))

    enter(entry)
    while work:
        b, todo = work[-1]
        if todo:
            s = todo.pop()
            if s not in index:
                enter(s)
            elif s in on_stack:
                low[b] = min(low[b], index[s])
            continue
        work.pop()
        if work:
            up = work[-1][0]
            low[up] = min(low[up], low[b])
        if low[b] == index[b]:
            part: list[Block] = []
            while True:
                x = stack.pop()
                on_stack.discard(x)
                part.append(x)
                if x is b:
                    break
            out.append(part)
    return out


def _order(region: Region) -> list[Block]:
    """Return the reachable blocks in topological order with each loop contiguous, its header first."""
    blocks = list(region.blocks)
    return _order_part(blocks, blocks[0], None)


def _order_part(nodes: Sequence[Block], entry: Block, header: Block | None) -> list[Block]:
    parts = _components(nodes, entry, header)
    parts.reverse()
    out: list[Block] = []
    placed: set[Block] = set()
    for part in parts:
        if len(part) == 1:
            out.extend(part)
        else:
            members = set(part)
            # The header is the block entered from outside (the first one found, for a loop with several entries).
            head = next(
                (
                    b
                    for p in [*out, entry]
                    for b in (entry, *_succs(p))
                    if b in members and (b is entry or p not in members)
                ),
                part[-1],
            )
            inner = _order_part(part, head, head)
            out.extend(inner)
            out.extend(b for b in part if b not in set(inner))
        placed.update(part)
    return out


def _in_cycles(blocks: Sequence[Block]) -> set[Block]:
    """Return the blocks that lie on a cycle."""
    out: set[Block] = set()
    if not blocks:
        return out
    for part in _components(blocks, blocks[0], None):
        if len(part) > 1 or part[0] in _succs(part[0]):
            out.update(part)
    return out


def compile_if(c: FnCompiler, op: Operation) -> None:
    """Compile scf.if: the condition, the then region and an optional else region."""
    cond = c.use(op.operands[0])
    then = compile_region(c, op.regions[0])
    other = (
        compile_region(c, op.regions[1])
        if len(op.regions) > 1 and op.regions[1].blocks
        else RegionCode(_nothing, False, ())
    )
    outs = c.flat_defines(op.results)
    c.pieces.join(outs, then.out, other.out)
    leaves = tuple(c.leaf_of(s) for s in outs)

    def run(R: Regs, g: Group) -> Gen:
        k = truth(R[cond], g.mask)
        m = g.mask
        if isinstance(k, bool):
            side = then if k else other
            inner = side.run(R, g)
            if inner is not None:
                yield from inner
            for d, s in zip(outs, side.out):
                R[d] = R[s]
            return
        t, f = m.split(k)
        if (t.n and f.n == 0) or (f.n and t.n == 0):
            side = then if t.n else other
            inner = side.run(R, g)
            if inner is not None:
                yield from inner
            for d, s in zip(outs, side.out):
                R[d] = R[s]
            return
        if t.n == 0:  # No lane is active here.
            for d in outs:
                R[d] = POISON
            return
        g.mask = t
        inner = then.run(R, g)
        if inner is not None:
            yield from inner
        vals = [R[s] for s in then.out]
        g.restore(f)
        inner = other.run(R, g)
        if inner is not None:
            yield from inner
        g.restore(m)
        for d, s, v, leaf in zip(outs, other.out, vals, leaves):
            R[d] = merge(t, v, R[s], leaf)

    c.emit_control(op, run, then.blocking or other.blocking)


def compile_for(c: FnCompiler, op: Operation) -> None:
    """Compile scf.for.

    Operands are the lower bound, the exclusive upper bound, the step and the initial values. The first argument of the
    body is the induction variable.
    """
    lb, ub, st = (c.use(v) for v in op.operands[:3])
    init = c.flat_uses(op.operands[3:])
    block = op.regions[0].blocks[0]
    args = c.block_args(block)
    iv, carried = args[0], args[1:]
    leaf = c.leaf_of(iv)
    mark = c.pieces.enter(carried, init)
    body = compile_region(c, op.regions[0])
    outs = c.flat_defines(op.results)
    c.pieces.leave(mark, carried, body.out, outs)
    leaves = tuple(c.leaf_of(s) for s in carried)
    is_unsigned = attr_of(op, "unsignedCmp") is not None
    info = c.info(op)

    def run(R: Regs, g: Group) -> Gen:
        lo, hi, by = (v.used(g.mask, "a loop bound") if isinstance(v := R[s], Undefined) else v for s in (lb, ub, st))
        vals: list[Value] = [R[s] for s in init]
        if POISON is lo or POISON is hi or POISON is by:
            raise Fault("poison", "loop bound is poison (an undefined value)")
        m = g.mask
        if not isinstance(lo, np.ndarray) and not isinstance(hi, np.ndarray) and not isinstance(by, np.ndarray):
            if is_unsigned:
                lo, hi = unsigned(lo, leaf), unsigned(hi, leaf)
            if by <= 0:  # type: ignore[operator]
                raise Fault("arithmetic", f"the loop step is {by}; it must be positive")
            k = g.count
            trips = range(lo, hi, by)  # type: ignore[arg-type]
            if len(trips) > HARD * k.most or k.steps - k.base > HARD * k.most:
                raise g.out_of_steps(info, HARD)
            k.steps += len(trips)
            for i in trips:
                R[iv] = normalise(i, leaf) if is_unsigned else i
                for s, v in zip(carried, vals):
                    R[s] = v
                inner = body.run(R, g)
                if inner is not None:
                    yield from inner
                vals = [R[s] for s in body.out]
                g.restore(m)
                if g.mask.n == 0:
                    break
            for d, v in zip(outs, vals):
                R[d] = v
            return
        i_now = np.array(np.broadcast_to(np.asarray(lo, leaf.dtype), (g.lanes,)))
        hi_arr = np.broadcast_to(np.asarray(hi, leaf.dtype), (g.lanes,))
        by_arr = np.broadcast_to(np.asarray(by, leaf.dtype), (g.lanes,))
        if m.any(by_arr <= 0):
            raise Fault("arithmetic", "the loop step is not positive in every thread", m.first(by_arr <= 0))
        if is_unsigned:
            hi_arr = hi_arr.view(leaf.unsigned)
        bits = m.array
        k = g.count
        start = i_now.view(leaf.unsigned) if is_unsigned else i_now
        most = ((hi_arr.astype(object) - start) // by_arr)[bits].max(initial=0) if m.n else 0
        if most > HARD * k.most or k.steps - k.base > HARD * k.most:
            raise g.out_of_steps(info, HARD)
        while True:
            now = i_now.view(leaf.unsigned) if is_unsigned else i_now
            k.steps += 1
            live = Mask.of(bits & (now < hi_arr))
            if g.killed:
                live = live.minus(g.dead)
            if live.n == 0:
                break
            g.mask = live
            R[iv] = i_now
            for s, v in zip(carried, vals):
                R[s] = v
            inner = body.run(R, g)
            if inner is not None:
                yield from inner
            after = [R[s] for s in body.out]
            vals = [merge(live, n, o, f) for n, o, f in zip(after, vals, leaves)]
            nxt = i_now + by_arr
            # A counter that would wrap ends the loop.
            bits = live.array & ((nxt.view(leaf.unsigned) > now) if is_unsigned else (nxt > i_now))
            i_now = nxt
        g.restore(m)
        for d, v in zip(outs, vals):
            R[d] = v

    c.emit_control(op, run, body.blocking)


def compile_while(c: FnCompiler, op: Operation) -> None:
    """Compile scf.while: `before` computes the condition and forwarded values, `after` the next arguments."""
    init = c.flat_uses(op.operands)
    c.loops += 1
    before_args = c.block_args(op.regions[0].blocks[0])
    before = compile_region(c, op.regions[0])
    after_args = c.block_args(op.regions[1].blocks[0])
    after = compile_region(c, op.regions[1])
    c.loops -= 1
    outs = c.flat_defines(op.results)
    cond, passed = before.out[0], before.out[1:]
    before_leaves = tuple(c.leaf_of(s) for s in before_args)
    out_leaves = tuple(c.leaf_of(s) for s in outs)
    first, second = (r.blocks[0] for r in op.regions)
    assert first.last_op is not None and second.last_op is not None
    feeding = {first: second.last_op.operands, second: first.last_op.operands[1:]}
    exits = exits_of(
        c,
        c.info(op),
        first.last_op.operands[:1],
        feeding,
        lambda block, v: [feeding[block][v.index]] if block in feeding and isinstance(v, BlockArgument) else [],
        before.blocking or after.blocking,
    )

    def run(R: Regs, g: Group) -> Gen:
        m = now = g.mask
        vals: list[Value] = [R[s] for s in init]
        result: list[Value] = [POISON] * len(outs)
        k = g.count
        due = k.steps - k.base + k.most
        patience: Patience | None = None
        while now.n:
            k.steps += 1
            for s, v in zip(before_args, vals):
                R[s] = v
            if k.steps - k.base > due:
                patience = patience or Patience(exits)
                due = patience.judge(R, g)
            inner = before.run(R, g)
            if inner is not None:
                yield from inner
            if g.killed:
                now = now.minus(g.dead)
                g.mask = now
                if now.n == 0:
                    break
            flag = truth(R[cond], g.mask)
            sent = [R[s] for s in passed]
            if isinstance(flag, bool):
                stay, leave = (now, None) if flag else (None, now)
            else:
                t, f = now.split(flag)
                stay, leave = (t if t.n else None), (f if f.n else None)
            if leave is not None:
                result = [merge(leave, n, o, f) for n, o, f in zip(sent, result, out_leaves)]
            if stay is None:
                break
            g.mask = stay
            for s, v in zip(after_args, sent):
                R[s] = v
            inner = after.run(R, g)
            if inner is not None:
                yield from inner
            now = stay.minus(g.dead) if g.killed else stay
            g.mask = now
            fresh = [R[s] for s in after.out]
            vals = [merge(stay, n, o, f) for n, o, f in zip(fresh, vals, before_leaves)]
        if exits.polls:
            g.advance()
        g.restore(m)
        for d, v in zip(outs, result):
            R[d] = v

    c.emit_control(op, run, before.blocking or after.blocking)


def compile_execute_region(c: FnCompiler, op: Operation) -> None:
    """Compile scf.execute_region, which runs its region once."""
    body = compile_region(c, op.regions[0])
    outs = c.flat_defines(op.results)

    def run(R: Regs, g: Group) -> Gen:
        inner = body.run(R, g)
        if inner is not None:
            yield from inner
        for d, s in zip(outs, body.out):
            R[d] = R[s]

    c.emit_control(op, run, body.blocking)


def compile_index_switch(c: FnCompiler, op: Operation) -> None:
    """Compile scf.index_switch: the default region is first, followed by one region per case."""
    flag = c.use(op.operands[0])
    cases = [int(v) for v in attr_of(op, "cases").get_values()]  # type: ignore[union-attr]
    regions = [compile_region(c, r) for r in op.regions]
    outs = c.flat_defines(op.results)
    leaves = tuple(c.leaf_of(s) for s in outs)

    def run(R: Regs, g: Group) -> Gen:
        v = R[flag]
        if v is POISON:
            raise Fault("poison", "switch on poison (an undefined value)")
        m = rest = g.mask
        result: list[Value] = [POISON] * len(outs)
        for value, region in [*zip(cases, regions[1:]), (None, regions[0])]:
            if value is None:
                here = rest
            else:
                hit = np.asarray(v == value)
                if hit.ndim:
                    here, rest = rest.split(hit)
                elif hit:
                    here, rest = rest, Mask(rest.lanes, np.zeros(rest.lanes, np.bool_), 0)
                else:
                    continue
            if here.n == 0:
                continue
            g.restore(here)
            inner = region.run(R, g)
            if inner is not None:
                yield from inner
            result = [merge(here, R[s], o, f) for s, o, f in zip(region.out, result, leaves)]
            if rest.n == 0:
                break
        g.restore(m)
        for d, x in zip(outs, result):
            R[d] = x

    c.emit_control(op, run, any(r.blocking for r in regions))


def compile_nothing(c: FnCompiler, op: Operation) -> None:
    """Compile an op without effect."""
    c.emit(op, _nothing, pure=False)


def _nothing(R: Regs, g: Group) -> None:
    return None
