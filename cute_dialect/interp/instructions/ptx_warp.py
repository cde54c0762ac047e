"""Inline PTX: vote.sync and shfl.sync."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.instructions.ptx_text import Statement, Text
from cute_dialect.interp.instructions.warp import shuffle, vote
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Regs, to_lanes

Handler = Callable[[Text, Statement], None]
BIT = int_leaf(1)


def _vote(text: Text, s: Statement) -> None:
    kind = s.opcode.split(".")[2]
    d, mask = text.slot(s.operands[0]), text.slot(s.operands[2])
    negated, name = s.operands[1].startswith("!"), s.operands[1].removeprefix("!")
    pred = text.slot(name)
    leaf = text.leaf(d)
    text.c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        p = to_lanes(R[pred], BIT, g.lanes).astype(np.bool_)
        found = vote(g, R[mask], ~p if negated else p, BIT, kind, s.opcode)
        R[d] = found.astype(leaf.dtype)

    text.emit(s, step)


def _shuffle(text: Text, s: Statement) -> None:
    kind = s.opcode.split(".")[2]
    written, _, flag = (part.strip() for part in s.operands[0].partition("|"))
    d, in_range = text.slot(written), text.slot(flag) if flag else -1
    value, offset, clamp, mask = map(text.slot, s.operands[1:])
    leaf, to = text.leaf(value), text.leaf(d)
    text.c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        found, inside = shuffle(g, R[mask], R[value], R[offset], R[clamp], kind, leaf, s.opcode)
        R[d] = found.view(to.dtype)
        if in_range >= 0:
            R[in_range] = inside

    text.emit(s, step)


TABLE: Sequence[tuple[str, Handler]] = (
    (re.escape("vote.sync.") + r"(?:(?:all|any|uni)\.pred|ballot\.b32)", _vote),
    (re.escape("shfl.sync.") + r"(?:up|down|bfly|idx)\.b32", _shuffle),
)

__all__ = ["TABLE"]
