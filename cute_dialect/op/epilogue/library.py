"""Predefined epilogues for ``op.mm(…, epilogue=f, args={…})``, some under their cuBLASLt names.

    d = op.mm(x, w, epilogue=library.gated("silu"))                          # SwiGLU of interleaved weights
    found = op.mm(x, w, epilogue=library.GELU_AUX_BIAS, args={"bias": v})    # {"D": gelu(pre), "aux": pre}

>>> GELU_BIAS.__name__, gated("gelu").__name__
('GELU_BIAS', 'gated_gelu')
"""

# Values are proxies of a trace, or arrays of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from cute_dialect.op.epilogue import functions
from cute_dialect.op.epilogue.functions import ACTIVATIONS, multiply_add, pairs
from cute_dialect.op.errors import EpilogueError
from cute_dialect.op.keywords import similar

__all__ = [
    "BGRADB", "BIAS", "DEFAULT", "DGELU", "DGELU_BGRAD", "DRELU", "DRELU_BGRAD", "GELU", "GELU_AUX", "GELU_AUX_BIAS",
    "GELU_BIAS", "RELU", "RELU_AUX", "RELU_AUX_BIAS", "RELU_BIAS", "activated", "derived", "gated", "linear",
    "residual", "scale_rows",
]  # fmt: skip

Epilogue: TypeAlias = Callable[..., Any]


def _activation(name: str) -> Callable[[Any], Any]:
    if name not in ACTIVATIONS or name == "prelu":
        known = sorted(n for n in ACTIVATIONS if n != "prelu")
        near = similar(name, known)
        guess = f"; did you mean {near[0]}? Choose" if near else "; choose"
        raise EpilogueError(f'activation "{name}" is unknown{guess} one of {", ".join(known)}')
    return ACTIVATIONS[name]


@cache
def activated(name: str, *, bias: bool = False, aux: bool = False) -> Epilogue:
    """Return an epilogue that applies an activation to ``accum``, or to ``accum + bias``.

    With ``aux``, the operand of the activation is a second result, which the gradient needs.  Raises EpilogueError
    for an unknown activation.
    """
    f = _activation(name)

    def results(x: Any) -> Any:
        return {"D": f(x), "aux": x} if aux else f(x)

    def with_bias(accum: Any, bias: Any) -> Any:
        return results(accum + bias)

    def plain(accum: Any) -> Any:
        return results(accum)

    return _named(with_bias if bias else plain, f"{name.upper()}{'_AUX' * aux}{'_BIAS' * bias}")


@cache
def derived(name: str, *, bgrad: bool = False) -> Epilogue:
    """Return ``accum * f'(aux)``, the gradient of the operand of an activation.

    With ``bgrad``, the column sums (1, N) are a second result: the gradient of a bias.
    """
    _activation(name)
    slope = getattr(functions, f"d_{name}")

    def gradient(accum: Any, aux: Any) -> Any:
        x = accum * slope(aux)
        return {"D": x, "bgrad": functions.sum(x, -2)} if bgrad else x

    return _named(gradient, f"D{name.upper()}{'_BGRAD' * bgrad}")


@cache
def gated(name: str) -> Epilogue:
    """Return ``f(gate) * up`` of the even and the odd columns: SwiGLU for ``silu``, GEGLU for ``gelu``.

    Raises EpilogueError for an unknown activation.
    """
    f = _activation(name)

    def gated_of(accum: Any) -> Any:
        gate, up = pairs(accum)
        return f(gate) * up

    return _named(gated_of, f"gated_{name}")


def linear(accum: Any, alpha: Any, C: Any, beta: Any) -> Any:
    """Return ``alpha * accum + beta * C``."""
    return multiply_add(alpha, accum, beta * C)


def residual(accum: Any, bias: Any, skip: Any) -> Any:
    """Return ``accum + bias + skip``."""
    return accum + bias + skip


def scale_rows(accum: Any, scale_a: Any, scale_b: Any) -> Any:
    """Return ``accum * scale_a * scale_b``, with per-row factors (M, 1) and per-column factors (1, N)."""
    return accum * scale_a * scale_b


def default(accum: Any) -> Any:
    """Return the accumulator."""
    return accum


def biased(accum: Any, bias: Any) -> Any:
    """Return ``accum + bias``."""
    return accum + bias


def with_columns(accum: Any) -> Any:
    """Return the accumulator and its column sums, the gradient of a bias."""
    return {"D": accum, "bgrad": functions.sum(accum, -2)}


def _named(function: Epilogue, name: str) -> Epilogue:
    function.__name__ = function.__qualname__ = name
    return function


DEFAULT, BIAS, BGRADB = default, biased, with_columns
RELU, GELU = activated("relu"), activated("gelu")
RELU_BIAS, GELU_BIAS = activated("relu", bias=True), activated("gelu", bias=True)
RELU_AUX, GELU_AUX = activated("relu", aux=True), activated("gelu", aux=True)
RELU_AUX_BIAS, GELU_AUX_BIAS = activated("relu", bias=True, aux=True), activated("gelu", bias=True, aux=True)
DRELU, DGELU = derived("relu"), derived("gelu")
DRELU_BGRAD, DGELU_BGRAD = derived("relu", bgrad=True), derived("gelu", bgrad=True)
