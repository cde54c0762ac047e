"""``cute-to-base`` lowering of ``fma``, ``dp4a`` and ``mma.sync``: ``nvvm`` ops where MLIR 22 has them, else
intrinsics.  The instructions of sm_120 become inline PTX.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import i8, i16, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.arch.atom import MmaAtom
from cute_dialect.cute_nvgpu.tiled_mma_lowering import REGISTERS, read_operand, row_of, write_struct
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.passes.lowering.carried import struct_type
from cute_dialect.passes.lowering.fragments import bits_as
from cute_dialect.passes.lowering.packed import read_packed, value_offsets, write_packed
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
    if row.emit.kind == "narrow_mma":
        narrow_mma(low, op, row)
        return
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


def narrow_mma(low: Lowering, op: Operation, row: MmaAtom, metadata: tuple[SSAValue, int] | None = None) -> None:
    """Lower an instruction of sm_120 to inline PTX.

    Args:
        low: the lowering.
        op: the instruction, with the operands D, A, B, C, and last SFA and SFB if the atom has them.
        row: the row of the atom.
        metadata: the register of a sparse A, and the selector.
    """
    d, a, b, c = op.operands[:4]
    held = row.registers_d
    operands: list[SSAValue] = []
    names: dict[str, str] = {"$d": _braced(range(held.count))}

    def add(name: str, registers: list[SSAValue], braced: bool = True) -> None:
        first = held.count + len(operands)
        names[name] = _braced(range(first, first + len(registers))) if braced else f"${first}"
        operands.extend(registers)

    for name, tensor, registers in (("$a", a, row.registers_a), ("$b", b, row.registers_b), ("$c", c, row.registers_c)):
        add(name, read_operand(low, tensor, registers))
    if metadata is not None:
        add("$e", [metadata[0]], braced=False)
        names["$selector"] = str(metadata[1])
    if row.scales is not None:
        for side, tensor in zip("ab", op.operands[-2:]):
            word, byte = read_factors(low, tensor)
            add(f"$sf{side}", [word], braced=False)
            names |= {f"$byte_{side}": str(byte), f"$thread_{side}": "0"}
    text = re.sub(r"\$[a-z_]+", lambda found: names[found[0]], row.ptx)
    letters = [f"={held.constraint}"] * held.count
    letters += [row.registers(x).constraint for x in "ABC" for _ in range(row.registers(x).count)]
    letters += ["r"] * (held.count + len(operands) - len(letters))
    result = struct_type(REGISTERS[held.mlir], held.count)
    write_struct(
        low, d, held, low.build.emit(llvm.InlineAsmOp(text, ",".join(letters), operands, result, has_side_effects=True))
    )


def _braced(numbers: range) -> str:
    return "{" + ", ".join(f"${i}" for i in numbers) + "}"


def read_factors(low: Lowering, tensor: SSAValue) -> tuple[SSAValue, int]:
    """Return the register that holds the scale factors of a tensor, and the byte of the first one.

    The four bytes of an aligned word of a fragment are read together, and instructions select theirs.
    """
    t = tensor.type
    assert isinstance(t, MemRefType)
    view = low.views.get(tensor)
    at = value_offsets(t)
    n = len(at)
    if n == 4:
        return read_packed(low, tensor, None, i32)[0], 0
    together = at == list(range(at[0], at[0] + n))
    if view is not None and together:
        byte = (view.offset + at[0]) % 4
        first = view.offset + at[0] - byte
        cells = low.registers.cells[view.fragment]
        if byte + n <= 4 and first + 4 <= len(cells) and all(cell is not None for cell in cells[first : first + 4]):
            offsets = [o - view.offset for o in range(first, first + 4)]
            return read_packed(low, tensor, offsets, i32)[0], byte
    narrow = read_packed(low, tensor, None, i8 if n == 1 else i16)[0]
    return low.build.emit(arith.ExtUIOp(narrow, i32)), 0


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
