"""``convert-cute-algo-to-arch`` lowering of ``wgmma`` GEMMs.

Without C the first ``wgmma`` of each accumulator has scale-d 0.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra.evaluation import size
from cute_dialect.cute_nvgpu.tiled_mma.tile import Product, order
from cute_dialect.cute_nvgpu.wgmma.ops import WgmmaOp
from cute_dialect.dialect import memory
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.insertion import InsertionPoint


def multiply(product: Product) -> None:
    """Lower a ``cute.gemm`` to one ``wgmma`` per instruction tile."""
    multiply_by_warp_group(WgmmaOp, product)


def multiply_by_warp_group(make: type[Operation], product: Product) -> None:
    """Lower a GEMM to one op ``make`` per instruction, with the operands D, A, B, and E if sparse."""
    site, op, c, atom, tiles, (m, n, k) = product
    mma, d = op.operands[:2]
    scale_d = _accumulate_flag(mma)
    if c is not None and scale_d is not None:
        raise PassError(
            "C cannot be combined with an accumulate flag of the atom (cute.atom.set_value); omit one of them", op
        )
    if c is not None and c is not d:
        _copy_accumulators(site, c, d)
    for step in range(k):
        for i, j in order(m, n, serpentine=False):
            operands: list[SSAValue] = [tiles["D"].at(i, j), tiles["A"].at(i, step), tiles["B"].at(j, step)]
            if "E" in tiles:
                operands.append(tiles["E"].at(i, step))
            first = step == 0 and c is None
            if first and scale_d is not None:
                operands.append(scale_d)
            accumulate = not first or scale_d is not None
            properties = {"accumulate": BoolAttr.from_bool(accumulate), "atom": atom}
            site.add(make_op(make, operands, properties=properties))


def _copy_accumulators(site: InsertionPoint, source: SSAValue, target: SSAValue) -> None:
    t = target.type
    assert isinstance(t, MemRefType)
    n = size(t.layout)
    assert isinstance(n, int)
    for i in range(n):
        where = site.coordinate(i)
        site.add(memory.StoreOp(target, where, site.emit(memory.LoadOp(source, where))))


def _accumulate_flag(value: SSAValue) -> SSAValue | None:
    """Return the flag that ``cute.atom.set_value {field = accumulate}`` has set on the MMA, or None."""
    while isinstance(value.owner, Operation):
        owner = value.owner
        if owner.name == "cute.atom.set_value":
            field = {**owner.attributes, **owner.properties}.get("field")
            if field is not None and "accumulate" in str(field):
                return owner.operands[1]
        elif owner.name != "cute.make_tiled_mma":
            return None
        value = owner.operands[0]
    return None
