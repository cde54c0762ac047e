"""Lowering of bulk copies, bulk reductions and prefetches.

``convert-cute-algo-to-arch`` emits one arch op per run of bytes, which is contiguous on both sides. The arch op gets a
view of the run on each side. For example,

    cute.copy(%at, %g, %s) : (!cute_nvgpu.atom.bulk_copy<f32>,
        !cute.memref<f32, gmem, align<16>, "(64,8):(1,?{div=4})">, !cute.memref<f32, smem, align<16>, "(64,8):(1,68)">)

becomes eight ops of the form

    cute_nvgpu.arch.bulk_copy(%row, %there, %bar) : (!cute.memref<f32, gmem, align<16>, "64:1">, …, …) -> ()

The barrier and other fields come from ``cute.atom.set_value``. The field ``pred`` becomes an ``scf.if``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from xdsl.dialects.builtin import StringAttr, i16, i32, i64
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout, raw_layout
from cute_dialect.cute_nvgpu.bulk import (
    BulkAtomType,
    BulkCopy,
    BulkCopyOp,
    BulkReduceOp,
    BulkReduceType,
    needs_barrier,
    run_bytes,
    runs,
)
from cute_dialect.cute_nvgpu.instruction_copy_lowering import memory_address
from cute_dialect.dialect import tiled, views
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.dialect.types import LayoutType
from cute_dialect.passes.lowering.cluster import cluster_address, load_address
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.tile_copies import atom_state, barrier_is_set
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream.nvvm import OPS, InlinePtxOp, nvvm_attr


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


def _bulk_copy(low: Lowering, op: Operation) -> None:
    source, destination = (memory_address(low, o) for o in op.operands[:2])
    t, to = op.operands[0].type, op.operands[1].type
    assert isinstance(t, MemRefType) and isinstance(to, MemRefType)
    size = low.build.constant(run_bytes(t, "source", (t.space,)), i32)
    rest = [low.value(o) for o in op.operands[2:]]
    hint = next((v for v in rest if v.type == i64), None)
    if to.space == AddressSpace.gmem:
        low.build.add(OPS["cp.async.bulk.global.shared.cta"](destination, source, size, hint, None))
        return
    if t.space == AddressSpace.gmem:
        mask = next((v for v in rest if v.type == i16), None)
        made = OPS["cp.async.bulk.shared.cluster.global"]
        low.build.add(made(load_address(low, destination, mask), source, rest[0], size, mask, hint))
        return
    made = OPS["cp.async.bulk.shared.cluster.shared.cta"]
    low.build.add(made(cluster_address(low, destination), source, rest[0], size))


def _bulk_reduce(low: Lowering, op: Operation) -> None:
    """Lower to inline PTX, because nvvm has bulk reductions of TMA boxes only."""
    t, word = op.operands[0].type, op.properties["reduction"]
    assert isinstance(t, MemRefType) and isinstance(word, StringAttr)
    source, destination = (memory_address(low, o) for o in op.operands[:2])
    size = low.build.constant(run_bytes(t, "source", (t.space,)), i32)
    row = BulkReduceType(BulkCopy(t.element, 0, word.data)).row()
    hint = [low.value(o) for o in op.operands[2:]]
    text = row.ptx.replace("$d", "$0").replace("$a", "$1").replace("$size", "$2")
    if hint:
        text = text.replace(".bulk_group.", ".bulk_group.L2::cache_hint.").replace("$2;", "$2, $3;")
    low.build.add(InlinePtxOp(text, [destination, source, size, *hint]))


def _bulk_prefetch(low: Lowering, op: Operation) -> None:
    t = op.operands[0].type
    size = low.build.constant(run_bytes(t, "tensor", (AddressSpace.gmem,)), i32)
    low.build.add(OPS["cp.async.bulk.prefetch"](memory_address(low, op.operands[0]), size))


def _prefetch(low: Lowering, op: Operation) -> None:
    level = op.properties["level"]
    assert isinstance(level, StringAttr)
    cache = nvvm_attr("prefetch_cache_level", level.data)
    low.build.add(OPS["prefetch"](memory_address(low, op.operands[0]), cacheLevel=cache))


TO_BASE: Mapping[str, Handler] = {
    "cute_nvgpu.arch.bulk_copy": _bulk_copy,
    "cute_nvgpu.arch.bulk_reduce": _bulk_reduce,
    "cute_nvgpu.arch.bulk_prefetch": _bulk_prefetch,
    "cute_nvgpu.arch.prefetch": _prefetch,
}
"""Op name -> lowering function."""
