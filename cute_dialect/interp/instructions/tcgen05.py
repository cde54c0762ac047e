"""tcgen05 instructions and tensor memory: LLVM intrinsics `llvm.nvvm.tcgen05.*`, nvvm ops and inline PTX.

`machine.tcgen05` and `machine.tensor_memory` execute them, `race.tensor_order` checks their order. `alloc`, `dealloc`,
`ld`, `st` and `wait` are executed by a whole warp; `mma`, `cp` and `commit` are issued by each active thread.
`tcgen05.shift`, `cp.4x256b`, `.ws.sp`, `.ashift` and the column shift of zero-column masks are not supported.
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.arch.tcgen05_kinds import COLLECTORS
from cute_dialect.arch.tcgen05_ws import ZeroColumns
from cute_dialect.interp.compiler.control_flow import segments
from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.errors import Fault, InterpError, OpInfo, attr_of, location_text, op_text
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.instructions.ptx_text import Handler, Statement, Text, number
from cute_dialect.interp.machine import tensor_memory
from cute_dialect.interp.machine.barriers import Block, MBarrier, find_mbarrier
from cute_dialect.interp.machine.group import Group, TensorAccess, Wait
from cute_dialect.interp.machine.tcgen05 import (
    COPIES,
    KINDS,
    Copy,
    Form,
    Multiply,
    Pipe,
    Use,
    Work,
    check_idle,
    decode_shape,
)
from cute_dialect.interp.machine.tensor_memory import (
    HIGH,
    LOW,
    MOST_REGISTERS,
    SHAPES,
    WHOLE,
    Address,
    Fragment,
    Rect,
    check_window,
    fragment,
    lane_run,
    window,
)
from cute_dialect.interp.memory.accesses import Site, store
from cute_dialect.interp.memory.buffers import GENERIC, SHARED, SHARED_CLUSTER, SMEM_ORIGIN, WINDOW_BITS
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Array, Mask, Origin, Pending, Regs, Undefined, Value, active_uniform, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.race.tensor_order import TensorEvent

Gen = Generator[Wait, None, None]
_I32 = int_leaf(32)
_NEEDS = "a tcgen05 instruction"


def _begin(c: FnCompiler, op: Operation, group: int = 0) -> None:
    """Prepare to compile an instruction. Raises InterpError if the kernel uses another `cta_group`; 0 means none."""
    c.fn.needs_warp.append(_NEEDS)
    if not group:
        return
    where = location_text(op) or op_text(op)
    known = c.program.cta_group
    if known is None:
        c.program.cta_group = (group, where)
    elif known[0] != group:
        raise InterpError(
            "tcgen05",
            f"cta_group {group} in a kernel that uses cta_group {known[0]}; all tcgen05 instructions of a kernel must "
            "have the same",
            notes=(f"the first tcgen05 instruction with a cta_group is at {known[1]}",),
        )


def _block(g: Group) -> Block:
    return g.machine.blocks[g.block_of(0)]


def _warp(g: Group) -> int:
    return int(g.lane_tid[0]) // 32


def _whole(g: Group, name: str) -> None:
    """Raise Fault unless all 32 threads of the warp execute an instruction."""
    if g.mask.n != 32:
        raise Fault("sync", f"{name}: all 32 threads of the warp must execute it, got {g.mask.n}")


def _uniform(v: Value, g: Group, what: str) -> int:
    try:
        return active_uniform(v, g.mask, what)
    except Fault as f:
        if f.kind == "divergence":
            raise Fault("sync", f"{what} differs between the threads of the warp; it must be uniform") from None
        raise


def _pair(g: Group, lane: int, group: int, name: str) -> list[Block]:
    """Return the CTAs that an instruction works in: the own one, or the pair with the even rank first."""
    block = _block(g)
    if group == 1:
        return [block]
    size = len(block.cluster.blocks)
    rank = next(r for r in range(size) if g.cluster_peer(lane, r) == block.linear)
    if size % 2 or rank | 1 >= size:
        raise Fault("tcgen05", f"{name} with cta_group 2 in a cluster of {size} blocks; the pair needs an even number")
    out: list[Block] = []
    for r in (rank & ~1, rank | 1):
        peer = g.machine.blocks.get(g.cluster_peer(lane, r))
        if peer is None or peer.live_warps <= 0:
            raise Fault("sync", f"{name} with cta_group 2, but the other block of the pair has ended", lane)
        out.append(peer)
    return out


def _pipe(blocks: Sequence[Block]) -> Pipe:
    if blocks[0].pipe is None:
        blocks[0].pipe = Pipe()
    return blocks[0].pipe


def _constant(c: FnCompiler, slot: int, what: str) -> int:
    v = c.fn.template[slot]
    if not isinstance(v, (int, np.integer)):
        raise InterpError("unsupported", f"{what} must be a constant")
    return int(v)


def _lane_value(R: Regs, slot: int, lane: int) -> int:
    v = R[slot]
    if isinstance(v, Undefined):
        v = v.used(Mask.of(np.arange(32) == lane), "tcgen05")
    return int(v[lane]) if isinstance(v, np.ndarray) else int(v)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------------- allocation


def emit_alloc(c: FnCompiler, op: Operation, slot: int, columns: int, group: int, space: int, add: int = 0) -> None:
    """Emit tcgen05.alloc. `slot` and `columns` are slots."""
    _begin(c, op, group)
    info = c.info(op)
    site = Site(_I32, 4, space, True, "tcgen05.alloc", op)
    constant = c.fn.template[columns]
    if isinstance(constant, int):
        c.program.tensor_columns += constant
    c.pieces.bound(site, slot)

    def gen(R: Regs, g: Group) -> Gen:
        if g.mask.n == 0:
            return
        _whole(g, "tcgen05.alloc")
        count = _uniform(R[columns], g, "the number of columns of tcgen05.alloc")
        to = _uniform(R[slot], g, "the address of tcgen05.alloc") + add
        blocks = _pair(g, 0, group, "tcgen05.alloc")
        own = _block(g).tensor_memory()
        memories = [b.tensor_memory() for b in blocks]
        warp, last = _warp(g), g.machine.transfers.schedule in ("reverse", "adversarial")
        own.check_alloc(count, warp)
        own.waiting, own.requester = (warp, count), (g, info)
        g.count.progress += 1
        own.granted = -1
        if group == 2:
            other = memories[0] if memories[1] is own else memories[1]
            if other.waiting is None:
                yield Wait(lambda: own.granted >= 0, info, "waits for tcgen05.alloc by the other block of the pair")
            elif other.waiting[1] != count:
                raise Fault(
                    "tcgen05",
                    f"tcgen05.alloc of {count} columns, but the other block of the pair allocates {other.waiting[1]}; "
                    "both must allocate the same",
                )
        if own.granted < 0 and own.room(count, last, memories) < 0:
            free = own.owners.count(None)
            yield Wait(
                lambda: own.granted >= 0 or own.room(count, last, memories) >= 0,
                info,
                f"waits for {count} free columns of tensor memory ({free} are free)",
            )
        if own.granted < 0:
            _start_alloc(blocks, own.room(count, last, memories), count)
        first = own.granted
        saved = g.mask
        g.mask = Mask.of(np.arange(32) == 0)
        try:
            store(site, g, to, first)
        finally:
            g.mask = saved

    c.emit_blocking(op, gen, info)


def _start_alloc(blocks: Sequence[Block], first: int, count: int) -> None:
    """Allocate columns in a block, or in both blocks of a pair, for the warps that have requested them.

    The other warp of a pair may still be waiting: the first of the two to continue may use the memory of both blocks.
    """
    events: list[TensorEvent] = []
    for block in blocks:
        memory = block.tensor_memory()
        assert memory.waiting is not None and memory.requester is not None
        (warp, _), (g, info) = memory.waiting, memory.requester
        memory.waiting, memory.granted = None, first
        memory.allocate(first, count, warp, info)
        if g.machine.monitor is not None:
            whole = Rect(lane_run(0, tensor_memory.LANES), first, first + count)
            uses = [Use(block, whole, True, "allocation")]
            events.append(g.machine.monitor.tensor.issue(g, "alloc", info, range(32), uses))
    if len(events) == 2:
        events[0].other, events[1].other = events[1], events[0]


def emit_dealloc(c: FnCompiler, op: Operation, address: int, columns: int, group: int) -> None:
    """Emit tcgen05.dealloc."""
    _begin(c, op, group)
    info = c.info(op)

    def gen(R: Regs, g: Group) -> Gen:
        if g.mask.n == 0:
            return
        _whole(g, "tcgen05.dealloc")
        count = _uniform(R[columns], g, "the number of columns of tcgen05.dealloc")
        at = _uniform(R[address], g, "the address of tcgen05.dealloc") & 0xFFFFFFFF
        blocks = _pair(g, 0, group, "tcgen05.dealloc")
        own = _block(g).tensor_memory()
        freed = own.free(at, count, info)
        check_idle(_pipe(blocks), own, freed.first, freed.end, "tcgen05.dealloc")
        monitor = g.machine.monitor
        if monitor is not None:
            whole = Rect(lane_run(0, tensor_memory.LANES), freed.first, freed.end)
            lanes = range(32)
            monitor.tensor.issue(g, "dealloc", info, lanes, [Use(_block(g), whole, True, "allocation")])
        g.count.progress += 1
        if group == 2:
            other = next(b for b in blocks if b is not _block(g)).tensor_memory()
            own.returned += 1
            turn = own.returned
            if other.returned < turn:
                text = "waits for tcgen05.dealloc by the other block of the pair"
                yield Wait(lambda: other.returned >= turn, info, text)

    c.emit_blocking(op, gen, info)


def emit_relinquish(c: FnCompiler, op: Operation, group: int) -> None:
    """Emit tcgen05.relinquish_alloc_permit."""
    _begin(c, op, group)
    info = c.info(op)

    def step(R: Regs, g: Group) -> None:
        if g.mask.n == 0:
            return
        _whole(g, "tcgen05.relinquish_alloc_permit")
        _block(g).tensor_memory().relinquished = info

    c.emit(op, step, pure=False)


# ----------------------------------------------------------------------------------------------------- loads and stores


class Transferred:
    """The static part of a tcgen05.ld or st."""

    def __init__(self, name: str, shape: str, count: int, packed: bool, offset: int = 0) -> None:
        self.name = name
        self.shape = shape
        self.registers = SHAPES[shape] * count
        if self.registers > MOST_REGISTERS:
            raise InterpError("unsupported", f"{name}.{shape}.x{count} has {self.registers} registers; at most 128")
        self.fragment: Fragment = fragment(shape, count, offset, packed)

    def place(self, g: Group, address: int) -> tuple[Address, tuple[Rect, ...]]:
        """Check an address and return the words that the warp accesses. Raises Fault."""
        at = Address.of(address)
        check_window(at, self.shape, _warp(g), self.name)
        rects = window(self.fragment.rects, at)
        _block(g).tensor_memory().check_access(rects, f"{self.name}.{self.shape}")
        return at, rects


def _access(g: Group, info: OpInfo, kind: str, rects: Sequence[Rect], run: Callable[[], list[Value]]) -> TensorAccess:
    """Issue a load or store. The schedule decides whether it is performed now or when the warp waits."""
    monitor = g.machine.monitor
    event = None
    if monitor is not None:
        uses = [Use(_block(g), r, kind == "st", "destination" if kind == "st" else "source") for r in rects]
        event = monitor.tensor.issue(g, kind, info, range(32), uses)
    access = TensorAccess(info, run, event)
    (g.tensor_stores if kind == "st" else g.tensor_loads).append(access)
    g.count.progress += 1
    if g.machine.transfers.eager():
        access.finish()
    return access


def emit_load(
    c: FnCompiler, op: Operation, t: Transferred, address: int, outs: list[int], reduction: Reduction | None = None
) -> None:
    """Emit tcgen05.ld into one vector register, or one register for each word.

    Args:
        reduction: For tcgen05.ld.red, the reduction whose result is in the last register.
    """
    _begin(c, op)
    info = c.info(op)
    leaves = [c.leaf_of(d) for d in outs]
    is_vector = len(outs) == 1 and bool(leaves[0].shape)

    def step(R: Regs, g: Group) -> None:
        if g.mask.n == 0:
            return
        _whole(g, t.name)
        at, rects = t.place(g, _uniform(R[address], g, f"the address of {t.name}") & 0xFFFFFFFF)
        memory = _block(g).tensor_memory()
        end = max(r.end for r in rects) - 1

        def text() -> str:
            columns = f"column {at.column}" if end == at.column else f"columns {at.column} to {end}"
            place = f" at {info.location}" if info.location else ""
            return f"unwritten tensor memory (lane {at.lane}, {columns}), loaded by tcgen05.ld{place}"

        origin = Origin(text, True, "wait for the MMA or store that writes it before the load")

        def run() -> list[Value]:
            words, valid = memory.read(at, t.fragment)
            columns = [words] if is_vector else [words[:, i] for i in range(t.registers)]
            halves = [valid] if is_vector else [valid[:, i] for i in range(t.registers)]
            values: list[Value] = [
                _loaded(g, w.view(np.int32).view(leaf.dtype), v, origin) for w, v, leaf in zip(columns, halves, leaves)
            ]
            if reduction is not None:
                values.append(_loaded(g, reduction.of(words).view(leaves[-1].dtype), valid.min(axis=1), origin))
            return values

        access = _access(g, info, "ld", rects, run)
        for i, d in enumerate(outs):
            R[d] = Pending(access, i)

    c.emit(op, step, pure=False, track=False)


def _loaded(g: Group, values: Array, valid: Array, origin: Origin) -> Value:
    """Return loaded registers, with a mask of the bits that nothing has written if those are tracked."""
    values = np.ascontiguousarray(values)
    if not g.machine.tracks or (valid == WHOLE).all():
        return values
    low, high = np.uint32(0xFFFF), np.uint32(0xFFFF0000)
    bits = np.where(valid & LOW, np.uint32(0), low) | np.where(valid & HIGH, np.uint32(0), high)
    return Undefined(values, bits.astype(np.uint32), origin)


class Reduction:
    """The reduction of tcgen05.ld.red over the columns of a lane."""

    def __init__(self, operation: str, kind: str, absolute: bool, nan: bool) -> None:
        self.operation = operation
        self.kind = kind
        self.absolute = absolute
        self.nan = nan

    def of(self, words: Array) -> Array:
        """Return the result of each thread as bits."""
        if self.kind != "f32":
            v = words.view(np.int32 if self.kind == "s32" else np.uint32)
            out = v.max(axis=1) if self.operation == "max" else v.min(axis=1)
            return np.ascontiguousarray(out).view(np.uint32)
        v = words.view(np.float32)
        if self.absolute:
            v = np.abs(v)
        table = {("max", False): np.fmax, ("max", True): np.maximum, ("min", False): np.fmin, ("min", True): np.minimum}
        out = table[self.operation, self.nan].reduce(v, axis=1)
        out = np.where(np.isnan(out), np.uint32(0x7FFFFFFF), np.ascontiguousarray(out).view(np.uint32))
        return out.astype(np.uint32)


def emit_store(c: FnCompiler, op: Operation, t: Transferred, address: int, values: list[int]) -> None:
    """Emit tcgen05.st of one vector register, or one register for each word."""
    _begin(c, op)
    info = c.info(op)
    leaves = [c.leaf_of(s) for s in values]

    def step(R: Regs, g: Group) -> None:
        if g.mask.n == 0:
            return
        _whole(g, t.name)
        at, rects = t.place(g, _uniform(R[address], g, f"the address of {t.name}") & 0xFFFFFFFF)
        words = np.empty((32, t.registers), np.uint32)
        valid = np.full((32, t.registers), WHOLE, np.uint8)
        column = 0
        for s, leaf in zip(values, leaves):
            v = R[s]
            if isinstance(v, Pending):
                v = v.result()
            to = slice(column, column + leaf.count)
            if isinstance(v, Undefined):
                bits = np.broadcast_to(v.bits, (32, *leaf.shape)).reshape(32, -1).astype(np.uint32)
                low, high = bits & np.uint32(0xFFFF), bits >> np.uint32(16)
                valid[:, to] = np.where(low, 0, LOW) | np.where(high, 0, HIGH)
                v = v.value
            words[:, to] = np.ascontiguousarray(to_lanes(v, leaf, 32)).view(np.uint32).reshape(32, -1)
            column += leaf.count
        memory = _block(g).tensor_memory()

        def run() -> list[Value]:
            memory.write(at, t.fragment, words, valid)
            return []

        _access(g, info, "st", rects, run)

    c.emit(op, step, pure=False, track=False)


def emit_wait(c: FnCompiler, op: Operation, kind: str) -> None:
    """Emit tcgen05.wait::ld or tcgen05.wait::st."""
    _begin(c, op)

    def step(R: Regs, g: Group) -> None:
        if g.mask.n == 0:
            return
        _whole(g, f"tcgen05.wait::{kind}")
        waiting = g.tensor_loads if kind == "ld" else g.tensor_stores
        for access in waiting:
            access.finish()
            access.waited = True
        monitor = g.machine.monitor
        if monitor is not None:
            monitor.tensor.waited(g, [a.event for a in waiting if a.event is not None])
        waiting.clear()
        if kind == "ld":
            moves, g.tensor_moves = g.tensor_moves, []
            for execute in moves:
                execute()

    c.emit(op, step, pure=False)


def emit_fence(c: FnCompiler, op: Operation, which: str) -> None:
    """Emit tcgen05.fence::before_thread_sync or after_thread_sync."""
    _begin(c, op)

    def step(R: Regs, g: Group) -> None:
        g.machine.fences += g.mask.n
        monitor = g.machine.monitor
        if monitor is not None and g.mask.n:
            lanes = g.mask.idx.tolist()
            if which == "before":
                monitor.tensor.fence_before(g, lanes)
            else:
                monitor.tensor.fence_after(g, lanes)

    c.emit(op, step, pure=False)


# ------------------------------------------------------------------------------------------------------- MMA and copies


class MmaSlots:
    """The operand slots of an MMA, -1 for absent ones. `scale_d`, `collector` and `buffer` are values."""

    def __init__(self, d: int, a: int, b: int, shape: int, accumulates: int) -> None:
        self.d, self.a, self.b, self.shape, self.accumulates = d, a, b, shape, accumulates
        self.a_in_tensor_memory = False
        self.sfa = self.sfb = self.metadata = -1
        self.lanes: list[int] = []  # slots of the words of the lane mask, or one vector
        self.scale_d = 0
        self.collector = "discard"
        self.buffer = "a"
        self.mask = -1
        self.negated = False  # the predicate that enables the accumulator is negated


def emit_mma(c: FnCompiler, op: Operation, form: Form, k: MmaSlots) -> None:
    """Emit tcgen05.mma."""
    _begin(c, op, form.group)
    info = c.info(op)
    name = form.name
    if form.is_sparse and form.is_weight_stationary:
        raise InterpError("unsupported", f"{name} is not supported by the interpreter")

    def step(R: Regs, g: Group) -> None:
        lanes = g.mask.idx.tolist()
        if len(lanes) > 1:
            raise Fault(
                "tcgen05",
                f"{name} is executed by {len(lanes)} threads, and each issues it; let one thread execute it "
                "(elect.sync)",
                lanes[1],
            )
        for lane in lanes:
            blocks = _pair(g, lane, form.group, name)
            shape = decode_shape(_lane_value(R, k.shape, lane) & 0xFFFFFFFF, form)
            accumulates = bool(_lane_value(R, k.accumulates, lane)) is not k.negated
            d = _lane_value(R, k.d, lane) & 0xFFFFFFFF
            a, b = _lane_value(R, k.a, lane), _lane_value(R, k.b, lane)
            i = Multiply(form, d, a & ((1 << 64) - 1), b & ((1 << 64) - 1), shape, accumulates, blocks)
            if k.a_in_tensor_memory:
                i.a, i.a_in_tensor_memory = a & 0xFFFFFFFF, True
            i.scale_d = k.scale_d
            if form.vector:
                i.sfa, i.sfb = (Address.of(_lane_value(R, s, lane) & 0x3FFFFFFF) for s in (k.sfa, k.sfb))
            if form.is_sparse:
                i.metadata = Address.of(_lane_value(R, k.metadata, lane) & 0xFFFFFFFF)
            if k.lanes:
                i.disabled = _disabled(R, k.lanes, lane, len(blocks))
            if k.mask >= 0:
                bits = _lane_value(R, k.mask, lane) & ((1 << 64) - 1)
                i.zero_columns = ZeroColumns.of(bits)
                if bits >> 56 & 63:
                    raise Fault(
                        "unsupported",
                        f"{name} with the zero-column mask {bits:#x}, which shifts B by {bits >> 56 & 63} columns, is "
                        "not supported by the interpreter; use a shift of 0",
                        lane,
                    )
            i.collector, i.buffer = k.collector, k.buffer
            _issue(g, lane, "mma", info, i)

    c.emit(op, step, pure=False)


def _disabled(R: Regs, slots: list[int], lane: int, count: int) -> list[int]:
    """Return the mask of disabled lanes of each CTA, from 4 words for each."""
    words: list[int] = []
    for s in slots:
        v = np.asarray(R[s])
        one = v[lane] if v.ndim == 2 or (v.ndim == 1 and len(slots) > 1 and len(v) == 32) else v
        words += [int(w) & 0xFFFFFFFF for w in np.atleast_1d(one)]
    return [sum(w << 32 * i for i, w in enumerate(words[4 * n : 4 * n + 4])) for n in range(count)]


def _issue(g: Group, lane: int, kind: str, info: OpInfo, work: Work) -> None:
    """Check an operation of a lane, and add it to the tensor pipe."""
    name = work.name
    try:
        work.check()
        uses = work.uses()
        _check_uses(uses, name)
        pipe = _pipe(work.blocks)
        if isinstance(work, Multiply):
            pipe.collect(work)
            if g.machine.report.flops is not None:
                counts = g.machine.report.flops.tensor
                counts[info.source] = counts.get(info.source, 0.0) + work.flops
        for operand in work.operands():
            operand.locate(name)
        if g.machine.monitor is not None:
            g.machine.monitor.tensor_operation(g, lane, kind, info, work, uses)
    except Fault as f:
        f.lane = lane if f.lane < 0 else f.lane
        raise
    pipe.add(lambda: work.execute(g), info, g, lane, uses, str(work) if isinstance(work, Multiply) else "")


def _check_uses(uses: Sequence[Use], name: str) -> None:
    for use in uses:
        use.block.tensor_memory().check_access([use.rect], name, f" ({use.role})")
    for written in uses:
        for use in uses:
            if written.writes and not use.writes and written.block is use.block:
                first, end = max(written.rect.first, use.rect.first), min(written.rect.end, use.rect.end)
                if first < end and written.rect.lanes & use.rect.lanes:
                    where = f"column {first}" if end - first == 1 else f"columns {first} to {end - 1}"
                    raise Fault(
                        "tcgen05",
                        f"race on tensor memory within one instruction: {name} reads its {use.role} from {where}, "
                        f"which it overwrites with its {written.role}",
                    )


def emit_cp(
    c: FnCompiler, op: Operation, shape: str, source_bits: int, address: int, descriptor: int, group: int
) -> None:
    """Emit tcgen05.cp."""
    _begin(c, op, group)
    info = c.info(op)
    name = f"tcgen05.cp.{shape}"
    if shape not in COPIES:
        raise InterpError("unsupported", f"{name} is not supported by the interpreter; use {', '.join(COPIES)}")

    def step(R: Regs, g: Group) -> None:
        for lane in g.mask.idx.tolist():
            blocks = _pair(g, lane, group, name)
            at = _lane_value(R, address, lane) & 0xFFFFFFFF
            i = Copy(shape, at, _lane_value(R, descriptor, lane) & ((1 << 64) - 1), source_bits, blocks)
            _issue(g, lane, "cp", info, i)

    c.emit(op, step, pure=False)


def emit_commit(c: FnCompiler, op: Operation, address: int, mask: int, group: int, space: int, add: int = 0) -> None:
    """Emit tcgen05.commit. `mask` is the slot of the multicast mask, -1 for none."""
    _begin(c, op, group)
    info = c.info(op)
    owner = c.pieces.allocation(address)

    def step(R: Regs, g: Group) -> None:
        for lane in g.mask.idx.tolist():
            at = _lane_value(R, address, lane) + add
            blocks = _pair(g, lane, group, "tcgen05.commit")
            home, bar = find_mbarrier(g, at, space, lane, owner)
            bars = [(home, bar)]
            if mask >= 0:
                bars = _receivers(g, home, at, _lane_value(R, mask, lane) & 0xFFFF, lane)
            monitor = g.machine.monitor
            message = None if monitor is None else monitor.tensor_committed(g, lane, bars, info)
            _pipe(blocks).add(lambda bars=bars, message=message: _arrive(bars, message), info, g, lane)

    c.emit(op, step, pure=False)


def _arrive(bars: Sequence[tuple[Block, MBarrier]], message: Array | None) -> None:
    for block, bar in bars:
        block.check_runs()
        if message is not None:
            bar.clocks.add(message)  # type: ignore[attr-defined]
        bar.arrive()


def _receivers(g: Group, home: Block, address: int, mask: int, lane: int) -> list[tuple[Block, MBarrier]]:
    """Return the mbarriers at the same offset in each CTA of a multicast mask."""
    size = len(home.cluster.blocks)
    if mask >> size or mask <= 0:
        raise Fault("oob", f"tcgen05.commit: the multicast mask {mask:#b} must select CTAs in [0, {size})", lane)
    offset = (address & ((1 << WINDOW_BITS) - 1)) - SMEM_ORIGIN
    out: list[tuple[Block, MBarrier]] = []
    for rank in range(size):
        if mask >> rank & 1:
            linear = g.cluster_peer(lane, rank)
            block = next(b for b in home.cluster.blocks if b.linear == linear)
            block.check_runs(lane)
            bar = block.mbarriers.get(offset)
            if bar is None:
                at = f"byte offset {offset}{g.machine.shared_names.place(offset)}"
                raise Fault("sync", f"tcgen05.commit: no mbarrier is initialized at {at} of CTA {rank}", lane)
            out.append((block, bar))
    return out


# ----------------------------------------------------------------------------------------------------------- intrinsics


def intrinsic(c: FnCompiler, op: Operation, m: re.Match[str]) -> None:
    """Compile `llvm.nvvm.tcgen05.*`. Raises InterpError for an unsupported one."""
    name = m[1]
    slots = [c.use(v) for v in op.operands]
    for pattern, build in _INTRINSICS:
        found = re.fullmatch(pattern, name)
        if found is not None:
            build(c, op, found, slots)
            return
    raise InterpError("unsupported", f"llvm.nvvm.tcgen05.{name} is not supported by the interpreter")


def _space(c: FnCompiler, slot: int) -> int:
    leaf = c.leaf_of(slot)
    return leaf.space if leaf.kind == "p" else SHARED


def _ld(c: FnCompiler, op: Operation, m: re.Match[str], slots: list[int]) -> None:
    offset = _constant(c, slots[1], "the column offset of tcgen05.ld") if m[1] == "16x32bx2" else 0
    packed = bool(_constant(c, slots[-1], "the pack flag of tcgen05.ld"))
    t = Transferred("tcgen05.ld", m[1], int(m[2]), packed, offset)
    emit_load(c, op, t, slots[0], list(c.defines(op.results[0])))


def _st(c: FnCompiler, op: Operation, m: re.Match[str], slots: list[int]) -> None:
    offset = _constant(c, slots[1], "the column offset of tcgen05.st") if m[1] == "16x32bx2" else 0
    packed = bool(_constant(c, slots[-1], "the unpack flag of tcgen05.st"))
    t = Transferred("tcgen05.st", m[1], int(m[2]), packed, offset)
    emit_store(c, op, t, slots[0], slots[-2:-1])


_COPY_NAMES = {
    "64x128b_warpx2_02_13": "64x128b.warpx2::02_13",
    "64x128b_warpx2_01_23": "64x128b.warpx2::01_23",
    "32x128b_warpx4": "32x128b.warpx4",
}
_SOURCE_BITS = {None: 8, ".b6x16_p32": 6, ".b4x16_p64": 4}


def _cp(c: FnCompiler, op: Operation, m: re.Match[str], slots: list[int]) -> None:
    emit_cp(c, op, _COPY_NAMES.get(m[1], m[1]), _SOURCE_BITS[m[2]], slots[0], slots[1], int(m[3]))


def _mma(c: FnCompiler, op: Operation, m: re.Match[str], slots: list[int]) -> None:
    ws, sp, a_space, rest = m.groups()
    words = rest.split(".")[1:]
    k = MmaSlots(*slots[:5])
    left = slots[5:]
    k.a_in_tensor_memory = a_space == "tensor"
    if sp:
        k.metadata = left.pop(0)
    if "ashift" in words:
        raise InterpError("unsupported", f"tcgen05.mma.{m[0][4:]} is not supported by the interpreter")
    if "block_scale" in words:
        k.sfa, k.sfb = left[:2]
        group = _constant(c, left[2], "cta_group")
        k.collector = COLLECTORS[_constant(c, left[3], "the collector usage")]
        vector = {"mxf8f6f4": 32, "mxf4": 32}.get(words[0], 16 if "block16" in words else 32)
        form = Form(words[0], group, vector, bool(sp))
    elif ws:
        if "zero_col_mask" in words:
            k.mask = left.pop(0)
        form = Form(KINDS[_constant(c, left[0], "the kind")], 1, 0, bool(sp), True)
        k.buffer = f"b{_constant(c, left[1], 'the collector buffer')}"
        k.collector = COLLECTORS[_constant(c, left[2], "the collector usage")]
    else:
        if "scale_d" in words:
            k.scale_d = _constant(c, left.pop(0), "the scale of D")
        group = next((int(w[2:]) for w in words if w.startswith("cg")), 0)
        if group:
            k.lanes = [left.pop(0)]
        kind = KINDS[_constant(c, left[0], "the kind")]
        group = group or _constant(c, left[1], "cta_group")
        k.collector = COLLECTORS[_constant(c, left[-1], "the collector usage")]
        form = Form(kind, group, 0, bool(sp))
    emit_mma(c, op, form, k)


def _commit(c: FnCompiler, op: Operation, m: re.Match[str], slots: list[int]) -> None:
    emit_commit(c, op, slots[0], slots[1] if m[1] else -1, int(m[2]), _space(c, slots[0]))


Built = Callable[[FnCompiler, "Operation", "re.Match[str]", list[int]], None]
_SHAPE = r"(32x32b|16x64b|16x128b|16x256b|16x32bx2)\.x(\d+)"
_INTRINSICS: tuple[tuple[str, Built], ...] = (
    (
        r"alloc(?:\.shared)?\.cg([12])",
        lambda c, op, m, s: emit_alloc(c, op, s[0], s[1], int(m[1]), _space(c, s[0])),
    ),
    (r"dealloc\.cg([12])", lambda c, op, m, s: emit_dealloc(c, op, s[0], s[1], int(m[1]))),
    (r"relinq\.alloc\.permit\.cg([12])", lambda c, op, m, s: emit_relinquish(c, op, int(m[1]))),
    (r"ld\." + _SHAPE, _ld),
    (r"st\." + _SHAPE, _st),
    (r"wait\.(ld|st)", lambda c, op, m, s: emit_wait(c, op, m[1])),
    (r"fence\.(before|after)\.thread\.sync", lambda c, op, m, s: emit_fence(c, op, m[1])),
    (r"commit(\.mc)?(?:\.shared)?\.cg([12])", _commit),
    (r"cp\.(\w+?)(\.b6x16_p32|\.b4x16_p64)?\.cg([12])", _cp),
    (r"mma(\.ws)?(\.sp)?\.(shared|tensor)((?:\.\w+)*)", _mma),
)


# ------------------------------------------------------------------------------------------------------------- nvvm ops


def _group_of(op: Operation, name: str = "group") -> int:
    return 2 if enum_word(attr_of(op, name)) == "cta_2" else 1


def _alloc_op(c: FnCompiler, op: Operation) -> None:
    slot, columns = (c.use(v) for v in op.operands)
    emit_alloc(c, op, slot, columns, _group_of(op), _space(c, slot))


def _dealloc_op(c: FnCompiler, op: Operation) -> None:
    address, columns = (c.use(v) for v in op.operands)
    emit_dealloc(c, op, address, columns, _group_of(op))


def _moved(c: FnCompiler, op: Operation, name: str, slots: list[int], register: int, packed: str) -> Transferred:
    """Return the static part of an nvvm load or store; `register` is the slot of its registers."""
    shape = enum_word(attr_of(op, "shape")).removeprefix("shape_")
    offset = _constant(c, slots[-1], f"the column offset of {name}") if shape == "16x32bx2" else 0
    count = c.leaf_of(register).count // SHAPES[shape]
    return Transferred(name, shape, count, attr_of(op, packed) is not None, offset)


def _ld_op(c: FnCompiler, op: Operation) -> None:
    slots = [c.use(v) for v in op.operands]
    out = c.define(op.results[0])
    emit_load(c, op, _moved(c, op, "tcgen05.ld", slots, out, "pack"), slots[0], [out])


def _st_op(c: FnCompiler, op: Operation) -> None:
    slots = [c.use(v) for v in op.operands]
    emit_store(c, op, _moved(c, op, "tcgen05.st", slots, slots[1], "unpack"), slots[0], [slots[1]])


def _cp_op(c: FnCompiler, op: Operation) -> None:
    address, descriptor = (c.use(v) for v in op.operands)
    shape = enum_word(attr_of(op, "shape")).removeprefix("shape_")
    multicast = enum_word(attr_of(op, "multicast"))
    name = f"{shape}_{multicast}" if multicast not in ("", "none") else shape
    packing = enum_word(attr_of(op, "srcFormat"))
    bits = _SOURCE_BITS[f".{packing}" if packing else None]
    emit_cp(c, op, _COPY_NAMES.get(name, name), bits, address, descriptor, _group_of(op))


def _sparse_mma_op(c: FnCompiler, op: Operation) -> None:
    slots = [c.use(v) for v in op.operands]
    sizes = segments(op, 8)
    k = MmaSlots(*slots[:5])
    k.metadata, *left = slots[5:]
    if sizes[6]:
        k.scale_d = _constant(c, left.pop(0), "the scale of D")
    k.lanes = left
    _finish_mma_op(c, op, k, Form(enum_word(attr_of(op, "kind")), _group_of(op, "ctaGroup"), 0, True))


def _ws_mma_op(c: FnCompiler, op: Operation) -> None:
    slots = [c.use(v) for v in op.operands]
    k = MmaSlots(*slots[:5])
    k.mask = slots[5] if len(slots) > 5 else -1
    k.buffer = enum_word(attr_of(op, "collectorBBuffer")) or "b0"
    _finish_mma_op(c, op, k, Form(enum_word(attr_of(op, "kind")), 1, 0, False, True))


def _sparse_scaled_mma_op(c: FnCompiler, op: Operation) -> None:
    slots = [c.use(v) for v in op.operands]
    k = MmaSlots(*slots[:5])
    k.metadata, k.sfa, k.sfb = slots[5:8]
    vector = 16 if enum_word(attr_of(op, "blockScale")) == "block16" else 32
    _finish_mma_op(c, op, k, Form(enum_word(attr_of(op, "kind")), _group_of(op, "ctaGroup"), vector, True))


def _mma_op(c: FnCompiler, op: Operation) -> None:
    slots = [c.use(v) for v in op.operands]
    sizes = segments(op, 7)
    k = MmaSlots(*slots[:5])
    left = slots[5:]
    if sizes[5]:
        k.scale_d = _constant(c, left.pop(0), "the scale of D")
    k.lanes = left
    _finish_mma_op(c, op, k, Form(enum_word(attr_of(op, "kind")), _group_of(op, "ctaGroup")))


def _scaled_mma_op(c: FnCompiler, op: Operation) -> None:
    slots = [c.use(v) for v in op.operands]
    k = MmaSlots(*slots[:5])
    k.sfa, k.sfb = slots[5:7]
    vector = 16 if enum_word(attr_of(op, "blockScale")) == "block16" else 32
    _finish_mma_op(c, op, k, Form(enum_word(attr_of(op, "kind")), _group_of(op, "ctaGroup"), vector))


def _finish_mma_op(c: FnCompiler, op: Operation, k: MmaSlots, form: Form) -> None:
    if attr_of(op, "aShift") is not None:
        raise InterpError("unsupported", "tcgen05.mma with .ashift is not supported by the interpreter")
    k.a_in_tensor_memory = c.leaf_of(k.a).kind == "p"
    k.collector = enum_word(attr_of(op, "collectorOp")) or "discard"
    emit_mma(c, op, form, k)


def _commit_op(c: FnCompiler, op: Operation) -> None:
    slots = [c.use(v) for v in op.operands]
    emit_commit(c, op, slots[0], slots[1] if len(slots) > 1 else -1, _group_of(op), _space(c, slots[0]))


OPS: dict[str, Builder] = {
    "nvvm.tcgen05.alloc": _alloc_op,
    "nvvm.tcgen05.dealloc": _dealloc_op,
    "nvvm.tcgen05.relinquish_alloc_permit": lambda c, op: emit_relinquish(c, op, _group_of(op)),
    "nvvm.tcgen05.ld": _ld_op,
    "nvvm.tcgen05.st": _st_op,
    "nvvm.tcgen05.wait": lambda c, op: emit_wait(c, op, "st" if enum_word(attr_of(op, "kind")) == "store" else "ld"),
    "nvvm.tcgen05.fence": lambda c, op: emit_fence(c, op, enum_word(attr_of(op, "kind"))),
    "nvvm.tcgen05.cp": _cp_op,
    "nvvm.tcgen05.mma": _mma_op,
    "nvvm.tcgen05.mma.block_scale": _scaled_mma_op,
    "nvvm.tcgen05.mma.ws": _ws_mma_op,
    "nvvm.tcgen05.mma.sp": _sparse_mma_op,
    "nvvm.tcgen05.mma.sp.block_scale": _sparse_scaled_mma_op,
    "nvvm.tcgen05.commit": _commit_op,
}


# ----------------------------------------------------------------------------------------------------------- inline PTX


def _group(s: Statement) -> int:
    m = re.search(r"cta_group::([12])", s.opcode)
    if m is None:
        raise InterpError("unsupported", f"{s.opcode} has no .cta_group")
    return int(m[1])


def _unguarded(text: Text, s: Statement) -> None:
    if text.guard(s)[0] >= 0:
        raise InterpError("unsupported", f"{s.opcode} under a predicate is not supported; branch around it")


def _tensor_address(text: Text, operand: str) -> int:
    slot, add = text.address(operand)
    if add:
        raise InterpError("unsupported", f"{operand}: an address of tensor memory with an offset is not supported")
    return slot


def _ptx_alloc(text: Text, s: Statement) -> None:
    _unguarded(text, s)
    slot, add = text.address(s.operands[0])
    space = text.shared_space(s, slot) if ".shared" in s.opcode else GENERIC
    emit_alloc(text.c, text.op, slot, text.slot(s.operands[1]), _group(s), space, add)


def _ptx_dealloc(text: Text, s: Statement) -> None:
    _unguarded(text, s)
    emit_dealloc(text.c, text.op, text.slot(s.operands[0]), text.slot(s.operands[1]), _group(s))


def _ptx_transfer(text: Text, s: Statement) -> None:
    _unguarded(text, s)
    m = re.fullmatch(
        r"tcgen05\.(ld|st)(\.red)?\.sync\.aligned\." + _SHAPE + r"(\.pack::16b|\.unpack::16b)?((?:\.\w+)*)", s.opcode
    )
    if m is None:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    is_load = m[1] == "ld"
    at = next(i for i, o in enumerate(s.operands) if o.startswith("["))
    offset = 0
    if m[3] == "16x32bx2":
        offset = int(number(s.operands[at + 1]) or 0)
    t = Transferred(f"tcgen05.{m[1]}{m[2] or ''}", m[3], int(m[4]), m[5] is not None, offset)
    address = _tensor_address(text, s.operands[at])
    if not is_load:
        emit_store(text.c, text.op, t, address, [text.slot(p) for p in s.parts(len(s.operands) - 1)])
        return
    outs = [text.slot(p) for p in s.parts(0)]
    reduction = None
    if m[2]:
        words = m[6].split(".")[1:]
        reduction = Reduction(words[0], words[-1], "abs" in words, "NaN" in words)
        outs.append(text.slot(s.operands[1]))
    emit_load(text.c, text.op, t, address, outs, reduction)


def _ptx_cp(text: Text, s: Statement) -> None:
    m = re.fullmatch(
        r"tcgen05\.cp\.cta_group::([12])\.(\w+(?:\.warpx\d(?:::\w+)?)?)(?:\.b8x16(\.b6x16_p32|\.b4x16_p64))?", s.opcode
    )
    if m is None:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    _unguarded(text, s)
    address = _tensor_address(text, s.operands[0])
    emit_cp(text.c, text.op, m[2], _SOURCE_BITS[m[3]], address, text.slot(s.operands[1]), int(m[1]))


_VECTORS = {"1X": 32, "2X": 32, "4X": 16, "block16": 16, "block32": 32}


def _ptx_mma(text: Text, s: Statement) -> None:
    _unguarded(text, s)
    m = re.match(r"tcgen05\.mma(\.ws)?(\.sp)?\.cta_group::([12])\.kind::(\w+)(.*)", s.opcode)
    if m is None:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    ws, sp, group, kind, rest = m.groups()
    if "ashift" in rest:
        raise InterpError("unsupported", f"{s.opcode} is not supported by the interpreter")
    tmem = s.operands[1].startswith("[")
    a = _tensor_address(text, s.operands[1]) if tmem else text.slot(s.operands[1])
    left = list(s.operands[3:])
    held = _tensor_address(text, left.pop(0)) if sp else -1
    shape = text.slot(left.pop(0))
    vector, sfa, sfb, lanes = 0, -1, -1, list[int]()
    if "block_scale" in rest:
        size = re.search(r"block16|block32|scale_vec::([124]X)", rest)
        vector = 32 if size is None else _VECTORS[size[1] or size[0]]
        sfa, sfb = (_tensor_address(text, left.pop(0)) for _ in range(2))
    elif left[0].startswith("{"):
        lanes = [text.slot(p.strip()) for p in left.pop(0)[1:-1].split(",")]
    flag = left.pop(0)
    k = MmaSlots(_tensor_address(text, s.operands[0]), a, text.slot(s.operands[2]), shape, text.slot(flag.lstrip("!")))
    k.negated = flag.startswith("!")
    k.a_in_tensor_memory, k.sfa, k.sfb, k.metadata, k.lanes = tmem, sfa, sfb, held, lanes
    if left and not ws:
        k.scale_d = int(number(left.pop(0)) or 0)
    elif left:
        k.mask = text.slot(left.pop(0))
    use = re.search(r"collector::(a|b[0-3])::(\w+)", rest)
    k.buffer, k.collector = ("b0" if ws else "a", "discard") if use is None else (use[1], use[2])
    emit_mma(text.c, text.op, Form(kind, int(group), vector, bool(sp), bool(ws)), k)


def _ptx_commit(text: Text, s: Statement) -> None:
    _unguarded(text, s)
    slot, add = text.address(s.operands[0])
    mask = text.slot(s.operands[1]) if "multicast" in s.opcode else -1
    leaf = text.leaf(slot)
    space = leaf.space if leaf.kind == "p" else SHARED_CLUSTER if "shared" in s.opcode else GENERIC
    emit_commit(text.c, text.op, slot, mask, _group(s), space, add)


TABLE: Sequence[tuple[str, Handler]] = (
    (r"tcgen05\.alloc\..*", _ptx_alloc),
    (r"tcgen05\.dealloc\..*", _ptx_dealloc),
    (
        r"tcgen05\.relinquish_alloc_permit\..*",
        lambda text, s: emit_relinquish(text.c, text.op, _group(s)),
    ),
    (r"tcgen05\.(ld|st)\..*", _ptx_transfer),
    (r"tcgen05\.wait::(ld|st)\..*", lambda text, s: emit_wait(text.c, text.op, s.opcode.split("::")[1][:2])),
    (
        r"tcgen05\.fence::(before|after)_thread_sync",
        lambda text, s: emit_fence(text.c, text.op, s.opcode.split("::")[1].split("_")[0]),
    ),
    (r"tcgen05\.cp\..*", _ptx_cp),
    (r"tcgen05\.mma\..*", _ptx_mma),
    (r"tcgen05\.commit\..*", _ptx_commit),
)

__all__ = ["OPS", "TABLE", "intrinsic"]
