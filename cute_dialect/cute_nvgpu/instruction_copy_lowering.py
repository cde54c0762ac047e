"""Lowering of copies that are one machine instruction: ``cp.async``, matrix copies and shuffles.

In ``convert-cute-algo-to-arch`` each side is cut into pieces, the values of one thread in one instruction. The arch op
gets a view of one piece of each side. For example,

    cute.copy(%at, %s, %r) : (!ldsm4, !cute.memref<f16, smem, "((8,1),2):((1,0),512)">, !cute.memref<f16, rmem, …>)

becomes two ops of the form

    cute_nvgpu.arch.ldmatrix(%row, %regs) {atom = !ldsm4} : (!cute.memref<f16, smem, align<16>, "8:1">, …) -> ()
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.layout import coalesce
from cute_dialect.algebra.leaf import Leaf
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout, raw_layout
from cute_dialect.cute_nvgpu.instruction_copy import (
    CopyInstructionOp,
    InstructionCopyType,
    MatrixCopyType,
    Pieces,
    ShuffleType,
    SimtAsyncCopyType,
    check_copy,
    cut,
    outer_layout,
)
from cute_dialect.dialect import memory, tiled, views
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import MemRefType, PtrType
from cute_dialect.dialect.registry import instruction_of_atom
from cute_dialect.dialect.types import LayoutType
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.packed import read_packed, write_packed
from cute_dialect.passes.lowering.types import pointer, struct
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream.nvvm import OPS, InlinePtxOp, LaneIdOp, ShflSyncOp, nvvm_attr


class SidePieces:
    """Builds the pointers to the pieces of one side, and their views."""

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
        contiguous = t.space.addressable and not t.space.per_thread
        self.layout = raw_layout(values, 1) if contiguous else coalesce(piece)
        self.iter = site.emit(views.GetIterOp(tensor))

    def pointer(self, number: int) -> SSAValue:
        """Return the pointer to one piece."""
        site = self.site
        offset: Leaf = self.pieces.offset(number)
        at = self.iter
        if not (isinstance(offset, int) and offset == 0):
            at = site.emit(views.AddOffsetOp(at, site.offset(offset)))
        assert isinstance(at.type, PtrType)
        return at

    def view(self, number: int) -> SSAValue:
        """Return the view of one piece."""
        return self.site.emit(views.MakeViewOp(self.pointer(number), self.site.static(LayoutType(self.layout))))


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
    source_side = SidePieces(site, op.source, atom.side_values("src"))
    destination_side = SidePieces(site, op.destination, atom.side_values("dst"))
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


def copy_atom(op: Operation) -> InstructionCopyType:
    atom = op.properties["atom"]
    assert isinstance(atom, InstructionCopyType)
    return atom


def memory_address(low: Lowering, tensor: SSAValue) -> SSAValue:
    """Return the swizzled address of the first element of a tensor in memory."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    base = low.build.part(low.value(tensor), (0,), pointer(t.space))
    return low.swizzled(base, t.data.ptr.swizzle)


def _cp_async(low: Lowering, op: Operation) -> None:
    atom = copy_atom(op)
    assert isinstance(atom, SimtAsyncCopyType)
    source, destination = memory_address(low, op.operands[0]), memory_address(low, op.operands[1])
    size = atom.data.bits // 8
    read: SSAValue | None = None
    if len(op.operands) == 3:
        # Number of bytes to read; the instruction zero-fills the other bytes of the destination.
        flag = low.value(op.operands[2])
        whole, none = low.build.constant(size, i32), low.build.constant(0, i32)
        read = low.build.once(("bytes", flag, size), lambda: arith.SelectOp(flag, whole, none))
    cache = nvvm_attr("load_cache_modifier", "ca" if atom.data.cache == "always" else "cg")
    low.build.add(OPS["cp.async.shared.global"](destination, source, read, size=size, modifier=cache))


def _matrix_attributes(atom: MatrixCopyType) -> dict[str, object]:
    """Return the properties of the nvvm op. Rows for bytes name their shape and the format in memory."""
    emit = dict(atom.row().emit.pieces)
    m, n = str(emit.get("shape", "m8n8"))[1:].split("n")
    kind = "b16" if "shape" not in emit else {"": "b8"}.get(str(emit["source"]), f"b8x16.{emit['source']}")
    return {
        "layout": nvvm_attr("mma_layout", "col" if atom.data.transposed else "row"),
        "shape": nvvm_attr("ld_st_matrix_shape", f"m = {m}, n = {n}"),
        "eltType": nvvm_attr("ld_st_matrix_elt_type", kind),
    }


def _rows_of_columns(low: Lowering, registers: list[SSAValue]) -> list[SSAValue]:
    """Permute the bytes of ``ldmatrix.m16n16``: from four rows of a column per register to two rows of two columns."""
    made: list[SSAValue] = []
    for first, second in zip(registers[::2], registers[1::2]):
        for selector in (0x5410, 0x7632):
            text = f"prmt.b32 $0, $1, $2, {selector:#x};"
            made.append(low.build.emit(InlinePtxOp(text, [first, second], results=(i32,))))
    return made


def _ldmatrix(low: Lowering, op: Operation) -> None:
    atom = copy_atom(op)
    assert isinstance(atom, MatrixCopyType)
    address = memory_address(low, op.operands[0])
    row = atom.row()
    assert row.registers is not None
    n = row.registers.count
    result = i32 if n == 1 else struct([i32] * n)
    attributes = _matrix_attributes(atom)
    loaded = low.build.emit(
        OPS["ldmatrix"](address, num=atom.data.matrices, result_types=[result], **attributes)  # type: ignore[arg-type]
    )
    registers = [loaded] if n == 1 else [low.build.extract(loaded, (i,), i32) for i in range(n)]
    if n > atom.data.matrices:
        registers = _rows_of_columns(low, registers)
    write_packed(low, op.operands[1], registers)


def _stmatrix(low: Lowering, op: Operation) -> None:
    atom = copy_atom(op)
    assert isinstance(atom, MatrixCopyType)
    registers = read_packed(low, op.operands[0])
    address = memory_address(low, op.operands[1])
    low.build.add(OPS["stmatrix"](address, registers, **_matrix_attributes(atom)))  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ register to register


def _movmatrix(low: Lowering, op: Operation) -> None:
    (register,) = read_packed(low, op.operands[0])
    moved = InlinePtxOp("movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", [register], results=(i32,))
    write_packed(low, op.operands[1], [low.build.emit(moved)])


def _shuffle(low: Lowering, op: Operation) -> None:
    atom = copy_atom(op)
    assert isinstance(atom, ShuffleType)
    build = low.build
    held = read_packed(low, op.operands[0])
    everyone, clamp = build.constant(-1, i32), build.constant(31, i32)
    distance = atom.data.transpose
    if distance == 0:
        zero = build.constant(0, i32)
        results = [build.emit(ShflSyncOp(everyone, held[0], zero, clamp, "idx", i32))]
    else:
        # A lane whose bit is set sends its first value and keeps the second; the other lanes send the second.
        lane = build.once("lane", lambda: LaneIdOp())
        n, zero = build.constant(distance, i32), build.constant(0, i32)
        bit = build.once(("and", lane, n), lambda: arith.AndIOp(lane, n))
        has = build.once(("has", bit), lambda: arith.CmpiOp(bit, zero, "ne"))
        first, second = held
        sent = build.emit(arith.SelectOp(has, first, second))
        got = build.emit(ShflSyncOp(everyone, sent, n, clamp, "bfly", i32))
        results = [build.emit(arith.SelectOp(has, got, first)), build.emit(arith.SelectOp(has, second, got))]
    write_packed(low, op.operands[1], results)


TO_BASE: Mapping[str, Handler] = {
    "cute_nvgpu.arch.cp_async": _cp_async,
    "cute_nvgpu.arch.ldmatrix": _ldmatrix,
    "cute_nvgpu.arch.stmatrix": _stmatrix,
    "cute_nvgpu.arch.movmatrix": _movmatrix,
    "cute_nvgpu.arch.shuffle": _shuffle,
}
"""Op name -> lowering function."""
