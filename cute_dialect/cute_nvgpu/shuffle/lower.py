"""``cute-to-base`` lowering of the shuffle copies."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Operation

from cute_dialect.cute_nvgpu.instruction_copy.lower import copy_atom
from cute_dialect.cute_nvgpu.shuffle.types import ShuffleType
from cute_dialect.passes.lowering.packed import read_packed, write_packed
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.upstream.nvvm import LaneIdOp, ShflSyncOp


def _shuffle(low: Lowering, op: Operation) -> None:
    atom = copy_atom(op)
    assert isinstance(atom, ShuffleType)
    build = low.build
    held = read_packed(low, op.operands[0])
    everyone, clamp = build.constant(-1, i32), build.constant(31, i32)
    distance = atom.data.transpose
    if distance == 0:
        zero = build.constant(0, i32)
        results = [build.emit(ShflSyncOp(everyone, held[0], zero, clamp, "idx", i32))]
    else:
        # A lane whose bit is set sends its first value and keeps the second; the other lanes send the second.
        lane = build.once("lane", lambda: LaneIdOp())
        n, zero = build.constant(distance, i32), build.constant(0, i32)
        bit = build.once(("and", lane, n), lambda: arith.AndIOp(lane, n))
        has = build.once(("has", bit), lambda: arith.CmpiOp(bit, zero, "ne"))
        first, second = held
        sent = build.emit(arith.SelectOp(has, first, second))
        got = build.emit(ShflSyncOp(everyone, sent, n, clamp, "bfly", i32))
        results = [build.emit(arith.SelectOp(has, got, first)), build.emit(arith.SelectOp(has, second, got))]
    write_packed(low, op.operands[1], results)


HANDLERS: Mapping[str, Handler] = {
    "cute_nvgpu.arch.shuffle": _shuffle,
}
"""Op name -> lowering function."""
