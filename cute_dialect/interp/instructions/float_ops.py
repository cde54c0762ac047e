"""Float arithmetic of arith, llvm, math and the NVVM math intrinsics.

Arithmetic, square root, `fma` and conversions round once to nearest even. f16, f32 and f64 use numpy. bf16 and fp8 use
`ml_dtypes`, which computes in f32, unless that could round twice; then they use `rounding`. All other functions of
`math` are computed in f64 and rounded. Comparisons with a GPU therefore need a tolerance of a few units in the last
place. With `nnan` and `ninf`, a NaN or an infinity is reported (LLVM LangRef, "Fast-Math Flags").
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.compiler.undefined import promise
from cute_dialect.interp.errors import InterpError, attr_of, op_name
from cute_dialect.interp.instructions.lane_math import FUNCTIONS, compare_floats, minmax_floats, rounded_once, to_int
from cute_dialect.interp.instructions.moves import not_negative
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.rounding import narrow, wide_int
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import Array, Regs, Value, normalise, unsigned, wrap_int

if TYPE_CHECKING:
    from xdsl.ir import Operation


def as_leaf(v: object, leaf: Leaf) -> Value:
    """Convert a float value to the leaf's format, rounded once.

    The result is a numpy scalar if uniform, else an array.
    """
    if isinstance(v, np.ndarray):
        if v.dtype != leaf.dtype:
            # ml_dtypes converts f64 through f32. All other conversions round once.
            twice = v.dtype == np.float64 and leaf.name in ("bf16", "f8E4M3FN", "f8E5M2")
            v = narrow(v, _FORMATS[leaf.name]) if twice else v.astype(leaf.dtype)
        return v if v.ndim else v[()]
    return as_leaf(np.asarray(v), leaf) if isinstance(v, np.float64) else leaf.dtype.type(v)


_FORMATS = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2", **{name: name for name in ("f16", "bf16", "f32", "f64")}}
"""Formats of `rounding` by the MLIR name of a type."""


def _binary(f: Callable[[Value, Value], object]) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])

        def step(R: Regs, g: Group) -> None:
            R[d] = f(R[a], R[b])  # type: ignore[assignment]

        c.emit(op, step)

    return build


def _binary_wide(f: Callable[[Array, Array], Array]) -> Builder:
    """Return the builder of a binary op that is computed in f64 and rounded."""

    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)

        def step(R: Regs, g: Group) -> None:
            x, y = _widen(R[a]), _widen(R[b])
            R[d] = as_leaf(f(x, y), leaf)

        c.emit(op, step)

    return build


def _widen(v: Value) -> Array:
    """Return a value as f64."""
    return np.asarray(v + 0 if not isinstance(v, (np.ndarray, float, np.generic)) else v).astype(np.float64)


def unary(f: Callable[[Array], Array]) -> Builder:
    """Return the builder of a function that is computed in f64 and rounded."""

    def build(c: FnCompiler, op: Operation) -> None:
        a = c.use(op.operands[0])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)

        def step(R: Regs, g: Group) -> None:
            R[d] = as_leaf(f(_widen(R[a])), leaf)

        c.emit(op, step)

    return build


def exact(f: Callable[[Value], Value]) -> Builder:
    """Return the builder of a function that is exact in the type of its operand."""

    def build(c: FnCompiler, op: Operation) -> None:
        a = c.use(op.operands[0])
        d = c.define(op.results[0])

        def step(R: Regs, g: Group) -> None:
            R[d] = f(R[a])

        c.emit(op, step)

    return build


def _ordered(largest: bool, nan_wins: bool) -> Callable[[Value, Value], object]:
    """Return maximum or minimum, where NaN wins, or maxnum or minnum, where the other operand does.

    All of them order -0 below +0, as PTX does.
    """

    def f(a: Value, b: Value) -> object:
        r = minmax_floats(np.asarray(a), np.asarray(b), largest, nan_wins)
        return r if r.ndim else r[()]

    return f


def _fma(c: FnCompiler, op: Operation) -> None:
    x, y, z = (c.use(v) for v in op.operands)
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)
    name = _FORMATS.get(leaf.name, "f32")

    def step(R: Regs, g: Group) -> None:
        a, b, e = R[x], R[y], R[z]
        _ = a * b + e  # type: ignore[operator]  # raises for poison
        R[d] = as_leaf(rounded_once("fma", name, "rn", *(np.asarray(v).astype(np.float64) for v in (a, b, e))), leaf)

    c.emit(op, step)


PREDICATES = (
    "false", "eq", "gt", "ge", "lt", "le", "ne", "num", "equ", "gtu", "geu", "ltu", "leu", "neu", "nan", "true",
)  # fmt: skip
"""The predicates of arith and llvm by number, in the words of PTX."""


def _compare(c: FnCompiler, op: Operation) -> None:
    a, b = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    number = getattr(getattr(attr_of(op, "predicate"), "value", None), "data", None)
    if not isinstance(number, int) or not 0 <= number < len(PREDICATES):
        raise InterpError("unsupported", f"float predicate {attr_of(op, 'predicate')} is not in [0, 16)")
    word = PREDICATES[number]

    def step(R: Regs, g: Group) -> None:
        x, y = R[a], R[b]
        if word in ("false", "true"):
            _ = x == y  # Raises for poison.
            R[d] = word == "true"
            return
        r = compare_floats(word, x, y)
        R[d] = r if r.ndim else bool(r)

    c.emit(op, step)


def _bf16(f: Callable[[Array, Array], Array], g: Callable[[Value, Value], object]) -> Builder:
    """Return the builder of a product or quotient. Small bf16 results would be rounded twice if computed in f32."""
    plain, wide = _binary(g), _binary_wide(f)

    def build(c: FnCompiler, op: Operation) -> None:
        narrow_type = c.type_of(op.operands[0]).leaf.name == "bf16"
        (wide if narrow_type else plain)(c, op)

    return build


def _convert(c: FnCompiler, op: Operation) -> None:
    """Compile extf, truncf, fpext and fptrunc, which round to nearest even. NVPTX ignores any other mode."""
    mode = getattr(getattr(attr_of(op, "roundingmode"), "value", None), "data", 0)
    if mode:
        names = ("to_nearest_even", "downward", "upward", "toward_zero", "to_nearest_away")
        name = names[mode] if mode < len(names) else str(mode)
        raise InterpError(
            "unsupported", f"rounding mode {name} is not supported, because NVPTX ignores it; use to_nearest_even"
        )
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        R[d] = as_leaf(np.asarray(_real(R[a])), leaf)

    c.emit(op, step)


def _abs(v: Value) -> Value:
    return abs(_real(v))  # type: ignore[arg-type]


def _real(v: Value) -> Value:
    _ = v == v  # Raises for poison.
    return v


def _from_int(is_signed: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a = c.use(op.operands[0])
        d = c.define(op.results[0])
        leaf, src = c.leaf_of(d), c.leaf_of(a)

        def step(R: Regs, g: Group) -> None:
            v = R[a] if is_signed and src.width != 1 else unsigned(R[a], src)
            if is_signed and src.width == 1:
                v = -np.asarray(v).astype(np.int8)
            x = np.asarray(v)
            if leaf.dtype.itemsize < 4:
                x = wide_int(x)
            with np.errstate(over="ignore"):
                R[d] = as_leaf(x if x.dtype == np.float64 else x.astype(leaf.dtype), leaf)

        c.emit(op, step)
        if not is_signed:
            not_negative(c, op)

    return build


def _to_int(is_signed: bool) -> Builder:
    """Return the builder of a conversion to an integer, rounding towards zero.

    An out-of-range number or NaN is poison (LLVM LangRef, fptosi). It is reported, or gives the result of PTX
    `cvt.rzi`.
    """

    def build(c: FnCompiler, op: Operation) -> None:
        a = c.use(op.operands[0])
        d = c.define(op.results[0])
        leaf, source = c.leaf_of(d), c.leaf_of(a)
        name = op_name(op)
        report = promise(c, op)
        half = math.ldexp(1.0, leaf.width - is_signed)
        lowest = -half if is_signed else 0.0

        def step(R: Regs, g: Group) -> None:
            v = R[a]
            x = np.asarray(np.trunc(_widen(v)))
            if c.overflow_errors:
                out = ~((x >= lowest) & (x < half))
                report(R, g, out, lambda at: f"{name}: {at(v)} is outside {leaf!r}, so the result is poison")
            r = np.asarray(to_int(x, source.width, leaf, is_signed))
            R[d] = normalise(r, leaf) if r.ndim else wrap_int(int(r), leaf.width)

        c.emit(op, step)

    return build


def _powi(c: FnCompiler, op: Operation) -> None:
    a, n = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        R[d] = as_leaf(np.power(_widen(R[a]), np.asarray(R[n]).astype(np.float64)), leaf)

    c.emit(op, step)


def _float_binary(name: str) -> Builder:
    table: dict[str, Builder] = {
        "add": _binary(operator.add),
        "sub": _binary(operator.sub),
        "mul": _bf16(np.multiply, operator.mul),
        "div": _bf16(np.divide, operator.truediv),
    }
    return table[name]


def _flagged(builder: Builder) -> Builder:
    """Wrap a builder to report NaN or infinity in operands and results of an op with `nnan` or `ninf`."""

    def build(c: FnCompiler, op: Operation) -> None:
        builder(c, op)
        attr = attr_of(op, "fastmath") or attr_of(op, "fastmathFlags")
        if attr is None or not c.overflow_errors:
            return
        # A set of flags, or their names; printing the attribute would be slow.
        data: object = getattr(attr, "data", None)
        flags = {f.value for f in data} if isinstance(data, frozenset) else set(re.findall(r"\w+", str(data or attr)))
        nnan, ninf = ("fast" in flags or flag in flags for flag in ("nnan", "ninf"))
        if not (nnan or ninf):
            return
        slots = [s for v in (*op.operands, *op.results) for s in c.slots_of(v) if c.leaf_of(s).kind == "f"]
        report = promise(c, op)
        name = op_name(op)
        promised = " and ".join(flag for flag, given in (("nnan", nnan), ("ninf", ninf)) if given)

        def check(R: Regs, g: Group) -> None:
            bad: Array = np.zeros((), np.bool_)
            found: list[Value] = []
            for s in slots:
                x = _widen(R[s])
                now = np.asarray((np.isnan(x) & nnan) | (np.isinf(x) & ninf))
                if now.any():
                    found.append(R[s])
                bad = bad | now

            def said(at: Callable[[Value], str]) -> str:
                values = ", ".join(at(v) for v in found)
                return f"{name}: {values}, forbidden by {promised}"

            report(R, g, bad, said)

        c.emit(op, check)

    return build


_PLAIN: dict[str, Builder] = {
    "arith.addf": _float_binary("add"),
    "arith.subf": _float_binary("sub"),
    "arith.mulf": _float_binary("mul"),
    "arith.divf": _float_binary("div"),
    "llvm.fadd": _float_binary("add"),
    "llvm.fsub": _float_binary("sub"),
    "llvm.fmul": _float_binary("mul"),
    "llvm.fdiv": _float_binary("div"),
    "arith.remf": _binary_wide(np.fmod),
    "llvm.frem": _binary_wide(np.fmod),
    "arith.negf": exact(operator.neg),
    "llvm.fneg": exact(operator.neg),
    "arith.maximumf": _binary(_ordered(True, True)),
    "arith.minimumf": _binary(_ordered(False, True)),
    "arith.maxnumf": _binary(_ordered(True, False)),
    "arith.minnumf": _binary(_ordered(False, False)),
    "llvm.intr.maximum": _binary(_ordered(True, True)),
    "llvm.intr.minimum": _binary(_ordered(False, True)),
    "llvm.intr.maxnum": _binary(_ordered(True, False)),
    "llvm.intr.minnum": _binary(_ordered(False, False)),
    "arith.cmpf": _compare,
    "llvm.fcmp": _compare,
    "arith.extf": _convert,
    "arith.truncf": _convert,
    "llvm.fpext": _convert,
    "llvm.fptrunc": _convert,
    "arith.sitofp": _from_int(True),
    "arith.uitofp": _from_int(False),
    "llvm.sitofp": _from_int(True),
    "llvm.uitofp": _from_int(False),
    "arith.fptosi": _to_int(True),
    "arith.fptoui": _to_int(False),
    "llvm.fptosi": _to_int(True),
    "llvm.fptoui": _to_int(False),
    "math.fma": _fma,
    "llvm.intr.fma": _fma,
    "llvm.intr.fmuladd": _fma,
    "vector.fma": _fma,
    "math.absf": exact(_abs),
    "llvm.intr.fabs": exact(_abs),
    "math.copysign": _binary_wide(np.copysign),
    "llvm.intr.copysign": _binary_wide(np.copysign),
    "math.powf": _binary_wide(np.power),
    "llvm.intr.pow": _binary_wide(np.power),
    "math.atan2": _binary_wide(np.arctan2),
    "math.fpowi": _powi,
    "llvm.intr.powi": _powi,
    **{f"math.{k}": unary(f) for k, f in FUNCTIONS.items()},
    **{f"llvm.intr.{k}": unary(f) for k, f in FUNCTIONS.items()},
}

ROUNDED_ONCE: frozenset[str] = frozenset(
    name
    for name in _PLAIN
    if not name.startswith(("math.", "llvm.intr."))
    or name.split(".")[-1]
    in ("fma", "fmuladd", "absf", "fabs", "copysign", "sqrt", "maximum", "minimum", "maxnum", "minnum")
    or name.split(".")[-1] in ("ceil", "floor", "trunc", "rint", "nearbyint", "roundeven", "round")
)
"""Ops whose result is the exact one, rounded once."""

OPS: dict[str, Builder] = {name: _flagged(build) for name, build in _PLAIN.items()}
