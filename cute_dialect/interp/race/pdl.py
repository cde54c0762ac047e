"""Programmatic dependent launch: memory that a kernel may access before `griddepcontrol.wait`.

A kernel that contains `griddepcontrol.wait`, or is launched with `cute.pdl`, is assumed to start while preceding grids
still run. Only a thread that has executed the wait, or is ordered after one that has, may read data written by those
grids. The same holds for overwriting data that they read. Both rules cover the memory of every argument except those
marked `cute.independent`. Mark an argument if no preceding grid writes it, nor reads it where this kernel writes it,
such as weights.

Source: PTX ISA 9.0, 9.7.13 "griddepcontrol": `.wait` waits until all prerequisite grids in flight have completed and
their memory operations are performed and made visible to the current grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import Fault, attr_of
from cute_dialect.interp.memory.arguments import Argument, Pointer
from cute_dialect.interp.memory.tensor_map import TensorMap
from cute_dialect.interp.race.clocks import MEMORY

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.compiler.function_compiler import Function
    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.memory.buffers import Buffer, GlobalMemory
    from cute_dialect.interp.values import Array

WAIT = "griddepcontrol.wait"
MARK = "cute.independent"


class PrecedingGrids:
    """The grids that a launch depends on. `buffers` holds the ids of the buffers that they may access."""

    def __init__(self, buffers: set[int]) -> None:
        self._buffers = buffers

    @staticmethod
    def of(
        fn: Function, func: Operation, args: Sequence[Argument], memory: GlobalMemory, dependent: bool
    ) -> PrecedingGrids | None:
        """Return the preceding grids of a launch. None if it is not `dependent` and the kernel never waits."""
        if not dependent and not _waits(fn):
            return None
        marked = [MARK in getattr(a, "data", ()) for a in getattr(attr_of(func, "arg_attrs"), "data", ())]
        shared = [x for i, a in enumerate(args) if not any(marked[i : i + 1]) for x in _arrays(a)]
        return PrecedingGrids({id(b) for b in memory.buffers if any(b.source is x for x in shared)})

    def waited(self, g: Group) -> None:
        """Record that the active lanes have waited."""
        g.clocks.learn(g, g.mask.idx.tolist(), _actor(g), 1)

    def access(self, g: Group, buf: Buffer, offset: int, lanes: Array, verb: str) -> None:
        """Check that lanes may access a buffer, first at `offset`. Raises Fault if one of them has not waited."""
        if id(buf) not in self._buffers:
            return
        known = g.clocks.known(MEMORY, np.full((len(lanes), 1), _actor(g)), lanes)[:, 0]
        if not known.all():
            raise Fault(
                "race",
                f"{verb} of {buf.place(offset)} before {WAIT}: a grid that this one depends on may still use it; "
                f"add {WAIT}, or mark the argument {{{MARK}}} if no such grid accesses it",
                int(lanes[int(np.flatnonzero(known == 0)[0])]),
            )


def _actor(g: Group) -> int:
    return g.clocks.cluster.actor("grids", 0, "grids that this one depends on")


def _waits(fn: Function) -> bool:
    return WAIT in fn.needs_clocks or any(_waits(f) for f in fn.callees)


def _arrays(arg: Argument) -> Iterator[object]:
    """Yield the arrays of an argument."""
    if isinstance(arg, tuple):
        for part in arg:
            yield from _arrays(part)
    pointer = arg.pointer if isinstance(arg, TensorMap) else arg
    if isinstance(pointer, Pointer):
        yield pointer.buffer


__all__ = ["WAIT", "PrecedingGrids"]
