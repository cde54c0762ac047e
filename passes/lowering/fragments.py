"""Register tensors as SSA values.

A ``cute.memref.alloca`` becomes a *fragment*: one cell an element, each cell the SSA value it holds now.  Loads and
stores at known positions read and replace cells; they emit nothing.  Where control flow joins, cells that differ
become results of the ``scf`` op.  A fragment that is indexed by a value known only at run time cannot be held so:
:class:`NeedsMemory` names it, and the function is lowered again with that fragment in (local) memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.passes.lowering.build import BaseBuilder


class Lane(NamedTuple):
    """An element of a vector that has not been extracted yet."""

    vector: SSAValue
    number: int


Cell = SSAValue | Lane | None
"""What an element holds; ``None`` before its first write."""


@dataclass(eq=False)
class Fragment:
    """One register tensor: the op that made it, its element type and the number of its cells."""

    op: Operation
    element: Attribute
    n: int


class FragmentView(NamedTuple):
    """A pointer into a fragment: the cell that offset 0 means."""

    fragment: Fragment
    offset: int


class NeedsMemory(Exception):
    """A fragment cannot be kept in registers.  ``reason`` is for the remark."""

    def __init__(self, op: Operation, reason: str):
        super().__init__(reason)
        self.op = op
        self.reason = reason


@dataclass
class Registers:
    """The state of all fragments at one point of the program."""

    cells: dict[Fragment, list[Cell]] = field(default_factory=lambda: {})
    made: dict[SSAValue, Cell] = field(default_factory=lambda: {})
    """What a read materialised, and the cell it stands for: such a cell has not changed.  Shared by all snapshots."""

    def copy(self) -> Registers:
        """A snapshot."""
        return Registers({f: list(c) for f, c in self.cells.items()}, self.made)

    def read(self, build: BaseBuilder, view: FragmentView, index: int) -> SSAValue:
        """The element at ``index`` cells after the view's start."""
        cells = self.cells[view.fragment]
        at = view.offset + index
        cell = cells[at]
        if isinstance(cell, SSAValue):
            return cell
        value = build.poison(view.fragment.element) if cell is None else build.lane(*cell)
        self.made[value] = cell
        cells[at] = value
        return value

    def write(self, view: FragmentView, index: int, value: Cell) -> None:
        """Replace the element at ``index`` cells after the view's start."""
        self.cells[view.fragment][view.offset + index] = value

    def read_vector(self, build: BaseBuilder, view: FragmentView, indices: list[int]) -> SSAValue:
        """A vector of elements; a whole vector that was written as one is given back as it is."""
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
        return build.vector([self.read(build, view, i) for i in indices])


def changed(before: Registers, after: Registers) -> list[tuple[Fragment, int]]:
    """The cells of ``before``'s fragments that ``after`` holds otherwise, in order."""
    return [
        (f, i)
        for f, cells in before.cells.items()
        for i, (old, new) in enumerate(zip(cells, after.cells[f]))
        if old != new and not (isinstance(new, SSAValue) and new in before.made and before.made[new] == old)
    ]
