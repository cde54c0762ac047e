"""Accumulators of ``wgmma``: register tensors whose cells are members of one LLVM struct.

A chain of ``wgmma`` passes its struct on without unpacking and repacking it.  :func:`read_unit` returns the struct if
the requested cells are its members in order.  Cells without a value become ``llvm.mlir.undef``.  Any other cells are
packed register by register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.passes.lowering.build import UNWRITTEN, BaseBuilder
from cute_dialect.passes.lowering.fragments import Cell, FragmentView, Member, Registers, bits_as
from cute_dialect.passes.lowering.types import lowered
from cute_dialect.upstream import llvm
from cute_dialect.upstream.llvm_types import LLVMStructType


class Unit(NamedTuple):
    """Cells of a fragment that live in one struct, in register order; each register holds ``parts`` cells."""

    cells: tuple[int, ...]
    parts: int
    type: LLVMStructType


@lru_cache(maxsize=256)
def struct_type(register: Attribute, count: int) -> LLVMStructType:
    """Return the struct type of ``count`` registers."""
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
    assert isinstance(t, LLVMStructType)
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


__all__ = [
    "Unit",
    "accumulator_unit",
    "cells_of",
    "held_units",
    "read_unit",
    "struct_of",
    "struct_type",
    "whole_unit",
    "write_unit",
]
