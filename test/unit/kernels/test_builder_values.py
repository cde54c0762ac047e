"""The builder's values under Python's operators: what Python would decide at once raises and says what to call."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
from cute_dialect.ir.parsing import parse_module
from cute_dialect.ir.verifier import verify
from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.values import Value

LATER = " is not known while the kernel is built, only when it runs: "
N = "Value(%n : i32)"
BRANCH = (
    "branch by `with builder.if_(v):` or builder.select(v, a, b), loop by builder.while_(), "
    "join conditions with & and |, negate by `v ^ True`, use builder.minimum(a, b) for min"
)
TAKE = "load elements with builder.load(tensor, where), take parts with builder.slice(tensor, …)"
NUMBER = "use the value itself; loops over it are `with builder.for_(start, stop) as loop:`"
EQUAL = "use v.eq(other), an i1 (`is` asks whether two names are one value)"


class Kernel:
    """A kernel that is being built, with arguments of several types."""

    def __init__(self, b: Builder, values: tuple[Value, ...]):
        self.b = b
        self.n, self.m, self.wide, self.at, self.x, self.half, self.flag, self.view = values


def build(use: Callable[[Kernel], object]) -> str:
    """The text of a kernel in which ``use`` is called."""
    b = Builder()
    names = ("n", "m", "wide", "at", "x", "half", "flag", "view")
    types = ("i32", "i32", "i64", "index", "f32", "f16", "i1", '!cute.memref<f32, gmem, "8:1">')
    with b.kernel("k", dict(zip(names, types)), threads=32) as values:
        for name, value in zip(names, values):
            value.ssa.name_hint = name
        use(Kernel(b, values))
    return b.text()


def branch(k: Kernel) -> None:
    if k.n < 3:
        k.b.thread_id()


REFUSED: list[tuple[str, Callable[[Kernel], object], str]] = [
    ("if", branch, "the truth of Value(i1)" + LATER + BRANCH),
    ("and", lambda k: k.flag and k.n, "the truth of Value(%flag : i1)" + LATER + BRANCH),
    ("or", lambda k: k.flag or k.n, "the truth of Value(%flag : i1)" + LATER + BRANCH),
    ("not", lambda k: not k.flag, "the truth of Value(%flag : i1)" + LATER + BRANCH),
    ("bool", lambda k: bool(k.n), f"the truth of {N}" + LATER + BRANCH),
    ("chain", lambda k: 1 < k.n < 3, "the truth of Value(i1)" + LATER + BRANCH),
    ("min", lambda k: min(k.n, k.m), "the truth of Value(i1)" + LATER + BRANCH),
    ("==", lambda k: k.n == 3, f"the equality of {N}" + LATER + EQUAL),
    ("in", lambda k: k.n in (k.m, 3), "the equality of Value(%m : i32)" + LATER + EQUAL),
    ("!=", lambda k: k.n != k.m, f"the inequality of {N}" + LATER
        + EQUAL.replace("eq", "ne", 1).replace("`is`", "`is not`")),
    ("hash", lambda k: {k.n: 1}, f"the number of {N}" + LATER
        + "key by v.ssa, if the same value is meant, not the same number"),
    ("len", lambda k: len(k.view), "the length of Value(%view : !cute.memref<f32, gmem, \"8:1\">)" + LATER
        + "ask its type, v.type, or builder.op('cute.size', v)"),
    ("iter", lambda k: list(k.n), f"the elements of {N}" + LATER + TAKE),
    ("unpack", lambda k: (*k.n,), f"the elements of {N}" + LATER + TAKE),
    ("index", lambda k: k.n[0], f"an element of {N}" + LATER + TAKE),
    ("contains", lambda k: 3 in k.n, f"the elements of {N}" + LATER + TAKE),
    ("int", lambda k: int(k.n), f"the number of {N}" + LATER + NUMBER),
    ("float", lambda k: float(k.x), "the number of Value(%x : f32)" + LATER + NUMBER),
    ("range", lambda k: range(k.n), f"the number of {N}" + LATER + NUMBER),
    ("round", lambda k: round(k.x), "the number of Value(%x : f32)" + LATER + NUMBER),
    ("list index", lambda k: [1, 2][k.n], f"the number of {N}" + LATER + NUMBER),
    ("neg", lambda k: -k.n, f"the sign of {N}" + LATER
        + "use 0 - v, builder.op('math.absi', v, type=v.type) or builder.op('math.absf', v, type=v.type)"),
    ("invert", lambda k: ~k.n, f"the complement of {N}" + LATER + "use `v ^ -1`, of an i1 `v ^ True`"),
    ("**", lambda k: k.n**2, f"a power of {N}" + LATER
        + "multiply, shift by <<, or use builder.op('math.powf', a, b, type=a.type)"),
    ("/", lambda k: k.x / k.x, "a quotient of Value(%x : f32)" + LATER
        + "integers have // and % (unsigned), floats builder.binary('div', a, b)"),
    ("divmod", lambda k: divmod(k.n, 4), f"a quotient of {N}" + LATER
        + "integers have // and % (unsigned), floats builder.binary('div', a, b)"),
]  # fmt: skip


@pytest.mark.parametrize("use, message", [(u, m) for _, u, m in REFUSED], ids=[name for name, _, _ in REFUSED])
def test_what_is_known_at_run_time_only(use: Callable[[Kernel], object], message: str):
    with pytest.raises(TypeError) as e:
        build(use)
    assert str(e.value) == message


MIX = (
    ": bring both to one type first, for example with builder.op('arith.extui', v, type='i64'), 'arith.index_cast', "
    "'arith.uitofp' or 'arith.extf'"
)
OTHER_CONSTANT = "constants of other types are made by builder.constant(1.5, type)"
FLOATS = "use builder.compare(p, a, b) with p one of oeq, ogt, oge, olt, ole, one, une"
UNFIT: list[tuple[Callable[[Kernel], object], str]] = [
    (lambda k: k.n + k.wide, "'add': i32 and i64 do not mix" + MIX),
    (lambda k: k.n * k.x, "'mul': i32 and f32 do not mix" + MIX),
    (lambda k: k.at - k.n, "'sub': index and i32 do not mix" + MIX),
    (lambda k: k.half * k.x, "'mul': f16 and f32 do not mix" + MIX),
    (lambda k: k.flag & k.n, "'and': i1 and i32 do not mix" + MIX),
    (lambda k: k.n < k.wide, "'ult': i32 and i64 do not mix" + MIX),
    (lambda k: k.b.select(k.flag, k.x, k.half), "select: f32 and f16 do not mix" + MIX),
    (lambda k: k.n + 1.5, "expected an integer for i32, got 1.5: " + OTHER_CONSTANT),
    (lambda k: 1.5 * k.at, "expected an integer for index, got 1.5: " + OTHER_CONSTANT),
    (lambda k: k.n.eq("3"), "expected an integer for i32, got '3': constants of other types are made by "
        "builder.constant('3', type)"),
    (lambda k: k.x + None, "expected a number for f32, got None"),
    (lambda k: k.view + 4, "expected the type of a number, got !cute.memref<f32, gmem, \"8:1\">: 4 cannot become a "
        "constant of it"),
    (lambda k: k.view + k.view, "'add' is no operation on !cute.memref<f32, gmem, \"8:1\">: there are none"),
    (lambda k: k.x % 2.0, "'rem' is no operation on f32: there are add, sub, mul, div, min, max"),
    (lambda k: k.x < 1.0, "'ult' is no comparison of f32: " + FLOATS),
    (lambda k: k.x.eq(1.0), "'eq' is no comparison of f32: " + FLOATS),
    (lambda k: k.n < -1, "'ult' takes integers as unsigned, but Value(i32) is signed: "
        "use builder.compare('slt', a, b)"),
    (lambda k: k.n < 0, f"`v < 0` is never true of {N}, which is compared as unsigned: "
        "use builder.compare('slt', v, 0)"),
    (lambda k: k.n >= 0, f"`v >= 0` is always true of {N}, which is compared as unsigned: "
        "use builder.compare('sge', v, 0)"),
    (lambda k: k.n // -2, "'div' takes integers as unsigned, but Value(i32) is signed: "
        "use builder.op('arith.divsi', a, b, type=a.type)"),
    (lambda k: k.n % -2, "'rem' takes integers as unsigned, but Value(i32) is signed: "
        "use builder.op('arith.remsi', a, b, type=a.type)"),
    (lambda k: k.b.op("arith.shrsi", k.n, 4, type="i32") >> 1, "'shr' takes integers as unsigned, but Value(i32) is "
        "signed: use builder.op('arith.shrsi', a, b, type=a.type)"),
    (lambda k: k.b.minimum(k.b.op("arith.extsi", k.n, type="i64"), 3), "'min' takes integers as unsigned, but "
        "Value(i64) is signed: use builder.op('arith.minsi', a, b, type=a.type)"),
    (lambda k: k.b.store(k.view, 0, 1.5), "expected an integer for i32, got 1.5: " + OTHER_CONSTANT),  # pyright: ignore
    (lambda k: k.b.if_(k.n).__enter__(), f"expected a condition, a value of type i1, got {N}: "
        "compare first, e.g. v.ne(0)"),
    (lambda k: k.b.if_(True).__enter__(), "expected a condition, a value of type i1, got True: "  # pyright: ignore
        "compare first, e.g. v.ne(0)"),
    (lambda k: k.b.for_(0, k.wide).__enter__(), "the bounds of a loop: i32 and i64 do not mix" + MIX),
]  # fmt: skip


@pytest.mark.parametrize("use, message", UNFIT, ids=[m.split(":")[0] for _, m in UNFIT])
def test_what_does_not_go_together(use: Callable[[Kernel], object], message: str):
    with pytest.raises(TypeError) as e:
        build(use)
    assert str(e.value) == message


WRONG: list[tuple[Callable[[Kernel], object], str]] = [
    (lambda k: k.n + (1 << 32), "4294967296 does not fit i32, which holds -2147483648 to 4294967295"),
    (lambda k: k.flag & 2, "2 does not fit i1, which holds -1 to 1"),
    (lambda k: k.half * 70000, "70000 does not fit f16, whose numbers lie between 5.96046e-08 and 65504"),
    (lambda k: k.x + 1e300, "1e+300 does not fit f32, whose numbers lie between 1.4013e-45 and 3.40282e+38"),
    (lambda k: k.x * 1e-60, "1e-60 does not fit f32, whose numbers lie between 1.4013e-45 and 3.40282e+38"),
    (lambda k: k.b.for_(0, 8, 0).__enter__(), "expected a positive step, got 0"),
]  # fmt: skip


@pytest.mark.parametrize("use, message", WRONG, ids=[m[:20] for _, m in WRONG])
def test_numbers_that_do_not_fit(use: Callable[[Kernel], object], message: str):
    with pytest.raises(ValueError) as e:
        build(use)
    assert str(e.value) == message


def test_values_of_two_builders():
    def use(k: Kernel) -> None:
        with pytest.raises(ValueError) as e:
            build(lambda other: other.n + k.n)
        assert str(e.value) == f"'add': {N} and {N} belong to different builders"
        with pytest.raises(ValueError) as e:
            build(lambda other: other.b.store(other.view, 0, k.x))
        assert str(e.value) == "Value(%x : f32) belongs to another builder"

    build(use)


def test_loops_carry_what_they_were_given():
    def use(k: Kernel) -> None:
        with k.b.for_(0, k.n, carry=[k.x]) as loop:
            loop.next(k.half)

    with pytest.raises(TypeError) as e:
        build(use)
    assert str(e.value) == "the next iteration's values: f32 and f16 do not mix" + MIX

    def loop(k: Kernel) -> None:
        with k.b.while_():
            k.b.thread_id()

    with pytest.raises(ValueError, match=r"^expected one condition to be said in a while_ loop, got 0$"):
        build(loop)


def test_constants_stand_in_functions():
    with pytest.raises(ValueError, match=r"^outside of a function: constants are made inside `with builder\.kernel"):
        Builder().constant(3)


def test_what_is_right_stays_accepted():
    def use(k: Kernel) -> None:
        for op in (
            operator.add,
            operator.sub,
            operator.mul,
            operator.floordiv,
            operator.mod,
            operator.and_,
            operator.xor,
        ):
            op(op(k.n, 3), k.m)
        assert k.n + 0 is k.n
        assert k.n * np.int64(3) is not k.n and (np.int64(3) * k.n).type == k.n.type
        for value in (float("inf"), float("-inf"), float("nan"), 0.0, -0.0, 0.1, 3, np.float32(2.5)):
            k.half + value
        with k.b.if_((k.n < 3) & (k.flag ^ True)), k.b.if_(k.b.compare("olt", k.x, 1.0)):
            k.b.select(k.n.eq(k.m), k.n ^ -1, 0)
        with k.b.if_(k.b.compare("slt", k.n, -1)):
            pass
        with k.b.for_(k.n, 8) as loop:
            k.b.store(k.view, loop.iv, k.x)

    text = build(use)
    assert "arith.cmpf olt, %x, " in text
    assert "arith.cmpi slt, %n, " in text
    engine = DiagnosticEngine()
    module = parse_module(make_context("all"), Source("k", text), engine)
    assert module is not None and verify(module, engine) and not engine.seen
