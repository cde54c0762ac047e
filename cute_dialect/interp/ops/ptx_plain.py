"""PTX arithmetic, moves, conversions and warp instructions that appear in inline text."""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.group import Group
from cute_dialect.interp.ops import floats, gpu
from cute_dialect.interp.ops.matrix import Mma, run_mma, whole_warps
from cute_dialect.interp.ops.ptx_text import Statement, Text
from cute_dialect.interp.types import Leaf, float_leaf, int_leaf
from cute_dialect.interp.values import Array, Regs, merge, to_lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

Handler = Callable[[Text, Statement], None]


def _put(text: Text, s: Statement, slot: int, compute: Callable[[Regs, Group], Array]) -> None:
    """Define a register; under a guard the other lanes keep what it was."""
    leaf = text.leaf(slot)
    guarded = text.guard(s)[0] >= 0

    def step(R: Regs, g: Group) -> None:
        v = compute(R, g)
        R[slot] = merge(g.mask, v, R[slot], leaf) if guarded else v

    text.emit(s, step)


def bits(text: Text, R: Regs, g: Group, slot: int, width: int) -> Array:
    """A register as unsigned integers of `width` bits; a float literal as the bits of that float."""
    leaf = text.leaf(slot)
    v = to_lanes(R[slot], leaf, g.lanes)
    if leaf.kind == "f" and leaf.width == 64 and width < 64:
        v = v.astype(np.float32 if width == 32 else np.float16)
    raw = np.ascontiguousarray(v)
    if raw.dtype == np.bool_:
        return raw.astype(np.dtype(f"u{width // 8}"))
    return raw.view(np.dtype(f"u{raw.dtype.itemsize}")).astype(np.dtype(f"u{width // 8}"))


def _typed(raw: Array, leaf: Leaf) -> Array:
    """Unsigned integers as the register type."""
    if leaf.width == 1 and leaf.kind == "i":
        return raw.astype(np.bool_)
    size = leaf.dtype.itemsize
    return np.ascontiguousarray(raw.astype(np.dtype(f"u{size}"))).view(leaf.dtype)


def _mov(text: Text, s: Statement) -> None:
    m = re.search(r"\.[busf](\d+)$|\.pred$", s.opcode)
    width = int(m[1]) if m is not None and m[1] else 32
    if s.operands[1].startswith("%"):
        d = text.slot(s.operands[0])
        leaf = text.leaf(d)
        name = s.operands[1][1:].removeprefix("cluster_").strip()
        name = {"ctarank": "cluster.ctarank", "nctarank": "cluster.nctarank"}.get(name, name)
        if name in ("laneid", "warpid") or name.startswith("lanemask"):
            text.c.fn.collective = True
        _put(text, s, d, lambda R, g: to_lanes(np.asarray(g.sreg(name)).astype(leaf.dtype)[()], leaf, g.lanes))
        return
    source, target = s.parts(1), s.parts(0)
    if len(source) == len(target) == 1:
        d, a = text.slot(target[0]), text.slot(source[0])
        leaf = text.leaf(d)
        _put(text, s, d, lambda R, g: _typed(bits(text, R, g, a, width), leaf))
        return
    if len(source) == 1:  # unpack, low part first
        a = text.slot(source[0])
        part = width // len(target)
        for i, name in enumerate(target):
            if name == "_":
                continue
            d = text.slot(name)
            leaf = text.leaf(d)

            def cut(R: Regs, g: Group, i: int = i, leaf: Leaf = leaf) -> Array:
                raw = np.ascontiguousarray(bits(text, R, g, a, width))
                return _typed(raw.view(np.dtype(f"u{part // 8}")).reshape(g.lanes, -1)[:, i], leaf)

            _put(text, s, d, cut)
        return
    d = text.slot(target[0])
    parts = [text.slot(p) for p in source]
    leaf = text.leaf(d)
    part = width // len(parts)

    def pack(R: Regs, g: Group) -> Array:
        cols = [bits(text, R, g, p, part) for p in parts]
        raw = np.ascontiguousarray(np.stack(cols, axis=-1)).view(np.dtype(f"u{width // 8}"))
        return _typed(raw.reshape(g.lanes), leaf)

    _put(text, s, d, pack)


_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _operand(text: Text, R: Regs, g: Group, slot: int, kind: str, width: int) -> Array:
    raw = bits(text, R, g, slot, width)
    if kind == "f":
        return raw.view(np.dtype(f"f{width // 8}"))
    return raw.view(np.dtype(f"i{width // 8}")) if kind == "s" else raw


def _setp(text: Text, s: Statement) -> None:
    m = re.fullmatch(r"setp\.(eq|ne|lt|le|gt|ge)\.([busf])(\d+)", s.opcode)
    if m is None:
        raise InterpError("unsupported", f"expected a known setp, got {s.opcode}")
    d, a, b = (text.slot(o) for o in s.operands)
    f, kind, width = _COMPARE[m[1]], m[2], int(m[3])
    _put(text, s, d, lambda R, g: f(*(_operand(text, R, g, x, kind, width) for x in (a, b))))


def _selp(text: Text, s: Statement) -> None:
    width = int(re.sub(r"\D", "", s.opcode.rpartition(".")[2]) or 32)
    d, a, b, p = (text.slot(o) for o in s.operands)
    leaf = text.leaf(d)
    one = int_leaf(1)

    def compute(R: Regs, g: Group) -> Array:
        x, y = bits(text, R, g, a, width), bits(text, R, g, b, width)
        return _typed(np.where(to_lanes(R[p], one, g.lanes), x, y), leaf)

    _put(text, s, d, compute)


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift,
}  # fmt: skip


def _binary(text: Text, s: Statement) -> None:
    m = re.fullmatch(r"(\w+)(?:\.(?:rn|ftz|lo|sat))*\.([busf])(\d+)", s.opcode)
    if m is None:
        raise InterpError("unsupported", f"expected a known PTX instruction, got {s.opcode}")
    d, a, b = (text.slot(o) for o in s.operands)
    f, kind, width = _BINARY[m[1]], m[2], int(m[3])
    leaf = text.leaf(d)

    def compute(R: Regs, g: Group) -> Array:
        r = f(_operand(text, R, g, a, kind, width), _operand(text, R, g, b, kind, width))
        return _typed(np.ascontiguousarray(r).view(np.dtype(f"u{width // 8}")), leaf)

    _put(text, s, d, compute)


_PACKED = {"f16x2": "f16", "bf16x2": "bf16", "f32": "f32", "f16": "f16", "bf16": "bf16", "f64": "f64"}


def _approx(text: Text, s: Statement) -> None:
    """ex2, lg2, rcp, rsqrt, sqrt, tanh, sin, cos: computed in f32 (f64 for f64) and rounded."""
    name, _, rest = s.opcode.partition(".")
    kind = rest.rpartition(".")[2]
    if kind not in _PACKED or name not in floats.NVVM_UNARY:
        raise InterpError("unsupported", f"expected a known PTX instruction, got {s.opcode}")
    element = float_leaf(_PACKED[kind])
    f = floats.NVVM_UNARY[name]
    d, a = (text.slot(o) for o in s.operands)
    leaf = text.leaf(d)
    width = element.width * (2 if kind.endswith("x2") else 1)

    def compute(R: Regs, g: Group) -> Array:
        x = np.ascontiguousarray(bits(text, R, g, a, width)).view(element.dtype)
        y = f(x.astype(np.float32) if element.width < 64 else x).astype(element.dtype)
        return _typed(np.ascontiguousarray(y).view(np.dtype(f"u{width // 8}")), leaf)

    _put(text, s, d, compute)


def _policy(text: Text, s: Statement) -> None:
    d = text.slot(s.operands[0])
    _put(text, s, d, lambda R, g: np.zeros(g.lanes, np.int64))


_ELEMENT_BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "e4m3": 8, "e5m2": 8,
}  # fmt: skip


def _mma(text: Text, s: Statement) -> None:
    m = re.fullmatch(
        r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.row\.col(\.kind::\w+)?(\.satfinite)?\.(\w+)\.(\w+)\.(\w+)\.(\w+)",
        s.opcode,
    )
    if m is None or m[7] not in _ELEMENT_BITS:
        raise InterpError("unsupported", f"expected a known mma.sync, got {s.opcode}")
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
    (r"setp\..*", _setp),
    (r"selp\..*", _selp),
    (r"createpolicy.*", _policy),
    (r"mma\.sync.*", _mma),
    (r"(ex2|lg2|rcp|rsqrt|sqrt|tanh|sin|cos)\..*", _approx),
    (r"(add|sub|mul|min|max|and|or|xor|shl|shr)\..*", _binary),
    (r"trap", _trap),
)

__all__ = ["TABLE", "bits"]
