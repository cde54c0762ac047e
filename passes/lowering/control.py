"""``cute-to-base`` of structured control flow: register tensors cross it as results and loop-carried values.

A loop with static bounds whose body indexes a register tensor by a run-time value is unrolled: the induction variable
is then a constant, and so is every index computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from cute_dialect.algebra.trees import is_static
from cute_dialect.ir.editing import all_ops, make_op
from cute_dialect.memory_types import MemRefType, PtrType
from cute_dialect.passes.lowering.carried import Carried, carried_parts, joined_parts
from cute_dialect.passes.lowering.folding import constant_of
from cute_dialect.passes.lowering.fragments import Registers
from cute_dialect.passes.lowering.types import lowered
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.types import CoordType, IntTupleType

MAX_UNROLL = 4096
"""Loops are not unrolled to more copies of their body than this, the loops around them counted, even if a register
tensor is indexed by them."""


def _is_rmem(value: SSAValue) -> bool:
    t = value.type
    return (isinstance(t, MemRefType) and t.space == "rmem") or (isinstance(t, PtrType) and t.data.space == "rmem")


def indexes_registers(loop: Operation) -> bool:
    """Tell whether a register tensor is indexed by what changes from one iteration of ``loop`` to the next."""
    changing: set[SSAValue] = set(loop.regions[0].block.args)
    for op in all_ops(loop):
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
            copies = low.copies * max(0, -(-(stop - start) // by))
            if copies <= MAX_UNROLL:
                around, low.copies = low.copies, max(1, copies)
                _unroll(low, op, range(start, stop, by), [low.value(v) for v in initial])
                low.copies = around
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


def _rolled(low: Lowering, op: Operation, initial: list[SSAValue]) -> None:
    parts = carried_parts(low, op)
    extra = [c.read(low, low.registers) for c in parts]
    body = op.regions[0].block
    types = [lowered(t) for t in op.result_types]
    fresh = _arguments(low, body, extra)
    loop = type(op).create(
        operands=[low.value(v) for v in (*op.operands[:3], *initial)] + extra,
        result_types=[*types, *[v.type for v in extra]],
        attributes=dict(op.attributes),
        properties=dict(op.properties),
        regions=[Region(fresh)],
    )
    low.build.add(loop)
    _branch(low, body, fresh, parts, fresh.args[len(body.args) :])
    _results(low, op, loop, parts)


def _arguments(low: Lowering, old: Block, extra: Sequence[SSAValue]) -> Block:
    """Make a block with the lowered arguments of ``old``, and more ones for values like ``extra``."""
    fresh = Block(arg_types=[*[lowered(a.type) for a in old.args], *[v.type for v in extra]])
    for a, b in zip(old.args, fresh.args):
        b.name_hint = a.name_hint
        low.values[a] = b
    return fresh


def _results(low: Lowering, op: Operation, new: Operation, parts: Sequence[Carried]) -> None:
    """Take the results of ``new`` for those of ``op``; the rest are what parts of fragments hold now."""
    for r, v in zip(op.results, new.results):
        v.name_hint = r.name_hint
        low.values[r] = v
    for c, value in zip(parts, new.results[len(op.results) :]):
        c.write(low.registers, value)


def _branch(
    low: Lowering, old: Block, new: Block, parts: list[Carried] | None, held: Sequence[SSAValue] = ()
) -> Registers:
    """Lower a block under a snapshot of the registers; give the state at its end.

    ``parts``: what to pass on beside the operands of the block's own terminator; ``None`` leaves out the terminator.
    ``held``: what the parts hold at its start, if they do not hold what they do here.
    """
    saved = low.registers
    outer = set(saved.cells)
    state = low.registers = saved.copy()
    for c, value in zip(parts or (), held):
        c.write(state, value)
    terminator = old.last_op
    with low.build.inside(new):
        for inner in old.ops:
            if inner is terminator and inner.name in _TERMINATORS:
                break
            low.lower(inner)
        state = low.registers
        if parts is not None:
            passed = [low.value(v) for v in terminator.operands] if terminator is not None else []
            extra = [c.read(low, state) for c in parts]
            end = type(terminator) if terminator is not None else scf.YieldOp
            low.build.add(make_op(end, [*passed, *extra]))
    for f in [f for f in state.cells if f not in outer]:
        del state.cells[f]
    low.registers = saved
    return state


_TERMINATORS = ("scf.yield", "scf.condition")


def _scf_if(low: Lowering, op: Operation) -> None:
    condition = low.value(op.operands[0])
    known = constant_of(condition) if low.unrolling else None
    then_region, else_region = op.regions
    if known is not None:
        _inline(low, op, then_region if known & 1 else else_region)
        return
    _alternatives(low, op)


def _alternatives(low: Lowering, op: Operation) -> None:
    """Lower an op of whose regions one runs, once: what they leave in fragments otherwise than it was are results."""
    operands = [low.value(v) for v in op.operands]
    before = low.registers
    blocks: list[Block] = []
    states: list[Registers] = []
    for region in op.regions:
        block = Block()
        state = _branch(low, region.block, block, None) if region.blocks else before.copy()
        blocks.append(block)
        states.append(state)
    carried = joined_parts(before, states)
    for region, block, state in zip(op.regions, blocks, states):
        with low.build.inside(block):
            own = [low.value(v) for v in _yielded(region)]
            extra = [c.read(low, state) for c in carried]
            if region.blocks or extra:
                low.build.add(make_op(scf.YieldOp, [*own, *extra]))
    new = type(op).create(
        operands=operands,
        result_types=[*[lowered(t) for t in op.result_types], *[c.type for c in carried]],
        attributes=dict(op.attributes),
        properties=dict(op.properties),
        regions=[Region(block) if region.blocks or carried else Region() for region, block in zip(op.regions, blocks)],
    )
    low.build.add(new)
    _results(low, op, new, carried)


def _region_op(low: Lowering, op: Operation) -> None:
    """Lower ``scf.index_switch`` and ``scf.execute_region``."""
    if all(len(region.blocks) == 1 for region in op.regions):
        _alternatives(low, op)
    else:
        low.clone(op)


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
    """Lower a loop whose first region may write fragments, too: both regions take them, and what the first one passes
    on is what is left in the end."""
    parts = carried_parts(low, op)
    extra = [c.read(low, low.registers) for c in parts]
    before, after = (region.block for region in op.regions)
    first, second = _arguments(low, before, extra), _arguments(low, after, extra)
    loop = type(op).create(
        operands=[low.value(v) for v in op.operands] + extra,
        result_types=[*[lowered(t) for t in op.result_types], *[v.type for v in extra]],
        attributes=dict(op.attributes),
        properties=dict(op.properties),
        regions=[Region(first), Region(second)],
    )
    low.build.add(loop)
    for old, new in ((before, first), (after, second)):
        _branch(low, old, new, parts, new.args[len(old.args) :])
    _results(low, op, loop, parts)


HANDLERS: Mapping[str, Handler] = {
    "scf.for": _scf_for,
    "scf.if": _scf_if,
    "scf.while": _scf_while,
    "scf.index_switch": _region_op,
    "scf.execute_region": _region_op,
}
