"""Gradients of GEMMs and of their epilogues, for the operators and autograd nodes of all kinds of GEMMs.

A GEMM with an activation saves the operand of the activation, except for relu, whose derivative needs only the result.
The derivative kernel (:func:`slope`) multiplies a gradient by the derivative of the activation and sums its columns,
which is the gradient of a per-column bias.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from inspect import Parameter, Signature
from math import floor, log2
from typing import Any, NamedTuple

import torch

from cute_dialect.op.arrays.dtypes import element_name, result_of, torch_name
from cute_dialect.op.epilogue.functions import abs, activated, clamp, where
from cute_dialect.op.epilogue.functions import sum as sum_of
from cute_dialect.op.epilogue.saved_tensors import reading
from cute_dialect.op.epilogue.tracing import FakeTensor, trace
from cute_dialect.op.torch.pointwise_backward import SlopeCall
from cute_dialect.op.torch.registry import CUTE

__all__ = [
    "by_column", "factor_gradients", "keeping_epilogue", "keeping_function", "kept_element", "kept_type",
    "result_dtype", "slope", "summed", "torch_dtype",
]  # fmt: skip


def torch_dtype(dtype: Any) -> torch.dtype | None:
    """Return the dtype of torch that a name or a dtype of another library denotes; None remains None."""
    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    return getattr(torch, torch_name(element_name(dtype)))


def result_dtype(a: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype:
    """Return the dtype of a GEMM's result; ``dtype``: that of the call, None for the default."""
    return dtype or getattr(torch, torch_name(result_of(element_name(a.dtype))))


def kept_type(a: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype | None:
    """Return the type of the saved operand: None for the result's type, that of the factors for 8-bit results."""
    return a.dtype if dtype is not None and dtype.itemsize == 1 else None


def kept_element(a: torch.Tensor, dtype: Any) -> str:
    """Return the name of the type of the saved operand; ``dtype``: that of the result, None for the default."""
    usual = result_of(element_name(a.dtype)) if dtype is None else element_name(dtype)
    kind = kept_type(a, getattr(torch, torch_name(usual)))
    return usual if kind is None else element_name(kind)


class _Like(NamedTuple):
    """Type and shape of a tensor argument of an epilogue."""

    element: str
    shape: tuple[int, ...]


def _like(t: torch.Tensor) -> _Like:
    return _Like(element_name(t.dtype), tuple(t.shape))


def keeping_epilogue(
    activation: str, shape: tuple[int, ...], c: torch.Tensor | None, bias: torch.Tensor | None, element: str
) -> Any:  # fmt: skip
    """Return the epilogue of a GEMM with an activation that also returns its operand; ``element``: its type."""
    return _keeping(activation, shape, *(None if t is None else _like(t) for t in (c, bias)), element)


@lru_cache(maxsize=256)
def _keeping(activation: str, sums: tuple[int, ...], c: _Like | None, bias: _Like | None, element: str) -> Any:
    examples: dict[str, Any] = {"accum": FakeTensor("f32", sums), "alpha": 0.5}
    examples |= {} if c is None else {"C": FakeTensor(*c), "beta": 0.5}
    examples |= {} if bias is None else {"bias": FakeTensor(*bias)}
    function = keeping_function(activation, c is not None, bias is not None, element)
    return trace(function, examples, runtime=("alpha", "beta"))


_JUMPS = {"relu6": 6.0, "hardsigmoid": 3.0, "hardswish": 3.0}
"""Activations -> the number at which, and at whose negative, the derivative is discontinuous."""
_BITS = {"bf16": 7, "f16": 10}
"""Types that the operand of an activation is rounded to -> the number of fraction bits."""


@cache
def keeping_function(activation: str, c: bool, bias: bool, element: str) -> Any:
    """Return the epilogue that returns an activation and its operand, rounded to ``element``; cached.

    Rounding must not move the operand across a discontinuity of the derivative.  For example, -2.9927 as bf16 would be
    -3, where the derivative of hardswish is 0 instead of -0.5.
    """
    function: Any = activated(activation)
    jump, bits = _JUMPS.get(activation.partition("(")[0]), _BITS.get(element)
    within = 0.0 if jump is None or bits is None else jump - 2.0 ** (floor(log2(jump)) - bits)

    def kept(accum: Any, **given: Any) -> Any:
        x = given["alpha"] * accum
        x = x + given["beta"] * given["C"] if c else x
        x = x + given["bias"] if bias else x
        return {"D": function(x), "sums": where(abs(x) < jump, clamp(x, -within, within), x) if within else x}

    names = ["accum", "alpha", *(("C", "beta") if c else ()), *(("bias",) if bias else ())]
    kept.__signature__ = Signature([Parameter(n, Parameter.KEYWORD_ONLY) for n in names])  # type: ignore[attr-defined]
    kept.__name__ = activation
    return kept


def slope(
    grad: torch.Tensor, sums: torch.Tensor, activation: str, device: str = ""
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return a gradient times the derivative of an activation at ``sums``, and its column sums in f32."""
    found = _slope_call(activation, tuple(grad.shape), element_name(grad.dtype))
    found = found({"grad": grad, "sums": sums}, device or None)
    return found["D"], found["columns"]


@lru_cache(maxsize=256)
def _slope_call(activation: str, shape: tuple[int, ...], element: str) -> Any:
    """Return the call that multiplies a gradient by the derivative of an activation and sums its columns."""
    derivative: Any = activated(activation, derivative=True)

    def slope_of(accum: Any, grad: Any, sums: Any) -> Any:
        D = derivative(sums) * grad
        return {"D": D, "columns": sum_of(D, -2)}

    slope_of.__name__ = f"gradient of {activation}"
    traced = trace(slope_of, {n: FakeTensor("f32", shape) for n in ("accum", "grad", "sums")})
    return SlopeCall(reading(traced, ("D", "columns")), shape, {"D": element})


def by_column(shape: torch.Size) -> bool:
    """Return True if a tensor of this shape broadcasts along the rows of the result."""
    return len(shape) == 1 or (len(shape) == 2 and shape[0] == 1)


def factor_gradients(
    call: str, a: torch.Tensor, b: torch.Tensor, grad: torch.Tensor, needed: Sequence[bool], alpha: float,
    options: Mapping[str, Any],
) -> tuple[torch.Tensor | None, torch.Tensor | None]:  # fmt: skip
    """Return the gradients of the factors of a GEMM, those that are needed.

    Args:
        grad: gradient of the accumulator.
        needed: whether the gradient of ``a``, and that of ``b``, is needed.
        options: ``device``, ``math`` and ``accumulator`` of the GEMMs.
    """
    product = getattr(CUTE, call)
    g = grad.to(a.dtype)
    g = g if g.stride(-1) == 1 or g.stride(-2) == 1 else g.contiguous()
    of_a = of_b = None
    if needed[0]:
        several = call == "bmm" and a.shape[0] == 1 and g.shape[0] > 1
        of_a = product(g, b.mT, alpha=alpha, dtype=torch.float32 if several else a.dtype, **options)
        of_a = summed(of_a, a.shape, a.dtype)
    if needed[1]:
        if call == "bmm" and b.shape[0] == 1:  # one GEMM over the rows of all matrices sums over the batch
            x, y = (torch.broadcast_to(t, (g.shape[0], *t.shape[1:])).flatten(0, 1) for t in (a, g))
            of_b = CUTE.mm(x.t(), y, alpha=alpha, dtype=b.dtype, **options)[None]
        else:
            of_b = product(a.mT, g, alpha=alpha, dtype=b.dtype, **options)
    return of_a, of_b


def summed(grad: torch.Tensor, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    """Return the gradient of an array that was broadcast: the sum, in f32, over the broadcast modes."""
    if grad.shape == shape and grad.dtype == dtype:
        return grad
    full = (*(1,) * (grad.dim() - len(shape)), *shape)
    axes = [i for i, (have, was) in enumerate(zip(grad.shape, full)) if was == 1 and have != 1]
    if axes and grad.is_cuda and grad.dtype == dtype:  # torch sums in f32 and rounds once
        grad = grad.sum(axes, keepdim=True)
    elif axes:
        grad = grad.sum(axes, keepdim=True, dtype=torch.float32)
    return grad.reshape(shape).to(dtype)
