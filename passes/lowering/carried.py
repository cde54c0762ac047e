"""Values that carry register tensors across control flow: one per part that an op with regions writes.

A part is the struct of accumulators that ``wgmma`` writes, several small elements packed in ``i32`` registers, or one
cell.  ``scf.for`` and ``scf.while`` take the parts as arguments and return them as results; ``scf.if`` returns those
that differ after its branches.

**Parts.** A chain of ``wgmma`` passes its struct on without unpacking and repacking it.  :func:`read_unit` returns the
struct if the requested cells are its members in order.  Cells without a value become ``llvm.mlir.undef``.  Any other
cells are packed register by register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.dialect.atom_types import AtomType
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.dialect.types import IntTupleType
from cute_dialect.dialect.views import InstructionOp
from cute_dialect.ir.editing import all_ops
from cute_dialect.passes.lowering.build import UNWRITTEN, BaseBuilder
from cute_dialect.passes.lowering.fragments import Cell, Fragment, FragmentView, Member, Registers, bits_as, changed
from cute_dialect.passes.lowering.types import lowered
from cute_dialect.passes.lowering.walk import Lowering
from cute_dialect.upstream import llvm
from cute_dialect.upstream.llvm_types import LLVMStructType


class Unit(NamedTuple):
    """Cells of a fragment that live in one struct, in register order; each register holds ``parts`` cells."""

    cells: tuple[int, ...]
    parts: int
    type: LLVMStructType


@lru_cache(maxsize=256)
def struct_type(register: Attribute, count: int) -> LLVMStructType:
    return LLVMStructType([register] * count)


@lru_cache(maxsize=1024)
def cells_of(t: MemRefType) -> tuple[int, ...]:
    """Return the offsets of the values of a register tensor with a static layout, in elements from its iterator."""
    n = size(t.layout)
    assert isinstance(n, int)
    found: list[int] = []
    for i in range(n):
        at = evaluate(i, t.layout)
        assert isinstance(at, int)
        found.append(at)
    return tuple(found)


def accumulator_unit(t: MemRefType, offset: int, count: int) -> Unit:
    """Return the unit of an accumulator view ``t`` that starts at cell ``offset`` and has ``count`` registers.

    A register that holds several elements is an ``i32``.
    """
    cells = cells_of(t)
    parts = len(cells) // count
    register = lowered(t.element) if parts == 1 else i32
    return Unit(tuple([offset + c for c in cells]), parts, struct_type(register, count))


def struct_of(cells: Sequence[Cell], unit: Unit, made: Mapping[SSAValue, Cell]) -> SSAValue | None:
    """Return the struct whose members are the cells of a unit, in order; ``None`` for any other cells.

    ``made`` maps values that were extracted for reads to their cells.
    """
    first = _member(cells[unit.cells[0]], made)
    if not isinstance(first, Member) or first.struct.type != unit.type:
        return None
    for i, c in enumerate(unit.cells):
        cell = _member(cells[c], made)
        if not isinstance(cell, Member) or cell != Member(first.struct, i // unit.parts, i % unit.parts, unit.parts):
            return None
    return first.struct


def _member(cell: Cell, made: Mapping[SSAValue, Cell]) -> Cell:
    return made.get(cell, cell) if isinstance(cell, SSAValue) else cell


def read_unit(build: BaseBuilder, registers: Registers, view: FragmentView, unit: Unit) -> SSAValue:
    """Return a unit of the view's fragment as a struct; ``unit.cells`` count from the start of the fragment."""
    cells = registers.cells[view.fragment]
    whole = struct_of(cells, unit, registers.made)
    if whole is not None:
        return whole
    undef = llvm.UndefOp(unit.type)
    if any(cells[c] is None for c in unit.cells):
        undef.attributes[UNWRITTEN] = build.unwritten_cells(view.fragment.op, unit.cells[:: unit.parts])
    value = build.emit(undef)
    if all(cells[c] is None for c in unit.cells):
        return value
    start = FragmentView(view.fragment, 0)
    for i, register in enumerate(unit.type.types):
        own = unit.cells[i * unit.parts : (i + 1) * unit.parts]
        if all(cells[c] is None for c in own):
            continue
        one = unit.parts == 1
        held = registers.read(build, start, own[0]) if one else registers.read_vector(build, start, list(own))
        value = build.insert(bits_as(build, held, register), value, (i,))
    return value


def write_unit(registers: Registers, view: FragmentView, unit: Unit, struct: SSAValue) -> None:
    """Set the cells of a unit to the members of a struct."""
    cells = registers.cells[view.fragment]
    for i, c in enumerate(unit.cells):
        cells[c] = Member(struct, i // unit.parts, i % unit.parts, unit.parts)


def held_units(registers: Registers, view: FragmentView, t: MemRefType) -> list[Unit]:
    """Return the units that currently hold the cells of an accumulator tensor, in order.

    Whole structs are kept.  Cells without a value are omitted.  Other values form units of single registers.
    """
    cells = registers.cells[view.fragment]
    wanted = [view.offset + c for c in cells_of(t)]
    found: list[Unit] = []
    seen: set[int] = set()
    loose: list[int] = []
    mine = set(wanted)
    for c in wanted:
        if c in seen or cells[c] is None:
            continue
        cell = cells[c]
        unit = whole_unit(cells, mine, cell) if isinstance(cell, Member) else None
        if unit is None:
            loose.append(c)
        else:
            found.append(unit)
            seen.update(unit.cells)
    return found + _loose_units(t, loose)


def whole_unit(cells: Sequence[Cell], mine: set[int], member: Member) -> Unit | None:
    """Return the struct of ``member`` as a unit; ``None`` unless all its members are among the cells ``mine``."""
    t = member.struct.type
    if not isinstance(t, LLVMStructType):
        return None
    places: dict[int, int] = {}
    for c, cell in enumerate(cells):
        if isinstance(cell, Member) and cell.struct is member.struct and c in mine:
            places[cell.number * cell.parts + cell.part] = c
    n = len(t.types) * member.parts
    if len(places) != n:
        return None
    return Unit(tuple([places[i] for i in range(n)]), member.parts, t)


def _loose_units(t: MemRefType, cells: list[int]) -> list[Unit]:
    if not cells:
        return []
    element = lowered(t.element)
    parts = 2 if str(element) in ("f16", "bf16") and len(cells) % 2 == 0 else 1
    return [Unit(tuple(cells), parts, struct_type(i32 if parts == 2 else element, len(cells) // parts))]


@dataclass
class Writes:
    """The writes of an op with regions to one fragment.

    Args:
        units: structs written by ``wgmma``.
        tied: cells that pass through a fence or a wait.
        loose: another op writes, too.
        lanes: a common divisor of the lengths of contiguous vector stores, if those are the only loose writes;
        otherwise 1.
    """

    units: dict[Unit, None] = field(default_factory=lambda: {})
    tied: set[int] = field(default_factory=lambda: set())
    loose: bool = False
    lanes: int = 0

    def structs(self) -> list[Unit]:
        """Return the units if only disjoint structs are written, otherwise an empty list."""
        cells = [c for unit in self.units for c in unit.cells]
        return [] if self.loose or len(set(cells)) != len(cells) else list(self.units)


_VIEWS = ("cute.get_iter", "cute.make_view", "cute.add_offset", "cute.recast_iter")


def written_fragments(low: Lowering, op: Operation) -> dict[Fragment, Writes]:
    """Return the live fragments that ``op`` may write: those with a view used by a store inside ``op``."""
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
    """Return the length of a vector stored to a tensor; 1 if its elements are not contiguous."""
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
        """Type of the value."""
        return self.unit.type if self.unit is not None else lowered(self.fragment.element)

    def read(self, low: Lowering, state: Registers) -> SSAValue:
        """Read the carried value from the given state of the registers."""
        view = FragmentView(self.fragment, 0)
        if self.unit is not None:
            return read_unit(low.build, state, view, self.unit)
        return state.read(low.build, view, self.cells[0])

    def write(self, state: Registers, value: SSAValue) -> None:
        """Write the carried value to the registers."""
        if self.unit is not None:
            write_unit(state, FragmentView(self.fragment, 0), self.unit, value)
        else:
            state.cells[self.fragment][self.cells[0]] = value


def carried_parts(low: Lowering, loop: Operation) -> list[Carried]:
    """Return the loop-carried parts of the fragments that a loop writes."""
    return [c for f, writes in written_fragments(low, loop).items() for c in _carried(low, f, writes)]


def _carried(low: Lowering, fragment: Fragment, writes: Writes) -> list[Carried]:
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
    """Return the unit that carries a fragment, written in vectors of ``lanes`` small elements, as one ``i32`` struct.

    One carried value instead of hundreds makes upstream MLIR and LLVM faster.  Return None if the elements do not fill
    ``i32`` registers.
    """
    bits = element_bits(fragment.element)
    if bits not in (8, 16) or lanes * bits % 32 or fragment.n * bits % 32:
        return None
    parts = 32 // bits
    return Unit(tuple(range(fragment.n)), parts, struct_type(i32, fragment.n // parts))


def _groups(fragment: Fragment, cells: Sequence[int], held: Sequence[Cell]) -> list[Carried]:
    """Group cells into the structs that hold them and into single cells; cells without a value are omitted."""
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


def joined_parts(before: Registers, states: Sequence[Registers]) -> list[Carried]:
    """Return the parts of fragments that differ after a branch, as the structs that one of the branches holds."""
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
