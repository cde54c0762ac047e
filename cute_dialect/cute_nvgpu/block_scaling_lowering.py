"""Lowering of GEMMs with block scales to instructions that take the factors of their rows and their block along K.

cute.scaled_gemm(%mma, %d, %a, %b, %sfa, %sfb, %d)         with d (V,1,1), a (V,1,2), b (V,1,2)
→
cute_nvgpu.arch.mma_sync(%d, %a0, %b0, %d, %sfa0, %sfb0) {atom = …} : …
cute_nvgpu.arch.mma_sync(%d, %a1, %b1, %d, %sfa1, %sfb1) {atom = …} : …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import Operation

from cute_dialect.cute_nvgpu.block_scaling import ScaledGemmOp, scaled_gemm_operands
from cute_dialect.cute_nvgpu.mma import MmaSyncOp
from cute_dialect.cute_nvgpu.sparse import MmaSpOp
from cute_dialect.cute_nvgpu.tiled_mma_lowering import (
    Product,
    Tiles,
    extent,
    make_fragment,
    multiply_by,
    multiply_by_family,
    partition,
    partition_shape,
    query,
)
from cute_dialect.passes.lowering.insertion import InsertionPoint


def _scaled_gemm(op: Operation) -> None:
    assert isinstance(op, ScaledGemmOp)
    site = InsertionPoint(op)
    atom, modes = scaled_gemm_operands(op.operand_types)
    names = ["D", "A", "B", *(["E"] if atom.SPARSE else []), "SFA", "SFB"]
    d, *rest = op.tensors
    c = rest[len(names) - 1] if len(rest) == len(names) else None
    tiles = {o: Tiles(site, t, modes[o]) for o, t in zip(names, op.tensors)}
    if c is not None and c is not d:
        tiles["C"] = Tiles(site, c, modes["C"])
    extents = (extent(modes["D"][1]), extent(modes["D"][2]), extent(modes["A"][2]))
    product = Product(site, op, c, atom, tiles, extents)
    if atom.ASYNCHRONOUS:
        multiply_by_family(product)
        return
    multiply_by(MmaSpOp if atom.SPARSE else MmaSyncOp, product)


TO_ARCH: Mapping[str, Callable[[Operation], None]] = {
    **{f"cute.tiled.mma.partition_{x}": partition for x in ("SFA", "SFB")},
    **{f"cute.tiled.mma.partition_shape_{x}": partition_shape for x in ("SFA", "SFB")},
    **{f"cute.tiled.mma.make_fragment_{x}": make_fragment for x in ("SFA", "SFB")},
    **{f"cute.tiled.mma.layout_{x}_tv": query for x in ("SFA", "SFB")},
    "cute.scaled_gemm": _scaled_gemm,
}
"""Op name -> function that lowers it in place."""
