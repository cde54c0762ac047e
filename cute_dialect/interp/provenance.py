"""The allocation a pointer was derived from: an access that leaves it is an error though other memory is there.

In shared memory arrays stand side by side: the one after a static array, the next stage, the barriers.  A piece is
handed on while a function is compiled, from `llvm.mlir.addressof` and `llvm.alloca` through the arithmetic that LLVM's
"pointer aliasing rules" (LangRef) say a pointer may be based on: getelementptr, casts to and from integers, sums,
masks and swizzles of those, select and the results of `scf.if` and `scf.for`.  What the kernel was lowered from says in
`cute.smem` where in its segment each tensor lies: the pointer to one is the segment's address and a constant.  Bounds
are then two numbers of a `Site`: nothing is carried while the kernel runs.

Where a pointer may be of several pieces, comes out of memory, a call or an argument of a block, only the whole of
shared or local memory bounds it; so does the address of a whole segment, from which swizzled addresses and descriptors
are made (of these, what is read at once must lie in one tensor).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.interp.allocations import Allocation, Allocations
from cute_dialect.interp.errors import Fault, attr_of, op_name

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.accesses import Site
    from cute_dialect.interp.program import FnCompiler


class Segment(NamedTuple):
    """The address of a symbol in shared memory; `tensors` lie in it where `cute.smem` says so, else it is one array."""

    name: str
    start: int
    size: int
    tensors: Allocations

    def at(self, offset: int) -> Allocation | None:
        """Return the tensor at a byte of the segment, or the array that the segment is."""
        if not self.tensors.known:
            return Allocation(f"@{self.name}", self.start, self.size)
        return self.tensors.at(self.start + offset)


class Parameter(NamedTuple):
    """The memory behind a pointer that a function takes, and what was promised of it.

    `promises`: of llvm.readonly, llvm.writeonly and llvm.readnone, and llvm.noalias of a kernel (LangRef, "Parameter
    Attributes"). A noalias argument's memory, where it is changed, is touched through that argument alone.
    """

    number: int
    promises: frozenset[str]
    in_kernel: bool

    def check(self, site: Site) -> None:
        """Raise Fault where an access through the pointer breaks a promise."""
        wrong = {
            "llvm.readonly": site.store,
            "llvm.writeonly": not site.store or site.atomic,
            "llvm.readnone": True,
        }
        broken = next((name for name, is_ in wrong.items() if is_ and name in self.promises), "")
        if broken:
            raise Fault("promise", f"{site.verb} through {self.name}, which is declared {broken}")

    @property
    def name(self) -> str:
        """The parameter in words."""
        return f"argument {self.number}" if self.number >= 0 else "a tensor map"


# What a tensor map describes is reached through none of the pointers that a kernel takes.
MAPPED = Parameter(-1, frozenset(), True)
Piece = Allocation | Segment | Parameter
_PROMISES = frozenset({"llvm.readonly", "llvm.writeonly", "llvm.readnone", "llvm.noalias"})


def parameters(func: Operation) -> list[Parameter]:
    """Return the parameters of a function, empty where nothing is promised of any."""
    in_kernel = any(attr_of(func, name) is not None for name in ("gpu.kernel", "nvvm.kernel"))
    dicts = getattr(attr_of(func, "arg_attrs"), "data", ())
    out = [Parameter(i, _PROMISES & set(d.data), in_kernel) for i, d in enumerate(dicts)]
    return out if any(p.promises for p in out) else []


class Pieces:
    """The pieces of the slots of a function that is being compiled, and the sites that they bound."""

    def __init__(self, segments: Mapping[str, Segment]) -> None:
        self.segments = segments
        self.of: dict[int, Piece] = {}
        self.promised = False  # whether anything is promised of a kernel's arguments
        self.bounded: list[Site] = []

    def allocation(self, slot: int) -> Allocation | None:
        """Return the allocation that an address in a slot must lie in, None when that is not known."""
        piece = self.of.get(slot)
        return piece if isinstance(piece, Allocation) else None

    def bound(self, site: Site, slot: int) -> None:
        """Bound a site by the allocation or parameter that the pointer in a slot was derived from."""
        piece = self.of.get(slot)
        if isinstance(piece, Parameter):
            site.parameter = piece
            self.bounded.append(site)
        owner = self.allocation(slot)
        if owner is not None:
            site.bound(owner)
            self.bounded.append(site)

    def enter(self, arguments: Sequence[int], initial: Sequence[int]) -> tuple[int, int]:
        """Begin a loop: its arguments are taken to be of the pieces of their initial values. Gives a mark."""
        for a, i in zip(arguments, initial):
            self._set(a, self.of.get(i))
        return max(arguments, default=-1), len(self.bounded)

    def leave(
        self, mark: tuple[int, int], arguments: Sequence[int], last: Sequence[int], results: Sequence[int]
    ) -> None:
        """End a loop. Where an argument becomes another piece, nothing that was found in the body holds."""
        if any(_either(self.of.get(a), self.of.get(s)) is None for a, s in zip(arguments, last) if a in self.of):
            self.of = {s: p for s, p in self.of.items() if s <= mark[0] and s not in arguments}
            for site in self.bounded[mark[1] :]:
                site.bound(None)
                site.parameter = None
        for a, r in zip(arguments, results):
            self._set(r, self.of.get(a))

    def join(self, results: Sequence[int], first: Sequence[int], second: Sequence[int]) -> None:
        """Note results that are one or another value: of their piece where it is the same."""
        for i, r in enumerate(results):
            self._set(r, _either(self.of.get(first[i]), self.of.get(second[i])))

    def step(self, base: int, result: int, offset: int | None) -> None:
        """Note that a pointer is another and an offset, None where that is known only at run time."""
        piece = self.of.get(base)
        if isinstance(piece, Segment):
            piece = None if offset is None else piece.at(offset)
        self._set(result, piece)

    def note(self, c: FnCompiler, op: Operation) -> None:
        """Hand on the pieces of an op's operands, once it is compiled."""
        rule = RULES.get(op_name(op))
        if rule is not None:
            slots = c.slots.get(op.results[0])
            if slots is not None and len(slots) == 1:
                self._set(slots[0], rule(self, c, op))

    def takes(self, slot: int, parameter: Parameter) -> None:
        """Note that a slot holds the pointer of a parameter."""
        self._set(slot, parameter)
        self.promised = parameter.in_kernel

    def _set(self, slot: int, piece: Piece | None) -> None:
        if piece is not None:
            self.of[slot] = piece

    def operand(self, c: FnCompiler, op: Operation, number: int) -> Piece | None:
        """Return the piece of an operand."""
        slots = c.slots.get(op.operands[number], ())
        return self.of.get(slots[0]) if len(slots) == 1 else None


Rule = Callable[[Pieces, "FnCompiler", "Operation"], "Piece | None"]


def _addressof(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    ref = attr_of(op, "global_name")
    segment = pieces.segments.get(str(getattr(getattr(ref, "root_reference", ref), "data", ref)))
    return segment if segment is None or segment.tensors.known else segment.at(0)


def _alloca(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    return c.fn.allocas[-1]


def _first(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    """Return what is the same address in other words."""
    return pieces.operand(c, op, 0)


def _integer(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    """Return the piece of an address as a number: that of a segment may become that of any tensor in it."""
    piece = pieces.operand(c, op, 0)
    return None if isinstance(piece, Segment) else piece


def _sum(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    """Return the piece of the sum of an address and a number; a difference of two addresses is none."""
    first, second = pieces.operand(c, op, 0), pieces.operand(c, op, 1)
    return first if second is None else second if first is None else None


def _difference(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    return None if pieces.operand(c, op, 1) is not None else pieces.operand(c, op, 0)


def _select(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    return _either(pieces.operand(c, op, 1), pieces.operand(c, op, 2))


def _either(first: Piece | None, second: Piece | None) -> Piece | None:
    """Return the piece of a value that is one or another."""
    return first if first == second else None


RULES: dict[str, Rule] = {
    "llvm.mlir.addressof": _addressof,
    "llvm.alloca": _alloca,
    "llvm.ptrtoint": _integer,
    **dict.fromkeys(("llvm.inttoptr", "llvm.addrspacecast", "llvm.bitcast", "nvvm.mapa"), _first),
    **dict.fromkeys(("arith.extsi", "arith.extui", "arith.trunci", "llvm.sext", "llvm.zext", "llvm.trunc"), _first),
    **dict.fromkeys(("arith.addi", "arith.ori", "arith.xori", "arith.andi"), _sum),
    **dict.fromkeys(("llvm.add", "llvm.or", "llvm.xor", "llvm.and"), _sum),
    **dict.fromkeys(("arith.subi", "llvm.sub"), _difference),
    **dict.fromkeys(("arith.select", "llvm.select"), _select),
}

__all__ = ["MAPPED", "Parameter", "Piece", "Pieces", "Segment", "parameters"]
