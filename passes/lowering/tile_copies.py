"""``convert-cute-algo-to-arch``: state of atoms, layout-based tiled copies, retiled fragments, cooperative copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TypeGuard, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
from xdsl.ir import Block, Operation, SSAValue

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.leaf import Leaf, add
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import raw_layout
from cute_dialect.dialect import memory, views
from cute_dialect.dialect.machine import AtomSetValueOp
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.types import LayoutType
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.copying import MAX_BITS, Side, plan, side_of
from cute_dialect.passes.lowering.insertion import InsertionPoint


def atom_state(atom: SSAValue) -> tuple[SSAValue, dict[str, SSAValue]]:
    """Return the atom below ``cute.atom.set_value`` and ``cute.make_tiled_copy…``, and the fields set.

    The last value set for a field wins.
    """
    state: dict[str, SSAValue] = {}
    while isinstance(atom.owner, AtomSetValueOp) or _makes_tiled_copy(atom.owner):
        if isinstance(atom.owner, AtomSetValueOp):
            field = atom.owner.properties["field"]
            assert isinstance(field, StringAttr)
            state.setdefault(field.data, atom.owner.operands[1])
        atom = atom.owner.operands[0]
    return atom, state


def _makes_tiled_copy(owner: Operation | Block) -> TypeGuard[Operation]:
    return isinstance(owner, Operation) and owner.name.startswith("cute.make_tiled_copy")


def barrier_is_set(state: Mapping[str, SSAValue], op: Operation) -> None:
    """Raise PassError if a copy that signals an mbarrier has none."""
    if "tma_bar" not in state:
        raise PassError(
            "this copy needs the mbarrier that counts its bytes: set it with cute.atom.set_value … {field = tma_bar} "
            "between the atom and the copy, in the same function",
            op,
        )


def _retile(op: Operation) -> None:
    site = InsertionPoint(op)
    declared = op.results[0].type
    assert isinstance(declared, MemRefType)
    layout = site.static(views.layout_type(declared.layout))
    op.results[0].replace_all_uses_with(site.emit(views.MakeViewOp(site.emit(views.GetIterOp(op.operands[1])), layout)))


def _cooperative(op: Operation) -> None:
    """Lower a cooperative copy: accesses, contiguous ones first, are distributed round-robin over the threads."""
    source, destination, tid = op.operands
    threads = op.properties["threads"]
    assert isinstance(threads, IntegerAttr)
    n = threads.value.data
    site = InsertionPoint(op)
    sides: list[Side] = []
    for tensor in (source, destination):
        t = tensor.type
        assert isinstance(t, MemRefType)
        static = is_static(t.layout)
        sides.append(side_of(t, t.layout if static else site.bound(site.emit(views.GetLayoutOp(tensor)))))
    chosen = plan(sides, MAX_BITS)
    loops = sorted(chosen.loops, key=lambda m: m.strides[0] if isinstance(m.strides[0], int) else 1 << 62)
    steps = prod(m.extent for m in loops)
    extents = tuple(m.extent for m in loops)
    walks = [raw_layout(extents, tuple(m.strides[k] for m in loops)) for k in range(2)]
    thread = cast("Leaf", site.bound(tid))
    iters = [site.emit(views.GetIterOp(t)) for t in (source, destination)]

    def move(number: Leaf) -> None:
        at: list[SSAValue] = []
        for side, walk, it in zip(sides, walks, iters):
            offset = side.place(cast("Leaf", evaluate(number, walk) if extents else 0))
            layout = site.static(LayoutType(raw_layout(chosen.width, 1)))
            at.append(site.emit(views.MakeViewOp(site.moved(it, offset), layout)))
        if chosen.width == 1:
            first = site.coordinate(0)
            site.add(memory.StoreOp(at[1], first, site.emit(memory.LoadOp(at[0], first))))
        else:
            site.add(memory.StoreVecOp(site.emit(memory.LoadVecOp(at[0])), at[1]))

    for start in range(0, steps, n):
        number = add(thread, start) if start else thread
        if start + n <= steps:
            move(number)
            continue
        limit, index = site.constant(steps, i32), site.emitter.value(number, 32)
        with site.if_(site.emit(arith.CmpiOp(index, limit, "ult"))):
            move(number)


def _nothing(op: Operation) -> None:
    """Keep tiled copies, whose types hold all their data, and ``cute.atom.set_value``, which copies look through."""


TO_ARCH: Mapping[str, Callable[[Operation], None]] = {
    "cute.atom.set_value": _nothing,
    "cute.make_tiled_copy_tv": _nothing,
    "cute.tiled.copy.retile": _retile,
    "cute.cooperative_copy": _cooperative,
}
"""Lowerings in place, by op name."""
