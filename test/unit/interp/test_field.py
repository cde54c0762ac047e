"""Runs over a prime field: kernels that equal their reference, kernels that do not, and what is refused."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import ml_dtypes as ml_dtypes  # registers bfloat16 and the fp8 types in numpy
import numpy as np
import pytest
from numpy.typing import NDArray

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.interp.errors import Fault
from cute_dialect.interp.field import (
    LOG2_E,
    Degrees,
    Field,
    FieldArray,
    FunctionDegrees,
    Functions,
    elements_of,
    held,
    primes_for,
)
from cute_dialect.interp.memory.tensor_map import combined
from cute_dialect.interp.types import float_leaf
from cute_dialect.interp.validation.equivalence import error_bound, runs_for
from cute_dialect.interp.values import to_lanes
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.forward import attention_text
from cute_dialect.kernels.conv.config import Window
from cute_dialect.kernels.conv.direct import DirectConfig, direct_text
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.sgemm import sgemm_text
from cute_dialect.kernels.rows.forward import row_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import Kernel
from cute_dialect.tools import cute_run
from cute_dialect.tools.check_expressions import CheckError
from cute_dialect.tools.run_check import compare_over_field

AnyArray = NDArray[np.generic]
Reference = Callable[[FieldArray, FieldArray, FieldArray], None]


class Case(NamedTuple):
    """A GEMM: the text of its kernel, (M, N, K), the element type, the axes of B, and the type of the result."""

    text: Callable[[], str]
    shape: tuple[int, int, int]
    dtype: str
    is_transposed: bool = True
    output: str = ""

    def arrays(self) -> tuple[AnyArray, ...]:
        """Return operands and result."""
        m, n, k = self.shape
        shapes = (m, k), (n, k) if self.is_transposed else (k, n), (m, n)
        return tuple(np.zeros(s, t) for s, t in zip(shapes, (self.dtype, self.dtype, self.output or self.dtype)))


SMALL = GemmConfig(tile=(64, 128, 64), stages=2, deferred=False, sms=2)
CASES: dict[str, Case] = {
    "sgemm": Case(lambda: sgemm_text("smem"), (70, 66, 33), "f4", False),
    "sgemm warptile": Case(lambda: sgemm_text("warptile"), (132, 132, 40), "f4", False),
    "sm_80": Case(lambda: ampere_gemm_text(AmpereConfig()), (130, 136, 200), "f2"),
    "sm_90": Case(lambda: gemm_text(GemmConfig()), (65, 72, 72), "f2"),
    "sm_90 small": Case(lambda: gemm_text(SMALL), (100, 200, 200), "f2"),
    "sm_90 ping-pong": Case(lambda: gemm_text(SMALL._replace(schedule="pingpong", stages=3)), (192, 264, 200), "f2"),
    "sm_90 bf16": Case(lambda: gemm_text(SMALL._replace(element="bf16", output="bf16")), (65, 80, 144), "bfloat16"),
    "sm_90 tf32": Case(
        lambda: gemm_text(SMALL._replace(element="tf32", output="f32", tile=(64, 128, 32))), (65, 80, 76), "f4"
    ),
    "sm_90 fp8": Case(
        lambda: gemm_text(SMALL._replace(element="f8E4M3FN", tile=(64, 128, 128))),
        (65, 80, 144),
        "float8_e4m3fn",
        True,
        "f2",
    ),
}


@lru_cache
def kernel(name: str) -> Kernel:
    """Return a compiled kernel."""
    return compile_cute(CASES[name].text(), emit="base", filename=f"{name}.mlir").kernel("launch")


def product(a: FieldArray, b: FieldArray, c: FieldArray) -> None:
    """Compute c = a b."""
    c[:] = a @ b


def product_nk(a: FieldArray, b: FieldArray, c: FieldArray) -> None:
    """Compute c = a b^T."""
    c[:] = a @ b.T


@pytest.mark.parametrize("name", ["sgemm", *(pytest.param(n, marks=pytest.mark.slow) for n in CASES if n != "sgemm")])
def test_a_gemm_equals_its_reference(name: str) -> None:
    case = CASES[name]
    reference: Reference = product_nk if case.is_transposed else product
    (verdict,) = cute.testing.assert_equivalent(kernel(name), reference, [case.arrays()])
    assert (verdict.prime, verdict.degree) == (primes_for([case.dtype])[0], 2)
    assert verdict.bound <= 2.0**-40
    assert any("rounding" in note for note in verdict.notes) == ("sgemm" not in name)


@pytest.mark.slow
def test_a_convolution_equals_its_reference() -> None:
    window = Window((3, 2), (1, 1), (1, 0))
    config = DirectConfig(
        "f16", "f16", window, 5, 6, vectors=(1, 1, 2), groups=1, tile=(3, 7), warps=(1, 2), held=False, atoms=1,
        rolled=True,
    )  # fmt: skip
    f = compile_cute(direct_text(config), emit="base", filename="conv.mlir").kernel("launch")

    def reference(x: FieldArray, w: FieldArray, y: FieldArray) -> None:
        (c, width, height, images), (p, q) = x.shape, y.shape[1:3]
        padded = FieldArray(np.zeros((c, width + 3, height + 3, images), np.int64), x.algebra)
        at = window.before[1], window.before[0]
        padded[:, at[0] : at[0] + width, at[1] : at[1] + height] = x
        y[:] = 0
        for r in range(3):
            for s in range(2):
                taps = FieldArray(w.elements[:, r * 2 + s], x.algebra).T  # (k, c)
                seen = padded[:, s : s + p, r : r + q].reshape(c, -1)
                y[:] = y + (taps @ seen).reshape(*y.shape)

    for height, width in ((7, 6), (6, 13)):
        x, w = np.zeros((2, height, width, 5), np.float16), np.zeros((6, 6, 5), np.float16)
        y = np.zeros((2, *window.result((height, width)), 6), np.float16)
        cute.testing.assert_equivalent(f, reference, [(x.T, w.T, y.T)])


@pytest.mark.slow
def test_a_difference_names_element_and_term() -> None:
    def drops_last_k(a: FieldArray, b: FieldArray, c: FieldArray) -> None:
        c[:] = a[:, :-1] @ b[:-1]

    with pytest.raises(AssertionError) as e:
        cute.testing.assert_equivalent(kernel("sgemm"), drops_last_k, [CASES["sgemm"].arrays()])
    assert "of 4620 elements differ, the first is mC[0, 0]" in str(e.value)
    assert "the term mA[0, 32] * mB[32, 0] has the coefficient 1, expected 0" in str(e.value)


@cute.kernel
def halve_kernel(x: cute.Tensor, y: cute.Tensor) -> None:
    i = cute.arch.thread_idx().x
    y[i] = x[i] * 0.5 * x[i] - x[i] * 0.25


@cute.jit
def halve(x: cute.Tensor, y: cute.Tensor) -> None:
    halve_kernel(x, y).launch(grid=1, block=32)


@cute.kernel
def exponential_kernel(x: cute.Tensor, y: cute.Tensor) -> None:
    i = cute.arch.thread_idx().x
    y[i] = cute.math.exp(x[i])


@cute.jit
def exponential(x: cute.Tensor, y: cute.Tensor) -> None:
    exponential_kernel(x, y).launch(grid=1, block=32)


@cute.kernel
def positive_kernel(x: cute.Tensor, y: cute.Tensor) -> None:
    i = cute.arch.thread_idx().x
    if x[i] > 0.0:
        y[i] = x[i]


@cute.jit
def positive(x: cute.Tensor, y: cute.Tensor) -> None:
    positive_kernel(x, y).launch(grid=1, block=32)


def pair() -> tuple[AnyArray, AnyArray]:
    """Return an input and a result of 32 numbers."""
    return np.zeros(32, np.float32), np.zeros(32, np.float32)


def test_constants_are_dyadic_rationals() -> None:
    def reference(x: FieldArray, y: FieldArray) -> None:
        y[:] = (x * x * 2 - x) / 4

    (verdict,) = cute.testing.assert_equivalent(halve, reference, [pair()])
    assert verdict.degree == 2


def test_two_kernels_are_compared() -> None:
    (verdict,) = cute.testing.assert_equivalent(halve, halve, [pair()], field=65537)
    assert verdict.difference is None


@pytest.mark.parametrize("f, name", [(exponential, "exp"), (positive, "cmpf")])
def test_functions_of_real_numbers_are_refused_by_name(f: Callable[..., object], name: str) -> None:
    with pytest.raises(InterpError, match=name) as e:
        cute.testing.assert_equivalent(f, f, [pair()], field=65537)
    assert "no value over a field" in str(e.value) and 'field="auto"' in str(e.value)
    if f is positive:
        with pytest.raises(InterpError, match=r"the comparison at .* had one outcome in all runs"):
            cute.testing.assert_equivalent(f, f, [pair()])
    else:
        (verdict,) = cute.testing.assert_equivalent(f, f, [pair()])
        assert verdict.prime == Functions(32).prime


@pytest.mark.slow
def test_a_prime_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InterpError, match=r"do not fit in f16 \(16 bits\); use field=65521"):
        cute.testing.assert_equivalent(kernel("sm_90"), product_nk, [CASES["sm_90"].arrays()], field=2**31 - 1)


def test_a_number_that_is_no_prime_is_refused() -> None:
    with pytest.raises(InterpError, match="65520 is not an odd prime"):
        cute.testing.assert_equivalent(kernel("sgemm"), product, [CASES["sgemm"].arrays()], field=65520)


@pytest.mark.parametrize("prime", [2**31 - 1, 65521, 251])
def test_matmul_is_exact(prime: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(prime - 9, prime, (3, 200)), rng.integers(prime - 9, prime, (200, 5))
    want = (a.astype(object) @ b.astype(object)) % prime
    assert (Field(prime).matmul(a, b) == want).all()
    assert (Degrees().matmul(np.ones((2, 3), int), np.full((3, 2), 4)) == 5).all()


@pytest.mark.parametrize("name", ["f16", "bf16", "f8E4M3FN", "f8E5M2"])
def test_every_residue_survives_in_the_bits_of_a_float(name: str) -> None:
    leaf = float_leaf(name)
    every = np.arange(1 << leaf.width)
    assert (elements_of(held(every, leaf.dtype)) == every).all()
    for x in every[:: 97 if leaf.width == 16 else 1]:
        assert elements_of(to_lanes(held(np.asarray(x), leaf.dtype), leaf, 2)).tolist() == [x, x]


def test_runs_follow_from_the_bound() -> None:
    assert runs_for(1 << 16, 2, 65521, 2.0**-40) == 4
    assert error_bound(1 << 16, 2, 65521, 4) <= 2.0**-40 < error_bound(1 << 16, 2, 65521, 3)
    with pytest.raises(InterpError, match="degree 250 or more"):
        runs_for(1, Degrees.largest, 251, 2.0**-40)


def test_the_example_of_the_documentation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[3] / "docs" / "prove.md").read_text().partition("## Values over a finite field")[2]
    program, printed = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)[0]
    file = tmp_path / "example.py"
    file.write_text(program)
    runpy.run_path(str(file))
    assert capsys.readouterr().out.replace(f"{tmp_path}/", "") == printed


@pytest.mark.end_to_end
def test_cute_run_prints_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sgemm.mlir"
    file.write_text(CASES["sgemm"].text())
    given = [str(file), "--device=cpu", *("--in=10x33", "--in=33x6", "--in=10x6"), "--field=auto"]
    assert cute_run.main([*given, "--check=c == a @ b"]) == 0
    assert (
        "60 elements equal modulo 2147483647 and 2147483629 in 2 runs, polynomials of degree 2"
        in capsys.readouterr().out
    )
    assert cute_run.main([*given, "--check=c == a @ b * 2"]) == 1
    assert "has the coefficient 1, expected 2" in capsys.readouterr().err
    assert cute_run.main([*given, "--check=c == sqrt(a) @ b"]) == 1
    assert "'sqrt(a)' has no value over a field" in capsys.readouterr().err
    assert cute_run.main(given) == 1
    assert "--field: needs an expression to check" in capsys.readouterr().err


@cute.kernel
def total_kernel(x: cute.Tensor, y: cute.Tensor) -> None:
    i = cute.arch.thread_idx().x
    cute.arch.atomic_add(y.iterator, x[i] * 3.0)


@cute.jit
def total(x: cute.Tensor, y: cute.Tensor) -> None:
    total_kernel(x, y).launch(grid=1, block=64)


@cute.kernel
def most_kernel(x: cute.Tensor, y: cute.Tensor) -> None:
    cute.arch.atomic_max(y.iterator, x[cute.arch.thread_idx().x])


@cute.jit
def most(x: cute.Tensor, y: cute.Tensor) -> None:
    most_kernel(x, y).launch(grid=1, block=64)


def test_atomic_additions_are_exact_and_others_refused() -> None:
    def reference(x: FieldArray, y: FieldArray) -> None:
        y[:] = y + x.sum() * 3

    problem = np.zeros(64, np.float16), np.zeros(1, np.float16)
    (verdict,) = cute.testing.assert_equivalent(total, reference, [problem])
    assert (verdict.prime, verdict.degree) == (65521, 1)
    with pytest.raises(InterpError, match=r"llvm\.atomicrmw fmax has no value over a field"):
        cute.testing.assert_equivalent(most, reference, [(np.zeros(64, np.float32), np.zeros(1, np.float32))])


def test_reductions_of_copies_add_residues() -> None:
    old, new = np.array([65520, 7], np.uint16), np.array([5, 8], np.uint16)
    assert combined("bf16", old, new, "add", Field(65521)).tolist() == [4, 15]
    with pytest.raises(Fault, match="a TMA reduction max of f16 has no value over a field"):
        combined("f16", old, new, "max", Field(65521))


# ------------------------------------------------------------------------------------------- functions of real numbers


@pytest.mark.parametrize("pair", [0, 1])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_functions_obey_their_laws(bits: int, pair: int) -> None:
    f, rng = Functions(bits, pair), np.random.default_rng(0)
    assert f.p == 2 * f.q + 1 and f.largest < 1 << bits
    powers = f.exp2(np.array([f.constant(i) for i in (0, 1, 3, -1)]))
    assert (f.comparable(powers) == [f.constant(x) % f.p for x in (1, 2, 8, 0.5)]).all()
    a, b, c = (rng.integers(0, f.prime, 200) for _ in range(3))
    assert (f.exp2(f.add(a, b)) == f.multiply(f.exp2(a), f.exp2(b))).all()
    assert len(set((f.exp2(np.arange(f.q)) % f.p).tolist())) == f.q
    units = a[(a % f.p != 0) & (a % f.q != 0)]
    assert (f.multiply(units, f.inverse(units)) == 1).all() and f.zero_divisors == 0
    f.inverse(np.array([f.p, 0, 1]))
    assert f.zero_divisors == 2
    assert (f.maximum(f.maximum(a, b), c) == f.maximum(a, f.maximum(c, b))).all()
    assert (f.add(f.multiply(a, b), c) == (a * b + c) % f.prime).all()
    assert (f.function("rsqrt", a) == f.function("rsqrt", a)).all()
    assert (f.function("rsqrt", a) != f.function("tanh", a)).any()


def test_infinite_elements() -> None:
    f = Functions(16)
    low, high, nan, one = (np.array([f.constant(x)]) for x in (-np.inf, np.inf, np.nan, 1.0))
    assert f.exp2(low) == 0 and f.exp2(high) == high and f.exp2(nan) == nan
    assert f.add(low, one) == low and f.add(low, high) == nan and f.subtract(one, low) == high
    assert f.multiply(low, one * 7) == low and f.negate(low) == high and f.inverse(low) == 0
    assert f.maximum(low, one) == one and f.maximum(nan, one) == nan and f.maximum(nan, one, number=True) == one
    assert f.minimum(high, one) == one and f.minimum(one, nan, number=True) == one and f.minimum(one, nan) == nan
    assert f.total(np.array([1, int(low[0]), 2]), None) == low
    words = {"eq": False, "neu": True, "lt": True, "le": True, "gt": False, "geu": False, "num": True, "nan": False}
    assert {w: bool(f.compare(w, low, one)[0]) for w in words} == words
    assert not f.compare("eq", nan, nan) and f.compare("neu", nan, nan) and f.compare("nan", nan, one)
    with pytest.raises(InterpError, match="an operand of a matrix product is infinite or NaN"):
        f.matmul(np.array([low]), np.array([one]))


def softmax(x: FieldArray, y: FieldArray) -> None:
    e = (x - x.max(1, keepdims=True)).exp()
    y[:] = e / e.sum(1, keepdims=True)


def normalized(x: FieldArray, mean: FieldArray | int, eps: float) -> FieldArray:
    d = x - mean
    return d * ((d * d).sum(1, keepdims=True) / x.shape[1] + float(np.float32(eps))).rsqrt()


def rmsnorm(x: FieldArray, w: FieldArray, y: FieldArray, eps: float) -> None:
    y[:] = normalized(x, 0, eps) * w


def layernorm(x: FieldArray, w: FieldArray, b: FieldArray, y: FieldArray, eps: float) -> None:
    y[:] = normalized(x, x.sum(1, keepdims=True) / x.shape[1], eps) * w + b


@lru_cache
def row_kernel(name: str, element: str) -> Kernel:
    return compile_cute(row_text(name, element, 64), emit="base", filename=f"{name}.mlir").kernel("launch")


def row_problem(name: str, dtype: str) -> tuple[object, ...]:
    x, vectors = np.zeros((5, 64), dtype), {"softmax": 0, "rmsnorm": 1, "layernorm": 2}[name]
    return (x, *(np.zeros(64, dtype) for _ in range(vectors)), np.zeros_like(x), *([1e-5] if vectors else []))


@pytest.mark.parametrize(
    ("name", "dtype"), [("softmax", "f4"), ("softmax", "f2"), ("rmsnorm", "f4"), ("layernorm", "f2")]
)
def test_rows_equal_their_reference(name: str, dtype: str) -> None:
    reference = {"softmax": softmax, "rmsnorm": rmsnorm, "layernorm": layernorm}[name]
    k = row_kernel(name, {"f4": "f32", "f2": "f16"}[dtype])
    if name == "layernorm":  # The kernel clamps the variance at 0.
        with pytest.raises(InterpError, match=r"the maximum at layernorm\.mlir.* had one outcome"):
            cute.testing.assert_equivalent(k, reference, [row_problem(name, dtype)])
    (verdict,) = cute.testing.assert_equivalent(
        k, reference, [row_problem(name, dtype)], allow_unchecked=name == "layernorm"
    )
    assert any("not checked: the maximum" in note for note in verdict.notes) == (name == "layernorm")
    assert verdict.bound <= 2.0**-40 and verdict.prime == Functions(8 * int(dtype[1])).prime
    order = "comparisons follow the order of residues"
    assert (order in verdict.notes) == (name != "rmsnorm") and ("rsqrt is a random function" in verdict.notes) == (
        name != "softmax"
    )


def test_wrong_rows_differ() -> None:
    def without_last(x: FieldArray, y: FieldArray) -> None:
        e = (x - x.max(1, keepdims=True)).exp()
        y[:] = e / e[:, :-1].sum(1, keepdims=True)

    def without_maximum_in_the_sum(x: FieldArray, y: FieldArray) -> None:
        y[:] = (x - x.max(1, keepdims=True)).exp() / x.exp().sum(1, keepdims=True)

    def base_2(x: FieldArray, y: FieldArray) -> None:
        e = (x - x.max(1, keepdims=True)).exp2()
        y[:] = e / e.sum(1, keepdims=True)

    for wrong in (without_last, without_maximum_in_the_sum, base_2):
        with pytest.raises(AssertionError, match=r"320 of 320 elements differ|3\d\d of 320") as e:
            cute.testing.assert_equivalent(row_kernel("softmax", "f32"), wrong, [row_problem("softmax", "f4")])
        assert "y was written at softmax.mlir:" in str(e.value)


def test_any_maximum_gives_the_softmax() -> None:
    def by_minimum(x: FieldArray, y: FieldArray) -> None:
        e = (x + x.max(1, keepdims=True) * 3).exp()
        y[:] = e / e.sum(1, keepdims=True)

    cute.testing.assert_equivalent(row_kernel("softmax", "f32"), by_minimum, [row_problem("softmax", "f4")])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mask", "shape", "more"),
    [
        ("full", (70, 100, 2, 1), {}),
        ("full", (140, 70, 1, 1), {"lazy": False, "pingpong": False, "overlap": False}),
        ("right", (140, 140, 1, 1), {}),
        ("right", (70, 200, 1, 1), {"tile_n": 64, "stages": 3}),
    ],
)
def test_attention_equals_its_reference(mask: str, shape: tuple[int, int, int, int], more: dict[str, int]) -> None:
    """Online softmax over several tiles of keys, for grouped heads and with a causal mask."""
    queries, keys, heads, heads_k = shape
    c = AttentionConfig("f16", 64, mask, tile_n=32, sms=2)._replace(**more)
    k = compile_cute(attention_text(c), emit="base", filename="attention.mlir").kernel("launch")
    q, out = (np.zeros((1, queries, heads, 64), np.float16).transpose(1, 3, 2, 0) for _ in range(2))
    others = [np.zeros((1, keys, heads_k, 64), np.float16).transpose(1, 3, 2, 0) for _ in range(2)]

    def reference(q: FieldArray, k: FieldArray, v: FieldArray, out: FieldArray, *numbers: float) -> None:
        for h in range(heads):
            group = h * heads_k // heads
            scores = q[:, :, h, 0] @ k[:, :, group, 0].T
            if mask == "right":
                scores[np.arange(keys)[None, :] > np.arange(queries)[:, None]] = -np.inf
            e = ((scores - scores.max(1, keepdims=True)) * numbers[1]).exp2()
            out[:, :, h, 0] = (e @ v[:, :, group, 0]) / e.sum(1, keepdims=True)

    problem = (q, *others, out, queries, float(np.float32(0.125 * LOG2_E)), 0, 0)
    (verdict,) = cute.testing.assert_equivalent(k, reference, [problem], runs=2, bound=1.0, allow_unchecked=True)
    # The kernel compares a row sum with 0, and no residue is below 0.
    assert any("not checked: the comparison" in note for note in verdict.notes)
    assert verdict.difference is None and verdict.degree < 20


def test_degrees_of_functions() -> None:
    d = FunctionDegrees()
    x, one = np.array([0, 3, 5]), np.array([0, 0, 0])
    assert d.inverse(x).tolist() == [0, 3, 5] and d.degree(d.exp2(x)) == 1
    assert d.compare("gt", x, one).tolist() == [False, True, True] and d.compare("num", x, one).all()


def test_points_with_a_division_by_zero_are_drawn_again() -> None:
    def ratio(x: FieldArray, y: FieldArray) -> None:
        y[:] = x / (x * x - x * x + x)

    (verdict,) = cute.testing.assert_equivalent(
        ones, ratio, [(np.zeros(64, np.float16), np.zeros(64, np.float16))], runs=12
    )
    assert any("drawn again" in note for note in verdict.notes)


@cute.kernel
def ones_kernel(x: cute.Tensor, y: cute.Tensor) -> None:
    i = cute.arch.thread_idx().x
    v = cute.Float32(x[i])
    y[i] = (v / v).to(cute.Float16)


@cute.jit
def ones(x: cute.Tensor, y: cute.Tensor) -> None:
    ones_kernel(x, y).launch(grid=1, block=64)


# ------------------------------------------------------------------------------------------- values without a verdict


Body = Callable[[cute.Float32], object]


@cute.kernel
def elementwise_kernel(x: cute.Tensor, y: cute.Tensor, body: cute.Constexpr[Body]) -> None:
    i = cute.arch.thread_idx().x
    y[i] = body(x[i])


def assert_elementwise(
    body: Callable[[cute.Float32], object],
    formula: Callable[[FieldArray], FieldArray],
    dtype: str = "f4",
    field: int | str = "auto",
    runs: int | str = "auto",
) -> tuple[str, ...]:
    """Compare a kernel that applies a function to each element with a formula, and return the notes."""

    @cute.jit
    def f(x: cute.Tensor, y: cute.Tensor) -> None:
        elementwise_kernel(x, y, body).launch(grid=1, block=32)

    def reference(x: FieldArray, y: FieldArray) -> None:
        y[:] = formula(x)

    (verdict,) = cute.testing.assert_equivalent(
        f, reference, [(np.zeros(32, dtype), np.zeros(32, dtype))], field=field, runs=runs
    )
    return verdict.notes


@pytest.mark.slow
def test_exponentials_of_constants_are_powers_of_two() -> None:
    exp2 = cute.math.exp2
    assert_elementwise(lambda x: exp2(x) * 2.0, lambda x: (x + 1).exp2())
    assert_elementwise(lambda x: exp2(x + 8.0) / 256.0, lambda x: x.exp2())
    for factor in (4.0, 65536.0):
        with pytest.raises(AssertionError, match="32 of 32 elements differ"):
            assert_elementwise(lambda x, factor=factor: exp2(x) * factor, lambda x: (x + 1).exp2())


def test_an_exponential_as_exponent_is_refused() -> None:
    with pytest.raises(InterpError, match="the exponent of an exponential depends on another exponential"):
        assert_elementwise(lambda x: cute.math.exp2(cute.math.exp2(x)), lambda x: x * 0 + 2)


def test_a_divisor_that_is_always_zero_is_refused() -> None:
    with pytest.raises(InterpError, match="a divisor is 0 at all 64 points"):
        assert_elementwise(lambda x: x / (x - x), lambda x: x * 2 / (x - x))


fmax, fmin = cute.arch.fmax, cute.arch.fmin


@pytest.mark.parametrize(
    ("body", "formula"),
    [
        (lambda x: fmax(x, 0.0), lambda x: x),
        (lambda x: fmax(x, 5.0), lambda x: x),
        (lambda x: fmax(x, -5.0), lambda x: x * 0 - 5),
        (lambda x: fmin(fmax(x, 0.0), 6.0), lambda x: x * 0 + 6),
        (lambda x: fmin(fmax(x, -1.0), 1.0), lambda x: x * 0 + 1),
        (lambda x: fmax(x, x * 0.0 + 5.0), lambda x: x),
    ],
)
def test_a_clamp_with_one_outcome_is_refused(body: Body, formula: Callable[[FieldArray], FieldArray]) -> None:
    with pytest.raises(InterpError, match=r"the m\w+imum at .*test_field.py:\d+:\d+ had one outcome in all runs"):
        assert_elementwise(body, formula)


@cute.jit
def leaky(x: cute.Float32) -> cute.Float32:
    r = x
    if x < 0.0:
        r = x * 7.0
    return r


@cute.jit
def guarded(x: cute.Float32) -> cute.Float32:
    r = x
    if x == 3.0:
        r = x * 7.0
    return r


def test_a_branch_with_one_outcome_is_refused() -> None:
    with pytest.raises(InterpError, match=r"the comparison at .* had one outcome in all runs"):
        assert_elementwise(leaky, lambda x: x)
    notes = assert_elementwise(guarded, lambda x: x)
    assert any(re.fullmatch(r"not checked: the equality at .*test_field.py:\d+:\d+ was never true", n) for n in notes)


def test_coefficients_and_exponents_count_modulo_two_primes() -> None:
    with pytest.raises(AssertionError, match="32 of 32 elements differ"):
        assert_elementwise(lambda x: x * cute.Float16(65504) + x * cute.Float16(17), lambda x: x * 0, "f2")
    with pytest.raises(AssertionError, match="elements differ"):
        assert_elementwise(lambda x: cute.math.exp2(x * cute.Float16(180)), lambda x: x.exp2(), "f2")


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(
        InterpError, match=r"1 run may miss a difference with probability 1.0e\+00, more than the bound"
    ):
        assert_elementwise(lambda x: x * 4.0, lambda x: x, field=3, runs=1)


@pytest.mark.parametrize("text", ["c == c", "c == c + 0", "in_a == in_a", "a @ b == a @ b"])
def test_a_check_that_cannot_fail_is_refused(text: str) -> None:
    x = FieldArray(np.ones((2, 2), np.int64), Field(251))
    with pytest.raises(CheckError, match="compares a value with itself and cannot fail"):
        compare_over_field(text, {"a": x, "b": x, "c": x, "in_a": x}, ["a", "b", "c"])
