"""Named elementwise functions (``op.gelu(x)``), compared with torch in float64, their other uses, and their errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from cute_dialect import op  # noqa: E402

CPU: dict[str, Any] = {"device": "cpu"}
X = torch.linspace(-4.0, 4.0, 3 * 37).reshape(3, 37)
"""A matrix that contains 0 and whose rows do not divide into vectors."""

UNARY: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "abs": (op.abs, torch.abs),
    "elu": (op.elu, F.elu),
    "erf": (op.erf, torch.erf),
    "exp": (op.exp, torch.exp),
    "exp2": (op.exp2, torch.exp2),
    "gelu": (op.gelu, F.gelu),
    "hardsigmoid": (op.hardsigmoid, F.hardsigmoid),
    "hardswish": (op.hardswish, F.hardswish),
    "leaky_relu": (op.leaky_relu, F.leaky_relu),
    "mish": (op.mish, F.mish),
    "relu": (op.relu, F.relu),
    "relu6": (op.relu6, F.relu6),
    "sigmoid": (op.sigmoid, torch.sigmoid),
    "silu": (op.silu, F.silu),
    "softplus": (op.softplus, F.softplus),
    "tanh": (op.tanh, torch.tanh),
}
POSITIVE = {"log": (op.log, torch.log), "rsqrt": (op.rsqrt, torch.rsqrt), "sqrt": (op.sqrt, torch.sqrt)}


def compare(ours: Callable[..., Any], theirs: Callable[[Any], Any], x: Any) -> None:
    """Compare values and gradients."""
    mine, exact = x.clone().requires_grad_(), x.double().requires_grad_()
    found, wanted = ours(mine, **CPU), theirs(exact)
    torch.testing.assert_close(found.double(), wanted, rtol=3e-6, atol=2e-6)
    weights = torch.linspace(0.5, 2.0, x.numel()).reshape(x.shape)
    (found * weights).sum().backward()
    (wanted * weights).sum().backward()
    torch.testing.assert_close(mine.grad.double(), exact.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.sample("abs")
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name: str) -> None:
    compare(*UNARY[name], X + 0.01)
    half = UNARY[name][0](X.numpy().astype(np.float16), **CPU)
    assert half.dtype == np.float16 and half.shape == (3, 37)
    wanted = UNARY[name][1](X.half().double()).numpy()
    np.testing.assert_allclose(half.astype(float), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.sample("log")
@pytest.mark.parametrize("name", POSITIVE)
def test_functions_of_positive_elements(name: str) -> None:
    compare(*POSITIVE[name], X.abs() + 0.1)


@pytest.mark.slow
def test_parameters_are_those_of_torch() -> None:
    compare(lambda x, **k: op.gelu(x, approximate="tanh", **k), lambda x: F.gelu(x, approximate="tanh"), X)
    compare(lambda x, **k: op.leaky_relu(x, 0.3, **k), lambda x: F.leaky_relu(x, 0.3), X)
    compare(lambda x, **k: op.leaky_relu(x, negative_slope=2, **k), lambda x: F.leaky_relu(x, 2), X)
    compare(lambda x, **k: op.elu(x, 0.5, **k), lambda x: F.elu(x, 0.5), X + 0.01)
    compare(lambda x, **k: op.clamp(x, -1.0, 2.0, **k), lambda x: torch.clamp(x, -1.0, 2.0), X + 0.01)
    compare(lambda x, **k: op.clamp(x, min=-1.0, **k), lambda x: torch.clamp(x, min=-1.0), X + 0.01)
    compare(lambda x, **k: op.clamp(x, max=1.0, **k), lambda x: torch.clamp(x, max=1.0), X + 0.01)
    y = torch.randn(37)
    compare(lambda x, **k: op.maximum(x, y, **k), lambda x: torch.maximum(x, y.double()), X)
    compare(lambda x, **k: op.minimum(x, y, **k), lambda x: torch.minimum(x, y.double()), X)


def test_results_in_given_memory() -> None:
    out = torch.full((3, 37), math.nan)
    assert op.relu(X, out=out, **CPU) is out and torch.equal(out, X.relu())
    assert op.relu(X, dtype=torch.float16, **CPU).dtype == torch.float16
    same = X.clone()
    assert torch.equal(op.abs(same, out=same, **CPU), X.abs())


@pytest.mark.slow
def test_functions_of_numbers_and_of_epilogues() -> None:
    a, b = np.full((16, 16), 0.125, np.float32), np.eye(16, dtype=np.float32) - 0.5

    def epilogue(accum: Any) -> Any:
        return op.gelu(accum) + op.leaky_relu(op.clamp(accum, -0.5, 0.25)) + op.relu(accum)

    found = op.mm(a, b, epilogue=epilogue, math="exact", **CPU)
    np.testing.assert_allclose(found, np.vectorize(epilogue)(a.astype(float) @ b), rtol=1e-5, atol=1e-6)
    assert op.gelu(0.0) == 0.0 and op.gelu(3.0) == pytest.approx(3 * 0.5 * (1 + math.erf(3 / math.sqrt(2))))
    assert op.maximum(2.0, 3.0) == 3.0 and op.clamp(7.0, 0.0, 6.0) == 6.0


def test_element_types_describe_activations() -> None:
    for of in ("f16", np.float16, np.dtype("f2"), torch.float16):
        assert op.gelu(of) == ("gelu", "f16", ())
    assert op.leaky_relu("f32") == ("leaky_relu", "f32", (0.2,)) and op.relu() == ("relu", "f32", ())
    assert op.leaky_relu("f32", 0.3) == ("leaky_relu", "f32", (0.3,))
    assert op.gelu("f32", approximate="tanh") == ("gelu_tanh", "f32", ())


REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: op.gelu(X, approximate="erf", **CPU), op.ArgumentError, "gelu: approximate is 'erf'; pass 'none' or"),
    (lambda: op.relu(X, inplace=True), op.ArgumentError, r"relu\(\) has no argument 'inplace'"),
    (lambda: op.softplus(X, beta=2.0), op.ArgumentError, r"softplus\(\) has no argument 'beta'"),
    (lambda: op.clamp(X), op.ArgumentError, "clamp: neither min nor max is given"),
    (lambda: op.exp("f32"), op.DtypeError, "exp: x is a str; pass an array"),
    (lambda: op.exp([1.0]), op.DtypeError, "exp: x is a list; pass an array"),
    (lambda: op.gelu(1.0, device="cpu"), op.ArgumentError, "gelu: device= is for arrays; got a float"),
    (lambda: op.gelu("f31"), op.DtypeError, (
        "gelu: 'f31' is not an element type; use f16, bf16, tf32, f32, f64, i8, ui8, i32, f8E4M3FN, f8E5M2"
    )),
    (lambda: op.relu(X.requires_grad_(False), device="cpu", dtype="i16"), op.DtypeError, "dtype i16 is not supported"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=[case[2][:40] for case in REFUSED])
def test_refused(case: tuple[Callable[[], object], type[Exception], str]) -> None:
    do, kind, message = case
    with pytest.raises(kind, match=message):
        do()
