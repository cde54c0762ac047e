"""Calls: functions of the module, external functions (printf, assertion failure, libdevice) and LLVM intrinsics."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.errors import InterpError, attr_of, op_name
from cute_dialect.interp.instructions import float_ops, gpu, printf
from cute_dialect.interp.instructions.conversions import emit_cvt
from cute_dialect.interp.instructions.float_math import FUNCTIONS
from cute_dialect.interp.instructions.matrix import mma_by_name
from cute_dialect.interp.instructions.ptx import compile_text
from cute_dialect.interp.instructions.ptx_rows import KINDS
from cute_dialect.interp.instructions.ptx_text import Statement, Text
from cute_dialect.interp.instructions.sparse import mma_sp_by_name
from cute_dialect.interp.machine.group import Group, Wait
from cute_dialect.interp.values import Regs

if TYPE_CHECKING:
    from xdsl.ir import Operation

EXTERNALS: dict[str, Builder] = {
    **printf.EXTERNALS,
    **{f"__nv_{k}{s}": float_ops.unary(f) for k, f in FUNCTIONS.items() for s in ("", "f")},
    **{f"__nv_fast_{k}f": float_ops.unary(f) for k, f in FUNCTIONS.items()},
    "__nv_fmaf": float_ops.OPS["math.fma"],
    "__nv_fma": float_ops.OPS["math.fma"],
    "__nv_powf": float_ops.OPS["math.powf"],
    "__nv_pow": float_ops.OPS["math.powf"],
    "__nv_fabsf": float_ops.OPS["math.absf"],
    "__nv_fabs": float_ops.OPS["math.absf"],
    "__nv_fmaxf": float_ops.OPS["arith.maxnumf"],
    "__nv_fminf": float_ops.OPS["arith.minnumf"],
}


def _call(c: FnCompiler, op: Operation) -> None:
    """Compile llvm.call or func.call of a function with a body, under the current mask."""
    callee = attr_of(op, "callee")
    name = str(getattr(getattr(callee, "root_reference", callee), "data", ""))
    if not name:
        raise InterpError("unsupported", "indirect calls are not supported")
    target = c.program.find(name, op)
    if target is None or not target.regions or not target.regions[0].blocks:
        external = EXTERNALS.get(name)
        if external is None:
            raise InterpError("unsupported", f"call to @{name}, which has no body")
        external(c, op)
        return
    fn = c.program.function(target)
    c.fn.callees.append(fn)
    args = c.flat_uses(op.operands)
    outs = c.flat_defines(op.results)
    params = tuple(s for p in fn.params for s in p)
    if len(args) != len(params):
        raise InterpError("unsupported", f"@{name} takes {len(params)} scalar arguments, got {len(args)}")
    body = fn.body
    assert body is not None
    info = c.info(op)
    caller = c

    def run(R: Regs, g: Group) -> Generator[Wait, None, None]:
        inner_regs = list(fn.template)
        for p, a in zip(params, args):
            inner_regs[p] = R[a]
        saved, m = g.frame, g.mask
        g.frame += (caller.frame + 127) // 128 * 128
        g.stack.append(info)
        gen = body.run(inner_regs, g)
        if gen is not None:
            yield from gen
        g.stack.pop()
        g.frame = saved
        g.restore(m)
        for d, s in zip(outs, fn.out):
            R[d] = inner_regs[s]

    c.emit_control(op, run, body.blocking)


def _call_intrinsic(c: FnCompiler, op: Operation) -> None:
    name = str(getattr(attr_of(op, "intrin"), "data", ""))
    short = name.removeprefix("llvm.nvvm.")
    if short == name:
        plain = "llvm.intr." + re.sub(r"\.(v\d+)?(bf|f|i|p)\d+.*$", "", name.removeprefix("llvm."))
        builder = c.program.builder(plain)
        if builder is None:
            raise InterpError("unsupported", f"intrinsic {name} is not supported")
        builder(c, op)
        return
    for pattern, build in _INTRINSICS:
        m = re.fullmatch(pattern, short)
        if m is not None:
            build(c, op, m)
            return
    raise InterpError("unsupported", f"intrinsic {name} is not supported")


Match = Callable[[FnCompiler, "Operation", "re.Match[str]"], None]


_STEMS = {
    "fmax": "max", "fmin": "min", "fabs": "abs", "floor": "cvt.rmi", "ceil": "cvt.rpi",
    "round": "cvt.rni", "trunc": "cvt.rzi",
}  # fmt: skip
_TYPES = {"f": "f32", "d": "f64", "nan": "NaN"}


def ptx_name(intrinsic: str) -> str:
    """Return the PTX instruction of a float intrinsic given without `llvm.nvvm.`.

    >>> ptx_name("fmax.ftz.nan.f"), ptx_name("floor.d"), ptx_name("div.full.ftz"), ptx_name("sqrt.f")
    ('max.ftz.NaN.f32', 'cvt.rmi.f64.f64', 'div.full.ftz.f32', 'sqrt.rn.f32')
    """
    stem, *rest = intrinsic.split(".")
    words = [_TYPES.get(w, w) for w in rest]
    if not words or words[-1] not in KINDS:
        words.append("f32")
    if stem == "sqrt" and len(words) == 1:
        words.insert(0, "rn")
    if _STEMS.get(stem, "").startswith("cvt"):
        words.append(words[-1])
    return ".".join([_STEMS.get(stem, stem), *words])


def _nvvm_float(c: FnCompiler, op: Operation, m: re.Match[str]) -> None:
    """Compile an intrinsic that corresponds to a PTX instruction."""
    statement = Statement(ptx_name(m[0]), tuple(f"${i}" for i in range(len(op.operands) + 1)), "")
    ins = [c.use(v) for v in op.operands]
    compile_text(Text(c, op, [statement], [c.define(op.results[0]), *ins], 1, -1, {}, {}, pure=True))


def _nvvm_op(c: FnCompiler, op: Operation) -> None:
    """Compile an nvvm op with the name of an intrinsic."""
    m = re.fullmatch(r".*", op_name(op).removeprefix("nvvm."))
    assert m is not None
    _nvvm_float(c, op, m)


def _nvvm_barrier(c: FnCompiler, op: Operation, m: re.Match[str]) -> None:
    slots = [c.use(v) for v in op.operands]
    kind, count = m[1], len(slots) > 1
    ident: int | None = slots[0] if slots else None
    if ident is not None and not count and gpu.is_zero(c, ident):
        ident = None
    gpu.emit_barrier(c, op, f"llvm.nvvm.{m[0]}", ident, slots[1] if count else None, arrive_only=kind == "arrive")


def _nvvm_sreg(c: FnCompiler, op: Operation, m: re.Match[str]) -> None:
    gpu.emit_sreg(c, op, m[1])


def _nvvm_barrier0(c: FnCompiler, op: Operation, m: re.Match[str]) -> None:
    gpu.emit_barrier(c, op, "llvm.nvvm.barrier0", None, None)


def _nvvm_pack(c: FnCompiler, op: Operation, m: re.Match[str]) -> None:
    """Compile ff2f16x2 or ff2bf16x2, whose first operand goes to the upper half."""
    emit_cvt(c, op, f"cvt{m[2]}.{m[1]}.f32")


def _nvvm_mma(c: FnCompiler, op: Operation, m: re.Match[str]) -> None:
    mma_by_name(c, op, m)


_INTRINSICS: tuple[tuple[str, Match], ...] = (
    (
        r"(?:ex2|lg2|rsqrt|sqrt|rcp|sin|cos|tanh|fabs|floor|ceil|round|trunc|div|add|mul|fmax|fmin|fma)(?:\.[\w]+)*",
        _nvvm_float,
    ),
    (r"barrier\.cta\.(sync|arrive)(?:\.aligned)?(?:\.all|\.count)?", _nvvm_barrier),
    (r"barrier0", _nvvm_barrier0),
    (r"read\.ptx\.sreg\.(.*)", _nvvm_sreg),
    (r"ff2(b?f16x2)((?:\.\w+)+)", _nvvm_pack),
    (r"mma\.m(\d+)n(\d+)k(\d+)\.row\.col\.(.*)", _nvvm_mma),
    (r"mma\.sp\.ordered\.metadata\.m(\d+)n(\d+)k(\d+)\.row\.col\.(.*)", mma_sp_by_name),
)

OPS: dict[str, Builder] = {
    "llvm.call": _call,
    "func.call": _call,
    "llvm.call_intrinsic": _call_intrinsic,
    "nvvm.rcp.approx.ftz.f": _nvvm_op,
}

__all__ = ["EXTERNALS", "OPS"]
