"""Inline PTX: moves, cache policies, mma.sync and trap."""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.instructions import gpu
from cute_dialect.interp.instructions.matrix import Mma, run_mma, whole_warps
from cute_dialect.interp.instructions.ptx_rows import bits, put, typed
from cute_dialect.interp.instructions.ptx_text import Statement, Text
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import Array, Regs, to_lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

Handler = Callable[[Text, Statement], None]


def _mov(text: Text, s: Statement) -> None:
    m = re.search(r"\.[busf](\d+)$|\.pred$", s.opcode)
    width = int(m[1]) if m is not None and m[1] else 32
    if s.operands[1].startswith("%") and not text.declares(s.operands[1]):
        d = text.slot(s.operands[0])
        leaf = text.leaf(d)
        name = s.operands[1][1:].removeprefix("cluster_").strip()
        name = {"ctarank": "cluster.ctarank", "nctarank": "cluster.nctarank"}.get(name, name)
        if name in ("laneid", "warpid") or name.startswith("lanemask"):
            text.c.fn.collective = True
        put(text, s, d, lambda R, g: to_lanes(np.asarray(g.sreg(name)).astype(leaf.dtype)[()], leaf, g.lanes))
        return
    source, target = s.parts(1), s.parts(0)
    if len(source) == len(target) == 1:
        d, a = text.slot(target[0]), text.slot(source[0])
        leaf = text.leaf(d)
        put(text, s, d, lambda R, g: typed(bits(text, R, g, a, width), leaf))
        return
    if len(source) == 1:  # Unpack, low part first.
        a = text.slot(source[0])
        part = width // len(target)
        for i, name in enumerate(target):
            if name == "_":
                continue
            d = text.slot(name)
            leaf = text.leaf(d)

            def cut(R: Regs, g: Group, i: int = i, leaf: Leaf = leaf) -> Array:
                raw = np.ascontiguousarray(bits(text, R, g, a, width))
                return typed(raw.view(np.dtype(f"u{part // 8}")).reshape(g.lanes, -1)[:, i], leaf)

            put(text, s, d, cut)
        return
    d = text.slot(target[0])
    parts = [text.slot(p) for p in source]
    leaf = text.leaf(d)
    part = width // len(parts)

    def pack(R: Regs, g: Group) -> Array:
        cols = [bits(text, R, g, p, part) for p in parts]
        raw = np.ascontiguousarray(np.stack(cols, axis=-1)).view(np.dtype(f"u{width // 8}"))
        return typed(raw.reshape(g.lanes), leaf)

    put(text, s, d, pack)


def _policy(text: Text, s: Statement) -> None:
    d = text.slot(s.operands[0])
    put(text, s, d, lambda R, g: np.zeros(g.lanes, np.int64))


_ELEMENT_BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "e4m3": 8, "e5m2": 8,
}  # fmt: skip


def _mma(text: Text, s: Statement) -> None:
    m = re.fullmatch(
        r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col(\.kind::\w+)?(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\.(\w+)",
        s.opcode,
    )
    if m is None or m[7] not in _ELEMENT_BITS:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    mma = Mma(int(m[1]), int(m[2]), int(m[3]), m[7], m[8], m[5] is not None)
    d, a, b, acc = ([text.slot(p) for p in s.parts(i)] for i in range(4))
    leaves = tuple([[text.leaf(x) for x in part] for part in (a, b, acc)])
    outs = [text.leaf(x) for x in d]
    text.c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        whole_warps(g, "mma.sync")
        got = run_mma(mma, g, [R[x] for x in a], [R[x] for x in b], [R[x] for x in acc], leaves, outs)  # type: ignore[arg-type]
        for slot, v in zip(d, got):
            R[slot] = v

    text.emit(s, step)


def _trap(text: Text, s: Statement) -> None:
    gpu.OPS["llvm.intr.trap"](text.c, text.op)


TABLE: Sequence[tuple[str, Handler]] = (
    (r"mov\..*", _mov),
    (r"createpolicy.*", _policy),
    (r"mma\.sync.*", _mma),
    (r"trap", _trap),
)

__all__ = ["TABLE"]
