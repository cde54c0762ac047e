"""TMA and bulk copies: loads, multicasts, stores, reductions, prefetches and bulk async-groups.

A load signals its bytes at an mbarrier. A store belongs to a bulk group of the issuing thread. As on the device, each
active thread issues its own copy. Sources: PTX ISA 9.0, 9.7.9.25 "Asynchronous copy", cp.async.bulk,
cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, cp.async.bulk.wait_group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation

from cute_dialect.interp.compiler.control_flow import segments
from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.errors import Fault, InterpError, OpInfo, attr_of, op_name
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.instructions.ptx_text import Handler, Statement, Text, no_effect, number
from cute_dialect.interp.machine.barriers import Block, MBarrier, find_mbarrier, shared_at
from cute_dialect.interp.machine.group import BulkGroups, Group, Transfer, Wait
from cute_dialect.interp.memory.accesses import Site
from cute_dialect.interp.memory.allocations import MAPPED
from cute_dialect.interp.memory.buffers import SHARED, SMEM_ORIGIN, WINDOW_BITS, WRITTEN, Buffer
from cute_dialect.interp.memory.tensor_map import MAP_BYTES, TensorMap, combined, read_shared, units_of, write_shared
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Array, Regs, to_lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import SSAValue

    from cute_dialect.interp.field import Algebra

Gen = Generator[Wait, None, None]


_I1 = int_leaf(1)


class Copies:
    """The operand slots of a copy, -1 for absent ones."""

    def __init__(self, c: FnCompiler) -> None:
        self.c = c
        self.map = self.shared = self.bar = self.mask = self.predicate = self.size = self.source = -1
        self.coordinates: list[int] = []
        self.offsets: list[int] = []
        self.wide = 0  # 1 for im2col::w, 2 for im2col::w::128, whose offsets are the halo and that along W
        self.columns = False  # True for im2col, whose boxes are columns of pixels
        self.by_row = False  # True for gather4 and scatter4, whose coordinates are a column and four rows
        self.is_pair = False  # True for cta_group::2, whose mbarrier may be in either block of the pair
        self.signals_leader = False  # True if the mbarrier is that of the even block of the pair
        c.fn.needs_warp.append("an asynchronous copy")

    def space(self, slot: int) -> int:
        """Return the space of an address of shared memory, which PTX may also hold as an integer."""
        leaf = self.c.leaf_of(slot)
        return SHARED if leaf.kind == "i" else leaf.space


def active(g: Group, R: Regs, predicate: int) -> list[int]:
    """Return the active lanes whose predicate holds."""
    lanes = g.mask.idx
    if predicate >= 0:
        lanes = lanes[to_lanes(R[predicate], _I1, g.lanes)[lanes]]
    return lanes.tolist()


def operand(R: Regs, slot: int, lane: int) -> int:
    """Return an integer operand of one lane."""
    v = R[slot]
    if isinstance(v, np.ndarray):
        return int(v[lane])
    return int(v)  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _decoded(raw: bytes, by_row: bool) -> TensorMap:
    found = TensorMap.decode(raw)
    return found.rows_by_index if by_row else found


def tensor_map(g: Group, address: int, lane: int, by_row: bool = False) -> tuple[TensorMap, Buffer]:
    """Return the tensor map at a generic address, and the buffer of its tensor.

    `by_row` is True for a copy of mode gather4 or scatter4.
    """
    holder = g.memory.find(address)
    if holder is None or address + MAP_BYTES > holder.base + holder.size:
        raise Fault("tma", "no tensor map of 128 bytes is at this address", lane, address)
    if address % 64:
        raise Fault("misaligned", "a tensor map must be aligned to 64 bytes", lane, address)
    off = address - holder.base
    try:
        tm = _decoded(holder.data[off : off + MAP_BYTES].tobytes(), by_row)
    except ValueError as e:
        raise Fault("tma", f"{e}, got other bytes in {holder.name}", lane, address) from None
    if g.machine.monitor is not None:
        g.machine.monitor.uses_map(g, lane, holder, off)
    return tm, tm.buffer(g.memory)


def through(op: Operation, k: Copies, store: bool, verb: str, *, reduces: bool = False) -> Site:
    """Return the site of the global side of a copy, with the attributes of its pointer parameter."""
    site = Site(int_leaf(8), 1, 1, store, verb, op)
    site.atomic = reduces
    if k.map >= 0:
        site.parameter = MAPPED if k.c.pieces.promised else None
    else:
        k.c.pieces.bound(site, k.source)
    return site


def check_promises(g: Group, lane: int, site: Site, buf: Buffer, offsets: Callable[[], Array], size: int) -> None:
    """Check that a copy of `size`-byte elements of global memory respects the attributes of parameters."""
    if site.parameter is None:
        return
    site.parameter.check(site)
    if g.machine.monitor is not None:
        g.machine.monitor.copies_through(g, lane, site, buf, offsets(), size)


def _start(block: Block, offset: int) -> tuple[int, int]:
    """Return the buffer index and shared address of a byte offset that a copy accesses."""
    block.check_runs()
    return block.smem_start + offset, SMEM_ORIGIN + offset


def _receivers(g: Group, block: Block, mask: int, lane: int) -> list[Block]:
    """Return the blocks in a multicast mask."""
    peers = [b for b in block.cluster.blocks]
    if mask >> len(peers) or mask <= 0:
        raise Fault("oob", f"multicast mask {mask:#b} must select CTAs in [0, {len(peers)})", lane)
    out: list[Block] = []
    for rank in range(len(peers)):
        if mask >> rank & 1:
            linear = g.cluster_peer(lane, rank)
            out.append(next(b for b in peers if b.linear == linear))
            out[-1].check_runs(lane)
    return out


# -- loads ----------------------------------------------------------------------------------------------------------


def emit_tensor_load(op: Operation, k: Copies) -> None:
    """Emit cp.async.bulk.tensor to shared memory."""
    c = k.c
    to, bars = k.space(k.shared), k.space(k.bar)
    info = c.info(op)
    owner = c.pieces.allocation(k.shared)
    site = through(op, k, False, "TMA load")

    def step(R: Regs, g: Group) -> None:
        for lane in active(g, R, k.predicate):
            tm, buf = tensor_map(g, operand(R, k.map, lane), lane, k.by_row)
            if c.program.algebra is not None:
                tm = _over_algebra(c.program.algebra, tm, lane)
            at = [operand(R, s, lane) for s in k.coordinates]
            offsets = [operand(R, s, lane) & 0xFFFF for s in k.offsets]
            if k.wide or tm.wide:
                tm = tm.with_halo(k.wide, offsets[0] if k.wide else 0)
                del offsets[0]
            nbytes = tm.box_bytes
            address = operand(R, k.shared, lane)
            block, offset = shared_at(g, address, to, lane, nbytes, "TMA load into", 128, owner)
            if k.is_pair:
                targets = [(block, _pair_barrier(g, R, k, lane, block))]
            else:
                targets = [(block, _barrier(g, R, k, lane, bars, block))]
            if k.mask >= 0:
                found = _receivers(g, block, operand(R, k.mask, lane) & 0xFFFF, lane)
                targets = [(b, (_pair_barrier if k.is_pair else _peer_barrier)(g, R, k, lane, b)) for b in found]
            _check_coordinates(tm, at, lane)
            check_promises(g, lane, site, buf, partial(tm.touched, buf, at, offsets), tm.element_bytes)
            _load(g, lane, info, tm, buf, at, offsets, targets, offset)

    c.emit(op, step, pure=False)


def _over_algebra(algebra: Algebra, tm: TensorMap, lane: int) -> TensorMap:
    """Return the tensor map of a load that moves elements of an algebra, which does not round to tf32."""
    if tm.oob_fill == "nan":
        raise Fault("field", "a tensor map that fills with NaN has no value over a field; fill with zero", lane)
    if tm.element != "tf32":
        return tm
    algebra.notes["rounding from f32 to tf32 by TMA"] = 1
    return replace(tm, element="f32")


def _check_coordinates(tm: TensorMap, at: Sequence[int], lane: int) -> None:
    if len(at) != tm.coordinates:
        raise Fault("tma", f"the tensor map has {tm.rank} dimensions, got {len(at)} coordinates", lane)


def _barrier(g: Group, R: Regs, k: Copies, lane: int, space: int, block: Block) -> MBarrier:
    return find_mbarrier(g, operand(R, k.bar, lane), space, lane, k.c.pieces.allocation(k.bar))[1]


def _peer_barrier(g: Group, R: Regs, k: Copies, lane: int, block: Block) -> MBarrier:
    """Return the mbarrier at the same offset in another block of the cluster."""
    offset = (operand(R, k.bar, lane) & ((1 << WINDOW_BITS) - 1)) - SMEM_ORIGIN
    bar = block.mbarriers.get(offset)
    if bar is None:
        at = f"byte offset {offset}{g.machine.shared_names.place(offset)}"
        raise Fault("sync", f"no mbarrier is initialized at {at} of a multicast receiver", lane)
    return bar


def _pair_barrier(g: Group, R: Regs, k: Copies, lane: int, block: Block) -> MBarrier:
    """Return the mbarrier that the part of a cta_group::2 load in a block signals.

    It is in that block, or in the even block of its pair if the program clears bit 24 of the address, which is the
    parity of the block in an address of a cluster.
    """
    address = operand(R, k.bar, lane)
    rank = block.cluster.blocks.index(block)
    if k.signals_leader:
        rank &= ~1
    elif address >= 1 << WINDOW_BITS:
        rank = (address >> WINDOW_BITS) - 1
    owner = block.cluster.blocks[rank]
    owner.check_runs(lane)
    return _peer_barrier(g, R, k, lane, owner)


def clears_parity(value: SSAValue, depth: int = 8) -> bool:
    """Return True if an address is computed by clearing bit 24, the parity of the block in its cluster."""
    owner = value.owner
    if depth == 0 or not isinstance(owner, Operation):
        return False
    name = op_name(owner)
    if name in ("arith.andi", "llvm.and"):
        for operand in owner.operands:
            source = operand.owner
            constant = attr_of(source, "value") if isinstance(source, Operation) else None
            got = getattr(getattr(constant, "value", None), "data", None)
            if isinstance(got, int) and not got >> WINDOW_BITS & 1 and got & ((1 << WINDOW_BITS) - 1):
                return True
    if name.startswith(("llvm.", "arith.")) and owner.operands:
        return clears_parity(owner.operands[0], depth - 1)
    return False


def _load(
    g: Group,
    lane: int,
    info: OpInfo,
    tm: TensorMap,
    buf: Buffer,
    at: list[int],
    offsets: list[int],
    targets: list[tuple[Block, MBarrier]],
    offset: int,
) -> None:
    data: list[Array] = []
    nbytes = tm.counted_bytes
    monitor = g.machine.monitor
    _check_global(g, lane, "TMA load", buf, tm, at, offsets)
    if monitor is not None:
        elements = tm.touched(buf, at, offsets)
        monitor.async_global_read(g, lane, buf, elements, tm.element_bytes, info, targets[0][1])
        for block, bar in targets:
            monitor.async_write(g, lane, block, offset, tm.box_bytes, bar, info)

    def read() -> None:
        data.append(tm.gather(buf, at, offsets))

    def write() -> None:
        for block, bar in targets:
            start, address = _start(block, offset)
            write_shared(block.smem, start, address, data[0], tm.swizzle, tm.unit_bytes)
            bar.complete(nbytes)
        g.count.progress += 1

    _machine(g, lane, info, read, write, targets, nbytes)


def _machine(
    g: Group,
    lane: int,
    info: OpInfo,
    read: Callable[[], None],
    write: Callable[[], None],
    targets: list[tuple[Block, MBarrier]],
    nbytes: int,
) -> None:
    for _, bar in targets:
        bar.flying += nbytes
    _issue(g, Transfer(read, write, info, g, lane, nbytes))


def _issue(g: Group, t: Transfer) -> None:
    g.machine.transfers.add(t)
    if g.machine.timeline is not None:
        g.machine.timeline.issued(t)
    g.count.progress += 1


def _tensor_load(c: FnCompiler, op: Operation) -> None:
    sizes = segments(op, 8)
    slots = [c.use(v) for v in op.operands]
    k = Copies(c)
    k.shared, k.map = slots[0], slots[1]
    rest = iter(slots[2:])

    def take(n: int) -> list[int]:
        return [next(rest) for _ in range(n)]

    k.coordinates = take(sizes[2])
    k.bar = take(1)[0]
    k.offsets = take(sizes[4])
    k.mask = _one(take(sizes[5]))
    take(sizes[6])
    k.predicate = _one(take(sizes[7]))
    k.is_pair = "cta_2" in str(attr_of(op, "group"))
    k.signals_leader = k.is_pair and clears_parity(op.operands[1 + sizes[1] + sizes[2]])
    mode = enum_word(attr_of(op, "mode")) or "tile"
    k.by_row = mode == "tile_gather4"
    k.wide = ("", "im2col_w", "im2col_w_128").index(mode) if mode.startswith("im2col_w") else 0
    emit_tensor_load(op, k)


def _one(slots: list[int]) -> int:
    return slots[0] if slots else -1


def emit_bulk_load(op: Operation, k: Copies) -> None:
    """Emit cp.async.bulk to shared memory, from global memory or the block's own shared memory."""
    c = k.c
    to, bars, source_space = k.space(k.shared), k.space(k.bar), c.leaf_of(k.source).space
    info = c.info(op)
    owner = c.pieces.allocation(k.shared)
    site = through(op, k, False, "bulk copy out")

    def step(R: Regs, g: Group) -> None:
        for lane in active(g, R, k.predicate):
            n = _bulk_size(operand(R, k.size, lane), lane)
            if n == 0:
                continue
            block, offset = shared_at(g, operand(R, k.shared, lane), to, lane, n, "bulk copy into", 16, owner)
            targets = [(block, _barrier(g, R, k, lane, bars, block))]
            if k.mask >= 0:
                found = _receivers(g, block, operand(R, k.mask, lane) & 0xFFFF, lane)
                targets = [(b, _peer_barrier(g, R, k, lane, b)) for b in found]
            if site.parameter is not None:
                buf, start = _global_range(g, operand(R, k.source, lane), n, lane, False)
                check_promises(g, lane, site, buf, partial(np.arange, start, start + n, 16), 16)
            _bulk_load(g, lane, info, operand(R, k.source, lane), source_space, targets, offset, n)

    c.emit(op, step, pure=False)


def _bulk_load(
    g: Group,
    lane: int,
    info: OpInfo,
    source: int,
    source_space: int,
    targets: list[tuple[Block, MBarrier]],
    offset: int,
    n: int,
) -> None:
    monitor = g.machine.monitor
    own: Block | None = None
    if source_space == SHARED:
        own, at = shared_at(g, source, SHARED, lane, n, "bulk copy out of", 16)
        buf, start = own.smem, own.smem_start + at
        if monitor is not None:
            monitor.async_read(g, lane, own, np.arange(at // 16, (at + n) // 16), info, targets[0][1])
        g.check_read(buf, start, n, "bulk copy", lane, id(info))
    else:
        buf, start = _global_range(g, source, n, lane, False)
        g.check_read(buf, start, n, "bulk copy", lane, id(info))
        if monitor is not None:
            monitor.async_global_read(g, lane, buf, np.arange(start, start + n, 16), 16, info, targets[0][1])
    if monitor is not None:
        for block, bar in targets:
            monitor.async_write(g, lane, block, offset, n, bar, info)
    data: list[Array] = []

    def read() -> None:
        if own is not None:
            own.check_runs()
        data.append(buf.data[start : start + n].copy())

    def write() -> None:
        for block, bar in targets:
            first, _ = _start(block, offset)
            block.smem.note_range(first, n, "bulk copy")
            block.smem.data[first : first + n] = data[0]
            bar.complete(n)
        g.count.progress += 1

    _machine(g, lane, info, read, write, targets, n)


def _bulk_size(n: int, lane: int) -> int:
    if n < 0 or n % 16:
        raise Fault("misaligned", f"bulk copy: the size must be a multiple of 16 bytes, got {n}", lane)
    return n


def _global_range(g: Group, address: int, n: int, lane: int, store: bool) -> tuple[Buffer, int]:
    buf = g.memory.find(address)
    if buf is None or address + n > buf.base + buf.size:
        raise Fault("oob", f"out-of-bounds bulk copy of {n} bytes: {g.memory.describe(address, n)}", lane, address)
    if address % 16:
        raise Fault("misaligned", "bulk copy: the global address must be aligned to 16 bytes", lane, address)
    if store and not buf.writable:
        raise Fault("readonly", f"bulk copy to {buf.name}, which is read-only", lane, address)
    start = address - buf.base
    if buf.valid is not None and not buf.valid[start : start + n].all():
        raise Fault("oob", f"bulk copy of {n} bytes touches padding of {buf.name}", lane, address)
    return buf, start


def _bulk_from_global(c: FnCompiler, op: Operation) -> None:
    sizes = segments(op, 6)
    slots = [c.use(v) for v in op.operands]
    k = Copies(c)
    k.shared, k.source, k.bar, k.size = slots[:4]
    k.mask = slots[4] if sizes[4] else -1
    emit_bulk_load(op, k)


def _bulk_between(c: FnCompiler, op: Operation) -> None:
    k = Copies(c)
    k.shared, k.source, k.bar, k.size = (c.use(v) for v in op.operands)
    emit_bulk_load(op, k)


# -- stores ---------------------------------------------------------------------------------------------------------


def groups_of(g: Group, lane: int) -> BulkGroups:
    """Return the bulk groups of a lane, created on first use."""
    got = g.bulk.get(lane)
    if got is None:
        got = g.bulk[lane] = BulkGroups()
    return got


def emit_tensor_store(op: Operation, k: Copies, combine: str) -> None:
    """Emit cp.async.bulk.tensor or cp.reduce.async.bulk.tensor out of shared memory."""
    c = k.c
    space = k.space(k.shared)
    info = c.info(op)
    owner = c.pieces.allocation(k.shared)
    site = through(op, k, True, "TMA reduction" if combine else "TMA store", reduces=bool(combine))

    def step(R: Regs, g: Group) -> None:
        for lane in active(g, R, k.predicate):
            tm, buf = tensor_map(g, operand(R, k.map, lane), lane, k.by_row)
            at = [operand(R, s, lane) for s in k.coordinates]
            _check_coordinates(tm, at, lane)
            if k.by_row:
                _check_stored_rows(tm, at, lane)
            if tm.unpack:
                raise Fault("tma", "the tensor map is one of loads that unpack 4-bit or 6-bit elements", lane)
            if bool(tm.pixels) != k.columns:
                what = "an im2col" if tm.pixels else "a tiled"
                raise Fault("tma", f"{what} tensor map needs a store of the same mode", lane)
            if k.columns and min(at) < 0:
                raise Fault("tma", f"coordinates of an im2col store must not be negative, got {tuple(at)}", lane)
            n = tm.box_bytes
            block, offset = shared_at(g, operand(R, k.shared, lane), space, lane, n, "TMA store from", 128, owner)
            check_promises(g, lane, site, buf, partial(tm.touched, buf, at, _unmoved(tm)), tm.element_bytes)
            monitor = g.machine.monitor
            if monitor is not None:
                monitor.async_read(g, lane, block, np.arange(offset // 16, (offset + n) // 16), info, None)
                elements = tm.touched(buf, at, _unmoved(tm), stored=True)
                monitor.async_global_write(g, lane, buf, elements, tm.element_bytes, info, combine)
            _check_source(g, lane, tm, buf, at, block, offset)
            if combine:
                _check_global(g, lane, "TMA reduction", buf, tm, at, _unmoved(tm))
            _issue_store(g, lane, info, n, *_store_steps(g, tm, buf, at, block, offset, n, combine, c.program.algebra))

    c.emit(op, step, pure=False)


def _check_stored_rows(tm: TensorMap, at: list[int], lane: int) -> None:
    """Check the coordinates of a scatter4 store.

    A GPU stops with an illegal instruction if one is negative (Triton, tutorial "Native TMA Gather and Scatter"). The
    order of four rows of one store is not documented.
    """
    if min(at) < 0:
        raise Fault("tma", f"coordinates of a scatter4 store must not be negative, got {tuple(at)}", lane)
    inside = [row for row in at[1:] if row < tm.extents[1]]
    for row in inside:
        if inside.count(row) > 1:
            raise Fault(
                "tma", f"a scatter4 store writes row {row} twice, in an undefined order; use each row once", lane
            )


def _check_source(g: Group, lane: int, tm: TensorMap, buf: Buffer, at: list[int], block: Block, offset: int) -> None:
    """Check the source bytes of a TMA store: no mbarrier, and written where the box is inside the tensor."""
    contents = block.smem.contents
    if contents is None:
        return
    start, address = _start(block, offset)
    try:
        contents.no_barrier(start, tm.box_bytes, "TMA store")
    except Fault as f:
        f.lane = lane
        raise
    if not g.machine.strict_uninit:
        return
    units = units_of(start, address, tm.box_bytes, tm.swizzle)
    state = contents.state.reshape(-1, 8).view(np.uint64).reshape(-1, 2)[units].reshape(-1).view(np.uint8)
    missing = (state != WRITTEN) & tm.inside(buf, at, _unmoved(tm))
    if missing.any():
        first = int(missing.argmax())
        byte = int(units[first // 16]) * 16 + first % 16
        g.warn_uninit(0, "TMA store", block.smem, byte, 1, lane)


def _check_global(
    g: Group, lane: int, verb: str, buf: Buffer, tm: TensorMap, at: Sequence[int], offsets: Sequence[int]
) -> None:
    """Check that the tensor elements read by a copy or reduction were written, if the buffer tracks that."""
    if buf.contents is not None:
        touched = tm.touched(buf, at, offsets)
        n = tm.element_bytes
        row = buf.contents.read(touched, n, n, verb, np.full(len(touched), lane))
        if row >= 0:
            g.warn_uninit(0, verb, buf, int(touched[row]), n, lane)


def _unmoved(tm: TensorMap) -> Sequence[int]:
    """Return zero im2col offsets for a store, which has none."""
    return (0,) * (tm.rank - 2) if tm.pixels else ()


def _store_steps(
    g: Group,
    tm: TensorMap,
    buf: Buffer,
    at: list[int],
    block: Block,
    offset: int,
    n: int,
    combine: str,
    algebra: Algebra | None,
) -> tuple[Callable[[], None], Callable[[], None]]:
    data: list[Array] = []

    def read() -> None:
        start, address = _start(block, offset)
        data.append(read_shared(block.smem, start, address, n, tm.swizzle))

    def write() -> None:
        tm.scatter(buf, at, data[0], combine, _unmoved(tm), algebra)
        g.count.progress += 1

    return read, write


def _issue_store(
    g: Group, lane: int, info: OpInfo, nbytes: int, read: Callable[[], None], write: Callable[[], None]
) -> None:
    t = Transfer(read, write, info, g, lane, nbytes)
    _issue(g, t)
    if g.machine.transfers.is_replayed:
        g.machine.transfers.pending.remove(t)
        t.finish()
    groups_of(g, lane).open.append(t)


def _tensor_store(c: FnCompiler, op: Operation) -> None:
    sizes = segments(op, 5)
    slots = [c.use(v) for v in op.operands]
    k = Copies(c)
    k.map, k.shared = slots[:2]
    k.coordinates = slots[2 : 2 + sizes[2]]
    if len(sizes) > 4 and sizes[4]:
        k.predicate = slots[-1]
    _set_mode(op, k)
    emit_tensor_store(op, k, "")


def _set_mode(op: Operation, k: Copies) -> None:
    """Set the mode of a store or reduction: tile, scatter4 or im2col."""
    mode = enum_word(attr_of(op, "mode")) or "tile"
    k.columns = mode == "im2col"
    k.by_row = mode == "tile_scatter4"


def _tensor_reduce(c: FnCompiler, op: Operation) -> None:
    sizes = segments(op, 4)
    slots = [c.use(v) for v in op.operands]
    k = Copies(c)
    k.map, k.shared = slots[:2]
    k.coordinates = slots[2 : 2 + sizes[2]]
    _set_mode(op, k)
    kind = enum_word(attr_of(op, "redKind"))
    emit_tensor_store(op, k, {"_and": "and", "_or": "or", "_xor": "xor"}.get(kind, kind))


def emit_bulk_store(op: Operation, k: Copies, combine: str = "", element: str = "") -> None:
    """Emit cp.async.bulk from shared to global memory. `combine` and `element` describe a cp.reduce.async.bulk."""
    c = k.c
    space = k.space(k.shared)
    info = c.info(op)
    owner = c.pieces.allocation(k.shared)
    site = through(op, k, True, "bulk reduction" if combine else "bulk copy", reduces=bool(combine))

    def step(R: Regs, g: Group) -> None:
        for lane in active(g, R, k.predicate):
            n = _bulk_size(operand(R, k.size, lane), lane)
            if n == 0:
                continue
            block, offset = shared_at(g, operand(R, k.shared, lane), space, lane, n, "bulk copy from", 16, owner)
            buf, start = _global_range(g, operand(R, k.source, lane), n, lane, True)
            check_promises(g, lane, site, buf, partial(np.arange, start, start + n, 16), 16)
            monitor = g.machine.monitor
            if monitor is not None:
                monitor.async_read(g, lane, block, np.arange(offset // 16, (offset + n) // 16), info, None)
                monitor.async_global_write(g, lane, buf, np.arange(start, start + n, 16), 16, info, combine)
            g.check_read(block.smem, block.smem_start + offset, n, "bulk copy", lane, id(info))
            if combine:
                g.check_read(buf, start, n, "bulk reduction", lane, id(info))
            _issue_store(
                g, lane, info, n, *_bulk_steps(g, block, offset, buf, start, n, combine, element, c.program.algebra)
            )

    c.emit(op, step, pure=False)


def _bulk_steps(
    g: Group,
    block: Block,
    offset: int,
    buf: Buffer,
    start: int,
    n: int,
    combine: str,
    element: str,
    algebra: Algebra | None,
) -> tuple[Callable[[], None], Callable[[], None]]:
    data: list[Array] = []

    def read() -> None:
        first, _ = _start(block, offset)
        data.append(block.smem.data[first : first + n].copy())

    def write() -> None:
        new = data[0]
        if combine:
            bits = f"u{int(element.lstrip('bfsu')) // 8}"
            old = buf.data[start : start + n].view(bits)
            new = combined(element, old, new.view(bits), combine, algebra).view(np.uint8)
        buf.data[start : start + n] = new
        buf.note_range(start, n, "bulk copy")
        g.count.progress += 1

    return read, write


def _bulk_to_global(c: FnCompiler, op: Operation) -> None:
    sizes = segments(op, 5)
    if sizes[4]:
        raise InterpError("unsupported", "a bulk copy with a byte mask is not supported")
    slots = [c.use(v) for v in op.operands]
    k = Copies(c)
    k.source, k.shared, k.size = slots[:3]
    emit_bulk_store(op, k)


def emit_commit(c: FnCompiler, op: Operation) -> None:
    """Emit cp.async.bulk.commit_group."""
    c.fn.needs_warp.append("a bulk group")

    def step(R: Regs, g: Group) -> None:
        for lane in g.mask.idx.tolist():
            groups = groups_of(g, lane)
            groups.groups.append(groups.open)
            groups.open = []

    c.emit(op, step, pure=False)


def emit_wait(c: FnCompiler, op: Operation, keep: int, only_read: bool) -> None:
    """Emit cp.async.bulk.wait_group[.read]."""
    c.fn.needs_warp.append("a bulk group")
    info = c.info(op)

    def gen(R: Regs, g: Group) -> Gen:
        lanes = g.mask.idx.tolist()
        mine = [g.bulk[lane] for lane in lanes if lane in g.bulk]

        def ready() -> bool:
            return all(b.ready(keep, only_read) for b in mine)

        if not ready():
            yield Wait(ready, info, f"waits for bulk copies (all but {keep} groups)")
        for lane in lanes:
            if lane not in g.bulk:
                continue
            groups = g.bulk[lane]
            done = max(0, len(groups.groups) - keep)
            groups.read = max(groups.read, done)
            if not only_read:
                groups.waited = max(groups.waited, done)
            if g.machine.monitor is not None:
                g.machine.monitor.bulk_waited(g, lane, done, only_read)

    c.emit_blocking(op, gen, info)


def _commit(c: FnCompiler, op: Operation) -> None:
    emit_commit(c, op)


def _wait(c: FnCompiler, op: Operation) -> None:
    n = getattr(getattr(attr_of(op, "group"), "value", None), "data", 0)
    emit_wait(c, op, n, attr_of(op, "read") is not None)


def _prefetch(c: FnCompiler, op: Operation) -> None:
    """Compile a prefetch, which has no observable effect."""
    for v in op.operands:
        c.uses(v)
    c.emit(op, lambda R, g: None, pure=False)


OPS: dict[str, Builder] = {
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": _tensor_load,
    "nvvm.cp.async.bulk.tensor.global.shared.cta": _tensor_store,
    "nvvm.cp.async.bulk.tensor.reduce": _tensor_reduce,
    "nvvm.cp.async.bulk.shared.cluster.global": _bulk_from_global,
    "nvvm.cp.async.bulk.shared.cluster.shared.cta": _bulk_between,
    "nvvm.cp.async.bulk.global.shared.cta": _bulk_to_global,
    "nvvm.cp.async.bulk.commit.group": _commit,
    "nvvm.cp.async.bulk.wait_group": _wait,
    "nvvm.cp.async.bulk.prefetch": _prefetch,
    "nvvm.cp.async.bulk.tensor.prefetch": _prefetch,
}


# -- inline PTX -------------------------------------------------------------------------------------------------------


def _bulk_tensor(text: Text, s: Statement) -> None:
    """Compile cp.async.bulk.tensor.Nd and cp.reduce.async.bulk.tensor.Nd."""
    k = Copies(text.c)
    k.predicate = text.plain_guard(s)
    combine = re.search(r"\.(add|min|max|inc|dec|and|or|xor)\b", s.opcode) if "reduce" in s.opcode else None
    load = ".global.shared::cta" not in s.opcode
    boxed = s.operands[0 if not load else 1]
    parts = [p.strip() for p in boxed.strip("[]").split(",", 1)]
    k.map = text.slot(parts[0])
    k.coordinates = [text.slot(p) for p in parts[1].strip().strip("{}").split(",")]
    if not load:
        k.columns = "im2col" in s.opcode
        k.by_row = ".tile::scatter4" in s.opcode
        k.shared = text.plain_address(s.operands[1])
        emit_tensor_store(text.op, k, combine[1] if combine else "")
        return
    k.shared = text.plain_address(s.operands[0])
    k.bar = text.plain_address(s.operands[2])
    rest = list(s.operands[3:])
    k.is_pair = "cta_group::2" in s.opcode
    k.by_row = ".tile::gather4" in s.opcode
    k.wide = 2 if ".im2col::w::128" in s.opcode else 1 if ".im2col::w" in s.opcode else 0
    bar = re.fullmatch(r"\[\s*\$(\d+)\s*\]", s.operands[2])
    k.signals_leader = k.is_pair and bar is not None and clears_parity(text.op.operands[int(bar[1]) - text.outputs])
    if "im2col" in s.opcode:
        k.offsets = [text.slot(p) for p in rest.pop(0).strip("{}").split(",")]
    if "multicast" in s.opcode:
        k.mask = text.slot(rest.pop(0))
    emit_tensor_load(text.op, k)


def _bulk(text: Text, s: Statement) -> None:
    """Compile cp.async.bulk between global and shared memory."""
    k = Copies(text.c)
    k.predicate = text.plain_guard(s)
    first, second = text.plain_address(s.operands[0]), text.plain_address(s.operands[1])
    k.size = text.slot(s.operands[2])
    if ".global.shared::cta" in s.opcode:
        k.source, k.shared = first, second
        reduction = re.search(r"\.(add|min|max|inc|dec|and|or|xor)(?:\.noftz)?\.(\w+)$", s.opcode)
        emit_bulk_store(text.op, k, *(reduction.groups() if reduction and "reduce" in s.opcode else ()))
        return
    k.shared, k.source = first, second
    k.bar = text.plain_address(s.operands[3])
    if "multicast" in s.opcode:
        k.mask = text.slot(s.operands[4])
    emit_bulk_load(text.op, k)


TABLE: Sequence[tuple[str, Handler]] = (
    (r"cp\.(reduce\.)?async\.bulk\.tensor.*", _bulk_tensor),
    (r"cp\.async\.bulk\.commit_group", lambda text, s: emit_commit(text.c, text.op)),
    (
        r"cp\.async\.bulk\.wait_group.*",
        lambda text, s: emit_wait(text.c, text.op, int(number(s.operands[0]) or 0), ".read" in s.opcode),
    ),
    (r"cp\.async\.bulk\.prefetch.*", no_effect),
    (r"cp\.(reduce\.)?async\.bulk\..*", _bulk),
)
