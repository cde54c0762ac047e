"""``cute-expand-ops``: expand the ops of the layout algebra to scalar arithmetic.

The pass walks forward once.  An op with static result types becomes ``cute.static``.  For any other op, it binds the
dynamic leaves of the operands to ``cute.get_scalars`` and runs the op's type inference again over the bound payloads.
The inference emits arithmetic for values unknown at compile time.  The results are then rebuilt from scalars.

Before::

    func.func @g(%a: !cute.layout<"(?,8):(8,1)">, %c: !cute.coord<"(?,3)">) -> !cute.int_tuple<"?"> {
      %i = cute.layout_eval(%c, %a) : (!cute.coord<"(?,3)">, !cute.layout<"(?,8):(8,1)">) -> !cute.int_tuple<"?">
      return %i : !cute.int_tuple<"?">
    }

After::

    func.func @g(%a: !cute.layout<"(?,8):(8,1)">, %c: !cute.coord<"(?,3)">) -> !cute.int_tuple<"?"> {
      %0 = cute.get_scalars<{only_dynamic}> (%c) : !cute.coord<"(?,3)">
      %1 = cute.get_scalars<{only_dynamic}> (%a) : !cute.layout<"(?,8):(8,1)">
      %2 = arith.constant 8 : i32
      %3 = arith.muli %0, %2 overflow<nsw> : i32
      %4 = arith.constant 3 : i32
      %5 = arith.addi %3, %4 overflow<nsw> : i32
      %i = cute.make_int_tuple(%5) : (i32) -> !cute.int_tuple<"?">
      return %i : !cute.int_tuple<"?">
    }

Ten ops of the core dialect remain (:data:`SURVIVING`), and the memory ops without an expansion.  Types and signatures
do not change.

**Tensor ops.** A slice is split into its layout and its offset::

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from xdsl.dialects.builtin import IntegerType, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from cute_dialect.algebra.leaf import AlgebraError, Dyn, width_of
from cute_dialect.algebra.trees import map_leaves
from cute_dialect.algebra.values import ComposedLayout, IntTuple, Layout
from cute_dialect.dialect import algebra, sizes, views
from cute_dialect.dialect.access import ALIASES, GetScalarsOp, scalar_payloads
from cute_dialect.dialect.arith import ComparisonOp, EqualOp
from cute_dialect.dialect.base import CuteOp
from cute_dialect.dialect.memory_types import MemRefType, PtrType, TensorType, is_tensor
from cute_dialect.dialect.registry import core_ops
from cute_dialect.dialect.tensor_lifting import slice_offset
from cute_dialect.dialect.typed_values import Typed, dynamic_leaves, track, tracked
from cute_dialect.dialect.types import CuteType, IntTupleType, Payload
from cute_dialect.ir.editing import make_op
from cute_dialect.ir.xdsl_compat import insert_op
from cute_dialect.passes.base import Pass, PassContext, PassError
from cute_dialect.passes.emitter import ArithEmitter, bind, constant, integer, rebuild, static
from cute_dialect.passes.fold_static import comparison


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


_HELP = __doc__ or ""
"""Text of ``--help``: inside the class, ``__doc__`` would be the docstring of the class."""

SURVIVING = frozenset(
    f"cute.{name}"
    for name in (
        "static", "print", "get_scalars", "make_int_tuple", "make_shape", "make_stride", "make_coord", "make_tile",
        "make_layout", "make_composed_layout",
    )
)  # fmt: skip
"""Core ops that remain for ``cute-to-base``."""

ONLY_DYNAMIC = {"only_dynamic": UnitAttr()}


class ExpandOpsPass(Pass):
    """Expand the ops of the layout algebra to arithmetic on scalars."""

    name = "cute-expand-ops"
    summary = "expand algebra ops to scalar arithmetic"
    scope = "cute"
    description = _HELP

    def run(self, op: Operation, ctx: PassContext) -> None:
        expand = ExpandContext(ctx)
        for region in op.regions:
            for block in region.blocks:
                expand.block(block)

    def legal_after(self, op: Operation) -> Iterable[Operation]:
        """Yield core ops not in :data:`SURVIVING`, and tensor ops that have an expansion."""
        table = expansions()
        for o in op.walk():
            if o is not op and o.name in table and not on_layout_of_tensor(o):
                yield o


class ExpandContext:
    """State of an expansion: the current op and the insertion point."""

    def __init__(self, ctx: PassContext):
        self.pass_context = ctx
        self.emitter = ArithEmitter(self.emit, self._constant)
        self._op: Operation | None = None
        self._constants: dict[tuple[int, Attribute], SSAValue] = {}
        self._scalars: dict[SSAValue, Sequence[SSAValue]] = {}
        self._expansions = expansions()

    def block(self, block: Block) -> None:
        """Expand all ops of a block and its nested regions, in order."""
        op = block.first_op
        while op is not None:
            following = op.next_op
            for region in op.regions:
                for inner in region.blocks:
                    self.block(inner)
            handler = self._expansions.get(op.name)
            if handler is not None:
                self._op = op
                self._constants.clear()
                self._scalars.clear()
                try:
                    handler(op, self)
                except AlgebraError as e:
                    raise PassError(f"cannot expand '{op.name}': {e}", op) from None
                self.pass_context.count("ops expanded")
            op = following

    # ------------------------------------------------------------------------------------------------- for expansions

    def emit(self, op: Operation) -> Operation:
        """Insert an op before the current one, with its location."""
        assert self._op is not None
        op.location = self._op.location
        insert_op(op, self._op)
        return op

    def scalars_of(self, value: SSAValue) -> Payload:
        """Bind the dynamic leaves of a value's payload to its scalars, with one ``cute.get_scalars`` per op."""
        value_type = value.type
        assert isinstance(value_type, CuteType)
        if value_type.is_static():
            return value_type.data
        scalars = self._scalars.get(value)
        if scalars is None:
            types = [integer(d.width) for d in dynamic_leaves(value_type.data)]
            op = make_op(GetScalarsOp, [value], types, ONLY_DYNAMIC)
            scalars = self._scalars[value] = self.emit(op).results
        return bind(value_type.data, scalars, self.emitter)

    def rebuild(self, declared: CuteType, payload: Payload) -> SSAValue:
        """Create a value of the declared type from a payload with bound leaves."""
        return rebuild(declared, payload, self.emitter)

    def replace(self, op: Operation, values: Sequence[SSAValue]) -> None:
        """Replace the results of ``op`` by ``values`` of the same types, and erase ``op``."""
        for old, new in zip(op.results, values, strict=True):
            assert old.type == new.type, f"{op.name}: expected {old.type}, got {new.type}"
            if new.name_hint is None:
                new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        block = op.parent
        assert block is not None
        block.erase_op(op)

    def _constant(self, value: int, type: Attribute) -> SSAValue:
        known = self._constants.get((value, type))
        if known is None:
            assert isinstance(type, IntegerType)
            op = constant(value, type.bitwidth)
            known = self._constants[value, type] = self.emit(op).results[0]
        return known


Expansion = Callable[[Operation, ExpandContext], None]
"""Replaces one op: emits ops before it, then calls :meth:`ExpandContext.replace`."""


@cache
def expansions() -> Mapping[str, Expansion]:
    """Return the expansion functions by op name."""
    table: dict[str, Expansion] = dict(EXPANSIONS)
    for op in (*core_ops(), *ALIASES):
        if op.name not in SURVIVING:
            table[op.name] = _expand_comparison if issubclass(op, ComparisonOp) else _expand_core
    return table


def _expand_core(op: Operation, ctx: ExpandContext) -> None:
    assert isinstance(op, CuteOp)
    if op.LIFT and is_tensor(op.operands[0].type):
        EXPANSIONS[op.name](op, ctx)
        return
    declared = [t for t in op.result_types if isinstance(t, CuteType)]
    assert len(declared) == len(op.results)
    if all(t.is_static() for t in declared):
        ctx.replace(op, [static(t, ctx.emitter) for t in declared])
        return
    operands: list[Typed] = []
    for value in op.operands:
        assert isinstance(value.type, CuteType)
        operands.append(Typed(value.type.kind, ctx.scalars_of(value)))
    results = op.infer(track(operands), op.properties)
    ctx.replace(op, [ctx.rebuild(t, r.payload) for t, r in zip(declared, results, strict=True)])


def _skeleton(payload: Payload) -> Payload:
    """Replace every integer of a payload by 0: two values can be equal only if their skeletons are."""
    return map_leaves(lambda _: 0, payload)


def _expand_comparison(op: Operation, ctx: ExpandContext) -> None:
    """Compare all scalars of both sides pairwise, and combine the results from left to right with ``and``."""
    known = comparison(op)
    lhs, rhs = op.operands
    assert isinstance(lhs.type, CuteType) and isinstance(rhs.type, CuteType)
    is_equal = isinstance(op, EqualOp)
    if known is None and is_equal and _skeleton(lhs.type.data) != _skeleton(rhs.type.data):
        known = False
    if known is not None:
        ctx.replace(op, [ctx.emitter.constant(int(known), 1)])
        return
    sides: list[list[Dyn]] = []
    for value in (lhs, rhs):
        assert isinstance(value.type, CuteType)
        widths = [width_of(s) for s in scalar_payloads(value.type.data)]
        scalars = ctx.emit(make_op(GetScalarsOp, [value], [integer(w) for w in widths])).results
        sides.append([Dyn(w, 0, s, ctx.emitter) for w, s in zip(widths, scalars, strict=True)])
    answer: SSAValue | None = None
    for a, b in zip(*sides, strict=True):
        test = ctx.emitter.compare("eq" if is_equal else "slt", a, b, max(a.width, b.width))
        if answer is None:
            answer = test
        else:
            answer = ctx.emitter.binary("and", Dyn(1, 0, answer), Dyn(1, 0, test), 1)
    ctx.replace(op, [ctx.emitter.constant(1, 1) if answer is None else answer])
