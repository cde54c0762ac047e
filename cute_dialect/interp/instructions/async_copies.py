"""cp.async, st.async, red.async, and the mbarriers that they signal.

A cp.async reads and writes memory only when its group is waited for, so a use before the wait sees the old bytes. The
state of an mbarrier is kept per block and offset; its 8 bytes in memory are opaque (PTX ISA "mbarrier"). A `try_wait`
whose phase is not complete suspends the warp until it is, or gives up early if the schedule decides so (`spurious`). A
loop around it therefore waits for the phase. `test_wait` answers at once and lets other warps run.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler, Step
from cute_dialect.interp.errors import Fault, InterpError, attr_of
from cute_dialect.interp.instructions.memory import apply_atomic, spin_point, sync_of_op, sync_of_ptx
from cute_dialect.interp.instructions.ptx_text import Handler, Statement, Text, number
from cute_dialect.interp.machine.barriers import MAX_MBARRIER_COUNT, MBarrier, find_mbarrier, mbarrier_at, shared_at
from cute_dialect.interp.machine.group import AsyncCopy, Group, Wait
from cute_dialect.interp.memory.accesses import Site, check_written, load, locate, store
from cute_dialect.interp.memory.buffers import SHARED
from cute_dialect.interp.race.flags import Sync
from cute_dialect.interp.types import Leaf, int_leaf
from cute_dialect.interp.values import Array, Mask, Regs, Value, to_lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation

    from cute_dialect.interp.memory.allocations import Allocation

Gen = Generator[Wait, None, None]
_PTR = int_leaf(64)
_I32 = int_leaf(32)


def _int(op: Operation, name: str, default: int = 0) -> int:
    data = getattr(getattr(attr_of(op, name), "value", None), "data", None)
    return data if isinstance(data, int) else default


def _flag(op: Operation, name: str) -> bool:
    """Return True for a unit attribute that is present or a boolean attribute that is true."""
    got = attr_of(op, name)
    if got is None:
        return False
    value = getattr(getattr(got, "value", None), "data", 1)
    return bool(value)


def cp_async_step(c: FnCompiler, dst: int, src: int, count: int, size: int, add_dst: int = 0, add_src: int = 0) -> Step:
    """Return the step of cp.async.shared.global dst, src, size[, source size].

    Destination bytes beyond the source size are filled with zeros.
    """
    if size not in (4, 8, 16):
        raise InterpError("unsupported", f"cp.async copies 4, 8 or 16 bytes, got {size}")
    leaf = Leaf("i", 8, np.dtype(np.int8), "i8", (size,))
    op = c.op_now
    to = Site(leaf, size, c.leaf_of(dst).space or SHARED, True, "cp.async write", op)
    to.quiet = True
    c.pieces.bound(to, dst)
    source_space = c.leaf_of(src).space
    whole = Site(leaf, size, source_space, False, "cp.async read", op)
    parts = {
        n: Site(Leaf("i", 8, np.dtype(np.int8), "i8", (n,)), 1, source_space, False, "cp.async read", op)
        for n in range(1, size)
    }
    for s in (whole, *parts.values()):
        s.copies = True
        c.pieces.bound(s, src)
    late = {n: Site(s.leaf, s.align, s.space, False, s.verb, op) for n, s in ((size, whole), *parts.items())}
    for s in late.values():
        s.quiet = True

    def step(R: Regs, g: Group) -> None:
        m = g.mask
        if m.n == 0:
            return
        to_addr = np.array(to_lanes(R[dst], _PTR, g.lanes)) + add_dst
        from_addr = np.array(to_lanes(R[src], _PTR, g.lanes)) + add_src
        sizes = np.array(to_lanes(R[count], _I32, g.lanes)) if count >= 0 else np.full(g.lanes, size, np.int32)
        if m.any((sizes < 0) | (sizes > size)):
            raise Fault(
                "arithmetic", f"cp.async: the source size must be in [0, {size}]", m.first((sizes < 0) | (sizes > size))
            )
        where = locate(to, g, to_addr)  # Bounds are checked when the copy is issued.
        bits = m.array
        for n in np.unique(sizes[m.idx]).tolist():
            if n:
                g.mask = Mask.of(bits & (sizes == n))
                site = whole if n == size else parts[n]
                found = locate(site, g, from_addr)
                for buf, off, sel in found:
                    lanes = g.mask.idx if sel is None else g.mask.idx[sel]
                    check_written(site, g, buf, np.full(len(lanes), off) if isinstance(off, int) else off, lanes)
                if g.observe is not None:
                    g.observe(g, site, found, None)
        g.mask = m
        if g.machine.monitor is not None:
            g.machine.monitor.cp_async(g, to, where)

        def apply(lanes: Array) -> None:
            saved = g.mask
            chosen = np.zeros(g.lanes, np.bool_)
            chosen[lanes] = True
            data = np.zeros((g.lanes, size), np.int8)
            for n in np.unique(sizes[lanes]).tolist():
                if n:
                    g.mask = Mask.of(chosen & (sizes == n))
                    got = to_lanes(load(late[n], g, from_addr), late[n].leaf, g.lanes)
                    data[g.mask.idx, :n] = got[g.mask.idx]
            g.mask = Mask.of(chosen)
            store(to, g, to_addr, data)
            g.mask = saved
            g.count.progress += 1

        g.copies.append(AsyncCopy(m.idx, g.copy_seq[m.idx].copy(), apply))

    return step


def _cp_async(c: FnCompiler, op: Operation) -> None:
    dst, src = c.use(op.operands[0]), c.use(op.operands[1])
    count = c.use(op.operands[2]) if len(op.operands) > 2 else -1
    c.emit(op, cp_async_step(c, dst, src, count, _int(op, "size")), pure=False)


def finish_copies(g: Group, keep: int | None, waited: bool = True) -> None:
    """Complete all but the latest `keep` cp.async groups of the active lanes, None for all.

    `waited` is True if the lanes are ordered after the completion.
    """
    bits = g.mask.array
    left: list[AsyncCopy] = []
    for copy in g.copies:
        ready = bits[copy.lanes]
        if keep is not None:
            ready = ready & (copy.seq < g.copy_seq[copy.lanes] - keep)
        if ready.any():
            copy.apply(copy.lanes[ready])
        if not ready.all():
            left.append(AsyncCopy(copy.lanes[~ready], copy.seq[~ready], copy.apply))
    g.copies = left
    if waited and g.machine.monitor is not None:
        g.machine.monitor.cp_async_waited(g, keep)


def commit_step(R: Regs, g: Group) -> None:
    """Execute cp.async.commit_group."""
    g.copy_seq[g.mask.idx] += 1


def _commit(c: FnCompiler, op: Operation) -> None:
    c.emit(op, commit_step, pure=False)


def _wait_group(c: FnCompiler, op: Operation) -> None:
    n = _int(op, "n")

    def step(R: Regs, g: Group) -> None:
        finish_copies(g, n)

    c.emit(op, step, pure=False)


def _wait_all(c: FnCompiler, op: Operation) -> None:
    def step(R: Regs, g: Group) -> None:
        finish_copies(g, None)

    c.emit(op, step, pure=False)


# -- mbarrier -------------------------------------------------------------------------------------------------------


def _lanes_of(g: Group, R: Regs, p: int, predicate: int) -> list[tuple[int, int]]:
    """Return (lane, address) of the active lanes whose predicate holds."""
    addresses = to_lanes(R[p], _PTR, g.lanes)
    lanes = g.mask.idx
    if predicate >= 0:
        lanes = lanes[to_lanes(R[predicate], int_leaf(1), g.lanes)[lanes]]
    return [(lane, int(addresses[lane])) for lane in lanes.tolist()]


def _mbarrier(c: FnCompiler) -> None:
    c.fn.needs_warp.append("an mbarrier")


def _split(c: FnCompiler, op: Operation, most: int) -> tuple[list[int], int]:
    """Return the operand slots and the slot of the predicate: the last operand if it is an i1, else -1."""
    slots = [c.use(v) for v in op.operands]
    if len(slots) > 1 and c.leaf_of(slots[-1]).width == 1:
        return slots[:-1][:most], slots[-1]
    return slots[:most], -1


def mbarrier_step(
    c: FnCompiler,
    p: int,
    add: int,
    space: int,
    kind: str,
    count: int,
    result: int,
    *,
    sync: Sync | None,
    drop: bool = False,
    predicate: int = -1,
) -> Step:
    """Return the step of an mbarrier operation that does not wait.

    Args:
        kind: "init", "inval", "arrive", "expect_tx" or "complete_tx".
        count: Slot of the arrivals or bytes, -1 for one.
        result: Slot of the state token, -1 for none.
        sync: Memory order of an arrival, None for other operations.
    """
    _mbarrier(c)
    info = c.info(c.op_now)
    owner = c.pieces.allocation(p)

    def init(g: Group, lane: int, address: int, n: int) -> int:
        if not 1 <= n <= MAX_MBARRIER_COUNT:
            raise Fault("sync", f"mbarrier.init: the count must be in [1, {MAX_MBARRIER_COUNT}], got {n}", lane)
        block, offset = mbarrier_at(g, address, space, lane, owner)
        bar = MBarrier(n, f"mbarrier at shared memory byte offset {offset}{g.machine.shared_names.place(offset)}")
        block.add_mbarrier(offset, bar, lane, address)
        if g.machine.monitor is not None:
            g.machine.monitor.mbarrier_init(g, lane, block, offset, bar)
        return 0

    def inval(g: Group, lane: int, address: int, n: int) -> int:
        _, bar = find_mbarrier(g, address, space, lane, owner)
        block, offset = mbarrier_at(g, address, space, lane)
        block.drop_mbarrier(offset, bar, lane, address)
        if g.machine.monitor is not None:
            g.machine.monitor.mbarrier_inval(g, lane, bar)
        return 0

    def act(g: Group, lane: int, address: int, n: int) -> int:
        block, bar = find_mbarrier(g, address, space, lane, owner)
        token = bar.phase
        if g.machine.monitor is not None:
            g.machine.monitor.mbarrier_arrive(g, lane, block, bar, sync, info)
        try:
            if kind == "complete_tx":
                bar.complete(n)
            elif kind == "expect_tx":
                bar.expect(n)
            if sync is not None and kind in ("arrive", "expect_tx"):
                m = n if kind == "arrive" else 1
                if drop:
                    bar.count -= m
                bar.arrive(m)
        except Fault as f:
            f.lane, f.address = lane, address
            raise
        return token

    run = {"init": init, "inval": inval}.get(kind, act)

    def step(R: Regs, g: Group) -> None:
        counts = to_lanes(R[count], _I32, g.lanes) if count >= 0 else None
        tokens = np.zeros(g.lanes, np.int64)
        for lane, address in _lanes_of(g, R, p, predicate):
            tokens[lane] = run(g, lane, address + add, 1 if counts is None else int(counts[lane]))
            g.count.progress += 1
        if result >= 0:
            R[result] = tokens

    return step


def _plain(kind: str, *, arrives: bool = True, drop: bool = False) -> Builder:
    """Return the builder of an op whose operands are the address, a count or bytes, and an optional predicate."""

    def build(c: FnCompiler, op: Operation) -> None:
        slots, predicate = _split(c, op, 2)
        result = c.define(op.results[0]) if op.results else -1
        count = slots[1] if len(slots) > 1 else -1
        space = c.leaf_of(slots[0]).space
        step = mbarrier_step(
            c, slots[0], 0, space, kind, count, result,
            sync=sync_of_op(op) if arrives else None, drop=drop, predicate=predicate,
        )  # fmt: skip
        c.emit(op, step, pure=False)

    return build


def _ready(bars: list[tuple[MBarrier, int, bool]]) -> bool:
    return all(b.phase != t if state else b.done(t) for b, t, state in bars)


def _targets(
    g: Group, R: Regs, p: int, parity: int, state: bool, space: int, add: int, owner: Allocation | None
) -> list[tuple[int, tuple[MBarrier, int, bool]]]:
    leaf = _PTR if state else _I32
    tokens = to_lanes(R[parity], leaf, g.lanes)
    return [
        (lane, (find_mbarrier(g, address + add, space, lane, owner)[1], int(tokens[lane]), state))
        for lane, address in _lanes_of(g, R, p, -1)
    ]


def _describe(bars: list[tuple[MBarrier, int, bool]]) -> str:
    late = next((b for b in bars if not _ready([b])), bars[0])
    b, t, _ = late
    missing = f"{b.pending} of {b.count} arrivals missing"
    if b.tx > 0:
        missing += f", {b.tx} bytes missing: {b.expected} expected, {b.delivered} delivered"
    elif b.tx < 0:
        missing += f", {-b.tx} bytes more delivered than expected: {b.expected} expected, {b.delivered} delivered"
    return f"waits at the {b.name} for phase parity {t & 1}: it is in phase {b.phase}, {missing}"


def _acquire(g: Group, found: list[tuple[int, tuple[MBarrier, int, bool]]], sync: Sync) -> None:
    if g.machine.monitor is not None:
        lanes: dict[int, tuple[MBarrier, list[int]]] = {}
        for lane, (bar, _, _) in found:
            lanes.setdefault(id(bar), (bar, []))[1].append(lane)
        for bar, waiting in lanes.values():
            g.machine.monitor.mbarrier_wait(g, waiting, bar, sync)


def emit_wait(
    c: FnCompiler,
    op: Operation,
    p: int,
    token: int,
    state: bool,
    space: int,
    d: int,
    kind: str,
    sync: Sync,
    add: int = 0,
    used: bool = True,
) -> None:
    """Emit a wait for a phase.

    Args:
        kind: "loop" waits until the phase completes. "try" does the same, or gives up. "test" answers at once.
        used: True if the result (slot `d`) is read. If not, "try" and "test" neither wait nor order anything, since
            the program cannot know whether the phase is complete.
    """
    _mbarrier(c)
    owner = c.pieces.allocation(p)
    info = c.info(op)

    def answer(R: Regs, g: Group, found: list[tuple[int, tuple[MBarrier, int, bool]]]) -> None:
        out = np.zeros(g.lanes, np.bool_)
        for lane, bar in found:
            out[lane] = _ready([bar])
        if used:
            _acquire(g, [(lane, b) for lane, b in found if out[lane]], sync)
        if d >= 0:
            R[d] = out

    if kind == "loop" or (kind == "try" and used):

        def gen(R: Regs, g: Group) -> Gen:
            found = _targets(g, R, p, token, state, space, add, owner)
            bars = [b for _, b in found]
            if bars and not _ready(bars):
                if kind == "try" and g.machine.spurious.fails(g, id(op)):
                    answer(R, g, found)
                    if c.loops:
                        yield Wait(lambda: True, info, lambda: _describe(bars), spin=True)
                    return
                if g.machine.monitor is not None:
                    g.machine.monitor.mbarrier_check(g, found[0][0], bars[0][0])
                for bar, _, _ in bars:
                    bar.waiting.append((g, info))
                yield Wait(lambda: _ready(bars), info, lambda: _describe(bars))
                for bar, _, _ in bars:
                    bar.waiting.remove((g, info))
            _acquire(g, found, sync)
            if d >= 0:
                R[d] = True

        c.emit_blocking(op, gen, info)
        return

    def step(R: Regs, g: Group) -> None:
        answer(R, g, _targets(g, R, p, token, state, space, add, owner))

    c.emit(op, step, pure=False)
    if c.loops:
        c.emit_blocking(op, spin_point(c.info(op), "polls an mbarrier"))


def _wait(kind: str) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        p, token = c.use(op.operands[0]), c.use(op.operands[1])
        state = c.leaf_of(token).width == 64
        d = c.define(op.results[0]) if op.results else -1
        how = kind if op.results else "loop"  # Upstream lowers a wait without a result to a loop.
        used = not op.results or op.results[0].first_use is not None
        emit_wait(c, op, p, token, state, c.leaf_of(p).space, d, how, sync_of_op(op), used=used)

    return build


def _cp_async_arrive(c: FnCompiler, op: Operation) -> None:
    """Compile cp.async.mbarrier.arrive, which arrives when the thread's earlier cp.async are complete.

    Only threads that wait for that phase are ordered after the copies, and that includes the issuing thread. Without
    `noinc` the pending count is raised first, so that it stays the same.
    """
    _mbarrier(c)
    p = c.use(op.operands[0])
    noinc = _flag(op, "noinc")
    space = c.leaf_of(p).space
    owner = c.pieces.allocation(p)
    info = c.info(op)

    def step(R: Regs, g: Group) -> None:
        finish_copies(g, None, waited=False)
        for lane, address in _lanes_of(g, R, p, -1):
            block, bar = find_mbarrier(g, address, space, lane, owner)
            if g.machine.monitor is not None:
                g.machine.monitor.mbarrier_arrive(g, lane, block, bar, Sync(), info, copies=True)
            if noinc:
                bar.arrive()
            g.count.progress += 1
        g.copies_arrive()

    c.emit(op, step, pure=False)


OPS: dict[str, Builder] = {
    "nvvm.cp.async.shared.global": _cp_async,
    "nvvm.cp.async.commit.group": _commit,
    "nvvm.cp.async.wait.group": _wait_group,
    "nvvm.cp.async.wait.all": _wait_all,
    "nvvm.cp.async.mbarrier.arrive": _cp_async_arrive,
    "nvvm.mbarrier.init": _plain("init"),
    "nvvm.mbarrier.init.shared": _plain("init"),
    "nvvm.mbarrier.inval": _plain("inval"),
    "nvvm.mbarrier.arrive": _plain("arrive"),
    "nvvm.mbarrier.arrive_drop": _plain("arrive", drop=True),
    "nvvm.mbarrier.arrive_drop.expect_tx": _plain("expect_tx", drop=True),
    "nvvm.mbarrier.arrive.nocomplete": _plain("arrive"),
    "nvvm.mbarrier.arrive.expect_tx": _plain("expect_tx"),
    "nvvm.mbarrier.expect_tx": _plain("expect_tx", arrives=False),
    "nvvm.mbarrier.complete_tx": _plain("complete_tx", arrives=False),
    "nvvm.mbarrier.try_wait": _wait("try"),
    "nvvm.mbarrier.try_wait.parity": _wait("try"),
    "nvvm.mbarrier.test.wait": _wait("test"),
}


# -- inline PTX -------------------------------------------------------------------------------------------------------


def _ptx_mbarrier(text: Text, s: Statement) -> None:
    """Compile mbarrier.arrive[.expect_tx], mbarrier.expect_tx, mbarrier.init, mbarrier.inval."""
    where = next(i for i, o in enumerate(s.operands) if o.startswith("["))
    slot, add = text.address(s.operands[where])
    result = text.slot(s.operands[0]) if where and s.operands[0] != "_" else -1
    count = text.slot(s.operands[where + 1]) if len(s.operands) > where + 1 else -1
    space = text.shared_space(s, slot)
    kind = "expect_tx" if "expect_tx" in s.opcode else "arrive"
    if s.opcode.startswith("mbarrier.init"):
        kind = "init"
    elif s.opcode.startswith("mbarrier.inval"):
        kind = "inval"
    sync = sync_of_ptx(s.opcode) if "arrive" in s.opcode else None
    step = mbarrier_step(text.c, slot, add, space, kind, count, result, sync=sync, drop="arrive_drop" in s.opcode)
    text.emit(s, step)


def wait(text: Text, s: Statement, loops: bool, used: bool) -> None:
    """Compile mbarrier.try_wait or test_wait, with parity or state.

    Args:
        loops: The text repeats it until it succeeds.
        used: Its result is read.
    """
    if text.guard(s)[0] >= 0:
        raise InterpError("unsupported", f"{s.opcode} under a predicate is not supported; branch around the wait")
    slot, add = text.address(s.operands[1])
    result = text.slot(s.operands[0])
    token = text.slot(s.operands[2])
    emit_wait(
        text.c,
        text.op,
        slot,
        token,
        "parity" not in s.opcode,
        text.shared_space(s, slot),
        result,
        "loop" if loops else "try" if "try_wait" in s.opcode else "test",
        sync_of_ptx(s.opcode),
        add,
        used=used,
    )


_REDUCTIONS = {
    **{
        f"{op}.u32": kind for op, kind in (("inc", "uinc_wrap"), ("dec", "udec_wrap"), ("min", "umin"), ("max", "umax"))
    },
    **{f"{op}.s32": op for op in ("min", "max", "add")},
    **{f"{op}.b32": f"_{op}" for op in ("and", "or", "xor")},
    **{f"add.{t}": "add" for t in ("u32", "u64")},
}
"""Operations and types of red.async (PTX ISA 9.0, "red.async"), with the atomic that each corresponds to."""


def _red_async(text: Text, s: Statement) -> None:
    """Compile red.async: a reduction in shared memory of the cluster that signals its bytes at an mbarrier there."""
    operation = ".".join(s.opcode.split(".")[-2:])
    want = "red.async.relaxed.cluster{}.mbarrier::complete_tx::bytes." + operation
    if operation not in _REDUCTIONS or s.opcode not in (want.format(""), want.format(".shared::cluster")):
        known = ", ".join(_REDUCTIONS)
        raise InterpError(
            "unsupported",
            f"{s.opcode} is not supported; use red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes "
            f"with one of {known}",
        )
    _st_async(text, s, _REDUCTIONS[operation])


def _bytes(values: Sequence[Value]) -> Array:
    """Return the concatenated bytes of values."""
    return np.concatenate([np.atleast_1d(np.ascontiguousarray(v)).view(np.uint8) for v in values])


def _st_async(text: Text, s: Statement, combine: str = "") -> None:
    """Compile st.async: a write to shared memory of the cluster that signals its bytes at an mbarrier there.

    `combine` is the atomic operation that combines the stored value with the old one, for red.async.
    """
    slot, add = text.address(s.operands[0])
    values = [text.slot(p) for p in s.parts(1)]
    bar, bar_add = text.address(s.operands[2])
    leaves = [text.leaf(v) for v in values]
    text.c.fn.needs_warp.append("an st.async")
    spaces = text.shared_space(s, slot), text.shared_space(s, bar)
    owner = text.c.pieces.allocation(slot)
    name = "red.async" if combine else "st.async"

    def step(R: Regs, g: Group) -> None:
        addresses, bars = to_lanes(R[slot], int_leaf(64), g.lanes), to_lanes(R[bar], int_leaf(64), g.lanes)
        cols = [to_lanes(R[v], leaf, g.lanes) for v, leaf in zip(values, leaves)]
        for lane in g.mask.idx.tolist():
            raw = _bytes([c[lane] for c in cols])
            block, offset = shared_at(
                g, int(addresses[lane]) + add, spaces[0], lane, len(raw), f"{name} to", len(raw), owner
            )
            _, target = find_mbarrier(g, int(bars[lane]) + bar_add, spaces[1], lane)
            if g.machine.monitor is not None:
                info = text.c.info(text.op)
                g.machine.monitor.async_write(g, lane, block, offset, len(raw), target, info, reduces=bool(combine))
            first = block.smem_start + offset
            if combine:
                g.check_read(block.smem, first, len(raw), name, lane, id(s))
                old = block.smem.data[first : first + len(raw)].view(leaves[0].dtype)[0]
                raw = _bytes([apply_atomic(combine, old, cols[0][lane], leaves[0])])
            block.smem.note_range(first, len(raw), name)
            block.smem.data[first : first + len(raw)] = raw
            target.complete(len(raw))
            g.count.progress += 1

    text.emit(s, step)


def _ptx_cp_async(text: Text, s: Statement) -> None:
    """Compile cp.async.{ca,cg}.shared.global [dst], [src], size[, source size]."""
    dst, add0 = text.address(s.operands[0])
    src, add1 = text.address(s.operands[1])
    size = int(number(s.operands[2]) or 0)
    hinted = "cache_hint" in s.opcode
    extra = list(s.operands[3:-1] if hinted else s.operands[3:])
    count = text.slot(extra[0]) if extra else -1
    step = cp_async_step(text.c, dst, src, count, size, add0, add1)
    text.emit(s, step)


def _cp_wait(text: Text, s: Statement) -> None:
    keep = int(number(s.operands[0]) or 0) if s.operands else None
    text.emit(s, lambda R, g: finish_copies(g, keep))


TABLE: Sequence[tuple[str, Handler]] = (
    (
        r"mbarrier\.(try_wait|test_wait).*",
        lambda text, s: wait(text, s, loops=False, used=text.reads(s, s.operands[0])),
    ),
    (r"mbarrier\..*", _ptx_mbarrier),
    (r"st\.async.*", _st_async),
    (r"red\.async.*", _red_async),
    (r"cp\.async\.(ca|cg)\.shared.*", _ptx_cp_async),
    (r"cp\.async\.commit_group", lambda text, s: text.emit(s, commit_step)),
    (r"cp\.async\.wait_(group|all)", _cp_wait),
)
