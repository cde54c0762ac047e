"""``cute-to-base`` lowering of ``cp.async``."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from cute_dialect.cute_nvgpu.cp_async.types import SimtAsyncCopyType
from cute_dialect.cute_nvgpu.instruction_copy.lower import copy_atom, memory_address
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream.nvvm import OPS, nvvm_attr


def _cp_async(low: Lowering, op: Operation) -> None:
    atom = copy_atom(op)
    assert isinstance(atom, SimtAsyncCopyType)
    source, destination = memory_address(low, op.operands[0]), memory_address(low, op.operands[1])
    size = atom.data.bits // 8
    read: SSAValue | None = None
    if len(op.operands) == 3:
        # Number of bytes to read; the instruction zero-fills the other bytes of the destination.
        flag = low.value(op.operands[2])
        whole, none = low.build.constant(size, i32), low.build.constant(0, i32)
        read = low.build.once(("bytes", flag, size), lambda: arith.SelectOp(flag, whole, none))
    cache = nvvm_attr("load_cache_modifier", "ca" if atom.data.cache == "always" else "cg")
    low.build.add(OPS["cp.async.shared.global"](destination, source, read, size=size, modifier=cache))


HANDLERS: Mapping[str, Handler] = {
    "cute_nvgpu.arch.cp_async": _cp_async,
}
"""Op name -> lowering function."""
