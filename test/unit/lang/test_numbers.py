"""Numbers: static and dynamic results equal exact arithmetic, and invalid operations are errors."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tracing import run_kernel_on_cpu, text_of, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.errors import CompileError
from cute_dialect.lang.tracing.errors import MergeError
from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.dtypes import NUMBER_TYPES
from cute_dialect.lang.values.forms import form_of
from cute_dialect.lang.values.int_tuples import to_ssa
from cute_dialect.lang.values.numeric import binary, compare

INTEGERS = [NUMBER_TYPES[n] for n in ("Int8", "Int16", "Int32", "Int64", "Uint8", "Uint16", "Uint32", "Uint64")]
FLOATS = [NUMBER_TYPES[n] for n in ("Float16", "BFloat16", "Float32", "Float64")]
NARROW = [NUMBER_TYPES[n] for n in ("Float8E4M3FN", "Float8E5M2")]


def dtype_of(kind: Any) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, kind.numpy, None) or kind.numpy)


class Kernel:
    """A kernel that loads and stores values of any type and runs on the interpreter."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, Any]] = []
        self.made: list[Any] = []

    def run(self, body: Callable[[Kernel], Any]) -> tuple[list[Any], str]:
        """Trace a body twice: first to collect the types that it uses, then with an array of each type."""
        self.memory: dict[str, Any] = {}
        kinds = {k.__name__: k for k in (*INTEGERS, *FLOATS, *NARROW, cute.Boolean, cute.TFloat32)}

        def traced(*memory: Any) -> None:
            self.memory = dict(zip([f"{a}{n}" for n in kinds for a in "xy"], memory))
            self.used = dict.fromkeys(kinds, 0)
            self.given, self.made = [], []
            for value in body(self):
                self.store(value)

        types = {
            f"{a}{n}": f'!cute.memref<{k.mlir_type}, gmem, "4096:1">' for n, k in kinds.items() for a in "xy"
        }  # fmt: skip
        module = trace_kernel(traced, types, threads=1)
        arrays = {f"{a}{n}": np.zeros(4096, dtype_of(k)) for n, k in kinds.items() for a in "xy"}
        for i, (kind, value) in enumerate(self.given):
            arrays["x" + kind.__name__][i] = value
        run_kernel_on_cpu(module, list(arrays.values()), threads=1)
        return [arrays["y" + k.__name__][i] for i, k in enumerate(self.made)], text_of(module)

    def __call__(self, kind: Any, value: Any) -> Any:
        self.given.append((kind, value))
        i = len(self.given) - 1
        return kind.of(current().value("cute.memref.load", [self.memory["x" + kind.__name__], to_ssa(i)]))

    def store(self, value: Any) -> None:
        number = value if isinstance(value, cute.Numeric) else cute.Boolean(value)
        kind = type(number)
        i = len(self.made)
        self.made.append(kind)
        current().op("cute.memref.store", [self.memory["y" + kind.__name__], to_ssa(i), number.ssa])


def same(a: Any, b: Any) -> bool:
    a, b = float(a), float(b)
    return math.isnan(a) == math.isnan(b) and (math.isnan(a) or a == b)


def some(rng: random.Random, kind: Any) -> Any:
    if kind.is_integer:
        low, high = kind.min, kind.max
        return rng.choice([low, high, 0, 1, 3, 7, max(low, -5), rng.randint(low, high), rng.randint(low, high)])
    value = rng.choice([0.0, 1.0, -2.5, 3.0, rng.uniform(-9, 9), rng.uniform(-300, 300), kind.max])
    return kind(value).value


def exact(name: str, x: int, y: int) -> int:
    """Return the exact result of an integer operation, computed with Python integers."""
    return {
        "add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y, "and": lambda: x & y, "or": lambda: x | y,
        "xor": lambda: x ^ y, "floordiv": lambda: x // y, "mod": lambda: x % y, "min": lambda: min(x, y),
        "max": lambda: max(x, y), "shl": lambda: x << y, "shr": lambda: x >> y,
    }[name]()  # fmt: skip


OPERATIONS = ["add", "sub", "mul", "and", "or", "xor", "floordiv", "mod", "min", "max", "shl", "shr"]


def wrapped(n: int, kind: Any) -> int:
    n %= 1 << kind.width
    return n - (1 << kind.width) if kind.signed and n >= 1 << kind.width - 1 else n


def integer_cases(seed: int, count: int) -> list[tuple[str, Any, int, int]]:
    rng = random.Random(seed)
    cases: list[tuple[str, Any, int, int]] = []
    while len(cases) < count:
        name, kind = rng.choice(OPERATIONS), rng.choice(INTEGERS)
        x, y = some(rng, kind), some(rng, kind)
        if name in ("shl", "shr"):
            y = rng.randrange(kind.width)
        if name in ("floordiv", "mod") and (y == 0 or (kind.signed and (x, y) == (kind.min, -1))):
            continue
        cases.append((name, kind, x, y))
    return cases


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_integers_compute_as_python_does(seed: int) -> None:
    cases = integer_cases(seed, 250)
    expected = [wrapped(exact(name, x, y), kind) for name, kind, x, y in cases]
    for (name, kind, x, y), e in zip(cases, expected):
        made = binary(name, kind(x), kind(y))
        assert type(made) is kind and made.value == e, (name, kind, x, y)

    def body(k: Kernel) -> Any:
        for i, (name, kind, x, y) in enumerate(cases):
            sides = [(k(kind, x), k(kind, y)), (k(kind, x), kind(y)), (kind(x), k(kind, y))][i % 3]
            yield binary(name, *sides)

    found, text = Kernel().run(body)
    wrong = [(c, e, int(f)) for c, e, f in zip(cases, expected, found) if int(f) != e]
    assert not wrong, f"{wrong[:5]}\n{text[:3000]}"


def test_integer_expressions_with_known_ranges() -> None:
    """Folding by ranges, divisors and powers of two does not change results."""
    rng = random.Random(11)
    chains = [[(rng.choice(OPERATIONS), rng.choice([1, 2, 3, 4, 6, 8, 12, 32])) for _ in range(5)] for _ in range(120)]
    starts = [(rng.choice([cute.Int32, cute.Uint32, cute.Int64]), rng.randrange(0, 1 << 14)) for _ in chains]

    def run(value: Any, chain: list[tuple[str, int]]) -> Any:
        value = value % 4096
        for name, n in chain:
            value = binary(name, value, n % 3 if name in ("shl", "shr") else n)
        return value

    expected = [run(kind(start), chain).value for (kind, start), chain in zip(starts, chains)]
    found, _ = Kernel().run(lambda k: [run(k(kind, start), chain) for (kind, start), chain in zip(starts, chains)])
    assert [int(f) for f in found] == expected


def test_comparisons() -> None:
    rng = random.Random(3)
    cases = [(rng.choice(["lt", "le", "gt", "ge", "eq", "ne"]), rng.choice([*INTEGERS, *FLOATS])) for _ in range(150)]
    values = [(some(rng, kind), some(rng, kind)) for _, kind in cases]
    values[0] = (math.nan, 1.0)
    cases[0] = ("ne", cute.Float32)
    signs = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
    expected = [eval(f"x {signs[name]} y", {"x": x, "y": y}) for (name, _), (x, y) in zip(cases, values)]
    assert [compare(n, k(x), k(y)) for (n, k), (x, y) in zip(cases, values)] == expected
    found, _ = Kernel().run(lambda k: [compare(n, k(t, x), k(t, y)) for (n, t), (x, y) in zip(cases, values)])
    assert [bool(f) for f in found] == expected


def rounded(kind: Any, exactly: Fraction) -> float:
    """Return the nearest number of a float type, found by comparing neighbours."""
    near = kind(float(exactly)).value
    bits = getattr(NUMBER_TYPES["Uint32"], "of", None) and np.array([near], dtype_of(kind))
    neighbours = [near, *(float(n) for n in (np.nextafter(bits, dtype_of(kind).type(d))[0] for d in (-np.inf, np.inf)))]
    return min(neighbours, key=lambda n: abs(Fraction(n) - exactly) if math.isfinite(n) else Fraction(10) ** 400)


@pytest.mark.parametrize("kind", [cute.Float32, cute.Float16, cute.Float64])
def test_floats_round_once(kind: Any) -> None:
    rng = random.Random(kind.width)
    cases = [(rng.choice(["add", "sub", "mul", "truediv"]), some(rng, kind), some(rng, kind)) for _ in range(120)]
    cases = [c for c in cases if c[2] != 0 and abs(c[1]) < kind.max and abs(c[2]) < kind.max]
    made = [binary(name, kind(x), kind(y)).value for name, x, y in cases]
    for (name, x, y), value in zip(cases, made):
        p, q = Fraction(x), Fraction(y)
        true = {"add": p + q, "sub": p - q, "mul": p * q, "truediv": p / q}[name]
        if abs(true) < kind.max:
            assert value == rounded(kind, true), (name, x, y)
    found, _ = Kernel().run(lambda k: [binary(name, k(kind, x), k(kind, y)) for name, x, y in cases])
    assert all(map(same, found, made))


@pytest.mark.slow
def test_floor_and_remainder_of_floats_are_the_same_static_and_dynamic() -> None:
    rng = random.Random(8)
    cases = [
        (rng.choice(["floordiv", "mod", "min", "max"]), kind, some(rng, kind), some(rng, kind))
        for kind in FLOATS * 30
    ]  # fmt: skip
    made = [binary(name, kind(x), kind(y)).value for name, kind, x, y in cases]
    found, _ = Kernel().run(lambda k: [binary(name, k(kind, x), k(kind, y)) for name, kind, x, y in cases])
    assert [c for c, f, m in zip(cases, found, made) if not same(f, m)] == []
    assert cute.Float32(7.5) // 2 == 3.0 and cute.Float32(-7.5) % 2 == 0.5


@pytest.mark.slow
def test_conversions() -> None:
    rng = random.Random(21)
    kinds = [*INTEGERS, *FLOATS, *NARROW, cute.TFloat32]
    cases: list[tuple[Any, Any, Any]] = []
    while len(cases) < 400:
        of, to = rng.choice(kinds), rng.choice(kinds)
        x = some(rng, of)
        if of.is_float and to.is_integer and not to.min <= x <= to.max:
            continue  # The result is undefined.
        cases.append((of, to, x))
    expected = [to(of(x)).value for of, to, x in cases]
    found, _ = Kernel().run(lambda k: [to(k(of, x)) for of, to, x in cases])
    assert [(c, e, f) for c, e, f in zip(cases, expected, found) if not same(e, f)] == []
    for (of, to, x), e in zip(cases, expected):
        if to.is_integer:
            assert e == wrapped(int(x), to)
        elif to in FLOATS and abs(x) < to.max and to is not cute.BFloat16:
            assert e == rounded(to, Fraction(of(x).value))
        elif to in (cute.BFloat16, *NARROW) and abs(float(x)) < float(to.max) / 2:
            assert e == float(np.float32(of(x).value).astype(dtype_of(to))) or of is cute.Float64, (of, to, x)


def test_narrow_floats_saturate_and_compute_as_float32() -> None:
    assert cute.Float8E4M3FN(1000.0).value == 448.0 and cute.Float8E5M2(-1e9).value == -57344.0
    made = cute.Float8E4M3FN(1.5) * cute.Float8E4M3FN(1.25)
    assert type(made) is cute.Float32 and made.value == 1.875
    assert cute.TFloat32(1 + 2**-11).value == 1 + 2**-10 and type(-cute.Float8E5M2(2.0)) is cute.Float32


@pytest.mark.parametrize("n", [1, 7, 8])
@pytest.mark.parametrize("kind", [*NARROW, cute.TFloat32])
def test_vectors_of_narrow_floats(n: int, kind: Any) -> None:
    def body(x: Any, y: Any, z: Any) -> None:
        narrow = cute.Tensor.of(x).load().to(kind)
        cute.Tensor.of(y).store(narrow)
        cute.Tensor.of(z).store(narrow.to(cute.Float32) * 2)

    types = {"x": "f32", "y": kind.mlir_type, "z": "f32"}
    memory = {a: f'!cute.memref<{t}, gmem, "{n}:1">' for a, t in types.items()}
    x = np.linspace(-500, 3, n, dtype=np.float32)
    y, z = np.zeros(n, dtype_of(kind)), np.zeros(n, np.float32)
    run_kernel_on_cpu(trace_kernel(body, memory, threads=1), [x, y, z], threads=1)
    expected = [kind(float(v)).value for v in x]
    assert [float(v) for v in y] == expected and [float(v) for v in z] == [2 * v for v in expected]


def test_narrow_floats_need_the_instruction() -> None:
    with pytest.raises(CompileError) as caught:
        trace_kernel(lambda x: cute.Float8E4M3FN(cute.Float32.of(x)), {"x": "f32"}, chip="sm_80")
    assert "error F280: the conversion of Float32 to Float8E4M3FN needs sm_89 or later, but the target is sm_80" in str(
        caught.value
    )


def test_bits() -> None:
    assert cute.Float32(1.0).bitcast(cute.Uint32).value == 0x3F800000
    assert cute.Uint16(0x3C00).bitcast(cute.Float16).value == 1.0 and cute.Uint8(200).bitcast(cute.Int8).value == -56
    assert cute.Float8E4M3FN(-1.5).bitcast(cute.Uint8).value == 0xBC
    pairs = [(cute.Float32, cute.Int32, -2.5), (cute.Int16, cute.BFloat16, 0x3F80), (cute.Float8E5M2, cute.Uint8, 3.0)]
    found, _ = Kernel().run(lambda k: [k(of, x).bitcast(to) for of, to, x in pairs])
    assert [float(f) for f in found] == [float(of(x).bitcast(to).value) for of, to, x in pairs]


def test_common_types() -> None:
    C = cute

    def kind(x: Any) -> Any:
        return type(x)

    assert kind(C.Int8(1) + C.Int32(1)) is C.Int32 and kind(C.Int32(1) + C.Uint32(1)) is C.Uint32
    assert kind(C.Int64(1) + C.Float16(1)) is C.Float16 and kind(C.Float16(1) + C.BFloat16(1)) is C.Float32
    assert kind(C.Boolean(True) + C.Boolean(True)) is C.Int32 and kind(C.Boolean(True) & C.Boolean(False)) is C.Boolean
    assert kind(C.Int32(3) / 2) is C.Float32 and kind(C.Int64(3) / 2) is C.Float64 and (C.Int32(3) / 2).value == 1.5
    assert kind(C.Int8(1) << C.Int32(3)) is C.Int8 and kind(2 * C.Float16(1)) is C.Float16
    assert kind(C.Int32(2) * 1.5) is C.Float32 and kind(C.Float32(2) ** 0.5) is C.Float32
    assert (C.Int32(3) ** 4).value == 81 and (C.Int32(7) & 0xFFFFFFFF).value == 7 and C.Int32(0xFFFFFFFF).value == -1
    assert C.Int8.max == 127 and C.Uint8.min == 0 and C.Float16.inf.value == math.inf and C.Float32.epsilon == 2.0**-23


def test_known_ranges_save_instructions() -> None:
    def body(n: Any) -> None:
        x = cute.Int32.of(n)
        lane = x % 32
        assert (lane.facts.low, lane.facts.high) == (0, 31) and lane // 32 == 0 and lane % 64 is lane
        assert (x * 8) % 8 == 0 and ((x * 8 + 16) % 8).is_static and not (x % 8).is_static
        assert (lane * 4).facts == (0, 124, 4) and (x * 12).facts.divisor == 4

    text = text_of(trace_kernel(body, {"n": "i32"}))
    assert "rem" not in text and "div" not in text and "arith.andi" in text


def test_fastmath() -> None:
    def body(x: Any) -> None:
        a = cute.Float32.of(x)
        with cute.fastmath("fast"):
            a + a
            with cute.fastmath("none"):
                a * a
        a - a

    text = text_of(trace_kernel(body, {"x": "f32"}))
    assert "arith.addf %x, %x fastmath<fast>" in text and "arith.mulf %x, %x :" in text
    assert "arith.subf %x, %x fastmath<contract>" in text


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: cute.Int32(1) + (1 << 40), "error F230: 1099511627776 is out of range for Int32 (-2147483648 "
     "to 2147483647)"),
    (lambda: cute.Int8(300), "error F230: 300 is out of range for Int8 (-128 to 127)"),
    (lambda: cute.Uint8(1) + -1, "error F230: -1 is out of range for Uint8 (0 to 255)"),
    (lambda: cute.Int32(math.inf), "error F230: inf cannot be converted to Int32"),
    (lambda: cute.Int32(1e10), "error F230: 10000000000.0 is out of range for Int32 (-2147483648 to 2147483647)"),
    (lambda: cute.Int32("three"), "error F230: 'three' is not a number"),
    (lambda: cute.Int32(1) < cute.Uint32(1), "error F231: '<' is ambiguous because Int32 and Uint32 differ in "
     "signedness\nhint: convert one of them, e.g. Int32(b)"),
    (lambda: cute.Int64(1) >> cute.Uint64(1), "error F231: '>>' is ambiguous because Int64 and Uint64 differ in "
     "signedness\nhint: convert one of them, e.g. Int64(b)"),
    (lambda: cute.Int32(1) // 0, "error F232: division by zero: 1 / 0"),
    (lambda: cute.Int32(1) << 32, "error F233: Int32 has 32 bits and cannot be shifted by 32"),
    (lambda: cute.Float32(1) & 1, "error F236: '&' needs integers, got Float32"),
    (lambda: ~cute.Float32(1), "error F236: '~' needs an integer, got Float32"),
    (lambda: cute.Float32(1).bitcast(cute.Int64), "error F236: Float32 has 32 bits and cannot be reinterpreted "
     "as Int64, which has 64"),
    (lambda: cute.Float8E4M3FN.inf, "error F236: Float8E4M3FN has no infinity"),
    (lambda: cute.Int32.nan, "error F236: Int32 has no NaN because it is not a floating-point type"),
    (lambda: cute.math.popc(1.5), "error F236: popc needs an integer, got "
     "Float32"),
    (lambda: cute.fastmath("quick"), "error F238: fastmath: unknown flag 'quick'; flags: none, reassoc, nnan, "
     "ninf, nsz, arcp, contract, "
     "afn, fast"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_invalid_arguments_are_rejected(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(CompileError) as caught:
        call()
    assert str(caught.value) == text


def test_conversions_rejected_in_a_kernel() -> None:
    def body(n: Any) -> None:
        x = cute.Int32.of(n)
        for call, text in (
            (lambda: x // 0, "error F232: division by zero: 'n' (Int32) / 0"),
            (lambda: x << 32, "error F233: Int32 has 32 bits and cannot be shifted by 32"),
        ):
            with pytest.raises(CompileError) as caught:
                call()
            assert str(caught.value) == text

    trace_kernel(body, {"n": "i32"})


def test_merges() -> None:
    def body(n: Any, f: Any) -> None:
        x, y = cute.Int32.of(n), cute.Float32.of(f)
        assert form_of(x).join(form_of(3)).types == (parse_type("i32"),)
        assert form_of(1).join(form_of(2)).types == (parse_type("i32"),)
        assert form_of(1).join(form_of(1 << 40)).types == (parse_type("i64"),)
        assert form_of(1.0).join(form_of(2.0)).types == (parse_type("f32"),)
        for a, b, text in (
            (x, 1.5, "error F201: it is Int32 or 1.5, which Int32 cannot represent"),
            (x, 1 << 40, "error F201: it is Int32 or 1099511627776, which Int32 cannot represent"),
            (x, True, "error F202: it is Int32 or True"),
            (1, 2.0, "error F202: it is 1 or 2.0: Int32 or Float32\nhint: use the same type for both"),
            (x, y, "error F203: it is Int32 or Float32\nhint: convert one side, e.g. with cute.Int32(…)"),
            (cute.Int32(1), cute.Int64(1), "error F203: it is Int32(1) or Int64(1): Int32 or Int64\nhint: use the same "
             "type for both"),
        ):  # fmt: skip
            with pytest.raises(MergeError) as caught:
                form_of(a).join(form_of(b))
            assert str(caught.value) == text

    trace_kernel(body, {"n": "i32", "f": "f32"})


# --------------------------------------------------------------------------------------------------- random expressions


def expression(rng: random.Random, depth: int) -> Any:
    """Return a random expression tree: ("leaf", type, value) or (operation, left, right)."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.25:
            return ("python", rng.choice([1, 2, 3, 4, 8, 0.5, 1.25, True]))
        kind = rng.choice([*INTEGERS, *FLOATS, cute.Boolean])
        value = rng.randrange(0, 60) if kind.is_integer else rng.randrange(-64, 64) / 8
        return ("leaf", kind, value % 2 == 1 if kind is cute.Boolean else value)
    name = rng.choice([*OPERATIONS, "truediv", "neg", "abs", "to", "select", "lt", "eq"])
    extra = rng.choice([*INTEGERS, *FLOATS])
    return (name, expression(rng, depth - 1), expression(rng, depth - 1), extra)


def value_of(tree: Any, leaf: Callable[[Any, Any], Any]) -> Any:
    if tree[0] == "python":
        return tree[1]
    if tree[0] == "leaf":
        return leaf(tree[1], tree[2])
    name, left, right, extra = tree
    a = value_of(left, leaf)
    if name == "neg":
        return -a
    if name == "abs":
        return abs(a)
    if name == "to":
        return extra(a)
    b = value_of(right, leaf)
    if name == "select":
        return cute.where(compare("lt", cute.Float64(a), cute.Float64(b)), cute.Int64(a), cute.Int64(b))
    if name in ("lt", "eq"):
        return cute.Boolean(compare(name, a, b))
    return binary(name, a, b)


def defined_expressions(rng: random.Random, count: int) -> list[tuple[Any, Any]]:
    """Return random expressions with their static values. Every step is defined."""
    found: list[tuple[Any, Any]] = []
    while len(found) < count:
        tree = expression(rng, 4)
        if any(part in str(tree) for part in ("floordiv", "mod")) and rng.random() < 0.5:
            continue
        try:
            value = value_of(tree, lambda kind, x: kind(x))
        except (CompileError, ZeroDivisionError, OverflowError):
            continue
        if isinstance(value, cute.Numeric) and math.isfinite(float(value)) and not undefined(tree):
            found.append((tree, value))
    return found


def undefined(tree: Any) -> bool:
    """Return True if a step is undefined: a shift by too many bits, or an out-of-range float-to-integer conversion."""
    if tree[0] in ("python", "leaf"):
        return False
    name, *sides, extra = tree
    sides = sides[:1] if name in ("neg", "abs", "to") else sides
    values = [float(value_of(side, lambda kind, x: kind(x))) for side in sides]
    kind = {"to": extra, "select": cute.Int64}.get(name, cute.Float64)
    if kind.is_integer and any(not kind.min <= x <= kind.max for x in values):
        return True
    return (name in ("floordiv", "mod") and values[1] in (0, -1)) or any(map(undefined, sides))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_expressions(seed: int) -> None:
    cases = defined_expressions(random.Random(seed), 120)
    results: list[Any] = []

    def body(k: Kernel) -> Any:
        results.clear()
        for tree, _ in cases:
            made = value_of(tree, k)
            results.append(made)
            yield made

    found, _ = Kernel().run(body)
    for (tree, expected), made, f in zip(cases, results, found):
        assert type(made) is type(expected), tree
        assert same(f, expected.value), (tree, expected, f)
        facts = made.facts
        if facts is not None:  # The known range and divisor must hold for the result.
            assert (facts.low is None or facts.low <= f) and (facts.high is None or f <= facts.high), (tree, facts, f)
            assert int(f) % facts.divisor == 0, (tree, facts, f)
