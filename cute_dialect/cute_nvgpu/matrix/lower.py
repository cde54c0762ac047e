"""``cute-to-base`` lowering of ``ldmatrix``, ``stmatrix`` and ``movmatrix``."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation

from cute_dialect.cute_nvgpu.instruction_copy.lower import copy_atom, memory_address
from cute_dialect.cute_nvgpu.matrix.types import MatrixCopyType
from cute_dialect.passes.lowering.packed import read_packed, write_packed
from cute_dialect.passes.lowering.types import struct
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream.nvvm import OPS, InlinePtxOp, nvvm_attr


def _matrix_attributes(atom: MatrixCopyType) -> dict[str, object]:
    return {
        "layout": nvvm_attr("mma_layout", "col" if atom.data.transposed else "row"),
        "shape": nvvm_attr("ld_st_matrix_shape", "m = 8, n = 8"),
        "eltType": nvvm_attr("ld_st_matrix_elt_type", "b16"),
    }


def _ldmatrix(low: Lowering, op: Operation) -> None:
    atom = copy_atom(op)
    assert isinstance(atom, MatrixCopyType)
    address = memory_address(low, op.operands[0])
    n = atom.data.matrices
    result = i32 if n == 1 else struct([i32] * n)
    loaded = low.build.emit(
        OPS["ldmatrix"](address, num=n, result_types=[result], **_matrix_attributes(atom))  # type: ignore[arg-type]
    )
    registers = [loaded] if n == 1 else [low.build.extract(loaded, (i,), i32) for i in range(n)]
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


HANDLERS: Mapping[str, Handler] = {
    "cute_nvgpu.arch.ldmatrix": _ldmatrix,
    "cute_nvgpu.arch.stmatrix": _stmatrix,
    "cute_nvgpu.arch.movmatrix": _movmatrix,
}
"""Op name -> lowering function."""
