"""Inline PTX for asynchronous operations: mbarrier, wgmma, bulk copies, cp.async, st.async, barriers and fences."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.exec.barriers import find_mbarrier, shared_at
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.exec.wgmma import Shape
from cute_dialect.interp.instructions import asynchronous, bulk, gpu, wgmma
from cute_dialect.interp.instructions.copy_operands import Copies
from cute_dialect.interp.instructions.memory import apply_atomic
from cute_dialect.interp.instructions.order import fence_of_ptx, sync_of_ptx
from cute_dialect.interp.instructions.ptx_text import Statement, Text, number
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Array, Regs, Value, to_lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

Handler = Callable[[Text, Statement], None]
_I64 = int_leaf(64)


def _space(text: Text, s: Statement, slot: int) -> int:
    """Return the address space of a shared address: that of a pointer, else the one in the opcode."""
    leaf = text.leaf(slot)
    if leaf.kind == "p" and leaf.space in (3, 7):
        return leaf.space
    return 7 if "shared::cluster" in s.opcode else 3


# -- mbarrier ---------------------------------------------------------------------------------------------------------


def _mbarrier(text: Text, s: Statement) -> None:
    """Compile mbarrier.arrive[.expect_tx], mbarrier.expect_tx, mbarrier.init, mbarrier.inval."""
    where = next(i for i, o in enumerate(s.operands) if o.startswith("["))
    slot, add = text.address(s.operands[where])
    result = text.slot(s.operands[0]) if where and s.operands[0] != "_" else -1
    count = text.slot(s.operands[where + 1]) if len(s.operands) > where + 1 else -1
    space = _space(text, s, slot)
    kind = "expect_tx" if "expect_tx" in s.opcode else "arrive"
    if s.opcode.startswith("mbarrier.init"):
        kind = "init"
    elif s.opcode.startswith("mbarrier.inval"):
        kind = "inval"
    sync = sync_of_ptx(s.opcode) if "arrive" in s.opcode else None
    step = asynchronous.mbarrier_step(
        text.c, slot, add, space, kind, count, result, sync=sync, drop="arrive_drop" in s.opcode
    )
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
    asynchronous.emit_wait(
        text.c,
        text.op,
        slot,
        token,
        "parity" not in s.opcode,
        _space(text, s, slot),
        result,
        "loop" if loops else "try" if "try_wait" in s.opcode else "test",
        sync_of_ptx(s.opcode),
        add,
        used=used,
    )


def _wait(text: Text, s: Statement) -> None:
    wait(text, s, loops=False, used=text.reads(s, s.operands[0]))


# -- wgmma ------------------------------------------------------------------------------------------------------------

_WGMMA = re.compile(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)")


def _mma_async(text: Text, s: Statement) -> None:
    m = _WGMMA.fullmatch(s.opcode)
    if m is None:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    outs = [text.slot(p) for p in s.parts(0)]
    a: int | list[int] = (
        [text.slot(p) for p in s.parts(1)] if s.operands[1].startswith("{") else text.slot(s.operands[1])
    )
    b = text.slot(s.operands[2])
    flag = s.operands[3]
    rest = [int(number(o) or 0) for o in s.operands[4:]]
    scales = [*rest[:2], 1, 1] if m[4] != "s32" else [1, 1]
    majors = rest[2:] if m[4] != "s32" else []
    if isinstance(a, list):
        majors = [0, *majors]
    literal = number(flag)
    shape = Shape(
        int(m[1]),
        int(m[2]),
        m[4],
        m[5],
        m[6],
        "mn" if majors[:1] == [1] else "k",
        "mn" if majors[1:2] == [1] else "k",
        scale_a=scales[0],
        scale_b=scales[1],
        saturate=bool(m[3]),
    )
    scale: bool | int = bool(literal) if literal is not None else text.slot(flag.lstrip("!"))
    wgmma.emit_mma(text.c, text.op, shape, a, b, outs, outs, scale, not flag.startswith("!"))


def _wgmma_fence(text: Text, s: Statement) -> None:
    wgmma.emit_fence(text.c, text.op)


def _wgmma_commit(text: Text, s: Statement) -> None:
    wgmma.emit_commit(text.c, text.op)


def _wgmma_wait(text: Text, s: Statement) -> None:
    wgmma.emit_wait(text.c, text.op, int(number(s.operands[0]) or 0))


# -- copies -----------------------------------------------------------------------------------------------------------


def _bulk_tensor(text: Text, s: Statement) -> None:
    """Compile cp.async.bulk.tensor.Nd and cp.reduce.async.bulk.tensor.Nd."""
    k = Copies(text.c)
    k.predicate = _plain_guard(text, s)
    combine = re.search(r"\.(add|min|max|inc|dec|and|or|xor)\b", s.opcode) if "reduce" in s.opcode else None
    load = ".global.shared::cta" not in s.opcode
    boxed = s.operands[0 if not load else 1]
    parts = [p.strip() for p in boxed.strip("[]").split(",", 1)]
    k.map = text.slot(parts[0])
    k.coordinates = [text.slot(p) for p in parts[1].strip().strip("{}").split(",")]
    if not load:
        k.columns = "im2col" in s.opcode
        k.shared, add = text.address(s.operands[1])
        _no_offset(add)
        bulk.emit_tensor_store(text.op, k, combine[1] if combine else "")
        return
    k.shared, add = text.address(s.operands[0])
    _no_offset(add)
    k.bar, add = text.address(s.operands[2])
    _no_offset(add)
    rest = list(s.operands[3:])
    if "im2col" in s.opcode:
        k.offsets = [text.slot(p) for p in rest.pop(0).strip("{}").split(",")]
    if "multicast" in s.opcode:
        k.mask = text.slot(rest.pop(0))
    bulk.emit_tensor_load(text.op, k)


def _bulk(text: Text, s: Statement) -> None:
    """Compile cp.async.bulk between global and shared memory."""
    k = Copies(text.c)
    k.predicate = _plain_guard(text, s)
    first, add0 = text.address(s.operands[0])
    second, add1 = text.address(s.operands[1])
    _no_offset(add0 or add1)
    k.size = text.slot(s.operands[2])
    if ".global.shared::cta" in s.opcode:
        k.source, k.shared = first, second
        reduction = re.search(r"\.(add|min|max|inc|dec|and|or|xor)(?:\.noftz)?\.(\w+)$", s.opcode)
        bulk.emit_bulk_store(text.op, k, *(reduction.groups() if reduction and "reduce" in s.opcode else ()))
        return
    k.shared, k.source = first, second
    k.bar, add = text.address(s.operands[3])
    _no_offset(add)
    if "multicast" in s.opcode:
        k.mask = text.slot(s.operands[4])
    bulk.emit_bulk_load(text.op, k)


def _no_offset(add: int) -> None:
    if add:
        raise InterpError("unsupported", "an address with an offset is not supported here")


def _plain_guard(text: Text, s: Statement) -> int:
    slot, negated = text.guard(s)
    if negated:
        raise InterpError("unsupported", "a negated guard is not supported here")
    return slot


def _bulk_commit(text: Text, s: Statement) -> None:
    bulk.emit_commit(text.c, text.op)


def _bulk_wait(text: Text, s: Statement) -> None:
    bulk.emit_wait(text.c, text.op, int(number(s.operands[0]) or 0), ".read" in s.opcode)


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
    spaces = _space(text, s, slot), _space(text, s, bar)
    owner = text.c.pieces.allocation(slot)
    name = "red.async" if combine else "st.async"

    def step(R: Regs, g: Group) -> None:
        addresses, bars = to_lanes(R[slot], _I64, g.lanes), to_lanes(R[bar], _I64, g.lanes)
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


def _mapa(text: Text, s: Statement) -> None:
    """Compile mapa.shared::cluster.u32: the address of the same offset in another block of the cluster."""
    d, p, rank = (text.slot(o) for o in s.operands)
    if text.leaf(d).width != 32:
        raise InterpError("unsupported", f"{s.opcode} needs a 32-bit register for the address")
    step = gpu.mapa_step(p, rank, d)

    def narrow(R: Regs, g: Group) -> None:
        step(R, g)
        R[d] = R[d].astype(np.int32) if isinstance(R[d], np.ndarray) else int(R[d])  # type: ignore[union-attr, arg-type]

    text.emit(s, narrow)


def _cp_async(text: Text, s: Statement) -> None:
    """Compile cp.async.{ca,cg}.shared.global [dst], [src], size[, source size]."""
    dst, add0 = text.address(s.operands[0])
    src, add1 = text.address(s.operands[1])
    size = int(number(s.operands[2]) or 0)
    hinted = "cache_hint" in s.opcode
    extra = list(s.operands[3:-1] if hinted else s.operands[3:])
    count = text.slot(extra[0]) if extra else -1
    step = asynchronous.cp_async_step(text.c, dst, src, count, size, add0, add1)
    text.emit(s, step)


def _cp_commit(text: Text, s: Statement) -> None:
    text.emit(s, asynchronous.commit_step)


def _cp_wait(text: Text, s: Statement) -> None:
    keep = int(number(s.operands[0]) or 0) if s.operands else None
    text.emit(s, lambda R, g: asynchronous.finish_copies(g, keep))


# -- barriers and fences ----------------------------------------------------------------------------------------------


def _barrier(text: Text, s: Statement) -> None:
    slots = [text.slot(o) for o in s.operands]
    ident: int | None = slots[0] if slots else None
    count = slots[1] if len(slots) > 1 else None
    if ident is not None and count is None and gpu.is_zero(text.c, ident):
        ident = None
    gpu.emit_barrier(text.c, text.op, s.opcode, ident, count, arrive_only="arrive" in s.opcode)


def _fence(text: Text, s: Statement) -> None:
    address = text.address(s.operands[0]) if s.operands else (-1, 0)
    text.emit(s, gpu.fence_step(text.c, fence_of_ptx(s.opcode), *address))


def _grid_control(text: Text, s: Statement) -> None:
    gpu.emit_grid_control(text.c, text.op, s.opcode.endswith(".wait"))


def _nothing(text: Text, s: Statement) -> None:
    text.emit(s, lambda R, g: None)


def _setmaxnreg(text: Text, s: Statement) -> None:
    gpu.emit_setmaxnreg(text.c, text.op, int(number(s.operands[0]) or 0), ".inc" in s.opcode)


def _cluster(text: Text, s: Statement) -> None:
    build = gpu.OPS["nvvm.cluster.wait" if ".wait" in s.opcode else _arrive_name(s.opcode)]
    build(text.c, text.op)


def _arrive_name(opcode: str) -> str:
    return "nvvm.cluster.arrive.relaxed" if "relaxed" in opcode else "nvvm.cluster.arrive"


TABLE: Sequence[tuple[str, Handler]] = (
    (r"mbarrier\.(try_wait|test_wait).*", _wait),
    (r"mbarrier\..*", _mbarrier),
    (r"wgmma\.mma_async.*", _mma_async),
    (r"wgmma\.fence.*", _wgmma_fence),
    (r"wgmma\.commit_group.*", _wgmma_commit),
    (r"wgmma\.wait_group.*", _wgmma_wait),
    (r"cp\.(reduce\.)?async\.bulk\.tensor.*", _bulk_tensor),
    (r"cp\.async\.bulk\.commit_group", _bulk_commit),
    (r"cp\.async\.bulk\.wait_group.*", _bulk_wait),
    (r"cp\.async\.bulk\.prefetch.*", _nothing),
    (r"cp\.(reduce\.)?async\.bulk\..*", _bulk),
    (r"st\.async.*", _st_async),
    (r"red\.async.*", _red_async),
    (r"mapa\.shared::cluster\.u32", _mapa),
    (r"cp\.async\.(ca|cg)\.shared.*", _cp_async),
    (r"cp\.async\.commit_group", _cp_commit),
    (r"cp\.async\.wait_(group|all)", _cp_wait),
    (r"(bar|barrier)(\.cta)?\.(sync|arrive).*", _barrier),
    (r"barrier\.cluster.*", _cluster),
    (r"griddepcontrol\.(wait|launch_dependents)", _grid_control),
    (r"(fence|membar).*", _fence),
    (r"setmaxnreg.*", _setmaxnreg),
    (r"prefetch.*|applypriority.*|discard.*|nanosleep.*", _nothing),
)

__all__ = ["TABLE", "wait"]
