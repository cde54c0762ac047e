"""Lowering of ``tcgen05.mma.sp`` to LLVM intrinsics.

In ``convert-cute-algo-to-arch``, ``cute.sparse_gemm`` becomes one ``tcgen05_mma_sp`` per instruction. The column of
each instruction's metadata relative to E is known at compile time, because the instruction descriptor encodes its
lowest bit.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, i1, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.tcgen05_sparse import ALIGNED_COLUMNS
from cute_dialect.cute_nvgpu.sync import i32_value
from cute_dialect.cute_nvgpu.tcgen05_lowering import COLLECTORS, addresses, check_accumulator, scale_operands
from cute_dialect.cute_nvgpu.tcgen05_lowering import place_fragment as place_fragment
from cute_dialect.cute_nvgpu.tcgen05_sparse import Tcgen05MmaSpOp, Tcgen05MmaSpType
from cute_dialect.cute_nvgpu.tiled_mma_lowering import Product, row_of
from cute_dialect.cute_nvgpu.tmem_lowering import PREFIX, call
from cute_dialect.cute_nvgpu.wgmma_lowering import multiply_by_warp_group
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.walk import Handler, Lowering


def multiply(product: Product) -> None:
    """Lower a ``cute.sparse_gemm``, or a ``cute.scaled_gemm``, to one ``tcgen05_mma_sp`` per instruction tile."""
    check_accumulator(product)

    def operands(m: int, n: int, k: int) -> tuple[list[SSAValue], Mapping[str, Attribute]]:
        column, selector = _metadata(product, m, k)
        chosen: dict[str, Attribute] = {"selector": IntegerAttr(selector, i32)}
        if "SFA" not in product.tiles:
            return [column], chosen
        factors, properties = scale_operands(product, m, n, k)
        return [column, *factors], {**chosen, **properties}

    others = {name: tiles for name, tiles in product.tiles.items() if name != "E"}
    multiply_by_warp_group(Tcgen05MmaSpOp, product._replace(tiles=others), operands)


def _metadata(product: Product, m: int, k: int) -> tuple[SSAValue, int]:
    """Return the pointer to the metadata of an instruction, and its sparsity selector."""
    pointer, offset = product.tiles["E"].place(m, k)
    held = product.atom.row.metadata
    assert held is not None
    if not isinstance(offset, int):
        raise PassError(
            "the position of E in tensor memory depends on run-time values, but the instruction encodes it; use static "
            "strides, and an offset of the pointer that is a multiple of 4 columns",
            product.op,
        )
    per_column = 32 // bits_of(held.element)
    column, rest = divmod(offset, per_column)
    selector = column % ALIGNED_COLUMNS
    assert isinstance(product.atom, Tcgen05MmaSpType)
    if rest or selector % product.atom.metadata_columns:
        raise PassError(
            f"E of an instruction begins at element {offset}; {product.atom} needs a multiple of "
            f"{per_column * product.atom.metadata_columns}",
            product.op,
        )
    return product.site.moved(pointer, (column - selector) * per_column), selector


def _mma_sp(low: Lowering, op: Operation) -> None:
    atom, row = row_of(op)
    assert isinstance(atom, Tcgen05MmaSpType)
    d, a, b, e, *rest = op.operands
    base, accumulate = low.build, op.properties["accumulate"]
    assert isinstance(accumulate, IntegerAttr)
    has_flag = bool(rest) and rest[-1].type == i1
    flag = low.value(rest.pop()) if has_flag else base.constant(int(bool(accumulate.value.data)), i1)
    first, second, selector = (i32_value(op.properties.get(x)) or 0 for x in ("sf_a", "sf_b", "selector"))
    operands = addresses(low, atom, d, a, b)
    operands += [base.constant(atom.instruction(first, second, selector), i32), flag]
    operands += [low.value(x) for x in (e, *rest)]
    numbers = [atom.data.cta_group, COLLECTORS["discard"]]
    if not atom.has_scales:
        numbers.insert(0, int(row.emit["code"]))
    call(low, row.emit.intrinsic.removeprefix(PREFIX), [*operands, *(base.constant(n, i32) for n in numbers)])


TO_BASE: Mapping[str, Handler] = {"cute_nvgpu.arch.tcgen05_mma_sp": _mma_sp}
"""Op name -> lowering function."""
