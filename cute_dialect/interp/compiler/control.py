"""Structured control flow (scf) under lane masks.

Each side of a branch runs under the mask of its lanes, and the results are merged. A loop runs until its last lane
leaves. Control flow is written as generators, which forward the waits of blocking ops inside. A region without blocking
ops runs to its end at once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import BlockArgument

from cute_dialect.interp.compiler.cfg import HARD, Patience, compile_region, exits_of
from cute_dialect.interp.compiler.function_compiler import FnCompiler, RegionCode
from cute_dialect.interp.errors import Fault, attr_of
from cute_dialect.interp.machine.group import Group, Wait
from cute_dialect.interp.values import POISON, Mask, Regs, Undefined, Value, merge, normalise, truth, unsigned

if TYPE_CHECKING:
    from xdsl.ir import Operation

Gen = Generator[Wait, None, None]


def compile_if(c: FnCompiler, op: Operation) -> None:
    """Compile scf.if: the condition, the then region and an optional else region."""
    cond = c.use(op.operands[0])
    then = compile_region(c, op.regions[0])
    other = (
        compile_region(c, op.regions[1])
        if len(op.regions) > 1 and op.regions[1].blocks
        else RegionCode(_nothing, False, ())
    )
    outs = c.flat_defines(op.results)
    c.pieces.join(outs, then.out, other.out)
    leaves = tuple(c.leaf_of(s) for s in outs)

    def run(R: Regs, g: Group) -> Gen:
        k = truth(R[cond], g.mask)
        m = g.mask
        if isinstance(k, bool):
            side = then if k else other
            inner = side.run(R, g)
            if inner is not None:
                yield from inner
            for d, s in zip(outs, side.out):
                R[d] = R[s]
            return
        t, f = m.split(k)
        if (t.n and f.n == 0) or (f.n and t.n == 0):
            side = then if t.n else other
            inner = side.run(R, g)
            if inner is not None:
                yield from inner
            for d, s in zip(outs, side.out):
                R[d] = R[s]
            return
        if t.n == 0:  # No lane is active here.
            for d in outs:
                R[d] = POISON
            return
        g.mask = t
        inner = then.run(R, g)
        if inner is not None:
            yield from inner
        vals = [R[s] for s in then.out]
        g.restore(f)
        inner = other.run(R, g)
        if inner is not None:
            yield from inner
        g.restore(m)
        for d, s, v, leaf in zip(outs, other.out, vals, leaves):
            R[d] = merge(t, v, R[s], leaf)

    c.emit_control(op, run, then.blocking or other.blocking)


def compile_for(c: FnCompiler, op: Operation) -> None:
    """Compile scf.for.

    Operands are the lower bound, the exclusive upper bound, the step and the initial values. The first argument of the
    body is the induction variable.
    """
    lb, ub, st = (c.use(v) for v in op.operands[:3])
    init = c.flat_uses(op.operands[3:])
    block = op.regions[0].blocks[0]
    args = c.block_args(block)
    iv, carried = args[0], args[1:]
    leaf = c.leaf_of(iv)
    mark = c.pieces.enter(carried, init)
    body = compile_region(c, op.regions[0])
    outs = c.flat_defines(op.results)
    c.pieces.leave(mark, carried, body.out, outs)
    leaves = tuple(c.leaf_of(s) for s in carried)
    is_unsigned = attr_of(op, "unsignedCmp") is not None
    info = c.info(op)

    def run(R: Regs, g: Group) -> Gen:
        lo, hi, by = (v.used(g.mask, "a loop bound") if isinstance(v := R[s], Undefined) else v for s in (lb, ub, st))
        vals: list[Value] = [R[s] for s in init]
        if POISON is lo or POISON is hi or POISON is by:
            raise Fault("poison", "loop bound is poison (an undefined value)")
        m = g.mask
        if not isinstance(lo, np.ndarray) and not isinstance(hi, np.ndarray) and not isinstance(by, np.ndarray):
            if is_unsigned:
                lo, hi = unsigned(lo, leaf), unsigned(hi, leaf)
            if by <= 0:  # type: ignore[operator]
                raise Fault("arithmetic", f"the loop step is {by}; it must be positive")
            k = g.count
            trips = range(lo, hi, by)  # type: ignore[arg-type]
            if len(trips) > HARD * k.most or k.steps - k.base > HARD * k.most:
                raise g.out_of_steps(info, HARD)
            k.steps += len(trips)
            for i in trips:
                R[iv] = normalise(i, leaf) if is_unsigned else i
                for s, v in zip(carried, vals):
                    R[s] = v
                inner = body.run(R, g)
                if inner is not None:
                    yield from inner
                vals = [R[s] for s in body.out]
                g.restore(m)
                if g.mask.n == 0:
                    break
            for d, v in zip(outs, vals):
                R[d] = v
            return
        i_now = np.array(np.broadcast_to(np.asarray(lo, leaf.dtype), (g.lanes,)))
        hi_arr = np.broadcast_to(np.asarray(hi, leaf.dtype), (g.lanes,))
        by_arr = np.broadcast_to(np.asarray(by, leaf.dtype), (g.lanes,))
        if m.any(by_arr <= 0):
            raise Fault("arithmetic", "the loop step is not positive in every thread", m.first(by_arr <= 0))
        if is_unsigned:
            hi_arr = hi_arr.view(leaf.unsigned)
        bits = m.array
        k = g.count
        start = i_now.view(leaf.unsigned) if is_unsigned else i_now
        most = ((hi_arr.astype(object) - start) // by_arr)[bits].max(initial=0) if m.n else 0
        if most > HARD * k.most or k.steps - k.base > HARD * k.most:
            raise g.out_of_steps(info, HARD)
        while True:
            now = i_now.view(leaf.unsigned) if is_unsigned else i_now
            k.steps += 1
            live = Mask.of(bits & (now < hi_arr))
            if g.killed:
                live = live.minus(g.dead)
            if live.n == 0:
                break
            g.mask = live
            R[iv] = i_now
            for s, v in zip(carried, vals):
                R[s] = v
            inner = body.run(R, g)
            if inner is not None:
                yield from inner
            after = [R[s] for s in body.out]
            vals = [merge(live, n, o, f) for n, o, f in zip(after, vals, leaves)]
            nxt = i_now + by_arr
            # A counter that would wrap ends the loop.
            bits = live.array & ((nxt.view(leaf.unsigned) > now) if is_unsigned else (nxt > i_now))
            i_now = nxt
        g.restore(m)
        for d, v in zip(outs, vals):
            R[d] = v

    c.emit_control(op, run, body.blocking)


def compile_while(c: FnCompiler, op: Operation) -> None:
    """Compile scf.while: `before` computes the condition and forwarded values, `after` the next arguments."""
    init = c.flat_uses(op.operands)
    c.loops += 1
    before_args = c.block_args(op.regions[0].blocks[0])
    before = compile_region(c, op.regions[0])
    after_args = c.block_args(op.regions[1].blocks[0])
    after = compile_region(c, op.regions[1])
    c.loops -= 1
    outs = c.flat_defines(op.results)
    cond, passed = before.out[0], before.out[1:]
    before_leaves = tuple(c.leaf_of(s) for s in before_args)
    out_leaves = tuple(c.leaf_of(s) for s in outs)
    first, second = (r.blocks[0] for r in op.regions)
    assert first.last_op is not None and second.last_op is not None
    feeding = {first: second.last_op.operands, second: first.last_op.operands[1:]}
    exits = exits_of(
        c,
        c.info(op),
        first.last_op.operands[:1],
        feeding,
        lambda block, v: [feeding[block][v.index]] if block in feeding and isinstance(v, BlockArgument) else [],
        before.blocking or after.blocking,
    )

    def run(R: Regs, g: Group) -> Gen:
        m = now = g.mask
        vals: list[Value] = [R[s] for s in init]
        result: list[Value] = [POISON] * len(outs)
        k = g.count
        due = k.steps - k.base + k.most
        patience: Patience | None = None
        while now.n:
            k.steps += 1
            for s, v in zip(before_args, vals):
                R[s] = v
            if k.steps - k.base > due:
                patience = patience or Patience(exits)
                due = patience.judge(R, g)
            inner = before.run(R, g)
            if inner is not None:
                yield from inner
            if g.killed:
                now = now.minus(g.dead)
                g.mask = now
                if now.n == 0:
                    break
            flag = truth(R[cond], g.mask)
            sent = [R[s] for s in passed]
            if isinstance(flag, bool):
                stay, leave = (now, None) if flag else (None, now)
            else:
                t, f = now.split(flag)
                stay, leave = (t if t.n else None), (f if f.n else None)
            if leave is not None:
                result = [merge(leave, n, o, f) for n, o, f in zip(sent, result, out_leaves)]
            if stay is None:
                break
            g.mask = stay
            for s, v in zip(after_args, sent):
                R[s] = v
            inner = after.run(R, g)
            if inner is not None:
                yield from inner
            now = stay.minus(g.dead) if g.killed else stay
            g.mask = now
            fresh = [R[s] for s in after.out]
            vals = [merge(stay, n, o, f) for n, o, f in zip(fresh, vals, before_leaves)]
        if exits.polls:
            g.advance()
        g.restore(m)
        for d, v in zip(outs, result):
            R[d] = v

    c.emit_control(op, run, before.blocking or after.blocking)


def compile_execute_region(c: FnCompiler, op: Operation) -> None:
    """Compile scf.execute_region, which runs its region once."""
    body = compile_region(c, op.regions[0])
    outs = c.flat_defines(op.results)

    def run(R: Regs, g: Group) -> Gen:
        inner = body.run(R, g)
        if inner is not None:
            yield from inner
        for d, s in zip(outs, body.out):
            R[d] = R[s]

    c.emit_control(op, run, body.blocking)


def compile_index_switch(c: FnCompiler, op: Operation) -> None:
    """Compile scf.index_switch: the default region is first, followed by one region per case."""
    flag = c.use(op.operands[0])
    cases = [int(v) for v in attr_of(op, "cases").get_values()]  # type: ignore[union-attr]
    regions = [compile_region(c, r) for r in op.regions]
    outs = c.flat_defines(op.results)
    leaves = tuple(c.leaf_of(s) for s in outs)

    def run(R: Regs, g: Group) -> Gen:
        v = R[flag]
        if v is POISON:
            raise Fault("poison", "switch on poison (an undefined value)")
        m = rest = g.mask
        result: list[Value] = [POISON] * len(outs)
        for value, region in [*zip(cases, regions[1:]), (None, regions[0])]:
            if value is None:
                here = rest
            else:
                hit = np.asarray(v == value)
                if hit.ndim:
                    here, rest = rest.split(hit)
                elif hit:
                    here, rest = rest, Mask(rest.lanes, np.zeros(rest.lanes, np.bool_), 0)
                else:
                    continue
            if here.n == 0:
                continue
            g.restore(here)
            inner = region.run(R, g)
            if inner is not None:
                yield from inner
            result = [merge(here, R[s], o, f) for s, o, f in zip(region.out, result, leaves)]
            if rest.n == 0:
                break
        g.restore(m)
        for d, x in zip(outs, result):
            R[d] = x

    c.emit_control(op, run, any(r.blocking for r in regions))


def compile_nothing(c: FnCompiler, op: Operation) -> None:
    """Compile an op without effect."""
    c.emit(op, _nothing, pure=False)


def _nothing(R: Regs, g: Group) -> None:
    return None
