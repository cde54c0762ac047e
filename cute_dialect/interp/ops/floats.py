"""Float arithmetic of arith, llvm, math and the NVVM math intrinsics.

f16, f32 and f64 are numpy's; bf16 and fp8 are `ml_dtypes`', which computes in f32 and rounds once.  Both give the
correctly rounded sum, product and quotient.  `fma` is fused: exact for f16, bf16 and f32 (the f64 sum of the exact
product is rounded to odd before the final rounding), within one unit in the last place for f64.  The device's
approximate functions (`ex2.approx` and its kin) are computed exactly instead, so a comparison with a GPU needs a
bound of a few units in the last place.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.group import Group
from cute_dialect.interp.program import Builder, FnCompiler, attr_of
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import Array, Regs, Value

if TYPE_CHECKING:
    from xdsl.ir import Operation


def as_leaf(v: object, leaf: Leaf) -> Value:
    """A float value in the leaf's format: a numpy scalar when uniform, else an array."""
    if isinstance(v, np.ndarray):
        v = v if v.dtype == leaf.dtype else v.astype(leaf.dtype)
        return v if v.ndim else v[()]
    return leaf.dtype.type(v)


def _binary(f: Callable[[Value, Value], object]) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])

        def step(R: Regs, g: Group) -> None:
            R[d] = f(R[a], R[b])  # type: ignore[assignment]

        c.emit(op, step)

    return build


def _binary_wide(f: Callable[[Array, Array], Array]) -> Builder:
    """Computed in f64 (f32 operands) or f32 (narrower), then rounded."""

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
    """As f64."""
    return np.asarray(v + 0 if not isinstance(v, (np.ndarray, float, np.generic)) else v).astype(np.float64)


def unary(f: Callable[[Array], Array]) -> Builder:
    """A function computed in f64 and rounded to the type."""

    def build(c: FnCompiler, op: Operation) -> None:
        a = c.use(op.operands[0])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)

        def step(R: Regs, g: Group) -> None:
            R[d] = as_leaf(f(_widen(R[a])), leaf)

        c.emit(op, step)

    return build


def _neg(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])

    def step(R: Regs, g: Group) -> None:
        R[d] = -R[a]  # type: ignore[operator]

    c.emit(op, step)


def _minmax(largest: bool, nan_wins: bool) -> Callable[[Value, Value], object]:
    """maximum/minimum carry a NaN on and order -0 below +0; maxnum/minnum return the other operand."""

    def f(a: Value, b: Value) -> object:
        x, y = np.asarray(a), np.asarray(b)
        if nan_wins:
            r = np.maximum(x, y) if largest else np.minimum(x, y)
            tie = (x == 0) & (y == 0)
            if np.any(tie):
                zero = (x + y) if largest else -((-x) + (-y))
                r = np.where(tie, zero, r)
        else:
            r = np.fmax(x, y) if largest else np.fmin(x, y)
        r = r.astype(x.dtype)
        return r if r.ndim else r[()]

    return f


def fma(a: Value, b: Value, c: Value, leaf: Leaf) -> Value:
    """a·b + c with one rounding (see the module text)."""
    x, y, z = (np.asarray(v).astype(np.float64) for v in (a, b, c))
    if leaf.dtype == np.float64:
        p = x * y
        split = 134217729.0  # 2^27 + 1 (Dekker)
        xh = split * x - (split * x - x)
        yh = split * y - (split * y - y)
        xl, yl = x - xh, y - yh
        pe = ((xh * yh - p) + xh * yl + xl * yh) + xl * yl
        s, e = _two_sum(p, z)
        r = s + (e + pe)
        return as_leaf(np.where(np.isfinite(r), r, x * y + z), leaf)
    p = x * y  # exact: at most 48 bits
    s, e = _two_sum(p, z)
    inexact = (e != 0) & np.isfinite(s)
    if np.any(inexact):
        bits = np.ascontiguousarray(np.atleast_1d(s)).view(np.int64).reshape(s.shape).copy()
        even = inexact & ((bits & 1) == 0)
        away = (e > 0) == (s > 0)
        bits = np.where(even, np.where(away, bits + 1, bits - 1), bits)
        s = np.ascontiguousarray(bits).view(np.float64).reshape(s.shape)
    return as_leaf(s, leaf)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    s = a + b
    t = s - a
    return np.asarray(s), np.asarray((a - (s - t)) + (b - t))


def _fma(c: FnCompiler, op: Operation) -> None:
    x, y, z = (c.use(v) for v in op.operands)
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        a, b, e = R[x], R[y], R[z]
        _ = a * b + e  # type: ignore[operator]  # poison shows here
        R[d] = fma(a, b, e, leaf)

    c.emit(op, step)


_ORDERED = ("_false", "eq", "gt", "ge", "lt", "le", "ne", "ord")


def _compare(llvm: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])
        number = getattr(getattr(attr_of(op, "predicate"), "value", None), "data", None)
        if not isinstance(number, int) or not 0 <= number < 16:
            raise InterpError("unsupported", f"expected a float predicate in [0, 16), got {attr_of(op, 'predicate')}")
        # 0 false, 1..6 ordered eq gt ge lt le ne, 7 ord, 8..13 unordered, 14 uno, 15 true: the same in both dialects
        unordered = number >= 8
        kind = number if number < 8 else number - 7

        def step(R: Regs, g: Group) -> None:
            x, y = R[a], R[b]
            if number in (0, 15):
                _ = x == y
                R[d] = number == 15
                return
            nan = (x != x) | (y != y)
            if number in (7, 14):
                r = nan if number == 14 else ~np.asarray(nan)
            else:
                r = (x == y, x > y, x >= y, x < y, x <= y, x != y)[kind - 1]  # type: ignore[operator]
                r = (r | nan) if unordered else (np.asarray(r) & ~np.asarray(nan))
            r = np.asarray(r)
            R[d] = r if r.ndim else bool(r)

        c.emit(op, step)

    return build


def _convert(c: FnCompiler, op: Operation) -> None:
    """extf, truncf, fpext, fptrunc: to nearest even."""
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        R[d] = as_leaf(np.asarray(_real(R[a])), leaf)

    c.emit(op, step)


def _real(v: Value) -> Value:
    _ = v == v  # poison shows here
    return v


def _from_int(is_signed: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        from cute_dialect.interp.values import unsigned

        a = c.use(op.operands[0])
        d = c.define(op.results[0])
        leaf, src = c.leaf_of(d), c.leaf_of(a)

        def step(R: Regs, g: Group) -> None:
            v = R[a] if is_signed and src.width != 1 else unsigned(R[a], src)
            if is_signed and src.width == 1:
                v = -np.asarray(v).astype(np.int8)
            x = np.asarray(v)
            if leaf.dtype.itemsize < 4 or leaf.dtype.kind != "f":
                # through f64, exact for i32 and narrower; numpy rounds once more, to nearest even
                x = x.astype(np.float64)
            R[d] = as_leaf(x.astype(leaf.dtype), leaf)

        c.emit(op, step)

    return build


def _to_int(is_signed: bool) -> Builder:
    """Towards zero; out of range saturates and NaN gives 0, as PTX `cvt.rzi` does (the IR leaves it undefined)."""

    def build(c: FnCompiler, op: Operation) -> None:
        from cute_dialect.interp.values import wrap_int

        a = c.use(op.operands[0])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)
        lo = -(1 << (leaf.width - 1)) if is_signed else 0
        hi = (1 << (leaf.width - 1)) - 1 if is_signed else (1 << leaf.width) - 1
        float_hi = float(hi)

        def step(R: Regs, g: Group) -> None:
            x = np.trunc(_widen(R[a]))
            if not x.ndim:
                v = float(x)
                n = 0 if math.isnan(v) else hi if v >= float_hi else lo if v <= lo else int(v)
                R[d] = wrap_int(n, leaf.width)
                return
            top, bottom = x >= float_hi, x <= lo
            safe = np.where(np.isnan(x) | top | bottom, 0.0, x)
            wide = safe.astype(np.int64 if is_signed else np.uint64)
            r = np.where(top, np.asarray(hi, wide.dtype), np.where(bottom, np.asarray(lo, wide.dtype), wide))
            if leaf.width == 1:
                R[d] = r.astype(np.bool_)
            else:
                R[d] = r.astype(leaf.dtype if is_signed else leaf.unsigned).view(leaf.dtype)

        c.emit(op, step)

    return build


def _copysign(x: Array, y: Array) -> Array:
    return np.copysign(x, y)


def _round_half_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def _rcp(x: Array) -> Array:
    return 1.0 / x


def _absf(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])

    def step(R: Regs, g: Group) -> None:
        v = R[a]
        R[d] = abs(_real(v))  # type: ignore[arg-type]

    c.emit(op, step)


def _powi(c: FnCompiler, op: Operation) -> None:
    a, n = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        R[d] = as_leaf(np.power(_widen(R[a]), np.asarray(R[n]).astype(np.float64)), leaf)

    c.emit(op, step)


UNARY: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt,
    "rsqrt": _rsqrt,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "exp10": lambda x: np.power(10.0, x),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "erf": _erf,
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "roundeven": np.rint,
    "round": _round_half_away,
}

# NVVM math intrinsics by their stem, without `.ftz`, `.approx`, rounding and type suffixes.
NVVM_UNARY: dict[str, Callable[[Array], Array]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "rsqrt": _rsqrt,
    "sqrt": np.sqrt,
    "rcp": _rcp,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "fabs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
}


def _float_binary(op_name: str) -> Callable[[Value, Value], object]:
    table: dict[str, Callable[[Value, Value], object]] = {
        "add": lambda a, b: a + b,  # type: ignore[operator]
        "sub": lambda a, b: a - b,  # type: ignore[operator]
        "mul": lambda a, b: a * b,  # type: ignore[operator]
        "div": lambda a, b: a / b,  # type: ignore[operator]
    }
    return table[op_name]


OPS: dict[str, Builder] = {
    "arith.addf": _binary(_float_binary("add")),
    "arith.subf": _binary(_float_binary("sub")),
    "arith.mulf": _binary(_float_binary("mul")),
    "arith.divf": _binary(_float_binary("div")),
    "llvm.fadd": _binary(_float_binary("add")),
    "llvm.fsub": _binary(_float_binary("sub")),
    "llvm.fmul": _binary(_float_binary("mul")),
    "llvm.fdiv": _binary(_float_binary("div")),
    "arith.remf": _binary_wide(np.fmod),
    "llvm.frem": _binary_wide(np.fmod),
    "arith.negf": _neg,
    "llvm.fneg": _neg,
    "arith.maximumf": _binary(_minmax(True, True)),
    "arith.minimumf": _binary(_minmax(False, True)),
    "arith.maxnumf": _binary(_minmax(True, False)),
    "arith.minnumf": _binary(_minmax(False, False)),
    "llvm.intr.maximum": _binary(_minmax(True, True)),
    "llvm.intr.minimum": _binary(_minmax(False, True)),
    "llvm.intr.maxnum": _binary(_minmax(True, False)),
    "llvm.intr.minnum": _binary(_minmax(False, False)),
    "arith.cmpf": _compare(False),
    "llvm.fcmp": _compare(True),
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
    "math.absf": _absf,
    "llvm.intr.fabs": _absf,
    "math.copysign": _binary_wide(_copysign),
    "llvm.intr.copysign": _binary_wide(_copysign),
    "math.powf": _binary_wide(np.power),
    "llvm.intr.pow": _binary_wide(np.power),
    "math.atan2": _binary_wide(np.arctan2),
    "math.fpowi": _powi,
    "llvm.intr.powi": _powi,
    "nvvm.rcp.approx.ftz.f": unary(_rcp),
    **{f"math.{k}": unary(f) for k, f in UNARY.items()},
    **{f"llvm.intr.{k}": unary(f) for k, f in UNARY.items()},
}
