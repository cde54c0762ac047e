"""Tracking of unwritten registers, and flags whose violation gives poison.

As in valgrind's memcheck, definedness travels with the values: an `Undefined` holds a value and a mask of its unwritten
bits. Moving it or computing with it is allowed (a predicated tail holds such elements and never uses them). Acting on
it is an error: a store outside local memory, an address, a branch, an operand of a `wgmma`. Steps are wrapped only when
a function is compiled for this check.

- Ops that only move bits (bit casts, vector elements, select, shifts, shuffles) run a second time on the masks.
- In the result of a computation an element is undefined if the element of an operand is.
- The purely computing instructions of inline PTX form one such step; others raise `PoisonUse` when they act on one.
- `mma.sync` (in `instructions/matrix`): an element is undefined if the row of A, the column of B or the element of C
  is.
- Every other op acts on its operands.

**Poison-generating flags (`nsw`, `nneg`, `exact`, `inbounds`, …) and operand ranges.** Violating one gives poison.
Poison is a fault only when something depends on it (LLVM LangRef, "Poison Values"), so a `select` may discard it. If
only selects in the same block read a result, the fault is reported when one of them picks it, else at once.

`promise_address` checks the flags of a getelementptr (LangRef, "getelementptr"). Indices are sign-extended to 64 bits,
the width of all NVPTX pointers here. The offsets are added one after the other, and each step must respect the flags:

- `nusw`: index times size, and the sum of the offsets, do not wrap as signed numbers. The address plus a signed offset
  does not wrap as an unsigned number.
- `nuw`: the same with unsigned numbers throughout.
- `inbounds`: `nusw`, and unless all offsets are zero, each address is inside the allocation of the first address or one
  past its end. An allocation is an argument's array, a global or an alloca; for a pointer of unknown origin, all of
  shared or local memory. A base that is not an address of memory (converted from an integer) is not checked.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cute_dialect.interp.errors import Fault, OpInfo, attr_of, location_text, op_name
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.memory.accesses import Site
from cute_dialect.interp.memory.allocations import unwritten_cell
from cute_dialect.interp.memory.buffers import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    SHARED,
    SHARED_SPACES,
    SHARED_WINDOW,
    SMEM_ORIGIN,
    WINDOW_BITS,
)
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Array, Origin, Regs, Undefined, Value, splat, to_lanes, wrap_int

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Operation

    from cute_dialect.interp.compiler.function_compiler import FnCompiler, Step
    from cute_dialect.interp.machine.group import Group, Wait
    from cute_dialect.interp.types import Leaf
    from cute_dialect.interp.values import Array, Regs, Value


_NOTHING: frozenset[int] = frozenset()
_FROM_1, _FROM_2 = frozenset(range(1, 16)), frozenset(range(2, 16))
MOVES: dict[str, frozenset[int]] = {  # ops that move bits, with the operands that control the move
    **dict.fromkeys(
        (
            "llvm.bitcast", "arith.bitcast", "vector.bitcast", "llvm.shufflevector", "vector.shuffle",
            "vector.shape_cast", "vector.broadcast", "vector.splat", "vector.from_elements", "vector.to_elements",
            "vector.extract_strided_slice", "vector.insert_strided_slice", "arith.trunci", "llvm.trunc", "arith.extsi",
            "arith.extui", "llvm.sext", "llvm.zext", "arith.ori", "llvm.or", "arith.xori", "llvm.xor", "llvm.ptrtoint",
            "llvm.inttoptr",
        ),
        _NOTHING,
    ),
    **dict.fromkeys(("arith.shli", "arith.shrui", "arith.shrsi", "llvm.shl", "llvm.lshr", "llvm.ashr"), _FROM_1),
    **dict.fromkeys(("llvm.extractelement", "vector.extractelement", "vector.extract"), _FROM_1),
    **dict.fromkeys(("llvm.insertelement", "vector.insertelement", "vector.insert"), _FROM_2),
    **dict.fromkeys(("arith.select", "llvm.select"), frozenset({0})),
    "nvvm.shfl.sync": frozenset({0, 2, 3}),
}  # fmt: skip
MASKS = ("arith.andi", "llvm.and")  # These move the bits that the other operand selects.
# These broadcast the value of one thread to all threads.
ACTS = ("nvvm.vote.sync", "nvvm.redux.sync", "nvvm.match.sync")
PASSES = {"llvm.store": frozenset({0})}  # operands that the op checks itself
INLINE = ("llvm.inline_asm", "nvvm.inline_ptx")  # each instruction checks its own operands


def unwritten(op: Operation, leaf: Leaf, number: int) -> Undefined:
    """Return register `number` of an op that creates unwritten registers."""
    ones = np.ones(leaf.shape, np.bool_) if leaf.width == 1 else np.full(leaf.shape, -1, f"i{leaf.dtype.itemsize}")
    return Undefined(splat(0, leaf), as_bits(ones, leaf), origin(op, number))


def origin(op: Operation, number: int) -> Origin:
    """Return the origin of an op's register `number`: `element (3, 0) of %acc`, or the op and its location."""
    cells = attr_of(op, "cute.unwritten")

    def text() -> str:
        where = location_text(op)
        return unwritten_cell(cells, number, op) or f"register {number} of {op.name}" + (
            f" at {where}" if where else ""
        )

    return Origin(text, cells is not None)


def origin_of(held: Iterable[Undefined]) -> Origin:
    """Return the origin to report for several values, preferably a named element of a tensor."""
    origins = [u.origin for u in held]
    return next((o for o in origins if o.named), origins[0])


def as_bits(v: Array, leaf: Leaf) -> Array:
    """Return the bits of elements as unsigned integers, or bools for `i1`."""
    return v if leaf.dtype == np.bool_ else np.ascontiguousarray(v).reshape(v.shape).view(f"u{leaf.dtype.itemsize}")


def _as_value(bits: Array, leaf: Leaf) -> Array:
    return bits if leaf.dtype == np.bool_ else np.ascontiguousarray(bits).view(leaf.dtype)


def some(u: Undefined, leaf: Leaf, lanes: int) -> Array:
    """Return a mask of the elements with an undefined bit, `(lanes, *shape)`."""
    return np.broadcast_to(u.bits != 0, (lanes, *leaf.shape))


def whole(value: Value, where: Array, leaf: Leaf, g: Group, origin: Origin) -> Value:
    """Return a value whose elements in the mask `where` are undefined in active lanes."""
    where = where & g.mask.array.reshape((-1,) + (1,) * len(leaf.shape))
    if not where.any():
        return value
    bits = where if leaf.dtype == np.bool_ else np.where(where, -1, 0).astype(f"i{leaf.dtype.itemsize}")
    return Undefined(value, as_bits(bits, leaf), origin)


def track(c: FnCompiler, op: Operation, step: Step, info: OpInfo) -> Step:
    """Wrap a step so that undefined bits propagate from operands to results and uses that act on them are reported."""
    if info.name in INLINE:
        return step
    ins, outs = tuple(dict.fromkeys(info.operands)), info.results
    controls = _slots(c, op, MOVES.get(info.name, _NOTHING))
    passes = _slots(c, op, PASSES.get(info.name, _NOTHING))
    moves, masks = info.name in MOVES, info.name in MASKS
    computes = (info.pure or moves) and info.name not in ACTS
    leaves = {s: c.leaf_of(s) for s in (*ins, *outs)}

    def run(R: Regs, g: Group) -> None:
        held: dict[int, Undefined] = {}
        for s in ins:
            v = R[s]
            if type(v) is Undefined:
                held[s] = v
        if not held:
            step(R, g)
            return
        if not computes:
            for s, u in held.items():
                if s not in passes:
                    R[s] = u.used(g.mask, info.name)
            try:
                step(R, g)
            finally:
                for s, u in held.items():
                    R[s] = u
            return
        before = {s: R[s] for s in ins}
        for s, u in held.items():
            R[s] = u.value
        try:
            step(R, g)
        except Fault:
            for u in held.values():
                u.used(g.mask, info.name)
            raise
        results = [R[d] for d in outs]
        keep = controls if moves else tuple(s for s in ins if s not in held) if masks else None
        first = origin_of(held.values())
        tainted = keep is not None and all(s not in held for s in keep) and bool(moves or keep)
        if tainted:
            assert keep is not None
            for s in ins:
                if s not in keep:
                    leaf = leaves[s]
                    u = held.get(s)
                    bits = np.zeros((), as_bits(np.zeros(1, leaf.dtype), leaf).dtype) if u is None else u.bits
                    R[s] = _as_value(np.array(np.broadcast_to(bits, (g.lanes, *leaf.shape))), leaf)
            step(R, g)
        for d, value in zip(outs, results):
            leaf = leaves[d]
            if tainted:
                bits = as_bits(to_lanes(R[d], leaf, g.lanes), leaf)
                active = g.mask.array.reshape((-1,) + (1,) * len(leaf.shape))
                bits = np.where(active, bits, np.zeros((), bits.dtype))
                R[d] = Undefined(value, bits, first) if bits.any() else value
            else:
                R[d] = whole(value, _elements(held, leaves, leaf, g.lanes), leaf, g, first)
        for s, v in before.items():
            R[s] = v

    return run


def track_waiting(
    gen: Callable[[Regs, Group], Generator[Wait, None, None]], info: OpInfo
) -> Callable[[Regs, Group], Generator[Wait, None, None]]:
    """Wrap a step that may block. All of its operands must be defined in active lanes."""
    if info.name in INLINE:
        return gen

    def run(R: Regs, g: Group) -> Generator[Wait, None, None]:
        held = {s: v for s in info.operands if type(v := R[s]) is Undefined}
        for s, u in held.items():
            R[s] = u.used(g.mask, info.name)
        yield from gen(R, g)
        for s, u in held.items():
            R[s] = u

    return run


def _slots(c: FnCompiler, op: Operation, numbers: frozenset[int]) -> tuple[int, ...]:
    return tuple(s for i, v in enumerate(op.operands) if i in numbers for s in c.slots.get(v, ()))


def _elements(held: dict[int, Undefined], leaves: dict[int, Leaf], leaf: Leaf, lanes: int) -> Array:
    """Return a mask of the undefined elements of a result: per element if the shapes agree, else per lane."""
    out = np.zeros((lanes, *leaf.shape), np.bool_)
    for s, u in held.items():
        one = some(u, leaves[s], lanes)
        if leaves[s].shape != leaf.shape:
            one = one.reshape(lanes, -1).any(axis=1).reshape((lanes,) + (1,) * len(leaf.shape))
        out |= one
    return out


def emit_hidden(
    c: FnCompiler,
    op: Operation,
    ins: list[int],
    outs: list[int],
    compile_body: Callable[[], None],
    read_bits: Mapping[int, int],
) -> None:
    """Compile several steps that only compute as one: an undefined operand makes the results undefined, per lane.

    ``read_bits`` maps the slots of operands to masks of the bits that the steps read; they read all bits of others.
    ``compile_body`` fills it.
    """
    held: dict[int, Undefined] = {}
    leaves = {s: c.leaf_of(s) for s in (*ins, *outs)}

    def hide(R: Regs, g: Group) -> None:
        held.clear()
        for s in ins:
            v = R[s]
            if type(v) is Undefined:
                held[s] = v
                R[s] = v.value

    def show(R: Regs, g: Group) -> None:
        for s, u in held.items():
            R[s] = u
        read = {s: u for s, u in held.items() if s not in read_bits or (u.bits & u.bits.dtype.type(read_bits[s])).any()}
        if read:
            first = origin_of(read.values())
            lanes = np.zeros(g.lanes, np.bool_)
            for s, u in read.items():
                bits = u.bits & u.bits.dtype.type(read_bits[s]) if s in read_bits else u.bits
                lanes |= np.broadcast_to(bits != 0, (g.lanes, *leaves[s].shape)).reshape(g.lanes, -1).any(axis=1)
            for d in outs:
                shape = leaves[d].shape
                where = np.broadcast_to(lanes.reshape((-1,) + (1,) * len(shape)), (g.lanes, *shape))
                R[d] = whole(R[d], where, leaves[d], g, first)

    c.emit(op, hide, pure=False, track=False)
    compile_body()
    c.emit(op, show, pure=False, track=False)


# --------------------------------------------------------------------------------------------------------- poison flags


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


Bad: TypeAlias = "Array | np.generic | bool"
Text: TypeAlias = "Callable[[Callable[[Value], str]], str]"
"""Builds the message, given a function that formats a value in the first lane with a violation."""
Report: TypeAlias = "Callable[[Regs, Group, Bad, Text], None]"
SELECTS = ("arith.select", "llvm.select")


class Broken:
    """A violated flag whose poison has not been used yet."""

    __slots__ = ("bad", "kind", "text")

    def __init__(self, bad: Bad, kind: str, text: Text) -> None:
        self.bad = bad
        self.kind = kind
        self.text = text


def promise(c: FnCompiler, op: Operation, kind: str = "poison") -> Report:
    """Return the function with which a step reports the lanes where `op` violates a flag."""
    result = c.slots_of(op.results[0])[0]
    rank = len(c.leaf_of(result).shape)
    if not only_selected(op):
        return lambda R, g, bad, text: fail(g, bad, kind, text, rank)
    late = late_slot(c, result)

    def keep(R: Regs, g: Group, bad: Bad, text: Text) -> None:
        R[late] = Broken(bad, kind, text) if np.any(bad) else False  # type: ignore[call-overload]

    return keep


def only_selected(op: Operation) -> bool:
    """Return True if the result of an op is read only by selects in its block."""
    uses = list(op.results[0].uses)
    return bool(uses) and all(
        op_name(u.operation) in SELECTS and u.index > 0 and u.operation.parent is op.parent for u in uses
    )


def late_slot(c: FnCompiler, result: int) -> int:
    """Return the slot that holds the `Broken` of a result."""
    late = c.late.get(result)
    if late is None:
        late = c.late[result] = c.new_slot(int_leaf(1), fixed=True)
    return late


def picked(R: Regs, g: Group, late: int, condition: Value, on_true: bool, rank: int, onwards: bool) -> Broken | None:
    """Report a violation if a select picks the result in an active lane.

    With `onwards`, return it instead, for the selects that are the only readers of this select.
    """
    got: object = R[late]
    if not isinstance(got, Broken):
        return None
    k = np.asarray(condition if on_true else np.logical_not(condition))  # type: ignore[arg-type]
    bad = np.asarray(got.bad)
    if rank and k.ndim == 1 and bad.ndim != 1:
        k = k.reshape((-1,) + (1,) * rank)
    if onwards:
        return Broken(bad & k, got.kind, got.text) if np.any(bad & k) else None
    fail(g, bad & k, got.kind, got.text, rank)
    return None


def fail(g: Group, bad: Bad, kind: str, text: Text, rank: int) -> None:
    """Raise Fault if `bad`, of a value with `rank` vector dimensions, is True in an active lane."""
    flags = np.asarray(bad)
    if not flags.any():
        return
    if flags.ndim == 0:
        if not g.mask.n:
            return
        lane = int(g.mask.idx[0])
        where: tuple[int, ...] = ()
    else:
        if not g.mask.any(flags, rank):
            return
        lane = g.mask.first(flags, rank)
        row = flags[lane] if flags.ndim > rank else flags
        where = tuple(int(i) for i in np.argwhere(row)[0]) if row.ndim else ()

    def at(v: Value) -> str:
        if not isinstance(v, np.ndarray):
            return str(v)
        row = np.asarray(v[lane] if v.ndim > rank else v)
        return str(row[where] if where and row.ndim == len(where) else row)

    raise Fault(kind, text(at), lane)


INBOUNDS, NUSW, NUW = 1, 2, 4
_FULL, _HALF = 1 << 64, 1 << 63
_NONE = np.zeros((), np.bool_)


class Offset(NamedTuple):
    """One index of a getelementptr: the value of `slot`, or `number` if `slot` is None, times `stride` bytes."""

    slot: int | None
    number: int
    stride: int

    def times(self, R: Regs) -> Value:
        """Return the index."""
        return self.number if self.slot is None else R[self.slot]


class _Extent(NamedTuple):
    """An allocation: name, first address and size in bytes."""

    name: str
    first: int
    size: int


def promise_address(c: FnCompiler, op: Operation, base: int, offsets: Sequence[Offset], flags: int) -> None:
    """Emit the check of an address against `flags`. `base` is the slot of the pointer."""
    flags |= NUSW if flags & INBOUNDS else 0
    report = promise(c, op)
    rank = len(c.leaf_of(c.slots_of(op.results[0])[0]).shape)
    leaf = c.leaf_of(base)
    site = Site(leaf, 1, leaf.space, False, op=op)
    c.pieces.bound(site, base)
    wraps_as = "inbounds" if flags & INBOUNDS else "nusw"

    def step(R: Regs, g: Group) -> None:
        start = R[base]
        counts = [(o.times(R), o.stride) for o in offsets]
        signed, without = _wraps(start, counts, flags)
        out = _leaves(site, g, start, counts, rank) & ~(signed | without) if flags & INBOUNDS else _NONE

        def text(at: Callable[[Value], str]) -> str:
            address, terms = int(at(start)), [f"{at(i)} * {n}" for i, n in counts]
            if at(out) == "True":
                found = _extent(site, g, address)
                if found is None:
                    return f"llvm.getelementptr: {address:#x} is in no allocation, which inbounds forbids"
                return (
                    f"llvm.getelementptr: byte offset {' + '.join([str(address - found.first), *terms])} is outside "
                    f"{found.name} of {found.size} bytes, which inbounds forbids"
                )
            name = wraps_as if at(signed) == "True" else "nuw"
            return f"llvm.getelementptr: {' + '.join([hex(address), *terms])} wraps, which {name} forbids"

        report(R, g, signed | without | out, text)

    c.emit(op, step)


def _ends(v: Value) -> tuple[int, int]:
    """Return the least and the greatest number of all lanes."""
    return (int(v.min()), int(v.max())) if isinstance(v, np.ndarray) else (index(v), index(v))  # type: ignore[arg-type]


def _wraps(start: Value, counts: Sequence[tuple[Value, int]], flags: int) -> tuple[Array, Array]:
    """Return masks of the lanes that break nusw and of those that break nuw."""
    low, high = _ends(start)
    ends = [(a * n, b * n) for (a, b), n in ((_ends(i), n) for i, n in counts)]
    below, above = sum(min(a, 0) for a, _ in ends), sum(max(b, 0) for _, b in ends)
    if low + below >= 0 and high + above < _HALF and -below < _HALF and (below == 0 or not flags & NUW):
        return _NONE, _NONE
    signed = without = _NONE
    address = _exact(start) % _FULL
    total = plain = 0
    unsigned_at = address
    for i, n in counts:
        x = _exact(i)
        away, far = x * n, x % _FULL * n
        total, plain = total + away, plain + far
        if flags & NUSW:
            signed = signed | _outside(away, -_HALF, _HALF) | _outside(total, -_HALF, _HALF)
            signed = signed | _outside(address + away, 0, _FULL)
        if flags & NUW:
            without = without | _outside(far, 0, _FULL) | _outside(plain, 0, _FULL)
            without = without | _outside(unsigned_at + far, 0, _FULL)
        address, unsigned_at = (address + away) % _FULL, (unsigned_at + far) % _FULL
    return signed, without


def _exact(v: Value) -> Array:
    """Convert to Python integers, which do not wrap."""
    return np.asarray(v).astype(object)  # type: ignore[arg-type]


def _bytes(i: Value, n: int) -> Array:
    """Multiply an index by a size, with wrapping."""
    return np.multiply(i, n, dtype=np.int64)  # type: ignore[call-overload]


def _outside(v: Array, low: int, high: int) -> Array:
    return np.asarray((v < low) | (v >= high), np.bool_)


def _leaves(site: Site, g: Group, start: Value, counts: Sequence[tuple[Value, int]], rank: int) -> Array:
    """Return a mask of the lanes in which an intermediate address is outside the allocation of the first one.

    `rank`: the dimensions of a vector of pointers.
    """
    first = low = high = at = np.asarray(start if isinstance(start, np.ndarray) else wrap_int(index(start), 64))  # type: ignore[arg-type]
    moved = _NONE
    for i, n in counts:
        away = _bytes(i, n)
        at = at + away
        moved = moved | (away != 0)
        low, high = np.minimum(low, at), np.maximum(high, at)
    first, low, high, moved = np.broadcast_arrays(first, low, high, moved)
    shape = first.shape
    left = np.array(moved)
    if len(shape) > rank:  # Inactive lanes do not hold addresses.
        left &= g.mask.array.reshape((-1,) + (1,) * rank)
    first, low, high, left = (a.reshape(-1) for a in (first, low, high, left))
    out = np.zeros(left.shape, np.bool_)
    while left.any():
        where = int(np.argmax(left))
        found = _extent(site, g, int(first[where]))
        if found is None:
            same = left & (first == first[where])
            out |= same & (first >= GLOBAL_BASE)
        else:
            same = left & (first >= found.first) & (first <= found.first + found.size)
            same[where] = True
            out |= same & ((low < found.first) | (high > found.first + found.size))
        left &= ~same
    return out.reshape(shape)


def _extent(site: Site, g: Group, address: int) -> _Extent | None:
    """Return the allocation that contains an address or ends at it, None if there is none."""
    owner = site.owner
    if LOCAL_WINDOW <= address < SHARED_WINDOW:
        if owner is None:
            return _Extent("local memory", LOCAL_WINDOW, g.local_size)
        return _Extent(owner.name, LOCAL_WINDOW + g.frame + owner.start, owner.size)
    if site.space in SHARED_SPACES or SHARED_WINDOW <= address < GLOBAL_BASE:
        origin = SMEM_ORIGIN + (0 if site.space == SHARED else address >> WINDOW_BITS << WINDOW_BITS)
        for s in g.machine.segments.values() if owner is not None else ():
            if s.start <= owner.start < s.start + s.size:  # type: ignore[union-attr]
                return _Extent(f"@{s.name}", origin + s.start, s.size)
        return _Extent("shared memory", origin, g.smem_size)
    for b in g.memory.buffers:
        if b.base <= address <= b.base + b.size:
            return _Extent(b.name, b.base, b.size)
    return None
