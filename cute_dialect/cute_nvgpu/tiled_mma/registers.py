"""Reads and writes of the register operands of matrix instructions."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import VectorType, f16, f32, f64, i1, i8, i16, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.arch.atom import MmaAtom, Registers
from cute_dialect.cute_nvgpu.tiled_mma.types import MmaAtomType
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.passes.lowering.carried import cells_of
from cute_dialect.passes.lowering.fragments import Lane, Member
from cute_dialect.passes.lowering.packed import as_type, read_packed, register_bits, write_packed
from cute_dialect.passes.lowering.walk import Lowering

REGISTERS: Mapping[str, Attribute] = {
    "f16": f16,
    "f32": f32,
    "f64": f64,
    "i32": i32,
    "vector<2xf16>": VectorType(f16, [2]),
    "vector<4xi8>": VectorType(i8, [4]),
    "vector<2xi16>": VectorType(i16, [2]),
}


def row_of(op: Operation) -> tuple[MmaAtomType, MmaAtom]:
    """Return the atom of an instruction and its row in the table."""
    atom = op.properties["atom"]
    assert isinstance(atom, MmaAtomType)
    return atom, atom.row


def read_operand(low: Lowering, tensor: SSAValue, held: Registers) -> list[SSAValue]:
    """Return the values of a tensor, packed in the registers of an operand."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    if t.element == i1:
        return _read_bits(low, tensor, t)
    register = REGISTERS[held.mlir]
    if held.mlir.startswith("vector") and not _in_structs(low, tensor):
        # Cut a wide vector into words directly.
        return [as_type(low.build, word, register) for word in read_packed(low, tensor, None, i32)]
    return read_packed(low, tensor, None, register)


def _in_structs(low: Lowering, tensor: SSAValue) -> bool:
    view = low.views.get(tensor)
    return view is not None and isinstance(low.registers.cells[view.fragment][view.offset], Member)


def _read_bits(low: Lowering, tensor: SSAValue, t: MemRefType) -> list[SSAValue]:
    view = low.views.get(tensor)
    if view is None:
        raise AlgebraError(f"single-bit operands must stay in registers, but this one is in local memory: {t}")
    offsets = cells_of(t)
    cells = low.registers.cells[view.fragment]
    words: list[SSAValue] = []
    for start in range(0, len(offsets), 32):
        own = list(offsets[start : start + 32])
        first = cells[view.offset + own[0]]
        if isinstance(first, Lane) and first.number % 32 == 0:
            n = register_bits(first.vector.type)
            lanes = [Lane(first.vector, first.number + i) for i in range(32)]
            if n % 32 == 0 and [cells[view.offset + o] for o in own] == lanes:
                words.append(_word(low, first.vector, first.number // 32, n // 32))
                continue
        words.append(as_type(low.build, low.registers.read_vector(low.build, view, own), i32))
    return words


def _word(low: Lowering, vector: SSAValue, number: int, count: int) -> SSAValue:
    if count == 1:
        return as_type(low.build, vector, i32)
    return low.build.lane(as_type(low.build, vector, VectorType(i32, [count])), number)


def write_struct(low: Lowering, tensor: SSAValue, held: Registers, struct: SSAValue) -> None:
    """Write the result struct of an instruction to a tensor. Its cells become the struct members."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    view = low.views.get(tensor)
    if view is None:
        register = REGISTERS[held.mlir]
        registers = [low.build.extract(struct, (i,), register) for i in range(held.count)]
        write_packed(low, tensor, registers)
        return
    for i, o in enumerate(cells_of(t)):
        low.registers.write(view, o, Member(struct, i // held.values, i % held.values, held.values))
