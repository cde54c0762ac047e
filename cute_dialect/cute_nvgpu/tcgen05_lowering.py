"""Lowering of ``tcgen05.mma`` to LLVM intrinsics.

In ``convert-cute-algo-to-arch``, ``cute.gemm`` becomes one ``tcgen05_mma`` per instruction. Without C, or with an
accumulate flag on the atom, the first step of K of each accumulator overwrites it, and later ones accumulate.

Matrix descriptors are computed as for ``wgmma`` (:mod:`.wgmma_lowering`). The instruction descriptor is a constant.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.arch.tcgen05_kinds import COLLECTORS
from cute_dialect.cute_nvgpu.sync import ArchOp, build, i32_value, op_of
from cute_dialect.cute_nvgpu.sync_lowering import Lower, handler_of
from cute_dialect.cute_nvgpu.tcgen05 import (
    ROWS,
    Tcgen05AtomType,
    Tcgen05MmaOp,
    Tcgen05MmaWsOp,
    Tcgen05ScaledMmaOp,
)
from cute_dialect.cute_nvgpu.tiled_mma_lowering import Product, Tiles, row_of
from cute_dialect.cute_nvgpu.tmem import OPS as TMEM_OPS
from cute_dialect.cute_nvgpu.tmem_lowering import PREFIX, call, tmem_address
from cute_dialect.cute_nvgpu.wgmma_lowering import descriptor, multiply_by_warp_group
from cute_dialect.dialect import views
from cute_dialect.dialect.memory_types import MemRefType, PtrType
from cute_dialect.dialect.types import IntTupleType, LayoutType
from cute_dialect.dialect.views import AddOffsetOp
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace


def multiply(product: Product) -> None:
    """Lower a ``cute.gemm`` to one ``tcgen05_mma`` per instruction tile, or ``tcgen05_scaled_mma`` with factors."""
    check_accumulator(product)
    if "SFA" not in product.tiles:
        multiply_by_warp_group(Tcgen05MmaWsOp if product.atom.data.ws else Tcgen05MmaOp, product)
        return

    multiply_by_warp_group(Tcgen05ScaledMmaOp, product, lambda m, n, k: scale_operands(product, m, n, k))


def check_accumulator(product: Product) -> None:
    """Raise PassError if C is another tensor than D."""
    if product.c is not None and product.c is not product.op.operands[1]:
        raise PassError("C is another tensor than D, but the MMA accumulates in D; pass D as C", product.op)


def scale_operands(product: Product, m: int, n: int, k: int) -> tuple[list[SSAValue], Mapping[str, Attribute]]:
    """Return the columns of SFA and SFB of one instruction, and the properties ``sf_a`` and ``sf_b``."""
    tiles = product.tiles
    places = [_factors(product, tiles[name], name, (i, k)) for name, i in (("SFA", m), ("SFB", n))]
    (_, a), (_, b) = places
    return [column for column, _ in places], {"sf_a": IntegerAttr(a, i32), "sf_b": IntegerAttr(b, i32)}


def _factors(product: Product, tiles: Tiles, operand: str, at: tuple[int, int]) -> tuple[SSAValue, int]:
    """Return the column of the scale factors of an instruction, and the first of their bytes in it."""
    pointer, offset = tiles.place(*at)
    start, byte = _column_of(pointer)
    if start is None or not isinstance(offset, int):
        raise PassError(
            f"the position of {operand} in its column of tensor memory depends on run-time values, but the instruction "
            "encodes it; unroll the loop over K",
            product.op,
        )
    whole = byte + offset
    assert isinstance(product.atom, Tcgen05AtomType)
    count = product.atom.factors_of(operand)[1]
    if whole % 4 % count:
        allowed = ", ".join(map(str, range(0, 4, count)))
        raise PassError(
            f"{operand} begins at byte {whole % 4} of a column of tensor memory; an MMA with {count} factors per row "
            f"needs one of {allowed}",
            product.op,
        )
    return product.site.moved(start, whole - whole % 4), whole % 4


def _column_of(pointer: SSAValue) -> tuple[SSAValue | None, int]:
    """Return a pointer to the start of a column, and the distance of a pointer to bytes from it; None if unknown."""
    t = pointer.type
    assert isinstance(t, PtrType)
    if t.data.alignment >= 4:
        return pointer, 0
    owner = pointer.owner
    if isinstance(owner, views.GetIterOp) and isinstance(owner.operands[0].owner, views.MakeViewOp):
        return _column_of(owner.operands[0].owner.operands[0])
    if isinstance(owner, AddOffsetOp) and isinstance(offset := owner.operands[1].type, IntTupleType):
        start, byte = _column_of(owner.operands[0])
        if start is not None and isinstance(offset.data, int):
            return start, byte + offset.data
    return None, 0


def place_fragment(site: InsertionPoint, t: MemRefType) -> SSAValue:
    """Return a tensor of this type at address 0 of tensor memory."""
    address = build(op_of(TMEM_OPS, "tmem_address"), site.constant(0, i32))
    pointer = site.emit(address)
    it = PtrType(t.data.ptr)
    if pointer.type != it:
        pointer = site.emit(views.RecastIterOp(pointer, it))
    return site.emit(views.MakeViewOp(pointer, site.static(LayoutType(t.layout)), t))


def addresses(low: Lowering, atom: Tcgen05AtomType, d: SSAValue, a: SSAValue, b: SSAValue) -> list[SSAValue]:
    """Return the operands D, A and B of an instruction: addresses of tensor memory, and matrix descriptors."""
    in_tmem = atom.row.source_a == AddressSpace.tmem
    first = tmem_address(low, a) if in_tmem else descriptor(low, atom, "A", a)
    return [tmem_address(low, d), first, descriptor(low, atom, "B", b)]


def lower_mma(low: Lowering, op: Operation) -> None:
    """Lower one MMA of any form to its intrinsic."""
    atom, row = row_of(op)
    assert isinstance(atom, Tcgen05AtomType)
    d, a, b, *rest = op.operands
    base, accumulate, collector = low.build, op.properties["accumulate"], op.properties.get("collector")
    assert isinstance(accumulate, IntegerAttr)
    has_flag = bool(rest) and rest[-1].type == i1
    flag = low.value(rest.pop()) if has_flag else base.constant(int(bool(accumulate.value.data)), i1)
    number = {x: i32_value(op.properties.get(x)) or 0 for x in ("sf_a", "sf_b", "selector", "scale_d", "buffer")}
    bits = atom.instruction(number["sf_a"], number["sf_b"], number["selector"])
    operands = [*addresses(low, atom, d, a, b), base.constant(bits, i32), flag]
    name, group = row.emit.intrinsic.removeprefix(PREFIX), atom.data.cta_group
    if number["scale_d"]:
        name += ".scale_d"
        operands.append(base.constant(number["scale_d"], i64))
    operands += [low.value(x) for x in rest]
    is_masked = bool(rest) and not atom.SPARSE and not atom.has_scales
    use = COLLECTORS.index(collector.data if isinstance(collector, StringAttr) else "discard")
    kind = [] if atom.has_scales else [int(row.emit["code"])]
    if atom.data.ws:
        name += ".zero_col_mask" if is_masked else ""
        numbers = [*kind, number["buffer"], use]
    elif is_masked:
        name += f".disable_output_lane.cg{group}"
        numbers = [*kind, use]
    else:
        numbers = [*kind, group, use]
    call(low, name, [*operands, *(base.constant(n, i32) for n in numbers)])


def _commit(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    multicast = ".mc" if len(operands) == 2 else ""
    call(low, f"commit{multicast}.shared.cg{op.number('cta_group')}", operands)


def _fence(low: Lowering, op: ArchOp, operands: list[SSAValue]) -> None:
    call(low, f"fence.{op.word('kind')}.thread.sync", [])


_LOWER: Mapping[str, Lower] = {"tcgen05_commit": _commit, "tcgen05_fence": _fence}

TO_BASE: Mapping[str, Handler] = {
    **{f"cute_nvgpu.arch.{row.name}": handler_of(_LOWER[row.name]) for row in ROWS},
    **{f"cute_nvgpu.arch.{name}": lower_mma for name in ("tcgen05_mma", "tcgen05_mma_ws", "tcgen05_scaled_mma")},
}
"""Op name -> lowering function."""
