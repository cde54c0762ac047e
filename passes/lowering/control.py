"""``cute-to-base`` of structured control flow: register tensors cross it as results and loop-carried values.

A loop with static bounds whose body indexes a register tensor by a run-time value is unrolled: the induction variable
is then a constant, and so is every index computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from cute_dialect.algebra.trees import is_static
from cute_dialect.ir.editing import all_ops, make_op
from cute_dialect.memory_types import AtomType, MemRefType, PtrType, element_bits
from cute_dialect.ops.views import InstructionOp
from cute_dialect.passes.lowering.accumulators import (
    Unit,
    accumulator_unit,
    cells_of,
    read_unit,
    struct_type,
    whole_unit,
    write_unit,
)
from cute_dialect.passes.lowering.folding import constant_of
from cute_dialect.passes.lowering.fragments import (
    Cell,
    Fragment,
    FragmentView,
    Member,
    NeedsMemory,
    Registers,
    changed,
)
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


@dataclass
class Writes:
    """The writes of an op with regions to one fragment.

    ``units``: what ``wgmma`` writes, struct by struct.  ``tied``: cells that pass through a fence or a wait.
    ``loose``: something else writes.  ``lanes``: vectors side by side are all that is written loosely, and this many
    elements divide their lengths; 1 if anything else is.
    """

    units: dict[Unit, None] = field(default_factory=lambda: {})
    tied: set[int] = field(default_factory=lambda: set())
    loose: bool = False
    lanes: int = 0

    def structs(self) -> list[Unit]:
        """Return the units if all that is written are structs side by side, else none."""
        cells = [c for unit in self.units for c in unit.cells]
        return [] if self.loose or len(set(cells)) != len(cells) else list(self.units)


_VIEWS = ("cute.get_iter", "cute.make_view", "cute.add_offset", "cute.recast_iter")


def _written_fragments(low: Lowering, op: Operation) -> dict[Fragment, Writes]:
    """Find the live fragments that ``op`` may write: every one whose views reach a store inside."""
    roots: dict[SSAValue, tuple[Fragment, int | None]] = {
        v: (view.fragment, view.offset) for v, view in low.views.items()
    }
    written: dict[Fragment, Writes] = {}

    def writes(value: SSAValue) -> Writes | None:
        root = roots.get(value)
        return None if root is None else written.setdefault(root[0], Writes())

    def loose(value: SSAValue, lanes: int = 1) -> None:
        found = writes(value)
        if found is not None:
            found.loose = True
            found.lanes = gcd(found.lanes, lanes)

    for inner in all_ops(op):
        name = inner.name
        how = inner.WRITES if isinstance(inner, InstructionOp) else "all"
        if name in _VIEWS:
            root = roots.get(inner.operands[0])
            if root is not None:
                roots[inner.results[0]] = (root[0], _offset(inner, root[1]))
        elif name == "cute.memref.store" or how == "first":
            loose(inner.operands[0])
        elif name == "cute.memref.store_vec":
            loose(inner.operands[1], _lanes(inner.operands[1].type))
        elif how == "struct":
            _struct_writes(inner, roots.get(inner.operands[0]), writes(inner.operands[0]))
        elif how == "tied":
            for o in inner.operands:
                root, found = roots.get(o), writes(o)
                if root is None or found is None:
                    continue
                if root[1] is None:
                    found.loose = True
                else:
                    assert isinstance(o.type, MemRefType)
                    found.tied.update(root[1] + c for c in cells_of(o.type))
        elif name.startswith("cute_nvgpu.arch.") and how != "none":
            for o in inner.operands:
                loose(o)
    return {f: written[f] for f in low.registers.cells if f in written}


def _lanes(t: Attribute) -> int:
    """Count the elements of a vector that is stored to a tensor; 1 if they do not lie side by side."""
    assert isinstance(t, MemRefType)
    cells = cells_of(t)
    return len(cells) if cells == tuple(range(len(cells))) else 1


def _offset(op: Operation, start: int | None) -> int | None:
    if op.name == "cute.recast_iter":
        return None
    if op.name != "cute.add_offset" or start is None:
        return start
    t = op.operands[1].type
    assert isinstance(t, IntTupleType)
    return start + t.data if isinstance(t.data, int) else None


def _struct_writes(op: Operation, root: tuple[Fragment, int | None] | None, found: Writes | None) -> None:
    if root is None or found is None:
        return
    atom, t = op.properties["atom"], op.operands[0].type
    assert isinstance(atom, AtomType) and isinstance(t, MemRefType)
    if root[1] is None:
        found.loose = True
    else:
        found.units[accumulator_unit(t, root[1], atom.accumulator_registers())] = None


class Carried(NamedTuple):
    """A part of a fragment that crosses control flow as one value: the struct of a unit, or a single cell."""

    fragment: Fragment
    cells: tuple[int, ...]
    unit: Unit | None = None

    @property
    def type(self) -> Attribute:
        """The type of the value."""
        return self.unit.type if self.unit is not None else lowered(self.fragment.element)

    def read(self, low: Lowering, state: Registers) -> SSAValue:
        """Read the carried value in this state of the registers."""
        view = FragmentView(self.fragment, 0)
        if self.unit is not None:
            return read_unit(low.build, state, view, self.unit)
        return state.read(low.build, view, self.cells[0])

    def write(self, state: Registers, value: SSAValue) -> None:
        """Put a value in its place."""
        if self.unit is not None:
            write_unit(state, FragmentView(self.fragment, 0), self.unit, value)
        else:
            state.cells[self.fragment][self.cells[0]] = value


def _carried(low: Lowering, fragment: Fragment, writes: Writes) -> list[Carried]:
    """List what a loop that writes a fragment so carries of it."""
    structs = writes.structs()
    if not structs and (writes.loose or writes.units):
        packed = None if writes.units or writes.tied else _packed(fragment, writes.lanes)
        if packed is not None:
            return [Carried(fragment, packed.cells, packed)]
        return [Carried(fragment, (i,)) for i in range(fragment.n)]
    mine = {c for unit in structs for c in unit.cells}
    found = [Carried(fragment, unit.cells, unit) for unit in structs]
    rest = sorted(writes.tied - mine)
    return found + _groups(fragment, rest, low.registers.cells[fragment])


def _packed(fragment: Fragment, lanes: int) -> Unit | None:
    """Plan to carry a fragment that is written in vectors of ``lanes`` small elements in one struct of ``i32``.

    One value instead of hundreds: upstream and LLVM take long over wide loops.
    """
    bits = element_bits(fragment.element)
    if bits not in (8, 16) or lanes * bits % 32 or fragment.n * bits % 32:
        return None
    parts = 32 // bits
    return Unit(tuple(range(fragment.n)), parts, struct_type(i32, fragment.n // parts))


def _groups(fragment: Fragment, cells: Sequence[int], held: Sequence[Cell]) -> list[Carried]:
    """Group cells as the structs whose members they are now, and single ones; those without a value are left out."""
    found: list[Carried] = []
    left = dict.fromkeys(cells)
    for c in cells:
        cell = held[c]
        if c not in left or cell is None:
            continue
        unit = whole_unit(held, set(left), cell) if isinstance(cell, Member) else None
        found.append(Carried(fragment, (c,)) if unit is None else Carried(fragment, unit.cells, unit))
        for taken in found[-1].cells:
            del left[taken]
    return found


def _rolled(low: Lowering, op: Operation, initial: list[SSAValue]) -> None:
    carried = [c for f, writes in _written_fragments(low, op).items() for c in _carried(low, f, writes)]
    extra = [c.read(low, low.registers) for c in carried]
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
    for c, value in zip(carried, fresh.args[1 + len(args) :]):
        c.write(low.registers, value)
    inside = _branch(low, body, fresh, carried)
    low.registers = inside
    for c, value in zip(carried, loop.results[len(op.results) :]):
        c.write(low.registers, value)
    for r, v in zip(op.results, loop.results):
        v.name_hint = r.name_hint
        low.values[r] = v


def _branch(low: Lowering, old: Block, new: Block, carried: list[Carried] | None) -> Registers:
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
            extra = [c.read(low, state) for c in carried]
            low.build.add(make_op(scf.YieldOp, [*yielded, *extra]))
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
    carried = _joined(before, states)
    for region, block, state in zip((then_region, else_region), blocks, states):
        with low.build.inside(block):
            own = [low.value(v) for v in _yielded(region)]
            extra = [c.read(low, state) for c in carried]
            if region.blocks or extra:
                low.build.add(make_op(scf.YieldOp, [*own, *extra]))
    keep_else = else_region.blocks or carried
    new = scf.IfOp.create(
        operands=[condition],
        result_types=[*[lowered(t) for t in op.result_types], *[c.type for c in carried]],
        attributes=dict(op.attributes),
        regions=[Region(blocks[0]), Region(blocks[1]) if keep_else else Region()],
    )
    low.build.add(new)
    for r, v in zip(op.results, new.results):
        v.name_hint = r.name_hint
        low.values[r] = v
    for c, value in zip(carried, new.results[len(op.results) :]):
        c.write(low.registers, value)


def _joined(before: Registers, states: Sequence[Registers]) -> list[Carried]:
    """List what of the fragments differs after a branch, as the structs that one of the branches holds it in."""
    cells: dict[Fragment, dict[int, None]] = {}
    for state in states:
        for f, i in changed(before, state):
            cells.setdefault(f, {})[i] = None
    found: list[Carried] = []
    for f, some in cells.items():
        for state in states:
            for c in _groups(f, list(some), state.cells[f]):
                if c.unit is not None:
                    found.append(c)
                    for taken in c.cells:
                        del some[taken]
        found += [Carried(f, (i,)) for i in some]
    return found


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
