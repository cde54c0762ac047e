"""Divergence analysis that finds barriers reached by whole blocks.

A value is divergent if it may differ between threads of a block. Sources are thread ids, loads, atomics, collectives
and calls. A value computed from a divergent value is divergent, and so are values merged under a divergent condition.
If no barrier of a kernel is under a divergent condition, blocks can run in lockstep and pass each barrier as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.interp.errors import op_name

if TYPE_CHECKING:
    from xdsl.ir import Operation

_SOURCES = (
    "nvvm.read.ptx.sreg.tid.",
    "nvvm.read.ptx.sreg.lane",
    "nvvm.read.ptx.sreg.warp",
    "gpu.thread_id",
    "gpu.lane_id",
    "gpu.subgroup_id",
    "gpu.global_id",
    "gpu.shuffle",
    "llvm.load",
    "llvm.call",
    "func.call",
    "llvm.atomicrmw",
    "llvm.cmpxchg",
    "llvm.call_intrinsic",
    "llvm.inline_asm",
    "nvvm.shfl",
    "nvvm.vote",
    "nvvm.match",
    "nvvm.redux",
    "nvvm.elect",
    "nvvm.ldmatrix",
    "nvvm.barrier",
    "nvvm.mbarrier",
    "nvvm.inline_ptx",
)
_BRANCHES = ("cf.cond_br", "llvm.cond_br", "cf.switch", "llvm.switch")


def divergent_values(func: Operation) -> set[int]:
    """Return the ids of the values in a kernel that may differ between threads of a block (an over-approximation)."""
    out: set[int] = set()
    rows: list[tuple[Operation, str, list[int], bool]] = []
    for op in func.walk():
        if op is not func:
            name = op_name(op)
            rows.append((op, name, [id(o) for o in op.operands], name.startswith(_SOURCES)))
    before = -1
    while len(out) != before:
        before = len(out)
        for op, name, operands, is_source in rows:
            bad = is_source or not out.isdisjoint(operands)
            if name == "scf.for":
                body = op.regions[0].blocks[0]
                yielded = body.last_op.operands if body.last_op is not None else ()
                bounds = not out.isdisjoint(operands[:3])
                if bounds:
                    out.add(id(body.args[0]))
                for arg, init, y, res in zip(body.args[1:], operands[3:], yielded, op.results):
                    if bounds or init in out or id(y) in out:
                        out.update((id(arg), id(res)))
            elif op.regions:
                inner = [b for r in op.regions for b in r.blocks]
                ends = [id(o) for b in inner if b.last_op is not None for o in b.last_op.operands]
                if bad or not out.isdisjoint(ends):
                    out.update([id(v) for v in (*op.results, *(a for b in inner for a in b.args))])
            else:
                if bad:
                    out.update([id(r) for r in op.results])
                if op.successor_uses:
                    _branch(op, name in _BRANCHES and operands[0] in out, bad, out)
    return out


def _branch(op: Operation, divides: bool, bad: bool, out: set[int]) -> None:
    """Mark block arguments that depend on a divergent branch or receive divergent values."""
    region = op.parent_region()
    if divides and region is not None:
        out.update([id(a) for b in region.blocks if b is not region.blocks[0] for a in b.args])
    elif bad:
        out.update([id(a) for s in op.successors for a in s.args])


def barriers_uniform(func: Operation, barriers: list[Operation]) -> bool:
    """Return True if each of these barriers is reached by all threads of a block or by none."""
    if not barriers:
        return True
    divergent = divergent_values(func)
    for barrier in barriers:
        op: Operation = barrier
        while op is not func:
            region = op.parent_region()
            if region is not None and len(region.blocks) > 1:
                for b in region.blocks:
                    last = b.last_op
                    if last is not None and op_name(last) in _BRANCHES and id(last.operands[0]) in divergent:
                        return False
            parent = op.parent_op()
            if parent is None or parent is func:
                break
            op = parent
            name = op_name(op)
            if name == "scf.for":
                if any(id(o) in divergent for o in op.operands[:3]):
                    return False
            elif name == "scf.while":
                end = op.regions[0].blocks[0].last_op
                if end is None or id(end.operands[0]) in divergent:
                    return False
            elif any(id(o) in divergent for o in op.operands):
                return False
    return True
