"""``convert-cute-algo-to-arch`` of copies by an atom: one arch op an instruction.

Each side is cut into pieces of the values a thread has in one instruction (:mod:`cute_dialect.ops.copy_checks`); the
op gets a view of one piece on each side::

    cute.copy(%at, %s, %r) : (!ldsm4, !cute.memref<f16, smem, "((8,1),2):((1,0),512)">, !cute.memref<f16, rmem, …>)

becomes two of::

    cute_nvgpu.arch.ldmatrix(%row, %regs) {atom = !ldsm4} : (!cute.memref<f16, smem, align<16>, "8:1">, …) -> ()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.layout import coalesce
from cute_dialect.algebra.leaf import Leaf, add
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout, raw_layout
from cute_dialect.memory_types import MemRefType, PtrType
from cute_dialect.nvgpu_copy_types import InstructionCopyType
from cute_dialect.ops import arch_copy, memory, tiled, views
from cute_dialect.ops.copy_checks import Pieces, check_copy, cut, outer_layout
from cute_dialect.passes.lowering.copying import MAX_BITS, Side, plan, side_of
from cute_dialect.passes.lowering.site import Site
from cute_dialect.types import LayoutType

_OPS = {
    "cp_async": arch_copy.CpAsyncOp,
    "ldmatrix": arch_copy.LdmatrixOp,
    "stmatrix": arch_copy.StmatrixOp,
    "movmatrix": arch_copy.MovmatrixOp,
    "shuffle": arch_copy.ShuffleOp,
    "shuffle_transpose": arch_copy.ShuffleOp,
}
"""How an atom is emitted -> its op."""


class _SidePieces:
    """Makes the view of one piece after the other of a side."""

    def __init__(self, site: Site, tensor: SSAValue, values: int):
        self.site = site
        t = tensor.type
        assert isinstance(t, MemRefType)
        layout: AnyLayout = t.layout
        if not is_static(layout):
            bound = site.bound(site.emit(views.GetLayoutOp(tensor)))
            assert isinstance(bound, Layout | ComposedLayout)
            layout = bound
        self.pieces: Pieces = cut(layout, values)
        piece = self.pieces.piece
        self.layout = coalesce(piece) if t.space == "rmem" else raw_layout(values, 1)
        self.iter = site.emit(views.GetIterOp(tensor))

    def view(self, number: int) -> SSAValue:
        """The tensor of one piece."""
        site = self.site
        offset: Leaf = self.pieces.offset(number)
        at = self.iter
        if not (isinstance(offset, int) and offset == 0):
            at = site.emit(views.AddOffsetOp(at, site.offset(offset)))
        assert isinstance(at.type, PtrType)
        return site.emit(views.MakeViewOp(at, site.static(LayoutType(self.layout))))


def lower_copy(op: tiled.CopyOp, atom: InstructionCopyType) -> None:
    """Put the instructions of a copy before ``op``.  Raises AlgebraError if its sides do not fit the atom."""
    site = Site(op)
    pred_type = None if op.pred is None else op.pred.type
    _, destination = check_copy(atom, op.source.type, op.destination.type, pred_type)
    source_side = _SidePieces(site, op.source, atom.side_values("src"))
    destination_side = _SidePieces(site, op.destination, atom.side_values("dst"))
    make = _OPS[atom.row().emit.kind]
    per_iteration = destination.counts[0]
    flags_per_iteration = per_iteration
    if op.pred is not None:
        assert isinstance(op.pred.type, MemRefType)
        shape = outer_layout(op.pred.type.layout).shape
        first = size(shape[0] if isinstance(shape, tuple) else shape)
        assert isinstance(first, int)
        flags_per_iteration = first
    for number in range(prod(destination.counts)):
        operands = [source_side.view(number), destination_side.view(number)]
        if op.pred is not None:
            where = number if flags_per_iteration == per_iteration else number // per_iteration
            operands.append(_flag(site, op.pred, where))
        site.add(make(atom, *operands))


def _flag(site: Site, pred: SSAValue, where: int) -> SSAValue:
    return site.once(("flag", where), lambda: memory.LoadOp(pred, site.coordinate(where)))


def _retile(op: Operation) -> None:
    site = Site(op)
    declared = op.results[0].type
    assert isinstance(declared, MemRefType)
    layout = site.static(views.layout_type(declared.layout))
    op.results[0].replace_all_uses_with(site.emit(views.MakeViewOp(site.emit(views.GetIterOp(op.operands[1])), layout)))


def _cooperative(op: Operation) -> None:
    """Accesses are numbered, contiguous ones first; thread ``t`` takes ``t``, ``t + threads``, …"""
    source, destination, tid = op.operands
    threads = op.properties["threads"]
    assert isinstance(threads, IntegerAttr)
    n = threads.value.data
    site = Site(op)
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
    """Tiled copies: all about them is in their types."""


HANDLERS: Mapping[str, Callable[[Operation], None]] = {
    "cute.make_tiled_copy_A": _nothing,
    "cute.make_tiled_copy_B": _nothing,
    "cute.make_tiled_copy_C": _nothing,
    "cute.make_tiled_copy_tv": _nothing,
    "cute.tiled.copy.retile": _retile,
    "cute.cooperative_copy": _cooperative,
}
"""Op name -> how it is lowered in place."""
