"""``convert-cute-algo-to-arch`` lowering of GEMMs with a sparse A.

Each instruction takes the words of E for its rows and its step along K::

    cute.sparse_gemm(%mma, %d, %a, %b, %e, %d)         with d (V,1,1), a (V,1,2), b (V,1,2), e (V,1,2)
    →
    cute_nvgpu.arch.mma_sp(%d, %a0, %b0, %d, %e0) {atom = …} : …
    cute_nvgpu.arch.mma_sp(%d, %a1, %b1, %d, %e1) {atom = …} : …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import Operation

from cute_dialect.cute_nvgpu.sparse.ops import MmaSpOp, SparseGemmOp, WgmmaSpOp, sparse_gemm_operands
from cute_dialect.cute_nvgpu.tiled_mma.tile import (
    Product,
    Tiles,
    extent,
    make_fragment,
    multiply_by,
    partition,
    partition_shape,
    query,
)
from cute_dialect.cute_nvgpu.wgmma.tile import multiply_by_warp_group
from cute_dialect.passes.lowering.insertion import InsertionPoint


def _sparse_gemm(op: Operation) -> None:
    assert isinstance(op, SparseGemmOp)
    site = InsertionPoint(op)
    atom, modes = sparse_gemm_operands(op.operand_types)
    tiles = {o: Tiles(site, t, modes[o]) for o, t in zip("DABE", (op.d, op.a, op.b, op.e))}
    if op.c is not None and op.c is not op.d:
        tiles["C"] = Tiles(site, op.c, modes["C"])
    extents = (extent(modes["D"][1]), extent(modes["D"][2]), extent(modes["A"][2]))
    product = Product(site, op, op.c, atom, tiles, extents)
    if atom.ASYNCHRONOUS:
        multiply_by_warp_group(WgmmaSpOp, product)
    else:
        multiply_by(MmaSpOp, product)


HANDLERS: Mapping[str, Callable[[Operation], None]] = {
    "cute.tiled.mma.partition_E": partition,
    "cute.tiled.mma.partition_shape_E": partition_shape,
    "cute.tiled.mma.make_fragment_E": make_fragment,
    "cute.tiled.mma.layout_E_tv": query,
    "cute.sparse_gemm": _sparse_gemm,
}
"""Op name -> function that lowers it in place."""
