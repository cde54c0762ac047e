"""cp.async and mbarrier.

cp.async reads and writes memory only when its group is waited for, so that a use before the wait sees the old bytes.
mbarrier objects live beside memory, by block and offset; the 8 bytes themselves are opaque (PTX ISA "mbarrier").
A `try_wait` that would fail suspends the warp until the phase completes (the ISA lets it suspend for a time of its
choice); `test_wait` answers at once, and gives the others their turn.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import Fault, InterpError
from cute_dialect.interp.group import AsyncCopy, Group, Wait
from cute_dialect.interp.memory import Site, load, locate, store
from cute_dialect.interp.ops.memory import spin_point
from cute_dialect.interp.program import Builder, FnCompiler, attr_of
from cute_dialect.interp.sync import MAX_MBARRIER_COUNT, MBarrier, find_mbarrier, mbarrier_at
from cute_dialect.interp.types import Leaf, int_leaf
from cute_dialect.interp.values import Array, Mask, Regs, Value, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

Gen = Generator[Wait, None, None]
_PTR = int_leaf(64)
_I32 = int_leaf(32)


def _int(op: Operation, name: str, default: int = 0) -> int:
    data = getattr(getattr(attr_of(op, name), "value", None), "data", None)
    return data if isinstance(data, int) else default


def _flag(op: Operation, name: str) -> bool:
    """A unit attribute that is present, or a boolean one that is true."""
    got = attr_of(op, name)
    if got is None:
        return False
    value = getattr(getattr(got, "value", None), "data", 1)
    return bool(value)


def _cp_async(c: FnCompiler, op: Operation) -> None:
    """cp.async.shared.global dst, src, size[, source size]: the rest of the destination is zero-filled."""
    dst, src = c.use(op.operands[0]), c.use(op.operands[1])
    count = c.use(op.operands[2]) if len(op.operands) > 2 else -1
    size = _int(op, "size")
    if size not in (4, 8, 16):
        raise InterpError("unsupported", f"expected cp.async of 4, 8 or 16 bytes, got {size}")
    leaf = Leaf("i", 8, np.dtype(np.int8), "i8", (size,))
    to = Site(leaf, size, c.leaf_of(dst).space, True, "cp.async write")
    whole = Site(leaf, size, c.leaf_of(src).space, False, "cp.async read")
    parts = {
        n: Site(Leaf("i", 8, np.dtype(np.int8), "i8", (n,)), 1, c.leaf_of(src).space, False, "cp.async read")
        for n in range(1, size)
    }

    def step(R: Regs, g: Group) -> None:
        m = g.mask
        if m.n == 0:
            return
        to_addr, from_addr = (np.array(to_lanes(R[s], _PTR, g.lanes)) for s in (dst, src))
        sizes = np.array(to_lanes(R[count], _I32, g.lanes)) if count >= 0 else np.full(g.lanes, size, np.int32)
        if m.any((sizes < 0) | (sizes > size)):
            raise Fault(
                "arithmetic", f"cp.async: expected a source size in [0, {size}]", m.first((sizes < 0) | (sizes > size))
            )
        locate(to, g, to_addr)  # bounds are checked when the copy is issued
        bits = m.array
        for n in np.unique(sizes[m.idx]).tolist():
            if n:
                g.mask = Mask.of(bits & (sizes == n))
                locate(whole if n == size else parts[n], g, from_addr)
        g.mask = m

        def apply(lanes: Array) -> None:
            saved = g.mask
            chosen = np.zeros(g.lanes, np.bool_)
            chosen[lanes] = True
            data = np.zeros((g.lanes, size), np.int8)
            for n in np.unique(sizes[lanes]).tolist():
                if n:
                    g.mask = Mask.of(chosen & (sizes == n))
                    got = to_lanes(
                        load(whole if n == size else parts[n], g, from_addr),
                        whole.leaf if n == size else parts[n].leaf,
                        g.lanes,
                    )
                    data[g.mask.idx, :n] = got[g.mask.idx]
            g.mask = Mask.of(chosen)
            store(to, g, to_addr, data)
            g.mask = saved
            g.count.progress += 1

        g.copies.append(AsyncCopy(m.idx, g.copy_seq[m.idx].copy(), apply))

    c.emit(op, step, pure=False)


def finish_copies(g: Group, keep: int | None) -> None:
    """Complete the cp.async of the active lanes but for the latest `keep` commit groups; None: all of them."""
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


def _commit(c: FnCompiler, op: Operation) -> None:
    def step(R: Regs, g: Group) -> None:
        g.copy_seq[g.mask.idx] += 1

    c.emit(op, step, pure=False)


def _wait_group(c: FnCompiler, op: Operation) -> None:
    n = _int(op, "n")

    def step(R: Regs, g: Group) -> None:
        finish_copies(g, n)

    c.emit(op, step, pure=False)


def _wait_all(c: FnCompiler, op: Operation) -> None:
    def step(R: Regs, g: Group) -> None:
        finish_copies(g, None)

    c.emit(op, step, pure=False)


# -- mbarrier ---------------------------------------------------------------------------------------------------------


def _lanes_of(g: Group, R: Regs, p: int, predicate: int) -> list[tuple[int, int]]:
    """(lane, address) of the active lanes whose predicate holds."""
    addresses = to_lanes(R[p], _PTR, g.lanes)
    lanes = g.mask.idx
    if predicate >= 0:
        lanes = lanes[to_lanes(R[predicate], int_leaf(1), g.lanes)[lanes]]
    return [(lane, int(addresses[lane])) for lane in lanes.tolist()]


def _mbarrier(c: FnCompiler) -> None:
    c.fn.needs_warp.append("an mbarrier")


def _split(c: FnCompiler, op: Operation, most: int) -> tuple[list[int], int]:
    """The operand slots, and the predicate's (−1 if none): the last operand when it is an i1."""
    slots = [c.use(v) for v in op.operands]
    if len(slots) > 1 and c.leaf_of(slots[-1]).width == 1:
        return slots[:-1][:most], slots[-1]
    return slots[:most], -1


def _init(c: FnCompiler, op: Operation) -> None:
    _mbarrier(c)
    (p, n), predicate = _split(c, op, 2)
    space = c.leaf_of(p).space

    def step(R: Regs, g: Group) -> None:
        counts = to_lanes(R[n], _I32, g.lanes)
        for lane, address in _lanes_of(g, R, p, predicate):
            count = int(counts[lane])
            if not 1 <= count <= MAX_MBARRIER_COUNT:
                raise Fault("sync", f"mbarrier.init: expected a count in [1, {MAX_MBARRIER_COUNT}], got {count}", lane)
            block, offset = mbarrier_at(g, address, space, lane)
            block.mbarriers[offset] = MBarrier(count)
            at = block.smem_start + offset
            if block.smem.shadow is not None:
                block.smem.shadow[at : at + 8] = 1
            g.count.progress += 1

    c.emit(op, step, pure=False)


def _inval(c: FnCompiler, op: Operation) -> None:
    _mbarrier(c)
    p = c.use(op.operands[0])
    space = c.leaf_of(p).space

    def step(R: Regs, g: Group) -> None:
        for lane, address in _lanes_of(g, R, p, -1):
            find_mbarrier(g, address, space, lane)
            block, offset = mbarrier_at(g, address, space, lane)
            del block.mbarriers[offset]

    c.emit(op, step, pure=False)


def _arrive(drop: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        _mbarrier(c)
        slots, predicate = _split(c, op, 2)
        p = slots[0]
        n = slots[1] if len(slots) > 1 else -1
        d = c.define(op.results[0]) if op.results else -1
        space = c.leaf_of(p).space

        def step(R: Regs, g: Group) -> None:
            tokens = np.zeros(g.lanes, np.int64)
            for lane, address in _lanes_of(g, R, p, predicate):
                count = int(to_lanes(R[n], _I32, g.lanes)[lane]) if n >= 0 else 1
                bar = find_mbarrier(g, address, space, lane)
                if drop:
                    bar.count -= count
                tokens[lane] = bar.arrive(count)
                g.count.progress += 1
            if d >= 0:
                R[d] = tokens

        c.emit(op, step, pure=False)

    return build


def _arrive_expect(arrive: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        _mbarrier(c)
        (p, tx), predicate = _split(c, op, 2)
        d = c.define(op.results[0]) if op.results else -1
        space = c.leaf_of(p).space

        def step(R: Regs, g: Group) -> None:
            counts = to_lanes(R[tx], _I32, g.lanes)
            tokens = np.zeros(g.lanes, np.int64)
            for lane, address in _lanes_of(g, R, p, predicate):
                bar = find_mbarrier(g, address, space, lane)
                bar.tx += int(counts[lane])
                if arrive:
                    tokens[lane] = bar.arrive()
                g.count.progress += 1
            if d >= 0:
                R[d] = tokens

        c.emit(op, step, pure=False)

    return build


def _ready(bars: list[tuple[MBarrier, int, bool]]) -> bool:
    return all(b.phase != t if state else b.done(t) for b, t, state in bars)


def _targets(
    g: Group, R: Regs, p: int, parity: int, state: bool, space: int
) -> list[tuple[int, tuple[MBarrier, int, bool]]]:
    leaf = _PTR if state else _I32
    tokens = to_lanes(R[parity], leaf, g.lanes)
    return [
        (lane, (find_mbarrier(g, address, space, lane), int(tokens[lane]), state))
        for lane, address in _lanes_of(g, R, p, -1)
    ]


def _describe(bars: list[tuple[MBarrier, int, bool]]) -> str:
    late = next((b for b in bars if not _ready([b])), bars[0])
    b, t, _ = late
    missing = f"{b.pending} of {b.count} arrivals and {b.tx} bytes missing"
    return f"waits at an mbarrier for phase parity {t & 1}: it is in phase {b.phase}, {missing}"


def _try_wait(c: FnCompiler, op: Operation) -> None:
    """Waits until the phase completes; with a result, the result is then true."""
    _mbarrier(c)
    p, parity = c.use(op.operands[0]), c.use(op.operands[1])
    state = c.leaf_of(parity).width == 64
    d = c.define(op.results[0]) if op.results else -1
    space = c.leaf_of(p).space
    info = c.info(op)

    def gen(R: Regs, g: Group) -> Gen:
        bars = [b for _, b in _targets(g, R, p, parity, state, space)]
        if bars and not _ready(bars):
            yield Wait(lambda: _ready(bars), info, lambda: _describe(bars))
        if d >= 0:
            R[d] = True

    c.emit_blocking(op, gen, info)


def _test_wait(c: FnCompiler, op: Operation) -> None:
    _mbarrier(c)
    p, parity = c.use(op.operands[0]), c.use(op.operands[1])
    state = c.leaf_of(parity).width == 64
    d = c.define(op.results[0])
    space = c.leaf_of(p).space

    def step(R: Regs, g: Group) -> None:
        out = np.zeros(g.lanes, np.bool_)
        for lane, bar in _targets(g, R, p, parity, state, space):
            out[lane] = _ready([bar])
        R[d] = out

    c.emit(op, step, pure=False)
    if c.loops:
        c.emit_blocking(op, spin_point(c.info(op), "polls an mbarrier"))


def _cp_async_arrive(c: FnCompiler, op: Operation) -> None:
    """cp.async.mbarrier.arrive: completes the thread's earlier cp.async; `noinc` also arrives, else the count stays."""
    _mbarrier(c)
    p = c.use(op.operands[0])
    noinc = _flag(op, "noinc")
    space = c.leaf_of(p).space

    def step(R: Regs, g: Group) -> None:
        finish_copies(g, None)
        for lane, address in _lanes_of(g, R, p, -1):
            bar = find_mbarrier(g, address, space, lane)
            if noinc:
                bar.arrive()
            g.count.progress += 1

    c.emit(op, step, pure=False)


OPS: dict[str, Builder] = {
    "nvvm.cp.async.shared.global": _cp_async,
    "nvvm.cp.async.commit.group": _commit,
    "nvvm.cp.async.wait.group": _wait_group,
    "nvvm.cp.async.wait.all": _wait_all,
    "nvvm.cp.async.mbarrier.arrive": _cp_async_arrive,
    "nvvm.mbarrier.init": _init,
    "nvvm.mbarrier.init.shared": _init,
    "nvvm.mbarrier.inval": _inval,
    "nvvm.mbarrier.arrive": _arrive(False),
    "nvvm.mbarrier.arrive_drop": _arrive(True),
    "nvvm.mbarrier.arrive.nocomplete": _arrive(False),
    "nvvm.mbarrier.arrive.expect_tx": _arrive_expect(True),
    "nvvm.mbarrier.expect_tx": _arrive_expect(False),
    "nvvm.mbarrier.try_wait": _try_wait,
    "nvvm.mbarrier.try_wait.parity": _try_wait,
    "nvvm.mbarrier.test.wait": _test_wait,
}

__all__ = ["OPS", "Value", "finish_copies"]
