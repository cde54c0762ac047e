"""``convert-cute-algo-to-arch``: tiled operations become accesses of one thread.

Removes ``atom``, ``make_tiled_copy``, ``tiled.copy.partition_*``, ``copy``, ``fill``, ``clear`` and
``make_fragment_like``.  What is left: scalar arithmetic, views, element and vector accesses, ``scf``.

``partition_S`` of the block ``(16,128):(?,1)`` for thread ``%t`` under the thread-value layout
``((32,4),(4,4)):((64,4),(16,1))`` becomes the offset ``(t mod 32)*4 + (t div 32)*(4*stride)`` and a view of it::

    %it = cute.get_iter(%b) : !cute.memref<f32, gmem, "(16,128):(?,1)">
    %ly = cute.get_layout(%b) : …
    %ld = cute.get_scalars<{only_dynamic}> (%ly) : …
    %s4 = arith.muli %ld, %c4 overflow<nsw> : i32
    %q  = arith.divsi %t, %c32 : i32
    %r  = arith.remsi %t, %c32 : i32
    …
    %iv = cute.assume(%o) : (i32) -> !cute.i32<divby 4>
    %p  = cute.add_offset(%it, %ot) : (!cute.ptr<f32, gmem>, !cute.int_tuple<"?{div=4}">) -> !cute.ptr<f32, gmem>
    %v  = cute.make_view(%p, %l2) : !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)">

``copy`` becomes one access for each vector of elements that both sides prove contiguous and aligned
(:mod:`.lowering.copying`).  Under flags a vector moves as one if all its flags hold, else element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra.int_tuple import map_leaves
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, add
from cute_dialect.algebra.values import Layout
from cute_dialect.memory_types import CopyAtomType, MemRefType, TensorType, TiledCopyType
from cute_dialect.nvgpu_types import UniversalCopyType
from cute_dialect.ops import memory, tiled, views
from cute_dialect.ops.base import CuteOp
from cute_dialect.ops.kinds import Typed
from cute_dialect.ops.make import StaticOp
from cute_dialect.passes.base import Pass, PassContext, PassError
from cute_dialect.passes.expand_tensor import on_layout_of_tensor
from cute_dialect.passes.lowering.copying import MAX_BITS, Plan, Side, broadcast_mode0, plain_layout, plan
from cute_dialect.passes.lowering.site import Site
from cute_dialect.types import CoordType, CuteType, IntTupleType, LayoutType


class AlgoToArchPass(Pass):
    """Lower tiled copies, partitions, copies and fills to what one thread does."""

    name = "convert-cute-algo-to-arch"
    summary = "lower tiled copy, tiled mma and partitions to the atoms of an architecture"
    description = __doc__ or ""

    def run(self, op: Operation, ctx: PassContext) -> None:
        values: list[Operation] = []
        for inner in list(op.walk()):
            handler = HANDLERS.get(inner.name)
            if handler is None or (handler is _layout_op and not on_layout_of_tensor(inner)):
                continue
            try:
                handler(inner)
            except AlgebraError as e:
                raise PassError(f"cannot lower '{inner.name}': {e}", inner) from None
            values.append(inner)
        for inner in reversed(values):
            inner.detach()
            inner.erase()

    def legal_after(self, op: Operation) -> Iterable[Operation]:
        """Ops of the tiled layer must be gone."""
        return (o for o in op.walk() if o.name in HANDLERS and (HANDLERS[o.name] is not _layout_op or on_layout_of_tensor(o)))


def _nothing(op: Operation) -> None:
    """Atoms and tiled copies: all about them is in their types."""


def _layout_op(op: Operation) -> None:
    """``slice`` and ``crd2idx`` on the layout of a tensor, which ``cute-expand-ops`` leaves."""
    assert isinstance(op, CuteOp)
    site = Site(op)
    declared = op.results[0].type
    assert isinstance(declared, CuteType)
    if declared.is_static():
        op.results[0].replace_all_uses_with(site.emit(StaticOp(declared)))
        return
    operands: list[Typed] = []
    for o in op.operands:
        assert isinstance(o.type, CuteType)
        operands.append(Typed(o.type.kind, site.bound(o)))
    (result,) = op.infer(operands, op.properties)
    op.results[0].replace_all_uses_with(site.make(declared, result.payload))


# -------------------------------------------------------------------------------------------------------------- partitions


def _partition(op: Operation) -> None:
    tc, tensor, tid = op.operands
    site = Site(op)
    t, tiled_copy, declared = tensor.type, tc.type, op.results[0].type
    assert isinstance(t, TensorType) and isinstance(tiled_copy, TiledCopyType) and isinstance(declared, TensorType)
    it = site.emit(views.GetIterOp(tensor))
    layout = site.bound(site.emit(views.GetLayoutOp(tensor)))
    part, offset = tiled.partition(tiled_copy, t, layout, site.bound(tid))
    moved = _moved(site, it, offset)
    assert isinstance(declared.layout, Layout)
    view = views.MakeViewOp(moved, site.make(LayoutType(declared.layout), part), declared)  # pyright: ignore
    op.results[0].replace_all_uses_with(site.emit(view))


def _moved(site: Site, it: SSAValue, offset: object) -> SSAValue:
    """An iterator moved by an offset payload: elements for pointers, an arithmetic tuple for coordinates."""
    if isinstance(offset, int) and offset == 0:
        return it
    if isinstance(offset, tuple):
        return site.emit(views.AddOffsetOp(it, _tuple_offset(site, offset)))
    return site.emit(views.AddOffsetOp(it, site.offset(offset)))  # pyright: ignore[reportArgumentType]


def _tuple_offset(site: Site, offset: tuple[object, ...]) -> SSAValue:
    t = IntTupleType(map_leaves(lambda x: Dyn(x.width, x.div) if isinstance(x, Dyn) else x, offset))  # pyright: ignore
    return site.make(t, offset)  # pyright: ignore[reportArgumentType]


# --------------------------------------------------------------------------------------------------------------- fragments


def _make_fragment_like(op: Operation) -> None:
    t = op.results[0].type
    assert isinstance(t, MemRefType)
    op.results[0].replace_all_uses_with(Site(op).emit(memory.AllocaOp(t)))


def _fill(op: Operation) -> None:
    tensor, value = op.operands
    _store_everywhere(Site(op), tensor, value)


def _clear(op: Operation) -> None:
    site = Site(op)
    tensor = op.operands[0]
    t = tensor.type
    assert isinstance(t, MemRefType)
    zero: SSAValue
    if isinstance(t.element, IntegerType):
        zero = site.constant(0, t.element)
    else:
        zero = site.emit(arith.ConstantOp(FloatAttr(0.0, t.element), t.element))  # pyright: ignore
    _store_everywhere(site, tensor, zero)


def _store_everywhere(site: Site, tensor: SSAValue, value: SSAValue) -> None:
    t = tensor.type
    assert isinstance(t, MemRefType)
    layout = plain_layout(site.bound(site.emit(views.GetLayoutOp(tensor))))
    it = site.emit(views.GetIterOp(tensor))
    side = Side(t, layout)
    for source, _ in plan([side, side], None, 0).steps():
        target = _element_view(site, it, source)
        site.add(memory.StoreOp(target, _origin(site), value))


# -------------------------------------------------------------------------------------------------------------------- copy


class Accesses:
    """Makes the accesses of one copy."""

    def __init__(self, site: Site, plan: Plan, iters: Sequence[SSAValue], flags: SSAValue | None):
        self.site = site
        self.plan = plan
        self.iters = iters
        self.flags = flags
        self.lanes = plan.lanes()

    def move(self, offsets: Sequence[Leaf]) -> None:
        """One whole vector from source to destination."""
        views_ = [self._vector_view(side, offsets[side]) for side in (0, 1)]
        if self.plan.width == 1:
            self._move_element(*views_)
        else:
            value = self.site.emit(memory.LoadVecOp(views_[0]))
            self.site.add(memory.StoreVecOp(value, views_[1]))

    def move_guarded(self, offsets: Sequence[Leaf]) -> None:
        """One vector under its flags: as one access if all hold, else element by element."""
        site = self.site
        flags = self._flags(offsets)
        distinct = list(dict.fromkeys(flags))
        together = distinct[0]
        for flag in distinct[1:]:
            together = site.emit(arith.AndIOp(together, flag))
        with site.if_(together) as other:
            self.move(offsets)
            if len(distinct) > 1:
                with site.block(other):
                    for flag, lane in zip(flags, self.lanes):
                        with site.if_(flag):
                            self._move_element(
                                *[_element_view(site, self.iters[k], _sum(offsets[k], lane[k])) for k in (0, 1)]
                            )

    def _move_element(self, source: SSAValue, destination: SSAValue) -> None:
        origin = _origin(self.site)
        value = self.site.emit(memory.LoadOp(source, origin))
        self.site.add(memory.StoreOp(destination, origin, value))

    def _vector_view(self, side: int, offset: Leaf) -> SSAValue:
        if self.plan.width == 1:
            return _element_view(self.site, self.iters[side], offset)
        modes = [(m.extent, m.strides[side]) for m in self.plan.vector]
        if len(modes) == 1:
            layout = Layout(*modes[0])
        else:
            layout = Layout(tuple(e for e, _ in modes), tuple(d for _, d in modes))
        if all(lane[side] == i for i, lane in enumerate(self.lanes)):
            layout = Layout(len(self.lanes), 1)
        moved = _moved(self.site, self.iters[side], offset)
        return self.site.emit(views.MakeViewOp(moved, self.site.emit(StaticOp(LayoutType(layout)))))

    def _flags(self, offsets: Sequence[Leaf]) -> list[SSAValue]:
        assert self.flags is not None
        read: dict[int, SSAValue] = {}
        result: list[SSAValue] = []
        for lane in self.lanes:
            at = _sum(offsets[2], lane[2])
            assert isinstance(at, int)
            if at not in read:
                view = _element_view(self.site, self.flags, at)
                read[at] = self.site.emit(memory.LoadOp(view, _origin(self.site)))
            result.append(read[at])
        return result


def _sum(a: Leaf, b: Leaf) -> Leaf:
    if isinstance(b, int) and b == 0:
        return a
    return b if isinstance(a, int) and a == 0 else add(a, b)


def _element_view(site: Site, it: SSAValue, offset: Leaf) -> SSAValue:
    layout = site.emit(StaticOp(LayoutType(Layout(1, 0))))
    return site.emit(views.MakeViewOp(_moved(site, it, offset), layout))


def _origin(site: Site) -> SSAValue:
    return site.emit(StaticOp(CoordType(0)))


def _copy(op: Operation) -> None:
    assert isinstance(op, tiled.CopyOp)
    site = Site(op)
    atom = op.atom.type
    if isinstance(atom, TiledCopyType):
        atom = atom.data.atom
    assert isinstance(atom, CopyAtomType)
    if not isinstance(atom, UniversalCopyType):
        raise PassError(f"no lowering for copies by {atom}", op)
    tensors = [op.source, op.destination]
    sides: list[Side] = []
    iters: list[SSAValue] = []
    for tensor in tensors:
        t = tensor.type
        assert isinstance(t, MemRefType)
        iters.append(site.emit(views.GetIterOp(tensor)))
        sides.append(Side(t, plain_layout(site.bound(site.emit(views.GetLayoutOp(tensor))))))
    flag_layout = flags = None
    if op.pred is not None:
        t = op.pred.type
        assert isinstance(t, MemRefType)
        flag_layout = broadcast_mode0(plain_layout(t.layout), sides[1].layout)
        flags = site.emit(views.GetIterOp(op.pred))
    wanted = atom.data.bits
    chosen = plan(sides, flag_layout, wanted or MAX_BITS)
    needed = atom.values()
    if chosen.width != needed and wanted and not all(s.in_registers for s in sides):
        bits = chosen.width * wanted // needed
        raise PassError(
            f"the atom moves {wanted} bits at a time, but alignment and layouts prove accesses of {bits} bits only "
            f"(source {sides[0].type}, destination {sides[1].type})",
            op,
        )
    accesses = Accesses(site, chosen, iters, flags)
    for offsets in chosen.steps():
        if flags is None:
            accesses.move(offsets)
        else:
            accesses.move_guarded(offsets)


HANDLERS: Mapping[str, Callable[[Operation], None]] = {
    "cute.slice": _layout_op,
    "cute.crd2idx": _layout_op,
    "cute.atom": _nothing,
    "cute.make_tiled_copy": _nothing,
    "cute.tiled.copy.partition_S": _partition,
    "cute.tiled.copy.partition_D": _partition,
    "cute.make_fragment_like": _make_fragment_like,
    "cute.copy": _copy,
    "cute.fill": _fill,
    "cute.clear": _clear,
}
"""Op name -> how it is lowered in place."""
