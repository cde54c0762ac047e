"""``cute-expand-ops`` for layout ops on tensors: the layout changes, and the iterator stays or moves.

A slice is split into its layout and its offset::

    %b = cute.slice(%g, %c) : !g1, !cute.coord<"((_,_),?)">

becomes::

    %l  = cute.get_layout(%g) : !g1
    %sl = cute.slice(%l, %c) : !cute.layout<"…">, !cute.coord<"((_,_),?)">
    %ix = cute.crd2idx(%c, %l) : (!cute.coord<"((_,_),?)">, !cute.layout<"…">) -> !cute.int_tuple<"?{div=16}">
    %it = cute.get_iter(%g) : !g1
    %p  = cute.add_offset(%it, %ix) : (!cute.ptr<f32, gmem>, !cute.int_tuple<"?{div=16}">) -> !cute.ptr<f32, gmem>
    %b  = cute.make_view(%p, %sl) : !g2

The two ops on the layout stay until ``convert-cute-algo-to-arch``.  Every other op (divide, group, select, …) is
evaluated on the tensor's layout, with divisibility, and the result is a view with the new layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra.leaf import Dyn
from cute_dialect.algebra.trees import map_leaves
from cute_dialect.algebra.values import ComposedLayout, IntTuple, Layout
from cute_dialect.dialect import algebra, sizes, views
from cute_dialect.dialect.base import CuteOp
from cute_dialect.dialect.memory_types import MemRefType, PtrType, TensorType
from cute_dialect.dialect.registry import core_ops
from cute_dialect.dialect.tensor_lifting import slice_offset
from cute_dialect.dialect.typed_values import Typed, tracked
from cute_dialect.dialect.types import CuteType, IntTupleType
from cute_dialect.passes.emitter import rebuild

if TYPE_CHECKING:
    from cute_dialect.passes.expand_ops import ExpandContext


def _emit(ctx: ExpandContext, op: Operation) -> SSAValue:
    return ctx.emit(op).results[0]


def _slice(op: Operation, ctx: ExpandContext) -> None:
    tensor, coord = op.operands
    t, declared = tensor.type, op.results[0].type
    assert isinstance(t, TensorType) and isinstance(declared, TensorType) and isinstance(coord.type, CuteType)
    layout = _emit(ctx, views.GetLayoutOp(tensor))
    if isinstance(t.layout, ComposedLayout):
        bound = tracked(ctx.scalars_of(layout))
        where = tracked(ctx.scalars_of(coord))
        (result,) = algebra.SliceOp.infer([Typed("composed_layout", bound), Typed("coord", where)], {})
        offset = slice_offset(bound, where)
        part = rebuild(views.layout_type(declared.layout), result.payload, ctx.emitter)
        index = rebuild(_offset_type(offset), offset, ctx.emitter)
    else:
        part = _emit(ctx, algebra.SliceOp(layout, coord))
        index = _emit(ctx, sizes.Crd2IdxOp(coord, layout))
        proven = _offset_type(slice_offset(tracked(t.layout), tracked(coord.type.data)))
        if index.type != proven:
            # Ops on plain layouts track divisibility only if their operands carry it, unlike the op on the
            # tensor.
            index = _emit(ctx, views.AssumeOp(index, proven))
    moved = _emit(ctx, views.AddOffsetOp(_emit(ctx, views.GetIterOp(tensor)), index))
    ctx.replace(op, [_emit(ctx, views.MakeViewOp(moved, part, declared))])


def _offset_type(offset: IntTuple) -> IntTupleType:
    return IntTupleType(map_leaves(lambda x: Dyn(x.width, x.div) if isinstance(x, Dyn) else x, offset))


def _placed(op: Operation, ctx: ExpandContext) -> None:
    """Expand ``local_tile`` and similar ops by running their ``place`` method on run-time values."""
    from cute_dialect.dialect.tensors import PlacedOp  # late: start-up

    assert isinstance(op, PlacedOp)
    tensor = op.operands[0]
    declared = op.results[0].type
    assert isinstance(declared, TensorType)
    layout = tracked(ctx.scalars_of(_emit(ctx, views.GetLayoutOp(tensor))))
    assert isinstance(layout, Layout | ComposedLayout)
    new, offset = op.place(layout, [tracked(ctx.scalars_of(o)) for o in op.operands[1:]])
    it = _emit(ctx, views.GetIterOp(tensor))
    if offset is not None:
        it = _emit(ctx, views.AddOffsetOp(it, rebuild(_offset_type(offset), offset, ctx.emitter)))
    part = rebuild(views.layout_type(declared.layout), new, ctx.emitter)
    ctx.replace(op, [_emit(ctx, views.MakeViewOp(it, part, declared))])


def _recast_tensor(op: Operation, ctx: ExpandContext) -> None:
    from cute_dialect.dialect.tensors import recast  # late: start-up

    tensor = op.operands[0]
    t, declared = tensor.type, op.results[0].type
    assert isinstance(t, MemRefType) and isinstance(declared, MemRefType)
    layout = tracked(ctx.scalars_of(_emit(ctx, views.GetLayoutOp(tensor))))
    assert isinstance(layout, Layout | ComposedLayout)
    new = recast(t, layout, declared.element)
    it = _emit(ctx, views.RecastIterOp(_emit(ctx, views.GetIterOp(tensor)), PtrType(declared.data.ptr)))
    part = rebuild(views.layout_type(declared.layout), new, ctx.emitter)
    ctx.replace(op, [_emit(ctx, views.MakeViewOp(it, part, declared))])


def _lifted(op: Operation, ctx: ExpandContext) -> None:
    assert isinstance(op, CuteOp)
    tensor = op.operands[0]
    t = tensor.type
    assert isinstance(t, TensorType)
    declared = op.results[0].type
    if isinstance(declared, CuteType) and declared.is_static():
        ctx.replace(op, [rebuild(declared, declared.data, ctx.emitter)])
        return
    layout = _emit(ctx, views.GetLayoutOp(tensor))
    kind = "composed_layout" if isinstance(t.layout, ComposedLayout) else "layout"
    operands = [Typed(kind, tracked(ctx.scalars_of(layout)))]
    for o in op.operands[1:]:
        assert isinstance(o.type, CuteType)
        operands.append(Typed(o.type.kind, tracked(ctx.scalars_of(o))))
    (result,) = op.infer(operands, op.properties)
    if isinstance(declared, CuteType):
        ctx.replace(op, [ctx.rebuild(declared, result.payload)])
        return
    assert isinstance(declared, TensorType)
    assert isinstance(result.payload, Layout | ComposedLayout)
    part = ctx.rebuild(views.layout_type(declared.layout), result.payload)
    it = _emit(ctx, views.GetIterOp(tensor))
    ctx.replace(op, [_emit(ctx, views.MakeViewOp(it, part, declared))])


EXPANSIONS: Mapping[str, Callable[[Operation, ExpandContext], None]] = {
    **{op.name: _lifted for op in core_ops() if issubclass(op, CuteOp) and op.LIFT},
    "cute.slice": _slice,
    "cute.local_tile": _placed,
    "cute.local_partition": _placed,
    "cute.domain_offset": _placed,
    "cute.recast_tensor": _recast_tensor,
}
"""Expansions of layout ops whose first operand is a tensor, by op name."""


def on_layout_of_tensor(op: Operation) -> bool:
    """Return True for a ``slice`` or ``crd2idx`` on the layout of a tensor, as the expansion of a slice leaves them."""
    if op.name == "cute.slice":
        layout = op.operands[0]
    elif op.name == "cute.crd2idx":
        layout = op.operands[1]
    else:
        return False
    return isinstance(layout.owner, views.GetLayoutOp)
