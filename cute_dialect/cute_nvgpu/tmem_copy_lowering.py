"""Lowering of copies from shared to tensor memory to ``llvm.nvvm.tcgen05.cp.*``.

In ``convert-cute-algo-to-arch``, ``cute.copy`` becomes one ``tmem_copy`` per instruction. The matrix descriptor of the
source is that of rows without a swizzle: 8 rows of 16 bytes are 128 consecutive bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from cute_dialect.algebra.evaluation import size
from cute_dialect.arch.tmem import SHARED_COPIES
from cute_dialect.cute_nvgpu.instruction_copy import check_copy
from cute_dialect.cute_nvgpu.instruction_copy_lowering import SidePieces
from cute_dialect.cute_nvgpu.sync import ArchOp, build, op_of
from cute_dialect.cute_nvgpu.sync_lowering import Lower, handler_of
from cute_dialect.cute_nvgpu.tmem_copy import OPS, ROWS, SharedCopyType
from cute_dialect.cute_nvgpu.tmem_lowering import call
from cute_dialect.dialect import tiled
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream import llvm


def copy(op: tiled.CopyOp, atom: CopyAtomType) -> None:
    """Lower a ``cute.copy`` to one ``tmem_copy`` per instruction."""
    assert isinstance(atom, SharedCopyType)
    site = InsertionPoint(op)
    _, destination = check_copy(atom, op.source.type, op.destination.type, None if op.pred is None else op.pred.type)
    source, target = (SidePieces(site, side, atom.values()) for side in (op.source, op.destination))
    made = op_of(OPS, "tmem_copy")
    group = atom.data.cta_group
    for number in range(prod(destination.counts)):
        operands = [target.pointer(number), source.pointer(number)]
        site.add(build(made, *operands, shape=atom.data.shape, cta_group=None if group == 1 else group))


def _copy(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    target, source = operands
    base, shape = low.build, SHARED_COPIES[op.word("shape")]
    rows = size(shape.lanes)
    assert isinstance(rows, int)
    # The leading byte offset separates the units of a row; instructions with rows of 16 bytes do not use it.
    leading = rows if shape.row_bytes == 32 else 1
    fixed = 1 << 46 | 128 >> 4 << 32 | leading << 16
    address = base.emit(make_op(llvm.OPS["ptrtoint"], [source], [i32]))
    start = base.emit(
        arith.ShRUIOp(base.emit(arith.AndIOp(address, base.constant(0x3FFFF, i32))), base.constant(4, i32))
    )
    word = base.emit(arith.OrIOp(base.emit(arith.ExtUIOp(start, i64)), base.constant(fixed, i64)))
    call(low, f"cp.{shape.name}.cg{op.number('cta_group')}", [target, word])


_LOWER: Mapping[str, Lower] = {"tmem_copy": _copy}

TO_BASE: Mapping[str, Handler] = {f"cute_nvgpu.arch.{row.name}": handler_of(_LOWER[row.name]) for row in ROWS}
"""Op name -> lowering function."""
