"""``cute.math``: results for Python numbers equal Python's, and results in kernels are close or exact."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from test_numbers import Kernel
from tracing import run_kernel_on_cpu, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.errors import CompileError
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.int_tuples import to_ssa

REFERENCES = {
    "exp": math.exp, "exp2": lambda x: 2.0**x, "expm1": math.expm1, "log": math.log, "log2": math.log2,
    "log10": math.log10, "log1p": math.log1p, "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x),
    "rcp": lambda x: 1 / x, "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "tanh": math.tanh, "erf": math.erf, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
    "round": round, "absf": abs,
}  # fmt: skip
"""Function -> what it is of a double."""

TYPES = (cute.Float16, cute.BFloat16, cute.Float32, cute.Float64)


def near(kind: Any, found: float, true: float, units: float = 4) -> bool:
    return abs(found - true) <= units * kind.epsilon * max(abs(true), 2.0**-6)


@pytest.mark.parametrize("kind", TYPES)
def test_functions_of_a_number(kind: Any) -> None:
    values = [kind(x).value for x in (0.3, 0.75, 0.98)]
    cases = [(name, x) for name in REFERENCES for x in values]
    static = [getattr(cute.math, name)(kind(x)) for name, x in cases]
    assert all(type(s) is kind for s in static)
    assert [c for c, s in zip(cases, static) if not near(kind, s.value, REFERENCES[c[0]](c[1]), 1)] == []
    found, text = Kernel().run(lambda k: [getattr(cute.math, name)(k(kind, x)) for name, x in cases])
    assert [(c, float(f)) for c, f in zip(cases, found) if not near(kind, float(f), REFERENCES[c[0]](c[1]))] == []
    assert "_approx" not in text


def test_approximate_instructions() -> None:
    names = ["exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "rcp", "tanh"]

    def body(k: Kernel) -> Any:
        return [getattr(cute.math, name)(k(cute.Float32, 0.7), fastmath=True) for name in names]

    found, text = Kernel().run(body)
    for name, f in zip(names, found):
        assert abs(f - REFERENCES[name](float(np.float32(0.7)))) < 6e-4, name
    assert text.count("_approx") == len(names) and "math." not in text
    values, text = Kernel().run(lambda k: [cute.math.sin(k(cute.Float32, 0.5), fastmath=True)])
    assert "fastmath<fast>" in text and near(cute.Float32, float(values[0]), math.sin(0.5))


def test_functions_of_a_vector() -> None:
    def body(x: Any, y: Any) -> None:
        a = cute.Tensor.of(x).load()
        b = cute.math.exp2(a, fastmath=True) + cute.math.sqrt(a) + cute.math.fma(a, 2.0, a) + cute.math.max(a, 0.5)
        cute.Tensor.of(y).store(b + cute.math.powf(a, 0.5, fastmath=True) + cute.math.copysign(1.0, a))

    types = {n: '!cute.memref<f32, gmem, "8:1">' for n in "xy"}
    x, y = np.linspace(0.1, 2, 8, dtype=np.float32), np.zeros(8, np.float32)
    run_kernel_on_cpu(trace_kernel(body, types, threads=1), [x, y], threads=1)
    assert np.allclose(y, 2.0**x + 2 * np.sqrt(x) + 3 * x + np.maximum(x, 0.5) + 1, rtol=1e-5)


def test_fma_is_rounded_once() -> None:
    a, b = float(np.float32(1 + 2**-12)), float(np.float32(1 - 2**-12))
    static = cute.math.fma(cute.Float32(a), cute.Float32(b), -1.0)
    assert static.value == -(2.0**-24)
    found, _ = Kernel().run(lambda k: [cute.math.fma(k(cute.Float32, a), b, k(cute.Float32, -1.0))])
    assert found[0] == static.value
    assert cute.math.fma(cute.Float64(0.1), 10.0, -1.0).value == float(np.float64(2.0**-54))
    assert type(cute.math.fma(cute.Float16(1), 2, 3.0)) is cute.Float16


def test_bits() -> None:
    rng = random.Random(1)
    kinds = (cute.Int32, cute.Uint32, cute.Int64, cute.Uint64)
    cases = [(k, rng.randrange(k.min, k.max + 1)) for k in kinds for _ in range(6)] + [(k, 0) for k in kinds]

    def true(kind: Any, x: int) -> list[int]:
        word = format(x % (1 << kind.width), f"0{kind.width}b")
        brev = int(word[::-1], 2)
        signed = brev - (1 << kind.width) if kind.signed and word[-1] == "1" else brev
        return [word.count("1"), len(word) - len(word.lstrip("0")), signed]

    expected = [n for kind, x in cases for n in true(kind, x)]
    functions = (cute.math.popc, cute.math.clz, cute.math.brev)
    assert [f(kind(x)).value for kind, x in cases for f in functions] == expected
    found, _ = Kernel().run(lambda k: [f(k(kind, x)) for kind, x in cases for f in functions])
    assert [int(f) for f in found] == expected


def test_least_and_greatest() -> None:
    assert cute.max(3, 7, cute.Int32(5)).value == 7 and cute.min(2.5, cute.Float16(1)).value == 1.0
    assert cute.clamp(cute.Int32(9), 0, 4).value == 4 and math.isnan(cute.max(cute.Float32(1), math.nan).value)
    found, _ = Kernel().run(
        lambda k: [
            cute.max(k(cute.Int32, -3), 2), cute.min(k(cute.Uint32, 1 << 31), cute.Uint32(5)),
            cute.clamp(k(cute.Float32, -2.5), -1.0, 1.0), cute.max(k(cute.Float32, math.nan), 1.0),
            cute.max(1.5, k(cute.Float16, 0.25), 0.5), cute.where(k(cute.Int32, 3) > 2, 1, k(cute.Int32, 7)),
        ]
    )  # fmt: skip
    assert [float(f) for f in found[:3]] == [2.0, 5.0, -1.0] and math.isnan(found[3])
    assert [float(f) for f in found[4:]] == [1.5, 1.0]


def test_python_builtins() -> None:
    pairs = (divmod(cute.Int32(17), 5), divmod(17, cute.Int32(5)))
    assert [[x.value for x in pair] for pair in pairs] == [[3, 2], [3, 2]]
    assert round(cute.Float32(2.5)).value == 2 and math.floor(cute.Float32(-0.5)).value == -1
    assert type(math.ceil(cute.Float64(1.5))) is cute.Int64 and math.trunc(cute.Int8(3)).value == 3
    assert (np.float32(2) * cute.Float16(3)).value == 6 and type(np.int64(2) + cute.Int32(1)) is cute.Int64
    with pytest.raises(CompileError, match=r"round\(\) with a number of digits is not supported"):
        round(cute.Float32(2.5), 1)


def test_special_values() -> None:
    inf, nan = math.inf, math.nan
    F = cute.Float32
    assert cute.math.log(F(0.0)).value == -inf and math.isnan(cute.math.sqrt(F(-1.0)).value)
    assert cute.math.exp(F(1000.0)).value == inf and cute.math.rsqrt(F(0.0)).value == inf
    assert math.isnan(cute.math.sin(F(nan)).value) and cute.math.rcp(F(-inf)).value == 0.0
    assert str(cute.math.floor(F(-0.0)).value) == "-0.0" and cute.math.ceil(F(inf)).value == inf
    assert type(cute.math.sqrt(cute.Int64(4))) is cute.Float64 and type(cute.math.exp(cute.Boolean(True))) is F


# -------------------------------------------------------------------------------------------------- divisors, promises


@pytest.mark.slow
def test_prepared_divisors() -> None:
    rng = random.Random(2)
    top = (1 << 31) - 1
    numbers = [0, 1, top, top - 1, *(rng.randrange(top) for _ in range(20))]
    divisors = [1, 2, 3, 7, 8, 641, 65535, 65536, top, top - 1, *(rng.randrange(1, top) for _ in range(10))]
    cases = [(n, d) for d in divisors for n in rng.sample(numbers, 5)]

    def body(k: Kernel) -> Any:
        for kind in (cute.Int32, cute.Uint32):
            for n, d in cases:
                yield from divmod(k(kind, n), cute.fast_divmod_create_divisor(k(kind, d)))

    found, _ = Kernel().run(body)
    assert [int(f) for f in found] == [x for n, d in cases for x in divmod(n, d)] * 2
    d = cute.FastDivmodDivisor(5)
    assert (cute.Int32(17) // d).value == 3 and (17 % d).value == 2


def test_promises() -> None:
    def body(x: Any, out: Any) -> None:
        current().state["asserts"] = True
        n = cute.Int32.of(current().value("cute.memref.load", [x, to_ssa(0)]))
        m = cute.assume(n, divby=8)
        assert m % 8 == 0 and str(cute.make_layout((4, m), stride=(m, 1))) == "(4,?{div=8}):(?{div=8},1)"
        b = cute.assume(n, range=(0, 100))
        assert (b.facts.low, b.facts.high) == (0, 99)
        current().op("cute.memref.store", [out, to_ssa(0), (m + b).ssa])

    types = {n: '!cute.memref<i32, gmem, "1:1">' for n in ("x", "out")}
    module, out = trace_kernel(body, types, threads=1), np.zeros(1, np.int32)
    run_kernel_on_cpu(module, [np.array([16], np.int32), out], threads=1)
    assert out[0] == 32
    for wrong, text in ((12, "cute.assume promised a multiple of 8"), (800, "cute.assume promised less than 100")):
        with pytest.raises(Exception, match=text):
            run_kernel_on_cpu(trace_kernel(body, types, threads=1), [np.array([wrong], np.int32), out], threads=1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: cute.assume(12, divby=8), "error F239: assume: 12 is not a multiple of 8"),
        (lambda: cute.assume(12, range=(0, 12)), "error F239: assume: 12 is not in the promised range"),
        (lambda: cute.assume(1.5, divby=2), "error F239: assume needs an integer, got 1.5"),
        (lambda: cute.assume(8, divby=0), "error F239: assume: divby must be an integer of at least 1, got 0"),
        (lambda: cute.assume(8, align=16), "error F239: assume: align= needs a pointer, got 8"),
        (lambda: cute.FastDivmodDivisor(0), "error F232: the divisor must be at least 1, got 0"),
        (lambda: cute.FastDivmodDivisor(1.0), "error F239: the divisor must be Int32 or Uint32, got 1.0"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_rejected(call: Any, text: str) -> None:
    with pytest.raises(CompileError) as caught:
        call()
    assert str(caught.value) == text
