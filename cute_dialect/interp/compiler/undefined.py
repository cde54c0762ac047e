"""Tracking of unwritten registers, for the "uninit" check.

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
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import Fault, OpInfo, attr_of, location_text
from cute_dialect.interp.memory.allocations import unwritten_cell
from cute_dialect.interp.values import Origin, Undefined, splat, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.compiler.function_compiler import FnCompiler
    from cute_dialect.interp.compiler.steps import Step
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
    c: FnCompiler, op: Operation, ins: list[int], outs: list[int], compile_body: Callable[[], None]
) -> None:
    """Compile several steps that only compute as one: an undefined operand makes the results undefined, per lane."""
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
        if held:
            first = origin_of(held.values())
            lanes = np.zeros(g.lanes, np.bool_)
            for s, u in held.items():
                lanes |= some(u, leaves[s], g.lanes).reshape(g.lanes, -1).any(axis=1)
            for d in outs:
                shape = leaves[d].shape
                where = np.broadcast_to(lanes.reshape((-1,) + (1,) * len(shape)), (g.lanes, *shape))
                R[d] = whole(R[d], where, leaves[d], g, first)

    c.emit(op, hide, pure=False, track=False)
    compile_body()
    c.emit(op, show, pure=False, track=False)


__all__ = ["as_bits", "emit_hidden", "origin_of", "some", "track", "track_waiting", "unwritten", "whole"]
