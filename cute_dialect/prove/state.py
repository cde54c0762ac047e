"""The state of a block in the protocol prover: warps, barriers, copies in flight, facts and decisions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np
from xdsl.ir import Block, Operation

from cute_dialect.prove.decisions import Interval
from cute_dialect.prove.facts import Facts
from cute_dialect.prove.program import Code
from cute_dialect.prove.values import Base, Guard, Linear, Value

ALL_LANES = (1 << 32) - 1
LOOPS = ("scf.for", "scf.while")


_LEAVES = (
    "nvvm.cluster.arrive",
    "nvvm.cluster.arrive.relaxed",
    "nvvm.cluster.wait",
    "scf.yield",
    "llvm.return",
    "gpu.return",
    "func.return",
)
"""The ops at the end of a kernel that do not depend on the tile."""


@dataclass(slots=True)
class Frame:
    """A block of ops that a warp executes, and the position in it.

    Attributes:
        op: The scf.if, scf.for or scf.while, None for the body of the kernel.
        lanes: Mask of the lanes that execute the block.
        loop: Base of a loop of unknown length.
        static: Base of a loop whose length is a symbol with a known value.
        at: Iterations of the loop that have ended.
        position: Index of the iteration in a loop of unknown length, in units that all roles share.
        bounds: Lower bound, upper bound and step.
        undecided: True if the loop has to decide whether it goes on.
        partial: 1 or 2 if only some lanes have entered the first or second block of an scf.if, 3 if the condition is
            not known.
        entered: Lanes that have entered a loop, some of which may have left it.
        may_be: True if the block is executed under a condition that is not known.
        guard: The condition, if it compares lanes with sizes: the lanes execute the block exactly if it holds.
    """

    code: Code
    op: Operation | None
    lanes: int
    index: int = 0
    loop: Base | None = None
    static: Base | None = None
    at: int = 0
    position: int = 0
    bounds: tuple[Value, Value, Value] | None = None
    undecided: bool = False
    partial: int = 0
    entered: int = 0
    may_be: bool = False
    guard: Guard | None = None

    @property
    def block(self) -> Block:
        """The block of ops."""
        return self.code.block

    @property
    def ops(self) -> list[Operation]:
        """The ops of the block that the protocol depends on."""
        return self.code.ops

    @property
    def pace(self) -> int:
        """The distance of the positions of two iterations, see `Machine._question`."""
        assert self.bounds is not None
        lower, _, step = self.bounds
        if isinstance(lower, int) and isinstance(step, int):
            return step
        return step.terms[0][1] if isinstance(step, Linear) else 1

    @property
    def first(self) -> int:
        """The position of the first iteration."""
        assert self.bounds is not None
        lower, _, step = self.bounds
        if isinstance(lower, int) and isinstance(step, int):
            return lower
        if isinstance(step, Linear) and isinstance(lower, Linear):
            return dict(lower.terms).get(step.terms[0][0], 0)
        return 0

    def copy(self) -> Frame:
        """Return an independent copy."""
        return Frame(
            self.code,
            self.op,
            self.lanes,
            self.index,
            self.loop,
            self.static,
            self.at,
            self.position,
            self.bounds,
            self.undecided,
            self.partial,
            self.entered,
            self.may_be,
            self.guard,
        )


@dataclass
class Warp:
    """One warp: its frames, values, groups of copies and wgmma.

    Attributes:
        rank: Number of the block in the cluster.
        env: Values by slot of the program.
        tile: Iteration of the outermost loop of unknown length, or of a loop of known length around such loops.
        lag: Phases of a barrier that completed since a class of lanes last took one, at most 2.
        bulk: Groups of bulk stores that a class of lanes has committed.
        copies: Groups of cp.async that a class of lanes has committed.
        issued, groups, waited: Numbers of wgmma.
        joined: Barrier that the warp waits at: the number of its block and of the barrier.
        gathered: True if the phase of the cluster barrier that the warp has arrived at is complete, None if it waits
            for none.
    """

    number: int
    lanes: np.ndarray[tuple[int], np.dtype[np.int64]]
    rank: int = 0
    frames: list[Frame] = field(default_factory=list[Frame])
    env: dict[int, Value] = field(default_factory=dict[int, Value])
    tile: int = 0
    lag: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    bulk: dict[int, int] = field(default_factory=dict[int, int])
    copies: dict[int, int] = field(default_factory=dict[int, int])
    issued: int = 0
    groups: tuple[int, ...] = ()
    waited: int = 0
    fenced: bool = False
    joined: tuple[int, int] | None = None
    gathered: bool | None = None
    passed: bool = False
    registers: int = 0
    resized: bool = False
    inits: tuple[tuple[int, int], ...] = ()

    @property
    def is_leaving(self) -> bool:
        """True if only barriers of the cluster are left, so it no longer matters in which tile the warp is."""
        return all(
            (f.op is None or f.op.name not in LOOPS) and all(op.name in _LEAVES for op in islice(f.ops, f.index, None))
            for f in self.frames
        )

    def unused(self) -> frozenset[int]:
        """Return the slots whose values no later op reads.

        A loop that has to decide whether it goes on still reads its arguments, in the body or as its results. A loop
        or branch that is executed has read its operands, but ops in it may read the same values.
        """
        out: frozenset[int] = frozenset()
        for f in self.frames:
            if not f.undecided:
                out |= f.code.unused(2 * f.index if f is self.frames[-1] else 2 * f.index - 1)
        return out

    def copy(self) -> Warp:
        """Return an independent copy."""
        new = Warp(self.number, self.lanes, self.rank)
        new.__dict__.update(self.__dict__)
        new.frames = [f.copy() for f in self.frames]
        for name in ("env", "lag", "bulk", "copies"):
            new.__dict__[name] = dict(self.__dict__[name])
        return new


@dataclass
class MBarrier:
    """An mbarrier. `phase` counts completed phases up to 2; `parity` is that of the phase in progress."""

    count: int
    pending: int
    bytes: int = 0
    phase: int = 0
    parity: int = 0
    delivers: bool = False
    fenced: bool = False

    def key(self) -> Hashable:
        """Return the barrier as a value."""
        return tuple(self.__dict__.values())


@dataclass
class Named:
    """A named barrier: threads that have arrived, the expected number, and the arrivals of this and the last phase."""

    arrived: int = 0
    expected: int | None = None
    parties: tuple[int, ...] = ()
    before: tuple[int, ...] = ()


COPIES_ARRIVE = -2
"""Start of a flight that is a cp.async.mbarrier.arrive; its number of bytes is that of the arrivals."""


class Flight(NamedTuple):
    """A copy in flight, the mbarrier that it signals, and the mask of the tokens that precede its issue."""

    barrier: int
    nbytes: int
    start: int
    tokens: int = 0


class TensorColumns(NamedTuple):
    """Columns of tensor memory that a warp has allocated.

    Attributes:
        slot: Offset in shared memory of the address that the allocation wrote, -1 if it was overwritten.
        has_relinquished: True if the block has given up the permit to allocate.
    """

    columns: int
    slot: int
    warp: int
    is_live: bool = True
    has_relinquished: bool = False


@dataclass
class Product:
    """A wgmma of a warpgroup that some of its warps have issued, and the mask of the tokens that precede it."""

    operands: Hashable
    warps: int = 0
    tokens: int = 0


class State:
    """A state of the block."""

    def __init__(self, facts: Facts) -> None:
        self.warps: list[Warp] = []
        self.mbarriers: dict[int, MBarrier] = {}
        self.barrier_units = 0  # mask of the units of shared memory that hold initialized mbarriers
        self.named: dict[tuple[int, int], Named] = {}
        self.flying: list[Flight] = []
        self.products: dict[int, dict[int, Product]] = {}
        self.facts = facts
        self.tensor: dict[tuple[int, int], TensorColumns] = {}  # by the rank of the block and the number of the op
        self.decisions: dict[Base, Interval] = {}
        self.shifted: set[Base] = set()
        self.pool: tuple[int, ...] = ()

    def copy(self) -> State:
        """Return an independent copy."""
        out = State(self.facts.copy())
        out.warps = [w.copy() for w in self.warps]
        out.mbarriers = {k: MBarrier(**b.__dict__) for k, b in self.mbarriers.items()}
        out.named = {k: Named(**b.__dict__) for k, b in self.named.items()}
        out.flying = list(self.flying)
        out.tensor = dict(self.tensor)
        out.products = {
            g: {n: Product(p.operands, p.warps, p.tokens) for n, p in products.items()}
            for g, products in self.products.items()
        }
        out.decisions, out.shifted = dict(self.decisions), set(self.shifted)
        out.pool, out.barrier_units = self.pool, self.barrier_units
        return out
