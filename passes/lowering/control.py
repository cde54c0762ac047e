"""``cute-to-base`` of structured control flow: register tensors cross it as results and loop-carried values.

A loop with static bounds whose body indexes a register tensor by a run-time value is unrolled: the induction variable
is then a constant, and so is every index computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from cute_dialect.algebra.int_tuple import is_static
from cute_dialect.memory_types import MemRefType, PtrType
from cute_dialect.passes.lowering.folding import constant_of
from cute_dialect.passes.lowering.fragments import Fragment, FragmentView, NeedsMemory, Registers, changed
from cute_dialect.passes.lowering.types import lowered
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.types import CoordType, IntTupleType

MAX_UNROLL = 4096
"""Trip counts above this are not unrolled, even if a register tensor is indexed by the loop."""


def _is_rmem(value: SSAValue) -> bool:
    t = value.type
    return (isinstance(t, MemRefType) and t.space == "rmem") or (isinstance(t, PtrType) and t.data.space == "rmem")


def indexes_registers(loop: Operation) -> bool:
    """Whether a register tensor is indexed by what changes from one iteration of ``loop`` to the next."""
    changing: set[SSAValue] = set(loop.regions[0].block.args)
    for op in loop.walk():
        if op is loop or changing.isdisjoint(op.operands):
            continue
        changing.update(op.results)
        for region in op.regions:
            for block in region.blocks:
                changing.update(block.args)
        if op.name in ("cute.memref.load", "cute.memref.store", "cute.add_offset") and _is_rmem(op.operands[0]):
            t = op.operands[1].type
            assert isinstance(t, CoordType | IntTupleType)
            if op.operands[1] in changing and not is_static(t.data):
                return True
    return False


def _scf_for(low: Lowering, op: Operation) -> None:
    lower, upper, step, *initial = op.operands
    bounds = [constant_of(low.value(v)) for v in (lower, upper, step)]
    if low.registers.cells and indexes_registers(op):
        start, stop, by = bounds
        if start is not None and stop is not None and by is not None and by > 0:
            trips = range(start, stop, by)
            if len(trips) <= MAX_UNROLL:
                _unroll(low, op, trips, [low.value(v) for v in initial])
                return
    _rolled(low, op, initial)


def _unroll(low: Lowering, op: Operation, trips: range, carried: list[SSAValue]) -> None:
    body = op.regions[0].block
    location = op.location
    low.unrolling += 1
    for i in trips:
        low.build.location = location
        iv, *args = body.args
        low.values[iv] = low.build.constant(i, iv.type)
        for a, v in zip(args, carried):
            low.values[a] = v
        for inner in body.ops:
            if inner.name == "scf.yield":
                carried = [low.value(v) for v in inner.operands]
            else:
                low.lower(inner)
    low.unrolling -= 1
    for r, v in zip(op.results, carried):
        low.values[r] = v


def _written_fragments(low: Lowering, op: Operation) -> list[Fragment]:
    """The live fragments that ``op`` may write: every one whose views reach a store inside."""
    roots: dict[SSAValue, Fragment] = {v: view.fragment for v, view in low.views.items()}
    written: dict[Fragment, None] = {}
    for inner in op.walk():
        if inner.name in ("cute.get_iter", "cute.make_view", "cute.add_offset", "cute.recast_iter"):
            root = roots.get(inner.operands[0])
            if root is not None:
                roots[inner.results[0]] = root
        elif inner.name == "cute.memref.store" and inner.operands[0] in roots:
            written[roots[inner.operands[0]]] = None
        elif inner.name == "cute.memref.store_vec" and inner.operands[1] in roots:
            written[roots[inner.operands[1]]] = None
        elif inner.name.startswith("cute_nvgpu.arch."):
            for o in inner.operands:
                if o in roots:
                    written[roots[o]] = None
    return [f for f in low.registers.cells if f in written]


def _rolled(low: Lowering, op: Operation, initial: list[SSAValue]) -> None:
    fragments = _written_fragments(low, op)
    carried = [(f, i) for f in fragments for i in range(f.n)]
    extra = [low.registers.read(low.build, FragmentView(f, 0), i) for f, i in carried]
    body = op.regions[0].block
    iv, *args = body.args
    types = [lowered(t) for t in op.result_types]
    fresh = Block(arg_types=[lowered(iv.type), *types, *[v.type for v in extra]])
    for old, new in zip(body.args, fresh.args):
        new.name_hint = old.name_hint
        low.values[old] = new
    loop = type(op).create(
        operands=[low.value(v) for v in (*op.operands[:3], *initial)] + extra,
        result_types=[*types, *[v.type for v in extra]],
        attributes=dict(op.attributes),
        properties=dict(op.properties),
        regions=[Region(fresh)],
    )
    low.build.add(loop)
    for (f, i), value in zip(carried, fresh.args[1 + len(args) :]):
        low.registers.cells[f][i] = value
    inside = _branch(low, body, fresh, carried)
    low.registers = inside
    for (f, i), value in zip(carried, loop.results[len(op.results) :]):
        low.registers.cells[f][i] = value
    for r, v in zip(op.results, loop.results):
        v.name_hint = r.name_hint
        low.values[r] = v


def _branch(low: Lowering, old: Block, new: Block, carried: list[tuple[Fragment, int]] | None) -> Registers:
    """Lower a block under a snapshot of the registers; give the state at its end.

    ``carried``: cells to yield beside the block's own yield; ``None`` leaves out the terminator.
    """
    saved = low.registers
    outer = set(saved.cells)
    state = low.registers = saved.copy()
    terminator = old.last_op
    with low.build.inside(new):
        for inner in old.ops:
            if inner is terminator and inner.name == "scf.yield":
                break
            low.lower(inner)
        state = low.registers
        if carried is not None:
            yielded = [low.value(v) for v in terminator.operands] if terminator is not None else []
            extra = [state.read(low.build, FragmentView(f, 0), i) for f, i in carried]
            low.build.add(scf.YieldOp(*yielded, *extra))
    for f in [f for f in state.cells if f not in outer]:
        del state.cells[f]
    low.registers = saved
    return state


def _scf_if(low: Lowering, op: Operation) -> None:
    condition = low.value(op.operands[0])
    known = constant_of(condition) if low.unrolling else None
    then_region, else_region = op.regions
    if known is not None:
        _inline(low, op, then_region if known & 1 else else_region)
        return
    before = low.registers
    blocks: list[Block] = []
    states: list[Registers] = []
    for region in (then_region, else_region):
        block = Block()
        state = _branch(low, region.block, block, None) if region.blocks else before.copy()
        blocks.append(block)
        states.append(state)
    cells = list(dict.fromkeys([*changed(before, states[0]), *changed(before, states[1])]))
    for region, block, state in zip((then_region, else_region), blocks, states):
        with low.build.inside(block):
            own = [low.value(v) for v in _yielded(region)]
            extra = [state.read(low.build, FragmentView(f, 0), i) for f, i in cells]
            if region.blocks or extra:
                low.build.add(scf.YieldOp(*own, *extra))
    keep_else = else_region.blocks or cells
    new = scf.IfOp.create(
        operands=[condition],
        result_types=[*[lowered(t) for t in op.result_types], *[f.element for f, _ in cells]],
        attributes=dict(op.attributes),
        regions=[Region(blocks[0]), Region(blocks[1]) if keep_else else Region()],
    )
    low.build.add(new)
    for r, v in zip(op.results, new.results):
        v.name_hint = r.name_hint
        low.values[r] = v
    for (f, i), value in zip(cells, new.results[len(op.results) :]):
        low.registers.cells[f][i] = value


def _yielded(region: Region) -> tuple[SSAValue, ...]:
    last = region.block.last_op if region.blocks else None
    return tuple(last.operands) if last is not None and last.name == "scf.yield" else ()


def _inline(low: Lowering, op: Operation, region: Region) -> None:
    if not region.blocks:
        return
    for inner in region.block.ops:
        if inner.name == "scf.yield":
            for r, v in zip(op.results, inner.operands):
                low.values[r] = low.value(v)
        else:
            low.lower(inner)


def _scf_while(low: Lowering, op: Operation) -> None:
    # The two regions of a while loop see different iterations: fragments that it writes go to memory.
    for fragment in _written_fragments(low, op):
        raise NeedsMemory(fragment.op, "it is written inside an scf.while loop")
    low.clone(op)


HANDLERS: Mapping[str, Handler] = {"scf.for": _scf_for, "scf.if": _scf_if, "scf.while": _scf_while}
