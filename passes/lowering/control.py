"""``cute-to-base`` for structured control flow: register tensors become results and loop-carried values.

A loop with static bounds whose body indexes a register tensor by a run-time value is unrolled, so that the induction
variable and the indices computed from it are constants.

``cute.unroll = n : i32`` on a loop puts ``n`` copies of its body in one iteration; a loop of at most ``n`` iterations
is unrolled fully.  The main loop runs up to ``middle``, and a second loop runs the remainder::

    scf.for %i = %a to %b step %s {cute.unroll = 4 : i32}

    count  = a < b ? (b - a - 1) / s + 1 : 0            // iterations; unsigned: b - a may not fit in the signed type
    rest   = count % 4
    middle = rest == 0 ? b : a + (count - rest) * s     // b first: a + count * s may wrap
    scf.for %i = %a to %middle step 4 * %s { copies for %i, %i + %s, %i + 2 * %s, %i + 3 * %s }
    scf.for %i = %middle to %b step %s { one copy }

If ``4 * %s`` does not fit in the type, the second loop runs all iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i1, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cute_dialect.algebra.trees import is_static
from cute_dialect.dialect.memory_types import MemRefType, PtrType, integer_width
from cute_dialect.dialect.types import CoordType, IntTupleType
from cute_dialect.ir.editing import all_ops, make_op
from cute_dialect.passes.base import PassError
from cute_dialect.passes.emitter import NSW
from cute_dialect.passes.lowering.build import BaseBuilder
from cute_dialect.passes.lowering.carried import Carried, carried_parts, joined_parts
from cute_dialect.passes.lowering.folding import constant_of
from cute_dialect.passes.lowering.fragments import Registers
from cute_dialect.passes.lowering.types import lowered
from cute_dialect.passes.lowering.walk import Handler, Lowering

# ------------------------------------------------------------------------------------------------------------ unrolling


UNROLL = "cute.unroll"
MAX_UNROLL = 4096
"""Limit on the copies of a loop body, including enclosing unrolled loops, even if it indexes a register tensor."""


def requested_copies(op: Operation) -> int:
    """Return the number of copies that ``cute.unroll`` on a loop requests; 1 without it.

    Raises PassError for an invalid number and for a loop other than ``scf.for``.
    """
    attribute = op.attributes.get(UNROLL)
    if attribute is None:
        return 1
    if op.name != "scf.for":
        raise PassError(f"'{UNROLL}' applies to scf.for only, found it on '{op.name}'", op)
    copies = cast("IntegerAttr", attribute) if isinstance(attribute, IntegerAttr) else None
    if copies is None or copies.type != i32:
        raise PassError(f"'{UNROLL}' must be an integer of type i32, got {attribute}", op)
    if not 0 <= copies.value.data <= MAX_UNROLL:
        raise PassError(f"'{UNROLL}' must be from 0 to {MAX_UNROLL}, got {copies.value.data}", op)
    return max(1, copies.value.data)


@dataclass(frozen=True)
class Iterations:
    """Iterations of a loop with constant bounds: their number, and the values of the induction variable."""

    count: int
    start: int
    step: int

    def index(self, i: int) -> int:
        """Return the induction variable of iteration ``i``."""
        return self.start + i * self.step


def static_iterations(op: Operation, bounds: Sequence[SSAValue]) -> Iterations | None:
    """Return the iterations of a loop if its lowered bounds are constants and the step is positive, otherwise None."""
    lower, upper, step = (constant_of(v) for v in bounds)
    if lower is None or upper is None or step is None or step <= 0:
        return None
    if _is_unsigned(op):
        full = 2 * _largest(bounds[0].type) + 1
        lower, upper = lower & full, upper & full
    return Iterations(max(0, -((lower - upper) // step)), lower, step)


def split(
    build: BaseBuilder, op: Operation, bounds: Sequence[SSAValue], iterations: Iterations | None, copies: int
) -> tuple[SSAValue, SSAValue] | None:
    """Emit the end and the step of the main loop; ``None`` if the step does not fit in the type."""
    lower, upper, step = bounds
    t = lower.type
    by, largest = constant_of(step), _largest(t)
    if copies > largest or (by is not None and not 0 < by * copies <= largest):
        return None
    if iterations is not None:
        rest = iterations.count % copies
        middle = build.constant(iterations.index(iterations.count - rest), t) if rest else upper
        return middle, build.constant(iterations.step * copies, t)

    def emit(op_class: type[Operation], *operands: SSAValue) -> SSAValue:
        return build.emit(make_op(op_class, operands, [t]))

    def number(n: int) -> SSAValue:
        return build.constant(n, t)

    def choose(condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return build.emit(make_op(arith.SelectOp, [condition, a, b], [t]))

    def compare(a: SSAValue, b: SSAValue, predicate: str) -> SSAValue:
        made = build.emit(arith.CmpiOp(a, b, predicate))
        assert made.type == i1
        return made

    count = emit(arith.SubiOp, upper, lower)
    if by != 1:
        divisor = step if by is not None else emit(arith.MaxUIOp, step, number(1))  # a step of 0 must not trap here
        count = emit(arith.DivUIOp, emit(arith.SubiOp, count, number(1)), divisor)
        count = emit(arith.AddiOp, count, number(1))
    count = choose(compare(lower, upper, "ult" if _is_unsigned(op) else "slt"), count, number(0))
    rest = emit(arith.RemUIOp, count, number(copies))
    if by is not None:
        wide = number(by * copies)
    else:
        fits = compare(step, number(largest // copies), "ule")
        rest = choose(fits, rest, count)
        wide = choose(fits, emit(arith.MuliOp, step, number(copies)), step)
    if by == 1:
        return emit(arith.SubiOp, upper, rest), wide
    middle = emit(arith.AddiOp, lower, emit(arith.MuliOp, emit(arith.SubiOp, count, rest), step))
    return choose(compare(rest, number(0), "eq"), upper, middle), wide


def next_index(build: BaseBuilder, op: Operation, first: SSAValue, last: SSAValue, step: SSAValue, k: int) -> SSAValue:
    """Emit the induction variable of copy ``k``; ``first`` is that of copy 0, ``last`` that of copy ``k - 1``."""
    by = constant_of(step)
    operands = [last, step] if by is None else [first, build.constant(k * by, first.type)]
    return build.emit(make_op(arith.AddiOp, operands, [first.type], {} if _is_unsigned(op) else NSW))


def _is_unsigned(op: Operation) -> bool:
    return "unsignedCmp" in op.properties


def _largest(t: Attribute) -> int:
    """Return the largest signed value of an integer type or ``index``."""
    bits = 64 if isinstance(t, IndexType) else integer_width(t) or 64
    return (1 << (bits - 1)) - 1


# --------------------------------------------------------------------------------------------------------- control flow


def _is_per_thread(value: SSAValue) -> bool:
    t = value.type
    if isinstance(t, PtrType):
        return t.data.space.per_thread
    return isinstance(t, MemRefType) and t.space.per_thread


def indexes_registers(loop: Operation) -> bool:
    """Return True if a register tensor is indexed by a value that changes between iterations of ``loop``."""
    changing: set[SSAValue] = set(loop.regions[0].block.args)
    for op in all_ops(loop):
        if op is loop or changing.isdisjoint(op.operands):
            continue
        changing.update(op.results)
        for region in op.regions:
            for block in region.blocks:
                changing.update(block.args)
        if op.name in ("cute.memref.load", "cute.memref.store", "cute.add_offset") and _is_per_thread(op.operands[0]):
            t = op.operands[1].type
            assert isinstance(t, CoordType | IntTupleType)
            if op.operands[1] in changing and not is_static(t.data):
                return True
    return False


def _scf_for(low: Lowering, op: Operation) -> None:
    bounds = [low.value(v) for v in op.operands[:3]]
    carried = [low.value(v) for v in op.operands[3:]]
    asked, iterations, around = requested_copies(op), static_iterations(op, bounds), low.copies
    whole = iterations is not None and 1 < asked >= iterations.count
    copies = around * (iterations.count if whole and iterations is not None else asked)
    if copies > MAX_UNROLL:
        raise PassError(
            f"'{UNROLL}' = {asked} gives {copies} copies of a loop's body, including the loops around it; at most "
            f"{MAX_UNROLL} are allowed: use a smaller factor",
            op,
        )
    if (
        iterations is not None
        and (whole or (low.registers.cells and indexes_registers(op)))
        and around * iterations.count <= MAX_UNROLL
    ):
        low.copies = around * max(1, iterations.count)
        carried = _unroll(low, op, iterations, carried)
    elif asked > 1:
        low.copies = around * (asked + 1)
        carried = _partly_unrolled(low, op, bounds, carried, iterations, asked)
    else:
        carried = _rolled(low, op, bounds, carried)
    low.copies = around
    low.values.update(zip(op.results, carried))


def _iteration(low: Lowering, op: Operation, index: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
    """Lower a copy of a loop's body without its terminator, and return the values that it yields."""
    iv, *args = op.regions[0].block.args
    low.values[iv] = index
    low.values.update(zip(args, carried))
    yielded: list[SSAValue] = []
    for inner in op.regions[0].block.ops:
        if inner.name == "scf.yield":
            yielded = [low.value(v) for v in inner.operands]
        else:
            low.lower(inner)
    low.build.location = op.location
    return yielded


def _unroll(low: Lowering, op: Operation, iterations: Iterations, carried: list[SSAValue]) -> list[SSAValue]:
    low.unrolling += 1
    for i in range(iterations.count):
        carried = _iteration(low, op, low.build.constant(iterations.index(i), op.operands[0].type), carried)
    low.unrolling -= 1
    return carried


def _partly_unrolled(
    low: Lowering,
    op: Operation,
    bounds: list[SSAValue],
    carried: list[SSAValue],
    iterations: Iterations | None,
    copies: int,
) -> list[SSAValue]:
    """Lower a loop to a loop with several copies of its body, and another for the remainder if there may be one."""
    halves = split(low.build, op, bounds, iterations, copies)
    if halves is None:
        return _rolled(low, op, bounds, carried)
    middle, step = halves
    carried = _rolled(low, op, [bounds[0], middle, step], carried, copies)
    if iterations is not None and iterations.count % copies == 0:
        return carried
    return _rolled(low, op, [middle, *bounds[1:]], carried)


def _rolled(
    low: Lowering, op: Operation, bounds: Sequence[SSAValue], carried: Sequence[SSAValue], copies: int = 1
) -> list[SSAValue]:
    """Lower a loop as a loop, with consecutive copies of its body, and return its results."""
    parts = carried_parts(low, op)
    extra = [c.read(low, low.registers) for c in parts]
    body = op.regions[0].block
    types = [lowered(t) for t in op.result_types]
    fresh = _arguments(low, body, extra)
    loop = type(op).create(
        operands=[*bounds, *carried, *extra],
        result_types=[*types, *[v.type for v in extra]],
        attributes={name: a for name, a in op.attributes.items() if name != UNROLL},
        properties=dict(op.properties),
        regions=[Region(fresh)],
    )
    low.build.add(loop)

    def all_but_the_last() -> None:
        index, step = fresh.args[0], low.value(op.operands[2])
        for k in range(1, copies):
            yielded = _iteration(low, op, low.values[body.args[0]], [low.values[a] for a in body.args[1:]])
            index = next_index(low.build, op, fresh.args[0], index, step, k)
            low.values.update(zip(body.args, (index, *yielded)))

    _branch(low, body, fresh, parts, fresh.args[len(body.args) :], all_but_the_last)
    return _results(low, op, loop, parts)


def _arguments(low: Lowering, old: Block, extra: Sequence[SSAValue]) -> Block:
    """Create a block with the lowered arguments of ``old``, and further ones for values like ``extra``."""
    fresh = Block(arg_types=[*[lowered(a.type) for a in old.args], *[v.type for v in extra]])
    for a, b in zip(old.args, fresh.args):
        b.name_hint = a.name_hint
        low.values[a] = b
    return fresh


def _results(low: Lowering, op: Operation, new: Operation, parts: Sequence[Carried]) -> list[SSAValue]:
    """Map the results of ``op`` to those of ``new`` and return them; further results update the parts."""
    for r, v in zip(op.results, new.results):
        v.name_hint = r.name_hint
        low.values[r] = v
    for c, value in zip(parts, new.results[len(op.results) :]):
        c.write(low.registers, value)
    return list(new.results[: len(op.results)])


def _branch(
    low: Lowering,
    old: Block,
    new: Block,
    parts: list[Carried] | None,
    held: Sequence[SSAValue] = (),
    before: Callable[[], None] = lambda: None,
) -> Registers:
    """Lower a block with a copy of the register state, and return the state at its end.

    Args:
        parts: passed on after the operands of the block's own terminator; ``None`` omits the terminator.
        held: values of the parts at the start, if they differ from the current state.
        before: emits ops at the start of the block.
    """
    saved = low.registers
    outer = set(saved.cells)
    state = low.registers = saved.copy()
    for c, value in zip(parts or (), held):
        c.write(state, value)
    terminator = old.last_op
    with low.build.inside(new):
        before()
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
    """Lower an op that runs one of its regions; fragment parts that differ after the regions become results."""
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
    """Lower ``scf.while``, whose first region may write fragments, too.

    Both regions carry the parts, and the final values are those that the first region passes on.
    """
    requested_copies(op)
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


TO_BASE: Mapping[str, Handler] = {
    "scf.for": _scf_for,
    "scf.if": _scf_if,
    "scf.while": _scf_while,
    "scf.index_switch": _region_op,
    "scf.execute_region": _region_op,
}
