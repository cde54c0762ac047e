"""`dp4a` and `dp2a`: dot products of packed integers in one thread (PTX ISA 9.0, 9.7.1.24 and 9.7.1.25)."""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import attr_of
from cute_dialect.interp.exec.compiler import Builder, FnCompiler
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.instructions.data import enum_word
from cute_dialect.interp.values import Regs, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation


def _dot(c: FnCompiler, op: Operation) -> None:
    a, b, acc = (c.use(v) for v in op.operands)
    d = c.define(op.results[0])
    leaves = [c.leaf_of(s) for s in (a, b, acc)]
    signed = [enum_word(attr_of(op, x)) == "signed" for x in ("a_type", "b_type")]
    n = leaves[0].count
    high = getattr(getattr(attr_of(op, "b_hi"), "value", None), "data", 0) if n == 2 else 0

    def step(R: Regs, g: Group) -> None:
        parts = []
        for slot, leaf, sign in zip((a, b), leaves, signed):
            v = np.ascontiguousarray(to_lanes(R[slot], leaf, g.lanes))
            parts.append((v if sign else v.view(leaf.unsigned)).astype(np.int64))
        x, y = parts
        y = y[:, 2:] if high else y[:, :n]
        total = (x * y).sum(-1) + to_lanes(R[acc], leaves[2], g.lanes).astype(np.int64)
        R[d] = total.astype(np.uint64).astype(np.uint32).view(np.int32)

    c.emit(op, step)


OPS: dict[str, Builder] = {"nvvm.dot.accumulate.4way": _dot, "nvvm.dot.accumulate.2way": _dot}

__all__ = ["OPS"]
