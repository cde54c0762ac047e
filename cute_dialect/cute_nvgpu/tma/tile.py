"""``convert-cute-algo-to-arch`` lowering of TMA: tensor maps on the host, copies of boxes in a kernel.

``make_tma_load`` becomes an ``arch.make_tensor_map`` with the scalars of the tensor map, and a view of coordinates::

    %map = cute_nvgpu.arch.make_tensor_map(%ptr, %k, %m, %bytes) : (…, i64, i64, i64) -> !load
    %xy  = cute.make_view(%zeros, %layout) : !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">

A copy becomes one instruction per box. The coordinates of a box are those of the tile's iterator plus a constant. The
fields of the atom come from ``cute.atom.set_value``; the field ``pred`` becomes an ``scf.if``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import i16, i32, i64
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, add
from cute_dialect.algebra.trees import is_static, tree_get
from cute_dialect.algebra.values import ComposedLayout, Layout, raw_layout
from cute_dialect.arch.tensor_map import TensorMapSpec
from cute_dialect.cute_nvgpu.tma import im2col_ops as im2col
from cute_dialect.cute_nvgpu.tma import maps as boxes_of
from cute_dialect.cute_nvgpu.tma import ops as tma
from cute_dialect.cute_nvgpu.tma.types import Im2colAtomType, TmaAtomType
from cute_dialect.dialect import views
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import CoordTensorType, MemRefType, element_bits
from cute_dialect.dialect.tiled import CopyOp
from cute_dialect.dialect.types import IntTupleType, LayoutType
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.tile_copies import atom_state, barrier_is_set

# ---------------------------------------------------------------------------------------------------------- on the host


def _make(op: Operation) -> None:
    """Lower ``make_tma_load``, ``make_tma_store`` or ``make_tma_reduce``."""
    site = InsertionPoint(op)
    gmem = op.operands[0]
    t, atom, coords = gmem.type, op.results[0].type, op.results[1].type
    assert isinstance(t, MemRefType) and isinstance(atom, TmaAtomType) and isinstance(coords, CoordTensorType)
    spec = tma.derived(op.operand_types, op.properties)
    assert isinstance(spec, TensorMapSpec)
    layout = t.layout if is_static(t.layout) else site.bound(site.emit(views.GetLayoutOp(gmem)))
    assert isinstance(layout, Layout) and isinstance(coords.layout, Layout)
    modes = tma.modes_of(layout)
    extents: list[SSAValue] = []
    strides: list[SSAValue] = []
    for i, d in enumerate(spec.dims):
        # Dimensions that consist of several modes are static.
        single = len(d.modes) == 1
        extents.append(_wide(site, tree_get(modes.shape, d.modes[0]) if single else d.extent))  # type: ignore[arg-type]
        if i:
            stride = tree_get(modes.stride, d.modes[0]) if single else d.stride
            strides.append(_bytes(site, stride, spec.element_bytes))  # type: ignore[arg-type]
    address = site.emit(views.GetIterOp(gmem))
    op.results[0].replace_all_uses_with(site.emit(tma.MakeTensorMapOp(address, extents, strides, atom)))
    declared = LayoutType(coords.layout)
    payload = raw_layout(
        layout.shape, spec.coordinates.stride if isinstance(layout.shape, tuple) else coords.layout.stride
    )
    steps = site.static(declared) if is_static(coords.layout) else site.make(declared, payload)
    origin = site.static(IntTupleType(coords.data.iter))
    op.results[1].replace_all_uses_with(site.emit(views.MakeViewOp(origin, steps, coords)))


def _make_im2col(op: Operation) -> None:
    """Lower ``make_tma_load_im2col``, ``make_tma_store_im2col`` or ``make_tma_reduce_im2col``."""
    site = InsertionPoint(op)
    gmem = op.operands[0]
    t, atom = gmem.type, op.results[0].type
    assert isinstance(t, MemRefType) and isinstance(atom, Im2colAtomType)
    layout = t.layout if is_static(t.layout) else site.bound(site.emit(views.GetLayoutOp(gmem)))
    assert isinstance(layout, Layout)
    size = element_bits(t.element) // 8
    extents = [_wide(site, n) for n in cast("tuple[Leaf, ...]", layout.shape)]
    steps = cast("tuple[Leaf, ...]", layout.stride)[1:]
    strides = [_wide(site, n) if size == 1 else _bytes(site, n, size) for n in steps]
    address = site.emit(views.GetIterOp(gmem))
    op.results[0].replace_all_uses_with(site.emit(im2col.MakeIm2colMapOp(address, extents, strides, atom)))


def _wide(site: InsertionPoint, leaf: Leaf) -> SSAValue:
    """Return a leaf as an i64."""
    return site.constant(leaf, i64) if isinstance(leaf, int) else site.emitter.value(leaf, 64)


def _bytes(site: InsertionPoint, stride: Leaf, size: int) -> SSAValue:
    """Return a stride in bytes, as an i64, from a stride in elements."""
    if isinstance(stride, int):
        return site.constant(stride * size, i64)
    return site.emitter.binary("mul", stride, size, 64)


# ---------------------------------------------------------------------------------------------------------- in a kernel


def copy(op: CopyOp, _: CopyAtomType) -> None:
    """Lower a ``cute.copy`` with a TMA atom to one instruction per box."""
    atom, state = atom_state(op.operands[0])
    t = atom.type
    loads = boxes_of.loads(t)
    coords, smem = (op.operands[1], op.operands[2]) if loads else (op.operands[2], op.operands[1])
    tile, here = coords.type, smem.type
    assert isinstance(tile, CoordTensorType) and isinstance(here, MemRefType)
    boxes = boxes_of.plan(t, tile, here)
    if loads:
        barrier_is_set(state, op)
    site = InsertionPoint(op)
    first = site.bound(site.emit(views.GetIterOp(coords)))
    assert isinstance(first, tuple)
    start = _start(site, smem, here)
    kind = t.name.removeprefix("cute_nvgpu.atom.")
    offsets = _offsets(site, t, state) if isinstance(t, Im2colAtomType) and loads else []
    pred = state.get("pred")
    with site.if_(pred) if pred is not None else nullcontext():
        for box in boxes:
            at = [_coordinate(site, c, step) for c, step in zip(first, box.coords)]  # type: ignore[arg-type]
            place = start
            if box.offset:
                place = site.emit(views.AddOffsetOp(start, site.offset(box.offset)))
            operands: list[SSAValue] = [atom, *at, place]
            operands += [state[f] for f in ("tma_bar",) if f in state] + offsets
            operands += [state[f] for f in ("multicast_mask", "cache_hint") if f in state]
            site.add(_INSTRUCTIONS[kind](operands))


_INSTRUCTIONS: Mapping[str, Callable[[Sequence[SSAValue]], Operation]] = {
    "tma_load": tma.ArchTmaLoadOp,
    "tma_store": tma.ArchTmaStoreOp,
    "tma_reduce": tma.ArchTmaReduceOp,
    "tma_load_im2col": im2col.ArchTmaLoadIm2colOp,
    "tma_store_im2col": im2col.ArchTmaStoreIm2colOp,
    "tma_reduce_im2col": im2col.ArchTmaReduceIm2colOp,
}
"""Name of the atom, without its prefix -> op class of its instruction."""


def _offsets(site: InsertionPoint, atom: Im2colAtomType, state: Mapping[str, SSAValue]) -> list[SSAValue]:
    """Return the im2col offsets, one i16 per spatial dimension."""
    given = state.get("im2col_offsets")
    if given is None:
        return [site.constant(0, i16)] * atom.data.spatial
    payload = site.bound(given)
    found: list[SSAValue] = []
    for leaf in payload if isinstance(payload, tuple) else (payload,):
        assert isinstance(leaf, int | Dyn)
        if isinstance(leaf, int):
            found.append(site.constant(leaf, i16))
        else:
            found.append(site.emit(arith.TruncIOp(site.emitter.value(leaf, leaf.width), i16)))
    return found


def _start(site: InsertionPoint, smem: SSAValue, t: MemRefType) -> SSAValue:
    """Return the pointer to the tile: the tensor's iterator, advanced by the offset of a composed layout."""
    start = site.emit(views.GetIterOp(smem))
    layout = t.layout
    if isinstance(layout, ComposedLayout) and layout.offset != 0:
        if not is_static(layout):
            layout = site.bound(site.emit(views.GetLayoutOp(smem)))
        assert isinstance(layout, ComposedLayout) and isinstance(layout.offset, int | Dyn)
        start = site.emit(views.AddOffsetOp(start, site.offset(layout.offset)))
    return start


def _coordinate(site: InsertionPoint, leaf: Leaf, step: int) -> SSAValue:
    total = add(leaf, step) if step else leaf
    if isinstance(total, int):
        return site.constant(total, i32)
    if total.width > 32:
        raise AlgebraError(
            f"TMA coordinates have {total.width} bits; they must have 32; use tile coordinates of type ?{{i32}}"
        )
    return site.emitter.value(total, 32)


HANDLERS: Mapping[str, Callable[[Operation], None]] = {
    "cute_nvgpu.make_tma_load": _make,
    "cute_nvgpu.make_tma_store": _make,
    "cute_nvgpu.make_tma_reduce": _make,
    "cute_nvgpu.make_tma_load_im2col": _make_im2col,
    "cute_nvgpu.make_tma_store_im2col": _make_im2col,
    "cute_nvgpu.make_tma_reduce_im2col": _make_im2col,
}
"""Op name -> function that lowers it in place."""
