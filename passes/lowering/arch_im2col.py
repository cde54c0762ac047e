"""``cute-to-base`` of TMA loads of columns of pixels; see :mod:`.arch_tma`."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import i16, i32, i64
from xdsl.ir import Operation

from cute_dialect.arch.tensor_map_codes import ELEMENT_CODES, IM2COL_FUNCTION, L2_PROMOTIONS, OOB_FILLS, SWIZZLES
from cute_dialect.nvgpu_im2col_types import TmaLoadIm2colType
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.arch_tma import declare
from cute_dialect.passes.lowering.types import pointer
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream import llvm
from cute_dialect.upstream.attrs import attr


def _make(low: Lowering, op: Operation) -> None:
    if low.device:
        raise PassError("a tensor map is made on the host: expected this in the function that launches", op)
    atom = op.results[0].type
    assert isinstance(atom, TmaLoadIm2colType)
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
    assert isinstance(atom, TmaLoadIm2colType)
    rank, spatial = atom.data.rank, atom.data.spatial
    tensor_map, *values = [low.value(o) for o in op.operands]
    coordinates, smem, bar = values[:rank], values[rank], values[rank + 1]
    offsets, rest = values[rank + 2 : rank + 2 + spatial], values[rank + 2 + spatial :]
    cluster = low.build.once(
        ("shared::cluster", smem),
        lambda: llvm.OPS["addrspacecast"].create(operands=[smem], result_types=[pointer("dsmem")]),
    )
    mask = next((v for v in rest if v.type == i16), None)
    hint = next((v for v in rest if v.type == i64), None)
    instruction = nvvm.OPS["cp.async.bulk.tensor.shared.cluster.global"]
    mode = attr("nvvm.tma_load_mode", "im2col")
    made = instruction(cluster, tensor_map, coordinates, bar, offsets, mask, hint, None, mode=mode, isCTAOnly=False)
    low.build.add(made)


HANDLERS: Mapping[str, Handler] = {
    "cute_nvgpu.arch.make_im2col_map": _make,
    "cute_nvgpu.arch.tma_load_im2col": _load,
}
"""Op name -> how it is lowered."""
