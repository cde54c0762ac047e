"""Host functions and arithmetic on the interpreter, compared with Python integers and NumPy."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interp_support import parse

from cute_dialect.interp import InterpError, run_function


def function(body: str, params: str, results: str):
    return parse(f"func.func @f({params}) -> ({results}) {{ {body} }}")


def wrap(v: int, width: int) -> int:
    half = 1 << (width - 1)
    return (v + half) % (1 << width) - half


def trunc_div(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def unsigned(v: int, width: int) -> int:
    return v % (1 << width)


ORACLE = {
    "addi": lambda a, b, w: a + b,
    "subi": lambda a, b, w: a - b,
    "muli": lambda a, b, w: a * b,
    "divsi": lambda a, b, w: trunc_div(a, b),
    "remsi": lambda a, b, w: a - trunc_div(a, b) * b,
    "floordivsi": lambda a, b, w: a // b,
    "ceildivsi": lambda a, b, w: -(-a // b),
    "divui": lambda a, b, w: unsigned(a, w) // unsigned(b, w),
    "remui": lambda a, b, w: unsigned(a, w) % unsigned(b, w),
    "ceildivui": lambda a, b, w: -(-unsigned(a, w) // unsigned(b, w)),
    "andi": lambda a, b, w: a & b,
    "ori": lambda a, b, w: a | b,
    "xori": lambda a, b, w: a ^ b,
    "minsi": lambda a, b, w: min(a, b),
    "maxsi": lambda a, b, w: max(a, b),
    "minui": lambda a, b, w: min(unsigned(a, w), unsigned(b, w)),
    "maxui": lambda a, b, w: max(unsigned(a, w), unsigned(b, w)),
    "shli": lambda a, b, w: a << (b % w),
    "shrsi": lambda a, b, w: a >> (b % w),
    "shrui": lambda a, b, w: unsigned(a, w) >> (b % w),
}


def samples(width: int) -> st.SearchStrategy[int]:
    lo, hi = -(1 << (width - 1)), (1 << (width - 1)) - 1
    return st.one_of(st.integers(lo, hi), st.integers(-9, 9), st.sampled_from([lo, lo + 1, hi, hi - 1]))


@pytest.mark.sample(every=17)
@pytest.mark.parametrize("width", [8, 13, 32, 64])
@pytest.mark.parametrize("name", ORACLE)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_integer_arithmetic_is_exact(name: str, width: int, data: st.DataObject) -> None:
    """Arithmetic on scalars, arrays and mixtures of both equals Python integers wrapped to the bit width."""
    pairs = data.draw(st.lists(st.tuples(samples(width), samples(width)), min_size=2, max_size=12))
    if "div" in name or "rem" in name:
        pairs = [(a, b or 1) for a, b in pairs]
        pairs = [(a, b if b != -1 or "u" in name else 3) for a, b in pairs]
    if name.startswith("sh"):
        pairs = [(a, b % width) for a, b in pairs]
    want = [wrap(ORACLE[name](a, b, width), width) for a, b in pairs]
    t = f"i{width}"
    module = function(f"%r = arith.{name} %a, %b : {t}\nfunc.return %r : {t}", f"%a: {t}, %b: {t}", t)
    a, b = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    assert [run_function(module, "f", p)[0] for p in pairs] == want
    assert run_function(module, "f", [a, b])[0].tolist() == want
    mixed = [wrap(ORACLE[name](int(x), pairs[0][1], width), width) for x in a]
    assert run_function(module, "f", [a, pairs[0][1]])[0].tolist() == mixed


@pytest.mark.parametrize("pred", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
@pytest.mark.parametrize("width", [1, 32])
def test_comparisons(pred: str, width: int) -> None:
    t = f"i{width}"
    module = function(f"%r = arith.cmpi {pred}, %a, %b : {t}\nfunc.return %r : i1", f"%a: {t}, %b: {t}", "i1")
    values = [0, -1] if width == 1 else [0, 1, -1, 5, 2**31 - 1, -(2**31)]
    ops = {"eq": "__eq__", "ne": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}
    for x in values:
        for y in values:
            u, v = (unsigned(x, width), unsigned(y, width)) if pred[0] == "u" else (x, y)
            want = getattr(u, ops[pred[-2:]])(v)
            assert run_function(module, "f", [x, y]) == (want,)
            assert run_function(module, "f", [np.array([x, x]), y])[0].tolist() == [want, want]


def test_violated_no_wrap_flags() -> None:
    module = parse(
        """
        llvm.func @add(%a: i32, %b: i32) -> i32 {
          %r = "llvm.add"(%a, %b) <{overflowFlags = #llvm.overflow<nsw>}> : (i32, i32) -> i32
          llvm.return %r : i32
        }
        func.func @mul(%a: i64, %b: i64) -> i64 {
          %r = arith.muli %a, %b overflow<nsw> : i64
          func.return %r : i64
        }
        func.func @sub(%a: i32, %b: i32) -> i32 {
          %r = "arith.subi"(%a, %b) <{overflowFlags = #arith.overflow<nuw>}> : (i32, i32) -> i32
          func.return %r : i32
        }
        """
    )
    big = 2**31 - 1
    assert run_function(module, "add", [big - 1, 1]) == (big,)
    with pytest.raises(InterpError, match=r"llvm\.add: 2147483647 \+ 1 overflows i32") as e:
        run_function(module, "add", [big, 1])
    assert e.value.kind == "overflow"
    with pytest.raises(InterpError, match="overflows i32"):
        run_function(module, "add", [np.array([0, big, 5]), 1])
    assert run_function(module, "add", [np.array([0, big, 5]), 1], overflow="wrap")[0].tolist() == [1, -big - 1, 6]
    assert run_function(module, "mul", [3037000499, 3037000499]) == (3037000499**2,)
    with pytest.raises(InterpError, match="overflows i64"):
        run_function(module, "mul", [np.array([1, 3037000500]), 3037000500])
    assert run_function(module, "sub", [7, 7]) == (0,)
    with pytest.raises(InterpError, match="3 - 5 overflows i32"):
        run_function(module, "sub", [3, 5])


def test_overflow_in_inactive_lanes_is_ignored() -> None:
    module = function(
        """
        %c0 = arith.constant 0 : i32
        %big = arith.constant 2147483647 : i32
        %c = arith.cmpi slt, %a, %c0 : i32
        %r = scf.if %c -> (i32) {
          %s = arith.addi %a, %big overflow<nsw> : i32
          scf.yield %s : i32
        } else {
          scf.yield %a : i32
        }
        func.return %r : i32
        """,
        "%a: i32",
        "i32",
    )
    assert run_function(module, "f", [np.array([-1, 5, -7])])[0].tolist() == [2**31 - 2, 5, 2**31 - 8]


def test_division_by_zero_only_counts_in_active_lanes() -> None:
    body = """
        %c0 = arith.constant 0 : i32
        %c = arith.cmpi ne, %b, %c0 : i32
        %r = scf.if %c -> (i32) {
          %s = arith.divsi %a, %b : i32
          scf.yield %s : i32
        } else {
          scf.yield %c0 : i32
        }
        func.return %r : i32
    """
    guarded = function(body, "%a: i32, %b: i32", "i32")
    assert run_function(guarded, "f", [np.array([9, 8, -7]), np.array([2, 0, 2])])[0].tolist() == [4, 0, -3]
    plain = function("%r = arith.divsi %a, %b : i32\nfunc.return %r : i32", "%a: i32, %b: i32", "i32")
    with pytest.raises(InterpError, match="division by zero") as e:
        run_function(plain, "f", [np.array([9, 8]), np.array([2, 0])])
    assert e.value.kind == "division"
    with pytest.raises(InterpError, match="-2147483648 by -1 overflows"):
        run_function(plain, "f", [-(2**31), -1])


def test_structs_in_and_out() -> None:
    t = "!llvm.struct<(i32, struct<(struct<()>, i64)>)>"
    module = parse(
        f"""
        llvm.func @f(%s: {t}, %v: i64) -> {t} {{
          %a = llvm.extractvalue %s[0] : {t}
          %b = llvm.extractvalue %s[1, 1] : {t}
          %c = arith.addi %b, %v : i64
          %u = "llvm.mlir.poison"() : () -> {t}
          %x = llvm.insertvalue %a, %u[0] : {t}
          %y = llvm.insertvalue %c, %x[1, 1] : {t}
          llvm.return %y : {t}
        }}
        """
    )
    assert run_function(module, "f", [(7, ((), 8)), 2]) == ((7, ((), 10)),)
    ((first, (_, second)),) = run_function(module, "f", [(7, ((), np.arange(3))), 2])
    assert first == 7
    assert second.tolist() == [2, 3, 4]


def test_poison_is_carried_and_reported_when_it_decides() -> None:
    module = function(
        """
        %p = ub.poison : i32
        %q = arith.addi %p, %a : i32
        func.return %q, %a : i32, i32
        """,
        "%a: i32",
        "i32, i32",
    )
    assert run_function(module, "f", [3]) == (None, 3)
    branch = function(
        """
        %p = ub.poison : i1
        %r = scf.if %p -> (i32) { scf.yield %a : i32 } else { scf.yield %a : i32 }
        func.return %r : i32
        """,
        "%a: i32",
        "i32",
    )
    with pytest.raises(InterpError, match="branch on poison") as e:
        run_function(branch, "f", [3])
    assert e.value.kind == "poison"


def test_loops_and_index_switch() -> None:
    module = function(
        """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %one = arith.constant 1 : i64
        %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %one) -> (i64) {
          %k = scf.index_switch %i -> i64
          case 2 { %t = arith.constant 10 : i64
                   scf.yield %t : i64 }
          default { %t = arith.constant 2 : i64
                    scf.yield %t : i64 }
          %next = arith.muli %acc, %k : i64
          scf.yield %next : i64
        }
        func.return %r : i64
        """,
        "%n: index",
        "i64",
    )
    assert run_function(module, "f", [5]) == (160,)
    assert run_function(module, "f", [np.arange(6)])[0].tolist() == [1, 2, 4, 40, 80, 160]


@pytest.mark.parametrize("op", ["addf", "subf", "mulf", "divf"])
@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64"])
def test_float_arithmetic_rounds_once(op: str, name: str) -> None:
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}[name]
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(200).astype(dtype) for _ in range(2))
    module = function(f"%r = arith.{op} %a, %b : {name}\nfunc.return %r : {name}", f"%a: {name}, %b: {name}", name)
    (got,) = run_function(module, "f", [a, b])
    wide = np.longdouble if name == "f64" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    want = {"addf": x + y, "subf": x - y, "mulf": x * y, "divf": x / y}[op].astype(np.float64).astype(dtype)
    assert got.dtype == dtype
    assert np.array_equal(got.view(np.uint8), want.view(np.uint8))


def test_fma_has_one_rounding() -> None:
    module = function("%r = math.fma %a, %b, %c : f32\nfunc.return %r : f32", "%a: f32, %b: f32, %c: f32", "f32")
    from fractions import Fraction

    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(300).astype(np.float32) for _ in range(2))
    c = (-(a * b)).astype(np.float32) + rng.standard_normal(300).astype(np.float32) * np.float32(2**-24)
    c[:50] = np.float32(2**-40)
    a[:50], b[:50] = np.float32(1 + 2**-12), np.float32(1 + 2**-12)  # The product lies halfway between two floats.
    (got,) = run_function(module, "f", [a, b, c])
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist()):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        near = np.float32(float(exact)) if exact else np.float32(0)
        best = min(
            (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))),
            key=lambda f: (abs(Fraction(float(f)) - exact), int(np.float32(f).view(np.uint32)) & 1),
        )
        assert r == float(best)


def test_conversions() -> None:
    to_int = function("%r = arith.fptosi %a : f32 to i32\nfunc.return %r : i32", "%a: f32", "i32")
    values = np.array([1.9, -1.9, 3e9, -3e9, math.nan, 2147483520.0], np.float32)
    assert run_function(to_int, "f", [values], overflow="wrap")[0].tolist() == [
        1,
        -1,
        2**31 - 1,
        -(2**31),
        0,
        2147483520,
    ]
    from_u = function("%r = arith.uitofp %a : i8 to f32\nfunc.return %r : f32", "%a: i8", "f32")
    assert run_function(from_u, "f", [-1]) == (255.0,)
    ext = function(
        "%r = arith.extui %a : i8 to i32\n%s = arith.extsi %a : i8 to i32\nfunc.return %r, %s : i32, i32",
        "%a: i8",
        "i32, i32",
    )
    assert run_function(ext, "f", [-2]) == (254, -2)
    trunc = function("%r = arith.trunci %a : i32 to i8\nfunc.return %r : i8", "%a: i32", "i8")
    assert run_function(trunc, "f", [np.array([300, -1, 128])])[0].tolist() == [44, -1, -128]
    to_bf = function("%r = arith.truncf %a : f32 to bf16\nfunc.return %r : bf16", "%a: f32", "bf16")
    x = np.array([1.00390625, 1.01171875, -3.3], np.float32)
    assert np.array_equal(run_function(to_bf, "f", [x])[0], x.astype(ml_dtypes.bfloat16))
    cast = function("%r = arith.bitcast %a : f32 to i32\nfunc.return %r : i32", "%a: f32", "i32")
    assert run_function(cast, "f", [1.0]) == (0x3F800000,)


@pytest.mark.parametrize(
    "pred", ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"]
)
def test_float_comparisons(pred: str) -> None:
    module = function(f"%r = arith.cmpf {pred}, %a, %b : f32\nfunc.return %r : i1", "%a: f32, %b: f32", "i1")
    values = [0.0, 1.0, -1.0, math.inf, math.nan]
    for x in values:
        for y in values:
            nan = math.isnan(x) or math.isnan(y)
            if pred in ("ord", "uno"):
                want = nan == (pred == "uno")
            else:
                base = {"eq": x == y, "gt": x > y, "ge": x >= y, "lt": x < y, "le": x <= y, "ne": x != y}[pred[1:]]
                want = (pred[0] == "u") if nan else base
            assert run_function(module, "f", [x, y]) == (want,)


def test_min_and_max_of_nan() -> None:
    body = """
        %r = arith.maximumf %a, %b : f32
        %s = arith.maxnumf %a, %b : f32
        func.return %r, %s : f32, f32
    """
    module = function(body, "%a: f32, %b: f32", "f32, f32")
    got = run_function(module, "f", [math.nan, 2.0])
    assert math.isnan(got[0])
    assert got[1] == 2.0


def test_vectors() -> None:
    module = function(
        """
        %c2 = arith.constant 2 : i64
        %v0 = "vector.broadcast"(%a) : (i32) -> vector<4xi32>
        %v1 = "vector.insert"(%b, %v0) <{static_position = array<i64: 1>}> : (i32, vector<4xi32>) -> vector<4xi32>
        %v2 = "llvm.insertelement"(%v1, %b, %i) : (vector<4xi32>, i32, i32) -> vector<4xi32>
        %k = arith.constant dense<[10, 20, 30, 40]> : vector<4xi32>
        %v3 = arith.addi %v2, %k : vector<4xi32>
        %v4 = "vector.shuffle"(%v3, %k) <{mask = array<i64: 3, 4, 1, 7>}>
            : (vector<4xi32>, vector<4xi32>) -> vector<4xi32>
        %x = "vector.extract"(%v4) <{static_position = array<i64: 2>}> : (vector<4xi32>) -> i32
        %sum = "vector.reduction"(%v4) <{kind = #vector.kind<add>}> : (vector<4xi32>) -> i32
        %h = "vector.bitcast"(%v4) : (vector<4xi32>) -> vector<8xi16>
        func.return %v4, %x, %sum, %h : vector<4xi32>, i32, i32, vector<8xi16>
        """,
        "%a: i32, %b: i32, %i: i32",
        "vector<4xi32>, i32, i32, vector<8xi16>",
    )

    def want(a: int, b: int, i: int) -> list[int]:
        v = [a, b, a, a]
        v[i] = b
        v = [p + q for p, q in zip(v, (10, 20, 30, 40))]
        return [v[3], 10, v[1], 40]

    v, x, total, h = run_function(module, "f", [1, 2, 3])
    assert v.tolist() == want(1, 2, 3)
    assert x == want(1, 2, 3)[2]
    assert total == sum(want(1, 2, 3))
    assert h.tolist() == v.view(np.int16).tolist()
    a, i = np.arange(5), np.array([0, 1, 2, 3, 0])
    v, x, total, h = run_function(module, "f", [a, 7, i])
    assert v.tolist() == [want(int(p), 7, int(q)) for p, q in zip(a, i)]
    assert x.tolist() == v[:, 2].tolist()
    assert total.tolist() == v.sum(axis=1).tolist()
    assert h.shape == (5, 8)
    with pytest.raises(InterpError, match=r"vector index \d+ is not in \[0, 4\)"):
        run_function(module, "f", [1, 2, 4])


def test_select_on_structures_and_lanes() -> None:
    t = "!llvm.struct<(i32, vector<2xf32>)>"
    module = parse(
        f"""
        llvm.func @f(%c: i1, %a: {t}, %b: {t}) -> {t} {{
          %r = "llvm.select"(%c, %a, %b) : (i1, {t}, {t}) -> {t}
          llvm.return %r : {t}
        }}
        """
    )
    c = np.array([True, False, True])
    ((n, v),) = run_function(module, "f", [c, (1, np.array([1.0, 2.0])), (np.arange(3), np.array([3.0, 4.0]))])
    assert n.tolist() == [1, 1, 1]
    assert v.tolist() == [[1, 2], [3, 4], [1, 2]]


def test_wide_evaluation_of_a_layout_function() -> None:
    """One call evaluates (4,(8,2)):(2,(8,1)) at all its coordinates, as the lowering tests do."""
    module = function(
        """
        %c4 = arith.constant 4 : i32
        %c8 = arith.constant 8 : i32
        %c2 = arith.constant 2 : i32
        %i = arith.remui %x, %c4 : i32
        %j = arith.divui %x, %c4 : i32
        %j0 = arith.remui %j, %c8 : i32
        %j1 = arith.divui %j, %c8 : i32
        %o0 = arith.muli %i, %c2 overflow<nsw> : i32
        %o1 = arith.muli %j0, %c8 overflow<nsw> : i32
        %o2 = arith.addi %o0, %o1 overflow<nsw> : i32
        %o = arith.addi %o2, %j1 overflow<nsw> : i32
        func.return %o : i32
        """,
        "%x: i32",
        "i32",
    )
    x = np.arange(64)
    assert np.array_equal(run_function(module, "f", [x])[0], x % 4 * 2 + x // 4 % 8 * 8 + x // 32)
