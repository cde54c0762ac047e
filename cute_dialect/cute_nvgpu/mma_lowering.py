"""``cute-to-base`` lowering of ``fma``, ``dp4a`` and ``mma.sync``: ``nvvm`` ops where MLIR 22 has them, else
intrinsics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import i16, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.arch.atom import MmaAtom
from cute_dialect.cute_nvgpu.tiled_mma_lowering import REGISTERS, read_operand, row_of, write_struct
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.passes.lowering.carried import struct_type
from cute_dialect.passes.lowering.fragments import bits_as
from cute_dialect.passes.lowering.packed import read_packed, write_packed
from cute_dialect.passes.lowering.types import lowered
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream import llvm, nvvm


def _write_one(low: Lowering, tensor: SSAValue, value: SSAValue) -> None:
    write_packed(low, tensor, [value])


def _fma(low: Lowering, op: Operation) -> None:
    _, row = row_of(op)
    d, *operands = op.operands
    element = lowered(cast("MemRefType", d.type).element)
    a, b, c = (read_packed(low, x, None, element)[0] for x in operands)
    if row.d == "i32":
        product = low.build.emit(arith.MuliOp(a, b))
        _write_one(low, d, low.build.emit(arith.AddiOp(product, c)))
        return
    _write_one(low, d, low.build.emit(llvm.OPS["intr.fma"](a, b, c, fastmathFlags="none", result_types=[element])))


def _dot_product(low: Lowering, op: Operation) -> None:
    _, row = row_of(op)
    d, a, b, c = op.operands
    operands: list[SSAValue] = []
    for tensor, held in ((a, row.registers_a), (b, row.registers_b)):
        t = REGISTERS[held.mlir]
        if not held.spare:
            operands += read_packed(low, tensor, None, t)
            continue
        # The instruction ignores the upper bytes of this register.
        two = read_packed(low, tensor, None, i16)[0]
        wide = low.build.emit(arith.ExtUIOp(two, i32))
        operands.append(bits_as(low.build, wide, t))
    accumulator = read_packed(low, c, None, i32)[0]
    signs = ["signed" if row.emit[f"type_{x}"] == "s32" else "unsigned" for x in "ab"]
    name = row.emit.nvvm.removeprefix("nvvm.")
    a_type, b_type = signs
    if name.endswith("2way"):
        make = nvvm.OPS[name](*operands, accumulator, a_type=a_type, b_type=b_type, b_hi=False, result_types=[i32])
    else:
        make = nvvm.OPS[name](*operands, accumulator, a_type=a_type, b_type=b_type, result_types=[i32])
    _write_one(low, d, low.build.emit(make))


def _mma_sync(low: Lowering, op: Operation) -> None:
    _, row = row_of(op)
    d, a, b, c = op.operands
    registers = [
        read_operand(low, x, h) for x, h in zip((a, b, c), (row.registers_a, row.registers_b, row.registers_c))
    ]
    held = row.registers_d
    result = struct_type(REGISTERS[held.mlir], held.count)
    if row.emit.route == "op":
        make: Operation = _mma_sync_op(row, registers, result)
    else:
        make = llvm.CallIntrinsicOp(row.emit.intrinsic, [r for part in registers for r in part], result)
    write_struct(low, d, held, low.build.emit(make))


def _mma_sync_op(row: MmaAtom, registers: list[list[SSAValue]], result: Attribute) -> Operation:
    integer = row.d == "i32" and not row.emit["bit_op"]
    bit_op = str(row.emit["bit_op"])
    a, b, c = registers
    return nvvm.MmaSyncOp(
        a,
        b,
        c,
        result,
        shape=row.shape_mnk,
        layout_a=str(row.emit["layout_a"]),
        layout_b=str(row.emit["layout_b"]),
        ptx_type_a=str(row.emit["type_a"]),
        ptx_type_b=str(row.emit["type_b"]),
        overflow=("satfinite" if row.emit["saturate"] else "wrapped") if integer else None,
        b1_op=f"{bit_op}_popc" if bit_op else None,
    )


TO_BASE: Mapping[str, Handler] = {
    "cute_nvgpu.arch.fma": _fma,
    "cute_nvgpu.arch.dot_product": _dot_product,
    "cute_nvgpu.arch.mma_sync": _mma_sync,
}
"""Op name -> lowering function."""
