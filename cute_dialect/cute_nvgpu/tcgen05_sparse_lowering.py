"""Lowering of ``tcgen05.mma.sp`` to LLVM intrinsics.

In ``convert-cute-algo-to-arch``, ``cute.sparse_gemm`` becomes one ``tcgen05_mma_sp`` per instruction. The column of
each instruction's metadata relative to E is known at compile time, because the instruction descriptor encodes its
lowest bit.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute, SSAValue

from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.tcgen05_sparse import ALIGNED_COLUMNS
from cute_dialect.cute_nvgpu.tcgen05_lowering import check_accumulator, lower_mma, scale_operands
from cute_dialect.cute_nvgpu.tcgen05_lowering import place_fragment as place_fragment
from cute_dialect.cute_nvgpu.tcgen05_sparse import Tcgen05MmaSpOp, Tcgen05MmaSpType
from cute_dialect.cute_nvgpu.tiled_mma_lowering import Product
from cute_dialect.cute_nvgpu.wgmma_lowering import multiply_by_warp_group
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.walk import Handler


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


TO_BASE: Mapping[str, Handler] = {"cute_nvgpu.arch.tcgen05_mma_sp": lower_mma}
"""Op name -> lowering function."""
