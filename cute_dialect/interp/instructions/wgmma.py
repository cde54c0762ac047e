"""wgmma instructions: nvvm ops and inline PTX. `machine.wgmma` computes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.errors import InterpError, attr_of
from cute_dialect.interp.field import check_width
from cute_dialect.interp.instructions.field_ops import refusal
from cute_dialect.interp.instructions.matrix import shape_of
from cute_dialect.interp.instructions.moves import enum_word
from cute_dialect.interp.instructions.ptx_text import Handler, Statement, Text, number
from cute_dialect.interp.machine import wgmma
from cute_dialect.interp.machine.group import Group, Wait
from cute_dialect.interp.machine.wgmma import Shape
from cute_dialect.interp.types import float_leaf
from cute_dialect.interp.values import Regs, active_uniform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation

Gen = Generator[Wait, None, None]


def _mma_async(c: FnCompiler, op: Operation) -> None:
    acc = list(c.uses(op.operands[0]))
    a, b = c.use(op.operands[1]), c.use(op.operands[2])
    dims = shape_of(op)
    d = enum_word(attr_of(op, "typeD"))
    if dims["m"] != 64 or d not in ("f32", "f16", "s32"):
        raise InterpError("unsupported", f"wgmma m{dims['m']} {d} is not supported; use m64 with f32, f16 or s32")
    shape = wgmma.Shape(
        dims["n"],
        dims["k"],
        d,
        enum_word(attr_of(op, "typeA")),
        enum_word(attr_of(op, "typeB")),
        "k" if enum_word(attr_of(op, "layoutA")) == "row" else "mn",
        "k" if enum_word(attr_of(op, "layoutB")) == "col" else "mn",
        -1 if enum_word(attr_of(op, "scaleA")) == "neg" else 1,
        -1 if enum_word(attr_of(op, "scaleB")) == "neg" else 1,
        enum_word(attr_of(op, "satfinite")) == "satfinite",
    )
    scale_d = enum_word(attr_of(op, "scaleD")) != "zero"
    outs = list(c.defines(op.results[0]))
    emit_mma(c, op, shape, a, b, acc, outs, scale_d)


def emit_mma(
    c: FnCompiler,
    op: Operation,
    shape: wgmma.Shape,
    a: int | list[int],
    b: int,
    acc: list[int],
    outs: list[int],
    scale_d: bool | int,
    nonzero: bool = True,
    metadata: int = -1,
) -> None:
    """Emit one wgmma over slots.

    Args:
        scale_d: A constant, or the slot of a flag that enables the accumulator if it is `nonzero`.
        metadata: Slot of the metadata of a sparse A, -1 for a dense one.
    """
    c.fn.needs_warp.append("a wgmma")
    info = c.info(op)
    leaf = c.leaf_of(outs[0])
    if c.program.algebra is not None and shape.d != "s32":
        if shape.selector >= 0:
            raise refusal("wgmma.mma_async.sp")
        for kind in (shape.a, shape.b, shape.d):
            check_width(c.program.algebra, float_leaf(wgmma.ELEMENTS[kind]))
        shape = shape._replace(algebra=c.program.algebra)
    if len(acc) != shape.registers or len(outs) != shape.registers:
        raise InterpError("unsupported", f"wgmma needs {shape.registers} accumulator registers, got {len(acc)}")

    def step(R: Regs, g: Group) -> None:
        if g.mask.n == 0:
            return
        flag = scale_d
        if not isinstance(flag, bool):
            flag = bool(active_uniform(R[flag], g.mask, "scale-d")) is nonzero
        second = active_uniform(R[b], g.mask, "the descriptor of B")
        first = [R[s] for s in a] if isinstance(a, list) else active_uniform(R[a], g.mask, "the descriptor of A")
        e = R[metadata] if metadata >= 0 else 0
        got = wgmma.issue(g, shape, first, second, [R[s] for s in acc], flag, leaf, info, e)
        for s, v in zip(outs, got):
            R[s] = v

    c.emit(op, step, pure=False, track=False)


def _emit(c: FnCompiler, op: Operation, run: Callable[[Group], None]) -> None:
    """Emit `wgmma.fence` or `wgmma.commit_group`, which are computed by ``run``."""
    c.fn.needs_warp.append("a wgmma")

    def step(R: Regs, g: Group) -> None:
        if g.mask.n:
            run(g)

    c.emit(op, step, pure=False)


def emit_wait(c: FnCompiler, op: Operation, keep: int) -> None:
    """Emit wgmma.wait_group, which waits until all but the latest `keep` commit groups are complete."""
    c.fn.needs_warp.append("a wgmma")
    info = c.info(op)

    def gen(R: Regs, g: Group) -> Gen:
        if g.mask.n == 0:
            return
        group, target = wgmma.wait_target(g, keep)

        def ready() -> bool:
            return all(group.instructions[n].ready for n in range(group.computed, target))

        if not ready():
            yield Wait(ready, info, f"waits for a wgmma that other warps of warpgroup {group.number} did not issue")
        wgmma.finish_wait(g, group, target)

    c.emit_blocking(op, gen, info)


def _wait(c: FnCompiler, op: Operation) -> None:
    emit_wait(c, op, getattr(getattr(attr_of(op, "group"), "value", None), "data", 0))


OPS: dict[str, Builder] = {
    "nvvm.wgmma.mma_async": _mma_async,
    "nvvm.wgmma.fence.aligned": lambda c, op: _emit(c, op, wgmma.fence),
    "nvvm.wgmma.commit.group.sync.aligned": lambda c, op: _emit(c, op, wgmma.commit),
    "nvvm.wgmma.wait.group.sync.aligned": _wait,
}


# -- inline PTX -------------------------------------------------------------------------------------------------------

_WGMMA = re.compile(r"wgmma\.mma_async(\.sp)?\.sync\.aligned\.m64n(\d+)k(\d+)(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)")


def _ptx_mma_async(text: Text, s: Statement) -> None:
    m = _WGMMA.fullmatch(s.opcode)
    is_sparse = m is not None and m[1] is not None
    if m is None or len(s.operands) < (6 if is_sparse else 4):
        raise InterpError("unsupported", f"{s.opcode} is not supported")
    outs = [text.slot(p) for p in s.parts(0)]
    in_registers = s.operands[1].startswith("{")
    a: int | list[int] = [text.slot(p) for p in s.parts(1)] if in_registers else text.slot(s.operands[1])
    b = text.slot(s.operands[2])
    metadata, selector, left = -1, -1, s.operands[3:]
    if is_sparse:
        metadata, constant, left = text.slot(s.operands[3]), number(s.operands[4]), s.operands[5:]
        if not isinstance(constant, int):
            raise InterpError("unsupported", f"the sparsity selector must be a constant, got {s.operands[4]}")
        selector = constant
    flag = left[0]
    numbers = [int(number(o) or 0) for o in left[1:]] if m[5] != "s32" else []
    scales = [*numbers[:2], 1, 1]
    majors = [*([0] if in_registers else []), *numbers[2:], 0, 0]
    shape = Shape(
        int(m[2]),
        int(m[3]),
        m[5],
        m[6],
        m[7],
        "mn" if majors[0] == 1 else "k",
        "mn" if majors[1] == 1 else "k",
        scales[0],
        scales[1],
        m[4] is not None,
        selector,
    )
    literal = number(flag)
    scale: bool | int = bool(literal) if literal is not None else text.slot(flag.lstrip("!"))
    emit_mma(text.c, text.op, shape, a, b, outs, outs, scale, not flag.startswith("!"), metadata)


TABLE: Sequence[tuple[str, Handler]] = (
    (r"wgmma\.mma_async.*", _ptx_mma_async),
    (r"wgmma\.fence.*", lambda text, s: _emit(text.c, text.op, wgmma.fence)),
    (r"wgmma\.commit_group.*", lambda text, s: _emit(text.c, text.op, wgmma.commit)),
    (r"wgmma\.wait_group.*", lambda text, s: emit_wait(text.c, text.op, int(number(s.operands[0]) or 0))),
)
