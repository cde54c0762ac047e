"""Which barriers are reached by whole blocks: a small divergence analysis.

A value is divergent if it may differ between the threads of a block.  Sources are thread ids, loads, atomics,
collectives and calls; everything computed from a divergent value is divergent, and so is what merges under a
divergent condition.  When no barrier of a kernel stands under a divergent condition, blocks can run in lockstep and a
barrier is passed by all at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.interp.errors import op_name

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

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


def divergent_values(func: Operation) -> set[SSAValue]:
    """The values of a kernel that may differ between threads of a block (an over-approximation)."""
    out: set[SSAValue] = set()
    changed = True

    def mark(v: SSAValue) -> None:
        nonlocal changed
        if v not in out:
            out.add(v)
            changed = True

    ops = [op for op in func.walk() if op is not func]
    while changed:
        changed = False
        for op in ops:
            name = op_name(op)
            bad = name.startswith(_SOURCES) or any(o in out for o in op.operands)
            if name == "scf.for":
                body = op.regions[0].blocks[0]
                yielded = body.last_op.operands if body.last_op is not None else ()
                bounds = any(o in out for o in op.operands[:3])
                if bounds:
                    mark(body.args[0])
                for arg, init, y, res in zip(body.args[1:], op.operands[3:], yielded, op.results):
                    if bounds or init in out or y in out:
                        mark(arg)
                        mark(res)
                continue
            if op.regions:
                inner = [b for r in op.regions for b in r.blocks]
                ends = [o for b in inner if b.last_op is not None for o in b.last_op.operands]
                if bad or any(o in out for o in ends):
                    for v in (*op.results, *(a for b in inner for a in b.args)):
                        mark(v)
                continue
            if bad:
                for r in op.results:
                    mark(r)
            if op.successors:
                branches = name in _BRANCHES and op.operands[0] in out
                region = op.parent_region()
                if branches and region is not None:
                    for b in region.blocks:
                        if b is not region.blocks[0]:
                            for a in b.args:
                                mark(a)
                elif bad:
                    for s in op.successors:
                        for a in s.args:
                            mark(a)
    return out


def barriers_uniform(func: Operation, barriers: list[Operation]) -> bool:
    """Whether every one of these barriers is reached by all threads of a block or by none."""
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
                    if last is not None and op_name(last) in _BRANCHES and last.operands[0] in divergent:
                        return False
            parent = op.parent_op()
            if parent is None or parent is func:
                break
            op = parent
            name = op_name(op)
            if name == "scf.for":
                if any(o in divergent for o in op.operands[:3]):
                    return False
            elif name == "scf.while":
                end = op.regions[0].blocks[0].last_op
                if end is None or end.operands[0] in divergent:
                    return False
            elif any(o in divergent for o in op.operands):
                return False
    return True
