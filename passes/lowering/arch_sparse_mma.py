"""``cute-to-base`` of matrix instructions whose A is sparse: ``nvvm.mma.sp.sync`` where MLIR 22 carries the atom, else
an intrinsic::

    cute_nvgpu.arch.mma_sp(%d, %a, %b, %c, %e) {atom = !cute_nvgpu.atom.mma_sp<16x8x16, (f16,f16,f16,f16)>} : …
    →
    %s = arith.constant 0 : i32
    %r = nvvm.mma.sp.sync A[%a0, %a1] B[%b0, %b1] C[%c0, %c1] sparseMetadata[%e0] selector[%s] {orderedMetadata, …} : …
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import UnitAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.arch.atom import MmaAtom
from cute_dialect.passes.lowering.accumulators import struct_type
from cute_dialect.passes.lowering.arch_mma import REGISTERS, read_operand, row_of, write_struct
from cute_dialect.passes.lowering.packed import read_packed
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream import llvm, nvvm


def _mma_sp(low: Lowering, op: Operation) -> None:
    atom, row = row_of(op)
    d, a, b, c, e = op.operands
    parts = [read_operand(low, x, row.registers(o)) for x, o in ((a, "A"), (b, "B"), (c, "C"))]
    (metadata,) = read_packed(low, e, None, i32)
    selector = low.build.constant(atom.data.selector, i32)
    held = row.registers_d
    result = struct_type(REGISTERS[held.mlir], held.count)
    if row.emit.route == "op":
        make = _op(row, parts, metadata, selector, result)
    else:
        operands = [*[r for part in parts for r in part], metadata, selector]
        make = llvm.CallIntrinsicOp(row.emit.intrinsic, operands, result)
    write_struct(low, d, held, low.build.emit(make))


def _op(
    row: MmaAtom, parts: list[list[SSAValue]], metadata: SSAValue, selector: SSAValue, result: Attribute
) -> Operation:
    m, n, k = row.shape_mnk
    overflow = "satfinite" if row.emit["saturate"] else "wrapped"
    return nvvm.OPS["mma.sp.sync"](
        *parts,
        metadata,
        selector,
        shape=nvvm.nvvm_attr("shape", f"m = {m}, n = {n}, k = {k}"),
        multiplicandAPtxType=str(row.emit["type_a"]),
        multiplicandBPtxType=str(row.emit["type_b"]),
        orderedMetadata=UnitAttr(),
        intOverflowBehavior=overflow if row.d == "i32" else None,
        result_types=[result],
    )


HANDLERS: Mapping[str, Handler] = {"cute_nvgpu.arch.mma_sp": _mma_sp}
"""Op name -> how it is lowered."""
