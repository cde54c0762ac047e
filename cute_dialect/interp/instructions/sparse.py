"""`mma.sp::ordered_metadata`: warp-level MMA with a sparse A, as an op and as inline PTX.

Fragment layouts come from the table of atoms (PTX ISA 9.0, 9.7.14.6). A is expanded to its full K using the metadata of
the threads that the selector picks; invalid metadata bits are a fault. The arithmetic is that of `matrix`: products and
their sum in f64 (integers exactly), plus C, rounded once.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.compiler.cfg import segments
from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.compiler.steps import Step
from cute_dialect.interp.errors import Fault, InterpError, attr_of
from cute_dialect.interp.instructions.matrix import decode, shape_of, whole_warps
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.instructions.ptx_text import Statement, Text
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.machine.sparse_metadata import expand, positions, words_of
from cute_dialect.interp.types import Leaf, int_leaf
from cute_dialect.interp.values import Array, Regs, active_uniform, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.arch.atom import MmaAtom

_I32 = int_leaf(32)


class Registers(NamedTuple):
    """Slots of the operands and results; `selector` is a slot too."""

    a: list[int]
    b: list[int]
    c: list[int]
    e: int
    selector: int
    outs: list[int]


def _tile(row: MmaAtom, operand: str, values: Array) -> Array:
    """Convert fragments `(warps, 32, values)` to a matrix `(warps, rows, columns)`."""
    rows, columns = row.tile(operand)
    flat = np.zeros((values.shape[0], rows * columns), values.dtype)
    flat[:, positions(row.layout(operand))] = values
    return flat.reshape(-1, columns, rows).transpose(0, 2, 1)


def compile_mma(c: FnCompiler, row: MmaAtom, used: Registers) -> Step:
    """Return the step of one MMA."""
    held = row.metadata
    assert held is not None
    m, _, _ = row.shape_mnk
    kinds = (str(row.emit["type_a"]), str(row.emit["type_b"]))
    exact = np.int64 if row.d == "i32" else np.float64
    leaves: list[list[Leaf]] = [[c.leaf_of(s) for s in part] for part in (used.a, used.b, used.c, used.outs)]
    c.fn.collective = True

    def operand(R: Regs, g: Group, name: str, slots: list[int], kind: str, own: list[Leaf]) -> Array:
        parts = [decode(R[s], leaf, kind, g) for s, leaf in zip(slots, own)]
        return _tile(row, name, np.concatenate(parts, axis=2).astype(exact))

    def step(R: Regs, g: Group) -> None:
        warps = g.lanes // 32
        if g.mask.n:
            whole_warps(g, "mma.sp")
        selector = int(active_uniform(R[used.selector], g.mask, "the sparsity selector")) if g.mask.n else 0
        if not 0 <= selector < held.selectors:
            raise Fault("argument", f"mma.sp: the sparsity selector must be 0 to {held.selectors - 1}, got {selector}")
        a = operand(R, g, "A", used.a, kinds[0], leaves[0])
        b = operand(R, g, "B", used.b, kinds[1], leaves[1])
        e = to_lanes(R[used.e], _I32, g.lanes).reshape(warps, 32).view(np.uint32)
        words = words_of(held, m, row.tile("E")[1], e, selector)
        ask = np.asarray(g.mask.array.reshape(warps, 32).any(axis=1))
        product = expand(held, a, words, ask, selector, "mma.sp") @ b.transpose(0, 2, 1)
        parts = [to_lanes(R[s], leaf, g.lanes).reshape(warps, 32, -1) for s, leaf in zip(used.c, leaves[2])]
        total = product + _tile(row, "C", np.concatenate(parts, axis=2).astype(exact))
        if row.emit["saturate"]:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        flat = total.transpose(0, 2, 1).reshape(warps, -1)
        result = flat[:, positions(row.layout_c)].astype(leaves[3][0].dtype)
        per = result.shape[2] // len(used.outs)
        for i, (s, leaf) in enumerate(zip(used.outs, leaves[3])):
            R[s] = np.ascontiguousarray(result[:, :, i * per : (i + 1) * per]).reshape(g.lanes, *leaf.shape)

    return step


def row_of(shape: tuple[int, int, int], a: str, b: str, saturate: bool, d: str) -> MmaAtom:
    """Return the table row for PTX types of A, B and D.  Raises InterpError if there is none."""
    from cute_dialect.arch.elements import by_ptx  # late: start-up
    from cute_dialect.arch.errors import AtomError  # late: start-up
    from cute_dialect.arch.table import find_mma_sp  # late: start-up

    try:
        return find_mma_sp(shape, (by_ptx(d), by_ptx(a), by_ptx(b), by_ptx(d)), saturate)
    except AtomError as e:
        raise InterpError("unsupported", str(e)) from None


def _accumulator(leaf: Leaf) -> str:
    return "f16" if leaf.name.endswith("f16") else "s32" if leaf.kind == "i" else "f32"


def _emit(c: FnCompiler, op: Operation, row: MmaAtom) -> None:
    values = [c.use(v) for v in op.operands]
    na, nb, nc = (row.registers(x).count for x in "ABC")
    if len(values) != na + nb + nc + 2:
        raise InterpError("unsupported", f"mma.sp takes {na + nb + nc + 2} operands, got {len(values)}")
    a, b, acc = values[:na], values[na : na + nb], values[na + nb : -2]
    used = Registers(a, b, acc, values[-2], values[-1], list(c.defines(op.results[0])))
    c.emit(op, compile_mma(c, row, used), keep=True)


def _mma_sp_sync(c: FnCompiler, op: Operation) -> None:
    if attr_of(op, "orderedMetadata") is None:
        raise InterpError("unsupported", "nvvm.mma.sp.sync is only supported with ordered metadata")
    shape = shape_of(op)
    sizes = segments(op, 5)
    a, b = (enum_word(attr_of(op, f"multiplicand{x}PtxType")) for x in "AB")
    saturate = enum_word(attr_of(op, "intOverflowBehavior")) == "satfinite"
    acc = c.leaf_of(c.use(op.operands[sizes[0] + sizes[1]]))
    _emit(c, op, row_of((shape["m"], shape["n"], shape["k"]), a, b, saturate, _accumulator(acc)))


def mma_sp_by_name(c: FnCompiler, op: Operation, m: re.Match[str]) -> None:
    """Compile `llvm.nvvm.mma.sp.ordered.metadata.m16n8k64.row.col.f32.e4m3.e4m3.f32`; see `matrix.mma_by_name`."""
    names = [n for n in m[4].split(".") if n != "satfinite"]
    a, b = (names[1], names[2]) if len(names) == 4 else (names[0], names[-1])
    acc = c.leaf_of(c.use(op.operands[-3]))
    if a in ("f16", "f32") and b == a:  # The name lists only D and C.
        a = b = "f16"
    _emit(c, op, row_of((int(m[1]), int(m[2]), int(m[3])), a, b, "satfinite" in m[4], _accumulator(acc)))


OPS: dict[str, Builder] = {"nvvm.mma.sp.sync": _mma_sp_sync}


# -- inline PTX -------------------------------------------------------------------------------------------------------

_MMA_SP = re.compile(
    r"mma\.sp::ordered_metadata\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\.(\w+)"
)


def _mma_sp(text: Text, s: Statement) -> None:
    m = _MMA_SP.fullmatch(s.opcode)
    if m is None or len(s.operands) != 6:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    d, a, b, c = ([text.slot(p) for p in s.parts(i)] for i in range(4))
    shape = (int(m[1]), int(m[2]), int(m[3]))
    row = row_of(shape, m[6], m[7], m[4] is not None, m[5])
    used = Registers(a, b, c, text.slot(s.operands[4]), text.slot(s.operands[5]), d)
    text.emit(s, compile_mma(text.c, row, used))


TABLE: Sequence[tuple[str, Callable[[Text, Statement], None]]] = ((r"mma\.sp.*", _mma_sp),)


__all__ = ["OPS", "TABLE", "Registers", "compile_mma", "mma_sp_by_name", "row_of"]
