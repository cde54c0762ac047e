"""Tensors in shared and local memory, and the allocations that pointers are based on.

A kernel lowered from cute IR lists each `alloc_smem` in its attribute `cute.smem`, with offset and tensor type. An
`llvm.alloca` that holds a register tensor has the attribute `cute.tensor`. A byte offset is described as `element (3,
17) of %sA`. For that, the pointer's swizzle is undone on the byte and the layout's swizzle on the index, and the layout
is searched for the index. All this happens only when a report is made.

**Provenance of pointers.** Arrays are adjacent in shared memory: another static array, the next stage, the barriers. A
piece is the allocation that a pointer is based on. Pieces are propagated while a function is compiled. They start at
`llvm.mlir.addressof` and `llvm.alloca`, and follow the arithmetic that LLVM's "pointer aliasing rules" (LangRef) allow.
These are getelementptr, casts to and from integers, their sums, masks and swizzles, select, and results of `scf.if` and
`scf.for`. `cute.smem` lists the tensors in a segment; the pointer to a tensor is the address of its segment plus a
constant. The bounds end up as two numbers of a `Site`, so nothing is tracked at run time.

A pointer may be based on several pieces, or come from memory, a call or a block argument. It is then bounded only by
all of shared or local memory. The same holds for the address of a whole segment, which serves to compute swizzled
addresses and descriptors. (The memory that one descriptor covers must be inside one tensor.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from cute_dialect.interp.errors import Fault, attr_of, location_text, op_name, value_name

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Operation

    from cute_dialect.algebra.values import IntTuple
    from cute_dialect.interp.compiler.function_compiler import FnCompiler
    from cute_dialect.interp.memory.accesses import Site


_TYPE = re.compile(r'!cute\.memref<(!?[\w.]+), \w+(?:, align<\d+>)?(?:, (S<[-\d,]*>))?, "(.*)">')
MAX_SEARCHED = 1 << 22  # largest layout, in elements, that is searched for a coordinate


class Allocation(NamedTuple):
    """A tensor in shared or local memory: first byte, size in bytes, cute type as text (empty if unknown)."""

    name: str
    start: int
    size: int
    type: str = ""

    def element(self, offset: int) -> str:
        """Return `element (3, 17)` for a byte offset in the tensor, empty if unknown.

        >>> Allocation("sA", 0, 512, '!cute.memref<f16, smem, "(8,(4,8)):(1,(8,32))">').element(2 * 11)
        'element (3, (1, 0))'
        """
        found = _TYPE.fullmatch(self.type)
        bits = re.fullmatch(r"[a-z]+(\d+)\w*", found[1]) if found is not None else None
        if found is None or bits is None:
            return ""
        from cute_dialect.algebra import text  # late: start-up
        from cute_dialect.algebra.leaf import AlgebraError  # late: start-up
        from cute_dialect.algebra.values import ComposedLayout, Swizzle  # late: start-up

        try:
            layout = text.parse_composed_layout(found[3])
            byte = text.parse_swizzle(found[2])(offset) if found[2] else offset
            assert isinstance(byte, int)
            index = byte * 8 // int(bits[1])
            if isinstance(layout, ComposedLayout):
                if not isinstance(layout.inner, Swizzle) or not isinstance(layout.offset, int):
                    return ""
                plain = layout.inner(index)
                assert isinstance(plain, int)
                index, layout = plain - layout.offset, layout.outer
            linear = _search(_flat(layout.shape), _flat(layout.stride), index)
            if linear is not None and found[1] == "i8" and isinstance(layout.shape, int) and layout.stride == 1:
                return f"byte {linear}"  # Bytes that hold elements of any type.
            return "" if linear is None else f"element {_shown(_unravel(linear, layout.shape)[0])}"
        except (AlgebraError, TypeError):  # a layout with run-time values
            return ""


def _flat(tree: object) -> list[int]:
    if isinstance(tree, tuple):
        return [leaf for t in cast("tuple[object, ...]", tree) for leaf in _flat(t)]
    if type(tree) is not int:
        raise TypeError(tree)
    return [tree]


def _search(shape: Sequence[int], strides: Sequence[int], index: int) -> int | None:
    """Return the first coordinate, as a colexicographic number, that a layout maps to an index.

    None if there is none.
    """
    total = int(np.prod(shape, dtype=np.int64))
    if total > MAX_SEARCHED:
        return None
    at = np.zeros(1, np.int64)
    for n, d in zip(shape, strides):
        at = (np.arange(n, dtype=np.int64)[:, None] * d + at).reshape(-1)
    hits = np.flatnonzero(at == index)
    return int(hits[0]) if len(hits) else None


def _unravel(linear: int, shape: IntTuple) -> tuple[IntTuple, int]:
    """Return the coordinate in the shape's profile, and the remaining quotient."""
    if isinstance(shape, tuple):
        out: list[IntTuple] = []
        for s in shape:
            c, linear = _unravel(linear, s)
            out.append(c)
        return tuple(out), linear
    assert isinstance(shape, int)
    return linear % shape, linear // shape


def _shown(c: IntTuple) -> str:
    return f"({', '.join(map(_shown, c))})" if isinstance(c, tuple) else str(c)


class Allocations:
    """The tensors in one memory."""

    def __init__(self, known: Sequence[Allocation] = ()) -> None:
        self.known = tuple(sorted(known, key=lambda a: a.start))

    def at(self, offset: int) -> Allocation | None:
        """Return the tensor that contains the byte, None if there is none."""
        return next((a for a in self.known if a.start <= offset < a.start + a.size), None)

    def place(self, offset: int) -> str:
        """Return `, element (3, 17) of %sA` for a byte, or its distance past the preceding tensor.

        Empty if nothing is known.
        """
        found = self.at(offset)
        if found is not None:
            element = found.element(offset - found.start) or f"byte {offset - found.start}"
            return f", {element} of {found.name}"
        before = [a for a in self.known if a.start + a.size <= offset]
        if not before:
            return ""
        last = max(before, key=lambda a: a.start + a.size)
        return f", {offset - last.start - last.size} bytes past the end of {last.name}"

    def names(self, offset: int) -> str:
        """Return `element 2 of %barriers`, or the byte offset if the byte has no name."""
        return self.place(offset).removeprefix(", ") if self.at(offset) is not None else f"byte offset {offset}"


def shared_allocations(kernel: Operation, segments: Mapping[str, tuple[int, int]]) -> Allocations:
    """Return the tensors in shared memory, from the kernel's `cute.smem` and the `segments` (symbol → start, size)."""
    out: list[Allocation] = []
    described: set[str] = set()
    located = next((op for op in kernel.walk() if location_text(op)), kernel)  # Functions may have no location.
    listed: object = getattr(attr_of(kernel, "cute.smem"), "data", ())
    for number, entry in enumerate(cast("tuple[object, ...]", listed) if isinstance(listed, tuple) else ()):
        name, segment, text = (_field(entry, k, "data") for k in ("name", "segment", "type"))
        at, size = (_field(_field(entry, k, "value"), "", "data") for k in ("offset", "bytes"))
        if isinstance(segment, str) and isinstance(at, int) and isinstance(size, int) and segment in segments:
            described.add(segment)
            shown = value_name(str(name), located) if name else f"alloc_smem #{number}"
            out.append(Allocation(shown, segments[segment][0] + at, size, str(text)))
    plain = [Allocation(f"@{name}", *place) for name, place in segments.items() if name not in described]
    return Allocations(out + plain if len(segments) > 1 else out)


def _field(entry: object, key: str, what: str) -> object:
    """Return `entry.data[key].what`, or `entry.what` for an empty key. None if missing."""
    held: object = cast("Mapping[str, object]", getattr(entry, "data", {})).get(key) if key else entry
    return getattr(held, what, None)


def unwritten_cell(attribute: object, number: int, op: Operation) -> str:
    """Return `element (3, 0) of %acc` for register `number` of a `cute.unwritten` attribute, empty if unknown.

    ``op`` is an op that reads it.
    """
    name, text = _field(attribute, "name", "data"), _field(attribute, "type", "data")
    values = _field(attribute, "cells", "get_values")
    cells = list(cast("Sequence[int]", values())) if callable(values) else []
    if not isinstance(name, str) or not isinstance(text, str) or not number < len(cells):
        return ""
    found = _TYPE.fullmatch(text)
    bits = re.fullmatch(r"[a-z]+(\d+)\w*", found[1]) if found is not None else None
    shown = value_name(name, op) if name else "a register tensor"
    element = Allocation(shown, 0, 0, text).element(cells[number] * int(bits[1]) // 8) if bits is not None else ""
    return f"{element or f'register {cells[number]}'} of {shown}"


def local_allocation(op: Operation, start: int, size: int) -> Allocation:
    """Return the tensor in an `llvm.alloca`."""
    assert op_name(op) == "llvm.alloca"
    hint = op.results[0].name_hint
    text = getattr(attr_of(op, "cute.tensor"), "data", "")
    return Allocation(value_name(hint, op) if hint else "an alloca", start, size, text if isinstance(text, str) else "")


# ----------------------------------------------------------------------------------------------- provenance of pointers


class Segment(NamedTuple):
    """The address of a symbol in shared memory.

    `tensors` comes from `cute.smem`; if empty, the segment is one array.
    """

    name: str
    start: int
    size: int
    tensors: Allocations

    def at(self, offset: int) -> Allocation | None:
        """Return the tensor at a byte offset in the segment, or the segment itself if it is one array."""
        if not self.tensors.known:
            return Allocation(f"@{self.name}", self.start, self.size)
        return self.tensors.at(self.start + offset)


class Parameter(NamedTuple):
    """A pointer parameter, and the attributes that restrict accesses to its memory.

    `promises` contains llvm.readonly, llvm.writeonly and llvm.readnone, and for a kernel llvm.noalias (LangRef,
    "Parameter Attributes"). Memory of a noalias argument that is modified may be accessed only through that argument.
    """

    number: int
    promises: frozenset[str]
    in_kernel: bool

    def check(self, site: Site) -> None:
        """Raise Fault if an attribute forbids an access through the pointer."""
        wrong = {"llvm.readonly": site.store, "llvm.writeonly": not site.store or site.atomic, "llvm.readnone": True}
        broken = next((name for name, is_ in wrong.items() if is_ and name in self.promises), "")
        if broken:
            raise Fault("promise", f"{site.verb} through {self.name}, which is declared {broken}")

    @property
    def name(self) -> str:
        """The parameter as it appears in messages."""
        return f"argument {self.number}" if self.number >= 0 else "a tensor map"


# The memory of a tensor map is distinct from all pointer parameters of a kernel.
MAPPED = Parameter(-1, frozenset(), True)
Piece = Allocation | Segment | Parameter
_PROMISES = frozenset({"llvm.readonly", "llvm.writeonly", "llvm.readnone", "llvm.noalias"})


def parameters(func: Operation) -> list[Parameter]:
    """Return the parameters of a function, empty if none has such an attribute."""
    in_kernel = any(attr_of(func, name) is not None for name in ("gpu.kernel", "nvvm.kernel"))
    dicts = getattr(attr_of(func, "arg_attrs"), "data", ())
    out = [Parameter(i, _PROMISES & set(d.data), in_kernel) for i, d in enumerate(dicts)]
    return out if any(p.promises for p in out) else []


class Pieces:
    """The pieces of the slots of a function during compilation, and the sites that they bound."""

    def __init__(self, segments: Mapping[str, Segment]) -> None:
        self.segments = segments
        self.of: dict[int, Piece] = {}
        self.promised = False  # True if a parameter of a kernel has such an attribute
        self.bounded: list[Site] = []

    def allocation(self, slot: int) -> Allocation | None:
        """Return the allocation that an address in a slot must be inside of, None if unknown."""
        piece = self.of.get(slot)
        return piece if isinstance(piece, Allocation) else None

    def bound(self, site: Site, slot: int) -> None:
        """Bound a site by the allocation or parameter of the pointer in a slot."""
        piece = self.of.get(slot)
        if isinstance(piece, Parameter):
            site.parameter = piece
            self.bounded.append(site)
        owner = self.allocation(slot)
        if owner is not None:
            site.bound(owner)
            self.bounded.append(site)

    def enter(self, arguments: Sequence[int], initial: Sequence[int]) -> tuple[int, int]:
        """Begin a loop.

        Its arguments are assumed to have the pieces of their initial values. Returns a mark for `leave`.
        """
        for a, i in zip(arguments, initial):
            self._set(a, self.of.get(i))
        return max(arguments, default=-1), len(self.bounded)

    def leave(
        self, mark: tuple[int, int], arguments: Sequence[int], last: Sequence[int], results: Sequence[int]
    ) -> None:
        """End a loop. If an argument changes its piece, all pieces found in the body are dropped."""
        if any(_either(self.of.get(a), self.of.get(s)) is None for a, s in zip(arguments, last) if a in self.of):
            self.of = {s: p for s, p in self.of.items() if s <= mark[0] and s not in arguments}
            for site in self.bounded[mark[1] :]:
                site.bound(None)
                site.parameter = None
        for a, r in zip(arguments, results):
            self._set(r, self.of.get(a))

    def join(self, results: Sequence[int], first: Sequence[int], second: Sequence[int]) -> None:
        """Set the pieces of results that are one of two values, if both have the same piece."""
        for i, r in enumerate(results):
            self._set(r, _either(self.of.get(first[i]), self.of.get(second[i])))

    def step(self, base: int, result: int, offset: int | None) -> None:
        """Set the piece of a pointer plus an offset. `offset` is None if it is only known at run time."""
        piece = self.of.get(base)
        if isinstance(piece, Segment):
            piece = None if offset is None else piece.at(offset)
        self._set(result, piece)

    def note(self, c: FnCompiler, op: Operation) -> None:
        """Propagate the pieces of a compiled op's operands to its result."""
        rule = RULES.get(op_name(op))
        if rule is not None:
            slots = c.slots.get(op.results[0])
            if slots is not None and len(slots) == 1:
                self._set(slots[0], rule(self, c, op))

    def takes(self, slot: int, parameter: Parameter) -> None:
        """Record that a slot holds the pointer of a parameter."""
        self._set(slot, parameter)
        self.promised = parameter.in_kernel

    def _set(self, slot: int, piece: Piece | None) -> None:
        if piece is not None:
            self.of[slot] = piece

    def operand(self, c: FnCompiler, op: Operation, number: int) -> Piece | None:
        """Return the piece of an operand, None if unknown."""
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
    """Return the piece of an op that does not change the address."""
    return pieces.operand(c, op, 0)


def _integer(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    """Return the piece of an address converted to an integer. None for a segment, which may become any tensor in it."""
    piece = pieces.operand(c, op, 0)
    return None if isinstance(piece, Segment) else piece


def _sum(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    """Return the piece of an address plus a number. The sum of two addresses has none."""
    first, second = pieces.operand(c, op, 0), pieces.operand(c, op, 1)
    return first if second is None else second if first is None else None


def _difference(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    return None if pieces.operand(c, op, 1) is not None else pieces.operand(c, op, 0)


def _select(pieces: Pieces, c: FnCompiler, op: Operation) -> Piece | None:
    return _either(pieces.operand(c, op, 1), pieces.operand(c, op, 2))


def _either(first: Piece | None, second: Piece | None) -> Piece | None:
    """Return the piece of a value that is one of two."""
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
