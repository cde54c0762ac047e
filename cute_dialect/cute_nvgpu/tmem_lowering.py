"""Lowering of tensor memory to LLVM intrinsics ``llvm.nvvm.tcgen05.*``.

The ops of the nvvm dialect are not used: their verifier accepts only some of the chips. The result vector of a load is
written to the cells of a register tensor, so that its elements are extracted where they are read, after the wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import VectorType, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.arch.tmem import load_reduction
from cute_dialect.cute_nvgpu.instruction_copy_lowering import copy_atom
from cute_dialect.cute_nvgpu.sync import ArchOp
from cute_dialect.cute_nvgpu.sync_lowering import Lower, handler_of
from cute_dialect.cute_nvgpu.tmem import ROWS, TmemCopyType
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.fragments import Member
from cute_dialect.passes.lowering.packed import as_type, read_packed, value_offsets
from cute_dialect.passes.lowering.types import pointer, struct
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm

PREFIX = "llvm.nvvm.tcgen05."
"""Prefix of the intrinsics."""


def call(low: Lowering, name: str, operands: list[SSAValue], result: Attribute | None = None) -> Operation:
    """Emit a call of ``llvm.nvvm.tcgen05.NAME``."""
    return low.build.add(llvm.CallIntrinsicOp(PREFIX + name, operands, result))


def _alloc(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    columns = low.build.constant(op.number("columns"), i32)
    call(low, f"alloc.shared.cg{op.number('cta_group')}", [*operands, columns])


def _relinquish(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    call(low, f"relinq.alloc.permit.cg{op.number('cta_group')}", [])


def _address(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
    return low.build.emit(make_op(llvm.OPS["inttoptr"], operands, [pointer(AddressSpace.tmem)]))


def _pointer(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> SSAValue:
    return _address(low, op, [low.build.load(operands[0], i32, 4)])


def _dealloc(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    columns = low.build.constant(op.number("columns"), i32)
    call(low, f"dealloc.cg{op.number('cta_group')}", [*operands, columns])


def _wait(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    call(low, "wait.ld" if op.word("kind") == "load" else "wait.st", [])


_LOWER: Mapping[str, Lower] = {
    "tmem_alloc": _alloc,
    "tmem_relinquish": _relinquish,
    "tmem_pointer": _pointer,
    "tmem_address": _address,
    "tmem_dealloc": _dealloc,
    "tmem_wait": _wait,
}


def tmem_address(low: Lowering, tensor: SSAValue) -> SSAValue:
    """Return the address of the first element of a tensor in tensor memory."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    return low.build.part(low.value(tensor), (0,), pointer(AddressSpace.tmem))


def _parts(low: Lowering, op: Operation) -> tuple[str, list[SSAValue], SSAValue, Attribute]:
    """Return the intrinsic, the column offset if it has one, the flag of packed accesses, and the type of the words."""
    atom = copy_atom(op)
    assert isinstance(atom, TmemCopyType)
    row = atom.row()
    held = row.registers
    assert held is not None
    split = [low.build.constant(int(row.emit["split"]), i64)] if row.emit["shape"] == "16x32bx2" else []
    t: Attribute = i32 if held.count == 1 else VectorType(i32, [held.count])
    return row.emit.intrinsic.removeprefix(PREFIX), split, low.build.constant(int(atom.data.packed), i1), t


def _load(low: Lowering, op: Operation) -> None:
    name, split, packed, t = _parts(low, op)
    tensor = op.operands[1]
    view, held = low.views.get(tensor), tensor.type
    assert isinstance(held, MemRefType)
    if view is None:
        raise PassError(
            "the result of tmem_load must stay in registers, but this tensor had to be placed in local memory", op
        )
    loaded = call(low, name, [tmem_address(low, op.operands[0]), *split, packed], t).results[0]
    per = 32 // element_bits(held.element)
    for i, o in enumerate(value_offsets(held)):
        low.registers.write(view, o, Member(loaded, i // per, i % per, per))


def _load_red(low: Lowering, op: Operation) -> None:
    """Lower a load with a reduction, which has no intrinsic, to inline PTX. All results are 32-bit registers."""
    atom = copy_atom(op)
    assert isinstance(atom, TmemCopyType)
    _, values, reduced = op.operands
    views = [low.views.get(tensor) for tensor in (values, reduced)]
    if None in views:
        raise PassError(
            "the results of tmem_load_red must stay in registers, but a tensor had to be placed in local memory", op
        )
    key = atom.data
    n = key.repetitions
    name = load_reduction(key.shape, n, key.reduction, str(key.element))
    registers, split = ", ".join(f"${i}" for i in range(n)), f", {n}" if key.shape == "16x32bx2" else ""
    text = f"{name} {{{registers}}}, ${n}, [${n + 1}]{split};"
    address = low.build.emit(make_op(llvm.OPS["ptrtoint"], [tmem_address(low, op.operands[0])], [i32]))
    constraints = ",".join([*["=r"] * (n + 1), "r"])
    made = low.build.emit(
        llvm.InlineAsmOp(text, constraints, [address], struct([i32] * (n + 1)), has_side_effects=True)
    )
    held = values.type
    assert isinstance(held, MemRefType)
    for i, o in enumerate(value_offsets(held)):
        low.registers.write(views[0], o, Member(made, i, 0, 1))  # type: ignore[arg-type]
    low.registers.write(views[1], 0, Member(made, n, 0, 1))  # type: ignore[arg-type]


def _store(low: Lowering, op: Operation) -> None:
    name, split, packed, t = _parts(low, op)
    words = read_packed(low, op.operands[0])
    value = words[0] if len(words) == 1 else as_type(low.build, low.build.vector(words), t)
    call(low, name, [tmem_address(low, op.operands[1]), *split, value, packed])


def _keep(op: Operation) -> None:
    """Keep a tiled copy, whose type describes it completely."""


TO_ARCH: Mapping[str, Callable[[Operation], None]] = {"cute.make_tmem_copy": _keep}
"""Op name -> function that lowers it in place."""

TO_BASE: Mapping[str, Handler] = {
    **{f"cute_nvgpu.arch.{row.name}": handler_of(_LOWER[row.name]) for row in ROWS},
    "cute_nvgpu.arch.tmem_load": _load,
    "cute_nvgpu.arch.tmem_load_red": _load_red,
    "cute_nvgpu.arch.tmem_store": _store,
}
"""Op name -> lowering function."""
