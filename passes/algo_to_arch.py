"""``convert-cute-algo-to-arch``: lower tiled operations to per-thread accesses.

Removes ``atom``, ``make_tiled_copy``, ``tiled.copy.partition_*``, ``copy``, ``fill``, ``clear`` and
``make_fragment_like``.  Scalar arithmetic, views, element and vector accesses, and ``scf`` remain.

Example: ``partition_S`` of the block ``(16,128):(?,1)`` for thread ``%t`` under the thread-value layout
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

``copy`` becomes one access per vector of elements that is provably contiguous and aligned on both sides
(:mod:`.lowering.copying`).  A predicated vector is copied in one access if all its predicates hold, and otherwise
element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError, Leaf
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Layout
from cute_dialect.dialect import memory, tiled, views
from cute_dialect.dialect.atom_types import CopyAtomType, TiledCopyType
from cute_dialect.dialect.base import CuteOp
from cute_dialect.dialect.make import StaticOp
from cute_dialect.dialect.memory_types import MemRefType, PtrType, TensorType, element_bits
from cute_dialect.dialect.registry import module_of_atom, tile_of_op
from cute_dialect.dialect.tiled import UniversalCopyType
from cute_dialect.dialect.typed_values import Typed
from cute_dialect.dialect.types import CuteType, LayoutType
from cute_dialect.ir.editing import all_ops, make_op
from cute_dialect.passes.base import Pass, PassContext, PassError
from cute_dialect.passes.expand_ops import on_layout_of_tensor
from cute_dialect.passes.lowering import insertion
from cute_dialect.passes.lowering.copying import MAX_BITS, Plan, Side, first_mode, plain_layout, plan, side_of
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.thread_slices import missing_slices

_HELP = __doc__ or ""
"""Text of ``--help``: inside the class, ``__doc__`` would be the docstring of the class."""


class AlgoToArchPass(Pass):
    """Lower tiled copies, partitions, copies and fills to per-thread accesses."""

    name = "convert-cute-algo-to-arch"
    summary = "lower tiled copy, tiled mma and partitions to the atoms of an architecture"
    scope = "cute"
    description = _HELP

    def run(self, op: Operation, ctx: PassContext) -> None:
        values: list[Operation] = []
        _check_threads(op)
        for inner in all_ops(op):
            handler = handler_of(inner.name)
            if handler is None or (handler is _layout_op and not on_layout_of_tensor(inner)):
                continue
            try:
                handler(inner)
            except AlgebraError as e:
                raise PassError(f"cannot lower '{inner.name}': {e}", inner) from None
            values.append(inner)
        for inner in reversed(values):
            for result in inner.results:
                user = next(iter(result.uses), None)
                if user is not None:  # the type of an atom holds all its data, so no user may be left
                    raise PassError(
                        f"a value of type {result.type} may be used by copies and partitions only, "
                        f"but is used in '{user.operation.name}': create it where it is used",
                        user.operation,
                    )
            operands = list(inner.operands)
            inner.detach()
            inner.erase()
            for operand in operands:
                _erase_positions(operand)

    def legal_after(self, op: Operation) -> Iterable[Operation]:
        """Yield the remaining ops of the tiled layer."""
        for o in op.walk():
            handler = handler_of(o.name)
            if handler is not None and (handler is not _layout_op or on_layout_of_tensor(o)):
                yield o


def _erase_positions(value: SSAValue) -> None:
    """Erase the views of scale factors that nothing uses any more.

    An MMA encodes the position of its factors in a column of tensor memory, and addresses are those of whole columns.
    """
    t, owner = value.type, value.owner
    pointer = t.data.ptr if isinstance(t, MemRefType) else t.data if isinstance(t, PtrType) else None
    if pointer is None or element_bits(pointer.element) >= pointer.space.unit_bits:
        return
    for user in [use.operation for use in value.uses]:
        if isinstance(user, views.GetIterOp) and user.results[0].first_use is None:
            user.detach()
            user.erase()
    if value.first_use is not None:
        return
    if isinstance(owner, views.MakeViewOp | views.GetIterOp | views.AddOffsetOp | views.RecastIterOp):
        operands = list(owner.operands)
        owner.detach()
        owner.erase()
        for operand in operands:
            _erase_positions(operand)


def _check_threads(op: Operation) -> None:
    """Raise PassError if a tile needs more threads than the block of the kernel has."""
    for function in op.walk():
        if function.name == "gpu.func":
            for missing in missing_slices(function):
                raise PassError(
                    f"'{missing.op.name}' op: {missing.message}; use a larger "
                    "known_block_size, or partition the tile among fewer threads", missing.op,
                )  # fmt: skip


def _nothing(op: Operation) -> None:
    """Keep atoms and tiled copies, whose types hold all their data; the pass erases them at the end."""


def _layout_op(op: Operation) -> None:
    """Lower ``slice`` and ``crd2idx`` on the layout of a tensor, which ``cute-expand-ops`` keeps."""
    assert isinstance(op, CuteOp)
    site = InsertionPoint(op)
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


# ----------------------------------------------------------------------------------------------------------- partitions


def _partition(op: Operation) -> None:
    tc, tensor, tid = op.operands
    site = InsertionPoint(op)
    t, tiled_copy, declared = tensor.type, tc.type, op.results[0].type
    assert isinstance(t, TensorType) and isinstance(tiled_copy, TiledCopyType) and isinstance(declared, TensorType)
    it = site.emit(views.GetIterOp(tensor))
    layout = site.bound(site.emit(views.GetLayoutOp(tensor)))
    part, offset = tiled.partition(tiled_copy, t, layout, site.bound(tid), tiled.partition_side(op))
    moved = site.moved(it, offset)
    view = views.MakeViewOp(moved, site.make(views.layout_type(declared.layout), part), declared)
    op.results[0].replace_all_uses_with(site.emit(view))


# ------------------------------------------------------------------------------------------------------------ fragments


def _make_fragment_like(op: Operation) -> None:
    t = op.results[0].type
    assert isinstance(t, MemRefType)
    op.results[0].replace_all_uses_with(InsertionPoint(op).emit(memory.AllocaOp(t)))


def _fill(op: Operation) -> None:
    tensor, value = op.operands
    insertion.fill(InsertionPoint(op), tensor, value)


def _clear(op: Operation) -> None:
    insertion.clear(InsertionPoint(op), op.operands[0])


# ----------------------------------------------------------------------------------------------------------------- copy


class Accesses:
    """Emits the accesses of one copy.

    A single element is loaded and stored at its static linear coordinate, and a vector through a view.
    """

    def __init__(
        self, site: InsertionPoint, sides: Sequence[Side], plan: Plan, op: tiled.CopyOp, flag_of: Callable[[int], int]
    ):
        self.site = site
        self.sides = sides
        self.plan = plan
        self.op = op
        self.tensors = (op.source, op.destination)
        self.flag_of = flag_of
        self.lanes = [_index(x) for x in plan.lanes(2)]
        self._iters: list[SSAValue] = []
        if plan.width > 1:
            self._iters = [site.emit(views.GetIterOp(t)) for t in self.tensors]

    def move(self, step: Sequence[int]) -> None:
        """Copy one whole vector from source to destination."""
        if self.plan.width == 1:
            self._move_element(_index(self.plan.offset(step, 2)))
            return
        value = self.site.emit(memory.LoadVecOp(self._vector_view(0, step)))
        self.site.add(memory.StoreVecOp(value, self._vector_view(1, step)))

    def move_guarded(self, step: Sequence[int]) -> None:
        """Copy one predicated vector: in one access if all its predicates hold, and otherwise element by element."""
        site = self.site
        first = _index(self.plan.offset(step, 2))
        indices = [first + lane for lane in self.lanes]
        flags = [self._flag(i) for i in indices]
        distinct = list(dict.fromkeys(flags))
        together = distinct[0]
        for flag in distinct[1:]:
            together = site.emit(make_op(arith.AndIOp, [together, flag], [i1]))
        with site.if_(together) as other:
            self.move(step)
            if len(distinct) > 1:
                with site.block(other):
                    for flag, index in zip(flags, indices):
                        with site.if_(flag):
                            self._move_element(index)

    def _move_element(self, index: int) -> None:
        where = self.site.coordinate(index)
        value = self.site.emit(memory.LoadOp(self.tensors[0], where))
        self.site.add(memory.StoreOp(self.tensors[1], where, value))

    def _vector_view(self, side: int, step: Sequence[int]) -> SSAValue:
        if all(x == i for i, x in enumerate(self.plan.lanes(side))):
            layout = Layout(self.plan.width, 1)
        else:
            modes = [(m.extent, m.strides[side]) for m in self.plan.vector]
            layout = Layout(tuple(e for e, _ in modes), tuple(d for _, d in modes))
        moved = self.site.moved(self._iters[side], self.sides[side].place(self.plan.offset(step, side)))
        return self.site.emit(views.MakeViewOp(moved, self.site.static(LayoutType(layout))))

    def _flag(self, index: int) -> SSAValue:
        assert self.op.pred is not None
        pred, where = self.op.pred, self.flag_of(index)
        return self.site.once(("flag", where), lambda: memory.LoadOp(pred, self.site.coordinate(where)))


def _index(leaf: Leaf) -> int:
    assert isinstance(leaf, int)
    return leaf


CopyBy: TypeAlias = Callable[[tiled.CopyOp, CopyAtomType], None]
"""Lowers a copy with the atoms of a family.  The family's module defines it as ``copy``."""


def _copy(op: Operation) -> None:
    assert isinstance(op, tiled.CopyOp)
    site = InsertionPoint(op)
    atom = op.atom.type
    if isinstance(atom, TiledCopyType):
        atom = atom.atom
    assert isinstance(atom, CopyAtomType)
    if not isinstance(atom, UniversalCopyType):
        cast("CopyBy", import_module(module_of_atom(atom.name)).copy)(op, atom)
        return
    sides: list[Side] = []
    for tensor in (op.source, op.destination):
        t = tensor.type
        assert isinstance(t, MemRefType)
        static = is_static(t.layout)
        sides.append(side_of(t, t.layout if static else site.bound(site.emit(views.GetLayoutOp(tensor)))))
    one_flag = 1
    if op.pred is not None:
        t = op.pred.type
        assert isinstance(t, MemRefType)
        # A predicate tensor with one flag for all of mode 0: the flag depends only on the iteration of the
        # element.
        flags, elements = size(first_mode(plain_layout(t.layout))), size(first_mode(sides[1].layout))
        one_flag = _index(elements) // _index(flags)
    wanted = atom.data.bits
    chosen = plan(sides, wanted or MAX_BITS)
    needed = atom.values()
    if chosen.width != needed and wanted and not all(s.in_registers for s in sides):
        bits = chosen.width * wanted // needed
        raise PassError(
            f"the atom moves {wanted} bits at a time, but alignment and layouts prove accesses of {bits} bits only "
            f"(source {sides[0].type}, destination {sides[1].type})",
            op,
        )
    accesses = Accesses(site, sides, chosen, op, lambda i: i // one_flag)
    for step in chosen.steps():
        if op.pred is None:
            accesses.move(step)
        else:
            accesses.move_guarded(step)


def _tiled_copy(op: Operation) -> None:
    tc, source, destination, tid, *pred = op.operands
    site = InsertionPoint(op)
    made: list[Operation] = []
    parts = [source, destination]
    for i, (tensor, cls) in enumerate(((source, tiled.PartitionSOp), (destination, tiled.PartitionDOp))):
        if not (isinstance(tensor.type, MemRefType) and tensor.type.space.per_thread):
            made.append(site.add(cls(tc, tensor, tid)))
            parts[i] = made[-1].results[0]
    made.append(site.add(tiled.CopyOp(tc, parts[0], parts[1], *pred)))
    for new in made:
        _CORE[new.name](new)
    for new in reversed(made):
        new.detach()
        new.erase()


_CORE: Mapping[str, Callable[[Operation], None]] = {
    "cute.slice": _layout_op,
    "cute.crd2idx": _layout_op,
    "cute.atom": _nothing,
    "cute.make_tiled_copy": _nothing,
    "cute.tiled.copy.partition_S": _partition,
    "cute.tiled.copy.partition_D": _partition,
    "cute.make_fragment_like": _make_fragment_like,
    "cute.copy": _copy,
    "cute.tiled_copy": _tiled_copy,
    "cute.fill": _fill,
    "cute.clear": _clear,
}
"""Lowerings in place of core ops, by op name."""


@cache
def handler_of(name: str) -> Callable[[Operation], None] | None:
    """Return the function that lowers an op in place; ``None`` for ops that stay."""
    if name in _CORE:
        return _CORE[name]
    module = tile_of_op(name)
    if module is None:
        return None
    return cast("Mapping[str, Callable[[Operation], None]]", import_module(module).TO_ARCH).get(name)
