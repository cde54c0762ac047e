"""Activations and their derivatives in kernels on the interpreter, compared with float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.kernels.epilogue.functions import ACTIVATIONS, FUNCTIONS, GRADIENTS, NUMPY, arrays_of_torch

X = np.concatenate(
    [
        np.linspace(-12.0, 12.0, 1500), np.geomspace(1e-7, 300.0, 250), -np.geomspace(1e-7, 300.0, 250),
        [0.0, -0.0, 3.0, -3.0, 6.0, math.inf, -math.inf, math.nan, 65504.0, -65504.0, 3e38, -3e38],
    ]
).astype(np.float32)  # fmt: skip
PARAMETERS = (0.25,)


@cute.kernel
def elements(x: cute.Tensor, y: cute.Tensor, name: cute.Constexpr[str], parameters: cute.Constexpr[Any]):
    """Apply the function to one element per thread."""
    i = cute.arch.block_idx().x * 128 + cute.arch.thread_idx().x
    if i < cute.size(x):
        y[i] = cute.Float32(FUNCTIONS[name].in_kernel(x[i], *parameters))


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, name: cute.Constexpr[str], parameters: cute.Constexpr[Any]):
    elements(x, y, name, parameters).launch(grid=cute.ceil_div(cute.size(x), 128), block=128)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize("name", [*ACTIVATIONS, *GRADIENTS])
def test_near_float64(name: str) -> None:
    """The error is at most half a unit in the last place of f16, and 3e-7 for small values. Infinities match."""
    parameters = PARAMETERS[: FUNCTIONS[name].arity - 1]
    y = np.full_like(X, 99.0)
    launch(X, y, name, parameters, device="cpu")
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name].of_arrays(NUMPY, X.astype(np.float64), *parameters)
        narrow = want.astype(np.float32)
    assert (np.isnan(y) == np.isnan(X)).all() and np.isnan(want[np.isnan(X)]).all()
    whole = ~np.isfinite(narrow)
    assert (y[whole & ~np.isnan(X)] == narrow[whole & ~np.isnan(X)]).all()
    error = np.abs(y[~whole] - want[~whole])
    size = np.abs(want[~whole])
    assert (error <= 2.0**-12 * size + 2.0**-25).all()
    assert (error <= 3e-7 * np.maximum(1.0, 4 * size)).all()


@pytest.mark.parametrize("name", [*ACTIVATIONS, *GRADIENTS])
def test_arrays_of_torch_are_those_of_numpy(name: str) -> None:
    torch = pytest.importorskip("torch")
    parameters = PARAMETERS[: FUNCTIONS[name].arity - 1]
    x = X.astype(np.float64)
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name].of_arrays(NUMPY, x, *parameters)
    found = FUNCTIONS[name].of_arrays(arrays_of_torch(), torch.from_numpy(x), *parameters).numpy()
    assert np.allclose(found, want, rtol=1e-12, atol=2e-15, equal_nan=True)


def test_results_match_torch() -> None:
    """Each function agrees with torch's function of the same name."""
    torch = pytest.importorskip("torch")
    x = np.linspace(-5, 5, 101)
    names = ("relu", "relu6", "hardsigmoid", "hardswish", "sigmoid", "silu", "gelu", "softplus", "mish", "elu")
    for name in names:
        want = getattr(torch.nn.functional, name)(torch.from_numpy(x)).numpy()
        f = FUNCTIONS[name]
        assert np.allclose(f.of_arrays(NUMPY, x, *f.defaults), want, rtol=1e-12, atol=1e-14), name
    want = torch.nn.functional.gelu(torch.from_numpy(x), approximate="tanh").numpy()
    assert np.allclose(FUNCTIONS["gelu_tanh"].of_arrays(NUMPY, x), want)
    for name, f in GRADIENTS.items():
        t = torch.from_numpy(x + 0.03).requires_grad_()
        of = FUNCTIONS[name.removeprefix("d_")]
        of.of_arrays(arrays_of_torch(), t, *of.defaults).sum().backward()
        assert np.allclose(f.of_arrays(NUMPY, x + 0.03, *f.defaults), t.grad.numpy(), rtol=1e-9, atol=1e-12), name
