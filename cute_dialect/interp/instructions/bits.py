"""More integer ops: bit counts, double-width products, overflow flags, funnel shifts."""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import attr_of, op_name
from cute_dialect.interp.exec.compiler import Builder, FnCompiler
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.exec.poison_flags import promise
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import Array, Regs, Value, normalise, unsigned, wrap_int

if TYPE_CHECKING:
    from xdsl.ir import Operation

from cute_dialect.interp.instructions.integer import add, mul, signed, sub


def _unary(
    f: Callable[[Value, Leaf], Value], flag: str = "", poison: Callable[[Leaf], int] = lambda leaf: 0
) -> Builder:
    """Return the builder of a unary op. With the attribute `flag`, the operand `poison` gives poison."""

    def build(c: FnCompiler, op: Operation) -> None:
        a = c.use(op.operands[0])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)

        def step(R: Regs, g: Group) -> None:
            R[d] = f(R[a], leaf)

        c.emit(op, step)
        if flag and c.overflow_errors and "true" in str(attr_of(op, flag)):
            report = promise(c, op)
            worst = poison(leaf)

            def check(R: Regs, g: Group) -> None:
                report(R, g, R[a] == worst, lambda at: f"{op_name(op)}: {worst} gives poison ({flag})")

            c.emit(op, check)

    return build


def _lowest(leaf: Leaf) -> int:
    return -(1 << (leaf.width - 1))


def _abs(v: Value, leaf: Leaf) -> Value:
    return normalise(abs(v), leaf)  # type: ignore[arg-type]


def popcount(v: Value, leaf: Leaf) -> Value:
    """Return the number of set bits."""
    u = unsigned(v, leaf)
    if not isinstance(u, np.ndarray):
        return wrap_int(int(u).bit_count(), leaf.width)  # type: ignore[arg-type]
    return np.bitwise_count(u).astype(leaf.dtype) if hasattr(np, "bitwise_count") else _each(u, int.bit_count, leaf)


def _each(u: Array, f: Callable[[int], int], leaf: Leaf) -> Array:
    return np.array([f(int(x)) for x in u.ravel()], leaf.dtype).reshape(u.shape)


def _clz(v: Value, leaf: Leaf) -> Value:
    u = unsigned(v, leaf)
    if not isinstance(u, np.ndarray):
        return leaf.width - int(u).bit_length()  # type: ignore[arg-type]
    return _each(u, lambda x: leaf.width - x.bit_length(), leaf)


def _ctz(v: Value, leaf: Leaf) -> Value:
    def one(x: int) -> int:
        return (x & -x).bit_length() - 1 if x else leaf.width

    u = unsigned(v, leaf)
    return _each(u, one, leaf) if isinstance(u, np.ndarray) else one(int(u))  # type: ignore[arg-type]


def _reverse(v: Value, leaf: Leaf) -> Value:
    def one(x: int) -> int:
        return wrap_int(int(f"{x:0{leaf.width}b}"[::-1], 2), leaf.width)

    u = unsigned(v, leaf)
    return _each(u, one, leaf) if isinstance(u, np.ndarray) else one(int(u))  # type: ignore[arg-type]


def mulhi(a: Value, b: Value, leaf: Leaf, is_signed: bool) -> Value:
    """Return the upper half of the double-width product."""
    x, y = (a, b) if is_signed else (unsigned(a, leaf), unsigned(b, leaf))
    if not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray):
        return wrap_int((int(x) * int(y)) >> leaf.width, leaf.width)  # type: ignore[arg-type]
    wide = np.int64 if is_signed else np.uint64
    if leaf.width <= 32:
        p = np.asarray(x).astype(wide) * np.asarray(y).astype(wide)
        return signed((p >> np.asarray(leaf.width, wide)).astype(np.int64), leaf)
    p_exact = np.asarray(x).astype(object) * np.asarray(y).astype(object)
    hi = [wrap_int(int(v) >> leaf.width, leaf.width) for v in p_exact.ravel()]
    return np.array(hi, leaf.dtype).reshape(p_exact.shape)


def _mul_extended(is_signed: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        lo, hi = c.define(op.results[0]), c.define(op.results[1])
        leaf = c.leaf_of(lo)

        def step(R: Regs, g: Group) -> None:
            x, y = R[a], R[b]
            R[lo] = normalise(x * y, leaf)  # type: ignore[operator]
            R[hi] = mulhi(x, y, leaf, is_signed)

        c.emit(op, step)

    return build


def _add_extended(c: FnCompiler, op: Operation) -> None:
    a, b = c.use(op.operands[0]), c.use(op.operands[1])
    d, carry = c.define(op.results[0]), c.define(op.results[1])
    leaf = c.leaf_of(d)

    def step(R: Regs, g: Group) -> None:
        r = normalise(R[a] + R[b], leaf)  # type: ignore[operator]
        R[d] = r
        R[carry] = unsigned(r, leaf) < unsigned(R[a], leaf)  # type: ignore[operator]

    c.emit(op, step)


def _with_overflow(sign: str, f: Callable[[Value, Value], Value], is_signed: bool) -> Builder:
    """Return the builder of llvm.intr.{s,u}{add,sub,mul}.with.overflow, a struct of result and flag."""

    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d, flag = c.defines(op.results[0])
        leaf = c.leaf_of(d)

        def step(R: Regs, g: Group) -> None:
            x, y = R[a], R[b]
            r = R[d] = normalise(f(x, y), leaf)
            if not is_signed:
                x, y, r = unsigned(x, leaf), unsigned(y, leaf), unsigned(r, leaf)
            exact = f(np.asarray(x).astype(object), np.asarray(y).astype(object))
            bad = np.asarray(exact != np.asarray(r).astype(object)).astype(np.bool_)
            R[flag] = bad if bad.ndim else bool(bad)

        c.emit(op, step)

    return build


def _funnel(left: bool) -> Builder:
    """Return the builder of llvm.intr.fshl or fshr."""

    def build(c: FnCompiler, op: Operation) -> None:
        a, b, n = (c.use(v) for v in op.operands)
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)
        w = leaf.width

        def one(x: int, y: int, k: int) -> int:
            k %= w
            both = ((x & ((1 << w) - 1)) << w) | (y & ((1 << w) - 1))
            return wrap_int((both << k) >> w if left else both >> k, w)

        def step(R: Regs, g: Group) -> None:
            x, y, k = R[a], R[b], R[n]
            if any(isinstance(v, np.ndarray) for v in (x, y, k)):
                xs, ys, ks = np.broadcast_arrays(np.asarray(x), np.asarray(y), np.asarray(k))
                vals = [one(int(p), int(q), int(r)) for p, q, r in zip(xs.ravel(), ys.ravel(), ks.ravel())]
                R[d] = np.array(vals, leaf.dtype).reshape(xs.shape)
            else:
                R[d] = one(int(x), int(y), int(k))  # type: ignore[arg-type]

        c.emit(op, step)

    return build


OPS: dict[str, Builder] = {
    "llvm.intr.abs": _unary(_abs, "is_int_min_poison", _lowest),
    "math.absi": _unary(_abs),
    "llvm.intr.ctpop": _unary(popcount),
    "math.ctpop": _unary(popcount),
    "llvm.intr.ctlz": _unary(_clz, "is_zero_poison"),
    "math.ctlz": _unary(_clz),
    "llvm.intr.cttz": _unary(_ctz, "is_zero_poison"),
    "math.cttz": _unary(_ctz),
    "llvm.intr.bitreverse": _unary(_reverse),
    "arith.mulsi_extended": _mul_extended(True),
    "arith.mului_extended": _mul_extended(False),
    "arith.addui_extended": _add_extended,
    "llvm.intr.sadd.with.overflow": _with_overflow("+", add, True),
    "llvm.intr.uadd.with.overflow": _with_overflow("+", add, False),
    "llvm.intr.ssub.with.overflow": _with_overflow("-", sub, True),
    "llvm.intr.usub.with.overflow": _with_overflow("-", sub, False),
    "llvm.intr.smul.with.overflow": _with_overflow("*", mul, True),
    "llvm.intr.umul.with.overflow": _with_overflow("*", mul, False),
    "llvm.intr.fshl": _funnel(True),
    "llvm.intr.fshr": _funnel(False),
}
