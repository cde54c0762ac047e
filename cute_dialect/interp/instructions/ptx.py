"""Inline PTX: `nvvm.inline_ptx` and `llvm.inline_asm`, statement by statement.

A text is split into statements. Each must be an instruction in `_TABLE`, with operands `$i`, registers declared in the
text, immediates and special registers. Anything else is an error that names it; nothing is skipped. An instruction
shares its implementation with the nvvm op of the same name, if there is one.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.control_flow import compile_nothing, segments
from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.compiler.undefined import emit_hidden
from cute_dialect.interp.errors import InterpError, attr_of
from cute_dialect.interp.instructions import (
    async_copies,
    bulk_copies,
    cluster_launch,
    conversions,
    gpu,
    matrix,
    memory,
    ptx_scalars,
    tcgen05,
    warp,
    wgmma,
)
from cute_dialect.interp.instructions.field_ops import check_statement, over_row
from cute_dialect.interp.instructions.ptx_text import (
    Handler,
    Row,
    Rows,
    Statement,
    Text,
    bits,
    handler_of,
    not_modelled,
    parse,
    put,
    typed,
)
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import Array, Regs, to_lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation


def compile_text(text: Text) -> None:
    """Compile all statements of a text."""
    if _wait_loop(text):
        return
    if text.c.program.tracks and all(_only_computes(s) for s in text.statements):
        ins, outs = text.operands[text.outputs :], text.operands[: text.outputs]
        emit_hidden(text.c, text.op, ins, outs, lambda: _compile_statements(text), text.read_bits)
        return
    _compile_statements(text)


def _compile_statements(text: Text) -> None:
    for s in text.statements:
        handler = _handler(s.opcode, len(s.sources))
        if handler is None:
            raise not_modelled(s.opcode)
        if text.c.program.algebra is not None:
            check_statement(s)
            row = None if _table_handler(s.opcode) is not None else _ROWS.find(s.opcode, len(s.sources))
            if row is not None:
                handler = handler_of(over_row(text.c.program.algebra, row, s.opcode, text.op))
        handler(text, s)


def _table_handler(opcode: str) -> Handler | None:
    return next((handler for pattern, handler in _TABLE if pattern.fullmatch(opcode)), None)


@lru_cache(maxsize=1024)
def _handler(opcode: str, operands: int) -> Handler | None:
    handler = _table_handler(opcode)
    if handler is not None:
        return handler
    row = _ROWS.find(opcode, operands)
    return None if row is None else handler_of(row)


def _only_computes(s: Statement) -> bool:
    """Return True if a statement has no guard and no effect other than its result."""
    if s.guard:
        return False
    return _ROWS.find(s.opcode) is not None or any(re.fullmatch(pattern, s.opcode) for pattern in _COMPUTING)


def only_computes(code: str) -> bool:
    """Return True if no statement of a text has an effect other than its result: no memory, order or branch."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.S).replace("\\n", " ").replace("\\t", " ")
    for one in re.split(r"[;{}]\s*(?![^\[]*\])", re.sub(r"\{[^;{}]*\}", "R", plain)):
        statement = re.sub(r"^@!?\S+\s+", "", one.strip())
        if (
            statement
            and not statement.startswith(".reg")
            and not _only_computes(Statement(statement.split()[0], (), ""))
        ):
            return False
    return True


def _wait_loop(text: Text) -> bool:
    """Compile a loop around one mbarrier.try_wait or test_wait. Returns False for any other text.

    If a failure branches back to the try, it waits until the phase completes; otherwise it may continue without.
    """
    names = [s.opcode for s in text.statements]
    tries = [s for s in text.statements if s.opcode.startswith(("mbarrier.try_wait", "mbarrier.test_wait"))]
    others = [n for n in names if not n.startswith(("mbarrier.try_wait", "mbarrier.test_wait", "bra"))]
    if len(tries) != 1 or others or not any(n.startswith("bra") for n in names):
        return False
    repeats = _repeats(text, tries[0])
    async_copies.wait(text, tries[0], loops=repeats, used=repeats)  # Only branches read the result.
    return True


def _repeats(text: Text, wait: Statement) -> bool:
    """Return True if the branches after a wait lead back to it when it fails."""
    flag = wait.operands[0]
    seen: set[int] = set()
    at = text.statements.index(wait) + 1
    while at < len(text.statements) and at not in seen:
        seen.add(at)
        s = text.statements[at]
        if s is wait:
            return True
        taken = not s.guard or s.guard == f"@!{flag}"
        if taken and s.operands[-1] not in text.labels:
            raise InterpError("unsupported", f"{s.opcode}: label {s.operands[-1]} is not in this text")
        at = text.labels[s.operands[-1]] if taken else at + 1
    return False


def _inline_ptx(c: FnCompiler, op: Operation) -> None:
    sizes = segments(op, 3)
    slots = [c.use(v) for v in op.operands]
    if sizes[1]:
        raise InterpError("unsupported", "read-write operands of nvvm.inline_ptx are not supported")
    predicate = slots[-1] if sizes[2] else -1
    outs = [c.define(r) for r in op.results]
    code = getattr(attr_of(op, "ptxCode"), "data", "")
    compile_text(parse(c, op, code, [*outs, *slots[: sizes[0]]], len(outs), predicate))


def _inline_asm(c: FnCompiler, op: Operation) -> None:
    code = getattr(attr_of(op, "asm_string"), "data", "")
    constraints = [p for p in getattr(attr_of(op, "constraints"), "data", "").split(",") if p]
    outs = list(c.flat_defines(op.results))
    kinds = [p for p in constraints if not p.startswith("~")]
    written = [p for p in kinds if p.startswith("=")]
    if len(written) != len(outs):
        raise InterpError("unsupported", f"the asm has {len(outs)} results but {len(written)} output constraints")
    inputs = [c.use(v) for v in op.operands]
    read = kinds[len(written) :]
    if len(read) != len(inputs):
        raise InterpError("unsupported", f"the asm has {len(inputs)} operands but {len(read)} input constraints")
    tied = [(int(p), slot) for p, slot in zip(read, inputs) if p.isdigit()]
    if tied:

        def moves(R: Regs, g: Group) -> None:
            for d, s in tied:
                R[outs[d]] = R[s]

        c.emit(op, moves, pure=False, track=False)
    if not code.strip():
        compile_nothing(c, op)
        return
    compile_text(parse(c, op, code, [*outs, *inputs], len(outs), -1, {outs[d]: s for d, s in tied}))


# -- instructions without an op of their own --------------------------------------------------------------------------


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


def _trap(text: Text, s: Statement) -> None:
    gpu.OPS["llvm.intr.trap"](text.c, text.op)


_MOVES: Sequence[tuple[str, Handler]] = ((r"mov\..*", _mov), (r"createpolicy.*", _policy), (r"trap", _trap))


SCALAR_ROWS: tuple[Row, ...] = (*ptx_scalars.INTEGER_ROWS, *ptx_scalars.FLOAT_ROWS, *conversions.ROWS)
_TABLE: tuple[tuple[re.Pattern[str], Handler], ...] = tuple(
    (re.compile(pattern), handler)
    for pattern, handler in (
        *async_copies.TABLE,
        *wgmma.TABLE,
        *tcgen05.TABLE,
        *bulk_copies.TABLE,
        *cluster_launch.TABLE,
        *gpu.TABLE,
        *memory.TABLE,
        *warp.TABLE,
        *matrix.TABLE,
        *_MOVES,
    )
)
_ROWS = Rows(SCALAR_ROWS)
_COMPUTING = (*dict(_MOVES), r"mma\.sync.*")
"""Patterns of instructions that only compute, other than the rows."""

OPS: dict[str, Builder] = {"nvvm.inline_ptx": _inline_ptx, "llvm.inline_asm": _inline_asm}
