"""``convert-cute-algo-to-arch`` of products whose A is sparse: as :mod:`.mma_atoms`, with the metadata E beside A.

Each instruction takes the E of its rows and of its step along K::

    cute.sparse_gemm(%mma, %d, %a, %b, %e, %d)         with d (V,1,1), a (V,1,2), b (V,1,2), e (V,1,2)
    →
    cute_nvgpu.arch.mma_sp(%d, %a0, %b0, %d, %e0) {atom = …} : …
    cute_nvgpu.arch.mma_sp(%d, %a1, %b1, %d, %e1) {atom = …} : …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import Operation

from cute_dialect.ir.editing import make_op
from cute_dialect.nvgpu_mma_types import WgmmaSpType
from cute_dialect.ops import arch_sparse_mma
from cute_dialect.ops.sparse_mma import SparseGemmOp, sparse_gemm_operands
from cute_dialect.passes.lowering.mma_atoms import (
    Tiles,
    asynchronous,
    extent,
    make_fragment,
    order,
    partition,
    partition_shape,
    query,
    zeros,
)
from cute_dialect.passes.lowering.site import Site


def _sparse_gemm(op: Operation) -> None:
    assert isinstance(op, SparseGemmOp)
    site = Site(op)
    atom, modes = sparse_gemm_operands(op.operand_types)
    tiles = {o: Tiles(site, t, modes[o]) for o, t in zip("DABE", (op.d, op.a, op.b, op.e))}
    m, n, k = extent(modes["D"][1]), extent(modes["D"][2]), extent(modes["A"][2])
    if isinstance(atom, WgmmaSpType):
        asynchronous(site, op, atom, tiles, (m, n, k), arch_sparse_mma.WgmmaSpOp)
        return
    c = tiles["D"] if op.c is None or op.c is op.d else Tiles(site, op.c, modes["C"])
    zero = zeros(site, atom) if op.c is None else None
    for step in range(k):
        for i, j in order(m, n, serpentine=True):
            source = (zero or c.at(i, j)) if step == 0 else tiles["D"].at(i, j)
            operands = [
                tiles["D"].at(i, j), tiles["A"].at(i, step), tiles["B"].at(j, step), source, tiles["E"].at(i, step)
            ]  # fmt: skip
            site.add(make_op(arch_sparse_mma.MmaSpOp, operands, properties={"atom": atom}))


HANDLERS: Mapping[str, Callable[[Operation], None]] = {
    "cute.tiled.mma.partition_E": partition,
    "cute.tiled.mma.partition_shape_E": partition_shape,
    "cute.tiled.mma.make_fragment_E": make_fragment,
    "cute.tiled.mma.layout_E_tv": query,
    "cute.sparse_gemm": _sparse_gemm,
}
"""Op name -> how it is lowered in place."""
