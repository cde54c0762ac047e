"""Integer ops of arith, llvm, math and nvvm.

Results wrap to the width of the type. With overflow="error" (the default) a broken `nsw` or `nuw` is an error; with
"wrap" the flags are ignored. Division by zero and INT_MIN / -1 are errors in an active thread, since the IR leaves them
undefined.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.compiler.undefined import Report, Text, promise
from cute_dialect.interp.errors import Fault, InterpError, attr_of, op_name
from cute_dialect.interp.instructions.lane_math import (
    COMPARISONS,
    Integer,
    count_ones,
    divide,
    dot,
    each,
    funnel_shift,
    high_product,
    leading_zeros,
    minmax,
    reverse_bits,
    trailing_zeros,
)
from cute_dialect.interp.instructions.moves import enum_word, overflow_flags
from cute_dialect.interp.machine.group import Group
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import Array, Regs, Value, normalise, to_lanes, unsigned, wrap_int

if TYPE_CHECKING:
    from xdsl.ir import Operation

Binary = Callable[[Value, Value, Leaf], Value]


def _overflow(kind: str, a: Value, b: Value, sign: str, leaf: Leaf, name: str) -> Text:
    """Return the message for an overflow of `a sign b`."""
    return lambda at: f"{name}: {at(a)} {sign} {at(b)} overflows {leaf!r}, which {kind} forbids"


def _checked(
    sign: str,
    f: Callable[[Value, Value], Value],
    nsw: bool,
    nuw: bool,
    leaf: Leaf,
    name: str,
    report: Report,
    late: bool,
) -> Callable[..., Value]:
    """Return an add, sub or mul that reports violated flags."""
    half, full = 1 << (leaf.width - 1), 1 << leaf.width
    narrow = leaf.width != leaf.dtype.itemsize * 8

    def run(a: Value, b: Value, R: Regs, g: Group) -> Value:
        if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
            exact = f(a, b)
            bad = nsw and not -half <= exact < half  # type: ignore[operator]
            if bad or late:
                report(R, g, bad, _overflow("nsw", a, b, sign, leaf, name))
            if nuw and not bad:
                ua, ub = unsigned(a, leaf), unsigned(b, leaf)
                bad = not 0 <= f(ua, ub) < full  # type: ignore[operator]
                if bad:
                    report(R, g, bad, _overflow("nuw", ua, ub, sign, leaf, name))
            return wrap_int(int(exact), leaf.width)  # type: ignore[arg-type]
        r = normalise(f(a, b), leaf)
        some = False
        if late:
            report(R, g, False, str)
        if nsw:
            if narrow or sign == "*":
                bad = _wide_differs(f, a, b, r, leaf)
            elif sign == "+":
                bad = ((a ^ r) & (b ^ r)) < 0  # type: ignore[operator]
            else:
                bad = ((a ^ b) & (a ^ r)) < 0  # type: ignore[operator]
            some = bool(bad.any())  # type: ignore[union-attr]
            if some:
                report(R, g, bad, _overflow("nsw", a, b, sign, leaf, name))
        if nuw and not some:
            ua, ub, ur = unsigned(a, leaf), unsigned(b, leaf), unsigned(r, leaf)
            if sign == "+":
                bad = ur < ua  # type: ignore[operator]
            elif sign == "-":
                bad = ua < ub  # type: ignore[operator]
            else:
                bad = _wide_differs(f, ua, ub, ur, leaf)
            if bad.any():  # type: ignore[union-attr]
                report(R, g, bad, _overflow("nuw", ua, ub, sign, leaf, name))
        return r

    return run


def _wide_differs(f: Callable[[Value, Value], Value], a: Value, b: Value, r: Value, leaf: Leaf) -> Array:
    """Return a mask of the elements where the exact result of f(a, b) differs from r."""
    if leaf.width <= 32:
        wide = f(np.asarray(a).astype(np.int64), np.asarray(b).astype(np.int64))
        return np.asarray(wide != np.asarray(r).astype(np.int64))
    x, y = np.asarray(a), np.asarray(b)
    if x.size and y.size:
        top = max(abs(int(x.max())), abs(int(x.min()))) * max(abs(int(y.max())), abs(int(y.min())))
        if top < 1 << 63:
            return np.zeros(np.broadcast(x, y).shape, np.bool_)
    exact = f(x.astype(object), y.astype(object))
    return np.asarray(exact != np.asarray(r).astype(object)).astype(np.bool_)


def _arith(sign: str, f: Callable[[Value, Value], Value]) -> Builder:
    """Return the builder of add, sub or mul."""

    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)
        nsw, nuw = overflow_flags(op) if c.overflow_errors else (False, False)
        name = op_name(op)
        if leaf.width == 1:
            bit = np.bitwise_and if sign == "*" else np.bitwise_xor

            def one_bit(R: Regs, g: Group) -> None:
                x, y = R[a], R[b]
                if isinstance(x, bool) and isinstance(y, bool):
                    R[d] = (x and y) if sign == "*" else x != y
                else:
                    R[d] = bit(x, y)  # type: ignore[call-overload]

            c.emit(op, one_bit)
            return
        if nsw or nuw:
            report = promise(c, op, "overflow")
            checked_f = _checked(sign, f, nsw, nuw, leaf, name, report, d in c.late)

            def checked(R: Regs, g: Group) -> None:
                R[d] = checked_f(R[a], R[b], R, g)

            c.emit(op, checked)
            return
        if leaf.width == leaf.dtype.itemsize * 8:
            half, mask = 1 << (leaf.width - 1), (1 << leaf.width) - 1

            # Three separate functions, since this is the hottest closure.
            def add(R: Regs, g: Group) -> None:
                r = R[a] + R[b]  # type: ignore[operator]
                R[d] = ((r + half) & mask) - half if type(r) is int else r

            def sub(R: Regs, g: Group) -> None:
                r = R[a] - R[b]  # type: ignore[operator]
                R[d] = ((r + half) & mask) - half if type(r) is int else r

            def mul(R: Regs, g: Group) -> None:
                r = R[a] * R[b]  # type: ignore[operator]
                R[d] = ((r + half) & mask) - half if type(r) is int else r

            c.emit(op, {"+": add, "-": sub, "*": mul}[sign])
            return

        def narrow(R: Regs, g: Group) -> None:
            R[d] = normalise(f(R[a], R[b]), leaf)

        c.emit(op, narrow)

    return build


def _binary(f: Binary) -> Builder:
    """Return the builder of an op whose result is f(a, b, leaf) and which cannot fail."""

    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)

        def step(R: Regs, g: Group) -> None:
            R[d] = f(R[a], R[b], leaf)

        c.emit(op, step)

    return build


def _bits(f: Callable[[Value, Value], Value], g_bool: Callable[[bool, bool], bool]) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])

        def step(R: Regs, g: Group) -> None:
            x, y = R[a], R[b]
            R[d] = g_bool(x, y) if type(x) is bool and type(y) is bool else f(x, y)

        c.emit(op, step)
        if c.overflow_errors and attr_of(op, "isDisjoint") is not None:
            report = promise(c, op)

            def disjoint(R: Regs, g: Group) -> None:
                x, y = R[a], R[b]
                both = (x & y) != 0  # type: ignore[operator]
                report(R, g, both, lambda at: f"{op_name(op)}: {at(x)} and {at(y)} share bits, which disjoint forbids")

            c.emit(op, disjoint)

    return build


def _division(kind: str, is_signed: bool) -> Builder:
    """Return the builder of a division. kind: "div" (towards zero), "rem", "floor", "ceil"."""

    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)
        rank = len(leaf.shape)
        name = op_name(op)
        lowest = -(1 << (leaf.width - 1))

        def step(R: Regs, g: Group) -> None:
            x, y = R[a], R[b]
            if not is_signed:
                x, y = unsigned(x, leaf), unsigned(y, leaf)
            if not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray):
                xi, yi = int(x), int(y)  # type: ignore[arg-type]
                if yi == 0:
                    if g.mask.n:
                        raise Fault("division", f"{name}: division of {xi} by zero")
                    R[d] = 0
                    return
                if is_signed and xi == lowest and yi == -1 and g.mask.n:
                    raise Fault("overflow", f"{name}: {xi} by -1 overflows {leaf!r}")
                R[d] = wrap_int(int(divide(kind, xi, yi)), leaf.width)
                return
            if isinstance(y, np.ndarray):
                zero = y == 0
                if zero.any():
                    if g.mask.any(zero, rank):
                        raise Fault("division", f"{name}: division by zero", g.mask.first(zero, rank))
                    y = np.where(zero, np.asarray(1, y.dtype), y)
            elif y == 0:
                if g.mask.n:
                    raise Fault("division", f"{name}: division by zero")
                y = 1
            if is_signed and ((not isinstance(y, np.ndarray) and y == -1) or isinstance(y, np.ndarray)):
                bad = np.asarray((x == lowest) & (y == -1))
                if bad.any() and g.mask.any(bad, rank):
                    raise Fault("overflow", f"{name}: {lowest} by -1 overflows {leaf!r}", g.mask.first(bad, rank))
            q = divide(kind, x, y)  # type: ignore[arg-type]
            R[d] = normalise(q, leaf) if is_signed else signed(q, leaf)

        c.emit(op, step)
        if c.overflow_errors and attr_of(op, "isExact") is not None:
            report = promise(c, op)

            def exact(R: Regs, g: Group) -> None:
                x, y, q = (v if is_signed else unsigned(v, leaf) for v in (R[a], R[b], R[d]))
                remains = q * y != x  # type: ignore[operator]
                report(R, g, remains, lambda at: f"{name}: {at(x)} by {at(y)} leaves a remainder, which exact forbids")

            c.emit(op, exact)

    return build


def signed(v: Value, leaf: Leaf) -> Value:
    """Convert unsigned bits to the signed normal form."""
    if isinstance(v, np.ndarray):
        if leaf.width == 1:
            return v.astype(np.bool_)
        return normalise(v.astype(leaf.unsigned).view(leaf.dtype), leaf)
    return wrap_int(int(v), leaf.width)  # type: ignore[arg-type]


def _shift(kind: str) -> Builder:
    """Return the builder of a shift.

    A shift by the width or more is poison in the IR, which is an error in an active lane.
    """

    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        d = c.define(op.results[0])
        leaf = c.leaf_of(d)
        width = leaf.width
        nsw, nuw = overflow_flags(op) if c.overflow_errors and kind == "shl" else (False, False)
        exact = c.overflow_errors and attr_of(op, "isExact") is not None
        name = op_name(op)
        too_far = promise(c, op, "arithmetic")
        late = d in c.late
        report = promise(c, op, "overflow") if nsw or nuw else promise(c, op)

        def step(R: Regs, g: Group) -> None:
            x, n = R[a], unsigned(R[b], leaf)
            some = False
            if late:
                report(R, g, False, str)
            if isinstance(n, np.ndarray):
                big = n >= width
                some = bool(big.any())
                if some:
                    by = n
                    too_far(R, g, big, lambda at: f"{name}: shift of {leaf!r} by {at(by)} bits")
                    n = np.where(big, np.asarray(0, n.dtype), n)
                n = n.astype(leaf.dtype)
            elif n >= width:  # type: ignore[operator]
                some = True
                by = n
                too_far(R, g, True, lambda at: f"{name}: shift of {leaf!r} by {at(by)} bits")
                n = 0
            if kind == "shl":
                r = normalise(x << n, leaf)  # type: ignore[operator]
                if nsw and not some:
                    bad = (r >> n) != x  # type: ignore[operator]
                    some = bool(np.any(bad))  # type: ignore[call-overload]
                    if some:
                        report(R, g, bad, _overflow("nsw", x, n, "<<", leaf, name))  # type: ignore[arg-type]
                if nuw and not some:
                    un = n.astype(leaf.unsigned) if isinstance(n, np.ndarray) else n
                    bad = (unsigned(r, leaf) >> un) != unsigned(x, leaf)  # type: ignore[operator]
                    if np.any(bad):  # type: ignore[call-overload]
                        report(R, g, bad, _overflow("nuw", unsigned(x, leaf), n, "<<", leaf, name))
                R[d] = r
            elif kind == "ashr":
                R[d] = x if width == 1 else x >> n  # type: ignore[operator]
            else:
                u = unsigned(x, leaf)
                un = n.astype(leaf.unsigned) if isinstance(n, np.ndarray) and leaf.width != 1 else n
                R[d] = signed(u >> un, leaf)  # type: ignore[operator]
            if exact and not some:
                lost = x & ((np.asarray(1, leaf.dtype) << n) - 1)  # type: ignore[operator]
                if np.any(lost != 0):  # type: ignore[call-overload]
                    report(R, g, lost != 0, lambda at: f"{name}: {at(x)} by {at(n)} loses bits, which exact forbids")

        c.emit(op, step)

    return build


_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def _compare(c: FnCompiler, op: Operation) -> None:
    """Compile arith.cmpi and llvm.icmp. Pointers compare as unsigned."""
    a, b = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    leaf = c.leaf_of(a)
    number = getattr(getattr(attr_of(op, "predicate"), "value", None), "data", None)
    if not isinstance(number, int) or not 0 <= number < len(_PREDICATES):
        raise InterpError("unsupported", f"integer predicate {attr_of(op, 'predicate')} is not in [0, 10)")
    pred = _PREDICATES[number]

    word = pred if pred in ("eq", "ne") else pred[1:]
    compare = COMPARISONS[word]
    if pred == word or (leaf.width != 1 and pred[0] == "s"):

        def step(R: Regs, g: Group) -> None:
            R[d] = compare(R[a], R[b])

        c.emit(op, step)
        return
    # A signed i1 is 0 or -1, so its order is the reverse of the unsigned one.
    flip = leaf.width == 1 and pred[0] == "s"

    def other(R: Regs, g: Group) -> None:
        x, y = unsigned(R[a], leaf), unsigned(R[b], leaf)
        R[d] = compare(y, x) if flip else compare(x, y)

    c.emit(op, other)


def _minmax(largest: bool, is_signed: bool) -> Builder:
    def f(a: Value, b: Value, leaf: Leaf) -> Value:
        if is_signed and leaf.width != 1:
            r = minmax(a, b, largest)  # type: ignore[arg-type]
            return r if isinstance(r, np.ndarray) else wrap_int(int(r), leaf.width)
        return signed(minmax(unsigned(a, leaf), unsigned(b, leaf), largest), leaf)  # type: ignore[arg-type]

    return _binary(f)


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


def _bit_function(f: Callable[[Integer, int], Integer]) -> Callable[[Value, Leaf], Value]:
    """Return a function of unsigned bits and their width as a function of a value."""
    return lambda v, leaf: signed(f(unsigned(v, leaf), leaf.width), leaf)  # type: ignore[arg-type]


def _high(x: Value, y: Value, leaf: Leaf, is_signed: bool) -> Value:
    """Return the upper half of the double-width product."""
    if not is_signed:
        x, y = unsigned(x, leaf), unsigned(y, leaf)
    return signed(high_product(x, y, leaf.width), leaf)  # type: ignore[arg-type]


def _mul_extended(is_signed: bool) -> Builder:
    def build(c: FnCompiler, op: Operation) -> None:
        a, b = c.use(op.operands[0]), c.use(op.operands[1])
        lo, hi = c.define(op.results[0]), c.define(op.results[1])
        leaf = c.leaf_of(lo)

        def step(R: Regs, g: Group) -> None:
            x, y = R[a], R[b]
            R[lo] = normalise(x * y, leaf)  # type: ignore[operator]
            R[hi] = _high(x, y, leaf, is_signed)

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

        def shift(x: int, y: int, k: int) -> int:
            return funnel_shift(x, y, k % w, w, left)

        def step(R: Regs, g: Group) -> None:
            x, y, k = unsigned(R[a], leaf), unsigned(R[b], leaf), R[n]
            if any(isinstance(v, np.ndarray) for v in (x, y, k)):
                given = np.broadcast_arrays(np.asarray(x), np.asarray(y), np.asarray(k))
                R[d] = signed(each(shift, *given), leaf)
            else:
                R[d] = wrap_int(shift(int(x), int(y), int(k)), w)  # type: ignore[arg-type]

        c.emit(op, step)

    return build


def _dot(c: FnCompiler, op: Operation) -> None:
    """Compile nvvm.dot.accumulate: dp4a and dp2a (PTX ISA 9.0, 9.7.1.24 and 9.7.1.25)."""
    a, b, acc = (c.use(v) for v in op.operands)
    d = c.define(op.results[0])
    leaves = [c.leaf_of(s) for s in (a, b, acc)]
    signed = [enum_word(attr_of(op, x)) == "signed" for x in ("a_type", "b_type")]
    n = leaves[0].count
    high = getattr(getattr(attr_of(op, "b_hi"), "value", None), "data", 0) if n == 2 else 0

    def step(R: Regs, g: Group) -> None:
        parts: list[Array] = []
        for slot, leaf, sign in zip((a, b), leaves, signed):
            v = np.ascontiguousarray(to_lanes(R[slot], leaf, g.lanes))
            parts.append(v if sign else v.view(leaf.unsigned))
        x, y = parts
        total = dot(x, y[:, 2:] if high else y[:, :n], to_lanes(R[acc], leaves[2], g.lanes))
        R[d] = total.astype(np.uint64).astype(np.uint32).view(np.int32)

    c.emit(op, step)


_and = _bits(operator.and_, lambda a, b: a and b)
_or = _bits(operator.or_, lambda a, b: a or b)
_xor = _bits(operator.xor, lambda a, b: a != b)

OPS: dict[str, Builder] = {
    "arith.addi": _arith("+", operator.add),
    "arith.subi": _arith("-", operator.sub),
    "arith.muli": _arith("*", operator.mul),
    "llvm.add": _arith("+", operator.add),
    "llvm.sub": _arith("-", operator.sub),
    "llvm.mul": _arith("*", operator.mul),
    "arith.divsi": _division("div", True),
    "arith.divui": _division("div", False),
    "arith.remsi": _division("rem", True),
    "arith.remui": _division("rem", False),
    "arith.floordivsi": _division("floor", True),
    "arith.ceildivsi": _division("ceil", True),
    "arith.ceildivui": _division("ceil", False),
    "llvm.sdiv": _division("div", True),
    "llvm.udiv": _division("div", False),
    "llvm.srem": _division("rem", True),
    "llvm.urem": _division("rem", False),
    "arith.andi": _and,
    "arith.ori": _or,
    "arith.xori": _xor,
    "llvm.and": _and,
    "llvm.or": _or,
    "llvm.xor": _xor,
    "arith.shli": _shift("shl"),
    "arith.shrsi": _shift("ashr"),
    "arith.shrui": _shift("lshr"),
    "llvm.shl": _shift("shl"),
    "llvm.ashr": _shift("ashr"),
    "llvm.lshr": _shift("lshr"),
    "arith.cmpi": _compare,
    "llvm.icmp": _compare,
    "arith.minsi": _minmax(False, True),
    "arith.maxsi": _minmax(True, True),
    "arith.minui": _minmax(False, False),
    "arith.maxui": _minmax(True, False),
    "llvm.intr.smin": _minmax(False, True),
    "llvm.intr.smax": _minmax(True, True),
    "llvm.intr.umin": _minmax(False, False),
    "llvm.intr.umax": _minmax(True, False),
    "llvm.intr.abs": _unary(_abs, "is_int_min_poison", _lowest),
    "math.absi": _unary(_abs),
    "llvm.intr.ctpop": _unary(_bit_function(count_ones)),
    "math.ctpop": _unary(_bit_function(count_ones)),
    "llvm.intr.ctlz": _unary(_bit_function(leading_zeros), "is_zero_poison"),
    "math.ctlz": _unary(_bit_function(leading_zeros)),
    "llvm.intr.cttz": _unary(_bit_function(trailing_zeros), "is_zero_poison"),
    "math.cttz": _unary(_bit_function(trailing_zeros)),
    "llvm.intr.bitreverse": _unary(_bit_function(reverse_bits)),
    "arith.mulsi_extended": _mul_extended(True),
    "arith.mului_extended": _mul_extended(False),
    "arith.addui_extended": _add_extended,
    "llvm.intr.sadd.with.overflow": _with_overflow("+", operator.add, True),
    "llvm.intr.uadd.with.overflow": _with_overflow("+", operator.add, False),
    "llvm.intr.ssub.with.overflow": _with_overflow("-", operator.sub, True),
    "llvm.intr.usub.with.overflow": _with_overflow("-", operator.sub, False),
    "llvm.intr.smul.with.overflow": _with_overflow("*", operator.mul, True),
    "llvm.intr.umul.with.overflow": _with_overflow("*", operator.mul, False),
    "llvm.intr.fshl": _funnel(True),
    "llvm.intr.fshr": _funnel(False),
    "nvvm.dot.accumulate.4way": _dot,
    "nvvm.dot.accumulate.2way": _dot,
}
