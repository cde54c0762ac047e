"""Poison-generating flags of ops (`nsw`, `nneg`, `exact`, `inbounds`, …) and operand ranges.

Violating one gives poison. Poison is a fault only when something depends on it (LLVM LangRef, "Poison Values"), so a
`select` may discard it. If only selects in the same block read a result, the fault is reported when one of them picks
it, else at once.

`promise_address` checks the flags of a getelementptr (LangRef, "getelementptr"). Indices are sign-extended to 64 bits,
the width of all NVPTX pointers here. The offsets are added one after the other, and each step must respect the flags:

- `nusw`: index times size, and the sum of the offsets, do not wrap as signed numbers. The address plus a signed offset
  does not wrap as an unsigned number.
- `nuw`: the same with unsigned numbers throughout.
- `inbounds`: `nusw`, and unless all offsets are zero, each address is inside the allocation of the first address or one
  past its end. An allocation is an argument's array, a global or an alloca; for a pointer of unknown origin, all of
  shared or local memory. A base that is not an address of memory (converted from an integer) is not checked.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cute_dialect.interp.errors import Fault, op_name
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.memory.accesses import Site
from cute_dialect.interp.memory.addresses import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    SHARED,
    SHARED_SPACES,
    SHARED_WINDOW,
    SMEM_ORIGIN,
    WINDOW_BITS,
)
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Array, Regs, Value, wrap_int

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.compiler.function_compiler import FnCompiler
    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.values import Array, Regs, Value

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


__all__ = [
    "Bad",
    "Offset",
    "Report",
    "Text",
    "fail",
    "late_slot",
    "only_selected",
    "picked",
    "promise",
    "promise_address",
]
