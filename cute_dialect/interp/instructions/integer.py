"""Integer arithmetic of arith and llvm.

Results wrap to the width of the type. With overflow="error" (the default) a broken `nsw` or `nuw` is an error; with
"wrap" the flags are ignored. Division by zero and INT_MIN / -1 are errors in an active thread, since the IR leaves them
undefined.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import Fault, InterpError, attr_of, op_name
from cute_dialect.interp.exec.compiler import Builder, FnCompiler
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.exec.poison_flags import Report, Text, promise
from cute_dialect.interp.exec.steps import Step
from cute_dialect.interp.instructions.data import overflow_flags
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import Array, Regs, Value, normalise, unsigned, wrap_int

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
                R[d] = wrap_int(_exact(kind, xi, yi), leaf.width)
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
            R[d] = normalise(_divide(kind, x, y), leaf) if is_signed else signed(_divide(kind, x, y), leaf)

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


def _exact(kind: str, x: int, y: int) -> int:
    if kind == "floor":
        return x // y
    if kind == "ceil":
        return -(-x // y)
    q = abs(x) // abs(y)
    if (x < 0) != (y < 0):
        q = -q
    return q if kind == "div" else x - q * y


def _divide(kind: str, x: Value, y: Value) -> Value:
    """Divide arrays. numpy rounds towards minus infinity, the IR towards zero."""
    if kind == "rem":
        return np.fmod(x, y)  # type: ignore[call-overload]
    q = x // y  # type: ignore[operator]
    if kind == "floor":
        return q
    r = x - q * y  # type: ignore[operator]
    if kind == "ceil":
        return q + (r != 0)
    if (isinstance(x, np.ndarray) and x.dtype.kind == "u") or (isinstance(y, np.ndarray) and y.dtype.kind == "u"):
        return q
    return q + ((r != 0) & ((x < 0) != (y < 0)))  # type: ignore[operator]


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

    def eq(R: Regs, g: Group) -> None:
        R[d] = R[a] == R[b]

    def ne(R: Regs, g: Group) -> None:
        R[d] = R[a] != R[b]

    def lt(R: Regs, g: Group) -> None:
        R[d] = R[a] < R[b]  # type: ignore[operator]

    def le(R: Regs, g: Group) -> None:
        R[d] = R[a] <= R[b]  # type: ignore[operator]

    def gt(R: Regs, g: Group) -> None:
        R[d] = R[a] > R[b]  # type: ignore[operator]

    def ge(R: Regs, g: Group) -> None:
        R[d] = R[a] >= R[b]  # type: ignore[operator]

    by_name: dict[str, Step] = {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}
    if pred in ("eq", "ne") or (leaf.width != 1 and pred[0] == "s"):
        c.emit(op, by_name[pred if pred in ("eq", "ne") else pred[1:]])
        return
    compare = {
        "lt": lambda x, y: x < y,
        "le": lambda x, y: x <= y,
        "gt": lambda x, y: x > y,
        "ge": lambda x, y: x >= y,
    }[pred[1:]]
    # A signed i1 is 0 or -1, so its order is the reverse of the unsigned one.
    flip = leaf.width == 1 and pred[0] == "s"

    def other(R: Regs, g: Group) -> None:
        x, y = unsigned(R[a], leaf), unsigned(R[b], leaf)
        R[d] = compare(y, x) if flip else compare(x, y)

    c.emit(op, other)


def _minmax(largest: bool, is_signed: bool) -> Builder:
    def f(a: Value, b: Value, leaf: Leaf) -> Value:
        x, y = (a, b) if is_signed and leaf.width != 1 else (unsigned(a, leaf), unsigned(b, leaf))
        if not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray):
            r = max(x, y) if largest else min(x, y)  # type: ignore[type-var]
            return wrap_int(int(r), leaf.width)  # type: ignore[arg-type]
        r = np.maximum(x, y) if largest else np.minimum(x, y)  # type: ignore[call-overload]
        return r if is_signed and leaf.width != 1 else signed(r, leaf)

    return _binary(f)


def add(a: Value, b: Value) -> Value:
    return a + b  # type: ignore[operator]


def sub(a: Value, b: Value) -> Value:
    return a - b  # type: ignore[operator]


def mul(a: Value, b: Value) -> Value:
    return a * b  # type: ignore[operator]


_and = _bits(lambda a, b: a & b, lambda a, b: a and b)  # type: ignore[operator]
_or = _bits(lambda a, b: a | b, lambda a, b: a or b)  # type: ignore[operator]
_xor = _bits(lambda a, b: a ^ b, lambda a, b: a != b)  # type: ignore[operator]

OPS: dict[str, Builder] = {
    "arith.addi": _arith("+", add),
    "arith.subi": _arith("-", sub),
    "arith.muli": _arith("*", mul),
    "llvm.add": _arith("+", add),
    "llvm.sub": _arith("-", sub),
    "llvm.mul": _arith("*", mul),
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
}
