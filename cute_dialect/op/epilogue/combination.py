"""Linear combinations ``activation(alpha * accum + beta * C + bias)``: as epilogues, or computed by the array library.

Each operand of an epilogue has its own type:

>>> traced = combination({"C": FakeTensor("f32", (8, 16)), "beta": 0.5}, (8, 16), "relu")
>>> [x.name for x in traced.arguments], traced.graph.inputs[1].element
(['beta', 'C'], 'f32')

The library of the arrays computes the combination where no kernel can (:func:`unfused`).
"""

# Traced values take operands of any type.
# torch is not installed where types are checked.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib import import_module
from inspect import Parameter, Signature
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.epilogue.activations import parsed
from cute_dialect.kernels.epilogue.functions import ACTIVATIONS, NUMPY, Arrays, arrays_of_torch
from cute_dialect.op.arrays.dtypes import element_name, torch_name
from cute_dialect.op.epilogue.functions import activated
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced, trace

if TYPE_CHECKING:  # pragma: no cover
    import torch


class LinearCombination(NamedTuple):
    """Epilogue arguments and arithmetic of a call."""

    alpha: Any = 1.0  # a number; grouped GEMMs also take factors per group
    beta: float = 1.0
    c: Any = None  # an array; GEMMs of lists also take lists
    bias: Any = None
    activation: str = ""
    hook: Callable[..., object] | None = None
    math: str = "default"
    accumulator: object = None

    @property
    def usual(self) -> bool:
        """True if all arguments have their defaults."""
        return self.plain and self.math == "default" and self.accumulator is None

    def of_sums(self) -> LinearCombination:
        """Return the arithmetic without the epilogue."""
        return LinearCombination(math=self.math, accumulator=self.accumulator)

    @property
    def plain(self) -> bool:
        """True if there is no epilogue."""
        return self.alpha == 1.0 and self.c is None and self.bias is None and not self.activation and self.hook is None

    @property
    def key(self) -> tuple[object, ...]:
        """Cache key of the arguments, without the tensors themselves."""
        alpha, beta, c, bias, activation, hook, math, accumulator = self
        return (
            type(alpha), alpha or repr(alpha), type(beta), beta or repr(beta), c is None, bias is None, activation,
            hook, math, accumulator,
        )  # fmt: skip

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The given tensors among ``c`` and ``bias``."""
        return tuple([t for t in (self.c, self.bias) if t is not None])


def combination(
    operands: Mapping[str, Any],
    sums: tuple[int, ...],
    activation: str = "",
    like: Callable[[Any], FakeTensor] | None = None,
) -> Traced:
    """Return the epilogue that combines some operands.

    Args:
        operands: numbers, which become arguments of the launch, and arrays or views, by the names ``scale_a``,
            ``scale_b``, ``alpha``, ``C``, ``beta``, ``bias`` and ``scale_out``; see :func:`operands_of`.
        sums: shape of the accumulator.
        activation: activation as text, such as ``"relu"``, or "".
        like: returns the placeholder of an array; default: one of its type and shape.
    """
    like = like or _like
    kinds = [(n, 1.5 if isinstance(x, int | float) else like(x)) for n, x in operands.items()]
    return _traced(tuple(kinds), sums, activation)


def _like(x: Any) -> FakeTensor:
    """Return the placeholder of an array."""
    return x if isinstance(x, FakeTensor) else FakeTensor(element_name(x.dtype), tuple(x.shape))


def operands_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the operands of a linear combination that have an effect: not None, and no alpha or beta of 1.

    >>> operands_of({"alpha": 1.0, "C": None, "beta": 0.5, "bias": "an array"})
    {'bias': 'an array'}
    """
    found = {n: float(x) if isinstance(x, int | float) else x for n, x in given.items() if x is not None}
    if "C" not in found:
        found.pop("beta", None)
    return {n: x for n, x in found.items() if n not in ("alpha", "beta") or not isinstance(x, float) or x != 1.0}


@lru_cache(maxsize=256)
def _traced(kinds: tuple[tuple[str, Any], ...], sums: tuple[int, ...], activation: str) -> Traced:
    function = combined(activation, *[name for name, _ in kinds])
    examples = {"accum": FakeTensor("f32", sums), **dict(kinds)}
    return trace(function, examples, runtime=["alpha", "beta", "scale_out"])


def combined(activation: str, *names: str) -> Callable[..., Any]:
    """Return the function of ``accum`` and the named operands (see :func:`combination`) that combines them."""
    function: Any = activated(activation) if activation else None

    def combine(**x: Any) -> Any:
        value = x["accum"]
        for name in ("scale_a", "scale_b"):
            value = value * x[name] if name in x else value
        if "alpha" in x:
            value = x["alpha"] * value
        if "C" in x:
            value = value + (x["beta"] * x["C"] if "beta" in x else x["C"])
        if "bias" in x:
            value = value + x["bias"]
        value = value if function is None else function(value)
        return value * x["scale_out"] if "scale_out" in x else value

    parameters = [Parameter(n, Parameter.KEYWORD_ONLY) for n in ("accum", *names)]
    combine.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return combine


def is_per_matrix(factor: Any) -> bool:
    """Return True for an array with one factor per matrix of a batch: (L,) or (L, 1, 1)."""
    if isinstance(factor, int | float):
        return False
    shape: Any = getattr(factor, "shape", ())
    return len(shape) in (1, 3) and shape[0] > 1 and prod(shape[1:]) == 1


def is_rounded(source: str, result: str) -> bool:
    """Return True if values of one floating type would be rounded, or widened, to become those of another.

    >>> is_rounded("f32", "bf16"), is_rounded("bf16", "bf16"), is_rounded("i32", "i8")
    (True, False, False)
    """
    return source != result and source[0] in "fb" and result[0] in "fb" and "f64" not in (source, result)


# ------------------------------------------------------------------------------------------------- by the array library


def unfused(product: Any, out: Any, alpha: float, beta: float, c: Any, bias: Any, activation: str) -> Any:
    """Compute ``out = activation(alpha * product + beta * c + bias)`` with the array library.

    It computes in f32, in f64 if ``out`` is f64, and exactly if all arrays hold integers.
    """
    whole = alpha == 1.0 and beta in (0.0, 1.0) and activation in ("", "relu")
    whole = whole and not any(element_name(t.dtype)[:1] in "fb" for t in (product, c, bias, out) if t is not None)
    wide = partial(as_type, element="i64" if whole else "f64" if element_name(out.dtype) == "f64" else "f32")
    x = wide(product) if alpha == 1.0 else alpha * wide(product)
    if c is not None:
        x = x + (wide(c) if beta == 1.0 else beta * wide(c))
    if bias is not None:
        x = x + wide(bias)
    if activation:
        name, numbers = parsed(activation)
        x = ACTIVATIONS[name].of_arrays(functions_of(out), x, *numbers)
    store(out, x)
    return out


def functions_of(array: Any) -> Arrays:
    """Return the elementwise functions of an array's library."""
    name = type(array).__module__.partition(".")[0]
    if name == "torch":
        return arrays_of_torch()
    if name != "cupy":
        return NUMPY
    erf: Any = import_module("cupyx.scipy.special").erf
    return Arrays(*[erf if field == "erf" else getattr(NUMPY, field) for field in Arrays._fields])


def as_type(array: Any, element: str) -> Any:
    if hasattr(array, "astype"):
        return array.astype(torch_name(element))
    import torch

    return array.to(getattr(torch, torch_name(element)))


def store(out: Any, x: Any) -> None:
    """Write numbers to ``out``, rounded to nearest even; 8-bit types and integers saturate."""
    if not hasattr(out, "copy_"):
        _store_numpy(out, x)
        return
    import torch

    x = torch.as_tensor(x, device=out.device)
    if not out.dtype.is_floating_point:
        if x.is_floating_point():
            x = torch.round(torch.nan_to_num(x.double(), nan=0.0))
        x = x.clamp(torch.iinfo(out.dtype).min, torch.iinfo(out.dtype).max)
    elif out.dtype.itemsize == 1:
        x = x.clamp(torch.finfo(out.dtype).min, torch.finfo(out.dtype).max)
    out.copy_(x)


def _store_numpy(out: Any, x: Any) -> None:
    import numpy as np

    x = x if hasattr(x, "dtype") else np.asarray(x)
    if out.dtype.kind in "iu":
        if x.dtype.kind == "f":
            x = np.rint(np.nan_to_num(x.astype(np.float64), nan=0.0))
        x = x.clip(np.iinfo(out.dtype).min, np.iinfo(out.dtype).max)
    elif out.dtype.itemsize == 1:
        import ml_dtypes

        limit = float(ml_dtypes.finfo(out.dtype).max)
        x = x.clip(-limit, limit)
    out[...] = x
