"""Inline PTX on 8x8 matrices in registers: movmatrix."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.instructions.matrix import GID, TIG, whole_warps
from cute_dialect.interp.instructions.ptx_text import Statement, Text
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Regs, to_lanes

Handler = Callable[[Text, Statement], None]


def _movmatrix(text: Text, s: Statement) -> None:
    """Transpose a matrix.

    Lane ``t`` holds elements ``2(t mod 4)`` and the next of row ``t div 4``, before and after the transposition.
    """
    if text.guard(s)[0] >= 0:
        raise InterpError("unsupported", "movmatrix cannot have a predicate, because the whole warp executes it")
    d, a = (text.slot(o) for o in s.operands)
    leaf = int_leaf(32)
    text.c.fn.collective = True

    def step(R: Regs, g: Group) -> None:
        if g.mask.n == 0:
            R[d] = np.zeros(g.lanes, np.int32)
            return
        whole_warps(g, "movmatrix")
        warps = g.lanes // 32
        pair = np.ascontiguousarray(to_lanes(R[a], leaf, g.lanes)).view(np.int16).reshape(warps, 32, 2)
        matrix = np.zeros((warps, 8, 8), np.int16)
        matrix[:, GID, 2 * TIG] = pair[:, :, 0]
        matrix[:, GID, 2 * TIG + 1] = pair[:, :, 1]
        out = np.stack([matrix[:, 2 * TIG, GID], matrix[:, 2 * TIG + 1, GID]], axis=-1)
        R[d] = np.ascontiguousarray(out).view(np.int32).reshape(g.lanes)

    text.emit(s, step)


TABLE: Sequence[tuple[str, Handler]] = ((r"movmatrix\.sync\.aligned\.m8n8\.trans\.b16", _movmatrix),)

__all__ = ["TABLE"]
