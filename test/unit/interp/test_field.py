"""Runs over a prime field: kernels that equal their reference, kernels that do not, and what is refused."""

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
from cute_dialect.interp.field import Degrees, Field, FieldArray, elements_of, held, prime_for
from cute_dialect.interp.memory.tensor_map import combined
from cute_dialect.interp.types import float_leaf
from cute_dialect.interp.validation.equivalence import error_bound, runs_for
from cute_dialect.interp.values import to_lanes
from cute_dialect.kernels.conv.config import Window
from cute_dialect.kernels.conv.direct import DirectConfig, direct_text
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.ampere import AmpereConfig, ampere_gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.sgemm import sgemm_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import Kernel
from cute_dialect.tools import cute_run

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
    assert (verdict.prime, verdict.degree) == (prime_for([case.dtype]), 2)
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
        cute.testing.assert_equivalent(f, f, [pair()])
    assert "no value over a field" in str(e.value)


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
    assert capsys.readouterr().out == printed


def test_cute_run_prints_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sgemm.mlir"
    file.write_text(CASES["sgemm"].text())
    given = [str(file), "--device=cpu", *("--in=10x33", "--in=33x6", "--in=10x6"), "--field=auto"]
    assert cute_run.main([*given, "--check=c == a @ b"]) == 0
    assert "60 elements equal modulo 2147483647 in 2 runs, polynomials of degree 2" in capsys.readouterr().out
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
