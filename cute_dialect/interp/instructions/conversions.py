"""Packed and narrow float conversions of nvvm, as the equivalent PTX `cvt` (see `ptx_convert`)."""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import InterpError, attr_of
from cute_dialect.interp.exec.compiler import Builder, FnCompiler
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.instructions.data import bits_of, enum_word, from_bits
from cute_dialect.interp.instructions.ptx_convert import ROWS
from cute_dialect.interp.instructions.ptx_rows import KINDS, Words, pattern
from cute_dialect.interp.values import Array, Regs, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

_PACKED = {"f8E4M3FN": "e4m3x2", "f8E5M2": "e5m2x2"}


def emit_cvt(c: FnCompiler, op: Operation, opcode: str) -> None:
    """Emit a `cvt` of the op's operands, which are floats or packed floats in any register type.

    Raises InterpError if sm_90 has no such instruction.
    """
    row = next((r for r in ROWS if re.fullmatch(pattern(r.syntax), opcode)), None)
    if row is None:
        raise InterpError("unsupported", f"PTX instruction {opcode} is not supported")
    words = Words(opcode)
    (result,), sources = row.kinds(words)
    slots = [c.use(v) for v in op.operands]
    if len(slots) != len(sources):
        raise InterpError("unsupported", f"{opcode} takes {len(sources)} operands, got {len(slots)}")
    d = c.define(op.results[0])
    out = c.leaf_of(d)
    ins = [(s, c.leaf_of(s), KINDS[k]) for s, k in zip(slots, sources)]

    def step(R: Regs, g: Group) -> None:
        args: list[Array] = []
        uniform = True
        for s, leaf, kind in ins:
            v = R[s]
            _ = v == v  # Raises for poison.
            uniform = uniform and (not isinstance(v, np.ndarray) or v.ndim == len(leaf.shape))
            raw = bits_of(to_lanes(v, leaf, g.lanes), leaf, g.lanes).view(kind.dtype)
            args.append(raw if kind.elements == 2 else raw[:, 0])
        with np.errstate(all="ignore"):
            got = row.compute(words, *args)
        r = np.ascontiguousarray(np.asarray(got).astype(KINDS[result].dtype)).reshape(g.lanes, -1)
        R[d] = from_bits(r.view(np.uint8)[:1] if uniform else r.view(np.uint8), out, uniform)

    c.emit(op, step)


def _modifiers(op: Operation, mode: str, saturated: bool) -> str:
    """Return the modifiers of an op's attributes, such as `.rn.relu.satfinite`. `mode` is the default rounding mode."""
    word = enum_word(attr_of(op, "rnd"))
    relu = ".relu" * ("true" in str(attr_of(op, "relu")))
    finite = ".satfinite" * (saturated or enum_word(attr_of(op, "sat")) == "satfinite")
    return f".{mode if word in ('', 'none') else word}" + (finite + relu if saturated else relu + finite)


def _target(op: Operation, attr: str) -> str:
    t = attr_of(op, attr)
    name = t.name if t is not None else "f8E4M3FN"
    if name not in _PACKED:
        raise InterpError("unsupported", f"fp8 type {name} is not supported; use one of {', '.join(_PACKED)}")
    return _PACKED[name]


def _to_halves(kind: str) -> Builder:
    return lambda c, op: emit_cvt(c, op, f"cvt{_modifiers(op, 'rn', False)}.{kind}.f32")


def _to_f8(source: str) -> Builder:
    return lambda c, op: emit_cvt(c, op, f"cvt{_modifiers(op, 'rn', True)}.{_target(op, 'dstTy')}.{source}")


def _from_f8(c: FnCompiler, op: Operation) -> None:
    emit_cvt(c, op, f"cvt{_modifiers(op, 'rn', False)}.f16x2.{_target(op, 'srcType')}")


def _to_tf32(c: FnCompiler, op: Operation) -> None:
    emit_cvt(c, op, f"cvt{_modifiers(op, 'rn', False)}.tf32.f32")


OPS: dict[str, Builder] = {
    "nvvm.convert.f32x2.to.f16x2": _to_halves("f16x2"),
    "nvvm.convert.f32x2.to.bf16x2": _to_halves("bf16x2"),
    "nvvm.convert.f32x2.to.f8x2": _to_f8("f32"),
    "nvvm.convert.f16x2.to.f8x2": _to_f8("f16x2"),
    "nvvm.convert.f8x2.to.f16x2": _from_f8,
    "nvvm.convert.float.to.tf32": _to_tf32,
}

__all__ = ["OPS", "emit_cvt"]
