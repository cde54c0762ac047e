"""Lowering of TMA: tensor maps on the host, copies of boxes in a kernel.

In ``convert-cute-algo-to-arch``, ``make_tma_load`` becomes an ``arch.make_tensor_map`` with the scalars of the tensor
map, and a view of coordinates::

    %map = cute_nvgpu.arch.make_tensor_map(%ptr, %k, %m, %bytes) : (…, i64, i64, i64) -> !load
    %xy  = cute.make_view(%zeros, %layout) : !cute.coord_tensor<"(0,0)", "(?,?):(1@1,1@0)">

A copy becomes one instruction per box. The coordinates of a box are those of the tile's iterator plus a constant. The
fields of the atom come from ``cute.atom.set_value``; the field ``pred`` becomes an ``scf.if``.

In ``cute-to-base`` a tensor map is a pointer. On the host it points to 128 bytes that the runtime encoded. In a kernel
it points to a parameter that is passed by value (``llvm.byval``, ``nvvm.grid_constant``). ``arch.make_tensor_map``
becomes a call of an external function of the runtime (:data:`cute_dialect.arch.tensor_map_codes.FUNCTION`)::

    %map = llvm.call @cute_tensor_map_tiled_2d(%address, %k, %m, %bytes, %c64, %c128, …) : (…) -> !llvm.ptr

Copies in a kernel become ``nvvm.cp.async.bulk.tensor.…`` and prefetches ``nvvm.prefetch``. Loads have
the ``.shared::cluster`` form, which PTX 8.3 has; :mod:`cute_dialect.passes.lowering.cluster` names the exception.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import NamedTuple, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, StringAttr, i16, i32, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, add
from cute_dialect.algebra.trees import is_static, tree_get
from cute_dialect.algebra.values import ComposedLayout, Layout, raw_layout
from cute_dialect.arch.tensor_map import TensorMapSpec
from cute_dialect.arch.tensor_map_codes import (
    FUNCTION,
    IM2COL_FUNCTION,
    INTERLEAVES,
    L2_PROMOTIONS,
    OOB_FILLS,
    SWIZZLES,
    element_code,
)
from cute_dialect.cute_nvgpu import tma, tma_types
from cute_dialect.cute_nvgpu.tma_types import Im2colAtomType, Im2colMap, TmaAtomType, TmaMap
from cute_dialect.dialect import views
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import CoordTensorType, MemRefType, element_bits
from cute_dialect.dialect.tiled import CopyOp
from cute_dialect.dialect.types import IntTupleType, LayoutType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.cluster import load_address
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.tile_copies import atom_state, barrier_is_set
from cute_dialect.passes.lowering.types import pointer
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm, nvvm
from cute_dialect.upstream.attrs import attr

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
            strides.append(_bytes(site, stride, spec.element_bits))  # type: ignore[arg-type]
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
    bits = element_bits(t.element)
    extents = [_wide(site, n) for n in cast("tuple[Leaf, ...]", layout.shape)]
    steps = cast("tuple[Leaf, ...]", layout.stride)[1:]
    strides = [_wide(site, n) if bits == 8 else _bytes(site, n, bits) for n in steps]
    address = site.emit(views.GetIterOp(gmem))
    op.results[0].replace_all_uses_with(site.emit(tma.MakeIm2colMapOp(address, extents, strides, atom)))


def _wide(site: InsertionPoint, leaf: Leaf) -> SSAValue:
    """Return a leaf as an i64."""
    return site.constant(leaf, i64) if isinstance(leaf, int) else site.emitter.value(leaf, 64)


def _bytes(site: InsertionPoint, stride: Leaf, bits: int) -> SSAValue:
    """Return a stride in bytes, as an i64, from a stride in elements of ``bits`` bits."""
    if isinstance(stride, int):
        return site.constant(stride * bits // 8, i64)
    if bits < 8:
        total, eight = site.emitter.binary("mul", stride, bits, 64), site.constant(8, i64)
        # A remainder makes the result odd or no multiple of 16, so that the launch refuses it.
        return site.emit(arith.OrIOp(site.emit(arith.DivSIOp(total, eight)), site.emit(arith.RemSIOp(total, eight))))
    return site.emitter.binary("mul", stride, bits // 8, 64)


# ---------------------------------------------------------------------------------------------------------- in a kernel


def copy(op: CopyOp, _: CopyAtomType) -> None:
    """Lower a ``cute.copy`` with a TMA atom to one instruction per box."""
    atom, state = atom_state(op.operands[0])
    t = atom.type
    loads = tma_types.loads(t)
    coords, smem = (op.operands[1], op.operands[2]) if loads else (op.operands[2], op.operands[1])
    tile, here = coords.type, smem.type
    assert isinstance(tile, CoordTensorType) and isinstance(here, MemRefType)
    boxes = tma_types.plan(t, tile, here)
    if loads:
        barrier_is_set(state, op)
    site = InsertionPoint(op)
    first = site.bound(site.emit(views.GetIterOp(coords)))
    assert isinstance(first, tuple)
    start = _start(site, smem, here)
    kind = t.name.removeprefix("cute_nvgpu.atom.")
    rows = _rows(site, t, state, op)
    offsets = _offsets(site, t, state) if isinstance(t, Im2colAtomType) and loads else []
    pred = state.get("pred")
    with site.if_(pred) if pred is not None else nullcontext():
        for box in boxes:
            at = [_coordinate(site, c, step) for c, step in zip(first, box.coords)]  # type: ignore[arg-type]
            if rows:
                at[1:] = [_coordinate(site, add(cast("Leaf", first[1]), row), 0) for row in rows]
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
    "tma_load_im2col": tma.ArchTmaLoadIm2colOp,
    "tma_store_im2col": tma.ArchTmaStoreIm2colOp,
    "tma_reduce_im2col": tma.ArchTmaReduceIm2colOp,
}
"""Name of the atom, without its prefix -> op class of its instruction."""


def _rows(site: InsertionPoint, atom: Attribute, state: Mapping[str, SSAValue], op: CopyOp) -> list[Leaf]:
    """Return the row indices of a gather4 load or a scatter4 store; other copies have none.

    Raises PassError if they are not set.
    """
    if not isinstance(atom, TmaAtomType) or not atom.data.mode:
        return []
    if "rows" not in state:
        raise PassError(
            f"this copy needs the indices of the rows of {atom.data.mode}: set them with cute.atom.set_value … "
            "{field = rows} between the atom and the copy, in the same function",
            op,
        )
    rows = site.bound(state["rows"])
    assert isinstance(rows, tuple)
    return [cast("Leaf", row) for row in rows]


def _offsets(site: InsertionPoint, atom: Im2colAtomType, state: Mapping[str, SSAValue]) -> list[SSAValue]:
    """Return the im2col offsets, one i16 for each."""
    given = state.get("im2col_offsets")
    if given is None:
        return [site.constant(0, i16)] * atom.data.offsets
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


TO_ARCH: Mapping[str, Callable[[Operation], None]] = {
    "cute_nvgpu.make_tma_load": _make,
    "cute_nvgpu.make_tma_store": _make,
    "cute_nvgpu.make_tma_reduce": _make,
    "cute_nvgpu.make_tma_load_im2col": _make_im2col,
    "cute_nvgpu.make_tma_store_im2col": _make_im2col,
    "cute_nvgpu.make_tma_reduce_im2col": _make_im2col,
}
"""Op name -> function that lowers it in place."""


# ---------------------------------------------------------------------------------------------------------- on the host


def _make_tensor_map(low: Lowering, op: Operation) -> None:
    """Lower ``arch.make_tensor_map`` or ``arch.make_im2col_map``."""
    if low.device:
        raise PassError("a tensor map is built on the host; move this op to the function that launches the kernel", op)
    m, function = _map_of(op.results[0].type), FUNCTION
    if isinstance(m, Im2colMap):
        function = IM2COL_FUNCTION
    codes = (
        element_code(str(m.element), m.unpack if isinstance(m, TmaMap) else 0),
        INTERLEAVES.index(m.interleave),
        SWIZZLES.index(m.swizzle),
        L2_PROMOTIONS.index(m.l2),
        OOB_FILLS.index(m.oob),
    )
    operands = [low.value(o) for o in op.operands]
    operands += [low.build.constant(n, i32) for n in (*m.numbers, *codes)]
    name = function.format(rank=m.rank)
    declare(op, name, [o.type for o in operands])
    low.values[op.results[0]] = low.build.emit(llvm.CallOp(name, operands, llvm.LLVMPointerType()))


def _map_of(atom: Attribute) -> TmaMap | Im2colMap:
    assert isinstance(atom, TmaAtomType | Im2colAtomType)
    return atom.data


def declare(op: Operation, name: str, types: list[Attribute]) -> None:
    """Declare ``llvm.func @name(…) -> !llvm.ptr`` in the module of ``op``, once."""
    module: Operation | None = op
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    assert module is not None, "a pass runs on a module"
    block = module.body.block
    for other in block.ops:
        symbol = other.properties.get("sym_name", other.attributes.get("sym_name"))
        if isinstance(symbol, StringAttr) and symbol.data == name:
            return
    function = llvm.FuncOp(name, llvm.LLVMFunctionType(types, llvm.LLVMPointerType()))
    assert block.first_op is not None
    block.insert_op_before(function, block.first_op)


# ---------------------------------------------------------------------------------------------------------- in a kernel


class _Parts(NamedTuple):
    """Lowered operands of an instruction: the map, its static part, the coordinates, and the others."""

    m: TmaMap | Im2colMap
    tensor_map: SSAValue
    coordinates: list[SSAValue]
    others: list[SSAValue]

    def mode(self, kind: str) -> Attribute:
        """Return the mode attribute of a "load" or a "store"."""
        if isinstance(self.m, Im2colMap):
            return attr(f"nvvm.tma_{kind}_mode", f"im2col_{self.m.mode}" if self.m.mode else "im2col")
        return attr(f"nvvm.tma_{kind}_mode", f"tile_{self.m.mode}" if self.m.mode else "tile")

    def halo(self, low: Lowering) -> list[SSAValue]:
        """Return the halo of an im2col load of mode w or w_128, which precedes its offset; other loads have none."""
        if isinstance(self.m, Im2colMap) and self.m.mode:
            return [low.build.constant(self.m.halo, i16)]
        return []


def _parts(low: Lowering, op: Operation) -> _Parts:
    m = _map_of(op.operands[0].type)
    tensor_map, *values = [low.value(o) for o in op.operands]
    return _Parts(m, tensor_map, values[: m.coordinates], values[m.coordinates :])


def _load(low: Lowering, op: Operation) -> None:
    parts = _parts(low, op)
    smem, bar, *others = parts.others
    offsets, others = parts.halo(low) + others[: parts.m.offsets], others[parts.m.offsets :]
    instruction = nvvm.OPS["cp.async.bulk.tensor.shared.cluster.global"]
    mask, hint, mode = _of_type(others, i16), _of_type(others, i64), parts.mode("load")
    group = attr("nvvm.cta_group", "cta_2") if parts.m.cta_group == 2 else None
    # All chips with these modes have their forms with .shared::cta.  Elements of 4 bits have no other form on sm_120.
    alone = (bool(parts.m.mode) or element_bits(parts.m.element) < 8) and mask is None and group is None
    to = smem if alone else load_address(low, smem, mask or group)
    if group is not None:
        bar = _of_even_block(low, bar)
    made = instruction(
        to,
        parts.tensor_map,
        parts.coordinates,
        bar,
        offsets,
        mask,
        hint,
        None,
        mode=mode,
        isCTAOnly=to.type != pointer(AddressSpace.dsmem),
        group=group,
    )
    low.build.add(made)


_PARITY = 1 << 24
"""Bit of an address in the shared memory of a cluster that is the parity of the block's rank."""


def _of_even_block(low: Lowering, bar: SSAValue) -> SSAValue:
    """Return the address of an mbarrier in the even block of the pair.

    Source: CUTLASS ``include/cute/arch/copy_sm100_tma.hpp`` (BSD-3), which clears the bit for ``cta_group::2``.
    """

    def made() -> Operation:
        address = low.build.emit(make_op(llvm.OPS["ptrtoint"], [bar], [i32]))
        even = low.build.emit(arith.AndIOp(address, low.build.constant(~_PARITY, i32)))
        return make_op(llvm.OPS["inttoptr"], [even], [bar.type])

    return low.build.once(("even block", bar), made)


def _of_type(values: Sequence[SSAValue], t: Attribute) -> SSAValue | None:
    return next((v for v in values if v.type == t), None)


def _store(low: Lowering, op: Operation) -> None:
    """Lower a store or a reduction."""
    parts = _parts(low, op)
    smem, *others = parts.others
    hint, mode = _of_type(others, i64), parts.mode("store")
    if not parts.m.reduction:
        instruction = nvvm.OPS["cp.async.bulk.tensor.global.shared.cta"]
        low.build.add(instruction(parts.tensor_map, smem, parts.coordinates, hint, None, mode=mode))
        return
    kind = attr("nvvm.tma_redux_kind", parts.m.reduction)
    instruction = nvvm.OPS["cp.async.bulk.tensor.reduce"]
    low.build.add(instruction(parts.tensor_map, smem, parts.coordinates, hint, redKind=kind, mode=mode))


def _prefetch_box(low: Lowering, op: Operation) -> None:
    parts = _parts(low, op)
    offsets, hint = parts.halo(low) + parts.others[: parts.m.offsets], _of_type(parts.others, i64)
    instruction = nvvm.OPS["cp.async.bulk.tensor.prefetch"]
    low.build.add(instruction(parts.tensor_map, parts.coordinates, offsets, hint, mode=parts.mode("load")))


def _prefetch(low: Lowering, op: Operation) -> None:
    tensor_map = low.value(op.operands[0])
    # For a generic pointer to a parameter LLVM emits two prefetches: in parameter space and in generic space.
    kernel = tensor_map.block.parent_op() if isinstance(tensor_map, BlockArgument) else None
    given = kernel is not None and "gpu.kernel" in kernel.attributes
    low.build.add(nvvm.OPS["prefetch"](tensor_map, None, tensormap=True, in_param_space=True if given else None))


def _map_address(low: Lowering, op: Operation) -> None:
    low.values[op.results[0]] = low.value(op.operands[0])


def _map_at(low: Lowering, op: Operation) -> None:
    address = low.value(op.operands[1])
    if address.type != llvm.LLVMPointerType():
        address = low.build.emit(make_op(llvm.OPS["addrspacecast"], [address], [llvm.LLVMPointerType()]))
    low.values[op.results[0]] = address


TO_BASE: Mapping[str, Handler] = {
    "cute_nvgpu.arch.make_tensor_map": _make_tensor_map,
    "cute_nvgpu.arch.make_im2col_map": _make_tensor_map,
    "cute_nvgpu.arch.tma_load": _load,
    "cute_nvgpu.arch.tma_store": _store,
    "cute_nvgpu.arch.tma_reduce": _store,
    "cute_nvgpu.arch.tma_prefetch": _prefetch_box,
    "cute_nvgpu.arch.tma_load_im2col": _load,
    "cute_nvgpu.arch.tma_store_im2col": _store,
    "cute_nvgpu.arch.tma_reduce_im2col": _store,
    "cute_nvgpu.arch.tma_prefetch_im2col": _prefetch_box,
    "cute_nvgpu.arch.prefetch_tensormap": _prefetch,
    "cute_nvgpu.arch.tensor_map_address": _map_address,
    "cute_nvgpu.arch.tensor_map_at": _map_at,
}
