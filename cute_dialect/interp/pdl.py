"""Programmatic dependent launch: what a kernel may touch before `griddepcontrol.wait`.

A kernel that contains `griddepcontrol.wait`, or is launched with `cute.pdl`, is taken as one that is launched while the
grids before it still run.  What
those write is there, and what they read may be overwritten, only for who has waited, and for who is ordered after one
that has.  That holds for the memory of every argument but those marked `cute.independent`: what no grid before writes,
nor reads where the kernel writes it, such as weights, may be touched at once.

Source: PTX ISA 9.0, 9.7.13 "griddepcontrol": `.wait` waits until all prerequisite grids in flight have completed and
their memory operations are performed and made visible to the current grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.arguments import Argument, Pointer
from cute_dialect.interp.clocks import MEMORY
from cute_dialect.interp.errors import Fault, attr_of
from cute_dialect.interp.tensor_map import TensorMap

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.group import Group
    from cute_dialect.interp.memory import Buffer, GlobalMemory
    from cute_dialect.interp.program import Function
    from cute_dialect.interp.values import Array

WAIT = "griddepcontrol.wait"
MARK = "cute.independent"


class PrecedingGrids:
    """The grids that a launch depends on. `buffers`: ids of those that they may touch."""

    def __init__(self, buffers: set[int]) -> None:
        self._buffers = buffers

    @staticmethod
    def of(
        fn: Function, func: Operation, args: Sequence[Argument], memory: GlobalMemory, dependent: bool
    ) -> PrecedingGrids | None:
        """Return those of a kernel; None when it is not launched as a `dependent` one, nor waits for any."""
        if not dependent and not _waits(fn):
            return None
        marked = [MARK in getattr(a, "data", ()) for a in getattr(attr_of(func, "arg_attrs"), "data", ())]
        shared = [x for i, a in enumerate(args) if not any(marked[i : i + 1]) for x in _arrays(a)]
        return PrecedingGrids({id(b) for b in memory.buffers if any(b.source is x for x in shared)})

    def waited(self, g: Group) -> None:
        """Note that the active lanes have waited."""
        g.clocks.learn(g, g.mask.idx.tolist(), _actor(g), 1)

    def access(self, g: Group, buf: Buffer, offset: int, lanes: Array, verb: str) -> None:
        """Note that lanes touch a buffer, first at `offset`. Raises Fault when one of them may not yet."""
        if id(buf) not in self._buffers:
            return
        known = g.clocks.known(MEMORY, np.full((len(lanes), 1), _actor(g)), lanes)[:, 0]
        if not known.all():
            raise Fault(
                "race",
                f"{verb} of {buf.place(offset)} before {WAIT}: a grid that this one depends on may still use it; "
                f"expected {WAIT}, or {{{MARK}}} on the argument when no such grid touches it",
                int(lanes[int(np.flatnonzero(known == 0)[0])]),
            )


def _actor(g: Group) -> int:
    return g.clocks.cluster.actor("grids", 0, "grids that this one depends on")


def _waits(fn: Function) -> bool:
    return WAIT in fn.needs_clocks or any(_waits(f) for f in fn.callees)


def _arrays(arg: Argument) -> Iterator[object]:
    """Return the arrays behind an argument."""
    if isinstance(arg, tuple):
        for part in arg:
            yield from _arrays(part)
    pointer = arg.pointer if isinstance(arg, TensorMap) else arg
    if isinstance(pointer, Pointer):
        yield pointer.buffer


__all__ = ["WAIT", "PrecedingGrids"]
