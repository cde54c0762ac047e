"""Inline PTX for MMA with a sparse A: mma.sp::ordered_metadata and wgmma.mma_async.sp."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.exec.wgmma import Shape
from cute_dialect.interp.instructions import sparse, wgmma
from cute_dialect.interp.instructions.ptx_text import Statement, Text, number

_MMA_SP = re.compile(
    r"mma\.sp::ordered_metadata\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\.(\w+)"
)
_WGMMA_SP = re.compile(r"wgmma\.mma_async\.sp\.sync\.aligned\.m64n(\d+)k(\d+)(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)")


def _mma_sp(text: Text, s: Statement) -> None:
    m = _MMA_SP.fullmatch(s.opcode)
    if m is None or len(s.operands) != 6:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    d, a, b, c = ([text.slot(p) for p in s.parts(i)] for i in range(4))
    shape = (int(m[1]), int(m[2]), int(m[3]))
    row = sparse.row_of(shape, m[6], m[7], m[4] is not None, m[5])
    used = sparse.Registers(a, b, c, text.slot(s.operands[4]), text.slot(s.operands[5]), d)
    text.emit(s, sparse.compile_mma(text.c, row, used))


def _wgmma_sp(text: Text, s: Statement) -> None:
    m = _WGMMA_SP.fullmatch(s.opcode)
    if m is None or len(s.operands) < 6:
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    outs = [text.slot(p) for p in s.parts(0)]
    in_registers = s.operands[1].startswith("{")
    a: int | list[int] = [text.slot(p) for p in s.parts(1)] if in_registers else text.slot(s.operands[1])
    selector, flag = number(s.operands[4]), s.operands[5]
    if not isinstance(selector, int):
        raise InterpError("unsupported", f"the sparsity selector must be a constant, got {s.operands[4]}")
    rest = [int(number(o) or 0) for o in s.operands[6:]]
    scales = [1, 1] if m[4] == "s32" else rest[:2]
    majors = [*([0] if in_registers else []), *(rest[2:] if m[4] != "s32" else []), 0, 0]
    shape = Shape(
        int(m[1]),
        int(m[2]),
        m[4],
        m[5],
        m[6],
        "mn" if majors[0] else "k",
        "mn" if majors[1] else "k",
        scales[0],
        scales[1],
        m[3] is not None,
        selector,
    )
    literal = number(flag)
    scale: bool | int = bool(literal) if literal is not None else text.slot(flag.lstrip("!"))
    wgmma.emit_mma(
        text.c,
        text.op,
        shape,
        a,
        text.slot(s.operands[2]),
        outs,
        outs,
        scale,
        not flag.startswith("!"),
        text.slot(s.operands[3]),
    )


TABLE: Sequence[tuple[str, Callable[[Text, Statement], None]]] = (
    (r"mma\.sp.*", _mma_sp),
    (r"wgmma\.mma_async\.sp.*", _wgmma_sp),
)

__all__ = ["TABLE"]
