"""Lowering of GEMMs with a sparse A.

In ``convert-cute-algo-to-arch`` each instruction takes the words of E for its rows and its step along K::

    cute.sparse_gemm(%mma, %d, %a, %b, %e, %d)         with d (V,1,1), a (V,1,2), b (V,1,2), e (V,1,2)
    →
    cute_nvgpu.arch.mma_sp(%d, %a0, %b0, %d, %e0) {atom = …} : …
    cute_nvgpu.arch.mma_sp(%d, %a1, %b1, %d, %e1) {atom = …} : …

In ``cute-to-base``, ``mma.sp`` becomes ``nvvm.mma.sp.sync`` if MLIR 22 supports the atom, otherwise an intrinsic.
``wgmma.mma_async.sp`` has no op in MLIR 22 and becomes inline PTX. For example,

    cute_nvgpu.arch.mma_sp(%d, %a, %b, %c, %e) {atom = !cute_nvgpu.atom.mma_sp<16x8x16, (f16,f16,f16,f16)>} : …
    →
    %s = arith.constant 0 : i32
    %r = nvvm.mma.sp.sync A[%a0, %a1] B[%b0, %b1] C[%c0, %c1] sparseMetadata[%e0] selector[%s] {orderedMetadata, …} : …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.arch.atom import MmaAtom
from cute_dialect.cute_nvgpu.mma_lowering import narrow_mma
from cute_dialect.cute_nvgpu.sparse import MmaSpOp, SparseGemmOp, WgmmaSpOp, WgmmaSpType, sparse_gemm_operands
from cute_dialect.cute_nvgpu.tiled_mma_lowering import (
    REGISTERS,
    Product,
    Tiles,
    extent,
    make_fragment,
    multiply_by,
    multiply_by_family,
    partition,
    partition_shape,
    query,
    read_operand,
    row_of,
    write_struct,
)
from cute_dialect.cute_nvgpu.wgmma_lowering import accumulator, descriptor, multiply_by_warp_group, wgmma_asm
from cute_dialect.passes.lowering.carried import read_unit, struct_type, write_unit
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.packed import read_packed
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm, nvvm


def _sparse_gemm(op: Operation) -> None:
    assert isinstance(op, SparseGemmOp)
    site = InsertionPoint(op)
    atom, modes = sparse_gemm_operands(op.operand_types)
    tiles = {o: Tiles(site, t, modes[o]) for o, t in zip("DABE", (op.d, op.a, op.b, op.e))}
    if op.c is not None and op.c is not op.d:
        tiles["C"] = Tiles(site, op.c, modes["C"])
    extents = (extent(modes["D"][1]), extent(modes["D"][2]), extent(modes["A"][2]))
    product = Product(site, op, op.c, atom, tiles, extents)
    if atom.operand_space("D") == AddressSpace.tmem:
        multiply_by_family(product)
    elif atom.ASYNCHRONOUS:
        multiply_by_warp_group(WgmmaSpOp, product)
    else:
        multiply_by(MmaSpOp, product)


TO_ARCH: Mapping[str, Callable[[Operation], None]] = {
    "cute.tiled.mma.partition_E": partition,
    "cute.tiled.mma.partition_shape_E": partition_shape,
    "cute.tiled.mma.make_fragment_E": make_fragment,
    "cute.tiled.mma.layout_E_tv": query,
    "cute.sparse_gemm": _sparse_gemm,
}
"""Op name -> function that lowers it in place."""


def _mma_sp(low: Lowering, op: Operation) -> None:
    atom, row = row_of(op)
    d, a, b, c, e = op.operands[:5]
    if row.emit.kind == "narrow_mma":
        (word,) = read_packed(low, e, None, i32)
        narrow_mma(low, op, row, (word, atom.data.selector))
        return
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


def _wgmma_sp(low: Lowering, op: Operation) -> None:
    atom, row = row_of(op)
    assert isinstance(atom, WgmmaSpType)
    d, a, b, e, *flag = op.operands
    accumulate = op.properties["accumulate"]
    assert isinstance(accumulate, IntegerAttr)
    view, unit = accumulator(low, d, row, op)
    first = [descriptor(low, atom, "A", a)] if row.source_a == AddressSpace.smem else read_packed(low, a, None, i32)
    second = descriptor(low, atom, "B", b)
    (metadata,) = read_packed(low, e, None, i32)
    if flag or accumulate.value.data:
        struct = read_unit(low.build, low.registers, view, unit)
    else:
        struct = low.build.emit(llvm.UndefOp(unit.type))  # The contents are overwritten.
    scale_d = low.value(flag[0]) if flag else None
    held = (metadata, atom.data.selector)
    new = wgmma_asm(low, row, struct, first, second, scale_d, bool(accumulate.value.data), held, atom.data.negate)
    write_unit(low.registers, view, unit, low.build.emit(new))


TO_BASE: Mapping[str, Handler] = {"cute_nvgpu.arch.mma_sp": _mma_sp, "cute_nvgpu.arch.wgmma_sp": _wgmma_sp}
"""Op name -> lowering function."""
