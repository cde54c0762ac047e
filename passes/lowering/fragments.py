"""Register tensors as SSA values.

A ``cute.memref.alloca`` becomes a *fragment* with one cell per element; a cell is the current SSA value of its element.
Loads and stores at known positions read and replace cells without emitting ops.  At control-flow joins, cells that
differ become results of the ``scf`` op.  A fragment indexed by a run-time value cannot live in registers.
:class:`NeedsMemory` names it, and the function is lowered again with that fragment in local memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerType, VectorType, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.build import BaseBuilder
from cute_dialect.passes.lowering.types import lowered, vector
from cute_dialect.upstream import llvm


class Lane(NamedTuple):
    """An element of a vector that has not been extracted yet."""

    vector: SSAValue
    number: int


class Member(NamedTuple):
    """An element of a register that an asynchronous instruction writes, not extracted yet.

    ``struct`` is the LLVM struct of registers, or the vector of words that a load of tensor memory returns. ``number``
    is the position of the register in it; ``part`` the position of the element among the ``parts`` elements of the
    register.
    """

    struct: SSAValue
    number: int
    part: int = 0
    parts: int = 1


Cell = SSAValue | Lane | Member | None
"""The content of an element; ``None`` before its first write."""


@dataclass(eq=False)
class Fragment:
    """A register tensor: the op that allocates it, its element type and its number of cells."""

    op: Operation
    element: Attribute
    n: int


class FragmentView(NamedTuple):
    """A pointer into a fragment; ``offset`` is the cell that it points to."""

    fragment: Fragment
    offset: int


class NeedsMemory(Exception):
    """A fragment cannot be kept in registers; ``reason`` is the text of the remark."""

    def __init__(self, op: Operation, reason: str):
        super().__init__(reason)
        self.op = op
        self.reason = reason


@dataclass
class Registers:
    """State of all fragments at one point of the program."""

    cells: dict[Fragment, list[Cell]] = field(default_factory=lambda: {})
    made: dict[SSAValue, Cell] = field(default_factory=lambda: {})
    """Value extracted by a read -> its cell, which counts as unchanged.  All copies share this map."""

    def copy(self) -> Registers:
        """Return an independent copy of the cells."""
        return Registers({f: list(c) for f, c in self.cells.items()}, self.made)

    def read(self, build: BaseBuilder, view: FragmentView, index: int) -> SSAValue:
        """Read the element ``index`` cells after the start of the view."""
        cells = self.cells[view.fragment]
        at = view.offset + index
        cell = cells[at]
        if cell is not None and not isinstance(cell, Lane | Member):
            return cell
        value = self._made(build, view.fragment, cell, at)
        self.made[value] = cell
        cells[at] = value
        return value

    def _made(self, build: BaseBuilder, fragment: Fragment, cell: Lane | Member | None, at: int) -> SSAValue:
        if cell is None:
            return build.unwritten(lowered(fragment.element), fragment.op, [at])
        if isinstance(cell, Lane):
            return build.lane(*cell)
        held = register_of(build, cell)
        element = lowered(fragment.element)
        if cell.parts == 1:
            return bits_as(build, held, element)
        return build.lane(bits_as(build, held, vector(element, cell.parts)), cell.part)

    def write(self, view: FragmentView, index: int, value: Cell) -> None:
        """Replace the element ``index`` cells after the start of the view."""
        self.cells[view.fragment][view.offset + index] = value

    def read_vector(self, build: BaseBuilder, view: FragmentView, indices: list[int]) -> SSAValue:
        """Read elements as a vector; a vector that was written whole is returned unchanged."""
        cells = self.cells[view.fragment]
        chosen = [cells[view.offset + i] for i in indices]
        first = chosen[0]
        if isinstance(first, Lane) and first.number == 0:
            source = first.vector
            t = source.type
            assert isinstance(t, VectorType)
            whole = t.get_shape()[0] == len(indices)
            if whole and all(
                isinstance(c, Lane) and c.vector is source and c.number == i for i, c in enumerate(chosen)
            ):
                return source
        if whole_register(chosen):
            assert isinstance(first, Member)
            element = lowered(view.fragment.element)
            return bits_as(build, register_of(build, first), vector(element, first.parts))
        return build.vector([self.read(build, view, i) for i in indices])


def whole_register(cells: Sequence[Cell]) -> bool:
    """Return True if the cells are exactly the elements (two or more) of one register of a struct."""
    first = cells[0]
    return (
        isinstance(first, Member)
        and first.parts == len(cells) > 1
        and all(c == Member(first.struct, first.number, i, first.parts) for i, c in enumerate(cells))
    )


def register_of(build: BaseBuilder, cell: Member) -> SSAValue:
    """Extract the register of a member at this place; right after the struct, the instruction may still write it."""
    t = cell.struct.type
    if isinstance(t, IntegerType):
        return cell.struct
    if isinstance(t, VectorType):
        return build.once(("lane", cell.struct, cell.number), lambda: _lane(build, cell))
    assert isinstance(t, llvm.LLVMStructType)
    return build.extract_once(cell.struct, (cell.number,), t.types[cell.number])


def _lane(build: BaseBuilder, cell: Member) -> Operation:
    at = build.constant(cell.number, i32)
    return make_op(llvm.OPS["extractelement"], [cell.struct, at], [i32])


def bits_as(build: BaseBuilder, value: SSAValue, t: Attribute) -> SSAValue:
    """Bitcast a value to another type of the same width."""
    if value.type == t:
        return value
    return build.once(("bitcast", value, build.type_key(t)), lambda: make_op(llvm.OPS["bitcast"], [value], [t]))


def changed(before: Registers, after: Registers) -> list[tuple[Fragment, int]]:
    """Return the cells of ``before`` that differ in ``after``, in order."""
    return [
        (f, i)
        for f, cells in before.cells.items()
        for i, (old, new) in enumerate(zip(cells, after.cells[f]))
        if old is not new
        and old != new
        and not (isinstance(new, SSAValue) and new in before.made and before.made[new] == old)
    ]
