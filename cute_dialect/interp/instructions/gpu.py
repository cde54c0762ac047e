"""Thread and block ids, barriers, fences, clusters, exit and assert."""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from cute_dialect.errors import no_such
from cute_dialect.interp.compiler.control_flow import segments
from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler, Step
from cute_dialect.interp.errors import Fault, InterpError, attr_of, op_name
from cute_dialect.interp.instructions.memory import fence_of_op, fence_of_ptx
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.instructions.ptx_text import Handler, Statement, Text, no_effect, number
from cute_dialect.interp.machine.group import Group, Wait
from cute_dialect.interp.memory.buffers import GENERIC, WINDOW_BITS
from cute_dialect.interp.race.clocks import WAIT
from cute_dialect.interp.race.flags import Fence
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Regs, active_uniform, to_lanes, truth

if TYPE_CHECKING:
    from collections.abc import Sequence

Gen = Generator[Wait, None, None]
_SREG = "nvvm.read.ptx.sreg."


def emit_sreg(c: FnCompiler, op: Operation, name: str) -> None:
    """Define the op's result as a special register."""
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)
    if name in ("laneid", "warpid") or name.startswith("lanemask"):
        c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        v = g.sreg(name)
        R[d] = v.astype(leaf.dtype) if isinstance(v, np.ndarray) and v.dtype != leaf.dtype else v

    c.emit(op, step)


def _gpu_id(sreg: str) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        axis = enum_word(attr_of(op, "dimension"))
        emit_sreg(c, op, f"{sreg}.{axis}")

    return build


def _gpu_plain(sreg: str) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        emit_sreg(c, op, sreg)

    return build


def _global_id(c: FnCompiler, op: Operation) -> None:
    axis = enum_word(attr_of(op, "dimension"))
    d = c.define(op.results[0])

    def step(R: Regs, g: Group) -> None:
        block, n, t = (g.sreg(f"{r}.{axis}") for r in ("ctaid", "ntid", "tid"))
        b64 = block.astype(np.int64) if isinstance(block, np.ndarray) else block
        R[d] = b64 * n + t  # type: ignore[operator]

    c.emit(op, step)


# -- barriers -------------------------------------------------------------------------------------------------------


def _check_whole(g: Group, name: str) -> None:
    """Raise Fault unless all live threads in the warps (or, in a wide group, blocks) of active threads are active."""
    m = g.mask
    if m.bits is None:
        return
    live = ~g.dead
    if not g.machine.wide:
        missing = live & ~m.bits
        whole = missing
    else:
        touched = np.unique(np.asarray(g.lane_block)[m.bits] if isinstance(g.lane_block, np.ndarray) else g.lane_block)
        inside = np.isin(g.lane_block, touched) if isinstance(g.lane_block, np.ndarray) else np.ones(g.lanes, np.bool_)
        whole = live & ~m.bits & inside
    if whole.any() and m.n:
        lane = int(np.flatnonzero(whole)[0])
        x, y, z = g.thread_coord(lane)
        raise Fault(
            "divergence",
            f"{name} in divergent code: {m.n} threads reached it, but thread ({x}, {y}, {z}), which is still running, "
            "did not",
            int(m.idx[0]),
        )


def emit_barrier(
    c: FnCompiler,
    op: Operation,
    name: str,
    ident: int | None,
    count: int | None,
    predicate: int | None = None,
    reduction: str = "",
    arrive_only: bool = False,
) -> None:
    """Emit bar.sync, bar.red or bar.arrive.

    `ident`, `count` and `predicate` are slots. None means id 0, all threads and no reduction.
    """
    d = c.define(op.results[0]) if op.results else -1
    info = c.info(op)
    if ident is not None or count is not None or arrive_only:
        c.fn.needs_warp.append(f"{name} with an id or count")
    else:
        c.fn.barriers.append(op)

    def votes(R: Regs, g: Group) -> tuple[int, int]:
        assert predicate is not None and c_leaf is not None
        hits = (to_lanes(R[predicate], c_leaf, g.lanes) != 0)[g.mask.idx]
        return int(np.count_nonzero(hits)), len(hits)

    c_leaf = c.leaf_of(predicate) if predicate is not None else None

    def gen(R: Regs, g: Group) -> Gen:
        if g.mask.n == 0:
            return
        _check_whole(g, name)
        if g.machine.wide:
            if g.machine.monitor is not None:
                g.machine.monitor.barrier(g)
            if predicate is not None:
                assert c_leaf is not None
                hits = (to_lanes(R[predicate], c_leaf, g.lanes) != 0) & g.mask.array
                blocks = np.broadcast_to(np.asarray(g.lane_block), (g.lanes,))
                out = np.zeros(g.lanes, np.int32)
                for b in np.unique(blocks):
                    here = (blocks == b) & g.mask.array
                    out[here] = _reduce(reduction, int(np.count_nonzero(hits & here)), int(np.count_nonzero(here)))
                R[d] = out
            return
        block = g.machine.blocks[g.block_of(0)]
        number = 0 if ident is None else active_uniform(R[ident], g.mask, "the barrier id")
        expected: int | None = None
        if count is not None:
            expected = active_uniform(R[count], g.mask, "the number of threads of the barrier")
            if expected <= 0 or expected % 32:
                raise Fault("sync", f"{name}: the number of threads must be a positive multiple of 32, got {expected}")
        elif arrive_only:
            raise Fault("sync", f"{name}: an arrival needs a number of threads")
        bar = block.barrier(number)
        mine = bar.generation
        g.count.progress += 1
        monitor = g.machine.monitor
        if monitor is not None:
            monitor.arrive(g, bar, number, info)
        bar.arrive(block, number, expected, None if predicate is None else votes(R, g))
        if not arrive_only and bar.generation == mine:
            what = "all threads" if expected is None else f"{expected} threads"
            yield Wait(lambda: bar.generation != mine, info, f"waits at barrier {number} for {what}")
        if monitor is not None and not arrive_only:
            monitor.wait(g, bar)
        if predicate is not None:
            hits, total = bar.result
            R[d] = _reduce(reduction, hits, total)

    c.emit_blocking(op, gen, info)


def _reduce(kind: str, hits: int, total: int) -> int:
    return hits if kind == "popc" else int(hits == total) if kind == "and" else int(hits > 0)


def _barrier(c: FnCompiler, op: Operation) -> None:
    sizes = (
        segments(op, 3)
        if attr_of(op, "operandSegmentSizes") is not None
        else [len(op.operands) > 0, len(op.operands) > 1, 0]
    )
    values = [c.use(v) for v in op.operands]
    ident = values[0] if sizes[0] else None
    count = values[int(sizes[0])] if sizes[1] else None
    predicate = values[-1] if len(sizes) > 2 and sizes[2] else None
    if ident is not None and count is None and is_zero(c, ident):
        ident = None
    emit_barrier(c, op, "nvvm.barrier", ident, count, predicate, enum_word(attr_of(op, "reductionOp")))


def is_zero(c: FnCompiler, slot: int) -> bool:
    """Return True if a slot holds the integer constant 0."""
    v = c.fn.template[slot]
    return type(v) is int and v == 0


def _barrier_arrive(c: FnCompiler, op: Operation) -> None:
    values = [c.use(v) for v in op.operands]
    ident = values[0] if len(values) > 1 else None
    emit_barrier(c, op, "nvvm.barrier.arrive", ident, values[-1] if values else None, arrive_only=True)


# -- clusters -------------------------------------------------------------------------------------------------------


def _cluster_arrive(c: FnCompiler, op: Operation) -> None:
    relaxed = "relaxed" in op_name(op)
    c.fn.needs_warp.append("a cluster barrier")

    def step(R: Regs, g: Group) -> None:
        if g.mask.n == 0:
            return
        _check_whole(g, "cluster.arrive")
        cluster = g.machine.blocks[g.block_of(0)].cluster
        if g.cluster_wait is not None:
            raise Fault("sync", "second cluster.arrive without a cluster.wait after the first")
        g.cluster_wait = cluster.generation
        if g.machine.monitor is not None:
            g.machine.monitor.cluster_arrive(g, cluster, relaxed)
        cluster.arrived += 1
        g.count.progress += 1
        cluster.check()

    c.emit(op, step, pure=False)


def _cluster_wait(c: FnCompiler, op: Operation) -> None:
    c.fn.needs_warp.append("a cluster barrier")
    info = c.info(op)

    def gen(R: Regs, g: Group) -> Gen:
        if g.mask.n == 0:
            return
        cluster = g.machine.blocks[g.block_of(0)].cluster
        mine = g.cluster_wait
        if mine is None:
            raise Fault("sync", "cluster.wait without a preceding cluster.arrive")
        g.cluster_wait = None
        if cluster.generation == mine:
            yield Wait(lambda: cluster.generation != mine, info, "waits at the cluster barrier")
        if g.machine.monitor is not None:
            g.machine.monitor.cluster_wait(g, cluster)

    c.emit_blocking(op, gen, info)


def _mapa(c: FnCompiler, op: Operation) -> None:
    """Return the address of the same offset in block `rank` of the cluster: ptr<3> to ptr<7>, or generic to generic."""
    p, rank = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    if c.leaf_of(p).space == GENERIC:
        raise InterpError("unsupported", "nvvm.mapa of a generic pointer is not supported; use a ptr<3>")
    c.emit(op, mapa_step(p, rank, d))


def mapa_step(p: int, rank: int, d: int) -> Step:
    """Return the step of mapa, which maps a shared address (slot `p`) to block `rank` and writes slot `d`."""
    low = (1 << WINDOW_BITS) - 1

    def step(R: Regs, g: Group) -> None:
        r = R[rank]
        n = g.cluster[0] * g.cluster[1] * g.cluster[2]
        bad = np.asarray((r < 0) | (r >= n))  # type: ignore[operator]
        if bad.any() and g.mask.n and (not bad.ndim or g.mask.any(bad)):
            raise Fault(
                "oob", f"block rank is out of range; the cluster has {n} blocks", g.mask.first(bad) if bad.ndim else -1
            )
        r64 = r.astype(np.int64) if isinstance(r, np.ndarray) else r
        R[d] = ((r64 + 1) << WINDOW_BITS) + (R[p] & low)  # type: ignore[operator]

    return step


# -- fences, exit ---------------------------------------------------------------------------------------------------


def fence_step(c: FnCompiler, fence: Fence, address: int = -1, add: int = 0) -> Step:
    """Return the step of a fence.

    Memory is sequentially consistent here, so a fence only informs the race detector. `address` and `add` are the slot
    and offset of the tensor map that the fence applies to, -1 for none.
    """
    if fence.order:
        c.fn.needs_clocks.append("a fence")

    def step(R: Regs, g: Group) -> None:
        g.machine.fences += 1
        if g.machine.monitor is not None and g.mask.n:
            g.machine.monitor.fence(g, fence)
            if address >= 0:
                at = to_lanes(R[address], int_leaf(64), g.lanes)
                g.machine.monitor.acquire_maps(g, [(lane, int(at[lane]) + add) for lane in g.mask.idx.tolist()], fence)

    return step


def _fence(c: FnCompiler, op: Operation) -> None:
    slots = [c.use(v) for v in op.operands]
    c.emit(op, fence_step(c, fence_of_op(op), *slots[:1]), pure=False)


def _hint(c: FnCompiler, op: Operation) -> None:
    """Compile an op without observable effect."""
    for v in op.operands:
        c.uses(v)
    c.emit(op, fence_step(c, Fence()), pure=False)


def emit_grid_control(c: FnCompiler, op: Operation, waits: bool) -> None:
    """Emit griddepcontrol. Grids run one after the other here, so a wait only informs the race detector."""
    if waits:
        c.fn.needs_clocks.append(WAIT)

    def step(R: Regs, g: Group) -> None:
        monitor = g.machine.monitor
        if waits and g.mask.n and monitor is not None and g.machine.preceding is not None:
            g.machine.preceding.waited(g)

    c.emit(op, step, pure=False)


def _grid_control(c: FnCompiler, op: Operation) -> None:
    emit_grid_control(c, op, op_name(op).endswith(".wait") or enum_word(attr_of(op, "kind")) == "wait")


def _exit(c: FnCompiler, op: Operation) -> None:
    def step(R: Regs, g: Group) -> None:
        g.kill()

    c.emit(op, step, pure=False)


def _trap(c: FnCompiler, op: Operation) -> None:
    def step(R: Regs, g: Group) -> None:
        if g.mask.n:
            raise Fault("trap", "trap")

    c.emit(op, step, pure=False)


_HOLDS: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
"""Predicates of arith.cmpi by number: equality, signed, unsigned."""


def _comparisons(condition: SSAValue) -> list[tuple[SSAValue, SSAValue, str]]:
    """Return the integer comparisons in a condition, which may be joined by arith.andi."""
    op = condition.owner
    if not isinstance(op, Operation):
        return []
    if op_name(op) == "arith.andi":
        return [found for operand in op.operands for found in _comparisons(operand)]
    predicate = attr_of(op, "predicate")
    number = predicate.value.data if isinstance(predicate, IntegerAttr) else -1
    if op_name(op) != "arith.cmpi" or not 0 <= number < len(_PREDICATES):
        return []
    return [(op.operands[0], op.operands[1], _PREDICATES[number])]


def _assert(c: FnCompiler, op: Operation) -> None:
    cond = c.use(op.operands[0])
    msg = attr_of(op, "msg")
    text = getattr(msg, "data", "")
    compared = [(c.use(lhs), c.use(rhs), word) for lhs, rhs, word in _comparisons(op.operands[0])]

    def message(R: Regs, lane: int | None) -> str:
        """Format the failure with the compared numbers of a lane, such as ``; here 8 < 8 is false``."""
        numbers = [
            (*(int(x[lane or 0] if isinstance(x, np.ndarray) else x) for x in (R[lhs], R[rhs])), word)
            for lhs, rhs, word in compared
        ]
        if text.startswith("out-of-bounds "):  # A bounds check of lang/values/indexing.py: index < extent.
            index = next((f": index {a} is outside [0, {b})" for a, b, word in numbers if word == "<"), "")
            return f"{text}{index}; access it under an 'if' that tests the index"
        call, missing, what = text.partition(": no such ")
        found = next(((a, b) for a, b, word in numbers if word == "<"), None)
        if missing and found is not None:  # A check of a rank or slot: number < count.
            return f"{call}: {no_such(what, *found)}"
        parts = [f"{a} {word} {b}" for a, b, word in numbers if not _HOLDS[word](a, b)]
        return f"assertion failed: {text}" + (f"; here {' and '.join(parts)} is false" if parts else "")

    def step(R: Regs, g: Group) -> None:
        v = truth(R[cond], g.mask)
        if isinstance(v, np.ndarray):
            if g.mask.any(~v):
                lane = g.mask.first(~v)
                raise Fault("assert", message(R, lane), lane)
        elif not v and g.mask.n:
            raise Fault("assert", message(R, None))

    c.emit(op, step, pure=False)


def _nanosleep(c: FnCompiler, op: Operation) -> None:
    if not c.loops:
        c.emit(op, lambda R, g: None, pure=False)
        return
    c.fn.needs_warp.append("a sleep in a loop")
    info = c.info(op)

    def gen(R: Regs, g: Group) -> Gen:
        yield Wait(lambda: True, info, "sleeps in a loop", spin=True)

    c.emit_blocking(op, gen, info)


def _setmaxregister(c: FnCompiler, op: Operation) -> None:
    count = getattr(getattr(attr_of(op, "regCount"), "value", None), "data", 0)
    emit_setmaxnreg(c, op, count, enum_word(attr_of(op, "action")) == "increase")


def emit_setmaxnreg(c: FnCompiler, op: Operation, count: int, increase: bool) -> None:
    """Emit setmaxnreg: a warp returns registers to the block's pool, or waits until the pool has enough."""
    if not 24 <= count <= 256 or count % 8:
        raise InterpError("unsupported", f"setmaxnreg needs a multiple of 8 in [24, 256], got {count}")
    c.fn.needs_warp.append("setmaxnreg")
    info = c.info(op)

    def gen(R: Regs, g: Group) -> Gen:
        if g.mask.n == 0:
            return
        _check_whole(g, "setmaxnreg")
        block = g.machine.blocks[g.block_of(0)]
        pool = block.registers
        warp = int(g.lane_tid[0]) // 32
        now = pool.of(warp)
        pool.executes(warp, info)
        if g.machine.monitor is not None:
            g.machine.monitor.registers(g, pool.executed(warp), pool.others(warp))
        if increase and count < now and pool.may_have_fewer(warp):
            pool.change(warp, count)
            g.count.progress += 1
            return
        if (count < now) if increase else (count > now):
            verb, bound = ("increase", "at least") if increase else ("decrease", "at most")
            raise Fault(
                "sync",
                f"setmaxnreg {verb}: the warp has {now} registers, so the count must be {bound} {now}, got {count}",
            )
        if increase and not pool.fits(count - now):
            text = f"waits for {count - now} more registers per thread; the block's pool has {pool.free // 32} left"
            yield Wait(lambda: pool.fits(count - now), info, text)
        pool.change(warp, count)
        g.count.progress += 1

    c.emit_blocking(op, gen, info)


OPS: dict[str, Builder] = {
    "gpu.thread_id": _gpu_id("tid"),
    "gpu.block_id": _gpu_id("ctaid"),
    "gpu.block_dim": _gpu_id("ntid"),
    "gpu.grid_dim": _gpu_id("nctaid"),
    "gpu.cluster_id": _gpu_id("clusterid"),
    "gpu.cluster_dim": _gpu_id("nclusterid"),
    "gpu.cluster_block_id": _gpu_id("cluster.ctaid"),
    "gpu.cluster_dim_blocks": _gpu_id("cluster.nctaid"),
    "gpu.global_id": _global_id,
    "gpu.lane_id": _gpu_plain("laneid"),
    "gpu.subgroup_id": _gpu_plain("warpid"),
    "gpu.subgroup_size": _gpu_plain("warpsize"),
    "gpu.num_subgroups": _gpu_plain("nwarpid"),
    "gpu.barrier": lambda c, op: emit_barrier(c, op, "gpu.barrier", None, None),
    "cf.assert": _assert,
    "nvvm.barrier0": lambda c, op: emit_barrier(c, op, "nvvm.barrier0", None, None),
    "nvvm.barrier": _barrier,
    "nvvm.barrier.arrive": _barrier_arrive,
    "nvvm.cluster.arrive": _cluster_arrive,
    "nvvm.cluster.arrive.relaxed": _cluster_arrive,
    "nvvm.cluster.wait": _cluster_wait,
    "nvvm.mapa": _mapa,
    "nvvm.memory.barrier": _fence,
    "nvvm.prefetch": _hint,
    "nvvm.griddepcontrol": _grid_control,
    "nvvm.griddepcontrol.wait": _grid_control,
    "nvvm.griddepcontrol.launch.dependents": _grid_control,
    "llvm.fence": _fence,
    "nvvm.exit": _exit,
    "llvm.intr.trap": _trap,
    "llvm.intr.debugtrap": _trap,
    "nvvm.nanosleep": _nanosleep,
    "nvvm.setmaxregister": _setmaxregister,
}

PREFIXES: tuple[tuple[str, Builder], ...] = (
    (_SREG, lambda c, op: emit_sreg(c, op, op_name(op).removeprefix(_SREG))),
    ("nvvm.fence.", _fence),
)


# -- inline PTX -------------------------------------------------------------------------------------------------------


def _ptx_mapa(text: Text, s: Statement) -> None:
    """Compile mapa.shared::cluster.u32: the address of the same offset in another block of the cluster."""
    d, p, rank = (text.slot(o) for o in s.operands)
    if text.leaf(d).width != 32:
        raise InterpError("unsupported", f"{s.opcode} needs a 32-bit register for the address")
    step = mapa_step(p, rank, d)

    def narrow(R: Regs, g: Group) -> None:
        step(R, g)
        R[d] = R[d].astype(np.int32) if isinstance(R[d], np.ndarray) else int(R[d])  # type: ignore[union-attr, arg-type]

    text.emit(s, narrow)


def _ptx_barrier(text: Text, s: Statement) -> None:
    slots = [text.slot(o) for o in s.operands]
    ident: int | None = slots[0] if slots else None
    count = slots[1] if len(slots) > 1 else None
    if ident is not None and count is None and is_zero(text.c, ident):
        ident = None
    emit_barrier(text.c, text.op, s.opcode, ident, count, arrive_only="arrive" in s.opcode)


def _ptx_fence(text: Text, s: Statement) -> None:
    address = text.address(s.operands[0]) if s.operands else (-1, 0)
    text.emit(s, fence_step(text.c, fence_of_ptx(s.opcode), *address))


def _cluster(text: Text, s: Statement) -> None:
    what = "wait" if ".wait" in s.opcode else "arrive.relaxed" if "relaxed" in s.opcode else "arrive"
    OPS[f"nvvm.cluster.{what}"](text.c, text.op)


TABLE: Sequence[tuple[str, Handler]] = (
    (r"mapa\.shared::cluster\.u32", _ptx_mapa),
    (r"(bar|barrier)(\.cta)?\.(sync|arrive).*", _ptx_barrier),
    (r"barrier\.cluster.*", _cluster),
    (
        r"griddepcontrol\.(wait|launch_dependents)",
        lambda text, s: emit_grid_control(text.c, text.op, s.opcode.endswith(".wait")),
    ),
    (r"(fence|membar).*", _ptx_fence),
    (
        r"setmaxnreg.*",
        lambda text, s: emit_setmaxnreg(text.c, text.op, int(number(s.operands[0]) or 0), ".inc" in s.opcode),
    ),
    (r"prefetch.*|applypriority.*|nanosleep.*", no_effect),
)
