"""``convert-cute-algo-to-arch`` lowering of copies with an instruction atom: one arch op per instruction.

Each side is cut into pieces, the values of one thread in one instruction (:mod:`.checks`). The arch op gets a view of
one piece of each side. For example,

    cute.copy(%at, %s, %r) : (!ldsm4, !cute.memref<f16, smem, "((8,1),2):((1,0),512)">, !cute.memref<f16, rmem, …>)

becomes two ops of the form

    cute_nvgpu.arch.ldmatrix(%row, %regs) {atom = !ldsm4} : (!cute.memref<f16, smem, align<16>, "8:1">, …) -> ()
"""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.layout import coalesce
from cute_dialect.algebra.leaf import Leaf
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout, raw_layout
from cute_dialect.cute_nvgpu.instruction_copy.checks import Pieces, check_copy, cut, outer_layout
from cute_dialect.cute_nvgpu.instruction_copy.ops import CopyInstructionOp
from cute_dialect.cute_nvgpu.instruction_copy.types import InstructionCopyType
from cute_dialect.dialect import memory, tiled, views
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import MemRefType, PtrType
from cute_dialect.dialect.registry import instruction_of_atom
from cute_dialect.dialect.types import LayoutType
from cute_dialect.passes.lowering.insertion import InsertionPoint


class _SidePieces:
    """Builds the views of the pieces of one side."""

    def __init__(self, site: InsertionPoint, tensor: SSAValue, values: int):
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
        self.layout = coalesce(piece) if t.space.per_thread else raw_layout(values, 1)
        self.iter = site.emit(views.GetIterOp(tensor))

    def view(self, number: int) -> SSAValue:
        """Return the view of one piece."""
        site = self.site
        offset: Leaf = self.pieces.offset(number)
        at = self.iter
        if not (isinstance(offset, int) and offset == 0):
            at = site.emit(views.AddOffsetOp(at, site.offset(offset)))
        assert isinstance(at.type, PtrType)
        return site.emit(views.MakeViewOp(at, site.static(LayoutType(self.layout))))


def copy(op: tiled.CopyOp, atom: CopyAtomType) -> None:
    """Lower a ``cute.copy`` to one op per instruction, as the record of the atom's family specifies.

    Raises AlgebraError if the sides do not fit the atom.
    """
    assert isinstance(atom, InstructionCopyType)
    make = instruction_of_atom(atom.name)
    assert issubclass(make, CopyInstructionOp)
    site = InsertionPoint(op)
    pred_type = None if op.pred is None else op.pred.type
    _, destination = check_copy(atom, op.source.type, op.destination.type, pred_type)
    source_side = _SidePieces(site, op.source, atom.side_values("src"))
    destination_side = _SidePieces(site, op.destination, atom.side_values("dst"))
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


def _flag(site: InsertionPoint, pred: SSAValue, where: int) -> SSAValue:
    return site.once(("flag", where), lambda: memory.LoadOp(pred, site.coordinate(where)))
