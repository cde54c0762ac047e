"""Calls: functions of the module, external functions (printf, assertion failure, libdevice) LLVM intrinsics and
printf.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.errors import Fault, InterpError, attr_of, op_name
from cute_dialect.interp.instructions import float_ops, gpu, tcgen05
from cute_dialect.interp.instructions.conversions import emit_cvt
from cute_dialect.interp.instructions.field_ops import refusal
from cute_dialect.interp.instructions.lane_math import FUNCTIONS
from cute_dialect.interp.instructions.matrix import mma_by_name, mma_sp_by_name
from cute_dialect.interp.instructions.ptx import compile_text
from cute_dialect.interp.instructions.ptx_text import KINDS, Statement, Text
from cute_dialect.interp.machine.group import Group, Wait
from cute_dialect.interp.memory.accesses import Site, load
from cute_dialect.interp.memory.buffers import GENERIC
from cute_dialect.interp.types import float_leaf, int_leaf, round_up
from cute_dialect.interp.values import Regs, to_lanes

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Operation


_SPEC = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|t|j)?([diouxXeEfFgGaAcsp%])")


def specs(fmt: str) -> list[tuple[str, str]]:
    """Return the (length modifier, conversion) of each argument of a format string."""
    out: list[tuple[str, str]] = []
    for m in _SPEC.finditer(fmt):
        if m[5] == "%":
            continue
        out.extend([("", "d")] * ((m[2] == "*") + (m[3] == "*")))
        out.append((m[4] or "", m[5]))
    return out


def format_c(fmt: str, args: Sequence[object]) -> str:
    r"""Format arguments by the rules of C. A missing argument prints as `<missing>`.

    >>> format_c("i=%d v=%5.2f\\n", [3, 1.5])
    'i=3 v= 1.50\\n'
    """
    left = list(args)

    def take() -> object:
        return left.pop(0) if left else None

    def one(m: re.Match[str]) -> str:
        flags, width, precision, length, conv = m.groups()
        if conv == "%":
            return "%"
        if width == "*":
            width = str(take())
        if precision == "*":
            precision = str(take())
        v = take()
        if v is None:
            return "<missing>"
        spec = "%" + flags + (width or "") + (f".{precision}" if precision is not None else "")
        if conv in "di":
            return (spec + "d") % int(v)  # type: ignore[call-overload]
        if conv in "ouxX":
            bits = 64 if length in ("ll", "l", "z", "j", "t") else 32
            n = int(v) & ((1 << bits) - 1)  # type: ignore[call-overload]
            return (spec + ("d" if conv == "u" else conv)) % n
        if conv in "aA":
            return float(v).hex()  # type: ignore[arg-type]
        if conv in "eEfFgG":
            return (spec + conv) % float(v)  # type: ignore[arg-type]
        if conv == "c":
            return chr(int(v) & 0xFF)  # type: ignore[call-overload]
        if conv == "p":
            return f"{int(v):#x}"  # type: ignore[call-overload]
        return (spec + "s") % v

    return _SPEC.sub(one, fmt)


MAX_STRING = 4096


def read_string(g: Group, address: int) -> str:
    """Return the NUL-terminated string at a generic address."""
    buf = g.memory.find(address)
    if buf is None:
        raise Fault("oob", "string outside any buffer", -1, address)
    raw = bytes(buf.data[address - buf.base : address - buf.base + MAX_STRING])
    return raw.split(b"\0", 1)[0].decode("latin-1")


def _vprintf(c: FnCompiler, op: Operation) -> None:
    """Compile vprintf(format, buffer). The buffer holds the arguments after C's promotions, each naturally aligned."""
    fmt, buf = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0]) if op.results else -1

    def step(R: Regs, g: Group) -> None:
        if g.mask.n:
            addresses = to_lanes(R[fmt], c_leaf, g.lanes)
            text = read_string(g, int(addresses[g.mask.idx[0]]))
            columns: list[np.ndarray] = []
            at = 0
            for length, conv in specs(text):
                wide = conv in "eEfFgGaAps" or length in ("l", "ll", "z", "j", "t")
                leaf = float_leaf("f64") if conv in "eEfFgGaA" else int_leaf(64 if wide else 32)
                at = round_up(at, leaf.size)
                value = load(Site(leaf, leaf.size, GENERIC, False, "printf read"), g, R[buf] + at)  # type: ignore[operator]
                columns.append(to_lanes(value, leaf, g.lanes))
                at += leaf.size
            kinds = specs(text)
            for lane in g.mask.idx.tolist():
                vals: list[object] = []
                for (_, conv), col in zip(kinds, columns):
                    v = col[lane].item()
                    vals.append(read_string(g, v) if conv == "s" else v)
                g.machine.print(format_c(text, vals))
        if d >= 0:
            R[d] = 0

    c_leaf = c.leaf_of(fmt)
    c.emit(op, step, pure=False)


def _assertfail(c: FnCompiler, op: Operation) -> None:
    message, file, line = (c.use(v) for v in op.operands[:3])

    def step(R: Regs, g: Group) -> None:
        if not g.mask.n:
            return
        lane = int(g.mask.idx[0])

        def at(slot: int) -> int:
            v = R[slot]
            return int(v[lane] if isinstance(v, np.ndarray) else v)  # type: ignore[arg-type]

        text, name = read_string(g, at(message)), read_string(g, at(file))
        raise Fault("assert", f"assertion failed: {text} ({name}:{at(line)})", lane)

    c.emit(op, step, pure=False)


def _printf(c: FnCompiler, op: Operation) -> None:
    fmt = getattr(attr_of(op, "format"), "data", "")
    args = [c.use(v) for v in op.operands]
    leaves = [c.leaf_of(a) for a in args]

    def step(R: Regs, g: Group) -> None:
        cols = [to_lanes(R[a], leaf, g.lanes) for a, leaf in zip(args, leaves)]
        for lane in g.mask.idx.tolist():
            g.machine.print(format_c(fmt, [col[lane].item() for col in cols]))

    c.emit(op, step, pure=False)


EXTERNALS: dict[str, Builder] = {
    "vprintf": _vprintf,
    "__assertfail": _assertfail,
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
        if c.program.algebra is not None and name != "__assertfail":
            raise refusal(f"@{name}")
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
    if c.program.algebra is not None and short.startswith(("tcgen05.", "mma.sp.")):
        raise refusal(name)
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


_INTRINSICS: tuple[tuple[str, Match], ...] = (
    (
        r"(?:ex2|lg2|rsqrt|sqrt|rcp|sin|cos|tanh|fabs|floor|ceil|round|trunc|div|add|mul|fmax|fmin|fma)(?:\.[\w]+)*",
        _nvvm_float,
    ),
    (r"barrier\.cta\.(sync|arrive)(?:\.aligned)?(?:\.all|\.count)?", _nvvm_barrier),
    (r"barrier0", lambda c, op, m: gpu.emit_barrier(c, op, "llvm.nvvm.barrier0", None, None)),
    (r"read\.ptx\.sreg\.(.*)", lambda c, op, m: gpu.emit_sreg(c, op, m[1])),
    # The first operand goes to the upper half.
    (r"ff2(b?f16x2)((?:\.\w+)+)", lambda c, op, m: emit_cvt(c, op, f"cvt{m[2]}.{m[1]}.f32")),
    (r"mma\.m(\d+)n(\d+)k(\d+)\.row\.col\.(.*)", mma_by_name),
    (r"tcgen05\.(.*)", tcgen05.intrinsic),
    (r"mma\.sp\.ordered\.metadata\.m(\d+)n(\d+)k(\d+)\.row\.col\.(.*)", mma_sp_by_name),
)

OPS: dict[str, Builder] = {
    "gpu.printf": _printf,
    "llvm.call": _call,
    "func.call": _call,
    "llvm.call_intrinsic": _call_intrinsic,
    "nvvm.rcp.approx.ftz.f": _nvvm_op,
}
