"""Cluster launch control: a cluster takes over the work of one that has not started (PTX ISA 9.7.13.17).

`try_cancel` takes a cluster from the pool of the launch when its request is executed, in the order of the schedule. It
writes 16 bytes through the async proxy and completes them at an mbarrier, of each block of the cluster with multicast.
The encoding of the response is opaque in PTX; here it is a mark, the outcome and the first block of the cluster.

A request by a cluster that has seen an unsuccessful response is an error, and so are the coordinates of an
unsuccessful response. A response that is read before the wait, or overwritten before all threads have read it and
fenced, is a race as of any bulk copy.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.compiler.undefined import fail
from cute_dialect.interp.errors import Fault, InterpError, attr_of
from cute_dialect.interp.instructions.ptx_text import Handler, Statement, Text, put
from cute_dialect.interp.machine.barriers import Block, MBarrier, find_mbarrier, shared_at
from cute_dialect.interp.machine.group import Group, Transfer
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Array, Regs, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

RESPONSE_BYTES = 16
_MARK = 0x434C43
"""Upper bits of the first word of a response; the lowest bit is the outcome."""


def encode(first: tuple[int, int, int] | None) -> Array:
    """Return the bytes of a response: the first block of a canceled cluster, or None for an unsuccessful request."""
    x, y, z = first or (0, 0, 0)
    return np.array([_MARK << 8 | (first is not None), x, y, z], np.int32).view(np.uint8)


def _outcomes(response: Array) -> tuple[Array, Array]:
    """Return (valid, canceled) of responses of shape `(lanes, 2)`."""
    words = np.ascontiguousarray(response).view(np.int32).reshape(len(response), 4)
    return words[:, 0] >> 8 == _MARK, (words[:, 0] & 1) != 0


def _receivers(
    g: Group, block: Block, bar: MBarrier, offset: int, multicast: bool, lane: int
) -> list[tuple[Block, MBarrier]]:
    """Return the blocks that get a response, with the mbarrier at the same offset in each."""
    if not multicast:
        return [(block, bar)]
    at = next(place for place, found in block.mbarriers.items() if found is bar)
    found: list[tuple[Block, MBarrier]] = []
    for peer in block.cluster.blocks:
        peer.check_runs(lane)
        own = peer.mbarriers.get(at)
        if own is None:
            where = f"byte offset {at}{g.machine.shared_names.place(at)}"
            raise Fault("sync", f"no mbarrier is initialized at {where} of a multicast receiver", lane)
        found.append((peer, own))
    return found


def _try_cancel(c: FnCompiler, op: Operation) -> None:
    response, bar = (c.use(v) for v in op.operands[:2])
    spaces = c.leaf_of(response).space, c.leaf_of(bar).space
    owners = c.pieces.allocation(response), c.pieces.allocation(bar)
    multicast = attr_of(op, "multicast") is not None
    info = c.info(op)
    c.fn.needs_warp.append("cluster launch control")
    i64 = int_leaf(64)

    def step(R: Regs, g: Group) -> None:
        addresses, bars = to_lanes(R[response], i64, g.lanes), to_lanes(R[bar], i64, g.lanes)
        for lane in g.mask.idx.tolist():
            what = "clusterlaunchcontrol.try_cancel writes"
            block, offset = shared_at(g, int(addresses[lane]), spaces[0], lane, RESPONSE_BYTES, what, 16, owners[0])
            _, target = find_mbarrier(g, int(bars[lane]), spaces[1], lane, owners[1])
            if block.cluster.refused:
                raise Fault(
                    "sync",
                    "clusterlaunchcontrol.try_cancel after an unsuccessful response, which is undefined; leave the "
                    "loop when is_canceled is false",
                    lane,
                )
            targets = _receivers(g, block, target, offset, multicast, lane)
            if g.machine.monitor is not None:
                for peer, own in targets:
                    g.machine.monitor.async_write(g, lane, peer, offset, RESPONSE_BYTES, own, info)
            _request(g, lane, targets, offset, info)

    c.emit(op, step, pure=False)


def _request(g: Group, lane: int, targets: list[tuple[Block, MBarrier]], offset: int, info: object) -> None:
    cluster, held = targets[0][0].cluster, []

    def read() -> None:
        held.append(encode(g.machine.pool.take(cluster, g.machine.grid)))

    def write() -> None:
        for block, bar in targets:
            block.check_runs()
            first = block.smem_start + offset
            block.smem.note_range(first, RESPONSE_BYTES, "try_cancel")
            block.smem.data[first : first + RESPONSE_BYTES] = held[0]
            bar.complete(RESPONSE_BYTES)
        g.count.progress += 1

    for _, bar in targets:
        bar.flying += RESPONSE_BYTES
    transfer = Transfer(read, write, info, g, lane, RESPONSE_BYTES)  # pyright: ignore[reportArgumentType]
    g.machine.transfers.add(transfer)
    if g.machine.timeline is not None:
        g.machine.timeline.issued(transfer)
    g.count.progress += 1


OPS: dict[str, Builder] = {"nvvm.clusterlaunchcontrol.try.cancel": _try_cancel}


# -- inline PTX -------------------------------------------------------------------------------------------------------


def _response(text: Text, s: Statement, R: Regs, g: Group, slot: int) -> Array:
    """Return True for each lane whose request was successful.  Raises Fault if a lane does not hold a response."""
    held = np.asarray(to_lanes(R[slot], text.leaf(slot), g.lanes))
    valid, canceled = _outcomes(held)
    said = f"{s.opcode}: the operand is not a response of try_cancel; load it after the wait on its mbarrier"
    fail(g, ~valid, "uninit", lambda at: said, 0)
    return canceled


def _is_canceled(text: Text, s: Statement) -> None:
    slot = text.slot(s.operands[1])

    def compute(R: Regs, g: Group) -> Array:
        canceled = _response(text, s, R, g, slot)
        if (g.mask.array & ~canceled).any():
            g.machine.blocks[g.block_of(0)].cluster.refused = True
        return canceled

    put(text, s, text.slot(s.operands[0]), compute)


def _first_block(text: Text, s: Statement) -> None:
    slot = text.slot(s.operands[1])
    axis = "xyz".find(s.opcode.partition("::")[2][:1]) if "::" in s.opcode else -1
    names = s.parts(0)
    axes = [axis] if axis >= 0 else range(3)
    if axis < 0 and len(names) != 4:
        raise InterpError("unsupported", f"{s.opcode} needs 4 registers, got {len(names)}")

    def coordinate(i: int, R: Regs, g: Group) -> Array:
        canceled = _response(text, s, R, g, slot)
        said = f"{s.opcode} of an unsuccessful response, which has no block; test is_canceled first"
        fail(g, ~canceled, "poison", lambda at: said, 0)
        held = np.ascontiguousarray(to_lanes(R[slot], text.leaf(slot), g.lanes)).view(np.int32)
        return held.reshape(g.lanes, 4)[:, 1 + i].copy()

    for i, name in zip(axes, names):
        if name != "_":
            put(text, s, text.slot(name), lambda R, g, i=i: coordinate(i, R, g))


TABLE: Sequence[tuple[str, Handler]] = (
    (r"clusterlaunchcontrol\.query_cancel\.is_canceled\.pred\.b128", _is_canceled),
    (r"clusterlaunchcontrol\.query_cancel\.get_first_ctaid(::[xyz]\.b32|\.v4\.b32)\.b128", _first_block),
)
