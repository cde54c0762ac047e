"""Inline PTX loads, stores, reductions and atomics, with vectors and cache hints."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.instructions.memory import atomic_lanes, polls, spin_point
from cute_dialect.interp.instructions.order import order_of_ptx
from cute_dialect.interp.instructions.ptx_text import Statement, Text
from cute_dialect.interp.memory.accesses import Site, load, store
from cute_dialect.interp.types import Leaf, float_leaf, int_leaf
from cute_dialect.interp.values import Array, Regs, merge, to_lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

Handler = Callable[[Text, Statement], None]
_BITS = re.compile(r"\.([bfus])(8|16|32|64|128)$")
_FLOAT = {"f16": "f16", "f32": "f32", "f64": "f64"}


def _space(opcode: str) -> int:
    if ".shared::cluster" in opcode:
        return 7
    if ".shared" in opcode:
        return 3
    return 1 if ".global" in opcode else 5 if ".local" in opcode else 0


def _element(opcode: str) -> Leaf:
    m = _BITS.search(opcode)
    if m is None:
        raise InterpError("unsupported", f"{opcode} does not end with a type")
    return float_leaf(f"f{m[2]}") if m[1] == "f" else int_leaf(int(m[2]))


def _count(opcode: str) -> int:
    m = re.search(r"\.v(2|4|8)\b", opcode)
    return int(m[1]) if m is not None else 1


def _vector(leaf: Leaf, n: int) -> Leaf:
    return Leaf(leaf.kind, leaf.width, leaf.dtype, leaf.name, (n,)) if n > 1 else leaf


def _as(v: Array, source: Leaf, target: Leaf) -> Array:
    """Convert between register types by truncating or zero-extending the bits."""
    if source.dtype == target.dtype:
        return v
    raw = np.ascontiguousarray(v)
    if raw.dtype.itemsize == target.dtype.itemsize:
        return raw.view(target.dtype)
    wide = raw.view(np.dtype(f"u{raw.dtype.itemsize}")).astype(np.dtype(f"u{target.dtype.itemsize}"))
    return wide.view(target.dtype)


def _load(text: Text, s: Statement) -> None:
    outs = [text.slot(p) for p in s.parts(0)]
    slot, add = text.address(s.operands[1])
    element = _element(s.opcode)
    n = _count(s.opcode)
    if len(outs) != n:
        raise InterpError("unsupported", f"{s.opcode} needs {n} registers, got {len(outs)}")
    leaf = _vector(element, n)
    space = text.leaf(slot).space or _space(s.opcode)
    site = Site(leaf, leaf.size, space, False, op=text.op)
    text.c.pieces.bound(site, slot)
    order_of_ptx(s.opcode, site)
    site.constant = ".nc" in s.opcode
    if site.order:
        text.c.fn.needs_clocks.append(s.opcode)
    out_leaves = [text.leaf(d) for d in outs]
    guarded = text.guard(s)[0] >= 0

    def step(R: Regs, g: Group) -> None:
        got = to_lanes(load(site, g, R[slot] + add if add else R[slot]), leaf, g.lanes)  # type: ignore[operator]
        for i, (d, t) in enumerate(zip(outs, out_leaves)):
            v = _as(got[:, i] if n > 1 else got, element, t)
            R[d] = merge(g.mask, v, R[d], t) if guarded else v

    text.emit(s, step)
    if site.order and text.c.loops:
        _may_poll(text, site, slot, outs[0])


def _store(text: Text, s: Statement) -> None:
    slot, add = text.address(s.operands[0])
    values = [text.slot(p) for p in s.parts(1)]
    element = _element(s.opcode)
    leaf = _vector(element, _count(s.opcode))
    site = Site(leaf, leaf.size, text.leaf(slot).space or _space(s.opcode), True, op=text.op)
    text.c.pieces.bound(site, slot)
    order_of_ptx(s.opcode, site)
    if site.order:
        text.c.fn.needs_clocks.append(s.opcode)
    leaves = [text.leaf(v) for v in values]

    def step(R: Regs, g: Group) -> None:
        cols = [_as(to_lanes(R[v], t, g.lanes), t, element) for v, t in zip(values, leaves)]
        data = np.stack(cols, axis=-1) if leaf.shape else cols[0]
        store(site, g, R[slot] + add if add else R[slot], data)  # type: ignore[operator]
        g.count.progress += 1

    text.emit(s, step)


_KINDS = {"and": "_and", "or": "_or", "xor": "_xor", "exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}


def _atomic(text: Text, s: Statement) -> None:
    """Compile red.… and atom.…, except cas."""
    returns = s.opcode.startswith("atom")
    slot, add = text.address(s.operands[1 if returns else 0])
    values = [text.slot(p) for p in s.parts(2 if returns else 1)]
    m = re.search(r"\.(add|min|max|and|or|xor|exch|inc|dec)\b", s.opcode)
    packed = re.search(r"\.(f16x2|bf16x2)$", s.opcode)
    if m is None:
        raise InterpError(
            "unsupported", f"{s.opcode} is not supported; use add, min, max, and, or, xor, exch, inc or dec"
        )
    kind = m[1]
    if packed is not None:
        base = float_leaf(packed[1][:-2])
        leaf, n = Leaf("f", 16, base.dtype, base.name, (2,)), 1
        unit = leaf
    else:
        unit = _element(s.opcode)
        n = _count(s.opcode)
        leaf = _vector(unit, n)
    if unit.kind == "f":
        kind = {"add": "fadd", "min": "fmin", "max": "fmax"}.get(kind, kind)
    elif re.search(r"\.u\d+$", s.opcode) and kind in ("min", "max"):
        kind = "u" + kind
    kind = _KINDS.get(kind, kind)
    site = Site(leaf, leaf.size, text.leaf(slot).space or _space(s.opcode), True, "atomic", text.op)
    text.c.pieces.bound(site, slot)
    site.atomic = True
    order_of_ptx(s.opcode, site)
    if site.order:
        text.c.fn.needs_clocks.append(s.opcode)
    leaves = [text.leaf(v) for v in values]
    result = text.slot(s.operands[0]) if returns and s.operands[0] != "_" else -1
    site.observes = result >= 0

    def step(R: Regs, g: Group) -> None:
        if packed is not None:
            raw = np.ascontiguousarray(to_lanes(R[values[0]], leaves[0], g.lanes))
            data = raw.view(leaf.dtype).reshape(g.lanes, 2)
        else:
            cols = [_as(to_lanes(R[v], t, g.lanes), t, unit) for v, t in zip(values, leaves)]
            data = np.stack(cols, axis=-1) if leaf.shape else cols[0]
        old = atomic_lanes(site, g, R[slot] + add if add else R[slot], data, kind, result >= 0)  # type: ignore[operator]
        if result >= 0:
            raw_old = np.ascontiguousarray(to_lanes(old, leaf, g.lanes))
            R[result] = raw_old.view(text.leaf(result).dtype).reshape(g.lanes)

    text.emit(s, step)
    if result >= 0 and text.c.loops:
        _may_poll(text, site, slot, result)


def _may_poll(text: Text, site: Site, slot: int, result: int) -> None:
    """Emit a scheduling point after a read in a loop, which may wait for another thread."""
    text.c.fn.needs_warp.append("a polled load")
    text.c.emit_blocking(text.op, spin_point(text.c.info(text.op), polls(site, slot, result)))


TABLE: Sequence[tuple[str, Handler]] = (
    (r"ld(\.\w+|\.L[12]::\w+|::\w+)*", _load),
    (r"st(\.(?!async)\w+|\.L[12]::\w+|::\w+)*", _store),
    (r"(red|atom)\.(?!async|.*cas).*", _atomic),
)

__all__ = ["TABLE", "_FLOAT"]
