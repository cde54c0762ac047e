"""``convert-cute-algo-to-arch`` lowering of copies with a bulk atom: one arch op per run of bytes.

A run is contiguous on both sides (:mod:`.types`). The arch op gets a view of the run on each side. For example,

    cute.copy(%at, %g, %s) : (!cute_nvgpu.atom.bulk_copy<f32>,
        !cute.memref<f32, gmem, align<16>, "(64,8):(1,?{div=4})">, !cute.memref<f32, smem, align<16>, "(64,8):(1,68)">)

becomes eight ops of the form

    cute_nvgpu.arch.bulk_copy(%row, %there, %bar) : (!cute.memref<f32, gmem, align<16>, "64:1">, …, …) -> ()

The barrier and other fields come from ``cute.atom.set_value``. The field ``pred`` becomes an ``scf.if``.
"""

from __future__ import annotations

from contextlib import nullcontext

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout, raw_layout
from cute_dialect.cute_nvgpu.bulk.ops import BulkCopyOp, BulkReduceOp
from cute_dialect.cute_nvgpu.bulk.types import BulkAtomType, needs_barrier, runs
from cute_dialect.dialect import tiled, views
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.types import LayoutType
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.tile_copies import atom_state, barrier_is_set


def copy(op: tiled.CopyOp, atom: CopyAtomType) -> None:
    """Lower a ``cute.copy`` with a bulk atom to one instruction per run."""
    assert isinstance(atom, BulkAtomType)
    _, state = atom_state(op.atom)
    site = InsertionPoint(op)
    sides = (op.source, op.destination)
    source, destination = op.source.type, op.destination.type
    assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
    types = (source, destination)
    if needs_barrier(destination):
        barrier_is_set(state, op)
    layouts: list[AnyLayout] = []
    for tensor, t in zip(sides, types):
        layout = t.layout if is_static(t.layout) else site.bound(site.emit(views.GetLayoutOp(tensor)))
        assert isinstance(layout, Layout | ComposedLayout)
        layouts.append(layout)
    found = runs(atom, types, (layouts[0], layouts[1]))
    iters = [site.emit(views.GetIterOp(tensor)) for tensor in sides]
    run = site.static(LayoutType(raw_layout(found.elements, 1)))
    rest = [state[f] for f in ("tma_bar", "multicast_mask", "cache_hint") if f in state]
    pred = state.get("pred")
    with site.if_(pred) if pred is not None else nullcontext():
        for offsets in found.offsets():
            at: list[SSAValue] = []
            for it, offset in zip(iters, offsets):
                at.append(site.emit(views.MakeViewOp(site.moved(it, offset), run)))
            if atom.data.reduction:
                site.add(BulkReduceOp(at[0], at[1], StringAttr(atom.data.reduction), rest))
            else:
                site.add(BulkCopyOp(at[0], at[1], rest))
