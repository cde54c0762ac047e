"""``cute-to-base`` lowering of im2col TMA copies; the counterpart of :mod:`.lower`."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import i16, i32, i64
from xdsl.ir import Operation, SSAValue

from cute_dialect.arch.tensor_map_codes import ELEMENT_CODES, IM2COL_FUNCTION, L2_PROMOTIONS, OOB_FILLS, SWIZZLES
from cute_dialect.cute_nvgpu.tma.im2col_types import Im2colAtomType, Im2colMap
from cute_dialect.cute_nvgpu.tma.lower import declare
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.types import pointer
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm
from cute_dialect.upstream.attrs import attr


def _make(low: Lowering, op: Operation) -> None:
    if low.device:
        raise PassError("a tensor map is built on the host; move this op to the function that launches the kernel", op)
    atom = op.results[0].type
    assert isinstance(atom, Im2colAtomType)
    m = atom.data
    interleave = 0
    codes = (
        ELEMENT_CODES[str(m.element)],
        interleave,
        SWIZZLES.index(m.swizzle),
        L2_PROMOTIONS.index(m.l2),
        OOB_FILLS.index(m.oob),
    )
    operands = [low.value(o) for o in op.operands]
    numbers = (m.channels, m.pixels, *m.lower, *m.upper, *m.steps, *codes)
    operands += [low.build.constant(n, i32) for n in numbers]
    name = IM2COL_FUNCTION.format(rank=m.rank)
    declare(op, name, [o.type for o in operands])
    low.values[op.results[0]] = low.build.emit(llvm.CallOp(name, operands, llvm.LLVMPointerType()))


def _load(low: Lowering, op: Operation) -> None:
    from cute_dialect.upstream import nvvm

    atom = op.operands[0].type
    assert isinstance(atom, Im2colAtomType)
    rank, spatial = atom.data.rank, atom.data.spatial
    tensor_map, *values = [low.value(o) for o in op.operands]
    coordinates, smem, bar = values[:rank], values[rank], values[rank + 1]
    offsets, rest = values[rank + 2 : rank + 2 + spatial], values[rank + 2 + spatial :]
    cluster = low.build.once(
        ("shared::cluster", smem),
        lambda: make_op(llvm.OPS["addrspacecast"], [smem], [pointer(AddressSpace.dsmem)]),
    )
    mask = next((v for v in rest if v.type == i16), None)
    hint = next((v for v in rest if v.type == i64), None)
    instruction = nvvm.OPS["cp.async.bulk.tensor.shared.cluster.global"]
    mode = attr("nvvm.tma_load_mode", "im2col")
    made = instruction(cluster, tensor_map, coordinates, bar, offsets, mask, hint, None, mode=mode, isCTAOnly=False)
    low.build.add(made)


def _parts(low: Lowering, op: Operation) -> tuple[Im2colMap, SSAValue, list[SSAValue], list[SSAValue]]:
    """Return the static part of the map, the map, the coordinates and the other operands."""
    atom = op.operands[0].type
    assert isinstance(atom, Im2colAtomType)
    tensor_map, *values = [low.value(o) for o in op.operands]
    return atom.data, tensor_map, values[: atom.data.rank], values[atom.data.rank :]


def _store(low: Lowering, op: Operation) -> None:
    from cute_dialect.upstream import nvvm

    m, tensor_map, coordinates, (smem, *rest) = _parts(low, op)
    mode, hint = attr("nvvm.tma_store_mode", "im2col"), rest[0] if rest else None
    if not m.reduction:
        instruction = nvvm.OPS["cp.async.bulk.tensor.global.shared.cta"]
        low.build.add(instruction(tensor_map, smem, coordinates, hint, None, mode=mode))
        return
    kind = attr("nvvm.tma_redux_kind", m.reduction)
    instruction = nvvm.OPS["cp.async.bulk.tensor.reduce"]
    low.build.add(instruction(tensor_map, smem, coordinates, hint, redKind=kind, mode=mode))


def _prefetch(low: Lowering, op: Operation) -> None:
    from cute_dialect.upstream import nvvm

    m, tensor_map, coordinates, rest = _parts(low, op)
    hint = rest[m.spatial] if len(rest) > m.spatial else None
    mode = attr("nvvm.tma_load_mode", "im2col")
    instruction = nvvm.OPS["cp.async.bulk.tensor.prefetch"]
    low.build.add(instruction(tensor_map, coordinates, rest[: m.spatial], hint, mode=mode))


HANDLERS: Mapping[str, Handler] = {
    "cute_nvgpu.arch.make_im2col_map": _make,
    "cute_nvgpu.arch.tma_load_im2col": _load,
    "cute_nvgpu.arch.tma_store_im2col": _store,
    "cute_nvgpu.arch.tma_reduce_im2col": _store,
    "cute_nvgpu.arch.tma_prefetch_im2col": _prefetch,
}
"""Op name -> lowering function."""
